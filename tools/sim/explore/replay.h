/* A launch in a given order (schedule.h), each step told in words. */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

#include "explore/schedule.h"
#include "explore/walk.h"

#include <stdio.h>

/* The rule by which an order goes on: the last actor, as long as it can do more than poll, else the first that can. */
actor walk_usual(const struct walk_offer *offer, actor last);

struct replay {
    struct walk walk; /* first */
    const struct schedule *schedule;
    uint32_t most;          /* steps of the schedule that are taken from it, and … */
    uint32_t bound;         /* … after how many the run is given up */
    uint32_t turn, in_turn; /* the schedule's next step */
    uint32_t steps;         /* taken */
    actor last;
    bool strayed; /* the schedule's next actor could take no step */
    bool endless; /* the bound was reached */
    FILE *told;   /* each step in words goes there; NULL: nowhere */
    const struct launch *launch;
    uint32_t told_from; /* the first of the steps that are told as one; 0: none */
    actor told_who;
    const struct insn *told_at;
    enum walk_act told_act;
};

enum { REPLAY_BOUND = 1000000 };

/* Before launch_run: the launch runs in the order of the schedule's first `most` steps. Its sink and watchers stay. */
void replay_attach(struct replay *r, struct launch *l, const struct schedule *s, uint32_t most);
/* After it. */
void replay_end(struct replay *r);

#endif
