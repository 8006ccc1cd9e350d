/*
 * MLA plans: a checked problem, the kernel for a device, everything except the addresses; and their
 * runs. What the kernel expects is in ptx/inc/mla.plan.h.
 */
#include "mla.h"

#include "error.h"
#include "plan.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOG_BYTES = 4,      /* an lse: f32 */
    WORD = 4,           /* bytes: what f32 and int32 arrays are aligned to */
    COMBINE_CTAS = 512, /* of the combine kernel, that have something to do */
    LEAST_BOX = 8       /* rows: where the swizzle repeats */
};

_Static_assert(offsetof(struct mla_scalars, length_share) + 4 + MLA_MAP_COUNT * MAP_BYTES ==
                   MLA_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");
_Static_assert(offsetof(struct mla_second_scalars, extra_planes) + 4 == SM90A_MLA_SECOND_BYTES,
               "the second scalars are not laid out as the kernel's parameters");
_Static_assert(MLA_MAP_COUNT + MLA_SCALAR_COUNT + SM90A_MLA_SECOND_COUNT <= HEWN_PARAMS_MOST,
               "room");
_Static_assert(HEWN_F32 == MLA_OUT_F32 && HEWN_F16 == MLA_OUT_F16 && HEWN_BF16 == MLA_OUT_BF16,
               "out_type has the values of hewn_dtype");

/* ---- the plan -- */

/* The kernel's sequences: with lists, queries. And the most keys that one sees. */
static uint32_t sequences(const struct mla_problem *p)
{
    return p->list_width ? p->batch * p->q_length : p->batch;
}

static uint32_t most_keys(const struct mla_problem *p)
{
    return p->list_width ? p->list_width + p->extra.width : p->length;
}

/* Its rows: queries times heads. */
static uint32_t rows_of(const struct mla_problem *p)
{
    return p->list_width ? p->q_heads : p->q_heads * p->q_length;
}

/* The texts: mla.ptx; mla_gather.ptx for rows and for records, some with a second cache; mla_few.ptx. */
enum {
    KERNEL_BOXES,
    KERNEL_ROWS,
    KERNEL_ROWS_2,
    KERNEL_656,
    KERNEL_656_2,
    KERNEL_FEW,
    KERNEL_584,
    KERNEL_FEW_584
};
static const struct mla_kernel {
    const char *suffix; /* of the module's name */
    uint32_t threads, dynamic_shared, tile_rows;
    int second; /* whether it has the parameters of a second cache */
} kernels[] = {
#define GATHER(suffix, bytes, second)                                  \
    {                                                                  \
        suffix, SM90A_MLA_GATHER_THREADS, bytes, MLA_TILE_ROWS, second \
    }
    [KERNEL_BOXES] = {"", SM90A_MLA_THREADS, SM90A_MLA_DYNAMIC_SHARED, MLA_TILE_ROWS, 0},
    [KERNEL_ROWS] = GATHER("_rows", SM90A_MLA_DYNAMIC_SHARED, 0),
    [KERNEL_ROWS_2] = GATHER("_rows_two", SM90A_MLA_DYNAMIC_SHARED, 1),
    [KERNEL_656] = GATHER("_656", SM90A_MLA_DYNAMIC_SHARED, 0),
    [KERNEL_656_2] = GATHER("_656_two", SM90A_MLA_DYNAMIC_SHARED, 1),
    [KERNEL_FEW] = {"_656x16", SM90A_MLA_FEW_THREADS, SM90A_MLA_FEW_DYNAMIC_SHARED,
                    SM90A_MLA_FEW_ROWS, 0},
    [KERNEL_FEW_584] = {"_584x16", SM90A_MLA_FEW_THREADS, SM90A_MLA_FEW_584_DYNAMIC_SHARED,
                        SM90A_MLA_FEW_ROWS, 1},
    [KERNEL_584] = GATHER("_584", SM90A_MLA_584_DYNAMIC_SHARED, 1),
#undef GATHER
};

/* Invariant: not by q_length, because kernels of few rows round and add up in other places. */
static const struct mla_kernel *kernel_of(const struct mla_problem *p)
{
    int few = rows_of(p) <= SM90A_MLA_FEW_ROWS && (p->list_width || !p->invariant);
    if (!mla_gathers(p)) return &kernels[KERNEL_BOXES];
    if (p->cache == HEWN_MLA_CACHE_584) return &kernels[few ? KERNEL_FEW_584 : KERNEL_584];
    if (p->cache != HEWN_MLA_CACHE_656)
        return &kernels[p->extra.width ? KERNEL_ROWS_2 : KERNEL_ROWS];
    if (p->extra.width) return &kernels[KERNEL_656_2];
    return &kernels[few ? KERNEL_FEW : KERNEL_656];
}

/* Rows of a box of the cache: the largest power of two that divides a page and a block; 0 where that is
 * too small for boxes. Records of 584 bytes beside few rows: halves of a block. */
static uint32_t box_rows(const struct mla_problem *p)
{
    uint32_t box = p->page_size & (0U - p->page_size);
    if (!box || box > MLA_BLOCK) box = MLA_BLOCK;
    if (kernel_of(p) == &kernels[KERNEL_FEW_584])
        return p->list_width || box < MLA_BLOCK / 2 || !p->kv.span ? 0 : MLA_BLOCK / 2;
    return box < LEAST_BOX || !p->kv.span || mla_gathers(p) ? 0 : box;
}

static uint64_t most_blocks(const struct mla_problem *p)
{
    return (most_keys(p) + (uint64_t)MLA_BLOCK - 1) / MLA_BLOCK;
}

/* CTAs for each tile, no more than there can be blocks; a sequence without any counts as one. */
static uint32_t choose_shares(const struct mla_problem *p, uint32_t most)
{
    uint64_t blocks = most_blocks(p), all = sequences(p) * (blocks ? blocks : 1);
    return all < most ? (uint32_t)all : most;
}

/* Where all lengths are known, the kernel's rule for whole sequences is known, too: inc/mla.plan.h. */
static int can_split(const struct mla_problem *p, uint32_t shares)
{
    uint64_t blocks = most_blocks(p), all = sequences(p), each = (all + shares - 1) / shares;
    if (shares <= 1 || blocks <= 1 || p->invariant) return 0;
    return p->lengths || p->extra.lengths || each > MLA_FEW ||
           each * blocks > (all * blocks + shares - 1) / shares + MLA_SLACK;
}

static void fill_scalars(hewn_mla_plan *plan)
{
    const struct mla_problem *p = &plan->problem;
    uint32_t sms = (uint32_t)plan->context->info.sm_count * SM90A_MLA_CTAS_PER_SM;
    uint32_t rows = rows_of(p), queries = rows / p->q_heads; /* of a sequence of the kernel */
    uint32_t tiles = (rows + MLA_TILE_ROWS - 1) / MLA_TILE_ROWS;
    uint32_t unpaged = p->list_width ? p->length + !p->length : 0; /* one page of all rows */
    uint32_t shares = choose_shares(p, tiles < sms ? sms / tiles : 1);
    uint64_t head = LOG_BYTES * (uint64_t)p->q_length;
    plan->scalars = (struct mla_scalars){
        .kv_token = p->kv.step[1],
        .kv_plane = p->kv.step[2],
        .o_token = p->o.step[1],
        .o_head = p->o.step[0],
        .o_batch = p->o.step[2],
        .lse_token = LOG_BYTES,
        .lse_head = head,
        .lse_batch = head * p->q_heads,
        .scale_log2 = p->scale_log2,
        .batch = sequences(p),
        .q_heads = p->q_heads,
        .q_len = queries,
        .rows = rows,
        .groups = tiles,
        .shares = shares,
        .causal = (uint32_t)p->causal,
        .kv_len = p->list_width ? p->list_width : p->length,
        .page_size = p->page_size ? p->page_size : unpaged,
        .planes = p->planes,
        .table_width = p->table_width,
        .box = box_rows(p),
        .out_type = (uint32_t)p->out,
        .list_step = p->list_step,
        .queries = p->q_length / queries,
        .length_share = p->lengths == 1 ? p->q_length / queries : 1,
    };
    plan->lse_span = head * p->q_heads * p->batch;
    plan->config = (hewn_cu_launch_config){
        .grid_x = tiles * shares,
        .grid_y = 1,
        .grid_z = 1,
        .block_x = kernel_of(p)->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = kernel_of(p)->dynamic_shared,
        .attributes = plan->overlap,
        .attribute_count = tiles == 1 && plan->context->driver->fn.launch_kernel_ex,
    };
    plan->overlap[0].id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
    plan->overlap[0].value.flag = 1;
}

static void fill_second(hewn_mla_plan *plan)
{
    const struct mla_extra *e = &plan->problem.extra;
    plan->second = (struct mla_second_scalars){
        .extra_step = e->step,
        .extra_token = e->kv.step[1],
        .extra_plane = e->kv.step[2],
        .scales = plan->problem.scales,
        .extra_scales = e->scales,
        .extra_len = e->width,
        .extra_share = e->lengths == 1 ? plan->scalars.queries : 1,
        .extra_page =
            e->page_size ? e->page_size : e->length + !e->length, /* one page of all rows */
        .extra_planes = e->planes,
    };
}

/* Two row tiles of a sequence in a cluster of two CTAs: each loads half of the keys, for both. Where the
 * device does not hold all pairs at once, there are none. */
static void choose_pairs(hewn_mla_plan *plan)
{
    const struct hewn_driver_table *fn = &plan->context->driver->fn;
    hewn_cu_launch_config *config = &plan->config;
    int resident = 0;
    if (plan->scalars.groups % 2 || mla_gathers(&plan->problem)) return;
    if (!plan->context->limits.cluster_launch || !fn->launch_kernel_ex) return;
    if (!fn->occupancy_max_active_clusters) return;
    plan->overlap[1].id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION;
    plan->overlap[1].value.cluster.x = 2;
    plan->overlap[1].value.cluster.y = plan->overlap[1].value.cluster.z = 1;
    config->attribute_count = 2;
    if (fn->occupancy_max_active_clusters(&resident, plan->loaded->function, config) ||
        resident < (int)config->grid_x / 2)
        config->attribute_count = 0;
    plan->pairs = config->attribute_count > 0;
}

/* Two slots a CTA for parts of sequences, and its record; where there are few sequences, also the
 * number of each one's record, so that few CTAs look for one. */
static void fill_parts(hewn_mla_plan *plan)
{
    const struct mla_scalars *s = &plan->scalars;
    uint64_t ctas = plan->config.grid_x, firsts = (uint64_t)s->batch * s->groups;
    uint64_t slots = 2 * ctas * MLA_TILE_ROWS;
    uint32_t rows = s->rows < MLA_TILE_ROWS ? s->rows : MLA_TILE_ROWS, step = 1;
    int few = firsts <= ctas;
    if (!few) firsts = ctas;
    /* as many rows a CTA as still leave work for all SMs */
    while (step < SPLIT_COMBINE_WARPS && firsts * rows / (2 * step) >= COMBINE_CTAS) step *= 2;
    plan->part_lse = slots * MLA_V_DIM * LOG_BYTES;
    plan->records = plan->part_lse + slots * LOG_BYTES;
    plan->workspace = plan->records + ctas * SPLIT_RECORD_BYTES;
    if (few) {
        plan->firsts = plan->workspace;
        plan->workspace += firsts * WORD;
    }
    plan->merge = (struct split_combine_scalars){
        .o_token = s->o_token,
        .o_head = s->o_head,
        .o_batch = s->o_batch,
        .lse_token = s->lse_token,
        .lse_head = s->lse_head,
        .lse_batch = s->lse_batch,
        .rows = MLA_TILE_ROWS,
        .pack = s->q_heads,
        .step = step,
        .part_step = 2 * s->groups,
        .record_step = 2,
        .first_slot = 1,
        .v_dim = MLA_V_DIM,
        .out_type = s->out_type,
    };
    plan->merge_config = (hewn_cu_launch_config){
        .grid_x = (uint32_t)firsts,
        .grid_y = (rows + step - 1) / step,
        .grid_z = 1,
        .block_x = 32 * SPLIT_COMBINE_WARPS,
        .block_y = 1,
        .block_z = 1,
        .attributes = plan->overlap,
        .attribute_count = plan->context->driver->fn.launch_kernel_ex != NULL,
    };
}

static hewn_tensormap_desc map_of(const struct mla_problem *p, uint64_t rows, uint64_t row,
                                  uint64_t planes, uint64_t plane, uint32_t box)
{
    return (hewn_tensormap_desc){
        .struct_size = sizeof(hewn_tensormap_desc),
        .dtype = p->in == HEWN_F16 ? HEWN_TENSORMAP_F16 : HEWN_TENSORMAP_BF16,
        .rank = 3,
        .dim = {p->qk_dim, rows, planes},
        .stride = {row, plane},
        .box = {SWIZZLE_BYTES / 2, box, 1},
        .element_stride = {1, 1, 1, 1, 1},
        .swizzle = HEWN_TENSORMAP_SWIZZLE_128B,
        .l2 = HEWN_TENSORMAP_L2_128B, /* a row of 1,152 B may begin in the middle of 256 */
    };
}

static const char *const map_names[MLA_MAP_COUNT] = {"q", "kv"};

/* Halves of blocks, 32 records of 584 bytes each: rows that are as long as in shared memory, where the kernel
 * keeps them apart. What a record has not is written as zeros. */
static hewn_tensormap_desc map_of_records(const struct mla_tensor *kv)
{
    return (hewn_tensormap_desc){
        .struct_size = sizeof(hewn_tensormap_desc),
        .dtype = HEWN_TENSORMAP_U64,
        .rank = 3,
        .dim = {MLA_584_ROW / 8, kv->count[1], kv->count[2]},
        .stride = {kv->step[1], kv->step[2]},
        .box = {SM90A_MLA_FEW_584_STRIDE / 8, MLA_BLOCK / 2, 1},
        .element_stride = {1, 1, 1, 1, 1},
        .l2 = HEWN_TENSORMAP_L2_128B,
    };
}

/* A cache without rows, or one that is loaded without boxes, is described as one row of Q, from which
 * nothing is ever read: the driver refuses a map without elements. */
static int prepare_maps(hewn_mla_plan *plan, hewn_error *err)
{
    const struct mla_problem *p = &plan->problem;
    const struct mla_tensor *q = &p->q, *kv = &p->kv;
    uint32_t box = plan->scalars.box;
    uint64_t row = p->q_heads > 1 ? q->step[0] : q->step[1];
    plan->maps[0].desc = map_of(p, p->rows, row, p->batch, q->step[2], kernel_of(p)->tile_rows);
    plan->maps[1].desc = box && kernel_of(p) == &kernels[KERNEL_FEW_584] ? map_of_records(kv)
                         : box
                             ? map_of(p, kv->count[1], kv->step[1], kv->count[2], kv->step[2], box)
                             : map_of(p, 1, MLA_ALIGN, 1, MLA_ALIGN, MLA_BLOCK);
    return hewn_plan_prepare_maps(plan->context, plan->maps, map_names, MLA_MAP_COUNT, err);
}

static int load_kernels(hewn_mla_plan *plan, hewn_context *context, hewn_error *err)
{
    char name[24];
    const struct mla_problem *p = &plan->problem;
    const struct mla_kernel *k = kernel_of(p);
    snprintf(name, sizeof name, "mla_%s%s", hewn_dtype_name(p->in), k->suffix);
    int status = hewn_plan_need_maps(context, name, err);
    if (!status)
        status =
            hewn_plan_load(context, hewn_mla_family(), name, k->dynamic_shared, &plan->loaded, err);
    if (status || !can_split(&plan->problem, plan->scalars.shares)) return status;
    return hewn_plan_load(context, hewn_mla_family(), "mla_combine", 0, &plan->combine, err);
}

static int fill_plan(void *at, hewn_context *context, const void *given, hewn_error *err)
{
    hewn_mla_plan *plan = at;
    const hewn_mla_desc *desc = given;
    plan->context = context;
    int status = hewn_mla_check(desc, &plan->problem, err);
    if (status) return status;
    const struct mla_problem *p = &plan->problem;
    if (hewn_mla_decode_takes(context)) return hewn_mla_decode_fill(plan, context, err);
    if (most_blocks(p) + SPLIT_OVERHEAD > SPLIT_MAX_UNITS / sequences(p))
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "%s: %u %s of %u keys are more blocks than the kernel can count",
                         p->list_width ? "batch, q_length, list_width" : "batch, length",
                         sequences(p), p->list_width ? "queries" : "sequences", most_keys(p));
    fill_scalars(plan);
    fill_second(plan);
    status = load_kernels(plan, context, err);
    if (status) return status;
    if (plan->combine) fill_parts(plan);
    status = hewn_context_push(context, err); /* the driver answers for the current one */
    if (status) return status;
    choose_pairs(plan);
    status = prepare_maps(plan, err);
    hewn_context_pop(context);
    return status;
}

int hewn_mla_plan_create(hewn_context *context, const hewn_mla_desc *desc, hewn_mla_plan **out,
                         hewn_error *err)
{
    return hewn_plan_create(sizeof(**out), context, HEWN_STRUCT_hewn_mla_desc, desc, fill_plan, out,
                            err);
}

void hewn_mla_plan_destroy(hewn_mla_plan *plan)
{
    free(plan);
}

int hewn_mla_plan_describe(const hewn_mla_plan *plan, hewn_mla_plan_info *out, hewn_error *err)
{
    if (!plan) return hewn_fail_null(err, "plan");
    const hewn_cu_launch_config *c = &plan->config;
    const hewn_mla_plan_info info = {
        .module = plan->loaded->module->name,
        .target = plan->loaded->module->target,
        .origin = plan->loaded->origin,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
        .cluster = {1 + plan->pairs, 1, 1},
        .dynamic_shared = c->shared_bytes,
        .tile_rows = plan->decode.kernel ? MLA_TILE_ROWS : kernel_of(&plan->problem)->tile_rows,
        .block_keys = MLA_BLOCK,
        .row_tiles = plan->scalars.groups,
        .shares = plan->scalars.shares,
        .workspace = plan->workspace,
    };
    return hewn_struct_give(HEWN_STRUCT_hewn_mla_plan_info, &info, out, err);
}

/* ---- a run -- */

static int check_addresses(const hewn_mla_plan *plan, const hewn_mla_args *a, hewn_error *err)
{
    const struct mla_problem *p = &plan->problem;
    enum hewn_need keys = p->kv.span ? ADDRESS_MUST : ADDRESS_MAY;
    enum hewn_need extra = p->extra.kv.span ? ADDRESS_MUST
                           : p->extra.width ? ADDRESS_MAY
                                            : ADDRESS_NONE;
    enum hewn_need table = !p->page_size || p->list_width ? ADDRESS_NONE
                           : p->length                    ? ADDRESS_MUST
                                                          : ADDRESS_MAY;
    const struct hewn_address list[] = {
        {"q", a->q, ADDRESS_MUST, MLA_ALIGN, p->q.span, 0},
        {"kv", a->kv, keys, MLA_ALIGN, p->kv.span, 0},
        {"o", a->o, ADDRESS_MUST, MLA_ALIGN, p->o.span, 1},
        {"lse", a->lse, ADDRESS_MAY, WORD, plan->lse_span, 1},
        {"workspace", a->workspace, hewn_needed(plan->workspace > 0), MLA_ALIGN, plan->workspace,
         1},
        {"sink", a->sink, hewn_needed(p->sink), WORD, 0, 0},
        {"lengths", a->lengths, hewn_needed(p->lengths), WORD, 0, 0},
        {"table", a->table, table, WORD, 0, 0},
        {"lists", a->lists, hewn_needed(p->list_width > 0), WORD, 0, 0},
        {"extra_kv", a->extra_kv, extra, MLA_ALIGN, p->extra.kv.span, 0},
        {"extra_lists", a->extra_lists, hewn_needed(p->extra.width > 0), WORD, 0, 0},
        {"extra_lengths", a->extra_lengths, hewn_needed(p->extra.lengths), WORD, 0, 0},
    };
    return hewn_addresses_check(list, sizeof list / sizeof *list, err);
}

static int launch_combine(const hewn_mla_plan *plan, const struct mla_scalars *from,
                          hewn_stream stream, hewn_error *err)
{
    struct split_combine_scalars scalars = plan->merge;
    scalars.part_o = from->part_o;
    scalars.part_lse = from->part_lse;
    scalars.records = from->part_records;
    scalars.firsts = from->firsts;
    scalars.o = from->o;
    scalars.lse = from->lse;
    scalars.sink = from->sink;
    return hewn_split_combine(plan->context, plan->combine, &plan->merge_config, &scalars, stream,
                              err);
}

static int launch_kernels(const hewn_mla_plan *plan, const hewn_mla_args *a, hewn_stream stream,
                          hewn_error *err)
{
    hewn_cu_tensor_map maps[MLA_MAP_COUNT];
    const hewn_deviceptr at[MLA_MAP_COUNT] = {a->q, plan->scalars.box ? a->kv : a->q};
    int status =
        hewn_plan_place_maps(plan->context, plan->maps, map_names, at, MLA_MAP_COUNT, maps, err);
    if (status) return status;
    struct mla_scalars scalars = plan->scalars;
    struct mla_second_scalars second = plan->second;
    second.extra_kv = a->extra_kv;
    second.extra_lists = a->extra_lists;
    second.extra_lengths = a->extra_lengths;
    scalars.kv = a->kv;
    scalars.o = a->o;
    scalars.lse = a->lse;
    scalars.sink = a->sink;
    scalars.lengths = a->lengths;
    scalars.table = a->table;
    scalars.lists = a->lists;
    if (plan->combine) {
        scalars.part_o = a->workspace;
        scalars.part_lse = a->workspace + plan->part_lse;
        scalars.part_records = a->workspace + plan->records;
        scalars.firsts = plan->firsts ? a->workspace + plan->firsts : 0;
    }
    struct hewn_params params;
    hewn_params_begin(&params, maps, MLA_MAP_COUNT);
    hewn_params_add(&params, &scalars, MLA_SCALARS(HEWN_SCALAR_SIZE));
    if (kernel_of(&plan->problem)->second)
        hewn_params_add(&params, &second, SM90A_MLA_SECOND_SCALARS(HEWN_SCALAR_SIZE));
    status = hewn_plan_launch(plan->context, plan->loaded, &plan->config, stream, &params, err);
    if (!status && plan->combine) status = launch_combine(plan, &scalars, stream, err);
    return status;
}

int hewn_mla_plan_run(const hewn_mla_plan *plan, const hewn_mla_args *args, hewn_stream stream,
                      hewn_error *err)
{
    hewn_mla_args a;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_mla_args, args, &a, err);
    if (!status) status = check_addresses(plan, &a, err);
    if (status) return status;
    return plan->decode.kernel ? hewn_mla_decode_run(plan, &a, stream, err)
                               : launch_kernels(plan, &a, stream, err);
}
