#include "check.h"

#include <stdlib.h>
#include <string.h>

static int enter(struct model *m, int64_t slot, int64_t limit, const struct engine_sampling *s,
                 struct problem *p)
{
    const int64_t size = m->options.page_size, count = (limit + size - 1) / size;
    struct model_request r = {.page_count = count, .limit = limit, .sampling = *s};
    int32_t *pages = malloc((size_t)count * sizeof *pages);
    int failed;
    if (!pages) return problem(p, "no memory for %lld pages", (long long)count);
    for (int64_t i = 0; i < count; i++) pages[i] = (int32_t)i;
    r.pages = pages;
    failed = count > m->options.pages
                 ? problem(p, "%lld positions need %lld pages; the cache has %lld",
                           (long long)limit, (long long)count, (long long)m->options.pages)
                 : model_enter(m, slot, &r, p);
    free(pages);
    return failed;
}

static int prefill(struct model *m, int64_t slot, const int32_t *prompt, int64_t count,
                   struct problem *p)
{
    for (int64_t from = 0, now; from < count; from += now) {
        now = count - from < m->options.chunk ? count - from : m->options.chunk;
        if (model_prefill(m, slot, prompt + from, now, from, from + now == count, p)) return -1;
    }
    return 0;
}

/* engine_attend computes the rows that decode in this slot, or none. */
static size_t first_whole(const struct model *m, int64_t slot, int64_t prompt_count)
{
    const struct row_plans *plans = m->decode;
    while (plans->rows <= slot) plans++;
    return m->columns && !plans->attention.plan ? (size_t)prompt_count : SIZE_MAX;
}

int check_generate(struct model *m, int64_t slot, const int32_t *prompt, int64_t prompt_count,
                   int64_t most, const struct engine_sampling *sampling, struct check_run *out,
                   struct problem *p)
{
    const size_t vocab = (size_t)m->config.vocab;
    const int64_t room = m->options.context - prompt_count + 1;
    struct model_state state;
    *out = (struct check_run){.prompt_count = prompt_count,
                              .count = prompt_count,
                              .whole = first_whole(m, slot, prompt_count)};
    if (prompt_count < 1 || most < 1 || room < 1)
        return problem(p, "%lld tokens of a prompt and %lld more: the context is %lld",
                       (long long)prompt_count, (long long)most, (long long)m->options.context);
    if (most > room) most = room;
    out->tokens = malloc((size_t)(prompt_count + most) * sizeof *out->tokens);
    out->logits = malloc((size_t)most * vocab * sizeof *out->logits);
    if (!out->tokens || !out->logits) {
        check_free(out);
        return problem(p, "no memory for %lld rows of logits", (long long)most);
    }
    memcpy(out->tokens, prompt, (size_t)prompt_count * sizeof *prompt);
    if (enter(m, slot, prompt_count + most - 1, sampling, p) ||
        prefill(m, slot, prompt, prompt_count, p) || model_logits(m, 0, out->logits, p) ||
        model_read(m, &state, p)) {
        check_free(out);
        return -1;
    }
    for (;;) {
        const int64_t drawn = out->count - prompt_count;
        if (state.counts[slot] > drawn) out->tokens[out->count++] = state.sampled[slot];
        out->reason = state.reasons[slot];
        if (out->reason) return 0;
        if (model_decode(m, slot + 1, p) ||
            model_logits(m, slot, out->logits + (size_t)(drawn + 1) * vocab, p) ||
            model_read(m, &state, p)) {
            check_free(out);
            return -1;
        }
    }
}

void check_free(struct check_run *run)
{
    free(run->tokens);
    free(run->logits);
    free(run->exact);
    *run = (struct check_run){.tokens = NULL};
}

int check_compare(const struct checkpoint *model, struct check_run *run,
                  struct reference_difference *out, struct problem *p)
{
    /* The last token was drawn and not fed. */
    const size_t fed = (size_t)run->count - 1, vocab = (size_t)model->config.vocab;
    const size_t from = (size_t)run->prompt_count - 1, rows = fed - from;
    double *all = malloc(2 * fed * vocab * sizeof *all), *rounded;
    int agrees = -1;
    run->exact = malloc((rows ? rows : 1) * vocab * sizeof *run->exact);
    if (!all || !run->exact) {
        free(all);
        return problem(p, "no memory for the reference's logits");
    }
    rounded = all + fed * vocab;
    if (!rows) {
        problem(p, "no token was drawn");
    } else if (reference_logits(model, run->tokens, fed, false, run->whole, all, p) == 0 &&
               reference_logits(model, run->tokens, fed, true, run->whole, rounded, p) == 0) {
        memcpy(run->exact, all + from * vocab, rows * vocab * sizeof *all);
        agrees =
            reference_agrees(run->logits, run->exact, rounded + from * vocab, rows * vocab, out);
    }
    free(all);
    return agrees;
}
