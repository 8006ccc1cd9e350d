/*
 * A deadlock: who waits for what (gathered and judged in deadlock.c), and how it is told
 * (deadlock_text.c).
 */
#ifndef SIM_DEADLOCK_H
#define SIM_DEADLOCK_H

#include "machine/exec.h"
#include "async/mbar.h"
#include "decode/names.h"

/* A sleeping fragment. */
struct waiter {
    struct warp *warp;
    const struct frag *frag;
    const struct insn *in;
};

/* What keeps one waiter from going on, and how sure that is: the most certain of all waiters' causes is
 * reported. */
struct world;
struct world_past;

/* A location that a warp polls: its value, and the last write (check/world.h). missed: an older value with which
 * the poll would have ended, and the write that took it away; NULL: there was none. */
struct polled {
    const struct world *world;
    uint64_t value;
    const struct world_past *last, *missed, *taken_by;
};

struct judgement {
    enum finding_kind kind;
    enum finding_cause cause;
    uint32_t weight;
    const struct waiter *by;
    const struct mbar *bar;     /* WAIT_MBAR: its record */
    const struct insn *guilty;  /* instruction to cite */
    const struct warp *missing; /* a warp that came before and does not come now, or NULL */
    const struct cta *sibling; /* another CTA of the cluster whose barrier there got its arrivals */
    const struct mbar
        *slot;      /* `missing` arrived at this one of the array, and not at the one waited for */
    bool came_past; /* `missing` never arrived, and has come past the code that does */
    bool own;       /* `missing` waits for the phase to which it would arrive */
    bool went_on;   /* `missing` came round its loop and did not come here */
    bool nobody;    /* no warp's code ahead has the named barrier */
    const struct warp
        *perhaps; /* arrivals are too few, and this warp may bring one yet; NULL: none may */
    uint32_t missing_lanes; /* WAIT_CONVERGE */
    bool polls;             /* WAIT_SPIN: `polled` says what is known */
    struct polled polled;
};

/* The mbarrier, or the first one of the array, that an instruction means, as far as constants tell. */
struct signal_base {
    uint32_t at;
    bool whole; /* that very one */
};

struct deadlock {
    struct group *group;
    struct waiter *waiters;
    uint32_t count;
    struct signal_base *bases; /* by instruction, those that name mbarriers: deadlock_find_bases */
};

/* What mbarrier each instruction means, as far as constants tell (deadlock_signal.c). */
void deadlock_find_bases(struct deadlock *d);

/* Fills message, object and related of a finding about `j`. */
void deadlock_tell(const struct deadlock *d, const struct judgement *j, struct finding *f);

/* How many warps of the waiter's CTA passed, or wait at, the barrier instruction at which it waits. */
uint32_t deadlock_came(const struct deadlock *d, const struct waiter *by);

/* Whether the waiter, could it go on, might signal the mbarrier at that offset of its cluster
 * (deadlock_signal.c): by the code ahead of it and the addresses in its registers now, or
 * the constants from which they will be computed. */
bool deadlock_may_signal(const struct deadlock *d, const struct waiter *o, uint32_t offset);

/* Whether the source declares (`//@ handoff`) that the waiter's role signals it. */
bool deadlock_declared(const struct deadlock *d, const struct waiter *o, uint32_t offset);

/* The same without going back in a loop. */
bool deadlock_signals_next(const struct deadlock *d, const struct waiter *o, uint32_t offset);
/* Whether the instruction, whose last address is that of an mbarrier, may mean that one. */
bool deadlock_means(const struct deadlock *d, const struct waiter *o, const struct insn *in,
                    uint32_t offset);
/* Whether the instruction, were the waiter to execute it, might signal that mbarrier. */
bool deadlock_signals(const struct deadlock *d, const struct waiter *o, const struct insn *in,
                      uint32_t offset);

/* Whether an instruction signals that very mbarrier by a constant address, so that it is no slot of a ring. */
bool deadlock_named_alone(const struct deadlock *d, uint32_t offset);

/* Of the innermost loop around the waiter's instruction that does more than wait: whether something in it might
 * signal that mbarrier; true as well where no instruction of the kernel is known to (deadlock_round.c). */
bool deadlock_signals_in_round(const struct deadlock *d, const struct waiter *o, uint32_t offset);
/* Whether the instruction is in the innermost loop around the waiter's that does more than wait. */
bool deadlock_in_round(const struct deadlock *d, const struct waiter *o, const struct insn *in);
/* Whether each time that the waiter waits for the mbarrier `key`, it arrives at the one at that offset before it does so
 * again: what loop there is around it has as many such arrivals as waits. */
bool deadlock_in_turn(const struct deadlock *d, const struct waiter *o, uint32_t key,
                      uint32_t offset);
/* Whether the waiter has come past an instruction that might signal that mbarrier, in this turn of its loop or a
 * whole one. */
bool deadlock_came_past(const struct deadlock *d, const struct waiter *o, uint32_t offset);

/* Whether the mbarriers at both offsets belong to one array. */
bool deadlock_same_array(const struct deadlock *d, const struct cta *c, uint32_t a, uint32_t b);

/* The same of copies alone. */
bool deadlock_may_copy(const struct deadlock *d, const struct waiter *o, uint32_t offset);

/* Whether the code ahead of the waiter has a barrier instruction that may mean that number. */
bool deadlock_may_come(const struct deadlock *d, const struct waiter *o, uint32_t id);
/* The same without going back in a loop: it has left nothing out so far. */
bool deadlock_comes_next(const struct deadlock *d, const struct waiter *o, uint32_t id);

/* Waits of weight `from` for barriers at which nobody arrived, and whose possible signallers wait for each
 * other in a circle, become CAUSE_CYCLE with weight `to` (deadlock_cycle.c). */
void deadlock_circles(const struct deadlock *d, struct judgement *all, uint32_t from, uint32_t to);

/* Explains a group in which nothing can run any more: one finding. */
void deadlock_report(struct group *g);

/* ---- check.c ---- */

/* Whether any wait passed that phase, or a later one, of the mbarrier at `owner`:`offset`; true as
 * well when nobody observed. */
bool check_consumed(const struct group *g, const struct cta *owner, uint32_t offset,
                    uint64_t phase);

/* How many phases of the mbarrier the warp of that CTA has waited for, and how many arrivals it brought;
 * false where neither, and when nobody observed. */
bool check_ledger(const struct group *g, const struct cta *owner, uint32_t offset, uint32_t warp,
                  uint32_t *turns, uint32_t *arrivals);

/* How often the warp has passed the wait, of the last ones it passed. */
uint32_t check_passes(const struct group *g, const struct warp *w, const struct insn *at);

/* Whether the warp, asleep at `at` for the object `key`, should have arrived at the mbarrier before it came round to that wait.
 * straight: the wait is in no loop. */
bool check_went_on(const struct group *g, const struct cta *owner, uint32_t offset,
                   const struct warp *w, const struct insn *at, uint32_t key, bool straight);

/* Whether the sleeping warp has come by the wait behind which it last arrived at the mbarrier, and gone on without arriving. */
bool check_left_out(const struct group *g, const struct cta *owner, uint32_t offset,
                    const struct warp *w);

/* What is known of the location in global memory that the warp's lanes poll by that load. */
bool check_polled(const struct group *g, const struct warp *w, const struct insn *in,
                  uint32_t lanes, struct polled *out);

/* Bit = warp of the CTA: those that its named barrier counted in the generation before this; 0 unknown. */
uint64_t check_came_before(const struct group *g, const struct cta *cta, uint32_t id);

#endif
