#include "decode/bind.h"

#include <stdio.h>
#include <string.h>

/* `@name` in a modifier pattern. */
static const struct {
    const char *name, *types;
} type_lists[] = {
    {"int", "u16|u32|u64|s16|s32|s64"},
    {"int32", "u32|s32"},
    {"int64", "u64|s64"},
    {"u", "u16|u32|u64"},
    {"s", "s16|s32|s64"},
    {"b", "b16|b32|b64"},
    {"f", "f16|f32|f64"},
    {"h", "f16|bf16"},
    {"hx2", "f16x2|bf16x2"},
    {"half", "f16|f16x2|bf16|bf16x2"},
    {"i8", "u8|s8"},
    /* every type that registers of 16 to 64 bits hold */
    {"reg", "b16|b32|b64|u16|u32|u64|s16|s32|s64|f16|bf16|f32|f64|f16x2|bf16x2|f32x2"},
    /* ld and st */
    {"any", "b8|b16|b32|b64|b128|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64|f16|bf16|f16x2|bf16x2"},
    /* cvt between scalars */
    {"cvt", "u8|u16|u32|u64|s8|s16|s32|s64|f16|bf16|f32|f64"},
};

static const char *list_types(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof type_lists / sizeof type_lists[0]; i++)
        if (strlen(type_lists[i].name) == length && !memcmp(type_lists[i].name, name, length))
            return type_lists[i].types;
    return NULL;
}

/* Whether `mod` is one of the alternatives in [p, end). */
static bool alternative(const char *p, const char *end, const char *mod)
{
    size_t length = strlen(mod);

    while (p < end) {
        const char *bar = memchr(p, '|', (size_t)(end - p));
        const char *stop = bar ? bar : end;

        if (*p == '@') {
            const char *types = list_types(p + 1, (size_t)(stop - p - 1));
            if (types && alternative(types, types + strlen(types), mod)) return true;
        } else if ((size_t)(stop - p) == length && !memcmp(p, mod, length)) {
            return true;
        }
        p = stop + 1;
    }
    return false;
}

static bool match_groups(struct decoder *dc, const char *p, uint32_t group, const char *const *mods,
                         uint32_t count)
{
    size_t length;
    bool optional;

    while (*p == ' ') p++;
    if (!*p) {
        dc->mod_count = group;
        return count == 0;
    }
    length = strcspn(p, " ");
    optional = *p == '[';
    if (count && alternative(p + optional, p + length - optional, mods[0])) {
        dc->mod[group] = mods[0];
        if (match_groups(dc, p + length, group + 1, mods + 1, count - 1)) return true;
    }
    if (!optional) return false;
    dc->mod[group] = NULL;
    return match_groups(dc, p + length, group + 1, mods, count);
}

bool match_mods(struct decoder *dc, const char *pattern, const char *const *mods, uint32_t count)
{
    return match_groups(dc, pattern, 0, mods, count);
}

/* ---- any order ---- */

static const char *const opcodes[] = {
#define W(name) name,
#include "decode/opcodes.def"
#undef W
};

/* How many parts of `name` the modifiers begin with; 0 if not with all. */
static uint32_t begins(const char *name, const char *const *mods, uint32_t count)
{
    uint32_t parts = 0;

    for (;; parts++) {
        size_t length = strcspn(name, ".");

        if (parts == count || strlen(mods[parts]) != length || memcmp(mods[parts], name, length))
            return 0;
        if (!name[length]) return parts + 1;
        name += length + 1;
    }
}

/* How many of an opcode's parts come first and in order. */
static uint32_t fixed_parts(const char *const *mods, uint32_t count)
{
    uint32_t most = 1;

    for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++) {
        uint32_t parts = begins(opcodes[i], mods, count);
        if (parts > most) most = parts;
    }
    return most;
}

/* Words of one class mean something by their order among each other. */
enum mod_class { CLASS_FREE, CLASS_TYPE, CLASS_SPACE, CLASS_LAYOUT, CLASS_EVICTION, CLASS_BITS };

static enum mod_class mod_class(const char *mod)
{
    static const struct {
        const char *text;
        enum mod_class class;
    } words[] = {{"b1", CLASS_TYPE},
                 {"s4", CLASS_TYPE},
                 {"u4", CLASS_TYPE},
                 {"s2", CLASS_TYPE},
                 {"u2", CLASS_TYPE},
                 {"b8x16", CLASS_TYPE},
                 {"b6x16_p32", CLASS_TYPE},
                 {"b4x16_p64", CLASS_TYPE},
                 {"global", CLASS_SPACE},
                 {"shared", CLASS_SPACE},
                 {"shared::cta", CLASS_SPACE},
                 {"shared::cluster", CLASS_SPACE},
                 {"row", CLASS_LAYOUT},
                 {"col", CLASS_LAYOUT},
                 {"L2::evict_last", CLASS_EVICTION},
                 {"L2::evict_normal", CLASS_EVICTION},
                 {"L2::evict_first", CLASS_EVICTION},
                 {"L2::evict_unchanged", CLASS_EVICTION},
                 {"and", CLASS_BITS},
                 {"or", CLASS_BITS},
                 {"xor", CLASS_BITS},
                 {"popc", CLASS_BITS}};

    if (ptx_type_named(mod, strlen(mod)) != T_NONE) return CLASS_TYPE;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(words[i].text, mod)) return words[i].class;
    return CLASS_FREE;
}

bool mods_ordered(const char *a, const char *b)
{
    return mod_class(a) != CLASS_FREE && mod_class(a) == mod_class(b);
}

/* A row's name and pattern against modifiers in any order. */
struct any_order {
    const char *const *mods;
    const char **sorted;         /* [count]: the modifiers in the row's order */
    uint32_t count, used, taken; /* used: a bit for each; taken: how many */
};

/* Whether modifier i may be the next: those of one class come in turn. */
static bool may_take(const struct any_order *a, uint32_t i)
{
    enum mod_class class = mod_class(a->mods[i]);

    if (a->used & 1U << i) return false;
    for (uint32_t before = 0; class != CLASS_FREE && before < i; before++)
        if (!(a->used & 1U << before) && mod_class(a->mods[before]) == class) return false;
    return true;
}

/* Whether all are taken, and the opcode's own parts stand where ptxas wants them. */
static bool sorted_well(const struct any_order *a)
{
    uint32_t fixed = a->taken == a->count ? fixed_parts(a->sorted, a->count) : 0;

    for (uint32_t i = 0; i < fixed; i++)
        if (strcmp(a->sorted[i], a->mods[i]) != 0) return false;
    return fixed > 0;
}

static bool sort_groups(struct any_order *a, const char *p)
{
    size_t length;
    bool optional;

    while (*p == ' ') p++;
    if (!*p) return sorted_well(a);
    length = strcspn(p, " ");
    optional = *p == '[';
    for (uint32_t i = 0; i < a->count; i++) {
        if (!may_take(a, i) || !alternative(p + optional, p + length - optional, a->mods[i]))
            continue;
        a->sorted[a->taken++] = a->mods[i];
        a->used |= 1U << i;
        if (sort_groups(a, p + length)) return true;
        a->used &= ~(1U << i);
        a->taken--;
    }
    return optional && sort_groups(a, p + length);
}

bool sort_mods(const struct op_row *row, const char *const *mods, uint32_t count,
               const char **sorted)
{
    struct any_order a = {.mods = mods, .sorted = sorted, .count = count};
    const char *p = row->name;

    if (count > 32) return false;
    for (;;) { /* the name's parts, each of which must be there */
        size_t length = strcspn(p, ".");
        uint32_t i = 0;

        while (i < count &&
               (!may_take(&a, i) || strlen(mods[i]) != length || memcmp(mods[i], p, length) != 0))
            i++;
        if (i == count) return false;
        a.used |= 1U << i;
        sorted[a.taken++] = mods[i];
        if (!p[length]) return sort_groups(&a, row->mods);
        p += length + 1;
    }
}

bool mods_pattern_valid(const char *pattern, char *why, size_t size)
{
    uint32_t groups = 0;

    for (const char *p = pattern; *p;) {
        size_t length = strcspn(p, " ");

        if (length && ++groups > sizeof((struct decoder *)0)->mod / sizeof(char *)) {
            snprintf(why, size, "too many modifier groups");
            return false;
        }
        if (length && (*p == '[') != (p[length - 1] == ']')) {
            snprintf(why, size, "unbalanced brackets in '%.*s'", (int)length, p);
            return false;
        }
        for (const char *at = memchr(p, '@', length); at && at < p + length;
             at = memchr(at + 1, '@', (size_t)(p + length - at - 1))) {
            size_t name = strcspn(at + 1, "|] ");
            if (!list_types(at + 1, name)) {
                snprintf(why, size, "unknown type list '%.*s'", (int)name + 1, at);
                return false;
            }
        }
        p += length;
        p += *p == ' ';
    }
    return true;
}

/* ---- what bind functions ask ---- */

bool mod_is(const struct decoder *dc, uint32_t index, const char *text)
{
    return index < dc->mod_count && dc->mod[index] && !strcmp(dc->mod[index], text);
}

bool mod_has(const struct decoder *dc, const char *text)
{
    for (uint32_t i = 0; i < dc->mod_count; i++)
        if (dc->mod[i] && !strcmp(dc->mod[i], text)) return true;
    return false;
}

enum ptx_type mod_type(const struct decoder *dc, uint32_t index)
{
    if (index >= dc->mod_count || !dc->mod[index]) return T_NONE;
    return ptx_type_named(dc->mod[index], strlen(dc->mod[index]));
}

/* ---- traits ---- */

static bool has_mod(const struct ptx_insn *src, const char *mod)
{
    for (uint32_t i = 0; i < src->mod_count; i++)
        if (!strcmp(src->mods[i], mod)) return true;
    return false;
}

/* Atomics without a qualifier are relaxed (PTX ISA "atom"), volatile accesses too ("volatile"). */
static bool written_strong(const struct ptx_insn *src)
{
    static const char *const mods[] = {"volatile", "relaxed", "acquire",
                                       "release",  "acq_rel", "mmio"};

    for (size_t i = 0; i < sizeof mods / sizeof mods[0]; i++)
        if (has_mod(src, mods[i])) return true;
    return false;
}

/* Sums of floats are rounded one by one; what wraps, swaps or compares looks at what is there. */
static bool order_shows(const struct ptx_insn *src)
{
    static const char *const mods[] = {"inc", "dec", "exch", "cas",   "f32",
                                       "f64", "f16", "bf16", "f16x2", "bf16x2"};

    for (size_t i = 0; i < sizeof mods / sizeof mods[0]; i++)
        if (has_mod(src, mods[i])) return !has_mod(src, "min") && !has_mod(src, "max");
    return false;
}

/* PTX ISA "atom", "red": .gpu where nothing is said; "volatile": as .sys. */
static enum insn_scope written_scope(const struct ptx_insn *src)
{
    if (has_mod(src, "sys") || has_mod(src, "volatile") || has_mod(src, "mmio")) return SCOPE_SYS;
    if (has_mod(src, "cluster")) return SCOPE_CLUSTER;
    return has_mod(src, "cta") ? SCOPE_CTA : SCOPE_GPU;
}

static bool reads_chance(const struct ptx_insn *src)
{
    for (uint32_t i = 0; i < src->operand_count; i++) {
        const struct operand *op = &src->operands[i];

        if (op->kind == OPD_SREG &&
            (op->reg == SR_SMID || (op->reg >= SR_CLOCK && op->reg <= SR_GLOBALTIMER_HI)))
            return true;
    }
    return false;
}

/* The argument of the first predicate that is read. No pattern with pairs asks. */
static uint8_t predicate_argument(const char *pattern)
{
    uint8_t arg = 0;

    for (const char *p = pattern; *p; p += *p == ' ', arg++) {
        size_t length = strcspn(p, " ");

        if (length == 1 && *p == 'p') return arg;
        p += length;
    }
    return 0;
}

/* The first modifier behind the row's name, but for the `cta` of a barrier. */
static uint8_t part_behind(const struct decoder *dc)
{
    const struct ptx_insn *src = dc->src;
    uint32_t part = 1;

    for (const char *p = dc->row->name; *p; p++) part += *p == '.';
    if (part + 1 < src->mod_count && !strcmp(src->mods[part], "cta")) part++;
    return (uint8_t)part;
}

/*
 * Of PTX, what ptxas makes machine instructions of. It renames the registers of moves, packs and unpacks, and folds constants
 * into their users: of TIRx's attention (1,101 in its softmax loop, 466 in its correction, 605 in its MMA warp) ptxas 13.0 for
 * sm_100a leaves 531, 179 and 306; without the moves the PTX has 549, 184 and 300. Cycles: a warp's 32 lanes by
 * the results a clock of the CUDA C++ Programming Guide, a quarter of an SM's (9.0 and 10.0): f32 128, f32x2 half of that many
 * pairs, integer products 64, comparisons, bits, shifts and conversions 64, functions 16.
 */
static struct pipe_work resolve_work(const struct ptx_insn *src, const struct traits *is)
{
    struct pipe_work work = {{[PIPE_ISSUE] = is->class != INSN_MOVE}};
    const bool packed = has_mod(src, "f16x2") || has_mod(src, "bf16x2");
    const bool whole =
        !packed && !has_mod(src, "f32") && !has_mod(src, "f16") && !has_mod(src, "bf16");
    switch (is->pipe) {
    case PIPE_FMA: work.of[PIPE_FMA] = whole ? 2 : 1; break;
    case PIPE_LOGIC: work.of[PIPE_LOGIC] = 2; break;
    case PIPE_FUNCTION: work.of[PIPE_FUNCTION] = packed ? 16 : 8; break;
    default: break;
    }
    return work;
}

void resolve_traits(const struct decoder *dc, struct insn *out)
{
    const struct ptx_insn *src = dc->src;
    const bool both = has_mod(src, "acq_rel");
    struct traits *is = &out->is;

    *is = dc->row->is;
    is->strong = is->order == ORDER_STRONG || (is->order == ORDER_WRITTEN && written_strong(src));
    is->by_volatile = is->strong && has_mod(src, "volatile");
    is->constant = is->texture || (is->class == INSN_LOAD && has_mod(src, "nc"));
    if (is->strong || is->class == INSN_FENCE) is->scope = (uint8_t)written_scope(src);
    is->mixes = (is->class == INSN_ATOMIC || is->class == INSN_RED || is->class == INSN_COPY_RED) &&
                order_shows(src);
    is->changes = (is->class == INSN_ATOMIC || is->class == INSN_RED) && !has_mod(src, "exch");
    is->swaps = is->class == INSN_ATOMIC && (has_mod(src, "cas") || has_mod(src, "exch"));
    is->acquire = both || has_mod(src, "acquire");
    is->release = both || has_mod(src, "release");
    is->relaxed = has_mod(src, "relaxed");
    is->chance |= reads_chance(src);
    is->sources = is->class == INSN_WAIT && has_mod(src, "read");
    is->pair = has_mod(src, "cta_group::2");
    is->cells = has_mod(src, "kind::tf32");
    if (is->shown == SHOWN_PART) is->part = part_behind(dc);
    if (is->shown == SHOWN_PART && is->part >= src->mod_count) is->shown = SHOWN_NAME;
    if (is->class == INSN_MMA) is->adds = predicate_argument(dc->row->args);
    out->work = resolve_work(src, is);
}
