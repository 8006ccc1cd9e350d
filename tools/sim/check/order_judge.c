/*
 * Judges a pair of accesses that the later side does not know to be in order: a finding, or a reason why
 * it is none. Every cluster's shared memory, global memory and tensor memory have rules of their own.
 */
#include "check/order_judge.h"

#include "ops/access.h"
#include "check/check.h"
#include "check/constant.h"
#include "check/launch_memory.h"
#include "machine/mem.h"
#include "decode/names.h"

static bool generic_component(uint8_t kind)
{
    return kind == COMPONENT_WARP || kind == COMPONENT_CP_ASYNC || kind == COMPONENT_REMOTE_STORE;
}

/*
 * A write that is there once its end is known, whatever the scope of the arrival that told of it: the hardware has told a
 * barrier of it.
 */
static bool is_there(uint8_t kind)
{
    return kind == COMPONENT_REMOTE_STORE || !generic_component(kind);
}

/* ---- judging a pair ---- */

/* The later side knows that the earlier operation was issued, if not that it is over. */
static bool knows_issue(const struct order_warp *w, const struct component *p, epoch prior)
{
    const uint32_t number = epoch_number(prior);
    if (p->warp == w) return true;
    if (number + ISSUES_KEPT <= p->number) return true; /* long ago */
    return clock_get(&w->now.known, p->warp->chain[COMPONENT_WARP]) >=
           p->issued[number % ISSUES_KEPT];
}

/*
 * What kind of error an unordered pair is. An operation that the later side knows to be under way and
 * does not wait for is reused too early; of reads and the copies that write over them it is told by
 * the generation that was read: one that the reader had waited for is being replaced too early
 * (async-reuse), a first one is read too early (race).
 */
static enum finding_kind kind_of(const struct touch *t, const struct accessor *a,
                                 const struct component *p, epoch prior, bool wrote)
{
    const bool issued = knows_issue(a->w, p, prior);
    if (a->gives_back) return FIND_USE_AFTER_FREE;
    if (a->e->proxy == PROXY_TENSORMAP || a->e->in->is.class == INSN_TENSORMAP)
        return FIND_TENSORMAP_PROXY;
    if (p->kind == COMPONENT_WGMMA && issued) return FIND_WGMMA_WAIT;
    if (p->kind == COMPONENT_WARP || p->kind == COMPONENT_REMOTE_STORE)
        return t->async && t->write && !wrote && t->replaces ? FIND_ASYNC_REUSE : FIND_RACE;
    if (t->write && issued) return FIND_ASYNC_REUSE;
    if (t->write && !wrote) return t->async && t->replaces ? FIND_ASYNC_REUSE : FIND_RACE;
    if (!t->write && p->kind == COMPONENT_COPY && p->over && clock_knows(&a->w->now.known, p->over))
        return FIND_ASYNC_REUSE;
    return FIND_RACE;
}

/* PTX ISA "ld.global.nc": for read-only data. Stores of the same SM keep its cache up to date, others do not. Textures are read
 * through the same cache, constant memory through one that no store keeps up to date (interpretations). */
static bool cached(const struct accessor *a, bool wrote)
{
    return a->e->in->is.constant && wrote;
}

#define READ_LATER "a launch of its own for what reads the texture, behind the one that writes"
#define READ_PLAIN                                                                                 \
    "ld.global without .nc (in CUDA C++ no __ldg, and no const __restrict__) for what the launch " \
    "writes"

#define READ_GLOBAL                                                                                \
    "what the launch writes goes to .global memory, or a launch of its own reads it, behind this " \
    "one"

static const char *read_otherwise(const struct accessor *a)
{
    if (a->e->in->space == SPACE_CONST) return READ_GLOBAL;
    return a->e->in->is.texture ? READ_LATER : READ_PLAIN;
}

/* Both are atomic: each takes in what the other has left, whichever comes first. */
static bool both_atomic(const struct accessor *a, epoch prior)
{
    const struct insn *in = insn_at(a->o, epoch_insn(prior));
    return in && in->is.class != INSN_LOAD && in->is.class != INSN_STORE &&
           a->e->in->is.class != INSN_LOAD && a->e->in->is.class != INSN_STORE;
}

/* What is between the two is a lock that this side has taken without an acquire (order_lock.h). The lock's own word
 * is no matter. */
static bool locked(const struct touch *t, uint32_t cluster, uint32_t component, epoch prior)
{
    const struct accessor *a = t->context;
    const struct clock *c = horizon_of(t->now->locked, cluster);
    return c && clock_get(c, component) >= epoch_number(prior) && !both_atomic(a, prior) &&
           !order_flag_locks(a->w, a->place == PLACE_SHARED ? a->cta : NULL, t->at);
}

static bool locked_here(const struct touch *t, epoch prior)
{
    const struct accessor *a = t->context;
    return t->now->locked && locked(t, a->w->cta->cluster->linear, epoch_component(prior), prior);
}

static bool locked_abroad(const struct touch *t, const struct actor *p, epoch prior)
{
    return t->now->locked && locked(t, p->cluster, p->component, prior);
}

static enum standing report(const struct touch *t, epoch prior, bool wrote, enum finding_kind kind,
                            enum finding_severity severity)
{
    const struct accessor *a = t->context;
    const struct conflict c = {
        .kind = kind,
        .severity = severity,
        .place = a->place,
        .warp = a->w,
        .in = a->e->in,
        .lane = a->e->token ? first_lane(a->e->lanes) : NO_LANE,
        .async = t->async,
        .wrote = t->write,
        .cta = a->cta,
        .at = a->place == PLACE_TENSOR ? a->at : t->at,
        .bytes = a->bytes,
        .prior = prior,
        .prior_wrote = wrote,
        .cached = cached(a, wrote) && clock_knows(&t->now->known, prior),
        .locked = kind == FIND_RACE && locked_here(t, prior),
        .fix = cached(a, wrote) ? read_otherwise(a) : NULL,
    };
    tell_conflict(a->o, &c);
    return STANDING_REPORTED;
}

/* An idiom (finding.h): counted, and a warning at level 2. */
static void accept(const struct touch *t, epoch prior, bool wrote, enum finding_kind kind,
                   enum idiom idiom)
{
    const struct accessor *a = t->context;
    sim_idiom(a->o->group, a->e->in, idiom);
    if (a->o->level >= 2) (void)report(t, prior, wrote, kind, SEV_WARNING);
}

/* Whether the two are morally strong as far as scopes go (PTX ISA "Morally strong operations"). That they
 * overlap completely is not asked for (interpretation): halves of one word are updated side by side. */
static bool both_strong(const struct accessor *a, epoch prior, enum insn_scope least)
{
    const struct insn *in = insn_at(a->o, epoch_insn(prior));
    return a->strong && in && in->is.strong && in->is.scope >= least && a->e->in->is.scope >= least;
}

/*
 * PTX ISA "Causality order": a strong write comes before all that follow a strong read which has observed it,
 * though no other access of its thread does. The last CTA of a reduction resets its counter so, by a plain
 * store. (Interpretation: atomics and stores of one place have one order, so older ones are seen too.)
 */
static bool settled(const struct touch *t, epoch prior)
{
    const struct accessor *a = t->context;
    return t->settled && !a->strong && !t->async && t->is_strong(t, prior);
}

/* Which of two atomics comes first is up to the order. */
static enum standing settle(const struct touch *t)
{
    const struct accessor *a = t->context;
    order_read(a->o, a->e->in);
    return STANDING_ORDERED;
}

/* A relaxed read of the warp has shown that the earlier access is over, in the terms of its own cluster. */
static bool seen(const struct accessor *a, epoch prior)
{
    for (int i = 0; i < REACHES; i++)
        if (clock_knows(&a->w->observed[i].known, prior)) return true;
    return false;
}

/*
 * By the letter volatile accesses are relaxed and never race. In CUDA C++ they order nothing: what they leave or bring is
 * chance, unless the program looks at what it gets (a flag, a lock), or has the address from there.
 */
static bool by_chance(const struct touch *t, epoch prior)
{
    const struct accessor *a = t->context;
    const struct insn *other = insn_at(a->o, epoch_insn(prior)), *in = a->e->in;
    if (!other || t->settled || t->async) return false;
    if (!other->is.by_volatile && !in->is.by_volatile) return false;
    return !other->used && !in->used;
}

/* The place is part of a tensor map that some copy has used. */
static bool in_map(const struct accessor *a, uint64_t at)
{
    for (uint32_t i = 0; a->place == PLACE_GLOBAL && i < a->o->map_count; i++) {
        if (at - a->o->maps[i] < MAP_BYTES) return true;
    }
    return false;
}

/* A copy reads its tensor map: generic writes to it need fence.proxy.tensormap between (PTX ISA
 * "membar, fence"). */
static enum standing judge_map(const struct touch *t, const struct component *p, epoch prior,
                               bool wrote)
{
    if (!generic_component(p->kind) && clock_knows(&t->now->known, prior)) return STANDING_ORDERED;
    return report(t, prior, wrote, FIND_TENSORMAP_PROXY, SEV_ERROR);
}

/* A fence of this memory alone made it visible to the async proxy. */
static bool bridged_here(const struct touch *t, const struct accessor *a, epoch prior)
{
    return clock_knows(a->place == PLACE_SHARED ? &t->now->bridged_shared : &t->now->bridged_global,
                       prior);
}

/* A store of what is there already; or of the constant that the earlier store wrote, though other lanes change
 * something elsewhere. */
static bool stores_same(const struct accessor *a, epoch prior)
{
    /* In another order this store comes between those two, and changes what is there. */
    if (a->place == PLACE_SHARED && a->o->varied[varied_slot(prior)] == prior) return false;
    if (a->component != a->w->chain[COMPONENT_WARP] || !a->e->addresses ||
        a->e->access != ACCESS_WRITE)
        return false;
    if (a->e->value && (a->place != PLACE_SHARED || a->o->again[varied_slot(prior)] != prior))
        return true;
    if (same_constant(a->o->kernel, insn_at(a->o, epoch_insn(prior)), a->e->in)) return true;
    /* Of one instruction's stores it is not known which lane's were before. */
    if (a->e->value) order_sampled(a->o, SAMPLED_AGAIN, a->e->in);
    return a->e->value != 0;
}

/* The word in which tcgen05.alloc left its address. Whoever needs it has read it back, so it is there; compilers give
 * the place to a copy next, or to an operand. */
static bool address_word(const struct accessor *a, epoch prior)
{
    const struct insn *in = insn_at(a->o, epoch_insn(prior));
    return in && in->is.class == INSN_TMEM_ALLOC;
}

/* CUDA C++ Programming Guide, surface memory: what the launch has written may be found or not. The ISA has surfaces as a
 * proxy, and no fence for it. */
static enum standing judge_surface(const struct accessor *a, bool wrote)
{
    if (wrote) order_read(a->o, a->e->in);
    return STANDING_ORDERED;
}

/*
 * A thread's store to the shared memory of its own CTA, or its cp.async, before an asynchronous write there by another
 * CTA. Behind a proxy fence it is in that memory, and no later operation of the thread overtakes it (interpretation; the
 * letter has the arrival hand it over). A store to the memory of another CTA may still be under way.
 */
static bool stays_home(const struct touch *t, const struct component *p)
{
    const struct accessor *a = t->context;
    return t->async && a->place == PLACE_SHARED && p->warp->cta == a->cta &&
           (p->kind == COMPONENT_WARP || p->kind == COMPONENT_CP_ASYNC);
}

/* A write behind what an arrival of .cta scope has told another CTA of: reads are over, and writes where is_there or stays_home. */
static enum standing judge_narrow(const struct touch *t, const struct component *p, epoch prior,
                                  bool wrote)
{
    if (!wrote || !t->async || !generic_component(p->kind)) return STANDING_ACCEPTED;
    if (!clock_knows(&t->now->narrow_bridged, prior))
        return report(t, prior, wrote, FIND_PROXY, SEV_ERROR);
    if (!is_there(p->kind)) accept(t, prior, wrote, FIND_RACE, IDIOM_SCOPE_LEFT_OUT);
    return STANDING_ACCEPTED;
}

enum standing order_judge(struct touch *t, epoch prior, bool wrote)
{
    const struct accessor *a = t->context;
    const struct component *p = order_component(a->w, epoch_component(prior));
    if (a->e->proxy == PROXY_TENSORMAP) return judge_map(t, p, prior, wrote);
    if (a->e->in->is.surface && (p->warp == a->w || clock_knows(&t->now->known, prior)))
        return judge_surface(a, wrote);
    if (cached(a, wrote) && (p->warp == a->w || clock_knows(&t->now->known, prior))) {
        if (p->warp->cta != a->w->cta || !generic_component(p->kind) ||
            a->e->in->space == SPACE_CONST)
            return report(t, prior, wrote, FIND_RACE, SEV_ERROR);
        order_read(a->o, a->e->in); /* that this cache follows is nobody's promise */
        return STANDING_ORDERED;
    }
    if (clock_knows(&t->now->known, prior)) { /* but not bridged */
        if (!generic_component(p->kind) || bridged_here(t, a, prior)) return STANDING_ORDERED;
        if (wrote && !address_word(a, prior)) return report(t, prior, wrote, FIND_PROXY, SEV_ERROR);
        accept(t, prior, wrote, FIND_PROXY, IDIOM_REFILL_UNFENCED);
        return STANDING_ACCEPTED;
    }
    if (p->warp == a->w && (!t->async || p->kind != COMPONENT_CP_ASYNC) &&
        order_groups_over(a->w, prior))
        return STANDING_ORDERED;
    if (settled(t, prior)) return settle(t);
    if (t->write && clock_knows(&t->now->narrow, prior) &&
        (!wrote || is_there(p->kind) || stays_home(t, p)))
        return judge_narrow(t, p, prior, wrote);
    /* Morally strong: both strong or atomic, by one proxy. */
    /* Threads that store one value to one place do no harm by it, whichever comes last. */
    if (wrote && p->kind == COMPONENT_WARP && stores_same(a, prior)) return STANDING_ACCEPTED;
    if (t->async != generic_component(p->kind) && !locked_here(t, prior) &&
        (!by_chance(t, prior) || seen(a, prior)) &&
        both_strong(a, prior, p->warp->cta == a->w->cta ? SCOPE_CTA : SCOPE_CLUSTER))
        return STANDING_ACCEPTED;
    if (t->write && !wrote && !generic_component(p->kind) && in_map(a, t->at))
        return report(t, prior, wrote, FIND_TENSORMAP_PROXY, SEV_ERROR);
    return report(t, prior, wrote, kind_of(t, a, p, prior, wrote), SEV_ERROR);
}

/* ---- other clusters ---- */

static epoch at_home(const struct actor *p, epoch prior)
{
    return epoch_make(p->component, epoch_number(prior), epoch_insn(prior));
}

static bool horizon_knows(const struct horizon *h, const struct actor *p, epoch prior)
{
    const struct clock *c = horizon_of(h, p->cluster);
    return c && clock_get(c, p->component) >= epoch_number(prior);
}

/* touch.knows of global memory that clusters share. */
bool order_knows_abroad(const struct touch *t, epoch prior, bool needed)
{
    const struct accessor *a = t->context;
    const struct actor *p = world_actor_of(a->o->world, prior);
    if (p->cluster == a->w->cta->cluster->linear)
        return clock_knows(needed ? t->needs : &t->now->known, at_home(p, prior));
    if (needed && reads_apart(a->e->in)) return false;
    if (needed && a->e->proxy == PROXY_TENSORMAP)
        return p->described >= epoch_number(prior) &&
               horizon_knows(a->w->cta->described_abroad, p, prior);
    return horizon_knows(
        needed && a->e->proxy == PROXY_ASYNC ? t->now->abroad_bridged : t->now->abroad, p, prior);
}

static enum standing report_abroad(const struct touch *t, epoch prior, bool wrote,
                                   enum finding_kind kind, enum finding_severity severity)
{
    const struct accessor *a = t->context;
    const struct conflict c = {
        .kind = kind,
        .severity = severity,
        .place = PLACE_GLOBAL,
        .warp = a->w,
        .in = a->e->in,
        .lane = a->e->token ? first_lane(a->e->lanes) : NO_LANE,
        .async = t->async,
        .wrote = t->write,
        .at = t->at,
        .bytes = a->bytes,
        .prior = prior,
        .prior_wrote = wrote,
        .abroad = world_actor_of(a->o->world, prior),
        .cached = cached(a, wrote) &&
                  horizon_knows(t->now->abroad, world_actor_of(a->o->world, prior), prior),
        .locked = kind == FIND_RACE && locked_abroad(t, world_actor_of(a->o->world, prior), prior),
        .fix = read_otherwise(a),
    };
    tell_conflict(a->o, &c);
    return STANDING_REPORTED;
}

static void accept_abroad(const struct touch *t, epoch prior, bool wrote, enum finding_kind kind,
                          enum idiom idiom)
{
    const struct accessor *a = t->context;
    sim_idiom(a->o->group, a->e->in, idiom);
    if (a->o->level >= 2) (void)report_abroad(t, prior, wrote, kind, SEV_WARNING);
}

/* As judge, of an access of another cluster. */
static enum standing judge_other(struct touch *t, const struct actor *p, epoch prior, bool wrote)
{
    const struct accessor *a = t->context;
    if (a->e->proxy == PROXY_TENSORMAP)
        return report_abroad(t, prior, wrote, FIND_TENSORMAP_PROXY, SEV_ERROR);
    if (cached(a, wrote) && horizon_knows(t->now->abroad, p, prior))
        return report_abroad(t, prior, wrote, FIND_RACE, SEV_ERROR);
    if (horizon_knows(t->now->abroad, p, prior)) { /* but not bridged */
        if (a->e->in->is.surface) return judge_surface(a, wrote);
        if (!generic_component(p->kind)) return STANDING_ORDERED;
        if (wrote) return report_abroad(t, prior, wrote, FIND_PROXY, SEV_ERROR);
        accept_abroad(t, prior, wrote, FIND_PROXY, IDIOM_REFILL_UNFENCED);
        return STANDING_ACCEPTED;
    }
    if (settled(t, prior)) return settle(t);
    /* By one proxy or two (interpretation): reductions of copies and of threads meet in the same cache. */
    if (both_strong(a, prior, SCOPE_GPU) && !locked_abroad(t, p, prior) &&
        (!by_chance(t, prior) || horizon_knows(t->now->abroad_observed, p, prior)))
        return STANDING_ACCEPTED;
    if (wrote && p->kind == COMPONENT_WARP && stores_same(a, prior)) return STANDING_ACCEPTED;
    if (t->write && !wrote && !generic_component(p->kind) && in_map(a, t->at))
        return report_abroad(t, prior, wrote, FIND_TENSORMAP_PROXY, SEV_ERROR);
    return report_abroad(t, prior, wrote, a->gives_back ? FIND_USE_AFTER_FREE : FIND_RACE,
                         SEV_ERROR);
}

/*
 * An atomic has shown that the earlier access is over, and was released, but nothing acquires it: the ticket
 * of the last CTA of a reduction, say. The letter asks for a fence. Without one stores cannot go wrong,
 * for they wait for the branch on what the atomic brought; nor can a load, unless its SM may have a copy of the
 * line of before.
 */
static bool judge_seen(const struct touch *t, const struct actor *p, epoch prior)
{
    const struct accessor *a = t->context;
    const uint8_t *lines;
    if (t->async || !generic_component(p->kind)) return false;
    if (settled(t, prior) || both_strong(a, prior, SCOPE_GPU)) return false; /* by judge */
    if (!horizon_knows(t->now->abroad_seen, p, prior) || locked_abroad(t, p, prior)) return false;
    if (t->write || a->strong) return true; /* a strong load passes that copy by */
    lines = world_lines(a->o->world, t->at);
    return lines && !(lines[t->at % GLOBAL_PAGE / GLOBAL_CELL] & LINE_STALE);
}

enum standing order_judge_abroad(struct touch *t, epoch prior, bool wrote)
{
    const struct accessor *a = t->context;
    const struct actor *p = world_actor_of(a->o->world, prior);
    if (judge_seen(t, p, prior)) {
        accept_abroad(t, prior, wrote, FIND_RACE, IDIOM_TICKET_UNFENCED);
        return STANDING_ACCEPTED;
    }
    if (p->cluster == a->w->cta->cluster->linear) return order_judge(t, at_home(p, prior), wrote);
    return judge_other(t, p, prior, wrote);
}

/* touch.is_strong: of a scope that makes it so for everybody who can come to it. */
bool order_is_strong(const struct touch *t, epoch prior)
{
    const struct accessor *a = t->context;
    const struct insn *in = insn_at(a->o, epoch_insn(prior));
    return in && in->is.strong && in->is.scope >= a->least;
}

/* touch.shows: a plain access was compared itself; a strong one says nothing where the program does not look at what
 * it brings: then it came later by chance. */
bool order_shows(const struct touch *t, epoch prior)
{
    const struct accessor *a = t->context;
    const struct insn *in = insn_at(a->o, epoch_insn(prior));
    return in && (!in->is.strong || in->used & USE_STEERS);
}

/* touch.reads_strong: reductions in another order may have left another value. */
void order_reads_strong(const struct touch *t, epoch prior, epoch newest)
{
    const struct accessor *a = t->context;
    const struct insn *in = insn_at(a->o, epoch_insn(prior));
    const struct insn *other = insn_at(a->o, epoch_insn(newest));
    if (!in || !other || in->is.class == INSN_STORE) return;
    if (in->is.mixes || in->row != other->row || in->type != other->type)
        order_read(a->o, a->e->in);
}

/* Libraries leave this fence out behind tcgen05.wait; it is asked for at level 2 only. */
static bool fenced_before(const struct accessor *a, const struct component *p, epoch prior)
{
    const bool store = p->kind == COMPONENT_TMEM_ST;
    uint32_t fenced;
    if (a->o->level < 2 || (p->kind != COMPONENT_TMEM_LD && !store)) return true;
    fenced = p->warp->chain[store ? COMPONENT_ST_FENCED : COMPONENT_LD_FENCED];
    return fenced && clock_get(&a->w->now.known, fenced) >= epoch_number(prior);
}

/* A load whose registers were used is over, whatever the ISA says of the order of memory: practice
 * does without tcgen05.wait::ld there. */
static bool load_used(const struct accessor *a, const struct component *p, epoch prior)
{
    uint32_t used = p->warp->chain[COMPONENT_LD_USED];
    return p->kind == COMPONENT_TMEM_LD && used &&
           clock_get(&a->w->now.known, used) >= epoch_number(prior);
}

/* What must be over before this, whether or not memory says so (a relaxed cluster barrier): a load that
 * has its values, and anything at all in columns that are given back. Libraries end their kernels so. */
static bool is_over(const struct touch *t, const struct accessor *a, const struct component *p,
                    epoch prior)
{
    return (a->gives_back || p->kind == COMPONENT_TMEM_LD) && clock_knows(&t->now->caused, prior);
}

/* A copy behind operations of its own warp. PTX ISA "Pipelined tcgen05 Instructions" orders a copy before an mma, not an
 * mma before a copy; libraries rely on both. */
static enum standing judge_queue(const struct touch *t, epoch prior, bool wrote)
{
    const struct accessor *a = t->context;
    const struct insn *in = insn_at(a->o, epoch_insn(prior));
    if (in && in->is.class == INSN_MMA && !clock_knows(&t->now->known, prior))
        accept(t, prior, wrote, FIND_TMEM_RACE, IDIOM_COPY_QUEUED);
    return STANDING_ORDERED;
}

/* PTX ISA "tcgen05 Memory Consistency Model": what is complete, and behind which fences. */
enum standing order_judge_tensor(struct touch *t, epoch prior, bool wrote)
{
    const struct accessor *a = t->context;
    struct component *p = order_component(a->w, epoch_component(prior));
    uint32_t fenced = p->warp->chain[COMPONENT_TENSOR_FENCED];
    if (epoch_component(prior) == epoch_component(t->self)) return judge_queue(t, prior, wrote);
    if (clock_knows(&t->now->known, prior)) {
        if (a->gives_back || (p->warp == a->w && p->kind != COMPONENT_TENSOR))
            return STANDING_ORDERED;
        if (!clock_knows(&a->w->after, prior))
            accept(t, prior, wrote, FIND_TMEM_WAIT, IDIOM_AFTER_MISSING);
        else if (!fenced_before(a, p, prior))
            accept(t, prior, wrote, FIND_TMEM_WAIT, IDIOM_BEFORE_MISSING);
        return STANDING_ORDERED;
    }
    if (is_over(t, a, p, prior)) {
        accept(t, prior, wrote, FIND_TMEM_WAIT, IDIOM_COLUMNS_LEFT);
        return STANDING_ORDERED;
    }
    if (clock_knows(&t->now->narrow, prior)) { /* no cache lies between a warp and its columns */
        accept(t, prior, wrote, FIND_TMEM_WAIT, IDIOM_SCOPE_LEFT_OUT);
        return STANDING_ORDERED;
    }
    if (load_used(a, p, prior)) {
        accept(t, prior, wrote, FIND_TMEM_WAIT, IDIOM_LOAD_USED);
        return STANDING_ORDERED;
    }
    if (a->gives_back) return report(t, prior, wrote, FIND_TMEM_DEALLOC, SEV_ERROR);
    if (p->kind == COMPONENT_TENSOR && a->class == CLASS_MMA && fenced &&
        clock_get(&t->now->known, fenced) >= epoch_number(prior))
        return STANDING_ORDERED;
    /* The stored value depends on the loaded one through registers (interpretation). */
    if (p->kind == COMPONENT_TMEM_LD && a->class == CLASS_TMEM_ST && p->warp == a->w)
        return STANDING_ACCEPTED;
    if (p->kind != COMPONENT_TENSOR && knows_issue(a->w, p, prior))
        return report(t, prior, wrote, FIND_TMEM_WAIT, SEV_ERROR);
    return report(t, prior, wrote, FIND_TMEM_RACE, SEV_ERROR);
}
