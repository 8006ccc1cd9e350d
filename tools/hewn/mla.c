/* hewn mla: decode of multi-head latent attention from .npy files. */
#include "cli.h"
#include "npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum block { Q, KV, SINK, LENGTHS, TABLE, LISTS, O, LSE, WORKSPACE, BLOCKS };

struct mla_options {
    const char *q, *kv, *sink, *lengths, *table, *lists, *out, *lse;
    int in_type, out_type; /* in_type -1: by the files' */
    bool causal, records;
    double scale;
};

/* A run: host arrays as the kernel takes them, their sizes, and its results. */
struct mla_run {
    hewn_mla_desc desc;
    hewn_mla_plan_info plan;
    void *host[BLOCKS];
    size_t bytes[BLOCKS];
    hewn_deviceptr device[BLOCKS];
    double seconds;
};

/* ---- options ---- */

static int parse_valued(struct mla_options *o, const char *name, const char *value)
{
    const struct {
        const char *name, **to;
    } files[] = {{"-o", &o->out},        {"--lse", &o->lse},
                 {"--sink", &o->sink},   {"--lengths", &o->lengths},
                 {"--table", &o->table}, {"--lists", &o->lists}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(name, files[i].name)) {
            *files[i].to = value;
            return 0;
        }
    if (!strcmp(name, "--scale")) {
        char *end;
        o->scale = strtod(value, &end);
        if (end != value && !*end && isfinite(o->scale) && o->scale > 0) return 0;
        return cli_usage("mla", "--scale takes a number above 0, not '%s'", value);
    }
    if (!strcmp(name, "--in")) {
        o->in_type = cli_dtype(value);
        if (o->in_type == HEWN_BF16 || o->in_type == HEWN_F16) return 0;
        return cli_usage("mla", "--in takes bf16 or f16, not '%s'", value);
    }
    if (!strcmp(name, "--out")) {
        o->out_type = cli_dtype(value);
        if (o->out_type >= 0) return 0;
        return cli_usage("mla", "--out takes f32, f16 or bf16, not '%s'", value);
    }
    return -1;
}

static int parse_options(int argc, char **argv, struct mla_options *o)
{
    for (int i = 1; i < argc; i++) {
        int rc = -1;
        if (!strcmp(argv[i], "--causal") || !strcmp(argv[i], "--records")) {
            *(argv[i][2] == 'c' ? &o->causal : &o->records) = true;
            continue;
        }
        if (argv[i][0] != '-' && !o->kv) {
            *(o->q ? &o->kv : &o->q) = argv[i];
            continue;
        }
        if (i + 1 < argc && argv[i][0] == '-') rc = parse_valued(o, argv[i], argv[i + 1]);
        if (rc < 0) return cli_usage("mla", "'%s' is not understood", argv[i]);
        if (rc) return rc;
        i++;
    }
    if (!o->kv) return cli_usage("mla", "two .npy files are needed: Q and the cache");
    if (!o->out) return cli_usage("mla", "-o O.npy is missing");
    if (o->table && !o->lengths)
        return cli_usage("mla", "--table needs --lengths: how many keys the pages hold");
    if (o->lists && (o->table || o->causal))
        return cli_usage("mla", "--lists goes without %s: a list names the keys that a query sees",
                         o->table ? "--table" : "--causal");
    return 0;
}

/* ---- inputs ---- */

static size_t elements(const struct npy *x)
{
    return (size_t)npy_bytes(1, x->rank, x->dim);
}

/* `bytes` for a block of the run. */
static bool reserve(struct mla_run *r, enum block b, size_t bytes)
{
    r->bytes[b] = bytes;
    r->host[b] = malloc(bytes ? bytes : 1);
    return r->host[b] != NULL;
}

static int no_memory(void)
{
    return cli_fail("no memory for the arrays");
}

/* int32 elements of a file into a block of the run. */
static int read_ints(const char *path, struct mla_run *r, enum block b, int rank,
                     const uint64_t *dim)
{
    char why[512];
    if (!reserve(r, b, (size_t)npy_bytes(sizeof(int32_t), rank, dim))) return no_memory();
    if (npy_read_into(path, "<i4", sizeof(int32_t), rank, dim, r->host[b], why, sizeof why))
        return cli_fail("%s", why);
    return 0;
}

/* Lengths and table; the longest sequence gives the table's width. */
static int read_tables(const struct mla_options *o, struct mla_run *r)
{
    hewn_mla_desc *d = &r->desc;
    uint64_t dim[2] = {(uint64_t)d->batch, 0};
    if (!o->lengths) return 0;
    d->lengths = 1;
    int rc = read_ints(o->lengths, r, LENGTHS, 1, dim);
    if (rc || !o->table) return rc;
    const int32_t *lengths = r->host[LENGTHS];
    int64_t longest = 0;
    for (int64_t b = 0; b < d->batch; b++)
        if (lengths[b] > longest) longest = lengths[b];
    d->length = longest;
    d->table_width = (longest + d->page_size - 1) / d->page_size;
    dim[1] = (uint64_t)d->table_width;
    return longest ? read_ints(o->table, r, TABLE, 2, dim) : 0;
}

/* Lists, which give their width, and how many entries of each count. */
static int read_lists(const struct mla_options *o, struct mla_run *r)
{
    hewn_mla_desc *d = &r->desc;
    struct npy lists;
    char why[512];
    if (npy_read_as(o->lists, "<i4", sizeof(int32_t), 3, &lists, why, sizeof why))
        return cli_fail("%s", why);
    r->host[LISTS] = lists.data;
    r->bytes[LISTS] = (size_t)npy_bytes(sizeof(int32_t), 3, lists.dim);
    if (lists.dim[0] != (uint64_t)d->batch || lists.dim[1] != (uint64_t)d->q_length)
        return cli_fail("%s has lists for %llu x %llu queries, %s has %lld x %lld", o->lists,
                        (unsigned long long)lists.dim[0], (unsigned long long)lists.dim[1], o->q,
                        (long long)d->batch, (long long)d->q_length);
    d->list_width = (int64_t)lists.dim[2];
    if (!o->lengths) return 0;
    d->lengths = 2;
    return read_ints(o->lengths, r, LENGTHS, 2, lists.dim);
}

/* How the cache's file is read: [B,N,..], or with a table or lists the pages of a pool. */
static int describe_cache(const struct mla_options *o, const struct npy *kv, struct mla_run *r)
{
    hewn_mla_desc *d = &r->desc;
    uint64_t width = o->records ? 656 : 576;
    if (kv->dim[2] != width)
        return cli_fail("rows of %s have %llu elements, not %llu", o->kv,
                        (unsigned long long)kv->dim[2], (unsigned long long)width);
    d->length = (int64_t)kv->dim[1];
    d->cache = o->records ? HEWN_MLA_CACHE_656 : HEWN_MLA_CACHE_PLAIN;
    if (o->table || (o->lists && kv->dim[0] > 1)) {
        d->page_size = d->length;
        d->pages = (int64_t)kv->dim[0];
        d->length = 0;
    } else if (!o->lists && kv->dim[0] != (uint64_t)d->batch) {
        return cli_fail("%s has %lld sequences and %s %llu: they must be equal without --table",
                        o->q, (long long)d->batch, o->kv, (unsigned long long)kv->dim[0]);
    }
    return o->lists ? read_lists(o, r) : read_tables(o, r);
}

static int describe(const struct mla_options *o, const struct npy *q, const struct npy *kv,
                    struct mla_run *r)
{
    bool halves = !o->records && q->dtype == HEWN_F16 && kv->dtype == HEWN_F16;
    r->desc = (hewn_mla_desc){.struct_size = sizeof r->desc,
                              .batch = (int64_t)q->dim[0],
                              .q_length = (int64_t)q->dim[1],
                              .q_heads = (int64_t)q->dim[2],
                              .in = o->in_type,
                              .out = o->out_type,
                              .scale = o->scale,
                              .causal = o->causal,
                              .sink = o->sink != NULL};
    if (o->in_type < 0) r->desc.in = halves ? HEWN_F16 : HEWN_BF16;
    if (q->dim[3] != 576)
        return cli_fail("rows of %s have %llu elements, not 576", o->q,
                        (unsigned long long)q->dim[3]);
    return describe_cache(o, kv, r);
}

/* The cache's file: of a float type, or of bytes. */
static int read_cache(const struct mla_options *o, struct npy *kv)
{
    char why[512];
    if (o->records ? npy_read_as(o->kv, "|u1", 1, 3, kv, why, sizeof why)
                   : npy_read(o->kv, 3, kv, why, sizeof why))
        return cli_fail("%s", why);
    return 0;
}

/* Q and the cache as the kernel takes them. */
static int place_inputs(const struct mla_options *o, const struct npy *q, const struct npy *kv,
                        struct mla_run *r)
{
    size_t element = o->records ? 1 : 2;
    if (!reserve(r, Q, elements(q) * 2) || !reserve(r, KV, elements(kv) * element))
        return no_memory();
    convert_inputs(q->dtype, r->desc.in, q->data, r->host[Q], elements(q));
    if (o->records)
        memcpy(r->host[KV], kv->data, elements(kv));
    else
        convert_inputs(kv->dtype, r->desc.in, kv->data, r->host[KV], elements(kv));
    return 0;
}

static int read_arrays(const struct mla_options *o, struct npy *q, struct npy *kv,
                       struct mla_run *r)
{
    struct npy sink = {.dtype = 0};
    char why[512];
    if (npy_read(o->q, 4, q, why, sizeof why)) return cli_fail("%s", why);
    int rc = read_cache(o, kv);
    if (!rc) rc = describe(o, q, kv, r);
    if (!rc) rc = place_inputs(o, q, kv, r);
    if (rc) return rc;
    size_t rows = elements(q) / 576;
    if (!reserve(r, O, rows * 512 * hewn_dtype_size(o->out_type)) ||
        (o->lse && !reserve(r, LSE, rows * sizeof(float))))
        return no_memory();
    if (!o->sink) return 0;
    if (npy_read(o->sink, 1, &sink, why, sizeof why)) return cli_fail("%s", why);
    rc = sink.dim[0] == q->dim[2]
             ? 0
             : cli_fail("%s holds %llu logits, Q has %llu heads", o->sink,
                        (unsigned long long)sink.dim[0], (unsigned long long)q->dim[2]);
    if (!rc && !reserve(r, SINK, (size_t)q->dim[2] * sizeof(float))) rc = no_memory();
    for (size_t i = 0; !rc && i < (size_t)q->dim[2]; i++)
        ((float *)r->host[SINK])[i] = (float)element_value(sink.dtype, sink.data, i);
    npy_free(&sink);
    return rc;
}

/* ---- the run ---- */

static int copy_in(const hewn_driver *driver, const struct cli_calls *c, struct mla_run *r)
{
    for (int i = 0; i < BLOCKS; i++) {
        int rc = r->bytes[i] ? c->alloc(&r->device[i], r->bytes[i]) : 0;
        if (rc)
            return cli_fail("%zu bytes of device memory: %s", r->bytes[i],
                            cli_cuda_error(driver, rc));
        if (i <= LISTS && r->bytes[i]) rc = c->to_device(r->device[i], r->host[i], r->bytes[i]);
        if (rc) return cli_fail("copy to the device: %s", cli_cuda_error(driver, rc));
    }
    return 0;
}

/* Enqueues and waits, twice where that is cheap: a first launch also pays for set-up. */
static int run_timed(const hewn_driver *driver, const struct cli_calls *c, struct mla_run *r,
                     const hewn_mla_plan *plan)
{
    bool simulated = hewn_driver_symbol(driver, "hewn_sim_version") != NULL;
    const hewn_mla_args args = {.struct_size = sizeof args,
                                .q = r->device[Q],
                                .kv = r->device[KV],
                                .o = r->device[O],
                                .lse = r->device[LSE],
                                .sink = r->device[SINK],
                                .lengths = r->device[LENGTHS],
                                .table = r->device[TABLE],
                                .lists = r->device[LISTS],
                                .workspace = r->device[WORKSPACE]};
    hewn_error err = {0};
    int rc = 0;
    for (int pass = simulated ? 1 : 0; pass < 2; pass++) {
        double start = cli_seconds();
        if (hewn_mla_plan_run(plan, &args, NULL, &err)) return cli_fail("%s", err.message);
        rc = c->synchronize();
        if (rc) return cli_fail("the kernel failed: %s (%d)", cli_cuda_error(driver, rc), rc);
        r->seconds = cli_seconds() - start;
    }
    rc = c->to_host(r->host[O], r->device[O], r->bytes[O]);
    if (!rc && r->bytes[LSE]) rc = c->to_host(r->host[LSE], r->device[LSE], r->bytes[LSE]);
    return rc ? cli_fail("copy from the device: %s", cli_cuda_error(driver, rc)) : 0;
}

static int run_plan(hewn_context *context, const hewn_driver *driver, struct mla_run *r)
{
    struct cli_calls c;
    hewn_mla_plan *plan = NULL;
    hewn_error err = {0};
    if (!cli_load_calls(driver, &c)) return 1;
    if (hewn_mla_plan_create(context, &r->desc, &plan, &err)) return cli_fail("%s", err.message);
    r->plan.struct_size = sizeof r->plan;
    int rc = hewn_mla_plan_describe(plan, &r->plan, &err) ? cli_fail("%s", err.message) : 0;
    r->bytes[WORKSPACE] = (size_t)r->plan.workspace;
    if (!rc) rc = copy_in(driver, &c, r);
    if (!rc) rc = run_timed(driver, &c, r, plan);
    hewn_mla_plan_destroy(plan);
    for (int i = 0; i < BLOCKS; i++)
        if (r->device[i]) c.release(r->device[i]);
    return rc;
}

static int finish(const struct mla_options *o, const struct mla_run *r,
                  const hewn_device_info *device)
{
    const hewn_mla_desc *d = &r->desc;
    const uint64_t dim[] = {(uint64_t)d->batch, (uint64_t)d->q_length, (uint64_t)d->q_heads, 512};
    const uint64_t lse_dim[] = {(uint64_t)d->batch, (uint64_t)d->q_heads, (uint64_t)d->q_length};
    char why[512];
    printf("kernel: %s for %s (%s), grid %u, %u tiles of %u rows, on %s\n", r->plan.module,
           r->plan.target, r->plan.origin, r->plan.grid[0], r->plan.row_tiles, r->plan.tile_rows,
           device->name);
    printf("%lld x %lld queries, %lld heads, %s%lld keys: ", (long long)d->batch,
           (long long)d->q_length, (long long)d->q_heads, d->lengths ? "up to " : "",
           (long long)(d->list_width ? d->list_width : d->length));
    if (device->simulated)
        printf("%.2f s simulating\n", r->seconds);
    else
        printf("%.1f us\n", 1e6 * r->seconds);
    if (npy_write(o->out, d->out, 4, dim, r->host[O], why, sizeof why) ||
        (o->lse && npy_write(o->lse, HEWN_F32, 3, lse_dim, r->host[LSE], why, sizeof why)))
        return cli_fail("%s", why);
    return 0;
}

static int run_on(hewn_driver *driver, const struct mla_options *o, struct mla_run *r)
{
    hewn_device_info device = {.struct_size = sizeof device};
    hewn_context *context = NULL;
    hewn_error err = {0};
    int rc;
    if (hewn_context_attach_primary(driver, 0, &context, &err) ||
        hewn_context_describe_device(context, &device, &err))
        rc = cli_fail("%s", err.message);
    else
        rc = run_plan(context, driver, r);
    if (!rc) rc = finish(o, r, &device);
    hewn_context_detach(context);
    return rc;
}

int cli_mla(int argc, char **argv)
{
    struct mla_options o = {.in_type = -1, .out_type = HEWN_F32};
    struct mla_run r = {.seconds = 0};
    struct npy q = {.dtype = 0}, kv = {.dtype = 0};
    int rc = parse_options(argc, argv, &o);
    if (rc) return rc;
    rc = read_arrays(&o, &q, &kv, &r);
    if (rc == 0) {
        hewn_driver *driver = cli_open_driver(stdout);
        rc = driver ? run_on(driver, &o, &r) : 1;
        hewn_driver_close(driver);
    }
    npy_free(&q);
    npy_free(&kv);
    for (int i = 0; i < BLOCKS; i++) free(r.host[i]);
    return rc;
}
