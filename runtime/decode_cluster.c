/*
 * Whether clusters share the keys of the decode schedule's tiles: a cluster a tile, which merges its
 * parts itself (ptx/sm_90a/decode_cluster.inc), instead of even shares of all keys and a combine kernel
 * behind them.
 *
 * The combine kernel costs 2 to 5 us, which is much of a short launch. But clusters hold fewer SMs, and
 * none helps another one whose keys are more. So clusters are taken where the time that they can lose by
 * that is less. By the same rule a CTA may take whole tiles: those that begin in its share.
 */
#include "attention.h"

enum {
    MOST_CTAS = 16,    /* of a cluster, where the function allows it */
    PORTABLE_CTAS = 8, /* the most without asking */
    FEW_SEQUENCES = 4
};

/* Of an H200: bytes a nanosecond of all SMs, and of one in a cluster (measured with 16 to 64 of them);
 * nanoseconds that clusters save, and that they may lose at worst. */
static const double memory_rate = 4450, sm_rate = 45, saved = 2500, lost = 6000;

/* Whether the device holds `clusters` of them at once: only then does none wait for another one's end. */
static int fits(hewn_attention_plan *plan, uint32_t ctas, uint64_t clusters)
{
    const hewn_driver *driver = plan->context->driver;
    hewn_cu_function function = plan->loaded->function;
    int resident = 0;
    if (ctas == 1) return clusters <= (uint64_t)plan->context->info.sm_count;
    if (ctas * clusters > (uint64_t)plan->context->info.sm_count) return 0;
    if (ctas > PORTABLE_CTAS &&
        driver->fn.func_set_attribute(function, HEWN_CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
        return 0;
    plan->decode.attributes[1].id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION;
    plan->decode.attributes[1].value.cluster.x = ctas;
    plan->decode.attributes[1].value.cluster.y = 1;
    plan->decode.attributes[1].value.cluster.z = 1;
    plan->config.grid_x = (uint32_t)clusters * ctas;
    plan->config.attribute_count = 2;
    return !driver->fn.occupancy_max_active_clusters(&resident, function, &plan->config) &&
           resident > 0 && (uint64_t)resident >= clusters;
}

static double tile_bytes(const hewn_attention_plan *plan, uint64_t blocks)
{
    const struct decode_kernel *k = plan->decode.kernel;
    return (double)blocks * DECODE_BLOCK * (k->qk_dim + k->v_dim) * k->element;
}

/* Whether CTAs take whole tiles: the busiest one then has up to a tile more than the mean. Of lengths that
 * vary, and more tiles than CTAs, that is the worst of many, so it may lose more. */
static int takes_whole(const hewn_attention_plan *plan, uint64_t blocks)
{
    uint64_t groups = plan->decode.scalars.groups, ctas = plan->config.grid_x / groups;
    uint64_t tiles = plan->decode.tiles / groups, most = (tiles + ctas - 1) / ctas;
    double more = 1, may = tiles < ctas ? saved : lost;
    if (plan->problem.source[0].keys == HEWN_KEYS_FIXED) {
        more = (double)most - (double)tiles / (double)ctas;
        may = saved;
    }
    return blocks > 1 && more * tile_bytes(plan, blocks) / sm_rate <= may;
}

/* Whether runs with clusters of this size may be slower. Of lengths that vary only the largest is known.
 * Of few sequences half of the keys are assumed to be there. Of many it may be those of one sequence. */
static int may_lose(const hewn_attention_plan *plan, uint64_t blocks, uint32_t ctas)
{
    const struct attention_problem *p = &plan->problem;
    double tile = tile_bytes(plan, blocks), tiles = (double)plan->decode.tiles, slack = saved;
    if (p->source[0].keys != HEWN_KEYS_FIXED) {
        slack = p->batch > FEW_SEQUENCES ? lost : saved;
        tiles = p->batch > FEW_SEQUENCES ? tiles / p->batch : (tiles + 1) / 2;
    }
    return tile / (ctas * sm_rate) > tiles * tile / memory_rate + slack;
}

void hewn_decode_choose_cluster(hewn_attention_plan *plan, uint64_t blocks)
{
    const struct attention_problem *p = &plan->problem;
    struct decode_plan *d = &plan->decode;
    const hewn_cu_launch_config even = plan->config;
    const struct hewn_driver_table *fn = &plan->context->driver->fn;
    int clusters = plan->context->limits.cluster_launch && fn->launch_kernel_ex &&
                   fn->occupancy_max_active_clusters;
    uint32_t most = !d->kernel->clusters ? 0 : clusters ? MOST_CTAS : 1;
    if (!d->tiles || p->invariant || d->tiles > INT32_MAX) return;
    for (uint32_t ctas = most; ctas; ctas /= 2) {
        if ((ctas > 1 && ctas / 2 >= blocks) || may_lose(plan, blocks, ctas) ||
            !fits(plan, ctas, d->tiles))
            continue;
        d->cluster = ctas;
        d->scalars.cluster = ctas;
        d->scalars.groups = 1;
        d->scalars.tiles = (uint32_t)(d->tiles / p->batch);
        plan->config.grid_x = (uint32_t)d->tiles * ctas;
        plan->config.attribute_count = even.attribute_count + (ctas > 1);
        return;
    }
    plan->config = even;
    if (!takes_whole(plan, blocks)) return;
    d->scalars.chunk = DECODE_WHOLE;
    d->scalars.chunks = 1;
}
