/*
 * deepseek-ai/DeepGEMM's sm90 kernels, at the tiles that its own heuristics give a small problem: D = A·Bᵀ in
 * bf16, 256 x 512 x 640. The bf16 kernel runs by itself, then with A shared by the two CTAs of a cluster. The
 * fp8 kernel has one scale for 1 x 128 of A and one for 128 x 128 of B.
 */
#include "others.h"

enum { M = 256, N = 512, K = 640, TILE = 128, STAGES = 4, SMS = 4, BARRIERS = 256, THREADS = 384 };

static void rows_map(hewn_cu_tensor_map *map, hewn_cu_deviceptr at, int dtype, unsigned size,
                     uint64_t rows, uint64_t cols)
{
    const struct tensor t = {.dtype = dtype,
                             .rank = 2,
                             .dims = {cols, rows},
                             .strides = {cols * size},
                             .box = {128 / size, TILE},
                             .swizzle = HEWN_TENSORMAP_SWIZZLE_128B,
                             .l2 = HEWN_TENSORMAP_L2_256B};
    tensor_map(map, at, &t);
}

static void bf16_product(const struct problem *p, const char *entry, unsigned cluster)
{
    hewn_cu_deviceptr a = random_buffer(HEWN_BF16, M * K, 1, 1.0), groups = 0;
    hewn_cu_deviceptr b = random_buffer(HEWN_BF16, N * K, 2, 1.0);
    hewn_cu_deviceptr d = device_buffer(M * N * 2);
    hewn_cu_tensor_map maps[3];
    uint32_t m = M, n = N, k = K;
    void *params[] = {&groups, &m, &n, &k, &maps[0], &maps[1], &maps[2]};

    rows_map(&maps[0], a, HEWN_TENSORMAP_BF16, 2, M, K);
    rows_map(&maps[1], b, HEWN_TENSORMAP_BF16, 2, N, K);
    rows_map(&maps[2], d, HEWN_TENSORMAP_BF16, 2, M, N);
    launch(&(struct launch){.function = entry_of(p->name, entry),
                            .grid = {SMS},
                            .block = {THREADS},
                            .shared = TILE * TILE * 2 + BARRIERS + STAGES * 2 * TILE * 64 * 2,
                            .cluster = cluster},
           params);
}

void run_deepgemm_bf16(const struct problem *p)
{
    /* the template's number of CTAs that share a tile, and whether it is A's */
    bf16_product(p, "Lj1ELb0E", 1);
    bf16_product(p, "Lj2ELb1E", 2);
}

void run_deepgemm_fp8(const struct problem *p)
{
    enum { GROUPS = K / 128, STAGE = 2 * TILE * 128 + TILE * 4 };
    hewn_cu_deviceptr a = random_buffer(HEWN_E4M3, M * K, 1, 4.0), groups = 0;
    hewn_cu_deviceptr b = random_buffer(HEWN_E4M3, N * K, 2, 4.0);
    hewn_cu_deviceptr a_scales = random_buffer(HEWN_F32, M * GROUPS, 3, 1.0);
    hewn_cu_deviceptr b_scales = random_buffer(HEWN_F32, N / 128 * GROUPS, 4, 1.0);
    hewn_cu_deviceptr d = device_buffer(M * N * 2);
    const struct tensor scales = {.dtype = HEWN_TENSORMAP_F32,
                                  .rank = 2,
                                  .dims = {M, GROUPS},
                                  .strides = {M * sizeof(float)},
                                  .box = {TILE, 1},
                                  .l2 = HEWN_TENSORMAP_L2_256B};
    hewn_cu_tensor_map maps[4];
    uint32_t m = M, n = N, k = K;
    void *params[] = {&b_scales, &groups, &m, &n, &k, &maps[0], &maps[1], &maps[2], &maps[3]};

    rows_map(&maps[0], a, HEWN_TENSORMAP_U8, 1, M, K);
    rows_map(&maps[1], b, HEWN_TENSORMAP_U8, 1, N, K);
    rows_map(&maps[2], d, HEWN_TENSORMAP_BF16, 2, M, N);
    tensor_map(&maps[3], a_scales, &scales);
    launch(&(struct launch){.function = entry_of(p->name, "sm90_fp8_gemm_1d2d_impl"),
                            .grid = {SMS},
                            .block = {THREADS},
                            .shared = TILE * TILE * 2 + BARRIERS + (GROUPS * 4 + 7) / 8 * 8 +
                                      STAGES * STAGE,
                            .cluster = 1},
           params);
}
