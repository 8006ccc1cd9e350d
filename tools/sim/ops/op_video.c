/*
 * Video instructions (PTX ISA "Scalar Video Instructions", "SIMD Video Instructions"): an operation on
 * a part of each source, or on two or four parts at a time, widened by the source's own type; then
 * saturation, and what becomes of c: a second operation, or the parts that the result leaves alone.
 */
#include "machine/lanes.h"

#include <ctype.h>

enum video_op {
    VIDEO_ADD,
    VIDEO_SUB,
    VIDEO_ABSDIFF,
    VIDEO_MIN,
    VIDEO_MAX,
    VIDEO_AVRG,
    VIDEO_SHL,
    VIDEO_SHR,
    VIDEO_SET,
    VIDEO_MAD
};

/* What becomes of the result and c. */
enum video_second { SECOND_MERGE, SECOND_ADD, SECOND_MIN, SECOND_MAX };

/* insn.aux. A part is `width` bits at a multiple of it. */
struct video_form {
    enum video_op op;
    enum video_second second;
    bool d_signed, a_signed, b_signed, saturate, wrap, has_c, lanes;
    uint32_t parts;            /* 1 of a scalar instruction, 2, 4 */
    uint32_t a_width, b_width; /* bits of a source part */
    uint32_t width, mask;      /* bits of a result part, and which are written */
    uint8_t a_from[4],
        b_from[4];  /* the source part of each result part; of SIMD in b:a, a lowest */
    uint32_t shift; /* vmad's scale */
    bool plus_one;  /* vmad .po */
    const char *compare;
};

static int64_t part_of(uint64_t word, uint32_t index, uint32_t width, bool is_signed)
{
    const uint64_t v = word >> (index * width) << (64 - width);
    return is_signed ? (int64_t)v >> (64 - width) : (int64_t)(v >> (64 - width));
}

static int64_t clamp(int64_t v, uint32_t width, bool is_signed)
{
    const int64_t range = (int64_t)1 << width, least = is_signed ? -range / 2 : 0;
    const int64_t most = least + range - 1;
    return v < least ? least : v > most ? most : v;
}

static int64_t compared(const char *name, int64_t a, int64_t b)
{
    switch (name[0]) {
    case 'e': return a == b;
    case 'n': return a != b;
    case 'l': return name[1] == 't' ? a < b : a <= b;
    default: return name[1] == 't' ? a > b : a >= b;
    }
}

/* .clamp shifts by 32 at most, .wrap by five bits of b. */
static int64_t shifted(const struct video_form *f, int64_t a, int64_t b)
{
    const uint32_t by = (uint32_t)b, count = f->wrap ? by & 31 : by > 32 ? 32 : by;
    return f->op == VIDEO_SHR ? a >> count : (int64_t)((uint64_t)a << count);
}

static int64_t operate(const struct video_form *f, int64_t a, int64_t b)
{
    switch (f->op) {
    case VIDEO_ADD: return a + b;
    case VIDEO_SUB: return a - b;
    case VIDEO_ABSDIFF: return a > b ? a - b : b - a;
    case VIDEO_MIN: return a < b ? a : b;
    case VIDEO_MAX: return a > b ? a : b;
    case VIDEO_AVRG: return (a + b + (a + b >= 0)) >> 1;
    case VIDEO_SET: return compared(f->compare, a, b);
    default: return shifted(f, a, b);
    }
}

static uint32_t second(const struct video_form *f, int64_t r, uint32_t c)
{
    const int64_t left = f->d_signed ? (int32_t)r : (int64_t)(uint32_t)r;
    const int64_t right = f->d_signed ? (int32_t)c : (int64_t)c;
    if (f->second == SECOND_ADD) return (uint32_t)r + c;
    return (uint32_t)operate(
        &(struct video_form){.op = f->second == SECOND_MIN ? VIDEO_MIN : VIDEO_MAX}, left, right);
}

static uint32_t combine(const struct video_form *f, uint32_t a, uint32_t b, uint32_t c)
{
    const uint64_t both = (uint64_t)b << 32 | a;
    uint32_t r = f->has_c ? c : 0;
    for (uint32_t i = 0; i < f->parts; i++) {
        int64_t v =
            operate(f, part_of(f->parts > 1 ? both : a, f->a_from[i], f->a_width, f->a_signed),
                    part_of(f->parts > 1 ? both : b, f->b_from[i], f->b_width, f->b_signed));
        uint32_t at = (f->parts > 1 ? i : (uint32_t)__builtin_ctz(f->mask)) * f->width;
        uint32_t field = (uint32_t)(UINT64_MAX >> (64 - f->width)) << at;
        if (!(f->mask >> (f->parts > 1 ? i : at / f->width) & 1)) continue;
        if (f->saturate) v = clamp(v, f->width, f->d_signed);
        if (f->second != SECOND_MERGE)
            r = f->parts > 1 ? r + (uint32_t)v : second(f, v, c);
        else
            r = (r & ~field) | ((uint32_t)v << at & field);
    }
    return r;
}

__extension__ typedef __int128 int128_t;

/* d = (a * b + c {+ 1}) >> scale, saturated as a signed number unless every operand is unsigned. */
static uint32_t multiply_add(const struct video_form *f, uint32_t a, uint32_t b, uint32_t c)
{
    const bool is_signed = f->a_signed || f->b_signed || f->d_signed;
    int128_t v = (int128_t)part_of(a, f->a_from[0], f->a_width, f->a_signed) *
                 part_of(b, f->b_from[0], f->b_width, f->b_signed);
    v += is_signed ? (int64_t)(int32_t)c : (int64_t)c;
    v = (v + f->plus_one) >> f->shift;
    if (f->saturate && v > INT64_MAX) v = INT64_MAX;
    return (uint32_t)(f->saturate ? clamp((int64_t)v, 32, is_signed) : (int64_t)v);
}

static enum step video(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct video_form *f = in->aux;
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        uint32_t a = (uint32_t)arg_lane(w, in->arg[1], l), b = (uint32_t)arg_lane(w, in->arg[2], l);
        uint32_t c = (uint32_t)arg_lane(w, in->arg[3], l);
        arg_set_lane(w, in->arg[0], l,
                     f->op == VIDEO_MAD ? multiply_add(f, a, b, c) : combine(f, a, b, c));
    }
    return STEP_NEXT;
}

/* ---- binding ---- */

/* A scalar source's selector, .b0 to .b3, .h0, .h1 or none. */
static bool scalar_part(const char *selector, uint32_t *width, uint8_t *from)
{
    *width = 32;
    *from = 0;
    if (!selector) return true;
    *width = selector[0] == 'b' ? 8 : 16;
    *from = (uint8_t)(selector[1] - '0');
    return strlen(selector) == 2 && strchr("bh", selector[0]) && *from < 32 / *width;
}

/* A SIMD source's selector: a digit for each part, the first of b:a lowest and last. */
static bool simd_parts(const char *selector, uint32_t parts, uint32_t first, uint8_t from[4])
{
    for (uint32_t i = 0; i < 4; i++) from[i] = (uint8_t)(first + i);
    if (!selector) return true;
    if (selector[0] != (parts == 2 ? 'h' : 'b') || strlen(selector) != parts + 1) return false;
    for (uint32_t i = 0; i < parts && i < 4; i++) {
        from[i] = (uint8_t)(selector[parts - i] - '0');
        if (from[i] >= 2 * parts) return false;
    }
    return true;
}

/* The result's selector: one part of a scalar, or a digit for each part written of SIMD. */
static bool result_parts(const char *selector, struct video_form *f)
{
    uint8_t from;
    if (f->parts == 1) {
        if (!scalar_part(selector, &f->width, &from)) return false;
        f->mask = 1U << from;
        return true;
    }
    f->mask = (1U << f->parts) - 1;
    if (!selector) return true;
    if (selector[0] != (f->parts == 2 ? 'h' : 'b')) return false;
    f->mask = 0;
    for (const char *p = selector + 1; *p; p++) {
        if (!isdigit((unsigned char)*p) || (uint32_t)(*p - '0') >= f->parts) return false;
        f->mask |= 1U << (*p - '0');
    }
    return f->mask != 0;
}

static bool parts_fill(const struct ptx_insn *src, struct video_form *f)
{
    const char *a = src->operands[1].name, *b = src->operands[2].name;
    f->a_width = f->b_width = f->width = 32 / f->parts;
    if (!result_parts(src->operands[0].name, f)) return false;
    if (f->parts == 1)
        return scalar_part(a, &f->a_width, f->a_from) && scalar_part(b, &f->b_width, f->b_from);
    return simd_parts(a, f->parts, 0, f->a_from) && simd_parts(b, f->parts, f->parts, f->b_from);
}

static enum video_op op_of(const char *name)
{
    static const char *const names[] = {"vadd",  "vsub", "vabsdiff", "vmin", "vmax",
                                        "vavrg", "vshl", "vshr",     "vset", "vmad"};
    size_t length = strcspn(name, "24");
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && !strncmp(names[i], name, length)) return (enum video_op)i;
    return VIDEO_ADD;
}

/* Types: dtype atype btype, of vset atype btype. */
static void types_fill(const struct decoder *dc, struct video_form *f)
{
    bool is_signed[3] = {false, false, false};
    uint32_t n = 0;
    for (uint32_t i = 0; i < dc->mod_count && n < 3; i++)
        if (dc->mod[i] && mod_type(dc, i) != T_NONE)
            is_signed[n++] = ptx_type_kind(mod_type(dc, i)) == 's';
    f->d_signed = is_signed[0]; /* of vset: of what it compares, as an H200 has it */
    f->a_signed = is_signed[f->op == VIDEO_SET ? 0 : 1];
    f->b_signed = is_signed[f->op == VIDEO_SET ? 1 : 2];
}

int bind_video(struct decoder *dc, struct insn *out)
{
    static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    const char *name = dc->row->name, digit = name[strlen(name) - 1];
    struct video_form *f = bind_alloc(dc, sizeof *f);
    if (!f) return -1;
    f->op = op_of(name);
    f->parts = digit == '2' ? 2 : digit == '4' ? 4 : 1;
    f->saturate = mod_has(dc, "sat");
    f->wrap = mod_has(dc, "wrap");
    f->plus_one = mod_has(dc, "po");
    f->shift = mod_has(dc, "shr7") ? 7 : mod_has(dc, "shr15") ? 15 : 0;
    f->has_c = dc->src->operand_count > 3;
    f->second = mod_has(dc, "add")   ? SECOND_ADD
                : mod_has(dc, "min") ? SECOND_MIN
                : mod_has(dc, "max") ? SECOND_MAX
                                     : SECOND_MERGE;
    for (uint32_t i = 0; i < sizeof compares / sizeof *compares; i++)
        if (mod_has(dc, compares[i])) f->compare = compares[i];
    types_fill(dc, f);
    if (!parts_fill(dc->src, f)) return bind_invalid(dc, "a selector that the instruction lacks");
    out->aux = f;
    out->fn = video;
    return 0;
}
