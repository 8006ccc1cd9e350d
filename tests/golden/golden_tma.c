/*
 * Conformance of bulk and tensor copies: each case is one copy, issued by one thread. A load's
 * result is the image of shared memory around the box (which held FILLER before) and whether the
 * barrier's phase completed with the bytes expected; a store's or reduction's is the whole buffer it
 * wrote to. Starts that an H200 refuses (sim_async has them) are left out.
 */
#include "golden.h"
#include "lib/golden_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IMAGE = 5120, /* bytes of shared memory recorded: 40 rows of 128 */
    TAIL = 16,    /* after the image: 1 or 0, 0, and the barrier's bits where the wait failed */
    IN_BYTES = 131072, /* every 16-bit unit of it is its own index, where values do not matter */
    OUT_BYTES = 8192,  /* target of stores */
    FILLER = 0xA5,
    THREADS = 128
};

static const struct element {
    const char *name;
    uint32_t bytes;
    char kind; /* i: integer; f: floating; h, b: 16-bit ones */
} elements[] = {{"u8", 1, 'i'},      {"u16", 2, 'i'},  {"u32", 4, 'i'},     {"s32", 4, 'i'},
                {"u64", 8, 'i'},     {"s64", 8, 'i'},  {"f16", 2, 'h'},     {"f32", 4, 'f'},
                {"f64", 8, 'd'},     {"bf16", 2, 'b'}, {"f32.ftz", 4, 'f'}, {"tf32", 4, 'f'},
                {"tf32.ftz", 4, 'f'}};
enum { ELEMENTS = sizeof elements / sizeof elements[0] };

static const uint32_t spans[] = {128, 32, 64,
                                 128}; /* of a swizzle; without one a row may be wider */

/* ---- kernels ---- */

struct copy {
    const char *op; /* the instruction up to its operands */
    int32_t coord[5];
    uint16_t offset[3]; /* im2col */
    uint32_t offsets;
    uint32_t shared_at; /* of the box, from the start of the image */
    uint32_t bytes;     /* expected on the barrier, or moved */
    bool cluster;       /* two CTAs, of which the first issues */
    bool from_in;       /* the image starts as the input, not as FILLER */
};

/* Everything up to the copy; thread 0 of rank 0 falls through with %issue false. */
static void put_head(struct text *t, const struct copy *k)
{
    put(t,
        ".version 8.4\n.target sm_90a\n.address_size 64\n"
        ".extern .shared .align 1024 .b8 smem[];\n"
        ".visible .entry k(.param .u64 in, .param .u64 out, .param .align 64 .b8 map[128])\n%s{\n"
        ".reg .pred %%p, %%skip, %%done;\n"
        ".reg .b32 %%t, %%s, %%box, %%bar, %%i, %%a, %%v, %%rank, %%peer;\n"
        ".reg .b32 %%c<5>;\n.reg .b16 %%o<3>, %%mask;\n"
        ".reg .b64 %%in, %%out, %%map, %%g, %%raw;\n"
        "mov.u32 %%t, %%tid.x;\nmov.u32 %%s, smem;\nmov.u32 %%rank, %%cluster_ctarank;\n"
        "ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\n"
        "mov.b64 %%map, map;\ncvta.param.u64 %%map, %%map;\n"
        "add.u32 %%box, %%s, %u;\nadd.u32 %%bar, %%s, %u;\nshl.b32 %%i, %%t, 2;\n"
        "FILL:\n",
        k->cluster ? ".explicitcluster .reqnctapercluster 2\n" : "", k->shared_at, IMAGE);
    if (k->from_in)
        put(t, "cvt.u64.u32 %%g, %%i;\nadd.u64 %%g, %%in, %%g;\nld.global.b32 %%v, [%%g];\n");
    else
        put(t, "mov.b32 %%v, 0x%02x%02x%02x%02x;\n", FILLER, FILLER, FILLER, FILLER);
    put(t,
        "add.u32 %%a, %%s, %%i;\nst.shared.b32 [%%a], %%v;\nadd.u32 %%i, %%i, %u;\n"
        "setp.lt.u32 %%p, %%i, %u;\n@%%p bra FILL;\n"
        "setp.ne.u32 %%skip, %%t, 0;\n@%%skip bra READY;\n"
        "mbarrier.init.shared::cta.b64 [%%bar], 1;\n"
        "fence.mbarrier_init.release.cluster;\nREADY:\n"
        "fence.proxy.async.shared::cta;\nbar.sync 0;\n",
        4 * THREADS, IMAGE);
    for (uint32_t i = 0; i < 5; i++) put(t, "mov.b32 %%c%u, %d;\n", i, k->coord[i]);
    for (uint32_t i = 0; i < k->offsets; i++) put(t, "mov.b16 %%o%u, %u;\n", i, k->offset[i]);
}

/* [map, {coordinates}] */
static void put_map(struct text *t, uint32_t rank)
{
    put(t, "[%%map, {");
    for (uint32_t i = 0; i < rank; i++) put(t, "%s%%c%u", i ? ", " : "", i);
    put(t, "}]");
}

/* Waits in every thread, for a time that is bounded, and copies the image out. */
static void put_image(struct text *t, const struct copy *k)
{
    put(t,
        "WAIT:\nmov.u32 %%i, 0;\nPOLL:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 %%done, [%%bar], 0, 100000;\n"
        "@%%done bra WAITED;\nadd.u32 %%i, %%i, 1;\nsetp.lt.u32 %%p, %%i, 50;\n@%%p bra POLL;\n"
        "WAITED:\nbar.sync 0;\nmul.lo.u32 %%a, %%rank, %u;\ncvt.u64.u32 %%g, %%a;\n"
        "add.u64 %%out, %%out, %%g;\nshl.b32 %%i, %%t, 2;\n"
        "COPY:\nadd.u32 %%a, %%s, %%i;\nld.shared.b32 %%v, [%%a];\ncvt.u64.u32 %%g, %%i;\n"
        "add.u64 %%g, %%out, %%g;\nst.global.b32 [%%g], %%v;\nadd.u32 %%i, %%i, %u;\n"
        "setp.lt.u32 %%p, %%i, %u;\n@%%p bra COPY;\n"
        "setp.ne.u32 %%p, %%t, 0;\n@%%p bra END;\nselp.b32 %%v, 1, 0, %%done;\n"
        "st.global.b32 [%%out+%u], %%v;\n@%%done bra END;\nld.shared.b64 %%raw, [%%bar];\n"
        "st.global.b64 [%%out+%u], %%raw;\nEND:\n",
        IMAGE + TAIL, 4 * THREADS, IMAGE, IMAGE, IMAGE + 8);
    if (k->cluster) put(t, "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n");
    put(t, "ret;\n}\n");
}

static void put_load(struct golden_case *c, const struct copy *k)
{
    struct text t = {c->text, sizeof c->text};
    put_head(&t, k);
    put(&t,
        "@%%skip bra ARMED;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%%bar], %u;\n"
        "ARMED:\n",
        k->bytes);
    if (k->cluster)
        put(&t, "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
                "setp.ne.or.u32 %%skip, %%rank, 0, %%skip;\nmov.b16 %%mask, 3;\n");
    put(&t, "@%%skip bra WAIT;\n%s [%%box], ", k->op);
    if (c->map.used)
        put_map(&t, c->map.rank);
    else
        put(&t, "[%%in], %u", k->bytes);
    put(&t, ", [%%bar]");
    for (uint32_t i = 0; i < k->offsets; i++)
        put(&t, "%s%%o%u%s", i ? ", " : ", {", i, i + 1 == k->offsets ? "}" : "");
    put(&t, "%s;\n", k->cluster ? ", %mask" : "");
    put_image(&t, k);
    c->grid = k->cluster ? 2 : 1;
    c->block = THREADS;
    c->dynamic_shared = IMAGE + TAIL;
    c->out_bytes = c->grid * (size_t)(IMAGE + TAIL);
}

static void put_store(struct golden_case *c, const struct copy *k)
{
    struct text t = {c->text, sizeof c->text};
    put_head(&t, k);
    put(&t, "@%%skip bra END;\n%s ", k->op);
    if (c->map.used)
        put_map(&t, c->map.rank);
    else
        put(&t, "[%%out]");
    put(&t, ", [%%box]");
    if (!c->map.used) put(&t, ", %u", k->bytes);
    put(&t, ";\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\nret;\n}\n");
    c->grid = 1;
    c->block = THREADS;
    c->dynamic_shared = IMAGE + TAIL;
}

/* A reduction from the upper half of the image into the box of the cluster's other CTA (without a
 * cluster an H200 refuses the instruction). */
static void put_shared_reduction(struct golden_case *c, const struct copy *k)
{
    struct text t = {c->text, sizeof c->text};
    put_head(&t, k);
    put(&t,
        "@%%skip bra ARMED;\nmul.lo.u32 %%i, %%rank, %u;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%bar], %%i;\nARMED:\n"
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
        "setp.ne.or.u32 %%skip, %%rank, 0, %%skip;\n@%%skip bra WAIT;\n"
        "add.u32 %%a, %%s, %u;\nmapa.shared::cluster.u32 %%box, %%box, 1;\n"
        "mapa.shared::cluster.u32 %%peer, %%bar, 1;\n%s [%%box], [%%a], %u, [%%peer];\n",
        k->bytes, IMAGE / 2, k->op, k->bytes);
    put_image(&t, k);
    c->grid = 2;
    c->block = THREADS;
    c->dynamic_shared = IMAGE + TAIL;
    c->out_bytes = 2 * (size_t)(IMAGE + TAIL);
}

/* ---- data ---- */

/* Values of the element type, special ones among them. */
static void draw_values(unsigned char *to, size_t bytes, const struct element *e, struct rng *r)
{
    for (size_t i = 0; i + e->bytes <= bytes; i += e->bytes) {
        uint64_t v;
        switch (e->kind) {
        case 'h': v = golden_half(r, false); break;
        case 'b': v = golden_half(r, true); break;
        case 'f': v = golden_f32(r); break;
        case 'd': v = golden_f64(r); break;
        default: v = golden_int(r); break;
        }
        memcpy(to + i, &v, e->bytes);
    }
}

static void number_units(unsigned char *to, size_t bytes)
{
    for (size_t i = 0; i + 2 <= bytes; i += 2) {
        uint16_t v = (uint16_t)(i / 2);
        memcpy(to + i, &v, 2);
    }
}

static bool make_input(struct golden_case *c, size_t bytes, const struct element *e, struct rng *r)
{
    c->rule = GOLDEN_BITS;
    c->element = 1;
    c->in_bytes = bytes;
    c->in = calloc(1, bytes);
    if (!c->in) return false;
    if (e && e->kind != 'i')
        draw_values(c->in, bytes, e, r);
    else
        number_units(c->in, bytes);
    return true;
}

static void name_case(struct golden_case *c, const char *what, const struct copy *k, uint32_t index)
{
    const struct golden_map *m = &c->map;
    char *at = c->name;
    int left = (int)sizeof c->name;
    int n = snprintf(at, (size_t)left, "%u %s %s", index, what, elements[m->dtype].name);
    for (uint32_t i = 0; i < m->rank && n < left; i++)
        n += snprintf(at + n, (size_t)(left - n), "%s%d", i ? "," : " at ", k->coord[i]);
    for (uint32_t i = 0; i < m->rank && n < left && !m->im2col; i++)
        n += snprintf(at + n, (size_t)(left - n), "%s%u", i ? "," : " box ", m->box[i]);
    if (n < left)
        snprintf(at + n, (size_t)(left - n), " sw%d il%d%s", m->swizzle, m->interleave,
                 m->oob ? " nan" : "");
}

/* ---- tiled maps ---- */

enum variant { INSIDE, NEGATIVE, BEYOND, OUTSIDE, STRIDED, NARROW, VARIANTS };
static const char *const variant_names[] = {"inside",  "negative", "beyond",
                                            "outside", "strided",  "narrow"};

/* Elements of dimension d that a box delivers. */
static uint32_t delivered(const struct golden_map *m, uint32_t d)
{
    if (d == 0 && !m->interleave) return m->box[0];
    return (m->box[d] + m->element_stride[d] - 1) / m->element_stride[d];
}

static uint32_t box_bytes(const struct golden_map *m)
{
    uint32_t bytes = elements[m->dtype].bytes;
    for (uint32_t d = 0; d < m->rank; d++) bytes *= delivered(m, d);
    return bytes;
}

/* A tensor of at most `room` bytes whose rows are padded, and a box of `inner` bytes by at most
 * `rows` rows of it. */
static void draw_tiled(struct golden_map *m, uint32_t inner, uint32_t rows, uint32_t room,
                       struct rng *r)
{
    uint32_t bytes = elements[m->dtype].bytes;
    uint64_t extent;
    m->used = true;
    m->box[0] = inner / bytes;
    m->dim[0] = m->box[0] + m->box[0] / 2 + rng_below(r, 5);
    m->element_stride[0] = 1;
    extent = (m->dim[0] * bytes + 15) / 16 * 16 + 16 * (uint64_t)rng_below(r, 2);
    for (uint32_t d = 1; d < m->rank; d++) {
        uint64_t most = room / extent;
        uint32_t box = d + 1 == m->rank ? rows : 1 + rng_below(r, 4);
        if (box > rows) box = rows;
        if (box > most) box = (uint32_t)most;
        m->box[d] = box;
        m->dim[d] = box + (d < 3 ? 1 + rng_below(r, 2) : 0);
        if (m->dim[d] > most) m->dim[d] = most;
        m->element_stride[d] = 1;
        m->stride[d - 1] = extent;
        extent *= m->dim[d];
        rows /= box;
    }
}

/* Moves the start down to a 16-byte chunk: an H200 takes no other. */
static void align_start(const struct golden_map *m, struct copy *k)
{
    int32_t chunk = (int32_t)(16 / elements[m->dtype].bytes);
    int32_t past = k->coord[0] % chunk;
    k->coord[0] -= past < 0 ? past + chunk : past;
}

static void draw_start(const struct golden_map *m, struct copy *k, enum variant v, struct rng *r)
{
    for (uint32_t d = 0; d < m->rank; d++) {
        int32_t dim = (int32_t)m->dim[d], box = (int32_t)m->box[d], slack = dim - box;
        bool here = rng_below(r, 2) || d == 0;
        k->coord[d] = slack > 0 ? (int32_t)rng_below(r, (uint32_t)slack + 1) : 0;
        if (v == NEGATIVE && here) k->coord[d] = -(int32_t)rng_below(r, (uint32_t)box + 1);
        if (v == BEYOND && here) k->coord[d] = dim - 1 - (int32_t)rng_below(r, (uint32_t)box);
        if (v == STRIDED || v == NARROW)
            k->coord[d] = (int32_t)rng_below(r, (uint32_t)(dim + box)) - box / 2;
        if (v == OUTSIDE && d == m->rank - 1) k->coord[d] = r->state & 1 ? dim : -box;
    }
    align_start(m, k);
}

static const char *load_op(char *text, size_t size, uint32_t rank, const char *mode,
                           const char *after)
{
    snprintf(text, size,
             "cp.async.bulk.tensor.%ud.shared::cluster.global.%s.mbarrier::complete_tx::bytes%s",
             rank, mode, after);
    return text;
}

/* Ranks x swizzles x variants; then every type with either fill. */
static bool make_load(struct golden_case *c, uint32_t index, bool types)
{
    struct rng r = {index * 7919ULL + (types ? 77 : 3)};
    enum variant v = types ? BEYOND : (enum variant)(index % VARIANTS);
    struct golden_map *m = &c->map;
    struct copy k = {0};
    char op[160];
    uint32_t inner;
    m->swizzle = types ? 0 : (int)(index / VARIANTS % 4);
    m->rank = types ? 2 : index / VARIANTS / 4 + 1;
    m->dtype = types ? (int)(index / 2) : (int)rng_below(&r, ELEMENTS);
    m->oob = elements[m->dtype].kind != 'i' && (types ? index % 2 : rng_below(&r, 2));
    inner = spans[m->swizzle];
    if (v == NARROW && inner > 16) inner = 16 * (1 + rng_below(&r, inner / 16 - 1));
    draw_tiled(m, inner, 24, IN_BYTES, &r);
    if (v == STRIDED || (v == NARROW && rng_below(&r, 2))) {
        for (uint32_t d = 0; d < m->rank; d++) m->element_stride[d] = 1 + rng_below(&r, 4);
    }
    draw_start(m, &k, v, &r);
    k.shared_at = rng_below(&r, 2) ? 128 * rng_below(&r, 8) : 0;
    k.op = load_op(op, sizeof op, m->rank, "tile", "");
    k.bytes = box_bytes(m);
    name_case(c, variant_names[v], &k, index);
    put_load(c, &k);
    return make_input(c, IN_BYTES, &elements[m->dtype], &r);
}

/* An element of dimension 0 is a slice of 16 or 32 bytes; of the last but one dimension, the slices
 * of a pixel, a copy takes one, whatever the box says. Ranks 3 to 5 x swizzles x interleaves x 2. */
static void draw_interleaved(struct golden_map *m, uint32_t index, struct rng *r)
{
    static const uint8_t types[] = {0, 1, 2, 4, 7, 9};
    static const uint8_t channels[] = {1, 4, 8, 9, 16, 17, 24, 32, 33};
    uint32_t slice, bytes;
    m->used = true;
    m->interleave = 1 + (int)(index % 2);
    m->swizzle = (int)(index / 2 % 4);
    m->rank = 3 + index / 8 % 3;
    m->dtype = types[rng_below(r, 6)];
    m->oob = elements[m->dtype].kind != 'i' && rng_below(r, 2);
    bytes = elements[m->dtype].bytes;
    slice = 16U * (uint32_t)m->interleave;
    for (uint32_t d = 0; d < m->rank; d++) {
        m->element_stride[d] = d == 1 && index >= 24 ? 2 : 1;
        m->box[d] = d == 0 ? 16 / bytes : d == 1 && m->rank > 3 ? 2 : 1;
        if (d + 2 == m->rank) m->box[d] = channels[rng_below(r, 9)];
        if (d + 2 == m->rank && bytes == 1 && m->box[d] > 24) m->box[d] = 24;
        m->dim[d] = (d == 0 ? m->box[d] : 3) + rng_below(r, 3);
        if (d) m->stride[d - 1] = d == 1 ? slice : m->stride[d - 2] * (m->dim[d - 1] + 1);
    }
    m->stride[0] += slice * (uint64_t)rng_below(r, 2);
}

static bool make_interleaved(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 6101ULL + 19};
    struct golden_map *m = &c->map;
    struct copy k = {0};
    char op[160];
    draw_interleaved(m, index, &r);
    k.coord[0] = (int32_t)rng_below(&r, 5) - 2;
    for (uint32_t d = 1; d < m->rank; d++) k.coord[d] = (int32_t)rng_below(&r, 3) - (d != 2);
    k.bytes = m->box[0] * 16U * (uint32_t)m->interleave;
    for (uint32_t d = 1; d < m->rank; d++) k.bytes *= d + 2 == m->rank ? 1 : delivered(m, d);
    k.op = load_op(op, sizeof op, m->rank, "tile", "");
    name_case(c, "interleaved", &k, index);
    put_load(c, &k);
    return make_input(c, IN_BYTES, &elements[m->dtype], &r);
}

/* Ranks 3 to 5 x swizzles none and 128B x 5: inside, corners with offsets, strides, the batch's end,
 * all of them. */
static bool make_im2col(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 4421ULL + 23};
    uint32_t kind = index % 5;
    struct golden_map *m = &c->map;
    struct copy k = {0};
    char op[160];
    m->used = m->im2col = true;
    m->swizzle = index / 5 % 2 ? 3 : 0;
    m->rank = 3 + index / 10;
    m->dtype = kind == 1 ? 7 : 1;
    m->oob = kind == 1;
    m->channels = m->dtype == 7 ? 16 : 32;
    m->pixels = kind == 4 ? 37 : 24;
    m->dim[0] = m->channels + (kind >= 3 ? 8 : 16);
    for (uint32_t d = 1; d < m->rank; d++) m->dim[d] = d + 1 == m->rank ? 3 : 5 + rng_below(&r, 4);
    for (uint32_t d = 1; d < m->rank; d++) {
        uint64_t row = m->dim[0] * elements[m->dtype].bytes;
        m->stride[d - 1] = d == 1 ? row + 16 : m->stride[d - 2] * m->dim[d - 1];
    }
    for (uint32_t d = 0; d < m->rank; d++)
        m->element_stride[d] =
            (kind == 2 || kind == 4) && d && d + 1 < m->rank ? 1 + rng_below(&r, 3) : 1;
    k.offsets = m->rank - 2;
    for (uint32_t i = 0; i < k.offsets; i++) {
        m->lower[i] = kind == 0 ? 0 : -1 - (int)rng_below(&r, 2);
        m->upper[i] = kind == 0 ? 0 : -1 - (int)rng_below(&r, 2);
        k.offset[i] = kind == 0 ? 0 : (uint16_t)rng_below(&r, 4);
        k.coord[i + 1] =
            m->lower[i] + (int32_t)rng_below(&r, 3) * (int32_t)m->element_stride[i + 1];
    }
    k.coord[0] =
        kind >= 3 ? (int32_t)rng_below(&r, m->channels) - 8 : 8 * (int32_t)rng_below(&r, 2);
    align_start(m, &k);
    k.coord[m->rank - 1] = kind == 3 ? 2 : kind == 4 ? -1 : (int32_t)rng_below(&r, 2);
    k.op = load_op(op, sizeof op, m->rank, "im2col", "");
    k.bytes = m->channels * elements[m->dtype].bytes * m->pixels;
    name_case(c, "im2col", &k, index);
    put_load(c, &k);
    return make_input(c, IN_BYTES, &elements[m->dtype], &r);
}

/* ---- stores and reductions ---- */

static bool make_target(struct golden_case *c, const struct element *e, size_t bytes, struct rng *r)
{
    c->out_bytes = bytes;
    c->before = calloc(1, bytes);
    if (!c->before) return false;
    if (e)
        draw_values(c->before, bytes, e, r);
    else
        memset(c->before, FILLER, bytes);
    return true;
}

static bool make_store(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 3571ULL + 29};
    struct golden_map *m = &c->map;
    struct copy k = {.from_in = true};
    char op[160];
    uint32_t inner, ragged = index % 2;
    m->swizzle = (int)(index / 2 % 4);
    m->rank = index / 8 + 1;
    m->dtype = (int)rng_below(&r, ELEMENTS);
    m->on_out = true;
    inner = spans[m->swizzle];
    if (ragged && inner > 16) inner = 16 * (1 + rng_below(&r, inner / 16));
    draw_tiled(m, inner, 12, OUT_BYTES / 2, &r);
    if (ragged && rng_below(&r, 2)) {
        for (uint32_t d = 1; d < m->rank; d++) m->element_stride[d] = 1 + rng_below(&r, 3);
    }
    for (uint32_t d = 0; d < m->rank; d++) {
        uint32_t chunk = d ? 1 : 16 / elements[m->dtype].bytes;
        k.coord[d] = (int32_t)(rng_below(&r, (uint32_t)m->dim[d] + ragged) / chunk * chunk);
        if (!ragged) k.coord[d] /= 2;
        k.coord[d] = k.coord[d] / (int32_t)chunk * (int32_t)chunk;
    }
    k.shared_at = 128 * rng_below(&r, 8);
    snprintf(op, sizeof op, "cp.async.bulk.tensor.%ud.global.shared::cta.tile.bulk_group", m->rank);
    k.op = op;
    name_case(c, "store", &k, index);
    put_store(c, &k);
    return make_input(c, IMAGE, &elements[m->dtype], &r) && make_target(c, NULL, OUT_BYTES, &r);
}

/* Stores through im2col maps (no offsets: pixels of the bounding box). */
static bool make_im2col_store(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 2111ULL + 31};
    struct golden_map *m = &c->map;
    struct copy k = {.from_in = true};
    char op[160];
    m->used = m->im2col = m->on_out = true;
    m->swizzle = index % 2 ? 2 : 0;
    m->rank = 3 + index / 2;
    m->dtype = 1;
    m->channels = 16;
    m->pixels = 13;
    m->dim[0] = 20;
    for (uint32_t d = 1; d < m->rank; d++) m->dim[d] = d + 1 == m->rank ? 2 : 3 + rng_below(&r, 2);
    for (uint32_t d = 1; d < m->rank; d++)
        m->stride[d - 1] = d == 1 ? 48 : m->stride[d - 2] * m->dim[d - 1];
    for (uint32_t d = 0; d < m->rank; d++) m->element_stride[d] = 1;
    k.coord[0] = 8 * (int32_t)(index % 2);
    k.coord[1] = 1;
    k.coord[m->rank - 1] = (int32_t)(index % 2);
    snprintf(op, sizeof op, "cp.async.bulk.tensor.%ud.global.shared::cta.im2col_no_offs.bulk_group",
             m->rank);
    k.op = op;
    name_case(c, "im2col store", &k, index);
    put_store(c, &k);
    return make_input(c, IMAGE, NULL, &r) && make_target(c, NULL, OUT_BYTES, &r);
}

static bool make_interleaved_store(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 6101ULL + 47};
    struct golden_map *m = &c->map;
    struct copy k = {.from_in = true};
    char op[160];
    draw_interleaved(m, 3 * index, &r);
    m->on_out = true;
    m->oob = 0;
    for (uint32_t d = 0; d < m->rank; d++) k.coord[d] = (int32_t)rng_below(&r, 3);
    k.coord[m->rank - 1] = 0;
    snprintf(op, sizeof op, "cp.async.bulk.tensor.%ud.global.shared::cta.tile.bulk_group", m->rank);
    k.op = op;
    name_case(c, "interleaved store", &k, index);
    put_store(c, &k);
    return make_input(c, IMAGE, NULL, &r) && make_target(c, NULL, 2 * OUT_BYTES, &r);
}

/* Which types each takes through a tensor map, by their names; an H200 refuses the others. */
static const struct {
    const char *op, *types;
} reductions[] = {{"add", " u32 s32 u64 f16 f32 f64 bf16 f32.ftz tf32 tf32.ftz "},
                  {"min", " u32 s32 u64 s64 f16 bf16 "},
                  {"max", " u32 s32 u64 s64 f16 bf16 "},
                  {"inc", " u32 "},
                  {"dec", " u32 "},
                  {"and", " u32 s32 u64 "},
                  {"or", " u32 s32 u64 "},
                  {"xor", " u32 s32 u64 "}};
enum { REDUCTIONS = sizeof reductions / sizeof reductions[0], TENSOR_REDUCTIONS = 33 };

/* The operation and type of tensor reduction `index`. */
static uint32_t find_reduction(uint32_t index, int *dtype)
{
    char word[16];
    for (uint32_t op = 0; op < REDUCTIONS; op++) {
        for (*dtype = 0; *dtype < ELEMENTS; ++*dtype) {
            snprintf(word, sizeof word, " %s ", elements[*dtype].name);
            if (strstr(reductions[op].types, word) && index-- == 0) return op;
        }
    }
    return 0;
}

static bool make_tensor_reduction(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 1999ULL + 37};
    struct golden_map *m = &c->map;
    struct copy k = {.from_in = true};
    char op[160], name[32];
    uint32_t which = find_reduction(index, &m->dtype);
    m->rank = 2;
    m->on_out = true;
    draw_tiled(m, 64, 8, 1024, &r);
    k.coord[1] = 1;
    snprintf(op, sizeof op, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.%s.tile.bulk_group",
             reductions[which].op);
    snprintf(name, sizeof name, "reduce %s", reductions[which].op);
    k.op = op;
    name_case(c, name, &k, index);
    put_store(c, &k);
    if (!make_input(c, IMAGE, &elements[m->dtype], &r)) return false;
    draw_values(c->in, IMAGE, &elements[m->dtype], &r);
    return make_target(c, &elements[m->dtype], 1280, &r);
}

/* Operations of cp.reduce.async.bulk, to global memory and (the first ones) to shared memory. */
static const struct {
    const char *op;
    int dtype; /* index into elements */
} bulk_reductions[] = {{"add.u32", 2},        {"add.s32", 3},       {"add.u64", 4}, {"min.u32", 2},
                       {"min.s32", 3},        {"max.u32", 2},       {"max.s32", 3}, {"inc.u32", 2},
                       {"dec.u32", 2},        {"and.b32", 2},       {"or.b32", 2},  {"xor.b32", 2},
                       {"add.f32", 7},        {"add.f64", 8},       {"and.b64", 4}, {"or.b64", 4},
                       {"xor.b64", 4},        {"min.u64", 4},       {"min.s64", 5}, {"max.u64", 4},
                       {"max.s64", 5},        {"add.noftz.f16", 6}, {"min.f16", 6}, {"max.f16", 6},
                       {"add.noftz.bf16", 9}, {"min.bf16", 9},      {"max.bf16", 9}};
enum {
    BULK_REDUCTIONS = sizeof bulk_reductions / sizeof bulk_reductions[0],
    SHARED_REDUCTIONS = 12,
    REDUCED = 2048
};

static bool make_bulk_reduction(struct golden_case *c, uint32_t index, bool shared)
{
    struct rng r = {index * 1597ULL + 41 + shared};
    const struct element *e = &elements[bulk_reductions[index].dtype];
    struct copy k = {.from_in = true, .bytes = REDUCED, .cluster = shared};
    char op[160];
    snprintf(c->name, sizeof c->name, "%u bulk reduce %s to %s", index, bulk_reductions[index].op,
             shared ? "shared" : "global");
    if (shared)
        snprintf(op, sizeof op,
                 "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.%s",
                 bulk_reductions[index].op);
    else
        snprintf(op, sizeof op, "cp.reduce.async.bulk.global.shared::cta.bulk_group.%s",
                 bulk_reductions[index].op);
    k.op = op;
    if (shared)
        put_shared_reduction(c, &k);
    else
        put_store(c, &k);
    if (!make_input(c, IMAGE, e, &r)) return false;
    draw_values(c->in, IMAGE, e, &r);
    return shared || make_target(c, e, REDUCED, &r);
}

/* ---- multicast ---- */

static bool make_multicast(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 1301ULL + 43};
    struct golden_map *m = &c->map;
    struct copy k = {.cluster = true, .bytes = 1024};
    char op[160];
    if (index % 2) {
        m->rank = 2;
        m->dtype = 1;
        m->swizzle = 3;
        draw_tiled(m, 128, 16, IN_BYTES, &r);
        k.coord[0] = 8;
        k.coord[1] = -1;
        k.bytes = box_bytes(m);
        k.op = load_op(op, sizeof op, m->rank, "tile", ".multicast::cluster");
    } else {
        k.op = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster";
    }
    k.shared_at = 128 * index;
    snprintf(c->name, sizeof c->name, "%u multicast %s", index, m->used ? "box" : "bytes");
    put_load(c, &k);
    return make_input(c, IN_BYTES, NULL, &r);
}

static bool make(struct golden_case *c, uint32_t index)
{
    enum {
        LOADS = 5 * 4 * VARIANTS,
        TYPES = 2 * ELEMENTS,
        INTERLEAVED = 48,
        IM2COL = 30,
        STORES = 40,
        IM2COL_STORES = 6,
        MULTICASTS = 4,
        INTERLEAVED_STORES = 8
    };
    if (index < LOADS) return make_load(c, index, false);
    if ((index -= LOADS) < TYPES) return make_load(c, index, true);
    if ((index -= TYPES) < INTERLEAVED) return make_interleaved(c, index);
    if ((index -= INTERLEAVED) < IM2COL) return make_im2col(c, index);
    if ((index -= IM2COL) < STORES) return make_store(c, index);
    if ((index -= STORES) < IM2COL_STORES) return make_im2col_store(c, index);
    if ((index -= IM2COL_STORES) < TENSOR_REDUCTIONS) return make_tensor_reduction(c, index);
    if ((index -= TENSOR_REDUCTIONS) < BULK_REDUCTIONS) return make_bulk_reduction(c, index, false);
    if ((index -= BULK_REDUCTIONS) < SHARED_REDUCTIONS) return make_bulk_reduction(c, index, true);
    if ((index -= SHARED_REDUCTIONS) < MULTICASTS) return make_multicast(c, index);
    if ((index -= MULTICASTS) < INTERLEAVED_STORES) return make_interleaved_store(c, index);
    return false;
}

const struct golden_family golden_tma = {"tma", make};
