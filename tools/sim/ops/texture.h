/*
 * Textures and surfaces: what a handle stands for, and how a texel is found and filtered (CUDA C++ Programming Guide,
 * "Texture Fetching"). The driver makes the objects; instructions look them up by the 64-bit handle that programs pass
 * around.
 */
#ifndef SIM_TEXTURE_H
#define SIM_TEXTURE_H

#include <stdbool.h>
#include <stdint.h>

enum texture_shape {
    TEXTURE_1D,
    TEXTURE_2D,
    TEXTURE_3D,
    TEXTURE_1D_LAYERED,
    TEXTURE_2D_LAYERED,
    TEXTURE_CUBE,
    TEXTURE_CUBE_LAYERED,
    TEXTURE_LINEAR /* a range of memory: integer coordinates, no filter */
};

enum texel_kind { TEXEL_UNSIGNED, TEXEL_SIGNED, TEXEL_FLOAT };

struct texel_format {
    uint8_t kind;     /* enum texel_kind */
    uint8_t bits;     /* of a channel: 8, 16 or 32 */
    uint8_t channels; /* 1, 2 or 4 */
};

enum { TEXTURE_LEVELS = 16, TEXTURE_DIMS = 3, CUBE_FACES = 6 };

struct texture_level {
    uint64_t address;            /* in device memory */
    uint32_t size[TEXTURE_DIMS]; /* width, height, depth in texels; 1 where the shape has none */
    uint64_t row,
        slice; /* bytes from one row to the next, from one depth, layer or face to the next */
};

enum texture_address { ADDRESS_WRAP, ADDRESS_CLAMP, ADDRESS_MIRROR, ADDRESS_BORDER };

struct texture {
    uint8_t shape; /* enum texture_shape */
    bool surface;  /* bound for suld and sust, not for tex */
    struct texel_format format;
    uint32_t layers; /* 1 where the shape has none; a cube's faces are not layers */
    uint32_t levels;
    struct texture_level level[TEXTURE_LEVELS];
    uint8_t wrap[TEXTURE_DIMS]; /* enum texture_address */
    bool linear;                /* filter */
    bool linear_levels;         /* between levels */
    bool normalized;            /* coordinates run from 0 to 1 */
    bool as_float;              /* integers are read as numbers from 0 or -1 to 1 */
    bool srgb;
    float bias, least_level, most_level;
    float border[4];
};

/* Where a texel lies; false outside of a texture with a border. */
bool texture_place(const struct texture *t, uint32_t level, const int32_t at[TEXTURE_DIMS],
                   uint32_t layer, uint64_t *address);

/* A texel's four channels as 32-bit words, from its bytes: floats where the texture is read as such, else integers.
 * Absent channels are 0, the fourth 1. */
void texture_unpack(const struct texture *t, const void *texel, uint32_t out[4]);
void texture_border(const struct texture *t, uint32_t out[4]);
/* Whether texture_unpack gives floats. */
bool texture_floats(const struct texture *t);

/* The texels that a fetch reads and their weights, which add up to 1. */
struct texture_taps {
    uint32_t count; /* 1, or 2, 4, 8 with the linear filter */
    int32_t at[8][TEXTURE_DIMS];
    float weight[8];
};
/* `coordinate`: as the instruction gives them, floats. */
void texture_taps(const struct texture *t, uint32_t level, const float coordinate[TEXTURE_DIMS],
                  struct texture_taps *out);
/* A direction becomes a face and coordinates from 0 to 1 on it. */
uint32_t texture_face(const float direction[3], float out[2]);
/* How many of the dimensions take part: 1, 2 or 3. */
uint32_t texture_dims(const struct texture *t);
uint32_t texel_bytes(const struct texel_format *format);

/* ---- handles: made and dropped under the driver's lock, looked up while launches run ---- */

/* Takes over `t`, from malloc. 0 where memory is exhausted. */
uint64_t texture_add(struct texture *t);
const struct texture *texture_get(uint64_t handle); /* or NULL */
bool texture_drop(uint64_t handle);
void texture_drop_all(void);

#endif
