/* gau-nernst/learn-cuda, 02e_matmul_sm100: a product of 4096 x 4096 x 4096 bf16, C = A·Bᵀ, for model.sh. */
#include "others.h"

enum { SIZE = 4096, ELEMENT = 2, TILE_M = 128 };

static const struct kernel {
    const char *file, *entry;
    unsigned tile_n, tile_k, ctas, stages, threads, grid;
    unsigned more; /* bytes of shared memory beside the stages */
} kernels[] = {
    {"learn_v3", "matmul_v3", 256, 128, 1, 2, 128, 512, 0},
    {"learn_v4", "matmul_v4", 128, 64, 1, 7, 128, 1024, 0},
    {"learn_v5", "ELb0EE", 256, 64, 2, 7, 128, 512, 0},
    {"learn_v6", "ELb0EE", 256, 64, 2, 7, 192, 148, 0},
    /* two barriers a stage, four more, the address of tensor memory */
    {"learn_v7", "ELb0ELb0EE", 256, 64, 2, 7, 192, 148, 7 * 16 + 4 * 8 + 4},
};

void run_learn(const struct problem *p)
{
    const struct kernel *k = &kernels[p->variant - 3];
    const size_t bytes = (size_t)SIZE * SIZE * ELEMENT;
    hewn_cu_deviceptr a = zeroed_buffer(bytes), b = zeroed_buffer(bytes), c = zeroed_buffer(bytes);
    hewn_cu_deviceptr clocks = 0;
    hewn_cu_tensor_map maps[2];
    int m = SIZE, n = SIZE, depth = SIZE, clock_count = 0;
    void *params[] = {&maps[0], &maps[1], &c, &m, &n, &depth, &clocks, &clock_count};
    const unsigned rows = TILE_M + k->tile_n / k->ctas;
    struct tensor t =
        paneled(HEWN_TENSORMAP_BF16, SIZE, SIZE, TILE_M, k->tile_k, HEWN_TENSORMAP_SWIZZLE_128B);

    tensor_map(&maps[0], a, &t);
    t.box[1] = k->tile_n / k->ctas; /* each CTA of a pair loads half of B */
    tensor_map(&maps[1], b, &t);
    launch(&(struct launch){.function = entry_of(k->file, k->entry),
                            .grid = {k->grid},
                            .block = {k->threads},
                            .shared = k->stages * rows * k->tile_k * ELEMENT + k->more},
           params);
}
