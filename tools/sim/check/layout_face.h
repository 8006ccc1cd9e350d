/*
 * The face of an operand: how its descriptor reads the boxes that copies staged. It depends on the
 * descriptor and on the layout of the boxes, not on their coordinates.
 */
#ifndef SIM_LAYOUT_FACE_H
#define SIM_LAYOUT_FACE_H

#include "check/layout.h"
#include "ops/smem_desc.h"

enum { FACE_BOXES = 16, FACE_LINES = 256, FACE_ENTRIES = 4096, NO_ENTRY = 0xFFFF };

enum face_fault {
    FACE_FITS,
    FACE_SAME_BYTES, /* two elements are the same bytes */
    FACE_DISAGREES,  /* a coordinate changes along the rows and along k */
    FACE_SHUFFLED,   /* the descriptor's base offset is not the tile's, and moves chunks */
    FACE_SWIZZLE     /* the descriptor's swizzle is not the copy's */
};

/* A box that an operand reads. */
struct face_box {
    uint32_t chunk; /* one of its chunks */
    uint64_t shape;
    uint8_t use; /* BOX_* */
    uint32_t left_from, cut_at;
    uint64_t apart; /* face_apart from the first box */
};

struct face {
    bool known, whole; /* the origin of some chunks, of all chunks, is known */
    uint8_t fault;     /* enum face_fault */
    /* the two chunks that show the fault, counted along the rows and along k */
    uint16_t line[2], part[2];
    uint8_t dim; /* FACE_DISAGREES: the tensor's dimension */
    uint32_t boxes;
    struct face_box box[FACE_BOXES];
    bool flipped;    /* the base offset moves chunks, perhaps only along k */
    bool strayed;    /* it leaves a box for bytes that are not of the same tensor */
    uint32_t behind; /* BOX_LEFT, BOX_CUT: the chunk at which it continues */
    /* Set if the operand stays in one dimension of one tensor along k: */
    bool along_k;
    uint8_t k_dim;
    uint8_t row_dims; /* bit d: its rows run along dimension d of that box, k along dimension 0 */
    uint32_t k_box;   /* index of the box it begins in */
    struct box_place first;
    uint64_t k_order; /* a hash of its steps along k */
};

/* One chunk of an operand. */
struct face_entry {
    struct box *box; /* NULL: unknown */
    uint32_t chunk;
    struct box_place place;
};

/* Chunks of an operand: lines of the major direction, parts of 16 bytes along it. */
struct face_view {
    struct smem_operand o;
    uint32_t lines, parts, per_chunk;
    bool copy;                /* rows of bytes, no product */
    struct face_entry *entry; /* [lines][parts] */
};

struct face_scratch {
    struct face_entry entry[FACE_ENTRIES];
    uint32_t *stamp; /* [stamps] by chunk: the last look that saw it; `seen`: where */
    uint16_t *seen;
    uint32_t stamps, look;
    bool exhausted;
};

/* Sets lines and parts. False where the operand is larger than any product's. */
bool face_view(struct face_view *v, struct face_scratch *s, const struct product_operand *p,
               bool copy);
/* The box of one chunk; NULL: none. */
struct box *face_box_at(const struct face_view *v, uint32_t line, uint32_t part,
                        const struct boxes *boxes, const struct chunks *chunks);
/* A hash of the difference between the coordinates of two boxes. */
uint64_t face_apart(const struct box *box, const struct box *from);
/* Looks at every chunk of the operand and fills the face. */
void face_look(struct face *f, struct face_view *v, struct face_scratch *s,
               const struct boxes *boxes, const struct chunks *chunks);

#endif
