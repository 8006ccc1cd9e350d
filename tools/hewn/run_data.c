/* What buffers of hewn run begin with and end as. Seeded contents are the same on every machine. */
#include "npy.h"
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- elements as doubles ---- */

static double get(int dtype, const void *data, uint64_t i)
{
    switch (dtype) {
    case RUN_u8: return ((const uint8_t *)data)[i];
    case RUN_s8: return ((const int8_t *)data)[i];
    case RUN_u16: return ((const uint16_t *)data)[i];
    case RUN_s16: return ((const int16_t *)data)[i];
    case RUN_u32: return ((const uint32_t *)data)[i];
    case RUN_s32: return ((const int32_t *)data)[i];
    case RUN_u64: return (double)((const uint64_t *)data)[i];
    case RUN_s64: return (double)((const int64_t *)data)[i];
    case RUN_f64: return ((const double *)data)[i];
    case RUN_f16: return element_value(HEWN_F16, data, i);
    case RUN_bf16: return element_value(HEWN_BF16, data, i);
    default: return ((const float *)data)[i];
    }
}

/* Integers wrap modulo their range, as iota over a narrow type should. */
static void put(int dtype, void *data, uint64_t i, double v)
{
    float f = (float)v;
    int64_t whole = dtype < RUN_f16 ? (int64_t)v : 0;
    switch (dtype) {
    case RUN_f16: convert_inputs(HEWN_F32, HEWN_F16, &f, (uint16_t *)data + i, 1); break;
    case RUN_bf16: convert_inputs(HEWN_F32, HEWN_BF16, &f, (uint16_t *)data + i, 1); break;
    case RUN_f32: ((float *)data)[i] = f; break;
    case RUN_f64: ((double *)data)[i] = v; break;
    default: memcpy((char *)data + i * run_dtypes[dtype].bytes, &whole, run_dtypes[dtype].bytes);
    }
}

/* ---- filling ---- */

/* Uniform in [low, high), from a 64-bit linear congruential generator (Knuth's constants). Integers without bounds:
 * every value of their type. But a u8 may stand for an e4m3, so it gets no byte that is NaN there (0x7F, 0xFF). */
static void fill_random(const struct run_buffer *b, const struct run_init *init, void *out)
{
    const double *value = init->value;
    const size_t bytes = run_dtypes[b->dtype].bytes;
    uint64_t state = (uint64_t)value[2] * 0x9E3779B97F4A7C15U + 1;
    for (uint64_t i = 0; i < b->count; i++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        if (b->dtype < RUN_f16 && !init->bounded) {
            uint64_t bits = state >> (64 - 8 * bytes);
            if (b->dtype == RUN_u8 && (bits & 0x7F) == 0x7F) bits ^= 1;
            memcpy((char *)out + i * bytes, &bits, bytes);
            continue;
        }
        put(b->dtype, out, i,
            value[0] + (value[1] - value[0]) * ((double)(state >> 11) / 9007199254740992.0));
    }
}

static int fill_file(const struct run_buffer *b, const char *path, void *out)
{
    char why[512];
    const struct run_dtype_info *t = &run_dtypes[b->dtype];
    return npy_read_into(path, t->npy, t->bytes, b->rank, b->dim, out, why, sizeof why)
               ? run_fail(b->name, "%s", why)
               : 0;
}

/* C = A * transpose(B); `bound` receives, where wanted, the tolerance of each element. */
static int fill_matmul(const struct run *r, const struct run_buffer *c, const struct run_init *init,
                       void *out, double *bound)
{
    const struct run_buffer *a = &r->buffer[init->of[0]], *b = &r->buffer[init->of[1]];
    uint64_t m = a->dim[0], n = b->dim[0], k = a->dim[1];
    /* One rounding to the result's type: half a unit in the last place. */
    double last = c->dtype == RUN_bf16 ? 0x1p-9 : c->dtype == RUN_f16 ? 0x1p-12 : 0x1p-25;
    if (a->rank != 2 || b->rank != 2 || c->rank != 2 || b->dim[1] != k || c->dim[0] != m ||
        c->dim[1] != n)
        return run_fail(c->name, "matmul: %s, %s and %s are no M x K, N x K and M x N", a->name,
                        b->name, c->name);
    for (uint64_t i = 0; i < m; i++)
        for (uint64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (uint64_t x = 0; x < k; x++) {
                double p = get(a->dtype, a->start, i * k + x) * get(b->dtype, b->start, j * k + x);
                sum += p;
                size += fabs(p);
            }
            put(c->dtype, out, i * n + j, sum);
            if (bound) bound[i * n + j] = (double)k * 0x1p-23 * size + last * fabs(sum);
        }
    return 0;
}

int run_fill(const struct run *r, const struct run_buffer *b, const struct run_init *init,
             void *out)
{
    size_t bytes = b->count * run_dtypes[b->dtype].bytes;
    const struct run_buffer *other = &r->buffer[init->of[0]];
    switch (init->kind) {
    case INIT_RANDOM: fill_random(b, init, out); return 0;
    case INIT_IOTA:
        for (uint64_t i = 0; i < b->count; i++)
            put(b->dtype, out, i, init->value[0] + init->value[1] * (double)i);
        return 0;
    case INIT_CONST:
        for (uint64_t i = 0; i < b->count; i++) put(b->dtype, out, i, init->value[0]);
        return 0;
    case INIT_FILE: return fill_file(b, init->path, out);
    case INIT_SAME:
        if (other->dtype != b->dtype || other->count != b->count)
            return run_fail(b->name, "same %s: type or number of elements differs", other->name);
        memcpy(out, other->start, bytes);
        return 0;
    case INIT_MATMUL: return fill_matmul(r, b, init, out, NULL);
    default: memset(out, 0, bytes); return 0;
    }
}

/* ---- comparing ---- */

static double tolerance(const struct run_output *o, const double *bound, uint64_t i, double want)
{
    if (bound) return bound[i];
    return o->tolerance * (1 + fabs(want));
}

/* "[3,17]" */
static void place(const struct run_buffer *b, uint64_t i, char *out, size_t size)
{
    uint64_t index[RUN_RANK] = {0};
    int n = 0;
    for (int d = b->rank - 1; d >= 0; d--) {
        index[d] = i % b->dim[d];
        i /= b->dim[d];
    }
    for (int d = 0; d < b->rank; d++)
        n += snprintf(out + n, size - (size_t)n, "%c%llu", d ? ',' : '[',
                      (unsigned long long)index[d]);
    snprintf(out + n, size - (size_t)n, "]");
}

static int judge(const struct run_buffer *b, const struct run_output *o, const void *want,
                 const void *got, const double *bound)
{
    uint64_t bad = 0, worst = 0;
    double distance = -1;
    char at[128];
    for (uint64_t i = 0; i < b->count; i++) {
        double w = get(b->dtype, want, i), g = get(b->dtype, got, i), d = fabs(w - g);
        size_t bytes = run_dtypes[b->dtype].bytes;
        if (!memcmp((const char *)want + i * bytes, (const char *)got + i * bytes, bytes)) continue;
        if (d <= tolerance(o, bound, i, w)) continue;
        bad++;
        if (isnan(d)) d = (double)INFINITY;
        if (d > distance) distance = d, worst = i;
    }
    if (!bad) return 0;
    place(b, worst, at, sizeof at);
    return run_fail(b->name, "%llu of %llu elements are wrong; the worst, %s: want %.9g, got %.9g",
                    (unsigned long long)bad, (unsigned long long)b->count, at,
                    get(b->dtype, want, worst), get(b->dtype, got, worst));
}

int run_compare(const struct run *r, const struct run_output *o, const void *got)
{
    const struct run_buffer *b = &r->buffer[o->buffer];
    bool matmul = o->want.kind == INIT_MATMUL;
    void *want = malloc(b->count * run_dtypes[b->dtype].bytes);
    double *bound = matmul ? calloc(b->count, sizeof *bound) : NULL;
    int rc;
    if (!want || (matmul && !bound))
        rc = run_fail(b->name, "no memory for what is expected");
    else
        rc = matmul ? fill_matmul(r, b, &o->want, want, bound) : run_fill(r, b, &o->want, want);
    if (!rc) rc = judge(b, o, want, got, bound);
    free(want);
    free(bound);
    return rc;
}

int run_write(const struct run *r, const struct run_output *o, const void *got)
{
    const struct run_buffer *b = &r->buffer[o->buffer];
    const struct run_dtype_info *t = &run_dtypes[b->dtype];
    char why[512];
    return npy_write_array(o->path, t->npy, t->bytes, b->rank, b->dim, got, why, sizeof why)
               ? run_fail(b->name, "%s", why)
               : 0;
}
