#include "attention_run.h"

#include "lib/harness.h"
#include "lib/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- buffers ---- */

/* X(name, where its address goes, host pointer, bytes, fill) */
#define BUFFERS(X)                                                                        \
    X(q, args->q, d->q.bytes, d->q.size, 0xFF)                                            \
    X(o, args->o, d->o.bytes, d->o.size, ATTENTION_POISON)                                \
    X(lse, args->lse, d->c.lse ? d->lse : NULL, d->lse_count * 4, ATTENTION_POISON)       \
    X(row_max, args->row_max, d->row_max, d->lse_count * 4, ATTENTION_POISON)             \
    X(sink, args->sink, d->sink, d->sink_count * 4, 0xFF)                                 \
    X(q_scale, args->q_scale, d->q_scale, d->q_scale_count * 4, 0xFF)                     \
    X(k_scale, args->k_scale, d->k_scale, d->k_scale_count * 4, 0xFF)                     \
    X(v_scale, args->v_scale, d->v_scale, d->v_scale_count * 4, 0xFF)                     \
    X(o_scale, args->o_scale, d->o_scale, d->o_scale_count * 4, 0xFF)                     \
    X(cu_q, args->cu_q, d->cu_q, d->cu_q_count * 4, 0x7F)                                 \
    X(tree, args->tree, d->tree, d->tree_count * 8, 0x7F)                                 \
    X(source[0].k, source[0].k, d->k[0].bytes, d->k[0].size, 0xFF)                        \
    X(source[0].v, source[0].v, value_of(d, 0)->bytes, value_of(d, 0)->size, 0xFF)        \
    X(source[0].lengths, source[0].lengths, d->lengths[0], d->lengths_count[0] * 4, 0x7F) \
    X(source[0].table, source[0].table, d->table[0], d->table_count[0] * 4, 0x7F)         \
    X(source[0].windows, source[0].windows, d->windows, d->windows_count * 4, 0x7F)       \
    X(source[1].k, source[1].k, d->k[1].bytes, d->k[1].size, 0xFF)                        \
    X(source[1].v, source[1].v, value_of(d, 1)->bytes, value_of(d, 1)->size, 0xFF)        \
    X(source[1].lengths, source[1].lengths, d->lengths[1], d->lengths_count[1] * 4, 0x7F) \
    X(source[1].table, source[1].table, d->table[1], d->table_count[1] * 4, 0x7F)

static const struct attention_tensor *value_of(const struct attention_data *d, int s)
{
    return d->c.vt ? &d->turned[s] : &d->v[s];
}

#define COUNT(name, field, host, bytes, fill) +1
enum { BUFFER_COUNT = 0 BUFFERS(COUNT) };
#undef COUNT

struct buffers {
    struct guarded of[BUFFER_COUNT], workspace;
};

static bool upload(struct device *dev, struct guarded *g, const void *host, size_t size,
                   unsigned char fill, hewn_deviceptr *address)
{
    if (!host) return true;
    if (!guarded_new(dev, g, size, fill)) return false;
    *address = g->data;
    return size == 0 || dev->to_device(g->data, host, size) == 0;
}

static bool upload_all(struct device *dev, const struct attention_data *d, struct buffers *b,
                       hewn_attention_args *args, hewn_attention_source_args source[2])
{
    int n = 0;
    bool ok = true;
#define UPLOAD(name, field, host, bytes, fill)                    \
    ok = ok && upload(dev, &b->of[n], host, bytes, fill, &field); \
    n++;
    BUFFERS(UPLOAD)
#undef UPLOAD
    return ok;
}

static void check_guards(struct device *dev, const struct buffers *b)
{
    static const char *const names[] = {
#define NAME(name, field, host, bytes, fill) #name,
        BUFFERS(NAME)
#undef NAME
    };
    for (int n = 0; n < BUFFER_COUNT; n++) {
        const char *damage = b->of[n].base ? guarded_damage(dev, &b->of[n]) : NULL;
        CHECK(!damage, "%s: %s", names[n], damage);
    }
    const char *damage = b->workspace.base ? guarded_damage(dev, &b->workspace) : NULL;
    CHECK(!damage, "workspace: %s", damage);
}

static void free_all(struct device *dev, struct buffers *b)
{
    for (int n = 0; n < BUFFER_COUNT; n++) guarded_free(dev, &b->of[n]);
    guarded_free(dev, &b->workspace);
}

static bool read_back(struct device *dev, struct attention_data *d, const hewn_attention_args *args)
{
    size_t floats = d->lse_count * sizeof(float);
    return dev->to_host(d->o.bytes, args->o, d->o.size) == 0 &&
           (!args->lse || !floats || dev->to_host(d->lse, args->lse, floats) == 0) &&
           (!args->row_max || !floats || dev->to_host(d->row_max, args->row_max, floats) == 0);
}

/* ---- the run ---- */

static void check_tables(const struct attention_data *d, const hewn_attention_plan *plan)
{
    hewn_error err = {0};
    hewn_attention_source_tables source[2];
    hewn_attention_tables tables = {.struct_size = sizeof tables, .cu_q = d->cu_q};
    for (int s = 0; s < 2; s++) {
        source[s] = (hewn_attention_source_tables){.struct_size = sizeof source[s],
                                                   .lengths = d->lengths[s],
                                                   .table = d->table[s],
                                                   .windows = s == 0 ? d->windows : NULL};
        tables.source[s] = &source[s];
    }
    CHECK(hewn_attention_plan_check_tables(plan, &tables, &err) == HEWN_OK, "tables: %s",
          err.message);
}

static bool launch(struct device *dev, struct attention_data *d, const hewn_attention_plan *plan,
                   struct attention_run *run, struct buffers *b, hewn_attention_args *args)
{
    hewn_error err = {0};
    hewn_attention_source_args source[2] = {{0}};
    for (int s = 0; s < d->c.sources; s++) {
        source[s].struct_size = sizeof source[s];
        args->source[s] = &source[s];
    }
    bool ready = upload_all(dev, d, b, args, source);
    if (ready && run->info.workspace) {
        ready = guarded_new(dev, &b->workspace, (size_t)run->info.workspace, 0xFF);
        args->workspace = b->workspace.data;
    }
    CHECK(ready, "no device memory for the case");
    if (!ready) return false;
    int status = hewn_attention_plan_run(plan, args, NULL, &err);
    CHECK(status == HEWN_OK, "run: %s", err.message);
    int rc = dev->synchronize();
    CHECK(rc == 0, "the kernel failed with CUresult %d", rc);
    verdict_check(run->info.items > 0 && dev->info.simulated, run->tables_wrong);
    if (status || rc) return false;
    CHECK_INT(read_back(dev, d, args), 1);
    check_guards(dev, b);
    size_t touched = attention_touched(d, run->info.splits > 1);
    CHECK(touched == 0, "%zu bytes outside the rows of the outputs were written", touched);
    return true;
}

void attention_run(struct device *dev, struct attention_data *d, struct attention_run *run)
{
    struct buffers b;
    hewn_attention_plan *plan = NULL;
    hewn_attention_args args = {.struct_size = sizeof args};
    hewn_error err = {0};
    memset(&b, 0, sizeof b);
    attention_poison(d);
    d->short_sums = d->desc.in == HEWN_E4M3 && dev->info.cc_major == 9;
    run->done = false;
    run->info = (hewn_attention_plan_info){.struct_size = sizeof run->info};
    hewn_attention_desc desc = d->desc;
    for (int s = 0; s < d->c.sources; s++) desc.source[s] = &d->source[s];
    int status = hewn_attention_plan_create(dev->context, &desc, &plan, &err);
    if (status == HEWN_ERR_NO_MODULE && dev->info.cc_major < 10) {
        test_skip("%s", err.message);
        return;
    }
    CHECK(status == HEWN_OK, "plan: %s", err.message);
    if (status) return;
    status = hewn_attention_plan_describe(plan, &run->info, &err);
    CHECK(status == HEWN_OK, "describe: %s", err.message);
    if (!run->tables_wrong) check_tables(d, plan);
    if (!status) run->done = launch(dev, d, plan, run, &b, &args);
    hewn_attention_plan_destroy(plan);
    free_all(dev, &b);
}
