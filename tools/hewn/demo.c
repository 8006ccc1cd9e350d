/* hewn demo: seeded matrices, written as .npy, multiplied, and checked against float64; then attention
 * over a text (demo_attention.c). */
#include "demo.h"

#include "npy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct demo_options {
    const char *dir;
    bool gemm, attention;
    long long m, n, k;
    const char *variant;
};

static int parse_options(int argc, char **argv, struct demo_options *o)
{
    char end;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-o") && i + 1 < argc) {
            o->dir = argv[++i];
        } else if (!strcmp(argv[i], "--size") && i + 1 < argc) {
            if (sscanf(argv[++i], "%lldx%lldx%lld%c", &o->m, &o->n, &o->k, &end) != 3 || o->m < 1 ||
                o->n < 1 || o->k < 1 || o->m > 1 << 16 || o->n > 1 << 16 || o->k > 1 << 16)
                return cli_usage("demo", "--size takes MxNxK, each from 1 to 65536, not '%s'",
                                 argv[i]);
        } else if (!strcmp(argv[i], "--variant") && i + 1 < argc) {
            o->variant = argv[++i];
        } else if (!strcmp(argv[i], "gemm")) {
            o->gemm = true;
        } else if (!strcmp(argv[i], "attention")) {
            o->attention = true;
        } else {
            return cli_unknown("demo", argv[i]);
        }
    }
    if (!o->gemm && !o->attention) { /* what the library holds */
        o->attention = hewn_family_count(hewn_attention_family()) > 0;
        o->gemm = !o->attention || hewn_family_count(hewn_gemm_family()) > 0;
    }
    return 0;
}

/* A 64-bit linear congruential generator (Knuth's constants). */
float *demo_random(size_t count, uint64_t seed)
{
    float *x = malloc(count * sizeof *x);
    for (size_t i = 0; x && i < count; i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        x[i] = (float)(seed >> 40) / 8388608.0F - 1.0F;
    }
    return x;
}

struct error_summary {
    double relative; /* norm of the difference over norm of the reference */
    double worst;    /* largest difference */
    long long row, col;
    double want, got;
};

static void summarise(const struct product *p, struct error_summary *e)
{
    double difference = 0, reference = 0;
    memset(e, 0, sizeof *e);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double want = 0, got = element_value(p->out, p->d, (size_t)(i * p->n + j));
            for (int64_t x = 0; x < p->k; x++)
                want += element_value(p->in, p->a, (size_t)(i * p->k + x)) *
                        element_value(p->in, p->b, (size_t)(j * p->k + x));
            difference += (got - want) * (got - want);
            reference += want * want;
            if (fabs(got - want) > e->worst || isnan(got)) {
                e->worst = isnan(got) ? (double)INFINITY : fabs(got - want);
                e->row = i, e->col = j, e->want = want, e->got = got;
            }
        }
    e->relative = sqrt(difference / reference);
}

int demo_save(const struct demo *d, const char *name, int rank, const uint64_t *dim,
              const float *data)
{
    char path[4096], why[512];
    snprintf(path, sizeof path, "%s/%s", d->dir, name);
    return npy_write(path, HEWN_F32, rank, dim, data, why, sizeof why) ? cli_fail("%s", why) : 0;
}

static int save(const struct demo *d, const char *name, int64_t rows, int64_t cols,
                const void *data)
{
    const uint64_t dim[2] = {(uint64_t)rows, (uint64_t)cols};
    return demo_save(d, name, 2, dim, data);
}

static void explain(const struct product *p, const hewn_device_info *d)
{
    printf("kernel: %s, hand-written PTX for %s (%s), on %s\n", p->plan.module, p->plan.target,
           p->plan.origin, d->name);
    printf("        tile %ux%ux%u, %u stages, %u B shared memory", p->plan.tile_m, p->plan.tile_n,
           p->plan.tile_k, p->plan.stages, p->plan.dynamic_shared);
    if (p->plan.tmem_columns) printf(", %u TMEM columns", p->plan.tmem_columns);
    printf(", %u CTAs of %u threads\n", p->plan.grid[0], p->plan.block[0]);
}

/* K products in fp32: the error of a sum grows no faster than 2^-23 * K relative to its terms. */
static int judge(const struct product *p, const hewn_device_info *d)
{
    struct error_summary e;
    double bound = ldexp((double)p->k, -23);
    summarise(p, &e);
    printf(
        "result: C = A * transpose(B), A %lld x %lld, B %lld x %lld, bf16 in, fp32 out, %.2f s%s\n",
        (long long)p->m, (long long)p->k, (long long)p->n, (long long)p->k, p->seconds,
        d->simulated ? " simulated" : "");
    printf("error:  relative %.2e (bound 2^-23*K = %.2e), worst %.2e at [%lld,%lld]: want %.6f got "
           "%.6f\n",
           e.relative, bound, e.worst, e.row, e.col, e.want, e.got);
    if (e.relative <= bound) {
        printf("right:  every element of C agrees with float64\n");
        return 0;
    }
    return cli_fail("the product is wrong");
}

static int demo_gemm(const struct demo *d, struct product *p)
{
    size_t count_a = (size_t)(p->m * p->k), count_b = (size_t)(p->n * p->k);
    float *fa = demo_random(count_a, 1), *fb = demo_random(count_b, 2);
    uint16_t *a = malloc(count_a * sizeof *a), *b = malloc(count_b * sizeof *b);
    int rc = 1;
    p->d = malloc((size_t)(p->m * p->n) * sizeof(float));
    if (!fa || !fb || !a || !b || !p->d) {
        cli_fail("no memory for the matrices");
    } else {
        convert_inputs(HEWN_F32, p->in, fa, a, count_a);
        convert_inputs(HEWN_F32, p->in, fb, b, count_b);
        p->a = a, p->b = b;
        rc = product_run(d->context, d->driver, p);
    }
    if (rc == 0) {
        explain(p, &d->device);
        rc = judge(p, &d->device) | save(d, "a.npy", p->m, p->k, fa) |
             save(d, "b.npy", p->n, p->k, fb) | save(d, "c.npy", p->m, p->n, p->d);
    }
    if (rc == 0)
        printf("files:  %s/a.npy, b.npy, c.npy; your own: hewn gemm A.npy B.npy -o C.npy\n",
               d->dir);
    free(fa);
    free(fb);
    free(a);
    free(b);
    free(p->d);
    return rc;
}

static int run_demos(hewn_driver *driver, const struct demo_options *o)
{
    struct demo d = {.dir = o->dir, .driver = driver, .device = {.struct_size = sizeof d.device}};
    struct product p = {
        .m = o->m, .n = o->n, .k = o->k, .in = HEWN_BF16, .out = HEWN_F32, .variant = o->variant};
    hewn_error err = {0};
    int rc = 0;
    if (hewn_context_attach_primary(driver, 0, &d.context, &err) ||
        hewn_context_describe_device(d.context, &d.device, &err))
        rc = cli_fail("%s", err.message);
    if (rc == 0 && o->gemm) rc = demo_gemm(&d, &p);
    if (rc == 0 && o->gemm && o->attention) putchar('\n');
    if (rc == 0 && o->attention) rc = demo_attention(&d);
    hewn_context_detach(d.context);
    return rc;
}

int cli_demo(int argc, char **argv)
{
    struct demo_options o = {.dir = ".", .m = 300, .n = 520, .k = 200};
    hewn_driver *driver;
    int rc = parse_options(argc, argv, &o);
    if (rc) return rc;
    if (mkdir(o.dir, 0777) && errno != EEXIST) return cli_fail("%s: %s", o.dir, strerror(errno));
    driver = cli_open_driver(stdout);
    if (!driver) return 1;
    rc = run_demos(driver, &o);
    hewn_driver_close(driver);
    return rc;
}
