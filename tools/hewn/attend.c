/* One attention on the device, from host arrays to host arrays. */
#include "cli.h"

#include <string.h>

/* Device memory of a run; sizes in bytes, 0: none. */
struct block {
    hewn_deviceptr device;
    size_t bytes;
};
enum block_of { Q, K, V, SINK, O, LSE, WORKSPACE, BLOCKS };

static void sizes(const struct attended *a, struct block b[BLOCKS])
{
    const hewn_attention_desc *d = &a->desc;
    size_t in = hewn_dtype_size(d->in), out = hewn_dtype_size(d->out);
    size_t queries = (size_t)(d->batch * d->q_heads * d->q_length),
           keys = (size_t)(d->batch * d->kv_heads * a->source.length);
    b[Q].bytes = queries * (size_t)d->qk_dim * in;
    b[K].bytes = keys * (size_t)d->qk_dim * in;
    b[V].bytes = keys * (size_t)d->v_dim * in;
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
    const void *from[BLOCKS] = {[Q] = a->q, [K] = a->k, [V] = a->v, [SINK] = a->sink};
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
    const hewn_attention_source_args keys = {
        .struct_size = sizeof keys, .k = b[K].device, .v = b[V].device};
    hewn_attention_args args = {.struct_size = sizeof args,
                                .q = b[Q].device,
                                .o = b[O].device,
                                .lse = b[LSE].device,
                                .sink = b[SINK].device,
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
    if (hewn_attention_plan_describe(plan, &a->plan, &err)) {
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

double attended_pairs(const struct attended *a)
{
    const hewn_attention_desc *d = &a->desc;
    const hewn_attention_source *s = &a->source;
    double pairs = 0;
    for (int64_t i = 0; i < d->q_length; i++) {
        int64_t p = i + s->length - d->q_length, first = 0, end = s->length;
        if (s->window_back && p + 1 - s->window_back > first) first = p + 1 - s->window_back;
        if (s->window_ahead && p + s->window_ahead < end) end = p + s->window_ahead;
        if (s->causal && p + 1 < end) end = p + 1;
        if (end > first) pairs += (double)(end - first);
    }
    return pairs * (double)d->batch * (double)d->q_heads;
}
