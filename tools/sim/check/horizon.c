/* What is known of other clusters (horizon.h): a tree by the digits of the cluster's number. */
#include "check/horizon.h"

#include <stdlib.h>

enum { DIGIT_BITS = 4, DIGITS = 1 << DIGIT_BITS };

/* level 0: the clock of one cluster; above, parts whose level is one less. */
struct horizon {
    uint32_t references, level;
    struct clock clock;
    struct horizon *part[]; /* DIGITS of them where level is not 0 */
};

struct horizon *horizon_keep(struct horizon *h)
{
    if (h) h->references++;
    return h;
}

void horizon_drop(struct horizon *h)
{
    if (!h || --h->references) return;
    for (uint32_t i = 0; h->level && i < DIGITS; i++) horizon_drop(h->part[i]);
    clock_free(&h->clock);
    free(h);
}

void horizon_set(struct horizon **into, struct horizon *from)
{
    struct horizon *old = *into;
    if (old == from) return;
    *into = horizon_keep(from);
    horizon_drop(old);
}

static struct horizon *make(uint32_t level)
{
    struct horizon *h = calloc(1, sizeof *h + (level ? DIGITS : 0) * sizeof(struct horizon *));
    if (!h) return NULL;
    h->references = 1;
    h->level = level;
    return h;
}

static struct horizon *join(struct horizon *a, struct horizon *b, bool *failed);

static struct horizon *join_clocks(struct horizon *a, struct horizon *b, bool *failed)
{
    struct horizon *h;
    if (clock_covers(&a->clock, &b->clock)) return horizon_keep(a);
    if (clock_covers(&b->clock, &a->clock)) return horizon_keep(b);
    h = make(0);
    if (h && clock_copy(&h->clock, &a->clock) && clock_join(&h->clock, &b->clock)) return h;
    horizon_drop(h);
    *failed = true;
    return NULL;
}

/* Where the result is like one of the two, it is that one: later joins with it end at the first look. */
static struct horizon *join_parts(struct horizon *a, struct horizon *b, bool *failed)
{
    struct horizon *h = make(a->level);
    bool like_a = true, like_b = true;
    if (!h) {
        *failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < DIGITS; i++) {
        h->part[i] = join(a->part[i], b->part[i], failed);
        like_a &= h->part[i] == a->part[i];
        like_b &= h->part[i] == b->part[i];
    }
    if (!*failed && !like_a && !like_b) return h;
    horizon_drop(h);
    return *failed ? NULL : horizon_keep(like_a ? a : b);
}

/* Of two of one level; a reference more to what it returns. */
static struct horizon *join(struct horizon *a, struct horizon *b, bool *failed)
{
    if (a == b || !b) return horizon_keep(a);
    if (!a) return horizon_keep(b);
    return a->level ? join_parts(a, b, failed) : join_clocks(a, b, failed);
}

/* Takes the reference over. NULL when there is no memory. */
static struct horizon *raise_to(struct horizon *h, uint32_t level)
{
    while (h && h->level < level) {
        struct horizon *above = make(h->level + 1);
        if (above)
            above->part[0] = h;
        else
            horizon_drop(h);
        h = above;
    }
    return h;
}

bool horizon_join(struct horizon **into, struct horizon *from)
{
    struct horizon *a = *into, *b = from, *h;
    const uint32_t level = a && b && a->level > b->level ? a->level : b ? b->level : 0;
    bool failed = false;
    if (!b || a == b) return true;
    if (!a) {
        *into = horizon_keep(b);
        return true;
    }
    a = raise_to(horizon_keep(a), level);
    b = raise_to(horizon_keep(b), level);
    h = a && b ? join(a, b, &failed) : NULL;
    horizon_drop(a);
    horizon_drop(b);
    if (!h) return false;
    horizon_drop(*into);
    *into = h;
    return true;
}

bool horizon_add(struct horizon **into, uint32_t cluster, const struct clock *known)
{
    struct horizon *h = make(0);
    bool done;
    if (!h || !clock_copy(&h->clock, known)) {
        horizon_drop(h);
        return false;
    }
    for (; h && cluster; cluster >>= DIGIT_BITS) {
        struct horizon *above = make(h->level + 1);
        if (above)
            above->part[cluster % DIGITS] = h;
        else
            horizon_drop(h);
        h = above;
    }
    done = h && horizon_join(into, h);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the reference of its own is still held */
    horizon_drop(h);
    return done;
}

const struct clock *horizon_of(const struct horizon *h, uint32_t cluster)
{
    if (!h || cluster >> DIGIT_BITS * h->level) return NULL;
    while (h && h->level) h = h->part[cluster >> DIGIT_BITS * (h->level - 1) & (DIGITS - 1)];
    return h ? &h->clock : NULL;
}
