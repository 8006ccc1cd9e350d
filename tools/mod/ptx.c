/*
 * From preprocessed kernel text to the PTX that ships.
 *
 * The driver takes text for PTX only if it begins with .version: that line goes first; then the
 * plan's notes for whoever reports on the kernel; then the text, with a marker  # N "file"  where
 * the next line does not follow the last one. File names are relative to the source root.
 */
#include "mod.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_ROOM = 512,
    GAP = 3 /* so many skipped lines are written as blank lines, more as a marker */
};

struct position {
    char file[PATH_ROOM]; /* "" for text of no file of ours */
    unsigned long line;
};

/* Makes `path` relative to `root` (NULL: leaves it as it is) and drops "." and "name/.." parts. */
static int relative_path(const char *path, const char *root, char *out)
{
    size_t root_length = root ? strlen(root) : 0, n = 0;

    if (!root) {
        if (strlen(path) >= PATH_ROOM) return complain(path, "path too long");
        memcpy(out, path, strlen(path) + 1);
        return 0;
    }
    if (strncmp(path, root, root_length) == 0 && path[root_length] == '/')
        path += root_length + 1;
    else if (path[0] == '/')
        return complain(path, "lies outside of the source root %s", root);
    while (*path) {
        size_t part = strcspn(path, "/");
        if (part == 2 && memcmp(path, "..", 2) == 0 && n > 0) {
            while (n > 0 && out[n - 1] != '/') n--;
            if (n > 0) n--;
        } else if (part != 0 && !(part == 1 && path[0] == '.')) {
            if (n + part + 2 > PATH_ROOM) return complain(path, "path too long");
            if (n > 0) out[n++] = '/';
            memcpy(out + n, path, part);
            n += part;
        }
        path += part;
        path += *path == '/';
    }
    out[n] = '\0';
    return 0;
}

/* Reads  # N "file" flags...  Returns 1 for a marker (`at` updated), 0 for other text, -1. */
static int read_marker(struct position *at, const char *line, size_t length, const char *root)
{
    char copy[PATH_ROOM], name[PATH_ROOM];
    unsigned long number;

    if (length < 2 || line[0] != '#' || line[1] != ' ') return 0;
    if (length >= sizeof copy) return complain(at->file, "line marker too long");
    memcpy(copy, line, length);
    copy[length] = '\0';
    if (sscanf(copy, "# %lu \"%511[^\"]\"", &number, name) != 2) return 0;
    at->line = number;
    if (name[0] == '<') { /* <built-in>, <command-line> */
        at->file[0] = '\0';
        return 1;
    }
    return relative_path(name, root, at->file) == 0 ? 1 : -1;
}

/* "a + b" as one word */
static void write_list(FILE *out, const char *list)
{
    fputc(' ', out);
    for (; *list; list++)
        if (*list != ' ') fputc(*list, out);
}

static void write_notes(FILE *out, const struct plan *plan)
{
    for (const struct plan_range *r = plan->roles; r->name; r++)
        fprintf(out, "//@ role %s %u %u\n", r->name, r->first, r->count);
    for (const struct plan_range *r = plan->shared; r->name; r++)
        fprintf(out, "//@ shared %s %u %u %u\n", r->name, r->first, r->size, r->count);
    for (const struct plan_range *r = plan->tmem; r->name; r++)
        fprintf(out, "//@ tmem %s %u %u\n", r->name, r->first, r->count);
    for (const struct plan_handoff *h = plan->handoffs; h->name; h++) {
        fprintf(out, "//@ handoff %s %u", h->name, h->count);
        if (h->more) fprintf(out, "..%u", h->count + h->more);
        fprintf(out, " %u", h->least);
        if (h->most != h->least) fprintf(out, "..%u", h->most);
        write_list(out, h->producers);
        write_list(out, h->consumers);
        fputc('\n', out);
    }
    for (const struct plan_flow *f = plan->flows; f->name; f++) {
        fprintf(out, "//@ flow %s", f->name);
        write_list(out, f->writers);
        write_list(out, f->readers);
        fputc('\n', out);
    }
}

/* Brings the output's position to `at`, by blank lines or a marker. */
static void write_position(FILE *out, struct position *written, const struct position *at)
{
    int same = strcmp(written->file, at->file) == 0;

    if (same && written->line <= at->line && at->line - written->line <= GAP) {
        for (; written->line < at->line; written->line++) fputc('\n', out);
    } else if (!same || written->line != at->line) {
        fprintf(out, "# %lu \"%s\"\n", at->line, at->file);
        *written = *at;
    }
}

static int is_version(const char *line, size_t length)
{
    static const char key[] = ".version ";

    return length > sizeof key - 1 && memcmp(line, key, sizeof key - 1) == 0;
}

int ptx_version(FILE *out, const struct text *text, const char *path)
{
    const char *cursor = text->data, *line;
    size_t length;

    while (text_line(&cursor, &line, &length)) {
        if (!is_version(line, length)) continue;
        fprintf(out, "%.*s\n", (int)length, line);
        return 0;
    }
    return complain(path, "has no line that begins with .version");
}

int ptx_body(FILE *out, const struct text *text, const char *root)
{
    struct position at = {"", 1}, written = {"", 0};
    const char *cursor = text->data, *line;
    size_t length;

    while (text_line(&cursor, &line, &length)) {
        int marker = read_marker(&at, line, length, root);
        if (marker < 0) return -1;
        if (marker) continue;
        while (length > 0 && isspace((unsigned char)line[length - 1])) length--;
        if (length > 0 && !is_version(line, length)) {
            write_position(out, &written, &at);
            fold_line(out, line, length);
            fputc('\n', out);
            written.line++;
        }
        at.line++;
    }
    return 0;
}

int make_ptx(int argc, char **argv)
{
    const char *path = argv[2], *root = argv[3], *out_path = argv[4];
    struct module_id id;
    struct text text;
    FILE *out;
    int result;

    (void)argc;
    if (plan_find(&id, argv[0], argv[1]) != 0 || text_read(&text, path) != 0) return -1;
    out = text_create(out_path);
    if (!out) {
        text_free(&text);
        return -1;
    }
    result = ptx_version(out, &text, path);
    if (result == 0) {
        fprintf(out, "// hewn %s for %s, from ptx/%s/%s.ptx\n", id.name, id.target, id.target,
                id.plan->text);
        write_notes(out, id.plan);
        result = ptx_body(out, &text, root);
    }
    text_free(&text);
    return text_close(out, out_path) == 0 ? result : -1;
}
