#include "npy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
enum { HEADER_MAX = 1 << 16, SHAPE_TEXT = 128 };

struct reader {
    const char *path;
    char *why;
    size_t why_size;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reader *r, const char *format,
                                                        ...)
{
    va_list args;
    int n = snprintf(r->why, r->why_size, "%s: ", r->path);
    if (n > 0 && (size_t)n < r->why_size) {
        va_start(args, format);
        vsnprintf(r->why + n, r->why_size - (size_t)n, format, args);
        va_end(args);
    }
    return -1;
}

/* The value after 'key': in the header dict, spaces skipped; NULL when the key is absent. */
static const char *value_of(const char *header, const char *key)
{
    char quoted[32];
    const char *at;
    snprintf(quoted, sizeof quoted, "'%s'", key);
    at = strstr(header, quoted);
    if (!at) return NULL;
    at += strlen(quoted);
    at += strspn(at, " ");
    if (*at++ != ':') return NULL;
    return at + strspn(at, " ");
}

/* `wanted`: "<i4" and the like, of which `dtype` says nothing; NULL: a float type. */
static int parse_dtype(const struct reader *r, const char *header, const char *wanted, int *dtype)
{
    const char *descr = value_of(header, "descr");
    if (!descr) return refuse(r, "the header has no 'descr'");
    if (wanted) {
        if (descr[0] == '\'' && !strncmp(descr + 1, wanted, strlen(wanted))) return 0;
        return refuse(r, "dtype %.*s, want '%s'", (int)strcspn(descr, ",}"), descr, wanted);
    }
    if (!strncmp(descr, "'<f4'", 5))
        *dtype = HEWN_F32;
    else if (!strncmp(descr, "'<f2'", 5))
        *dtype = HEWN_F16;
    else
        return refuse(r, "dtype %.*s is neither '<f4' nor '<f2' (float32 and float16 are read)",
                      (int)strcspn(descr, ",}"), descr);
    return 0;
}

/* What a rank is called in messages. */
static const char *const rank_names[NPY_RANK + 1] = {"a scalar", "a vector", "a matrix",
                                                     "a stack of matrices", "[B,S,H,D]"};

static int parse_shape(const struct reader *r, const char *header, struct npy *out)
{
    const char *at = value_of(header, "shape");
    char text[SHAPE_TEXT];
    int rank = 0;
    if (!at || *at++ != '(') return refuse(r, "the header has no 'shape' tuple");
    while (*(at += strspn(at, " ,")) && *at != ')') {
        char *end;
        errno = 0;
        long long extent = strtoll(at, &end, 10);
        if (end == at) return refuse(r, "the shape holds '%.8s', not a number", at);
        if (errno || extent < 0 || extent > INT64_C(1) << 40)
            return refuse(r, "dimension %d is %.*s, outside 0 … 2^40", rank, (int)(end - at), at);
        if (rank < out->rank) out->dim[rank] = (uint64_t)extent;
        rank++;
        at = end;
    }
    if (rank != out->rank)
        return refuse(r, "the array has %d dimensions, %s has %d", rank, rank_names[out->rank],
                      out->rank);
    npy_shape_text(text, sizeof text, rank, out->dim);
    for (int i = 0; i < rank; i++)
        if (!out->dim[i]) return refuse(r, "shape %s: each dimension must be at least 1", text);
    return 0;
}

static int parse_header(const struct reader *r, const char *header, const char *descr,
                        struct npy *out)
{
    const char *order = value_of(header, "fortran_order");
    if (parse_dtype(r, header, descr, &out->dtype) || parse_shape(r, header, out)) return -1;
    if (!order || strncmp(order, "False", 5))
        return refuse(r, "fortran_order must be False (rows contiguous)");
    return 0;
}

/* Reads magic, version and header text (NUL-terminated into `header`). */
static int read_header(const struct reader *r, FILE *f, char *header)
{
    unsigned char start[12];
    size_t prefix = 10, length;
    if (fread(start, 1, 10, f) != 10 || memcmp(start, magic, sizeof magic))
        return refuse(r, "not a .npy file (it does not begin with \\x93NUMPY)");
    if (start[6] < 1 || start[6] > 3)
        return refuse(r, ".npy version %d.%d is not 1.0, 2.0 or 3.0", start[6], start[7]);
    if (start[6] > 1) {
        if (fread(start + 10, 1, 2, f) != 2) return refuse(r, "the file ends inside its header");
        prefix = 12;
    }
    length = (size_t)start[8] | (size_t)start[9] << 8;
    if (prefix == 12) length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    if (length >= HEADER_MAX)
        return refuse(r, "header length %zu is not below %d bytes", length, HEADER_MAX);
    if (fread(header, 1, length, f) != length) return refuse(r, "the file ends inside its header");
    header[length] = '\0';
    return 0;
}

uint64_t npy_bytes(size_t element, int rank, const uint64_t *dim)
{
    uint64_t bytes = element;
    for (int i = 0; i < rank; i++) {
        if (dim[i] && bytes > (UINT64_C(1) << 50) / dim[i]) return UINT64_MAX;
        bytes *= dim[i];
    }
    return bytes;
}

static int read_data(const struct reader *r, FILE *f, size_t element, struct npy *out)
{
    struct stat st;
    char shape[SHAPE_TEXT];
    long at = ftell(f);
    uint64_t want = npy_bytes(element, out->rank, out->dim), have;
    npy_shape_text(shape, sizeof shape, out->rank, out->dim);
    if (want == UINT64_MAX) return refuse(r, "shape %s has too many elements", shape);
    if (at < 0 || fstat(fileno(f), &st)) return refuse(r, "%s", strerror(errno));
    have = (uint64_t)(st.st_size - at);
    if (have != want)
        return refuse(r, "the header says %llu bytes of data for shape %s, the file has %llu",
                      (unsigned long long)want, shape, (unsigned long long)have);
    out->data = malloc((size_t)want);
    if (!out->data) return refuse(r, "no memory for %llu bytes", (unsigned long long)want);
    if (fread(out->data, 1, (size_t)want, f) != want) return refuse(r, "%s", strerror(errno));
    return 0;
}

/* `descr` NULL: of a float type, whose size is not `element` but its own. */
static int read_array(const char *path, const char *descr, size_t element, int rank,
                      struct npy *out, char *why, size_t why_size)
{
    struct reader r = {path, why, why_size};
    char *header = malloc(HEADER_MAX);
    FILE *f = fopen(path, "rb");
    int rc = -1;
    *out = (struct npy){.rank = rank};
    if (!f)
        refuse(&r, "%s", strerror(errno));
    else if (!header)
        refuse(&r, "no memory for its header");
    else if (!read_header(&r, f, header) && !parse_header(&r, header, descr, out))
        rc = read_data(&r, f, descr ? element : hewn_dtype_size(out->dtype), out);
    if (f) fclose(f);
    free(header);
    if (rc) npy_free(out);
    return rc;
}

int npy_read(const char *path, int rank, struct npy *out, char *why, size_t why_size)
{
    return read_array(path, NULL, 0, rank, out, why, why_size);
}

int npy_read_as(const char *path, const char *descr, size_t element, int rank, struct npy *out,
                char *why, size_t why_size)
{
    return read_array(path, descr, element, rank, out, why, why_size);
}

void npy_free(struct npy *x)
{
    free(x->data);
    x->data = NULL;
}

void npy_shape_text(char *out, size_t size, int rank, const uint64_t *dim)
{
    int n = snprintf(out, size, "(");
    for (int i = 0; i < rank; i++)
        n += snprintf(out + n, size - (size_t)n, "%llu%s", (unsigned long long)dim[i],
                      rank == 1      ? ","
                      : i + 1 < rank ? ", "
                                     : "");
    snprintf(out + n, size - (size_t)n, ")");
}

/* What npy_read_into asks of a header. */
static int parse_exactly(const struct reader *r, const char *header, const char *descr, int rank,
                         const uint64_t *dim)
{
    const char *type = value_of(header, "descr"), *shape = value_of(header, "shape"),
               *order = value_of(header, "fortran_order");
    char want[SHAPE_TEXT];
    npy_shape_text(want, sizeof want, rank, dim);
    if (!type || !shape || !order)
        return refuse(r, "the header lacks 'descr', 'shape' or 'fortran_order'");
    /* The first character is the byte order, which a type of opaque bytes lacks. */
    if (strncmp(type + 2, descr + 1, 2) || (type[1] != descr[0] && type[1] != '|'))
        return refuse(r, "dtype %.*s, want '%s'", (int)strcspn(type, ",}"), type, descr);
    if (strncmp(shape, want, strlen(want)))
        return refuse(r, "shape %.*s, want %s", (int)strcspn(shape, ")") + 1, shape, want);
    if (strncmp(order, "False", 5))
        return refuse(r, "fortran_order must be False (rows contiguous)");
    return 0;
}

int npy_read_into(const char *path, const char *descr, size_t element, int rank,
                  const uint64_t *dim, void *data, char *why, size_t why_size)
{
    struct reader r = {path, why, why_size};
    char *header = malloc(HEADER_MAX);
    FILE *f = fopen(path, "rb");
    uint64_t bytes = npy_bytes(element, rank, dim);
    int rc = -1;
    if (!f)
        refuse(&r, "%s", strerror(errno));
    else if (!header)
        refuse(&r, "no memory for its header");
    else if (!read_header(&r, f, header) && !parse_exactly(&r, header, descr, rank, dim))
        rc =
            fread(data, 1, (size_t)bytes, f) == bytes && fgetc(f) == EOF
                ? 0
                : refuse(&r, "does not hold exactly %llu bytes of data", (unsigned long long)bytes);
    if (f) fclose(f);
    free(header);
    return rc;
}

/* Header padded with spaces so that the data starts at a multiple of 64. */
static int write_all(FILE *f, const char *descr, size_t element, int rank, const uint64_t *dim,
                     const void *data)
{
    char header[256], shape[SHAPE_TEXT];
    size_t bytes = (size_t)npy_bytes(element, rank, dim);
    int n;
    npy_shape_text(shape, sizeof shape, rank, dim);
    n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                 descr, shape);
    size_t padded = ((size_t)n + 1 + 10 + 63) / 64 * 64 - 10;
    unsigned char start[10];
    memset(header + n, ' ', padded - (size_t)n);
    header[padded - 1] = '\n';
    memcpy(start, magic, sizeof magic);
    start[6] = 1;
    start[7] = 0;
    start[8] = (unsigned char)(padded & 0xFF);
    start[9] = (unsigned char)(padded >> 8);
    return fwrite(start, 1, sizeof start, f) == sizeof start &&
           fwrite(header, 1, padded, f) == padded && fwrite(data, 1, bytes, f) == bytes;
}

int npy_write(const char *path, int dtype, int rank, const uint64_t *dim, const void *data,
              char *why, size_t why_size)
{
    static const char *const descr[] = {"<f4", "<f2", "<V2"};
    return npy_write_array(path, descr[dtype], hewn_dtype_size(dtype), rank, dim, data, why,
                           why_size);
}

int npy_write_array(const char *path, const char *descr, size_t element, int rank,
                    const uint64_t *dim, const void *data, char *why, size_t why_size)
{
    struct reader r = {path, why, why_size};
    char *partial = malloc(strlen(path) + 16);
    struct stat st;
    bool in_place = lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
    FILE *f;
    int rc = -1;
    if (!partial) return refuse(&r, "no memory for its name");
    sprintf(partial, "%s%s", path, in_place ? "" : ".partial");
    f = fopen(partial, "wb");
    if (!f) {
        refuse(&r, "%s", strerror(errno));
    } else {
        int written = write_all(f, descr, element, rank, dim, data);
        if (fclose(f) || !written || (!in_place && rename(partial, path))) {
            refuse(&r, "%s", strerror(errno));
            if (!in_place) unlink(partial);
        } else {
            rc = 0;
        }
    }
    free(partial);
    return rc;
}
