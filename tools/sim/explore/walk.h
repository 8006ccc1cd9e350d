/*
 * One run of a launch in an order that somebody chooses, step by step, and what each step touched.
 */
#ifndef SIM_WALK_H
#define SIM_WALK_H

#include "explore/footprint.h"
#include "machine/steer.h"

#define WALK_NOBODY UINT64_MAX

struct walk_op;
struct walk_warp;

/* Who may take the next step: warps that can execute something, operations, then from `polls` on warps whose
 * poll could be answered False. Some may turn out not to be able to. */
struct walk_offer {
    actor *can;
    uint32_t count, polls, capacity;
    bool insists; /* who chooses sets it: any number of False answers */
};

/* What a step was besides an instruction that was executed. */
#define WALK_ACTS(X)                      \
    X(EXECUTES, "")                       \
    X(REFUSED, " (it is answered False)") \
    X(OPERATION, " (what it has issued takes effect)")

enum walk_act {
#define X(name, text) WALK_##name,
    WALK_ACTS(X)
#undef X
};

struct walk {
    struct steerer steerer; /* first */
    struct finding_sink sink;
    struct observer observer;
    struct watcher watcher;

    /* Filled by the caller. One of the offer, WALK_NOBODY to give the run up. What could take no step is asked
     * for no more until somebody has taken one. */
    actor (*choose)(void *context, struct walk_offer *offer);
    /* The actor could take no step. */
    void (*idle)(void *context, actor who);
    /* It took one. */
    void (*took)(void *context, actor who, const struct footprint *f);
    void *context;

    struct walk_offer offer;
    struct footprint step; /* of the current one */
    const struct insn *at; /* its instruction; NULL: the end of the body */
    enum walk_act act;
    bool issuing; /* it is a warp's: accesses with tokens are those of what it issues */
    struct walk_op *ops;
    uint32_t op_count, op_capacity;
    struct walk_warp *warps;
    uint32_t warp_count, warp_capacity;
    bool failed; /* no memory */
    bool gave_up;
    bool bounded;  /* a poll might have been answered False more often */
    bool too_long; /* some loop never came to a step, or a hang is not the order's alone */
    bool found;    /* an error-level finding */
    struct finding finding;
};

/* Before launch_run: who chooses decides its order. */
void walk_attach(struct walk *w, struct launch *l);
/* Before launch_run: its findings go to `found` alone. */
void walk_listen(struct walk *w, struct launch *l);
/* Runs the launch to its end or until it is given up; its CUresult. `w` is zero but for what the caller fills,
 * or as the last run left it. */
int walk_run(struct walk *w, const struct launch *l);
void walk_close(struct walk *w);

#endif
