/*
 * One case of the attention tests: what hewn_attention_desc says, how its inputs are drawn, and the
 * text that names it, "in=bf16 qk=128 v=128 b=2 hq=8 hkv=2 sq=17 sk=1000 causal=1": fields that have
 * their initial value are left out, the order is free. attention --one TEXT runs one.
 */
#ifndef TESTS_ATTENTION_CASE_H
#define TESTS_ATTENTION_CASE_H

#include "lib/harness.h"

/* How values are drawn: all of about unit variance, K's as said. */
enum attention_pattern {
    PATTERN_NORMAL,
    PATTERN_RISING,   /* later keys are larger: the running maximum grows all along */
    PATTERN_SPIKES,   /* one key in 61 is 8 times as large: it jumps */
    PATTERN_SPECIALS, /* NaN and, where the dtype has it, infinity in a few rows of Q and K */
    PATTERN_STEPS,    /* scores rise by peak / 100 from each 128 keys to the next */
    PATTERN_JUMP,     /* scores of the last third of the keys are peak / 100 higher */
    PATTERNS,
    /* and what is never drawn at random: */
    PATTERN_OUTLIERS = PATTERNS, /* one value in 1,000 is 50 times as large */
    PATTERN_SHIFTED,             /* the mean of V is 1 */
    PATTERN_BELOW                /* as STEPS, from -40 on: all scores are negative */
};

/* Scales of e4m3 tensors. */
enum attention_scaling {
    SCALING_NONE,
    SCALING_TENSOR, /* from here on hewn_scales, one up */
    SCALING_HEAD,
    SCALING_KV_HEAD,
    SCALING_SEQUENCE_HEAD,
    SCALING_SEQUENCE_KV_HEAD
};

struct attention_case_source {
    int64_t keys; /* hewn_keys */
    int64_t sk, page, causal, left, right;
    int64_t win; /* longest of windows[], 0: none; negative: windows[] of 0 too */
};

struct attention_case {
    int64_t in, out; /* hewn_dtype */
    int64_t kv;      /* the same of K and V, 0: as in */
    int64_t qk, v, b, hq, hkv, sq;
    int64_t packed; /* Q and O packed */
    int64_t ragged; /* lengths: 0 all the longest, 1 drawn from 1.., 2 some of them 0 */
    int64_t tail;   /* rows of a packing behind its last sequence */
    int64_t layout; /* hewn_layout */
    int64_t pad;    /* 0: contiguous, strides left to the library; else strides drawn from this */
    int64_t scale;  /* thousandths; 0: 1 / sqrt(qk) */
    int64_t peak;   /* per cent: Q is this much larger, except where the pattern uses it */
    int64_t sink, unnorm, lse;
    int64_t tree;                   /* 1: masks of the last sq keys */
    int64_t inv;                    /* 1: bits of a sequence depend on it alone */
    int64_t cap;                    /* soft cap in hundredths; 0: none */
    int64_t fade;                   /* 1: rows of Q are divided by powers of two, up to 2^120 */
    int64_t qs, ks, vs;             /* attention_scaling */
    int64_t sgap;                   /* scales between those of a sequence and of the next */
    int64_t os;                     /* 1: a scale of e4m3 outputs */
    int64_t promo;                  /* promotion; 0: never, with e4m3 inputs */
    int64_t vt;                     /* 1: V as columns */
    int64_t pack, splits, schedule; /* hewn_schedule */
    int64_t pattern;                /* attention_pattern */
    int64_t data;                   /* seed of everything drawn */
    int64_t sources;
    struct attention_case_source source[2];
};

void attention_case_init(struct attention_case *c);
enum { ATTENTION_TEXT = 480 };
/* The case as text; the result is `text`. */
const char *attention_case_print(const struct attention_case *c, char text[ATTENTION_TEXT]);
/* False, with the word that is not understood in `word`, when the text is none. */
bool attention_case_parse(struct attention_case *c, const char *text, char word[64]);

#endif
