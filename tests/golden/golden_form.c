/*
 * Conformance of instructions one lane at a time. A case is one row of a table: a text in which
 * <a|b|c> stands for each alternative in turn and $n for what the n-th such group became, so that a
 * row is all forms of one instruction; they run one after the other in one kernel, on the same
 * inputs. A text with a semicolon is PTX as it stands; any other is an opcode, to which operands are
 * added. What such a text may name, besides its sources s0 s1 … and results d0 d1 …:
 *
 *   p q r        predicates           h0-h3 t0-t9 x0-x9 y0 y1   registers of 16, 32, 64, 128 bits
 *   tid lane     thread of the CTA; of the grid        rank   rank in the cluster, of two CTAs
 *   sh gl        128 bytes of the lane's own in shared and in global memory, zeros at first
 *   peer         those at the same place in the other CTA's shared memory (.shared::cluster address)
 *   bar pbar     8 bytes for an mbarrier of the lane's own, and the same place in the other CTA
 *   all          a shared region of 256 bytes that the lanes of a CTA have in common
 *
 * Results lie form by form, then result by result, then lane by lane.
 */
#include "golden.h"
#include "lib/golden_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCES = 4, LANE_BYTES = 8 * SOURCES, GROUPS = 9, FORM_TEXT = 4096 };

struct form_row {
    const char *text, *to, *from;
    uint32_t lanes; /* of clusters: as many as they have */
    enum golden_rule rule;
    double bound;
};

/* Letters of sources and results. Inputs: as draw() says. */
static const struct letter {
    char letter;
    const char *reg; /* as a register; a predicate is drawn as 32 bits */
    uint32_t bytes;  /* as a result */
} letters[] = {
    {'s', "b32", 4}, {'v', "b32", 4},  {'a', "b32", 4}, {'d', "b64", 8},
    {'w', "b64", 8}, {'h', "b16", 2},  {'b', "b16", 2}, {'e', "b16", 2},
    {'H', "b32", 4}, {'B', "b32", 4},  {'i', "b32", 4}, {'k', "b32", 4},
    {'l', "b64", 8}, {'p', "pred", 1}, {'c', "b32", 1}, {'o', "b128", 16},
};

static const struct letter *letter_of(char c)
{
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        if (letters[i].letter == c) return &letters[i];
    return &letters[0];
}

/* ---- a row's forms ---- */

struct group {
    const char *begin, *end; /* between the angle brackets */
    uint32_t alternatives, chosen;
};

/* Groups that the text does not have are empty. */
static uint32_t find_groups(const char *text, struct group g[GROUPS])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < GROUPS; i++) g[i] = (struct group){text, text, 1, 0};
    for (const char *p = strchr(text, '<'); p && n < GROUPS; p = strchr(p, '<'), n++) {
        g[n].begin = ++p;
        g[n].end = strchr(p, '>');
        g[n].alternatives = 1;
        for (; p < g[n].end; p++) g[n].alternatives += *p == '|';
    }
    return n;
}

static uint32_t form_count(const char *text)
{
    struct group g[GROUPS];
    uint32_t count = 1;
    for (uint32_t n = find_groups(text, g); n > 0; n--) count *= g[n - 1].alternatives;
    return count;
}

static size_t put_alternative(char *to, const struct group *g)
{
    const char *p = g->begin, *end;
    for (uint32_t i = 0; i < g->chosen; i++) p = strchr(p, '|') + 1;
    for (end = p; end < g->end && *end != '|';) end++;
    memcpy(to, p, (size_t)(end - p));
    return (size_t)(end - p);
}

/* The text of form `index`; the last group changes fastest. */
static void write_form(const char *text, uint32_t index, char to[FORM_TEXT])
{
    struct group g[GROUPS];
    uint32_t next = 0;
    for (uint32_t n = find_groups(text, g); n > 0; n--) {
        g[n - 1].chosen = index % g[n - 1].alternatives;
        index /= g[n - 1].alternatives;
    }
    for (const char *p = text; *p; p++) {
        if (*p == '<') {
            to += put_alternative(to, &g[next]);
            p = g[next++].end;
        } else if (*p == '$') {
            to += put_alternative(to, &g[*++p - '1']);
        } else {
            *to++ = *p;
        }
    }
    *to = 0;
}

/* ---- the kernel ---- */

/* What does not depend on the form. */
struct shape {
    uint32_t lanes, block, element;
    bool cluster;
};

static void put_head(struct text *w, const struct form_row *row, const struct shape *shape)
{
    put(w,
        ".version 8.8\n.target sm_90a\n.address_size 64\n"
        ".global .align 128 .b8 global_bytes[%u];\n"
        ".const .align 8 .b8 const_bytes[16] = {1, 2, 3, 132, 5, 6, 7, 200, 9, 250, 11, 12, 13, "
        "14, "
        "15, 240};\n"
        ".visible .entry k(.param .u64 in, .param .u64 out) .maxntid %u, 1, 1 .minnctapersm 1 %s\n"
        "{\n.shared .align 128 .b8 shared_bytes[%u];\n.shared .align 8 .b64 barriers[%u];\n"
        ".shared .align 128 .b8 common[256];\n.local .align 16 .b8 own[64];\n"
        ".reg .b32 tid, lane, rank, sh, peer, bar, pbar, all, other;\n.reg .b64 from, to, gl;\n",
        shape->lanes * 128, shape->block, shape->cluster ? ".reqnctapercluster 2, 1, 1" : "",
        shape->block * 128, shape->block);
    put(w,
        "mov.u32 tid, %%tid.x;\nmov.u32 lane, %%ctaid.x;\nmad.lo.u32 lane, lane, %u, tid;\n"
        "ld.param.u64 from, [in];\nld.param.u64 to, [out];\n"
        "mad.wide.u32 from, lane, %u, from;\nmad.wide.u32 to, lane, %u, to;\n",
        shape->block, LANE_BYTES, shape->element);
    if (shape->cluster)
        put(w, "mov.u32 rank, %%cluster_ctarank;\nxor.b32 other, rank, 1;\n"
               "mov.u32 sh, shared_bytes;\nmad.lo.u32 sh, tid, 128, sh;\n"
               "mov.u32 bar, barriers;\nmad.lo.u32 bar, tid, 8, bar;\nmov.u32 all, common;\n"
               "mapa.shared::cluster.u32 peer, sh, other;\n"
               "mapa.shared::cluster.u32 pbar, bar, other;\n"
               "mov.u64 gl, global_bytes;\nmad.wide.u32 gl, lane, 128, gl;\n");
    for (size_t i = 0; row->from[i]; i++) {
        const struct letter *l = letter_of(row->from[i]);
        if (l->bytes == 16) {
            put(w,
                ".reg .b128 s%zu;\n{ .reg .b64 u, v; ld.global.b64 u, [from+%zu]; ld.global.b64 v, "
                "[from+%zu]; mov.b128 s%zu, {u, v}; }\n",
                i, 8 * i, 8 * i + 8, i);
            continue;
        }
        put(w, ".reg .%s s%zu;\n", l->reg, i);
        if (!strcmp(l->reg, "pred"))
            put(w, "{ .reg .b32 u; ld.global.b32 u, [from+%zu]; setp.lt.s32 s%zu, u, 0; }\n", 8 * i,
                i);
        else
            put(w, "ld.global.%s s%zu, [from+%zu];\n", l->reg, i, 8 * i);
    }
}

#define MEET "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"

/* The memory that a form finds: zeros, everywhere in the cluster. */
static void put_reset(struct text *w, const struct shape *shape)
{
    uint32_t share = 256 / shape->block;
    put(w, MEET
        "mov.b64 x0, 0;\nst.local.v2.b64 [own], {x0, x0};\nst.local.v2.b64 [own+16], {x0, x0};\n");
    for (int i = 0; i < 128; i += 16)
        put(w, "st.shared.v2.b64 [sh+%d], {x0, x0};\nst.global.v2.b64 [gl+%d], {x0, x0};\n", i, i);
    put(w, "mad.lo.u32 t0, tid, %u, all;\nmov.b16 h0, 0;\n", share);
    for (uint32_t i = 0; i < share; i += 2) put(w, "st.shared.b16 [t0+%u], h0;\n", i);
    put(w, "fence.proxy.async;\n" MEET);
}

static void put_result(struct text *w, char letter, size_t k, size_t offset)
{
    if (letter == 'p')
        put(w, "selp.u32 t0, 1, 0, d%zu;\nst.global.u8 [to+%zu], t0;\n", k, offset);
    else if (letter == 'c') /* tells 0, all ones and 1.0, whole or in halves, apart */
        put(w,
            "shr.u32 t0, d%zu, 24;\nshr.u32 t1, d%zu, 8;\nmad.lo.u32 t0, t1, 3, t0;\n"
            "st.global.u8 [to+%zu], t0;\n",
            k, k, offset);
    else if (letter == 'o')
        put(w, "mov.b128 {x0, x1}, d%zu;\nst.global.v2.b64 [to+%zu], {x0, x1};\n", k, offset);
    else
        put(w, "st.global.%s [to+%zu], d%zu;\n", letter_of(letter)->reg, offset, k);
}

static void put_form(struct text *w, const struct form_row *row, const char *text,
                     const struct shape *shape, size_t offset)
{
    size_t stride = (size_t)shape->lanes * shape->element;
    put(w, "{\n.reg .pred p, q, r;\n.reg .b16 h<4>;\n.reg .b32 t<10>;\n.reg .b64 x<10>;\n"
           ".reg .b128 y<2>;\n");
    for (size_t k = 0; row->to[k]; k++) put(w, ".reg .%s d%zu;\n", letter_of(row->to[k])->reg, k);
    if (shape->cluster) put_reset(w, shape);
    put(w, "%s", text);
    if (!strchr(text, ';')) {
        for (size_t k = 0; row->to[k]; k++) put(w, "%cd%zu", k ? '|' : ' ', k);
        for (size_t i = 0; row->from[i]; i++) put(w, ", s%zu", i);
        put(w, ";");
    }
    put(w, "\n");
    for (size_t k = 0; row->to[k]; k++) put_result(w, row->to[k], k, offset + k * stride);
    put(w, "}\n");
}

static void write_kernel(struct golden_case *c, const struct form_row *row,
                         const struct shape *shape)
{
    struct text w = {c->text, sizeof c->text};
    char text[FORM_TEXT];
    size_t form = strlen(row->to) * shape->lanes * shape->element;
    put_head(&w, row, shape);
    for (uint32_t i = 0; i < form_count(row->text); i++) {
        write_form(row->text, i, text);
        put_form(&w, row, text, shape, i * form);
    }
    put(&w, "%sret;\n}\n", shape->cluster ? MEET : "");
}

/* ---- inputs ---- */

/* Around the limits of the integer types, and halfway between integers. */
static double near_limit(struct rng *r)
{
    static const int limits[] = {0, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64};
    double v = ldexp(1, limits[rng_below(r, sizeof limits / sizeof limits[0])]);
    double step = rng_below(r, 2) ? 0.5 : v * 0x1p-24;
    v += ((int)rng_below(r, 9) - 4) * step;
    return rng_below(r, 2) ? v : -v;
}

static uint64_t f64_of(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

static uint64_t f32_of(double d)
{
    float f = (float)d;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* NaNs, the one that fills tiles out of bounds among them, and infinities more often than usual. */
static uint64_t half(struct rng *r, bool bf16)
{
    switch (rng_below(r, 10)) {
    case 0: return (bf16 ? 0x7F80U : 0x7C00U) | (rng_next(r) & 0x83FFU);
    case 1: return 0x7FF7;
    default: return golden_half(r, bf16);
    }
}

static uint64_t draw(struct rng *r, char letter)
{
    static const uint32_t few[] = {0, 1, 2, 3, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF};
    uint64_t low;
    switch (letter) {
    case 's': return golden_f32(r);
    case 'v': return rng_below(r, 4) ? f32_of(near_limit(r)) : golden_f32(r);
    case 'a': return f32_of((double)rng_unit(r) * 3.14159265358979); /* an angle */
    case 'd': return golden_f64(r);
    case 'w': return rng_below(r, 4) ? f64_of(near_limit(r)) : golden_f64(r);
    case 'h': return half(r, false);
    case 'b': return half(r, true);
    case 'H':
    case 'B': low = half(r, letter == 'B'); return low | half(r, letter == 'B') << 16;
    case 'k': return few[rng_below(r, sizeof few / sizeof few[0])];
    default: return golden_int(r);
    }
}

/* Operands of one kind are equal in every sixth lane. */
static void fill(struct golden_case *c, const struct form_row *row, uint64_t seed)
{
    struct rng r = {seed};
    for (size_t lane = 0; lane < c->lanes; lane++)
        for (size_t i = 0; row->from[i]; i++) {
            unsigned char *at = c->in + lane * LANE_BYTES + 8 * i;
            uint64_t v = draw(&r, row->from[i]);
            memcpy(at, &v, sizeof v);
            if (i > 0 && row->from[i] == row->from[i - 1] && rng_below(&r, 6) == 0)
                memcpy(at, at - 8, 8);
        }
}

/* ---- the families ---- */

struct table {
    const struct form_row *rows;
    uint32_t count, block;
    bool cluster; /* of two CTAs */
    uint64_t seed;
};

static bool make(struct golden_case *c, uint32_t index, const struct table *t)
{
    const struct form_row *row = &t->rows[index];
    struct shape shape = {.block = t->block, .cluster = t->cluster};
    if (index >= t->count) return false;
    shape.lanes = t->cluster ? 2 * t->block : row->lanes;
    shape.element = letter_of(row->to[0])->bytes;
    snprintf(c->name, sizeof c->name, "%.*s", (int)sizeof c->name - 1, row->text);
    c->form_of = row->text;
    c->form = write_form;
    c->forms = form_count(row->text);
    c->lanes = shape.lanes;
    c->grid = shape.lanes / shape.block;
    c->block = shape.block;
    c->element = shape.element;
    c->in_bytes = (size_t)shape.lanes * LANE_BYTES;
    c->out_bytes = c->forms * strlen(row->to) * shape.lanes * shape.element;
    c->rule = row->rule;
    c->bound = row->bound;
    c->floating = strchr("svadwhb", row->to[0]) != NULL;
    c->bfloat = row->to[0] == 'b';
    c->in = calloc(1, c->in_bytes);
    if (c->in) fill(c, row, t->seed + index * 7919ULL);
    write_kernel(c, row, &shape);
    return true;
}

/* Rows: FORM for 256 lanes and equal bits, FORM_FEW for 128 lanes, NEAR for approximations. */
#define FORM(text, to, from)                     {text, to, from, 256, GOLDEN_BITS, 0},
#define FORM_FEW(text, to, from)                 {text, to, from, 128, GOLDEN_BITS, 0},
#define NEAR(text, to, from, lanes, rule, bound) {text, to, from, lanes, GOLDEN_##rule, bound},

#define FAMILY(family, block, cluster, seed)                                                      \
    static bool make_##family(struct golden_case *c, uint32_t index)                              \
    {                                                                                             \
        static const struct table table = {                                                       \
            family##_rows, sizeof family##_rows / sizeof family##_rows[0], block, cluster, seed}; \
        return make(c, index, &table);                                                            \
    }                                                                                             \
    const struct golden_family golden_##family = {#family, make_##family};

static const struct form_row form_rows[] = {
#include "golden_form.def"
};
static const struct form_row warp_rows[] = {
#include "golden_warp.def"
};
static const struct form_row memory_rows[] = {
#include "golden_memory.def"
};
static const struct form_row async_rows[] = {
#include "golden_async.def"
};
static const struct form_row video_rows[] = {
#include "golden_video.def"
};

FAMILY(form, 128, false, 0x1001)
FAMILY(warp, 128, true, 0x2002)
FAMILY(memory, 32, true, 0x3003)
FAMILY(async, 32, true, 0x4004)
FAMILY(video, 32, false, 0x5005)
