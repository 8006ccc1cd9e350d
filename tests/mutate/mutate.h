/*
 * Mutants of a kernel's text: one small damage each to what synchronises it. mutate_text.c makes them by a
 * table of rules; mutate.c runs them under the simulator and counts which ones the checker names.
 */
#ifndef TESTS_MUTATE_H
#define TESTS_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
    size_t start, end;     /* this part of the kernel's text .. */
    char *instead;         /* .. is replaced by this */
    int first, last;       /* the statements that it changes */
    int index;             /* among all of the kernel */
    int nth;               /* among those of its rule, label and statement, from 0 */
};

/* Every mutant of `text`, in the order of the text. Returns how many, -1 after a message on stderr. */
int mutants_make(const char *text, struct mutant out[MUTANTS]);
/* Writes the whole kernel, mutated; NULL: as it is. */
void mutant_write(FILE *out, const char *text, const struct mutant *m);
void mutants_free(struct mutant *list, int count);

/* ---- what a case executes (mutate_cover.c) ---- */

enum {
    COVER_LAUNCHES = 64,
    COVER_STATEMENTS = 8192,
    COVER_STEP = 1000 /* lines from a statement's number to the next, so that long ones have room */
};

/* A statement of a kernel's text. */
struct cover_statement {
    char *key; /* its place in the source and its text: the same in every kernel of that source */
    uint64_t launches; /* bit n: the n-th launch of the case executes it */
    bool instruction;  /* the simulator has named it */
};

struct cover {
    struct cover_statement *statement;
    int statements;
};

/* The text with a marker before each statement, which gives it its number as a line; NULL after a message. The
 * statements go to `out`. */
char *cover_number(const char *text, struct cover *out);
/* Adds what a run wrote of such a text by HEWN_SIM_EXECUTED. 0, or -1 after a message. */
int cover_add(struct cover *c, const char *path);
/* The launches that execute what the mutant changes. */
uint64_t cover_launches(const struct cover *c, const struct mutant *m);
/* The lines for hewn run with these launches alone. Freed by the caller. */
char *cover_run(const char *run, uint64_t launches);
void cover_free(struct cover *c);

#endif
