#include "serving_case.h"

#include "lib/harness.h"

#include <stdlib.h>
#include <string.h>

enum {
    LENGTH = 150,
    PAGE = 16,
    WIDTH = (LENGTH + PAGE - 1) / PAGE,
    POOL = BATCH * WIDTH + 3,
    HEADS = 8,
    KV_HEADS = 2,
    DIM = 128,
    MLA_HEADS = 16,
    MLA_ROW = 1152,
    RECORD = 656,
    SPLIT_PAGE =
        (PAGE * 584 + 575) / 576 * 576, /* of records of 584 bytes: rows of 576, then scales */
    LIST = 100,
    INDEX_HEADS = 32,
    INDEX_PAGE = 64,
    INDEX_WIDTH = (LENGTH + INDEX_PAGE - 1) / INDEX_PAGE,
    TOP = 20
};

enum variant { PLAIN, E4M3_KEYS, INVARIANT, PREFILL, RECORDS, LISTS, SPLITS, CACHES };

/* ---- inputs -- */

/* Finite as bf16, as e4m3, and as f32 of moderate size: 16-bit words of 0.5 to 2 and either sign. */
static hewn_deviceptr words(struct gpu *g, size_t bytes, uint64_t seed)
{
    struct rng r = {seed};
    uint32_t *host = gpu_host(bytes);
    for (size_t i = 0; i < bytes / 4; i++)
        host[i] = ((uint32_t)rng_next(&r) & 0x80BF80BFU) | 0x3F003F00U;
    hewn_deviceptr at = gpu_upload(g, host, bytes);
    free(host);
    return at;
}

/* Packed records: words, but for the scales, which are 1/4. */
static hewn_deviceptr records(struct gpu *g, size_t rows)
{
    struct rng r = {5};
    unsigned char *host = gpu_host(rows * RECORD);
    for (size_t i = 0; i < rows * RECORD; i++)
        host[i] = i % 2 ? 0x3F : (unsigned char)(rng_next(&r) & 0x77); /* no NaN */
    for (size_t i = 0; i < rows; i++)
        for (int k = 0; k < 4; k++) memcpy(host + i * RECORD + 512 + 4 * k, &(float){0.25F}, 4);
    hewn_deviceptr at = gpu_upload(g, host, rows * RECORD);
    free(host);
    return at;
}

/* Pages of records of 584 bytes, as above. */
static hewn_deviceptr split_records(struct gpu *g, size_t pages)
{
    struct rng r = {5};
    unsigned char *host = gpu_host(pages * SPLIT_PAGE);
    for (size_t i = 0; i < pages * SPLIT_PAGE; i++)
        host[i] = i % 2 ? 0x3F : (unsigned char)(rng_next(&r) & 0x77);
    for (size_t i = 0; i < pages; i++) memset(host + i * SPLIT_PAGE + PAGE * 576, 125, PAGE * 8);
    hewn_deviceptr at = gpu_upload(g, host, pages * SPLIT_PAGE);
    free(host);
    return at;
}

/* 0, the most, and values between; or a permutation; or numbers of rows. */
static void fill(struct array *a)
{
    struct rng r = {11};
    uint32_t n = BATCH * a->each;
    a->right = gpu_host(n * sizeof *a->right);
    for (uint32_t i = 0; i < n; i++)
        a->right[i] = a->rule == PAGES ? (int32_t)i : (int32_t)rng_below(&r, (uint32_t)a->most + 1);
    for (uint32_t i = n; a->rule == PAGES && i > 1; i--) {
        uint32_t j = rng_below(&r, i);
        int32_t page = a->right[i - 1];
        a->right[i - 1] = a->right[j], a->right[j] = page;
    }
    if (a->rule != PAGES) a->right[n - 1] = a->most;
    if (a->rule == CLAMPED) a->right[0] = 0;
}

static void add_array(struct gpu *g, struct subject *s, int i, const char *name, enum rule rule,
                      int32_t most, uint32_t each)
{
    struct array *a = &s->array[i];
    a->name = name, a->rule = rule, a->most = most, a->each = each;
    fill(a);
    if (!guarded_new(&g->d, &a->on_device, BATCH * each * sizeof(int32_t), 0xFF))
        gpu_die("memory", "none");
}

/* ---- attention -- */

static int open_attention(struct gpu *g, const struct kind *k, struct subject *s, hewn_error *err)
{
    size_t element = k->variant == E4M3_KEYS ? 1 : 2;
    size_t keys = (size_t)POOL * PAGE * KV_HEADS * DIM * element;
    size_t rows = (size_t)BATCH * (size_t)k->queries * HEADS;
    for (int i = 0; i < 2; i++) s->q[i] = words(g, rows * DIM * 2, 20 + (uint64_t)i);
    s->keys = words(g, keys, 3);
    s->values = words(g, keys, 4);
    add_array(g, s, 0, "lengths", CLAMPED, LENGTH, 1);
    add_array(g, s, 1, "table", PAGES, POOL - 1, WIDTH);
    s->out_bytes = rows * DIM * 4, s->lse_bytes = rows * 4;
    s->floats = s->fills = 1;
    const hewn_attention_source source = {.struct_size = sizeof source,
                                          .keys = HEWN_KEYS_LENGTHS,
                                          .causal = 1,
                                          .length = LENGTH,
                                          .page_size = PAGE,
                                          .pages = POOL,
                                          .table_width = WIDTH};
    const hewn_attention_desc desc = {.struct_size = sizeof desc,
                                      .batch = BATCH,
                                      .q_heads = HEADS,
                                      .kv_heads = KV_HEADS,
                                      .qk_dim = DIM,
                                      .q_length = k->queries,
                                      .in = HEWN_BF16,
                                      .out = HEWN_F32,
                                      .source = {&source},
                                      .schedule = k->variant == PREFILL ? HEWN_SCHEDULE_PREFILL
                                                                        : HEWN_SCHEDULE_DECODE,
                                      .invariant = k->variant == INVARIANT,
                                      .kv = k->variant == E4M3_KEYS ? HEWN_E4M3 : 0};
    hewn_attention_plan *plan = NULL;
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    int status = hewn_attention_plan_create(g->d.context, &desc, &plan, err);
    s->plan = plan;
    if (!status) status = hewn_attention_plan_describe(plan, &info, err);
    s->workspace = info.workspace;
    return status;
}

static int run_attention(const struct subject *s, const struct place *p, hewn_stream stream,
                         hewn_error *err)
{
    const hewn_attention_source_args source = {.struct_size = sizeof source,
                                               .k = s->keys,
                                               .v = s->values,
                                               .lengths = s->array[0].on_device.data,
                                               .table = s->array[1].on_device.data};
    const hewn_attention_args a = {.struct_size = sizeof a,
                                   .q = p->q,
                                   .o = p->out.data,
                                   .lse = p->lse.data,
                                   .workspace = s->workspace ? p->workspace.data : 0,
                                   .source = {&source}};
    return hewn_attention_plan_run(s->plan, &a, stream, err);
}

static void destroy_attention(struct subject *s)
{
    hewn_attention_plan_destroy(s->plan);
}

/* ---- MLA -- */

/* Of two caches the second is the first, with lists and pages of its own. */
static int by_lists(const struct kind *k)
{
    return k->variant == LISTS || k->variant == CACHES;
}

static int mla_cache(const struct kind *k)
{
    return k->variant == RECORDS                          ? HEWN_MLA_CACHE_656
           : k->variant == SPLITS || k->variant == CACHES ? HEWN_MLA_CACHE_584
                                                          : HEWN_MLA_CACHE_PLAIN;
}

static hewn_deviceptr mla_keys(struct gpu *g, int cache)
{
    if (cache == HEWN_MLA_CACHE_656) return records(g, (size_t)POOL * PAGE);
    if (cache == HEWN_MLA_CACHE_584) return split_records(g, POOL);
    return words(g, (size_t)POOL * PAGE * MLA_ROW, 3);
}

static int open_mla(struct gpu *g, const struct kind *k, struct subject *s, hewn_error *err)
{
    const int lists = by_lists(k), two = k->variant == CACHES;
    size_t rows = (size_t)BATCH * (size_t)k->queries * MLA_HEADS;
    for (int i = 0; i < 2; i++) s->q[i] = words(g, rows * MLA_ROW, 20 + (uint64_t)i);
    s->keys = mla_keys(g, mla_cache(k));
    if (two) add_array(g, s, 2, "extra_lists", HOLES, POOL * PAGE - 1, (uint32_t)k->queries * LIST);
    add_array(g, s, 0, "lengths", CLAMPED, lists ? LIST : LENGTH, 1);
    if (lists)
        add_array(g, s, 1, "lists", HOLES, POOL * PAGE - 1, (uint32_t)k->queries * LIST);
    else
        add_array(g, s, 1, "table", PAGES, POOL - 1, WIDTH);
    s->out_bytes = rows * 512 * 4, s->lse_bytes = rows * 4;
    s->floats = s->fills = 1;
    const hewn_mla_desc desc = {.struct_size = sizeof desc,
                                .batch = BATCH,
                                .q_heads = MLA_HEADS,
                                .q_length = k->queries,
                                .length = lists ? 0 : LENGTH,
                                .page_size = PAGE,
                                .pages = POOL,
                                .table_width = lists ? 0 : WIDTH,
                                .in = HEWN_BF16,
                                .out = HEWN_F32,
                                .cache = mla_cache(k),
                                .lengths = 1,
                                .causal = !lists,
                                .list_width = lists ? LIST : 0,
                                .extra_width = two ? LIST : 0,
                                .extra_page_size = two ? PAGE : 0,
                                .extra_pages = two ? POOL : 0,
                                .extra_lengths = two,
                                .extra_cache = two ? mla_cache(k) : 0};
    hewn_mla_plan *plan = NULL;
    hewn_mla_plan_info info = {.struct_size = sizeof info};
    int status = hewn_mla_plan_create(g->d.context, &desc, &plan, err);
    s->plan = plan;
    if (!status) status = hewn_mla_plan_describe(plan, &info, err);
    s->workspace = info.workspace;
    return status;
}

static int run_mla(const struct subject *s, const struct place *p, hewn_stream stream,
                   hewn_error *err)
{
    hewn_mla_args a = {.struct_size = sizeof a,
                       .q = p->q,
                       .kv = s->keys,
                       .o = p->out.data,
                       .lse = p->lse.data,
                       .lengths = s->array[0].on_device.data,
                       .workspace = s->workspace ? p->workspace.data : 0};
    *(by_lists(s->kind) ? &a.lists : &a.table) = s->array[1].on_device.data;
    if (s->kind->variant == CACHES) {
        a.extra_kv = s->keys;
        a.extra_lists = s->array[2].on_device.data;
        a.extra_lengths = a.lengths;
    }
    return hewn_mla_plan_run(s->plan, &a, stream, err);
}

static void destroy_mla(struct subject *s)
{
    hewn_mla_plan_destroy(s->plan);
}

/* ---- indexer and top-k -- */

static int open_indexer(struct gpu *g, const struct kind *k, struct subject *s, hewn_error *err)
{
    const int64_t pool = BATCH * INDEX_WIDTH + 3;
    size_t rows = (size_t)BATCH * (size_t)k->queries;
    for (int i = 0; i < 2; i++) s->q[i] = words(g, rows * INDEX_HEADS * DIM, 20 + (uint64_t)i);
    s->weights = words(g, rows * INDEX_HEADS * 4, 6);
    s->keys = words(g, (size_t)pool * INDEX_PAGE * (DIM + 4), 3);
    add_array(g, s, 0, "ends", CLAMPED, LENGTH, (uint32_t)k->queries);
    add_array(g, s, 1, "table", PAGES, (int32_t)pool - 1, INDEX_WIDTH);
    s->out_bytes = rows * LENGTH * 4;
    const hewn_indexer_desc desc = {.struct_size = sizeof desc,
                                    .batch = BATCH,
                                    .queries = k->queries,
                                    .heads = INDEX_HEADS,
                                    .dim = DIM,
                                    .length = LENGTH,
                                    .page_size = INDEX_PAGE,
                                    .pages = pool,
                                    .table_width = INDEX_WIDTH,
                                    .in = HEWN_E4M3,
                                    .scales = HEWN_INDEXER_SCALES_IN_PAGES,
                                    .ends = 1};
    hewn_indexer_plan *plan = NULL;
    int status = hewn_indexer_plan_create(g->d.context, &desc, &plan, err);
    s->plan = plan;
    return status;
}

static int run_indexer(const struct subject *s, const struct place *p, hewn_stream stream,
                       hewn_error *err)
{
    const hewn_indexer_args a = {.struct_size = sizeof a,
                                 .q = p->q,
                                 .k = s->keys,
                                 .weights = s->weights,
                                 .out = p->out.data,
                                 .ends = s->array[0].on_device.data,
                                 .table = s->array[1].on_device.data};
    return hewn_indexer_plan_run(s->plan, &a, stream, err);
}

static void destroy_indexer(struct subject *s)
{
    hewn_indexer_plan_destroy(s->plan);
}

static int open_topk(struct gpu *g, const struct kind *k, struct subject *s, hewn_error *err)
{
    size_t rows = (size_t)BATCH * (size_t)k->queries;
    for (int i = 0; i < 2; i++) s->q[i] = words(g, rows * LENGTH * 4, 20 + (uint64_t)i);
    add_array(g, s, 0, "ends", CLAMPED, LENGTH, (uint32_t)k->queries);
    add_array(g, s, 1, "table", PAGES, POOL - 1, WIDTH);
    s->out_bytes = rows * TOP * 4;
    s->fills = 1;
    const hewn_topk_desc desc = {.struct_size = sizeof desc,
                                 .batch = BATCH,
                                 .queries = k->queries,
                                 .columns = LENGTH,
                                 .k = TOP,
                                 .page_size = PAGE,
                                 .pages = POOL,
                                 .table_width = WIDTH,
                                 .ends = 1};
    hewn_topk_plan *plan = NULL;
    int status = hewn_topk_plan_create(g->d.context, &desc, &plan, err);
    s->plan = plan;
    return status;
}

static int run_topk(const struct subject *s, const struct place *p, hewn_stream stream,
                    hewn_error *err)
{
    const hewn_topk_args a = {.struct_size = sizeof a,
                              .values = p->q,
                              .indices = p->out.data,
                              .ends = s->array[0].on_device.data,
                              .table = s->array[1].on_device.data};
    return hewn_topk_plan_run(s->plan, &a, stream, err);
}

static void destroy_topk(struct subject *s)
{
    hewn_topk_plan_destroy(s->plan);
}

/* ---- the list -- */

const struct kind serving_kinds[] = {
    {"decode", open_attention, run_attention, destroy_attention, 1, PLAIN},
    {"decode, 3 queries, e4m3 keys", open_attention, run_attention, destroy_attention, 3,
     E4M3_KEYS},
    {"decode, invariant", open_attention, run_attention, destroy_attention, 1, INVARIANT},
    {"prefill", open_attention, run_attention, destroy_attention, 70, PREFILL},
    {"MLA", open_mla, run_mla, destroy_mla, 2, PLAIN},
    {"MLA, records", open_mla, run_mla, destroy_mla, 1, RECORDS},
    {"MLA, lists", open_mla, run_mla, destroy_mla, 2, LISTS},
    {"MLA, records of 584 bytes", open_mla, run_mla, destroy_mla, 2, SPLITS},
    {"MLA, two caches", open_mla, run_mla, destroy_mla, 2, CACHES},
    {"indexer", open_indexer, run_indexer, destroy_indexer, 2, PLAIN},
    {"top-k", open_topk, run_topk, destroy_topk, 2, PLAIN},
};
const int serving_kind_count = sizeof serving_kinds / sizeof *serving_kinds;

void serving_close(struct gpu *g, struct subject *s)
{
    const hewn_deviceptr inputs[] = {s->q[0], s->q[1], s->keys, s->values, s->weights};
    if (s->plan) s->kind->destroy(s);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i]) g->d.mem_free(inputs[i]);
    for (int i = 0; i < ARRAYS; i++) {
        free(s->array[i].right);
        guarded_free(&g->d, &s->array[i].on_device);
    }
}
