/*
 * The checker of one group. It consumes events and nothing else, and changes no result.
 *
 * Today: operations that their CTA leaves behind (pending-at-exit), and tcgen05.commit by a thread
 * that has nothing to commit (commit-empty). A bulk-group operation counts as left behind unless its
 * thread waited for its group, whether or not it happened to be over; others while they are in flight.
 */
#include "async.h"
#include "deadlock.h"

#include <stdlib.h>

/* An operation that its issuer has to see the end of. */
struct pending {
    struct pending *next;
    uint64_t token;
    uint64_t bulk_group; /* which one of its lane, from 1; OPEN before commit_group */
    const struct insn *in;
    uint32_t lane;
    bool bulk;
};
#define OPEN UINT64_MAX

struct warp_record {
    struct warp *warp; /* NULL: unused */
    struct pending *list;
    uint32_t issued;                  /* lanes that ever issued a tcgen05 operation to commit */
    uint64_t bulk_groups[WARP_LANES]; /* closed so far */
};

/* The last phase of an mbarrier that some wait passed. */
struct consumed {
    const struct cta *cta; /* NULL: unused */
    uint32_t offset;
    uint64_t phases; /* number of the phase, plus 1; 0: none but perhaps the fresh barrier's */
    bool fresh;      /* the phase before the first was passed */
};

struct checker {
    struct observer base;
    struct group *group;
    struct warp_record *records; /* open addressing by warp; warps keep their addresses */
    size_t mask;
    struct pending *free;
    struct consumed *consumed; /* open addressing by CTA and offset, at most half full */
    size_t consumed_mask, consumed_count;
    bool exhausted;
};

/* ---- records ---- */

static struct warp_record *record_of(struct checker *c, struct warp *w)
{
    size_t i = (size_t)(((uintptr_t)w >> 6) * 0x9E3779B97F4A7C15ULL >> 32) & c->mask;
    while (c->records[i].warp && c->records[i].warp != w) i = (i + 1) & c->mask;
    c->records[i].warp = w;
    return &c->records[i];
}

static void pending_drop(struct checker *c, struct pending **at)
{
    struct pending *p = *at;
    *at = p->next;
    p->next = c->free;
    c->free = p;
}

static void record_reset(struct checker *c, struct warp *w)
{
    struct warp_record *r = record_of(c, w);
    while (r->list) pending_drop(c, &r->list);
    memset(r, 0, sizeof *r);
    r->warp = w;
}

static bool has_mod(const struct insn *in, const char *mod)
{
    for (uint32_t i = 0; i < in->src->mod_count; i++) {
        if (strcmp(in->src->mods[i], mod) == 0) return true;
    }
    return false;
}

static bool named(const struct insn *in, const char *start)
{
    return strncmp(in->row->name, start, strlen(start)) == 0;
}

/* ---- phases that waits have passed ---- */

static struct consumed *consumed_at(struct consumed *table, size_t mask, const struct cta *cta,
                                    uint32_t offset)
{
    uint64_t h = ((uintptr_t)cta >> 6) * 0x9E3779B97F4A7C15ULL + offset * 0xD1B54A32D192ED03ULL;
    size_t i = (size_t)(h >> 32) & mask;
    while (table[i].cta && (table[i].cta != cta || table[i].offset != offset)) i = (i + 1) & mask;
    return &table[i];
}

static bool consumed_grow(struct checker *c)
{
    size_t size = 2 * (c->consumed_mask + 1);
    struct consumed *grown = calloc(size, sizeof *grown);
    if (!grown) return false;
    for (size_t i = 0; i <= c->consumed_mask; i++) {
        const struct consumed *old = &c->consumed[i];
        if (old->cta) *consumed_at(grown, size - 1, old->cta, old->offset) = *old;
    }
    free(c->consumed);
    c->consumed = grown;
    c->consumed_mask = size - 1;
    return true;
}

static void consume(struct checker *c, const struct event *e)
{
    struct consumed *at = consumed_at(c->consumed, c->consumed_mask, e->cta, e->key);
    if (!at->cta) {
        if (2 * ++c->consumed_count > c->consumed_mask) {
            if (!consumed_grow(c)) {
                c->exhausted = true;
                c->consumed_count--;
                return;
            }
            at = consumed_at(c->consumed, c->consumed_mask, e->cta, e->key);
        }
        at->cta = e->cta;
        at->offset = e->key;
    }
    if (e->kind == EV_MBAR_INIT) {
        at->phases = 0;
        at->fresh = false;
    } else if (e->value == FRESH_PHASE) {
        at->fresh = true;
    } else if (e->value >= at->phases) {
        at->phases = e->value + 1;
    }
}

static void on_event(struct observer *o, const struct event *e);

bool check_consumed(const struct group *g, const struct cta *owner, uint32_t offset, uint64_t phase)
{
    const struct checker *c = (const struct checker *)g->observer;
    const struct consumed *at;
    if (!c || c->base.on_event != on_event || c->exhausted) return true;
    at = consumed_at(c->consumed, c->consumed_mask, owner, offset);
    return phase == FRESH_PHASE ? at->fresh : at->phases > phase;
}

/* ---- events ---- */

static void check_commit(struct checker *c, const struct warp_record *r, const struct event *e)
{
    if (e->lanes & ~r->issued) {
        sim_find(c->group, e->warp, e->in, first_lane(e->lanes & ~r->issued), SEV_WARNING,
                 FIND_COMMIT_EMPTY, CAUSE_NONE, "",
                 "tcgen05.commit by a thread that has issued no tcgen05.mma or tcgen05.cp: it "
                 "tracks nothing and its arrival comes at once; commit covers only what the "
                 "executing thread itself issued");
    }
}

static void on_issue(struct checker *c, const struct event *e)
{
    struct warp_record *r;
    struct pending *p;
    /* Remote stores belong to whoever receives them. */
    if (!e->warp || !e->in || named(e->in, "st.async") || named(e->in, "red.async")) return;
    r = record_of(c, e->warp);
    if (named(e->in, "tcgen05.commit"))
        check_commit(c, r, e);
    else if (named(e->in, "tcgen05.mma") || named(e->in, "tcgen05.cp"))
        r->issued |= e->lanes;
    p = c->free;
    if (p)
        c->free = p->next;
    else
        p = malloc(sizeof *p);
    if (!p) {
        c->exhausted = true;
        return;
    }
    *p = (struct pending){.next = r->list,
                          .token = e->token,
                          .bulk_group = OPEN,
                          .in = e->in,
                          .lane = first_lane(e->lanes),
                          .bulk = has_mod(e->in, "bulk_group")};
    r->list = p;
}

static void on_done(struct checker *c, const struct event *e)
{
    struct warp_record *r;
    if (!e->warp) return;
    r = record_of(c, e->warp);
    for (struct pending **at = &r->list; *at; at = &(*at)->next) {
        if ((*at)->token != e->token) continue;
        if (!(*at)->bulk) pending_drop(c, at);
        return;
    }
}

static void on_group_commit(struct checker *c, const struct event *e)
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

static void on_group_wait(struct checker *c, const struct event *e)
{
    struct warp_record *r = record_of(c, e->warp);
    struct pending **at = &r->list;
    if (e->key != COMMIT_BULK) return;
    while (*at) {
        const struct pending *p = *at;
        bool awaited = p->bulk && p->bulk_group != OPEN && (e->lanes >> p->lane & 1) &&
                       p->bulk_group + e->value <= r->bulk_groups[p->lane];
        if (awaited)
            pending_drop(c, at);
        else
            at = &(*at)->next;
    }
}

static void on_warp_exit(struct checker *c, const struct event *e)
{
    struct cta *cta = e->cta;
    if (cta->warps_live) return;
    for (uint32_t i = 0; i < cta->warp_count; i++) {
        struct warp *w = &cta->warps[i];
        struct warp_record *r = record_of(c, w);
        for (const struct pending *p = r->list; p; p = p->next) {
            /* Hardware keeps the memory until a bulk store has read it, and DeepGEMM counts on
             * that; the ISA does not promise it. */
            sim_find(c->group, w, p->in, p->lane, p->bulk ? SEV_WARNING : SEV_ERROR,
                     FIND_PENDING_AT_EXIT, CAUSE_NONE, "",
                     p->bulk ? "the CTA exits, but this thread never waited for its bulk group "
                               "(cp.async.bulk.wait_group, .read suffices): the operation may "
                               "still read shared memory that the CTA has given up"
                             : "the CTA exits while this operation is in flight: it may still "
                               "touch shared or tensor memory or a barrier that the CTA has "
                               "given up");
        }
    }
}

static void on_event(struct observer *o, const struct event *e)
{
    struct checker *c = (struct checker *)o;
    switch (e->kind) {
    case EV_WARP_START: record_reset(c, e->warp); break;
    case EV_WARP_EXIT: on_warp_exit(c, e); break;
    case EV_ASYNC_ISSUE: on_issue(c, e); break;
    case EV_ASYNC_DONE: on_done(c, e); break;
    case EV_MBAR_INIT:
    case EV_MBAR_PASS: consume(c, e); break;
    case EV_GROUP_COMMIT: on_group_commit(c, e); break;
    case EV_GROUP_WAIT: on_group_wait(c, e); break;
    default: break;
    }
}

static void on_end(struct observer *o, bool completed)
{
    struct checker *c = (struct checker *)o;
    (void)completed;
    if (c->exhausted) {
        sim_find(c->group, NULL, NULL, NO_LANE, SEV_WARNING, FIND_UNSUPPORTED, CAUSE_NONE, "",
                 "the checker ran out of memory: operations left behind by a CTA may have been "
                 "missed");
    }
}

static void destroy(struct observer *o)
{
    struct checker *c = (struct checker *)o;
    for (size_t i = 0; i <= c->mask; i++) {
        while (c->records[i].list) pending_drop(c, &c->records[i].list);
    }
    while (c->free) {
        struct pending *p = c->free;
        c->free = p->next;
        free(p);
    }
    free(c->records);
    free(c->consumed);
    free(c);
}

struct observer *check_new(struct group *g, int level)
{
    struct checker *c = calloc(1, sizeof *c);
    size_t size = 64;
    (void)level; /* findings so far are the same at every level */
    while (size < 2 * (size_t)g->runnable_capacity) size *= 2;
    if (!c) return NULL;
    c->records = calloc(size, sizeof *c->records);
    c->consumed_mask = 255;
    c->consumed = calloc(c->consumed_mask + 1, sizeof *c->consumed);
    if (!c->records || !c->consumed) {
        free(c->records);
        free(c->consumed);
        free(c);
        return NULL;
    }
    c->base = (struct observer){.on_event = on_event, .on_end = on_end, .destroy = destroy};
    c->group = g;
    c->mask = size - 1;
    return &c->base;
}
