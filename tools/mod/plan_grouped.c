/* The plans of the family grouped as data, their derived numbers checked, and what their manifests say. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/sm_100f/grouped.plan.h"
#include "../../ptx/sm_90a/grouped.plan.h"

#include <string.h>

static const char *const maps[] = PLAN_NAMES(GROUPED_MAPS(PLAN_NAME, PLAN_NAME));
static const struct plan_scalar scalars[] = PLAN_SCALARS(GROUPED_SCALARS(PLAN_SCALAR));
static const struct plan_range roles[] = PLAN_RANGES(SM90A_GROUPED_ROLES(PLAN_ROLE));
static const struct plan_range roles_rows[] = PLAN_RANGES(SM90A_GROUPED_ROLES_rows(PLAN_ROLE));
static const struct plan_range no_ranges[] = PLAN_RANGES();

#define CHECK(P, t, v)                                                                          \
    _Static_assert(P##_GROUPED_DYNAMIC_SHARED(v) + P##_GROUPED_STATIC_BYTES <= SM_SHARED_BYTES, \
                   "shared memory");                                                            \
    _Static_assert(P##_GROUPED_A_BYTES(v) / 2 % SWIZZLE_REPEAT == 0 &&                          \
                       P##_GROUPED_B_BYTES(v) / 2 % SWIZZLE_REPEAT == 0 &&                      \
                       P##_GROUPED_D_BYTES % SWIZZLE_REPEAT == 0 &&                             \
                       P##_GROUPED_S_PITCH(v) % 128 == 0,                                       \
                   "tiles, halves and boxes begin where the swizzle repeats, others at 128");   \
    _Static_assert(P##_GROUPED_TILE_N(v) % 128 == 0 || P##_GROUPED_TILE_N(v) % 64 == 0 ||       \
                       P##_GROUPED_TILE_N(v) <= 160,                                            \
                   "a tile of 32 i columns reaches into two blocks of 128 at most");            \
    _Static_assert(P##_GROUPED_STAGES(v) * 32 <= P##_GROUPED_THREADS &&                         \
                       16 * P##_GROUPED_STAGES(v) <= P##_GROUPED_STATIC_BYTES,                  \
                   "a warp makes a stage's barriers");

SM90A_GROUPED_VARIANTS(CHECK)

_Static_assert(SM90A_GROUPED_PRODUCER_REGS + 2 * SM90A_GROUPED_CONSUMER_REGS <= SM_REGISTERS / 128,
               "registers");

#define TABLES(P, t, v)                                                                            \
    static const struct plan_range t##_##v##_shared[] =                                            \
        PLAN_RANGES(P##_GROUPED_SHARED(PLAN_SHARED, v));                                           \
    static const struct plan_handoff t##_##v##_handoffs[] =                                        \
        PLAN_HANDOFFS(P##_GROUPED_HANDOFFS(PLAN_HANDOFF_SPAN, v));                                 \
    static const struct plan_handoff t##_##v##_handoffs_rows[] =                                   \
        PLAN_HANDOFFS(P##_GROUPED_HANDOFFS_rows(PLAN_HANDOFF_SPAN, v));                            \
    static const struct plan_flow t##_##v##_flows[] = PLAN_FLOWS(P##_GROUPED_FLOWS(PLAN_FLOW, v)); \
    static const struct plan_flow t##_##v##_flows_rows[] =                                         \
        PLAN_FLOWS(P##_GROUPED_FLOWS_rows(PLAN_FLOW, v));                                          \
    static const struct grouped_shape t##_##v##_shape = {                                          \
        .tile_m = P##_GROUPED_TILE_M(v),                                                           \
        .tile_n = P##_GROUPED_TILE_D(v),                                                           \
        .stages = P##_GROUPED_STAGES(v),                                                           \
        .raster_rows = P##_GROUPED_RASTER_ROWS(v),                                                 \
        .scales = P##_GROUPED_SCALES(v),                                                           \
        .d_rows = P##_GROUPED_D_ROWS,                                                              \
    };

SM90A_GROUPED_VARIANTS(TABLES)

/* ---- sm_100f: one list for rows as they are and by number -- */

#define CHECK_100(P, t, v)                                                                      \
    _Static_assert(P##_GROUPED_DYNAMIC_SHARED(v) + P##_GROUPED_STATIC_BYTES <= SM_SHARED_BYTES, \
                   "shared memory");                                                            \
    _Static_assert(P##_GROUPED_A_BYTES(v) / 2 % SWIZZLE_REPEAT == 0 &&                          \
                       P##_GROUPED_B_BYTES(v) / 2 % SWIZZLE_REPEAT == 0 &&                      \
                       P##_GROUPED_D_BYTES % SWIZZLE_REPEAT == 0,                               \
                   "tiles, their halves and boxes begin where the swizzle repeats");            \
    _Static_assert(P##_GROUPED_ACCUMULATORS(v) * P##_GROUPED_TILE_N(v) <=                       \
                       P##_GROUPED_TMEM_COLUMNS,                                                \
                   "tensor memory");                                                            \
    _Static_assert(P##_GROUPED_EPILOGUE_WARPS(v) % 4 == 0 && P##_GROUPED_TILE_M(v) == 128 &&    \
                       P##_GROUPED_TILE_M(v) == 32 * P##_GROUPED_GATHER_ROWS,                   \
                   "a warp's lanes have a tile's rows");

SM100F_GROUPED_VARIANTS(CHECK_100)

#define TABLES_100(P, t, v)                                                                        \
    static const struct plan_range t##_##v##_roles[] =                                             \
        PLAN_RANGES(P##_GROUPED_ROLES(PLAN_ROLE, v));                                              \
    static const struct plan_flow t##_##v##_flows[] = PLAN_FLOWS(P##_GROUPED_FLOWS(PLAN_FLOW, v)); \
    static const struct plan_range t##_##v##_shared[] =                                            \
        PLAN_RANGES(P##_GROUPED_SHARED(PLAN_SHARED, v));                                           \
    static const struct plan_range t##_##v##_tmem[] = PLAN_RANGES(P##_GROUPED_TMEM(PLAN_TMEM, v)); \
    static const struct plan_handoff t##_##v##_handoffs[] =                                        \
        PLAN_HANDOFFS(P##_GROUPED_HANDOFFS(PLAN_HANDOFF_MORE, v));                                 \
    static const struct grouped_shape t##_##v##_shape = {                                          \
        .tile_m = P##_GROUPED_TILE_M(v),                                                           \
        .tile_n = P##_GROUPED_TILE_D(v),                                                           \
        .stages = P##_GROUPED_STAGES(v),                                                           \
        .raster_rows = P##_GROUPED_RASTER_ROWS(v),                                                 \
        .scales = P##_GROUPED_SCALES(v),                                                           \
        .d_rows = P##_GROUPED_D_ROWS,                                                              \
        .gather4 = 1,                                                                              \
    };

SM100F_GROUPED_VARIANTS(TABLES_100)

#define PLAN_100(P, t, v) PLAN_100_OF(P, t, v, #v) PLAN_100_OF(P, t, v, #v "_rows")
#define PLAN_100_OF(P, t, v, name)                           \
    {                                                        \
        name,                                                \
        {                                                    \
            .target = #t,                                    \
            .family = "grouped",                             \
            .text = "grouped",                               \
            .threads = P##_GROUPED_THREADS(v),               \
            .dynamic_shared = P##_GROUPED_DYNAMIC_SHARED(v), \
            .tmem_columns = P##_GROUPED_TMEM_COLUMNS,        \
            .cluster = 1,                                    \
            .ctas_per_sm = P##_GROUPED_CTAS_PER_SM,          \
            .maps = maps,                                    \
            .scalars = scalars,                              \
            .roles = t##_##v##_roles,                        \
            .shared = t##_##v##_shared,                      \
            .tmem = t##_##v##_tmem,                          \
            .handoffs = t##_##v##_handoffs,                  \
            .flows = t##_##v##_flows,                        \
            .grouped = &t##_##v##_shape,                     \
        },                                                   \
    },

#define PLAN(P, t, v) PLAN_OF(P, t, v, #v, ) PLAN_OF(P, t, v, #v "_rows", _rows)
#define PLAN_OF(P, t, v, name, kind)                         \
    {                                                        \
        name,                                                \
        {                                                    \
            .target = #t,                                    \
            .family = "grouped",                             \
            .text = "grouped",                               \
            .threads = P##_GROUPED_THREADS,                  \
            .dynamic_shared = P##_GROUPED_DYNAMIC_SHARED(v), \
            .cluster = 1,                                    \
            .ctas_per_sm = P##_GROUPED_CTAS_PER_SM,          \
            .maps = maps,                                    \
            .scalars = scalars,                              \
            .roles = roles##kind,                            \
            .shared = t##_##v##_shared,                      \
            .tmem = no_ranges,                               \
            .handoffs = t##_##v##_handoffs##kind,            \
            .flows = t##_##v##_flows##kind,                  \
            .grouped = &t##_##v##_shape,                     \
        },                                                   \
    },

static const struct {
    const char *variant;
    struct plan plan;
} plans[] = {SM90A_GROUPED_VARIANTS(PLAN) SM100F_GROUPED_VARIANTS(PLAN_100)};

const struct plan *plan_grouped(const char *target, const char *variant)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (strcmp(plans[i].plan.target, target) == 0 && strcmp(plans[i].variant, variant) == 0)
            return &plans[i].plan;
    return NULL;
}

/* ---- the manifests: ptx/inc/grouped.plan.h -- */

void grouped_write_problem(FILE *out, const struct module_id *id)
{
    if (id->plan->grouped->scales >= GROUPED_UNSCALED) {
        fprintf(out,
                "  \"formula\": \"D[r][c] = %s, r: a row of group g\",\n"
                "  \"dtypes\": {\"a\": \"%s\", \"b\": \"%s\", \"sum\": \"f32\", \"d\": \"%s\"},\n",
                id->plan->grouped->scales == GROUPED_UNSCALED
                    ? "A[r] . B[g][c]"
                    : "silu(A[r] . B[g][c]) * (A[r] . B[g][n + c])",
                id->in, id->in, id->out);
        return;
    }
    fprintf(out,
            "  \"formula\": \"D[r][c] = sum over blocks b of 128 k: scale_a[r][b] * "
            "scale_b[g][%s][b] * (A[r] . B[g][c] in b), r: a row of group g\",\n",
            id->plan->grouped->scales == GROUPED_COLUMN_SCALES ? "c" : "c / 128");
    fprintf(out,
            "  \"dtypes\": {\"a\": \"%s\", \"b\": \"%s\", \"scale_a\": \"f32\", "
            "\"scale_b\": \"f32\", \"sum\": \"f32\", \"d\": \"%s\"},\n",
            id->in, id->in, id->out);
}

/* One tensor map; `tail` ends its line. */
static void write_map(FILE *out, int i, const char *tensor, const char *dtype, const char *dims,
                      const char *box, const char *swizzle, const char *tail)
{
    const int rank = strstr(dims, "a_rows") ? 2 : 3; /* rows by number */
    fprintf(out,
            "    {\"name\": \"%s\", \"tensor\": \"%s\", \"dtype\": \"%s\", \"rank\": %d,\n"
            "     \"dims\": [%s], \"box\": [%s], \"element_strides\": [1, 1%s],\n"
            "     \"interleave\": \"none\", \"swizzle\": \"%s\", \"out_of_bounds\": "
            "\"zero\"}%s\n",
            maps[i], tensor, dtype, rank, dims, box, rank > 2 ? ", 1" : "", swizzle, tail);
}

void grouped_write_shape(FILE *out, const struct module_id *id)
{
    const struct grouped_shape *s = id->plan->grouped;
    const int unscaled = s->scales >= GROUPED_UNSCALED, tile_k = GROUPED_BLOCK >> unscaled,
              glu = s->scales == GROUPED_UNSCALED_GLU,
              halves = s->gather4 && s->tile_n << glu == 256; /* map_s: B, for halves of tiles */
    const char *dims_b = glu ? "\"k\", \"2 n\", \"groups\"" : "\"k\", \"n\", \"groups\"";
    char box[3][64];
    const int gather = s->gather4 && strstr(id->name, "_rows");
    snprintf(box[0], sizeof box[0], "%d, \"%u, half where shared\", 1", tile_k, s->tile_m);
    snprintf(box[1], sizeof box[1], glu ? "%d, %u, 1" : "%d, \"%u, half where shared\", 1", tile_k,
             s->tile_n);
    if (gather) snprintf(box[0], sizeof box[0], "%d, 1", tile_k);
    fprintf(out, "  \"tensor_maps\": [\n");
    if (gather)
        write_map(out, 0, "A", id->in, "\"k\", \"a_rows\"", box[0], "128B", ",");
    else
        write_map(out, 0, "A", id->in, "\"k\", \"m\", \"groups or 1\"", box[0], "128B", ",");
    write_map(out, 1, "B", id->in, dims_b, box[1], "128B", ",");
    snprintf(box[2], sizeof box[2], "%d, %u, 1", strcmp(id->out, "f32") == 0 ? 32 : 64, s->d_rows);
    write_map(out, 2, "D", id->out, "\"whole\", \"m\", \"groups or 1\"", box[2], "128B",
              unscaled && !halves ? "" : ",");
    snprintf(box[2], sizeof box[2], halves ? "%d, 64, 1" : "%u, 1, 1",
             halves ? tile_k : (int)s->tile_m + 4);
    if (halves) /* where shared */
        write_map(out, 3, "B", id->in, dims_b, box[2], "128B", "");
    else if (!unscaled)
        write_map(out, 3, "scale_a", "f32", "\"m\", \"k_blocks\", \"groups or 1\"", box[2], "none",
                  "");
    fprintf(out,
            "  ],\n  \"tile\": {\"m\": %u, \"n\": %u, \"k\": %d},\n  \"stages\": %u,\n"
            "  \"raster_rows\": %u,\n  \"clusters\": [1, 2%s],\n"
            "  \"grid\": [\"any number of clusters\", \"1\", \"1\"],\n",
            s->tile_m, s->tile_n, tile_k, s->stages, s->raster_rows,
            s->gather4 && !gather ? ", 4" : "");
}

void grouped_write_limits(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out, "  \"limits\": {\"m\": [1, 2147483647], \"n\": [1, 2147483647], "
                 "\"k\": [1, 2147483647], \"groups\": [1, 2147483647], "
                 "\"address_multiple\": 16, \"stride_multiple\": 16},\n");
}
