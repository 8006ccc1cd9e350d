/* hewn mla: decode of multi-head latent attention from .npy files. */
#include "cli.h"
#include "npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum block {
    Q,
    KV,
    SINK,
    LENGTHS,
    TABLE,
    LISTS,
    KV_2,
    LENGTHS_2,
    LISTS_2,
    O,
    LSE,
    WORKSPACE,
    BLOCKS
};
/* A key's bytes or elements; what the pages of records of 584 bytes are multiples of. */
enum { PLAIN = 576, WIDE_RECORD = 656, SPLIT_RECORD = 584, SPLIT_UNIT = 576, VALUES = 512 };

struct mla_options {
    const char *q, *kv, *sink, *lengths, *table, *lists, *out, *lse;
    const char *kv_2, *lengths_2, *lists_2; /* of a second cache */
    int in_type, out_type;                  /* in_type -1: by the files' */
    int records;                            /* bytes of one; 0: none */
    bool causal;
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
    } files[] = {{"-o", &o->out},          {"--lse", &o->lse},
                 {"--sink", &o->sink},     {"--lengths", &o->lengths},
                 {"--table", &o->table},   {"--lists", &o->lists},
                 {"--cache2", &o->kv_2},   {"--lengths2", &o->lengths_2},
                 {"--lists2", &o->lists_2}};
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

/* --records, --records 656 or --records 584: how many arguments that are, or 0. */
static int parse_records(struct mla_options *o, const char *name, const char *value)
{
    if (strcmp(name, "--records") != 0) return 0;
    o->records = value && !strcmp(value, "584") ? SPLIT_RECORD : WIDE_RECORD;
    return 1 + (value && (!strcmp(value, "584") || !strcmp(value, "656")));
}

static int check_second(const struct mla_options *o)
{
    if (!o->kv_2 && !o->lists_2 && !o->lengths_2) return 0;
    if (!o->kv_2 || !o->lists_2 || !o->lists)
        return cli_usage("mla", "a second cache needs --lists, --cache2 and --lists2");
    return 0;
}

static int parse_options(int argc, char **argv, struct mla_options *o)
{
    for (int i = 1; i < argc; i++) {
        int rc = -1, taken = parse_records(o, argv[i], argv[i + 1]);
        if (!strcmp(argv[i], "--causal")) {
            o->causal = true;
            continue;
        }
        if (taken) {
            i += taken - 1;
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
    return check_second(o);
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

/* Lists, which give their width, and how many entries of each count, into blocks of the run. */
static int read_lists(const char *path, const char *counts, const char *q, struct mla_run *r,
                      enum block lists_at, enum block counts_at, int64_t *width)
{
    const hewn_mla_desc *d = &r->desc;
    struct npy lists;
    char why[512];
    if (npy_read_as(path, "<i4", sizeof(int32_t), 3, &lists, why, sizeof why))
        return cli_fail("%s", why);
    r->host[lists_at] = lists.data;
    r->bytes[lists_at] = (size_t)npy_bytes(sizeof(int32_t), 3, lists.dim);
    if (lists.dim[0] != (uint64_t)d->batch || lists.dim[1] != (uint64_t)d->q_length)
        return cli_fail("%s has lists for %llu x %llu queries, %s has %lld x %lld", path,
                        (unsigned long long)lists.dim[0], (unsigned long long)lists.dim[1], q,
                        (long long)d->batch, (long long)d->q_length);
    *width = (int64_t)lists.dim[2];
    return counts ? read_ints(counts, r, counts_at, 2, lists.dim) : 0;
}

static int read_both_lists(const struct mla_options *o, struct mla_run *r)
{
    hewn_mla_desc *d = &r->desc;
    int rc = read_lists(o->lists, o->lengths, o->q, r, LISTS, LENGTHS, &d->list_width);
    if (o->lengths) d->lengths = 2;
    if (rc || !o->kv_2) return rc;
    if (o->lengths_2) d->extra_lengths = 2;
    return read_lists(o->lists_2, o->lengths_2, o->q, r, LISTS_2, LENGTHS_2, &d->extra_width);
}

static int check_width(const struct mla_options *o, const char *path, const struct npy *kv)
{
    uint64_t width = o->records ? (uint64_t)o->records : PLAIN;
    if (kv->dim[2] == width) return 0;
    return cli_fail("rows of %s have %llu elements, not %llu", path, (unsigned long long)kv->dim[2],
                    (unsigned long long)width);
}

/* How the cache's file is read: [B,N,..], or with a table or lists the pages of a pool. */
static int describe_cache(const struct mla_options *o, const struct npy *kv, struct mla_run *r)
{
    hewn_mla_desc *d = &r->desc;
    int rc = check_width(o, o->kv, kv);
    if (rc) return rc;
    d->length = (int64_t)kv->dim[1];
    d->cache = o->records == WIDE_RECORD    ? HEWN_MLA_CACHE_656
               : o->records == SPLIT_RECORD ? HEWN_MLA_CACHE_584
                                            : HEWN_MLA_CACHE_PLAIN;
    if (o->table || (o->lists && kv->dim[0] > 1)) {
        d->page_size = d->length;
        d->pages = (int64_t)kv->dim[0];
        d->length = 0;
    } else if (!o->lists && kv->dim[0] != (uint64_t)d->batch) {
        return cli_fail("%s has %lld sequences and %s %llu: they must be equal without --table",
                        o->q, (long long)d->batch, o->kv, (unsigned long long)kv->dim[0]);
    }
    return o->lists ? read_both_lists(o, r) : read_tables(o, r);
}

static int describe_second(const struct mla_options *o, const struct npy *kv, struct mla_run *r)
{
    hewn_mla_desc *d = &r->desc;
    d->extra_cache = d->cache;
    d->extra_page_size = kv->dim[0] > 1 ? (int64_t)kv->dim[1] : 0;
    d->extra_pages = kv->dim[0] > 1 ? (int64_t)kv->dim[0] : 0;
    d->extra_length = kv->dim[0] > 1 ? 0 : (int64_t)kv->dim[1];
    return check_width(o, o->kv_2, kv);
}

static int describe(const struct mla_options *o, const struct npy *q, const struct npy *kv,
                    struct mla_run *r)
{
    bool halves = !o->records && q->dtype == HEWN_F16 && kv->dtype == HEWN_F16;
    uint64_t columns = o->records == SPLIT_RECORD ? VALUES : PLAIN;
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
    if (q->dim[3] != columns)
        return cli_fail("rows of %s have %llu elements, not %llu", o->q,
                        (unsigned long long)q->dim[3], (unsigned long long)columns);
    return describe_cache(o, kv, r);
}

/* A cache's file: of a float type, or of bytes. */
static int read_cache(const struct mla_options *o, const char *path, struct npy *kv)
{
    char why[512];
    if (o->records ? npy_read_as(path, "|u1", 1, 3, kv, why, sizeof why)
                   : npy_read(path, 3, kv, why, sizeof why))
        return cli_fail("%s", why);
    return 0;
}

/* A cache as the kernel takes it. Pages of records of 584 bytes are padded, as a stride of 0 means. */
static int place_cache(const struct mla_options *o, const struct npy *kv, struct mla_run *r,
                       enum block b)
{
    size_t count = elements(kv), page = (size_t)(kv->dim[1] * kv->dim[2]), step = page;
    if (o->records == SPLIT_RECORD) step = (page + SPLIT_UNIT - 1) / SPLIT_UNIT * SPLIT_UNIT;
    if (!reserve(r, b, (size_t)kv->dim[0] * step * (o->records ? 1 : 2))) return no_memory();
    if (!o->records) convert_inputs(kv->dtype, r->desc.in, kv->data, r->host[b], count);
    for (size_t i = 0; o->records && page && i < kv->dim[0]; i++)
        memcpy((char *)r->host[b] + i * step, (const char *)kv->data + i * page, page);
    return 0;
}

static int read_second(const struct mla_options *o, struct mla_run *r)
{
    struct npy kv = {.dtype = 0};
    int rc = read_cache(o, o->kv_2, &kv);
    if (!rc) rc = describe_second(o, &kv, r);
    if (!rc) rc = place_cache(o, &kv, r, KV_2);
    npy_free(&kv);
    return rc;
}

static int read_sink(const struct mla_options *o, struct mla_run *r)
{
    struct npy sink = {.dtype = 0};
    const uint64_t heads = (uint64_t)r->desc.q_heads;
    char why[512];
    if (npy_read(o->sink, 1, &sink, why, sizeof why)) return cli_fail("%s", why);
    int rc = sink.dim[0] == heads
                 ? 0
                 : cli_fail("%s holds %llu logits, Q has %llu heads", o->sink,
                            (unsigned long long)sink.dim[0], (unsigned long long)heads);
    if (!rc && !reserve(r, SINK, (size_t)heads * sizeof(float))) rc = no_memory();
    for (size_t i = 0; !rc && i < heads; i++)
        ((float *)r->host[SINK])[i] = (float)element_value(sink.dtype, sink.data, i);
    npy_free(&sink);
    return rc;
}

static int read_arrays(const struct mla_options *o, struct npy *q, struct npy *kv,
                       struct mla_run *r)
{
    char why[512];
    if (npy_read(o->q, 4, q, why, sizeof why)) return cli_fail("%s", why);
    int rc = read_cache(o, o->kv, kv);
    if (!rc) rc = describe(o, q, kv, r);
    if (!rc) rc = place_cache(o, kv, r, KV);
    if (!rc && o->kv_2) rc = read_second(o, r);
    if (rc) return rc;
    size_t rows = elements(q) / (size_t)q->dim[3];
    if (!reserve(r, Q, elements(q) * 2) ||
        !reserve(r, O, rows * VALUES * hewn_dtype_size(o->out_type)) ||
        (o->lse && !reserve(r, LSE, rows * sizeof(float))))
        return no_memory();
    convert_inputs(q->dtype, r->desc.in, q->data, r->host[Q], elements(q));
    return o->sink ? read_sink(o, r) : 0;
}

/* ---- the run ---- */

static int copy_in(const hewn_driver *driver, const struct cli_calls *c, struct mla_run *r)
{
    for (int i = 0; i < BLOCKS; i++) {
        int rc = r->bytes[i] ? c->alloc(&r->device[i], r->bytes[i]) : 0;
        if (rc)
            return cli_fail("%zu bytes of device memory: %s", r->bytes[i],
                            cli_cuda_error(driver, rc));
        if (i <= LISTS_2 && r->bytes[i]) rc = c->to_device(r->device[i], r->host[i], r->bytes[i]);
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
                                .extra_kv = r->device[KV_2],
                                .extra_lists = r->device[LISTS_2],
                                .extra_lengths = r->device[LENGTHS_2],
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
           (long long)(d->list_width ? d->list_width + d->extra_width : d->length));
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
