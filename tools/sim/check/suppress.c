/* How suppressions are read, and which finding one names. */
#include "check/suppress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct suppress *to;
    char *why;
    size_t size;
};

static bool kind_named(const char *text, enum finding_kind *kind)
{
    for (int i = 0; i < FIND_COUNT; i++) {
        if (strcmp(text, finding_kind_text((enum finding_kind)i)) != 0) continue;
        *kind = (enum finding_kind)i;
        return true;
    }
    return false;
}

/* Cuts a trailing ":LINE" off; 0 where there is none. */
static uint32_t cut_line(char *file)
{
    char *colon = strrchr(file, ':'), *end;
    unsigned long line;
    if (!colon || colon[1] < '1' || colon[1] > '9') return 0;
    line = strtoul(colon + 1, &end, 10);
    if (*end || line > UINT32_MAX) return 0;
    *colon = '\0';
    return (uint32_t)line;
}

static bool add_rule(struct reader *r, const char *text)
{
    struct suppress *s = r->to;
    struct suppress_rule rule = {.text = strdup(text), .place = strdup(text)}, *more;
    char *colon = rule.place ? strchr(rule.place, ':') : NULL;
    if (colon) *colon++ = '\0';
    if (!rule.text || !rule.place) {
        snprintf(r->why, r->size, "out of memory");
    } else if (!kind_named(rule.place, &rule.kind)) {
        snprintf(r->why, r->size, "'%s': '%s' is no kind of finding", text, rule.place);
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed below, or kept in s->rules */
    } else if (rule.kind == FIND_UNSUPPORTED) {
        snprintf(r->why, r->size,
                 "'%s': unsupported cannot be suppressed: what was not checked is not known to be "
                 "right",
                 text);
    } else if (colon && (rule.line = cut_line(colon), !*colon)) {
        snprintf(r->why, r->size, "'%s': want KIND[:FILE[:LINE]]", text);
    } else {
        rule.file = colon;
        more = realloc(s->rules, (s->count + 1) * sizeof *more);
        if (more) {
            s->rules = more;
            s->rules[s->count++] = rule;
            return true;
        }
        snprintf(r->why, r->size, "out of memory");
    }
    free(rule.text);
    free(rule.place);
    return false;
}

static char *trimmed(char *text)
{
    size_t n;
    text += strspn(text, " \t\r");
    n = strlen(text);
    while (n && strchr(" \t\r\n", text[n - 1])) text[--n] = '\0';
    return text;
}

static bool read_file(struct reader *r, const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    bool ok = true;
    if (!f) return snprintf(r->why, r->size, "@%s: %s", path, strerror(errno)), false;
    while (ok && getline(&line, &capacity, f) > 0) {
        char *rule;
        line[strcspn(line, "#")] = '\0';
        rule = trimmed(line);
        ok = !*rule || add_rule(r, rule);
    }
    free(line);
    fclose(f);
    return ok;
}

bool suppress_read(struct suppress *s, char *why, size_t size)
{
    const char *all = getenv("HEWN_SIM_SUPPRESS");
    struct reader r = {s, why, size};
    char *text = all && *all ? strdup(all) : NULL, *save = NULL;
    bool ok = true;
    *s = (struct suppress){NULL, 0};
    if (!all || !*all) return true;
    if (!text) return snprintf(why, size, "out of memory"), false;
    for (char *part = strtok_r(text, ",\n", &save); part && ok;
         part = strtok_r(NULL, ",\n", &save)) {
        part = trimmed(part);
        if (*part) ok = *part == '@' ? read_file(&r, part + 1) : add_rule(&r, part);
    }
    free(text);
    if (!ok) suppress_free(s);
    return ok;
}

/* `path` is `file`, or ends with it behind a slash. */
static bool same_file(const char *path, const char *file)
{
    size_t n = strlen(file), all = path ? strlen(path) : 0;
    if (!path || all < n || strcmp(path + all - n, file) != 0) return false;
    return all == n || path[all - n - 1] == '/';
}

const char *suppress_match(const struct suppress *s, const struct finding *f)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct suppress_rule *r = &s->rules[i];
        if (r->kind == f->kind && (!r->file || same_file(f->file, r->file)) &&
            (!r->line || r->line == f->line))
            return r->text;
    }
    return NULL;
}

void suppress_free(struct suppress *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->rules[i].text);
        free(s->rules[i].place);
    }
    free(s->rules);
    *s = (struct suppress){NULL, 0};
}
