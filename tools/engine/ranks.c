#include "ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long a rank has to end after SIGTERM, how long it may be stopped by a signal, and how long a
 * pipe is asked again before its reader sleeps, as waking up takes part of a step. */
static const double patience = 3, stopped_most = 5, attention = 200e-6;

/* Milliseconds in which a leader that failed for the same reason as this rank ends its pipe. */
enum { leader_ends = 1000 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- processes ---- */

/* Two slots a rank, which calls of ranks_share use in turn. */
struct ranks_board {
    struct {
        atomic_uint round; /* calls that this rank has brought something to */
        unsigned char bytes[2][RANKS_SHARED];
    } rank[RANKS_MOST];
};

struct launch {
    int count;
    pid_t process[RANKS_MOST];  /* 0: it has ended */
    double stopped[RANKS_MOST]; /* since when; 0: it runs */
    struct ranks_board *board;
    int reader[RANKS_MOST], writer[RANKS_MOST]; /* pipes of ranks 1 and up */
};

static void close_pipes(const struct launch *l)
{
    for (int i = 1; i < l->count; i++) {
        if (l->reader[i] >= 0) close(l->reader[i]);
        if (l->writer[i] >= 0) close(l->writer[i]);
    }
}

/* In the new process: it ends with the one that started it, and keeps its ends of the pipes. */
static int be_rank(struct launch *l, int rank, enum ranks_split split, pid_t parent,
                   int (*rank_main)(struct ranks *, void *), void *user)
{
    struct ranks r = {
        .rank = rank, .count = l->count, .split = split, .from = -1, .board = l->board};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return 1;
    signal(SIGPIPE, SIG_IGN); /* a write to a rank that died returns instead */
    for (int i = 0; i < RANKS_MOST; i++) r.to[i] = -1;
    for (int i = 1; i < l->count; i++) {
        if (rank == 0) {
            r.to[i] = l->writer[i];
            l->writer[i] = -1;
        } else if (rank == i) {
            r.from = l->reader[i];
            l->reader[i] = -1;
        }
    }
    close_pipes(l);
    return rank_main(&r, user);
}

/* -1: no such rank. */
static int rank_of(const struct launch *l, pid_t process)
{
    for (int i = 0; i < l->count; i++)
        if (l->process[i] == process) return i;
    return -1;
}

static bool signal_all(const struct launch *l, int number)
{
    bool some = false;
    for (int i = 0; i < l->count; i++)
        if (l->process[i] > 0) some = kill(l->process[i], number) == 0 || some;
    return some;
}

/* A rank was stopped or goes on. */
static void note_stop(struct launch *l, int rank, int status)
{
    l->stopped[rank] = WIFSTOPPED(status) ? seconds() : 0;
}

/* The next rank that ends; -1 where none runs, or, without `wait`, where none has ended. With `wait`
 * it returns -2 where one was stopped or goes on. */
static int reap(struct launch *l, bool wait, int *status)
{
    for (;;) {
        const pid_t process = waitpid(-1, status, WUNTRACED | WCONTINUED | (wait ? 0 : WNOHANG));
        int rank;
        if (process < 0 && errno == EINTR) continue;
        if (process <= 0) return -1;
        rank = rank_of(l, process);
        if (rank < 0) continue;
        if (WIFSTOPPED(*status) || WIFCONTINUED(*status)) {
            note_stop(l, rank, *status);
            if (wait) return -2;
            continue;
        }
        l->process[rank] = 0;
        l->stopped[rank] = 0;
        return rank;
    }
}

static void end_all(struct launch *l)
{
    const double until = seconds() + patience;
    const struct timespec nap = {.tv_nsec = 5000000};
    int status;
    signal_all(l, SIGTERM);
    for (int i = 0; i < l->count; i++) /* one that is stopped does not hear it */
        if (l->stopped[i] != 0 && l->process[i] > 0) kill(l->process[i], SIGKILL);
    while (signal_all(l, 0) && seconds() < until)
        if (reap(l, false, &status) < 0) nanosleep(&nap, NULL);
    signal_all(l, SIGKILL);
    while (reap(l, true, &status) != -1) continue;
}

/* Status 1 is that of a rank that has said why. */
static int tell_end(int rank, int status)
{
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "hewn-engine: rank %d was ended by signal %d (%s), so all end\n", rank,
                WTERMSIG(status), strsignal(WTERMSIG(status)));
        return 1;
    }
    if (WEXITSTATUS(status) > 1)
        fprintf(stderr, "hewn-engine: rank %d ended with status %d, so all end\n", rank,
                WEXITSTATUS(status));
    return WEXITSTATUS(status);
}

/* Whether a rank has been stopped for too long. */
static bool tell_stopped(const struct launch *l)
{
    for (int i = 0; i < l->count; i++) {
        if (l->stopped[i] == 0 || seconds() < l->stopped[i] + stopped_most) continue;
        fprintf(stderr,
                "hewn-engine: rank %d has been stopped by a signal for %.0f seconds, so all end\n",
                i, stopped_most);
        return true;
    }
    return false;
}

static bool some_stopped(const struct launch *l)
{
    for (int i = 0; i < l->count; i++)
        if (l->stopped[i] != 0) return true;
    return false;
}

/* Until a rank fails or all have ended: the status. */
static int watch_ends(struct launch *l)
{
    const struct timespec nap = {.tv_nsec = 100000000};
    int status;
    for (;;) {
        const bool some = some_stopped(l);
        const int rank = reap(l, !some, &status);
        if (rank >= 0 && status) return tell_end(rank, status);
        if (rank == -1 && !some) return 0;
        if (rank == -1 && tell_stopped(l)) return 1;
        if (rank == -1) nanosleep(&nap, NULL);
    }
}

/* The ranks that failed with another one may be reaped before it. */
static int watch(struct launch *l)
{
    const struct timespec nap = {.tv_nsec = 100000000};
    const int result = watch_ends(l);
    int rank, status;
    if (result) nanosleep(&nap, NULL);
    while (result && (rank = reap(l, false, &status)) >= 0)
        if (status) tell_end(rank, status);
    end_all(l);
    return result;
}

static int make_pipes(struct launch *l)
{
    for (int i = 0; i < l->count; i++) l->reader[i] = l->writer[i] = -1;
    for (int i = 1; i < l->count; i++) {
        int both[2];
        if (pipe2(both, O_CLOEXEC)) {
            fprintf(stderr, "hewn-engine: no pipe for rank %d: %s\n", i, strerror(errno));
            return -1;
        }
        l->reader[i] = both[0];
        l->writer[i] = both[1];
    }
    return 0;
}

static int start(struct launch *l, enum ranks_split split,
                 int (*rank_main)(struct ranks *r, void *user), void *user)
{
    const pid_t parent = getpid();
    fflush(NULL);
    for (int i = 0; i < l->count; i++) {
        l->process[i] = fork();
        if (l->process[i] == 0) {
            const int status = be_rank(l, i, split, parent, rank_main, user);
            fflush(NULL);
            _exit(status);
        }
        if (l->process[i] < 0) {
            fprintf(stderr, "hewn-engine: no process for rank %d: %s\n", i, strerror(errno));
            return -1;
        }
    }
    return 0;
}

int ranks_run(int count, enum ranks_split split, int (*rank_main)(struct ranks *r, void *user),
              void *user)
{
    struct launch l = {.count = count};
    int result = 1;
    if (count < 1 || count > RANKS_MOST) {
        fprintf(stderr, "hewn-engine: ranks: %d is outside 1 to %d\n", count, RANKS_MOST);
        return 1;
    }
    l.board =
        mmap(NULL, sizeof *l.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l.board == MAP_FAILED) {
        fprintf(stderr, "hewn-engine: no memory for what ranks share: %s\n", strerror(errno));
        return 1;
    }
    if (make_pipes(&l)) {
        close_pipes(&l);
    } else if (start(&l, split, rank_main, user)) {
        close_pipes(&l);
        end_all(&l);
    } else {
        close_pipes(&l);
        result = watch(&l);
    }
    munmap(l.board, sizeof *l.board);
    return result;
}

/* ---- pipes ---- */

static int put(struct ranks *r, int rank, const void *data, size_t size, struct problem *p)
{
    const char *at = data;
    while (size) {
        const ssize_t n = write(r->to[rank], at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return problem(p, "rank %d does not listen: %s", rank, strerror(errno));
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

/* 1: all of it; 0: the pipe ended before its first byte; -1 after a message. */
static int get(struct ranks *r, void *data, size_t size, struct problem *p)
{
    char *at = data;
    while (size) {
        const ssize_t n = read(r->from, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return problem(p, "the leading rank is not heard: %s", strerror(errno));
        if (n == 0)
            return at == (char *)data ? 0 : problem(p, "the leading rank ended within a message");
        at += n;
        size -= (size_t)n;
    }
    return 1;
}

static bool has_data(int pipe, int milliseconds)
{
    struct pollfd in = {.fd = pipe, .events = POLLIN};
    return poll(&in, 1, milliseconds) != 0;
}

int ranks_tell(struct ranks *r, const struct ranks_message *m, const void *payload,
               struct problem *p)
{
    for (int i = 1; i < r->count; i++)
        if (put(r, i, m, sizeof *m, p) || put(r, i, payload, (size_t)m->payload, p)) return -1;
    return 0;
}

int ranks_hear(struct ranks *r, struct ranks_message *out, void *payload, size_t room,
               int (*idle)(void *), void *user, struct problem *p)
{
    const double since = seconds();
    bool there = false;
    int heard;
    while (!there && seconds() < since + attention) there = has_data(r->from, 0);
    if (!there && idle(user)) return -1;
    heard = get(r, out, sizeof *out, p);
    if (heard <= 0) return heard;
    if (out->payload < 0 || (size_t)out->payload > room)
        return problem(p, "a message of %lld bytes from the leading rank; at most %zu are expected",
                       (long long)out->payload, room);
    if (out->payload && get(r, payload, (size_t)out->payload, p) != 1)
        return problem(p, "the leading rank ended within a message");
    return 1;
}

/* ---- joining ---- */

void ranks_share(struct ranks *r, const void *own, size_t size, void *all)
{
    const struct timespec nap = {.tv_nsec = 50000};
    const unsigned round = ++r->shared;
    memcpy(r->board->rank[r->rank].bytes[round % 2], own, size);
    atomic_store(&r->board->rank[r->rank].round, round);
    /* Who brings something to round n + 2 has read all of n, as all others have begun n + 1. */
    for (int i = 0; i < r->count; i++) {
        while ((int)(atomic_load(&r->board->rank[i].round) - round) < 0) nanosleep(&nap, NULL);
        memcpy((unsigned char *)all + (size_t)i * size, r->board->rank[i].bytes[round % 2], size);
    }
}

int ranks_join(struct ranks *r, struct problem *p)
{
    struct collectives_id id;
    if (collectives_open(&r->nccl, p)) return -1;
    if (r->rank == 0) {
        if (collectives_make_id(&r->nccl, &id, p)) return -1;
        for (int i = 1; i < r->count; i++)
            if (put(r, i, &id, sizeof id, p)) return -1;
    } else if (get(r, &id, sizeof id, p) != 1) {
        return problem(p, "the leading rank ended before the ranks joined");
    }
    r->met = true;
    return collectives_join(&r->nccl, &id, r->rank, r->count, p);
}

bool ranks_leader_failed(struct ranks *r)
{
    struct collectives_id id;
    struct problem p;
    if (r->rank == 0 || (r->met && !has_data(r->from, leader_ends))) return false;
    return get(r, &id, r->met ? 1 : sizeof id, &p) != 1;
}

void ranks_close(struct ranks *r, bool failed)
{
    /* The pipes first: ncclCommDestroy may wait until the other ranks call it, too, and they do so
     * when the leader's pipe ends. */
    for (int i = 1; i < r->count; i++)
        if (r->to[i] >= 0) close(r->to[i]);
    if (r->from >= 0) close(r->from);
    r->from = -1;
    for (int i = 0; i < RANKS_MOST; i++) r->to[i] = -1;
    exchange_close(&r->exchange, r, failed);
    collectives_close(&r->nccl, failed);
}
