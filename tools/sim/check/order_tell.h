/*
 * Two accesses that are not ordered, in words. One finding for a pair of instructions and a kind, with
 * a count; the first in order stands for all.
 */
#ifndef SIM_ORDER_TELL_H
#define SIM_ORDER_TELL_H

#include "check/order.h"

enum conflict_place { PLACE_SHARED, PLACE_GLOBAL, PLACE_TENSOR };

struct conflict {
    enum finding_kind kind;
    enum finding_severity severity;
    enum conflict_place place;
    struct order_warp *warp; /* the later access: who, with what */
    const struct insn *in;
    uint32_t lane;
    bool async, wrote;
    const struct order_cta *cta; /* whose shared or tensor memory */
    uint64_t at, bytes;          /* offset, address, or column and columns */
    epoch prior;                 /* the earlier one */
    bool prior_wrote;
    const struct actor
        *abroad;     /* whose that was, of another cluster (world.h); NULL: of this one */
    bool cached;     /* the two are ordered, but the later one reads by .nc */
    bool locked;     /* they are ordered by a lock, which the later side took without an acquire */
    const char *fix; /* the cheapest ordering; NULL: by kind and place */
};

void tell_conflict(struct order *o, const struct conflict *c);
/* The barrier is used by a warp that has no right to rely on its mbarrier.init. */
void tell_init(struct order_warp *w, const struct order_bar *b, const struct event *e);
/* One side only: reading what nobody wrote, storing over a live barrier. */
void tell_alone(struct order_warp *w, const struct insn *in, uint32_t lane, enum finding_kind kind,
                const char *object, const char *message, const struct insn *other,
                const char *note);
/* The same as a warning, with no other instruction. */
void tell_warning(struct order_warp *w, const struct insn *in, uint32_t lane,
                  enum finding_kind kind, const char *object, const char *message);
/* How an mbarrier's phase depends on the order: see protocol.h. */
enum tell_phase_kind {
    TELL_ARRIVES_EARLY, /* in: the arrival; other: of the phase before, not known to be over */
    TELL_COPIES_EARLY, /* the same of a copy; told at the instruction that expected too few bytes */
    TELL_LANES_SPILL,  /* in: the arrivals; other: 0 */
    TELL_WAITS_EARLY,  /* in: a wait; other: of the phase before the one that let it pass */
    TELL_WAITS_LATE,   /* in: a wait of the phase before; other: an arrival of the next one */
    TELL_PASSES_TWICE, /* in: a wait that the same phase let pass before; other: 0 */
    TELL_ENDS_EARLY,   /* in: mbarrier.inval; other: a use of the barrier, not known to be over */
    TELL_SLEEPS_LATE /* in: a wait that sleeps; other: an arrival of the phase it may have missed */
};
void tell_phase(struct order *o, struct order_warp *w, const struct order_bar *b,
                const struct insn *in, enum tell_phase_kind kind, epoch other);
/* The instruction of an action, or NULL. */
const struct insn *tell_insn(const struct order *o, epoch e);
/* Hands the findings to the report. */
void tell_end(struct order *o);

#endif
