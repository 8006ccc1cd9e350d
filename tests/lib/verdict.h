/* The checker's verdicts on a test's launches, from the simulator's report. */
#ifndef TESTS_VERDICT_H
#define TESTS_VERDICT_H

#include <stdbool.h>

/* Before a driver is opened: the report goes to a file of this process, unless the environment already
 * names one. */
void verdict_begin(const char *program);
void verdict_end(void);

/* Fails the current case unless every verdict since the last call is clean and, with `launched`, there
 * is one. `outside`: boxes outside a tensor may be named. */
void verdict_check(bool launched, bool outside);

#endif
