/* Flags in memory: what strong accesses hand over through a location (order.h). */
#include "check/order.h"

#include <stdlib.h>

enum { FLAGS_FIRST = 64, FLAGS_MOST = 1 << 14 };

static struct order_flag *flag_slot(struct order_flag *flags, uint32_t slots,
                                    const struct order_cta *cta, uint64_t address)
{
    uint64_t h = (address ^ (uintptr_t)cta >> 4) * 0x9E3779B97F4A7C15ULL;
    uint32_t i = (uint32_t)(h >> 40) & (slots - 1);
    while (flags[i].used && (flags[i].cta != cta || flags[i].address != address))
        i = (i + 1) & (slots - 1);
    return &flags[i];
}

static bool flags_grow(struct order_cluster *c)
{
    uint32_t slots = c->flag_slots ? 2 * c->flag_slots : FLAGS_FIRST;
    struct order_flag *grown = calloc(slots, sizeof *grown);
    if (!grown) return false;
    for (uint32_t i = 0; i < c->flag_slots; i++) {
        const struct order_flag *f = &c->flags[i];
        if (f->used) *flag_slot(grown, slots, f->cta, f->address) = *f;
    }
    free(c->flags);
    c->flags = grown;
    c->flag_slots = slots;
    return true;
}

/* The record of a location; past FLAGS_MOST all share one, which only ever orders too much. */
static struct order_flag *flag_make(struct order_cluster *c, const struct order_cta *cta,
                                    uint64_t address)
{
    struct order_flag *f;
    if (c->flag_slots && c->flag_count >= FLAGS_MOST) {
        f = flag_slot(c->flags, c->flag_slots, cta, address);
        if (f->used) return f;
        cta = NULL;
        address = 0;
    }
    if (2 * (c->flag_count + 1) > c->flag_slots && !flags_grow(c)) return NULL;
    f = flag_slot(c->flags, c->flag_slots, cta, address);
    if (!f->used) {
        f->used = true;
        f->cta = cta;
        f->address = address;
        c->flag_count++;
    }
    return f;
}

static const struct order_flag *flag_find(const struct order_cluster *c,
                                          const struct order_cta *cta, uint64_t address)
{
    const struct order_flag *f;
    if (!c->flag_slots) return NULL;
    f = flag_slot(c->flags, c->flag_slots, cta, address);
    if (!f->used && c->flag_count >= FLAGS_MOST) f = flag_slot(c->flags, c->flag_slots, NULL, 0);
    return f->used ? f : NULL;
}

/*
 * PTX ISA "Release and acquire patterns": a release write, or a fence and then a strong write, hands
 * over; an acquire read, or a strong read and then a fence, takes. Scopes count as wide enough
 * (interpretation). `read` comes before `write` for one instruction that does both.
 */
static void flag_read(struct order *o, struct order_warp *w, const struct order_cta *cta,
                      uint64_t address, const struct insn *in)
{
    const struct order_flag *f = flag_find(w->cta->cluster, cta, address);
    if (!f) return;
    if (in->is.acquire)
        order_acquire(w, &f->released, in);
    else
        order_keep(o, stamp_join(&w->observed, &f->released));
}

static void flag_write(struct order *o, struct order_warp *w, const struct order_cta *cta,
                       uint64_t address, const struct insn *in)
{
    bool release = in->is.release;
    struct order_flag *f;
    if (!release && !w->fenced.known.count) return;
    f = flag_make(w->cta->cluster, cta, address);
    if (!f)
        order_exhausted(o, NULL);
    else if (release)
        order_release(w, &f->released, in);
    else
        order_keep(o, stamp_join(&f->released, &w->fenced));
}

void order_flags(struct order *o, struct order_warp *w, const struct event *e)
{
    const struct traits *is = &e->in->is;
    if (e->space == SPACE_GLOBAL && (is->acquire || is->release)) w->cta->cluster->talks = true;
    for (uint32_t m = e->addresses ? e->lanes : 1; m; m &= m - 1) {
        uint64_t address = e->addresses ? e->addresses[first_lane(m)] : e->address;
        const struct order_cta *cta =
            e->space == SPACE_SHARED && e->cta ? order_cta_of(e->cta) : NULL;
        if (cta) address &= SHARED_OFFSET_MASK;
        if (e->access & ACCESS_READ) flag_read(o, w, cta, address, e->in);
        if (e->access & ACCESS_WRITE) flag_write(o, w, cta, address, e->in);
    }
}
