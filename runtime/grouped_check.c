/* The rules of hewn.h that a description of grouped products must keep, and host copies of their rows. */
#include "grouped.h"

#include "error.h"
#include "plan.h"
#include "tables.h"

#include <stddef.h>
#include <string.h>

enum { WORD = 4, MAX_ALIGN = 1 << 30 };

static const uint64_t stride_end = UINT64_C(1) << 40; /* bytes; TMA's own limit */

const char *const hewn_grouped_names[GROUPED_MAPPED] = {"a", "b", "d", "scale_a", "scale_b", "b"};

/* Strides between rows and between planes of each tensor. */
static const struct {
    const char *names[2];
    size_t at[2];
} strides[GROUPED_TENSORS] = {
#define X(tensor, row, plane)   \
    [tensor] = {{#row, #plane}, \
                {offsetof(hewn_grouped_desc, row), offsetof(hewn_grouped_desc, plane)}},
    X(GROUPED_A, lda, stride_a) X(GROUPED_B, ldb, stride_b) X(GROUPED_D, ldd, stride_d)
        X(GROUPED_S, scale_a_k, scale_a_plane) X(GROUPED_SB, scale_b_n, scale_b_plane)
            X(GROUPED_SD, scale_d_m, scale_d_plane)
#undef X
};

static int64_t field_of(const hewn_grouped_desc *d, size_t offset)
{
    int64_t value;
    memcpy(&value, (const char *)d + offset, sizeof value);
    return value;
}

int hewn_grouped_range(const char *name, int64_t value, int64_t least, int64_t most,
                       hewn_error *err)
{
    if (value >= least && value <= most) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is not in %lld..%lld", name,
                     (long long)value, (long long)least, (long long)most);
}

/* A stride, or 0 for `least`, which it may not be below; `*bytes` of it are a multiple of the tensor's. Messages count
 * elements of the caller. */
static int check_stride(const struct grouped_tensor *t, const char *name, int64_t stride,
                        uint64_t least, uint64_t *bytes, hewn_error *err)
{
    const uint32_t align = t->align ? t->align : GROUPED_ALIGN;
    const uint64_t elements = stride ? (uint64_t)stride : least;
    const uint64_t shown = elements << t->halved;
    const long long own = (long long)shown;
    if (stride < 0 || elements > (stride_end - 1) / t->element)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: %lld elements of %u bits are not in 0..2^40-1 B", name, own,
                         8 * t->element >> t->halved);
    *bytes = elements * t->element;
    if (elements < least)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is less than the %llu elements inside",
                         name, own, (unsigned long long)least << t->halved);
    if (*bytes % align)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%s: %lld elements, %llu B, are no multiple of %u B", name, own,
                         (unsigned long long)*bytes, align);
    return HEWN_OK;
}

int hewn_grouped_extent(struct grouped_tensor *t, const char *const names[2], int64_t row,
                        uint64_t least, int64_t plane, hewn_error *err)
{
    int status = check_stride(t, names[0], row, least, &t->pitch, err);
    if (status || !t->pitch) return status; /* a row has elements */
    t->plane = t->pitch;                    /* of one plane any stride will do */
    if (t->planes > 1)
        status =
            check_stride(t, names[1], plane, t->rows * (t->pitch / t->element), &t->plane, err);
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
    for (size_t i = 0; !status && i < sizeof counts / sizeof *counts; i++)
        status = hewn_grouped_range(counts[i].name, field_of(d, counts[i].offset), counts[i].least,
                                    INT32_MAX, err);
    return status;
}

/* Inputs and their scales; formats of block-scaled ones. */
static int check_inputs(const hewn_grouped_desc *d, struct grouped_problem *p, hewn_error *err)
{
    enum {
        E4M3 = 1,
        E5M2 = 2,
        E2M1 = 6,
        HALF = 16
    }; /* 1 + the format in an instruction descriptor */
    static const uint8_t formats[] = {[HEWN_E4M3] = E4M3,
                                      [HEWN_E5M2] = E5M2,
                                      [HEWN_E2M1] = E2M1,
                                      [HEWN_BF16] = HALF,
                                      [HEWN_F16] = HALF};
    const int of[2] = {d->in, d->in_b ? d->in_b : d->in};
    const int block = d->scales > HEWN_GROUPED_COLUMNS, fp4 = d->scales == HEWN_GROUPED_UE4M3_16;
    uint32_t format[2];
    for (int i = 0; i < 2; i++) {
        const char *name = hewn_dtype_name(of[i]);
        const uint32_t f = (uint32_t)of[i] < sizeof formats ? formats[of[i]] : 0;
        format[i] = f - 1;
        if (fp4 ? f == E2M1 : block ? f && f < HALF : f == E4M3 || f == HALF) continue;
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: dtype %d (%s) is %s", i ? "in_b" : "in",
                         of[i], name ? name : "unknown",
                         fp4     ? "not e2m1"
                         : block ? "none of e4m3, e5m2, e2m1"
                                 : "none of e4m3, bf16, f16");
    }
    if (!block && of[0] != of[1])
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "in_b: dtype %d is not that of `in`, %d, which block scales alone allow",
                         of[1], of[0]);
    const int words = d->scale_layout != HEWN_GROUPED_ATOMS;
    const int both = format[0] + 1 == E2M1 && format[1] + 1 == E2M1 && !words;
    p->tile_k = both ? 2U * GROUPED_BLOCK : (uint32_t)GROUPED_BLOCK >> (format[0] + 1 == HALF);
    p->scales = block                   ? fp4     ? SCALES_nv4
                                          : both  ? SCALES_mx4
                                          : words ? SCALES_mw8
                                                  : SCALES_mx8
                : format[0] + 1 == HALF ? QUANTISED(d->out) ? SCALES_h16
                                          : d->act          ? GROUPED_UNSCALED_GLU
                                                            : GROUPED_UNSCALED
                                        : d->scales;
    /* the kinds that have e2m1 alone number it 1, and f16 and bf16 are 0 and 1 */
    p->formats = both || d->in == HEWN_BF16 ? 1U << 7 | 1U << 10
                 : d->in == HEWN_F16        ? 0
                                            : format[0] << 7 | format[1] << 10;
    if (d->scales == HEWN_GROUPED_UE8M0_128) p->formats |= SCALED_COARSE;
    return HEWN_OK;
}

static int check_options(const hewn_grouped_desc *d, struct grouped_problem *p, hewn_error *err)
{
    const char *out = hewn_dtype_name(d->out);
    const int block = d->scales > HEWN_GROUPED_COLUMNS, scaled = block || d->in == HEWN_E4M3;
    const int half = scaled ? HEWN_BF16 : d->in;
    const int coarse = d->scales == HEWN_GROUPED_UE8M0_128;
    const int64_t least = !block || d->kind != HEWN_GROUPED_OFFSETS ? 1
                          : d->scale_layout                         ? GROUPED_ALIGN / WORD
                                                                    : SCALED_ATOM_ROWS;
    int64_t align = d->align ? d->align : least;
    int status = check_inputs(d, p, err);
    if (status) return status;
    const int takes = block || !scaled, quantised = takes && QUANTISED(d->out);
    if (d->out != half && d->out != HEWN_F32 && !quantised)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "out: dtype %d (%s) is none of %s, f32%s", d->out,
                         out ? out : "unknown", hewn_dtype_name(half), takes ? ", e4m3, e2m1" : "");
    status = hewn_grouped_range("kind", d->kind, HEWN_GROUPED_PLANES, HEWN_GROUPED_OFFSETS, err);
    if (!status)
        status =
            hewn_grouped_range("scales", d->scales, 0, scaled ? HEWN_GROUPED_UE8M0_128 : 0, err);
    if (!status)
        status = hewn_grouped_range("scale_layout", d->scale_layout, coarse,
                                    coarse | (d->scales == HEWN_GROUPED_UE8M0_32), err);
    if (!status) status = check_counts(d, err);
    if (!status && !quantised) status = hewn_grouped_range("scale_d_m", d->scale_d_m, 0, 0, err);
    if (!status && !quantised)
        status = hewn_grouped_range("scale_d_plane", d->scale_d_plane, 0, 0, err);
    if (!status && quantised)
        status = hewn_grouped_range("act", d->act, HEWN_ACT_NONE, HEWN_ACT_SWIGLU, err);
    else if (!status && d->act != HEWN_ACT_NONE && (scaled || d->act != HEWN_ACT_SWIGLU))
        status = hewn_fail(err, HEWN_ERR_ARGUMENT,
                           "act: %d, beside %s, is neither HEWN_ACT_NONE nor "
                           "HEWN_ACT_SWIGLU of 16-bit inputs, nor is D quantised",
                           d->act, hewn_dtype_name(d->in));
    if (!status) status = hewn_grouped_range("k", d->k, 1, scaled ? INT32_MAX : INT32_MAX / 2, err);
    if (!status)
        status = hewn_grouped_range("align", d->align, 0,
                                    d->kind == HEWN_GROUPED_OFFSETS ? MAX_ALIGN : 0, err);
    if (!status && align < least)
        status = hewn_fail(
            err, HEWN_ERR_ARGUMENT,
            "align: %lld is less than %lld, the rows at which scales of a group may begin",
            (long long)align, (long long)least);
    if (!status && (block || quantised))
        status = hewn_grouped_range("a_rows", d->a_rows, 0, 0, err);
    if (!status && align & (align - 1))
        status =
            hewn_fail(err, HEWN_ERR_ARGUMENT, "align: %lld is no power of two", (long long)align);
    if (!status && quantised && d->act == HEWN_ACT_SWIGLU && (d->n % 32 || d->n > INT32_MAX / 2))
        status =
            hewn_fail(err, HEWN_ERR_ARGUMENT,
                      "n: %lld, with SwiGLU, is no multiple of 32 below 2^30", (long long)d->n);
    p->in = d->in, p->out = d->out, p->kind = d->kind;
    p->align = (uint32_t)align;
    return status;
}

/* A stride of e2m1 in elements becomes bytes. */
static int halve(const char *name, int64_t *stride, uint32_t multiple, hewn_error *err)
{
    if (*stride % multiple)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld elements of e2m1 are no multiple of %u",
                         name, (long long)*stride, multiple);
    *stride /= 2;
    return HEWN_OK;
}

/* A, B or D of e2m1, and its strides, in bytes. TMA widens A and B beside 8 bits, and asks for more then. */
static int check_packed(const hewn_grouped_desc *d, struct grouped_problem *p, size_t i,
                        int64_t stride[2], hewn_error *err)
{
    struct grouped_tensor *t = &p->of[i];
    const char *const *names = strides[i].names;
    const int dtypes[] = {d->in, d->in_b ? d->in_b : d->in, d->out};
    if (i > GROUPED_D || dtypes[i] != HEWN_E2M1) return HEWN_OK;
    t->packed = i != GROUPED_D && (p->scales == SCALES_mx8 || p->scales == SCALES_mw8);
    const uint32_t multiple = t->packed ? 64 : 32;
    if (t->columns % (t->packed ? GROUPED_BLOCK : 2))
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%c: %llu elements of e2m1 are no multiple of %d",
                         "kkn"[i], (unsigned long long)t -> columns,
                         t -> packed ? GROUPED_BLOCK : 2);
    int status = halve(names[0], &stride[0], multiple, err);
    if (!status) status = halve(names[1], &stride[1], multiple, err);
    t->columns /= 2;
    t->halved = 1;
    return status;
}

/* The strides of a tensor whose extents are set; `row`: between rows where the description has 0, or 0: contiguous. */
static int check_tensor(const hewn_grouped_desc *d, struct grouped_problem *p, size_t i,
                        int64_t row, hewn_error *err)
{
    int64_t stride[2] = {field_of(d, strides[i].at[0]), field_of(d, strides[i].at[1])};
    int status = check_packed(d, p, i, stride, err);
    return status ? status
                  : hewn_grouped_extent(&p->of[i], strides[i].names, stride[0] ? stride[0] : row,
                                        p->of[i].columns, stride[1], err);
}

/* Block scales of `rows` rows, of as many planes as tensor `of`: rows of atoms; or words, a row of them for `units` units
 * along k. */
static int check_block_scales(const hewn_grouped_desc *d, struct grouped_problem *p, size_t i,
                              size_t of, uint64_t rows, uint64_t units, int words, hewn_error *err)
{
    struct grouped_tensor *t = &p->of[i];
    t->planes = p->of[of].planes;
    t->element = words ? WORD : 1;
    t->columns = words ? rows : units * SCALED_ATOM_BYTES;
    t->rows = words ? units : (rows + SCALED_ATOM_ROWS - 1U) / SCALED_ATOM_ROWS;
    return check_tensor(d, p, i, words ? (int64_t)(rows + 3) / 4 * 4 : 0, err);
}

static int check_atoms(const hewn_grouped_desc *d, struct grouped_problem *p, hewn_error *err)
{
    const int words = p->scales == SCALES_mw8;
    const uint64_t k = (p->scales == SCALES_nv4               ? 16U
                        : d->scales == HEWN_GROUPED_UE8M0_128 ? 128U
                                                              : 32U) *
                       SCALED_ATOM_SCALES;
    const uint64_t units = (p->k + k - 1) / k;
    int status = check_block_scales(d, p, GROUPED_S, GROUPED_A, p->m, units, words, err);
    if (!status)
        status = check_block_scales(d, p, GROUPED_SB, GROUPED_B, p->columns, units, words, err);
    return status;
}

/* f32 scales of B: of 128 columns, an element a block of k; or of a block, an element a column. */
static int check_scales_b(const hewn_grouped_desc *d, struct grouped_problem *p, hewn_error *err)
{
    const int columns = p->scales == GROUPED_COLUMN_SCALES;
    struct grouped_tensor *t = &p->of[GROUPED_SB];
    *t = (struct grouped_tensor){.columns = p->k_blocks, .rows = p->blocks_n, .align = WORD};
    if (columns) *t = (struct grouped_tensor){.columns = p->n, .rows = p->k_blocks};
    t->planes = p->groups;
    t->element = WORD;
    return check_tensor(d, p, GROUPED_SB, columns ? ((int64_t)p->n + 3) / 4 * 4 : 0, err);
}

int hewn_grouped_check(const hewn_grouped_desc *d, struct grouped_problem *p, hewn_error *err)
{
    memset(p, 0, sizeof *p);
    int status = check_options(d, p, err);
    if (status) return status;
    uint64_t m = (uint64_t)d->m, n = (uint64_t)d->n, k = (uint64_t)d->k;
    uint64_t groups = (uint64_t)d->groups, planes = d->kind == HEWN_GROUPED_OFFSETS ? 1 : groups;
    const int e2m1 = d->in == HEWN_E2M1;
    const uint32_t element = e2m1 ? 1 : (uint32_t)hewn_dtype_size(d->in);
    uint64_t blocks = (k + p->tile_k - 1) / p->tile_k;
    const uint32_t d_element = (uint32_t)hewn_dtype_size(d->out);
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
    p->of[GROUPED_B] = (struct grouped_tensor){
        .columns = k, .rows = d->act == HEWN_ACT_SWIGLU ? 2 * n : n, groups, .element = element};
    p->of[GROUPED_D] = (struct grouped_tensor){
        .columns = n, .rows = m, planes, .element = d_element ? d_element : 1};
    p->act = d->act;
    p->columns = (uint32_t)(p->scales == GROUPED_UNSCALED_GLU ? n : p->of[GROUPED_B].rows);
    p->of[GROUPED_S] =
        (struct grouped_tensor){.columns = a_rows, .rows = blocks, a_planes, .element = WORD};
    for (size_t i = GROUPED_A; !status && i <= GROUPED_D; i++)
        status = check_tensor(d, p, i, 0, err);
    const uint64_t columns = d->out == HEWN_E2M1 ? 64 : 128; /* of an atom of D's scales */
    if (!status && QUANTISED(d->out))
        status = check_block_scales(d, p, GROUPED_SD, GROUPED_D, p->m, (n + columns - 1) / columns,
                                    0, err);
    if (status || UNSCALED(p->scales)) return status;
    if (SCALED_TEXT(p->scales)) return check_atoms(d, p, err);
    status = check_tensor(d, p, GROUPED_S, (int64_t)(a_rows + 3) / 4 * 4, err);
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
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_grouped_tables, tables, &t, err);
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
