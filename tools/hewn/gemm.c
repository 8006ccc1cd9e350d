/* hewn gemm: D = act(alpha * A * transpose(B) + beta * C + bias) from .npy files. */
#include "cli.h"
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_A, FILE_B, FILE_C, FILE_BIAS, FILES };

struct gemm_options {
    const char *file[FILES], *out;
    int in_type, out_type;
    bool trans_a, trans_b;
    float alpha, beta;
    int act;
};

static int parse_number(const char *text, float *value)
{
    char *end;
    *value = strtof(text, &end);
    return end == text || *end;
}

static int parse_act(const char *name)
{
    static const char *const names[] = {
        [HEWN_ACT_RELU] = "relu", [HEWN_ACT_GELU] = "gelu", [HEWN_ACT_SILU] = "silu"};
    for (int i = HEWN_ACT_RELU; i <= HEWN_ACT_SILU; i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}

/* An option and its value; false: there is no such option. */
static bool parse_value(const char *option, const char *value, struct gemm_options *o, bool *good)
{
    *good = true;
    if (!strcmp(option, "-o"))
        o->out = value;
    else if (!strcmp(option, "--in"))
        o->in_type = cli_dtype(value);
    else if (!strcmp(option, "--out"))
        o->out_type = cli_dtype(value);
    else if (!strcmp(option, "--c"))
        o->file[FILE_C] = value;
    else if (!strcmp(option, "--bias"))
        o->file[FILE_BIAS] = value;
    else if (!strcmp(option, "--act"))
        o->act = parse_act(value);
    else if (!strcmp(option, "--alpha"))
        *good = !parse_number(value, &o->alpha);
    else if (!strcmp(option, "--beta"))
        *good = !parse_number(value, &o->beta);
    else
        return false;
    return true;
}

static int parse_options(int argc, char **argv, struct gemm_options *o)
{
    for (int i = 1; i < argc; i++) {
        bool good;
        if (!strcmp(argv[i], "--trans-a"))
            o->trans_a = true;
        else if (!strcmp(argv[i], "--trans-b"))
            o->trans_b = true;
        else if (argv[i][0] == '-' && i + 1 < argc && parse_value(argv[i], argv[i + 1], o, &good)) {
            i++;
            if (!good) return cli_usage("gemm", "%s takes a number", argv[i - 1]);
        } else if (argv[i][0] != '-' && !o->file[FILE_A])
            o->file[FILE_A] = argv[i];
        else if (argv[i][0] != '-' && !o->file[FILE_B])
            o->file[FILE_B] = argv[i];
        else
            return cli_unknown("gemm", argv[i]);
    }
    if (!o->file[FILE_A] || !o->file[FILE_B])
        return cli_usage("gemm", "two input files are needed");
    if (!o->out) return cli_usage("gemm", "-o D.npy is missing");
    if (o->in_type != HEWN_BF16 && o->in_type != HEWN_F16)
        return cli_usage("gemm", "--in takes bf16 or f16");
    if (o->out_type < 0) return cli_usage("gemm", "--out takes f32, f16 or bf16");
    if (o->act < 0) return cli_usage("gemm", "--act takes relu, gelu or silu");
    if (o->beta != 0 && !o->file[FILE_C]) return cli_usage("gemm", "--beta needs --c C.npy");
    return 0;
}

static int read_inputs(const struct gemm_options *o, struct npy x[FILES])
{
    char why[512];
    for (int i = 0; i < FILES; i++)
        if (o->file[i] && npy_read(o->file[i], i == FILE_BIAS ? 1 : 2, &x[i], why, sizeof why))
            return cli_fail("%s", why);
    const struct npy *a = &x[FILE_A], *b = &x[FILE_B], *c = &x[FILE_C];
    const uint64_t m = a->dim[o->trans_a], n = b->dim[o->trans_b];
    if (a->dim[!o->trans_a] != b->dim[!o->trans_b])
        return cli_fail(
            "%s is %llu x %llu and %s is %llu x %llu: the second dimensions (K) must be "
            "equal (D = A * transpose(B)), with --trans-a, --trans-b A's, B's first",
            o->file[FILE_A], (unsigned long long)a->dim[0], (unsigned long long)a->dim[1],
            o->file[FILE_B], (unsigned long long)b->dim[0], (unsigned long long)b->dim[1]);
    if (c->data && (c->dim[0] != m || c->dim[1] != n))
        return cli_fail("%s is %llu x %llu, the product %llu x %llu", o->file[FILE_C],
                        (unsigned long long)c->dim[0], (unsigned long long)c->dim[1],
                        (unsigned long long)m, (unsigned long long)n);
    if (x[FILE_BIAS].data && x[FILE_BIAS].dim[0] != n)
        return cli_fail("%s has %llu elements, the product %llu columns", o->file[FILE_BIAS],
                        (unsigned long long)x[FILE_BIAS].dim[0], (unsigned long long)n);
    return 0;
}

static void print_result(const struct product *p, const hewn_device_info *device)
{
    double flop = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    printf("kernel: %s for %s (%s), grid %u, %u stages, on %s\n", p->plan.module, p->plan.target,
           p->plan.origin, p->plan.grid[0], p->plan.stages, device->name);
    printf("%lld x %lld x %lld: ", (long long)p->m, (long long)p->n, (long long)p->k);
    if (device->simulated)
        printf("%.2f s simulating\n", p->seconds);
    else
        printf("%.1f us, %.1f TFLOP/s\n", 1e6 * p->seconds, 1e-12 * flop / p->seconds);
}

/* An array in another dtype: of 32 bits f32, of 16 as convert_inputs. NULL without memory. */
static void *converted(const struct npy *x, int dtype)
{
    size_t count = (size_t)x->dim[0] * (x->rank > 1 ? (size_t)x->dim[1] : 1);
    void *to = calloc(count, hewn_dtype_size(dtype));
    float *wide = to;
    if (to && dtype != HEWN_F32) convert_inputs(x->dtype, dtype, x->data, to, count);
    for (size_t i = 0; to && dtype == HEWN_F32 && i < count; i++)
        wide[i] = (float)element_value(x->dtype, x->data, i);
    return to;
}

static int multiply(hewn_driver *driver, const struct gemm_options *o, const struct npy x[FILES])
{
    void *data[FILES] = {0}; /* as the kernel takes it */
    struct finish finish = {.alpha = o->alpha, .beta = o->beta, .act = o->act};
    struct product p = {.m = (int64_t)x[FILE_A].dim[o->trans_a],
                        .n = (int64_t)x[FILE_B].dim[o->trans_b],
                        .k = (int64_t)x[FILE_A].dim[!o->trans_a],
                        .in = o->in_type,
                        .out = o->out_type,
                        .major_a = o->trans_a ? HEWN_MAJOR_MN : HEWN_MAJOR_K,
                        .major_b = o->trans_b ? HEWN_MAJOR_MN : HEWN_MAJOR_K,
                        .finish = &finish};
    const int types[FILES] = {p.in, p.in, p.out, HEWN_F32};
    const uint64_t shape[2] = {(uint64_t)p.m, (uint64_t)p.n};
    hewn_device_info device = {.struct_size = sizeof device};
    hewn_context *context = NULL;
    hewn_error err = {0};
    char why[512];
    int rc = 0;
    p.d = calloc((size_t)(p.m * p.n), hewn_dtype_size(p.out));
    for (int i = 0; i < FILES; i++)
        if (x[i].data && !(data[i] = converted(&x[i], types[i]))) rc = 1;
    if (rc || !p.d) {
        rc = cli_fail("no memory for the matrices");
    } else if (hewn_context_attach_primary(driver, 0, &context, &err) ||
               hewn_context_describe_device(context, &device, &err)) {
        rc = cli_fail("%s", err.message);
    } else {
        p.a = data[FILE_A], p.b = data[FILE_B];
        finish.c = data[FILE_C], finish.bias = data[FILE_BIAS];
        rc = product_run(context, driver, &p);
    }
    if (rc == 0) {
        print_result(&p, &device);
        rc = npy_write(o->out, p.out, 2, shape, p.d, why, sizeof why) ? cli_fail("%s", why) : 0;
    }
    hewn_context_detach(context);
    for (int i = 0; i < FILES; i++) free(data[i]);
    free(p.d);
    return rc;
}

int cli_gemm(int argc, char **argv)
{
    struct gemm_options o = {.in_type = HEWN_BF16, .out_type = HEWN_F32, .alpha = 1};
    struct npy x[FILES];
    hewn_driver *driver;
    int rc = parse_options(argc, argv, &o);
    if (rc) return rc;
    memset(x, 0, sizeof x);
    rc = read_inputs(&o, x);
    if (rc == 0) {
        driver = cli_open_driver(stdout);
        rc = driver ? multiply(driver, &o, x) : 1;
        hewn_driver_close(driver);
    }
    for (int i = 0; i < FILES; i++) npy_free(&x[i]);
    return rc;
}
