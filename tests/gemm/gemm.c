/*
 * hewn_gemm against float64: seeded cases over shapes, leading dimensions, majors, dtypes, batches and
 * what comes after the sums, on whatever driver HEWN_LIBCUDA names. gemm_cases.h has the groups of cases,
 * gemm_device.c runs one, gemm_judge.c has the bounds and their reasons.
 *   --random N   N cases of the whole contract in place of the groups, kernels as they are chosen
 */
#include "gemm_cases.h"

#include "lib/device.h"
#include "lib/digest.h"
#include "lib/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void maybe_run(struct device *dev, struct gemm_case *g)
{
    const hewn_gemm_desc *s = &g->desc;
    char choice[24] = "";
    if (s->variant) snprintf(choice, sizeof choice, " %s/%u", s->variant, s->parts);
    if (s->slices)
        snprintf(choice + strlen(choice), sizeof choice - strlen(choice), "*%u", s->slices);
    if (test_case("m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldd=%lld batch=%lld%s%s%s%s %s%s%s%s -> "
                  "%s %s%s%s%s",
                  (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->lda,
                  (long long)s->ldb, (long long)s->ldd, (long long)s->batch,
                  s->batch > 1 && !s->stride_a ? " one A" : "",
                  s->batch > 1 && !s->stride_b ? " one B" : "", s->major_a ? " MN-major A" : "",
                  s->major_b ? " MN-major B" : "", hewn_dtype_name(s->in), s->in_b ? " * " : "",
                  s->in_b ? hewn_dtype_name(s->in_b) : "", s->accumulate ? " fast" : "",
                  hewn_dtype_name(s->out), pattern_names[g->pattern], choice,
                  *g->finish ? ", " : "", g->finish)) {
        const char *name = test_case_name(); /* which case came before does not count */
        g->seed = digest_bytes(test_seed(), name, strlen(name));
        gemm_run(dev, g);
    }
}

static void run_group(struct device *dev, const struct gemm_group *group)
{
    struct rng r = {test_seed() + group->seed};
    if (group->target != ANY_TARGET && group->target != dev->info.cc_major) return;
    if (dev->info.sm_count < group->sms) return;
    for (int i = 0; i < group->count; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        group->make(&g, (struct gemm_turn){i, &r});
        maybe_run(dev, &g);
    }
}

static void run_random(struct device *dev, int count)
{
    const struct gemm_device device = {dev->info.cc_major, dev->info.sm_count};
    struct rng r = {test_seed()};
    struct gemm_wishes wishes = {0};
    for (int i = 0; i < count; i++) {
        struct gemm_case g = {.alpha = 1, .wishes = &wishes};
        gemm_drawn(&g, &device, &r);
        maybe_run(dev, &g);
    }
    if (count && test_summary("kernels, parts and slices that were refused"))
        gemm_judge_wishes(&wishes);
}

int main(int argc, char **argv)
{
    static const struct gemm_group *const lists[] = {gemm_shape_groups,  gemm_tile_groups,
                                                     gemm_few_groups,    gemm_odd_groups,
                                                     gemm_turned_groups, gemm_broad_groups};
    struct device dev;
    hewn_error err = {0};
    argc = digest_options(argc, argv);
    const int random = suite_number(&argc, argv, "--random");
    test_begin("gemm", argc, argv);
    setenv("HEWN_SIM_SMS", "8", 0); /* the largest cluster on a simulated device */
    if (!device_open(&dev, &err)) {
        if (test_case("open")) CHECK(false, "%s", err.message);
        return test_end();
    }
    test_where("sm_%d%d, %s", dev.info.cc_major, dev.info.cc_minor, dev.info.name);
    digest_device(&dev);
    run_random(&dev, random);
    for (size_t i = 0; !random && i < sizeof lists / sizeof *lists; i++)
        for (const struct gemm_group *group = lists[i]; group->count; group++)
            run_group(&dev, group);
    digest_end();
    device_close(&dev);
    return test_end();
}
