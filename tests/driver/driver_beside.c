/* Launches, copies and fills of two streams, or of two branches of a graph: which of them the checker takes to be in
 * order, and what orders them on a GPU. */
#include "lib/driver_table.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static hewn_cu_stream stream;

/* ---- by events and waits ---- */

static const char in_turn[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry put(.param .u64 at) {\n"
    "  .reg .b64 %a; .reg .b32 %t; ld.param.u64 %a, [at]; mov.u32 %t, %tid.x;\n"
    "  mad.wide.u32 %a, %t, 4, %a; st.global.u32 [%a], %t; ret;\n}\n"
    ".visible .entry get(.param .u64 at) {\n"
    "  .reg .b64 %a; .reg .b32 %t; ld.param.u64 %a, [at]; mov.u32 %t, %tid.x;\n"
    "  mad.wide.u32 %a, %t, 4, %a; ld.global.u32 %t, [%a]; st.global.u32 [%a+128], %t; ret;\n}\n"
    ".visible .entry count(.param .u64 at) {\n"
    "  .reg .b64 %a; ld.param.u64 %a, [at]; red.global.add.u32 [%a], 1; ret;\n}\n"
    ".visible .entry one(.param .u64 at) {\n"
    "  .reg .b64 %a; ld.param.u64 %a, [at]; st.global.u32 [%a], 1; ret;\n}\n"
    ".visible .entry two(.param .u64 at) {\n"
    "  .reg .b64 %a; ld.param.u64 %a, [at]; st.global.u32 [%a], 2; ret;\n}\n"
    ".visible .entry release(.param .u64 at) {\n"
    "  .reg .b64 %a; ld.param.u64 %a, [at]; st.release.sys.global.u32 [%a], 1; ret;\n}\n"
    ".visible .entry fenced(.param .u64 at) {\n"
    "  .reg .b64 %a; ld.param.u64 %a, [at]; fence.sc.sys; st.global.u32 [%a], 1; ret;\n}\n"
    /* tells the host, and waits for its answer */
    ".visible .entry talk(.param .u64 at) {\n"
    "  .reg .b64 %a; .reg .b32 %t; .reg .pred %p; ld.param.u64 %a, [at];\n"
    "  st.release.sys.global.u32 [%a], 1;\n"
    "L: ld.acquire.sys.global.u32 %t, [%a+4]; setp.eq.u32 %p, %t, 0; @%p bra L; ret;\n}\n";

enum order {
    ORDER_NONE,
    ORDER_EVENT,
    ORDER_EARLY_EVENT,
    ORDER_THIRD,
    ORDER_HOST,
    ORDER_OTHER,
    ORDER_ALL,
    ORDER_COPY
};

static int report_open(char *path)
{
    const int fd = mkstemp(path);
    CHECK_INT(setenv("HEWN_SIM_REPORT", path, 1) || setenv("HEWN_SIM_QUIET", "1", 1), 0);
    return fd;
}

/* How many findings about launches of two streams there are since report_open; -1: it cannot be told. */
static int report_findings(int fd, const char *path)
{
    static char report[1 << 15];
    int found = 0;
    ssize_t n;
    (void)(unsetenv("HEWN_SIM_REPORT") || unsetenv("HEWN_SIM_QUIET"));
    n = fd < 0 ? 0 : read(fd, report, sizeof report - 1);
    report[n > 0 ? n : 0] = '\0';
    for (const char *p = report; (p = strstr(p, "Nothing orders the two")); p++) found++;
    CHECK_INT(close(fd) || unlink(path), 0);
    return n > 0 ? found : -1;
}

/* put in one stream, get in another, something between. How many findings the second launch has; -1: it cannot be told. */
static int findings_between(hewn_cu_module module, hewn_cu_deviceptr at, hewn_cu_stream first,
                            hewn_cu_stream second, enum order order)
{
    char path[] = "/tmp/driver_stream.XXXXXX";
    void *params[] = {&at};
    uint32_t word;
    hewn_cu_stream third = NULL;
    hewn_cu_event event = NULL, event_2 = NULL;
    int fd;
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(cu.cuEventCreate(&event, 0) || cu.cuEventCreate(&event_2, 0), 0);
    CHECK_INT(cu.cuStreamCreate(&third, HEWN_CU_STREAM_NON_BLOCKING), 0);
    fd = report_open(path);
    if (order == ORDER_EARLY_EVENT) CHECK_INT(cu.cuEventRecord(event, first), 0);
    CHECK_INT(cu.cuLaunchKernel(function(module, "put"), 1, 1, 1, 32, 1, 1, 0, first, params, NULL),
              0);
    if (order == ORDER_EVENT || order == ORDER_THIRD) CHECK_INT(cu.cuEventRecord(event, first), 0);
    if (order == ORDER_THIRD) {
        CHECK_INT(cu.cuStreamWaitEvent(third, event, 0) || cu.cuEventRecord(event_2, third), 0);
        CHECK_INT(cu.cuStreamWaitEvent(second, event_2, 0), 0);
    }
    if (order == ORDER_EVENT || order == ORDER_EARLY_EVENT)
        CHECK_INT(cu.cuStreamWaitEvent(second, event, 0), 0);
    if (order == ORDER_HOST || order == ORDER_OTHER)
        CHECK_INT(cu.cuStreamSynchronize(order == ORDER_HOST ? first : second), 0);
    if (order == ORDER_ALL) CHECK_INT(cu.cuCtxSynchronize(), 0);
    if (order == ORDER_COPY) CHECK_INT(cu.cuMemcpyDtoHAsync_v2(&word, at, 4, first), 0);
    CHECK_INT(
        cu.cuLaunchKernel(function(module, "get"), 1, 1, 1, 32, 1, 1, 0, second, params, NULL), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(third) || cu.cuEventDestroy_v2(event) ||
                  cu.cuEventDestroy_v2(event_2),
              0);
    return report_findings(fd, path);
}

/* Nothing orders two streams but events, waits of the host, and the legacy stream. */
static void test_two_streams(void)
{
    hewn_cu_module module;
    hewn_cu_deviceptr at = buffer(256);
    hewn_cu_stream other = NULL, blocking = NULL;
    if (!test_case("launches of two streams that nothing orders are compared")) return;
    CHECK_INT(cu.cuStreamCreate(&other, HEWN_CU_STREAM_NON_BLOCKING), 0);
    CHECK_INT(cu.cuStreamCreate(&blocking, 0), 0);
    module = load(in_turn);
    const struct {
        hewn_cu_stream first, second;
        enum order order;
        int want;
    } cases[] = {
        {stream, other, ORDER_NONE, 1},  {stream, stream, ORDER_NONE, 0},
        {stream, other, ORDER_EVENT, 0}, {stream, other, ORDER_EARLY_EVENT, 1},
        {stream, other, ORDER_THIRD, 0}, {stream, other, ORDER_HOST, 0},
        {stream, other, ORDER_OTHER, 1}, {stream, other, ORDER_ALL, 0},
        {stream, other, ORDER_COPY, 0},  {NULL, blocking, ORDER_NONE, 0},
        {blocking, NULL, ORDER_NONE, 0}, {stream, NULL, ORDER_NONE, 1},
        {NULL, stream, ORDER_NONE, 1},   {blocking, stream, ORDER_NONE, 1},
        {NULL, stream, ORDER_HOST, 0},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int found =
            findings_between(module, at, cases[i].first, cases[i].second, cases[i].order);
        if (found < 0) continue; /* a GPU tells nothing */
        CHECK(found == cases[i].want, "case %u: %d findings instead of %d", i, found,
              cases[i].want);
    }
    CHECK_INT(cu.cuStreamDestroy_v2(other) || cu.cuStreamDestroy_v2(blocking), 0);
    CHECK_INT(cu.cuModuleUnload(module), 0);
    CHECK_INT(cu.cuMemFree_v2(at), 0);
}

/* ---- what else orders two streams ---- */

/* Streams a and b are non-blocking, c and d are not. The host and the device share two words. */
static struct {
    hewn_cu_module module;
    hewn_cu_deviceptr at, flag, mapped;
    hewn_cu_stream a, b, c, d;
    hewn_cu_event event;
    unsigned *word;
} pair;

static void run(const char *kernel, hewn_cu_stream on, hewn_cu_deviceptr at)
{
    const bool one = strcmp(kernel, "put") != 0 && strcmp(kernel, "get") != 0; /* thread */
    void *params[] = {&at};
    CHECK_INT(cu.cuLaunchKernel(function(pair.module, kernel), 1, 1, 1, one ? 1 : 32, 1, 1, 0, on,
                                params, NULL),
              0);
}

static void put(hewn_cu_stream on)
{
    run("put", on, pair.at);
}

static void get(hewn_cu_stream on)
{
    run("get", on, pair.at);
}

/* Until the host sees it; then the host launches into another stream. */
static void get_when_told(void)
{
    while (!__atomic_load_n(&pair.word[0], __ATOMIC_ACQUIRE)) {}
    get(pair.b);
}

static void write_value(void)
{
    put(pair.a);
    CHECK_INT(cu.cuStreamWriteValue32_v2(pair.a, pair.mapped, 1, 0), 0);
    get_when_told();
}

static void write_value_of_device(void)
{
    put(pair.a);
    CHECK_INT(cu.cuStreamWriteValue32_v2(pair.a, pair.flag, 1, 0), 0);
    get(pair.b);
}

static void store_release(void)
{
    put(pair.a);
    run("release", pair.a, pair.mapped);
    get_when_told();
}

static void store_fenced(void)
{
    put(pair.a);
    run("fenced", pair.a, pair.mapped);
    get_when_told();
}

static void store_and_wait(void)
{
    put(pair.a);
    run("talk", pair.a, pair.mapped);
    get_when_told();
    CHECK_INT(cu.cuStreamSynchronize(pair.b), 0);
    __atomic_store_n(&pair.word[1], 1, __ATOMIC_RELEASE);
}

static void post(void *user)
{
    (void)user;
    __atomic_store_n(&pair.word[0], 1, __ATOMIC_RELEASE);
}

/* What the stream captured, once, behind a wait for a value, for an event, or ahead of a call of the host. */
enum part { PART_EVENT, PART_VALUE, PART_HOST };

static hewn_cu_graph_exec captured(hewn_cu_stream on, enum part part)
{
    hewn_cu_graph graph = NULL;
    hewn_cu_graph_exec exec = NULL;
    CHECK_INT(cu.cuStreamBeginCapture_v2(on, HEWN_CU_CAPTURE_RELAXED), 0);
    if (part == PART_EVENT) CHECK_INT(cu.cuStreamWaitEvent(on, pair.event, 1), 0);
    if (part == PART_VALUE)
        CHECK_INT(cu.cuStreamWaitValue32_v2(on, pair.flag, 1, HEWN_CU_WAIT_EQ), 0);
    run(part == PART_HOST ? "put" : "get", on, pair.at);
    if (part == PART_HOST) CHECK_INT(cu.cuLaunchHostFunc(on, post, NULL), 0);
    CHECK_INT(cu.cuStreamEndCapture(on, &graph), 0);
    CHECK_INT(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    CHECK_INT(cu.cuGraphDestroy(graph), 0);
    return exec;
}

static void launch_graph(hewn_cu_graph_exec exec, hewn_cu_stream on)
{
    CHECK_INT(cu.cuGraphLaunch(exec, on), 0);
    CHECK_INT(cu.cuGraphExecDestroy(exec), 0);
}

static void graph_waits_for_event(void)
{
    hewn_cu_graph_exec exec = captured(pair.b, PART_EVENT);
    put(pair.a);
    CHECK_INT(cu.cuEventRecord(pair.event, pair.a), 0);
    launch_graph(exec, pair.b);
}

static void graph_waits_for_old_event(void)
{
    hewn_cu_graph_exec exec = captured(pair.b, PART_EVENT);
    CHECK_INT(cu.cuEventRecord(pair.event, pair.a), 0);
    put(pair.a);
    launch_graph(exec, pair.b);
}

static void graph_waits_for_value(void)
{
    hewn_cu_graph_exec exec = captured(pair.b, PART_VALUE);
    put(pair.a);
    CHECK_INT(cu.cuStreamWriteValue32_v2(pair.a, pair.flag, 1, 0), 0);
    launch_graph(exec, pair.b);
}

static void graph_calls_host(void)
{
    launch_graph(captured(pair.a, PART_HOST), pair.a);
    get_when_told();
}

static void destroyed(hewn_cu_stream second)
{
    hewn_cu_stream gone = NULL;
    CHECK_INT(cu.cuStreamCreate(&gone, 0), 0);
    put(gone);
    CHECK_INT(cu.cuStreamDestroy_v2(gone), 0);
    get(second);
}

static void destroyed_then_legacy(void)
{
    destroyed(NULL);
}

static void destroyed_then_other(void)
{
    destroyed(pair.d);
}

static void legacy_records(void)
{
    put(pair.c);
    CHECK_INT(cu.cuEventRecord(pair.event, NULL), 0);
    get(pair.d);
}

static void legacy_waits(void)
{
    CHECK_INT(cu.cuEventRecord(pair.event, pair.a), 0);
    put(pair.c);
    CHECK_INT(cu.cuStreamWaitEvent(NULL, pair.event, 0), 0);
    get(pair.d);
}

static void legacy_records_apart(void)
{
    put(pair.a);
    CHECK_INT(cu.cuEventRecord(pair.event, NULL), 0);
    CHECK_INT(cu.cuStreamWaitEvent(pair.b, pair.event, 0), 0);
    get(pair.b);
}

static void fill_pinned(void)
{
    put(pair.c);
    CHECK_INT(cu.cuMemsetD32_v2(pair.mapped, 0, 1), 0);
    get(pair.b);
}

static void fill_managed(void)
{
    hewn_cu_deviceptr managed = 0;
    CHECK_INT(cu.cuMemAllocManaged(&managed, 64, 1), 0);
    put(pair.c);
    CHECK_INT(cu.cuMemsetD32_v2(managed, 0, 1), 0);
    get(pair.b);
    CHECK_INT(cu.cuMemFree_v2(managed), 0);
}

static void fill_device(void)
{
    put(pair.c);
    CHECK_INT(cu.cuMemsetD32_v2(pair.flag, 0, 1), 0);
    get(pair.b);
}

static void other_process_records(void)
{
    enum { INTERPROCESS = 4 };
    hewn_cu_event event = NULL;
    CHECK_INT(cu.cuEventCreate(&event, INTERPROCESS | HEWN_CU_EVENT_DISABLE_TIMING), 0);
    put(pair.a);
    CHECK_INT(cu.cuStreamWaitEvent(pair.b, event, 0), 0); /* recorded elsewhere, behind put */
    get(pair.b);
    CHECK_INT(cu.cuEventDestroy_v2(event), 0);
}

/* ---- copies, fills and branches ---- */

enum { PUT_BYTES = 128 }; /* what put writes */

static hewn_cu_deviceptr pinned(void)
{
    return pair.mapped + 8; /* behind the words */
}

static void event_between(hewn_cu_stream from, hewn_cu_stream to)
{
    CHECK_INT(cu.cuEventRecord(pair.event, from) || cu.cuStreamWaitEvent(to, pair.event, 0), 0);
}

static void copy_in(hewn_cu_stream on)
{
    CHECK_INT(cu.cuMemcpyAsync(pair.at, pinned(), PUT_BYTES, on), 0);
}

static void copy_out(hewn_cu_stream on)
{
    CHECK_INT(cu.cuMemcpyAsync(pinned(), pair.at, PUT_BYTES, on), 0);
}

static void copied_then_read(void)
{
    copy_in(pair.a);
    get(pair.b);
}

static void copied_then_read_behind(void)
{
    copy_in(pair.a);
    event_between(pair.a, pair.b);
    get(pair.b);
}

static void written_then_copied(void)
{
    put(pair.a);
    copy_out(pair.b);
}

static void read_then_copied_over(void)
{
    get(pair.a);
    copy_in(pair.b);
}

static void read_then_copied_too(void)
{
    get(pair.a);
    copy_out(pair.b);
}

static void copied_twice(void)
{
    copy_in(pair.a);
    copy_out(pair.b);
}

static void waited_then_copied(void)
{
    put(pair.a);
    CHECK_INT(cu.cuStreamSynchronize(pair.a), 0);
    copy_out(pair.b);
}

static void filled_then_counted(void)
{
    CHECK_INT(cu.cuMemsetD32Async(pair.at, 0, 8, pair.a), 0);
    run("count", pair.b, pair.at);
}

static void filled_alike_by_words(void)
{
    CHECK_INT(cu.cuMemsetD8Async(pair.at, 1, 32, pair.a), 0);
    CHECK_INT(cu.cuMemsetD32Async(pair.at, 0x01010101, 8, pair.b), 0);
}

static void copied_by_contexts(void)
{
    hewn_cu_context context = NULL;
    CHECK_INT(cu.cuCtxGetCurrent(&context), 0);
    put(pair.a);
    CHECK_INT(cu.cuMemcpyPeer(pair.at + PUT_BYTES, context, pair.at, context, PUT_BYTES), 0);
    get(pair.b);
}

/* The host waits for stream c, and what the legacy stream began later is not over with it. */
static void waited_for_earlier(void)
{
    run("two", pair.c, pair.at + 512);
    put(NULL);
    CHECK_INT(cu.cuStreamSynchronize(pair.c), 0);
    get(pair.a);
}

static void counted_twice(void)
{
    run("count", pair.a, pair.at);
    run("count", pair.b, pair.at);
}

static void filled_alike(void)
{
    CHECK_INT(cu.cuMemsetD32Async(pair.at, 0, 8, pair.a), 0);
    CHECK_INT(cu.cuMemsetD32Async(pair.at, 0, 8, pair.b), 0);
}

static void filled_differently(void)
{
    CHECK_INT(cu.cuMemsetD32Async(pair.at, 0, 8, pair.a), 0);
    CHECK_INT(cu.cuMemsetD32Async(pair.at, 1, 8, pair.b), 0);
}

static void filled_by_legacy(void)
{
    CHECK_INT(cu.cuMemsetD32_v2(pair.at, 0, 8), 0); /* the host does not wait for it */
    get(pair.a);
}

static void same_constant(void)
{
    run("one", pair.a, pair.at);
    run("one", pair.b, pair.at);
}

static void other_constant(void)
{
    run("one", pair.a, pair.at);
    run("two", pair.b, pair.at);
}

/* Rows of 32 bytes, 64 apart: the other kernel writes between them. */
static void columns(hewn_cu_deviceptr other)
{
    CHECK_INT(cu.cuMemsetD2D32Async(pair.at, 64, 7, 8, 2, pair.a), 0);
    run("two", pair.b, other);
}

static void between_rows(void)
{
    columns(pair.at + 32);
}

static void in_a_row(void)
{
    columns(pair.at + 64 + 28);
}

/* The host sees a word that a copy brought, and launches into another stream. */
static void polled_copy(void)
{
    put(pair.a);
    CHECK_INT(cu.cuMemcpyAsync(pair.mapped, pair.at + 4, 4, pair.a), 0);
    get_when_told();
}

/* Memory of stream a that b uses, with an event behind the allocation, and one ahead of the free. */
static void lent(bool given, bool taken)
{
    hewn_cu_deviceptr at = 0;
    CHECK_INT(cu.cuMemAllocAsync(&at, PUT_BYTES, pair.a), 0);
    if (given) event_between(pair.a, pair.b);
    run("put", pair.b, at);
    if (taken) event_between(pair.b, pair.a);
    CHECK_INT(cu.cuMemFreeAsync(at, pair.a), 0);
}

static void lent_in_order(void)
{
    lent(true, true);
}

static void used_before_given(void)
{
    lent(false, true);
}

static void freed_while_used(void)
{
    lent(true, false);
}

/* An allocation orders its stream with who has freed that memory, and with nobody else. */
static void allocated_meanwhile(void)
{
    hewn_cu_deviceptr at = 0;
    put(pair.a);
    CHECK_INT(cu.cuMemAllocAsync(&at, PUT_BYTES, pair.b), 0);
    get(pair.b);
    CHECK_INT(cu.cuMemFreeAsync(at, pair.b), 0);
}

static void given_on_by_pool(void)
{
    hewn_cu_deviceptr at = 0;
    CHECK_INT(cu.cuMemAllocAsync(&at, PUT_BYTES, pair.a), 0);
    run("put", pair.a, at);
    CHECK_INT(cu.cuMemFreeAsync(at, pair.a) || cu.cuMemAllocAsync(&at, PUT_BYTES, pair.b), 0);
    run("put", pair.b, at);
    CHECK_INT(cu.cuMemFreeAsync(at, pair.b), 0);
}

/* put in one branch, then in the other: get, a copy, a fill; behind the join get. */
static void branches(hewn_cu_deviceptr other, bool fill, bool behind)
{
    hewn_cu_graph graph = NULL;
    hewn_cu_graph_exec exec = NULL;
    CHECK_INT(cu.cuStreamBeginCapture_v2(pair.a, HEWN_CU_CAPTURE_RELAXED), 0);
    if (!behind) event_between(pair.a, pair.b);
    put(pair.a);
    if (behind) event_between(pair.a, pair.b);
    if (fill)
        CHECK_INT(cu.cuMemsetD32Async(other, 0, 8, pair.b), 0);
    else
        run("get", pair.b, other);
    event_between(pair.b, pair.a);
    get(pair.a);
    CHECK_INT(cu.cuStreamEndCapture(pair.a, &graph), 0);
    CHECK_INT(cu.cuGraphInstantiateWithFlags(&exec, graph, 0) || cu.cuGraphDestroy(graph), 0);
    launch_graph(exec, pair.a);
}

static void branch_reads(void)
{
    branches(pair.at, false, false);
}

static void branch_reads_behind(void)
{
    branches(pair.at, false, true);
}

static void branch_fills(void)
{
    branches(pair.at, true, false);
}

static void branches_apart(void)
{
    branches(pair.at + 512, true, false);
}

/* One executable graph: its second launch comes behind the first. */
static void graph_twice(void)
{
    hewn_cu_graph graph = NULL;
    hewn_cu_graph_exec exec = NULL;
    CHECK_INT(cu.cuStreamBeginCapture_v2(pair.a, HEWN_CU_CAPTURE_RELAXED), 0);
    put(pair.a);
    CHECK_INT(cu.cuStreamEndCapture(pair.a, &graph), 0);
    CHECK_INT(cu.cuGraphInstantiateWithFlags(&exec, graph, 0) || cu.cuGraphDestroy(graph), 0);
    CHECK_INT(cu.cuGraphLaunch(exec, pair.a), 0);
    launch_graph(exec, pair.b);
}

static void pair_begin(void)
{
    void *word = NULL;
    pair.module = load(in_turn);
    pair.at = buffer(1024);
    pair.flag = buffer(4);
    CHECK_INT(cu.cuMemHostAlloc(&word, 8 + PUT_BYTES, 2), 0);
    CHECK_INT(cu.cuMemHostGetDevicePointer_v2(&pair.mapped, word, 0), 0);
    pair.word = word;
    CHECK_INT(cu.cuStreamCreate(&pair.a, HEWN_CU_STREAM_NON_BLOCKING), 0);
    CHECK_INT(cu.cuStreamCreate(&pair.b, HEWN_CU_STREAM_NON_BLOCKING), 0);
    CHECK_INT(cu.cuStreamCreate(&pair.c, 0) || cu.cuStreamCreate(&pair.d, 0), 0);
    CHECK_INT(cu.cuEventCreate(&pair.event, HEWN_CU_EVENT_DISABLE_TIMING), 0);
}

static void pair_end(void)
{
    CHECK_INT(cu.cuEventDestroy_v2(pair.event), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(pair.a) || cu.cuStreamDestroy_v2(pair.b), 0);
    CHECK_INT(cu.cuStreamDestroy_v2(pair.c) || cu.cuStreamDestroy_v2(pair.d), 0);
    CHECK_INT(cu.cuMemFreeHost(pair.word), 0);
    CHECK_INT(cu.cuMemFree_v2(pair.at) || cu.cuMemFree_v2(pair.flag), 0);
    CHECK_INT(cu.cuModuleUnload(pair.module), 0);
}

static void test_ordered_streams(void)
{
    static const struct {
        void (*program)(void);
        int want;
        const char *name;
    } cases[] = {
#define CASE(program, want) {program, want, #program}
        CASE(write_value, 0),
        CASE(write_value_of_device, 1),
        CASE(store_release, 0),
        CASE(store_fenced, 0),
        CASE(store_and_wait, 0),
        CASE(graph_waits_for_event, 0),
        CASE(graph_waits_for_old_event, 1),
        CASE(graph_waits_for_value, 0),
        CASE(graph_calls_host, 0),
        CASE(destroyed_then_legacy, 0),
        CASE(destroyed_then_other, 1),
        CASE(legacy_records, 0),
        CASE(legacy_waits, 0),
        CASE(legacy_records_apart, 1),
        CASE(fill_pinned, 0),
        CASE(fill_managed, 0),
        CASE(fill_device, 1),
        CASE(other_process_records, 0),
        CASE(copied_then_read, 1),
        CASE(copied_then_read_behind, 0),
        CASE(written_then_copied, 1),
        CASE(read_then_copied_over, 1),
        CASE(read_then_copied_too, 0),
        CASE(copied_twice, 1),
        CASE(waited_then_copied, 0),
        CASE(filled_then_counted, 1),
        CASE(filled_alike_by_words, 0),
        CASE(copied_by_contexts, 0),
        CASE(waited_for_earlier, 1),
        CASE(counted_twice, 0),
        CASE(filled_alike, 0),
        CASE(filled_differently, 1),
        CASE(filled_by_legacy, 1),
        CASE(same_constant, 0),
        CASE(other_constant, 1),
        CASE(between_rows, 0),
        CASE(in_a_row, 1),
        CASE(polled_copy, 0),
        CASE(lent_in_order, 0),
        CASE(used_before_given, 1),
        CASE(freed_while_used, 1),
        CASE(allocated_meanwhile, 1),
        CASE(given_on_by_pool, 0),
        CASE(graph_twice, 0),
        CASE(branch_reads, 1),
        CASE(branch_reads_behind, 0),
        CASE(branch_fills, 1),
        CASE(branches_apart, 0),
#undef CASE
    };
    if (!test_case("what the host, edges and the legacy stream order is no race, and nothing else"))
        return;
    pair_begin();
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[] = "/tmp/driver_stream.XXXXXX";
        int found, fd;
        pair.word[0] = pair.word[1] = 0;
        CHECK_INT(cu.cuMemsetD32_v2(pair.flag, 0, 1), 0);
        CHECK_INT(cu.cuCtxSynchronize(), 0);
        fd = report_open(path);
        cases[i].program();
        CHECK_INT(cu.cuCtxSynchronize(), 0);
        found = report_findings(fd, path);
        if (found < 0) continue; /* a GPU tells nothing */
        CHECK(found == cases[i].want, "%s: %d findings instead of %d", cases[i].name, found,
              cases[i].want);
    }
    pair_end();
}

/* The event of a launch that stands behind one which waits for the host. */
static void test_event_of_launch(void)
{
    hewn_cu_launch_attribute attribute = {.id = HEWN_CU_LAUNCH_PROGRAMMATIC_EVENT};
    hewn_cu_launch_config config = {.grid_x = 1,
                                    .grid_y = 1,
                                    .grid_z = 1,
                                    .block_x = 32,
                                    .block_y = 1,
                                    .block_z = 1,
                                    .attributes = &attribute,
                                    .attribute_count = 1};
    if (!test_case("the event of a launch that has to wait comes behind it")) return;
    pair_begin();
    void *params[] = {&pair.at};
    pair.word[0] = pair.word[1] = 0;
    CHECK_INT(cu.cuMemsetD32_v2(pair.at, 7, 64), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    run("talk", pair.a, pair.mapped);
    config.stream = pair.a;
    memcpy(attribute.value.pad, &pair.event, sizeof(void *));
    CHECK_INT(cu.cuLaunchKernelEx(&config, function(pair.module, "put"), params, NULL), 0);
    CHECK_INT(cu.cuStreamWaitEvent(pair.b, pair.event, 0), 0);
    get(pair.b);
    __atomic_store_n(&pair.word[1], 1, __ATOMIC_RELEASE);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(count_wrong(pair.at + 128 + 12, 3, 1), 0);
    pair_end();
}

static void *wait_for_event(void *event)
{
    (void)(cu.cuCtxSetCurrent(primary) || cu.cuEventSynchronize(event));
    return NULL;
}

static void *wait_for_stream(void *on)
{
    (void)(cu.cuCtxSetCurrent(primary) || cu.cuStreamSynchronize(on));
    return NULL;
}

/* Another thread destroys what one waits for. */
static void test_destroyed_meanwhile(void)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    if (!test_case("a stream and an event go while a thread waits for them")) return;
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pair_begin();
        pair.word[0] = pair.word[1] = 0;
        run("talk", pair.a, pair.mapped);
        CHECK_INT(cu.cuEventRecord(pair.event, pair.a), 0);
        CHECK_INT(pthread_create(&thread, NULL, i ? wait_for_event : wait_for_stream,
                                 i ? (void *)pair.event : (void *)pair.a),
                  0);
        nanosleep(&pause, NULL);
        if (i) {
            CHECK_INT(cu.cuEventDestroy_v2(pair.event), 0);
            CHECK_INT(cu.cuEventCreate(&pair.event, 0), 0);
        } else {
            CHECK_INT(cu.cuStreamDestroy_v2(pair.a), 0);
            CHECK_INT(cu.cuStreamCreate(&pair.a, 0), 0);
        }
        __atomic_store_n(&pair.word[1], 1, __ATOMIC_RELEASE);
        CHECK_INT(pthread_join(thread, NULL), 0);
        CHECK_INT(cu.cuCtxSynchronize(), 0);
        pair_end();
    }
}

int main(int argc, char **argv)
{
    if (!driver_begin("driver_beside", argc, argv)) return test_end();
    CHECK_INT(cu.cuStreamCreate(&stream, HEWN_CU_STREAM_NON_BLOCKING), 0);
    test_two_streams();
    test_ordered_streams();
    test_event_of_launch();
    test_destroyed_meanwhile();
    CHECK_INT(cu.cuStreamDestroy_v2(stream), 0);
    cu.cuDevicePrimaryCtxRelease_v2(0);
    return test_end();
}
