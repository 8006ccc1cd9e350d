/* Cases of hewn_gemm whose rows and matrices begin at any element. */
#include "gemm_cases.h"

/* Rows of any length, addresses of any element: tight or with a few elements behind them; one operand aligned
 * at times, which then comes by TMA. Also the kernel for these where nothing needs it, in several parts. */
static void loose_case(struct gemm_case *g, int index, struct rng *r)
{
    hewn_gemm_desc *s = &g->desc;
    gemm_random(g, r);
    s->m = 1 + s->m % 300, s->n = 1 + s->n % 300;
    if (s->k > 600) s->k = 1 + s->k % 600;
    gemm_set_layout(s, 0, 0, 0);
    s->ldc = s->stride_c = 0;
    gemm_set_finish(g, (int)rng_below(r, FINISHES), 0);
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

/* Types and batches by `mix`; matrices that begin at any element, rows of A and B up to `most` - 1 longer than they
 * must be, or aligned. */
static void begin_anywhere(struct gemm_case *g, int mix, int finish, int most)
{
    hewn_gemm_desc *s = &g->desc;
    s->in = mix % 2 ? HEWN_F16 : HEWN_BF16;
    s->out = gemm_out_types[mix % 3];
    s->batch = mix % 4 == 3 ? 2 : 1;
    g->pattern = (enum pattern)(mix / 3 % PATTERNS);
    gemm_set_layout(s, 0, 0, 0);
    gemm_set_finish(g, finish, 0);
    if (mix % 5 != 1) s->lda = s->k + mix % most;
    if (mix % 5 != 2) s->ldb = s->k + mix / 2 % most;
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

/* Few rows where matrices begin anywhere: every number of rows of A in the ring, tiles from 16 columns on, slices of
 * k from one on, in parts; rows tight, an element longer or aligned, every offset in a chunk of 16 bytes; batches,
 * and something behind the sums. */
static const int64_t odd_shapes[][3] = {{1, 65, 63},    {1, 1, 1},       {8, 1031, 517},
                                        {9, 100, 1001}, {16, 16, 4095},  {17, 1057, 129},
                                        {32, 301, 521}, {33, 200, 701},  {40, 703, 905},
                                        {64, 530, 73},  {64, 240, 1283}, {3, 9, 2047},
                                        {5, 2051, 75},  {24, 127, 261},  {60, 72, 1101},
                                        {2, 760, 3001}};
/* Batches that do not divide the CTAs that run at once: 8, and 132. */
static const int64_t odd_batches[][4] = {{46, 80, 101, 5}, {30, 150, 133, 5}, {46, 84, 33, 100}};
static const uint32_t odd_parts[] = {1, 2, 3, 8};
enum {
    ODD_SHAPES = sizeof odd_shapes / sizeof odd_shapes[0],
    ODD_PARTS = sizeof odd_parts / sizeof odd_parts[0],
    ODD_CASES = ODD_SHAPES * ODD_PARTS,
    ODD_MOST = 16, /* parts of the last cases, which need more SMs */
    ODD_MOST_CASES = 3,
    ODD_BATCHES = sizeof odd_batches / sizeof odd_batches[0]
};

static void odd_case(struct gemm_case *g, int index)
{
    const int shape = index % ODD_SHAPES, turn = index / ODD_SHAPES, mix = shape * 7 + turn * 5;
    hewn_gemm_desc *s = &g->desc;
    s->m = odd_shapes[shape][0], s->n = odd_shapes[shape][1], s->k = odd_shapes[shape][2];
    s->variant = "oddfew";
    const int64_t slices = (s->k + 127) / 128;
    const uint32_t parts = index < ODD_CASES ? odd_parts[turn] : ODD_MOST;
    s->parts = parts <= slices ? parts : 1;
    begin_anywhere(g, mix, (shape * 3 + turn * 4) % FINISHES, 3);
}

static void odd_batch(struct gemm_case *g, int index)
{
    hewn_gemm_desc *s = &g->desc;
    s->m = odd_batches[index][0], s->n = odd_batches[index][1], s->k = odd_batches[index][2];
    s->variant = "oddfew";
    s->parts = 1;
    begin_anywhere(g, 7 * index + 2, 0, 3);
    s->batch = odd_batches[index][3];
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
    s->parts = parts[turn] <= (s->k + 31) / 32 ? parts[turn] : 1;
    begin_anywhere(g, mix, (shape * 3 + turn * 4) % FINISHES, 9);
}

/* So many tiles of so short a K that a CTA of these kernels computes two, four or eight; the last CTA fewer. */
static const int64_t team_shapes[][3] = {{18, 9001, 33}, {130, 1100, 66}, {256, 2000, 31},
                                         {1, 4300, 20},  {33, 4500, 64},  {300, 500, 100}};
enum { TEAM_CASES = sizeof team_shapes / sizeof team_shapes[0] };

static void team_case(struct gemm_case *g, int index)
{
    hewn_gemm_desc *s = &g->desc;
    s->m = team_shapes[index][0], s->n = team_shapes[index][1], s->k = team_shapes[index][2];
    s->variant = index == 1 || index == 2 || index == 3 || index == 5 ? "odd16x16" : "odd32x32";
    s->parts = 1;
    begin_anywhere(g, 5 * index + 2, 4 * index % FINISHES, 9);
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
    s->in = index % 4 == 3 ? HEWN_F16 : HEWN_BF16, s->out = gemm_out_types[index / 3 % 3];
    s->major_a = index / 2 % 4 == 1, s->major_b = index / 3 % 4 == 1;
    gemm_set_layout(s, 0, 0, 0);
    s->ldc = s->stride_c = 0;
}

static void shifted_case(struct gemm_case *g, int index, struct rng *r)
{
    static const char *const variants[] = {"odd64", "odd128", "odd256"};
    static const uint32_t most[] = {7, 7, 4};
    hewn_gemm_desc *s = &g->desc;
    shifted_shape(s, index, r);
    g->pattern = (enum pattern)(index / 5 % PATTERNS);
    gemm_set_finish(g, index % 2 ? (int)rng_below(r, FINISHES) : 0, 0);
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

/* ---- groups ---- */

static void loose(struct gemm_case *g, struct gemm_turn t)
{
    loose_case(g, t.index, t.rng);
}

/* sm_100f has no parts of K. */
static void loose_whole(struct gemm_case *g, struct gemm_turn t)
{
    loose_case(g, t.index, t.rng);
    if (g->desc.parts) g->desc.parts = 1;
}

static void odd(struct gemm_case *g, struct gemm_turn t)
{
    odd_case(g, t.index);
}

static void odd_with_most_parts(struct gemm_case *g, struct gemm_turn t)
{
    static const int shapes[ODD_MOST_CASES] = {4, 11, 15}; /* the longest k */
    odd_case(g, ODD_CASES + shapes[t.index]);
}

static void odd_in_batches(struct gemm_case *g, struct gemm_turn t)
{
    odd_batch(g, t.index);
}

static void small(struct gemm_case *g, struct gemm_turn t)
{
    small_case(g, t.index);
}

static void team(struct gemm_case *g, struct gemm_turn t)
{
    team_case(g, t.index);
}

static void shifted(struct gemm_case *g, struct gemm_turn t)
{
    shifted_case(g, t.index, t.rng);
}

const struct gemm_group gemm_odd_groups[] = {
    {.count = LOOSE_CASES, .target = SM_90A, .seed = 2, .make = loose},
    {.count = LOOSE_CASES, .target = SM_100F, .seed = 2, .make = loose_whole},
    {.count = ODD_CASES, .target = SM_90A, .make = odd},
    {.count = ODD_MOST_CASES,
     .target = SM_90A,
     .make = odd_with_most_parts,
     .sms = ODD_MOST + ODD_MOST / 8},
    {.count = SMALL_CASES, .target = SM_90A, .make = small},
    {.count = SHIFTED_CASES, .target = SM_90A, .seed = 3, .make = shifted},
    {.count = TEAM_CASES, .target = SM_90A, .make = team},
    {.count = ODD_BATCHES, .target = SM_90A, .make = odd_in_batches},
    {0},
};
