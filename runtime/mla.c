/*
 * MLA plans: a checked problem, the kernel for a device, everything except the addresses; and their
 * runs. What the kernel expects is in ptx/inc/mla.plan.h.
 */
#include "mla.h"

#include "error.h"
#include "structs.h"

#include "../ptx/sm_90a/mla.plan.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOG_BYTES = 4,      /* an lse: f32 */
    WORD = 4,           /* bytes: what f32 and int32 arrays are aligned to */
    COMBINE_CTAS = 512, /* of the combine kernel, that have something to do */
    LEAST_BOX = 8,      /* rows: where the swizzle repeats */
    PARAMS = MLA_MAP_COUNT + MLA_SCALAR_COUNT
};

_Static_assert(offsetof(struct mla_scalars, length_share) + 4 + MLA_MAP_COUNT * MAP_BYTES ==
                   MLA_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");
_Static_assert(offsetof(struct mla_combine_scalars, out_type) + 4 == SPLIT_COMBINE_PARAM_BYTES,
               "the scalars are not laid out as the combine kernel's parameters");
_Static_assert(HEWN_F32 == MLA_OUT_F32 && HEWN_F16 == MLA_OUT_F16 && HEWN_BF16 == MLA_OUT_BF16,
               "out_type has the values of hewn_dtype");

/* ---- the plan -- */

/* Rows of a box of the cache: the largest power of two that divides a page and a block; 0 where that is
 * too small for boxes. */
static uint32_t box_rows(const struct mla_problem *p)
{
    uint32_t box = p->page_size & (0U - p->page_size);
    if (!box || box > MLA_BLOCK) box = MLA_BLOCK;
    return box < LEAST_BOX || !p->kv.span || mla_gathers(p) ? 0 : box;
}

/* The kernel's sequences: with lists, queries. And the most keys that one sees. */
static uint32_t sequences(const struct mla_problem *p)
{
    return p->list_width ? p->batch * p->q_length : p->batch;
}

static uint32_t most_keys(const struct mla_problem *p)
{
    return p->list_width ? p->list_width : p->length;
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

static int can_split(const struct mla_problem *p, uint32_t shares)
{
    return shares > 1 && most_blocks(p) > 1;
}

static void fill_scalars(hewn_mla_plan *plan)
{
    const struct mla_problem *p = &plan->problem;
    uint32_t sms = (uint32_t)plan->context->info.sm_count * SM90A_MLA_CTAS_PER_SM;
    uint32_t queries = p->list_width ? 1 : p->q_length; /* of a sequence of the kernel */
    uint32_t rows = p->q_heads * queries;
    uint32_t tiles = (rows + MLA_TILE_ROWS - 1) / MLA_TILE_ROWS;
    uint32_t threads = mla_gathers(p) ? SM90A_MLA_GATHER_THREADS : SM90A_MLA_THREADS;
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
        .kv_len = most_keys(p),
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
        .block_x = threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = SM90A_MLA_DYNAMIC_SHARED,
        .attributes = plan->overlap,
        .attribute_count = tiles == 1 && plan->context->driver->fn.launch_kernel_ex,
    };
    plan->overlap[0].id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
    plan->overlap[0].value.flag = 1;
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
    plan->merge = (struct mla_combine_scalars){
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
        .dim = {MLA_QK_DIM, rows, planes},
        .stride = {row, plane},
        .box = {SWIZZLE_BYTES / 2, box, 1},
        .element_stride = {1, 1, 1, 1, 1},
        .swizzle = HEWN_TENSORMAP_SWIZZLE_128B,
        .l2 = HEWN_TENSORMAP_L2_128B, /* a row of 1,152 B may begin in the middle of 256 */
    };
}

/* A cache without rows, or one that is loaded without boxes, is described as one row of Q, from which
 * nothing is ever read: the driver refuses a map without elements. */
static int prepare_maps(hewn_mla_plan *plan, hewn_error *err)
{
    static const char *const names[MLA_MAP_COUNT] = {"q", "kv"};
    const struct mla_problem *p = &plan->problem;
    const struct mla_tensor *q = &p->q, *kv = &p->kv;
    const hewn_driver *driver = plan->context->driver;
    uint32_t box = plan->scalars.box;
    uint64_t row = p->q_heads > 1 ? q->step[0] : q->step[1];
    plan->maps[0].desc = map_of(p, p->rows, row, p->batch, q->step[2], MLA_TILE_ROWS);
    plan->maps[1].desc = box ? map_of(p, kv->count[1], kv->step[1], kv->count[2], kv->step[2], box)
                             : map_of(p, 1, MLA_ALIGN, 1, MLA_ALIGN, MLA_BLOCK);
    for (int i = 0; i < MLA_MAP_COUNT; i++) {
        hewn_cu_result r = hewn_map_prepare(driver, &plan->maps[i]);
        if (r) return hewn_fail_driver(err, driver, r, "cuTensorMapEncodeTiled", "%s", names[i]);
    }
    return HEWN_OK;
}

static int choose_module(const hewn_context *context, const char *name, const hewn_module **out,
                         hewn_error *err)
{
    *out =
        hewn_family_choose(hewn_mla_family(), name, context->info.cc_major, context->info.cc_minor);
    if (*out) return HEWN_OK;
    hewn_error_set_no_module(context, hewn_mla_family(), name, err);
    return HEWN_ERR_NO_MODULE;
}

static int load_kernels(hewn_mla_plan *plan, hewn_context *context, hewn_error *err)
{
    const hewn_module *module = NULL, *combine = NULL;
    char name[24];
    const struct mla_problem *p = &plan->problem;
    const char *rows = !mla_gathers(p) ? "" : p->cache == HEWN_MLA_CACHE_656 ? "_656" : "_rows";
    snprintf(name, sizeof name, "mla_%s%s", hewn_dtype_name(p->in), rows);
    int status = choose_module(context, name, &module, err);
    if (!status && !context->driver->fn.tensor_map_encode_tiled)
        return hewn_fail(err, HEWN_ERR_SYMBOL, "%s: the driver lacks cuTensorMapEncodeTiled", name);
    if (!status)
        status = hewn_load_kernel(context, module, SM90A_MLA_DYNAMIC_SHARED, &plan->loaded, err);
    if (status || !can_split(&plan->problem, plan->scalars.shares)) return status;
    status = choose_module(context, "mla_combine", &combine, err);
    return status ? status : hewn_load_kernel(context, combine, 0, &plan->combine, err);
}

static int fill_plan(hewn_mla_plan *plan, hewn_context *context, const hewn_mla_desc *desc,
                     hewn_error *err)
{
    plan->context = context;
    int status = hewn_mla_check(desc, &plan->problem, err);
    if (status) return status;
    const struct mla_problem *p = &plan->problem;
    if (!mla_gathers(p) && hewn_mla_decode_takes(context))
        return hewn_mla_decode_fill(plan, context, err);
    if (most_blocks(p) + SPLIT_OVERHEAD > SPLIT_MAX_UNITS / sequences(p))
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "%s: %u %s of %u keys are more blocks than the kernel can count",
                         p->list_width ? "batch, q_length, list_width" : "batch, length",
                         sequences(p), p->list_width ? "queries" : "sequences", most_keys(p));
    fill_scalars(plan);
    status = load_kernels(plan, context, err);
    if (status) return status;
    if (plan->combine) fill_parts(plan);
    status = hewn_context_push(context, err); /* the driver answers for the current one */
    if (status) return status;
    status = prepare_maps(plan, err);
    hewn_context_pop(context);
    return status;
}

int hewn_mla_plan_create(hewn_context *context, const hewn_mla_desc *desc, hewn_mla_plan **out,
                         hewn_error *err)
{
    if (!context) return hewn_fail(err, HEWN_ERR_ARGUMENT, "context: must not be NULL");
    if (!out) return hewn_fail(err, HEWN_ERR_ARGUMENT, "out: must not be NULL");
    hewn_mla_desc d;
    int status = hewn_struct_take(HEWN_STRUCT_hewn_mla_desc, desc, &d, err);
    if (status) return status;
    hewn_mla_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for the plan");
    status = fill_plan(plan, context, &d, err);
    if (status) {
        free(plan);
        return status;
    }
    *out = plan;
    return HEWN_OK;
}

void hewn_mla_plan_destroy(hewn_mla_plan *plan)
{
    free(plan);
}

int hewn_mla_plan_describe(const hewn_mla_plan *plan, hewn_mla_plan_info *out, hewn_error *err)
{
    if (!plan) return hewn_fail(err, HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    const hewn_cu_launch_config *c = &plan->config;
    const hewn_mla_plan_info info = {
        .module = plan->loaded->module->name,
        .target = plan->loaded->module->target,
        .origin = plan->loaded->origin,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
        .cluster = {1, 1, 1},
        .dynamic_shared = c->shared_bytes,
        .tile_rows = MLA_TILE_ROWS,
        .block_keys = MLA_BLOCK,
        .row_tiles = plan->scalars.groups,
        .shares = plan->scalars.shares,
        .workspace = plan->workspace,
    };
    return hewn_struct_give(HEWN_STRUCT_hewn_mla_plan_info, &info, out, err);
}

/* ---- a run -- */

struct address {
    const char *name;
    hewn_deviceptr at;
    int need;       /* 1: must be there; 0: may be; -1: must not */
    uint32_t align; /* a power of two */
    uint64_t span;  /* bytes; 0: too few to be compared with others */
};

enum { Q, KV, O, LSE, WORKSPACE, SINK, LENGTHS, TABLE, LISTS, ADDRESSES };

static int need(int condition)
{
    return condition ? 1 : -1;
}

static int check_address(const struct address *a, hewn_error *err)
{
    if (a->need == 1 && a->at == 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: address must not be 0", a->name);
    if (a->need == -1 && a->at != 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: address 0x%llx must be 0, because the plan uses none", a->name,
                         a->at);
    if (a->at & (a->align - 1))
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: address 0x%llx is not a multiple of %u",
                         a->name, a->at, a->align);
    if (a->at && a->span > UINT64_MAX - a->at)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: address 0x%llx and %llu B run past the end of memory", a->name, a->at,
                         (unsigned long long)a->span);
    return HEWN_OK;
}

static int check_apart(const struct address *a, const struct address *b, hewn_error *err)
{
    if (!a->at || !b->at || !a->span || !b->span) return HEWN_OK;
    if (a->at + a->span <= b->at || b->at + b->span <= a->at) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %llu B at 0x%llx overlap %s, %llu B at 0x%llx",
                     a->name, (unsigned long long)a->span, a->at, b->name,
                     (unsigned long long)b->span, b->at);
}

static int check_addresses(const hewn_mla_plan *plan, const hewn_mla_args *a, hewn_error *err)
{
    const struct mla_problem *p = &plan->problem;
    int table = !p->page_size || p->list_width ? -1 : p->length > 0;
    const struct address list[ADDRESSES] = {
        [Q] = {"q", a->q, 1, MLA_ALIGN, p->q.span},
        [KV] = {"kv", a->kv, p->kv.span > 0, MLA_ALIGN, p->kv.span},
        [O] = {"o", a->o, 1, MLA_ALIGN, p->o.span},
        [LSE] = {"lse", a->lse, 0, WORD, plan->lse_span},
        [WORKSPACE] = {"workspace", a->workspace, need(plan->workspace > 0), MLA_ALIGN,
                       plan->workspace},
        [SINK] = {"sink", a->sink, need(p->sink), WORD, 0},
        [LENGTHS] = {"lengths", a->lengths, need(p->lengths), WORD, 0},
        [TABLE] = {"table", a->table, table, WORD, 0},
        [LISTS] = {"lists", a->lists, need(p->list_width > 0), WORD, 0},
    };
    int status = HEWN_OK;
    for (int i = 0; !status && i < ADDRESSES; i++) status = check_address(&list[i], err);
    for (int i = O; !status && i <= WORKSPACE; i++)
        for (int j = 0; !status && j < i; j++) status = check_apart(&list[i], &list[j], err);
    return status;
}

static int place_maps(const hewn_mla_plan *plan, const hewn_mla_args *a,
                      hewn_cu_tensor_map maps[MLA_MAP_COUNT], hewn_error *err)
{
    static const char *const names[MLA_MAP_COUNT] = {"q", "kv"};
    const hewn_driver *driver = plan->context->driver;
    const hewn_deviceptr at[MLA_MAP_COUNT] = {a->q, plan->scalars.box ? a->kv : a->q};
    for (int i = 0; i < MLA_MAP_COUNT; i++) {
        hewn_cu_result r = hewn_map_place(driver, &plan->maps[i], at[i], &maps[i]);
        if (r)
            return hewn_fail_driver(err, driver, r, hewn_map_call(driver), "%s at 0x%llx", names[i],
                                    at[i]);
    }
    return HEWN_OK;
}

static int launch_combine(const hewn_mla_plan *plan, const struct mla_scalars *from,
                          hewn_stream stream, hewn_error *err)
{
    struct mla_combine_scalars scalars = plan->merge;
    scalars.part_o = from->part_o;
    scalars.part_lse = from->part_lse;
    scalars.records = from->part_records;
    scalars.firsts = from->firsts;
    scalars.o = from->o;
    scalars.lse = from->lse;
    scalars.sink = from->sink;
    void *params[SPLIT_COMBINE_SCALAR_COUNT];
    size_t n = 0;
#define X(type, name, rule) params[n++] = &scalars.name;
    SPLIT_COMBINE_SCALARS(X)
#undef X
    hewn_cu_launch_config config = plan->merge_config;
    config.stream = stream;
    return hewn_launch_config(plan->context->driver, &config, plan->combine->function, params, err);
}

static int launch_kernels(const hewn_mla_plan *plan, const hewn_mla_args *a, hewn_stream stream,
                          hewn_error *err)
{
    hewn_cu_tensor_map maps[MLA_MAP_COUNT];
    int status = place_maps(plan, a, maps, err);
    if (status) return status;
    struct mla_scalars scalars = plan->scalars;
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
    void *params[PARAMS];
    size_t n = 0;
    for (; n < MLA_MAP_COUNT; n++) params[n] = &maps[n];
#define X(type, name, rule) params[n++] = &scalars.name;
    MLA_SCALARS(X)
#undef X
    hewn_cu_launch_config config = plan->config;
    config.stream = stream;
    status =
        hewn_launch_config(plan->context->driver, &config, plan->loaded->function, params, err);
    if (!status && plan->combine) status = launch_combine(plan, &scalars, stream, err);
    return status;
}

int hewn_mla_plan_run(const hewn_mla_plan *plan, const hewn_mla_args *args, hewn_stream stream,
                      hewn_error *err)
{
    hewn_mla_args a;
    if (!plan) return hewn_fail(err, HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    int status = hewn_struct_take(HEWN_STRUCT_hewn_mla_args, args, &a, err);
    if (!status) status = check_addresses(plan, &a, err);
    if (status) return status;
    return plan->decode.kernel ? hewn_mla_decode_run(plan, &a, stream, err)
                               : launch_kernels(plan, &a, stream, err);
}
