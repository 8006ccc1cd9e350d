/* Cases of hewn_gemm of kernels by name, whose operands are aligned: every tile, every way to share loads, parts of K. */
#include "gemm_cases.h"

#include <stdio.h>
#include <string.h>

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
    g->desc.out = gemm_out_types[turn % 3];
    g->pattern = (enum pattern)(turn / 3 % PLAIN_PATTERNS);
    gemm_set_layout(&g->desc, shape % 3, shape % 2, turn % 3);
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
    gemm_set_layout(&g->desc, shape % 3, shape % 2, (choice + shape) % 3);
    gemm_set_finish(g, (choice * 7 + shape * 4) % FINISHES, shape % 4);
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
    gemm_set_layout(&g->desc, index % 3, 0, index % 2);
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
    gemm_set_layout(&g->desc, shape % 3, shape % 2, turn % 3);
    gemm_set_finish(g, (choice * 7 + shape * 4) % FINISHES, shape % 4);
}

/* The kernels that are told who shares loads, each alone, in pairs along m and along n, in as many parts
 * of K as a cluster takes: some of the shapes of choices, of 8-bit inputs too, and a short one. Inputs are
 * K-major, all they have. */
static const char *const tile_variants[] = {
    "64x256",   "64x256m",  "64x256n",  "128x96",   "128x96m",  "128x96n",  "128x128",  "128x128m",
    "128x128n", "128x144",  "128x144m", "128x144n", "128x160",  "128x160m", "128x160n", "128x192",
    "128x192m", "128x192n", "128x224",  "128x224m", "128x224n", "128x256",  "128x256m", "128x256n"};
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
        gemm_set_finish(g, (v + round) % 3 ? (v * 7 + round * 4) % FINISHES : 0, round % 4);
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
    if (round == 0) gemm_set_finish(g, turn % 3 ? turn % FINISHES : 0, turn % 4);
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
    gemm_set_layout(&g->desc, v % 3, round % 2, (v + round) % 3);
    g->desc.ldc = g->desc.stride_c = 0;
    if (!short_one)
        gemm_set_finish(g, (v + round) % 3 ? (v * 7 + round * 4) % FINISHES : 0, round % 4);
    g->desc.variant = exchanged_variants[v];
    g->desc.parts = short_one ? 1 : parts[v % 3 > 0][(v + 3 * round) % 8];
}

/* The kernels one side of whose tile the plan decides: every such tile, because on 132 SMs no two of it fit that
 * side in a wave. One or two waves, other sides that do not fill a tile, rectangles, parts of K; each type, and
 * something behind the sums. */
enum {
    FITTED_VARIANTS = 2 * RECTANGLES,
    FITTED_SIDES = 30, /* 24, 32, .. 256 */
    FITTED_ROUNDS = 4,
    FITTED_CASES = FITTED_VARIANTS * FITTED_ROUNDS
};

static void fitted_case(struct gemm_case *g, int index)
{
    static const int sizes[RECTANGLES][2] = {{1, 1}, {1, 2}, {1, 4}, {2, 1},
                                             {2, 2}, {2, 4}, {4, 1}, {4, 2}},
                     parts[4][6] = {{1, 2, 3, 8, 5, 7},
                                    {1, 2, 3, 4, 1, 2},
                                    {1, 2, 2, 1, 2, 1},
                                    {1, 1, 1, 1, 1, 1}},
                     clusters[] = {0, 132, 66, 39, 30, 22, 17, 15, 15}; /* that an H200 holds */
    static char names[FITTED_VARIANTS][16];
    const int v = index % FITTED_VARIANTS, round = index / FITTED_VARIANTS, tall = v < RECTANGLES,
              r = v % RECTANGLES, size = sizes[r][0] * sizes[r][1],
              share = parts[size > 4 ? 3 : size / 2][(round + v) % 6],
              side = 24 + 8 * ((round * RECTANGLES + r + v / RECTANGLES * 4) % FITTED_SIDES);
    const int64_t m = (tall ? side : 128) * sizes[r][0], n = (tall ? 128 : side) * sizes[r][1];
    hewn_gemm_desc *s = &g->desc;
    snprintf(names[v], sizeof names[v], "%s%s", tall ? "anyx128" : "128xany", rectangles[r]);
    s->m = m - (round + v) % 3 * 5, s->n = n - round % 4 * 3;
    s->k = 64 * (share - 1) + 40 + 17 * (round % 6);
    s->batch = clusters[size * share] + (round % 3 == 2 ? 3 : -1);
    s->in = index % 2 ? HEWN_F16 : HEWN_BF16;
    s->out = gemm_out_types[tall ? 1 + (round + v) % 2 : (round + v) % 3];
    gemm_set_layout(s, v % 3, round % 2, (v + round) % 3);
    gemm_set_finish(g, (v + round) % 3 ? (v * 7 + round * 4) % FINISHES : 0, round % 4);
    g->pattern = (enum pattern)(index % PLAIN_PATTERNS);
    s->variant = names[v];
    s->parts = (uint32_t)share;
}

/* The same of tiles of 64 and of 256 columns: of the former two consumers have half of the rows each. */
enum {
    BROAD_VARIANTS = 2 * RECTANGLES,
    BROAD_ROUNDS = 2,
    BROAD_CASES = BROAD_VARIANTS * BROAD_ROUNDS
};

static void broad_case(struct gemm_case *g, int index)
{
    static const int sizes[RECTANGLES][2] = {{1, 1}, {1, 2}, {1, 4}, {2, 1},
                                             {2, 2}, {2, 4}, {4, 1}, {4, 2}},
                     parts[4][BROAD_ROUNDS] = {{1, 5}, {3, 1}, {2, 1}, {1, 1}},
                     clusters[] = {0, 132, 66, 39, 30, 22, 17, 15, 15}; /* that an H200 holds */
    static char names[BROAD_VARIANTS][16];
    const int v = index % BROAD_VARIANTS, round = index / BROAD_VARIANTS, r = v % RECTANGLES,
              broad = v >= RECTANGLES, size = sizes[r][0] * sizes[r][1],
              share = broad ? 1 : parts[size > 4 ? 3 : size / 2][round],
              turn = round * RECTANGLES + r,
              unit = broad              ? 8 * sizes[r][1]
                     : sizes[r][1] == 4 ? 32
                                        : 16,
              drawn =
                  broad ? 64 + 8 * (turn * 5 % 13) : (share > 1 ? 80 : 48) + 16 * (turn * 3 % 11),
              side = (drawn + unit - 1) / unit * unit;
    const int64_t m = side * sizes[r][0], n = (broad ? 256 : 64) * sizes[r][1];
    hewn_gemm_desc *s = &g->desc;
    snprintf(names[v], sizeof names[v], "%s%s", broad ? "anyx256" : "anyx64", rectangles[r]);
    s->m = m - (round + v) % 3 * 3, s->n = n - round * 5 % 4 * 3;
    s->k = 64 * (share - 1) + 40 + 17 * ((turn + broad) % 6);
    s->batch = 2;
    if (broad && round && size == 1) s->batch = clusters[1] + 3; /* some CTAs have two tiles */
    if (!broad && !round) s->batch = clusters[size * share] - 1;
    s->in = index % 2 ? HEWN_F16 : HEWN_BF16;
    s->out = gemm_out_types[1 + (round + v) % 2];
    gemm_set_layout(s, v % 3, round % 2, (v + round) % 3);
    gemm_set_finish(g, (v + round) % 3 ? (v * 7 + round * 4) % FINISHES : 0, round % 4);
    g->pattern = (enum pattern)(index % PLAIN_PATTERNS);
    s->variant = names[v];
    s->parts = (uint32_t)share;
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
        gemm_set_layout(&g->desc, v % 3, round % 2, round % 3);
        if (g->desc.ldc) g->desc.ldc = g->desc.ldd, g->desc.stride_c = g->desc.stride_d;
    }
    g->desc.parts = 1;
}

/* Sums of 8-bit products that grow along a long k: there sums that are not promoted are far beyond the
 * bound of those that are. Each pair of formats, in the kernels that promote differently. */
static void deep_case(struct gemm_case *g, int index)
{
    static const char *const variants[] = {"pair", "128x128n", "128x64-1x2", "plain"};
    g->desc.m = 40, g->desc.n = 264, g->desc.k = 6000;
    g->desc.in = index / 2 ? HEWN_E5M2 : HEWN_E4M3;
    g->desc.in_b = index % 2 ? HEWN_E5M2 : HEWN_E4M3;
    g->desc.out = HEWN_F32;
    g->desc.variant = variants[index];
    g->desc.parts = 1;
    g->pattern = POSITIVE;
    gemm_set_layout(&g->desc, 0, 0, 0);
}

/* ---- groups ---- */

static void choices(struct gemm_case *g, struct gemm_turn t)
{
    choice_case(g, t.index / CHOICE_SHAPES, t.index % CHOICE_SHAPES);
}

static void full_choices(struct gemm_case *g, struct gemm_turn t)
{
    choice_case_full(g, t.index % CHOICES, t.index / CHOICES * 2 + t.index % 2);
}

static void choices_8(struct gemm_case *g, struct gemm_turn t)
{
    shape_case_8(g, t.index % CHOICES, t.index / CHOICES * 2 + t.index % 2);
    choose(g, t.index % CHOICES);
    /* Where others have no 8-bit inputs, the same tiles in the same clusters. */
    if (!strcmp(g->desc.variant, "small")) g->desc.variant = "128x128r-1x2";
    if (!strcmp(g->desc.variant, "narrow")) g->desc.variant = "128x64-1x2";
}

static void deeps(struct gemm_case *g, struct gemm_turn t)
{
    deep_case(g, t.index);
}

static void wides(struct gemm_case *g, struct gemm_turn t)
{
    (t.index < CHOICE_SHAPES ? choice_case : choice_case_full)(g, WIDE, t.index % CHOICE_SHAPES);
}

static void shorts(struct gemm_case *g, struct gemm_turn t)
{
    short_case(g, t.index);
}

static void tiles(struct gemm_case *g, struct gemm_turn t)
{
    tile_case(g, t.index);
}

static void exchanged(struct gemm_case *g, struct gemm_turn t)
{
    exchanged_case(g, t.index);
}

static void fitted(struct gemm_case *g, struct gemm_turn t)
{
    fitted_case(g, t.index);
}

static void broads(struct gemm_case *g, struct gemm_turn t)
{
    broad_case(g, t.index);
}

static void spread(struct gemm_case *g, struct gemm_turn t)
{
    spread_case(g, t.index);
}

static void blackwell(struct gemm_case *g, struct gemm_turn t)
{
    blackwell_case(g, t.index);
}

const struct gemm_group gemm_tile_groups[] = {
    {.count = CHOICES * CHOICE_SHAPES, .target = SM_90A, .make = choices},
    {.count = CHOICES * CHOICE_SHAPES / 2, .target = SM_90A, .make = full_choices},
    {.count = CHOICES * CHOICE_SHAPES / 2, .target = SM_90A, .make = choices_8},
    {.count = 4, .target = SM_90A, .make = deeps},
    {.count = 2 * CHOICE_SHAPES, .target = SM_90A, .make = wides},
    {.count = SHORT_CASES, .target = SM_90A, .make = shorts},
    {.count = TILE_CASES, .target = SM_90A, .make = tiles},
    {.count = EXCHANGED_CASES, .target = SM_90A, .make = exchanged},
    {.count = FITTED_CASES, .target = SM_90A, .make = fitted},
    {.count = SPREAD_CASES, .target = SM_90A, .make = spread},
    {.count = BLACKWELL_CASES, .target = SM_100F, .make = blackwell},
    {0},
};

/* Behind all others, so that these keep their numbers, from which their data follow. */
const struct gemm_group gemm_broad_groups[] = {
    {.count = BROAD_CASES, .target = SM_90A, .make = broads},
    {0},
};
