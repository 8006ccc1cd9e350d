/*
 * hewn demo attention: causal attention over a text, checked against float64, and the map of one head as
 * a picture.
 *
 * Nothing is learned. A byte's embedding in head h is the sum of seeded random vectors, one for each of
 * the last h + 1 bytes and its place among them; queries and keys are one seeded random projection of it,
 * values another. Places that end alike so attend to each other, by their last byte in head 0, by their
 * last HEADS bytes in the last head.
 */
#include "demo.h"
#include "png.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADS = 4, DIM = 128, BYTES = 256 };
enum { MAP = 256 /* bytes of the text in the picture */, MAP_PARTS = (MAP + DIM - 1) / DIM };

/* Deviation of queries and keys: places that end alike have a score of about SHARPNESS^2 sqrt(DIM). */
static const float SHARPNESS = 0.5F;

struct attention_demo {
    const struct demo *common;
    size_t length;    /* of the text */
    uint16_t *qk, *v; /* [length][HEADS][DIM] of bf16: queries and keys are the same */
    float *o, *lse;   /* [length][HEADS][DIM]; [HEADS][length] */
};

static size_t at(size_t place, size_t head)
{
    return (place * HEADS + head) * DIM;
}

/* ---- what stands for the text ---- */

/* y = W x, W of DIM x DIM uniform numbers, so scaled that y has the given deviation where x has 1. */
static void project(const float *w, const float *x, float deviation, float *y)
{
    for (size_t i = 0; i < DIM; i++) {
        float sum = 0;
        for (size_t j = 0; j < DIM; j++) sum += w[i * DIM + j] * x[j];
        y[i] = deviation * sum * sqrtf(3.0F / DIM);
    }
}

static void embed(const float *table, size_t place, size_t head, float x[DIM])
{
    float scale = sqrtf(3.0F / (float)(head + 1));
    memset(x, 0, DIM * sizeof *x);
    for (size_t back = 0; back <= head && back <= place; back++) {
        const float *e = table + (back * BYTES + (unsigned char)demo_text[place - back]) * DIM;
        for (size_t j = 0; j < DIM; j++) x[j] += scale * e[j];
    }
}

static int make_inputs(struct attention_demo *a)
{
    size_t count = a->length * HEADS * DIM;
    float *table = demo_random((size_t)HEADS * BYTES * DIM, 3),
          *w = demo_random((size_t)2 * HEADS * DIM * DIM, 4);
    a->qk = malloc(count * sizeof *a->qk);
    a->v = malloc(count * sizeof *a->v);
    a->o = malloc(count * sizeof *a->o);
    a->lse = malloc(a->length * HEADS * sizeof *a->lse);
    if (table && w && a->qk && a->v && a->o && a->lse)
        for (size_t t = 0; t < a->length; t++)
            for (size_t h = 0; h < HEADS; h++) {
                const float *wh = w + 2 * h * DIM * DIM;
                float x[DIM], y[DIM];
                embed(table, t, h, x);
                project(wh, x, SHARPNESS, y);
                convert_inputs(HEWN_F32, HEWN_BF16, y, a->qk + at(t, h), DIM);
                project(wh + DIM * DIM, x, 1, y);
                convert_inputs(HEWN_F32, HEWN_BF16, y, a->v + at(t, h), DIM);
            }
    free(table);
    free(w);
    return a->lse ? 0 : cli_fail("no memory for %zu bytes of text", a->length);
}

/* ---- float64 ---- */

/* A head's arrays as doubles, [length][DIM]. */
struct head {
    double *qk, *v;
    size_t length;
};

static bool head_new(struct head *x, const struct attention_demo *a, size_t h)
{
    x->length = a->length;
    x->qk = malloc(a->length * DIM * sizeof *x->qk);
    x->v = malloc(a->length * DIM * sizeof *x->v);
    if (!x->qk || !x->v) return false;
    for (size_t t = 0; t < a->length; t++)
        for (size_t j = 0; j < DIM; j++) {
            x->qk[t * DIM + j] = element_value(HEWN_BF16, a->qk, at(t, h) + j);
            x->v[t * DIM + j] = element_value(HEWN_BF16, a->v, at(t, h) + j);
        }
    return true;
}

static void head_free(struct head *x)
{
    free(x->qk);
    free(x->v);
}

static double dot(const double *a, const double *b)
{
    double sum[4] = {0, 0, 0, 0};
    for (size_t j = 0; j < DIM; j += 4)
        for (size_t k = 0; k < 4; k++) sum[k] += a[j + k] * b[j + k];
    return sum[0] + sum[1] + sum[2] + sum[3];
}

/* exp(score - largest) of keys 0 to `place` into p; their sum. lse = largest + ln(sum). */
static double weigh(const struct head *x, size_t place, double *p, double *lse)
{
    double largest = -(double)INFINITY, sum = 0;
    for (size_t j = 0; j <= place; j++) {
        p[j] = dot(x->qk + place * DIM, x->qk + j * DIM) / sqrt((double)DIM);
        largest = fmax(largest, p[j]);
    }
    for (size_t j = 0; j <= place; j++) sum += p[j] = exp(p[j] - largest);
    *lse = largest + log(sum);
    return sum;
}

struct errors {
    double difference, ideal, reference; /* squares: of O, of the ideal kernel's O, of float64's */
    double lse;                          /* the largest */
};

/* One row of O: float64, and a kernel that errs only in rounding P to bf16. */
static void judge_row(const struct attention_demo *a, const struct head *x, size_t h, size_t place,
                      double *p, struct errors *e)
{
    double want[DIM] = {0}, rounded[DIM] = {0}, lse, sum = weigh(x, place, p, &lse);
    for (size_t j = 0; j <= place; j++) {
        float weight = (float)p[j];
        uint16_t half;
        double r;
        convert_inputs(HEWN_F32, HEWN_BF16, &weight, &half, 1);
        r = element_value(HEWN_BF16, &half, 0);
        for (size_t c = 0; c < DIM; c++) {
            want[c] += p[j] * x->v[j * DIM + c];
            rounded[c] += r * x->v[j * DIM + c];
        }
    }
    for (size_t c = 0; c < DIM; c++) {
        double ref = want[c] / sum, got = (double)a->o[at(place, h) + c];
        e->reference += ref * ref;
        e->ideal += (rounded[c] / sum - ref) * (rounded[c] / sum - ref);
        e->difference += (got - ref) * (got - ref);
    }
    e->lse = fmax(e->lse, fabs((double)a->lse[h * a->length + place] - lse));
}

static int judge(const struct attention_demo *a, struct errors *e)
{
    double *p = malloc(a->length * sizeof *p);
    bool progress = isatty(STDERR_FILENO) != 0, memory = p != NULL;
    *e = (struct errors){0, 0, 0, 0};
    for (size_t h = 0; h < HEADS && memory; h++) {
        struct head x = {NULL, NULL, 0};
        memory = head_new(&x, a, h);
        for (size_t t = 0; t < a->length && memory; t++) {
            judge_row(a, &x, h, t, p, e);
            if (progress && t % 256 == 0)
                fprintf(stderr, "\r\033[Kfloat64: head %zu of %d, row %zu of %zu", h + 1, HEADS, t,
                        a->length);
        }
        head_free(&x);
    }
    if (progress) fputs("\r\033[K", stderr);
    free(p);
    return memory ? 0 : cli_fail("no memory for the reference");
}

/* ---- the run ---- */

static struct attended describe(size_t batch, size_t length, size_t heads)
{
    return (struct attended){.desc = {.struct_size = sizeof(hewn_attention_desc),
                                      .batch = (int64_t)batch,
                                      .q_heads = (int64_t)heads,
                                      .kv_heads = (int64_t)heads,
                                      .qk_dim = DIM,
                                      .v_dim = DIM,
                                      .q_length = (int64_t)length,
                                      .in = HEWN_BF16,
                                      .out = HEWN_F32,
                                      .layout = HEWN_LAYOUT_BSHD},
                             .source = {.struct_size = sizeof(hewn_attention_source),
                                        .length = (int64_t)length,
                                        .causal = 1}};
}

/* Runs with the simulator's worksheet in `path`, "" where there is none: on a GPU, or where the caller's
 * environment asks for one of its own. */
static int run(const struct attention_demo *a, struct attended *r, char *path)
{
    int fd, rc;
    if (!a->common->device.simulated || getenv("HEWN_SIM_WORKSHEET")) *path = '\0';
    if (*path) {
        fd = mkstemp(path);
        if (fd < 0) return cli_fail("%s: %s", path, strerror(errno));
        close(fd);
        setenv("HEWN_SIM_WORKSHEET", path, 1);
    }
    rc = attended_run(a->common->context, a->common->driver, r);
    if (*path) unsetenv("HEWN_SIM_WORKSHEET");
    return rc;
}

static void explain(const struct attention_demo *a, const struct attended *r)
{
    printf(
        "text:   \"The House That Jack Built\", %zu bytes; %d heads of %d, causal, bf16 in, fp32 "
        "out\n",
        a->length, HEADS, DIM);
    printf("        embeddings and projections are seeded random numbers, nothing is learned\n");
    printf("kernel: %s, hand-written PTX for %s (%s), on %s\n", r->plan.module, r->plan.target,
           r->plan.origin, a->common->device.name);
    printf("        %u tiles of %u rows a work item, %u keys a block, %u slots, %u B shared memory",
           r->plan.item_tiles, r->plan.tile_rows, r->plan.block_keys, r->plan.slots,
           r->plan.dynamic_shared);
    if (r->plan.tmem_columns) printf(", %u TMEM columns", r->plan.tmem_columns);
    printf(", %u CTAs of %u threads\n", r->plan.grid[0], r->plan.block[0]);
    if (a->common->device.simulated)
        printf("time:   %.2f s simulated\n", r->seconds);
    else
        printf("time:   %.1f us\n", 1e6 * r->seconds);
}

/* The rule of the tests, 1.25 times the error of a kernel that errs only in rounding P, and room for the
 * scores' own errors in fp32, which is lse's bound too. */
static int report(const struct errors *e)
{
    const double fp32 = 1e-5;
    double relative = sqrt(e->difference / e->reference), ideal = sqrt(e->ideal / e->reference);
    printf("error:  relative %.2e (rounding P to bf16 alone: %.2e; bound 1.25 times that + %.0e),\n"
           "        log-sum-exp %.1e (bound %.0e)\n",
           relative, ideal, fp32, e->lse, fp32);
    if (!(relative <= 1.25 * ideal + fp32 && e->lse <= fp32))
        return cli_fail("the attention is wrong");
    printf("right:  O and its log-sum-exps agree with float64\n");
    return 0;
}

/* ---- the map ---- */

/* Where run_map's O has the weight of query i and key j. */
static size_t weight_at(size_t places, size_t i, size_t j)
{
    return (j / DIM * places + i) * DIM + j % DIM;
}

/* The last head's weights over the first places of the text, from the kernel itself: part b has values
 * that are the unit vectors of keys DIM * b and on, so that O's columns are those keys' weights. */
static int run_map(const struct attention_demo *a, size_t places, float *o)
{
    size_t count = (size_t)MAP_PARTS * places * DIM;
    uint16_t *qk = malloc(count * sizeof *qk), *v = malloc(count * sizeof *v);
    float *units = calloc(count, sizeof *units);
    struct attended r = describe(MAP_PARTS, places, 1);
    r.q = r.k = qk;
    r.v = v;
    r.o = o;
    int rc = 1;
    if (!qk || !v || !units) {
        cli_fail("no memory for the map");
    } else {
        for (size_t row = 0; row < MAP_PARTS * places; row++) {
            size_t key = row % places, part = row / places;
            memcpy(qk + row * DIM, a->qk + at(key, HEADS - 1), DIM * sizeof *qk);
            if (key / DIM == part) units[row * DIM + key % DIM] = 1;
        }
        convert_inputs(HEWN_F32, HEWN_BF16, units, v, count);
        rc = attended_run(a->common->context, a->common->driver, &r);
    }
    free(qk);
    free(v);
    free(units);
    return rc;
}

/* White is no weight, black the largest of its row. */
static int draw_map(const struct attention_demo *a, size_t places, const float *o)
{
    unsigned char *levels = malloc(places * places);
    char path[4096], why[512] = "no memory for the picture";
    int rc = 1;
    if (levels) {
        for (size_t i = 0; i < places; i++) {
            float most = 0;
            for (size_t j = 0; j < places; j++) most = fmaxf(most, o[weight_at(places, i, j)]);
            for (size_t j = 0; j < places; j++)
                levels[i * places + j] =
                    (unsigned char)lroundf(15.0F * (1.0F - o[weight_at(places, i, j)] / most));
        }
        snprintf(path, sizeof path, "%s/attention.png", a->common->dir);
        rc = png_write(path, levels, (uint32_t)places, (uint32_t)places, why, sizeof why);
    }
    free(levels);
    if (rc) return cli_fail("%s", why);
    printf("map:    %s, weights of the last head over the first %zu bytes, by the kernel: rows are "
           "queries,\n        columns keys, black is a row's largest\n",
           path, places);
    return 0;
}

/* P is rounded to bf16 (2^-9 of it) and exp has fp32's errors. */
static int check_map(const struct attention_demo *a, size_t places, const float *o)
{
    double p[MAP], lse;
    struct head x = {NULL, NULL, 0};
    int rc = head_new(&x, a, HEADS - 1) ? 0 : cli_fail("no memory for the reference");
    for (size_t i = 0; i < places && rc == 0; i++) {
        double sum = weigh(&x, i, p, &lse);
        for (size_t j = 0; j < places && rc == 0; j++) {
            double want = j <= i ? p[j] / sum : 0, got = (double)o[weight_at(places, i, j)];
            if (!(fabs(got - want) <= want * 0x1p-8 + 1e-9))
                rc = cli_fail("the map is wrong at [%zu,%zu]: want %.9g got %.9g", i, j, want, got);
        }
    }
    head_free(&x);
    return rc;
}

static int make_map(const struct attention_demo *a)
{
    size_t places = a->length < MAP ? a->length : MAP;
    float *o = malloc((size_t)MAP_PARTS * places * DIM * sizeof *o);
    int rc;
    if (!o) return cli_fail("no memory for the map");
    rc = run_map(a, places, o);
    if (rc == 0) rc = check_map(a, places, o);
    if (rc == 0) rc = draw_map(a, places, o);
    free(o);
    return rc;
}

/* ---- the demo ---- */

static int save(const struct attention_demo *a)
{
    static const char *const names[] = {"q.npy", "k.npy", "v.npy"};
    const uint64_t dim[4] = {1, a->length, HEADS, DIM};
    const uint16_t *in[] = {a->qk, a->qk, a->v};
    size_t count = a->length * HEADS * DIM;
    float *wide = malloc(count * sizeof *wide);
    int rc = 0;
    if (!wide) return cli_fail("no memory for the arrays");
    for (size_t i = 0; i < 3 && rc == 0; i++) {
        for (size_t j = 0; j < count; j++) wide[j] = (float)element_value(HEWN_BF16, in[i], j);
        rc = demo_save(a->common, names[i], 4, dim, wide);
    }
    if (rc == 0) rc = demo_save(a->common, "o.npy", 4, dim, a->o);
    if (rc == 0)
        printf(
            "files:  %s/q.npy, k.npy, v.npy, o.npy; your own: hewn attention Q.npy K.npy V.npy -o "
            "O.npy --causal\n",
            a->common->dir);
    free(wide);
    return rc;
}

static int run_and_judge(struct attention_demo *a)
{
    char sheet[] = "/tmp/hewn-worksheet-XXXXXX";
    struct attended r = describe(1, a->length, HEADS);
    struct errors e;
    r.q = r.k = a->qk;
    r.v = a->v;
    r.o = a->o;
    r.lse = a->lse;
    int rc = run(a, &r, sheet);
    if (rc == 0) rc = judge(a, &e);
    if (rc == 0) {
        explain(a, &r);
        rc = report(&e);
    }
    if (rc == 0) rc = make_map(a);
    if (rc == 0) rc = save(a);
    if (rc == 0 && *sheet) {
        putchar('\n');
        rc = cli_print_roles(sheet);
    }
    if (*sheet) unlink(sheet);
    return rc;
}

int demo_attention(const struct demo *d)
{
    struct attention_demo a = {.common = d, .length = strlen(demo_text)};
    int rc = make_inputs(&a);
    if (rc == 0) rc = run_and_judge(&a);
    free(a.qk);
    free(a.v);
    free(a.o);
    free(a.lse);
    return rc;
}
