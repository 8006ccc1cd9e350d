/*
 * Slices of K: a product whose k is cut into `slices` equal parts, each a product of a batch of its own
 * (gemm.plan.h) with sums of f32 in the workspace, and a second kernel that adds them up:
 *
 *   D = act(alpha * scale_a * scale_b * sum_s part[s] + beta * C + bias)
 *
 * #defines only: PTX and C include this.
 *
 * A lane has four columns of a row, a quad, and adds up some of its slices: of a warp, lanes l, l + width,
 * l + 2 * width, .. (width = 32 / groups) share a quad; the i-th of them takes slices i, i + groups, .., at
 * most GEMM_COMBINE_LOADS. Then the sums of the lanes are added, those 16 lanes apart first. So the order
 * depends on `slices` and `groups` alone.
 */
#ifndef HEWN_PTX_GEMM_COMBINE_PLAN_H
#define HEWN_PTX_GEMM_COMBINE_PLAN_H

#include "gemm.plan.h"

#define GEMM_COMBINE_WARPS   8
#define GEMM_COMBINE_THREADS (32 * GEMM_COMBINE_WARPS)
#define GEMM_COMBINE_COLUMNS 4 /* of a lane */
#define GEMM_COMBINE_LOADS   8 /* of a lane, in flight together */
#define GEMM_COMBINE_GROUPS  8 /* the most lanes of a quad */

#define GEMM_MAX_SLICES (GEMM_COMBINE_LOADS * GEMM_COMBINE_GROUPS)

/* Grid: {ceil(q / (WARPS * 32 / groups)), 1, 1}, q: m * ceil(n / 4); turned, the quads of a row rounded up to two.
 * `finish`: GEMM_FINISH_... */
#define GEMM_COMBINE_SCALARS(X)                                                       \
    X(u64, part, "address of the slices' sums, f32")                                  \
    X(u64, part_pitch, "bytes between rows of a slice, a multiple of 16")             \
    X(u64, part_slice, "bytes between slices, a multiple of 16")                      \
    X(u64, d, "address of D")                                                         \
    X(u64, d_pitch, "bytes between rows of D")                                        \
    X(u64, c, "finish & 2 ? address of C : 0")                                        \
    X(u64, c_pitch, "bytes between rows of C")                                        \
    X(u64, bias, "finish & 12 ? address of bias : 0")                                 \
    X(u64, scale_a, "address of an f32, or 0")                                        \
    X(u64, scale_b, "address of an f32, or 0")                                        \
    X(u32, m, "rows of a slice")                                                      \
    X(u32, n, "columns of a slice")                                                                  \
    X(u32, slices, "slices of K, 1 to 64")                                            \
    X(u32, groups, "lanes of a quad: 1, 2, 4 or 8, 8 * groups >= slices")             \
    X(u32, finish, "1 factors, 2 C, 4 bias, 8 f32 bias; 16, 32, 48 relu, gelu, silu") \
    X(u32, out_type, "0: f32, 1: f16, 2: bf16")                                       \
    X(u32, turned, "1: slices are of the transpose of D, else 0")                     \
    X(f32, alpha, "finish & 1 ? alpha : any")                                         \
    X(f32, beta, "finish & 2 ? beta : any")

#define GEMM_COMBINE_PARAM_BYTES  (0 GEMM_COMBINE_SCALARS(SCALAR_BYTES))

#endif
