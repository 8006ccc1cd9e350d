/* One lane's arrival for the others of its warp: spoken.h. */
#include "check/spoken.h"

#include "machine/mem.h"

#include <stdlib.h>

enum { SPOKEN_MOST = 1024 };

struct spoken {
    struct {
        struct spoken_span span;
        const struct order_warp *by;
        uint32_t met; /* the warp's number when its lanes had met; 0: not yet */
    } at[SPOKEN_MOST];
    uint32_t count;
    uint64_t low[2], high[2]; /* of all spans in shared memory, and in global memory [1] */
};

static bool alike(struct spoken_span a, struct spoken_span b)
{
    return a.write == b.write && a.global == b.global && a.unfenced == b.unfenced;
}

/* Adds the bytes of `b` to those of `a`, if no other lie between them. */
static bool join(struct spoken_span *a, struct spoken_span b)
{
    if (b.low > a->high || b.high < a->low) return false;
    if (b.low < a->low) a->low = b.low;
    if (b.high > a->high) a->high = b.high;
    return true;
}

void spoken_add(struct order *o, struct order_warp *w, const struct insn *in,
                struct spoken_span span)
{
    struct spoken *s = w->cta->spoken;
    uint32_t i = 0;
    if (!s) s = w->cta->spoken = calloc(1, sizeof *s);
    order_keep(o, s != NULL);
    if (!s) return;
    if (s->low[span.global] == s->high[span.global] || span.low < s->low[span.global])
        s->low[span.global] = span.low;
    if (span.high > s->high[span.global]) s->high[span.global] = span.high;
    for (; i < s->count; i++) {
        const struct spoken_span *old = &s->at[i].span;
        if (s->at[i].by != w || !alike(*old, span)) continue;
        if (!s->at[i].met && join(&s->at[i].span, span)) return;
        if (span.low <= old->low && span.high >= old->high) break; /* it says more */
    }
    if (i == SPOKEN_MOST) {
        order_sampled(o, SAMPLED_LANES, in);
        return;
    }
    if (i == s->count) s->count++;
    s->at[i].span = span;
    s->at[i].by = w;
    s->at[i].met = 0;
}

void spoken_met(struct order_warp *w)
{
    struct spoken *s = w->cta->spoken;
    uint32_t met = 0;
    for (uint32_t i = 0; s && i < s->count; i++) {
        if (s->at[i].by != w || s->at[i].met) continue;
        if (!met) {
            order_tick(w); /* nobody knows of this number yet */
            met = order_component(w, w->chain[COMPONENT_WARP])->number;
        }
        s->at[i].met = met;
    }
}

/* Whether span `i` has any of the bytes [low, high), and another warp spoke for it, and `w` does not know better. */
static bool concerns(const struct spoken *s, uint32_t i, const struct order_warp *w,
                     const struct event *e, uint64_t low, uint64_t high)
{
    const struct spoken_span *span = &s->at[i].span;
    const struct order_warp *by = s->at[i].by;
    if (by == w || span->global != (e->space == SPACE_GLOBAL) || low >= span->high ||
        high <= span->low)
        return false;
    if (!span->write && !(e->access & ACCESS_WRITE)) return false;
    if (span->unfenced && (e->proxy != PROXY_ASYNC || w->fenced_since[span->global])) return false;
    return !s->at[i].met || clock_get(&w->now.caused, by->chain[COMPONENT_WARP]) < s->at[i].met;
}

/* Some span may have bytes of [low, high). */
static bool reaches(const struct spoken *s, const struct event *e, uint64_t low, uint64_t high)
{
    const int global = e->space == SPACE_GLOBAL;
    return s && low < s->high[global] && high > s->low[global];
}

static void look(struct order *o, const struct order_warp *w, const struct event *e,
                 const struct order_cta *c, uint64_t low, uint64_t high)
{
    const struct spoken *s = c ? c->spoken : NULL;
    if (!reaches(s, e, low, high)) return;
    for (uint32_t i = 0; i < s->count; i++) {
        if (!concerns(s, i, w, e, low, high)) continue;
        order_sampled(o, SAMPLED_LANES, e->in);
        return;
    }
}

/* The lowest and the highest address of a lane, or of an operation's range. */
static void bounds(const struct event *e, uint64_t *low, uint64_t *high)
{
    *low = UINT64_MAX;
    *high = 0;
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        const uint64_t at = e->addresses[first_lane(rest)];
        if (at < *low) *low = at;
        if (at > *high) *high = at;
    }
}

/* Lanes that all access one CTA's memory, or global memory, at `address & mask`, from `low` to `high`. Most spans lie
 * elsewhere, so the lanes are compared with the others alone. */
static void look_lanes(struct order *o, const struct order_warp *w, const struct event *e,
                       const struct order_cta *c, uint64_t low, uint64_t high, uint64_t mask)
{
    const struct spoken *s = c ? c->spoken : NULL;
    uint16_t near[SPOKEN_MOST];
    uint32_t count = 0;
    if (!reaches(s, e, low & mask, (high & mask) + e->size)) return;
    for (uint32_t i = 0; i < s->count; i++)
        if (concerns(s, i, w, e, low & mask, (high & mask) + e->size)) near[count++] = (uint16_t)i;
    for (uint32_t rest = count ? e->lanes : 0; rest; rest &= rest - 1) {
        const uint64_t at = e->addresses[first_lane(rest)] & mask;
        for (uint32_t n = 0; n < count; n++) {
            const struct spoken_span *span = &s->at[near[n]].span;
            if (at >= span->high || at + e->size <= span->low) continue;
            order_sampled(o, SAMPLED_LANES, e->in);
            return;
        }
    }
}

/* Clusters that talk through global memory poll, and are sampled anyway. */
static void look_global(struct order *o, const struct order_warp *w, const struct event *e)
{
    const struct order_cluster *cluster = w->cta->cluster;
    uint64_t low = 0, high = 0;
    if (e->addresses) bounds(e, &low, &high);
    for (uint32_t r = 0; r < CLUSTER_CTAS && cluster->ctas[r]; r++) {
        const struct order_cta *c = cluster->ctas[r];
        if (!c->spoken) continue;
        if (e->addresses)
            look_lanes(o, w, e, c, low, high, UINT64_MAX);
        else
            look(o, w, e, c, e->address, e->address + e->size);
    }
}

/* By lanes, or the ranges of an operation. */
static void look_shared(struct order *o, const struct order_warp *w, const struct event *e)
{
    uint64_t low, high;
    struct cta *cta = e->cta;
    uint32_t offset;
    if (!w->cta->spoken && w->cta->cluster->cluster->cta_count == 1) return;
    bounds(e, &low, &high);
    if (e->token || ((low ^ high) >> SHARED_RANK_SHIFT == 0 &&
                     mem_shared(w->warp, (uint32_t)low, &cta, &offset))) {
        look_lanes(o, w, e, order_cta_of(cta), low, high, SHARED_OFFSET_MASK);
        return;
    }
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        const uint64_t at = e->addresses[first_lane(rest)];
        if (!mem_shared(w->warp, (uint32_t)at, &cta, &offset)) continue;
        look(o, w, e, order_cta_of(cta), offset, offset + e->size);
    }
}

void spoken_access(struct order *o, const struct order_warp *w, const struct event *e)
{
    if (e->tensor || !e->in) return;
    if (e->space == SPACE_GLOBAL) look_global(o, w, e);
    if (e->space != SPACE_SHARED) return;
    if (!e->addresses) {
        const uint64_t low = e->address & SHARED_OFFSET_MASK;
        look(o, w, e, e->cta ? order_cta_of(e->cta) : w->cta, low, low + e->size);
        return;
    }
    look_shared(o, w, e);
}
