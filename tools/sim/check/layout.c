/* What an operand's face (layout_face.h) means for the product, and what boxes leave behind (layout.h). */
#include "check/layout.h"
#include "check/layout_face.h"
#include "check/layout_tell.h"
#include "check/order.h"

#include <stdlib.h>
#include <string.h>

enum { CACHE = 256, PROBES = 3, TAKES = 32, STRAYS = 16, NEAR = 8 /* copies */ };

/* One operand's way along k. */
struct way {
    struct box *box;
    uint64_t tensor, rows; /* the coordinates that are not k, hashed */
    int64_t from;          /* containers, in the tensor */
    int32_t first;         /* from the box's start */
    uint32_t row;          /* in the box: of its rows, or containers along them */
    uint32_t extent;       /* of k in the box */
    uint32_t serial;
    bool left;       /* the operand goes on behind the box's last row, and not in its tensor */
    int64_t across;  /* of a tensor of two dimensions: where its rows begin */
    bool by_columns; /* its rows are columns of the box, k is not */
    uint8_t
        row_dims; /* else bit d: they run along the box's dimension d; 0: only one of them is there */
    int32_t at[BOX_RANK]; /* where it begins in the box */
};

/* A product that its accumulators still hold. */
struct take {
    const struct warp *warp; /* NULL: unused */
    const struct cta *cta;
    uint32_t d, length, rows[2];
    struct way way[2]; /* of A, of B */
};

/* A box whose rows are steps of k, from which an operand jumped to what is not of its tensor. */
struct stray {
    uint64_t tensor;
    int32_t next[BOX_RANK]; /* the coordinates at which a box beside it begins */
    uint32_t serial;
    const struct cta *cta;
    const struct insn *in;
    struct warp *warp;
};

/* A face that was looked at, for operands that lie alike. */
struct cached {
    struct smem_operand o;
    uint32_t mn, k;
    bool used;
    struct face face;
};

struct layout {
    struct group *group;
    struct boxes *boxes;
    struct face_scratch scratch;
    struct face face; /* of an operand that is not kept */
    struct take take[TAKES];
    struct stray stray[STRAYS];
    uint32_t takes, strays;
    struct cached cache[CACHE];
};

struct layout *layout_new(struct group *g, struct boxes *boxes)
{
    struct layout *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->group = g;
    l->boxes = boxes;
    return l;
}

void layout_free(struct layout *l)
{
    if (!l) return;
    free(l->scratch.stamp);
    free(l->scratch.seen);
    free(l);
}

/* ---- one operand ---- */

static bool same_operand(const struct cached *c, const struct product_operand *p)
{
    const struct smem_operand *a = &c->o, *b = p->o;
    return c->used && c->mn == p->mn && c->k == p->k && a->start == b->start && a->lbo == b->lbo &&
           a->sbo == b->sbo && a->phase == b->phase && a->wraps == b->wraps &&
           a->swizzle == b->swizzle && a->mn_major == b->mn_major && a->elem_bytes == b->elem_bytes;
}

static struct box *box_of(const struct layout *l, const struct chunks *chunks, uint32_t chunk)
{
    const uint32_t number = chunk < chunks->count ? chunks->at[chunk].box : 0;
    return number ? l->boxes->at[number] : NULL;
}

/* The boxes under it lie as they did, and are whole. */
static bool still_so(const struct layout *l, const struct face *f, const struct chunks *chunks)
{
    const struct box *first = NULL;
    for (uint32_t i = 0; i < f->boxes; i++) {
        const struct box *box = box_of(l, chunks, f->box[i].chunk);
        if (!box || box->closed || box->shape != f->box[i].shape) return false;
        if (i && face_apart(box, first) != f->box[i].apart) return false;
        if (!i) first = box;
    }
    return true;
}

static struct cached *slot_of(struct layout *l, const struct product_operand *p)
{
    const uint64_t hash = (p->o->start / CHUNK * 0x9E3779B97F4A7C15ULL) ^
                          p->mn * 0xD1B54A32D192ED03ULL ^
                          (uint64_t)p->o->sbo * 0x2545F4914F6CDD1DULL;
    return &l->cache[hash >> 40 & (CACHE - 1)];
}

/* No copy staged the chunks that are tried: an operand that the program wrote itself. */
static bool not_staged(const struct layout *l, const struct face_view *v,
                       const struct chunks *chunks)
{
    for (uint32_t i = 0; i < PROBES; i++)
        if (face_box_at(v, i * (v->lines - 1) / (PROBES - 1), i * (v->parts - 1) / (PROBES - 1),
                        l->boxes, chunks))
            return false;
    return true;
}

static const struct face *face_of(struct layout *l, struct face_view *v,
                                  const struct product_operand *p, const struct chunks *chunks)
{
    struct cached *c = slot_of(l, p);
    if (same_operand(c, p) && still_so(l, &c->face, chunks)) return &c->face;
    if (not_staged(l, v, chunks)) return NULL;
    face_look(&l->face, v, &l->scratch, l->boxes, chunks);
    if (!l->face.known) return NULL;
    if (!l->face.whole || l->face.boxes > FACE_BOXES) return &l->face;
    *c = (struct cached){.o = *p->o, .mn = p->mn, .k = p->k, .used = true, .face = l->face};
    return &c->face;
}

/* ---- element types ---- */

/* Whether data that the map calls `dtype` can be what a product takes for `format`. Unsigned and signed
 * integers may stand for any bits, in words that are whole elements. */
static bool type_fits(uint32_t dtype, enum tensor_format format, uint32_t bytes)
{
    switch (dtype) {
    case TMAP_F16: return format == TF_F16;
    case TMAP_BF16: return format == TF_BF16;
    case TMAP_F32:
    case TMAP_F32_FTZ:
    case TMAP_TF32:
    case TMAP_TF32_FTZ: return format == TF_TF32;
    case TMAP_F64: return false;
    case TMAP_U4_ALIGN8: return format == TF_E2M1X2;
    case TMAP_U4_ALIGN16: return format == TF_E2M1;
    case TMAP_U6_ALIGN16: return format == TF_E2M3 || format == TF_E3M2;
    default: return tmap_elem_bytes(dtype) >= bytes;
    }
}

static void judge_types(const struct layout_case *c, const struct face *f)
{
    for (uint32_t i = 0; i < f->boxes && i < FACE_BOXES; i++) {
        const struct box *box = box_of(c->layout, c->chunks, f->box[i].chunk);
        if (!box || type_fits(box->map.dtype, c->operand->format, c->operand->o->elem_bytes))
            continue;
        layout_tell_type(c, box);
        return;
    }
}

/* ---- one operand of a product ---- */

static void keep_stray(const struct layout_case *c, const struct box *box)
{
    struct layout *l = c->layout;
    struct stray *s = &l->stray[l->strays++ % STRAYS];
    *s = (struct stray){.tensor = box->map.address,
                        .serial = box->serial,
                        .cta = box->cta,
                        .in = c->event->in,
                        .warp = c->event->warp};
    memcpy(s->next, box->coord, sizeof s->next);
    s->next[0] += (int32_t)box->extent[0];
}

static void note_cut(const struct layout_case *c, const struct face *f, const struct face_box *at,
                     struct box *box)
{
    const struct box *next = box_of(c->layout, c->chunks, f->behind);
    if (next && box_same_tensor(next, box)) return;
    if (!(box->use & BOX_CUT) || at->cut_at < box->cut_at) box->cut_at = at->cut_at;
    box->use |= BOX_CUT;
}

/* What the product does with the boxes, for their end. */
static void note_use(const struct layout_case *c, const struct face *f)
{
    for (uint32_t i = 0; i < f->boxes && i < FACE_BOXES; i++) {
        struct box *box = box_of(c->layout, c->chunks, f->box[i].chunk);
        if (!box) continue;
        if (f->box[i].use & BOX_LEFT &&
            (!(box->use & BOX_LEFT) || f->box[i].left_from < box->left_from))
            box->left_from = f->box[i].left_from;
        if (f->box[i].use & BOX_CUT) note_cut(c, f, &f->box[i], box);
        box->use |= (uint8_t)(f->box[i].use & ~BOX_CUT);
        box->reader = c->event->in;
        box->reader_warp = c->event->warp;
        if (f->strayed) keep_stray(c, box);
    }
}

/* An operand some of which no copy staged, just looked at: rows that are staged at one k, and were never
 * written at another. Rows of which nothing is staged may be padding. */
static void judge_unwritten(const struct layout_case *c, const struct face_view *v)
{
    const bool mn_major = v->o.mn_major;
    const uint32_t rows = mn_major ? v->parts : v->lines, steps = mn_major ? v->lines : v->parts;
    for (uint32_t row = 0; row < rows; row++) {
        const struct face_entry *staged = NULL, *fresh = NULL;
        uint32_t from = 0, to = 0;
        for (uint32_t k = 0; k < steps; k++) {
            const struct face_entry *e = &v->entry[mn_major ? k * rows + row : row * steps + k];
            if (e->box && !staged) {
                staged = e;
                from = k;
            } else if (!e->box && !fresh && !order_written(c->event->cta, e->chunk * CHUNK)) {
                fresh = e;
                to = k;
            }
        }
        if (!staged || !fresh) continue;
        layout_tell_unwritten(c, staged->box, mn_major ? row * v->per_chunk : row,
                              mn_major ? from : from * v->per_chunk,
                              mn_major ? to : to * v->per_chunk, fresh->chunk * CHUNK);
        return;
    }
}

/* NULL where nothing is known. */
static const struct face *judge_operand(struct layout_case *c, struct face_view *v)
{
    struct layout *l = c->layout;
    const struct face *f;
    if (!c->operand->o || !face_view(v, &l->scratch, c->operand, c->event->product->copy))
        return NULL;
    f = face_of(l, v, c->operand, c->chunks);
    if (!f) return NULL;
    note_use(c, f);
    if (!c->event->product->copy) judge_types(c, f);
    if (!f->whole && !f->fault && !c->event->product->copy) judge_unwritten(c, v);
    if (f->fault) layout_tell_order(c, v, f);
    return f;
}

/* ---- A beside B ---- */

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
    return hash ^ hash >> 29;
}

static bool way_of(const struct layout_case *c, const struct face *f, struct way *w)
{
    const uint32_t bytes = c->operand->o->elem_bytes;
    struct box *box;
    if (!f || !f->along_k || f->fault || f->k_box >= FACE_BOXES) return false;
    box = box_of(c->layout, c->chunks, f->box[f->k_box].chunk);
    if (!box) return false;
    *w = (struct way){.box = box, .tensor = box->map.address, .serial = box->serial};
    w->from = box_coordinate(box, &f->first, f->k_dim);
    w->first = f->first.at[f->k_dim];
    w->extent = f->k_dim ? box->extent[f->k_dim] : box->bytes / bytes;
    w->row = f->first.row;
    if (f->box[f->k_box].use & BOX_LEFT) {
        const struct box *next = box_of(c->layout, c->chunks, f->behind);
        w->left = !next || !box_same_tensor(next, box);
    }
    w->row_dims = f->row_dims;
    memcpy(w->at, f->first.at, sizeof w->at);
    if (f->k_dim) {
        w->by_columns = true;
        w->row = (uint32_t)f->first.at[0] / bytes;
    } else {
        w->from /= bytes;
        w->first /= (int32_t)bytes;
    }
    w->across = box_coordinate(box, &f->first, !f->k_dim);
    if (f->k_dim) w->across /= bytes;
    for (uint32_t d = 0; d < BOX_RANK; d++)
        if (d != f->k_dim) w->rows = mix(w->rows, (uint64_t)box_coordinate(box, &f->first, d));
    for (uint32_t i = TMAP_OFFSETS; i < TMAP_COORDS; i++)
        w->rows = mix(w->rows, (uint64_t)(int64_t)box->coord[i]);
    return true;
}

/* Two products of one sum took the same rows from places of k that overlap. */
static bool overlaps(const struct way *now, const struct way *before, uint32_t length)
{
    const int64_t moved = now->from - before->from;
    return now->tensor == before->tensor && now->rows == before->rows && moved &&
           moved < (int64_t)length && -moved < (int64_t)length;
}

/* They took rows of one box that overlap with the earlier ones and are not those. */
static int32_t slid(const struct take *now, const struct take *before, uint32_t n)
{
    const int64_t moved = (int64_t)now->way[n].row - before->way[n].row;
    const bool overlap = moved < (int64_t)now->rows[n] && -moved < (int64_t)now->rows[n];
    const struct way *a = &now->way[n], *b = &before->way[n];
    bool along = a->by_columns || !a->row_dims; /* else columns may stand between groups of rows */
    for (uint32_t d = 1; d < BOX_RANK; d++) along |= a->row_dims >> d & 1 && a->at[d] != b->at[d];
    return along && overlap && now->way[n].serial == before->way[n].serial ? (int32_t)moved : 0;
}

static bool same_rows(const struct way *a, const struct way *b)
{
    return a->tensor == b->tensor && a->rows == b->rows;
}

/* It went on to the next k, rows the same. */
static bool steps(const struct way *now, const struct way *before, uint32_t length)
{
    return same_rows(now, before) && llabs(now->from - before->from) == (int64_t)length;
}

/* How far along k, rows the same; false where that is not so. */
static bool moved_along(const struct take *now, const struct take *before, int64_t moved[2])
{
    for (uint32_t n = 0; n < 2; n++) {
        if (!same_rows(&now->way[n], &before->way[n])) return false;
        moved[n] = now->way[n].from - before->way[n].from;
    }
    return true;
}

/* Elements of the tensor along k, or along its rows. */
static uint64_t tensor_extent(const struct layout_case *c, const struct way *w, bool along_k)
{
    const struct tmap *m = &w->box->map;
    if (along_k == w->by_columns) return m->dim[1];
    return m->dim[0] * tmap_elem_bytes(m->dtype) / c->operand->o->elem_bytes;
}

/*
 * One operand goes along k and the other along its rows, by as many elements: a tile as wide as a k-step that is read
 * the other way round. A tensor packed in such tiles would be right so; then its k is no longer than the tile, or the
 * sizes of the two tensors along k are the same.
 */
static bool turned(const struct layout_case *c, const struct take *now, const struct take *before,
                   uint32_t n)
{
    const struct way *w = &now->way[n], *was = &before->way[n], *other = &now->way[!n];
    const int64_t across = w->across - was->across;
    if (now->rows[n] != now->length || !steps(other, &before->way[!n], now->length)) return false;
    if (w->tensor != was->tensor || w->from != was->from || llabs(across) != (int64_t)now->length)
        return false;
    if (w->box->map.rank != 2 || other->box->map.rank != 2) return false;
    return tensor_extent(c, w, true) != now->length &&
           tensor_extent(c, w, true) != tensor_extent(c, other, true) &&
           tensor_extent(c, w, false) == tensor_extent(c, other, true);
}

/* What two products of one sum say of each other. True where it was a finding. */
static bool judge_two(const struct layout_case *c, const struct take *now,
                      const struct take *before)
{
    const struct way *a = &now->way[0], *b = &now->way[1];
    const bool same_a = a->serial == before->way[0].serial,
               same_b = b->serial == before->way[1].serial;
    const int32_t slid_a = slid(now, before, 0), slid_b = slid(now, before, 1);
    int64_t moved[2];
    if (overlaps(a, &before->way[0], now->length))
        layout_tell_overlap(c, a->box, "A", (int32_t)(a->from - before->way[0].from));
    else if (overlaps(b, &before->way[1], now->length))
        layout_tell_overlap(c, b->box, "B", (int32_t)(b->from - before->way[1].from));
    else if ((slid_a && slid_b) || (slid_a && a->left && steps(b, &before->way[1], now->length)) ||
             (slid_b && b->left && steps(a, &before->way[0], now->length)) ||
             ((slid_a || slid_b) && same_a && same_b && a->from == before->way[0].from &&
              b->from == before->way[1].from))
        layout_tell_slide(c, slid_a ? a->box : b->box, slid_a ? "A" : "B",
                          slid_a ? slid_a : slid_b);
    else if (turned(c, now, before, 0) || turned(c, now, before, 1))
        layout_tell_turned(c, a->box, b->box, turned(c, now, before, 0) ? "A" : "B");
    else if (moved_along(now, before, moved) && moved[0] != moved[1] &&
             ((same_a && moved[0]) || (same_b && moved[1]) ||
              ((!moved[0] || !moved[1]) && llabs(moved[0] + moved[1]) == (int64_t)now->length)))
        layout_tell_apart(c, a->box, (int32_t)moved[0], b->box, (int32_t)moved[1]);
    else
        return false;
    return true;
}

static void judge_sum(const struct layout_case *c, const struct take *now)
{
    for (uint32_t i = 0; i < TAKES; i++) {
        const struct take *t = &c->layout->take[i];
        int64_t moved[2];
        if (t->warp != now->warp || t->cta != now->cta || t->d != now->d ||
            t->length != now->length)
            continue;
        if (judge_two(c, now, t)) return;
        if (!moved_along(now, t, moved) || moved[0] || moved[1]) continue;
        for (uint32_t n = 0; n < 2; n++)
            if (now->way[n].serial == t->way[n].serial) now->way[n].box->use |= BOX_AGAIN;
    }
}

/* A product begins a sum, or adds to one. */
static void keep_take(const struct layout_case *c, const struct way *a, const struct way *b)
{
    const struct event *e = c->event;
    struct layout *l = c->layout;
    const struct take now = {.warp = e->warp,
                             .cta = e->cta,
                             .d = e->product->d,
                             .length = e->product->a.k,
                             .rows = {e->product->a.mn, e->product->b.mn},
                             .way = {*a, *b}};
    judge_sum(c, &now);
    l->take[l->takes++ % TAKES] = now;
}

static void forget_takes(struct layout *l, const struct event *e)
{
    for (uint32_t i = 0; i < TAKES; i++) {
        struct take *t = &l->take[i];
        if (t->warp == e->warp && (!e->product || (t->cta == e->cta && t->d == e->product->d)))
            t->warp = NULL;
    }
}

void layout_wait(struct layout *l, const struct event *e)
{
    forget_takes(l, e);
}

/* A begins below the first row of a box and goes on, behind its last, with other k. */
static bool goes_on_elsewhere(const struct layout_case *c, const struct face *f,
                              const struct way *w)
{
    const struct box *next;
    if (!(f->box[f->k_box].use & BOX_LEFT)) return false;
    next = box_of(c->layout, c->chunks, f->behind);
    return next && box_same_tensor(next, w->box) && next->coord[0] != w->box->coord[0];
}

static void judge_pair(const struct layout_case *c, const struct face *fa, struct way a,
                       const struct face *fb, struct way b)
{
    const uint32_t common = gcd(a.extent, b.extent);
    bool other_k;
    if (fa->flipped || fb->flipped) return; /* told, or equal */
    other_k = common && (uint32_t)a.first % common != (uint32_t)b.first % common;
    if (fa->k_order != fb->k_order)
        layout_tell_steps(c, a.box, b.box);
    else if (a.from != b.from &&
             (other_k || goes_on_elsewhere(c, fa, &a) || goes_on_elsewhere(c, fb, &b)))
        layout_tell_start(c, a.box, (int32_t)a.from, b.box, (int32_t)b.from);
    else
        keep_take(c, &a, &b);
}

/* A base offset that moves chunks along k does no harm where both operands move alike. */
static void judge_flip(struct layout_case *c, struct face_view *v, const struct face *f, bool alike)
{
    struct face told;
    if (!f || !f->flipped || f->fault || alike) return;
    (void)face_view(v, &c->layout->scratch, c->operand, false);
    told = *f;
    told.fault = FACE_SHUFFLED;
    layout_tell_order(c, v, &told);
}

void layout_product(struct layout *l, const struct event *e, const struct chunks *chunks)
{
    const struct product *p = e->product;
    struct layout_case on_a = {.layout = l,
                               .group = l->group,
                               .boxes = l->boxes,
                               .scratch = &l->scratch,
                               .event = e,
                               .chunks = chunks,
                               .operand = &p->a,
                               .name = p->copy ? "the source" : "A"};
    struct layout_case on_b = on_a;
    struct face_view view;
    struct face kept;
    const struct face *a, *b;
    struct way way_a, way_b;
    bool ways;
    on_b.operand = &p->b;
    on_b.name = "B";
    if (!p->copy && !p->accumulate) forget_takes(l, e);
    a = judge_operand(&on_a, &view);
    if (a) { /* B may take its place */
        kept = *a;
        a = &kept;
    }
    if (p->copy) return;
    b = judge_operand(&on_b, &view);
    ways = a && b && !p->sparse && p->a.o->elem_bytes == p->b.o->elem_bytes &&
           way_of(&on_a, a, &way_a) && way_of(&on_b, b, &way_b);
    if ((a && a->flipped) || (b && b->flipped)) {
        const bool alike = ways && a->k_order == b->k_order &&
                           (way_a.first == way_b.first || way_a.from == way_b.from);
        judge_flip(&on_b, &view, b, alike);
        judge_flip(&on_a, &view, a, alike);
    }
    if (ways) judge_pair(&on_a, a, way_a, b, way_b);
}

/* ---- what a box leaves behind ---- */

/* Rows and columns of chunks that somebody read. */
struct reads {
    uint8_t row[1024], column[256];
    uint32_t rows, columns;
};

static void collect(struct reads *r, const struct box *box, const struct chunks *chunks)
{
    memset(r, 0, sizeof *r);
    r->rows = box->rows < sizeof r->row ? box->rows : sizeof r->row;
    r->columns = box->bytes / CHUNK < sizeof r->column ? box->bytes / CHUNK : sizeof r->column;
    for (uint32_t row = 0; row < r->rows; row++) {
        for (uint32_t column = 0; column < r->columns; column++) {
            const uint32_t at = box_address(box, row, column * CHUNK) / CHUNK;
            if (at >= chunks->count || !(chunks->at[at].flags & CHUNK_READ)) continue;
            r->row[row] = 1;
            r->column[column] = 1;
        }
    }
}

/* The first that was not read, between others that were; `count` for none. */
static uint32_t gap(const uint8_t *read, uint32_t count)
{
    uint32_t first = 0, last = count, at;
    while (first < count && !read[first]) first++;
    while (last > first && !read[last - 1]) last--;
    for (at = first; at < last; at++)
        if (!read[at]) return at;
    return count;
}

/* Chunks before the row at which the operand began that left the box, of columns that it read. */
static bool left_unread(const struct box *box, const struct chunks *chunks)
{
    for (uint32_t row = 0; row < box->left_from; row++) {
        for (uint32_t byte = 0; byte < box->bytes; byte += CHUNK) {
            const uint32_t at = box_address(box, row, byte) / CHUNK,
                           read = box_address(box, box->left_from, byte) / CHUNK;
            if (at < chunks->count && read < chunks->count &&
                !(chunks->at[at].flags & CHUNK_READ) && chunks->at[read].flags & CHUNK_READ)
                return true;
        }
    }
    return false;
}

/* None of the rows behind those at which an operand left the box. */
static bool cut_unread(const struct box *box, const struct reads *r)
{
    for (uint32_t row = box->cut_at; row < r->rows; row++)
        if (r->row[row]) return false;
    return box->cut_at < r->rows;
}

/* Some of k. */
static bool part_unread(const struct reads *r, uint8_t use)
{
    bool missing = false;
    for (uint32_t i = 0; i < r->rows && use & BOX_LINES_K; i++) missing |= !r->row[i];
    for (uint32_t i = 0; i < r->columns && use & BOX_LINES_MN; i++) missing |= !r->column[i];
    return missing;
}

static bool nearby(uint32_t a, uint32_t b)
{
    return a - b < NEAR || b - a < NEAR;
}

static bool unread(const struct reads *r)
{
    for (uint32_t row = 0; row < r->rows; row++)
        if (r->row[row]) return false;
    return true;
}

/* The same box was loaded twice, and nobody has read the other copy. If a narrow tile has no use for
 * half of a stage, kernels fill it in this way, so the stage gets as many bytes as always. */
static bool has_unread_twin(const struct boxes *boxes, const struct box *box)
{
    for (uint32_t i = 1; i <= boxes->count; i++) {
        const struct box *other = boxes->at[i];
        if (other != box && other->live && !other->use && other->cta == box->cta &&
            box_same_tensor(other, box) && !memcmp(other->coord, box->coord, sizeof box->coord))
            return true;
    }
    return false;
}

/* In k it lies between two boxes that products read, or beside one of which they added the same part again and
 * again; or in the rows beside one that an operand left by a jump. */
static void judge_unread(const struct layout_case *c, const struct box *box)
{
    const struct layout *l = c->layout;
    const struct box *below = NULL, *above = NULL, *again = NULL;
    for (uint32_t i = 0; i < STRAYS; i++) {
        const struct stray *s = &l->stray[i];
        if (!s->in || s->tensor != box->map.address || s->cta != box->cta ||
            !nearby(s->serial, box->serial) || memcmp(s->next, box->coord, sizeof s->next) != 0)
            continue;
        layout_tell_jump(c, box, s->in, s->warp);
        return;
    }
    for (uint32_t i = 1; i <= l->boxes->count; i++) {
        const struct box *other = l->boxes->at[i];
        bool aligned = other->live && other->use & BOX_LINES_MN && other->cta == box->cta &&
                       box_same_tensor(other, box) && nearby(other->serial, box->serial) &&
                       box_plain(box) && box_plain(other);
        for (uint32_t d = 1; d < BOX_RANK; d++) aligned &= other->coord[d] == box->coord[d];
        if (!aligned) continue;
        if (other->use & BOX_AGAIN) again = other;
        if (other->coord[0] < box->coord[0]) below = other;
        if (other->coord[0] > box->coord[0]) above = other;
    }
    if (again)
        layout_tell_again(c, again);
    else if (below && above && !has_unread_twin(l->boxes, below) &&
             !has_unread_twin(l->boxes, above))
        layout_tell_skip(c, box, below);
}

void layout_close(struct layout *l, struct box *box, const struct chunks *chunks)
{
    struct layout_case c = {.layout = l, .group = l->group, .boxes = l->boxes, .chunks = chunks};
    struct reads r;
    uint32_t row, column;
    bool row_left, column_left;
    box->closed = true;
    if (box->map.interleave) return;
    collect(&r, box, chunks);
    if (!box->use) {
        if (unread(&r)) judge_unread(&c, box);
        return;
    }
    row = gap(r.row, r.rows);
    column = gap(r.column, r.columns);
    /* a gap in k is always wrong; one among the rows where a product went across it */
    row_left = row < r.rows && box->use & (BOX_LINES_K | BOX_SKIPPED);
    column_left = column < r.columns && box->use & (BOX_LINES_MN | BOX_SKIPPED);
    if (row_left)
        layout_tell_gap(&c, box, "row", row, box->use & BOX_LINES_K);
    else if (column_left)
        layout_tell_gap(&c, box, "16-byte column", column, box->use & BOX_LINES_MN);
    else if (box->use & BOX_CUT && cut_unread(box, &r))
        layout_tell_gap(&c, box, "row", box->cut_at, false);
    else if (box->use & BOX_LEFT && left_unread(box, chunks))
        layout_tell_left(&c, box);
    else if (box->use & BOX_AGAIN && part_unread(&r, box->use))
        layout_tell_again(&c, box);
}
