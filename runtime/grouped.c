/*
 * Plans of grouped products: a checked problem, the kernel for a device, everything except the addresses; and
 * their runs. What the kernels expect is in ptx/inc/grouped.plan.h.
 */
#include "grouped.h"

#include "error.h"
#include "plan.h"

#include "../ptx/sm_100f/grouped.plan.h"
#include "../ptx/sm_100f/scaled.plan.h"
#include "../ptx/sm_90a/grouped.plan.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 4, ROW_UNIT = 8 /* of boxes of A on sm_90a */ };

_Static_assert(offsetof(struct grouped_scalars, k) + 4 + GROUPED_MAP_COUNT * MAP_BYTES ==
                       GROUPED_PARAM_BYTES &&
                   sizeof(struct scaled_scalars) + SCALED_MAP_COUNT * MAP_BYTES ==
                       SCALED_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");

/* ---- the kernel -- */

struct grouped_kernel {
    const char *target, *variant;
    int shares; /* forms beside that of a CTA alone, or a pair's: 1: two of them share loads; 2: or four */
    int gather4; /* 1: rows by number come by TMA, four at a time */
    uint32_t tile_m, tile_n /* columns of D */, stages, raster_rows, threads, shared, d_rows;
    uint32_t ctas; /* that multiply a tile together */
    int scales;    /* as in struct grouped_problem */
    int parts;     /* 1: CTAs of a cluster may share a tile's k-blocks */
    int narrows;   /* 1: where it suffices, the last column of tiles is narrower */
};

static const struct grouped_kernel kernels[] = {
#define GATHER4_SM90A                0
#define SHARES_SM90A(v)              (SM90A_GROUPED_TILE_N(v) >= 128)
#define SHARES_SM100F(v)             2
#define PARTS_SM90A(v)               SM90A_GROUPED_PARTS(v)
#define PARTS_SM100F(v)              0
#define SM90A_GROUPED_THREADS_OF(v)  SM90A_GROUPED_THREADS
#define SM100F_GROUPED_THREADS_OF(v) SM100F_GROUPED_THREADS(v)
#define GATHER4_SM100F               1
#define X(P, target, v)             \
    {#target,                       \
     #v,                            \
     SHARES_##P(v),                 \
     GATHER4_##P,                   \
     P##_GROUPED_TILE_M(v),         \
     P##_GROUPED_TILE_D(v),         \
     P##_GROUPED_STAGES(v),         \
     P##_GROUPED_RASTER_ROWS(v),    \
     P##_GROUPED_THREADS_OF(v),     \
     P##_GROUPED_DYNAMIC_SHARED(v), \
     P##_GROUPED_D_ROWS,            \
     1,                             \
     P##_GROUPED_SCALES(v),         \
     PARTS_##P(v),                  \
     0},
    SM90A_GROUPED_VARIANTS(X) SM100F_GROUPED_VARIANTS(X)
#undef X
#define X(P, target, v, i)            \
    {#target,                         \
     #v,                              \
     P##_SCALED_SIDES(v, i) > 1,      \
     0,                               \
     P##_SCALED_TILE_M(v),            \
     P##_SCALED_TILE_N(v),            \
     P##_SCALED_STAGES(v),            \
     P##_SCALED_RASTER_ROWS(v),       \
     P##_SCALED_THREADS,              \
     P##_SCALED_DYNAMIC_SHARED(v, i), \
     P##_SCALED_D_ROWS,               \
     P##_SCALED_PAIR_M(v),            \
     SCALES_##i,                      \
     0,                               \
     P##_SCALED_NARROWS(v, i)},
        SM100F_SCALED_PLANS(X)
#undef X
};
enum { KERNELS = sizeof kernels / sizeof *kernels, PAIRS = 2 };

/* How a kernel's CTAs work together, with the suffix of the variant's name: alone; two or four share
 * loads, as the parameter `pair` says; or `parts` CTAs share a tile's k-blocks. The sums of 6 or 7
 * parts would not fit the areas of ptx/sm_90a/grouped_parts.inc. */
struct grouped_form {
    char name[3];
    uint8_t pair, parts;
};
static const struct grouped_form forms[] = {{"", 0, 1},   {"p", 1, 1},  {"q", 2, 1},  {"s2", 0, 2},
                                            {"s3", 0, 3}, {"s4", 0, 4}, {"s5", 0, 5}, {"s8", 0, 8}};
enum { FORMS = sizeof forms / sizeof *forms };

static int has_form(const struct grouped_kernel *k, const struct grouped_form *f)
{
    return f->parts > 1 ? k->parts : f->pair <= k->shares;
}

static uint32_t ctas_of(const struct grouped_kernel *k, const struct grouped_form *f)
{
    return (k->ctas << f->pair) * f->parts;
}

static uint32_t ceil_div(uint64_t a, uint64_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

/*
 * SM cycles of a k-block in each kernel of sm_90a, alone and with shared loads, in long runs on an H200
 * (tests/bench/bench_grouped.c --all). Without scales they count what an SM fetches, too.
 */
static const uint16_t block_cycles[][PAIRS] = {{350, 350},   {918, 918},   {920, 920},
                                               {1120, 1120}, {1280, 1280}, {350, 350},
                                               {920, 920},   {410, 280},   {680, 586},
                                               {580, 477},   {1130, 950},  {580, 477},
                                               {1130, 950},  {1630, 1630}, {225, 225}};
enum { TIMED = sizeof block_cycles / sizeof *block_cycles };

static int is_90(const struct grouped_kernel *k)
{
    return k < kernels + TIMED;
}

/* Columns of tiles that a cluster computes side by side: two pairs'. */
static uint32_t cluster_sides(const struct grouped_kernel *k, uint32_t pair)
{
    return k->ctas << pair > 2 ? 2 : 1;
}

/* Rows of tiles of all groups, in units that are computed together: two rows if `two`, else one. A row
 * that is left over counts half, because its tiles are computed side by side. The rows of groups are
 * spread about the mean, except those of planes, which are known. */
static double tile_rows(const struct grouped_problem *p, uint32_t tile_m, uint32_t two)
{
    static const double spread[] = {0.7, 0.85, 1, 1.15, 1.3};
    double rows = 0;
    for (size_t i = 0; i < sizeof spread / sizeof *spread; i++) {
        uint32_t n = p->kind == HEWN_GROUPED_PLANES
                         ? ceil_div(p->m, tile_m)
                         : ceil_div((uint64_t)(spread[i] * p->expected_m) + 1, tile_m);
        rows += (n >> two) + (n & two) / 2.0;
    }
    return rows * p->groups / 5;
}

/* Bytes of the groups' operands, with `row` bytes along k, and results. */
static double all_bytes(const struct grouped_problem *p, double row)
{
    const double n = p->n, m = p->expected_m;
    return p->groups *
           (row * ((double)p->of[GROUPED_B].rows + m) + n * m * p->of[GROUPED_D].element);
}

/* Clusters that run at once. A cluster lies within a GPC, and GPCs have different numbers of SMs. An
 * H200 holds 66 clusters of 2 CTAs, 39 of 3, 30 of 4, 15 of 8. */
static uint32_t clusters_of(uint32_t sm_count, uint32_t cluster)
{
    uint32_t fit = (cluster <= 2 ? sm_count : sm_count - sm_count / 11) / cluster;
    uint32_t less = cluster & (cluster - 1) ? 1 + (cluster > 4) : 0;
    return fit > less ? fit - less : 1;
}

/* The third power of a run's time as a model of an H200, in SM cycles. Only the order of the candidates matters.
 * Computing, with what an SM fetches, and the memory's time both count: of either, the longer one most. */
static double cost_90(const struct grouped_kernel *k, const struct grouped_form *f,
                      const struct grouped_problem *p, uint32_t sm_count)
{
    static const double per_tile = 340, tall = 2000, lone = 180, swap = 600, exchange = 1500,
                        a_row = 80;
    static const double l2_bytes = 47, memory_bytes = 2440; /* a cycle, of L2 an SM's */
    const uint32_t pair = f->pair, parts = f->parts;
    const int by_k = k->tile_m == 64 && k->tile_n <= 128 && !UNSCALED(p->scales);
    double tiles = tile_rows(p, k->tile_m, 0) * ceil_div(p->columns, k->tile_n);
    double waves =
        ceil_div((uint64_t)(tiles + 0.999), parts > 1 ? clusters_of(sm_count, parts) : sm_count);
    double multiply = block_cycles[k - kernels][pair > 0];
    /* one consumer multiplies: nobody's products run beside its additions */
    if (k->tile_m == 128 && p->expected_m <= 64) multiply = multiply / 2 + lone;
    /* a tile of 256 rows leaves out its last 64 where the group has no rows there */
    if (k->tile_m > 128 && p->expected_m > 128 && p->expected_m <= 192) multiply *= 0.9;
    const uint32_t rows = p->expected_m < k->tile_m ? p->expected_m : k->tile_m;
    double fetch = GROUPED_BLOCK * (rows + k->tile_n * (pair ? 0.99 : 1)) / l2_bytes;
    if (!UNSCALED(p->scales) && multiply < fetch) multiply = fetch;
    double busy = waves * (multiply * ceil_div(p->k_blocks, parts) + per_tile +
                           (parts > 1 ? exchange + a_row * rows : 0) +
                           (k->tile_m > 128 ? tall : 0) + (by_k ? swap : 0)),
           memory = all_bytes(p, p->k) / memory_bytes;
    return busy * busy * busy + memory * memory * memory;
}

/* Whether clusters make tiles of the last wave in halves where that leaves half of them idle. */
static int halves(const struct grouped_kernel *k, uint32_t pair)
{
    return pair && k->gather4 && k->tile_n << (k->scales == GROUPED_UNSCALED_GLU) == 256;
}

/* By the rates of a B200, in SM cycles: a k-block's MMAs, N / 2 cycles each of four, or L2 or the SM's copy engine for
 * its operands, of so many rows of A and columns. */
static double block_100(double rows, double columns, uint32_t ctas, uint32_t cluster)
{
    static const double l2_bytes = 61, copy_bytes = 95.5;
    double fetch = GROUPED_BLOCK / l2_bytes *
                   (rows / (cluster > 2 ? 2 * ctas : ctas) + columns / (cluster > 1 ? 2 : 1));
    double copy = GROUPED_BLOCK / copy_bytes * (rows + columns) / ctas;
    if (fetch < copy) fetch = copy;
    return fetch < 2 * columns ? 2 * columns : fetch;
}

/* Columns of tiles, or of two tiles side by side. A narrow last one counts as a fraction. */
static double tile_columns(const struct grouped_kernel *k, uint32_t columns, uint32_t sides)
{
    const uint32_t whole = columns / (k->tile_n * sides), rest = columns % (k->tile_n * sides);
    const uint32_t width = ceil_div(rest, (uint64_t)SM100F_SCALED_NARROW_N * sides);
    const double last = (double)width * SM100F_SCALED_NARROW_N / k->tile_n;
    return whole + (!rest ? 0 : k->narrows && last < 1 ? last : 1);
}

/*
 * A run's time by the cycle model's rates of a B200, in SM cycles. Each wave of tiles takes as long as a tile, or as the
 * memory for the operands of all its tiles. The last wave may have few tiles, or halves of them.
 */
static double cost_100(const struct grouped_kernel *k, const struct grouped_form *f,
                       const struct grouped_problem *p, uint32_t sm_count)
{
    static const double memory_bytes = 4800;
    const uint32_t pair = f->pair;
    const uint32_t sides = cluster_sides(k, pair), cluster = k->ctas << pair;
    const uint32_t columns = k->tile_n << (p->scales == GROUPED_UNSCALED_GLU); /* rows of B */
    uint32_t clusters = sm_count / cluster;
    if (sides > 1 && clusters > 1) clusters--; /* a GPC has any even number of SMs */
    if (!clusters) clusters = 1;
    double waves = tile_rows(p, k->tile_m, pair && k->ctas == 1) *
                   tile_columns(k, p->columns, sides) / clusters;
    double rows =
        p->kind != HEWN_GROUPED_OFFSETS && p->expected_m < k->tile_m ? p->expected_m : k->tile_m;
    /* results that were added up in registers are stored while no more are added */
    const double per_tile = p->scales == GROUPED_BLOCK_SCALES ? 4 * 340 : 340;
    double busy = block_100(rows, columns, k->ctas, cluster) * p->k_blocks + per_tile;
    double memory = all_bytes(p, (double)GROUPED_BLOCK * p->k_blocks) / memory_bytes / waves;
    double whole = (double)(uint64_t)waves, last = (waves - whole) * memory;
    double time = whole * (busy < memory ? memory : busy);
    /* sums in registers leave none for halves of f32 results */
    const int wide = p->scales == GROUPED_BLOCK_SCALES && p->of[GROUPED_D].element == 4;
    if (halves(k, pair) && !wide && waves - whole <= 0.5)
        busy = block_100(rows, columns / 2.0, k->ctas, cluster) * p->k_blocks + per_tile;
    if (waves > whole) time += busy < last ? last : busy;
    return time;
}

/* Whether `name` is the kernel's variant in that form. */
static int is_named(const char *name, const struct grouped_kernel *k, const struct grouped_form *f)
{
    size_t length = strlen(k->variant);
    return strncmp(name, k->variant, length) == 0 && strcmp(name + length, f->name) == 0;
}

/* The cheapest kernel, of this device's or of the others. */
static void choose_among(hewn_grouped_plan *plan, const char *name, int ours, int clusters)
{
    const hewn_device_info *device = &plan->context->info;
    double least = 0;
    for (size_t i = 0; i < KERNELS; i++)
        for (const struct grouped_form *f = forms; f < forms + FORMS; f++) {
            const struct grouped_kernel *k = &kernels[i];
            if (k->scales != plan->problem.scales || !has_form(k, f)) continue;
            if (hewn_target_runs_on(k->target, device->cc_major, device->cc_minor) != ours)
                continue;
            if (ctas_of(k, f) > (clusters ? (uint32_t)device->sm_count : 1) && !name) continue;
            if (name && !is_named(name, k, f)) continue;
            if (f->pair > 1 && plan->problem.a_rows) continue; /* the four share boxes of A */
            if (f->parts > plan->problem.k_blocks && !name) continue;
            if (!name && f->pair && is_90(k) && plan->problem.m <= k->tile_m &&
                plan->problem.columns <= k->tile_n)
                continue; /* one tile a group */
            if (is_90(k) && (k->tile_m > 128 || k->tile_n < 128) && plan->problem.a_rows)
                continue; /* no kernel */
            double c =
                (is_90(k) ? cost_90 : cost_100)(k, f, &plan->problem, (uint32_t)device->sm_count);
            if (plan->kernel && c >= least) continue;
            plan->kernel = k;
            plan->form = f;
            least = c;
        }
}

static int choose_kernel(hewn_grouped_plan *plan, const char *name, hewn_error *err)
{
    const hewn_context *context = plan->context;
    int clusters = context->limits.cluster_launch && context->driver->fn.launch_kernel_ex;
    choose_among(plan, name, 1, clusters);
    if (!plan->kernel) {
        choose_among(plan, name, 0, clusters); /* unasked, load_kernel refuses it */
        if (plan->kernel && name)
            return hewn_fail(err, HEWN_ERR_NO_MODULE,
                             "variant: \"%s\" is of %s, which this device does not run", name,
                             plan->kernel->target);
    }
    if (!plan->kernel)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "variant: there is no kernel \"%s\"%s", name,
                         plan->problem.a_rows ? " of rows by number" : "");
    if (plan->form->parts > plan->problem.k_blocks)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "variant: \"%s\" has %u parts, and k %u blocks of %u", name,
                         plan->form->parts, plan->problem.k_blocks, plan->problem.tile_k);
    plan->scalars.pair = plan->form->pair;
    if (ctas_of(plan->kernel, plan->form) > 1 && !clusters)
        return hewn_fail(err, HEWN_ERR_LIMIT, "variant: \"%s\" needs clusters", name);
    snprintf(plan->variant, sizeof plan->variant, "%s%s", plan->kernel->variant, plan->form->name);
    return HEWN_OK;
}

static int load_kernel(hewn_grouped_plan *plan, hewn_context *context, hewn_error *err)
{
    static const char *const blocks[] = {"mx8", "mx4", "nv4", "mw8", "h16"};
    const int scales = plan->problem.scales;
    char name[48];
    snprintf(name, sizeof name, "grouped_%s_%s_%s%s",
             SCALED_TEXT(scales) ? blocks[scales - SCALES_mx8] : hewn_dtype_name(plan->problem.in),
             hewn_dtype_name(plan->problem.out), plan->kernel->variant,
             plan->problem.a_rows ? "_rows" : "");
    int status = hewn_plan_need_maps(context, name, err);
    return status ? status
                  : hewn_plan_load(context, hewn_grouped_family(), name, plan->kernel->shared,
                                   &plan->loaded, err);
}

/* ---- what does not depend on addresses -- */

static int fill_scalars(hewn_grouped_plan *plan, hewn_error *err)
{
    const struct grouped_problem *p = &plan->problem;
    const struct grouped_kernel *k = plan->kernel;
    struct grouped_scalars *s = &plan->scalars;
    uint64_t tiles_m = ceil_div(p->m, k->tile_m);
    s->d_pitch = p->of[GROUPED_D].pitch;
    s->d_plane = p->of[GROUPED_D].plane;
    s->scale_b_row = p->of[GROUPED_SB].pitch;
    s->scale_b_plane = p->of[GROUPED_SB].plane;
    s->groups = p->groups;
    s->m = p->m;
    s->n = p->n;
    s->k = p->k;
    s->k_blocks = p->k_blocks;
    s->tiles_n = ceil_div(p->columns, k->tile_n * cluster_sides(k, s->pair));
    s->raster_rows = k->raster_rows >> (s->pair > 0);
    s->kind = (uint32_t)p->kind;
    s->align = p->align;
    s->a_rows = p->a_rows;
    s->a_pitch = k->gather4 ? p->of[GROUPED_S].plane : p->of[GROUPED_A].pitch;
    s->scale_a_row = p->of[GROUPED_S].pitch;
    if (tiles_m * s->tiles_n <= INT32_MAX / p->groups) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_LIMIT,
                     "m, n, groups: %llu x %u tiles, %u times, are more than %d",
                     (unsigned long long)tiles_m, s->tiles_n, p->groups, INT32_MAX);
}

/* Persistent: as many clusters as the device holds at once. How many tiles there are is known when it runs; no more
 * than if every group had all rows. */
static void configure(hewn_grouped_plan *plan)
{
    const struct hewn_driver_table *fn = &plan->context->driver->fn;
    const struct grouped_kernel *k = plan->kernel;
    const uint32_t cluster = ctas_of(k, plan->form);
    const uint64_t tiles = (uint64_t)plan->problem.groups * plan->scalars.tiles_n *
                           ceil_div(plan->problem.m, k->tile_m);
    uint32_t resident = (uint32_t)plan->context->info.sm_count / cluster;
    unsigned n = 0;
    int fit = 0;
    plan->config = (hewn_cu_launch_config){.grid_x = cluster,
                                           .grid_y = 1,
                                           .grid_z = 1,
                                           .block_x = k->threads,
                                           .block_y = 1,
                                           .block_z = 1,
                                           .shared_bytes = k->shared,
                                           .attributes = plan->attributes};
    if (cluster > 1) {
        plan->attributes[n].id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION;
        plan->attributes[n].value.cluster.x = cluster;
        plan->attributes[n].value.cluster.y = 1;
        plan->attributes[n++].value.cluster.z = 1;
    }
    if (fn->launch_kernel_ex) {
        plan->attributes[n].id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
        plan->attributes[n++].value.flag = 1;
    }
    plan->config.attribute_count = n;
    if (cluster > 1 && fn->occupancy_max_active_clusters &&
        !fn->occupancy_max_active_clusters(&fit, plan->loaded->function, &plan->config) && fit > 0)
        resident = (uint32_t)fit;
    if (resident > tiles && !plan->form->pair && k->ctas == 1) resident = (uint32_t)tiles;
    plan->config.grid_x = cluster * resident;
}

/* Maps that are encoded: without scales the kernel does not use the last ones. */
static size_t map_count(const hewn_grouped_plan *plan)
{
    const int scales = plan->problem.scales;
    return halves(plan->kernel, plan->scalars.pair) ? GROUPED_MAP_COUNT
           : UNSCALED(scales)                       ? GROUPED_S
           : !SCALED_TEXT(scales)                   ? GROUPED_MAP_COUNT
                                  : GROUPED_NARROW + (size_t)plan->kernel->narrows;
}

/* Of block scales: words of an atom, atoms along k, rows of atoms, planes; or words of rows, along k, planes. */
static hewn_tensormap_desc atoms_map(const hewn_grouped_plan *plan, size_t i)
{
    const struct grouped_tensor *t = &plan->problem.of[i];
    const uint32_t vectors = plan->problem.scales == SCALES_nv4 ? 16 : 32;
    const uint32_t atoms = plan->problem.tile_k / vectors / SCALED_ATOM_SCALES;
    const int words = plan->problem.scales == SCALES_mw8;
    const uint32_t share = words ? 1 : plan->kernel->ctas; /* words each CTA loads for itself */
    const uint32_t rows = i == GROUPED_S ? SCALED_ATOM_ROWS : plan->kernel->tile_n / share;
    const uint32_t rows_of_atoms = ceil_div(rows, SCALED_ATOM_ROWS);
    if (words)
        return (hewn_tensormap_desc){
            .struct_size = sizeof(hewn_tensormap_desc),
            .dtype = HEWN_TENSORMAP_U32,
            .rank = 3,
            .dim = {t->columns, t->rows, t->planes},
            .stride = {t->pitch, t->plane},
            .box = {rows_of_atoms * SCALED_ATOM_ROWS, 1, 1},
            .element_stride = {1, 1, 1, 1, 1},
        };
    return (hewn_tensormap_desc){
        .struct_size = sizeof(hewn_tensormap_desc),
        .dtype = HEWN_TENSORMAP_U32,
        .rank = 4,
        .dim = {SCALED_ATOM_BYTES / WORD, t->columns / SCALED_ATOM_BYTES, t->rows, t->planes},
        .stride = {SCALED_ATOM_BYTES, t->pitch, t->plane},
        .box = {SCALED_ATOM_BYTES / WORD, atoms, rows_of_atoms, 1},
        .element_stride = {1, 1, 1, 1, 1},
    };
}

/* D's map ends at the last whole chunk of a row, or has one chunk, through which nothing is stored. */
static int prepare_maps(hewn_grouped_plan *plan, hewn_error *err)
{
    const struct grouped_kernel *k = plan->kernel;
    const uint32_t pair = plan->scalars.pair, half = pair || k->ctas > 1;
    const struct grouped_problem *p = &plan->problem;
    const uint32_t block = GROUPED_BLOCK / p->of[GROUPED_A].element;
    uint32_t rows_a = k->tile_m / k->ctas >> pair;
    if (is_90(k) && !pair && p->m < rows_a) rows_a = ceil_div(p->m, ROW_UNIT) * ROW_UNIT;
    static const uint8_t types[] = {
        [HEWN_E4M3] = HEWN_TENSORMAP_U8,   [HEWN_E5M2] = HEWN_TENSORMAP_U8,
        [HEWN_E2M1] = HEWN_TENSORMAP_U8,   [HEWN_F16] = HEWN_TENSORMAP_F16,
        [HEWN_BF16] = HEWN_TENSORMAP_BF16, [HEWN_F32] = HEWN_TENSORMAP_F32};
    const struct {
        int dtype, swizzle;
        uint32_t box[2];
    } how[] = {
        {types[p->in], HEWN_TENSORMAP_SWIZZLE_128B, {block, rows_a}},
        {types[p->in],
         HEWN_TENSORMAP_SWIZZLE_128B,
         {block, k->tile_n >> (half && k->scales != GROUPED_UNSCALED_GLU)}},
        {types[p->out],
         HEWN_TENSORMAP_SWIZZLE_128B,
         {GEMM_D_ROW_BYTES / p->of[GROUPED_D].element, k->d_rows}},
        {HEWN_TENSORMAP_F32,
         HEWN_TENSORMAP_SWIZZLE_NONE,
         {(k->tile_m > 128 ? 128 : k->tile_m) + 4, 1}},
    };
    const size_t count = map_count(plan);
    for (size_t i = 0; i < count; i++) {
        if (i == GROUPED_NARROW) continue; /* below */
        if (i >= GROUPED_S && SCALED_TEXT(p->scales)) {
            plan->maps[i].desc = atoms_map(plan, i);
            continue;
        }
        const struct grouped_tensor *t = &plan->problem.of[i];
        uint64_t columns = t->columns, chunk = GEMM_D_CHUNK_BYTES / t->element;
        if (i == GROUPED_D) columns = columns < chunk ? chunk : columns / chunk * chunk;
        plan->maps[i].desc = (hewn_tensormap_desc){
            .struct_size = sizeof(hewn_tensormap_desc),
            .dtype = how[i].dtype,
            .rank = 3,
            .dim = {columns, t->rows, t->planes},
            .stride = {t->pitch, t->plane},
            .box = {how[i].box[0], how[i].box[1], 1},
            .element_stride = {1, 1, 1, 1, 1},
            .swizzle = how[i].swizzle,
            .l2 = i < GROUPED_D ? HEWN_TENSORMAP_L2_256B : HEWN_TENSORMAP_L2_NONE,
        };
        if (i == GROUPED_A && p->a_rows && k->gather4) { /* rows by number: gather4 */
            plan->maps[i].desc.rank = 2;
            plan->maps[i].desc.box[1] = 1;
        }
        if (!t->packed) continue;
        plan->maps[i].desc.dtype = HEWN_TENSORMAP_16U4_ALIGN16B;
        plan->maps[i].desc.dim[0] *= 2;
    }
    if (halves(k, pair) || k->narrows) {
        hewn_tensormap_desc *again = &plan->maps[halves(k, pair) ? GROUPED_S : GROUPED_NARROW].desc;
        *again = plan->maps[GROUPED_B].desc;
        again->box[1] = halves(k, pair) ? again->box[1] / 2 : SM100F_SCALED_NARROW_LOAD;
    }
    return hewn_plan_prepare_maps(plan->context, plan->maps, hewn_grouped_names, count, err);
}

static int fill_plan(void *at, hewn_context *context, const void *given, hewn_error *err)
{
    hewn_grouped_plan *plan = at;
    const hewn_grouped_desc *desc = given;
    plan->context = context;
    int status = hewn_grouped_check(desc, &plan->problem, err);
    if (!status) status = choose_kernel(plan, desc->variant, err);
    if (!status) status = fill_scalars(plan, err);
    if (!status) status = load_kernel(plan, context, err);
    if (!status)
        status = hewn_context_push(context, err); /* the driver answers for the current one */
    if (status) return status;
    configure(plan);
    status = prepare_maps(plan, err);
    hewn_context_pop(context);
    return status;
}

int hewn_grouped_plan_create(hewn_context *context, const hewn_grouped_desc *desc,
                             hewn_grouped_plan **out, hewn_error *err)
{
    return hewn_plan_create(sizeof(**out), context, HEWN_STRUCT_hewn_grouped_desc, desc, fill_plan,
                            out, err);
}

void hewn_grouped_plan_destroy(hewn_grouped_plan *plan)
{
    free(plan);
}

int hewn_grouped_plan_describe(const hewn_grouped_plan *plan, hewn_grouped_plan_info *out,
                               hewn_error *err)
{
    if (!plan) return hewn_fail_null(err, "plan");
    const hewn_cu_launch_config *c = &plan->config;
    const hewn_grouped_plan_info info = {
        .module = plan->loaded->module->name,
        .target = plan->loaded->module->target,
        .origin = plan->loaded->origin,
        .variant = plan->variant,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
        .cluster = {ctas_of(plan->kernel, plan->form), 1, 1},
        .dynamic_shared = c->shared_bytes,
        .tile_m = plan->kernel->tile_m / plan->kernel->ctas,
        .tile_n = plan->kernel->tile_n,
        .tile_k = plan->problem.tile_k,
        .stages = plan->kernel->stages,
    };
    return hewn_struct_give(HEWN_STRUCT_hewn_grouped_plan_info, &info, out, err);
}

/* ---- a run -- */

static int check_addresses(const hewn_grouped_plan *plan, const hewn_grouped_args *a,
                           hewn_error *err)
{
    const struct grouped_problem *p = &plan->problem;
    const int listed = p->kind != HEWN_GROUPED_PLANES, block = SCALED_TEXT(p->scales);
    const enum hewn_need scaled = hewn_needed(!UNSCALED(p->scales));
    const int quantised = QUANTISED(p->out);
    const enum hewn_need may = quantised ? ADDRESS_MAY : ADDRESS_NONE;
    const struct hewn_address list[] = {
        {"a", a->a, ADDRESS_MUST, (uint32_t)GROUPED_ALIGN << p->of[GROUPED_A].packed,
         p->of[GROUPED_A].span, 0},
        {"b", a->b, ADDRESS_MUST, (uint32_t)GROUPED_ALIGN << p->of[GROUPED_B].packed,
         p->of[GROUPED_B].span, 0},
        {"d", a->d, ADDRESS_MUST, GROUPED_ALIGN, p->of[GROUPED_D].span, 1},
        {"scale_a", a->scale_a, scaled, GROUPED_ALIGN, p->of[GROUPED_S].span, 0},
        {"scale_b", a->scale_b, scaled, p->scales ? GROUPED_ALIGN : WORD, p->of[GROUPED_SB].span,
         0},
        {"alpha", a->alpha, block ? ADDRESS_MAY : ADDRESS_NONE, WORD, WORD * (uint64_t)p->groups,
         0},
        {"scale_d", a->scale_d, hewn_needed(quantised), GROUPED_ALIGN, p->of[GROUPED_SD].span, 1},
        {"bias", a->bias, may, WORD, WORD * (uint64_t)p->groups * p->columns, 0},
        {"factor", a->factor, may, WORD, WORD * (uint64_t)p->groups, 0},
        {"index", a->index, hewn_needed(p->a_rows != 0), WORD,
         p->a_rows ? WORD * p->of[GROUPED_D].rows * p->of[GROUPED_D].planes : 0, 0},
        {"rows", a->rows, hewn_needed(listed), WORD, listed ? WORD * (uint64_t)p->groups : 0, 0},
    };
    return hewn_addresses_check(list, sizeof list / sizeof *list, err);
}

/* Of block-scaled products, from those of the others. */
static struct scaled_scalars scaled_of(const hewn_grouped_plan *plan, const hewn_grouped_args *a)
{
    const struct grouped_scalars *s = &plan->scalars;
    return (struct scaled_scalars){.d = a->d,
                                   .d_pitch = s->d_pitch,
                                   .d_plane = s->d_plane,
                                   .rows = a->rows,
                                   .alpha = a->alpha,
                                   .groups = s->groups,
                                   .m = s->m,
                                   .n = s->n,
                                   .k_blocks = s->k_blocks,
                                   .tiles_n = s->tiles_n,
                                   .raster_rows = s->raster_rows,
                                   .kind = s->kind,
                                   .align = s->align,
                                   .formats = plan->problem.formats,
                                   .act = (uint32_t)plan->problem.act,
                                   .scale_d = a->scale_d,
                                   .scale_d_row = plan->problem.of[GROUPED_SD].pitch,
                                   .scale_d_plane = plan->problem.of[GROUPED_SD].plane,
                                   .bias = a->bias,
                                   .factor = a->factor};
}

static int launch(const hewn_grouped_plan *plan, const hewn_grouped_args *a, hewn_stream stream,
                  hewn_error *err)
{
    hewn_cu_tensor_map maps[GROUPED_MAPPED] = {0};
    const hewn_deviceptr s =
        halves(plan->kernel, plan->scalars.pair) ? a->b : a->scale_a; /* map_s */
    const hewn_deviceptr at[GROUPED_MAPPED] = {a->a, a->b, a->d, s, a->scale_b, a->b};
    const int block = SCALED_TEXT(plan->problem.scales);
    int status = hewn_plan_place_maps(plan->context, plan->maps, hewn_grouped_names, at,
                                      map_count(plan), maps, err);
    if (status) return status;
    struct grouped_scalars scalars = plan->scalars;
    struct scaled_scalars scaled = scaled_of(plan, a);
    scalars.d = a->d;
    scalars.scale_b = a->scale_b;
    scalars.rows = a->rows;
    scalars.index = a->index;
    scalars.a = a->a;
    scalars.scale_a = a->scale_a;
    struct hewn_params params;
    hewn_params_begin(&params, maps, block ? SCALED_MAP_COUNT : GROUPED_MAP_COUNT);
    if (block)
        hewn_params_add(&params, &scaled, SCALED_SCALARS(HEWN_SCALAR_SIZE));
    else
        hewn_params_add(&params, &scalars, GROUPED_SCALARS(HEWN_SCALAR_SIZE));
    return hewn_plan_launch(plan->context, plan->loaded, &plan->config, stream, &params, err);
}

int hewn_grouped_plan_run(const hewn_grouped_plan *plan, const hewn_grouped_args *args,
                          hewn_stream stream, hewn_error *err)
{
    hewn_grouped_args a;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_grouped_args, args, &a, err);
    if (!status) status = check_addresses(plan, &a, err);
    return status ? status : launch(plan, &a, stream, err);
}
