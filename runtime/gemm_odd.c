/*
 * Tensor maps of operands whose rows may have any length (GEMM_ODD_...): one for every class of rows,
 * which begin at the same element of 16 bytes.
 */
#include "gemm.h"

#include "error.h"
#include "plan.h"

/* Bytes by which row i begins behind a multiple of 16. */
static uint64_t skew(const struct gemm_operand *o, hewn_deviceptr at, uint64_t i)
{
    return (at + i * o->pitch) % GEMM_ALIGN;
}

/* Row 0 where row i does not exist. */
static uint64_t first_row(const struct gemm_operand *o, uint64_t i)
{
    return i < o->rows ? i : 0;
}

const char *hewn_gemm_odd_lacks(const struct gemm_operand *operands)
{
    if (operands[GEMM_A].batch > 1 && operands[GEMM_A].plane % GEMM_ALIGN)
        return "A: a batch stride that is not a multiple of 16 B";
    if (operands[GEMM_B].batch > 1 && operands[GEMM_B].plane % GEMM_ALIGN)
        return "B: a batch stride that is not a multiple of 16 B";
    return NULL;
}

uint32_t hewn_gemm_odd_ways(const struct gemm_operand *o)
{
    uint64_t shift = o->pitch % GEMM_ALIGN / o->element;
    return shift == 0 ? 4 : shift == 4 ? 2 : 1;
}

/* The map of rows i, i + CLASSES, .. of an operand at an address that is `at` modulo 16. */
static void describe(const struct gemm_operand *o, int dtype, hewn_deviceptr at, uint64_t i,
                     hewn_tensormap_desc *map)
{
    uint64_t row = first_row(o, i), pitch = GEMM_ODD_CLASSES * o->pitch;
    *map = (hewn_tensormap_desc){
        .struct_size = sizeof *map,
        .dtype = dtype == HEWN_BF16 ? HEWN_TENSORMAP_BF16 : HEWN_TENSORMAP_F16,
        .rank = 3,
        .dim = {o->columns + skew(o, at, row) / o->element,
                (o->rows - row + GEMM_ODD_CLASSES - 1) / GEMM_ODD_CLASSES, o->batch},
        .stride = {pitch, o->batch > 1 ? o->plane : pitch},
        .box = {GEMM_ODD_ROW_BYTES / (uint32_t)o->element, GEMM_ODD_CLASSES, 1},
        .element_stride = {1, 1, 1},
        .l2 = HEWN_TENSORMAP_L2_128B,
    };
}

int hewn_gemm_odd_prepare(hewn_gemm_plan *plan, const hewn_gemm_desc *d, hewn_error *err)
{
    int status = HEWN_OK;
    for (int x = GEMM_A; !status && x <= GEMM_B; x++)
        for (uint64_t i = 0; !status && i < GEMM_ODD_CLASSES; i++) {
            struct hewn_map *map = &plan->odd_maps[x * GEMM_ODD_CLASSES + (int)i];
            describe(&plan->operands[x], d->in, 0, i, &map->desc);
            status = hewn_plan_prepare_maps(plan->context, map, &hewn_gemm_tensor_names[x], 1, err);
        }
    return status;
}

/* Maps of an address that is no multiple of 16 end elsewhere, so they are encoded anew. */
static int place(const hewn_gemm_plan *plan, int x, hewn_deviceptr at, uint64_t i,
                 hewn_cu_tensor_map *out, hewn_error *err)
{
    const struct gemm_operand *o = &plan->operands[x];
    const struct hewn_map *map = &plan->odd_maps[x * GEMM_ODD_CLASSES + (int)i];
    uint64_t row = first_row(o, i);
    hewn_deviceptr from = at + row * o->pitch - skew(o, at, row);
    if (at % GEMM_ALIGN == 0)
        return hewn_plan_place_maps(plan->context, map, &hewn_gemm_tensor_names[x], &from, 1, out,
                                    err);
    hewn_tensormap_desc desc = map->desc;
    desc.dim[0] = o->columns + skew(o, at, row) / o->element;
    const hewn_driver *driver = plan->context->driver;
    hewn_cu_result r = hewn_tensormap_encode_raw(driver, out, &desc, from);
    if (!r) return HEWN_OK;
    return hewn_fail_driver(err, driver, r, "cuTensorMapEncodeTiled", "%s at 0x%llx",
                            hewn_gemm_tensor_names[x], at);
}

int hewn_gemm_odd_place(const hewn_gemm_plan *plan, const hewn_deviceptr *at,
                        hewn_cu_tensor_map *maps, uint32_t *mode, hewn_error *err)
{
    static const uint32_t shifts[] = {[GEMM_A] = GEMM_ODD_SHIFT_A, [GEMM_B] = GEMM_ODD_SHIFT_B};
    for (int x = GEMM_A; x <= GEMM_B; x++) {
        const struct gemm_operand *o = &plan->operands[x];
        uint64_t first = at[x] % GEMM_ALIGN / o->element;
        uint64_t further = o->pitch % GEMM_ALIGN / o->element;
        *mode |= (uint32_t)(first | further << 3) << shifts[x];
        for (uint64_t i = 0; i < GEMM_ODD_CLASSES; i++) {
            int status = place(plan, x, at[x], i, &maps[x * GEMM_ODD_CLASSES + (int)i], err);
            if (status) return status;
        }
    }
    return HEWN_OK;
}
