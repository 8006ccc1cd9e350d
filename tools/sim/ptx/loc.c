/*
 * Where a compiler says that instructions come from: `.file N "name"` and `.loc N line column {, function_name label}
 * {, inlined_at N line column}` (PTX ISA "Debugging Directives"). Names may stand behind the functions that use them,
 * so they are looked for before anything else is read.
 */
#include "ptx/parse.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER = 9, LOOK_BACK = 4096 };

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    return at;
}

static bool add_file(struct parser *p, uint64_t number, const char *name, size_t length)
{
    uint32_t index = lex_file(&p->lex, name, length);
    struct loc_file *files;

    if (!index) return true; /* too many: their lines are those of the text */
    files = arena_grow(&p->scratch, p->loc_files, p->loc_file_count, &p->loc_file_capacity,
                       sizeof *files);
    if (!files) return parse_memory(p);
    p->loc_files = files;
    files[p->loc_file_count++] = (struct loc_file){number, index};
    return true;
}

/* One line from its first character on; what is no `.file` is left for the parser to judge. */
static bool read_line(struct parser *p, const char *at, const char *end)
{
    char digits[MAX_NUMBER + 1] = "";
    const char *name, *quote;
    size_t length;

    at = skip_blanks(at, end);
    if (end - at < 6 || memcmp(at, ".file", 5) != 0) return true;
    at = skip_blanks(at + 5, end);
    for (length = 0; at + length < end && at[length] >= '0' && at[length] <= '9';) length++;
    if (!length || length > MAX_NUMBER) return true;
    memcpy(digits, at, length);
    name = skip_blanks(at + length, end);
    if (name >= end || *name++ != '"') return true;
    quote = memchr(name, '"', (size_t)(end - name));
    if (!quote || quote == name) return true;
    return add_file(p, strtoul(digits, NULL, 10), name, (size_t)(quote - name));
}

bool loc_read_files(struct parser *p, const char *text, size_t length)
{
    const char *end = text + length;

    for (const char *at = text; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        if (!stop) stop = end;
        if (!read_line(p, at, stop)) return false;
        at = stop + 1;
    }
    return true;
}

/* ---- .loc ---- */

static bool place_numbers(struct parser *p, uint64_t out[3])
{
    for (int i = 0; i < 3; i++) {
        if (peek(p)->kind != TOK_INT) return i == 2 || unexpected(p, "a number");
        out[i] = next(p).value;
    }
    return true;
}

static const char *file_of(const struct parser *p, uint64_t number, uint32_t *index)
{
    for (uint32_t i = 0; i < p->loc_file_count; i++)
        if (p->loc_files[i].number == number) {
            *index = p->loc_files[i].index;
            return p->lex.files[*index];
        }
    return NULL;
}

/* The place of a call: the last `.loc` of the body that names it, which may have been put in place itself. */
static const struct ptx_loc *call_place(const struct parser *p, const char *file,
                                        const uint64_t at[3])
{
    uint32_t back = 0;

    for (const struct ptx_loc *l = p->loc_last; l && back < LOOK_BACK; l = l->before, back++)
        if (!strcmp(l->file, file) && l->line == at[1] && l->column == at[2]) return l;
    return NULL;
}

static const struct ptx_loc *keep_loc(struct parser *p, const uint64_t at[3],
                                      const struct ptx_loc *inlined_at)
{
    uint32_t index = 0;
    const char *file = file_of(p, at[0], &index);
    struct ptx_loc *loc =
        file && at[1] && at[1] <= UINT32_MAX ? arena_alloc(p->arena, sizeof *loc) : NULL;

    if (!loc) return NULL; /* no line: the instruction keeps that of the text */
    *loc = (struct ptx_loc){.file = file,
                            .pos = {index, (uint32_t)at[1]},
                            .line = (uint32_t)at[1],
                            .column = (uint32_t)at[2],
                            .inlined_at = inlined_at,
                            .before = p->loc_last};
    return loc;
}

/* A header of the CUDA toolkit, as it is installed, packaged for Python or part of a distribution. */
static bool of_toolkit(const char *file)
{
    static const char *const roots[] = {"/usr/include/", "/usr/local/cuda/", "/opt/cuda/"};
    static const char *const parts[] = {"/cuda-", "-linux/include/", "/nvidia/cu",
                                        "/include/cccl/"};

    if (!strstr(file, "/include/")) return false;
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (!strncmp(file, roots[i], strlen(roots[i]))) return true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *at = strstr(file, parts[i]);
        const size_t version = at && !i ? strspn(at + 6, "0123456789.") : 0; /* of /cuda-13.0/ */
        if (at && (i || (version && at[6 + version] == '/'))) return true;
    }
    return false;
}

/* Of code from such headers, the call that put it here: readers look for their own line. */
static const struct ptx_loc *own_place(const struct ptx_loc *loc)
{
    const struct ptx_loc *own = loc;

    while (own && of_toolkit(own->file)) own = own->inlined_at;
    return own ? own : loc; /* all of it is the toolkit's */
}

bool parse_loc(struct parser *p)
{
    uint64_t at[3] = {0}, call[3] = {0};
    const struct ptx_loc *outer = NULL;
    struct token word;
    uint32_t index;

    if (!place_numbers(p, at)) return false;
    while (accept(p, ',')) {
        if (!expect_name(p, "function_name or inlined_at", &word)) return false;
        if (token_is(&word, "inlined_at")) {
            const char *file;

            if (!place_numbers(p, call)) return false;
            file = file_of(p, call[0], &index);
            if (file) outer = call_place(p, file, call);
            if (file && !outer) outer = keep_loc(p, call, NULL);
        } else {
            if (!expect_name(p, "a label", &word)) return false;
            if (accept(p, '+') && peek(p)->kind != TOK_INT) return unexpected(p, "a number");
            if (peek(p)->kind == TOK_INT) next(p);
        }
    }
    p->loc = keep_loc(p, at, outer);
    if (p->loc) p->loc_last = p->loc;
    p->loc = own_place(p->loc);
    return true;
}
