#include "source.h"

#include <stdlib.h>
#include <string.h>

enum { CHASE = 6 };

void source_open(struct source *s, const struct watched_module *module)
{
    struct ptx_diag diag;

    *s = (struct source){.module = module};
    if (ptx_parse(module->text, strlen(module->text), &s->ptx, &diag)) {
        s->ptx = NULL;
        return;
    }
    s->kernels = calloc(s->ptx->entry_count + 1U, sizeof *s->kernels);
    for (uint32_t i = 0; s->kernels && i < s->ptx->entry_count; i++) {
        s->kernels[i].module = s->ptx;
        s->kernels[i].entry = &s->ptx->entries[i];
        (void)names_collect(&s->kernels[i], &diag);
    }
}

void source_close(struct source *s)
{
    for (uint32_t i = 0; s->kernels && i < s->ptx->entry_count; i++)
        arena_free(&s->kernels[i].arena);
    free(s->kernels);
    if (s->ptx) ptx_module_free(s->ptx);
}

static const struct ptx_insn *insn_at(const struct source *s, const struct ptx_entry *e,
                                      const struct watch_site *site)
{
    const size_t word = strcspn(site->text, ". ;");

    for (uint32_t i = 0; i < e->insn_count; i++) {
        const struct ptx_insn *in = &e->insns[i];
        const char *file = in->ptx_pos.file ? ptx_file(s->ptx, in->ptx_pos) : NULL;

        if (in->ptx_pos.line != site->pos.line || !file != !site->file) continue;
        if (file && strcmp(file, site->file) != 0) continue;
        if (strlen(in->mods[0]) == word && !strncmp(in->mods[0], site->text, word)) return in;
    }
    return NULL;
}

const struct kernel *source_find(const struct source *s, const struct watch_site *site,
                                 const struct ptx_insn **insn)
{
    *insn = NULL;
    for (uint32_t i = 0; s->kernels && i < s->ptx->entry_count; i++) {
        const struct ptx_entry *e = &s->ptx->entries[i];
        const bool own = !strcmp(e->name, site->function);

        *insn = own || e->function_count ? insn_at(s, e, site) : NULL;
        if (own || *insn) return &s->kernels[i];
    }
    return NULL;
}

/* ---- barriers ---- */

/* Whether the instruction's first words are those. */
static bool begins(const struct ptx_insn *in, const char *words)
{
    for (uint32_t i = 0; i < in->mod_count; i++) {
        const size_t n = strcspn(words, ".");

        if (strlen(in->mods[i]) != n || strncmp(in->mods[i], words, n) != 0) return false;
        if (!words[n]) return true;
        words += n + 1;
    }
    return false;
}

bool source_is_arrival(const struct ptx_insn *in)
{
#define ARRIVAL(words) \
    if (begins(in, words)) return true;
#include "waits.def"
    return in->mods[0][0] == 'b' &&
           (!strcmp(in->mods[0], "bar") || !strcmp(in->mods[0], "barrier"));
}

/* The last address of copies and commits is the barrier's, and the first of all others. */
struct barrier_use source_barrier(const struct ptx_insn *in)
{
    const struct operand *found = NULL;
    const bool named = !strcmp(in->mods[0], "bar") || !strcmp(in->mods[0], "barrier");
    const bool copies = !strcmp(in->mods[0], "cp") || !strcmp(in->mods[0], "st") ||
                        !strcmp(in->mods[0], "red") || !strcmp(in->mods[0], "clusterlaunchcontrol");

    if (named) {
        const uint32_t at = begins(in, "bar.red") || begins(in, "barrier.red") ||
                                    begins(in, "bar.cta.red") || begins(in, "barrier.cta.red")
                                ? 1
                                : 0;
        return (struct barrier_use){in, at < in->operand_count ? &in->operands[at] : NULL};
    }
    for (uint32_t i = 0; i < in->operand_count; i++) {
        if (in->operands[i].kind != OPD_ADDRESS) continue;
        if (!found || copies) found = &in->operands[i];
    }
    return (struct barrier_use){in, found};
}

/* What the address in a register is made from, as far as the instruction that writes it tells; NULL: it does not. */
static const struct operand *made_from(const struct ptx_insn *in)
{
    const uint32_t n = in->operand_count;
    const struct operand *next = NULL;

    if ((begins(in, "mov") || begins(in, "cvt") || begins(in, "cvta") || begins(in, "mapa")) &&
        n > 1)
        next = &in->operands[1];
    else if (begins(in, "mad") && n > 3)
        next = &in->operands[3];
    else if (begins(in, "add") && n > 2 && in->operands[2].kind == OPD_REG)
        next = &in->operands[1];
    return next && (next->kind == OPD_REG || next->kind == OPD_VAR) ? next : NULL;
}

/* ---- ways ---- */

static bool ends(const struct ptx_insn *in)
{
    return in->guard == NO_REG && (begins(in, "ret") || begins(in, "exit") || begins(in, "trap"));
}

enum way { GO_ON, TURN_BACK, ARRIVED };

/* Follows the code behind `from`, and asks at each instruction once. Whether it arrived. */
static bool follow(const struct ptx_entry *e, const struct ptx_insn *from,
                   enum way (*ask)(const void *user, const struct ptx_insn *in), const void *user)
{
    const uint32_t first = (uint32_t)(from - e->insns);
    uint32_t *stack = malloc((e->insn_count + 1U) * sizeof *stack), count = 0;
    bool *been = calloc(e->insn_count + 1U, sizeof *been), found = false;

    if (stack && been && first + 1 < e->insn_count) stack[count++] = first + 1;
    while (count && !found) {
        const uint32_t at = stack[--count];
        const struct ptx_insn *in = &e->insns[at];
        const bool jumps =
            begins(in, "bra") && in->operand_count && in->operands[0].kind == OPD_LABEL;
        const uint32_t to[2] = {jumps ? (uint32_t)in->operands[0].imm : e->insn_count, at + 1};
        enum way way;

        if (been[at]) continue;
        been[at] = true;
        way = ask(user, in);
        found = way == ARRIVED;
        if (way != GO_ON) continue;
        if (to[0] < e->insn_count && !been[to[0]]) stack[count++] = to[0];
        if (to[1] < e->insn_count && !been[to[1]] && !ends(in) && !(jumps && in->guard == NO_REG) &&
            count < e->insn_count)
            stack[count++] = to[1];
    }
    free(stack);
    free(been);
    return found;
}

struct search {
    const struct ptx_insn *from;
    bool (*wanted)(const void *user, const struct ptx_insn *in);
    const void *user;
};

static enum way search(const void *user, const struct ptx_insn *in)
{
    const struct search *s = user;

    if (in == s->from) return TURN_BACK;
    return s->wanted(s->user, in) ? ARRIVED : GO_ON;
}

bool source_reaches(const struct ptx_entry *e, const struct ptx_insn *from,
                    bool (*wanted)(const void *user, const struct ptx_insn *insn), const void *user)
{
    const struct search s = {from, wanted, user};

    return follow(e, from, search, &s);
}

/* ---- which barrier ---- */

static bool same_base(const struct operand *a, const struct operand *b)
{
    if (a->kind == OPD_INT && b->kind == OPD_INT) return a->imm == b->imm;
    if (a->kind == OPD_VAR && b->kind == OPD_VAR) return a->var == b->var;
    return a->kind == OPD_REG && b->kind == OPD_REG && a->reg == b->reg;
}

static bool writes(const struct ptx_insn *in, uint32_t reg)
{
    return in->operand_count && in->operands[0].kind == OPD_REG && in->operands[0].reg == reg &&
           !begins(in, "st") && !begins(in, "bar") && !begins(in, "barrier");
}

struct value {
    uint32_t reg;
    const struct ptx_insn *use;
};

static enum way is_used(const void *user, const struct ptx_insn *in)
{
    const struct value *v = user;

    if (in == v->use) return ARRIVED;
    return writes(in, v->reg) && in->guard == NO_REG ? TURN_BACK : GO_ON;
}

/* What all writes of a register that may come to `use` make it from, and the last of them; or NULL. */
static const struct operand *origin(const struct ptx_entry *e, uint32_t reg,
                                    const struct ptx_insn *use, const struct ptx_insn **writer)
{
    const struct value v = {reg, use};
    const struct operand *found = NULL;

    for (uint32_t i = 0; i < e->insn_count; i++) {
        const struct ptx_insn *in = &e->insns[i];
        const struct operand *next;

        if (!writes(in, reg) || !follow(e, in, is_used, &v)) continue;
        next = made_from(in);
        if (!next || (found && !same_base(found, next))) return NULL;
        found = next;
        *writer = in;
    }
    return found;
}

/* The operand that an address is made from: a variable, or the register that holds a base. */
static const struct operand *base_of(const struct ptx_entry *e, const struct barrier_use *b)
{
    const struct operand *o = b->operand;
    const struct ptx_insn *use = b->insn;

    if (o->kind == OPD_ADDRESS) o = &o->items[0];
    for (int i = 0; i < CHASE && o->kind == OPD_REG; i++) {
        const struct operand *next = origin(e, o->reg, use, &use);

        if (!next) break;
        o = next;
    }
    return o;
}

bool source_same_barrier(const struct ptx_entry *e, const struct barrier_use *a,
                         const struct barrier_use *b)
{
    const struct operand *x = a->operand, *y = b->operand;
    const bool direct = x->kind == OPD_ADDRESS && y->kind == OPD_ADDRESS &&
                        x->items[0].kind == OPD_VAR && y->items[0].kind == OPD_VAR;

    if (direct && x->imm + x->items[0].imm != y->imm + y->items[0].imm) return false;
    return same_base(base_of(e, a), base_of(e, b));
}
