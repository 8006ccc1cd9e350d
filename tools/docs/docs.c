/*
 * Keeps the manuals in step with the code.
 *
 *     docs BUILD FILE.md…           rewrites what stands between markers
 *     docs --check BUILD FILE.md…   changes nothing; exit status 1 if something would change
 *     docs --man                    prints the man page of hewn
 *
 * Run it in the root of the source tree. A marked part is
 *
 *     <!-- generated: NAME -->          a table that the code knows (tables.c)
 *     <!-- generated: $ COMMAND -->     what the command prints, on the simulator; hewn is BUILD/hewn. A
 *                                       comment behind it (# make demo) is shown in its place. Numbers of
 *                                       seconds become "…", because they differ from run to run.
 *     …
 *     <!-- end -->
 */
#include "docs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_ROOM = 1024, COLUMNS = 104 };
static const char begin_mark[] = "<!-- generated: ", end_mark[] = "<!-- end -->\n";

/* ---- text ---- */

void text_bytes(struct text *t, const char *data, size_t size)
{
    if (!t->data || t->size + size + 1 > t->capacity) {
        const size_t capacity = 2 * (t->size + size + 1);
        char *more = realloc(t->data, capacity);
        if (!more) {
            t->failed = true;
            return;
        }
        t->data = more;
        t->capacity = capacity;
    }
    memcpy(t->data + t->size, data, size);
    t->size += size;
    t->data[t->size] = '\0';
}

void text_add(struct text *t, const char *format, ...)
{
    char small[4096];
    va_list args;
    int n;
    va_start(args, format);
    n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof small)
        t->failed = true;
    else
        text_bytes(t, small, (size_t)n);
}

static bool read_stream(struct text *t, FILE *f)
{
    char block[4096];
    size_t n;
    while ((n = fread(block, 1, sizeof block, f)) > 0) text_bytes(t, block, n);
    return !ferror(f) && !t->failed;
}

bool text_file(struct text *t, const char *path)
{
    FILE *f = fopen(path, "r");
    bool good;
    if (!f) return false;
    good = read_stream(t, f);
    fclose(f);
    return good;
}

void text_free(struct text *t)
{
    free(t->data);
    *t = (struct text){0};
}

/* ---- what a command prints ---- */

/* One line as part of a code block, broken at spaces; further lines keep its indentation. */
static void add_line(struct text *t, const char *line, size_t size)
{
    const size_t indent = strspn(line, " ");
    size_t from = 0;
    do {
        size_t room = COLUMNS - (from ? indent : 0), length = size - from;
        if (length > room) {
            for (length = room; length > 0 && line[from + length] != ' ';) length--;
            if (length <= indent) length = room;
        }
        text_add(t, length ? "    %*s%.*s\n" : "\n", from ? (int)indent : 0, "", (int)length,
                 line + from);
        from += length;
        while (from < size && line[from] == ' ') from++;
    } while (from < size);
}

/* Replaces BUILD's path by "build" and numbers of seconds by "…". */
static void add_stable(struct text *t, const char *at, const char *build)
{
    while (*at) {
        const size_t number = strspn(at, "0123456789.");
        if (!strncmp(at, build, strlen(build))) {
            text_add(t, "build");
            at += strlen(build);
        } else if (number && !strncmp(at + number, " s ", 3)) {
            text_add(t, "…");
            at += number;
        } else {
            text_bytes(t, at, number ? number : 1);
            at += number ? number : 1;
        }
    }
}

static bool add_output(struct text *t, const char *build, const char *command)
{
    static const char format[] =
        "export CC=cc BUILD='%s' PATH='%s':\"$PATH\" HEWN_SIM_QUIET=0 "
        "HEWN_LIBCUDA='%s/sim/libcuda.so.1'; unset HEWN_SIM_GPU; { %s\n} 2>&1";
    const char *shown = strstr(command, " # ");
    char whole[COMMAND_ROOM];
    struct text raw = {0}, out = {0};
    FILE *f;
    const int n = snprintf(whole, sizeof whole, format, build, build, build, command);
    if (n < 0 || (size_t)n >= sizeof whole || !(f = popen(whole, "r"))) return false;
    if (!read_stream(&raw, f)) t->failed = true;
    (void)pclose(f); /* a finding makes the status 1, and is what is shown */
    if (raw.data) add_stable(&out, raw.data, build);
    text_add(t, "\n    $ %s\n", shown ? shown + 3 : command);
    for (const char *at = out.data; at && *at;) {
        const size_t size = strcspn(at, "\n");
        if (strncmp(at, "driver: ", 8) != 0) add_line(t, at, size);
        at += size + (at[size] == '\n');
    }
    text_add(t, "\n");
    t->failed |= out.failed;
    text_free(&raw);
    text_free(&out);
    return true;
}

/* ---- one manual ---- */

/* Copies `from` to `to` with its marked parts made anew. False after a message. */
static bool expand(struct text *to, const char *from, const char *path, const char *build)
{
    const char *at = from, *mark;
    while ((mark = strstr(at, begin_mark))) {
        const char *name = mark + sizeof begin_mark - 1;
        const char *close = strstr(name, " -->\n"), *end = close ? strstr(close, end_mark) : NULL;
        char word[COMMAND_ROOM];
        if (!end || (size_t)(close - name) >= sizeof word) {
            fprintf(stderr, "docs: %s: '%.40s' is not closed by %s", path, mark, end_mark);
            return false;
        }
        memcpy(word, name, (size_t)(close - name));
        word[close - name] = '\0';
        text_bytes(to, at, (size_t)(close - at) + 5);
        if (*word == '$' ? !add_output(to, build, word + 2) : !table_add(to, word)) {
            struct text names = {0};
            table_names(&names);
            fprintf(stderr, "docs: %s: cannot make '%s'; tables are: %s\n", path, word,
                    names.data ? names.data : "");
            text_free(&names);
            return false;
        }
        text_add(to, "%s", end_mark);
        at = end + sizeof end_mark - 1;
    }
    text_bytes(to, at, strlen(at));
    return !to->failed;
}

static void say_difference(const char *path, const char *old, const char *new)
{
    size_t line = 1, at = 0;
    for (size_t i = 0; old[i] && old[i] == new[i]; i++)
        if (old[i] == '\n') line++, at = i + 1;
    printf("%s:%zu: is \"%.*s\", the code says \"%.*s\"\n", path, line,
           (int)strcspn(old + at, "\n"), old + at, (int)strcspn(new + at, "\n"), new + at);
}

/* 0: nothing to do or done; 1: it differs; 2: failed, after a message. */
static int manual(const char *path, const char *build, bool check)
{
    struct text old = {0}, new = {0};
    int rc = 2;
    FILE *f;
    if (!text_file(&old, path) || !old.data) {
        fprintf(stderr, "docs: %s: %s\n", path, strerror(errno));
    } else if (expand(&new, old.data, path, build)) {
        rc = strcmp(old.data, new.data) != 0;
        if (rc && check) {
            say_difference(path, old.data, new.data);
        } else if (rc) {
            f = fopen(path, "w");
            rc = !f || fwrite(new.data, 1, new.size, f) != new.size ? 2 : 0;
            if ((f && fclose(f)) || rc) fprintf(stderr, "docs: %s: %s\n", path, strerror(errno));
        }
    }
    text_free(&old);
    text_free(&new);
    return rc;
}

int main(int argc, char **argv)
{
    const bool check = argc > 1 && !strcmp(argv[1], "--check");
    int worst = 0, first = check ? 3 : 2;
    if (argc == 2 && !strcmp(argv[1], "--man")) {
        struct text page = {0};
        man_page(&page);
        worst = page.failed || fputs(page.data, stdout) < 0 || fflush(stdout);
        text_free(&page);
        return worst;
    }
    if (argc <= first) {
        fputs("usage: docs [--check] BUILD FILE.md… | docs --man\n", stderr);
        return 64;
    }
    for (int i = first; i < argc; i++) {
        const int rc = manual(argv[i], argv[first - 1], check);
        if (rc > worst) worst = rc;
    }
    return worst;
}
