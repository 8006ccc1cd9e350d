/*
 * What serving asks of attention, MLA, the indexer and top-k beyond right results: arrays on the device that hold
 * nonsense, sequences without keys, a captured graph that is replayed with other lengths and tables, one plan on
 * two streams at a time. Every result is compared to the bit with that of a plain run whose arrays say the same
 * within the rules. Outputs are poisoned, workspaces dirty, everything has guards.
 */
#include "serving_case.h"

#include "lib/harness.h"
#include "lib/verdict.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- places -- */

static bool open_place(struct gpu *g, const struct subject *s, int q, struct place *p)
{
    memset(p, 0, sizeof *p);
    p->q = s->q[q];
    return guarded_new(&g->d, &p->out, s->out_bytes, POISON) &&
           (!s->lse_bytes || guarded_new(&g->d, &p->lse, s->lse_bytes, POISON)) &&
           (!s->workspace || guarded_new(&g->d, &p->workspace, s->workspace, 0xFF));
}

static void close_place(struct gpu *g, struct place *p)
{
    struct guarded *all[] = {&p->out, &p->lse, &p->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *damage = all[i]->base ? guarded_damage(&g->d, all[i]) : NULL;
        CHECK(!damage, "buffer %zu: %s", i, damage);
        guarded_free(&g->d, all[i]);
    }
}

static void poison(struct gpu *g, const struct guarded *b, unsigned char pattern)
{
    if (!b->base) return;
    unsigned char *host = gpu_host(b->size);
    memset(host, pattern, b->size);
    gpu_need(g->d.to_device(b->data, host, b->size), "copy");
    free(host);
}

static unsigned char *read_back(struct gpu *g, const struct guarded *b)
{
    unsigned char *host = gpu_host(b->size);
    if (b->base) gpu_need(g->d.to_host(host, b->data, b->size), "copy");
    return host;
}

/* Whether a sequence's bytes agree. */
static bool same(const unsigned char *a, const unsigned char *b, size_t bytes, int sequence)
{
    size_t each = bytes / BATCH, at = each * (size_t)sequence;
    return memcmp(a + at, b + at, each) == 0;
}

/* `skip`: bit b leaves sequence b out. */
static void check_same(struct gpu *g, const struct subject *s, const struct place *want,
                       const struct place *got, unsigned skip, const char *what)
{
    unsigned char *w = read_back(g, &want->out), *x = read_back(g, &got->out);
    unsigned char *wl = read_back(g, &want->lse), *xl = read_back(g, &got->lse);
    for (int b = 0; b < BATCH; b++) {
        if (skip >> b & 1) continue;
        CHECK(same(w, x, s->out_bytes, b), "%s: other bits in sequence %d", what, b);
        CHECK(same(wl, xl, s->lse_bytes, b), "%s: other log-sum-exps in sequence %d", what, b);
    }
    free(w), free(x), free(wl), free(xl);
}

/* ---- runs -- */

static void set_array(struct gpu *g, const struct array *a, const int32_t *values)
{
    gpu_need(g->d.to_device(a->on_device.data, values, BATCH * a->each * sizeof *values), "copy");
}

static void run(const struct subject *s, const struct place *p, hewn_stream stream)
{
    hewn_error err = {0};
    int status = s->kind->run(s, p, stream, &err);
    CHECK(status == HEWN_OK, "run: %s", err.message);
}

static void settle(struct gpu *g, bool outside)
{
    int rc = g->d.synchronize();
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    verdict_check(g->d.info.simulated, outside);
}

static void run_alone(struct gpu *g, const struct subject *s, const struct place *p, bool outside)
{
    poison(g, &p->out, POISON);
    poison(g, &p->lse, POISON);
    poison(g, &p->workspace, 0xFF);
    run(s, p, NULL);
    settle(g, outside);
}

/* ---- nonsense -- */

static int32_t nonsense(const struct array *a, uint32_t i)
{
    const int32_t values[] = {INT_MIN, -1, a->most + 1, INT_MAX, -a->most, INT_MIN + 1, 0x7FFFFF00};
    return values[i % (sizeof values / sizeof *values)];
}

/* What a value means within the rules. */
static int32_t meaning(const struct array *a, int32_t value)
{
    if (value >= 0 && value <= a->most) return value;
    switch (a->rule) {
    case CLAMPED: return value < 0 ? 0 : a->most;
    case HOLES: return -1;
    default: return 0;
    }
}

static void check_finite(struct gpu *g, const struct subject *s, const struct place *p)
{
    if (!s->floats) return;
    unsigned char *bytes = read_back(g, &p->out);
    size_t bad = 0;
    for (size_t i = 0; i < s->out_bytes; i += 4) {
        float x;
        memcpy(&x, bytes + i, sizeof x);
        if (!isfinite(x)) bad++;
    }
    CHECK(bad == 0, "%zu elements are not finite", bad);
    free(bytes);
}

/* Lengths and lists: a run with nonsense has the bits of one with what the nonsense means. */
static void try_values(struct gpu *g, const struct subject *s, const struct array *a,
                       const struct place *want, const struct place *got)
{
    const uint32_t n = BATCH * a->each;
    int32_t *wrong = gpu_host(n * sizeof *wrong), *right = gpu_host(n * sizeof *right);
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < n; i++) {
            wrong[i] = (i + turn) % 3 ? nonsense(a, i + turn) : a->right[i];
            if (a->rule == HOLES && (i + turn) % 3 == 1) wrong[i] = a->right[i / 7 * 7];
            right[i] = meaning(a, wrong[i]);
        }
        set_array(g, a, right);
        run_alone(g, s, want, false);
        set_array(g, a, wrong);
        run_alone(g, s, got, false);
        check_same(g, s, want, got, 0, a->name);
        check_finite(g, s, got);
    }
    free(wrong), free(right);
}

/* Tables: sequences whose entries are right have the bits of a run without nonsense. */
static void try_pages(struct gpu *g, const struct subject *s, const struct array *a,
                      const struct place *want, const struct place *got)
{
    const uint32_t n = BATCH * a->each;
    int32_t *wrong = gpu_host(n * sizeof *wrong);
    run_alone(g, s, want, false);
    for (uint32_t turn = 0; turn < 2; turn++) {
        unsigned skip = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t b = i / a->each;
            bool bad = b % 2 == turn && i % 3;
            wrong[i] = bad ? nonsense(a, i) : a->right[i];
            if (bad) skip |= 1U << b;
        }
        set_array(g, a, wrong);
        run_alone(g, s, got, true);
        check_same(g, s, want, got, skip, a->name);
        check_finite(g, s, got);
    }
    free(wrong);
}

static void try_nonsense(struct gpu *g, const struct subject *s, const struct place p[2])
{
    for (int i = 0; i < ARRAYS; i++) {
        const struct array *a = &s->array[i];
        if (a->rule == PAGES)
            try_pages(g, s, a, &p[0], &p[1]);
        else
            try_values(g, s, a, &p[0], &p[1]);
        set_array(g, a, a->right);
    }
}

/* ---- no keys -- */

static void try_empty(struct gpu *g, const struct subject *s, const struct place p[2])
{
    const struct array *a = &s->array[0];
    int32_t *none = calloc((size_t)BATCH * a->each, sizeof *none);
    if (!none) gpu_die("host memory", "none");
    set_array(g, a, none);
    run_alone(g, s, &p[0], false);
    unsigned char *out = read_back(g, &p[0].out), *lse = read_back(g, &p[0].lse);
    const int32_t want = s->floats ? 0 : s->fills ? -1 : (int32_t)0xA5A5A5A5;
    size_t wrong = 0;
    for (size_t i = 0; i < s->out_bytes; i += 4)
        if (memcmp(out + i, &want, 4)) wrong++;
    CHECK(wrong == 0, "%zu elements are not 0x%x", wrong, (unsigned)want);
    for (size_t i = wrong = 0; i < s->lse_bytes; i += 4) {
        float x;
        memcpy(&x, lse + i, sizeof x);
        if (!isinf(x) || x > 0) wrong++;
    }
    CHECK(wrong == 0, "%zu log-sum-exps are not -infinity", wrong);
    free(out), free(lse), free(none);
    set_array(g, a, a->right);
}

/* ---- replays -- */

/* Other values within the rules: lengths reversed and changed, tables and lists rotated. */
static void change(const struct array *a, uint32_t turn, int32_t *out)
{
    const uint32_t n = BATCH * a->each;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = a->right[(i + turn * 7) % n];
        if (a->rule == CLAMPED)
            out[i] = turn == 3 ? 0 : (out[i] + (int32_t)turn * 31) % (a->most + 1);
    }
}

static void try_replay(struct gpu *g, const struct subject *s, const struct place p[2])
{
    void *graph = NULL, *exec = NULL;
    gpu_need(g->begin(g->stream, 0), "capture");
    run(s, &p[1], g->stream);
    gpu_need(g->end(g->stream, &graph), "capture");
    gpu_need(g->instantiate(&exec, graph, 0), "graph");
    for (uint32_t turn = 0; turn < 4; turn++) {
        for (int i = 0; i < ARRAYS; i++) {
            const struct array *a = &s->array[i];
            int32_t *values = gpu_host(BATCH * a->each * sizeof *values);
            change(a, turn, values);
            set_array(g, a, values);
            free(values);
        }
        poison(g, &p[1].out, POISON);
        poison(g, &p[1].lse, POISON);
        poison(g, &p[1].workspace, 0x7F);
        gpu_need(g->d.synchronize(), "copies"); /* which this stream does not wait for */
        gpu_need(g->launch(exec, g->stream), "graph");
        settle(g, false);
        run_alone(g, s, &p[0], false);
        check_same(g, s, &p[0], &p[1], 0, "replay");
    }
    g->exec_destroy(exec), g->graph_destroy(graph);
    for (int i = 0; i < ARRAYS; i++) set_array(g, &s->array[i], s->array[i].right);
}

/* ---- two streams -- */

static void try_streams(struct gpu *g, const struct subject *s, const struct place p[2])
{
    struct place alone[2];
    hewn_stream other = NULL;
    gpu_need(g->stream_create(&other, 1), "stream");
    for (int i = 0; i < 2; i++) {
        CHECK(open_place(g, s, i, &alone[i]), "no device memory");
        run_alone(g, s, &alone[i], false);
        poison(g, &p[i].out, POISON);
        poison(g, &p[i].lse, POISON);
    }
    gpu_need(g->d.synchronize(), "copies"); /* which these streams do not wait for */
    for (int turn = 0; turn < 3; turn++) {
        run(s, &p[0], g->stream);
        run(s, &p[1], other);
    }
    settle(g, false);
    for (int i = 0; i < 2; i++) {
        check_same(g, s, &alone[i], &p[i], 0, i ? "stream 1" : "stream 0");
        close_place(g, &alone[i]);
    }
}

/* ---- all of them -- */

static const struct {
    const char *name;
    void (*attempt)(struct gpu *g, const struct subject *s, const struct place p[2]);
    int inputs; /* different Q of the two places */
} attempts[] = {
    {"nonsense on the device", try_nonsense, 0},
    {"no keys", try_empty, 0},
    {"a graph, replayed with other arrays", try_replay, 0},
    {"two streams at a time", try_streams, 1},
};

static void try_kind(struct gpu *g, const struct kind *k, size_t attempt)
{
    struct subject s = {.name = k->name, .kind = k};
    struct place p[2] = {{0}, {0}};
    hewn_error err = {0};
    int status = k->open(g, k, &s, &err);
    if (status == HEWN_ERR_NO_MODULE || status == HEWN_ERR_LIMIT)
        test_skip("%s", err.message);
    else
        CHECK(status == HEWN_OK, "plan: %s", err.message);
    if (status == HEWN_OK) {
        for (int i = 0; i < ARRAYS; i++) set_array(g, &s.array[i], s.array[i].right);
        bool ready =
            open_place(g, &s, 0, &p[0]) && open_place(g, &s, attempts[attempt].inputs, &p[1]);
        CHECK(ready, "no device memory");
        if (ready) attempts[attempt].attempt(g, &s, p);
    }
    for (int i = 0; i < 2; i++) close_place(g, &p[i]);
    for (int i = 0; i < ARRAYS; i++) {
        const struct guarded *b = &s.array[i].on_device;
        const char *damage = b->base ? guarded_damage(&g->d, b) : NULL;
        CHECK(!damage, "array %d: %s", i, damage);
    }
    serving_close(g, &s);
}

int main(int argc, char **argv)
{
    struct gpu g = {.pool = {0}};
    test_begin("serving", argc, argv);
    verdict_begin("serving");
    gpu_open(&g);
    test_where("%s", g.d.info.name);
    for (int k = 0; k < serving_kind_count; k++)
        for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
            if (test_case("%s: %s", serving_kinds[k].name, attempts[i].name))
                try_kind(&g, &serving_kinds[k], i);
    gpu_close(&g);
    verdict_end();
    return test_end();
}
