/*
 * tensormap.replace and tensormap.cp_fenceproxy (PTX ISA sections of those names).
 *
 * A replacement is a weak access of the generic proxy to all 128 bytes. What it stores, and how much
 * of a value it keeps, is what ptxas makes of it for sm_90a, which is plain stores: dimensions, boxes
 * and element strides less 1 in 32, 8 and 3 bits, the rank less 1 in 3 bits, strides in units of 16
 * bytes in 36 bits. The rules of a whole map are checked when a copy uses it.
 */
#include "ops/access.h"
#include "machine/mem.h"
#include "async/tmap_copy.h"

enum { MAP_BYTES = 128, MAP_ALIGN = 64 };

enum map_field {
    FIELD_ADDRESS,
    FIELD_RANK,
    FIELD_BOX,
    FIELD_DIM,
    FIELD_STRIDE,
    FIELD_ELEMENT_STRIDE,
    FIELD_TYPE,
    FIELD_INTERLEAVE,
    FIELD_SWIZZLE,
    FIELD_ATOMICITY,
    FIELD_FILL
};

/* name, field, largest value of a constant operand */
static const struct {
    const char *name;
    uint8_t field, most;
} fields[] = {{"global_address", FIELD_ADDRESS, 0},
              {"rank", FIELD_RANK, 0},
              {"box_dim", FIELD_BOX, 0},
              {"global_dim", FIELD_DIM, 0},
              {"global_stride", FIELD_STRIDE, 0},
              {"element_stride", FIELD_ELEMENT_STRIDE, 0},
              {"elemtype", FIELD_TYPE, 15},
              {"interleave_layout", FIELD_INTERLEAVE, 2},
              {"swizzle_mode", FIELD_SWIZZLE, 4},
              {"swizzle_atomicity", FIELD_ATOMICITY, 3},
              {"fill_mode", FIELD_FILL, 1}};

/* ---- the fields ---- */

/* The instruction's element types in the driver's numbers. */
static const uint8_t element_types[16] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12, 13, 14, 15};

static void set_swizzle(struct tmap *t, uint32_t mode)
{
    if (mode == 4)
        t->swizzle = TMAP_SWIZZLE_96;
    else if (mode == 3)
        t->swizzle = (uint8_t)(TMAP_SWIZZLE_128 + t->atomicity);
    else
        t->swizzle = (uint8_t)mode;
}

static bool of_128_bytes(const struct tmap *t)
{
    return t->swizzle >= TMAP_SWIZZLE_128 && t->swizzle <= TMAP_SWIZZLE_LAST;
}

static void set_atomicity(struct tmap *t, uint32_t value)
{
    bool swizzled = of_128_bytes(t);
    t->atomicity = (uint8_t)value;
    if (swizzled) set_swizzle(t, 3);
}

/* `d`: the dimension; of strides the one after (dimension 0 has none). */
static void set_field(struct tmap *t, enum map_field field, uint32_t d, uint64_t value)
{
    uint32_t less = (uint32_t)value - 1;
    switch (field) {
    case FIELD_ADDRESS: t->address = value; break;
    case FIELD_RANK: t->rank = (uint8_t)((value & 7) + 1); break;
    case FIELD_BOX: t->box[d] = (less & 0xFF) + 1; break;
    case FIELD_DIM: t->dim[d] = less + 1ULL; break;
    case FIELD_STRIDE:
        if (d < 4) t->stride[d + 1] = value & 0xFFFFFFFFF0ULL;
        break;
    case FIELD_ELEMENT_STRIDE: t->element_stride[d] = (less & 7) + 1; break;
    case FIELD_TYPE: t->dtype = element_types[value]; break;
    case FIELD_INTERLEAVE: t->interleave = (uint8_t)value; break;
    case FIELD_SWIZZLE: set_swizzle(t, (uint32_t)value); break;
    case FIELD_ATOMICITY: set_atomicity(t, (uint32_t)value); break;
    case FIELD_FILL: t->oob = (uint8_t)value; break;
    }
}

/* Zeroed memory is where a kernel begins that makes a map from nothing, field by field. */
static bool open_map(const unsigned char *bytes, struct tmap *t)
{
    unsigned char any = 0;
    if (tmap_decode(bytes, t)) {
        if (!t->replaced) {
            bool tf32 = t->dtype == TMAP_TF32 || t->dtype == TMAP_TF32_FTZ;
            t->atomicity = (uint8_t)(of_128_bytes(t) ? t->swizzle - TMAP_SWIZZLE_128 : 0);
            t->replaced = tf32 ? TMAP_WAS_TF32 : 0;
        }
        return true;
    }
    for (uint32_t i = 0; i < MAP_BYTES; i++) any |= bytes[i];
    if (any) return false;
    *t = (struct tmap){.rank = 1};
    for (uint32_t d = 0; d < 5; d++) t->dim[d] = t->box[d] = t->element_stride[d] = 1;
    return true;
}

/* ---- tensormap.replace ---- */

/* flags: enum map_field; imm[1]: the dimension; arg[1] or arg[2]: the value, imm[2] its index. */
static enum step replace_lane(struct warp *w, const struct insn *in, uint32_t lane,
                              uint64_t address)
{
    struct tmap t;
    uint8_t *bytes = mem_at(w, in, lane, (enum ptx_space)in->space, address, MAP_BYTES, MAP_ALIGN,
                            ACCESS_WRITE, false);
    if (!bytes) return STEP_FAULT;
    if (!open_map(bytes, &t) || t.im2col) {
        return sim_fault(w, in, lane, 719, FIND_TMA_DESC, CAUSE_NONE, "",
                         t.im2col ? "the tensor map at 0x%llx is im2col: fields of tiled ones only "
                                    "can be replaced"
                                  : "the 128 bytes at 0x%llx are no tensor map, nor all zero",
                         (unsigned long long)address);
    }
    t.replaced |= TMAP_REPLACED;
    set_field(&t, (enum map_field)in->flags, (uint32_t)in->imm[1],
              arg_lane(w, in->arg[in->imm[2]], lane));
    tmap_encode(&t, bytes);
    return STEP_NEXT;
}

static enum step exec_replace(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint64_t address[WARP_LANES];
    access_addresses(w, in->arg[0], in->imm[0], address);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = first_lane(rest);
        if (replace_lane(w, in, lane, address[lane]) == STEP_FAULT) return STEP_FAULT;
    }
    if (w->cta->group->observer)
        access_tell(w, in, mask, (enum ptx_space)in->space, address, MAP_BYTES, ACCESS_WRITE);
    access_changed(w->cta->group);
    return STEP_NEXT;
}

static enum ptx_space map_space(const struct decoder *dc)
{
    if (mod_has(dc, "shared::cta")) return SPACE_SHARED;
    return mod_has(dc, "global") ? SPACE_GLOBAL : SPACE_NONE;
}

int bind_tensormap_replace(struct decoder *dc, struct insn *out)
{
    for (uint32_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        int64_t value;
        if (!mod_has(dc, fields[i].name)) continue;
        out->flags = fields[i].field;
        if (fields[i].most &&
            (!operand_constant(dc, 1, &value) || value < 0 || value > fields[i].most)) {
            return bind_invalid(dc, "%s takes a constant from 0 to %u", fields[i].name,
                                fields[i].most);
        }
    }
    out->imm[2] = 1;
    if (out->flags >= FIELD_BOX && out->flags <= FIELD_ELEMENT_STRIDE) {
        if (!operand_constant(dc, 1, &out->imm[1]) || out->imm[1] < 0 || out->imm[1] > 4)
            return bind_invalid(dc, "the dimension is a constant from 0 to 4");
        out->imm[2] = 2;
    }
    out->space = (uint8_t)map_space(dc);
    out->fn = exec_replace;
    return 0;
}

/* ---- tensormap.cp_fenceproxy ---- */

/* A whole warp copies one map and releases it to the tensormap proxy; lane 0's operands count. */
static enum step exec_cp_fence(struct warp *w, const struct insn *in, uint32_t mask)
{
    uint64_t dst[WARP_LANES], src[WARP_LANES];
    uint32_t lane = first_lane(mask);
    void *to, *from;
    access_addresses(w, in->arg[0], in->imm[0], dst);
    access_addresses(w, in->arg[1], in->imm[1], src);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t l = first_lane(rest);
        if (dst[l] == dst[lane] && src[l] == src[lane]) continue;
        return sim_fault(w, in, l, 715, FIND_COLLECTIVE_PARTIAL, CAUSE_NONE, "",
                         "lane %u copies another tensor map than lane %u; a warp copies one", l,
                         lane);
    }
    to = mem_at(w, in, lane, SPACE_GLOBAL, dst[lane], MAP_BYTES, MAP_ALIGN, ACCESS_WRITE, false);
    from =
        to ? mem_at(w, in, lane, SPACE_SHARED, src[lane], MAP_BYTES, MAP_ALIGN, ACCESS_READ, false)
           : NULL;
    if (!from) return STEP_FAULT;
    memcpy(to, from, MAP_BYTES);
    if (w->cta->group->observer) {
        struct event fence = {.kind = EV_FENCE,
                              .access = ACCESS_WRITE,
                              .lanes = mask,
                              .warp = w,
                              .in = in,
                              .cta = w->cta,
                              .address = dst[lane],
                              .size = MAP_BYTES,
                              .value = FENCE_PROXY_TENSORMAP};
        access_tell(w, in, 1U << lane, SPACE_SHARED, src, MAP_BYTES, ACCESS_READ);
        access_tell(w, in, 1U << lane, SPACE_GLOBAL, dst, MAP_BYTES, ACCESS_WRITE);
        observe(w->cta->group, &fence);
    }
    access_changed(w->cta->group);
    return STEP_NEXT;
}

int bind_tensormap_cp(struct decoder *dc, struct insn *out)
{
    int64_t size;
    if (!operand_constant(dc, 2, &size) || size != MAP_BYTES)
        return bind_invalid(dc, "the size of a tensor map is %d", MAP_BYTES);
    out->fn = exec_cp_fence;
    return 0;
}
