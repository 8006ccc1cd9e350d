/*
 * mbarrier objects. The state is the 64-bit word in shared memory itself (phase 1 bit, pending 20,
 * expected 20, tx 21 signed, 2 bits of pattern), as opaque to programs as on hardware; a table beside
 * each CTA remembers which words are live, how many phases they completed, and who arrived, for reports.
 */
#ifndef SIM_MBAR_H
#define SIM_MBAR_H

#include "async/async.h"

enum { MBAR_MAX_COUNT = (1 << 20) - 1, MBAR_ARRIVALS_KEPT = 16 };

/* One arrival (or expect, or bytes) of the current phase, for reports. */
struct mbar_arrival {
    const struct insn *in;
    struct cta *cta;
    uint32_t warp, lane, count;
    int64_t bytes; /* expected +, completed − */
    bool async;
};

struct mbar {
    uint32_t offset; /* in the owner's window */
    uint32_t count;  /* expected arrivals per phase */
    uint64_t phase;  /* phases completed since init */
    bool live;
    const struct insn *init_in;
    uint32_t init_warp;
    uint32_t kept;                               /* entries in log */
    struct mbar_arrival log[MBAR_ARRIVALS_KEPT]; /* current phase, oldest first */
    uint32_t kept_before;
    struct mbar_arrival before[MBAR_ARRIVALS_KEPT]; /* the phase before it */
    uint64_t total_arrivals;                        /* ever, by threads and operations */
    uint64_t word; /* what the last operation left in memory: other contents were stored over it */
};

/* In events and records: the phase before a new barrier's first. */
#define FRESH_PHASE UINT64_MAX

struct mbar_table *mbar_table_new(uint32_t shared_bytes);
void mbar_table_free(struct mbar_table *t);
/* Forgets every barrier, for the next CTA in the same memory. */
void mbar_table_reset(struct mbar_table *t);
/* The record of the barrier at `offset`, or NULL when none was ever initialised there. */
struct mbar *mbar_at(const struct cta *cta, uint32_t offset);
/* Iterates live barriers of a CTA: NULL after the last. */
struct mbar *mbar_next(const struct cta *cta, const struct mbar *after);

/* State fields of the word in memory. */
struct mbar_state {
    uint32_t pending, expected, parity;
    int32_t tx;
    bool valid; /* the pattern bits are right */
};
struct mbar_state mbar_load(const struct cta *cta, uint32_t offset);
/* The same of a word, such as the state that an arrive returned. */
struct mbar_state mbar_unpack(uint64_t word);

/*
 * Operations, used by instruction handlers and by async completions alike. `who` says on whose
 * behalf (for the log, events and findings). Each returns STEP_NEXT or, after sim_fault, STEP_FAULT.
 */
struct mbar_who {
    struct warp *warp;
    uint32_t lane;
    const struct insn *in;
    uint64_t token; /* async operation, 0 for the thread itself */
};
enum step mbar_init(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t count);
enum step mbar_inval(struct mbar_who who, struct cta *cta, uint32_t offset);
/* Whether the phase takes that many arrivals of threads at once; else the kernel ends with 719, as on an
 * H200. What operations bring past it is an error, and dropped (mbar_arrive). */
enum step mbar_bears(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t count);
/* pending -= count; drop: later phases expect that many fewer. `state` (may be NULL) receives the
 * word before the arrival. */
enum step mbar_arrive(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t count,
                      bool drop, uint64_t *state);
enum step mbar_expect_tx(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t bytes);
/* expect_tx, then arrive 1, as one operation. */
enum step mbar_arrive_expect_tx(struct mbar_who who, struct cta *cta, uint32_t offset,
                                uint32_t bytes, bool drop, uint64_t *state);
enum step mbar_complete_tx(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t bytes);
/* pending += count within the current phase (cp.async.mbarrier.arrive without .noinc). */
enum step mbar_add_pending(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t count);
/* Checks that a live, untouched barrier stands there; `phase` receives the phases it completed. */
enum step mbar_current_phase(struct mbar_who who, struct cta *cta, uint32_t offset,
                             uint64_t *phase);
/* The bytes of a copy land: complete_tx, after a check that the phase is still the one in which the
 * copy was issued (else the copy was not expected there: finding mbarrier-tx). */
enum step mbar_copy_landed(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t bytes,
                           uint64_t issue_phase);

/* insn.flags of mbarrier instructions. */
enum mbar_flag {
    MBAR_RELAXED = 1,       /* else release (arrivals) or acquire (waits) */
    MBAR_CLUSTER_SCOPE = 2, /* else .cta, also where the scope is left out */
    MBAR_OWN_CTA = 4,       /* the form reaches barriers of its own CTA only */
    MBAR_PARITY = 8,        /* waits: the operand is a parity, else a state */
    MBAR_TEST = 16,         /* test_wait: does not suspend */
    MBAR_DROP = 32,
    MBAR_NO_COMPLETE = 64
};

/* Finds CTA and offset of a shared address (rank<<24 | offset) as seen from `w`; faults (oob,
 * misaligned) on what is no 8-byte aligned place in the window. */
enum step mbar_locate(struct warp *w, const struct insn *in, uint32_t lane, uint32_t address,
                      struct cta **cta, uint32_t *offset);

#endif
