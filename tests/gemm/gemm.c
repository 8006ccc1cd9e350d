/*
 * hewn_gemm against float64: seeded cases over shapes, leading dimensions, majors, dtypes, batches and
 * what comes after the sums, on whatever driver HEWN_LIBCUDA names. Outputs are poisoned before and
 * checked byte for byte outside the result after; the unused tail of every row of an operand holds NaN,
 * so reading it shows. The bounds and their reasons: gemm_judge.c. With --digests every case must also give
 * the bits that a GPU gave (digest.h).
 */
#include "gemm_case.h"

#include "lib/device.h"
#include "lib/digest.h"
#include "lib/plans.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything outside the result's elements still holds the poison. */
static void check_untouched(const struct matrix *d, unsigned char poison)
{
    size_t width = (size_t)d->cols * hewn_dtype_size(d->dtype), at = 0, damaged = 0;
    for (int64_t b = 0; b < d->batch; b++)
        for (int64_t i = 0; i < d->rows; i++) {
            size_t start = matrix_at(d, b, i, 0);
            for (; at < start; at++) damaged += d->bytes[at] != poison;
            at = start + width;
        }
    CHECK(damaged == 0, "%zu bytes between the rows of D were written", damaged);
}

/* `shift` bytes behind the start of a buffer, whose first bytes keep the pattern. */
enum { POISON = 0xA5 };

static bool upload(struct device *dev, struct guarded *g, unsigned char pattern, const void *bytes,
                   size_t size, size_t shift)
{
    return guarded_new(dev, g, size + shift, pattern) &&
           dev->to_device(g->data + shift, bytes, size) == 0;
}

static size_t shift_of(const struct gemm_case *g, int dtype)
{
    return (size_t)g->shift * hewn_dtype_size(dtype);
}

enum {
    BUFFER_A,
    BUFFER_B,
    BUFFER_C,
    BUFFER_BIAS,
    BUFFER_SCALE_A,
    BUFFER_SCALE_B,
    BUFFER_D,
    BUFFER_WORKSPACE,
    BUFFERS
};
static const char *const buffer_names[] = {"A",       "B",       "C", "bias",
                                           "scale_a", "scale_b", "D", "workspace"};

static bool upload_all(struct device *dev, const struct gemm_case *g, const struct operands *o,
                       struct guarded buffer[BUFFERS])
{
    const uint32_t with = g->desc.with;
    bool own_c = with & HEWN_GEMM_WITH_C && !g->in_place;
    const hewn_gemm_desc *d = &g->desc;
    return upload(dev, &buffer[BUFFER_A], 0xFF, o->a.bytes, o->a.size, shift_of(g, d->in)) &&
           upload(dev, &buffer[BUFFER_B], 0xFF, o->b.bytes, o->b.size, shift_of(g, d->in)) &&
           (!own_c ||
            upload(dev, &buffer[BUFFER_C], 0xFF, o->c.bytes, o->c.size, shift_of(g, d->out))) &&
           (!(with & HEWN_GEMM_WITH_BIAS) || upload(dev, &buffer[BUFFER_BIAS], 0xFF, o->bias.bytes,
                                                    o->bias.size, shift_of(g, d->bias_type))) &&
           (!(with & HEWN_GEMM_WITH_SCALE_A) ||
            upload(dev, &buffer[BUFFER_SCALE_A], 0xFF, &g->scale_a, sizeof g->scale_a, 0)) &&
           (!(with & HEWN_GEMM_WITH_SCALE_B) ||
            upload(dev, &buffer[BUFFER_SCALE_B], 0xFF, &g->scale_b, sizeof g->scale_b, 0)) &&
           upload(dev, &buffer[BUFFER_D], POISON, o->d.bytes, o->d.size, shift_of(g, d->out));
}

static int launch(const struct gemm_case *g, const hewn_gemm_plan *plan,
                  const struct guarded buffer[BUFFERS], hewn_error *err)
{
    const size_t in = shift_of(g, g->desc.in), out = shift_of(g, g->desc.out);
    const hewn_deviceptr c = buffer[g->in_place ? BUFFER_D : BUFFER_C].data,
                         bias = buffer[BUFFER_BIAS].data;
    if (!g->desc.with && !buffer[BUFFER_WORKSPACE].data)
        return plain_product(plan, buffer[BUFFER_A].data + in, buffer[BUFFER_B].data + in,
                             buffer[BUFFER_D].data + out, NULL, err);
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = buffer[BUFFER_A].data + in,
                                 .b = buffer[BUFFER_B].data + in,
                                 .d = buffer[BUFFER_D].data + out,
                                 .c = c ? c + out : 0,
                                 .bias = bias ? bias + shift_of(g, g->desc.bias_type) : 0,
                                 .scale_a = buffer[BUFFER_SCALE_A].data,
                                 .scale_b = buffer[BUFFER_SCALE_B].data,
                                 .alpha = g->alpha,
                                 .beta = g->beta,
                                 .workspace = buffer[BUFFER_WORKSPACE].data};
    return hewn_gemm_plan_run(plan, &args, NULL, err);
}

/* `choice`: the kernel that ran, its parts of K and, if there are several, "*" and the slices. */
static void run_on_device(struct device *dev, const struct gemm_case *g, struct operands *o,
                          char choice[DIGEST_CHOICE])
{
    struct guarded buffer[BUFFERS];
    hewn_gemm_plan *plan = NULL;
    hewn_error err = {0};
    memset(buffer, 0, sizeof buffer);
    bool ready = upload_all(dev, g, o, buffer);
    CHECK(ready, "no device memory for the case");
    if (ready && hewn_gemm_plan_create(dev->context, &g->desc, &plan, &err))
        CHECK(false, "plan: %s", err.message);
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    if (plan) CHECK_INT(hewn_gemm_plan_describe(plan, &info, &err), HEWN_OK);
    o->parts = info.parts, o->slices = info.slices;
    if (plan && g->desc.slices) CHECK_INT(info.slices, g->desc.slices);
    if (info.workspace && !guarded_new(dev, &buffer[BUFFER_WORKSPACE], info.workspace, 0xFF))
        CHECK(false, "no device memory for the workspace");
    if (plan && launch(g, plan, buffer, &err)) CHECK(false, "run: %s", err.message);
    if (info.variant) {
        int n = snprintf(choice, DIGEST_CHOICE, "%.12s/%u", info.variant, info.parts);
        if (info.slices > 1) snprintf(choice + n, DIGEST_CHOICE - (size_t)n, "*%u", info.slices);
    }
    int rc = plan ? dev->synchronize() : 0;
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    if (plan && rc == 0) {
        unsigned char before[64];
        const size_t shift = shift_of(g, g->desc.out);
        assert(shift <= sizeof before);
        CHECK_INT(dev->to_host(o->d.bytes, buffer[BUFFER_D].data + shift, o->d.size), 0);
        CHECK_INT(dev->to_host(before, buffer[BUFFER_D].data, sizeof before), 0);
        for (size_t i = 0; i < shift; i++)
            CHECK(before[i] == POISON, "byte %zu before D was written", i);
        for (int i = 0; i < BUFFERS; i++) {
            const char *damage = buffer[i].data ? guarded_damage(dev, &buffer[i]) : NULL;
            CHECK(!damage, "%s: %s", buffer_names[i], damage);
        }
    }
    hewn_gemm_plan_destroy(plan);
    for (int i = 0; i < BUFFERS; i++) guarded_free(dev, &buffer[i]);
}

static struct operands operands_new(const hewn_gemm_desc *s)
{
    int64_t batch_a = s->stride_a ? s->batch : 1, batch_b = s->stride_b ? s->batch : 1;
    int64_t batch_c = s->stride_c ? s->batch : 1;
    struct operands o = {
        .a = matrix_new(s->in, s->major_a, s->m, s->k, s->lda, s->stride_a, batch_a),
        .b = matrix_new(s->in_b ? s->in_b : s->in, s->major_b, s->n, s->k, s->ldb, s->stride_b,
                        batch_b),
        .d = matrix_new(s->out, HEWN_MAJOR_K, s->m, s->n, s->ldd, s->stride_d, s->batch)};
    if (s->with & HEWN_GEMM_WITH_C)
        o.c = matrix_new(s->out, HEWN_MAJOR_K, s->m, s->n, s->ldc, s->stride_c, batch_c);
    if (s->with & HEWN_GEMM_WITH_BIAS)
        o.bias = matrix_new(s->bias_type, HEWN_MAJOR_K, 1, s->n, s->n, 0, 1);
    return o;
}

/* D is poison before; with C in its place, C's elements in poison. C is NaN throughout where it must not
 * be read. */
static void operands_fill(const struct gemm_case *g, struct operands *o)
{
    struct rng r = {g->seed};
    matrix_fill(&o->a, &r, g->pattern);
    matrix_fill(&o->b, &r, g->pattern);
    memset(o->d.bytes, POISON, o->d.size);
    if (o->bias.bytes) matrix_fill(&o->bias, &r, g->pattern);
    if (!o->c.bytes) return;
    matrix_fill(&o->c, &r, g->pattern);
    if (g->beta == 0) memset(o->c.bytes, 0xFF, o->c.size);
    size_t element = hewn_dtype_size(o->d.dtype);
    for (int64_t b = 0; g->in_place && b < o->d.batch; b++)
        for (int64_t i = 0; i < o->d.rows; i++)
            memcpy(o->d.bytes + matrix_at(&o->d, b, i, 0), o->c.bytes + matrix_at(&o->c, b, i, 0),
                   (size_t)o->d.cols * element);
}

static void hold_digest(struct device *dev, const struct gemm_case *g, struct operands *o,
                        char choice[DIGEST_CHOICE])
{
    const char *recorded = digest_case(digest_bytes(DIGEST_BEGIN, o->d.bytes, o->d.size), choice);
    struct gemm_case other = *g;
    char variant[DIGEST_CHOICE];
    if (!recorded) return;
    other.desc.slices = 1;
    if (sscanf(recorded, "%23[^/]/%u*%u", variant, &other.desc.parts, &other.desc.slices) < 2)
        variant[0] = '\0';
    other.desc.variant = variant;
    operands_fill(&other, o);
    run_on_device(dev, &other, o, choice);
    if (!test_case_failures())
        digest_case(digest_bytes(DIGEST_BEGIN, o->d.bytes, o->d.size), choice);
}

static void run_case(struct device *dev, const struct gemm_case *g)
{
    char choice[DIGEST_CHOICE] = "";
    struct operands o = operands_new(&g->desc);
    const uint32_t with = g->desc.with;
    if (o.a.bytes && o.b.bytes && o.d.bytes && (o.c.bytes || !(with & HEWN_GEMM_WITH_C)) &&
        (o.bias.bytes || !(with & HEWN_GEMM_WITH_BIAS))) {
        operands_fill(g, &o);
        run_on_device(dev, g, &o, choice);
        if (!test_case_failures()) {
            judge(g, &o);
            check_untouched(&o.d, POISON);
            hold_digest(dev, g, &o, choice);
        }
    } else {
        CHECK(false, "no host memory for the case");
    }
    free(o.a.bytes);
    free(o.b.bytes);
    free(o.c.bytes);
    free(o.bias.bytes);
    free(o.d.bytes);
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
    int mn_a = s->major_a == HEWN_MAJOR_MN, mn_b = s->major_b == HEWN_MAJOR_MN;
    s->lda = leading(mn_a ? s->m : s->k, s->in, pad_a);
    s->ldb = leading(mn_b ? s->n : s->k, s->in, pad_b);
    s->ldd = leading(s->n, s->out, pad_d);
    if (s->batch < 1) s->batch = 1;
    s->stride_a = s->lda * (mn_a ? s->k : s->m);
    s->stride_b = s->ldb * (mn_b ? s->k : s->n);
    s->stride_d = s->ldd * s->m;
}

/* What comes after the sums: most of hewn.h's formula alone, some of it together, all of it. */
static const struct finish {
    const char *name;
    uint32_t with;
    int act;
    float alpha, beta;
    bool bias_f32, in_place, one_c;
} finishes[] = {
    {"", 0, HEWN_ACT_NONE, 1, 0, false, false, false},
    {"alpha", 0, HEWN_ACT_NONE, -1.5F, 0, false, false, false},
    {"scales", HEWN_GEMM_WITH_SCALE_A | HEWN_GEMM_WITH_SCALE_B, HEWN_ACT_NONE, 1, 0, false, false,
     false},
    {"one scale, alpha", HEWN_GEMM_WITH_SCALE_B, HEWN_ACT_NONE, 0.3F, 0, false, false, false},
    {"C", HEWN_GEMM_WITH_C, HEWN_ACT_NONE, 1, 0.7F, false, false, false},
    {"C in place", HEWN_GEMM_WITH_C, HEWN_ACT_NONE, 1.25F, -1, false, true, false},
    {"C unread", HEWN_GEMM_WITH_C, HEWN_ACT_NONE, 1, 0, false, false, false},
    {"bias f32", HEWN_GEMM_WITH_BIAS, HEWN_ACT_NONE, 1, 0, true, false, false},
    {"bias", HEWN_GEMM_WITH_BIAS, HEWN_ACT_NONE, 1, 0, false, false, false},
    {"relu", 0, HEWN_ACT_RELU, 1, 0, false, false, false},
    {"gelu", 0, HEWN_ACT_GELU, 0.1F, 0, false, false, false},
    {"silu, one C", HEWN_GEMM_WITH_C, HEWN_ACT_SILU, 1, 2, false, false, true},
    {"all, relu", 15, HEWN_ACT_RELU, -2, 0.5F, true, false, false},
    {"all in place, gelu", 15, HEWN_ACT_GELU, 0.2F, 1, false, true, false},
    {"all, silu", 15, HEWN_ACT_SILU, 0.5F, -0.25F, true, false, false},
};
enum { FINISHES = sizeof finishes / sizeof finishes[0] };

/* The layout must be set. */
static void set_finish(struct gemm_case *g, int index, int64_t pad_c)
{
    const struct finish *f = &finishes[index];
    hewn_gemm_desc *s = &g->desc;
    g->finish = f->name;
    g->alpha = f->alpha, g->beta = f->beta;
    g->scale_a = 0.75F, g->scale_b = -3.3F;
    g->in_place = f->in_place;
    s->with = f->with | (f->alpha != 1 ? HEWN_GEMM_WITH_ALPHA : 0U);
    s->act = f->act;
    s->bias_type = f->bias_f32 ? HEWN_F32 : s->out;
    if (!(f->with & HEWN_GEMM_WITH_C)) return;
    s->ldc = f->in_place ? s->ldd : leading(s->n, s->out, pad_c);
    s->stride_c = f->in_place ? s->stride_d : f->one_c ? 0 : s->ldc * s->m;
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
enum {
    EDGE_SHAPES = sizeof edge_shapes / sizeof edge_shapes[0],
    RANDOM_CASES = 220,
    FULL_CASES = 120
};

static void edge_case(struct gemm_case *g, int shape, int variant)
{
    g->desc.m = edge_shapes[shape][0];
    g->desc.n = edge_shapes[shape][1];
    g->desc.k = edge_shapes[shape][2];
    g->desc.in = (shape + variant) % 2 ? HEWN_F16 : HEWN_BF16;
    g->desc.out = out_types[(shape / 2 + variant) % 3];
    g->pattern = (enum pattern)((shape + variant) % PLAIN_PATTERNS);
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
                      {"flat", 6},  {"flat", 8},  {"wide", 1}};
static const int64_t choice_shapes[][3] = {{128, 256, 512},  {1, 1, 520},      {65, 129, 1000},
                                           {257, 513, 576},  {300, 1030, 700}, {16, 2056, 640},
                                           {1025, 136, 512}, {129, 255, 1100}};
enum {
    WIDE =
        sizeof hopper_choices / sizeof hopper_choices[0] - 1, /* its kernel has no 8-bit inputs */
    CHOICES = WIDE,
    CHOICE_SHAPES = sizeof choice_shapes / sizeof choice_shapes[0]
};

static void shape_case(struct gemm_case *g, int choice, int shape)
{
    const int64_t *s = choice_shapes[shape];
    int turn = choice + shape;
    g->desc.m = s[0], g->desc.n = s[1], g->desc.k = s[2];
    g->desc.batch = turn % 4 == 3 ? 2 : 1;
    g->desc.in = turn % 2 ? HEWN_F16 : HEWN_BF16;
    g->desc.out = out_types[turn % 3];
    g->pattern = (enum pattern)(turn / 3 % PLAIN_PATTERNS);
    set_layout(&g->desc, shape % 3, shape % 2, turn % 3);
}

static void choose(struct gemm_case *g, int choice)
{
    g->desc.variant = hopper_choices[choice].variant;
    g->desc.parts = hopper_choices[choice].parts;
}

static void choice_case(struct gemm_case *g, int choice, int shape)
{
    shape_case(g, choice, shape);
    choose(g, choice);
}

/* The same with majors, and with something behind the sums. */
static void choice_case_full(struct gemm_case *g, int choice, int shape)
{
    shape_case(g, choice, shape);
    choose(g, choice);
    g->desc.major_a = (choice + shape * 3) % 4 / 2, g->desc.major_b = (choice + shape * 3) % 2;
    g->pattern = (enum pattern)((choice + shape) / 3 % PATTERNS);
    set_layout(&g->desc, shape % 3, shape % 2, (choice + shape) % 3);
    set_finish(g, (choice * 7 + shape * 4) % FINISHES, shape % 4);
}

/* Tiles of one, two and three k-blocks, several a cluster, in the kernels that store one tile while they
 * multiply the next; some warps' rows lie below D. */
static void short_case(struct gemm_case *g, int index)
{
    static const char *const variants[] = {"plain", "pair", "wide"};
    static const int64_t shapes[][3] = {
        {640, 1000, 8}, {300, 1541, 65}, {1030, 400, 64}, {257, 769, 130}};
    const int64_t *s = shapes[index % 4];
    g->desc.m = s[0], g->desc.n = s[1], g->desc.k = s[2];
    g->desc.variant = variants[index / 4];
    g->desc.parts = 1;
    g->desc.batch = 1 + index % 2;
    g->desc.in = HEWN_BF16;
    g->desc.out = index % 3 ? HEWN_BF16 : HEWN_F16;
    g->pattern = UNIFORM;
    set_layout(&g->desc, index % 3, 0, index % 2);
}
enum { SHORT_CASES = 3 * 4 };

/* The same of 8-bit inputs, k twice as long for as many k-blocks. */
static void shape_case_8(struct gemm_case *g, int choice, int shape)
{
    static const int formats[] = {HEWN_E4M3, HEWN_E5M2};
    int turn = choice + shape, format = (choice * 3 + shape) % 4;
    shape_case(g, choice, shape);
    g->desc.in = formats[format / 2], g->desc.in_b = formats[format % 2];
    g->desc.k *= 2;
    g->desc.major_a = g->desc.major_b = HEWN_MAJOR_K;
    g->desc.accumulate = (choice + shape / 2) % 2 ? HEWN_ACCUMULATE_FAST : HEWN_ACCUMULATE_FULL;
    set_layout(&g->desc, shape % 3, shape % 2, turn % 3);
    set_finish(g, (choice * 7 + shape * 4) % FINISHES, shape % 4);
}

/* The kernels that are told who shares loads, each alone, in pairs along m and along n, in as many parts
 * of K as a cluster takes: some of the shapes of choices, of 8-bit inputs too, and a short one. Inputs are
 * K-major, all they have. */
static const char *const tile_variants[] = {
    "64x256",   "64x256m",  "64x256n",  "128x96",   "128x96m",  "128x96n",  "128x128",
    "128x128m", "128x128n", "128x144",  "128x144m", "128x144n", "128x160",  "128x160m",
    "128x160n", "128x176",  "128x176m", "128x176n", "128x192",  "128x192m", "128x192n",
    "128x224",  "128x224m", "128x224n", "128x256",  "128x256m", "128x256n"};
enum {
    TILE_VARIANTS = sizeof tile_variants / sizeof tile_variants[0],
    TILE_16 = CHOICE_SHAPES / 2,
    TILE_8 = CHOICE_SHAPES / 4,
    TILE_CASES = TILE_VARIANTS * (TILE_16 + TILE_8 + 1)
};

static void tile_case(struct gemm_case *g, int index)
{
    static const uint32_t parts[2][8] = {{1, 2, 3, 8, 5, 4, 1, 7}, {1, 2, 3, 4, 1, 2, 4, 3}};
    int v = index % TILE_VARIANTS, round = index / TILE_VARIANTS,
        short_one = round == TILE_16 + TILE_8;
    if (short_one) {
        short_case(g, v % 4);
    } else if (round < TILE_16) {
        shape_case(g, v, 2 * round + v % 2);
        set_finish(g, (v + round) % 3 ? (v * 7 + round * 4) % FINISHES : 0, round % 4);
    } else {
        shape_case_8(g, v, 4 * (round - TILE_16) + v % 4);
    }
    g->desc.variant = tile_variants[v];
    g->desc.parts = short_one ? 1 : parts[v % 3 > 0][(v + 3 * round) % 8];
}

/* The kernels that spread small tiles: every rectangle of a cluster, of which some tiles lie behind D, with shapes
 * of choices, 8-bit inputs, and a short one. */
static const char *const spread_tiles[] = {"64x64", "64x96", "128x64", "128x80", "128x128r"};
static const char *const rectangles[] = {"",     "-1x2", "-1x4", "-2x1",
                                         "-2x2", "-2x4", "-4x1", "-4x2"};
enum {
    RECTANGLES = sizeof rectangles / sizeof rectangles[0],
    SPREAD_VARIANTS = RECTANGLES * sizeof spread_tiles / sizeof spread_tiles[0],
    SPREAD_ROUNDS = 3,
    SPREAD_CASES = SPREAD_VARIANTS * SPREAD_ROUNDS
};

static void spread_case(struct gemm_case *g, int index)
{
    static char names[SPREAD_VARIANTS][16];
    const int v = index % SPREAD_VARIANTS, round = index / SPREAD_VARIANTS, turn = v + v / 8;
    snprintf(names[v], sizeof names[v], "%s%s", spread_tiles[v / RECTANGLES],
             rectangles[v % RECTANGLES]);
    if (round == 0)
        shape_case(g, turn, turn % CHOICE_SHAPES);
    else if (round == 1)
        shape_case_8(g, turn, turn % CHOICE_SHAPES);
    else
        short_case(g, turn % 4);
    if (round == 0) set_finish(g, turn % 3 ? turn % FINISHES : 0, turn % 4);
    g->desc.variant = names[v];
    g->desc.parts = 1;
}

/* The same of kernels with A and B exchanged, whose results have 16 bits: rows that do not fill a tile, ends of
 * rows of D at every element, parts of K. */
static const char *const exchanged_variants[] = {"80x128",  "80x128m",  "80x128n",
                                                 "96x128",  "96x128m",  "96x128n",
                                                 "160x128", "160x128m", "160x128n"};
enum {
    EXCHANGED_VARIANTS = sizeof exchanged_variants / sizeof exchanged_variants[0],
    EXCHANGED_CASES = EXCHANGED_VARIANTS * (TILE_16 + TILE_8 + 1)
};

static void exchanged_case(struct gemm_case *g, int index)
{
    static const uint32_t parts[2][8] = {{1, 2, 3, 8, 5, 4, 1, 7}, {1, 2, 3, 4, 1, 2, 4, 3}};
    const int v = index % EXCHANGED_VARIANTS, round = index / EXCHANGED_VARIANTS,
              short_one = round == TILE_16 + TILE_8;
    if (short_one) {
        short_case(g, v % 4);
        g->desc.m += v, g->desc.n += 3 * v;
    } else if (round < TILE_16) {
        shape_case(g, v, 2 * round + v % 2);
    } else {
        shape_case_8(g, v, 4 * (round - TILE_16) + v % 4);
    }
    if (!short_one) g->desc.n += round < 3 ? 0 : round;
    g->desc.out = (v + round) % 2 ? HEWN_BF16 : HEWN_F16;
    set_layout(&g->desc, v % 3, round % 2, (v + round) % 3);
    g->desc.ldc = g->desc.stride_c = 0;
    if (!short_one) set_finish(g, (v + round) % 3 ? (v * 7 + round * 4) % FINISHES : 0, round % 4);
    g->desc.variant = exchanged_variants[v];
    g->desc.parts = short_one ? 1 : parts[v % 3 > 0][(v + 3 * round) % 8];
}

/* The kernels for sm_100f: shapes of choices, and tiles of one to three k-blocks, several a CTA or pair. */
static const char *const blackwell_variants[] = {"pair",  "pair192", "pair192n", "pair128",
                                                 "plain", "128x128", "128x64",   "loose"};
enum {
    BLACKWELL_VARIANTS = sizeof blackwell_variants / sizeof blackwell_variants[0],
    BLACKWELL_ROUNDS = 2 * CHOICE_SHAPES + 2,
    BLACKWELL_CASES = BLACKWELL_VARIANTS * BLACKWELL_ROUNDS
};

static void blackwell_case(struct gemm_case *g, int index)
{
    const int v = index % BLACKWELL_VARIANTS, round = index / BLACKWELL_VARIANTS;
    if (round >= 2 * CHOICE_SHAPES)
        short_case(g, (v + round) % 4);
    else if (round % 4 == 3)
        shape_case_8(g, v, round / 2);
    else
        choice_case_full(g, v, round / 2);
    g->desc.variant = blackwell_variants[v];
    if (strncmp(g->desc.variant, "pair192", 7) == 0 && (g->desc.major_a || g->desc.major_b)) {
        g->desc.major_a = g->desc.major_b = HEWN_MAJOR_K;
        set_layout(&g->desc, v % 3, round % 2, round % 3);
        if (g->desc.ldc) g->desc.ldc = g->desc.ldd, g->desc.stride_c = g->desc.stride_d;
    }
    g->desc.parts = 1;
}

/* Sums of 8-bit products that grow along a long k: there sums that are not promoted are far beyond the
 * bound of those that are. Each pair of formats, in the kernels that promote differently. */
static void deep_case(struct gemm_case *g, int index)
{
    static const char *const variants[] = {"pair", "small", "narrow", "plain"};
    g->desc.m = 40, g->desc.n = 264, g->desc.k = 6000;
    g->desc.in = index / 2 ? HEWN_E5M2 : HEWN_E4M3;
    g->desc.in_b = index % 2 ? HEWN_E5M2 : HEWN_E4M3;
    g->desc.out = HEWN_F32;
    g->desc.variant = variants[index];
    g->desc.parts = 1;
    g->pattern = POSITIVE;
    set_layout(&g->desc, 0, 0, 0);
}

/* The kernel of few rows: every number of columns of its MMA, tiles of one to four chunks, some of them not full, parts
 * of K, ends of n and k; each major, each pair of formats, promoted or not, and something behind the sums. */
static const int64_t few_shapes[][3] = {{1, 64, 64},    {1, 1, 1},       {8, 1030, 512},
                                        {9, 100, 1000}, {16, 16, 4096},  {17, 2056, 130},
                                        {32, 300, 520}, {33, 500, 700},  {40, 700, 904},
                                        {64, 1000, 72}, {64, 1800, 250}, {3, 9, 2048},
                                        {5, 4097, 72},  {24, 127, 260},  {60, 72, 1100},
                                        {2, 760, 3000}};
static const uint32_t few_parts[] = {1, 2, 3, 4, 5, 8};
enum {
    FEW_SHAPES = sizeof few_shapes / sizeof few_shapes[0],
    FEW_PARTS = sizeof few_parts / sizeof few_parts[0],
    FEW_CASES = 2 * FEW_SHAPES * FEW_PARTS
};

static void few_case(struct gemm_case *g, int index)
{
    static const int formats[] = {HEWN_E4M3, HEWN_E5M2};
    const int shape = index % FEW_SHAPES, turn = index / FEW_SHAPES, mix = shape * 7 + turn * 5;
    hewn_gemm_desc *s = &g->desc;
    const int narrow = turn >= FEW_PARTS; /* of 8 bits */
    s->m = few_shapes[shape][0], s->n = few_shapes[shape][1], s->k = few_shapes[shape][2];
    s->variant = "few";
    s->in = narrow ? formats[mix / 2 % 2] : mix % 2 ? HEWN_F16 : HEWN_BF16;
    s->in_b = narrow ? formats[mix % 2] : 0;
    s->accumulate = narrow && mix / 4 % 2 ? HEWN_ACCUMULATE_FAST : HEWN_ACCUMULATE_FULL;
    s->out = out_types[mix % 3];
    if (!narrow) s->major_a = mix / 2 % 2, s->major_b = mix / 4 % 2;
    s->batch = mix % 5 == 3 ? 2 : 1;
    uint32_t parts = few_parts[turn % FEW_PARTS];
    int64_t blocks = (s->k + (narrow ? 127 : 63)) / (narrow ? 128 : 64);
    s->parts = parts <= blocks ? parts : 1;
    g->pattern = (enum pattern)(mix / 3 % PATTERNS);
    set_layout(s, shape % 3, shape % 2, mix % 3);
    set_finish(g, (shape * 3 + turn * 4) % FINISHES, shape % 4);
}

/* The same of sm_100f, which has no parts of K, also of up to 256 rows. */
static void few_lanes_case(struct gemm_case *g, int index)
{
    hewn_gemm_desc *s = &g->desc;
    few_case(g, index);
    s->parts = 1;
    if (index % 3 == 0) return;
    s->m = 4 * s->m - index / 3 % 4;
    s->n += index % 5 ? 0 : 1500;
    set_layout(s, index % 3, index % 2, index / 2 % 3);
    s->ldc = s->stride_c = 0;
    set_finish(g, index * 5 % FINISHES, index % 4);
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

static void random_shape(hewn_gemm_desc *s, struct rng *r)
{
    do {
        s->m = ragged(r, 700);
        s->n = ragged(r, 700);
        s->k = ragged(r, rng_below(r, 8) ? 512 : 4096);
        s->batch = rng_below(r, 4) ? 1 : 1 + rng_below(r, 5);
    } while (s->m * s->n * s->k * s->batch > 24000000);
    s->in = rng_below(r, 2) ? HEWN_F16 : HEWN_BF16;
    s->out = out_types[rng_below(r, 3)];
}

static void random_layout(hewn_gemm_desc *s, struct rng *r)
{
    set_layout(s, rng_below(r, 4), rng_below(r, 4), rng_below(r, 4));
    if (s->batch > 1 && rng_below(r, 3) == 0) s->stride_a = 0;
    if (s->batch > 1 && rng_below(r, 3) == 0) s->stride_b = 0;
}

static void random_case(struct gemm_case *g, struct rng *r)
{
    random_shape(&g->desc, r);
    g->pattern = (enum pattern)rng_below(r, PLAIN_PATTERNS);
    random_layout(&g->desc, r);
}

/* Of the whole contract, which sm_90a has. */
static void random_case_full(struct gemm_case *g, struct rng *r)
{
    hewn_gemm_desc *s = &g->desc;
    random_shape(s, r);
    if (rng_below(r, 4) == 0) {
        s->in = rng_below(r, 2) ? HEWN_E4M3 : HEWN_E5M2;
        s->in_b = rng_below(r, 2) ? HEWN_E4M3 : HEWN_E5M2;
        s->accumulate = (int)rng_below(r, 2);
    } else {
        s->major_a = (int)rng_below(r, 2), s->major_b = (int)rng_below(r, 2);
    }
    g->pattern = (enum pattern)rng_below(r, PATTERNS);
    random_layout(s, r);
    set_finish(g, (int)rng_below(r, FINISHES), rng_below(r, 4));
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

/* Rows of any length, addresses of any element: tight or with a few elements behind them; one operand aligned
 * at times, which then comes by TMA. Also the kernel for these where nothing needs it, in several parts. */
static void loose_case(struct gemm_case *g, int index, struct rng *r)
{
    hewn_gemm_desc *s = &g->desc;
    random_case_full(g, r);
    s->m = 1 + s->m % 300, s->n = 1 + s->n % 300;
    if (s->k > 600) s->k = 1 + s->k % 600;
    set_layout(s, 0, 0, 0);
    s->ldc = s->stride_c = 0;
    set_finish(g, (int)rng_below(r, FINISHES), 0);
    if (s->in_b == 0 && hewn_dtype_size(s->in) == 1) s->in_b = s->in;
    const int64_t a = s->major_a ? s->m : s->k, b = s->major_b ? s->n : s->k;
    if (index % 4 != 1) s->lda = a + (int64_t)rng_below(r, 4);
    if (index % 4 != 2) s->ldb = b + (int64_t)rng_below(r, 4);
    if (index % 4 != 3) s->ldd = s->n + (int64_t)rng_below(r, 4);
    s->stride_a = s->lda * (s->major_a ? s->k : s->m) + (int64_t)rng_below(r, 3);
    s->stride_b = s->ldb * (s->major_b ? s->k : s->n) + (int64_t)rng_below(r, 3);
    s->stride_d = s->ldd * s->m + (int64_t)rng_below(r, 3);
    if (s->with & HEWN_GEMM_WITH_C) {
        s->ldc = g->in_place ? s->ldd : s->n + (int64_t)rng_below(r, 4);
        s->stride_c = g->in_place ? s->stride_d : s->ldc * s->m;
    }
    if (index % 3) g->shift = (int)rng_below(r, 16 / (uint32_t)hewn_dtype_size(s->in));
    if (g->shift) s->align = 1;
    if (index % 5 == 4) s->variant = "loose", s->parts = 1 + (uint32_t)rng_below(r, 3);
    if (s->k < 3 * 128) s->parts = s->parts ? 1 : 0;
}
enum { LOOSE_CASES = 60 };

/* Few rows where matrices begin anywhere: every number of rows of A in the ring, tiles from 16 columns on, slices of
 * k from one on, in parts; rows tight, an element longer or aligned, every offset in a chunk of 16 bytes; batches,
 * and something behind the sums. */
static const int64_t odd_shapes[][3] = {{1, 65, 63},    {1, 1, 1},       {8, 1031, 517},
                                        {9, 100, 1001}, {16, 16, 4095},  {17, 1057, 129},
                                        {32, 301, 521}, {33, 200, 701},  {40, 703, 905},
                                        {64, 530, 73},  {64, 240, 1283}, {3, 9, 2047},
                                        {5, 2051, 75},  {24, 127, 261},  {60, 72, 1101},
                                        {2, 760, 3001}};
static const uint32_t odd_parts[] = {1, 2, 3, 8}, odd_most = 16;
enum {
    ODD_SHAPES = sizeof odd_shapes / sizeof odd_shapes[0],
    ODD_PARTS = sizeof odd_parts / sizeof odd_parts[0],
    ODD_CASES = ODD_SHAPES * ODD_PARTS,
    ODD_MOST_CASES = 3 /* of `odd_most` parts */
};

static void odd_case(struct gemm_case *g, int index)
{
    const int shape = index % ODD_SHAPES, turn = index / ODD_SHAPES, mix = shape * 7 + turn * 5;
    hewn_gemm_desc *s = &g->desc;
    s->m = odd_shapes[shape][0], s->n = odd_shapes[shape][1], s->k = odd_shapes[shape][2];
    s->variant = "oddfew";
    s->in = mix % 2 ? HEWN_F16 : HEWN_BF16;
    s->out = out_types[mix % 3];
    s->batch = mix % 4 == 3 ? 2 : 1;
    const int64_t slices = (s->k + 127) / 128;
    const uint32_t parts = index < ODD_CASES ? odd_parts[turn] : odd_most;
    s->parts = parts <= slices ? parts : 1;
    g->pattern = (enum pattern)(mix / 3 % PATTERNS);
    set_layout(s, 0, 0, 0);
    set_finish(g, (shape * 3 + turn * 4) % FINISHES, 0);
    if (mix % 5 != 1) s->lda = s->k + mix % 3;
    if (mix % 5 != 2) s->ldb = s->k + mix / 2 % 3;
    if (mix % 5 != 3) s->ldd = s->n + mix % 2;
    s->stride_a = mix % 8 == 3 ? 0 : s->lda * s->m + mix % 3;
    s->stride_b = mix % 8 == 7 ? 0 : s->ldb * s->n + mix % 2;
    s->stride_d = s->ldd * s->m + mix % 3;
    if (s->with & HEWN_GEMM_WITH_C) {
        s->ldc = g->in_place ? s->ldd : s->n + mix % 3;
        s->stride_c = g->in_place ? s->stride_d : s->stride_c ? s->ldc * s->m : 0;
    }
    g->shift = mix % 8;
    if (g->shift) s->align = 1;
}

/* Small products where matrices begin anywhere: tiles that are full, of one row or column and between, several of
 * them either way; one step of k to as many as several rounds of the warps, whole and not, in parts. */
static const int64_t small_shapes[][3] = {{1, 1, 1},       {16, 16, 32},   {17, 33, 31},
                                          {119, 478, 116}, {68, 146, 650}, {31, 65, 257},
                                          {96, 64, 1027},  {130, 9, 77},   {5, 200, 2055},
                                          {64, 32, 511}};
enum {
    SMALL_SHAPES = sizeof small_shapes / sizeof small_shapes[0],
    SMALL_CASES = 6 * SMALL_SHAPES
};

static void small_case(struct gemm_case *g, int index)
{
    static const uint32_t parts[] = {1, 1, 2, 3, 8, 1};
    const int shape = index % SMALL_SHAPES, turn = index / SMALL_SHAPES, mix = shape * 7 + turn * 5;
    hewn_gemm_desc *s = &g->desc;
    s->m = small_shapes[shape][0], s->n = small_shapes[shape][1], s->k = small_shapes[shape][2];
    s->variant = (shape + turn) % 2 ? "odd16x16" : "odd32x32";
    s->in = mix % 2 ? HEWN_F16 : HEWN_BF16;
    s->out = out_types[mix % 3];
    s->batch = mix % 4 == 3 ? 2 : 1;
    s->parts = parts[turn] <= (s->k + 31) / 32 ? parts[turn] : 1;
    g->pattern = (enum pattern)(mix / 3 % PATTERNS);
    set_layout(s, 0, 0, 0);
    set_finish(g, (shape * 3 + turn * 4) % FINISHES, 0);
    if (mix % 5 != 1) s->lda = s->k + mix % 9;
    if (mix % 5 != 2) s->ldb = s->k + mix / 2 % 9;
    if (mix % 5 != 3) s->ldd = s->n + mix % 2;
    s->stride_a = mix % 8 == 3 ? 0 : s->lda * s->m + mix % 3;
    s->stride_b = mix % 8 == 7 ? 0 : s->ldb * s->n + mix % 2;
    s->stride_d = s->ldd * s->m + mix % 3;
    if (s->with & HEWN_GEMM_WITH_C) {
        s->ldc = g->in_place ? s->ldd : s->n + mix % 3;
        s->stride_c = g->in_place ? s->stride_d : s->stride_c ? s->ldc * s->m : 0;
    }
    g->shift = mix % 8;
    if (g->shift) s->align = 1;
}

/* The kernels that shift rows into place: pitches of every class modulo 16 bytes, addresses of any element, ends
 * of k and of rows everywhere, more tiles than CTAs, short and single k-blocks, parts of K. */
enum { SHIFTED_CASES = 120 };

static void shifted_shape(hewn_gemm_desc *s, int index, struct rng *r)
{
    static const int64_t shapes[][3] = {{1, 1, 1},      {127, 257, 65}, {300, 300, 333},
                                        {129, 513, 17}, {9, 700, 1000}, {640, 1290, 70},
                                        {5, 3, 130},    {257, 127, 900}};
    const int64_t *shape = shapes[index % 8];
    if (index % 3) {
        s->m = shape[0], s->n = shape[1], s->k = shape[2];
    } else {
        s->m = 1 + (int64_t)rng_below(r, 400), s->n = 1 + (int64_t)rng_below(r, 600);
        s->k = 1 + (int64_t)rng_below(r, 600);
    }
    s->batch = index % 7 == 5 ? 2 : 1;
    s->in = index % 4 == 3 ? HEWN_F16 : HEWN_BF16, s->out = out_types[index / 3 % 3];
    s->major_a = index / 2 % 4 == 1, s->major_b = index / 3 % 4 == 1;
    set_layout(s, 0, 0, 0);
    s->ldc = s->stride_c = 0;
}

static void shifted_case(struct gemm_case *g, int index, struct rng *r)
{
    static const char *const variants[] = {"odd64", "odd128", "odd256"};
    static const uint32_t most[] = {7, 7, 4};
    hewn_gemm_desc *s = &g->desc;
    shifted_shape(s, index, r);
    g->pattern = (enum pattern)(index / 5 % PATTERNS);
    set_finish(g, index % 2 ? (int)rng_below(r, FINISHES) : 0, 0);
    const int64_t a = s->major_a ? s->m : s->k, b = s->major_b ? s->n : s->k;
    s->lda = a + (int64_t)rng_below(r, 9);
    s->ldb = index % 4 ? b + (int64_t)rng_below(r, 9) : s->lda - a + b;
    s->ldd = s->n + (int64_t)rng_below(r, 4);
    s->stride_a = index % 14 == 5 ? 0 : (s->lda * (s->major_a ? s->k : s->m) + 7) / 8 * 8;
    s->stride_b = (s->ldb * (s->major_b ? s->k : s->n) + 15) / 8 * 8;
    s->stride_d = s->ldd * s->m + (int64_t)rng_below(r, 3);
    if (s->with & HEWN_GEMM_WITH_C) {
        s->ldc = g->in_place ? s->ldd : s->n + (int64_t)rng_below(r, 4);
        s->stride_c = g->in_place ? s->stride_d : s->ldc * s->m;
    }
    if (index % 2) g->shift = 1 + (int)rng_below(r, 7);
    if (g->shift) s->align = 1;
    s->variant = variants[index % 3];
    uint32_t parts = 1 + (uint32_t)rng_below(r, most[index % 3]);
    s->parts = index % 5 < 2 && s->k > 128 * (parts - 1) + 64 ? parts : 1;
}

/* Slices of K, with and without parts, of each type and major; ends of rows of the sums and of K, one to eight
 * lanes of a quad, and something behind the sums. Then K of no equal slices, and rows of any length. */
struct slice_shape {
    int64_t m, n, k;
    const char *variant;
    uint32_t parts, slices;
};
static const struct slice_shape slice_shapes[] = {
    {100, 72, 1024, "split", 1, 2},   {65, 129, 1040, "flat", 2, 5},
    {1, 1, 520, "narrow", 1, 5},      {130, 66, 4096, "128x96n", 2, 16},
    {16, 16, 4096, "few", 2, 8},      {33, 257, 768, "few", 1, 3},
    {129, 127, 576, "128x128", 3, 4}, {200, 30, 8192, "split", 1, 64},
    {7, 300, 2112, "64x256m", 1, 33}, {64, 64, 640, "plain", 1, 10},
    {90, 1030, 336, "pair", 1, 7},    {300, 500, 512, "wide", 1, 2},
    {90, 130, 1043, "128x96", 2, 3},  {33, 100, 777, "few", 2, 5},
    {184, 116, 2391, "odd64", 2, 4},  {129, 250, 1046, "odd128", 1, 3},
    {70, 300, 999, "odd256", 1, 2},   {64, 101, 901, "loose", 1, 7}};
static const struct slice_shape blackwell_slices[] = {
    {100, 72, 1024, "128x64", 1, 2}, {65, 129, 1040, "128x128", 1, 5},
    {1, 1, 520, "pair128", 1, 5},    {300, 500, 512, "pair", 1, 2},
    {33, 257, 768, "plain", 1, 3},   {200, 30, 8192, "128x64", 1, 64},
    {7, 300, 2112, "pair", 1, 33},   {90, 130, 1043, "pair128", 1, 3},
    {16, 16, 8192, NULL, 0, 0},      {129, 250, 1046, "plain", 1, 3}};
enum {
    SLICE_SHAPES = sizeof slice_shapes / sizeof slice_shapes[0],
    BLACKWELL_SLICES = sizeof blackwell_slices / sizeof blackwell_slices[0],
    SLICE_TURNS = 5
};

static void slice_case(struct gemm_case *g, const struct slice_shape *list, int count, int index)
{
    static const int formats[] = {HEWN_E4M3, HEWN_E5M2};
    const int shape = index % count, turn = index / count, mix = shape + 5 * turn;
    const char *variant = list[shape].variant ? list[shape].variant : "";
    hewn_gemm_desc *s = &g->desc;
    s->m = list[shape].m, s->n = list[shape].n, s->k = list[shape].k;
    s->variant = list[shape].variant;
    s->parts = list[shape].parts, s->slices = list[shape].slices;
    const bool odd = variant[0] == 'o', loose = odd || !strcmp(variant, "loose");
    const bool eight = turn == 2 && strcmp(variant, "wide") != 0 && !odd;
    if (eight) s->k *= 2;
    s->in = eight ? formats[mix / 2 % 2] : mix % 2 ? HEWN_F16 : HEWN_BF16;
    s->in_b = eight ? formats[mix % 2] : 0;
    s->accumulate = eight && mix / 4 % 2 ? HEWN_ACCUMULATE_FAST : HEWN_ACCUMULATE_FULL;
    s->out = out_types[mix % 3];
    if (!eight && !loose && (list == blackwell_slices || !strchr(variant, 'x')))
        s->major_a = mix / 2 % 2, s->major_b = mix / 4 % 2;
    g->pattern = (enum pattern)(mix % PATTERNS);
    set_layout(s, shape % 3, shape % 2, mix % 3);
    if (loose) s->lda = s->k + turn % 3, s->ldb = s->k + turn % 2, s->ldd = s->n + turn % 2;
    set_finish(g, (shape * 4 + turn * 3) % FINISHES, shape % 4);
}

static void maybe_run(struct device *dev, struct gemm_case *g)
{
    const hewn_gemm_desc *s = &g->desc;
    char choice[24] = "";
    if (s->variant) snprintf(choice, sizeof choice, " %s/%u", s->variant, s->parts);
    if (s->slices)
        snprintf(choice + strlen(choice), sizeof choice - strlen(choice), "*%u", s->slices);
    if (test_case("m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldd=%lld batch=%lld%s%s%s%s %s%s%s%s -> "
                  "%s %s%s%s%s",
                  (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->lda,
                  (long long)s->ldb, (long long)s->ldd, (long long)s->batch,
                  s->batch > 1 && !s->stride_a ? " one A" : "",
                  s->batch > 1 && !s->stride_b ? " one B" : "", s->major_a ? " MN-major A" : "",
                  s->major_b ? " MN-major B" : "", hewn_dtype_name(s->in), s->in_b ? " * " : "",
                  s->in_b ? hewn_dtype_name(s->in_b) : "", s->accumulate ? " fast" : "",
                  hewn_dtype_name(s->out), pattern_names[g->pattern], choice,
                  *g->finish ? ", " : "", g->finish)) {
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
            struct gemm_case g = {.alpha = 1, .finish = ""};
            edge_case(&g, i, variant);
            maybe_run(&dev, &g);
        }
    for (int i = 0; i < 16; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        long_case(&g, i);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < CHOICES * CHOICE_SHAPES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        choice_case(&g, i / CHOICE_SHAPES, i % CHOICE_SHAPES);
        maybe_run(&dev, &g);
    }
    for (int i = 0; i < RANDOM_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        random_case(&g, &r);
        maybe_run(&dev, &g);
    }
    r = (struct rng){test_seed() + 1};
    for (int i = 0; dev.info.cc_major == 9 && i < CHOICES * CHOICE_SHAPES / 2; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        choice_case_full(&g, i % CHOICES, i / CHOICES * 2 + i % 2);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < CHOICES * CHOICE_SHAPES / 2; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        shape_case_8(&g, i % CHOICES, i / CHOICES * 2 + i % 2);
        choose(&g, i % CHOICES);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < 4; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        deep_case(&g, i);
        maybe_run(&dev, &g);
    }
    for (int i = 0; i < FULL_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        random_case_full(&g, &r);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < 2 * CHOICE_SHAPES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        (i < CHOICE_SHAPES ? choice_case : choice_case_full)(&g, WIDE, i % CHOICE_SHAPES);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < SHORT_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        short_case(&g, i);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < TILE_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        tile_case(&g, i);
        maybe_run(&dev, &g);
    }
    r = (struct rng){test_seed() + 2};
    for (int i = 0; i < LOOSE_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        loose_case(&g, i, &r);
        if (dev.info.cc_major == 10 && g.desc.parts) g.desc.parts = 1;
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < FEW_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        few_case(&g, i);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < ODD_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        odd_case(&g, i);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < SMALL_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        small_case(&g, i);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < ODD_MOST_CASES; i++) {
        static const int shapes[] = {4, 11, 15}; /* the longest k */
        struct gemm_case g = {.alpha = 1, .finish = ""};
        if (dev.info.sm_count < (int)odd_most + (int)odd_most / 8) continue;
        odd_case(&g, ODD_CASES + shapes[i]);
        maybe_run(&dev, &g);
    }
    r = (struct rng){test_seed() + 3};
    for (int i = 0; dev.info.cc_major == 9 && i < SHIFTED_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        shifted_case(&g, i, &r);
        maybe_run(&dev, &g);
    }
    const struct slice_shape *sliced = dev.info.cc_major == 9 ? slice_shapes : blackwell_slices;
    const int slice_count = dev.info.cc_major == 9 ? SLICE_SHAPES : BLACKWELL_SLICES;
    for (int i = 0; i < SLICE_TURNS * slice_count; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        slice_case(&g, sliced, slice_count, i);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < EXCHANGED_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        exchanged_case(&g, i);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 9 && i < SPREAD_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        spread_case(&g, i);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 10 && i < FEW_CASES / 2; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        few_lanes_case(&g, 2 * i + i / FEW_SHAPES % 2);
        maybe_run(&dev, &g);
    }
    for (int i = 0; dev.info.cc_major == 10 && i < BLACKWELL_CASES; i++) {
        struct gemm_case g = {.alpha = 1, .finish = ""};
        blackwell_case(&g, i);
        maybe_run(&dev, &g);
    }
    digest_end();
    device_close(&dev);
    return test_end();
}
