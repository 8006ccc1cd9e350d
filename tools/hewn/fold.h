/*
 * Reports of one program under several seeds, folded into one: a finding that came under more than one
 * seed stands once and says under which; each launch keeps its worst verdict, proved where it was under
 * every seed, else explored under so many. Launches are matched by
 * their order, findings by severity, kind, cause, kernel, place and object, as report.c does.
 */
#ifndef CLI_FOLD_H
#define CLI_FOLD_H

#include <stdint.h>
#include <stdio.h>

struct fold;

/* NULL when memory is exhausted. */
struct fold *fold_new(void);
/* Takes in the report of the run under `seed`: what the file holds from `start` on. 0, or 1 after cli_fail. */
int fold_add(struct fold *f, const char *path, long start, uint64_t seed);
/* Launch by launch: JSON lines of the report's form, findings with "seeds":[…] added, then the verdict. */
int fold_write(const struct fold *f, FILE *out);
/* The findings as text for people; `runs` seeds were tried. */
void fold_print(const struct fold *f, FILE *out, unsigned runs);
void fold_free(struct fold *f);

#endif
