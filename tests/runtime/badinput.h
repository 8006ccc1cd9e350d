/* What the files of badinput share: a refusal held against its rule, a context on the fake driver. */
#ifndef TESTS_BADINPUT_H
#define TESTS_BADINPUT_H

#include "lib/fake_driver.h"
#include "lib/harness.h"
#include "lib/plans.h"

enum { POISON = 0xa5 };

void refused(const char *file, int line, int got, int want, const hewn_error *err,
             const char *words);

/* One case: `call` is refused with this status and these words. `err` is filled by the call. */
#define REFUSE(name, call, status, words)                          \
    do {                                                           \
        if (test_case("%s", name)) {                               \
            hewn_error err = {0};                                  \
            int got = (call);                                      \
            refused(__FILE__, __LINE__, got, status, &err, words); \
        }                                                          \
    } while (0)

/* A driver with one healthy device of that compute capability, attached to; and all released. */
hewn_context *attach_fake(hewn_driver **driver, int cc_major, int cc_minor);
void detach_fake(hewn_driver *driver, hewn_context *context);

void attention(void); /* badinput_attention.c */
void gemm(void);      /* badinput_gemm.c */
void grouped(void);   /* badinput_grouped.c */
void indexer(void);   /* badinput_indexer.c */
void merge(void);     /* badinput_merge.c */
void mla(void);       /* badinput_mla.c */
void tables(void);    /* badinput_tables.c */
void w4(void);        /* badinput_w4.c */

#endif
