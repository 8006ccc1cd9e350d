/* The numbers of the LZMA format. The unpacker and the packer (tools/mod/squeeze.c) share them. */
#ifndef HEWN_RUNTIME_LZMA_H
#define HEWN_RUNTIME_LZMA_H

#include <stdint.h>

enum {
    /* An adaptive bit: the probability that it is 0, in 1/2048, moves by 1/32 of what is missing. */
    LZMA_BITS = 11,
    LZMA_MOVE = 5,
    LZMA_EVEN = 1 << (LZMA_BITS - 1),
    /* The state says what the last steps were. Below 7 the last one was a literal. */
    LZMA_STATES = 12,
    LZMA_LITERAL_STATES = 7,
    LZMA_POSITIONS = 16, /* the low bits of a position that a probability may depend on, at most */
    LZMA_LEAST = 2,      /* bytes of a match */
    LZMA_LOW = 8,        /* lengths with 3 bits, as many with 3 others, the rest with 8 */
    LZMA_HIGH = 256,
    LZMA_MOST = LZMA_LEAST + 2 * LZMA_LOW + LZMA_HIGH - 1,
    /* Distances: a slot of 6 bits by the match's length, then the bits below the two highest. */
    LZMA_LENGTHS = 4,
    LZMA_SLOTS = 64,
    LZMA_SLOT_TREES = 14, /* from this slot on, all but the lowest 4 bits have no probability */
    LZMA_ALIGN = 16,
    LZMA_LITERAL = 0x300, /* probabilities of a literal in one context */
    LZMA_CONTEXTS_LOG = 4 /* lc + lp, at most */
};

struct lzma_length {
    uint16_t beyond_low, beyond_mid;
    uint16_t low[LZMA_POSITIONS][LZMA_LOW], mid[LZMA_POSITIONS][LZMA_LOW], high[LZMA_HIGH];
};

struct lzma_model {
    uint16_t match[LZMA_STATES][LZMA_POSITIONS]; /* 0: a literal */
    uint16_t again[LZMA_STATES];                 /* 1: at one of the last four distances; */
    uint16_t not_first[LZMA_STATES], not_second[LZMA_STATES], not_third[LZMA_STATES];
    uint16_t longer[LZMA_STATES][LZMA_POSITIONS]; /* 0: one byte at the first of them */
    struct lzma_length length, length_again;
    uint16_t slot[LZMA_LENGTHS][LZMA_SLOTS];
    uint16_t special[128]; /* bits of the slots 4 to 13 */
    uint16_t align[LZMA_ALIGN];
    uint16_t literal[LZMA_LITERAL << LZMA_CONTEXTS_LOG];
};

#endif
