/*
 * What the files runtime/mla*.c share. mla_check.c turns a description into a problem in bytes, mla.c a
 * problem into a plan for one device and launches it.
 */
#ifndef HEWN_RUNTIME_MLA_H
#define HEWN_RUNTIME_MLA_H

#include "../ptx/inc/mla.plan.h"
#include "../ptx/sm_100f/decode.plan.h"
#include "../ptx/sm_90a/mla.plan.h"
#include "decode.h"

enum { MLA_ALIGN = 16 /* bytes: base addresses and strides of tensors, the workspace */ };

/* Rows that are reached by three strides, in bytes. */
struct mla_tensor {
    const char *name;
    uint64_t row;               /* bytes of a row */
    uint64_t count[3], step[3]; /* heads, tokens, planes; of the cache: 1, tokens, planes */
    uint64_t span;              /* bytes from the first element to the end of the last, or 0 */
};

/* The second cache and its lists. */
struct mla_extra {
    uint32_t width; /* 0: there is none */
    uint32_t length, page_size, planes;
    uint64_t step; /* bytes between lists */
    int lengths;
    struct mla_tensor kv;
    uint64_t scales;
};

struct mla_problem {
    uint32_t batch, q_heads, q_length, rows, length;
    uint32_t page_size, planes, table_width;
    uint32_t qk_dim;     /* elements of a query and of a key */
    uint32_t list_width; /* 0: no lists */
    uint64_t list_step;  /* bytes */
    struct mla_extra extra;
    int in, out, cache, lengths, causal, sink, invariant;
    float scale_log2;
    struct mla_tensor q, kv, o;
    uint64_t scales; /* bytes from a page's first row to its scales, where these are apart */
};

/* The kernel's scalar parameters, in their order. */
#define u64                 uint64_t
#define u32                 uint32_t
#define f32                 float
#define X(type, name, rule) type name;
struct mla_scalars {
    MLA_SCALARS(X)
};
struct mla_second_scalars { /* on sm_90a, behind those of kernels with a second cache */
    SM90A_MLA_SECOND_SCALARS(X)
};
struct mla_list_scalars { /* on sm_100f, behind those of decode */
    SM100F_MLA_SCALARS(X)
};
#undef X
#undef f32
#undef u32
#undef u64

struct hewn_mla_plan {
    const hewn_context *context;
    const struct hewn_loaded *loaded;
    const struct hewn_loaded *combine; /* NULL: no sequence can be split */
    struct mla_problem problem;
    struct hewn_map maps[MLA_MAP_COUNT];
    struct mla_scalars scalars;         /* without addresses */
    struct mla_second_scalars second;   /* the same; of kernels that have these parameters */
    struct split_combine_scalars merge; /* the same */
    hewn_cu_launch_config config, merge_config; /* without stream */
    /* of both: they may begin before the kernel ahead ends; of the first: pairs of CTAs */
    hewn_cu_launch_attribute overlap[2];
    uint32_t pairs;                     /* 1: clusters of two CTAs */
    uint64_t part_lse, records, firsts; /* places in the workspace, in bytes; firsts may be 0 */
    uint64_t lse_span, workspace;       /* bytes */
    /* On sm_100f: the decode kernel's parameters instead of `scalars`, of which only groups and shares
     * count, and of `merge` and `maps`. part_lse and records are places as above. */
    struct decode_plan decode;
    struct mla_list_scalars list; /* without addresses */
};

/* Whether it takes the kernel that finds rows one by one, mla_gather.ptx. */
static inline int mla_gathers(const struct mla_problem *p)
{
    return p->list_width > 0 || p->cache != HEWN_MLA_CACHE_PLAIN;
}

/* Checks every rule that does not depend on a device, and fills `p`. */
int hewn_mla_check(const hewn_mla_desc *desc, struct mla_problem *p, hewn_error *err);

/* mla_decode.c: where the kernel is a variant of the decode kernel. True for such a device; the plan of a
 * checked problem; its run. */
int hewn_mla_decode_takes(const hewn_context *context);
int hewn_mla_decode_fill(hewn_mla_plan *plan, hewn_context *context, hewn_error *err);
int hewn_mla_decode_run(const hewn_mla_plan *plan, const hewn_mla_args *args, hewn_stream stream,
                        hewn_error *err);

#endif
