/*
 * Shadow memory: for each piece of memory the last write and the reads since, as epochs (clock.h).
 *
 * Strong accesses do not race with one another, ordered or not (PTX ISA "Race-freedom"). So a strong write
 * does not stand in for what came before it: beside it stay the writes and reads that a later access
 * may still race with, which makes two sets of a piece.
 *
 * A piece is a cell of fixed size, split into four, and those again down to bytes, only where accesses
 * differ; cells whose parts become equal are joined again. What many cells have in common costs little:
 * a range is one loop in which a cell that was like one seen before becomes what that one became, and
 * sets of readers are immutable lists that cells share (shadow_collect gives back lists no cell has).
 */
#ifndef SIM_SHADOW_H
#define SIM_SHADOW_H

#include "check/clock.h"

enum {
    SHARED_CELL = 16, /* bytes */
    GLOBAL_CELL = 64,
    GLOBAL_PAGE = 4096,
    PAGE_CELLS = GLOBAL_PAGE / GLOBAL_CELL,
    TENSOR_BLOCKS = 8, /* of 16 lanes: no shape touches less */
    TENSOR_CELLS = 512 * TENSOR_BLOCKS,
    CELL_PARTS = 4
};

/* Each an epoch, 0, or a list of epochs; write may be split instead (lists and splits are codes of an
 * impossible component, in shadow.c). */
struct cell {
    epoch write;
    uint64_t read;
};

struct shadow_reader {
    epoch by;
    uint32_t next;                    /* 0: the last; free ones: the next free one */
    uint32_t length : 29, marked : 1; /* length from here on */
    uint32_t older : 1;               /* a read from before the newest write, as all that follow */
    uint32_t is_weak : 1;
    uint32_t weak;      /* of these, weak accesses */
    uint32_t filter_at; /* length at which a newcomer looks whom it stands in for */
};

struct shadow_page {
    uint64_t number; /* address / GLOBAL_PAGE, plus 1 */
    struct cell *cells;
};

struct shadow {
    struct shadow_reader *readers; /* [0] unused */
    uint32_t reader_count, reader_capacity, reader_free, reader_live, collect_at;
    struct cell (*blocks)[CELL_PARTS]; /* parts of split cells; [0] unused */
    uint32_t block_count, block_capacity, block_free;
    struct shadow_page *pages; /* open addressing, at most half full */
    uint32_t page_slots, page_count;
    struct shadow_page last; /* looked up */
    struct {
        struct cell *cells;
        uint32_t count;
    } * arrays; /* outside: shared and tensor memory */
    uint32_t array_count, array_capacity;
    uint32_t collections; /* lists of before the last one are gone */
    uint64_t bytes, most; /* allocated here; may be */
    bool failed;          /* memory, or `most` */
};

/* Cells kept elsewhere, in which lists and parts of this shadow lie. False: no memory. */
bool shadow_adopt(struct shadow *s, struct cell *cells, uint32_t count);
/* Forgets everything; adopted cells have been cleared. */
void shadow_reset(struct shadow *s);
void shadow_free(struct shadow *s);
/* Between touches: gives back lists of readers when many have come. True if it did. */
bool shadow_collect(struct shadow *s);
/* The cells of the page of global memory that holds `address`; NULL when there is no room. */
struct cell *shadow_page(struct shadow *s, uint64_t address);

/* The same, of a page that has been touched; else NULL. */
struct cell *shadow_page_there(const struct shadow *s, uint64_t address);

/* How a prior access stands to the one that comes now. */
enum standing { STANDING_ORDERED, STANDING_ACCEPTED, STANDING_REPORTED };

/* One access to some ranges. */
struct touch {
    struct shadow *shadow;
    epoch self;
    bool write;
    bool strong; /* does not race with those that is_strong says are strong */
    bool async;
    bool copies; /* what has the epoch of self is another copy of one phase, in no order with it */
    bool
        unordered; /* actions of self's component take effect in any order, but for what `needs` knows */
    epoch
        overtakes; /* then: an earlier one of its component that the write may come before; 0: none */
    const struct stamp *now; /* of whoever issued it */
    bool asks_own;           /* a read that is judged against the actor's own writes too */
    bool asks_queue; /* a write that is judged against all that its own component did before */
    const struct clock *needs; /* prior accesses that this knows are no matter for judge */
    /* Any other prior access. ORDERED: fine after all; ACCEPTED: let pass. */
    enum standing (*judge)(struct touch *t, epoch prior, bool wrote);
    bool (*is_strong)(const struct touch *t, epoch prior);
    /* The program can have made sure that what is strong came after the strong writes before it. */
    bool (*shows)(const struct touch *t, epoch prior);
    /* A plain read comes after a strong write; `newest` is the newest of those there. */
    void (*reads_strong)(const struct touch *t, epoch prior, epoch newest);
    /* Whether `needs`, or (needed false) now->known, knows the prior access. NULL: as clock_knows says. */
    bool (*knows)(const struct touch *t, epoch prior, bool needed);
    void *context;
    uint64_t at;          /* where: shared offset, global address; for judge */
    bool settled;         /* self comes after a strong access that came after this one; for judge */
    epoch replaces;       /* the write that judge's reader came after; 0: none */
    bool lost;            /* some prior accesses were too many to be kept */
    uint32_t collections; /* of the shadow, when the memo was begun */
    bool unwritten, written; /* of what it read: some was never written, some was */
    bool overwrites;         /* it wrote over something that had been read */
    bool first;              /* nothing has been touched yet */
    /* It has written over what its actor wrote just before: by another instruction; by the same one, at the first
     * place that it touched; elsewhere, where another of its lanes may have been that. */
    bool varies, again_first, again;
    struct touch_memo {
        struct cell was, becomes;
        uint64_t round; /* of no other is it anything */
    } memo[8], latest;
    uint64_t round;
};

/* What the touch remembers of cells holds no more: it is another access's from here on. */
static inline void shadow_forget(struct touch *t)
{
    t->round++;
}

/* Bytes [first, first + bytes) of cells of `size` bytes, the first of which is cells[0]; touch.at is
 * `base` more than the place among them. */
void shadow_touch(struct touch *t, struct cell *cells, uint32_t size, uint64_t first,
                  uint64_t bytes, uint64_t base);
/* Whether some of the bytes at `first` of such cells have never been written. */
bool shadow_unwritten(const struct shadow *s, const struct cell *cells, uint32_t size,
                      uint64_t first, uint64_t bytes);
/* cells[0 .. count), whole. */
void shadow_touch_cells(struct touch *t, struct cell *cells, uint32_t count);

/* Calls `each` for every written or read piece of global memory: address, bytes, cell (not split). */
void shadow_walk(const struct shadow *s,
                 void (*each)(void *context, uint64_t address, uint32_t bytes,
                              const struct cell *c),
                 void *context);
/* Takes the first epoch off a set, cell.write or cell.read of a cell that is not split; 0: it is empty. */
epoch shadow_take(const struct shadow *s, uint64_t *set);

#endif
