/* The rows of usage.def as an array. */
#include "usage.h"

const struct usage_row usage_rows[] = {
#define COMMAND(name, synopsis, text)        {USAGE_COMMAND, #name, NULL, synopsis, text},
#define OPTION(command, option, value, text) {USAGE_OPTION, #command, option, value, text},
#define NOTE(command, text)                  {USAGE_NOTE, #command, NULL, NULL, text},
#include "usage.def"
};
const size_t usage_row_count = sizeof usage_rows / sizeof usage_rows[0];
