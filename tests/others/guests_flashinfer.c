/*
 * flashinfer-ai/flashinfer: fp8 attention for Hopper, e4m3 inputs and f16 outputs, head dimension 128, causal, one
 * sequence. The structure is SinglePrefillParams of its attention/hopper/default_params.cuh.
 *
 * Rule for an output: a weight becomes e4m3 after it is multiplied by 448, half a step of 2^-4 of its value, or half
 * of e4m3's least number, 2^-10 / 448 of the row's largest weight. Sums of the tensor core keep 13 bits behind their
 * largest product, in scores and in outputs: 2^-7 for both. The output is rounded to f16, 2^-11.
 */
#include "guests.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 150, KEYS = 330, HEADS = 4, KEY_HEADS = 2, WIDTH = 128 };

struct single {
    void *q, *k, *v, *o;
    float *log_sums;
    struct {
        float soft_cap, scale;
        float *scale_q, *scale_k, *scale_v; /* this variant reads none */
    } more;
    int64_t q_row, k_row, v_row, o_row, q_head, k_head, v_head, o_head;
    int rows, keys, heads, key_heads, group, window_left;
    bool causal;
};

static void judge(const struct guest_values *q, const struct guest_values *k,
                  const struct guest_values *v, const struct single *s)
{
    const size_t outputs = (size_t)ROWS * HEADS;
    uint16_t *o = calloc(outputs * WIDTH, sizeof *o);
    float *logs = calloc(outputs, sizeof *logs);
    double want[WIDTH], absolute[WIDTH];

    if (!o || !logs) abort();
    guest_read(o, s->o, outputs * WIDTH * sizeof *o);
    guest_read(logs, s->log_sums, outputs * sizeof *logs);
    for (size_t i = 0; i < outputs && test_case_failures() < 8; i++) {
        const size_t head = i % HEADS, key_head = head / (HEADS / KEY_HEADS);
        const struct guest_row r = {.q = q->value + i * WIDTH,
                                    .k = k->value + key_head * WIDTH,
                                    .v = v->value + key_head * WIDTH,
                                    .k_pitch = KEY_HEADS * WIDTH,
                                    .v_pitch = KEY_HEADS * WIDTH,
                                    .width = WIDTH,
                                    .v_width = WIDTH,
                                    .count = (int)(i / HEADS) + 1 + KEYS - ROWS,
                                    .scale = (double)s->more.scale};
        const double log_sum = guest_attend(&r, want, absolute);
        CHECK(fabs(log_sum / log(2) - (double)logs[i]) <= 0x1p-7,
              "log-sum-exp %zu: want %.6g got %.6g", i, log_sum / log(2), (double)logs[i]);
        for (int d = 0; d < WIDTH && test_case_failures() < 8; d++) {
            /* The largest weight is at most 1, and |v| at most 1. */
            double rule =
                (0x1p-4 + 0x1p-7) * absolute[d] + 0x1p-10 / 448 * r.count + 0x1p-11 * fabs(want[d]);
            double got = f16_to_double(o[i * WIDTH + (size_t)d]);
            CHECK(fabs(got - want[d]) <= rule + 0x1p-24,
                  "output %zu, column %d: want %.6g got %.6g", i, d, want[d], got);
        }
    }
    free(o);
    free(logs);
}

static void single_prefill(void)
{
    struct guest_values q = guest_draw(HEWN_E4M3, (size_t)ROWS * HEADS * WIDTH, test_seed() + 4, 1);
    struct guest_values k =
        guest_draw(HEWN_E4M3, (size_t)KEYS * KEY_HEADS * WIDTH, test_seed() + 5, 1);
    struct guest_values v =
        guest_draw(HEWN_E4M3, (size_t)KEYS * KEY_HEADS * WIDTH, test_seed() + 6, 1);
    int (*run)(struct single *, void *stream);
    void *found = guest_function(
        "_ZN10flashinfer37SingleFP8PrefillWithKVCacheDispatchedILj128ELNS_8MaskModeE1ELb0ENS_"
        "20StandardFP8AttentionENS_19SinglePrefillParamsIN7cutlass12float_e4m3_tES5_NS4_"
        "6half_tEiEEEE9cudaErrorRT3_P11CUstream_st");

    memcpy(&run, &found, sizeof run);
    if (!test_case_failures()) {
        struct single s = {.q = guest_buffer(q.stored, q.count),
                           .k = guest_buffer(k.stored, k.count),
                           .v = guest_buffer(v.stored, v.count),
                           .o = guest_buffer(NULL, (size_t)ROWS * HEADS * WIDTH * 2),
                           .log_sums = guest_buffer(NULL, (size_t)ROWS * HEADS * 4),
                           .more = {.scale = 0.0884F},
                           .q_row = HEADS * WIDTH,
                           .k_row = KEY_HEADS * WIDTH,
                           .v_row = KEY_HEADS * WIDTH,
                           .o_row = HEADS * WIDTH,
                           .q_head = WIDTH,
                           .k_head = WIDTH,
                           .v_head = WIDTH,
                           .o_head = WIDTH,
                           .rows = ROWS,
                           .keys = KEYS,
                           .heads = HEADS,
                           .key_heads = KEY_HEADS,
                           .group = HEADS / KEY_HEADS,
                           .window_left = -1,
                           .causal = true};
        CHECK_INT(run(&s, NULL), 0);
        if (guest_finish()) judge(&q, &k, &v, &s);
    }
    guest_close();
    guest_values_free(&q);
    guest_values_free(&k);
    guest_values_free(&v);
}

void guests_flashinfer(void)
{
    if (test_case("FlashInfer: fp8 attention, causal, sm_90a") && guest_open("flashinfer90", 9))
        single_prefill();
}
