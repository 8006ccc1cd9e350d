/*
 * GEMM: a plan checks the problem and fixes everything but the addresses; a run puts them into three
 * tensor maps on the stack and launches. The kernels' side of the bargain is ptx/inc/gemm.plan.h and the
 * plan header of each target.
 */
#include "context.h"

#include "error.h"
#include "gemm_kernels.h"

#include "../ptx/inc/gemm.plan.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel's scalar parameters, in its order. */
#define u64 uint64_t
#define u32 uint32_t
struct scalars {
#define X(type, name, rule) type name;
    GEMM_SCALARS(X)
#undef X
};
#undef u32
#undef u64

enum {
    A,
    B,
    D,
    OPERANDS,
    PARAMS = OPERANDS + GEMM_SCALAR_COUNT,
    ATTRIBUTES = 2, /* of a launch: cluster, programmatic */
    PROGRAMMATIC_CC = 9,
    PROGRAMMATIC_DRIVER = 12030, /* from this version stream capture takes the attribute, too */
    TMA_ALIGN = 16,              /* bytes: base addresses and strides */
    MAX_EXTENT = INT32_MAX /* TMA coordinates and the kernel's tile counter are 32-bit, signed */
};

_Static_assert(offsetof(struct scalars, raster_rows) + 4 + 3 * GEMM_MAP_BYTES == GEMM_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");

static const uint64_t stride_end = UINT64_C(1) << 40; /* bytes; TMA's own limit */

/* One matrix of the problem, or the row of `batch` such matrices. */
struct operand {
    char name;
    uint64_t rows, columns;
    uint64_t element; /* bytes */
    uint64_t pitch;   /* bytes between rows */
    uint64_t batch;   /* matrices behind the pointer: 1 where all problems share one */
    uint64_t plane;   /* bytes between matrices */
    uint64_t span;    /* bytes from the first element to the end of the last */
};

struct hewn_gemm_plan {
    const hewn_context *context;
    const struct hewn_loaded *loaded;
    const struct hewn_gemm_kernel *kernel;
    uint32_t parts; /* of K, the CTAs of a cluster that sum up one tile */
    struct operand operands[OPERANDS];
    struct hewn_map maps[OPERANDS];
    struct scalars scalars;
    hewn_cu_launch_attribute attributes[ATTRIBUTES];
    hewn_cu_launch_config config; /* without stream */
};

/* ---- checking the problem -- */

static int check_extent(const char *name, int64_t value, hewn_error *err)
{
    if (value < 1)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is not at least 1", name,
                         (long long)value);
    if (value > MAX_EXTENT)
        return hewn_fail(err, HEWN_ERR_LIMIT, "%s: %lld is more than %d, the kernel's limit", name,
                         (long long)value, MAX_EXTENT);
    return HEWN_OK;
}

static int check_dtypes(const hewn_gemm_desc *d, hewn_error *err)
{
    const char *in = hewn_dtype_name(d->in);
    if (d->in != HEWN_F16 && d->in != HEWN_BF16)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "in: dtype %d (%s) is neither f16 nor bf16", d->in,
                         in ? in : "unknown");
    const char *out = hewn_dtype_name(d->out);
    if (d->out != HEWN_F32 && d->out != HEWN_F16 && d->out != HEWN_BF16)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "out: dtype %d (%s) is none of f32, f16, bf16",
                         d->out, out ? out : "unknown");
    return HEWN_OK;
}

/* `elements` becomes bytes, if TMA takes it as a stride. */
static int check_stride(const struct operand *o, const char *what, int64_t elements,
                        uint64_t *bytes, hewn_error *err)
{
    if (elements < 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%c: %s %lld elements is negative", o->name, what,
                         (long long)elements);
    if ((uint64_t)elements > (stride_end - 1) / o->element)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%c: %s %lld elements of %d B is not below 2^40 B",
                         o->name, what, (long long)elements, (int)o->element);
    *bytes = (uint64_t)elements * o->element;
    if (*bytes % TMA_ALIGN)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%c: %s %llu B is not a multiple of %d B", o->name,
                         what, (unsigned long long)*bytes, TMA_ALIGN);
    return HEWN_OK;
}

/* Problems of one D may follow each other, or lie side by side in its rows; any other pattern is
 * refused, though a few more would be free of overlap. */
static int check_problems_apart(const struct operand *d, int64_t stride, hewn_error *err)
{
    uint64_t row = d->columns * d->element;
    uint64_t matrix = (d->rows - 1) * d->pitch + row;
    if (d->plane >= matrix) return HEWN_OK;
    if (d->plane >= row && d->plane <= (d->pitch - row) / (d->batch - 1)) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT,
                     "D: batch stride %lld elements makes problems overlap: a problem spans %llu "
                     "elements, a row %llu of its %llu",
                     (long long)stride, (unsigned long long)(matrix / d->element),
                     (unsigned long long)d->columns, (unsigned long long)(d->pitch / d->element));
}

/* Fills the derived fields of an operand whose name, rows, columns and element are set. */
static int check_operand(struct operand *o, int64_t ld, int64_t batch, int64_t stride,
                         hewn_error *err)
{
    if (ld == 0) ld = (int64_t)o->columns;
    int status = check_stride(o, "row stride", ld, &o->pitch, err);
    if (status) return status;
    if ((uint64_t)ld < o->columns)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%c: leading dimension %lld is less than the row's %llu elements", o->name,
                         (long long)ld, (unsigned long long)o->columns);
    o->batch = 1;
    o->plane = o->pitch; /* with one matrix any legal stride will do */
    if (batch > 1) {
        uint64_t bytes;
        status = check_stride(o, "batch stride", stride, &bytes, err);
        if (status) return status;
        if (bytes > 0 || o->name == 'D') {
            o->batch = (uint64_t)batch;
            o->plane = bytes;
        }
    }
    uint64_t planes, rows;
    if (__builtin_mul_overflow(o->batch - 1, o->plane, &planes) ||
        __builtin_mul_overflow(o->rows - 1, o->pitch, &rows) ||
        __builtin_add_overflow(planes, rows, &o->span) ||
        __builtin_add_overflow(o->span, o->columns * o->element, &o->span))
        return hewn_fail(err, HEWN_ERR_LIMIT, "%c: %llu rows of %llu B, %llu times: past 2^64 B",
                         o->name, (unsigned long long)o->rows, (unsigned long long)o->pitch,
                         (unsigned long long)o->batch);
    if (o->batch > 1 && o->name == 'D') return check_problems_apart(o, stride, err);
    return HEWN_OK;
}

static int check_problem(const hewn_gemm_desc *d, int64_t batch, struct operand operands[OPERANDS],
                         hewn_error *err)
{
    int status = check_dtypes(d, err);
    if (!status) status = check_extent("m", d->m, err);
    if (!status) status = check_extent("n", d->n, err);
    if (!status) status = check_extent("k", d->k, err);
    if (!status) status = check_extent("batch", batch, err);
    if (status) return status;
    uint64_t m = (uint64_t)d->m, n = (uint64_t)d->n, k = (uint64_t)d->k;
    uint64_t in = hewn_dtype_size(d->in), out = hewn_dtype_size(d->out);
    operands[A] = (struct operand){.name = 'A', .rows = m, .columns = k, .element = in};
    operands[B] = (struct operand){.name = 'B', .rows = n, .columns = k, .element = in};
    operands[D] = (struct operand){.name = 'D', .rows = m, .columns = n, .element = out};
    status = check_operand(&operands[A], d->lda, batch, d->stride_a, err);
    if (!status) status = check_operand(&operands[B], d->ldb, batch, d->stride_b, err);
    if (!status) status = check_operand(&operands[D], d->ldd, batch, d->stride_d, err);
    return status;
}

/* ---- what does not depend on addresses -- */

static uint32_t ceil_div(uint64_t a, uint32_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

static int compute_scalars(const struct hewn_gemm_kernel *k, const hewn_gemm_desc *d, int64_t batch,
                           const struct operand *operands, struct scalars *s, hewn_error *err)
{
    s->d_pitch = operands[D].pitch;
    s->d_plane = operands[D].plane;
    s->m = (uint32_t)d->m;
    s->n = (uint32_t)d->n;
    s->k_blocks = ceil_div((uint64_t)d->k, k->tile_k);
    uint32_t tile_m = k->tile_m * k->pair_m, tile_n = k->tile_n * k->pair_n;
    s->tiles_m = ceil_div(s->m, tile_m);
    s->tiles_n = ceil_div(s->n, tile_n);
    uint64_t tiles = (uint64_t)s->tiles_m * s->tiles_n;
    if (tiles > (uint64_t)(MAX_EXTENT / batch))
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "m, n, batch: %u x %u tiles of %u x %u, %lld times, are more than %d",
                         s->tiles_m, s->tiles_n, tile_m, tile_n, (long long)batch, MAX_EXTENT);
    s->tiles = (uint32_t)(tiles * (uint64_t)batch);
    s->step_a = operands[A].batch > 1;
    s->step_b = operands[B].batch > 1;
    s->raster_rows = s->tiles_m < k->raster_rows ? s->tiles_m : k->raster_rows;
    return HEWN_OK;
}

static void describe_map(const struct operand *o, int dtype, uint32_t box_columns,
                         uint32_t box_rows, hewn_tensormap_desc *map)
{
    static const int tm_dtypes[] = {
        [HEWN_F32] = HEWN_TM_F32, [HEWN_F16] = HEWN_TM_F16, [HEWN_BF16] = HEWN_TM_BF16};
    *map = (hewn_tensormap_desc){
        .struct_size = sizeof *map,
        .dtype = tm_dtypes[dtype],
        .rank = 3,
        .dim = {o->columns, o->rows, o->batch},
        .stride = {o->pitch, o->plane},
        .box = {box_columns, box_rows, 1},
        .element_stride = {1, 1, 1},
        .swizzle = HEWN_TM_SWIZZLE_128B,
        .l2 = HEWN_TM_L2_256B,
    };
}

static void describe_maps(hewn_gemm_plan *plan, const hewn_gemm_desc *d)
{
    const struct hewn_gemm_kernel *k = plan->kernel;
    const struct operand *o = plan->operands;
    uint32_t d_columns = GEMM_D_ROW_BYTES / (uint32_t)o[D].element;
    describe_map(&o[A], d->in, k->tile_k, k->tile_m / k->pair_n, &plan->maps[A].desc);
    describe_map(&o[B], d->in, k->tile_k, k->tile_n / k->pair_m, &plan->maps[B].desc);
    describe_map(&o[D], d->out, d_columns, k->d_rows, &plan->maps[D].desc);
    /* TMA stores whole chunks; the kernel stores the rest of a row itself (inc/gemm.plan.h). */
    uint64_t chunk = GEMM_D_CHUNK_BYTES / o[D].element, whole = o[D].columns / chunk * chunk;
    plan->maps[D].desc.dim[0] = whole ? whole : chunk;
}

static int prepare_maps(hewn_gemm_plan *plan, hewn_error *err)
{
    const hewn_driver *driver = plan->context->driver;
    for (int i = 0; i < OPERANDS; i++) {
        hewn_cu_result r = hewn_map_prepare(driver, &plan->maps[i]);
        if (r)
            return hewn_fail_driver(err, driver, r, "cuTensorMapEncodeTiled", "%c",
                                    plan->operands[i].name);
    }
    return HEWN_OK;
}

/* Cluster, and programmatic dependent launch: the kernels touch no memory before griddepcontrol.wait,
 * so their set-up may overlap the end of what comes before in the stream. */
static void set_attributes(hewn_gemm_plan *plan, uint32_t cluster)
{
    const hewn_context *context = plan->context;
    unsigned n = 0;
    if (cluster > 1) {
        plan->attributes[n].id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION;
        plan->attributes[n].value.cluster.x = cluster;
        plan->attributes[n].value.cluster.y = 1;
        plan->attributes[n++].value.cluster.z = 1;
    }
    if (context->driver->fn.launch_kernel_ex && context->info.cc_major >= PROGRAMMATIC_CC &&
        context->driver->version >= PROGRAMMATIC_DRIVER) {
        plan->attributes[n].id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
        plan->attributes[n++].value.flag = 1;
    }
    plan->config.attributes = plan->attributes;
    plan->config.attribute_count = n;
}

/* Clusters that run at once: fewer than the SMs would make where parts of the chip hold numbers of SMs
 * that the cluster does not divide. */
static uint32_t resident_clusters(const hewn_gemm_plan *plan, uint32_t cluster)
{
    const struct hewn_gemm_kernel *k = plan->kernel;
    const struct hewn_driver_table *fn = &plan->context->driver->fn;
    uint32_t estimate =
        k->ctas_per_sm * hewn_gemm_clusters((uint32_t)plan->context->info.sm_count, cluster);
    int clusters = 0;
    if (cluster == 1 || !fn->occupancy_max_active_clusters ||
        fn->occupancy_max_active_clusters(&clusters, plan->loaded->function, &plan->config) ||
        clusters < 1)
        return estimate;
    return (uint32_t)clusters;
}

/* Persistent: as many clusters as the device holds at once, each walking its share of the tiles. */
static void configure(hewn_gemm_plan *plan)
{
    const struct hewn_gemm_kernel *k = plan->kernel;
    uint32_t cluster = k->pair_m * k->pair_n * plan->parts, tiles = plan->scalars.tiles, resident;
    plan->config = (hewn_cu_launch_config){
        .grid_x = cluster,
        .grid_y = 1,
        .grid_z = 1,
        .block_x = k->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = k->dynamic_shared,
    };
    set_attributes(plan, cluster);
    resident = resident_clusters(plan, cluster);
    plan->config.grid_x = cluster * (tiles < resident ? tiles : resident);
}

/* ---- choosing and loading the kernel -- */

static int choose_kernel(hewn_context *context, const hewn_gemm_desc *d, hewn_gemm_plan *plan,
                         const hewn_module **out, hewn_error *err)
{
    const struct operand *o = plan->operands;
    const struct hewn_gemm_extent extent = {.m = o[D].rows,
                                            .n = o[D].columns,
                                            .k = o[A].columns,
                                            .batch = o[D].batch,
                                            .in = (uint32_t)o[A].element,
                                            .out = (uint32_t)o[D].element};
    int clusters = context->limits.cluster_launch && context->driver->fn.launch_kernel_ex;
    struct hewn_gemm_choice choice = {NULL, 0};
    char name[48];
    int n =
        snprintf(name, sizeof name, "gemm_%s_%s", hewn_dtype_name(d->in), hewn_dtype_name(d->out));
    /* The variants of a target run on the same devices: that of the plain module tells the target. */
    *out =
        hewn_family_choose(&hewn_gemm_family, name, context->info.cc_major, context->info.cc_minor);
    if (*out) {
        int status = hewn_gemm_choose((*out)->target, d->variant, d->parts, &extent,
                                      (uint32_t)context->info.sm_count, clusters, &choice, err);
        if (status) return status;
    }
    if (choice.kernel && strcmp(choice.kernel->variant, "plain") != 0) {
        snprintf(name + n, sizeof name - (size_t)n, "_%s", choice.kernel->variant);
        *out = hewn_family_choose(&hewn_gemm_family, name, context->info.cc_major,
                                  context->info.cc_minor);
    }
    if (!*out || !choice.kernel) {
        hewn_error_set_no_module(context, &hewn_gemm_family, name, err);
        return HEWN_ERR_NO_MODULE;
    }
    plan->kernel = choice.kernel;
    plan->parts = choice.parts;
    if (!context->driver->fn.tensor_map_encode_tiled)
        return hewn_fail(err, HEWN_ERR_SYMBOL, "%s: the driver lacks cuTensorMapEncodeTiled", name);
    return HEWN_OK;
}

static int fill_plan(hewn_gemm_plan *plan, hewn_context *context, const hewn_gemm_desc *d,
                     hewn_error *err)
{
    int64_t batch = d->batch ? d->batch : 1;
    const hewn_module *module = NULL;
    plan->context = context;
    int status = check_problem(d, batch, plan->operands, err);
    if (!status) status = choose_kernel(context, d, plan, &module, err);
    if (!status)
        status = compute_scalars(plan->kernel, d, batch, plan->operands, &plan->scalars, err);
    if (!status)
        status =
            hewn_load_kernel(context, module, plan->kernel->dynamic_shared, &plan->loaded, err);
    if (status) return status;
    describe_maps(plan, d);
    configure(plan);
    return prepare_maps(plan, err);
}

/* ---- the public functions -- */

int hewn_gemm_plan_create(hewn_context *context, const hewn_gemm_desc *desc, hewn_gemm_plan **out,
                          hewn_error *err)
{
    if (!context) return hewn_fail(err, HEWN_ERR_ARGUMENT, "context: must not be NULL");
    if (!out) return hewn_fail(err, HEWN_ERR_ARGUMENT, "out: must not be NULL");
    int status = hewn_check_struct(desc, sizeof *desc, "hewn_gemm_desc", err);
    if (status) return status;
    hewn_gemm_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for the plan");
    status = fill_plan(plan, context, desc, err);
    if (status) {
        free(plan);
        return status;
    }
    *out = plan;
    return HEWN_OK;
}

void hewn_gemm_plan_destroy(hewn_gemm_plan *plan)
{
    free(plan);
}

int hewn_gemm_plan_describe(const hewn_gemm_plan *plan, hewn_gemm_plan_info *out, hewn_error *err)
{
    if (!plan) return hewn_fail(err, HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    int status = hewn_check_struct(out, sizeof *out, "hewn_gemm_plan_info", err);
    if (status) return status;
    const struct hewn_gemm_kernel *k = plan->kernel;
    const hewn_cu_launch_config *c = &plan->config;
    *out = (hewn_gemm_plan_info){
        .struct_size = out->struct_size,
        .module = plan->loaded->module->name,
        .target = plan->loaded->module->target,
        .origin = plan->loaded->origin,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
        .cluster = {k->pair_m * k->pair_n * plan->parts, 1, 1},
        .dynamic_shared = c->shared_bytes,
        .tmem_columns = k->tmem_columns,
        .tile_m = k->tile_m,
        .tile_n = k->tile_n,
        .tile_k = k->tile_k,
        .stages = k->stages,
        .variant = k->variant,
        .parts = plan->parts,
    };
    return HEWN_OK;
}

/* Two operands of one pitch that keep to different columns (views of one wide matrix) do not
 * overlap though their ranges do. */
static int columns_apart(const struct operand *x, hewn_deviceptr x_at, const struct operand *y,
                         hewn_deviceptr y_at)
{
    uint64_t pitch = x->pitch;
    if (pitch != y->pitch || x->plane % pitch || y->plane % pitch) return 0;
    uint64_t offset = (y_at % pitch + pitch - x_at % pitch) % pitch; /* of y's rows within x's */
    return offset >= x->columns * x->element && offset + y->columns * y->element <= pitch;
}

static int check_addresses(const hewn_gemm_plan *plan, const hewn_deviceptr at[OPERANDS],
                           hewn_error *err)
{
    const struct operand *o = plan->operands;
    for (int i = 0; i < OPERANDS; i++) {
        if (at[i] == 0)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%c: address must not be 0", o[i].name);
        if (at[i] % TMA_ALIGN)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%c: address 0x%llx is not a multiple of %d",
                             o[i].name, at[i], TMA_ALIGN);
        if (o[i].span > UINT64_MAX - at[i])
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "%c: address 0x%llx and %llu B run past the end of memory", o[i].name,
                             at[i], (unsigned long long)o[i].span);
    }
    for (int i = A; i <= B; i++) {
        int apart = at[i] + o[i].span <= at[D] || at[D] + o[D].span <= at[i];
        if (apart || columns_apart(&o[i], at[i], &o[D], at[D])) continue;
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "D: %llu B at 0x%llx overlap %c, %llu B at 0x%llx",
                         (unsigned long long)o[D].span, at[D], o[i].name,
                         (unsigned long long)o[i].span, at[i]);
    }
    return HEWN_OK;
}

int hewn_gemm_run(const hewn_gemm_plan *plan, hewn_deviceptr a, hewn_deviceptr b, hewn_deviceptr d,
                  hewn_stream stream, hewn_error *err)
{
    if (!plan) return hewn_fail(err, HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    const hewn_driver *driver = plan->context->driver;
    const hewn_deviceptr at[OPERANDS] = {a, b, d};
    int status = check_addresses(plan, at, err);
    if (status) return status;

    hewn_cu_tensor_map maps[OPERANDS];
    void *params[PARAMS];
    for (int i = 0; i < OPERANDS; i++) {
        hewn_cu_result r = hewn_map_place(driver, &plan->maps[i], at[i], &maps[i]);
        if (r)
            return hewn_fail_driver(err, driver, r, hewn_map_call(driver), "%c at 0x%llx",
                                    plan->operands[i].name, at[i]);
        params[i] = &maps[i];
    }
    struct scalars scalars = plan->scalars;
    size_t n = OPERANDS;
    scalars.d = d;
#define X(type, name, rule) params[n++] = &scalars.name;
    GEMM_SCALARS(X)
#undef X
    hewn_cu_launch_config config = plan->config;
    config.stream = stream;
    return hewn_launch_config(driver, &config, plan->loaded->function, params, err);
}
