/*
 * PTX for sm_1x on a later GPU: f32 arithmetic flushes subnormals to zeros of their sign, and mad.f32 rounds once. ptxas
 * 13.0 makes of it the machine code of the .ftz forms and of fma.rn.ftz. The same text for sm_90 keeps subnormals.
 */
#include "lib/harness.h"
#include "sim_run.h"

#include <stdio.h>
#include <string.h>

enum { INPUTS = 3, CASES = 9 };

static const struct {
    const char *ptx; /* of %f0, %f1, %f2 to %f3 */
    uint32_t in[INPUTS];
    uint32_t old, plain; /* for sm_10, and for sm_90; 0 there: no such form */
} cases[CASES] = {
    {"add.f32 %f3, %f0, %f1;", {0x00400000, 0x00400000}, 0, 0x00800000},
    {"add.rz.f32 %f3, %f0, %f1;", {0x80400000, 0x80000000}, 0x80000000, 0x80400000},
    {"mul.f32 %f3, %f0, %f1;", {0x80800000, 0x3F000000}, 0x80000000, 0x80400000},
    {"max.f32 %f3, %f0, %f1;", {0x00400000, 0x80000000}, 0, 0x00400000},
    {"abs.f32 %f3, %f0;", {0x80400000}, 0, 0x00400000},
    {"setp.gt.f32 %p, %f0, 0f00000000; selp.f32 %f3, %f1, %f2, %p;",
     {0x00400000, 0x3F800000, 0x40000000},
     0x40000000,
     0x3F800000},
    /* (1 + 2^-23)^2 - 1 - 2^-22 is 2^-46 in one rounding, and 0 in two */
    {"mad.f32 %f3, %f0, %f0, %f1;", {0x3F800001, 0xBF800002}, 0x28800000, 0},
    {"mad.f32 %f3, %f0, %f1, %f2;", {0x00800000, 0x3F000000, 0x00000000}, 0, 0},
    {"mov.f32 %f3, %f0;", {0x00400000}, 0x00400000, 0x00400000},
};

static void check(struct run *r, size_t i, const char *target, const char *version, uint32_t want)
{
    uint32_t *in = run_alloc(sizeof cases[i].in), *out = run_alloc(sizeof *out);
    const void *params[] = {in, out};
    char text[1024];
    memcpy(in, cases[i].in, sizeof cases[i].in);
    *out = 0xDEADBEEF;
    snprintf(text, sizeof text,
             "%s.entry k(.param .u64 a, .param .u64 d)\n{\n"
             ".reg .f32 %%f<4>; .reg .u64 %%r<2>; .reg .pred %%p;\n"
             "ld.param.u64 %%r0, [a]; ld.param.u64 %%r1, [d];\n"
             "ld.global.f32 %%f0, [%%r0]; ld.global.f32 %%f1, [%%r0+4]; ld.global.f32 %%f2, "
             "[%%r0+8];\n%s\nst.global.f32 [%%r1], %%f3;\nexit;\n}\n",
             version, cases[i].ptx);
    CHECK_INT(run_kernel(r, text, params, sizeof params), 0);
    CHECK(*out == want, "%s for %s: want 0x%08x got 0x%08x", cases[i].ptx, target, want, *out);
    run_free(in);
    run_free(out);
}

int main(int argc, char **argv)
{
    static struct run r;
    test_begin("sim_flush", argc, argv);
    if (!run_begin()) return 1;
    for (size_t i = 0; i < CASES; i++) {
        if (!test_case("%s", cases[i].ptx)) continue;
        check(&r, i, "sm_10", ".version 1.4\n.target sm_10, map_f64_to_f32\n", cases[i].old);
        if (strncmp(cases[i].ptx, "mad", 3) != 0)
            check(&r, i, "sm_90", ".version 8.0\n.target sm_90\n.address_size 64\n",
                  cases[i].plain);
    }
    run_end();
    return test_end();
}
