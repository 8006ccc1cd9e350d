#include "decode/bind.h"
#include "decode/names.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 128, MOST_PARTS = 32 };
enum { SM_SUBNORMALS = 20 }; /* targets before this one have no subnormal numbers of f32 */

/* How far an attempt at a row got; the best one gives the message. */
enum outcome { OUT_UNKNOWN, OUT_OPERANDS, OUT_TARGET, OUT_MATCH };

/* ---- the table by name ---- */

static uint32_t name_bucket(const char *name)
{
    uint32_t h = 2166136261U; /* FNV-1a */

    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619U;
    return (h ^ h >> 15) % ROW_BUCKETS;
}

static uint32_t name_parts(const char *name)
{
    uint32_t parts = 1;

    for (; *name; name++) parts += *name == '.';
    return parts;
}

static bool index_rows(struct decode *d)
{
    d->row_next = arena_alloc(&d->scratch, (op_row_count + 1) * sizeof *d->row_next);
    if (!d->row_next) return false;
    for (uint32_t i = op_row_count; i-- > 0;) { /* backwards: a chain keeps the table's order */
        uint32_t bucket = name_bucket(op_rows[i].name), parts = name_parts(op_rows[i].name);

        if (parts > d->longest_name) d->longest_name = parts;
        d->row_next[i] = d->row_heads[bucket];
        d->row_heads[bucket] = i + 1;
    }
    return true;
}

/* The first `parts` modifiers joined by dots. */
static bool join_name(const struct ptx_insn *src, uint32_t parts, char name[NAME_BYTES])
{
    size_t n = 0;

    for (uint32_t i = 0; i < parts; i++) {
        size_t length = strlen(src->mods[i]);

        if (n + length + 2 > NAME_BYTES) return false;
        if (i) name[n++] = '.';
        memcpy(name + n, src->mods[i], length + 1);
        n += length;
    }
    return true;
}

bool op_row_valid(const struct op_row *row, char *why, size_t why_size)
{
    if (!row->doc || !*row->doc) {
        snprintf(why, why_size, "no semantics");
        return false;
    }
    return mods_pattern_valid(row->mods, why, why_size) &&
           args_pattern_valid(row->args, why, why_size);
}

/* ---- refusals ---- */

int bind_unsupported(struct decoder *dc, const char *format, ...)
{
    struct decode *d = (struct decode *)dc;
    va_list args;

    va_start(args, format);
    vsnprintf(d->why, sizeof d->why, format, args);
    va_end(args);
    return -1;
}

int bind_invalid(struct decoder *dc, const char *format, ...)
{
    struct decode *d = (struct decode *)dc;
    va_list args;

    va_start(args, format);
    vsnprintf(d->why, sizeof d->why, format, args);
    va_end(args);
    return -2;
}

void *bind_alloc(struct decoder *dc, size_t size)
{
    void *memory = arena_alloc(&dc->kernel->arena, size);

    if (!memory) ((struct decode *)dc)->no_memory = true;
    return memory;
}

bool operand_constant(const struct decoder *dc, uint32_t operand, int64_t *value)
{
    if (operand >= dc->src->operand_count || dc->src->operands[operand].kind != OPD_INT)
        return false;
    *value = dc->src->operands[operand].imm;
    return true;
}

static int malformed(struct decode *d, struct src_pos pos, const char *text)
{
    snprintf(d->diag->text, sizeof d->diag->text, "%.140s, line %u; error: %.200s: %.100s",
             ptx_file(d->dc.module, pos), pos.line, d->why, text);
    return -2;
}

static int out_of_memory(struct decode *d)
{
    snprintf(d->diag->text, sizeof d->diag->text, "out of memory");
    return -1;
}

/* Keeps the first instruction or directive that cannot run; the module loads all the same. */
static int not_modelled(struct decode *d, const struct ptx_insn *src, struct src_pos pos,
                        const char *text)
{
    struct kernel *k = d->dc.kernel;

    if (k->unsupported) return 0;
    k->unsupported_insn = src;
    k->unsupported_pos = pos;
    k->unsupported_text = text;
    k->unsupported = arena_printf(&k->arena, "not modelled: %s at %s:%u%s%s%s", text,
                                  ptx_file(d->dc.module, pos), pos.line, d->why[0] ? " (" : "",
                                  d->why, d->why[0] ? ")" : "");
    return k->unsupported ? 0 : out_of_memory(d);
}

/* ---- one instruction ---- */

static uint32_t target_number(const struct decode *d)
{
    const char *digits = strpbrk(d->dc.module->target, "0123456789");

    return digits ? (uint32_t)strtoul(digits, NULL, 10) : 0;
}

/* Whether the module's target has what the row needs; else d->why says what. */
static bool target_allows(struct decode *d, const struct op_row *row)
{
    const char *target = d->dc.module->target;
    uint32_t sm = target_number(d);
    char suffix = *target ? target[strlen(target) - 1] : 0;

    d->why[0] = 0;
    if (row->arch == 'a' && (sm != 90 || suffix != 'a'))
        refuse(d, 0, "'%s' needs .target sm_90a, not %s", row->name, target);
    else if (row->arch == 'f' && (sm < 100 || sm >= 120 || (suffix != 'a' && suffix != 'f')))
        refuse(d, 0, "'%s' needs an a or f target of sm_100 or later (sm_100f), not %s", row->name,
               target);
    else if (sm < row->min_sm)
        refuse(d, 0, "'%s' needs .target sm_%u or higher, not %s", row->name, row->min_sm, target);
    return !d->why[0];
}

/* Every vector of `.v2`, `.v4` or `.v8` has as many elements. */
static bool vector_fits(struct decode *d)
{
    uint32_t want = mod_has(&d->dc, "v2")   ? 2
                    : mod_has(&d->dc, "v4") ? 4
                    : mod_has(&d->dc, "v8") ? 8
                                            : 0;

    for (uint32_t i = 0; want && i < d->dc.src->operand_count; i++) {
        const struct operand *op = &d->dc.src->operands[i];
        if (op->kind != OPD_VECTOR || op->count == want) continue;
        refuse(d, UINT32_MAX, "operand %u has %u elements, .v%u needs %u", i + 1, op->count, want,
               want);
        return false;
    }
    return true;
}

static enum outcome try_row(struct decode *d, const struct op_row *row, uint32_t parts,
                            struct insn *out)
{
    const struct ptx_insn *src = d->dc.src;

    memset(d->dc.mod, 0, sizeof d->dc.mod);
    d->dc.row = row;
    if (!match_mods(&d->dc, row->mods, src->mods + parts, src->mod_count - parts))
        return OUT_UNKNOWN;
    memset(out, 0, sizeof *out);
    d->why[0] = 0;
    if (!bind_operands(d, row->args, out) || !vector_fits(d)) return OUT_OPERANDS;
    return target_allows(d, row) ? OUT_MATCH : OUT_TARGET;
}

/* The row for d->dc.src as it is written: longest name first, rows of one name in order. */
static enum outcome find_written(struct decode *d, struct insn *out)
{
    const struct ptx_insn *src = d->dc.src;
    uint32_t parts = src->mod_count < d->longest_name ? src->mod_count : d->longest_name;
    enum outcome best = OUT_UNKNOWN;
    char name[NAME_BYTES], why[WHY_BYTES] = "";

    for (; parts; parts--) {
        if (!join_name(src, parts, name)) continue;
        for (uint32_t i = d->row_heads[name_bucket(name)]; i; i = d->row_next[i - 1]) {
            enum outcome got;

            if (strcmp(op_rows[i - 1].name, name) != 0) continue;
            got = try_row(d, &op_rows[i - 1], parts, out);
            if (got == OUT_MATCH || d->no_memory) return got;
            if (got <= best) continue;
            best = got;
            memcpy(why, d->why, sizeof why);
        }
    }
    memcpy(d->why, why, sizeof why);
    return best;
}

/* A copy of the instruction with other parts, or in another order; its text stays as it is written. */
static const struct ptx_insn *with_mods(struct decode *d, const struct ptx_insn *src,
                                        const char *const *mods, uint32_t count)
{
    struct ptx_insn *copy = arena_alloc(&d->dc.kernel->arena, sizeof *copy);
    const char **own = arena_alloc(&d->dc.kernel->arena, count * sizeof *own);

    if (!copy || !own) {
        d->no_memory = true;
        return NULL;
    }
    memcpy(own, mods, count * sizeof *own);
    *copy = *src;
    copy->mods = own;
    copy->mod_count = (uint16_t)count;
    return copy;
}

static bool same_mods(const struct ptx_insn *a, const struct ptx_insn *b)
{
    if (a->mod_count != b->mod_count) return false;
    for (uint32_t i = 0; i < a->mod_count; i++)
        if (strcmp(a->mods[i], b->mods[i]) != 0) return false;
    return true;
}

/* As the instruction before that was written like this one: compilers write one order thousands of times. */
static enum outcome find_as_before(struct decode *d, struct insn *out)
{
    const struct ptx_insn *src = d->dc.src;
    const struct reordered *last = &d->reordered;

    if (!last->written || !same_mods(src, last->written)) return OUT_UNKNOWN;
    d->dc.src = with_mods(d, src, last->mods, src->mod_count);
    if (d->dc.src && try_row(d, last->row, name_parts(last->row->name), out) == OUT_MATCH)
        return OUT_MATCH;
    d->dc.src = src;
    return OUT_UNKNOWN;
}

/* The row for d->dc.src, its modifiers in the order of the table or in another that ptxas takes. */
static enum outcome find_row(struct decode *d, struct insn *out)
{
    const struct ptx_insn *src = d->dc.src;
    const char *sorted[MOST_PARTS];
    char why[WHY_BYTES];
    size_t first = strlen(src->mods[0]);
    enum outcome best = find_written(d, out);
    bool other = false; /* an earlier row has such modifiers */

    memcpy(why, d->why, sizeof why);
    if (best == OUT_MATCH || src->mod_count > MOST_PARTS) return best;
    if (find_as_before(d, out) == OUT_MATCH) return OUT_MATCH;
    for (uint32_t i = 0; i < op_row_count && !d->no_memory; i++) {
        enum outcome got;

        if (strncmp(op_rows[i].name, src->mods[0], first) || isalnum(op_rows[i].name[first]))
            continue;
        if (!sort_mods(&op_rows[i], src->mods, src->mod_count, sorted)) continue;
        d->dc.src = with_mods(d, src, sorted, src->mod_count);
        if (!d->dc.src) break;
        got = try_row(d, &op_rows[i], name_parts(op_rows[i].name), out);
        if (got == OUT_MATCH) {
            if (!other) d->reordered = (struct reordered){src, d->dc.src->mods, &op_rows[i]};
            return got;
        }
        other = true;
        if (got > best) memcpy(why, d->why, sizeof why);
        if (got > best) best = got;
    }
    d->dc.src = src;
    memcpy(d->why, why, sizeof why);
    return best;
}

static bool has_part(const struct ptx_insn *src, const char *part)
{
    for (uint32_t i = 1; i < src->mod_count; i++)
        if (!strcmp(src->mods[i], part)) return true;
    return false;
}

/*
 * PTX for sm_1x on a later GPU: f32 arithmetic flushes subnormals, and mad.f32 is a fused operation (PTX ISA, mad).
 * ptxas 13.0 writes the same machine code for these as for the instructions with .ftz. OUT_UNKNOWN: there is no
 * such form, and the instruction means what it says.
 */
static enum outcome find_flushed(struct decode *d, struct insn *out)
{
    const struct ptx_insn *src = d->dc.src;
    const char *mods[MOST_PARTS + 2];
    const bool fused = !strcmp(src->mods[0], "mad");
    enum outcome got = OUT_UNKNOWN;
    uint32_t count = 0;

    if (src->mod_count > MOST_PARTS || !has_part(src, "f32") || has_part(src, "ftz"))
        return OUT_UNKNOWN;
    mods[count++] = fused ? "fma" : src->mods[0];
    if (fused) mods[count++] = "rn";
    mods[count++] = "ftz";
    for (uint32_t i = 1; i < src->mod_count; i++) mods[count++] = src->mods[i];
    d->dc.src = with_mods(d, src, mods, count);
    if (d->dc.src) got = find_row(d, out);
    if (got == OUT_MATCH) return got;
    d->dc.src = src;
    return OUT_UNKNOWN;
}

static bool keep_list(struct decode *d, struct insn *out)
{
    struct arg *list;

    if (!d->list_count) return true;
    list = arena_alloc(&d->dc.kernel->arena, d->list_count * sizeof *list);
    if (!list) return false;
    memcpy(list, d->list, d->list_count * sizeof *list);
    out->list = list;
    out->list_count = (uint16_t)d->list_count;
    return true;
}

static void set_guard(struct decode *d, struct insn *out)
{
    const struct ptx_insn *src = d->dc.src;

    out->src = src;
    out->guard = NO_GUARD;
    if (src->guard == NO_REG) return;
    out->guard = register_slot(d, src->guard);
    out->guard_negated = src->guard_negated;
}

/* Operands that are good PTX and beyond the model: the address of a function without a call, a
 * special register. */
static bool operands_beyond(const struct ptx_insn *src)
{
    for (uint32_t i = 0; i < src->operand_count; i++) {
        const struct operand *op = &src->operands[i];
        if (op->kind == OPD_NAME || (op->kind == OPD_SREG && op->reg == SR_COUNT)) return true;
    }
    return false;
}

static int decode_insn(struct decode *d, const struct ptx_insn *src, struct insn *out)
{
    enum outcome got;
    int result;

    d->dc.src = src;
    d->why[0] = 0;
    got = target_number(d) < SM_SUBNORMALS ? find_flushed(d, out) : OUT_UNKNOWN;
    if (got != OUT_MATCH) got = find_row(d, out);
    if (d->no_memory) return out_of_memory(d);
    if (got == OUT_UNKNOWN && !op_known(src->mods[0])) {
        refuse(d, 0, "no PTX instruction is named '%.40s'", src->mods[0]);
        return malformed(d, src->ptx_pos, src->text);
    }
    if (got == OUT_UNKNOWN || (got == OUT_OPERANDS && operands_beyond(src)))
        return not_modelled(d, src, src->pos, src->text);
    if (got != OUT_MATCH) return malformed(d, src->ptx_pos, src->text);
    if (!keep_list(d, out)) return out_of_memory(d);
    set_guard(d, out);
    out->row = d->dc.row;
    if (out->row->flags & OPF_GLOBAL_SYNC) d->dc.kernel->global_sync = true;
    resolve_traits(&d->dc, out);
    if (out->is.engine == ENGINE_TENSOR || out->is.engine == ENGINE_TMEM)
        d->dc.kernel->uses_tmem = true;
    d->why[0] = 0;
    result = d->binders[out->row - op_rows](&d->dc, out);
    if (d->no_memory) return out_of_memory(d);
    if (result == -2) return malformed(d, src->ptx_pos, src->text);
    return result || !out->fn ? not_modelled(d, src, src->pos, src->text) : 0;
}

/* ---- an entry ---- */

static bool start_decode(struct decode *d)
{
    const struct ptx_entry *entry = d->dc.entry;

    d->regs_bytes = SINK_BYTES;
    d->slots = arena_alloc(&d->scratch, (entry->reg_count + 1) * sizeof *d->slots);
    d->sregs = arena_alloc(&d->dc.kernel->arena, SR_COUNT * sizeof *d->sregs);
    if (!d->slots || !d->sregs || !index_rows(d)) return false;
    for (uint32_t i = 0; i < entry->reg_count; i++) d->slots[i] = NO_SLOT_YET;
    for (uint32_t i = 0; i < SR_COUNT; i++) d->sregs[i] = NO_SLOT_YET;
    return true;
}

/* Instructions that could meet a wgmma or tcgen05.ld in its registers: the checker is told of them. */
static bool is_delayed(const struct insn *in)
{
    return in->is.class == INSN_TMEM_LOAD ||
           (in->is.class == INSN_MMA && in->is.engine == ENGINE_WGMMA);
}

static bool names_marked(const struct insn *in, const uint8_t *marked)
{
    for (uint32_t i = 0; i < INSN_ARGS; i++)
        if (in->arg[i].bank == BANK_REGS && !in->arg[i].sink && marked[in->arg[i].offset / 64])
            return true;
    for (uint32_t i = 0; i < in->list_count; i++)
        if (in->list[i].bank == BANK_REGS && !in->list[i].sink && marked[in->list[i].offset / 64])
            return true;
    return false;
}

static bool mark_watched(struct decode *d, struct insn *insns, uint32_t count)
{
    uint8_t *marked = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_delayed(&insns[i])) continue;
        if (!marked) marked = arena_alloc(&d->scratch, d->regs_bytes / 64U + 1U);
        if (!marked) return false;
        for (uint32_t j = 0; j < insns[i].list_count; j++)
            if (insns[i].list[j].bank == BANK_REGS && !insns[i].list[j].sink)
                marked[insns[i].list[j].offset / 64U] = 1;
    }
    for (uint32_t i = 0; marked && i < count; i++)
        insns[i].watched =
            insns[i].row && !is_delayed(&insns[i]) && names_marked(&insns[i], marked);
    return true;
}

/* names: how many operands name each register, by offset / 4, counted to 2. */
static void count_name(uint8_t *names, const struct arg *a)
{
    if (a->bank == BANK_REGS && !a->sink && names[a->offset / 4] < 2) names[a->offset / 4]++;
}

/* Polls and atomics whose answer goes to a register that is named nowhere else. */
static bool mark_unread(struct decode *d, struct insn *insns, uint32_t count)
{
    uint8_t *names = arena_alloc(&d->scratch, d->regs_bytes / 4U + 1U);
    if (!names) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (insns[i].guard != NO_GUARD)
            count_name(names, &(struct arg){.offset = insns[i].guard, .bank = BANK_REGS});
        for (uint32_t j = 0; j < INSN_ARGS; j++) count_name(names, &insns[i].arg[j]);
        for (uint32_t j = 0; j < insns[i].list_count; j++) count_name(names, &insns[i].list[j]);
    }
    for (uint32_t i = 0; i < count; i++)
        insns[i].unread = insns[i].row &&
                          (insns[i].is.waits == WAITS_PHASE ||
                           (insns[i].is.class == INSN_ATOMIC && !insns[i].list_count)) &&
                          (insns[i].arg[0].sink || names[insns[i].arg[0].offset / 4] == 1);
    return true;
}

static int finish_decode(struct decode *d)
{
    struct kernel *k = d->dc.kernel;
    uint8_t *consts = arena_alloc(&k->arena, d->consts_bytes + 64U);

    if (!consts) return out_of_memory(d);
    if (d->consts_bytes) memcpy(consts, d->consts, d->consts_bytes);
    k->consts = consts;
    k->consts_bytes = d->consts_bytes;
    k->regs_bytes = (d->regs_bytes + 63U) & ~63U;
    k->sreg_offset = d->sregs;
    k->addr_slots = d->addresses;
    k->addr_slot_count = d->address_count;
    return names_collect(k, d->diag);
}

static int decode_entry(struct decode *d)
{
    const struct ptx_entry *entry = d->dc.entry;
    struct insn *insns;
    int result = 0;

    if (!start_decode(d)) return out_of_memory(d);
    insns = arena_alloc(&d->dc.kernel->arena, (entry->insn_count + 1) * sizeof *insns);
    if (!insns) return out_of_memory(d);
    if (entry->unmodelled) result = not_modelled(d, NULL, entry->unmodelled_pos, entry->unmodelled);
    for (uint32_t i = 0; i < entry->insn_count && !result; i++)
        result = decode_insn(d, &entry->insns[i], &insns[i]);
    d->dc.kernel->insns = insns;
    d->dc.kernel->insn_count = entry->insn_count;
    if (!result &&
        (!mark_watched(d, insns, entry->insn_count) || !mark_unread(d, insns, entry->insn_count) ||
         !mark_uses(d, insns, entry->insn_count)))
        return out_of_memory(d);
    return result ? result : finish_decode(d);
}

int kernel_decode(const struct ptx_module *module, const struct ptx_entry *entry,
                  bind_fn *const binders[], struct kernel **out, struct ptx_diag *diag)
{
    struct decode *d = calloc(1, sizeof *d);
    struct kernel *k = calloc(1, sizeof *k);
    int result = -1;

    *out = NULL;
    if (d && k) {
        k->module = module;
        k->entry = entry;
        d->dc.module = module;
        d->dc.entry = entry;
        d->dc.kernel = k;
        d->binders = binders;
        d->diag = diag;
        result = decode_entry(d);
    } else {
        snprintf(diag->text, sizeof diag->text, "out of memory");
    }
    if (d) {
        arena_free(&d->scratch);
        free(d->consts);
    }
    free(d);
    if (result)
        kernel_free(k);
    else
        *out = k;
    return result;
}

void kernel_free(struct kernel *kernel)
{
    if (!kernel) return;
    arena_free(&kernel->arena);
    free(kernel);
}
