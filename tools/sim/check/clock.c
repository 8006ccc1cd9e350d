/* Vector clocks (clock.h). */
#include "check/horizon.h"

#include <stdlib.h>
#include <string.h>

enum { CLOCK_FIRST = 32 };

static bool reserve(struct clock *c, uint32_t count)
{
    uint32_t capacity = c->capacity ? c->capacity : CLOCK_FIRST;
    uint32_t *at;
    if (count <= c->capacity) return true;
    while (capacity < count) capacity *= 2;
    at = realloc(c->at, capacity * sizeof *at);
    if (!at) return false;
    c->at = at;
    c->capacity = capacity;
    return true;
}

/* Makes entries up to `count` addressable. */
static bool extend(struct clock *c, uint32_t count)
{
    if (count <= c->count) return true;
    if (!reserve(c, count)) return false;
    memset(c->at + c->count, 0, (count - c->count) * sizeof *c->at);
    c->count = count;
    return true;
}

bool clock_raise(struct clock *c, uint32_t component, uint32_t number)
{
    if (!extend(c, component + 1)) return false;
    if (c->at[component] < number) c->at[component] = number;
    return true;
}

bool clock_join(struct clock *into, const struct clock *from)
{
    uint32_t *restrict a;
    const uint32_t *restrict b = from->at;
    if (into == from || !from->count) return true;
    if (!extend(into, from->count)) return false;
    a = into->at;
    for (uint32_t i = 0; i < from->count; i++) a[i] = a[i] < b[i] ? b[i] : a[i];
    return true;
}

bool clock_join_met(struct clock *into, const struct clock *a, const struct clock *b)
{
    const uint32_t count = a->count < b->count ? a->count : b->count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t least = a->at[i] < b->at[i] ? a->at[i] : b->at[i];
        if (least && !clock_raise(into, i, least)) return false;
    }
    return true;
}

bool clock_copy(struct clock *to, const struct clock *from)
{
    if (to == from) return true;
    if (!reserve(to, from->count)) return false;
    if (from->count) memcpy(to->at, from->at, from->count * sizeof *to->at);
    to->count = from->count;
    return true;
}

bool clock_covers(const struct clock *a, const struct clock *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        if (clock_get(a, i) < b->at[i]) return false;
    }
    return true;
}

void clock_free(struct clock *c)
{
    if (c->at) free(c->at);
    *c = (struct clock){0};
}

bool stamp_raise_generic(struct stamp *s, uint32_t component, uint32_t number)
{
    return clock_raise(&s->known, component, number) && clock_raise(&s->caused, component, number);
}

bool stamp_raise(struct stamp *s, uint32_t component, uint32_t number)
{
    return stamp_raise_generic(s, component, number) && clock_raise(&s->bridged, component, number);
}

bool stamp_join(struct stamp *into, const struct stamp *from)
{
    return clock_join(&into->known, &from->known) && clock_join(&into->bridged, &from->bridged) &&
           clock_join(&into->caused, &from->caused) && clock_join(&into->narrow, &from->narrow) &&
           clock_join(&into->narrow_bridged, &from->narrow_bridged) &&
           clock_join(&into->bridged_shared, &from->bridged_shared) &&
           clock_join(&into->bridged_global, &from->bridged_global) &&
           clock_join(&into->fenced, &from->fenced) && horizon_join(&into->abroad, from->abroad) &&
           horizon_join(&into->abroad_bridged, from->abroad_bridged) &&
           horizon_join(&into->abroad_fenced, from->abroad_fenced) &&
           horizon_join(&into->abroad_observed, from->abroad_observed) &&
           horizon_join(&into->abroad_seen, from->abroad_seen) &&
           horizon_join(&into->locked, from->locked);
}

bool stamp_copy(struct stamp *to, const struct stamp *from)
{
    horizon_set(&to->abroad, from->abroad);
    horizon_set(&to->abroad_bridged, from->abroad_bridged);
    horizon_set(&to->abroad_fenced, from->abroad_fenced);
    horizon_set(&to->abroad_observed, from->abroad_observed);
    horizon_set(&to->abroad_seen, from->abroad_seen);
    horizon_set(&to->locked, from->locked);
    return clock_copy(&to->known, &from->known) && clock_copy(&to->bridged, &from->bridged) &&
           clock_copy(&to->caused, &from->caused) && clock_copy(&to->narrow, &from->narrow) &&
           clock_copy(&to->narrow_bridged, &from->narrow_bridged) &&
           clock_copy(&to->bridged_shared, &from->bridged_shared) &&
           clock_copy(&to->bridged_global, &from->bridged_global) &&
           clock_copy(&to->fenced, &from->fenced);
}

bool stamp_fence(struct stamp *s)
{
    horizon_set(&s->abroad_fenced, s->abroad);
    return clock_copy(&s->fenced, &s->known);
}

bool stamp_join_fenced(struct stamp *into, const struct stamp *from)
{
    return clock_join(&into->known, &from->fenced) && clock_join(&into->caused, &from->fenced) &&
           clock_join_met(&into->bridged, &from->bridged, &from->fenced) &&
           clock_join_met(&into->bridged_shared, &from->bridged_shared, &from->fenced) &&
           clock_join_met(&into->bridged_global, &from->bridged_global, &from->fenced) &&
           horizon_join(&into->abroad, from->abroad_fenced);
}

static void forget(struct horizon **h)
{
    if (*h) horizon_set(h, NULL);
}

void stamp_clear(struct stamp *s)
{
    clock_clear(&s->known);
    clock_clear(&s->bridged);
    clock_clear(&s->caused);
    clock_clear(&s->narrow);
    clock_clear(&s->narrow_bridged);
    clock_clear(&s->bridged_shared);
    clock_clear(&s->bridged_global);
    clock_clear(&s->fenced);
    forget(&s->abroad);
    forget(&s->abroad_bridged);
    forget(&s->abroad_fenced);
    forget(&s->abroad_observed);
    forget(&s->abroad_seen);
    forget(&s->locked);
}

void stamp_free(struct stamp *s)
{
    stamp_clear(s);
    clock_free(&s->known);
    clock_free(&s->bridged);
    clock_free(&s->caused);
    clock_free(&s->narrow);
    clock_free(&s->narrow_bridged);
    clock_free(&s->bridged_shared);
    clock_free(&s->bridged_global);
    clock_free(&s->fenced);
}
