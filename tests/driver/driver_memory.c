/* Memory beyond plain allocations: pools, advice about managed memory, virtual memory. */
#include "lib/driver_table.h"

#include <stdint.h>
#include <unistd.h>

enum { WORDS = 64, BYTES = 4 * WORDS };

static hewn_cu_stream stream;

/* ---- pools ---- */

static uint64_t pool_value(hewn_cu_pool pool, int attribute)
{
    uint64_t value = 0;
    CHECK_INT(cu.cuMemPoolGetAttribute(pool, attribute, &value), 0);
    return value;
}

static void test_pools(void)
{
    enum { THRESHOLD = 4, RESERVED = 5, USED = 7, USED_HIGH = 8, LAST_BUT_ONE = 64 };
    hewn_cu_pool_props props = {.type = 1, .location = {.type = HEWN_CU_ON_DEVICE}};
    hewn_cu_pool first = NULL, pool = NULL, got = NULL;
    hewn_cu_location place = {HEWN_CU_ON_DEVICE, 0};
    hewn_cu_deviceptr a = 0, b = 0;
    uint64_t keep = UINT64_MAX, zero = 0;
    int flags = -1;

    if (!test_case("pools lend memory and count it")) return;
    CHECK_INT(cu.cuDeviceGetDefaultMemPool(&first, 0), 0);
    CHECK_INT(cu.cuDeviceGetMemPool(&got, 0), 0);
    CHECK(got == first, "the device begins with another pool than its default one");
    CHECK_INT(cu.cuMemPoolDestroy(first), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemPoolCreate(&pool, &props), 0);
    CHECK_INT(cu.cuMemPoolSetAttribute(pool, THRESHOLD, &keep), 0);
    CHECK_INT(cu.cuMemAllocFromPoolAsync(&a, BYTES, pool, stream), 0);
    CHECK_INT(cu.cuPointerGetAttribute(&got, HEWN_CU_POINTER_MEMPOOL_HANDLE, a), 0);
    CHECK(got == pool, "the pointer is of another pool");
    CHECK(pool_value(pool, USED) >= BYTES, "%llu used", (unsigned long long)pool_value(pool, USED));
    CHECK_INT(cu.cuDeviceSetMemPool(0, pool), 0);
    CHECK_INT(cu.cuMemAllocAsync(&b, BYTES, stream), 0);
    CHECK(pool_value(pool, USED) >= 2 * BYTES, "the current pool did not lend");
    CHECK_INT(cu.cuMemsetD32Async(b, 3, WORDS, stream), 0);
    CHECK_INT(cu.cuMemFreeAsync(a, stream), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(count_wrong(b, 3, WORDS), 0);
    CHECK_INT(cu.cuMemFreeAsync(b, stream), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(pool_value(pool, USED), 0);
    CHECK(pool_value(pool, USED_HIGH) >= 2 * BYTES, "the high mark is lower");
    CHECK(pool_value(pool, RESERVED) >= 2 * BYTES, "the threshold was not kept");
    CHECK_INT(cu.cuMemPoolTrimTo(pool, 0), 0);
    CHECK_INT(pool_value(pool, RESERVED), 0);
    CHECK_INT(cu.cuMemPoolSetAttribute(pool, USED_HIGH, &zero), 0);
    CHECK_INT(pool_value(pool, USED_HIGH), 0);
    CHECK_INT(cu.cuMemPoolSetAttribute(pool, USED, &zero), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemPoolGetAttribute(pool, LAST_BUT_ONE, &zero), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemPoolGetAccess(&flags, pool, &place), 0);
    CHECK_INT(flags, 3);
    place.id = 77;
    CHECK_INT(cu.cuMemPoolGetAccess(&flags, pool, &place), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemPoolDestroy(pool), 0);
    CHECK_INT(cu.cuDeviceGetMemPool(&got, 0), 0);
    CHECK(got == first, "a destroyed pool is still the device's");
    props.location.id = 77;
    CHECK_INT(cu.cuMemPoolCreate(&pool, &props), HEWN_CU_INVALID_VALUE);
}

/* A pool that goes before its memory does. */
static void test_pool_end(void)
{
    hewn_cu_pool_props props = {.type = 1, .location = {.type = HEWN_CU_ON_DEVICE}};
    hewn_cu_pool pool = NULL;
    hewn_cu_deviceptr a = 0;

    if (!test_case("memory outlives its pool")) return;
    CHECK_INT(cu.cuMemPoolCreate(&pool, &props), 0);
    CHECK_INT(cu.cuMemAllocFromPoolAsync(&a, BYTES, pool, stream), 0);
    CHECK_INT(cu.cuMemPoolDestroy(pool), 0);
    CHECK_INT(cu.cuMemsetD32Async(a, 4, WORDS, stream), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(count_wrong(a, 4, WORDS), 0);
    CHECK_INT(cu.cuMemFreeAsync(a, stream), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    if (simulated)
        CHECK_INT(cu.cuMemAllocFromPoolAsync(&a, BYTES, pool, stream), HEWN_CU_INVALID_VALUE);
}

/* ---- managed memory ---- */

static void test_advice(void)
{
    enum { SET_READ_MOSTLY = 1, SET_PREFERRED = 3, SET_ACCESSED_BY = 5 };
    enum { READ_MOSTLY = 1, PREFERRED = 2, ACCESSED_BY = 3, PREFETCHED = 4 };
    const hewn_cu_location device = {HEWN_CU_ON_DEVICE, 0}, host = {HEWN_CU_ON_HOST, 0};
    hewn_cu_deviceptr at = 0, plain = buffer(BYTES);
    int value = -9, readers[2] = {-9, -9};
    unsigned *words;

    if (!test_case("advice about managed memory is kept")) return;
    CHECK_INT(cu.cuMemAllocManaged(&at, BYTES, 1), 0);
    words = (unsigned *)(uintptr_t)at;
    CHECK(!words[0] && !words[WORDS - 1], "managed memory does not begin cleared");
    CHECK_INT(cu.cuMemAdvise_v2(at, BYTES, SET_READ_MOSTLY, device), 0);
    CHECK_INT(cu.cuMemAdvise_v2(at, BYTES, SET_PREFERRED, device), 0);
    CHECK_INT(cu.cuMemAdvise_v2(at, BYTES, SET_ACCESSED_BY, device), 0);
    CHECK_INT(cu.cuMemPrefetchAsync_v2(at, BYTES, host, 0, stream), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(cu.cuMemRangeGetAttribute(&value, 4, READ_MOSTLY, at, BYTES), 0);
    CHECK_INT(value, 1);
    CHECK_INT(cu.cuMemRangeGetAttribute(&value, 4, PREFERRED, at, BYTES), 0);
    CHECK_INT(value, 0);
    CHECK_INT(cu.cuMemRangeGetAttribute(&value, 4, PREFETCHED, at, BYTES), 0);
    CHECK_INT(value, -1);
    CHECK_INT(cu.cuMemRangeGetAttribute(readers, 8, ACCESSED_BY, at, BYTES), 0);
    CHECK(readers[0] == 0 && readers[1] == -2, "%d, %d", readers[0], readers[1]);
    CHECK_INT(cu.cuMemRangeGetAttribute(&value, 4, 99, at, BYTES), HEWN_CU_INVALID_VALUE);
    if (simulated) /* systems that share page tables take any memory */
        CHECK_INT(cu.cuMemAdvise_v2(plain, BYTES, SET_READ_MOSTLY, device), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemFree_v2(at), 0);
    CHECK_INT(cu.cuMemFree_v2(plain), 0);
}

/* ---- virtual memory ---- */

struct mapped {
    hewn_cu_memory_props props;
    size_t granule;
    hewn_cu_deviceptr address;
    hewn_cu_memory a, b;
};

static int allow(hewn_cu_deviceptr address, size_t bytes, int flags)
{
    const hewn_cu_access access = {{HEWN_CU_ON_DEVICE, 0}, flags};
    return cu.cuMemSetAccess(address, bytes, &access, 1);
}

static void test_virtual(void)
{
    struct mapped m = {.props = {.type = 1, .location = {.type = HEWN_CU_ON_DEVICE}}};
    const hewn_cu_location place = {HEWN_CU_ON_DEVICE, 0};
    unsigned long long flags = 9;
    hewn_cu_memory again = 0;
    unsigned words;

    if (!test_case("addresses, memory and access apart")) return;
    CHECK_INT(cu.cuMemGetAllocationGranularity(&m.granule, &m.props, 0), 0);
    CHECK(m.granule && !(m.granule & (m.granule - 1)), "granularity %zu", m.granule);
    words = (unsigned)(m.granule / 4);
    CHECK_INT(cu.cuMemCreate(&m.a, m.granule - 1, &m.props, 0), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemCreate(&m.a, m.granule, &m.props, 0), 0);
    CHECK_INT(cu.cuMemCreate(&m.b, m.granule, &m.props, 0), 0);
    CHECK_INT(cu.cuMemAddressReserve(&m.address, 3 * m.granule, 0, 0, 0), 0);
    CHECK_INT(cu.cuMemMap(m.address, m.granule, 0, m.a, 0), 0);
    CHECK_INT(cu.cuMemMap(m.address, m.granule, 0, m.b, 0), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemMap(m.address + m.granule, m.granule, 0, m.b, 0), 0);
    CHECK_INT(cu.cuMemMap(m.address + 2 * m.granule, m.granule, 0, m.a, 0), 0); /* a again */
    CHECK_INT(allow(m.address, 3 * m.granule, 3), 0);
    CHECK_INT(cu.cuMemGetAccess(&flags, &place, m.address + m.granule), 0);
    CHECK_INT((int)flags, 3);
    /* one fill over two pieces, and one piece seen at two addresses */
    CHECK_INT(cu.cuMemsetD32_v2(m.address, 17, 2 * words), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(count_wrong(m.address + 2 * m.granule, 17, words), 0);
    CHECK_INT(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(m.address + 8)), 0);
    CHECK(again == m.a, "another handle");
    CHECK_INT(cu.cuMemRelease(again), 0);
    CHECK_INT(cu.cuMemRelease(m.a), 0); /* mappings keep the memory */
    CHECK_INT(cu.cuMemsetD32_v2(m.address, 18, 1), 0);
    CHECK_INT(cu.cuMemUnmap(m.address + 1, m.granule), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemUnmap(m.address + m.granule, m.granule), 0);
    CHECK_INT(cu.cuMemsetD32_v2(m.address + m.granule, 18, 1), HEWN_CU_INVALID_VALUE);
    CHECK_INT(count_wrong(m.address + 2 * m.granule, 18, 1), 0);
    CHECK_INT(cu.cuMemAddressFree(m.address, 3 * m.granule), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemUnmap(m.address, m.granule), 0);
    CHECK_INT(cu.cuMemUnmap(m.address + 2 * m.granule, m.granule), 0);
    CHECK_INT(cu.cuMemRelease(m.b), 0);
    if (simulated) CHECK_INT(cu.cuMemRelease(m.b), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemAddressFree(m.address, 3 * m.granule), 0);
}

static void test_shared_memory(void)
{
    struct mapped m = {
        .props = {.type = 1, .handle_types = 1, .location = {.type = HEWN_CU_ON_DEVICE}}};
    int file = -1;

    if (!test_case("memory goes to another process as a file")) return;
    CHECK_INT(cu.cuMemGetAllocationGranularity(&m.granule, &m.props, 1), 0);
    CHECK_INT(cu.cuMemCreate(&m.a, m.granule, &m.props, 0), 0);
    CHECK_INT(cu.cuMemExportToShareableHandle(&file, m.a, 1, 0), 0);
    CHECK(file >= 0, "file %d", file);
    CHECK_INT(cu.cuMemImportFromShareableHandle(&m.b, (void *)(intptr_t)file, 1), 0);
    close(file);
    CHECK_INT(cu.cuMemAddressReserve(&m.address, 2 * m.granule, 0, 0, 0), 0);
    CHECK_INT(cu.cuMemMap(m.address, m.granule, 0, m.a, 0), 0);
    CHECK_INT(cu.cuMemMap(m.address + m.granule, m.granule, 0, m.b, 0), 0);
    CHECK_INT(allow(m.address, 2 * m.granule, 3), 0);
    CHECK_INT(cu.cuMemsetD32_v2(m.address, 19, WORDS), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(count_wrong(m.address + m.granule, 19, WORDS), 0);
    CHECK_INT(cu.cuMemUnmap(m.address, 2 * m.granule), 0);
    CHECK_INT(cu.cuMemAddressFree(m.address, 2 * m.granule), 0);
    CHECK_INT(cu.cuMemRelease(m.a), 0);
    CHECK_INT(cu.cuMemRelease(m.b), 0);
}

/* ---- multicast objects ---- */

/* Lane i at mc + 16 i: stores, reductions, loads with a reduction; out[4 i …] has what they saw. */
static const char multimem[] =
    ".version 8.2\n.target sm_90\n.address_size 64\n"
    ".visible .entry use(.param .u64 mc, .param .u64 out)\n{\n"
    "  .reg .b32 %r<9>; .reg .b64 %rd<6>; .reg .f32 %f<3>;\n"
    "  ld.param.u64 %rd0, [mc]; ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x;\n"
    "  mul.wide.u32 %rd2, %r0, 16; add.u64 %rd0, %rd0, %rd2; add.u64 %rd1, %rd1, %rd2;\n"
    "  mul.lo.u32 %r1, %r0, 3;\n"
    "  multimem.st.weak.global.u32 [%rd0], %r1;\n"
    "  multimem.red.relaxed.gpu.global.add.u32 [%rd0], 5;\n"
    "  multimem.red.max.u32 [%rd0], 20;\n"
    "  multimem.ld_reduce.acquire.sys.global.add.u32 %r2, [%rd0];\n"
    "  st.global.u32 [%rd1], %r2;\n"
    "  mov.f32 %f0, 0f3FC00000; multimem.st.release.sys.global.v2.f32 [%rd0+8], {%f0, %f0};\n"
    "  multimem.red.release.gpu.global.add.v2.f32 [%rd0+8], {%f0, 0f40000000};\n"
    "  multimem.ld_reduce.add.v2.f32 {%f1, %f2}, [%rd0+8];\n"
    "  st.global.v2.f32 [%rd1+8], {%f1, %f2};\n"
    "  multimem.ld_reduce.relaxed.gpu.max.acc::f32.v2.f16x2 {%r3, %r4}, [%rd0+8];\n"
    "  multimem.ld_reduce.weak.global.or.b64 %rd3, [%rd0+8];\n"
    "  mov.b64 %rd4, {%r3, %r4}; sub.u64 %rd4, %rd4, %rd3; cvt.u32.u64 %r5, %rd4;\n"
    "  st.global.u32 [%rd1+4], %r5; ret;\n}\n";

struct team {
    struct mapped unicast;
    hewn_cu_memory object;
    hewn_cu_deviceptr address; /* of the object, three granules, of which two are mapped */
};

/* Two granules of memory, the second one first in the object. */
static void bind_team(struct team *t)
{
    hewn_cu_multicast_props props = {.devices = 1};
    struct mapped *m = &t->unicast;
    size_t bytes;

    CHECK_INT(cu.cuMulticastGetGranularity(&m->granule, &props, 0), 0);
    bytes = props.bytes = 2 * m->granule;
    CHECK_INT(cu.cuMemCreate(&m->a, bytes, &m->props, 0), 0);
    CHECK_INT(cu.cuMemAddressReserve(&m->address, bytes, 0, 0, 0), 0);
    CHECK_INT(cu.cuMemMap(m->address, bytes, 0, m->a, 0), 0);
    CHECK_INT(allow(m->address, bytes, 3), 0);
    CHECK_INT(cu.cuMemAddressReserve(&t->address, 3 * m->granule, 0, 0, 0), 0);
    props.devices = 2; /* there is one */
    CHECK_INT(cu.cuMulticastCreate(&t->object, &props), HEWN_CU_INVALID_VALUE);
    props.devices = 1;
    CHECK_INT(cu.cuMulticastCreate(&t->object, &props), 0);
    CHECK_INT(cu.cuMulticastBindMem(t->object, 0, m->a, m->granule, m->granule, 0),
              HEWN_CU_ILLEGAL_STATE);
    CHECK_INT(cu.cuMulticastAddDevice(t->object, 1), HEWN_CU_INVALID_DEVICE);
    CHECK_INT(cu.cuMulticastAddDevice(t->object, 0), 0);
    CHECK_INT(cu.cuMulticastBindMem(t->object, 0, m->a, bytes, m->granule, 0),
              HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMulticastBindMem(t->object, 0, m->a, m->granule, m->granule, 0), 0);
    CHECK_INT(cu.cuMemMap(t->address, bytes, 0, t->object, 0), HEWN_CU_NOT_SUPPORTED);
    CHECK_INT(cu.cuMulticastBindAddr(t->object, m->granule, m->address, m->granule, 0), 0);
    CHECK_INT(cu.cuMulticastUnbind(t->object, 0, 0, m->granule), 0);
    CHECK_INT(cu.cuMulticastBindMem(t->object, 0, m->a, m->granule, m->granule, 0), 0);
    CHECK_INT(cu.cuMemMap(t->address, bytes, 0, t->object, 0), 0);
    CHECK_INT(cu.cuMulticastUnbind(t->object, 0, 0, m->granule), HEWN_CU_NOT_SUPPORTED);
    CHECK_INT(allow(t->address, bytes, 3), 0);
}

static int use_team(hewn_cu_deviceptr at, hewn_cu_deviceptr out)
{
    void *params[] = {&at, &out};
    hewn_cu_module m = load(multimem);
    int rc = cu.cuLaunchKernel(function(m, "use"), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);

    return rc ? rc : cu.cuCtxSynchronize();
}

static void check_team(const struct team *t, hewn_cu_deviceptr out)
{
    struct {
        unsigned sum, difference;
        float x, y;
    } got[32], there[32];

    CHECK_INT(cu.cuMemcpyDtoH_v2(got, out, sizeof got), 0);
    CHECK_INT(cu.cuMemcpyDtoH_v2(there, t->unicast.address + t->unicast.granule, sizeof there), 0);
    for (unsigned i = 0; i < 32; i++) {
        unsigned want = 3 * i + 5 > 20 ? 3 * i + 5 : 20;
        CHECK(got[i].sum == want && there[i].sum == want, "lane %u: %u, memory %u, want %u", i,
              got[i].sum, there[i].sum, want);
        CHECK(got[i].difference == 0, "lane %u: halves differ", i);
        CHECK(got[i].x == 3.0f && got[i].y == 3.5f && there[i].y == 3.5f, "lane %u: %g %g", i,
              (double)got[i].x, (double)got[i].y);
    }
}

/* A real driver's fabric must not be touched by a test. */
static void test_multicast(void)
{
    struct team t = {.unicast.props = {.type = 1, .location = {.type = HEWN_CU_ON_DEVICE}}};
    hewn_cu_context context = NULL;
    hewn_cu_deviceptr out;

    if (!test_case("multicast objects and multimem")) return;
    if (!simulated) {
        test_skip("cuMulticast* is for the simulator only");
        return;
    }
    bind_team(&t);
    out = buffer(512);
    CHECK_INT(use_team(t.address, out), 0);
    check_team(&t, out);
    CHECK_INT(cu.cuMemFree_v2(out), 0);

    CHECK_INT(cu.cuCtxCreate_v2(&context, 0, 0), 0);
    out = buffer(1024);
    CHECK_INT(use_team(out, out + 512), HEWN_CU_ILLEGAL_ADDRESS); /* no multicast address */
    CHECK_INT(cu.cuCtxDestroy_v2(context), 0);
    CHECK_INT(cu.cuCtxSetCurrent(primary), 0);

    CHECK_INT(cu.cuMemRelease(t.object), 0); /* mappings keep the object */
    CHECK_INT(cu.cuMemRelease(t.object), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemUnmap(t.address, 2 * t.unicast.granule), 0);
    CHECK_INT(cu.cuMemAddressFree(t.address, 3 * t.unicast.granule), 0);
    CHECK_INT(cu.cuMemUnmap(t.unicast.address, 2 * t.unicast.granule), 0);
    CHECK_INT(cu.cuMemAddressFree(t.unicast.address, 2 * t.unicast.granule), 0);
    CHECK_INT(cu.cuMemRelease(t.unicast.a), 0);
}

/* ---- copies and fills that few programs make ---- */

static void test_copies(void)
{
    hewn_cu_deviceptr a = buffer(BYTES), b = buffer(BYTES);
    const hewn_cu_deviceptr to[] = {b, b + BYTES / 2}, from[] = {a, a};
    const size_t sizes[] = {BYTES / 2, BYTES / 2}, first[] = {0};
    const struct {
        int order, places[4];
        unsigned flags;
    } attributes = {.order = 1}; /* CUmemcpyAttributes: in the order of the stream */
    hewn_cu_memcpy3d box = {.src_type = 2,
                            .src_device = a,
                            .src_reserved = primary,
                            .src_pitch = 16,
                            .src_height = 4,
                            .dst_type = 2,
                            .dst_device = b,
                            .dst_reserved = primary,
                            .dst_pitch = 16,
                            .dst_height = 4,
                            .width = 16,
                            .height = 4,
                            .depth = 4};

    if (!test_case("copies between contexts, batches of copies, pitched fills in a stream")) return;
    CHECK_INT(cu.cuMemsetD2D32Async(a, 32, 7, 8, 8, stream), 0);
    CHECK_INT(cu.cuMemsetD2D8Async(b, 32, 1, 32, 8, stream), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(count_wrong(a, 7, WORDS) + count_wrong(b, 0x01010101, WORDS), 0);
    CHECK_INT(cu.cuMemsetD2D16Async(b, 32, 2, 16, 8, stream), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(count_wrong(b, 0x00020002, WORDS), 0);
    CHECK_INT(cu.cuMemcpyPeer(b, primary, a, primary, BYTES), 0);
    CHECK_INT(count_wrong(b, 7, WORDS), 0);
    CHECK_INT(cu.cuMemsetD32_v2(a, 8, WORDS) || cu.cuCtxSynchronize(), 0);
    CHECK_INT(cu.cuMemcpyPeerAsync(b, primary, a, primary, BYTES, stream), 0);
    CHECK_INT(cu.cuStreamSynchronize(stream), 0);
    CHECK_INT(count_wrong(b, 8, WORDS), 0);
    CHECK_INT(cu.cuMemsetD32_v2(a, 9, WORDS) || cu.cuCtxSynchronize(), 0);
    CHECK_INT(cu.cuMemcpy3DPeer(&box), 0);
    CHECK_INT(count_wrong(b, 9, WORDS), 0);
    if (simulated) {
        CHECK_INT(cu.cuMemsetD32_v2(a, 10, WORDS) || cu.cuCtxSynchronize(), 0);
        CHECK_INT(cu.cuMemcpyBatchAsync_v2(to, from, sizes, 2, &attributes, first, 1, stream), 0);
        CHECK_INT(cu.cuStreamSynchronize(stream), 0);
        CHECK_INT(count_wrong(b, 10, WORDS), 0);
        CHECK_INT(cu.cuMemcpyBatchAsync_v2(to, from, sizes, 0, &attributes, first, 1, stream),
                  HEWN_CU_INVALID_VALUE);
    }
    CHECK_INT(cu.cuMemFree_v2(a), 0);
    CHECK_INT(cu.cuMemFree_v2(b), 0);
}

/* ---- memory for other processes ---- */

/* The simulator lets a process open its own handles. */
static void test_ipc(void)
{
    hewn_cu_deviceptr own = buffer(BYTES), other = 0;
    hewn_cu_ipc_handle memory = {{0}}, done = {{0}};
    hewn_cu_event event = NULL, opened = NULL;

    if (!test_case("handles for other processes")) return;
    if (!simulated) {
        test_skip("a real driver refuses the handles of the same process");
        return;
    }
    CHECK_INT(cu.cuMemsetD32_v2(own, 3, WORDS), 0);
    CHECK_INT(cu.cuIpcGetMemHandle(&memory, own), 0);
    CHECK_INT(count_wrong(own, 3, WORDS), 0);
    CHECK_INT(cu.cuIpcOpenMemHandle_v2(&other, memory, 0), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuIpcOpenMemHandle_v2(&other, done, 1), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuIpcOpenMemHandle_v2(&other, memory, 1), 0);
    CHECK(other && other != own, "0x%llx", (unsigned long long)other);
    CHECK_INT(count_wrong(other, 3, WORDS), 0);
    CHECK_INT(cu.cuMemsetD32_v2(other, 4, WORDS), 0);
    CHECK_INT(count_wrong(own, 4, WORDS), 0);
    CHECK_INT(cu.cuEventCreate(&event, 6), 0);
    CHECK_INT(cu.cuIpcGetEventHandle(&done, event), 0);
    CHECK_INT(cu.cuIpcOpenEventHandle(&opened, memory), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuIpcOpenEventHandle(&opened, done), 0);
    CHECK_INT(cu.cuEventQuery(opened), 0);
    CHECK_INT(cu.cuEventDestroy_v2(opened), 0);
    CHECK_INT(cu.cuEventDestroy_v2(event), 0);
    CHECK_INT(cu.cuIpcCloseMemHandle(other), 0);
    CHECK_INT(cu.cuIpcCloseMemHandle(other), HEWN_CU_INVALID_VALUE);
    CHECK_INT(count_wrong(own, 4, WORDS), 0);
    CHECK_INT(cu.cuMemFree_v2(own), 0);
}

/* ---- what a device says of others ---- */

static void test_peers(void)
{
    enum { ACCESS_SUPPORTED = 2, SM_COUNT = 0, FLOAT = 0x20 };
    int value = -1, count = 0;
    size_t width = 0;

    if (!test_case("peers, and what few programs ask")) return;
    CHECK_INT(cu.cuDeviceGetCount(&count), 0);
    CHECK_INT(cu.cuDeviceGetP2PAttribute(&value, ACCESS_SUPPORTED, 0, 0), HEWN_CU_INVALID_DEVICE);
    CHECK_INT(cu.cuDeviceGetP2PAttribute(&value, ACCESS_SUPPORTED, 0, count),
              HEWN_CU_INVALID_DEVICE);
    CHECK_INT(cu.cuCtxEnablePeerAccess(NULL, 0), HEWN_CU_INVALID_CONTEXT);
    CHECK_INT(cu.cuCtxDisablePeerAccess(NULL), HEWN_CU_INVALID_CONTEXT);
    CHECK_INT(cu.cuDeviceGetExecAffinitySupport(&value, SM_COUNT, 0), 0);
    CHECK_INT(cu.cuDeviceGetTexture1DLinearMaxWidth(&width, FLOAT, 1, 0), 0);
    CHECK(width >= 1 << 27, "%zu texels", width);
    CHECK_INT(cu.cuDeviceGetTexture1DLinearMaxWidth(&width, FLOAT, 3, 0), HEWN_CU_INVALID_VALUE);
}

int main(int argc, char **argv)
{
    if (!driver_begin("driver_memory", argc, argv)) return test_end();
    CHECK_INT(cu.cuStreamCreate(&stream, HEWN_CU_STREAM_NON_BLOCKING), 0);
    test_pools();
    test_pool_end();
    test_advice();
    test_virtual();
    test_shared_memory();
    test_multicast();
    test_copies();
    test_ipc();
    test_peers();
    CHECK_INT(cu.cuStreamDestroy_v2(stream), 0);
    cu.cuDevicePrimaryCtxRelease_v2(0);
    return test_end();
}
