/*
 * What ranks by tensor add up in a step of decode, without NCCL: every rank writes its part into the
 * memory of the others (engine_exchange), which the driver maps for it (cuIpcOpenMemHandle). NCCL
 * takes some microseconds for each sum of a few rows, and the norm behind it is a launch more.
 */
#ifndef ENGINE_EXCHANGE_H
#define ENGINE_EXCHANGE_H

#include "gpu.h"

struct ranks;

enum { EXCHANGE_MOST = 16, EXCHANGE_HALVES = 2 };

struct exchange {
    hewn_deviceptr inbox; /* 0: there is none, and NCCL adds */
    hewn_deviceptr peers; /* i64 [ranks]: from half an inbox to where a rank's rows go, in bytes */
    int64_t inbox_rank;   /* elements of a rank in half an inbox */
    int64_t ctas;
    hewn_deviceptr mapped[EXCHANGE_MOST]; /* the others' inboxes; 0: not mapped */
    int (*unmap)(hewn_deviceptr);
};

/*
 * All ranks call it. Where the driver lets no rank into another's memory, or rows are so many that
 * NCCL is better, r->exchange has no inbox on any rank. 0, or -1 after a message.
 */
int exchange_open(struct ranks *r, struct gpu *g, int64_t rows, int64_t hidden, struct problem *p);
/* Waits for the other ranks, as they may free what is mapped here only then; not with `failed`. */
void exchange_close(struct exchange *x, struct ranks *r, bool failed);

/* Half of this rank's inbox. */
hewn_deviceptr exchange_inbox(const struct exchange *x, const struct ranks *r, int half);

#endif
