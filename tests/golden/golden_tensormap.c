/*
 * Conformance of tensormap.replace: a map as the driver encoded it (or 128 zero bytes) is made into
 * another, field by field, in shared or in global memory, published, and used by one load; the
 * result is the image of shared memory around the box. Which fields are replaced: those in which the
 * two maps differ, or all.
 */
#include "golden.h"
#include "lib/golden_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IMAGE = 2048, /* bytes of shared memory recorded; the barrier and the map follow */
    MAP_AT = IMAGE + 128,
    IN_BYTES = 65536, /* the tensor; room for the map follows */
    FILLER = 0xA5,
    THREADS = 128,
    CHANGES = 94,
    STRIDED = 12,
    IM2COL = 24
};

enum place { IN_SHARED, IN_GLOBAL, FROM_ZERO, PLACES };

/* The load that uses the map. */
struct load {
    int32_t coord[5];
    uint16_t offset[3]; /* im2col */
    uint32_t bytes;
};

/* tensormap.replace's number of each of the driver's types. */
static const struct {
    uint8_t bytes, number;
    bool floating;
} types[] = {{1, 0, 0}, {2, 1, 0}, {4, 2, 0},  {4, 3, 0}, {8, 4, 0},  {8, 5, 0}, {2, 6, 1},
             {4, 7, 1}, {8, 9, 1}, {2, 10, 1}, {4, 8, 1}, {4, 11, 1}, {4, 12, 1}};
enum { TYPES = sizeof types / sizeof types[0] };

/* ---- kernels ---- */

/* One replacement; `ordinal` below 0: the field has none. */
static void put_field(struct text *t, enum place p, const char *field, uint32_t bits, int ordinal,
                      uint64_t value, bool constant)
{
    char where[16] = "";
    if (!constant) put(t, "mov.b%u %%v%u, %llu;\n", bits, bits, (unsigned long long)value);
    if (ordinal >= 0) snprintf(where, sizeof where, " %d,", ordinal);
    put(t, "tensormap.replace.tile.%s.%s.b1024.b%u [%s],%s ", field,
        p == IN_GLOBAL ? "global" : "shared::cta", bits, p == IN_GLOBAL ? "%room" : "%m", where);
    if (constant)
        put(t, "%llu;\n", (unsigned long long)value);
    else
        put(t, "%%v%u;\n", bits);
}

static void put_replacements(struct text *t, enum place p, const struct golden_map *a,
                             const struct golden_map *b, uint32_t shift)
{
    bool all = p == FROM_ZERO;
    if (all || shift) {
        put(t, "add.u64 %%v64, %%in, %u;\n", shift);
        put(t, "tensormap.replace.tile.global_address.%s.b1024.b64 [%s], %%v64;\n",
            p == IN_GLOBAL ? "global" : "shared::cta", p == IN_GLOBAL ? "%room" : "%m");
    }
    if (all || a->rank != b->rank) put_field(t, p, "rank", 32, -1, b->rank - 1, false);
    if (all || a->dtype != b->dtype)
        put_field(t, p, "elemtype", 32, -1, types[b->dtype].number, true);
    if (all || a->interleave != b->interleave)
        put_field(t, p, "interleave_layout", 32, -1, (uint64_t)b->interleave, true);
    if (all || a->swizzle != b->swizzle)
        put_field(t, p, "swizzle_mode", 32, -1, (uint64_t)b->swizzle, true);
    if (all || a->oob != b->oob) put_field(t, p, "fill_mode", 32, -1, (uint64_t)b->oob, true);
    for (uint32_t d = 0; d < b->rank; d++) {
        bool fresh = all || d >= a->rank;
        if (fresh || a->box[d] != b->box[d])
            put_field(t, p, "box_dim", 32, (int)d, b->box[d], false);
        if (fresh || a->dim[d] != b->dim[d])
            put_field(t, p, "global_dim", 32, (int)d, b->dim[d], false);
        if (fresh || a->element_stride[d] != b->element_stride[d])
            put_field(t, p, "element_stride", 32, (int)d, b->element_stride[d], false);
        if (d && (fresh || a->stride[d - 1] != b->stride[d - 1]))
            put_field(t, p, "global_stride", 64, (int)d - 1, b->stride[d - 1], false);
    }
}

static void put_head(struct text *t, enum place p)
{
    put(t,
        ".version 8.4\n.target sm_90a\n.address_size 64\n"
        ".extern .shared .align 1024 .b8 smem[];\n"
        ".visible .entry k(.param .u64 in, .param .u64 out, .param .align 64 .b8 map[128])\n{\n"
        ".reg .pred %%p, %%rest, %%done;\n.reg .b32 %%t, %%s, %%m, %%bar, %%i, %%a, %%v, %%v32;\n"
        ".reg .b32 %%c<5>;\n.reg .b16 %%o<3>;\n.reg .b64 %%in, %%out, %%map, %%room, %%g, %%v64;\n"
        "mov.u32 %%t, %%tid.x;\nmov.u32 %%s, smem;\nld.param.u64 %%in, [in];\n"
        "ld.param.u64 %%out, [out];\nmov.b64 %%map, map;\ncvta.param.u64 %%map, %%map;\n"
        "add.u64 %%room, %%in, %u;\nadd.u32 %%bar, %%s, %u;\nadd.u32 %%m, %%s, %u;\n"
        "shl.b32 %%i, %%t, 2;\nmov.u32 %%a, %%i;\nFILL:\nadd.u32 %%v, %%s, %%a;\n"
        "st.shared.b32 [%%v], 0x%02x%02x%02x%02x;\nadd.u32 %%a, %%a, %u;\n"
        "setp.lt.u32 %%p, %%a, %u;\n@%%p bra FILL;\n"
        "setp.ge.u32 %%p, %%t, 32;\n@%%p bra COPIED;\ncvt.u64.u32 %%g, %%i;\n",
        IN_BYTES, IMAGE, MAP_AT, FILLER, FILLER, FILLER, FILLER, 4 * THREADS, IMAGE);
    if (p == FROM_ZERO)
        put(t, "mov.b32 %%v, 0;\n");
    else
        put(t, "add.u64 %%map, %%map, %%g;\nld.b32 %%v, [%%map];\n");
    if (p == IN_GLOBAL)
        put(t, "add.u64 %%g, %%room, %%g;\nst.global.b32 [%%g], %%v;\n");
    else
        put(t, "add.u32 %%a, %%m, %%i;\nst.shared.b32 [%%a], %%v;\n");
    put(t, "COPIED:\nsetp.ne.u32 %%rest, %%t, 0;\nbar.sync 0;\n@%%rest bra REPLACED;\n");
}

static void put_tail(struct text *t, enum place p, const struct golden_map *b, const struct load *l)
{
    if (p == IN_GLOBAL) put(t, "fence.proxy.tensormap::generic.release.gpu;\n");
    put(t, "mbarrier.init.shared::cta.b64 [%%bar], 1;\nREPLACED:\nbar.sync 0;\n");
    if (p != IN_GLOBAL)
        put(t, "setp.ge.u32 %%p, %%t, 32;\n@%%p bra PUBLISHED;\n"
               "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"
               ".aligned [%%room], [%%m], 128;\nPUBLISHED:\nbar.sync 0;\n");
    put(t,
        "fence.proxy.async.shared::cta;\nbar.sync 0;\n@%%rest bra WAIT;\n"
        "fence.proxy.tensormap::generic.acquire.gpu [%%room], 128;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%bar], %u;\n",
        l->bytes);
    for (uint32_t d = 0; d < b->rank; d++) put(t, "mov.b32 %%c%u, %d;\n", d, l->coord[d]);
    for (uint32_t d = 0; d < 3; d++) put(t, "mov.b16 %%o%u, %u;\n", d, l->offset[d]);
    put(t,
        "cp.async.bulk.tensor.%ud.shared::cluster.global.%s.mbarrier::complete_tx::bytes "
        "[%%s], [%%room, {",
        b->rank, b->im2col ? "im2col" : "tile");
    for (uint32_t d = 0; d < b->rank; d++) put(t, "%s%%c%u", d ? ", " : "", d);
    put(t, "}], [%%bar]");
    for (uint32_t d = 0; b->im2col && d + 2 < b->rank; d++)
        put(t, "%s%%o%u%s", d ? ", " : ", {", d, d + 3 == b->rank ? "}" : "");
    put(t,
        ";\nWAIT:\nmov.u32 %%i, 0;\nPOLL:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 %%done, [%%bar], 0, 100000;\n"
        "@%%done bra WAITED;\nadd.u32 %%i, %%i, 1;\nsetp.lt.u32 %%p, %%i, 50;\n@%%p bra POLL;\n"
        "WAITED:\nbar.sync 0;\nshl.b32 %%i, %%t, 2;\n"
        "COPY:\nadd.u32 %%a, %%s, %%i;\nld.shared.b32 %%v, [%%a];\ncvt.u64.u32 %%g, %%i;\n"
        "add.u64 %%g, %%out, %%g;\nst.global.b32 [%%g], %%v;\nadd.u32 %%i, %%i, %u;\n"
        "setp.lt.u32 %%p, %%i, %u;\n@%%p bra COPY;\n"
        "setp.ne.u32 %%p, %%t, 0;\n@%%p bra END;\nselp.b32 %%v, 1, 0, %%done;\n"
        "st.global.b32 [%%out+%u], %%v;\nEND:\nret;\n}\n",
        4 * THREADS, IMAGE, IMAGE);
}

/* ---- maps ---- */

/* A legal map of at most IMAGE bytes a box and IN_BYTES / 2 a tensor. */
static void draw_map(struct golden_map *m, struct rng *r)
{
    static const uint32_t spans[] = {128, 32, 64, 128};
    uint32_t bytes, rows = 16, room = IN_BYTES / 2, inner;
    uint64_t extent;
    m->used = true;
    m->dtype = (int)rng_below(r, TYPES);
    m->rank = 1 + rng_below(r, 5);
    m->swizzle = (int)rng_below(r, 4);
    m->oob = types[m->dtype].floating && rng_below(r, 2);
    m->interleave = m->rank >= 3 && rng_below(r, 6) == 0;
    bytes = types[m->dtype].bytes;
    inner = m->interleave ? 16 : spans[m->swizzle];
    m->box[0] = inner / bytes;
    m->element_stride[0] = 1;
    m->dim[0] = m->interleave ? 3 : m->box[0] + rng_below(r, m->box[0]);
    if (m->interleave) {
        m->box[0] = 16 / bytes;
        rows = IMAGE / (16 * m->box[0]);
        if (rows > 16) rows = 16;
    }
    extent = m->interleave ? 16 * m->dim[0] : (m->dim[0] * bytes + 15) / 16 * 16;
    for (uint32_t d = 1; d < m->rank; d++) {
        uint32_t most = (uint32_t)(room / extent), step = 1 + (rng_below(r, 3) ? 0 : 1);
        uint32_t take = 1 + rng_below(r, d + 1 == m->rank ? rows : 3);
        if (take > rows) take = rows;
        m->element_stride[d] = step;
        m->box[d] = take * step;
        m->dim[d] = most ? 1 + rng_below(r, most < 8 ? most : 8) : 1;
        m->stride[d - 1] = extent;
        extent *= m->dim[d];
        rows /= take;
    }
}

static uint32_t box_bytes(const struct golden_map *m)
{
    uint32_t bytes = m->interleave ? 16 * m->box[0] : types[m->dtype].bytes * m->box[0];
    for (uint32_t d = 1; d < m->rank; d++)
        if (!m->interleave || d + 2 != m->rank) bytes *= m->box[d] / m->element_stride[d];
    return bytes;
}

/* One field, or every field, of `a` becomes another. */
static void draw_change(const struct golden_map *a, struct golden_map *b, uint32_t index,
                        struct rng *r)
{
    uint32_t last = a->rank - 1;
    *b = *a;
    switch (index % 8) {
    case 0: break; /* the address alone */
    case 1: b->dim[last] = 1 + rng_below(r, (uint32_t)a->dim[last]); break;
    case 2:
        if (last) b->box[last] = a->element_stride[last];
        break;
    case 3:
        if (last) b->stride[last - 1] += 16 * (1 + rng_below(r, 3));
        break;
    case 4:
        if (last) b->element_stride[last] = b->box[last] = 1 + rng_below(r, 8);
        break;
    case 5:
        if (types[a->dtype].floating) b->oob = !a->oob;
        break;
    default: draw_map(b, r); break;
    }
}

static uint32_t start_of(const struct golden_map *m, uint32_t d, struct rng *r)
{
    return rng_below(r, 8) ? rng_below(r, (uint32_t)m->dim[d]) : UINT32_MAX;
}

static bool make_change(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 3557ULL + 11};
    struct golden_map b = {0};
    struct load l = {.bytes = 0};
    enum place p = (enum place)(index % PLACES);
    struct text t = {c->text, sizeof c->text};
    int32_t chunk;
    uint32_t shift = index % 8 == 0 || rng_below(&r, 4) == 0 ? 16 * (1 + rng_below(&r, 64)) : 0;
    draw_map(&c->map, &r);
    draw_change(&c->map, &b, index / PLACES, &r);
    chunk = b.interleave ? 1 : (int32_t)(16 / types[b.dtype].bytes);
    for (uint32_t d = 0; d < b.rank; d++) l.coord[d] = (int32_t)start_of(&b, d, &r);
    l.coord[0] = l.coord[0] / chunk * chunk;
    l.bytes = box_bytes(&b);
    snprintf(c->name, sizeof c->name,
             "%u %s change %u rank %u to %u type %d to %d swizzle %d to %d", index,
             p == IN_SHARED   ? "shared"
             : p == IN_GLOBAL ? "global"
                              : "zero",
             index / PLACES % 8, c->map.rank, b.rank, c->map.dtype, b.dtype, c->map.swizzle,
             b.swizzle);
    put_head(&t, p);
    put_replacements(&t, p, &c->map, &b, shift);
    put_tail(&t, p, &b, &l);
    return true;
}

/* ---- interleaved maps, not changed ---- */

/* Slices of 16 or 32 bytes: dimensions W (H (D)), slices of a pixel, N. */
static void draw_slices(struct golden_map *m, uint32_t index, struct rng *r)
{
    static const uint8_t dtypes[] = {0, 1, 2, 4};
    uint64_t extent;
    m->used = true;
    m->rank = 3 + index % 3;
    m->interleave = 1 + (int)(index / 3 % 2);
    m->swizzle = (int)rng_below(r, 4);
    m->dtype = dtypes[rng_below(r, 4)];
    extent = 16U * (uint32_t)m->interleave;
    for (uint32_t d = 0; d < m->rank; d++) {
        m->element_stride[d] = m->box[d] = 1;
        m->dim[d] = d + 1 == m->rank ? 2 : d + 2 == m->rank ? 3 : 4 + rng_below(r, 4);
        if (d) m->stride[d - 1] = extent;
        extent *= m->dim[d] + (d == 0);
    }
}

static bool make_slices(struct golden_case *c, uint32_t index, bool im2col)
{
    struct rng r = {index * 7757ULL + 13 + im2col};
    struct golden_map *m = &c->map;
    struct load l = {.bytes = 0};
    struct text t = {c->text, sizeof c->text};
    uint32_t slice;
    draw_slices(m, index, &r);
    slice = 16U * (uint32_t)m->interleave;
    for (uint32_t d = 0; d < m->rank; d++) l.coord[d] = (int32_t)start_of(m, d, &r);
    if (im2col) {
        m->im2col = true;
        m->channels = slice / types[m->dtype].bytes * (1 + index / 12);
        m->pixels = 9 + rng_below(&r, 8);
        for (uint32_t d = 0; d + 2 < m->rank; d++) {
            m->lower[d] = -(int)rng_below(&r, 2);
            m->upper[d] = -(int)rng_below(&r, 3);
            m->element_stride[d] = index % 4 == 3 ? 2 : 1;
            l.offset[d] = (uint16_t)rng_below(&r, 3);
            l.coord[d] = m->lower[d] + (int)(rng_below(&r, 2) * m->element_stride[d]);
        }
        l.bytes = m->pixels * slice;
    } else {
        m->box[0] = 16U / types[m->dtype].bytes * (1 + rng_below(&r, 2));
        m->element_stride[0] = 2 + index % 3;
        l.bytes = (m->box[0] + m->element_stride[0] - 1) / m->element_stride[0] * slice;
    }
    snprintf(c->name, sizeof c->name, "%u %s rank %u interleave %d swizzle %d type %d", index,
             im2col ? "im2col slices" : "strided slices", m->rank, m->interleave, m->swizzle,
             m->dtype);
    put_head(&t, IN_SHARED);
    put_tail(&t, IN_SHARED, m, &l);
    return true;
}

static bool make_input(struct golden_case *c)
{
    c->grid = 1;
    c->block = THREADS;
    c->dynamic_shared = MAP_AT + 128;
    c->out_bytes = IMAGE + 16;
    c->rule = GOLDEN_BITS;
    c->element = 1;
    c->in_bytes = IN_BYTES + 128;
    c->in = calloc(1, c->in_bytes);
    if (!c->in) return false;
    for (size_t i = 0; i + 2 <= IN_BYTES; i += 2) {
        uint16_t v = (uint16_t)(i / 2);
        memcpy(c->in + i, &v, 2);
    }
    return true;
}

static bool make(struct golden_case *c, uint32_t index)
{
    bool any = false;
    /* The two left out make an integer map of one for TF32, which an H200 refuses (715). */
    if (index < CHANGES)
        any = make_change(c, index < 69 ? index : index < 89 ? index + 1 : index + 2);
    else if ((index -= CHANGES) < STRIDED)
        any = make_slices(c, index, false);
    else if ((index -= STRIDED) < IM2COL)
        any = make_slices(c, index, true);
    return any && make_input(c);
}

const struct golden_family golden_tensormap = {"tensormap", make};
