#include "check/staged.h"
#include "decode/names.h"
#include "check/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CHUNK = 16, /* bytes; swizzles move such chunks */
    CHUNK_READ = 1,
    CHUNK_OPERAND = 2,
    /* A loop of so many loads, each waited for before anything else is issued, is no start-up. */
    SERIAL_LOADS = 3,
    /* Once may be two problems of a batch that share a matrix. */
    REPEATED_STAGES = 2,
    /* Advice where at least one in so many bytes of the tiles that products read is never read:
     * less may be the masked end of a ragged K. */
    UNREAD_PART = 8
};

/* 16 bytes of shared memory. */
struct chunk {
    uint32_t by; /* 1 + index of the copy that staged it, 0: none */
    uint8_t swizzle, flags;
};

/* The boxes that a warp has issued for one phase of one barrier; a multicast copy counts for the
 * barriers at the same place of several CTAs. */
struct stage {
    uint32_t bar;
    uint64_t phase;
    uint64_t boxes;        /* identities, order does not matter; 0: no tensor copies */
    uint64_t before;       /* of the stage before it */
    const struct insn *in; /* NULL: no stage yet */
    bool open;             /* its warp has not waited for it yet */
};

/* A resident CTA. */
struct staged_cta {
    struct staged_cta *next;
    const struct cta *cta;
    struct chunk *chunks;
    uint32_t count;
    struct stage stage[CTA_WARPS];
};

/* What became of all that one copy instruction staged. */
struct tally {
    uint64_t chunks_operand, chunks_unread; /* read by a product; read by nobody */
    uint32_t serial, overlapped, repeats;
    struct warp *warp;
};

struct staged {
    struct group *group;
    const struct kernel *kernel;
    struct staged_cta *ctas, *last;
    struct tally *tallies; /* [kernel->insn_count] */
    bool exhausted;
};

/* ---- records ---- */

static uint32_t index_of(const struct staged *s, const struct insn *in)
{
    return (uint32_t)(in - s->kernel->insns);
}

static struct staged_cta *find(struct staged *s, const struct cta *cta)
{
    if (s->last && s->last->cta == cta) return s->last;
    for (struct staged_cta *c = s->ctas; c; c = c->next) {
        if (c->cta == cta) return s->last = c;
    }
    return NULL;
}

static struct staged_cta *find_or_make(struct staged *s, const struct cta *cta)
{
    struct staged_cta *c = find(s, cta);
    if (c) return c;
    c = calloc(1, sizeof *c);
    if (c) {
        c->count = cta->shared_bytes / CHUNK + 1;
        c->chunks = calloc(c->count, sizeof *c->chunks);
    }
    if (!c || !c->chunks) {
        free(c);
        s->exhausted = true;
        return NULL;
    }
    c->cta = cta;
    c->next = s->ctas;
    s->ctas = c;
    return s->last = c;
}

/* ---- chunks ---- */

/* What was staged there is gone. */
static void retire(struct staged *s, struct chunk *c)
{
    if (c->by) {
        struct tally *t = &s->tallies[c->by - 1];
        t->chunks_operand += (c->flags & CHUNK_OPERAND) != 0;
        t->chunks_unread += !(c->flags & CHUNK_READ);
    }
    *c = (struct chunk){0};
}

static void mark(struct staged_cta *c, uint64_t address, uint64_t size, uint8_t flags)
{
    uint64_t first = (address & SHARED_OFFSET_MASK) / CHUNK;
    uint64_t last = ((address & SHARED_OFFSET_MASK) + (size ? size - 1 : 0)) / CHUNK;
    for (; first <= last && first < c->count; first++) c->chunks[first].flags |= flags;
}

static void overwrite(struct staged *s, struct staged_cta *c, uint64_t address, uint64_t size)
{
    uint64_t first = (address & SHARED_OFFSET_MASK) / CHUNK;
    uint64_t last = ((address & SHARED_OFFSET_MASK) + (size ? size - 1 : 0)) / CHUNK;
    for (; first <= last && first < c->count; first++) {
        if (c->chunks[first].by) retire(s, &c->chunks[first]);
    }
}

static void stage_box(struct staged *s, struct staged_cta *c, const struct event *e)
{
    uint64_t first = e->address / CHUNK, last = (e->address + e->size - 1) / CHUNK;
    for (; first <= last && first < c->count; first++) {
        retire(s, &c->chunks[first]);
        c->chunks[first] =
            (struct chunk){.by = index_of(s, e->in) + 1, .swizzle = (uint8_t)e->value};
    }
}

/* ---- operands ---- */

static const char *swizzle_text(uint32_t swizzle)
{
    static const char *const texts[] = {"no swizzle",
                                        "the 32-byte swizzle",
                                        "the 64-byte swizzle",
                                        "the 128-byte swizzle",
                                        "the 128-byte swizzle of 32-byte atoms",
                                        "the 128-byte swizzle of flipped 32-byte atoms",
                                        "the 128-byte swizzle of 64-byte atoms"};
    return swizzle < sizeof texts / sizeof texts[0] ? texts[swizzle] : "an unknown swizzle";
}

/* An operand's descriptor must name the swizzle with which the tile was laid down. */
static void check_layout(struct staged *s, const struct event *e, const struct chunk *c,
                         uint32_t offset)
{
    uint32_t swizzle = e->key - 1;
    const struct insn *by = &s->kernel->insns[c->by - 1];
    char name[96];
    if (c->swizzle == swizzle) return;
    name_shared(s->kernel, offset, name, sizeof name);
    sim_find(s->group, e->warp, e->in, first_lane(e->lanes), SEV_ERROR, FIND_MMA_DESC, CAUSE_NONE,
             name,
             "the matrix descriptor of an operand at %s names %s, but the tensor copy at line %u "
             "laid it down with %s: tensor map and descriptor must agree",
             name, swizzle_text(swizzle), by->src->pos.line, swizzle_text(c->swizzle));
}

static void read_operand(struct staged *s, struct staged_cta *c, const struct event *e)
{
    uint32_t ranges = (uint32_t)__builtin_popcount(e->lanes);
    for (uint32_t i = 0; i < ranges; i++) {
        uint32_t offset = (uint32_t)e->addresses[i] & SHARED_OFFSET_MASK;
        const struct chunk *first = &c->chunks[offset / CHUNK < c->count ? offset / CHUNK : 0];
        if (first->by) check_layout(s, e, first, offset);
        mark(c, offset, e->size, CHUNK_READ | CHUNK_OPERAND);
    }
}

static void on_access(struct staged *s, const struct event *e)
{
    struct staged_cta *c;
    if (e->space != SPACE_SHARED || e->tensor || !s->ctas || !e->cta) return;
    c = find(s, e->cta);
    if (!c) return;
    if (e->key && e->addresses) {
        read_operand(s, c, e);
    } else if (e->addresses) {
        for (uint32_t rest = e->lanes; rest; rest &= rest - 1) {
            uint64_t at = e->addresses[first_lane(rest)];
            if (e->access & ACCESS_WRITE)
                overwrite(s, c, at, e->size);
            else
                mark(c, at, e->size, CHUNK_READ);
        }
    } else if (e->access & ACCESS_WRITE) {
        overwrite(s, c, e->address, e->size);
    } else {
        mark(c, e->address, e->size, CHUNK_READ);
    }
}

/* ---- loads in time ---- */

static void stage_ends(struct staged *s, const struct stage *g)
{
    struct tally *t;
    if (!g->in) return;
    t = &s->tallies[index_of(s, g->in)];
    t->repeats += g->boxes && g->boxes == g->before;
    t->overlapped += g->open;
}

static void stage_begins(struct staged *s, struct staged_cta *c, const struct event *e)
{
    struct stage *g = &c->stage[e->warp->id];
    if (g->in && g->bar == e->key && g->phase == e->value) return;
    stage_ends(s, g);
    *g = (struct stage){
        .bar = e->key, .phase = e->value, .before = g->boxes, .in = e->in, .open = true};
}

/* Sums of mixed identities: boxes of one stage may come in any order. */
static uint64_t mix(uint64_t x)
{
    x = (x + 1) * 0x9E3779B97F4A7C15ULL;
    return (x ^ x >> 29) * 0xBF58476D1CE4E5B9ULL;
}

static void on_tile(struct staged *s, const struct event *e)
{
    struct staged_cta *c = find_or_make(s, e->cta), *own = find_or_make(s, e->warp->cta);
    struct stage *g;
    if (!c || !own) return;
    stage_box(s, c, e);
    g = &own->stage[e->warp->id];
    g->boxes += mix(e->key);
}

static void on_copy(struct staged *s, const struct event *e)
{
    /* not of remote stores and cancels */
    const bool copy = e->in->is.class == INSN_COPY || e->in->is.class == INSN_COPY_RED;
    struct staged_cta *c = e->warp && copy ? find_or_make(s, e->warp->cta) : NULL;
    if (!c) return;
    stage_begins(s, c, e);
    s->tallies[index_of(s, e->in)].warp = e->warp;
}

/* The warp itself waits for what it issued last. */
static void on_pass(struct staged *s, const struct event *e)
{
    struct staged_cta *c = e->warp ? find(s, e->warp->cta) : NULL;
    struct stage *g = c ? &c->stage[e->warp->id] : NULL;
    if (!g || !g->in || !g->open) return;
    if (e->cta != e->warp->cta || g->bar != e->key || g->phase != e->value) return;
    g->open = false;
    s->tallies[index_of(s, g->in)].serial++;
}

/* ---- ends ---- */

static void close_cta(struct staged *s, struct staged_cta *c)
{
    for (uint32_t i = 0; i < c->count; i++) retire(s, &c->chunks[i]);
    for (uint32_t w = 0; w < CTA_WARPS; w++) stage_ends(s, &c->stage[w]);
    free(c->chunks);
    free(c);
}

static void cta_exits(struct staged *s, const struct cta *cta)
{
    struct staged_cta **at = &s->ctas;
    if (cta->warps_live) return;
    while (*at && (*at)->cta != cta) at = &(*at)->next;
    if (*at) {
        struct staged_cta *c = *at;
        *at = c->next;
        s->last = NULL;
        close_cta(s, c);
    }
}

__attribute__((format(printf, 4, 5))) static void advise(struct staged *s, uint32_t insn,
                                                         enum finding_kind kind, const char *format,
                                                         ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sim_find(s->group, s->tallies[insn].warp, &s->kernel->insns[insn], NO_LANE, SEV_ADVICE, kind,
             CAUSE_NONE, "", "%s", text);
}

void staged_end(struct staged *s)
{
    while (s->ctas) {
        struct staged_cta *c = s->ctas;
        s->ctas = c->next;
        close_cta(s, c);
    }
    for (uint32_t i = 0; i < s->kernel->insn_count; i++) {
        const struct tally *t = &s->tallies[i];
        uint64_t staged = t->chunks_operand + t->chunks_unread;
        if (t->chunks_operand && t->chunks_unread * UNREAD_PART >= staged)
            advise(s, i, FIND_UNREAD_TILE,
                   "of the %llu bytes that this copy staged for products, %llu were never read: "
                   "too few k-steps, or a box larger than the tile that is used",
                   (unsigned long long)staged * CHUNK,
                   (unsigned long long)t->chunks_unread * CHUNK);
        if (t->repeats >= REPEATED_STAGES)
            advise(s, i, FIND_TILE_REPEAT,
                   "%u times this copy staged the very boxes that the stage before it held: a "
                   "coordinate that does not move with the loop, or moves too slowly",
                   t->repeats);
        if (t->serial >= SERIAL_LOADS && !t->overlapped)
            advise(s, i, FIND_SERIALISED,
                   "each of the %u loads here was waited for, by the warp that issued it, before "
                   "the next was issued: loading and computing never overlap; with a ring of "
                   "two or more stages they would",
                   t->serial);
    }
    if (s->exhausted)
        sim_find(s->group, NULL, NULL, NO_LANE, SEV_WARNING, FIND_UNSUPPORTED, CAUSE_NONE, "",
                 "the checker ran out of memory: layouts of operands were not looked at");
}

void staged_event(struct staged *s, const struct event *e)
{
    switch (e->kind) {
    case EV_ACCESS: on_access(s, e); break;
    case EV_ASYNC_BAR: on_copy(s, e); break;
    case EV_TILE: on_tile(s, e); break;
    case EV_MBAR_PASS: on_pass(s, e); break;
    case EV_WARP_EXIT: cta_exits(s, e->cta); break;
    default: break;
    }
}

struct staged *staged_new(struct group *g)
{
    struct staged *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->group = g;
    s->kernel = g->launch->kernel;
    s->tallies = calloc(s->kernel->insn_count + 1U, sizeof *s->tallies);
    if (s->tallies) return s;
    free(s);
    return NULL;
}

void staged_free(struct staged *s)
{
    if (!s) return;
    while (s->ctas) {
        struct staged_cta *c = s->ctas;
        s->ctas = c->next;
        free(c->chunks);
        free(c);
    }
    free(s->tallies);
    free(s);
}
