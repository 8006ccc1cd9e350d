/* Accesses of lanes, until all know of them: converged_ring.h. */
#include "check/converged_ring.h"

#include <stdlib.h>
#include <string.h>

/* What a volatile access brings counts as strong only where something uses it. */
bool event_is_strong(const struct event *e)
{
    return event_is_marked(e) && !(e->in->is.by_volatile && !e->in->used);
}

bool event_is_marked(const struct event *e)
{
    return e->strong || e->in->is.strong;
}

uint64_t lane_address(const struct lane_access *a, uint32_t lane)
{
    if (a->shape == SPAN_APART) return a->address[lane];
    return a->shape == SPAN_ROW ? a->low + (uint64_t)lane * a->size : a->low;
}

/* Copies in flight: that lanes meet says nothing of these. */
bool access_in_flight(const struct lane_access *a)
{
    return a->copy && (a->lanes & ~(a->waited | a->told_of)) != 0;
}

/* All is known to all lanes; `really`: to another warp, which has the place now. */
void ring_clear(struct ring *r, bool really)
{
    uint32_t kept = 0;
    for (int i = 0; i < 2; i++)
        if (r->lost[i]) r->lost[i]->lanes[0] = r->lost[i]->lanes[1] = 0;
    for (uint32_t i = 0; !really && i < r->count; i++) {
        if (!access_in_flight(&r->at[i])) continue;
        if (kept != i) r->at[kept] = r->at[i];
        kept++;
    }
    r->count = kept;
    r->next = r->capacity ? kept % r->capacity : 0;
}

static void lose(struct order *o, struct ring *r, const struct lane_access *a)
{
    const int where = a->space == SPACE_GLOBAL;
    struct lost *l = r->lost[a->strong];
    if (a->over) return;
    if (access_in_flight(a)) order_sampled(o, SAMPLED_LANES, a->in);
    if (!l) l = r->lost[a->strong] = calloc(1, sizeof *l);
    order_keep(o, l != NULL);
    for (uint32_t rest = l ? a->lanes : 0; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        const uint64_t low = lane_address(a, lane), high = low + a->size;
        const bool first = !(l->lanes[where] >> lane & 1);
        if (first || low < l->low[where][lane]) l->low[where][lane] = low;
        if (first || high > l->high[where][lane]) l->high[where][lane] = high;
        l->lanes[where] |= 1U << lane;
    }
}

/* Room for one access more; NULL: no memory. */
struct lane_access *ring_next(struct order *o, struct ring *r)
{
    struct lane_access *a;
    if (r->count == r->capacity && r->capacity < KEPT_MOST) {
        const uint32_t capacity = r->capacity ? 2 * r->capacity : KEPT_FIRST;
        struct lane_access *grown = realloc(r->at, capacity * sizeof *grown);
        order_keep(o, grown != NULL);
        if (!grown) return NULL;
        r->at = grown;
        r->capacity = capacity;
        r->next = r->count; /* whatever is full begins at 0 */
    }
    a = &r->at[r->next];
    r->next = (r->next + 1) % r->capacity;
    if (r->count < r->capacity)
        r->count++;
    else
        lose(o, r, a);
    return a;
}

/* Before the first meeting each lane knows its own part only, and nothing has left the warp. */
static void begin_telling(struct lane_access *a)
{
    if (a->told) return;
    for (uint32_t l = 0; l < WARP_LANES; l++) a->knows[l] = 1U << l;
    a->knows[WARP_LANES] = 0;
    a->told = true;
}

static bool known_to_all(const struct lane_access *a, uint32_t all)
{
    uint32_t known = all;
    for (uint32_t rest = all; rest; rest &= rest - 1) known &= a->knows[first_lane(rest)];
    return known == all;
}

/* Each of the lanes now knows what any of them knew; `ways`: and those outside. */
static void tell_lanes(struct lane_access *a, uint32_t lanes, uint32_t all, int ways)
{
    uint32_t known;
    begin_telling(a);
    known = ways & TAKES ? a->knows[WARP_LANES] : 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) known |= a->knows[first_lane(rest)];
    for (uint32_t rest = lanes; rest; rest &= rest - 1) a->knows[first_lane(rest)] = known;
    if (ways & GIVES) a->knows[WARP_LANES] |= known;
    a->over = known_to_all(a, all);
}

/* Each of the lanes learns what has left the warp, or lets it know, and nothing of the others. */
void ring_each(struct ring *r, uint32_t lanes, uint32_t all, int ways)
{
    for (uint32_t i = 0; i < r->count; i++) {
        struct lane_access *a = &r->at[i];
        uint32_t outside;
        if (a->over || access_in_flight(a) || (!a->told && !(ways & GIVES))) continue;
        begin_telling(a);
        outside = a->knows[WARP_LANES];
        for (uint32_t rest = ways & GIVES ? lanes : 0; rest; rest &= rest - 1)
            outside |= a->knows[first_lane(rest)];
        a->knows[WARP_LANES] = outside;
        for (uint32_t rest = ways & TAKES ? lanes : 0; rest; rest &= rest - 1)
            a->knows[first_lane(rest)] |= outside;
        a->over = known_to_all(a, all);
    }
}

/* bar.warp.sync orders the lanes that it names. Whatever else they meet at may lead to the other lanes
 * too. Lanes that have exited come to no meeting, even where its mask names them: nothing says that
 * what they did is over. */
void ring_meet(struct ring *r, uint32_t lanes, uint32_t all, int ways)
{
    bool over = true;
    if ((all & ~lanes) == 0) {
        ring_clear(r, false);
        return;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        if (!r->at[i].over && !access_in_flight(&r->at[i])) tell_lanes(&r->at[i], lanes, all, ways);
        over &= r->at[i].over;
    }
    for (int i = 0; i < 2; i++)
        over &= !r->lost[i] || !(r->lost[i]->lanes[0] | r->lost[i]->lanes[1]);
    if (over) ring_clear(r, false);
}

void ring_free(struct ring *r)
{
    free(r->at);
    free(r->lost[0]);
    free(r->lost[1]);
}

/* Another lane may get the same bytes: what was done to them is no matter any more. */
void ring_forget(struct ring *r, uint64_t low, uint64_t high)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->at[i].space == SPACE_GLOBAL && low < r->at[i].high && high > r->at[i].low)
            r->at[i].over = true;
}

/* These lanes run together again, and with those that ran with any of them. */
void ring_step(struct ring *r, uint32_t lanes)
{
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t *sets = r->at[i].stepped, before[STEPPED_SETS], joined = lanes, kept = 1;
        if (!(lanes & ~sets[0])) continue;
        memcpy(before, sets, sizeof before);
        for (uint32_t n = 0; n < STEPPED_SETS; n++)
            if (before[n] & lanes) joined |= before[n];
        memset(sets, 0, sizeof before);
        sets[0] = joined;
        for (uint32_t n = 0; n < STEPPED_SETS && kept < STEPPED_SETS; n++)
            if (before[n] & ~joined) sets[kept++] = before[n];
    }
}
