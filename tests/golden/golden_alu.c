/* Conformance of arithmetic: one kernel a form, GRID x BLOCK lanes, each with inputs of its own. */
#include "golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRID = 4, BLOCK = 128, SOURCES = 4, LANE_BYTES = 8 * SOURCES };

static const struct alu_form {
    const char *text, *to, *from;
    enum golden_rule rule;
    double bound;
} forms[] = {
#define ALU(text, to, from, rule, ulp) {text, to, from, GOLDEN_##rule, ulp},
#include "golden_alu.def"
#undef ALU
};

static const char *reg_type(char t)
{
    switch (t) {
    case 's': return "f32";
    case 'd': return "f64";
    case 'l': return "b64";
    case 'h':
    case 'b':
    case 'e': return "b16";
    default: return "b32";
    }
}

static uint32_t width(char t)
{
    return t == 'd' || t == 'l' ? 8 : strchr("hbe", t) ? 2 : 4;
}

static uint64_t draw(struct rng *r, char t)
{
    uint64_t low, high;
    switch (t) {
    case 's': return golden_f32(r);
    case 'd': return golden_f64(r);
    case 'h': return golden_half(r, false);
    case 'b': return golden_half(r, true);
    case 'H':
    case 'B':
        low = golden_half(r, t == 'B');
        high = golden_half(r, t == 'B');
        return low | high << 16;
    default: return golden_int(r);
    }
}

/* "prmt.b32.f4e": the mode stands last; everything else is opcode and operands. */
static void write_text(struct golden_case *c, const struct alu_form *f)
{
    char *out = c->text;
    size_t left = sizeof c->text;
    int n = snprintf(
        out, left,
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
        ".reg .b32 lane, cta;\n.reg .b64 from, to;\n"
        "mov.u32 lane, %%tid.x;\nmov.u32 cta, %%ctaid.x;\nmad.lo.u32 lane, cta, %d, lane;\n"
        "ld.param.u64 from, [in];\nld.param.u64 to, [out];\n"
        "mad.wide.u32 from, lane, %d, from;\nmad.wide.u32 to, lane, %u, to;\n",
        BLOCK, LANE_BYTES, width(f->to[0]));
    for (size_t i = 0; f->from[i]; i++)
        n += snprintf(out + n, left - (size_t)n, ".reg .%s s%zu;\nld.global.%s s%zu, [from+%zu];\n",
                      reg_type(f->from[i]), i, reg_type(f->from[i]), i, 8 * i);
    n += snprintf(out + n, left - (size_t)n, ".reg .%s d;\n%s d", reg_type(f->to[0]), f->text);
    for (size_t i = 0; f->from[i]; i++) n += snprintf(out + n, left - (size_t)n, ", s%zu", i);
    snprintf(out + n, left - (size_t)n, ";\nst.global.%s [to], d;\nret;\n}\n", reg_type(f->to[0]));
}

static bool make(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 1000003ULL + 17};
    const struct alu_form *f;
    if (index >= sizeof forms / sizeof forms[0]) return false;
    f = &forms[index];
    snprintf(c->name, sizeof c->name, "%s", f->text);
    write_text(c, f);
    c->grid = GRID;
    c->block = BLOCK;
    c->element = width(f->to[0]);
    c->in_bytes = (size_t)GRID * BLOCK * LANE_BYTES;
    c->out_bytes = (size_t)GRID * BLOCK * c->element;
    c->rule = f->rule;
    c->bound = f->bound;
    c->floating = strchr("sdhb", f->to[0]) != NULL;
    c->bfloat = f->to[0] == 'b';
    c->in = calloc(1, c->in_bytes);
    for (size_t lane = 0; c->in && lane < (size_t)GRID * BLOCK; lane++)
        for (size_t i = 0; f->from[i]; i++) {
            uint64_t v = draw(&r, f->from[i]);
            memcpy(c->in + lane * LANE_BYTES + 8 * i, &v, sizeof v);
        }
    return true;
}

const struct golden_family golden_alu = {"alu", make};
