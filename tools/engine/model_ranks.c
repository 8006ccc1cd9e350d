#include "model_ranks.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct engine_sampling) <= sizeof((struct ranks_message *)0)->settings,
               "a message has room for a slot's settings");

static bool leads(const struct model *m)
{
    return m->ranks && m->ranks->rank == 0;
}

int model_tell(const struct model *m, enum model_told kind, int64_t slot, int64_t count,
               int64_t from, struct problem *p)
{
    const struct ranks_message message = {
        .kind = (int32_t)kind, .slot = (int32_t)slot, .count = count, .from = from};
    return leads(m) ? ranks_tell(m->ranks, &message, NULL, p) : 0;
}

int model_tell_enter(const struct model *m, int64_t slot, const struct model_request *r,
                     struct problem *p)
{
    struct ranks_message message = {
        .kind = MODEL_ENTER,
        .slot = (int32_t)slot,
        .count = r->page_count,
        .from = r->limit,
        .payload = r->page_count * (int64_t)sizeof *r->pages,
    };
    if (!leads(m)) return 0;
    memcpy(message.settings, &r->sampling, sizeof r->sampling);
    return ranks_tell(m->ranks, &message, r->pages, p);
}

/* The last chunk of a prompt has its first setting set. */
int model_tell_prefill(const struct model *m, int64_t slot, const int32_t *tokens, int64_t count,
                       int64_t from, bool last, struct problem *p)
{
    const struct ranks_message message = {
        .kind = MODEL_PREFILL,
        .slot = (int32_t)slot,
        .count = count,
        .from = from,
        .payload = count * (int64_t)sizeof *tokens,
        .settings = {last},
    };
    return leads(m) ? ranks_tell(m->ranks, &message, tokens, p) : 0;
}

static int obey(struct model *m, const struct ranks_message *told, const int32_t *payload,
                struct problem *p)
{
    struct model_request request = {
        .pages = payload, .page_count = told->count, .limit = told->from};
    if (told->slot < 0 || told->slot >= m->options.slots)
        return problem(p, "the leading rank speaks of slot %d; there are %lld", told->slot,
                       (long long)m->options.slots);
    switch (told->kind) {
    case MODEL_ENTER:
        memcpy(&request.sampling, told->settings, sizeof request.sampling);
        return model_enter(m, told->slot, &request, p);
    case MODEL_PREFILL:
        return model_prefill(m, told->slot, payload, told->count, told->from, told->settings[0], p);
    case MODEL_PLACE: return model_place(m, told->slot, (int32_t)told->count, told->from, p);
    case MODEL_DECODE: return model_decode(m, told->count, p);
    case MODEL_CANCEL: return model_cancel(m, told->slot, p);
    default: return problem(p, "the leading rank says %d, which means nothing", told->kind);
    }
}

/* What the device answers while nothing is asked of it. A step that failed ends the rank at once:
 * the leader may wait for this rank's part of it, and then says nothing more. */
struct idler {
    const struct model *m;
    struct problem *p;
};

static int idle(void *user)
{
    const struct idler *i = user;
    const struct gpu *g = i->m->gpu;
    return gpu_check(g, g->stream_wait(g->stream), "a step", i->p) ||
                   collectives_check(&i->m->ranks->nccl, i->p)
               ? -1
               : 0;
}

int model_follow(struct model *m, struct problem *p)
{
    const int64_t most = m->options.chunk > m->table_width ? m->options.chunk : m->table_width;
    const size_t room = (size_t)most * sizeof(int32_t);
    int32_t *payload = malloc(room);
    struct idler idler = {.m = m, .p = p};
    struct ranks_message told;
    int heard;
    if (!payload) return problem(p, "no memory for what the leading rank says");
    do {
        heard = ranks_hear(m->ranks, &told, payload, room, idle, &idler, p);
        if (heard == 1 && obey(m, &told, payload, p)) heard = -1;
    } while (heard == 1);
    free(payload);
    return heard;
}
