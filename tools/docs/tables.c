/* The tables of the manuals, each from the list that the code itself is made of. */
#include "docs.h"

#include "check/report.h"
#include "usage.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

enum { LIST = 48, WORD = 128, LINE = 512 };

/* ---- the checker ---- */

static bool findings(struct text *t)
{
    static const char *const severities[] = {"error", "warning", "advice"};
    text_add(t, "\n| kind | severity | meaning |\n|---|---|---|\n");
#define X(name, text, severity, meaning) \
    text_add(t, "| `%s` | %s | %s |\n", text, severities[severity], meaning);
    FINDING_KINDS(X)
#undef X
    text_add(t, "\n");
    return true;
}

static bool causes(struct text *t)
{
    text_add(t, "\n| cause | meaning |\n|---|---|\n");
#define X(name, text, meaning) \
    if (*(text)) text_add(t, "| `%s` | %s |\n", text, meaning);
    FINDING_CAUSES(X)
#undef X
    text_add(t, "\n");
    return true;
}

static bool idioms(struct text *t)
{
    text_add(t, "\n| idiom | counted at level | meaning | PTX ISA |\n|---|---|---|---|\n");
#define X(name, text, level, meaning, section) \
    text_add(t, "| `%s` | %d | %s | %s |\n", text, level, meaning, section);
    IDIOMS(X)
#undef X
    text_add(t, "\n");
    return true;
}

static bool sampled(struct text *t)
{
    text_add(t, "\n");
#define X(name, text) text_add(t, "- %s\n", text);
    SAMPLED_REASONS(X)
#undef X
    text_add(t, "\n");
    return true;
}

/* ---- the environment ---- */

void environment_each(struct text *t, environment_row *row)
{
    char initial[24];
    row(t, "HEWN_LIBCUDA", "libcuda.so.1", "Driver library that the runtime opens.");
    row(t, "HEWN_LIBNCCL", "libnccl.so.2", "NCCL, which `hewn-engine --ranks` opens.");
#define TEXT(name, start, meaning) row(t, name, start, meaning);
#define NUMBER(field, name, low, high, start, meaning)           \
    (void)snprintf(initial, sizeof initial, "%d", (int)(start)); \
    row(t, name, (int)(start) < (int)(low) ? "cores" : initial, meaning);
#include "cuda/settings.def"
}

static void environment_line(struct text *t, const char *name, const char *initial,
                             const char *meaning)
{
    text_add(t, "| `%s` | %s | ", name, initial);
    for (; *meaning; meaning++) text_add(t, "%s%c", *meaning == '|' ? "\\" : "", *meaning);
    text_add(t, " |\n");
}

static bool environment(struct text *t)
{
    text_add(t, "\n| variable | default | meaning |\n|---|---|---|\n");
    environment_each(t, environment_line);
    text_add(t, "\n");
    return true;
}

/* ---- the command line ---- */

static bool commands(struct text *t)
{
    text_add(t, "\n| command | what it does |\n|---|---|\n");
    for (size_t i = 0; i < usage_row_count; i++)
        if (usage_rows[i].kind == USAGE_COMMAND)
            text_add(t, "| `hewn %s` | %s |\n", usage_rows[i].command, usage_rows[i].text);
    text_add(t, "\n");
    return true;
}

/* ---- instructions ---- */

static bool seen(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return true;
    return false;
}

static size_t count_different(const char *const *names, size_t count)
{
    size_t different = 0;
    for (size_t i = 0; i < count; i++) different += !seen(names, i, names[i]);
    return different;
}

static void add_names(struct text *t, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!seen(names, i, names[i])) text_add(t, "%s`%s`", i ? " " : "", names[i]);
    text_add(t, " |\n");
}

static void instruction_line(struct text *t, const char *family, const char *const *names,
                             size_t count)
{
    text_add(t, "| %s | %zu | %zu | ", family, count, count_different(names, count));
    add_names(t, names, count);
}

#define OP(name, ...) name,
static const char *const arithmetic[] = {
#include "decode/ops_arith.def"
};
static const char *const memory[] = {
#include "decode/ops_memory.def"
};
static const char *const control[] = {
#include "decode/ops_control.def"
};
static const char *const asynchronous[] = {
#include "decode/ops_async.def"
};
static const char *const tensor[] = {
#include "decode/ops_tensor.def"
};
#undef OP

#define FAMILIES(FAMILY) \
    FAMILY(arithmetic)   \
    FAMILY(memory)       \
    FAMILY(control)      \
    FAMILY(asynchronous) \
    FAMILY(tensor)

static bool instructions(struct text *t)
{
    text_add(t, "\n| family | rows | instructions | names |\n|---|---|---|---|\n");
#define FAMILY(list) instruction_line(t, #list, list, sizeof(list) / sizeof *(list));
    FAMILIES(FAMILY)
#undef FAMILY
    text_add(t, "\n");
    return true;
}

/* Whether a row of `names` is of the instruction `start`, or of one of its forms. */
static bool begun(const char *const *names, size_t count, const char *start)
{
    const size_t length = strlen(start);
    for (size_t i = 0; i < count; i++)
        if (!strncmp(names[i], start, length) &&
            (!names[i][length] || strchr(".:", names[i][length])))
            return true;
    return false;
}

static bool unmodelled(struct text *t)
{
    static const char *const all[] = {
#define M(name) name,
#include "decode/mnemonics.def"
#undef M
    };
    text_add(t, "\n");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool found = false;
#define FAMILY(list) found |= begun(list, sizeof(list) / sizeof *(list), all[i]);
        FAMILIES(FAMILY)
#undef FAMILY
        if (!found) text_add(t, "`%s`\n", all[i]);
    }
    text_add(t, "\n");
    return true;
}

/* ---- the driver API ---- */

static const char *const modelled[] = {
#define API(base, ...)   #base,
#define ALIAS(base, ...) #base,
#define PROC(base, ...)  #base,
#define STUB(base, ...)
#include "cuda/cuda_api.def"
#undef API
#undef ALIAS
#undef PROC
#undef STUB
};
static const char *const stubs[] = {
#define API(base, ...)
#define ALIAS(base, ...)
#define PROC(base, ...)
#define STUB(base, ...) #base,
#include "cuda/cuda_api.def"
#undef API
#undef ALIAS
#undef PROC
#undef STUB
};

static bool functions(struct text *t)
{
    enum { MODELLED = sizeof modelled / sizeof *modelled, STUBS = sizeof stubs / sizeof *stubs };
    const char *only[STUBS]; /* of the others an older version alone is a stub */
    size_t count = 0;
    for (size_t i = 0; i < STUBS; i++)
        if (!seen(modelled, MODELLED, stubs[i])) only[count++] = stubs[i];
    text_add(t, "\n| functions | number | names |\n|---|---|---|\n");
    text_add(t, "| modelled | %zu | ", count_different(modelled, MODELLED));
    add_names(t, modelled, MODELLED);
    text_add(t, "| return 801 | %zu | ", count_different(only, count));
    add_names(t, only, count);
    text_add(t, "\n");
    return true;
}

/* ---- kernels ---- */

/* Words without repetition. */
struct words {
    char word[LIST][WORD];
    size_t count;
};

static void add_word(struct words *w, const char *word)
{
    for (size_t i = 0; i < w->count; i++)
        if (!strcmp(w->word[i], word)) return;
    if (w->count < LIST) (void)snprintf(w->word[w->count++], WORD, "%s", word);
}

static void print_words(struct text *t, const struct words *w, const char *between)
{
    for (size_t i = 0; i < w->count; i++) text_add(t, "%s%s", i ? between : "", w->word[i]);
}

/* A row of the table of kernels: the modules of one family on one target that were validated alike. */
struct kernels {
    const char *kernel, *target;
    struct words in, out, forms, cache, where; /* forms: variants, or head dimensions */
};

/* Whether a module's name has that word at its end. */
static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* What K and V are stored as. */
static void add_cache(struct kernels *k, const char *name)
{
    if (!strncmp(name, "gemm_", 5) || !strncmp(name, "topk_", 5) || !strncmp(name, "w4_", 3) ||
        !strncmp(name, "grouped_sum_", 12) || ends_with(name, "_combine"))
        return;
    if (!strncmp(name, "decode_", 7) && ends_with(name, "_e4m3"))
        add_word(&k->cache, "e4m3");
    else
        add_word(&k->cache, strstr(name, "_656")      ? "records of 656 bytes"
                            : ends_with(name, "_584") ? "records of 584 bytes"
                                                      : "as inputs");
}

/* gemm_<in>_<out>[_<variant>], attention_<in>_<qk>_<v>, decode_<in>_<qk>_<v>_<rows>[_<kv>],
 * grouped_<in>_<out>_<variant>, grouped_sum_<in>_<out>, mla_<in>[_<rows or record>[x<rows>][_two]], attention_combine */
static void add_module(struct kernels *k, const char *name)
{
    char part[5][WORD] = {"", "", "", "", ""}, form[2 * WORD];
    const int parts =
        sscanf(name, "%127[^_]_%127[^_]_%127[^_]_%127[^_]", part[0], part[1], part[2], part[3]);
    if (!strcmp(part[0], "mla") && strcmp(part[1], "combine") != 0) {
        add_word(&k->in, part[1]);
        add_word(&k->forms, ends_with(name, "_584") ? "512" : "576/512");
        if (parts >= 3) add_word(&k->forms, "by lists");
        if (ends_with(name, "_two") || !strcmp(k->target, "sm_100f"))
            add_word(&k->forms, "two caches");
    }
    if (!strcmp(part[0], "topk")) add_word(&k->in, part[1]);
    if (!strcmp(part[1], "sum")) {
        add_word(&k->in, part[2]);
        return;
    }
    if (parts < 3 || !strcmp(part[0], "mla")) return;
    add_word(&k->in, part[1]);
    if (!strcmp(part[0], "gemm") || !strcmp(part[0], "grouped")) {
        add_word(&k->out, part[2]);
        add_word(&k->forms, parts == 4 ? part[3] : "plain");
    } else if (!strcmp(part[0], "indexer")) {
        add_word(&k->forms, "16 to 128");
    } else if (!strcmp(part[0], "w4")) {
        add_word(&k->forms, part[2]);
    } else if (!strcmp(part[0], "decode") && (!strcmp(part[3], "192") || !strcmp(part[3], "384"))) {
        add_word(&k->forms, "96"); /* two or four heads a tile */
    } else {
        (void)snprintf(form, sizeof form, strcmp(part[2], part[3]) ? "%s/%s" : "%s", part[2],
                       part[3]);
        add_word(&k->forms, form);
    }
}

/* Adds what validated.txt says of a module: "TARGET  PATTERN  where". */
static void add_validated(struct words *where, const char *list, const char *target,
                          const char *name)
{
    char line[LINE], on[WORD], pattern[WORD];
    int at;
    for (; *list; list += strcspn(list, "\n"), list += *list == '\n') {
        (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(list, "\n"), list);
        if (*line == '#' || sscanf(line, "%127s %127s %n", on, pattern, &at) < 2) continue;
        if (!strcmp(on, target) && !fnmatch(pattern, name, 0)) add_word(where, line + at);
    }
}

static bool same_words(const struct words *a, const struct words *b)
{
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->word[i], b->word[i]) != 0) return false;
    return true;
}

static struct kernels *row_of(struct kernels *rows, size_t *count, const char *target,
                              const char *name, const struct words *where)
{
    const bool kinds = !strncmp(name, "gemm_s8_", 8) || !strncmp(name, "gemm_e4m3_", 10) ||
                       (!strncmp(name, "gemm_", 5) && strstr(name, "_glu"));
    const char *kernel = kinds                           ? "hewn_gemm`, s8, scales of rows, SwiGLU"
                         : !strncmp(name, "gemm_", 5)    ? "hewn_gemm"
                         : !strncmp(name, "mla_", 4)     ? "hewn_mla"
                         : !strncmp(name, "indexer_", 8) ? "hewn_indexer"
                         : !strncmp(name, "topk_", 5)    ? "hewn_topk"
                         : !strncmp(name, "grouped_sum_", 12) ? "hewn_grouped_sum"
                         : !strncmp(name, "grouped_", 8)      ? "hewn_grouped"
                         : !strncmp(name, "w4_", 3)           ? "hewn_w4"
                         : !strncmp(name, "decode_", 7)       ? "hewn_attention`, decode"
                         : !strcmp(name, "attention_combine") ? "hewn_merge"
                                                              : "hewn_attention";
    for (size_t i = 0; i < *count; i++)
        if (!strcmp(rows[i].kernel, kernel) && !strcmp(rows[i].target, target) &&
            same_words(&rows[i].where, where))
            return &rows[i];
    if (*count == LIST) return NULL;
    rows[*count] = (struct kernels){.kernel = kernel, .target = target, .where = *where};
    return &rows[(*count)++];
}

/* Rows that differ in target and validation alone are printed as one. */
static bool joined(const struct kernels *a, const struct kernels *b)
{
    return !strcmp(a->kernel, b->kernel) && same_words(&a->in, &b->in) &&
           same_words(&a->cache, &b->cache) && same_words(&a->forms, &b->forms);
}

static void print_row(struct text *t, const struct kernels *rows, size_t i, size_t count)
{
    const struct kernels *k = &rows[i];
    for (size_t j = 0; j < i; j++)
        if (joined(k, &rows[j])) return;
    text_add(t, "| `%s%s | `%s`", k->kernel, strchr(k->kernel, '`') ? "" : "`", k->target);
    for (size_t j = i + 1; j < count; j++)
        if (joined(k, &rows[j])) text_add(t, ", `%s`", rows[j].target);
    text_add(t, " | ");
    print_words(t, &k->in, ", ");
    text_add(t, " | ");
    print_words(t, &k->cache, ", ");
    text_add(t, " | ");
    print_words(t, &k->forms, ", ");
    text_add(t, " | ");
    print_words(t, &k->where, "; ");
    for (size_t j = i + 1; j < count; j++)
        if (joined(k, &rows[j])) {
            text_add(t, "; ");
            print_words(t, &rows[j].where, "; ");
        }
    text_add(t, " |\n");
}

#include "../../ptx/modules.def"

static bool kernels(struct text *t)
{
    static const struct {
        const char *target, *name;
    } modules[] = {
#define X(target, name) {#target, #name},
        HEWN_GEMM_MODULES(X) HEWN_ATTENTION_MODULES(X) HEWN_DECODE_MODULES(X) HEWN_MLA_MODULES(X)
            HEWN_INDEXER_MODULES(X) HEWN_TOPK_MODULES(X) HEWN_GROUPED_MODULES(X) HEWN_W4_MODULES(X)
#undef X
    };
    static struct kernels rows[LIST];
    struct words where;
    struct text validated = {0};
    size_t count = 0;
    const bool good = text_file(&validated, "ptx/validated.txt");

    memset(rows, 0, sizeof rows);
    for (size_t i = 0; good && i < sizeof modules / sizeof *modules; i++) {
        /* grouped products by row number have the variants of those without, and the kernel that adds up slices has
         * none; their manifests say the rest */
        if ((!strncmp(modules[i].name, "grouped_", 8) && ends_with(modules[i].name, "_rows")) ||
            !strcmp(modules[i].name, "gemm_combine"))
            continue;
        memset(&where, 0, sizeof where);
        add_validated(&where, validated.data, modules[i].target, modules[i].name);
        struct kernels *k = row_of(rows, &count, modules[i].target, modules[i].name, &where);
        if (!k) continue;
        add_module(k, modules[i].name);
        add_cache(k, modules[i].name);
    }
    text_add(t, "\n| kernel | target | inputs | K and V | variants, or head dimensions of QK/V | "
                "validated on |\n"
                "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) print_row(t, rows, i, count);
    text_add(t, "\n");
    text_free(&validated);
    return good;
}

/* ---- by name ---- */

#define TABLES(X)   \
    X(findings)     \
    X(causes)       \
    X(sampled)      \
    X(idioms)       \
    X(environment)  \
    X(commands)     \
    X(instructions) \
    X(unmodelled)   \
    X(functions)    \
    X(kernels)

static const struct {
    const char *name;
    bool (*add)(struct text *t);
} tables[] = {
#define X(name) {#name, name},
    TABLES(X)
#undef X
};

bool table_add(struct text *t, const char *name)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!strcmp(tables[i].name, name)) return tables[i].add(t);
    return false;
}

void table_names(struct text *t)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) text_add(t, " %s", tables[i].name);
}
