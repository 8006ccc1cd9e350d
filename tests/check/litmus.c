/*
 * Litmus tests of the PTX memory consistency model, as the race detector judges them: each thread is a CTA of
 * its own, and a plain access of `x` stands where the model is asked whether something is ordered. RACE: the
 * accesses of x are not ordered in every execution; ORDERED: they are, or never both happen. Under every seed
 * the verdict must be the same. None may be called proved: each reads what others write meanwhile.
 *
 * The shapes are the usual ones: MP message passing, SB store buffering, LB load buffering, WRC write to read
 * causality, ISA2 its longer form, IRIW independent reads of independent writes. Expectations are derived
 * from PTX ISA "Memory Consistency Model": "Release and acquire patterns", "Observation order", "Causality order".
 */
#include "lib/harness.h"

#include "sim/sim_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 12, THREADS = 4, BUFFER = 1 << 12 };

/* CHANCE: an execution may have order that the program does not rest on, so some seed finds the race. */
enum verdict { ORDERED, RACE, CHANCE };

struct litmus {
    const char *name;
    enum verdict verdict;
    uint32_t cluster; /* CTAs; 0: none */
    const char *thread[THREADS];
};

/* x is data, f, g and h flags, each in a line of its own. */
#define ST(how, at, value)  "st" how ".global.u32 [" at "], " value ";\n"
#define LD(how, at)         "ld" how ".global.u32 r, [" at "];\n"
#define RED(how, at, value) "red" how ".global.add.u32 [" at "], " value ";\n"
/* Loads until the value is there. */
#define POLL(how, at, value)                                                                     \
    "{\n.reg .pred p;\nagain: ld" how ".global.u32 r, [" at "];\nsetp.ne.u32 p, r, " value ";\n" \
    "@p bra again;\n}\n"
#define WRITE_X ST("", "x", "1")
#define READ_X  LD("", "x")
#define FENCE   "fence.acq_rel.gpu;\n"
#define MP(give, take)            \
    {                             \
        WRITE_X give, take READ_X \
    }
#define RELEASE_F ST(".release.gpu", "f", "1")
#define ACQUIRE_F POLL(".acquire.gpu", "f", "1")

static const struct litmus litmus[] = {
    /* ---- message passing: what hands over, and what takes ---- */
    {"MP, release and acquire", ORDERED, 0, MP(RELEASE_F, ACQUIRE_F)},
    {"MP, relaxed", RACE, 0, MP(ST(".relaxed.gpu", "f", "1"), POLL(".relaxed.gpu", "f", "1"))},
    {"MP, volatile", RACE, 0, MP(ST(".volatile", "f", "1"), POLL(".volatile", "f", "1"))},
    {"MP, an acquire that nobody looks at", RACE, 0, MP(RELEASE_F, LD(".acquire.gpu", "f"))},
    {"MP, an atomic that acquires and nobody looks at", RACE, 0,
     MP(RELEASE_F, "atom.acquire.gpu.global.or.b32 r, [f], 0;\n")},
    {"MP, data volatile, no flag",
     RACE,
     0,
     {ST(".volatile", "x", "1"), LD(".volatile", "x") ST("", "x+512", "r")}},
    {"MP, data volatile behind a flag",
     ORDERED,
     0,
     {ST(".volatile", "x", "1") FENCE ST(".volatile", "f", "1"),
      POLL(".volatile", "f", "1") LD(".volatile", "x")}},
    {"MP, x is added to by both, read by one",
     RACE,
     0,
     {RED(".relaxed.gpu", "x", "1"), RED(".relaxed.gpu", "x", "1") READ_X}},
    {"MP, fences", ORDERED, 0,
     MP(FENCE ST(".relaxed.gpu", "f", "1"), POLL(".relaxed.gpu", "f", "1") FENCE)},
    {"MP, membar and volatile", ORDERED, 0,
     MP("membar.gl;\n" ST(".volatile", "f", "1"), POLL(".volatile", "f", "1") "membar.gl;\n")},
    {"MP, fence.sc", ORDERED, 0,
     MP("fence.sc.gpu;\n" ST(".relaxed.gpu", "f", "1"),
        POLL(".relaxed.gpu", "f", "1") "fence.sc.gpu;\n")},
    {"MP, fence behind the flag", RACE, 0, MP(ST(".relaxed.gpu", "f", "1") FENCE, ACQUIRE_F)},
    {"MP, fence ahead of the poll", RACE, 0, MP(RELEASE_F, FENCE POLL(".relaxed.gpu", "f", "1"))},
    {"MP, no acquire", RACE, 0, MP(RELEASE_F, POLL(".relaxed.gpu", "f", "1"))},
    {"MP, no release", RACE, 0, MP(ST(".relaxed.gpu", "f", "1"), ACQUIRE_F)},
    {"MP, weak flag behind a fence", RACE, 0, MP(FENCE ST(".weak", "f", "1"), ACQUIRE_F)},
    {"MP, reduction that releases", ORDERED, 0, MP(RED(".release.gpu", "f", "1"), ACQUIRE_F)},
    {"MP, reduction behind a fence", ORDERED, 0, MP(FENCE RED("", "f", "1"), ACQUIRE_F)},
    {"MP, relaxed reduction", RACE, 0, MP(RED(".relaxed.gpu", "f", "1"), ACQUIRE_F)},
    {"MP, a store behind the release", ORDERED, 0,
     MP(RELEASE_F ST(".relaxed.gpu", "f", "2"), POLL(".acquire.gpu", "f", "2"))},
    {"MP, the other flag",
     RACE,
     0,
     {WRITE_X RELEASE_F ST(".relaxed.gpu", "g", "1"), POLL(".acquire.gpu", "g", "1") READ_X}},
    {"MP, x itself is strong",
     ORDERED,
     0,
     {ST(".relaxed.gpu", "x", "1"), POLL(".relaxed.gpu", "x", "1") READ_X}},
    {"MP, x is strong and seen, then stored",
     ORDERED,
     0,
     {ST(".relaxed.gpu", "x", "1"), POLL(".relaxed.gpu", "x", "1") ST(".weak", "x", "2")}},

    /* ---- scopes ---- */
    {"MP, fence.cta", RACE, 0, MP("fence.acq_rel.cta;\n" ST(".relaxed.gpu", "f", "1"), ACQUIRE_F)},
    {"MP, release.cta", RACE, 0, MP(ST(".release.cta", "f", "1"), ACQUIRE_F)},
    {"MP, acquire.cta", RACE, 0, MP(RELEASE_F, POLL(".acquire.cta", "f", "1"))},
    {"MP, fence.cta behind the poll", RACE, 0,
     MP(RELEASE_F, POLL(".relaxed.gpu", "f", "1") "membar.cta;\n")},
    {"MP, cluster scope between clusters",
     RACE,
     2,
     {WRITE_X ST(".release.cluster", "f", "1"), "", POLL(".acquire.cluster", "f", "1") READ_X, ""}},
    {"MP, cluster scope within one",
     ORDERED,
     2,
     {WRITE_X ST(".release.cluster", "f", "1"), POLL(".acquire.cluster", "f", "1") READ_X}},
    {"MP, cta scope within a cluster",
     RACE,
     2,
     {WRITE_X ST(".release.cta", "f", "1"), POLL(".acquire.cluster", "f", "1") READ_X}},
    {"MP, sys scope", ORDERED, 0, MP(ST(".release.sys", "f", "1"), POLL(".acquire.sys", "f", "1"))},

    /* ---- observation order: atomics pass on what was released, stores of others do not ---- */
    {"MP, through an atomic of a third",
     ORDERED,
     0,
     {WRITE_X RELEASE_F, POLL(".relaxed.gpu", "f", "1") RED(".relaxed.gpu", "f", "1"),
      POLL(".acquire.gpu", "f", "2") READ_X}},
    {"MP, through a store of a third",
     CHANCE, /* the poll acquires what it sees on the way, the first release too */
     0,
     {WRITE_X RELEASE_F, POLL(".relaxed.gpu", "f", "1") ST(".relaxed.gpu", "f", "2"),
      POLL(".acquire.gpu", "f", "2") READ_X}},
    {"MP, two hand over by atomics",
     ORDERED,
     0,
     {WRITE_X RED(".release.gpu", "f", "1"), ST("", "x+4", "1") RED(".release.gpu", "f", "1"),
      POLL(".acquire.gpu", "f", "2") READ_X LD("", "x+4")}},
    {"MP, waits for one of two",
     RACE,
     0,
     {RED(".relaxed.gpu", "x", "1") RED(".release.gpu", "f", "1"),
      RED(".relaxed.gpu", "x", "1") RED(".release.gpu", "g", "1"), ACQUIRE_F READ_X}},

    /* ---- causality ---- */
    {"WRC",
     ORDERED,
     0,
     {ST(".relaxed.gpu", "x", "1"), POLL(".relaxed.gpu", "x", "1") RELEASE_F, ACQUIRE_F READ_X}},
    {"WRC, no release",
     RACE,
     0,
     {ST(".relaxed.gpu", "x", "1"), POLL(".relaxed.gpu", "x", "1") ST(".relaxed.gpu", "f", "1"),
      ACQUIRE_F READ_X}},
    {"ISA2",
     ORDERED,
     0,
     {WRITE_X RELEASE_F, ACQUIRE_F ST(".release.gpu", "g", "1"),
      POLL(".acquire.gpu", "g", "1") READ_X}},
    {"ISA2, relaxed in the middle",
     RACE,
     0,
     {WRITE_X RELEASE_F, POLL(".relaxed.gpu", "f", "1") ST(".release.gpu", "h", "1"),
      POLL(".acquire.gpu", "h", "1") LD("", "x+64") ST(".release.gpu", "g", "1"),
      POLL(".relaxed.gpu", "g", "1") READ_X}},
    {"ISA2, one fence in the middle does for both",
     ORDERED,
     0,
     {WRITE_X RELEASE_F, POLL(".relaxed.gpu", "f", "1") FENCE ST(".relaxed.gpu", "g", "1"),
      POLL(".acquire.gpu", "g", "1") READ_X}},
    {"ISA2, four threads",
     ORDERED,
     0,
     {WRITE_X RELEASE_F, ACQUIRE_F ST(".release.gpu", "g", "1"),
      POLL(".acquire.gpu", "g", "1") RED(".release.gpu", "h", "1"),
      POLL(".acquire.gpu", "h", "1") ST("", "x", "2")}},
    {"IRIW: both readers come to know both writes",
     ORDERED,
     0,
     {WRITE_X RELEASE_F, ST("", "x+4", "1") ST(".release.gpu", "g", "1"),
      ACQUIRE_F POLL(".acquire.gpu", "g", "1") READ_X LD("", "x+4"),
      POLL(".acquire.gpu", "g", "1") ACQUIRE_F READ_X LD("", "x+4")}},
    {"IRIW: a reader that knows one alone",
     RACE,
     0,
     {WRITE_X RELEASE_F, ST("", "x+4", "1") ST(".release.gpu", "g", "1"),
      ACQUIRE_F READ_X LD("", "x+4"), POLL(".acquire.gpu", "g", "1") LD("", "x+4")}},
    {"LB: each stores what the other has loaded before",
     ORDERED,
     0,
     {LD(".relaxed.gpu", "f") ST(".relaxed.gpu", "g", "1"),
      LD(".relaxed.gpu", "g") ST(".relaxed.gpu", "f", "1")}},
    {"LB: plain loads before relaxed flags",
     RACE,
     0,
     {READ_X ST(".relaxed.gpu", "f", "1"), POLL(".acquire.gpu", "f", "1") WRITE_X}},
    {"LB: plain loads before releases", ORDERED, 0, {READ_X RELEASE_F, ACQUIRE_F WRITE_X}},
    {"SB: strong all over",
     ORDERED,
     0,
     {ST(".relaxed.gpu", "f", "1") LD(".relaxed.gpu", "g"),
      ST(".relaxed.gpu", "g", "1") LD(".relaxed.gpu", "f")}},
    {"SB: plain", RACE, 0, {WRITE_X LD("", "x+64"), ST("", "x+64", "1") READ_X}},
};

/* ---- running ---- */

static void *memory;

static uint32_t thread_count(const struct litmus *l)
{
    uint32_t n = 0;
    while (n < THREADS && l->thread[n]) n++;
    return n;
}

/* A CTA a thread, of which lane 0 acts. */
static char *build(const struct litmus *l)
{
    const size_t room = 1 << 14;
    char *text = malloc(room), *at = text;
    if (!text) abort();
    at += snprintf(at, room,
                   ".version 8.8\n.target sm_90a\n.address_size 64\n"
                   ".visible .entry k(.param .u64 memory)\n{\n"
                   ".reg .pred q;\n.reg .b32 cta, lane, r;\n.reg .b64 x, f, g, h;\n"
                   "ld.param.u64 x, [memory];\nadd.u64 f, x, 1024;\nadd.u64 g, x, 2048;\n"
                   "add.u64 h, x, 3072;\nmov.u32 cta, %%ctaid.x;\nmov.u32 lane, %%tid.x;\n"
                   "setp.ne.u32 q, lane, 0;\n@q ret;\n");
    for (uint32_t i = 0; i < thread_count(l); i++)
        at += snprintf(at, room - (size_t)(at - text),
                       "setp.ne.u32 q, cta, %u;\n@q bra skip%u;\n%sret;\nskip%u:\n", i, i,
                       l->thread[i], i);
    (void)snprintf(at, room - (size_t)(at - text), "ret;\n}\n");
    return text;
}

static bool proved(const struct run *r)
{
    return strstr(r->findings, "\"basis\":\"proved\"") != NULL;
}

static void run_case(const struct litmus *l)
{
    const uint64_t param = (uint64_t)(uintptr_t)memory;
    bool found = false;
    char *text;
    if (!test_case("%s", l->name)) return;
    text = build(l);
    for (uint64_t seed = 0; seed < SEEDS && !test_case_failures(); seed++) {
        struct run r = {.grid = thread_count(l), .block = 32, .cluster = l->cluster, .seed = seed};
        int rc;
        memset(memory, 0, BUFFER);
        rc = run_kernel(&r, text, &param, sizeof param);
        CHECK(rc == 0, "seed %llu: result %d\n%s", (unsigned long long)seed, rc, r.findings);
        found |= run_found(&r, "race");
        CHECK(l->verdict == CHANCE || run_found(&r, "race") == (l->verdict == RACE),
              "seed %llu: want %s, got:\n%s", (unsigned long long)seed,
              l->verdict == RACE ? "a race" : "nothing", r.findings);
        CHECK(l->verdict != ORDERED || !strstr(text, "again") || !proved(&r), "seed %llu: proved",
              (unsigned long long)seed);
    }
    CHECK(l->verdict != CHANCE || found, "no seed finds the race");
    free(text);
}

/* ---- what may be called proved: one CTA of 64 threads ---- */

static const struct {
    const char *name;
    bool proved;
    const char *text;
} proofs[] = {
    {"words of its own", true, "st.shared.u32 [a], v;\nbar.sync 0;\nld.shared.u32 r, [sum];\n"},
    {"a sum of integers", true,
     "red.shared.add.u32 [sum], v;\nbar.sync 0;\nld.shared.u32 r, [sum];\n"},
    {"a sum of floats, read", false,
     "red.shared.add.f32 [sum], w;\nbar.sync 0;\nld.shared.u32 r, [sum];\n"},
    {"a sum of floats, not read", true, "red.shared.add.f32 [sum], w;\nbar.sync 0;\n"},
    {"sums and maxima of one word", false,
     "red.shared.add.u32 [sum], v;\nred.shared.max.u32 [sum], t;\nbar.sync 0;\n"
     "ld.shared.u32 r, [sum];\n"},
    {"a count that wraps", false,
     "red.shared.inc.u32 [sum], t;\nbar.sync 0;\nld.shared.u32 r, [sum];\n"},
    {"an old value, not read", false, "atom.shared.add.u32 n, [sum], v;\n"},
    {"an old value", false, "atom.shared.add.u32 n, [sum], v;\nst.shared.u32 [a], n;\n"},
    {"a volatile load", false, "ld.volatile.shared.u32 r, [sum];\n"},
};

static void run_proof(size_t i)
{
    static const char format[] =
        ".version 8.8\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 memory)\n{\n.shared .align 4 .b32 sum;\n"
        ".shared .align 4 .b32 words[64];\n.reg .b32 a, n, r, t, v;\n.reg .f32 w;\n.reg .pred q;\n"
        "mov.u32 t, %%tid.x;\nmov.u32 a, words;\nmad.lo.u32 a, t, 4, a;\nmov.b32 v, 3;\n"
        "mov.f32 w, 0f3DCCCCCD;\nsetp.eq.u32 q, t, 0;\nmov.b32 r, 0;\n"
        "@q st.shared.u32 [sum], r;\nbar.sync 0;\n%sret;\n}\n";
    const uint64_t param = (uint64_t)(uintptr_t)memory;
    char text[2048];
    if (!test_case("basis: %s", proofs[i].name)) return;
    (void)snprintf(text, sizeof text, format, proofs[i].text);
    for (uint64_t seed = 0; seed < SEEDS && !test_case_failures(); seed++) {
        struct run r = {.grid = 1, .block = 64, .seed = seed};
        int rc = run_kernel(&r, text, &param, sizeof param);
        CHECK(rc == 0 && strstr(r.findings, "\"verdict\":\"clean\""), "result %d\n%s", rc,
              r.findings);
        CHECK(proved(&r) == proofs[i].proved, "seed %llu: want %s, got:\n%s",
              (unsigned long long)seed, proofs[i].proved ? "proved" : "sampled", r.findings);
    }
}

int main(int argc, char **argv)
{
    test_begin("litmus", argc, argv);
    memory = run_alloc(BUFFER);
    if (!memory || !run_begin()) return 1;
    for (size_t i = 0; i < sizeof litmus / sizeof *litmus; i++) run_case(&litmus[i]);
    for (size_t i = 0; i < sizeof proofs / sizeof *proofs; i++) run_proof(i);
    run_end();
    run_free(memory);
    return test_end();
}
