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
static int check_records_584(const hewn_mla_desc *d, struct mla_problem *p, hewn_error *err)
{
    struct mla_tensor *t = &p->kv;
    uint64_t page = t->count[1] * MLA_RECORD_584, before = 0;
    uint64_t rounded = (page + MLA_584_ROW - 1) / MLA_584_ROW * MLA_584_ROW;
    if (d->kv_token && d->kv_token != MLA_584_ROW)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "kv_token: %lld B is not %d B, a row of data of a record of %d B",
                         (long long)d->kv_token, MLA_584_ROW, MLA_RECORD_584);
    t->row = t->step[1] = MLA_584_ROW;
    t->step[2] = MLA_ALIGN; /* of one page any legal stride will do */
    p->scales = t->count[1] * MLA_584_ROW;
    if (t->count[2] > 1) {
        int status = check_stride("kv", "batch", d->kv_batch, rounded, 1, &t->step[2], err);
        if (status) return status;
        if (t->step[2] < page)
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "kv_batch: %llu B is less than the %llu B of a page of %llu records",
                             (unsigned long long)t->step[2], (unsigned long long)page,
                             (unsigned long long)t->count[1]);
        before = (t->count[2] - 1) * t->step[2]; /* less than 2^31 times 2^40: */
        if (before / t->step[2] != t->count[2] - 1) before = UINT64_MAX;
    }
    if (__builtin_add_overflow(before, page, &t->span))
        return hewn_fail(err, HEWN_ERR_LIMIT, "kv: reaches past 2^64 B");
    if (!t->count[1] || !t->count[2]) t->span = 0;
    return HEWN_OK;
}

static int check_rows(const hewn_mla_desc *d, struct mla_problem *p, hewn_error *err)
{
    const int64_t given[] = {0, d->kv_token, d->kv_batch};
    if (d->cache == HEWN_MLA_CACHE_584) return check_records_584(d, p, err);
    if (d->cache == HEWN_MLA_CACHE_656) return check_tensor(&p->kv, -1, MLA_RECORD, given, err);
    return check_tensor(&p->kv, d->in, MLA_QK_DIM, given, err);
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
    if (!status) status = check_rows(d, p, err);
    if (status || !mla_gathers(p) || p->kv.span <= largest_cache) return status;
    return hewn_fail(err, HEWN_ERR_LIMIT,
                     "kv: %llu B, read by lists or of packed records, are more than %llu B",
                     (unsigned long long)p->kv.span, (unsigned long long)largest_cache);
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
    return status;
}
