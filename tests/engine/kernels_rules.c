/* What the engine's kernels refuse: the argument, its value and the rule are named, and nothing is launched. */
#include "kernels.h"

#include <math.h>

/* A call that breaks one rule, and what its message must hold. */
#define REFUSED(kind, a, change, want)                                              \
    do {                                                                            \
        struct engine_##kind bad = a;                                               \
        hewn_error err = {0};                                                       \
        change;                                                                     \
        CHECK_INT(engine_##kind(&b->kernels, &bad, NULL, &err), HEWN_ERR_ARGUMENT); \
        CHECK_INT(err.status, HEWN_ERR_ARGUMENT);                                   \
        CHECK_TEXT(err.message, want);                                              \
    } while (0)

/* An address that is not aligned; one that must be given and is not. */
#define ASKEW(kind, a, field, name) \
    REFUSED(kind, a, bad.field = 1, name ": 0x1 is not a multiple of ")
#define ABSENT(kind, a, field, name) REFUSED(kind, a, bad.field = 0, name ": must not be 0")

static void norm_rules(struct bench *b)
{
    const struct engine_norm a = {.x = 4096,
                                  .y = 8192,
                                  .w = 256,
                                  .h = 4096,
                                  .out = 512,
                                  .rows = 2,
                                  .x_rows = 2,
                                  .hidden = 64,
                                  .eps = 1e-5};
    REFUSED(norm, a, bad.hidden = 60, "hidden: 60 is not a multiple of 8");
    REFUSED(norm, a, bad.hidden = 65544, "hidden: 65544 is not in 8..65536");
    REFUSED(norm, a, bad.rows = -1, "rows: -1 is not in 0..");
    REFUSED(norm, a, bad.rows = 3, "x_rows: 2 is not in 3..");
    REFUSED(norm, a, bad.x_row = 56, "x_row: 56 is not in 64..");
    REFUSED(norm, a, bad.out_row = 68, "out_row: 68 is not a multiple of 8");
    REFUSED(norm, a, bad.x = 4104, "x: 0x1008 is not a multiple of 16");
    REFUSED(norm, a, bad.w = 0, "w: must not be 0");
    REFUSED(norm, a, bad.h = bad.out = 0, "h: must not be 0");
    REFUSED(norm, a, bad.index = 64, "h: must not be x or y");
    REFUSED(norm, a, bad.eps = -1, "eps: -1 is not in 0..1");
    REFUSED(norm, a, bad.eps = NAN, "eps: ");
}

static void project_rules(struct bench *b)
{
    const struct engine_project a = {.x = 4096,
                                     .w = 512,
                                     .b = 8192,
                                     .b_scales = 256,
                                     .d = 1024,
                                     .rows = 2,
                                     .n = 32,
                                     .k = 128,
                                     .ctas = 4,
                                     .eps = 1e-5};
    REFUSED(project, a, bad.rows = 9, "rows: 9 is not in 0..8");
    REFUSED(project, a, bad.k = 96, "k: 96 is not a multiple of 64");
    REFUSED(project, a, bad.k = 16448, "k: 16448 is not in 64..16384");
    REFUSED(project, a, bad.n = 24, "n: 24 is not a multiple of 16");
    REFUSED(project, a, bad.x_row = 132, "x_row: 132 is not a multiple of 8");
    REFUSED(project, a, bad.d_row = 31, "d_row: 31 is not in 32..");
    REFUSED(project, a, bad.ctas = 0, "ctas: 0 is not in 1..");
    REFUSED(project, a, bad.b = 8200, "b: 0x2008 is not a multiple of 16");
    REFUSED(project, a, bad.b_scales = 0, "b_scales: must not be 0");
    REFUSED(project, a, bad.x_scales = 64, "w: must be 0 beside x_scales");
    REFUSED(project, a, (bad.gated = true, bad.c = 64), "c: must be 0 with gated");
    REFUSED(project, a, (bad.gated = true, bad.bias = 64), "bias: must be 0 with gated");
    REFUSED(project, a, (bad.w = 0, bad.x_scales = 64, bad.rows = 8, bad.k = 32768),
            "k: 32768 is too much for 8 rows");
    REFUSED(project, a, bad.eps = 2, "eps: 2 is not in 0..1");
    REFUSED(project, a, bad.c_row = 31, "c_row: 31 is not in 32..");
    ASKEW(project, a, x, "x");
    ABSENT(project, a, x, "x");
    REFUSED(project, a, (bad.w = 0, bad.x_scales = 2), "x_scales: 0x2 is not a multiple of 4");
    ASKEW(project, a, w, "w");
    ASKEW(project, a, b_scales, "b_scales");
    ASKEW(project, a, bias, "bias");
    ASKEW(project, a, c, "c");
    ASKEW(project, a, d, "d");
    ABSENT(project, a, d, "d");
}

static void rope_rules(struct bench *b)
{
    const struct engine_rope a = {.cache = {.rotation = 512,
                                            .k = 1024,
                                            .v = 2048,
                                            .table = 128,
                                            .positions_most = 9,
                                            .pages = 3,
                                            .page_size = 4,
                                            .table_width = 2,
                                            .page = 512,
                                            .head = 64,
                                            .token = 128},
                                  .qkv = 4096,
                                  .positions = 256,
                                  .rows = 1,
                                  .q_heads = 4,
                                  .kv_heads = 2,
                                  .dim = 64,
                                  .sequences_most = 1};
    REFUSED(rope, a, bad.dim = 264, "dim: 264 is not in 8..256");
    REFUSED(rope, a, bad.dim = 12, "dim: 12 is not a multiple of 8");
    REFUSED(rope, a, bad.kv_heads = 5, "kv_heads: 5 is not in 0..4");
    REFUSED(rope, a, bad.qkv_row = 504, "qkv_row: 504 is not in 512..");
    REFUSED(rope, a, bad.cache.q_norm = 64, "k_norm: must not be 0");
    REFUSED(rope, a, bad.cache.table = 0, "table_width: 2 is not in 1..1");
    REFUSED(rope, a, bad.cache.token = 60, "token: 60 is not a multiple of 8");
    REFUSED(rope, a, bad.positions = 254, "positions: 0xfe is not a multiple of 4");
    REFUSED(rope, a, bad.cache.page_size = 0, "page_size: 0 is not in 1..");
    REFUSED(rope, a, bad.rows = -1, "rows: -1 is not in 0..");
    REFUSED(rope, a, bad.q_heads = 65537, "q_heads: 65537 is not in 0..65536");
    REFUSED(rope, a, bad.q_heads = bad.kv_heads = 0, "q_heads: 0 is not in 1..");
    REFUSED(rope, a, bad.sequences_most = 0, "sequences_most: 0 is not in 1..");
    REFUSED(rope, a, bad.cache.pages = 0, "pages: 0 is not in 1..");
    REFUSED(rope, a, bad.cache.positions_most = 0, "positions_most: 0 is not in 1..");
    REFUSED(rope, a, bad.cache.page = 60, "page: 60 is not a multiple of 8");
    REFUSED(rope, a, bad.cache.head = -8, "head: -8 is not in 0..");
    ASKEW(rope, a, qkv, "qkv");
    ABSENT(rope, a, qkv, "qkv");
    ABSENT(rope, a, positions, "positions");
    ASKEW(rope, a, sequences, "sequences");
    ASKEW(rope, a, cache.rotation, "rotation");
    ABSENT(rope, a, cache.rotation, "rotation");
    REFUSED(rope, a, bad.cache.k_norm = 64, "q_norm: must not be 0");
    REFUSED(rope, a, (bad.cache.q_norm = 8, bad.cache.k_norm = 64),
            "q_norm: 0x8 is not a multiple of 16");
    REFUSED(rope, a, (bad.cache.q_norm = 64, bad.cache.k_norm = 8),
            "k_norm: 0x8 is not a multiple of 16");
    ASKEW(rope, a, cache.k, "k");
    ABSENT(rope, a, cache.k, "k");
    ASKEW(rope, a, cache.v, "v");
    ABSENT(rope, a, cache.v, "v");
    ASKEW(rope, a, cache.table, "table");
    REFUSED(rope, a, bad.cache.eps = NAN, "eps: ");
}

static void attend_rules(struct bench *b)
{
    const struct engine_attend a = {.cache = {.rotation = 512,
                                              .k = 1024,
                                              .v = 2048,
                                              .table = 128,
                                              .positions_most = 9,
                                              .pages = 3,
                                              .page_size = 16,
                                              .table_width = 2,
                                              .page = 2048,
                                              .head = 64,
                                              .token = 128,
                                              .eps = 1e-6},
                                    .qkv = 4096,
                                    .positions = 256,
                                    .o = 8192,
                                    .workspace = 16384,
                                    .counters = 64,
                                    .rows = 2,
                                    .q_heads = 4,
                                    .kv_heads = 2,
                                    .dim = 64,
                                    .columns = 3,
                                    .scale = 0.125};
    REFUSED(attend, a, bad.rows = 4, "rows: 4 is not in 0..3");
    REFUSED(attend, a, (bad.rows = 33, bad.columns = 40), "rows: 33 is not in 0..32");
    REFUSED(attend, a, bad.columns = 65, "columns: 65 is not in 1..64");
    REFUSED(attend, a, bad.q_heads = 5, "q_heads: 5 is not a multiple of 2");
    REFUSED(attend, a, bad.q_heads = 18, "q_heads: 18 is not in 2..16");
    REFUSED(attend, a, bad.dim = 96, "dim: 96 is not a multiple of 64");
    REFUSED(attend, a, bad.dim = 192, "dim: 192 is not in 64..128");
    REFUSED(attend, a, bad.cache.page_size = 24, "page_size: 24 is not a multiple of 16");
    REFUSED(attend, a, bad.o_row = 128, "o_row: 128 is not in 256..");
    REFUSED(attend, a, bad.cache.table_width = 1 << 27, "table_width: 134217728 is not in 1..");
    REFUSED(attend, a, bad.cache.positions_most = 1 << 25,
            "positions_most: 33554432 is not in 1..");
    REFUSED(attend, a, bad.cache.table = 0, "table: must not be 0");
    REFUSED(attend, a, bad.kv_heads = bad.q_heads = 0, "kv_heads: 0 is not in 1..");
    REFUSED(attend, a, bad.qkv_row = 504, "qkv_row: 504 is not in 512..");
    ASKEW(attend, a, qkv, "qkv");
    ABSENT(attend, a, qkv, "qkv");
    ASKEW(attend, a, positions, "positions");
    ABSENT(attend, a, positions, "positions");
    ASKEW(attend, a, o, "o");
    ABSENT(attend, a, o, "o");
    ASKEW(attend, a, workspace, "workspace");
    ABSENT(attend, a, workspace, "workspace");
    ASKEW(attend, a, counters, "counters");
    ABSENT(attend, a, counters, "counters");
    REFUSED(attend, a, bad.cache.q_norm = 64, "k_norm: must not be 0");
    REFUSED(attend, a, bad.scale = 0, "scale: 0 is not above 0");
    REFUSED(attend, a, bad.cache.eps = NAN, "eps: ");
}

static void multiply_rules(struct bench *b)
{
    const struct engine_multiply a = {.x = 4096,
                                      .weights = 8192,
                                      .d = 16384,
                                      .rows = 2,
                                      .n = 32,
                                      .k = 512,
                                      .ctas = 4,
                                      .eps = 1e-6};
    REFUSED(multiply, a, bad.rows = 9, "rows: 9 is not in 0..8");
    REFUSED(multiply, a, bad.k = 384, "k: 384 is not a multiple of 256");
    REFUSED(multiply, a, (bad.norm = 64, bad.k = 4352), "k: 4352 is not in 256..4096");
    REFUSED(multiply, a, bad.n = 40, "n: 40 is not a multiple of 16");
    REFUSED(multiply, a, bad.x_row = 504, "x_row: 504 is not in 512..");
    REFUSED(multiply, a, bad.d_row = 16, "d_row: 16 is not in 32..");
    REFUSED(multiply, a, bad.ctas = 0, "ctas: 0 is not in 1..");
    REFUSED(multiply, a, bad.weights = 8200, "weights: 0x2008 is not a multiple of 16");
    ASKEW(multiply, a, x, "x");
    ABSENT(multiply, a, x, "x");
    ASKEW(multiply, a, norm, "norm");
    ABSENT(multiply, a, weights, "weights");
    ASKEW(multiply, a, bias, "bias");
    ASKEW(multiply, a, c, "c");
    ASKEW(multiply, a, d, "d");
    ABSENT(multiply, a, d, "d");
    REFUSED(multiply, a, bad.eps = 2, "eps: 2 is not in 0..1");
}

static void quant_rules(struct bench *b)
{
    const struct engine_quant a = {
        .x = 4096, .w = 512, .out = 8192, .scales = 256, .rows = 2, .n = 32, .eps = 1e-5};
    REFUSED(quant, a, bad.rows = -1, "rows: -1 is not in 0..");
    REFUSED(quant, a, bad.n = 65544, "n: 65544 is not in 8..65536");
    REFUSED(quant, a, bad.n = 36, "n: 36 is not a multiple of 8");
    REFUSED(quant, a, bad.row = 24, "row: 24 is not in 32..");
    REFUSED(quant, a, bad.out_row = 36, "out_row: 36 is not a multiple of 8");
    REFUSED(quant, a, bad.up = 64, "w: must be 0 beside up");
    REFUSED(quant, a, (bad.w = 0, bad.up = 8), "up: 0x8 is not a multiple of 16");
    ASKEW(quant, a, x, "x");
    ABSENT(quant, a, x, "x");
    ASKEW(quant, a, w, "w");
    ASKEW(quant, a, out, "out");
    ABSENT(quant, a, out, "out");
    ASKEW(quant, a, scales, "scales");
    ABSENT(quant, a, scales, "scales");
    REFUSED(quant, a, bad.eps = NAN, "eps: ");
}

static void other_rules(struct bench *b)
{
    const struct engine_swiglu glu = {.gate = 256, .up = 512, .out = 768, .rows = 1, .n = 16};
    REFUSED(swiglu, glu, bad.n = 20, "n: 20 is not a multiple of 8");
    REFUSED(swiglu, glu, bad.out = 0, "out: must not be 0");
    REFUSED(swiglu, glu, bad.row = 8, "row: 8 is not in 16..");
    struct engine_slots slots = {.tokens = 4,
                                 .positions = 8,
                                 .lengths = 12,
                                 .sampled = 16,
                                 .limits = 20,
                                 .cancelled = 24,
                                 .reasons = 28,
                                 .counts = 32,
                                 .history = 36,
                                 .slots = 3,
                                 .history_row = 5};
    const struct engine_advance advance = {.slots = &slots, .rows = 2};
    REFUSED(advance, advance, bad.rows = 4, "rows: 4 is not in 0..3");
    REFUSED(advance, advance, bad.stop_count = 1, "stops: must not be 0");
    REFUSED(advance, advance, bad.slots = NULL, "slots: must not be NULL");
    const struct engine_sample sample = {
        .logits = 64, .slots = &slots, .rows = 2, .vocab = 96, .type = HEWN_F32};
    slots.settings = 64;
    REFUSED(sample, sample, bad.vocab = 262145, "vocab: 262145 is not in 1..262144");
    REFUSED(sample, sample, bad.type = HEWN_F16, "type: 1 is neither HEWN_F32 nor HEWN_BF16");
    REFUSED(sample, sample, bad.vocab = 95, "row: 95 is not a multiple of 4");
    REFUSED(sample, sample, bad.row = 92, "row: 92 is not in 96..");
    REFUSED(sample, sample, bad.logits = 72, "logits: 0x48 is not a multiple of 16");
    REFUSED(sample, sample, bad.rows = 4, "rows: 4 is not in 0..3");
    slots.settings = 68;
    REFUSED(sample, sample, (void)bad, "settings: 0x44 is not a multiple of 8");
    slots.limits = 0;
    REFUSED(advance, advance, (void)bad, "limits: must not be 0");
}

static void expert_rules(struct bench *b)
{
    const struct engine_route a = {.logits = 4,
                                   .choice = 8,
                                   .weights = 12,
                                   .rows = 1,
                                   .experts = 16,
                                   .choices = 4,
                                   .groups = 4,
                                   .groups_kept = 2,
                                   .scale = 1};
    const struct engine_place p = {
        .choice = 4, .offsets = 8, .index = 12, .place = 16, .rows = 1, .choices = 2, .experts = 3};
    const struct engine_latent l = {.vector = 16,
                                    .q = 32,
                                    .out = 48,
                                    .positions = 4,
                                    .rotation = 64,
                                    .norm = 80,
                                    .cache = 96,
                                    .table = 8,
                                    .rows = 1,
                                    .heads = 2,
                                    .vector_row = 576,
                                    .q_row = 128,
                                    .q_head = 64,
                                    .out_row = 1152,
                                    .out_head = 576,
                                    .positions_most = 9,
                                    .sequences_most = 1,
                                    .pages = 3,
                                    .page_size = 4,
                                    .table_width = 2,
                                    .page = 2304,
                                    .token = 576};
    REFUSED(route, a, bad.experts = 1028, "experts: 1028 is not in 1..1024");
    REFUSED(route, a, bad.experts = 18, "experts: 18 is not a multiple of 4");
    REFUSED(route, a, bad.choices = 9, "choices: 9 is not in 1..8");
    REFUSED(route, a, bad.groups_kept = 5, "groups_kept: 5 is not in 1..4");
    REFUSED(route, a, bad.groups = 0, "groups: 0 is not in 1..32");
    REFUSED(route, a, (bad.experts = 4, bad.choices = 1, bad.sigmoid = 1),
            "experts: 4 are not two");
    REFUSED(route, a, bad.weights = 0, "weights: must not be 0");
    REFUSED(place, p, bad.choices = 0, "choices: 0 is not in 1..");
    REFUSED(place, p, (bad.choices = 1024, bad.rows = 2097152),
            "rows: 2097152 is not in 0..2097151");
    REFUSED(place, p, bad.index = 2, "index: 0x2 is not a multiple of 4");
    REFUSED(latent, l, bad.vector_row = 568, "vector_row: 568 is not in 576..");
    REFUSED(latent, l, bad.page = 2296, "page: 2296 is not in 2304..");
    REFUSED(latent, l, bad.table = 0, "table: must not be 0");
    REFUSED(latent, l, bad.eps = 2, "eps: 2 is not in 0..1");
}

static void exchange_rules(struct bench *b)
{
    const struct engine_exchange a = {.x = 4096,
                                      .part = 8192,
                                      .inbox = 512,
                                      .peers = 64,
                                      .h = 4096,
                                      .w = 256,
                                      .out = 1024,
                                      .rank = 1,
                                      .ranks = 2,
                                      .rows = 2,
                                      .hidden = 64,
                                      .inbox_rank = 128,
                                      .ctas = 4,
                                      .eps = 1e-5};
    REFUSED(exchange, a, bad.ranks = 1, "ranks: 1 is not in 2..16");
    REFUSED(exchange, a, bad.rank = 2, "rank: 2 is not in 0..1");
    REFUSED(exchange, a, bad.hidden = 32776, "hidden: 32776 is not in 8..32768");
    REFUSED(exchange, a, bad.inbox_rank = 120, "inbox_rank: 120 is not in 128..");
    REFUSED(exchange, a, bad.ctas = 0, "ctas: 0 is not in 1..");
    REFUSED(exchange, a, bad.peers = 0, "peers: must not be 0");
    REFUSED(exchange, a, bad.part = 8, "part: 0x8 is not a multiple of 16");
    REFUSED(exchange, a, bad.h = bad.out = 0, "h: must not be 0");
    REFUSED(exchange, a, bad.eps = NAN, "eps: ");
}

void test_rules(struct bench *b)
{
    if (test_case("rules of norm")) norm_rules(b);
    if (test_case("rules of rope")) rope_rules(b);
    if (test_case("rules of attend")) attend_rules(b);
    if (test_case("rules of multiply")) multiply_rules(b);
    if (test_case("rules of project")) project_rules(b);
    if (test_case("rules of quant")) quant_rules(b);
    if (test_case("rules of the others")) other_rules(b);
    if (test_case("rules of experts")) expert_rules(b);
    if (test_case("rules of exchange")) exchange_rules(b);
    if (test_case("no rows: no launch")) {
        hewn_error err = {0};
        const struct engine_norm a = {.x = 16, .h = 32, .hidden = 8};
        CHECK_INT(engine_norm(&b->kernels, &a, NULL, &err), HEWN_OK);
        verdict_check(false, false);
    }
}
