/* The stacks of a warp's lanes (calls.h). */
#include "machine/calls.h"

#include <stdlib.h>

struct call_stack {
    struct {
        uint8_t *bytes;
        size_t used, capacity;
        uint32_t taken;
    } lane[WARP_LANES];
};

void calls_reset(struct call_stack *stack)
{
    for (uint32_t l = 0; stack && l < WARP_LANES; l++)
        stack->lane[l].used = stack->lane[l].taken = 0;
}

void calls_free(struct call_stack *stack)
{
    for (uint32_t l = 0; stack && l < WARP_LANES; l++) free(stack->lane[l].bytes);
    free(stack);
}

uint8_t *calls_push(struct warp *w, uint32_t lane, size_t size)
{
    struct call_stack *s = w->calls;
    size_t capacity;
    uint8_t *bytes;

    if (!s) s = w->calls = calloc(1, sizeof *s);
    if (!s) return NULL;
    capacity = s->lane[lane].capacity ? s->lane[lane].capacity : 256;
    while (capacity - s->lane[lane].used < size) capacity *= 2;
    if (capacity != s->lane[lane].capacity) {
        bytes = realloc(s->lane[lane].bytes, capacity);
        if (!bytes) return NULL;
        s->lane[lane].bytes = bytes;
        s->lane[lane].capacity = capacity;
    }
    s->lane[lane].used += size;
    return s->lane[lane].bytes + s->lane[lane].used - size;
}

const uint8_t *calls_top(const struct warp *w, uint32_t lane, size_t size)
{
    const struct call_stack *s = w->calls;

    if (!s || s->lane[lane].used < size) return NULL;
    return s->lane[lane].bytes + s->lane[lane].used - size;
}

const uint8_t *calls_pop(struct warp *w, uint32_t lane, size_t size)
{
    struct call_stack *s = w->calls;

    s->lane[lane].used -= size;
    return s->lane[lane].bytes + s->lane[lane].used;
}

uint32_t *calls_taken(struct warp *w, uint32_t lane)
{
    if (!w->calls) w->calls = calloc(1, sizeof *w->calls);
    return w->calls ? &w->calls->lane[lane].taken : NULL;
}
