/*
 * hewn tune: times every kernel and every number of parts of K that a product could run with, and slices of K
 * that occupy the device; prints the fastest as a row of C, to be built into a program that gives
 * hewn_gemm_desc its variant, parts and slices.
 * Random inputs, buffers rotated past L2, launches in chunks timed by events, medians over chunks.
 */
#include "cli.h"

#include "gemm_kernels.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SETS = 16, CHUNKS = 7, PRODUCTS = 64, WORK_BYTES = 64 << 20 };

#define TUNE_EVENTS(X)                            \
    X(create, cuEventCreate, (void **, unsigned)) \
    X(destroy, cuEventDestroy_v2, (void *))       \
    X(record, cuEventRecord, (void *, void *))    \
    X(wait, cuEventSynchronize, (void *))         \
    X(elapsed, cuEventElapsedTime, (float *, void *, void *))

struct tune {
    hewn_driver *driver;
    hewn_context *context;
    hewn_device_info device;
    struct cli_calls calls;
#define X(field, name, arguments) int(*field) arguments;
    TUNE_EVENTS(X)
#undef X
    void *start, *stop;
    int in, out;
    int64_t batch;
    hewn_deviceptr work; /* WORK_BYTES, of slices */
};

/* One product: its shape, and as many sets of buffers as do not fit L2 together. */
struct tuned {
    int64_t m, n, k;
    int sets;
    hewn_deviceptr a[SETS], b[SETS], d[SETS];
};

struct choice {
    const char *variant;
    uint32_t parts, slices; /* 0: chosen */
    double seconds;
};

/* The plan and its description; NULL where the workspace is too small for it, too. */
static hewn_gemm_plan *plan_choice(const struct tune *t, const struct tuned *p,
                                   const struct choice *c, hewn_gemm_plan_info *info,
                                   hewn_error *err)
{
    const hewn_gemm_desc desc = {.struct_size = sizeof desc,
                                 .m = p->m,
                                 .n = p->n,
                                 .k = p->k,
                                 .in = t->in,
                                 .out = t->out,
                                 .batch = t->batch,
                                 .stride_a = p->m * p->k,
                                 .stride_b = p->n * p->k,
                                 .stride_d = p->m * p->n,
                                 .variant = c->variant,
                                 .parts = c->parts,
                                 .slices = c->slices};
    hewn_gemm_plan *plan = NULL;
    info->struct_size = sizeof *info;
    if (hewn_gemm_plan_create(t->context, &desc, &plan, err)) return NULL;
    if (!hewn_gemm_plan_describe(plan, info, err) && info->workspace <= WORK_BYTES) return plan;
    if (!err->status) err->status = HEWN_ERR_LIMIT;
    hewn_gemm_plan_destroy(plan);
    return NULL;
}

/* ---- buffers ---- */

/* Random signs and mantissas, exponents close to 1: nothing overflows, no bit pattern repeats. */
static void fill_random(uint8_t *bytes, size_t size, int dtype, uint64_t *state)
{
    uint64_t keep = 0x81FF81FF81FF81FF, set = 0x3E003E003E003E00; /* bf16 */
    if (dtype == HEWN_F16) keep = 0x83FF83FF83FF83FF, set = 0x3800380038003800;
    if (hewn_dtype_size(dtype) == 1) keep = 0x8787878787878787, set = 0x3030303030303030;
    for (size_t i = 0; i < size; i += 8) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        uint64_t word = ((*state ^ *state >> 29) & keep) | set;
        memcpy(bytes + i, &word, size - i < 8 ? size - i : 8);
    }
}

static int random_operand(const struct tune *t, int64_t count, hewn_deviceptr *out, uint64_t *state)
{
    size_t size = (size_t)count * hewn_dtype_size(t->in);
    uint8_t *host = malloc(size);
    int rc = 1;
    if (host && !t->calls.alloc(out, size)) {
        fill_random(host, size, t->in, state);
        rc = t->calls.to_device(*out, host, size);
    }
    free(host);
    return rc ? cli_fail("no memory for %llu bytes", (unsigned long long)size) : 0;
}

static void release_buffers(const struct tune *t, struct tuned *p)
{
    for (int i = 0; i < p->sets; i++) {
        if (p->a[i]) t->calls.release(p->a[i]);
        if (p->b[i]) t->calls.release(p->b[i]);
        if (p->d[i]) t->calls.release(p->d[i]);
    }
}

/* The library's own rules come first: what they let pass has extents below 2^31. */
static int allocate_buffers(const struct tune *t, struct tuned *p)
{
    const double limit = 0x1p46; /* bytes: more than any device has, and far from overflow */
    double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    uint64_t state = 1, out = hewn_dtype_size(t->out);
    hewn_error err = {0};
    hewn_gemm_plan_info info;
    hewn_gemm_plan *plan = plan_choice(t, p, &(struct choice){0}, &info, &err);
    if (!plan) return cli_fail("%s", err.message);
    hewn_gemm_plan_destroy(plan);
    double bytes =
        (double)t->batch * ((m + n) * k * (double)hewn_dtype_size(t->in) + m * n * (double)out);
    if (bytes > limit) return cli_fail("no device holds the %.0f bytes of the operands", bytes);
    uint64_t sets = (uint64_t)(3.0 * (double)t->device.l2_bytes / bytes) + 2;
    p->sets = t->device.simulated ? 1 : sets > SETS ? SETS : (int)sets;
    for (int i = 0; i < p->sets; i++) {
        if (random_operand(t, t->batch * p->m * p->k, &p->a[i], &state) ||
            random_operand(t, t->batch * p->n * p->k, &p->b[i], &state))
            return 1;
        if (t->calls.alloc(&p->d[i], (size_t)(t->batch * p->m * p->n) * out))
            return cli_fail("no memory for D");
    }
    return 0;
}

/* ---- time ---- */

/* Seconds a launch, of `count` in a row; negative after cli_fail. */
static double time_chunk(const struct tune *t, const struct tuned *p, const hewn_gemm_plan *plan,
                         int count)
{
    hewn_error err = {0};
    float ms = 0;
    int rc = t->record(t->start, NULL);
    for (int i = 0; rc == 0 && i < count; i++) {
        const hewn_gemm_args args = {.struct_size = sizeof args,
                                     .a = p->a[i % p->sets],
                                     .b = p->b[i % p->sets],
                                     .d = p->d[i % p->sets],
                                     .workspace = t->work};
        rc = hewn_gemm_plan_run(plan, &args, NULL, &err);
    }
    if (rc == 0) rc = t->record(t->stop, NULL);
    if (rc == 0) rc = t->wait(t->stop);
    if (rc == 0) rc = t->elapsed(&ms, t->start, t->stop);
    if (rc == 0) return (double)ms * 1e-3 / count;
    cli_fail("%s", err.message[0] ? err.message : cli_cuda_error(t->driver, rc));
    return -1;
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Median over chunks of about 2 ms; on the simulator one launch. Negative after cli_fail. */
static double time_plan(const struct tune *t, const struct tuned *p, const hewn_gemm_plan *plan)
{
    double chunk[CHUNKS], once = time_chunk(t, p, plan, t->device.simulated ? 1 : 4);
    if (once < 0 || t->device.simulated) return once;
    int count = once < 1e-6 ? 400 : (int)(2e-3 / once) + 1;
    for (int i = 0; i < CHUNKS; i++) {
        chunk[i] = time_chunk(t, p, plan, count > 400 ? 400 : count);
        if (chunk[i] < 0) return -1;
    }
    qsort(chunk, CHUNKS, sizeof chunk[0], ascending);
    return chunk[CHUNKS / 2];
}

/* Writes "split/3", or "split/3*2". */
static const char *name_choice(const struct choice *c, char name[32])
{
    int n = snprintf(name, 32, "%.16s/%u", c->variant, c->parts);
    if (c->slices > 1) snprintf(name + n, 32 - (size_t)n, "*%u", c->slices);
    return name;
}

/* Times one choice, where it exists for this product; keeps the faster in `best`. 0, or 1 after
 * cli_fail. */
static int try_choice(const struct tune *t, const struct tuned *p, struct choice c,
                      struct choice *best, int *tried)
{
    hewn_error err = {0};
    hewn_gemm_plan_info info;
    hewn_gemm_plan *plan = plan_choice(t, p, &c, &info, &err);
    char name[32];
    if (!plan && err.status != HEWN_ERR_ARGUMENT && err.status != HEWN_ERR_LIMIT &&
        err.status != HEWN_ERR_NO_MODULE)
        return cli_fail("%s", err.message);
    if (!plan) return 0;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%lldx%lldx%lld: %s   ", (long long)p->m, (long long)p->n,
                (long long)p->k, name_choice(&c, name));
    c.seconds = time_plan(t, p, plan);
    hewn_gemm_plan_destroy(plan);
    if (c.seconds < 0) return 1;
    ++*tried;
    if (!best->variant || c.seconds < best->seconds) *best = c;
    return 0;
}

/* One slice; then, of one product, as many as occupy the device, and half as many. */
static int try_kernel(const struct tune *t, const struct tuned *p, const struct hewn_gemm_kernel *k,
                      uint32_t parts, struct choice *best, int *tried)
{
    int rc = try_choice(t, p, (struct choice){k->variant, parts, 1, 0}, best, tried);
    uint32_t s = hewn_gemm_most_slices(k, parts, (uint64_t)p->m, (uint64_t)p->n,
                                       (uint32_t)t->device.sm_count);
    for (int left = t->batch == 1 ? 2 : 0; rc == 0 && left && s > 1; s--) {
        int before = *tried;
        if (p->k / s * (int64_t)hewn_dtype_size(t->in) < GEMM_SLICE_BYTES) continue;
        rc = try_choice(t, p, (struct choice){k->variant, parts, s, 0}, best, tried);
        if (*tried != before) s = s / 2 + 1, left--;
    }
    return rc;
}

/* What the library would choose by itself, timed like the others. */
static int try_default(const struct tune *t, const struct tuned *p, struct choice *out)
{
    hewn_error err = {0};
    hewn_gemm_plan_info info;
    hewn_gemm_plan *plan = plan_choice(t, p, &(struct choice){0}, &info, &err);
    if (!plan) return cli_fail("%s", err.message);
    *out = (struct choice){info.variant, info.parts, info.slices, time_plan(t, p, plan)};
    hewn_gemm_plan_destroy(plan);
    return out->seconds < 0;
}

static void print_row(const struct tune *t, const struct tuned *p, const struct choice *best,
                      const struct choice *own, int tried)
{
    static const char *const types[] = {"HEWN_F32",  "HEWN_F16", "HEWN_BF16", "HEWN_E4M3",
                                        "HEWN_E5M2", "HEWN_S8",  "HEWN_S32"};
    char name[32];
    printf("{%lld, %lld, %lld, %lld, %s, %s, \"%s\", %u, %u}, /* %.1f us, of %d; unasked: %s, "
           "%.1f us */\n",
           (long long)p->m, (long long)p->n, (long long)p->k, (long long)t->batch, types[t->in],
           types[t->out], best->variant, best->parts, best->slices, 1e6 * best->seconds, tried,
           name_choice(own, name), 1e6 * own->seconds);
    fflush(stdout);
}

static int tune_product(const struct tune *t, struct tuned *p)
{
    size_t count;
    const struct hewn_gemm_kernel *kernels = hewn_gemm_kernels(&count);
    struct choice best = {0}, own = {0};
    int tried = 0, rc = allocate_buffers(t, p) || try_default(t, p, &own);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (!hewn_target_runs_on(kernels[i].target, t->device.cc_major, t->device.cc_minor))
            continue;
        for (uint32_t parts = 1; rc == 0 && parts <= kernels[i].parts; parts++)
            rc = try_kernel(t, p, &kernels[i], parts, &best, &tried);
    }
    if (isatty(STDERR_FILENO)) fputs("\r\x1b[K", stderr);
    if (rc == 0) print_row(t, p, &best, &own, tried);
    release_buffers(t, p);
    return rc;
}

/* ---- the command ---- */

static int open_device(struct tune *t)
{
    hewn_error err = {0};
    t->driver = cli_open_driver(NULL);
    if (!t->driver || !cli_load_calls(t->driver, &t->calls)) return 1;
#define X(field, name, arguments) \
    if (!cli_symbol(t->driver, #name, &t->field)) return 1;
    TUNE_EVENTS(X)
#undef X
    t->device.struct_size = sizeof t->device;
    if (hewn_context_attach_primary(t->driver, 0, &t->context, &err) ||
        hewn_context_describe_device(t->context, &t->device, &err))
        return cli_fail("%s", err.message);
    if (t->calls.alloc(&t->work, WORK_BYTES)) return cli_fail("no memory for a workspace");
    if (t->create(&t->start, 0) || t->create(&t->stop, 0)) return cli_fail("no events");
    printf("/* %s, %d SMs, driver %d%s; {m, n, k, batch, in, out, variant, parts, slices} */\n",
           t->device.name, t->device.sm_count, hewn_driver_version(t->driver),
           t->device.simulated ? ": the simulator's own times, which say nothing about a GPU" : "");
    return 0;
}

static int parse_product(const char *text, struct tuned *p)
{
    long long m, n, k;
    char rest;
    if (sscanf(text, "%lldx%lldx%lld%c", &m, &n, &k, &rest) != 3 || m < 1 || n < 1 || k < 1 ||
        m > INT32_MAX || n > INT32_MAX || k > INT32_MAX)
        return cli_usage("tune", "'%s' is not MxNxK, each 1 to 2^31-1", text);
    *p = (struct tuned){.m = m, .n = n, .k = k, .sets = 1};
    return 0;
}

/* cli_dtype knows those of files only. */
static int dtype_named(const char *name)
{
    for (int i = HEWN_F32; hewn_dtype_name(i); i++)
        if (!strcmp(name, hewn_dtype_name(i))) return i;
    return -1;
}

static int parse(int argc, char **argv, struct tune *t, struct tuned *products, int *count)
{
    int batch = 0;
    char rest;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--in") && i + 1 < argc) {
            t->in = dtype_named(argv[++i]);
        } else if (!strcmp(argv[i], "--out") && i + 1 < argc) {
            t->out = dtype_named(argv[++i]);
        } else if (!strcmp(argv[i], "--batch") && i + 1 < argc) {
            t->batch = sscanf(argv[++i], "%d%c", &batch, &rest) == 1 ? batch : 0;
        } else if (argv[i][0] == '-') {
            return cli_unknown("tune", argv[i]);
        } else if (*count == PRODUCTS) {
            return cli_usage("tune", "at most %d products at once", PRODUCTS);
        } else {
            int rc = parse_product(argv[i], &products[*count]);
            if (rc) return rc;
            ++*count;
        }
    }
    if (*count == 0) return cli_usage("tune", "no product given");
    if (t->in < 0 || t->out < 0) return cli_usage("tune", "--in, --out: no such dtype");
    if (t->batch < 1) return cli_usage("tune", "--batch takes 1 or more");
    return 0;
}

int cli_tune(int argc, char **argv)
{
    struct tune t = {.in = HEWN_BF16, .out = HEWN_BF16, .batch = 1};
    struct tuned products[PRODUCTS] = {{0}};
    int count = 0, rc = parse(argc, argv, &t, products, &count);
    if (rc) return rc;
    rc = open_device(&t);
    for (int i = 0; rc == 0 && i < count; i++) rc = tune_product(&t, &products[i]);
    if (t.work) t.calls.release(t.work);
    if (t.start) t.destroy(t.start);
    if (t.stop) t.destroy(t.stop);
    hewn_context_detach(t.context);
    hewn_driver_close(t.driver);
    return rc;
}
