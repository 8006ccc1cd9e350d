/*
 * Launches that wait for the host or for other launches. A kernel may poll memory that the host, or
 * a later kernel of another stream, writes after the launch: a latch in pinned memory, for example.
 * Launches run inside the call that submits them, so such a launch runs on a thread of its own. When
 * all it can do is poll memory that others can write, the thread gives the turn back to the call. The
 * call returns, and the launch is tried again whenever the driver is called (cuda_deferred.c), and by
 * a thread that does so while the host works.
 * Only one of the two ever runs: whoever has the turn has the driver's lock.
 */
#ifndef SIM_RUNNING_H
#define SIM_RUNNING_H

#include "cuda/driver.h"

struct running;

/* Runs the launch, or lets one go on: 600 while it waits for the host, *running then holds it. */
int running_launch(struct CUctx_st *context, const struct launch_request *request,
                   struct running **running);
/* Where nothing can run any more: whether to look again. False: it is a deadlock. */
bool running_waits(struct running *r, const struct launch *l);
/* The same where other processes write what it polls (cuda_ipc.c): waits for them for a while. */
bool running_waits_for_processes(const struct launch *l);
/* It is to end, hung or not. NULL: no. */
bool running_ends(const struct running *r);
/* Nobody will write what it waits for. It ends with the next turn. */
void running_give_up(struct running *r);
/* Ends what tries launches again in the background. Without the driver's lock. */
void running_stop(void);
/* Ends it, with a deadlock if it has not come to its end. NULL is accepted. */
void running_end(struct running *r);

#endif
