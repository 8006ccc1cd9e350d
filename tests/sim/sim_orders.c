/*
 * The orders of modifiers that ptxas takes, and no others, with one meaning. orders.txt has its answers, a line an
 * instruction:
 *     TARGET <tab> OPCODE <tab> FIXED <tab> OPERANDS <tab> ANSWERS
 * OPCODE is in the table's order; its first FIXED parts are one word to ptxas (opcodes.def). `{%r10:4}` is short for
 * four registers. ANSWERS has a bit for each order, the first in the top bit of the first digit; `*` if all are taken.
 * The orders are the written one; each swap of two neighbours; and those of the parts that are not fixed: up to four
 * parts all, lexicographic by place, of more a hundred drawn by a generator that the opcode seeds. orders.py writes
 * the file and draws the same.
 *     sim_orders --rows      the table, for orders.py
 */
#include "decode/bind.h"
#include "decode/decode.h"
#include "lib/harness.h"
#include "ops/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_MOST = 4096,
    PARTS_MOST = 24,
    FEW = 4,
    DRAWN = 100,
    TEXT_MOST = 16384,
    BITS_MOST = 160
};

struct instance {
    char target[16], opcode[256], operands[TEXT_MOST / 2], answers[64];
    char parts_text[256];
    const char *parts[PARTS_MOST]; /* of the opcode */
    uint32_t count, fixed;
};

/* ---- the file ---- */

/* `{%r10:4}` becomes {%r10, %r11, %r12, %r13}. */
static void expand(const char *from, char *to, size_t size)
{
    const char *colon, *end;
    char name[16];
    unsigned first, count;
    size_t n = 0;

    while (*from && n + 1 < size) {
        colon = *from == '{' ? strchr(from, ':') : NULL;
        end = strchr(from, '}');
        if (colon && end && colon < end &&
            sscanf(from, "{%%%15[a-z]%u:%u}", name, &first, &count) == 3) {
            for (unsigned i = 0; i < count && n < size; i++)
                n +=
                    (size_t)snprintf(to + n, size - n, "%s%%%s%u", i ? ", " : "{", name, first + i);
            if (n < size) n += (size_t)snprintf(to + n, size - n, "}");
            from = end + 1;
        } else {
            to[n++] = *from++;
        }
    }
    to[n < size ? n : size - 1] = 0;
}

static bool read_instance(char *line, struct instance *in)
{
    char *save = NULL, *field[5];

    line[strcspn(line, "\n")] = 0;
    for (int i = 0; i < 5; i++)
        if (!(field[i] = strsep(&line, "\t"))) return false;
    snprintf(in->target, sizeof in->target, "%s", field[0]);
    snprintf(in->opcode, sizeof in->opcode, "%s", field[1]);
    in->fixed = (uint32_t)strtoul(field[2], NULL, 10);
    expand(field[3], in->operands, sizeof in->operands);
    snprintf(in->answers, sizeof in->answers, "%s", field[4]);
    snprintf(in->parts_text, sizeof in->parts_text, "%s", field[1]);
    in->count = 0;
    for (char *p = strtok_r(in->parts_text, ".", &save); p && in->count < PARTS_MOST;
         p = strtok_r(NULL, ".", &save))
        in->parts[in->count++] = p;
    return in->fixed >= 1 && in->fixed <= in->count;
}

/* ---- orders ---- */

static uint64_t name_seed(const char *text)
{
    uint64_t h = 0xCBF29CE484222325ULL; /* FNV-1a */

    for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001B3ULL;
    return h;
}

static uint32_t permutations(uint32_t n)
{
    uint32_t all = 1;

    for (uint32_t i = 2; n <= FEW && i <= n; i++) all *= i;
    return n <= FEW ? all : DRAWN;
}

static void swap(const char **a, const char **b)
{
    const char *t = *a;
    *a = *b;
    *b = t;
}

/* The number-th permutation of n words; `state` is carried from one to the next. */
static void permute(const char **words, uint32_t n, uint32_t number, uint64_t *state)
{
    uint32_t unit = permutations(n);

    for (uint32_t i = 0; n <= FEW && i < n; i++) {
        unit /= n - i;
        for (uint32_t pick = number / unit; pick; pick--)
            swap(&words[i + pick], &words[i + pick - 1]);
        number %= unit;
    }
    for (uint32_t i = n - 1; n > FEW && i > 0; i--) {
        *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
        swap(&words[i], &words[(*state >> 33) % (i + 1)]);
    }
}

/* The number-th order of an instruction's parts, of which the first stays. */
static void make_order(const struct instance *i, const char **parts, uint32_t number,
                       uint64_t *state)
{
    memcpy(parts, i->parts, sizeof i->parts);
    if (number >= i->count - 1)
        permute(parts + i->fixed, i->count - i->fixed, number - (i->count - 1), state);
    else if (number)
        swap(&parts[number], &parts[number + 1]);
}

/* ---- what the decoder says ---- */

struct decoded {
    struct ptx_module *module;
    struct kernel *kernel;
    struct ptx_diag diag;
    const struct insn *in; /* NULL: refused, diag says why */
};

static void decode(const struct instance *i, const char *const *parts, struct decoded *out)
{
    static char text[TEXT_MOST];
    size_t n;

    *out = (struct decoded){.diag = {""}};
    n = (size_t)snprintf(text, sizeof text,
                         ".version 9.5\n.target %s\n.address_size 64\n"
                         ".visible .entry k(.param .align 16 .b8 o[64]) { .reg .b16 %%h<40>; "
                         ".reg .b32 %%r<300>; .reg .b64 %%rd<140>; .reg .b128 %%q<10>; "
                         ".reg .pred %%p<9>; .shared .align 1024 .b8 s[4096];\n"
                         "B: .branchtargets L;\n",
                         i->target);
    for (uint32_t p = 0; p < i->count; p++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", p ? "." : "", parts[p]);
    snprintf(text + n, sizeof text - n, " %s;\nL: ret; }\n", i->operands);
    if (ptx_parse(text, strlen(text), &out->module, &out->diag)) return;
    if (kernel_decode(out->module, &out->module->entries[0], op_binders, &out->kernel, &out->diag))
        return;
    if (out->kernel->unsupported)
        snprintf(out->diag.text, sizeof out->diag.text, "%s", out->kernel->unsupported);
    else
        out->in = &out->kernel->insns[0];
}

static void release(struct decoded *d)
{
    kernel_free(d->kernel);
    ptx_module_free(d->module);
}

static bool same_args(const struct arg *a, const struct arg *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].offset != b[i].offset || a[i].bank != b[i].bank || a[i].negated != b[i].negated ||
            a[i].sink != b[i].sink || a[i].bits != b[i].bits)
            return false;
    return true;
}

static bool same_meaning(const struct insn *a, const struct insn *b)
{
    return a->row == b->row && a->fn == b->fn && a->type == b->type && a->type2 == b->type2 &&
           a->space == b->space && a->flags == b->flags && a->list_count == b->list_count &&
           !memcmp(a->imm, b->imm, sizeof a->imm) && !memcmp(&a->is, &b->is, sizeof a->is) &&
           same_args(a->arg, b->arg, INSN_ARGS) && same_args(a->list, b->list, a->list_count);
}

/* ---- the test ---- */

/* Whether the words whose order has a meaning stand as they do in the written opcode. */
static bool keeps_classes(const struct instance *i, const char *const *parts)
{
    for (uint32_t a = 1; a < i->count; a++)
        for (uint32_t b = a + 1; b < i->count; b++) {
            uint32_t at = 1, later = 1;

            if (!mods_ordered(i->parts[a], i->parts[b]) || !strcmp(i->parts[a], i->parts[b]))
                continue;
            while (parts[at] != i->parts[a]) at++;
            while (parts[later] != i->parts[b]) later++;
            if (at > later) return false;
        }
    return true;
}

static bool bit(const char *answers, uint32_t number)
{
    const char digit[2] = {answers[number / 4], 0};

    return strtoul(digit, NULL, 16) >> (3 - number % 4) & 1;
}

static void check_order(const struct instance *i, const struct decoded *written,
                        const char *const *parts, bool taken)
{
    struct decoded d;
    char opcode[256] = "";

    for (uint32_t p = 0, n = 0; p < i->count; p++)
        n += (uint32_t)snprintf(opcode + n, sizeof opcode - n, "%s%s", p ? "." : "", parts[p]);
    decode(i, parts, &d);
    CHECK((d.in != NULL) == taken, "%s, %s: ptxas says %s, the simulator %s", opcode, i->target,
          taken ? "yes" : "no", d.in ? "yes" : d.diag.text);
    if (d.in && written->in && taken && keeps_classes(i, parts))
        CHECK(same_meaning(d.in, written->in), "%s has another meaning than %s", opcode, i->opcode);
    release(&d);
}

static void check_instance(const struct instance *i)
{
    struct decoded written;
    uint64_t state = name_seed(i->opcode);
    uint32_t count = i->count - 1 + permutations(i->count - i->fixed);

    decode(i, i->parts, &written);
    CHECK(written.in != NULL, "%s: %s", i->opcode, written.diag.text);
    for (uint32_t number = 0; number < count; number++) {
        const char *parts[PARTS_MOST];

        make_order(i, parts, number, &state);
        check_order(i, &written, parts, i->answers[0] == '*' || bit(i->answers, number));
    }
    release(&written);
}

static void print_rows(void)
{
    for (uint32_t i = 0; i < op_row_count; i++)
        printf("%s\t%s\t%s\t%u\t%c\n", op_rows[i].name, op_rows[i].mods, op_rows[i].args,
               op_rows[i].min_sm, op_rows[i].arch ? op_rows[i].arch : '-');
}

int main(int argc, char **argv)
{
    static struct instance instance;
    static char line[LINE_MOST];
    char path[512];
    const char *slash = strrchr(__FILE__, '/');
    FILE *file;

    if (argc == 2 && !strcmp(argv[1], "--rows")) {
        print_rows();
        return 0;
    }
    test_begin("sim_orders", argc, argv);
    snprintf(path, sizeof path, "%.*s/orders.txt", (int)(slash - __FILE__), __FILE__);
    file = fopen(path, "r");
    if (!file && test_case("orders.txt")) CHECK(false, "%s: cannot be opened", path);
    while (file && fgets(line, sizeof line, file)) {
        if (line[0] == '#' || !read_instance(line, &instance)) continue;
        if (test_case("%s on %s", instance.opcode, instance.target)) check_instance(&instance);
    }
    if (file) fclose(file);
    return test_end();
}
