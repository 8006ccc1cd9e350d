/*
 * A stand-in for NCCL, for tests alone: build/tests/nccl/libnccl.so.2, which HEWN_LIBNCCL names. Its
 * ranks are processes of one machine that share a file. A collective is a copy from the device, a host
 * function that waits for the other ranks and computes, and a copy back, so that it runs in streams and
 * graphs of real and simulated devices. Bf16 is summed in the order of ranks and rounded after each
 * addition, as a ring may do it; all ranks get the same bits.
 */
#include "hewn.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 16, ROOM = 16 << 20, OK = 0, UNHANDLED = 1, SYSTEM = 2, INVALID = 4, USAGE = 5 };
enum { BFLOAT16 = 9, SUM = 0 };
enum kind { REDUCE, GATHER, BROADCAST };

/* What the ranks share: two slots a rank, which collectives use in turn. */
struct common {
    atomic_uint joined, left, arrived; /* arrived: over all collectives and ranks */
    unsigned char slot[2][RANKS][ROOM];
};

struct operation { /* one enqueued call, as often as it is executed */
    struct ncclComm *comm;
    struct operation *next;
    enum kind kind;
    int root;
    size_t bytes; /* that a rank brings */
};

struct ncclComm {
    struct common *common;
    int rank, count;
    unsigned done; /* collectives that this rank executed */
    struct operation *operations;
    unsigned char *from_device, *to_device; /* pinned; the stream's order keeps them apart */
};

#define API __attribute__((visibility("default")))

/* ---- the driver that the program has opened ---- */

static struct {
    int (*host_alloc)(void **, size_t);
    int (*host_release)(void *);
    int (*to_device)(hewn_deviceptr, const void *, size_t, hewn_stream);
    int (*to_host)(void *, hewn_deviceptr, size_t, hewn_stream);
    int (*call)(hewn_stream, void (*)(void *), void *);
} driver;

static int find(void *library, const char *name, void *out, size_t size)
{
    void *symbol = dlsym(library, name);
    if (!symbol) return UNHANDLED;
    memcpy(out, &symbol, size);
    return OK;
}

static int open_driver(void)
{
    const char *named = getenv("HEWN_LIBCUDA");
    void *library = dlopen(named ? named : "libcuda.so.1", RTLD_NOW);
    if (!library) return UNHANDLED;
#define FIND(field, name) find(library, name, &driver.field, sizeof driver.field)
    return FIND(host_alloc, "cuMemAllocHost_v2") || FIND(host_release, "cuMemFreeHost") ||
                   FIND(to_device, "cuMemcpyHtoDAsync_v2") ||
                   FIND(to_host, "cuMemcpyDtoHAsync_v2") || FIND(call, "cuLaunchHostFunc")
               ? UNHANDLED
               : OK;
#undef FIND
}

/* ---- a collective ---- */

/* Until all ranks have brought what collective `number` needs. A rank that died is never there: who
 * started the ranks then ends this one. */
static void meet(struct ncclComm *c, unsigned number)
{
    const unsigned all = (number + 1) * (unsigned)c->count;
    atomic_fetch_add(&c->common->arrived, 1);
    while ((int)(atomic_load(&c->common->arrived) - all) < 0) sched_yield();
}

static float wide(uint16_t bits)
{
    const uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static uint16_t narrow(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    if ((word & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(word >> 16 | 0x40);
    return (uint16_t)((word + 0x7FFF + (word >> 16 & 1)) >> 16);
}

static void add(uint16_t *sum, const uint16_t *more, size_t count)
{
    for (size_t i = 0; i < count; i++) sum[i] = narrow(wide(sum[i]) + wide(more[i]));
}

static void execute(void *user)
{
    const struct operation *o = user;
    struct ncclComm *c = o->comm;
    const unsigned number = c->done++;
    unsigned char(*const slot)[ROOM] = c->common->slot[number % 2];
    memcpy(slot[c->rank], c->from_device, o->bytes);
    /* Whoever comes here in collective n has read all slots of n - 1, so those of n + 1 are free. */
    meet(c, number);
    if (o->kind == BROADCAST) memcpy(c->to_device, slot[o->root], o->bytes);
    if (o->kind == REDUCE) {
        memcpy(c->to_device, slot[0], o->bytes);
        for (int r = 1; r < c->count; r++)
            add((uint16_t *)(void *)c->to_device, (const uint16_t *)(const void *)slot[r],
                o->bytes / 2);
    }
    for (int r = 0; o->kind == GATHER && r < c->count; r++)
        memcpy(c->to_device + (size_t)r * o->bytes, slot[r], o->bytes);
}

static int enqueue(struct ncclComm *c, enum kind kind, int root, const void *from, void *to,
                   size_t count, hewn_stream stream)
{
    struct operation *o = malloc(sizeof *o);
    const size_t bytes = 2 * count, all = kind == GATHER ? bytes * (size_t)c->count : bytes;
    if (!o || all > ROOM || root < 0 || root >= c->count) {
        free(o);
        return INVALID;
    }
    *o = (struct operation){c, c->operations, kind, root, bytes};
    c->operations = o;
    return driver.to_host(c->from_device, (uintptr_t)from, bytes, stream) ||
                   driver.call(stream, execute, o) ||
                   driver.to_device((uintptr_t)to, c->to_device, all, stream)
               ? UNHANDLED
               : OK;
}

/* ---- the interface ---- */

struct id {
    char bytes[128];
};

API int ncclGetVersion(int *version);
API int ncclGetUniqueId(struct id *id);
API int ncclCommInitRank(struct ncclComm **out, int count, struct id id, int rank);
API int ncclCommDestroy(struct ncclComm *c);
API int ncclCommAbort(struct ncclComm *c);
API int ncclCommGetAsyncError(struct ncclComm *c, int *error);
API const char *ncclGetErrorString(int error);
API int ncclAllReduce(const void *from, void *to, size_t count, int type, int op,
                      struct ncclComm *c, hewn_stream stream);
API int ncclAllGather(const void *from, void *to, size_t count, int type, struct ncclComm *c,
                      hewn_stream stream);
API int ncclBroadcast(const void *from, void *to, size_t count, int type, int root,
                      struct ncclComm *c, hewn_stream stream);

int ncclGetVersion(int *version)
{
    *version = 0;
    return OK;
}

/* The name of a file that the last rank to join removes. */
int ncclGetUniqueId(struct id *id)
{
    int file;
    *id = (struct id){"/dev/shm/hewn-nccl-XXXXXX"};
    file = mkstemp(id->bytes);
    if (file < 0) return SYSTEM;
    if (ftruncate(file, sizeof(struct common))) {
        close(file);
        return SYSTEM;
    }
    return close(file) ? SYSTEM : OK;
}

int ncclCommInitRank(struct ncclComm **out, int count, struct id id, int rank)
{
    struct ncclComm *c = calloc(1, sizeof *c);
    const int file = open(id.bytes, O_RDWR | O_CLOEXEC);
    void *map;
    if (!c || file < 0 || count < 1 || count > RANKS || rank < 0 || rank >= count ||
        open_driver()) {
        free(c);
        if (file >= 0) close(file);
        return USAGE;
    }
    map = mmap(NULL, sizeof(struct common), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED || driver.host_alloc((void **)&c->from_device, ROOM) ||
        driver.host_alloc((void **)&c->to_device, ROOM)) {
        free(c);
        return SYSTEM;
    }
    c->common = map;
    c->rank = rank;
    c->count = count;
    if (atomic_fetch_add(&c->common->joined, 1) + 1 == (unsigned)count) unlink(id.bytes);
    while (atomic_load(&c->common->joined) < (unsigned)count) sched_yield();
    *out = c;
    return OK;
}

static void release(struct ncclComm *c)
{
    for (struct operation *next; c->operations; c->operations = next) {
        next = c->operations->next;
        free(c->operations);
    }
    driver.host_release(c->from_device);
    driver.host_release(c->to_device);
    munmap(c->common, sizeof *c->common);
    free(c);
}

/* NCCL asks all ranks of a machine to call it; this one returns when they have. */
int ncclCommDestroy(struct ncclComm *c)
{
    atomic_fetch_add(&c->common->left, 1);
    while (atomic_load(&c->common->left) < (unsigned)c->count) sched_yield();
    release(c);
    return OK;
}

int ncclCommAbort(struct ncclComm *c)
{
    release(c);
    return OK;
}

/* NCCL_STAND_IN_BROKEN: "RANK N": that rank has an error when it has executed N collectives. */
int ncclCommGetAsyncError(struct ncclComm *c, int *error)
{
    const char *broken = getenv("NCCL_STAND_IN_BROKEN");
    char *end;
    *error = OK;
    if (broken && strtol(broken, &end, 10) == c->rank && strtol(end, NULL, 10) <= (long)c->done)
        *error = UNHANDLED;
    return OK;
}

const char *ncclGetErrorString(int error)
{
    return error == USAGE ? "invalid usage" : error == SYSTEM ? "system error" : "unhandled error";
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, struct ncclComm *c,
                  hewn_stream stream)
{
    if (type != BFLOAT16 || op != SUM) return INVALID;
    return enqueue(c, REDUCE, 0, from, to, count, stream);
}

int ncclAllGather(const void *from, void *to, size_t count, int type, struct ncclComm *c,
                  hewn_stream stream)
{
    if (type != BFLOAT16) return INVALID;
    return enqueue(c, GATHER, 0, from, to, count, stream);
}

int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, struct ncclComm *c,
                  hewn_stream stream)
{
    if (type != BFLOAT16) return INVALID;
    return enqueue(c, BROADCAST, root, from, to, count, stream);
}
