/*
 * The text that hewn run gives to the driver: the file as it is or, where it uses #include, #define or
 * #if, preprocessed as the shipped modules are (cc -E, then tools/mod). Names for reports (//@ role,
 * shared, tmem) survive the preprocessor. And what an entry's parameter list says.
 */
#include "run.h"

#include "mod.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- reading ---- */

/* Whether a line begins with a directive: '#' and a word; a marker has a number there. */
static bool has_directive(const char *text)
{
    for (const char *at = text; at; at = strchr(at, '\n')) {
        while (*at == '\n') at++;
        if (*at == '#' && isalpha((unsigned char)at[1 + strspn(at + 1, " \t")])) return true;
    }
    return false;
}

/* Everything a descriptor yields, NUL-terminated; NULL when memory or the descriptor fails. */
static char *slurp(int fd, size_t *size)
{
    size_t room = 1U << 16;
    char *data = malloc(room);
    *size = 0;
    while (data) {
        ssize_t n = read(fd, data + *size, room - *size - 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            data[*size] = '\0';
            if (n == 0) return data;
            break;
        }
        *size += (size_t)n;
        if (room - *size < 2) {
            char *more = realloc(data, room *= 2);
            if (!more) break;
            data = more;
        }
    }
    free(data);
    return NULL;
}

enum { CC_WORDS = 16 };

/* CC is a command with options, as make takes it: "ccache gcc". */
static void exec_preprocessor(const struct run *r, const char *cc)
{
    static const char *const fixed[] = {"-E", "-undef", "-nostdinc", "-x", "assembler-with-cpp"};
    char *argv[RUN_DEFINES + CC_WORDS + 10], options[RUN_DEFINES][RUN_NAME + 4], *rest = NULL;
    char *words = strdup(cc);
    int n = 0;
    for (char *word = words ? strtok_r(words, " ", &rest) : NULL; word && n < CC_WORDS;
         word = strtok_r(NULL, " ", &rest))
        argv[n++] = word;
    if (!n) argv[n++] = (char *)(uintptr_t)cc;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        argv[n++] = (char *)(uintptr_t)fixed[i];
    for (int i = 0; i < r->define_count; i++) {
        snprintf(options[i], sizeof options[i], "-D%s", r->defines[i]);
        argv[n++] = options[i];
    }
    argv[n++] = (char *)(uintptr_t)r->path;
    argv[n] = NULL;
    execvp(argv[0], argv);
    cli_fail("%s: %s", cc, strerror(errno));
    _exit(127);
}

static char *preprocess(const struct run *r, size_t *size)
{
    const char *wanted = getenv("CC"), *cc = wanted && *wanted ? wanted : "cc";
    int ends[2], status = -1;
    char *text;
    pid_t child;
    if (pipe(ends)) return run_say(r->path, "pipe: %s", strerror(errno)), NULL;
    child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        exec_preprocessor(r, cc);
    }
    close(ends[1]);
    text = child < 0 ? NULL : slurp(ends[0], size);
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (text && status == 0) return text;
    free(text);
    run_say(r->path, "the text uses # directives, and '%s -E' (CC names another) failed on it", cc);
    return NULL;
}

/* Lines of the source that name things for reports: the preprocessor drops them. */
static void write_names(FILE *out, const char *source)
{
    static const char *const kinds[] = {"//@ role ", "//@ shared ", "//@ tmem "};
    for (const char *at = source; *at;) {
        size_t length = strcspn(at, "\n");
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (!strncmp(at, kinds[i], strlen(kinds[i]))) fprintf(out, "%.*s\n", (int)length, at);
        at += length + (at[length] == '\n');
    }
}

static int expand(struct run *r, const char *source)
{
    struct text text;
    size_t size;
    FILE *out;
    int rc;
    text.data = preprocess(r, &text.size);
    if (!text.data) return -1;
    out = open_memstream(&r->text, &size);
    if (!out) {
        text_free(&text);
        return run_fail(r->path, "out of memory");
    }
    rc = ptx_version(out, &text, r->path);
    write_names(out, source);
    if (!rc) rc = ptx_body(out, &text, NULL);
    text_free(&text);
    return fclose(out) || rc ? -1 : 0;
}

int run_read(struct run *r, char **source)
{
    struct text text;
    *source = NULL;
    if (text_read(&text, r->path)) return -1;
    *source = text.data;
    if (strlen(text.data) != text.size) return run_fail(r->path, "is no text: it holds a NUL");
    if (has_directive(text.data)) return expand(r, text.data);
    r->text = strdup(text.data);
    return r->text ? 0 : run_fail(r->path, "out of memory");
}

/* ---- scanning ---- */

static const char *skip_space(const char *at)
{
    for (;;) {
        at += strspn(at, " \t\r\n");
        if (at[0] == '/' && at[1] == '/')
            at += strcspn(at, "\n");
        else if (at[0] == '/' && at[1] == '*' && strstr(at, "*/"))
            at = strstr(at, "*/") + 2;
        else
            return at;
    }
}

static const char *word(const char *at, char *out, size_t size)
{
    size_t n = 0;
    at = skip_space(at);
    while (isalnum((unsigned char)*at) || (*at && strchr("_$%.", *at))) {
        if (n + 1 < size) out[n++] = *at;
        at++;
    }
    out[n] = '\0';
    return at;
}

/* The next ".directive" outside comments at or after `at`, past it; NULL. */
static const char *directive(const char *at, const char *name)
{
    size_t length = strlen(name);
    while (*(at = skip_space(at))) {
        if (!strncmp(at, name, length) && isspace((unsigned char)at[length])) return at + length;
        at++;
    }
    return NULL;
}

char *run_named_text(const struct run *r)
{
    const char *version = directive(r->text, ".version"),
               *end = version ? strchr(version, '\n') : NULL;
    size_t size = strlen(r->text) + strlen(r->path) + 32;
    unsigned line = 2;
    char *copy;
    if (!end || strstr(r->text, "\n#") || strpbrk(r->path, "\"\n")) return NULL;
    for (const char *at = r->text; at < end; at++) line += *at == '\n';
    copy = malloc(size);
    if (copy)
        snprintf(copy, size, "%.*s\n# %u \"%s\"\n%s", (int)(end - r->text), r->text, line, r->path,
                 end + 1);
    return copy;
}

bool run_target(const char *text, char target[RUN_NAME])
{
    const char *at = directive(text, ".target");
    target[0] = '\0';
    if (at) word(at, target, RUN_NAME);
    return target[0] != '\0';
}

/* ".param .align 64 .b8 map[128]": `at` stands behind .param. Returns the end, or NULL. */
static const char *scan_param(const char *at, struct run_param *p)
{
    char text[RUN_NAME] = "";
    uint64_t count = 1;
    memset(p, 0, sizeof *p);
    for (;;) {
        at = word(at, text, sizeof text);
        if (!strcmp(text, ".align")) {
            at = word(at, text, sizeof text);
            p->align = (uint32_t)strtoul(text, NULL, 0);
        } else if (text[0] == '.' && (isdigit((unsigned char)text[2]))) {
            snprintf(p->type, sizeof p->type, "%.7s", text + 1);
        } else if (text[0] != '.') {
            break; /* .ptr and its qualifiers are passed over */
        }
    }
    if (!text[0] || !p->type[0]) return NULL;
    snprintf(p->name, sizeof p->name, "%s", text);
    at = skip_space(at);
    if (*at == '[') {
        count = strtoull(at + 1, NULL, 0);
        at = strchr(at, ']');
        if (!at) return NULL;
        at++;
    }
    p->bytes = (uint32_t)(strtoul(p->type + 1, NULL, 10) / 8 * count);
    if (!p->align) p->align = (uint32_t)(strtoul(p->type + 1, NULL, 10) / 8);
    return p->bytes && p->align ? at : NULL;
}

static int scan_list(const struct run *r, const char *entry, const char *at,
                     struct run_param params[RUN_PARAMS])
{
    int n = 0;
    char text[RUN_NAME];
    at = skip_space(at);
    if (*at != '(') return 0;
    at = skip_space(at + 1);
    while (*at && *at != ')') {
        if (n == RUN_PARAMS)
            return run_fail(r->path, "entry %s has more than %d parameters", entry, RUN_PARAMS);
        at = word(at, text, sizeof text);
        if (strcmp(text, ".param") || !(at = scan_param(at, &params[n])))
            return run_fail(r->path, "parameter %d of entry %s cannot be read", n, entry);
        n++;
        at = skip_space(at);
        if (*at == ',') at = skip_space(at + 1);
    }
    return n;
}

int run_entry(const struct run *r, const char *name, char entry[RUN_NAME],
              struct run_param params[RUN_PARAMS])
{
    const char *at = r->text;
    char found[RUN_NAME], all[512] = "";
    while ((at = directive(at, ".entry")) != NULL) {
        size_t n = strlen(all);
        at = word(at, found, sizeof found);
        if (!*name || !strcmp(name, found)) {
            snprintf(entry, RUN_NAME, "%s", found);
            return scan_list(r, found, at, params);
        }
        snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", found);
    }
    return run_fail(r->path, "entry: '%s' is none of the text's (%s)", name, all);
}
