/*
 * bench_mla: MLA on a GPU: decode by block tables, decode and prefill by lists, plain rows and packed
 * records. Some rows of each result are compared with float64 first. Times are of CUDA graphs; where the
 * launches of a graph would find their keys in L2, they go round among copies of the cache.
 *
 *   bench_mla               all shapes
 *   bench_mla --only TEXT   those whose name has the text
 *   bench_mla --pool GB     the device memory for caches (18)
 *
 * A line: microseconds; TB/s of the rows that are read, once for each query that has a list, else once
 * for each sequence; TFLOP/s without padding; and the two floors in microseconds: those bytes at the rate
 * that the fastest library reaches, and the products, padded to tiles of 64 heads, at 34 cycles a key and
 * tile on all SMs (records and at most 16 rows: 17 cycles). Prefill reads most of its rows out of L2, so the
 * first is no floor there. Of records also: cycles of an SM for each key and tile, at 1.83 GHz, and how many
 * of them the conversion of its e4m3 takes of each of the four partitions, by the kernel's worksheet.
 */
#include "bench/gpu.h"
#include "lib/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QK = 576, V = 512, PAGE = 64 };
/* Kinds of rows, and where a record has what it has. Of 584 bytes the scales stand behind the rows of a page. */
enum { PLAIN, WIDE, SPLIT, KINDS };
enum { RECORD = 656, SCALES_AT = 512, ROTARY_AT = 528 };
enum { SPLIT_RECORD = 584, SPLIT_ROW = 576, SPLIT_VECTOR = 448, SPLIT_SCALES = 8 };
enum { BLOCK_ROWS = 1 << 15, SAMPLES = 6 };
static const uint64_t l2_span = UINT64_C(400) << 20; /* rows of all copies together, at least */
static const double floor_rate = 4.45e12;            /* bytes/s */
static const double clock_rate = 1.83e9;             /* Hz */

/* Cycles for a key of a tile: the products, of an SM; the conversion, of a partition. */
static const struct cycles {
    double products, conversion;
} gather_cycles[KINDS] = {{34, 0}, {34, 13.6}, {32, 10.3}}, /* mla_gather.ptx and mla.ptx */
    few_cycles[KINDS] = {{34, 0}, {17, 10}, {16, 8.8}};     /* mla_few.ptx */

struct shape {
    const char *name;
    int batch, heads, queries;
    int length; /* keys of a sequence; with lists: rows of the cache */
    int list;   /* width; 0: no lists */
    int kind;
};

static const struct shape shapes[] = {
    {"dense bf16 h8", 128, 8, 1, 4096, 0, 0},
    {"dense bf16 h16", 128, 16, 1, 4096, 0, 0},
    {"dense bf16 h64", 128, 64, 1, 4096, 0, 0},
    {"dense bf16 h128", 128, 128, 1, 4096, 0, 0},
    {"dense bf16 h128 q2", 128, 128, 2, 4096, 0, 0},
    {"dense 656 h8", 256, 8, 1, 4096, 0, 1},
    {"dense 656 h16", 256, 16, 1, 4096, 0, 1},
    {"dense 656 h64", 128, 64, 1, 4096, 0, 1},
    {"dense 656 h128", 128, 128, 1, 4096, 0, 1},
    {"lists 656 h16 q1", 128, 16, 1, 1 << 20, 2048, 1},
    {"lists 656 h16 b512", 512, 16, 1, 1 << 20, 2048, 1},
    {"lists 656 h8 b512", 512, 8, 1, 1 << 20, 2048, 1},
    {"lists 656 h64 q1", 128, 64, 1, 1 << 20, 2048, 1},
    {"lists 656 h64 q2", 128, 64, 2, 1 << 20, 2048, 1},
    {"lists 656 h128 q1", 128, 128, 1, 1 << 20, 2048, 1},
    {"lists 656 h128 q2", 128, 128, 2, 1 << 20, 2048, 1},
    {"lists 656 h128 b2", 2, 128, 1, 1 << 20, 2048, 1},
    {"lists bf16 h16 q1", 128, 16, 1, 1 << 20, 2048, 0},
    {"lists bf16 h16 b256", 256, 16, 1, 1 << 20, 2048, 0},
    {"lists bf16 h64 q1", 128, 64, 1, 1 << 20, 2048, 0},
    {"lists bf16 h128 q2", 128, 128, 2, 1 << 20, 2048, 0},
    {"prefill bf16 h16", 1, 16, 4096, 1 << 16, 2048, 0},
    {"prefill bf16 h64", 1, 64, 4096, 1 << 16, 2048, 0},
    {"prefill bf16 h128", 1, 128, 4096, 1 << 16, 2048, 0},
    {"prefill bf16 h128 8k", 1, 128, 4096, 1 << 13, 2048, 0},
    {"prefill 656 h128", 1, 128, 4096, 1 << 16, 2048, 1},
    {"dense 584 h16", 256, 16, 1, 4096, 0, 2},
    {"dense 584 h64", 128, 64, 1, 4096, 0, 2},
    {"dense 584 h128", 128, 128, 1, 4096, 0, 2},
    {"lists 584 h16 q1", 128, 16, 1, 1 << 20, 2048, 2},
    {"lists 584 h16 b512", 512, 16, 1, 1 << 20, 2048, 2},
    {"lists 584 h64 q1", 128, 64, 1, 1 << 20, 2048, 2},
    {"lists 584 h128 q2", 128, 128, 2, 1 << 20, 2048, 2},
};

struct work {
    const struct shape *shape;
    hewn_mla_plan *plan;
    int32_t *index; /* the lists, or the block table */
    uint16_t *q;
    uint64_t q_count, o_count, index_count, keys, bytes, span, copies; /* span: of a copy */
    uint64_t workspace_bytes;
    hewn_deviceptr q_at, o_at, index_at, workspace;
};

static unsigned char *blocks[KINDS]; /* on the host: what the pools are made of */

static uint64_t row_bytes(int kind)
{
    return kind == PLAIN ? 2 * QK : kind == WIDE ? RECORD : SPLIT_RECORD;
}

static int columns(int kind)
{
    return kind == SPLIT ? V : QK;
}

/* About unit variance. */
static uint16_t value(struct rng *r)
{
    return double_to_bf16((double)(rng_unit(r) + rng_unit(r) + rng_unit(r)));
}

/* Bytes of e4m3, all below 256, and behind them, `rotary` bytes from the first on, elements of bf16. */
static void fill_vector(unsigned char *row, int count, int rotary, struct rng *r)
{
    for (int i = 0; i < count; i++) {
        unsigned code = rng_below(r, 256);
        row[i] = (unsigned char)((code & 127) > 0x70 ? code & 0x8F : code);
    }
    for (int i = 0; i < QK - V; i++) {
        uint16_t x = value(r);
        memcpy(row + rotary + 2 * i, &x, sizeof x);
    }
}

/* Scales are 2^-6. */
static void fill_row(unsigned char *rows, uint64_t i, int kind, struct rng *r)
{
    const float scale = 0x1p-6F;
    unsigned char *row = rows + i * row_bytes(kind), *page = rows + i / PAGE * PAGE * SPLIT_RECORD;
    for (int k = 0; kind == PLAIN && k < QK; k++) {
        uint16_t x = value(r);
        memcpy(row + 2 * k, &x, sizeof x);
    }
    if (kind == WIDE) {
        fill_vector(row, V, ROTARY_AT, r);
        for (int k = 0; k < 4; k++) memcpy(row + SCALES_AT + 4 * k, &scale, sizeof scale);
    }
    if (kind == SPLIT) {
        fill_vector(page + i % PAGE * SPLIT_ROW, SPLIT_VECTOR, SPLIT_VECTOR, r);
        memset(page + PAGE * SPLIT_ROW + i % PAGE * SPLIT_SCALES, 127 - 6, SPLIT_SCALES);
    }
}

/* The pool is made of copies of one block of rows. */
static void fill_pool(struct gpu *g, int kind)
{
    struct rng r = {7};
    uint64_t block = row_bytes(kind) * BLOCK_ROWS;
    unsigned char *rows = gpu_host(block);
    for (uint64_t i = 0; i < BLOCK_ROWS; i++) fill_row(rows, i, kind, &r);
    blocks[kind] = rows;
    g->pool[kind] = gpu_repeat(g, rows, block, g->pool_bytes);
}

/* ---- a shape -- */

/* A permutation of the pool's pages, or lists of rows at random. */
static void fill_index(struct work *w, struct rng *r)
{
    const struct shape *s = w->shape;
    uint64_t n = w->index_count;
    w->index = gpu_host(n * sizeof *w->index);
    for (uint64_t i = 0; i < n; i++)
        w->index[i] = s->list ? (int32_t)rng_below(r, (uint32_t)s->length) : (int32_t)i;
    for (uint64_t i = n; !s->list && i > 1; i--) {
        uint64_t j = rng_below(r, (uint32_t)i);
        int32_t page = w->index[i - 1];
        w->index[i - 1] = w->index[j], w->index[j] = page;
    }
}

static bool open_work(struct gpu *g, struct work *w, const struct shape *s)
{
    struct rng r = {11};
    hewn_error err = {0};
    hewn_mla_plan_info info = {.struct_size = sizeof info};
    uint64_t queries = (uint64_t)s->batch * (uint64_t)s->queries;
    uint64_t pages = (uint64_t)s->batch * (uint64_t)s->length / PAGE;
    uint64_t rows = s->list ? (uint64_t)s->length : pages * PAGE;
    memset(w, 0, sizeof *w);
    w->shape = s;
    w->keys = s->list ? queries * (uint64_t)s->list : rows;
    w->bytes = w->keys * row_bytes(s->kind);
    w->span = rows * row_bytes(s->kind);
    if (w->span > g->pool_bytes) return false;
    w->copies = s->queries > 16 ? 1 : 1 + l2_span / w->bytes; /* prefill works out of L2 */
    if (w->copies > g->pool_bytes / w->span) w->copies = g->pool_bytes / w->span;
    w->q_count = queries * (uint64_t)s->heads * (uint64_t)columns(s->kind);
    w->o_count = queries * (uint64_t)s->heads * V;
    w->index_count = s->list ? w->keys : pages;
    int paged = !s->list || s->kind == SPLIT;
    hewn_mla_desc d = {.struct_size = sizeof d,
                       .batch = s->batch,
                       .q_heads = s->heads,
                       .q_length = s->queries,
                       .length = s->list && paged ? 0 : s->length,
                       .page_size = paged ? PAGE : 0,
                       .pages = paged ? (int64_t)(rows / PAGE) : 0,
                       .table_width = s->list ? 0 : s->length / PAGE,
                       .in = HEWN_BF16,
                       .out = HEWN_BF16,
                       .kv_batch = s->kind == SPLIT ? PAGE * SPLIT_RECORD : 0,
                       .cache = s->kind == WIDE    ? HEWN_MLA_CACHE_656
                                : s->kind == SPLIT ? HEWN_MLA_CACHE_584
                                                   : HEWN_MLA_CACHE_PLAIN,
                       .list_width = s->list};
    if (hewn_mla_plan_create(g->d.context, &d, &w->plan, &err)) gpu_die("plan", err.message);
    gpu_need(hewn_mla_plan_describe(w->plan, &info, NULL), "describe");
    fill_index(w, &r);
    w->q = gpu_host(w->q_count * 2);
    for (uint64_t i = 0; i < w->q_count; i++) w->q[i] = value(&r);
    w->q_at = gpu_allocate(g, w->q_count * 2);
    gpu_need(g->d.to_device(w->q_at, w->q, w->q_count * 2), "copy");
    w->index_at = gpu_allocate(g, w->index_count * 4);
    gpu_need(g->d.to_device(w->index_at, w->index, w->index_count * 4), "copy");
    w->o_at = gpu_allocate(g, w->o_count * 2);
    w->workspace_bytes = info.workspace;
    w->workspace = gpu_allocate(g, info.workspace);
    return true;
}

static void close_work(struct gpu *g, struct work *w)
{
    const hewn_deviceptr list[] = {w->q_at, w->o_at, w->index_at, w->workspace};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) g->d.mem_free(list[i]);
    hewn_mla_plan_destroy(w->plan);
    free(w->index), free(w->q);
}

static void run(struct gpu *g, struct work *w, uint64_t copy)
{
    hewn_error err = {0};
    hewn_mla_args a = {.struct_size = sizeof a,
                       .q = w->q_at,
                       .kv = g->pool[w->shape->kind] + copy * w->span,
                       .o = w->o_at,
                       .workspace = w->workspace_bytes ? w->workspace : 0};
    *(w->shape->list ? &a.lists : &a.table) = w->index_at;
    if (hewn_mla_plan_run(w->plan, &a, g->stream, &err)) gpu_die("run", err.message);
}

static double e4m3_value(unsigned char code)
{
    int exponent = code >> 3 & 15;
    double m = (exponent ? 8 : 0) + (code & 7);
    return ldexp(code & 128 ? -m : m, (exponent ? exponent : 1) - 10);
}

/* The elements of a row of the first copy. Scales are powers of two, so a record has no rounding. */
static void decode_row(int kind, int64_t number, double out[QK])
{
    uint64_t i = (uint64_t)(number % BLOCK_ROWS);
    const unsigned char *at = blocks[kind] + i * row_bytes(kind);
    if (kind == SPLIT) at = blocks[kind] + i / PAGE * PAGE * SPLIT_RECORD + i % PAGE * SPLIT_ROW;
    int vector = kind == PLAIN ? 0 : kind == WIDE ? V : SPLIT_VECTOR;
    memset(out, 0, QK * sizeof *out);
    int rotary = kind == PLAIN ? 0 : kind == WIDE ? ROTARY_AT : SPLIT_VECTOR;
    for (int k = 0; k < vector; k++) out[k] = ldexp(e4m3_value(at[k]), -6);
    for (int k = vector; k < columns(kind); k++) {
        uint16_t x;
        memcpy(&x, at + rotary + 2 * (k - vector), sizeof x);
        out[k] = bf16_to_double(x);
    }
}

/* One row of O in float64. Query i of several sees only keys up to its own, but not `causal`: all. */
static void reference(const struct work *w, uint64_t query, int head, double o[V])
{
    const struct shape *s = w->shape;
    uint64_t b = query / (uint64_t)s->queries;
    int keys = s->list ? s->list : s->length;
    const int width = columns(s->kind);
    const uint16_t *q = w->q + (query * (uint64_t)s->heads + (uint64_t)head) * (uint64_t)width;
    double *score = gpu_host((uint64_t)keys * sizeof *score), top = -INFINITY, total = 0, c[QK];
    memset(o, 0, V * sizeof *o);
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < keys; k++) {
            int64_t row =
                s->list
                    ? w->index[query * (uint64_t)s->list + (uint64_t)k]
                    : (int64_t)w->index[b * (uint64_t)(s->length / PAGE) + (uint64_t)(k / PAGE)] *
                              PAGE +
                          k % PAGE;
            decode_row(s->kind, row, c);
            if (pass == 0) {
                score[k] = 0;
                for (int i = 0; i < width; i++)
                    score[k] += c[i] * bf16_to_double(q[i]) / sqrt(width);
                top = fmax(top, score[k]);
                continue;
            }
            double p = exp(score[k] - top);
            total += p;
            for (int i = 0; i < V; i++) o[i] += p * c[i];
        }
    for (int i = 0; i < V; i++) o[i] /= total;
    free(score);
}

/* The norm of the error of some rows, relative to that of the rows. */
static double error_of(struct gpu *g, const struct work *w)
{
    const struct shape *s = w->shape;
    struct rng r = {23};
    uint16_t *o = gpu_host(w->o_count * 2);
    double want[V], wrong = 0, all = 0;
    gpu_need(g->d.to_host(o, w->o_at, w->o_count * 2), "copy");
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t query = rng_below(&r, (uint32_t)(s->batch * s->queries));
        int head = (int)rng_below(&r, (uint32_t)s->heads);
        const uint16_t *row = o + (query * (uint64_t)s->heads + (uint64_t)head) * V;
        reference(w, query, head, want);
        for (int k = 0; k < V; k++) {
            double off = bf16_to_double(row[k]) - want[k];
            wrong += off * off;
            all += want[k] * want[k];
        }
    }
    free(o);
    return sqrt(wrong / all);
}

/* Seconds of a launch: median over graph launches. */
static double time_of(struct gpu *g, struct work *w)
{
    uint64_t launches = (uint64_t)(2e-3 * floor_rate / (double)w->bytes);
    if (launches < 4) launches = 4;
    if (launches > 200) launches = 200;
    gpu_time_begin(g);
    for (uint64_t i = 0; i < launches; i++) run(g, w, i % w->copies);
    return gpu_time_end(g, launches);
}

static void measure(struct gpu *g, const struct shape *s)
{
    struct work w;
    if (!open_work(g, &w, s)) {
        printf("%-22s more than the pool\n", s->name);
        return;
    }
    run(g, &w, 0);
    gpu_need(g->wait(g->stream), "run");
    double error = error_of(g, &w), seconds = time_of(g, &w);
    int rows = s->list ? s->heads : s->heads * s->queries; /* that see a key together */
    double flops = (double)w.keys * rows * 2 * (columns(s->kind) + V);
    double memory = (double)w.bytes / floor_rate;
    int tiles = (rows + 63) / 64;
    double key = clock_rate * g->d.info.sm_count / ((double)w.keys * tiles); /* cycles a second */
    const struct cycles *each = &(rows <= 16 ? few_cycles : gather_cycles)[s->kind];
    double products = each->products / key; /* seconds */
    printf("%-22s %8.1f MB %9.2f us  %5.2f TB/s %6.0f TFLOP/s; floors: memory %8.2f us, products "
           "%8.2f; %.2f of the larger; error %.1e%s",
           s->name, 1e-6 * (double)w.bytes, 1e6 * seconds, 1e-12 * (double)w.bytes / seconds,
           1e-12 * flops / seconds, 1e6 * memory, 1e6 * products, seconds / fmax(memory, products),
           error, error < 0.01 ? "" : "  WRONG");
    if (s->kind != PLAIN)
        printf("; %.1f cycles a key, %.1f of them conversion", seconds * key, each->conversion);
    printf("\n");
    fflush(stdout);
    close_work(g, &w);
}

int main(int argc, char **argv)
{
    struct gpu g = {.pool = {0}};
    long gigabytes = 18;
    const char *only = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else if (!strcmp(argv[i], "--pool") && i + 1 < argc)
            gigabytes = strtol(argv[++i], NULL, 0);
        else
            gpu_die(argv[i], "--only TEXT, --pool GB");
    }
    gpu_open(&g);
    g.pool_bytes = ((uint64_t)gigabytes << 30) / KINDS;
    for (int kind = 0; kind < KINDS; kind++) fill_pool(&g, kind);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!only || strstr(shapes[i].name, only)) measure(&g, &shapes[i]);
    for (int kind = 0; kind < KINDS; kind++) free(blocks[kind]);
    gpu_close(&g);
    return 0;
}
