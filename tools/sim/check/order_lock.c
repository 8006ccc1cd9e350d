/* Locks that are taken and given back (order_lock.h). */
#include "check/order_lock.h"

#include "machine/mem.h"

#include <stdlib.h>
#include <string.h>

enum { TAKEN_KEPT = WARP_LANES };

/* Words that lanes of the warp have taken, by address, and what they held before. */
struct order_taken {
    struct {
        const struct order_cta *cta;
        uint64_t address, found;
        bool used;
    } at[TAKEN_KEPT];
};

/* What the word holds now. Atomics are announced before they work, stores after. */
static bool value_of(const struct order_warp *w, struct lock_word word, uint64_t *value)
{
    const void *at = word.cta ? word.cta->cta->shared + word.address
                              : mem_peek(w->warp, first_lane(word.lanes), word.address);
    *value = 0;
    if (!at || word.size > sizeof *value) return false;
    memcpy(value, at, word.size);
    return true;
}

/* What the word holds behind the access. False: not known. */
static bool left_by(const struct order_warp *w, struct lock_word word, uint64_t held,
                    uint64_t *left)
{
    const uint64_t all = word.size < sizeof held ? (1ULL << 8 * word.size) - 1 : UINT64_MAX;
    const uint32_t lane = first_lane(word.lanes);
    const uint64_t first = arg_lane(w->warp, word.in->arg[2], lane) & all;
    *left = held;
    if (word.in->is.class == INSN_STORE) return true;
    if (!word.in->is.swaps) return false;
    if (!word.in->is.changes)
        *left = first;
    else if (held == first)
        *left = arg_lane(w->warp, word.in->arg[3], lane) & all;
    return true;
}

static uint32_t place_of(uint64_t address)
{
    return (uint32_t)(address * 0x9E3779B97F4A7C15ULL >> 40) % TAKEN_KEPT;
}

/* The warp has taken the word. */
static bool holds(const struct order_warp *w, struct lock_word word)
{
    const uint32_t i = place_of(word.address);
    return w->taken && w->taken->at[i].used && w->taken->at[i].address == word.address &&
           w->taken->at[i].cta == word.cta;
}

bool order_lock_take(struct order_warp *w, struct lock_word word, const struct lock_state *state)
{
    const uint32_t i = place_of(word.address);
    uint64_t held, left;
    if (!word.in->is.swaps || !(word.in->used & USE_STEERS) || !value_of(w, word, &held))
        return false;
    if (!left_by(w, word, held, &left) || left == held) return false;
    if (holds(w, word) && left == w->taken->at[i].found) return false; /* it is given back */
    if (!w->taken) w->taken = calloc(1, sizeof *w->taken);
    if (!w->taken) {
        order_exhausted(w->cta->cluster->order, NULL);
        return false;
    }
    w->taken->at[i].cta = word.cta;
    w->taken->at[i].address = word.address;
    w->taken->at[i].found = held;
    w->taken->at[i].used = true;
    return state && state->given_back && state->free == held;
}

void order_lock_give_back(struct order_warp *w, struct lock_word word, struct lock_state *state)
{
    const uint32_t i = place_of(word.address);
    uint64_t held, left;
    if (!state || !value_of(w, word, &held)) return;
    if (word.in->is.swaps && left_by(w, word, held, &left) && left == held) return; /* in vain */
    state->given_back = false;
    if (!holds(w, word)) return;
    /* Of other atomics the value is not known yet: the next one that takes the word compares it. */
    if (left_by(w, word, held, &left) && left != w->taken->at[i].found) return;
    state->locks = state->given_back = true;
    state->free = w->taken->at[i].found;
    w->taken->at[i].used = false;
}
