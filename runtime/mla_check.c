/* MLA: the rules of hewn_mla_desc, and the description in bytes. */
#include "mla.h"

#include "error.h"

#include <float.h>
#include <string.h>

static const uint64_t stride_end = UINT64_C(1) << 40; /* bytes; TMA's own limit */
static const uint64_t largest_cache = (UINT64_C(1) << 36) - 2 * MLA_ROW_UNIT; /* rows are 32 bits */
static const double log2_e = 1.4426950408889634;
static const double default_scale = 1.0 / 24.0;                  /* 1 / sqrt(MLA_QK_DIM) */
static const double default_scale_584 = 0.044194173824159216439; /* 1 / sqrt(MLA_V_DIM) */

enum { MAX_HEADS = 128, MAX_QUERIES = 16, MAX_LISTED = 1 << 20, LIST_ENTRY = 4 /* bytes */ };

static int check_range(const char *name, int64_t value, int64_t least, int64_t most,
                       hewn_error *err)
{
    if (value >= least && value <= most) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is not in %lld..%lld", name,
                     (long long)value, (long long)least, (long long)most);
}

/* ---- tensors -- */

static int check_stride(const char *name, const char *what, int64_t elements, uint64_t contiguous,
                        uint64_t element, uint64_t *bytes, hewn_error *err)
{
    if (elements < 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s_%s: %lld elements is negative", name, what,
                         (long long)elements);
    uint64_t value = elements ? (uint64_t)elements : contiguous;
    if (value > (stride_end - 1) / element)
        return hewn_fail(err, elements ? HEWN_ERR_ARGUMENT : HEWN_ERR_LIMIT,
                         "%s_%s: %llu elements of %d B is not below 2^40 B", name, what,
                         (unsigned long long)value, (int)element);
    *bytes = value * element;
    if (*bytes % MLA_ALIGN)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s_%s: %llu B is not a multiple of %d B", name,
                         what, (unsigned long long)*bytes, MLA_ALIGN);
    return HEWN_OK;
}

/* Fills rows, strides and span of a tensor whose counts are set, each below 2^31. dtype -1: bytes. */
static int check_tensor(struct mla_tensor *t, int dtype, uint64_t columns, const int64_t given[3],
                        hewn_error *err)
{
    static const char *const what[] = {"head", "token", "batch"};
    uint64_t element = dtype < 0 ? 1 : hewn_dtype_size(dtype), next = columns;
    t->row = t->span = columns * element;
    for (int i = 0; i < 3; i++) {
        uint64_t step, all;
        int used = t->count[i] > 1;
        if (used) {
            int status = check_stride(t->name, what[i], given[i], next, element, &t->step[i], err);
            if (status) return status;
        } else {
            t->step[i] = MLA_ALIGN; /* any legal stride will do */
        }
        next = used && given[i] ? (uint64_t)given[i] : next;
        if (__builtin_mul_overflow(next, t->count[i], &next)) next = UINT64_MAX;
        if (!t->count[i]) continue;
        if (__builtin_mul_overflow(t->count[i] - 1, t->step[i], &step) ||
            __builtin_add_overflow(t->span, used ? step : 0, &all))
            return hewn_fail(err, HEWN_ERR_LIMIT, "%s: reaches past 2^64 B", t->name);
        t->span = all;
    }
    if (!t->count[0] || !t->count[1] || !t->count[2]) t->span = 0;
    return HEWN_OK;
}

/* Rows of O must not share bytes. In the order of their strides, each dimension must step over all that
 * the smaller ones cover. This refuses a few patterns that do not overlap either. */
static int check_rows_apart(const struct mla_tensor *o, hewn_error *err)
{
    static const char *const what[] = {"head", "token", "batch"};
    uint64_t covered = o->row;
    int left[3] = {o->count[0] > 1, o->count[1] > 1, o->count[2] > 1};
    for (;;) {
        int next = -1;
        for (int i = 0; i < 3; i++)
            if (left[i] && (next < 0 || o->step[i] < o->step[next])) next = i;
        if (next < 0) return HEWN_OK;
        if (o->step[next] < covered)
            return hewn_fail(
                err, HEWN_ERR_ARGUMENT,
                "o_%s: %llu B makes rows of O overlap: what it steps over covers %llu B",
                what[next], (unsigned long long)o->step[next], (unsigned long long)covered);
        covered += (o->count[next] - 1) * o->step[next];
        left[next] = 0;
    }
}

static int check_q(const hewn_mla_desc *d, struct mla_problem *p, hewn_error *err)
{
    const int64_t q[] = {d->q_head, d->q_token, d->q_batch};
    const int64_t o[] = {d->o_head, d->o_token, d->o_batch};
    p->q = (struct mla_tensor){.name = "q", .count = {p->q_heads, p->q_length, p->batch}};
    p->o = p->q;
    p->o.name = "o";
    int status = check_tensor(&p->q, d->in, p->qk_dim, q, err);
    if (!status) status = check_tensor(&p->o, d->out, MLA_V_DIM, o, err);
    if (!status) status = check_rows_apart(&p->o, err);
    if (status || p->q_length == 1 || p->q_heads == 1) return status;
    if (p->q.step[1] != p->q_heads * p->q.step[0])
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "q_token: %llu B is not q_heads, %u, times q_head, %llu B",
                         (unsigned long long)p->q.step[1], p->q_heads,
                         (unsigned long long)p->q.step[0]);
    return HEWN_OK;
}

static int check_pages(const hewn_mla_desc *d, struct mla_problem *p, hewn_error *err)
{
    int64_t needed = (d->length + d->page_size - 1) / d->page_size;
    int listed = p->list_width > 0;
    int status = check_range("pages", d->pages, d->length > 0, INT32_MAX, err);
    if (!status && listed)
        status = check_range("length, with lists of a pool", d->length, 0, 0, err);
    if (!status && !listed)
        status = check_range("table_width", d->table_width, 0, INT32_MAX / p->batch, err);
    if (status) return status;
    if (!listed && d->table_width < needed)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "table_width: %lld is less than the %lld pages of %lld keys",
                         (long long)d->table_width, (long long)needed, (long long)d->length);
    p->planes = (uint32_t)d->pages;
    p->table_width = (uint32_t)d->table_width;
    p->kv.count[1] = p->page_size;
    p->kv.count[2] = p->planes;
    return HEWN_OK;
}

/* Pages of records of 584 bytes: rows of data, then rows of scales. */
static int check_records_584(struct mla_tensor *t, const int64_t given[3], uint64_t *scales,
                             hewn_error *err)
{
    uint64_t page = t->count[1] * MLA_RECORD_584, before = 0;
    uint64_t rounded = (page + MLA_584_ROW - 1) / MLA_584_ROW * MLA_584_ROW;
    if (given[1] && given[1] != MLA_584_ROW)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s_token: %lld B is not %d B, a row of data of a record of %d B", t->name,
                         (long long)given[1], MLA_584_ROW, MLA_RECORD_584);
    t->row = t->step[1] = MLA_584_ROW;
    t->step[2] = MLA_ALIGN; /* of one page any legal stride will do */
    *scales = t->count[1] * MLA_584_ROW;
    if (t->count[2] > 1) {
        int status = check_stride(t->name, "batch", given[2], rounded, 1, &t->step[2], err);
        if (status) return status;
        if (t->step[2] < page)
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "%s_batch: %llu B is less than the %llu B of a page of %llu records",
                             t->name, (unsigned long long)t->step[2], (unsigned long long)page,
                             (unsigned long long)t->count[1]);
        if (__builtin_mul_overflow(t->count[2] - 1, t->step[2], &before)) before = UINT64_MAX;
    }
    if (__builtin_add_overflow(before, page, &t->span))
        return hewn_fail(err, HEWN_ERR_LIMIT, "%s: reaches past 2^64 B", t->name);
    if (!t->count[1] || !t->count[2]) t->span = 0;
    return HEWN_OK;
}

/* The rows of a cache whose counts are set, of its kind; where their scales are. */
static int check_rows(const hewn_mla_desc *d, struct mla_tensor *t, int64_t token, int64_t plane,
                      uint64_t *scales, hewn_error *err)
{
    const int64_t given[] = {0, token, plane};
    int gathered = d->cache != HEWN_MLA_CACHE_PLAIN || d->list_width > 0, status;
    if (d->cache == HEWN_MLA_CACHE_584)
        status = check_records_584(t, given, scales, err);
    else if (d->cache == HEWN_MLA_CACHE_656)
        status = check_tensor(t, -1, MLA_RECORD, given, err);
    else
        status = check_tensor(t, d->in, MLA_QK_DIM, given, err);
    if (status || !gathered || t->span <= largest_cache) return status;
    return hewn_fail(err, HEWN_ERR_LIMIT,
                     "%s: %llu B, read by lists or of packed records, are more than %llu B",
                     t->name, (unsigned long long)t->span, (unsigned long long)largest_cache);
}

static int check_cache(const hewn_mla_desc *d, struct mla_problem *p, hewn_error *err)
{
    int status = check_range("length", d->length, 0, MLA_MAX_KEYS, err);
    if (!status) status = check_range("page_size", d->page_size, 0, MLA_MAX_PAGE, err);
    if (status) return status;
    p->length = (uint32_t)d->length;
    p->page_size = (uint32_t)d->page_size;
    p->planes =
        p->list_width ? p->length > 0 : p->batch; /* no row: no plane that a list can name */
    p->kv = (struct mla_tensor){.name = "kv", .count = {1, p->length, p->planes}};
    if (d->page_size) status = check_pages(d, p, err);
    return status ? status : check_rows(d, &p->kv, d->kv_token, d->kv_batch, &p->scales, err);
}

/* ---- lists -- */

static int check_lists(const hewn_mla_desc *d, struct mla_problem *p, hewn_error *err)
{
    int listed = d->list_width != 0;
    int status = check_range("list_width", d->list_width, 0, MLA_MAX_KEYS, err);
    if (!status)
        status = check_range("q_length", d->q_length, 1, listed ? MAX_LISTED : MAX_QUERIES, err);
    if (status) return status;
    if (!listed) return check_range("list_stride, without lists", d->list_stride, 0, 0, err);
    if (d->q_length > INT32_MAX / d->batch)
        return hewn_fail(err, HEWN_ERR_LIMIT, "batch, q_length: %lld times %lld is not below 2^31",
                         (long long)d->batch, (long long)d->q_length);
    int64_t stride = d->list_stride ? d->list_stride : d->list_width;
    status = check_range("list_stride", stride, d->list_width, INT32_MAX, err);
    if (!status) status = check_range("table_width, with lists", d->table_width, 0, 0, err);
    if (!status) status = check_range("causal, with lists", d->causal, 0, 0, err);
    p->list_width = (uint32_t)d->list_width;
    p->list_step = (uint64_t)stride * LIST_ENTRY;
    return status;
}

/* ---- the second cache and its lists -- */

static int check_no_extra(const hewn_mla_desc *d, hewn_error *err)
{
    const struct {
        const char *name;
        int64_t value;
    } list[] = {{"extra_stride", d->extra_stride},       {"extra_length", d->extra_length},
                {"extra_page_size", d->extra_page_size}, {"extra_pages", d->extra_pages},
                {"extra_token", d->extra_token},         {"extra_batch", d->extra_batch},
                {"extra_lengths", d->extra_lengths},     {"extra_cache", d->extra_cache}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].value)
            return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld without a second cache is not 0",
                             list[i].name, (long long)list[i].value);
    return HEWN_OK;
}

static int check_extra_pool(const hewn_mla_desc *d, struct mla_extra *e, hewn_error *err)
{
    int paged = d->extra_page_size != 0;
    int status = check_range("extra_page_size", d->extra_page_size, 0, MLA_MAX_PAGE, err);
    if (!status) status = check_range("extra_pages", d->extra_pages, 0, paged ? INT32_MAX : 0, err);
    if (!status)
        status = check_range("extra_length", d->extra_length, 0, paged ? 0 : MLA_MAX_KEYS, err);
    if (status) return status;
    e->length = (uint32_t)d->extra_length;
    e->page_size = (uint32_t)d->extra_page_size;
    e->planes = paged ? (uint32_t)d->extra_pages : e->length > 0;
    e->kv = (struct mla_tensor){.name = "extra",
                                .count = {1, paged ? e->page_size : e->length, e->planes}};
    return check_rows(d, &e->kv, d->extra_token, d->extra_batch, &e->scales, err);
}

static int check_extra(const hewn_mla_desc *d, struct mla_extra *e, hewn_error *err)
{
    int64_t most = d->list_width ? MLA_MAX_KEYS - d->list_width : 0;
    int status = check_range(d->list_width ? "extra_width" : "extra_width, without lists",
                             d->extra_width, 0, most, err);
    if (status) return status;
    if (!d->extra_width) return check_no_extra(d, err);
    int64_t stride = d->extra_stride ? d->extra_stride : d->extra_width;
    status = check_range("extra_stride", stride, d->extra_width, INT32_MAX, err);
    if (!status) status = check_range("extra_lengths", d->extra_lengths, 0, 2, err);
    if (status) return status;
    if (d->extra_cache != d->cache)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "extra_cache: %d is not %d, as cache is",
                         d->extra_cache, d->cache);
    e->width = (uint32_t)d->extra_width;
    e->step = (uint64_t)stride * LIST_ENTRY;
    e->lengths = d->extra_lengths;
    return check_extra_pool(d, e, err);
}

/* ---- the rest -- */

static int check_options(const hewn_mla_desc *d, struct mla_problem *p, hewn_error *err)
{
    const char *in = hewn_dtype_name(d->in), *out = hewn_dtype_name(d->out);
    if (d->in != HEWN_F16 && d->in != HEWN_BF16)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "in: dtype %d (%s) is neither bf16 nor f16", d->in,
                         in ? in : "unknown");
    if (d->out != HEWN_F32 && d->out != HEWN_F16 && d->out != HEWN_BF16)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "out: dtype %d (%s) is none of f32, f16, bf16",
                         d->out, out ? out : "unknown");
    int status = check_range("cache", d->cache, 0, HEWN_MLA_CACHE_584, err);
    if (!status && d->cache != HEWN_MLA_CACHE_PLAIN && d->in != HEWN_BF16)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "in: dtype %d (%s) is not bf16, as packed records ask", d->in, in);
    if (!status) status = check_range("lengths", d->lengths, 0, d->list_width ? 2 : 1, err);
    if (!status) status = check_range("causal", d->causal, 0, 1, err);
    if (!status) status = check_range("sink", d->sink, 0, 1, err);
    if (!status) status = check_range("invariant", d->invariant, 0, 1, err);
    if (!status) status = check_range("reserved", d->reserved, 0, 0, err);
    if (status) return status;
    int small = d->cache == HEWN_MLA_CACHE_584;
    double scale = d->scale == 0 ? small ? default_scale_584 : default_scale : d->scale;
    double in_log2 = scale * log2_e;
    if (!(in_log2 >= (double)FLT_MIN && in_log2 <= (double)FLT_MAX))
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "scale: %g times log2(e) is not above 0 and finite in f32", d->scale);
    p->scale_log2 = (float)in_log2;
    p->qk_dim = small ? MLA_V_DIM : MLA_QK_DIM;
    p->in = d->in;
    p->out = d->out;
    p->cache = d->cache;
    p->lengths = d->lengths;
    p->causal = d->causal;
    p->sink = d->sink;
    p->invariant = d->invariant;
    return HEWN_OK;
}

int hewn_mla_check(const hewn_mla_desc *desc, struct mla_problem *p, hewn_error *err)
{
    memset(p, 0, sizeof *p);
    int status = check_options(desc, p, err);
    if (!status) status = check_range("batch", desc->batch, 1, INT32_MAX, err);
    if (!status) status = check_range("q_heads", desc->q_heads, 1, MAX_HEADS, err);
    if (!status) status = check_lists(desc, p, err);
    if (status) return status;
    p->batch = (uint32_t)desc->batch;
    p->q_heads = (uint32_t)desc->q_heads;
    p->q_length = (uint32_t)desc->q_length;
    p->rows = p->q_heads * p->q_length;
    status = check_q(desc, p, err);
    if (!status) status = check_cache(desc, p, err);
    return status ? status : check_extra(desc, &p->extra, err);
}
