/* GEMM plans: everything about a product except the addresses. */
#include "gemm.h"

#include "error.h"
#include "gemm_cost.h"
#include "gemm_table.h"
#include "plan.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECTOR = 32, /* bytes of memory that are read at once */
    LINE = 128,  /* bytes of a line of L2 */
    PROGRAMMATIC_CC = 9,
    PROGRAMMATIC_DRIVER = 12030 /* from this version stream capture takes the attribute, too */
};

_Static_assert(offsetof(struct gemm_scalars, beta) + 4 + GEMM_MAP_COUNT * MAP_BYTES ==
                   GEMM_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");

/* ---- what does not depend on addresses -- */

_Static_assert(offsetof(struct gemm_loose, address) == GEMM_LOOSE_ADDRESS &&
                   offsetof(struct gemm_loose, pitch) == GEMM_LOOSE_PITCH &&
                   offsetof(struct gemm_loose, plane) == GEMM_LOOSE_PLANE &&
                   offsetof(struct gemm_loose, outer) == GEMM_LOOSE_OUTER &&
                   offsetof(struct gemm_loose, inner) == GEMM_LOOSE_INNER,
               "a loose operand is not laid out as the kernel reads it");

static uint32_t ceil_div(uint64_t a, uint32_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

static int dtype_b(const hewn_gemm_desc *d)
{
    return d->in_b ? d->in_b : d->in;
}

static int is_promoted(const hewn_gemm_desc *d)
{
    return hewn_dtype_size(d->in) == 1 && d->in != HEWN_S8 && d->accumulate == HEWN_ACCUMULATE_FULL;
}

static uint32_t mode_of(const hewn_gemm_desc *d)
{
    if (hewn_dtype_size(d->in) == 1)
        return (d->in == HEWN_E5M2 ? GEMM_MODE_A_E5M2 : 0) |
               (dtype_b(d) == HEWN_E5M2 ? GEMM_MODE_B_E5M2 : 0) |
               (is_promoted(d) ? GEMM_MODE_PROMOTE : 0);
    return (d->major_a == HEWN_MAJOR_MN ? GEMM_MODE_A_MN : 0) |
           (d->major_b == HEWN_MAJOR_MN ? GEMM_MODE_B_MN : 0);
}

static const uint32_t act_bits[] = {[HEWN_ACT_NONE] = 0,
                                    [HEWN_ACT_RELU] = GEMM_FINISH_RELU,
                                    [HEWN_ACT_GELU] = GEMM_FINISH_GELU,
                                    [HEWN_ACT_SILU] = GEMM_FINISH_SILU,
                                    [HEWN_ACT_SWIGLU] = 0};

/* Columns of D in a CTA's tile, and stages of the ring. */
static uint32_t tile_columns(const hewn_gemm_plan *plan)
{
    const struct hewn_gemm_kernel *k = plan->kernel;
    return (k->few ? plan->few.columns : k->tile_n) >> k->glu;
}

static uint32_t cluster_ctas(const hewn_gemm_plan *plan)
{
    const struct hewn_gemm_kernel *k = plan->kernel;
    return k->pair_m * k->pair_n * plan->parts * (plan->few.share ? plan->few.share : 1);
}

static uint32_t ring_stages(const hewn_gemm_plan *plan)
{
    return plan->kernel->few ? plan->few.stages : plan->kernel->stages;
}

static int compute_scalars(hewn_gemm_plan *plan, const hewn_gemm_desc *d, int64_t batch,
                           hewn_error *err)
{
    const struct hewn_gemm_kernel *k = plan->kernel;
    const struct gemm_operand *operands = plan->operands;
    struct gemm_scalars *s = &plan->scalars;
    s->d_pitch = operands[GEMM_D].pitch;
    s->d_plane = operands[GEMM_D].plane;
    s->m = (uint32_t)d->m;
    s->n = (uint32_t)d->n;
    uint32_t tile_k = hewn_gemm_tile_k(k, operands[GEMM_A].element);
    s->k_blocks = ceil_div((uint64_t)d->k, tile_k);
    uint32_t tile_m = k->tile_m * k->pair_m, tile_n = tile_columns(plan) * k->pair_n;
    s->tiles_m = ceil_div(s->m, tile_m);
    s->tiles_n = ceil_div(s->n, tile_n);
    if (plan->few.share) s->tiles_n = ceil_div(s->tiles_n, plan->few.share) * plan->few.share;
    uint64_t tiles = (uint64_t)s->tiles_m * s->tiles_n;
    if (tiles > (uint64_t)(GEMM_MAX_EXTENT / batch) / plan->parts)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "m, n, batch: %u x %u tiles of %u x %u, %lld times, are more than %d",
                         s->tiles_m, s->tiles_n, tile_m, tile_n, (long long)batch, GEMM_MAX_EXTENT);
    s->tiles = (uint32_t)(tiles * (uint64_t)batch);
    s->step_a = operands[GEMM_A].batch > 1;
    s->step_b = operands[GEMM_B].batch > 1;
    s->raster_rows = s->tiles_m < k->raster_rows ? s->tiles_m : k->raster_rows;
    s->c_pitch = d->with & HEWN_GEMM_WITH_C ? operands[GEMM_C].pitch : 0;
    s->c_plane = operands[GEMM_C].batch > 1 ? operands[GEMM_C].plane : 0;
    s->mode = mode_of(d) | k->mode;
    if (d->constant_b && k->few == HEWN_GEMM_FEW) s->mode |= GEMM_MODE_CONSTANT_B;
    if (k->can & GEMM_CAN_LOOSE && !k->odd)
        s->mode |= (operands[GEMM_A].loose ? GEMM_MODE_LOOSE_A : 0) |
                   (operands[GEMM_B].loose ? GEMM_MODE_LOOSE_B : 0);
    if (k->odd) s->mode |= (uint32_t)((uint64_t)(d->k - 1) % tile_k) << GEMM_ODD_TAIL;
    s->columns = k->few || k->fitted ? (k->exchanged ? k->tile_m : tile_columns(plan)) : 0;
    s->stages = k->few || k->fitted ? ring_stages(plan) : 0;
    s->finish = act_bits[d->act];
    if (d->with & (HEWN_GEMM_WITH_SCALE_A | HEWN_GEMM_WITH_SCALE_B)) s->finish |= GEMM_FINISH_SCALE;
    if (d->with & HEWN_GEMM_WITH_SCALE_ROWS) s->finish |= GEMM_FINISH_ROWS;
    if (d->with & HEWN_GEMM_WITH_SCALE_COLUMNS) s->finish |= GEMM_FINISH_COLUMNS;
    if (d->with & HEWN_GEMM_WITH_BIAS)
        s->finish |= d->bias_type == HEWN_F32 ? GEMM_FINISH_BIAS_F32 : GEMM_FINISH_BIAS;
    return HEWN_OK;
}

static void describe_map(const struct gemm_operand *o, int dtype, uint32_t box_columns,
                         uint32_t box_rows, hewn_tensormap_desc *map)
{
    static const int tm_dtypes[] = {
        [HEWN_F32] = HEWN_TENSORMAP_F32,   [HEWN_F16] = HEWN_TENSORMAP_F16,
        [HEWN_BF16] = HEWN_TENSORMAP_BF16, [HEWN_E4M3] = HEWN_TENSORMAP_U8,
        [HEWN_E5M2] = HEWN_TENSORMAP_U8,   [HEWN_S8] = HEWN_TENSORMAP_U8,
        [HEWN_S32] = HEWN_TENSORMAP_I32};
    *map = (hewn_tensormap_desc){
        .struct_size = sizeof *map,
        .dtype = tm_dtypes[dtype],
        .rank = 3,
        .dim = {o->columns, o->rows, o->batch},
        .stride = {o->pitch, o->plane},
        .box = {box_columns, box_rows, 1},
        .element_stride = {1, 1, 1},
        .swizzle = HEWN_TENSORMAP_SWIZZLE_128B,
        .l2 = HEWN_TENSORMAP_L2_128B,
    };
}

static void describe_maps(hewn_gemm_plan *plan, const hewn_gemm_desc *d)
{
    const struct hewn_gemm_kernel *k = plan->kernel;
    const struct gemm_operand *o = plan->operands;
    uint32_t d_columns = GEMM_D_ROW_BYTES / (uint32_t)o[GEMM_D].element;
    uint32_t tile_k = hewn_gemm_tile_k(k, o[GEMM_A].element);
    if (d->major_a == HEWN_MAJOR_MN)
        describe_map(&o[GEMM_A], d->in, GEMM_MN_BOX, tile_k, &plan->maps[GEMM_A].desc);
    else
        describe_map(&o[GEMM_A], d->in, tile_k,
                     plan->few.share > 1 ? plan->few.rows / plan->few.share
                     : k->few            ? (uint32_t)d->m
                                         : k->tile_m / k->pair_n,
                     &plan->maps[GEMM_A].desc);
    if (d->major_b == HEWN_MAJOR_MN)
        describe_map(&o[GEMM_B], d->in, GEMM_MN_BOX, tile_k, &plan->maps[GEMM_B].desc);
    else
        describe_map(&o[GEMM_B], d->in, tile_k, tile_columns(plan) / (k->glu ? 1 : k->pair_m),
                     &plan->maps[GEMM_B].desc);
    describe_map(&o[GEMM_D], d->out, d_columns, k->d_rows, &plan->maps[GEMM_D].desc);
    /* TMA stores whole chunks; the kernel stores the rest of a row itself (inc/gemm.plan.h). */
    uint64_t chunk = GEMM_D_CHUNK_BYTES / o[GEMM_D].element,
             whole = o[GEMM_D].columns / chunk * chunk;
    plan->maps[GEMM_D].desc.dim[0] = whole ? whole : chunk;
}

const char *const hewn_gemm_tensor_names[GEMM_TENSORS] = {"A", "B", "D"};

static int prepare_maps(hewn_gemm_plan *plan, hewn_error *err)
{
    int status = HEWN_OK;
    for (int i = GEMM_A; plan->loose && !status && i <= GEMM_B; i++)
        if (!plan->operands[i].loose)
            status = hewn_plan_prepare_maps(plan->context, &plan->maps[i],
                                            &hewn_gemm_tensor_names[i], 1, err);
    if (plan->loose) return status;
    return hewn_plan_prepare_maps(plan->context, plan->maps, hewn_gemm_tensor_names, GEMM_TENSORS,
                                  err);
}

/* Cluster, and programmatic dependent launch: the kernels touch no memory before griddepcontrol.wait,
 * so their set-up may overlap the end of what comes before in the stream. */
static void set_attributes(hewn_gemm_plan *plan, uint32_t cluster)
{
    const hewn_context *context = plan->context;
    const struct gemm_scalars *s = &plan->scalars;
    const int together = cluster == 1 && hewn_gemm_together(plan->kernel, s->tiles_m, s->tiles,
                                                            s->k_blocks, context->info.sm_count);
    unsigned n = 0;
    if (cluster > 1) {
        plan->attributes[n].id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION;
        plan->attributes[n].value.cluster.x = cluster;
        plan->attributes[n].value.cluster.y = 1;
        plan->attributes[n++].value.cluster.z = 1;
    }
    if (context->driver->fn.launch_kernel_ex && context->info.cc_major >= PROGRAMMATIC_CC &&
        context->driver->version >= PROGRAMMATIC_DRIVER && !together) {
        plan->attributes[n].id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
        plan->attributes[n++].value.flag = 1;
    }
    plan->config.attributes = plan->attributes;
    plan->config.attribute_count = n;
}

/* More CTAs than every device takes need leave. */
static int allow_cluster(const hewn_gemm_plan *plan, hewn_error *err)
{
    const struct hewn_gemm_kernel *k = plan->kernel;
    if (k->pair_m * k->pair_n * plan->parts <= HEWN_GEMM_CLUSTER) return HEWN_OK;
    int rc = plan->context->driver->fn.func_set_attribute(
        plan->loaded->function, HEWN_CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (!rc) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_LIMIT,
                     "parts: the driver refuses clusters of %u CTAs (CUresult %d)", plan->parts,
                     rc);
}

/* Clusters that run at once. A cluster lies within one part of the chip, so SMs are left over where a
 * part's number of SMs is not a multiple of the cluster. */
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

/* Persistent: as many clusters as the device holds at once, each walking its share of the tiles. `few`: a cluster a
 * tile. */
static void configure(hewn_gemm_plan *plan)
{
    const struct hewn_gemm_kernel *k = plan->kernel;
    uint32_t cluster = cluster_ctas(plan), tiles = plan->scalars.tiles, resident;
    plan->config = (hewn_cu_launch_config){
        .grid_x = cluster,
        .grid_y = 1,
        .grid_z = 1,
        .block_x = k->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = k->few ? plan->few.shared_bytes : k->dynamic_shared,
    };
    set_attributes(plan, cluster);
    if (plan->few.share)
        tiles /= plan->few.share;
    else if (k->few > HEWN_GEMM_ODDFEW)
        tiles = ceil_div(tiles, plan->few.stages);
    resident = k->few && !k->tmem_columns ? tiles : resident_clusters(plan, cluster);
    uint32_t ctas = cluster * (tiles < resident ? tiles : resident);
    plan->config.grid_x = ctas;
    /* Where the launch before leaves SMs idle, the fewer work, the more. Else early fetches only delay it. */
    uint32_t times = ctas ? (uint32_t)plan->context->info.sm_count / ctas : 0;
    if (k->fetches && times > 1)
        plan->scalars.stages |= (times < k->fetches ? times : k->fetches)
                                << (k->fitted ? GEMM_FIT_FETCHES : 0);
}

/* Slices of K: the grid has one for each y, and along x a cluster for each tile (ptx/inc/slices.inc). */
static void configure_slices(hewn_gemm_plan *plan, uint32_t slices)
{
    const struct hewn_gemm_kernel *k = plan->kernel;
    struct gemm_scalars *s = &plan->scalars;
    if (k->few > HEWN_GEMM_ODDFEW) s->stages = 1; /* teams of a CTA */
    plan->config.grid_x = k->pair_m * k->pair_n * plan->parts * s->tiles_m * s->tiles_n;
    plan->config.grid_y = slices;
    s->step_a = GEMM_STEP_LONGER * (s->k_blocks % slices);
    s->k_blocks /= slices;
}

/* ---- choosing and loading the kernel -- */

static int can_cluster(const hewn_context *context)
{
    return context->limits.cluster_launch && context->driver->fn.launch_kernel_ex;
}

/* Whether addresses and strides are those that tensor maps need. */
__attribute__((cold)) static int check_aligned(const struct hewn_gemm_kernel *k,
                                               const struct gemm_operand *operands, hewn_error *err)
{
    for (int i = 0; i < GEMM_OPERANDS; i++) {
        const struct gemm_operand *o = &operands[i];
        int row = o->pitch % GEMM_ALIGN != 0, plane = o->plane % GEMM_ALIGN != 0;
        if (!o->loose) continue;
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "%c: %s %llu B is not a multiple of %d B, which kernel %s for %s needs",
                         o->name,
                         row     ? "row stride"
                         : plane ? "batch stride"
                                 : "alignment of the address,",
                         (unsigned long long)(row     ? o->pitch
                                              : plane ? o->plane
                                                      : o->align),
                         GEMM_ALIGN, k->variant, k->target);
    }
    return HEWN_OK;
}

static int target_can(const char *target, uint32_t can)
{
    size_t count;
    const struct hewn_gemm_kernel *first = hewn_gemm_kernels_of(target, &count);
    for (size_t i = 0; i < count; i++)
        if (first[i].can & can) return 1;
    return 0;
}

/* Some kernels do only part of the contract. */
static int check_can(const struct hewn_gemm_kernel *k, const hewn_gemm_desc *d,
                     const struct gemm_operand *operands, hewn_error *err)
{
    const char *lacking = NULL;
    const int never = d->in == HEWN_S8 && !target_can(k->target, GEMM_CAN_KINDS);
    if (!never && !(k->can & GEMM_CAN_LOOSE) && check_aligned(k, operands, err))
        return HEWN_ERR_LIMIT;
    if (!(k->can & GEMM_CAN_F32) && operands[GEMM_D].element == 4) lacking = "out: 32 bits";
    if (!(k->can & GEMM_CAN_FP8) && hewn_dtype_size(d->in) == 1) lacking = "in: 8-bit inputs";
    if (!(k->can & GEMM_CAN_MN) && d->major_a == HEWN_MAJOR_MN) lacking = "major_a: MN-major A";
    if (!(k->can & GEMM_CAN_MN) && d->major_b == HEWN_MAJOR_MN) lacking = "major_b: MN-major B";
    if (!(k->can & GEMM_CAN_FINISH) && d->act != HEWN_ACT_NONE) lacking = "act: activations";
    if (k->few >= HEWN_GEMM_ODDFEW && d->invariant)
        lacking = "invariant: sums in an order of all kernels";
    if (!(k->can & GEMM_CAN_FINISH) && d->with) lacking = "with: alpha, C, bias and scales";
    if (k->glu != (d->act == HEWN_ACT_SWIGLU)) lacking = k->glu ? "act: none" : "act: SwiGLU";
    if (!(k->can & GEMM_CAN_SCALES) && d->with & GEMM_VECTORS)
        lacking = "with: scales of rows and columns";
    if (!(k->can & GEMM_CAN_KINDS) && d->in == HEWN_S8) lacking = "in: s8";
    if (!lacking && !(k->can & GEMM_CAN_PLANE)) lacking = hewn_gemm_odd_lacks(operands);
    if (!lacking) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_LIMIT, "%s: kernel %s for %s does not have it", lacking,
                     k->variant, k->target);
}

enum { NAME = 48 };

/* gemm_<in>_<out>[_<variant>] for this device, and that name; or NULL. */
static const hewn_module *find_module(const hewn_context *context, char name[NAME], const char *in,
                                      const char *out, const char *variant)
{
    const char *const words[] = {"gemm_", in, "_", out, *variant ? "_" : "", variant};
    size_t used = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (const char *from = words[i]; *from && used < NAME - 1; from++) name[used++] = *from;
    name[used] = '\0';
    return hewn_family_choose(hewn_gemm_family(), name, context->info.cc_major,
                              context->info.cc_minor);
}

/* Of A and B in the name of the kernel's module. */
static const char *module_type(const hewn_gemm_desc *d, const struct hewn_gemm_kernel *k)
{
    int own = d->in == HEWN_S8 || (d->with & GEMM_VECTORS && k && k->can & GEMM_CAN_KINDS);
    return hewn_dtype_size(d->in) == 1 && !own ? "fp8" : hewn_dtype_name(d->in);
}

/* What a kernel must be able to do. */
static uint32_t needs_of(const hewn_gemm_desc *d, const struct gemm_operand *o)
{
    int loose = o[GEMM_A].loose || o[GEMM_B].loose || o[GEMM_D].loose || o[GEMM_C].loose;
    return (hewn_dtype_size(d->in) == 1 ? GEMM_CAN_FP8 : 0) |
           (d->major_a == HEWN_MAJOR_MN || d->major_b == HEWN_MAJOR_MN ? GEMM_CAN_MN : 0) |
           (d->with || d->act ? GEMM_CAN_FINISH : 0) | (loose ? GEMM_CAN_LOOSE : 0) |
           (hewn_gemm_odd_lacks(o) ? GEMM_CAN_PLANE : 0) |
           (o[GEMM_D].element == 4 ? GEMM_CAN_F32 : 0) | (d->in == HEWN_S8 ? GEMM_CAN_KINDS : 0) |
           (d->with & GEMM_VECTORS ? GEMM_CAN_SCALES : 0) |
           (d->act == HEWN_ACT_SWIGLU ? GEMM_CAN_GLU : 0);
}

/* The first plan of a context makes it. Every target has that module, and all modules of a target run on the same
 * devices. NULL: none runs here. */
__attribute__((cold)) static int find_model(hewn_context *context, const char *dtype,
                                            const struct hewn_gemm_model **out, hewn_error *err)
{
    void *there = atomic_load(&context->gemm_model);
    char name[NAME];
    *out = there;
    if (there) return HEWN_OK;
    const hewn_module *module = find_module(context, name, "bf16", dtype, "");
    if (!module) return HEWN_OK;
    struct hewn_gemm_model *fresh = hewn_gemm_model_create(
        module->target, (uint32_t)context->info.sm_count, can_cluster(context));
    if (!fresh) return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for the plan");
    *out = fresh;
    if (atomic_compare_exchange_strong(&context->gemm_model, &there, fresh)) return HEWN_OK;
    free(fresh); /* another thread was faster */
    *out = there;
    return HEWN_OK;
}

/* The table's kernel, where it has one for one slice that can compute this; else the kernel stays NULL. */
static void look_up(const hewn_context *context, const hewn_gemm_desc *d,
                    const struct gemm_operand *operands, const struct hewn_gemm_model *model,
                    const struct hewn_gemm_extent *extent, struct hewn_gemm_choice *choice)
{
    const struct gemm_table_line *line =
        hewn_gemm_table_find(d, model->target, context->info.sm_count);
    if (!line || line->slices > 1 ||
        hewn_gemm_choose(model, line->variant, line->parts, extent, choice, NULL))
        return;
    if (choice->kernel && check_can(choice->kernel, d, operands, NULL)) choice->kernel = NULL;
    choice->cost = 0; /* no slices are chosen */
}

/* Variant and parts: named, from the table, or chosen. */
static int choose_variant(const hewn_context *context, const hewn_gemm_desc *d,
                          const struct gemm_operand *operands, const struct hewn_gemm_model *model,
                          const struct hewn_gemm_extent *extent, struct hewn_gemm_choice *choice,
                          hewn_error *err)
{
    uint32_t parts = d->parts;
    int status = HEWN_OK;
    if (d->invariant && !parts) { /* parts of K as for a product of so many rows, whatever m is */
        struct hewn_gemm_extent some = *extent;
        some.m = GEMM_INVARIANT_M;
        some.batch = some.batch_a = some.batch_b = 1;
        status = hewn_gemm_choose(model, d->variant, 0, &some, choice, err);
        if (status) return status;
        parts = choice->parts;
        choice->kernel = NULL;
    }
    look_up(context, d, operands, model, extent, choice);
    if (!choice->kernel) status = hewn_gemm_choose(model, d->variant, parts, extent, choice, err);
    return status || !choice->kernel ? status : check_can(choice->kernel, d, operands, err);
}

/* How rows begin: 0 on lines, 1 on sectors, 2 elsewhere. */
static uint32_t skew_of(uint64_t pitch)
{
    return pitch % SECTOR ? 2 : pitch % LINE != 0;
}

static struct hewn_gemm_extent extent_of(const hewn_gemm_desc *d, const struct gemm_operand *o)
{
    return (struct hewn_gemm_extent){.m = o[GEMM_D].rows,
                                     .n = hewn_gemm_factors(d) * o[GEMM_D].columns,
                                     .k = (uint64_t)d->k,
                                     .batch = o[GEMM_D].batch,
                                     .batch_a = o[GEMM_A].batch,
                                     .batch_b = o[GEMM_B].batch,
                                     .in = (uint32_t)o[GEMM_A].element,
                                     .out = (uint32_t)o[GEMM_D].element,
                                     .need = needs_of(d, o),
                                     .askew_a = skew_of(o[GEMM_A].pitch),
                                     .askew_b = skew_of(o[GEMM_B].pitch),
                                     .askew_d = o[GEMM_D].pitch % SECTOR != 0,
                                     .loose_a = o[GEMM_A].loose != 0,
                                     .loose_b = o[GEMM_B].loose != 0,
                                     .ways_a = hewn_gemm_odd_ways(&o[GEMM_A]),
                                     .ways_b = hewn_gemm_odd_ways(&o[GEMM_B]),
                                     .promoted = (uint32_t)is_promoted(d),
                                     .ordered = d->invariant != 0,
                                     .mn_a = d->major_a == HEWN_MAJOR_MN,
                                     .mn_b = d->major_b == HEWN_MAJOR_MN};
}

static int choose_kernel(hewn_context *context, const hewn_gemm_desc *d, hewn_gemm_plan *plan,
                         const struct hewn_gemm_extent *extent, double *cost,
                         const hewn_module **out, hewn_error *err)
{
    const struct gemm_operand *o = plan->operands;
    struct hewn_gemm_choice choice = {NULL, 0, 0, 0};
    const char *dtype = hewn_dtype_name(d->out), *variant = "";
    const struct hewn_gemm_model *model;
    char name[NAME];
    int status = find_model(context, d->out == HEWN_S32 ? "f32" : dtype, &model, err);
    if (!status && model) status = choose_variant(context, d, o, model, extent, &choice, err);
    if (status) return status;
    if (choice.kernel && strcmp(choice.kernel->module, "plain") != 0)
        variant = choice.kernel->module;
    *out = find_module(context, name, module_type(d, choice.kernel), dtype, variant);
    if (!*out || !choice.kernel) {
        hewn_error_set_no_module(context, hewn_gemm_family(), name, err);
        return HEWN_ERR_NO_MODULE;
    }
    plan->kernel = choice.kernel;
    plan->parts = choice.parts;
    if (choice.kernel->fitted) {
        (void)hewn_gemm_fit(model, choice.kernel, choice.parts, extent, &plan->fitted);
        plan->kernel = &plan->fitted;
    }
    *cost = choice.cost;
    if (choice.kernel->few)
        hewn_gemm_few_shape(
            extent, choice.kernel->few,
            choice.kernel->few == HEWN_GEMM_LANES && !can_cluster(context) ? 0 : choice.parts,
            (uint32_t)context->info.sm_count, &plan->few);
    if (choice.kernel->few >= HEWN_GEMM_ODDFEW) /* reads all operands without tensor maps */
        plan->operands[GEMM_A].loose = plan->operands[GEMM_B].loose = 1;
    return hewn_plan_need_maps(context, name, err);
}

/* `cut`: the batch's problems are slices of K, which share one A and one B. */
static int fill(hewn_gemm_plan *plan, hewn_context *context, const hewn_gemm_desc *d, int cut,
                hewn_error *err)
{
    int64_t batch = d->batch ? d->batch : 1;
    const hewn_module *module = NULL;
    struct hewn_gemm_extent extent;
    double cost = 0;
    plan->context = context;
    plan->with = d->with;
    plan->out = d->out;
    int status = hewn_gemm_check(d, plan->operands, err);
    if (status) return status;
    extent = extent_of(d, plan->operands);
    if (cut) extent = hewn_gemm_slice_extent(&extent, (uint32_t)batch);
    status = choose_kernel(context, d, plan, &extent, &cost, &module, err);
    if (!status) status = compute_scalars(plan, d, batch, err);
    if (!status)
        status =
            hewn_load_kernel(context, module, plan->kernel->dynamic_shared, &plan->loaded, err);
    if (status) return status;
    plan->bias_span = (uint64_t)d->n * hewn_dtype_size(d->bias_type);
    plan->bias_align = (uint32_t)hewn_dtype_size(d->bias_type);
    if (!d->align || d->align > plan->bias_align)
        plan->bias_align = d->align ? d->align : GEMM_ALIGN;
    plan->loose = (plan->kernel->can & GEMM_CAN_LOOSE) && !plan->kernel->odd;
    if (!plan->kernel->odd) describe_maps(plan, d);
    status = hewn_context_push(context, err); /* the driver answers for the current one */
    if (status) return status;
    status = allow_cluster(plan, err);
    if (!status) {
        configure(plan);
        if (cut) configure_slices(plan, (uint32_t)batch);
        status = plan->kernel->odd ? hewn_gemm_odd_prepare(plan, d, err) : prepare_maps(plan, err);
    }
    hewn_context_pop(context);
    return status ? status : hewn_gemm_slices_create(plan, context, d, &extent, cost, err);
}

static int fill_plan(void *plan, hewn_context *context, const void *desc, hewn_error *err)
{
    return fill(plan, context, desc, 0, err);
}

static int fill_slices(void *plan, hewn_context *context, const void *desc, hewn_error *err)
{
    return fill(plan, context, desc, 1, err);
}

int hewn_gemm_slices_plan(hewn_context *context, const hewn_gemm_desc *desc, hewn_gemm_plan **out,
                          hewn_error *err)
{
    return hewn_plan_create(sizeof(**out), context, HEWN_STRUCT_hewn_gemm_desc, desc, fill_slices,
                            out, err);
}

/* ---- the public functions -- */

int hewn_gemm_plan_create(hewn_context *context, const hewn_gemm_desc *desc, hewn_gemm_plan **out,
                          hewn_error *err)
{
    return hewn_plan_create(sizeof(**out), context, HEWN_STRUCT_hewn_gemm_desc, desc, fill_plan,
                            out, err);
}

void hewn_gemm_plan_destroy(hewn_gemm_plan *plan)
{
    if (plan) hewn_gemm_slices_destroy(plan->slices);
    free(plan);
}

int hewn_gemm_plan_describe(const hewn_gemm_plan *plan, hewn_gemm_plan_info *out, hewn_error *err)
{
    if (!plan) return hewn_fail_null(err, "plan");
    const struct hewn_gemm_kernel *k = plan->kernel;
    const hewn_cu_launch_config *c = &plan->config;
    hewn_gemm_plan_info info = {
        .struct_size = sizeof info,
        .module = plan->loaded->module->name,
        .target = plan->loaded->module->target,
        .origin = plan->loaded->origin,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
        .cluster = {cluster_ctas(plan), 1, 1},
        .dynamic_shared = c->shared_bytes,
        .tmem_columns = k->tmem_columns,
        .tile_m = k->tile_m,
        .tile_n = tile_columns(plan),
        .tile_k = hewn_gemm_tile_k(k, plan->operands[GEMM_A].element),
        .stages = ring_stages(plan),
        .variant = k->variant,
        .parts = plan->parts,
        .slices = 1,
    };
    if (plan->slices) (void)hewn_gemm_slices_describe(plan->slices, &info, err);
    return hewn_struct_give(HEWN_STRUCT_hewn_gemm_plan_info, &info, out, err);
}
