/*
 * What the files runtime/attention*.c share. attention_check.c turns a description into a problem in
 * bytes, attention.c a problem into a plan for one device, attention_run.c launches it;
 * attention_tables.c compares arrays with a plan.
 */
#ifndef HEWN_RUNTIME_ATTENTION_H
#define HEWN_RUNTIME_ATTENTION_H

#include "context.h"
#include "decode.h"

#include "../ptx/inc/attention.plan.h"

enum { ATTENTION_ALIGN = 16 /* bytes: base addresses and strides of tensors, the workspace */ };

/* What the host must know of one variant of a target's kernel. */
struct attention_kernel {
    const char *target;
    uint32_t qk_dim, v_dim, element;
    uint32_t tile_rows, item_tiles, v_halves, box_v, slots, row_bytes;
    uint32_t threads, dynamic_shared, tmem_columns, ctas_per_sm;
    int sums; /* promotes its sums */
};

/* columns x tokens x heads x planes elements; planes are sequences, or pages, or 1 packing. */
struct attention_tensor {
    const char *name; /* "q", "source[0].k" */
    uint64_t element; /* bytes */
    uint64_t columns, tokens, heads, planes;
    uint64_t token, head, plane; /* bytes between them */
    uint64_t span;               /* bytes from the first element to the end of the last, or 0 */
};

struct attention_source {
    int keys; /* hewn_keys */
    uint32_t length;
    uint32_t page_size, pages, table_width;
    uint32_t left, right; /* at most ATTENTION_UNBOUNDED */
    int windows;
    struct attention_tensor k, v;
};

struct attention_problem {
    uint32_t batch, q_heads, kv_heads, group;
    uint32_t qk_dim, v_dim;
    uint32_t q_length;
    uint32_t q_tokens; /* rows of a plane of Q and O: q_length, or all of the packing */
    int q_packed;
    int in, out, kv;            /* hewn_dtype of Q, O, K and V */
    float scale_log2, cap_log2; /* as the kernels want them: attention.plan.h */
    int sink, unnormalised, tree, invariant;
    int q_scales, k_scales, v_scales;                     /* hewn_scales */
    uint32_t q_scale_batch, k_scale_batch, v_scale_batch; /* 0: the same for all sequences */
    int promotion;                                        /* as in the description */
    int turned;                                           /* V is HEWN_V_COLUMNS */
    int schedule;                                         /* hewn_schedule as asked for */
    uint32_t pack, splits;                                /* 0: to be chosen */
    uint32_t sources;
    struct attention_tensor q, o;
    struct attention_source source[2];
};

/* The kernels' scalar parameters, in their order. */
#define u64                 uint64_t
#define u32                 uint32_t
#define f32                 float
#define X(type, name, rule) type name;
struct attention_scalars {
    ATTENTION_SCALARS(X)
};
struct attention_combine_scalars {
    ATTENTION_COMBINE_SCALARS(X)
};
#undef X
#undef f32
#undef u32
#undef u64

struct hewn_attention_plan {
    const hewn_context *context;
    const struct attention_kernel *kernel;
    const struct hewn_loaded *loaded;
    const struct hewn_loaded *combine; /* NULL unless splits > 1 */
    struct attention_problem problem;
    int octets; /* boxes of pages are groups of 8 rows: attention_octets.inc */
    struct hewn_map maps[ATTENTION_MAP_COUNT];
    struct attention_scalars scalars;           /* without addresses */
    struct attention_combine_scalars merge;     /* the same; splits > 1 only */
    hewn_cu_launch_config config, merge_config; /* without stream */
    uint64_t lse_span;                          /* bytes of lse, and of row_max */
    uint64_t part_o;                            /* bytes of the parts' O in the workspace, */
    uint64_t workspace;                         /* and of all of it */
    struct decode_plan decode; /* with a kernel: this schedule; then of the above only context,
                                  problem, loaded, config, lse_span and workspace count */
};

/* Checks every rule that does not depend on a device, and fills `p`. The description is the library's
 * copy; the sources it points at are the caller's. */
int hewn_attention_check(const hewn_attention_desc *desc, struct attention_problem *p,
                         hewn_error *err);

/* Fills strides and span of a tensor whose other fields are set, from those of token, head and plane in
 * elements, 0 as the layout has it. Extents are below 2^31 each. */
int hewn_attention_check_tensor(struct attention_tensor *t, const int64_t strides[3], int layout,
                                hewn_error *err);
/* Rows of O do not share bytes. */
int hewn_attention_check_rows(const struct attention_tensor *o, hewn_error *err);

/* The combine kernel: attention.c, attention_run.c. */
int hewn_attention_load_combine(hewn_context *context, const struct hewn_loaded **out,
                                hewn_error *err);
hewn_cu_launch_config hewn_attention_combine_config(uint32_t rows);
int hewn_attention_launch_combine(const hewn_context *context, const hewn_cu_launch_config *config,
                                  const struct hewn_loaded *loaded,
                                  struct attention_combine_scalars *scalars, hewn_stream stream,
                                  hewn_error *err);

/* ---- decode.c, decode_run.c -- */

/* Whether the decode schedule is taken; has_prefill: the other one has a kernel too. against: what
 * stands against it, "" where nothing does or the caller does not want it. */
int hewn_decode_wanted(const hewn_context *context, const struct attention_problem *p,
                       int has_prefill, int *wanted, const char **against, hewn_error *err);
/* Plans it: context and problem are set. */
/* decode_cluster.c: takes clusters instead of even shares, where these are faster: sets decode.cluster
 * and what depends on it. The kernel is loaded; `blocks` are a tile's at most. The context is current. */
void hewn_decode_choose_cluster(hewn_attention_plan *plan, uint64_t blocks);
int hewn_decode_fill(hewn_attention_plan *plan, hewn_context *context, hewn_error *err);
void hewn_decode_describe(const hewn_attention_plan *plan, hewn_attention_plan_info *info);
/* Launches it: the arguments are checked, and there are queries. */
int hewn_decode_run(const hewn_attention_plan *plan, const hewn_attention_args *args,
                    hewn_stream stream, hewn_error *err);

#endif
