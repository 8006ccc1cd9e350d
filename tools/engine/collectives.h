/*
 * NCCL, opened by dlopen: libnccl.so.2, or the file that HEWN_LIBNCCL names. The declarations are
 * of its public C interface, and are ours. Calls enqueue on the stream and may be captured.
 */
#ifndef ENGINE_COLLECTIVES_H
#define ENGINE_COLLECTIVES_H

#include "problem.h"

#include "hewn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collectives_id { /* which communicator the ranks join */
    char bytes[128];
};
typedef struct ncclComm *collectives_comm;

/* X(field, symbol, result, parameters) */
#define COLLECTIVES_CALLS(X)                                                                \
    X(version, "ncclGetVersion", int, (int *))                                              \
    X(make_id, "ncclGetUniqueId", int, (struct collectives_id *))                           \
    X(join, "ncclCommInitRank", int, (collectives_comm *, int, struct collectives_id, int)) \
    X(destroy, "ncclCommDestroy", int, (collectives_comm))                                  \
    X(abandon, "ncclCommAbort", int, (collectives_comm))                                    \
    X(async_error, "ncclCommGetAsyncError", int, (collectives_comm, int *))                 \
    X(error_text, "ncclGetErrorString", const char *, (int))                                \
    X(reduce, "ncclAllReduce", int,                                                         \
      (const void *, void *, size_t, int, int, collectives_comm, hewn_stream))              \
    X(gather, "ncclAllGather", int,                                                         \
      (const void *, void *, size_t, int, collectives_comm, hewn_stream))                   \
    X(broadcast, "ncclBroadcast", int,                                                      \
      (const void *, void *, size_t, int, int, collectives_comm, hewn_stream))

struct collectives {
    void *library;
    collectives_comm comm; /* NULL: not joined */
    int rank, count, library_version;
#define COLLECTIVES_CALL(field, symbol, result, parameters) result(*field) parameters;
    COLLECTIVES_CALLS(COLLECTIVES_CALL)
#undef COLLECTIVES_CALL
};

/* Opens the library. 0, or -1 after a message. */
int collectives_open(struct collectives *c, struct problem *p);
int collectives_make_id(const struct collectives *c, struct collectives_id *out, struct problem *p);
/* The calling thread's context is that of the rank's GPU. Returns when all ranks have joined. */
int collectives_join(struct collectives *c, const struct collectives_id *id, int rank, int count,
                     struct problem *p);
/* With `failed`, what other ranks still wait for ends with an error. */
void collectives_close(struct collectives *c, bool failed);
/* Whether an earlier call failed meanwhile. */
int collectives_check(const struct collectives *c, struct problem *p);

/* Bf16 numbers at `at`: of each, the sum over all ranks replaces it on all ranks. */
int collectives_sum(const struct collectives *c, hewn_deviceptr at, int64_t count,
                    hewn_stream stream, struct problem *p);
/* Rank r has `count` bf16 numbers at `at` + r * count numbers; afterwards every rank has all. */
int collectives_gather(const struct collectives *c, hewn_deviceptr at, int64_t count,
                       hewn_stream stream, struct problem *p);
/* Bf16 numbers at `at` of rank `root` go to all ranks. */
int collectives_broadcast(const struct collectives *c, hewn_deviceptr at, int64_t count, int root,
                          hewn_stream stream, struct problem *p);

#endif
