/* How the statements of hewn run are read. Their notation is told in usage.def. */
#include "run.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 96, TEXT = 1024 };

/* A statement cut into words; the first is the statement's own. */
struct words {
    struct run *run;
    const char *where;
    char text[TEXT];
    char *word[WORDS];
    int count;
};

void run_say(const char *where, const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fprintf(stderr, "hewn run: %s: ", where);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int run_buffer_named(const struct run *r, const char *name)
{
    for (int i = 0; i < r->buffers; i++)
        if (!strcmp(r->buffer[i].name, name)) return i;
    return -1;
}

int run_map_named(const struct run *r, const char *name)
{
    for (int i = 0; i < r->maps; i++)
        if (!strcmp(r->map[i].name, name)) return i;
    return -1;
}

/* ---- values ---- */

static int whole(const char *where, const char *what, const char *text, uint64_t max, uint64_t *out)
{
    char *end;
    unsigned long long v;
    errno = 0;
    v = strtoull(text, &end, 0);
    if (!isdigit((unsigned char)*text) || *end || errno || v > max)
        return run_fail(where, "%s: '%s' is no whole number up to %llu", what, text,
                        (unsigned long long)max);
    *out = v;
    return 0;
}

static int real(const char *where, const char *what, const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end) return run_fail(where, "%s: '%s' is no number", what, text);
    return 0;
}

/* "64,32": how many, at most `most`; -1. Each within max. */
static int list(const char *where, const char *what, const char *text, int most, uint64_t max,
                uint64_t *out)
{
    char copy[TEXT], *save = NULL;
    int n = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *t = strtok_r(copy, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
        if (n == most)
            return run_fail(where, "%s: '%s' holds more than %d numbers", what, text, most);
        if (whole(where, what, t, max, &out[n++])) return -1;
    }
    return n ? n : run_fail(where, "%s: a number is missing", what);
}

static int name_into(const char *where, const char *what, const char *text, char *out, size_t size)
{
    if (strlen(text) >= size)
        return run_fail(where, "%s: '%.40s…' is longer than %zu characters", what, text, size - 1);
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

/* Index of `text` in a list of `count` names that begins at `first`; -1 after run_fail. */
static int choice(const char *where, const char *what, const char *text, const char *const *names,
                  int count)
{
    char all[512] = "";
    for (int i = 0; i < count; i++) {
        size_t n = strlen(all);
        if (!strcasecmp(text, names[i])) return i;
        snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", names[i]);
    }
    return run_fail(where, "%s: '%s' is none of %s", what, text, all);
}

const struct run_dtype_info run_dtypes[RUN_DTYPE_COUNT] = {
#define X(name, bytes, npy, tm) {#name, bytes, npy, tm},
    RUN_DTYPES(X)
#undef X
};

static int dtype_of(const char *where, const char *text)
{
    const char *names[RUN_DTYPE_COUNT];
    for (int i = 0; i < RUN_DTYPE_COUNT; i++) names[i] = run_dtypes[i].name;
    return choice(where, "type", text, names, RUN_DTYPE_COUNT);
}

/* ---- launch shape ---- */

static int say_extent(const struct words *w, uint32_t out[3])
{
    uint64_t v[3] = {1, 1, 1};
    if (w->count != 2) return run_fail(w->where, "%s takes X[,Y[,Z]]", w->word[0]);
    if (list(w->where, w->word[0], w->word[1], 3, UINT32_MAX, v) < 0) return -1;
    for (int i = 0; i < 3; i++) out[i] = (uint32_t)v[i];
    return 0;
}

static int say_grid(struct words *w)
{
    return say_extent(w, w->run->next.grid);
}
static int say_block(struct words *w)
{
    return say_extent(w, w->run->next.block);
}
static int say_cluster(struct words *w)
{
    return say_extent(w, w->run->next.cluster);
}

static int say_shared(struct words *w)
{
    uint64_t v;
    if (w->count != 2) return run_fail(w->where, "shared takes a number of bytes");
    if (whole(w->where, "shared", w->word[1], UINT32_MAX, &v)) return -1;
    w->run->next.shared = (uint32_t)v;
    return 0;
}

static int say_gpu(struct words *w)
{
    static const char *const names[] = {"h200", "b200", "b300"};
    int i;
    if (w->count != 2) return run_fail(w->where, "gpu takes h200, b200 or b300");
    i = choice(w->where, "gpu", w->word[1], names, 3);
    if (i < 0) return -1;
    snprintf(w->run->gpu, sizeof w->run->gpu, "%s", names[i]);
    return 0;
}

static int say_entry(struct words *w)
{
    if (w->count != 2) return run_fail(w->where, "entry takes a name");
    return name_into(w->where, "entry", w->word[1], w->run->next.entry, RUN_NAME);
}

static int say_programmatic(struct words *w)
{
    return w->run->next.programmatic = true, 0;
}
static int say_cooperative(struct words *w)
{
    return w->run->next.cooperative = true, 0;
}
static int say_plain(struct words *w)
{
    return w->run->next.programmatic = w->run->next.cooperative = false, 0;
}

static int say_params(struct words *w)
{
    struct run_launch *n = &w->run->next;
    n->param_count = 0;
    for (int i = 1; i < w->count; i++) {
        if (n->param_count == RUN_PARAMS)
            return run_fail(w->where, "params: more than %d", RUN_PARAMS);
        if (name_into(w->where, "params", w->word[i], n->param[n->param_count++], RUN_NAME))
            return -1;
    }
    return 0;
}

static int say_launch(struct words *w)
{
    struct run *r = w->run;
    if (r->launches == RUN_LAUNCHES)
        return run_fail(w->where, "launch: more than %d launches", RUN_LAUNCHES);
    r->launch[r->launches++] = r->next;
    return 0;
}

/* ---- contents ---- */

/* INIT, the words from `at` on. */
static int say_init(const struct words *w, int at, struct run_init *init)
{
    static const char *const names[] = {"zeros", "random", "iota",  "const",
                                        "file",  "same",   "matmul"};
    static const struct {
        int least, most;
        double preset[3];
    } rules[] = {{0, 0, {0, 0, 0}}, {0, 3, {-1, 1, 1}}, {0, 2, {0, 1, 0}}, {1, 1, {0, 0, 0}},
                 {1, 1, {0, 0, 0}}, {1, 1, {0, 0, 0}},  {2, 2, {0, 0, 0}}};
    int given = w->count - at - 1, kind;
    memset(init, 0, sizeof *init);
    if (at >= w->count) return 0;
    kind = choice(w->where, "contents", w->word[at], names, 7);
    if (kind < 0) return -1;
    if (given < rules[kind].least || given > rules[kind].most)
        return run_fail(w->where, "%s takes %d to %d words, not %d", names[kind], rules[kind].least,
                        rules[kind].most, given);
    init->kind = kind;
    init->bounded = given > 0;
    memcpy(init->value, rules[kind].preset, sizeof init->value);
    if (kind == INIT_FILE)
        return name_into(w->where, "file", w->word[at + 1], init->path, sizeof init->path);
    for (int i = 0; i < given; i++) {
        if (kind < INIT_FILE) {
            if (real(w->where, names[kind], w->word[at + 1 + i], &init->value[i])) return -1;
        } else {
            init->of[i] = run_buffer_named(w->run, w->word[at + 1 + i]);
            if (init->of[i] < 0)
                return run_fail(w->where, "%s: '%s' is no buffer", names[kind],
                                w->word[at + 1 + i]);
        }
    }
    return 0;
}

static int say_buf(struct words *w)
{
    struct run *r = w->run;
    struct run_buffer b = {.count = 1};
    char *shape;
    int at, n;
    if (w->count < 3) return run_fail(w->where, "buf takes NAME TYPE[SHAPE] and its contents");
    if (name_into(w->where, "buf", w->word[1], b.name, sizeof b.name)) return -1;
    shape = strchr(w->word[2], '[');
    if (!shape || w->word[2][strlen(w->word[2]) - 1] != ']')
        return run_fail(w->where, "buf %s: '%s' is not of the form TYPE[SHAPE]", b.name,
                        w->word[2]);
    *shape++ = '\0';
    shape[strlen(shape) - 1] = '\0';
    b.dtype = dtype_of(w->where, w->word[2]);
    n = b.dtype < 0 ? -1 : list(w->where, b.name, shape, RUN_RANK, 1U << 30, b.dim);
    if (n < 0) return -1;
    b.rank = n;
    for (int i = 0; i < n; i++) {
        b.count *= b.dim[i];
        if (!b.dim[i] || b.count > UINT64_C(1) << 32)
            return run_fail(w->where, "buf %s: dimension %llu: 1 to 2^32 elements in all", b.name,
                            (unsigned long long)b.dim[i]);
    }
    if (say_init(w, 3, &b.init)) return -1;
    if (b.init.kind == INIT_MATMUL)
        return run_fail(w->where, "buf %s: matmul is an expectation", b.name);
    at = run_buffer_named(r, b.name);
    if (at < 0 && r->buffers == RUN_BUFFERS)
        return run_fail(w->where, "buf: more than %d buffers", RUN_BUFFERS);
    r->buffer[at < 0 ? r->buffers++ : at] = b;
    return 0;
}

static struct run_output *new_output(const struct words *w, bool write)
{
    struct run *r = w->run;
    int b = w->count > 1 ? run_buffer_named(r, w->word[1]) : -1;
    if (b < 0) {
        run_say(w->where, "%s: '%s' is no buffer", w->word[0], w->count > 1 ? w->word[1] : "");
        return NULL;
    }
    for (int i = 0; i < r->outputs; i++) {
        if (r->output[i].buffer == b && r->output[i].write == write) return &r->output[i];
    }
    if (r->outputs == RUN_OUTPUTS) {
        run_say(w->where, "%s: more than %d", w->word[0], RUN_OUTPUTS);
        return NULL;
    }
    r->output[r->outputs] = (struct run_output){.buffer = b, .write = write};
    return &r->output[r->outputs++];
}

static int say_expect(struct words *w)
{
    struct run_output *o = new_output(w, false);
    if (!o) return -1;
    o->tolerance = 0;
    if (w->count > 2 && !strncmp(w->word[w->count - 1], "tol=", 4)) {
        if (real(w->where, "tol", w->word[--w->count] + 4, &o->tolerance)) return -1;
    }
    if (w->count < 3) return run_fail(w->where, "expect %s: contents are missing", w->word[1]);
    return say_init(w, 2, &o->want);
}

static int say_out(struct words *w)
{
    struct run_output *o = new_output(w, true);
    if (!o) return -1;
    if (w->count != 3) return run_fail(w->where, "out takes BUF FILE.npy");
    return name_into(w->where, "out", w->word[2], o->path, sizeof o->path);
}

/* ---- tensor maps ---- */

static const char *const swizzle_names[] = {
    "none", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"};
static const char *const interleave_names[] = {"none", "16B", "32B"};
static const char *const l2_names[] = {"none", "64B", "128B", "256B"};
static const char *const oob_names[] = {"zero", "nan"};
/* In the order of hewn_tensormap_dtype. */
static const char *const type_names[] = {
    "u8",  "u16",  "u32",     "s32",  "u64",      "s64",          "f16",           "f32",
    "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B"};
#define COUNT(names) (int)(sizeof(names) / sizeof(names)[0])

/* As the buffer lies in memory. */
static void map_defaults(struct run_map *m, const struct run_buffer *b)
{
    uint64_t bytes = run_dtypes[b->dtype].bytes;
    m->tm_dtype = run_dtypes[b->dtype].tm;
    m->rank = b->rank;
    for (int i = 0; i < b->rank; i++) {
        m->dim[i] = b->dim[b->rank - 1 - i];
        bytes *= m->dim[i];
        if (i + 1 < b->rank) m->stride[i] = bytes;
    }
}

static int corner(const char *where, const char *key, const char *value, int rank, int out[3])
{
    char *end;
    for (int i = 0; i < rank - 2; i++, value = *end == ',' ? end + 1 : end) {
        out[i] = (int)strtol(value, &end, 0);
        if (end == value || (*end && *end != ','))
            return run_fail(where, "%s: needs %d numbers (spatial dimensions)", key, rank - 2);
    }
    return *value ? run_fail(where, "%s: needs %d numbers (spatial dimensions)", key, rank - 2) : 0;
}

static int map_list32(const struct words *w, const char *key, const char *value, int rank,
                      uint32_t *out)
{
    uint64_t v[RUN_RANK];
    int n = list(w->where, key, value, RUN_RANK, UINT32_MAX, v);
    if (n < 0) return -1;
    if (n != rank) return run_fail(w->where, "%s: %d numbers for rank %d", key, n, rank);
    for (int i = 0; i < n; i++) out[i] = (uint32_t)v[i];
    return 0;
}

static int map_shape(const struct words *w, const char *key, const char *value, struct run_map *m)
{
    uint64_t v[RUN_RANK];
    int n = list(w->where, key, value, RUN_RANK, UINT64_MAX, v);
    if (n < 0) return -1;
    if (!strcmp(key, "dims")) {
        m->rank = n;
        memcpy(m->dim, v, sizeof v);
        return 0;
    }
    if (n != m->rank - 1)
        return run_fail(w->where, "strides: %d numbers for rank %d, want %d", n, m->rank,
                        m->rank - 1);
    memcpy(m->stride, v, (size_t)n * sizeof *v);
    return 0;
}

static int map_number(const struct words *w, const char *key, const char *value, struct run_map *m)
{
    uint64_t v;
    bool offset = !strcmp(key, "offset");
    if (whole(w->where, key, value, offset ? UINT64_MAX : UINT32_MAX, &v)) return -1;
    if (offset)
        m->offset = v;
    else if (!strcmp(key, "channels"))
        m->channels = (uint32_t)v;
    else
        m->pixels = (uint32_t)v;
    return 0;
}

static int map_key(const struct words *w, const char *key, const char *value, struct run_map *m)
{
    static const struct {
        const char *key;
        const char *const *names;
        int count;
        size_t field;
    } modes[] = {{"swizzle", swizzle_names, COUNT(swizzle_names),
                  offsetof(struct run_map, swizzle)},
                 {"interleave", interleave_names, COUNT(interleave_names),
                  offsetof(struct run_map, interleave)},
                 {"l2", l2_names, COUNT(l2_names), offsetof(struct run_map, l2)},
                 {"oob", oob_names, COUNT(oob_names), offsetof(struct run_map, oob)},
                 {"type", type_names, COUNT(type_names), offsetof(struct run_map, tm_dtype)}};
    for (int i = 0; i < COUNT(modes); i++) {
        int n;
        if (strcmp(key, modes[i].key)) continue;
        n = choice(w->where, key, value, modes[i].names, modes[i].count);
        if (n >= 0) memcpy((char *)m + modes[i].field, &n, sizeof n);
        return n < 0 ? -1 : 0;
    }
    if (!strcmp(key, "dims") || !strcmp(key, "strides")) return map_shape(w, key, value, m);
    if (!strcmp(key, "box")) return map_list32(w, key, value, m->rank, m->box);
    if (!strcmp(key, "step")) return map_list32(w, key, value, m->rank, m->step);
    if (!strcmp(key, "lower") || !strcmp(key, "upper")) {
        m->im2col = true;
        return corner(w->where, key, value, m->rank, *key == 'l' ? m->lower : m->upper);
    }
    if (!strcmp(key, "offset") || !strcmp(key, "channels") || !strcmp(key, "pixels"))
        return map_number(w, key, value, m);
    return run_fail(w->where, "map %s: '%s' is no key of a map", m->name, key);
}

static int say_map(struct words *w)
{
    struct run *r = w->run;
    struct run_map m = {0};
    int at;
    if (w->count < 3) return run_fail(w->where, "map takes NAME BUF KEY=VALUE…");
    if (name_into(w->where, "map", w->word[1], m.name, sizeof m.name)) return -1;
    m.buffer = run_buffer_named(r, w->word[2]);
    if (m.buffer < 0) return run_fail(w->where, "map %s: '%s' is no buffer", m.name, w->word[2]);
    map_defaults(&m, &r->buffer[m.buffer]);
    for (int i = 3; i < w->count; i++) {
        char *equals = strchr(w->word[i], '=');
        if (!equals)
            return run_fail(w->where, "map %s: '%s' is not of the form KEY=VALUE", m.name,
                            w->word[i]);
        *equals = '\0';
        if (map_key(w, w->word[i], equals + 1, &m)) return -1;
    }
    if (m.tm_dtype < 0)
        return run_fail(w->where, "map %s: no tensor map has elements of type %s; type= names one",
                        m.name, run_dtypes[r->buffer[m.buffer].dtype].name);
    if (!m.im2col && !m.box[0]) return run_fail(w->where, "map %s: box= is missing", m.name);
    at = run_map_named(r, m.name);
    if (at < 0 && r->maps == RUN_MAPS)
        return run_fail(w->where, "map: more than %d maps", RUN_MAPS);
    r->map[at < 0 ? r->maps++ : at] = m;
    return 0;
}

/* ---- statements ---- */

#define STATEMENTS(X) \
    X(gpu)            \
    X(entry)          \
    X(grid)           \
    X(block)          \
    X(cluster)        \
    X(shared)         \
    X(programmatic) X(cooperative) X(plain) X(buf) X(map) X(params) X(launch) X(expect) X(out)

static const struct {
    const char *word;
    int (*say)(struct words *w);
} statements[] = {
#define X(word) {#word, say_##word},
    STATEMENTS(X)
#undef X
};

bool run_is_word(const char *word)
{
    for (int i = 0; i < COUNT(statements); i++)
        if (!strcmp(statements[i].word, word)) return true;
    return false;
}

int run_statement(struct run *r, const char *where, const char *statement)
{
    struct words w = {.run = r, .where = where};
    char *save = NULL;
    bool commas;
    if (strlen(statement) >= sizeof w.text)
        return run_fail(where, "a statement is longer than %d characters", TEXT - 1);
    memcpy(w.text, statement, strlen(statement) + 1);
    commas = !strncmp(w.text + strspn(w.text, " \t"), "params", 6);
    for (char *t = strtok_r(w.text, commas ? " \t\r," : " \t\r", &save); t;
         t = strtok_r(NULL, commas ? " \t\r," : " \t\r", &save)) {
        if (w.count == WORDS) return run_fail(where, "a statement of more than %d words", WORDS);
        w.word[w.count++] = t;
    }
    if (!w.count) return 0;
    for (int i = 0; i < COUNT(statements); i++)
        if (!strcmp(statements[i].word, w.word[0])) return statements[i].say(&w);
    return run_fail(where, "'%s' begins no statement", w.word[0]);
}

static bool defined(const struct run *r, const char *name, size_t length)
{
    for (int i = 0; i < r->define_count; i++) {
        const char *d = r->defines[i];
        if (strcspn(d, "=") == length && !strncmp(d, name, length)) return true;
    }
    return false;
}

/* The statements of one note, after "//@ run"; NULL where it does not count in this run. */
static const char *note_body(const struct run *r, const char *note)
{
    size_t length;
    note += strspn(note, " ");
    if (*note == ':') return note + 1;
    length = strcspn(note, ": ");
    return note[length] == ':' && defined(r, note, length) ? note + length + 1 : NULL;
}

int run_notes(struct run *r, const char *source)
{
    static const char key[] = "//@ run";
    const char *at = source;
    for (unsigned line = 1; *at; line++) {
        const char *end = at + strcspn(at, "\n"), *body = NULL;
        char where[RUN_PATH], text[TEXT], *save = NULL;
        if (!strncmp(at, key, sizeof key - 1)) {
            snprintf(text, sizeof text, "%.*s", (int)(end - at), at);
            body = note_body(r, text + sizeof key - 1);
            if ((size_t)(end - at) >= sizeof text)
                return run_fail(r->path, "line %u is longer than %d characters", line, TEXT - 1);
        }
        snprintf(where, sizeof where, "%s:%u", r->path, line);
        if (body) {
            char copy[TEXT];
            snprintf(copy, sizeof copy, "%s", body);
            for (char *t = strtok_r(copy, ";", &save); t; t = strtok_r(NULL, ";", &save))
                if (run_statement(r, where, t)) return -1;
        }
        at = *end ? end + 1 : end;
    }
    return 0;
}
