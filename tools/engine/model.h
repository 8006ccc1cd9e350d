/*
 * A model on the device: its weights, its cache of keys and values in pages, its plans for several
 * numbers of rows, and one step of it. After model_open nothing is allocated and nothing is loaded.
 * One thread uses a model.
 */
#ifndef ENGINE_MODEL_H
#define ENGINE_MODEL_H

#include "checkpoint.h"
#include "gpu.h"
#include "kernels.h"
#include "ranks.h"
#include "tuning.h"

enum { MODEL_BUCKETS = 16 };

struct model_options {
    int64_t slots;      /* requests that decode together; 0: 8 */
    int64_t chunk;      /* tokens of a prompt that are computed at once; 0: 256 */
    int64_t context;    /* positions of a request; 0: those of config.json */
    int64_t page_size;  /* keys of a page; 0: 64 */
    int64_t pages;      /* of the cache; 0: a full context for every slot */
    bool invariant;     /* a request's bits do not depend on the others, nor on chunk */
    bool no_graphs;     /* launches kernels one by one, where it would replay a graph */
    bool no_lean;       /* steps of few rows have hewn_gemm around attention, not engine_multiply */
    bool by_nccl;       /* ranks by tensor add up by NCCL alone, also where exchange.h can */
    const char *tuning; /* a file of kernels for products, which hewn_gemm_tune found; NULL: none */
    bool tune;          /* finds them first, and writes them to that file */
    /* Told of each product that is tuned; may be NULL. */
    void (*tuned)(const hewn_gemm_desc *product, const hewn_gemm_tuned *result);
    struct ranks *ranks; /* joined, NULL: one GPU alone. The checkpoint is then the rank's part */
};

/* A plan, and the workspace that its runs bring: 0 where it has no use for one. */
struct product_plan {
    hewn_gemm_plan *plan;
    uint64_t workspace;
};
struct attention_plan {
    hewn_attention_plan *plan;
    uint64_t workspace;
};

/* Of latent attention: latent.c. */
struct latent_plans {
    struct product_plan q, widen, values; /* q: where Q is made of a vector */
    hewn_mla_plan *attention;
    uint64_t workspace;
};
struct latent_weights {
    hewn_deviceptr q, q_norm, kv_norm, kv; /* q_b, norms, kv_b */
};
struct latent_buffers {
    hewn_deviceptr q, wide, vector; /* Q, Q as the cache is, a vector of Q or of each head */
    hewn_deviceptr lengths, table;  /* of a chunk's sequences */
    int32_t *staging;               /* pinned: both of these */
    int32_t *pages;                 /* of all slots: [slots][table_width] */
};

/* Of experts: experts.c. */
struct expert_plans {
    struct product_plan router, shared_inner, shared_down;
    hewn_grouped_plan *inner, *down;
    hewn_grouped_sum_plan *sum;
};
struct expert_weights {
    hewn_deviceptr router, router_bias, shared_inner, shared_down;
    hewn_deviceptr inner, down; /* of all experts; 0: a dense layer */
};
struct expert_buffers {
    hewn_deviceptr logits, choice, weights, offsets, index, place; /* of rows */
    hewn_deviceptr inner, made;                                    /* a row for each place */
    hewn_deviceptr added;                                          /* the weighted sums */
    int64_t inner_stride, down_stride; /* elements from an expert's weights to the next's */
};

/* Projections in e4m3: e4m3.c. */
struct e4m3_scales {
    hewn_deviceptr qkv, o, inner, down; /* f32, one a row of weights */
};
struct e4m3_buffers {
    hewn_deviceptr rows, scales; /* of what is multiplied */
    int64_t few, ctas;           /* rows that engine_project multiplies at most, CTAs of its grid */
};

/* Plans for a number of rows. */
struct row_plans {
    int64_t rows;
    bool
        lean; /* engine_multiply and engine_attend up to the stream: no plans of qkv, o, attention */
    struct product_plan qkv, o, inner, down;
    struct product_plan kv;          /* of a chunk that ranks share; then qkv is Q alone */
    struct product_plan head;        /* of decode alone */
    struct attention_plan attention; /* NULL: engine_attend */
    struct latent_plans latent;
    struct expert_plans experts;
    gpu_graph_exec graph; /* of decode, NULL: not captured */
};

struct layer_weights {
    hewn_deviceptr norm_in, qkv, qkv_bias, o, o_bias, norm_post, inner, down;
    hewn_deviceptr q_norm, k_norm; /* of heads; 0: none */
    hewn_deviceptr k, v;           /* the layer's pages; of latent attention k alone */
    struct e4m3_scales e4m3;
    struct latent_weights latent;
    struct expert_weights experts;
};

/* What the host writes for a chunk, and where it lies on the device: i32 each. */
struct chunk_input {
    hewn_deviceptr base, offsets, length, last, tokens, positions, sequences;
};

struct model {
    struct gpu *gpu;
    struct ranks *ranks; /* NULL: one GPU alone */
    struct engine_kernels kernels;
    struct config config;
    struct model_options options; /* without zeros */
    struct tuning tuning;         /* while plans are made */
    int64_t table_width, logits_row, history_row;

    hewn_deviceptr embed, norm, head, rotation;
    struct layer_weights *layer;

    struct row_plans decode[MODEL_BUCKETS], prefill[MODEL_BUCKETS];
    int decode_count, prefill_count;

    hewn_deviceptr stream, normed, qkv, mixed, inner, logits; /* activations */
    hewn_deviceptr
        part; /* of ranks by tensor: what goes onto the stream, of this rank, then of all */
    hewn_deviceptr gathered; /* of ranks by context: K and V of a chunk, of all ranks */
    hewn_deviceptr workspace, attention_workspace, table, stops;
    uint64_t workspace_bytes, attention_workspace_bytes;
    hewn_deviceptr counters; /* of engine_attend */
    int64_t columns;         /* of its CTAs; 0: it is not used */
    struct e4m3_buffers e4m3;
    struct latent_buffers latent;
    struct expert_buffers experts;
    struct engine_slots slots;
    struct chunk_input input;
    int32_t *staging; /* pinned; of chunk_input and of model_read */
    size_t staging_count;
    unsigned char *small; /* pinned; what model_enter and others send. Begins anew after a wait */
    size_t small_used, small_size;
};

/* 0, or -1 after a message; then nothing is left. */
int model_open(struct gpu *gpu, const struct checkpoint *checkpoint,
               const struct model_options *options, struct model **out, struct problem *p);
void model_close(struct model *m);
/* Captures decode steps of all numbers of rows as graphs; model_open does it last. */
int model_capture(struct model *m, struct problem *p);

struct model_request {
    const int32_t *pages; /* of the cache, page_count of them */
    int64_t page_count;
    int64_t limit; /* the request ends before a token at this position */
    struct engine_sampling sampling;
};
/* Gives a slot to a request; until its prompt is computed it is idle. */
int model_enter(struct model *m, int64_t slot, const struct model_request *r, struct problem *p);
/* Enqueues `count` tokens, at most a chunk, from position `from` on. With `last`, the request's
 * first token is drawn and it begins to decode. */
int model_prefill(struct model *m, int64_t slot, const int32_t *tokens, int64_t count, int64_t from,
                  bool last, struct problem *p);
/* The request of a slot decodes from `token` at `position` on, on the keys before it that the cache
 * holds. */
int model_place(struct model *m, int64_t slot, int32_t token, int64_t position, struct problem *p);
/* Enqueues a token for each of the first `slots` slots that is not idle. */
int model_decode(struct model *m, int64_t slots, struct problem *p);
/* The request of a slot ends at its next token. */
int model_cancel(struct model *m, int64_t slot, struct problem *p);

/* Of a rank that does not lead: computes what the leader's model is told to, until the leader ends.
 * The functions above and below are for the leader then, model_history and model_logits for both. */
int model_follow(struct model *m, struct problem *p);

struct model_state { /* of each slot, in memory of the model's, until the next call */
    const int32_t *reasons, *counts, *sampled;
};
/* Waits for what is enqueued, and reads all slots. */
int model_read(struct model *m, struct model_state *out, struct problem *p);
/* Waits, and reads tokens that were drawn for a slot: history[from..from + count). */
int model_history(struct model *m, int64_t slot, int64_t from, int64_t count, int32_t *out,
                  struct problem *p);
/* Waits, and reads the last logits of a row: after model_prefill with `last`, row 0; after
 * model_decode, the slot. */
int model_logits(struct model *m, int64_t row, float *out, struct problem *p);

#endif
