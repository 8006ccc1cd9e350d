/*
 * One word of D of a tensor-core product on a B200, bit for bit: a scalar model in integers, written from
 * the published rules (tools/sim/SEMANTICS.md, "Sums") and sharing nothing with the simulator.
 */
#ifndef TESTS_MMA_WORDS_H
#define TESTS_MMA_WORDS_H

#include <stdbool.h>
#include <stdint.h>

enum { WORDS_MAX_K = 64, WORDS_SCALES = 4 };

enum word_format {
    WF_F16,
    WF_BF16,
    WF_TF32,
    WF_E4M3,
    WF_E5M2,
    WF_E2M3,
    WF_E3M2,
    WF_E2M1,
    WF_U8,
    WF_S8
};

/* Unscaled kinds, mxf8f6f4, then the 4-bit ones. */
enum word_rule { WR_PLAIN, WR_INTEGER, WR_MX8, WR_MX4, WR_NV4 };

struct word_form {
    const char *name, *kind;
    enum word_rule rule;
    enum word_format a, b;
    uint32_t k, scales; /* scales: factors along k */
    bool half_d, saturate;
};

/* Codes as they are in memory, the lowest bits of each word; bf16 in 16 bits, tf32 in 32. */
struct word_case {
    uint32_t a[WORDS_MAX_K], b[WORDS_MAX_K], c;
    uint8_t sa[WORDS_SCALES], sb[WORDS_SCALES];
};

uint32_t word_format_bits(enum word_format format);
uint32_t word_of(const struct word_form *f, const struct word_case *c);

#endif
