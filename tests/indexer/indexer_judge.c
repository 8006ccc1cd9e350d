#include "indexer_case.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MMA_BLOCK = 32, MOST_DIM = 128, MOST_HEADS = 128 };

/* A vector's elements, and their magnitudes as the tensor core aligns them: by exponents, which subnormals
 * share. */
struct vector {
    double value[MOST_DIM], size[MOST_DIM];
};

static void load(struct vector *v, const unsigned char *at, int dim)
{
    const double least = number_format(HEWN_E4M3).normal;
    for (int i = 0; i < dim; i++) {
        v->value[i] = at ? number_load(HEWN_E4M3, at + i) : 0;
        v->size[i] = v->value[i] != 0 ? fmax(fabs(v->value[i]), least) : 0;
    }
}

/* The product, and the bound H on its error. */
static double product(const struct vector *a, const struct vector *b, int dim, double *bound)
{
    double sum = 0, h = 0;
    for (int first = 0; first < dim; first += MMA_BLOCK) {
        double largest = fabs(sum) + h;
        int end = first + MMA_BLOCK < dim ? first + MMA_BLOCK : dim;
        for (int i = first; i < end; i++) {
            largest = fmax(largest, a->size[i] * b->size[i]);
            sum += a->value[i] * b->value[i];
        }
        h += 33 * 0x1p-13 * largest;
        h += 0x1p-13 * (fabs(sum) + h);
    }
    *bound = h;
    return sum;
}

struct judge {
    const struct indexer_data *d;
    struct vector q[MOST_HEADS];
    double worst, want, got; /* of the element that exceeds its tolerance most */
    int beyond, row, key, untouched;
};

static void judge_key(struct judge *j, int row, int key)
{
    const struct indexer_data *d = j->d;
    const float *weights = d->weights + row * d->desc.weight_token;
    const unsigned char *at = NULL;
    struct vector k;
    float scale = 0, bits;
    double sum = 0, error = 0, reach = 0;
    if (!indexer_key(d, row / d->c.queries, key, &at, &scale)) at = NULL;
    load(&k, at, d->c.dim);
    for (int h = 0; h < d->c.heads; h++) {
        double bound, s = product(&j->q[h], &k, d->c.dim, &bound), w = fabs((double)weights[h]);
        sum += (double)weights[h] * (isnan(s) || s > 0 ? s : 0);
        error += w * bound;
        reach += w * (fabs(s) + bound);
    }
    double want = (double)scale * sum;
    double most = fabs((double)scale) * (error + (d->c.heads + 5) * 0x1p-24 * reach) + 0x1p-126;
    memcpy(&bits, &d->out[row * d->desc.out_token + key], sizeof bits);
    double got = (double)bits, excess = fabs(got - want) / most;
    if (d->c.exact) excess = got == want ? 0 : (double)INFINITY;
    if (isnan(want) || isnan(got)) excess = isnan(want) && isnan(got) ? 0 : (double)INFINITY;
    if (excess > 1) j->beyond++;
    if (excess <= j->worst) return;
    j->worst = excess, j->want = want, j->got = got, j->row = row, j->key = key;
}

double indexer_judge(const struct indexer_data *d)
{
    struct judge j = {.d = d};
    for (int row = 0; row < d->rows; row++) {
        int from, to;
        indexer_range(d, row, &from, &to);
        for (int h = 0; h < d->c.heads; h++)
            load(&j.q[h], d->q + row * d->desc.q_token + h * d->desc.q_head, d->c.dim);
        for (int key = 0; key < d->desc.out_token; key++) {
            if (key >= from && key < to)
                judge_key(&j, row, key);
            else if (d->out[row * d->desc.out_token + key] != INDEXER_POISON && !j.untouched++)
                CHECK(0, "row %d, key %d is outside %d..%d and written", row, key, from, to);
        }
    }
    CHECK(!j.beyond,
          "%d logits are beyond the tolerance, worst [%d,%d]: want %.9g got %.9g, %.3g "
          "of it",
          j.beyond, j.row, j.key, j.want, j.got, j.worst);
    return j.worst;
}
