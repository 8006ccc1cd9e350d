/* Products with 4-bit weights: the rules of a description, the description in bytes. */
#include "w4.h"

#include "error.h"

#include <string.h>

static const uint64_t stride_end = UINT64_C(1) << 40; /* bytes; TMA's own limit */

enum { TMA_ALIGN = 16 };

static const char *const formats[] = {[HEWN_W4_INT4] = "int4", [HEWN_W4_UINT4] = "uint4"};

const char *hewn_w4_format_name(int format)
{
    const size_t count = sizeof formats / sizeof *formats;
    return format >= 0 && (size_t)format < count ? formats[format] : NULL;
}

static int check_range(const char *name, int64_t value, int64_t least, int64_t most,
                       hewn_error *err)
{
    if (value >= least && value <= most) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is not in %lld..%lld", name,
                     (long long)value, (long long)least, (long long)most);
}

static int check_dtype(const char *name, int dtype, int may_be_f32, hewn_error *err)
{
    const char *is = hewn_dtype_name(dtype);
    if (dtype == HEWN_BF16 || dtype == HEWN_F16 || (may_be_f32 && dtype == HEWN_F32))
        return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: dtype %d (%s) is none of %sbf16, f16", name,
                     dtype, is ? is : "unknown", may_be_f32 ? "f32, " : "");
}

/* A stride of `given` elements, 0: the row's own length, in bytes; `row` bytes at least where there
 * are several rows. */
static int check_stride(const char *name, int64_t given, uint32_t length, size_t element,
                        uint32_t rows, uint64_t *bytes, hewn_error *err)
{
    if (given < 0 || (uint64_t)given > (stride_end - 1) / element)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: %lld elements of %zu B is negative or not below 2^40 B", name,
                         (long long)given, element);
    *bytes = (given ? (uint64_t)given : length) * element;
    if (rows == 1 || *bytes >= (uint64_t)length * element) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is less than the row of %u elements", name,
                     (long long)given, length);
}

/* Bytes from the first row to the end of the last. */
static int take_span(const char *name, uint32_t rows, uint64_t step, uint64_t row, uint64_t *span,
                     hewn_error *err)
{
    if (!__builtin_mul_overflow(rows - UINT64_C(1), step, span) &&
        !__builtin_add_overflow(*span, row, span))
        return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_LIMIT, "%s: reaches past 2^64 B", name);
}

static int check_types(const hewn_w4_desc *d, struct w4_problem *p, hewn_error *err)
{
    int status = check_dtype("in", d->in, 0, err);
    if (!status) status = check_dtype("out", d->out, 1, err);
    if (!status) status = check_range("format", d->format, HEWN_W4_INT4, HEWN_W4_UINT4, err);
    if (status) return status;
    p->in = d->in;
    p->out = d->out;
    p->format = d->format;
    p->zeros = d->format == HEWN_W4_UINT4;
    return HEWN_OK;
}

static int check_group(const hewn_w4_desc *d, struct w4_problem *p, hewn_error *err)
{
    if (d->group != 0 && d->group != 32 && d->group != 64 && d->group != 128)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "group: %lld is none of 32, 64, 128, 0",
                         (long long)d->group);
    p->whole_row = !d->group;
    p->group = d->group ? (uint32_t)d->group : W4_BLOCK_K;
    p->groups = W4_BLOCK_K / p->group;
    p->given_groups = d->group ? (p->k + p->group - 1) / p->group : 1;
    return HEWN_OK;
}

static int check_choice(const hewn_w4_desc *d, struct w4_problem *p, hewn_error *err)
{
    int status = check_range("parts", d->parts, 0, SM90A_W4_PARTS, err);
    if (!status && d->parts > p->k_blocks)
        status = hewn_fail(err, HEWN_ERR_ARGUMENT,
                           "parts: %u are more than the %u blocks of 128 in k = %u", d->parts,
                           p->k_blocks, p->k);
    if (!status) status = check_range("invariant", d->invariant, 0, 1, err);
    if (status) return status;
    if (d->tile % W4_CHUNK || d->tile > SM90A_W4_CHUNKS * W4_CHUNK)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "tile: %u is none of 64, 128, 192, 256, 0",
                         d->tile);
    p->parts = d->parts;
    p->tile = d->tile / W4_CHUNK;
    p->invariant = d->invariant;
    return HEWN_OK;
}

static int check_rows(const hewn_w4_desc *d, struct w4_problem *p, hewn_error *err)
{
    int status = check_stride("x_row", d->x_row, p->k, 2, p->m, &p->x_row, err);
    if (!status && p->x_row % TMA_ALIGN)
        status = hewn_fail(err, HEWN_ERR_ARGUMENT, "x_row: %llu B is not a multiple of %d B",
                           (unsigned long long)p->x_row, TMA_ALIGN);
    size_t element = hewn_dtype_size(p->out);
    if (!status) status = check_stride("d_row", d->d_row, p->n, element, p->m, &p->d_row, err);
    if (status) return status;
    status = take_span("x", p->m, p->x_row, UINT64_C(2) * p->k, &p->x_span, err);
    if (!status) status = take_span("d", p->m, p->d_row, (uint64_t)p->n * element, &p->d_span, err);
    if (status) return status;
    p->packed = (uint64_t)p->k_blocks * p->chunks * W4_BLOCK_BYTES(p->groups, (uint32_t)p->zeros);
    return HEWN_OK;
}

int hewn_w4_check(const hewn_w4_desc *d, struct w4_problem *p, hewn_error *err)
{
    memset(p, 0, sizeof *p);
    int status = check_range("m", d->m, 1, INT32_MAX, err);
    if (!status) status = check_range("n", d->n, 1, INT32_MAX, err);
    if (!status) status = check_range("k", d->k, 1, INT32_MAX, err);
    if (!status) status = check_types(d, p, err);
    if (status) return status;
    p->m = (uint32_t)d->m;
    p->n = (uint32_t)d->n;
    p->k = (uint32_t)d->k;
    p->k_blocks = (p->k + W4_BLOCK_K - 1) / W4_BLOCK_K;
    p->chunks = (p->n + W4_CHUNK - 1) / W4_CHUNK;
    status = check_group(d, p, err);
    if (!status) status = check_choice(d, p, err);
    return status ? status : check_rows(d, p, err);
}
