/*
 * tensormap.replace and tensormap.cp_fenceproxy (PTX ISA sections of those names).
 *
 * A replacement is a weak access of the generic proxy to all 128 bytes. What it stores, and how much
 * of a value it keeps, is what ptxas makes of it for sm_90a, which is plain stores: dimensions, boxes
 * and element strides less 1 in 32, 8 and 3 bits, the rank less 1 in 3 bits, strides in units of 16
 * bytes in 36 bits. Any 128 bytes will do. The rules of a whole map are checked when a copy uses it.
 */
#include "ops/access.h"
#include "machine/mem.h"
#include "async/late.h"
#include "async/tmap_copy.h"

enum { MAP_BYTES = 128, MAP_ALIGN = 64 };

/* name, field, largest value of a constant operand */
static const struct {
    const char *name;
    uint8_t field, most;
} fields[] = {{"global_address", TMAP_FIELD_ADDRESS, 0},
              {"rank", TMAP_FIELD_RANK, 0},
              {"box_dim", TMAP_FIELD_BOX, 0},
              {"global_dim", TMAP_FIELD_DIM, 0},
              {"global_stride", TMAP_FIELD_STRIDE, 0},
              {"element_stride", TMAP_FIELD_ELEMENT_STRIDE, 0},
              {"elemtype", TMAP_FIELD_TYPE, 15},
              {"interleave_layout", TMAP_FIELD_INTERLEAVE, 2},
              {"swizzle_mode", TMAP_FIELD_SWIZZLE, 4},
              {"swizzle_atomicity", TMAP_FIELD_ATOMICITY, 3},
              {"fill_mode", TMAP_FIELD_FILL, 1}};

/* ---- tensormap.replace ---- */

/* flags: enum tmap_field; imm[1]: the dimension; arg[1] or arg[2]: the value, imm[2] its index. */
static enum step replace_lane(struct warp *w, const struct insn *in, uint32_t lane,
                              uint64_t address)
{
    uint8_t *bytes = mem_at(w, in, lane, (enum ptx_space)in->space, address, MAP_BYTES, MAP_ALIGN,
                            ACCESS_WRITE, false);
    if (!bytes) return STEP_FAULT;
    if (w->cta->group->late && in->space == SPACE_GLOBAL) late_keep_global(w, address, MAP_BYTES);
    tmap_replace(bytes, (enum tmap_field)in->flags, (uint32_t)in->imm[1],
                 arg_lane(w, in->arg[in->imm[2]], lane));
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
    if (out->flags >= TMAP_FIELD_BOX && out->flags <= TMAP_FIELD_ELEMENT_STRIDE) {
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
    if (w->cta->group->late) late_keep_global(w, dst[lane], MAP_BYTES);
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
