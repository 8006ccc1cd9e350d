#include "ptx/parse.h"

#include <string.h>

static uint32_t bucket_of(const char *name, size_t length)
{
    uint32_t h = 2166136261U; /* FNV-1a */

    for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)name[i]) * 16777619U;
    return (h ^ h >> 16) % SYMBOL_BUCKETS;
}

/* The first of the chain that is meant: the innermost, then those around it. */
static struct symbol *match(struct symbol *s, const char *name, size_t length, bool range)
{
    while (s && (s->length != length || (s->kind == SYM_RANGE) != range ||
                 memcmp(s->name, name, length) != 0))
        s = s->chain;
    return s;
}

static struct symbol *find(const struct parser *p, const char *name, size_t length, bool range)
{
    return match(p->buckets[bucket_of(name, length)], name, length, range);
}

bool scope_open(struct parser *p)
{
    if (p->depth + 1 >= MAX_SCOPES)
        return parse_fail(p, peek(p)->pos, "blocks are nested too deeply");
    p->scopes[++p->depth] = (struct scope){NULL, NULL};
    return true;
}

/* Turns a reference to a label of the closing scope into its index. */
static bool settle(const struct parser *p, struct fixup *f, const struct symbol *label)
{
    if (!label || label->kind != SYM_LABEL || label->depth != p->depth) return false;
    if (label->items) {
        f->operand->kind = OPD_VECTOR;
        f->operand->items = label->items;
        f->operand->count = (uint16_t)label->count;
    } else {
        f->operand->kind = OPD_LABEL;
        f->operand->imm = label->first;
    }
    return true;
}

bool scope_close(struct parser *p)
{
    struct scope *scope = &p->scopes[p->depth];
    struct fixup *f = scope->fixups, *after;

    for (; f; f = after) {
        const char *name = f->operand->name;
        struct symbol *symbol = find(p, name, strlen(name), false);

        after = f->next;
        if (settle(p, f, symbol)) continue;
        if (symbol && symbol->kind == SYM_FUNC) continue; /* stays OPD_NAME */
        if (p->depth <= 2) /* an entry's own scopes: nothing around them has labels */
            return parse_fail(p, f->pos, "unknown %s '%s'", f->branch ? "label" : "name", name);
        f->next = p->scopes[p->depth - 1].fixups;
        p->scopes[p->depth - 1].fixups = f;
    }
    for (struct symbol *s = scope->symbols; s; s = s->sibling)
        p->buckets[bucket_of(s->name, s->length)] = s->chain;
    p->depth--;
    return true;
}

struct symbol *scope_declare(struct parser *p, const struct token *name, enum symbol_kind kind)
{
    struct symbol *old = find(p, name->text, name->length, kind == SYM_RANGE);
    uint32_t bucket = bucket_of(name->text, name->length);
    struct symbol *s;

    if (old && old->depth == p->depth) {
        if (kind == SYM_FUNC && old->kind == SYM_FUNC) return old; /* a prototype said it before */
        parse_fail(p, name->pos, "'%.*s' is already declared at line %u", (int)name->length,
                   name->text, old->pos.line);
        return NULL;
    }
    s = arena_alloc(&p->scratch, sizeof *s);
    if (s) s->name = arena_strndup(p->arena, name->text, name->length);
    if (!s || !s->name) {
        parse_memory(p);
        return NULL;
    }
    s->length = name->length;
    s->kind = kind;
    s->depth = p->depth;
    s->pos = name->pos;
    s->chain = p->buckets[bucket];
    p->buckets[bucket] = s;
    s->sibling = p->scopes[p->depth].symbols;
    p->scopes[p->depth].symbols = s;
    return s;
}

/* `%r12` by way of `%r<N>`: every split of the trailing digits is tried, the innermost wins. A range
 * hides one around it only as far as it goes: with `%r<3>` inside, `%r12` is the outer one's. */
static const struct symbol *find_ranged(const struct parser *p, const struct token *name,
                                        uint32_t *reg)
{
    const struct symbol *best = NULL;
    uint64_t number = 0, unit = 1;

    for (size_t cut = name->length; cut > 1;) {
        char digit = name->text[--cut];
        const struct symbol *s;

        if (digit < '0' || digit > '9' || unit > UINT32_MAX) break;
        number += unit * (uint64_t)(digit - '0');
        unit *= 10;
        if (digit == '0' && cut + 1 < name->length) continue; /* %r01 is not %r1 */
        s = find(p, name->text, cut, true);
        while (s && number >= s->count) s = match(s->chain, name->text, cut, true);
        if (!s || (best && best->depth >= s->depth)) continue;
        best = s;
        *reg = s->first + (uint32_t)number * s->lanes;
    }
    return best;
}

const struct symbol *scope_find(const struct parser *p, const struct token *name, uint32_t *reg)
{
    const struct symbol *exact = find(p, name->text, name->length, false);
    uint32_t ranged_reg = 0;
    const struct symbol *ranged = find_ranged(p, name, &ranged_reg);

    if (ranged && (!exact || ranged->depth > exact->depth)) {
        *reg = ranged_reg;
        return ranged;
    }
    if (exact && exact->kind == SYM_REG) *reg = exact->first;
    return exact;
}

struct symbol *scope_symbol(const struct parser *p, const struct token *name)
{
    return find(p, name->text, name->length, false);
}

bool scope_fixup(struct parser *p, struct operand *operand, struct src_pos pos, bool branch)
{
    struct fixup *f = arena_alloc(&p->scratch, sizeof *f);

    if (!f) return parse_memory(p);
    *f = (struct fixup){operand, pos, branch, p->scopes[p->depth].fixups};
    p->scopes[p->depth].fixups = f;
    return true;
}

/* "unknown register '%r9' (declared: %r0..%r7)", as far as a range with the same letters exists. */
bool unknown_name(struct parser *p, const struct token *name)
{
    size_t letters = name->length;
    const struct symbol *range;

    while (letters > 1 && name->text[letters - 1] >= '0' && name->text[letters - 1] <= '9')
        letters--;
    range = find(p, name->text, letters, true);
    if (range)
        return parse_fail(p, name->pos, "unknown register '%.*s' (declared: %s0..%s%u)",
                          (int)name->length, name->text, range->name, range->name,
                          range->count - 1U);
    return parse_fail(p, name->pos, "unknown %s '%.*s'", name->text[0] == '%' ? "register" : "name",
                      (int)name->length, name->text);
}
