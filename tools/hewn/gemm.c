/* hewn gemm: C = A * transpose(B) from .npy files. */
#include "cli.h"
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gemm_options {
    const char *a, *b, *out;
    int in_type, out_type;
};

static int parse_options(int argc, char **argv, struct gemm_options *o)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-o") && i + 1 < argc)
            o->out = argv[++i];
        else if (!strcmp(argv[i], "--in") && i + 1 < argc)
            o->in_type = cli_dtype(argv[++i]);
        else if (!strcmp(argv[i], "--out") && i + 1 < argc)
            o->out_type = cli_dtype(argv[++i]);
        else if (argv[i][0] != '-' && !o->a)
            o->a = argv[i];
        else if (argv[i][0] != '-' && !o->b)
            o->b = argv[i];
        else
            return cli_usage("gemm", "'%s' is not understood", argv[i]);
    }
    if (!o->a || !o->b) return cli_usage("gemm", "two input files are needed");
    if (!o->out) return cli_usage("gemm", "-o C.npy is missing");
    if (o->in_type != HEWN_BF16 && o->in_type != HEWN_F16)
        return cli_usage("gemm", "--in takes bf16 or f16");
    if (o->out_type < 0) return cli_usage("gemm", "--out takes f32, f16 or bf16");
    return 0;
}

static int read_inputs(const struct gemm_options *o, struct npy *a, struct npy *b)
{
    char why[512];
    if (npy_read(o->a, 2, a, why, sizeof why) || npy_read(o->b, 2, b, why, sizeof why))
        return cli_fail("%s", why);
    if (a->dim[1] != b->dim[1])
        return cli_fail(
            "%s is %llu x %llu and %s is %llu x %llu: the second dimensions (K) must be "
            "equal (C = A * transpose(B))",
            o->a, (unsigned long long)a->dim[0], (unsigned long long)a->dim[1], o->b,
            (unsigned long long)b->dim[0], (unsigned long long)b->dim[1]);
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

static int multiply(hewn_driver *driver, const struct gemm_options *o, const struct npy *a,
                    const struct npy *b)
{
    struct product p = {.m = (int64_t)a->dim[0],
                        .n = (int64_t)b->dim[0],
                        .k = (int64_t)a->dim[1],
                        .in = o->in_type,
                        .out = o->out_type};
    const uint64_t shape[2] = {a->dim[0], b->dim[0]};
    size_t count_a = (size_t)(p.m * p.k), count_b = (size_t)(p.n * p.k);
    uint16_t *ha = calloc(count_a, sizeof *ha), *hb = calloc(count_b, sizeof *hb);
    hewn_device_info device = {.struct_size = sizeof device};
    hewn_context *context = NULL;
    hewn_error err = {0};
    char why[512];
    int rc = 1;
    p.d = calloc((size_t)(p.m * p.n), hewn_dtype_size(p.out));
    if (!ha || !hb || !p.d) {
        cli_fail("no memory for the matrices");
    } else if (hewn_attach_primary(driver, 0, &context, &err) ||
               hewn_device(context, &device, &err)) {
        cli_fail("%s", err.message);
    } else {
        convert_inputs(a->dtype, p.in, a->data, ha, count_a);
        convert_inputs(b->dtype, p.in, b->data, hb, count_b);
        p.a = ha, p.b = hb;
        rc = product_run(context, driver, &p);
    }
    if (rc == 0) {
        print_result(&p, &device);
        rc = npy_write(o->out, p.out, 2, shape, p.d, why, sizeof why) ? cli_fail("%s", why) : 0;
    }
    hewn_detach(context);
    free(ha);
    free(hb);
    free(p.d);
    return rc;
}

int cli_gemm(int argc, char **argv)
{
    struct gemm_options o = {.in_type = HEWN_BF16, .out_type = HEWN_F32};
    struct npy a = {0}, b = {0};
    hewn_driver *driver;
    int rc = parse_options(argc, argv, &o);
    if (rc) return rc;
    rc = read_inputs(&o, &a, &b);
    if (rc == 0) {
        driver = cli_open_driver(stdout);
        rc = driver ? multiply(driver, &o, &a, &b) : 1;
        hewn_driver_close(driver);
    }
    npy_free(&a);
    npy_free(&b);
    return rc;
}
