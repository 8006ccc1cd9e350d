#include "host_work.h"

#include "lib/harness.h"
#include "lib/plans.h"

#include <stdlib.h>
#include <string.h>

/* Products: 256 x 256 x 512. Attention: HEADS heads of DIM, packed or BATCH sequences of LENGTH; one
 * token each where keys are split. All bf16. */
enum { M = 256, N = 256, K = 512, BATCH = 2, HEADS = 2, DIM = 128, LENGTH = 256, SPLITS = 2 };
enum { POISON = 0xA5 };

static const struct {
    const char *name;
    int maps, launches;
} kinds[HOST_KINDS] = {
    [HOST_GEMM] = {"product", 3, 1},
    [HOST_GEMM_PARTS] = {"product, K in parts", 3, 1},
    [HOST_ATTENTION] = {"attention", 3, 1},
    [HOST_ATTENTION_CAUSAL] = {"attention, causal", 3, 1},
    [HOST_ATTENTION_SPLIT] = {"attention, split keys", 3, 2},
    [HOST_ATTENTION_PACKED] = {"attention, packed", 3, 1},
};

const char *host_kind_name(enum host_kind kind)
{
    return kinds[kind].name;
}

int host_kind_maps(enum host_kind kind)
{
    return kinds[kind].maps;
}

int host_kind_launches(enum host_kind kind)
{
    return kinds[kind].launches;
}

static bool is_gemm(enum host_kind kind)
{
    return kind == HOST_GEMM || kind == HOST_GEMM_PARTS;
}

static int64_t queries(enum host_kind kind)
{
    return kind == HOST_ATTENTION_SPLIT ? 1 : LENGTH;
}

/* ---- plans ---- */

static int plan_gemm(struct device *dev, struct host_work *w, hewn_error *err)
{
    hewn_gemm_desc desc = {
        .struct_size = sizeof desc, .m = M, .n = N, .k = K, .in = HEWN_BF16, .out = HEWN_BF16};
    bool hopper = dev->info.cc_major == 9;
    if (hopper) {
        desc.variant = w->kind == HOST_GEMM ? "plain" : "split";
        desc.parts = w->kind == HOST_GEMM ? 1 : 2;
    }
    return hewn_gemm_plan_create(dev->context, &desc, &w->gemm, err);
}

static int plan_attention(struct device *dev, struct host_work *w, hewn_error *err)
{
    bool packed = w->kind == HOST_ATTENTION_PACKED;
    hewn_attention_desc desc = {
        .struct_size = sizeof desc,
        .batch = BATCH,
        .q_heads = HEADS,
        .kv_heads = HEADS,
        .qk_dim = DIM,
        .q_length = queries(w->kind),
        .q_packed = packed,
        .q_tokens = packed ? BATCH * LENGTH : 0,
        .in = HEWN_BF16,
        .out = HEWN_BF16,
        .splits = w->kind == HOST_ATTENTION_SPLIT ? SPLITS : 1,
        .source = {SOURCE(.keys = packed ? HEWN_KEYS_PACKED : HEWN_KEYS_FIXED, .length = LENGTH,
                          .tokens = packed ? BATCH * LENGTH : 0,
                          .causal = w->kind == HOST_ATTENTION_CAUSAL)},
    };
    return hewn_attention_plan_create(dev->context, &desc, &w->attention, err);
}

int host_work_plan(struct device *dev, struct host_work *w, hewn_error *err)
{
    return is_gemm(w->kind) ? plan_gemm(dev, w, err) : plan_attention(dev, w, err);
}

void host_work_drop_plan(struct host_work *w)
{
    hewn_gemm_plan_destroy(w->gemm);
    hewn_attention_plan_destroy(w->attention);
    w->gemm = NULL;
    w->attention = NULL;
}

/* ---- buffers ---- */

static size_t tensor_bytes(enum host_kind kind, int tensor)
{
    static const size_t product[] = {2 * M * K, 2 * N * K, 0};
    if (is_gemm(kind)) return product[tensor];
    return 2 * (size_t)(BATCH * HEADS * DIM * (tensor ? LENGTH : queries(kind)));
}

static bool allocate(struct device *dev, struct host_work *w, hewn_error *err)
{
    static const int32_t offsets[BATCH + 1] = {0, LENGTH / 3, LENGTH + LENGTH / 3};
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    bool ok = true;
    w->out_bytes = is_gemm(w->kind) ? 2 * M * N : tensor_bytes(w->kind, 0);
    for (int i = 0; i < 3; i++)
        if (tensor_bytes(w->kind, i))
            ok = ok && !dev->mem_alloc(&w->in[i], tensor_bytes(w->kind, i));
    ok = ok && !dev->mem_alloc(&w->out, w->out_bytes);
    if (ok && w->attention) {
        w->lse_bytes = 4 * (size_t)(BATCH * HEADS * queries(w->kind));
        ok = !hewn_attention_plan_describe(w->attention, &info, err) &&
             !dev->mem_alloc(&w->lse, w->lse_bytes) &&
             !dev->mem_alloc(&w->offsets, sizeof offsets) &&
             !dev->to_device(w->offsets, offsets, sizeof offsets) &&
             (!info.workspace || !dev->mem_alloc(&w->workspace, (size_t)info.workspace));
    }
    return ok;
}

bool host_work_fill(struct device *dev, struct host_work *w, int set)
{
    struct rng r = {test_seed() + (uint64_t)set};
    size_t most = w->out_bytes;
    for (int i = 0; i < 3; i++)
        if (tensor_bytes(w->kind, i) > most) most = tensor_bytes(w->kind, i);
    uint16_t *host = malloc(most);
    bool ok = host != NULL;
    for (int i = 0; ok && i < 3; i++) {
        size_t bytes = tensor_bytes(w->kind, i);
        for (size_t j = 0; j < bytes / 2; j++) host[j] = double_to_bf16((double)rng_unit(&r));
        ok = !bytes || !dev->to_device(w->in[i], host, bytes);
    }
    if (ok) {
        memset(host, POISON, most);
        ok = !dev->to_device(w->out, host, w->out_bytes) &&
             (!w->lse || !dev->to_device(w->lse, host, w->lse_bytes));
    }
    free(host);
    return ok;
}

bool host_work_open(struct device *dev, enum host_kind kind, struct host_work *w, hewn_error *err)
{
    memset(w, 0, sizeof *w);
    w->kind = kind;
    if (!host_work_plan(dev, w, err) && allocate(dev, w, err) && host_work_fill(dev, w, 0))
        return true;
    host_work_close(dev, w);
    return false;
}

void host_work_close(struct device *dev, struct host_work *w)
{
    const hewn_deviceptr all[] = {w->in[0], w->in[1],   w->in[2],    w->out,
                                  w->lse,   w->offsets, w->workspace};
    host_work_drop_plan(w);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]) dev->mem_free(all[i]);
    memset(w, 0, sizeof *w);
}

int host_work_run(const struct host_work *w, hewn_stream stream, hewn_error *err)
{
    if (w->gemm) return plain_product(w->gemm, w->in[0], w->in[1], w->out, stream, err);
    bool packed = w->kind == HOST_ATTENTION_PACKED;
    hewn_attention_args args = {
        .struct_size = sizeof args,
        .q = w->in[0],
        .o = w->out,
        .lse = w->lse,
        .cu_q = packed ? w->offsets : 0,
        .workspace = w->workspace,
        .source = {SOURCE_ARGS(.k = w->in[1], .v = w->in[2], .lengths = packed ? w->offsets : 0)}};
    return hewn_attention_plan_run(w->attention, &args, stream, err);
}
