/*
 * Attention plans: a checked problem, the kernel for a device, and everything except the addresses.
 * What the kernels expect is in ptx/inc/attention.plan.h and the plan header of each target.
 */
#include "attention.h"

#include "error.h"
#include "plan.h"

#include "../ptx/sm_100f/attention.plan.h"
#include "../ptx/sm_90a/attention.plan.h"
#include "../ptx/sm_90a/attention_e4m3.plan.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ITEMS = INT32_MAX,   /* the kernels' item counter is 32-bit */
    MAX_ROWS = INT32_MAX,    /* and the combine kernel's row number */
    FEW_BLOCKS = 4,          /* with fewer key blocks than this an item is not worth splitting */
    BLOCKS_OF_A_SPLIT = 2,   /* at least */
    MAX_CHOSEN_SPLITS = 64,  /* beyond, combining costs more than it gains */
    OCTET = 8,               /* rows of a box's group */
    MOST_OCTETS = 4,         /* of a box */
    OCTET_PAGES = 0x3FFFFFF, /* from here on a page is none */
    OCTET_STRIDE = 37,       /* bits of a token's stride: 40 of a tensor map's, less 3 */
    LOG_BYTES = 4            /* an lse, a row maximum, a partial result's element: f32 */
};

static const struct attention_kernel kernels[] = {
#define IS_SUMS_SM90A           0
#define IS_SUMS_SM90A_E4M3      0
#define IS_SUMS_SM90A_E4M3_SUMS 1
#define IS_SUMS_SM100F          0
#define KERNEL(P, t, qk, v, e)                              \
    {.target = #t,                                          \
     .qk_dim = qk,                                          \
     .v_dim = v,                                            \
     .element = e,                                          \
     .tile_rows = P##_ATTENTION_TILE_ROWS,                  \
     .item_tiles = P##_ATTENTION_ITEM_TILES(qk),            \
     .v_halves = P##_ATTENTION_V_HALVES(v),                 \
     .box_v = P##_ATTENTION_BOX_V(v),                       \
     .slots = P##_ATTENTION_SLOTS(qk, e),                   \
     .row_bytes = P##_ATTENTION_ROW_BYTES,                  \
     .threads = P##_ATTENTION_THREADS(qk),                  \
     .dynamic_shared = P##_ATTENTION_DYNAMIC_SHARED(qk, e), \
     .tmem_columns = P##_ATTENTION_TMEM_COLUMNS,            \
     .ctas_per_sm = P##_ATTENTION_CTAS_PER_SM,              \
     .sums = IS_SUMS_##P},
    SM90A_ATTENTION_VARIANTS(KERNEL) SM90A_E4M3_ATTENTION_VARIANTS(KERNEL)
        SM90A_E4M3_SUMS_ATTENTION_VARIANTS(KERNEL) SM100F_ATTENTION_VARIANTS(KERNEL)
#undef KERNEL
};

_Static_assert(offsetof(struct attention_scalars, cap_log2) + 4 + ATTENTION_MAP_COUNT * MAP_BYTES ==
                   ATTENTION_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");
_Static_assert(offsetof(struct attention_combine_scalars, out_type) + 4 ==
                   ATTENTION_COMBINE_PARAM_BYTES,
               "the scalars are not laid out as the combine kernel's parameters");
_Static_assert(HEWN_F32 == ATTENTION_OUT_F32 && HEWN_F16 == ATTENTION_OUT_F16 &&
                   HEWN_BF16 == ATTENTION_OUT_BF16 && HEWN_E4M3 == ATTENTION_OUT_E4M3,
               "out_type has the values of hewn_dtype");

static uint32_t ceil_div(uint64_t a, uint64_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

static uint32_t lesser(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* ---- work items -- */

/* Packing fills the rows of a tile that query tokens alone leave idle. */
static int choose_pack(const struct attention_kernel *k, struct attention_problem *p,
                       hewn_error *err)
{
    if (p->pack > k->tile_rows)
        return hewn_fail(err, HEWN_ERR_LIMIT, "pack: %u is more than the %u rows of a tile",
                         p->pack, k->tile_rows);
    if (p->pack) return HEWN_OK;
    /* the longest of packed sequences must not matter to the others' bits */
    int few = p->invariant || p->q_length < k->tile_rows * k->item_tiles;
    p->pack = few ? lesser(p->group, k->tile_rows) : 1;
    return HEWN_OK;
}

/* The most key blocks that an item visits, when its queries are `tokens` neighbours. */
static uint64_t blocks_of_item(const struct attention_problem *p, uint64_t tokens)
{
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < p->sources; i++) {
        const struct attention_source *s = &p->source[i];
        blocks +=
            ceil_div(lesser(s->length, (uint64_t)s->left + s->right + tokens), ATTENTION_BLOCK);
    }
    return blocks;
}

/* Splits keep idle SMs busy where there are few items, each with many keys. */
static uint32_t choose_splits(const struct attention_problem *p, uint64_t items, uint64_t blocks,
                              uint64_t rows, uint32_t sm_count)
{
    if (p->splits) return p->splits;
    if (p->invariant || p->unnormalised || !items || items >= sm_count || blocks < FEW_BLOCKS ||
        rows > MAX_ROWS)
        return 1;
    uint32_t splits = lesser(sm_count / items, ceil_div(blocks, BLOCKS_OF_A_SPLIT));
    return lesser(splits, MAX_CHOSEN_SPLITS);
}

/* Fixes pack, splits and the counts of the parameters that follow from them. */
static int count_items(hewn_attention_plan *plan, hewn_error *err)
{
    const struct attention_kernel *k = plan->kernel;
    struct attention_problem *p = &plan->problem;
    struct attention_scalars *s = &plan->scalars;
    int status = choose_pack(k, p, err);
    if (status) return status;
    uint32_t tokens = k->tile_rows / p->pack;
    uint64_t rows = p->o.tokens * p->o.planes, items;
    s->pack = p->pack;
    s->tokens = tokens;
    s->q_blocks = rows ? ceil_div(p->q_length, (uint64_t)tokens * k->item_tiles) : 0;
    s->head_blocks = ceil_div(p->group, p->pack);
    if (__builtin_mul_overflow(rows, p->q_heads, &rows)) rows = UINT64_MAX;
    if (__builtin_mul_overflow((uint64_t)s->q_blocks * p->batch,
                               (uint64_t)p->kv_heads * s->head_blocks, &items) ||
        items > MAX_ITEMS / k->v_halves)
        items = UINT64_MAX;
    else
        items *= k->v_halves;
    p->splits = choose_splits(p, items, blocks_of_item(p, (uint64_t)tokens * k->item_tiles), rows,
                              (uint32_t)plan->context->info.sm_count * k->ctas_per_sm);
    if (items > MAX_ITEMS / p->splits)
        return hewn_fail(
            err, HEWN_ERR_LIMIT,
            "q_length, batch, q_heads, splits: %u blocks of %u tokens, %u sequences, %u "
            "KV heads of %u tiles, %u splits: more than %d work items",
            s->q_blocks, tokens * k->item_tiles, p->batch, p->kv_heads, s->head_blocks, p->splits,
            MAX_ITEMS);
    if (p->splits > 1 && rows > MAX_ROWS)
        return hewn_fail(
            err, HEWN_ERR_LIMIT,
            "splits: %u, but %u query heads of %llu rows are more than the %d that are "
            "combined",
            p->splits, p->q_heads, (unsigned long long)(p->o.tokens * p->o.planes), MAX_ROWS);
    s->items = (uint32_t)items * p->splits;
    s->splits = p->splits;
    return HEWN_OK;
}

/* ---- parameters -- */

static void fill_outputs(hewn_attention_plan *plan)
{
    const struct attention_problem *p = &plan->problem;
    struct attention_scalars *s = &plan->scalars;
    uint64_t heads = p->q_heads, tokens = p->q_tokens;
    s->o_token = p->o.token;
    s->o_head = p->o.head;
    s->o_batch = p->q_packed ? 0 : p->o.plane;
    s->lse_token = LOG_BYTES;
    s->lse_head = LOG_BYTES * tokens;
    s->lse_batch = p->q_packed ? 0 : LOG_BYTES * tokens * heads;
    s->out_type = (uint32_t)p->out;
    s->normalise = !p->unnormalised;
    plan->lse_span = LOG_BYTES * tokens * heads * p->o.planes;
}

/* With splits the kernel writes parts, row by row of v_dim, and the combine kernel the outputs. */
static void divert_outputs(hewn_attention_plan *plan)
{
    const struct attention_problem *p = &plan->problem;
    struct attention_scalars *s = &plan->scalars;
    uint64_t heads = p->q_heads, rows = heads * p->q_tokens * p->o.planes;
    uint64_t row_bytes = (uint64_t)LOG_BYTES * p->v_dim;
    plan->merge = (struct attention_combine_scalars){
        .o_token = s->o_token,
        .o_head = s->o_head,
        .o_batch = s->o_batch,
        .lse_token = s->lse_token,
        .lse_head = s->lse_head,
        .lse_batch = s->lse_batch,
        .rows = (uint32_t)rows,
        .q_tokens = p->q_tokens,
        .q_heads = p->q_heads,
        .v_dim = p->v_dim,
        .splits = p->splits,
        .part_type = ATTENTION_OUT_F32,
        .out_type = (uint32_t)p->out,
    };
    s->o_token = heads * row_bytes;
    s->o_head = row_bytes;
    s->o_batch = p->q_packed ? 0 : heads * p->q_tokens * row_bytes;
    s->o_split = rows * row_bytes;
    s->lse_token = heads * LOG_BYTES;
    s->lse_head = LOG_BYTES;
    s->lse_batch = p->q_packed ? 0 : heads * p->q_tokens * LOG_BYTES;
    s->lse_split = rows * LOG_BYTES;
    s->out_type = ATTENTION_OUT_F32;
    plan->merge.part_o_token = s->o_token;
    plan->merge.part_o_head = s->o_head;
    plan->merge.part_o_batch = s->o_batch;
    plan->merge.part_o_split = s->o_split;
    plan->merge.part_lse_token = s->lse_token;
    plan->merge.part_lse_head = s->lse_head;
    plan->merge.part_lse_batch = s->lse_batch;
    plan->merge.part_lse_split = s->lse_split;
    plan->part_o = s->o_split * p->splits;
    plan->workspace = plan->part_o + s->lse_split * p->splits;
}

/* Rows of a box: `most`, or where keys are paged the largest power of two that divides a page. */
static uint32_t box_rows(const struct attention_source *s, uint32_t most)
{
    uint32_t divides = s->page_size & (0U - s->page_size);
    return divides ? lesser(divides, most) : most;
}

static void fill_sources(hewn_attention_plan *plan)
{
    const struct attention_problem *p = &plan->problem;
    const struct attention_kernel *k = plan->kernel;
    const struct attention_source none = {.page_size = 0};
    struct attention_scalars *s = &plan->scalars;
#define SOURCE(n, source)                                \
    do {                                                 \
        const struct attention_source *from = (source);  \
        s->kv_len_##n = from->length;                    \
        s->offsets_##n = from->keys == HEWN_KEYS_PACKED; \
        s->left_##n = from->left;                        \
        s->right_##n = from->right;                      \
        s->page_size_##n = from->page_size;              \
        s->table_width_##n = from->table_width;          \
        s->box_k_##n = box_rows(from, ATTENTION_BLOCK);  \
        s->box_v_##n = box_rows(from, k->box_v);         \
    } while (0)
    SOURCE(0, &p->source[0]);
    SOURCE(1, p->sources > 1 ? &p->source[1] : &none);
#undef SOURCE
}

static void fill_scales(hewn_attention_plan *plan)
{
    const struct attention_problem *p = &plan->problem;
    struct attention_scalars *s = &plan->scalars;
    s->q_scale_step = p->q_scales == HEWN_SCALES_HEAD || p->q_scales == HEWN_SCALES_SEQUENCE_HEAD;
    s->q_scale_kv_step = p->q_scales && !s->q_scale_step;
    s->k_scale_step = p->k_scales != HEWN_SCALES_TENSOR;
    s->v_scale_step = p->v_scales != HEWN_SCALES_TENSOR;
    s->q_scale_batch = p->q_scale_batch;
    s->k_scale_batch = p->k_scale_batch;
    s->v_scale_batch = p->v_scale_batch;
    s->promotion = p->promotion > 0 ? (uint32_t)p->promotion : 0;
    if (p->turned)
        s->promotion =
            (s->promotion ? s->promotion : ATTENTION_NO_PROMOTION) | ATTENTION_V_TRANSPOSED;
}

static void fill_scalars(hewn_attention_plan *plan)
{
    const struct attention_problem *p = &plan->problem;
    struct attention_scalars *s = &plan->scalars;
    s->scale_log2 = p->scale_log2;
    s->cap_log2 = p->cap_log2;
    s->batch = p->batch;
    s->kv_heads = p->kv_heads;
    s->group = p->group;
    s->q_len = p->q_length;
    s->q_tokens = p->q_tokens;
    fill_scales(plan);
    s->sources = p->sources;
    fill_sources(plan);
    fill_outputs(plan);
    if (p->splits > 1) divert_outputs(plan);
}

/* ---- tensor maps -- */

/* What all maps have in common. Tensor maps have no e4m3, so it is copied as bytes. */
static hewn_tensormap_desc map_of(const hewn_attention_plan *plan, const struct attention_tensor *t)
{
    static const int dtypes[] = {[HEWN_F16] = HEWN_TENSORMAP_F16,
                                 [HEWN_BF16] = HEWN_TENSORMAP_BF16,
                                 [HEWN_E4M3] = HEWN_TENSORMAP_U8};
    uint32_t row = plan->kernel->row_bytes;
    return (hewn_tensormap_desc){
        .struct_size = sizeof(hewn_tensormap_desc),
        .dtype = dtypes[plan->problem.in],
        .dim = {t->columns},
        .box = {row / (uint32_t)t->element},
        .element_stride = {1, 1, 1, 1, 1},
        .swizzle = HEWN_TENSORMAP_SWIZZLE_128B,
        .l2 = t->columns * t->element > row ? HEWN_TENSORMAP_L2_256B : HEWN_TENSORMAP_L2_128B,
    };
}

static void describe_q(hewn_attention_plan *plan)
{
    const struct attention_problem *p = &plan->problem;
    const struct attention_tensor *q = &p->q;
    hewn_tensormap_desc *map = &plan->maps[0].desc;
    const uint64_t dim[] = {p->group, p->kv_heads, q->tokens, q->planes};
    const uint64_t stride[] = {q->head, q->head * p->group, q->token, q->plane};
    const uint32_t box[] = {p->pack, 1, plan->scalars.tokens, 1};
    *map = map_of(plan, q);
    map->rank = 5;
    memcpy(&map->dim[1], dim, sizeof dim);
    memcpy(map->stride, stride, sizeof stride);
    memcpy(&map->box[1], box, sizeof box);
}

/* The driver refuses a map without elements. So a tensor without rows is described as one row of Q,
 * from which nothing is ever read. */
static void describe_keys(const hewn_attention_plan *plan, const struct attention_tensor *t,
                          uint32_t rows, hewn_tensormap_desc *map)
{
    const uint64_t dim[] = {t->tokens, t->heads, t->planes}, one[] = {1, 1, 1};
    const uint64_t stride[] = {t->token, t->head, t->plane};
    const uint64_t near[] = {ATTENTION_ALIGN, ATTENTION_ALIGN, ATTENTION_ALIGN};
    *map = map_of(plan, t);
    map->rank = 4;
    if (!t->columns) map->dim[0] = ATTENTION_ALIGN;
    map->box[1] = rows;
    map->box[2] = map->box[3] = 1;
    memcpy(&map->dim[1], t->span ? dim : one, sizeof dim);
    memcpy(map->stride, t->span ? stride : near, sizeof stride);
}

/* The same where boxes are groups of 8 rows, each of all columns of a slot. */
static void describe_octets(const hewn_attention_plan *plan, const struct attention_tensor *t,
                            uint32_t rows, uint32_t columns, hewn_tensormap_desc *map)
{
    const uint64_t chunk = plan->kernel->row_bytes / t->element;
    describe_keys(plan, t, rows, map);
    if (!t->span) return;
    const uint64_t dim[] = {chunk, OCTET, t->columns / chunk * t->heads, t->tokens / OCTET,
                            t->planes};
    const uint64_t stride[] = {t->token, plan->kernel->row_bytes, t->token * OCTET, t->plane};
    const uint32_t box[] = {OCTET, columns / (uint32_t)chunk, rows / OCTET, 1};
    map->rank = 5;
    memcpy(map->dim, dim, sizeof dim);
    memcpy(map->stride, stride, sizeof stride);
    memcpy(&map->box[1], box, sizeof box);
}

static void describe_maps(hewn_attention_plan *plan)
{
    const struct attention_source *s = plan->problem.source;
    const struct attention_scalars *c = &plan->scalars;
    const uint32_t turned = plan->problem.turned ? plan->problem.v_dim : 0; /* rows of V's box */
    describe_q(plan);
    if (plan->octets) {
        describe_octets(plan, &s[0].k, c->box_k_0, plan->problem.qk_dim / 2, &plan->maps[1].desc);
        describe_octets(plan, &s[0].v, c->box_v_0, plan->problem.v_dim, &plan->maps[2].desc);
        if (plan->problem.sources == 1) return;
        describe_octets(plan, &s[1].k, c->box_k_1, plan->problem.qk_dim / 2, &plan->maps[3].desc);
        describe_octets(plan, &s[1].v, c->box_v_1, plan->problem.v_dim, &plan->maps[4].desc);
        return;
    }
    describe_keys(plan, &s[0].k, c->box_k_0, &plan->maps[1].desc);
    describe_keys(plan, &s[0].v, turned ? turned : c->box_v_0, &plan->maps[2].desc);
    if (plan->problem.sources == 1) return;
    describe_keys(plan, &s[1].k, c->box_k_1, &plan->maps[3].desc);
    describe_keys(plan, &s[1].v, turned ? turned : c->box_v_1, &plan->maps[4].desc);
}

static int prepare_maps(hewn_attention_plan *plan, hewn_error *err)
{
    static const char *const names[ATTENTION_MAP_COUNT] = {"q", "source[0].k", "source[0].v",
                                                           "source[1].k", "source[1].v"};
    if (plan->scalars.items == 0) return HEWN_OK; /* no query: a map would be empty */
    return hewn_plan_prepare_maps(plan->context, plan->maps, names, 1 + 2 * plan->problem.sources,
                                  err);
}

/* ---- the launch -- */

hewn_cu_launch_config hewn_attention_combine_config(uint32_t rows)
{
    return (hewn_cu_launch_config){
        .grid_x = ceil_div(rows, ATTENTION_COMBINE_ROWS),
        .grid_y = 1,
        .grid_z = 1,
        .block_x = 32 * ATTENTION_COMBINE_ROWS,
        .block_y = 1,
        .block_z = 1,
    };
}

static void configure(hewn_attention_plan *plan)
{
    const struct attention_kernel *k = plan->kernel;
    uint32_t resident = (uint32_t)plan->context->info.sm_count * k->ctas_per_sm;
    plan->config = (hewn_cu_launch_config){
        .grid_x = lesser(plan->scalars.items, resident),
        .grid_y = 1,
        .grid_z = 1,
        .block_x = k->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = k->dynamic_shared,
    };
    plan->merge_config = hewn_attention_combine_config(plan->merge.rows);
}

static const struct attention_kernel *find_kernel(const char *target, int sums,
                                                  const struct attention_problem *p)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        const struct attention_kernel *k = &kernels[i];
        if (strcmp(k->target, target) == 0 && k->qk_dim == p->qk_dim && k->v_dim == p->v_dim &&
            k->element == p->q.element && k->sums == sums)
            return k;
    }
    return NULL;
}

static void module_name(char name[48], int sums, int octets, const struct attention_problem *p)
{
    snprintf(name, 48, "attention_%s_%u_%u%s", hewn_dtype_name(p->in), p->qk_dim, p->v_dim,
             sums               ? "_sums"
             : octets           ? "_pages"
             : p->cap_log2 == 0 ? ""
                                : "_cap");
}

/* The heads of a token lie side by side, so one stride leads from 64 columns to the next of all
 * heads; and 8 tokens are no further apart than a tensor map can say. */
static int has_octets(const struct attention_tensor *t)
{
    return (t->heads == 1 || t->head == t->columns * t->element) && t->token >> OCTET_STRIDE == 0;
}

/* 256 columns from small pages: a box of 64 columns costs a producer more than its bytes do.
 * Measured, larger pages gain nothing. */
static int choose_octets(const hewn_context *context, const struct attention_problem *p)
{
    if (context->info.cc_major != 9 || p->qk_dim != 256 || p->v_dim != 256 || p->q.element != 2 ||
        p->cap_log2 != 0)
        return 0;
    for (uint32_t i = 0; i < p->sources; i++) {
        const struct attention_source *s = &p->source[i];
        const uint32_t box = box_rows(s, ATTENTION_BLOCK);
        if (!s->page_size || s->pages >= OCTET_PAGES || box < OCTET || box > MOST_OCTETS * OCTET ||
            !has_octets(&s->k) || !has_octets(&s->v))
            return 0;
    }
    return 1;
}

/* Blocks between promotions where the description leaves that to the library. Measured in the test
 * `attention --promotion`: values of V with a mean of their own need it, and 4 blocks are enough. */
enum { PROMOTION = 4, PROMOTION_256 = 1 };

/* Sums of e4m3 are short on compute capability 9.0. There `promotion` becomes what the kernel takes: 0 is never. */
static int choose_promotion(const hewn_context *context, struct attention_problem *p,
                            hewn_error *err)
{
    const int asked = p->promotion, most = p->qk_dim == 256 ? PROMOTION_256 : INT_MAX;
    if (p->in != HEWN_E4M3 || context->info.cc_major != 9) return HEWN_OK;
    if (asked > most)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "promotion: %d, but head dimension 256 has only 1, or never, -1", asked);
    if (asked > 0 && p->cap_log2 != 0)
        return hewn_fail(err, HEWN_ERR_LIMIT, "promotion: %d, but beside softcap only never, -1",
                         asked);
    p->promotion = asked > 0                       ? asked
                   : asked < 0 || p->cap_log2 != 0 ? 0
                   : p->qk_dim == 256              ? PROMOTION_256
                                                   : PROMOTION;
    return HEWN_OK;
}

static int choose_kernel(hewn_attention_plan *plan, const hewn_module **out, const char *against,
                         hewn_error *err)
{
    struct attention_problem *p = &plan->problem;
    const hewn_context *context = plan->context;
    char name[48];
    if (p->kv != p->in)
        return hewn_fail(err, HEWN_ERR_LIMIT, "kv: e4m3 beside %s needs the decode schedule%s%s",
                         hewn_dtype_name(p->in), *against ? ": " : "", against);
    int status = choose_promotion(context, p, err);
    if (status) return status;
    /* V as columns is taken by the kernels that promote: "never" is then a number of blocks. */
    const int short_sums = p->in == HEWN_E4M3 && context->info.cc_major == 9;
    const int sums = short_sums && (p->promotion > 0 || p->turned);
    if (p->turned && (!short_sums || p->cap_log2 != 0))
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "v_layout: 1 is for compute capability 9.0, without softcap");
    plan->octets = choose_octets(context, p);
    module_name(name, sums, plan->octets, p);
    status = hewn_plan_choose(context, hewn_attention_family(), name, out, err);
    if (status) return status;
    plan->kernel = find_kernel((*out)->target, sums, p);
    if (!plan->kernel) {
        hewn_error_set_no_module(context, hewn_attention_family(), name, err);
        return HEWN_ERR_NO_MODULE;
    }
    return hewn_plan_need_maps(context, name, err);
}

int hewn_attention_load_combine(hewn_context *context, const struct hewn_loaded **out,
                                hewn_error *err)
{
    return hewn_plan_load(context, hewn_attention_family(), "attention_combine", 0, out, err);
}

/* The prefill schedule has a kernel for the problem on this device. */
static int has_prefill(const hewn_context *context, const struct attention_problem *p)
{
    char name[48];
    if (p->kv != p->in) return 0;
    module_name(name, 0, 0, p);
    const hewn_module *module = hewn_family_choose(hewn_attention_family(), name,
                                                   context->info.cc_major, context->info.cc_minor);
    return module && find_kernel(module->target, 0, p);
}

static int fill_plan(void *at, hewn_context *context, const void *given, hewn_error *err)
{
    hewn_attention_plan *plan = at;
    const hewn_attention_desc *desc = given;
    const hewn_module *module = NULL;
    const char *against = "";
    plan->context = context;
    int decode = 0, status = hewn_attention_check(desc, &plan->problem, err);
    if (!status)
        status = hewn_decode_wanted(context, &plan->problem, has_prefill(context, &plan->problem),
                                    &decode, &against, err);
    if (!status && decode) return hewn_decode_fill(plan, context, err);
    if (!status) status = choose_kernel(plan, &module, against, err);
    if (!status) status = count_items(plan, err);
    if (!status)
        status =
            hewn_load_kernel(context, module, plan->kernel->dynamic_shared, &plan->loaded, err);
    if (!status && plan->problem.splits > 1)
        status = hewn_attention_load_combine(context, &plan->combine, err);
    if (status) return status;
    fill_scalars(plan);
    describe_maps(plan);
    configure(plan);
    status = hewn_context_push(context, err); /* the driver answers for the current one */
    if (status) return status;
    status = prepare_maps(plan, err);
    hewn_context_pop(context);
    return status;
}

/* ---- the public functions -- */

int hewn_attention_plan_create(hewn_context *context, const hewn_attention_desc *desc,
                               hewn_attention_plan **out, hewn_error *err)
{
    return hewn_plan_create(sizeof(**out), context, HEWN_STRUCT_hewn_attention_desc, desc,
                            fill_plan, out, err);
}

void hewn_attention_plan_destroy(hewn_attention_plan *plan)
{
    free(plan);
}

int hewn_attention_plan_describe(const hewn_attention_plan *plan, hewn_attention_plan_info *out,
                                 hewn_error *err)
{
    if (!plan) return hewn_fail_null(err, "plan");
    const struct attention_kernel *k = plan->kernel;
    const hewn_cu_launch_config *c = &plan->config;
    hewn_attention_plan_info info = {
        .module = plan->loaded->module->name,
        .target = plan->loaded->module->target,
        .origin = plan->loaded->origin,
        .grid = {c->grid_x, c->grid_y, c->grid_z},
        .block = {c->block_x, c->block_y, c->block_z},
        .cluster = {1, 1, 1},
        .dynamic_shared = c->shared_bytes,
        .workspace = plan->workspace,
    };
    if (plan->decode.kernel) {
        hewn_decode_describe(plan, &info);
    } else {
        info.tmem_columns = k->tmem_columns;
        info.tile_rows = k->tile_rows;
        info.item_tiles = k->item_tiles;
        info.block_keys = ATTENTION_BLOCK;
        info.slots = k->slots;
        info.pack = plan->problem.pack;
        info.splits = plan->problem.splits;
        info.items = plan->scalars.items;
        info.schedule = HEWN_SCHEDULE_PREFILL;
        info.parts = plan->problem.splits;
    }
    return hewn_struct_give(HEWN_STRUCT_hewn_attention_plan_info, &info, out, err);
}
