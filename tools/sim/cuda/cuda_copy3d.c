/* Copies with pitches, of two and three dimensions, between host, device and arrays. */
#include "cuda/array.h"

/* One side of a copy, and what that comes to. */
struct side {
    size_t x, y, z;
    int type; /* HEWN_CU_MEMORY_... */
    const void *host;
    hewn_cu_deviceptr device;
    hewn_cu_array array;
    size_t pitch, height; /* of memory that is no array; height 0: not given */

    uint64_t address;
    bool in_device;
    uint64_t slice;
};

static bool fits(size_t at, size_t count, size_t size)
{
    return at <= size && count <= size - at;
}

static int resolve_array(struct side *s, size_t width, size_t height, size_t depth)
{
    const struct CUarray_st *a = handle_get(s->array, HANDLE_ARRAY);

    if (!a) return HEWN_CU_INVALID_VALUE;
    if (!fits(s->x, width, a->row) || !fits(s->y, height, a->desc.height ? a->desc.height : 1) ||
        !fits(s->z, depth, a->desc.depth ? a->desc.depth : 1))
        return HEWN_CU_INVALID_VALUE;
    s->pitch = a->row;
    s->slice = a->slice;
    s->address = a->address + s->x + s->y * s->pitch + s->z * s->slice;
    s->in_device = true;
    return 0;
}

/* `s`: with everything but address, in_device and slice. */
static int resolve(struct side *s, size_t width, size_t height, size_t depth)
{
    size_t rows = s->height ? s->height : height;

    switch (s->type) {
    case HEWN_CU_MEMORY_ARRAY: return resolve_array(s, width, height, depth);
    case HEWN_CU_MEMORY_HOST: s->address = (uint64_t)(uintptr_t)s->host; break;
    case HEWN_CU_MEMORY_DEVICE:
    case HEWN_CU_MEMORY_UNIFIED: s->address = s->device; break;
    default: return HEWN_CU_INVALID_VALUE;
    }
    if (height > 1 && s->pitch < width + s->x) return HEWN_CU_INVALID_VALUE;
    if (depth > 1 && rows < height + s->y) return HEWN_CU_INVALID_VALUE;
    s->in_device = s->type == HEWN_CU_MEMORY_DEVICE;
    s->slice = rows * s->pitch;
    s->address += s->x + s->y * s->pitch + s->z * s->slice;
    return 0;
}

int copy3d_request(const hewn_cu_memcpy3d *c, struct copy_request *out)
{
    struct side dst = {.x = c->dst_x,
                       .y = c->dst_y,
                       .z = c->dst_z,
                       .type = c->dst_type,
                       .host = c->dst_host,
                       .device = c->dst_device,
                       .array = c->dst_array,
                       .pitch = c->dst_pitch,
                       .height = c->dst_height};
    struct side src = {.x = c->src_x,
                       .y = c->src_y,
                       .z = c->src_z,
                       .type = c->src_type,
                       .host = c->src_host,
                       .device = c->src_device,
                       .array = c->src_array,
                       .pitch = c->src_pitch,
                       .height = c->src_height};
    int rc;

    if (c->src_level || c->dst_level) return HEWN_CU_INVALID_VALUE;
    rc = resolve(&dst, c->width, c->height, c->depth);
    if (!rc) rc = resolve(&src, c->width, c->height, c->depth);
    if (rc) return rc;
    *out = (struct copy_request){.dst = (uint8_t *)(uintptr_t)dst.address,
                                 .src = (const uint8_t *)(uintptr_t)src.address,
                                 .dst_device = dst.in_device,
                                 .src_device = src.in_device,
                                 .width = c->width,
                                 .height = c->height,
                                 .depth = c->depth,
                                 .dst_pitch = dst.pitch,
                                 .src_pitch = src.pitch,
                                 .dst_slice = dst.slice,
                                 .src_slice = src.slice};
    return 0;
}

/* Handles of arrays are looked up under the lock, as the copy is made. */
static int request_of(const hewn_cu_memcpy3d *c, struct copy_request *out)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    return copy3d_request(c, out);
}

static int copy_3d(const hewn_cu_memcpy3d *c, bool async, hewn_cu_stream stream)
{
    struct copy_request r;
    int rc = c ? request_of(c, &r) : HEWN_CU_INVALID_VALUE;

    return rc ? rc : copy_submit(&r, async, stream);
}

int cuMemcpy3D_v2(const hewn_cu_memcpy3d *c)
{
    return copy_3d(c, false, NULL);
}

int cuMemcpy3DAsync_v2(const hewn_cu_memcpy3d *c, hewn_cu_stream stream)
{
    return copy_3d(c, true, stream);
}

/* The same struct, with contexts in what is reserved; the device is one. */
static int copy_3d_peer(const hewn_cu_memcpy3d *c, bool async, hewn_cu_stream stream)
{
    struct copy_request r;
    hewn_cu_memcpy3d plain;
    int rc;

    if (!c) return HEWN_CU_INVALID_VALUE;
    plain = *c;
    plain.src_reserved = plain.dst_reserved = NULL;
    rc = request_of(&plain, &r);
    r.alone = !async; /* as cuMemcpyPeer */
    return rc ? rc : copy_submit(&r, async, stream);
}

int cuMemcpy3DPeer(const hewn_cu_memcpy3d *c)
{
    return copy_3d_peer(c, false, NULL);
}

int cuMemcpy3DPeerAsync(const hewn_cu_memcpy3d *c, hewn_cu_stream stream)
{
    return copy_3d_peer(c, true, stream);
}

static int copy_2d(const hewn_cu_memcpy2d *c, bool async, hewn_cu_stream stream)
{
    hewn_cu_memcpy3d full;

    if (!c) return HEWN_CU_INVALID_VALUE;
    full = (hewn_cu_memcpy3d){.src_x = c->src_x,
                              .src_y = c->src_y,
                              .src_type = c->src_type,
                              .src_host = c->src_host,
                              .src_device = c->src_device,
                              .src_array = c->src_array,
                              .src_pitch = c->src_pitch,
                              .dst_x = c->dst_x,
                              .dst_y = c->dst_y,
                              .dst_type = c->dst_type,
                              .dst_host = c->dst_host,
                              .dst_device = c->dst_device,
                              .dst_array = c->dst_array,
                              .dst_pitch = c->dst_pitch,
                              .width = c->width,
                              .height = c->height,
                              .depth = 1};
    return copy_3d(&full, async, stream);
}

int cuMemcpy2D_v2(const hewn_cu_memcpy2d *c)
{
    return copy_2d(c, false, NULL);
}

int cuMemcpy2DUnaligned_v2(const hewn_cu_memcpy2d *c)
{
    return copy_2d(c, false, NULL);
}

int cuMemcpy2DAsync_v2(const hewn_cu_memcpy2d *c, hewn_cu_stream stream)
{
    return copy_2d(c, true, stream);
}

/* ---- one-dimensional arrays; offsets in bytes ---- */

/* A range of a two-dimensional array runs on from row to row, as its memory does. */
static int range_of(hewn_cu_array array, size_t at, size_t bytes, uint64_t *address)
{
    struct call call CALL_SCOPE;
    const struct CUarray_st *a;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    a = handle_get(array, HANDLE_ARRAY);
    if (!a || !fits(at, bytes, a->slice)) return HEWN_CU_INVALID_VALUE;
    *address = a->address + at;
    return 0;
}

static int copy_range(uint64_t dst, bool dst_device, uint64_t src, bool src_device, size_t bytes,
                      bool async, hewn_cu_stream stream)
{
    struct copy_request r = {.dst = (uint8_t *)(uintptr_t)dst,
                             .src = (const uint8_t *)(uintptr_t)src,
                             .dst_device = dst_device,
                             .src_device = src_device,
                             .width = bytes,
                             .height = 1,
                             .depth = 1};
    return copy_submit(&r, async, stream);
}

int cuMemcpyAtoA_v2(hewn_cu_array dst, size_t dst_at, hewn_cu_array src, size_t src_at,
                    size_t bytes)
{
    uint64_t to = 0, from = 0;
    int rc = range_of(dst, dst_at, bytes, &to);

    if (!rc) rc = range_of(src, src_at, bytes, &from);
    return rc ? rc : copy_range(to, true, from, true, bytes, false, NULL);
}

static int from_array(uint64_t dst, bool device, hewn_cu_array src, size_t at, size_t bytes,
                      bool async, hewn_cu_stream stream)
{
    uint64_t from = 0;
    int rc = range_of(src, at, bytes, &from);

    return rc ? rc : copy_range(dst, device, from, true, bytes, async, stream);
}

static int to_array(hewn_cu_array dst, size_t at, uint64_t src, bool device, size_t bytes,
                    bool async, hewn_cu_stream stream)
{
    uint64_t to = 0;
    int rc = range_of(dst, at, bytes, &to);

    return rc ? rc : copy_range(to, true, src, device, bytes, async, stream);
}

int cuMemcpyAtoD_v2(hewn_cu_deviceptr dst, hewn_cu_array src, size_t at, size_t bytes)
{
    return from_array(dst, true, src, at, bytes, false, NULL);
}

int cuMemcpyAtoH_v2(void *dst, hewn_cu_array src, size_t at, size_t bytes)
{
    return from_array((uint64_t)(uintptr_t)dst, false, src, at, bytes, false, NULL);
}

int cuMemcpyAtoHAsync_v2(void *dst, hewn_cu_array src, size_t at, size_t bytes,
                         hewn_cu_stream stream)
{
    return from_array((uint64_t)(uintptr_t)dst, false, src, at, bytes, true, stream);
}

int cuMemcpyDtoA_v2(hewn_cu_array dst, size_t at, hewn_cu_deviceptr src, size_t bytes)
{
    return to_array(dst, at, src, true, bytes, false, NULL);
}

int cuMemcpyHtoA_v2(hewn_cu_array dst, size_t at, const void *src, size_t bytes)
{
    return to_array(dst, at, (uint64_t)(uintptr_t)src, false, bytes, false, NULL);
}

int cuMemcpyHtoAAsync_v2(hewn_cu_array dst, size_t at, const void *src, size_t bytes,
                         hewn_cu_stream stream)
{
    return to_array(dst, at, (uint64_t)(uintptr_t)src, false, bytes, true, stream);
}
