/* Indexer and top-k: the rules of their descriptions, the descriptions in bytes, the rules of addresses. */
#include "indexer.h"

#include "error.h"

#include <string.h>

static const uint64_t stride_end = UINT64_C(1) << 40; /* bytes; TMA's own limit */

enum { MAX_HEADS = 128, LEAST_DIM = 16, MAX_PAGE = 4096, MAX_TOPK_PAGE = (1 << 20) - 1, WORD = 4 };

static int check_range(const char *name, int64_t value, int64_t least, int64_t most,
                       hewn_error *err)
{
    if (value >= least && value <= most) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is not in %lld..%lld", name,
                     (long long)value, (long long)least, (long long)most);
}

static int check_multiple(const char *name, int64_t value, int multiple, hewn_error *err)
{
    if (value % multiple == 0) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is not a multiple of %d", name,
                     (long long)value, multiple);
}

/* A stride of `given` elements, 0: the contiguous one; at least `least` bytes where rows must not overlap. */
static int check_stride(const char *name, int64_t given, uint64_t contiguous, uint64_t element,
                        uint64_t multiple, uint64_t *bytes, hewn_error *err)
{
    if (given < 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld elements is negative", name,
                         (long long)given);
    uint64_t value = given ? (uint64_t)given : contiguous;
    if (value > (stride_end - 1) / element)
        return hewn_fail(err, given ? HEWN_ERR_ARGUMENT : HEWN_ERR_LIMIT,
                         "%s: %llu elements of %d B is not below 2^40 B", name,
                         (unsigned long long)value, (int)element);
    *bytes = value * element;
    if (*bytes % multiple)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %llu B is not a multiple of %d B", name,
                         (unsigned long long)*bytes, (int)multiple);
    return HEWN_OK;
}

/* Rows of what is written must not share bytes. */
static int check_apart(const char *name, uint64_t rows, uint64_t row, uint64_t step,
                       hewn_error *err)
{
    if (rows <= 1 || step >= row) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %llu B makes rows of %llu B overlap", name,
                     (unsigned long long)step, (unsigned long long)row);
}

/* Bytes from the first of `count` rows to the end of the last, each stride below 2^40 and count below
 * 2^31; UINT64_MAX: too many. */
static uint64_t span_of(uint64_t count, uint64_t step, uint64_t row)
{
    uint64_t span;
    if (!count || !row) return 0;
    if (__builtin_mul_overflow(count - 1, step, &span) || __builtin_add_overflow(span, row, &span))
        return UINT64_MAX;
    return span;
}

static int check_span(const char *name, uint64_t span, hewn_error *err)
{
    if (span != UINT64_MAX) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_LIMIT, "%s: reaches past 2^64 B", name);
}

static int check_rows(int64_t batch, int64_t queries, hewn_error *err)
{
    int status = check_range("batch", batch, 1, INT32_MAX, err);
    return status ? status : check_range("queries", queries, 1, INT32_MAX / batch, err);
}

/* `length` is what the pages of a sequence must hold. */
static int check_pages(int64_t page_size, int64_t pages, int64_t table_width, int64_t batch,
                       int64_t length, struct indexer_pages *out, hewn_error *err)
{
    int64_t needed = (length + page_size - 1) / page_size;
    int status = check_range("pages", pages, length > 0, INT32_MAX, err);
    if (!status) status = check_range("table_width", table_width, 0, INT32_MAX / batch, err);
    if (status) return status;
    if (table_width < needed)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "table_width: %lld is less than the %lld pages of %lld keys",
                         (long long)table_width, (long long)needed, (long long)length);
    *out = (struct indexer_pages){(uint32_t)page_size, (uint32_t)pages, (uint32_t)table_width};
    return HEWN_OK;
}

/* ---- the indexer -- */

static int check_options(const hewn_indexer_desc *d, struct indexer_problem *p, hewn_error *err)
{
    const char *in = hewn_dtype_name(d->in);
    if (d->in != HEWN_E4M3)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "in: dtype %d (%s) is not e4m3", d->in,
                         in ? in : "unknown");
    int status = check_range("scales", d->scales, 0, HEWN_INDEXER_SCALES_IN_PAGES, err);
    if (!status) status = check_range("starts", d->starts, 0, 1, err);
    if (!status) status = check_range("ends", d->ends, 0, 1, err);
    if (status) return status;
    if (d->scales == HEWN_INDEXER_SCALES_IN_PAGES && !d->page_size)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "scales: 1, in the pages, needs a page_size, which is 0");
    p->in = d->in;
    p->in_pages = d->scales == HEWN_INDEXER_SCALES_IN_PAGES;
    p->starts = d->starts;
    p->ends = d->ends;
    return HEWN_OK;
}

static int check_sizes(const hewn_indexer_desc *d, struct indexer_problem *p, hewn_error *err)
{
    int status = check_rows(d->batch, d->queries, err);
    if (!status) status = check_range("heads", d->heads, 1, MAX_HEADS, err);
    if (!status) status = check_range("dim", d->dim, LEAST_DIM, INDEXER_DIM, err);
    if (!status) status = check_multiple("dim", d->dim, LEAST_DIM, err);
    if (!status) status = check_range("length", d->length, 0, INDEXER_MAX_KEYS, err);
    if (status) return status;
    p->batch = (uint32_t)d->batch;
    p->queries = (uint32_t)d->queries;
    p->rows = p->batch * p->queries;
    p->heads = (uint32_t)d->heads;
    p->dim = (uint32_t)d->dim;
    p->length = (uint32_t)d->length;
    p->pages.planes = p->batch;
    if (!d->page_size) return HEWN_OK;
    status = check_range("page_size", d->page_size, INDEXER_LEAST_BOX, MAX_PAGE, err);
    if (!status) status = check_multiple("page_size", d->page_size, INDEXER_LEAST_BOX, err);
    return status ? status
                  : check_pages(d->page_size, d->pages, d->table_width, d->batch, d->length,
                                &p->pages, err);
}

static int check_keys(const hewn_indexer_desc *d, struct indexer_problem *p, hewn_error *err)
{
    uint64_t keys = d->page_size ? (uint64_t)d->page_size : p->length, contiguous, inside;
    int status = check_stride("k_token", d->k_token, p->dim, 1, 16, &p->k_token, err);
    if (status) return status;
    status = check_apart("k_token", keys, p->dim, p->k_token, err);
    if (status) return status;
    inside = keys * p->k_token; /* below 2^69 / 2: keys are below 2^29 */
    if (inside / (p->k_token ? p->k_token : 1) != keys) inside = UINT64_MAX;
    contiguous = inside + (p->in_pages ? WORD * keys : 0);
    status = check_stride("k_batch", d->k_batch, contiguous, 1, 16, &p->k_plane, err);
    if (status) return status;
    if (p->in_pages) {
        status = check_apart("k_batch", p->pages.planes, contiguous, p->k_plane, err);
        p->scale_plane = p->k_plane;
    } else {
        status =
            check_stride("scale_batch", d->scale_batch, keys, WORD, WORD, &p->scale_plane, err);
    }
    if (status) return status;
    uint64_t plane = p->in_pages ? contiguous : span_of(keys, p->k_token, p->dim);
    p->k_span = keys ? span_of(p->pages.planes, p->k_plane, plane) : 0;
    return check_span("k", p->k_span, err);
}

int hewn_indexer_check(const hewn_indexer_desc *d, struct indexer_problem *p, hewn_error *err)
{
    memset(p, 0, sizeof *p);
    int status = check_options(d, p, err);
    if (!status) status = check_sizes(d, p, err);
    if (!status) status = check_keys(d, p, err);
    if (!status) status = check_stride("q_head", d->q_head, p->dim, 1, 16, &p->q_head, err);
    if (!status)
        status = check_stride("q_token", d->q_token, p->heads * p->q_head, 1, 16, &p->q_row, err);
    if (!status)
        status = check_stride("weight_token", d->weight_token, p->heads, WORD, WORD, &p->weight_row,
                              err);
    if (!status)
        status = check_stride("out_token", d->out_token, p->length, WORD, WORD, &p->out_row, err);
    uint64_t row = (uint64_t)WORD * p->length;
    if (!status) status = check_apart("out_token", p->rows, row, p->out_row, err);
    if (status) return status;
    p->q_span = span_of(p->rows, p->q_row, span_of(p->heads, p->q_head, p->dim));
    p->weight_span = span_of(p->rows, p->weight_row, (uint64_t)WORD * p->heads);
    p->out_span = span_of(p->rows, p->out_row, row);
    status = check_span("q", p->q_span, err);
    if (!status) status = check_span("weights", p->weight_span, err);
    return status ? status : check_span("out", p->out_span, err);
}

/* ---- top-k -- */

static int check_topk_pages(const hewn_topk_desc *d, struct topk_problem *p, hewn_error *err)
{
    int status = check_range("page_size", d->page_size, 0, MAX_TOPK_PAGE, err);
    if (status || !d->page_size) return status;
    status =
        check_pages(d->page_size, d->pages, d->table_width, d->batch, d->columns, &p->pages, err);
    if (status) return status;
    if (d->pages > INT32_MAX / d->page_size)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "pages: %lld of %lld rows are more than an entry can number",
                         (long long)d->pages, (long long)d->page_size);
    return HEWN_OK;
}

int hewn_topk_check(const hewn_topk_desc *d, struct topk_problem *p, hewn_error *err)
{
    memset(p, 0, sizeof *p);
    int status = check_rows(d->batch, d->queries, err);
    if (!status) status = check_range("columns", d->columns, 0, TOPK_MAX_COLUMNS, err);
    if (!status) status = check_range("k", d->k, 1, TOPK_MAX_K, err);
    if (!status) status = check_range("starts", d->starts, 0, 1, err);
    if (!status) status = check_range("ends", d->ends, 0, 1, err);
    if (!status) status = check_topk_pages(d, p, err);
    if (status) return status;
    p->queries = (uint32_t)d->queries;
    p->rows = (uint32_t)(d->batch * d->queries);
    p->columns = (uint32_t)d->columns;
    p->k = (uint32_t)d->k;
    p->starts = d->starts;
    p->ends = d->ends;
    status = check_stride("value_row", d->value_row, p->columns, WORD, WORD, &p->value_row, err);
    if (!status)
        status = check_stride("index_row", d->index_row, p->k, WORD, WORD, &p->index_row, err);
    uint64_t row = (uint64_t)WORD * p->k;
    if (!status) status = check_apart("index_row", p->rows, row, p->index_row, err);
    if (status) return status;
    p->value_span = span_of(p->rows, p->value_row, (uint64_t)WORD * p->columns);
    p->index_span = span_of(p->rows, p->index_row, row);
    status = check_span("values", p->value_span, err);
    return status ? status : check_span("indices", p->index_span, err);
}
