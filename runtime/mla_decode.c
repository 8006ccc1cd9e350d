/*
 * MLA plans on sm_100f, where the kernel is a variant of the decode kernel: one KV head, whose values are
 * columns of its keys. What the kernel expects is in ptx/inc/decode.plan.h.
 */
#include "mla.h"

#include "error.h"
#include "plan.h"

#include "../ptx/sm_100f/decode.plan.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    LOG_BYTES = 4,       /* an lse: f32 */
    LEAST_BOX = 16,      /* rows: smaller boxes are slower than rows fetched one by one */
    COMBINE_CTAS = 1056, /* of the combine kernel, that a device holds at a time */
    SEARCHED_CTAS = 1584 /* fewer CTAs that find nothing cost less than a search */
};

static const struct decode_kernel kernels[] = {
#define KERNEL(P, t, qk, v, e, n) DECODE_SM100F_KERNEL(P, t, qk, v, e, n, P##_DECODE_RECORDS(e)),
    SM100F_MLA_VARIANTS(KERNEL)
#undef KERNEL
};

_Static_assert(DECODE_MAP_COUNT + DECODE_SCALAR_COUNT + (SM100F_MLA_SCALARS(SCALAR_ONE)) <=
                   HEWN_PARAMS_MOST,
               "room");
_Static_assert(offsetof(struct mla_list_scalars, extra_pages) + 4 ==
                   (0 SM100F_MLA_SCALARS(SCALAR_BYTES)),
               "the list's scalars are not laid out as the kernel's parameters");

enum { ROWS = SM100F_MLA_ROWS }; /* of a tile of every kernel */

_Static_assert(sizeof kernels == 3 * sizeof *kernels && ROWS == MLA_TILE_ROWS &&
                   SM100F_MLA_QK == MLA_QK_DIM && SM100F_MLA_V == MLA_V_DIM &&
                   SM100F_DECODE_STEP_KEYS(MLA_QK_DIM) == MLA_BLOCK,
               "a kernel for each kind of cache; what a plan's description says of them");

static uint32_t ceil_div(uint64_t a, uint64_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

static uint32_t lesser(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

int hewn_mla_decode_takes(const hewn_context *context)
{
    return hewn_target_runs_on(kernels->target, context->info.cc_major, context->info.cc_minor);
}

static const struct decode_kernel *find_kernel(const struct mla_problem *p)
{
    return &kernels[p->cache];
}

/* ---- parameters -- */

/* The kernel's sequences: with lists, queries. Their queries, and the most keys of one. */
static uint32_t sequences(const struct mla_problem *p)
{
    return p->list_width ? p->batch * p->q_length : p->batch;
}

static uint32_t queries_of(const struct mla_problem *p)
{
    return p->list_width ? 1 : p->q_length;
}

static uint32_t most_keys(const struct mla_problem *p)
{
    return p->list_width ? p->list_width + p->extra.width : p->length;
}

static uint32_t count_tiles(const struct mla_problem *p, uint32_t pack)
{
    return ceil_div(p->q_heads, pack) * ceil_div(queries_of(p), ROWS / pack);
}

/* Heads and queries of a tile: those that need the fewest tiles, and of these the most heads. */
static void choose_rows(const struct mla_problem *p, struct decode_scalars *s)
{
    uint32_t most = lesser(p->q_heads, ROWS);
    s->pack = most ? most : 1;
    for (uint32_t pack = most; pack > 0; pack--)
        if (count_tiles(p, pack) < count_tiles(p, s->pack)) s->pack = pack;
    s->tokens = lesser(ROWS / s->pack, queries_of(p));
    if (!s->tokens) s->tokens = 1;
    s->head_blocks = ceil_div(p->q_heads, s->pack);
}

static void choose_boxes(const struct mla_problem *p, const struct decode_kernel *k,
                         struct decode_scalars *s)
{
    uint32_t divides = p->page_size & (0U - p->page_size);
    s->box = divides ? lesser(divides, k->step_keys) : k->step_keys;
    s->gather = k->rows_only || p->list_width || (p->page_size && s->box < LEAST_BOX);
}

static uint64_t most_blocks(const struct mla_problem *p)
{
    return ((uint64_t)most_keys(p) + DECODE_BLOCK - 1) / DECODE_BLOCK;
}

/* CTAs, in a group for each block of heads where that leaves few SMs without work: they then read the same
 * keys at about the same time. */
static uint32_t count_ctas(struct decode_scalars *s, uint64_t units, uint32_t sms)
{
    uint32_t planes = s->head_blocks;
    s->groups = planes <= sms && sms / planes * planes * 16 >= sms * 15 ? planes : 1;
    return lesser(units, sms / s->groups * s->groups);
}

static void fill_scalars(hewn_mla_plan *plan)
{
    const struct mla_problem *p = &plan->problem;
    struct decode_scalars *s = &plan->decode.scalars;
    uint64_t queries = LOG_BYTES * (uint64_t)p->q_length;
    s->scale_log2 = p->scale_log2;
    s->batch = sequences(p);
    s->kv_heads = 1;
    s->group = p->q_heads;
    s->q_len = queries_of(p);
    s->kv_len = p->list_width ? p->list_width : p->length;
    s->left = DECODE_UNBOUNDED;
    s->right = p->causal ? 0 : DECODE_UNBOUNDED;
    s->page_size = p->page_size;
    s->pages = p->page_size || p->list_width ? p->planes : 0;
    if (p->list_width && !p->page_size) s->page_size = p->length ? p->length : 1; /* all rows */
    s->table_width = p->table_width;
    s->out_type = (uint32_t)p->out;
    s->k_token = s->v_token = p->kv.step[1];
    s->k_plane = s->v_plane = p->kv.step[2];
    if (p->scales) s->v_token = MLA_584_SCALES;
    s->o_head = p->o.step[0];
    s->o_token = p->o.step[1];
    s->o_batch = p->o.step[2];
    s->lse_token = LOG_BYTES;
    s->lse_head = queries;
    s->lse_batch = queries * p->q_heads;
    plan->lse_span = queries * p->q_heads * p->batch;
    if (p->invariant) { /* parts at fixed counts, which no tile reaches */
        s->chunk = DECODE_WHOLE;
        s->chunks = 1;
        s->row_tiles = ceil_div(s->q_len, s->tokens);
        s->tiles = s->head_blocks * s->row_tiles;
    }
    uint32_t lists = p->list_width ? p->q_length : 1; /* of a sequence */
    const struct mla_extra *e = &p->extra;
    uint32_t unpaged = e->length ? e->length : 1; /* one page of all rows */
    plan->list = (struct mla_list_scalars){
        .list_step = p->list_step,
        .queries = lists,
        .length_share = p->lengths == 1 ? lists : 1,
        .extra_step = e->step,
        .extra_token = e->kv.step[1],
        .extra_plane = e->kv.step[2],
        .extra_keys = e->width,
        .extra_share = e->lengths == 1 ? lists : 1,
        .extra_page = e->page_size ? e->page_size : unpaged,
        .extra_pages = e->planes,
    };
}

/* Two slots a CTA for parts of tiles, and its record. */
static void fill_parts(hewn_mla_plan *plan)
{
    const struct decode_scalars *s = &plan->decode.scalars;
    struct split_combine_scalars *m = &plan->decode.merge;
    uint64_t ctas = plan->config.grid_x, rows = (uint64_t)s->tokens * s->pack;
    uint64_t slots = 2 * ctas * rows;
    plan->part_lse = slots * MLA_V_DIM * LOG_BYTES;
    plan->records = plan->part_lse + (slots * LOG_BYTES + MLA_ALIGN - 1) / MLA_ALIGN * MLA_ALIGN;
    plan->workspace = plan->records + ctas * SPLIT_RECORD_BYTES;
    *m = (struct split_combine_scalars){
        .o_token = s->o_token,
        .o_head = s->o_head,
        .o_batch = s->o_batch,
        .lse_token = s->lse_token,
        .lse_head = s->lse_head,
        .lse_batch = s->lse_batch,
        .rows = (uint32_t)rows,
        .pack = s->pack,
        .step = 1,
        .part_step = 2 * s->groups,
        .record_step = 2,
        .first_slot = 1,
        .v_dim = MLA_V_DIM,
        .out_type = s->out_type,
    };
    /* Few rows a CTA while the device holds all CTAs at once that may have parts. Where tiles are far fewer than records,
     * a CTA a tile searches for its record. */
    uint64_t tiles = (uint64_t)s->batch * s->head_blocks * ceil_div(s->q_len, s->tokens);
    int few = 4 * tiles <= ctas && ctas <= 32 * SPLIT_COMBINE_WARPS;
    uint64_t split = few ? tiles : ctas;
    while (m->step < SPLIT_COMBINE_WARPS && split * ceil_div(rows, m->step) > COMBINE_CTAS)
        m->step *= 2;
    if (few && ctas * ceil_div(rows, m->step) >= SEARCHED_CTAS) m->search = (uint32_t)ctas;
    plan->merge_config = (hewn_cu_launch_config){
        .grid_x = (uint32_t)(m->search ? split : ctas),
        .grid_y = ceil_div(rows, m->step),
        .grid_z = 1,
        .block_x = 32 * SPLIT_COMBINE_WARPS,
        .block_y = 1,
        .block_z = 1,
        .attributes = plan->overlap,
        .attribute_count = plan->context->driver->fn.launch_kernel_ex != NULL,
    };
}

/* ---- tensor maps -- */

static hewn_tensormap_desc map_of(const struct mla_problem *p, uint32_t rank, uint64_t columns)
{
    return (hewn_tensormap_desc){
        .struct_size = sizeof(hewn_tensormap_desc),
        .dtype = p->in == HEWN_F16 ? HEWN_TENSORMAP_F16 : HEWN_TENSORMAP_BF16,
        .rank = (int)rank,
        .dim = {columns},
        .box = {SWIZZLE_BYTES / 2},
        .element_stride = {1, 1, 1, 1, 1},
        .swizzle = HEWN_TENSORMAP_SWIZZLE_128B,
        .l2 = HEWN_TENSORMAP_L2_128B,
    };
}

static void describe_q(hewn_mla_plan *plan)
{
    const struct mla_problem *p = &plan->problem;
    const struct decode_scalars *s = &plan->decode.scalars;
    hewn_tensormap_desc *map = &plan->decode.maps[0].desc;
    const uint64_t dim[] = {p->q_heads, 1, p->q_length, p->batch};
    const uint64_t stride[] = {p->q.step[0], MLA_ALIGN, p->q.step[1], p->q.step[2]};
    const uint32_t box[] = {s->pack, 1, s->tokens, 1};
    *map = map_of(p, 5, p->qk_dim);
    memcpy(&map->dim[1], dim, sizeof dim);
    memcpy(map->stride, stride, sizeof stride);
    memcpy(&map->box[1], box, sizeof box);
}

/* The driver refuses a map without elements: a cache without rows, or one that is never loaded by boxes, is
 * described as one row of Q. */
static void describe_keys(hewn_mla_plan *plan, uint32_t columns, hewn_tensormap_desc *map)
{
    const struct mla_tensor *kv = &plan->problem.kv;
    int boxes = kv->span && !mla_gathers(&plan->problem);
    const uint64_t dim[] = {kv->count[1], 1, kv->count[2]}, one[] = {1, 1, 1};
    const uint64_t stride[] = {kv->step[1], MLA_ALIGN, kv->step[2]};
    const uint64_t near[] = {MLA_ALIGN, MLA_ALIGN, MLA_ALIGN};
    *map = map_of(&plan->problem, 4, columns);
    map->box[1] = plan->decode.scalars.box;
    map->box[2] = map->box[3] = 1;
    memcpy(&map->dim[1], boxes ? dim : one, sizeof dim);
    memcpy(map->stride, boxes ? stride : near, sizeof stride);
}

static const char *const map_names[DECODE_MAP_COUNT] = {"q", "kv", "kv"};

static int prepare_maps(hewn_mla_plan *plan, hewn_error *err)
{
    describe_q(plan);
    describe_keys(plan, MLA_QK_DIM, &plan->decode.maps[1].desc);
    describe_keys(plan, MLA_V_DIM, &plan->decode.maps[2].desc);
    return hewn_plan_prepare_maps(plan->context, plan->decode.maps, map_names, DECODE_MAP_COUNT,
                                  err);
}

/* ---- the plan -- */

static int load_kernels(hewn_mla_plan *plan, hewn_context *context, hewn_error *err)
{
    static const char *const rows[] = {"", "_656", "_584"}; /* by hewn_mla_cache */
    char name[24];
    const struct decode_kernel *kernel = plan->decode.kernel;
    snprintf(name, sizeof name, "mla_%s%s", hewn_dtype_name(plan->problem.in),
             rows[plan->problem.cache]);
    int status = hewn_plan_need_maps(context, name, err);
    if (!status)
        status = hewn_plan_load(context, hewn_mla_family(), name, kernel->dynamic_shared,
                                &plan->loaded, err);
    if (status || most_blocks(&plan->problem) < 2 || plan->problem.invariant) return status;
    return hewn_plan_load(context, hewn_mla_family(), "mla_combine", 0, &plan->combine, err);
}

static int count_units(const struct mla_problem *p, const struct decode_scalars *s, uint64_t *units,
                       hewn_error *err)
{
    uint64_t tiles = (uint64_t)s->head_blocks * ceil_div(queries_of(p), s->tokens) * sequences(p);
    if (!__builtin_mul_overflow(tiles, most_blocks(p) + SPLIT_OVERHEAD, units) &&
        *units <= SPLIT_MAX_UNITS)
        return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_LIMIT,
                     "%s: %u %s of %u keys are more blocks than the kernel can count",
                     p->list_width ? "batch, q_length, list_width" : "batch, length", sequences(p),
                     p->list_width ? "queries" : "sequences", most_keys(p));
}

int hewn_mla_decode_fill(hewn_mla_plan *plan, hewn_context *context, hewn_error *err)
{
    struct decode_plan *d = &plan->decode;
    struct decode_scalars *s = &d->scalars;
    uint64_t units;
    d->kernel = find_kernel(&plan->problem);
    choose_rows(&plan->problem, s);
    choose_boxes(&plan->problem, d->kernel, s);
    int status = count_units(&plan->problem, s, &units, err);
    if (!status) status = load_kernels(plan, context, err);
    if (status) return status;
    fill_scalars(plan);
    plan->config = (hewn_cu_launch_config){
        .grid_x = count_ctas(s, units, (uint32_t)context->info.sm_count),
        .grid_y = 1,
        .grid_z = 1,
        .block_x = d->kernel->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = d->kernel->dynamic_shared,
        .attributes = plan->overlap,
        .attribute_count = context->driver->fn.launch_kernel_ex != NULL,
    };
    plan->overlap[0].id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
    plan->overlap[0].value.flag = 1;
    plan->scalars.groups = count_tiles(&plan->problem, s->pack);
    plan->scalars.shares = (plan->config.grid_x + s->groups - 1) / s->groups;
    if (plan->combine) fill_parts(plan);
    status = hewn_context_push(context, err); /* the driver answers for the current one */
    if (status) return status;
    status = prepare_maps(plan, err);
    hewn_context_pop(context);
    return status;
}

/* ---- a run -- */

static int launch_combine(const hewn_mla_plan *plan, const struct decode_scalars *from,
                          hewn_stream stream, hewn_error *err)
{
    struct split_combine_scalars scalars = plan->decode.merge;
    scalars.part_o = from->part_o;
    scalars.part_lse = from->part_lse;
    scalars.records = from->records;
    scalars.o = from->o;
    scalars.lse = from->lse;
    scalars.sink = from->sink;
    return hewn_split_combine(plan->context, plan->combine, &plan->merge_config, &scalars, stream,
                              err);
}

int hewn_mla_decode_run(const hewn_mla_plan *plan, const hewn_mla_args *args, hewn_stream stream,
                        hewn_error *err)
{
    hewn_cu_tensor_map maps[DECODE_MAP_COUNT];
    hewn_deviceptr kv = plan->problem.kv.span && !mla_gathers(&plan->problem) ? args->kv : args->q;
    const hewn_deviceptr at[DECODE_MAP_COUNT] = {args->q, kv, kv};
    int status = hewn_plan_place_maps(plan->context, plan->decode.maps, map_names, at,
                                      DECODE_MAP_COUNT, maps, err);
    if (status) return status;
    struct decode_scalars s = plan->decode.scalars;
    struct mla_list_scalars list = plan->list;
    list.lists = args->lists;
    list.extra_lists = args->extra_lists;
    list.extra_lengths = args->extra_lengths;
    list.extra_k = args->extra_kv;
    list.extra_v = args->extra_kv + plan->problem.extra.scales;
    s.k = s.v =
        args->kv ? args->kv : args->q; /* where there are no rows, an address all the same */
    s.v += plan->problem.scales;
    s.o = args->o;
    s.lse = args->lse;
    s.sink = args->sink;
    s.lengths = args->lengths;
    s.table = args->table;
    if (plan->combine) {
        s.part_o = args->workspace;
        s.part_lse = args->workspace + plan->part_lse;
        s.records = args->workspace + plan->records;
    }
    struct hewn_params params;
    hewn_params_begin(&params, maps, DECODE_MAP_COUNT);
    hewn_params_add(&params, &s, DECODE_SCALARS(HEWN_SCALAR_SIZE));
    hewn_params_add(&params, &list, SM100F_MLA_SCALARS(HEWN_SCALAR_SIZE));
    status = hewn_plan_launch(plan->context, plan->loaded, &plan->config, stream, &params, err);
    if (!status && plan->combine) status = launch_combine(plan, &s, stream, err);
    return status;
}
