/*
 * rates: measures on a GPU of compute capability 9.0 what the cycle model needs to know of it
 * (tools/sim/trace/model.c): bulk copies alone and in flight, from L2 and from device memory, on one
 * SM and on all; wgmma back to back; the clock under that load; a CTA's turn-around. Also how fast rows
 * at random come (rates_rows.c), which bounds lists of MLA.
 */
#include "lib/harness.h"
#include "rates.h"
#include "wgmma_loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char copy_text[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".extern .shared .align 1024 .b8 smem[];\n"
    ".visible .entry k(.param .u64 out, .param .u64 base, .param .u64 span, .param .u32 chunk, "
    ".param .u32 stages, .param .u32 n)\n{\n"
    " .shared .align 8 .b64 bar[32];\n"
    " .reg .pred p, q; .reg .b32 %r<24>; .reg .b64 %d<24>;\n"
    " mov.u32 %r0, %tid.x; setp.ne.u32 p, %r0, 0; @p bra end;\n"
    " ld.param.u64 %d0, [out]; ld.param.u64 %d1, [base]; ld.param.u64 %d2, [span];\n"
    " ld.param.u32 %r1, [chunk]; ld.param.u32 %r2, [stages]; ld.param.u32 %r3, [n];\n"
    " mov.u32 %r4, bar; mov.u32 %r5, smem; mov.u32 %r6, 0;\n"
    "init: shl.b32 %r7, %r6, 3; add.u32 %r7, %r4, %r7; mbarrier.init.shared.b64 [%r7], 1;\n"
    " add.u32 %r6, %r6, 1; setp.lt.u32 p, %r6, %r2; @p bra init;\n"
    " fence.mbarrier_init.release.cluster;\n"
    " mov.u32 %r8, %ctaid.x; mul.lo.u32 %r9, %r1, %r3; mul.wide.u32 %d3, %r8, %r9;\n"
    " rem.u64 %d3, %d3, %d2;\n"
    " mov.u64 %d4, %globaltimer; mov.u64 %d5, %clock64;\n"
    " mov.u32 %r6, 0; mov.u32 %r10, 0; mov.u32 %r11, 0;\n" /* i, slot, round */
    "loop: setp.lt.u32 q, %r6, %r2; shl.b32 %r7, %r10, 3; add.u32 %r7, %r4, %r7;\n"
    " @q bra issue;\n"
    " add.u32 %r12, %r11, 1; and.b32 %r12, %r12, 1;\n"
    "wait: mbarrier.try_wait.parity.shared.b64 p, [%r7], %r12; @!p bra wait;\n"
    "issue: mbarrier.arrive.expect_tx.shared.b64 _, [%r7], %r1;\n"
    " mad.lo.u32 %r13, %r10, %r1, %r5; add.u64 %d6, %d1, %d3;\n"
    " cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r13], [%d6], %r1, "
    "[%r7];\n"
    " cvt.u64.u32 %d7, %r1; add.u64 %d3, %d3, %d7; setp.ge.u64 p, %d3, %d2; @p mov.u64 %d3, 0;\n"
    " add.u32 %r10, %r10, 1; setp.eq.u32 p, %r10, %r2; @p mov.u32 %r10, 0;\n"
    " @p add.u32 %r11, %r11, 1;\n"
    " add.u32 %r6, %r6, 1; setp.lt.u32 p, %r6, %r3; @p bra loop;\n"
    " mov.u32 %r6, 0;\n" /* the last of every slot */
    "drain: shl.b32 %r7, %r10, 3; add.u32 %r7, %r4, %r7; add.u32 %r12, %r11, 1; and.b32 %r12, "
    "%r12, 1;\n"
    "last: mbarrier.try_wait.parity.shared.b64 p, [%r7], %r12; @!p bra last;\n"
    " add.u32 %r10, %r10, 1; setp.eq.u32 p, %r10, %r2; @p mov.u32 %r10, 0;\n"
    " @p add.u32 %r11, %r11, 1;\n"
    " add.u32 %r6, %r6, 1; setp.lt.u32 p, %r6, %r2; @p bra drain;\n"
    " mov.u64 %d8, %clock64; mov.u64 %d9, %globaltimer; sub.u64 %d8, %d8, %d5;\n"
    " mul.wide.u32 %d10, %r8, 32; add.u64 %d0, %d0, %d10;\n"
    " st.global.v2.u64 [%d0], {%d8, %d4}; st.global.u64 [%d0+16], %d9;\n"
    "end: ret;\n}\n";

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool load(struct device *d, const char *text, uint32_t shared, void **k)
{
    int (*load_data)(void **, const void *), (*get)(void **, void *, const char *);
    void *symbol = hewn_driver_symbol(d->driver, "cuModuleLoadData"), *module = NULL;
    hewn_error err;
    memcpy(&load_data, &symbol, sizeof load_data);
    symbol = hewn_driver_symbol(d->driver, "cuModuleGetFunction");
    memcpy(&get, &symbol, sizeof get);
    return load_data && get && !load_data(&module, text) && !get(k, module, "k") &&
           !hewn_function_allow_shared(d->context, (hewn_function)*k, shared, &err);
}

bool measure(struct device *d, hewn_deviceptr out, hewn_deviceptr base, struct job j,
             struct answer *answer)
{
    static uint64_t result[MAX_CTAS][RESULTS];
    uint64_t first = UINT64_MAX, last = 0;
    void *params[] = {&out, &base, &j.span, &j.chunk, &j.stages, &j.n, j.map};
    hewn_launch_desc desc = {.struct_size = sizeof desc,
                             .grid = {j.ctas, 1, 1},
                             .block = {j.threads, 1, 1},
                             .dynamic_shared = j.shared};
    const uint64_t *middle = result[j.ctas / 2];
    hewn_error err;
    void *k = NULL;
    if (d->info.simulated)
        j.n = j.n / 100 + j.stages; /* its times mean nothing: see that all runs */
    if (!load(d, j.text, j.shared, &k)) return false;
    for (int run = 0; run < 2; run++) {
        if (hewn_function_launch(d->context, (hewn_function)k, &desc, params, &err) ||
            d->synchronize())
            return false;
    }
    if (d->to_host(result, out, sizeof result)) return false;
    for (uint32_t i = 0; i < j.ctas; i++) {
        if (result[i][1] < first) first = result[i][1];
        if (result[i][2] > last) last = result[i][2];
    }
    qsort(result, j.ctas, sizeof result[0], ascending);
    answer->cycles = (double)middle[0];
    answer->nanoseconds = (double)(last - first);
    answer->clock_mhz = 1e3 * answer->cycles / (double)(middle[2] - middle[1]);
    return true;
}

/* ---- what is asked ---- */

/* TOUCHED: what a run reads at least when it is to find nothing in L2 (60 MiB) that the run before left. */
enum { KIB = 1024, L2_SPAN = 24 << 20, TOUCHED = 256 << 20 };

static bool copies(struct device *d, hewn_deviceptr out, hewn_deviceptr base, uint64_t whole,
                   const char *what, uint32_t ctas, uint32_t chunk, uint32_t stages, uint32_t n)
{
    static const char *const from[] = {"L2", "memory"};
    for (int memory = 0; memory < 2; memory++) {
        uint32_t least = TOUCHED / (chunk * ctas), steps = memory && n < least ? least : n;
        struct job job = {.text = copy_text,
                          .span = memory ? whole : L2_SPAN,
                          .chunk = chunk,
                          .stages = stages,
                          .n = steps,
                          .ctas = ctas,
                          .threads = 32,
                          .shared = 200 * KIB};
        struct answer a;
        double bytes = (double)chunk * steps;
        if (!measure(d, out, base, job, &a)) return false;
        printf(
            "%-10s %-6s %3u CTAs %3u KiB x %2u: %8.1f cycles a copy, %6.1f B/cycle an SM, %8.1f in "
            "all, %4.0f MHz, %.2f TB/s\n",
            what, from[memory], ctas, chunk / KIB, stages, a.cycles / steps, bytes / a.cycles,
            bytes * ctas / a.cycles, a.clock_mhz, bytes * ctas / a.nanoseconds / 1e3);
    }
    return true;
}

static bool products(struct device *d, hewn_deviceptr out, uint32_t ctas, bool e4m3)
{
    static char text[WGMMA_TEXT];
    for (unsigned depth = 0; depth < 2; depth++) {
        for (uint32_t groups = 2; groups >= 1; groups--) {
            struct job job = {.text = text,
                              .n = depth ? 20000 : 2000,
                              .ctas = ctas,
                              .threads = 128 * groups,
                              .shared = WGMMA_STAGE_BYTES};
            struct answer a;
            wgmma_loop_text(text, e4m3, 1, depth);
            if (!measure(d, out, 0, job, &a)) return false;
            printf("wgmma %s x 4, %u in flight behind, %u warpgroups, %3u CTAs: %7.1f cycles, "
                   "%4.0f MHz\n",
                   e4m3 ? "m64n256k32 e4m3" : "m64n256k16 bf16", depth, groups, ctas,
                   a.cycles / job.n, a.clock_mhz);
        }
    }
    return true;
}

static bool turn_around(struct device *d, hewn_deviceptr out, hewn_deviceptr base, uint32_t sms)
{
    double time[2];
    for (int i = 0; i < 2; i++) {
        struct job job = {.text = copy_text,
                          .span = L2_SPAN,
                          .chunk = 16,
                          .stages = 1,
                          .n = 1,
                          .ctas = sms * (i ? 20 : 10),
                          .threads = 384,
                          .shared = 200 * KIB};
        struct answer a;
        if (!measure(d, out, base, job, &a)) return false;
        time[i] = a.nanoseconds;
    }
    printf("a CTA of 384 threads and 200 KiB, one small copy: %.0f ns from one to the next on its "
           "SM\n",
           (time[1] - time[0]) / 10);
    return true;
}

int main(void)
{
    struct device d;
    hewn_error err = {0};
    hewn_deviceptr out = 0, base = 0;
    uint64_t whole = (uint64_t)4 << 30;
    uint32_t sms;
    int rc = 1;
    if (!device_open(&d, &err)) {
        fprintf(stderr, "rates: %s\n", err.message);
        return 1;
    }
    sms = (uint32_t)d.info.sm_count;
    printf("%s, %u SMs\n", d.info.name, sms);
    if (d.info.simulated) whole = 64 << 20;
    if (d.mem_alloc(&out, MAX_CTAS * RESULTS * sizeof(uint64_t)) || d.mem_alloc(&base, whole))
        goto done;
    if (copies(&d, out, base, whole, "alone", 1, 16 * KIB, 1, 200) &&
        copies(&d, out, base, whole, "alone", 1, 48 * KIB, 1, 200) &&
        copies(&d, out, base, whole, "in flight", 1, 16 * KIB, 12, 2000) &&
        copies(&d, out, base, whole, "in flight", 1, 48 * KIB, 4, 1000) &&
        copies(&d, out, base, whole, "in flight", sms, 16 * KIB, 12, 2000) &&
        copies(&d, out, base, whole, "in flight", sms, 48 * KIB, 4, 600) &&
        products(&d, out, 1, false) && products(&d, out, sms, false) &&
        products(&d, out, sms, true) && turn_around(&d, out, base, sms) &&
        rates_of_rows(&d, out, base, whole, sms))
        rc = 0;
done:
    if (rc) fprintf(stderr, "rates: a step failed\n");
    device_close(&d);
    return rc;
}
