/*
 * PTX text into statements, and mutants of them. A rule matches the text of one or more statements in a
 * row (white space squeezed, "; " between them, the first one's guard apart) and says what stands there
 * instead; a swap exchanges two neighbours of one straight piece of code.
 */
#include "mutate.h"

#include <ctype.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATEMENTS = COVER_STATEMENTS, GROUPS = 8, LINE = 4096 };

struct rule {
    enum mutant_class class;
    const char *name;
    int statements;      /* how many in a row */
    const char *pattern; /* extended regular expression over all of their text */
    const char *instead; /* \0 to \7: groups; \g: the first statement's guard */
};

#define WAIT "mbarrier\\.(try|test)_wait"
#define RING                                                              \
    "^add\\.u32 ([^,]+), \\1, 1; setp\\.eq\\.u32 ([^,]+), \\1, ([^;]+); " \
    "@\\2 mov\\.u32 \\1, 0; @\\2 xor\\.b32 ([^,]+), \\4, 1$"
#define RING_AS(step, length, first, flip)                                                        \
    "add.u32 \\1, \\1, " step "; setp.eq.u32 \\2, \\1, (\\3)" length "; @\\2 mov.u32 \\1, " first \
    "; @\\2 xor.b32 \\4, \\4, " flip ";"
#define BARRIER_OP                                                               \
    "^((mbarrier\\.(try_wait|test_wait|arrive|expect_tx|init)|tcgen05\\.commit|" \
    "cp\\.async\\.[^ ]*mbarrier)[^ ]* .*)\\[([^]]+)\\]([^]]*)$"

/* What orders, but for the mbarrier. */
#define ORDERS                                                            \
    "fence|membar|bar\\.|barrier\\.|"                                     \
    "cp\\.async\\.(bulk\\.)?(commit_group|wait_group|wait_all|mbarrier)|" \
    "wgmma\\.(fence|commit|wait)|"                                        \
    "tcgen05\\.(fence|wait|commit|alloc|dealloc|relinquish)|griddepcontrol|setmaxnreg"
/* Statements that several rules change. */
#define TX_OP          "^(mbarrier\\.[^ ]*(expect|complete)_tx[^ ]* .*), ([^,]+)$"
#define RING_PLACE     "^((mad\\.lo|mul\\.wide|mul\\.lo)\\.u32 [^,]+), ([^,]*(slot|buffer)), (.*)$"
#define COPY_IN        "^(cp\\.async\\.bulk[^ ]*\\.shared::cluster[^ ]*) \\[([^]]+)\\](.*)$"
#define COPY_OUT       "^(cp\\.async\\.bulk[^ ]*\\.global\\.shared::cta.*), \\[([^]]+)\\]$"
#define TMEM_OP        "^(tcgen05\\.(ld|st|mma)\\.[^[]*)\\[([^]+]+)\\](.*)$"
#define TMEM_OP_OFFSET "^(tcgen05\\.(ld|st)\\.[^[]*)\\[([^]+]+)\\+([^]]+)\\](.*)$"

static const struct rule rules[] = {
    {MUTANT_drop, "no wait", 2, "^" WAIT "[^ ]* ([^,]+), .*; @!\\2 bra .*$", ""},
    {MUTANT_drop, "no instruction", 1, "^(mbarrier\\.(init|arrive|expect_tx)|" ORDERS ")", ""},
    {MUTANT_weaken, "polled once", 2, "^(" WAIT "[^ ]* ([^,]+), .*); @!\\3 bra .*$", "\\g\\1;"},
    {MUTANT_weaken, "relaxed wait", 1, "^(" WAIT "(\\.parity)?)(\\.shared.*)$",
     "\\g\\1.relaxed.cta\\4;"},
    {MUTANT_weaken, "relaxed arrival", 1, "^(mbarrier\\.arrive(\\.expect_tx)?)(\\.shared.*)$",
     "\\g\\1.relaxed.cta\\3;"},
    {MUTANT_weaken, "relaxed", 1, "^([^ ]*)\\.(acquire|release|acq_rel)(\\.[^ ]* .*\\[.*)$",
     "\\g\\1.relaxed\\3;"},
    {MUTANT_weaken, "cta scope", 1,
     "^(fence\\.(acq_rel|sc)|(mbarrier|atom|red|ld|st)[^ ]*)\\.(cluster|gpu|sys)([. ].*)?$",
     "\\g\\1.cta\\5;"},
    {MUTANT_weaken, "other proxy fence", 1, "^fence\\.proxy\\.async\\.shared::(cta|cluster)$",
     "\\gfence.proxy.async.global;"},
    {MUTANT_weaken, "other tcgen05 fence", 1, "^tcgen05\\.fence::before_thread_sync$",
     "\\gtcgen05.fence::after_thread_sync;"},
    {MUTANT_weaken, "other tcgen05 fence", 1, "^tcgen05\\.fence::after_thread_sync$",
     "\\gtcgen05.fence::before_thread_sync;"},
    {MUTANT_weaken, "wait for stores", 1, "^tcgen05\\.wait::ld(.*)$", "\\gtcgen05.wait::st\\1;"},
    {MUTANT_weaken, "wait for loads", 1, "^tcgen05\\.wait::st(.*)$", "\\gtcgen05.wait::ld\\1;"},
    {MUTANT_weaken, "wait for reads only", 1, "^(cp\\.async\\.bulk\\.wait_group)( .*)$",
     "\\g\\1.read\\2;"},
    {MUTANT_count, "one arrival more", 1, "^(mbarrier\\.init[^ ]* [^,]+), (.*)$",
     "\\g\\1, (\\2) + 1;"},
    {MUTANT_count, "one arrival less", 1, "^(mbarrier\\.init[^ ]* [^,]+), ([2-9].*|1[0-9].*)$",
     "\\g\\1, (\\2) - 1;"},
    {MUTANT_count, "arrives twice", 1, "^(mbarrier\\.arrive\\.[^ ]* _, \\[[^]]+\\])$",
     "\\g\\1, 2;"},
    {MUTANT_count, "one group more in flight", 1, "^([^ ]*wait_group[^ ]*) (.*)$",
     "\\g\\1 (\\2) + 1;"},
    {MUTANT_count, "one group less in flight", 1, "^([^ ]*wait_group[^ ]*) ([1-9].*)$",
     "\\g\\1 (\\2) - 1;"},
    {MUTANT_count, "the next barrier", 1, "^(bar\\.sync|barrier[^ ]*\\.sync[^ ]*) ([0-9]+)(.*)$",
     "\\g\\1 (\\2) + 1\\3;"},
    {MUTANT_count, "a lane less", 1, "^(bar\\.warp\\.sync) 0xffffffff$", "\\g\\1 0x7fffffff;"},
    {MUTANT_count, "half the columns", 1, "^(tcgen05\\.(alloc|dealloc)[^ ]* .*), ([^,]+)$",
     "\\g\\1, (\\3) / 2;"},
    {MUTANT_count, "eight registers more", 1, "^(setmaxnreg[^ ]*) (.*)$", "\\g\\1 (\\2) + 8;"},
    {MUTANT_count, "eight registers less", 1, "^(setmaxnreg\\.inc[^ ]*) (.*)$",
     "\\g\\1 (\\2) - 8;"},
    {MUTANT_bytes, "a byte more", 1, TX_OP,
     "{ .reg .b32 mutant; add.s32 mutant, \\3, 1; \\g\\1, mutant; }"},
    {MUTANT_bytes, "a byte less", 1, TX_OP,
     "{ .reg .b32 mutant; add.s32 mutant, \\3, -1; \\g\\1, mutant; }"},
    {MUTANT_parity, "waits for the other phase", 1,
     "^(" WAIT "\\.parity[^ ]*) ([^,]+, [^,]+), (.+)$",
     "{ .reg .b32 mutant; xor.b32 mutant, \\4, 1; \\g\\1 \\3, mutant; }"},
    {MUTANT_parity, "begins with the other", 1, "^mov\\.u32 ([^,]*parity), ([01])$",
     "\\gmov.u32 \\1, \\2 ^ 1;"},
    {MUTANT_parity, "never flips", 4, RING, RING_AS("1", "", "0", "0")},
    {MUTANT_stage, "stays at its stage", 4, RING, RING_AS("0", "", "0", "1")},
    {MUTANT_stage, "skips a stage", 4, RING, RING_AS("2", "", "0", "1")},
    {MUTANT_stage, "a ring longer by one", 4, RING, RING_AS("1", " + 1", "0", "1")},
    {MUTANT_stage, "a ring shorter by one", 4, RING, RING_AS("1", " - 1", "0", "1")},
    {MUTANT_stage, "wraps to stage 1", 4, RING, RING_AS("1", "", "1", "1")},
    {MUTANT_stage, "begins at stage 1", 1, "^mov\\.u32 ([^,]*(slot|buffer)), 0$",
     "\\gmov.u32 \\1, 1;"},
    {MUTANT_stage, "the next stage", 1, RING_PLACE,
     "{ .reg .b32 mutant; add.u32 mutant, \\3, 1; \\g\\1, mutant, \\5; }"},
    {MUTANT_stage, "the stage before", 1, RING_PLACE,
     "{ .reg .b32 mutant; sub.u32 mutant, \\3, 1; \\g\\1, mutant, \\5; }"},
    {MUTANT_stage, "the next barrier's word", 1, BARRIER_OP, "\\g\\1[\\4 + 8]\\5;"},
    {MUTANT_stage, "the word before", 1, BARRIER_OP, "\\g\\1[\\4 + -8]\\5;"},
    {MUTANT_offset, "a row further", 1, COPY_IN, "\\g\\1 [\\2 + 128]\\3;"},
    {MUTANT_offset, "a row before", 1, COPY_IN, "\\g\\1 [\\2 + -128]\\3;"},
    {MUTANT_offset, "a row further", 1, COPY_OUT, "\\g\\1, [\\2 + 128];"},
    {MUTANT_offset, "a row before", 1, COPY_OUT, "\\g\\1, [\\2 + -128];"},
    {MUTANT_offset, "the next row", 1, "^((st|ld)\\.shared|stmatrix)(\\..*)\\[([^]]+)\\](.*)$",
     "\\g\\1\\3[\\4 + 128]\\5;"},
    {MUTANT_offset, "a column further", 1, TMEM_OP,
     "{ .reg .b32 mutant; add.u32 mutant, \\3, 1; \\g\\1[mutant]\\4; }"},
    {MUTANT_offset, "a column before", 1, TMEM_OP,
     "{ .reg .b32 mutant; sub.u32 mutant, \\3, 1; \\g\\1[mutant]\\4; }"},
    {MUTANT_offset, "a column further", 1, TMEM_OP_OFFSET, "\\g\\1[\\3+ (\\4) + 1]\\5;"},
    {MUTANT_offset, "a column before", 1, TMEM_OP_OFFSET, "\\g\\1[\\3+ (\\4) - 1]\\5;"},
    {MUTANT_offset, "A's next column", 1,
     "^(tcgen05\\.mma\\.[^ ]* \\[[^]]+\\]), \\[([^]]+)\\](.*)$",
     "{ .reg .b32 mutant; add.u32 mutant, \\2, 1; \\g\\1, [mutant]\\3; }"},
    {MUTANT_offset, "A's next row", 1,
     "^((tcgen05\\.mma\\.[^ ]* \\[[^]]+\\]|wgmma\\.mma_async[^ ]* \\{[^}]*\\})), ([^],[]+), (.*)$",
     "{ .reg .b64 mutant; add.u64 mutant, \\3, 8; \\g\\1, mutant, \\4; }"},
    {MUTANT_offset, "B's next row", 1,
     "^((tcgen05\\.mma\\.[^ ]* \\[[^]]+\\]|wgmma\\.mma_async[^ ]* \\{[^}]*\\}), [^,]+), ([^,]+), "
     "(.*)$",
     "{ .reg .b64 mutant; add.u64 mutant, \\3, 8; \\g\\1, mutant, \\4; }"},
};
enum { RULES = sizeof rules / sizeof *rules };

/* What orders, and what is ordered: at least one of two that are swapped is of the former. */
static const char orders[] =
    "^(mbarrier\\.(arrive|expect_tx|complete_tx|try_wait|test_wait)|" ORDERS ")";
static const char ordered[] =
    "^(cp\\.(async|reduce)|tcgen05\\.(ld|st|mma|cp)|wgmma\\.mma_async|(ld|st)\\.(shared|global)|"
    "st\\.async|stmatrix|ldmatrix|red|atom|mbarrier\\.init)";

struct statement {
    size_t start, end; /* with its guard and semicolon; a wait loop: with its braces */
    char guard[40], text[LINE];
    const char *label, *file; /* in the kernel's text; not terminated */
    long line;
    int scope, block; /* the braces around it; straight pieces of code are numbered */
    bool wait;        /* the poll of a loop that is its braces' whole contents */
};

struct reader {
    const char *text;
    size_t at;
    struct statement *list;
    int count;
    const char *label, *file;
    long line;
    const char *outer[32]; /* the label above each open brace */
    int scope[32], depth, scopes, block;
};

static void squeeze(const char *from, size_t length, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < length && n + 1 < size; i++) {
        if (!isspace((unsigned char)from[i]))
            out[n++] = from[i];
        else if (n && out[n - 1] != ' ')
            out[n++] = ' ';
    }
    while (n && out[n - 1] == ' ') n--;
    out[n] = '\0';
}

/* A marker  # N "file"  names the next line. */
static void read_marker(struct reader *r)
{
    const char *at = r->text + r->at, *quote = strchr(at, '"');
    if (isdigit((unsigned char)at[2]) && quote) {
        r->line = strtol(at + 2, NULL, 10) - 1;
        r->file = quote + 1;
    }
}

static void skip_line(struct reader *r)
{
    r->at += strcspn(r->text + r->at, "\n");
}

/* White space, comments and markers. */
static void skip_blank(struct reader *r)
{
    for (;; r->at++) {
        const char *at = r->text + r->at;
        if (*at == '#') read_marker(r);
        if (*at == '#' || !strncmp(at, "//", 2)) skip_line(r);
        if (r->text[r->at] == '\n')
            r->line++;
        else if (!isspace((unsigned char)r->text[r->at]))
            return;
    }
}

static size_t word_length(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || (at[n] && strchr("_$%", at[n]))) n++;
    return n;
}

static void read_statement(struct reader *r)
{
    struct statement *s = &r->list[r->count++];
    const char *at = r->text + r->at;
    size_t length = strcspn(at, ";"), guard = 0;
    *s = (struct statement){.start = r->at, .end = r->at + length + (at[length] == ';')};
    if (*at == '@') {
        guard = strcspn(at, " \t");
        snprintf(s->guard, sizeof s->guard, "%.*s ", (int)guard, at);
        guard += strspn(at + guard, " \t");
    }
    squeeze(at + guard, length - guard, s->text, sizeof s->text);
    s->label = r->label;
    s->file = r->file;
    s->line = r->line;
    s->scope = r->scope[r->depth];
    s->block = r->block;
    for (size_t i = 0; i < length; i++) r->line += at[i] == '\n';
    if (!strncmp(s->text, "bra", 3) || !strncmp(s->text, "ret", 3) || !strncmp(s->text, "exit", 4))
        r->block++;
    r->at = s->end;
}

/* `{ .reg …; label: poll; @!p bra label; }` is one unit of the code around it. */
static bool read_wait(struct reader *r)
{
    const char *at = r->text + r->at;
    size_t length = strcspn(at + 1, "{}") + 2;
    const char *poll = strstr(at, "mbarrier.t"), *bra = strstr(at, " bra ");
    struct statement *s = &r->list[r->count];
    if (!poll || !bra || poll > at + length || bra > at + length || at[length - 1] != '}')
        return false;
    r->at = (size_t)(poll - r->text);
    read_statement(r);
    skip_blank(r);
    read_statement(r);
    r->block = s[1].block = s[0].block;
    r->count--;
    /* The second statement stays known to rules by standing behind the first in the text. */
    s->wait = true;
    s->start = (size_t)(at - r->text);
    s->end = r->at = s->start + length;
    return true;
}

static void read_brace(struct reader *r)
{
    if (r->text[r->at] == '{') {
        if (read_wait(r)) return;
        if (r->depth + 1 < 32) r->scope[++r->depth] = ++r->scopes;
        r->outer[r->depth] = r->label;
    } else if (r->depth) {
        r->label = r->outer[r->depth--];
    }
    r->at++;
}

static int read_text(struct reader *r)
{
    const char *body = strstr(r->text, "\n{");
    if (!body) return fprintf(stderr, "mutate: the text has no entry\n"), -1;
    while (r->text + r->at <= body) {
        skip_blank(r);
        if (r->text + r->at > body) break;
        r->line += r->text[r->at] == '\n';
        r->at++;
    }
    for (skip_blank(r); r->text[r->at]; skip_blank(r)) {
        const char *at = r->text + r->at;
        size_t word = word_length(at);
        if (r->count + 2 >= STATEMENTS) return fprintf(stderr, "mutate: text too long\n"), -1;
        if (*at == '{' || *at == '}') {
            read_brace(r);
        } else if (word && at[word] == ':' && at[word + 1] != ':') {
            r->label = at;
            r->block++;
            r->at += word + 1;
        } else {
            read_statement(r);
        }
    }
    return 0;
}

/* ---- making ---- */

struct maker {
    const struct reader *from;
    struct mutant *out;
    int count;
};

/* The new mutant about statement s, without what it replaces; NULL where there is no room. */
static struct mutant *begin(struct maker *m, enum mutant_class class, const char *rule,
                            const struct statement *s)
{
    struct mutant *x = &m->out[m->count];
    if (m->count == MUTANTS) return NULL;
    *x = (struct mutant){.class = class, .rule = rule, .line = s->line};
    x->first = x->last = (int)(s - m->from->list);
    if (s->label) snprintf(x->label, sizeof x->label, "%.*s", (int)word_length(s->label), s->label);
    if (s->file) snprintf(x->file, sizeof x->file, "%.*s", (int)strcspn(s->file, "\""), s->file);
    return x;
}

/* The mutant has `instead` where the text has [start, end). */
static void finish(struct maker *m, struct mutant *x, size_t start, size_t end, char *instead)
{
    x->start = start;
    x->end = end;
    x->instead = instead;
    x->index = m->count;
    m->count += instead != NULL;
}

static void write_instead(FILE *f, const struct rule *rule, const struct statement *s,
                          const char *subject, const regmatch_t *group)
{
    for (const char *c = rule->instead; *c; c++) {
        if (*c != '\\') {
            fputc(*c, f);
        } else if (*++c == 'g') {
            fputs(s->guard, f);
        } else {
            const regmatch_t *g = &group[*c - '0'];
            if (g->rm_so >= 0) fprintf(f, "%.*s", (int)(g->rm_eo - g->rm_so), subject + g->rm_so);
        }
    }
}

/* The text of `n` statements from the i-th on; false where they do not follow each other directly. */
static bool window(const struct reader *r, int i, int n, char *out, size_t size, size_t *end)
{
    const struct statement *s = &r->list[i];
    int length = snprintf(out, size, "%s", s->text);
    *end = s->end;
    if (s->wait && n == 2) { /* the loop's branch stands inside its braces */
        const char *bra = strstr(r->text + s->start, "@!");
        snprintf(out + length, size - (size_t)length, "; %.*s", (int)strcspn(bra, ";"), bra);
        return true;
    }
    for (int k = 1; k < n; k++) {
        const struct statement *t = &r->list[i + k];
        if (i + k >= r->count || t->scope != s->scope || t[-1].wait || t->wait) return false;
        length += snprintf(out + length, size - (size_t)length, "; %s%s", t->guard, t->text);
        if (length >= (int)size) return false;
        *end = t->end;
    }
    return true;
}

/* A wait as a unit is replaced inside its braces, but for its label. */
static void wait_span(const struct reader *r, const struct statement *s, int n, size_t *start,
                      size_t *end)
{
    const char *poll = strstr(r->text + s->start, "mbarrier."), *last = poll;
    for (int k = 0; k < n; k++) last += strcspn(last, ";") + 1;
    *start = (size_t)(poll - r->text);
    *end = (size_t)(last - r->text);
}

static void apply(struct maker *m, const struct rule *rule, const regex_t *re, int i)
{
    const struct reader *r = m->from;
    const struct statement *s = &r->list[i];
    char subject[LINE + 512], *text = NULL;
    regmatch_t group[GROUPS];
    size_t start = s->start, end, size;
    struct mutant *x;
    FILE *f;
    if (!window(r, i, rule->statements, subject, sizeof subject, &end) ||
        regexec(re, subject, GROUPS, group, 0) || !(x = begin(m, rule->class, rule->name, s)) ||
        !(f = open_memstream(&text, &size)))
        return;
    if (s->wait) wait_span(r, s, rule->statements, &start, &end);
    snprintf(x->was, sizeof x->was, "%s%.240s", s->guard, s->text);
    if (!s->wait) x->last += rule->statements - 1;
    write_instead(f, rule, s, subject, group);
    fclose(f);
    finish(m, x, start, end, text);
}

static void swap(struct maker *m, const struct statement *a, const struct statement *b)
{
    const char *text = m->from->text;
    struct mutant *x = begin(m, MUTANT_swap, "swapped", a);
    char *out = NULL;
    size_t size;
    FILE *f;
    if (!x || !(f = open_memstream(&out, &size))) return;
    x->last = (int)(b - m->from->list);
    snprintf(x->was, sizeof x->was, "%s%.110s <> %s%.110s", a->guard, a->text, b->guard, b->text);
    fwrite(text + a->end, 1, b->end - a->end, f);
    fputc(' ', f);
    fwrite(text + a->start, 1, a->end - a->start, f);
    fclose(f);
    finish(m, x, a->start, b->end, out);
}

/* The next statement of the same piece of code that orders or is ordered. */
static void swap_with_next(struct maker *m, const regex_t *sync, const regex_t *data, int i)
{
    const struct reader *r = m->from;
    const struct statement *a = &r->list[i];
    bool a_orders = !regexec(sync, a->text, 0, NULL, 0);
    if (!a_orders && regexec(data, a->text, 0, NULL, 0)) return;
    for (int j = i + 1; j < r->count && r->list[j].block == a->block; j++) {
        const struct statement *b = &r->list[j];
        bool b_orders = !regexec(sync, b->text, 0, NULL, 0);
        if (!b_orders && regexec(data, b->text, 0, NULL, 0)) continue;
        if (b->scope == a->scope && (a_orders || b_orders)) swap(m, a, b);
        return;
    }
}

static int compile(regex_t *re, const char *pattern)
{
    if (!regcomp(re, pattern, REG_EXTENDED)) return 0;
    fprintf(stderr, "mutate: '%s' is no regular expression\n", pattern);
    return -1;
}

/* Counts those that have the same rule, label and statement. */
static void number(struct mutant *list, int count)
{
    uint64_t *key = calloc((size_t)count + 1, sizeof *key);
    for (int i = 0; key && i < count; i++) {
        const char *part[] = {list[i].rule, list[i].label, list[i].was};
        key[i] = 0xcbf29ce484222325;
        for (int k = 0; k < 3; k++) {
            for (const char *c = part[k]; *c; c++)
                key[i] = (key[i] ^ (unsigned char)*c) * 0x100000001b3;
            key[i] *= 0x100000001b3;
        }
        for (int j = 0; j < i; j++) list[i].nth += key[j] == key[i];
    }
    free(key);
}

int mutants_make(const char *text, struct mutant out[MUTANTS])
{
    struct reader r = {.text = text, .list = calloc(STATEMENTS, sizeof *r.list)};
    struct maker m = {.from = &r, .out = out};
    regex_t re[RULES], sync, data;
    bool bad = !r.list || read_text(&r) || compile(&sync, orders) || compile(&data, ordered);
    for (int k = 0; k < RULES && !bad; k++) bad = compile(&re[k], rules[k].pattern) != 0;
    if (bad) {
        free(r.list);
        return -1;
    }
    for (int i = 0; i < r.count; i++) {
        for (int k = 0; k < RULES; k++) apply(&m, &rules[k], &re[k], i);
        swap_with_next(&m, &sync, &data, i);
    }
    for (int k = 0; k < RULES; k++) regfree(&re[k]);
    regfree(&sync);
    regfree(&data);
    free(r.list);
    number(out, m.count);
    return m.count;
}

/* ---- numbering ---- */

static char *key_of(const struct statement *s)
{
    char *key = NULL;
    size_t size;
    FILE *f = open_memstream(&key, &size);
    if (!f) return NULL;
    fprintf(f, "%.*s:%ld %s%s", s->file ? (int)strcspn(s->file, "\"") : 0, s->file ? s->file : "",
            s->line, s->guard, s->text);
    return fclose(f) ? NULL : key;
}

char *cover_number(const char *text, struct cover *out)
{
    struct reader r = {.text = text, .list = calloc(STATEMENTS, sizeof *r.list)};
    char *numbered = NULL;
    size_t size, at = 0;
    FILE *f = r.list && !read_text(&r) ? open_memstream(&numbered, &size) : NULL;
    out->statements = 0;
    out->statement = calloc(STATEMENTS, sizeof *out->statement);
    for (int i = 0; f && out->statement && i < r.count; i++) {
        fwrite(text + at, 1, r.list[i].start - at, f);
        at = r.list[i].start;
        fprintf(f, "\n# %d \"s\"\n", i * COVER_STEP);
        out->statement[out->statements++].key = key_of(&r.list[i]);
    }
    if (f) fputs(text + at, f);
    if (!f || fclose(f)) numbered = NULL;
    free(r.list);
    return numbered;
}

void mutant_write(FILE *out, const char *text, const struct mutant *m)
{
    fwrite(text, 1, m ? m->start : strlen(text), out);
    if (m) fprintf(out, "%s%s", m->instead, text + m->end);
}

void mutants_free(struct mutant *list, int count)
{
    for (int i = 0; i < count; i++) free(list[i].instead);
}
