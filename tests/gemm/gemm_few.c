/* Cases of hewn_gemm with few rows, and with K in slices. */
#include "gemm_cases.h"

#include <string.h>

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
    s->out = gemm_out_types[mix % 3];
    if (!narrow) s->major_a = mix / 2 % 2, s->major_b = mix / 4 % 2;
    s->batch = mix % 5 == 3 ? 2 : 1;
    uint32_t parts = few_parts[turn % FEW_PARTS];
    int64_t blocks = (s->k + (narrow ? 127 : 63)) / (narrow ? 128 : 64);
    s->parts = parts <= blocks ? parts : 1;
    s->constant_b = (uint32_t)(shape + turn / 2) % 2;
    g->pattern = (enum pattern)(mix / 3 % PATTERNS);
    gemm_set_layout(s, shape % 3, shape % 2, mix % 3);
    gemm_set_finish(g, (shape * 3 + turn * 4) % FINISHES, shape % 4);
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
    gemm_set_layout(s, index % 3, index % 2, index / 2 % 3);
    s->ldc = s->stride_c = 0;
    gemm_set_finish(g, index * 5 % FINISHES, index % 4);
}

/* Slices of K, with and without parts, of each type and major; ends of rows of the sums and of K, one to eight
 * lanes of a quad, and something behind the sums. Slices that differ by a k-block, more tiles than CTAs, rows of any
 * length. */
struct slice_shape {
    int64_t m, n, k;
    const char *variant;
    uint32_t parts, slices;
};
static const struct slice_shape slice_shapes[] = {
    {100, 72, 1024, "split", 1, 2},     {65, 129, 1040, "flat", 2, 5},
    {1, 1, 520, "pair", 1, 5},          {130, 66, 4096, "128x96n", 2, 16},
    {16, 16, 4096, "few", 2, 8},        {33, 257, 768, "few", 1, 3},
    {129, 127, 800, "128x128", 3, 4},   {200, 30, 8192, "split", 1, 64},
    {7, 300, 2112, "64x256m", 1, 33},   {64, 64, 640, "plain", 1, 10},
    {90, 1030, 336, "pair", 1, 6},      {130, 300, 456, "pair", 1, 3},
    {90, 130, 1043, "128x96", 2, 3},    {33, 100, 777, "few", 2, 5},
    {184, 116, 2391, "odd64", 2, 4},    {129, 250, 1046, "odd128", 1, 3},
    {70, 300, 999, "odd256", 1, 2},     {64, 101, 901, "loose", 1, 7},
    {130, 70, 840, "odd64", 1, 4},      {129, 100, 1160, "odd128", 3, 3},
    {40, 200, 1131, "oddfew", 2, 4},    {70, 50, 500, "odd16x16", 2, 3},
    {70, 100, 460, "odd32x32", 1, 7},   {130, 70, 520, "64x64-2x2", 1, 3},
    {140, 70, 700, "128xany-2x1", 2, 3}};
static const struct slice_shape blackwell_slices[] = {
    {100, 72, 1024, "128x64", 1, 2}, {65, 129, 1040, "128x128", 1, 5},
    {1, 1, 520, "pair128", 1, 5},    {300, 500, 512, "pair", 1, 2},
    {33, 257, 768, "plain", 1, 3},   {200, 30, 8192, "128x64", 1, 64},
    {7, 300, 2112, "pair", 1, 33},   {90, 130, 1043, "pair128", 1, 3},
    {16, 16, 8192, NULL, 0, 0},      {129, 250, 1046, "plain", 1, 3}};
/* Slices of the transpose of D. */
enum { T = HEWN_GEMM_TURNED };
static const struct slice_shape turned_shapes[] = {
    {145, 130, 1032, "128x96n", 1, T + 2}, {129, 127, 2048, "flat", 1, T + 32},
    {90, 131, 1043, "128x96", 2, T + 3},   {33, 301, 904, "odd64", 1, T + 6},
    {50, 5, 640, "few", 1, T + 9},         {70, 201, 776, "64x64-2x2", 1, T + 3}};
static const struct slice_shape blackwell_turned[] = {{70, 301, 904, "128x64", 1, T + 6}};
enum {
    SLICE_SHAPES = sizeof slice_shapes / sizeof slice_shapes[0],
    BLACKWELL_SLICES = sizeof blackwell_slices / sizeof blackwell_slices[0],
    TURNED_SHAPES = sizeof turned_shapes / sizeof turned_shapes[0],
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
    const bool eight = turn == 2 && !strstr(variant, "any") && !odd;
    if (eight) s->k *= 2;
    s->in = eight ? formats[mix / 2 % 2] : mix % 2 ? HEWN_F16 : HEWN_BF16;
    s->in_b = eight ? formats[mix % 2] : 0;
    s->accumulate = eight && mix / 4 % 2 ? HEWN_ACCUMULATE_FAST : HEWN_ACCUMULATE_FULL;
    s->out = gemm_out_types[mix % 3];
    if (!eight && !loose && (list == blackwell_slices || !strchr(variant, 'x')))
        s->major_a = mix / 2 % 2, s->major_b = mix / 4 % 2;
    g->pattern = (enum pattern)(mix % PATTERNS);
    gemm_set_layout(s, shape % 3, shape % 2, mix % 3);
    if (loose) s->lda = s->k + turn % 3, s->ldb = s->k + turn % 2, s->ldd = s->n + turn % 2;
    gemm_set_finish(g, (shape * 4 + turn * 3) % FINISHES, shape % 4);
}

/* ---- groups ---- */

static void few(struct gemm_case *g, struct gemm_turn t)
{
    few_case(g, t.index);
}

static void few_lanes(struct gemm_case *g, struct gemm_turn t)
{
    few_lanes_case(g, 2 * t.index + t.index / FEW_SHAPES % 2);
}

static void slices(struct gemm_case *g, struct gemm_turn t)
{
    slice_case(g, slice_shapes, SLICE_SHAPES, t.index);
}

static void slices_of_blackwell(struct gemm_case *g, struct gemm_turn t)
{
    slice_case(g, blackwell_slices, BLACKWELL_SLICES, t.index);
}

static void turned(struct gemm_case *g, struct gemm_turn t)
{
    slice_case(g, turned_shapes, TURNED_SHAPES, t.index);
}

static void turned_of_blackwell(struct gemm_case *g, struct gemm_turn t)
{
    slice_case(g, blackwell_turned, 1, t.index);
}

const struct gemm_group gemm_turned_groups[] = {
    {.count = SLICE_TURNS * TURNED_SHAPES, .target = SM_90A, .make = turned},
    {.count = SLICE_TURNS, .target = SM_100F, .make = turned_of_blackwell},
    {0},
};

const struct gemm_group gemm_few_groups[] = {
    {.count = FEW_CASES, .target = SM_90A, .make = few},
    {.count = FEW_CASES / 2, .target = SM_100F, .make = few_lanes},
    {.count = SLICE_TURNS * SLICE_SHAPES, .target = SM_90A, .make = slices},
    {.count = SLICE_TURNS * BLACKWELL_SLICES, .target = SM_100F, .make = slices_of_blackwell},
    {0},
};
