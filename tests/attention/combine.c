/*
 * hewn_merge, and with it the combine kernel of attention (ptx/inc/attention_combine.inc), against float64:
 * seeded partial results of every type, one behind the other or beside each other, some of them empty with
 * NaN where their O would be, merged into O of every type with strides that leave gaps. Gaps and guards
 * must keep their poison.
 *
 * Tolerance, u = 2^-24, from the kernel's own arithmetic: a weight is wrong by at most 6u (ex2.approx
 * 2^-22 of it; its argument x rounded twice, which moves exp(-x) by 2u x exp(-x), at most 0.74u); sums
 * of n terms by n u; so |O - ref| <= (splits + 16) u max_s |O_s|, and half an ulp of O's type;
 * |lse - ref| <= (2 |lse| + splits + 16) u. A row of one part only must be that part, bit for bit.
 */
#include "lib/device.h"
#include "lib/harness.h"
#include "lib/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum empties { NONE, SOME, ALL_OF_SOME, EMPTIES };
static const char *const empties_names[] = {"no part empty", "some parts empty",
                                            "some rows wholly empty"};
enum order { TOKEN_FIRST, HEAD_FIRST, ORDERS }; /* BSHD, BHSD */

struct combine_case {
    uint32_t batch, tokens, heads, v_dim, splits;
    int in, out; /* hewn_dtype */
    enum order order;
    enum empties empties;
    bool sink, lse, wide; /* wide: lse from -80 to 80 */
    bool beside;          /* the parts of a row lie beside each other, of O and of lse */
    uint64_t seed;
};

/* Host side of a case. */
struct data {
    float *part_o, *part_lse, *sink; /* part by part, row by row */
    unsigned char *given_o;          /* as the device gets them */
    float *given_lse;
    unsigned char *o;
    float *lse;
    size_t rows, part_bytes, lse_bytes, o_bytes;
    uint64_t o_step[3], lse_step[3]; /* bytes between tokens, heads, sequences */
};

enum { POISON = 0xA5, GAP = 32 /* bytes behind a row of O */ };

static void steps(uint64_t step[3], enum order order, const struct combine_case *c, uint64_t row)
{
    uint64_t inner = order == TOKEN_FIRST ? c->heads : c->tokens;
    step[order == TOKEN_FIRST ? 1 : 0] = row;
    step[order == TOKEN_FIRST ? 0 : 1] = row * inner;
    step[2] = c->batch > 1 ? row * c->tokens * c->heads : 0; /* 0: as a packing has it */
}

static void data_free(struct data *d)
{
    free(d->part_o);
    free(d->part_lse);
    free(d->given_o);
    free(d->given_lse);
    free(d->sink);
    free(d->o);
    free(d->lse);
}

static bool data_new(struct data *d, const struct combine_case *c)
{
    memset(d, 0, sizeof *d);
    d->rows = (size_t)c->batch * c->tokens * c->heads;
    d->part_bytes = d->rows * c->splits * c->v_dim * hewn_dtype_size(c->in);
    d->lse_bytes = d->rows * sizeof(float);
    steps(d->o_step, c->order, c, c->v_dim * hewn_dtype_size(c->out) + GAP);
    steps(d->lse_step, HEAD_FIRST, c, sizeof(float));
    d->o_bytes = d->rows * (c->v_dim * hewn_dtype_size(c->out) + GAP);
    d->part_o = malloc(d->rows * c->splits * c->v_dim * sizeof(float));
    d->part_lse = malloc(d->lse_bytes * c->splits);
    d->given_o = malloc(d->part_bytes);
    d->given_lse = malloc(d->lse_bytes * c->splits);
    d->sink = malloc(c->heads * sizeof(float));
    d->o = malloc(d->o_bytes);
    d->lse = malloc(d->lse_bytes);
    return d->part_o && d->part_lse && d->given_o && d->given_lse && d->sink && d->o && d->lse;
}

static bool is_empty(const struct combine_case *c, struct rng *r, size_t row)
{
    switch (c->empties) {
    case SOME: return rng_below(r, 3) == 0;
    case ALL_OF_SOME: return row % 3 == 1 || rng_below(r, 2) == 0;
    default: return false;
    }
}

static void data_fill(struct data *d, const struct combine_case *c)
{
    struct rng r = {c->seed};
    float range = c->wide ? 80.0F : 4.0F;
    for (size_t s = 0; s < c->splits; s++)
        for (size_t row = 0; row < d->rows; row++) {
            float *o = d->part_o + (s * d->rows + row) * c->v_dim;
            bool empty = is_empty(c, &r, row);
            d->part_lse[s * d->rows + row] = empty ? -(float)INFINITY : range * rng_unit(&r);
            for (size_t j = 0; j < c->v_dim; j++)
                o[j] = empty ? (float)NAN : (float)number_round(c->in, (double)rng_unit(&r));
        }
    for (size_t h = 0; h < c->heads; h++) d->sink[h] = range * rng_unit(&r);
}

/* A row's number among those of lse, which has its heads outside. */
static size_t lse_row(const struct combine_case *c, size_t row)
{
    size_t head = row % c->heads, token = row / c->heads;
    return (token / c->tokens * c->heads + head) * c->tokens + token % c->tokens;
}

static void data_give(struct data *d, const struct combine_case *c)
{
    size_t size = hewn_dtype_size(c->in);
    for (size_t s = 0; s < c->splits; s++)
        for (size_t row = 0; row < d->rows; row++) {
            size_t from = s * d->rows + row, to = c->beside ? row * c->splits + s : from;
            for (size_t j = 0; j < c->v_dim; j++)
                number_store(c->in, (double)d->part_o[from * c->v_dim + j],
                             d->given_o + (to * c->v_dim + j) * size);
            d->given_lse[c->beside ? to : s * d->rows + lse_row(c, row)] = d->part_lse[from];
        }
}

struct buffers {
    struct guarded part_o, part_lse, sink, o, lse;
};

static bool upload(struct device *dev, struct buffers *b, const struct data *d,
                   const struct combine_case *c)
{
    return guarded_new(dev, &b->part_o, d->part_bytes, 0xFF) &&
           guarded_new(dev, &b->part_lse, d->lse_bytes * c->splits, 0xFF) &&
           guarded_new(dev, &b->sink, c->heads * sizeof(float), 0xFF) &&
           guarded_new(dev, &b->o, d->o_bytes, POISON) &&
           guarded_new(dev, &b->lse, d->lse_bytes, POISON) &&
           !dev->to_device(b->part_o.data, d->given_o, d->part_bytes) &&
           !dev->to_device(b->part_lse.data, d->given_lse, d->lse_bytes * c->splits) &&
           !dev->to_device(b->sink.data, d->sink, c->heads * sizeof(float));
}

static void release(struct device *dev, struct buffers *b)
{
    guarded_free(dev, &b->part_o);
    guarded_free(dev, &b->part_lse);
    guarded_free(dev, &b->sink);
    guarded_free(dev, &b->o);
    guarded_free(dev, &b->lse);
}

static hewn_merge_desc describe(const struct combine_case *c, const struct data *d)
{
    const int64_t size = (int64_t)hewn_dtype_size(c->out), parts = c->splits, dim = c->v_dim;
    hewn_merge_desc m = {.struct_size = sizeof m,
                         .batch = c->batch,
                         .length = c->tokens,
                         .heads = c->heads,
                         .dim = dim,
                         .parts = parts,
                         .o_token = (int64_t)d->o_step[0] / size,
                         .o_head = (int64_t)d->o_step[1] / size,
                         .o_batch = (int64_t)d->o_step[2] / size,
                         .in = c->in,
                         .out = c->out,
                         .sink = c->sink};
    if (!c->beside) return m;
    m.part_step = dim, m.part_head = parts * dim, m.part_token = c->heads * m.part_head;
    m.part_batch = c->tokens * m.part_token;
    m.lse_step = 1, m.lse_head = parts, m.lse_token = c->heads * m.lse_head;
    m.lse_batch = c->tokens * m.lse_token;
    return m;
}

static bool launch(struct device *dev, const struct combine_case *c, const struct data *d,
                   const struct buffers *b)
{
    hewn_error err = {0};
    hewn_merge_plan *plan = NULL;
    const hewn_merge_desc desc = describe(c, d);
    const hewn_merge_args args = {.struct_size = sizeof args,
                                  .part_o = b->part_o.data,
                                  .part_lse = b->part_lse.data,
                                  .o = b->o.data,
                                  .lse = c->lse ? b->lse.data : 0,
                                  .sink = c->sink ? b->sink.data : 0};
    int rc = hewn_merge_plan_create(dev->context, &desc, &plan, &err);
    if (!rc) rc = hewn_merge_plan_run(plan, &args, NULL, &err);
    hewn_merge_plan_destroy(plan);
    CHECK(rc == 0, "%s", err.message);
    if (rc) return false;
    rc = dev->synchronize();
    CHECK(rc == 0, "the kernel failed: %d", rc);
    return rc == 0;
}

/* ---- judging ---- */

struct verdict {
    size_t beyond;
    double worst, want, got; /* of the value that exceeds its tolerance most */
    size_t row, column;      /* column v_dim: lse */
};

static void judge(struct verdict *v, size_t row, size_t column, double want, double got,
                  double tolerance)
{
    bool special = isnan(want) || isinf(want);
    double excess = special ? 0 : fabs(got - want) / tolerance;
    if (special ? (isnan(want) ? isnan(got) : got == want) : excess <= 1.0) return;
    if (isnan(excess) || special) excess = (double)INFINITY;
    v->beyond++;
    if (excess < v->worst) return;
    *v = (struct verdict){v->beyond, excess, want, got, row, column};
}

static double half_ulp(int dtype, double v)
{
    int e, bits = dtype == HEWN_F32 ? 24 : dtype == HEWN_F16 ? 11 : 8;
    int least = dtype == HEWN_F16 ? -13 : -125;
    frexp(v, &e);
    return ldexp(1.0, (e < least ? least : e) - bits - 1);
}

static double load(int dtype, const unsigned char *at)
{
    uint16_t h;
    float f;
    if (dtype == HEWN_F32) {
        memcpy(&f, at, sizeof f);
        return (double)f;
    }
    memcpy(&h, at, sizeof h);
    return dtype == HEWN_F16 ? f16_to_double(h) : bf16_to_double(h);
}

/* What lies `index` elements of `step` into a row's O or lse. */
static size_t place(const struct combine_case *c, const uint64_t step[3], size_t row)
{
    size_t head = row % c->heads, token = row / c->heads;
    return (size_t)(token / c->tokens * step[2] + token % c->tokens * step[0] + head * step[1]);
}

/* Reference, softmax's sums: the row's largest exponent, and the sum of its weights. */
struct row_sums {
    double largest, sum, lse;
    size_t parts;
};

static struct row_sums sums_of(const struct combine_case *c, const struct data *d, size_t row)
{
    double sink = c->sink ? (double)d->sink[row % c->heads] : -(double)INFINITY;
    struct row_sums r = {.largest = sink};
    for (size_t s = 0; s < c->splits; s++)
        r.largest = fmax(r.largest, (double)d->part_lse[s * d->rows + row]);
    r.lse = -(double)INFINITY;
    if (isinf(r.largest)) return r;
    r.sum = exp(sink - r.largest);
    for (size_t s = 0; s < c->splits; s++) {
        double x = (double)d->part_lse[s * d->rows + row];
        r.sum += exp(x - r.largest);
        r.parts += !isinf(x);
    }
    r.lse = r.largest + log(r.sum);
    return r;
}

static void judge_row(struct verdict *v, const struct combine_case *c, const struct data *d,
                      size_t row)
{
    const double u = 0x1p-24;
    struct row_sums r = sums_of(c, d, row);
    const unsigned char *o = d->o + place(c, d->o_step, row);
    bool alone = r.parts == 1 && !c->sink;
    float lse;
    for (size_t j = 0; j < c->v_dim; j++) {
        double want = 0, largest = 0, tolerance;
        for (size_t s = 0; s < c->splits; s++) {
            double x = (double)d->part_lse[s * d->rows + row],
                   value = (double)d->part_o[(s * d->rows + row) * c->v_dim + j];
            if (isinf(x)) continue;
            want += exp(x - r.largest) * value;
            largest = fmax(largest, fabs(value));
        }
        if (r.parts) want /= r.sum;
        tolerance = alone ? 0 : ((double)c->splits + 16) * u * largest;
        judge(v, row, j, want, load(c->out, o + j * hewn_dtype_size(c->out)),
              tolerance + half_ulp(c->out, want) * (alone && c->out == HEWN_F32 ? 0x1p-20 : 1));
    }
    if (!c->lse) return;
    memcpy(&lse, (unsigned char *)d->lse + place(c, d->lse_step, row), sizeof lse);
    judge(v, row, c->v_dim, r.lse, (double)lse, (2 * fabs(r.lse) + (double)c->splits + 16) * u);
}

/* Gaps between rows, and an lse that was not asked for, keep their poison. */
static bool poisoned(const unsigned char *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (at[i] != POISON) return false;
    return true;
}

static void check_untouched(const struct combine_case *c, const struct data *d)
{
    size_t width = c->v_dim * hewn_dtype_size(c->out);
    for (size_t row = 0; row < d->rows; row++)
        if (!poisoned(d->o + place(c, d->o_step, row) + width, GAP)) {
            CHECK(false, "the gap behind row %zu of O was written", row);
            return;
        }
    if (!c->lse) CHECK(poisoned((unsigned char *)d->lse, d->lse_bytes), "lse was written");
}

static void compare(struct device *dev, const struct combine_case *c, struct data *d,
                    const struct buffers *b)
{
    const struct guarded *all[] = {&b->part_o, &b->part_lse, &b->sink, &b->o, &b->lse};
    struct verdict v = {.row = 0};
    if (dev->to_host(d->o, b->o.data, d->o_bytes) ||
        dev->to_host(d->lse, b->lse.data, d->lse_bytes)) {
        CHECK(false, "copy from the device");
        return;
    }
    for (size_t row = 0; row < d->rows; row++) judge_row(&v, c, d, row);
    CHECK(v.beyond == 0,
          "%zu values beyond; worst %.3g times the tolerance at row %zu column %zu "
          "(lse: %u): want %.9g got %.9g",
          v.beyond, v.worst, v.row, v.column, c->v_dim, v.want, v.got);
    check_untouched(c, d);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *damage = guarded_damage(dev, all[i]);
        CHECK(damage == NULL, "buffer %zu: %s", i, damage);
    }
}

static void run_case(struct device *dev, const struct combine_case *c)
{
    struct data d;
    struct buffers b = {.o = {0}};
    if (!test_case("batch %u tokens %u heads %u v_dim %u splits %u %s %s%s%s%s%s%s, %s", c->batch,
                   c->tokens, c->heads, c->v_dim, c->splits, hewn_dtype_name(c->in),
                   hewn_dtype_name(c->out), c->beside ? " beside" : "",
                   c->order == HEAD_FIRST ? " BHSD" : "", c->sink ? " sink" : "",
                   c->lse ? " lse" : "", c->wide ? " wide" : "", empties_names[c->empties]))
        return;
    if (!data_new(&d, c)) {
        CHECK(false, "no memory");
    } else {
        data_fill(&d, c);
        data_give(&d, c);
        if (!upload(dev, &b, &d, c))
            CHECK(false, "no device memory");
        else if (launch(dev, c, &d, &b))
            compare(dev, c, &d, &b);
    }
    release(dev, &b);
    data_free(&d);
}

/* A part whose lse or O is NaN makes its own row NaN, and no other. */
static void nan_case(struct device *dev)
{
    struct combine_case c = {.batch = 1,
                             .tokens = 3,
                             .heads = 3,
                             .v_dim = 64,
                             .splits = 6,
                             .out = HEWN_F32,
                             .lse = true,
                             .seed = 9};
    struct data d;
    struct buffers b = {.o = {0}};
    if (!test_case("NaN stays in its row")) return;
    if (!data_new(&d, &c)) {
        CHECK(false, "no memory");
        data_free(&d);
        return;
    }
    data_fill(&d, &c);
    d.part_lse[2 * d.rows + 4] = (float)NAN;
    d.part_o[(5 * d.rows + 7) * c.v_dim + 63] = (float)NAN;
    data_give(&d, &c);
    if (upload(dev, &b, &d, &c) && launch(dev, &c, &d, &b) &&
        !dev->to_host(d.o, b.o.data, d.o_bytes) && !dev->to_host(d.lse, b.lse.data, d.lse_bytes))
        for (size_t row = 0; row < d.rows; row++) {
            size_t nans = 0;
            for (size_t j = 0; j < c.v_dim; j++)
                nans += isnan(load(c.out, d.o + place(&c, d.o_step, row) + 4 * j)) != 0;
            CHECK_INT(nans, row == 4 ? c.v_dim : row == 7 ? 1 : 0);
            CHECK_INT(isnan(d.lse[place(&c, d.lse_step, row) / sizeof(float)]) != 0, row == 4);
        }
    release(dev, &b);
    data_free(&d);
}

static void run_all(struct device *dev)
{
    static const uint32_t dims[] = {32, 64, 96, 128, 192, 256, 512},
                          splits[] = {1, 2, 3, 4, 5, 8, 17, 33, 70};
    struct rng r = {test_seed()};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        for (size_t s = 0; s < sizeof splits / sizeof splits[0]; s++) {
            struct combine_case c = {.v_dim = dims[i], .splits = splits[s], .seed = rng_next(&r)};
            c.batch = 1 + rng_below(&r, 3);
            c.tokens = 1 + rng_below(&r, 5);
            c.heads = 1 + rng_below(&r, 9);
            c.out = (int)rng_below(&r, 3);
            c.order = (enum order)rng_below(&r, ORDERS);
            c.empties = (enum empties)rng_below(&r, EMPTIES);
            c.sink = rng_below(&r, 2);
            c.lse = rng_below(&r, 4) != 0;
            c.wide = rng_below(&r, 2);
            c.in = (int)rng_below(&r, 3);
            c.beside = rng_below(&r, 2);
            run_case(dev, &c);
        }
    nan_case(dev);
}

int main(int argc, char **argv)
{
    struct device dev;
    hewn_error err = {0};
    test_begin("combine", argc, argv);
    if (!device_open(&dev, &err)) {
        if (test_case("open")) CHECK(false, "%s", err.message);
        return test_end();
    }
    test_where("sm_%d%d, %s", dev.info.cc_major, dev.info.cc_minor, dev.info.name);
    run_all(&dev);
    device_close(&dev);
    return test_end();
}
