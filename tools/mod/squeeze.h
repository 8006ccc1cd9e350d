/* The LZMA encoder: squeeze.c writes the stream, parse.c chooses its steps. */
#ifndef MOD_SQUEEZE_H
#define MOD_SQUEEZE_H

#include "lzma.h"

#include <stddef.h>
#include <stdint.h>

/* A literal, or a match of `length` bytes: at one of the last four distances, or at another one. */
struct step {
    uint32_t length;
    uint32_t which; /* STEP_LITERAL; 0 to 3: that distance; otherwise distance - 1 + STEP_MATCH */
};
enum { STEP_MATCH = 4 };
#define STEP_LITERAL UINT32_MAX

/* What the steps before a position leave for the next one. */
struct history {
    unsigned state;
    uint32_t distance[4]; /* less 1, the last one first */
};

struct coder {
    const uint8_t *data;
    size_t size;
    unsigned lc, lp, pb;
    struct history now;
    struct lzma_model model;
    int pricing; /* 1: bits are not written, their price is added to `price` */
    uint32_t price;
    uint64_t low; /* the range coder: a carry may still run into the bytes that wait */
    uint32_t range;
    uint8_t waiting;
    size_t waiting_count;
    uint8_t *out;
    size_t written;
};

enum { PRICE_BIT = 16 }; /* the price of one bit at even odds */

void history_step(struct history *history, const struct step *step);

/* Writes one step at position `at`, or adds its price. */
void code_step(struct coder *c, const struct history *history, size_t at, const struct step *step);
/* Parts of a step's price that parse.c keeps in tables. */
uint32_t price_length(struct coder *c, int again, unsigned position, uint32_t length);
uint32_t price_distance(struct coder *c, uint32_t length, uint32_t distance);
/* The bits before a match's length: that it is one, and at which of the last distances. */
uint32_t price_kind(struct coder *c, const struct history *history, unsigned position,
                    const struct step *step);

/* Compresses data[0..size) into out, which has room for squeeze_room(size) bytes. Returns the bytes
 * written, 0 when memory is short. */
size_t squeeze(const uint8_t *data, size_t size, unsigned lc, unsigned lp, unsigned pb,
               uint8_t *out);
size_t squeeze_room(size_t size);

/* parse.c: chooses and writes every step. Returns 0, or -1 when memory is short. */
int parse(struct coder *c);

#endif
