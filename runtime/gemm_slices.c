/*
 * Products whose K is cut into slices of whole k-blocks (ptx/inc/slices.inc): a plan of a batch of slices, whose sums of
 * f32 go to the workspace, and the kernel that adds them up (ptx/inc/gemm_combine.inc).
 */
#include "gemm.h"

#include "error.h"
#include "gemm_table.h"
#include "plan.h"

#include "../ptx/inc/gemm_combine.plan.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUM_BYTES = 4,
    SUMS_OF_ROW = GEMM_ALIGN / SUM_BYTES, /* a row of sums is a multiple of so many */
    LEAST_LOADS = 4                       /* slices of a lane, before more lanes share a quad */
};

#define u64                 uint64_t
#define u32                 uint32_t
#define f32                 float
#define X(type, name, rule) type name;
struct combine_scalars {
    GEMM_COMBINE_SCALARS(X)
};
#undef X
#undef f32
#undef u32
#undef u64

struct gemm_slices {
    uint32_t count,
        turned;           /* turned: HEWN_GEMM_TURNED where they are of the transpose of D, or 0 */
    int must;             /* the description names them, so a run brings a workspace */
    hewn_gemm_plan *plan; /* of the slices */
    uint64_t bytes;       /* of the workspace */
    const struct hewn_loaded *combine;
    struct combine_scalars scalars; /* without addresses and factors */
    hewn_cu_launch_attribute overlap;
    hewn_cu_launch_config config; /* without stream */
};

_Static_assert(offsetof(struct combine_scalars, beta) + 4 == GEMM_COMBINE_PARAM_BYTES,
               "the scalars are not laid out as the kernel's parameters");

/* ---- the plan -- */

/* The slices: a batch of problems that share one A and one B. Scales, and what follows the sums, are
 * left to the combine kernel. */
static hewn_gemm_desc slice_desc(const hewn_gemm_plan *plan, const hewn_gemm_desc *d,
                                 const struct hewn_gemm_choice *choice, uint32_t turned,
                                 uint32_t slices)
{
    const int one = turned ? GEMM_B : GEMM_A, other = GEMM_A + GEMM_B - one;
    const struct gemm_operand *a = &plan->operands[one], *b = &plan->operands[other];
    const int in_b = d->in_b ? d->in_b : d->in, majors[] = {d->major_a, d->major_b};
    int64_t in = (int64_t)a->element, m = turned ? d->n : d->m, n = turned ? d->m : d->n;
    int64_t ldd = (n + SUMS_OF_ROW - 1) / SUMS_OF_ROW * SUMS_OF_ROW;
    return (hewn_gemm_desc){
        .struct_size = sizeof(hewn_gemm_desc),
        .m = m,
        .n = n,
        .k = d->k,
        .batch = slices,
        .in = turned ? in_b : d->in,
        .in_b = turned ? d->in : in_b,
        .out = HEWN_F32,
        .major_a = majors[one],
        .major_b = majors[other],
        .accumulate = d->accumulate,
        .parts = choice->parts,
        .lda = (int64_t)a->pitch / in,
        .ldb = (int64_t)b->pitch / in,
        .ldd = ldd,
        .stride_d = ldd * m,
        .variant = choice->kernel->variant,
        .slices = 1,
        .constant_b = turned ? 0 : d->constant_b,
    };
}

/* Lanes of a quad: as many as there are loads for. */
static uint32_t lanes_of(uint32_t slices)
{
    uint32_t lanes = 1;
    while (lanes < GEMM_COMBINE_GROUPS && lanes * LEAST_LOADS < slices) lanes *= 2;
    return lanes;
}

static int plan_combine(struct gemm_slices *s, const hewn_gemm_plan *plan,
                        const hewn_gemm_desc *slice, hewn_context *context, hewn_error *err)
{
    struct combine_scalars *c = &s->scalars;
    c->part_pitch = (uint64_t)slice->ldd * SUM_BYTES;
    c->part_slice = (uint64_t)slice->stride_d * SUM_BYTES;
    c->d_pitch = plan->scalars.d_pitch;
    c->c_pitch = plan->scalars.c_pitch;
    c->m = (uint32_t)slice->m;
    c->n = (uint32_t)slice->n;
    c->turned = s->turned != 0;
    c->slices = s->count;
    c->groups = lanes_of(c->slices);
    c->out_type = (uint32_t)plan->out;
    s->bytes = c->part_slice * c->slices;
    uint64_t columns = (uint64_t)GEMM_COMBINE_COLUMNS << c->turned,
             quads = (uint64_t)c->m * ((c->n + columns - 1) / columns << c->turned),
             ctas = (quads * c->groups + GEMM_COMBINE_THREADS - 1) / GEMM_COMBINE_THREADS;
    if (quads > GEMM_MAX_EXTENT / GEMM_COMBINE_GROUPS)
        return hewn_fail(err, HEWN_ERR_LIMIT, "slices: %u of a D of %u x %u are too many to add up",
                         s->count, c->m, c->n);
    s->config = (hewn_cu_launch_config){
        .grid_x = (uint32_t)ctas,
        .grid_y = 1,
        .grid_z = 1,
        .block_x = GEMM_COMBINE_THREADS,
        .block_y = 1,
        .block_z = 1,
        .attributes = &s->overlap,
    };
    /* It starts beside the end of the slices' kernel, where that does, too. */
    for (uint32_t i = 0; i < s->plan->config.attribute_count; i++)
        if (s->plan->attributes[i].id == HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION) {
            s->overlap = s->plan->attributes[i];
            s->config.attribute_count = 1;
        }
    return hewn_plan_load(context, hewn_gemm_family(), "gemm_combine", 0, &s->combine, err);
}

static int is_unaligned(const hewn_gemm_desc *d)
{
    return d->align && d->align < GEMM_ALIGN;
}

_Static_assert(GEMM_MAX_SLICES == 64 && HEWN_GEMM_TURNED == 128, "a message has other numbers");

static uint32_t count_of(uint32_t slices)
{
    return slices % HEWN_GEMM_TURNED;
}

static int in_range(uint32_t slices)
{
    const uint32_t count = slices < 2 * HEWN_GEMM_TURNED ? count_of(slices) : slices;
    return count <= GEMM_MAX_SLICES && (count > 1 || slices == count);
}

static int can_slice(const hewn_gemm_desc *d, const struct hewn_gemm_extent *extent,
                     uint32_t slices)
{
    return !is_unaligned(d) && hewn_gemm_sliceable(extent, count_of(slices));
}

__attribute__((cold)) static int check_slices(const hewn_gemm_desc *d,
                                              const struct hewn_gemm_extent *extent,
                                              hewn_error *err)
{
    if (d->constant_b > 1)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "constant_b: %u is not in 0..1", d->constant_b);
    if (!in_range(d->slices))
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "slices: %u is not in 0..64, nor in 130..192",
                         d->slices);
    if (d->slices <= 1 || can_slice(d, extent, d->slices)) return HEWN_OK;
    if (extent->batch > 1)
        return hewn_fail(err, HEWN_ERR_LIMIT, "slices: %u is not 1, but batch is %llu", d->slices,
                         (unsigned long long)extent->batch);
    if (extent->need & (GEMM_CAN_KINDS | GEMM_CAN_SCALES | GEMM_CAN_GLU))
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "slices: %u is not 1, which s8, scales of rows or columns, SwiGLU ask for",
                         d->slices);
    if (is_unaligned(d))
        return hewn_fail(err, HEWN_ERR_LIMIT, "slices: %u is not 1, but align is %u, not %d",
                         d->slices, d->align, GEMM_ALIGN);
    return hewn_fail(err, HEWN_ERR_ARGUMENT,
                     "slices: k = %lld is too short to be cut into %u slices of whole k-blocks",
                     (long long)d->k, count_of(d->slices));
}

/* Whether the device has the kernel that adds up slices. */
static int can_combine(const hewn_context *context)
{
    const hewn_module *module = NULL;
    return !hewn_plan_choose(context, hewn_gemm_family(), "gemm_combine", &module, NULL);
}

/* The plan, whose kernel is chosen, has made the model. */
static const struct hewn_gemm_model *model_of(const hewn_gemm_plan *plan)
{
    return atomic_load(&plan->context->gemm_model);
}

/* Kernel and parts of so many slices. */
static int choose_for(const hewn_gemm_plan *plan, const struct hewn_gemm_extent *extent,
                      uint32_t slices, const char *variant, uint32_t parts,
                      struct hewn_gemm_choice *choice, hewn_error *err)
{
    const struct hewn_gemm_extent slice = hewn_gemm_slice_extent(extent, slices);
    int status = hewn_gemm_choose(model_of(plan), variant, parts, &slice, choice, err);
    if (status || hewn_gemm_cuts(choice->kernel, choice->parts, extent, count_of(slices)))
        return status;
    if (choice->parts > 1 && !parts)
        return choose_for(plan, extent, slices, variant, 1, choice, err);
    return hewn_fail(err, HEWN_ERR_ARGUMENT,
                     "slices: kernel %s with %u parts cannot cut k = %llu into %u slices of whole "
                     "k-blocks",
                     choice->kernel->variant, choice->parts, (unsigned long long)extent->k,
                     count_of(slices));
}

/* The table's slices, where it has some that can compute this; else 1. */
static uint32_t look_up(const hewn_gemm_plan *plan, const hewn_gemm_desc *d,
                        const struct hewn_gemm_extent *extent, struct hewn_gemm_choice *choice)
{
    const struct gemm_table_line *line =
        hewn_gemm_table_find(d, plan->kernel->target, plan->context->info.sm_count);
    if (!line || line->slices < 2 || !in_range(line->slices) ||
        !can_slice(d, extent, line->slices) ||
        choose_for(plan, extent, line->slices, line->variant, line->parts, choice, NULL) ||
        choice->lacks)
        return 1;
    return line->slices;
}

/* Kernel and parts of the slices, and how many; 1: none. */
static int choose(const hewn_gemm_plan *plan, const hewn_gemm_desc *d,
                  const struct hewn_gemm_extent *extent, double cost,
                  struct hewn_gemm_choice *choice, uint32_t *slices, hewn_error *err)
{
    const hewn_context *context = plan->context;
    const struct hewn_gemm_choice whole = {plan->kernel, plan->parts, 0, cost};
    int status = check_slices(d, extent, err);
    *slices = d->slices ? d->slices : 1;
    if (status) return status;
    if (*slices > 1) return choose_for(plan, extent, *slices, d->variant, d->parts, choice, err);
    if (d->slices || d->variant || d->parts || d->invariant || cost <= 0 ||
        !can_slice(d, extent, 1) || !can_combine(context))
        return HEWN_OK;
    *slices = look_up(plan, d, extent, choice);
    if (*slices == 1) *slices = hewn_gemm_choose_slices(model_of(plan), &whole, extent, choice);
    return HEWN_OK;
}

int hewn_gemm_slices_create(hewn_gemm_plan *plan, hewn_context *context, const hewn_gemm_desc *d,
                            const struct hewn_gemm_extent *extent, double cost, hewn_error *err)
{
    struct hewn_gemm_choice choice = {NULL, 0, 0, 0};
    uint32_t count = 1;
    int status = choose(plan, d, extent, cost, &choice, &count, err);
    if (status || count == 1) return status;
    struct gemm_slices *s = calloc(1, sizeof *s);
    if (!s) return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for the plan");
    s->turned = count & HEWN_GEMM_TURNED;
    s->count = count = count_of(count);
    const hewn_gemm_desc slice = slice_desc(plan, d, &choice, s->turned, count);
    s->must = d->slices != 0;
    status = hewn_gemm_slices_plan(context, &slice, &s->plan, err);
    if (!status) status = plan_combine(s, plan, &slice, context, err);
    if (!status)
        plan->slices = s;
    else
        hewn_gemm_slices_destroy(s);
    return status;
}

void hewn_gemm_slices_destroy(struct gemm_slices *slices)
{
    if (slices) hewn_gemm_plan_destroy(slices->plan);
    free(slices);
}

__attribute__((cold)) int hewn_gemm_slices_describe(const struct gemm_slices *slices,
                                                    hewn_gemm_plan_info *info, hewn_error *err)
{
    int status = hewn_gemm_plan_describe(slices->plan, info, err);
    info->slices = slices->turned + slices->count;
    info->workspace = slices->bytes;
    return status;
}

/* ---- the run -- */

static const struct hewn_address addresses[] = {
    {"workspace", 0, ADDRESS_MUST, GEMM_ALIGN, 0, 1},
    {"A", 0, ADDRESS_MUST, 1, 0, 0},
    {"B", 0, ADDRESS_MUST, 1, 0, 0},
    {"D", 0, ADDRESS_MUST, 1, 0, 0},
    {"C", 0, ADDRESS_MAY, 1, 0, 0},
    {"bias", 0, ADDRESS_MAY, 1, 0, 0},
    {"scale_a", 0, ADDRESS_MAY, 1, 0, 0},
    {"scale_b", 0, ADDRESS_MAY, 1, 0, 0},
};
enum { ADDRESSES = sizeof addresses / sizeof addresses[0] };

static int check_workspace(const hewn_gemm_plan *plan, const hewn_gemm_args *a, hewn_error *err)
{
    const struct gemm_operand *o = plan->operands;
    const hewn_deviceptr at[ADDRESSES] = {
        a->workspace, a->a, a->b, a->d, a->beta != 0 ? a->c : 0, a->bias, a->scale_a, a->scale_b};
    const uint64_t spans[ADDRESSES] = {plan->slices->bytes, o[GEMM_A].span, o[GEMM_B].span,
                                       o[GEMM_D].span,      o[GEMM_C].span, plan->bias_span,
                                       SUM_BYTES,           SUM_BYTES};
    struct hewn_address list[ADDRESSES];
    memcpy(list, addresses, sizeof list);
    for (int i = 0; i < ADDRESSES; i++) {
        list[i].at = at[i];
        list[i].span = at[i] ? spans[i] : 0;
    }
    return hewn_addresses_check(list, ADDRESSES, err);
}

static int launch_combine(const hewn_gemm_plan *plan, const hewn_gemm_args *a,
                          const struct gemm_scalars *of, hewn_stream stream, hewn_error *err)
{
    const struct gemm_slices *s = plan->slices;
    struct combine_scalars scalars = s->scalars;
    struct hewn_params params;
    scalars.part = a->workspace;
    scalars.d = of->d;
    scalars.c = of->c;
    scalars.bias = of->bias;
    scalars.scale_a = of->scale_a;
    scalars.scale_b = of->scale_b;
    scalars.finish = of->finish;
    scalars.alpha = of->alpha;
    scalars.beta = of->beta;
    hewn_params_begin(&params, NULL, 0);
    hewn_params_add(&params, &scalars, GEMM_COMBINE_SCALARS(HEWN_SCALAR_SIZE));
    return hewn_plan_launch(plan->context, s->combine, &s->config, stream, &params, err);
}

int hewn_gemm_slices_run(const hewn_gemm_plan *plan, const hewn_gemm_args *a,
                         const struct gemm_scalars *scalars, hewn_stream stream, int *done,
                         hewn_error *err)
{
    const struct gemm_slices *s = plan->slices;
    *done = s && (a->workspace || s->must);
    if (!*done) return HEWN_OK;
    hewn_gemm_args part = {.struct_size = sizeof part,
                           .a = s->turned ? a->b : a->a,
                           .b = s->turned ? a->a : a->b,
                           .d = a->workspace};
    int status = check_workspace(plan, a, err);
    if (!status) status = hewn_gemm_plan_run(s->plan, &part, stream, err);
    return status ? status : launch_combine(plan, a, scalars, stream, err);
}
