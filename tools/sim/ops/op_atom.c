/*
 * atom and red. Each element is updated by a compare-and-swap on the host, lanes in ascending order
 * (the ISA leaves the order open). 128-bit ones are plain: launches with atomics that reach across
 * clusters run on one host thread (OPF_GLOBAL_SYNC), and shared memory belongs to one anyway.
 */
#include "ops/access.h"
#include "async/late.h"
#include "ops/fpbits.h"
#include "machine/lanes.h"
#include "machine/mem.h"

/* The new value from the old one and the operand, in the low bits. `ftz`: in global memory. */
typedef uint64_t update_fn(uint64_t old, uint64_t b, bool ftz);

#define UPDATE(name, T, expr)                                          \
    static uint64_t name(uint64_t old_bits, uint64_t b_bits, bool ftz) \
    {                                                                  \
        const T old = (T)old_bits, b = (T)b_bits;                      \
        (void)ftz;                                                     \
        return (uint64_t)(expr);                                       \
    }

UPDATE(add_u32, uint32_t, old + b)
UPDATE(add_u64, uint64_t, old + b)
UPDATE(min_u32, uint32_t, old < b ? old : b)
UPDATE(max_u32, uint32_t, old > b ? old : b)
UPDATE(min_u64, uint64_t, old < b ? old : b)
UPDATE(max_u64, uint64_t, old > b ? old : b)
UPDATE(min_s32, int32_t, (uint32_t)(old < b ? old : b))
UPDATE(max_s32, int32_t, (uint32_t)(old > b ? old : b))
UPDATE(min_s64, int64_t, old < b ? old : b)
UPDATE(max_s64, int64_t, old > b ? old : b)
UPDATE(inc_u32, uint32_t, old >= b ? 0 : old + 1)
UPDATE(dec_u32, uint32_t, old == 0 || old > b ? b : old - 1)
UPDATE(and_b64, uint64_t, old &b)
UPDATE(or_b64, uint64_t, old | b)
UPDATE(xor_b64, uint64_t, old ^ b)
UPDATE(exch_b64, uint64_t, ((void)old, b))

/* In global memory (`ftz`) a NaN passes as it is, in shared memory made quiet: an H200 does so. */
static uint64_t add_f64(uint64_t old, uint64_t b, bool ftz)
{
    const double x = f64_from(old), y = f64_from(b);
    if (ftz && (x != x || y != y)) return y != y ? b : old;
    return f64_bits(f64_result(x + y, y, x, 0));
}

static uint64_t add_f32(uint64_t old, uint64_t b, bool ftz)
{
    float x = f32_from((uint32_t)old), y = f32_from((uint32_t)b);
    if (ftz) return f32_bits(f32_flush(f32_canonical(f32_flush(x) + f32_flush(y))));
    return f32_bits(f32_canonical(x + y));
}

static uint64_t add_f32_noftz(uint64_t old, uint64_t b, bool ftz)
{
    (void)ftz;
    return add_f32(old, b, false);
}

static uint64_t min_f32(uint64_t old, uint64_t b, bool ftz)
{
    (void)ftz;
    return f32_bits(f32_min(f32_from((uint32_t)old), f32_from((uint32_t)b), false));
}

static uint64_t max_f32(uint64_t old, uint64_t b, bool ftz)
{
    (void)ftz;
    return f32_bits(f32_max(f32_from((uint32_t)old), f32_from((uint32_t)b), false));
}

/* f16 and bf16, and pairs of them. */
#define HALF_UPDATE(op, fmt, expr)                                                  \
    static uint64_t op##_##fmt(uint64_t old, uint64_t b, bool ftz)                  \
    {                                                                               \
        const float x = fmt##_to_f32((uint16_t)old), y = fmt##_to_f32((uint16_t)b); \
        (void)ftz;                                                                  \
        return f32_to_##fmt(expr);                                                  \
    }                                                                               \
    static uint64_t op##_##fmt##x2(uint64_t old, uint64_t b, bool ftz)              \
    {                                                                               \
        return op##_##fmt(old, b, ftz) | op##_##fmt(old >> 16, b >> 16, ftz) << 16; \
    }
HALF_UPDATE(add, f16, x + y)
HALF_UPDATE(min, f16, f32_min(x, y, false))
HALF_UPDATE(max, f16, f32_max(x, y, false))
HALF_UPDATE(add, bf16, x + y)
HALF_UPDATE(min, bf16, f32_min(x, y, false))
HALF_UPDATE(max, bf16, f32_max(x, y, false))

static const struct {
    const char *op;
    enum ptx_type type;
    update_fn *update;
} updates[] = {
    {"add", T_U32, add_u32},     {"add", T_S32, add_u32},   {"add", T_U64, add_u64},
    {"add", T_F32, add_f32},     {"add", T_F64, add_f64},   {"add", T_F16, add_f16},
    {"add", T_F16X2, add_f16x2}, {"add", T_BF16, add_bf16}, {"add", T_BF16X2, add_bf16x2},
    {"min", T_U32, min_u32},     {"min", T_S32, min_s32},   {"min", T_U64, min_u64},
    {"min", T_S64, min_s64},     {"min", T_F32, min_f32},   {"min", T_F16, min_f16},
    {"min", T_F16X2, min_f16x2}, {"min", T_BF16, min_bf16}, {"min", T_BF16X2, min_bf16x2},
    {"max", T_U32, max_u32},     {"max", T_S32, max_s32},   {"max", T_U64, max_u64},
    {"max", T_S64, max_s64},     {"max", T_F32, max_f32},   {"max", T_F16, max_f16},
    {"max", T_F16X2, max_f16x2}, {"max", T_BF16, max_bf16}, {"max", T_BF16X2, max_bf16x2},
    {"inc", T_U32, inc_u32},     {"dec", T_U32, dec_u32},   {"and", T_B32, and_b64},
    {"and", T_B64, and_b64},     {"or", T_B32, or_b64},     {"or", T_B64, or_b64},
    {"xor", T_B32, xor_b64},     {"xor", T_B64, xor_b64},   {"exch", T_B32, exch_b64},
    {"exch", T_B64, exch_b64},
};

/* insn.aux; operand numbers differ between atom (0 d, 1 [a], 2 b, 3 c) and red (0 [a], 1 b). */
struct atom_form {
    update_fn *update; /* NULL: compare and swap, or a 128-bit exchange */
    uint32_t bytes;    /* of an element */
    uint32_t count;    /* elements */
    uint32_t address;  /* operand number */
    bool swap;         /* compare and swap */
};

/* ---- one element of memory: returns the old value ---- */

#define ATOMIC_UPDATE(name, T)                                                                \
    static uint64_t name(void *p, update_fn *update, uint64_t b, bool ftz, bool *changed)     \
    {                                                                                         \
        T *at = p, old = __atomic_load_n(at, __ATOMIC_ACQUIRE), next;                         \
        do next = (T)update(old, b, ftz);                                                     \
        while (!__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_ACQ_REL,          \
                                            __ATOMIC_ACQUIRE));                               \
        *changed |= next != old;                                                              \
        return old;                                                                           \
    }                                                                                         \
    static uint64_t name##_cas(void *p, uint64_t want, uint64_t put, bool *changed)           \
    {                                                                                         \
        T *at = p, old = (T)want;                                                             \
        bool swapped = __atomic_compare_exchange_n(at, &old, (T)put, false, __ATOMIC_ACQ_REL, \
                                                   __ATOMIC_ACQUIRE);                         \
        *changed |= swapped && (T)put != (T)want;                                             \
        return old;                                                                           \
    }
ATOMIC_UPDATE(update_16, uint16_t)
ATOMIC_UPDATE(update_32, uint32_t)
ATOMIC_UPDATE(update_64, uint64_t)

static uint64_t update(void *p, const struct atom_form *f, uint64_t b, bool ftz, bool *changed)
{
    if (f->bytes == 2) return update_16(p, f->update, b, ftz, changed);
    if (f->bytes == 4) return update_32(p, f->update, b, ftz, changed);
    return update_64(p, f->update, b, ftz, changed);
}

static uint64_t swap(void *p, const struct atom_form *f, uint64_t want, uint64_t put, bool *changed)
{
    if (f->bytes == 2) return update_16_cas(p, want, put, changed);
    if (f->bytes == 4) return update_32_cas(p, want, put, changed);
    return update_64_cas(p, want, put, changed);
}

/* ---- handlers ---- */

/* Whether an exchange puts what is there already, in all its lanes. */
static bool puts_the_same(const struct warp *w, const struct insn *in, uint32_t mask,
                          uint8_t *const host[WARP_LANES])
{
    const struct atom_form *f = in->aux;
    if (in->is.class != INSN_ATOMIC || in->is.changes || f->swap || f->count != 1 || f->bytes > 8)
        return false;
    for (uint32_t m = mask; m; m &= m - 1) {
        const uint64_t put = arg_lane(w, in->arg[f->address + 1], first_lane(m));
        if (memcmp(host[first_lane(m)], &put, f->bytes) != 0) return false;
    }
    return true;
}

/* Host pointers of the active lanes, and the event. False after a fault. */
static bool resolve(struct warp *w, const struct insn *in, uint32_t mask,
                    uint64_t address[WARP_LANES], uint8_t *host[WARP_LANES])
{
    const struct atom_form *f = in->aux;
    uint32_t size = f->bytes * f->count;
    struct lane_span span;
    access_addresses(w, in->arg[f->address], in->imm[0], address);
    span = mem_measure(address, mask, size);
    if (!mem_lanes(w, in, mask, (enum ptx_space)in->space, address, &span, size, ACCESS_ATOMIC,
                   in->flags & ACC_CLUSTER, host))
        return false;
    if (w->cta->group->late) late_keep(w, mask, (enum ptx_space)in->space, address, size);
    if (w->cta->group->observer)
        access_publish(w, in, mask, (enum ptx_space)in->space, address, &span, size, ACCESS_ATOMIC,
                       true, puts_the_same(w, in, mask, host));
    return true;
}

static void worked(struct warp *w, const struct insn *in, uint32_t mask, bool changed)
{
    struct group *g = w->cta->group;
    if (changed) access_changed(g);
    if (!g->observer || !g->launch->kernel->global_sync || in->space == SPACE_SHARED) return;
    observe(g,
            &(struct event){.kind = EV_WORKED, .lanes = mask, .warp = w, .in = in, .cta = w->cta});
}

/* f32 additions in global memory flush subnormals, in shared memory they do not (PTX ISA
 * "atom"). */
static bool flushes(const struct insn *in, uint64_t address)
{
    return in->space == SPACE_GLOBAL ||
           (in->space == SPACE_NONE && (address & WINDOW_MASK) != SHARED_WINDOW);
}

static enum step atom(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct atom_form *f = in->aux;
    struct arg d = in->arg[0], b = in->arg[f->address + 1], c = in->arg[f->address + 2];
    uint64_t address[WARP_LANES];
    uint8_t *host[WARP_LANES];
    bool changed = false;
    if (!resolve(w, in, mask, address, host)) return STEP_FAULT;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = first_lane(m);
        uint64_t old, value = arg_lane(w, b, l);
        if (f->swap)
            old = swap(host[l], f, value, arg_lane(w, c, l), &changed);
        else
            old = update(host[l], f, value, flushes(in, address[l]), &changed);
        if (f->address == 1) arg_set_lane(w, d, l, old);
    }
    worked(w, in, mask, changed);
    return STEP_NEXT;
}

static enum step atom_vector(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct atom_form *f = in->aux;
    const struct arg *source = in->list + (f->address == 1 ? f->count : 0);
    uint64_t address[WARP_LANES];
    uint8_t *host[WARP_LANES];
    bool changed = false;
    if (!resolve(w, in, mask, address, host)) return STEP_FAULT;
    for (uint32_t i = 0; i < f->count; i++) {
        for (uint32_t m = mask; m; m &= m - 1) {
            uint32_t l = first_lane(m);
            uint64_t old = update(host[l] + (size_t)i * f->bytes, f, arg_lane(w, source[i], l),
                                  flushes(in, address[l]), &changed);
            if (f->address == 1) arg_set_lane(w, in->list[i], l, old);
        }
    }
    worked(w, in, mask, changed);
    return STEP_NEXT;
}

/* Halves of a 128-bit operand's lane; 0 for a sink. */
static void wide_lane(const struct warp *w, struct arg a, uint32_t lane, uint64_t v[2])
{
    const uint64_t *p = arg_src(w, a);
    v[0] = a.sink ? 0 : p[lane];
    v[1] = a.sink ? 0 : p[WARP_LANES + lane];
}

static enum step atom_128(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct atom_form *f = in->aux;
    uint64_t *d = arg_dst(w, in->arg[0]);
    uint64_t address[WARP_LANES];
    uint8_t *host[WARP_LANES];
    bool changed = false;
    if (!resolve(w, in, mask, address, host)) return STEP_FAULT;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t l = first_lane(m);
        uint64_t old[2], b[2], put[2];
        memcpy(old, host[l], sizeof old);
        wide_lane(w, in->arg[2], l, b);
        wide_lane(w, in->arg[f->swap ? 3 : 2], l, put);
        if (!f->swap || memcmp(old, b, sizeof old) == 0) {
            changed |= memcmp(old, put, sizeof old) != 0;
            memcpy(host[l], put, sizeof put);
        }
        if (in->arg[0].sink) continue;
        d[l] = old[0];
        d[WARP_LANES + l] = old[1];
    }
    worked(w, in, mask, changed);
    return STEP_NEXT;
}

static enum step multimem_red(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct atom_form *f = in->aux;
    if (!access_multicast(w, in, mask, in->arg[0], f->bytes * f->count)) return STEP_FAULT;
    return in->list_count ? atom_vector(w, in, mask) : atom(w, in, mask);
}

/* ---- binding ---- */

static int bind_form(struct decoder *dc, struct insn *out, uint32_t address, uint32_t lists)
{
    enum ptx_type type = (enum ptx_type)out->type;
    struct atom_form *f = bind_alloc(dc, sizeof *f);
    if (!f) return -1;
    (void)access_bind(dc, out);
    f->bytes = ptx_type_bits(type) / 8;
    f->count = mod_has(dc, "v2") ? 2 : mod_has(dc, "v4") ? 4 : mod_has(dc, "v8") ? 8 : 1;
    f->address = address;
    f->swap = mod_has(dc, "cas");
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++)
        if (updates[i].type == type && mod_has(dc, updates[i].op)) f->update = updates[i].update;
    if (type == T_F32 && mod_has(dc, "noftz") && mod_has(dc, "add")) f->update = add_f32_noftz;
    if (!f->update && !f->swap && type != T_B128)
        return bind_unsupported(dc, "%s of %s", dc->row->name, ptx_type_text(type));
    if (lists && out->list_count != lists * f->count)
        return bind_invalid(dc, "braces must hold %u registers each", f->count);
    if (lists && out->space != SPACE_GLOBAL && out->space != SPACE_NONE)
        return bind_invalid(dc, "vectors are for global memory only");
    if (f->bytes * f->count > 16)
        return bind_invalid(dc, "%u bytes; a vector has at most 16", f->bytes * f->count);
    out->aux = f;
    out->fn = type == T_B128 ? atom_128 : lists ? atom_vector : atom;
    return 0;
}

int bind_atom(struct decoder *dc, struct insn *out)
{
    return bind_form(dc, out, 1, 0);
}
int bind_atom_cas(struct decoder *dc, struct insn *out)
{
    return bind_form(dc, out, 1, 0);
}
int bind_red(struct decoder *dc, struct insn *out)
{
    return bind_form(dc, out, 0, 0);
}

int bind_atom_vector(struct decoder *dc, struct insn *out)
{
    return bind_form(dc, out, 1, 2);
}
int bind_red_vector(struct decoder *dc, struct insn *out)
{
    return bind_form(dc, out, 0, 1);
}

static int multimem_form(struct decoder *dc, struct insn *out, int result)
{
    const struct atom_form *f = out->aux;
    if (result) return result;
    out->fn = multimem_red;
    return bind_multimem_size(dc, out, f->bytes * f->count);
}

int bind_multimem_red(struct decoder *dc, struct insn *out)
{
    return multimem_form(dc, out, bind_red(dc, out));
}

int bind_multimem_red_vector(struct decoder *dc, struct insn *out)
{
    return multimem_form(dc, out, bind_red_vector(dc, out));
}
