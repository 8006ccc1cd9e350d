/* Bad input to attention: descriptions, addresses, tables. And what a plan chooses where it may. */
#include "badinput.h"

#include <math.h>
#include <string.h>

enum { SPAN_Q = 2 * 100 * 8 * 128 * 2, SPAN_O = 2 * 100 * 8 * 128 * 4 };

/* Where the tensors of a run lie: 256 MB apart. */
enum { AT_Q = 0x10000000, AT_K = 0x20000000, AT_V = 0x30000000, AT_O = 0x40000000 };
enum { AT_LSE = 0x50000000, AT_MORE = 0x60000000 };

/* The description has the first source; a case that wants the second one points source[1] at it. */
static hewn_attention_desc good_attention(hewn_attention_source source[2])
{
    source[0] = (hewn_attention_source){.struct_size = sizeof source[0], .length = 300};
    source[1] = (hewn_attention_source){.struct_size = sizeof source[1], .length = 40};
    return (hewn_attention_desc){
        .struct_size = sizeof(hewn_attention_desc),
        .batch = 2,
        .q_heads = 8,
        .kv_heads = 2,
        .qk_dim = 128,
        .q_length = 100,
        .in = HEWN_BF16,
        .source = {&source[0]},
    };
}

#define TWO (d.source[1] = &s[1])

#define BAD(change, status, words)                                                          \
    do {                                                                                    \
        hewn_attention_source s[2];                                                         \
        hewn_attention_desc d = good_attention(s);                                          \
        hewn_attention_plan *plan = NULL;                                                   \
        (void)s;                                                                            \
        change;                                                                             \
        REFUSE("attention: " #change, hewn_attention_plan_create(context, &d, &plan, &err), \
               status, words);                                                              \
        CHECK(plan == NULL, "a plan came back");                                            \
    } while (0)

/* ---- descriptions -- */

static void shapes(hewn_context *context)
{
    BAD(d.struct_size = 0, HEWN_ERR_ARGUMENT, "hewn_attention_desc: struct_size 0");
    BAD(d.batch = 0, HEWN_ERR_ARGUMENT, "batch: 0 is not at least 1");
    BAD(d.batch = 1LL << 31, HEWN_ERR_LIMIT, "batch: 2147483648 is more than 2147483647");
    BAD(d.q_heads = 0, HEWN_ERR_ARGUMENT, "q_heads: 0 is not at least 1");
    BAD(d.kv_heads = -2, HEWN_ERR_ARGUMENT, "kv_heads: -2 is not at least 1");
    BAD(d.q_heads = 7, HEWN_ERR_ARGUMENT, "q_heads: 7 is not a multiple of kv_heads, 2");
    BAD(d.qk_dim = 80, HEWN_ERR_ARGUMENT, "qk_dim, v_dim: 80, 0 are none of 64, 64; 96, 96");
    BAD(d.v_dim = 64, HEWN_ERR_ARGUMENT, "qk_dim, v_dim: 128, 64 are none of");
    BAD(d.qk_dim = d.v_dim = 192, HEWN_ERR_ARGUMENT, "qk_dim, v_dim: 192, 192 are none of");
    BAD(d.q_length = -1, HEWN_ERR_ARGUMENT, "q_length: -1 is not at least 0");
    BAD(d.q_length = 1LL << 29, HEWN_ERR_LIMIT, "q_length: 536870912 is more than 536870911");
    BAD(d.q_packed = 2, HEWN_ERR_ARGUMENT, "q_packed: 2 is not in 0..1");
    BAD((d.q_packed = 1, d.q_tokens = -1), HEWN_ERR_ARGUMENT, "q_tokens: -1 is not at least 0");
    BAD((d.q_packed = 1, d.q_tokens = 1LL << 31), HEWN_ERR_LIMIT, "q_tokens: 2147483648 is more");
    BAD(d.in = HEWN_F32, HEWN_ERR_ARGUMENT, "in: dtype 0 (f32) is none of bf16, f16, e4m3");
    BAD(d.in = 9, HEWN_ERR_ARGUMENT, "in: dtype 9 (unknown) is none of bf16, f16, e4m3");
    BAD(d.out = HEWN_E5M2, HEWN_ERR_ARGUMENT,
        "out: dtype 4 (e5m2) is none of f32, f16, bf16, e4m3");
    BAD(d.out = HEWN_E4M3, HEWN_ERR_ARGUMENT, "out: e4m3 needs e4m3 inputs, `in` is bf16");
    BAD((d.in = d.out = HEWN_E4M3, d.unnormalised = 1), HEWN_ERR_ARGUMENT,
        "out: e4m3, but unnormalised results need a wider type");
    BAD(d.layout = 2, HEWN_ERR_ARGUMENT, "layout: 2 is not in 0..1");
    BAD(d.batch = INT32_MAX, HEWN_ERR_LIMIT,
        "2147483647 sequences, 2 KV heads of 1 tiles, 1 splits: more than 2147483647 work items");
}

static void options(hewn_context *context)
{
    BAD(d.scale = -1, HEWN_ERR_ARGUMENT,
        "scale: -1 times log2(e) is not above 0 and finite in f32");
    BAD(d.scale = (double)NAN, HEWN_ERR_ARGUMENT,
        "scale: nan times log2(e) is not above 0 and finite in f32");
    BAD(d.scale = (double)INFINITY, HEWN_ERR_ARGUMENT,
        "scale: inf times log2(e) is not above 0 and finite in f32");
    BAD(d.scale = 1e39, HEWN_ERR_ARGUMENT,
        "scale: 1e+39 times log2(e) is not above 0 and finite in f32");
    BAD(d.scale = 1e-39, HEWN_ERR_ARGUMENT,
        "scale: 1e-39 times log2(e) is not above 0 and finite in f32");
    BAD(d.softcap = -30, HEWN_ERR_ARGUMENT,
        "softcap: -30 times 2 log2(e), or scale / softcap, -0.00294628, times 2 log2(e), is not "
        "above 0 "
        "and finite in f32");
    BAD(d.softcap = (double)NAN, HEWN_ERR_ARGUMENT, "softcap: nan times 2 log2(e)");
    BAD(d.softcap = 1e39, HEWN_ERR_ARGUMENT, "softcap: 1e+39 times 2 log2(e)");
    BAD((d.softcap = 1e30, d.scale = 1e-20), HEWN_ERR_ARGUMENT, "scale / softcap, 1e-50, times");
    BAD((d.softcap = 30, d.schedule = HEWN_SCHEDULE_PREFILL), HEWN_ERR_NO_MODULE,
        "attention_bf16_128_128_cap");
    BAD(d.sink = 2, HEWN_ERR_ARGUMENT, "sink: 2 is not in 0..1");
    BAD(d.unnormalised = -1, HEWN_ERR_ARGUMENT, "unnormalised: -1 is not in 0..1");
    BAD(d.q_scales = 1, HEWN_ERR_ARGUMENT, "q_scales: 1 needs e4m3 inputs, `in` is bf16");
    BAD((d.in = HEWN_E4M3, d.v_scales = 5), HEWN_ERR_ARGUMENT, "v_scales: 5 is not in 0..4");
    BAD((d.in = HEWN_E4M3, d.k_scale_batch = 9), HEWN_ERR_ARGUMENT,
        "k_scale_batch: 9, but k_scales, 0, has none of a sequence's own");
    BAD((d.in = HEWN_E4M3, d.q_scales = HEWN_SCALES_SEQUENCE_HEAD, d.q_scale_batch = 7),
        HEWN_ERR_ARGUMENT, "q_scale_batch: 7 is not at least 8");
    BAD((d.in = HEWN_E4M3, d.q_scales = HEWN_SCALES_SEQUENCE_KV_HEAD, d.q_scale_batch = 1),
        HEWN_ERR_ARGUMENT, "q_scale_batch: 1 is not at least 2");
    BAD((d.in = HEWN_E4M3, d.v_scales = HEWN_SCALES_SEQUENCE_HEAD, d.v_scale_batch = 1LL << 31),
        HEWN_ERR_LIMIT, "v_scale_batch: 2147483648 is more than");
    BAD((d.kv = HEWN_E4M3, d.k_scales = HEWN_SCALES_SEQUENCE_HEAD), HEWN_ERR_LIMIT,
        "k_scales: 3, but beside bf16 queries K and V have no scales of a sequence's own");
    BAD(d.promotion = -2, HEWN_ERR_ARGUMENT, "promotion: -2 is not at least -1");
    BAD(d.v_layout = 2, HEWN_ERR_ARGUMENT, "v_layout: 2 is not in 0..1");
    BAD(d.v_layout = 1, HEWN_ERR_ARGUMENT, "v_layout: 1 needs e4m3 inputs, `in` is bf16");
    BAD((d.in = HEWN_E4M3, d.v_layout = 1), HEWN_ERR_ARGUMENT,
        "source[0].v_token: 300 B is not a multiple of 16 B");
    BAD((d.in = HEWN_E4M3, d.v_layout = 1, s[0].page_size = 128, s[0].pages = 9,
         s[0].table_width = 3),
        HEWN_ERR_ARGUMENT, "source[0].page_size: 128, but v_layout 1 has no pages");
    BAD((d.in = HEWN_E4M3, d.v_layout = 1, s[0].keys = HEWN_KEYS_PACKED, s[0].tokens = 900),
        HEWN_ERR_ARGUMENT, "source[0].keys: 2, packed, but v_layout is 1");
    BAD((d.in = HEWN_E4M3, d.v_layout = 1, s[0].length = 304), HEWN_ERR_LIMIT,
        "v_layout: 1 is for compute capability 9.0, without softcap");
    BAD(d.pack = -1, HEWN_ERR_ARGUMENT, "pack: -1 is not at least 0");
    BAD(d.pack = 5, HEWN_ERR_ARGUMENT,
        "pack: 5 is more than the 4 query heads that share a KV head");
    BAD((d.q_heads = 512, d.pack = 200), HEWN_ERR_LIMIT, "pack: 200 is more than the 128 rows");
    BAD(d.splits = -1, HEWN_ERR_ARGUMENT, "splits: -1 is not at least 0");
    BAD(d.splits = 257, HEWN_ERR_LIMIT, "splits: 257 is more than 256");
    BAD(d.schedule = 3, HEWN_ERR_ARGUMENT, "schedule: 3 is not in 0..2");
    BAD(d.schedule = -1, HEWN_ERR_ARGUMENT, "schedule: -1 is not in 0..2");
    BAD(d.invariant = 2, HEWN_ERR_ARGUMENT, "invariant: 2 is not in 0..1");
    BAD(d.kv = HEWN_F16, HEWN_ERR_ARGUMENT,
        "kv: dtype 1 is neither 0 nor e4m3 beside a 16-bit `in`");
    BAD(d.in = d.kv = HEWN_E4M3, HEWN_ERR_ARGUMENT, "kv: dtype 3 is neither 0 nor e4m3 beside");
    BAD((d.kv = HEWN_E4M3, d.q_scales = 1), HEWN_ERR_ARGUMENT, "q_scales: 1 needs e4m3 inputs");
    BAD((d.kv = HEWN_E4M3, d.schedule = HEWN_SCHEDULE_PREFILL), HEWN_ERR_LIMIT,
        "kv: e4m3 beside bf16 needs the decode schedule");
    BAD((d.invariant = d.q_packed = 1, d.q_tokens = 9), HEWN_ERR_ARGUMENT,
        "invariant: 1 with q_packed needs `schedule`, because the longest sequence would choose "
        "it");
    BAD(d.tree = 2, HEWN_ERR_ARGUMENT, "tree: 2 is not in 0..1");
    BAD((d.tree = 1, d.q_length = 65), HEWN_ERR_ARGUMENT,
        "tree: 1, but q_length, 65, is more than the 64 bits of a mask");
    BAD((d.schedule = HEWN_SCHEDULE_DECODE, d.splits = 2), HEWN_ERR_LIMIT,
        "schedule: 2 (decode): the device chooses the splits of the decode schedule: they must be "
        "0");
    BAD((d.schedule = HEWN_SCHEDULE_DECODE, d.unnormalised = 1), HEWN_ERR_LIMIT,
        "schedule: 2 (decode): unnormalised results need the prefill schedule");
    BAD((d.splits = 2, d.unnormalised = 1), HEWN_ERR_ARGUMENT,
        "splits: 2, but unnormalised results are not combined");
    BAD((d.splits = 2, d.q_length = 300, d.batch = 1 << 20), HEWN_ERR_LIMIT,
        "splits: 2, but 8 query heads of 314572800 rows are more than the 2147483647");
    BAD(d.source[0] = NULL, HEWN_ERR_ARGUMENT, "source[0]: must not be NULL");
    BAD((TWO, d.source[0] = NULL), HEWN_ERR_ARGUMENT, "source[0]: must not be NULL");
    BAD(s[0].struct_size = 0, HEWN_ERR_ARGUMENT, "hewn_attention_source: struct_size 0");
    BAD((TWO, s[1].struct_size = 8), HEWN_ERR_ARGUMENT, "hewn_attention_source: struct_size 8");
}

static void strides(hewn_context *context)
{
    BAD(d.q_token = -8, HEWN_ERR_ARGUMENT, "q_token: -8 elements is negative");
    BAD(d.q_token = 1028, HEWN_ERR_ARGUMENT, "q_token: 2056 B is not a multiple of 16 B");
    BAD(d.q_head = 1LL << 39, HEWN_ERR_ARGUMENT,
        "q_head: 549755813888 elements of 2 B is not below 2^40 B");
    BAD(d.q_head = 1LL << 38, HEWN_ERR_ARGUMENT,
        "q_head: 549755813888 B times q_heads / kv_heads, 4, is not below 2^40 B");
    BAD(d.q_batch = 4, HEWN_ERR_ARGUMENT, "q_batch: 8 B is not a multiple of 16 B");
    BAD(d.o_token = 1022, HEWN_ERR_ARGUMENT, "o_token: 4088 B is not a multiple of 16 B");
    BAD(d.o_token = 1020, HEWN_ERR_ARGUMENT,
        "o_token: 4080 B makes rows of O overlap: what it steps over covers 4096 B");
    BAD(d.o_head = 64, HEWN_ERR_ARGUMENT,
        "o_head: 256 B makes rows of O overlap: what it steps over covers 512 B");
    BAD(d.o_batch = 1024, HEWN_ERR_ARGUMENT, "makes rows of O overlap");
    BAD((d.layout = HEWN_LAYOUT_BHSD, d.o_head = 99 * 128), HEWN_ERR_ARGUMENT,
        "o_head: 50688 B makes rows of O overlap: what it steps over covers 51200 B");
    BAD(s[0].k_token = 252, HEWN_ERR_ARGUMENT,
        "source[0].k_token: 504 B is not a multiple of 16 B");
    BAD(s[0].v_head = -1, HEWN_ERR_ARGUMENT, "source[0].v_head: -1 elements is negative");
    BAD((TWO, s[1].v_batch = 1LL << 60), HEWN_ERR_ARGUMENT,
        "source[1].v_batch: 1152921504606846976 elements of 2 B is not below 2^40 B");
    BAD((s[0].length = (1 << 29) - 1, d.q_heads = d.kv_heads = 64), HEWN_ERR_LIMIT,
        "source[0].k_batch: 4398046502912 elements of 2 B is not below 2^40 B");
    BAD((s[0].keys = HEWN_KEYS_PACKED, s[0].tokens = INT32_MAX, s[0].k_token = 1LL << 38),
        HEWN_ERR_LIMIT, "source[0].k: 2147483647 tokens, 2 heads, 1 planes: past 2^64 B");
}

static void sources(hewn_context *context)
{
    BAD(s[0].keys = 3, HEWN_ERR_ARGUMENT, "source[0].keys: 3 is not in 0..2");
    BAD(s[0].length = -1, HEWN_ERR_ARGUMENT, "source[0].length: -1 is not at least 0");
    BAD((TWO, s[1].length = 1LL << 29), HEWN_ERR_LIMIT,
        "source[1].length: 536870912 is more than 536870911");
    BAD((s[0].keys = HEWN_KEYS_PACKED, s[0].tokens = -7), HEWN_ERR_ARGUMENT,
        "source[0].tokens: -7 is not at least 0");
    BAD(s[0].causal = 2, HEWN_ERR_ARGUMENT, "source[0].causal: 2 is not in 0..1");
    BAD(s[0].window_back = -1, HEWN_ERR_ARGUMENT,
        "source[0].window_back: -1 is not at least 0, which stands for all keys");
    BAD(s[0].window_ahead = INT64_MIN, HEWN_ERR_ARGUMENT,
        "source[0].window_ahead: -9223372036854775808 is not at least 0");
    BAD((s[0].windows = 1, s[0].window_back = 5), HEWN_ERR_ARGUMENT,
        "source[0].window_back: 5 must be 0 beside `windows`, which take its place");
    BAD((TWO, s[1].windows = 1), HEWN_ERR_ARGUMENT, "source[1].windows: 1 is not in 0..0");
    BAD(s[0].page_size = -1, HEWN_ERR_ARGUMENT, "source[0].page_size: -1 is not at least 0");
    BAD(s[0].page_size = 257, HEWN_ERR_ARGUMENT, "source[0].page_size: 257 is not in 0..256");
    BAD(s[0].page_size = INT64_MAX, HEWN_ERR_ARGUMENT,
        "source[0].page_size: 9223372036854775807 is");
    BAD((s[0].page_size = 16, s[0].keys = HEWN_KEYS_PACKED), HEWN_ERR_ARGUMENT,
        "source[0].page_size: 16, but packed keys have no pages");
    BAD(s[0].page_size = 16, HEWN_ERR_ARGUMENT, "source[0].pages: 0 is not at least 1");
    BAD((s[0].page_size = 16, s[0].pages = 50, s[0].table_width = 18), HEWN_ERR_ARGUMENT,
        "source[0].table_width: 18 is less than the 19 pages of 300 keys");
    BAD((s[0].page_size = 16, s[0].pages = 50, s[0].table_width = 1 << 30), HEWN_ERR_LIMIT,
        "source[0].table_width: 1073741824 is more than 1073741823");
}

static void plan_calls(hewn_context *context)
{
    hewn_attention_source s[2];
    hewn_attention_desc d = good_attention(s);
    hewn_attention_plan *plan = NULL;
    hewn_attention_plan_info info;
    memset(&info, POISON, sizeof info);
    info.struct_size = 3;
    REFUSE("attention: no context", hewn_attention_plan_create(NULL, &d, &plan, &err),
           HEWN_ERR_ARGUMENT, "context: must not be NULL");
    REFUSE("attention: no description", hewn_attention_plan_create(context, NULL, &plan, &err),
           HEWN_ERR_ARGUMENT, "hewn_attention_desc: must not be NULL");
    REFUSE("attention: no output", hewn_attention_plan_create(context, &d, NULL, &err),
           HEWN_ERR_ARGUMENT, "out: must not be NULL");
    REFUSE("attention: describe no plan", hewn_attention_plan_describe(NULL, &info, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    if (hewn_attention_plan_create(context, &d, &plan, NULL)) return;
    REFUSE("attention: describe without struct_size",
           hewn_attention_plan_describe(plan, &info, &err), HEWN_ERR_ARGUMENT,
           "hewn_attention_plan_info: struct_size 3");
    CHECK(info.grid[0] == POISON * 0x01010101U, "an output was written");
    hewn_attention_plan_destroy(plan);
    hewn_attention_plan_destroy(NULL);
}

/* What is refused above, one step before it; and what is unused, whatever it holds. */
#define GOOD(change)                                                                         \
    do {                                                                                     \
        hewn_attention_source s[2];                                                          \
        hewn_attention_desc d = good_attention(s);                                           \
        hewn_attention_plan *plan = NULL;                                                    \
        hewn_error err = {0};                                                                \
        (void)s;                                                                             \
        change;                                                                              \
        if (test_case("attention: " #change " is legal"))                                    \
            CHECK(!hewn_attention_plan_create(context, &d, &plan, &err), "%s", err.message); \
        hewn_attention_plan_destroy(plan);                                                   \
    } while (0)

static void legal(hewn_context *context)
{
    GOOD(d.qk_dim = 192);
    GOOD((d.batch = 1, d.q_length = (1 << 29) - 1));
    GOOD(d.q_tokens = -1);
    GOOD((d.q_packed = 1, d.q_tokens = INT32_MAX));
    GOOD(d.pack = 4);
    GOOD((d.q_heads = 512, d.pack = 128));
    GOOD(d.splits = 256);
    GOOD((d.splits = 1, d.unnormalised = 1));
    GOOD(d.scale = 1e38);
    GOOD(d.scale = 1e-38);
    GOOD(d.q_head = (1LL << 37) - 8);
    GOOD((d.batch = 1, d.o_token = 1028));
    GOOD((d.layout = HEWN_LAYOUT_BHSD, d.o_head = 100 * 128));
    GOOD(s[0].k_token = s[0].k_head = s[0].k_batch = 8);
    GOOD(s[0].v_batch = (1LL << 39) - 8);
    GOOD((s[0].page_size = 256, s[0].pages = 1, s[0].table_width = 2));
    GOOD((s[0].page_size = 16, s[0].length = 0));
    GOOD((s[0].keys = HEWN_KEYS_PACKED, s[0].tokens = 0));
    GOOD(s[0].tokens = s[0].pages = s[0].table_width = -1);
    GOOD(s[0].window_back = s[0].window_ahead = INT64_MAX);
}

/* ---- addresses -- */

static hewn_attention_args good_args(hewn_attention_source_args k[2])
{
    k[0] = (hewn_attention_source_args){.struct_size = sizeof k[0], .k = AT_K, .v = AT_V};
    k[1] = (hewn_attention_source_args){.struct_size = sizeof k[1]};
    return (hewn_attention_args){.struct_size = sizeof(hewn_attention_args),
                                 .q = AT_Q,
                                 .o = AT_O,
                                 .lse = AT_LSE,
                                 .source = {&k[0], &k[1]}};
}

/* One run of a plan made from `d` and the changes to it, with arguments and the changes to them. */
#define BAD_RUN(plan_change, change, words)                                              \
    do {                                                                                 \
        hewn_attention_source s[2];                                                      \
        hewn_attention_desc d = good_attention(s);                                       \
        hewn_attention_source_args k[2];                                                 \
        hewn_attention_args a = good_args(k);                                            \
        hewn_attention_plan *plan = NULL;                                                \
        plan_change;                                                                     \
        change;                                                                          \
        if (hewn_attention_plan_create(context, &d, &plan, NULL))                        \
            test_fail(__FILE__, __LINE__, "no plan with " #plan_change);                 \
        REFUSE("attention run: " #plan_change ", " #change,                              \
               hewn_attention_plan_run(plan, &a, NULL, &err), HEWN_ERR_ARGUMENT, words); \
        hewn_attention_plan_destroy(plan);                                               \
    } while (0)

static void addresses(hewn_context *context)
{
    BAD_RUN(, a.struct_size = 8, "hewn_attention_args: struct_size 8");
    BAD_RUN(, a.q = 0, "q: address must not be 0");
    BAD_RUN(, a.q += 8, "q: address 0x10000008 is not a multiple of 16");
    BAD_RUN(, a.o = 0, "o: address must not be 0");
    BAD_RUN(, a.o += 4, "o: address 0x40000004 is not a multiple of 16");
    BAD_RUN(, a.lse += 2, "lse: address 0x50000002 is not a multiple of 4");
    BAD_RUN(, a.row_max = AT_MORE,
            "row_max: address 0x60000000 must be 0, because the plan uses none");
    BAD_RUN(d.unnormalised = 1, , "row_max: address must not be 0");
    BAD_RUN(d.sink = 1, , "sink: address must not be 0");
    BAD_RUN(, a.sink = AT_MORE, "sink: address 0x60000000 must be 0");
    BAD_RUN(, a.q_scale = AT_MORE, "q_scale: address 0x60000000 must be 0");
    BAD_RUN(d.in = HEWN_E4M3, a.v_scale = AT_MORE + 1, "v_scale: address 0x60000001 is not a");
    BAD_RUN((d.q_packed = 1, d.q_tokens = 150), , "cu_q: address must not be 0");
    BAD_RUN(, a.cu_q = AT_MORE, "cu_q: address 0x60000000 must be 0");
    BAD_RUN(d.splits = 2, , "workspace: address must not be 0");
    BAD_RUN(d.splits = 2, a.workspace = AT_MORE + 8, "workspace: address 0x60000008 is not a");
    BAD_RUN(d.splits = 1, a.workspace = AT_MORE, "workspace: address 0x60000000 must be 0");
    BAD_RUN(, a.source[0] = NULL, "source[0].k: address must not be 0");
    BAD_RUN(, k[0].struct_size = 47, "hewn_attention_source_args: struct_size 47");
    BAD_RUN((TWO, d.splits = 1), a.source[1] = NULL, "source[1].k: address must not be 0");
    BAD_RUN(, k[0].k = 0, "source[0].k: address must not be 0");
    BAD_RUN(, k[0].v += 2, "source[0].v: address 0x30000002 is not a multiple of 16");
    BAD_RUN(, k[1].k = AT_MORE, "source[1].k: address 0x60000000 must be 0");
    BAD_RUN((TWO, d.splits = 1), k[1].k = AT_MORE, "source[1].v: address must not be 0");
    BAD_RUN(, k[0].lengths = AT_MORE, "source[0].lengths: address 0x60000000 must be 0");
    BAD_RUN(s[0].keys = HEWN_KEYS_LENGTHS, , "source[0].lengths: address must not be 0");
    BAD_RUN(s[0].windows = 1, , "source[0].windows: address must not be 0");
    BAD_RUN(, k[0].table = AT_MORE, "source[0].table: address 0x60000000 must be 0");
    BAD_RUN((s[0].page_size = s[0].pages = s[0].table_width = 32), ,
            "source[0].table: address must not be 0");
}

static void overlaps(hewn_context *context)
{
    BAD_RUN(, a.o = AT_Q, "o: 819200 B at 0x10000000 overlap q, 409600 B at 0x10000000");
    BAD_RUN(, a.o = AT_V - SPAN_O + 16, "o: 819200 B at 0x2ff38010 overlap source[0].v");
    BAD_RUN(, a.o = AT_Q + SPAN_Q - 16, "overlap q");
    BAD_RUN(, a.lse = AT_O + SPAN_O - 4, "o: 819200 B at 0x40000000 overlap lse, 6400 B at");
    BAD_RUN(, a.lse = AT_K, "lse: 6400 B at 0x20000000 overlap source[0].k");
    BAD_RUN(d.unnormalised = 1, a.row_max = AT_LSE, "lse: 6400 B at 0x50000000 overlap row_max");
    BAD_RUN(d.splits = 2, a.workspace = AT_K - 16, "workspace: 1651200 B at 0x1ffffff0 overlap");
    BAD_RUN(, a.o = UINT64_MAX - SPAN_O + 17,
            "o: address 0xfffffffffff38010 and 819200 B run past the end of memory");
}

/* What is refused above, one step further; and tensors side by side in a larger one. */
static void allowed(hewn_context *context)
{
    enum { QKVO = (8 + 2 + 2 + 2 * 8) * 128 }; /* elements a token of bf16; O's are f32 */
    hewn_attention_source s[2];
    hewn_attention_desc d = good_attention(s);
    hewn_attention_source_args k[2];
    hewn_attention_args a = good_args(k);
    hewn_attention_plan *plan = NULL;
    hewn_error err = {0};
    if (!test_case("attention run: neighbours and columns of one tensor do not overlap")) return;
    fake.launches = 0;
    CHECK(!hewn_attention_plan_create(context, &d, &plan, &err), "%s", err.message);
    a.o = AT_V - SPAN_O;
    CHECK(!hewn_attention_plan_run(plan, &a, NULL, &err), "%s", err.message);
    a.o = AT_Q + SPAN_Q;
    CHECK(!hewn_attention_plan_run(plan, &a, NULL, &err), "%s", err.message);
    hewn_attention_plan_destroy(plan);
    d.q_token = s[0].k_token = s[0].v_token = QKVO;
    d.o_token = QKVO / 2;
    d.q_batch = 300 * QKVO;
    d.o_batch = 300 * QKVO / 2;
    s[0].k_batch = s[0].v_batch = 300 * QKVO;
    CHECK(!hewn_attention_plan_create(context, &d, &plan, &err), "%s", err.message);
    a = good_args(k);
    k[0].k = AT_Q + 8 * 256;
    k[0].v = AT_Q + 10 * 256;
    a.o = AT_Q + 12 * 256;
    CHECK(!hewn_attention_plan_run(plan, &a, NULL, &err), "%s", err.message);
    CHECK_INT(fake.launches, 3);
    a.o -= 16;
    CHECK_INT(hewn_attention_plan_run(plan, &a, NULL, &err), HEWN_ERR_ARGUMENT);
    CHECK_TEXT(err.message, "overlap source[0].v");
    a.o += 32; /* into the next token's Q */
    CHECK_INT(hewn_attention_plan_run(plan, &a, NULL, &err), HEWN_ERR_ARGUMENT);
    CHECK_TEXT(err.message, "overlap q");
    hewn_attention_plan_destroy(plan);
}

/* No query: nothing to launch, whatever the addresses. No key: no address of K and V needed. */
static void empty(hewn_context *context)
{
    static const struct {
        const char *name;
        int packed, q_length, q_tokens, length, launches;
    } rows[] = {
        {"q_length is 0", 0, 0, 0, 300, 0},
        {"q_tokens is 0", 1, 100, 0, 300, 0},
        {"length is 0", 0, 100, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hewn_attention_source s[2];
        hewn_attention_desc d = good_attention(s);
        hewn_attention_args a = {.struct_size = sizeof a};
        hewn_attention_plan *plan = NULL;
        hewn_error err = {0};
        if (!test_case("attention run: %s", rows[i].name)) continue;
        d.q_packed = rows[i].packed;
        d.q_length = rows[i].q_length;
        d.q_tokens = rows[i].q_tokens;
        s[0].length = rows[i].length;
        fake.launches = 0;
        CHECK(!hewn_attention_plan_create(context, &d, &plan, &err), "%s", err.message);
        if (rows[i].launches) a.q = AT_Q, a.o = AT_O;
        CHECK(!hewn_attention_plan_run(plan, &a, NULL, &err), "%s", err.message);
        CHECK_INT(fake.launches, rows[i].launches);
        hewn_attention_plan_destroy(plan);
    }
}

/* ---- tables -- */

/* Two sequences of up to 300 keys, 19 pages of 16 each from a pool of 50, and 40 packed rows beside;
 * queries packed. Copies, so that a case may spoil them. */
struct tables {
    int32_t cu_q[3], lengths[2], table[2 * 19], windows[2], offsets[3];
    hewn_attention_source_tables source[2];
    hewn_attention_tables t;
};

static void good_tables(struct tables *x)
{
    *x = (struct tables){.cu_q = {0, 100, 150},
                         .lengths = {300, 17},
                         .windows = {0, 1 << 29},
                         .offsets = {0, 0, 40}};
    for (int i = 0; i < 38; i++) x->table[i] = (i + 40) % 50;
    x->table[19 + 2] = -1; /* behind the second sequence's 17 keys */
    x->t.struct_size = sizeof x->t;
    x->t.cu_q = x->cu_q;
    x->source[0] = (hewn_attention_source_tables){.struct_size = sizeof x->source[0],
                                                  .lengths = x->lengths,
                                                  .table = x->table,
                                                  .windows = x->windows};
    x->source[1] =
        (hewn_attention_source_tables){.struct_size = sizeof x->source[1], .lengths = x->offsets};
    for (int i = 0; i < 2; i++) x->t.source[i] = &x->source[i];
}

static hewn_attention_plan *table_plan(hewn_context *context)
{
    hewn_attention_source s[2];
    hewn_attention_desc d = good_attention(s);
    hewn_attention_plan *plan = NULL;
    d.q_packed = 1;
    d.q_tokens = 150;
    d.source[1] = &s[1];
    s[0].keys = HEWN_KEYS_LENGTHS;
    s[0].page_size = 16;
    s[0].pages = 50;
    s[0].table_width = 19;
    s[0].windows = 1;
    s[1].keys = HEWN_KEYS_PACKED;
    s[1].tokens = 40;
    hewn_attention_plan_create(context, &d, &plan, NULL);
    return plan;
}

#define BAD_TABLE(change, words)                                                                 \
    do {                                                                                         \
        struct tables x;                                                                         \
        good_tables(&x);                                                                         \
        change;                                                                                  \
        REFUSE("attention tables: " #change, hewn_attention_plan_check_tables(plan, &x.t, &err), \
               HEWN_ERR_ARGUMENT, words);                                                        \
    } while (0)

static void attention_tables(hewn_context *context)
{
    hewn_attention_plan *plan = table_plan(context);
    if (test_case("attention tables: none is bad")) {
        struct tables x;
        hewn_error err = {0};
        good_tables(&x);
        CHECK(!hewn_attention_plan_check_tables(plan, &x.t, &err), "%s", err.message);
    }
    REFUSE("attention tables: none given", hewn_attention_plan_check_tables(plan, NULL, &err),
           HEWN_ERR_ARGUMENT, "hewn_attention_tables: must not be NULL");
    BAD_TABLE(x.t.struct_size = 1, "hewn_attention_tables: struct_size 1");
    BAD_TABLE(x.source[1].struct_size = 1, "hewn_attention_source_tables: struct_size 1");
    BAD_TABLE(x.t.source[1] = NULL, "source[1].lengths: must not be NULL");
    BAD_TABLE(x.t.cu_q = NULL, "cu_q: must not be NULL");
    BAD_TABLE(x.source[0].table = NULL, "source[0].table: must not be NULL");
    BAD_TABLE(x.source[1].windows = x.windows, "source[1].windows: must be NULL");
    BAD_TABLE(x.cu_q[0] = 1, "cu_q[0]: 1 is not 0");
    BAD_TABLE(x.cu_q[2] = 99, "cu_q[2]: 99 is less than [1], 100");
    BAD_TABLE(x.cu_q[2] = 151, "cu_q[2]: 151 is more than the 150 rows there are");
    BAD_TABLE(x.cu_q[1] = 101, "cu_q[1]: 101 makes sequence 0 101 rows long, more than 100");
    BAD_TABLE(x.lengths[1] = -1, "source[0].lengths[1]: -1 is not in 0..300");
    BAD_TABLE(x.lengths[0] = 301, "source[0].lengths[0]: 301 is not in 0..300");
    BAD_TABLE(x.table[18] = 50,
              "source[0].table[18]: page 50 (sequence 0, keys from 288) is not in 0..49");
    BAD_TABLE(x.table[20] = -1, "source[0].table[20]: page -1 (sequence 1, keys from 16)");
    BAD_TABLE(x.lengths[1] = 33, "source[0].table[21]: page -1 (sequence 1, keys from 32)");
    BAD_TABLE(x.windows[0] = -1, "source[0].windows[0]: -1 is not in 0..536870912");
    BAD_TABLE(x.offsets[1] = 41, "source[1].lengths[1]: 41 is more than the 40 rows there are");
    BAD_TABLE(x.offsets[1] = -1, "source[1].lengths[1]: -1 is less than [0], 0");
    REFUSE("attention tables: of no plan", hewn_attention_plan_check_tables(NULL, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    hewn_attention_plan_destroy(plan);
}

/* ---- choices -- */

/* Of the prefill schedule on a device of 132 SMs, of which the fake is one. */
static void choices(hewn_context *context)
{
    static const struct {
        const char *name;
        int64_t batch, q_heads, kv_heads, qk_dim, q_length, length, left, splits;
        int unnormalised;
        uint32_t want_pack, want_splits;
        uint64_t want_items, want_workspace;
    } rows[] = {
        {"many items", 4, 16, 16, 128, 4096, 4096, -1, 0, 0, 1, 1, 1024, 0},
        {"few tokens, packed heads", 64, 32, 4, 128, 3, 4096, -1, 0, 0, 8, 1, 256, 0},
        {"decoding, split by SMs", 1, 16, 1, 128, 1, 65536, -1, 0, 0, 16, 64, 64,
         64 * 16 * 129 * 4},
        {"decoding, split by blocks", 1, 16, 1, 64, 1, 1000, -1, 0, 0, 16, 4, 4, 4 * 16 * 65 * 4},
        {"decoding, few blocks", 1, 16, 1, 64, 1, 384, -1, 0, 0, 16, 1, 1, 0},
        {"decoding in a window", 1, 16, 1, 64, 1, 65536, 100, 0, 0, 16, 1, 1, 0},
        {"decoding in a window of four blocks", 1, 16, 1, 64, 1, 65536, 400, 0, 0, 16, 2, 2,
         2 * 16 * 65 * 4},
        {"a token too few to fill tiles", 200, 4, 1, 64, 255, 65536, -1, 0, 0, 4, 1, 800, 0},
        {"tokens that fill tiles", 200, 4, 1, 64, 256, 65536, -1, 0, 0, 1, 1, 800, 0},
        {"decoding, unnormalised", 1, 16, 1, 64, 1, 65536, -1, 0, 1, 16, 1, 1, 0},
        {"halves of V", 1, 2, 2, 512, 128, 512, -1, 0, 0, 1, 2, 8, 2 * 256 * 513 * 4},
        {"asked for", 1, 2, 2, 256, 128, 128, -1, 3, 0, 1, 3, 6, 3 * 256 * 257 * 4},
        {"a group beyond a tile", 1, 300, 1, 64, 2, 100, -1, 0, 0, 128, 1, 3, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hewn_attention_source s[2];
        hewn_attention_desc d = good_attention(s);
        hewn_attention_plan_info info = {.struct_size = sizeof info};
        hewn_attention_plan *plan = NULL;
        hewn_error err = {0};
        if (!test_case("attention plan: %s", rows[i].name)) continue;
        d.batch = rows[i].batch;
        d.q_heads = rows[i].q_heads;
        d.kv_heads = rows[i].kv_heads;
        d.qk_dim = rows[i].qk_dim;
        d.q_length = rows[i].q_length;
        d.splits = rows[i].splits;
        d.schedule = HEWN_SCHEDULE_PREFILL;
        d.unnormalised = rows[i].unnormalised;
        s[0].length = rows[i].length;
        s[0].window_back = rows[i].left + 1;
        s[0].causal = 1;
        CHECK(!hewn_attention_plan_create(context, &d, &plan, &err), "%s", err.message);
        hewn_attention_plan_describe(plan, &info, NULL);
        CHECK_INT(info.pack, rows[i].want_pack);
        CHECK_INT(info.splits, rows[i].want_splits);
        CHECK_INT(info.items, rows[i].want_items);
        CHECK_INT(info.workspace, rows[i].want_workspace);
        CHECK_INT(info.grid[0], info.items < 132 ? info.items : 132);
        hewn_attention_plan_destroy(plan);
    }
}

/* Where sums of 8-bit products are short. */
static void promotions(hewn_context *context)
{
    static const struct {
        int in, promotion;
        int64_t qk_dim;
        double softcap;
        const char *module;
    } rows[] = {
        {HEWN_E4M3, 0, 128, 0, "attention_e4m3_128_128_sums"},
        {HEWN_E4M3, 0, 256, 0, "attention_e4m3_256_256_sums"},
        {HEWN_E4M3, 9, 192, 0, "attention_e4m3_192_128_sums"},
        {HEWN_E4M3, -1, 64, 0, "attention_e4m3_64_64"},
        {HEWN_E4M3, 0, 96, 30, "attention_e4m3_96_96_cap"},
        {HEWN_E4M3, -1, 256, 30, "attention_e4m3_256_256_cap"},
        {HEWN_BF16, 4, 128, 0, "attention_bf16_128_128"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hewn_attention_source s[2];
        hewn_attention_desc d = good_attention(s);
        hewn_attention_plan_info info = {.struct_size = sizeof info};
        hewn_attention_plan *plan = NULL;
        hewn_error err = {0};
        if (!test_case("promotion %d: %s", rows[i].promotion, rows[i].module)) continue;
        d.in = rows[i].in, d.promotion = rows[i].promotion;
        d.qk_dim = rows[i].qk_dim, d.softcap = rows[i].softcap;
        d.schedule = HEWN_SCHEDULE_PREFILL;
        CHECK(!hewn_attention_plan_create(context, &d, &plan, &err), "%s", err.message);
        if (plan && !hewn_attention_plan_describe(plan, &info, NULL))
            CHECK(!strcmp(info.module, rows[i].module), "chose %s", info.module);
        hewn_attention_plan_destroy(plan);
    }
}

/* Where the decode schedule is: parts at fixed counts of keys must be counted. */
static void invariant(void)
{
    hewn_driver *driver = NULL;
    hewn_context *context = attach_fake(&driver, 9, 0);
    BAD((d.in = HEWN_E4M3, d.qk_dim = 256, d.promotion = 2), HEWN_ERR_LIMIT,
        "promotion: 2, but head dimension 256 has only 1, or never, -1");
    BAD((d.in = HEWN_E4M3, d.softcap = 50, d.promotion = 1), HEWN_ERR_LIMIT,
        "promotion: 1, but beside softcap only never, -1");
    BAD((d.in = HEWN_E4M3, d.softcap = 50, s[0].length = 304, d.v_layout = HEWN_V_COLUMNS),
        HEWN_ERR_LIMIT, "v_layout: 1 is for compute capability 9.0, without softcap");
    promotions(context);
    BAD((d.invariant = 1, d.q_length = 1, d.batch = 1024, s[0].length = (1 << 29) - 1),
        HEWN_ERR_LIMIT,
        "invariant: 1 needs the decode schedule: more blocks of keys than the kernel can count");
    BAD((d.invariant = 1, d.q_length = 16, d.batch = 255, s[0].length = (1 << 29) - 1),
        HEWN_ERR_LIMIT,
        "invariant: 510 tiles of 262144 parts of 64 rows are more than 2147483647 rows");
    detach_fake(driver, context);
}

void attention(void)
{
    hewn_driver *driver = NULL;
    hewn_context *context = attach_fake(&driver, 10, 0);
    shapes(context);
    options(context);
    strides(context);
    sources(context);
    legal(context);
    plan_calls(context);
    addresses(context);
    overlaps(context);
    REFUSE("attention run: no plan", hewn_attention_plan_run(NULL, NULL, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    CHECK_INT(fake.launches, 0);
    allowed(context);
    empty(context);
    attention_tables(context);
    choices(context);
    detach_fake(driver, context);
    invariant();
    context = attach_fake(&driver, 12, 0);
    BAD(d.batch = 1, HEWN_ERR_NO_MODULE, "attention_bf16_128_128");
    BAD((d.tree = 1, d.q_length = 4), HEWN_ERR_LIMIT,
        "tree: 1 needs the decode schedule: the decode schedule has no kernel for these");
    BAD(d.schedule = HEWN_SCHEDULE_DECODE, HEWN_ERR_LIMIT,
        "schedule: 2 (decode): the decode schedule has no kernel for these");
    detach_fake(driver, context);
    context = attach_fake(&driver, 10, 0);
    fake.max_shared = 101376;
    hewn_context_detach(context);
    if (!hewn_context_attach_primary(driver, 0, &context, NULL))
        BAD(d.batch = 1, HEWN_ERR_LIMIT, "are more than the 101376 B a block of this device");
    detach_fake(driver, context);
}
