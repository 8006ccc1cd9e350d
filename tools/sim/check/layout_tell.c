/* Layout findings in words (layout_tell.h). */
#include "check/layout_tell.h"
#include "decode/names.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT = 1500, NOTE = 120 };

static const struct kernel *kernel_of(const struct layout_case *c)
{
    return c->group->launch->kernel;
}

/* `staged` and `also` (or NULL): copies that the finding is about. */
static void tell(const struct layout_case *c, enum finding_kind kind, struct warp *w,
                 const struct insn *in, const struct box *staged, const struct box *also,
                 const char *message)
{
    const struct ptx_module *module = kernel_of(c)->module;
    const struct box *const boxes[2] = {staged, also};
    struct finding f = {.severity = SEV_ERROR,
                        .kind = kind,
                        .group = c->group->index,
                        .kernel = kernel_of(c)->entry->name,
                        .warp = -1,
                        .lane = -1};
    f.seq = c->group->finding_seq++;
    f.file = ptx_file(module, in->src->pos);
    f.line = in->src->pos.line;
    f.instr = in->src->text;
    if (w) {
        memcpy(f.cta, w->cta->id, sizeof f.cta);
        f.warp = (int32_t)w->id;
    }
    (void)name_shared(kernel_of(c), staged->start, f.object, sizeof f.object);
    (void)snprintf(f.message, sizeof f.message, "%s", message);
    for (uint32_t i = 0; i < 2 && boxes[i]; i++) {
        struct finding_related *r = &f.related[f.related_count++];
        r->file = ptx_file(module, boxes[i]->in->src->pos);
        r->line = boxes[i]->in->src->pos.line;
        (void)snprintf(r->note, sizeof r->note, "the tensor copy that staged %s",
                       i ? "the tile of B" : "the tile");
    }
    sim_report(c->group->launch, &f);
}

__attribute__((format(printf, 4, 5))) static void tell_event(const struct layout_case *c,
                                                             const struct box *box,
                                                             const struct box *also,
                                                             const char *format, ...)
{
    char text[TEXT];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tell(c, FIND_LAYOUT, c->event->warp, c->event->in, box, also, text);
}

static const char *dtype_text(uint32_t dtype)
{
    static const char *const texts[] = {
        "UINT8",        "UINT16",       "UINT32",        "INT32",        "UINT64",      "INT64",
        "FLOAT16",      "FLOAT32",      "FLOAT64",       "BFLOAT16",     "FLOAT32_FTZ", "TFLOAT32",
        "TFLOAT32_FTZ", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B"};
    return dtype < sizeof texts / sizeof texts[0] ? texts[dtype] : "another type";
}

static const char *format_text(enum tensor_format format)
{
    static const char *const texts[TF_FORMATS] = {"f16",  "bf16", "tf32",          "e4m3",
                                                  "e5m2", "e2m3", "e3m2",          "e2m1 in bytes",
                                                  "u8",   "s8",   "e2m1 in pairs", "u4",
                                                  "s4"};
    return format < TF_FORMATS ? texts[format] : "another type";
}

void layout_tell_type(const struct layout_case *c, const struct box *box)
{
    char name[96];
    (void)name_shared(kernel_of(c), box->start, name, sizeof name);
    tell_event(
        c, box, NULL,
        "the product takes %s for %s, but the tensor map of the copy at line %u, which staged "
        "%s, says %s: the instruction or its descriptor names the wrong element type, or the "
        "map does",
        c->name, format_text(c->operand->format), box->in->src->pos.line, name,
        dtype_text(box->map.dtype));
}

/* ---- order ---- */

/* What the descriptor and the instruction say. */
static void descriptor_text(const struct smem_operand *o, char *text, size_t size)
{
    (void)snprintf(text, size, "%s, %s-major, leading offset %u, stride offset %u%s",
                   swizzle_text(o->swizzle), o->mn_major ? "MN" : "K", o->lbo, o->sbo,
                   o->phase ? ", a base offset that is not 0" : "");
}

/* Would it fit so? */
static bool would_fit(const struct layout_case *c, struct face_view *v,
                      const struct smem_operand *o)
{
    struct smem_operand changed = *o;
    struct product_operand p = *c->operand;
    struct face f;
    p.o = &changed;
    if (!face_view(v, c->scratch, &p, v->copy)) return false;
    face_look(&f, v, c->scratch, c->boxes, c->chunks);
    return f.known && f.whole && !f.fault;
}

/* Finds one thing that, changed alone, makes the operand fit. False for none. */
static bool find_remedy(const struct layout_case *c, struct face_view *v, const struct box *box,
                        char *text, size_t size)
{
    const struct smem_operand o = v->o;
    struct {
        struct smem_operand o;
        const char *format;
        uint32_t value;
    } trial[] = {{o, "with the map's swizzle in the descriptor it fits", 0},
                 {o, "with a base offset of 0 in the descriptor it fits", 0},
                 {o, "with leading and stride offset exchanged it fits", 0},
                 {o, "with a leading offset of %u bytes it fits", box->span},
                 {o, "with a stride offset of %u bytes it fits", 8 * box->pitch},
                 {o, o.mn_major ? "taken as K-major it fits" : "taken as MN-major it fits", 0},
                 {o, "it fits at the tile's start, %u bytes before the descriptor's",
                  o.start - box->start}};
    if (box->map.swizzle <= TMAP_SWIZZLE_ATOM_32) trial[0].o.swizzle = box->map.swizzle;
    trial[1].o.phase = 0;
    trial[2].o.lbo = o.sbo;
    trial[2].o.sbo = o.lbo;
    trial[3].o.lbo = trial[3].value;
    trial[4].o.sbo = trial[4].value;
    trial[5].o.mn_major = !o.mn_major;
    trial[6].o.start = box->start;
    for (size_t i = 0; i < sizeof trial / sizeof trial[0]; i++) {
        if (!would_fit(c, v, &trial[i].o)) continue;
        (void)snprintf(text, size, trial[i].format, trial[i].value);
        return true;
    }
    return false;
}

/* A box under the operand that was staged with another swizzle. */
static const struct box *other_swizzle(const struct face_view *v)
{
    for (uint32_t i = 0; i < v->lines * v->parts; i++)
        if (v->entry[i].box && v->entry[i].box->map.swizzle != v->o.swizzle) return v->entry[i].box;
    return NULL;
}

static void chunk_text(const struct face_view *v, uint32_t line, uint32_t part, const char *name,
                       char *text, size_t size)
{
    const uint32_t along = part * v->per_chunk;
    (void)snprintf(text, size, "row %u of %s at k %u", v->o.mn_major ? along : line, name,
                   v->o.mn_major ? line : along);
}

void layout_tell_order(const struct layout_case *c, struct face_view *v, const struct face *f)
{
    char one[64], other[64], from[64] = "", to[64] = "", says[NOTE], remedy[NOTE], text[TEXT],
                             name[96];
    const struct smem_operand o = v->o;
    struct face_entry a, b;
    struct face fresh;
    const struct box *box;
    /* the face may have been kept from another product's look */
    face_look(&fresh, v, c->scratch, c->boxes, c->chunks);
    if (!fresh.fault && !fresh.flipped) return;
    a = v->entry[(size_t)f->line[0] * v->parts + f->part[0]];
    b = v->entry[(size_t)f->line[1] * v->parts + f->part[1]];
    box = f->fault == FACE_SWIZZLE ? other_swizzle(v) : b.box;
    if (!box || (f->fault != FACE_SWIZZLE && (!a.box || !b.box))) return;
    chunk_text(v, f->line[0], f->part[0], c->name, one, sizeof one);
    chunk_text(v, f->line[1], f->part[1], c->name, other, sizeof other);
    if (a.box) box_text(a.box, &a.place, 0, from, sizeof from);
    if (b.box) box_text(b.box, &b.place, 0, to, sizeof to);
    descriptor_text(&o, says, sizeof says);
    (void)name_shared(kernel_of(c), o.start, name, sizeof name);
    if (f->fault == FACE_SAME_BYTES)
        (void)snprintf(text, sizeof text, "%s and %s are the same staged bytes, %s of the tensor",
                       one, other, from);
    else if (f->fault == FACE_SWIZZLE)
        (void)snprintf(text, sizeof text, "the two have different swizzles");
    else if (f->fault == FACE_SHUFFLED)
        (void)snprintf(
            text, sizeof text,
            "with this base offset the swizzle's pattern begins elsewhere than the copy's");
    else
        (void)snprintf(
            text, sizeof text,
            "%s comes from %s of the tensor and %s from %s, but k moves along dimension %u "
            "too",
            one, from, other, to, f->dim);
    if (!find_remedy(c, v, box, remedy, sizeof remedy)) remedy[0] = '\0';
    tell_event(
        c, box, NULL,
        "the descriptor of %s at %s does not fit how the copy at line %u staged the tile: %s. "
        "The descriptor says %s; the map stages rows of %u bytes with %s%s%s",
        c->name, name, box->in->src->pos.line, text, says, box->bytes,
        swizzle_text(box->map.swizzle), remedy[0] ? "; " : "", remedy);
    if (o.swizzle == box->map.swizzle) return;
    (void)snprintf(
        text, sizeof text,
        "the matrix descriptor of an operand at %s names %s, but the tensor copy at line %u "
        "laid it down with %s: tensor map and descriptor must agree",
        name, swizzle_text(o.swizzle), box->in->src->pos.line, swizzle_text(box->map.swizzle));
    tell(c, FIND_MMA_DESC, c->event->warp, c->event->in, box, NULL, text);
}

void layout_tell_unwritten(const struct layout_case *c, const struct box *staged, uint32_t row,
                           uint32_t from, uint32_t to, uint32_t address)
{
    char says[NOTE], name[96], there[96];
    descriptor_text(c->operand->o, says, sizeof says);
    (void)name_shared(kernel_of(c), c->operand->o->start, name, sizeof name);
    (void)name_shared(kernel_of(c), address, there, sizeof there);
    tell_event(c, staged, NULL,
               "the descriptor of %s at %s does not fit how the copy at line %u staged the tile: "
               "row %u of %s is staged at k %u, but at k %u it lies at %s, where nothing was ever "
               "written. The descriptor says %s",
               c->name, name, staged->in->src->pos.line, row, c->name, from, to, there, says);
}

/* ---- A beside B ---- */

void layout_tell_steps(const struct layout_case *c, const struct box *a, const struct box *b)
{
    char text[NOTE];
    descriptor_text(c->event->product->b.o, text, sizeof text);
    tell_event(
        c, a, b,
        "A and B go through k in different orders: element by element, the product multiplies "
        "A of one k with B of another. The descriptor of B says %s",
        text);
}

void layout_tell_start(const struct layout_case *c, const struct box *a, int32_t a_first,
                       const struct box *b, int32_t b_first)
{
    tell_event(
        c, a, b,
        "A begins at k %d of its staged box, B at k %d of its own, and the boxes do not make up "
        "for it: the product multiplies A of one k with B of another. The start address of one "
        "descriptor, or its step from one product to the next, is wrong by %d elements of k",
        a_first, b_first, a_first - b_first);
}

void layout_tell_overlap(const struct layout_case *c, const struct box *box, const char *name,
                         int32_t moved)
{
    tell_event(
        c, box, NULL,
        "of one sum, this product takes %s from %d elements %s an earlier one in k, and each takes "
        "%u: some of k is multiplied twice. A k-step must move the descriptor by %u elements",
        name, moved < 0 ? -moved : moved, moved < 0 ? "before" : "behind", c->event->product->a.k,
        c->event->product->a.k);
}

void layout_tell_slide(const struct layout_case *c, const struct box *box, const char *name,
                       int32_t moved)
{
    tell_event(
        c, box, NULL,
        "this product and an earlier one add to the same sums, but it takes rows of %s that begin "
        "%d %s in the same tile: the step of the descriptor from one product to the next moves "
        "along the rows and not along k",
        name, moved < 0 ? -moved : moved,
        moved < 0 ? "before the earlier ones" : "behind the earlier ones");
}

void layout_tell_turned(const struct layout_case *c, const struct box *a, const struct box *b,
                        const char *name)
{
    tell_event(
        c, a, b,
        "from an earlier product of the same sums to this one, %s moves along k and %s "
        "along its rows, by %u elements each. The other tensor's k is as long as the "
        "dimension that is taken for rows of %s: %s is read with the wrong major-ness (a bit "
        "of the instruction or of its descriptor)",
        *name == 'A' ? "B" : "A", name, c->event->product->a.k, name, name);
}

void layout_tell_apart(const struct layout_case *c, const struct box *a, int32_t a_moved,
                       const struct box *b, int32_t b_moved)
{
    tell_event(
        c, a, b,
        "from an earlier product of the same sums to this one, A moves by %d elements of k and B "
        "by %d: one of the two products multiplies A of one k with B of another. The step of one "
        "descriptor is wrong",
        a_moved, b_moved);
}

/* ---- what a box leaves behind ---- */

void layout_tell_gap(const struct layout_case *c, const struct box *box, const char *what,
                     uint32_t at, bool along_k)
{
    char text[TEXT], name[96];
    (void)name_shared(kernel_of(c), box->start, name, sizeof name);
    (void)snprintf(
        text, sizeof text,
        "products read the tile that the copy at line %u staged at %s on both sides of its "
        "%s %u, but nobody ever read that: %s",
        box->in->src->pos.line, name, what, at,
        along_k ? "k is skipped; the step from one product to the next, or the descriptor's "
                  "stride along k, is too large"
                : "the descriptor's stride between rows is too large");
    tell(c, FIND_LAYOUT, box->reader_warp, box->reader, box, NULL, text);
}

void layout_tell_left(const struct layout_case *c, const struct box *box)
{
    char text[TEXT], name[96];
    (void)name_shared(kernel_of(c), box->start, name, sizeof name);
    (void)snprintf(
        text, sizeof text,
        "an operand begins at row %u of the tile that the copy at line %u staged at %s and "
        "goes on behind the tile's end, while some of the rows before it were never read: a "
        "start address is too high",
        box->left_from, box->in->src->pos.line, name);
    tell(c, FIND_LAYOUT, box->reader_warp, box->reader, box, NULL, text);
}

void layout_tell_again(const struct layout_case *c, const struct box *box)
{
    char text[TEXT], name[96];
    (void)name_shared(kernel_of(c), box->start, name, sizeof name);
    (void)snprintf(
        text, sizeof text,
        "the same product of the tile that the copy at line %u staged at %s was added to one "
        "sum more than once, while the rest of its k was never read: the descriptors do not "
        "move from one product to the next",
        box->in->src->pos.line, name);
    tell(c, FIND_LAYOUT, box->reader_warp, box->reader, box, NULL, text);
}

void layout_tell_jump(const struct layout_case *c, const struct box *box, const struct insn *in,
                      struct warp *w)
{
    char text[TEXT], name[96];
    (void)name_shared(kernel_of(c), box->start, name, sizeof name);
    (void)snprintf(
        text, sizeof text,
        "an operand jumps from a staged tile to memory that is no part of it, while the box "
        "that the copy at line %u staged at %s is never read: a leading or stride offset of "
        "the descriptor is wrong",
        box->in->src->pos.line, name);
    tell(c, FIND_LAYOUT, w, in, box, NULL, text);
}

void layout_tell_skip(const struct layout_case *c, const struct box *box, const struct box *below)
{
    char text[TEXT], name[96];
    (void)name_shared(kernel_of(c), box->start, name, sizeof name);
    (void)snprintf(
        text, sizeof text,
        "products read boxes of a tile on both sides, in k, of the one that the copy at line "
        "%u staged at %s, but nobody ever read that: the step of the descriptor from one "
        "product to the next, or its stride along k, is too large",
        box->in->src->pos.line, name);
    tell(c, FIND_LAYOUT, below->reader_warp, below->reader, box, NULL, text);
}
