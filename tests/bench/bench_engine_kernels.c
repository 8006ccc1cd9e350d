/*
 * The engine's kernels on a GPU: microseconds of a launch in a graph of several, TB/s of the bytes that must move.
 *
 *   bench_engine_kernels
 *
 * Shapes are those of Llama 3.1 8B: hidden 4096, 32 heads of Q and 8 of K and V, 14336 columns between the two
 * products, 128,256 tokens. Buffers of several launches lie behind one another, so that L2 has none of a large one.
 */
#include "gpu.h"

#include "../../tools/engine/kernels.h"
#include "lib/harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAUNCHES = 24, ROTATED = 4, BLOCK = 1 << 22, HIDDEN = 4096, HEADS = 48, DIM = 128 };
enum { BETWEEN = 14336, VOCAB = 128256, SLOTS = 256, PAGE = 16, PAGES = 1024 };

struct bench {
    struct gpu g;
    struct engine_kernels k;
    uint16_t *block; /* bf16, or halves of f32: numbers in -1 .. 1, some of them small */
    hewn_error err;
};

static void report(const char *name, int64_t rows, double seconds, double bytes)
{
    printf("| %s | %lld | %.2f | %.2f |\n", name, (long long)rows, seconds * 1e6,
           bytes / seconds * 1e-12);
    fflush(stdout);
}

static hewn_deviceptr numbers(struct bench *b, uint64_t bytes)
{
    return gpu_repeat(&b->g, b->block, BLOCK, bytes);
}

static void need(struct bench *b, int status, const char *what)
{
    if (status) gpu_die(what, b->err.message);
}

static void bench_norm(struct bench *b, int64_t rows)
{
    const uint64_t bytes = 2 * (uint64_t)rows * HIDDEN;
    const hewn_deviceptr x = numbers(b, ROTATED * bytes), y = numbers(b, ROTATED * bytes);
    const hewn_deviceptr out = numbers(b, ROTATED * bytes), w = numbers(b, 2 * HIDDEN);
    gpu_time_begin(&b->g);
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        const uint64_t at = i % ROTATED * bytes;
        const struct engine_norm a = {.x = x + at,
                                      .y = y + at,
                                      .h = x + at,
                                      .w = w,
                                      .out = out + at,
                                      .rows = rows,
                                      .x_rows = rows,
                                      .hidden = HIDDEN,
                                      .eps = 1e-5};
        need(b, engine_norm(&b->k, &a, b->g.stream, &b->err), "norm");
    }
    report("norm: sum, RMSNorm", rows, gpu_time_end(&b->g, LAUNCHES), 4.0 * (double)bytes);
    const hewn_deviceptr list[] = {x, y, out, w};
    for (int i = 0; i < 4; i++) gpu_need(b->g.d.mem_free(list[i]), "free");
}

static void bench_rope(struct bench *b, int64_t rows)
{
    const uint64_t bytes = 2 * (uint64_t)rows * HEADS * DIM, pool = 2 * PAGES * PAGE * 8 * DIM;
    const hewn_deviceptr qkv = numbers(b, ROTATED * bytes), k = numbers(b, pool),
                         v = numbers(b, pool);
    const hewn_deviceptr rotation = numbers(b, 4 * PAGES * PAGE * DIM);
    int32_t *list = gpu_host(4 * (uint64_t)(rows + PAGES));
    for (int64_t i = 0; i < rows; i++) list[i] = (int32_t)(i % (PAGES * PAGE));
    const hewn_deviceptr positions = gpu_upload(&b->g, list, 4 * (uint64_t)rows);
    for (int64_t i = 0; i < rows; i++) list[i] = 0;
    const hewn_deviceptr sequences = gpu_upload(&b->g, list, 4 * (uint64_t)rows);
    for (int i = 0; i < PAGES; i++) list[i] = PAGES - 1 - i;
    const hewn_deviceptr table = gpu_upload(&b->g, list, 4 * PAGES);
    free(list);
    gpu_time_begin(&b->g);
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        const struct engine_rope a = {.cache = {.rotation = rotation,
                                                .k = k,
                                                .v = v,
                                                .table = table,
                                                .positions_most = PAGES * PAGE,
                                                .pages = PAGES,
                                                .page_size = PAGE,
                                                .table_width = PAGES,
                                                .page = PAGE * 8 * DIM,
                                                .head = DIM,
                                                .token = 8 * DIM},
                                      .qkv = qkv + i % ROTATED * bytes,
                                      .positions = positions,
                                      .sequences = sequences,
                                      .rows = rows,
                                      .q_heads = 32,
                                      .kv_heads = 8,
                                      .dim = DIM,
                                      .sequences_most = 1};
        need(b, engine_rope(&b->k, &a, b->g.stream, &b->err), "rope");
    }
    report("rope, K and V into pages", rows, gpu_time_end(&b->g, LAUNCHES), 2.0 * (double)bytes);
    const hewn_deviceptr all[] = {qkv, k, v, rotation, positions, sequences, table};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_need(b->g.d.mem_free(all[i]), "free");
}

/* Of decode at KEYS keys a row: engine_attend, or engine_rope and hewn_attention. A launch has a cache of its own. */
enum { KEYS = 4096, KEPT = 64, LONG = KEYS / KEPT + 1 };

struct attend_bench {
    hewn_deviceptr qkv, rotation, positions, lengths, table, o, workspace, counters, k, v;
    uint64_t pool; /* bytes of a launch's K, or V */
    int64_t rows;
};

static struct engine_cache cache_of(const struct attend_bench *c, uint64_t i)
{
    return (struct engine_cache){.rotation = c->rotation,
                                 .k = c->k + i * c->pool,
                                 .v = c->v + i * c->pool,
                                 .table = c->table,
                                 .positions_most = KEYS + KEPT,
                                 .pages = c->rows * LONG,
                                 .page_size = KEPT,
                                 .table_width = LONG,
                                 .page = KEPT * 8 * DIM,
                                 .head = DIM,
                                 .token = 8 * DIM};
}

static void run_attend(struct bench *b, const struct attend_bench *c, uint64_t i)
{
    const struct engine_attend a = {.cache = cache_of(c, i),
                                    .qkv = c->qkv,
                                    .positions = c->positions,
                                    .o = c->o,
                                    .workspace = c->workspace,
                                    .counters = c->counters,
                                    .rows = c->rows,
                                    .q_heads = 32,
                                    .kv_heads = 8,
                                    .dim = DIM,
                                    .columns = engine_attend_columns(b->g.d.info.sm_count, 8),
                                    .scale = 0.08838834764831845};
    need(b, engine_attend(&b->k, &a, b->g.stream, &b->err), "attend");
}

static void run_apart(struct bench *b, const struct attend_bench *c, uint64_t i,
                      const hewn_attention_plan *plan)
{
    const struct engine_rope rope = {.cache = cache_of(c, i),
                                     .qkv = c->qkv,
                                     .positions = c->positions,
                                     .rows = c->rows,
                                     .q_heads = 32,
                                     .kv_heads = 8,
                                     .dim = DIM,
                                     .sequences_most = c->rows};
    const hewn_attention_source_args source = {.struct_size = sizeof source,
                                               .k = rope.cache.k,
                                               .v = rope.cache.v,
                                               .lengths = c->lengths,
                                               .table = c->table};
    const hewn_attention_args args = {.struct_size = sizeof args,
                                      .q = c->qkv,
                                      .o = c->o,
                                      .workspace = c->workspace,
                                      .source = {&source}};
    need(b, engine_rope(&b->k, &rope, b->g.stream, &b->err), "rope");
    need(b, hewn_attention_plan_run(plan, &args, b->g.stream, &b->err), "attention");
}

static hewn_attention_plan *plan_apart(struct bench *b, int64_t rows, uint64_t *workspace)
{
    const hewn_attention_source source = {.struct_size = sizeof source,
                                          .keys = HEWN_KEYS_LENGTHS,
                                          .causal = 1,
                                          .length = KEYS + KEPT,
                                          .page_size = KEPT,
                                          .pages = rows * LONG,
                                          .table_width = LONG};
    const hewn_attention_desc desc = {.struct_size = sizeof desc,
                                      .batch = rows,
                                      .q_heads = 32,
                                      .kv_heads = 8,
                                      .qk_dim = DIM,
                                      .q_length = 1,
                                      .q_token = HEADS * DIM,
                                      .q_head = DIM,
                                      .q_batch = HEADS * DIM,
                                      .in = HEWN_BF16,
                                      .out = HEWN_BF16,
                                      .layout = HEWN_LAYOUT_BSHD,
                                      .source = {&source}};
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    hewn_attention_plan *plan = NULL;
    need(b, hewn_attention_plan_create(b->g.d.context, &desc, &plan, &b->err), "plan");
    need(b, hewn_attention_plan_describe(plan, &info, &b->err), "plan");
    *workspace = info.workspace;
    return plan;
}

static void bench_attend(struct bench *b, int64_t rows)
{
    const uint64_t launches = rows > 1 ? 8 : LAUNCHES, width = (uint64_t)rows * LONG;
    const int64_t columns = engine_attend_columns(b->g.d.info.sm_count, 8);
    const double bytes = (double)rows * KEYS * 4 * 8 * DIM;
    struct attend_bench c = {.rows = rows, .pool = 2 * width * KEPT * 8 * DIM};
    uint64_t apart;
    hewn_attention_plan *plan = plan_apart(b, rows, &apart);
    const uint64_t own = engine_attend_workspace(columns, 8, DIM);
    int32_t *list = gpu_host(4 * width + 4 * 8 * (uint64_t)rows);
    for (uint64_t i = 0; i < 8 * (uint64_t)rows; i++) list[i] = 0;
    c.counters = gpu_upload(&b->g, list, 4 * 8 * (uint64_t)rows);
    for (int64_t i = 0; i < rows; i++) list[i] = KEYS - 1;
    c.positions = gpu_upload(&b->g, list, 4 * (uint64_t)rows);
    for (int64_t i = 0; i < rows; i++) list[i] = KEYS;
    c.lengths = gpu_upload(&b->g, list, 4 * (uint64_t)rows);
    for (uint64_t i = 0; i < width; i++) list[i] = (int32_t)(width - 1 - i);
    c.table = gpu_upload(&b->g, list, 4 * width);
    free(list);
    c.qkv = numbers(b, 2 * (uint64_t)rows * HEADS * DIM);
    c.o = numbers(b, 2 * (uint64_t)rows * 32 * DIM);
    c.rotation = numbers(b, 4 * (uint64_t)((KEYS + KEPT) * DIM));
    c.workspace = numbers(b, own > apart ? own : apart);
    c.k = numbers(b, launches * c.pool);
    c.v = numbers(b, launches * c.pool);
    gpu_time_begin(&b->g);
    for (uint64_t i = 0; i < launches; i++) run_attend(b, &c, i);
    report("attend, 4,096 keys a row", rows, gpu_time_end(&b->g, launches), bytes);
    gpu_time_begin(&b->g);
    for (uint64_t i = 0; i < launches; i++) run_apart(b, &c, i, plan);
    report("rope and hewn_attention", rows, gpu_time_end(&b->g, launches), bytes);
    hewn_attention_plan_destroy(plan);
    const hewn_deviceptr all[] = {c.qkv, c.o,       c.rotation, c.workspace, c.k,
                                  c.v,   c.lengths, c.counters, c.positions, c.table};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_need(b->g.d.mem_free(all[i]), "free");
}

static void bench_swiglu(struct bench *b, int64_t rows)
{
    const uint64_t bytes = 2 * (uint64_t)rows * BETWEEN;
    const hewn_deviceptr in = numbers(b, 2 * ROTATED * bytes), out = numbers(b, ROTATED * bytes);
    gpu_time_begin(&b->g);
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        const hewn_deviceptr gate = in + i % ROTATED * 2 * bytes;
        const struct engine_swiglu a = {.gate = gate,
                                        .up = gate + 2 * BETWEEN,
                                        .rows = rows,
                                        .out = out + i % ROTATED * bytes,
                                        .n = BETWEEN,
                                        .row = 2 * BETWEEN};
        need(b, engine_swiglu(&b->k, &a, b->g.stream, &b->err), "swiglu");
    }
    report("swiglu", rows, gpu_time_end(&b->g, LAUNCHES), 3.0 * (double)bytes);
    gpu_need(b->g.d.mem_free(in), "free");
    gpu_need(b->g.d.mem_free(out), "free");
}

/* Of the weights of four products in turn, all larger than L2 together; one row's shape each. */
static void bench_project(struct bench *b, const struct engine_project *shape, int64_t rows)
{
    const uint64_t bytes = (uint64_t)(shape->n * shape->k), sets = (300U << 20) / bytes + 1;
    const hewn_deviceptr x = numbers(b, 2 * (uint64_t)(rows * shape->k)),
                         w = numbers(b, 2 * BETWEEN);
    const hewn_deviceptr matrix = numbers(b, sets * bytes),
                         d = numbers(b, 2 * (uint64_t)(rows * shape->n));
    const hewn_deviceptr scales = numbers(b, 4 * (uint64_t)shape->n);
    char name[64];
    gpu_time_begin(&b->g);
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        struct engine_project a = *shape;
        a.x = x;
        a.w = shape->w ? w : 0;
        a.b = matrix + i % sets * bytes;
        a.b_scales = scales;
        a.c = shape->c ? d : 0;
        a.d = d;
        a.rows = rows;
        need(b, engine_project(&b->k, &a, b->g.stream, &b->err), "project");
    }
    (void)snprintf(name, sizeof name, "project: %lld x %lld", (long long)shape->n,
                   (long long)shape->k);
    report(name, rows, gpu_time_end(&b->g, LAUNCHES), (double)bytes);
    const hewn_deviceptr list[] = {x, w, matrix, d, scales};
    for (int i = 0; i < 5; i++) gpu_need(b->g.d.mem_free(list[i]), "free");
}

static const struct {
    const char *name;
    int type;
    struct engine_sampling s;
} drawings[] = {
    {"sample, the first, f32", HEWN_F32, {0, 1, 0, 0, 1}},
    {"sample, the first, bf16", HEWN_BF16, {0, 1, 0, 0, 1}},
    {"sample, all, f32", HEWN_F32, {1, 1, 0, 0, 1}},
    {"sample, top_p 0.9, f32", HEWN_F32, {1, 0.9F, 0, 0, 1}},
    {"sample, top_p 0.9, temperature 0.1, f32", HEWN_F32, {0.1F, 0.9F, 0, 0, 1}},
    {"sample, top_k 50, top_p 0.9, f32", HEWN_F32, {1, 0.9F, 50, 0, 1}},
    {"sample, top_k 50, top_p 0.9, bf16", HEWN_BF16, {1, 0.9F, 50, 0, 1}},
};

static void bench_sample(struct bench *b, size_t which, int64_t rows)
{
    const uint64_t bytes = (drawings[which].type == HEWN_F32 ? 4U : 2U) * (uint64_t)rows * VOCAB;
    const hewn_deviceptr logits = numbers(b, ROTATED * bytes);
    int32_t zeros[2 * SLOTS] = {0};
    struct engine_sampling settings[SLOTS];
    for (int i = 0; i < SLOTS; i++) settings[i] = drawings[which].s;
    const struct engine_slots slots = {.positions = gpu_upload(&b->g, zeros, 4 * SLOTS),
                                       .sampled = gpu_upload(&b->g, zeros, 4 * SLOTS),
                                       .settings = gpu_upload(&b->g, settings, sizeof settings),
                                       .slots = SLOTS};
    gpu_time_begin(&b->g);
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        const struct engine_sample a = {.logits = logits + i % ROTATED * bytes,
                                        .slots = &slots,
                                        .rows = rows,
                                        .vocab = VOCAB,
                                        .type = drawings[which].type};
        need(b, engine_sample(&b->k, &a, b->g.stream, &b->err), "sample");
    }
    report(drawings[which].name, rows, gpu_time_end(&b->g, LAUNCHES), (double)bytes);
    const hewn_deviceptr all[] = {logits, slots.positions, slots.sampled, slots.settings};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_need(b->g.d.mem_free(all[i]), "free");
}

int main(void)
{
    static const int64_t rows[] = {1, 8, 64, 512, 8192};
    /* QKV behind a norm, the output onto the stream, gate and up, down. */
    static const struct engine_project products[] = {
        {.n = HEADS * DIM, .k = HIDDEN, .w = 1, .ctas = 132, .eps = 1e-5},
        {.n = HIDDEN, .k = HIDDEN, .c = 1, .ctas = 132},
        {.n = 2 * BETWEEN, .k = HIDDEN, .w = 1, .gated = true, .ctas = 132, .eps = 1e-5},
        {.n = HIDDEN, .k = BETWEEN, .c = 1, .ctas = 132},
    };
    static struct bench b;
    struct rng r = {1};
    gpu_open(&b.g);
    b.block = gpu_host(BLOCK);
    for (int i = 0; i < BLOCK / 2; i++) b.block[i] = double_to_bf16((double)rng_unit(&r) * 4);
    need(&b, engine_kernels_open(&b.k, b.g.d.context, &b.err), "open");
    printf("| kernel | rows | us | TB/s |\n|---|---|---|---|\n");
    for (int i = 0; i < 5; i++) bench_norm(&b, rows[i]);
    for (int i = 0; i < 5; i++) bench_rope(&b, rows[i]);
    for (int64_t i = 1; i <= 16; i *= 2) bench_attend(&b, i);
    for (int i = 0; i < 5; i++) bench_swiglu(&b, rows[i]);
    for (size_t which = 0; which < 4; which++)
        for (int i = 0; i < 2; i++) bench_project(&b, &products[which], rows[i]);
    for (size_t which = 0; which < sizeof drawings / sizeof *drawings; which++)
        for (int64_t i = 1; i <= 64; i *= 2) bench_sample(&b, which, i);
    free(b.block);
    gpu_close(&b.g);
    return 0;
}
