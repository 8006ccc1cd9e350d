/* Operations left behind (pending.h). */
#include "check/pending.h"
#include "async/async.h"
#include "check/deadlock.h"

#include <stdlib.h>

/* An operation that its issuer has to see the end of: in its warp's list, and in the chain of its token. */
struct pending {
    struct pending *next, **link; /* link: what points to it in the list */
    struct pending *chained;
    uint64_t token;
    const struct warp *warp;
    uint64_t bulk_group; /* which one of its lane, from 1; OPEN before commit_group */
    const struct insn *in;
    uint32_t lane;
    bool bulk, thread_copy; /* of a bulk group; cp.async */
};
#define OPEN UINT64_MAX
enum { CHAINS_FIRST = 64 }; /* a power of two */

/* An mbarrier that commits arrive at: the last one whose phase no wait has passed. */
struct arrived {
    struct arrived *next;
    struct cta *cta; /* NULL: unused */
    uint32_t offset;
    struct warp *by;
    const struct insn *in; /* NULL: none */
    bool complete;         /* its phase, which is: */
    uint64_t phase;
};

struct warp_record {
    struct warp *warp; /* NULL: unused */
    struct pending *list;
    uint32_t issued;                  /* lanes that ever issued a tcgen05 operation to commit */
    uint64_t bulk_groups[WARP_LANES]; /* closed so far */
};

/* ---- records ---- */

static struct warp_record *record_of(struct pending_table *c, struct warp *w)
{
    size_t i = (size_t)(((uintptr_t)w >> 6) * 0x9E3779B97F4A7C15ULL >> 32) & c->mask;
    while (c->records[i].warp && c->records[i].warp != w) i = (i + 1) & c->mask;
    c->records[i].warp = w;
    return &c->records[i];
}

/* Tokens are numbered one after the other, so their low bits spread them. */
static struct pending **chain_of(const struct pending_table *c, uint64_t token)
{
    return &c->chains[token & (c->chain_count - 1)];
}

/* Doubles the chains. Without memory they stay, and are longer. */
static void chains_grow(struct pending_table *c)
{
    struct pending **old = c->chains;
    const size_t count = c->chain_count;
    struct pending **chains = calloc(2 * count, sizeof(struct pending *));
    if (!chains) return;
    c->chains = chains;
    c->chain_count = 2 * count;
    for (size_t i = 0; i < count; i++) {
        while (old[i]) {
            struct pending *p = old[i];
            struct pending **chain = chain_of(c, p->token);
            old[i] = p->chained;
            p->chained = *chain;
            *chain = p;
        }
    }
    free(old);
}

/* The warp's operation of that token; NULL: none. Tokens are unique in the group. */
static struct pending *pending_find(const struct pending_table *c, const struct warp *w,
                                    uint64_t token)
{
    struct pending *p = *chain_of(c, token);
    while (p && (p->token != token || p->warp != w)) p = p->chained;
    return p;
}

/* A record in front of `*at`, in the list of the warp. Without memory the checker says so. */
static void pending_add(struct pending_table *c, struct pending **at, struct pending from)
{
    struct pending **chain, *p = c->free;
    if (p)
        c->free = p->next;
    else
        p = malloc(sizeof *p);
    if (!p) {
        c->exhausted = true;
        return;
    }
    *p = from;
    if (c->count++ == c->chain_count) chains_grow(c);
    chain = chain_of(c, p->token);
    p->chained = *chain;
    *chain = p;
    p->next = *at;
    p->link = at;
    if (p->next) p->next->link = &p->next;
    *at = p;
}

static void pending_drop(struct pending_table *c, struct pending *p)
{
    struct pending **chain = chain_of(c, p->token);
    while (*chain != p) chain = &(*chain)->chained;
    *chain = p->chained;
    *p->link = p->next;
    if (p->next) p->next->link = p->link;
    c->count--;
    p->next = c->free;
    c->free = p;
}

static void record_reset(struct pending_table *c, struct warp *w)
{
    struct warp_record *r = record_of(c, w);
    while (r->list) pending_drop(c, r->list);
    memset(r, 0, sizeof *r);
    r->warp = w;
}

/* ---- events ---- */

static bool tensor_commit(const struct insn *in)
{
    return in->is.class == INSN_COMMIT && in->is.engine == ENGINE_TENSOR;
}

/* What completes bytes on an mbarrier is in no group. */
static bool in_bulk_group(const struct insn *in)
{
    return in->is.engine == ENGINE_BULK && in->is.signals == SIGNALS_NOTHING;
}

static bool thread_copy(const struct insn *in)
{
    return in->is.engine == ENGINE_CP_ASYNC && in->is.class == INSN_COPY;
}

static void check_commit(struct pending_table *c, const struct warp_record *r,
                         const struct event *e)
{
    if (e->lanes & ~r->issued) {
        sim_find(c->group, e->warp, e->in, first_lane(e->lanes & ~r->issued), SEV_WARNING,
                 FIND_COMMIT_EMPTY, CAUSE_NONE, "",
                 "tcgen05.commit by a thread that has issued no tcgen05.mma, .cp or .shift: it "
                 "tracks nothing and its arrival comes at once; commit covers only what the "
                 "executing thread itself issued");
    }
}

static void on_issue(struct pending_table *c, const struct event *e)
{
    struct warp_record *r;
    /* Remote stores belong to whoever receives them; of cp.async the engine knows what is left (take_copies). */
    if (!e->warp || !e->in || e->in->is.class == INSN_REMOTE_STORE || thread_copy(e->in)) return;
    r = record_of(c, e->warp);
    if (tensor_commit(e->in))
        check_commit(c, r, e);
    else if (e->in->is.engine == ENGINE_TENSOR)
        r->issued |= e->lanes;
    pending_add(c, &r->list,
                (struct pending){.token = e->token,
                                 .warp = e->warp,
                                 .bulk_group = OPEN,
                                 .in = e->in,
                                 .lane = first_lane(e->lanes),
                                 .bulk = in_bulk_group(e->in)});
}

/* A copy from global memory that completes in another CTA (its share of a multicast) belongs to that one,
 * which waits for it; what it reads is nobody's shared memory. */
static void on_bar(struct pending_table *c, const struct event *e)
{
    struct pending *p;
    if (!e->warp || e->cta == e->warp->cta || e->in->is.moves != MOVES_IN) return;
    p = pending_find(c, e->warp, e->token);
    if (p) pending_drop(c, p);
}

static void on_done(struct pending_table *c, const struct event *e)
{
    struct pending *p = e->warp && c->count ? pending_find(c, e->warp, e->token) : NULL;
    if (p && !p->bulk) pending_drop(c, p);
}

static void on_group_commit(struct pending_table *c, const struct event *e)
{
    struct warp_record *r = record_of(c, e->warp);
    if (e->key != COMMIT_BULK) return;
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) r->bulk_groups[first_lane(rest)]++;
    for (struct pending *p = r->list; p; p = p->next) {
        if (p->bulk && p->bulk_group == OPEN && e->lanes >> p->lane & 1) {
            p->bulk_group = r->bulk_groups[p->lane];
        }
    }
}

static void on_group_wait(struct pending_table *c, const struct event *e)
{
    const struct warp_record *r = record_of(c, e->warp);
    struct pending *next;
    if (e->key != COMMIT_BULK) return;
    for (struct pending *p = r->list; p; p = next) {
        bool awaited = p->bulk && p->bulk_group != OPEN && (e->lanes >> p->lane & 1) &&
                       p->bulk_group + e->value <= r->bulk_groups[p->lane];
        next = p->next;
        if (awaited) pending_drop(c, p);
    }
}

/* ---- commits that nobody waits for ---- */

static struct arrived *arrived_at(const struct pending_table *c, const struct cta *cta,
                                  uint32_t offset)
{
    struct arrived *a = c->arrived;
    while (a && (a->cta != cta || a->offset != offset)) a = a->next;
    return a;
}

static struct arrived *arrived_new(struct pending_table *c, struct cta *cta, uint32_t offset)
{
    struct arrived *a = c->arrived;
    while (a && a->cta) a = a->next;
    if (!a) {
        a = calloc(1, sizeof *a);
        if (!a) {
            c->exhausted = true;
            return NULL;
        }
        a->next = c->arrived;
        c->arrived = a;
    }
    a->cta = cta;
    a->offset = offset;
    return a;
}

static void on_barrier(struct pending_table *c, const struct event *e)
{
    struct arrived *a = e->cta ? arrived_at(c, e->cta, e->key) : NULL;
    if (e->kind == EV_MBAR_ARRIVE && e->token && e->cta && e->in && tensor_commit(e->in)) {
        if (!a && !(a = arrived_new(c, e->cta, e->key))) return;
        a->in = e->in;
        a->by = e->warp;
        a->complete = false;
    } else if (a && e->kind == EV_MBAR_PHASE && a->in && !a->complete) {
        a->complete = true;
        a->phase = e->value;
    } else if (a && e->kind == EV_MBAR_PASS && a->complete && e->value != FRESH_PHASE &&
               e->value >= a->phase) {
        a->in = NULL;
        a->complete = false;
    }
}

static void arrived_exit(const struct pending_table *c, const struct cta *cta)
{
    for (struct arrived *a = c->arrived; a; a = a->next) {
        if (a->cta != cta) continue;
        a->cta = NULL;
        if (!a->in || !a->complete || !a->by || a->by->cta != cta) continue;
        sim_idiom(c->group, a->in, IDIOM_COMMIT_UNWAITED);
        if (c->group->launch->check_level < 2) continue;
        sim_find(c->group, a->by, a->in, NO_LANE, SEV_WARNING, FIND_PENDING_AT_EXIT, CAUSE_NONE, "",
                 "the CTA exits, and nobody waited for the last phase that this commit arrives in: "
                 "here it has come in time, but nothing says so. Cheapest remedy: a wait for that "
                 "phase before the CTA's last barrier.");
    }
}

/* CUTLASS's epilogues, ThunderKittens and DeepGEMM end with stores that nobody waits for, and are right on an
 * H200 and a B200: hardware keeps the memory until they have read it. On an H200 no cp.async was seen to write
 * into the memory of a later CTA either. The ISA promises neither. */
static void tell_left(const struct pending_table *c, struct warp *w, const struct pending *p)
{
    const char *message = "the CTA exits while this operation is in flight: it may still touch "
                          "shared or tensor memory or a barrier that the CTA has given up";
    if (p->bulk) {
        sim_idiom(c->group, p->in, IDIOM_STORE_UNWAITED);
        message = "the CTA exits, but this thread never waited for its bulk group "
                  "(cp.async.bulk.wait_group, .read suffices): the operation may still read "
                  "shared memory that the CTA has given up";
    } else if (p->thread_copy) {
        sim_idiom(c->group, p->in, IDIOM_COPY_UNWAITED);
        message = "the CTA exits, but this thread never waited for its cp.async "
                  "(cp.async.wait_all): the copy may still write shared memory that the CTA has "
                  "given up";
    }
    if ((p->bulk || p->thread_copy) && c->group->launch->check_level < 2) return;
    sim_find(c->group, w, p->in, p->lane, p->bulk || p->thread_copy ? SEV_WARNING : SEV_ERROR,
             FIND_PENDING_AT_EXIT, CAUSE_NONE, "", "%s", message);
}

static int by_token(const void *a, const void *b)
{
    const struct async_op *const *x = a, *const *y = b;
    return (*x)->token > (*y)->token ? 1 : -1;
}

/* Puts the warp's cp.async copies in flight into its list, newest first as the others. */
static void take_copies(struct pending_table *c, struct warp *w)
{
    const size_t count = async_copies(w, NULL, 0);
    const struct async_op **ops = count ? malloc(count * sizeof *ops) : NULL;
    if (count && !ops) c->exhausted = true;
    if (!ops) return;
    (void)async_copies(w, ops, count);
    qsort(ops, count, sizeof *ops, by_token);
    for (size_t i = 0; i < count; i++) {
        struct pending **at = &record_of(c, w)->list;
        while (*at && (*at)->token > ops[i]->token) at = &(*at)->next;
        pending_add(c, at,
                    (struct pending){.token = ops[i]->token,
                                     .warp = w,
                                     .bulk_group = OPEN,
                                     .in = ops[i]->in,
                                     .lane = ops[i]->lane,
                                     .thread_copy = true});
    }
    free(ops);
}

static void on_warp_exit(struct pending_table *c, const struct event *e)
{
    struct cta *cta = e->cta;
    if (cta->warps_live) return;
    arrived_exit(c, cta);
    for (uint32_t i = 0; i < cta->warp_count; i++) {
        struct warp *w = &cta->warps[i];
        const struct warp_record *r = record_of(c, w);
        take_copies(c, w);
        for (const struct pending *p = r->list; p; p = p->next) {
            tell_left(c, w, p);
        }
    }
}

void pending_event(struct pending_table *c, const struct event *e)
{
    switch (e->kind) {
    case EV_WARP_START: record_reset(c, e->warp); break;
    case EV_WARP_EXIT: on_warp_exit(c, e); break;
    case EV_ASYNC_ISSUE: on_issue(c, e); break;
    case EV_ASYNC_BAR: on_bar(c, e); break;
    case EV_MBAR_ARRIVE:
    case EV_MBAR_PHASE:
    case EV_MBAR_PASS: on_barrier(c, e); break;
    case EV_ASYNC_DONE: on_done(c, e); break;
    case EV_GROUP_COMMIT: on_group_commit(c, e); break;
    case EV_GROUP_WAIT: on_group_wait(c, e); break;
    default: break;
    }
}

bool pending_open(struct pending_table *c, struct group *g)
{
    size_t size = 64;
    while (size < 2 * (size_t)g->runnable_capacity) size *= 2;
    *c = (struct pending_table){.group = g, .mask = size - 1};
    c->records = calloc(size, sizeof *c->records);
    c->chain_count = CHAINS_FIRST;
    c->chains = calloc(c->chain_count, sizeof(struct pending *));
    return c->records && c->chains;
}

void pending_close(struct pending_table *c)
{
    for (size_t i = 0; c->records && i <= c->mask; i++) {
        while (c->records[i].list) pending_drop(c, c->records[i].list);
    }
    while (c->free) {
        struct pending *p = c->free;
        c->free = p->next;
        free(p);
    }
    free(c->records);
    free(c->chains);
    while (c->arrived) {
        struct arrived *next = c->arrived->next;
        free(c->arrived);
        c->arrived = next;
    }
}
