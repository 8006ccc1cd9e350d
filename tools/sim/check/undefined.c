/* Undefined values on their way through registers: undefined.h. */
#include "check/undefined.h"

#include "check/order_tell.h"
#include "machine/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REGISTERS_KEPT = 1024,
    WORDS_KEPT = 256
}; /* where there are more, the verdict is incomplete */

struct undefined_register {
    uint32_t offset, lanes; /* which register; in which lanes its value is undefined */
    const struct insn *in;  /* the shuffle or the load */
    bool whole;
};

/* Bytes of local memory, where compilers keep variables and parameters. */
struct undefined_word {
    uint64_t offset;
    uint32_t bytes, lanes;
    const struct insn *in;
    bool whole;
};

/* What an instruction takes in: lanes in which some of it is undefined, and since which shuffle or load.
 * `whole`: that was a tcgen05.ld none of whose columns anything had written. */
struct taken {
    uint32_t lanes;
    const struct insn *in;
    bool whole;
};

struct undefined {
    struct undefined_register at[REGISTERS_KEPT];
    struct undefined_word word[WORDS_KEPT];
    uint32_t count, words;
    bool full;           /* a register found no room */
    struct taken stored; /* by the store that runs now: an error if it is not to local memory */
};

/* Whether the argument is a register. One that stands for a list, or that the form lacks, has no bits. */
static bool is_register(struct arg a)
{
    return a.bits && !a.sink && a.bank == BANK_REGS;
}

static const struct undefined_register *find(const struct undefined *u, struct arg a)
{
    if (!is_register(a)) return NULL;
    for (uint32_t i = 0; i < u->count; i++)
        if (u->at[i].offset == a.offset) return &u->at[i];
    return NULL;
}

static void take(const struct undefined *u, struct arg a, uint32_t lanes, struct taken *t)
{
    const struct undefined_register *r = find(u, a);
    if (!r || !(r->lanes & lanes)) return;
    t->lanes |= r->lanes & lanes;
    t->in = r->in;
    t->whole |= r->whole;
}

/* In these lanes the register gets a value that is undefined where `t` says. */
static void put(struct undefined *u, struct arg a, uint32_t lanes, const struct taken *t)
{
    struct undefined_register *r = NULL;
    if (!is_register(a)) return;
    for (uint32_t i = 0; i < u->count && !r; i++)
        if (u->at[i].offset == a.offset) r = &u->at[i];
    if (!r) {
        u->full |= t->lanes && u->count == REGISTERS_KEPT;
        if (!t->lanes || u->count == REGISTERS_KEPT) return;
        r = &u->at[u->count++];
        *r = (struct undefined_register){.offset = a.offset};
    }
    r->lanes &= ~lanes;
    r->whole = (r->whole && r->lanes) || (t->whole && t->lanes & lanes);
    r->lanes |= t->lanes & lanes;
    if (t->in) r->in = t->in;
    if (!r->lanes) *r = u->at[--u->count];
}

/* ---- local memory ---- */

static bool overlaps(const struct undefined_word *word, uint64_t offset, uint64_t bytes)
{
    return word->offset < offset + bytes && offset < word->offset + word->bytes;
}

static void take_word(const struct undefined *u, uint32_t lane, uint64_t offset, uint64_t bytes,
                      struct taken *t)
{
    for (uint32_t i = 0; i < u->words; i++) {
        if (!(u->word[i].lanes >> lane & 1) || !overlaps(&u->word[i], offset, bytes)) continue;
        t->lanes |= 1U << lane;
        t->in = u->word[i].in;
        t->whole |= u->word[i].whole;
    }
}

/* The bytes of this lane get a value that is undefined where `t` says; false: no room. */
static bool put_word(struct undefined *u, uint32_t lane, uint64_t offset, uint64_t bytes,
                     const struct taken *t)
{
    const bool undefined = t->lanes >> lane & 1;
    struct undefined_word *same = NULL;
    for (uint32_t i = u->words; i-- > 0;) {
        struct undefined_word *word = &u->word[i];
        if (word->offset == offset && word->bytes == bytes && word->in == t->in &&
            word->whole == t->whole)
            same = word;
        if (offset <= word->offset && word->offset + word->bytes <= offset + bytes)
            word->lanes &= ~(1U << lane);
        if (!word->lanes && word != same) {
            *word = u->word[--u->words];
            if (same == &u->word[u->words]) same = word;
        }
    }
    if (!undefined) return true;
    if (!same) {
        if (u->words == WORDS_KEPT) return false;
        same = &u->word[u->words++];
        *same = (struct undefined_word){
            .offset = offset, .bytes = (uint32_t)bytes, .in = t->in, .whole = t->whole};
    }
    same->lanes |= 1U << lane;
    return true;
}

/* ---- instructions ---- */

/* Whether its result is in registers alone, so that what it takes in may still be dropped. */
static bool only_computes(const struct insn *in)
{
    return in->is.class == INSN_ALU || in->is.class == INSN_MOVE || in->is.class == INSN_LANES;
}

static void tell_unwritten(struct order_warp *w, const struct insn *in, const struct taken *t,
                           const char *how)
{
    char message[400];
    (void)snprintf(message, sizeof message,
                   "loads columns %s, and line %u %s. Cheapest remedy: write the "
                   "columns first (tcgen05.st, cp or mma), or read "
                   "those that were.",
                   t->whole ? "that nothing has written since tcgen05.alloc"
                            : "of which part was never written since tcgen05.alloc, or holds "
                              "what was loaded from such a part and stored again",
                   in->src->pos.line, how);
    tell_alone(w, t->in, first_lane(t->lanes), FIND_TMEM_UNINIT, "", message, in,
               "the undefined value is used here");
}

/* It comes from shared memory that nobody has written. Loads of whole vectors and tiles bring such, and programs compute with
 * it in ways that are not seen here to drop it, so only what global memory gets counts, and is no error. */
static bool is_fresh(const struct taken *t)
{
    return t->in->is.class == INSN_LOAD;
}

static void note_stored(struct order_warp *w, const struct insn *in, const struct taken *t)
{
    struct order *o = w->cta->cluster->order;
    char message[320];
    order_sampled(o, SAMPLED_UNWRITTEN, in);
    sim_idiom(o->group, in, IDIOM_UNWRITTEN_STORED);
    if (o->level < 2) return;
    (void)snprintf(message, sizeof message,
                   "stores to global memory what depends on shared memory that nobody has written, "
                   "which line %u reads. Cheapest remedy: write it first, or read where it was "
                   "written.",
                   t->in->src->pos.line);
    tell_warning(w, in, first_lane(t->lanes), FIND_UNINIT, "", message);
}

static void tell_used(struct order_warp *w, const struct insn *in, const struct taken *t,
                      const char *how)
{
    char message[480];
    if (is_fresh(t)) return;
    if (!t->in->is.exchanges) {
        tell_unwritten(w, in, t, how);
        return;
    }
    (void)snprintf(
        message, sizeof message,
        "this instruction takes values of lanes that do not execute it: they have exited, never "
        "existed, or are not in the member mask. What this lane gets is undefined, and "
        "line %u %s. Cheapest remedy: let the lanes exit later, or shuffle only among "
        "those that are left (a mask, a width, a predicate on what is out of range).",
        in->src->pos.line, how);
    tell_alone(w, t->in, first_lane(t->lanes), FIND_COLLECTIVE_PARTIAL, "", message, in,
               "the undefined value is used here");
}

/* ---- results that an undefined value does not reach ---- */

enum { FIXED_PROBES = 9, PROBES = FIXED_PROBES + 4, PROBED_BYTES = WARP_LANES * 8 };

struct registers_before {
    uint8_t of[INSN_ARGS][PROBED_BYTES]; /* of each argument */
    uint32_t carry;
};

/* The argument, of those that have a value and are not number i, at that place in their list; INSN_ARGS: none. */
static uint32_t other_than(const struct insn *in, uint32_t i, uint32_t place)
{
    for (uint32_t n = 0; n < INSN_ARGS; n++) {
        if (n == i || in->arg[n].bits < 8 || in->arg[n].sink) continue;
        if (!place--) return n;
    }
    return INSN_ARGS;
}

/* The ends of what an argument can be, as a number of any type, and some between; of two arguments,
 * different ones. */
static uint64_t fixed_probe(uint32_t number, bool odd, uint32_t bits)
{
    const uint64_t sign = UINT64_C(1) << (bits - 1);
    const uint64_t infinity = bits == 64   ? UINT64_C(0x7FF0000000000000)
                              : bits == 32 ? 0x7F800000
                                           : 0x7C00;
    switch (number) {
    case 0: return 0;
    case 1: return UINT64_MAX;
    case 2: return odd ? UINT64_MAX : 0;
    case 3: return odd ? 0xF1F1F1F1F1F1F1F1 : 0x7171717171717171;
    case 4: return odd ? sign : sign - 1;
    case 5: return odd ? sign - 1 : sign;
    case 6: return odd ? sign | infinity : infinity;
    case 7: return odd ? infinity : sign | infinity;
    default: return 1;
    }
}

/* A probe's value for an argument: one of those, and what the instruction's other arguments are. */
static uint64_t probe(const struct event *e, const struct registers_before *before, uint32_t number,
                      uint32_t i, uint32_t lane)
{
    const uint32_t bits = e->in->arg[i].bits;
    uint32_t other;
    uint64_t value = 0;
    if (number < FIXED_PROBES) return fixed_probe(number, i % 2, bits);
    other = other_than(e->in, i, number - FIXED_PROBES);
    if (other == INSN_ARGS) return fixed_probe(2 + number % 2, !(i % 2), bits);
    const struct arg a = e->in->arg[other];
    if (a.bank != BANK_REGS) return arg_lane(e->warp, a, lane);
    memcpy(&value, before->of[other] + (size_t)lane * (a.bits / 8U), a.bits / 8U);
    return value;
}

static size_t bytes_of(struct arg a)
{
    if (a.bank != BANK_REGS || a.sink) return 0;
    return a.bits == 1 ? sizeof(uint32_t) : WARP_LANES * (a.bits / 8U);
}

/* Runs the instruction with values of a probe in place of the undefined ones. */
static void try_probe(const struct undefined *u, const struct event *e, uint32_t dests,
                      const struct registers_before *before, uint32_t number)
{
    for (uint32_t i = 0; i < INSN_ARGS; i++) {
        const struct arg a = e->in->arg[i];
        const struct undefined_register *r = dests >> i & 1 ? NULL : find(u, a);
        for (uint32_t rest = r ? r->lanes & e->lanes : 0; rest; rest &= rest - 1) {
            const uint32_t lane = first_lane(rest);
            const uint64_t value = probe(e, before, number, i, lane);
            if (a.bits == 1)
                arg_set_pred(e->warp, a, 1U << lane, value & 1 ? 1U << lane : 0);
            else
                arg_set_lane(e->warp, a, lane, value);
        }
    }
    (void)e->in->fn(e->warp, e->in, e->lanes);
}

static void restore(const struct event *e, const struct registers_before *before)
{
    for (uint32_t i = 0; i < INSN_ARGS; i++)
        if (bytes_of(e->in->arg[i]))
            memcpy(arg_dst(e->warp, e->in->arg[i]), before->of[i], bytes_of(e->in->arg[i]));
    e->warp->carry = before->carry;
}

/* The lanes whose results do not depend on what is undefined: it is not chosen, masked, or multiplied by zero. Found by
 * running the instruction with several values, so a result that few values change may be missed. */
static uint32_t unreached(const struct undefined *u, const struct event *e, uint32_t dests)
{
    struct registers_before before = {.carry = e->warp->carry};
    uint64_t first[INSN_ARGS][WARP_LANES] = {{0}};
    const struct insn *in = e->in;
    uint32_t same = e->lanes;
    if (in->is.class != INSN_ALU || in->is.chance || in->list_count) return 0;
    for (uint32_t i = 0; i < INSN_ARGS; i++) {
        const size_t bytes = bytes_of(in->arg[i]);
        if (bytes > PROBED_BYTES) return 0;
        if (bytes) memcpy(before.of[i], arg_src(e->warp, in->arg[i]), bytes);
    }
    for (uint32_t number = 0; number < PROBES; number++) {
        try_probe(u, e, dests, &before, number);
        for (uint32_t i = 0; i < INSN_ARGS; i++) {
            if (!(dests >> i & 1) || !bytes_of(in->arg[i])) continue;
            for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
                const uint32_t lane = first_lane(rest);
                const uint64_t value = arg_lane(e->warp, in->arg[i], lane);
                if (!number) first[i][lane] = value;
                if (value != first[i][lane]) same &= ~(1U << lane);
            }
        }
        restore(e, &before);
    }
    return same;
}

/* The arguments that a lane's value depends on. */
static void take_arguments(const struct undefined *u, const struct event *e, uint32_t dests,
                           struct taken *t)
{
    for (uint32_t i = 0; i < INSN_ARGS; i++)
        if (!(dests >> i & 1)) take(u, e->in->arg[i], e->lanes, t);
    if (t->lanes) t->lanes &= ~unreached(u, e, dests);
}

static void on_values(struct order_warp *w, struct undefined *u, const struct event *e)
{
    const struct insn *in = e->in;
    struct taken taken = {0}, guard = {0};
    bool list;
    const uint32_t dests = row_results(in->row, &list);
    if (in->guard != NO_GUARD)
        take(u, (struct arg){.offset = in->guard, .bits = 1}, warp_frag(e->warp)->mask, &guard);
    if (guard.lanes && !only_computes(in)) tell_used(w, in, &guard, "depends on it");
    if (in->is.exchanges) return;
    take_arguments(u, e, dests, &taken);
    for (uint32_t i = 0; !list && i < in->list_count; i++) take(u, in->list[i], e->lanes, &taken);
    if (in->is.class == INSN_STORE)
        u->stored = taken; /* judged when the access is known */
    else if (taken.lanes && !taken.in->is.exchanges && in->is.class == INSN_TMEM_STORE &&
             !taken.whole)
        taken = (struct taken){0}; /* order_access.c follows it by columns */
    else if (taken.lanes && !only_computes(in) && in->is.class != INSN_CONTROL)
        tell_used(w, in, &taken, "uses it");
    if (in->is.class == INSN_LANES && taken.lanes) taken.lanes = e->lanes;
    if (!only_computes(in)) taken = (struct taken){0};
    taken.lanes |= guard.lanes;
    if (guard.lanes) taken.in = guard.in;
    taken.whole |= guard.whole;
    for (uint32_t i = 0; i < INSN_ARGS; i++)
        if (dests >> i & 1) put(u, in->arg[i], e->lanes | guard.lanes, &taken);
    for (uint32_t i = 0; list && i < in->list_count; i++)
        put(u, in->list[i], e->lanes | guard.lanes, &taken);
}

/* arg[0] gets what arg[2] holds in the lanes that e->addresses names. */
static void on_exchange(struct undefined *u, const struct event *e)
{
    const struct undefined_register *from = find(u, e->in->arg[2]);
    const uint32_t there = from ? from->lanes : 0;
    struct taken taken = {.in = there ? from->in : e->in, .whole = there && from->whole};
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        const uint64_t other = e->addresses[lane];
        if (other == NO_LANE) taken.in = e->in;
        if (other == NO_LANE || there >> other & 1) taken.lanes |= 1U << lane;
    }
    put(u, e->in->arg[0], e->lanes, &taken);
}

/* A register, or bytes of local memory, get what another register or other bytes hold. */
static bool on_passed(struct undefined *u, const struct event *e)
{
    const uint32_t lane = first_lane(e->lanes);
    struct taken taken = {0};
    if (e->addresses[1] != NO_LANE)
        take_word(u, lane, e->addresses[1], e->size, &taken);
    else
        take(u, e->in->arg[2], e->lanes, &taken);
    if (e->addresses[0] != NO_LANE) return put_word(u, lane, e->addresses[0], e->size, &taken);
    put(u, e->in->arg[0], e->lanes, &taken);
    return true;
}

/* What a load brings from local memory, and what a store leaves there; elsewhere it is an error. */
static bool on_local(struct order_warp *w, struct undefined *u, const struct event *e)
{
    const struct insn *in = e->in;
    struct taken taken = {0};
    bool list, kept = true;
    const uint32_t dests = row_results(in->row, &list);
    if (in->is.class == INSN_STORE) {
        taken = u->stored;
        taken.lanes &= e->lanes;
        if (taken.lanes && e->space == SPACE_SHARED && !taken.in->is.exchanges && !taken.whole)
            return true;
        if (e->space == SPACE_GLOBAL && taken.lanes && is_fresh(&taken))
            note_stored(w, in, &taken);
        else if (e->space != SPACE_LOCAL && taken.lanes)
            tell_used(w, in, &taken, "stores it");
        if (e->space != SPACE_LOCAL) return true;
        for (uint32_t rest = e->lanes; rest; rest &= rest - 1)
            kept &= put_word(u, first_lane(rest), e->addresses[first_lane(rest)], e->size, &taken);
        return kept;
    }
    if (in->is.class != INSN_LOAD || e->space != SPACE_LOCAL) return true;
    for (uint32_t rest = e->lanes; rest; rest &= rest - 1)
        take_word(u, first_lane(rest), e->addresses[first_lane(rest)], e->size, &taken);
    for (uint32_t i = 0; taken.lanes && i < INSN_ARGS; i++)
        if (dests >> i & 1) put(u, in->arg[i], e->lanes, &taken);
    for (uint32_t i = 0; list && taken.lanes && i < in->list_count; i++)
        put(u, in->list[i], e->lanes, &taken);
    return true;
}

/* ---- shared memory ---- */

/* Which bytes of a CTA's shared memory hold undefined values, and the load that one of them came by. */
struct undefined_bytes {
    const struct insn *in;
    uint64_t words[]; /* a bit a byte */
};

static bool follow(struct order *o, struct order_warp *w)
{
    if (!w->undefined) w->undefined = calloc(1, sizeof *w->undefined);
    if (!w->undefined) order_exhausted(o, NULL);
    return w->undefined != NULL;
}

void undefined_load(struct order *o, struct order_warp *w, const struct insn *in, struct arg r,
                    uint32_t lanes, bool whole)
{
    const struct taken taken = {lanes, in, whole};
    if (!follow(o, w)) return;
    put(w->undefined, r, lanes, &taken);
    order_keep(o, !w->undefined->full);
}

uint32_t undefined_lanes(const struct order_warp *w, struct arg r)
{
    const struct undefined_register *at = w->undefined ? find(w->undefined, r) : NULL;
    return at ? at->lanes : 0;
}

void undefined_overwritten(struct order_cta *c, uint64_t at, uint64_t bytes)
{
    for (uint64_t i = at; i < at + bytes; i++)
        c->undefined_bytes->words[i / 64] &= ~(UINT64_C(1) << i % 64);
}

static bool any_undefined(const struct undefined_bytes *u, uint64_t at, uint64_t bytes)
{
    for (uint64_t i = at; i < at + bytes; i++)
        if (u->words[i / 64] >> i % 64 & 1) return true;
    return false;
}

/* The lanes of a load or store one of whose registers has its bytes at `part` of the lane's. `store`: of those whose value is
 * undefined, the bytes are; of a load, those that find such bytes are returned. */
static uint32_t staged_lanes(const struct order_warp *w, const struct event *e, uint64_t part,
                             uint64_t bytes, bool store, uint32_t lanes)
{
    struct undefined_bytes *u = w->cta->undefined_bytes;
    uint32_t found = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        const uint32_t lane = first_lane(rest);
        struct cta *cta;
        uint32_t at;
        if (!mem_shared(e->warp, (uint32_t)e->addresses[lane], &cta, &at) || cta != e->cta ||
            at + e->size > cta->shared_bytes)
            continue;
        for (uint64_t i = at + part; store && i < at + part + bytes; i++)
            u->words[i / 64] |= UINT64_C(1) << i % 64;
        if (!store && any_undefined(u, at + part, bytes)) found |= 1U << lane;
    }
    return found;
}

/* The CTA's bytes are followed from now on, if undefined values of columns are stored there. */
static bool follow_bytes(struct order *o, const struct order_warp *w, const struct event *e)
{
    struct order_cta *c = w->cta;
    const struct taken *stored = w->undefined ? &w->undefined->stored : NULL;
    if (!stored || !(stored->lanes & e->lanes) || stored->in->is.exchanges) return false;
    if (!c->undefined_bytes)
        c->undefined_bytes =
            calloc(1, sizeof *c->undefined_bytes + e->cta->shared_bytes / 64 * 8 + 8);
    if (c->undefined_bytes) c->undefined_bytes->in = stored->in;
    order_keep(o, c->undefined_bytes != NULL);
    return c->undefined_bytes != NULL;
}

void undefined_fresh(struct order *o, struct order_warp *w, const struct event *e)
{
    const struct insn *in = e->in;
    const uint32_t count = in->list_count ? in->list_count : 1;
    const uint64_t bytes = e->size / count;
    if (in->is.class != INSN_LOAD || e->token || !e->addresses) return;
    for (uint32_t i = 0; i < count; i++) {
        const struct arg r = in->list_count ? in->list[i] : in->arg[0];
        uint32_t lanes = 0;
        for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
            const uint32_t lane = first_lane(rest);
            struct cta *cta;
            uint32_t at;
            if (mem_shared(e->warp, (uint32_t)e->addresses[lane], &cta, &at) && cta == e->cta &&
                at + e->size <= cta->shared_bytes &&
                shadow_unwritten(&w->cta->cluster->shadow, w->cta->shared, SHARED_CELL,
                                 at + i * bytes, bytes))
                lanes |= 1U << lane;
        }
        if (!lanes) continue;
        e->warp->undefined = true;
        undefined_load(o, w, in, r, lanes, false);
    }
}

void undefined_staged(struct order *o, struct order_warp *w, const struct event *e)
{
    const struct insn *in = e->in;
    const bool store = in->is.class == INSN_STORE;
    const uint32_t count = in->list_count ? in->list_count : 1;
    if (e->token || !e->addresses || (!store && in->is.class != INSN_LOAD)) return;
    if (store ? !follow_bytes(o, w, e) : !w->cta->undefined_bytes) return;
    for (uint32_t i = 0; i < count; i++) {
        const struct arg r = in->list_count ? in->list[i] : in->arg[store ? 1 : 0];
        const uint64_t bytes = e->size / count;
        uint32_t lanes = store ? undefined_lanes(w, r) & e->lanes : e->lanes;
        lanes = staged_lanes(w, e, i * bytes, bytes, store, lanes);
        if (store || !lanes) continue;
        e->warp->undefined = true;
        undefined_load(o, w, w->cta->undefined_bytes->in, r, lanes, false);
    }
}

void undefined_event(struct order *o, struct order_warp *w, const struct event *e)
{
    if (!w->undefined && (e->kind != EV_EXCHANGE || !follow(o, w))) return;
    switch (e->kind) {
    case EV_EXCHANGE: on_exchange(w->undefined, e); break;
    case EV_PASSED: order_keep(o, on_passed(w->undefined, e)); break;
    case EV_ACCESS:
        if (!e->token && e->addresses) order_keep(o, on_local(w, w->undefined, e));
        break;
    default:
        w->undefined->stored = (struct taken){0};
        if (w->undefined->count) on_values(w, w->undefined, e);
    }
    order_keep(o, !w->undefined->full);
}
