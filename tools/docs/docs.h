/* What the parts of the documentation tool share. */
#ifndef DOCS_H
#define DOCS_H

#include <stdbool.h>
#include <stddef.h>

/* Text that grows. `failed`: memory ran out, and something is missing. */
struct text {
    char *data; /* NUL-terminated once anything was added, else NULL */
    size_t size, capacity;
    bool failed;
};

void text_add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_bytes(struct text *t, const char *data, size_t size);
/* The whole file; false with errno set. */
bool text_file(struct text *t, const char *path);
void text_free(struct text *t);

/* Adds the table `name`; false: there is none of that name, or its source cannot be read. */
bool table_add(struct text *t, const char *name);
/* Adds the names of all tables, separated by spaces. */
void table_names(struct text *t);
/* The man page of hewn. */
void man_page(struct text *t);

/* The rows of the environment: tables and man page print them in their own ways. */
typedef void environment_row(struct text *t, const char *name, const char *initial,
                             const char *meaning);
void environment_each(struct text *t, environment_row *row);

#endif
