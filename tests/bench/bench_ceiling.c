/*
 * The ceiling: what the tensor cores do when nothing else is asked of the device. wgmma from random
 * operands in shared memory, no loads, on all SMs, for so long that the power limit acts: on a device that
 * lowers its clock under this load the ceiling is one of power, not of the cores' width.
 */
#include "bench.h"
#include "wgmma_loop.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* TURNS: about 4 ms a launch; half of LAUNCHES warm up, the others count. */
enum { STAGES = 3, TURNS = 2000, LAUNCHES = 200, RESULT_BYTES = 32 };

static double multiply(struct bench *b, void *kernel, hewn_deviceptr out, bool e4m3)
{
    uint64_t unused = 0;
    uint32_t zero = 0, turns = b->dev.info.simulated ? 1 : TURNS;
    void *params[] = {&out, &unused, &unused, &zero, &zero, &turns};
    hewn_launch_desc desc = {.struct_size = sizeof desc,
                             .grid = {(uint32_t)b->dev.info.sm_count, 1, 1},
                             .block = {256, 1, 1},
                             .dynamic_shared = STAGES * WGMMA_STAGE_BYTES};
    int launches = b->dev.info.simulated ? 2 : LAUNCHES, counted = launches / 2;
    double start = 0, flop = 2.0 * 128 * 256 * (e4m3 ? 128 : 64) * STAGES * turns;
    for (int i = 0; i < launches; i++) {
        if (i == launches - counted) {
            if (b->dev.synchronize()) return (double)NAN;
            start = bench_now();
        }
        if (hewn_function_launch(b->dev.context, (hewn_function)kernel, &desc, params, NULL))
            return (double)NAN;
    }
    if (!b->dev.info.simulated) usleep(300000); /* late among the launches that count */
    bench_meter_sample(&b->meter);
    if (b->dev.synchronize()) return (double)NAN;
    return flop * b->dev.info.sm_count * counted / (bench_now() - start);
}

static double ceiling_of(struct bench *b, bool e4m3)
{
    int (*load)(void **, const void *), (*find)(void **, void *, const char *);
    void *module = NULL, *kernel = NULL;
    char *text = malloc(WGMMA_TEXT);
    hewn_deviceptr out = 0;
    double rate = (double)NAN;
    bench_resolve(b->dev.driver, "cuModuleLoadData", &load);
    bench_resolve(b->dev.driver, "cuModuleGetFunction", &find);
    if (!text || !load || !find) goto done;
    wgmma_loop_text(text, e4m3, STAGES, 1);
    if (!load(&module, text) && !find(&kernel, module, "k") &&
        !hewn_function_allow_shared(b->dev.context, (hewn_function)kernel,
                                    STAGES * WGMMA_STAGE_BYTES, NULL) &&
        !b->dev.mem_alloc(&out, (size_t)b->dev.info.sm_count * RESULT_BYTES))
        rate = multiply(b, kernel, out, e4m3);
done:
    if (out) b->dev.mem_free(out);
    free(text);
    return rate;
}

void bench_ceiling(struct bench *b)
{
    if (b->dev.info.cc_major != 9) {
        bench_fact(&b->report, "ceiling: not measured, its loop is for compute capability 9.0");
        return;
    }
    b->ceiling_16 = ceiling_of(b, false);
    b->ceiling_8 = ceiling_of(b, true);
    bench_fact(&b->report,
               "ceiling: wgmma without loads on all SMs, random operands, past the point where "
               "power limits the clock: bf16 %.0f TFLOP/s, e4m3 %.0f",
               1e-12 * b->ceiling_16, 1e-12 * b->ceiling_8);
    bench_meter_note(&b->meter, &b->report, "");
}
