/*
 * Products of hewn_gemm with a scale for each row and column, of s8, and with SwiGLU, against float64: every
 * kernel that has them, with parts of K; tails of k, ends of rows and columns; numbers, scales and what comes
 * after them together.
 *   --random N   N cases of the whole contract of aligned operands, kernels named and chosen
 *   --plans      on sm_100f: each kernel once with each of its ways of loading and of finishing, several tiles a
 *                CTA, no box outside its matrix
 * The bounds and their reasons: gemm_judge.c.
 */
#include "gemm_case.h"

#include "lib/device.h"
#include "lib/digest.h"
#include "lib/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xA5, NAME = 24, HOPPER = 9 };

#define ROWS    HEWN_GEMM_WITH_SCALE_ROWS
#define COLUMNS HEWN_GEMM_WITH_SCALE_COLUMNS

/* ---- one case ---- */

enum { A, B, C, BIAS, SCALE_A, SCALE_B, D, WORKSPACE, BUFFERS };

struct run {
    struct gemm_case g;
    struct operands o;
    float *scales[2]; /* of rows, of columns */
    size_t scale_bytes[2];
    struct guarded buffer[BUFFERS];
};

static int64_t problems(int64_t batch, int64_t stride)
{
    return stride ? batch : 1;
}

static bool draw_scales(struct run *r, int i, int64_t count, int64_t planes, struct rng *rng)
{
    const int64_t all = (count + 3) / 4 * 4 * planes;
    r->scale_bytes[i] = (size_t)all * sizeof(float);
    r->scales[i] = malloc(r->scale_bytes[i]);
    for (int64_t x = 0; r->scales[i] && x < all; x++)
        r->scales[i][x] = 0.02F * (0.1F + (float)rng_unit(rng));
    return r->scales[i] != NULL;
}

static bool fill(struct run *r)
{
    const hewn_gemm_desc *s = &r->g.desc;
    struct rng rng = {r->g.seed};
    struct operands *o = &r->o;
    const int64_t a = problems(s->batch, s->stride_a), b = problems(s->batch, s->stride_b);
    const int64_t rows_b = s->act == HEWN_ACT_SWIGLU ? 2 * s->n : s->n;
    o->a = matrix_new(s->in, s->major_a, s->m, s->k, s->lda, s->stride_a, a);
    o->b = matrix_new(s->in_b ? s->in_b : s->in, s->major_b, rows_b, s->k, s->ldb, s->stride_b, b);
    o->d = matrix_new(s->out, HEWN_MAJOR_K, s->m, s->n, s->ldd, s->stride_d, s->batch);
    o->c = matrix_new(s->out, HEWN_MAJOR_K, s->m, s->n, s->ldd, s->stride_d, s->batch);
    o->bias = matrix_new(s->bias_type, HEWN_MAJOR_K, 1, s->n, s->n, 0, 1);
    if (!o->a.bytes || !o->b.bytes || !o->d.bytes || !o->c.bytes || !o->bias.bytes ||
        !draw_scales(r, 0, s->m, a, &rng) || !draw_scales(r, 1, rows_b, b, &rng))
        return false;
    matrix_fill(&o->a, &rng, r->g.pattern);
    matrix_fill(&o->b, &rng, r->g.pattern);
    matrix_fill(&o->c, &rng, UNIFORM);
    matrix_fill(&o->bias, &rng, UNIFORM);
    memset(o->d.bytes, POISON, o->d.size);
    r->g.rows = r->scales[0], r->g.columns = r->scales[1];
    return true;
}

static bool put(struct device *dev, struct guarded *g, const void *bytes, size_t size)
{
    return guarded_new(dev, g, size, 0xFF) && dev->to_device(g->data, bytes, size) == 0;
}

static bool upload(struct device *dev, struct run *r)
{
    const uint32_t with = r->g.desc.with;
    const struct operands *o = &r->o;
    const bool rows = with & HEWN_GEMM_WITH_SCALE_ROWS,
               columns = with & HEWN_GEMM_WITH_SCALE_COLUMNS;
    return put(dev, &r->buffer[A], o->a.bytes, o->a.size) &&
           put(dev, &r->buffer[B], o->b.bytes, o->b.size) &&
           (!(with & HEWN_GEMM_WITH_C) || put(dev, &r->buffer[C], o->c.bytes, o->c.size)) &&
           (!(with & HEWN_GEMM_WITH_BIAS) ||
            put(dev, &r->buffer[BIAS], o->bias.bytes, o->bias.size)) &&
           (!(rows || with & HEWN_GEMM_WITH_SCALE_A) ||
            put(dev, &r->buffer[SCALE_A], rows ? r->scales[0] : &r->g.scale_a,
                rows ? r->scale_bytes[0] : sizeof(float))) &&
           (!(columns || with & HEWN_GEMM_WITH_SCALE_B) ||
            put(dev, &r->buffer[SCALE_B], columns ? r->scales[1] : &r->g.scale_b,
                columns ? r->scale_bytes[1] : sizeof(float))) &&
           guarded_new(dev, &r->buffer[D], o->d.size, POISON);
}

static void check_gaps(const struct matrix *d)
{
    const size_t width = (size_t)d->cols * hewn_dtype_size(d->dtype);
    size_t at = 0, damaged = 0;
    for (int64_t b = 0; b < d->batch; b++)
        for (int64_t i = 0; i < d->rows; i++) {
            const size_t start = matrix_at(d, b, i, 0);
            for (; at < start; at++) damaged += d->bytes[at] != POISON;
            at = start + width;
        }
    CHECK(damaged == 0, "%zu bytes between the rows of D were written", damaged);
}

static void run_on_device(struct device *dev, struct run *r)
{
    hewn_gemm_plan *plan = NULL;
    hewn_error err = {0};
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    if (hewn_gemm_plan_create(dev->context, &r->g.desc, &plan, &err)) {
        CHECK(false, "plan: %s", err.message);
        return;
    }
    CHECK_INT(hewn_gemm_plan_describe(plan, &info, &err), HEWN_OK);
    const bool scales = r->g.desc.in == HEWN_S8 || r->g.desc.with & (ROWS | COLUMNS);
    const char *family = !scales                        ? "gemm_"
                         : r->g.desc.in == HEWN_S8      ? "gemm_s8_"
                         : dev->info.cc_major == HOPPER ? "gemm_e4m3_"
                                                        : "gemm_fp8_";
    if (r->g.desc.act == HEWN_ACT_SWIGLU)
        CHECK(strstr(info.variant, "glu"), "%s ran", info.variant);
    else
        CHECK(strstr(info.module, family), "%s ran", info.module);
    CHECK(!info.workspace || info.slices > 1, "a workspace");
    CHECK(!info.workspace || guarded_new(dev, &r->buffer[WORKSPACE], info.workspace, 0xFF),
          "no device memory for the workspace");
    r->o.parts = info.parts, r->o.slices = info.slices;
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = r->buffer[A].data,
                                 .b = r->buffer[B].data,
                                 .d = r->buffer[D].data,
                                 .c = r->buffer[C].data,
                                 .bias = r->buffer[BIAS].data,
                                 .scale_a = r->buffer[SCALE_A].data,
                                 .scale_b = r->buffer[SCALE_B].data,
                                 .alpha = r->g.alpha,
                                 .beta = r->g.beta,
                                 .workspace = r->buffer[WORKSPACE].data};
    if (hewn_gemm_plan_run(plan, &args, NULL, &err)) CHECK(false, "run: %s", err.message);
    CHECK_INT(dev->synchronize(), 0);
    CHECK_INT(dev->to_host(r->o.d.bytes, r->buffer[D].data, r->o.d.size), 0);
    for (int i = 0; i < BUFFERS; i++) {
        const char *damage = r->buffer[i].data ? guarded_damage(dev, &r->buffer[i]) : NULL;
        CHECK(!damage, "buffer %d: %s", i, damage);
    }
    hewn_gemm_plan_destroy(plan);
}

static void run_case(struct device *dev, const struct gemm_case *g)
{
    struct run r = {.g = *g};
    const bool ready = fill(&r) && upload(dev, &r);
    CHECK(ready, "no memory for the case");
    if (ready) run_on_device(dev, &r);
    if (ready && !test_case_failures()) {
        judge(&r.g, &r.o);
        check_gaps(&r.o.d);
    }
    for (int i = 0; i < BUFFERS; i++) guarded_free(dev, &r.buffer[i]);
    free(r.o.a.bytes);
    free(r.o.b.bytes);
    free(r.o.c.bytes);
    free(r.o.d.bytes);
    free(r.o.bias.bytes);
    free(r.scales[0]);
    free(r.scales[1]);
}

/* ---- cases ---- */

static const struct finish {
    const char *name;
    uint32_t with;
    int act;
    float alpha, beta;
} finishes[] = {
    {"rows, columns", ROWS | COLUMNS, HEWN_ACT_NONE, 1, 0},
    {"rows", ROWS, HEWN_ACT_NONE, 1, 0},
    {"columns, alpha", COLUMNS | HEWN_GEMM_WITH_ALPHA, HEWN_ACT_NONE, -1.5F, 0},
    {"rows, one scale_b", ROWS | HEWN_GEMM_WITH_SCALE_B, HEWN_ACT_NONE, 1, 0},
    {"columns, one scale_a, silu", COLUMNS | HEWN_GEMM_WITH_SCALE_A, HEWN_ACT_SILU, 1, 0},
    {"all, gelu", ROWS | COLUMNS | HEWN_GEMM_WITH_ALPHA | HEWN_GEMM_WITH_C | HEWN_GEMM_WITH_BIAS,
     HEWN_ACT_GELU, 0.5F, -0.25F},
    {"rows, columns, bias", ROWS | COLUMNS | HEWN_GEMM_WITH_BIAS, HEWN_ACT_RELU, 1, 0},
};
enum { FINISHES = sizeof finishes / sizeof *finishes };

struct kernel {
    const char *variant;
    int most_m;
    uint32_t parts[4];
};
static const struct kernel kernels[] = {
    {"few", 64, {1, 2, 3, 8}},     {"80x128", 0, {1, 2, 8, 3}},  {"80x128m", 0, {1, 2, 4, 3}},
    {"80x128n", 0, {1, 3, 2, 4}},  {"128x128", 0, {1, 3, 8, 2}}, {"128x128m", 0, {1, 2, 4, 3}},
    {"128x128n", 0, {1, 4, 2, 3}}, {"128x192", 0, {1, 2, 5, 8}}, {"128x192m", 0, {1, 2, 4, 3}},
    {"128x192n", 0, {1, 2, 3, 4}}, {"128x256", 0, {1, 2, 7, 8}}, {"128x256m", 0, {1, 4, 3, 2}},
    {"128x256n", 0, {1, 2, 4, 3}},
};
/* On sm_100f: of e4m3 alone. */
static const struct kernel blackwell[] = {
    {"pair", 0, {1, 1, 1, 1}},    {"pair192", 0, {1, 1, 1, 1}}, {"pair192n", 0, {1, 1, 1, 1}},
    {"pair128", 0, {1, 1, 1, 1}}, {"plain", 0, {1, 1, 1, 1}},   {"128x128", 0, {1, 1, 1, 1}},
    {"128x64", 0, {1, 1, 1, 1}}};
static const int64_t shapes[][3] = {{128, 256, 1024}, {1, 1, 1040},     {65, 129, 1600},
                                    {257, 513, 1152}, {300, 390, 1200}, {16, 1030, 1280},
                                    {33, 71, 4112},   {129, 255, 1088}};
enum {
    KERNELS = sizeof kernels / sizeof *kernels,
    BLACKWELL = sizeof blackwell / sizeof *blackwell,
    SHAPES = sizeof shapes / sizeof *shapes,
    ROUNDS = 8 /* cases of a kernel */
};

static int64_t padded(int64_t columns, int dtype, int64_t extra)
{
    const int64_t unit = 16 / (int64_t)hewn_dtype_size(dtype);
    return (columns + unit - 1) / unit * unit + extra * unit;
}

static void set_finish(struct gemm_case *g, int index)
{
    const struct finish *f = &finishes[index % FINISHES];
    g->desc.with = f->with, g->desc.act = f->act;
    g->finish = f->name;
    g->alpha = f->alpha, g->beta = f->beta;
    g->scale_a = 0.04F, g->scale_b = -0.03F;
    g->desc.bias_type = index % 2 ? HEWN_F32 : g->desc.out;
}

/* Rows of all matrices; strides 0 where all problems share an operand. */
static void set_layout(hewn_gemm_desc *s, int mix)
{
    s->struct_size = sizeof *s;
    const int64_t rows_b = s->n * (s->act == HEWN_ACT_SWIGLU ? 2 : 1);
    s->lda = padded(s->major_a ? s->m : s->k, s->in, mix % 3);
    s->ldb = padded(s->major_b ? s->n : s->k, s->in, mix % 2);
    s->ldd = padded(s->n, s->out, mix % 3);
    s->stride_a = mix % 5 == 4 ? 0 : s->lda * (s->major_a ? s->k : s->m);
    s->stride_b = mix % 7 == 3 ? 0 : s->ldb * (s->major_b ? s->k : rows_b);
    s->stride_d = s->ldd * s->m;
    if (!(s->with & HEWN_GEMM_WITH_C)) return;
    s->ldc = s->ldd;
    s->stride_c = s->stride_d;
}

static void kernel_case(struct gemm_case *g, const struct kernel *list, int count, int index)
{
    static const int outs[] = {HEWN_BF16, HEWN_F32, HEWN_F16, HEWN_S32};
    hewn_gemm_desc *s = &g->desc;
    const int k = index % count, round = index / count, mix = k * 3 + round;
    const struct kernel *kernel = &list[k];
    const int64_t *shape = shapes[mix % SHAPES];
    const bool narrow = strstr(kernel->variant, "80x") != NULL;
    s->m = kernel->most_m ? 1 + (shape[0] - 1) % kernel->most_m : shape[0];
    s->n = shape[1], s->k = shape[2] - (round % 4 == 3 ? 7 : 0);
    s->in = round % 2 && list == kernels ? HEWN_S8 : HEWN_E4M3;
    s->out = outs[round / 2 % (narrow ? 2 : s->in == HEWN_S8 ? 4 : 3)];
    if (narrow && s->out == HEWN_F32) s->out = HEWN_F16;
    s->accumulate = mix % 2 ? HEWN_ACCUMULATE_FAST : HEWN_ACCUMULATE_FULL;
    s->batch = mix % 4 == 1 ? 2 : 1;
    s->variant = kernel->variant;
    s->parts = kernel->parts[round % 4];
    g->pattern = (enum pattern)(mix % PLAIN_PATTERNS);
    if (s->out != HEWN_S32)
        set_finish(g, mix);
    else
        g->alpha = 1, g->finish = "", s->bias_type = HEWN_F32;
    set_layout(s, mix);
}

/* Kernels as they are chosen; sums of s8 that wrap. */
static const int64_t chosen[][3] = {{1, 512, 4096},   {7, 100, 136},   {64, 300, 512},
                                    {100, 1000, 700}, {200, 96, 2048}, {513, 260, 264},
                                    {4, 5, 3},        {129, 129, 16},  {8, 16, 140000}};
enum { CHOSEN = sizeof chosen / sizeof *chosen };

static void chosen_case(struct gemm_case *g, bool s8, int index)
{
    hewn_gemm_desc *s = &g->desc;
    const int64_t *shape = chosen[index / 2];
    s->m = shape[0], s->n = shape[1], s->k = shape[2];
    s->in = s8 && index % 2 ? HEWN_S8 : HEWN_E4M3;
    s->out = s8 && index % 2 && index / 2 % 2 == 0 ? HEWN_S32 : HEWN_BF16;
    s->batch = 1;
    g->pattern = UNIFORM;
    if (s->out != HEWN_S32)
        set_finish(g, index / 2);
    else
        g->alpha = 1, g->finish = "", s->bias_type = HEWN_F32;
    set_layout(s, index);
}

/* SwiGLU: each kernel alone and in pairs, tiles that end in D's last columns and rows, k-blocks from one on, more
 * tiles than CTAs, one B for a batch; and kernels as they are chosen. */
static const char *const glu_variants[] = {"glu128", "glu128m", "glu128n", "glu64",
                                           "glu64m", "glu64n",  "glufew",  NULL};
/* On sm_100f: of 8 bits, too. */
static const char *const blackwell_glu[] = {"pair-glu",  "pair128-glu", "plain-glu", "128x128-glu",
                                            "plain-glu", NULL,          "pair-glu",  NULL};
static const int64_t glu_shapes[][3] = {{128, 128, 256}, {1, 1, 8},        {65, 129, 600},
                                        {257, 513, 72},  {300, 1030, 136}, {700, 260, 64},
                                        {129, 63, 1096}};
enum {
    GLU_VARIANTS = sizeof glu_variants / sizeof *glu_variants,
    GLU_SHAPES = sizeof glu_shapes / sizeof *glu_shapes,
    GLU_CASES = GLU_VARIANTS * GLU_SHAPES
};

static void glu_case(struct gemm_case *g, const char *const *variants, int index)
{
    static const uint32_t with[] = {0, HEWN_GEMM_WITH_ALPHA,
                                    HEWN_GEMM_WITH_SCALE_A | HEWN_GEMM_WITH_SCALE_B};
    hewn_gemm_desc *s = &g->desc;
    const int v = index % GLU_VARIANTS, shape = index / GLU_VARIANTS, mix = v * 2 + shape;
    const bool few = variants[v] && !strcmp(variants[v], "glufew");
    s->m = glu_shapes[shape][0], s->n = glu_shapes[shape][1], s->k = glu_shapes[shape][2];
    if (few) s->m = 1 + 9 * shape % 64;
    s->act = HEWN_ACT_SWIGLU;
    s->in = mix % 2 ? HEWN_F16 : HEWN_BF16;
    s->out = mix % 3 == 2 ? HEWN_F32 : s->in;
    if (variants == blackwell_glu && v > 3) {
        s->in = mix % 2 ? HEWN_E5M2 : HEWN_E4M3, s->in_b = HEWN_E4M3;
        s->k *= 2;
    }
    s->variant = variants[v];
    s->parts = few && s->k > 500 ? 3 : s->variant ? 1 : 0;
    s->constant_b = few && shape % 2;
    s->batch = mix % 4 == 1 ? 2 : 1;
    s->with = with[(v + shape) % 3];
    g->alpha = s->with & HEWN_GEMM_WITH_ALPHA ? -0.75F : 1;
    g->scale_a = 0.5F, g->scale_b = -1.3F;
    g->finish = (v + shape) % 3 == 0   ? "SwiGLU"
                : (v + shape) % 3 == 1 ? "SwiGLU, alpha"
                                       : "SwiGLU, scales";
    g->pattern = (enum pattern)(mix % PLAIN_PATTERNS);
    s->bias_type = HEWN_F32;
    set_layout(s, mix);
}

/* Few rows on sm_100f, whose CTAs load A together: by two and by four of 8 SMs, shares that end behind the last row,
 * several tiles a CTA, clusters whose last CTA has no columns, more stages than k-blocks. */
static const int64_t shared[][3] = {{33, 515, 1100}, {64, 600, 700},   {100, 1000, 260},
                                    {97, 513, 900},  {128, 1200, 640}, {200, 2060, 390},
                                    {256, 650, 64},  {161, 1100, 1500}};
enum { SHARED = sizeof shared / sizeof *shared };

static void shared_case(struct gemm_case *g, int index)
{
    static const int types[] = {HEWN_BF16, HEWN_F16, HEWN_E4M3};
    hewn_gemm_desc *s = &g->desc;
    const int64_t *shape = shared[index % SHARED];
    s->m = shape[0], s->n = shape[1], s->k = shape[2];
    s->in = types[(index % SHARED + index / SHARED) % 3];
    s->out = index % 2 ? HEWN_F32 : s->in == HEWN_F16 ? HEWN_F16 : HEWN_BF16;
    s->batch = 1;
    s->variant = "few";
    s->parts = 1;
    g->pattern = (enum pattern)(index % PLAIN_PATTERNS);
    g->alpha = 1, g->finish = "", s->bias_type = HEWN_F32;
    if (index % 4 == 0) set_finish(g, 5);
    s->with &= ~(uint32_t)(ROWS | COLUMNS);
    set_layout(s, index);
}

/* 33 to 64 rows of e4m3 on sm_90a, whose promoted sums take two sets of registers: ends of m, n and k, one k-block, more
 * stages than k-blocks, parts of unequal length, several problems. */
static const struct two_sets {
    int64_t m, n, k;
    uint32_t parts;
} two_sets[] = {{64, 1000, 912, 1},  {33, 520, 1104, 1}, {49, 696, 1488, 2},
                {57, 1030, 1152, 3}, {64, 600, 2320, 4}, {48, 2060, 400, 1},
                {40, 1800, 640, 2},  {35, 129, 112, 1},  {61, 2040, 272, 2}};
enum { TWO_SETS = sizeof two_sets / sizeof *two_sets };

static void two_sets_case(struct gemm_case *g, int index)
{
    static const int outs[] = {HEWN_BF16, HEWN_F32, HEWN_F16};
    const struct two_sets *j = &two_sets[index % TWO_SETS];
    hewn_gemm_desc *s = &g->desc;
    s->m = j->m, s->n = j->n, s->k = j->k;
    s->in = HEWN_E4M3;
    s->out = outs[(index + index / TWO_SETS) % 3];
    s->accumulate = index < TWO_SETS ? HEWN_ACCUMULATE_FULL : HEWN_ACCUMULATE_FAST;
    s->batch = index % 4 == 1 ? 3 : 1;
    s->variant = "few";
    s->parts = j->parts;
    s->constant_b = (uint32_t)index % 2;
    g->pattern = (enum pattern)(index % PLAIN_PATTERNS);
    set_finish(g, index);
    set_layout(s, index);
}

/* ---- the whole contract ---- */

static const float numbers[] = {1, -0.5F, 0.75F, 0};

/* What follows the sums, all of it that goes together. */
static void random_finish(struct gemm_case *g, bool vectors, struct rng *r)
{
    static char name[NAME];
    hewn_gemm_desc *s = &g->desc;
    const uint32_t every = HEWN_GEMM_WITH_C | HEWN_GEMM_WITH_BIAS | HEWN_GEMM_WITH_SCALE_A |
                           HEWN_GEMM_WITH_SCALE_B | HEWN_GEMM_WITH_ALPHA | ROWS | COLUMNS;
    s->with = rng_below(r, 3) ? rng_below(r, every + 1) & every : 0;
    if (!vectors || s->with & HEWN_GEMM_WITH_SCALE_A) s->with &= ~(uint32_t)ROWS;
    if (!vectors || s->with & HEWN_GEMM_WITH_SCALE_B) s->with &= ~(uint32_t)COLUMNS;
    s->act = (int)rng_below(r, 4);
    s->bias_type = rng_below(r, 2) ? HEWN_F32 : s->out;
    g->alpha = s->with & HEWN_GEMM_WITH_ALPHA ? numbers[rng_below(r, 3)] : 1;
    g->beta = s->with & HEWN_GEMM_WITH_C ? numbers[rng_below(r, 4)] : 0;
    g->scale_a = 0.04F, g->scale_b = -0.6F;
    snprintf(name, sizeof name, "with 0x%x, act %d", s->with, s->act);
    g->finish = name;
}

/* Whether the kernel takes no other operands. */
static bool is_k_major(const char *variant)
{
    return variant && strncmp(variant, "pair192", 7) == 0;
}

/* B with twice as many rows, or kernels by name: what the target has. */
static void random_kernel(struct gemm_case *g, bool hopper, struct rng *r)
{
    hewn_gemm_desc *s = &g->desc;
    const bool eight = hewn_dtype_size(s->in) == 1, named = !hopper && rng_below(r, 2);
    if (rng_below(r, 5) == 0 && (!hopper || (!eight && s->out != HEWN_F16))) {
        s->act = HEWN_ACT_SWIGLU;
        s->major_a = s->major_b = HEWN_MAJOR_K;
        s->with &=
            (uint32_t)(HEWN_GEMM_WITH_SCALE_A | HEWN_GEMM_WITH_SCALE_B | HEWN_GEMM_WITH_ALPHA);
        if (hopper && s->out == HEWN_BF16) s->in = HEWN_BF16;
        g->beta = 0;
        if (named) s->variant = blackwell_glu[rng_below(r, 4)];
    } else {
        if (named) s->variant = blackwell[rng_below(r, BLACKWELL)].variant;
        if (is_k_major(s->variant)) s->major_a = s->major_b = HEWN_MAJOR_K;
        const int64_t blocks = (s->k * (int64_t)hewn_dtype_size(s->in) + 127) / 128; /* of K */
        if (s->batch == 1 && s->in != HEWN_S8 && !(s->with & (ROWS | COLUMNS)) && s->k >= 200 &&
            rng_below(r, 3) == 0)
            s->slices = 1 + rng_below(r, (uint32_t)(blocks < 8 ? blocks : 8));
    }
    if (s->variant) s->parts = 1;
}

static int64_t ragged(struct rng *r, uint32_t limit)
{
    switch (rng_below(r, 4)) {
    case 0: return 1 + rng_below(r, 16);
    case 1: return 8 + rng_below(r, limit / 8) * 8;
    case 2: return 1 + rng_below(r, limit / 4);
    default: return 1 + rng_below(r, limit);
    }
}

static void random_case(struct gemm_case *g, bool hopper, struct rng *r)
{
    static const int types[] = {HEWN_BF16, HEWN_F16, HEWN_E4M3, HEWN_E5M2, HEWN_S8};
    static const int outs[] = {HEWN_F32, HEWN_BF16, HEWN_F16, HEWN_S32};
    hewn_gemm_desc *s = &g->desc;
    do {
        s->m = ragged(r, 600), s->n = ragged(r, 700);
        s->k = ragged(r, rng_below(r, 8) ? 600 : 6000);
        s->batch = rng_below(r, 3) ? 1 : 1 + rng_below(r, 4);
    } while (s->m * s->n * s->k * s->batch > 24000000);
    s->in = types[rng_below(r, hopper ? 5 : 4)];
    s->out = outs[rng_below(r, s->in == HEWN_S8 ? 4 : 3)];
    if (s->in == HEWN_E4M3 || s->in == HEWN_E5M2) {
        s->in_b = rng_below(r, 3) ? s->in : types[2 + rng_below(r, 2)];
        s->accumulate = (int)rng_below(r, 2);
    } else if (s->in != HEWN_S8) {
        s->major_a = (int)rng_below(r, 2), s->major_b = (int)rng_below(r, 2);
    }
    g->pattern = (enum pattern)rng_below(r, PATTERNS);
    g->alpha = 1, g->finish = "", s->bias_type = HEWN_F32;
    if (s->out != HEWN_S32) {
        random_finish(g, s->in == HEWN_S8 || (s->in == HEWN_E4M3 && s->in_b == s->in), r);
        random_kernel(g, hopper, r);
    }
    set_layout(s, (int)rng_below(r, 210));
}

/* Each kernel of sm_100f: K-major, MN-major with C, bias and gelu, 8 bits with scales of rows and columns, slices of
 * K, SwiGLU. */
enum { WAYS = 5, PLANS = BLACKWELL * WAYS };

static bool plan_case(struct gemm_case *g, int index)
{
    hewn_gemm_desc *s = &g->desc;
    const int v = index % BLACKWELL, way = index / BLACKWELL;
    s->m = 400, s->n = way == 4 ? 355 : 715, s->k = way == 2 ? 520 : 260;
    s->batch = 1;
    s->variant = way == 4 ? blackwell_glu[v] : blackwell[v].variant;
    s->parts = 1;
    s->in = way == 2 ? HEWN_E4M3 : v % 2 ? HEWN_F16 : HEWN_BF16;
    s->out = way == 3 ? HEWN_F16 : v % 2 ? HEWN_F32 : HEWN_BF16;
    s->bias_type = HEWN_F32;
    if (way == 1) set_finish(g, 5);
    if (way == 1) s->with &= ~(uint32_t)(ROWS | COLUMNS);
    if (way == 1 && !is_k_major(s->variant)) s->major_a = s->major_b = HEWN_MAJOR_MN;
    if (way == 2) set_finish(g, 6);
    if (way == 3) s->slices = 2;
    if (way == 4) s->act = HEWN_ACT_SWIGLU;
    g->alpha = g->alpha != 0 ? g->alpha : 1;
    if (way != 1 && way != 2) g->finish = way == 4 ? "SwiGLU" : "";
    set_layout(s, 0);
    return way < 4 || v < 4;
}

static void maybe_run(struct device *dev, struct gemm_case *g)
{
    const hewn_gemm_desc *s = &g->desc;
    char choice[NAME] = "", slices[NAME] = "";
    if (s->variant) snprintf(choice, sizeof choice, " %s/%u", s->variant, s->parts);
    if (s->slices) snprintf(slices, sizeof slices, "*%u", s->slices);
    if (test_case("m=%lld n=%lld k=%lld batch=%lld%s%s%s%s %s%s%s%s -> %s %s%s%s%s%s",
                  (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->batch,
                  s->batch > 1 && !s->stride_a ? " one A" : "",
                  s->batch > 1 && !s->stride_b ? " one B" : "", s->major_a ? " MN-major A" : "",
                  s->major_b ? " MN-major B" : "", hewn_dtype_name(s->in), s->in_b ? " * " : "",
                  s->in_b ? hewn_dtype_name(s->in_b) : "", s->accumulate ? " fast" : "",
                  hewn_dtype_name(s->out), pattern_names[g->pattern], choice, slices,
                  *g->finish ? ", " : "", g->finish)) {
        const char *name = test_case_name();
        g->seed = digest_bytes(test_seed(), name, strlen(name));
        run_case(dev, g);
    }
}

/* Devices without such kernels say so. */
static void refusals(struct device *dev)
{
    hewn_gemm_desc d = {
        .struct_size = sizeof d, .m = 16, .n = 16, .k = 32, .in = HEWN_S8, .out = HEWN_BF16};
    hewn_gemm_plan *plan = NULL;
    hewn_error err = {0};
    CHECK_INT(hewn_gemm_plan_create(dev->context, &d, &plan, &err), HEWN_ERR_LIMIT);
    CHECK(strstr(err.message, "s8") != NULL, "says: %s", err.message);
}

static void each_kernel(struct device *dev, bool hopper)
{
    const struct kernel *list = hopper ? kernels : blackwell;
    const int count = hopper ? KERNELS : BLACKWELL;
    for (int i = 0; i < count * ROUNDS; i++) {
        struct gemm_case g = {.alpha = 1};
        kernel_case(&g, list, count, i);
        maybe_run(dev, &g);
    }
    for (int i = 0; i < 2 * CHOSEN; i++) {
        struct gemm_case g = {.alpha = 1};
        chosen_case(&g, hopper, i);
        maybe_run(dev, &g);
    }
    for (int i = 0; i < GLU_CASES; i++) {
        struct gemm_case g = {.alpha = 1};
        glu_case(&g, hopper ? glu_variants : blackwell_glu, i);
        maybe_run(dev, &g);
    }
    for (int i = 0; i < 2 * (hopper ? (int)TWO_SETS : (int)SHARED); i++) {
        struct gemm_case g = {.alpha = 1};
        (hopper ? two_sets_case : shared_case)(&g, i);
        maybe_run(dev, &g);
    }
}

int main(int argc, char **argv)
{
    struct device dev;
    hewn_error err = {0};
    const int random = suite_number(&argc, argv, "--random");
    const bool plans = suite_flag(&argc, argv, "--plans");
    test_begin("kinds", argc, argv);
    setenv("HEWN_SIM_SMS", "8", 0); /* the largest cluster on a simulated device */
    if (!device_open(&dev, &err)) {
        if (test_case("open")) CHECK(false, "%s", err.message);
        return test_end();
    }
    test_where("sm_%d%d, %s", dev.info.cc_major, dev.info.cc_minor, dev.info.name);
    const bool hopper = dev.info.cc_major == HOPPER;
    struct rng r = {test_seed()};
    for (int i = 0; i < random; i++) {
        struct gemm_case g = {.alpha = 1};
        random_case(&g, hopper, &r);
        maybe_run(&dev, &g);
    }
    for (int i = 0; plans && !hopper && i < PLANS; i++) {
        struct gemm_case g = {.alpha = 1};
        if (plan_case(&g, i)) maybe_run(&dev, &g);
    }
    if (!random && !plans) each_kernel(&dev, hopper);
    if (!hopper && !random && !plans && test_case("refused on a device without them"))
        refusals(&dev);
    device_close(&dev);
    return test_end();
}
