/* A run of a GEMM plan: checks addresses, puts them into three tensor maps on the stack, launches. */
#include "gemm.h"

#include "error.h"
#include "plan.h"

#include <string.h>

enum { MAPS = GEMM_ODD_MAP_COUNT, SCALE_BYTES = 4 };
_Static_assert((int)MAPS >= GEMM_TENSORS, "MAPS is the most");

/* Two operands of one pitch may be different columns of a wide matrix: their ranges overlap, they do
 * not. */
static int columns_apart(const struct gemm_operand *x, hewn_deviceptr x_at,
                         const struct gemm_operand *y, hewn_deviceptr y_at)
{
    uint64_t pitch = x->pitch;
    if (pitch != y->pitch || x->plane % pitch || y->plane % pitch) return 0;
    uint64_t offset = (y_at % pitch + pitch - x_at % pitch) % pitch; /* of y's rows within x's */
    return offset >= x->columns * x->element && offset + y->columns * y->element <= pitch;
}

static int overlap(const hewn_gemm_plan *plan, hewn_deviceptr d, const char *name,
                   hewn_deviceptr at, uint64_t span, hewn_error *err)
{
    return hewn_fail_overlap("D", d, plan->operands[GEMM_D].span, name, at, span, err);
}

static int check_matrix(const hewn_gemm_plan *plan, int i, hewn_deviceptr at, hewn_deviceptr d,
                        hewn_error *err)
{
    const struct gemm_operand *o = &plan->operands[i], *od = &plan->operands[GEMM_D];
    const char name[] = {o->name, '\0'};
    const struct hewn_address address = {name, at, ADDRESS_MUST, o->align, o->span, 0};
    int status = hewn_address_check("", &address, err);
    if (status || i == GEMM_D || hewn_ranges_apart(at, o->span, d, od->span) ||
        columns_apart(o, at, od, d))
        return status;
    /* C may be D: the thread that writes an element has read it */
    if (i == GEMM_C && at == d && o->pitch == od->pitch && o->plane == od->plane &&
        o->batch == od->batch)
        return HEWN_OK;
    return overlap(plan, d, name, at, o->span, err);
}

/* A vector or a number beside the matrices: required if the plan has it, else 0. */
static int check_beside(const hewn_gemm_plan *plan, uint32_t bit, const char *name,
                        hewn_deviceptr at, uint32_t align, uint64_t span, hewn_deviceptr d,
                        hewn_error *err)
{
    const struct hewn_address address = {name,  at,   hewn_needed((plan->with & bit) != 0),
                                         align, span, 0};
    int status = hewn_address_check("", &address, err);
    if (!at) return status;
    if (status || hewn_ranges_apart(at, span, d, plan->operands[GEMM_D].span)) return status;
    return overlap(plan, d, name, at, span, err);
}

/* scale_a or scale_b: a number, or one for each row of the operand's problems. */
static int check_scale(const hewn_gemm_plan *plan, uint32_t one, uint32_t each, int i,
                       hewn_deviceptr at, hewn_deviceptr d, hewn_error *err)
{
    const struct gemm_operand *o = &plan->operands[i];
    uint32_t align = SCALE_BYTES;
    uint64_t span = SCALE_BYTES;
    if (plan->with & each) {
        align = GEMM_ALIGN;
        span = (o->rows + 3) / 4 * 4 * o->batch * SCALE_BYTES;
    }
    return check_beside(plan, one | each, i == GEMM_A ? "scale_a" : "scale_b", at, align, span, d,
                        err);
}

static int check_args(const hewn_gemm_plan *plan, const hewn_gemm_args *a, hewn_error *err)
{
    int status = check_matrix(plan, GEMM_A, a->a, a->d, err);
    if (!status) status = check_matrix(plan, GEMM_B, a->b, a->d, err);
    if (!status) status = check_matrix(plan, GEMM_D, a->d, a->d, err);
    if (status) return status;
    if (!(plan->with & HEWN_GEMM_WITH_ALPHA) && a->alpha != 0 && a->alpha != 1)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "alpha: %g must be 0 or 1, because the plan lacks HEWN_GEMM_WITH_ALPHA",
                         (double)a->alpha);
    if (!(plan->with & HEWN_GEMM_WITH_C) && a->beta != 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "beta: %g must be 0, because the plan lacks HEWN_GEMM_WITH_C",
                         (double)a->beta);
    if (!(plan->with & HEWN_GEMM_WITH_C) && a->c != 0)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "C: address 0x%llx must be 0, because the plan uses none", a->c);
    if (a->beta != 0) status = check_matrix(plan, GEMM_C, a->c, a->d, err);
    if (!status)
        status = check_beside(plan, HEWN_GEMM_WITH_BIAS, "bias", a->bias, plan->bias_align,
                              plan->bias_span, a->d, err);
    if (!status)
        status = check_scale(plan, HEWN_GEMM_WITH_SCALE_A, HEWN_GEMM_WITH_SCALE_ROWS, GEMM_A,
                             a->scale_a, a->d, err);
    if (!status)
        status = check_scale(plan, HEWN_GEMM_WITH_SCALE_B, HEWN_GEMM_WITH_SCALE_COLUMNS, GEMM_B,
                             a->scale_b, a->d, err);
    return status;
}

/* For a kernel that loads loose operands by element: tensor maps of the others. D needs none. */
static int place_loose(const hewn_gemm_plan *plan, const hewn_deviceptr at[GEMM_TENSORS],
                       hewn_cu_tensor_map maps[GEMM_TENSORS], hewn_error *err)
{
    int status = HEWN_OK;
    memset(&maps[GEMM_D], 0, sizeof maps[GEMM_D]);
    for (int i = GEMM_A; !status && i <= GEMM_B; i++) {
        const struct gemm_operand *o = &plan->operands[i];
        const struct gemm_loose loose = {at[i], o->pitch, o->batch > 1 ? o->plane : 0,
                                         (uint32_t)o->rows, (uint32_t)o->columns};
        if (!o->loose) {
            status = hewn_plan_place_maps(plan->context, &plan->maps[i], &hewn_gemm_tensor_names[i],
                                          &at[i], 1, &maps[i], err);
            continue;
        }
        memset(&maps[i], 0, sizeof maps[i]);
        memcpy(&maps[i], &loose, sizeof loose);
    }
    return status;
}

static int launch(const hewn_gemm_plan *plan, const hewn_gemm_args *a, hewn_stream stream,
                  hewn_error *err)
{
    const hewn_deviceptr at[GEMM_TENSORS] = {[GEMM_A] = a->a, [GEMM_B] = a->b, [GEMM_D] = a->d};
    struct gemm_scalars scalars = plan->scalars;
    hewn_cu_tensor_map maps[MAPS];
    struct hewn_params params;
    scalars.alpha = plan->with & HEWN_GEMM_WITH_ALPHA ? a->alpha : 1;
    if (scalars.alpha != 1) scalars.finish |= GEMM_FINISH_SCALE;
    if (a->beta != 0) scalars.finish |= GEMM_FINISH_C;
    scalars.d = a->d;
    scalars.c = a->beta != 0 ? a->c : 0;
    scalars.bias = a->bias;
    scalars.scale_a = a->scale_a;
    scalars.scale_b = a->scale_b;
    scalars.beta = a->beta;
    int done = 0, status = hewn_gemm_slices_run(plan, a, &scalars, stream, &done, err);
    if (status || done) return status;
    status = plan->kernel->odd ? hewn_gemm_odd_place(plan, at, maps, &scalars.mode, err)
             : plan->loose     ? place_loose(plan, at, maps, err)
                           : hewn_plan_place_maps(plan->context, plan->maps, hewn_gemm_tensor_names,
                                                  at, GEMM_TENSORS, maps, err);
    if (status) return status;
    hewn_params_begin(&params, maps, plan->kernel->odd ? GEMM_ODD_MAP_COUNT : GEMM_TENSORS);
    hewn_params_add(&params, &scalars, GEMM_SCALARS(HEWN_SCALAR_SIZE));
    return hewn_plan_launch(plan->context, plan->loaded, &plan->config, stream, &params, err);
}

int hewn_gemm_plan_run(const hewn_gemm_plan *plan, const hewn_gemm_args *args, hewn_stream stream,
                       hewn_error *err)
{
    hewn_gemm_args a;
    int status = hewn_plan_take(plan, HEWN_STRUCT_hewn_gemm_args, args, &a, err);
    if (!status) status = check_args(plan, &a, err);
    return status ? status : launch(plan, &a, stream, err);
}
