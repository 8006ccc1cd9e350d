#include "collectives.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { BFLOAT16 = 9, SUM = 0, IN_PROGRESS = 7 }; /* ncclBfloat16, ncclSum, ncclInProgress */

int collectives_open(struct collectives *c, struct problem *p)
{
    const char *named = getenv("HEWN_LIBNCCL"), *path = named ? named : "libnccl.so.2";
    void *symbol;
    *c = (struct collectives){.library = NULL};
    /* Multicast objects are not used; what the library reads is set before it is there. */
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    c->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!c->library)
        return problem(p, "several ranks need NCCL, which did not open (HEWN_LIBNCCL names it): %s",
                       dlerror());
#define COLLECTIVES_CALL(field, name, result, parameters)                \
    symbol = dlsym(c->library, name);                                    \
    if (!symbol) {                                                       \
        dlclose(c->library);                                             \
        c->library = NULL;                                               \
        return problem(p, "%s has no %s, so it is no NCCL", path, name); \
    }                                                                    \
    memcpy(&c->field, &symbol, sizeof symbol);
    COLLECTIVES_CALLS(COLLECTIVES_CALL)
#undef COLLECTIVES_CALL
    if (c->version(&c->library_version)) c->library_version = 0;
    return 0;
}

static int passed(const struct collectives *c, int result, const char *what, struct problem *p)
{
    if (!result || result == IN_PROGRESS) return 0;
    return problem(p, "%s: NCCL answers %d: %s", what, result, c->error_text(result));
}

int collectives_make_id(const struct collectives *c, struct collectives_id *out, struct problem *p)
{
    return passed(c, c->make_id(out), "ncclGetUniqueId", p);
}

int collectives_join(struct collectives *c, const struct collectives_id *id, int rank, int count,
                     struct problem *p)
{
    if (passed(c, c->join(&c->comm, count, *id, rank), "ncclCommInitRank", p)) return -1;
    c->rank = rank;
    c->count = count;
    return 0;
}

/* The library stays: its threads may end later than its last call returns. */
void collectives_close(struct collectives *c, bool failed)
{
    if (c->comm) failed ? c->abandon(c->comm) : c->destroy(c->comm);
    c->comm = NULL;
}

int collectives_check(const struct collectives *c, struct problem *p)
{
    int result = 0;
    if (passed(c, c->async_error(c->comm, &result), "ncclCommGetAsyncError", p)) return -1;
    return passed(c, result, "a collective", p);
}

static void *pointer(hewn_deviceptr address)
{
    return (void *)(uintptr_t)address;
}

int collectives_sum(const struct collectives *c, hewn_deviceptr at, int64_t count,
                    hewn_stream stream, struct problem *p)
{
    void *const here = pointer(at);
    return passed(c, c->reduce(here, here, (size_t)count, BFLOAT16, SUM, c->comm, stream),
                  "ncclAllReduce", p);
}

int collectives_gather(const struct collectives *c, hewn_deviceptr at, int64_t count,
                       hewn_stream stream, struct problem *p)
{
    const uint64_t own = 2 * (uint64_t)c->rank * (uint64_t)count;
    return passed(
        c, c->gather(pointer(at + own), pointer(at), (size_t)count, BFLOAT16, c->comm, stream),
        "ncclAllGather", p);
}

int collectives_broadcast(const struct collectives *c, hewn_deviceptr at, int64_t count, int root,
                          hewn_stream stream, struct problem *p)
{
    void *const here = pointer(at);
    return passed(c, c->broadcast(here, here, (size_t)count, BFLOAT16, root, c->comm, stream),
                  "ncclBroadcast", p);
}
