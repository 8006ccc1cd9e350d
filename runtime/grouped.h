/*
 * What the files of the family grouped share. grouped_check.c turns a description into a problem in bytes;
 * grouped.c turns a problem into a plan for one device and launches it. grouped_sum.c does all this for weighted
 * sums of rows.
 */
#ifndef HEWN_RUNTIME_GROUPED_H
#define HEWN_RUNTIME_GROUPED_H

#include "context.h"

#include "../ptx/inc/scaled.plan.h"

/* The tensors, those with a tensor map first, in its order. */
enum {
    GROUPED_A,
    GROUPED_B,
    GROUPED_D,
    GROUPED_S,
    GROUPED_SB,
    GROUPED_NARROW, /* B once more, in lower boxes */
    GROUPED_MAPPED,
    GROUPED_SD = GROUPED_MAPPED, /* scales of a quantised D */
    GROUPED_TENSORS,
    GROUPED_ALIGN = 16
};

/* Inputs and their block scales, beside GROUPED_..._SCALES; h16: of 16 bits, D quantised. SCALED_TEXT: the kernel's text
 * and parameters are those of ptx/inc/scaled.plan.h. */
enum { SCALES_mx8 = GROUPED_UNSCALED_GLU + 1, SCALES_mx4, SCALES_nv4, SCALES_mw8, SCALES_h16 };
#define SCALED_TEXT(scales) ((scales) > GROUPED_UNSCALED_GLU)
#define QUANTISED(out)      ((out) == HEWN_E4M3 || (out) == HEWN_E2M1)
#define UNSCALED(scales) \
    ((scales) == GROUPED_UNSCALED || (scales) == GROUPED_UNSCALED_GLU || (scales) == SCALES_h16)

/* Planes of rows of elements; bytes. Of e2m1 an element is a byte, two of the caller's. Block scales: bytes of
 * atoms, rows of them; or words, of rows, rows of these. */
struct grouped_tensor {
    uint64_t columns, rows, planes;
    uint64_t pitch, plane; /* between rows, between planes */
    uint64_t span;         /* from the first to the last */
    uint32_t element;
    uint32_t align; /* of strides; 0: GROUPED_ALIGN */
    int packed;     /* e2m1 that TMA widens */
    int halved;     /* e2m1: 1 */
};

struct grouped_problem {
    struct grouped_tensor of[GROUPED_TENSORS];
    uint32_t a_rows; /* 0: A is not taken by number */
    uint32_t groups, m, n;
    uint32_t k; /* bytes; block-scaled: elements */
    uint32_t k_blocks, blocks_n, align, expected_m;
    uint32_t tile_k, formats; /* elements; formats: as in an instruction descriptor */
    int in, out, kind, act;
    uint32_t columns; /* rows of B, of which tiles are made */
    int scales;       /* GROUPED_..._SCALES, or of block scales */
};

/* The kernels' scalar parameters, in their order. */
#define u64                 uint64_t
#define u32                 uint32_t
#define X(type, name, rule) type name;
struct grouped_scalars {
    GROUPED_SCALARS(X)
};
#undef X
#undef u32
#undef u64

/* The same of block-scaled products. */
#define X(type, name, rule) type name;
#define u64                 uint64_t
#define u32                 uint32_t
struct scaled_scalars {
    SCALED_SCALARS(X)
};
#undef u32
#undef u64
#undef X

struct hewn_grouped_plan {
    const hewn_context *context;
    const struct hewn_loaded *loaded;
    const struct grouped_kernel *kernel;
    const struct grouped_form *form; /* how its CTAs work together */
    struct grouped_problem problem;
    struct hewn_map maps[GROUPED_MAPPED];
    struct grouped_scalars scalars; /* without addresses */
    char variant[16];
    hewn_cu_launch_config config; /* without stream */
    hewn_cu_launch_attribute attributes[2];
};

extern const char *const hewn_grouped_names[GROUPED_MAPPED];

int hewn_grouped_range(const char *name, int64_t value, int64_t least, int64_t most,
                       hewn_error *err);
/* Of a tensor whose extents are set: strides and what they span. `least`: elements of a row, at least. */
int hewn_grouped_extent(struct grouped_tensor *t, const char *const names[2], int64_t row,
                        uint64_t least, int64_t plane, hewn_error *err);

/* Checks every rule that does not depend on a device, and fills `p`. */
int hewn_grouped_check(const hewn_grouped_desc *desc, struct grouped_problem *p, hewn_error *err);

#endif
