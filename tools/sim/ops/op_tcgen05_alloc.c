/*
 * tcgen05.alloc, dealloc, relinquish_alloc_permit: PTX ISA "Tensor Memory Allocation and Management
 * Instructions". Columns go in chunks of 32, first fit on the CTA's SM; a pair takes the same columns
 * on both SMs. Interpretation: the halves of a paired dealloc do not wait for each other.
 *
 * Who is first. Hardware starts the clusters that share SMs one after the other, so an older one's
 * allocations have long been made when a younger one asks. Here they start together; a CTA's first
 * request therefore gives way, for a while, to an older CTA on the SM that has made none yet, and any
 * request to an older one's that waits and could be served [interpretation]. CTAs that hold columns
 * and wait for each other still do.
 */
#include "machine/mem.h"
#include "ops/tcgen05.h"

#include <stdlib.h>

/* insn.flags: cta_group. */

/* ---- chunks ---- */

static bool run_is_free(const struct sm *sm, uint32_t first, uint32_t chunks)
{
    for (uint32_t c = first; c < first + chunks; c++)
        if (sm->tmem_owner[c]) return false;
    return true;
}

/* The lowest run of chunks that is free on every SM of the pair, or TMEM_CHUNKS. */
static uint32_t find_run(const struct cta *cta, uint32_t cta_group, uint32_t chunks)
{
    for (uint32_t first = 0; first + chunks <= TMEM_CHUNKS; first++) {
        bool good = true;
        for (uint32_t i = 0; i < cta_group; i++)
            good = good && run_is_free(tcgen05_cta(cta, cta_group, i)->sm, first, chunks);
        if (good) return first;
    }
    return TMEM_CHUNKS;
}

/* False when host memory is exhausted. Fresh tensor memory holds 0xC5 bytes. */
static bool take_run(struct cta *cta, uint32_t first, uint32_t chunks)
{
    struct sm *sm = cta->sm;
    if (!sm->tmem) {
        const size_t size = sizeof *sm->tmem * TMEM_COLUMNS;
        sm->tmem = malloc(size);
        if (!sm->tmem) return false;
        memset(sm->tmem, 0xC5, size);
    }
    for (uint32_t c = first; c < first + chunks; c++) {
        sm->tmem_owner[c] = cta;
        cta->tmem_freed &= ~(1U << c);
    }
    sm->tmem_base[first] = 1;
    sm->tmem_chunks[first] = (uint8_t)chunks;
    cta->tmem_held += chunks * TMEM_CHUNK;
    return true;
}

static void publish(struct warp *w, const struct insn *in, enum event_kind kind, uint32_t first,
                    uint32_t columns)
{
    w->cta->group->progress++;
    observe(w->cta->group, &(struct event){.kind = (uint8_t)kind,
                                           .lanes = FULL_MASK,
                                           .warp = w,
                                           .in = in,
                                           .cta = w->cta,
                                           .address = first,
                                           .size = columns});
}

/* ---- rules ---- */

/* A whole warp, with one number of columns. */
static enum step check_warp(struct warp *w, const struct insn *in, uint32_t mask, struct arg count,
                            enum finding_kind kind)
{
    const uint64_t columns = arg_lane(w, count, 0);
    if (mask != FULL_MASK)
        return sim_fault(w, in, first_lane(~mask), 715, FIND_COLLECTIVE_PARTIAL, CAUSE_NONE, "",
                         "all 32 lanes of the warp must execute this; mask is 0x%08x", mask);
    for (uint32_t lane = 1; !count.sink && lane < WARP_LANES; lane++)
        if (arg_lane(w, count, lane) != columns)
            return sim_fault(w, in, lane, 719, kind, CAUSE_NONE, "",
                             "lane %u gives %llu columns, lane 0 gives %llu", lane,
                             (unsigned long long)arg_lane(w, count, lane),
                             (unsigned long long)columns);
    if (!count.sink &&
        (columns < TMEM_CHUNK || columns > TMEM_COLUMNS || (columns & (columns - 1))))
        return sim_fault(w, in, NO_LANE, 719, kind, CAUSE_NONE, "",
                         "%llu columns: the number must be a power of two from %u to %u",
                         (unsigned long long)columns, (unsigned)TMEM_CHUNK, (unsigned)TMEM_COLUMNS);
    return STEP_NEXT;
}

static enum step check_alloc(struct warp *w, const struct insn *in, uint32_t columns)
{
    const struct cta *cta = w->cta;
    if (cta->tmem_relinquished)
        return sim_fault(w, in, NO_LANE, 719, FIND_TMEM_ALLOC, CAUSE_NONE, "",
                         "tcgen05.alloc after this CTA gave up its permit "
                         "(tcgen05.relinquish_alloc_permit)");
    if (cta->tmem_smallest && columns > cta->tmem_smallest)
        return sim_fault(w, in, NO_LANE, 719, FIND_TMEM_ALLOC, CAUSE_NONE, "",
                         "%u columns after an allocation of %u: later allocations of a CTA may not "
                         "be larger",
                         columns, cta->tmem_smallest);
    return STEP_NEXT;
}

/* ---- alloc ---- */

/* The address goes to shared memory, as a weak store by one thread. */
static enum step deliver(struct warp *w, const struct insn *in, uint32_t first_chunk,
                         uint32_t columns)
{
    struct cta *cta = w->cta;
    const uint64_t address = arg_lane(w, in->arg[0], 0) + (uint64_t)in->imm[0];
    const uint32_t value = first_chunk * TMEM_CHUNK;
    const bool narrow = in->arg[0].bits == 32;
    void *to = mem_at(w, in, 0, (enum ptx_space)in->space, narrow ? (uint32_t)address : address, 4,
                      4, ACCESS_WRITE, false);
    if (!to) return STEP_FAULT;
    memcpy(to, &value, sizeof value);
    cta->tmem_smallest = columns;
    cta->tmem_wanted = 0;
    observe(cta->group, &(struct event){.kind = EV_ACCESS,
                                        .space = SPACE_SHARED,
                                        .access = ACCESS_WRITE,
                                        .lanes = 1,
                                        .warp = w,
                                        .in = in,
                                        .cta = cta,
                                        .address = address,
                                        .size = sizeof value});
    publish(w, in, EV_TMEM_ALLOC, value, columns);
    return STEP_NEXT;
}

/* Cycles for which a first request gives way to older CTAs that have not asked yet, and between
 * looks: longer than the prologue of a full SM, instruction by instruction. */
enum { GIVE_WAY = 1 << 20, GIVE_WAY_LOOK = 1 << 13 };

/* An older CTA that shares the SM of `cta`, from resident cluster `i` on; NULL: none. */
static const struct cta *older_cta(const struct cta *cta, uint32_t *i)
{
    const struct group *g = cta->group;
    while (*i < g->resident_count) {
        const struct cluster *cl = g->resident[(*i)++];
        if (cl->linear < cta->cluster->linear && cl->ctas[cta->rank]->warps_live)
            return cl->ctas[cta->rank];
    }
    return NULL;
}

/* An older CTA waits for columns that are free. */
static bool older_waits(const struct cta *cta, uint32_t cta_group)
{
    uint32_t i = 0;
    for (const struct cta *o; (o = older_cta(cta, &i)) != NULL;)
        if (o->tmem_wanted && find_run(o, cta_group, o->tmem_wanted / TMEM_CHUNK) != TMEM_CHUNKS)
            return true;
    return false;
}

/* An older CTA has not asked for columns yet, and may. */
static bool older_to_come(const struct cta *cta)
{
    uint32_t i = 0;
    for (const struct cta *o; (o = older_cta(cta, &i)) != NULL;)
        if (!o->tmem_smallest && !o->tmem_wanted && !o->tmem_relinquished) return true;
    return false;
}

/* STEP_NEXT: it is this CTA's turn. */
static enum step take_turn(struct warp *w, const struct insn *in, uint32_t columns)
{
    struct cta *cta = w->cta;
    const struct wait *wait = &warp_frag(w)->wait;
    uint64_t now = cta->group->now, since = wait->kind == WAIT_NONE ? now : wait->since;
    if (!cta->tmem_smallest && !cta->tmem_wanted && now - since < GIVE_WAY && older_to_come(cta))
        return sim_block(w, WAIT_SLEEP, cta, 0, now + GIVE_WAY_LOOK);
    cta->tmem_wanted = columns;
    if (older_waits(cta, in->flags)) return sim_block(w, WAIT_TMEM_ALLOC, cta, 0, columns);
    return STEP_NEXT;
}

static enum step alloc_single(struct warp *w, const struct insn *in, uint32_t columns)
{
    const uint32_t first = find_run(w->cta, 1, columns / TMEM_CHUNK);
    if (first == TMEM_CHUNKS) return sim_block(w, WAIT_TMEM_ALLOC, w->cta, 0, columns);
    if (!take_run(w->cta, first, columns / TMEM_CHUNK)) return tcgen05_no_memory(w, in);
    w->cta->tmem_wanted = 0;
    sim_wake_all(w->cta->group, WAIT_TMEM_ALLOC); /* who gave way may be next */
    return deliver(w, in, first, columns);
}

/*
 * One warp of each CTA comes; whoever finds the other there, and columns free on both SMs, takes them
 * for both. tmem_pair of a CTA records its half: who asks for how much, and what it was given.
 */
static enum step alloc_pair(struct warp *w, const struct insn *in, uint32_t columns)
{
    struct cta *cta = w->cta, *peer = cta->cluster->ctas[cta->rank ^ 1U];
    struct tmem_pair *own = &cta->tmem_pair, *other = &peer->tmem_pair;
    if (own->granted && own->warp == w) {
        const uint32_t first = own->first;
        *own = (struct tmem_pair){0};
        sim_wake_all(cta->group, WAIT_TMEM_ALLOC); /* another warp may be next */
        return deliver(w, in, first, columns);
    }
    if (own->warp && own->warp != w) return sim_block(w, WAIT_TMEM_ALLOC, cta, 0, columns);
    if (!own->warp) {
        *own = (struct tmem_pair){.warp = w, .columns = columns};
        cta->group->progress++;
    }
    if (!other->warp || other->granted) return sim_block(w, WAIT_TMEM_ALLOC, cta, 0, columns);
    if (other->columns != columns)
        return sim_fault(
            w, in, NO_LANE, 719, FIND_TMEM_ALLOC, CAUSE_NONE, "",
            "the CTAs of the pair ask for different numbers of columns: CTA %u for %u, "
            "CTA %u for %u",
            cta->rank, columns, peer->rank, other->columns);
    const uint32_t first = find_run(cta, 2, columns / TMEM_CHUNK);
    if (first == TMEM_CHUNKS) return sim_block(w, WAIT_TMEM_ALLOC, cta, 0, columns);
    if (!take_run(cta, first, columns / TMEM_CHUNK) || !take_run(peer, first, columns / TMEM_CHUNK))
        return tcgen05_no_memory(w, in);
    cta->tmem_wanted = peer->tmem_wanted = 0;
    other->granted = true;
    other->first = first;
    *own = (struct tmem_pair){0};
    sim_wake_all(cta->group, WAIT_TMEM_ALLOC);
    return deliver(w, in, first, columns);
}

static enum step exec_alloc(struct warp *w, const struct insn *in, uint32_t mask)
{
    if (tcgen05_enter(w, in, NO_LANE, in->flags) == STEP_FAULT ||
        check_warp(w, in, mask, in->arg[1], FIND_TMEM_ALLOC) == STEP_FAULT)
        return STEP_FAULT;
    const uint32_t columns = (uint32_t)arg_lane(w, in->arg[1], 0);
    struct cta *cta = w->cta;
    if (check_alloc(w, in, columns) == STEP_FAULT) return STEP_FAULT;
    if (!(cta->tmem_pair.granted && cta->tmem_pair.warp == w)) {
        enum step step = take_turn(w, in, columns);
        if (step != STEP_NEXT) return step;
    }
    return in->flags == 2 ? alloc_pair(w, in, columns) : alloc_single(w, in, columns);
}

int bind_tcgen05_alloc(struct decoder *dc, struct insn *out)
{
    out->flags = (uint16_t)tcgen05_bind_group(dc, 0);
    out->space = mod_has(dc, "shared::cta") ? SPACE_SHARED : SPACE_NONE;
    dc->kernel->uses_tmem = true;
    out->fn = exec_alloc;
    return 0;
}

/* ---- dealloc, relinquish ---- */

static enum step exec_dealloc(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct cta *cta = w->cta;
    struct sm *sm = cta->sm;
    char object[96];
    if (tcgen05_enter(w, in, NO_LANE, in->flags) == STEP_FAULT ||
        check_warp(w, in, mask, in->arg[1], FIND_TMEM_DEALLOC) == STEP_FAULT)
        return STEP_FAULT;
    const uint32_t address = (uint32_t)arg_lane(w, in->arg[0], 0);
    const uint32_t columns = (uint32_t)arg_lane(w, in->arg[1], 0), chunk = address / TMEM_CHUNK;
    const bool known = address % TMEM_CHUNK == 0 && chunk < TMEM_CHUNKS &&
                       sm->tmem_owner[chunk] == cta && sm->tmem_base[chunk];
    (void)name_columns(cta->group->launch->kernel, tmem_column(address), columns, object,
                       sizeof object);
    if (!known)
        return sim_fault(w, in, NO_LANE, 719, FIND_TMEM_DEALLOC, CAUSE_NONE, object,
                         "0x%08x is no address that tcgen05.alloc gave this CTA and that is still "
                         "allocated",
                         address);
    if (sm->tmem_chunks[chunk] * TMEM_CHUNK != columns)
        return sim_fault(w, in, NO_LANE, 719, FIND_TMEM_DEALLOC, CAUSE_NONE, object,
                         "%u columns freed of an allocation of %u: an allocation is freed whole",
                         columns, sm->tmem_chunks[chunk] * (uint32_t)TMEM_CHUNK);
    for (uint32_t c = chunk; c < chunk + columns / TMEM_CHUNK; c++) {
        sm->tmem_owner[c] = NULL;
        cta->tmem_freed |= 1U << c;
    }
    cta->tmem_free_in = in;
    sm->tmem_base[chunk] = 0;
    cta->tmem_held -= columns;
    publish(w, in, EV_TMEM_DEALLOC, address, columns);
    sim_wake_all(cta->group, WAIT_TMEM_ALLOC);
    return STEP_NEXT;
}

int bind_tcgen05_dealloc(struct decoder *dc, struct insn *out)
{
    out->flags = (uint16_t)tcgen05_bind_group(dc, 0);
    out->fn = exec_dealloc;
    return 0;
}

static enum step exec_relinquish(struct warp *w, const struct insn *in, uint32_t mask)
{
    (void)mask;
    if (tcgen05_enter(w, in, NO_LANE, in->flags) == STEP_FAULT) return STEP_FAULT;
    w->cta->tmem_relinquished = true;
    return STEP_NEXT;
}

int bind_tcgen05_relinquish(struct decoder *dc, struct insn *out)
{
    out->flags = (uint16_t)tcgen05_bind_group(dc, 0);
    out->fn = exec_relinquish;
    return 0;
}

static const struct insn *first_alloc(const struct kernel *k)
{
    for (uint32_t i = 0; i < k->insn_count; i++) {
        if (k->insns[i].fn == exec_alloc) return &k->insns[i];
    }
    return NULL;
}

void tcgen05_retire(struct cta *c)
{
    struct group *g = c->group;
    if (!c->tmem_held) return;
    for (uint32_t i = 0; i < TMEM_CHUNKS; i++) {
        if (c->sm->tmem_owner[i] != c) continue;
        c->sm->tmem_owner[i] = NULL;
        c->sm->tmem_base[i] = c->sm->tmem_chunks[i] = 0;
    }
    sim_find(g, &c->warps[0], first_alloc(g->launch->kernel), NO_LANE, SEV_ERROR, FIND_TMEM_LEAK,
             CAUSE_NONE, "",
             "the CTA exits with %u tensor-memory columns allocated; every tcgen05.alloc needs a "
             "tcgen05.dealloc before the CTA ends",
             c->tmem_held);
    if (!g->result) g->result = 721;
    sim_wake_all(g, WAIT_TMEM_ALLOC);
}
