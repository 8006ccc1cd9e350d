/* One attention on the device, from host arrays to host arrays. */
#include "cli.h"

#include <string.h>

/* Device memory of a run; sizes in bytes, 0: none. */
struct block {
    hewn_deviceptr device;
    size_t bytes;
};
enum block_of { Q, K, V, SINK, LENGTHS, TABLE, K_SCALE, V_SCALE, O, LSE, WORKSPACE, BLOCKS };

static void sizes(const struct attended *a, struct block b[BLOCKS])
{
    const hewn_attention_desc *d = &a->desc;
    const hewn_attention_source *s = &a->source;
    size_t in = hewn_dtype_size(d->in), out = hewn_dtype_size(d->out);
    size_t kv = d->kv ? hewn_dtype_size(d->kv) : in;
    size_t queries = (size_t)(d->batch * d->q_heads * d->q_length);
    size_t rows = (size_t)(s->page_size ? s->pages * s->page_size : d->batch * s->length);
    size_t keys = rows * (size_t)d->kv_heads;
    b[Q].bytes = queries * (size_t)d->qk_dim * in;
    b[K].bytes = keys * (size_t)d->qk_dim * kv;
    b[V].bytes = keys * (size_t)d->v_dim * kv;
    b[LENGTHS].bytes = a->lengths ? (size_t)d->batch * sizeof(int32_t) : 0;
    b[TABLE].bytes = a->table ? (size_t)(d->batch * s->table_width) * sizeof(int32_t) : 0;
    b[K_SCALE].bytes = b[V_SCALE].bytes = d->kv == HEWN_E4M3 ? sizeof(float) : 0;
    b[SINK].bytes = d->sink ? (size_t)d->q_heads * sizeof(float) : 0;
    b[O].bytes = queries * (size_t)d->v_dim * out;
    b[LSE].bytes = a->lse ? queries * sizeof(float) : 0;
    b[WORKSPACE].bytes = (size_t)a->plan.workspace;
}

static int allocate(const hewn_driver *driver, const struct cli_calls *c, struct block b[BLOCKS])
{
    for (int i = 0; i < BLOCKS; i++) {
        int rc = b[i].bytes ? c->alloc(&b[i].device, b[i].bytes) : 0;
        if (rc)
            return cli_fail("%zu bytes of device memory: %s", b[i].bytes,
                            cli_cuda_error(driver, rc));
    }
    return 0;
}

static int upload(const hewn_driver *driver, const struct cli_calls *c, const struct attended *a,
                  const struct block b[BLOCKS])
{
    const void *from[BLOCKS] = {[Q] = a->q,
                                [K] = a->k,
                                [V] = a->v,
                                [SINK] = a->sink,
                                [LENGTHS] = a->lengths,
                                [TABLE] = a->table,
                                [K_SCALE] = &a->k_scale,
                                [V_SCALE] = &a->v_scale};
    for (int i = 0; i < BLOCKS; i++) {
        int rc = from[i] && b[i].bytes ? c->to_device(b[i].device, from[i], b[i].bytes) : 0;
        if (rc) return cli_fail("copy to the device: %s", cli_cuda_error(driver, rc));
    }
    return 0;
}

static int download(const hewn_driver *driver, const struct cli_calls *c, struct attended *a,
                    const struct block b[BLOCKS])
{
    int rc = c->to_host(a->o, b[O].device, b[O].bytes);
    if (!rc && a->lse) rc = c->to_host(a->lse, b[LSE].device, b[LSE].bytes);
    return rc ? cli_fail("copy from the device: %s", cli_cuda_error(driver, rc)) : 0;
}

/* Enqueues and waits, twice where that is cheap: a first launch also pays for set-up. */
static int run_timed(const hewn_driver *driver, const struct cli_calls *c, struct attended *a,
                     const hewn_attention_plan *plan, const struct block b[BLOCKS])
{
    bool simulated = hewn_driver_symbol(driver, "hewn_sim_version") != NULL;
    const hewn_attention_source_args keys = {.struct_size = sizeof keys,
                                             .k = b[K].device,
                                             .v = b[V].device,
                                             .lengths = b[LENGTHS].device,
                                             .table = b[TABLE].device};
    hewn_attention_args args = {.struct_size = sizeof args,
                                .q = b[Q].device,
                                .o = b[O].device,
                                .lse = b[LSE].device,
                                .sink = b[SINK].device,
                                .k_scale = b[K_SCALE].device,
                                .v_scale = b[V_SCALE].device,
                                .workspace = b[WORKSPACE].device,
                                .source = {&keys}};
    hewn_error err = {0};
    for (int pass = simulated ? 1 : 0; pass < 2; pass++) {
        double start = cli_seconds();
        int rc;
        if (hewn_attention_plan_run(plan, &args, NULL, &err)) return cli_fail("%s", err.message);
        rc = c->synchronize();
        if (rc) return cli_fail("the kernel failed: %s (%d)", cli_cuda_error(driver, rc), rc);
        a->seconds = cli_seconds() - start;
    }
    return 0;
}

/* What the device would take for something else is named here. */
static int check_tables(const struct attended *a, const hewn_attention_plan *plan, hewn_error *err)
{
    const hewn_attention_source_tables keys = {
        .struct_size = sizeof keys, .lengths = a->lengths, .table = a->table};
    const hewn_attention_tables tables = {.struct_size = sizeof tables, .source = {&keys}};
    return hewn_attention_plan_check_tables(plan, &tables, err);
}

int attended_run(hewn_context *context, const hewn_driver *driver, struct attended *a)
{
    struct cli_calls c;
    struct block b[BLOCKS] = {{0}};
    hewn_attention_plan *plan = NULL;
    hewn_error err = {0};
    int rc = 1;
    if (!cli_load_calls(driver, &c)) return 1;
    a->desc.source[0] = &a->source;
    if (hewn_attention_plan_create(context, &a->desc, &plan, &err))
        return cli_fail("%s", err.message);
    a->plan.struct_size = sizeof a->plan;
    if (hewn_attention_plan_describe(plan, &a->plan, &err) || check_tables(a, plan, &err)) {
        cli_fail("%s", err.message);
    } else {
        sizes(a, b);
        if (!allocate(driver, &c, b) && !upload(driver, &c, a, b) &&
            !run_timed(driver, &c, a, plan, b))
            rc = download(driver, &c, a, b);
    }
    hewn_attention_plan_destroy(plan);
    for (int i = 0; i < BLOCKS; i++)
        if (b[i].device) c.release(b[i].device);
    return rc;
}

/* Of one head and a sequence of n keys. */
static double pairs_of(const hewn_attention_desc *d, const hewn_attention_source *s, int64_t n)
{
    double pairs = 0;
    for (int64_t i = 0; i < d->q_length; i++) {
        int64_t p = i + n - d->q_length, first = 0, end = n;
        if (s->window_back && p + 1 - s->window_back > first) first = p + 1 - s->window_back;
        if (s->window_ahead && p + s->window_ahead < end) end = p + s->window_ahead;
        if (s->causal && p + 1 < end) end = p + 1;
        if (end > first) pairs += (double)(end - first);
    }
    return pairs;
}

double attended_pairs(const struct attended *a)
{
    const hewn_attention_desc *d = &a->desc;
    double pairs = 0;
    if (!a->lengths)
        return pairs_of(d, &a->source, a->source.length) * (double)(d->batch * d->q_heads);
    for (int64_t b = 0; b < d->batch; b++) pairs += pairs_of(d, &a->source, a->lengths[b]);
    return pairs * (double)d->q_heads;
}
