/* Texture and surface objects. Texture references, which CUDA 12 removed from the language, are not modelled. */
#include "cuda/array.h"
#include "cuda/repeat.h"

#include <stdlib.h>

enum { LINEAR_TEXELS_MOST = 1 << 28, PITCH_ALIGN = 32, ADDRESS_ALIGN = 512 };

static const void *key_of(uint64_t handle)
{
    return (const void *)(uintptr_t)handle;
}

static void level_of(const struct CUarray_st *a, struct texture_level *out)
{
    out->address = a->address;
    out->size[0] = (uint32_t)a->desc.width;
    out->size[1] = a->desc.height ? (uint32_t)a->desc.height : 1;
    out->size[2] = a->desc.depth ? (uint32_t)a->desc.depth : 1;
    out->row = a->row;
    out->slice = a->slice;
}

static void from_array(struct texture *t, const struct CUarray_st *a)
{
    bool cube = a->shape == TEXTURE_CUBE || a->shape == TEXTURE_CUBE_LAYERED;
    bool layered = a->desc.flags & HEWN_CU_ARRAY_LAYERED;

    t->shape = (uint8_t)a->shape;
    t->format = a->format;
    t->layers = layered ? (uint32_t)a->desc.depth / (cube ? CUBE_FACES : 1U) : 1;
    t->levels = 1;
    level_of(a, &t->level[0]);
}

static int from_mipmapped(struct texture *t, const struct CUmipmappedArray_st *m)
{
    if (!m) return HEWN_CU_INVALID_HANDLE;
    from_array(t, m->level[0]);
    t->levels = m->levels;
    for (unsigned i = 0; i < m->levels; i++) level_of(m->level[i], &t->level[i]);
    return 0;
}

static int from_linear(struct texture *t, const hewn_cu_resource_desc *r)
{
    int rc = texel_format_of(r->of.linear.format, r->of.linear.channels, &t->format);
    size_t texels = rc ? 0 : r->of.linear.bytes / texel_bytes(&t->format);

    if (rc) return rc;
    if (!texels || texels > LINEAR_TEXELS_MOST || !r->of.linear.address ||
        r->of.linear.address % texel_bytes(&t->format))
        return HEWN_CU_INVALID_VALUE;
    t->shape = TEXTURE_LINEAR;
    t->layers = t->levels = 1;
    t->level[0] =
        (struct texture_level){.address = r->of.linear.address, .size = {(uint32_t)texels, 1, 1}};
    return 0;
}

static int from_pitch2d(struct texture *t, const hewn_cu_resource_desc *r)
{
    int rc = texel_format_of(r->of.pitch2d.format, r->of.pitch2d.channels, &t->format);
    size_t width = r->of.pitch2d.width, height = r->of.pitch2d.height, pitch = r->of.pitch2d.pitch;

    if (rc) return rc;
    if (!width || !height || width > LINEAR_TEXELS_MOST || height > LINEAR_TEXELS_MOST ||
        pitch < width * texel_bytes(&t->format) || pitch % PITCH_ALIGN || !r->of.pitch2d.address ||
        r->of.pitch2d.address % ADDRESS_ALIGN)
        return HEWN_CU_INVALID_VALUE;
    t->shape = TEXTURE_2D;
    t->layers = t->levels = 1;
    t->level[0] = (struct texture_level){.address = r->of.pitch2d.address,
                                         .size = {(uint32_t)width, (uint32_t)height, 1},
                                         .row = pitch};
    return 0;
}

static int from_resource(struct texture *t, const hewn_cu_resource_desc *r)
{
    struct CUarray_st *a;

    switch (r->type) {
    case HEWN_CU_RESOURCE_ARRAY:
        a = handle_get(r->of.array, HANDLE_ARRAY);
        if (!a) return HEWN_CU_INVALID_HANDLE;
        from_array(t, a);
        return 0;
    case HEWN_CU_RESOURCE_MIPMAPPED_ARRAY:
        return from_mipmapped(t, handle_get(r->of.mipmapped, HANDLE_MIPMAPPED));
    case HEWN_CU_RESOURCE_LINEAR: return from_linear(t, r);
    case HEWN_CU_RESOURCE_PITCH2D: return from_pitch2d(t, r);
    default: return HEWN_CU_INVALID_VALUE;
    }
}

/* How it is read: what CUDA_TEXTURE_DESC says of each field. */
static int set_sampling(struct texture *t, const hewn_cu_texture_desc *d)
{
    bool integers = t->format.kind != TEXEL_FLOAT;

    for (unsigned i = 0; i < TEXTURE_DIMS; i++) {
        if (d->address_mode[i] < ADDRESS_WRAP || d->address_mode[i] > ADDRESS_BORDER)
            return HEWN_CU_INVALID_VALUE;
        t->wrap[i] = (uint8_t)d->address_mode[i];
    }
    if (d->filter < 0 || d->filter > 1 || d->level_filter < 0 || d->level_filter > 1)
        return HEWN_CU_INVALID_VALUE;
    t->as_float = integers && t->format.bits < 32 && !(d->flags & HEWN_CU_TEXTURE_AS_INTEGER);
    t->linear =
        d->filter && t->shape != TEXTURE_LINEAR && texture_floats(t); /* integers: the nearest */
    t->linear_levels = d->level_filter;
    t->normalized = (d->flags & HEWN_CU_TEXTURE_NORMALIZED) && t->shape != TEXTURE_LINEAR;
    if (t->levels > 1 && !t->normalized) return HEWN_CU_INVALID_VALUE;
    if (t->shape == TEXTURE_CUBE || t->shape == TEXTURE_CUBE_LAYERED) {
        t->normalized = true; /* a direction has no texels */
        memset(t->wrap, ADDRESS_CLAMP, sizeof t->wrap);
    }
    t->srgb = d->flags & HEWN_CU_TEXTURE_SRGB;
    t->bias = d->level_bias;
    t->least_level = d->least_level;
    t->most_level = d->most_level;
    memcpy(t->border, d->border, sizeof t->border);
    return 0;
}

/* A view with another format or other sizes is not modelled; one that says what is there is. */
static int check_view(const struct texture *t, const hewn_cu_resource_view_desc *v)
{
    if (!v) return 0;
    if (v->width != t->level[0].size[0] ||
        (texture_dims(t) > 1 && v->height != t->level[0].size[1]))
        return HEWN_CU_NOT_SUPPORTED;
    if (v->first_level || (v->last_level && v->last_level != t->levels - 1) || v->first_layer)
        return HEWN_CU_NOT_SUPPORTED;
    return 0;
}

static int object_new(struct call *call, struct texture *t, const struct texture_object *model,
                      uint64_t *out)
{
    struct texture_object *object = malloc(sizeof *object);
    struct texture *kept = malloc(sizeof *kept);
    uint64_t handle = 0;

    if (object && kept) {
        *kept = *t;
        handle = texture_add(kept);
    }
    if (!handle) {
        free(object);
        free(kept);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    *object = *model;
    object->handle = handle;
    if (handle_add(key_of(handle), HANDLE_TEXTURE, object, call->context)) {
        texture_drop(handle);
        free(object);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    *out = handle;
    return 0;
}

void texture_object_destroy(struct texture_object *object)
{
    repeat_forget(); /* another object may get the same handle */
    handle_drop(key_of(object->handle));
    texture_drop(object->handle);
    free(object);
}

int cuTexObjectCreate(uint64_t *handle, const hewn_cu_resource_desc *resource,
                      const hewn_cu_texture_desc *texture, const hewn_cu_resource_view_desc *view)
{
    struct call call CALL_SCOPE;
    struct texture t = {.shape = 0};
    struct texture_object object = {.handle = 0};
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!handle || !resource || !texture) return HEWN_CU_INVALID_VALUE;
    rc = from_resource(&t, resource);
    if (!rc) rc = set_sampling(&t, texture);
    if (!rc) rc = check_view(&t, view);
    if (rc) return rc;
    object.resource = *resource;
    object.texture = *texture;
    object.has_view = view;
    if (view) object.view = *view;
    return object_new(&call, &t, &object, handle);
}

int cuSurfObjectCreate(uint64_t *handle, const hewn_cu_resource_desc *resource)
{
    struct call call CALL_SCOPE;
    struct texture t = {.shape = 0};
    struct texture_object object = {.surface = true};
    struct CUarray_st *a;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!handle || !resource || resource->type != HEWN_CU_RESOURCE_ARRAY)
        return HEWN_CU_INVALID_VALUE;
    a = handle_get(resource->of.array, HANDLE_ARRAY);
    if (!a) return HEWN_CU_INVALID_HANDLE;
    from_array(&t, a);
    t.surface = true;
    object.resource = *resource;
    return object_new(&call, &t, &object, handle);
}

/* ---- about an object, and its end ---- */

static int object_named(struct call *call, uint64_t handle, bool surface,
                        struct texture_object **out)
{
    if (call_enter(call, CALL_PLAIN)) return call->rc;
    *out = handle_get(key_of(handle), HANDLE_TEXTURE);
    return call->rc = *out && (*out)->surface == surface ? 0 : HEWN_CU_INVALID_VALUE;
}

static int destroy(uint64_t handle, bool surface)
{
    struct call call CALL_SCOPE;
    struct texture_object *object = NULL;

    if (object_named(&call, handle, surface, &object) || !object) return call.rc;
    texture_object_destroy(object);
    return 0;
}

int cuTexObjectDestroy(uint64_t handle)
{
    return destroy(handle, false);
}

int cuSurfObjectDestroy(uint64_t handle)
{
    return destroy(handle, true);
}

int cuTexObjectGetResourceDesc(hewn_cu_resource_desc *out, uint64_t handle)
{
    struct call call CALL_SCOPE;
    struct texture_object *object = NULL;

    if (object_named(&call, handle, false, &object) || !object) return call.rc;
    if (!out) return HEWN_CU_INVALID_VALUE;
    *out = object->resource;
    return 0;
}

int cuSurfObjectGetResourceDesc(hewn_cu_resource_desc *out, uint64_t handle)
{
    struct call call CALL_SCOPE;
    struct texture_object *object = NULL;

    if (object_named(&call, handle, true, &object) || !object) return call.rc;
    if (!out) return HEWN_CU_INVALID_VALUE;
    *out = object->resource;
    return 0;
}

int cuTexObjectGetTextureDesc(hewn_cu_texture_desc *out, uint64_t handle)
{
    struct call call CALL_SCOPE;
    struct texture_object *object = NULL;

    if (object_named(&call, handle, false, &object) || !object) return call.rc;
    if (!out) return HEWN_CU_INVALID_VALUE;
    *out = object->texture;
    return 0;
}

int cuTexObjectGetResourceViewDesc(hewn_cu_resource_view_desc *out, uint64_t handle)
{
    struct call call CALL_SCOPE;
    struct texture_object *object = NULL;

    if (object_named(&call, handle, false, &object) || !object) return call.rc;
    if (!out || !object->has_view) return HEWN_CU_INVALID_VALUE;
    *out = object->view;
    return 0;
}
