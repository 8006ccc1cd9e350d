/* What a plan of the variant `few` (ptx/sm_90a/gemm_few.ptx) decides for each shape. */
#ifndef HEWN_RUNTIME_GEMM_FEW_H
#define HEWN_RUNTIME_GEMM_FEW_H

#include "gemm_kernels.h"

struct hewn_gemm_few {
    uint32_t columns;      /* of D in a tile */
    uint32_t stages;       /* of the ring */
    uint32_t rows;         /* of A's box, the columns of the MMA */
    uint32_t shared_bytes; /* dynamic */
};

/* For `parts` parts of K on `sm_count` SMs. The problem has at most 64 rows. */
void hewn_gemm_few_shape(const struct hewn_gemm_extent *problem, uint32_t parts, uint32_t sm_count,
                         struct hewn_gemm_few *out);

/* SM cycles, as gemm_kernels.c counts them. UINT64_MAX where the kernel cannot compute the problem. */
uint64_t hewn_gemm_few_cost(const struct hewn_gemm_extent *problem, uint32_t parts,
                            uint32_t sm_count);

#endif
