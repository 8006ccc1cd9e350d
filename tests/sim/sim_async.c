/*
 * The simulator's asynchronous side against a scalar model written from the formulas: tensor-map
 * loads, stores and reductions (every rank, data type, swizzle, fill), bulk copies, cp.async groups,
 * mbarrier phases across a ring and across a cluster. Findings and the rules of maps: sim_async_rules.c.
 */
#include "lib/harness.h"
#include "sim_async.h"
#include "sim_run.h"
#include "async/tmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(struct rng *rng, void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) ((unsigned char *)p)[i] = (unsigned char)rng_next(rng);
}

/* ---- boxes: the scalar model ---- */

struct box_case {
    struct tmap t;
    int32_t coord[5];
    uint32_t elem, bytes; /* element size; bytes of the box */
    uint32_t pitch, room; /* bytes from row to row in shared memory; of all rows there */
    uint32_t base;        /* in dynamic shared memory */
    bool chunks;          /* a store: rows are clipped at 16-byte chunks (measured on an H200) */
    uint64_t global_bytes;
};

static uint32_t ceil_div(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

/* Dense element `n` of the box: its tensor offset in bytes, or -1 outside the tensor. */
static int64_t model_element(const struct box_case *c, uint32_t n)
{
    int64_t at = 0;
    for (uint32_t d = 0; d < c->t.rank; d++) {
        uint32_t step = d ? c->t.element_stride[d] : 1, extent = ceil_div(c->t.box[d], step);
        int64_t x = c->coord[d] + (int64_t)(n % extent) * step;
        n /= extent;
        int64_t end = (int64_t)c->t.dim[d];
        if (d == 0 && c->chunks) end = (end * c->elem + 15) / 16 * 16 / c->elem;
        if (x < 0 || x >= end) return -1;
        at += x * (int64_t)(d ? c->t.stride[d] : c->elem);
    }
    return at;
}

/* Where dense element `n` of the box stands, from the box's start and before the swizzle. */
static uint32_t model_place(const struct box_case *c, uint32_t n)
{
    return n / c->t.box[0] * c->pitch + n % c->t.box[0] * c->elem;
}

/* What a load of a TF32 type makes of 32 bits. */
static uint32_t model_tf32(uint32_t x)
{
    if ((x >> 23 & 0xFF) == 0xFF && x & 0x7FFFFF) return 0x7FFFE000U;
    return (x + 0x1000) / 0x2000 * 0x2000;
}

static void model_value(const struct box_case *c, const unsigned char *tensor, int64_t at,
                        unsigned char *out)
{
    memset(out, 0, c->elem);
    if (at >= 0) {
        memcpy(out, tensor + at, c->elem);
    } else if (c->t.oob) {
        for (uint32_t i = 0; i < c->elem; i++) out[i] = i % 2 ? 0x7F : 0xF7;
    }
    if (c->t.dtype >= 11 && at >= 0) {
        uint32_t x;
        memcpy(&x, out, 4);
        x = model_tf32(x);
        memcpy(out, &x, 4);
    }
}

static const uint8_t elem_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
static const uint16_t spans[] = {0, 32, 64, 128, 128, 128, 128};

/* A random legal map whose box takes at most 16 KiB, and coordinates around the tensor's edges. */
static void random_case(struct rng *rng, struct box_case *c, uint32_t rank)
{
    struct tmap *t = &c->t;
    uint32_t inner, room = 16384;
    memset(c, 0, sizeof *c);
    t->rank = (uint8_t)rank;
    t->dtype = (uint8_t)rng_below(rng, sizeof elem_bytes);
    t->swizzle = (uint8_t)rng_below(rng, 7);
    c->elem = elem_bytes[t->dtype];
    t->oob = t->dtype >= 6 && rng_below(rng, 2);
    inner = t->swizzle ? spans[t->swizzle] : 16 * (1 + rng_below(rng, 16));
    if (t->swizzle && rng_below(rng, 4) == 0) inner = 16 * (1 + rng_below(rng, inner / 16));
    if (inner / c->elem > 256) inner = 256 * c->elem;
    t->box[0] = inner / c->elem;
    c->bytes = inner;
    c->pitch = t->swizzle ? ceil_div(inner, spans[t->swizzle]) * spans[t->swizzle] : inner;
    c->room = c->pitch;
    t->dim[0] = 1 + rng_below(rng, 3 * t->box[0]);
    t->stride[0] = c->elem;
    for (uint32_t d = 0; d < rank; d++) {
        uint64_t extent = t->dim[d] * t->stride[d];
        t->element_stride[d] = rng_below(rng, 4) ? 1 : 1 + rng_below(rng, 8);
        if (d + 1 == rank) break;
        t->stride[d + 1] = (extent + 15) / 16 * 16 + 16 * rng_below(rng, 3);
        t->dim[d + 1] = 1 + rng_below(rng, 12);
    }
    for (uint32_t d = 1; d < rank; d++) {
        uint32_t most = room / c->room, step = t->element_stride[d];
        uint32_t extent = 1 + rng_below(rng, most < 12 ? most : 12);
        t->box[d] = extent * step - rng_below(rng, step);
        c->bytes *= ceil_div(t->box[d], step);
        c->room *= ceil_div(t->box[d], step);
    }
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t reach = (uint32_t)t->dim[d] + 2 * t->box[d];
        c->coord[d] = rng_below(rng, 3) ? (int32_t)rng_below(rng, reach) - (int32_t)t->box[d] : 0;
    }
    /* A start inside a 16-byte chunk is an illegal instruction on an H200. */
    c->coord[0] -=
        (c->coord[0] % (int32_t)(16 / c->elem) + (int32_t)(16 / c->elem)) % (int32_t)(16 / c->elem);
    c->base = 128 * rng_below(rng, 24);
    c->global_bytes = t->dim[rank - 1] * t->stride[rank - 1] + 16;
}

struct box_params {
    unsigned char map[128];
    uint64_t image; /* global: first the address of smem as a word, then at 16 the box */
    uint32_t base, span, bytes;
    int32_t coord[5];
};

#define BOX_HEAD                                                                                  \
    HEAD ".extern .shared .align 1024 .b8 smem[];\n"                                              \
         ".visible .entry k(.param .align 64 .b8 p_tm[128], .param .u64 p_image, "                \
         ".param .u32 p_base, .param .u32 p_span, .param .u32 p_bytes, .param .b32 p_c0, "        \
         ".param .b32 p_c1, .param .b32 p_c2, .param .b32 p_c3, .param .b32 p_c4)\n{\n"           \
         ".shared .align 8 .b64 bar;\n.reg .pred p, q, one;\n"                                    \
         ".reg .b32 tid, at, r, v, span, bytes, x0, x1, x2, x3, x4;\n.reg .b64 map, image, to;\n" \
         "ld.param.u64 image, [p_image];\nld.param.u32 span, [p_span];\n"                         \
         "ld.param.u32 bytes, [p_bytes];\nld.param.u32 r, [p_base];\n"                            \
         "ld.param.b32 x0, [p_c0];\nld.param.b32 x1, [p_c1];\nld.param.b32 x2, [p_c2];\n"         \
         "ld.param.b32 x3, [p_c3];\nld.param.b32 x4, [p_c4];\n"                                   \
         "mov.b64 map, p_tm;\nmov.u32 tid, %%tid.x;\nmov.u32 at, smem;\nadd.u32 r, at, r;\n"      \
         "setp.eq.u32 one, tid, 0;\n@one st.global.u32 [image], at;\nadd.u64 image, image, 16;\n"

/* Every thread moves words tid, tid+64, … of the box: `word` with r + at and image + to. */
#define BOX_LOOP(name, word)                                                               \
    "shl.b32 at, tid, 2;\n" name ":\nsetp.lt.u32 p, at, span;\n"                           \
    "cvt.u64.u32 to, at;\nadd.u64 to, to, image;\n{ .reg .b32 s; add.u32 s, r, at;\n" word \
    "}\nadd.u32 at, at, 256;\n@p bra " name ";\n"

#define ZERO_BOX  BOX_LOOP("zero", "@p st.shared.u32 [s], v;\n")
#define READ_BOX  BOX_LOOP("in", "@p ld.global.u32 v, [to];\n@p st.shared.u32 [s], v;\n")
#define WRITE_BOX BOX_LOOP("out", "@p ld.shared.u32 v, [s];\n@p st.global.u32 [to], v;\n")

static const char *const coordinates[] = {
    "", "x0", "x0, x1", "x0, x1, x2", "x0, x1, x2, x3", "x0, x1, x2, x3, x4"};

/* Takes the rank and the coordinates. */
static const char load_format[] =
    BOX_HEAD "mov.b32 v, 0;\n" ZERO_BOX "fence.proxy.async;\n"
             "@one mbarrier.init.shared::cta.b64 [bar], 1;\nbar.sync 0;\n@!one bra issued;\n"
             "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], bytes;\n"
             "cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
             "[r], [map, {%s}], [bar];\nissued:\n" WAIT("bar", "0") WRITE_BOX "ret;\n}\n";

/* Takes opcode, rank, modifiers and coordinates. */
static const char store_format[] =
    BOX_HEAD READ_BOX "fence.proxy.async;\nbar.sync 0;\n@!one bra done;\n"
                      "%s.%ud.global.shared::cta.%stile.bulk_group [map, {%s}], [r];\n"
                      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
                      "done:\nret;\n}\n";

static void load_text(char *text, size_t size, uint32_t rank)
{
    snprintf(text, size, load_format, rank, coordinates[rank]);
}

static void store_text(char *text, size_t size, uint32_t rank, bool reduce)
{
    snprintf(text, size, store_format,
             reduce ? "cp.reduce.async.bulk.tensor" : "cp.async.bulk.tensor", rank,
             reduce ? "add." : "", coordinates[rank]);
}

static void box_params(struct box_params *p, struct box_case *c, void *tensor, void *image)
{
    char why[256];
    c->t.address = (uint64_t)(uintptr_t)tensor;
    CHECK(!tmap_validate(&c->t, 10, why, sizeof why), "map refused: %s", why);
    memset(p, 0, sizeof *p);
    tmap_encode(&c->t, p->map);
    p->image = (uint64_t)(uintptr_t)image;
    p->base = c->base;
    p->span = (c->room + 127) / 128 * 128;
    p->bytes = c->bytes;
    memcpy(p->coord, c->coord, sizeof p->coord);
}

static void explain(const struct box_case *c)
{
    printf(" rank %u dtype %u swizzle %u base %u oob %u:", c->t.rank, c->t.dtype, c->t.swizzle,
           c->base, c->t.oob);
    for (uint32_t d = 0; d < c->t.rank; d++) {
        printf("  %llu@%llu box %u/%u at %d", (unsigned long long)c->t.dim[d],
               (unsigned long long)c->t.stride[d], c->t.box[d], c->t.element_stride[d],
               c->coord[d]);
    }
    printf("\n");
}

static void check_load(struct rng *rng, uint32_t rank)
{
    struct box_case c;
    struct box_params p;
    struct run r = {.block = 64, .dynamic_shared = 24576, .seed = rng_next(rng)};
    unsigned char *tensor, *image, *want;
    char text[8192];
    uint32_t smem, differ = 0;
    bool ran;
    random_case(rng, &c, rank);
    tensor = run_alloc(c.global_bytes);
    image = run_alloc(c.room + 256);
    want = calloc(1, c.room + 256);
    fill(rng, tensor, c.global_bytes);
    box_params(&p, &c, tensor, image);
    load_text(text, sizeof text, rank);
    ran = want && !run_kernel(&r, text, &p, sizeof p);
    CHECK(ran, "launch failed: %s", r.findings);
    memcpy(&smem, image, 4);
    smem = (smem & 0xFFFFFF) + c.base;
    for (uint32_t n = 0; ran && n < c.bytes / c.elem; n++) {
        unsigned char value[8];
        model_value(&c, tensor, model_element(&c, n), value);
        for (uint32_t b = 0; b < c.elem; b++) {
            want[run_swizzle(c.t.swizzle, smem + model_place(&c, n) + b) - smem] = value[b];
        }
    }
    for (uint32_t i = 0; ran && i < p.span; i++) differ += image[16 + i] != want[i];
    CHECK(!differ, "%u of %u bytes differ", differ, p.span);
    if (differ || !ran) explain(&c);
    free(want);
    run_free(tensor);
    run_free(image);
}

/* A legal start for a store: no coordinate negative. */
static void start_store(struct box_case *c)
{
    c->chunks = true;
    for (uint32_t d = 0; d < c->t.rank; d++)
        if (c->coord[d] < 0) c->coord[d] = 0;
}

/* Copies that start where an H200 ends the kernel with an illegal instruction. */
static void check_start(struct rng *rng, bool load, int32_t c0, int32_t c1)
{
    struct box_case c = {.t = {.dtype = 7,
                               .rank = 2,
                               .dim = {8, 4},
                               .stride = {4, 32},
                               .box = {8, 4},
                               .element_stride = {1, 1}},
                         .coord = {c0, c1},
                         .elem = 4,
                         .bytes = 128,
                         .room = 128};
    struct box_params p;
    struct run r = {.block = 64, .dynamic_shared = 24576, .seed = rng_next(rng)};
    unsigned char *tensor = run_alloc(128), *image = run_alloc(512);
    char text[8192];
    fill(rng, image, 512);
    box_params(&p, &c, tensor, image);
    if (load)
        load_text(text, sizeof text, 2);
    else
        store_text(text, sizeof text, 2, false);
    CHECK_INT(run_kernel(&r, text, &p, sizeof p), 715);
    run_free(tensor);
    run_free(image);
}

static void check_store(struct rng *rng, uint32_t rank, bool reduce)
{
    struct box_case c;
    struct box_params p;
    struct run r = {.block = 64, .dynamic_shared = 24576, .seed = rng_next(rng)};
    unsigned char *tensor, *image, *want;
    char text[8192];
    uint32_t smem, differ = 0;
    bool ran;
    do random_case(rng, &c, rank);
    while (reduce && c.t.dtype != 2 && c.t.dtype != 4);
    start_store(&c);
    tensor = run_alloc(c.global_bytes);
    image = run_alloc(c.room + 256);
    want = malloc(c.global_bytes);
    fill(rng, tensor, c.global_bytes);
    fill(rng, image, c.room + 256);
    if (want) memcpy(want, tensor, c.global_bytes);
    box_params(&p, &c, tensor, image);
    store_text(text, sizeof text, rank, reduce);
    ran = want && !run_kernel(&r, text, &p, sizeof p);
    CHECK(ran, "launch failed: %s", r.findings);
    memcpy(&smem, image, 4);
    smem = (smem & 0xFFFFFF) + c.base;
    for (uint32_t n = 0; ran && n < c.bytes / c.elem; n++) {
        int64_t at = model_element(&c, n);
        unsigned carry = 0;
        for (uint32_t b = 0; at >= 0 && b < c.elem; b++) {
            uint32_t from = run_swizzle(c.t.swizzle, smem + model_place(&c, n) + b) - smem;
            unsigned sum = image[16 + from] + (reduce ? want[at + b] + carry : 0);
            want[at + b] = (unsigned char)sum;
            carry = sum >> 8;
        }
    }
    for (uint64_t i = 0; ran && i < c.global_bytes; i++) differ += tensor[i] != want[i];
    CHECK(!differ, "%u of %llu bytes differ", differ, (unsigned long long)c.global_bytes);
    if (differ || !ran) explain(&c);
    free(want);
    run_free(tensor);
    run_free(image);
}

/* Padded 4- and 6-bit types: 16 elements are 8 or 12 bytes in global and 16 in shared memory. */
static void check_packed(struct rng *rng, uint32_t dtype)
{
    uint32_t data = dtype == 15 ? 12 : 8, cell = dtype == 13 ? 8 : 16, rows = 5, smem, differ = 0;
    uint32_t row_bytes = 128 / 16 * cell, pitch = 2 * 128 / 16 * data;
    struct box_case c = {.t = {.dtype = (uint8_t)dtype,
                               .rank = 2,
                               .swizzle = dtype == 13 ? 2 : 3,
                               .dim = {256, rows - 1},
                               .stride = {0, (pitch + 31) / 32 * 32},
                               .box = {128, rows},
                               .element_stride = {1, 1}},
                         .coord = {128, 0}};
    struct box_params p;
    struct run r = {.block = 64, .dynamic_shared = 24576, .seed = rng_next(rng)};
    unsigned char *tensor, *image, want[4096] = {0};
    char text[8192];
    bool ran;
    c.bytes = c.room = rows * row_bytes;
    c.global_bytes = c.t.stride[1] * rows;
    tensor = run_alloc(c.global_bytes);
    image = run_alloc(c.bytes + 256);
    fill(rng, tensor, c.global_bytes);
    box_params(&p, &c, tensor, image);
    p.bytes = rows * 8 * data; /* the mbarrier counts no padding */
    load_text(text, sizeof text, 2);
    ran = !run_kernel(&r, text, &p, sizeof p);
    CHECK(ran, "launch failed: %s", r.findings);
    memcpy(&smem, image, 4);
    smem &= 0xFFFFFF;
    for (uint32_t row = 0; ran && row + 1 < rows; row++) {
        for (uint32_t i = 0; i < 8 * data; i++) {
            uint32_t to = row * row_bytes + i / data * cell + i % data;
            want[run_swizzle(c.t.swizzle, smem + to) - smem] =
                tensor[row * c.t.stride[1] + 8 * data + i];
        }
    }
    for (uint32_t i = 0; ran && i < p.span; i++) differ += image[16 + i] != want[i];
    CHECK(!differ, "dtype %u: %u of %u bytes differ", dtype, differ, p.span);
    run_free(tensor);
    run_free(image);
}

/* ---- a ring of stages: a producer warp copies, a consumer warp adds up ---- */

static const char ring_text[] = HEAD
    ".visible .entry k(.param .u64 p_in, .param .u64 p_out, .param .u32 p_tiles)\n{\n"
    ".shared .align 128 .b8 tile[3072];\n.shared .align 8 .b64 full[3];\n"
    ".shared .align 8 .b64 empty[3];\n"
    ".reg .pred p, lead, prod;\n.reg .b32 tid, s, par, n, i, f, e, t, v, sum, ctaid;\n"
    ".reg .b64 in, out, g;\n"
    "ld.param.u64 in, [p_in]; ld.param.u64 out, [p_out]; ld.param.u32 n, [p_tiles];\n"
    "mov.u32 tid, %tid.x; mov.u32 ctaid, %ctaid.x; setp.eq.u32 lead, tid, 0;\n"
    "@!lead bra ready;\n"
    "mbarrier.init.shared::cta.b64 [full], 1; mbarrier.init.shared::cta.b64 [full+8], 1;\n"
    "mbarrier.init.shared::cta.b64 [full+16], 1;\n"
    "mbarrier.init.shared::cta.b64 [empty], 32; mbarrier.init.shared::cta.b64 [empty+8], 32;\n"
    "mbarrier.init.shared::cta.b64 [empty+16], 32;\nready:\nbar.sync 0;\n"
    "mov.b32 i, 0; mov.b32 s, 0; mov.b32 par, 0; mov.b32 sum, 0;\n"
    "setp.lt.u32 prod, tid, 32;\n@!prod bra consume;\n@!lead bra end;\n"
    "produce:\nshl.b32 e, s, 3; mov.u32 f, full; add.u32 f, f, e;\n"
    "{ .reg .b32 b; mov.u32 b, empty; add.u32 e, e, b; }\n"
    "{ .reg .b32 o; xor.b32 o, par, 1;\n" WAIT(
        "e",
        "o") "}\n"
             "mbarrier.arrive.expect_tx.shared::cta.b64 _, [f], 1024;\n"
             "mov.u32 t, tile; { .reg .b32 o; shl.b32 o, s, 10; add.u32 t, t, o; }\n"
             "mad.lo.u32 v, ctaid, n, i; mul.wide.u32 g, v, 1024; add.u64 g, in, g;\n"
             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [t], [g], 512, "
             "[f];\n"
             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
             "[t+512], [g+512], 512, [f];\n"
             "add.u32 i, i, 1; add.u32 s, s, 1; setp.eq.u32 p, s, 3;\n"
             "@p mov.b32 s, 0; @p xor.b32 par, par, 1;\n"
             "setp.lt.u32 p, i, n; @p bra produce;\nbra end;\n"
             "consume:\nshl.b32 e, s, 3; mov.u32 f, full; add.u32 f, f, e;\n"
             "{ .reg .b32 b; mov.u32 b, empty; add.u32 e, e, b; }\n" WAIT(
                 "f",
                 "par") "mov.u32 t, tile; { .reg .b32 o; shl.b32 o, s, 10; add.u32 t, t, o; }\n"
                        "sub.u32 v, tid, 32; shl.b32 v, v, 5; add.u32 t, t, v;\n"
                        "{ .reg .b32 a<8>; ld.shared.v4.u32 {a0,a1,a2,a3}, [t]; ld.shared.v4.u32 "
                        "{a4,a5,a6,a7}, "
                        "[t+16];\n"
                        "add.u32 a0,a0,a1; add.u32 a2,a2,a3; add.u32 a4,a4,a5; add.u32 a6,a6,a7;\n"
                        "add.u32 a0,a0,a2; add.u32 a4,a4,a6; add.u32 a0,a0,a4;\n"
                        "mad.lo.u32 sum, sum, 3, a0; }\n"
                        "mbarrier.arrive.shared::cta.b64 _, [e];\n"
                        "add.u32 i, i, 1; add.u32 s, s, 1; setp.eq.u32 p, s, 3;\n"
                        "@p mov.b32 s, 0; @p xor.b32 par, par, 1;\n"
                        "setp.lt.u32 p, i, n; @p bra consume;\n"
                        "sub.u32 v, tid, 32; mad.lo.u32 v, ctaid, 32, v; mul.wide.u32 g, v, 4;\n"
                        "add.u64 g, out, g; st.global.u32 [g], sum;\nend:\nret;\n}\n";

static void check_ring(uint64_t seed)
{
    enum { TILES = 50, CTAS = 6 };
    struct rng rng = {test_seed()};
    struct run r = {.grid = CTAS, .block = 64, .seed = seed};
    uint32_t *in = run_alloc(CTAS * TILES * 1024), *out = run_alloc(CTAS * 32 * 4);
    struct {
        uint64_t in, out;
        uint32_t tiles;
    } p = {(uint64_t)(uintptr_t)in, (uint64_t)(uintptr_t)out, TILES};
    fill(&rng, in, CTAS * TILES * 1024);
    CHECK_INT(run_kernel(&r, ring_text, &p, 20), 0);
    CHECK(!strstr(r.findings, "severity"), "findings: %s", r.findings);
    for (uint32_t i = 0; i < CTAS * 32; i++) {
        uint32_t sum = 0;
        for (uint32_t t = 0; t < TILES; t++) {
            uint32_t part = 0;
            for (uint32_t k = 0; k < 8; k++) {
                part += in[(i / 32 * TILES + t) * 256 + i % 32 * 8 + k];
            }
            sum = 3 * sum + part;
        }
        CHECK(out[i] == sum, "lane sum %u: want %u got %u", i, sum, out[i]);
    }
    run_free(in);
    run_free(out);
}

/* ---- clusters: multicast, remote arrivals, copies between CTAs ---- */

/* Rank 0 multicasts 256 bytes to both CTAs, each expects them; each CTA then copies its tile, rank
 * added to the first word, to the other one; a remote arrive from the peer ends it. */
static const char cluster_text[] = HEAD
    ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n"
    ".shared .align 128 .b8 tile[512];\n.shared .align 8 .b64 bar[3];\n"
    ".reg .pred lead, zero;\n.reg .b32 tid, rank, peer, a, b, c, v, t;\n.reg .b64 in, out, g;\n"
    "ld.param.u64 in, [p_in]; ld.param.u64 out, [p_out];\n"
    "mov.u32 tid, %tid.x; mov.u32 rank, %cluster_ctarank; xor.b32 peer, rank, 1;\n"
    "setp.eq.u32 lead, tid, 0; setp.eq.and.u32 zero, rank, 0, lead; mov.u32 t, tile;\n"
    "@lead mbarrier.init.shared::cta.b64 [bar], 1;\n"
    "@lead mbarrier.init.shared::cta.b64 [bar+8], 1;\n"
    "@lead mbarrier.init.shared::cta.b64 [bar+16], 33;\n"
    "@lead fence.mbarrier_init.release.cluster;\n"
    "@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\n"
    "@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar+8], 256;\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    "@zero cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    ".multicast::cluster [t], [in], 256, [bar], 3;\n" WAIT(
        "bar",
        "0") "shl.b32 a, tid, 3; add.u32 a, a, t; ld.shared.u32 v, [a]; add.u32 v, v, rank;\n"
             "st.shared.u32 [a], v; fence.proxy.async.shared::cta; bar.sync 0;\n"
             "mapa.shared::cluster.u32 b, t, peer; mov.u32 c, bar;\n"
             "mapa.shared::cluster.u32 c, c, peer;\n"
             "@lead cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
             "[b+256], [t], 256, [c+8];\n" WAIT(
                 "bar+8", "0") "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [c+16];\n"
                               "@lead mbarrier.arrive.shared::cta.b64 _, [bar+16];\n" WAIT(
                                   "bar+16", "0") "ld.shared.u32 v, [a+256]; mad.lo.u32 b, rank, "
                                                  "32, tid; mul.wide.u32 g, b, 4;\n"
                                                  "add.u64 g, g, out; st.global.u32 [g], v;\n"
                                                  "barrier.cluster.arrive.aligned; "
                                                  "barrier.cluster.wait.aligned;\nret;\n}\n";

static void check_cluster(uint64_t seed)
{
    struct run r = {.grid = 2, .block = 32, .cluster = 2, .seed = seed};
    uint32_t *in = run_alloc(256), *out = run_alloc(256);
    uint64_t p[2] = {(uint64_t)(uintptr_t)in, (uint64_t)(uintptr_t)out};
    for (uint32_t i = 0; i < 64; i++) in[i] = 1000 * i;
    CHECK_INT(run_kernel(&r, cluster_text, p, sizeof p), 0);
    CHECK(!strstr(r.findings, "severity"), "findings: %s", r.findings);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t want = 1000 * (i % 32 * 2) + (i / 32 ^ 1); /* what the peer added */
        CHECK(out[i] == want, "word %u: want %u got %u", i, want, out[i]);
    }
    run_free(in);
    run_free(out);
}

/* Cluster of 4: rank 0 multicasts a box to all with .cta_group::2, so that both CTAs of a pair
 * complete on the even one's barrier. */
static const char pair_text[] = HEAD
    ".visible .entry k(.param .align 64 .b8 p_tm[128], .param .u64 p_out)\n{\n"
    ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n"
    ".reg .pred lead, zero, even;\n.reg .b32 tid, rank, b, v, t;\n"
    ".reg .b64 map, out, g;\n"
    "ld.param.u64 out, [p_out]; mov.b64 map, p_tm;\n"
    "mov.u32 tid, %tid.x; mov.u32 rank, %cluster_ctarank; and.b32 v, rank, 1;\n"
    "setp.eq.u32 lead, tid, 0; setp.eq.and.u32 zero, rank, 0, lead;\n"
    "setp.eq.u32 even, v, 0; mov.u32 t, tile;\n"
    "@lead mbarrier.init.shared::cta.b64 [bar], 1;\n"
    "@lead fence.mbarrier_init.release.cluster;\n"
    "@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 2048;\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    "@zero cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    ".multicast::cluster.cta_group::2 [t], [map, {32, 1}], [bar], 15;\n"
    "@!even bra waited;\n" WAIT(
        "bar",
        "0") "waited:\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
             "shl.b32 b, tid, 2; add.u32 t, t, b; shl.b32 b, rank, 10; cvt.u64.u32 g, b;\n"
             "add.u64 out, out, g; mul.wide.u32 g, tid, 4; add.u64 out, out, g; mov.b32 b, 0;\n"
             "copy: ld.shared.u32 v, [t]; st.global.u32 [out], v; add.u32 t, t, 128;\n"
             "add.u64 out, out, 128; add.u32 b, b, 1; setp.lt.u32 lead, b, 8; @lead bra copy;\n"
             "ret;\n}\n";

static void check_pair(uint64_t seed)
{
    enum { COLUMNS = 64, ROWS = 7 }; /* the box's last two rows hang over */
    struct run r = {.grid = 4, .block = 32, .cluster = 4, .seed = seed};
    uint32_t *in = run_alloc(ROWS * COLUMNS * 4), *out = run_alloc(4 * 1024);
    struct tmap t = {.address = (uint64_t)(uintptr_t)in,
                     .dtype = 2,
                     .rank = 2,
                     .dim = {COLUMNS, ROWS},
                     .stride = {4, COLUMNS * 4},
                     .box = {32, 8},
                     .element_stride = {1, 1}};
    struct {
        unsigned char map[128];
        uint64_t out;
    } p;
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++) in[i] = i + 1;
    tmap_encode(&t, p.map);
    p.out = (uint64_t)(uintptr_t)out;
    CHECK_INT(run_kernel(&r, pair_text, &p, sizeof p), 0);
    CHECK(!strstr(r.findings, "severity"), "findings: %s", r.findings);
    for (uint32_t i = 0; i < 4 * 256; i++) {
        uint32_t row = 1 + i % 256 / 32, column = 32 + i % 32;
        uint32_t want = row < ROWS ? row * COLUMNS + column + 1 : 0;
        CHECK(out[i] == want, "word %u: want %u got %u", i, want, out[i]);
    }
    run_free(in);
    run_free(out);
}

/* ---- cp.async groups ---- */

/* Double buffering: 16 tiles of 32 words, wait_group 1 before each use but the last; an odd lane
 * takes only 4 of its 8 bytes. An mbarrier tracks a last copy. */
static const char groups_text[] = HEAD
    ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n"
    ".shared .align 16 .b8 tile[768];\n.shared .align 8 .b64 bar;\n"
    ".reg .pred p, lead, odd;\n.reg .b32 tid, i, a, b, v, w, sum, size;\n.reg .b64 in, out, g;\n"
    "ld.param.u64 in, [p_in]; ld.param.u64 out, [p_out]; mov.u32 tid, %tid.x;\n"
    "setp.eq.u32 lead, tid, 0; and.b32 v, tid, 1; setp.eq.u32 odd, v, 1;\n"
    "@lead mbarrier.init.shared::cta.b64 [bar], 32;\nbar.sync 0;\n"
    "selp.b32 size, 4, 8, odd; mul.wide.u32 g, tid, 8; add.u64 in, in, g;\n"
    "mov.u32 a, tile; shl.b32 v, tid, 3; add.u32 a, a, v; mov.b32 i, 0; mov.b32 sum, 0;\n"
    "cp.async.ca.shared.global [a], [in], 8, size; cp.async.commit_group;\n"
    "loop: add.u32 i, i, 1; setp.lt.u32 p, i, 16;\nadd.u64 in, in, 256;\n"
    "and.b32 v, i, 1; shl.b32 v, v, 8; add.u32 b, a, v;\n"
    "@p cp.async.ca.shared.global [b], [in], 8, size;\ncp.async.commit_group;\n"
    "cp.async.wait_group 1;\nxor.b32 v, v, 256; add.u32 b, a, v;\n"
    "ld.shared.u32 v, [b]; ld.shared.u32 w, [b+4]; add.u32 v, v, w; mad.lo.u32 sum, sum, 5, v;\n"
    "@p bra loop;\n"
    "cp.async.ca.shared.global [a+512], [in], 8;\n"
    "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n" WAIT(
        "bar", "0") "ld.shared.u32 v, [a+512]; add.u32 sum, sum, v;\n"
                    "mul.wide.u32 g, tid, 4; add.u64 g, g, out; st.global.u32 [g], sum;\nret;\n}\n";

static void check_groups(uint64_t seed)
{
    struct rng rng = {seed};
    struct run r = {.block = 32, .seed = seed};
    uint32_t *in = run_alloc(17 * 256), *out = run_alloc(128);
    uint64_t p[2] = {(uint64_t)(uintptr_t)in, (uint64_t)(uintptr_t)out};
    fill(&rng, in, 17 * 256);
    CHECK_INT(run_kernel(&r, groups_text, p, sizeof p), 0);
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t sum = 0;
        for (uint32_t t = 0; t < 16; t++) {
            const uint32_t *pair = in + t * 64 + lane * 2;
            sum = sum * 5 + pair[0] + (lane % 2 ? 0 : pair[1]);
        }
        sum += in[16 * 64 + lane * 2];
        CHECK(out[lane] == sum, "lane %u: want %u got %u", lane, sum, out[lane]);
    }
    run_free(in);
    run_free(out);
}

/* ---- reductions, masks, stores from other threads ---- */

/* Every CTA adds its 64 floats to the same 64, by a bulk reduction; two stores with `.read` waits
 * between reuse one buffer; st.async and red.async count their bytes on a barrier. */
static const char reduce_text[] = HEAD
    ".visible .entry k(.param .u64 p_acc, .param .u64 p_out)\n{\n"
    ".shared .align 128 .b8 tile[256];\n.shared .align 16 .b32 box[4];\n"
    ".shared .align 8 .b64 bar;\n.reg .pred lead;\n.reg .b32 tid, a, cta, v, b, x;\n"
    ".reg .f32 f;\n.reg .b64 acc, out, g;\n"
    "ld.param.u64 acc, [p_acc]; ld.param.u64 out, [p_out]; mov.u32 tid, %tid.x;\n"
    "mov.u32 cta, %ctaid.x; setp.eq.u32 lead, tid, 0; mov.u32 a, tile;\n"
    "shl.b32 v, tid, 2; add.u32 a, a, v; add.u32 v, cta, tid; cvt.rn.f32.u32 f, v;\n"
    "st.shared.f32 [a], f; @lead mbarrier.init.shared::cta.b64 [bar], 1;\n"
    "fence.proxy.async.shared::cta; bar.sync 0;\n@!lead bra other;\n"
    "mov.u32 b, tile; mov.u32 x, bar;\n"
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [acc], [b], 256;\n"
    "mul.wide.u32 g, cta, 512; add.u64 g, g, out;\n"
    "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [g], [b], 256, 0x0F0F;\n"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\n"
    "mov.b32 v, 77; st.shared.u32 [b], v; fence.proxy.async.shared::cta;\n"
    "cp.async.bulk.global.shared::cta.bulk_group [g+256], [b], 256;\n"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
    "mov.u32 b, box; mov.b32 v, 40; st.shared.u32 [b+8], v;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 12;\n"
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [b], {cta, v}, [x];\n"
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [b+8], 2, "
    "[x];\n" WAIT("bar",
                  "0") "ld.shared.u32 v, [b+4]; st.global.u32 [g+4], v; ld.shared.u32 v, [b+8];\n"
                       "st.global.u32 [g+12], v;\nother:\nret;\n}\n";

static void check_reduce(uint64_t seed)
{
    enum { CTAS = 5 };
    struct run r = {.grid = CTAS, .block = 64, .seed = seed};
    float *acc = run_alloc(256);
    uint32_t *out = run_alloc(CTAS * 512);
    uint64_t p[2] = {(uint64_t)(uintptr_t)acc, (uint64_t)(uintptr_t)out};
    memset(acc, 0, 256);
    memset(out, 0, CTAS * 512);
    CHECK_INT(run_kernel(&r, reduce_text, p, sizeof p), 0);
    for (uint32_t i = 0; i < 64; i++) {
        CHECK((uint32_t)acc[i] == CTAS * i + 10, "sum %u is %g", i, (double)acc[i]);
    }
    for (uint32_t i = 0; i < CTAS * 128; i++) {
        uint32_t cta = i / 128, at = i % 128;
        float f = (float)(cta + at % 64);
        uint32_t want;
        memcpy(&want, &f, 4);
        if (at < 64)
            want = at == 1 ? 40 : at == 3 ? 42 : at % 2 ? 0 : want;
        else if (at == 64)
            want = 77;
        CHECK(out[i] == want, "word %u: want 0x%x got 0x%x", i, want, out[i]);
    }
    run_free(acc);
    run_free(out);
}

/* ---- mbarrier forms ---- */

static const char forms_text[] =
    HEAD ".visible .entry k(.param .u64 p_out)\n{\n.shared .align 8 .b64 bar[2];\n"
         ".reg .pred p, q;\n.reg .b32 r, v;\n.reg .b64 out, s, t;\nld.param.u64 out, [p_out];\n"
         "mbarrier.init.shared.b64 [bar], 4;\n"
         "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 s, [bar], 2;\n"
         "mbarrier.pending_count.b64 v, s; st.global.u32 [out], v;\n" /* 4 */
         "mbarrier.arrive_drop.shared::cta.b64 s, [bar];\n"
         "mbarrier.pending_count.b64 v, s; st.global.u32 [out+4], v;\n" /* 2 */
         "mbarrier.test_wait.shared::cta.b64 p, [bar], s; selp.u32 v, 1, 0, p;\n"
         "st.global.u32 [out+8], v;\n" /* 0: the phase is incomplete */
         "mbarrier.arrive.shared::cta.b64 _, [bar];\n"
         "mbarrier.test_wait.shared::cta.b64 p, [bar], s; selp.u32 v, 1, 0, p;\n"
         "st.global.u32 [out+12], v;\n"                   /* 1 */
         "mbarrier.arrive.shared::cta.b64 t, [bar], 3;\n" /* 3 are left after the drop */
         "mbarrier.pending_count.b64 v, t; st.global.u32 [out+16], v;\n" /* 3 */
         "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [bar], 1, 100;\n"
         "selp.u32 v, 1, 0, p; st.global.u32 [out+20], v;\n" /* 1 */
         "mbarrier.complete_tx.shared::cta.b64 [bar], 64;\n" /* negative for a while */
         "mbarrier.arrive.shared::cta.b64 _, [bar], 2;\n"
         "mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;\n"
         "selp.u32 v, 1, 0, p; st.global.u32 [out+24], v;\n" /* 0 */
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;\n"
         "mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;\n"
         "selp.u32 v, 1, 0, p; st.global.u32 [out+28], v;\n" /* 1 */
         "mbarrier.inval.shared::cta.b64 [bar];\n"           /* from here by generic addresses */
         "mov.u64 s, bar; cvta.shared.u64 s, s; mbarrier.init.b64 [s+8], 1;\n"
         "mbarrier.arrive.b64 t, [s+8]; mbarrier.try_wait.b64 p, [s+8], t;\n"
         "selp.u32 v, 1, 0, p; st.global.u32 [out+32], v;\n" /* 1 */
         "cp.async.ca.shared.global [bar], [out], 4; cp.async.mbarrier.arrive.b64 [s+8];\n"
         "mbarrier.arrive.b64 t, [s+8]; mbarrier.pending_count.b64 v, t;\n"
         "again: mbarrier.try_wait.parity.b64 p, [s+8], 1; @!p bra again;\n"
         "ld.shared.u32 v, [bar]; st.global.u32 [out+36], v;\nret;\n}\n"; /* out[0] */

static void check_forms(uint64_t seed)
{
    static const uint32_t want[] = {4, 2, 0, 1, 3, 1, 0, 1, 1, 4};
    struct run r = {.block = 1, .seed = seed};
    uint32_t *out = run_alloc(64);
    uint64_t p = (uint64_t)(uintptr_t)out;
    CHECK_INT(run_kernel(&r, forms_text, &p, 8), 0);
    CHECK(!strstr(r.findings, "severity"), "findings: %s", r.findings);
    for (uint32_t i = 0; i < 10; i++) CHECK_INT(out[i], want[i]);
    run_free(out);
}

/* ---- a box outside its tensor ---- */

static void check_outside(void)
{
    struct rng rng = {test_seed()};
    struct box_case c;
    struct box_params p;
    struct run r = {.block = 64, .dynamic_shared = 24576, .seed = 1};
    unsigned char *tensor, *image;
    char text[8192];
    random_case(&rng, &c, 2);
    c.coord[0] = 0;
    c.coord[1] = (int32_t)c.t.dim[1];
    tensor = run_alloc(c.global_bytes);
    image = run_alloc(c.room + 256);
    box_params(&p, &c, tensor, image);
    load_text(text, sizeof text, 2);
    CHECK_INT(run_kernel(&r, text, &p, sizeof p), 0);
    CHECK(run_found(&r, "tma-oob-box"), "no warning: %s", r.findings);
    c.coord[1]--;
    box_params(&p, &c, tensor, image);
    CHECK_INT(run_kernel(&r, text, &p, sizeof p), 0);
    CHECK(!run_found(&r, "tma-oob-box"), "warning for a box that hangs over: %s", r.findings);
    run_free(tensor);
    run_free(image);
}

int main(int argc, char **argv)
{
    struct rng rng;
    if (!run_begin()) return 2;
    test_begin("sim_async", argc, argv);
    rng.state = test_seed();
    rule_cases();
    for (uint32_t rank = 1; rank <= 5; rank++) {
        if (test_case("tensor loads of rank %u", rank)) {
            for (int n = 0; n < 200; n++) check_load(&rng, rank);
        }
        if (rank == 2 && test_case("tensor stores that start outside or inside a chunk")) {
            check_start(&rng, false, -4, 0);
            check_start(&rng, false, 0, -1);
            check_start(&rng, false, 1, 0);
            check_start(&rng, true, 1, 0);
            check_start(&rng, true, -3, 0);
        }
        if (test_case("tensor stores of rank %u", rank)) {
            for (int n = 0; n < 100; n++) check_store(&rng, rank, false);
        }
        if (test_case("tensor add reductions of rank %u", rank)) {
            for (int n = 0; n < 30; n++) check_store(&rng, rank, true);
        }
    }
    for (uint32_t dtype = 13; dtype <= 15; dtype++) {
        if (test_case("packed data type %u", dtype)) check_packed(&rng, dtype);
    }
    if (test_case("ring of 3 stages, 50 tiles, 20 seeds")) {
        for (uint64_t seed = 0; seed < 20; seed++) check_ring(seed);
    }
    if (test_case("cluster of 2, 50 seeds")) {
        for (uint64_t seed = 0; seed < 50; seed++) check_cluster(seed);
    }
    if (test_case("tensor multicast to pairs, 20 seeds")) {
        for (uint64_t seed = 0; seed < 20; seed++) check_pair(seed);
    }
    if (test_case("cp.async groups, 50 seeds")) {
        for (uint64_t seed = 0; seed < 50; seed++) check_groups(seed);
    }
    if (test_case("bulk reductions, masks, st.async, 50 seeds")) {
        for (uint64_t seed = 0; seed < 50; seed++) check_reduce(seed);
    }
    if (test_case("mbarrier forms, 20 seeds")) {
        for (uint64_t seed = 0; seed < 20; seed++) check_forms(seed);
    }
    finding_cases();
    if (test_case("box outside the tensor")) check_outside();
    run_end();
    return test_end();
}
