/*
 * Conformance of wmma (load, mma and store together, for the layout of its fragments is nobody's
 * business: every shape, layout and type), and of ldmatrix, stmatrix and movmatrix. Blocks have 128
 * threads to fill shared memory with the input; the first warp then does the work.
 */
#include "golden_operand.h"
#include "lib/golden_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- wmma ---- */

static const struct family {
    const char *m_n_k, *factor, *d, *c;
    const char *variants; /* roundings or operations; or one form and the saturating one */
} families[] = {
    {"m16n16k16", "f16", "f16", "f16", ""},
    {"m16n16k16", "f16", "f16", "f32", ""},
    {"m16n16k16", "f16", "f32", "f16", ""},
    {"m16n16k16", "f16", "f32", "f32", ""},
    {"m32n8k16", "f16", "f16", "f16", ""},
    {"m32n8k16", "f16", "f16", "f32", ""},
    {"m32n8k16", "f16", "f32", "f16", ""},
    {"m32n8k16", "f16", "f32", "f32", ""},
    {"m8n32k16", "f16", "f16", "f16", ""},
    {"m8n32k16", "f16", "f16", "f32", ""},
    {"m8n32k16", "f16", "f32", "f16", ""},
    {"m8n32k16", "f16", "f32", "f32", ""},
    {"m16n16k16", "bf16", "f32", "f32", ""},
    {"m32n8k16", "bf16", "f32", "f32", ""},
    {"m8n32k16", "bf16", "f32", "f32", ""},
    {"m16n16k8", "tf32", "f32", "f32", ""},
    {"m8n8k4", "f64", "f64", "f64", "|.rn|.rz|.rm|.rp"},
    {"m16n16k16", "s8", "s32", "s32", "|.satfinite"},
    {"m32n8k16", "s8", "s32", "s32", "|.satfinite"},
    {"m8n32k16", "s8", "s32", "s32", "|.satfinite"},
    {"m16n16k16", "u8", "s32", "s32", "|.satfinite"},
    {"m32n8k16", "u8", "s32", "s32", "|.satfinite"},
    {"m8n32k16", "u8", "s32", "s32", "|.satfinite"},
    {"m8n8k32", "s4", "s32", "s32", "|.satfinite"},
    {"m8n8k32", "u4", "s32", "s32", "|.satfinite"},
    {"m8n8k128", "b1", "s32", "s32", ".xor.popc|.and.popc"},
};
enum { FAMILIES = sizeof families / sizeof families[0], WMMA_PATTERNS = 2 };

/* A matrix in memory. */
struct matrix {
    const char *type;
    uint32_t rows, cols, line; /* elements from one row (column) to the next */
    bool columns;              /* .col */
    bool strided;              /* the instruction names `line` */
    uint32_t at;               /* byte in the input */
};

struct form {
    const struct family *f;
    char variant[16];
    struct matrix a, b, c, d;
    const char *space; /* of the loads: "", ".global", ".shared" … */
    enum pattern pattern;
    uint32_t bytes; /* input */
};

static uint32_t matrix_bytes(const struct matrix *m)
{
    return (m->columns ? m->cols : m->rows) * m->line * type_bits(m->type) / 8;
}

/* Lines that follow one another, or are 32 bytes apart. */
static struct matrix matrix_of(const char *type, uint32_t rows, uint32_t cols, bool columns,
                               bool strided, uint32_t *at)
{
    struct matrix m = {type, rows, cols, columns ? rows : cols, columns, strided, *at};
    if (strided) m.line += 256 / type_bits(type);
    *at += matrix_bytes(&m);
    return m;
}

static bool find_form(struct form *o, uint32_t *index)
{
    static const char *const spaces[] = {".global", ".shared", ""};
    for (uint32_t i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        const bool packed = type_bits(f->factor) < 8; /* row.col alone */
        const uint32_t cases = list_parts(f->variants) * (packed ? 1 : 4) * WMMA_PATTERNS;
        uint32_t at = *index, layout, m = 0, n = 0, k = 0;
        if (at >= cases) {
            *index -= cases;
            continue;
        }
        o->f = f;
        layout = packed ? 2 : take_digit(&at, 4);
        list_part(f->variants, take_digit(&at, list_parts(f->variants)), o->variant,
                  sizeof o->variant);
        o->pattern = at == 0 ? WIDE : i % 3 == 0 ? EXTREME : i % 3 == 1 ? CANCEL : SPECIAL;
        if (!strcmp(f->d, "s32")) o->pattern = at == 0 ? UNIFORM : EXTREME;
        o->space = spaces[*index % 3];
        sscanf(f->m_n_k, "m%un%uk%u", &m, &n, &k);
        o->a = matrix_of(f->factor, m, k, layout & 1, *index % 4 != 0, &o->bytes);
        o->b = matrix_of(f->factor, k, n, layout >> 1, *index % 4 != 0, &o->bytes);
        o->c = matrix_of(f->c, m, n, *index / 2 % 2, *index % 4 != 1, &o->bytes);
        return true;
    }
    return false;
}

/* Registers of a fragment. */
static uint32_t registers(const struct form *o, const struct matrix *m)
{
    const uint32_t bits = type_bits(m->type), all = m->rows * m->cols * bits / 1024;
    const bool accumulator = m == &o->c || m == &o->d;
    if (bits == 64) return m->rows * m->cols / 32;
    if (!accumulator && !strcmp(m->type, "f16")) return 8;
    return all ? all : 1;
}

static void put_transfer(struct text *t, const struct form *o, const struct matrix *m,
                         const char *what, char name, const char *space, const char *address)
{
    const bool store = name == 'd';
    put(t, "wmma.%s.sync.aligned.%s.%s%s.%s ", what, m->columns ? "col" : "row", o->f->m_n_k, space,
        !strcmp(m->type, "tf32") ? "tf32" : m->type);
    if (store) put(t, "[%s], ", address);
    put(t, "{");
    put_list(t,
             name == 'a'   ? "%a"
             : name == 'b' ? "%b"
             : name == 'c' ? "%c"
                           : "%d",
             registers(o, m));
    put(t, "}");
    if (!store) put(t, ", [%s+%u]", address, m->at);
    if (m->strided) put(t, ", %u", m->line);
    put(t, ";\n");
}

static void put_opcode(struct text *t, const struct form *o)
{
    const struct family *f = o->f;
    const bool half = !strcmp(f->factor, "f16"), bits = !strcmp(f->factor, "b1");
    const bool rounds = !strcmp(f->factor, "f64");
    put(t, "wmma.mma%s.sync.aligned.%s.%s.%s%s.%s", bits ? o->variant : "",
        o->a.columns ? "col" : "row", o->b.columns ? "col" : "row", f->m_n_k,
        rounds ? o->variant : "", f->d);
    if (!half) put(t, ".%s.%s", f->factor, f->factor);
    put(t, ".%s%s", f->c, bits || rounds ? "" : o->variant);
}

static void put_begin(struct text *t, const char *registers_of, uint32_t shared)
{
    put(t,
        ".version 8.7\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
        ".reg .b32 %%lane, %%at, %%v, %%s, %%base;\n.reg .b64 %%in, %%out, %%p;\n"
        ".reg .pred %%more;\n%s"
        "mov.u32 %%lane, %%tid.x;\nmov.u32 %%base, smem;\n"
        "ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\n",
        registers_of);
    put_copy_to_shared(t, shared);
    put(t, "bar.sync 0;\nsetp.ge.u32 %%more, %%lane, 32;\n@%%more ret;\n");
}

static void put_wmma(struct golden_case *c, const struct form *o)
{
    struct text t = {c->text, sizeof c->text};
    const bool shared = !strcmp(o->space, ".shared");
    put_begin(&t,
              strcmp(o->f->d, "f64") ? ".reg .b32 %a<8>, %b<8>, %c<8>, %d<8>;\n"
                                     : ".reg .f64 %a<8>, %b<8>, %c<8>, %d<8>;\n",
              o->bytes);
    put_transfer(&t, o, &o->a, "load.a", 'a', o->space, shared ? "%base" : "%in");
    put_transfer(&t, o, &o->b, "load.b", 'b', o->space, shared ? "%base" : "%in");
    put_transfer(&t, o, &o->c, "load.c", 'c', o->space, shared ? "%base" : "%in");
    put_opcode(&t, o);
    put(&t, " {");
    put_list(&t, "%d", registers(o, &o->d));
    put(&t, "}, {");
    put_list(&t, "%a", registers(o, &o->a));
    put(&t, "}, {");
    put_list(&t, "%b", registers(o, &o->b));
    put(&t, "}, {");
    put_list(&t, "%c", registers(o, &o->c));
    put(&t, "};\n");
    put_transfer(&t, o, &o->d, "store.d", 'd', shared ? ".global" : o->space, "%out");
    put(&t, "ret;\n}\n");
}

/* Under CANCEL, A alternates in sign along memory and B is one number. */
static void fill_matrix(unsigned char *to, const struct matrix *m, enum pattern p, bool b,
                        struct rng *r)
{
    const uint32_t bytes = matrix_bytes(m);
    double last = 0.5;
    for (uint32_t i = 0; i < bytes; i += 8) {
        const bool f64 = !strcmp(m->type, "f64");
        enum pattern drawn = p == CANCEL && b ? UNIFORM : p;
        uint64_t word = f64 ? draw_f64(r, drawn, i / 8, &last) : 0;
        if (!f64) {
            word = draw_register(r, m->type, drawn, &last);
            word |= (uint64_t)draw_register(r, m->type, drawn, &last) << 32;
        }
        if (p == CANCEL && b && i) memcpy(&word, to, 8);
        memcpy(to + i, &word, 8);
    }
}

static bool make_wmma(struct golden_case *c, uint32_t *index, struct rng *r)
{
    struct form o = {0};
    struct text name = {c->name, sizeof c->name};
    uint32_t at = 0;
    if (!find_form(&o, index)) return false;
    o.d = matrix_of(o.f->d, o.c.rows, o.c.cols, *index % 2, *index % 4 != 2, &at);
    put(&name, "wmma%s %s.%s %s %s.%s.%s%s%s, C %s, %s", o.variant, o.a.columns ? "col" : "row",
        o.b.columns ? "col" : "row", o.f->m_n_k, o.f->d, o.f->factor, o.f->c, o.space,
        o.a.strided ? " strided" : "", o.c.columns ? "col" : "row", pattern_names[o.pattern]);
    set_case(c, o.f->d);
    put_wmma(c, &o);
    c->dynamic_shared = (o.bytes + 511) / 512 * 512;
    c->in_bytes = c->dynamic_shared;
    c->out_bytes = matrix_bytes(&o.d);
    c->in = calloc(1, c->in_bytes);
    if (!c->in) return true;
    fill_matrix(c->in + o.a.at, &o.a, o.pattern, false, r);
    fill_matrix(c->in + o.b.at, &o.b, o.pattern, true, r);
    for (uint32_t i = 0; i < matrix_bytes(&o.c) / 4 && strcmp(o.f->c, "f64") != 0; i++) {
        uint32_t word = draw_sum(r, o.f->c, o.pattern);
        if (!strcmp(o.f->c, "s32") && o.pattern == EXTREME && rng_below(r, 2))
            word = draw_limit(r, 64);
        memcpy(c->in + o.c.at + 4 * (size_t)i, &word, 4);
    }
    if (!strcmp(o.f->c, "f64")) fill_matrix(c->in + o.c.at, &o.c, o.pattern, false, r);
    return true;
}

/* ---- matrices between registers and shared memory ---- */

enum { IMAGE = 2048, ROW = 16 };

static const char *const move_ops[] = {"ldmatrix", "stmatrix", "movmatrix"};

/* Shared memory starts as the input; lane l's row starts where the input's word 512 + l says. */
static void put_move(struct golden_case *c, uint32_t op, uint32_t count, const char *trans,
                     const char *space)
{
    struct text t = {c->text, sizeof c->text};
    put_begin(&t, ".reg .b32 %r<4>, %o<1>, %row;\n.reg .b64 %q;\n", IMAGE + 32 * 4 + 32 * 16);
    put(&t,
        "mad.lo.u32 %%row, %%lane, 4, %%base;\nld.shared.b32 %%row, [%%row+%u];\n"
        "add.u32 %%row, %%row, %%base;\ncvt.u64.u32 %%q, %%row;\n",
        IMAGE);
    if (!*space) put(&t, "cvta.shared.u64 %%q, %%q;\n");
    put(&t,
        "mad.lo.u32 %%at, %%lane, 16, %%base;\n"
        "ld.shared.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%at+%u];\nbar.warp.sync -1;\n",
        IMAGE + 32 * 4);
    if (op == 2)
        put(&t, "movmatrix.sync.aligned.m8n8.trans.b16 %%r0, %%r1;\n");
    else
        put(&t, "%s.sync.aligned.m8n8.x%u%s%s.b16 ", move_ops[op], count, trans, space);
    if (op == 1) put(&t, "[%%q], ");
    if (op != 2) {
        put(&t, "{");
        put_list(&t, "%r", count);
        put(&t, op == 0 ? "}, [%%q];\n" : "};\n");
    }
    if (op == 1) {
        put(&t, "bar.warp.sync -1;\nmad.wide.u32 %%out, %%lane, 4, %%out;\n"
                "mad.lo.u32 %%at, %%lane, 4, %%base;\n");
        for (uint32_t i = 0; i < IMAGE; i += 128)
            put(&t, "ld.shared.b32 %%v, [%%at+%u];\nst.global.b32 [%%out+%u], %%v;\n", i, i);
    } else {
        put(&t, "mad.wide.u32 %%out, %%lane, 16, %%out;\n"
                "st.global.v4.b32 [%%out], {%%r0, %%r1, %%r2, %%r3};\n");
    }
    put(&t, "ret;\n}\n");
}

static bool make_move(struct golden_case *c, uint32_t index, struct rng *r)
{
    static const char *const spaces[] = {"", ".shared", ".shared::cta"};
    uint32_t used[IMAGE / ROW] = {0};
    const uint32_t op = index / 18, count = 1U << index % 3;
    const char *trans = index / 3 % 2 ? ".trans" : "", *space = spaces[index / 6 % 3];
    if (index > 36) return false;
    if (op == 2)
        snprintf(c->name, sizeof c->name, "movmatrix m8n8.trans");
    else
        snprintf(c->name, sizeof c->name, "%s m8n8.x%u%s%s", move_ops[op], count, trans, space);
    set_case(c, "f16");
    c->floating = false;
    put_move(c, op, count, trans, space);
    c->in_bytes = c->dynamic_shared = 4096;
    c->out_bytes = op == 1 ? IMAGE : 32 * 16;
    c->in = calloc(1, c->in_bytes);
    for (uint32_t i = 0; c->in && i < c->in_bytes; i += 4) {
        uint32_t word = (uint32_t)rng_next(r);
        if (i >= IMAGE && i < IMAGE + 32 * 4) { /* rows that do not overlap */
            do word = rng_below(r, IMAGE / ROW);
            while (used[word]);
            used[word] = 1;
            word *= ROW;
        }
        memcpy(c->in + i, &word, 4);
    }
    return true;
}

static bool make(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 49979687ULL + 17};
    c->grid = 1;
    c->block = 128;
    return make_wmma(c, &index, &r) || make_move(c, index, &r);
}

const struct golden_family golden_wmma = {"wmma", make};
