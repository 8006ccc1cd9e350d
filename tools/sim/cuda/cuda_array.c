/* CUDA arrays and mipmapped arrays: plain row-major device memory with a format. */
#include "cuda/array.h"

#include <stdlib.h>

enum { SIZE_MOST = 1 << 17, LAYERS_MOST = 2048, ARRAY_FLAGS = 0x1F };

static int format_of(int format, unsigned channels, struct texel_format *out)
{
    static const struct {
        int format;
        uint8_t kind, bits;
    } rows[] = {{HEWN_CU_FORMAT_U8, TEXEL_UNSIGNED, 8},   {HEWN_CU_FORMAT_U16, TEXEL_UNSIGNED, 16},
                {HEWN_CU_FORMAT_U32, TEXEL_UNSIGNED, 32}, {HEWN_CU_FORMAT_S8, TEXEL_SIGNED, 8},
                {HEWN_CU_FORMAT_S16, TEXEL_SIGNED, 16},   {HEWN_CU_FORMAT_S32, TEXEL_SIGNED, 32},
                {HEWN_CU_FORMAT_F16, TEXEL_FLOAT, 16},    {HEWN_CU_FORMAT_F32, TEXEL_FLOAT, 32}};

    if (channels != 1 && channels != 2 && channels != 4) return HEWN_CU_INVALID_VALUE;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].format != format) continue;
        *out = (struct texel_format){rows[i].kind, rows[i].bits, (uint8_t)channels};
        return 0;
    }
    return HEWN_CU_NOT_SUPPORTED; /* packed, block-compressed and video formats */
}

int texel_format_of(int format, unsigned channels, struct texel_format *out)
{
    return format_of(format, channels, out);
}

/* ---- making one ---- */

/* The rules of cuArray3DCreate about sizes and flags. */
static bool shape_of(const hewn_cu_array3d_desc *d, enum texture_shape *out)
{
    bool layered = d->flags & HEWN_CU_ARRAY_LAYERED, cube = d->flags & HEWN_CU_ARRAY_CUBEMAP;

    if (!d->width || d->width > SIZE_MOST || d->height > SIZE_MOST || d->depth > SIZE_MOST)
        return false;
    if (d->flags & ~(unsigned)ARRAY_FLAGS) return false;
    if (cube) {
        *out = layered ? TEXTURE_CUBE_LAYERED : TEXTURE_CUBE;
        return d->width == d->height && d->depth && d->depth % CUBE_FACES == 0 &&
               (layered || d->depth == CUBE_FACES);
    }
    if (layered) {
        *out = d->height ? TEXTURE_2D_LAYERED : TEXTURE_1D_LAYERED;
        return d->depth && d->depth <= LAYERS_MOST;
    }
    *out = d->depth ? TEXTURE_3D : d->height ? TEXTURE_2D : TEXTURE_1D;
    return !d->depth || d->height;
}

static size_t at_least_one(size_t n)
{
    return n ? n : 1;
}

static int array_fill(struct CUarray_st *a, struct CUctx_st *context,
                      const hewn_cu_array3d_desc *desc)
{
    uint64_t bytes;
    int rc = format_of(desc->format, desc->channels, &a->format);

    if (rc) return rc;
    if (!shape_of(desc, &a->shape)) return HEWN_CU_INVALID_VALUE;
    a->context = context;
    a->desc = *desc;
    a->row = desc->width * texel_bytes(&a->format);
    a->slice = a->row * at_least_one(desc->height);
    if (__builtin_mul_overflow(a->slice, at_least_one(desc->depth), &bytes))
        return HEWN_CU_OUT_OF_MEMORY;
    return mem_alloc(bytes, &a->address);
}

static int array_new(struct CUctx_st *context, const hewn_cu_array3d_desc *desc, hewn_cu_array *out)
{
    struct CUarray_st *a = calloc(1, sizeof *a);
    int rc;

    if (!a) return HEWN_CU_OUT_OF_MEMORY;
    rc = array_fill(a, context, desc);
    if (!rc) rc = handle_add(a, HANDLE_ARRAY, a, context);
    if (rc) {
        if (a->address) mem_free(a->address);
        free(a);
        return rc;
    }
    *out = a;
    return 0;
}

void array_destroy(struct CUarray_st *a)
{
    handle_drop(a);
    mem_free(a->address);
    free(a);
}

static int create(hewn_cu_array *array, const hewn_cu_array3d_desc *desc)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, CALL_UNSAFE)) return call.rc;
    if (!array || !desc) return HEWN_CU_INVALID_VALUE;
    return array_new(call.context, desc, array);
}

int cuArrayCreate_v2(hewn_cu_array *array, const hewn_cu_array_desc *desc)
{
    hewn_cu_array3d_desc full = {.width = 0};

    if (!desc) return HEWN_CU_INVALID_VALUE;
    full.width = desc->width;
    full.height = desc->height;
    full.format = desc->format;
    full.channels = desc->channels;
    return create(array, &full);
}

int cuArray3DCreate_v2(hewn_cu_array *array, const hewn_cu_array3d_desc *desc)
{
    return create(array, desc);
}

int cuArrayDestroy(hewn_cu_array array)
{
    struct call call CALL_SCOPE;
    struct CUarray_st *a;

    if (call_enter(&call, CALL_RELEASE | UNSAFE_IN_CAPTURE)) return call.rc;
    a = handle_get(array, HANDLE_ARRAY);
    if (!a || a->mipmapped) return HEWN_CU_INVALID_HANDLE;
    array_destroy(a);
    return 0;
}

static int describe(hewn_cu_array3d_desc *out, hewn_cu_array array)
{
    struct call call CALL_SCOPE;
    struct CUarray_st *a;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    a = handle_get(array, HANDLE_ARRAY);
    if (!a) return HEWN_CU_INVALID_HANDLE;
    if (!out) return HEWN_CU_INVALID_VALUE;
    *out = a->desc;
    return 0;
}

int cuArray3DGetDescriptor_v2(hewn_cu_array3d_desc *out, hewn_cu_array array)
{
    return describe(out, array);
}

int cuArrayGetDescriptor_v2(hewn_cu_array_desc *out, hewn_cu_array array)
{
    hewn_cu_array3d_desc full = {.width = 0};
    int rc = describe(out ? &full : NULL, array);

    if (rc || !out) return rc;
    *out = (hewn_cu_array_desc){full.width, full.height, full.format, full.channels};
    return 0;
}

/* ---- levels ---- */

static size_t halved(size_t n, unsigned times)
{
    return n ? at_least_one(n >> times) : 0;
}

static int add_levels(struct CUmipmappedArray_st *m, const hewn_cu_array3d_desc *desc,
                      unsigned count)
{
    int rc = 0;

    for (unsigned i = 0; i < count && !rc; i++) {
        hewn_cu_array3d_desc level = *desc;
        level.width = halved(desc->width, i);
        level.height = halved(desc->height, i);
        if (!(desc->flags & (HEWN_CU_ARRAY_LAYERED | HEWN_CU_ARRAY_CUBEMAP)))
            level.depth = halved(desc->depth, i);
        rc = array_new(m->context, &level, &m->level[i]);
        if (rc) break;
        m->level[i]->mipmapped = m;
        m->levels++;
    }
    return rc;
}

void mipmapped_destroy(struct CUmipmappedArray_st *m)
{
    handle_drop(m);
    for (unsigned i = 0; i < m->levels; i++) array_destroy(m->level[i]);
    free(m);
}

/* As many levels as lead to a size of 1. */
static unsigned levels_most(const hewn_cu_array3d_desc *d)
{
    size_t longest = d->width > d->height ? d->width : d->height;
    unsigned levels = 1;

    if (!(d->flags & HEWN_CU_ARRAY_LAYERED) && d->depth > longest) longest = d->depth;
    while (longest >>= 1) levels++;
    return levels < TEXTURE_LEVELS ? levels : TEXTURE_LEVELS;
}

int cuMipmappedArrayCreate(hewn_cu_mipmapped_array *out, const hewn_cu_array3d_desc *desc,
                           unsigned levels)
{
    struct call call CALL_SCOPE;
    struct CUmipmappedArray_st *m;
    int rc;

    if (call_enter(&call, CALL_UNSAFE)) return call.rc;
    if (!out || !desc || !levels) return HEWN_CU_INVALID_VALUE;
    if (levels > levels_most(desc)) levels = levels_most(desc);
    m = calloc(1, sizeof *m);
    if (!m) return HEWN_CU_OUT_OF_MEMORY;
    m->context = call.context;
    rc = add_levels(m, desc, levels);
    if (!rc) rc = handle_add(m, HANDLE_MIPMAPPED, m, call.context);
    if (rc) {
        mipmapped_destroy(m);
        return rc;
    }
    *out = m;
    return 0;
}

int cuMipmappedArrayGetLevel(hewn_cu_array *array, hewn_cu_mipmapped_array mipmapped,
                             unsigned level)
{
    struct call call CALL_SCOPE;
    struct CUmipmappedArray_st *m;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    m = handle_get(mipmapped, HANDLE_MIPMAPPED);
    if (!m) return HEWN_CU_INVALID_HANDLE;
    if (!array || level >= m->levels) return HEWN_CU_INVALID_VALUE;
    *array = m->level[level];
    return 0;
}

int cuMipmappedArrayDestroy(hewn_cu_mipmapped_array mipmapped)
{
    struct call call CALL_SCOPE;
    struct CUmipmappedArray_st *m;

    if (call_enter(&call, CALL_RELEASE | UNSAFE_IN_CAPTURE)) return call.rc;
    m = handle_get(mipmapped, HANDLE_MIPMAPPED);
    if (!m) return HEWN_CU_INVALID_HANDLE;
    mipmapped_destroy(m);
    return 0;
}
