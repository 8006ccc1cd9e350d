/*
 * hewn_gemm against float64: seeded cases over shapes, leading dimensions, dtypes and batches, on
 * whatever driver HEWN_LIBCUDA names. Outputs are poisoned before and checked byte for byte outside
 * the result after; the unused tail of every A and B row holds NaN, so reading it shows.
 *
 * Tolerance of one element, ref = sum of a_k b_k, p_k its partial sums, u = 2^-24:
 *     |D - ref| <= E + H + half an ulp of the output type at ref
 *     E = u · Σ_k |p_k|                     fp32 additions one k at a time, to nearest
 *     H = Σ_blocks 17·2^-25·M + 2u·|p_end|  the tensor core: per block of 16 products it aligns these
 *         and the running sum to the largest exponent, truncates each at 25 fraction bits, adds, and
 *         truncates to fp32 (model of arXiv 2511.10909, reproduced on B200 and H200 by others). M is
 *         the largest |p| before the block or |a_k b_k| in it, where a subnormal operand counts as
 *         the smallest normal: alignment goes by exponents, which subnormals share.
 * Integer-valued inputs make every partial sum exact: there E = H = 0.
 *
 * With --digests every case must also give the bits that a GPU gave (digest.h).
 */
#include "device.h"
#include "digest.h"
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum pattern { UNIFORM, INTEGERS, MIXED_EXPONENTS, SPECIALS, PATTERNS };
static const char *const pattern_names[] = {"uniform", "integers", "mixed exponents", "specials"};

struct gemm_case {
    hewn_gemm_desc desc;
    enum pattern pattern;
    uint64_t seed;
};

/* Host side of one operand or result: `count` elements of all problems, rows of `ld`. */
struct matrix {
    unsigned char *bytes;
    size_t size;
    int dtype;
    int64_t rows, cols, ld, stride, batch;
};

static struct matrix matrix_new(int dtype, int64_t rows, int64_t cols, int64_t ld, int64_t stride,
                                int64_t batch)
{
    struct matrix x = {NULL, 0, dtype, rows, cols, ld, stride, batch};
    int64_t last = (batch - 1) * stride + (rows - 1) * ld + cols;
    x.size = (size_t)last * hewn_dtype_size(dtype);
    x.bytes = malloc(x.size);
    return x;
}

static size_t element(const struct matrix *x, int64_t b, int64_t r, int64_t c)
{
    return (size_t)(b * x->stride + r * x->ld + c) * hewn_dtype_size(x->dtype);
}

static double load(const struct matrix *x, int64_t b, int64_t r, int64_t c)
{
    uint16_t h;
    float f;
    const unsigned char *p = x->bytes + element(x, b, r, c);
    if (x->dtype == HEWN_F32) {
        memcpy(&f, p, sizeof f);
        return (double)f;
    }
    memcpy(&h, p, sizeof h);
    return x->dtype == HEWN_F16 ? f16_to_double(h) : bf16_to_double(h);
}

static double draw(struct rng *r, enum pattern pattern)
{
    switch (pattern) {
    case INTEGERS: return (double)rng_below(r, 9) - 4.0;
    case MIXED_EXPONENTS: return ldexp((double)rng_unit(r), (int)rng_below(r, 17) - 10);
    case SPECIALS:
        switch (rng_below(r, 2048)) {
        case 0: return (double)INFINITY;
        case 1: return -(double)INFINITY;
        case 2: return (double)NAN;
        case 3: return ldexp(1.0, -24); /* subnormal in f16 */
        default: return (double)rng_unit(r);
        }
    default: return (double)rng_unit(r);
    }
}

/* Elements get random values; whatever lies between rows and problems gets NaN. */
static void matrix_fill(struct matrix *x, struct rng *r, enum pattern pattern)
{
    memset(x->bytes, 0xFF, x->size); /* NaN in every dtype */
    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->cols; j++) {
                double v = draw(r, pattern);
                uint16_t h = x->dtype == HEWN_F16 ? double_to_f16(v) : double_to_bf16(v);
                memcpy(x->bytes + element(x, b, i, j), &h, sizeof h);
            }
}

static double round_to(int dtype, double v)
{
    if (dtype == HEWN_F32) return (double)(float)v;
    return dtype == HEWN_F16 ? f16_to_double(double_to_f16(v)) : bf16_to_double(double_to_bf16(v));
}

/* Half an ulp at v: unit roundoff times the binade, no less than at the smallest normal. */
static double half_ulp(int dtype, double v)
{
    int e, bits = dtype == HEWN_F32 ? 24 : dtype == HEWN_F16 ? 11 : 8;
    int least = dtype == HEWN_F16 ? -13 : -125;
    frexp(v, &e);
    return ldexp(1.0, (e < least ? least : e) - bits - 1);
}

struct comparison {
    int64_t beyond, specials, total;
    double worst, want, got; /* of the element that exceeds its tolerance most */
    int64_t b, row, col;
    int64_t first_row, first_col;
};

static void compare_element(struct comparison *c, const struct matrix *d, int64_t b, int64_t i,
                            int64_t j, double ref, double tolerance)
{
    double got = load(d, b, i, j), want = round_to(d->dtype, ref), excess;
    c->total++;
    if (isnan(want) != isnan(got) || isinf(want) != isinf(got) || (isinf(want) && want != got)) {
        /* next to the overflow threshold either side is a correct rounding */
        if (fabs(fabs(ref) - 65520.0) <= tolerance && d->dtype == HEWN_F16) return;
        c->specials++;
        excess = (double)INFINITY;
    } else if (isnan(want) || isinf(want)) {
        return;
    } else {
        excess = fabs(got - ref) / (tolerance + half_ulp(d->dtype, ref));
        if (excess <= 1.0) return;
        c->beyond++;
    }
    if (c->beyond + c->specials == 1) c->first_row = i, c->first_col = j;
    if (excess > c->worst) {
        c->worst = excess, c->want = want, c->got = got;
        c->b = b, c->row = i, c->col = j;
    }
}

/* Rows of both operands as doubles, and their magnitudes as the tensor core aligns them. */
struct rows {
    double *a, *a_size; /* one row of A */
    double *b, *b_size; /* all of B, row by row */
};

static void row_of(const struct matrix *x, int64_t b, int64_t r, double *out, double *size)
{
    double least = x->dtype == HEWN_F16 ? 0x1p-14 : 0x1p-126;
    for (int64_t j = 0; j < x->cols; j++) {
        out[j] = load(x, b, r, j);
        size[j] = out[j] != 0 ? fmax(fabs(out[j]), least) : 0.0;
    }
}

enum { MMA_BLOCK = 16 };

/* One element's reference and E + H. */
static double reference(const struct rows *r, int64_t j, int64_t k, double *bound)
{
    double sum = 0, one_by_one = 0, by_block = 0, largest = 0;
    for (int64_t x = 0; x < k; x++) {
        double before = fabs(sum), size = r->a_size[x] * r->b_size[j * k + x];
        if (x % MMA_BLOCK == 0) largest = before;
        largest = size > largest ? size : largest;
        sum += r->a[x] * r->b[j * k + x];
        one_by_one += fabs(sum);
        if (x % MMA_BLOCK == MMA_BLOCK - 1 || x == k - 1)
            by_block += 17 * 0x1p-25 * largest + 0x1p-23 * fabs(sum);
    }
    *bound = 0x1p-24 * one_by_one + by_block;
    return sum;
}

static void compare(struct comparison *c, const struct gemm_case *g, const struct matrix *a,
                    const struct matrix *bm, const struct matrix *d)
{
    size_t k = (size_t)g->desc.k, n = (size_t)bm->rows;
    double *store = malloc((2 * k + 2 * k * n) * sizeof *store), bound;
    if (!store) return; /* the caller counts the compared elements */
    struct rows r = {store, store + k, store + 2 * k, store + 2 * k + k * n};
    for (int64_t b = 0; b < d->batch; b++) {
        for (int64_t j = 0; j < bm->rows; j++)
            row_of(bm, bm->batch > 1 ? b : 0, j, r.b + j * g->desc.k, r.b_size + j * g->desc.k);
        for (int64_t i = 0; i < d->rows; i++) {
            row_of(a, a->batch > 1 ? b : 0, i, r.a, r.a_size);
            for (int64_t j = 0; j < d->cols; j++) {
                double ref = reference(&r, j, g->desc.k, &bound);
                compare_element(c, d, b, i, j, ref, g->pattern == INTEGERS ? 0.0 : bound);
            }
        }
    }
    free(store);
}

/* One line of x and . around the worst element. */
static void difference_map(const struct matrix *d, const struct comparison *c, char *out)
{
    int64_t first = c->col - 16 < 0 ? 0 : c->col - 16;
    int n = 0;
    for (int64_t j = first; j < d->cols && j < first + 32; j++)
        out[n++] = fabs(load(d, c->b, c->row, j)) > 0 ? (j == c->col ? 'x' : '.') : '0';
    out[n] = '\0';
}

static void check_result(const struct gemm_case *g, const struct matrix *a, const struct matrix *b,
                         const struct matrix *d)
{
    struct comparison c;
    char map[40];
    memset(&c, 0, sizeof c);
    compare(&c, g, a, b, d);
    CHECK(c.total == d->rows * d->cols * d->batch, "compared %lld elements", (long long)c.total);
    if (c.beyond + c.specials == 0) return;
    difference_map(d, &c, map);
    CHECK(
        false,
        "D     %lld/%lld beyond the bound (rule: E + H, top of this file); nan/inf mismatches %lld",
        (long long)c.beyond, (long long)c.total, (long long)c.specials);
    CHECK(false,
          "worst [%lld][%lld,%lld] want %.9g got %.9g, %.3g x its bound; first at [%lld,%lld]",
          (long long)c.b, (long long)c.row, (long long)c.col, c.want, c.got, c.worst,
          (long long)c.first_row, (long long)c.first_col);
    CHECK(false, "map   row %lld around col %lld: %s", (long long)c.row, (long long)c.col, map);
}

/* Everything outside the result's elements still holds the poison. */
static void check_untouched(const struct matrix *d, unsigned char poison)
{
    size_t width = (size_t)d->cols * hewn_dtype_size(d->dtype), at = 0, damaged = 0;
    for (int64_t b = 0; b < d->batch; b++)
        for (int64_t i = 0; i < d->rows; i++) {
            size_t start = element(d, b, i, 0);
            for (; at < start; at++) damaged += d->bytes[at] != poison;
            at = start + width;
        }
    CHECK(damaged == 0, "%zu bytes between the rows of D were written", damaged);
}

static bool upload(struct device *dev, struct guarded *g, const struct matrix *x)
{
    return guarded_new(dev, g, x->size, 0xFF) && dev->to_device(g->data, x->bytes, x->size) == 0;
}

enum { POISON = 0xA5 };

/* `choice`: the kernel that ran, and its parts of K. */
static void run_on_device(struct device *dev, const struct gemm_case *g, const struct matrix *a,
                          const struct matrix *b, struct matrix *d, char choice[DIGEST_CHOICE])
{
    struct guarded ga = {0}, gb = {0}, gd = {0};
    hewn_gemm_plan *plan = NULL;
    hewn_error err = {0};
    const char *damage;
    bool ready =
        upload(dev, &ga, a) && upload(dev, &gb, b) && guarded_new(dev, &gd, d->size, POISON);
    CHECK(ready, "no device memory for the case");
    if (ready && hewn_gemm_plan_create(dev->context, &g->desc, &plan, &err))
        CHECK(false, "plan: %s", err.message);
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    if (plan && !hewn_gemm_plan_describe(plan, &info, &err))
        snprintf(choice, DIGEST_CHOICE, "%.16s/%u", info.variant, info.parts);
    if (plan && hewn_gemm_run(plan, ga.data, gb.data, gd.data, NULL, &err))
        CHECK(false, "run: %s", err.message);
    int rc = plan ? dev->synchronize() : 0;
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    if (plan && rc == 0) {
        CHECK_INT(dev->to_host(d->bytes, gd.data, d->size), 0);
        damage = guarded_damage(dev, &gd);
        CHECK(!damage, "D: %s", damage);
        damage = guarded_damage(dev, &ga);
        CHECK(!damage, "A: %s", damage);
    }
    hewn_gemm_plan_destroy(plan);
    guarded_free(dev, &ga);
    guarded_free(dev, &gb);
    guarded_free(dev, &gd);
}

/* The bits of D against the recording, once more where another choice was recorded. */
static void hold_digest(struct device *dev, const struct gemm_case *g, const struct matrix *a,
                        const struct matrix *b, struct matrix *d, char choice[DIGEST_CHOICE])
{
    const char *recorded = digest_case(digest_bytes(DIGEST_BEGIN, d->bytes, d->size), choice);
    struct gemm_case other = *g;
    char variant[DIGEST_CHOICE];
    if (!recorded) return;
    if (sscanf(recorded, "%23[^/]/%u", variant, &other.desc.parts) != 2) variant[0] = '\0';
    other.desc.variant = variant;
    memset(d->bytes, POISON, d->size);
    run_on_device(dev, &other, a, b, d, choice);
    if (!test_case_failures()) digest_case(digest_bytes(DIGEST_BEGIN, d->bytes, d->size), choice);
}

static void run_case(struct device *dev, const struct gemm_case *g)
{
    char choice[DIGEST_CHOICE] = "";
    const hewn_gemm_desc *s = &g->desc;
    struct rng r = {g->seed};
    int64_t batch_a = s->stride_a ? s->batch : 1, batch_b = s->stride_b ? s->batch : 1;
    struct matrix a = matrix_new(s->in, s->m, s->k, s->lda, s->stride_a, batch_a);
    struct matrix b = matrix_new(s->in, s->n, s->k, s->ldb, s->stride_b, batch_b);
    struct matrix d = matrix_new(s->out, s->m, s->n, s->ldd, s->stride_d, s->batch);
    if (a.bytes && b.bytes && d.bytes) {
        matrix_fill(&a, &r, g->pattern);
        matrix_fill(&b, &r, g->pattern);
        memset(d.bytes, POISON, d.size);
        run_on_device(dev, g, &a, &b, &d, choice);
        if (!test_case_failures()) {
            check_result(g, &a, &b, &d);
            check_untouched(&d, POISON);
            hold_digest(dev, g, &a, &b, &d, choice);
        }
    } else {
        CHECK(false, "no host memory for the case");
    }
    free(a.bytes);
    free(b.bytes);
    free(d.bytes);
}

/* ---- cases ---- */

static int64_t round_up(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* Leading dimension: rows padded to 16 bytes, then by `extra` more such units. */
static int64_t leading(int64_t cols, int dtype, int64_t extra)
{
    int64_t unit = 16 / (int64_t)hewn_dtype_size(dtype);
    return round_up(cols, unit) + extra * unit;
}

static void set_layout(hewn_gemm_desc *s, int64_t pad_a, int64_t pad_b, int64_t pad_d)
{
    s->struct_size = sizeof *s;
    s->lda = leading(s->k, s->in, pad_a);
    s->ldb = leading(s->k, s->in, pad_b);
    s->ldd = leading(s->n, s->out, pad_d);
    if (s->batch < 1) s->batch = 1;
    s->stride_a = s->lda * s->m;
    s->stride_b = s->ldb * s->n;
    s->stride_d = s->ldd * s->m;
}

static const int out_types[] = {HEWN_F32, HEWN_BF16, HEWN_F16};

/* Shapes where kernels break: single elements, one off each tile edge, many k-blocks, many tiles. */
static const int64_t edge_shapes[][3] = {
    {1, 1, 8},       {1, 1, 1},       {1, 8, 8},       {8, 1, 16},      {2, 3, 5},
    {127, 255, 63},  {128, 256, 64},  {129, 257, 65},  {129, 264, 72},  {64, 128, 256},
    {65, 129, 40},   {192, 384, 96},  {255, 511, 127}, {256, 512, 128}, {257, 513, 129},
    {1, 1000, 100},  {1000, 1, 100},  {300, 200, 520}, {31, 33, 1024},  {16, 16, 4096},
    {100, 60, 4095}, {7, 9, 2048},    {128, 256, 8},   {128, 256, 7},   {384, 768, 192},
    {640, 1280, 64}, {513, 1025, 32}, {1100, 900, 24}, {129, 2049, 16}, {2049, 17, 48},
    {896, 1792, 64}, {1, 4097, 8},    {4097, 1, 8}};
enum { EDGE_SHAPES = sizeof edge_shapes / sizeof edge_shapes[0], RANDOM_CASES = 220 };

static void edge_case(struct gemm_case *g, int shape, int variant)
{
    g->desc.m = edge_shapes[shape][0];
    g->desc.n = edge_shapes[shape][1];
    g->desc.k = edge_shapes[shape][2];
    g->desc.in = (shape + variant) % 2 ? HEWN_F16 : HEWN_BF16;
    g->desc.out = out_types[(shape / 2 + variant) % 3];
    g->pattern = (enum pattern)((shape + variant) % PATTERNS);
    set_layout(&g->desc, variant ? shape % 4 : 0, variant ? shape % 3 : 0, variant ? shape % 5 : 0);
}

/* Every kernel that the library may choose on the device, with each number of parts of K that it takes;
 * shapes around the edges of their tiles, several tiles a cluster, some with fewer rows or columns than
 * one. Enough k-blocks of 64 for 8 parts, their number odd at times. */
static const struct kernel_choice {
    const char *variant;
    uint32_t parts;
} hopper_choices[] = {{"plain", 1}, {"pair", 1},  {"small", 1}, {"narrow", 1}, {"split", 1},
                      {"split", 2}, {"split", 3}, {"split", 4}, {"split", 5},  {"split", 7},
                      {"split", 8}, {"flat", 1},  {"flat", 2},  {"flat", 3},   {"flat", 4},
                      {"flat", 6},  {"flat", 8}};
static const int64_t choice_shapes[][3] = {{128, 256, 512},  {1, 1, 520},      {65, 129, 1000},
                                           {257, 513, 576},  {300, 1030, 700}, {16, 2056, 640},
                                           {1025, 136, 512}, {129, 255, 1100}};
enum {
    CHOICES = sizeof hopper_choices / sizeof hopper_choices[0],
    CHOICE_SHAPES = sizeof choice_shapes / sizeof choice_shapes[0]
};

static void choice_case(struct gemm_case *g, int choice, int shape)
{
    const int64_t *s = choice_shapes[shape];
    int turn = choice + shape;
    g->desc.m = s[0], g->desc.n = s[1], g->desc.k = s[2];
    g->desc.variant = hopper_choices[choice].variant;
    g->desc.parts = hopper_choices[choice].parts;
    g->desc.batch = turn % 4 == 3 ? 2 : 1;
    g->desc.in = turn % 2 ? HEWN_F16 : HEWN_BF16;
    g->desc.out = out_types[turn % 3];
    g->pattern = (enum pattern)(turn / 3 % PATTERNS);
    set_layout(&g->desc, shape % 3, shape % 2, turn % 3);
}

static int64_t ragged(struct rng *r, uint32_t limit)
{
    switch (rng_below(r, 4)) {
    case 0: return 1 + rng_below(r, 16);
    case 1: return 1 + rng_below(r, limit);
    case 2: return round_up(1 + rng_below(r, limit), 8);
    default: return 1 + rng_below(r, limit / 4);
    }
}

static void random_case(struct gemm_case *g, struct rng *r)
{
    hewn_gemm_desc *s = &g->desc;
    do {
        s->m = ragged(r, 700);
        s->n = ragged(r, 700);
        s->k = ragged(r, rng_below(r, 8) ? 512 : 4096);
        s->batch = rng_below(r, 4) ? 1 : 1 + rng_below(r, 5);
    } while (s->m * s->n * s->k * s->batch > 24000000);
    s->in = rng_below(r, 2) ? HEWN_F16 : HEWN_BF16;
    s->out = out_types[rng_below(r, 3)];
    g->pattern = (enum pattern)rng_below(r, PATTERNS);
    set_layout(s, rng_below(r, 4), rng_below(r, 4), rng_below(r, 4));
    if (s->batch > 1 && rng_below(r, 3) == 0) s->stride_a = 0;
    if (s->batch > 1 && rng_below(r, 3) == 0) s->stride_b = 0;
}

/* Two hundred tiles or more on the few SMs of the simulator, each ring phase wraps many times. */
static void long_case(struct gemm_case *g, int index)
{
    g->desc.m = 128 * (3 + index) + 1;
    g->desc.n = 256 * (2 + index % 3) - 8;
    g->desc.k = 320 - 64 * (index % 4);
    g->desc.batch = index % 2 ? 2 : 1;
    g->desc.in = index % 2 ? HEWN_F16 : HEWN_BF16;
    g->desc.out = out_types[index % 3];
    g->pattern = index % 2 ? UNIFORM : INTEGERS;
    set_layout(&g->desc, 0, 0, 0);
}

static void maybe_run(struct device *dev, struct gemm_case *g)
{
    const hewn_gemm_desc *s = &g->desc;
    char choice[24] = "";
    if (s->variant) snprintf(choice, sizeof choice, " %s/%u", s->variant, s->parts);
    if (test_case("m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldd=%lld batch=%lld%s%s %s -> %s %s%s",
                  (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->lda,
                  (long long)s->ldb, (long long)s->ldd, (long long)s->batch,
                  s->batch > 1 && !s->stride_a ? " one A" : "",
                  s->batch > 1 && !s->stride_b ? " one B" : "", hewn_dtype_name(s->in),
                  hewn_dtype_name(s->out), pattern_names[g->pattern], choice)) {
        const char *name = test_case_name(); /* which case came before does not count */
        g->seed = digest_bytes(test_seed(), name, strlen(name));
        run_case(dev, g);
    }
}

int main(int argc, char **argv)
{
    struct device dev;
    hewn_error err = {0};
    argc = digest_options(argc, argv);
    test_begin("gemm", argc, argv);
    setenv("HEWN_SIM_SMS", "8", 0); /* the largest cluster on a simulated device */
    if (!device_open(&dev, &err)) {
        if (test_case("open")) CHECK(false, "%s", err.message);
        return test_end();
    }
    test_where("sm_%d%d, %s", dev.info.cc_major, dev.info.cc_minor, dev.info.name);
    digest_device(&dev);
    struct rng r = {test_seed()};
    for (int variant = 0; variant < 2; variant++)
        for (int i = 0; i < EDGE_SHAPES; i++) {
            struct gemm_case g = {0};
            edge_case(&g, i, variant);
            maybe_run(&dev, &g);
        }
    for (int i = 0; i < 16; i++) {
        struct gemm_case g = {0};
        long_case(&g, i);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < CHOICES * CHOICE_SHAPES; i++) {
        struct gemm_case g = {0};
        choice_case(&g, i / CHOICE_SHAPES, i % CHOICE_SHAPES);
        maybe_run(&dev, &g);
    }
    for (int i = 0; i < RANDOM_CASES; i++) {
        struct gemm_case g = {0};
        random_case(&g, &r);
        maybe_run(&dev, &g);
    }
    digest_end();
    device_close(&dev);
    return test_end();
}
