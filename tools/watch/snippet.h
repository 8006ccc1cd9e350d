/* The PTX that goes round a wait. Each text is one line, in braces where it declares registers. */
#ifndef WATCH_SNIPPET_H
#define WATCH_SNIPPET_H

#include "table.h"

#include "ptx/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
    const char *at;
    size_t length;
};

struct snippet {
    struct watch_addresses tables;
    uint32_t site, label; /* label: a number of its own in the module */
    uint32_t salt;        /* spreads the slots of kernels that run side by side */
    struct span guard;    /* predicate register, empty: none */
    bool guard_negated;
    bool flat;           /* blocks have one dimension */
    struct span insn;    /* without guard, with its semicolon */
    struct span done;    /* predicate that a poll sets; of a loop's branch: empty */
    struct span barrier; /* register, symbol or number; empty: none */
    bool barrier_is_symbol;
    struct span offset; /* constant expression; empty: 0 */
    struct span value;  /* parity or state; empty: none */
};

/* The counter that WATCH_TEST and WATCH_SPIN need, for the start of a function's body. */
#define SNIPPET_COUNTER " .reg .b32 hewn_watch_n; mov.b32 hewn_watch_n, 0; "

/* In place of the instruction; NULL: out of memory. */
char *snippet_try(struct arena *arena, const struct snippet *s);
char *snippet_test(struct arena *arena, const struct snippet *s);
char *snippet_block(struct arena *arena, const struct snippet *s);
/* Before a loop's backward branch, whose guard is the snippet's. */
char *snippet_spin(struct arena *arena, const struct snippet *s);

#endif
