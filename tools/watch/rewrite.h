/*
 * PTX text to the same text in which every wait leaves a record (table.h). Lines keep their numbers, kernels their
 * parameters; the text is read by the simulator's lexer and never needs to be understood as a whole.
 */
#ifndef WATCH_REWRITE_H
#define WATCH_REWRITE_H

#include "table.h"

#include "ptx/arena.h"
#include "ptx/module.h"

#include <stdbool.h>
#include <stddef.h>

enum watch_kind { WATCH_TRY, WATCH_TEST, WATCH_BLOCK, WATCH_SPIN };

struct watch_site {
    const char *function; /* the kernel, or the function that it calls */
    const char *text;     /* the instruction */
    const char *file;     /* as line markers say; NULL: they say nothing */
    const char *what;     /* waits.def */
    struct src_pos pos;   /* as in struct ptx_insn's ptx_pos */
    bool has_barrier;     /* the records have a barrier */
    enum watch_kind kind;
};

struct watch_request {
    const char *text;
    size_t length;
    struct watch_addresses tables; /* 0: of ones that are never read (to try a text) */
    uint32_t first_site;           /* number of the first site, at least 1 */
    /* Whether the function stays as it is; NULL: none does. */
    bool (*ignore)(const void *user, const char *function);
    const void *user;
};

struct watch_result {
    struct arena arena; /* holds what the pointers lead to */
    const char *text;
    size_t length;
    const struct watch_site *sites;
    uint32_t site_count;
    const char *const *kernels; /* entries that have a body, in order */
    uint32_t kernel_count;
    const uint32_t
        *unknown_lines; /* of backward branches of loops that may wait and are not recorded */
    uint32_t unknown_count;
    char error[200];
};

/* 0, or -1 with `error` set. The caller frees the arena in both cases. */
int watch_rewrite(const struct watch_request *request, struct watch_result *out);

#endif
