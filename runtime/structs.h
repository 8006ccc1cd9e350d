/* The public structs that may grow, and the one place where their struct_size is judged (the rule is
 * in hewn.h, "Structs"). The runtime works on copies of its own size, never on the caller's struct. */
#ifndef HEWN_RUNTIME_STRUCTS_H
#define HEWN_RUNTIME_STRUCTS_H

#include "hewn.h"

/* Struct, and the last field that it had in version 0.2. A new field goes behind the last one and makes
 * the struct longer: the bytes that an older caller leaves out must not be padding of its own. */
#define HEWN_STRUCTS(X)                      \
    X(hewn_driver_options, user)             \
    X(hewn_device_info, memory_bytes)        \
    X(hewn_module_info, image_count)         \
    X(hewn_image_info, size)                 \
    X(hewn_tensormap_desc, oob)              \
    X(hewn_launch_desc, stream)              \
    X(hewn_gemm_desc, variant)               \
    X(hewn_gemm_plan_info, parts)            \
    X(hewn_gemm_args, beta)                  \
    X(hewn_gemm_tune_args, rounds)           \
    X(hewn_gemm_tuned, chosen_seconds)       \
    X(hewn_attention_source, window_ahead)   \
    X(hewn_attention_desc, source)           \
    X(hewn_attention_plan_info, workspace)   \
    X(hewn_attention_source_args, windows)   \
    X(hewn_attention_args, source)           \
    X(hewn_attention_source_tables, windows) \
    X(hewn_attention_tables, source)         \
    X(hewn_merge_desc, sink)                 \
    X(hewn_merge_plan_info, block)           \
    X(hewn_merge_args, sink)                 \
    X(hewn_mla_desc, sink)                   \
    X(hewn_mla_plan_info, workspace)         \
    X(hewn_mla_args, workspace)              \
    X(hewn_mla_tables, lists)                \
    X(hewn_indexer_desc, ends)               \
    X(hewn_indexer_plan_info, block_keys)    \
    X(hewn_indexer_args, table)              \
    X(hewn_indexer_tables, table)            \
    X(hewn_topk_desc, ends)                  \
    X(hewn_topk_plan_info, cluster)          \
    X(hewn_topk_args, table)                 \
    X(hewn_topk_tables, table)               \
    X(hewn_grouped_desc, a_rows)             \
    X(hewn_grouped_plan_info, stages)        \
    X(hewn_grouped_args, index)              \
    X(hewn_grouped_tables, rows)             \
    X(hewn_grouped_sum_desc, out)            \
    X(hewn_grouped_sum_plan_info, block)     \
    X(hewn_grouped_sum_args, weights)        \
    X(hewn_w4_desc, invariant)               \
    X(hewn_w4_weights, zero_row)             \
    X(hewn_w4_plan_info, packed)             \
    X(hewn_w4_args, d)

enum hewn_struct {
#define X(type, last) HEWN_STRUCT_##type,
    HEWN_STRUCTS(X)
#undef X
};

/* Copies what the caller gave into `to`, a struct of that type: fields that the caller's version lacks
 * become 0, bytes that this version lacks must be 0. */
int hewn_struct_take(enum hewn_struct type, const void *from, void *to, hewn_error *err);

/* Copies `from`, a struct of that type, to the caller's `out`: as much as its struct_size, which stays,
 * has room for. The rest of a longer one becomes 0. */
int hewn_struct_give(enum hewn_struct type, const void *from, void *out, hewn_error *err);

#endif
