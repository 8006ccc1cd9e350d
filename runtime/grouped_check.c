/* The rules of hewn.h that a description of grouped products must keep, and host copies of their rows. */
#include "grouped.h"

#include "error.h"
#include "structs.h"
#include "tables.h"

#include <stddef.h>
#include <string.h>

enum { WORD = 4, MAX_ALIGN = 1 << 30 };

static const uint64_t stride_end = UINT64_C(1) << 40; /* bytes; TMA's own limit */

const char *const hewn_grouped_names[GROUPED_TENSORS] = {"a", "b", "d", "scale_a"};

static int check_range(const char *name, int64_t value, int64_t least, int64_t most,
                       hewn_error *err)
{
    if (value >= least && value <= most) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is not in %lld..%lld", name,
                     (long long)value, (long long)least, (long long)most);
}

/* A stride of elements, or 0 for `least`, which it may not be below; `*bytes` of it are a multiple of `align`. */
static int check_stride(const char *name, int64_t stride, uint64_t least, uint32_t element,
                        uint32_t align, uint64_t *bytes, hewn_error *err)
{
    uint64_t elements = stride ? (uint64_t)stride : least;
    if (stride < 0 || elements > (stride_end - 1) / element)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld elements of %u B are not in 0..2^40-1 B",
                         name, (long long)elements, element);
    *bytes = elements * element;
    if (elements < least)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %llu is less than the %llu elements inside",
                         name, (unsigned long long)elements, (unsigned long long)least);
    if (*bytes % align)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: %llu elements, %llu B, are no multiple of %u B", name,
                         (unsigned long long)elements, (unsigned long long)*bytes, align);
    return HEWN_OK;
}

/* Of a tensor whose extents are set: strides and what they span. `least`: elements of a row, at least. */
static int check_tensor(struct grouped_tensor *t, const char *const names[2], int64_t row,
                        uint64_t least, int64_t plane, hewn_error *err)
{
    int status = check_stride(names[0], row, least, t->element, GROUPED_ALIGN, &t->pitch, err);
    if (status) return status;
    t->plane = t->pitch; /* of one plane any stride will do */
    if (t->planes > 1)
        status = check_stride(names[1], plane, t->rows * (t->pitch / t->element), t->element,
                              GROUPED_ALIGN, &t->plane, err);
    if (status) return status;
    uint64_t inside = (t->rows - 1) * t->pitch + t->columns * t->element; /* below 2^72 / 2^8 */
    if ((t->rows - 1) > UINT64_MAX / 2 / t->pitch ||
        (t->planes - 1) > (UINT64_MAX / 2 - inside) / t->plane)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s, %s: the tensor ends behind 2^63 B", names[0],
                         names[1]);
    t->span = (t->planes - 1) * t->plane + inside;
    return HEWN_OK;
}

/* X(field, least): int64_t, at most 2^31-1. */
#define COUNTS(X) \
    X(groups, 1)  \
    X(m, 1)       \
    X(n, 1)       \
    X(k, 1)       \
    X(a_rows, 0)  \
    X(expected_m, 0)

static int check_counts(const hewn_grouped_desc *d, hewn_error *err)
{
    static const struct {
        const char *name;
        size_t offset;
        int64_t least;
    } counts[] = {
#define X(field, least) {#field, offsetof(hewn_grouped_desc, field), least},
        COUNTS(X)
#undef X
    };
    int status = HEWN_OK;
    for (size_t i = 0; !status && i < sizeof counts / sizeof *counts; i++) {
        int64_t value;
        memcpy(&value, (const char *)d + counts[i].offset, sizeof value);
        status = check_range(counts[i].name, value, counts[i].least, INT32_MAX, err);
    }
    return status;
}

static int check_options(const hewn_grouped_desc *d, struct grouped_problem *p, hewn_error *err)
{
    const char *in = hewn_dtype_name(d->in), *out = hewn_dtype_name(d->out);
    int64_t align = d->align ? d->align : 1;
    const int scaled = d->in == HEWN_E4M3, half = scaled ? HEWN_BF16 : d->in;
    if (!scaled && d->in != HEWN_BF16 && d->in != HEWN_F16)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "in: dtype %d (%s) is none of e4m3, bf16, f16",
                         d->in, in ? in : "unknown");
    if (d->out != half && d->out != HEWN_F32)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "out: dtype %d (%s) is neither %s nor f32", d->out,
                         out ? out : "unknown", hewn_dtype_name(half));
    int status = check_range("kind", d->kind, HEWN_GROUPED_PLANES, HEWN_GROUPED_OFFSETS, err);
    if (!status)
        status = check_range("scales", d->scales, 0, scaled ? HEWN_GROUPED_COLUMNS : 0, err);
    if (!status) status = check_counts(d, err);
    if (!status) status = check_range("k", d->k, 1, scaled ? INT32_MAX : INT32_MAX / 2, err);
    if (!status)
        status =
            check_range("align", d->align, 0, d->kind == HEWN_GROUPED_OFFSETS ? MAX_ALIGN : 0, err);
    if (!status && align & (align - 1))
        status =
            hewn_fail(err, HEWN_ERR_ARGUMENT, "align: %lld is no power of two", (long long)align);
    p->in = d->in, p->out = d->out, p->kind = d->kind;
    p->scales = scaled ? d->scales : GROUPED_UNSCALED;
    p->align = (uint32_t)align;
    return status;
}

/* Rows of scales of B: of 128 columns, an element a block of k; or of a block, an element a column. */
static int check_scales_b(const hewn_grouped_desc *d, struct grouped_problem *p, hewn_error *err)
{
    uint64_t rows = p->blocks_n, least = p->k_blocks;
    int64_t row = d->scale_b_n;
    uint32_t align = WORD;
    if (p->scales) {
        rows = p->k_blocks, least = p->n, align = GROUPED_ALIGN;
        if (!row) row = ((int64_t)p->n + 3) / 4 * 4;
    }
    int status = check_stride("scale_b_n", row, least, WORD, align, &p->scale_b_row, err);
    if (!status)
        status = check_stride("scale_b_plane", d->scale_b_plane, rows * p->scale_b_row / WORD, WORD,
                              align, &p->scale_b_plane, err);
    /* below 2^71: a description that large fails at B */
    p->scale_b_span = p->groups * p->scale_b_plane;
    return status;
}

int hewn_grouped_check(const hewn_grouped_desc *d, struct grouped_problem *p, hewn_error *err)
{
    static const char *const a[] = {"lda", "stride_a"}, *const b[] = {"ldb", "stride_b"},
                             *const s[] = {"scale_a_k", "scale_a_plane"},
                             *const o[] = {"ldd", "stride_d"};
    memset(p, 0, sizeof *p);
    int status = check_options(d, p, err);
    if (status) return status;
    uint64_t m = (uint64_t)d->m, n = (uint64_t)d->n, k = (uint64_t)d->k;
    uint64_t groups = (uint64_t)d->groups, planes = d->kind == HEWN_GROUPED_OFFSETS ? 1 : groups;
    const uint32_t element = (uint32_t)hewn_dtype_size(d->in);
    uint64_t blocks = (k * element + GROUPED_BLOCK - 1) / GROUPED_BLOCK;
    uint64_t a_rows = d->a_rows ? (uint64_t)d->a_rows : m, a_planes = d->a_rows ? 1 : planes;
    p->a_rows = (uint32_t)d->a_rows;
    p->groups = (uint32_t)groups, p->m = (uint32_t)m, p->n = (uint32_t)n;
    p->k = (uint32_t)(k * element);
    p->k_blocks = (uint32_t)blocks;
    p->blocks_n = (uint32_t)((n + GROUPED_BLOCK - 1) / GROUPED_BLOCK);
    p->expected_m = (uint32_t)d->expected_m;
    if (!p->expected_m) p->expected_m = (uint32_t)((m + groups / planes - 1) / (groups / planes));
    p->of[GROUPED_A] =
        (struct grouped_tensor){.columns = k, .rows = a_rows, a_planes, .element = element};
    p->of[GROUPED_B] = (struct grouped_tensor){.columns = k, .rows = n, groups, .element = element};
    p->of[GROUPED_D] = (struct grouped_tensor){
        .columns = n, .rows = m, planes, .element = (uint32_t)hewn_dtype_size(d->out)};
    p->of[GROUPED_S] =
        (struct grouped_tensor){.columns = a_rows, .rows = blocks, a_planes, .element = WORD};
    status = check_tensor(&p->of[GROUPED_A], a, d->lda, k, d->stride_a, err);
    if (!status) status = check_tensor(&p->of[GROUPED_B], b, d->ldb, k, d->stride_b, err);
    if (!status) status = check_tensor(&p->of[GROUPED_D], o, d->ldd, n, d->stride_d, err);
    if (status || p->scales == GROUPED_UNSCALED) return status;
    status = check_tensor(&p->of[GROUPED_S], s,
                          d->scale_a_k ? d->scale_a_k : (int64_t)(a_rows + 3) / 4 * 4, a_rows,
                          d->scale_a_plane, err);
    return status ? status : check_scales_b(d, p, err);
}

/* Rows of a group, from the first on: in its plane, or in the only one. */
struct span {
    uint64_t first, count;
};

static struct span rows_of(const struct grouped_problem *p, const int32_t *rows, uint32_t group)
{
    const uint64_t plane = (uint64_t)group * p->m;
    if (p->kind == HEWN_GROUPED_PLANES) return (struct span){plane, p->m};
    if (p->kind == HEWN_GROUPED_COUNTS) return (struct span){plane, (uint32_t)rows[group]};
    const uint64_t mask = (uint64_t)p->align - 1, end = (uint32_t)rows[group + 1];
    const uint64_t first = ((uint32_t)rows[group] + mask) & ~mask;
    return (struct span){first, end > first ? end - first : 0};
}

/* The numbers that rows of groups have; of rows that no group has they are not read. */
static int check_index(const struct grouped_problem *p, const hewn_grouped_tables *t,
                       hewn_error *err)
{
    for (uint32_t g = 0; g < p->groups; g++) {
        const struct span s = rows_of(p, t->rows, g);
        for (uint64_t i = s.first; i < s.first + s.count; i++)
            if ((uint32_t)t->index[i] + 1 > p->a_rows)
                return hewn_fail(err, HEWN_ERR_ARGUMENT,
                                 "index[%llu], of group %u: %d is not in -1..%u",
                                 (unsigned long long)i, g, t->index[i], p->a_rows - 1);
    }
    return HEWN_OK;
}

int hewn_grouped_plan_check_tables(const hewn_grouped_plan *plan, const hewn_grouped_tables *tables,
                                   hewn_error *err)
{
    hewn_grouped_tables t;
    if (!plan) return hewn_fail(err, HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    int status = hewn_struct_take(HEWN_STRUCT_hewn_grouped_tables, tables, &t, err);
    if (status) return status;
    const struct grouped_problem *p = &plan->problem;
    const struct hewn_array rows = {"", "rows", t.rows}, index = {"", "index", t.index};
    int offsets = t.rows && p->kind == HEWN_GROUPED_OFFSETS;
    status = hewn_array_check_given(rows, p->kind != HEWN_GROUPED_PLANES, err);
    if (!status) status = hewn_array_check_given(index, t.index && p->a_rows, err);
    if (!status && t.rows)
        status = hewn_array_check_values(rows, p->groups + (uint64_t)offsets, p->m, err);
    for (uint32_t i = 0; !status && offsets && i < p->groups; i++)
        if (t.rows[i] > t.rows[i + 1])
            status = hewn_fail(err, HEWN_ERR_ARGUMENT, "rows[%u]: %d is behind rows[%u], %d", i,
                               t.rows[i], i + 1, t.rows[i + 1]);
    return status || !t.index ? status : check_index(p, &t, err);
}
