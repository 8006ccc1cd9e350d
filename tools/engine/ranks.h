/*
 * Several GPUs, a process each (a rank). The process that starts them computes nothing: it waits,
 * and where a rank dies it ends the others. Rank 0 leads: it has the requests, and tells the others
 * through pipes which step comes next. They compute the same step on their part, and what crosses
 * between GPUs goes through NCCL, or through each other's memory (exchange.h). All ranks draw the
 * same tokens, because they draw from the same bits.
 */
#ifndef ENGINE_RANKS_H
#define ENGINE_RANKS_H

#include "collectives.h"
#include "exchange.h"
#include "problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANKS_MOST = 16 };

enum ranks_split {
    RANKS_BY_TENSOR, /* heads and columns of the feed-forward: each rank has a part of the weights */
    RANKS_BY_CONTEXT /* the tokens of a chunk of a prompt: each rank has all weights and all keys */
};

struct ranks_board; /* memory that all ranks share */

struct ranks {
    int rank, count;
    enum ranks_split split;
    struct collectives nccl;
    struct exchange exchange; /* model_open makes it, ranks_close ends it */
    struct ranks_board *board;
    unsigned shared;    /* times that ranks_share was called */
    int to[RANKS_MOST]; /* of the leader: pipes to the others. -1: none */
    int from;           /* of the others: the pipe from the leader */
    bool met;           /* the leader has said which communicator to join */
};

/*
 * Forks `count` processes, which return from `rank_main` with their exit status. The status of the
 * first one that did not return 0, 1 where a signal ended it or has stopped it for some seconds; then
 * the others are ended, within a few seconds, and stderr says which rank it was. The caller has not
 * used the driver yet.
 */
int ranks_run(int count, enum ranks_split split, int (*rank_main)(struct ranks *r, void *user),
              void *user);

/* The ranks find each other; the thread's context is that of the rank's GPU. 0, or -1 after a
 * message. */
int ranks_join(struct ranks *r, struct problem *p);
/* A few bytes of each rank to all: `all` gets them in the order of ranks. All ranks call it, in the
 * same order. A rank that dies is never there: who started the ranks then ends this one. */
enum { RANKS_SHARED = 128 };
void ranks_share(struct ranks *r, const void *own, size_t size, void *all);
/* Of a rank that failed: whether the leader failed, too. Then it has said why, and the others need
 * not. Waits for up to a second. */
bool ranks_leader_failed(struct ranks *r);
void ranks_close(struct ranks *r, bool failed);

struct ranks_message {
    int32_t kind, slot;
    int64_t count, from; /* what they mean is the model's affair */
    int64_t payload;     /* bytes behind the message */
    unsigned char settings[32];
};
/* From the leader to all others. */
int ranks_tell(struct ranks *r, const struct ranks_message *m, const void *payload,
               struct problem *p);
/* The next message: 1; 0 where the leader has ended; -1 after a message of ours. `idle` is called
 * once before this waits long; where it returns -1 after a message, so does this. */
int ranks_hear(struct ranks *r, struct ranks_message *out, void *payload, size_t room,
               int (*idle)(void *), void *user, struct problem *p);

#endif
