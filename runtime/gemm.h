/*
 * What the files runtime/gemm*.c share. gemm_check.c turns a description into operands in bytes,
 * gemm_cost.c chooses a kernel, gemm_few.c the tiles of few rows, gemm.c makes a plan of both,
 * gemm_run.c launches it, gemm_slices.c makes a plan of slices of K. What the kernels expect is in
 * ptx/inc/gemm.plan.h and the plan header of each
 * target.
 */
#ifndef HEWN_RUNTIME_GEMM_H
#define HEWN_RUNTIME_GEMM_H

#include "context.h"

#include "gemm_few.h"
#include "gemm_kernels.h"

#include "../ptx/inc/gemm.plan.h"

enum {
    GEMM_A,
    GEMM_B,
    GEMM_D,
    GEMM_TENSORS, /* those with a tensor map */
    GEMM_C = GEMM_TENSORS,
    GEMM_OPERANDS,
    GEMM_ALIGN = 16, /* bytes: base addresses and strides */
    GEMM_VECTORS = HEWN_GEMM_WITH_SCALE_ROWS | HEWN_GEMM_WITH_SCALE_COLUMNS,
    GEMM_STEP_LONGER = 2,   /* times longer slices: the parameter step_a (ptx/inc/slices.inc) */
    GEMM_INVARIANT_M = 128, /* `invariant`: parts of K are those of a product of so many rows */
    GEMM_MAX_EXTENT =
        INT32_MAX /* TMA coordinates and the kernel's tile counter are 32-bit, signed */
};

/* The kernel's scalar parameters, in its order. */
#define u64                 uint64_t
#define u32                 uint32_t
#define f32                 float
#define X(type, name, rule) type name;
struct gemm_scalars {
    GEMM_SCALARS(X)
};
#undef X
#undef f32
#undef u32
#undef u64

/* One matrix of the problem as it is stored, or the row of `batch` such matrices. */
struct gemm_operand {
    char name;
    uint64_t rows, columns;
    uint64_t element; /* bytes */
    uint64_t pitch;   /* bytes between rows */
    uint64_t batch;   /* matrices behind the pointer: 1 where all problems share one */
    uint64_t plane;   /* bytes between matrices */
    uint64_t span;    /* bytes from the first element to the end of the last */
    uint32_t align;   /* of its address */
    int loose;        /* address or strides are not multiples of GEMM_ALIGN: no tensor map */
};

/* What the parameter of a tensor map holds of an operand that is loaded by element. */
struct gemm_loose {
    uint64_t address, pitch, plane;
    uint32_t outer, inner;
};

enum { GEMM_ODD_MAP_COUNT = GEMM_ODD_MAPS(MAP_ONE, MAP_ONE) };

enum { GEMM_ATTRIBUTES = 2 /* of a launch: cluster, programmatic */ };

/* A product whose K is cut into slices: a plan of their sums, and the kernel that adds these up. */
struct gemm_slices;

struct hewn_gemm_plan {
    const hewn_context *context;
    const struct hewn_loaded *loaded;
    const struct hewn_gemm_kernel *kernel;
    uint32_t parts;                 /* of K, the CTAs of a cluster that sum up one tile */
    uint32_t with;                  /* hewn_gemm_with */
    int out;                        /* hewn_dtype of D */
    struct hewn_gemm_few few;       /* where kernel->few */
    struct hewn_gemm_kernel fitted; /* where kernel->fitted: what `kernel` points to */
    struct gemm_operand operands[GEMM_OPERANDS]; /* C's only where `with` has it */
    uint64_t bias_span;                          /* bytes */
    uint32_t bias_align;
    int loose; /* the kernel loads loose operands by element, and stores D so */
    struct hewn_map maps[GEMM_TENSORS];
    struct hewn_map odd_maps[GEMM_ODD_MAP_COUNT]; /* where kernel->odd, in place of these */
    struct gemm_scalars scalars;                  /* without addresses and factors */
    hewn_cu_launch_attribute attributes[GEMM_ATTRIBUTES];
    hewn_cu_launch_config config; /* without stream */
    struct gemm_slices *slices;   /* NULL: one slice. Else the rest of the plan is without slices */
};

/* Whether A and B have a type that there are scales of rows and columns for. */
static inline int hewn_gemm_kind(const hewn_gemm_desc *d)
{
    return (d->in == HEWN_E4M3 || d->in == HEWN_S8) && (!d->in_b || d->in_b == d->in);
}

/* Rows of B for a column of D. */
static inline uint32_t hewn_gemm_factors(const hewn_gemm_desc *d)
{
    return d->act == HEWN_ACT_SWIGLU ? 2 : 1;
}

/* Of the operands with a tensor map. */
extern const char *const hewn_gemm_tensor_names[GEMM_TENSORS];

/* gemm_slices.c. The plan's slices, as the description names them or, `extent` being the problem, as they cost
 * least; none where that is not to be. */
int hewn_gemm_slices_create(hewn_gemm_plan *plan, hewn_context *context, const hewn_gemm_desc *d,
                            const struct hewn_gemm_extent *extent, double cost, hewn_error *err);
void hewn_gemm_slices_destroy(struct gemm_slices *slices);
/* What a plan's description says of them. */
int hewn_gemm_slices_describe(const struct gemm_slices *slices, hewn_gemm_plan_info *info,
                              hewn_error *err);
/* gemm.c. The plan of a batch of problems that are slices of K. They share the description's A and B,
 * with all of K; each has its own k-blocks. */
int hewn_gemm_slices_plan(hewn_context *context, const hewn_gemm_desc *desc, hewn_gemm_plan **out,
                          hewn_error *err);
/* A run with checked arguments: with a workspace, or where one must be; *done 0 where the plan itself is to
 * run. */
int hewn_gemm_slices_run(const hewn_gemm_plan *plan, const hewn_gemm_args *a,
                         const struct gemm_scalars *scalars, hewn_stream stream, int *done,
                         hewn_error *err);

/* Checks every rule of a description that does not depend on a device, and fills `operands`. */
int hewn_gemm_check(const hewn_gemm_desc *d, struct gemm_operand operands[GEMM_OPERANDS],
                    hewn_error *err);

/* ---- gemm_odd.c: tensor maps of rows of any length (GEMM_ODD_...) ---- */

/* What a kernel with `odd` lacks for these operands; NULL: nothing. */
const char *hewn_gemm_odd_lacks(const struct gemm_operand *operands);
/* Rows of a pass that are read from one bank. */
uint32_t hewn_gemm_odd_ways(const struct gemm_operand *o);
/* Describes and encodes the maps for operands that begin on 16 bytes. */
int hewn_gemm_odd_prepare(hewn_gemm_plan *plan, const hewn_gemm_desc *d, hewn_error *err);
/* The maps of A and B at their addresses, and the bits of `mode` that say where rows begin. */
int hewn_gemm_odd_place(const hewn_gemm_plan *plan, const hewn_deviceptr *at,
                        hewn_cu_tensor_map *maps, uint32_t *mode, hewn_error *err);

#endif
