/*
 * Conformance of wgmma in the forms that golden_mma.c does not cover. Three parts:
 *   forms    every type, A in memory and in registers, dense and sparse, each selector, N = 8
 *   widths   every N, on forms that take turns
 *   layouts  descriptors: swizzles, base offsets, both majors, offsets drawn at random
 * Forms and widths lie K-major without swizzle, as in golden_mma.c. Layouts read from a window that is
 * full of random elements: whichever bytes a descriptor means, the sums tell. Wide results are recorded
 * as two hashes a lane, of even and of odd registers.
 *
 * Input: descriptors of A and B relative to the window, whether to accumulate; the window; then for each
 * lane its accumulators, four registers of A, metadata.
 */
#include "golden_operand.h"
#include "lib/golden_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 32, ROWS = 64, LANES = 128, WINDOW = 40960 };

static const struct family {
    const char *d, *a, *b;
} families[] = {{"f32", "f16", "f16"},   {"f16", "f16", "f16"},   {"f32", "bf16", "bf16"},
                {"f32", "tf32", "tf32"}, {"f32", "e4m3", "e4m3"}, {"f32", "e4m3", "e5m2"},
                {"f32", "e5m2", "e4m3"}, {"f32", "e5m2", "e5m2"}, {"f16", "e4m3", "e4m3"},
                {"f16", "e4m3", "e5m2"}, {"f16", "e5m2", "e4m3"}, {"f16", "e5m2", "e5m2"},
                {"s32", "s8", "s8"},     {"s32", "s8", "u8"},     {"s32", "u8", "s8"},
                {"s32", "u8", "u8"},     {"s32", "b1", "b1"}};
enum { FAMILIES = sizeof families / sizeof families[0], FLOATS = 12, B1 = FAMILIES - 1 };

struct form {
    const struct family *f;
    uint32_t n;
    bool sparse, a_regs, satfinite, hashed, accumulate;
    bool window; /* operands from a window of random elements */
    int scale_a, scale_b;
    bool trans_a, trans_b;
    uint32_t selector;
    uint64_t desc_a, desc_b;
    enum pattern pattern;
    uint32_t shared, d_regs, words; /* bytes of the window; registers and words of a lane */
};

static bool integer(const struct form *o)
{
    return !strcmp(o->f->d, "s32");
}

/* Bytes of K of B in one instruction; A has half of it when sparse. */
static uint32_t k_bytes(const struct form *o)
{
    return o->sparse ? 64 : 32;
}

/* ---- text ---- */

/* "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16" */
static void put_opcode(struct text *t, const struct form *o)
{
    put(t, "wgmma.mma_async%s.sync.aligned.m64n%uk%u%s.%s.%s.%s%s", o->sparse ? ".sp" : "", o->n,
        8 * k_bytes(o) / type_bits(o->f->a), o->satfinite ? ".satfinite" : "", o->f->d, o->f->a,
        o->f->b, type_bits(o->f->a) == 1 ? ".and.popc" : "");
}

static void put_immediates(struct text *t, const struct form *o)
{
    if (!integer(o)) put(t, ", %d, %d", o->scale_a, o->scale_b);
    if (type_bits(o->f->a) == 16 && !o->a_regs) put(t, ", %u", o->trans_a);
    if (type_bits(o->f->a) == 16) put(t, ", %u", o->trans_b);
}

static void put_results(struct text *t, const struct form *o)
{
    for (uint32_t i = 0; i < o->d_regs; i++) {
        if (o->hashed && i > 1)
            put(t, "mul.lo.u32 %%d%u, %%d%u, 0x01000193;\nxor.b32 %%d%u, %%d%u, %%d%u;\n", i % 2,
                i % 2, i % 2, i % 2, i);
        if (!o->hashed) put(t, "st.global.b32 [%%out+%u], %%d%u;\n", 4 * i, i);
    }
    if (o->hashed) put(t, "st.global.v2.b32 [%%out], {%%d0, %%d1};\n");
}

static void put_text(struct golden_case *c, const struct form *o)
{
    struct text t = {c->text, sizeof c->text};
    put(&t,
        ".version 8.7\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n.maxntid 128, 1, 1\n{\n"
        ".reg .b32 %%lane, %%at, %%v, %%s, %%base, %%e, %%a<4>, %%d<%u>;\n"
        ".reg .b64 %%in, %%out, %%p, %%da, %%db;\n.reg .pred %%more, %%add;\n"
        "mov.u32 %%lane, %%tid.x;\nmov.u32 %%base, smem;\n"
        "ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\n"
        "ld.global.b64 %%da, [%%in];\nld.global.b64 %%db, [%%in+8];\nld.global.b32 %%v, "
        "[%%in+16];\n"
        "setp.ne.u32 %%add, %%v, 0;\nshr.u32 %%v, %%base, 4;\ncvt.u64.u32 %%p, %%v;\n"
        "add.u64 %%da, %%da, %%p;\nadd.u64 %%db, %%db, %%p;\nadd.u64 %%in, %%in, %u;\n",
        o->d_regs, HEAD);
    put_copy_to_shared(&t, o->shared);
    put(&t,
        "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
        "mad.wide.u32 %%in, %%lane, %u, %%in;\nmad.wide.u32 %%out, %%lane, %u, %%out;\n",
        4 * o->words, o->hashed ? 8 : 4 * o->d_regs);
    for (uint32_t i = 0; i < o->d_regs + 5; i++) {
        if (i < o->d_regs)
            put(&t, "ld.global.b32 %%d%u, [%%in+%u];\n", i, o->shared + 4 * i);
        else if (i < o->d_regs + 4)
            put(&t, "ld.global.b32 %%a%u, [%%in+%u];\n", i - o->d_regs, o->shared + 4 * i);
        else
            put(&t, "ld.global.b32 %%e, [%%in+%u];\n", o->shared + 4 * i);
    }
    put(&t, "wgmma.fence.sync.aligned;\n");
    put_opcode(&t, o);
    put(&t, " {");
    put_list(&t, "%d", o->d_regs);
    put(&t, "}, %s, %%db", o->a_regs ? "{%a0, %a1, %a2, %a3}" : "%da");
    if (o->sparse) put(&t, ", %%e, %u", o->selector);
    put(&t, ", %%add");
    put_immediates(&t, o);
    put(&t, ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    put_results(&t, o);
    put(&t, "ret;\n}\n");
}

/* ---- which case ---- */

static void put_name(struct golden_case *c, const struct form *o)
{
    struct text t = {c->name, sizeof c->name};
    put(&t, "wgmma%s m64n%u%s %s.%s.%s", o->sparse ? ".sp" : "", o->n,
        o->satfinite ? ".satfinite" : "", o->f->d, o->f->a, o->f->b);
    if (o->a_regs) put(&t, " regs");
    if (o->sparse) put(&t, " sel %u", o->selector);
    if (o->window)
        put(&t, " %016llx %016llx", (unsigned long long)o->desc_a, (unsigned long long)o->desc_b);
    put_immediates(&t, o);
    put(&t, ", %s%s", o->window ? "layout" : pattern_names[o->pattern],
        o->accumulate ? "" : ", no c");
}

/* Selectors of a form's metadata: of pairs of threads with 16- and 32-bit elements. */
static uint32_t selectors(const struct family *f)
{
    return type_bits(f->a) >= 16 ? 2 : 1;
}

static bool find_form(struct form *o, uint32_t *index)
{
    for (uint32_t i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        const bool whole = i >= FLOATS;
        const uint32_t sparse = i == B1 ? 1 : 1 + selectors(f), saturate = whole && i != B1 ? 2 : 1;
        const uint32_t patterns = whole ? 2 : PATTERNS;
        const uint32_t cases = 2 * sparse * saturate * patterns;
        uint32_t at = *index, code;
        if (at >= cases) {
            *index -= cases;
            continue;
        }
        o->f = f;
        o->n = 8;
        o->pattern = (enum pattern)take_digit(&at, patterns);
        if (whole && o->pattern) o->pattern = EXTREME;
        o->satfinite = take_digit(&at, saturate) == 1;
        o->a_regs = take_digit(&at, 2) == 1;
        code = take_digit(&at, sparse);
        o->sparse = code > 0;
        o->selector = code > 0 ? code - 1 : 0;
        o->accumulate = *index % 8 != 6;
        o->scale_a = *index % 5 == 2 ? -1 : 1;
        o->scale_b = *index % 5 == 3 || *index % 10 == 2 ? -1 : 1;
        return true;
    }
    return false;
}

/* Every N on four forms; of integers those N that exist: 8, 16, 24, then by 16. */
static bool find_width(struct form *o, uint32_t *index)
{
    enum { WIDTHS = 32, KINDS = 5 };
    static const uint8_t kinds[KINDS] = {0, 1, 3, 12, B1};
    uint32_t at = *index;
    if (at >= WIDTHS * KINDS) {
        *index -= WIDTHS * KINDS;
        return false;
    }
    o->f = &families[kinds[at % KINDS]];
    o->n = 8 * (at / KINDS + 1);
    if (integer(o) && o->n > 24) o->n = (o->n + 15) / 16 * 16;
    o->sparse = at / KINDS % 2 == 1 && at % KINDS != 4;
    o->a_regs = at / KINDS / 2 % 2 == 1;
    o->hashed = o->n > 16;
    o->accumulate = true;
    o->pattern = at % KINDS < 3 ? WIDE : UNIFORM;
    return true;
}

/* A descriptor that stays in the window for 64 rows of A or n of B. */
static uint64_t draw_descriptor(struct rng *r, uint32_t swizzle, bool offset)
{
    const uint64_t start = rng_below(r, 256), leading = 1 + rng_below(r, 100);
    const uint64_t stride = 1 + rng_below(r, 100), base = offset ? rng_below(r, 8) : 0;
    return start | leading << 16 | stride << 32 | base << 49 | (uint64_t)swizzle << 62;
}

static bool find_layout(struct form *o, uint32_t *index, struct rng *r)
{
    enum { KINDS = 5, CASES = 400 };
    static const uint8_t kinds[KINDS] = {0, 2, 3, 4, B1};
    uint32_t at = *index, swizzle;
    if (at >= CASES) return false;
    o->window = o->hashed = o->accumulate = true;
    swizzle = take_digit(&at, 4);
    o->trans_b = take_digit(&at, 2) == 1;
    o->trans_a = take_digit(&at, 2) == 1;
    o->f = &families[kinds[at % 5]];
    o->sparse = at / 5 % 2 == 1 && o->f != &families[B1];
    o->n = o->trans_b || o->trans_a ? 32U << rng_below(r, 3) : 48;
    o->selector = o->sparse ? rng_below(r, selectors(o->f)) : 0;
    o->desc_a = draw_descriptor(r, rng_below(r, 4), at >= 12);
    o->desc_b = draw_descriptor(r, swizzle, at >= 12);
    if (type_bits(o->f->a) != 16) o->trans_a = o->trans_b = false;
    return true;
}

/* ---- inputs ---- */

/* Rows of `bytes` bytes in the layout at the top of golden_mma.c; of B the elements of a row repeat under
 * cancellation, those of A alternate in sign. */
static void fill_tile(unsigned char *to, uint32_t rows, uint32_t bytes, const char *type,
                      enum pattern p, bool b, struct rng *r)
{
    for (uint32_t row = 0; row < rows; row++) {
        double last = 0.5;
        uint32_t repeated = 0;
        for (uint32_t at = 0; at < bytes; at += 4) {
            uint32_t word = draw_register(r, type, p == CANCEL && b ? UNIFORM : p, &last);
            if (p == CANCEL && b) word = at ? repeated : (repeated = word);
            memcpy(to + row / 8 * 8 * bytes + at / 16 * 128 + row % 8 * 16 + at % 16, &word, 4);
        }
    }
}

static void fill(struct golden_case *c, const struct form *o, struct rng *r)
{
    const uint32_t flag = o->accumulate;
    unsigned char *to = c->in + HEAD;
    memcpy(c->in, &o->desc_a, 8);
    memcpy(c->in + 8, &o->desc_b, 8);
    memcpy(c->in + 16, &flag, 4);
    if (o->window)
        fill_tile(to, o->shared / 64, 64, o->f->a, UNIFORM, false, r);
    else {
        fill_tile(to, ROWS, 32, o->f->a, o->pattern, false, r);
        fill_tile(to + ROWS * 32, o->n, k_bytes(o), o->f->b, o->pattern, true, r);
    }
    to += o->shared;
    for (uint32_t i = 0; i < LANES * o->words; i++, to += 4) {
        const uint32_t part = i % o->words;
        double last = 0.5;
        uint32_t word = part < o->d_regs       ? draw_sum(r, o->f->d, o->pattern)
                        : part < o->d_regs + 4 ? draw_register(r, o->f->a, o->pattern, &last)
                                               : draw_metadata(r, type_bits(o->f->a) == 32, true);
        if (part < o->d_regs && o->satfinite && rng_below(r, 2)) word = draw_limit(r, 4096);
        memcpy(to, &word, 4);
    }
}

static bool make(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 32452843ULL + 13};
    struct form o = {.scale_a = 1, .scale_b = 1};
    uint32_t rest = index;
    if (!find_form(&o, &rest) && !find_width(&o, &rest) && !find_layout(&o, &rest, &r))
        return false;
    o.d_regs = o.n / 2 / (strcmp(o.f->d, "f16") ? 1 : 2);
    o.words = o.d_regs + 5;
    o.shared = o.window ? WINDOW : ROWS * 32 + o.n * k_bytes(&o);
    if (!o.window) { /* 16 bytes more of K are 128 bytes on, 8 rows more 256 or 512 */
        o.desc_a = 8ULL << 16 | 16ULL << 32;
        o.desc_b = ROWS * 32 / 16 | 8ULL << 16 | (uint64_t)(k_bytes(&o) / 2) << 32;
    }
    put_name(c, &o);
    set_case(c, o.f->d);
    if (o.hashed) c->element = 4, c->floating = false;
    put_text(c, &o);
    c->grid = 1;
    c->block = LANES;
    c->dynamic_shared = o.shared;
    c->in_bytes = HEAD + o.shared + 4 * (size_t)LANES * o.words;
    c->out_bytes = (size_t)LANES * (o.hashed ? 8 : 4 * o.d_regs);
    c->in = calloc(1, c->in_bytes);
    if (c->in) fill(c, &o, &r);
    return true;
}

const struct golden_family golden_wgmma = {"wgmma", make};
