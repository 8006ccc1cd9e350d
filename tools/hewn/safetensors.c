#include "safetensors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The format's own bound on a header. A description of more dimensions than RANK_MAX is refused. */
enum { HEADER_MAX = 100000000, LENGTH_BYTES = 8, RANK_MAX = 8, DTYPE_TEXT = 16, SHAPE_TEXT = 192 };

struct entry {
    const char *name; /* decoded, into the header's copy */
    char dtype[DTYPE_TEXT];
    int rank;
    uint64_t dim[RANK_MAX], begin, end;
};

struct file {
    const char *path;
    char *why;
    size_t why_size;
    FILE *f;
    uint64_t data, data_bytes; /* where the data begins, and how much there is */
    char *header, *at, *end;   /* the text, read in place; *end is a NUL of ours */
    struct entry *entries;
    size_t count, capacity;
};

/* Bytes of a dtype's element; 0: one that this reader does not know, whose size nobody checks. */
static const struct {
    const char *name;
    unsigned bytes;
    int dtype; /* hewn_dtype, or -1 */
} dtypes[] = {
    {"F32", 4, HEWN_F32},   {"F16", 2, HEWN_F16},
    {"BF16", 2, HEWN_BF16}, {"F64", 8, -1},
    {"I64", 8, -1},         {"U64", 8, -1},
    {"I32", 4, -1},         {"U32", 4, -1},
    {"I16", 2, -1},         {"U16", 2, -1},
    {"I8", 1, -1},          {"U8", 1, -1},
    {"BOOL", 1, -1},        {"F8_E4M3", 1, HEWN_E4M3},
    {"F8_E5M2", 1, -1},     {"C64", 8, -1},
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

__attribute__((format(printf, 2, 3))) static int refuse(const struct file *s, const char *format,
                                                        ...)
{
    va_list args;
    int n = snprintf(s->why, s->why_size, "%s: ", s->path);
    if (n > 0 && (size_t)n < s->why_size) {
        va_start(args, format);
        vsnprintf(s->why + n, s->why_size - (size_t)n, format, args);
        va_end(args);
    }
    return -1;
}

/* ---- JSON (RFC 8259), as much as the format uses: objects, strings, arrays of natural numbers ---- */

static int bad_json(const struct file *s, const char *wanted)
{
    if (s->at >= s->end) return refuse(s, "the header ends where %s should stand", wanted);
    return refuse(s, "header byte %zu is 0x%02x where %s should stand", (size_t)(s->at - s->header),
                  (unsigned char)*s->at, wanted);
}

/* Where in `set` the next character stands; -1: it is none of them, or the header ends. */
static int next_of(const struct file *s, const char *set)
{
    const char *found = s->at < s->end && *s->at ? strchr(set, *s->at) : NULL;
    return found ? (int)(found - set) : -1;
}

static void blanks(struct file *s)
{
    while (next_of(s, " \t\n\r") >= 0) s->at++;
}

static bool take(struct file *s, char c)
{
    blanks(s);
    if (s->at >= s->end || *s->at != c) return false;
    s->at++;
    return true;
}

/* Four hexadecimal digits, or -1. */
static int32_t hex4(struct file *s)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++, s->at++) {
        int digit = next_of(s, "0123456789abcdef0123456789ABCDEF");
        if (digit < 0) return -1;
        value = value * 16 + digit % 16;
    }
    return value;
}

static char *put_utf8(char *to, int32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

/* What follows a backslash; it is never shorter than what it stands for. NULL after a message. */
static char *take_escape(struct file *s, char *to)
{
    const int letter = next_of(s, "\"\\/bfnrtu");
    int32_t c, low;
    if (letter < 0) return bad_json(s, "an escape"), NULL;
    if (letter < 8) {
        s->at++;
        *to++ = "\"\\/\b\f\n\r\t"[letter];
        return to;
    }
    s->at++;
    c = hex4(s);
    if (c >= 0xD800 && c < 0xDC00) { /* a high surrogate: its low half must follow */
        if (s->end - s->at < 6 || s->at[0] != '\\' || s->at[1] != 'u')
            return bad_json(s, "the other half of a surrogate pair"), NULL;
        s->at += 2;
        low = hex4(s);
        c = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00) : -1;
    } else if (c >= 0xDC00 && c < 0xE000) {
        c = -1;
    }
    /* U+0000 would end a C string: a name that holds it could pass for another. */
    if (c <= 0) return bad_json(s, "the four digits of a character"), NULL;
    return put_utf8(to, c);
}

/* Bytes of the UTF-8 character at s->at; 0 where there is none (overlong forms, surrogates and what is
 * above U+10FFFF are none). */
static size_t utf8_length(const struct file *s)
{
    const unsigned char *c = (const unsigned char *)s->at;
    size_t left = (size_t)(s->end - s->at), n = c[0] < 0x80   ? 1
                                                : c[0] < 0xE0 ? 2
                                                : c[0] < 0xF0 ? 3
                                                              : 4;
    if (c[0] < 0x20 || (c[0] >= 0x80 && c[0] < 0xC2) || c[0] > 0xF4 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((c[i] & 0xC0) != 0x80) return 0;
    if ((c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xED && c[1] > 0x9F) ||
        (c[0] == 0xF0 && c[1] < 0x90) || (c[0] == 0xF4 && c[1] > 0x8F))
        return 0;
    return n;
}

/* A string, decoded where it stands and ended by a NUL. */
static int take_string(struct file *s, const char **out)
{
    char *to;
    if (!take(s, '"')) return bad_json(s, "a string");
    *out = to = s->at;
    while (s->at < s->end && *s->at != '"') {
        size_t n;
        if (*s->at == '\\') {
            s->at++;
            to = take_escape(s, to);
            if (!to) return -1;
            continue;
        }
        n = utf8_length(s);
        if (!n) return bad_json(s, "a character of UTF-8, none below 0x20,");
        memmove(to, s->at, n);
        to += n;
        s->at += n;
    }
    if (s->at >= s->end) return bad_json(s, "the end of a string");
    s->at++;
    *to = '\0';
    return 0;
}

static int take_number(struct file *s, uint64_t *out)
{
    const uint64_t most = UINT64_C(1) << 50;
    char *start;
    blanks(s);
    start = s->at;
    for (*out = 0; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
        *out = *out * 10 + (uint64_t)(*s->at - '0');
        if (*out > most)
            return refuse(s, "header byte %zu: a number above 2^50", (size_t)(start - s->header));
    }
    if (s->at == start || (*start == '0' && s->at > start + 1)) {
        s->at = start;
        return bad_json(s, "a natural number");
    }
    return 0;
}

/* [1, 2, …]: at most `most` numbers. Their count, or -1. */
static int take_numbers(struct file *s, uint64_t *out, int most)
{
    int n = 0;
    if (!take(s, '[')) return bad_json(s, "'['");
    if (take(s, ']')) return 0;
    do {
        if (n == most)
            return refuse(s, "header byte %zu: more than %d numbers", (size_t)(s->at - s->header),
                          most);
        if (take_number(s, &out[n++])) return -1;
    } while (take(s, ','));
    return take(s, ']') ? n : bad_json(s, "',' or ']'");
}

/* ---- the header ---- */

static int take_metadata(struct file *s)
{
    const char *text;
    if (!take(s, '{')) return bad_json(s, "the object of __metadata__");
    if (take(s, '}')) return 0;
    do {
        if (take_string(s, &text)) return -1;
        if (!take(s, ':')) return bad_json(s, "':'");
        if (take_string(s, &text)) return -1;
    } while (take(s, ','));
    return take(s, '}') ? 0 : bad_json(s, "',' or '}'");
}

enum member { DTYPE = 1, SHAPE = 2, OFFSETS = 4, MEMBERS = 7 };

static int take_member(struct file *s, struct entry *e, unsigned *seen)
{
    const char *key = "", *text = "";
    uint64_t offsets[2];
    unsigned member;
    if (take_string(s, &key)) return -1;
    member = !strcmp(key, "dtype")          ? DTYPE
             : !strcmp(key, "shape")        ? SHAPE
             : !strcmp(key, "data_offsets") ? OFFSETS
                                            : 0;
    if (!member)
        return refuse(s, "tensor '%s': '%.40s' is none of dtype, shape, data_offsets", e->name,
                      key);
    if (*seen & member) return refuse(s, "tensor '%s': %s twice", e->name, key);
    *seen |= member;
    if (!take(s, ':')) return bad_json(s, "':'");
    if (member == DTYPE) {
        if (take_string(s, &text)) return -1;
        if (strlen(text) >= sizeof e->dtype)
            return refuse(s, "tensor '%s': dtype '%.40s' is unknown", e->name, text);
        strcpy(e->dtype, text);
    } else if (member == SHAPE) {
        e->rank = take_numbers(s, e->dim, RANK_MAX);
        return e->rank < 0 ? -1 : 0;
    } else {
        int n = take_numbers(s, offsets, 2);
        if (n < 0) return -1;
        if (n != 2)
            return refuse(s, "tensor '%s': data_offsets holds %d numbers, not 2", e->name, n);
        e->begin = offsets[0];
        e->end = offsets[1];
    }
    return 0;
}

static int take_tensor(struct file *s, struct entry *e)
{
    unsigned seen = 0;
    if (!take(s, '{')) return bad_json(s, "a tensor's object");
    do {
        if (take_member(s, e, &seen)) return -1;
    } while (take(s, ','));
    if (!take(s, '}')) return bad_json(s, "',' or '}'");
    if (seen != MEMBERS)
        return refuse(s, "tensor '%s' has no %s", e->name,
                      !(seen & DTYPE)   ? "dtype"
                      : !(seen & SHAPE) ? "shape"
                                        : "data_offsets");
    return 0;
}

static struct entry *new_entry(struct file *s)
{
    if (s->count == s->capacity) {
        size_t wanted = s->capacity ? 2 * s->capacity : 64;
        struct entry *grown = realloc(s->entries, wanted * sizeof *grown);
        if (!grown) return refuse(s, "no memory for %zu tensors", wanted), NULL;
        s->entries = grown;
        s->capacity = wanted;
    }
    s->entries[s->count] = (struct entry){.rank = 0};
    return &s->entries[s->count++];
}

static int parse_header(struct file *s)
{
    const char *name = "";
    struct entry *e;
    if (s->at >= s->end || *s->at != '{') return bad_json(s, "'{'");
    s->at++;
    if (!take(s, '}')) {
        do {
            if (take_string(s, &name)) return -1;
            if (!take(s, ':')) return bad_json(s, "':'");
            if (!strcmp(name, "__metadata__")) {
                if (take_metadata(s)) return -1;
                continue;
            }
            e = new_entry(s);
            if (!e) return -1;
            e->name = name;
            if (take_tensor(s, e)) return -1;
        } while (take(s, ','));
        if (!take(s, '}')) return bad_json(s, "',' or '}'");
    }
    blanks(s);
    return s->at == s->end ? 0 : bad_json(s, "nothing but blanks");
}

/* ---- what the descriptions must add up to ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int by_offset(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int dtype_index(const char *name)
{
    for (int i = 0; i < DTYPES; i++)
        if (!strcmp(dtypes[i].name, name)) return i;
    return -1;
}

static int check_entry(const struct file *s, const struct entry *e, uint64_t expected)
{
    int type = dtype_index(e->dtype);
    uint64_t bytes = type < 0 ? 0 : npy_bytes(dtypes[type].bytes, e->rank, e->dim);
    char shape[SHAPE_TEXT];
    if (e->begin != expected)
        return refuse(s,
                      "tensor '%s' begins at byte %llu of the data, the one before it ends at %llu",
                      e->name, (unsigned long long)e->begin, (unsigned long long)expected);
    if (e->end < e->begin || e->end > s->data_bytes)
        return refuse(s, "tensor '%s': data_offsets %llu to %llu, the data has %llu bytes", e->name,
                      (unsigned long long)e->begin, (unsigned long long)e->end,
                      (unsigned long long)s->data_bytes);
    if (type < 0 || e->end - e->begin == bytes) return 0;
    npy_shape_text(shape, sizeof shape, e->rank, e->dim);
    return refuse(s, "tensor '%s': %s of shape %s is not %llu bytes", e->name, e->dtype, shape,
                  (unsigned long long)(e->end - e->begin));
}

static int check_entries(struct file *s)
{
    uint64_t expected = 0;
    if (s->count) qsort(s->entries, s->count, sizeof *s->entries, by_name);
    for (size_t i = 1; i < s->count; i++)
        if (!by_name(&s->entries[i - 1], &s->entries[i]))
            return refuse(s, "tensor '%s' is described twice", s->entries[i].name);
    if (s->count) qsort(s->entries, s->count, sizeof *s->entries, by_offset);
    for (size_t i = 0; i < s->count; i++) {
        if (check_entry(s, &s->entries[i], expected)) return -1;
        expected = s->entries[i].end;
    }
    if (expected != s->data_bytes)
        return refuse(s, "the tensors end at byte %llu of the data, which has %llu",
                      (unsigned long long)expected, (unsigned long long)s->data_bytes);
    return 0;
}

/* ---- reading ---- */

static int read_header(struct file *s)
{
    unsigned char start[LENGTH_BYTES];
    uint64_t length = 0, size;
    long long end;
    if (fseeko(s->f, 0, SEEK_END) || (end = (long long)ftello(s->f)) < 0 ||
        fseeko(s->f, 0, SEEK_SET))
        return refuse(s, "%s", strerror(errno));
    size = (uint64_t)end;
    if (fread(start, 1, sizeof start, s->f) != sizeof start)
        return refuse(s, "not a .safetensors file (%llu bytes; a header's length takes 8)",
                      (unsigned long long)size);
    for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)start[i] << 8 * i;
    if (length > HEADER_MAX)
        return refuse(s, "not a .safetensors file: a header of %llu bytes, at most %d are allowed",
                      (unsigned long long)length, HEADER_MAX);
    if (length > size - LENGTH_BYTES)
        return refuse(s, "the header says it has %llu bytes, the file has %llu behind its length",
                      (unsigned long long)length, (unsigned long long)(size - LENGTH_BYTES));
    s->header = malloc((size_t)length + 1);
    if (!s->header)
        return refuse(s, "no memory for a header of %llu bytes", (unsigned long long)length);
    if (fread(s->header, 1, (size_t)length, s->f) != length)
        return refuse(s, "the file ends inside its header");
    s->at = s->header;
    s->end = s->header + length;
    *s->end = '\0';
    s->data = LENGTH_BYTES + length;
    s->data_bytes = size - s->data;
    return 0;
}

/* "'a', 'b', …" of the names that there are. */
static void list_names(const struct file *s, char *out, size_t size)
{
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < s->count && used + 8 < size; i++) {
        int n = snprintf(out + used, size - used, "%s'%.40s'", i ? ", " : "", s->entries[i].name);
        used += n > 0 ? (size_t)n : 0;
        if (i + 1 < s->count && used + 60 > size) {
            snprintf(out + used, size - used, ", …");
            return;
        }
    }
}

static const struct entry *find(const struct file *s, const char *name)
{
    char names[240];
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->entries[i].name, name)) return &s->entries[i];
    list_names(s, names, sizeof names);
    refuse(s, "no tensor '%s'; there are %zu: %s", name, s->count, names);
    return NULL;
}

static int read_tensor(const struct file *s, const struct entry *e, struct npy *out)
{
    int type = dtype_index(e->dtype);
    size_t bytes = (size_t)(e->end - e->begin);
    char shape[SHAPE_TEXT];
    npy_shape_text(shape, sizeof shape, e->rank, e->dim);
    if (type < 0 || dtypes[type].dtype < 0)
        return refuse(s, "tensor '%s': dtype %s is none of F32, F16, BF16 and F8_E4M3", e->name,
                      e->dtype);
    if (e->rank != out->rank)
        return refuse(s, "tensor '%s' has shape %s, want %d dimensions", e->name, shape, out->rank);
    for (int i = 0; i < e->rank; i++) {
        if (!e->dim[i])
            return refuse(s, "tensor '%s' has shape %s: each dimension must be at least 1", e->name,
                          shape);
        out->dim[i] = e->dim[i];
    }
    out->dtype = dtypes[type].dtype;
    out->data = malloc(bytes);
    if (!out->data) return refuse(s, "no memory for the %zu bytes of tensor '%s'", bytes, e->name);
    if (fseeko(s->f, (off_t)(s->data + e->begin), SEEK_SET) ||
        fread(out->data, 1, bytes, s->f) != bytes)
        return refuse(s, "tensor '%s': %s", e->name, errno ? strerror(errno) : "the file ends");
    return 0;
}

int safetensors_read(const char *path, const char *name, int rank, struct npy *out, char *why,
                     size_t why_size)
{
    struct file s = {.path = path, .why = why, .why_size = why_size};
    const struct entry *e;
    int rc = -1;
    *out = (struct npy){.rank = rank};
    s.f = fopen(path, "rb");
    if (!s.f) return refuse(&s, "%s", strerror(errno));
    errno = 0;
    if (!read_header(&s) && !parse_header(&s) && !check_entries(&s) && (e = find(&s, name)) != NULL)
        rc = read_tensor(&s, e, out);
    fclose(s.f);
    free(s.header);
    free(s.entries);
    if (rc) npy_free(out);
    return rc;
}
