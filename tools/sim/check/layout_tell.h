/* The texts of layout findings. */
#ifndef SIM_LAYOUT_TELL_H
#define SIM_LAYOUT_TELL_H

#include "check/layout_face.h"

/* The operand that a finding is about. For a finding about a box at its end only the fields
 * up to `scratch` are set. */
struct layout_case {
    struct layout *layout;
    struct group *group;
    const struct boxes *boxes;
    const struct chunks *chunks;
    struct face_scratch *scratch;
    const struct event *event;
    const struct product_operand *operand;
    const char *name; /* "A" */
};

void layout_tell_type(const struct layout_case *c, const struct box *box);
/* `v`: the operand's view. It is looked at again with parts of the descriptor changed, to name the
 * wrong field. */
void layout_tell_order(const struct layout_case *c, struct face_view *v, const struct face *f);
/* Of one row, `staged` is its part at k `from`; the bytes at k `to`, at `address`, were never written. */
void layout_tell_unwritten(const struct layout_case *c, const struct box *staged, uint32_t row,
                           uint32_t from, uint32_t to, uint32_t address);
void layout_tell_steps(const struct layout_case *c, const struct box *a, const struct box *b);
void layout_tell_start(const struct layout_case *c, const struct box *a, int32_t a_first,
                       const struct box *b, int32_t b_first);
/* One accumulator took the same k of operand `name` ("A" or "B") again, or the same k of other
 * rows. */
void layout_tell_overlap(const struct layout_case *c, const struct box *box, const char *name,
                         int32_t moved);
/* Between two products of one accumulator A and B moved by different amounts along k. */
void layout_tell_apart(const struct layout_case *c, const struct box *a, int32_t a_moved,
                       const struct box *b, int32_t b_moved);
/* `name`, "A" or "B", moved along its rows where the other moved along k. */
void layout_tell_turned(const struct layout_case *c, const struct box *a, const struct box *b,
                        const char *name);
void layout_tell_slide(const struct layout_case *c, const struct box *box, const char *name,
                       int32_t moved);
/* A part of the box was skipped: steps of k if `along_k`, else rows. */
void layout_tell_gap(const struct layout_case *c, const struct box *box, const char *what,
                     uint32_t at, bool along_k);
/* Nothing read the box. jump: an operand of `in` jumped over it. skip: it follows `below` along
 * k. */
void layout_tell_jump(const struct layout_case *c, const struct box *box, const struct insn *in,
                      struct warp *w);
void layout_tell_skip(const struct layout_case *c, const struct box *box, const struct box *below);
void layout_tell_left(const struct layout_case *c, const struct box *box);
void layout_tell_again(const struct layout_case *c, const struct box *box);

#endif
