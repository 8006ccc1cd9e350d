/*
 * The explorer, on kernels whose orders can be counted by hand; and the attack on `proved`: small random kernels
 * (explore_random.h), each judged by the checker from one run, and by the explorer, which runs every order and looks at
 * what comes out. A kernel that is `proved` clean and has an order that hangs, fails or leaves other results refutes
 * the proof.
 *
 *   build/tests/explore --random 100000 --seed 1     # many of them; the counts come last
 *   build/tests/explore --seed 1 --case 77 --verbose # one of them, with its text
 */
#include "explore/schedule.h"
#include "explore_random.h"
#include "sim/sim_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 1000, MEMORY = 1024 /* bytes */, ORDERS = 3000, SEEDS = 64 };

static uint32_t *memory; /* what goes in, then what comes out */
static const char *const ends[] = {
#define X(name, text) text,
    EXPLORE_ENDS(X)
#undef X
};

static void reset(void)
{
    for (uint32_t i = 0; i < MEMORY / 2; i++) memory[i] = i < MEMORY / 4 ? 1000 + i : 0;
}

static int run(struct run *r, const char *text)
{
    const uint64_t in = (uint64_t)(uintptr_t)memory;
    const uint64_t params[2] = {in, in + MEMORY};
    reset();
    r->memory = (struct mem_piece){memory, 2 * (size_t)MEMORY};
    r->limits.orders = ORDERS;
    return run_kernel(r, text, params, sizeof params);
}

/* ---- kernels whose orders are known ---- */

/* Lane 0 of each warp runs its own part; `bar` expects one arrival a phase. */
static const struct known {
    const char *name;
    uint32_t warps;
    uint64_t orders; /* 0: not counted here, or it ends at the first bad one */
    enum explore_end end;
    const char *warp[3];
} known[] = {
    {"words of their own",
     2,
     1,
     EXPLORE_FINE,
     {"st.global.u32 [out], 1;\n", "st.global.u32 [out+4], 2;\n"}},
    {"one word, two values",
     2,
     0,
     EXPLORE_DIFFERS,
     {"st.global.u32 [out], 1;\n", "st.global.u32 [out], 2;\n"}},
    {"one word, one value",
     2,
     2,
     EXPLORE_FINE,
     {"st.global.u32 [out], 1;\n", "st.global.u32 [out], 1;\n"}},
    {"sums of two",
     2,
     2,
     EXPLORE_FINE,
     {"red.global.add.u32 [out], 1;\n", "red.global.add.u32 [out], 2;\n"}},
    {"sums of three",
     3,
     6,
     EXPLORE_FINE,
     {"red.global.add.u32 [out], 1;\n", "red.global.add.u32 [out], 2;\n",
      "red.global.add.u32 [out], 4;\n"}},
    {"two pairs of places, one order would be a circle",
     2,
     3,
     EXPLORE_FINE,
     {"red.global.add.u32 [out], 1;\nred.global.add.u32 [out+4], 1;\n",
      "red.global.add.u32 [out+4], 1;\nred.global.add.u32 [out], 1;\n"}},
    {"what an atomic brings is kept",
     2,
     0,
     EXPLORE_DIFFERS,
     {"atom.global.add.u32 v, [out], 1;\nst.global.u32 [out+4], v;\n",
      "red.global.add.u32 [out], 2;\n"}},
    {"arrivals of one phase",
     3,
     1,
     EXPLORE_FINE,
     {"mbarrier.arrive.shared.b64 _, [both];\n", "mbarrier.arrive.shared.b64 _, [both];\n", ""}},
    {"a wait that is right",
     2,
     0,
     EXPLORE_FINE,
     {"st.shared.u32 [word], 5;\nmbarrier.arrive.shared.b64 _, [bar];\n",
      "WAIT(0)ld.shared.u32 v, [word];\nst.global.u32 [out], v;\n"}},
    {"a wait for the phase before",
     2,
     0,
     EXPLORE_DIFFERS,
     {"st.shared.u32 [word], 5;\nmbarrier.arrive.shared.b64 _, [bar];\n",
      "WAIT(1)ld.shared.u32 v, [word];\nst.global.u32 [out], v;\n"}},
    {"a wait that nobody ends", 2, 0, EXPLORE_HANG, {"", "WAIT(0)"}},
    {"a wait that may be overtaken",
     2,
     0,
     EXPLORE_HANG,
     {"mbarrier.arrive.shared.b64 _, [bar];\nmbarrier.arrive.shared.b64 _, [bar];\n", "WAIT(0)"}},
    {"an arrival too many in one order",
     3,
     0,
     EXPLORE_FAULT,
     {"mbarrier.arrive.shared.b64 _, [both];\n", "mbarrier.arrive.shared.b64 _, [both], 2;\n",
      "mbarrier.arrive.shared.b64 _, [both];\n"}},
    {"another way after False",
     2,
     0,
     EXPLORE_DIFFERS,
     {"mbarrier.arrive.shared.b64 _, [bar];\n",
      "mbarrier.test_wait.parity.shared.b64 q, [bar], 0;\n@q st.global.u32 [out], 1;\n"}},
    {"a bulk copy that is waited for",
     2,
     0,
     EXPLORE_FINE,
     {"mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [in], 16, "
      "[bar];\n",
      "WAIT(0)ld.shared.u32 v, [tile];\nst.global.u32 [out], v;\n"}},
    {"a bulk copy that is not waited for",
     1,
     0,
     EXPLORE_DIFFERS,
     {"mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [in], 16, [bar];\n"
      "ld.shared.u32 v, [tile];\nst.global.u32 [out], v;\n"}},
    {"two bulk stores to one place",
     1,
     0,
     EXPLORE_DIFFERS,
     {"st.shared.u32 [tile], 7;\n"
      "cp.async.bulk.global.shared::cta.bulk_group [out], [tile], 16;\n"
      "cp.async.bulk.global.shared::cta.bulk_group [out], [tile+16], 16;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"}},
};

/* WAIT(p): until the phase of parity p of bar is over. */
static void put_part(char **at, const char *part, uint32_t warp)
{
    const char *wait = strstr(part, "WAIT(");
    if (!wait) {
        *at += sprintf(*at, "%s", part);
        return;
    }
    *at += sprintf(*at,
                   "%.*sagain%u:\nmbarrier.try_wait.parity.shared.b64 q, [bar], %c;\n"
                   "@!q bra again%u;\n%s",
                   (int)(wait - part), part, warp, wait[5], warp, wait + 7);
}

static char *known_text(const struct known *k)
{
    char *text = malloc(1 << 13), *at = text;
    if (!text) abort();
    at += sprintf(at, ".version 8.3\n.target sm_90a\n.address_size 64\n"
                      ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n"
                      ".shared .align 128 .b8 tile[128];\n.shared .align 8 .b64 bar;\n"
                      ".shared .align 8 .b64 both;\n.shared .align 4 .b32 word;\n"
                      ".reg .pred q;\n.reg .b32 t, w, v;\n.reg .b64 in, out;\n"
                      "ld.param.u64 in, [p_in];\nld.param.u64 out, [p_out];\nmov.u32 t, %%tid.x;\n"
                      "shr.u32 w, t, 5;\nsetp.ne.u32 q, t, 0;\n@q bra ready;\n"
                      "mbarrier.init.shared.b64 [bar], 1;\nmbarrier.init.shared.b64 [both], 2;\n"
                      "st.shared.u32 [word], 0;\nst.shared.u32 [tile], 0;\n"
                      "st.shared.u32 [tile+16], 0;\nready:\nbar.sync 0;\nand.b32 t, t, 31;\n"
                      "setp.ne.u32 q, t, 0;\n@q bra done;\n");
    for (uint32_t i = 0; i < k->warps; i++) {
        at += sprintf(at, "setp.ne.u32 q, w, %u;\n@q bra next%u;\n", i, i);
        put_part(&at, k->warp[i], i);
        at += sprintf(at, "next%u:\n", i);
    }
    (void)sprintf(at, "done:\nret;\n}\n");
    return text;
}

/* The seed of which the explorer says that it comes to the same: it hangs as well, or leaves other values than some seed. */
static void run_again(const char *text, uint32_t warps, const struct exploration *x)
{
    struct run r = {.block = 32 * warps, .seed = x->seed};
    uint32_t *was = malloc(2 * (size_t)MEMORY);
    bool differs = false;
    CHECK(x->seed, "no seed up to %d comes to the same", EXPLORE_SEEDS);
    const int result = run(&r, text);
    if (x->end == EXPLORE_HANG) CHECK_INT(result, x->result);
    if (was) memcpy(was, memory, 2 * (size_t)MEMORY);
    for (r.seed = 1; was && x->end == EXPLORE_DIFFERS && r.seed <= SEEDS && !differs; r.seed++) {
        run(&r, text);
        differs = memcmp(was, memory, 2 * (size_t)MEMORY) != 0;
    }
    CHECK(x->end != EXPLORE_DIFFERS || differs, "seed %u leaves what all others leave",
          (unsigned)x->seed);
    free(was);
}

/* The schedule of which the explorer says that it is a bad order: it comes to the same again, with the checker beside it. */
static void run_schedule(const char *text, struct run *r, const struct exploration *x)
{
    uint32_t *usual = malloc(2 * (size_t)MEMORY);
    int result;
    r->exploration = NULL;
    r->replay = "";
    (void)run(r, text);
    CHECK(!r->strayed, "the usual order strays");
    if (usual) memcpy(usual, memory, 2 * (size_t)MEMORY);
    r->replay = x->schedule;
    result = run(r, text);
    CHECK(!r->strayed, "'%s' strays", x->schedule);
    if (x->end == EXPLORE_ERROR)
        CHECK(strstr(r->findings, "\"severity\":\"error\""), "'%s' has no error", x->schedule);
    else
        CHECK_INT(result, x->result);
    if (usual && x->end == EXPLORE_DIFFERS)
        CHECK(memcmp(usual, memory, 2 * (size_t)MEMORY) != 0, "'%s' leaves what '' leaves",
              x->schedule);
    if (x->end == EXPLORE_DIFFERS) CHECK_INT(*(const uint32_t *)(uintptr_t)x->differs_at, x->other);
    free(usual);
}

static void run_known(const struct known *k)
{
    struct exploration x = {0};
    struct run r = {.block = 32 * k->warps, .exploration = &x};
    char *text;
    if (!test_case("orders: %s", k->name)) return;
    text = known_text(k);
    CHECK(run(&r, text) >= 0, "not valid:\n%s", text);
    CHECK(x.end == k->end, "an order %s, and should be one that %s: %s %s", ends[x.end],
          ends[k->end], x.schedule, x.finding.message);
    CHECK(x.all == (k->end == EXPLORE_FINE), "all orders were%s tried", x.all ? "" : " not");
    if (k->orders) CHECK_INT(x.orders, k->orders);
    if (x.end != EXPLORE_FINE) {
        run_again(text, k->warps, &x);
        run_schedule(text, &r, &x);
    }
    free(text);
}

/* ---- words ---- */

static void run_words(void)
{
    static const char *const good[] = {"", "w0", "w0x3,w32,w0.2", "w31.12x4,w1023"},
                             *const bad[] = {"w",     "0",      "w0,", ",w0",
                                             "w0x0",  "w0.0",   "w0x", "w1234567890",
                                             "w0 w1", "w0x2x3", "w-1"};
    char word[64], why[96];
    struct schedule s;
    if (!test_case("schedules as words")) return;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK(schedule_read(&s, good[i], why, sizeof why), "'%s' is not read: %s", good[i], why);
        CHECK(schedule_write(&s, UINT32_MAX, word, sizeof word), "'%s' does not fit", good[i]);
        CHECK(!strcmp(word, good[i]), "'%s' comes back as '%s'", good[i], word);
        schedule_free(&s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!schedule_read(&s, bad[i], why, sizeof why), "'%s' is read", bad[i]);
    CHECK(schedule_read(&s, "w0x3,w1x2", why, sizeof why), "%s", why);
    CHECK(schedule_write(&s, 4, word, sizeof word) && !strcmp(word, "w0x3,w1"), "%s", word);
    CHECK(!schedule_write(&s, 5, word, 4), "'%s' fits into 4 bytes", word);
    schedule_free(&s);
}

/* ---- random kernels ---- */

static struct counts {
    unsigned kernels, fine, bad, partly, proved, proved_fine, errors, error_fine, unsound;
    uint64_t orders;
} counts;

static bool says(const struct run *r, const char *what)
{
    return strstr(r->findings, what) != NULL;
}

static void count(const struct exploration *x, bool proved, bool error)
{
    struct counts *c = &counts;
    const bool bad = x->end != EXPLORE_FINE, fine = !bad && x->all;
    c->kernels++;
    c->orders += x->orders + x->cut;
    c->bad += bad;
    c->fine += fine;
    c->partly += !bad && !fine;
    c->proved += proved && !error;
    c->proved_fine += fine && proved && !error;
    c->errors += error;
    c->error_fine += fine && error;
    c->unsound += bad && proved && !error;
}

static void tell(const struct exploration *x, const struct random_kernel *k, const struct run *r)
{
    printf("%s\n%s%llu orders, %llu given up, %s; one %s\n%s\n%s\n", k->text, r->findings,
           (unsigned long long)x->orders, (unsigned long long)x->cut, x->all ? "all" : "not all",
           ends[x->end], x->schedule, x->finding.message);
}

static void attack(const struct random_kernel *k, uint64_t number)
{
    struct exploration x = {0};
    struct run r = {.grid = k->ctas,
                    .block = 32 * k->warps,
                    .cluster = k->ctas,
                    .seed = number % SEEDS,
                    .exploration = &x};
    bool proved, error;
    if (run(&r, k->text) < 0) {
        CHECK(false, "the kernel is not valid:\n%s", k->text);
        return;
    }
    proved = says(&r, "\"basis\":\"proved\"");
    error = says(&r, "\"verdict\":\"error\"");
    CHECK(!x.broken, "the explorer gave up");
    CHECK(x.end == EXPLORE_FINE || !proved || error, "proved, but an order %s:\n  %s\n  %s\n%s",
          ends[x.end], x.schedule, x.finding.message, k->text);
    count(&x, proved, error);
    if (test_verbose()) tell(&x, k, &r);
    if (x.end != EXPLORE_FINE) run_schedule(k->text, &r, &x);
}

static const struct random_kernel *draw(uint64_t seed, uint64_t number)
{
    static struct random_kernel k;
    struct rng r = {.state = seed * 0x9E3779B97F4A7C15ULL + number};
    random_kernel(&k, &r);
    return &k;
}

/* Random kernels that once showed a fault of the explorer. `sum` is of the text (FNV-1a): a change of what is drawn
 * makes another kernel of the number, and one that shows the fault again must be looked for. */
static const struct remembered {
    uint64_t seed, number, sum;
    const char *why;
} remembered[] = {
    {880005, 21563, 0x16FAB21D6FB26041, "a shorter schedule leaves a third value"},
};

static void attack_remembered(const struct remembered *m)
{
    const struct random_kernel *k = draw(m->seed, m->number);
    uint64_t sum = 0xCBF29CE484222325;
    for (const char *c = k->text; *c; c++) sum = (sum ^ (unsigned char)*c) * 0x100000001B3;
    CHECK(sum == m->sum, "the kernel of this number is another one: 0x%llX",
          (unsigned long long)sum);
    attack(k, m->number);
}

/* Lanes of one warp, judged; each as a warp of its own, explored. */
static void attack_lanes(uint64_t seed, uint64_t number)
{
    static struct random_kernel together, apart;
    struct rng r = {.state = seed * 0x9E3779B97F4A7C15ULL + number};
    struct exploration x = {0};
    struct run as_lanes = {.grid = 1, .seed = number % SEEDS};
    struct run as_warps = {.grid = 1, .seed = number % SEEDS, .exploration = &x};
    bool proved, error;
    random_lanes(&together, &apart, &r);
    as_lanes.block = 32 * together.warps;
    as_warps.block = 32 * apart.warps;
    if (run(&as_lanes, together.text) < 0 || run(&as_warps, apart.text) < 0) {
        CHECK(false, "the kernel is not valid:\n%s\n%s", together.text, apart.text);
        return;
    }
    proved = says(&as_lanes, "\"basis\":\"proved\"");
    error = says(&as_lanes, "\"verdict\":\"error\"");
    CHECK(!x.broken, "the explorer gave up");
    CHECK(x.end == EXPLORE_FINE || !proved || error,
          "proved for lanes, but an order of theirs %s:\n  %s\n  %s\n%s\nand as warps:\n%s",
          ends[x.end], x.schedule, x.finding.message, together.text, apart.text);
    count(&x, proved, error);
    if (test_verbose()) tell(&x, &together, &as_lanes);
}

static void tell_counts(const char *what)
{
    printf("explore: %u %s, %llu orders: %u have a bad order, %u have none, %u were not explored "
           "whole\nexplore: proved clean: %u, %u of those without a bad order; errors: %u, %u of "
           "those without a bad order; proved clean with a bad order: %u\n",
           counts.kernels, what, (unsigned long long)counts.orders, counts.bad, counts.fine,
           counts.partly, counts.proved, counts.proved_fine, counts.errors, counts.error_fine,
           counts.unsound);
    memset(&counts, 0, sizeof counts);
}

static void attack_all(uint64_t kernels)
{
    for (uint64_t i = 0; i < kernels; i++)
        if (test_case("random kernel %llu", (unsigned long long)i)) attack(draw(test_seed(), i), i);
    if (!test_filtered() && test_case("the share of what could be proved"))
        CHECK(counts.proved_fine * 10 >= counts.fine * 6, "%u of %u kernels without a bad order",
              counts.proved_fine, counts.fine);
    tell_counts("kernels");
    for (uint64_t i = 0; i < kernels / 2; i++)
        if (test_case("random lanes %llu", (unsigned long long)i)) attack_lanes(test_seed(), i);
    tell_counts("kernels of lanes");
}

/* --random N: taken out of the arguments. */
static uint64_t take_random(int *argc, char **argv)
{
    for (int i = 1; i + 1 < *argc; i++) {
        if (strcmp(argv[i], "--random") != 0) continue;
        const uint64_t n = strtoull(argv[i + 1], NULL, 10);
        memmove(&argv[i], &argv[i + 2], (size_t)(*argc - i - 1) * sizeof *argv);
        *argc -= 2;
        return n;
    }
    return KERNELS;
}

int main(int argc, char **argv)
{
    const uint64_t kernels = take_random(&argc, argv);
    test_begin("explore", argc, argv);
    memory = run_alloc(2 * MEMORY);
    if (!memory || !run_begin()) return 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) run_known(&known[i]);
    run_words();
    for (size_t i = 0; i < sizeof remembered / sizeof *remembered; i++)
        if (test_case("remembered: %s", remembered[i].why)) attack_remembered(&remembered[i]);
    attack_all(kernels);
    run_end();
    run_free(memory);
    return test_end();
}
