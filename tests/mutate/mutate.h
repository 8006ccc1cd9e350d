/*
 * Mutants of a kernel's text: one small damage each to what synchronises it. mutate_text.c makes them by a
 * table of rules; mutate.c runs them under the simulator and counts which ones the checker names.
 */
#ifndef TESTS_MUTATE_H
#define TESTS_MUTATE_H

#include <stddef.h>

enum { MUTANTS = 4096, MUTANT_TEXT = 320, MUTANT_LABEL = 48 };

/* X(name, what is changed) */
#define MUTANT_CLASSES(X)                                               \
    X(drop, "a fence, wait, arrival, commit, barrier or init left out") \
    X(weaken, "a weaker form of it")                                    \
    X(count, "a barrier's, group's or register count by one")           \
    X(bytes, "a byte total by one")                                     \
    X(parity, "the other parity")                                       \
    X(stage, "the neighbouring stage or barrier, a ring's bounds")      \
    X(offset, "a shared offset or TMEM column by one")                  \
    X(swap, "two neighbours the other way round")

enum mutant_class {
#define X(name, what) MUTANT_##name,
    MUTANT_CLASSES(X)
#undef X
        MUTANT_CLASS_COUNT
};

struct mutant {
    enum mutant_class class;
    const char *rule;
    char label[MUTANT_LABEL]; /* the label above */
    char file[96];            /* of the source, by the text's line markers */
    long line;
    char was[MUTANT_TEXT]; /* the statement, or the two that are swapped */
    char *text;            /* the whole kernel, mutated */
};

/* Every mutant of `text`, in the order of the text. Returns how many, -1 after a message on stderr. */
int mutants_make(const char *text, struct mutant out[MUTANTS]);
void mutants_free(struct mutant *list, int count);

#endif
