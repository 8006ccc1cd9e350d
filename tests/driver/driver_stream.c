/* Streams: callbacks, waits for values in memory, attributes, events of a whole context. */
#include "lib/driver_table.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static hewn_cu_stream stream;

struct told {
    hewn_cu_stream stream;
    int status, calls, refused;
};

static void tell(hewn_cu_stream from, hewn_cu_result status, void *user)
{
    struct told *told = user;
    hewn_cu_deviceptr none = 0;

    told->stream = from;
    told->status = status;
    told->calls++;
    told->refused = cu.cuMemAlloc_v2(&none, 16);
}

static void test_callbacks(void)
{
    struct told told = {.status = -1};
    hewn_cu_graph graph = NULL;

    if (!test_case("callbacks run in stream order and may not call the driver")) return;
    CHECK_INT(cu.cuStreamAddCallback(stream, tell, &told, 0), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK(told.calls == 1 && told.stream == stream, "%d calls", told.calls);
    CHECK_INT(told.status, 0);
    CHECK_INT(told.refused, HEWN_CU_NOT_PERMITTED);
    CHECK_INT(cu.cuStreamAddCallback(stream, NULL, NULL, 0), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuStreamAddCallback(stream, tell, &told, 1), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuLaunchHostFunc(stream, NULL, NULL), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuStreamBeginCapture_v2(stream, HEWN_CU_CAPTURE_RELAXED), 0);
    CHECK_INT(cu.cuStreamAddCallback(stream, tell, &told, 0), HEWN_CU_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_INT(cu.cuStreamEndCapture(stream, &graph), HEWN_CU_STREAM_CAPTURE_INVALIDATED);
    CHECK_INT(told.calls, 1);
}

static void test_values(void)
{
    hewn_cu_deviceptr at = buffer(16);
    uint64_t wide = 0;
    hewn_cu_mem_op ops[3] = {
        {.value = {HEWN_CU_MEM_OP_WRITE_32, at, 9, 0, 0}},
        {.value = {HEWN_CU_MEM_OP_WAIT_32, at, 9, HEWN_CU_WAIT_EQ, 0}},
        {.value = {HEWN_CU_MEM_OP_WRITE_64, at + 8, 1ULL << 40, 0, 0}},
    };

    if (!test_case("values are written and waited for in stream order")) return;
    CHECK_INT(cu.cuStreamWriteValue32_v2(stream, at, 5, 0), 0);
    CHECK_INT(cu.cuStreamWaitValue32_v2(stream, at, 5, HEWN_CU_WAIT_GEQ), 0);
    CHECK_INT(cu.cuStreamWaitValue32_v2(stream, at, 4, HEWN_CU_WAIT_GEQ), 0);
    CHECK_INT(cu.cuStreamWaitValue32_v2(stream, at, 4, HEWN_CU_WAIT_AND), 0);
    CHECK_INT(cu.cuStreamWaitValue32_v2(stream, at, 4, HEWN_CU_WAIT_NOR), 0);
    CHECK_INT(cu.cuStreamWaitValue32_v2(stream, at, 0x80000006U, HEWN_CU_WAIT_GEQ), 0); /* wraps */
    CHECK_INT(cu.cuStreamBatchMemOp_v2(stream, 3, ops, 0), 0);
    CHECK_INT(cu.cuStreamWaitValue64_v2(stream, at + 8, 1ULL << 40, HEWN_CU_WAIT_EQ), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(count_wrong(at, 9, 1), 0);
    CHECK_INT(cu.cuMemcpyDtoH_v2(&wide, at + 8, 8), 0);
    CHECK(wide == 1ULL << 40, "0x%llx", (unsigned long long)wide);
    CHECK_INT(cu.cuStreamWriteValue32_v2(stream, at + 2, 0, 0), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuStreamBatchMemOp_v2(stream, 0, ops, 0), 0);
    CHECK_INT(cu.cuMemFree_v2(at), 0);
}

static void test_waiting(void)
{
    hewn_cu_deviceptr flag = buffer(4), out = buffer(4), scratch = 0;
    hewn_cu_stream other = NULL, third = NULL;
    hewn_cu_event event = NULL;
    struct told told = {.status = -1};

    if (!test_case("work behind a wait runs once the value is written")) return;
    CHECK_INT(cu.cuMemsetD32_v2(flag, 0, 1), 0);
    CHECK_INT(cu.cuMemsetD32_v2(out, 1, 1), 0);
    CHECK_INT(cu.cuMemAllocAsync(&scratch, 256, stream), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(cu.cuStreamCreate(&other, HEWN_CU_STREAM_NON_BLOCKING), 0);
    CHECK_INT(cu.cuStreamCreate(&third, HEWN_CU_STREAM_NON_BLOCKING), 0);
    CHECK_INT(cu.cuEventCreate(&event, 0), 0);
    CHECK_INT(cu.cuStreamWaitValue32_v2(stream, flag, 1, HEWN_CU_WAIT_EQ), 0);
    CHECK_INT(cu.cuMemsetD32Async(out, 2, 1, stream), 0);
    CHECK_INT(cu.cuStreamAddCallback(stream, tell, &told, 0), 0);
    CHECK_INT(cu.cuMemFreeAsync(scratch, stream), 0);
    CHECK_INT(cu.cuEventRecord(event, stream), 0);
    CHECK_INT(cu.cuStreamWaitEvent(other, event, 0), 0);
    CHECK_INT(cu.cuMemsetD32Async(out, 3, 1, other), 0);
    CHECK_INT(cu.cuStreamQuery(stream), HEWN_CU_NOT_READY);
    CHECK_INT(cu.cuStreamQuery(other), HEWN_CU_NOT_READY);
    CHECK_INT(cu.cuEventQuery(event), HEWN_CU_NOT_READY);
    CHECK_INT(told.calls, 0);
    CHECK_INT(cu.cuStreamQuery(third), 0);
    CHECK_INT(count_wrong(out, 1, 1), 0); /* a copy that waits for its own stream alone */
    CHECK_INT(cu.cuStreamWriteValue32_v2(third, flag, 1, 0), 0);
    CHECK_INT(cu.cuEventSynchronize(event), 0);
    CHECK_INT(cu.cuStreamSynchronize(other), 0);
    CHECK_INT(told.calls, 1);
    CHECK_INT(count_wrong(out, 3, 1), 0);
    CHECK_INT(cu.cuStreamQuery(stream), 0);
    CHECK_INT(cu.cuEventDestroy_v2(event), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(other), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(third), 0);
    CHECK_INT(cu.cuMemFree_v2(flag), 0);
    CHECK_INT(cu.cuMemFree_v2(out), 0);
}

static void *write_later(void *word)
{
    const struct timespec pause = {.tv_nsec = 20000000};

    nanosleep(&pause, NULL);
    __atomic_store_n((unsigned *)word, 7, __ATOMIC_RELEASE);
    return NULL;
}

/* The host's own write ends the wait, of a stream that orders itself with the legacy one. */
static void test_host_write(void)
{
    hewn_cu_deviceptr out = buffer(4), flag = 0;
    hewn_cu_stream ordered = NULL;
    hewn_cu_graph graph = NULL;
    hewn_cu_graph_exec exec = NULL;
    pthread_t thread;
    void *word = NULL;

    if (!test_case("the host writes what a stream waits for")) return;
    CHECK_INT(cu.cuMemHostAlloc(&word, 4, 0), 0);
    CHECK_INT(cu.cuMemHostGetDevicePointer_v2(&flag, word, 0), 0);
    *(unsigned *)word = 0;
    CHECK_INT(cu.cuStreamCreate(&ordered, 0), 0);
    CHECK_INT(cu.cuStreamBeginCapture_v2(ordered, HEWN_CU_CAPTURE_THREAD_LOCAL), 0);
    CHECK_INT(cu.cuMemsetD32Async(out, 5, 1, ordered), 0);
    CHECK_INT(cu.cuStreamEndCapture(ordered, &graph), 0);
    CHECK_INT(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    CHECK_INT(cu.cuStreamWaitValue32_v2(ordered, flag, 7, HEWN_CU_WAIT_EQ), 0);
    CHECK_INT(cu.cuGraphLaunch(exec, ordered), 0);
    CHECK_INT(cu.cuMemsetD32Async(out, 6, 1, NULL), 0); /* the legacy stream comes after it */
    CHECK_INT(cu.cuStreamQuery(NULL), HEWN_CU_NOT_READY);
    CHECK_INT(cu.cuStreamDestroy_v2(ordered), 0); /* its work goes on */
    CHECK_INT(pthread_create(&thread, NULL, write_later, word), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(count_wrong(out, 6, 1), 0);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
    CHECK_INT(cu.cuGraphDestroy(graph), 0);
    CHECK_INT(cu.cuMemFreeHost(word), 0);
    CHECK_INT(cu.cuMemFree_v2(out), 0);
}

/* Nobody ever writes the value. */
static void test_never(void)
{
    hewn_cu_context context = NULL;
    hewn_cu_deviceptr flag;
    hewn_cu_stream lost = NULL;

    if (!test_case("a context ends with work that still waits")) return;
    if (!simulated) {
        test_skip("hangs a real device");
        return;
    }
    CHECK_INT(cu.cuCtxCreate_v2(&context, 0, 0), 0);
    flag = buffer(4);
    CHECK_INT(cu.cuMemsetD32_v2(flag, 0, 1), 0);
    CHECK_INT(cu.cuStreamCreate(&lost, 0), 0);
    CHECK_INT(cu.cuStreamWaitValue32_v2(lost, flag, 1, HEWN_CU_WAIT_EQ), 0);
    CHECK_INT(cu.cuMemsetD32Async(flag, 3, 1, lost), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(lost), 0);
    CHECK_INT(cu.cuCtxDestroy_v2(context), 0);
}

/* answer: for i = 1 .. n waits until word 0 is i, and writes i to word 1. Then it writes n to `out`. */
static const char kernels[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry answer(.param .u64 p_words, .param .u64 p_out, .param .u32 p_n)\n{\n"
    ".reg .pred p;\n.reg .b32 i, n, v;\n.reg .b64 words, out;\nld.param.u64 words, [p_words];\n"
    "ld.param.u64 out, [p_out];\nld.param.u32 n, [p_n];\nmov.u32 i, 0;\n"
    "NEXT: setp.ge.u32 p, i, n;\n@p bra DONE;\nadd.u32 i, i, 1;\n"
    "WAIT: ld.volatile.global.u32 v, [words];\nsetp.lt.u32 p, v, i;\n@p bra WAIT;\n"
    "fence.acq_rel.sys;\nst.volatile.global.u32 [words+4], i;\nbra NEXT;\n"
    "DONE: st.global.u32 [out], n;\nret;\n}\n";

static void answer(hewn_cu_module module, hewn_cu_stream on, hewn_cu_deviceptr words,
                   hewn_cu_deviceptr out, unsigned n)
{
    void *params[] = {&words, &out, &n};

    CHECK_INT(cu.cuLaunchKernel(function(module, "answer"), 1, 1, 1, 1, 1, 1, 0, on, params, NULL),
              0);
}

/* A kernel polls what the host writes after the launch, and the host what the kernel writes. */
static void test_kernel_waits(void)
{
    hewn_cu_deviceptr out = buffer(4), at = 0;
    hewn_cu_module module = NULL;
    hewn_cu_event event = NULL;
    pthread_t thread;
    void *words = NULL;
    unsigned *word;

    if (!test_case("a kernel waits for the host, which goes on meanwhile")) return;
    module = load(kernels);
    CHECK_INT(cu.cuMemHostAlloc(&words, 8, 2), 0);
    CHECK_INT(cu.cuMemHostGetDevicePointer_v2(&at, words, 0), 0);
    CHECK_INT(cu.cuEventCreate(&event, 0), 0);
    word = words;
    word[0] = word[1] = 0;
    answer(module, stream, at, out, 5);
    for (unsigned i = 1; i <= 5; i++) {
        __atomic_store_n(&word[0], i, __ATOMIC_RELEASE);
        while (__atomic_load_n(&word[1], __ATOMIC_ACQUIRE) < i) {}
    }
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(count_wrong(out, 5, 1), 0);

    word[0] = 0;
    answer(module, stream, at, out, 7);
    CHECK_INT(cu.cuEventRecord(event, stream), 0);
    CHECK_INT(cu.cuMemsetD32Async(out, 9, 1, stream), 0);
    CHECK_INT(cu.cuStreamQuery(stream), HEWN_CU_NOT_READY);
    CHECK_INT(cu.cuEventQuery(event), HEWN_CU_NOT_READY);
    CHECK_INT(pthread_create(&thread, NULL, write_later, words), 0);
    CHECK_INT(cu.cuEventSynchronize(event), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(word[1], 7);
    CHECK_INT(count_wrong(out, 9, 1), 0);
    CHECK_INT(cu.cuEventDestroy_v2(event), 0);
    CHECK_INT(cu.cuModuleUnload(module), 0);
    CHECK_INT(cu.cuMemFreeHost(words), 0);
    CHECK_INT(cu.cuMemFree_v2(out), 0);
}

/* It polls device memory, which work of another stream writes later on. */
static void test_kernel_waits_for_stream(void)
{
    hewn_cu_deviceptr out = buffer(4), words = buffer(8), full = buffer(8);
    hewn_cu_module module = NULL;
    hewn_cu_stream other = NULL;

    if (!test_case("a kernel waits for a later copy and a later kernel of another stream")) return;
    module = load(kernels);
    CHECK_INT(cu.cuStreamCreate(&other, HEWN_CU_STREAM_NON_BLOCKING), 0);
    CHECK_INT(cu.cuMemsetD32_v2(full, 2, 2), 0);
    for (unsigned n = 1; n <= 2; n++) {
        CHECK_INT(cu.cuMemsetD32_v2(words, 0, 2), 0);
        CHECK_INT(cu.cuMemsetD32_v2(out, 9, 1), 0);
        CHECK_INT(cu.cuCtxSynchronize(), 0);
        answer(module, stream, words, out, n);
        CHECK_INT(cu.cuStreamQuery(stream), HEWN_CU_NOT_READY);
        if (n == 1)
            CHECK_INT(cu.cuMemsetD32Async(words, 1, 1, other), 0);
        else
            answer(module, other, full, words, n); /* writes n to word 0 */
        CHECK_INT(cu.cuStreamSynchronize(stream), 0);
        CHECK_INT(count_wrong(words + 4, n, 1), 0);
        CHECK_INT(count_wrong(out, n, 1), 0);
    }
    CHECK_INT(cu.cuStreamDestroy_v2(other), 0);
    CHECK_INT(cu.cuModuleUnload(module), 0);
    CHECK_INT(cu.cuMemFree_v2(full), 0);
    CHECK_INT(cu.cuMemFree_v2(words), 0);
    CHECK_INT(cu.cuMemFree_v2(out), 0);
}

/* Two warps that change a word for ever, on a stream beside which others might run. */
static void test_livelock(void)
{
    static const char turns[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry turn(.param .u64 p)\n{\n"
        ".reg .pred q;\n.reg .b32 v;\n.reg .b64 at;\nld.param.u64 at, [p];\n"
        "NEXT: atom.global.xor.b32 v, [at], 1;\nsetp.lt.u32 q, v, 2;\n@q bra NEXT;\nret;\n}\n";
    hewn_cu_context context = NULL;
    hewn_cu_stream own = NULL;
    hewn_cu_module module;
    hewn_cu_deviceptr word;
    void *params[] = {&word};

    if (!test_case("a livelock on a stream ends")) return;
    if (!simulated) {
        test_skip("hangs a real device");
        return;
    }
    CHECK_INT(cu.cuCtxCreate_v2(&context, 0, 0), 0);
    module = load(turns);
    word = buffer(4);
    CHECK_INT(cu.cuMemsetD32_v2(word, 0, 1), 0);
    CHECK_INT(cu.cuStreamCreate(&own, 0), 0);
    CHECK_INT(cu.cuLaunchKernel(function(module, "turn"), 1, 1, 1, 64, 1, 1, 0, own, params, NULL),
              0);
    CHECK_INT(cu.cuStreamSynchronize(own), 702);
    (void)cu.cuCtxDestroy_v2(context);
}

static void test_attributes(void)
{
    hewn_cu_stream other = NULL;
    hewn_cu_launch_value value = {0};

    if (!test_case("attributes of streams")) return;
    CHECK_INT(cu.cuStreamCreate(&other, 0), 0);
    value.flag = 2; /* spin */
    CHECK_INT(cu.cuStreamSetAttribute(stream, HEWN_CU_LAUNCH_SYNCHRONIZATION_POLICY, &value), 0);
    CHECK_INT(cu.cuStreamCopyAttributes(other, stream), 0);
    value.flag = 0;
    CHECK_INT(cu.cuStreamGetAttribute(other, HEWN_CU_LAUNCH_SYNCHRONIZATION_POLICY, &value), 0);
    CHECK_INT(value.flag, 2);
    CHECK_INT(cu.cuStreamGetAttribute(other, 99, &value), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuStreamDestroy_v2(other), 0);
}

static void test_context_events(void)
{
    hewn_cu_event event = NULL;
    int version = 0;

    if (!test_case("an event of a whole context")) return;
    cu.cuDriverGetVersion(&version);
    if (version < 12050) {
        test_skip("the driver is older");
        return;
    }
    CHECK_INT(cu.cuEventCreate(&event, 0), 0);
    CHECK_INT(cu.cuCtxRecordEvent(primary, event), 0);
    CHECK_INT(cu.cuCtxWaitEvent(primary, event), 0);
    CHECK_INT(cu.cuEventSynchronize(event), 0);
    CHECK_INT(cu.cuEventDestroy_v2(event), 0);
}

/* answer() of no rounds, on a stream of its own. */
static void answer_on(hewn_cu_module module, hewn_cu_stream on, hewn_cu_deviceptr out)
{
    unsigned n = 0;
    void *params[] = {&out, &out, &n};

    CHECK_INT(cu.cuLaunchKernel(function(module, "answer"), 4, 1, 1, 32, 1, 1, 0, on, params, NULL),
              0);
    CHECK_INT(cu.cuStreamSynchronize(on), 0);
    CHECK_INT(count_wrong(out, 0, 1), 0);
}

static void test_parts(void)
{
    hewn_cu_dev_resource all, part[2], rest;
    hewn_cu_resource_set set = NULL;
    hewn_cu_green green = NULL, found = NULL;
    hewn_cu_context context = NULL;
    hewn_cu_stream own = NULL;
    hewn_cu_module module = NULL;
    hewn_cu_deviceptr out = buffer(4);
    unsigned groups = 2;

    if (!test_case("a green context has a part of the device")) return;
    if (!cu.cuGreenCtxStreamCreate) {
        test_skip("the driver is older");
        return;
    }
    module = load(kernels);
    CHECK_INT(cu.cuDeviceGetDevResource(0, &all, 7), HEWN_CU_INVALID_RESOURCE_TYPE);
    CHECK_INT(cu.cuDeviceGetDevResource(0, &all, HEWN_CU_DEV_RESOURCE_SM), 0);
    CHECK_INT(cu.cuDevSmResourceSplitByCount(part, &groups, &all, &rest, 0, all.sm.min_partition),
              0);
    CHECK(groups == 2 && part[0].sm.sm_count == part[1].sm.sm_count &&
              2 * part[0].sm.sm_count + rest.sm.sm_count == all.sm.sm_count,
          "%u groups of %u SMs and %u", groups, part[0].sm.sm_count, rest.sm.sm_count);
    CHECK_INT(cu.cuDevResourceGenerateDesc(&set, part, 1), 0);
    CHECK_INT(cu.cuGreenCtxCreate(&green, set, 0, 0), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuGreenCtxCreate(&green, set, 0, HEWN_CU_GREEN_DEFAULT_STREAM), 0);
    CHECK_INT(cu.cuGreenCtxGetDevResource(green, &all, HEWN_CU_DEV_RESOURCE_SM), 0);
    CHECK_INT(all.sm.sm_count, part[0].sm.sm_count);
    CHECK_INT(cu.cuGreenCtxStreamCreate(&own, green, HEWN_CU_STREAM_NON_BLOCKING, 0), 0);
    CHECK_INT(cu.cuStreamGetGreenCtx(own, &found), 0);
    CHECK(found == green, "another green context");
    CHECK_INT(cu.cuStreamGetGreenCtx(stream, &found), 0);
    CHECK(!found, "a plain stream has a green context");
    answer_on(module, own, out);
    CHECK_INT(cu.cuCtxFromGreenCtx(&context, green), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(own), 0);
    CHECK_INT(cu.cuGreenCtxDestroy(green), 0);
    CHECK_INT(cu.cuModuleUnload(module), 0);
    CHECK_INT(cu.cuMemFree_v2(out), 0);
}

int main(int argc, char **argv)
{
    if (!driver_begin("driver_stream", argc, argv)) return test_end();
    CHECK_INT(cu.cuStreamCreate(&stream, HEWN_CU_STREAM_NON_BLOCKING), 0);
    test_callbacks();
    test_values();
    test_waiting();
    test_host_write();
    test_never();
    test_kernel_waits();
    test_kernel_waits_for_stream();
    test_livelock();
    test_attributes();
    test_context_events();
    test_parts();
    CHECK_INT(cu.cuStreamDestroy_v2(stream), 0);
    cu.cuDevicePrimaryCtxRelease_v2(0);
    return test_end();
}
