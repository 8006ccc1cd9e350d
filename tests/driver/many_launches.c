/*
 * many_launches N: a kernel launched N times. Prints the memory that is resident after a tenth of them and in the end,
 * in KiB, the CPU time, and how often the launches wrote to files (-1: not known); fails if a launch left out its
 * addition. For tests/driver/many.sh.
 */
#include "lib/driver_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 64, BLOCKS = 4 };

/* Every thread adds to its word what its neighbour brings. */
static const char kernel[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 4 .b32 ones[64];\n"
    ".visible .entry step(.param .u64 p_out)\n{\n.reg .b32 t, v, w, s;\n.reg .b64 out, at;\n"
    "ld.param.u64 out, [p_out];\nmov.u32 t, %tid.x;\nmov.u32 s, %ctaid.x;\n"
    "mad.lo.u32 s, s, 64, t;\nmul.wide.u32 at, s, 4;\n"
    "add.u64 out, out, at;\nmov.u32 s, ones;\nmad.lo.u32 w, t, 4, s;\nst.shared.u32 [w], 1;\n"
    "bar.sync 0;\nxor.b32 t, t, 63;\nmad.lo.u32 w, t, 4, s;\nld.shared.u32 w, [w];\n"
    "ld.global.u32 v, [out];\nadd.u32 v, v, w;\nst.global.u32 [out], v;\nret;\n}\n";

/* Resident memory of this process in KiB. */
static long resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long all = 0, pages = 0;

    if (f && fscanf(f, "%ld %ld", &all, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The number of write calls of this process so far; -1 where the kernel does not count them. */
static long writes(void)
{
    FILE *f = fopen("/proc/self/io", "r");
    char line[128];
    long calls = -1;

    while (f && calls < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "syscw: %ld", &calls) != 1) calls = -1;
    if (f) fclose(f);
    return calls;
}

int main(int argc, char **argv)
{
    const int launches = argc > 1 ? atoi(argv[1]) : 10000;
    char *arguments[] = {argv[0], NULL};
    hewn_cu_module module;
    hewn_cu_deviceptr out;
    void *params[] = {&out};
    long early = 0, before, after;

    if (!driver_begin("many_launches", 1, arguments)) return test_end();
    if (test_case("%d launches", launches)) {
        module = load(kernel);
        out = buffer(BLOCKS * THREADS * sizeof(uint32_t));
        CHECK_INT(cu.cuMemsetD32_v2(out, 0, BLOCKS * THREADS), 0);
        before = writes();
        for (int i = 0; i < launches; i++) {
            CHECK_INT(cu.cuLaunchKernel(function(module, "step"), BLOCKS, 1, 1, THREADS, 1, 1, 0,
                                        NULL, params, NULL),
                      0);
            if (i == launches / 10) early = resident();
        }
        CHECK_INT(cu.cuCtxSynchronize(), 0);
        after = writes();
        CHECK_INT(count_wrong(out, (unsigned)launches, BLOCKS * THREADS), 0);
        printf("resident %ld then %ld KiB, CPU %.3f s, %ld writes\n", early, resident(),
               (double)clock() / CLOCKS_PER_SEC, before < 0 ? -1 : after - before);
        CHECK_INT(cu.cuModuleUnload(module), 0);
    }
    cu.cuDevicePrimaryCtxRelease_v2(0);
    return test_end();
}
