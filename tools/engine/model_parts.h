/* What the files of a model's step and of its start share. */
#ifndef ENGINE_MODEL_PARTS_H
#define ENGINE_MODEL_PARTS_H

#include "model.h"

struct rows { /* what the rows of a step are */
    const struct row_plans *plans;
    hewn_deviceptr tokens, positions, sequences; /* sequences 0: row r is of slot r */
    hewn_deviceptr lengths, table, offsets;      /* offsets 0: a query for each sequence */
    bool exchanges; /* parts of ranks stay apart until engine_exchange adds them up, and norms */
    /* Of a chunk that ranks share: rows, positions and sequences of all ranks; else rows 0. */
    int64_t all_rows;
    hewn_deviceptr all_positions, all_sequences;
};

/* 0, or -1 with hewn's message. */
int model_passed(int status, const hewn_error *err, struct problem *p);

/* A product of bf16, as `desc` says beyond types and invariance; its workspace is counted in. */
int model_plan_product(struct model *m, const hewn_gemm_desc *desc, struct product_plan *plan,
                       struct problem *p);
/* d = a b^T, + c. */
int model_product(const struct model *m, const struct product_plan *plan, hewn_deviceptr a,
                  hewn_deviceptr b, hewn_deviceptr bias, hewn_deviceptr c, hewn_deviceptr d,
                  struct problem *p);

/* Q and K of `qkv` rotated, K and V in the cache; then attention, into mixed. */
int model_attend(const struct model *m, const struct rows *r, const struct layer_weights *w,
                 struct problem *p);

/* The products around attention of few rows, without rows, CTAs and eps; one of them. */
struct lean_layer {
    struct engine_multiply qkv, o;
};
void model_lean(const struct model *m, const struct layer_weights *w, struct lean_layer *out);
int model_multiply(const struct model *m, int64_t rows, const struct engine_multiply *what,
                   struct problem *p);

/* ---- projections in e4m3: e4m3.c -- */

struct e4m3_upload { /* room for bf16 rows */
    uint16_t *bits;
    hewn_deviceptr staging;
    size_t elements;
};
/* A matrix, quantised on the device: e4m3 to `out`, a scale a row to `scales`. */
int e4m3_upload(const struct model *m, const struct tensor *t, struct e4m3_upload *u,
                hewn_deviceptr out, hewn_deviceptr scales, struct problem *p);
void e4m3_open(struct model *m);
int e4m3_plan(struct model *m, struct row_plans *r, struct problem *p);
/* One projection: its rows' rounding, with what comes before it, and the product. */
enum e4m3_projection { E4M3_QKV, E4M3_O, E4M3_INNER, E4M3_DOWN };
int e4m3_project(const struct model *m, const struct row_plans *plans,
                 const struct layer_weights *w, enum e4m3_projection which, struct problem *p);
/* From the stream to the stream. */
int e4m3_layer(const struct model *m, const struct rows *r, const struct layer_weights *w,
               struct problem *p);

/* ---- latent attention: latent.c -- */

/* Queries of a sequence in a chunk: it is computed as so many sequences, which share their keys. */
enum { LATENT_QUERIES = 16 };

/* Elements of a row of the first product: Q's vector, or Q itself, and the row of the cache. */
int64_t latent_row(const struct config *c);
/* Keys that a sequence of a chunk may be said to have: some behind the context. */
int64_t latent_length(const struct model *m);
/* Entries of such a sequence in the chunk's table, and sequences of the largest chunk. */
int64_t latent_table_width(const struct model *m);
int64_t latent_groups(const struct model *m);
int latent_plan(struct model *m, struct row_plans *r, bool chunk, struct problem *p);
void latent_plan_free(struct row_plans *r);
/* Lengths and table of a chunk's sequences, from the pages of its slot; to the device. */
int latent_send_chunk(struct model *m, int64_t slot, int64_t rows, int64_t from, struct problem *p);
/* From normed to mixed. */
int latent_attend(const struct model *m, const struct rows *r, const struct layer_weights *w,
                  struct problem *p);

/* ---- experts: experts.c -- */

int experts_plan(struct model *m, struct row_plans *r, struct problem *p);
void experts_plan_free(struct row_plans *r);
/* From normed: what all tokens pass onto the stream, the chosen experts' sum into `added`; of ranks by
 * tensor both into the rank's part. */
int experts_run(const struct model *m, const struct rows *r, const struct layer_weights *w,
                struct problem *p);

#endif
