/*
 * What mutate.c, mutate_tell.c and mutate_fates.c share: the kernels of a session, their mutants, and what became of
 * each.
 */
#ifndef TESTS_MUTATE_SESSION_H
#define TESTS_MUTATE_SESSION_H

#include "mutate.h"

#include <stdbool.h>
#include <stdio.h>

enum { SPARSE = 256, KERNELS = 160, REASONS = 1024, NAME = 96, PATH = 1024 };

/* How a mutant is asked: X(level, seed), one behind the other until something is found (completions by seed: mixed, early,
 * late, mixed, ..). The first is for one launch, where it is known which ones execute it; the rest for several.
 * Those behind the first few are not for what the ISA allows: what shows only where a try_wait gives up, or a warp
 * is far behind. At level 3 lanes may be; of what is said there only places count at which the kernel as it is is
 * clean. */
struct probe {
    const char *level, *seed;
};
enum { PROBES = 23, FIRST_PROBES = 5 };
extern const struct probe probes[PROBES];

/* The columns of the table; OPEN and those after it are printed each. */
enum fate {
    WAITING,
    FOUND,
    FOUND_LEVEL_2,
    REFUSED,
    IDENTICAL,
    LEGAL,
    IDLE, /* no launch of the case executes it: not asked */
    OPEN,
    UNDECIDED, /* identical or a survivor: there is no ptxas to tell */
    SURVIVED,
    FATES
};
struct result {
    enum fate fate;
    int probe;
    char said[NAME]; /* kind of the first finding, or how the run ended */
    const char *reason;
};

struct reason {
    enum { REASON_LEGAL, REASON_OPEN, REASON_NEVER } kind;
    bool used;
    char line[1024]; /* the fields below point into it */
    const char *target, *rule, *label, *pattern, *section, *why;
};

struct kernel {
    char name[NAME], target[16], *original, *run; /* run: the lines for hewn run */
    struct mutant *mutant;
    struct result *result;
    int mutants;
    struct cover cover; /* empty: not asked yet */
    bool *changed;      /* of each statement, whether some mutant changes it, asked for or not */
    uint64_t hash;      /* of the text and the case */
    bool clean[PROBES]; /* the original was asked by that probe, and is */
    bool noted;         /* `places` is complete */
    char places[PATH];  /* " FILE:LINE" of what is said of the original at level 3 */
};

struct options {
    const char *hewn, *modules, *cases, *ptxas, *only, *keep;
    char work[64];
    int sample, first;
    FILE *report, *fates;
    long jobs;
    bool verbose, cover, tell;
};

struct session {
    struct options o;
    struct kernel kernel[KERNELS];
    int kernels, skipped;
    struct reason reason[REASONS];
    int reasons;
};

/* ---- mutate.c ---- */

int write_text(const char *path, const struct kernel *k, const struct mutant *m, const char *run);
/* The first row of survivors.txt about the mutant, or NULL. */
struct reason *reason_for(struct session *s, const struct kernel *k, const struct mutant *m);
bool same_source(const struct kernel *a, const struct kernel *b);

/* ---- mutate_tell.c ---- */

extern const char *const fate_names[FATES];
extern const char *const class_names[MUTANT_CLASS_COUNT];
/* One mutant, to the file of --report; `lines`: what its last run printed. */
void report_mutant(const struct session *s, const struct kernel *k, int i, const char *lines);
void print_mutant(const struct session *s, const struct kernel *k, int i);
/* What no case executes and has no reason, and a line a case. Returns how many failures. */
int print_cases(struct session *s);
/* The tables and the closing lines. Returns the exit status. */
int report(struct session *s);

/* ---- mutate_fates.c: --fates ---- */

/* Takes what an earlier run wrote of the same texts and cases, and opens the file to add to it. 0, or -1 after a message. */
int fates_open(struct session *s, const char *path);
void fates_add(const struct session *s, const struct kernel *k, const struct mutant *m,
               const struct result *r);
void fates_add_clean(const struct session *s, const struct kernel *k, int probe);

#endif
