/*
 * The executor, the scheduler, barriers and warp-wide instructions, by small PTX kernels: divergence
 * against the same code in C, collectives against their definitions, and hangs that must be told by
 * cause, name and line.
 */
#include "lib/harness.h"
#include "machine/mem.h"
#include "async/tmap.h"
#include "check/check.h"
#include "ops/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OUT_WORDS = 4096, REPORT_BYTES = 16384, TEXT_BYTES = 16384 };
static char report_path[64];
static uint32_t *out; /* device memory, also ours */

static const struct gpu test_gpu = {.name = "test",
                                    .cc_major = 10,
                                    .sm_count = 4,
                                    .shared_optin = 232448,
                                    .shared_per_sm = 233472,
                                    .regs_per_sm = 65536,
                                    .threads_per_sm = 2048,
                                    .ctas_per_sm = 32,
                                    .clock_khz = 1900000};

/* One launch of a kernel `k` with the parameter `out`. */
struct trial {
    const char *directives; /* between header and body */
    const char *shared;     /* module-level variables and notes */
    const char *body;
    uint32_t grid, block, cluster, sms, threads;
    uint64_t seed;
    int level; /* of checks; 0: 1 */
    int result;
    char report[REPORT_BYTES];
};

static void read_report(char *text)
{
    FILE *f = fopen(report_path, "rb");
    size_t n = f ? fread(text, 1, REPORT_BYTES - 1, f) : 0;
    text[n] = '\0';
    if (f) fclose(f);
    remove(report_path);
}

static void launch(struct trial *t, const struct kernel *k)
{
    _Alignas(64) uint8_t params[64] = {0};
    uint64_t address = (uint64_t)(uintptr_t)out;
    struct launch l = {.kernel = k,
                       .gpu = &test_gpu,
                       .hooks = &op_hooks,
                       .grid = {t->grid ? t->grid : 1, 1, 1},
                       .block = {t->block ? t->block : 32, 1, 1},
                       .cluster = {t->cluster ? t->cluster : 1, 1, 1},
                       .params = params,
                       .param_bytes = 8,
                       .sm_count = t->sms ? t->sms : 2,
                       .host_threads = t->threads ? t->threads : 1,
                       .seed = t->seed,
                       .check_level = t->level ? t->level : 1};
    struct check check = {0};
    struct report *report = report_new("k", 1);
    memcpy(params, &address, sizeof address);
    check_attach(&check, &l, report);
    t->result = launch_run(&l);
    report_end(report);
    read_report(t->report);
}

/* Lines of the body are numbered from 1 in the file "body". */
static bool run(struct trial *t)
{
    static char text[TEXT_BYTES];
    struct ptx_module *m = NULL;
    struct kernel *k = NULL;
    struct ptx_diag diag = {""};
    int n = snprintf(text, sizeof text,
                     ".version 8.8\n.target sm_100a\n.address_size 64\n%s\n"
                     ".visible .entry k(.param .u64 out)\n%s\n{\n"
                     ".reg .pred %%p<9>; .reg .b32 %%r<32>; .reg .b64 %%d<16>;\n"
                     "ld.param.u64 %%d0, [out];\nmov.u32 %%r0, %%tid.x;\n"
                     "mad.wide.u32 %%d1, %%r0, 4, %%d0;\n"
                     "# 1 \"body\"\n%s\n}\n",
                     t->shared ? t->shared : "", t->directives ? t->directives : "", t->body);
    t->result = -1;
    t->report[0] = '\0';
    if (n >= (int)sizeof text || ptx_parse(text, (size_t)n, &m, &diag) ||
        kernel_decode(m, &m->entries[0], op_binders, &k, &diag)) {
        CHECK(false, "the kernel does not load: %s", diag.text);
    } else if (k->unsupported) {
        CHECK(false, "not modelled: %s", k->unsupported);
    } else {
        launch(t, k);
    }
    if (k) kernel_free(k);
    if (m) ptx_module_free(m);
    return t->result >= 0;
}

static void expect_clean(struct trial *t)
{
    if (!run(t)) return;
    CHECK(t->result == 0, "result %d: %s", t->result, t->report);
    CHECK(strstr(t->report, "\"verdict\":\"clean\"") != NULL, "not clean: %s", t->report);
}

/* A hang with that kind and cause, object and line of `body`; NULL or 0: whatever. */
static void expect_finding(struct trial *t, int result, const char *kind, const char *cause,
                           const char *object, uint32_t line)
{
    char want[128];
    if (!run(t)) return;
    CHECK_INT(t->result, result);
    snprintf(want, sizeof want, "\"kind\":\"%s\",\"cause\":\"%s\"", kind, cause);
    CHECK_TEXT(t->report, want);
    if (object) {
        snprintf(want, sizeof want, "\"object\":\"%s\"", object);
        CHECK_TEXT(t->report, want);
    }
    if (line) {
        snprintf(want, sizeof want, "\"file\":\"body\",\"line\":%u,\"launch\"", line);
        CHECK_TEXT(t->report, want);
    }
}

static void expect_words(uint32_t count, uint32_t (*want)(uint32_t i))
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t w = want(i);
        CHECK(out[i] == w, "out[%u]: want 0x%x got 0x%x", i, w, out[i]);
        if (out[i] != w) return;
    }
}

/* ---- divergence ---- */

static uint32_t nested(uint32_t t)
{
    uint32_t x = 0;
    if (t & 1) {
        x += t & 2 ? 10 : 20;
    } else {
        x += t & 4 ? 30 : 40;
    }
    return x + 1000 * t;
}

static uint32_t loops(uint32_t t)
{
    uint32_t x = 0;
    for (uint32_t i = 0; i < t % 7; i++) {
        for (uint32_t j = 0; j < (t ^ i) % 5; j++) x = x * 3 + j + 1;
    }
    return x;
}

static uint32_t early(uint32_t t)
{
    return t % 3 == 0 ? 0xAAAA : t * t;
}

static uint32_t handed(uint32_t t)
{
    return t ^ 1;
}

static const char nested_body[] = "mov.u32 %r1, 0;\n"
                                  "and.b32 %r2, %r0, 1; setp.ne.u32 %p0, %r2, 0;\n"
                                  "and.b32 %r2, %r0, 2; setp.ne.u32 %p1, %r2, 0;\n"
                                  "and.b32 %r2, %r0, 4; setp.ne.u32 %p2, %r2, 0;\n"
                                  "@!%p0 bra EVEN;\n"
                                  "@!%p1 bra ODD2;\n"
                                  "add.u32 %r1, %r1, 10; bra JOIN;\n"
                                  "ODD2: add.u32 %r1, %r1, 20; bra JOIN;\n"
                                  "EVEN: @%p2 add.u32 %r1, %r1, 30;\n"
                                  "@!%p2 add.u32 %r1, %r1, 40;\n"
                                  "JOIN: activemask.b32 %r3;\n"
                                  "setp.ne.u32 %p3, %r3, 0xffffffff; @%p3 trap;\n"
                                  "mad.lo.u32 %r1, %r0, 1000, %r1;\n"
                                  "st.global.u32 [%d1], %r1; exit;\n";

static const char loops_body[] = "mov.u32 %r1, 0; mov.u32 %r2, 0; rem.u32 %r3, %r0, 7;\n"
                                 "OUTER: setp.ge.u32 %p0, %r2, %r3; @%p0 bra DONE;\n"
                                 "mov.u32 %r4, 0; xor.b32 %r5, %r0, %r2; rem.u32 %r5, %r5, 5;\n"
                                 "INNER: setp.ge.u32 %p1, %r4, %r5; @%p1 bra NEXT;\n"
                                 "mad.lo.u32 %r1, %r1, 3, %r4; add.u32 %r1, %r1, 1;\n"
                                 "add.u32 %r4, %r4, 1; bra INNER;\n"
                                 "NEXT: add.u32 %r2, %r2, 1; bra OUTER;\n"
                                 "DONE: st.global.u32 [%d1], %r1; ret;\n";

static const char early_body[] = "rem.u32 %r1, %r0, 3; setp.eq.u32 %p0, %r1, 0;\n"
                                 "@%p0 st.global.u32 [%d1], 0xaaaa;\n"
                                 "@%p0 exit;\n"
                                 "mul.lo.u32 %r2, %r0, %r0;\n"
                                 "barrier.sync 0;\n"
                                 "st.global.u32 [%d1], %r2;\n";

/* Odd lanes wait, by plain loads, for what even lanes of the same warp store later in the code. */
static const char handed_body[] = "xor.b32 %r1, %r0, 1; mad.wide.u32 %d2, %r1, 4, %d0;\n"
                                  "and.b32 %r2, %r0, 1; setp.eq.u32 %p0, %r2, 0;\n"
                                  "@%p0 bra EVEN;\n"
                                  "SPIN: ld.volatile.global.u32 %r3, [%d2];\n"
                                  "setp.eq.u32 %p1, %r3, 0xffffffff; @%p1 bra SPIN;\n"
                                  "st.global.u32 [%d1], %r1; exit;\n"
                                  "EVEN: st.volatile.global.u32 [%d1], %r1; exit;\n";

static void test_divergence(void)
{
    static const struct {
        const char *name, *body;
        uint32_t block;
        uint32_t (*want)(uint32_t);
    } cases[] = {{"nested branches", nested_body, 64, nested},
                 {"loops of different length", loops_body, 96, loops},
                 {"early exit before a barrier", early_body, 96, early},
                 {"lanes of one warp hand over", handed_body, 64, handed}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint64_t seed = 0; seed < 4; seed++) {
            struct trial t = {.body = cases[i].body, .block = cases[i].block, .seed = seed};
            if (!test_case("%s, seed %d", cases[i].name, (int)seed)) continue;
            memset(out, 0xFF, 4 * OUT_WORDS);
            expect_clean(&t);
            expect_words(cases[i].block, cases[i].want);
        }
    }
    if (test_case("an odd number of threads")) {
        struct trial t = {.body = early_body, .block = 75};
        memset(out, 0xFF, 4 * OUT_WORDS);
        expect_clean(&t);
        expect_words(75, early);
        CHECK_INT(out[75], 0xFFFFFFFF);
    }
    if (test_case("brx.idx")) {
        struct trial t = {.body = "TS: .branchtargets L0, L1, L2;\n"
                                  "rem.u32 %r1, %r0, 3; brx.idx %r1, TS;\n"
                                  "L0: mov.u32 %r2, 7; bra END;\n"
                                  "L1: mov.u32 %r2, 8; bra END;\n"
                                  "L2: mov.u32 %r2, 9;\n"
                                  "END: st.global.u32 [%d1], %r2;\n"};
        expect_clean(&t);
        for (uint32_t i = 0; i < 32; i++) CHECK_INT(out[i], 7 + i % 3);
    }
}

/* ---- collectives, against their definitions ---- */

static uint32_t input(uint32_t lane)
{
    return (lane * 2654435761U) >> 27;
}

static uint32_t shfl_want(const char *mode, uint32_t lane, uint32_t b, uint32_t c, uint32_t *ok)
{
    uint32_t seg = c >> 8 & 31, max = (lane & seg) | (c & 31 & ~seg);
    int j = 0;
    *ok = 1;
    if (!strcmp(mode, "up")) {
        j = (int)lane - (int)b;
        *ok = j >= (int)max;
    } else {
        if (!strcmp(mode, "down")) j = (int)(lane + b);
        if (!strcmp(mode, "bfly")) j = (int)(lane ^ b);
        if (!strcmp(mode, "idx")) j = (int)((lane & seg) | (b & ~seg));
        *ok = j <= (int)max;
    }
    return input(*ok ? (uint32_t)j : lane);
}

static void test_shfl(void)
{
    static const char *const modes[] = {"up", "down", "bfly", "idx"};
    static const uint32_t clamps[][2] = {{0, 0x1F}, {0x1800, 0x181F}, {0x1000, 0x100F}};
    for (int m = 0; m < 4; m++) {
        for (int c = 0; c < 3; c++) {
            for (uint32_t b = 0; b < 32; b += 5) {
                char body[512];
                uint32_t clamp = clamps[c][m != 0];
                struct trial t = {.body = body};
                if (!test_case("shfl.%s %u, 0x%x", modes[m], b, clamp)) continue;
                snprintf(body, sizeof body,
                         "mul.lo.u32 %%r1, %%r0, 2654435761; shr.u32 %%r1, %%r1, 27;\n"
                         "shfl.sync.%s.b32 %%r1|%%p0, %%r1, %u, 0x%x, 0xffffffff;\n"
                         "st.global.u32 [%%d1], %%r1; selp.u32 %%r2, 1, 0, %%p0;\n"
                         "st.global.u32 [%%d1+128], %%r2;\n",
                         modes[m], b, clamp);
                expect_clean(&t);
                for (uint32_t lane = 0; lane < 32; lane++) {
                    uint32_t ok, want = shfl_want(modes[m], lane, b, clamp, &ok);
                    CHECK_INT(out[lane], want);
                    CHECK_INT(out[lane + 32], ok);
                }
            }
        }
    }
}

/* Upper and lower half vote among themselves, reached at different times. */
static const char votes_body[] =
    "mul.lo.u32 %r1, %r0, 2654435761; shr.u32 %r1, %r1, 27;\n"
    "setp.lt.u32 %p0, %r1, 20; mov.u32 %r2, 0x0000ffff;\n"
    "setp.ge.u32 %p1, %r0, 16; @%p1 mov.u32 %r2, 0xffff0000; @%p1 bra HIGH;\n"
    "add.u32 %r9, %r1, 1;\n"
    "HIGH: vote.sync.ballot.b32 %r3, %p0, %r2; st.global.u32 [%d1], %r3;\n"
    "vote.sync.any.pred %p2, %p0, %r2; vote.sync.all.pred %p3, %p0, %r2;\n"
    "vote.sync.uni.pred %p4, %p0, %r2;\n"
    "selp.u32 %r4, 1, 0, %p2; selp.u32 %r5, 2, 0, %p3; selp.u32 %r6, 4, 0, %p4;\n"
    "add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6; st.global.u32 [%d1+128], %r4;\n"
    "match.any.sync.b32 %r7, %r1, %r2; st.global.u32 [%d1+256], %r7;\n"
    "match.all.sync.b32 %r7|%p5, %r2, %r2; st.global.u32 [%d1+384], %r7;\n"
    "redux.sync.add.u32 %r7, %r1, %r2; st.global.u32 [%d1+512], %r7;\n"
    "redux.sync.max.s32 %r7, %r1, %r2; st.global.u32 [%d1+640], %r7;\n"
    "redux.sync.xor.b32 %r7, %r1, %r2; st.global.u32 [%d1+768], %r7;\n"
    "elect.sync %r7|%p6, %r2; selp.u32 %r8, 100, 0, %p6; add.u32 %r7, %r7, %r8;\n"
    "st.global.u32 [%d1+896], %r7;\n";

static void test_votes(void)
{
    struct trial t = {.body = votes_body};
    if (!test_case("votes, match, redux, elect by half warps")) return;
    expect_clean(&t);
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t ballot = 0, sum = 0, max = 0, xored = 0, mask = 0xFFFFU << 16 * half;
        for (uint32_t l = 16 * half; l < 16 * half + 16; l++) {
            ballot |= (uint32_t)(input(l) < 20) << l;
            sum += input(l);
            xored ^= input(l);
            if (input(l) > max) max = input(l);
        }
        for (uint32_t l = 16 * half; l < 16 * half + 16; l++) {
            uint32_t same = 0;
            for (uint32_t o = 16 * half; o < 16 * half + 16; o++) {
                same |= (uint32_t)(input(o) == input(l)) << o;
            }
            CHECK_INT(out[l], ballot);
            CHECK_INT(out[l + 32],
                      (ballot != 0) + 2 * (ballot == mask) + 4 * (ballot == mask || !ballot));
            CHECK_INT(out[l + 64], same);
            CHECK_INT(out[l + 96], mask);
            CHECK_INT(out[l + 128], sum);
            CHECK_INT(out[l + 160], max);
            CHECK_INT(out[l + 192], xored);
            CHECK_INT(out[l + 224], 16 * half + (l % 16 == 0 ? 100 : 0));
        }
    }
}

/* Lanes of one mask: floats, which of them count, and what each form brings. PTX ISA "redux.sync". */
static void test_redux_float(void)
{
    static const struct {
        const char *form;
        uint32_t lane[4], want; /* lane l has lane[l % 4] */
    } cases[] = {
        {"min", {0x3F800000, 0xBF800000, 0x40000000, 0x00000001}, 0xBF800000},
        {"max", {0x3F800000, 0xBF800000, 0xC0400000, 0x00000001}, 0x3F800000},
        {"min.abs", {0x3F800000, 0xBF000000, 0xC0400000, 0x40000000}, 0x3F000000},
        {"max.abs", {0x3F800000, 0xBF800000, 0xC0400000, 0x00000001}, 0x40400000},
        {"min", {0x00000000, 0x80000000, 0x00000000, 0x3F800000}, 0x80000000},
        {"max", {0x80000000, 0x00000000, 0x80000000, 0xBF800000}, 0x00000000},
        {"max", {0x80000001, 0x80000002, 0x80000001, 0x80000003}, 0x80000001}, /* subnormals stay */
        {"min", {0xFF800000, 0x7F800000, 0x3F800000, 0x3F800000}, 0xFF800000},
        {"min", {0x7FC00001, 0x40000000, 0xFFC00000, 0x3F800000}, 0x3F800000},
        {"max", {0x7FC00001, 0x7FC00001, 0xFFC00000, 0x7FC00001}, 0x7FFFFFFF},
        {"min.NaN", {0x3F800000, 0x40000000, 0xFFC00000, 0x3F800000}, 0x7FFFFFFF},
        {"max.abs.NaN", {0x3F800000, 0xC0000000, 0x3F800000, 0x3F800000}, 0x40000000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char body[640];
        struct trial t = {.body = body};
        if (!test_case("redux.sync.%s.f32, case %zu", cases[i].form, i)) continue;
        (void)snprintf(body, sizeof body,
                       "and.b32 %%r1, %%r0, 3; mov.u32 %%r2, %u;\n"
                       "setp.eq.u32 %%p0, %%r1, 1; @%%p0 mov.u32 %%r2, %u;\n"
                       "setp.eq.u32 %%p0, %%r1, 2; @%%p0 mov.u32 %%r2, %u;\n"
                       "setp.eq.u32 %%p0, %%r1, 3; @%%p0 mov.u32 %%r2, %u;\n"
                       "redux.sync.%s.f32 %%r3, %%r2, 0xffffffff; st.global.u32 [%%d1], %%r3;\n",
                       cases[i].lane[0], cases[i].lane[1], cases[i].lane[2], cases[i].lane[3],
                       cases[i].form);
        expect_clean(&t);
        CHECK(strstr(t.report, "\"basis\":\"proved\"") != NULL, "%s", t.report);
        for (uint32_t lane = 0; lane < 32; lane++) CHECK_INT(out[lane], cases[i].want);
    }
}

/* ---- barriers ---- */

static const char arrive_sync_body[] =
    "setp.ge.u32 %p0, %r0, 128; @%p0 bra CONSUMER;\n"
    "mov.u32 %r1, buf; mad.lo.u32 %r1, %r0, 4, %r1; mul.lo.u32 %r2, %r0, 3;\n"
    "st.shared.u32 [%r1], %r2; barrier.cta.arrive 3, 256; exit;\n"
    "CONSUMER: barrier.cta.sync 3, 256;\n"
    "sub.u32 %r3, 255, %r0; mov.u32 %r1, buf; mad.lo.u32 %r1, %r3, 4, %r1;\n"
    "ld.shared.u32 %r2, [%r1]; st.global.u32 [%d1], %r2;\n";

static const char reduce_body[] =
    "and.b32 %r1, %r0, 1; setp.ne.u32 %p0, %r1, 0; setp.lt.u32 %p1, %r0, 1000;\n"
    "bar.red.popc.u32 %r2, 1, %p0; bar.red.and.pred %p2, 1, 96, %p1; bar.red.or.pred %p3, 1, "
    "!%p1;\n"
    "selp.u32 %r3, 100, 0, %p2; selp.u32 %r4, 1000, 0, %p3; add.u32 %r2, %r2, %r3;\n"
    "add.u32 %r2, %r2, %r4; st.global.u32 [%d1], %r2;\n";

/* Every CTA writes to its right neighbour's shared memory, twice round. */
static const char cluster_body[] =
    "mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %cluster_nctarank; mov.u32 %r3, buf;\n"
    "mad.lo.u32 %r3, %r0, 4, %r3; add.u32 %r4, %r1, 1; rem.u32 %r4, %r4, %r2;\n"
    "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n"
    "mapa.shared::cluster.u32 %r5, %r3, %r4; mad.lo.u32 %r6, %r1, 100, %r0;\n"
    "st.shared::cluster.u32 [%r5], %r6;\n"
    "barrier.cluster.arrive; barrier.cluster.wait;\n"
    "ld.shared.u32 %r7, [%r3]; mov.u32 %r8, %ctaid.x; mad.lo.u32 %r8, %r8, 64, %r0;\n"
    "mad.wide.u32 %d2, %r8, 4, %d0; st.global.u32 [%d2], %r7;\n";

static void test_barriers(void)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct trial t = {.body = arrive_sync_body,
                          .shared = ".shared .align 16 .b32 buf[256];",
                          .block = 256,
                          .seed = seed};
        if (!test_case("arrive by one half, sync by the other, seed %d", (int)seed)) continue;
        expect_clean(&t);
        for (uint32_t i = 128; i < 256; i++) CHECK_INT(out[i], (255 - i) * 3);
    }
    if (test_case("bar.red")) {
        struct trial t = {.body = reduce_body, .block = 96};
        expect_clean(&t);
        for (uint32_t i = 0; i < 96; i++) CHECK_INT(out[i], 48 + 100);
    }
    for (uint32_t n = 2; n <= 4; n += 2) {
        struct trial t = {.body = cluster_body,
                          .shared = ".shared .align 16 .b32 buf[64];",
                          .block = 64,
                          .grid = 2 * n,
                          .cluster = n,
                          .seed = n};
        if (!test_case("cluster barrier of %u", n)) continue;
        expect_clean(&t);
        for (uint32_t cta = 0; cta < 2 * n; cta++) {
            for (uint32_t i = 0; i < 64; i++) {
                CHECK_INT(out[cta * 64 + i], (cta % n + n - 1) % n * 100 + i);
            }
        }
    }
    if (test_case("bar.warp.sync at two places")) {
        struct trial t = {.body = "setp.lt.u32 %p0, %r0, 7; @%p0 bra LOW;\n"
                                  "bar.warp.sync 0xffffffff; bra END;\n"
                                  "LOW: bar.warp.sync 0xffffffff;\n"
                                  "END: st.global.u32 [%d1], 5;\n"};
        expect_clean(&t);
    }
    if (test_case("a count that is no multiple of 32")) {
        struct trial t = {.body = "mov.u32 %r1, 48;\nbar.sync 1, %r1;\n"};
        expect_finding(&t, 715, "barrier-id", "", "barrier 1", 2);
    }
    if (test_case("counts that differ")) {
        struct trial t = {.body = "setp.lt.u32 %p0, %r0, 32; @%p0 bra A;\n"
                                  "bar.sync 1, 96; exit;\nA: bar.sync 1, 64;\n",
                          .block = 96};
        expect_finding(&t, 715, "barrier-id", "", "barrier 1", 0);
    }
}

/* ---- hangs ---- */

static const char two_bars[] = ".shared .align 8 .b64 full_bar[2];\n"
                               ".shared .align 8 .b64 empty_bar[2];\n"
                               "//@ role producer 0 1\n//@ role consumer 1 2\n";

#define WAIT(label, bar, parity)                                                                \
    label ": mbarrier.try_wait.parity.shared.b64 %p7, [" bar "], " parity ";\n@!%p7 bra " label \
          ";\n"

/* Body lines 1-2 set up, both barriers of each array with the counts given. */
#define SETUP(full_count, empty_count)                                                     \
    "shr.u32 %r1, %r0, 5; setp.eq.u32 %p0, %r0, 0; mov.u32 %r10, full_bar; mov.u32 %r11, " \
    "empty_bar;\n"                                                                         \
    "@%p0 mbarrier.init.shared.b64 [%r10], " full_count ";\n"                              \
    "@%p0 mbarrier.init.shared.b64 [%r10+8], " full_count ";\n"                            \
    "@%p0 mbarrier.init.shared.b64 [%r11], " empty_count ";\n"                             \
    "@%p0 mbarrier.init.shared.b64 [%r11+8], " empty_count ";\n"                           \
    "bar.sync 0;\n"                                                                        \
    "and.b32 %r12, %r0, 31; setp.eq.u32 %p1, %r12, 0; setp.eq.u32 %p2, %r1, 0;\n"

/* A two-slot ring over 6 tiles: warp 0 fills, warps 1 and 2 use (one lane of each arrives). */
#define RING(full_count, empty_count, tiles) RING_WITH(full_count, empty_count, tiles, "@%p1")
#define RING_WITH(full_count, empty_count, tiles, who)                                            \
    SETUP(full_count, empty_count)                                                                \
    "mov.u32 %r2, 0;\n@!%p2 bra USE;\n"                                                           \
    "FILL: and.b32 %r3, %r2, 1; shl.b32 %r4, %r3, 3; add.u32 %r5, %r10, %r4; add.u32 %r6, %r11, " \
    "%r4;\n"                                                                                      \
    "shr.u32 %r7, %r2, 1; and.b32 %r7, %r7, 1; xor.b32 %r8, %r7, 1;\n" WAIT(                      \
        "WE", "%r6",                                                                              \
        "%r8") "@%p1 mbarrier.arrive.shared.b64 _, [%r5];\n"                                      \
               "add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 6; @%p3 bra FILL;\nexit;\n"            \
               "USE: and.b32 %r3, %r2, 1; shl.b32 %r4, %r3, 3; add.u32 %r5, %r10, %r4; add.u32 "  \
               "%r6, %r11, "                                                                      \
               "%r4;\n"                                                                           \
               "shr.u32 %r7, %r2, 1; and.b32 %r7, %r7, 1;\n" WAIT("WF", "%r5", "%r7") who         \
        " mbarrier.arrive.shared.b64 _, [%r6];\n"                                                 \
        "add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, " tiles "; @%p3 bra USE;\n"

struct hang {
    const char *name, *body, *kind, *cause, *object;
    uint32_t line, block;
};

static const struct hang hangs[] = {
    {"a ring whose empty barriers count one too many", RING("1", "3", "6"), "deadlock",
     "arrival-count", "empty_bar[0]", 4, 96},
    {"a ring whose users never hand back", RING_WITH("1", "2", "6", "//"), "deadlock",
     "no-producer", "empty_bar[0]", 12, 96},
    {"a ring whose users stop early", RING("1", "2", "3"), "deadlock", "trip-count", NULL, 0, 96},
    {"a count of 32 and one arrival",
     SETUP("32", "1") "@%p0 mbarrier.arrive.shared.b64 _, [%r10];\n" WAIT("W", "%r10", "0"),
     "deadlock", "arrival-count", "full_bar[0]", 2, 96},
    {"nobody ever arrives", SETUP("1", "1") "@%p2 exit;\n" WAIT("W", "%r10+8", "0"), "deadlock",
     "no-producer", "full_bar[1]", 9, 96},
    {"bytes that never come",
     SETUP("1", "1") "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 128;\n" WAIT("W", "%r10",
                                                                                        "0"),
     "deadlock", "tx-bytes", "full_bar[0]", 8, 96},
    {"a wait for the wrong parity",
     SETUP("1", "1") "@%p0 mbarrier.arrive.shared.b64 _, [%r10];\n@%p2 exit;\n" WAIT("W", "%r10",
                                                                                     "1") "exit;\n",
     NULL, NULL, NULL, 0, 96},
    {"a barrier in a branch",
     SETUP("1", "1") "@%p2 bra P;\nbar.sync 0;\n@%p1 mbarrier.arrive.shared.b64 _, "
                     "[%r10];\nexit;\nP: " WAIT("W", "%r10", "0"),
     "deadlock", "participants", "barrier 0", 9, 96},
    {"a counted barrier that others left",
     "setp.lt.u32 %p0, %r0, 32; @!%p0 exit;\nbar.sync 1, 64;\n", "deadlock", "exited", "barrier 1",
     2, 96},
    {"lanes of a warp at two warp-wide instructions",
     "setp.lt.u32 %p0, %r0, 5; @%p0 bra A;\nbar.sync 1;\nbra E;\nA: bar.sync 2;\nE: exit;\n",
     "collective-partial", "", NULL, 0, 32},
    {"both sides wait first",
     SETUP("1", "1") "@%p2 bra P;\n" WAIT(
         "W", "%r10", "0") "@%p1 mbarrier.arrive.shared.b64 _, [%r11]; "
                           "exit;\nP: " WAIT("V", "%r11", "0") "@%p0 mbarrier.arrive.expect_tx."
                                                               "shared.b64 _, [%r10], 16;\n",
     "deadlock", "phase", "empty_bar[0]", 12, 96},
    {"a spin on memory that nobody writes",
     "mov.u64 %d2, %d0;\nS: ld.volatile.global.u32 %r1, [%d2+64];\nsetp.ne.u32 %p0, %r1, 77;\n@%p0 "
     "bra S;\n",
     "deadlock", "no-producer", NULL, 0, 32},
};

static void test_hangs(void)
{
    for (size_t i = 0; i < sizeof hangs / sizeof hangs[0]; i++) {
        const struct hang *h = &hangs[i];
        if (!h->kind) continue;
        for (uint64_t seed = 0; seed < 6; seed++) {
            struct trial t = {
                .body = h->body, .shared = two_bars, .block = h->block, .seed = seed * 77};
            if (!test_case("%s, seed %d", h->name, (int)seed)) continue;
            expect_finding(&t, 702, h->kind, h->cause, h->object, h->line);
            if (test_verbose()) puts(t.report);
        }
    }
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct trial t = {
            .body = RING("1", "2", "6"), .shared = two_bars, .block = 96, .seed = seed};
        if (test_case("the ring in order, seed %d", (int)seed)) expect_clean(&t);
    }
}

static void test_parity(void)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct trial t = {.body =
                              SETUP("1", "1") "@%p0 mbarrier.arrive.shared.b64 _, [%r10];\n"
                                              "bar.sync 0;\n@%p2 exit;\n" WAIT("W", "%r10", "1"),
                          .shared = two_bars,
                          .block = 96,
                          .seed = seed};
        if (!test_case("a wait for the wrong parity, seed %d", (int)seed)) continue;
        expect_finding(&t, 702, "deadlock", "phase", "full_bar[0]", 11);
    }
}

/* ---- what only looks like a hang ---- */

static void test_bounded(void)
{
    if (test_case("a retry loop with a bound")) {
        struct trial t = {.body = SETUP("1", "1") "mov.u32 %r2, 0;\n"
                                                  "T: mbarrier.try_wait.parity.shared.b64 %p7, "
                                                  "[%r10], 0;\nadd.u32 %r2, %r2, 1;\n@%p7 trap;\n"
                                                  "setp.lt.u32 %p4, %r2, 3000; @%p4 bra T;\n"
                                                  "st.global.u32 [%d1], %r2;\n",
                          .shared = two_bars,
                          .block = 96};
        memset(out, 0, 4 * OUT_WORDS);
        expect_clean(&t);
        for (uint32_t i = 0; i < 96; i++) CHECK_INT(out[i], 3000);
    }
    if (test_case("a loop bounded by the clock")) {
        struct trial t = {.body = SETUP("1", "1") "mov.u64 %d3, %clock64;\n"
                                                  "T: mbarrier.try_wait.parity.shared.b64 %p7, "
                                                  "[%r10], 0;\n@%p7 trap;\nmov.u64 %d4, %clock64;\n"
                                                  "sub.u64 %d4, %d4, %d3;\n"
                                                  "setp.lt.u64 %p4, %d4, 200000000; @%p4 bra T;\n"
                                                  "st.global.u32 [%d1], 9;\n",
                          .shared = two_bars,
                          .block = 64};
        expect_clean(&t);
        for (uint32_t i = 0; i < 64; i++) CHECK_INT(out[i], 9);
    }
    for (uint64_t seed = 0; seed < 4; seed++) {
        /* Nothing but the clock changes, and that not during a turn. */
        struct trial t = {.body = "mov.u64 %d3, %clock64;\nT: mov.u64 %d4, %clock64;\n"
                                  "sub.u64 %d4, %d4, %d3;\n"
                                  "setp.lt.u64 %p4, %d4, 200000; @%p4 bra T;\n"
                                  "st.global.u32 [%d1], 9;\n",
                          .seed = seed};
        if (test_case("a delay by the clock alone, seed %d", (int)seed)) expect_clean(&t);
    }
    if (test_case("a long loop without effect")) {
        struct trial t = {.body = "mov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, "
                                  "100000; @%p0 bra L;\nst.global.u32 [%d1], %r1;\n"};
        expect_clean(&t);
        for (uint32_t i = 0; i < 32; i++) CHECK_INT(out[i], 100000);
    }
    for (uint32_t sms = 1; sms <= 4; sms += 3) {
        /* All CTAs add up and wait for the last: a grid-wide barrier with nanosleep. */
        struct trial t = {.body =
                              "setp.ne.u32 %p0, %r0, 0; @%p0 bra M;\n"
                              "atom.global.add.u32 %r1, [%d0+4096], 1;\n"
                              "S: ld.acquire.gpu.global.u32 %r2, [%d0+4096];\nnanosleep.u32 50;\n"
                              "setp.lt.u32 %p1, %r2, 16; @%p1 bra S;\n"
                              "M: bar.sync 0;\nmov.u32 %r3, %ctaid.x; mad.lo.u32 %r3, %r3, 64, "
                              "%r0;\nmad.wide.u32 %d2, %r3, 4, %d0; st.global.u32 [%d2], 1;\n",
                          .grid = 16,
                          .block = 64,
                          .sms = sms};
        if (!test_case("a barrier of the whole grid on %u SMs", sms)) continue;
        memset(out, 0, 4 * OUT_WORDS);
        expect_clean(&t);
        for (uint32_t i = 0; i < 960; i++) CHECK_INT(out[i], 1);
    }
}

/* Every lane of every CTA takes a lock, adds 1 without atomics, and gives it back. */
#define LOCK(release)                                                \
    "// take\n"                                                      \
    "T: atom.acquire.gpu.global.cas.b32 %r1, [%d0+8192], 0, 1;\n"    \
    "setp.ne.u32 %p0, %r1, 0; @%p0 bra T;\n"                         \
    "ld.volatile.global.u32 %r2, [%d0+8196]; add.u32 %r2, %r2, 1;\n" \
    "st.volatile.global.u32 [%d0+8196], %r2;\n" release

static void test_locks(void)
{
    for (uint64_t seed = 0; seed < 3; seed++) {
        struct trial t = {.body = LOCK("st.release.gpu.global.u32 [%d0+8192], 0;\n"),
                          .grid = 3,
                          .block = 40,
                          .seed = seed};
        if (!test_case("a lock that every lane takes, seed %d", (int)seed)) continue;
        memset(out, 0, 4 * OUT_WORDS);
        expect_clean(&t);
        CHECK_INT(out[2049], 120); /* 256 lanes take four times as long */
    }
    if (test_case("a lock that is never given back")) {
        struct trial t = {.body = LOCK("// never\n"), .block = 64};
        memset(out, 0, 4 * OUT_WORDS);
        expect_finding(&t, 702, "deadlock", "no-producer", "", 2);
    }
    if (test_case("a barrier of a grid that does not fit")) {
        struct trial t = {.body = "atom.global.add.u32 %r1, [%d0+4096], 1;\n"
                                  "S: ld.acquire.gpu.global.u32 %r2, [%d0+4096];\n"
                                  "setp.lt.u32 %p1, %r2, 16384; @%p1 bra S;\n",
                          .grid = 16,
                          .block = 1024,
                          .sms = 2};
        memset(out, 0, 4 * OUT_WORDS);
        expect_finding(&t, 702, "deadlock", "no-producer", "", 2);
        CHECK_TEXT(t.report, "12 CTAs of the grid cannot start until others end");
    }
}

/* ---- schedules ---- */

/* The order in which warps pass a counter, as the seed has it. */
static const char order_body[] = "atom.global.add.u32 %r1, [%d0+8192], 1;\n"
                                 "st.global.u32 [%d1], %r1;\nnanosleep.u32 20;\n"
                                 "atom.global.add.u32 %r1, [%d0+8192], 1;\n"
                                 "st.global.u32 [%d1+1024], %r1;\n";

/* A function takes 5000 bytes at a time, which are free again when it has returned; likewise what is restored. */
static void test_stack(void)
{
    struct trial t = {
        .shared = ".func (.reg .b32 o) sum (.reg .b32 n) { .reg .b64 %a; alloca.u64 %a, 5000;\n"
                  "st.local.u32 [%a+4996], n; add.u32 o, n, 1; ret; }\n",
        .body = "alloca.u64 %d3, 40, 32; st.local.u32 [%d3], %r0; stacksave.u64 %d4;\n"
                "mov.u32 %r1, 0; cvt.u64.u32 %d2, %r0; add.u64 %d2, %d2, 9000;\n"
                "A: call (%r1), sum, (%r1); alloca.u64 %d6, %d2; st.local.u32 [%d6+8996], %r1;\n"
                "stackrestore.u64 %d4; setp.lt.u32 %p0, %r1, 50; @%p0 bra A;\n"
                "ld.local.u32 %r3, [%d3]; cvt.u32.u64 %r4, %d3; and.b32 %r4, %r4, 31;\n"
                "add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4; st.global.u32 [%d1], %r1;\n"};
    if (!test_case("alloca, stacksave, stackrestore; more than there is")) return;
    expect_clean(&t);
    for (uint32_t i = 0; i < 32; i++) CHECK_INT(out[i], 50 + i);
    t = (struct trial){.body = "alloca.u64 %d3, 17000;\n"};
    expect_finding(&t, 714, "oob", "", NULL, 1);
}

static void test_seeds(void)
{
    static uint32_t first[512];
    bool differs = false;
    if (!test_case("a seed decides the schedule")) return;
    for (uint64_t seed = 0; seed < 6; seed++) {
        for (int again = 0; again < 2; again++) {
            struct trial t = {.body = order_body, .block = 256, .seed = seed};
            memset(out, 0, 4 * OUT_WORDS);
            expect_clean(&t);
            if (again)
                CHECK(!memcmp(first, out, sizeof first), "seed %d repeats", (int)seed);
            else
                differs |= seed && memcmp(first, out, sizeof first);
            memcpy(first, out, sizeof first);
        }
    }
    CHECK(differs, "six seeds give one schedule");
}

static void test_threads(void)
{
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        struct trial t = {.body = "mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 32, %r0;\n"
                                  "mad.wide.u32 %d2, %r2, 4, %d0; mul.lo.u32 %r3, %r2, %r2;\n"
                                  "st.global.u32 [%d2], %r3;\n",
                          .grid = 64,
                          .sms = 4,
                          .threads = threads};
        if (!test_case("64 CTAs on %u host threads", threads)) continue;
        memset(out, 0, 4 * OUT_WORDS);
        expect_clean(&t);
        for (uint32_t i = 0; i < 64 * 32; i++) CHECK_INT(out[i], i * i);
    }
    if (test_case("10,000 CTAs")) {
        struct trial t = {.body = "setp.eq.u32 %p0, %r0, 0; @%p0 st.global.u32 [%d0], 1;\n",
                          .grid = 10000,
                          .block = 256,
                          .sms = 4};
        clock_t start = clock();
        expect_clean(&t);
        CHECK(clock() - start < 20 * (clock_t)CLOCKS_PER_SEC, "took more than 20 s");
        if (test_verbose()) {
            printf("10,000 CTAs: %.2f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
        }
    }
}

static void test_faults(void)
{
    if (test_case("trap")) {
        struct trial t = {.body = "setp.eq.u32 %p0, %r0, 9;\n@%p0 trap;\n"};
        expect_finding(&t, 719, "trap", "", NULL, 2);
        CHECK_TEXT(t.report, "\"lane\":9");
    }
    if (test_case("brkpt with no debugger")) {
        struct trial t = {.body = "setp.eq.u32 %p0, %r0, 9;\n@%p0 brkpt;\n"};
        expect_finding(&t, 719, "trap", "", NULL, 2);
    }
    if (test_case("a guard that is false for some lanes of a warp-wide instruction")) {
        struct trial t = {.body = "setp.lt.u32 %p0, %r0, 9;\n@%p0 bar.sync 0;\n"};
        expect_finding(&t, 715, "collective-partial", "", NULL, 2);
    }
    if (test_case("a lane outside its own member mask")) {
        struct trial t = {.body = "vote.sync.any.pred %p1, %p0, 0xff;\n"};
        expect_finding(&t, 715, "collective-partial", "", NULL, 1);
    }
    if (test_case("setmaxnreg beyond the pool")) {
        struct trial t = {.body = "shr.u32 %r1, %r0, 7; setp.eq.u32 %p0, %r1, 0; @%p0 bra P;\n"
                                  "setmaxnreg.inc.sync.aligned.u32 248;\nexit;\n"
                                  "P: setmaxnreg.dec.sync.aligned.u32 24;\n",
                          .directives = ".reqntid 384, 1, 1",
                          .block = 384};
        expect_finding(&t, 702, "deadlock", "setmaxnreg", NULL, 2);
    }
    if (test_case("setmaxnreg to what the warps hold, 255 registers rounded up to 256")) {
        struct trial t = {.body = "setmaxnreg.inc.sync.aligned.u32 256;\n",
                          .directives = ".reqntid 256, 1, 1",
                          .block = 256};
        expect_clean(&t);
    }
    if (test_case("setmaxnreg where ptxas ignores it")) {
        struct trial t = {.body = "setmaxnreg.dec.sync.aligned.u32 40;\n"};
        expect_finding(&t, 0, "setmaxnreg", "", NULL, 1);
        CHECK_TEXT(t.report, "\"verdict\":\"clean\"");
    }
    if (test_case("setmaxnreg within the pool")) {
        struct trial t = {.body = "shr.u32 %r1, %r0, 7; setp.eq.u32 %p0, %r1, 0; @%p0 bra P;\n"
                                  "setmaxnreg.inc.sync.aligned.u32 240;\nexit;\n"
                                  "P: setmaxnreg.dec.sync.aligned.u32 24;\n",
                          .directives = ".reqntid 384, 1, 1",
                          .block = 384};
        expect_clean(&t);
    }
    if (test_case("a cluster barrier that one CTA never reaches")) {
        struct trial t = {.body = "mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p0, %r1, 1; mov.u32 "
                                  "%r10, full_bar;\n@%p0 mbarrier.init.shared.b64 [%r10], 1;\n"
                                  "mapa.shared::cluster.u32 %r11, %r10, 1; @%p0 bra W;\n"
                                  "barrier.cluster.arrive.aligned;\n"
                                  "barrier.cluster.wait.aligned;\n"
                                  "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];\n"
                                  "exit;\n" WAIT("W", "%r10", "0"),
                          .shared = two_bars,
                          .block = 1,
                          .grid = 2,
                          .cluster = 2};
        expect_finding(&t, 702, "deadlock", "cluster", "the cluster barrier", 5);
    }
}

/* ---- what a CTA leaves behind ---- */

#define STORE                                                         \
    "mov.u32 %r1, buf; setp.eq.u32 %p0, %r0, 0; @!%p0 bra E;\n"       \
    "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1], 64;\n" \
    "cp.async.bulk.commit_group;\n"

static void test_left_behind(void)
{
    static const char buffer[] = ".shared .align 128 .b32 buf[32];\n.shared .align 8 .b64 bar;";
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct trial t = {
            .body = STORE "E: exit;\n", .shared = buffer, .block = 64, .seed = seed, .level = 2};
        if (!test_case("a bulk store that nobody waits for, seed %d", (int)seed)) continue;
        expect_finding(&t, 0, "pending-at-exit", "", "", 2);
        CHECK_TEXT(t.report, "\"verdict\":\"review\"");
    }
    if (test_case("a bulk store that nobody waits for is silent at level 1")) {
        struct trial t = {.body = STORE "E: exit;\n", .shared = buffer, .block = 64};
        expect_clean(&t);
    }
    if (test_case("a bulk store whose source was waited for")) {
        struct trial t = {.body = STORE "cp.async.bulk.wait_group.read 0;\nE: exit;\n",
                          .shared = buffer,
                          .block = 64};
        expect_clean(&t);
    }
    if (test_case("a commit of nothing")) {
        struct trial t = {
            .body = "mov.u32 %r10, bar; setp.eq.u32 %p0, %r0, 0;\n"
                    "@%p0 mbarrier.init.shared.b64 [%r10], 1;\nbar.sync 0;\n"
                    "@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
                    "[%r10];\n" WAIT("W", "%r10", "0"),
            .shared = buffer};
        expect_finding(&t, 0, "commit-empty", "", "", 4);
        CHECK_TEXT(t.report, "\"verdict\":\"review\"");
    }
    if (test_case("tensor memory that is never freed")) {
        struct trial t = {
            .body = "mov.u32 %r1, buf;\n"
                    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64;\n",
            .shared = buffer,
            .grid = 4};
        expect_finding(&t, 721, "tmem-leak", "", "", 2);
        CHECK_TEXT(t.report, "\"repeats\":3");
    }
}

int main(int argc, char **argv)
{
    uint64_t address = 0;
    test_begin("sim_exec", argc, argv);
    snprintf(report_path, sizeof report_path, "/tmp/sim_exec.%ld.json", (long)getpid());
    setenv("HEWN_SIM_REPORT", report_path, 1);
    setenv("HEWN_SIM_QUIET", "1", 1);
    if (mem_alloc(4 * OUT_WORDS, &address)) return 1;
    out = (uint32_t *)(uintptr_t)address;
    test_divergence();
    test_shfl();
    test_votes();
    test_redux_float();
    test_barriers();
    test_hangs();
    test_parity();
    test_bounded();
    test_locks();
    test_stack();
    test_seeds();
    test_threads();
    test_faults();
    test_left_behind();
    mem_free(address);
    return test_end();
}
