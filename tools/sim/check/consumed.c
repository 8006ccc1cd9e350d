/* Phases that waits have passed (consumed.h). */
#include "check/consumed.h"
#include "check/deadlock.h"

#include <stdlib.h>

/* The last phase of an mbarrier that some wait passed. */
struct consumed {
    const struct cta *cta; /* NULL: unused */
    uint32_t offset;
    uint64_t phases; /* number of the phase, plus 1; 0: none but perhaps the fresh barrier's */
    bool fresh;      /* the phase before the first was passed */
};

static struct consumed *consumed_at(struct consumed *table, size_t mask, const struct cta *cta,
                                    uint32_t offset)
{
    uint64_t h = ((uintptr_t)cta >> 6) * 0x9E3779B97F4A7C15ULL + offset * 0xD1B54A32D192ED03ULL;
    size_t i = (size_t)(h >> 32) & mask;
    while (table[i].cta && (table[i].cta != cta || table[i].offset != offset)) i = (i + 1) & mask;
    return &table[i];
}

static bool consumed_grow(struct consumed_table *c)
{
    size_t size = 2 * (c->mask + 1);
    struct consumed *grown = calloc(size, sizeof *grown);
    if (!grown) return false;
    for (size_t i = 0; i <= c->mask; i++) {
        const struct consumed *old = &c->entries[i];
        if (old->cta) *consumed_at(grown, size - 1, old->cta, old->offset) = *old;
    }
    free(c->entries);
    c->entries = grown;
    c->mask = size - 1;
    return true;
}

void consumed_event(struct consumed_table *c, const struct event *e)
{
    struct consumed *at = consumed_at(c->entries, c->mask, e->cta, e->key);
    if (!at->cta) {
        if (2 * ++c->count > c->mask) {
            if (!consumed_grow(c)) {
                c->exhausted = true;
                c->count--;
                return;
            }
            at = consumed_at(c->entries, c->mask, e->cta, e->key);
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

bool consumed_open(struct consumed_table *t)
{
    *t = (struct consumed_table){.mask = 255};
    t->entries = calloc(t->mask + 1, sizeof *t->entries);
    return t->entries != NULL;
}

void consumed_close(struct consumed_table *t)
{
    free(t->entries);
}

bool consumed_passed(const struct consumed_table *t, const struct cta *owner, uint32_t offset,
                     uint64_t phase)
{
    const struct consumed *at;
    if (t->exhausted) return true;
    at = consumed_at(t->entries, t->mask, owner, offset);
    return phase == FRESH_PHASE ? at->fresh : at->phases > phase;
}
