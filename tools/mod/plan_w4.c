/* The plans of products with 4-bit weights as data, their derived numbers checked, and what their
 * manifests say of the problem. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/sm_90a/w4.plan.h"

#include <string.h>

static const char *const maps[] = PLAN_NAMES(W4_MAPS(PLAN_NAME, PLAN_NAME));
static const struct plan_scalar scalars[] = PLAN_SCALARS(W4_SCALARS(PLAN_SCALAR));
static const struct plan_range roles[] = PLAN_RANGES(SM90A_W4_ROLES(PLAN_ROLE));
static const struct plan_range no_ranges[] = PLAN_RANGES();
static const struct plan_handoff handoffs[] = PLAN_HANDOFFS(SM90A_W4_HANDOFFS(PLAN_HANDOFF_SPAN));
static const struct plan_flow no_flows[] = PLAN_FLOWS();

_Static_assert(W4_BLOCK_BYTES(1, 1) % 16 == 0 && W4_BLOCK_BYTES(W4_MAX_GROUPS, 0) % 16 == 0,
               "bulk copies");
_Static_assert(SM90A_W4_X_BYTES(8) % (2 * SWIZZLE_REPEAT) == 0,
               "boxes begin where the swizzle repeats");
_Static_assert(SM90A_W4_CHUNKS == 4, "a warpgroup has two chunks");
_Static_assert(64 * SM90A_W4_SUM_PITCH(SM90A_W4_CHUNKS) <= SM90A_W4_DYNAMIC_SHARED, "the sums fit");
_Static_assert(2 * (SM90A_W4_CHUNKS * W4_MAX_BYTES + SM90A_W4_X_BYTES(64)) <=
                   SM90A_W4_DYNAMIC_SHARED,
               "two stages fit");
_Static_assert(16 * SM90A_W4_STAGES <= SM90A_W4_STATIC_BYTES, "the barriers fit");

enum { ZEROS_int4 = 0, ZEROS_uint4 = 1 };

#define SHAPE(P, t, f, w) static const struct w4_shape t##_shape_##f##_##w = {#f, w, ZEROS_##f};

SM90A_W4_VARIANTS(SHAPE)

#define PLAN(P, t, f, w)                         \
    {                                            \
        .target = #t,                            \
        .family = "w4",                          \
        .text = "w4",                            \
        .threads = P##_W4_THREADS,               \
        .dynamic_shared = P##_W4_DYNAMIC_SHARED, \
        .cluster = 1,                            \
        .ctas_per_sm = P##_W4_CTAS_##w,          \
        .maps = maps,                            \
        .scalars = scalars,                      \
        .roles = roles,                          \
        .shared = no_ranges,                     \
        .tmem = no_ranges,                       \
        .handoffs = handoffs,                    \
        .flows = no_flows,                       \
        .w4 = &t##_shape_##f##_##w,              \
    },

static const struct plan plans[] = {SM90A_W4_VARIANTS(PLAN)};

const struct plan *plan_w4(const char *target, const char *format, unsigned width)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (strcmp(plans[i].target, target) == 0 && strcmp(plans[i].w4->format, format) == 0 &&
            plans[i].w4->width == width)
            return &plans[i];
    return NULL;
}

/* ---- the manifests: ptx/inc/w4.plan.h -- */

void w4_write_problem(FILE *out, const struct module_id *id)
{
    fprintf(out, "  \"formula\": \"D[i][j] = sum over groups g of scale[j][g] * sum over k of g of "
                 "X[i][k] * (W[j][k] - zero[j][g])\",\n");
    fprintf(out,
            "  \"dtypes\": {\"x\": \"%s\", \"w\": \"%s\", \"scale\": \"%s\", \"sum\": \"f32\", "
            "\"d\": \"f32, bf16 or f16: out\"},\n",
            id->in, id->plan->w4->format, id->in);
}

void w4_write_shape(FILE *out, const struct module_id *id)
{
    const struct w4_shape *s = id->plan->w4;
    fprintf(out,
            "  \"tensor_maps\": [\n"
            "    {\"name\": \"%s\", \"tensor\": \"x\", \"dtype\": \"%s\", \"rank\": 3,\n"
            "     \"dims\": [\"k\", \"m\", 1], \"box\": [%d, \"rows\", 1], ",
            maps[0], id->in, W4_HALF_K);
    fprintf(out, "\"element_strides\": [1, 1, 1],\n"
                 "     \"interleave\": \"none\", \"swizzle\": \"128B\", \"out_of_bounds\": "
                 "\"zero\"}\n");
    fprintf(
        out,
        "  ],\n  \"tile\": {\"rows\": [8, %u], \"chunks\": [1, %d], \"chunk\": %d, \"k\": %d},\n"
        "  \"block_bytes\": {\"words\": %d, \"group\": %d},\n",
        s->width, SM90A_W4_CHUNKS, W4_CHUNK, W4_BLOCK_K, W4_WORDS_BYTES,
        W4_BLOCK_BYTES(1, s->zeros) - W4_WORDS_BYTES);
    fprintf(out,
            "  \"clusters\": [1, %d],\n"
            "  \"grid\": [\"parts * tiles_n * ceil(m / rows)\", \"1\", \"1\"],\n",
            SM90A_W4_PARTS);
}

void w4_write_limits(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out,
            "  \"limits\": {\"stages\": [1, %d], \"groups\": [1, 2, %d], \"address_multiple\": 16, "
            "\"stride_multiple\": 16},\n",
            SM90A_W4_STAGES, W4_MAX_GROUPS);
}
