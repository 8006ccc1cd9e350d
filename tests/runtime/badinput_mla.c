/* Bad input to MLA: descriptions and addresses, one at a time. And what a plan chooses. */
#include "badinput.h"

#include <math.h>

/* Where the tensors of a run lie: 256 MB apart. */
enum { AT_Q = 0x10000000, AT_KV = 0x20000000, AT_O = 0x30000000, AT_LSE = 0x40000000 };
enum { AT_WORK = 0x50000000, AT_MORE = 0x60000000 };

/* Rows: 2 sequences x 2 queries x 16 heads; 300 keys in pages of 64. */
static hewn_mla_desc good_mla(void)
{
    return (hewn_mla_desc){
        .struct_size = sizeof(hewn_mla_desc),
        .batch = 2,
        .q_heads = 16,
        .q_length = 2,
        .length = 300,
        .page_size = 64,
        .pages = 10,
        .table_width = 5,
        .in = HEWN_BF16,
        .out = HEWN_BF16,
        .lengths = 1,
    };
}

#define BAD(change, status, words)                                                              \
    do {                                                                                        \
        hewn_mla_desc d = good_mla();                                                           \
        hewn_mla_plan *plan = NULL;                                                             \
        change;                                                                                 \
        REFUSE("mla: " #change, hewn_mla_plan_create(context, &d, &plan, &err), status, words); \
        CHECK(plan == NULL, "a plan came back");                                                \
    } while (0)

static void shapes(hewn_context *context)
{
    BAD(d.struct_size = 0, HEWN_ERR_ARGUMENT, "hewn_mla_desc: struct_size 0");
    BAD(d.batch = 0, HEWN_ERR_ARGUMENT, "batch: 0 is not in 1..2147483647");
    BAD(d.batch = 1LL << 31, HEWN_ERR_ARGUMENT, "batch: 2147483648 is not in 1..2147483647");
    BAD(d.q_heads = 0, HEWN_ERR_ARGUMENT, "q_heads: 0 is not in 1..128");
    BAD(d.q_heads = 129, HEWN_ERR_ARGUMENT, "q_heads: 129 is not in 1..128");
    BAD(d.q_length = 0, HEWN_ERR_ARGUMENT, "q_length: 0 is not in 1..16");
    BAD(d.q_length = 17, HEWN_ERR_ARGUMENT, "q_length: 17 is not in 1..16");
    BAD(d.length = -1, HEWN_ERR_ARGUMENT, "length: -1 is not in 0..536870911");
    BAD(d.length = 1LL << 29, HEWN_ERR_ARGUMENT, "length: 536870912 is not in 0..536870911");
    BAD(d.page_size = 257, HEWN_ERR_ARGUMENT, "page_size: 257 is not in 0..256");
    BAD(d.page_size = -1, HEWN_ERR_ARGUMENT, "page_size: -1 is not in 0..256");
    BAD(d.pages = 0, HEWN_ERR_ARGUMENT, "pages: 0 is not in 1..2147483647");
    BAD(d.table_width = 4, HEWN_ERR_ARGUMENT,
        "table_width: 4 is less than the 5 pages of 300 keys");
    BAD(d.table_width = 1LL << 30, HEWN_ERR_ARGUMENT, "table_width: 1073741824 is not in 0..");
    BAD((d.batch = 1 << 20, d.length = 1 << 20, d.table_width = 1 << 14, d.page_size = 256),
        HEWN_ERR_ARGUMENT, "table_width: 16384 is not in 0..2047");
    BAD((d.page_size = 0, d.batch = 1 << 20, d.length = 1 << 18), HEWN_ERR_LIMIT,
        "batch, length: 1048576 sequences of 262144 keys are more blocks than the kernel can");
}

static void options(hewn_context *context)
{
    BAD(d.in = HEWN_F32, HEWN_ERR_ARGUMENT, "in: dtype 0 (f32) is neither bf16 nor f16");
    BAD(d.in = HEWN_E4M3, HEWN_ERR_ARGUMENT, "in: dtype 3 (e4m3) is neither bf16 nor f16");
    BAD(d.out = HEWN_E4M3, HEWN_ERR_ARGUMENT, "out: dtype 3 (e4m3) is none of f32, f16, bf16");
    BAD(d.out = 77, HEWN_ERR_ARGUMENT, "out: dtype 77 (unknown) is none of f32, f16, bf16");
    BAD(d.cache = 3, HEWN_ERR_ARGUMENT, "cache: 3 is not in 0..2");
    BAD((d.cache = HEWN_MLA_CACHE_584, d.in = HEWN_F16), HEWN_ERR_ARGUMENT,
        "in: dtype 1 (f16) is not bf16, as packed records ask");
    BAD((d.cache = HEWN_MLA_CACHE_584, d.kv_token = 584), HEWN_ERR_ARGUMENT,
        "kv_token: 584 B is not 576 B, a row of data of a record of 584 B");
    BAD((d.cache = HEWN_MLA_CACHE_584, d.kv_batch = 37360), HEWN_ERR_ARGUMENT,
        "kv_batch: 37360 B is less than the 37376 B of a page of 64 records");
    BAD((d.cache = HEWN_MLA_CACHE_584, d.kv_batch = 37377), HEWN_ERR_ARGUMENT,
        "kv_batch: 37377 B is not a multiple of 16 B");
    BAD((d.cache = HEWN_MLA_CACHE_584, d.kv_batch = 1LL << 39, d.pages = INT32_MAX), HEWN_ERR_LIMIT,
        "kv: reaches past 2^64 B");
    BAD((d.cache = HEWN_MLA_CACHE_584, d.pages = INT32_MAX), HEWN_ERR_LIMIT,
        "read by lists or of packed records, are more than 68719476704 B");
    BAD((d.cache = HEWN_MLA_CACHE_656, d.in = HEWN_F16), HEWN_ERR_ARGUMENT,
        "in: dtype 1 (f16) is not bf16, as packed records ask");
    BAD((d.cache = HEWN_MLA_CACHE_656, d.kv_token = 664), HEWN_ERR_ARGUMENT,
        "kv_token: 664 B is not a multiple of 16 B");
    BAD((d.cache = HEWN_MLA_CACHE_656, d.pages = INT32_MAX), HEWN_ERR_LIMIT,
        "read by lists or of packed records, are more than 68719476704 B");
    BAD(d.lengths = 2, HEWN_ERR_ARGUMENT, "lengths: 2 is not in 0..1");
    BAD(d.causal = -1, HEWN_ERR_ARGUMENT, "causal: -1 is not in 0..1");
    BAD(d.sink = 2, HEWN_ERR_ARGUMENT, "sink: 2 is not in 0..1");
    BAD(d.scale = -1, HEWN_ERR_ARGUMENT, "scale: -1 times log2(e) is not above 0");
    BAD(d.scale = (double)NAN, HEWN_ERR_ARGUMENT, "scale: nan times log2(e) is not above 0");
    BAD(d.scale = 1e39, HEWN_ERR_ARGUMENT, "scale: 1e+39 times log2(e) is not above 0");
}

/* The same problem by lists of 100 entries. */
#define BAD_LISTS(change, status, words) \
    BAD((d.list_width = 100, d.length = 0, d.table_width = 0, change), status, words)

static void lists(hewn_context *context)
{
    BAD(d.list_width = -1, HEWN_ERR_ARGUMENT, "list_width: -1 is not in 0..536870911");
    BAD(d.list_stride = 8, HEWN_ERR_ARGUMENT, "list_stride, without lists: 8 is not in 0..0");
    BAD_LISTS(d.list_stride = 99, HEWN_ERR_ARGUMENT, "list_stride: 99 is not in 100..2147483647");
    BAD_LISTS(d.q_length = (1 << 20) + 1, HEWN_ERR_ARGUMENT,
              "q_length: 1048577 is not in 1..1048576");
    BAD_LISTS((d.q_length = 1 << 20, d.batch = 1 << 11), HEWN_ERR_LIMIT,
              "batch, q_length: 2048 times 1048576 is not below 2^31");
    BAD_LISTS((d.q_length = 1 << 20, d.batch = 1 << 10, d.list_width = 1 << 16), HEWN_ERR_LIMIT,
              "batch, q_length, list_width: 1073741824 queries of 65536 keys are more blocks");
    BAD_LISTS(d.table_width = 5, HEWN_ERR_ARGUMENT, "table_width, with lists: 5 is not in 0..0");
    BAD_LISTS(d.length = 300, HEWN_ERR_ARGUMENT,
              "length, with lists of a pool: 300 is not in 0..0");
    BAD_LISTS(d.causal = 1, HEWN_ERR_ARGUMENT, "causal, with lists: 1 is not in 0..0");
    BAD_LISTS(d.lengths = 3, HEWN_ERR_ARGUMENT, "lengths: 3 is not in 0..2");
}

/* And with second lists of 50 entries, of pages of 16. */
#define BAD_EXTRA(change, status, words)                                                       \
    BAD_LISTS((d.extra_width = 50, d.extra_page_size = 16, d.extra_pages = 9, change), status, \
              words)

static void second_caches(hewn_context *context)
{
    BAD(d.invariant = 2, HEWN_ERR_ARGUMENT, "invariant: 2 is not in 0..1");
    BAD(d.reserved = 1, HEWN_ERR_ARGUMENT, "reserved: 1 is not in 0..0");
    BAD(d.extra_width = 8, HEWN_ERR_ARGUMENT, "extra_width, without lists: 8 is not in 0..0");
    BAD_LISTS(d.extra_width = -1, HEWN_ERR_ARGUMENT, "extra_width: -1 is not in 0..536870811");
    BAD_LISTS(d.extra_width = (1 << 29) - 100, HEWN_ERR_ARGUMENT,
              "extra_width: 536870812 is not in 0..536870811");
    BAD_LISTS(d.extra_stride = 8, HEWN_ERR_ARGUMENT,
              "extra_stride: 8 without a second cache is not 0");
    BAD_LISTS(d.extra_pages = 8, HEWN_ERR_ARGUMENT,
              "extra_pages: 8 without a second cache is not 0");
    BAD_LISTS(d.extra_cache = 2, HEWN_ERR_ARGUMENT,
              "extra_cache: 2 without a second cache is not 0");
    BAD_EXTRA(d.extra_stride = 49, HEWN_ERR_ARGUMENT, "extra_stride: 49 is not in 50..2147483647");
    BAD_EXTRA(d.extra_lengths = 3, HEWN_ERR_ARGUMENT, "extra_lengths: 3 is not in 0..2");
    BAD_EXTRA(d.extra_cache = HEWN_MLA_CACHE_656, HEWN_ERR_ARGUMENT,
              "extra_cache: 1 is not 0, as cache is");
    BAD_EXTRA(d.extra_page_size = 257, HEWN_ERR_ARGUMENT, "extra_page_size: 257 is not in 0..256");
    BAD_EXTRA(d.extra_pages = -1, HEWN_ERR_ARGUMENT, "extra_pages: -1 is not in 0..2147483647");
    BAD_EXTRA(d.extra_page_size = 0, HEWN_ERR_ARGUMENT, "extra_pages: 9 is not in 0..0");
    BAD_EXTRA(d.extra_length = 9, HEWN_ERR_ARGUMENT, "extra_length: 9 is not in 0..0");
    BAD_EXTRA(d.extra_token = 580, HEWN_ERR_ARGUMENT,
              "extra_token: 1160 B is not a multiple of 16 B");
    BAD_EXTRA(d.extra_batch = -8, HEWN_ERR_ARGUMENT, "extra_batch: -8 elements is negative");
    BAD_EXTRA((d.cache = d.extra_cache = HEWN_MLA_CACHE_584, d.extra_token = 592),
              HEWN_ERR_ARGUMENT, "extra_token: 592 B is not 576 B");
    BAD_EXTRA(d.extra_pages = 1 << 24, HEWN_ERR_LIMIT,
              "extra: 309237645312 B, read by lists or of packed records, are more than");
}

static void strides(hewn_context *context)
{
    BAD(d.q_head = -8, HEWN_ERR_ARGUMENT, "q_head: -8 elements is negative");
    BAD(d.q_head = 577, HEWN_ERR_ARGUMENT, "q_head: 1154 B is not a multiple of 16 B");
    BAD(d.q_batch = 1LL << 40, HEWN_ERR_ARGUMENT,
        "q_batch: 1099511627776 elements of 2 B is not below 2^40 B");
    BAD(d.q_token = 16 * 576 + 8, HEWN_ERR_ARGUMENT,
        "q_token: 18448 B is not q_heads, 16, times q_head, 1152 B");
    BAD(d.kv_token = 580, HEWN_ERR_ARGUMENT, "kv_token: 1160 B is not a multiple of 16 B");
    BAD(d.kv_batch = -8, HEWN_ERR_ARGUMENT, "kv_batch: -8 elements is negative");
    BAD((d.pages = INT32_MAX, d.kv_batch = 1LL << 38), HEWN_ERR_LIMIT, "kv: reaches past 2^64 B");
    BAD(d.o_head = 256, HEWN_ERR_ARGUMENT,
        "o_head: 512 B makes rows of O overlap: what it steps over covers 1024 B");
    BAD(d.o_token = 512, HEWN_ERR_ARGUMENT, "o_token: 1024 B makes rows of O overlap");
    BAD(d.o_batch = 512, HEWN_ERR_ARGUMENT, "makes rows of O overlap");
    BAD(d.o_head = 516, HEWN_ERR_ARGUMENT, "o_head: 1032 B is not a multiple of 16 B");
}

/* ---- addresses -- */

static hewn_mla_args good_args(void)
{
    return (hewn_mla_args){.struct_size = sizeof(hewn_mla_args),
                           .q = AT_Q,
                           .kv = AT_KV,
                           .o = AT_O,
                           .lse = AT_LSE,
                           .lengths = AT_MORE,
                           .table = AT_MORE + 64,
                           .workspace = AT_WORK};
}

#define BAD_RUN(change, words)                                                                  \
    do {                                                                                        \
        hewn_mla_args a = good_args();                                                          \
        change;                                                                                 \
        REFUSE("mla run: " #change, hewn_mla_plan_run(plan, &a, NULL, &err), HEWN_ERR_ARGUMENT, \
               words);                                                                          \
    } while (0)

static void addresses(hewn_context *context)
{
    hewn_mla_desc d = good_mla();
    hewn_mla_plan *plan = NULL;
    hewn_error why = {0};
    if (hewn_mla_plan_create(context, &d, &plan, &why)) {
        if (test_case("mla: a plan")) CHECK(0, "%s", why.message);
        return;
    }
    BAD_RUN(a.struct_size = 0, "hewn_mla_args: struct_size 0");
    BAD_RUN(a.q = 0, "q: address must not be 0");
    BAD_RUN(a.q += 8, "q: address 0x10000008 is not a multiple of 16");
    BAD_RUN(a.kv = 0, "kv: address must not be 0");
    BAD_RUN(a.kv += 2, "kv: address 0x20000002 is not a multiple of 16");
    BAD_RUN(a.o = 0, "o: address must not be 0");
    BAD_RUN(a.lse += 2, "lse: address 0x40000002 is not a multiple of 4");
    BAD_RUN(a.lengths = 0, "lengths: address must not be 0");
    BAD_RUN(a.table = 0, "table: address must not be 0");
    BAD_RUN(a.lists = AT_MORE, "lists: address 0x60000000 must be 0, because the plan uses none");
    BAD_RUN(a.extra_kv = AT_MORE,
            "extra_kv: address 0x60000000 must be 0, because the plan uses none");
    BAD_RUN(a.extra_lists = AT_MORE,
            "extra_lists: address 0x60000000 must be 0, because the plan uses none");
    BAD_RUN(a.sink = AT_MORE, "sink: address 0x60000000 must be 0, because the plan uses none");
    BAD_RUN(a.workspace = 0, "workspace: address must not be 0");
    BAD_RUN(a.o = AT_Q, "o: 65536 B at 0x10000000 overlap q, 73728 B at 0x10000000");
    BAD_RUN(a.o = AT_KV + 64, "o: 65536 B at 0x20000040 overlap kv, 737280 B at 0x20000000");
    BAD_RUN(a.lse = AT_O + 1024, "lse: 256 B at 0x30000400 overlap o, 65536 B at 0x30000000");
    BAD_RUN(a.workspace = AT_KV, "overlap kv, 737280 B at 0x20000000");
    BAD_RUN(a.q = UINT64_MAX - 15, "run past the end of memory");
    REFUSE("mla run: no plan", hewn_mla_plan_run(NULL, &(hewn_mla_args){0}, NULL, &err),
           HEWN_ERR_ARGUMENT, "plan: must not be NULL");
    REFUSE("mla describe: no plan", hewn_mla_plan_describe(NULL, NULL, &err), HEWN_ERR_ARGUMENT,
           "plan: must not be NULL");
    hewn_mla_plan_destroy(plan);
}

/* Of a plan with a second cache. */
static void extra_addresses(hewn_context *context)
{
    hewn_mla_desc d = good_mla();
    hewn_mla_plan *plan = NULL;
    hewn_error why = {0};
    d.list_width = d.extra_width = 100;
    d.length = d.table_width = 0;
    d.extra_length = 500;
    d.extra_lengths = 1;
    if (hewn_mla_plan_create(context, &d, &plan, &why)) {
        if (test_case("mla: a plan with a second cache")) CHECK(0, "%s", why.message);
        return;
    }
#define BAD_EXTRA_RUN(change, words)                                            \
    BAD_RUN((a.table = 0, a.lists = AT_MORE + 64, a.extra_lists = AT_MORE + 64, \
             a.extra_lengths = AT_MORE, a.extra_kv = AT_MORE + 1024, change),   \
            words)
    BAD_EXTRA_RUN(a.extra_kv = 0, "extra_kv: address must not be 0");
    BAD_EXTRA_RUN(a.extra_kv += 8, "extra_kv: address 0x60000408 is not a multiple of 16");
    BAD_EXTRA_RUN(a.extra_lists = 0, "extra_lists: address must not be 0");
    BAD_EXTRA_RUN(a.extra_lengths = 0, "extra_lengths: address must not be 0");
    BAD_EXTRA_RUN(a.extra_kv = AT_O, "o: 65536 B at 0x30000000 overlap extra_kv, 576000 B at");
    hewn_mla_plan_destroy(plan);
}

/* Caches without a row, of every kind, are legal. */
static void no_rows(hewn_context *context)
{
    for (int cache = HEWN_MLA_CACHE_PLAIN; cache <= HEWN_MLA_CACHE_584; cache++) {
        hewn_mla_desc d = good_mla();
        hewn_mla_plan *plan = NULL;
        hewn_error err = {0};
        d.cache = cache;
        d.length = d.page_size = d.pages = d.table_width = 0;
        CHECK(hewn_mla_plan_create(context, &d, &plan, &err) == HEWN_OK, "cache %d, no rows: %s",
              cache, err.message);
        hewn_mla_plan_destroy(plan);
    }
}

void mla(void)
{
    hewn_driver *driver;
    hewn_context *context;
    for (int major = 9; major <= 10; major++) { /* of both targets */
        context = attach_fake(&driver, major, 0);
        if (context) {
            shapes(context);
            options(context);
            strides(context);
            no_rows(context);
            addresses(context);
            extra_addresses(context);
        }
        detach_fake(driver, context);
    }
    context = attach_fake(&driver, 9, 0);
    if (context) {
        lists(context);
        second_caches(context);
        REFUSE("mla: no context",
               hewn_mla_plan_create(NULL, &(hewn_mla_desc){0}, &(hewn_mla_plan *){NULL}, &err),
               HEWN_ERR_ARGUMENT, "context: must not be NULL");
        REFUSE("mla: no out", hewn_mla_plan_create(context, &(hewn_mla_desc){0}, NULL, &err),
               HEWN_ERR_ARGUMENT, "out: must not be NULL");
    }
    detach_fake(driver, context);
    context = attach_fake(&driver, 12, 0);
    if (context)
        BAD(d.batch = 2, HEWN_ERR_NO_MODULE, "capability 12.0; shipped for: sm_90a, sm_100f");
    detach_fake(driver, context);
}
