/*
 * A litmus test in the notation of Dat3M, made a kernel. All places are words of one buffer: variables first, then the
 * registers that the condition may ask for.
 */
#ifndef TESTS_LITMUS_DIR_TEXT_H
#define TESTS_LITMUS_DIR_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LITMUS_NAMES = 64,
    LITMUS_NAME = 24,
    LITMUS_THREADS = 8,
    LITMUS_STRIDE = 32, /* words from one place to the next */
    LITMUS_BYTES = 4 * LITMUS_STRIDE * LITMUS_NAMES
};

enum litmus_quantifier { LITMUS_EXISTS, LITMUS_NEVER, LITMUS_FORALL };

struct litmus_text {
    enum litmus_quantifier quantifier;
    bool loops;       /* some branch goes back */
    bool other_proxy; /* names a surface, a texture, constant memory or an alias */
    bool aliased;     /* of these, a surface or an alias: one place under two names */
    bool cached;      /* has a load through a texture or from constant memory */
    uint32_t ctas, block;
    char condition[1024];
    char refused[128]; /* why there is no kernel */
    struct litmus_name {
        char name[LITMUS_NAME]; /* "x", or "P1:r0" */
        uint32_t place, value;
    } names[LITMUS_NAMES];
    uint32_t name_count, place_count;
};

/* The kernel, with one parameter, the buffer's address; the caller's. NULL: see `refused`. */
char *litmus_translate(struct litmus_text *l, const char *source);
/* What the buffer holds at the start. */
void litmus_start(const struct litmus_text *l, uint32_t *memory);
/* Whether the condition is true of what the buffer holds at the end; -1: it asks for registers of a thread that has not
 * ended. */
int litmus_holds(const struct litmus_text *l, const uint32_t *memory);

#endif
