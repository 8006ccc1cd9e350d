/* The MLA plan as data, its derived numbers checked, and what its manifests say of the problem. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/sm_90a/mla.plan.h"

#include "../../ptx/sm_100f/decode.plan.h"

#include <string.h>

static const char *const maps[] = PLAN_NAMES(MLA_MAPS(PLAN_NAME, PLAN_NAME));
static const struct plan_scalar scalars[] = PLAN_SCALARS(MLA_SCALARS(PLAN_SCALAR));
static const struct plan_scalar second_scalars[] =
    PLAN_SCALARS(MLA_SCALARS(PLAN_SCALAR) SM90A_MLA_SECOND_SCALARS(PLAN_SCALAR));

_Static_assert(SM90A_MLA_DYNAMIC_SHARED + SM90A_MLA_STATIC_BYTES <= SM_SHARED_BYTES,
               "shared memory");
_Static_assert(SM90A_MLA_CHUNK % SWIZZLE_REPEAT == 0 && SM90A_MLA_TILE_P % SWIZZLE_REPEAT == 0,
               "tiles begin where the swizzle repeats");
_Static_assert(SM90A_MLA_ROWS_FINDER_REGS + SM90A_MLA_ROWS_LOADER_REGS +
                       2 * SM90A_MLA_GATHER_CONSUMER_REGS <=
                   SM_REGISTERS / 128,
               "registers of the kernel of plain rows without boxes");
_Static_assert(SM90A_MLA_RECORD_FINDER_REGS + SM90A_MLA_RECORD_LOADER_REGS +
                       2 * SM90A_MLA_GATHER_CONSUMER_REGS <=
                   SM_REGISTERS / 128,
               "registers of the kernel of records");
_Static_assert(SM90A_MLA_584_FINDER_REGS + SM90A_MLA_584_LOADER_REGS +
                       2 * SM90A_MLA_GATHER_CONSUMER_REGS <=
                   SM_REGISTERS / 128,
               "registers of the kernel of records of 584 bytes");
_Static_assert(SM90A_MLA_584_DYNAMIC_SHARED + SM90A_MLA_584_STATIC_BYTES <= SM_SHARED_BYTES &&
                   SM90A_MLA_584_TILE_P % SWIZZLE_REPEAT == 0,
               "shared memory of the kernel of records of 584 bytes");
_Static_assert((SM90A_MLA_584_SCALES & (SM90A_MLA_584_SCALES - 1)) == 0 &&
                   SM90A_MLA_584_SCALES >= 2 * SM90A_MLA_ROWS,
               "scales stay until the block is widened; their place by bits of its number");
_Static_assert(SM90A_MLA_FEW_PRODUCER_REGS + 2 * SM90A_MLA_FEW_CONSUMER_REGS <= SM_REGISTERS / 128,
               "registers of the kernel of records and few rows");
_Static_assert(SM90A_MLA_FEW_DYNAMIC_SHARED + SM90A_MLA_STATIC_BYTES <= SM_SHARED_BYTES &&
                   SM90A_MLA_FEW_CHUNK % SWIZZLE_REPEAT == 0 &&
                   SM90A_MLA_FEW_TILE_P % SWIZZLE_REPEAT == 0,
               "shared memory of the kernel of records and few rows");
_Static_assert(SM90A_MLA_FEW_584_DYNAMIC_SHARED + SM90A_MLA_STATIC_BYTES <= SM_SHARED_BYTES &&
                   SM90A_MLA_FEW_584_TILE_P % SWIZZLE_REPEAT == 0 &&
                   SM90A_MLA_FEW_584_GROUPS * SM90A_MLA_FEW_CHUNK <= SM90A_MLA_FEW_TILE_P_BYTES,
               "shared memory of the kernel of records of 584 bytes and few rows");
_Static_assert(SM90A_MLA_FEW_584_RING % 128 == 0 && SM90A_MLA_FEW_584_SLOT % 128 == 0 &&
                   MLA_BLOCK / 2 * SM90A_MLA_FEW_584_STRIDE % 128 == 0,
               "TMA writes halves of blocks to multiples of 128 bytes");
_Static_assert(SM90A_MLA_FEW_ROWS == 16, "what the manifest and the module's name say");
_Static_assert(SM90A_MLA_FEW_GROUPS *SM90A_MLA_FEW_CHUNK <= SM90A_MLA_FEW_TILE_P_BYTES &&
                   (SM90A_MLA_FEW_SLOTS & (SM90A_MLA_FEW_SLOTS - 1)) == 0,
               "room for P; slots by bits of a block's number");
_Static_assert(SM90A_MLA_ROWS == SM90A_MLA_SLOTS && SM90A_MLA_RECORDS == SM90A_MLA_SLOTS,
               "their barriers are made together");
_Static_assert(SM90A_MLA_PRODUCER_REGS + 2 * SM90A_MLA_CONSUMER_REGS <= SM_REGISTERS / 128,
               "registers");

static const struct plan_range roles[] = PLAN_RANGES(SM90A_MLA_ROLES(PLAN_ROLE));
static const struct plan_range shared[] = PLAN_RANGES(SM90A_MLA_SHARED(PLAN_SHARED));
static const struct plan_range no_tmem[] = PLAN_RANGES();
static const struct plan_handoff handoffs[] = PLAN_HANDOFFS(SM90A_MLA_HANDOFFS(PLAN_HANDOFF_SPAN));
static const struct plan_flow flows[] = PLAN_FLOWS(SM90A_MLA_FLOWS(PLAN_FLOW));

static const struct plan_range gather_roles[] = PLAN_RANGES(SM90A_MLA_GATHER_ROLES(PLAN_ROLE));
static const struct plan_handoff rows_handoffs[] =
    PLAN_HANDOFFS(SM90A_MLA_GATHER_HANDOFFS(PLAN_HANDOFF_SPAN, 128));
static const struct plan_handoff record_handoffs[] =
    PLAN_HANDOFFS(SM90A_MLA_GATHER_HANDOFFS(PLAN_HANDOFF_SPAN, 4));
static const struct plan_flow rows_flows[] =
    PLAN_FLOWS(SM90A_MLA_GATHER_FLOWS(PLAN_FLOW, loader.cp));
static const struct plan_flow record_flows[] =
    PLAN_FLOWS(SM90A_MLA_GATHER_FLOWS(PLAN_FLOW, loader + loader.cp));

static const struct plan_range split_shared[] = PLAN_RANGES(SM90A_MLA_584_SHARED(PLAN_SHARED));
static const struct plan_handoff split_handoffs[] =
    PLAN_HANDOFFS(SM90A_MLA_584_HANDOFFS(PLAN_HANDOFF_SPAN));
static const struct plan_flow split_flows[] = PLAN_FLOWS(SM90A_MLA_584_FLOWS(PLAN_FLOW));

static const struct plan_range few_roles[] = PLAN_RANGES(SM90A_MLA_FEW_ROLES(PLAN_ROLE));
static const struct plan_range few_shared[] = PLAN_RANGES(SM90A_MLA_FEW_SHARED(PLAN_SHARED));
static const struct plan_handoff few_handoffs[] =
    PLAN_HANDOFFS(SM90A_MLA_FEW_HANDOFFS(PLAN_HANDOFF_SPAN));
static const struct plan_flow few_flows[] =
    PLAN_FLOWS(SM90A_MLA_FEW_FLOWS(PLAN_FLOW, loader.tma + loader.cp, planner + loader + consumer));
static const struct plan_range few_split_roles[] = PLAN_RANGES(SM90A_MLA_FEW_584_ROLES(PLAN_ROLE));
static const struct plan_range few_split_shared[] =
    PLAN_RANGES(SM90A_MLA_FEW_584_SHARED(PLAN_SHARED));
static const struct plan_handoff few_split_handoffs[] =
    PLAN_HANDOFFS(SM90A_MLA_FEW_584_HANDOFFS(PLAN_HANDOFF_SPAN));
static const struct plan_flow few_split_flows[] =
    PLAN_FLOWS(SM90A_MLA_FEW_FLOWS(PLAN_FLOW, loader.tma + loader.cp, planner + loader + consumer));

#define PLAN(of, threads_, dynamic, scalars_, roles_, shared_, handoffs_, flows_)               \
    {                                                                                           \
        .target = "sm_90a", .family = "mla", .text = of, .threads = threads_,                   \
        .dynamic_shared = dynamic, .cluster = 1, .ctas_per_sm = SM90A_MLA_CTAS_PER_SM,          \
        .maps = maps, .scalars = scalars_, .roles = roles_, .shared = shared_, .tmem = no_tmem, \
        .handoffs = handoffs_, .flows = flows_,                                                 \
    }
#define GATHER(scalars_, handoffs_, flows_)                                                        \
    PLAN("mla_gather", SM90A_MLA_GATHER_THREADS, SM90A_MLA_DYNAMIC_SHARED, scalars_, gather_roles, \
         shared, handoffs_, flows_)

static const struct {
    const char *variant;
    struct plan plan;
} plans[] = {
    {"", PLAN("mla", SM90A_MLA_THREADS, SM90A_MLA_DYNAMIC_SHARED, scalars, roles, shared, handoffs,
              flows)},
    {"rows", GATHER(scalars, rows_handoffs, rows_flows)},
    {"rows_two", GATHER(second_scalars, rows_handoffs, rows_flows)},
    {"656", GATHER(scalars, record_handoffs, record_flows)},
    {"656_two", GATHER(second_scalars, record_handoffs, record_flows)},
    {"584", PLAN("mla_gather", SM90A_MLA_GATHER_THREADS, SM90A_MLA_584_DYNAMIC_SHARED,
                 second_scalars, gather_roles, split_shared, split_handoffs, split_flows)},
    {"656x16", PLAN("mla_few", SM90A_MLA_FEW_THREADS, SM90A_MLA_FEW_DYNAMIC_SHARED, scalars,
                    few_roles, few_shared, few_handoffs, few_flows)},
    {"584x16",
     PLAN("mla_few", SM90A_MLA_FEW_THREADS, SM90A_MLA_FEW_584_DYNAMIC_SHARED, second_scalars,
          few_split_roles, few_split_shared, few_split_handoffs, few_split_flows)},
};

/* On sm_100f: variants of the decode kernel, whose manifest they have, too. */
static const struct plan *plan_blackwell(const char *variant)
{
    static const struct {
        const char *variant;
        unsigned qk, v, element, rows;
    } list[] = {
#define X(prefix, target, qk, v, e, n) {(e) == 2 ? "" : #e, qk, v, e, n},
        SM100F_MLA_VARIANTS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(variant, list[i].variant) == 0)
            return plan_decode("sm_100f", "", list[i].qk, list[i].v, 1, list[i].element,
                               list[i].rows);
    return NULL;
}

const struct plan *plan_mla(const char *target, const char *variant)
{
    if (strcmp(target, "sm_100f") == 0) return plan_blackwell(variant);
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (strcmp(target, plans[i].plan.target) == 0 && strcmp(variant, plans[i].variant) == 0)
            return &plans[i].plan;
    return NULL;
}

/* ---- the manifest: ptx/inc/mla.plan.h -- */

static int is_few(const struct module_id *id)
{
    return strcmp(id->plan->text, "mla_few") == 0;
}

static int columns(const struct module_id *id)
{
    return strstr(id->name, "_584") ? MLA_V_DIM : MLA_QK_DIM;
}

/* Rows of a tile of the module. */
static int tile_rows(const struct module_id *id)
{
    return is_few(id) ? SM90A_MLA_FEW_ROWS : MLA_TILE_ROWS;
}

void mla_write_problem(FILE *out, const struct module_id *id)
{
    fprintf(out,
            "  \"formula\": \"O = softmax(scale * Q * transpose(C) + mask) * C[.., 0..%d]\",\n",
            MLA_V_DIM - 1);
    fprintf(out,
            "  \"dtypes\": {\"q\": \"%s\", \"c\": \"%s\", \"p\": \"%s\", \"sum\": \"f32\", "
            "\"o\": \"out_type\"},\n",
            id->in, id->in, is_few(id) ? "f16" : id->in);
    fprintf(out, "  \"qk_dim\": %d,\n  \"v_dim\": %d,\n", columns(id), MLA_V_DIM);
}

static void write_map(FILE *out, const struct module_id *id, const char *name, const char *tensor,
                      const char *dims, const char *box, const char *comma)
{
    fprintf(
        out,
        "    {\"name\": \"%s\", \"tensor\": \"%s\", \"dtype\": \"%s\", \"rank\": 3,\n"
        "     \"dims\": [%d, %s], \"box\": [64, %s, 1], \"element_strides\": [1, 1, 1],\n"
        "     \"interleave\": \"none\", \"swizzle\": \"128B\", \"out_of_bounds\": \"zero\"}%s\n",
        name, tensor, id->in, columns(id), dims, box, comma);
}

void mla_write_shape(FILE *out, const struct module_id *id)
{
    fprintf(out, "  \"tensor_maps\": [\n");
    write_map(out, id, maps[0], "Q", "\"rows\", \"batch\"", is_few(id) ? "16" : "64", ",");
    if (is_few(id) && strstr(id->name, "584"))
        fprintf(
            out,
            "    {\"name\": \"%s\", \"tensor\": \"C\", \"dtype\": \"u64\", \"rank\": 3,\n"
            "     \"dims\": [%d, \"page_size\", \"planes\"], \"box\": [%d, %d, 1], "
            "\"element_strides\": [1, 1, 1],\n"
            "     \"interleave\": \"none\", \"swizzle\": \"none\", \"out_of_bounds\": \"zero\"}\n",
            maps[1], MLA_584_ROW / 8, SM90A_MLA_FEW_584_STRIDE / 8, MLA_BLOCK / 2);
    else
        write_map(out, id, maps[1], "C", "\"kv_len or page_size\", \"planes\"", "\"box or 64\"",
                  "");
    fprintf(out,
            "  ],\n  \"tile\": {\"rows\": %d, \"keys\": %d},\n  \"slots\": %d,\n"
            "  \"grid\": [\"groups * shares\", \"1\", \"1\"],\n",
            tile_rows(id), MLA_BLOCK, is_few(id) ? SM90A_MLA_FEW_SLOTS : SM90A_MLA_SLOTS);
}

void mla_write_limits(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out,
            "  \"limits\": {\"kv_len\": [0, %d], \"page_size\": [0, %d], \"address_multiple\": 16, "
            "\"stride_multiple\": 16},\n",
            MLA_MAX_KEYS, MLA_MAX_PAGE);
}
