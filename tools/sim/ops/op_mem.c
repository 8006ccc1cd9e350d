/*
 * ld, ldu, st, and the instructions that only advise about memory: prefetch, discard, createpolicy.
 * A warp's access is resolved as a whole (mem_lanes), then moved by a routine for the pair (element
 * in memory, element in register). Cache operators and eviction hints change nothing here.
 */
#include "ops/access.h"
#include "async/late.h"
#include "machine/lanes.h"
#include "machine/mem.h"

#include <stdlib.h>

/* ---- shared by the memory instructions ---- */

LANE_INLINE void add_lanes(const struct warp *w, struct arg base, uint64_t add,
                           uint64_t address[WARP_LANES])
{
    if (base.sink) {
        LANES(l) address[l] = add;
    } else if (base.bits == 64) {
        const uint64_t *p = arg_src(w, base);
        LANES(l) address[l] = p[l] + add;
    } else {
        const uint32_t *p = arg_src(w, base);
        /* A 32-bit address space wraps: [r+-8] is r-8. */
        LANES(l) address[l] = (uint32_t)(p[l] + (uint32_t)add);
    }
}

static TARGET_WIDE void add_wide(const struct warp *w, struct arg base, uint64_t add,
                                 uint64_t address[WARP_LANES])
{
    add_lanes(w, base, add, address);
}

/* Wide stores where mem_measure has wide loads: processors do not forward two stores to one load. */
void access_addresses(const struct warp *w, struct arg base, int64_t offset,
                      uint64_t address[WARP_LANES])
{
    if (lanes_wide())
        add_wide(w, base, (uint64_t)offset, address);
    else
        add_lanes(w, base, (uint64_t)offset, address);
}

static enum ptx_space space_behind(uint64_t generic)
{
    switch (generic & WINDOW_MASK) {
    case SHARED_WINDOW: return SPACE_SHARED;
    case LOCAL_WINDOW: return SPACE_LOCAL;
    case PARAM_WINDOW: return SPACE_PARAM;
    default: return SPACE_GLOBAL;
    }
}

/* The part of an access that lies in one space. */
static void publish_part(struct event *e, const struct lane_span *span)
{
    e->span = span;
    if (e->space == SPACE_SHARED) {
        uint32_t offset;
        (void)mem_shared(e->warp, (uint32_t)e->addresses[first_lane(e->lanes)], &e->cta, &offset);
    }
    observe(e->warp->cta->group, e);
}

/* Generic addresses of several spaces, or windows to be taken off: one event for each space. */
static void publish_parts(const struct event *all, enum ptx_space space)
{
    const uint64_t *address = all->addresses;
    uint64_t own[WARP_LANES] = {0};
    struct event e = *all;
    uint32_t mask = all->lanes;
    e.addresses = own;
    while (mask) {
        const uint64_t first = address[first_lane(mask)];
        const enum ptx_space part = space == SPACE_NONE ? space_behind(first) : space;
        const bool keeps = part == SPACE_GLOBAL || part == SPACE_CONST;
        struct lane_span span;
        e.space = (uint8_t)part;
        e.lanes = 0;
        e.cta = NULL;
        for (uint32_t m = mask; m; m &= m - 1) {
            uint32_t l = first_lane(m);
            if (space == SPACE_NONE && space_behind(address[l]) != part) continue;
            e.lanes |= 1U << l;
            own[l] = keeps ? address[l] : address[l] & ~WINDOW_MASK;
        }
        span = mem_measure(own, e.lanes, (uint32_t)e.size);
        publish_part(&e, &span);
        mask &= ~e.lanes;
    }
}

void access_publish(struct warp *w, const struct insn *in, uint32_t mask, enum ptx_space space,
                    const uint64_t address[WARP_LANES], const struct lane_span *span, uint32_t size,
                    enum access_kind access, bool strong, bool unchanged)
{
    struct event e = {.kind = EV_ACCESS,
                      .space = (uint8_t)(space == SPACE_NONE ? SPACE_GLOBAL : space),
                      .access = (uint8_t)access,
                      .proxy = PROXY_GENERIC,
                      .strong = strong,
                      .lanes = mask,
                      .warp = w,
                      .in = in,
                      .value = unchanged,
                      .addresses = address,
                      .size = size};
    if (((span->low | span->high) & WINDOW_MASK) == 0 && span->low <= span->high)
        publish_part(&e, span);
    else
        publish_parts(&e, space);
}

void access_tell(struct warp *w, const struct insn *in, uint32_t mask, enum ptx_space space,
                 const uint64_t address[WARP_LANES], uint32_t size, enum access_kind access)
{
    const struct lane_span span = mem_measure(address, mask, size);
    access_publish(w, in, mask, space, address, &span, size, access, false, false);
}

bool access_bind(struct decoder *dc, struct insn *out)
{
    static const struct {
        const char *text;
        enum ptx_space space;
    } spaces[] = {{"param", SPACE_PARAM},        {"param::entry", SPACE_PARAM},
                  {"param::func", SPACE_PARAM},  {"shared", SPACE_SHARED},
                  {"shared::cta", SPACE_SHARED}, {"shared::cluster", SPACE_SHARED},
                  {"global", SPACE_GLOBAL},      {"const", SPACE_CONST},
                  {"local", SPACE_LOCAL}};
    out->space = SPACE_NONE;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (mod_has(dc, spaces[i].text)) out->space = (uint8_t)spaces[i].space;
    if (mod_has(dc, "shared::cluster")) out->flags |= ACC_CLUSTER;
    if (ptx_type_kind(out->type) == 's') out->flags |= ACC_SIGNED;
    if (!out->is.strong || mod_has(dc, "cta") || mod_has(dc, "cluster") ||
        (out->space != SPACE_GLOBAL && out->space != SPACE_NONE))
        return false;
    dc->kernel->global_sync = true;
    return true;
}

bool access_multicast(struct warp *w, const struct insn *in, uint32_t mask, struct arg base,
                      uint32_t size)
{
    uint64_t address[WARP_LANES];
    access_addresses(w, base, in->imm[0], address);
    return mem_multicast(w, in, mask, address, size);
}

/* ---- moving elements ---- */

/* Loads an element at host[lane]+at into each active lane's register. */
typedef void load_fn(void *reg, uint8_t *const host[WARP_LANES], uint32_t at, uint32_t mask);
/* Stores, lane after lane in the order of k ^ flip; true when memory holds another value than before. */
typedef bool store_fn(const void *reg, uint8_t *const host[WARP_LANES], uint32_t at, uint32_t mask,
                      uint32_t flip);

/* X(name, type in memory, type in the register): signed ones load only. */
#define MOVES(X)                   \
    X(m8_r16, uint8_t, uint16_t)   \
    X(m8_r32, uint8_t, uint32_t)   \
    X(m8_r64, uint8_t, uint64_t)   \
    X(m16_r16, uint16_t, uint16_t) \
    X(m16_r32, uint16_t, uint32_t) \
    X(m16_r64, uint16_t, uint64_t) \
    X(m32_r32, uint32_t, uint32_t) \
    X(m32_r64, uint32_t, uint64_t) \
    X(m64_r64, uint64_t, uint64_t)
#define SIGNED_MOVES(X)           \
    X(s8_r16, int8_t, uint16_t)   \
    X(s8_r32, int8_t, uint32_t)   \
    X(s8_r64, int8_t, uint64_t)   \
    X(s16_r32, int16_t, uint32_t) \
    X(s16_r64, int16_t, uint64_t) \
    X(s32_r64, int32_t, uint64_t)

/* Each routine is a body inlined twice: for all lanes, which the compiler unrolls, and for some. */
#define FOR_MASK(...)                            \
    if (mask == FULL_MASK) {                     \
        LANES(l)                                 \
        {                                        \
            __VA_ARGS__                          \
        }                                        \
    } else {                                     \
        for (; mask; mask &= mask - 1) {         \
            const uint32_t l = first_lane(mask); \
            __VA_ARGS__                          \
        }                                        \
    }

/* Likewise, lane after lane in the order of k ^ flip, for flip = 31, 15, 7, 3. */
#define FOR_MASK_FLIPPED(...)                                      \
    if (mask == FULL_MASK) {                                       \
        LANES(k)                                                   \
        {                                                          \
            const uint32_t l = k ^ flip;                           \
            __VA_ARGS__                                            \
        }                                                          \
    } else {                                                       \
        for (mask = flipped(mask, flip); mask; mask &= mask - 1) { \
            const uint32_t l = first_lane(mask) ^ flip;            \
            __VA_ARGS__                                            \
        }                                                          \
    }

/* Bit k of the result is bit k ^ flip of the mask. */
static uint32_t flipped(uint32_t mask, uint32_t flip)
{
    mask = (mask & 0x55555555U) << 1 | (mask >> 1 & 0x55555555U);
    mask = (mask & 0x33333333U) << 2 | (mask >> 2 & 0x33333333U);
    if (flip & 4) mask = (mask & 0x0F0F0F0FU) << 4 | (mask >> 4 & 0x0F0F0F0FU);
    if (flip & 8) mask = (mask & 0x00FF00FFU) << 8 | (mask >> 8 & 0x00FF00FFU);
    return flip & 16 ? mask << 16 | mask >> 16 : mask;
}

#define X(name, M, R)                                                                       \
    static void load_##name(void *reg, uint8_t *const host[WARP_LANES], uint32_t at,        \
                            uint32_t mask)                                                  \
    {                                                                                       \
        R *d = reg;                                                                         \
        FOR_MASK(M v; memcpy(&v, host[l] + at, sizeof v); d[l] = (R)v;)                     \
    }                                                                                       \
    static void load_strong_##name(void *reg, uint8_t *const host[WARP_LANES], uint32_t at, \
                                   uint32_t mask)                                           \
    {                                                                                       \
        R *d = reg;                                                                         \
        FOR_MASK(const M *p = (const void *)(host[l] + at);                                 \
                 d[l] = (R)__atomic_load_n(p, __ATOMIC_ACQUIRE);)                           \
    }
MOVES(X)
SIGNED_MOVES(X)
#undef X

#define X(name, M, R)                                                                              \
    static bool store_##name(const void *reg, uint8_t *const host[WARP_LANES], uint32_t at,        \
                             uint32_t mask, uint32_t flip)                                         \
    {                                                                                              \
        const R *s = reg;                                                                          \
        M changed = 0;                                                                             \
        FOR_MASK_FLIPPED(const M v = (M)s[l]; M old; memcpy(&old, host[l] + at, sizeof old);       \
                         changed |= (M)(old ^ v); memcpy(host[l] + at, &v, sizeof v);)             \
        return changed != 0;                                                                       \
    }                                                                                              \
    static bool store_strong_##name(const void *reg, uint8_t *const host[WARP_LANES], uint32_t at, \
                                    uint32_t mask, uint32_t flip)                                  \
    {                                                                                              \
        const R *s = reg;                                                                          \
        M changed = 0;                                                                             \
        FOR_MASK_FLIPPED(M *p = (void *)(host[l] + at); const M v = (M)s[l];                       \
                         changed |= (M)(__atomic_exchange_n(p, v, __ATOMIC_ACQ_REL) ^ v);)         \
        return changed != 0;                                                                       \
    }
MOVES(X)
#undef X

static const struct move {
    uint8_t bytes, reg_bits;
    bool is_signed;
    load_fn *load, *load_strong;
    store_fn *store, *store_strong;
} moves[] = {
#define X(name, M, R)                                                          \
    {sizeof(M),    8 * sizeof(R),      false, load_##name, load_strong_##name, \
     store_##name, store_strong_##name},
    MOVES(X)
#undef X
#define X(name, M, R) {sizeof(M), 8 * sizeof(R), true, load_##name, load_strong_##name, NULL, NULL},
        SIGNED_MOVES(X)
#undef X
};

/* The routine for an element of `bytes` and a register of `reg_bits`. A 128-bit element moves as
 * two of 64. NULL: the register is narrower than the element. */
static const struct move *move_for(uint32_t bytes, uint32_t reg_bits, bool is_signed)
{
    if (is_signed && 8 * bytes == reg_bits) is_signed = false;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (moves[i].bytes == bytes && moves[i].reg_bits == reg_bits &&
            moves[i].is_signed == is_signed)
            return &moves[i];
    return NULL;
}

/* insn.aux of ld and st. */
struct mem_form {
    uint32_t bytes; /* a lane's whole access */
    uint32_t count; /* moves a lane */
    struct {
        struct arg reg;
        const struct move *move;
        uint32_t at;
    } part[8];
};

/* One part, register and element of one size, not strong: lanes in a row are a plain copy. */
static bool is_plain(const struct mem_form *f, const struct insn *in)
{
    return f->count == 1 && !in->is.strong && 8 * f->bytes == f->part[0].reg.bits;
}

/* One element to all lanes. */
static void splat(void *reg, const uint8_t *from, uint32_t bytes)
{
#define SPLAT(T)                    \
    {                               \
        T v, *d = reg;              \
        memcpy(&v, from, sizeof v); \
        LANES(l) d[l] = v;          \
        break;                      \
    }
    switch (bytes) {
    case 2: SPLAT(uint16_t)
    case 4: SPLAT(uint32_t)
    default: SPLAT(uint64_t)
    }
#undef SPLAT
}

static enum step ld(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mem_form *f = in->aux;
    const enum ptx_space space = (enum ptx_space)in->space;
    bool strong = in->is.strong;
    uint64_t address[WARP_LANES];
    uint8_t *host[WARP_LANES], *run = NULL;
    struct lane_span span;
    access_addresses(w, in->arg[1], in->imm[0], address);
    span = mem_measure(address, mask, f->bytes);
    if (span.shape != SPAN_APART && is_plain(f, in)) run = mem_span(w, space, &span, f->bytes);
    if (!run && !mem_lanes(w, in, mask, space, address, &span, f->bytes, ACCESS_READ,
                           in->flags & ACC_CLUSTER, host))
        return STEP_FAULT;
    /* Constant memory is device memory under another name: stores reach it by global and generic addresses. */
    if (w->cta->group->observer)
        access_publish(w, in, mask, space == SPACE_CONST ? SPACE_GLOBAL : space, address, &span,
                       f->bytes, ACCESS_READ, strong, false);
    if (run && span.shape == SPAN_ROW) {
        memcpy(arg_dst(w, f->part[0].reg), run, (size_t)WARP_LANES * f->bytes);
        return STEP_NEXT;
    }
    if (run) {
        splat(arg_dst(w, f->part[0].reg), run, f->bytes);
        return STEP_NEXT;
    }
    for (uint32_t i = 0; i < f->count; i++) {
        const struct move *m = f->part[i].move;
        (strong ? m->load_strong : m->load)(arg_dst(w, f->part[i].reg), host, f->part[i].at, mask);
    }
    return STEP_NEXT;
}

/* ld.param and its like from a constant address: every lane reads the same bytes. */
static enum step ld_param(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mem_form *f = in->aux;
    uint32_t lane = first_lane(mask);
    uint64_t address = arg_lane(w, in->arg[1], lane) + (uint64_t)in->imm[0];
    uint8_t *p = mem_at(w, in, lane, SPACE_PARAM, address, f->bytes, f->bytes, ACCESS_READ, false);
    uint8_t *host[WARP_LANES];
    if (!p) return STEP_FAULT;
    if (mask == FULL_MASK && is_plain(f, in)) {
        splat(arg_dst(w, f->part[0].reg), p, f->bytes);
        return STEP_NEXT;
    }
    LANES(l) host[l] = p;
    for (uint32_t i = 0; i < f->count; i++)
        f->part[i].move->load(arg_dst(w, f->part[i].reg), host, f->part[i].at, mask);
    return STEP_NEXT;
}

/*
 * Of lanes that store to one place, the ISA leaves open which one's value stays. Memory takes 128 bytes at a time, so
 * 32 lanes of 4 bytes, or 16 of 8. An H200 keeps the lowest lane of those that go last.
 */
static uint32_t store_order(const struct mem_form *f)
{
    return f->bytes <= 4 ? 31 : 128 / f->bytes - 1;
}

static enum step st(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mem_form *f = in->aux;
    const enum ptx_space space = (enum ptx_space)in->space;
    bool strong = in->is.strong, changed = false;
    uint64_t address[WARP_LANES];
    uint8_t *host[WARP_LANES], *run = NULL;
    struct lane_span span;
    access_addresses(w, in->arg[0], in->imm[0], address);
    span = mem_measure(address, mask, f->bytes);
    if (span.shape == SPAN_ROW && is_plain(f, in)) run = mem_span(w, space, &span, f->bytes);
    if (!run && !mem_lanes(w, in, mask, space, address, &span, f->bytes, ACCESS_WRITE,
                           in->flags & ACC_CLUSTER, host))
        return STEP_FAULT;
    if (w->cta->group->late) late_keep(w, mask, space, address, f->bytes);
    if (run) {
        const void *source = arg_src(w, f->part[0].reg);
        size_t bytes = (size_t)WARP_LANES * f->bytes;
        changed = memcmp(run, source, bytes) != 0;
        if (changed) memcpy(run, source, bytes);
    } else {
        for (uint32_t i = 0; i < f->count; i++) {
            const struct move *m = f->part[i].move;
            changed |= (strong ? m->store_strong : m->store)(arg_src(w, f->part[i].reg), host,
                                                             f->part[i].at, mask, store_order(f));
        }
    }
    if (w->cta->group->observer)
        access_publish(w, in, mask, space, address, &span, f->bytes, ACCESS_WRITE, strong,
                       !changed);
    if (changed) access_changed(w->cta->group);
    return STEP_NEXT;
}

/* A call's parameters lie behind the entry's own, which are read-only; no call that is modelled reads
 * them. */
static enum step st_param(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mem_form *f = in->aux;
    uint32_t lane = first_lane(mask);
    uint64_t address = arg_lane(w, in->arg[0], lane) + (uint64_t)in->imm[0];
    if (address >= w->cta->group->launch->param_bytes) return STEP_NEXT;
    (void)mem_at(w, in, lane, SPACE_PARAM, address, f->bytes, f->bytes, ACCESS_WRITE, false);
    return STEP_FAULT;
}

/* A team has one device, so a reduction over its memories is what the one holds. */
static enum step multimem_ld(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mem_form *f = in->aux;
    return access_multicast(w, in, mask, in->arg[1], f->bytes) ? ld(w, in, mask) : STEP_FAULT;
}

static enum step multimem_st(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mem_form *f = in->aux;
    return access_multicast(w, in, mask, in->arg[0], f->bytes) ? st(w, in, mask) : STEP_FAULT;
}

/* ---- binding ---- */

static void add_part(struct mem_form *f, struct arg reg, const struct move *m, uint32_t at)
{
    if (reg.sink) return;
    f->part[f->count].reg = reg;
    f->part[f->count].move = m;
    f->part[f->count].at = at;
    f->count++;
}

/* Splits the operand list into moves. 0, or what a bind function returns. */
static int bind_form(struct decoder *dc, struct insn *out)
{
    uint32_t bits = ptx_type_bits((enum ptx_type)out->type), bytes = bits / 8;
    uint32_t want = mod_has(dc, "v2") ? 2 : mod_has(dc, "v4") ? 4 : mod_has(dc, "v8") ? 8 : 1;
    struct mem_form *f = bind_alloc(dc, sizeof *f);
    if (!f) return -1;
    if (out->list_count != want)
        return bind_invalid(dc, "%u registers, but the instruction moves %u elements",
                            (unsigned)out->list_count, want);
    if (bytes * want > 16 &&
        strtoul(dc->module->target + strcspn(dc->module->target, "0123456789"), NULL, 10) < 100)
        return bind_invalid(dc, "%u bytes a thread need .target sm_100 or higher, not %s",
                            bytes * want, dc->module->target);
    if (bytes * want > 32)
        return bind_invalid(dc, "%u bytes a thread; an access has at most 32", bytes * want);
    for (uint32_t i = 0; i < want; i++) {
        struct arg reg = out->list[i];
        const struct move *m;
        if (reg.sink) continue;
        if (reg.bits < bits || (bits == 128) != (reg.bits == 128))
            return bind_invalid(dc, "a %u-bit register for a %u-bit element", (unsigned)reg.bits,
                                bits);
        if (bits == 128) {
            m = move_for(8, 64, false);
            reg.bits = 64;
            add_part(f, reg, m, i * 16);
            reg.offset += WARP_LANES * 8;
            add_part(f, reg, m, i * 16 + 8);
        } else {
            add_part(f, reg, move_for(bytes, reg.bits, out->flags & ACC_SIGNED), i * bytes);
        }
    }
    f->bytes = bytes * want;
    out->aux = f;
    return 0;
}

int bind_ld(struct decoder *dc, struct insn *out)
{
    (void)access_bind(dc, out);
    if (out->space == SPACE_CONST) out->is.constant = true;
    out->fn = out->space == SPACE_PARAM && (out->arg[1].sink || out->arg[1].bank == BANK_CONST)
                  ? ld_param
                  : ld;
    return bind_form(dc, out);
}

int bind_st(struct decoder *dc, struct insn *out)
{
    (void)access_bind(dc, out);
    out->flags &= (uint16_t)~ACC_SIGNED; /* stores truncate */
    out->fn = out->space == SPACE_PARAM ? st_param : st;
    return bind_form(dc, out);
}

int bind_multimem_size(struct decoder *dc, const struct insn *out, uint32_t bytes)
{
    const char *type = ptx_type_text((enum ptx_type)out->type);
    char kind = ptx_type_kind((enum ptx_type)out->type);
    bool floating = kind == 'f' || kind == 'v';
    bool vector = mod_has(dc, "v2") || mod_has(dc, "v4") || mod_has(dc, "v8");
    bool ordered = mod_has(dc, "relaxed") || mod_has(dc, "acquire") || mod_has(dc, "release");
    bool scoped =
        mod_has(dc, "cta") || mod_has(dc, "cluster") || mod_has(dc, "gpu") || mod_has(dc, "sys");

    if (ordered != scoped)
        return bind_invalid(dc, ordered ? "a scope is missing" : "a scope without an order");
    if (vector && out->type == T_F64) return bind_invalid(dc, "no vectors of .%s", type);
    if (floating && bytes != 4 && bytes != 8 && bytes != 16)
        return bind_invalid(dc, "%u bytes of .%s; 4, 8 or 16 are needed", bytes, type);
    return 0;
}

int bind_multimem_ld(struct decoder *dc, struct insn *out)
{
    int result = bind_ld(dc, out);
    const struct mem_form *f = out->aux;
    if (result) return result;
    out->fn = multimem_ld;
    return bind_multimem_size(dc, out, f->bytes);
}

int bind_multimem_st(struct decoder *dc, struct insn *out)
{
    int result = bind_st(dc, out);
    const struct mem_form *f = out->aux;
    if (result) return result;
    out->fn = multimem_st;
    return bind_multimem_size(dc, out, f->bytes);
}

/* ---- st.bulk: [a], bytes, 0 ---- */

enum { BULK_STEP = 8, BULK_MOST = 1 << 24 }; /* PTX ISA "st.bulk" */

static enum step st_bulk(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint64_t address[WARP_LANES];
    access_addresses(w, in->arg[0], in->imm[0], address);
    for (; mask; mask &= mask - 1) {
        const uint32_t l = first_lane(mask);
        const uint64_t bytes = arg_lane(w, in->arg[1], l);
        void *host;
        if (bytes % BULK_STEP || bytes > BULK_MOST)
            return sim_fault(w, in, l, 715, FIND_MISALIGNED, CAUSE_NONE, "",
                             "st.bulk of %llu bytes: a multiple of %d up to %d is needed",
                             (unsigned long long)bytes, BULK_STEP, BULK_MOST);
        if (!bytes) continue;
        host = mem_at(w, in, l, SPACE_SHARED, address[l], (uint32_t)bytes, BULK_STEP, ACCESS_WRITE,
                      false);
        if (!host) return STEP_FAULT;
        if (w->cta->group->observer)
            access_tell(w, in, 1U << l, SPACE_SHARED, address, (uint32_t)bytes, ACCESS_WRITE);
        memset(host, 0, bytes);
    }
    access_changed(w->cta->group);
    return STEP_NEXT;
}

int bind_st_bulk(struct decoder *dc, struct insn *out)
{
    int64_t value = 1;
    (void)access_bind(dc, out);
    if (!operand_constant(dc, 2, &value) || value)
        return bind_invalid(dc, "st.bulk stores zeros: its third operand is 0");
    out->fn = st_bulk;
    return 0;
}

/* ---- advice ---- */

static enum step no_effect(struct warp *w, const struct insn *in, uint32_t mask)
{
    (void)w, (void)in, (void)mask;
    return STEP_NEXT;
}

int bind_memory_hint(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = no_effect;
    return 0;
}

/* A policy is opaque; nothing here reads it, but it should not look like an address. */
static enum step createpolicy(struct warp *w, const struct insn *in, uint32_t mask)
{
    for (; mask; mask &= mask - 1)
        arg_set_lane(w, in->arg[0], first_lane(mask), 0x14F0000000000000ULL);
    return STEP_NEXT;
}

int bind_createpolicy(struct decoder *dc, struct insn *out)
{
    (void)dc;
    out->fn = createpolicy;
    return 0;
}
