/* Late visibility of global memory: late_global.h. Times are numbers of what is called here, from 1; 0 is never. */
#include "async/late_global.h"

#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 16,            /* bytes */
    PIECES_MOST = 1 << 16, /* stores to further ones are never late */
    PIECE_SLOTS = 2 * PIECES_MOST,
    WARPS_MOST = 1 << 20
};

struct late_piece {
    uint64_t address;                /* 0: not used */
    uint32_t time[PIECE], by[PIECE]; /* of each byte's last generic store */
    uint8_t before[PIECE];           /* what the other proxies still have */
};

struct late_global_warp {
    uint32_t passed;   /* it last came past what may have made others' stores known to it */
    uint32_t fenced;   /* its last fence.proxy.async */
    uint32_t released; /* its last fence.proxy.tensormap of the release form */
};

struct late_global {
    uint32_t now;
    /* Stores of before are covered, whoever made them: for the async proxy; for release forms of the other. */
    uint32_t covered, covered_maps;
    struct late_piece **pieces; /* [PIECE_SLOTS]: open addressing; NULL: none yet */
    uint32_t piece_count;
    struct late_global_warp *warps; /* [0] unused */
    uint32_t warp_count, warp_capacity;
};

bool late_global_wanted(const struct kernel *k)
{
    for (uint32_t i = 0; i < k->insn_count; i++) {
        const struct traits *is = &k->insns[i].is;
        if (is->engine == ENGINE_BULK && (is->moves == MOVES_IN || is->shape == SHAPE_BOX))
            return true;
    }
    return false;
}

struct late_global *late_global_new(void)
{
    return calloc(1, sizeof(struct late_global));
}

static void pieces_free(struct late_global *g)
{
    for (uint32_t i = 0; g->pieces && i < PIECE_SLOTS; i++) free(g->pieces[i]);
    free(g->pieces);
    g->pieces = NULL;
}

void late_global_free(struct late_global *g)
{
    if (!g) return;
    pieces_free(g);
    free(g->warps);
    free(g);
}

uint32_t late_global_warp(struct late_global *g)
{
    if (g->warp_count + 1 >= g->warp_capacity) {
        const uint32_t capacity = 2 * g->warp_capacity + 64;
        struct late_global_warp *grown =
            capacity > WARPS_MOST ? NULL : realloc(g->warps, capacity * sizeof *grown);
        if (!grown) { /* what this warp does could not be told from others': nothing is late now */
            pieces_free(g);
            g->piece_count = PIECES_MOST;
            return 0;
        }
        g->warps = grown;
        g->warp_capacity = capacity;
    }
    g->warps[++g->warp_count] = (struct late_global_warp){0};
    return g->warp_count;
}

/* ---- pieces of memory ---- */

/* The slot of that piece, or the free one where it would be. NULL: none has been kept. */
static struct late_piece **slot_of(const struct late_global *g, uint64_t address)
{
    uint32_t i = (uint32_t)(address / PIECE * 0x9E3779B97F4A7C15ULL >> 40) % PIECE_SLOTS;
    if (!g->pieces) return NULL;
    while (g->pieces[i] && g->pieces[i]->address != address) i = (i + 1) % PIECE_SLOTS;
    return &g->pieces[i];
}

static struct late_piece *piece_at(const struct late_global *g, uint64_t address)
{
    struct late_piece **slot = slot_of(g, address - address % PIECE);
    return slot ? *slot : NULL;
}

static struct late_piece *piece_kept(struct late_global *g, uint64_t address)
{
    struct late_piece **slot;
    if (!g->pieces) g->pieces = calloc(PIECE_SLOTS, sizeof(struct late_piece *));
    slot = slot_of(g, address - address % PIECE);
    if (!slot || *slot || g->piece_count == PIECES_MOST) return slot ? *slot : NULL;
    *slot = calloc(1, sizeof **slot);
    if (!*slot) return NULL;
    (*slot)->address = address - address % PIECE;
    g->piece_count++;
    return *slot;
}

static bool is_late(const struct late_global *g, const struct late_piece *p, uint32_t i)
{
    return p->time[i] > g->covered && p->time[i] > g->warps[p->by[i]].fenced;
}

static bool is_late_map(const struct late_global *g, const struct late_piece *p, uint32_t i,
                        uint32_t acquired)
{
    const uint32_t time = p->time[i];
    if (!time) return false;
    return acquired < time || (time > g->covered_maps && time > g->warps[p->by[i]].released);
}

void late_global_keep(struct late_global *g, uint32_t warp, uint64_t address, uint32_t size)
{
    g->now++;
    for (uint64_t at = address; warp && at < address + size; at++) {
        struct late_piece *p = piece_kept(g, at);
        const uint32_t i = (uint32_t)(at % PIECE);
        if (!p) return;
        if (!is_late(g, p, i)) p->before[i] = *(const uint8_t *)(uintptr_t)at;
        p->time[i] = g->now;
        p->by[i] = warp;
    }
}

void late_global_clear(struct late_global *g, uint64_t address, uint64_t size)
{
    for (uint64_t at = address; g->pieces && at < address + size; at++) {
        struct late_piece *p = piece_at(g, at);
        if (p) p->time[at % PIECE] = 0;
    }
}

/* ---- what makes them visible ---- */

static void raise_to(uint32_t *to, uint32_t time)
{
    if (*to < time) *to = time;
}

void late_global_passed(struct late_global *g, uint32_t warp)
{
    g->now++;
    if (warp) g->warps[warp].passed = g->now;
}

void late_global_fence(struct late_global *g, uint32_t warp)
{
    g->now++;
    if (!warp) return;
    g->warps[warp].fenced = g->now;
    raise_to(&g->covered, g->warps[warp].passed);
}

void late_global_release_map(struct late_global *g, uint32_t warp)
{
    g->now++;
    if (!warp) return;
    g->warps[warp].released = g->now;
    raise_to(&g->covered_maps, g->warps[warp].passed);
}

void late_global_acquire_map(struct late_global *g, uint32_t *acquired)
{
    *acquired = ++g->now;
}

/* ---- reads ---- */

bool late_global_read(struct late_global *g, uint64_t address, uint64_t size, uint8_t *bytes,
                      uint8_t *late, uint8_t why)
{
    bool any = false;
    for (uint64_t i = 0; g->pieces && i < size; i++) {
        const struct late_piece *p = piece_at(g, address + i);
        const uint32_t at = (uint32_t)((address + i) % PIECE);
        if (!p || !is_late(g, p, at)) continue;
        bytes[i] = p->before[at];
        late[i] = why;
        any = true;
    }
    return any;
}

bool late_global_read_map(struct late_global *g, uint32_t acquired, uint64_t address, uint32_t size,
                          uint8_t *bytes)
{
    bool any = false;
    for (uint32_t i = 0; g->pieces && i < size; i++) {
        const struct late_piece *p = piece_at(g, address + i);
        const uint32_t at = (uint32_t)((address + i) % PIECE);
        if (!p || !is_late_map(g, p, at, acquired)) continue;
        any |= bytes[i] != p->before[at];
        bytes[i] = p->before[at];
    }
    return any;
}
