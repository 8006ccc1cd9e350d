/*
 * Tensor copies (PTX ISA "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor",
 * "cp.async.bulk.prefetch.tensor").
 */
#include "async/bulk.h"
#include "machine/mem.h"
#include "async/late.h"
#include "async/tmap_copy.h"

#include <stdio.h>

enum { MAP_BYTES = 128, SHARED_ALIGN = 128 };

/* insn.aux of every tensor copy; argument numbers follow the row's operand pattern. */
struct tma_form {
    uint32_t rank;
    uint32_t map_arg, shared_arg; /* arg of the tensor address, of the shared address */
    uint32_t map_imm, shared_imm; /* which address operand each is */
    uint32_t mask_arg;            /* multicast; 0: none */
    uint32_t coords;              /* as many as the rank, or a column and four rows */
    bool im2col;                  /* with rank - 2 offsets after a load's coordinates */
    bool rows4;                   /* .tile::gather4, .tile::scatter4 */
    uint8_t wide;                 /* enum tmap_wide: .im2col::w; its halo and offset follow */
    bool own_cta;                 /* .shared::cta destination */
    bool pair;                    /* .cta_group::2 */
    const char *op;               /* reductions: "add", … */
};

/* One destination's share of a load. */
struct tma_load {
    struct tmap map;
    int32_t coord[TMAP_COORDS];
    struct bulk_place dst;
    struct bulk_bar bar;
    uint32_t shared_by; /* CTAs of a multicast, else 0 */
    const void
        *again; /* late.h: the map is read once more when the copy is made; NULL: it is not */
};

/* A store: the box follows, dense, once stage 0 has read it. */
struct tma_store {
    struct tmap map;
    int32_t coord[TMAP_COORDS];
    struct bulk_place src;
    reduce_fn *reduce; /* NULL: plain */
    _Alignas(16) uint8_t box[];
};

/* ---- the map and the box ---- */

static enum step fault_desc(struct warp *w, const struct insn *in, uint32_t lane, const char *rule,
                            uint32_t got, uint32_t wanted)
{
    return sim_fault(w, in, lane, 719, FIND_TMA_DESC, CAUSE_NONE, "",
                     "tensor map: %s (%u where the instruction takes %u)", rule, got, wanted);
}

static enum step check_map(struct warp *w, const struct insn *in, uint32_t lane,
                           const struct tmap *t)
{
    const struct tma_form *form = in->aux;
    char why[256];
    /* The driver's encoder has judged the others. */
    if (t->foreign && tmap_validate(t, w->cta->group->launch->gpu->cc_major, why, sizeof why))
        return sim_fault(w, in, lane, 719, FIND_TMA_DESC, CAUSE_NONE, "",
                         "tensor map, not as a driver encodes one: %s", why);
    if (t->foreign & TMAP_WAS_TF32 && t->dtype < TMAP_F16)
        return sim_fault(w, in, lane, 715, FIND_TMA_DESC, CAUSE_NONE, "",
                         "the tensor map was encoded for TF32, and tensormap.replace made its "
                         "elements integers (%u)",
                         t->dtype);
    if (t->im2col != form->im2col)
        return fault_desc(w, in, lane, "the access mode, tiled 0 or im2col 1, is another",
                          t->im2col, form->im2col);
    if (t->rank != form->rank) {
        return fault_desc(w, in, lane, "rank differs from the instruction's", t->rank, form->rank);
    }
    if (t->wide != form->wide)
        return fault_desc(w, in, lane, "the im2col mode, plain 0, w 1 or w::128 2, is another",
                          t->wide, form->wide);
    /* PTX ISA ".tile::scatter4 and .tile::gather4 modes". */
    if (t->rows4 && (t->box[1] != 1 || t->interleave))
        return fault_desc(w, in, lane,
                          "gather4 and scatter4 take boxes of one row, not interleaved", t->box[1],
                          1);
    return STEP_NEXT;
}

/* {wHalo, wOffset}: the halo belongs to the box, the offset moves it along W. */
static bool take_halo(const struct tma_form *form, struct tmap *t, int32_t *coord)
{
    int32_t halo = coord[TMAP_OFFSETS], offset = coord[TMAP_OFFSETS + 1];
    t->halo = (uint16_t)halo;
    coord[TMAP_OFFSETS] = offset;
    coord[TMAP_OFFSETS + 1] = 0;
    return halo < (form->wide == TMAP_WIDE_128 ? 32 : 512) && offset < 32;
}

/* Reads map and coordinates of one lane. `again` (may be NULL): as tma_load has it. */
static enum step read_box(struct warp *w, const struct insn *in, uint32_t lane, struct tmap *t,
                          int32_t coord[TMAP_COORDS], uint64_t *map_address, const void **again)
{
    const struct tma_form *form = in->aux;
    uint64_t address = bulk_address(w, in, lane, form->map_arg, form->map_imm);
    const void *bytes = mem_at(w, in, lane, SPACE_NONE, address, MAP_BYTES, 64, ACCESS_READ, false);
    uint8_t before[MAP_BYTES];
    if (again) *again = w->cta->group->late ? bytes : NULL;
    if (!bytes) return STEP_FAULT;
    if (w->cta->group->late) bytes = late_map(w, in, lane, address, bytes, before);
    if (again && bytes == before) *again = NULL;
    *map_address = address;
    memset(coord, 0, TMAP_COORDS * sizeof *coord);
    if (!tmap_decode(bytes, t)) { /* an H200: 715 */
        return sim_fault(w, in, lane, 715, FIND_TMA_DESC, CAUSE_NONE, "",
                         "the 128 bytes at 0x%llx are no tensor map: not what "
                         "cuTensorMapEncode wrote, or written over since",
                         (unsigned long long)address);
    }
    for (uint32_t d = 0; d < form->coords; d++) {
        coord[d] = (int32_t)arg_lane(w, in->list[d], lane);
    }
    for (uint32_t i = form->coords; i < in->list_count; i++) {
        coord[TMAP_OFFSETS + i - form->coords] = (uint16_t)arg_lane(w, in->list[i], lane);
    }
    t->rows4 = form->rows4;
    if (form->wide && !take_halo(form, t, coord)) {
        return sim_fault(w, in, lane, 715, FIND_TMA_DESC, CAUSE_NONE, "",
                         "im2col::w: a halo is below 512 (w::128: 32), an offset below 32");
    }
    /* PTX ISA "Restriction on Tensor Copy instructions". */
    if (t->dtype >= TMAP_U4_ALIGN16 && coord[0] % 128) {
        return sim_fault(w, in, lane, 716, FIND_MISALIGNED, CAUSE_NONE, "",
                         "first coordinate %d of a packed 4- or 6-bit tensor is not a multiple of "
                         "128",
                         coord[0]);
    }
    if (t->dtype == TMAP_U4_ALIGN8 && coord[0] % 2) {
        return sim_fault(w, in, lane, 801, FIND_UNSUPPORTED, CAUSE_NONE, "",
                         "first coordinate %d of a 4-bit tensor is inside a byte: not modelled",
                         coord[0]);
    }
    return check_map(w, in, lane, t);
}

static void publish_map_read(const struct async_op *op, uint64_t address)
{
    bool param = (address & WINDOW_MASK) == PARAM_WINDOW;
    if (!op->cta->group->observer || param) return; /* parameters cannot change */
    bulk_access_global(op, ACCESS_READ, PROXY_TENSORMAP, address, MAP_BYTES);
}

/* A copy starts on a 16-byte chunk of its row, and a store or reduction not before the tensor; an
 * H200 ends the kernel with "illegal instruction" otherwise. */
static enum step check_start(struct warp *w, const struct insn *in, uint32_t lane,
                             const struct tmap *t, const int32_t *coord, bool store)
{
    const struct tma_form *form = in->aux;
    for (uint32_t d = 0; d < form->coords && store; d++) {
        if (coord[d] >= 0) continue;
        return sim_fault(w, in, lane, 715, FIND_OOB, CAUSE_NONE, "",
                         "tensor store: coordinate %u is %d; a store may not start before the "
                         "tensor (a load may)",
                         d, coord[d]);
    }
    if ((int64_t)coord[0] * tmap_unit_bits(t) % 128 == 0) return STEP_NEXT;
    return sim_fault(w, in, lane, 715, FIND_MISALIGNED, CAUSE_NONE, "",
                     "tensor copy: coordinate 0 is %d, byte %lld of a row: not a multiple of 16",
                     coord[0], (long long)coord[0] * tmap_unit_bits(t) / 8);
}

/* ---- loads ---- */

/* Nothing keeps a map as it is while a copy through it is under way, so it may be read as late as the copy is made. Of another
 * map it takes what leaves the box as it was announced. */
static void read_again(struct tma_load *l)
{
    struct tmap now;
    if (!l->again || !tmap_decode(l->again, &now)) return;
    now.rows4 = l->map.rows4;
    now.halo = l->map.halo;
    if (now.rank == l->map.rank && now.im2col == l->map.im2col && now.wide == l->map.wide &&
        tmap_signal_bytes(&now) == tmap_signal_bytes(&l->map) &&
        tmap_box_span(&now) == tmap_box_span(&l->map))
        l->map = now;
}

static bool run_load(struct group *g, struct async_op *op)
{
    struct tma_load *l = async_payload(op);
    (void)g;
    read_again(l);
    if (tmap_load(op, &l->map, l->coord, l->dst.cta->shared, l->dst.offset)) {
        bulk_signal(op, &l->bar, tmap_signal_bytes(&l->map));
    }
    bulk_release(l->dst, &l->bar);
    return true;
}

/* Tells which box of which tensor comes to lie where, and how. */
static void publish_tile(const struct async_op *op, const struct tma_load *l)
{
    const struct tmap_tile tile = {&l->map, l->coord};
    uint64_t hash = l->map.address;
    if (!op->cta->group->observer) return;
    for (uint32_t d = 0; d < l->map.rank; d++)
        hash = (hash ^ (uint32_t)l->coord[d]) * 0x9E3779B97F4A7C15ULL;
    observe(op->cta->group, &(struct event){.kind = EV_TILE,
                                            .lanes = 1U << op->lane,
                                            .warp = op->warp,
                                            .in = op->in,
                                            .cta = l->dst.cta,
                                            .key = (uint32_t)(hash >> 32),
                                            .token = op->token,
                                            .address = l->dst.offset,
                                            .size = tmap_box_span(&l->map),
                                            .tile = &tile});
}

/* The box's start alone tells copies of the same box. */
static struct async_cost box_cost(const struct tmap *t, const int32_t *coord)
{
    struct async_cost cost = {.bytes = tmap_box_bytes(t), .where = t->address};
    for (uint32_t d = 0; d < t->rank; d++) cost.where += (uint64_t)coord[d] * t->stride[d];
    return cost;
}

static enum step submit_load(struct warp *w, const struct insn *in, uint32_t lane,
                             const struct tma_load *load, uint64_t map_address)
{
    struct async_op *op = async_new(w, in, lane, run_load, sizeof *load);
    if (!op) return bulk_no_memory(w, in, lane);
    memcpy(async_payload(op), load, sizeof *load);
    bulk_hold(load->dst, &load->bar);
    op->cost = box_cost(&load->map, load->coord);
    op->cost.shared_by = load->shared_by;
    async_submit(w->cta->group, op, NULL, LATENCY_LOAD);
    bulk_announce_bar(op, &load->bar);
    publish_map_read(op, map_address);
    tmap_announce(op, &load->map, load->coord, ACCESS_READ);
    bulk_access_shared(op, ACCESS_WRITE, PROXY_ASYNC, load->dst, tmap_box_span(&load->map));
    publish_tile(op, load);
    return STEP_NEXT;
}

/* Where the barrier of a copy into CTA rank `dst` stands. Without .cta_group::2 it is in that CTA.
 * With it, the CTA of dst's pair whose parity is that of the CTA named by the mbar operand. */
static uint32_t signal_rank(const struct tma_form *form, uint32_t dst, uint32_t named)
{
    return form->pair ? (dst & ~1U) | (named & 1U) : dst;
}

static uint32_t in_rank(uint32_t address, uint32_t rank)
{
    return (address & SHARED_OFFSET_MASK) | rank << SHARED_RANK_SHIFT;
}

/* The copy to CTA `rank`, at the CTA-relative offsets of the two operands. */
static enum step load_into(struct warp *w, const struct insn *in, uint32_t lane,
                           struct tma_load *load, uint32_t rank, uint32_t shared, uint32_t bar,
                           uint64_t map_address)
{
    const struct tma_form *form = in->aux;
    uint32_t bar_rank = signal_rank(form, rank, bar >> SHARED_RANK_SHIFT);
    enum step step = bulk_place_at(w, in, lane, in_rank(shared, rank), tmap_box_span(&load->map),
                                   SHARED_ALIGN, &load->dst);
    if (step == STEP_NEXT) step = bulk_bar_at(w, in, lane, in_rank(bar, bar_rank), &load->bar);
    if (step == STEP_NEXT) step = submit_load(w, in, lane, load, map_address);
    return step;
}

/* Bit r of the mask is CTA rank r (PTX says %ctaid; practice is %cluster_ctarank
 * [interpretation]). */
static enum step load_multicast(struct warp *w, const struct insn *in, uint32_t lane,
                                struct tma_load *load, uint32_t shared, uint32_t bar,
                                uint64_t map_address)
{
    const struct tma_form *form = in->aux;
    uint32_t mask = (uint32_t)arg_lane(w, in->arg[form->mask_arg], lane) & 0xFFFFU;
    if (mask >> w->cta->cluster->cta_count) {
        return sim_fault(w, in, lane, 700, FIND_OOB, CAUSE_NONE, "",
                         "multicast mask 0x%x names CTAs beyond the cluster's %u", mask,
                         w->cta->cluster->cta_count);
    }
    load->shared_by = (uint32_t)__builtin_popcount(mask);
    for (; mask; mask &= mask - 1) {
        enum step step = load_into(w, in, lane, load, first_lane(mask), shared, bar, map_address);
        if (step != STEP_NEXT) return step;
    }
    return STEP_NEXT;
}

static enum step check_bar_rank(struct warp *w, const struct insn *in, uint32_t lane,
                                uint32_t shared, uint32_t bar)
{
    const struct tma_form *form = in->aux;
    uint32_t dst = shared >> SHARED_RANK_SHIFT, at = bar >> SHARED_RANK_SHIFT;
    if (form->own_cta && dst != w->cta->rank) {
        return sim_fault(w, in, lane, 717, FIND_OOB, CAUSE_NONE, "",
                         ".shared::cta destination 0x%08x is in CTA rank %u, not the executing "
                         "CTA's %u",
                         shared, dst, w->cta->rank);
    }
    if (at == dst || (form->pair && (at ^ 1U) == dst)) return STEP_NEXT;
    return sim_fault(w, in, lane, 719, FIND_MBARRIER_TX, CAUSE_NONE, "",
                     "the mbarrier is in CTA rank %u, the destination in CTA rank %u; it must be "
                     "in the same CTA%s",
                     at, dst, form->pair ? " or its pair" : "");
}

static enum step load_lane(struct warp *w, const struct insn *in, uint32_t lane)
{
    const struct tma_form *form = in->aux;
    struct tma_load load = {0};
    uint32_t shared, bar;
    uint64_t map_address;
    enum step step = read_box(w, in, lane, &load.map, load.coord, &map_address, &load.again);
    if (step == STEP_NEXT) step = check_start(w, in, lane, &load.map, load.coord, false);
    if (step == STEP_NEXT) step = bulk_shared_address(w, in, lane, 0, 0, &shared);
    if (step == STEP_NEXT) step = bulk_shared_address(w, in, lane, 2, 2, &bar);
    if (step != STEP_NEXT) return step;
    if (form->mask_arg) return load_multicast(w, in, lane, &load, shared, bar, map_address);
    step = check_bar_rank(w, in, lane, shared, bar);
    if (step != STEP_NEXT) return step;
    return load_into(w, in, lane, &load, shared >> SHARED_RANK_SHIFT, shared, bar, map_address);
}

static enum step exec_load(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        enum step step = load_lane(w, in, first_lane(mask));
        if (step != STEP_NEXT) return step;
    }
    return STEP_NEXT;
}

/* ---- stores and reductions ---- */

static bool run_store(struct group *g, struct async_op *op)
{
    struct tma_store *s = async_payload(op);
    (void)g;
    if (op->stage == 0) {
        tmap_unswizzle(&s->map, s->src.cta->shared, s->src.offset, s->box);
        return false;
    }
    if (s->reduce)
        tmap_reduce(op, &s->map, s->coord, s->box, s->reduce);
    else
        tmap_store(op, &s->map, s->coord, s->box);
    return true;
}

/* The reduction of a map's data type; NULL: an H200 ends the kernel with "illegal instruction". */
static reduce_fn *find_reduction(uint32_t dtype, const char *op)
{
    static const uint8_t types[] = {T_NONE, T_NONE, T_U32,  T_S32, T_U64, T_S64, T_F16,
                                    T_F32,  T_F64,  T_BF16, T_F32, T_F32, T_F32};
    bool logic = op[0] == 'o' || op[0] == 'x' || strcmp(op, "and") == 0;
    bool add = strcmp(op, "add") == 0;
    enum ptx_type type = dtype < sizeof types ? (enum ptx_type)types[dtype] : T_NONE;
    if (logic) type = type == T_U32 || type == T_S32 ? T_B32 : type == T_U64 ? T_B64 : T_NONE;
    if (add && type == T_S64) return NULL;
    if (add && (dtype == TMAP_F32_FTZ || dtype == TMAP_TF32_FTZ)) op = "add_ftz";
    return reduce_find(op, type);
}

/* Reads one lane's operands into `head` and checks them. */
static enum step read_store(struct warp *w, const struct insn *in, uint32_t lane,
                            struct tma_store *head, uint64_t *map_address)
{
    const struct tma_form *form = in->aux;
    uint32_t shared;
    enum step step = read_box(w, in, lane, &head->map, head->coord, map_address, NULL);
    if (step == STEP_NEXT) {
        step = bulk_shared_address(w, in, lane, form->shared_arg, form->shared_imm, &shared);
    }
    if (step == STEP_NEXT) {
        step =
            bulk_place_at(w, in, lane, shared, tmap_box_span(&head->map), SHARED_ALIGN, &head->src);
    }
    if (step != STEP_NEXT) return step;
    if (head->src.cta != w->cta) {
        return sim_fault(w, in, lane, 717, FIND_OOB, CAUSE_NONE, "",
                         ".shared::cta source 0x%08x is in CTA rank %u, not the executing CTA's "
                         "%u",
                         shared, head->src.cta->rank, w->cta->rank);
    }
    /* PTX ISA "Restriction on Tensor Copy instructions": .b4x16_p64 is for loads only. */
    if (head->map.dtype == TMAP_U4_ALIGN16) {
        return sim_fault(w, in, lane, 719, FIND_TMA_DESC, CAUSE_NONE, "",
                         "tensor map: data type 16U4_ALIGN16B can be loaded but not stored");
    }
    step = check_start(w, in, lane, &head->map, head->coord, true);
    if (step != STEP_NEXT || !form->op) return step;
    head->reduce = find_reduction(head->map.dtype, form->op);
    if (head->reduce) return STEP_NEXT;
    return sim_fault(w, in, lane, 715, FIND_TMA_DESC, CAUSE_NONE, "",
                     "tensor map: no reduction .%s on elements of data type %u", form->op,
                     head->map.dtype);
}

static enum step store_lane(struct warp *w, const struct insn *in, uint32_t lane)
{
    struct tma_store head = {0};
    struct async_op *op;
    uint64_t map_address;
    uint32_t bytes;
    enum step step = read_store(w, in, lane, &head, &map_address);
    if (step != STEP_NEXT) return step;
    bytes = tmap_box_bytes(&head.map);
    op = async_new(w, in, lane, run_store, sizeof head + bytes);
    if (!op) return bulk_no_memory(w, in, lane);
    *(struct tma_store *)async_payload(op) = head;
    async_in_group(op, COMMIT_BULK);
    op->cost = box_cost(&head.map, head.coord);
    async_submit(w->cta->group, op, NULL, LATENCY_STORE);
    publish_map_read(op, map_address);
    bulk_access_shared(op, ACCESS_READ, PROXY_ASYNC, head.src, tmap_box_span(&head.map));
    tmap_announce(op, &head.map, head.coord, head.reduce ? ACCESS_ATOMIC : ACCESS_WRITE);
    return STEP_NEXT;
}

static enum step exec_store(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        enum step step = store_lane(w, in, first_lane(mask));
        if (step != STEP_NEXT) return step;
    }
    return STEP_NEXT;
}

/* ---- prefetch ---- */

/* A hint: nothing moves, but a map that is none is an error all the same. */
static enum step exec_prefetch(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1) {
        struct tmap map;
        int32_t coord[TMAP_COORDS];
        uint64_t map_address;
        enum step step = read_box(w, in, first_lane(mask), &map, coord, &map_address, NULL);
        if (step != STEP_NEXT) return step;
    }
    return STEP_NEXT;
}

/* ---- binding ---- */

/* The coordinates must be as many as ".2d" and the like say (gather4 and scatter4: a column and four
 * rows), followed by `offsets` of im2col or the two of im2col::w. */
static int bind_form(struct decoder *dc, struct insn *out, exec_fn *fn, struct tma_form form)
{
    struct tma_form *kept = bind_alloc(dc, sizeof *kept);
    bool offsets = fn != exec_store;
    uint32_t wanted;
    if (!kept) return -1;
    form.rank = (uint32_t)(dc->mod[0][0] - '0');
    form.rows4 = mod_has(dc, "tile::gather4") || mod_has(dc, "tile::scatter4");
    form.wide = mod_has(dc, "im2col::w::128") ? TMAP_WIDE_128
                : mod_has(dc, "im2col::w")    ? TMAP_WIDE
                                              : TMAP_NARROW;
    form.im2col = form.wide || mod_has(dc, "im2col") || mod_has(dc, "im2col_no_offs");
    form.coords = form.rows4 ? 5 : form.rank;
    if (form.im2col && form.rank < 3) return bind_invalid(dc, "im2col takes 3d to 5d");
    if (form.rows4 && form.rank != 2) return bind_invalid(dc, "gather4 and scatter4 take 2d");
    wanted = form.coords;
    if (form.im2col && offsets) wanted += form.wide ? 2 : form.rank - 2;
    if (out->list_count != wanted) {
        return bind_invalid(dc, "%u coordinates%s where .%s takes %u", out->list_count,
                            form.im2col ? " and offsets" : "", dc->mod[0], wanted);
    }
    *kept = form;
    out->aux = kept;
    out->fn = fn;
    out->space = SPACE_SHARED;
    return 0;
}

/* mask_arg: of the multicast forms. */
static int bind_load(struct decoder *dc, struct insn *out, uint32_t mask_arg)
{
    return bind_form(dc, out, exec_load,
                     (struct tma_form){.map_arg = 1,
                                       .map_imm = 1,
                                       .mask_arg = mask_arg,
                                       .own_cta = mod_has(dc, "shared::cta"),
                                       .pair = mod_has(dc, "cta_group::2")});
}

int bind_tma_load(struct decoder *dc, struct insn *out)
{
    return bind_load(dc, out, 0);
}

int bind_tma_multicast(struct decoder *dc, struct insn *out)
{
    return bind_load(dc, out, 3);
}

int bind_tma_im2col(struct decoder *dc, struct insn *out)
{
    return bind_load(dc, out, mod_has(dc, "multicast::cluster") ? 4 : 0);
}

int bind_tma_store(struct decoder *dc, struct insn *out)
{
    return bind_form(dc, out, exec_store, (struct tma_form){.shared_arg = 1, .shared_imm = 1});
}

int bind_tma_reduce(struct decoder *dc, struct insn *out)
{
    /* mods: rank, global, shared::cta, operation, … */
    return bind_form(dc, out, exec_store,
                     (struct tma_form){.shared_arg = 1, .shared_imm = 1, .op = dc->mod[3]});
}

int bind_tma_prefetch(struct decoder *dc, struct insn *out)
{
    return bind_form(dc, out, exec_prefetch, (struct tma_form){0});
}
