/*
 * Conformance of mma.sync in every form that sm_90a has and golden_mma.c does not cover: 8 x 8 shapes,
 * f64 with its roundings, 4-bit and 1-bit integers, every mix of signs, saturation and 8-bit floats,
 * sparse A with every selector. Two warps a case; each lane's registers come from the input.
 */
#include "golden_operand.h"
#include "lib/golden_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Forms that differ in operand types, rounding and the like only. */
static const struct family {
    const char *shape, *d, *c;
    const char *factor[2]; /* types of A and of B: each of these with each */
    uint32_t selectors;    /* of sparsity metadata; 0: dense */
    const char *variants;  /* what may follow the layout, or for b1 the types; or the layouts */
} families[] = {
    {"m16n8k4", "f32", "f32", {"tf32"}, 0, ""},
    {"m16n8k8", "f32", "f32", {"tf32"}, 0, ""},
    {"m16n8k8", "f32", "f32", {"f16"}, 0, ""},
    {"m16n8k8", "f16", "f16", {"f16"}, 0, ""},
    {"m16n8k16", "f32", "f32", {"f16"}, 0, ""},
    {"m16n8k16", "f16", "f16", {"f16"}, 0, ""},
    {"m16n8k8", "f32", "f32", {"bf16"}, 0, ""},
    {"m16n8k16", "f32", "f32", {"bf16"}, 0, ""},
    {"m16n8k16", "f32", "f32", {"e4m3", "e5m2"}, 0, ""},
    {"m16n8k16", "f16", "f16", {"e4m3", "e5m2"}, 0, ""},
    {"m16n8k32", "f32", "f32", {"e4m3", "e5m2"}, 0, ""},
    {"m16n8k32", "f16", "f16", {"e4m3", "e5m2"}, 0, ""},
    {"m8n8k4", "f64", "f64", {"f64"}, 0, "|.rn|.rz|.rm|.rp"},
    {"m16n8k4", "f64", "f64", {"f64"}, 0, "|.rn|.rz|.rm|.rp"},
    {"m16n8k8", "f64", "f64", {"f64"}, 0, "|.rn|.rz|.rm|.rp"},
    {"m16n8k16", "f64", "f64", {"f64"}, 0, "|.rn|.rz|.rm|.rp"},
    {"m8n8k4", "f32", "f32", {"f16"}, 0, "row.row|row.col|col.row|col.col"},
    {"m8n8k4", "f32", "f16", {"f16"}, 0, "row.row|row.col|col.row|col.col"},
    {"m8n8k4", "f16", "f16", {"f16"}, 0, "row.row|row.col|col.row|col.col"},
    {"m8n8k16", "s32", "s32", {"s8", "u8"}, 0, "|.satfinite"},
    {"m16n8k16", "s32", "s32", {"s8", "u8"}, 0, "|.satfinite"},
    {"m16n8k32", "s32", "s32", {"s8", "u8"}, 0, "|.satfinite"},
    {"m8n8k32", "s32", "s32", {"s4", "u4"}, 0, "|.satfinite"},
    {"m16n8k32", "s32", "s32", {"s4", "u4"}, 0, "|.satfinite"},
    {"m16n8k64", "s32", "s32", {"s4", "u4"}, 0, "|.satfinite"},
    {"m8n8k128", "s32", "s32", {"b1"}, 0, ".xor.popc|.and.popc"},
    {"m16n8k128", "s32", "s32", {"b1"}, 0, ".xor.popc|.and.popc"},
    {"m16n8k256", "s32", "s32", {"b1"}, 0, ".xor.popc|.and.popc"},
    {"m16n8k8", "f32", "f32", {"tf32"}, 4, ""},
    {"m16n8k16", "f32", "f32", {"tf32"}, 2, ""},
    {"m16n8k16", "f32", "f32", {"f16"}, 4, ""},
    {"m16n8k16", "f16", "f16", {"f16"}, 4, ""},
    {"m16n8k32", "f32", "f32", {"f16"}, 2, ""},
    {"m16n8k32", "f16", "f16", {"f16"}, 2, ""},
    {"m16n8k16", "f32", "f32", {"bf16"}, 4, ""},
    {"m16n8k32", "f32", "f32", {"bf16"}, 2, ""},
    {"m16n8k64", "f32", "f32", {"e4m3", "e5m2"}, 1, ""},
    {"m16n8k32", "s32", "s32", {"s8", "u8"}, 2, "|.satfinite"},
    {"m16n8k64", "s32", "s32", {"s8", "u8"}, 1, "|.satfinite"},
    {"m16n8k64", "s32", "s32", {"s4", "u4"}, 2, "|.satfinite"},
    {"m16n8k128", "s32", "s32", {"s4", "u4"}, 1, "|.satfinite"},
};
enum { FAMILIES = sizeof families / sizeof families[0], WARPS = 2 };

struct form {
    const struct family *f;
    const char *a, *b;
    char variant[16];
    bool ordered; /* .sp::ordered_metadata */
    uint32_t selector;
    enum pattern pattern;
    uint32_t a_regs, b_regs, c_regs, d_regs;
    uint32_t words; /* 32-bit words of a lane: A, B, C, metadata */
};

static bool legacy(const struct family *f)
{
    return !strcmp(f->shape, "m8n8k4") && !strcmp(f->factor[0], "f16");
}

static void set_registers(struct form *o)
{
    const struct family *f = o->f;
    uint32_t m = 0, n = 0, k = 0;
    uint32_t bits = type_bits(o->a) < 32 ? 32 : type_bits(o->a), of = 32 * bits;
    sscanf(f->shape, "m%un%uk%u", &m, &n, &k);
    o->a_regs = m * k * type_bits(o->a) / of / (f->selectors ? 2 : 1);
    o->b_regs = n * k * type_bits(o->a) / of;
    o->c_regs = m * n / 32 / (strcmp(f->c, "f16") ? 1 : 2);
    o->d_regs = m * n / 32 / (strcmp(f->d, "f16") ? 1 : 2);
    if (legacy(f)) { /* a quarter of the warp multiplies its own 8 x 8 x 4 */
        o->a_regs = o->b_regs = 2;
        o->c_regs *= 4;
        o->d_regs *= 4;
        if (!strcmp(f->c, "f16")) o->c_regs = 4;
        if (!strcmp(f->d, "f16")) o->d_regs = 4;
    }
    o->words = (o->a_regs + o->b_regs + o->c_regs) * (bits / 32) + (f->selectors ? 1 : 0);
}

static bool find_form(struct form *o, uint32_t index)
{
    for (uint32_t i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        const uint32_t types = f->factor[1] ? 2 : 1, selectors = f->selectors ? f->selectors : 1;
        const uint32_t variants = list_parts(f->variants), orders = f->selectors ? 2 : 1;
        const bool integer = !strcmp(f->d, "s32");
        const uint32_t patterns = integer ? 2 : PATTERNS;
        const uint32_t cases = types * types * variants * selectors * orders * patterns;
        if (index >= cases) {
            index -= cases;
            continue;
        }
        o->f = f;
        o->pattern = (enum pattern)take_digit(&index, patterns);
        if (integer && o->pattern) o->pattern = EXTREME;
        o->a = f->factor[take_digit(&index, types)];
        o->b = f->factor[take_digit(&index, types)];
        list_part(f->variants, take_digit(&index, variants), o->variant, sizeof o->variant);
        o->selector = take_digit(&index, selectors);
        o->ordered = take_digit(&index, orders) == 1;
        set_registers(o);
        return true;
    }
    return false;
}

/* "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" */
static void put_opcode(struct text *t, const struct form *o)
{
    const struct family *f = o->f;
    const char *sparse = o->ordered ? ".sp::ordered_metadata" : f->selectors ? ".sp" : "";
    if (legacy(f))
        put(t, "mma.sync.aligned.m8n8k4.%s.%s.f16.f16.%s", o->variant, f->d, f->c);
    else if (!strcmp(o->a, "b1"))
        put(t, "mma.sync.aligned.%s.row.col.s32.b1.b1.s32%s", f->shape, o->variant);
    else
        put(t, "mma%s.sync.aligned.%s.row.col%s.%s.%s.%s.%s", sparse, f->shape, o->variant, f->d,
            o->a, o->b, f->c);
}

static void load(struct text *t, char name, uint32_t count, const char *type, uint32_t bytes,
                 uint32_t *at)
{
    for (uint32_t i = 0; i < count; i++, *at += bytes)
        put(t, "ld.global.%s %%%c%u, [%%in+%u];\n", type, name, i, *at);
}

static void put_text(struct golden_case *c, const struct form *o)
{
    struct text t = {c->text, sizeof c->text};
    const char *type = !strcmp(o->a, "f64") ? "f64" : "b32";
    const uint32_t bytes = !strcmp(type, "f64") ? 8 : 4;
    uint32_t at = 0;
    put(&t,
        ".version 8.7\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
        ".reg .b32 %%lane, %%cta, %%e0;\n.reg .%s %%a<%u>, %%b<%u>, %%c<%u>, %%d<%u>;\n"
        ".reg .b64 %%in, %%out;\nmov.u32 %%lane, %%tid.x;\nmov.u32 %%cta, %%ctaid.x;\n"
        "mad.lo.u32 %%lane, %%cta, 32, %%lane;\n"
        "ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\n"
        "mad.wide.u32 %%in, %%lane, %u, %%in;\nmad.wide.u32 %%out, %%lane, %u, %%out;\n",
        type, o->a_regs, o->b_regs, o->c_regs, o->d_regs, 4 * o->words, bytes * o->d_regs);
    load(&t, 'a', o->a_regs, type, bytes, &at);
    load(&t, 'b', o->b_regs, type, bytes, &at);
    load(&t, 'c', o->c_regs, type, bytes, &at);
    load(&t, 'e', o->f->selectors ? 1 : 0, "b32", 4, &at);
    put_opcode(&t, o);
    put(&t, " {");
    put_list(&t, "%d", o->d_regs);
    put(&t, "}, {");
    put_list(&t, "%a", o->a_regs);
    put(&t, "}, {");
    put_list(&t, "%b", o->b_regs);
    put(&t, "}, {");
    put_list(&t, "%c", o->c_regs);
    put(&t, "}");
    if (o->f->selectors) put(&t, ", %%e0, 0x%x", o->selector);
    put(&t, ";\n");
    for (uint32_t i = 0; i < o->d_regs; i++)
        put(&t, "st.global.%s [%%out+%u], %%d%u;\n", type, bytes * i, i);
    put(&t, "ret;\n}\n");
}

/* ---- inputs ---- */

static unsigned char *put_word(unsigned char *to, uint32_t word)
{
    memcpy(to, &word, sizeof word);
    return to + sizeof word;
}

static void fill_f64(unsigned char *to, const struct form *o, struct rng *r)
{
    double last = 0.5;
    uint64_t repeated = draw_f64(r, UNIFORM, 0, &last);
    for (uint32_t i = 0; i < o->words / 2; i++) {
        const bool b = i >= o->a_regs && i < o->a_regs + o->b_regs;
        uint64_t v = draw_f64(r, b && o->pattern == CANCEL ? UNIFORM : o->pattern, i, &last);
        if (b && o->pattern == CANCEL) v = repeated;
        memcpy(to + 8 * (size_t)i, &v, sizeof v);
    }
}

/* One lane. Under CANCEL, A alternates in sign and the elements of a register of B are equal. */
static void fill(unsigned char *to, const struct form *o, struct rng *r)
{
    double last = 0.5;
    for (uint32_t i = 0; i < o->a_regs; i++)
        to = put_word(to, draw_register(r, o->a, o->pattern, &last));
    for (uint32_t i = 0; i < o->b_regs; i++) {
        uint32_t word = draw_register(r, o->b, o->pattern == CANCEL ? UNIFORM : o->pattern, &last);
        const uint32_t bits = type_bits(o->b);
        if (o->pattern == CANCEL && bits < 32)
            word = (word & ((1U << bits) - 1)) * (bits == 16 ? 0x10001U : 0x1010101U);
        to = put_word(to, word);
    }
    for (uint32_t i = 0; i < o->c_regs; i++) {
        uint32_t word = draw_sum(r, o->f->c, o->pattern);
        if (!strcmp(o->f->c, "s32") && o->pattern == EXTREME && rng_below(r, 2))
            word = draw_limit(r, 64);
        to = put_word(to, word);
    }
    if (o->f->selectors)
        put_word(to, draw_metadata(r, !strcmp(o->a, "tf32"), o->ordered || o->pattern != UNIFORM));
}

static bool make(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 15485863ULL + 11};
    struct form o = {0};
    struct text name = {c->name, sizeof c->name};
    if (!find_form(&o, index)) return false;
    put_opcode(&name, &o);
    if (o.f->selectors) put(&name, " %u", o.selector);
    put(&name, ", %s", pattern_names[o.pattern]);
    set_case(c, o.f->d);
    put_text(c, &o);
    c->grid = WARPS;
    c->block = 32;
    c->in_bytes = (size_t)WARPS * 32 * o.words * 4;
    c->out_bytes = (size_t)WARPS * 32 * o.d_regs * (strcmp(o.a, "f64") ? 4 : 8);
    c->in = calloc(1, c->in_bytes);
    for (uint32_t lane = 0; c->in && lane < WARPS * 32; lane++) {
        unsigned char *to = c->in + (size_t)lane * o.words * 4;
        if (!strcmp(o.a, "f64"))
            fill_f64(to, &o, &r);
        else
            fill(to, &o, &r);
    }
    return true;
}

const struct golden_family golden_warp_mma = {"warp_mma", make};
