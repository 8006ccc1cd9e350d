/* Arrays, mipmapped arrays, texture and surface objects. */
#ifndef SIM_ARRAY_H
#define SIM_ARRAY_H

#include "cuda/driver.h"
#include "ops/texture.h"

struct CUarray_st {
    struct CUctx_st *context;
    hewn_cu_array3d_desc desc;
    struct texel_format format;
    enum texture_shape shape;
    uint64_t address;                      /* of the memory behind it */
    uint64_t row, slice;                   /* bytes */
    struct CUmipmappedArray_st *mipmapped; /* whose level it is, or NULL */
};

struct CUmipmappedArray_st {
    struct CUctx_st *context;
    unsigned levels;
    struct CUarray_st *level[TEXTURE_LEVELS];
};

/* 0, 1 for a wrong count of channels, 801 for a format that is not modelled. */
int texel_format_of(int format, unsigned channels, struct texel_format *out);
void array_destroy(struct CUarray_st *a);
void mipmapped_destroy(struct CUmipmappedArray_st *m);

/* A texture or surface object; its handle is the key. */
struct texture_object {
    uint64_t handle;
    hewn_cu_resource_desc resource;
    hewn_cu_texture_desc texture;
    hewn_cu_resource_view_desc view;
    bool has_view, surface;
};
void texture_object_destroy(struct texture_object *object);

#endif
