/*
 * What the files of the families indexer and topk share. indexer_check.c turns descriptions into problems in
 * bytes; indexer.c and topk.c turn a problem into a plan for one device and launch it.
 */
#ifndef HEWN_RUNTIME_INDEXER_H
#define HEWN_RUNTIME_INDEXER_H

#include "context.h"

#include "../ptx/inc/indexer.plan.h"
#include "../ptx/inc/topk.plan.h"

/* Keys of sequences, or of pages through a table. */
struct indexer_pages {
    uint32_t page_size, planes, table_width; /* page_size 0: planes is the batch */
};

struct indexer_problem {
    uint32_t batch, queries, rows, heads, dim, length;
    struct indexer_pages pages;
    int in, in_pages, starts, ends;                 /* in_pages: scales lie there */
    uint64_t q_head, q_row, k_token, k_plane;       /* strides in bytes */
    uint64_t scale_plane, weight_row, out_row;      /* the same */
    uint64_t q_span, k_span, weight_span, out_span; /* bytes from first to last, or 0 */
};

struct topk_problem {
    uint32_t rows, queries, columns, k;
    struct indexer_pages pages;
    int starts, ends;
    uint64_t value_row, index_row, value_span, index_span;
};

/* The kernels' scalar parameters, in their order. */
#define u64                 uint64_t
#define u32                 uint32_t
#define X(type, name, rule) type name;
struct indexer_scalars {
    INDEXER_SCALARS(X)
};
struct topk_scalars {
    TOPK_SCALARS(X)
};
#undef X
#undef u32
#undef u64

struct hewn_indexer_plan {
    const hewn_context *context;
    const struct hewn_loaded *loaded;
    struct indexer_problem problem;
    struct hewn_map maps[INDEXER_MAP_COUNT];
    struct indexer_scalars scalars; /* without addresses */
    uint32_t tile_queries, tile_heads, block_keys;
    hewn_cu_launch_config config;        /* without stream */
    hewn_cu_launch_attribute overlap[1]; /* it may begin before the kernel ahead ends */
};

struct hewn_topk_plan {
    const hewn_context *context;
    const struct hewn_loaded *loaded;
    struct topk_problem problem;
    struct topk_scalars scalars;  /* without addresses */
    uint32_t cluster;             /* CTAs of a row */
    hewn_cu_launch_config config; /* without stream */
    hewn_cu_launch_attribute attributes[2];
};

/* Check every rule that does not depend on a device, and fill `p`. */
int hewn_indexer_check(const hewn_indexer_desc *desc, struct indexer_problem *p, hewn_error *err);
int hewn_topk_check(const hewn_topk_desc *desc, struct topk_problem *p, hewn_error *err);

#endif
