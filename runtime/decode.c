/*
 * Plans of the decode schedule: when it is taken, its kernel, and everything except the addresses.
 */
#include "attention.h"

#include "error.h"
#include "plan.h"

#include "../ptx/sm_100f/decode.plan.h"
#include "../ptx/sm_90a/decode.plan.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_ROWS = 64,      /* query rows of a KV head: with more, prefill's wide tiles are faster */
    LEAST_BOX = 16,      /* rows: smaller boxes are slower than rows fetched one by one */
    FAR_KEYS = 8192,     /* of a sequence, */
    FAR_HEADS = 12,      /* and KV heads of all sequences: far; */
    LARGE_BLOCKS = 4096, /* blocks of all heads: large; from which on `fast_rows` holds */
    MOST_PAGED = 64,     /* rows of a box in a page: larger ones load more behind the last key, */
    MOST_PLAIN = 32,     /* and without pages; smaller ones are slower (LEDGER.md) */
    LEAST_JOINED = 3,    /* blocks an SM, where KV heads share a tile */
    WIDE_PAGE = 32,      /* keys: pages from which few long tiles are joined, too */
    COMBINE_CTAS = 396,  /* of the combine kernel, that a device holds at a time: 3 an SM */
    SEARCHED_CTAS = 4 * COMBINE_CTAS /* fewer CTAs that find nothing cost less than a search */
};

/* Which pages of at least LEAST_BOX keys are fetched faster by rows, where keys are many: those of LEAST_BOX; all;
 * all of long sequences. */
enum { ROWS_OF_NONE, ROWS_OF_SMALL, ROWS_OF_ALL, ROWS_OF_FAR };
#define DECODE_FAST_ROWS(qk, h, e)                                                         \
    ((e) == 1                                   ? (qk) == 128 ? ROWS_OF_FAR : ROWS_OF_NONE \
     : (qk) == 64 * (h)                         ? ROWS_OF_ALL                              \
     : (h) == 1 && ((qk) == 128 || (qk) == 192) ? ROWS_OF_SMALL                            \
                                                : ROWS_OF_NONE)

static const struct decode_kernel kernels[] = {
#define KERNEL(P, t, qk, v, h, e, n)          \
    {.target = #t,                            \
     .qk_dim = qk,                            \
     .v_dim = v,                              \
     .element = e,                            \
     .rows = n,                               \
     .heads = h,                              \
     .step_keys = DECODE_BLOCK,               \
     .clusters = (h) == 1,                    \
     .fast_rows = DECODE_FAST_ROWS(qk, h, e), \
     .grouped_rows = 1,                       \
     .slots = P##_DECODE_SLOTS(qk, e, n),     \
     .threads = P##_DECODE_THREADS,           \
     .row_bytes = P##_DECODE_ROW(qk, e),      \
     .dynamic_shared = P##_DECODE_DYNAMIC_SHARED(qk, e, n)},
    SM90A_DECODE_VARIANTS(KERNEL)
#undef KERNEL
#define KERNEL(P, t, qk, v, e, n) DECODE_SM100F_KERNEL(P, t, qk, v, e, n, 0),
        SM100F_DECODE_VARIANTS(KERNEL)
#undef KERNEL
};

_Static_assert(offsetof(struct decode_scalars, v_scale_step) + 4 + DECODE_MAP_COUNT * MAP_BYTES ==
                   DECODE_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");
_Static_assert(offsetof(struct split_combine_scalars, search) + 4 == SPLIT_COMBINE_PARAM_BYTES,
               "the scalars are not laid out as the combine kernel's parameters");
_Static_assert(DECODE_UNBOUNDED == ATTENTION_UNBOUNDED, "one limit of positions");

static uint32_t ceil_div(uint64_t a, uint64_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

static uint32_t lesser(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* ---- the choice -- */

/* Whether KV heads lie side by side in sets of `heads`, of one scale, and there are blocks enough of a
 * set for all SMs: of tiles of one block one. Of few long tiles, heads of 64 columns of 16 bits are as
 * fast or faster one by one, except from wide pages: LEDGER.md. */
static int joined(const hewn_context *context, const struct attention_problem *p, uint32_t heads)
{
    const struct attention_source *s = &p->source[0];
    uint64_t row = p->qk_dim * s->k.element, blocks = ceil_div(s->length, DECODE_BLOCK);
    uint64_t planes = (uint64_t)p->batch * p->kv_heads, sms = (uint64_t)context->info.sm_count;
    int wide = s->page_size >= WIDE_PAGE && blocks * planes >= LARGE_BLOCKS;
    if (row == SWIZZLE_BYTES && planes * 2 < sms && !wide) return 0;
    return !p->pack && !p->invariant && !p->k_scales && !p->v_scales && p->kv_heads % heads == 0 &&
           s->k.head == row && s->v.head == row &&
           blocks * planes >= heads * (blocks > 1 ? LEAST_JOINED : 1) * sms;
}

/* The first variant whose rows hold those of a KV head, else the one with the most. */
static const struct decode_kernel *find_kernel(const hewn_context *context,
                                               const struct attention_problem *p)
{
    const hewn_device_info *device = &context->info;
    const struct decode_kernel *found = NULL;
    uint64_t rows = (uint64_t)p->group * p->q_length;
    for (const struct decode_kernel *k = kernels; k < kernels + sizeof kernels / sizeof *k; k++) {
        if (k->qk_dim != p->qk_dim * k->heads || k->v_dim != p->v_dim * k->heads ||
            p->in == HEWN_E4M3 || k->element != hewn_dtype_size(p->kv) ||
            !hewn_target_runs_on(k->target, device->cc_major, device->cc_minor))
            continue;
        int fits = k->rows >= rows * k->heads;
        if (k->heads > 1 && !(fits && joined(context, p, k->heads))) continue;
        found = k;
        if (fits) break;
    }
    return found;
}

static const hewn_module *find_module(const hewn_context *context, const char *name)
{
    return hewn_family_choose(hewn_decode_family(), name, context->info.cc_major,
                              context->info.cc_minor);
}

static void module_name(char name[48], const struct attention_problem *p,
                        const struct decode_kernel *k)
{
    snprintf(name, 48, "decode_%s_%u_%u_%u%s%s%.u", hewn_dtype_name(p->in), k->qk_dim, k->v_dim,
             k->rows, k->element == 1 ? "_e4m3" : "", k->heads > 1 ? "_x" : "",
             k->heads > 1 ? k->heads : 0); /* %.u: nothing for 0 */
}

/* The least key blocks and rows of a tile, once the variant is known. */
static void count_rows(const struct attention_problem *p, const struct decode_kernel *k,
                       struct decode_scalars *s)
{
    s->pack = p->pack ? p->pack : lesser(p->group, k->rows);
    s->tokens = lesser(k->rows / s->pack, p->q_length);
    if (!s->tokens) s->tokens = 1;
    s->head_blocks = ceil_div(p->group, s->pack);
}

/* Whether other bytes stand between a head's rows. */
static int scattered(const struct attention_tensor *t)
{
    return t->token != t->columns * t->element;
}

/* Blocks of all KV heads at most, each head counted on its own. */
static uint64_t head_blocks(const struct attention_problem *p, const struct decode_kernel *k)
{
    return (uint64_t)p->batch * p->kv_heads * k->heads *
           ceil_div(p->source[0].length, DECODE_BLOCK);
}

/* Whether rows are fetched faster one by one than by boxes in pages: LEDGER.md. */
static int faster_by_rows(const struct attention_problem *p, const struct decode_kernel *k,
                          const struct decode_scalars *s)
{
    const struct attention_source *t = &p->source[0];
    int large = head_blocks(p, k) >= LARGE_BLOCKS, far = t->length >= FAR_KEYS;
    if (k->fast_rows == ROWS_OF_FAR) return large && far;
    if (k->fast_rows == ROWS_OF_ALL) return large;
    return k->fast_rows && s->box == LEAST_BOX &&
           (large || (far && (uint64_t)p->batch * p->kv_heads >= FAR_HEADS));
}

/* How keys are fetched. Of 96 columns, half of every other box is empty: boxes are faster only where
 * rows follow each other, without pages. */
static void choose_boxes(const struct attention_problem *p, const struct decode_kernel *k,
                         struct decode_scalars *s)
{
    const struct attention_source *t = &p->source[0];
    uint32_t page = t->page_size, divides = page & (0U - page);
    uint32_t most = lesser(page ? MOST_PAGED : MOST_PLAIN, k->step_keys);
    s->box = page ? lesser(divides, most) : most;
    s->gather = k->rows_only || (page && (s->box < LEAST_BOX || faster_by_rows(p, k, s))) ||
                (k->qk_dim == 96 && (page || scattered(&t->k) || scattered(&t->v)));
}

/* Key blocks of a sequence at most: those that any of its queries can see. */
static uint64_t most_blocks(const struct attention_problem *p)
{
    const struct attention_source *source = &p->source[0];
    uint64_t window = (uint64_t)source->left + source->right + p->q_length;
    uint64_t blocks = ceil_div(source->length, DECODE_BLOCK);
    /* a window may begin and end within a block */
    uint64_t seen = window / DECODE_BLOCK + 2;
    return source->windows || blocks < seen ? blocks : seen;
}

/* Units of all tiles at most, or UINT64_MAX. */
static uint64_t count_units(const struct attention_problem *p, const struct decode_scalars *s,
                            uint64_t *tiles)
{
    uint64_t units;
    if (__builtin_mul_overflow((uint64_t)p->batch * p->kv_heads,
                               (uint64_t)s->head_blocks *
                                   (p->q_tokens ? ceil_div(p->q_length, s->tokens) : 0),
                               tiles) ||
        __builtin_mul_overflow(*tiles, most_blocks(p) + SPLIT_OVERHEAD, &units))
        return UINT64_MAX;
    return units;
}

static const char too_many[] = "more blocks of keys than the kernel can count";

/* What stands against the schedule: NULL, or a sentence. Of a batch's size only too_many depends. */
static const char *refusal(const hewn_context *context, const struct attention_problem *p)
{
    const struct decode_kernel *k = find_kernel(context, p);
    char name[48];
    struct decode_scalars s;
    uint64_t tiles;
    if (p->sources > 1) return "two sources need the prefill schedule";
    if (p->unnormalised) return "unnormalised results need the prefill schedule";
    if (p->splits) return "the device chooses the splits of the decode schedule: they must be 0";
    if (!k) return "the decode schedule has no kernel for these head dimensions and types";
    if (p->pack > k->rows) return "pack is more than the rows of a tile";
    module_name(name, p, k);
    if (!find_module(context, name)) return "the decode schedule is not there for this device";
    count_rows(p, k, &s);
    if (count_units(p, &s, &tiles) > SPLIT_MAX_UNITS) return too_many;
    return NULL;
}

int hewn_decode_wanted(const hewn_context *context, const struct attention_problem *p,
                       int has_prefill, int *wanted, const char **why, hewn_error *err)
{
    const char *against = p->schedule == HEWN_SCHEDULE_PREFILL ? "" : refusal(context, p);
    *why = against ? against : "";
    int few = (uint64_t)p->group * p->q_length <= MOST_ROWS && !p->pack;
    *wanted = 0;
    if (p->schedule == HEWN_SCHEDULE_DECODE && against)
        return hewn_fail(err, HEWN_ERR_LIMIT, "schedule: %d (decode): %s", p->schedule, against);
    if (p->tree && against)
        return hewn_fail(err, HEWN_ERR_LIMIT, "tree: 1 needs the decode schedule%s%s",
                         *against ? ": " : "", against);
    if (p->invariant && against == too_many && (few || !has_prefill))
        return hewn_fail(err, HEWN_ERR_LIMIT, "invariant: 1 needs the decode schedule: %s",
                         against);
    *wanted = !against && (few || !has_prefill || p->tree || p->schedule == HEWN_SCHEDULE_DECODE);
    return HEWN_OK;
}

/* ---- parameters -- */

/* Of the workspace: records of tiles, slots for their parts. */
struct parts {
    uint64_t records, slots;
};

static void fill_scalars(hewn_attention_plan *plan)
{
    const struct attention_problem *p = &plan->problem;
    const struct attention_source *source = &p->source[0];
    struct decode_scalars *s = &plan->decode.scalars;
    uint64_t heads = p->q_heads, tokens = p->q_tokens;
    s->scale_log2 = p->scale_log2;
    s->cap_log2 = p->cap_log2;
    s->k_scale_step = p->k_scales != HEWN_SCALES_TENSOR; /* none a sequence: attention_check.c */
    s->v_scale_step = p->v_scales != HEWN_SCALES_TENSOR;
    s->batch = p->batch;
    s->kv_heads = p->kv_heads;
    s->group = p->group;
    s->q_len = p->q_length;
    s->kv_len = source->length;
    s->offsets = source->keys == HEWN_KEYS_PACKED;
    s->left = source->left;
    s->right = source->right;
    s->page_size = source->page_size;
    s->pages = source->pages;
    s->table_width = source->table_width;
    s->out_type = (uint32_t)p->out;
    s->k_token = source->k.token;
    s->k_head = source->k.head;
    s->k_plane = source->k.plane;
    s->v_token = source->v.token;
    s->v_head = source->v.head;
    s->v_plane = source->v.plane;
    s->o_token = p->o.token;
    s->o_head = p->o.head;
    s->o_batch = p->q_packed ? 0 : p->o.plane;
    s->lse_token = sizeof(float);
    s->lse_head = sizeof(float) * tokens;
    s->lse_batch = p->q_packed ? 0 : sizeof(float) * tokens * heads;
    plan->lse_span = sizeof(float) * tokens * heads * p->o.planes;
}

/* Parts of a tile at most, where they begin at multiples of DECODE_CHUNK blocks. */
static uint32_t most_chunks(const struct attention_problem *p)
{
    uint64_t all = ceil_div(ceil_div(p->source[0].length, DECODE_BLOCK), DECODE_CHUNK);
    uint64_t seen = most_blocks(p) / DECODE_CHUNK + 2; /* a window may begin and end within one */
    return lesser(all, seen);
}

/* Records and slots: one and two a CTA, or at fixed counts of keys one a tile and part. */
static int count_parts(const struct attention_problem *p, const struct decode_scalars *s,
                       uint64_t ctas, struct parts *out, hewn_error *err)
{
    uint64_t rows = s->tokens * s->pack, most = INT32_MAX / rows; /* a row's number is 32-bit */
    *out = (struct parts){.records = ctas, .slots = 2 * ctas};
    if (!s->chunk) return HEWN_OK;
    out->records = (uint64_t)s->tiles * p->batch;
    if (__builtin_mul_overflow(out->records, s->chunks, &out->slots)) out->slots = UINT64_MAX;
    if (out->slots <= most) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_LIMIT,
                     "invariant: %llu tiles of %u parts of %llu rows are more than %d rows",
                     (unsigned long long)out->records, s->chunks, (unsigned long long)rows,
                     INT32_MAX);
}

static void fill_parts(hewn_attention_plan *plan, const struct parts *parts)
{
    const struct decode_scalars *s = &plan->decode.scalars;
    struct split_combine_scalars *m = &plan->decode.merge;
    uint64_t rows = s->tokens * s->pack;
    uint64_t part_o = parts->slots * rows * plan->problem.v_dim * sizeof(float);
    uint64_t part_lse = (parts->slots * rows * sizeof(float) + ATTENTION_ALIGN - 1) /
                        ATTENTION_ALIGN * ATTENTION_ALIGN;
    plan->decode.part_lse = part_o;
    plan->decode.records = part_o + part_lse;
    plan->workspace = plan->decode.records + parts->records * SPLIT_RECORD_BYTES;
    m->o_token = s->o_token;
    m->o_head = s->o_head;
    m->o_batch = s->o_batch;
    m->lse_token = s->lse_token;
    m->lse_head = s->lse_head;
    m->lse_batch = s->lse_batch;
    m->rows = (uint32_t)rows;
    m->pack = s->pack;
    m->part_step = s->chunk ? 1 : 2 * s->groups;
    m->record_step = s->chunk ? s->chunks : 2;
    m->first_slot = !s->chunk;
    m->q_len = s->q_len;
    m->tokens = s->tokens;
    m->row_tiles = s->row_tiles;
    m->tiles = s->tiles;
    m->v_dim = plan->problem.v_dim;
    m->out_type = s->out_type;
    /* few rows a CTA while the device holds all CTAs at once that may have parts */
    uint64_t split = lesser(parts->records, plan->decode.tiles);
    m->step = 1;
    while (m->step < SPLIT_COMBINE_WARPS && split * ceil_div(rows, m->step) > COMBINE_CTAS)
        m->step *= 2;
    if (!s->chunk && split < parts->records && parts->records <= 32 * SPLIT_COMBINE_WARPS &&
        parts->records * ceil_div(rows, m->step) >= SEARCHED_CTAS)
        m->search = (uint32_t)parts->records;
    plan->decode.merge_config = (hewn_cu_launch_config){
        .grid_x = (uint32_t)(m->search ? split : parts->records),
        .grid_y = ceil_div(rows, m->step),
        .grid_z = 1,
        .block_x = 32 * SPLIT_COMBINE_WARPS,
        .block_y = 1,
        .block_z = 1,
        .attributes = plan->decode.attributes,
        .attribute_count = plan->context->driver->fn.launch_kernel_ex != NULL,
    };
}

/* Tensor maps have no e4m3, so it is copied as bytes. */
static hewn_tensormap_desc map_of(const struct attention_tensor *t, int dtype, uint32_t row_bytes)
{
    static const int dtypes[] = {[HEWN_F16] = HEWN_TENSORMAP_F16,
                                 [HEWN_BF16] = HEWN_TENSORMAP_BF16,
                                 [HEWN_E4M3] = HEWN_TENSORMAP_U8};
    return (hewn_tensormap_desc){
        .struct_size = sizeof(hewn_tensormap_desc),
        .dtype = dtypes[dtype],
        .dim = {t->columns},
        .box = {row_bytes / (uint32_t)t->element},
        .element_stride = {1, 1, 1, 1, 1},
        .swizzle =
            row_bytes == SWIZZLE_BYTES ? HEWN_TENSORMAP_SWIZZLE_128B : HEWN_TENSORMAP_SWIZZLE_64B,
        /* 256 is slower by 3 to 7 %, and 128 where a row is half of it: LEDGER.md */
        .l2 = t->columns * t->element > 64 ? HEWN_TENSORMAP_L2_128B : HEWN_TENSORMAP_L2_NONE,
    };
}

static void describe_q(hewn_attention_plan *plan)
{
    const struct attention_problem *p = &plan->problem;
    const struct decode_scalars *s = &plan->decode.scalars;
    const struct attention_tensor *q = &p->q;
    hewn_tensormap_desc *map = &plan->decode.maps[0].desc;
    *map = map_of(q, p->in, SWIZZLE_BYTES);
    map->rank = 5;
    map->dim[1] = p->group;
    map->dim[2] = p->kv_heads;
    map->dim[3] = q->tokens;
    map->dim[4] = q->planes;
    map->stride[0] = q->head;
    map->stride[1] = q->head * p->group;
    map->stride[2] = q->token;
    map->stride[3] = q->plane;
    map->box[1] = s->pack / plan->decode.kernel->heads;
    map->box[2] = map->box[4] = 1;
    map->box[3] = s->tokens;
}

/* The driver refuses a map without elements: a tensor without rows is described as one row. */
static void describe_keys(hewn_attention_plan *plan, const struct attention_tensor *t,
                          hewn_tensormap_desc *map)
{
    *map = map_of(t, plan->problem.kv, plan->decode.kernel->row_bytes);
    map->rank = 4;
    map->box[1] = plan->decode.scalars.box;
    map->box[2] = map->box[3] = 1;
    map->dim[1] = map->dim[2] = map->dim[3] = 1;
    map->stride[0] = map->stride[1] = map->stride[2] = ATTENTION_ALIGN;
    if (!t->span) return;
    map->dim[1] = t->tokens;
    map->dim[2] = t->heads;
    map->dim[3] = t->planes;
    map->stride[0] = t->token;
    map->stride[1] = t->head;
    map->stride[2] = t->plane;
}

static int prepare_maps(hewn_attention_plan *plan, hewn_error *err)
{
    static const char *const names[DECODE_MAPS_MOST] = {"q", "source[0].k", "source[0].v",
                                                        "source[0].k", "source[0].v"};
    const struct attention_source *source = &plan->problem.source[0];
    const uint32_t tail = plan->decode.kernel->tail;
    struct hewn_map *maps = plan->decode.maps;
    plan->decode.map_count = tail ? DECODE_MAPS_MOST : DECODE_MAP_COUNT;
    if (!plan->decode.tiles) return HEWN_OK;
    describe_q(plan);
    for (size_t i = 1; i < plan->decode.map_count; i++) {
        describe_keys(plan, i % 2 ? &source->k : &source->v, &maps[i].desc);
        if (i >= DECODE_MAP_COUNT) maps[i].desc.box[0] = tail;
    }
    return hewn_plan_prepare_maps(plan->context, maps, names, plan->decode.map_count, err);
}

/* ---- the plan -- */

static int load(hewn_attention_plan *plan, hewn_context *context, hewn_error *err)
{
    const struct decode_kernel *k = plan->decode.kernel;
    char name[48];
    module_name(name, &plan->problem, k);
    int status = hewn_plan_need_maps(context, name, err);
    return status ? status
                  : hewn_plan_load(context, hewn_decode_family(), name, k->dynamic_shared,
                                   &plan->loaded, err);
}

/* CTAs, and the groups that they are divided into: one a KV head and head block, where that leaves few
 * SMs without work. Not where rows are fetched one by one: measured, that is then slower, except on sm_90a from
 * pages of at least LEAST_BOX keys, and rows of 96 bytes, of which most begin or end within a line of memory. */
static uint32_t count_ctas(const struct attention_problem *p, const struct decode_kernel *k,
                           struct decode_scalars *s, uint64_t units, uint32_t sms)
{
    uint64_t planes = (uint64_t)p->kv_heads * s->head_blocks;
    int pages = p->source[0].page_size && s->box >= LEAST_BOX && k->grouped_rows &&
                head_blocks(p, k) >= LARGE_BLOCKS;
    int apart = s->gather && !pages && (k->rows_only || p->kv != HEWN_E4M3 || k->qk_dim != 96);
    s->groups = 1;
    if (!apart && planes <= sms && sms / planes * planes * 16 >= (uint64_t)sms * 15)
        s->groups = (uint32_t)planes;
    return lesser(units, sms / s->groups * s->groups);
}

static void choose_chunks(const struct attention_problem *p, struct decode_scalars *s)
{
    if (!p->invariant) return;
    s->chunk = DECODE_CHUNK;
    s->chunks = most_chunks(p);
    s->row_tiles = ceil_div(p->q_length, s->tokens);
    s->tiles = p->kv_heads * s->head_blocks * s->row_tiles;
}

/* The workspace and the combine kernel, where CTAs may share a tile through memory. */
static int prepare_parts(hewn_attention_plan *plan, hewn_context *context, hewn_error *err)
{
    const struct decode_scalars *s = &plan->decode.scalars;
    uint64_t most = s->chunk ? s->chunks : most_blocks(&plan->problem);
    struct parts parts;
    int status = count_parts(&plan->problem, s, plan->config.grid_x, &parts, err);
    if (status || plan->decode.cluster || !plan->decode.tiles || most <= 1) return status;
    status = hewn_plan_load(context, hewn_decode_family(), "decode_combine", 0,
                            &plan->decode.combine, err);
    if (!status) fill_parts(plan, &parts);
    return status;
}

/* Heads side by side as one that is as wide as they are. */
static void join_heads(struct attention_tensor *t, uint32_t heads)
{
    t->columns *= heads;
    t->heads /= heads;
    t->head *= heads;
}

int hewn_decode_fill(hewn_attention_plan *plan, hewn_context *context, hewn_error *err)
{
    struct decode_plan *d = &plan->decode;
    d->kernel = find_kernel(context, &plan->problem);
    if (d->kernel->heads > 1) { /* the problem as such a kernel sees it */
        join_heads(&plan->problem.source[0].k, d->kernel->heads);
        join_heads(&plan->problem.source[0].v, d->kernel->heads);
        plan->problem.kv_heads /= d->kernel->heads;
        plan->problem.group *= d->kernel->heads;
    }
    count_rows(&plan->problem, d->kernel, &d->scalars);
    choose_boxes(&plan->problem, d->kernel, &d->scalars);
    uint64_t units = count_units(&plan->problem, &d->scalars, &d->tiles);
    plan->config = (hewn_cu_launch_config){
        .grid_x = count_ctas(&plan->problem, d->kernel, &d->scalars, units,
                             (uint32_t)context->info.sm_count),
        .grid_y = 1,
        .grid_z = 1,
        .block_x = d->kernel->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = d->kernel->dynamic_shared,
        .attributes = d->attributes,
        .attribute_count = context->driver->fn.launch_kernel_ex != NULL,
    };
    d->attributes[0].id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION;
    d->attributes[0].value.flag = 1;
    choose_chunks(&plan->problem, &d->scalars);
    int status = load(plan, context, err);
    if (!status)
        status = hewn_context_push(context, err); /* the driver answers for the current one */
    if (status) return status;
    hewn_decode_choose_cluster(plan, most_blocks(&plan->problem));
    status = prepare_maps(plan, err);
    hewn_context_pop(context);
    fill_scalars(plan);
    return status ? status : prepare_parts(plan, context, err);
}

void hewn_decode_describe(const hewn_attention_plan *plan, hewn_attention_plan_info *info)
{
    const struct decode_plan *d = &plan->decode;
    info->tile_rows = d->kernel->rows;
    info->item_tiles = 1;
    info->block_keys = DECODE_BLOCK;
    info->slots = d->kernel->slots;
    info->pack = d->scalars.pack;
    info->splits = !d->combine && d->cluster <= 1;
    info->cluster[0] = d->cluster ? d->cluster : 1;
    info->items = d->tiles;
    info->schedule = HEWN_SCHEDULE_DECODE;
    info->gather = d->scalars.gather != 0;
    info->part_keys = plan->problem.invariant ? d->scalars.chunk * DECODE_BLOCK : 0;
    info->parts = d->scalars.chunk ? d->scalars.chunks : d->cluster;
}
