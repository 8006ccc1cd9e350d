#include "fold.h"

#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* From best to worst: later ones win. */
static const char *const verdict_order[] = {"clean", "review", "incomplete", "error"};
enum { VERDICTS = sizeof verdict_order / sizeof verdict_order[0] };

struct entry {
    char *line; /* of the first seed it came under, closing brace and newline cut off */
    uint64_t *seeds;
    size_t seed_count;
};

struct launch_fold {
    char *kernel; /* JSON text of its name, with quotes */
    unsigned worst, runs;
    unsigned long idioms; /* the most that one run had */
    char *why; /* JSON text: what the first verdict that was not proved hangs on; NULL: all were */
    struct entry *entries;
    size_t count;
};

struct fold {
    struct launch_fold *launches;
    size_t count;
};

struct fold *fold_new(void)
{
    return calloc(1, sizeof(struct fold));
}

void fold_free(struct fold *f)
{
    if (!f) return;
    for (size_t i = 0; i < f->count; i++) {
        struct launch_fold *l = &f->launches[i];
        for (size_t j = 0; j < l->count; j++) {
            free(l->entries[j].line);
            free(l->entries[j].seeds);
        }
        free(l->entries);
        free(l->kernel);
        free(l->why);
    }
    free(f->launches);
    free(f);
}

/* ---- reading our own JSON lines ---- */

/* The value behind `,"name":`, or NULL. Quotes inside strings are escaped, so a match is the key. */
static const char *field(const char *line, const char *name)
{
    char key[40];
    const char *at;
    snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(line, key);
    return at ? at + strlen(key) : NULL;
}

/* Bytes of a JSON string with its quotes. */
static size_t string_length(const char *quoted)
{
    size_t n = 1;
    while (quoted[n] && quoted[n] != '"') n += quoted[n] == '\\' && quoted[n + 1] ? 2 : 1;
    return n + 1;
}

/* A string without quotes and escapes; control characters, which reports hold as \u00XX, as blanks. */
static void put_string(FILE *out, const char *quoted)
{
    if (!quoted || *quoted != '"') return;
    for (const char *p = quoted + 1; *p && *p != '"'; p++) {
        if (*p == '\\' && p[1] == 'u' && strlen(p) > 5) {
            fputs(strncmp(p, "\\ufffd", 6) ? " " : "\xEF\xBF\xBD", out);
            p += 5;
        } else {
            if (*p == '\\' && p[1]) p++;
            fputc(*p, out);
        }
    }
}

static bool empty(const char *quoted)
{
    return !quoted || !strncmp(quoted, "\"\"", 2);
}

/* Named by a suppression: listed, and neither told nor counted. */
static bool hidden(const struct entry *e)
{
    return field(e->line, "suppressed") != NULL;
}

static size_t count_hidden(const struct launch_fold *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->count; i++) n += hidden(&l->entries[i]);
    return n;
}

static long number(const char *value)
{
    return value ? strtol(value, NULL, 10) : 0;
}

/* Severity, kind, cause, kernel and place stand before "launch"; then the object. */
static bool same(const char *a, const char *b)
{
    const char *end_a = field(a, "launch"), *end_b = field(b, "launch");
    const char *object_a = field(a, "object"), *object_b = field(b, "object");
    size_t n;
    if (!end_a || !end_b || !object_a || !object_b) return false;
    n = string_length(object_a);
    return end_a - a == end_b - b && !memcmp(a, b, (size_t)(end_a - a)) &&
           n == string_length(object_b) && !memcmp(object_a, object_b, n);
}

/* ---- folding ---- */

static void *grown(void *items, size_t count, size_t size)
{
    void *more = realloc(items, (count + 1) * size);
    if (more) memset((char *)more + count * size, 0, size);
    return more;
}

static struct launch_fold *launch_at(struct fold *f, size_t index)
{
    struct launch_fold *more;
    if (index < f->count) return &f->launches[index];
    more = grown(f->launches, f->count, sizeof *more);
    if (!more) return NULL;
    f->launches = more;
    return &f->launches[f->count++];
}

static struct entry *entry_for(struct launch_fold *l, const char *line)
{
    struct entry *more;
    for (size_t i = 0; i < l->count; i++)
        if (same(l->entries[i].line, line)) return &l->entries[i];
    more = grown(l->entries, l->count, sizeof *more);
    if (!more) return NULL;
    l->entries = more;
    l->entries[l->count].line = strdup(line);
    return l->entries[l->count].line ? &l->entries[l->count++] : NULL;
}

static bool add_finding(struct launch_fold *l, const char *line, uint64_t seed)
{
    struct entry *e = entry_for(l, line);
    uint64_t *more;
    if (!e) return false;
    if (e->seed_count && e->seeds[e->seed_count - 1] == seed) return true;
    more = grown(e->seeds, e->seed_count, sizeof *more);
    if (!more) return false;
    e->seeds = more;
    e->seeds[e->seed_count++] = seed;
    return true;
}

static bool add_verdict(struct launch_fold *l, const char *line)
{
    const char *verdict = field(line, "verdict"), *kernel = field(line, "kernel");
    const char *why = field(line, "why"), *idioms = field(line, "idioms");
    const unsigned long count = idioms ? strtoul(idioms, NULL, 10) : 0;
    if (count > l->idioms) l->idioms = count;
    for (unsigned i = l->worst + 1; i < VERDICTS; i++)
        if (verdict && !strncmp(verdict + 1, verdict_order[i], strlen(verdict_order[i])))
            l->worst = i;
    l->runs++;
    if (!l->why && why && !(l->why = strndup(why, string_length(why)))) return false;
    if (!l->kernel) l->kernel = kernel ? strndup(kernel, string_length(kernel)) : strdup("\"\"");
    return l->kernel != NULL;
}

int fold_add(struct fold *f, const char *path, long start, uint64_t seed)
{
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0, launch = 0;
    ssize_t length;
    bool ok = true;
    if (!in) return cli_fail("%s: %s", path, strerror(errno));
    fseek(in, start, SEEK_SET);
    while (ok && (length = getline(&line, &capacity, in)) > 0) {
        struct launch_fold *l = launch_at(f, launch);
        if (length > 2) line[length - 2] = '\0';
        if (!l)
            ok = false;
        else if (!strncmp(line, "{\"verdict\":", 11))
            ok = add_verdict(l, line), launch++;
        else
            ok = add_finding(l, line, seed);
    }
    free(line);
    fclose(in);
    return ok ? 0 : cli_fail("%s: out of memory", path);
}

/* ---- the two forms ---- */

int fold_write(const struct fold *f, FILE *out)
{
    for (size_t i = 0; i < f->count; i++) {
        const struct launch_fold *l = &f->launches[i];
        for (size_t j = 0; j < l->count; j++) {
            const struct entry *e = &l->entries[j];
            fprintf(out, "%s,\"seeds\":[", e->line);
            for (size_t s = 0; s < e->seed_count; s++)
                fprintf(out, "%s%llu", s ? "," : "", (unsigned long long)e->seeds[s]);
            fputs("]}\n", out);
        }
        if (l->kernel) {
            size_t unseen = count_hidden(l);
            fprintf(out, "{\"verdict\":\"%s\",\"kernel\":%s,\"findings\":%zu",
                    verdict_order[l->worst], l->kernel, l->count - unseen);
            if (unseen) fprintf(out, ",\"suppressed\":%zu", unseen);
            if (l->idioms) fprintf(out, ",\"idioms\":%lu", l->idioms);
            if (l->why)
                fprintf(out, ",\"basis\":\"explored\",\"schedules\":%u,\"why\":%s}\n", l->runs,
                        l->why);
            else
                fputs(",\"basis\":\"proved\"}\n", out);
        }
    }
    return fflush(out) || ferror(out) ? cli_fail("the report: %s", strerror(errno)) : 0;
}

static void put_place(FILE *out, const char *file, const char *line)
{
    if (empty(file)) return;
    put_string(out, file);
    fprintf(out, ":%ld: ", number(line));
}

static void put_seeds(FILE *out, const struct entry *e, unsigned runs)
{
    if (e->seed_count == runs) {
        fputs("    under every seed\n", out);
        return;
    }
    fprintf(out, "    under %zu of %u seeds:", e->seed_count, runs);
    for (size_t s = 0; s < e->seed_count; s++)
        fprintf(out, "%s %llu", s ? "," : "", (unsigned long long)e->seeds[s]);
    fputs("\n", out);
}

static void put_entry(FILE *out, const struct entry *e, unsigned runs)
{
    const char *line = e->line, *cause = field(line, "cause"), *object = field(line, "object");
    const char *instr = field(line, "instr"), *cta = field(line, "cta");
    const char *related = field(line, "related");
    put_place(out, field(line, "file"), field(line, "line"));
    put_string(out, field(line, "severity"));
    fputs(": ", out);
    put_string(out, field(line, "kind"));
    if (!empty(cause)) fputs(" (", out), put_string(out, cause), fputs(")", out);
    if (!empty(object)) fputs(": ", out), put_string(out, object);
    fputs("\n    ", out);
    put_string(out, field(line, "message"));
    fputs("\n    in ", out);
    put_string(out, field(line, "kernel"));
    fprintf(out, ", launch %ld", number(field(line, "launch")));
    if (cta && number(field(line, "warp")) >= 0)
        fprintf(out, ", CTA (%.*s), warp %ld", (int)strcspn(cta + 1, "]"), cta + 1,
                number(field(line, "warp")));
    if (number(field(line, "lane")) >= 0) fprintf(out, ", lane %ld", number(field(line, "lane")));
    if (number(field(line, "repeats")) > 0)
        fprintf(out, "; and %ld more like it", number(field(line, "repeats")));
    fputs("\n", out);
    if (!empty(instr)) fputs("    at ", out), put_string(out, instr), fputs("\n", out);
    put_seeds(out, e, runs);
    while (related && (related = strstr(related, "{\"file\":"))) {
        fputs("  ", out);
        put_place(out, field(related, "file"), field(related, "line"));
        fputs("note: ", out);
        put_string(out, field(related, "note"));
        fputs("\n", out);
        related++;
    }
}

/* As report.c: one line for each rule, in the order of their first finding. */
static void put_suppressed(FILE *out, const struct launch_fold *l)
{
    for (size_t i = 0; i < l->count; i++) {
        const char *rule = field(l->entries[i].line, "suppressed");
        size_t n = 0;
        bool told = !rule;
        for (size_t j = 0; j < l->count && !told; j++) {
            const char *other = field(l->entries[j].line, "suppressed");
            bool same_rule = other && string_length(other) == string_length(rule) &&
                             !memcmp(other, rule, string_length(rule));
            n += same_rule;
            told = same_rule && j < i;
        }
        if (told) continue;
        fputs("  suppressed by ", out);
        put_string(out, rule);
        fprintf(out, ": %zu finding%s\n", n, n == 1 ? "" : "s");
    }
}

void fold_print(const struct fold *f, FILE *out, unsigned runs)
{
    for (size_t i = 0; i < f->count; i++) {
        const struct launch_fold *l = &f->launches[i];
        size_t shown = l->count - count_hidden(l);
        for (size_t j = 0; j < l->count; j++)
            if (!hidden(&l->entries[j])) put_entry(out, &l->entries[j], runs);
        if (l->count) {
            put_string(out, l->kernel);
            fprintf(out, ": %s, %zu finding%s, ", verdict_order[l->worst], shown,
                    shown == 1 ? "" : "s");
            if (l->why)
                fprintf(out, "explored (%u schedules): ", l->runs), put_string(out, l->why);
            else
                fputs("proved", out);
            fputs("\n", out);
            put_suppressed(out, l);
        }
    }
}
