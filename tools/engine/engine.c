#include "engine.h"

#include <stdlib.h>
#include <string.h>

/* A request, from submission to its end. */
struct request {
    int64_t number; /* 0: this place is free */
    int32_t *prompt;
    int64_t prompt_count, limit;
    int64_t computed; /* tokens of the prompt that were enqueued */
    int64_t told;     /* tokens that `token` was called for */
    struct engine_sampling sampling;
    int32_t *pages; /* table_width of them, in the engine's memory */
    int64_t page_count;
    bool cancelled;
    void *user;
};

struct engine {
    struct model *model;
    struct engine_events events;
    struct request *slot;  /* as many as the model has */
    struct request *queue; /* a ring */
    int64_t queue_room, queue_first, queue_count;
    int32_t *page_lists;
    int32_t *free_pages; /* a stack */
    int64_t free_count;
    int64_t running, numbers;
    int32_t *fresh; /* tokens of one slot that were drawn in a step */
};

int engine_open(struct model *model, int64_t waiting, const struct engine_events *events,
                struct engine **out, struct problem *p)
{
    struct engine *e = calloc(1, sizeof *e);
    const size_t slots = (size_t)model->options.slots, width = (size_t)model->table_width;
    const size_t pages = (size_t)model->options.pages;
    if (waiting < 1 || waiting > INT64_C(1) << 24) {
        free(e);
        return problem(p, "waiting: %lld is outside 1 to 2^24", (long long)waiting);
    }
    if (!e) return problem(p, "no memory for an engine");
    e->model = model;
    e->events = *events;
    e->queue_room = waiting;
    e->slot = calloc(slots, sizeof *e->slot);
    e->queue = calloc((size_t)waiting, sizeof *e->queue);
    e->page_lists = calloc(slots * width, sizeof *e->page_lists);
    e->free_pages = calloc(pages, sizeof *e->free_pages);
    e->fresh = calloc((size_t)model->history_row, sizeof *e->fresh);
    if (!e->slot || !e->queue || !e->page_lists || !e->free_pages || !e->fresh) {
        engine_close(e);
        return problem(p, "no memory for an engine");
    }
    /* Page 0 is on top. */
    for (size_t i = 0; i < pages; i++) e->free_pages[i] = (int32_t)(pages - 1 - i);
    e->free_count = (int64_t)pages;
    for (size_t i = 0; i < slots; i++) e->slot[i].pages = e->page_lists + i * width;
    *out = e;
    return 0;
}

void engine_close(struct engine *e)
{
    if (!e) return;
    for (int64_t i = 0; e->slot && i < e->model->options.slots; i++) free(e->slot[i].prompt);
    for (int64_t i = 0; i < e->queue_count; i++)
        free(e->queue[(e->queue_first + i) % e->queue_room].prompt);
    free(e->slot);
    free(e->queue);
    free(e->page_lists);
    free(e->free_pages);
    free(e->fresh);
    free(e);
}

int64_t engine_waiting(const struct engine *e)
{
    return e->queue_count;
}

int64_t engine_free_pages(const struct engine *e)
{
    return e->free_count;
}

const char *engine_reason_text(int reason)
{
    switch (reason) {
    case ENGINE_STOPPED: return "stop token";
    case ENGINE_LENGTH: return "length";
    case ENGINE_CANCELLED: return "cancelled";
    case ENGINE_NO_TOKEN: return "no token could be drawn";
    default: return "runs";
    }
}

/* ---- submitting ---- */

static int check(const struct engine *e, const struct engine_request *r, int64_t *limit,
                 int64_t *pages, struct problem *p)
{
    const struct model *m = e->model;
    const int64_t context = m->options.context, size = m->options.page_size;
    if (r->prompt_count < 1 || r->prompt_count > context)
        return problem(p, "a prompt of %lld tokens: the context has 1 to %lld",
                       (long long)r->prompt_count, (long long)context);
    if (r->most < 0) return problem(p, "most: %lld is below 0", (long long)r->most);
    for (int64_t i = 0; i < r->prompt_count; i++)
        if (r->prompt[i] < 0 || r->prompt[i] >= m->config.vocab)
            return problem(p, "prompt[%lld] is %d, outside the vocabulary of %lld", (long long)i,
                           r->prompt[i], (long long)m->config.vocab);
    /* The last token that may be drawn is not fed. */
    *limit =
        r->most && r->most <= context - r->prompt_count ? r->prompt_count + r->most - 1 : context;
    *pages = (*limit + size - 1) / size;
    if (*pages > m->options.pages)
        return problem(p, "a request of %lld positions needs %lld pages; the cache has %lld",
                       (long long)*limit, (long long)*pages, (long long)m->options.pages);
    if (e->queue_count == e->queue_room)
        return problem(p, "%lld requests wait already", (long long)e->queue_count);
    return 0;
}

int64_t engine_submit(struct engine *e, const struct engine_request *r, struct problem *p)
{
    struct request *q;
    int64_t limit, pages;
    int32_t *prompt;
    if (check(e, r, &limit, &pages, p)) return -1;
    prompt = malloc((size_t)r->prompt_count * sizeof *prompt);
    if (!prompt) return problem(p, "no memory for a prompt");
    memcpy(prompt, r->prompt, (size_t)r->prompt_count * sizeof *prompt);
    q = &e->queue[(e->queue_first + e->queue_count++) % e->queue_room];
    *q = (struct request){.number = ++e->numbers,
                          .prompt = prompt,
                          .prompt_count = r->prompt_count,
                          .limit = limit,
                          .page_count = pages,
                          .sampling = {.temperature = r->temperature,
                                       .top_p = r->top_p,
                                       .top_k = r->top_k,
                                       .seed = r->seed},
                          .user = r->user};
    return q->number;
}

void engine_cancel(struct engine *e, int64_t number)
{
    for (int64_t i = 0; i < e->queue_count; i++) {
        struct request *q = &e->queue[(e->queue_first + i) % e->queue_room];
        if (q->number == number) q->cancelled = true;
    }
    for (int64_t i = 0; i < e->model->options.slots; i++)
        if (e->slot[i].number == number) e->slot[i].cancelled = true;
}

/* ---- a step ---- */

static void end(struct engine *e, struct request *r, int reason)
{
    int32_t *const pages = r->pages;
    void *const user = r->user;
    if (pages)
        for (int64_t i = 0; i < r->page_count; i++) e->free_pages[e->free_count++] = pages[i];
    free(r->prompt);
    *r = (struct request){.pages = pages};
    if (e->events.end) e->events.end(user, reason);
}

/* Requests that wait and were cancelled end; the others keep their order. */
static void drop_cancelled(struct engine *e)
{
    int64_t kept = 0;
    const int64_t count = e->queue_count;
    for (int64_t i = 0; i < count; i++) {
        struct request *q = &e->queue[(e->queue_first + i) % e->queue_room];
        if (q->cancelled)
            end(e, q, ENGINE_CANCELLED);
        else if (kept++ < i)
            e->queue[(e->queue_first + kept - 1) % e->queue_room] = *q;
    }
    e->queue_count = kept;
}

/* The lowest slots are taken first, so that a step's rows stay few. */
static int admit(struct engine *e, struct problem *p)
{
    for (int64_t s = 0; s < e->model->options.slots && e->queue_count; s++) {
        struct request *r = &e->slot[s], *q = &e->queue[e->queue_first];
        int32_t *const pages = r->pages;
        struct model_request given = {.pages = pages};
        if (r->number) continue;
        if (q->page_count > e->free_count) break;
        *r = *q;
        r->pages = pages;
        e->queue_first = (e->queue_first + 1) % e->queue_room;
        e->queue_count--;
        e->running++;
        for (int64_t i = 0; i < r->page_count; i++) pages[i] = e->free_pages[--e->free_count];
        given.page_count = r->page_count;
        given.limit = r->limit;
        given.sampling = r->sampling;
        if (model_enter(e->model, s, &given, p)) return -1;
    }
    return 0;
}

/* A chunk of the prompt that entered first. */
static int prefill(struct engine *e, struct problem *p)
{
    struct request *first = NULL;
    int64_t count;
    for (int64_t s = 0; s < e->model->options.slots; s++) {
        struct request *r = &e->slot[s];
        if (r->number && r->computed < r->prompt_count && (!first || r->number < first->number))
            first = r;
    }
    if (!first) return 0;
    count = first->prompt_count - first->computed;
    if (count > e->model->options.chunk) count = e->model->options.chunk;
    if (model_prefill(e->model, first - e->slot, first->prompt + first->computed, count,
                      first->computed, first->computed + count == first->prompt_count, p))
        return -1;
    first->computed += count;
    return 0;
}

/* Cancelled requests: those that decode end on the device, the others have nothing in flight. */
static int cancel(struct engine *e, struct problem *p)
{
    for (int64_t s = 0; s < e->model->options.slots; s++) {
        struct request *r = &e->slot[s];
        if (!r->number || !r->cancelled) continue;
        if (r->computed < r->prompt_count) {
            e->running--;
            end(e, r, ENGINE_CANCELLED);
        } else if (model_cancel(e->model, s, p)) {
            return -1;
        }
    }
    return 0;
}

/* How many slots a step of decode has: up to the last one that runs. */
static int64_t decoding(const struct engine *e)
{
    int64_t rows = 0;
    for (int64_t s = 0; s < e->model->options.slots; s++)
        if (e->slot[s].number && e->slot[s].computed == e->slot[s].prompt_count) rows = s + 1;
    return rows;
}

/* Tells of the tokens that were drawn in this step, two where a prompt was finished. */
static int tell(struct engine *e, int64_t s, const struct model_state *state, struct problem *p)
{
    struct request *r = &e->slot[s];
    const int64_t fresh = state->counts[s] - r->told;
    if (fresh == 1 && state->sampled[s] >= 0)
        e->fresh[0] = state->sampled[s];
    else if (fresh > 0 && model_history(e->model, s, r->told, fresh, e->fresh, p))
        return -1;
    for (int64_t i = 0; i < fresh; i++)
        if (e->events.token) e->events.token(r->user, e->fresh[i]);
    r->told += fresh;
    return 0;
}

static int settle(struct engine *e, struct problem *p)
{
    struct model_state state;
    if (model_read(e->model, &state, p)) return -1;
    for (int64_t s = 0; s < e->model->options.slots; s++) {
        struct request *r = &e->slot[s];
        if (!r->number || r->computed < r->prompt_count) continue;
        if (tell(e, s, &state, p)) return -1;
        if (!state.reasons[s]) continue;
        e->running--;
        end(e, r, state.reasons[s]);
    }
    return 0;
}

int64_t engine_step(struct engine *e, struct problem *p)
{
    int64_t rows;
    drop_cancelled(e);
    if (cancel(e, p) || admit(e, p) || prefill(e, p)) return -1;
    rows = decoding(e);
    if (rows && (model_decode(e->model, rows, p) || settle(e, p))) return -1;
    return e->running + e->queue_count;
}
