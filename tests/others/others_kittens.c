/*
 * HazyResearch/ThunderKittens: products for Hopper and Blackwell, and attention for Hopper. Its kernels take
 * their tensors as structs of one layout, `layout` here.
 */
#include "lib/harness.h"
#include "lib/number.h"
#include "others.h"

#include <stdlib.h>

enum { ELEMENT = 2, SHARED = 226 * 1024 };

/* A tensor of up to four dimensions: address, the dimensions that are not constants of the kernel, and the one
 * tensor map. Constant dimensions leave one byte each in front. */
struct layout {
    _Alignas(128) hewn_cu_deviceptr data;
    uint64_t dims[4];
    _Alignas(128) hewn_cu_tensor_map map;
    _Alignas(128) char no_more_maps;
};
_Static_assert(sizeof(struct layout) == 384, "as the kernels' parameters");

struct tile {
    uint32_t rows, cols;
    int swizzle;
};

/* The map that the library makes for a tile: panels, then two dimensions of 1. */
static void map_tiles(struct layout *l, int dtype, uint64_t rows, uint64_t cols, uint64_t depth,
                      uint64_t batch, struct tile tile)
{
    struct tensor t = paneled(dtype, rows, cols, tile.rows, tile.cols, tile.swizzle);
    const uint64_t slice = rows * t.strides[0];

    t.rank = 5;
    t.dims[3] = depth, t.dims[4] = batch;
    t.strides[2] = slice, t.strides[3] = depth * slice;
    t.box[3] = t.box[4] = 1;
    tensor_map(&l->map, l->data, &t);
}

static struct layout matrix(hewn_cu_deviceptr data, int dtype, uint64_t rows, uint64_t cols,
                            struct tile tile)
{
    struct layout l = {.data = data, .dims = {0, rows, cols}};

    map_tiles(&l, dtype, rows, cols, 1, 1, tile);
    return l;
}

static struct layout heads(hewn_cu_deviceptr data, uint64_t batch, uint64_t head_count,
                           uint64_t rows, uint64_t cols, struct tile tile)
{
    struct layout l = {.data = data, .dims = {batch, head_count, rows, cols}};

    map_tiles(&l, HEWN_TENSORMAP_BF16, rows, cols, head_count, batch, tile);
    return l;
}

/* ---- educational_h100: the inputs and the reference of its own programs ---- */

/* The Mersenne twister MT19937 of Matsumoto and Nishimura, as std::mt19937. */
struct twister {
    uint32_t state[624];
    unsigned at;
};

static void twister_seed(struct twister *t, uint32_t seed)
{
    t->state[0] = seed;
    for (unsigned i = 1; i < 624; i++)
        t->state[i] = 1812433253U * (t->state[i - 1] ^ t->state[i - 1] >> 30) + i;
    t->at = 624;
}

static uint32_t twister_next(struct twister *t)
{
    uint32_t x;

    for (unsigned i = 0; t->at == 624 && i < 624; i++) {
        const uint32_t *s = t->state;
        x = (s[i] & 0x80000000U) | (s[(i + 1) % 624] & 0x7fffffffU);
        t->state[i] = s[(i + 397) % 624] ^ x >> 1 ^ (x & 1 ? 0x9908b0dfU : 0);
    }
    if (t->at == 624) t->at = 0;
    x = t->state[t->at++];
    x ^= x >> 11;
    x ^= x << 7 & 0x9d2c5680U;
    x ^= x << 15 & 0xefc60000U;
    return x ^ x >> 18;
}

/* Uniform in [-0.5, 0.5), as std::uniform_real_distribution<double> of libstdc++ draws it. */
static hewn_cu_deviceptr twisted_buffer(struct twister *t, size_t count)
{
    uint16_t *host = calloc(count, sizeof *host);
    hewn_cu_deviceptr at;

    if (!host) fatal("no memory for %zu elements", count);
    for (size_t i = 0; i < count; i++) {
        const double low = twister_next(t), high = twister_next(t);
        host[i] = double_to_bf16((double)(float)((low + high * 0x1p32) * 0x1p-64 - 0.5));
    }
    at = copied_buffer(host, count * sizeof *host);
    free(host);
    return at;
}

void run_kittens_level(const struct problem *p)
{
    enum { SIZE = 256, BYTES = SIZE * SIZE * ELEMENT };
    static const struct tile tile = {64, 64, HEWN_TENSORMAP_SWIZZLE_128B};
    static struct twister random;
    twister_seed(&random, 42);
    hewn_cu_deviceptr a = twisted_buffer(&random, SIZE * SIZE);
    hewn_cu_deviceptr b = twisted_buffer(&random, SIZE * SIZE);
    hewn_cu_deviceptr c = device_buffer(BYTES), reference = device_buffer(BYTES);
    int size = SIZE;
    void *naive[] = {&reference, &a, &b, &size, &size, &size};
    struct {
        struct layout a, b, c;
        int size;
    } globals = {matrix(a, HEWN_TENSORMAP_BF16, SIZE, SIZE, tile),
                 matrix(b, HEWN_TENSORMAP_BF16, SIZE, SIZE, tile),
                 matrix(c, HEWN_TENSORMAP_BF16, SIZE, SIZE, tile), SIZE};
    void *params[] = {&globals};
    struct launch l = {.function = entry_of(p->name, "kernel14matmul_globals"),
                       .grid = {SIZE / 64, SIZE / 64},
                       .block = {256},
                       .shared = 100000};

    if (p->variant == 8) { /* 128 x 256 a CTA, else 64 x 64 */
        l.grid[0] = SIZE / 256, l.grid[1] = SIZE / 128;
        l.block[0] = 384, l.shared = 200000;
    }
    launch(&(struct launch){.function = entry_of(p->name, "reference_gemm_kernel"),
                            .grid = {SIZE / 16, SIZE / 16},
                            .block = {16, 16}},
           naive);
    launch(&l, params);
}

/* ---- bf16_h100, fp8_h100 ---- */

void run_kittens_product(const struct problem *p)
{
    enum { SIZE = 512 };
    static const struct tile bf16[3] = {{64, 64, HEWN_TENSORMAP_SWIZZLE_128B},
                                        {64, 64, HEWN_TENSORMAP_SWIZZLE_128B},
                                        {64, 64, HEWN_TENSORMAP_SWIZZLE_128B}};
    static const struct tile fp8[3] = {{64, 128, HEWN_TENSORMAP_SWIZZLE_128B},
                                       {256, 128, HEWN_TENSORMAP_SWIZZLE_128B},
                                       {64, 256, HEWN_TENSORMAP_SWIZZLE_128B}};
    const bool is_fp8 = p->variant == HEWN_E4M3;
    const struct tile *tiles = is_fp8 ? fp8 : bf16;
    const int dtype = is_fp8 ? HEWN_TENSORMAP_U8 : HEWN_TENSORMAP_BF16;
    hewn_cu_deviceptr a = random_buffer(p->variant, SIZE * SIZE, 1, 1.0);
    hewn_cu_deviceptr b = random_buffer(p->variant, SIZE * SIZE, 2, 1.0);
    hewn_cu_deviceptr c = device_buffer(SIZE * SIZE * hewn_dtype_size(p->variant));
    struct {
        struct layout a, b, c;
    } globals = {matrix(a, dtype, SIZE, SIZE, tiles[0]), matrix(b, dtype, SIZE, SIZE, tiles[1]),
                 matrix(c, dtype, SIZE, SIZE, tiles[2])};
    void *params[] = {&globals};

    launch(&(struct launch){.function = entry_of(p->name, "3lcf6kernel"),
                            .grid = {132},
                            .block = {384},
                            .shared = SHARED},
           params);
}

/* ---- mha_h100, forward ---- */

static void attention(const struct problem *p, const char *entry, uint32_t width)
{
    enum { BATCH = 2, HEADS = 2, ROWS = 384, CTA_ROWS = 3 * 64, ALL = BATCH * HEADS * ROWS };
    const struct tile query = {64, width, HEWN_TENSORMAP_SWIZZLE_128B};
    const struct tile key = {128, width, HEWN_TENSORMAP_SWIZZLE_128B};
    hewn_cu_deviceptr q = random_buffer(HEWN_BF16, (size_t)ALL * width, 1, 1.0);
    hewn_cu_deviceptr k = random_buffer(HEWN_BF16, (size_t)ALL * width, 2, 1.0);
    hewn_cu_deviceptr v = random_buffer(HEWN_BF16, (size_t)ALL * width, 3, 1.0);
    hewn_cu_deviceptr o = device_buffer((size_t)ALL * width * ELEMENT);
    hewn_cu_deviceptr sums = device_buffer(ALL * sizeof(float));
    const struct tensor vectors = {.dtype = HEWN_TENSORMAP_F32,
                                   .rank = 4,
                                   .dims = {ROWS, 1, HEADS, BATCH},
                                   .strides = {ROWS * 4, ROWS * 4, ROWS * 4 * HEADS},
                                   .box = {64, 1, 1, 1}};
    struct {
        struct layout q, k, v, sums, o;
        int rows, heads_per_key;
    } globals = {.q = heads(q, BATCH, HEADS, ROWS, width, query),
                 .k = heads(k, BATCH, HEADS, ROWS, width, key),
                 .v = heads(v, BATCH, HEADS, ROWS, width, key),
                 .sums = {.data = sums, .dims = {BATCH, HEADS, 1, ROWS}},
                 .o = heads(o, BATCH, HEADS, ROWS, width, query),
                 .rows = ROWS,
                 .heads_per_key = 1};
    void *params[] = {&globals};

    tensor_map(&globals.sums.map, sums, &vectors);
    launch(&(struct launch){.function = entry_of(p->name, entry),
                            .grid = {ROWS / CTA_ROWS, HEADS, BATCH},
                            .block = {512},
                            .shared = SHARED},
           params);
}

void run_kittens_attention(const struct problem *p)
{
    attention(p, "fwd_attend_kerILi64ELb0E", 64);
    attention(p, "fwd_attend_kerILi128ELb1E", 128);
}

/* ---- Blackwell, for model.sh ---- */

enum {
    WIDE = HEWN_TENSORMAP_SWIZZLE_128B,
    SMALL = HEWN_TENSORMAP_SWIZZLE_64B,
    /* four stages of two tiles of A and one of B, four halves of a tile of C, room to align */
    PIPE_SHARED = 4 * (2 * 128 + 128) * 128 + 2 * 2 * 128 * 64 + 1024
};

static const struct b200_kernel {
    const char *entry;
    struct tile b, c;
    unsigned grid, threads, shared;
    unsigned cluster; /* of the launch; level 09 fixes its own */
    bool one_object;  /* the three tensors are one parameter, else four with the size */
} b200_kernels[] = {
    [7] = {.entry = "matmul_kernel",
           .b = {64, 128, WIDE},
           .c = {128, 128, WIDE},
           .grid = 1024,
           .threads = 128,
           .shared = SHARED},
    [8] = {.entry = "matmul_kernel",
           .b = {64, 256, WIDE},
           .c = {128, 64, WIDE},
           .grid = 512,
           .threads = 128,
           .shared = SHARED},
    [9] = {.entry = "matmul_kernel",
           .b = {64, 128, WIDE},
           .c = {128, 32, SMALL},
           .grid = 256,
           .threads = 384,
           .shared = SHARED},
    /* bf16_b200, as its own program instantiates it for this size */
    [10] = {.entry = "Li256ELi256ELi64ELi4ELb0ELi4ELi8E",
            .b = {128, 64, WIDE},
            .c = {128, 32, SMALL},
            .grid = 256,
            .threads = 384,
            .shared = PIPE_SHARED,
            .cluster = 2,
            .one_object = true},
};

void run_kittens_b200(const struct problem *p)
{
    enum { SIZE = 4096, DTYPE = HEWN_TENSORMAP_BF16 };
    static const struct tile a_tile = {128, 64, WIDE};
    const struct b200_kernel *k = &b200_kernels[p->variant];
    const size_t bytes = (size_t)SIZE * SIZE * ELEMENT;
    hewn_cu_deviceptr a = zeroed_buffer(bytes), b = zeroed_buffer(bytes), c = zeroed_buffer(bytes);
    struct {
        struct layout a, b, c;
    } tensors = {matrix(a, DTYPE, SIZE, SIZE, a_tile), matrix(b, DTYPE, SIZE, SIZE, k->b),
                 matrix(c, DTYPE, SIZE, SIZE, k->c)};
    int size = SIZE;
    void *one[] = {&tensors}, *four[] = {&tensors.a, &tensors.b, &tensors.c, &size};

    launch(&(struct launch){.function = entry_of(p->name, k->entry),
                            .grid = {k->grid},
                            .block = {k->threads},
                            .shared = k->shared,
                            .cluster = k->cluster},
           k->one_object ? one : four);
}
