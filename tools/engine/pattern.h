/*
 * Regular expressions, as far as the splitting patterns of tokenizers go: literals, sets, \p{..}
 * with general categories, \s \S \d \D \w \W, groups, (?i:..), look-ahead, alternatives, and the
 * greedy repeats ? * + {n,m}; of a group ? alone. Alternatives are tried in order, as in Oniguruma
 * and Perl. Anything else is refused by name.
 */
#ifndef ENGINE_PATTERN_H
#define ENGINE_PATTERN_H

#include "problem.h"

#include <stdbool.h>
#include <stddef.h>

struct pattern;

/* NULL after a message, which begins with `what`. */
struct pattern *pattern_compile(const char *text, size_t length, const char *what,
                                struct problem *p);
void pattern_free(struct pattern *pattern);
/* The first match in valid UTF-8 that begins at `from` or behind; false where there is none. */
bool pattern_find(const struct pattern *pattern, const char *text, size_t length, size_t from,
                  size_t *begin, size_t *end);

#endif
