/* The plans of the engine's kernels as data, and what their manifests say: ptx/inc/engine.plan.h. */
#include "mod.h"

#include "plan_tables.h"

#include "../../ptx/inc/engine.plan.h"

#include <string.h>

_Static_assert(ENGINE_UNIT * 2 == 16, "a unit of bf16 is one load");
_Static_assert(ENGINE_ROPE_DIM / ENGINE_UNIT <= 32, "a warp has a head");
_Static_assert(ENGINE_NORM_SHARED + 4 * ENGINE_NORM_WARPS <= SM_SHARED_BYTES, "shared memory");
_Static_assert(ENGINE_EXCHANGE_SHARED + 4 * ENGINE_EXCHANGE_WARPS <= SM_SHARED_BYTES,
               "shared memory");
_Static_assert(ENGINE_QUANT_SHARED + 8 * ENGINE_QUANT_WARPS + 16 <= SM_SHARED_BYTES,
               "shared memory");
_Static_assert(ENGINE_QUANT_WARPS == 32, "a lane reads a warp's sums");
_Static_assert(ENGINE_PROJECT_SHARED + ENGINE_PROJECT_STATIC <= SM_SHARED_BYTES, "shared memory");
_Static_assert(ENGINE_PROJECT_WARPS *ENGINE_PROJECT_PIECE * 2 == ENGINE_PROJECT_BLOCK,
               "two pieces a warp");
_Static_assert(ENGINE_PROJECT_ROUNDED == 32 * 8 * ENGINE_UNIT, "a thread has eight units");
_Static_assert(ENGINE_SAMPLE_BINS == 2 * ENGINE_SAMPLE_THREADS && ENGINE_SAMPLE_THREADS == 1024,
               "two bins a thread");
_Static_assert(ENGINE_SAMPLE_SHARED + ENGINE_SAMPLE_STATIC <= SM_SHARED_BYTES, "shared memory");
_Static_assert(ENGINE_ATTEND_CTAS *(ENGINE_ATTEND_RING + ENGINE_ATTEND_STATIC + 1024) <=
                   SM_SHARED_BYTES + 1024,
               "shared memory");
_Static_assert(ENGINE_MULTIPLY_SHARED + ENGINE_MULTIPLY_STATIC <= SM_SHARED_BYTES, "shared memory");
_Static_assert(ENGINE_ROUTE_GROUPS <= 32 && ENGINE_ROUTE_CHOICES <= 32, "a lane each");
_Static_assert((ENGINE_NORM_WARPS & (ENGINE_NORM_WARPS - 1)) == 0, "a power of two");

#define ATTEND_FORMULA \
    "q, k rotated; k, v into the cache; o[r][h] = softmax(scale * q[r][h] * transpose(K)) * V"
#define ATTEND_DTYPES \
    "\"rows\": \"bf16\", \"rotation\": \"f32\", \"positions\": \"i32\", \"sum\": \"f32\""
#define ATTEND_GRID   "\"columns * kv_heads\", \"1\", \"1\""
#define ATTEND_LIMITS "\"rows\": [1, 32], \"columns\": [1, 64], \"group\": [1, 8]"

/* X(kernel, prefix, dynamic shared memory, formula, dtypes, grid, limits): a kernel of ptx/inc. */
#define KERNELS(X)                                                                                 \
    X(norm, NORM, ENGINE_NORM_SHARED,                                                              \
      "h[r] = x[s] + y[s], s = index[r]; out[r] = h[r] * w / sqrt(mean(h[r]^2) + eps)",            \
      "\"rows\": \"bf16\", \"index\": \"i32\", \"sum\": \"f32\"", "\"rows\", \"1\", \"1\"",        \
      "\"units\": [1, 8192]")                                                                      \
    X(rope, ROPE, 0,                                                                               \
      "q[j], q[j + dim / 2] = q[j] c - q[j + dim / 2] s, q[j + dim / 2] c + q[j] s; k likewise",   \
      "\"rows\": \"bf16\", \"rotation\": \"f32\", \"positions\": \"i32\"",                         \
      "\"rows\", \"(q_heads + 2 * kv_heads) / (8 * warp_heads), rounded up\", \"1\"",              \
      "\"lanes\": [1, 32]")                                                                        \
    X(attend64, ATTEND, ENGINE_ATTEND_RING, ATTEND_FORMULA, ATTEND_DTYPES, ATTEND_GRID,            \
      ATTEND_LIMITS)                                                                               \
    X(attend128, ATTEND, ENGINE_ATTEND_RING, ATTEND_FORMULA, ATTEND_DTYPES, ATTEND_GRID,           \
      ATTEND_LIMITS)                                                                               \
    X(multiply, MULTIPLY, ENGINE_MULTIPLY_SHARED,                                                  \
      "d[r][n] = sum over k of x[r][k] * weights[n][k] + bias[n] + c[r][n]",                       \
      "\"rows\": \"bf16\", \"sum\": \"f32\"", "\"CTAs\", \"1\", \"1\"",                            \
      "\"rows\": [1, 8], \"chunks\": [1, 1048576]")                                                \
    X(swiglu, SWIGLU, 0, "out[r][c] = gate[r][c] / (1 + exp(-gate[r][c])) * up[r][c]",             \
      "\"rows\": \"bf16\"", "\"rows\", \"units / 512, rounded up\", \"1\"",                        \
      "\"units\": [1, 33553920]")                                                                  \
    X(quant, QUANT, ENGINE_QUANT_SHARED,                                                           \
      "scale[r] = max |v[r]| / 448; out[r] = v[r] / scale[r]; v = x, silu(x) * up, or "            \
      "x * w / sqrt(mean(x^2) + eps)",                                                             \
      "\"rows\": \"bf16\", \"out\": \"e4m3\", \"scales\": \"f32\"",                                \
      "\"rows * CTAs of a cluster\", \"1\", \"1\"", "\"units\": [1, 8192]")                        \
    X(project, PROJECT, ENGINE_PROJECT_SHARED,                                                     \
      "d[r][j] = s[r] * b_scales[j] * sum over i of q[r][i] * b[j][i], + bias[j] + c[r][j]; q, "   \
      "s as of engine_quant; with half silu(d[r][j]) * d[r][j + half]",                            \
      "\"rows\": \"bf16\", \"matrix\": \"e4m3\", \"scales\": \"f32\", \"sum\": \"f32\"",           \
      "\"CTAs\", \"1\", \"1\"", "\"rows\": [1, 8], \"k\": [64, 65536]")                            \
    X(sample, SAMPLE, ENGINE_SAMPLE_SHARED,                                                        \
      "the first index at which the sum of kept masses passes u * (sum of all kept); "             \
      "mass = round(2^31 * exp((logit - largest) / temperature))",                                 \
      "\"positions\": \"i32\", \"sum\": \"u64\"", "\"rows * CTAs of a cluster\", \"1\", \"1\"",    \
      "\"vocab\": [1, 262144]")                                                                    \
    X(advance, ADVANCE, 0, "tokens[slot] = sampled[slot], positions[slot] += 1, or the end",       \
      "\"tokens\": \"i32\"", "\"rows / 128, rounded up\", \"1\", \"1\"",                           \
      "\"rows\": [1, 2147483647]")                                                                 \
    X(route, ROUTE, ENGINE_ROUTE_SHARED,                                                           \
      "the best experts of the best groups by score + bias; weight = score * scale, or "           \
      "scale * score / sum; score = sigmoid(logit), or softmax",                                   \
      "\"choice\": \"i32\", \"weights\": \"f32\"", "\"rows / 4, rounded up\", \"1\", \"1\"",       \
      "\"experts\": [1, 1024], \"groups\": [1, 32], \"choices\": [1, 32]")                         \
    X(place, PLACE, 0, "index[place] = r, place[r][j] = place: choices in the order of experts",   \
      "\"choice\": \"i32\"", "\"experts / 8, rounded up\", \"1\", \"1\"",                          \
      "\"count\": [0, 2147483647]")                                                                \
    X(latent, LATENT, 0,                                                                           \
      "cache row: x * norm / sqrt(mean(x^2) + eps), and rotated pairs; Q: rotated pairs",          \
      "\"rows\": \"bf16\", \"rotation\": \"f32\", \"positions\": \"i32\"",                         \
      "\"rows\", \"(1 + heads / 4, rounded up) / 8, rounded up\", \"1\"", "\"heads\": [1, 65536]") \
    X(exchange, EXCHANGE, ENGINE_EXCHANGE_SHARED,                                                  \
      "h[r] = x[r] + sum over ranks of part[r]; out[r] = h[r] * w / sqrt(mean(h[r]^2) + eps)",     \
      "\"rows\": \"bf16\", \"sum\": \"f32\"", "\"CTAs, all of them resident\", \"1\", \"1\"",      \
      "\"units\": [1, 4096], \"ranks\": [2, 16]")

#define TABLES(name, P, shared, formula, dtypes, grid, limits)                                  \
    static const struct plan_scalar name##_scalars[] =                                          \
        PLAN_SCALARS(ENGINE_##P##_SCALARS(PLAN_SCALAR));                                        \
    static const struct plan_range name##_roles[] = PLAN_RANGES(ENGINE_##P##_ROLES(PLAN_ROLE)); \
    static const struct plan_handoff name##_handoffs[] =                                        \
        PLAN_HANDOFFS(ENGINE_##P##_HANDOFFS(PLAN_HANDOFF_SPAN));                                \
    static const struct plan_flow name##_flows[] = PLAN_FLOWS(ENGINE_##P##_FLOWS(PLAN_FLOW));

KERNELS(TABLES)

static const char *const no_maps[] = {NULL};
static const struct plan_range no_ranges[] = PLAN_RANGES();

#define PLAN(t, name, P, bytes)                                                                   \
    {                                                                                             \
        .target = #t, .family = "engine", .text = "engine_" #name,                                \
        .threads = ENGINE_##P##_THREADS, .dynamic_shared = bytes, .cluster = 1, .maps = no_maps,  \
        .scalars = name##_scalars, .roles = name##_roles, .shared = no_ranges, .tmem = no_ranges, \
        .handoffs = name##_handoffs, .flows = name##_flows,                                       \
    }
#define KERNEL(name, P, bytes, formula, dtypes, grid, limits)                                     \
    {#name, {PLAN(sm_90a, name, P, bytes), PLAN(sm_100f, name, P, bytes)}, formula, dtypes, grid, \
     limits},

static const struct kernel {
    const char *name;
    struct plan plans[2]; /* of the targets */
    const char *formula, *dtypes, *grid, *limits;
} kernels[] = {KERNELS(KERNEL)};

const struct plan *plan_engine(const char *target, const char *kernel)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (size_t j = 0; strcmp(kernels[i].name, kernel) == 0 && j < 2; j++)
            if (strcmp(kernels[i].plans[j].target, target) == 0) return &kernels[i].plans[j];
    return NULL;
}

static const struct kernel *kernel_of(const struct module_id *id)
{
    const struct kernel *k = kernels;
    while (&k->plans[0] != id->plan && &k->plans[1] != id->plan) k++; /* plan_engine gave it */
    return k;
}

void engine_write_problem(FILE *out, const struct module_id *id)
{
    const struct kernel *k = kernel_of(id);
    fprintf(out, "  \"formula\": \"%s\",\n  \"dtypes\": {%s},\n", k->formula, k->dtypes);
}

void engine_write_shape(FILE *out, const struct module_id *id)
{
    fprintf(out, "  \"tensor_maps\": [],\n  \"grid\": [%s],\n", kernel_of(id)->grid);
}

void engine_write_limits(FILE *out, const struct module_id *id)
{
    fprintf(out, "  \"limits\": {%s, \"address_multiple\": 16, \"stride_multiple\": 16},\n",
            kernel_of(id)->limits);
}
