/*
 * pranjalssh/fast.cu: one product of its worklog, kernels 2 to 12. C = A·Bᵀ, column-major. The schedules
 * want M and N to be multiples of 2048.
 */
#include "others.h"

#include <stdbool.h>
#include <string.h>

enum { M = 2048, N = 2048, K = 192, TILE_K = 64, ELEMENT = 2, BARRIER = 8, SLOTS = 128, SMS = 128 };

/* Where a kernel finds the maps of A and B: device memory, or its own parameters. */
enum maps_at { BY_POINTER, BY_VALUE };

static const struct kernel {
    unsigned tile_m, tile_n, stages, threads;
    bool persistent; /* SMS CTAs, else one a tile */
    enum maps_at maps;
    unsigned rank;    /* of the maps of A and B */
    bool stores;      /* C leaves by TMA */
    bool scheduled;   /* tiles come from a table in device memory */
    unsigned padding; /* elements behind each 64 of a column of C in shared memory */
} kernels[] = {
    [2] = {64, 64, 1, 128, false, BY_POINTER, 2, false, false, 0},
    [3] = {128, 128, 1, 128, false, BY_POINTER, 2, false, false, 0},
    [4] = {128, 128, 5, 256, false, BY_POINTER, 2, false, false, 0},
    [5] = {128, 256, 3, 384, false, BY_POINTER, 2, false, false, 0},
    [6] = {128, 256, 3, 384, true, BY_VALUE, 2, false, false, 0},
    [7] = {128, 256, 3, 384, true, BY_VALUE, 5, false, false, 0},
    [8] = {128, 256, 3, 384, true, BY_VALUE, 3, false, false, 0},
    [9] = {128, 256, 3, 384, true, BY_VALUE, 3, false, false, 0},
    [10] = {128, 256, 3, 384, true, BY_VALUE, 3, true, false, 0},
    [11] = {128, 256, 3, 384, true, BY_VALUE, 3, true, true, 0},
    [12] = {128, 256, 3, 384, true, BY_VALUE, 3, true, true, 8},
};

/* The map of an operand of `rows` x K. The ranks above 3 have dimensions of 1, with strides of 0. */
static void operand_map(hewn_cu_tensor_map *map, hewn_cu_deviceptr at, const struct kernel *k,
                        unsigned rows, unsigned tile)
{
    struct tensor t = {.dtype = HEWN_TENSORMAP_BF16,
                       .rank = 2,
                       .dims = {K, rows},
                       .strides = {K * ELEMENT},
                       .box = {TILE_K, tile},
                       .swizzle = HEWN_TENSORMAP_SWIZZLE_128B};

    if (k->rank > 2)
        t = paneled(HEWN_TENSORMAP_BF16, rows, K, tile, TILE_K, HEWN_TENSORMAP_SWIZZLE_128B);
    for (unsigned i = t.rank; i < k->rank; i++) t.dims[i] = t.box[i] = 1;
    t.rank = k->rank;
    tensor_map(map, at, &t);
}

/* C is N x M in memory. A padded box is wider than the panel it stores. */
static void result_map(hewn_cu_tensor_map *map, hewn_cu_deviceptr at, const struct kernel *k)
{
    const unsigned rows = k->padding ? 64 : k->tile_m;
    struct tensor t =
        paneled(HEWN_TENSORMAP_BF16, N, M, k->tile_n, rows, HEWN_TENSORMAP_SWIZZLE_NONE);

    t.box[0] += k->padding;
    tensor_map(map, at, &t);
}

/* The order of tiles: a row of SLOTS words for each cluster of two CTAs, (m << 16 | n), ended by -1. There are
 * as many tiles of two CTAs here as clusters, so each gets one, and no order is better than another. */
static hewn_cu_deviceptr schedule(const struct kernel *k)
{
    static int table[SMS][SLOTS];
    const unsigned across = N / k->tile_n, tiles = M / (2 * k->tile_m) * across;

    memset(table, -1, sizeof table);
    for (unsigned i = 0; i < tiles; i++) {
        int *slot = table[i % (SMS / 2)];
        while (*slot >= 0) slot++;
        *slot = (int)(i / across << 16 | i % across);
    }
    return copied_buffer(table, sizeof table);
}

/* Stages of A and B, then C, the barriers and the cluster's row of the schedule. */
static unsigned shared_bytes(const struct kernel *k)
{
    unsigned bytes = k->stages * (k->tile_m + k->tile_n) * TILE_K * ELEMENT;

    if (k->stores) {
        bytes += k->tile_n * (k->tile_m + k->tile_m / 64 * k->padding) * ELEMENT;
        bytes += 2 * k->stages * BARRIER;
    }
    if (k->scheduled) bytes += SLOTS * (unsigned)sizeof(int);
    return (bytes + 127) / 128 * 128;
}

void run_fastcu(const struct problem *p)
{
    const struct kernel *k = &kernels[p->variant];
    int m = M, n = N, depth = K;
    hewn_cu_deviceptr a = random_buffer(HEWN_BF16, M * K, 1, 1.0);
    hewn_cu_deviceptr b = random_buffer(HEWN_BF16, N * K, 2, 1.0);
    hewn_cu_deviceptr c = zeroed_buffer((size_t)M * N * ELEMENT), last = 0; /* no clocks wanted */
    hewn_cu_tensor_map maps[3];
    hewn_cu_deviceptr there[2];
    void *params[] = {&m, &n, &depth, &c, &maps[0], &maps[1], &last};
    struct launch l = {.block = {k->threads}, .shared = shared_bytes(k)};

    l.grid[0] = k->persistent ? SMS : M / k->tile_m * (N / k->tile_n);
    if (p->variant == 2) l.shared = 0; /* its tiles are static */
    operand_map(&maps[0], a, k, M, k->tile_m);
    operand_map(&maps[1], b, k, N, k->tile_n);
    if (k->maps == BY_POINTER) {
        for (int i = 0; i < 2; i++) {
            there[i] = copied_buffer(&maps[i], sizeof maps[i]);
            params[4 + i] = &there[i];
        }
    }
    if (k->stores) {
        result_map(&maps[2], c, k);
        params[3] = &maps[2];
    }
    if (k->scheduled) last = schedule(k);
    /* kernel 3 has a second instance that writes clocks */
    l.function = entry_of(p->name, p->variant == 3 ? "ELb0EE" : "matmulKernel");
    launch(&l, params);
}
