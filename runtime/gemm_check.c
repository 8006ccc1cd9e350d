/* The rules of hewn.h that a GEMM's description must keep on any device, and its operands in bytes. */
#include "gemm.h"

#include "error.h"

static const uint64_t stride_end = UINT64_C(1) << 40; /* bytes; TMA's own limit */

static int check_extent(const char *name, int64_t value, hewn_error *err)
{
    if (value < 1)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %lld is not at least 1", name,
                         (long long)value);
    if (value > GEMM_MAX_EXTENT)
        return hewn_fail(err, HEWN_ERR_LIMIT, "%s: %lld is more than %d, the kernel's limit", name,
                         (long long)value, GEMM_MAX_EXTENT);
    return HEWN_OK;
}

static int check_dtypes(const hewn_gemm_desc *d, hewn_error *err)
{
    const char *in = hewn_dtype_name(d->in), *in_b = hewn_dtype_name(d->in_b);
    const size_t size = hewn_dtype_size(d->in);
    if (size != 2 && size != 1)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "in: dtype %d (%s) is none of f16, bf16, e4m3, e5m2, s8", d->in,
                         in ? in : "unknown");
    if (d->in_b && d->in_b != d->in &&
        (size != 1 || hewn_dtype_size(d->in_b) != 1 || d->in == HEWN_S8 || d->in_b == HEWN_S8))
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "in_b: dtype %d (%s) does not go with `in`, %s",
                         d->in_b, in_b ? in_b : "unknown", in);
    if (d->accumulate != HEWN_ACCUMULATE_FULL && d->accumulate != HEWN_ACCUMULATE_FAST)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "accumulate: %d is neither HEWN_ACCUMULATE_FULL nor ..._FAST",
                         d->accumulate);
    const char *out = hewn_dtype_name(d->out);
    if (d->out == HEWN_S32 && d->in == HEWN_S8) {
        if (!d->with && !d->act) return HEWN_OK;
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "out: s32 is for sums alone, but `with` is 0x%x and `act` %d", d->with,
                         d->act);
    }
    if (d->out != HEWN_F32 && d->out != HEWN_F16 && d->out != HEWN_BF16)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "out: dtype %d (%s) is none of f32, f16, bf16",
                         d->out, out ? out : "unknown");
    return HEWN_OK;
}

static int check_major(const char *name, int major, int dtype, hewn_error *err)
{
    if (major == HEWN_MAJOR_MN && hewn_dtype_size(dtype) == 1)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: HEWN_MAJOR_MN, but %s inputs are K-major",
                         name, hewn_dtype_name(dtype));
    if (major == HEWN_MAJOR_K || major == HEWN_MAJOR_MN) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: %d is neither HEWN_MAJOR_K nor HEWN_MAJOR_MN",
                     name, major);
}

/* Scales of rows and columns: of inputs that have kernels with them, and in place of one number. */
static int check_scales(const hewn_gemm_desc *d, hewn_error *err)
{
    if (!(d->with & GEMM_VECTORS)) return HEWN_OK;
    if (!hewn_gemm_kind(d))
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "with: 0x%x has scales of rows or columns, but A and B are neither both "
                         "e4m3 nor both s8",
                         d->with);
    if (!(d->with & HEWN_GEMM_WITH_SCALE_A && d->with & HEWN_GEMM_WITH_SCALE_ROWS) &&
        !(d->with & HEWN_GEMM_WITH_SCALE_B && d->with & HEWN_GEMM_WITH_SCALE_COLUMNS))
        return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT, "with: 0x%x has scale_a or scale_b twice", d->with);
}

/* The fields of the epilogue. */
static int check_finish(const hewn_gemm_desc *d, hewn_error *err)
{
    const uint32_t known = HEWN_GEMM_WITH_C | HEWN_GEMM_WITH_BIAS | HEWN_GEMM_WITH_SCALE_A |
                           HEWN_GEMM_WITH_SCALE_B | HEWN_GEMM_WITH_ALPHA | GEMM_VECTORS;
    if (d->with & ~known)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "with: 0x%x has bits that no HEWN_GEMM_WITH_... has", d->with);
    if (d->act < HEWN_ACT_NONE || d->act > HEWN_ACT_SWIGLU)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "act: %d is not in 0..%d", d->act,
                         HEWN_ACT_SWIGLU);
    if (d->act == HEWN_ACT_SWIGLU && d->with & (HEWN_GEMM_WITH_C | HEWN_GEMM_WITH_BIAS))
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "with: 0x%x has C or bias, which HEWN_ACT_SWIGLU is not for", d->with);
    if (d->bias_type != HEWN_F32 && d->bias_type != d->out) {
        const char *type = hewn_dtype_name(d->bias_type);
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "bias_type: dtype %d (%s) is neither f32 nor D's",
                         d->bias_type, type ? type : "unknown");
    }
    if (d->with & HEWN_GEMM_WITH_C || (!d->ldc && !d->stride_c)) return check_scales(d, err);
    return hewn_fail(
        err, HEWN_ERR_ARGUMENT,
        "ldc, stride_c: %lld and %lld must be 0, because `with` lacks HEWN_GEMM_WITH_C",
        (long long)d->ldc, (long long)d->stride_c);
}

/* `elements` becomes bytes. */
static int check_stride(const struct gemm_operand *o, const char *what, int64_t elements,
                        uint64_t *bytes, hewn_error *err)
{
    if (elements < 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%c: %s %lld elements is negative", o->name, what,
                         (long long)elements);
    if ((uint64_t)elements > (stride_end - 1) / o->element)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%c: %s %lld elements of %d B is not below 2^40 B",
                         o->name, what, (long long)elements, (int)o->element);
    *bytes = (uint64_t)elements * o->element;
    return HEWN_OK;
}

/* Problems of one D may follow each other, or lie side by side in its rows. Other patterns are refused,
 * also the few that do not overlap. */
static int check_problems_apart(const struct gemm_operand *d, int64_t stride, hewn_error *err)
{
    uint64_t row = d->columns * d->element;
    uint64_t matrix = (d->rows - 1) * d->pitch + row;
    if (d->plane >= matrix) return HEWN_OK;
    if (d->plane >= row && d->plane <= (d->pitch - row) / (d->batch - 1)) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT,
                     "D: batch stride %lld elements makes problems overlap: a problem spans %llu "
                     "elements, a row %llu of its %llu",
                     (long long)stride, (unsigned long long)(matrix / d->element),
                     (unsigned long long)d->columns, (unsigned long long)(d->pitch / d->element));
}

/* Fills the derived fields of an operand whose name, rows, columns and element are set. */
static int check_operand(struct gemm_operand *o, uint32_t align, int64_t ld, int64_t batch,
                         int64_t stride, hewn_error *err)
{
    if (ld == 0) ld = (int64_t)o->columns;
    int status = check_stride(o, "row stride", ld, &o->pitch, err);
    if (status) return status;
    if ((uint64_t)ld < o->columns)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "%c: leading dimension %lld is less than the row's %llu elements", o->name,
                         (long long)ld, (unsigned long long)o->columns);
    o->batch = 1;
    o->plane = o->pitch; /* with one matrix any legal stride will do */
    o->align = align > o->element ? align : (uint32_t)o->element;
    if (batch > 1) {
        uint64_t bytes;
        status = check_stride(o, "batch stride", stride, &bytes, err);
        if (status) return status;
        if (bytes > 0 || o->name == 'D') {
            o->batch = (uint64_t)batch;
            o->plane = bytes;
        }
    }
    o->loose = align < GEMM_ALIGN || o->pitch % GEMM_ALIGN || o->plane % GEMM_ALIGN;
    uint64_t planes, rows;
    if (__builtin_mul_overflow(o->batch - 1, o->plane, &planes) ||
        __builtin_mul_overflow(o->rows - 1, o->pitch, &rows) ||
        __builtin_add_overflow(planes, rows, &o->span) ||
        __builtin_add_overflow(o->span, o->columns * o->element, &o->span))
        return hewn_fail(err, HEWN_ERR_LIMIT, "%c: %llu rows of %llu B, %llu times: past 2^64 B",
                         o->name, (unsigned long long)o->rows, (unsigned long long)o->pitch,
                         (unsigned long long)o->batch);
    if (o->batch > 1 && o->name == 'D') return check_problems_apart(o, stride, err);
    return HEWN_OK;
}

int hewn_gemm_check(const hewn_gemm_desc *d, struct gemm_operand operands[GEMM_OPERANDS],
                    hewn_error *err)
{
    int64_t batch = d->batch ? d->batch : 1;
    int status = check_dtypes(d, err);
    if (!status) status = check_extent("m", d->m, err);
    if (!status) status = check_extent("n", d->n, err);
    if (!status) status = check_extent("k", d->k, err);
    if (!status) status = check_extent("batch", batch, err);
    if (!status) status = check_major("major_a", d->major_a, d->in, err);
    if (!status) status = check_major("major_b", d->major_b, d->in, err);
    if (!status) status = check_finish(d, err);
    if (!status && d->invariant > 1)
        status = hewn_fail(err, HEWN_ERR_ARGUMENT, "invariant: %u is not in 0..1", d->invariant);
    if (!status && (d->align & (d->align - 1) || d->align > GEMM_ALIGN))
        status =
            hewn_fail(err, HEWN_ERR_ARGUMENT, "align: %u is none of 0, 1, 2, 4, 8, 16", d->align);
    if (status) return status;
    uint64_t m = (uint64_t)d->m, n = (uint64_t)d->n, k = (uint64_t)d->k;
    uint64_t rows_b = hewn_gemm_factors(d) * n;
    if (rows_b > GEMM_MAX_EXTENT)
        return hewn_fail(err, HEWN_ERR_LIMIT, "n: B has twice %llu rows, more than %d",
                         (unsigned long long)n, GEMM_MAX_EXTENT);
    uint64_t in = hewn_dtype_size(d->in), out = hewn_dtype_size(d->out);
    uint32_t align = d->align ? d->align : GEMM_ALIGN;
    int mn_a = d->major_a == HEWN_MAJOR_MN, mn_b = d->major_b == HEWN_MAJOR_MN;
    operands[GEMM_A] = (struct gemm_operand){
        .name = 'A', .rows = mn_a ? k : m, .columns = mn_a ? m : k, .element = in};
    operands[GEMM_B] = (struct gemm_operand){
        .name = 'B', .rows = mn_b ? k : rows_b, .columns = mn_b ? rows_b : k, .element = in};
    operands[GEMM_D] = (struct gemm_operand){.name = 'D', .rows = m, .columns = n, .element = out};
    operands[GEMM_C] = (struct gemm_operand){.name = 'C', .rows = m, .columns = n, .element = out};
    status = check_operand(&operands[GEMM_A], align, d->lda, batch, d->stride_a, err);
    if (!status) status = check_operand(&operands[GEMM_B], align, d->ldb, batch, d->stride_b, err);
    if (!status) status = check_operand(&operands[GEMM_D], align, d->ldd, batch, d->stride_d, err);
    if (!status && d->with & HEWN_GEMM_WITH_C)
        status = check_operand(&operands[GEMM_C], align, d->ldc, batch, d->stride_c, err);
    return status;
}
