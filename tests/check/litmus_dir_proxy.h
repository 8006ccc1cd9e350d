/* Litmus tests in the notation of NVIDIA's mixed-proxy model (github.com/NVlabs/mixedproxy), as tests in Dat3M's. */
#ifndef TESTS_LITMUS_DIR_PROXY_H
#define TESTS_LITMUS_DIR_PROXY_H

#include <stdbool.h>
#include <stdint.h>

/* Test `number` of a file, from 0: a file with a table behind "$$" has one for each of its rows. *allowed: the model
 * permits what it asks for. NULL: there is no such test, or no memory. The caller's. */
char *proxy_translate(const char *source, uint32_t number, bool *allowed);

#endif
