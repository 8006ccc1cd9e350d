/* What the choice of a GEMM kernel and the choice of slices of K ask of the model of time (gemm_cost.c). */
#ifndef HEWN_RUNTIME_GEMM_COST_H
#define HEWN_RUNTIME_GEMM_COST_H

#include "gemm_kernels.h"

#include "../ptx/inc/gemm.plan.h"

/* Clusters of so many CTAs, the last of more, that run at once on all SMs, and on half of them. */
struct gemm_machine {
    uint32_t sm_count, clusters[HEWN_GEMM_CLUSTER + 2], apart[HEWN_GEMM_CLUSTER + 2];
    double share; /* of a CTA in half of the SMs */
    int launches; /* clusters may be launched */
};

/* What does not depend on the kernel: bytes of A and B, and of D, and the cycles that memory takes for them at least;
 * the share of rows in two lines; cycles of a row of A and of B. */
struct gemm_view {
    const struct hewn_gemm_model *model;
    const struct hewn_gemm_extent *p;
    double operands, output, memory, lines, row_a, row_b;
    double finish;     /* what an epilogue takes longer to begin */
    uint64_t k_blocks; /* of most kernels */
    int sliced;        /* the problem stands for slices */
};

/* What depends on the kernel alone. */
struct gemm_terms {
    uint32_t height, width; /* of a cluster's tiles */
    double area, begin, lines;
    double multiply[2], epilogue[2]; /* 1: with promoted sums; with results of 16 bits */
    double rows_a, rows_b;           /* that a CTA of a cluster fetches */
    /* What the other terms leave of its time, in parts of it: of all of it, of the share that memory takes, of the share
     * behind `rest_half`; the least sum of these. */
    double rest, rest_memory, rest_late, rest_least;
};

/* What depends on kernel and problem, but not on the parts: tiles, each of a cluster; cycles of a k-block's rows, at
 * least; of equal kernels, less for the one whose tiles read the larger operand once. */
struct gemm_work {
    const struct gemm_terms *of;
    uint64_t tiles_m, tiles_n, tiles, k_blocks;
    double multiply, epilogue, begin, rows, again;
};

static const double gemm_start = 3781; /* cycles from a launch to the first k-block */

static inline uint64_t gemm_ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* Of a count: the conversion of a signed number takes fewer instructions. */
static inline double gemm_real(uint64_t x)
{
    return (double)(int64_t)x;
}

static inline double gemm_larger(double a, double b)
{
    return a > b ? a : b;
}

static inline double gemm_smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Cycles of a kernel that loads loose rows through registers. */
static inline double gemm_loose(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p,
                                double rows)
{
    const double row = 35.6; /* fitted */
    return gemm_larger(row * (p->loose_a * k->tile_m + p->loose_b * k->tile_n), rows);
}

/* Cycles of kernels with tensor memory (gemm_cost_tmem.c); of that where rows of A are columns of the MMA. */
double hewn_gemm_tmem_cost(const struct hewn_gemm_kernel *kernel,
                           const struct hewn_gemm_extent *problem, uint32_t sm_count);
double hewn_gemm_lanes_cost(const struct hewn_gemm_kernel *kernel,
                            const struct hewn_gemm_extent *problem, uint32_t sm_count,
                            int clusters);

struct gemm_view hewn_gemm_view(const struct hewn_gemm_model *model,
                                const struct hewn_gemm_extent *problem);

void hewn_gemm_set_work(struct gemm_work *work, const struct hewn_gemm_kernel *kernel,
                        const struct gemm_terms *terms, const struct gemm_view *view);

/* Cycles of a kernel with so many parts; or any number from `enough` on, if they are that many. */
double hewn_gemm_cost(const struct hewn_gemm_kernel *kernel, uint32_t parts,
                      const struct gemm_view *view, const struct gemm_work *work, double enough);

/* A kernel with parts of K that is tried where nothing is named, as its bound needs it. `bounded` 0: it has none. */
struct gemm_candidate {
    uint16_t kernel; /* of its target */
    uint8_t parts, size, bounded, fitted;
    uint32_t can; /* GEMM_CAN_... and GEMM_SUITS_... */
    uint32_t ctas;
    double most_m, per_height, per_width, per_parts; /* reciprocals */
    double rows_a, rows_b, lines;
    double multiply[2], epilogue[2]; /* as in gemm_terms */
    double between[2],
        overlapped[2]; /* from one tile to the next, while the ring is not filled, or is */
    double begin, add_up, left[2]; /* left: 1: of slices */
};

/* What a candidate suits, beside GEMM_CAN_...: products whose terms have an order, devices without clusters, operands
 * and results that need no GEMM_CAN_LOOSE, no GEMM_CAN_GLU. */
enum {
    GEMM_SUITS_ORDER = 1 << 24,
    GEMM_SUITS_NO_CLUSTERS = 1 << 25,
    GEMM_SUITS_ALIGNED = 1 << 26,
    GEMM_SUITS_NO_GLU = 1 << 27
};

/* A device and what is computed once for its kernels. */
enum { GEMM_CANDIDATES = 256 };
struct hewn_gemm_model {
    const char *target;
    struct gemm_machine machine;
    const struct hewn_gemm_kernel *kernels;
    size_t kernel_count, candidate_count;
    struct gemm_terms terms[HEWN_GEMM_KERNELS_MOST]; /* of each kernel */
    struct gemm_candidate candidates[GEMM_CANDIDATES];
};

static inline const struct gemm_terms *gemm_terms(const struct hewn_gemm_model *model,
                                                  const struct hewn_gemm_kernel *kernel)
{
    return model->terms + (kernel - model->kernels);
}

/* The numbers of a problem that bounds are made of. */
struct gemm_quick {
    double m, n, batch, k_blocks, row_a, row_b, lines, memory, finish;
    uint32_t need;                     /* GEMM_CAN_... and GEMM_SUITS_... */
    int sliced, promoted, out_2, wide; /* wide: n >= m */
    /* By the CTAs of a cluster: clusters that run at once, the reciprocal, those whose CTAs share no TPC, a cluster's
     * share of half of the SMs, how much longer a row takes while all fetch. */
    struct {
        double clusters, per_clusters, apart, share, crowd;
    } of[HEWN_GEMM_CLUSTER + 2];
};

struct gemm_quick hewn_gemm_quick(const struct gemm_view *view);

/* Cycles that a candidate, a kernel with so many parts, takes at least: without what two things that overlap hinder each
 * other, with rows that all lie within the matrix, and so on. 0 where it has no bound. */
double hewn_gemm_bound(const struct gemm_candidate *candidate,
                       const struct hewn_gemm_kernel *kernel, const struct gemm_quick *quick);

/* The least whole number from x on, a quotient by at most 1,024 that is not quite exact. */
static inline double gemm_whole(double x)
{
    return (double)(int64_t)(x + (1 - 1.0 / 4096));
}

/* Whether a candidate lacks nothing and need not be named. */
static inline int gemm_suits(const struct gemm_candidate *c, const struct gemm_quick *q)
{
    return !(q->need & ~c->can) && q->m <= c->most_m;
}

/* About what slices of K take at least by kernels of sm_90a before they are added up; of few rows, without the
 * products. */
double hewn_gemm_slices_least(const struct hewn_gemm_extent *problem, uint32_t sm_count);

/* The share of rows that lie in two lines of 128 bytes, which take longer. */
double hewn_gemm_lines(const struct hewn_gemm_extent *problem);

/* Index of a cluster of so many CTAs. */
static inline uint32_t gemm_size_of(uint32_t cluster)
{
    return cluster > HEWN_GEMM_CLUSTER ? HEWN_GEMM_CLUSTER + 1 : cluster;
}

/* k-blocks that so many parts need. Odd rows: every warp of the producer has units in each tile. */
static inline uint64_t gemm_least_blocks(const struct hewn_gemm_kernel *kernel, uint32_t parts)
{
    return kernel->odd && parts > 1 ? (uint64_t)2 * parts : parts;
}

/* Whether a kernel computes such a product only if it is named. */
static inline int gemm_passes(const struct hewn_gemm_kernel *kernel,
                              const struct hewn_gemm_extent *problem)
{
    return kernel->named || (kernel->fitted && problem->ordered) ||
           kernel->glu != ((problem->need & GEMM_CAN_GLU) != 0) ||
           (kernel->can & GEMM_CAN_LOOSE && !(problem->need & GEMM_CAN_LOOSE));
}

#endif
