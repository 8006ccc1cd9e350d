#include "check/staged.h"
#include "async/async.h"
#include "async/tmap_copy.h"
#include "check/layout.h"
#include "decode/names.h"
#include "check/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    /* A loop of so many loads, each waited for before anything else is issued, is no start-up. */
    SERIAL_LOADS = 3,
    /* Once may be two problems of a batch that share a matrix. */
    REPEATED_STAGES = 2,
    /* Advice where at least one in so many bytes of the tiles that products read is never read:
     * less may be the masked end of a ragged K. */
    UNREAD_PART = 8,
    OUTSIDE_KEPT = 4, /* boxes of a stage that lie outside; further ones count with these */
    COORDS = 5
};

/* A box that lies wholly outside its tensor: all of it is fill. */
struct outside {
    const struct insn *in;
    uint32_t lane, coords;
    int32_t coord[COORDS];
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
    bool inside;           /* some box of it reaches into its tensor */
    uint8_t outside_count;
    struct outside outside[OUTSIDE_KEPT];
};

/* A resident CTA. */
struct staged_cta {
    struct staged_cta *next;
    const struct cta *cta;
    struct chunks chunks;
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
    struct boxes boxes;
    struct layout *layout;
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
        c->chunks.count = cta->shared_bytes / CHUNK + 1;
        c->chunks.at = calloc(c->chunks.count, sizeof *c->chunks.at);
    }
    if (!c || !c->chunks.at) {
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
    if (c->box) {
        struct box *box = s->boxes.at[c->box];
        struct tally *t = &s->tallies[index_of(s, box->in)];
        t->chunks_operand += (c->flags & CHUNK_OPERAND) != 0;
        t->chunks_unread += !(c->flags & CHUNK_READ);
        if (!--box->live) box_drop(&s->boxes, box);
    }
    *c = (struct chunk){0};
}

static void mark(struct staged_cta *c, uint64_t address, uint64_t size, uint8_t flags)
{
    uint64_t first = (address & SHARED_OFFSET_MASK) / CHUNK;
    uint64_t last = ((address & SHARED_OFFSET_MASK) + (size ? size - 1 : 0)) / CHUNK;
    for (; first <= last && first < c->chunks.count; first++) c->chunks.at[first].flags |= flags;
}

/* Nothing is left of what was staged in chunks [first, last]; of each box it is looked at while all of it
 * is there. */
static void clear(struct staged *s, struct staged_cta *c, uint64_t first, uint64_t last)
{
    if (last >= c->chunks.count) last = c->chunks.count - 1;
    for (uint64_t i = first; i <= last; i++) {
        struct box *box = c->chunks.at[i].box ? s->boxes.at[c->chunks.at[i].box] : NULL;
        if (box && !box->closed) layout_close(s->layout, box, &c->chunks);
    }
    for (uint64_t i = first; i <= last; i++)
        if (c->chunks.at[i].box || c->chunks.at[i].flags) retire(s, &c->chunks.at[i]);
}

static void overwrite(struct staged *s, struct staged_cta *c, uint64_t address, uint64_t size)
{
    uint64_t first = (address & SHARED_OFFSET_MASK) / CHUNK;
    uint64_t last = ((address & SHARED_OFFSET_MASK) + (size ? size - 1 : 0)) / CHUNK;
    bool staged = false;
    for (uint64_t i = first; i <= last && i < c->chunks.count; i++)
        staged |= c->chunks.at[i].box != 0;
    if (staged) clear(s, c, first, last);
}

static void stage_box(struct staged *s, struct staged_cta *c, const struct event *e)
{
    uint64_t first = e->address / CHUNK, last = (e->address + e->size - 1) / CHUNK;
    struct box *box;
    clear(s, c, first, last);
    box = box_new(&s->boxes, e);
    if (!box) {
        s->exhausted = true;
        return;
    }
    for (; first <= last && first < c->chunks.count; first++) {
        c->chunks.at[first] = (struct chunk){.box = box->number};
        box->live++;
    }
}

/* ---- operands ---- */

static void read_operand(struct staged_cta *c, const struct event *e)
{
    uint32_t ranges = (uint32_t)__builtin_popcount(e->lanes);
    for (uint32_t i = 0; i < ranges; i++)
        mark(c, e->addresses[i], e->size, CHUNK_READ | CHUNK_OPERAND);
}

static void on_access(struct staged *s, const struct event *e)
{
    struct staged_cta *c;
    if (e->space != SPACE_SHARED || e->tensor || !s->ctas || !e->cta) return;
    c = find(s, e->cta);
    if (!c) return;
    if (e->key && e->addresses) {
        read_operand(c, e);
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

static void note_outside(struct stage *g, const struct event *e)
{
    const struct tmap *t = e->tile->map;
    struct outside *o = &g->outside[g->outside_count];
    if (!tmap_outside(t, e->tile->coord)) {
        g->inside = true;
        return;
    }
    for (uint32_t i = 0; i < g->outside_count; i++)
        if (g->outside[i].in == e->in) return;
    if (g->outside_count == OUTSIDE_KEPT) return;
    *o = (struct outside){.in = e->in, .lane = e->lanes ? first_lane(e->lanes) : NO_LANE};
    o->coords = t->rows4 ? COORDS : t->rank;
    memcpy(o->coord, e->tile->coord, o->coords * sizeof *o->coord);
    g->outside_count++;
}

/* Tiles at the edge of a problem, a partner's in a cluster too, are filled in part only. A stage of nothing but
 * fill is most often a wrong coordinate. */
static void tell_outside(struct staged *s, const struct stage *g, struct warp *w)
{
    for (uint32_t i = 0; i < g->outside_count; i++) {
        const struct outside *o = &g->outside[i];
        char text[96] = "";
        int used = 0;
        if (g->inside) sim_idiom(s->group, o->in, IDIOM_BOX_BESIDE);
        if (g->inside && s->group->launch->check_level < 2) continue;
        for (uint32_t d = 0; d < o->coords; d++)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%d", d ? ", " : "",
                             o->coord[d]);
        sim_find(s->group, w, o->in, o->lane, SEV_WARNING, FIND_TMA_OOB_BOX, CAUSE_NONE, "",
                 "box at {%s} lies wholly outside the tensor: all of it is fill", text);
    }
}

static void stage_ends(struct staged *s, const struct stage *g)
{
    struct tally *t;
    if (!g->in) return;
    t = &s->tallies[index_of(s, g->in)];
    tell_outside(s, g, t->warp);
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
    note_outside(g, e);
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

static void on_product(struct staged *s, const struct event *e)
{
    const struct staged_cta *c = find(s, e->cta);
    if (c) layout_product(s->layout, e, &c->chunks);
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

/* `look`: the CTA came to its end. */
static void close_cta(struct staged *s, struct staged_cta *c, bool look)
{
    if (look) clear(s, c, 0, c->chunks.count - 1);
    for (uint32_t i = 0; i < c->chunks.count; i++) retire(s, &c->chunks.at[i]);
    for (uint32_t w = 0; w < CTA_WARPS; w++) stage_ends(s, &c->stage[w]);
    free(c->chunks.at);
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
        close_cta(s, c, true);
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
        close_cta(s, c, false);
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
    case EV_PRODUCT: on_product(s, e); break;
    case EV_GROUP_WAIT:
        if (e->key == COMMIT_WGMMA) layout_wait(s->layout, e);
        break;
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
    s->layout = layout_new(g, &s->boxes);
    if (s->tallies && s->layout) return s;
    staged_free(s);
    return NULL;
}

void staged_free(struct staged *s)
{
    if (!s) return;
    while (s->ctas) {
        struct staged_cta *c = s->ctas;
        s->ctas = c->next;
        free(c->chunks.at);
        free(c);
    }
    layout_free(s->layout);
    boxes_free(&s->boxes);
    free(s->tallies);
    free(s);
}
