/*
 * The machine's inside: fragments, scheduling, residency, barriers. For its own files, the handlers that
 * reshape fragments or arrive at barriers, and those who explain a deadlock or time a launch.
 */
#ifndef SIM_EXEC_H
#define SIM_EXEC_H

#include "machine/event.h"
#include "machine/machine.h"

/* ---- fragments (exec.c) ---- */

static inline bool frag_runnable(const struct frag *f)
{
    return f->wait.kind == WAIT_NONE || f->wait.ready;
}

/* Waits that are part of a loop's own pace and no answer to what it polls for. */
static inline bool wait_is_pause(uint32_t kind)
{
    return kind == WAIT_SLEEP || kind == WAIT_CONVERGE || kind == WAIT_WARPSYNC;
}

/* Ends a wait: the fragment runs its instruction again. */
void frag_wake(struct warp *w, struct frag *f);
/* Hash of what decides a fragment's future as far as the warp holds it: registers, pc, lanes. */
uint64_t frag_state(const struct warp *w, const struct frag *f);
/* Lanes of the current fragment go on at `pc`; the rest stays where it is. */
void frag_split(struct warp *w, uint32_t lanes, uint32_t pc);
/* Ends the watch for spinning, if one is on. */
void frag_unwatch(struct warp *w, struct frag *f);
/* What the current fragment's clocks show, in cycles: of one that is watched they stand still. */
uint64_t frag_clock(struct warp *w);

/* ---- scheduler (sched.c) ---- */

/* Makes the warp eligible; no-op when it already is. */
void warp_ready(struct warp *w);
/* Changes of memory that a spinning fragment of `g` could see: all groups' where clusters may talk. */
uint64_t changes_seen(const struct group *g);
/* +1 or -1 fragments that spin: counted in every group whose stores they could see. */
void spin_count(struct group *g, int delta);

/* ---- clusters, CTAs, warps (cta.c) ---- */

/* Registers per thread that the launch bounds fix (design: register pool), 0 when they do not. */
uint32_t launch_registers(const struct launch *l);
/* What a thread holds of the pool: they are dealt in steps of 8, and 255 are 256 there. */
uint32_t launch_quota(const struct launch *l);
/* Window offset of dynamic shared memory, and all shared bytes of a CTA (reserved part included). */
uint32_t launch_dynamic_offset(const struct launch *l);
uint32_t launch_shared_bytes(const struct launch *l);
/* Clusters that fit one group's SMs at once; at least 1. */
uint32_t launch_residency(const struct launch *l);
uint32_t launch_cluster_size(const struct launch *l);
uint32_t launch_cluster_count(const struct launch *l);

/* 0, or -1 when memory is exhausted. */
int group_open(struct group *g);
void group_close(struct group *g);
/* Brings the next clusters of the group's share in, up to its residency. */
int group_fill(struct group *g);
/* Takes a resident cluster out, whose warps and asynchronous operations have ended. */
void cluster_retire(struct group *g, uint32_t slot);
/* True when no asynchronous operation touches the cluster any more. */
bool cluster_drained(const struct cluster *c);

/* ---- progress.c ---- */

void progress_begin(struct launch *l);
/* One CTA more is done: redraws the progress line where one is wanted. */
void progress_cta(struct launch *l);
/* Erases it. */
void progress_end(struct launch *l);

/* Appends the forms of the kernel's instructions to the file that HEWN_SIM_FORMS names (forms.c). */
void forms_note(const struct kernel *kernel);

/* Which instructions the launch executes, for the file that HEWN_SIM_EXECUTED names (executed.c). */
void executed_begin(struct launch *l);
void executed_end(struct launch *l);

/* ---- barriers (barrier.c) ---- */

/* Completes the named barrier when all that it expects have arrived. */
void barrier_check(struct cta *c, uint32_t id);
/* The warp has come to it with all its live lanes. */
void barrier_count_warp(struct warp *w, uint32_t id);
/* Completes the phase of the cluster barrier when every thread has arrived. */
void cluster_barrier_check(struct cluster *cl);
/* `lanes` of `w` have exited (w->live is already smaller): releases barriers that waited on them. */
void barriers_exit(struct warp *w, uint32_t lanes);

#endif
