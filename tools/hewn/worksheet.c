/*
 * hewn worksheet: `hewn check`, then the tables that the simulator's HEWN_SIM_WORKSHEET wrote: of the
 * first launch of each kernel, or of one launch. Every launch that declares a worksheet is held
 * against it: a difference makes the exit status 1.
 */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 100 /* columns of text */, LEAST = 10, MAX_COLUMNS = 12, KEY_ROOM = 24 };
enum { FIRST_COLUMN = 2 /* behind "worksheet" and "launch" */ };

struct row {
    char keys[MAX_COLUMNS][KEY_ROOM];
    char *values[MAX_COLUMNS]; /* into `text` */
    char *text;
    unsigned count;
};

struct rows {
    struct row *rows;
    size_t count, capacity;
};

/* ---- reading: flat objects of strings and numbers, as worksheet_text.c writes them ---- */

/* Unquotes in place; returns what follows the value. */
static char *take_value(char *at, char **value)
{
    char *to = at;
    if (*at != '"') {
        *value = at;
        at += strcspn(at, ",}");
        if (*at) *at++ = '\0';
        return at;
    }
    *value = to;
    for (at++; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1]) at++;
        *to++ = *at;
    }
    if (*at) at++;
    if (*at) at++; /* the comma or brace */
    *to = '\0';
    return at;
}

static bool parse_row(const char *line, struct row *r)
{
    char *at;
    *r = (struct row){.text = strdup(line)};
    if (!r->text) return false;
    at = r->text + (*r->text == '{');
    while (*at == '"' && r->count < MAX_COLUMNS) {
        char *key;
        at = take_value(at, &key); /* the colon goes where a comma would */
        snprintf(r->keys[r->count], KEY_ROOM, "%.*s", KEY_ROOM - 1, key);
        at = take_value(at, &r->values[r->count]);
        r->count++;
    }
    return r->count >= FIRST_COLUMN;
}

static const char *value(const struct row *r, const char *key)
{
    for (unsigned i = 0; i < r->count; i++)
        if (!strcmp(r->keys[i], key)) return r->values[i];
    return "";
}

static bool is(const struct row *r, const char *table)
{
    return !strcmp(value(r, "worksheet"), table);
}

static int read_rows(const char *path, struct rows *out)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    int rc = 0;
    if (!f) return cli_fail("%s: %s", path, strerror(errno));
    while (!rc && getline(&line, &capacity, f) > 0) {
        if (out->count == out->capacity) {
            size_t wanted = out->capacity ? 2 * out->capacity : 256;
            struct row *grown = realloc(out->rows, wanted * sizeof *grown);
            if (!grown) {
                rc = cli_fail("out of memory");
                break;
            }
            out->rows = grown;
            out->capacity = wanted;
        }
        if (parse_row(line, &out->rows[out->count++]) == false)
            rc = cli_fail("%s: a line that is no row of a worksheet", path);
    }
    free(line);
    fclose(f);
    return rc;
}

static void free_rows(struct rows *r)
{
    for (size_t i = 0; i < r->count; i++) free(r->rows[i].text);
    free(r->rows);
}

/* ---- tables ---- */

/* Widths that fit the page: the widest column gives until they do; 0 leaves an empty one out. */
static void fit(const struct row *rows, size_t count, unsigned width[MAX_COLUMNS])
{
    unsigned total, n = rows[0].count;
    for (unsigned c = 0; c < n; c++) {
        bool any = false;
        width[c] = (unsigned)strlen(rows[0].keys[c]);
        for (size_t i = 0; i < count; i++) {
            unsigned length = c < rows[i].count ? (unsigned)strlen(rows[i].values[c]) : 0;
            any |= length != 0;
            if (length > width[c]) width[c] = length;
        }
        if (!any || c < FIRST_COLUMN) width[c] = 0;
    }
    for (;;) {
        unsigned widest = 0;
        total = 0;
        for (unsigned c = 0; c < n; c++) {
            if (width[c]) total += width[c] + 3;
            if (width[c] > width[widest]) widest = c;
        }
        if (total <= PAGE + 3 || width[widest] <= LEAST) return;
        width[widest]--;
    }
}

/* Bytes of `text` that go on a line of `width`, up to a blank where there is one. */
static size_t piece(const char *text, unsigned width)
{
    size_t length = strlen(text);
    if (length <= width) return length;
    for (size_t i = width; i > 0; i--)
        if (text[i] == ' ') return i;
    return width;
}

static void print_line(const char *cells[MAX_COLUMNS], const unsigned width[MAX_COLUMNS],
                       unsigned count)
{
    char line[4 * PAGE];
    bool more = true;
    while (more) {
        size_t used = 0;
        bool first = true;
        more = false;
        for (unsigned c = 0; c < count; c++) {
            size_t n;
            if (!width[c]) continue;
            n = piece(cells[c], width[c]);
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%-*.*s",
                                     first ? "" : " | ", (int)width[c], (int)n, cells[c]);
            cells[c] += n;
            while (*cells[c] == ' ') cells[c]++;
            more |= *cells[c] != '\0';
            first = false;
        }
        while (used && line[used - 1] == ' ') used--;
        printf("%.*s\n", (int)used, line);
    }
}

static void print_table(const struct row *rows, size_t count)
{
    unsigned width[MAX_COLUMNS] = {0}, n = rows[0].count;
    const char *cells[MAX_COLUMNS];
    fit(rows, count, width);
    putchar('\n');
    for (unsigned c = 0; c < n; c++) cells[c] = rows[0].keys[c];
    print_line(cells, width, n);
    for (size_t i = 0; i < count; i++) {
        for (unsigned c = 0; c < n; c++) cells[c] = c < rows[i].count ? rows[i].values[c] : "";
        print_line(cells, width, n);
    }
}

static void print_note(const struct row *r)
{
    printf("\n%s\n", value(r, "note"));
}

static void print_head(const struct row *r)
{
    printf("worksheet of %s (%s:%s), launch %s\n", value(r, "kernel"), value(r, "file"),
           value(r, "line"), value(r, "launch"));
    printf("grid %s, block %s, cluster %s, shared memory %s B static + %s B dynamic\n"
           "counts of all CTAs together, phases of each\n",
           value(r, "grid"), value(r, "block"), value(r, "cluster"), value(r, "static"),
           value(r, "dynamic"));
}

static void print_verdict(const struct row *r)
{
    const char *differences = value(r, "differences");
    if (!strcmp(value(r, "declared"), "0"))
        printf("\nthe source declares no worksheet\n");
    else if (!strcmp(differences, "0"))
        printf(
            "\ndeclared and seen agree: %s declarations, %s of them not wholly seen in this run\n",
            value(r, "declared"), value(r, "unseen"));
    else
        printf("\ndeclared and seen differ: %s difference%s in %s declarations\n", differences,
               !strcmp(differences, "1") ? "" : "s", value(r, "declared"));
}

/* One launch: rows from its head up to its verdict. */
static void print_sheet(const struct row *rows, size_t count)
{
    size_t last;
    print_head(&rows[0]);
    for (size_t i = 1; i < count; i = last) {
        const char *table = value(&rows[i], "worksheet");
        for (last = i + 1; last < count && is(&rows[last], table);) last++;
        if (is(&rows[i], "note"))
            for (size_t k = i; k < last; k++) print_note(&rows[k]);
        else if (is(&rows[i], "verdict"))
            print_verdict(&rows[i]);
        else {
            if (is(&rows[i], "difference")) printf("\ndifferences:");
            if (is(&rows[i], "unseen")) printf("\ndeclared, not seen in this run:");
            print_table(&rows[i], last - i);
        }
    }
}

/* ---- launches ---- */

/* Rows of the launch that begins at `at`. */
static size_t sheet_length(const struct rows *r, size_t at)
{
    size_t end = at + 1;
    while (end < r->count && !is(&r->rows[end], "launch")) end++;
    return end - at;
}

static bool first_of_kernel(const struct rows *r, size_t at)
{
    const char *kernel = value(&r->rows[at], "kernel");
    for (size_t i = 0; i < at; i++)
        if (is(&r->rows[i], "launch") && !strcmp(value(&r->rows[i], "kernel"), kernel))
            return false;
    return true;
}

/* Prints what was asked for; the number of launches that differ, or -1 after cli_fail. */
static int print_sheets(const struct rows *r, const char *launch)
{
    unsigned shown = 0, launches = 0, different = 0, declaring = 0;
    for (size_t at = 0, length; at < r->count; at += length) {
        const struct row *head = &r->rows[at], *verdict;
        length = sheet_length(r, at);
        verdict = &r->rows[at + length - 1];
        launches++;
        declaring += strcmp(value(verdict, "declared"), "0") != 0;
        different += strcmp(value(verdict, "differences"), "0") != 0;
        if (launch ? strcmp(value(head, "launch"), launch) != 0 : !first_of_kernel(r, at)) continue;
        if (shown++) putchar('\n');
        print_sheet(head, length);
        if (launch) break;
    }
    if (!shown && launch)
        return cli_fail("worksheet: the program made no launch %s that ran", launch), -1;
    if (!shown) return cli_fail("worksheet: the program launched nothing that ran"), -1;
    if (launches > shown && !launch)
        printf("\n%u launches in all: %u declare a worksheet, %u differ from it\n", launches,
               declaring, different);
    return (int)different;
}

int cli_print_roles(const char *path)
{
    struct rows r = {0};
    size_t first = 1, last;
    int rc = read_rows(path, &r);
    if (rc == 0 && r.count > 1) {
        print_head(&r.rows[0]);
        for (last = first; last < r.count && is(&r.rows[last], "roles");) last++;
        if (last > first) print_table(&r.rows[first], last - first);
    }
    free_rows(&r);
    return rc;
}

int cli_worksheet(int argc, char **argv)
{
    char path[] = "/tmp/hewn-worksheet-XXXXXX", name[] = "check";
    const char *launch = NULL;
    struct rows rows = {0};
    int rc, differ, count = 1, i = 1, fd;
    char **rest = calloc((size_t)argc + 1, sizeof *rest);
    if (!rest) return cli_fail("out of memory");
    for (rest[0] = name; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++) {
        if (!strcmp(argv[i], "--launch") && i + 1 < argc) {
            launch = argv[++i];
            continue;
        }
        rest[count++] = argv[i];
        if (i + 1 < argc) rest[count++] = argv[++i]; /* each of check's options takes a value */
    }
    while (i < argc) rest[count++] = argv[i++];
    fd = mkstemp(path);
    if (fd < 0) {
        free(rest);
        return cli_fail("%s: %s", path, strerror(errno));
    }
    close(fd);
    setenv("HEWN_SIM_WORKSHEET", path, 1);
    rc = cli_check(count, rest);
    free(rest);
    if (rc != EXIT_USAGE) {
        differ = read_rows(path, &rows) ? -1 : print_sheets(&rows, launch);
        if (!rc && differ) rc = 1;
    }
    free_rows(&rows);
    unlink(path);
    return rc;
}
