/*
 * The worksheet's barriers and lifetimes, from one group's events in their order.
 *
 * Storage is followed by tile: an element of a named buffer, named columns, else 128 bytes or 32
 * columns. A tile fills and is read in turns. When a warp is the first of its turn to read (or to overwrite) one,
 * the newest wait that it has passed since the tile's last write (or read), and that those who wrote
 * (read) it contributed to, is what stood between: that wait, not a later one, since the warp's own
 * order ends at the access's issue.
 */
#include "async/mbar.h"
#include "worksheet/worksheet.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PASSES = 64,      /* newest waits of a warp */
    ISSUES = 1 << 12, /* newest operations */
    GENERATIONS = 2,  /* of a named barrier that are in the making at once */
    CLUSTER_SLOT = NAMED_BARRIERS,
    TILE_BYTES = 128, /* of storage without a name, and of arrays of smaller elements */
    TILE_COLUMNS = 32
};

struct pass {
    uint64_t at;
    uint32_t from;  /* warps that contributed */
    uint32_t kinds; /* of agents whose accesses it covers, bit = enum agent_kind */
    uint32_t id;    /* of the link */
    uint8_t by;
};
#define ALL_KINDS UINT32_MAX

struct flow_warp {
    struct pass passes[PASSES];
    uint32_t next;
};

struct tile {
    uint64_t written, read;    /* when, last */
    uint32_t writers, readers; /* warps, of the turn */
    uint32_t wrote, used;      /* kinds of agents: that wrote, that read */
    uint32_t made;             /* first instruction of the turn that wrote it */
    bool filling;              /* the last to come was a write */
};

struct live_barrier {
    uint32_t key;
    bool live;
    uint64_t phases, arrivals, bytes; /* completed; of the open phase */
    uint32_t from, from_last;         /* warps that signalled the open phase, the one before */
};

struct generation {
    uint64_t number; /* plus 1; 0: unused */
    uint32_t from, lanes;
    bool passed;
};

struct flow_cta {
    struct flow_warp warps[CTA_WARPS];
    struct live_barrier *barriers; /* mbarriers, by map */
    uint32_t capacity;
    struct sheet_map map;
    struct generation named[NAMED_BARRIERS + 1][GENERATIONS];
    struct tile *tiles;
};

struct issue {
    uint64_t token, at;
};

struct flow {
    struct sheet *sheet;
    const struct kernel *kernel;
    uint64_t now;         /* events so far */
    struct sheet_map map; /* a CTA's memory, reused, to its place here */
    struct flow_cta **ctas;
    uint32_t cta_count, cta_capacity;
    uint32_t *buffer_tile; /* first tile of a named buffer */
    uint32_t column_tile, shared_tile, tmem_tile, tile_count;
    struct issue issues[ISSUES];
};

/* ---- tiles ---- */

static uint32_t tile_bytes(const struct name_range *r)
{
    return r->stride >= TILE_BYTES ? r->stride : TILE_BYTES;
}

static bool number_tiles(struct flow *f)
{
    const struct kernel *k = f->kernel;
    f->buffer_tile = calloc(k->buffer_count + 1U, sizeof *f->buffer_tile);
    if (!f->buffer_tile) return false;
    for (uint32_t i = 0; i < k->buffer_count; i++) {
        f->buffer_tile[i] = f->tile_count;
        f->tile_count += k->buffers[i].count / tile_bytes(&k->buffers[i]) + 1;
    }
    f->column_tile = f->tile_count;
    f->shared_tile = f->column_tile + k->column_count;
    f->tmem_tile = f->shared_tile + f->sheet->shared_grains * SHEET_GRAIN / TILE_BYTES + 1;
    f->tile_count = f->tmem_tile + TMEM_COLUMNS / TILE_COLUMNS;
    return true;
}

/* The tile at an offset or column, which of its space it is, and where it ends. */
struct place {
    struct sheet_link link; /* tensor, named, range */
    uint32_t tile, end;
};

static struct place place_at(const struct flow *f, bool tensor, uint32_t at)
{
    const struct kernel *k = f->kernel;
    const struct name_range *ranges = tensor ? k->columns : k->buffers;
    uint32_t count = tensor ? k->column_count : k->buffer_count;
    uint32_t unit = tensor ? TILE_COLUMNS : TILE_BYTES;
    struct place p = {.link = {.tensor = tensor}, .end = at / unit * unit + unit};
    for (uint32_t i = 0; i < count; i++) {
        const struct name_range *r = &ranges[i];
        uint32_t index, size = tensor ? r->count : tile_bytes(r);
        if (at < r->first || at - r->first >= r->count) {
            if (at < r->first && r->first < p.end) p.end = r->first;
            continue;
        }
        index = (at - r->first) / size;
        p.tile = tensor ? f->column_tile + i : f->buffer_tile[i] + index;
        p.end = r->first + (index + 1) * size;
        if (p.end > r->first + r->count) p.end = r->first + r->count;
        p.link.named = true;
        p.link.range = i;
        return p;
    }
    p.tile = (tensor ? f->tmem_tile : f->shared_tile) + at / unit;
    return p;
}

/* ---- CTAs ---- */

static void end_mbarrier(struct flow *f, struct live_barrier *b)
{
    struct sheet_barrier *s;
    if (!b->live) return;
    b->live = false;
    s = sheet_barrier(f->sheet, BARRIER_MBAR, b->key);
    if (s) bounds_take(&s->phases, b->phases);
}

static void end_named(struct flow *f, struct flow_cta *c)
{
    for (uint32_t id = 0; id <= NAMED_BARRIERS; id++) {
        uint64_t phases = 0;
        struct sheet_barrier *s;
        for (int g = 0; g < GENERATIONS; g++) {
            if (c->named[id][g].passed && c->named[id][g].number > phases)
                phases = c->named[id][g].number;
        }
        if (!c->named[id][0].number && !c->named[id][1].number) continue;
        s = id == CLUSTER_SLOT ? sheet_barrier(f->sheet, BARRIER_CLUSTER, 0)
                               : sheet_barrier(f->sheet, BARRIER_NAMED, id);
        if (s) bounds_take(&s->phases, phases);
    }
}

static void end_cta(struct flow *f, struct flow_cta *c)
{
    for (size_t i = 0; i < c->map.count; i++) end_mbarrier(f, &c->barriers[i]);
    end_named(f, c);
    memset(c->named, 0, sizeof c->named);
    memset(c->warps, 0, sizeof c->warps);
    memset(c->tiles, 0, f->tile_count * sizeof *c->tiles);
}

static void exhaust(struct flow *f)
{
    f->sheet->exhausted = true;
}

static void cta_free(struct flow_cta *c)
{
    if (!c) return;
    map_clear(&c->map);
    free(c->barriers);
    free(c->tiles);
    free(c);
}

static struct flow_cta *new_cta(struct flow *f)
{
    struct flow_cta *c = calloc(1, sizeof *c);
    if (f->cta_count == f->cta_capacity) {
        uint32_t capacity = f->cta_capacity ? 2 * f->cta_capacity : 8;
        struct flow_cta **grown = realloc(f->ctas, capacity * sizeof(struct flow_cta *));
        if (grown) {
            f->ctas = grown;
            f->cta_capacity = capacity;
        }
    }
    if (c) c->tiles = calloc(f->tile_count, sizeof *c->tiles);
    if (!c || !c->tiles || f->cta_count == f->cta_capacity) {
        cta_free(c);
        return NULL;
    }
    f->ctas[f->cta_count] = c;
    f->cta_count++;
    return c;
}

static struct flow_cta *cta_of(struct flow *f, const struct cta *cta)
{
    uint32_t *at = map_at(&f->map, (uint64_t)(uintptr_t)cta, f->cta_count);
    struct flow_cta *c = NULL;
    if (at) c = *at < f->cta_count ? f->ctas[*at] : new_cta(f);
    if (!c) exhaust(f);
    return c;
}

static struct live_barrier *barrier_at(struct flow *f, struct flow_cta *c, uint32_t key)
{
    uint32_t fresh = (uint32_t)c->map.count, *at = map_at(&c->map, key + 1ULL, fresh);
    if (at && c->map.count > fresh) {
        if (fresh == c->capacity) {
            uint32_t capacity = fresh ? 2 * fresh : 16;
            struct live_barrier *grown = realloc(c->barriers, capacity * sizeof *grown);
            if (!grown) {
                c->map.count--;
                exhaust(f);
                return NULL;
            }
            c->barriers = grown;
            c->capacity = capacity;
        }
        c->barriers[fresh] = (struct live_barrier){.key = key};
    }
    if (!at) exhaust(f);
    return at ? &c->barriers[*at] : NULL;
}

/* ---- waits ---- */

static void pass(struct flow *f, const struct event *e, uint8_t by, uint32_t id, uint32_t from,
                 uint32_t kinds)
{
    struct flow_cta *c = cta_of(f, e->warp->cta);
    struct flow_warp *w;
    if (!c) return;
    w = &c->warps[e->warp->id];
    w->passes[w->next++ % PASSES] = (struct pass){f->now, from, kinds, id, by};
}

/* The newest wait that warp `w` passed in (after, before) to which all of `from` contributed, else one
 * to which some did; a wait for the warp's own operations covers those of its kind. */
static const struct pass *between(const struct flow_warp *w, uint64_t after, uint64_t before,
                                  uint32_t from, uint32_t kinds)
{
    const struct pass *some = NULL;
    for (uint32_t i = 1; i <= PASSES && i <= w->next; i++) {
        const struct pass *p = &w->passes[(w->next - i) % PASSES];
        if (p->at <= after) break;
        if (p->at >= before || !(p->from & from) || !(p->kinds & kinds)) continue;
        if ((p->from & from) == from) return p;
        if (!some) some = p;
    }
    return some;
}

static void add_link(struct flow *f, struct sheet_link link, const struct pass *p, uint32_t warp,
                     uint32_t from)
{
    link.by = p ? p->by : from == 1U << warp ? BY_OWN : BY_OTHER;
    link.id = p ? p->id : 0;
    sheet_link(f->sheet, link);
}

/* ---- accesses ---- */

/* When the access was issued: its operation's moment, else now. */
static uint64_t issued(const struct flow *f, const struct event *e)
{
    const struct issue *i = &f->issues[e->token % ISSUES];
    return e->token && i->token == e->token ? i->at : f->now;
}

static void touch_tile(struct flow *f, const struct event *e, bool write, struct tile *t,
                       struct sheet_link link)
{
    const struct flow_cta *c = cta_of(f, e->warp->cta);
    uint32_t warp = e->warp->id, bit = 1U << warp;
    uint32_t insn = sheet_insn(f->sheet, e->in);
    if (!c) return;
    if (!link.named) link.range = write ? insn : t->made;
    if (write) {
        if (t->readers) {
            link.what = LINK_FREED;
            add_link(f, link, between(&c->warps[warp], t->read, issued(f, e), t->readers, t->used),
                     warp, t->readers);
        }
        if (!t->filling) t->writers = t->wrote = 0;
        if (!t->filling || insn < t->made) t->made = insn;
        t->filling = true;
        t->readers = 0;
        t->writers |= bit;
        t->wrote |= 1U << agent_of(e);
        t->written = f->now;
        return;
    }
    if (t->writers && !(t->readers & bit)) {
        link.what = LINK_FILLED;
        add_link(f, link, between(&c->warps[warp], t->written, issued(f, e), t->writers, t->wrote),
                 warp, t->writers);
    }
    if (t->filling) t->used = 0;
    t->filling = false;
    t->used |= 1U << agent_of(e);
    t->readers |= bit;
    t->read = f->now;
}

void flow_touch(struct flow *f, const struct event *e, bool write, uint32_t first, uint32_t bytes)
{
    struct flow_cta *c = cta_of(f, e->cta ? e->cta : e->warp->cta);
    f->now++;
    for (uint32_t at = first; c && at < first + bytes;) {
        struct place p = place_at(f, e->tensor, at);
        touch_tile(f, e, write, &c->tiles[p.tile], p.link);
        at = p.end;
    }
}

/* ---- barriers ---- */

static void init(struct flow *f, const struct event *e, struct live_barrier *b)
{
    struct sheet_barrier *s = sheet_barrier(f->sheet, BARRIER_MBAR, e->key);
    uint32_t insn = sheet_insn(f->sheet, e->in);
    end_mbarrier(f, b);
    *b = (struct live_barrier){.key = e->key, .live = true};
    if (!s) return;
    if (insn < s->made) s->made = insn;
    bounds_take(&s->count, e->value);
}

static void mbarrier(struct flow *f, const struct event *e)
{
    struct flow_cta *c = cta_of(f, e->cta);
    struct live_barrier *b = c ? barrier_at(f, c, e->key) : NULL;
    struct sheet_barrier *s = b ? sheet_barrier(f->sheet, BARRIER_MBAR, e->key) : NULL;
    if (!s) return;
    switch (e->kind) {
    case EV_MBAR_INIT: init(f, e, b); break;
    case EV_MBAR_INVAL: end_mbarrier(f, b); break;
    case EV_MBAR_ARRIVE:
    case EV_MBAR_TX:
        b->from |= 1U << e->warp->id;
        s->producers[agent_of(e)] |= 1U << e->warp->id;
        *(e->kind == EV_MBAR_TX ? &b->bytes : &b->arrivals) += e->value;
        break;
    case EV_MBAR_PHASE:
        bounds_take(&s->arrivals, b->arrivals);
        bounds_take(&s->bytes, b->bytes);
        b->phases++;
        b->arrivals = b->bytes = 0;
        b->from_last = b->from;
        b->from = 0;
        break;
    default: /* EV_MBAR_PASS */
        s->consumers |= 1U << e->warp->id;
        pass(f, e, BY_MBAR, e->key, e->value == FRESH_PHASE ? 0 : b->from_last, ALL_KINDS);
        break;
    }
}

/* Named barriers and the cluster's, from the CTA's own warps. */
static void named(struct flow *f, const struct event *e, bool cluster, bool arrives)
{
    struct flow_cta *c = cta_of(f, e->warp->cta);
    uint32_t id = cluster ? CLUSTER_SLOT : e->key, insn = sheet_insn(f->sheet, e->in);
    struct sheet_barrier *s =
        sheet_barrier(f->sheet, cluster ? BARRIER_CLUSTER : BARRIER_NAMED, cluster ? 0 : e->key);
    struct generation *g;
    if (!c || !s || id > NAMED_BARRIERS) return;
    g = &c->named[id][e->value % GENERATIONS];
    if (g->number != e->value + 1) *g = (struct generation){.number = e->value + 1};
    if (arrives) {
        g->from |= 1U << e->warp->id;
        g->lanes += (uint32_t)__builtin_popcount(e->lanes);
        s->producers[AGENT_THREADS] |= 1U << e->warp->id;
        if (insn < s->made) s->made = insn;
        return;
    }
    if (!g->passed) bounds_take(&s->arrivals, g->lanes);
    g->passed = true;
    s->consumers |= 1U << e->warp->id;
    pass(f, e, cluster ? BY_CLUSTER : BY_NAMED, s->key, cluster ? UINT32_MAX : g->from, ALL_KINDS);
}

/* What a wait for the warp's own operations covers. */
static uint32_t waited_kinds(const struct event *e)
{
    static const enum agent_kind groups[COMMIT_KINDS] = {[COMMIT_CP_ASYNC] = AGENT_CP_ASYNC,
                                                         [COMMIT_BULK] = AGENT_STORE,
                                                         [COMMIT_WGMMA] = AGENT_MMA};
    if (e->kind == EV_TMEM_WAIT) return 1U << (e->value ? AGENT_ST : AGENT_LD);
    return 1U << groups[e->key];
}

void flow_event(struct flow *f, const struct event *e)
{
    struct flow_cta *c;
    f->now++;
    switch (e->kind) {
    case EV_WARP_START:
        c = cta_of(f, e->cta);
        if (c && e->warp->id == 0) end_cta(f, c);
        break;
    case EV_ASYNC_ISSUE: f->issues[e->token % ISSUES] = (struct issue){e->token, f->now}; break;
    case EV_MBAR_INIT:
    case EV_MBAR_INVAL:
    case EV_MBAR_ARRIVE:
    case EV_MBAR_TX:
    case EV_MBAR_PHASE:
    case EV_MBAR_PASS: mbarrier(f, e); break;
    case EV_BARRIER_ARRIVE: named(f, e, false, true); break;
    case EV_BARRIER_PASS: named(f, e, false, false); break;
    case EV_CLUSTER_ARRIVE: named(f, e, true, true); break;
    case EV_CLUSTER_PASS: named(f, e, true, false); break;
    case EV_GROUP_WAIT:
    case EV_TMEM_WAIT:
        pass(f, e, BY_GROUP, sheet_insn(f->sheet, e->in), 1U << e->warp->id, waited_kinds(e));
        break;
    default: break;
    }
}

struct flow *flow_new(struct sheet *s)
{
    struct flow *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->sheet = s;
    f->kernel = s->launch->kernel;
    if (number_tiles(f)) return f;
    free(f);
    return NULL;
}

void flow_end(struct flow *f)
{
    for (uint32_t i = 0; i < f->cta_count; i++) end_cta(f, f->ctas[i]);
}

void flow_free(struct flow *f)
{
    if (!f) return;
    for (uint32_t i = 0; i < f->cta_count; i++) cta_free(f->ctas[i]);
    free(f->ctas);
    free(f->buffer_tile);
    map_clear(&f->map);
    free(f);
}
