#include "explore_random.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 4, GLOBALS = 4, BARS = 3, NAMED = 3, PLAN = RANDOM_EVENTS, CTAS = 2 };
/* Of random_lanes: the first actors are lanes of one warp; a barrier that one of them makes. */
enum { LANES = 3, LATE_BAR = BARS };

/* a, b, c: operands, as said. */
#define EVENTS(X)                                                                       \
    X(NOTHING, "")                                                                      \
    X(LOAD, "reads word a")                                                             \
    X(STORE, "writes word a")                                                           \
    X(LOAD_GLOBAL, "reads global word a")                                               \
    X(STORE_GLOBAL, "writes global word a")                                             \
    X(STORE_LANES, "half of the lanes write word a, the others word b")                 \
    X(RED, "adds to word a")                                                            \
    X(RED_GLOBAL, "adds to global word a")                                              \
    X(ATOM, "adds to word a and keeps what was there")                                  \
    X(SYNC, "all threads")                                                              \
    X(NAMED_SYNC, "barrier a of b threads")                                             \
    X(NAMED_ARRIVE, "the same without waiting")                                         \
    X(ARRIVE, "arrives at mbarrier a")                                                  \
    X(ARRIVE_TWICE, "arrives at mbarrier a with count 2")                               \
    X(EXPECT, "arrives at mbarrier a, which expects b bytes more")                      \
    X(DROP, "arrives at mbarrier a for the last time")                                  \
    X(WAIT, "waits for mbarrier a, parity b")                                           \
    X(TEST, "looks once at mbarrier a, parity b, and writes word c if it is too early") \
    X(COPY_IN, "copies global line a to the tile b, bytes to mbarrier c")               \
    X(COPY_OUT, "copies the tile a to global line b, in a group")                       \
    X(LOAD_TILE, "reads the tile a")                                                    \
    X(STORE_TILE, "writes the tile a")                                                  \
    X(LOAD_LINE, "reads global line a")                                                 \
    X(FENCE_ASYNC, "fence.proxy.async")                                                 \
    X(COMMIT, "commits a group of copies")                                              \
    X(WAIT_GROUP, "waits for all groups but a")                                         \
    X(WAIT_READ, "waits for all groups but a to have read")                             \
    X(CP_ASYNC, "copies global line a to the tile b with cp.async")                     \
    X(CP_COMMIT, "commits a group of cp.async")                                         \
    X(CP_WAIT, "waits for all such groups but a")                                       \
    X(CP_ARRIVE, "arrives at mbarrier a when its cp.async are done")                    \
    X(CLUSTER_SYNC, "all threads of the cluster")                                       \
    X(CLUSTER_ARRIVE, "arrives at the cluster's barrier")                               \
    X(CLUSTER_WAIT, "waits for it")                                                     \
    X(REMOTE_ARRIVE, "arrives at mbarrier a of the other CTA")                          \
    X(REMOTE_STORE, "writes word a of the other CTA")                                   \
    X(REMOTE_LOAD, "reads word a of the other CTA")                                     \
    X(INIT, "makes mbarrier a")                                                         \
    X(MEET, "the lanes of the warp")                                                    \
    X(EXIT, "ends")

enum kind {
#define X(name, text) DO_##name,
    EVENTS(X)
#undef X
        DO_COUNT
};

struct act {
    uint8_t kind;
    uint32_t a, b, c;
};

/* What the plan knows while it is made. */
struct plan {
    uint32_t ctas, warps;
    struct act act[CTAS * RANDOM_WARPS][PLAN];
    uint32_t count[CTAS * RANDOM_WARPS];
    bool gone[CTAS * RANDOM_WARPS];
    uint32_t bar_count[CTAS][BARS]; /* arrivals of a phase */
    uint32_t bar_turns[CTAS][BARS]; /* phases planned so far */
    bool used[CTAS][BARS];
    struct rng *r;
};

static uint32_t draw(struct plan *p, uint32_t bound)
{
    return rng_below(p->r, bound);
}

static bool fits(const struct plan *p, uint32_t w, uint32_t n)
{
    return !p->gone[w] && p->count[w] + n <= PLAN;
}

static void put(struct plan *p, uint32_t w, enum kind kind, uint32_t a, uint32_t b, uint32_t c)
{
    if (p->count[w] == PLAN) return;
    p->act[w][p->count[w]++] = (struct act){.kind = (uint8_t)kind, .a = a, .b = b, .c = c};
}

static uint32_t cta_of(const struct plan *p, uint32_t w)
{
    return p->warps ? w / p->warps : 0;
}

static uint32_t total(const struct plan *p)
{
    return p->ctas * p->warps;
}

static bool any_gone(const struct plan *p)
{
    for (uint32_t w = 0; w < total(p); w++)
        if (p->gone[w]) return true;
    return false;
}

static bool all_fit(const struct plan *p, uint32_t n)
{
    for (uint32_t w = 0; w < total(p); w++)
        if (!p->gone[w] && p->count[w] + n > PLAN) return false;
    return true;
}

/* ---- phrases: what a programmer would write ---- */

static void say_sync(struct plan *p)
{
    if (!all_fit(p, 1)) return;
    for (uint32_t w = 0; w < total(p); w++)
        if (!p->gone[w])
            put(p, w, p->ctas > 1 && !any_gone(p) ? DO_CLUSTER_SYNC : DO_SYNC, 0, 0, 0);
}

static void say_use(struct plan *p, uint32_t w)
{
    static const uint8_t kinds[] = {DO_LOAD,  DO_STORE,       DO_LOAD,
                                    DO_STORE, DO_LOAD_GLOBAL, DO_STORE_GLOBAL,
                                    DO_RED,   DO_RED_GLOBAL,  DO_STORE_LANES};
    if (!fits(p, w, 1)) return;
    put(p, w, kinds[draw(p, sizeof kinds)], draw(p, WORDS), draw(p, WORDS), 0);
}

/* Two warps of a CTA. */
static bool pair(struct plan *p, uint32_t *from, uint32_t *to, uint32_t n)
{
    const uint32_t base = draw(p, p->ctas) * p->warps;
    *from = base + draw(p, p->warps);
    *to = base + draw(p, p->warps);
    return *from != *to && fits(p, *from, n) && fits(p, *to, n);
}

static void say_named(struct plan *p)
{
    uint32_t from, to, id = 1 + draw(p, NAMED), word = draw(p, WORDS);
    const bool global = draw(p, 3) == 0;
    if (!pair(p, &from, &to, 2)) return;
    put(p, from, global ? DO_STORE_GLOBAL : DO_STORE, word, 0, 0);
    put(p, from, draw(p, 2) ? DO_NAMED_ARRIVE : DO_NAMED_SYNC, id, 64, 0);
    put(p, to, DO_NAMED_SYNC, id, 64, 0);
    put(p, to, global ? DO_LOAD_GLOBAL : DO_LOAD, word, 0, 0);
}

/* A word is written, `count` warps arrive, one waits and reads. */
static void say_message(struct plan *p)
{
    uint32_t from, to, bar = draw(p, BARS), word = draw(p, WORDS), cta;
    if (!pair(p, &from, &to, 2)) return;
    cta = cta_of(p, from);
    if (!p->used[cta][bar]) p->bar_count[cta][bar] = draw(p, 3) ? 1 : 2;
    if (p->bar_count[cta][bar] == 2) {
        /* Somebody else arrives too, or the reader itself. */
        if (!fits(p, to, 3)) return;
        put(p, to, DO_ARRIVE, bar, 0, 0);
    }
    p->used[cta][bar] = true;
    put(p, from, draw(p, 4) ? DO_STORE : DO_RED, word, 0, 0);
    put(p, from, DO_ARRIVE, bar, 0, 0);
    put(p, to, DO_WAIT, bar, p->bar_turns[cta][bar]++ & 1, 0);
    put(p, to, draw(p, 4) ? DO_LOAD : DO_STORE, word, 0, 0);
}

static void say_copy(struct plan *p)
{
    uint32_t from, to, bar = draw(p, BARS), tile = draw(p, 2), cta;
    if (!pair(p, &from, &to, 2)) return;
    cta = cta_of(p, from);
    if (p->used[cta][bar] && p->bar_count[cta][bar] != 1) return;
    p->used[cta][bar] = true;
    p->bar_count[cta][bar] = 1;
    put(p, from, DO_EXPECT, bar, 32, 0);
    put(p, from, DO_COPY_IN, draw(p, 2), tile, bar);
    put(p, to, DO_WAIT, bar, p->bar_turns[cta][bar]++ & 1, 0);
    put(p, to, DO_LOAD_TILE, tile, 0, 0);
}

static void say_copy_out(struct plan *p)
{
    const uint32_t w = draw(p, total(p)), tile = draw(p, 2), line = 2 + draw(p, 2);
    if (!fits(p, w, 6)) return;
    put(p, w, DO_STORE_TILE, tile, 0, 0);
    put(p, w, DO_FENCE_ASYNC, 0, 0, 0);
    put(p, w, DO_COPY_OUT, tile, line, 0);
    put(p, w, DO_COMMIT, 0, 0, 0);
    put(p, w, draw(p, 3) ? DO_WAIT_GROUP : DO_WAIT_READ, 0, 0, 0);
    put(p, w, draw(p, 2) ? DO_LOAD_LINE : DO_STORE_TILE, draw(p, 2) ? line : tile, 0, 0);
}

static void say_cp_async(struct plan *p)
{
    uint32_t from, to, bar = draw(p, BARS), tile = draw(p, 2), cta;
    if (!pair(p, &from, &to, 3)) return;
    put(p, from, DO_CP_ASYNC, draw(p, 2), tile, 0);
    if (draw(p, 2)) {
        put(p, from, DO_CP_COMMIT, 0, 0, 0);
        put(p, from, DO_CP_WAIT, 0, 0, 0);
        if (draw(p, 2)) put(p, from, DO_LOAD_TILE, tile, 0, 0);
        return;
    }
    cta = cta_of(p, from);
    if (p->used[cta][bar] && p->bar_count[cta][bar] != 1) return;
    p->used[cta][bar] = true;
    p->bar_count[cta][bar] = 1;
    put(p, from, DO_CP_ARRIVE, bar, 0, 0);
    put(p, to, DO_WAIT, bar, p->bar_turns[cta][bar]++ & 1, 0);
    put(p, to, DO_LOAD_TILE, tile, 0, 0);
}

static void say_remote(struct plan *p)
{
    const uint32_t w = draw(p, total(p)), other = (cta_of(p, w) ^ 1) * p->warps + draw(p, p->warps);
    const uint32_t bar = draw(p, BARS), word = draw(p, WORDS), cta = cta_of(p, other);
    if (p->ctas < 2 || !fits(p, w, 2) || !fits(p, other, 2)) return;
    if (p->used[cta][bar] && p->bar_count[cta][bar] != 1) return;
    p->used[cta][bar] = true;
    p->bar_count[cta][bar] = 1;
    put(p, w, DO_REMOTE_STORE, word, 0, 0);
    put(p, w, DO_REMOTE_ARRIVE, bar, 0, 0);
    put(p, other, DO_WAIT, bar, p->bar_turns[cta][bar]++ & 1, 0);
    put(p, other, DO_LOAD, word, 0, 0);
}

static void say_odd(struct plan *p)
{
    const uint32_t w = draw(p, total(p)), bar = draw(p, BARS);
    if (!fits(p, w, 1)) return;
    switch (draw(p, 5)) {
    case 0: put(p, w, DO_ATOM, draw(p, WORDS), 0, 0); break;
    case 1: put(p, w, DO_TEST, bar, draw(p, 2), draw(p, WORDS)); break;
    case 2:
        put(p, w, DO_EXIT, 0, 0, 0);
        p->gone[w] = true;
        break;
    case 3: put(p, w, DO_DROP, bar, 0, 0); break;
    default: put(p, w, DO_ARRIVE_TWICE, bar, 0, 0); break;
    }
}

/* ---- damage ---- */

static void damage(struct plan *p)
{
    const uint32_t w = draw(p, total(p)), n = p->count[w];
    struct act *a, other;
    uint32_t i;
    if (!n) return;
    i = draw(p, n);
    a = &p->act[w][i];
    switch (draw(p, 7)) {
    case 0:
    case 1: a->kind = DO_NOTHING; break;
    case 2:
        if (i + 1 == n) return;
        other = a[0];
        a[0] = a[1];
        a[1] = other;
        break;
    case 3:
        if (a->kind == DO_WAIT || a->kind == DO_TEST) a->b ^= 1;
        break;
    case 4: a->a = draw(p, 3) + (a->kind == DO_NAMED_SYNC || a->kind == DO_NAMED_ARRIVE); break;
    case 5:
        if (a->kind == DO_NAMED_SYNC)
            a->kind = DO_NAMED_ARRIVE;
        else if (a->kind == DO_CLUSTER_SYNC)
            a->kind = DO_CLUSTER_ARRIVE;
        else if (a->kind == DO_EXPECT)
            a->b = draw(p, 2) ? 16 : 48;
        break;
    default:
        if (n == PLAN) return;
        memmove(a + 1, a, (n - i) * sizeof *a);
        p->count[w]++;
        break;
    }
}

/* ---- the text ---- */

struct text {
    char *at, *end;
};

static void say(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *t, const char *format, ...)
{
    va_list args;
    int n;
    va_start(args, format);
    n = vsnprintf(t->at, (size_t)(t->end - t->at), format, args);
    va_end(args);
    if (n > 0 && n < t->end - t->at) t->at += n;
}

/* What was read, into the warp's sum. */
#define TAKE "mad.lo.u32 sum, sum, 31, v;\n"

static void write_memory(struct text *t, const struct act *a, uint32_t value)
{
    switch ((enum kind)a->kind) {
    case DO_LOAD: say(t, "@l0 ld.shared.u32 v, [words+%u];\n" TAKE, 4 * a->a); break;
    case DO_STORE: say(t, "@l0 st.shared.u32 [words+%u], %u;\n", 4 * a->a, value); break;
    case DO_LOAD_GLOBAL: say(t, "@l0 ld.global.u32 v, [out+%u];\n" TAKE, 256 + 4 * a->a); break;
    case DO_STORE_GLOBAL: say(t, "@l0 st.global.u32 [out+%u], %u;\n", 256 + 4 * a->a, value); break;
    case DO_STORE_LANES:
        say(t,
            "@low bra low%u;\n@l16 st.shared.u32 [words+%u], %u;\nbra.uni met%u;\nlow%u:\n"
            "@l0 st.shared.u32 [words+%u], %u;\nmet%u:\n",
            value, 4 * a->a, value, value, value, 4 * a->b, value + 1, value);
        break;
    case DO_RED: say(t, "@l0 red.shared.add.u32 [words+%u], %u;\n", 4 * a->a, value); break;
    case DO_RED_GLOBAL:
        say(t, "@l0 red.global.add.u32 [out+%u], %u;\n", 256 + 4 * a->a, value);
        break;
    case DO_ATOM:
        say(t, "@l0 atom.shared.add.u32 v, [words+%u], %u;\n" TAKE, 4 * a->a, value);
        break;
    case DO_LOAD_TILE: say(t, "@l0 ld.shared.u32 v, [tile+%u];\n" TAKE, 32 * a->a + 28); break;
    case DO_STORE_TILE: say(t, "@l0 st.shared.u32 [tile+%u], %u;\n", 32 * a->a + 28, value); break;
    case DO_LOAD_LINE: say(t, "@l0 ld.global.u32 v, [out+%u];\n" TAKE, 512 + 32 * a->a + 28); break;
    case DO_REMOTE_STORE:
        say(t,
            "mov.u32 at, words+%u;\nmapa.shared::cluster.u32 at, at, peer;\n"
            "@l0 st.shared::cluster.u32 [at], %u;\n",
            4 * a->a, value);
        break;
    case DO_REMOTE_LOAD:
        say(t,
            "mov.u32 at, words+%u;\nmapa.shared::cluster.u32 at, at, peer;\n"
            "@l0 ld.shared::cluster.u32 v, [at];\n" TAKE,
            4 * a->a);
        break;
    default: break;
    }
}

static void write_mbarrier(struct text *t, const struct act *a, uint32_t value)
{
    const uint32_t bar = 8 * a->a;
    switch ((enum kind)a->kind) {
    case DO_ARRIVE: say(t, "@l0 mbarrier.arrive.shared.b64 _, [bars+%u];\n", bar); break;
    case DO_ARRIVE_TWICE: say(t, "@l0 mbarrier.arrive.shared.b64 _, [bars+%u], 2;\n", bar); break;
    case DO_EXPECT:
        say(t, "@l0 mbarrier.arrive.expect_tx.shared.b64 _, [bars+%u], %u;\n", bar, a->b);
        break;
    case DO_DROP: say(t, "@l0 mbarrier.arrive_drop.shared.b64 _, [bars+%u];\n", bar); break;
    case DO_WAIT:
        say(t, "wait%u:\nmbarrier.try_wait.parity.shared.b64 q, [bars+%u], %u;\n@!q bra wait%u;\n",
            value, bar, a->b, value);
        break;
    case DO_TEST:
        say(t,
            "mbarrier.test_wait.parity.shared.b64 q, [bars+%u], %u;\n"
            "@q bra late%u;\n@l0 st.shared.u32 [words+%u], %u;\nlate%u:\n",
            bar, a->b, value, 4 * a->c, value, value);
        break;
    case DO_CP_ARRIVE:
        say(t, "@l0 cp.async.mbarrier.arrive.noinc.shared.b64 [bars+%u];\n", bar);
        break;
    case DO_INIT:
        say(t,
            "@l0 mbarrier.init.shared.b64 [bars+%u], 1;\n@l0 "
            "fence.mbarrier_init.release.cluster;\n",
            bar);
        break;
    case DO_REMOTE_ARRIVE:
        say(t,
            "mov.u32 at, bars+%u;\nmapa.shared::cluster.u32 at, at, peer;\n"
            "@l0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [at];\n",
            bar);
        break;
    default: break;
    }
}

static void write_copy(struct text *t, const struct act *a)
{
    switch ((enum kind)a->kind) {
    case DO_COPY_IN:
        say(t,
            "add.u64 line, in, %u;\n@l0 cp.async.bulk.shared::cluster.global.mbarrier::"
            "complete_tx::bytes [tile+%u], [line], 32, [bars+%u];\n",
            32 * a->a, 32 * a->b, 8 * a->c);
        break;
    case DO_COPY_OUT:
        say(t,
            "add.u64 line, out, %u;\n@l0 cp.async.bulk.global.shared::cta.bulk_group [line], "
            "[tile+%u], 32;\n",
            512 + 32 * a->b, 32 * a->a);
        break;
    case DO_FENCE_ASYNC: say(t, "fence.proxy.async;\n"); break;
    case DO_COMMIT: say(t, "@l0 cp.async.bulk.commit_group;\n"); break;
    case DO_WAIT_GROUP: say(t, "@l0 cp.async.bulk.wait_group %u;\n", a->a); break;
    case DO_WAIT_READ: say(t, "@l0 cp.async.bulk.wait_group.read %u;\n", a->a); break;
    case DO_CP_ASYNC:
        say(t, "add.u64 line, in, %u;\n@l0 cp.async.cg.shared.global [tile+%u], [line], 16;\n",
            32 * a->a, 32 * a->b + 16);
        break;
    case DO_CP_COMMIT: say(t, "@l0 cp.async.commit_group;\n"); break;
    case DO_CP_WAIT: say(t, "@l0 cp.async.wait_group %u;\n", a->a); break;
    default: break;
    }
}

static void write_barrier(struct text *t, const struct act *a)
{
    switch ((enum kind)a->kind) {
    case DO_SYNC: say(t, "bar.sync 0;\n"); break;
    case DO_NAMED_SYNC: say(t, "bar.sync %u, %u;\n", a->a, a->b); break;
    case DO_NAMED_ARRIVE: say(t, "bar.arrive %u, %u;\n", a->a, a->b); break;
    case DO_CLUSTER_SYNC:
        say(t, "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n");
        break;
    case DO_CLUSTER_ARRIVE: say(t, "barrier.cluster.arrive.aligned;\n"); break;
    case DO_CLUSTER_WAIT: say(t, "barrier.cluster.wait.aligned;\n"); break;
    case DO_MEET: say(t, "bar.sync 1, %u;\n", 32 * LANES); break;
    case DO_EXIT: say(t, "bra.uni done;\n"); break;
    default: break;
    }
}

static void write_head(struct text *t, const struct plan *p)
{
    say(t,
        ".version 8.3\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n"
        ".shared .align 128 .b8 tile[128];\n.shared .align 8 .b64 bars[4];\n"
        ".shared .align 4 .b32 words[8];\n.reg .pred l0, l16, low, q, first;\n"
        ".reg .b32 tid, warp, lane, rank, peer, at, v, sum, who;\n"
        ".reg .b64 in, out, line, mine;\n"
        "ld.param.u64 in, [p_in];\nld.param.u64 out, [p_out];\nmov.u32 tid, %%tid.x;\n"
        "shr.u32 warp, tid, 5;\nand.b32 lane, tid, 31;\nmov.u32 rank, %%cluster_ctarank;\n"
        "xor.b32 peer, rank, 1;\nsetp.eq.u32 l0, lane, 0;\nsetp.eq.u32 l16, lane, 16;\n"
        "setp.lt.u32 low, lane, 16;\nsetp.eq.u32 first, tid, 0;\nmov.b32 sum, 7;\nmov.b32 v, 0;\n"
        "mad.lo.u32 who, rank, %u, warp;\nmul.wide.u32 mine, who, 4;\nadd.u64 mine, mine, out;\n",
        p->warps);
    say(t, "setp.ne.u32 q, warp, 0;\n@q bra ready;\n");
    for (uint32_t i = 0; i < BARS; i++) {
        for (uint32_t c = 0; c < p->ctas; c++) {
            const uint32_t count = p->bar_count[c][i] ? p->bar_count[c][i] : 1;
            if (c)
                say(t, "setp.eq.u32 q, rank, 1;\n@q mov.u32 at, %u;\n", count);
            else
                say(t, "mov.u32 at, %u;\n", count);
        }
        say(t, "@first mbarrier.init.shared.b64 [bars+%u], at;\n", 8 * i);
    }
    say(t,
        "shl.b32 at, lane, 2;\nmov.u32 v, tile;\nadd.u32 at, at, v;\nst.shared.u32 [at], tid;\n"
        "sub.u32 at, at, v;\nmov.u32 v, words;\nadd.u32 at, at, v;\nsetp.lt.u32 q, lane, 8;\n"
        "@q st.shared.u32 [at], tid;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async;\n"
        "ready:\n%s",
        p->ctas > 1 ? "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
                    : "bar.sync 0;\n");
}

static void write_act(struct text *t, const struct act *a, uint32_t value)
{
    write_memory(t, a, value);
    write_mbarrier(t, a, value);
    write_copy(t, a);
    write_barrier(t, a);
}

static uint32_t value_of(uint32_t w, uint32_t i)
{
    return 2 * (w * PLAN + i) + 100;
}

static void write_kernel(struct random_kernel *k, const struct plan *p)
{
    struct text t = {.at = k->text, .end = k->text + sizeof k->text};
    write_head(&t, p);
    for (uint32_t w = 0; w < total(p); w++) {
        say(&t, "setp.ne.u32 q, who, %u;\n@q bra next%u;\n", w, w);
        for (uint32_t i = 0; i < p->count[w]; i++) {
            write_act(&t, &p->act[w][i], value_of(w, i));
        }
        say(&t, "bra.uni done;\nnext%u:\n", w);
    }
    say(&t, "done:\n@l0 st.global.u32 [mine], sum;\nret;\n}\n");
}

void random_kernel(struct random_kernel *k, struct rng *r)
{
    struct plan p = {.r = r};
    uint32_t phrases;
    p.ctas = rng_below(r, 5) ? 1 : 2;
    p.warps = p.ctas > 1 ? 1 + draw(&p, 2) : 2 + draw(&p, 3);
    phrases = 1 + draw(&p, 6);
    for (uint32_t i = 0; i < phrases; i++) {
        switch (draw(&p, 14)) {
        case 0:
        case 1: say_sync(&p); break;
        case 2:
        case 3: say_named(&p); break;
        case 4:
        case 5: say_message(&p); break;
        case 6: say_copy(&p); break;
        case 7: say_copy_out(&p); break;
        case 8: say_cp_async(&p); break;
        case 9: say_remote(&p); break;
        case 10: say_odd(&p); break;
        default: say_use(&p, draw(&p, total(&p))); break;
        }
    }
    k->damages = draw(&p, 2) ? draw(&p, 3) : 0;
    for (uint32_t i = 0; i < k->damages; i++) damage(&p);
    k->warps = p.warps;
    k->ctas = p.ctas;
    write_kernel(k, &p);
}

/* ---- lanes ---- */

static void say_meet(struct plan *p, bool all)
{
    const uint32_t actors = all ? total(p) : LANES;
    for (uint32_t w = 0; w < actors; w++)
        if (!fits(p, w, 1)) return;
    for (uint32_t w = 0; w < actors; w++) put(p, w, all ? DO_SYNC : DO_MEET, 0, 0, 0);
}

/* A word or a tile goes from actor to actor, mostly with a meeting between. */
static void say_give(struct plan *p)
{
    static const uint8_t kinds[][2] = {
        {DO_STORE, DO_LOAD},           {DO_LOAD, DO_STORE},
        {DO_STORE, DO_STORE},          {DO_STORE_GLOBAL, DO_LOAD_GLOBAL},
        {DO_STORE_TILE, DO_LOAD_TILE}, {DO_LOAD_TILE, DO_CP_ASYNC},
        {DO_STORE_TILE, DO_CP_ASYNC}};
    const uint32_t n = draw(p, sizeof kinds / sizeof kinds[0]), word = draw(p, 2);
    uint32_t from, to;
    if (!pair(p, &from, &to, 2)) return;
    put(p, from, kinds[n][0], word, 0, 0);
    if (draw(p, 8)) say_meet(p, from >= LANES || to >= LANES);
    put(p, to, kinds[n][1], word, word, 0);
    if (kinds[n][1] == DO_CP_ASYNC) put(p, to, DO_CP_COMMIT, 0, 0, 0);
}

/* Lane and lane hand a copy on: who waits for it, tells the others or does not. */
static void say_heard(struct plan *p)
{
    const uint32_t before = p->count[0];
    uint32_t from = draw(p, LANES), to = draw(p, LANES), tile = draw(p, 2);
    if (!fits(p, from, 5) || !fits(p, to, 3)) return;
    if (draw(p, 2)) {
        say_copy(p);
        if (p->count[0] == before) return;
    } else {
        put(p, from, DO_CP_ASYNC, draw(p, 2), tile, 0);
        put(p, from, DO_CP_COMMIT, 0, 0, 0);
        if (!draw(p, 4)) say_meet(p, false);
        put(p, from, DO_CP_WAIT, 0, 0, 0);
    }
    if (draw(p, 4)) say_meet(p, false);
    put(p, to, draw(p, 3) ? DO_LOAD_TILE : DO_STORE_TILE, tile, 0, 0);
}

static void say_init(struct plan *p)
{
    const uint32_t maker = draw(p, LANES), user = draw(p, LANES), waits = draw(p, total(p));
    if (p->used[0][LATE_BAR - 1] || !fits(p, maker, 3) || !fits(p, user, 3)) return;
    if (!fits(p, waits, 3)) return;
    p->used[0][LATE_BAR - 1] = true; /* the last of the usual ones stays unused then */
    put(p, maker, DO_INIT, LATE_BAR, 0, 0);
    if (draw(p, 3)) say_meet(p, draw(p, 2));
    put(p, user, DO_ARRIVE, LATE_BAR, 0, 0);
    put(p, waits, DO_WAIT, LATE_BAR, 0, 0);
}

static void damage_lanes(struct plan *p)
{
    const uint32_t w = draw(p, total(p)), n = p->count[w];
    struct act *a;
    if (!n) return;
    a = &p->act[w][draw(p, n)];
    if (a->kind == DO_MEET || a->kind == DO_SYNC) return;
    switch (draw(p, 3)) {
    case 0: a->kind = DO_NOTHING; break;
    case 1:
        if (a->kind == DO_WAIT) a->b ^= 1;
        break;
    default: a->a = draw(p, 2); break;
    }
}

/* What one lane of several does: the text for a warp, with the lane's guard. */
static void write_lane(struct text *t, const struct act *a, uint32_t w, uint32_t value)
{
    char part[1024], *at = part;
    struct text alone = {.at = part, .end = part + sizeof part};
    *part = '\0';
    if (a->kind == DO_WAIT) {
        say(t,
            "setp.ne.u32 q, lane, %u;\nwait%u:\n@a%u mbarrier.try_wait.parity.shared.b64 q, "
            "[bars+%u], %u;\n@!q bra wait%u;\n",
            w, value, w, 8 * a->a, a->b, value);
        return;
    }
    write_act(&alone, a, value);
    for (char *guard; (guard = strstr(at, "@l0")); at = guard + 3)
        say(t, "%.*s@a%u", (int)(guard - at), at, w);
    say(t, "%s", at);
}

/* The lanes go from meeting to meeting; between two, they take turns. */
static void write_lanes(struct random_kernel *k, const struct plan *p)
{
    struct text t = {.at = k->text, .end = k->text + sizeof k->text};
    uint32_t next[LANES] = {0};
    bool more = true;
    write_head(&t, p);
    say(&t, ".reg .pred a0, a1, a2;\nsetp.eq.u32 a0, lane, 0;\nsetp.eq.u32 a1, lane, 1;\n"
            "setp.eq.u32 a2, lane, 2;\nsetp.ne.u32 q, warp, 0;\n@q bra other;\n"
            "mul.wide.u32 mine, lane, 4;\nadd.u64 mine, mine, out;\n");
    while (more) {
        const struct act *meeting = NULL;
        more = false;
        for (uint32_t w = 0; w < LANES; w++) {
            const struct act *a = &p->act[w][next[w]];
            if (next[w] == p->count[w]) continue;
            if (a->kind == DO_MEET || a->kind == DO_SYNC) {
                meeting = a;
                continue;
            }
            write_lane(&t, a, w, value_of(w, next[w]++));
            more = true;
        }
        if (more || !meeting) continue;
        for (uint32_t w = 0; w < LANES; w++) next[w]++;
        say(&t, meeting->kind == DO_SYNC ? "bar.sync 0;\n" : "bar.warp.sync 0xffffffff;\n");
        more = true;
    }
    say(&t, "setp.lt.u32 l0, lane, %u;\nbra.uni done;\nother:\nadd.u64 mine, out, %u;\n", LANES,
        4 * LANES);
    for (uint32_t i = 0; i < p->count[LANES]; i++)
        write_act(&t, &p->act[LANES][i], value_of(LANES, i));
    say(&t, "done:\n@l0 st.global.u32 [mine], sum;\nret;\n}\n");
}

void random_lanes(struct random_kernel *together, struct random_kernel *apart, struct rng *r)
{
    struct plan p = {.r = r, .ctas = 1, .warps = LANES + 1};
    const uint32_t phrases = 1 + draw(&p, 5);
    for (uint32_t i = 0; i < phrases; i++) {
        switch (draw(&p, 10)) {
        case 0: say_meet(&p, draw(&p, 2)); break;
        case 1:
        case 2: say_message(&p); break;
        case 3: say_copy(&p); break;
        case 4: say_copy_out(&p); break;
        case 5: say_cp_async(&p); break;
        case 6: say_init(&p); break;
        case 7: say_heard(&p); break;
        default: say_give(&p); break;
        }
    }
    apart->damages = draw(&p, 2) ? draw(&p, 3) : 0;
    for (uint32_t i = 0; i < apart->damages; i++) damage_lanes(&p);
    together->damages = apart->damages;
    together->ctas = apart->ctas = 1;
    apart->warps = LANES + 1;
    write_kernel(apart, &p);
    together->warps = 2;
    write_lanes(together, &p);
}
