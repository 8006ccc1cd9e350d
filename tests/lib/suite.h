/* What the programs of kernel tests share: options of their own, a device, the checker's verdicts. */
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include "lib/device.h"

/* Take an option of the program's own out of the arguments: a flag; an option with a number, 0 where it is
 * not given. A number is noted in argv[0], for the rerun line. Before suite_begin, which refuses what the harness
 * does not know. */
bool suite_flag(int *argc, char **argv, const char *name);
int suite_number(int *argc, char **argv, const char *name);

/* Begins tests and verdicts, and opens the device; false with the reason printed where none answers. */
bool suite_begin(struct device *d, const char *program, int argc, char **argv);
/* The exit status. */
int suite_end(struct device *d);

#endif
