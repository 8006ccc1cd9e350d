/* The GEMM kernels as the host sees them, and which of them suits a problem best. */
#ifndef HEWN_RUNTIME_GEMM_KERNELS_H
#define HEWN_RUNTIME_GEMM_KERNELS_H

#include "hewn.h"

/* CTAs of a cluster that every device takes; a kernel with more parts than that asks for more. */
enum { HEWN_GEMM_CLUSTER = 8 };

/* Variants of a target, at most. */
enum { HEWN_GEMM_KERNELS_MOST = 144 };

/* Kernels whose tiles the plan decides: of few rows, by tensor maps; then those with operands that begin anywhere,
 * whose sums have an order of their own: of few rows; small, by the sides of their tiles. LANES: few rows, of
 * sm_100f. */
enum { HEWN_GEMM_FEW = 1, HEWN_GEMM_LANES, HEWN_GEMM_ODDFEW, HEWN_GEMM_ODD16, HEWN_GEMM_ODD32 };

/* A variant of a target's kernel: its plan header's numbers. Variants that differ only in who shares loads
 * have one module. */
struct hewn_gemm_kernel {
    const char *target, *variant;
    const char *module;              /* what stands behind its dtypes in the module's name */
    uint32_t tile_m, tile_n, stages; /* the tile of a CTA */
    uint32_t row_bytes;              /* of an operand's row in a k-block */
    uint32_t pair_m, pair_n;         /* CTAs of a cluster that share loads: each 1, 2 or 4 */
    uint32_t parts;                  /* the most parts of K in a cluster */
    uint32_t threads;
    uint32_t d_rows; /* of an output box */
    uint32_t dynamic_shared;
    uint32_t tmem_columns;
    uint32_t ctas_per_sm;
    uint32_t raster_rows;
    uint32_t can;    /* GEMM_CAN_... */
    uint32_t mode;   /* GEMM_MODE_PAIR_..., _LOG_...: who shares loads, where it is told */
    uint32_t most_m; /* rows that it computes, at most; 0: any */
    uint32_t
        few; /* HEWN_GEMM_FEW and so on: the plan decides tile_n and the stages, gemm_few.c; or 0 */
    uint32_t exchanged; /* 1: A and B are exchanged, results of 16 bits */
    uint32_t named;     /* 1: computes only what names it */
    uint32_t glu;       /* 1: for HEWN_ACT_SWIGLU; a tile of D has half of tile_n columns */
    uint32_t fetches;   /* k-blocks at most that it tells L2 to fetch early */
    uint32_t fitted;    /* 1: the plan decides tile_m or, not exchanged, tile_n: hewn_gemm_fit */
    uint32_t odd;       /* not 0: a tensor map for every class of rows, gemm_odd.c */
    uint32_t tried;     /* bit p - 1: p parts of K are tried where nothing names them */
};

/* m, n, k, batch of a problem, matrices that A and B are (1: one for the whole batch), and the bytes of one
 * element of A or B, and of D. */
struct hewn_gemm_extent {
    uint64_t m, n, k, batch, batch_a, batch_b;
    uint32_t in, out;
    uint32_t need;             /* GEMM_CAN_... */
    uint32_t askew_a, askew_b; /* rows begin: 0 on lines of 128 bytes, 1 on 32 bytes, 2 elsewhere */
    uint32_t askew_d;          /* 1: rows are not all on 32 bytes */
    uint32_t loose_a, loose_b; /* 1: no tensor map, because of its address or strides */
    uint32_t ways_a, ways_b;   /* bank conflicts of a kernel with `odd` that reads rows, 1: none */
    uint32_t promoted;         /* 1: sums of 8-bit products are promoted */
    uint32_t ordered;          /* 1: terms are added in the order that most kernels have */
    int mn_a, mn_b;            /* MN-major */
};

struct hewn_gemm_model; /* gemm_cost.h */

struct hewn_gemm_choice {
    const struct hewn_gemm_kernel *kernel;
    uint32_t parts; /* of K */
    int lacks;      /* 1: it cannot compute the problem, nor can any other */
    double cost;    /* cycles, by the model */
};

enum {
    GEMM_SLICE_BYTES = 512 /* of a row of K that slices have at least, where they are chosen */
};

/* The problem that stands for `slices` slices of K, a number as in hewn_gemm_desc: a batch of as many of
 * the longest slice, with sums of f32. */
struct hewn_gemm_extent hewn_gemm_slice_extent(const struct hewn_gemm_extent *problem,
                                               uint32_t slices);

/* Whether K can be cut into so many slices. */
int hewn_gemm_sliceable(const struct hewn_gemm_extent *problem, uint32_t slices);

/* Whether K has k-blocks enough for so many slices of so many parts of a kernel. */
int hewn_gemm_cuts(const struct hewn_gemm_kernel *kernel, uint32_t parts,
                   const struct hewn_gemm_extent *problem, uint32_t slices);

/* Slices of a product of m x n that occupy all clusters of such a kernel once; at most GEMM_MAX_SLICES. */
uint32_t hewn_gemm_most_slices(const struct hewn_gemm_kernel *kernel, uint32_t parts, uint64_t m,
                               uint64_t n, uint32_t sm_count);

/* The slices with kernel and parts that cost least, the kernel that adds them up included, HEWN_GEMM_TURNED more where
 * they are those of the transpose; 1 where none cost less than `whole`, the choice without slices. */
uint32_t hewn_gemm_choose_slices(const struct hewn_gemm_model *model,
                                 const struct hewn_gemm_choice *whole,
                                 const struct hewn_gemm_extent *problem,
                                 struct hewn_gemm_choice *out);

/* All of them, of every target. */
const struct hewn_gemm_kernel *hewn_gemm_kernels(size_t *count);
/* Those of a target, which lie one behind another; *count 0: the target is not known. */
const struct hewn_gemm_kernel *hewn_gemm_kernels_of(const char *target, size_t *count);

/* k of a k-block of elements of that many bytes. */
uint32_t hewn_gemm_tile_k(const struct hewn_gemm_kernel *kernel, uint64_t element);

/* Clusters of that many CTAs, one CTA an SM, that run at once on a device of `sm_count` SMs; an
 * estimate, where no driver is asked. */
uint32_t hewn_gemm_clusters(uint32_t sm_count, uint32_t cluster);

/* Whether CTAs of such a kernel, without clusters, start together, after the grid before has ended. Those that start
 * while it ends lie where it leaves SMs. Together they lie in order, and a GPC asks L2 once for what its CTAs read at the
 * same time: of few rows of tiles, the rows of B. In one wave with a long loop that is worth more than an early start
 * (ptx/sm_90a/LEDGER.md, "Where CTAs lie"). */
static inline int hewn_gemm_together(const struct hewn_gemm_kernel *k, uint64_t tiles_m,
                                     uint64_t tiles, uint64_t k_blocks, int sm_count)
{
    enum { ROWS_OF_TILES = 4, LONG_LOOP = 64 };
    return k->exchanged && tiles_m <= ROWS_OF_TILES && k_blocks >= LONG_LOOP &&
           tiles <= (uint64_t)sm_count;
}

/* What the choice among a target's kernels computes once for `sm_count` SMs; `clusters` 0: the device cannot launch
 * any. The caller frees it; NULL: out of host memory. */
struct hewn_gemm_model *hewn_gemm_model_create(const char *target, uint32_t sm_count, int clusters);

/* The kernel and the parts that cost least (gemm_cost.c has the formula), among the target's variants, or of the one
 * named `variant` unless that is NULL, with `parts` parts unless that is 0. HEWN_ERR_ARGUMENT where nothing fits; the
 * kernel is NULL where the target has none. Without clusters only kernels that need none. */
int hewn_gemm_choose(const struct hewn_gemm_model *model, const char *variant, uint32_t parts,
                     const struct hewn_gemm_extent *problem, struct hewn_gemm_choice *out,
                     hewn_error *err);

/* A kernel with `fitted`, with the tile that suits a problem best, and its cost. */
double hewn_gemm_fit(const struct hewn_gemm_model *model, const struct hewn_gemm_kernel *kernel,
                     uint32_t parts, const struct hewn_gemm_extent *problem,
                     struct hewn_gemm_kernel *out);

#endif
