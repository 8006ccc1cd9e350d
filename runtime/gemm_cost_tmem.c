/* The model of time of the GEMM kernels of sm_100f. */
#include "gemm_cost.h"
#include "gemm_few.h"

/* Of a kernel with tensor memory, in SM cycles of a B200, by the rates of the simulator's model
 * (tools/sim/trace/model.c); no Blackwell GPU has been timed. A k-block's MMAs take half a cycle a column, or
 * what shared memory takes for the operands. The epilogue of one tile overlaps the next tile's MMAs. */
static const double column_cycles = 0.5, operand_cycles = 0.25;  /* of 32 bytes of k */
static const double blackwell_bytes = 4800, blackwell_l2 = 9100; /* a cycle, of all SMs together */
static const double stored_column = 10, blackwell_start = 3200, pair_start = 300;

/* Rows of 128 bytes into an SM, at most 79 bytes a cycle, of which it asks for some itself, while so many SMs
 * load. */
static double blackwell_rows(double rows, double asked, double sms)
{
    return gemm_larger(1.62 * rows, 128 * asked * sms / blackwell_l2);
}

__attribute__((cold)) double hewn_gemm_tmem_cost(const struct hewn_gemm_kernel *k,
                                                 const struct hewn_gemm_extent *p,
                                                 uint32_t sm_count)
{
    const uint32_t cluster = k->pair_m * k->pair_n;
    uint64_t tiles = gemm_ceil_div(p->m, (uint64_t)k->tile_m * k->pair_m) *
                     gemm_ceil_div(p->n, (uint64_t)k->tile_n * k->pair_n);
    /* A GPC has an even number of SMs, which need not be a multiple of four. */
    const uint32_t clusters = sm_count / cluster - (cluster > 2 && sm_count > 8 * cluster);
    double waves = gemm_real(gemm_ceil_div(tiles * p->batch, clusters));
    double blocks = gemm_real(gemm_ceil_div(p->k, hewn_gemm_tile_k(k, p->in)));
    double rows = k->tile_m + (double)k->tile_n / k->pair_m;
    double multiply = gemm_larger(column_cycles * k->tile_n, operand_cycles * rows);
    double at_once = gemm_smaller(clusters, gemm_real(tiles * p->batch)) * cluster;
    double asked = rows - k->tile_m + (double)k->tile_m / k->pair_n;
    double loads = blackwell_rows(rows, asked, at_once);
    if (k->can & GEMM_CAN_LOOSE) loads = gemm_loose(k, p, 2 * loads) / 2; /* twice as many warps */
    double block = gemm_larger(multiply * k->row_bytes / 32, loads);
    double epilogue = stored_column * k->tile_n;
    double bytes =
        (gemm_real(p->batch_a) * gemm_real(p->m) + gemm_real(p->batch_b) * gemm_real(p->n)) *
            gemm_real(p->k) * p->in +
        gemm_real(p->batch) * gemm_real(p->m) * gemm_real(p->n) * p->out;
    double run = waves * gemm_larger(blocks * block, epilogue);
    return blackwell_start + (cluster > 1 ? pair_start : 0) +
           gemm_larger(run, bytes / blackwell_bytes) + epilogue;
}

/* The same where rows of A are columns of the MMA. */
__attribute__((cold)) double hewn_gemm_lanes_cost(const struct hewn_gemm_kernel *k,
                                                  const struct hewn_gemm_extent *p,
                                                  uint32_t sm_count, int clusters)
{
    struct hewn_gemm_few s;
    hewn_gemm_few_shape(p, k->few, clusters ? 1 : 0, sm_count, &s);
    if (s.share > 1) sm_count = hewn_gemm_clusters(sm_count, s.share) * s.share;
    uint64_t tiles = gemm_ceil_div(p->n, s.columns) * p->batch;
    double waves = gemm_real(gemm_ceil_div(tiles, sm_count));
    double at_once = gemm_smaller(gemm_real(tiles), sm_count);
    double blocks = gemm_real(gemm_ceil_div(p->k, hewn_gemm_tile_k(k, p->in))), rows = s.rows;
    double multiply = gemm_larger(column_cycles * rows, operand_cycles * (rows + k->tile_n));
    double loaded = gemm_real(p->m) + s.columns, asked = gemm_real(p->m) / s.share + s.columns;
    double block =
        gemm_larger(multiply * k->row_bytes / 32, blackwell_rows(loaded, asked, at_once));
    double epilogue = stored_column * rows;
    double bytes =
        (gemm_real(p->batch_a) * gemm_real(p->m) + gemm_real(p->batch_b) * gemm_real(p->n)) *
            gemm_real(p->k) * p->in +
        gemm_real(p->batch) * gemm_real(p->m) * gemm_real(p->n) * p->out;
    double run = waves * gemm_larger(blocks * block, epilogue);
    return blackwell_start + gemm_larger(run, bytes / blackwell_bytes) + epilogue;
}
