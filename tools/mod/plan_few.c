/* The plans of the sm_90a GEMMs of few rows, their derived numbers checked. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/sm_100f/gemm_few.plan.h"
#include "../../ptx/sm_90a/gemm_few.plan.h"
#include "../../ptx/sm_90a/gemm_oddfew.plan.h"
#include "../../ptx/sm_90a/gemm_oddsmall.plan.h"

#include <string.h>

static const char *const maps[] = PLAN_NAMES(GEMM_MAPS(PLAN_NAME, PLAN_NAME));
static const struct plan_scalar scalars[] = PLAN_SCALARS(GEMM_SCALARS(PLAN_SCALAR));
static const struct plan_range roles[] = PLAN_RANGES(SM90A_FEW_ROLES(PLAN_ROLE));
static const struct plan_range shared[] = PLAN_RANGES(SM90A_FEW_SHARED(PLAN_SHARED));
static const struct plan_range tmem[] = {{NULL, 0, 0, 0}};
static const struct plan_handoff handoffs[] = PLAN_HANDOFFS(SM90A_FEW_HANDOFFS(PLAN_HANDOFF_SPAN));
static const struct plan_flow flows[] = PLAN_FLOWS(SM90A_FEW_FLOWS(PLAN_FLOW));

_Static_assert(SM90A_FEW_COLUMNS <= 256 && SM90A_FEW_ROWS <= 64, "a TMA box side, an MMA");
_Static_assert(SM90A_FEW_COLUMNS <= 4 * SM90A_FEW_CHUNK, "a warpgroup has two chunks");
_Static_assert(SM90A_FEW_MMA_N(SM90A_FEW_ROWS) * SM90A_FEW_SUM_PITCH(SM90A_FEW_COLUMNS) <=
                   SM90A_FEW_DYNAMIC_SHARED,
               "the sums fit");
_Static_assert(16 * SM90A_FEW_STAGES <= SM90A_FEW_STATIC_BYTES, "the barriers fit");

/* With SwiGLU, B's box holds both factors; nothing else differs. */
#define SHAPE(what, swiglu)                                                                 \
    {                                                                                       \
        .tile_m = SM90A_FEW_ROWS, .tile_n = SM90A_FEW_COLUMNS, .row_bytes = GEMM_ROW_BYTES, \
        .pair_m = 1, .pair_n = 1, .parts = SM90A_FEW_PARTS, .stages = SM90A_FEW_STAGES,     \
        .raster_rows = 1, .d_rows = SM90A_FEW_D_ROWS, .can = (what), .glu = (swiglu)        \
    }
#define PLAN(its_shape)                                                                            \
    {                                                                                              \
        .target = "sm_90a", .family = "gemm", .text = "gemm_few", .threads = SM90A_FEW_THREADS,    \
        .dynamic_shared = SM90A_FEW_DYNAMIC_SHARED, .tmem_columns = 0, .cluster = 1,               \
        .ctas_per_sm = SM90A_FEW_CTAS_PER_SM, .maps = maps, .scalars = scalars, .roles = roles,    \
        .shared = shared, .tmem = tmem, .handoffs = handoffs, .flows = flows, .gemm = &(its_shape) \
    }

static const struct gemm_shape shape = SHAPE(SM90A_FEW_CAN, 0);
static const struct plan plan = PLAN(shape);
static const struct gemm_shape glu_shape = SHAPE(SM90A_GLUFEW_CAN, 1);
static const struct plan glu_plan = PLAN(glu_shape);

/* ---- of sm_100f -- */

_Static_assert(SM100F_FEW_COLUMNS == 32 * SM100F_FEW_EPILOGUE_WARPS, "a lane is a column of D");
_Static_assert(SM100F_FEW_ROWS <= 256 && SM100F_FEW_ROWS % SM100F_FEW_STEP == 0,
               "an MMA's columns");
_Static_assert(2 * (SM100F_FEW_B_BYTES + SM100F_FEW_A_BYTES(SM100F_FEW_ROWS, 1)) <=
                   SM100F_FEW_DYNAMIC_SHARED,
               "two stages fit");
_Static_assert(SM100F_FEW_TMEM_COLUMNS <= 512, "TMEM_COLUMNS");

static const struct plan_range lane_roles[] = PLAN_RANGES(SM100F_FEW_ROLES(PLAN_ROLE));
static const struct plan_range lane_shared[] = PLAN_RANGES(SM100F_FEW_SHARED(PLAN_SHARED));
static const struct plan_range lane_tmem[] = PLAN_RANGES(SM100F_FEW_TMEM(PLAN_TMEM));
static const struct plan_handoff lane_handoffs[] =
    PLAN_HANDOFFS(SM100F_FEW_HANDOFFS(PLAN_HANDOFF_SPAN));
static const struct plan_flow lane_flows[] = PLAN_FLOWS(SM100F_FEW_FLOWS(PLAN_FLOW));
static const struct gemm_shape lane_shape = {
    .tile_m = SM100F_FEW_ROWS,
    .tile_n = SM100F_FEW_COLUMNS,
    .row_bytes = GEMM_ROW_BYTES,
    .pair_m = 1,
    .pair_n = 1,
    .parts = 1,
    .stages = SM100F_FEW_STAGES,
    .raster_rows = 1,
    .d_rows = SM100F_FEW_D_ROWS,
    .can = SM100F_FEW_CAN,
};
static const struct plan lane_plan = {
    .target = "sm_100f",
    .family = "gemm",
    .text = "gemm_few",
    .threads = SM100F_FEW_THREADS,
    .dynamic_shared = SM100F_FEW_DYNAMIC_SHARED,
    .tmem_columns = SM100F_FEW_TMEM_COLUMNS,
    .cluster = 1,
    .ctas_per_sm = SM100F_FEW_CTAS_PER_SM,
    .maps = maps,
    .scalars = scalars,
    .roles = lane_roles,
    .shared = lane_shared,
    .tmem = lane_tmem,
    .handoffs = lane_handoffs,
    .flows = lane_flows,
    .gemm = &lane_shape,
};

const struct plan *plan_gemm_few(const char *target)
{
    if (strcmp(target, lane_plan.target) == 0) return &lane_plan;
    return strcmp(target, plan.target) == 0 ? &plan : NULL;
}

const struct plan *plan_gemm_glufew(const char *target)
{
    return strcmp(target, glu_plan.target) == 0 ? &glu_plan : NULL;
}

/* ---- rows of any length -- */

static const struct plan_range odd_roles[] = PLAN_RANGES(SM90A_ODDFEW_ROLES(PLAN_ROLE));
static const struct plan_range odd_shared[] = PLAN_RANGES(SM90A_ODDFEW_SHARED(PLAN_SHARED));
static const struct plan_handoff odd_handoffs[] = PLAN_HANDOFFS();
static const struct plan_flow odd_flows[] = PLAN_FLOWS(SM90A_ODDFEW_FLOWS(PLAN_FLOW));

#define CHECK_ROWS(m)                                                         \
    _Static_assert(SM90A_ODDFEW_RING_BYTES(m, SM90A_ODDFEW_MOST_COLUMNS(m),   \
                                           SM90A_ODDFEW_LEAST_STAGES) <=      \
                       SM90A_ODDFEW_DYNAMIC_SHARED,                           \
                   "the least ring fits");                                    \
    _Static_assert(SM90A_ODDFEW_SUM_BYTES(m, SM90A_ODDFEW_MOST_COLUMNS(m)) <= \
                       SM90A_ODDFEW_DYNAMIC_SHARED,                           \
                   "the sums fit");                                           \
    _Static_assert((m)*SM90A_ODDFEW_MOST_COLUMNS(m) / 4 <= 64 * 32 * 2, "a thread has 64 sums");

CHECK_ROWS(8)
CHECK_ROWS(16)
CHECK_ROWS(32)
CHECK_ROWS(64)
_Static_assert(32 / 2 * SM90A_ODDFEW_CHUNK == SM90A_ODDFEW_SLICE, "half a warp copies a slice");
_Static_assert(SM90A_ODDFEW_LINE <= SM90A_ODDFEW_SLICE,
               "the short slice is shorter than a whole one");

static const struct gemm_shape odd_shape = {
    .tile_m = SM90A_ODDFEW_ROWS,
    .tile_n = SM90A_ODDFEW_COLUMNS,
    .row_bytes = SM90A_ODDFEW_SLICE,
    .pair_m = 1,
    .pair_n = 1,
    .parts = SM90A_ODDFEW_PARTS,
    .stages = SM90A_ODDFEW_STAGES,
    .raster_rows = 1,
    .d_rows = SM90A_ODDFEW_D_ROWS,
    .can = SM90A_ODDFEW_CAN,
};

static const struct plan odd_plan = {
    .target = "sm_90a",
    .family = "gemm",
    .text = "gemm_oddfew",
    .threads = SM90A_ODDFEW_THREADS,
    .dynamic_shared = SM90A_ODDFEW_DYNAMIC_SHARED,
    .tmem_columns = 0,
    .cluster = 1,
    .ctas_per_sm = SM90A_ODDFEW_CTAS_PER_SM,
    .maps = maps,
    .scalars = scalars,
    .roles = odd_roles,
    .shared = odd_shared,
    .tmem = tmem,
    .handoffs = odd_handoffs,
    .flows = odd_flows,
    .gemm = &odd_shape,
};

const struct plan *plan_gemm_oddfew(const char *target)
{
    return strcmp(target, odd_plan.target) == 0 ? &odd_plan : NULL;
}

/* ---- small products of rows of any length -- */

static const struct plan_range small_roles[] = PLAN_RANGES(SM90A_ODDSMALL_ROLES(PLAN_ROLE));
static const struct plan_range small_shared[] = PLAN_RANGES(SM90A_ODDSMALL_SHARED(PLAN_SHARED));
static const struct plan_flow small_flows[] = PLAN_FLOWS(SM90A_ODDSMALL_FLOWS(PLAN_FLOW));

_Static_assert(SM90A_ODDSMALL_CHUNK * 4 == SM90A_ODDSMALL_STEP, "a lane of a quad has a chunk");

static const struct gemm_shape small_shape = {
    .tile_m = SM90A_ODDSMALL_SIDE,
    .tile_n = SM90A_ODDSMALL_SIDE,
    .row_bytes = SM90A_ODDSMALL_STEP,
    .pair_m = 1,
    .pair_n = 1,
    .parts = SM90A_ODDSMALL_PARTS,
    .stages = 1,
    .raster_rows = 1,
    .d_rows = SM90A_ODDSMALL_D_ROWS,
    .can = SM90A_ODDSMALL_CAN,
};

static const struct plan small_plan = {
    .target = "sm_90a",
    .family = "gemm",
    .text = "gemm_oddsmall",
    .threads = SM90A_ODDSMALL_THREADS,
    .dynamic_shared = SM90A_ODDSMALL_DYNAMIC_SHARED,
    .tmem_columns = 0,
    .cluster = 1,
    .ctas_per_sm = SM90A_ODDSMALL_CTAS_PER_SM,
    .maps = maps,
    .scalars = scalars,
    .roles = small_roles,
    .shared = small_shared,
    .tmem = tmem,
    .handoffs = odd_handoffs,
    .flows = small_flows,
    .gemm = &small_shape,
};

const struct plan *plan_gemm_oddsmall(const char *target)
{
    return strcmp(target, small_plan.target) == 0 ? &small_plan : NULL;
}
