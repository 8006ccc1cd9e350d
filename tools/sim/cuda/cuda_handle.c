/*
 * Every handle that programs hold, in one open-addressing table: a stale, foreign or mistyped
 * handle is told from a live one without reading through it.
 */
#include "cuda/driver.h"

#include <stdlib.h>

enum slot_state { SLOT_FREE, SLOT_LIVE, SLOT_DROPPED };

struct slot {
    const void *key;
    void *object;
    const struct CUctx_st *owner;
    uint8_t kind, state;
};

static struct {
    struct slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t used;     /* live and dropped */
    size_t live;
} table;

/* The slot of `key`, or the free one where the search for it ends. */
static struct slot *find_slot(struct slot *slots, size_t capacity, const void *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15ULL;
    size_t i = (size_t)(hash >> 32) & (capacity - 1);

    while (slots[i].state != SLOT_FREE && (slots[i].key != key || slots[i].state != SLOT_LIVE))
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

/* Doubles the table when live entries need it, else only sweeps the dropped ones out. */
static bool grow(void)
{
    size_t capacity = table.live * 4 < table.capacity ? table.capacity : table.capacity * 2;
    struct slot *slots;

    if (!capacity) capacity = 256;
    slots = calloc(capacity, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < table.capacity; i++)
        if (table.slots[i].state == SLOT_LIVE)
            *find_slot(slots, capacity, table.slots[i].key) = table.slots[i];
    free(table.slots);
    table.slots = slots;
    table.capacity = capacity;
    table.used = table.live;
    return true;
}

int handle_add(const void *key, enum handle_kind kind, void *object, struct CUctx_st *owner)
{
    struct slot *slot;

    if (table.used * 2 >= table.capacity && !grow()) return HEWN_CU_OUT_OF_MEMORY;
    slot = find_slot(table.slots, table.capacity, key);
    *slot = (struct slot){key, object, owner, (uint8_t)kind, SLOT_LIVE};
    table.used++;
    table.live++;
    return 0;
}

void *handle_get(const void *key, enum handle_kind kind)
{
    struct slot *slot;

    if (!table.capacity) return NULL;
    slot = find_slot(table.slots, table.capacity, key);
    return slot->state == SLOT_LIVE && slot->kind == kind ? slot->object : NULL;
}

void handle_drop(const void *key)
{
    struct slot *slot;

    if (!table.capacity) return;
    slot = find_slot(table.slots, table.capacity, key);
    if (slot->state != SLOT_LIVE) return;
    slot->state = SLOT_DROPPED;
    table.live--;
}

void *handle_next(enum handle_kind kind, const struct CUctx_st *owner, size_t *cursor)
{
    while (*cursor < table.capacity) {
        const struct slot *slot = &table.slots[(*cursor)++];
        if (slot->state == SLOT_LIVE && slot->kind == kind && (!owner || slot->owner == owner))
            return slot->object;
    }
    return NULL;
}

void handle_free_all(void)
{
    free(table.slots);
    memset(&table, 0, sizeof table);
}
