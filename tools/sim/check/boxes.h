/*
 * Where the bytes of shared memory come from: which tensor copy staged them, from which
 * coordinates. Every swizzle moves chunks of 16 bytes as a whole. So a chunk only names its copy,
 * and the address gives the coordinates.
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
    BOX_SKIPPED = 4,  /* one operand skipped chunks between its rows */
    BOX_LEFT = 8,     /* one operand began after the first row and continued past the last */
    BOX_AGAIN = 16,   /* the same product was added twice to one accumulator */
    BOX_CUT = 32      /* one operand went on, before the last row, in what is not of the tensor */
};

/* 16 bytes of shared memory. */
struct chunk {
    uint32_t box; /* number of the box, 0: none */
    uint8_t flags;
};

/* The box of one copy. Lives until its last chunk is overwritten. */
struct box {
    const struct insn *in;   /* the copy */
    const struct cta *cta;   /* whose memory */
    uint32_t number, serial; /* its place in the table; unique */
    uint32_t next_free;
    uint32_t start, span; /* bytes */
    uint32_t live;        /* chunks */
    bool closed;          /* layout_close was called */
    struct tmap map;
    int32_t coord[TMAP_COORDS];
    uint32_t pitch, bytes,
        rows; /* of dimension 0: bytes from row to row, bytes in a row, how many rows */
    uint32_t extent[BOX_RANK];
    uint64_t shape; /* equal for boxes of the same layout */
    /* how products used it */
    uint8_t use, elem_bytes;
    uint32_t left_from; /* BOX_LEFT: the first row read */
    uint32_t cut_at;    /* BOX_CUT: the first row behind those that the operand read */
    const struct insn *reader;
    struct warp *reader_warp;
};

/* The boxes of a group. */
struct boxes {
    struct box **at; /* [1 .. count] */
    uint32_t count, room, free, serial;
};

void boxes_free(struct boxes *b);
/* NULL when memory is exhausted. */
struct box *box_new(struct boxes *b, const struct event *tile);
/* The last chunk of the box was overwritten. */
void box_drop(struct boxes *b, struct box *box);

/* Where a chunk lies in its box: bytes along dimension 0, elements along the others, both from the
 * start of the box; `row` is the number of its row. */
struct box_place {
    int32_t at[BOX_RANK];
    uint32_t row;
};
/* False if the address is in a gap of the box, or the order of the box is not modelled. */
bool box_place(const struct box *box, uint32_t address, struct box_place *out);
/* The chunk that holds a place. */
uint32_t box_address(const struct box *box, uint32_t row, uint32_t byte);
/* Whether the box is a plain rectangle (not im2col, not gathered), so that coordinates are
 * known. */
bool box_plain(const struct box *box);
/* Whether both boxes are of one tensor: same address and rank. */
static inline bool box_same_tensor(const struct box *a, const struct box *b)
{
    return a->map.address == b->map.address && a->map.rank == b->map.rank;
}
/* The tensor coordinate of the place in dimension d; in bytes along dimension 0. */
int64_t box_coordinate(const struct box *box, const struct box_place *p, uint32_t d);
/* Writes the tensor coordinates of the element `byte` bytes into the place, for example "{64,
 * 8}". */
void box_text(const struct box *box, const struct box_place *p, uint32_t byte, char *text,
              size_t size);
const char *swizzle_text(uint32_t swizzle);

#endif
