/* What a plan of the variants `few` and `oddfew` (ptx/sm_90a/gemm_few.ptx, gemm_oddfew.ptx) decides for each shape. */
#ifndef HEWN_RUNTIME_GEMM_FEW_H
#define HEWN_RUNTIME_GEMM_FEW_H

#include "gemm_kernels.h"

struct hewn_gemm_few {
    uint32_t columns; /* of D in a tile */
    uint32_t stages;  /* of the ring; of small ones, teams of a CTA's warps, each with a tile */
    uint32_t rows;    /* of A in the ring, the columns of the MMA; 8, 16, 32 or 64 */
    uint32_t shared_bytes; /* dynamic */
    uint32_t share;        /* LANES: CTAs of a cluster, which share loads of A; otherwise 0 */
};

/* With the kernel `few`, HEWN_GEMM_...FEW, for `parts` parts of K on `sm_count` SMs; LANES: 0 where the device cannot
 * launch clusters. The problem has at most 64 rows, LANES 256. */
void hewn_gemm_few_shape(const struct hewn_gemm_extent *problem, uint32_t few, uint32_t parts,
                         uint32_t sm_count, struct hewn_gemm_few *out);

/* SM cycles, as gemm_cost.c counts them. */
double hewn_gemm_few_cost(const struct hewn_gemm_extent *problem, uint32_t few, uint32_t parts,
                          uint32_t sm_count);

#endif
