/* Many requests of random lengths, settings and cancellations through one engine: each ends once,
 * for a reason that fits, pages come back, and memory stays as it was. --count N: so many (40). */
#include "world.h"

#include "engine/engine.h"
#include "lib/suite.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITING = 64, LONGEST = 64, STEPS = 16 };

static struct tiny tiny;

struct job {
    int64_t number, most;
    int count, ends, reason;
    int cancel_at; /* after so many tokens; -1: not */
    struct engine *engine;
};

static void on_token(void *user, int32_t token)
{
    struct job *j = user;
    CHECK(token >= 0 && token < tiny.vocab, "token %d", token);
    if (j->count++ == j->cancel_at) engine_cancel(j->engine, j->number);
}

static void on_end(void *user, int reason)
{
    struct job *j = user;
    j->reason = reason;
    j->ends++;
}

static bool submit(struct engine *e, struct job *j, struct rng *r)
{
    int32_t prompt[LONGEST];
    struct problem p = {""};
    struct engine_request q = {.prompt = prompt, .user = j};
    q.prompt_count = 1 + (int64_t)rng_below(r, LONGEST);
    for (int64_t i = 0; i < q.prompt_count; i++)
        prompt[i] = (int32_t)rng_below(r, (uint32_t)tiny.vocab);
    q.most = j->most = 1 + (int64_t)rng_below(r, 12);
    q.temperature = rng_below(r, 2) ? 0.0f : 1.2f;
    q.top_p = rng_below(r, 2) ? 1.0f : 0.7f;
    q.top_k = rng_below(r, 3) ? 0 : 5;
    q.seed = rng_next(r);
    j->cancel_at = rng_below(r, 4) ? -1 : (int)rng_below(r, 6);
    j->engine = e;
    j->number = engine_submit(e, &q, &p);
    CHECK(j->number > 0, "%s", p.text);
    return j->number > 0;
}

static void judge(const struct job *j, int i)
{
    const bool cancelled = j->reason == ENGINE_CANCELLED;
    CHECK(j->ends == 1, "request %d ended %d times", i, j->ends);
    CHECK(cancelled || j->reason == ENGINE_LENGTH, "request %d: %s", i,
          engine_reason_text(j->reason));
    CHECK(cancelled ? j->count <= j->most : j->count == j->most,
          "request %d: %d tokens of %lld, %s", i, j->count, (long long)j->most,
          engine_reason_text(j->reason));
}

static void run_all(struct model *m, int count)
{
    const struct engine_events events = {on_token, on_end};
    struct job *jobs = calloc((size_t)count, sizeof *jobs);
    struct rng r = {test_seed()};
    struct problem p = {""};
    struct engine *e = NULL;
    int given = 0, refused = 0;
    int64_t left = 0, steps = 0;
    size_t early = 0;
    CHECK(jobs && engine_open(m, WAITING, &events, &e, &p) == 0, "%s", p.text);
    while (e && jobs && (given < count || left > 0)) {
        /* Some requests are taken back while they wait. */
        while (given < count && engine_waiting(e) < WAITING && !refused) {
            refused = !submit(e, &jobs[given], &r);
            if (!refused && rng_below(&r, 16) == 0) engine_cancel(e, jobs[given].number);
            given += !refused;
        }
        left = engine_step(e, &p);
        CHECK(left >= 0, "%s", p.text);
        if (left < 0 || refused) break;
        /* A request has at most two chunks and a step for each of its tokens. */
        CHECK(steps < STEPS * count, "%lld requests are left after %lld steps", (long long)left,
              (long long)steps);
        if (++steps > STEPS * count) break;
        if (!early && given >= count / 4) early = mallinfo2().uordblks;
    }
    for (int i = 0; jobs && i < given; i++) judge(&jobs[i], i);
    CHECK_INT(given, count);
    if (e) CHECK_INT(engine_free_pages(e), m->options.pages);
    /* Prompts that wait come and go; nothing may stay for each request. */
    CHECK(mallinfo2().uordblks < early + WAITING * LONGEST * 8 + (1 << 20),
          "%zu bytes of the heap in use, %zu after a quarter", (size_t)mallinfo2().uordblks, early);
    engine_close(e);
    free(jobs);
}

int main(int argc, char **argv)
{
    const struct model_options o = {
        .slots = 8, .chunk = 32, .page_size = 16, .pages = 30, .context = 96};
    const int asked = suite_number(&argc, argv, "--count"), count = asked ? asked : 40;
    struct world w;
    test_begin("engine_requests", argc, argv);
    tiny = tiny_llama(11);
    if (!world_where("engine_requests")) return 1;
    if (test_case("%d requests", count)) {
        if (world_open(&w, &tiny, &o)) run_all(w.model, count);
        world_close(&w);
    }
    return test_end();
}
