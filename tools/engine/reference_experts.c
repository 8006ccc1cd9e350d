#include "reference_parts.h"

#include <math.h>
#include <string.h>

struct choice { /* of one row */
    size_t expert[EXPERT_CHOICES_MAX];
    double weight[EXPERT_CHOICES_MAX];
};

/* The index of the largest of `count` numbers, of equal ones the first; it becomes -infinity. */
static size_t take_largest(double *x, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (x[i] > x[best]) best = i;
    x[best] = -INFINITY;
    return best;
}

static double largest(const double *x, size_t count)
{
    double most = -INFINITY;
    for (size_t i = 0; i < count; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* Logits to scores: sigmoids, or softmax. */
static void score(const struct config *c, double *x)
{
    const size_t n = (size_t)c->experts;
    const double most = largest(x, n);
    double sum = 0;
    for (size_t e = 0; e < n; e++) {
        x[e] = c->router_sigmoid ? 1 / (1 + exp(-x[e])) : exp(x[e] - most);
        sum += x[e];
    }
    for (size_t e = 0; e < n && !c->router_sigmoid; e++) x[e] /= sum;
}

/* Scores of experts outside the best groups become -infinity. */
static void keep_groups(struct run *r, double *x)
{
    const struct config *c = r->c;
    const size_t groups = (size_t)c->expert_groups, each = (size_t)(c->experts / c->expert_groups);
    double of_group[EXPERT_GROUPS_MAX] = {0}, last = INFINITY;
    bool kept[EXPERT_GROUPS_MAX] = {false};
    if (c->groups_kept == c->expert_groups) return;
    for (size_t g = 0; g < groups; g++) {
        double two[2] = {-INFINITY, -INFINITY};
        for (size_t e = g * each; e < (g + 1) * each; e++)
            if (x[e] > two[0]) {
                two[1] = two[0];
                two[0] = x[e];
            } else if (x[e] > two[1]) {
                two[1] = x[e];
            }
        of_group[g] = c->router_sigmoid ? two[0] + two[1] : two[0];
    }
    for (int64_t i = 0; i < c->groups_kept; i++) {
        last = largest(of_group, groups);
        kept[take_largest(of_group, groups)] = true;
    }
    if (last - largest(of_group, groups) < r->margin) r->margin = last - largest(of_group, groups);
    for (size_t e = 0; e < groups * each; e++)
        if (!kept[e / each]) x[e] = -INFINITY;
}

/* The experts of a row, the best first, by its scores; these stay. */
static void choose(struct run *r, const double *scores, const double *bias, struct choice *out)
{
    const struct config *c = r->c;
    const size_t n = (size_t)c->experts, most = (size_t)c->expert_choices;
    double x[EXPERTS_MAX] = {0}, sum = 0, last = 0;
    for (size_t e = 0; e < n; e++) x[e] = scores[e] + (bias ? bias[e] : 0);
    keep_groups(r, x);
    for (size_t j = 0; j < most; j++) {
        last = largest(x, n);
        out->expert[j] = take_largest(x, n);
        out->weight[j] = scores[out->expert[j]];
        sum += out->weight[j];
    }
    if (last - largest(x, n) < r->margin) r->margin = last - largest(x, n);
    for (size_t j = 0; j < most; j++)
        out->weight[j] *= c->router_scale / (c->router_normed ? sum + 1e-20 : 1);
}

/* added[i] = the weighted sum of what the chosen experts make of row i. */
static void add_row(struct run *r, const struct layer_tensors *t, size_t i, const struct choice *by)
{
    const size_t h = (size_t)r->c->hidden, count = r->count;
    double *out = r->added + i * h;
    memset(out, 0, h * sizeof *out);
    for (int64_t j = 0; j < r->c->expert_choices; j++) {
        const struct expert_tensors *e = &t->expert[by->expert[j]];
        reference_dense(r, r->normed + i * h, e->gate, e->up, 1);
        r->count = 1;
        reference_product(r, r->inner, e->down, r->made, h);
        r->count = count;
        for (size_t k = 0; k < h; k++) out[k] += by->weight[j] * keep(r, r->made[k]);
    }
    for (size_t k = 0; k < h; k++) out[k] = keep(r, out[k]);
}

void reference_experts(struct run *r, const struct layer_tensors *t)
{
    const size_t h = (size_t)r->c->hidden, n = (size_t)r->c->experts;
    double bias[EXPERTS_MAX];
    for (size_t e = 0; t->router_bias && e < n; e++) bias[e] = weights_value(t->router_bias, e);
    reference_product(r, r->normed, t->router, r->router, n);
    for (size_t i = 0; i < r->count; i++) {
        struct choice by = {.expert = {0}};
        score(r->c, r->router + i * n);
        choose(r, r->router + i * n, t->router_bias ? bias : NULL, &by);
        add_row(r, t, i, &by);
    }
    if (t->shared_gate) {
        reference_dense(r, r->normed, t->shared_gate, t->shared_up, r->count);
        reference_add(r, r->inner, t->shared_down, NULL);
    }
    for (size_t k = 0; k < r->count * h; k++) r->stream[k] = keep(r, r->stream[k] + r->added[k]);
}
