/* The plan of the sm_90a GEMM of few rows, its derived numbers checked. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/sm_90a/gemm_few.plan.h"

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

static const struct gemm_shape shape = {
    .tile_m = SM90A_FEW_ROWS,
    .tile_n = SM90A_FEW_COLUMNS,
    .row_bytes = GEMM_ROW_BYTES,
    .pair_m = 1,
    .pair_n = 1,
    .parts = SM90A_FEW_PARTS,
    .stages = SM90A_FEW_STAGES,
    .raster_rows = 1,
    .d_rows = SM90A_FEW_D_ROWS,
    .can = SM90A_FEW_CAN,
};

static const struct plan plan = {
    .target = "sm_90a",
    .family = "gemm",
    .text = "gemm_few",
    .threads = SM90A_FEW_THREADS,
    .dynamic_shared = SM90A_FEW_DYNAMIC_SHARED,
    .tmem_columns = 0,
    .cluster = 1,
    .ctas_per_sm = SM90A_FEW_CTAS_PER_SM,
    .maps = maps,
    .scalars = scalars,
    .roles = roles,
    .shared = shared,
    .tmem = tmem,
    .handoffs = handoffs,
    .flows = flows,
    .gemm = &shape,
};

const struct plan *plan_gemm_few(const char *target)
{
    return strcmp(target, plan.target) == 0 ? &plan : NULL;
}
