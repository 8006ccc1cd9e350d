/*
 * The simulator without its observers and its driver: what parses, decodes and executes runs a kernel alone,
 * whether or not somebody takes the findings. Linked from the rooms ptx to ops (tests.mk).
 */
#include "lib/harness.h"
#include "machine/mem.h"
#include "ops/table.h"

#include <stdio.h>
#include <string.h>

enum { WORDS = 64 };

static const struct gpu gpu = {.name = "test",
                               .cc_major = 10,
                               .sm_count = 2,
                               .shared_optin = 232448,
                               .shared_per_sm = 233472,
                               .regs_per_sm = 65536,
                               .threads_per_sm = 2048,
                               .ctas_per_sm = 32,
                               .clock_khz = 1000000};

/* The findings of a launch: how many, and the last one. */
struct counter {
    struct finding_sink sink; /* first */
    int count;
    struct finding last;
};

static void count(struct finding_sink *s, const struct finding *f)
{
    struct counter *c = (struct counter *)s;
    c->count++;
    c->last = *f;
}

/* Runs two CTAs of 32 threads; `out` points to WORDS words. The launch's result, -1 where it does not load. */
static int run(const char *body, const uint32_t *out, struct finding_sink *sink)
{
    char text[4096];
    struct ptx_module *m = NULL;
    struct kernel *k = NULL;
    struct ptx_diag diag = {""};
    _Alignas(64) uint8_t params[64] = {0};
    int result = -1;
    int n = snprintf(text, sizeof text,
                     ".version 8.8\n.target sm_100a\n.address_size 64\n"
                     ".visible .entry k(.param .u64 out)\n{\n"
                     ".reg .pred %%p<4>; .reg .b32 %%r<8>; .reg .b64 %%d<8>;\n"
                     ".shared .align 128 .b8 tile[128]; .shared .align 8 .b64 ready;\n"
                     "ld.param.u64 %%d0, [out];\nmov.u32 %%r0, %%tid.x;\nmov.u32 %%r1, %%ctaid.x;\n"
                     "mad.lo.u32 %%r2, %%r1, 32, %%r0;\nmad.wide.u32 %%d1, %%r2, 4, %%d0;\n%s\n}\n",
                     body);
    memcpy(params, &out, sizeof out);
    if (n >= (int)sizeof text || ptx_parse(text, (size_t)n, &m, &diag) ||
        kernel_decode(m, &m->entries[0], op_binders, &k, &diag) || k->unsupported) {
        CHECK(false, "the kernel does not load: %s", diag.text);
    } else {
        struct launch l = {.kernel = k,
                           .gpu = &gpu,
                           .hooks = &op_hooks,
                           .grid = {2, 1, 1},
                           .block = {32, 1, 1},
                           .cluster = {1, 1, 1},
                           .params = params,
                           .param_bytes = 8,
                           .sm_count = 2,
                           .host_threads = 1,
                           .seed = test_seed(),
                           .sink = sink};
        result = launch_run(&l);
    }
    if (k) kernel_free(k);
    if (m) ptx_module_free(m);
    return result;
}

static void test_memory(uint32_t *out)
{
    if (test_case("registers to global memory")) {
        CHECK_INT(run("mad.lo.u32 %r3, %r2, 3, 7;\nst.global.u32 [%d1], %r3;\nret;", out, NULL), 0);
        for (uint32_t i = 0; i < WORDS; i++) CHECK_INT(out[i], 3 * i + 7);
    }
    if (test_case("a bulk copy in flight and the mbarrier that counts it")) {
        for (uint32_t i = 0; i < WORDS; i++) out[i] = 100 + i;
        CHECK_INT(run("setp.ne.u32 %p0, %r0, 0;\n"
                      "@!%p0 mbarrier.init.shared::cta.b64 [ready], 1;\n"
                      "bar.sync 0;\n"
                      "mad.wide.u32 %d2, %r1, 128, %d0;\n"
                      "@!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [ready], 128;\n"
                      "@!%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                      "[tile], [%d2], 128, [ready];\n"
                      "again: mbarrier.try_wait.parity.shared::cta.b64 %p1, [ready], 0;\n"
                      "@!%p1 bra again;\n"
                      "mov.u32 %r3, tile;\nshl.b32 %r4, %r0, 2;\nadd.u32 %r3, %r3, %r4;\n"
                      "ld.shared.u32 %r5, [%r3];\nadd.u32 %r5, %r5, 1000;\n"
                      "st.global.u32 [%d1], %r5;\nret;",
                      out, NULL),
                  0);
        for (uint32_t i = 0; i < WORDS; i++) CHECK_INT(out[i], 1100 + i);
    }
}

static void test_faults(uint32_t *out)
{
    static const char *const outside = "add.u64 %d1, %d1, 4096;\nst.global.u32 [%d1], %r2;\nret;";
    static const char *const hang =
        "setp.ne.u32 %p0, %r0, 0;\n@!%p0 mbarrier.init.shared::cta.b64 [ready], 1;\nbar.sync 0;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 %p1, [ready], 0;\n@!%p1 bra again;\nret;";
    struct counter c;
    if (test_case("a fault, with a sink for findings and without")) {
        c = (struct counter){.sink = {.add = count}};
        CHECK_INT(run(outside, out, NULL), 700);
        CHECK_INT(run(outside, out, &c.sink), 700);
        CHECK(c.count > 0, "no finding");
        CHECK_INT(c.last.kind, FIND_OOB);
    }
    if (test_case("a deadlock that nobody explains")) {
        c = (struct counter){.sink = {.add = count}};
        CHECK_INT(run(hang, out, NULL), 702);
        CHECK_INT(run(hang, out, &c.sink), 702);
        CHECK_INT(c.last.kind, FIND_DEADLOCK);
        CHECK_TEXT(c.last.message, "no warp can run any more");
    }
}

int main(int argc, char **argv)
{
    uint64_t address = 0;
    uint32_t *out;
    test_begin("sim_bare", argc, argv);
    if (mem_alloc(4 * WORDS, &address)) return 1;
    out = (uint32_t *)(uintptr_t)address;
    test_memory(out);
    test_faults(out);
    mem_reset();
    return test_end();
}
