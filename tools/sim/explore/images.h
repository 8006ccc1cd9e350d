/* What memory holds before a launch, and what a run of it leaves, so that other runs can be compared with that one. */
#ifndef SIM_IMAGES_H
#define SIM_IMAGES_H

#include "machine/mem.h"

struct images {
    const struct mem_piece *memory; /* the caller's */
    size_t count, bytes;
    unsigned char *first, *result; /* before the launch; as images_keep found it */
};

/* Keeps what memory holds now. False: no memory. `m` is zero before. */
bool images_take(struct images *m, const struct mem_piece *memory, size_t count);
/* Puts it back. */
void images_restore(const struct images *m);
void images_keep(const struct images *m);
/* Whether memory holds what it held at images_keep. */
bool images_same(const struct images *m);
/* The first aligned word that it does not, as it was kept and as it is now; false: they are the same. */
bool images_differ(const struct images *m, uint64_t *address, uint32_t *kept, uint32_t *now);
/* Puts it back, and forgets it. */
void images_free(struct images *m);

#endif
