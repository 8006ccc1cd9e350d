/* Copies and fills, linear and pitched, at once or in a stream. */
#include "cuda/driver.h"

#include <stdlib.h>

static uint64_t address_of(const void *host)
{
    return (uint64_t)(uintptr_t)host;
}

/* Bytes from the first to the last of `count` equal pieces; false where that does not fit 64 bits. */
static bool span(uint64_t piece, size_t count, size_t pitch, uint64_t *out)
{
    uint64_t before;

    *out = 0;
    if (!piece || !count) return true;
    return !__builtin_mul_overflow((uint64_t)pitch, (uint64_t)(count - 1), &before) &&
           !__builtin_add_overflow(before, piece, out);
}

static bool span_3d(const struct copy_request *c, size_t pitch, size_t slice, uint64_t *out)
{
    return span(c->width, c->height, pitch, out) && span(*out, c->depth, slice, out);
}

int copy_check(const struct copy_request *copy)
{
    uint64_t dst_bytes, src_bytes;

    if (!span_3d(copy, copy->dst_pitch, copy->dst_slice, &dst_bytes) ||
        !span_3d(copy, copy->src_pitch, copy->src_slice, &src_bytes))
        return HEWN_CU_INVALID_VALUE;
    return memory_holds(address_of(copy->dst), dst_bytes, copy->dst_device) &&
                   memory_holds(address_of(copy->src), src_bytes, copy->src_device)
               ? 0
               : HEWN_CU_INVALID_VALUE;
}

void copy_execute(const struct copy_request *copy)
{
    for (size_t slice = 0; slice < copy->depth && copy->width; slice++)
        for (size_t row = 0; row < copy->height; row++)
            memmove(copy->dst + slice * copy->dst_slice + row * copy->dst_pitch,
                    copy->src + slice * copy->src_slice + row * copy->src_pitch, copy->width);
}

int fill_check(const struct fill_request *fill)
{
    uint64_t width, bytes;

    if (__builtin_mul_overflow((uint64_t)fill->width, fill->element, &width) ||
        !span(width, fill->height, fill->pitch, &bytes))
        return HEWN_CU_INVALID_VALUE;
    if (address_of(fill->dst) % fill->element || (fill->height > 1 && fill->pitch % fill->element))
        return HEWN_CU_INVALID_VALUE;
    return memory_holds(address_of(fill->dst), bytes, true) ? 0 : HEWN_CU_INVALID_VALUE;
}

void fill_execute(const struct fill_request *fill)
{
    for (size_t row = 0; row < fill->height; row++) {
        uint8_t *out = fill->dst + row * fill->pitch;
        if (fill->element == 1) {
            memset(out, (int)fill->value, fill->width);
            continue;
        }
        for (size_t i = 0; i < fill->width; i++)
            memcpy(out + i * fill->element, &fill->value, fill->element); /* little-endian host */
    }
}

/* ---- entering ---- */

static bool is_devices(const void *at)
{
    uint64_t base, size;
    return mem_range(address_of(at), 1, &base, &size) && !memory_of_host(address_of(at));
}

/* Whether the host has waited when the call returns (CUDA Driver API, "API synchronization behavior"): for a copy into
 * its pageable memory, in whatever stream, and for one that is not asynchronous, but not from device to device. */
static bool host_waits(const struct copy_request *request, bool async)
{
    uint64_t base, size;
    if (!async) return !is_devices(request->dst) || !is_devices(request->src);
    return !mem_range(address_of(request->dst), 1, &base, &size);
}

int copy_submit(const struct copy_request *request, bool async, hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;
    struct work work = {.kind = WORK_COPY, .copy = *request};
    struct CUstream_st *s;
    int rc;

    if (call_enter(&call, async ? CALL_PLAIN : CALL_SYNC)) return call.rc;
    s = async ? stream_named(call.context, stream) : &call.context->legacy_stream;
    if (!s) return HEWN_CU_INVALID_HANDLE;
    rc = copy_check(request);
    /* What a graph will have allocated by then is not there yet. */
    if (rc && s->capture &&
        (graph_memory_around(address_of(request->dst), 1) ||
         graph_memory_around(address_of(request->src), 1)))
        rc = 0;
    if (!rc && request->alone) beside_host_all();
    if (!rc) rc = stream_submit(s, &work);
    if (!rc && !async) deferred_finish_stream(s); /* a default one, which nobody destroys */
    if (!rc && !s->capture && host_waits(request, async)) beside_host_stream(s);
    if (!rc && request->alone) beside_host_all();
    return rc;
}

static struct copy_request linear(uint64_t dst, bool dst_device, uint64_t src, bool src_device,
                                  size_t bytes)
{
    return (struct copy_request){.dst = (uint8_t *)(uintptr_t)dst,
                                 .src = (const uint8_t *)(uintptr_t)src,
                                 .dst_device = dst_device,
                                 .src_device = src_device,
                                 .width = bytes,
                                 .height = 1,
                                 .depth = 1};
}

int cuMemcpy(hewn_cu_deviceptr dst, hewn_cu_deviceptr src, size_t bytes)
{
    struct copy_request r = linear(dst, false, src, false, bytes);
    return copy_submit(&r, false, NULL);
}

int cuMemcpyAsync(hewn_cu_deviceptr dst, hewn_cu_deviceptr src, size_t bytes, hewn_cu_stream stream)
{
    struct copy_request r = linear(dst, false, src, false, bytes);
    return copy_submit(&r, true, stream);
}

int cuMemcpyHtoD_v2(hewn_cu_deviceptr dst, const void *src, size_t bytes)
{
    struct copy_request r = linear(dst, true, address_of(src), false, bytes);
    return copy_submit(&r, false, NULL);
}

int cuMemcpyHtoDAsync_v2(hewn_cu_deviceptr dst, const void *src, size_t bytes,
                         hewn_cu_stream stream)
{
    struct copy_request r = linear(dst, true, address_of(src), false, bytes);
    return copy_submit(&r, true, stream);
}

int cuMemcpyDtoH_v2(void *dst, hewn_cu_deviceptr src, size_t bytes)
{
    struct copy_request r = linear(address_of(dst), false, src, true, bytes);
    return copy_submit(&r, false, NULL);
}

int cuMemcpyDtoHAsync_v2(void *dst, hewn_cu_deviceptr src, size_t bytes, hewn_cu_stream stream)
{
    struct copy_request r = linear(address_of(dst), false, src, true, bytes);
    return copy_submit(&r, true, stream);
}

int cuMemcpyDtoD_v2(hewn_cu_deviceptr dst, hewn_cu_deviceptr src, size_t bytes)
{
    struct copy_request r = linear(dst, true, src, true, bytes);
    return copy_submit(&r, false, NULL);
}

int cuMemcpyDtoDAsync_v2(hewn_cu_deviceptr dst, hewn_cu_deviceptr src, size_t bytes,
                         hewn_cu_stream stream)
{
    struct copy_request r = linear(dst, true, src, true, bytes);
    return copy_submit(&r, true, stream);
}

/* Contexts are of one device, whose addresses say where memory is. A copy that is not asynchronous is ordered with all
 * work of both, of streams that opt out of the legacy one, too (CUDA Driver API, cuMemcpyPeer). */
static bool are_contexts(hewn_cu_context a, hewn_cu_context b)
{
    return handle_get(a, HANDLE_CONTEXT) && handle_get(b, HANDLE_CONTEXT);
}

static int copy_peer(hewn_cu_deviceptr dst, hewn_cu_context dst_context, hewn_cu_deviceptr src,
                     hewn_cu_context src_context, size_t bytes, bool async, hewn_cu_stream stream)
{
    struct copy_request r = linear(dst, true, src, true, bytes);
    r.alone = !async;
    return are_contexts(dst_context, src_context) ? copy_submit(&r, async, stream)
                                                  : HEWN_CU_INVALID_CONTEXT;
}

int cuMemcpyPeer(hewn_cu_deviceptr dst, hewn_cu_context dst_context, hewn_cu_deviceptr src,
                 hewn_cu_context src_context, size_t bytes)
{
    return copy_peer(dst, dst_context, src, src_context, bytes, false, NULL);
}

int cuMemcpyPeerAsync(hewn_cu_deviceptr dst, hewn_cu_context dst_context, hewn_cu_deviceptr src,
                      hewn_cu_context src_context, size_t bytes, hewn_cu_stream stream)
{
    return copy_peer(dst, dst_context, src, src_context, bytes, true, stream);
}

/* Attributes are hints about places, and about when the source may change: at once here. */
int cuMemcpyBatchAsync_v2(const hewn_cu_deviceptr *dsts, const hewn_cu_deviceptr *srcs,
                          const size_t *bytes, size_t count, const void *attributes,
                          const size_t *first, size_t attribute_count, hewn_cu_stream stream)
{
    int rc = 0;

    if (!dsts || !srcs || !bytes || !count || !attributes || !first || !attribute_count ||
        attribute_count > count || first[0] || !stream)
        return HEWN_CU_INVALID_VALUE;
    for (size_t i = 0; i < count && !rc; i++) {
        struct copy_request r = linear(dsts[i], false, srcs[i], false, bytes[i]);
        rc = copy_submit(&r, true, stream);
    }
    return rc;
}

int cuMemcpyBatchAsync(hewn_cu_deviceptr *dsts, hewn_cu_deviceptr *srcs, size_t *bytes,
                       size_t count, const void *attributes, size_t *first, size_t attribute_count,
                       size_t *failed, hewn_cu_stream stream)
{
    int rc =
        cuMemcpyBatchAsync_v2(dsts, srcs, bytes, count, attributes, first, attribute_count, stream);
    if (rc && failed) *failed = SIZE_MAX; /* which one is not said */
    return rc;
}

/* ---- fills: those without a stream go to the legacy one; the host waits for those of its own memory alone (CUDA
 * Driver API, "API synchronization behavior") ---- */

static int fill(hewn_cu_deviceptr dst, size_t pitch, uint32_t value, uint32_t element, size_t width,
                size_t height, bool async, hewn_cu_stream stream)
{
    struct call call CALL_SCOPE;
    struct work work = {.kind = WORK_FILL,
                        .fill = {.dst = (uint8_t *)(uintptr_t)dst,
                                 .value = value,
                                 .element = element,
                                 .width = width,
                                 .height = height,
                                 .pitch = pitch}};
    struct CUstream_st *s;
    int rc;

    if (call_enter(&call, async ? CALL_PLAIN : CALL_UNSAFE)) return call.rc;
    s = async ? stream_named(call.context, stream) : &call.context->legacy_stream;
    if (!s) return HEWN_CU_INVALID_HANDLE;
    rc = fill_check(&work.fill);
    if (rc && s->capture && graph_memory_around(dst, 1)) rc = 0;
    if (!rc) rc = stream_submit(s, &work);
    if (!rc && !async && memory_of_host(dst)) {
        deferred_finish_stream(s);
        beside_host_stream(s);
    }
    return rc;
}

int cuMemsetD8_v2(hewn_cu_deviceptr dst, unsigned char value, size_t count)
{
    return fill(dst, 0, value, 1, count, 1, false, NULL);
}

int cuMemsetD16_v2(hewn_cu_deviceptr dst, unsigned short value, size_t count)
{
    return fill(dst, 0, value, 2, count, 1, false, NULL);
}

int cuMemsetD32_v2(hewn_cu_deviceptr dst, unsigned value, size_t count)
{
    return fill(dst, 0, value, 4, count, 1, false, NULL);
}

int cuMemsetD8Async(hewn_cu_deviceptr dst, unsigned char value, size_t count, hewn_cu_stream stream)
{
    return fill(dst, 0, value, 1, count, 1, true, stream);
}

int cuMemsetD16Async(hewn_cu_deviceptr dst, unsigned short value, size_t count,
                     hewn_cu_stream stream)
{
    return fill(dst, 0, value, 2, count, 1, true, stream);
}

int cuMemsetD32Async(hewn_cu_deviceptr dst, unsigned value, size_t count, hewn_cu_stream stream)
{
    return fill(dst, 0, value, 4, count, 1, true, stream);
}

int cuMemsetD2D8_v2(hewn_cu_deviceptr dst, size_t pitch, unsigned char value, size_t width,
                    size_t height)
{
    return fill(dst, pitch, value, 1, width, height, false, NULL);
}

int cuMemsetD2D16_v2(hewn_cu_deviceptr dst, size_t pitch, unsigned short value, size_t width,
                     size_t height)
{
    return fill(dst, pitch, value, 2, width, height, false, NULL);
}

int cuMemsetD2D32_v2(hewn_cu_deviceptr dst, size_t pitch, unsigned value, size_t width,
                     size_t height)
{
    return fill(dst, pitch, value, 4, width, height, false, NULL);
}

int cuMemsetD2D8Async(hewn_cu_deviceptr dst, size_t pitch, unsigned char value, size_t width,
                      size_t height, hewn_cu_stream stream)
{
    return fill(dst, pitch, value, 1, width, height, true, stream);
}

int cuMemsetD2D16Async(hewn_cu_deviceptr dst, size_t pitch, unsigned short value, size_t width,
                       size_t height, hewn_cu_stream stream)
{
    return fill(dst, pitch, value, 2, width, height, true, stream);
}

int cuMemsetD2D32Async(hewn_cu_deviceptr dst, size_t pitch, unsigned value, size_t width,
                       size_t height, hewn_cu_stream stream)
{
    return fill(dst, pitch, value, 4, width, height, true, stream);
}
