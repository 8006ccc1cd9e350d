/* Faces of operands (layout_face.h). */
#include "check/layout_face.h"

#include <stdlib.h>

bool face_view(struct face_view *v, struct face_scratch *s, const struct product_operand *p,
               bool copy)
{
    const bool mn_major = p->o->mn_major;
    v->o = *p->o;
    v->copy = copy;
    v->per_chunk = CHUNK / p->o->elem_bytes;
    v->lines = mn_major ? p->k : p->mn;
    v->parts = ((mn_major ? p->mn : p->k) + v->per_chunk - 1) / v->per_chunk;
    v->entry = s->entry;
    return v->lines <= FACE_LINES && v->lines * v->parts <= FACE_ENTRIES;
}

static uint32_t address_of(const struct face_view *v, uint32_t line, uint32_t part)
{
    const uint32_t along = part * v->per_chunk;
    return v->o.mn_major ? smem_element(&v->o, along, line) : smem_element(&v->o, line, along);
}

struct box *face_box_at(const struct face_view *v, uint32_t line, uint32_t part,
                        const struct boxes *boxes, const struct chunks *chunks)
{
    const uint32_t chunk = address_of(v, line, part) / CHUNK;
    const uint32_t box = chunk < chunks->count ? chunks->at[chunk].box : 0;
    return box ? boxes->at[box] : NULL;
}

static const struct face_entry *entry_at(const struct face_view *v, uint32_t line, uint32_t part)
{
    return &v->entry[(size_t)line * v->parts + part];
}

static void set_fault(struct face *f, enum face_fault fault, uint32_t line, uint32_t part,
                      uint32_t other_line, uint32_t other_part)
{
    if (f->fault) return;
    f->fault = (uint8_t)fault;
    f->line[0] = (uint16_t)other_line;
    f->part[0] = (uint16_t)other_part;
    f->line[1] = (uint16_t)line;
    f->part[1] = (uint16_t)part;
}

/* ---- where everything comes from ---- */

static void note_box(struct face *f, const struct face_entry *e, const struct box *first)
{
    for (uint32_t i = 0; i < f->boxes && i < FACE_BOXES; i++)
        if (f->box[i].chunk && f->box[i].shape == e->box->shape) return;
    if (f->boxes < FACE_BOXES)
        f->box[f->boxes] = (struct face_box){
            .chunk = e->chunk, .shape = e->box->shape, .apart = face_apart(e->box, first)};
    f->boxes++;
}

static bool make_room(struct face_scratch *s, uint32_t count)
{
    uint32_t *stamp;
    uint16_t *seen;
    if (s->stamps >= count) return true;
    stamp = realloc(s->stamp, count * sizeof *stamp);
    if (stamp) s->stamp = stamp;
    seen = stamp ? realloc(s->seen, count * sizeof *seen) : NULL;
    if (!seen) {
        s->exhausted = true;
        return false;
    }
    s->seen = seen;
    memset(s->stamp, 0, count * sizeof *stamp);
    s->stamps = count;
    s->look = 0;
    return true;
}

/* Fills the view's entries; chunks that two places share are a fault. */
static void find_origins(struct face *f, struct face_view *v, struct face_scratch *s,
                         const struct boxes *boxes, const struct chunks *chunks)
{
    const struct box *last = NULL, *first = NULL;
    if (!++s->look) { /* every 2^32 looks */
        memset(s->stamp, 0, s->stamps * sizeof *s->stamp);
        s->look = 1;
    }
    for (uint32_t i = 0; i < v->lines * v->parts; i++) {
        struct face_entry *e = &v->entry[i];
        const uint32_t address = address_of(v, i / v->parts, i % v->parts);
        uint32_t number;
        e->chunk = address / CHUNK;
        number = e->chunk < chunks->count ? chunks->at[e->chunk].box : 0;
        e->box = number ? boxes->at[number] : NULL;
        if (!e->box || !box_place(e->box, address, &e->place)) {
            e->box = NULL;
            f->whole = false;
            continue;
        }
        f->known = true;
        if (!first) first = e->box;
        if (e->box != last) note_box(f, e, first);
        last = e->box;
        if (s->stamp[e->chunk] == s->look)
            set_fault(f, FACE_SAME_BYTES, i / v->parts, i % v->parts, s->seen[e->chunk] / v->parts,
                      s->seen[e->chunk] % v->parts);
        s->stamp[e->chunk] = s->look;
        s->seen[e->chunk] = (uint16_t)i;
    }
}

/* ---- one box ---- */

/* What was seen of it. */
struct spread {
    uint16_t line_first[FACE_LINES], part_first[FACE_ENTRIES]; /* entry, or NO_ENTRY */
    bool along_line[BOX_RANK], along_part[BOX_RANK]; /* the coordinate changes from line to line */
    uint16_t line_pair[BOX_RANK][2], part_pair[BOX_RANK][2]; /* entries that differ so */
};

static void compare(const struct face_view *v, uint32_t one, uint32_t other, bool changes[BOX_RANK],
                    uint16_t pair[][2])
{
    const struct box_place *a = &v->entry[one].place, *b = &v->entry[other].place;
    for (uint32_t d = 0; d < BOX_RANK; d++) {
        if (a->at[d] == b->at[d] || changes[d]) continue;
        changes[d] = true;
        pair[d][0] = (uint16_t)one;
        pair[d][1] = (uint16_t)other;
    }
}

/* A dimension belongs to the rows or to k. */
static void look_at_box(struct face *f, const struct face_view *v, const struct box *box,
                        struct spread *s)
{
    for (uint32_t i = 0; i < v->lines; i++) s->line_first[i] = NO_ENTRY;
    for (uint32_t i = 0; i < v->parts; i++) s->part_first[i] = NO_ENTRY;
    memset(s->along_line, 0, sizeof s->along_line);
    memset(s->along_part, 0, sizeof s->along_part);
    memset(s->line_pair, 0, sizeof s->line_pair);
    memset(s->part_pair, 0, sizeof s->part_pair);
    for (uint32_t i = 0; v->parts && i < v->lines * v->parts; i++) {
        const uint32_t line = i / v->parts, part = i % v->parts;
        if (v->entry[i].box != box) continue;
        if (s->line_first[line] == NO_ENTRY)
            s->line_first[line] = (uint16_t)i;
        else
            compare(v, s->line_first[line], i, s->along_part, s->part_pair);
        if (s->part_first[part] == NO_ENTRY)
            s->part_first[part] = (uint16_t)i;
        else
            compare(v, s->part_first[part], i, s->along_line, s->line_pair);
    }
    for (uint32_t d = 0; d < BOX_RANK && !v->copy && v->parts; d++) {
        const uint16_t *pair = v->o.mn_major ? s->part_pair[d] : s->line_pair[d]; /* at one k */
        if (!s->along_line[d] || !s->along_part[d] || f->fault) continue;
        f->dim = (uint8_t)d;
        set_fault(f, FACE_DISAGREES, pair[1] / v->parts, pair[1] % v->parts, pair[0] / v->parts,
                  pair[0] % v->parts);
    }
}

/* Copies swizzle by the bits of the address itself: the pattern must begin there for the descriptor too. */
static void look_at_swizzle(struct face *f, const struct face_view *v, const struct box *box)
{
    struct smem_operand plain = v->o;
    plain.phase = 0;
    if (v->o.swizzle != box->map.swizzle) set_fault(f, FACE_SWIZZLE, 0, 0, 0, 0);
    for (uint32_t i = 0; v->o.phase && i < v->lines * v->parts; i++) {
        const uint32_t line = i / v->parts, along = i % v->parts * v->per_chunk;
        const uint32_t right =
            v->o.mn_major ? smem_element(&plain, along, line) : smem_element(&plain, line, along);
        if (right / CHUNK == v->entry[i].chunk || v->entry[i].box != box) continue;
        f->flipped = true;
        if (v->o.mn_major || v->copy)
            set_fault(f, FACE_SHUFFLED, line, i % v->parts, line, i % v->parts);
        return;
    }
}

/* How the box's rows were used: whether some were left out between others, and whether the operand began
 * inside the box and went on behind it. */
static void look_at_use(struct face *f, struct face_box *fb, const struct face_view *v,
                        const struct box *box)
{
    uint32_t first = UINT32_MAX, last = 0, low = UINT32_MAX, high = 0, columns = 0;
    uint64_t seen[4] = {0};
    const bool begins = entry_at(v, 0, 0)->box == box;
    bool ends = true;
    for (uint32_t i = 0; i < v->lines * v->parts; i++) {
        const struct box_place *p = &v->entry[i].place;
        if (v->entry[i].box != box) {
            if (ends && i % v->parts == 0) {
                if (begins) f->behind = v->entry[i].chunk;
                ends = false;
            }
            continue;
        }
        if (p->row < first) first = p->row;
        if (p->row > last) last = p->row;
        if ((uint32_t)p->at[0] < low) low = (uint32_t)p->at[0];
        if ((uint32_t)p->at[0] > high) high = (uint32_t)p->at[0];
        if (p->row < 256) seen[p->row / 64] |= 1ULL << p->row % 64;
        if (i < v->parts) columns++;
    }
    fb->use |= v->o.mn_major ? BOX_LINES_K : BOX_LINES_MN;
    if (v->o.mn_major
            ? columns && (high - low) / CHUNK + 1 > columns
            : last - first + 1 >
                  (uint32_t)(__builtin_popcountll(seen[0]) + __builtin_popcountll(seen[1]) +
                             __builtin_popcountll(seen[2]) + __builtin_popcountll(seen[3])))
        fb->use |= BOX_SKIPPED;
    if (begins && !ends && first && last + 1 == box->rows) {
        fb->use |= BOX_LEFT;
        fb->left_from = first;
    }
    if (begins && !ends && !v->o.mn_major && !v->copy && last + 1 < box->rows) {
        fb->use |= BOX_CUT;
        fb->cut_at = last + 1;
    }
}

/* ---- along k ---- */

static uint64_t step_hash(uint64_t hash, int64_t value)
{
    hash = (hash ^ (uint64_t)value) * 0x9E3779B97F4A7C15ULL;
    return hash ^ hash >> 31;
}

/* Of an operand whose lines are steps of k. */
static bool k_by_lines(struct face *f, const struct face_view *v, const struct spread *s)
{
    const struct face_entry *first = entry_at(v, 0, 0);
    uint32_t dims = 0;
    for (uint32_t d = 0; d < BOX_RANK; d++) {
        if (!s->along_line[d]) continue;
        dims++;
        f->k_dim = (uint8_t)d;
    }
    if (dims != 1 || !f->k_dim || first->box->map.element_stride[f->k_dim] != 1) return false;
    for (uint32_t i = 0; i < v->lines; i++) {
        const struct face_entry *e = entry_at(v, i, 0);
        if (e->box != first->box) return false;
        f->k_order = step_hash(f->k_order, e->place.at[f->k_dim] - first->place.at[f->k_dim]);
    }
    return box_plain(first->box);
}

/* Of one whose lines are rows: k runs along dimension 0, perhaps through several boxes. */
static bool k_by_parts(struct face *f, const struct face_view *v, const struct spread *s)
{
    const struct face_entry *first = entry_at(v, 0, 0);
    const int64_t from = box_coordinate(first->box, &first->place, 0);
    f->k_dim = 0;
    if (s->along_line[0]) return false;
    for (uint32_t d = 1; d < BOX_RANK; d++)
        if (s->along_line[d]) f->row_dims |= (uint8_t)(1U << d);
    for (uint32_t i = 0; i < v->parts; i++) {
        const struct face_entry *e = entry_at(v, 0, i);
        if (!e->box || !box_same_tensor(e->box, first->box)) return false;
        for (uint32_t d = 1; d < BOX_RANK; d++)
            if (box_coordinate(e->box, &e->place, d) !=
                box_coordinate(first->box, &first->place, d))
                return false;
        const int64_t apart = (box_coordinate(e->box, &e->place, 0) - from) / v->o.elem_bytes;
        for (uint32_t inner = 0; inner < v->per_chunk; inner++)
            f->k_order = step_hash(f->k_order, apart + inner);
    }
    return true;
}

static void look_along_k(struct face *f, const struct face_view *v, const struct spread *s)
{
    f->k_order = 1;
    f->first = entry_at(v, 0, 0)->place;
    f->along_k = v->o.mn_major ? k_by_lines(f, v, s) : k_by_parts(f, v, s);
}

/* ---- where it leaves the tensor ---- */

/* The next chunk lies right behind the box: an operand larger than what was staged. */
static bool adjacent(const struct box *box, const struct face_entry *next)
{
    const uint32_t end = box->start + box->span, at = next->chunk * CHUNK;
    return at >= end && at < end + 8U * box->pitch;
}

/* Along the rows of A or the columns of B, at the first k, where those run through several boxes. */
static void look_for_jumps(struct face *f, const struct face_view *v)
{
    for (uint32_t part = 1; v->o.mn_major && part < v->parts; part++) {
        const struct face_entry *e = entry_at(v, 0, part - 1), *to = entry_at(v, 0, part);
        if (!e->box || (to->box && box_same_tensor(to->box, e->box))) continue;
        f->strayed |= !adjacent(e->box, to);
    }
}

uint64_t face_apart(const struct box *box, const struct box *from)
{
    uint64_t hash = box_same_tensor(box, from);
    for (uint32_t d = 0; d < BOX_RANK; d++)
        hash = step_hash(hash, (int64_t)box->coord[d] - from->coord[d]);
    return hash;
}

void face_look(struct face *f, struct face_view *v, struct face_scratch *s,
               const struct boxes *boxes, const struct chunks *chunks)
{
    struct spread spread;
    *f = (struct face){.whole = true};
    if (!make_room(s, chunks->count)) return;
    find_origins(f, v, s, boxes, chunks);
    for (uint32_t i = 0; i < f->boxes && i < FACE_BOXES; i++) {
        const struct box *box = boxes->at[chunks->at[f->box[i].chunk].box];
        look_at_box(f, v, box, &spread);
        look_at_swizzle(f, v, box);
        look_at_use(f, &f->box[i], v, box);
        if (entry_at(v, 0, 0)->box != box || v->copy) continue;
        f->k_box = i;
        look_along_k(f, v, &spread);
    }
    if (!v->copy) look_for_jumps(f, v);
}
