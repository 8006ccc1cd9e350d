/*
 * deepseek-ai/FlashMLA: dense decode on sm_90a with its scheduler and its combine kernel, and sparse prefill on
 * sm_100. The structures are those of its csrc/params.h at the commit of others.md.
 *
 * Rule for an output: P is rounded to bf16 and the sum once more, half a step of 2^-9 each, so
 * |error| <= 2^-8 sum p |v|, and 1e-5 for exponentials and fp32 sums.
 */
#include "guests.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 576, V_WIDTH = 512, PAGE = 64 };

static const double out_rule = 0x1p-8, slack = 1e-5, log_rule = 1e-4;

static void judge(const struct guest_row *r, const uint16_t *got, float got_log, double empty_log,
                  const char *what)
{
    double o[V_WIDTH], absolute[V_WIDTH], want_log = guest_attend(r, o, absolute);

    if (!r->count) want_log = empty_log;
    CHECK(isinf(want_log) ? (double)got_log == want_log
                          : fabs(want_log - (double)got_log) <= log_rule,
          "%s: log-sum-exp: want %.6g got %.6g", what, want_log, (double)got_log);
    for (int d = 0; d < r->v_width && test_case_failures() < 8; d++) {
        double x = bf16_to_double(got[d]);
        CHECK(fabs(x - o[d]) <= out_rule * absolute[d] + slack, "%s, column %d: want %.6g got %.6g",
              what, d, o[d], x);
    }
}

/* ---- dense decode ---- */

struct dense {
    int batch, rows, rows_per_key_head, width, v_width, heads, key_heads, pages, heads_per_key_head;
    bool causal;
    float scale, scale_log2;
    void *q, *k, *o;
    float *log_sums;
    int64_t q_batch, k_batch, o_batch, q_row, k_row, o_row, q_head, k_head, o_head;
    int *table;
    int64_t table_batch;
    int page_rows;
    int *lengths;
    void *plan;
    int parts;
    int *splits;
    int total_splits;
    float *partial_logs, *partial_o;
    void *stream;
};
struct combine {
    int batch, rows, heads, v_width;
    float *log_sums;
    void *o;
    int log_batch, log_row, o_batch, o_row, o_head;
    float *partial_logs, *partial_o;
    int partial_log_split, partial_log_row, partial_split, partial_row, partial_head;
    void *plan;
    int *splits;
    int parts;
    float *sink;
    void *stream;
};
struct schedule {
    int batch, rows, block_rows, fixed_blocks, topk, extra_topk;
    int *topk_length, *extra_topk_length, *lengths;
    void *plan;
    int *splits;
    int parts;
    void *stream;
};
enum {
    BATCH = 3,
    ROWS = 2,
    HEADS = 32,
    TABLE = 6,
    PAGES = BATCH * TABLE,
    PARTS = 5,
    PLAN_INTS = 8
};

struct dense_problem {
    struct guest_values q, cache;
    int table[BATCH * TABLE], lengths[BATCH];
};

static void judge_dense(const struct dense_problem *p, const struct dense *d)
{
    const size_t outputs = (size_t)BATCH * ROWS * HEADS;
    uint16_t *o = calloc(outputs * V_WIDTH, sizeof *o);
    float *logs = calloc(outputs, sizeof *logs);
    int keys[TABLE * PAGE];

    if (!o || !logs) abort();
    guest_read(o, d->o, outputs * V_WIDTH * sizeof *o);
    guest_read(logs, d->log_sums, outputs * sizeof *logs);
    for (size_t i = 0; i < outputs; i++) {
        const int b = (int)(i / (ROWS * HEADS)), row = (int)(i / HEADS % ROWS);
        const int seen = p->lengths[b] - (ROWS - 1 - row);
        const struct guest_row r = {.q = p->q.value + i * WIDTH,
                                    .k = p->cache.value,
                                    .v = p->cache.value,
                                    .k_pitch = WIDTH,
                                    .v_pitch = WIDTH,
                                    .width = WIDTH,
                                    .v_width = V_WIDTH,
                                    .keys = keys,
                                    .count = seen,
                                    .scale = (double)d->scale};
        for (int j = 0; j < seen; j++) keys[j] = p->table[b * TABLE + j / PAGE] * PAGE + j % PAGE;
        judge(&r, o + i * V_WIDTH, logs[i], (double)INFINITY, "dense decode");
    }
    free(o);
    free(logs);
}

/* Every structure from one problem, as the project's own api/dense_decode.h fills them. */
static struct dense describe(const struct dense_problem *p)
{
    const size_t outputs = (size_t)BATCH * ROWS * HEADS,
                 partial = (size_t)(BATCH + PARTS) * ROWS * HEADS;

    return (struct dense){.batch = BATCH,
                          .rows = ROWS,
                          .rows_per_key_head = ROWS * HEADS,
                          .width = WIDTH,
                          .v_width = V_WIDTH,
                          .heads = HEADS,
                          .key_heads = 1,
                          .pages = PAGES,
                          .heads_per_key_head = HEADS,
                          .causal = true,
                          .scale = 0.0416F,
                          .scale_log2 = 0.0416F * 1.44269504F,
                          .q = guest_buffer(p->q.stored, p->q.count * 2),
                          .k = guest_buffer(p->cache.stored, p->cache.count * 2),
                          .o = guest_buffer(NULL, outputs * V_WIDTH * 2),
                          .log_sums = guest_buffer(NULL, outputs * 4),
                          .q_batch = (int64_t)ROWS * HEADS * WIDTH,
                          .k_batch = (int64_t)PAGE * WIDTH,
                          .o_batch = (int64_t)ROWS * HEADS * V_WIDTH,
                          .q_row = WIDTH,
                          .k_row = WIDTH,
                          .o_row = V_WIDTH,
                          .q_head = WIDTH,
                          .k_head = WIDTH,
                          .o_head = (int64_t)ROWS * HEADS * V_WIDTH,
                          .table = guest_buffer(p->table, sizeof p->table),
                          .table_batch = TABLE,
                          .page_rows = PAGE,
                          .lengths = guest_buffer(p->lengths, sizeof p->lengths),
                          .plan = guest_buffer(NULL, (size_t)PARTS * PLAN_INTS * sizeof(int)),
                          .parts = PARTS,
                          .splits = guest_buffer(NULL, (BATCH + 1) * sizeof(int)),
                          .total_splits = BATCH + PARTS,
                          .partial_logs = guest_buffer(NULL, partial * 4),
                          .partial_o = guest_buffer(NULL, partial * V_WIDTH * 4)};
}

static struct combine combine_of(const struct dense *d)
{
    const int row = HEADS * V_WIDTH;

    return (struct combine){.batch = BATCH,
                            .rows = ROWS,
                            .heads = HEADS,
                            .v_width = V_WIDTH,
                            .log_sums = d->log_sums,
                            .o = d->o,
                            .log_batch = ROWS * HEADS,
                            .log_row = HEADS,
                            .o_batch = ROWS * row,
                            .o_row = row,
                            .o_head = V_WIDTH,
                            .partial_logs = d->partial_logs,
                            .partial_o = d->partial_o,
                            .partial_log_split = ROWS * HEADS,
                            .partial_log_row = HEADS,
                            .partial_split = ROWS * row,
                            .partial_row = row,
                            .partial_head = V_WIDTH,
                            .plan = d->plan,
                            .splits = d->splits,
                            .parts = PARTS};
}

/* Three sequences, scattered pages; splits over five parts; the last rows are causal. */
static void dense_decode(void)
{
    struct dense_problem p = {
        .q = guest_draw(HEWN_BF16, (size_t)BATCH * ROWS * HEADS * WIDTH, test_seed(), 1),
        .cache = guest_draw(HEWN_BF16, (size_t)PAGES * PAGE * WIDTH, test_seed() + 1, 1),
        .lengths = {TABLE * PAGE, 65, 200}};
    void (*plan)(struct schedule *), (*decode)(struct dense *), (*combine)(struct combine *);
    void *found[] = {
        guest_function(
            "_ZN4smxx6decode34run_get_decoding_sched_meta_kernelER24GetDecodeSchedMetaParams"),
        guest_function("_ZN4sm9028run_flash_splitkv_mla_kernelIN7cutlass10bfloat16_"
                       "tEEEvR21DenseAttnDecodeParams"),
        guest_function("_ZN4smxx6decode28run_flash_mla_combine_kernelIN7cutlass10bfloat16_"
                       "tEEEvR13CombineParams")};

    for (int i = 0; i < PAGES; i++) p.table[i] = (i * 7 + 3) % PAGES;
    memcpy(&plan, &found[0], sizeof plan);
    memcpy(&decode, &found[1], sizeof decode);
    memcpy(&combine, &found[2], sizeof combine);
    if (!test_case_failures()) {
        struct dense d = describe(&p);
        struct combine c = combine_of(&d);
        struct schedule s = {.batch = BATCH,
                             .rows = ROWS,
                             .block_rows = PAGE,
                             .fixed_blocks = 1,
                             .topk = -1,
                             .extra_topk = -1,
                             .lengths = d.lengths,
                             .plan = d.plan,
                             .splits = d.splits,
                             .parts = PARTS};
        plan(&s);
        decode(&d);
        combine(&c);
        if (guest_finish()) judge_dense(&p, &d);
    }
    guest_close();
    guest_values_free(&p.q);
    guest_values_free(&p.cache);
}

/* ---- sparse prefill ---- */

struct sparse {
    int rows, keys, heads, key_heads, width, v_width, topk;
    float scale, scale_log2;
    void *q, *kv;
    int *indices;
    float *sink;
    int *topk_length;
    int q_row, q_head, kv_row, kv_head, index_row, index_head;
    void *o;
    float *most, *log_sums;
    int sms;
    void *stream;
};
enum { S_ROWS = 3, S_KEYS = 300, S_HEADS = 64, S_WIDTH = 512, S_TOPK = 192 };

/* Every third entry of the list is nonsense, which counts as no key; the last row has nothing else. */
static void draw_lists(int *list)
{
    struct rng r = {test_seed() + 9};

    for (int row = 0; row < S_ROWS; row++) {
        for (int i = 0; i < S_TOPK; i++) {
            int key = (int)rng_below(&r, S_KEYS);
            bool none = i % 3 == 1 || row == S_ROWS - 1;
            list[row * S_TOPK + i] = !none ? key : i % 2 ? -1 : S_KEYS + key;
        }
    }
}

static void judge_sparse(const struct guest_values *q, const struct guest_values *kv,
                         const int *list, const struct sparse *s)
{
    const size_t outputs = (size_t)S_ROWS * S_HEADS;
    uint16_t *o = calloc(outputs * V_WIDTH, sizeof *o);
    float *logs = calloc(outputs, sizeof *logs);
    int keys[S_TOPK];

    if (!o || !logs) abort();
    guest_read(o, s->o, outputs * V_WIDTH * sizeof *o);
    guest_read(logs, s->log_sums, outputs * sizeof *logs);
    for (size_t i = 0; i < outputs; i++) {
        struct guest_row r = {.q = q->value + i * S_WIDTH,
                              .k = kv->value,
                              .v = kv->value,
                              .k_pitch = S_WIDTH,
                              .v_pitch = S_WIDTH,
                              .width = S_WIDTH,
                              .v_width = V_WIDTH,
                              .keys = keys,
                              .scale = (double)s->scale};
        for (int j = 0; j < S_TOPK; j++) {
            int key = list[i / S_HEADS * S_TOPK + (size_t)j];
            if (key >= 0 && key < S_KEYS) keys[r.count++] = key;
        }
        judge(&r, o + i * V_WIDTH, logs[i], (double)INFINITY, "sparse prefill");
    }
    free(o);
    free(logs);
}

static void sparse_prefill(void)
{
    struct guest_values q =
        guest_draw(HEWN_BF16, (size_t)S_ROWS * S_HEADS * S_WIDTH, test_seed() + 2, 1);
    struct guest_values kv = guest_draw(HEWN_BF16, (size_t)S_KEYS * S_WIDTH, test_seed() + 3, 1);
    int list[S_ROWS * S_TOPK];
    void (*run)(const struct sparse *);
    void *found = guest_function(
        "_ZN5sm1003fwd6head6421run_fwd_phase1_kernelILi512EEEvRK19SparseAttnFwdParams");

    memcpy(&run, &found, sizeof run);
    draw_lists(list);
    if (!test_case_failures()) {
        struct sparse s = {.rows = S_ROWS,
                           .keys = S_KEYS,
                           .heads = S_HEADS,
                           .key_heads = 1,
                           .width = S_WIDTH,
                           .v_width = V_WIDTH,
                           .topk = S_TOPK,
                           .scale = 0.0442F,
                           .scale_log2 = 0.0442F * 1.44269504F,
                           .q = guest_buffer(q.stored, q.count * 2),
                           .kv = guest_buffer(kv.stored, kv.count * 2),
                           .indices = guest_buffer(list, sizeof list),
                           .q_row = S_HEADS * S_WIDTH,
                           .q_head = S_WIDTH,
                           .kv_row = S_WIDTH,
                           .kv_head = S_WIDTH,
                           .index_row = S_TOPK,
                           .index_head = S_TOPK,
                           .o = guest_buffer(NULL, (size_t)S_ROWS * S_HEADS * V_WIDTH * 2),
                           .most = guest_buffer(NULL, (size_t)S_ROWS * S_HEADS * 4),
                           .log_sums = guest_buffer(NULL, (size_t)S_ROWS * S_HEADS * 4),
                           .sms = 148};
        run(&s);
        if (guest_finish()) judge_sparse(&q, &kv, list, &s);
    }
    guest_close();
    guest_values_free(&q);
    guest_values_free(&kv);
}

void guests_flashmla(void)
{
    if (test_case("FlashMLA: dense decode, bf16, sm_90a") && guest_open("flashmla90", 9))
        dense_decode();
    if (test_case("FlashMLA: sparse prefill, 64 heads of 512, sm_100") &&
        guest_open("flashmla100", 10))
        sparse_prefill();
}
