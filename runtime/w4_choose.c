/*
 * Shapes and cost of products with 4-bit weights. The memory bounds them, so all CTAs should run at
 * once and load equal shares.
 */
#include "w4.h"

enum {
    HALF_RING = 110 << 10,  /* two CTAs fit an SM, of one launch or of two that follow each other */
    WHOLE_RING = 200 << 10, /* one */
    NARROW = 16,            /* rows of the narrower variant */
    WIDE = 64,
    WAVE = 3000,        /* cycles: what a wave takes beside its k-blocks */
    MEMORY_BYTES = 2400 /* a cycle */
};

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* Clusters of that many CTAs that surely run at once, one CTA an SM: a GPC has SMs left over. */
static uint64_t clusters_of(uint32_t sm_count, uint32_t parts)
{
    uint64_t whole = parts <= 2 ? sm_count : sm_count - sm_count / 11;
    uint64_t fit = whole / parts, less = parts & (parts - 1) ? (parts > 4 ? 2 : 1) : 0;
    return fit > less ? fit - less : 1;
}

static void fill_shape(const struct w4_problem *p, uint32_t tile, uint32_t parts,
                       struct w4_shape *s)
{
    uint32_t rows = (uint32_t)SM90A_W4_MMA_N(p->m);
    uint32_t width = rows <= NARROW ? NARROW : WIDE;
    uint32_t w_bytes = tile * (uint32_t)W4_BLOCK_BYTES(p->groups, (uint32_t)p->zeros);
    uint32_t stage = w_bytes + (uint32_t)SM90A_W4_X_BYTES(rows);
    uint32_t share = (uint32_t)ceil_div(p->k_blocks, parts);
    uint32_t stages = (width == NARROW ? HALF_RING : WHOLE_RING) / stage;
    uint32_t sums = rows * (uint32_t)SM90A_W4_SUM_PITCH(tile);
    if (stages > share) stages = share;
    if (stages > SM90A_W4_STAGES) stages = SM90A_W4_STAGES;
    *s = (struct w4_shape){
        .width = width,
        .rows = rows,
        .tile = tile,
        .parts = parts,
        .stages = stages,
        .shared = stages * stage > sums ? stages * stage : sums,
        .tiles_n = ceil_div(p->chunks, tile),
        .tiles_m = ceil_div(p->m, rows),
    };
}

/* SM cycles of a k-block, by chunks of a tile: of one CTA, or of two that share an SM. Of up to 16
 * rows, 32, 64. Measured on an H200: sm_90a/LEDGER.md. */
static uint64_t block_cycles(const struct w4_shape *s, int two)
{
    static const uint16_t cycles[4][SM90A_W4_CHUNKS] = {{550, 930, 1350, 1680},
                                                        {570, 1000, 1400, 1840},
                                                        {500, 730, 1080, 1300},
                                                        {620, 950, 1500, 1900}};
    int kind = s->rows > 32 ? 3 : s->rows > NARROW ? 2 : two;
    return cycles[kind][s->tile - 1];
}

/*
 *   memory = W once for each tile of rows / MEMORY_BYTES
 *   cost   = max(memory, waves * blocks of a part * block_cycles) + waves * (WAVE + merge)
 * Without what every launch takes. Only the order of the candidates matters.
 */
static uint64_t cost(const struct w4_problem *p, const struct w4_shape *s, uint32_t sm_count)
{
    static const uint16_t merge[SM90A_W4_PARTS + 1] = {0,    0,    700,  1200, 1500,
                                                       1600, 1600, 1700, 1700};
    uint64_t fit = clusters_of(sm_count, s->parts), tiles = s->tiles_n * s->tiles_m;
    int two = s->width == NARROW && tiles > fit;
    uint64_t waves = ceil_div(tiles, two ? 2 * fit : fit), blocks = ceil_div(p->k_blocks, s->parts);
    uint64_t run = waves * blocks * block_cycles(s, two);
    uint64_t memory = p->packed * s->tiles_m / MEMORY_BYTES;
    return (run > memory ? run : memory) + waves * (WAVE + merge[s->parts]);
}

static uint32_t most_chunks(const struct w4_problem *p)
{
    return p->groups == W4_MAX_GROUPS && p->m > 32 ? SM90A_W4_CHUNKS / 2 : SM90A_W4_CHUNKS;
}

/* Of those with `parts` parts, 0: any number. */
static void choose(const struct w4_problem *p, uint32_t parts, uint32_t sm_count, int clusters,
                   struct w4_shape *out)
{
    uint32_t first = parts ? parts : 1, last = parts ? parts : clusters ? SM90A_W4_PARTS : 1;
    uint64_t best = UINT64_MAX;
    for (uint32_t n = first; n <= last && n <= p->k_blocks; n++)
        for (uint32_t tile = 1; tile <= most_chunks(p); tile++) {
            struct w4_shape s;
            if (p->tile && p->tile != tile) continue;
            fill_shape(p, tile, n, &s);
            uint64_t c = cost(p, &s, sm_count);
            if (c >= best) continue;
            best = c;
            *out = s;
        }
}

void hewn_w4_choose(const struct w4_problem *p, uint32_t sm_count, int clusters,
                    struct w4_shape *out)
{
    uint32_t parts = p->parts;
    if (p->invariant && !parts) {
        struct w4_problem one = *p;
        one.m = 1;
        one.tile = 0;
        choose(&one, 0, sm_count, clusters, out);
        parts = out->parts;
    }
    choose(p, parts, sm_count, clusters, out);
}
