/* The plans of block-scaled products as data, their derived numbers checked, and what their manifests say. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/sm_100f/scaled.plan.h"

#include <string.h>

static const char *const maps[] = PLAN_NAMES(SCALED_MAPS(PLAN_NAME, PLAN_NAME));
static const struct plan_scalar scalars[] = PLAN_SCALARS(SCALED_SCALARS(PLAN_SCALAR));
static const struct plan_range roles[] = PLAN_RANGES(SM100F_SCALED_ROLES(PLAN_ROLE));

#define CHECK(P, t, v, i)                                                                        \
    _Static_assert(P##_SCALED_DYNAMIC_SHARED(v, i) + P##_SCALED_STATIC_BYTES <= SM_SHARED_BYTES, \
                   "shared memory");                                                             \
    _Static_assert(P##_SCALED_A_BYTES(v) % SWIZZLE_REPEAT == 0 &&                                \
                       P##_SCALED_B_BYTES(v) % SWIZZLE_REPEAT == 0 &&                            \
                       P##_SCALED_D_BYTES % SWIZZLE_REPEAT == 0 &&                               \
                       P##_SCALED_RING_SA(v) % 128 == 0,                                         \
                   "tiles and boxes begin where the swizzle repeats, scales at 128");            \
    _Static_assert(P##_SCALED_USED_COLUMNS(v, i) <= P##_SCALED_TMEM_COLUMNS, "tensor memory");   \
    _Static_assert(P##_SCALED_CTA_M(v) == SCALED_ATOM_ROWS && P##_SCALED_TILE_N(v) % 64 == 0,    \
                   "a tile begins with an atom of A's scales, on a half of one of B's");         \
    _Static_assert(P##_SCALED_SIDES(v, i) == 1 || P##_SCALED_PAIR_M(v) == 2,                     \
                   "pairs side by side");                                                        \
    _Static_assert(P##_SCALED_TILE_K(i) ==                                                       \
                       (P##_SCALED_ATOMS(i)                                                      \
                            ? P##_SCALED_VECTOR(i) * P##_SCALED_ATOMS(i) * SCALED_ATOM_SCALES    \
                            : GEMM_ROW_BYTES / 2),                                               \
                   "a stage has whole atoms; without scales it has 128 bytes of rows");

SM100F_SCALED_PLANS(CHECK)

#define KIND_A_mx8     "8 or 4 bits"
#define KIND_A_mx4     "e2m1"
#define KIND_A_nv4     "e2m1"
#define KIND_A_mw8     "8 or 4 bits"
#define KIND_A_h16     "bf16 or f16"
#define KIND_SCALE_mx8 "ue8m0"
#define KIND_SCALE_mx4 "ue8m0"
#define KIND_SCALE_nv4 "ue4m3"
#define KIND_SCALE_mw8 "ue8m0"
#define KIND_SCALE_h16 "none"

#define TABLES(P, t, v, i)                                                       \
    static const struct plan_range t##_##v##_##i##_shared[] =                    \
        PLAN_RANGES(P##_SCALED_SHARED(PLAN_SHARED, v, i));                       \
    static const struct plan_range t##_##v##_##i##_tmem[] =                      \
        PLAN_RANGES(P##_SCALED_TMEM(PLAN_TMEM, v, i));                           \
    static const struct plan_handoff t##_##v##_##i##_handoffs[] =                \
        PLAN_HANDOFFS(P##_SCALED_HANDOFFS(PLAN_HANDOFF_SPAN, v, i));             \
    static const struct plan_flow t##_##v##_##i##_flows[] =                      \
        PLAN_FLOWS(P##_SCALED_FLOWS(PLAN_FLOW, i) P##_SCALED_STAGED(PLAN_FLOW)); \
    static const struct plan_flow t##_##v##_##i##_quantised[] =                  \
        PLAN_FLOWS(P##_SCALED_FLOWS(PLAN_FLOW, i));                              \
    static const struct scaled_shape t##_##v##_##i##_shape = {                   \
        .a = KIND_A_##i,                                                         \
        .scale = KIND_SCALE_##i,                                                 \
        .tile_m = P##_SCALED_TILE_M(v),                                          \
        .tile_n = P##_SCALED_TILE_N(v),                                          \
        .load_m = P##_SCALED_CTA_M(v),                                           \
        .load_n = P##_SCALED_LOAD_N(v),                                          \
        .tile_k = P##_SCALED_TILE_K(i),                                          \
        .stages = P##_SCALED_STAGES(v),                                          \
        .raster_rows = P##_SCALED_RASTER_ROWS(v),                                \
        .d_rows = P##_SCALED_D_ROWS,                                             \
        .vector = P##_SCALED_VECTOR(i),                                          \
        .atoms = P##_SCALED_ATOMS(i),                                            \
        .load_atoms = P##_SCALED_LOAD_ATOMS(v, i),                               \
        .words = P##_SCALED_WORDS(i),                                            \
    };

SM100F_SCALED_PLANS(TABLES)

#define PLAN(P, t, v, i, which)                                \
    {                                                          \
        #i,                                                    \
        #v,                                                    \
        {                                                      \
            .target = #t,                                      \
            .family = "grouped",                               \
            .text = "scaled",                                  \
            .threads = P##_SCALED_THREADS,                     \
            .dynamic_shared = P##_SCALED_DYNAMIC_SHARED(v, i), \
            .tmem_columns = P##_SCALED_TMEM_COLUMNS,           \
            .cluster = P##_SCALED_PAIR_M(v),                   \
            .ctas_per_sm = P##_SCALED_CTAS_PER_SM,             \
            .maps = maps,                                      \
            .scalars = scalars,                                \
            .roles = roles,                                    \
            .shared = t##_##v##_##i##_shared,                  \
            .tmem = t##_##v##_##i##_tmem,                      \
            .handoffs = t##_##v##_##i##_handoffs,              \
            .flows = t##_##v##_##i##_##which,                  \
            .scaled = &t##_##v##_##i##_shape,                  \
        },                                                     \
    },

#define STORED(P, t, v, i)    PLAN(P, t, v, i, flows)
#define QUANTISED(P, t, v, i) PLAN(P, t, v, i, quantised)

static const struct scaled_plan {
    const char *kind, *variant;
    struct plan plan;
} plans[] = {SM100F_SCALED_PLANS(STORED)}, quantised[] = {SM100F_SCALED_PLANS(QUANTISED)};

/* Whether D of dtype `out` has scales. */
static int is_quantised(const char *out)
{
    return strcmp(out, "e4m3") == 0 || strcmp(out, "e2m1") == 0;
}

const struct plan *plan_scaled(const char *target, const char *kind, const char *out,
                               const char *variant)
{
    const struct scaled_plan *of = is_quantised(out) ? quantised : plans;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (strcmp(of[i].plan.target, target) == 0 && strcmp(of[i].kind, kind) == 0 &&
            strcmp(of[i].variant, variant) == 0)
            return &of[i].plan;
    return NULL;
}

/* ---- the manifests: ptx/inc/scaled.plan.h -- */

void scaled_write_problem(FILE *out, const struct module_id *id)
{
    const struct scaled_shape *s = id->plan->scaled;
    const int narrow = is_quantised(id->out);
    char of_a[32] = "", of_b[32] = "", dtypes[64] = "";
    if (s->atoms) {
        snprintf(of_a, sizeof of_a, "scale_a[r][k / %u] * ", s->vector);
        snprintf(of_b, sizeof of_b, "scale_b[g][c][k / %u] * ", s->vector);
        snprintf(dtypes, sizeof dtypes, "\"scale_a\": \"%s\", \"scale_b\": \"%s\", ", s->scale,
                 s->scale);
    }
    fprintf(out,
            "  \"formula\": \"%sD[r][c] = %salpha[g] * sum over k: %sA[r][k] * %sB[g][c][k]%s, "
            "r: a row of group g\",\n",
            narrow ? "scale_d[r][c / vector] * " : "", narrow ? "factor[g] * act(" : "", of_a, of_b,
            narrow ? " + bias[g][c])" : "");
    fprintf(out,
            "  \"dtypes\": {\"a\": \"%s\", \"b\": \"%s\", %s\"alpha\": \"f32\", \"sum\": \"f32\", "
            "\"d\": \"%s\"%s},\n",
            s->a, s->a, dtypes, id->out,
            !narrow                        ? ""
            : strcmp(id->out, "e4m3") == 0 ? ", \"scale_d\": \"ue8m0\""
                                           : ", \"scale_d\": \"ue4m3\"");
}

/* One tensor map; `tail` ends its line. */
static void write_map(FILE *out, int i, const char *tensor, const char *dtype, int rank,
                      const char *dims, const char *box, const char *tail)
{
    fprintf(out,
            "    {\"name\": \"%s\", \"tensor\": \"%s\", \"dtype\": \"%s\", \"rank\": %d,\n"
            "     \"dims\": [%s], \"box\": [%s], \"element_strides\": [1, 1, 1%s],\n"
            "     \"interleave\": \"none\", \"swizzle\": \"%s\", \"out_of_bounds\": "
            "\"zero\"}%s\n",
            maps[i], tensor, dtype, rank, dims, box, rank > 3 ? ", 1" : "",
            strncmp(tensor, "scale", 5) == 0 ? "none" : "128B", tail);
}

/* The maps of scales: of atoms, or of words of rows. */
static void write_scale_maps(FILE *out, const struct scaled_shape *s)
{
    static const char *const dims[][2] = {{"128, \"atoms along k\", \"m / 128\", \"groups or 1\"",
                                           "128, \"atoms along k\", \"n / 128\", \"groups\""},
                                          {"\"m\", \"words along k\", \"groups or 1\"",
                                           "\"n\", \"words along k\", \"groups\""}};
    const int rank = s->words ? 3 : 4;
    char box[64];
    snprintf(box, sizeof box, s->words ? "128, 1, 1" : "128, %u, 1, 1", s->atoms);
    write_map(out, 3, "scale_a", "u32", rank, dims[s->words][0], box, ",");
    if (s->words)
        snprintf(box, sizeof box, "%u, 1, 1", 128 * s->load_atoms);
    else
        snprintf(box, sizeof box, "128, %u, %u, 1", s->atoms, s->load_atoms);
    write_map(out, 4, "scale_b", "u32", rank, dims[s->words][1], box, ",");
}

void scaled_write_shape(FILE *out, const struct module_id *id)
{
    const struct scaled_shape *s = id->plan->scaled;
    const char *in = s->atoms == 1 ? "u8 or 16U4_ALIGN16B" : s->atoms ? "u8" : s->a;
    const int row = s->atoms ? 128 : 64;
    char box[64];
    fprintf(out, "  \"tensor_maps\": [\n");
    snprintf(box, sizeof box, "%d, %u, 1", row, s->load_m);
    write_map(out, 0, "A", in, 3, "\"128-byte k-blocks\", \"m\", \"groups or 1\"", box, ",");
    snprintf(box, sizeof box, "%d, %u, 1", row, s->load_n);
    write_map(out, 1, "B", in, 3, "\"128-byte k-blocks\", \"n\", \"groups\"", box, ",");
    const int narrow = is_quantised(id->out);
    snprintf(box, sizeof box, "%d, %u, 1",
             strcmp(id->out, "f32") == 0 ? 32
             : narrow                    ? 128
                                         : 64,
             s->d_rows);
    write_map(out, 2, "D", narrow ? "u8" : id->out, 3, "\"whole\", \"m\", \"groups or 1\"", box,
              s->atoms ? "," : "");
    if (s->atoms) write_scale_maps(out, s);
    snprintf(box, sizeof box, "%d, %d, 1", row, SM100F_SCALED_NARROW_LOAD);
    if (s->atoms)
        write_map(out, 5, "B", in, 3, "\"128-byte k-blocks\", \"n\", \"groups\"", box, "");
    fprintf(out,
            "  ],\n  \"tile\": {\"m\": %u, \"n\": %u, \"k\": %u},\n  \"stages\": %u,\n"
            "  \"raster_rows\": %u,\n  \"clusters\": [%u],\n"
            "  \"grid\": [\"any number%s\", \"1\", \"1\"],\n",
            s->tile_m, s->tile_n, s->tile_k, s->stages, s->raster_rows, id->plan->cluster,
            id->plan->cluster > 1 ? " of pairs" : "");
}

void scaled_write_limits(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out, "  \"limits\": {\"m\": [1, 2147483647], \"n\": [1, 2147483647], "
                 "\"k\": [1, 2147483647], \"groups\": [1, 2147483647], "
                 "\"address_multiple\": 16, \"stride_multiple\": 16},\n");
}
