/* insn.flags of floating-point instructions. */
#ifndef SIM_FPFLAGS_H
#define SIM_FPFLAGS_H

#include "ops/fpbits.h"
#include "machine/lanes.h"

enum {
    FLAG_FTZ = 1,
    FLAG_SAT = 2,  /* to [0, 1], NaN becomes 0 */
    FLAG_RELU = 4, /* negatives become 0 */
    FLAG_NAN = 8,  /* min, max: a NaN operand wins */
    FLAG_XORSIGN = 16,
    FLAG_ABS = 32,
    FLAG_SATFINITE = 64,
    FLAG_OOB = 1 << 12, /* fma: 0 where a factor is the NaN that fills tiles out of bounds */
    FLAG_ROUND_SHIFT = 8 /* enum round_mode */
};

LANE_INLINE enum round_mode flags_round(uint32_t flags)
{
    return (enum round_mode)(flags >> FLAG_ROUND_SHIFT);
}

LANE_INLINE float flags_in(float f, uint32_t flags)
{
    return flags & FLAG_FTZ ? f32_flush(f) : f;
}

/* .relu and .sat as they apply to a result. */
LANE_INLINE float flags_clamp(float r, uint32_t flags)
{
    if (flags & FLAG_RELU) r = r <= 0 ? 0.0f : r;
    if (flags & FLAG_SAT) {
        r = r > 0 ? r : 0.0f; /* NaN too */
        r = r > 1 ? 1.0f : r;
    }
    return r;
}

LANE_INLINE float flags_out(float r, uint32_t flags)
{
    if (flags & FLAG_FTZ) r = f32_flush(r);
    return flags_clamp(f32_canonical(r), flags);
}

/* Reads the modifiers. */
static inline uint16_t flags_of(const struct decoder *dc)
{
    static const struct {
        const char *text;
        uint16_t flag;
    } names[] = {{"ftz", FLAG_FTZ},
                 {"sat", FLAG_SAT},
                 {"relu", FLAG_RELU},
                 {"NaN", FLAG_NAN},
                 {"xorsign", FLAG_XORSIGN},
                 {"abs", FLAG_ABS},
                 {"satfinite", FLAG_SATFINITE},
                 {"oob", FLAG_OOB},
                 {"rz", ROUND_ZERO << FLAG_ROUND_SHIFT},
                 {"rzi", ROUND_ZERO << FLAG_ROUND_SHIFT},
                 {"rm", ROUND_DOWN << FLAG_ROUND_SHIFT},
                 {"rmi", ROUND_DOWN << FLAG_ROUND_SHIFT},
                 {"rp", ROUND_UP << FLAG_ROUND_SHIFT},
                 {"rpi", ROUND_UP << FLAG_ROUND_SHIFT},
                 {"rna", ROUND_AWAY << FLAG_ROUND_SHIFT}};
    uint16_t flags = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (mod_has(dc, names[i].text)) flags |= names[i].flag;
    return flags;
}

#endif
