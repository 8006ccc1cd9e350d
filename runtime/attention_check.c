/* Attention: the rules of hewn_attention_desc, and the description in bytes. */
#include "attention.h"

#include "error.h"
#include "structs.h"

#include <float.h>
#include <string.h>

static const uint64_t stride_end = UINT64_C(1) << 40; /* bytes; TMA's own limit */
static const double log2_e = 1.4426950408889634;

/* Head dimensions that there are kernels for; scale: 1 / sqrt(qk), the default. */
static const struct head {
    int64_t qk, v;
    double scale;
} heads[] = {
    {64, 64, 0.125},
    {96, 96, 0.10206207261596575},
    {128, 128, 0.08838834764831845},
    {192, 128, 0.07216878364870322},
    {256, 256, 0.0625},
    {512, 512, 0.04419417382415922},
};

/* Where in the description a value stands: "", "source[0]." and its name. */
struct where {
    const char *prefix, *name;
};

static int check_least(struct where at, int64_t value, int64_t least, hewn_error *err)
{
    if (value >= least) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s: %lld is not at least %lld", at.prefix, at.name,
                     (long long)value, (long long)least);
}

/* `most` is what the kernels can count to. */
static int check_count(const char *prefix, const char *name, int64_t value, int64_t least,
                       int64_t most, hewn_error *err)
{
    struct where at = {prefix, name};
    int status = check_least(at, value, least, err);
    if (status) return status;
    if (value > most)
        return hewn_fail(err, HEWN_ERR_LIMIT, "%s%s: %lld is more than %lld, the kernel's limit",
                         prefix, name, (long long)value, (long long)most);
    return HEWN_OK;
}

static int check_choice(const char *prefix, const char *name, int value, int most, hewn_error *err)
{
    if (value >= 0 && value <= most) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s%s: %d is not in 0..%d", prefix, name, value, most);
}

/* ---- tensors -- */

/* `elements` becomes bytes, if TMA takes it as a stride; 0 stands for `contiguous` elements. */
static int check_stride(const struct attention_tensor *t, const char *what, int64_t elements,
                        uint64_t contiguous, uint64_t *bytes, hewn_error *err)
{
    if (elements < 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s_%s: %lld elements is negative", t->name, what,
                         (long long)elements);
    uint64_t value = elements ? (uint64_t)elements : contiguous;
    if (value > (stride_end - 1) / t->element)
        return hewn_fail(err, elements ? HEWN_ERR_ARGUMENT : HEWN_ERR_LIMIT,
                         "%s_%s: %llu elements of %d B is not below 2^40 B", t->name, what,
                         (unsigned long long)value, (int)t->element);
    *bytes = value * t->element;
    if (*bytes % ATTENTION_ALIGN)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s_%s: %llu B is not a multiple of %d B", t->name,
                         what, (unsigned long long)*bytes, ATTENTION_ALIGN);
    return HEWN_OK;
}

/* *span += (count - 1) * stride; true where that passes 64 bits. */
static int add_extent(uint64_t *span, uint64_t count, uint64_t stride)
{
    uint64_t step;
    return __builtin_mul_overflow(count - 1, stride, &step) ||
           __builtin_add_overflow(*span, step, span);
}

int hewn_attention_check_tensor(struct attention_tensor *t, const int64_t strides[3], int layout,
                                hewn_error *err)
{
    int bshd = layout == HEWN_LAYOUT_BSHD;
    uint64_t token = bshd ? t->heads * t->columns : t->columns;
    uint64_t head = bshd ? t->columns : t->tokens * t->columns;
    uint64_t plane;
    if (__builtin_mul_overflow(t->heads * t->columns, t->tokens, &plane)) plane = UINT64_MAX;
    t->plane = ATTENTION_ALIGN; /* with one plane any legal stride will do */
    int status = check_stride(t, "token", strides[0], token, &t->token, err);
    if (!status) status = check_stride(t, "head", strides[1], head, &t->head, err);
    if (!status && t->planes > 1)
        status = check_stride(t, "batch", strides[2], plane, &t->plane, err);
    if (status || !t->tokens || !t->planes) return status;
    uint64_t span = t->columns * t->element;
    if (add_extent(&span, t->tokens, t->token) || add_extent(&span, t->heads, t->head) ||
        add_extent(&span, t->planes, t->plane))
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "%s: %llu tokens, %llu heads, %llu planes: past 2^64 B", t->name,
                         (unsigned long long)t->tokens, (unsigned long long)t->heads,
                         (unsigned long long)t->planes);
    t->span = span;
    return HEWN_OK;
}

/* Rows of O must not share bytes. In the order of their strides, each dimension must step over all that
 * the smaller ones cover. This refuses a few patterns that do not overlap either. */
int hewn_attention_check_rows(const struct attention_tensor *o, hewn_error *err)
{
    struct {
        const char *what;
        uint64_t count, stride;
    } dims[] = {{"token", o->tokens, o->token},
                {"head", o->heads, o->head},
                {"batch", o->planes, o->plane}};
    uint64_t covered = o->columns * o->element;
    if (!o->span) return HEWN_OK;
    for (int done = 0; done < 3; done++) {
        int next = -1;
        for (int i = 0; i < 3; i++)
            if (dims[i].count > 1 && (next < 0 || dims[i].stride < dims[next].stride)) next = i;
        if (next < 0) break;
        if (dims[next].stride < covered)
            return hewn_fail(
                err, HEWN_ERR_ARGUMENT,
                "o_%s: %llu B makes rows of O overlap: what it steps over covers %llu B",
                dims[next].what, (unsigned long long)dims[next].stride,
                (unsigned long long)covered);
        covered += (dims[next].count - 1) * dims[next].stride;
        dims[next].count = 1;
    }
    return HEWN_OK;
}

/* ---- the problem -- */

static int check_dtypes(const hewn_attention_desc *d, hewn_error *err)
{
    const char *in = hewn_dtype_name(d->in), *out = hewn_dtype_name(d->out);
    if (d->in != HEWN_F16 && d->in != HEWN_BF16 && d->in != HEWN_E4M3)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "in: dtype %d (%s) is none of bf16, f16, e4m3",
                         d->in, in ? in : "unknown");
    if (d->out != HEWN_F32 && d->out != HEWN_F16 && d->out != HEWN_BF16 && d->out != HEWN_E4M3)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "out: dtype %d (%s) is none of f32, f16, bf16, e4m3", d->out,
                         out ? out : "unknown");
    if (d->out == HEWN_E4M3 && d->in != HEWN_E4M3)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "out: e4m3 needs e4m3 inputs, `in` is %s", in);
    if (d->kv && (d->kv != HEWN_E4M3 || d->in == HEWN_E4M3))
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "kv: dtype %d is neither 0 nor e4m3 beside a 16-bit `in`", d->kv);
    return HEWN_OK;
}

/* What K and V are stored as. */
static int kv_dtype(const hewn_attention_desc *d)
{
    return d->kv ? d->kv : d->in;
}

static int check_heads(const hewn_attention_desc *d, struct attention_problem *p, hewn_error *err)
{
    int status = check_count("", "batch", d->batch, 1, INT32_MAX, err);
    if (!status) status = check_count("", "q_heads", d->q_heads, 1, INT32_MAX, err);
    if (!status) status = check_count("", "kv_heads", d->kv_heads, 1, INT32_MAX, err);
    if (status) return status;
    if (d->q_heads % d->kv_heads)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "q_heads: %lld is not a multiple of kv_heads, %lld", (long long)d->q_heads,
                         (long long)d->kv_heads);
    p->batch = (uint32_t)d->batch;
    p->q_heads = (uint32_t)d->q_heads;
    p->kv_heads = (uint32_t)d->kv_heads;
    p->group = p->q_heads / p->kv_heads;
    return HEWN_OK;
}

static int is_normal(double x)
{
    return x >= (double)FLT_MIN && x <= (double)FLT_MAX;
}

/* A soft cap takes the place of the scale, which goes into tanh's argument. */
static int check_softcap(double cap, double scale, struct attention_problem *p, hewn_error *err)
{
    double in_log2 = 2 * cap * log2_e, inner = 2 * log2_e * scale / cap;
    if (!is_normal(in_log2) || !is_normal(inner))
        return hewn_fail(
            err, HEWN_ERR_ARGUMENT,
            "softcap: %g times 2 log2(e), or scale / softcap, %g, times 2 log2(e), is not "
            "above 0 and finite in f32",
            cap, scale / cap);
    p->scale_log2 = (float)in_log2;
    p->cap_log2 = (float)inner;
    return HEWN_OK;
}

/* Head dimensions and the scale whose default they give. */
static int check_dimensions(const hewn_attention_desc *d, struct attention_problem *p,
                            hewn_error *err)
{
    const struct head *found = NULL;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0] && !found; i++)
        if (d->qk_dim == heads[i].qk && (d->v_dim == 0 || d->v_dim == heads[i].v))
            found = &heads[i];
    if (!found)
        return hewn_fail(
            err, HEWN_ERR_ARGUMENT,
            "qk_dim, v_dim: %lld, %lld are none of 64, 64; 96, 96; 128, 128; 192, 128; "
            "256, 256; 512, 512",
            (long long)d->qk_dim, (long long)d->v_dim);
    p->qk_dim = (uint32_t)found->qk;
    p->v_dim = (uint32_t)found->v;
    double scale = d->scale == 0 ? found->scale : d->scale, in_log2 = scale * log2_e;
    if (!is_normal(in_log2))
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "scale: %g times log2(e) is not above 0 and finite in f32", d->scale);
    p->scale_log2 = (float)in_log2;
    return d->softcap == 0 ? HEWN_OK : check_softcap(d->softcap, scale, p, err);
}

static int check_queries(const hewn_attention_desc *d, struct attention_problem *p, hewn_error *err)
{
    int status = check_count("", "q_length", d->q_length, 0, ATTENTION_UNBOUNDED - 1, err);
    if (!status) status = check_choice("", "q_packed", d->q_packed, 1, err);
    if (!status && d->q_packed)
        status = check_count("", "q_tokens", d->q_tokens, 0, INT32_MAX, err);
    if (!status) status = check_choice("", "layout", d->layout, HEWN_LAYOUT_BHSD, err);
    if (status) return status;
    p->q_packed = d->q_packed;
    p->q_length = (uint32_t)d->q_length;
    p->q_tokens = d->q_packed ? (uint32_t)d->q_tokens : p->q_length;
    struct attention_tensor rows = {
        .tokens = p->q_tokens, .heads = p->q_heads, .planes = d->q_packed ? 1 : p->batch};
    p->q = p->o = rows;
    p->q.name = "q";
    p->q.columns = p->qk_dim;
    p->q.element = hewn_dtype_size(d->in);
    p->o.name = "o";
    p->o.columns = p->v_dim;
    p->o.element = hewn_dtype_size(d->out);
    status = hewn_attention_check_tensor(
        &p->q, (const int64_t[]){d->q_token, d->q_head, d->q_batch}, d->layout, err);
    if (!status)
        status = hewn_attention_check_tensor(
            &p->o, (const int64_t[]){d->o_token, d->o_head, d->o_batch}, d->layout, err);
    if (!status) status = hewn_attention_check_rows(&p->o, err);
    if (status) return status;
    /* map_q has a dimension of KV heads, `group` heads apart. */
    if (p->q.head > (stride_end - 1) / p->group)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "q_head: %llu B times q_heads / kv_heads, %u, is not below 2^40 B",
                         (unsigned long long)p->q.head, p->group);
    return HEWN_OK;
}

struct scales {
    const char *name, *batch_name;
    int kind, dtype;
    int64_t batch; /* as in the description */
};

/* *batch: what the kernels take. Their index of a scale has 32 bits. */
static int check_scales(const struct scales *s, const struct attention_problem *p, uint32_t *batch,
                        hewn_error *err)
{
    int status = check_choice("", s->name, s->kind, HEWN_SCALES_SEQUENCE_KV_HEAD, err);
    if (status) return status;
    if (s->kind && s->dtype != HEWN_E4M3)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %d needs e4m3 inputs, `in` is %s", s->name,
                         s->kind, hewn_dtype_name(s->dtype));
    int each = s->kind >= HEWN_SCALES_SEQUENCE_HEAD;
    if (each && p->in != HEWN_E4M3)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "%s: %d, but beside %s queries K and V have no scales of a sequence's own",
                         s->name, s->kind, hewn_dtype_name(p->in));
    if (s->batch && !each)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: %lld, but %s, %d, has none of a sequence's own", s->batch_name,
                         (long long)s->batch, s->name, s->kind);
    int of_q = s->name[0] == 'q' && s->kind == HEWN_SCALES_SEQUENCE_HEAD;
    uint32_t count = of_q ? p->q_heads : p->kv_heads;
    int64_t value = s->batch || !each ? s->batch : count;
    if (each) status = check_least((struct where){"", s->batch_name}, value, count, err);
    if (!status)
        status = check_count("", s->batch_name, value, 0, INT32_MAX / (int64_t)p->batch, err);
    *batch = (uint32_t)value;
    return status;
}

static int check_all_scales(const hewn_attention_desc *d, struct attention_problem *p,
                            hewn_error *err)
{
    const int kv = kv_dtype(d);
    const struct scales q = {"q_scales", "q_scale_batch", d->q_scales, d->in, d->q_scale_batch};
    const struct scales k = {"k_scales", "k_scale_batch", d->k_scales, kv, d->k_scale_batch};
    const struct scales v = {"v_scales", "v_scale_batch", d->v_scales, kv, d->v_scale_batch};
    int status = check_scales(&q, p, &p->q_scale_batch, err);
    if (!status) status = check_scales(&k, p, &p->k_scale_batch, err);
    if (!status) status = check_scales(&v, p, &p->v_scale_batch, err);
    p->q_scales = d->q_scales;
    p->k_scales = d->k_scales;
    p->v_scales = d->v_scales;
    return status;
}

static int check_options(const hewn_attention_desc *d, struct attention_problem *p, hewn_error *err)
{
    int status = check_choice("", "sink", d->sink, 1, err);
    if (!status) status = check_choice("", "unnormalised", d->unnormalised, 1, err);
    if (!status) status = check_all_scales(d, p, err);
    if (!status) status = check_least((struct where){"", "promotion"}, d->promotion, -1, err);
    if (!status) status = check_choice("", "v_layout", d->v_layout, HEWN_V_COLUMNS, err);
    if (!status) status = check_least((struct where){"", "pack"}, d->pack, 0, err);
    if (!status && d->pack > p->group)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "pack: %lld is more than the %u query heads that share a KV head",
                         (long long)d->pack, p->group);
    if (!status) status = check_count("", "splits", d->splits, 0, ATTENTION_MAX_SPLITS, err);
    if (status) return status;
    if (d->unnormalised && d->out == HEWN_E4M3)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "out: e4m3, but unnormalised results need a wider type");
    if (d->v_layout && d->in != HEWN_E4M3)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "v_layout: 1 needs e4m3 inputs, `in` is %s",
                         hewn_dtype_name(d->in));
    if (d->unnormalised && d->splits > 1)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "splits: %lld, but unnormalised results are not combined",
                         (long long)d->splits);
    p->sink = d->sink;
    p->unnormalised = d->unnormalised;
    p->promotion = d->promotion;
    p->turned = d->v_layout;
    p->pack = (uint32_t)d->pack;
    p->splits = (uint32_t)d->splits;
    return HEWN_OK;
}

/* ---- sources -- */

/* Constants, because problems keep pointers to them. */
static const char *const prefixes[] = {"source[0].", "source[1]."};
static const char *const k_names[] = {"source[0].k", "source[1].k"};
static const char *const v_names[] = {"source[0].v", "source[1].v"};

/* A window of the description counts the query's own position, the kernel's limit does not. */
static int check_window(const char *prefix, const char *name, int64_t keys, uint32_t *limit,
                        hewn_error *err)
{
    if (keys < 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s%s: %lld is not at least 0, which stands for all keys", prefix, name,
                         (long long)keys);
    *limit = keys == 0 || keys > ATTENTION_UNBOUNDED ? ATTENTION_UNBOUNDED : (uint32_t)keys - 1;
    return HEWN_OK;
}

static int check_mask(const hewn_attention_source *d, int index, struct attention_source *s,
                      hewn_error *err)
{
    const char *prefix = prefixes[index];
    int status = check_choice(prefix, "causal", d->causal, 1, err);
    if (!status) status = check_choice(prefix, "windows", d->windows, 1 - index, err);
    if (!status) status = check_window(prefix, "window_back", d->window_back, &s->left, err);
    if (!status) status = check_window(prefix, "window_ahead", d->window_ahead, &s->right, err);
    if (status) return status;
    if (d->windows && d->window_back)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%swindow_back: %lld must be 0 beside `windows`, which take its place",
                         prefix, (long long)d->window_back);
    if (d->causal) s->right = 0;
    s->windows = d->windows;
    return HEWN_OK;
}

static int check_paging(const hewn_attention_source *d, const char *prefix,
                        const struct attention_problem *p, struct attention_source *s,
                        hewn_error *err)
{
    if (d->page_size > ATTENTION_MAX_PAGE)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%spage_size: %lld is not in 0..%d", prefix,
                         (long long)d->page_size, ATTENTION_MAX_PAGE);
    if (p->turned)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%spage_size: %lld, but v_layout 1 has no pages",
                         prefix, (long long)d->page_size);
    if (d->keys == HEWN_KEYS_PACKED)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%spage_size: %lld, but packed keys have no pages",
                         prefix, (long long)d->page_size);
    int64_t needed = (d->length + d->page_size - 1) / d->page_size;
    int status = check_count(prefix, "pages", d->pages, d->length > 0, INT32_MAX, err);
    if (!status)
        status = check_count(prefix, "table_width", d->table_width, 0, INT32_MAX / p->batch, err);
    if (status) return status;
    if (d->table_width < needed)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%stable_width: %lld is less than the %lld pages of %lld keys", prefix,
                         (long long)d->table_width, (long long)needed, (long long)d->length);
    s->page_size = (uint32_t)d->page_size;
    s->pages = (uint32_t)d->pages;
    s->table_width = (uint32_t)d->table_width;
    return HEWN_OK;
}

/* A tensor without keys has no bytes, whichever way its rows go. */
static int check_v(struct attention_tensor *v, const hewn_attention_source *d, int layout,
                   hewn_error *err)
{
    int status = hewn_attention_check_tensor(
        v, (const int64_t[]){d->v_token, d->v_head, d->v_batch}, layout, err);
    if (!v->columns) v->span = 0;
    return status;
}

static int check_source(const hewn_attention_desc *desc, const hewn_attention_source *d, int index,
                        struct attention_problem *p, hewn_error *err)
{
    const char *prefix = prefixes[index];
    struct attention_source *s = &p->source[index];
    int packed = d->keys == HEWN_KEYS_PACKED;
    int status = check_choice(prefix, "keys", d->keys, HEWN_KEYS_PACKED, err);
    if (!status) status = check_count(prefix, "length", d->length, 0, ATTENTION_UNBOUNDED - 1, err);
    if (!status && packed) status = check_count(prefix, "tokens", d->tokens, 0, INT32_MAX, err);
    if (!status) status = check_least((struct where){prefix, "page_size"}, d->page_size, 0, err);
    if (!status && d->page_size) status = check_paging(d, prefix, p, s, err);
    if (!status) status = check_mask(d, index, s, err);
    if (status) return status;
    if (packed && p->turned) /* TMA begins at multiples of 16 bytes of a row */
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%skeys: %d, packed, but v_layout is 1", prefix,
                         d->keys);
    s->keys = d->keys;
    s->length = (uint32_t)d->length;
    uint64_t padded = s->page_size ? s->page_size : s->length;
    struct attention_tensor rows = {
        .element = hewn_dtype_size(kv_dtype(desc)),
        .tokens = packed ? (uint64_t)d->tokens : padded,
        .heads = p->kv_heads,
        .planes = packed         ? 1
                  : s->page_size ? s->pages
                                 : p->batch,
    };
    s->k = s->v = rows;
    s->k.name = k_names[index];
    s->k.columns = p->qk_dim;
    s->v.name = v_names[index];
    s->v.columns = p->v_dim;
    if (p->turned) {
        s->v.columns = rows.tokens;
        s->v.tokens = p->v_dim;
    }
    status = hewn_attention_check_tensor(
        &s->k, (const int64_t[]){d->k_token, d->k_head, d->k_batch}, desc->layout, err);
    if (status) return status;
    return check_v(&s->v, d, p->turned ? HEWN_LAYOUT_BHSD : desc->layout, err);
}

/* A tree mask says itself which of the last keys a query sees. */
static int check_tree(const struct attention_problem *p, hewn_error *err)
{
    if (!p->tree) return HEWN_OK;
    if (p->q_length > 64)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "tree: 1, but q_length, %u, is more than the 64 bits of a mask",
                         p->q_length);
    if (p->sources > 1 || p->source[0].right != ATTENTION_UNBOUNDED)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "tree: 1 needs one source, causal 0 and window_ahead 0");
    return HEWN_OK;
}

/* Of packed sequences the longest would choose the schedule of all. */
static int check_invariant(const hewn_attention_desc *d, struct attention_problem *p,
                           hewn_error *err)
{
    int status = check_choice("", "invariant", d->invariant, 1, err);
    if (status) return status;
    if (d->invariant && d->q_packed && d->schedule == HEWN_SCHEDULE_CHOSEN)
        return hewn_fail(
            err, HEWN_ERR_ARGUMENT,
            "invariant: 1 with q_packed needs `schedule`, because the longest sequence "
            "would choose it for all");
    p->invariant = d->invariant;
    return HEWN_OK;
}

int hewn_attention_check(const hewn_attention_desc *desc, struct attention_problem *p,
                         hewn_error *err)
{
    memset(p, 0, sizeof *p);
    p->in = desc->in;
    p->out = desc->out;
    p->kv = kv_dtype(desc);
    p->schedule = desc->schedule;
    int status = check_dtypes(desc, err);
    if (!status) status = check_choice("", "schedule", desc->schedule, HEWN_SCHEDULE_DECODE, err);
    if (!status) status = check_choice("", "tree", desc->tree, 1, err);
    p->tree = desc->tree;
    if (!status) status = check_invariant(desc, p, err);
    if (!status) status = check_heads(desc, p, err);
    if (!status) status = check_dimensions(desc, p, err);
    if (!status) status = check_queries(desc, p, err);
    if (!status) status = check_options(desc, p, err);
    if (status) return status;
    if (!desc->source[0]) return hewn_fail_null(err, "source[0]");
    p->sources = desc->source[1] ? 2 : 1;
    for (int i = 0; !status && i < 2 && desc->source[i]; i++) {
        hewn_attention_source source;
        status = hewn_struct_take(HEWN_STRUCT_hewn_attention_source, desc->source[i], &source, err);
        if (!status) status = check_source(desc, &source, i, p, err);
    }
    return status ? status : check_tree(p, err);
}
