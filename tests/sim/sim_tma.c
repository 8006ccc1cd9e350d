/*
 * What only Blackwell has, against a scalar model written from the PTX ISA: gather4 and scatter4,
 * im2col::w, packed element types, clusters taken off the grid; and the order in which CTAs of an SM
 * get tensor memory.
 */
#include "lib/harness.h"
#include "sim_run.h"
#include "async/tmap_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 8192, IMAGE = 32768, TENSOR = 1 << 18 };

#define HEAD ".version 8.8\n.target sm_100f\n.address_size 64\n"

/* ---- boxes ---- */

/* One copy: its map, its operands, and where each row of the box lies in the tensor. */
struct box {
    struct tmap t;
    const char *mode;
    int32_t coord[5];
    uint32_t coords, offset[2], offsets;
    uint32_t rows, row_bytes, pitch;
    int64_t at[256][5];   /* coordinates of row r in dimensions 1.. */
    uint32_t data, group; /* of each `group` bytes in shared memory, `data` come from the tensor */
};

/* Address of row r in the tensor, or -1 where it lies outside. */
static int64_t row_address(const struct box *b, uint32_t r)
{
    int64_t at = 0;
    for (uint32_t d = 1; d < b->t.rank; d++) {
        int64_t x = b->at[r][d];
        if (x < 0 || x >= (int64_t)b->t.dim[d]) return -1;
        at += x * (int64_t)b->t.stride[d];
    }
    return at;
}

/* Byte i of row r: its offset in the tensor, -1 outside, -2 in padding. */
static int64_t byte_address(const struct box *b, uint32_t r, uint32_t i)
{
    int64_t row = row_address(b, r), bits = tmap_elem_bits(b->t.dtype);
    int64_t x = b->coord[0] * bits / 8 + i / b->group * b->data + i % b->group;
    if (i % b->group >= b->data) return -2;
    if (row < 0 || x < 0 || x >= (int64_t)b->t.dim[0] * bits / 8) return -1;
    return row + x;
}

/* Fills in what follows from the map: group, row_bytes, pitch. */
static void shape(struct box *b, uint32_t elements)
{
    static const uint32_t spans[] = {0, 32, 64, 128, 128, 128, 128};
    bool u4 = b->t.dtype == TMAP_U4_ALIGN16, u6 = b->t.dtype == TMAP_U6_ALIGN16;
    uint32_t span = spans[b->t.swizzle];
    b->group = 16;
    b->data = u4 ? 8 : u6 ? 12 : 16;
    b->row_bytes = u4 || u6 ? elements : elements * tmap_elem_bits(b->t.dtype) / 8;
    b->pitch = span ? (b->row_bytes + span - 1) / span * span : b->row_bytes;
}

struct box_params {
    unsigned char map[128];
    uint64_t image; /* global: the address of smem, then at 16 the image */
};

/* A kernel of one warp that makes one copy; `op` up to the operands. Stores copy from an image that
 * global memory holds. */
static void box_text(char *text, const struct box *b, const char *op, bool store)
{
    int n =
        snprintf(text, TEXT,
                 HEAD ".extern .shared .align 1024 .b8 smem[];\n"
                      ".visible .entry k(.param .align 64 .b8 p_map[128], .param .u64 p_image)\n"
                      "{\n.shared .align 8 .b64 bar;\n.reg .pred p, one;\n"
                      ".reg .b32 t, s, a, v;\n.reg .b64 map, image, g;\n"
                      "ld.param.u64 image, [p_image];\nmov.b64 map, p_map;\n"
                      "cvta.param.u64 map, map;\nmov.u32 t, %%tid.x;\nmov.u32 s, smem;\n"
                      "setp.eq.u32 one, t, 0;\n@one st.global.u32 [image], s;\n"
                      "add.u64 image, image, 16;\n@one mbarrier.init.shared::cta.b64 [bar], 1;\n"
                      "shl.b32 t, t, 2;\n");
    const char *move = store ? "ld.global.b32 v, [g];\nst.shared.b32 [a], v;\n"
                             : "ld.shared.b32 v, [a];\nst.global.b32 [g], v;\n";
    char walk[512], operands[256];
    int m = snprintf(operands, sizeof operands, "[map, {");
    for (uint32_t i = 0; i < b->coords; i++)
        m +=
            snprintf(operands + m, sizeof operands - (size_t)m, "%s%d", i ? ", " : "", b->coord[i]);
    snprintf(operands + m, sizeof operands - (size_t)m, "}]");
    snprintf(walk, sizeof walk,
             "mov.u32 v, 0;\nmov.u32 a, s;\nadd.u32 a, a, t;\ncvt.u64.u32 g, t;\n"
             "add.u64 g, g, image;\nnext: %ssetp.lt.u32 p, t, %d;\nadd.u32 t, t, 128;\n"
             "add.u32 a, a, 128;\nadd.u64 g, g, 128;\n@p bra next;\n",
             move, IMAGE - 256);
    if (store) {
        snprintf(text + n, TEXT - (size_t)n,
                 "%sfence.proxy.async.shared::cta;\nbar.warp.sync -1;\n@one %s %s, [s];\n"
                 "@one cp.async.bulk.commit_group;\n@one cp.async.bulk.wait_group 0;\nret;\n}\n",
                 walk, op, operands);
        return;
    }
    n += snprintf(text + n, TEXT - (size_t)n,
                  "@one mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %u;\n"
                  "@one %s [s], %s, [bar]",
                  b->rows * b->row_bytes / b->group * b->data, op, operands); /* no padding */
    if (b->offsets)
        n += snprintf(text + n, TEXT - (size_t)n, ", {%u, %u}", b->offset[0], b->offset[1]);
    snprintf(
        text + n, TEXT - (size_t)n,
        ";\nbar.warp.sync -1;\n"
        "wait: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;\n@!p bra wait;\n%sret;\n}\n",
        walk);
}

static unsigned char *make_tensor(struct box *b, struct rng *rng)
{
    unsigned char *tensor = run_alloc(TENSOR);
    for (uint32_t i = 0; i < TENSOR; i++) tensor[i] = (unsigned char)rng_next(rng);
    b->t.address = (uint64_t)(uintptr_t)tensor;
    return tensor;
}

static void check_load(struct box *b, struct rng *rng)
{
    char text[TEXT], op[160], why[256] = "";
    struct run r = {.dynamic_shared = IMAGE, .seed = rng_next(rng)};
    unsigned char *tensor = make_tensor(b, rng), *out = run_alloc(IMAGE + 16), want[IMAGE];
    struct box_params p = {.image = (uint64_t)(uintptr_t)out};
    uint32_t base;
    CHECK(tmap_validate(&b->t, 10, why, sizeof why) == 0, "the map is refused: %s", why);
    tmap_encode(&b->t, p.map);
    snprintf(op, sizeof op,
             "cp.async.bulk.tensor.%ud.shared::cta.global.%s.mbarrier::complete_tx::bytes",
             b->t.rank, b->mode);
    box_text(text, b, op, false);
    int rc = run_kernel(&r, text, &p, sizeof p);
    CHECK(rc == 0, "CUresult %d: %s", rc, r.findings);
    memcpy(&base, out, sizeof base);
    memset(want, 0xC5, sizeof want); /* what fresh shared memory holds */
    for (uint32_t i = 0; i < b->rows * b->row_bytes; i++) {
        uint32_t row = i / b->row_bytes, x = i % b->row_bytes;
        uint32_t at = run_swizzle(b->t.swizzle, base + row * b->pitch + x) - base;
        int64_t from = byte_address(b, row, x);
        want[at] = from >= 0 ? tensor[from] : 0;
    }
    for (uint32_t i = 0; i < IMAGE && !rc; i++) {
        CHECK(out[16 + i] == want[i], "byte %u: want %02x got %02x", i, want[i], out[16 + i]);
        if (out[16 + i] != want[i]) break;
    }
    run_free(tensor);
    run_free(out);
}

/* A store, or a reduction by 32-bit addition. */
static void check_store(struct box *b, struct rng *rng, bool add)
{
    char text[TEXT], op[160];
    struct run r = {.dynamic_shared = IMAGE, .seed = rng_next(rng)};
    unsigned char *tensor = make_tensor(b, rng), *image = run_alloc(IMAGE + 16),
                  *want = malloc(TENSOR);
    struct box_params p = {.image = (uint64_t)(uintptr_t)image};
    uint32_t base;
    if (!want) abort();
    memcpy(want, tensor, TENSOR);
    for (uint32_t i = 0; i < IMAGE; i++) image[16 + i] = (unsigned char)rng_next(rng);
    tmap_encode(&b->t, p.map);
    snprintf(op, sizeof op, "cp.%sasync.bulk.tensor.2d.global.shared::cta%s.%s.bulk_group",
             add ? "reduce." : "", add ? ".add" : "", b->mode);
    box_text(text, b, op, true);
    int rc = run_kernel(&r, text, &p, sizeof p);
    CHECK(rc == 0, "CUresult %d: %s", rc, r.findings);
    memcpy(&base, image, sizeof base);
    for (uint32_t i = 0; i < b->rows * b->row_bytes; i += 4) {
        uint32_t row = i / b->row_bytes, x = i % b->row_bytes, value, old;
        uint32_t at = run_swizzle(b->t.swizzle, base + row * b->pitch + x) - base;
        int64_t to = byte_address(b, row, x);
        if (to < 0) continue;
        memcpy(&value, image + 16 + at, 4);
        memcpy(&old, want + to, 4);
        if (add) value += old;
        memcpy(want + to, &value, 4);
    }
    CHECK(rc || memcmp(tensor, want, TENSOR) == 0, "global memory differs");
    free(want);
    run_free(tensor);
    run_free(image);
}

/* Four rows of a 2-D tensor of 32-bit elements; loads take rows outside it. */
static void draw_rows(struct box *b, struct rng *rng, uint32_t swizzle, bool load)
{
    static const uint32_t widths[] = {256, 32, 64, 128, 128, 128, 128};
    memset(b, 0, sizeof *b);
    b->t.dtype = 2;
    b->t.rank = 2;
    b->t.swizzle = (uint8_t)swizzle;
    b->t.box[0] = widths[swizzle] / 4;
    b->t.box[1] = 1;
    b->t.dim[0] = 4 * (40 + rng_below(rng, 40));
    b->t.dim[1] = 20 + rng_below(rng, 20);
    b->t.stride[0] = 4;
    b->t.stride[1] = b->t.dim[0] * 4 + 16 * rng_below(rng, 3);
    b->t.element_stride[0] = b->t.element_stride[1] = 1;
    b->mode = load ? "tile::gather4" : "tile::scatter4";
    b->coords = 5;
    b->coord[0] = 4 * (int32_t)rng_below(rng, (uint32_t)b->t.dim[0] / 4);
    b->rows = 4;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t apart = 8 * i; /* scatter4: rows of their own, order is open */
        b->coord[1 + i] = (int32_t)(load ? rng_below(rng, 60) : apart + rng_below(rng, 8));
        if (load) b->coord[1 + i] -= 10;
        b->at[i][1] = b->coord[1 + i];
    }
    shape(b, b->t.box[0]);
}

static void test_rows(struct rng *rng)
{
    static struct box b;
    for (uint32_t i = 0; i < 21; i++) {
        if (test_case("gather4 %u", i)) {
            draw_rows(&b, rng, i % 7, true);
            check_load(&b, rng);
        }
        if (i % 7 != 5 && test_case("scatter4 %u", i)) {
            draw_rows(&b, rng, i % 7, false);
            check_store(&b, rng, i >= 14);
        }
    }
}

/* ---- im2col::w ---- */

/* The pixels that PTX ISA "im2col::w and im2col::w::128 modes" names, in order. */
static void wide_pixels(struct box *b)
{
    const struct tmap *t = &b->t;
    int64_t w = b->coord[1] + (int64_t)b->offset[1], n = b->coord[t->rank - 1];
    int64_t left = t->lower[0] + (int64_t)b->offset[1];
    int64_t right = (int64_t)t->dim[1] + t->upper[0] + b->offset[1];
    uint32_t pixels = t->wide == TMAP_WIDE_128 ? 128 : t->pixels;
    uint32_t run = t->wide == TMAP_WIDE_128 ? 32 : pixels;
    b->rows = 0;
    for (uint32_t i = 0; i < pixels; i++) {
        int64_t last[5] = {0};
        for (uint32_t d = 2; d < t->rank; d++) last[d] = b->coord[d];
        last[1] = w;
        last[t->rank - 1] = n;
        memcpy(b->at[b->rows++], last, sizeof last);
        for (uint32_t k = 1; (i + 1) % run == 0 && k <= b->offset[0]; k++) {
            last[1] = w + k * (int64_t)t->element_stride[1];
            memcpy(b->at[b->rows++], last, sizeof last);
        }
        w += t->element_stride[1];
        if (w >= right) {
            w = left;
            n++;
        }
    }
}

static void draw_wide(struct box *b, struct rng *rng, uint32_t index)
{
    static const uint8_t swizzles[] = {2, 3, 4};
    struct tmap *t = &b->t;
    uint64_t extent;
    memset(b, 0, sizeof *b);
    t->im2col = 1;
    t->wide = index % 2 ? TMAP_WIDE_128 : TMAP_WIDE;
    t->rank = (uint8_t)(3 + index % 3);
    t->dtype = 1;
    t->swizzle = swizzles[rng_below(rng, 3)];
    t->channels = t->swizzle == 2 ? 32 : 64;
    t->pixels = 20 + rng_below(rng, 60);
    t->dim[0] = t->channels + 8 * rng_below(rng, 5);
    t->stride[0] = 2;
    extent = t->dim[0] * 2;
    for (uint32_t d = 0; d < t->rank; d++) {
        t->element_stride[d] = d == 1 ? 1 + rng_below(rng, 2) : 1;
        if (!d) continue;
        t->dim[d] = d == 1 ? 8 + rng_below(rng, 20) : 3;
        t->stride[d] = extent;
        extent *= t->dim[d];
    }
    t->lower[0] = -(int32_t)rng_below(rng, 2);
    t->upper[0] = -(int32_t)rng_below(rng, 3);
    b->mode = t->wide == TMAP_WIDE_128 ? "im2col::w::128" : "im2col::w";
    b->coords = t->rank;
    b->coord[0] = 8 * (int32_t)rng_below(rng, 3);
    b->coord[1] = t->lower[0] + (int32_t)rng_below(rng, 4);
    for (uint32_t d = 2; d < t->rank; d++) b->coord[d] = (int32_t)rng_below(rng, 3);
    b->offsets = 2;
    b->offset[0] = rng_below(rng, 4);
    b->offset[1] = rng_below(rng, 3);
    shape(b, t->channels);
    wide_pixels(b);
}

static void test_wide(struct rng *rng)
{
    static struct box b;
    for (uint32_t i = 0; i < 18; i++) {
        if (!test_case("im2col::w %u", i)) continue;
        draw_wide(&b, rng, i);
        check_load(&b, rng);
    }
}

/* ---- packed types ---- */

static void test_packed(struct rng *rng)
{
    static const uint8_t swizzles[] = {0, 3, 4};
    static struct box b;
    for (uint32_t i = 0; i < 12; i++) {
        uint8_t dtype = (uint8_t)(TMAP_U4_ALIGN8 + i % 3);
        if (!test_case("packed type %u, %u", dtype, i)) continue;
        memset(&b, 0, sizeof b);
        b.t.dtype = dtype;
        b.t.rank = 2;
        b.t.swizzle = swizzles[i / 3 % 3];
        b.t.box[0] = 128;
        b.t.box[1] = 4 + rng_below(rng, 8);
        b.t.dim[0] = 128 * (1 + rng_below(rng, 3));
        b.t.dim[1] = 6 + rng_below(rng, 6);
        b.t.stride[1] = b.t.dim[0] * tmap_elem_bits(dtype) / 8 + 32 * rng_below(rng, 2);
        b.t.element_stride[0] = b.t.element_stride[1] = 1;
        b.mode = "tile";
        b.coords = 2;
        b.coord[0] = 128 * (int32_t)rng_below(rng, 3);
        b.coord[1] = (int32_t)rng_below(rng, 8) - 2;
        b.rows = b.t.box[1];
        for (uint32_t r = 0; r < b.rows; r++) b.at[r][1] = b.coord[1] + (int64_t)r;
        shape(&b, 128);
        check_load(&b, rng);
    }
}

/* ---- replaced fields ---- */

/* One warp copies the map to shared memory, changes it there and publishes it at p_out. */
#define REPLACE_HEAD                                                                         \
    HEAD ".visible .entry k(.param .align 64 .b8 p_map[128], .param .u64 p_out)\n{\n"        \
         ".shared .align 128 .b8 m[128];\n.reg .pred one;\n.reg .b32 t, s, v;\n"             \
         ".reg .b64 map, out, g;\nld.param.u64 out, [p_out];\nmov.b64 map, p_map;\n"         \
         "cvta.param.u64 map, map;\nmov.u32 t, %tid.x;\nsetp.eq.u32 one, t, 0;\n"            \
         "mul.wide.u32 g, t, 4;\nadd.u64 map, map, g;\nld.b32 v, [map];\nshl.b32 t, t, 2;\n" \
         "mov.u32 s, m;\nadd.u32 t, t, s;\nst.shared.b32 [t], v;\nbar.warp.sync -1;\n"
#define REPLACE_TAIL                                                                           \
    "bar.warp.sync -1;\ntensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release" \
    ".gpu.sync.aligned [out], [m], 128;\nret;\n}\n"

static const struct {
    const char *fields; /* replaced, each as "field type, operands" */
    uint8_t swizzle, dtype, rank;
    uint32_t box1;
    uint64_t dim1, stride1;
} replaced[] = {
    {"swizzle_mode b32 3|swizzle_atomicity b32 1", 4, 2, 2, 8, 64, 512},
    {"swizzle_atomicity b32 3|swizzle_mode b32 3", 6, 2, 2, 8, 64, 512},
    {"swizzle_mode b32 3|swizzle_atomicity b32 2|swizzle_mode b32 1", 1, 2, 2, 8, 64, 512},
    {"elemtype b32 9|rank b32 4", 0, 8, 5, 8, 64, 512},
    {"elemtype b32 15", 0, TMAP_U6_ALIGN16, 2, 8, 64, 512},
    {"box_dim b32 1, 256|global_dim b32 1, 0", 0, 2, 2, 256, 1ULL << 32, 512},
    {"global_stride b64 0, 1099511627775", 0, 2, 2, 8, 64, 0xFFFFFFFFF0ULL},
};

static void check_replaced(size_t i)
{
    char text[TEXT], list[256], *save = NULL;
    struct run r = {.seed = 1};
    unsigned char *out = run_alloc(128);
    struct box_params p = {.image = (uint64_t)(uintptr_t)out};
    struct tmap t = {.address = 4096,
                     .dtype = 2,
                     .rank = 2,
                     .dim = {64, 64},
                     .stride = {4, 512},
                     .box = {8, 8},
                     .element_stride = {1, 1}};
    int n = snprintf(text, sizeof text, "%s", REPLACE_HEAD);
    tmap_encode(&t, p.map);
    snprintf(list, sizeof list, "%s", replaced[i].fields);
    for (char *f = strtok_r(list, "|", &save); f; f = strtok_r(NULL, "|", &save)) {
        char field[32], type[8];
        int used = 0;
        if (sscanf(f, "%31s %7s %n", field, type, &used) != 2) abort();
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "@one tensormap.replace.tile.%s.shared::cta.b1024.%s [m], %s;\n", field, type,
                      f + used);
    }
    snprintf(text + n, sizeof text - (size_t)n, "%s", REPLACE_TAIL);
    int rc = run_kernel(&r, text, &p, sizeof p);
    CHECK(rc == 0 && tmap_decode(out, &t), "CUresult %d: %s", rc, r.findings);
    CHECK_INT(t.swizzle, replaced[i].swizzle);
    CHECK_INT(t.dtype, replaced[i].dtype);
    CHECK_INT(t.rank, replaced[i].rank);
    CHECK_INT(t.box[1], replaced[i].box1);
    CHECK_INT(t.dim[1], replaced[i].dim1);
    CHECK_INT(t.stride[1], replaced[i].stride1);
    run_free(out);
}

static void test_replaced(void)
{
    for (size_t i = 0; i < sizeof replaced / sizeof replaced[0]; i++)
        if (test_case("tensormap.replace %s", replaced[i].fields)) check_replaced(i);
}

/* ---- clusters taken off the grid ---- */

/* Each cluster works on its own place and on those it takes: owner[ctaid] = 1 + the taker's.
 * `leave`: the guard of the way out. */
#define CANCEL_TEXT(leave)                                                                         \
    HEAD                                                                                           \
        ".visible .entry k(.param .u64 p_owner)\n{\n.shared .align 16 .b8 answer[16];\n"           \
        ".shared .align 8 .b64 bar;\n.reg .pred p, more;\n.reg .b32 x, own, rank, par, y, z, n;\n" \
        ".reg .b64 owner, at;\n.reg .b128 q;\nld.param.u64 owner, [p_owner];\n"                    \
        "mov.u32 own, %ctaid.x;\nmov.u32 rank, %cluster_ctarank;\nmov.u32 x, own;\n"               \
        "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\n"          \
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nmov.u32 par, 0;\n"        \
        "next: mul.wide.u32 at, x, 4;\nadd.u64 at, owner, at;\nadd.u32 n, own, 1;\n"               \
        "st.global.u32 [at], n;\n"                                                                 \
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n"                                \
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"                         \
        "setp.eq.u32 p, rank, 0;\n"                                                                \
        "@p clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"        \
        ".multicast::cluster::all.b128 [answer], [bar];\n"                                         \
        "wait: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], par;\n@!p bra wait;\n"           \
        "xor.b32 par, par, 1;\nld.shared.b128 q, [answer];\n"                                      \
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 more, q;\n"                       \
        "fence.proxy.async.shared::cta;\n" leave " bra done;\n"                                    \
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, _}, q;\n"         \
        "add.u32 x, x, rank;\nbra next;\ndone: "                                                   \
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;\n}\n"

static void test_cancel(void)
{
    enum { CTAS = 64 };
    for (uint32_t cluster = 1; cluster <= 2; cluster++) {
        if (!test_case("clusters of %u taken off the grid", cluster)) continue;
        uint32_t first[CTAS] = {0}, taken = 0;
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            struct run r = {.grid = CTAS,
                            .block = 1,
                            .cluster = cluster,
                            .dynamic_shared = 100000,
                            .threads = threads,
                            .seed = 7};
            unsigned char *owner = run_alloc(4 * CTAS);
            uint64_t p = (uint64_t)(uintptr_t)owner;
            uint32_t got[CTAS];
            memset(owner, 0, sizeof got);
            int rc = run_kernel(&r, CANCEL_TEXT("@!more"), &p, sizeof p);
            memcpy(got, owner, sizeof got);
            CHECK(rc == 0 && !strstr(r.findings, "error"), "CUresult %d: %s", rc, r.findings);
            for (uint32_t i = 0; i < CTAS; i++) {
                CHECK(got[i] != 0, "nobody worked on CTA %u", i);
                taken += got[i] != i + 1;
            }
            if (threads == 1) memcpy(first, got, sizeof first);
            CHECK(memcmp(first, got, sizeof got) == 0, "depends on host threads");
            run_free(owner);
        }
        CHECK(taken > CTAS, "only %u CTAs were taken in both runs", taken);
    }
    if (test_case("another request after a failure")) {
        struct run r = {.grid = 1, .block = 1, .seed = 1};
        unsigned char *owner = run_alloc(4);
        uint64_t p = (uint64_t)(uintptr_t)owner;
        /* Goes on after the first failure, leaves after the second. */
        int rc = run_kernel(&r, CANCEL_TEXT("setp.eq.u32 more, par, 0;\n@more"), &p, sizeof p);
        CHECK(strstr(r.findings, "cluster-cancel"), "CUresult %d: %s", rc, r.findings);
        run_free(owner);
    }
}

/* ---- tensor memory: whose turn ---- */

#define ALLOC_TEXT(group)                                                                         \
    HEAD ".visible .entry k(.param .u64 unused)\n{\n.shared .align 8 .b32 place;\n.reg .b32 a;\n" \
         "tcgen05.alloc.cta_group::" group ".sync.aligned.shared::cta.b32 [place], 512;\n"        \
         "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"                       \
         "ld.shared.u32 a, [place];\n"                                                            \
         "tcgen05.dealloc.cta_group::" group ".sync.aligned.b32 a, 512;\nret;\n}\n"

static void check_turns(const char *text)
{
    uint64_t unused = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct run r = {.grid = 64, .cluster = 16, .sms = 16, .seed = seed};
        int rc = run_kernel(&r, text, &unused, sizeof unused);
        CHECK(rc == 0, "seed %llu: CUresult %d: %s", (unsigned long long)seed, rc, r.findings);
        if (rc) break;
    }
}

static void test_turns(void)
{
    uint64_t unused = 0;
    if (test_case("clusters of 16 want all columns of the same SMs")) check_turns(ALLOC_TEXT("1"));
    if (test_case("the same in pairs")) check_turns(ALLOC_TEXT("2"));
    if (test_case("columns that never come free are a deadlock")) {
        struct run r = {.grid = 1, .block = 64, .seed = 3};
        int rc = run_kernel(&r,
                            HEAD ".visible .entry k(.param .u64 unused)\n{\n"
                                 ".shared .align 8 .b32 place;\n"
                                 "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], "
                                 "512;\nbar.sync 0;\nret;\n}\n",
                            &unused, sizeof unused);
        CHECK(rc == 702 && strstr(r.findings, "\"cause\":\"tmem-alloc\""), "CUresult %d: %s", rc,
              r.findings);
    }
}

/* ---- registers, exited CTAs ---- */

/* 3 warpgroups of 168: one gives back 144 a thread, two take 72 each. */
#define POOL_TEXT(take)                                                                 \
    HEAD ".visible .entry k(.param .u64 unused) .reqntid 384, 1, 1\n{\n.reg .pred p;\n" \
         ".reg .b32 t;\nmov.u32 t, %tid.x;\nsetp.lt.u32 p, t, 128;\n@p bra give;\n"     \
         "setmaxnreg.inc.sync.aligned.u32 " take ";\nret;\n"                            \
         "give: setmaxnreg.dec.sync.aligned.u32 24;\nret;\n}\n"

static void test_pool(void)
{
    uint64_t unused = 0;
    struct run r = {.block = 384, .seed = 5};
    if (test_case("setmaxnreg: what one warpgroup gives back, two take")) {
        for (r.seed = 1; r.seed <= 10; r.seed++) {
            int rc = run_kernel(&r, POOL_TEXT("240"), &unused, sizeof unused);
            CHECK(rc == 0 && !strstr(r.findings, "error"), "CUresult %d: %s", rc, r.findings);
        }
    }
    if (test_case("setmaxnreg: more than there is")) {
        int rc = run_kernel(&r, POOL_TEXT("248"), &unused, sizeof unused);
        CHECK(rc == 702 && strstr(r.findings, "\"cause\":\"setmaxnreg\""), "CUresult %d: %s", rc,
              r.findings);
    }
    if (test_case("a load from a CTA of the cluster that has exited")) {
        struct run two = {.grid = 2, .cluster = 2, .seed = 1};
        int rc = run_kernel(&two,
                            HEAD ".visible .entry k(.param .u64 unused)\n{\n.reg .pred p;\n"
                                 ".shared .align 8 .b32 x;\n.reg .b32 a, v;\n"
                                 "mov.u32 a, %cluster_ctarank;\nsetp.eq.u32 p, a, 1;\n"
                                 "mov.u32 v, 0;\n@p st.shared.u32 [x], v;\n@p exit;\n"
                                 "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
                                 "mov.u32 a, x;\nmapa.shared::cluster.u32 a, a, 1;\n"
                                 "ld.shared::cluster.u32 v, [a];\nret;\n}\n",
                            &unused, sizeof unused);
        CHECK(rc == 719 && strstr(two.findings, "cluster-exit"), "CUresult %d: %s", rc,
              two.findings);
    }
}

int main(int argc, char **argv)
{
    struct rng rng;
    if (!run_begin()) return 2;
    test_begin("sim_tma", argc, argv);
    rng.state = test_seed();
    test_rows(&rng);
    test_wide(&rng);
    test_packed(&rng);
    test_replaced();
    test_cancel();
    test_turns();
    test_pool();
    run_end();
    return test_end();
}
