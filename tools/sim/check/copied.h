/* What copies and fills do to memory, and allocations and frees in stream order, for launches and other copies that may
 * run at the same time. */
#ifndef SIM_COPIED_H
#define SIM_COPIED_H

#include <stdbool.h>
#include <stdint.h>

struct launch_memory;

/* `depth` times `height` rows of `width` bytes. width 0: nothing. */
struct copied_area {
    uint64_t address, width, height, depth;
    uint64_t pitch, slice; /* bytes from one to the next; of no matter where there is one only */
};

struct copied {
    const char *name, *writes; /* what it is called in a message, and does to `to` */
    struct copied_area to, from;
    bool fills; /* `to` with `value`, in elements of so many bytes */
    uint32_t value, element;
};

/* Two accesses to one place, of which one writes. */
struct copied_clash {
    uint64_t address;
    uint32_t line; /* of the launch; 0: a copy's */
    bool writes;   /* the copy that asks does */
    bool wrote;    /* the other one does */
};

/* Whether an access of these bytes conflicts with the copy. *wrote: with what it writes. */
bool copied_meets(const struct copied *c, uint64_t address, uint64_t bytes, bool write,
                  bool *wrote);
/* Whether the copy conflicts with an earlier copy, or with what a launch did. */
bool copied_clashes(const struct copied *c, const struct copied *earlier, struct copied_clash *out);
bool copied_clashes_launch(const struct copied *c, const struct launch_memory *m,
                           struct copied_clash *out);

#endif
