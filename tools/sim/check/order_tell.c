/* Findings about order, in words (order_tell.h). */
#include "check/order_tell.h"
#include "async/mbar.h"
#include "decode/names.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOLD_MOST = 256, SEVERAL = 96 };

struct told {
    enum finding_kind kind;
    uint32_t first, second; /* instructions, smaller index first */
    struct finding finding;
};

/* ---- collecting ---- */

/* A new finding to fill in, or NULL when this pair of instructions has one: it counts there. The kind
 * that was found first stands for the pair, so that one error is not told in two ways. */
static struct finding *told_new(struct order *o, enum finding_kind kind, uint32_t a, uint32_t b,
                                enum finding_severity severity)
{
    const uint32_t first = a < b ? a : b, second = a < b ? b : a;
    struct told *t;
    for (uint32_t i = 0; i < o->told_count; i++) {
        t = &o->told[i];
        if (t->first != first || t->second != second) continue;
        if (t->kind != kind && t->finding.severity > severity) continue;
        t->finding.repeats++;
        return NULL;
    }
    /* Unrolled code has many pairs for one error: past a point they count with the first of their kind. */
    for (uint32_t i = 0; o->told_count >= TOLD_MOST && i < o->told_count; i++) {
        t = &o->told[i];
        if (t->kind != kind || t->finding.severity > severity) continue;
        t->finding.repeats++;
        return NULL;
    }
    if (o->told_count == o->told_capacity) {
        uint32_t capacity = o->told_capacity ? 2 * o->told_capacity : 4;
        struct told *grown = realloc(o->told, capacity * sizeof *grown);
        if (!grown) {
            order_exhausted(o, NULL);
            return NULL;
        }
        o->told = grown;
        o->told_capacity = capacity;
    }
    t = &o->told[o->told_count++];
    *t = (struct told){.kind = kind, .first = first, .second = second};
    t->finding.kind = kind;
    t->finding.severity = severity;
    return &t->finding;
}

void tell_end(struct order *o)
{
    for (uint32_t i = 0; i < o->told_count; i++) sim_report(o->group->launch, &o->told[i].finding);
    free(o->told);
    o->told = NULL;
    o->told_count = 0;
    if (!o->exhausted || o->ended) return;
    sim_find(o->group, NULL, NULL, NO_LANE, SEV_WARNING, FIND_UNSUPPORTED, CAUSE_NONE, "",
             "the order of accesses was checked only up to a point: %s ran out",
             o->limit ? o->limit : "host memory");
}

/* ---- pieces ---- */

static const struct insn *insn_at(const struct order *o, uint32_t index)
{
    return index < o->kernel->insn_count ? &o->kernel->insns[index] : NULL;
}

static void put_place(struct order *o, struct finding *f, const struct order_warp *w,
                      const struct insn *in, uint32_t lane)
{
    f->kernel = o->kernel->entry->name;
    f->file = f->instr = "";
    if (in) finding_at(f, o->kernel->module, in->src);
    f->group = o->group->index;
    f->seq = o->group->finding_seq++;
    memcpy(f->cta, w->warp->cta->id, sizeof f->cta);
    f->warp = (int32_t)w->warp->id;
    f->lane = lane < WARP_LANES ? (int32_t)lane : -1;
}

__attribute__((format(printf, 4, 5))) static void relate(const struct order *o, struct finding *f,
                                                         const struct insn *in, const char *format,
                                                         ...)
{
    struct finding_related *r;
    va_list args;
    if (f->related_count == FINDING_RELATED) return;
    r = &f->related[f->related_count++];
    *r = (struct finding_related){.file = ""};
    if (in) {
        r->file = ptx_file(o->kernel->module, in->src->pos);
        r->line = in->src->pos.line;
    }
    va_start(args, format);
    (void)vsnprintf(r->note, sizeof r->note, format, args);
    va_end(args);
}

/* "producer (warp 4) of CTA (0,0,0)" */
static void who(const struct order *o, const struct order_warp *w, char text[SEVERAL])
{
    char name[48];
    const uint32_t *id = w->warp->cta->id;
    (void)name_warp(o->kernel, w->warp->id, name, sizeof name);
    (void)snprintf(text, SEVERAL, "%s of CTA (%u,%u,%u)", name, id[0], id[1], id[2]);
}

/* The same of an earlier access of another cluster. */
static void who_abroad(const struct order *o, const struct actor *a, char text[SEVERAL])
{
    char name[48];
    (void)name_warp(o->kernel, a->warp, name, sizeof name);
    (void)snprintf(text, SEVERAL, "%s of CTA (%u,%u,%u)", name, a->cta[0], a->cta[1], a->cta[2]);
}

/* "full_bar[1]", with its CTA where that is not the warp's. */
static void barrier_of(const struct order *o, const struct order_bar *b, const struct order_warp *w,
                       char text[SEVERAL])
{
    const uint32_t *id = b->cta->cta->id;
    const size_t n = strlen(name_shared(o->kernel, b->offset, text, SEVERAL));
    if (b->cta != w->cta)
        (void)snprintf(text + n, SEVERAL - n, " of CTA (%u,%u,%u)", id[0], id[1], id[2]);
}

static void where(const struct order *o, const struct conflict *c, char text[SEVERAL])
{
    if (c->place == PLACE_SHARED)
        (void)name_shared(o->kernel, (uint32_t)c->at, text, SEVERAL);
    else if (c->place == PLACE_TENSOR)
        (void)name_columns(o->kernel, (uint32_t)c->at, (uint32_t)c->bytes, text, SEVERAL);
    else
        (void)snprintf(text, SEVERAL, "global memory");
}

static bool generic_component(uint8_t kind)
{
    return kind == COMPONENT_WARP || kind == COMPONENT_CP_ASYNC || kind == COMPONENT_REMOTE_STORE;
}

/* ---- what would put it right ---- */

static const char *fix_wait(uint8_t kind)
{
    switch (kind) {
    case COMPONENT_WGMMA:
        return "wgmma.commit_group and wgmma.wait_group before this, or before the signal that "
               "lets "
               "it happen";
    case COMPONENT_CP_ASYNC:
        return "cp.async.wait_group (then a barrier for other threads), or "
               "cp.async.mbarrier.arrive "
               "and a wait";
    case COMPONENT_BULK_READ:
        return "cp.async.bulk.commit_group and cp.async.bulk.wait_group.read by the thread that "
               "issued it (then a barrier for other threads), before the memory is written again";
    case COMPONENT_BULK_DONE:
        return "cp.async.bulk.commit_group and cp.async.bulk.wait_group (not .read) by the thread "
               "that issued it";
    case COMPONENT_TENSOR: return "tcgen05.commit on an mbarrier and a wait for it";
    case COMPONENT_TMEM_LD: return "tcgen05.wait::ld by the loading warp before it signals";
    case COMPONENT_TMEM_ST: return "tcgen05.wait::st by the storing warp before it signals";
    case COMPONENT_COPY:
    case COMPONENT_REMOTE_STORE: return "a wait for the mbarrier phase on which the copy completes";
    default: return NULL;
    }
}

#define FENCE_LOCK                                                                                \
    "fence.acq_rel behind the atomic that takes the lock, or .acquire on it; .gpu where holders " \
    "are of "                                                                                     \
    "several clusters"

/* A relaxed access has read a flag that says that the earlier access is over. */
static bool seen_unfenced(const struct conflict *c)
{
    const struct clock *seen = horizon_of(c->warp->now.abroad_observed, c->abroad->cluster);
    return seen && clock_get(seen, c->abroad->component) >= epoch_number(c->prior);
}

/* Clusters: PTX ISA "Release and acquire patterns". */
static const char *fix_abroad(const struct conflict *c)
{
    const uint8_t kind = c->abroad->kind;
    if (c->cached) return c->fix;
    if (c->locked) return FENCE_LOCK;
    if (c->kind == FIND_PROXY)
        return "fence.proxy.async by the thread that made the generic access, after it and before "
               "the release, or by the one that issues the copy, after the acquire";
    if (c->kind == FIND_TENSORMAP_PROXY)
        return "fence.proxy.tensormap::generic.release.gpu by the writer before it releases, and "
               "fence.proxy.tensormap::generic.acquire.gpu behind the acquire";
    if (kind == COMPONENT_BULK_DONE)
        return "cp.async.bulk.commit_group and cp.async.bulk.wait_group (not .read) by the thread "
               "that issued it, then a release of .gpu scope, and an acquire before this access";
    if (kind == COMPONENT_BULK_READ)
        return "cp.async.bulk.commit_group and cp.async.bulk.wait_group.read by the thread that "
               "issued it, then a release of .gpu scope, and an acquire before this access";
    if (seen_unfenced(c))
        return "fence.acq_rel.gpu behind the relaxed load or atomic that has read the flag, or "
               ".acquire.gpu on it: without one what comes behind may still see the memory of "
               "before";
    return "behind the earlier access a release of .gpu scope (st.release, red.release, or "
           "fence.acq_rel.gpu and then a strong store or atomic; a CTA barrier before it if "
           "another "
           "thread releases), and before this one an acquire that reads what the release wrote; or "
           "atomics for both; or two launches";
}

static const char *fix_for(const struct conflict *c, const struct component *prior)
{
    const bool same_cta = prior->warp->cta == c->warp->cta;
    const char *fix = fix_wait(prior->kind);
    if (c->fix) return c->fix;
    if (c->locked) return FENCE_LOCK;
    if (c->kind == FIND_TMEM_WAIT && c->severity == SEV_WARNING &&
        clock_knows(&c->warp->now.known, c->prior))
        return "tcgen05.fence::after_thread_sync behind the wait (and ::before_thread_sync ahead "
               "of "
               "the signal, where that is not tcgen05.commit)";
    if (c->kind == FIND_TMEM_RACE && prior->kind == COMPONENT_TMEM_LD)
        return "tcgen05.wait::ld by the loading warp, then a barrier that leads from there to here "
               "(tcgen05.fence::before_thread_sync ahead of it, ::after_thread_sync behind)";
    if (c->kind == FIND_TMEM_RACE && prior->kind == COMPONENT_TMEM_ST)
        return "tcgen05.wait::st by the storing warp, then a barrier that leads from there to here "
               "(tcgen05.fence::before_thread_sync ahead of it, ::after_thread_sync behind)";
    if (c->kind == FIND_PROXY)
        return "fence.proxy.async by the thread that made the generic access, after it and before "
               "the signal (barrier or arrive) that leads here";
    if (c->kind == FIND_TENSORMAP_PROXY && !c->wrote)
        return "fence.proxy.tensormap::generic.release by the writer and "
               "fence.proxy.tensormap::generic.acquire in the CTA that issues the copy, with a "
               "barrier between where they are different threads";
    if (fix) return fix;
    if (c->kind == FIND_RACE && !c->abroad && clock_knows(&c->warp->now.narrow, c->prior))
        return "mbarrier.arrive.release.cluster and mbarrier.try_wait.acquire.cluster";
    if (c->place == PLACE_TENSOR)
        return "an mbarrier or bar.sync between, with tcgen05.fence::before_thread_sync ahead of "
               "it "
               "and ::after_thread_sync behind";
    if (c->async && c->wrote && c->prior_wrote)
        return same_cta ? "fence.proxy.async after the store, then a barrier or mbarrier for which "
                          "the issuing thread waits before it issues the copy"
                        : "fence.proxy.async after the store, then barrier.cluster before the copy "
                          "is issued";
    if (c->async && c->wrote)
        return same_cta ? "the readers arrive (mbarrier.arrive or a barrier) after their last "
                          "access, and the issuing thread waits for that before it issues the copy"
                        : "the readers arrive (at the issuing CTA's mbarrier, or barrier.cluster) "
                          "after their last access, and the issuing thread waits for that before "
                          "it issues the copy";
    if (same_cta) return "bar.sync, or an mbarrier arrive and wait, between the two";
    return "barrier.cluster, or an arrive on the other CTA's mbarrier and a wait, between the two";
}

/* ---- whole findings ---- */

static const char *verb(bool wrote, bool async)
{
    if (async) return wrote ? "asynchronously writes" : "asynchronously reads";
    return wrote ? "writes" : "reads";
}

static const char *why(const struct conflict *c, const struct insn *other)
{
    switch (c->kind) {
    case FIND_PROXY:
        return "are ordered, but by different proxies with no fence.proxy.async of this memory "
               "between: the later one may not see the earlier";
    case FIND_TENSORMAP_PROXY:
        return c->wrote ? "overlap: a copy may still be reading its tensor map there"
                        : "are not ordered for tensor maps: copies read them by a proxy of its own";
    case FIND_ASYNC_REUSE: return "overlap: nothing makes sure that the earlier one is complete";
    case FIND_WGMMA_WAIT: return "overlap: no wgmma.wait_group waits for the earlier one";
    case FIND_TMEM_WAIT:
        if (c->severity == SEV_WARNING && !clock_knows(&c->warp->now.known, c->prior))
            return "are ordered only by the use of the registers that were loaded: no "
                   "tcgen05.wait::ld orders the memory";
        return c->severity == SEV_WARNING
                   ? "are ordered by a barrier, but without tcgen05.fence::before_thread_sync "
                     "ahead "
                     "of it or ::after_thread_sync behind it"
                   : "overlap: the earlier was issued, but nothing waits for it to complete";
    case FIND_TMEM_DEALLOC: return "overlap: the columns are given back while they may be in use";
    default:
        if (c->cached && c->in->is.texture)
            return "are ordered, but textures are for memory that nothing changes during the "
                   "launch: "
                   "the fetch may bring what a cache has held since before the write";
        if (c->cached && c->in->space == SPACE_CONST)
            return "are ordered, but .const is for memory that nothing changes during the launch: "
                   "its cache does not follow stores";
        if (c->cached)
            return "are ordered, but .nc is for memory that nothing changes during the launch: it "
                   "may "
                   "bring what a cache has held since before the write";
        if (c->locked)
            return "are ordered only by a lock, which was taken without an acquire whose scope "
                   "includes "
                   "both: a load may bring what was there before the other holder's store, and of "
                   "two "
                   "stores the other holder's may stay";
        if (c->in->is.strong && other && other->is.strong &&
            (c->in->is.by_volatile || other->is.by_volatile))
            return "are not ordered, and .volatile orders nothing in CUDA C++: what is left, or "
                   "read, depends on which comes first";
        if (!c->abroad && clock_knows(&c->warp->now.narrow, c->prior))
            return "are ordered only by an mbarrier arrival or wait of .cta scope (which is "
                   "meant where none is written). That hands nothing to threads of another CTA: "
                   "arrival and wait need .cluster";
        return c->abroad ? "are not ordered: no release and acquire of .gpu scope lead from one "
                           "cluster to the other, whichever ran first"
                         : "are not ordered: nothing leads from one to the other, whichever ran "
                           "first";
    }
}

static void note_sides(const struct order *o, struct finding *f, const struct conflict *c,
                       const struct component *p)
{
    char text[SEVERAL];
    if (c->warp->acquired) {
        who(o, c->warp, text);
        relate(o, f, c->warp->acquired, "%s last waited for others here", text);
    } else {
        relate(o, f, NULL, "the warp of the later access has waited for nobody so far");
    }
    if (!p) return;
    who(o, p->warp, text);
    if (p->warp->handed_over)
        relate(o, f, p->warp->handed_over, "%s last signalled to others here", text);
    else
        relate(o, f, NULL, "%s has signalled to nobody so far", text);
}

/* The mbarrier that the warp last waited for: its offset; 0: the last wait was for something else. */
static uint32_t last_phase(const struct order_warp *w)
{
    const struct order_passes *p = w->passes;
    const uint32_t last = p && p->count ? (p->count - 1) % PASSES_KEPT : 0;
    return p && p->count && p->at[last].in->is.waits == WAITS_PHASE ? p->at[last].key : 0;
}

void tell_conflict(struct order *o, const struct conflict *c)
{
    const struct component *p =
        c->abroad ? NULL : order_component(c->warp, epoch_component(c->prior));
    const bool async = !generic_component(c->abroad ? c->abroad->kind : p->kind);
    const struct insn *other = insn_at(o, epoch_insn(c->prior));
    char object[SEVERAL], mine[SEVERAL], theirs[SEVERAL];
    struct finding *f =
        told_new(o, c->kind, order_insn_index(o, c->in), epoch_insn(c->prior), c->severity);
    if (!f) return;
    put_place(o, f, c->warp, c->in, c->lane);
    if (!c->in->used && !(other && other->used)) f->behind = last_phase(c->warp);
    where(o, c, object);
    who(o, c->warp, mine);
    if (c->abroad)
        who_abroad(o, c->abroad, theirs);
    else
        who(o, p->warp, theirs);
    (void)snprintf(f->object, sizeof f->object, "%.*s", (int)sizeof f->object - 1, object);
    (void)snprintf(f->message, sizeof f->message,
                   "%s %s %llu %s%s at %s (0x%llx), which %s %s at line %u; the two %s. Cheapest "
                   "remedy: %s.",
                   mine, c->kind == FIND_USE_AFTER_FREE ? "frees" : verb(c->wrote, c->async),
                   (unsigned long long)c->bytes, c->place == PLACE_TENSOR ? "column" : "byte",
                   c->bytes == 1 ? "" : "s", object, (unsigned long long)c->at, theirs,
                   verb(c->prior_wrote, async), other ? other->src->pos.line : 0, why(c, other),
                   c->abroad ? fix_abroad(c) : fix_for(c, p));
    relate(o, f, other, "the earlier access: %s %s", theirs, verb(c->prior_wrote, async));
    if (c->abroad && o->world->again)
        relate(o, f, o->world->again,
               "this stores what the flag held already: whoever waits for it may have gone on "
               "before. Clear it "
               "before the launch, or behind the wait");
    note_sides(o, f, c, p);
}

void tell_init(struct order_warp *w, const struct order_bar *b, const struct event *e)
{
    struct order *o = w->cta->cluster->order;
    const struct component *by = order_component(w, epoch_component(b->init));
    const struct insn *init = insn_at(o, epoch_insn(b->init));
    char object[SEVERAL], mine[SEVERAL], theirs[SEVERAL];
    struct finding *f = told_new(o, FIND_MBARRIER_INIT_ORDER, order_insn_index(o, e->in),
                                 epoch_insn(b->init), SEV_ERROR);
    if (!f) return;
    put_place(o, f, w, e->in, e->lanes ? first_lane(e->lanes) : NO_LANE);
    (void)name_shared(o->kernel, b->offset, object, sizeof object);
    who(o, w, mine);
    who(o, by->warp, theirs);
    (void)snprintf(f->object, sizeof f->object, "%.*s", (int)sizeof f->object - 1, object);
    barrier_of(o, b, w, object);
    (void)snprintf(
        f->message, sizeof f->message,
        "%s uses mbarrier %s, which %s, lane %u, initialises at line %u, and nothing makes the "
        "initialisation visible here%s. Cheapest remedy: %s.",
        mine, object, theirs, b->init_lane, init ? init->src->pos.line : 0,
        by->warp->chain[COMPONENT_INIT_FENCED] && !b->init_fenced
            ? " (fence.mbarrier_init covers what its own thread initialised, and another thread "
              "executed it)"
            : "",
        by->warp->cta == w->cta
            ? "a bar.sync between the initialisation and the first use"
            : "fence.mbarrier_init by the initialising thread, then barrier.cluster by all");
    relate(o, f, init, "initialised here by %s", theirs);
}

const struct insn *tell_insn(const struct order *o, epoch e)
{
    return e ? insn_at(o, epoch_insn(e)) : NULL;
}

static const char *phase_text(enum tell_phase_kind kind)
{
    switch (kind) {
    case TELL_ARRIVES_EARLY:
        return "%s signals %s for its phase %llu here, but nothing makes this come after the "
               "arrival "
               "of %s in the phase before (line %u): in another order it counts in that phase, "
               "which "
               "then completes without the other. Cheapest remedy: wait for the phase before it "
               "(or "
               "for those who arrive in it) first.";
    case TELL_WAITS_LATE:
        return "%s waits here for the phase of %s before phase %llu, but that one can complete "
               "first: "
               "nothing that %s does for it (line %u) comes after this wait. A parity tells a "
               "phase "
               "from the next, not from the next but one: a wait that comes too late sleeps for a "
               "phase that may never be. Cheapest remedy: whoever waits signals that it has "
               "passed, "
               "and who signals this barrier again waits for that.";
    case TELL_COPIES_EARLY:
        return "%s issues a copy on %s for its phase %llu (line %u), but nothing makes it come "
               "after the phase "
               "before (%s, line %u): that phase expected fewer bytes than its copies bring, and "
               "completed "
               "without this one. Cheapest remedy: expect the bytes of all its copies.";
    case TELL_LANES_SPILL:
        return "several lanes of %s arrive at %s by this one instruction, and they count in more "
               "than one "
               "phase (now %llu): the barrier expects fewer arrivals than come. Cheapest remedy: "
               "elect one "
               "lane, or count them all in mbarrier.init.";
    case TELL_WAITS_EARLY:
        return "%s waits here for %s and is let pass by the phase before phase %llu, but does not "
               "come after "
               "the phase before that one (%s, line %u): had it come earlier, its parity would "
               "have let it "
               "pass at once. Cheapest remedy: wait for every phase in turn, or let a barrier "
               "order this "
               "wait after the phases it skips.";
    case TELL_PASSES_TWICE:
        return "%s waits here for %s, and the phase before phase %llu lets it pass for the second "
               "time. If "
               "a new phase was meant, its parity was not turned since.";
    case TELL_ENDS_EARLY:
        return "%s invalidates %s here (phase %llu), but nothing makes this come after its use by "
               "%s at line "
               "%u: in another order that one finds no mbarrier. Cheapest remedy: a bar.sync, or "
               "another barrier for all that use it, ahead of mbarrier.inval.";
    default:
        return "%s waits here for phase %llu of %s, but nothing makes sure that the phase before "
               "is "
               "over (%s, line %u): if it came earlier, the same parity would let it pass at once. "
               "Either its parity is wrong, or it has missed a phase.";
    }
}

/* Who expected bytes in the last complete phase, or NULL. */
static const struct insn *expected_by(const struct order_bar *b)
{
    const struct mbar *m = mbar_at(b->cta->cta, b->offset);
    for (uint32_t n = 0; m && n < m->kept_before; n++) {
        if (m->before[n].bytes > 0) return m->before[n].in;
    }
    return NULL;
}

void tell_phase(struct order *o, struct order_warp *w, const struct order_bar *b,
                const struct insn *in, enum tell_phase_kind kind, epoch other)
{
    const struct component *c = other ? order_component(w, epoch_component(other)) : NULL;
    const struct insn *theirs_in = tell_insn(o, other);
    const uint32_t line = theirs_in ? theirs_in->src->pos.line : 0;
    char object[SEVERAL], mine[SEVERAL], theirs[SEVERAL] = "nobody";
    const enum finding_kind found = kind == TELL_COPIES_EARLY ? FIND_MBARRIER_TX
                                    : kind == TELL_ENDS_EARLY ? FIND_MBARRIER_UNINIT
                                    : kind == TELL_ARRIVES_EARLY || kind == TELL_LANES_SPILL
                                        ? FIND_MBARRIER_OVERRUN
                                        : FIND_MBARRIER_PHASE;
    const struct insn *cited = kind == TELL_COPIES_EARLY ? expected_by(b) : NULL;
    struct finding *f = told_new(o, found, order_insn_index(o, in),
                                 other ? epoch_insn(other) : EPOCH_INSN_MAX, SEV_ERROR);
    const unsigned long long phase = b->point.generation;
    order_sampled(o, SAMPLED_PHASES, in);
    if (!f) return;
    if (found == FIND_MBARRIER_OVERRUN) f->behind = b->offset;
    put_place(o, f, w, cited ? cited : in, NO_LANE);
    (void)name_shared(o->kernel, b->offset, object, sizeof object);
    who(o, w, mine);
    if (c) who(o, c->warp, theirs);
    (void)snprintf(f->object, sizeof f->object, "%.*s", (int)sizeof f->object - 1, object);
    barrier_of(o, b, w, object);
    if (kind == TELL_COPIES_EARLY)
        (void)snprintf(f->message, sizeof f->message, phase_text(kind), mine, object, phase,
                       in->src->pos.line, theirs, line);
    else if (kind == TELL_SLEEPS_LATE)
        (void)snprintf(f->message, sizeof f->message, phase_text(kind), mine, phase, object, theirs,
                       line);
    else
        (void)snprintf(f->message, sizeof f->message, phase_text(kind), mine, object, phase, theirs,
                       line);
    if (theirs_in)
        relate(o, f, theirs_in,
               kind == TELL_ENDS_EARLY   ? "%s uses the barrier here"
               : kind == TELL_WAITS_LATE ? "%s signals the next phase here"
                                         : "%s signals the phase before here",
               theirs);
}

static void tell_as(struct order_warp *w, const struct insn *in, uint32_t lane,
                    enum finding_kind kind, enum finding_severity severity, const char *object,
                    const char *message, const struct insn *other, const char *note)
{
    struct order *o = w->cta->cluster->order;
    struct finding *f = told_new(o, kind, order_insn_index(o, in),
                                 other ? order_insn_index(o, other) : EPOCH_INSN_MAX, severity);
    if (!f) return;
    put_place(o, f, w, in, lane);
    (void)snprintf(f->object, sizeof f->object, "%.*s", (int)sizeof f->object - 1, object);
    (void)snprintf(f->message, sizeof f->message, "%s", message);
    if (other) relate(o, f, other, "%s", note);
}

void tell_alone(struct order_warp *w, const struct insn *in, uint32_t lane, enum finding_kind kind,
                const char *object, const char *message, const struct insn *other, const char *note)
{
    tell_as(w, in, lane, kind, SEV_ERROR, object, message, other, note);
}

void tell_warning(struct order_warp *w, const struct insn *in, uint32_t lane,
                  enum finding_kind kind, const char *object, const char *message)
{
    tell_as(w, in, lane, kind, SEV_WARNING, object, message, NULL, NULL);
}
