/* The rules of hewn.h that a description of grouped products must keep, and host copies of their rows. */
#include "grouped.h"

#include "error.h"
#include "structs.h"
#include "tables.h"

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

static int check_options(const hewn_grouped_desc *d, struct grouped_problem *p, hewn_error *err)
{
    const char *in = hewn_dtype_name(d->in), *out = hewn_dtype_name(d->out);
    int64_t align = d->align ? d->align : 1;
    if (d->in != HEWN_E4M3)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "in: dtype %d (%s) is not e4m3", d->in,
                         in ? in : "unknown");
    if (d->out != HEWN_BF16 && d->out != HEWN_F32)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "out: dtype %d (%s) is neither bf16 nor f32",
                         d->out, out ? out : "unknown");
    int status = check_range("kind", d->kind, HEWN_GROUPED_PLANES, HEWN_GROUPED_OFFSETS, err);
    if (!status) status = check_range("scales", d->scales, 0, 0, err);
    if (!status) status = check_range("groups", d->groups, 1, INT32_MAX, err);
    if (!status) status = check_range("m", d->m, 1, INT32_MAX, err);
    if (!status) status = check_range("n", d->n, 1, INT32_MAX, err);
    if (!status) status = check_range("k", d->k, 1, INT32_MAX, err);
    if (!status) status = check_range("a_rows", d->a_rows, 0, INT32_MAX, err);
    if (!status) status = check_range("expected_m", d->expected_m, 0, INT32_MAX, err);
    if (!status)
        status =
            check_range("align", d->align, 0, d->kind == HEWN_GROUPED_OFFSETS ? MAX_ALIGN : 0, err);
    if (!status && align & (align - 1))
        status =
            hewn_fail(err, HEWN_ERR_ARGUMENT, "align: %lld is no power of two", (long long)align);
    p->in = d->in, p->out = d->out, p->kind = d->kind;
    p->align = (uint32_t)align;
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
    uint64_t blocks = (k + GROUPED_BLOCK - 1) / GROUPED_BLOCK;
    uint64_t a_rows = d->a_rows ? (uint64_t)d->a_rows : m, a_planes = d->a_rows ? 1 : planes;
    p->a_rows = (uint32_t)d->a_rows;
    p->groups = (uint32_t)groups, p->m = (uint32_t)m, p->n = (uint32_t)n, p->k = (uint32_t)k;
    p->k_blocks = (uint32_t)blocks;
    p->blocks_n = (uint32_t)((n + GROUPED_BLOCK - 1) / GROUPED_BLOCK);
    p->expected_m = (uint32_t)d->expected_m;
    if (!p->expected_m) p->expected_m = (uint32_t)((m + groups / planes - 1) / (groups / planes));
    p->of[GROUPED_A] =
        (struct grouped_tensor){.columns = k, .rows = a_rows, a_planes, .element = 1};
    p->of[GROUPED_B] = (struct grouped_tensor){.columns = k, .rows = n, groups, .element = 1};
    p->of[GROUPED_D] = (struct grouped_tensor){
        .columns = n, .rows = m, planes, .element = (uint32_t)hewn_dtype_size(d->out)};
    p->of[GROUPED_S] =
        (struct grouped_tensor){.columns = a_rows, .rows = blocks, a_planes, .element = WORD};
    status = check_tensor(&p->of[GROUPED_A], a, d->lda, k, d->stride_a, err);
    if (!status) status = check_tensor(&p->of[GROUPED_B], b, d->ldb, k, d->stride_b, err);
    if (!status) status = check_tensor(&p->of[GROUPED_D], o, d->ldd, n, d->stride_d, err);
    if (!status)
        status = check_tensor(&p->of[GROUPED_S], s,
                              d->scale_a_k ? d->scale_a_k : (int64_t)(a_rows + 3) / 4 * 4, a_rows,
                              d->scale_a_plane, err);
    if (!status)
        status = check_stride("scale_b_n", d->scale_b_n, blocks, WORD, WORD, &p->scale_b_row, err);
    if (!status)
        status =
            check_stride("scale_b_plane", d->scale_b_plane, p->blocks_n * p->scale_b_row / WORD,
                         WORD, WORD, &p->scale_b_plane, err);
    p->scale_b_span =
        groups * p->scale_b_plane; /* below 2^71: a description that large fails at B */
    return status;
}

int hewn_grouped_plan_check_tables(const hewn_grouped_plan *plan, const hewn_grouped_tables *tables,
                                   hewn_error *err)
{
    hewn_grouped_tables t;
    if (!plan) return hewn_fail(err, HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    int status = hewn_struct_take(HEWN_STRUCT_hewn_grouped_tables, tables, &t, err);
    if (status) return status;
    const struct grouped_problem *p = &plan->problem;
    const struct hewn_array rows = {"", "rows", t.rows};
    int offsets = p->kind == HEWN_GROUPED_OFFSETS;
    status = hewn_array_check_given(rows, p->kind != HEWN_GROUPED_PLANES, err);
    if (status || !t.rows) return status;
    status = hewn_array_check_values(rows, p->groups + (uint64_t)offsets, p->m, err);
    for (uint32_t i = 0; !status && offsets && i < p->groups; i++)
        if (t.rows[i] > t.rows[i + 1])
            status = hewn_fail(err, HEWN_ERR_ARGUMENT, "rows[%u]: %d is behind rows[%u], %d", i,
                               t.rows[i], i + 1, t.rows[i + 1]);
    return status;
}
