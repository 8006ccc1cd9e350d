/*
 * The decode schedule of attention. decode.c chooses it and plans it, decode_run.c launches it. What
 * the kernels expect is in ptx/inc/decode.plan.h and split.plan.h.
 */
#ifndef HEWN_RUNTIME_DECODE_H
#define HEWN_RUNTIME_DECODE_H

#include "context.h"

#include "../ptx/inc/decode.plan.h"

/* What the host must know of one variant of the kernel. */
struct decode_kernel {
    const char *target;
    uint32_t qk_dim, v_dim, element, rows;
    uint32_t heads;     /* KV heads of a tile, side by side in memory */
    uint32_t step_keys; /* loaded at a time */
    int fast_rows;      /* in which pages rows come faster one by one than by boxes: decode.c */
    int grouped_rows;   /* 1: and then CTAs in groups are faster */
    int clusters;       /* 1: CTAs of a cluster can share a tile */
    int rows_only;      /* 1: keys are fetched row by row, never by boxes */
    uint32_t tail;      /* columns that have maps of their own, or 0 */
    uint32_t slots, threads, row_bytes, dynamic_shared;
};

/* The kernel of one line of SM100F_DECODE_VARIANTS or SM100F_MLA_VARIANTS; `only`: its rows_only. */
#define DECODE_SM100F_KERNEL(P, t, qk, v, e, n, only)                                  \
    {                                                                                  \
        .target = #t, .qk_dim = qk, .v_dim = v, .element = e, .rows = n, .heads = 1,   \
        .step_keys = P##_DECODE_STEP_KEYS(qk), .slots = P##_DECODE_SLOTS(qk, v, e, n), \
        .threads = P##_DECODE_THREADS(qk, e, n), .row_bytes = P##_DECODE_ROW(e),       \
        .rows_only = only, .tail = P##_DECODE_TAIL(qk),                                \
        .dynamic_shared = P##_DECODE_DYNAMIC_SHARED(qk, v, e, n)                       \
    }

/* The kernels' scalar parameters, in their order. */
#define u64                 uint64_t
#define u32                 uint32_t
#define f32                 float
#define X(type, name, rule) type name;
struct decode_scalars {
    DECODE_SCALARS(X)
};
struct split_combine_scalars {
    SPLIT_COMBINE_SCALARS(X)
};
#undef X
#undef f32
#undef u32
#undef u64

/* Launches the combine kernel: split.c. The addresses of `scalars` are set. */
int hewn_split_combine(const hewn_context *context, const struct hewn_loaded *combine,
                       const hewn_cu_launch_config *config, struct split_combine_scalars *scalars,
                       hewn_stream stream, hewn_error *err);

enum { DECODE_MAPS_MOST = DECODE_MAP_COUNT + 2 }; /* with those of the tail of K and V */

struct decode_plan {
    const struct decode_kernel *kernel;
    const struct hewn_loaded *combine; /* NULL: no tile can be split */
    struct hewn_map maps[DECODE_MAPS_MOST];
    size_t map_count;
    struct decode_scalars scalars;          /* without addresses */
    struct split_combine_scalars merge;     /* the same */
    hewn_cu_launch_config merge_config;     /* without stream */
    hewn_cu_launch_attribute attributes[2]; /* [0] of both: they may begin before the kernel ahead
                                               ends; [1]: the cluster, where it has several CTAs */
    uint32_t cluster;                       /* CTAs that share a tile; 0: even shares of all keys */
    uint64_t tiles;                         /* at most */
    uint64_t part_lse, records;             /* bytes from the workspace's beginning */
};

#endif
