/*
 * mbarrier objects (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").
 * The word in shared memory is the barrier; the record beside it knows what the word should be, how
 * often the phase turned, and who came.
 */
#include "async/mbar.h"
#include "async/late.h"
#include "machine/event.h"
#include "machine/mem.h"
#include "decode/names.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TX_LIMIT = (1 << 20) - 1,
    TX_BITS = 21,
    COUNT_BITS = 20,
    PENDING_SHIFT = TX_BITS,
    EXPECTED_SHIFT = PENDING_SHIFT + COUNT_BITS,
    PARITY_SHIFT = EXPECTED_SHIFT + COUNT_BITS,
    PATTERN_SHIFT = PARITY_SHIFT + 1,
    /* Top bits 10: neither zeros, poison bytes nor an ordinary floating-point number. */
    PATTERN = 2,
    WORD_BYTES = 8,
    OBJECT_TEXT = 96
};

/* place[offset / 8]: 1 + index of the record of the barrier there, 0 for none. */
struct mbar_table {
    uint16_t *place;
    uint32_t words;
    struct mbar **records; /* [0, count) in use, [count, made) left from earlier CTAs */
    uint32_t count, made, capacity;
};

/* ---- table ---- */

struct mbar_table *mbar_table_new(uint32_t shared_bytes)
{
    struct mbar_table *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->words = shared_bytes / WORD_BYTES + 1;
    t->place = calloc(t->words, sizeof *t->place);
    if (t->place) return t;
    free(t);
    return NULL;
}

void mbar_table_free(struct mbar_table *t)
{
    if (!t) return;
    for (uint32_t i = 0; i < t->made; i++) free(t->records[i]);
    free(t->records);
    free(t->place);
    free(t);
}

void mbar_table_reset(struct mbar_table *t)
{
    for (uint32_t i = 0; i < t->count; i++) t->place[t->records[i]->offset / WORD_BYTES] = 0;
    t->count = 0;
}

struct mbar *mbar_at(const struct cta *cta, uint32_t offset)
{
    const struct mbar_table *t = cta->mbars;
    uint32_t word = offset / WORD_BYTES;
    if (offset % WORD_BYTES || word >= t->words || !t->place[word]) return NULL;
    return t->records[t->place[word] - 1];
}

/* Records keep the order of first initialisation; place holds the index of each. */
struct mbar *mbar_next(const struct cta *cta, const struct mbar *after)
{
    const struct mbar_table *t = cta->mbars;
    uint32_t i = after ? t->place[after->offset / WORD_BYTES] : 0;
    for (; i < t->count; i++) {
        if (t->records[i]->live) return t->records[i];
    }
    return NULL;
}

static struct mbar *record_new(struct cta *cta, uint32_t offset)
{
    struct mbar_table *t = cta->mbars;
    struct mbar *b = mbar_at(cta, offset);
    if (b) return b;
    if (t->count == UINT16_MAX) return NULL;
    if (t->count == t->capacity) {
        uint32_t capacity = t->capacity ? 2 * t->capacity : 16;
        struct mbar **records = realloc(t->records, capacity * sizeof(*records));
        if (!records) return NULL;
        t->records = records;
        t->capacity = capacity;
    }
    if (t->count == t->made) {
        t->records[t->made] = malloc(sizeof *b);
        if (!t->records[t->made]) return NULL;
        t->made++;
    }
    b = t->records[t->count++];
    t->place[offset / WORD_BYTES] = (uint16_t)t->count;
    b->offset = offset;
    b->live = false;
    return b;
}

/* ---- the word ---- */

static uint64_t pack(struct mbar_state s)
{
    return ((uint64_t)(uint32_t)s.tx & ((1U << TX_BITS) - 1)) |
           (uint64_t)s.pending << PENDING_SHIFT | (uint64_t)s.expected << EXPECTED_SHIFT |
           (uint64_t)s.parity << PARITY_SHIFT | (uint64_t)PATTERN << PATTERN_SHIFT;
}

struct mbar_state mbar_unpack(uint64_t word)
{
    struct mbar_state s;
    uint32_t tx = (uint32_t)word & ((1U << TX_BITS) - 1);
    s.tx = (int32_t)tx - ((tx >> (TX_BITS - 1)) ? 1 << TX_BITS : 0);
    s.pending = (uint32_t)(word >> PENDING_SHIFT) & MBAR_MAX_COUNT;
    s.expected = (uint32_t)(word >> EXPECTED_SHIFT) & MBAR_MAX_COUNT;
    s.parity = (uint32_t)(word >> PARITY_SHIFT) & 1U;
    s.valid = word >> PATTERN_SHIFT == PATTERN;
    return s;
}

static uint64_t word_read(const struct cta *cta, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, cta->shared + offset, sizeof word);
    return word;
}

static void word_write(struct cta *cta, struct mbar *b, struct mbar_state s)
{
    b->word = pack(s);
    memcpy(cta->shared + b->offset, &b->word, sizeof b->word);
}

struct mbar_state mbar_load(const struct cta *cta, uint32_t offset)
{
    return mbar_unpack(word_read(cta, offset));
}

/* ---- who and what, for reports ---- */

static const char *object_of(const struct cta *cta, uint32_t offset, char text[OBJECT_TEXT])
{
    return name_shared(cta->group->launch->kernel, offset, text, OBJECT_TEXT);
}

static void publish(struct mbar_who who, enum event_kind kind, struct cta *cta, uint32_t offset,
                    uint64_t value)
{
    struct group *g = cta->group;
    if (!g->observer) return;
    observe(g, &(struct event){.kind = (uint8_t)kind,
                               .lanes = 1U << who.lane,
                               .warp = who.warp,
                               .in = who.in,
                               .cta = cta,
                               .key = offset,
                               .value = value,
                               .token = who.token});
}

/* Adds to the log of the current phase. A warp's lanes that arrive one after the other at one
 * instruction make one entry; what exceeds the log is counted in total_arrivals alone. */
static void note(struct mbar *b, struct mbar_who who, uint32_t count, int64_t bytes)
{
    struct mbar_arrival *last = b->kept ? &b->log[b->kept - 1] : NULL;
    bool async = who.token != 0;
    b->total_arrivals += count;
    if (last && last->in == who.in && last->cta == who.warp->cta && last->warp == who.warp->id &&
        last->async == async && !async) {
        last->count += count;
        last->bytes += bytes;
        return;
    }
    if (b->kept == MBAR_ARRIVALS_KEPT) return;
    b->log[b->kept++] = (struct mbar_arrival){.in = who.in,
                                              .cta = who.warp->cta,
                                              .warp = who.warp->id,
                                              .lane = who.lane,
                                              .count = count,
                                              .bytes = bytes,
                                              .async = async};
}

/* ---- phases ---- */

/* PTX ISA "Phase Completion of the mbarrier object": pending arrivals and tx-count both zero. */
static void settle(struct mbar_who who, struct cta *cta, struct mbar *b, struct mbar_state s)
{
    if (s.pending || s.tx) {
        word_write(cta, b, s);
        return;
    }
    s.parity ^= 1U;
    s.pending = s.expected;
    word_write(cta, b, s);
    publish(who, EV_MBAR_PHASE, cta, b->offset, b->phase);
    b->phase++;
    memcpy(b->before, b->log, b->kept * sizeof b->log[0]);
    b->kept_before = b->kept;
    b->kept = 0;
    sim_wake(cta, WAIT_MBAR, b->offset);
}

/* The live barrier at `offset`, or NULL after sim_fault: the contents of what is no barrier, or is
 * one no longer, are anyone's guess, so nothing after it could be trusted. */
static struct mbar *live_at(struct mbar_who who, struct cta *cta, uint32_t offset)
{
    struct mbar *b = mbar_at(cta, offset);
    char text[OBJECT_TEXT];
    if (cta != who.warp->cta) publish(who, EV_MBAR_REACH, cta, offset, 0);
    if (b && b->live && b->word == word_read(cta, offset)) return b;
    object_of(cta, offset, text);
    if (b && b->live) {
        sim_fault(
            who.warp, who.in, who.lane, 719, FIND_MBARRIER_CLOBBER, CAUSE_NONE, text,
            "%s of CTA rank %u is a live mbarrier, but its word now reads 0x%016llx where its "
            "last operation left 0x%016llx: an ordinary store went over it",
            text, cta->rank, (unsigned long long)word_read(cta, offset),
            (unsigned long long)b->word);
    } else {
        sim_fault(who.warp, who.in, who.lane, 719, FIND_MBARRIER_UNINIT, CAUSE_NONE, text,
                  "%s of CTA rank %u is used as an mbarrier, but %s (the word there reads "
                  "0x%016llx)",
                  text, cta->rank, b ? "it was invalidated" : "no mbarrier.init has run on it",
                  (unsigned long long)word_read(cta, offset));
    }
    return NULL;
}

enum step mbar_current_phase(struct mbar_who who, struct cta *cta, uint32_t offset, uint64_t *phase)
{
    const struct mbar *b = live_at(who, cta, offset);
    if (!b) return STEP_FAULT;
    *phase = b->phase;
    return STEP_NEXT;
}

/* ---- operations ---- */

/* Lanes of one instruction that all initialise it alike are one initialisation (interpretation:
 * ThunderKittens does so with a whole warp). */
static bool just_initialised(struct mbar_who who, struct cta *cta, const struct mbar *b,
                             uint32_t count)
{
    const struct mbar_state fresh = {.pending = count, .expected = count};
    return b->live && b->init_in == who.in && b->init_warp == who.warp->id && b->phase == 0 &&
           b->word == pack(fresh) && word_read(cta, b->offset) == b->word;
}

enum step mbar_init(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t count)
{
    struct mbar *b = record_new(cta, offset);
    char text[OBJECT_TEXT];
    object_of(cta, offset, text);
    if (!b) {
        return sim_fault(who.warp, who.in, who.lane, 2, FIND_UNSUPPORTED, CAUSE_NONE, text,
                         "host memory exhausted while recording mbarrier %s", text);
    }
    if (!count || count > MBAR_MAX_COUNT) {
        return sim_fault(who.warp, who.in, who.lane, 719, FIND_MBARRIER_UNINIT, CAUSE_NONE, text,
                         "bad count: %s is initialised with count %u, which must be 1 to %d", text,
                         count, MBAR_MAX_COUNT);
    }
    if (just_initialised(who, cta, b, count)) return STEP_NEXT;
    /* "Lifecycle of the mbarrier object": neither init over a live one, nor other use of its
     * memory, before mbarrier.inval. */
    if (b->live) {
        sim_find(cta->group, who.warp, who.in, who.lane, SEV_ERROR, FIND_MBARRIER_CLOBBER,
                 CAUSE_NONE, text,
                 "%s is initialised while it is a live mbarrier (phase %llu); mbarrier.inval must "
                 "come first",
                 text, (unsigned long long)b->phase);
    }
    *b = (struct mbar){.offset = offset,
                       .count = count,
                       .live = true,
                       .init_in = who.in,
                       .init_warp = who.warp->id};
    word_write(cta, b, (struct mbar_state){.pending = count, .expected = count});
    publish(who, EV_MBAR_INIT, cta, offset, count);
    cta->group->progress++;
    return STEP_NEXT;
}

enum step mbar_inval(struct mbar_who who, struct cta *cta, uint32_t offset)
{
    struct mbar *b = live_at(who, cta, offset);
    if (!b) return STEP_FAULT;
    b->live = false;
    publish(who, EV_MBAR_INVAL, cta, offset, 0);
    cta->group->progress++;
    return STEP_NEXT;
}

/* " of CTA rank 1, from a warp of CTA rank 0" where they are not the same, else "". */
static const char *from_where(struct mbar_who who, const struct cta *cta, char text[OBJECT_TEXT])
{
    text[0] = '\0';
    if (who.warp->cta != cta)
        (void)snprintf(text, OBJECT_TEXT, " of CTA rank %u, from a warp of CTA rank %u", cta->rank,
                       who.warp->cta->rank);
    return text;
}

/* "2 arrivals at full[1] of CTA rank 1, ...": more of them than its phase has pending. */
enum { OVERFLOW_TEXT = 3 * OBJECT_TEXT };
static const char *overflow(struct mbar_who who, const struct cta *cta, const struct mbar *b,
                            const struct mbar_state *s, uint32_t count, char text[OVERFLOW_TEXT])
{
    char object[OBJECT_TEXT], from[OBJECT_TEXT];
    (void)snprintf(text, OVERFLOW_TEXT,
                   "%u arrival%s at %s%s; its phase %llu has %u of %u pending (tx-count %d)", count,
                   count == 1 ? "" : "s", object_of(cta, b->offset, object),
                   from_where(who, cta, from), (unsigned long long)b->phase, s->pending,
                   s->expected, s->tx);
    return text;
}

enum step mbar_bears(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t count)
{
    const struct mbar *b = live_at(who, cta, offset);
    struct mbar_state s;
    char object[OBJECT_TEXT], text[OVERFLOW_TEXT];
    if (!b) return STEP_FAULT;
    s = mbar_unpack(b->word);
    if (count <= s.pending) return STEP_NEXT;
    return sim_fault(who.warp, who.in, who.lane, 719, FIND_MBARRIER_OVERRUN, CAUSE_NONE,
                     object_of(cta, offset, object), "%s", overflow(who, cta, b, &s, count, text));
}

static void take_arrivals(struct mbar_who who, struct cta *cta, struct mbar *b,
                          struct mbar_state *s, uint32_t count, bool drop)
{
    char object[OBJECT_TEXT], text[OVERFLOW_TEXT];
    publish(who, EV_MBAR_ARRIVE, cta, b->offset, count);
    note(b, who, count, 0);
    cta->group->progress++;
    if (count > s->pending) {
        sim_find(cta->group, who.warp, who.in, who.lane, SEV_ERROR, FIND_MBARRIER_OVERRUN,
                 CAUSE_NONE, object_of(cta, b->offset, object), "%s",
                 overflow(who, cta, b, s, count, text));
        count = s->pending; /* undefined; the surplus is dropped here */
    }
    s->pending -= count;
    if (drop) s->expected -= count < s->expected ? count : s->expected;
    b->count = s->expected;
}

/* Moves the tx-count; a value out of range is undefined, and stays at the limit here. */
static void move_tx(struct mbar_who who, struct cta *cta, struct mbar *b, struct mbar_state *s,
                    int64_t bytes)
{
    int64_t tx = s->tx + bytes;
    char text[OBJECT_TEXT], from[OBJECT_TEXT];
    publish(who, bytes < 0 ? EV_MBAR_TX : EV_MBAR_EXPECT, cta, b->offset,
            (uint64_t)(bytes < 0 ? -bytes : bytes));
    note(b, who, 0, bytes);
    cta->group->progress++;
    if (tx > TX_LIMIT || tx < -TX_LIMIT) {
        object_of(cta, b->offset, text);
        sim_find(cta->group, who.warp, who.in, who.lane, SEV_ERROR, FIND_MBARRIER_TX, CAUSE_NONE,
                 text, "tx-count of %s%s leaves its range: %d%+lld is beyond %c%d", text,
                 from_where(who, cta, from), s->tx, (long long)bytes, tx < 0 ? '-' : '+', TX_LIMIT);
        tx = tx < 0 ? -TX_LIMIT : TX_LIMIT;
    }
    s->tx = (int32_t)tx;
}

enum step mbar_arrive(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t count,
                      bool drop, uint64_t *state)
{
    struct mbar *b = live_at(who, cta, offset);
    struct mbar_state s;
    if (!b) return STEP_FAULT;
    if (state) *state = b->word;
    if (cta->group->late && late_lost(who, cta, offset)) return STEP_NEXT;
    s = mbar_unpack(b->word);
    take_arrivals(who, cta, b, &s, count, drop);
    settle(who, cta, b, s);
    return STEP_NEXT;
}

enum step mbar_expect_tx(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t bytes)
{
    struct mbar *b = live_at(who, cta, offset);
    struct mbar_state s;
    if (!b) return STEP_FAULT;
    if (cta->group->late && late_lost(who, cta, offset)) return STEP_NEXT;
    s = mbar_unpack(b->word);
    move_tx(who, cta, b, &s, bytes);
    settle(who, cta, b, s);
    return STEP_NEXT;
}

enum step mbar_arrive_expect_tx(struct mbar_who who, struct cta *cta, uint32_t offset,
                                uint32_t bytes, bool drop, uint64_t *state)
{
    struct mbar *b = live_at(who, cta, offset);
    struct mbar_state s;
    if (!b) return STEP_FAULT;
    if (state) *state = b->word;
    if (cta->group->late && late_lost(who, cta, offset)) return STEP_NEXT;
    s = mbar_unpack(b->word);
    move_tx(who, cta, b, &s, bytes);
    take_arrivals(who, cta, b, &s, 1, drop);
    settle(who, cta, b, s);
    return STEP_NEXT;
}

enum step mbar_complete_tx(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t bytes)
{
    struct mbar *b = live_at(who, cta, offset);
    struct mbar_state s;
    if (!b) return STEP_FAULT;
    if (cta->group->late && late_lost(who, cta, offset)) return STEP_NEXT;
    s = mbar_unpack(b->word);
    move_tx(who, cta, b, &s, -(int64_t)bytes);
    settle(who, cta, b, s);
    return STEP_NEXT;
}

enum step mbar_add_pending(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t count)
{
    struct mbar *b = live_at(who, cta, offset);
    struct mbar_state s;
    char text[OBJECT_TEXT];
    if (!b) return STEP_FAULT;
    s = mbar_unpack(b->word);
    if (count > MBAR_MAX_COUNT - s.pending) {
        object_of(cta, offset, text);
        return sim_fault(who.warp, who.in, who.lane, 719, FIND_MBARRIER_OVERRUN, CAUSE_NONE, text,
                         "pending count of %s leaves its range: %u+%u is beyond %d", text,
                         s.pending, count, MBAR_MAX_COUNT);
    }
    s.pending += count;
    word_write(cta, b, s);
    return STEP_NEXT;
}

/* The instruction that said how many bytes the phase before this one brings. */
static const struct insn *expected_before(const struct mbar *b)
{
    for (uint32_t i = 0; i < b->kept_before; i++) {
        if (b->before[i].bytes > 0) return b->before[i].in;
    }
    return NULL;
}

enum step mbar_copy_landed(struct mbar_who who, struct cta *cta, uint32_t offset, uint32_t bytes,
                           uint64_t issue_phase)
{
    const struct mbar *b = live_at(who, cta, offset);
    char text[OBJECT_TEXT], from[OBJECT_TEXT];
    if (!b) return STEP_FAULT;
    /* A copy may land at once, so a phase that it was not issued in never rightly counts it: the
     * phase of its issue completed without waiting for these bytes. */
    if (b->phase != issue_phase) {
        const struct insn *expected = b->phase == issue_phase + 1 ? expected_before(b) : NULL;
        object_of(cta, offset, text);
        /* Which copy comes last is up to the schedule; the number that is wrong is not. */
        sim_find(
            cta->group, who.warp, expected ? expected : who.in, who.lane, SEV_ERROR,
            FIND_MBARRIER_TX, CAUSE_NONE, text,
            "%u bytes of a copy (line %u) issued in phase %llu of %s%s land in phase %llu: phase "
            "%llu completed without them, so fewer bytes were expected than its copies bring",
            bytes, who.in->src->pos.line, (unsigned long long)issue_phase, text,
            from_where(who, cta, from), (unsigned long long)b->phase,
            (unsigned long long)issue_phase);
    }
    return mbar_complete_tx(who, cta, offset, bytes);
}

enum step mbar_locate(struct warp *w, const struct insn *in, uint32_t lane, uint32_t address,
                      struct cta **cta, uint32_t *offset)
{
    if (!mem_shared(w, address, cta, offset) || *offset + WORD_BYTES > (*cta)->shared_bytes) {
        return sim_fault(w, in, lane, 700, FIND_OOB, CAUSE_NONE, "",
                         "shared address 0x%08x of an mbarrier lies outside shared memory",
                         address);
    }
    if (*offset % WORD_BYTES) {
        return sim_fault(w, in, lane, 716, FIND_MISALIGNED, CAUSE_NONE, "",
                         "shared address 0x%08x of an mbarrier is not a multiple of %d", address,
                         WORD_BYTES);
    }
    if (*cta != w->cta && !(*cta)->warps_live) {
        sim_find(w->cta->group, w, in, lane, SEV_ERROR, FIND_CLUSTER_EXIT, CAUSE_NONE, "",
                 "mbarrier operation on CTA rank %u, whose threads have all exited", (*cta)->rank);
    }
    return STEP_NEXT;
}
