/*
 * What watched kernels and the watching thread share: tables of records (tables.c).
 *
 * A warp that waits writes a record into the slot of its CTA and warp. A wait that blocks (bar.sync) writes before
 * and clears `site` after. A wait that polls writes after many polls that failed, again after as many more, and
 * never clears: the reader clears the slot and sees whether the warp writes it again.
 */
#ifndef WATCH_TABLE_H
#define WATCH_TABLE_H

#include <stdint.h>

enum {
    WATCH_HEADER = 4096,   /* bytes before the first slot */
    WATCH_SLOTS = 1 << 16, /* CTAs that are far apart may share slots */
    WATCH_CTA_SHIFT = 5,   /* a CTA has 32 slots, one for a warp */
    WATCH_CTA_Y = 509,     /* CTA (x,y,z) begins at slot (x + 509 y + 1021 z) * 32 */
    WATCH_CTA_Z = 1021,
    WATCH_WARP_BITS = 8,
    WATCH_NUMBER_SHIFT = 20,
    WATCH_RECORD_BYTES = 32,
    WATCH_POLLS = 64,  /* polls that the hardware may suspend, from one record to the next */
    WATCH_SPINS = 4096 /* polls that return at once, likewise; a power of two */
};
#define WATCH_TABLE_BYTES ((size_t)WATCH_HEADER + (size_t)WATCH_SLOTS * WATCH_RECORD_BYTES)

/* On the device: of the table for waits that poll, and of the one for waits that block. */
struct watch_addresses {
    uint64_t polls, blocks;
};

struct watch_record {
    uint32_t site;          /* 0: not waiting */
    uint32_t cta_x, cta_yz; /* y | z << 16 */
    uint32_t
        who; /* warp in the CTA | threads of the CTA << 8 | number of the barrier << 20, of a wait that blocks */
    /* of polls: */
    uint32_t barrier; /* address of the mbarrier without `offset` */
    uint32_t value;   /* parity, or the low half of the state */
    uint32_t offset;  /* constant part of the address */
    uint32_t unused;
};

struct watch_table {
    uint32_t stop; /* not 0: a wait that polls ends its kernel */
    uint8_t unused[WATCH_HEADER - sizeof(uint32_t)];
    struct watch_record slots[WATCH_SLOTS];
};

#endif
