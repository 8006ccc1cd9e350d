/*
 * Warp-wide collectives with a member mask: they run once all live lanes of the mask stand at the
 * instruction, for each set of lanes that gave the same mask (PTX ISA: "Parallel Synchronization and
 * Communication Instructions").
 */
#include "machine/exec.h"
#include "machine/lanes.h"

/* Does the collective for `lanes`, which share one member mask. */
typedef void collective(struct warp *w, const struct insn *in, uint32_t lanes);

static enum step mask_fault(struct warp *w, const struct insn *in, uint32_t lane, const char *what,
                            uint32_t members, uint32_t lanes)
{
    return sim_fault(w, in, lane, 715, FIND_COLLECTIVE_PARTIAL, CAUSE_NONE, "",
                     "%s (member mask 0x%08x, executed by lanes 0x%08x); every lane of the mask "
                     "must execute the instruction, and only those",
                     what, members, lanes);
}

/* All executing lanes name the same, and are among them. */
static bool same_for_all(const struct warp *w, uint32_t mask, struct arg arg, uint32_t *need)
{
    const uint32_t *m = arg_src(w, arg);
    const uint32_t one = arg.bits == 32 ? m[first_lane(mask)] : 0;
    uint32_t differ = 0;
    if (arg.bits != 32 || (mask & ~one)) return false;
    if (mask == FULL_MASK) {
        for (uint32_t l = 0; l < WARP_LANES; l++) differ |= m[l] ^ one;
    } else {
        for (uint32_t rest = mask; rest; rest &= rest - 1) differ |= m[first_lane(rest)] ^ one;
    }
    *need = one;
    return differ == 0;
}

/* All lanes that the executing ones name, in *need. */
static enum step members(struct warp *w, const struct insn *in, uint32_t mask, struct arg arg,
                         uint32_t *need)
{
    *need = 0;
    if (arg.bank == BANK_CONST && !(mask & ~(uint32_t)arg_lane(w, arg, 0))) {
        *need = (uint32_t)arg_lane(w, arg, 0);
        return STEP_NEXT;
    }
    if (same_for_all(w, mask, arg, need)) return STEP_NEXT;
    *need = 0;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = first_lane(rest), m = (uint32_t)arg_lane(w, arg, lane);
        if (!(m >> lane & 1)) {
            return mask_fault(w, in, lane, "a lane is not in its own member mask", m, mask);
        }
        *need |= m;
    }
    return STEP_NEXT;
}

static enum step together(struct warp *w, const struct insn *in, uint32_t mask, struct arg arg,
                          collective *run)
{
    uint32_t need;
    if (members(w, in, mask, arg, &need) == STEP_FAULT) return STEP_FAULT;
    if (!frag_converge(w, need)) return STEP_BLOCK;
    if (need & w->live & ~mask) {
        return mask_fault(w, in, first_lane(need & w->live & ~mask),
                          "the guard is false for a lane of the member mask", need, mask);
    }
    if (w->cta->group->meetings)
        observe(
            w->cta->group,
            &(struct event){
                .kind = EV_TOGETHER, .lanes = need & w->live, .warp = w, .in = in, .cta = w->cta});
    if (arg.bank == BANK_CONST || same_for_all(w, mask, arg, &need)) {
        run(w, in, mask);
        return STEP_NEXT;
    }
    while (mask) {
        uint32_t lanes = 0, m = (uint32_t)arg_lane(w, arg, first_lane(mask));
        for (uint32_t rest = mask; rest; rest &= rest - 1) {
            uint32_t lane = first_lane(rest);
            if ((uint32_t)arg_lane(w, arg, lane) == m) lanes |= 1U << lane;
        }
        run(w, in, lanes);
        mask &= ~lanes;
    }
    return STEP_NEXT;
}

static void set_lanes(struct warp *w, struct arg dst, uint32_t lanes, uint64_t value)
{
    for (; lanes; lanes &= lanes - 1) arg_set_lane(w, dst, first_lane(lanes), value);
}

/* ---- activemask, elect ---- */

static enum step exec_activemask(struct warp *w, const struct insn *in, uint32_t mask)
{
    set_lanes(w, in->arg[0], mask, mask);
    return STEP_NEXT;
}

int bind_activemask(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_activemask;
    return 0;
}

static void elect(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t leader = first_lane(lanes);
    set_lanes(w, in->arg[0], lanes, leader);
    arg_set_pred(w, in->arg[1], lanes, 1U << leader);
}

static enum step exec_elect(struct warp *w, const struct insn *in, uint32_t mask)
{
    return together(w, in, mask, in->arg[2], elect);
}

int bind_elect(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_elect;
    return 0;
}

/* ---- vote ---- */

static void vote_all(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t p = arg_pred(w, in->arg[1]) & lanes;
    arg_set_pred(w, in->arg[0], lanes, p == lanes ? FULL_MASK : 0);
}

static void vote_any(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t p = arg_pred(w, in->arg[1]) & lanes;
    arg_set_pred(w, in->arg[0], lanes, p ? FULL_MASK : 0);
}

static void vote_uni(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t p = arg_pred(w, in->arg[1]) & lanes;
    arg_set_pred(w, in->arg[0], lanes, p == lanes || p == 0 ? FULL_MASK : 0);
}

static void vote_ballot(struct warp *w, const struct insn *in, uint32_t lanes)
{
    set_lanes(w, in->arg[0], lanes, arg_pred(w, in->arg[1]) & lanes);
}

#define COLLECTIVE(name, mask_arg)                                                     \
    static enum step exec_##name(struct warp *w, const struct insn *in, uint32_t mask) \
    {                                                                                  \
        return together(w, in, mask, in->arg[mask_arg], name);                         \
    }
COLLECTIVE(vote_all, 2)
COLLECTIVE(vote_any, 2)
COLLECTIVE(vote_uni, 2)
COLLECTIVE(vote_ballot, 2)

int bind_vote(struct decoder *dc, struct insn *out)
{
    out->fn = mod_has(dc, "all")   ? exec_vote_all
              : mod_has(dc, "any") ? exec_vote_any
              : mod_has(dc, "uni") ? exec_vote_uni
                                   : exec_vote_ballot;
    return 0;
}

/* ---- match ---- */

static void match_any(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t left = lanes;
    while (left) {
        uint64_t value = arg_lane(w, in->arg[1], first_lane(left));
        uint32_t same = 0;
        for (uint32_t rest = left; rest; rest &= rest - 1) {
            uint32_t lane = first_lane(rest);
            if (arg_lane(w, in->arg[1], lane) == value) same |= 1U << lane;
        }
        left &= ~same;
        /* The destination may be the source: lanes still to come are not written here. */
        set_lanes(w, in->arg[0], same, same);
    }
}

static void match_all(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t value = arg_lane(w, in->arg[2], first_lane(lanes));
    bool same = true;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        same = same && arg_lane(w, in->arg[2], first_lane(rest)) == value;
    }
    set_lanes(w, in->arg[0], lanes, same ? lanes : 0);
    arg_set_pred(w, in->arg[1], lanes, same ? FULL_MASK : 0);
}

COLLECTIVE(match_any, 2)
COLLECTIVE(match_all, 3)

int bind_match(struct decoder *dc, struct insn *out)
{
    out->fn = strcmp(dc->row->name, "match.any.sync") == 0 ? exec_match_any : exec_match_all;
    return 0;
}

/* ---- redux ---- */

/* name, start, and `a` with the lane's value `b` folded in */
#define REDUCTIONS(X)                                     \
    X(add, 0, a + b)                                      \
    X(and, FULL_MASK, a &b)                               \
    X(or, 0, a | b)                                       \
    X(xor, 0, a ^ b)                                      \
    X(umin, FULL_MASK, a < b ? a : b)                     \
    X(umax, 0, a > b ? a : b)                             \
    X(smin, 0x7FFFFFFFU, (int32_t)a < (int32_t)b ? a : b) \
    X(smax, 0x80000000U, (int32_t)a > (int32_t)b ? a : b)

#define X(name, start, folded)                                                      \
    static void redux_##name(struct warp *w, const struct insn *in, uint32_t lanes) \
    {                                                                               \
        uint32_t a = start;                                                         \
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {                       \
            uint32_t b = (uint32_t)arg_lane(w, in->arg[1], first_lane(rest));       \
            a = folded;                                                             \
        }                                                                           \
        set_lanes(w, in->arg[0], lanes, a);                                         \
    }                                                                               \
    COLLECTIVE(redux_##name, 2)
REDUCTIONS(X)
#undef X

int bind_redux(struct decoder *dc, struct insn *out)
{
    bool is_signed = mod_has(dc, "s32");
    if (mod_has(dc, "add"))
        out->fn = exec_redux_add;
    else if (mod_has(dc, "and"))
        out->fn = exec_redux_and;
    else if (mod_has(dc, "or"))
        out->fn = exec_redux_or;
    else if (mod_has(dc, "xor"))
        out->fn = exec_redux_xor;
    else if (mod_has(dc, "min"))
        out->fn = is_signed ? exec_redux_smin : exec_redux_umin;
    else
        out->fn = is_signed ? exec_redux_smax : exec_redux_umax;
    return 0;
}

/* insn.flags of redux.sync on f32 */
enum { REDUX_MAX = 1, REDUX_ABS = 2, REDUX_NAN = 4 };

/* Unsigned numbers in the order of the floats, -0 before +0. */
static uint32_t float_key(uint32_t bits)
{
    return bits >> 31 ? ~bits : bits | 0x80000000U;
}

/* PTX ISA "redux.sync": without .NaN those that are no NaN count; a NaN that comes out is canonical. */
static void redux_float(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t magnitude = 0x7FFFFFFFU, infinity = 0x7F800000U, canonical = 0x7FFFFFFFU;
    const uint32_t keep = in->flags & REDUX_ABS ? magnitude : FULL_MASK;
    uint32_t a = 0;
    bool any = false, nan = false;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t b = (uint32_t)arg_lane(w, in->arg[1], first_lane(rest)) & keep;
        const bool greater = float_key(b) > float_key(a);
        if ((b & magnitude) > infinity) {
            nan = true;
            continue;
        }
        if (!any || greater == !!(in->flags & REDUX_MAX)) a = b;
        any = true;
    }
    if (!any || (nan && in->flags & REDUX_NAN)) a = canonical;
    set_lanes(w, in->arg[0], lanes, a);
}
COLLECTIVE(redux_float, 2)

int bind_redux_float(struct decoder *dc, struct insn *out)
{
    out->flags =
        (uint16_t)((mod_has(dc, "max") ? REDUX_MAX : 0) | (mod_has(dc, "abs") ? REDUX_ABS : 0) |
                   (mod_has(dc, "NaN") ? REDUX_NAN : 0));
    out->fn = exec_redux_float;
    return 0;
}

/* ---- shfl ---- */

enum shuffle { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };

/* What a lane gets from one that does not take part: undefined, so nothing it could build on. */
#define SHFL_POISON 0xC5C5C5C5U

/* The source lane, or the lane itself with *in_range false (PTX ISA shfl.sync). */
static uint32_t shfl_source(enum shuffle mode, uint32_t lane, uint32_t b, uint32_t c,
                            bool *in_range)
{
    uint32_t segment = c >> 8 & 31, least = lane & segment;
    uint32_t bound = least | (c & 31 & ~segment);
    int32_t j;
    b &= 31;
    switch (mode) {
    case SHFL_UP: j = (int32_t)lane - (int32_t)b; break;
    case SHFL_DOWN: j = (int32_t)(lane + b); break;
    case SHFL_BFLY: j = (int32_t)(lane ^ b); break;
    default: j = (int32_t)(least | (b & ~segment)); break;
    }
    *in_range = mode == SHFL_UP ? j >= (int32_t)bound : j <= (int32_t)bound;
    return *in_range ? (uint32_t)j : lane;
}

/* from[lane]: whose value it gets, NO_LANE where that is undefined. */
static void publish_exchange(struct warp *w, const struct insn *in, uint32_t lanes,
                             const uint64_t *from)
{
    const struct event e = {
        .kind = EV_EXCHANGE, .lanes = lanes, .warp = w, .in = in, .cta = w->cta, .addresses = from};
    w->undefined = true;
    observe(w->cta->group, &e);
}

static void shfl(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t *by = arg_src(w, in->arg[3]), *bounds = arg_src(w, in->arg[4]);
    uint32_t source[WARP_LANES], value[WARP_LANES], other[WARP_LANES], pred = 0, none = 0;
    memcpy(source, arg_src(w, in->arg[2]), sizeof source); /* the destination may be the same */
    LANES(l)
    {
        bool in_range;
        const uint32_t from = shfl_source((enum shuffle)in->flags, l, by[l], bounds[l], &in_range);
        const bool there = from < WARP_LANES && lanes >> (from & 31U) & 1U;
        other[l] = there ? from : NO_LANE;
        value[l] = there ? source[from & 31U] : SHFL_POISON;
        pred |= (uint32_t)in_range << l;
        none |= (uint32_t)!there << l;
    }
    if (!in->arg[0].sink) {
        uint32_t *d = arg_dst(w, in->arg[0]);
        LANES(l) d[l] = lanes >> l & 1U ? value[l] : d[l];
    }
    if ((w->undefined || (none & lanes)) && w->cta->group->observer) {
        uint64_t from[WARP_LANES];
        LANES(l) from[l] = other[l];
        publish_exchange(w, in, lanes, from);
    }
    arg_set_pred(w, in->arg[1], lanes, pred);
}

COLLECTIVE(shfl, 5)

/* flags: enum shuffle */
int bind_shfl(struct decoder *dc, struct insn *out)
{
    out->flags = mod_has(dc, "up")     ? SHFL_UP
                 : mod_has(dc, "down") ? SHFL_DOWN
                 : mod_has(dc, "bfly") ? SHFL_BFLY
                                       : SHFL_IDX;
    out->fn = exec_shfl;
    return 0;
}

/* ---- bar.warp.sync ---- */

static void publish_met(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct event e = {
        .kind = EV_WARP_SYNC, .lanes = lanes, .warp = w, .in = in, .cta = w->cta};
    observe(w->cta->group, &e);
}

/* Lanes that call it at different places meet as well, so the fragments need not merge. */
/* Stands at a bar.warp.sync of these lanes; one that has met and has yet to go on does so no longer. */
static bool waits_for(const struct frag *f, uint32_t need)
{
    return f->wait.kind == WAIT_WARPSYNC && f->wait.need == need && !f->wait.arrived;
}

static enum step exec_warpsync(struct warp *w, const struct insn *in, uint32_t mask)
{
    struct frag *f = warp_frag(w);
    uint32_t need, here = mask;
    if (f->wait.kind == WAIT_WARPSYNC && f->wait.arrived) return STEP_NEXT; /* met, and woken */
    if (members(w, in, mask, in->arg[0], &need) == STEP_FAULT) return STEP_FAULT;
    for (uint32_t i = 0; i < w->frag_count; i++) {
        const struct frag *o = &w->frags[i];
        if (o != f && waits_for(o, need)) here |= o->mask;
    }
    if (need & w->live & ~here) {
        sim_block(w, WAIT_WARPSYNC, w->cta, 0, 0);
        f->wait.need = need;
        return STEP_BLOCK;
    }
    for (uint32_t i = 0; i < w->frag_count; i++) {
        struct frag *o = &w->frags[i];
        if (o == f || !waits_for(o, need)) continue;
        o->wait.arrived = true;
        frag_wake(w, o);
    }
    w->cta->group->progress++;
    if (w->cta->group->observer) publish_met(w, in, need & w->live);
    return STEP_NEXT;
}

int bind_warpsync(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = exec_warpsync;
    return 0;
}
