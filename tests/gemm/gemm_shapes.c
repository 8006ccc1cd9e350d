/* Cases of hewn_gemm of any kernel that the library chooses: shapes at the edges of tiles, random ones, long ones. */
#include "gemm_cases.h"

/* Shapes where kernels break: single elements, one off each tile edge, many k-blocks, many tiles. */
static const int64_t edge_shapes[][3] = {
    {1, 1, 8},       {1, 1, 1},       {1, 8, 8},       {8, 1, 16},      {2, 3, 5},
    {127, 255, 63},  {128, 256, 64},  {129, 257, 65},  {129, 264, 72},  {64, 128, 256},
    {65, 129, 40},   {192, 384, 96},  {255, 511, 127}, {256, 512, 128}, {257, 513, 129},
    {1, 1000, 100},  {1000, 1, 100},  {300, 200, 520}, {31, 33, 1024},  {16, 16, 4096},
    {100, 60, 4095}, {7, 9, 2048},    {128, 256, 8},   {128, 256, 7},   {384, 768, 192},
    {640, 1280, 64}, {513, 1025, 32}, {1100, 900, 24}, {129, 2049, 16}, {2049, 17, 48},
    {896, 1792, 64}, {1, 4097, 8},    {4097, 1, 8}};
enum { EDGE_SHAPES = sizeof edge_shapes / sizeof edge_shapes[0] };

static void edge_case(struct gemm_case *g, int shape, int variant)
{
    g->desc.m = edge_shapes[shape][0];
    g->desc.n = edge_shapes[shape][1];
    g->desc.k = edge_shapes[shape][2];
    g->desc.in = (shape + variant) % 2 ? HEWN_F16 : HEWN_BF16;
    g->desc.out = gemm_out_types[(shape / 2 + variant) % 3];
    g->pattern = (enum pattern)((shape + variant) % PLAIN_PATTERNS);
    gemm_set_layout(&g->desc, variant ? shape % 4 : 0, variant ? shape % 3 : 0,
                    variant ? shape % 5 : 0);
}

static int64_t ragged(struct rng *r, uint32_t limit)
{
    switch (rng_below(r, 4)) {
    case 0: return 1 + rng_below(r, 16);
    case 1: return 1 + rng_below(r, limit);
    case 2: return gemm_round_up(1 + rng_below(r, limit), 8);
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
    s->out = gemm_out_types[rng_below(r, 3)];
}

static void random_layout(hewn_gemm_desc *s, struct rng *r)
{
    gemm_set_layout(s, rng_below(r, 4), rng_below(r, 4), rng_below(r, 4));
    if (s->batch > 1 && rng_below(r, 3) == 0) s->stride_a = 0;
    if (s->batch > 1 && rng_below(r, 3) == 0) s->stride_b = 0;
}

static void random_case(struct gemm_case *g, struct rng *r)
{
    random_shape(&g->desc, r);
    g->pattern = (enum pattern)rng_below(r, PLAIN_PATTERNS);
    random_layout(&g->desc, r);
}

void gemm_random(struct gemm_case *g, struct rng *r)
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
    gemm_set_finish(g, (int)rng_below(r, FINISHES), rng_below(r, 4));
}

/* Two hundred tiles or more on the few SMs of the simulator, each ring phase wraps many times. */
static void long_case(struct gemm_case *g, int index)
{
    g->desc.m = 128 * (3 + index) + 1;
    g->desc.n = 256 * (2 + index % 3) - 8;
    g->desc.k = 320 - 64 * (index % 4);
    g->desc.batch = index % 2 ? 2 : 1;
    g->desc.in = index % 2 ? HEWN_F16 : HEWN_BF16;
    g->desc.out = gemm_out_types[index % 3];
    g->pattern = index % 2 ? UNIFORM : INTEGERS;
    gemm_set_layout(&g->desc, 0, 0, 0);
}

/* ---- groups ---- */

static void edges(struct gemm_case *g, struct gemm_turn t)
{
    edge_case(g, t.index % EDGE_SHAPES, t.index / EDGE_SHAPES);
}

static void longs(struct gemm_case *g, struct gemm_turn t)
{
    long_case(g, t.index);
}

static void randoms(struct gemm_case *g, struct gemm_turn t)
{
    random_case(g, t.rng);
}

static void full_randoms(struct gemm_case *g, struct gemm_turn t)
{
    gemm_random(g, t.rng);
}

const struct gemm_group gemm_shape_groups[] = {
    {.count = 2 * EDGE_SHAPES, .make = edges},
    {.count = 16, .make = longs},
    {.count = 220, .make = randoms},
    {.count = 120, .seed = 1, .make = full_randoms},
    {0},
};
