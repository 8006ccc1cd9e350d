/* What an operation in flight does, for whoever tells of it. */
#ifndef SIM_KIND_H
#define SIM_KIND_H

#include "decode/decode.h"

enum async_kind {
    ASYNC_LOAD,     /* bulk and tensor copies into shared memory */
    ASYNC_STORE,    /* bulk and tensor copies and reductions out of it */
    ASYNC_CP_ASYNC,
    ASYNC_REMOTE,   /* within a cluster */
    ASYNC_MMA,      /* tcgen05.mma, wgmma */
    ASYNC_TENSOR_COPY, /* tcgen05.cp, tcgen05.shift */
    ASYNC_COMMIT,
    ASYNC_TMEM_LOAD,
    ASYNC_TMEM_STORE,
    ASYNC_KINDS
};

/* Of an asynchronous operation's instruction. */
enum async_kind async_kind_of(const struct insn *in);

#endif
