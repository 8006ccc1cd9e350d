/*
 * The checker's judgement of order: small kernels with one bug, each with its repaired twin. A case is
 * one text: a line that begins with '-' is only in the broken kernel, one with '+' only in the
 * repaired; the line that the finding must cite ends with "//!" (either end of the pair where two lines
 * do). Every case runs under several seeds; the verdict may not depend on them.
 */
#include "lib/harness.h"

#include "check/launch_memory.h"
#include "machine/mem.h"
#include "sim/sim_run.h"
#include "async/tmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 12, BUFFER = 1 << 16 };

struct order_case {
    const char *name;
    const char *kind; /* NULL: no bug, only the text as it stands */
    const char *text; /* of the body */
    uint32_t block, cluster, grid;
    bool hopper, review; /* sm_90a; a warning, not an error */
    int level;           /* 0: 1 */
};

/* ---- building and running ---- */

static const char common[] =
    ".shared .align 1024 .b8 tile[8192];\n.shared .align 8 .b64 bar[8];\n"
    ".shared .align 4 .b32 slot;\n"
    ".reg .pred p, q, lead, l0, w0, w1, all;\n.reg .b16 h;\n"
    ".reg .b32 tid, warp, lane, rank, peer, t, a, b, c, v, w, i, taddr, idesc;\n"
    ".reg .b32 r<16>;\n.reg .f32 f<16>;\n.reg .b64 in, out, g, da, db;\n"
    "ld.param.u64 in, [p_in]; ld.param.u64 out, [p_out]; mov.u32 tid, %tid.x;\n"
    "shr.u32 warp, tid, 5; and.b32 lane, tid, 31; mov.u32 rank, %cluster_ctarank;\n"
    "xor.b32 peer, rank, 1; mov.u32 t, tile; shl.b32 a, tid, 2; add.u32 a, a, t;\n"
    "setp.eq.u32 lead, tid, 0; setp.eq.u32 l0, lane, 0; setp.eq.u32 w0, warp, 0;\n"
    "setp.eq.u32 w1, warp, 1; setp.eq.u32 all, tid, tid; mov.b32 v, 7; mov.b32 i, 0;\n";

/* The kernel; *line_a and *line_b: of the lines with marks, 0 none. */
static char *build(const struct order_case *c, bool broken, uint32_t lines[2])
{
    size_t room = strlen(c->text) + sizeof common + 512;
    char *text = malloc(room), *at = text;
    uint32_t line = 1, marks = 0;
    if (!text) abort();
    lines[0] = lines[1] = 0;
    at += snprintf(text, room,
                   ".version 8.8\n.target %s\n.address_size 64\n"
                   ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n%s",
                   c->hopper ? "sm_90a" : "sm_100f", common);
    for (const char *p = text; *p; p++) line += *p == '\n';
    for (const char *p = c->text; *p;) {
        const char *end = strchr(p, '\n');
        size_t n = end ? (size_t)(end - p) + 1 : strlen(p);
        if (*p != (broken ? '+' : '-')) {
            const char *mark = strstr(p, "//!");
            bool skip = *p == '+' || *p == '-';
            memcpy(at, p + skip, n - skip);
            at += n - skip;
            if (mark && mark < p + n && marks < 2) lines[marks++] = line;
            line++;
        }
        p += n;
    }
    memcpy(at, "ret;\n}\n", 8);
    return text;
}

static void *buffers[2]; /* in, out */
/* A map of 256 words behind it, for tensor copies. */
static void put_map(void *at)
{
    const struct tmap t = {.address = (uint64_t)(uintptr_t)buffers[0] + 8192,
                           .dtype = 2,
                           .rank = 1,
                           .dim = {256},
                           .stride = {4},
                           .box = {256},
                           .element_stride = {1}};
    tmap_encode(&t, at);
}

static struct run run_of(const struct order_case *c, uint64_t seed)
{
    return (struct run){.grid = c->grid ? c->grid : c->cluster,
                        .block = c->block,
                        .cluster = c->cluster,
                        .level = c->level,
                        .seed = seed};
}

static int run_text(struct run *r, const char *text)
{
    const uint64_t params[2] = {(uint64_t)(uintptr_t)buffers[0], (uint64_t)(uintptr_t)buffers[1]};
    for (int i = 0; i < 2; i++) memset(buffers[i], 0, BUFFER);
    put_map(buffers[0]);
    put_map((char *)buffers[0] + 4096);
    return run_kernel(r, text, params, sizeof params);
}

static bool cites(const char *findings, const char *kind, uint32_t line)
{
    char key[64], at[32];
    snprintf(key, sizeof key, "\"kind\":\"%s\"", kind);
    snprintf(at, sizeof at, "\"line\":%u,\"launch\"", line);
    for (const char *p = findings; p; p = strchr(p, '\n')) {
        const char *end, *k, *l;
        p += *p == '\n';
        end = strchr(p, '\n');
        k = strstr(p, key);
        l = strstr(p, at);
        if (end && k && l && k < end && l < end) return true;
        if (!*p) break;
    }
    return false;
}

static void run_case(const struct order_case *c)
{
    for (int broken = c->kind ? 1 : 0; broken >= 0; broken--) {
        uint32_t lines[2];
        char *text = build(c, broken, lines);
        if (!test_case("%s, %s", c->name, broken ? "broken" : "repaired")) {
            free(text);
            continue;
        }
        for (uint64_t seed = 0; seed < SEEDS && !test_case_failures(); seed++) {
            struct run r = run_of(c, test_seed() + seed);
            int result = run_text(&r, text);
            const char *verdict = !broken ? "clean" : c->review ? "review" : "error";
            char want[64];
            snprintf(want, sizeof want, "\"verdict\":\"%s\"", verdict);
            CHECK_INT(result, 0);
            CHECK(strstr(r.findings, want), "seed %llu: want %s got %s", (unsigned long long)seed,
                  want, r.findings);
            if (!broken) continue;
            CHECK(cites(r.findings, c->kind, lines[0]) || cites(r.findings, c->kind, lines[1]),
                  "seed %llu: want %s at line %u or %u, got %s", (unsigned long long)seed, c->kind,
                  lines[0], lines[1], r.findings);
        }
        free(text);
    }
}

/* ---- the cases ---- */

#define INIT(n, count) "@lead mbarrier.init.shared::cta.b64 [bar+" #n "], " #count ";\n"
#define INITED         "@lead fence.mbarrier_init.release.cluster;\nbar.sync 0;\n"
#define WAITS(who, n, parity)                                                              \
    "{ .reg .pred done; @!" who " bra passed; again: mbarrier.try_wait.parity.shared::cta" \
    ".b64 done, [bar+" #n "], " #parity "; @!done bra again; passed: }\n"
#define RELAXED_WAITS(who, n, parity)                                                      \
    "{ .reg .pred done; @!" who " bra passed; again: mbarrier.try_wait.parity.relaxed.cta" \
    ".shared::cta.b64 done, [bar+" #n "], " #parity "; @!done bra again; passed: }\n"
#define EXPECT(bytes) "@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " #bytes ";\n"
#define LOAD(who, to, n)                                                            \
    who " mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar+" #n "], 512;\n" who    \
        " cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+" #to \
        "], [in], 512, [bar+" #n "];"
#define CLUSTER_MEETS "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
/* A copy by the tensor map at in; da: a word of that map a thread. */
#define MAP_COPY                                                                          \
    "@lead cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes " \
    "[tile], [in, {i}], [bar]; //!\n"
#define OWN_WORD "cvt.u64.u32 g, tid; shl.b64 g, g, 2; add.u64 da, in, g;\n"
#define STORE    "cp.async.bulk.global.shared::cta.bulk_group [out], [tile], 512;"
/* D of 4 registers, A and B from the tile; no swizzle. */
#define WGMMA_DESC                                                             \
    "shr.u32 b, t, 4; cvt.u64.u32 da, b; or.b64 db, da, 0x0000000800400000;\n" \
    "add.u64 da, db, 0;\n"
#define WGMMA(keep)                                                                    \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {f0,f1,f2,f3}, da, db, " keep \
    ", 1, 1, 0, 0;"
#define WGMMA_SPARSE(keep)                                                                      \
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 {f0,f1,f2,f3}, da, db, w, 0, " keep \
    ", 1, 1, 0, 0;"
/* M 128, N 8, K 16 of bf16; A 4096 bytes, B in the same bytes. */
#define MMA_DESC                                                               \
    "shr.u32 b, t, 4; cvt.u64.u32 da, b; or.b64 da, da, 0x0000400800800000;\n" \
    "mov.b32 idesc, 134349968;\n"
#define MMA(keep) "tcgen05.mma.cta_group::1.kind::f16 [taddr], da, da, idesc, " keep ";"
#define ALLOC                                                                   \
    "@w0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n" \
    "tcgen05.fence::before_thread_sync; bar.sync 0;\n"                          \
    "tcgen05.fence::after_thread_sync; ld.shared.u32 taddr, [slot];\n"
#define DEALLOC "bar.sync 0;\n@w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 32;\n"
#define COMMIT  "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar+8];"
/* This warp's lanes of column 0. */
#define OWN_LANES "shl.b32 b, warp, 21; add.u32 c, taddr, b;\n"

#define WGMMA_DONE  "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
#define WGMMA_ROUND "wgmma.fence.sync.aligned;\n" WGMMA("0") "\n" WGMMA_DONE
/* Every warp stores to its lanes of the columns, and has loaded them again. */
#define LOADED                                          \
    "tcgen05.st.sync.aligned.32x32b.x1.b32 [c], {v};\n" \
    "tcgen05.wait::st.sync.aligned;\n"                  \
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w}, [c];\n" \
    "tcgen05.wait::ld.sync.aligned;\n"

static const struct order_case cases[] = {
    {"shared memory, no barrier", "race",
     "@w0 st.shared.u32 [a], v; //!\n"
     "+bar.sync 0;\n"
     "@w1 ld.shared.u32 w, [a+-128]; //!\n",
     64, 0, 0, 0, 0, 0},
    {"shared memory, the barrier comes too early", "race",
     "bar.sync 0;\n"
     "@w0 st.shared.u32 [a], v; //!\n"
     "+bar.sync 1;\n"
     "@w1 ld.shared.u32 w, [a+-128]; //!\n",
     64, 0, 0, 0, 0, 0},
    {"arrive before the write", "race",
     INIT(0, 32) INITED "-@w0 mbarrier.arrive.shared::cta.b64 _, [bar];\n"
                        "@w0 st.shared.u32 [a], v; //!\n"
                        "+@w0 mbarrier.arrive.shared::cta.b64 _, [bar];\n" WAITS(
                            "w1", 0, 0) "@w1 ld.shared.u32 w, [a+-128]; //!\n",
     64, 0, 0, 0, 0, 0},
    {"relaxed arrive", "race",
     INIT(0, 32) INITED "@w0 st.shared.u32 [a], v; //!\n"
                        "-@w0 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];\n"
                        "+@w0 mbarrier.arrive.release.cta.shared::cta.b64 _, [bar];\n" WAITS(
                            "w1", 0, 0) "@w1 ld.shared.u32 w, [a+-128]; //!\n",
     64, 0, 0, 0, 0, 0},
    {"flag in memory: relaxed store", "race",
     "@lead st.global.u32 [out+64], v; //!\n"
     "-@lead st.relaxed.gpu.global.u32 [out], v;\n"
     "+@lead st.release.gpu.global.u32 [out], v;\n"
     "@!w1 bra over;\n"
     "again: ld.acquire.gpu.global.u32 w, [out]; setp.eq.u32 p, w, 0; @p bra again;\n"
     "ld.global.u32 w, [out+64]; //!\n"
     "over:\n",
     64, 0, 0, 0, 0, 0},
    {"flag in memory: fences around relaxed accesses", "race",
     "@lead st.global.u32 [out+64], v; //!\n"
     "+@lead fence.acq_rel.gpu;\n"
     "@lead red.relaxed.gpu.global.add.u32 [out], v;\n"
     "@!w1 bra over;\n"
     "again: ld.volatile.global.u32 w, [out]; setp.eq.u32 p, w, 0; @p bra again;\n"
     "fence.acq_rel.gpu;\n"
     "ld.global.u32 w, [out+64]; //!\n"
     "over:\n",
     64, 0, 0, 0, 0, 0},
    {"atomics on one word, and plain accesses to one", "race",
     "st.shared.u32 [tile], 0;\nbar.sync 0;\n"
     "red.global.add.u32 [out], v;\nred.shared.add.u32 [tile], v;\n"
     "-@l0 ld.global.u32 w, [out+4]; //!\n"
     "-@l0 st.global.u32 [out+4], w; //!\n",
     64, 0, 0, 0, 0, 0},
    {"threads that store one value to one word", "race",
     "-st.shared.u32 [slot], warp; //!\n"
     "+st.shared.u32 [slot], v;\n",
     64, 0, 0, 0, 0, 0},
    {"bytes side by side", "race",
     "add.u32 b, t, tid;\n"
     "-@w1 add.u32 b, b, -1;\n"
     "cvt.u16.u32 h, tid; st.shared.u8 [b], h; //!\n",
     64, 0, 0, 0, 0, 0},
    {"half of the threads arrive, the others wait", NULL,
     "@w0 st.shared.u32 [a], v;\n"
     "@w0 bar.arrive 1, 64;\n@w1 bar.sync 1, 64;\n"
     "@w1 ld.shared.u32 w, [a+-128];\n",
     64, 0, 0, 0, 0, 0},
    {"cluster: remote store without the cluster barrier", "race",
     "mapa.shared::cluster.u32 b, a, peer;\n" CLUSTER_MEETS "st.shared::cluster.u32 [b], v; //!\n"
     "-barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n"
     "+barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
     "ld.shared.u32 w, [a]; //!\n" CLUSTER_MEETS,
     32, 2, 0, 0, 0, 0},
    {"copy: read before it has landed", "race",
     INIT(0, 1) INITED LOAD("@lead", 0, 0) " //!\n"
                                           "+" WAITS("all", 0, 0) "ld.shared.u32 w, [a]; //!\n"
                                                                  "-" WAITS("all", 0, 0),
     64, 0, 0, 0, 0, 0},
    {"copy: one warp waits, a barrier tells the other", NULL,
     INIT(0, 1)
         INITED LOAD("@lead", 0, 0) "\n" WAITS("w0", 0, 0) "bar.sync 1; ld.shared.u32 w, [a];\n",
     64, 0, 0, 0, 0, 0},
    {"copy: a relaxed wait, a barrier stands for its fence", "race",
     INIT(0, 1) INITED LOAD("@lead", 0, 0) " //!\n" RELAXED_WAITS(
         "w0", 0, 0) "+bar.sync 1;\n"
                     "@w0 ld.shared.u32 w, [a]; //!\n" WAITS("all", 0, 0),
     64, 0, 0, 0, 0, 0},
    {"atomics on memory that nobody wrote: the system's part is cooperative groups'", "uninit",
     "-@lead red.and.relaxed.cta.shared::cta.b32 [slot], 1; //!\n"
     "+mov.u32 b, %reserved_smem_offset_1;\n"
     "+@lead red.and.relaxed.cta.shared::cta.b32 [b], 1;\n",
     32, 0, 0, 0, 0, 0},
    {"two copies on one phase", NULL,
     INIT(0, 2) INITED LOAD("@lead", 0, 0) "\n" LOAD("@lead", 512, 0) "\n" WAITS(
         "all", 0, 0) "ld.shared.u32 w, [a]; ld.shared.u32 w, [a+512];\n",
     32, 0, 0, 0, 0, 0},
    {"copy: does not bring what its thread wrote before", "race",
     INIT(0, 1) INITED
     "@lead st.shared.u32 [slot], v; //!\n"
     "@lead mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 512;\n"
     "@lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [in], 512, "
     "[bar];\n"
     "-@lead mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bar];\n"
     "+@lead mbarrier.arrive.shared::cta.b64 _, [bar];\n" WAITS(
         "w1", 0, 0) "@w1 ld.shared.u32 w, [slot]; //!\n" WAITS("w0", 0, 0),
     64, 0, 0, 0, 0, 0},
    {"slot handed back before it is read", "async-reuse",
     INIT(0, 1) INIT(8, 32) INITED LOAD("@lead", 0, 0) "\n" WAITS(
         "w1", 0,
         0) "-@w1 mbarrier.arrive.shared::cta.b64 _, [bar+8];\n"
            "@w1 ld.shared.u32 w, [a+-128]; //!\n"
            "+@w1 mbarrier.arrive.shared::cta.b64 _, [bar+8];\n" WAITS("lead", 8, 0)
                EXPECT(512) "@lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                            "[tile], [in], 512, "
                            "[bar]; //!\n" WAITS("all", 0, 1),
     64, 0, 0, 0, 0, 0},
    {"slot refilled behind an arrive without a proxy fence", "proxy",
     INIT(0, 1) INIT(8, 32) INITED LOAD("@lead", 0, 0) "\n" WAITS(
         "w1", 0, 0) "@w1 ld.shared.u32 w, [a+-128];\n"
                     "+@w1 fence.proxy.async.shared::cta;\n"
                     "@w1 mbarrier.arrive.shared::cta.b64 _, [bar+8];\n" WAITS("lead", 8, 0) EXPECT(
                         512) "@lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                              "[tile], [in], 512, "
                              "[bar]; //!\n" WAITS("all", 0, 1),
     64, 0, 0, 0, 1, 2},
    {"the same, as practice has it", NULL,
     INIT(0, 1) INIT(8, 32) INITED LOAD("@lead", 0, 0) "\n" WAITS(
         "w1", 0, 0) "@w1 ld.shared.u32 w, [a+-128];\n"
                     "@w1 mbarrier.arrive.shared::cta.b64 _, [bar+8];\n" WAITS("lead", 8, 0)
                         LOAD("@lead", 0, 0) "\n" WAITS("all", 0, 1),
     64, 0, 0, 0, 0, 0},
    {"bulk store of what was just stored, no proxy fence", "proxy",
     "st.shared.u32 [a], v; //!\n"
     "+fence.proxy.async.shared::cta;\n"
     "bar.sync 0;\n@lead " STORE " //!\n"
     "@lead cp.async.bulk.commit_group;\n@lead cp.async.bulk.wait_group 0;\n",
     128, 0, 0, 0, 0, 0},
    {"the proxy fence of another thread, ahead of the barrier", "proxy",
     "st.shared.u32 [a], v; //!\n"
     "-@lead fence.proxy.async.shared::cta;\n"
     "bar.sync 0;\n"
     "+@lead fence.proxy.async.shared::cta;\n"
     "@lead " STORE " //!\n"
     "@lead cp.async.bulk.commit_group;\n@lead cp.async.bulk.wait_group 0;\n",
     128, 0, 0, 0, 0, 0},
    {"bulk store, staging written again", "async-reuse",
     "@lead " STORE " //!\n"
     "@lead cp.async.bulk.commit_group;\n"
     "+@lead cp.async.bulk.wait_group.read 0;\n"
     "bar.sync 0;\nst.shared.u32 [a], v; //!\n"
     "@lead cp.async.bulk.wait_group 0;\n",
     128, 0, 0, 0, 0, 0},
    {"bulk store read back in the kernel", "race",
     "@lead " STORE " //!\n"
     "@lead cp.async.bulk.commit_group;\n"
     "-@lead cp.async.bulk.wait_group.read 0;\n"
     "+@lead cp.async.bulk.wait_group 0;\n"
     "bar.sync 0;\nld.global.u32 w, [out]; //!\n"
     "@lead cp.async.bulk.wait_group 0;\n",
     64, 0, 0, 0, 0, 0},
    {"cp.async without its wait", "race",
     "cp.async.ca.shared.global [a], [in], 4; //!\n"
     "cp.async.commit_group;\n"
     "-cp.async.wait_group 1;\n"
     "+cp.async.wait_group 0;\n"
     "bar.sync 0;\nld.shared.u32 w, [a]; //!\n"
     "cp.async.wait_all;\n",
     64, 0, 0, 0, 0, 0},
    {"cp.async: the wait shows it to its own thread only", "race",
     "cp.async.ca.shared.global [a], [in], 4; //!\n"
     "cp.async.wait_all;\n"
     "+bar.sync 0;\n"
     "xor.b32 b, a, 128; ld.shared.u32 w, [b]; //!\n",
     64, 0, 0, 0, 0, 0},
    {"cp.async by way of an mbarrier", NULL,
     INIT(0, 64) INITED "cp.async.ca.shared.global [a], [in], 4;\n"
                        "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n" WAITS(
                            "all", 0, 0) "xor.b32 b, a, 128; ld.shared.u32 w, [b];\n",
     64, 0, 0, 0, 0, 0},
    {"mbarrier used by another warp before any barrier", "mbarrier-init-order",
     INIT(0, 32) "-@w1 nanosleep.u32 20000;\n"
                 "+bar.sync 0;\n"
                 "@w1 mbarrier.arrive.shared::cta.b64 _, [bar]; //!\n",
     64, 0, 0, 0, 0, 0},
    {"fence.mbarrier_init by another thread", "mbarrier-init-order",
     INIT(0, 64) "setp.eq.u32 q, tid, 5;\n"
                 "-@q fence.mbarrier_init.release.cluster;\n"
                 "+@lead fence.mbarrier_init.release.cluster;\n"
                 "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n"
                 "mov.u32 b, bar; mapa.shared::cluster.u32 b, b, peer;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [b]; //!\n" CLUSTER_MEETS,
     64, 2, 0, 0, 0, 0},
    {"store over a live mbarrier", "mbarrier-clobber",
     INIT(0, 1) INITED "+@lead mbarrier.inval.shared::cta.b64 [bar];\n"
                       "@lead st.shared.u64 [bar], da; //!\n",
     32, 0, 0, 0, 0, 0},
    {"wgmma on what was just stored, no proxy fence", "proxy",
     WGMMA_DESC "st.shared.u32 [a], v; //!\n"
                "+fence.proxy.async.shared::cta;\n"
                "bar.sync 0;\nwgmma.fence.sync.aligned;\n" WGMMA("0") " //!\n" WGMMA_DONE,
     128, 0, 0, 1, 0, 0},
    {"wgmma: D read before the wait", "wgmma-wait",
     WGMMA_DESC "wgmma.fence.sync.aligned;\n" WGMMA("0") "\n"
                                                         "wgmma.commit_group.sync.aligned;\n"
                                                         "-wgmma.wait_group.sync.aligned 1;\n"
                                                         "+wgmma.wait_group.sync.aligned 0;\n"
                                                         "add.f32 f4, f0, f1; //!\n"
                                                         "wgmma.wait_group.sync.aligned 0;\n",
     128, 0, 0, 1, 0, 0},
    {"sparse wgmma: D read before the wait", "wgmma-wait",
     WGMMA_DESC "mov.b32 w, 0x44444444; wgmma.fence.sync.aligned;\n" WGMMA_SPARSE(
         "0") "\n"
              "wgmma.commit_group.sync.aligned;\n"
              "+wgmma.wait_group.sync.aligned 0;\n"
              "add.f32 f4, f0, f1; //!\n"
              "wgmma.wait_group.sync.aligned 0;\n",
     128, 0, 0, 1, 0, 0},
    {"wgmma: D written after the fence", "wgmma-fence",
     WGMMA_DESC "-wgmma.fence.sync.aligned;\n"
                "mov.f32 f0, 0f00000000;\nmov.f32 f1, f0;\nmov.f32 f2, f0;\nmov.f32 f3, f0;\n"
                "+wgmma.fence.sync.aligned;\n" WGMMA("1") " //!\n" WGMMA("1") "\n" WGMMA_DONE,
     128, 0, 0, 1, 0, 0},
    {"wgmma: operands written again before the wait", "wgmma-wait",
     WGMMA_DESC "wgmma.fence.sync.aligned;\n" WGMMA("0") " //!\n"
                                                         "wgmma.commit_group.sync.aligned;\n"
                                                         "+wgmma.wait_group.sync.aligned 0;\n"
                                                         "bar.sync 0;\nst.shared.u32 [a], v; //!\n"
                                                         "wgmma.wait_group.sync.aligned 0;\n",
     128, 0, 0, 1, 0, 0},
    {"tensor map written, then used with no fence", "tensormap-proxy",
     INIT(0, 1) INITED OWN_WORD
     "ld.global.u32 w, [da+4096]; st.global.u32 [da], w; //!\n"
     "+fence.proxy.tensormap::generic.release.cta;\n"
     "bar.sync 0;\n"
     "+@lead fence.proxy.tensormap::generic.acquire.cta [in], 128;\n" EXPECT(1024)
         MAP_COPY WAITS("all", 0, 0),
     32, 0, 0, 0, 0, 0},
    {"tensor map written while a copy uses it", "tensormap-proxy",
     INIT(0, 1) INITED OWN_WORD "ld.global.u32 w, [da+4096];\n" EXPECT(1024) MAP_COPY
     "+" WAITS("all", 0, 0) "st.global.u32 [da], w; //!\n"
                            "-" WAITS("all", 0, 0),
     32, 0, 0, 0, 0, 0},
    {"two CTAs write the same words", "race",
     "mov.u32 b, %ctaid.x; mad.lo.u32 b, b, 32, tid;\n"
     "-and.b32 b, b, 31;\n"
     "mul.wide.u32 g, b, 4; add.u64 g, g, out; mov.u32 w, %ctaid.x; st.global.u32 [g], w; //!\n"
     "st.global.u32 [out+512], 1; st.global.u32 [out+516], v;\n",
     32, 0, 4, 0, 0, 0},
    {"a CTA reads what another writes", "race",
     "mov.u32 b, %ctaid.x; mul.wide.u32 g, b, 4; add.u64 g, g, out;\n"
     "@lead st.global.u32 [g], v; //!\n"
     "-@lead ld.global.u32 w, [out+4]; //!\n"
     "+@lead ld.global.u32 w, [g];\n",
     32, 0, 4, 0, 0, 0},
    {"CTAs add to one word, and write bytes side by side", NULL,
     "mov.u32 b, %ctaid.x; cvt.u64.u32 g, b; add.u64 g, g, out;\n"
     "red.global.add.u32 [out+512], v;\n"
     "@lead st.global.u8 [g], v; @lead st.global.u8 [g+4], v; ld.global.u8 w, [in];\n",
     64, 0, 4, 0, 0, 0},
    {"the last CTA reads what the others wrote, by way of a counter", NULL,
     "mov.u32 b, %ctaid.x; mul.wide.u32 g, b, 4; add.u64 g, g, out;\n"
     "@lead st.global.u32 [g+64], v; fence.acq_rel.gpu; bar.sync 0;\n"
     "@lead atom.global.add.u32 w, [out], 1; setp.eq.and.u32 p, w, 3, lead;\n"
     "fence.acq_rel.gpu;\n@p ld.global.u32 w, [out+64]; @p ld.global.u32 w, [out+76];\n",
     64, 0, 4, 0, 0, 0},
    {"tcgen05.st, then ld of the same columns", "tmem-wait",
     ALLOC OWN_LANES "tcgen05.st.sync.aligned.32x32b.x1.b32 [c], {v}; //!\n"
                     "+tcgen05.wait::st.sync.aligned;\n"
                     "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w}, [c]; //!\n"
                     "tcgen05.wait::ld.sync.aligned;\ntcgen05.wait::st.sync.aligned;\n" DEALLOC,
     128, 0, 0, 0, 0, 0},
    {"tcgen05: D read with no wait for the commit", "tmem-race",
     INIT(8, 1) INITED ALLOC MMA_DESC OWN_LANES "@lead " MMA(
         "0") " //!\n@lead " COMMIT "\n"
              "+" WAITS("all", 8, 0) "tcgen05.fence::after_thread_sync;\n"
                                     "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w}, [c]; //!\n"
                                     "tcgen05.wait::ld.sync.aligned;\n"
                                     "-" WAITS("all", 8, 0) DEALLOC,
     128, 0, 0, 0, 0, 0},
    {"tcgen05: no fence behind the completion barrier", "tmem-wait",
     INIT(8, 1) INITED ALLOC MMA_DESC OWN_LANES "@lead " MMA("0") "\n@lead " COMMIT "\n" WAITS(
         "all", 8, 0) "+tcgen05.fence::after_thread_sync;\n"
                      "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w}, [c]; //!\n"
                      "tcgen05.wait::ld.sync.aligned;\n" DEALLOC,
     128, 0, 0, 0, 1, 2},
    {"tcgen05: sum begun on what nobody wrote", "tmem-uninit",
     INIT(8, 1) INITED ALLOC MMA_DESC
     "-@lead " MMA("1") " //!\n"
                        "+@lead " MMA("0") "\n"
                                           "@lead " COMMIT "\n" WAITS("all", 8, 0) DEALLOC,
     128, 0, 0, 0, 0, 0},
    {"tcgen05: columns freed under another warp's load", "tmem-dealloc",
     ALLOC OWN_LANES "tcgen05.st.sync.aligned.32x32b.x1.b32 [c], {v};\n"
                     "tcgen05.wait::st.sync.aligned;\n"
                     "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w}, [c]; //!\n"
                     "+tcgen05.wait::ld.sync.aligned;\n"
                     "bar.sync 0;\n"
                     "@w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 32; //!\n"
                     "tcgen05.wait::ld.sync.aligned;\n",
     128, 0, 0, 0, 0, 0},
    {"tcgen05: columns freed after use of what was loaded, no wait", "tmem-wait",
     ALLOC OWN_LANES "tcgen05.st.sync.aligned.32x32b.x1.b32 [c], {v};\n"
                     "tcgen05.wait::st.sync.aligned;\n"
                     "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w}, [c]; //!\n"
                     "+tcgen05.wait::ld.sync.aligned;\n"
                     "add.u32 v, w, 1;\nbar.sync 0;\n"
                     "@w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 32; //!\n",
     128, 0, 0, 0, 1, 2},
    {"tcgen05: operands refilled with no wait for the commit", "async-reuse",
     INIT(0, 1) INIT(8, 1)
         INITED ALLOC MMA_DESC LOAD("@lead", 0, 0) "\n" WAITS("w0", 0, 0) "@lead " MMA(
             "0") " //!\n@lead " COMMIT "\n"
                  "+" WAITS("w0", 8, 0) EXPECT(
                      512) "@lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                           "[tile], [in], 512, "
                           "[bar]; //!\n" WAITS("w0", 0, 1) "-" WAITS("w0", 8, 0) DEALLOC,
     128, 0, 0, 0, 0, 0},
    {"one thread of a warpgroup frees the stage that its four warps waited for", NULL,
     INIT(0, 1) INITED WGMMA_DESC LOAD("@lead", 0, 0) "\n" WAITS("all", 0, 0)
         WGMMA_ROUND LOAD("@lead", 0, 0) "\n" WAITS("all", 0, 1) WGMMA_ROUND,
     128, 0, 0, 1, 0, 0},
    {"sparse wgmma reads half as much of A as of B", NULL,
     WGMMA_DESC
     "st.shared.u32 [a+3584], v; mov.b32 w, 0x44444444; wgmma.fence.sync.aligned;\n"
     "{ .reg .pred scale; setp.ne.u32 scale, i, 0;\n"
     "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 {f0,f1,f2,f3}, da, db, w, 0, "
     "scale, 1, 1, 0, 0; }\n" WGMMA_DONE,
     128, 0, 0, 1, 0, 0},
    {"one instruction's lanes arrive in both CTAs", NULL,
     INIT(0, 2) "@lead fence.mbarrier_init.release.cluster;\n" CLUSTER_MEETS
                "setp.lt.u32 q, lane, 2; and.b32 c, lane, 1; mov.u32 b, bar;\n"
                "mapa.shared::cluster.u32 b, b, c;\n"
                "@q mbarrier.arrive.release.cluster.shared::cluster.b64 _, [b];\n" WAITS(
                    "all", 0, 0) "@q mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
                                 "[b];\n" WAITS("all", 0, 1) CLUSTER_MEETS,
     32, 2, 0, 0, 0, 0},
    {"a CTA exits while its multicast still writes to the other", NULL,
     INIT(0, 1) "@lead fence.mbarrier_init.release.cluster;\n" EXPECT(512) CLUSTER_MEETS
     "setp.eq.and.u32 q, rank, 0, lead; mov.b16 h, 3;\n"
     "@q "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
     "[tile], [in], 512, [bar], h;\n" WAITS("all", 0, 0),
     32, 2, 0, 0, 0, 0},
    {"answer of try_cancel read with no wait", "race",
     INIT(0, 1) INITED EXPECT(
         16) "@lead "
             "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
             "[tile], [bar]; //!\n"
             "-@lead ld.shared.u32 w, [t]; //!\n" WAITS("all", 0, 0) "ld.shared.u32 w, [t];\n",
     32, 0, 0, 0, 0, 0},
    {"tcgen05: columns freed behind a relaxed cluster barrier", NULL,
     ALLOC OWN_LANES LOADED
     "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n"
     "@w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 32;\n",
     128, 0, 0, 0, 0, 0},
    {"tcgen05: columns freed once the warps that read them have exited", NULL,
     ALLOC OWN_LANES LOADED
     "@!w0 exit;\nbarrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
     "tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 32;\n",
     128, 0, 0, 0, 0, 0},
};

/* ---- a launch that may begin before the one before has ended ---- */

static void run_dependent(const char *name, bool broken)
{
    static const char writer[] = "st.global.u32 [out], v;\n";
    static const char *const readers[] = {
        "griddepcontrol.launch_dependents;\n@w0 griddepcontrol.wait;\nbar.sync 0;\n"
        "@w1 ld.global.u32 w, [out];\n",
        "ld.global.u32 w, [out]; //!\ngriddepcontrol.wait;\n"};
    struct order_case c = {.text = writer, .block = 32};
    uint32_t lines[2];
    struct launch_memory *before = NULL;
    struct run first, second;
    char *text;
    if (!test_case("%s, %s", name, broken ? "broken" : "repaired")) return;
    text = build(&c, false, lines);
    first = run_of(&c, 1);
    first.after = &before;
    CHECK_INT(run_text(&first, text), 0);
    free(text);
    c.text = readers[broken];
    c.block = 64;
    text = build(&c, false, lines);
    second = run_of(&c, 1);
    second.before = before;
    CHECK_INT(run_text(&second, text), 0);
    CHECK(broken == cites(second.findings, "race", lines[0]), "want %s got %s",
          broken ? "race" : "clean", second.findings);
    free(text);
    launch_memory_free(before);
}

int main(int argc, char **argv)
{
    test_begin("sim_check", argc, argv);
    if (!run_begin()) {
        perror("sim_check");
        return 1;
    }
    for (int i = 0; i < 2; i++) buffers[i] = run_alloc(BUFFER);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&cases[i]);
    run_dependent("a dependent launch reads before griddepcontrol.wait", true);
    run_dependent("a dependent launch reads before griddepcontrol.wait", false);
    run_end();
    mem_reset();
    return test_end();
}
