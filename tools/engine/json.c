#include "json.h"
#include "utf8.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB = 1 << 16, FIRST_NAMES = 64 };

/* Memory that is released whole. */
struct slab {
    struct slab *older;
    size_t used, size;
    _Alignas(16) char bytes[];
};

struct json_document {
    struct slab *slabs;
    struct json root;
};

struct reader {
    struct json_document *document;
    const char *what, *begin, *at, *end;
    struct problem *p;
    /* Names of the object that is being closed, to be sorted. */
    const struct json **names;
    size_t names_size;
};

static void *take_memory(struct reader *r, size_t size)
{
    struct slab *s = r->document->slabs;
    void *result;
    size = (size + 15) & ~(size_t)15;
    if (!s || s->size - s->used < size) {
        size_t room = size > SLAB ? size : SLAB;
        s = malloc(sizeof *s + room);
        if (!s) {
            problem(r->p, "%s: no memory for %zu more bytes", r->what, room);
            return NULL;
        }
        *s = (struct slab){.older = r->document->slabs, .size = room};
        r->document->slabs = s;
    }
    result = s->bytes + s->used;
    s->used += size;
    return result;
}

static int refuse(const struct reader *r, const char *wanted)
{
    if (r->at >= r->end) return problem(r->p, "%s ends where %s should stand", r->what, wanted);
    return problem(r->p, "%s: byte %zu is 0x%02x where %s should stand", r->what,
                   (size_t)(r->at - r->begin), (unsigned)(unsigned char)*r->at, wanted);
}

static void blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool take(struct reader *r, char c)
{
    blanks(r);
    if (r->at >= r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static int hex4(struct reader *r, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        const char c = r->at < r->end ? *r->at : ' ';
        unsigned digit;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            digit = (unsigned)((c | 32) - 'a' + 10);
        else
            return refuse(r, "a hexadecimal digit");
        *out = *out * 16 + digit;
    }
    return 0;
}

/* What follows a backslash. */
static int take_escape(struct reader *r, char **to)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *letter = r->at < r->end && *r->at ? strchr(letters, *r->at) : NULL;
    uint32_t c, low;
    if (letter) {
        r->at++;
        *(*to)++ = meant[letter - letters];
        return 0;
    }
    if (r->at >= r->end || *r->at != 'u') return refuse(r, "an escape");
    r->at++;
    if (hex4(r, &c)) return -1;
    if (c >= 0xDC00 && c < 0xE000)
        return problem(r->p, "%s: byte %zu ends a low surrogate without a high one", r->what,
                       (size_t)(r->at - r->begin));
    if (c >= 0xD800 && c < 0xDC00) {
        if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
            return refuse(r, "the other half of a surrogate pair");
        r->at += 2;
        if (hex4(r, &low)) return -1;
        if (low < 0xDC00 || low >= 0xE000)
            return problem(r->p, "%s: byte %zu ends a surrogate pair whose second half is 0x%x",
                           r->what, (size_t)(r->at - r->begin), (unsigned)low);
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    *to += utf8_put(*to, c);
    return 0;
}

/* No character is longer decoded than written, so the room between the quotes is enough. */
static int take_string(struct reader *r, const char **out, size_t *length)
{
    const char *close;
    char *to;
    if (!take(r, '"')) return refuse(r, "a string");
    for (close = r->at; close < r->end && *close != '"'; close++)
        if (*close == '\\' && close + 1 < r->end) close++;
    *out = to = take_memory(r, (size_t)(close - r->at) + 1);
    if (!to) return -1;
    while (r->at < r->end && *r->at != '"') {
        uint32_t character;
        size_t n;
        if (*r->at == '\\') {
            r->at++;
            if (take_escape(r, &to)) return -1;
            continue;
        }
        n = utf8_take(r->at, (size_t)(r->end - r->at), &character);
        if (!n || character < 0x20) return refuse(r, "a character of UTF-8, none below 0x20,");
        memcpy(to, r->at, n);
        to += n;
        r->at += n;
    }
    if (r->at >= r->end) return refuse(r, "the end of a string");
    r->at++;
    *to = '\0';
    *length = (size_t)(to - *out);
    return 0;
}

static bool digits(struct reader *r)
{
    const char *start = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
    return r->at > start;
}

static int take_number(struct reader *r, double *out)
{
    const char *start = r->at;
    char text[64];
    if (*r->at == '-') r->at++;
    if (r->at < r->end && *r->at == '0')
        r->at++;
    else if (!digits(r))
        return refuse(r, "a digit");
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        if (!digits(r)) return refuse(r, "a digit");
    }
    if (r->at < r->end && (*r->at | 32) == 'e') {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-')) r->at++;
        if (!digits(r)) return refuse(r, "a digit");
    }
    if ((size_t)(r->at - start) >= sizeof text)
        return problem(r->p, "%s: byte %zu begins a number of more than %zu characters", r->what,
                       (size_t)(start - r->begin), sizeof text - 1);
    memcpy(text, start, (size_t)(r->at - start));
    text[r->at - start] = '\0';
    *out = strtod(text, NULL);
    return 0;
}

static int take_word(struct reader *r, const char *word)
{
    const size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return refuse(r, "a value");
    r->at += length;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;
    const size_t common = x->name_length < y->name_length ? x->name_length : y->name_length;
    const int order = memcmp(x->name, y->name, common);
    if (order) return order;
    return (x->name_length > y->name_length) - (x->name_length < y->name_length);
}

/* A name that stands twice could mean either value. */
static int check_names(struct reader *r, const struct json *object)
{
    size_t n = 0;
    if (object->length < 2) return 0;
    if (object->length > r->names_size) {
        const size_t size = object->length > FIRST_NAMES ? object->length : FIRST_NAMES;
        const struct json **grown = realloc(r->names, size * sizeof *grown);
        if (!grown)
            return problem(r->p, "%s: no memory for an object of %zu names", r->what,
                           object->length);
        r->names = grown;
        r->names_size = size;
    }
    for (const struct json *e = object->in; e; e = e->next) r->names[n++] = e;
    qsort(r->names, n, sizeof *r->names, compare_names);
    for (size_t i = 1; i < n; i++)
        if (compare_names(&r->names[i - 1], &r->names[i]) == 0)
            return problem(r->p, "%s: an object has the name \"%.100s\" twice", r->what,
                           r->names[i]->name);
    return 0;
}

static int take_value(struct reader *r, struct json *out, int depth);

static int take_elements(struct reader *r, struct json *out, int depth)
{
    const char close = out->type == JSON_OBJECT ? '}' : ']';
    const struct json **link = &out->in;
    if (depth == JSON_DEPTH)
        return problem(r->p, "%s: byte %zu nests deeper than %d", r->what,
                       (size_t)(r->at - r->begin), JSON_DEPTH);
    if (take(r, close)) return 0;
    do {
        struct json *e = take_memory(r, sizeof *e);
        if (!e) return -1;
        *e = (struct json){.type = JSON_NULL};
        if (out->type == JSON_OBJECT) {
            if (take_string(r, &e->name, &e->name_length)) return -1;
            if (!take(r, ':')) return refuse(r, "':'");
        }
        if (take_value(r, e, depth + 1)) return -1;
        *link = e;
        link = &e->next;
        out->length++;
    } while (take(r, ','));
    if (!take(r, close)) return refuse(r, out->type == JSON_OBJECT ? "',' or '}'" : "',' or ']'");
    return out->type == JSON_OBJECT ? check_names(r, out) : 0;
}

static int take_value(struct reader *r, struct json *out, int depth)
{
    blanks(r);
    if (r->at >= r->end) return refuse(r, "a value");
    switch (*r->at) {
    case '{':
    case '[':
        out->type = *r->at++ == '{' ? JSON_OBJECT : JSON_ARRAY;
        return take_elements(r, out, depth);
    case '"': out->type = JSON_STRING; return take_string(r, &out->text, &out->length);
    case 't':
        out->type = JSON_BOOL;
        out->truth = true;
        return take_word(r, "true");
    case 'f': out->type = JSON_BOOL; return take_word(r, "false");
    case 'n': return take_word(r, "null");
    default: break;
    }
    if (*r->at != '-' && (*r->at < '0' || *r->at > '9')) return refuse(r, "a value");
    out->type = JSON_NUMBER;
    return take_number(r, &out->number);
}

struct json_document *json_read(const char *text, size_t length, const char *what,
                                struct problem *p)
{
    struct json_document *d = calloc(1, sizeof *d);
    struct reader r = {.document = d, .what = what, .begin = text, .at = text, .p = p};
    int failed;
    if (!d) return problem(p, "%s: no memory", what), NULL;
    r.end = text + length;
    failed = take_value(&r, &d->root, 0);
    if (!failed) {
        blanks(&r);
        if (r.at < r.end) failed = refuse(&r, "the end");
    }
    free(r.names);
    if (failed) {
        json_free(d);
        return NULL;
    }
    return d;
}

struct json_document *json_read_file(const char *path, struct problem *p)
{
    struct json_document *d = NULL;
    FILE *f = fopen(path, "rb");
    long size;
    char *text;
    if (!f) return problem(p, "%s: %s", path, strerror(errno)), NULL;
    if (fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) {
        problem(p, "%s: %s", path, strerror(errno));
        fclose(f);
        return NULL;
    }
    text = malloc((size_t)size + 1);
    if (!text)
        problem(p, "%s: no memory for its %ld bytes", path, size);
    else if (fread(text, 1, (size_t)size, f) != (size_t)size)
        problem(p, "%s: could not be read whole", path);
    else
        d = json_read(text, (size_t)size, path, p);
    free(text);
    fclose(f);
    return d;
}

void json_free(struct json_document *d)
{
    if (!d) return;
    while (d->slabs) {
        struct slab *older = d->slabs->older;
        free(d->slabs);
        d->slabs = older;
    }
    free(d);
}

const struct json *json_root(const struct json_document *d)
{
    return d ? &d->root : NULL;
}

const struct json *json_get(const struct json *object, const char *name)
{
    const size_t length = strlen(name);
    if (!object || object->type != JSON_OBJECT) return NULL;
    for (const struct json *e = object->in; e; e = e->next)
        if (e->name_length == length && memcmp(e->name, name, length) == 0) return e;
    return NULL;
}

bool json_is(const struct json *value, const char *text)
{
    return value && value->type == JSON_STRING && value->length == strlen(text) &&
           memcmp(value->text, text, value->length) == 0;
}

bool json_whole(const struct json *value, int64_t *out)
{
    const double most = 9007199254740992.0;
    if (!value || value->type != JSON_NUMBER || fabs(value->number) > most ||
        floor(value->number) < value->number)
        return false;
    *out = (int64_t)value->number;
    return true;
}

const char *json_type_name(const struct json *value)
{
    static const char *const names[] = {"null",     "true or false", "a number",
                                        "a string", "an array",      "an object"};
    return value ? names[value->type] : "absent";
}
