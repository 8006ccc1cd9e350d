/*
 * bench_kinds: products of hewn_gemm with a scale for each row and column, of s8, and with SwiGLU, on a GPU beside
 * cuBLASLt. Microseconds a launch, of CUDA graphs whose launches go round among copies of the operands that are
 * larger than L2 together; the fastest of the algorithms that the peer's heuristic offers. The peer computes
 *
 *   e4m3    the same: vectors of scales, promoted sums; fast: neither side promotes
 *   s8      the sums in s32, without the scales and the rounding to bf16
 *   swiglu  the product of 2n columns, without what follows it
 *
 *   bench_kinds             all rows
 *   bench_kinds --only KIND e4m3, fast, s8 or swiglu
 *   bench_kinds --variant V --m M   our kernel V alone, rows M
 *
 * Rows of D, the first and the last, are compared first: ours with what the peer's come to.
 */
#include "bench/bench_peer.h"
#include "bench/gpu.h"
#include "lib/harness.h"
#include "lib/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 20, ALGORITHMS = 8, BAND = 4, SETS = 32 };
static const uint64_t l2_span = UINT64_C(200) << 20;

static const struct kind {
    const char *name;
    int in, act;
    bool fast;
    int shapes[3][2]; /* n, k */
} kinds[] = {
    {"e4m3", HEWN_E4M3, HEWN_ACT_NONE, false, {{6144, 4096}, {4096, 14336}, {8192, 8192}}},
    {"fast", HEWN_E4M3, HEWN_ACT_NONE, true, {{6144, 4096}, {4096, 14336}, {8192, 8192}}},
    {"s8", HEWN_S8, HEWN_ACT_NONE, true, {{6144, 4096}, {4096, 14336}, {8192, 8192}}},
    {"swiglu", HEWN_BF16, HEWN_ACT_SWIGLU, true, {{14336, 4096}, {2048, 7168}, {28672, 8192}}},
};
static const int rows[] = {1, 16, 64, 256, 1024, 4096};

struct bench {
    struct gpu g;
    bool peer;
    const char *only, *variant;
    int only_m;
    double product; /* of the ratios */
    int count;
};

/* One row of the table: operands in sets, one behind the other. */
struct row {
    const struct kind *kind;
    int64_t m, n, k, rows_b;
    int sets;
    uint64_t a_bytes, b_bytes, d_bytes;
    hewn_deviceptr in, scale_a, scale_b, d, other;
};

static hewn_deviceptr a_of(const struct row *r, int i)
{
    return r->in + (uint64_t)(i % r->sets) * (r->a_bytes + r->b_bytes);
}

static void fill_block(unsigned char *block, int in)
{
    struct rng r = {1};
    for (size_t i = 0; i < BLOCK; i += hewn_dtype_size(in))
        number_store(in, in == HEWN_S8 ? (double)rng_below(&r, 255) - 127 : (double)rng_unit(&r),
                     block + i);
}

static hewn_deviceptr scales(struct bench *b, int64_t count)
{
    struct rng r = {2};
    float *x = gpu_host((uint64_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = 0.01F + 0.01F * (float)rng_below(&r, 4);
    const hewn_deviceptr at = gpu_upload(&b->g, x, (uint64_t)count * sizeof *x);
    free(x);
    return at;
}

static struct row row_open(struct bench *b, const struct kind *kind, int m, const int shape[2])
{
    struct row r = {.kind = kind, .m = m, .n = shape[0], .k = shape[1]};
    const uint64_t element = hewn_dtype_size(kind->in);
    unsigned char *block = gpu_host(BLOCK);
    r.rows_b = kind->act == HEWN_ACT_SWIGLU ? 2 * r.n : r.n;
    r.a_bytes = (uint64_t)(r.m * r.k) * element;
    r.b_bytes = (uint64_t)(r.rows_b * r.k) * element;
    r.d_bytes = (uint64_t)(r.m * r.rows_b) * 4;
    r.sets = (int)(l2_span / (r.a_bytes + r.b_bytes)) + 1;
    if (r.sets > SETS) r.sets = SETS;
    fill_block(block, kind->in);
    r.in = gpu_repeat(&b->g, block, BLOCK, (uint64_t)r.sets * (r.a_bytes + r.b_bytes));
    free(block);
    r.scale_a = scales(b, r.m), r.scale_b = scales(b, r.rows_b);
    r.d = gpu_allocate(&b->g, r.d_bytes), r.other = gpu_allocate(&b->g, r.d_bytes);
    return r;
}

static void row_close(struct bench *b, const struct row *r)
{
    const hewn_deviceptr all[] = {r->in, r->scale_a, r->scale_b, r->d, r->other};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) b->g.d.mem_free(all[i]);
}

/* ---- both sides ---- */

static hewn_gemm_plan *plan_of(struct bench *b, const struct row *r)
{
    const bool vectors = r->kind->act == HEWN_ACT_NONE;
    const hewn_gemm_desc d = {
        .struct_size = sizeof d,
        .m = r->m,
        .n = r->n,
        .k = r->k,
        .in = r->kind->in,
        .out = HEWN_BF16,
        .act = r->kind->act,
        .with = vectors ? HEWN_GEMM_WITH_SCALE_ROWS | HEWN_GEMM_WITH_SCALE_COLUMNS : 0U,
        .accumulate = r->kind->fast ? HEWN_ACCUMULATE_FAST : HEWN_ACCUMULATE_FULL,
        .bias_type = HEWN_F32,
        .variant = b->variant};
    hewn_gemm_plan *plan = NULL;
    hewn_error err = {0};
    if (hewn_gemm_plan_create(b->g.d.context, &d, &plan, &err)) printf("  %s\n", err.message);
    return plan;
}

static int ours(const struct row *r, const hewn_gemm_plan *plan, int set, hewn_stream stream)
{
    const bool vectors = r->kind->act == HEWN_ACT_NONE;
    const hewn_deviceptr a = a_of(r, set);
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = a,
                                 .b = a + r->a_bytes,
                                 .d = r->d,
                                 .scale_a = vectors ? r->scale_a : 0,
                                 .scale_b = vectors ? r->scale_b : 0};
    return hewn_gemm_plan_run(plan, &args, stream, NULL);
}

static int theirs(const struct row *r, const struct peer_product *p, int algorithm, int set,
                  hewn_stream stream)
{
    const hewn_deviceptr a = a_of(r, set);
    return peer_launch(p, algorithm, a, a + r->a_bytes, r->other, stream);
}

/* ---- outputs ---- */

static double scale_at(struct bench *b, hewn_deviceptr at, int64_t i)
{
    float x = 0;
    gpu_need(b->g.d.to_host(&x, at + (uint64_t)i * sizeof x, sizeof x), "copy");
    return (double)x;
}

/* What a row of the peer's product comes to, in place: n numbers. */
static void finish(struct bench *b, const struct row *r, int64_t i, double *x)
{
    const double of_row = r->kind->in == HEWN_S8 ? scale_at(b, r->scale_a, i) : 1;
    for (int64_t j = 0; j < r->n; j++) {
        if (r->kind->act == HEWN_ACT_SWIGLU) x[j] = x[j] / (1 + exp(-x[j])) * x[r->n + j];
        if (r->kind->in == HEWN_S8) x[j] *= of_row * scale_at(b, r->scale_b, j);
    }
}

static double row_differs(struct bench *b, const struct row *r, int64_t i, unsigned char *bytes,
                          double *x)
{
    const int other = r->kind->in == HEWN_S8 ? HEWN_S32 : HEWN_BF16;
    const uint64_t element = hewn_dtype_size(other), pitch = (uint64_t)r->rows_b * element;
    double worst = 0, most = 0;
    gpu_need(b->g.d.to_host(bytes, r->other + (uint64_t)i * pitch, pitch), "copy");
    for (int64_t j = 0; j < r->rows_b; j++)
        x[j] = number_load(other, bytes + (uint64_t)j * element);
    finish(b, r, i, x);
    gpu_need(b->g.d.to_host(bytes, r->d + (uint64_t)(i * r->n) * 2, (uint64_t)r->n * 2), "copy");
    for (int64_t j = 0; j < r->n; j++) {
        const double got = number_load(HEWN_BF16, bytes + 2 * j);
        if (!(fabs(got - x[j]) <= worst)) worst = fabs(got - x[j]);
        if (fabs(x[j]) > most) most = fabs(x[j]);
    }
    return worst / most;
}

/* The largest difference of the first and last rows, relative to the row's largest element. */
static double differ(struct bench *b, const struct row *r)
{
    unsigned char *bytes = gpu_host((uint64_t)r->rows_b * 4);
    double *x = gpu_host((uint64_t)r->rows_b * sizeof *x), worst = 0;
    for (int64_t i = 0; i < r->m; i++) {
        if (i >= BAND && i < r->m - BAND) continue;
        if (r->kind->in == HEWN_S8 && i > 0 && i < r->m - 1) continue; /* scales come one by one */
        const double d = row_differs(b, r, i, bytes, x);
        if (!(d <= worst)) worst = d;
    }
    free(bytes);
    free(x);
    return worst;
}

/* ---- times ---- */

static uint64_t launches_of(const struct row *r)
{
    const double flops = 2.0 * (double)r->m * (double)r->rows_b * (double)r->k;
    const uint64_t n = (uint64_t)(3e-3 / (flops / 8e14 + (double)r->b_bytes / 3.5e12 + 3e-6));
    return n < 3 ? 3 : n;
}

static double time_ours(struct bench *b, const struct row *r, const hewn_gemm_plan *plan)
{
    const uint64_t count = launches_of(r);
    gpu_time_begin(&b->g);
    for (uint64_t i = 0; i < count; i++) gpu_need(ours(r, plan, (int)i, b->g.stream), "run");
    return gpu_time_end(&b->g, count);
}

/* The fastest algorithm's seconds; 0 where none runs. */
static double time_theirs(struct bench *b, const struct row *r, const struct peer_product *p,
                          int *best)
{
    const uint64_t count = launches_of(r);
    double least = 0;
    for (int a = 0; a < peer_algorithms(p) && a < ALGORITHMS; a++) {
        if (theirs(r, p, a, 0, b->g.stream)) continue;
        gpu_time_begin(&b->g);
        for (uint64_t i = 0; i < count; i++) gpu_need(theirs(r, p, a, (int)i, b->g.stream), "peer");
        const double seconds = gpu_time_end(&b->g, count);
        if (least == 0 || seconds < least) least = seconds, *best = a;
    }
    return least;
}

static void one(struct bench *b, const struct kind *kind, int m, const int shape[2])
{
    struct row r = row_open(b, kind, m, shape);
    const struct peer_form form = {.m = r.m,
                                   .n = r.rows_b,
                                   .k = r.k,
                                   .e4m3 = kind->in == HEWN_E4M3,
                                   .vectors = kind->in == HEWN_E4M3,
                                   .s8 = kind->in == HEWN_S8,
                                   .fast = kind->fast,
                                   .scale_a = r.scale_a,
                                   .scale_b = r.scale_b};
    hewn_gemm_plan *plan = plan_of(b, &r);
    struct peer_product *p = b->peer ? peer_product_new(&form) : NULL;
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    int best = 0;
    if (plan) {
        hewn_gemm_plan_describe(plan, &info, NULL);
        const double us = 1e6 * time_ours(b, &r, plan);
        const double peer_us = p ? 1e6 * time_theirs(b, &r, p, &best) : 0;
        printf("%-6s %5lld %6lld %6lld  %8s/%u %9.2f", kind->name, (long long)r.m, (long long)r.n,
               (long long)r.k, info.variant, info.parts, us);
        if (peer_us > 0) {
            gpu_need(ours(&r, plan, 0, b->g.stream), "run");
            gpu_need(theirs(&r, p, best, 0, b->g.stream), "peer");
            gpu_need(b->g.wait(b->g.stream), "run");
            printf(" %9.2f %6.2f  differ by %.1e", peer_us, peer_us / us, differ(b, &r));
            b->product += log(peer_us / us), b->count++;
        }
        printf("\n");
        fflush(stdout);
    }
    peer_product_free(p);
    hewn_gemm_plan_destroy(plan);
    row_close(b, &r);
}

static void each(struct bench *b, const struct kind *kind)
{
    if (b->only && strcmp(b->only, kind->name) != 0) return;
    b->product = 0, b->count = 0;
    printf("%-6s %5s %6s %6s  %10s %9s %9s %6s\n", "kind", "m", "n", "k", "kernel", "us",
           "cuBLASLt", "ratio");
    for (int s = 0; s < 3; s++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (!b->only_m || b->only_m == rows[i]) one(b, kind, rows[i], kind->shapes[s]);
    if (b->count)
        printf("%s: geometric mean of %d: %.3f\n", kind->name, b->count,
               exp(b->product / b->count));
}

int main(int argc, char **argv)
{
    static struct bench b;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--only"))
            b.only = argv[i + 1];
        else if (!strcmp(argv[i], "--variant"))
            b.variant = argv[i + 1];
        else if (!strcmp(argv[i], "--m"))
            b.only_m = atoi(argv[i + 1]);
        else
            gpu_die(argv[i], "no such option");
    }
    gpu_open(&b.g);
    printf("%s", b.g.d.info.name);
    b.peer = peer_open(&b.g.d);
    if (b.peer) printf(", cuBLASLt %zu", peer_version());
    printf("\n");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) each(&b, &kinds[i]);
    gpu_close(&b.g);
    return 0;
}
