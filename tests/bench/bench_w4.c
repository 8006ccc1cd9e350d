/*
 * bench_w4: products with 4-bit weights on a GPU, groups of 128, beside cuBLASLt on the same
 * weights in bf16 and beside Marlin in f16. Microseconds a launch, of CUDA graphs whose launches go
 * round among copies of the weights that are larger than L2 together. "floor": packed weights at
 * 4.4 TB/s.
 *
 *   bench_w4               all shapes
 *   bench_w4 --only TEXT   those whose name has the text
 *   bench_w4 --marlin FILE a library with marlin_run, a marlin_call below: Marlin's marlin_cuda
 *   bench_w4 --all         instead of that, every tile and number of parts
 *
 * Weights are n x k copies of a block of 2048 x 1024, scales of four bits: exact in bf16 and f16,
 * so that all sides compute the same product.
 */
#include "bench/bench_peer.h"
#include "bench/gpu.h"
#include "lib/harness.h"
#include "lib/number.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_N = 2048, BLOCK_K = 1024, GROUP = 128, GROUPS = BLOCK_K / GROUP, ALGORITHMS = 8 };
static const uint64_t l2_span = UINT64_C(200) << 20; /* all copies of the weights, at least */
static const double floor_rate = 4.4e12;

static const struct shape {
    const char *name;
    int n, k; /* multiples of the block */
} shapes[] = {{"8B qkv", 6144, 4096},    {"8B out", 4096, 4096},
              {"8B gate", 14336, 4096},  {"8B gate and up", 28672, 4096},
              {"8B down", 4096, 14336},  {"8B head", 131072, 4096},
              {"70B qkv", 10240, 8192},  {"70B out", 8192, 8192},
              {"70B gate", 28672, 8192}, {"70B gate and up", 57344, 8192},
              {"70B down", 8192, 28672}, {"square", 16384, 16384}};
static const int rows[] = {1, 4, 8, 16, 32, 64};

typedef int marlin_call(const void *x, const void *w, void *d, void *scales, int m, int n, int k,
                        void *zeros, int group, void *stream);

struct bench {
    struct gpu g;
    marlin_call *marlin;
    unsigned char values[BLOCK_N * BLOCK_K / 2]; /* a block, as hewn_w4_weights has it */
    unsigned char scales[BLOCK_N * GROUPS];      /* (16 + this) / 1024 */
};

/* Of one shape on the device. */
struct weights {
    int sets;
    uint64_t packed_bytes, dense_bytes, marlin_bytes;
    hewn_deviceptr packed[2]; /* bf16, f16 */
    hewn_deviceptr dense, marlin, marlin_scales, zeros;
};

static int weight(const struct bench *b, int j, int k)
{
    const unsigned char byte = b->values[(j * BLOCK_K + k) / 2];
    const int bits = k % 2 ? byte >> 4 : byte & 15;
    return bits < 8 ? bits : bits - 16;
}

static double scale(const struct bench *b, int j, int k)
{
    const int group = j * GROUPS + k / GROUP;
    return (16 + b->scales[group]) / 1024.0;
}

static int copies(uint64_t bytes)
{
    return (int)((l2_span + bytes - 1) / bytes);
}

/* ---- the weights of each side -- */

static hewn_w4_desc desc_of(int m, int n, int k, int in)
{
    return (hewn_w4_desc){.struct_size = sizeof(hewn_w4_desc),
                          .m = m,
                          .n = n,
                          .k = k,
                          .group = GROUP,
                          .in = in,
                          .out = in};
}

/* 1024 k of all rows: the block's packed k-blocks, each as often as n asks for. */
static void pack(struct bench *b, const struct shape *s, int in, struct weights *w)
{
    const hewn_w4_desc one = desc_of(1, BLOCK_N, BLOCK_K, in), all = desc_of(1, s->n, s->k, in);
    unsigned char *scales = gpu_host(2 * sizeof b->scales);
    hewn_error err = {0};
    uint64_t bytes;
    for (int j = 0; j < BLOCK_N; j++)
        for (int g = 0; g < GROUPS; g++)
            number_store(in, scale(b, j, g * GROUP), scales + 2 * (j * GROUPS + g));
    const hewn_w4_weights from = {
        .struct_size = sizeof from, .values = b->values, .scales = scales};
    if (hewn_w4_packed_bytes(&one, &bytes, &err)) gpu_die("pack", err.message);
    unsigned char *block = gpu_host(bytes), *wide = gpu_host(bytes * (uint64_t)(s->n / BLOCK_N));
    if (hewn_w4_pack(&one, &from, block, bytes, &err)) gpu_die("pack", err.message);
    const uint64_t row = bytes / GROUPS, times = (uint64_t)(s->n / BLOCK_N);
    for (uint64_t i = 0; i < GROUPS * times; i++)
        memcpy(wide + i * row, block + i / times * row, row);
    if (hewn_w4_packed_bytes(&all, &w->packed_bytes, &err)) gpu_die("pack", err.message);
    w->sets = copies(w->packed_bytes);
    w->packed[in == HEWN_F16] =
        gpu_repeat(&b->g, wide, bytes * times, w->packed_bytes * (uint64_t)w->sets);
    free(scales);
    free(block);
    free(wide);
}

static void widen(struct bench *b, const struct shape *s, struct weights *w)
{
    const uint64_t row = 2 * (uint64_t)s->k, bytes = BLOCK_N * row;
    unsigned char *dense = gpu_host(bytes);
    for (int j = 0; j < BLOCK_N; j++) {
        unsigned char *to = dense + (uint64_t)j * row;
        for (int k = 0; k < BLOCK_K; k++)
            number_store(HEWN_BF16, scale(b, j, k) * weight(b, j, k), to + 2 * (size_t)k);
        for (int k = BLOCK_K; k < s->k; k += BLOCK_K) memcpy(to + 2 * (size_t)k, to, 2 * BLOCK_K);
    }
    w->dense_bytes = row * (uint64_t)s->n;
    w->dense = gpu_repeat(&b->g, dense, bytes, w->dense_bytes * (uint64_t)copies(w->dense_bytes));
    free(dense);
}

/* Marlin's layout: for 16 k and 64 columns, each lane has a word for each 16 columns. */
static uint32_t marlin_word(const struct bench *b, int k, int n, int lane)
{
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    uint32_t word = 0;
    for (int i = 0; i < 8; i++) {
        const int e = order[i], r = e % 4;
        const int row = 2 * (lane % 4 + (r / 2 ? 4 : 0)) + r % 2, column = lane / 4 + 8 * (e / 4);
        word |= (uint32_t)(weight(b, n + column, k + row) + 8) << (4 * i);
    }
    return word;
}

static void pack_marlin(struct bench *b, const struct shape *s, struct weights *w)
{
    const size_t block_words = BLOCK_N * 2, row_words = (size_t)s->n * 2, k_rows = BLOCK_K / 16;
    uint32_t *words = gpu_host(4 * row_words * k_rows);
    unsigned char *scales = gpu_host(2 * (uint64_t)s->n * GROUPS);
    for (size_t kt = 0; kt < k_rows; kt++)
        for (size_t i = 0; i < row_words; i++) {
            const int at = (int)(i % block_words), n = at / 128 * 64, lane = at % 128 / 4;
            words[kt * row_words + i] = marlin_word(b, 16 * (int)kt, n + at % 4 * 16, lane);
        }
    for (int g = 0; g < GROUPS; g++)
        for (int j = 0; j < s->n; j++) {
            const int from = j / 64 * 64 + j % 8 * 8 + j % 64 / 8;
            number_store(HEWN_F16, scale(b, from % BLOCK_N, g * GROUP),
                         scales + 2 * ((size_t)g * (size_t)s->n + (size_t)j));
        }
    w->marlin_bytes = (uint64_t)s->n * (uint64_t)s->k / 2;
    w->marlin =
        gpu_repeat(&b->g, words, 4 * row_words * k_rows, w->marlin_bytes * (uint64_t)w->sets);
    w->marlin_scales = gpu_repeat(&b->g, scales, 2 * (uint64_t)s->n * GROUPS,
                                  2 * (uint64_t)s->n * (uint64_t)(s->k / GROUP));
    memset(words, 0, 4 * row_words);
    w->zeros = gpu_upload(&b->g, words, 4 * row_words);
    free(words);
    free(scales);
}

static hewn_deviceptr activations(struct bench *b, int m, int k, int in)
{
    struct rng r = {1};
    unsigned char *x = gpu_host(2 * (uint64_t)m * (uint64_t)k);
    for (size_t i = 0; i < (size_t)m * (size_t)k; i++)
        number_store(in, ((double)rng_below(&r, 129) - 64) / 64, x + 2 * i);
    const hewn_deviceptr at = gpu_upload(&b->g, x, 2 * (uint64_t)m * (uint64_t)k);
    free(x);
    return at;
}

/* ---- times -- */

static uint64_t launches_of(uint64_t bytes)
{
    const double once = (double)bytes / 3e12 + 3e-6;
    const uint64_t n = (uint64_t)(3e-3 / once);
    return n < 4 ? 4 : n;
}

static double time_ours(struct bench *b, const hewn_w4_desc *d, const struct weights *w,
                        hewn_deviceptr x, hewn_deviceptr out, hewn_w4_plan_info *info)
{
    hewn_w4_plan *plan = NULL;
    hewn_error err = {0};
    if (hewn_w4_plan_create(b->g.d.context, d, &plan, &err)) return 0;
    info->struct_size = sizeof *info;
    hewn_w4_plan_describe(plan, info, NULL);
    const uint64_t count = launches_of(w->packed_bytes);
    hewn_w4_args a = {.struct_size = sizeof a, .x = x, .d = out};
    gpu_time_begin(&b->g);
    for (uint64_t i = 0; i < count; i++) {
        a.w = w->packed[d->in == HEWN_F16] + i % (uint64_t)w->sets * w->packed_bytes;
        gpu_need(hewn_w4_plan_run(plan, &a, b->g.stream, &err), err.message);
    }
    const double seconds = gpu_time_end(&b->g, count);
    hewn_w4_plan_destroy(plan);
    return seconds;
}

/* The fastest of the algorithms that the library's heuristic offers first. */
static double time_cublas(struct bench *b, const struct shape *s, int m, const struct weights *w,
                          hewn_deviceptr x, hewn_deviceptr out)
{
    const struct peer_form form = {.m = m, .n = s->n, .k = s->k};
    struct peer_product *p = peer_product_new(&form);
    const uint64_t sets = (uint64_t)copies(w->dense_bytes), count = launches_of(w->dense_bytes);
    double best = 0;
    for (int i = 0; p && i < peer_algorithms(p) && i < ALGORITHMS; i++) {
        int bad = 0;
        gpu_time_begin(&b->g);
        for (uint64_t l = 0; l < count; l++)
            bad |= peer_launch(p, i, x, w->dense + l % sets * w->dense_bytes, out, b->g.stream);
        const double seconds = gpu_time_end(&b->g, count);
        if (!bad && (best == 0 || seconds < best)) best = seconds;
    }
    if (p && best > 0) { /* the first one's result is what is compared */
        peer_launch(p, 0, x, w->dense, out, b->g.stream);
        gpu_need(b->g.wait(b->g.stream), "wait");
    }
    peer_product_free(p);
    return best;
}

static double time_marlin(struct bench *b, const struct shape *s, int m, const struct weights *w,
                          hewn_deviceptr x, hewn_deviceptr out)
{
    const uint64_t count = launches_of(w->marlin_bytes);
    int bad = 0;
    if (!b->marlin) return 0;
    gpu_time_begin(&b->g);
    for (uint64_t i = 0; i < count; i++)
        bad |= b->marlin(
            (const void *)(uintptr_t)x,
            (const void *)(uintptr_t)(w->marlin + i % (uint64_t)w->sets * w->marlin_bytes),
            (void *)(uintptr_t)out, (void *)(uintptr_t)w->marlin_scales, m, s->n, s->k,
            (void *)(uintptr_t)w->zeros, GROUP, b->g.stream);
    const double seconds = gpu_time_end(&b->g, count);
    return bad ? 0 : seconds;
}

/* The largest difference of two results, relative to the largest element. */
static double differ(struct bench *b, hewn_deviceptr x, hewn_deviceptr y, uint64_t count, int in)
{
    unsigned char *one = gpu_host(2 * count), *other = gpu_host(2 * count);
    double most = 0, largest = 0;
    gpu_need(b->g.d.to_host(one, x, 2 * count), "read");
    gpu_need(b->g.d.to_host(other, y, 2 * count), "read");
    for (uint64_t i = 0; i < count; i++) {
        const double u = number_load(in, one + 2 * i), v = number_load(in, other + 2 * i);
        if (!(fabs(u - v) <= most)) most = fabs(u - v);
        largest = fmax(largest, fabs(v));
    }
    free(one);
    free(other);
    return most / largest;
}

static void compare(struct bench *b, const struct shape *s, int m, const struct weights *w)
{
    const uint64_t count = (uint64_t)m * (uint64_t)s->n;
    hewn_deviceptr x[2] = {activations(b, m, s->k, HEWN_BF16), activations(b, m, s->k, HEWN_F16)};
    hewn_deviceptr d[4];
    hewn_w4_plan_info info = {0};
    for (int i = 0; i < 4; i++) d[i] = gpu_allocate(&b->g, 2 * count);
    const hewn_w4_desc bf16 = desc_of(m, s->n, s->k, HEWN_BF16);
    const hewn_w4_desc f16 = desc_of(m, s->n, s->k, HEWN_F16);
    const double ours = time_ours(b, &bf16, w, x[0], d[0], &info);
    const double ours_f16 = time_ours(b, &f16, w, x[1], d[1], &info);
    const double cublas = time_cublas(b, s, m, w, x[0], d[2]);
    const double marlin = time_marlin(b, s, m, w, x[1], d[3]);
    const double least = (double)w->packed_bytes / floor_rate;
    printf("%-16s %2d %6.1f | %7.2f %7.2f %5.2f %3u/%u/%-2u | %8.2f %6.2f %.1e | ", s->name, m,
           least * 1e6, ours * 1e6, ours_f16 * 1e6, (double)w->packed_bytes / ours * 1e-12,
           info.tile_columns, info.parts, info.stages, cublas * 1e6, cublas / ours,
           cublas > 0 ? differ(b, d[0], d[2], count, HEWN_BF16) : 0);
    if (marlin > 0)
        printf("%7.2f %6.3f %.1e\n", marlin * 1e6, marlin / ours_f16,
               differ(b, d[1], d[3], count, HEWN_F16));
    else
        printf("-\n");
    for (int i = 0; i < 4; i++) b->g.d.mem_free(d[i]);
    for (int i = 0; i < 2; i++) b->g.d.mem_free(x[i]);
}

/* Every tile and number of parts, to fit the choice: time of bf16, the chosen one first. */
static void sweep(struct bench *b, const struct shape *s, int m, const struct weights *w)
{
    hewn_deviceptr x = activations(b, m, s->k, HEWN_BF16);
    hewn_deviceptr d = gpu_allocate(&b->g, 2 * (uint64_t)m * (uint64_t)s->n);
    hewn_w4_desc desc = desc_of(m, s->n, s->k, HEWN_BF16);
    hewn_w4_plan_info info = {0};
    double chosen = time_ours(b, &desc, w, x, d, &info);
    printf("%-16s %2d floor %.1f: %u/%u %.2f |", s->name, m,
           (double)w->packed_bytes / floor_rate * 1e6, info.tile_columns, info.parts, chosen * 1e6);
    for (desc.tile = 64; desc.tile <= 256; desc.tile += 64)
        for (desc.parts = 1; desc.parts <= 8; desc.parts++) {
            const uint64_t ctas = (uint64_t)(s->n + (int)desc.tile - 1) / desc.tile * desc.parts;
            if (ctas < 48 || ctas > 800) continue;
            const double seconds = time_ours(b, &desc, w, x, d, &info);
            printf(" %u/%u/%u %.2f", desc.tile, desc.parts, info.stages, seconds * 1e6);
        }
    printf("\n");
    b->g.d.mem_free(x);
    b->g.d.mem_free(d);
}

static void run_shape(struct bench *b, const struct shape *s, int all)
{
    struct weights w = {0};
    pack(b, s, HEWN_BF16, &w);
    if (!all) {
        pack(b, s, HEWN_F16, &w);
        widen(b, s, &w);
        if (b->marlin) pack_marlin(b, s, &w);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (all)
            sweep(b, s, rows[i], &w);
        else
            compare(b, s, rows[i], &w);
        fflush(stdout);
    }
    const hewn_deviceptr list[] = {w.packed[0], w.packed[1],     w.dense,
                                   w.marlin,    w.marlin_scales, w.zeros};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i]) b->g.d.mem_free(list[i]);
}

static void open_marlin(struct bench *b, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) gpu_die(path, dlerror());
    *(void **)&b->marlin = dlsym(library, "marlin_run");
    if (!b->marlin) gpu_die(path, "has no marlin_run");
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct rng r = {7};
    const char *only = "";
    int all = 0;
    gpu_open(&b.g);
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--all"))
            all = 1;
        else if (!strcmp(argv[i], "--only") && more)
            only = argv[++i];
        else if (!strcmp(argv[i], "--marlin") && more)
            open_marlin(&b, argv[++i]);
        else
            gpu_die(argv[i], "is none of --only TEXT, --marlin FILE, --all");
    }
    for (size_t i = 0; i < sizeof b.values; i++) b.values[i] = (unsigned char)rng_next(&r);
    for (size_t i = 0; i < sizeof b.scales; i++) b.scales[i] = (unsigned char)rng_below(&r, 16);
    if (!all && !peer_open(&b.g.d)) printf("no cuBLASLt here\n");
    printf("%s, cuBLASLt %zu; us\n", b.g.d.info.name, all ? 0 : peer_version());
    if (!all)
        printf("shape             m  floor |    bf16     f16  TB/s  choice    | cuBLASLt  ratio "
               "differ "
               " |  Marlin  ratio  differ\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strstr(shapes[i].name, only)) run_shape(&b, &shapes[i], all);
    gpu_close(&b.g);
    return 0;
}
