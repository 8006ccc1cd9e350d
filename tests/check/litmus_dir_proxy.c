/* Litmus tests of the mixed-proxy model (litmus_dir_proxy.h). */
#include "litmus_dir_proxy.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 14, THREADS = 4, ROWS = 16, CELL = 96, FIELDS = 8 };

struct out {
    char *text;
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void put(struct out *o, const char *format, ...)
{
    va_list args;
    int n;
    va_start(args, format);
    n = vsnprintf(o->text + o->used, ROOM - o->used, format, args);
    va_end(args);
    if (n > 0) o->used += (size_t)n < ROOM - o->used ? (size_t)n : ROOM - o->used - 1;
}

static char *trim(char *s)
{
    char *end;
    while (isspace((unsigned char)*s)) s++;
    end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1])) *--end = '\0';
    return s;
}

/* ---- tables ---- */

/* Row `number` of the table; false: it has fewer. */
static bool row_of(const char *table, uint32_t number, char *row)
{
    for (const char *at = table; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        (void)snprintf(row, ROOM, "%.*s", (int)strcspn(at, "\n"), at);
        if (strchr(row, '|') && !number--) return true;
    }
    return false;
}

/* The text before "$$" with "$0", "$1" … replaced by a row's fields. NULL: there is no such row. */
static char *instance(const char *source, uint32_t number)
{
    const char *table = strstr(source, "$$");
    char *text = calloc(1, ROOM), row[ROOM], *field[FIELDS] = {0}, *rest = row;
    struct out o = {text, 0};
    if (!text) return NULL;
    if (table ? !row_of(table, number, row) : number > 0) {
        free(text);
        return NULL;
    }
    for (uint32_t i = 0; table && i < FIELDS; i++) field[i] = strsep(&rest, "|");
    for (const char *at = source; *at && at != table; at++) {
        if (*at == '/' && at[1] == '/') {
            at += strcspn(at, "\n") - 1;
            continue;
        }
        if (*at != '$' || !isdigit((unsigned char)at[1]) || at[1] - '0' >= FIELDS)
            put(&o, "%c", *at);
        else if (field[*++at - '0'])
            put(&o, "%s", field[*at - '0']);
    }
    return text;
}

/* ---- threads ---- */

struct test {
    char cell[THREADS][ROWS][CELL];
    uint32_t rows[THREADS], cta[THREADS], gpu[THREADS], threads;
    char loaded[THREADS][256]; /* " r0 r1 " */
    char seen[512];            /* what loads must have brought, for the test to count */
    char initial[512];
};

/* Where a load must have brought a value, the thread does nothing more if it has not.
 * "atom.add.acq_rel.gpu r1, [x], 1" has its operation last in Dat3M's notation; "[x]" is x. */
static void write_instruction(struct test *t, uint32_t thread, char *text)
{
    char name[CELL] = "", plain[CELL] = "", *out;
    char *equals = strstr(text, "=="), *operands;
    unsigned reg;
    size_t n = 0;
    if (t->rows[thread] == ROWS) return;
    out = t->cell[thread][t->rows[thread]];
    if (equals) *equals = '\0';
    operands = text + strcspn(text, " ");
    for (const char *at = operands; *at && n + 1 < sizeof plain; at++)
        if (*at != '[' && *at != ']') plain[n++] = *at;
    (void)snprintf(name, sizeof name, "%.*s", (int)(operands - text), text);
    if (!strncmp(name, "atom.add.", 9))
        (void)snprintf(out, CELL, "atom.%.24s.add%.50s", name + 9, plain);
    else
        (void)snprintf(out, CELL, "%.40s%.50s", name, plain);
    t->rows[thread]++;
    if (sscanf(plain, " r%u", &reg) != 1) return;
    n = strlen(t->loaded[thread]);
    (void)snprintf(t->loaded[thread] + n, sizeof t->loaded[thread] - n, " r%u ", reg);
    if (!equals) return;
    n = strlen(t->seen);
    (void)snprintf(t->seen + n, sizeof t->seen - n, "P%u:r%u == %ld /\\ ", (unsigned)thread, reg,
                   strtol(equals + 2, NULL, 10));
    if (t->rows[thread] == ROWS) return;
    (void)snprintf(t->cell[thread][t->rows[thread]++], CELL, "bne r%u, %ld, LAST", reg,
                   strtol(equals + 2, NULL, 10));
}

/* ".surfref s virtually aliases x": a name for the same place. */
static void write_declaration(struct test *t, const char *text)
{
    char kind[16], name[32], how[16], of[32];
    const int n = sscanf(text, ".%15s %31s %15s aliases %31s", kind, name, how, of);
    const size_t at = strlen(t->initial);
    if (n == 4)
        (void)snprintf(t->initial + at, sizeof t->initial - at, "%s @ %s aliases %s; ", name, kind,
                       of);
    else if (n >= 2)
        (void)snprintf(t->initial + at, sizeof t->initial - at, "%s = 0; ", name);
}

/* "d0.b0.t0 { … }". What stands behind it; NULL: it is none. */
static char *read_thread(struct test *t, char *at)
{
    unsigned gpu, cta;
    char *end = strchr(at, '}'), *body = strchr(at, '{'), *rest;
    if (t->threads == THREADS || !end || !body || sscanf(at, "d%u.b%u", &gpu, &cta) != 2)
        return NULL;
    *end = '\0';
    t->gpu[t->threads] = gpu;
    t->cta[t->threads] = cta;
    for (char *i = strtok_r(body + 1, ";", &rest); i; i = strtok_r(NULL, ";", &rest))
        if (*trim(i)) write_instruction(t, t->threads, trim(i));
    t->threads++;
    return end + 1;
}

/* A register has its thread's name in front; && and || are /\ and \/. */
static void write_condition(const struct test *t, const char *at, struct out *o)
{
    int depth = 0;
    for (; *at; at++) {
        char name[32];
        const size_t n = strspn(at + 1, "0123456789") + 1;
        uint32_t thread = 0;
        if (*at == '(') depth++;
        if (*at == ')' && --depth == 0) break;
        if (*at == '&' || *at == '|') {
            put(o, "%s", *at == '&' ? "/\\" : "\\/");
            at++;
        } else if (*at == 'r' && n > 1) {
            (void)snprintf(name, sizeof name, " %.*s ", (int)n, at);
            while (thread + 1 < t->threads && !strstr(t->loaded[thread], name)) thread++;
            put(o, "P%u:%.*s", (unsigned)thread, (int)n, at);
            at += n - 1;
        } else {
            put(o, "%c", *at);
        }
    }
    put(o, ")");
}

static void write_test(const struct test *t, const char *condition, bool allowed, struct out *o)
{
    put(o, "PTX test\n{\n%s\n}\n", t->initial);
    for (uint32_t i = 0; i < t->threads; i++)
        put(o, "%s P%u@cta %u,gpu %u", i ? " |" : "", (unsigned)i, (unsigned)t->cta[i],
            (unsigned)t->gpu[i]);
    put(o, " ;\n");
    for (uint32_t r = 0; r <= ROWS; r++) {
        for (uint32_t i = 0; i < t->threads; i++)
            put(o, "%s %s", i ? " |" : "",
                r == ROWS        ? "LAST:"
                : r < t->rows[i] ? t->cell[i][r]
                                 : "");
        put(o, " ;\n");
    }
    put(o, "exists (%s%s", t->seen, allowed ? "" : "~");
    write_condition(t, condition, o);
    put(o, ")\n");
}

char *proxy_translate(const char *source, uint32_t number, bool *allowed)
{
    struct test *t = calloc(1, sizeof *t);
    char *text = instance(source, number), *at = text, *end;
    struct out o = {calloc(1, ROOM), 0};
    const char *condition = NULL;
    while (t && at && o.text && !condition) {
        at = trim(at);
        if (*at == '.') {
            end = at + strcspn(at, ";");
            if (*end) *end++ = '\0';
            write_declaration(t, at);
            at = end;
        } else if (*at == 'd') {
            at = read_thread(t, at);
        } else {
            *allowed = !strncmp(at, "permit", 6);
            condition = strncmp(at, "assert", 6) && !*allowed ? NULL : strchr(at, '(');
            if (!condition) break;
        }
    }
    if (condition) write_test(t, condition, *allowed, &o);
    free(t);
    free(text);
    if (condition) return o.text;
    free(o.text);
    return NULL;
}
