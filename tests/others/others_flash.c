/*
 * Dao-AILab/flash-attention, hopper/ (FlashAttention-3), forward, f16, head size 64: 2 x 256 rows, four query
 * heads over two key heads; variant 1 is causal.
 *
 * The kernel has one parameter, a C++ object. `struct parameters` has its layout at the commit of others.md,
 * and a value where this kernel reads one; the rest stays 0.
 */
#include "others.h"

#include <stdbool.h>

enum {
    BATCH = 2,
    ROWS = 256,
    HEADS = 4,
    KEY_HEADS = 2,
    WIDTH = 64,
    ELEMENT = 2,
    TILE_ROWS = 192,
    SMS = 132,
    THREADS = 512
};

/* Division of 31-bit numbers by multiplication: n / divisor = high word of n · multiplier, shifted. */
struct divisor {
    int divisor;
    uint32_t multiplier, shift;
};

static struct divisor divide_by(int divisor)
{
    struct divisor d = {.divisor = divisor};
    unsigned bits = 0;

    if (divisor == 1) return d;
    while (1 << bits < divisor) bits++;
    d.multiplier = (uint32_t)(((1ULL << (31 + bits)) + (unsigned)divisor - 1) / (unsigned)divisor);
    d.shift = bits - 1;
    return d;
}

/* A tensor map, in the place of the object that holds it. */
struct held_map {
    _Alignas(128) hewn_cu_tensor_map map;
    _Alignas(128) char end;
};

/* How CTAs take tiles: a fixed stride where every tile costs the same, a counter in device memory where
 * causality makes them unequal. */
struct static_tiles {
    int blocks;
    struct divisor row_blocks, heads, splits;
};
struct counted_tiles {
    int blocks;
    struct divisor row_blocks, heads;
    struct divisor l2_heads, l2_blocks, l2_rest; /* tiles whose keys fit into L2 together */
    int l2_sections;
    hewn_cu_deviceptr counter;
};

struct parameters {
    struct {
        hewn_cu_deviceptr query;
        int query_shape[4]; /* rows, width, heads, batch */
        char query_packed[72];
        int key_shape[4];
        char key_value_new_rotary[272];
        int pages[4];
        struct divisor page_rows, page_blocks, heads_per_key;
        struct held_map query_map, key_map, value_map, new_key_map, new_value_map;
        char no_qv_map[8];
        float scale; /* of scores, for exponentials of base 2 */
        char descale[80];
        int window_left, window_right;
        struct divisor chunk;
        int splits;
        char indices[56];
    } load;
    struct {
        _Alignas(128) hewn_cu_deviceptr out;
        int shape[5]; /* rows, width, heads, batch, splits */
        uint64_t stride[4];
        int packed_shape[5];
        uint64_t packed_stride[4]; /* row, head, batch, split */
        char partial_out[72];
        hewn_cu_deviceptr sums;
        uint64_t sums_stride[3]; /* head, batch, split; the row's is 1 */
        int sums_shape[4];
        uint64_t sums_packed[3];
        char partial_sums[56];
        struct divisor heads_per_key;
        struct held_map out_map;
        char indices[16];
    } store;
    union {
        struct {
            int hardware[9]; /* the device, its SMs */
            struct static_tiles tiles;
        } fixed;
        struct {
            int hardware[10];
            struct counted_tiles tiles;
        } counted;
    };
};
_Static_assert(sizeof(struct parameters) == 2944, "as the kernel's parameter");

/* Rows of `heads` heads: dimensions are the element, the row, the head, the batch; a box is a tile of one head. */
static struct tensor tensor_of(int heads, uint32_t tile)
{
    const uint64_t head = WIDTH * ELEMENT, row = head * (uint64_t)heads;

    return (struct tensor){.dtype = HEWN_TENSORMAP_F16,
                           .rank = 4,
                           .dims = {WIDTH, ROWS, (uint64_t)heads, BATCH},
                           .strides = {row, head, row * ROWS},
                           .box = {WIDTH, tile, 1, 1},
                           .swizzle = HEWN_TENSORMAP_SWIZZLE_128B,
                           .l2 = HEWN_TENSORMAP_L2_128B};
}

static void set_shape(int shape[4], int heads)
{
    shape[0] = ROWS, shape[1] = WIDTH, shape[2] = heads, shape[3] = BATCH;
}

static void set_load(struct parameters *p, hewn_cu_deviceptr q, hewn_cu_deviceptr k,
                     hewn_cu_deviceptr v, bool causal)
{
    const struct tensor query = tensor_of(HEADS, TILE_ROWS);
    const struct tensor key = tensor_of(KEY_HEADS, causal ? 128 : 192);

    set_shape(p->load.query_shape, HEADS);
    set_shape(p->load.key_shape, KEY_HEADS);
    p->load.pages[0] = BATCH;
    p->load.page_rows = p->load.page_blocks = divide_by(1);
    p->load.heads_per_key = divide_by(HEADS / KEY_HEADS);
    tensor_map(&p->load.query_map.map, q, &query);
    tensor_map(&p->load.key_map.map, k, &key);
    tensor_map(&p->load.value_map.map, v, &key);
    p->load.scale = 0.125F * 1.44269504088896340736F; /* log2(e) / sqrt(WIDTH) */
    p->load.window_left = -1, p->load.window_right = causal ? 0 : -1;
    p->load.splits = 1;
}

static void set_store(struct parameters *p, hewn_cu_deviceptr o, hewn_cu_deviceptr sums)
{
    struct tensor out = tensor_of(HEADS, TILE_ROWS);

    out.rank = 5; /* the last is the split of the keys */
    out.dims[4] = out.box[4] = 1;
    tensor_map(&p->store.out_map.map, o, &out);
    p->store.out = o;
    set_shape(p->store.shape, HEADS);
    p->store.shape[4] = 1;
    p->store.packed_stride[0] = HEADS * WIDTH;
    p->store.packed_stride[1] = WIDTH;
    p->store.packed_stride[2] = ROWS * HEADS * WIDTH;
    p->store.sums = sums;
    p->store.sums_stride[0] = p->store.sums_packed[0] = ROWS;
    p->store.sums_stride[1] = p->store.sums_packed[1] = ROWS * HEADS;
    p->store.sums_shape[0] = ROWS, p->store.sums_shape[1] = HEADS;
    p->store.sums_shape[2] = BATCH, p->store.sums_shape[3] = 1;
    p->store.heads_per_key = divide_by(1);
}

static void set_tiles(struct parameters *p, hewn_cu_deviceptr counter, bool causal)
{
    enum {
        ROW_BLOCKS = (ROWS + TILE_ROWS - 1) / TILE_ROWS,
        /* heads whose keys and values fit into 32 MiB, a power of two, times the queries' heads of each */
        L2_HEADS = (32 << 20) / (ROWS * 2 * WIDTH * ELEMENT) * (HEADS / KEY_HEADS)
    };
    const struct static_tiles tiles = {ROW_BLOCKS * HEADS * BATCH, divide_by(ROW_BLOCKS),
                                       divide_by(HEADS), divide_by(1)};

    if (!causal) {
        p->fixed.hardware[1] = SMS;
        p->fixed.tiles = tiles;
        return;
    }
    p->counted.hardware[1] = SMS;
    p->counted.tiles = (struct counted_tiles){.blocks = tiles.blocks,
                                              .row_blocks = tiles.row_blocks,
                                              .heads = tiles.heads,
                                              .l2_heads = divide_by(L2_HEADS),
                                              .l2_blocks = divide_by(L2_HEADS * ROW_BLOCKS),
                                              .l2_rest = divide_by(HEADS * BATCH % L2_HEADS),
                                              .l2_sections = HEADS * BATCH / L2_HEADS,
                                              .counter = counter};
}

void run_flash3(const struct problem *p)
{
    enum { QUERIES = BATCH * ROWS * HEADS * WIDTH, KEYS = BATCH * ROWS * KEY_HEADS * WIDTH };
    const bool causal = p->variant == 1;
    hewn_cu_deviceptr q = random_buffer(HEWN_F16, QUERIES, 1, 2.0);
    hewn_cu_deviceptr k = random_buffer(HEWN_F16, KEYS, 2, 2.0);
    hewn_cu_deviceptr v = random_buffer(HEWN_F16, KEYS, 3, 2.0);
    hewn_cu_deviceptr o = device_buffer(QUERIES * ELEMENT);
    hewn_cu_deviceptr sums = device_buffer(BATCH * HEADS * ROWS * sizeof(float));
    hewn_cu_deviceptr counter = zeroed_buffer(sizeof(int));
    static struct parameters parameters;
    void *params[] = {&parameters};

    set_load(&parameters, q, k, v, causal);
    set_store(&parameters, o, sums);
    set_tiles(&parameters, counter, causal);
    launch(&(struct launch){.function = entry_of(p->name, "FlashAttnFwdSm90"),
                            .grid = {SMS},
                            .block = {THREADS},
                            .shared = causal ? 93184 : 199680},
           params);
}
