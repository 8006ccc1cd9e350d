/*
 * Clusters, CTAs and warps: how many fit, how they start, how they are put away. A group keeps
 * finished clusters (all of one shape) and starts the next in the same memory, poisoned again.
 */
#include "machine/calls.h"
#include "machine/exec.h"
#include "machine/hooks.h"
#include "machine/registers.h"

#include <stddef.h>
#include <stdlib.h>

enum {
    POISON = 0xC5,
    BLOCK_ALIGN = 1024,   /* of the host copy of shared memory: as the window itself */
    LINE = 64,            /* of register files */
    REGISTER_GRAIN = 256, /* registers are dealt to warps in units of this */
    MAX_REGISTERS = 255
};

/* Clusters to use again; never more than the group's residency. */
struct machine_pool {
    uint32_t count;
    struct cluster *clusters[];
};

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static uint32_t product(const uint32_t v[3])
{
    return v[0] * v[1] * v[2];
}

static uint32_t warps_of(const struct launch *l)
{
    return (product(l->block) + WARP_LANES - 1) / WARP_LANES;
}

/* ---- what a launch needs, and what fits ---- */

uint32_t launch_cluster_size(const struct launch *l)
{
    return product(l->cluster);
}

uint32_t launch_cluster_count(const struct launch *l)
{
    return product(l->grid) / product(l->cluster);
}

uint32_t entry_registers(const struct ptx_entry *e, uint32_t regs_per_sm)
{
    uint32_t threads = product(e->reqntid), ctas = e->minnctapersm ? e->minnctapersm : 1, r;
    if (e->maxnreg) return e->maxnreg;
    if (!threads) threads = product(e->maxntid);
    if (!threads) return 0;
    r = (uint32_t)(regs_per_sm / ((uint64_t)threads * ctas) / 8 * 8);
    return r < MAX_REGISTERS ? r : MAX_REGISTERS;
}

uint32_t launch_registers(const struct launch *l)
{
    return entry_registers(l->kernel->entry, l->gpu->regs_per_sm);
}

uint32_t launch_quota(const struct launch *l)
{
    return (uint32_t)round_up(launch_registers(l), REGISTER_GRAIN / WARP_LANES);
}

uint32_t launch_dynamic_offset(const struct launch *l)
{
    return SHARED_RESERVED + l->kernel->entry->shared_bytes;
}

uint32_t launch_shared_bytes(const struct launch *l)
{
    return launch_dynamic_offset(l) + l->dynamic_shared;
}

uint32_t launch_residency(const struct launch *l)
{
    const struct gpu *gpu = l->gpu;
    uint32_t warps = warps_of(l), registers = launch_registers(l);
    uint32_t fit = gpu->ctas_per_sm, n;
    n = gpu->threads_per_sm / (warps * WARP_LANES);
    if (n < fit) fit = n;
    n = gpu->shared_per_sm / launch_shared_bytes(l);
    if (n < fit) fit = n;
    if (registers) {
        uint32_t of_warp = (uint32_t)round_up((size_t)registers * WARP_LANES, REGISTER_GRAIN);
        n = gpu->regs_per_sm / (of_warp * warps);
        if (n < fit) fit = n;
    }
    return fit ? fit : 1;
}

/* ---- memory of a cluster ---- */

static size_t regs_stride(const struct launch *l)
{
    return round_up(l->kernel->regs_bytes, LINE);
}

static size_t local_size(const struct launch *l)
{
    return round_up((size_t)WARP_LANES * l->kernel->entry->local_bytes, LINE);
}

static void cta_free(const struct machine_hooks *hooks, struct cta *c)
{
    if (!c) return;
    for (uint32_t i = 0; c->warps && i < c->warp_count; i++) {
        hooks->warp_free(c->warps[i].async);
        calls_free(c->warps[i].calls);
    }
    /* The first warp's pointers are the blocks that all share. */
    if (c->warps) {
        free(c->warps[0].bank[BANK_REGS]);
        free(c->warps[0].local);
    }
    free(c->warps);
    free(c->shared);
    hooks->mbars_free(c->mbars);
    free(c);
}

static void cluster_free(struct cluster *cl)
{
    const struct machine_hooks *hooks = cl->group->launch->hooks;
    for (uint32_t r = 0; r < cl->cta_count; r++) cta_free(hooks, cl->ctas[r]);
    free(cl);
}

static int cta_alloc_warps(const struct launch *l, struct cta *c)
{
    size_t regs = regs_stride(l), local = local_size(l);
    uint8_t *regs_block, *local_block = NULL;
    c->warps = calloc(c->warp_count, sizeof *c->warps);
    if (!c->warps) return -1;
    regs_block = aligned_alloc(LINE, round_up(regs * c->warp_count + LINE, LINE));
    c->warps[0].bank[BANK_REGS] = regs_block;
    if (local) {
        local_block = aligned_alloc(LINE, local * c->warp_count);
        c->warps[0].local = local_block;
    }
    if (!regs_block || (local && !local_block)) return -1;
    for (uint32_t i = 0; i < c->warp_count; i++) {
        struct warp *w = &c->warps[i];
        w->bank[BANK_REGS] = regs_block + i * regs;
        if (local) w->local = local_block + i * local;
        w->async = l->hooks->warp_new();
        if (!w->async) return -1;
    }
    return 0;
}

static struct cta *cta_alloc(const struct launch *l)
{
    struct cta *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->warp_count = warps_of(l);
    c->shared_bytes = launch_shared_bytes(l);
    c->dynamic_offset = launch_dynamic_offset(l);
    c->shared = aligned_alloc(BLOCK_ALIGN, round_up(c->shared_bytes, BLOCK_ALIGN));
    c->mbars = l->hooks->mbars_new(c->shared_bytes);
    if (!c->shared || !c->mbars || cta_alloc_warps(l, c)) {
        cta_free(l->hooks, c);
        return NULL;
    }
    return c;
}

static struct cluster *cluster_alloc(struct group *g)
{
    const struct launch *l = g->launch;
    struct cluster *cl = calloc(1, sizeof *cl);
    if (!cl) return NULL;
    cl->group = g;
    cl->cta_count = launch_cluster_size(l);
    for (uint32_t r = 0; r < cl->cta_count; r++) {
        struct cta *c = cta_alloc(l);
        if (!c) {
            cl->cta_count = r;
            cluster_free(cl);
            return NULL;
        }
        c->group = g;
        c->cluster = cl;
        c->rank = r;
        c->sm = &g->sms[r];
        cl->ctas[r] = c;
    }
    return cl;
}

/* ---- starting a warp ---- */

static uint32_t lanemask(uint32_t r, uint32_t lane)
{
    uint32_t eq = 1U << lane;
    switch (r) {
    case SR_LANEMASK_EQ: return eq;
    case SR_LANEMASK_LE: return eq | (eq - 1);
    case SR_LANEMASK_LT: return eq - 1;
    case SR_LANEMASK_GE: return ~(eq - 1);
    default: return ~(eq | (eq - 1));
    }
}

/* Dimension d of rank r in the cluster. */
static uint32_t rank_dim(const struct launch *l, uint32_t r, uint32_t d)
{
    const uint32_t *n = l->cluster;
    return d == 0 ? r % n[0] : d == 1 ? r / n[0] % n[1] : r / n[0] / n[1];
}

/* A special register that keeps its value for the warp's life; those of fill_tids excepted. */
static uint64_t special_value(const struct warp *w, uint32_t r, uint32_t lane)
{
    const struct cta *c = w->cta;
    const struct launch *l = c->group->launch;
#define DIMS(name, value_of_d)          \
    case SR_##name##_X:                 \
    case SR_##name##_Y:                 \
    case SR_##name##_Z: {               \
        uint32_t d = r - SR_##name##_X; \
        return value_of_d;              \
    }
    switch (r) {
        DIMS(NTID, l->block[d])
        DIMS(CTAID, c->id[d])
        DIMS(NCTAID, l->grid[d])
        DIMS(CLUSTERID, c->cluster->id[d])
        DIMS(NCLUSTERID, l->grid[d] / l->cluster[d])
        DIMS(CLUSTER_CTAID, rank_dim(l, c->rank, d))
        DIMS(CLUSTER_NCTAID, l->cluster[d])
    case SR_LANEID: return lane;
    case SR_WARPID: return w->id;
    case SR_NWARPID: return l->gpu->threads_per_sm / WARP_LANES;
    case SR_SMID: return c->sm->id;
    case SR_NSMID: return l->sm_count;
    case SR_GRIDID: return 1;
    case SR_LANEMASK_EQ:
    case SR_LANEMASK_LE:
    case SR_LANEMASK_LT:
    case SR_LANEMASK_GE:
    case SR_LANEMASK_GT: return lanemask(r, lane);
    case SR_IS_EXPLICIT_CLUSTER:
        return launch_cluster_size(l) > 1 || l->kernel->entry->explicit_cluster;
    case SR_CLUSTER_CTARANK: return c->rank;
    case SR_CLUSTER_NCTARANK: return c->cluster->cta_count;
    case SR_AGGR_SMEM_SIZE: return c->shared_bytes;
    case SR_TOTAL_SMEM_SIZE: return c->shared_bytes - SHARED_RESERVED;
    /* Interpretation, after cooperative_groups' headers: high and low half of the workspace. */
    case SR_ENVREG1: return l->grid_workspace >> 32;
    case SR_ENVREG2: return (uint32_t)l->grid_workspace;
    case SR_DYNAMIC_SMEM_SIZE: return l->dynamic_shared;
    case SR_RESERVED_END:
    case SR_RESERVED_CAP: return SHARED_RESERVED;
    case SR_RESERVED_0: return l->gpu->cc_major >= 10 ? 64 : 0; /* as ptxas puts it into code */
    case SR_RESERVED_1: return SHARED_SCRATCH;
    default: return 0; /* no graph launched by a device; the clocks, which no slot holds */
    }
#undef DIMS
}

static void spread(uint8_t *slot, uint32_t bytes, uint64_t value)
{
    uint64_t wide[WARP_LANES];
    uint32_t narrow[WARP_LANES];
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        wide[lane] = value;
        narrow[lane] = (uint32_t)value;
    }
    memcpy(slot, bytes == sizeof *wide ? (const void *)wide : narrow, (size_t)bytes * WARP_LANES);
}

/* %tid.x, y and z: lane by lane without a division. */
static void fill_tids(struct warp *w)
{
    const struct launch *l = w->cta->group->launch;
    const uint32_t *at = l->kernel->sreg_offset, *n = l->block, first = w->id * WARP_LANES;
    uint32_t id[3] = {first % n[0], first / n[0] % n[1], first / n[0] / n[1]};
    uint32_t value[3][WARP_LANES];
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        for (uint32_t d = 0; d < 3; d++) value[d][lane] = id[d];
        if (++id[0] < n[0]) continue;
        id[0] = 0;
        if (++id[1] < n[1]) continue;
        id[1] = 0;
        id[2]++;
    }
    for (uint32_t d = 0; d < 3; d++)
        if (at[SR_TID_X + d] != UINT32_MAX)
            memcpy(w->bank[BANK_REGS] + at[SR_TID_X + d], value[d], sizeof value[d]);
}

/* Lanes differ in it. */
static bool special_of_lane(uint32_t r)
{
    switch (r) {
    case SR_LANEID:
    case SR_LANEMASK_EQ:
    case SR_LANEMASK_LE:
    case SR_LANEMASK_LT:
    case SR_LANEMASK_GE:
    case SR_LANEMASK_GT: return true;
    default: return false;
    }
}

static void fill_specials(struct warp *w)
{
    const struct kernel *k = w->cta->group->launch->kernel;
    fill_tids(w);
    for (uint32_t r = 0; r < SR_COUNT; r++) {
        uint8_t *slot = w->bank[BANK_REGS] + k->sreg_offset[r];
        if (k->sreg_offset[r] == UINT32_MAX) continue;
        if (r == SR_TID_X || r == SR_TID_Y || r == SR_TID_Z) continue;
        if (r == SR_IS_EXPLICIT_CLUSTER) {
            uint32_t bits = special_value(w, r, 0) ? FULL_MASK : 0;
            memcpy(slot, &bits, sizeof bits);
            continue;
        }
        if (!special_of_lane(r)) {
            spread(slot, r == SR_GRIDID || r == SR_CURRENT_GRAPH_EXEC ? 8 : 4,
                   special_value(w, r, 0));
            continue;
        }
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            const uint32_t value = (uint32_t)special_value(w, r, lane);
            memcpy(slot + lane * sizeof value, &value, sizeof value);
        }
    }
}

static void fill_addresses(struct warp *w)
{
    const struct launch *l = w->cta->group->launch;
    for (uint32_t i = 0; i < l->kernel->addr_slot_count; i++) {
        const struct addr_slot *s = &l->kernel->addr_slots[i];
        uint64_t at = s->var->offset;
        switch (s->var->space) {
        case SPACE_SHARED:
            at += SHARED_RESERVED + ((uint64_t)w->cta->rank << SHARED_RANK_SHIFT);
            if (s->generic) at += SHARED_WINDOW;
            break;
        case SPACE_CONST: at += (uint64_t)(uintptr_t)l->consts; break;
        default: at += (uint64_t)(uintptr_t)l->globals; break;
        }
        spread(w->bank[BANK_REGS] + s->offset, s->bits / 8U, at + (uint64_t)s->addend);
    }
}

/* All of it but the fragments, which are large and of which a warp begins with one. */
static void warp_zero(struct warp *w)
{
    const size_t frags = offsetof(struct warp, frags), end = frags + sizeof w->frags;
    memset(w, 0, frags + sizeof w->frags[0]);
    memset((uint8_t *)w + end, 0, sizeof *w - end);
}

static void warp_start(struct cta *c, uint32_t id)
{
    struct group *g = c->group;
    const struct launch *l = g->launch;
    struct warp *w = &c->warps[id];
    uint32_t lanes = product(l->block) - id * WARP_LANES;
    uint8_t *const registers = w->bank[BANK_REGS], *const local = w->local;
    struct warp_async *const async = w->async;
    struct call_stack *const calls = w->calls;
    warp_zero(w);
    w->bank[BANK_REGS] = registers;
    w->async = async;
    w->calls = calls;
    w->local = local;
    w->cta = c;
    /* Handlers only read this bank; its type is shared with the mutable one. */
    memcpy(&w->bank[BANK_CONST], &l->kernel->consts, sizeof w->bank[BANK_CONST]);
    w->id = id;
    w->live = lanes >= WARP_LANES ? FULL_MASK : (1U << lanes) - 1;
    w->born = w->live;
    w->reg_quota = launch_quota(l);
    w->run_slot = NO_SLOT;
    w->frag_count = 1;
    w->frags[0].mask = w->live;
    w->frags[0].pc = l->kernel->entry->start;
    calls_reset(w->calls);
    l->hooks->warp_reset(w->async);
    memset(w->bank[BANK_REGS], POISON, l->kernel->regs_bytes);
    if (w->local) memset(w->local, POISON, local_size(l));
    fill_specials(w);
    fill_addresses(w);
    warp_ready(w);
    if (g->observer) {
        struct event e = {.kind = EV_WARP_START, .lanes = w->live, .warp = w, .cta = c};
        observe(g, &e);
    }
}

/* ---- starting and ending clusters ---- */

static void cta_start(struct cta *c)
{
    const struct launch *l = c->group->launch;
    for (uint32_t d = 0; d < 3; d++) {
        c->id[d] = c->cluster->id[d] * l->cluster[d] + rank_dim(l, c->rank, d);
    }
    c->linear = (c->id[2] * l->grid[1] + c->id[1]) * l->grid[0] + c->id[0];
    memset(c->barriers, 0, sizeof c->barriers);
    l->hooks->mbars_reset(c->mbars);
    memset(c->shared, POISON, c->shared_bytes);
    c->warps_live = c->warp_count;
    c->pool_free = 0;
    c->tmem_freed = 0;
    c->tmem_held = c->tmem_wanted = c->tmem_smallest = c->cta_group = 0;
    c->tmem_relinquished = false;
    c->in_flight = 0;
    for (uint32_t i = 0; i < c->warp_count; i++) warp_start(c, i);
}

static void cluster_start(struct group *g, struct cluster *cl)
{
    const struct launch *l = g->launch;
    uint32_t nx = l->grid[0] / l->cluster[0], ny = l->grid[1] / l->cluster[1];
    cl->linear = g->next_cluster;
    g->next_cluster += l->group_count;
    cl->id[0] = cl->linear % nx;
    cl->id[1] = cl->linear / nx % ny;
    cl->id[2] = cl->linear / nx / ny;
    cl->ctas_live = cl->cta_count;
    cl->arrived_threads = 0;
    cl->live_threads = cl->cta_count * product(l->block);
    cl->phase = 0;
    cl->cancel_failed = false;
    g->resident[g->resident_count++] = cl;
    for (uint32_t r = 0; r < cl->cta_count; r++) cta_start(cl->ctas[r]);
}

int group_fill(struct group *g)
{
    uint32_t total = launch_cluster_count(g->launch);
    while (g->resident_count < g->resident_limit && g->next_cluster < total) {
        struct cluster *cl = NULL;
        if (g->pool->count)
            cl = g->pool->clusters[--g->pool->count];
        else
            cl = cluster_alloc(g);
        if (!cl) return -1;
        cluster_start(g, cl);
    }
    return 0;
}

bool cluster_drained(const struct cluster *c)
{
    for (uint32_t r = 0; r < c->cta_count; r++) {
        if (c->ctas[r]->in_flight) return false;
    }
    return true;
}

void cluster_retire(struct group *g, uint32_t slot)
{
    struct cluster *c = g->resident[slot];
    for (uint32_t r = 0; r < c->cta_count; r++) {
        g->launch->hooks->cta_retire(c->ctas[r]);
    }
    /* In order: the scheduler's walk over residents does not depend on who ended first. */
    g->resident_count--;
    memmove(&g->resident[slot], &g->resident[slot + 1],
            (g->resident_count - slot) * sizeof(struct cluster *));
    g->pool->clusters[g->pool->count++] = c;
}

/* ---- a group ---- */

/* Appends to the group's observers; false for NULL. */
static bool watch(struct group *g, struct observer *o)
{
    struct observer **at = &g->observer;
    while (*at) at = &(*at)->next;
    *at = o;
    return o != NULL;
}

int group_open(struct group *g)
{
    const struct launch *l = g->launch;
    uint32_t size = launch_cluster_size(l);
    g->resident_limit = launch_residency(l);
    g->sm_count = size;
    g->sms = calloc(size, sizeof *g->sms);
    g->resident = calloc(g->resident_limit, sizeof(struct cluster *));
    g->runnable_capacity = g->resident_limit * size * warps_of(l);
    g->runnable = calloc(g->runnable_capacity, sizeof(struct warp *));
    g->pool = calloc(1, sizeof *g->pool + g->resident_limit * sizeof(struct cluster *));
    if (!g->sms || !g->resident || !g->runnable || !g->pool) return -1;
    for (uint32_t i = 0; i < size; i++) g->sms[i].id = g->index * size + i;
    for (struct watcher *w = l->watchers; w; w = w->next) {
        if (w->open && !watch(g, w->open(w, g))) return -1;
    }
    return 0;
}

void group_close(struct group *g)
{
    for (struct observer *o = g->observer, *next; o; o = next) {
        next = o->next;
        o->destroy(o);
    }
    if (g->heap) g->launch->hooks->group_close(g);
    for (uint32_t i = 0; i < g->resident_count; i++) cluster_free(g->resident[i]);
    for (uint32_t i = 0; g->pool && i < g->pool->count; i++) cluster_free(g->pool->clusters[i]);
    for (uint32_t i = 0; g->sms && i < g->sm_count; i++) free(g->sms[i].tmem);
    free(g->pool);
    free(g->idioms);
    free(g->printed);
    free(g->runnable);
    free(g->resident);
    free(g->sms);
}
