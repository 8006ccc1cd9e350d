/*
 * Suppressions: findings that somebody has looked at and accepts. They stay in the report, under the rule
 * that names them, and no longer count for the verdict.
 *
 * HEWN_SIM_SUPPRESS holds rules, separated by commas or newlines:
 *
 *     KIND[:FILE[:LINE]]     findings of that kind; in that file, which may be the end of a longer path
 *                            ("gemm.ptx" for "ptx/sm_90a/gemm.ptx"); at that line
 *     @PATH                  the rules of a file, one a line; # begins a comment
 *
 * Kind `unsupported` cannot be suppressed: what was not checked is not known to be right.
 */
#ifndef SIM_SUPPRESS_H
#define SIM_SUPPRESS_H

#include "check/report.h"

#include <stddef.h>

struct suppress_rule {
    enum finding_kind kind;
    const char *file; /* NULL: any */
    uint32_t line;    /* 0: any */
    char *text;       /* as it was written; owns */
    char *place;      /* the bytes that `file` points into; owns */
};

struct suppress {
    struct suppress_rule *rules;
    size_t count;
};

/* The environment's rules; false, with what is wrong in `why`, where one cannot be read. */
bool suppress_read(struct suppress *s, char *why, size_t size);
/* The text of the first rule that names the finding, or NULL. Lives as long as `s`. */
const char *suppress_match(const struct suppress *s, const struct finding *f);
void suppress_free(struct suppress *s);

#endif
