/* Waits for a word of memory and writes to one, in stream order. */
#include "cuda/driver.h"

#include <stdlib.h>

static bool is_wait(const hewn_cu_mem_op *op)
{
    return op->operation == HEWN_CU_MEM_OP_WAIT_32 || op->operation == HEWN_CU_MEM_OP_WAIT_64;
}

static uint32_t width_of(const hewn_cu_mem_op *op)
{
    switch (op->operation) {
    case HEWN_CU_MEM_OP_WAIT_32:
    case HEWN_CU_MEM_OP_WRITE_32: return 4;
    case HEWN_CU_MEM_OP_WAIT_64:
    case HEWN_CU_MEM_OP_WRITE_64: return 8;
    default: return 0;
    }
}

static int check(const hewn_cu_mem_op *op)
{
    enum { BARRIER_FLAGS = 1 };
    uint32_t width = width_of(op);

    if (!width && op->operation != HEWN_CU_MEM_OP_BARRIER && op->operation != HEWN_CU_MEM_OP_FLUSH)
        return HEWN_CU_INVALID_VALUE;
    if (op->operation == HEWN_CU_MEM_OP_FLUSH) return HEWN_CU_NOT_SUPPORTED; /* no such device */
    if (!width) return op->plain.flags > BARRIER_FLAGS ? HEWN_CU_INVALID_VALUE : 0;
    if (is_wait(op)) {
        if (op->value.flags & HEWN_CU_WAIT_FLUSH) return HEWN_CU_NOT_SUPPORTED;
        if (op->value.flags > HEWN_CU_WAIT_NOR) return HEWN_CU_INVALID_VALUE;
    } else if (op->value.flags > HEWN_CU_WRITE_NO_BARRIER) {
        return HEWN_CU_INVALID_VALUE;
    }
    return op->value.address % width || !memory_holds(op->value.address, width, true)
               ? HEWN_CU_INVALID_VALUE
               : 0;
}

int mem_ops_check(unsigned count, const hewn_cu_mem_op *ops, unsigned flags)
{
    enum { MOST = 256 };
    int rc = 0;

    if (!count || count > MOST || !ops || flags) return HEWN_CU_INVALID_VALUE;
    for (unsigned i = 0; i < count && !rc; i++) rc = check(&ops[i]);
    return rc;
}

/* The comparison wraps around: *address - value is not negative. */
static bool is_over(const hewn_cu_mem_op *op)
{
    bool wide = op->operation == HEWN_CU_MEM_OP_WAIT_64;
    uint64_t mask = wide ? UINT64_MAX : UINT32_MAX, top = wide ? 1ULL << 63 : 1ULL << 31;
    uint64_t want = op->value.value & mask, now;
    const void *at = (const void *)(uintptr_t)op->value.address;

    now = wide ? __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE)
               : __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
    switch (op->value.flags) {
    case HEWN_CU_WAIT_EQ: return now == want;
    case HEWN_CU_WAIT_AND: return (now & want) != 0;
    case HEWN_CU_WAIT_NOR: return (~(now | want) & mask) != 0;
    default: return !((now - want) & top);
    }
}

static void write_value(const hewn_cu_mem_op *op)
{
    void *at = (void *)(uintptr_t)op->value.address;

    if (op->operation == HEWN_CU_MEM_OP_WRITE_64)
        __atomic_store_n((uint64_t *)at, op->value.value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)at, (uint32_t)op->value.value, __ATOMIC_RELEASE);
}

int mem_ops_execute(unsigned count, const hewn_cu_mem_op *ops, unsigned *next)
{
    for (; *next < count; ++*next) {
        const hewn_cu_mem_op *op = &ops[*next];
        if (!width_of(op)) continue;
        if (!memory_holds(op->value.address, width_of(op), true)) return HEWN_CU_INVALID_VALUE;
        if (!is_wait(op)) {
            if (memory_of_host(op->value.address)) beside_tells();
            write_value(op);
            continue;
        }
        if (!is_over(op)) return HEWN_CU_NOT_READY;
        beside_waits(NULL);
    }
    return 0;
}

/* ---- the API ---- */

static int submit(hewn_cu_stream stream, unsigned count, const hewn_cu_mem_op *ops, unsigned flags)
{
    struct call call CALL_SCOPE;
    struct work work = {.kind = WORK_MEM_OPS, .mem_ops.count = count};
    struct CUstream_st *s;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    s = stream_named(call.context, stream);
    if (!s) return HEWN_CU_INVALID_HANDLE;
    if (!count) return 0; /* as driver 580 answers */
    rc = mem_ops_check(count, ops, flags);
    if (rc) return rc;
    work.mem_ops.ops = malloc(count * sizeof *ops);
    if (!work.mem_ops.ops) return HEWN_CU_OUT_OF_MEMORY;
    memcpy(work.mem_ops.ops, ops, count * sizeof *ops);
    return stream_submit(s, &work);
}

static int one(hewn_cu_stream stream, int operation, hewn_cu_deviceptr address, uint64_t value,
               unsigned flags)
{
    hewn_cu_mem_op op = {.value = {operation, address, value, flags, 0}};
    return submit(stream, 1, &op, 0);
}

int cuStreamWaitValue32_v2(hewn_cu_stream stream, hewn_cu_deviceptr address, uint32_t value,
                           unsigned flags)
{
    return one(stream, HEWN_CU_MEM_OP_WAIT_32, address, value, flags);
}

int cuStreamWaitValue64_v2(hewn_cu_stream stream, hewn_cu_deviceptr address, uint64_t value,
                           unsigned flags)
{
    return one(stream, HEWN_CU_MEM_OP_WAIT_64, address, value, flags);
}

int cuStreamWriteValue32_v2(hewn_cu_stream stream, hewn_cu_deviceptr address, uint32_t value,
                            unsigned flags)
{
    return one(stream, HEWN_CU_MEM_OP_WRITE_32, address, value, flags);
}

int cuStreamWriteValue64_v2(hewn_cu_stream stream, hewn_cu_deviceptr address, uint64_t value,
                            unsigned flags)
{
    return one(stream, HEWN_CU_MEM_OP_WRITE_64, address, value, flags);
}

int cuStreamBatchMemOp_v2(hewn_cu_stream stream, unsigned count, hewn_cu_mem_op *ops,
                          unsigned flags)
{
    return submit(stream, count, ops, flags);
}
