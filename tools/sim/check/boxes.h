/*
 * Which bytes of shared memory tensor copies staged, and from where in the tensor. Swizzles keep chunks of
 * 16 bytes whole: a chunk points to the copy that staged it, and a formula tells the rest.
 */
#ifndef SIM_BOXES_H
#define SIM_BOXES_H

#include "machine/event.h"
#include "async/tmap_copy.h"

enum {
    CHUNK = 16,
    CHUNK_READ = 1,
    CHUNK_OPERAND = 2, /* by a product */
    BOX_RANK = 5
};

/* How products have used a box. */
enum {
    BOX_LINES_MN = 1, /* its rows are rows of A or columns of B */
    BOX_LINES_K = 2,  /* its rows are steps of k */
    BOX_SKIPPED = 4,  /* one operand left out some of what lies between its rows */
    BOX_LEFT = 8,     /* one operand began below the first row, and went on behind the last */
    BOX_AGAIN = 16    /* the same product was added twice to one sum */
};

/* 16 bytes of shared memory. */
struct chunk {
    uint32_t box; /* number of the box, 0: none */
    uint8_t flags;
};

/* One copy of a box, as long as one of its chunks is there. */
struct box {
    const struct insn *in;   /* the copy */
    const struct cta *cta;   /* whose memory */
    uint32_t number, serial; /* its place in the table; unique */
    uint32_t next_free;
    uint32_t start, span; /* bytes */
    uint32_t live;        /* chunks */
    bool closed;          /* its end was looked at */
    struct tmap map;
    int32_t coord[TMAP_COORDS];
    uint32_t pitch, bytes,
        rows; /* of a row of dimension 0: from row to row, without the gap; how many */
    uint32_t extent[BOX_RANK];
    uint64_t shape; /* equal for boxes that lie alike */
    /* what products did with it */
    uint8_t use, elem_bytes;
    uint32_t left_from; /* BOX_LEFT: the first row read */
    const struct insn *reader;
    struct warp *reader_warp;
};

/* The boxes of a group. */
struct boxes {
    struct box **at; /* [1 .. count] */
    uint32_t count, room, free, serial;
};

void boxes_free(struct boxes *b);
/* NULL: no memory. */
struct box *box_new(struct boxes *b, const struct event *tile);
/* No chunk of it is left. */
void box_drop(struct boxes *b, struct box *box);

/* Where a chunk lies in its box: bytes along dimension 0, then elements along the others, all from the
 * box's start; `row` counts rows. */
struct box_place {
    int32_t at[BOX_RANK];
    uint32_t row;
};
/* False where the box has a gap there, or nothing is known about its order. */
bool box_place(const struct box *box, uint32_t address, struct box_place *out);
/* The chunk that holds a place. */
uint32_t box_address(const struct box *box, uint32_t row, uint32_t byte);
/* Whether the rows are those of a plain rectangle, so that coordinates can be told. */
bool box_plain(const struct box *box);
/* Of one tensor, as far as can be told. */
static inline bool box_same_tensor(const struct box *a, const struct box *b)
{
    return a->map.address == b->map.address && a->map.rank == b->map.rank;
}
/* The place's coordinate in the tensor; along dimension 0 in bytes, as they stand in shared memory. */
int64_t box_coordinate(const struct box *box, const struct box_place *p, uint32_t d);
/* "{64, 8}": the tensor's coordinates of the element `byte` bytes into the place. */
void box_text(const struct box *box, const struct box_place *p, uint32_t byte, char *text,
              size_t size);
const char *swizzle_text(uint32_t swizzle);

#endif
