/* The rule by which a D is quantised, in C, and the judge of D's bytes. */
#include "scaled_quantised.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 32, ATOM_SCALES = 4 };

/* A vector of y, each between two numbers: apart where an activation is approximate. */
struct vector {
    int count;
    float low[MOST], high[MOST];
};

/* What approximate exponentials and reciprocals may lose. */
static const double loss = 1e-4, least_loss = 1e-30;

static float sigmoid_of(float x, double t)
{
    return (float)((double)x / (1 + exp(-t)));
}

static float relu(float x)
{
    return x > 0 || isnan(x) ? x : 0;
}

/* x after the activation, in fp32 but for its approximations. */
static float activate(int act, float x, float up)
{
    const double d = (double)x;
    switch (act) {
    case HEWN_ACT_RELU: return relu(x);
    case HEWN_ACT_GELU: return sigmoid_of(x, 2 * sqrt(2 / M_PI) * (d + 0.044715 * d * d * d));
    case HEWN_ACT_SILU: return sigmoid_of(x, d);
    case HEWN_ACT_SWIGLU: return sigmoid_of(x, d) * up;
    default: return x;
    }
}

/* ---- the rule, of y and of a scale -- */

/* The byte of the scale of a vector whose largest |y| is `amax`. */
static unsigned char scale_of(int dtype, float amax)
{
    unsigned char byte;
    if (dtype == HEWN_E4M3) {
        int e = 0;
        if (!isfinite(amax)) return 0xFF;
        if (amax == 0) return 0;
        frexpf(amax, &e); /* amax in 2^(e - 1) .. 2^e */
        e = e - 1 - 8 + 127;
        return (unsigned char)(e < 0 ? 0 : e);
    }
    if (!isfinite(amax)) return 0x7F;
    number_store(HEWN_E4M3, (double)(amax * (1.0F / 6)), &byte);
    return byte;
}

/* e2m1, to nearest even; NaN becomes 6. */
static unsigned e2m1_of(float x)
{
    static const float values[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    const float m = fabsf(x);
    unsigned code = 7;
    if (isnan(x)) return 7;
    for (unsigned i = 0; i < 7; i++) {
        const float middle = (values[i] + values[i + 1]) / 2;
        if (m < middle || (m == middle && i % 2 == 0)) {
            code = i;
            break;
        }
    }
    return code | (signbit(x) ? 8U : 0);
}

/* The code of an element, with the vector's scale. */
static unsigned element_of(int dtype, float y, unsigned char scale)
{
    unsigned char byte;
    if (dtype == HEWN_E4M3) {
        if (scale == 0xFF) return 0x7F; /* NaN */
        number_store(HEWN_E4M3, (double)(y * ldexpf(1, 127 - scale)), &byte);
        return byte;
    }
    if (scale == 0) return signbit(y) ? 8 : 0;
    return e2m1_of(y * (1 / (float)number_load(HEWN_E4M3, &scale)));
}

/* Codes in the order of their values. */
static int rank(int dtype, unsigned code)
{
    const int sign = dtype == HEWN_E4M3 ? 0x80 : 8, low = (int)code & (sign - 1);
    return (int)code & sign ? -low : low;
}

/* ---- the judge -- */

struct judge {
    const struct quantised_case *q;
    const struct quantised_terms *t;
    const struct scaled_data *from, *got;
    int scales, elements; /* that are wrong */
};

/* D in f32, a column of the accumulator, and the bias on top. */
static float sum_of(const struct judge *j, int group, int plane, int row, int column)
{
    const hewn_grouped_desc *d = &j->from->desc;
    float x;
    memcpy(&x, j->from->d + (plane * d->stride_d + row * d->ldd + column) * 4, sizeof x);
    return j->q->bias ? x + j->t->bias[group * j->from->c.n + column] : x;
}

static struct vector vector_of(const struct judge *j, int group, int plane, int row, int first)
{
    const int act = j->q->act, glu = act == HEWN_ACT_SWIGLU, n = j->q->second.k;
    const int size = scaled_vector(&j->q->second);
    const float factor = j->q->factor ? j->t->factor[group] : 1;
    struct vector v = {.count = n - first < size ? n - first : size};
    for (int i = 0; i < v.count; i++) {
        const int c = first + i, gate = glu ? c / 32 * 64 + c % 32 : c;
        const float up = glu ? sum_of(j, group, plane, row, gate + 32) : 0;
        const float y = factor * activate(act, sum_of(j, group, plane, row, gate), up);
        const int exact = act == HEWN_ACT_NONE || act == HEWN_ACT_RELU;
        const float off = exact ? 0 : (float)(fabs((double)y) * loss + least_loss);
        v.low[i] = y - off, v.high[i] = y + off;
        if (exact) v.low[i] = v.high[i] = y;
    }
    return v;
}

/* The scale of the vector must lie between those of its least and its largest numbers. */
static int is_scale(int dtype, const struct vector *v, unsigned char byte)
{
    float least = 0, most = 0;
    int finite = 1;
    for (int i = 0; i < v->count; i++) {
        const float a = fabsf(v->low[i]), b = fabsf(v->high[i]);
        finite &= isfinite(a) && isfinite(b);
        if ((v->low[i] > 0) == (v->high[i] > 0)) least = fmaxf(least, fminf(a, b));
        most = fmaxf(most, fmaxf(a, b));
    }
    if (!finite) least = most = INFINITY;
    return byte >= scale_of(dtype, least) && byte <= scale_of(dtype, most);
}

static unsigned code_at(const struct judge *j, int plane, int row, int column)
{
    const unsigned char *at = j->got->a.bytes + plane * j->got->a.plane + row * j->got->a.row;
    if (j->q->second.in == HEWN_E4M3) return at[column];
    return at[column / 2] >> column % 2 * 4 & 0xF;
}

static void judge_vector(struct judge *j, int group, int plane, int row, int first)
{
    const int dtype = j->q->second.in;
    const struct vector v = vector_of(j, group, plane, row, first);
    const unsigned char byte =
        *scaled_scale(&j->got->a, plane, row, first / scaled_vector(&j->q->second));
    if (!is_scale(dtype, &v, byte) && !j->scales++)
        CHECK(0, "group %d, row %d, columns %d..: the scale is 0x%02X of %g ..", group, row, first,
              byte, (double)v.low[0]);
    for (int i = 0; i < v.count; i++) {
        const unsigned got = code_at(j, plane, row, first + i);
        const unsigned a = element_of(dtype, v.low[i], byte),
                       b = element_of(dtype, v.high[i], byte);
        if (v.low[i] == v.high[i]
                ? got == a
                : rank(dtype, got) >= rank(dtype, a) && rank(dtype, got) <= rank(dtype, b))
            continue;
        if (!j->elements++)
            CHECK(0, "group %d [%d,%d]: want 0x%02X got 0x%02X, scale 0x%02X, of %.9g", group, row,
                  first + i, a, got, byte, (double)v.low[i]);
    }
}

/* Bytes of D and of its scales that are no group's, nor between a row's last vector and the end of its atom, keep
 * their poison. */
static void judge_rest(const struct quantised_case *q, const struct scaled_data *from,
                       const struct scaled_data *got, int end)
{
    unsigned char *bytes = malloc(got->a.size), *scales = malloc(got->a.scale_size);
    struct scaled_side a = got->a;
    const size_t n = (size_t)q->second.k / (q->second.in == HEWN_E2M1 ? 2 : 1);
    size_t written = 0;
    CHECK(bytes && scales, "no host memory");
    if (bytes && scales) {
        memcpy(bytes, a.bytes, a.size);
        memcpy(scales, a.scales, a.scale_size);
        a.scales = scales;
        for (int g = 0; g < q->first.groups; g++) {
            const int plane = got->planes > 1 ? g : 0;
            int first, last;
            scaled_range(from, g, &first, &last);
            for (int row = first; row < last; row++) {
                memset(bytes + plane * a.plane + row * a.row, SCALED_POISON, n);
                for (int i = 0; i < end; i++) *scaled_scale(&a, plane, row, i) = SCALED_POISON;
            }
        }
        for (size_t i = 0; i < a.size; i++) written += bytes[i] != SCALED_POISON;
        for (size_t i = 0; i < a.scale_size; i++) written += scales[i] != SCALED_POISON;
    }
    CHECK(!written, "%zu bytes that are no group's are written", written);
    free(bytes);
    free(scales);
}

void quantised_judge(const struct quantised_case *q, const struct quantised_terms *t,
                     const struct scaled_data *from, const struct scaled_data *got)
{
    struct judge j = {.q = q, .t = t, .from = from, .got = got};
    const int size = scaled_vector(&q->second), vectors = (q->second.k + size - 1) / size;
    const int end = (vectors + ATOM_SCALES - 1) / ATOM_SCALES * ATOM_SCALES;
    int behind = 0;
    for (int g = 0; g < q->first.groups; g++) {
        const int plane = got->planes > 1 ? g : 0;
        int first, last;
        scaled_range(from, g, &first, &last);
        for (int row = first; row < last; row++) {
            for (int n = 0; n < vectors; n++) judge_vector(&j, g, plane, row, n * size);
            for (int n = vectors; n < end; n++)
                behind += *scaled_scale(&got->a, plane, row, n) != 0;
        }
    }
    CHECK(!j.scales && !j.elements, "%d scales and %d elements are wrong", j.scales, j.elements);
    CHECK(!behind, "%d scales behind n are not 0", behind);
    judge_rest(q, from, got, end);
}
