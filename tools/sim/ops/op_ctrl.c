/* Branches, ends of threads, sleeping, and the register pool. */
#include "machine/exec.h"

enum {
    WARPGROUP = 4,
    /* warps */ SETMAXNREG_LEAST = 24,
    SETMAXNREG_MOST = 256,
    SLEEP_MOST = 1000000 /* ns */
};

static enum step exec_bra(struct warp *w, const struct insn *in, uint32_t mask)
{
    return frag_branch(w, mask, in->target);
}

int bind_bra(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_bra;
    return 0;
}

/* One target at a time: lanes bound for others stay here and run the instruction again. */
static enum step exec_brx(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint32_t lane = first_lane(mask), taken = 0;
    uint64_t index = arg_lane(w, in->arg[0], lane);
    if (index >= in->list_count) {
        return sim_fault(w, in, lane, 715, FIND_OOB, CAUSE_NONE, "",
                         "index %llu of brx.idx is outside its list of %u labels",
                         (unsigned long long)index, in->list_count);
    }
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t l = first_lane(rest);
        if (arg_lane(w, in->arg[0], l) == index) taken |= 1U << l;
    }
    if (taken == warp_frag(w)->mask) return frag_branch(w, taken, in->list[index].offset);
    frag_split(w, taken, in->list[index].offset);
    return STEP_JUMP;
}

int bind_brx(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_brx;
    return 0;
}

static enum step exec_exit(struct warp *w, const struct insn *in, uint32_t mask)
{
    (void)in;
    return frag_exit(w, mask);
}

int bind_exit(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_exit;
    return 0;
}

static enum step exec_trap(struct warp *w, const struct insn *in, uint32_t mask)
{
    return sim_fault(w, in, first_lane(mask), 719, FIND_TRAP, CAUSE_NONE, "",
                     "the kernel executed %s in %d lane%s (0x%08x)", in->row->name,
                     __builtin_popcount(mask), mask & (mask - 1) ? "s" : "", mask);
}

int bind_trap(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_trap;
    return 0;
}

/* Somewhere in [0, 2t], as PTX ISA nanosleep allows; the longest lane decides. */
static enum step exec_nanosleep(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct group *g = w->cta->group;
    uint64_t ns = 0, cycles;
    if (warp_frag(w)->wait.kind == WAIT_SLEEP) return STEP_NEXT;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint64_t t = arg_lane(w, in->arg[0], first_lane(rest));
        if (t > ns) ns = t;
    }
    if (ns > SLEEP_MOST) ns = SLEEP_MOST;
    cycles = ns * g->launch->gpu->clock_khz / 1000000;
    return sim_block(w, WAIT_SLEEP, w->cta, 0,
                     g->now + 1 + sim_random(g, (uint32_t)(2 * cycles) + 1));
}

int bind_nanosleep(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_nanosleep;
    return 0;
}

/* Launches run one after the other: prerequisite grids are complete, dependents start later. The
 * checker hears of both. */
static enum step exec_griddep(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct event e = {.kind = in->flags ? EV_GRID_WAIT : EV_GRID_GO, .lanes = mask};
    e.warp = w;
    e.in = in;
    e.cta = w->cta;
    observe(w->cta->group, &e);
    return STEP_NEXT;
}

/* insn.flags: 1 for wait. */
int bind_griddep(struct decoder *dc, struct insn *out)
{
    out->fn = exec_griddep;
    out->flags = mod_is(dc, 0, "wait");
    return 0;
}

/* ---- setmaxnreg ---- */

static enum step setmaxnreg_wrong(struct warp *w, const struct insn *in, const char *way,
                                  uint32_t wanted)
{
    sim_find(w->cta->group, w, in, NO_LANE, SEV_ERROR, FIND_SETMAXNREG, CAUSE_NONE, "",
             "setmaxnreg.%s to %u registers, but the warp has %u a thread", way, wanted,
             w->reg_quota);
    return STEP_NEXT;
}

/* What an inc of the warp's whole group to `wanted` registers a thread takes from the pool. */
static int64_t group_need(const struct warp *w, uint32_t wanted)
{
    const struct cta *c = w->cta;
    uint32_t first = w->id / WARPGROUP * WARPGROUP;
    int64_t need = 0;
    for (uint32_t i = first; i < first + WARPGROUP && i < c->warp_count; i++) {
        const struct warp *o = &c->warps[i];
        if (o->live && wanted > o->reg_quota) need += (int64_t)wanted - o->reg_quota;
    }
    return need;
}

/* All of the group have what was taken for them, so that a warp that runs ahead and gives its own back takes nothing
 * from the others. */
static void group_grant(const struct warp *w, uint32_t wanted)
{
    struct cta *c = w->cta;
    uint32_t first = w->id / WARPGROUP * WARPGROUP;
    for (uint32_t i = first; i < first + WARPGROUP && i < c->warp_count; i++)
        if (c->warps[i].live && wanted > c->warps[i].reg_quota) c->warps[i].reg_quota = wanted;
}

/* PTX ISA "setmaxnreg": all warps of a warpgroup execute the same one. That compilers may write it twice, with one
 * count, is let pass. */
static void compare_moves(struct warp *w, const struct insn *in)
{
    const struct cta *c = w->cta;
    const uint32_t first = w->id / WARPGROUP * WARPGROUP, turn = w->reg_moved++;

    if (turn >= REG_MOVES) return;
    w->reg_moves[turn] = in;
    for (uint32_t i = first; i < first + WARPGROUP && i < c->warp_count; i++) {
        const struct insn *other = c->warps[i].reg_moves[turn];
        if (!other || (other->imm[0] == in->imm[0] && other->flags == in->flags)) continue;
        sim_find(
            c->group, w, in, NO_LANE, SEV_ERROR, FIND_SETMAXNREG, CAUSE_NONE, "",
            "setmaxnreg.%s to %lld registers by warp %u, but to %lld (.%s, line %u) by warp %u of "
            "its warpgroup: all warps of a warpgroup must execute the same setmaxnreg. Cheapest "
            "remedy: one setmaxnreg for the warpgroup, ahead of the branch.",
            in->flags ? "inc" : "dec", (long long)in->imm[0], w->id, (long long)other->imm[0],
            other->flags ? "inc" : "dec", other->src->pos.line, i);
        return;
    }
}

/* An inc is granted to a warpgroup at once, as soon as what other warps of the CTA gave back covers
 * all its warps; the first of them that comes takes it for the rest (PTX ISA: all of a warpgroup
 * execute the same setmaxnreg). A dec gives back each warp's own as it comes [interpretation]. */
static enum step exec_setmaxnreg(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct cta *c = w->cta;
    struct group *g = c->group;
    uint32_t wanted = (uint32_t)in->imm[0];
    bool inc = in->flags;
    (void)mask;
    if (!w->reg_quota) {
        sim_find(g, w, in, NO_LANE, SEV_ADVICE, FIND_SETMAXNREG, CAUSE_NONE, "",
                 "setmaxnreg has no effect here, nor on a GPU: ptxas ignores it (C7508) where no "
                 ".maxnreg, .reqntid or .maxntid says how many registers a launch starts with");
        return STEP_NEXT;
    }
    if (!inc || wanted <= w->reg_quota || group_need(w, wanted) <= c->pool_free)
        compare_moves(w, in); /* else it sleeps, and comes again */
    if (inc && wanted < w->reg_quota) return setmaxnreg_wrong(w, in, "inc", wanted);
    if (!inc && wanted > w->reg_quota) return setmaxnreg_wrong(w, in, "dec", wanted);
    if (inc && wanted > w->reg_quota) {
        int64_t more = group_need(w, wanted);
        if (more > c->pool_free) return sim_block(w, WAIT_REGISTERS, c, 0, wanted);
        c->pool_free -= more;
        group_grant(w, wanted);
        sim_wake(c, WAIT_REGISTERS, WAKE_ANY);
    } else if (!inc) {
        c->pool_free += (int64_t)w->reg_quota - wanted;
        sim_wake(c, WAIT_REGISTERS, WAKE_ANY);
    }
    w->reg_quota = wanted;
    if (g->observer) {
        struct event e = {.kind = EV_SETMAXNREG,
                          .lanes = w->live,
                          .warp = w,
                          .in = in,
                          .cta = c,
                          .value = wanted};
        observe(g, &e);
    }
    return STEP_NEXT;
}

/* imm[0]: registers per thread; flags: 1 for inc. */
int bind_setmaxnreg(struct decoder *dc, struct insn *out)
{
    int64_t n;
    if (!operand_constant(dc, 0, &n)) return bind_invalid(dc, "setmaxnreg needs a constant");
    if (n < SETMAXNREG_LEAST || n > SETMAXNREG_MOST || n % 8) {
        return bind_invalid(dc, "setmaxnreg: %lld is not a multiple of 8 from %d to %d",
                            (long long)n, SETMAXNREG_LEAST, SETMAXNREG_MOST);
    }
    out->imm[0] = n;
    out->flags = mod_has(dc, "inc");
    out->fn = exec_setmaxnreg;
    return 0;
}
