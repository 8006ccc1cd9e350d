/* The rows of usage.def as an array, in their order. */
#ifndef HEWN_CLI_USAGE_H
#define HEWN_CLI_USAGE_H

#include <stddef.h>

enum usage_kind { USAGE_COMMAND, USAGE_OPTION, USAGE_NOTE };

struct usage_row {
    enum usage_kind kind;
    const char *command;
    const char *option; /* of an option: "--gpu" */
    const char *value;  /* of an option: "FILE", or "" if it takes none; of a command: its synopsis */
    const char *text;
};

extern const struct usage_row usage_rows[];
extern const size_t usage_row_count;

#endif
