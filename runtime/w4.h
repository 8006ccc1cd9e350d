/* Products with 4-bit weights: what the rules, the choice, the plans and the packing share. */
#ifndef HEWN_RUNTIME_W4_H
#define HEWN_RUNTIME_W4_H

#include "context.h"
#include "structs.h"

#include "../ptx/sm_90a/w4.plan.h"

struct w4_problem { /* checked */
    uint32_t m, n, k;
    uint32_t k_blocks, chunks; /* of W */
    uint32_t group;            /* columns; all of a row: W4_BLOCK_K, each k-block with a copy */
    uint32_t groups;           /* of a k-block */
    uint32_t given_groups;     /* of a row, as the caller's scales have them */
    int whole_row, zeros;
    int in, out, format;
    uint32_t parts, tile, invariant; /* as in the description; tile in chunks */
    uint64_t x_row, d_row;           /* bytes */
    uint64_t x_span, d_span, packed; /* bytes from first to last */
};

/* What a shape decides. */
struct w4_shape {
    uint32_t width, rows;      /* the variant, rows of a tile */
    uint32_t tile, parts;      /* chunks of a tile */
    uint32_t stages, shared;   /* dynamic shared memory, bytes */
    uint64_t tiles_n, tiles_m; /* tiles of D */
};

/* The kernels' scalar parameters, in their order. */
#define u64                 uint64_t
#define u32                 uint32_t
#define X(type, name, rule) type name;
struct w4_scalars {
    W4_SCALARS(X)
};
#undef X
#undef u32
#undef u64

struct hewn_w4_plan {
    const hewn_context *context;
    const struct hewn_loaded *loaded;
    struct w4_problem problem;
    struct w4_shape shape;
    struct hewn_map map;          /* X */
    struct w4_scalars scalars;    /* without addresses */
    hewn_cu_launch_config config; /* without stream */
    hewn_cu_launch_attribute attributes[2];
};

/* Checks every rule that does not depend on a device, and fills `p`. */
int hewn_w4_check(const hewn_w4_desc *desc, struct w4_problem *p, hewn_error *err);

/* The fastest shape by a model of the machine, among those that `p` allows. clusters: 1 where the
 * device can launch them. */
void hewn_w4_choose(const struct w4_problem *p, uint32_t sm_count, int clusters,
                    struct w4_shape *out);

const char *hewn_w4_format_name(int format); /* "int4", "uint4", or NULL */

#endif
