/*
 * Shapes and cost of the GEMM of few rows. All its CTAs run at once and load equal shares, because the memory is
 * what bounds it: as many tiles as the device holds CTAs, or a fraction of that with parts of K.
 */
#include "gemm_few.h"

#include "../ptx/sm_90a/gemm_few.plan.h"

enum {
    COLUMN_UNIT = 8,       /* rows of a swizzle pattern */
    RING_BYTES = 100 << 10 /* two CTAs fit an SM, of one launch or of two that follow each other */
};

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint32_t k_blocks(const struct hewn_gemm_extent *p)
{
    return (uint32_t)ceil_div(p->k * p->in, GEMM_ROW_BYTES);
}

static uint32_t stage_bytes(const struct hewn_gemm_extent *p, uint32_t columns)
{
    return SM90A_FEW_B_BYTES(columns) + (uint32_t)SM90A_FEW_A_BYTES((uint32_t)p->m, p->mn_a);
}

/* The most columns of a tile: of 8-bit inputs and more than 32 rows a warpgroup has one chunk. */
static uint32_t most_columns(const struct hewn_gemm_extent *p)
{
    return p->in == 1 && p->m > SM90A_FEW_ROWS / 2 ? SM90A_FEW_COLUMNS / 2 : SM90A_FEW_COLUMNS;
}

static uint32_t columns_of(const struct hewn_gemm_extent *p, uint32_t parts, uint32_t sm_count)
{
    uint32_t unit = p->mn_b ? SM90A_FEW_CHUNK : COLUMN_UNIT, most = most_columns(p);
    uint64_t tiles = hewn_gemm_clusters(sm_count, parts) / p->batch; /* of a problem */
    uint64_t columns = ceil_div(ceil_div(p->n, tiles ? tiles : 1), unit) * unit;
    return columns < most ? (uint32_t)columns : most;
}

void hewn_gemm_few_shape(const struct hewn_gemm_extent *p, uint32_t parts, uint32_t sm_count,
                         struct hewn_gemm_few *out)
{
    uint32_t columns = columns_of(p, parts, sm_count), stage = stage_bytes(p, columns);
    uint32_t rows = SM90A_FEW_MMA_N((uint32_t)p->m), blocks = k_blocks(p);
    uint32_t stages = RING_BYTES / stage, share = (uint32_t)ceil_div(blocks, parts);
    uint32_t sums = rows * SM90A_FEW_SUM_PITCH(columns);
    if (stages < 2) stages = 2;
    if (stages > share) stages = share;
    if (stages > SM90A_FEW_STAGES) stages = SM90A_FEW_STAGES;
    *out = (struct hewn_gemm_few){
        .columns = columns,
        .stages = stages,
        .rows = rows,
        .shared_bytes = stages * stage > sums ? stages * stage : sums,
    };
}

uint64_t hewn_gemm_few_cost(const struct hewn_gemm_extent *p, uint32_t parts, uint32_t sm_count)
{
    (void)sm_count;
    (void)parts;
    return p->m > SM90A_FEW_ROWS ? UINT64_MAX : UINT64_MAX - 2;
}
