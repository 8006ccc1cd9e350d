/* A run of the decode schedule: addresses into maps and parameters on the stack, two launches. */
#include "attention.h"

#include "plan.h"

static int place_maps(const hewn_attention_plan *plan, const hewn_attention_args *a,
                      hewn_cu_tensor_map maps[DECODE_MAPS_MOST], hewn_error *err)
{
    const struct attention_source *s = &plan->problem.source[0];
    const char *const names[DECODE_MAPS_MOST] = {plan->problem.q.name, s->k.name, s->v.name,
                                                 s->k.name, s->v.name};
    const hewn_deviceptr k = s->k.span ? a->source[0]->k : a->q;
    const hewn_deviceptr v = s->v.span ? a->source[0]->v : a->q;
    const hewn_deviceptr at[DECODE_MAPS_MOST] = {a->q, k, v, k, v};
    return hewn_plan_place_maps(plan->context, plan->decode.maps, names, at, plan->decode.map_count,
                                maps, err);
}

static void set_addresses(const hewn_attention_plan *plan, const hewn_attention_args *a,
                          struct decode_scalars *s)
{
    s->k = a->source[0]->k;
    s->v = a->source[0]->v;
    s->o = a->o;
    s->lse = a->lse;
    s->sink = a->sink;
    s->cu_q = a->cu_q;
    s->window = a->source[0]->windows;
    s->lengths = a->source[0]->lengths;
    s->table = a->source[0]->table;
    s->tree = a->tree;
    s->k_scale = a->k_scale;
    s->v_scale = a->v_scale;
    if (!plan->decode.combine) return;
    s->part_o = a->workspace;
    s->part_lse = a->workspace + plan->decode.part_lse;
    s->records = a->workspace + plan->decode.records;
}

static int launch_combine(const hewn_attention_plan *plan, const struct decode_scalars *from,
                          hewn_stream stream, hewn_error *err)
{
    struct split_combine_scalars scalars = plan->decode.merge;
    scalars.part_o = from->part_o;
    scalars.part_lse = from->part_lse;
    scalars.records = from->records;
    scalars.o = from->o;
    scalars.lse = from->lse;
    scalars.sink = from->sink;
    scalars.cu_q = from->chunk ? from->cu_q : 0;
    return hewn_split_combine(plan->context, plan->decode.combine, &plan->decode.merge_config,
                              &scalars, stream, err);
}

int hewn_decode_run(const hewn_attention_plan *plan, const hewn_attention_args *args,
                    hewn_stream stream, hewn_error *err)
{
    hewn_cu_tensor_map maps[DECODE_MAPS_MOST];
    int status = place_maps(plan, args, maps, err);
    if (status) return status;
    struct decode_scalars scalars = plan->decode.scalars;
    set_addresses(plan, args, &scalars);
    struct hewn_params params;
    hewn_params_begin(&params, maps, plan->decode.map_count);
    hewn_params_add(&params, &scalars, DECODE_SCALARS(HEWN_SCALAR_SIZE));
    status = hewn_plan_launch(plan->context, plan->loaded, &plan->config, stream, &params, err);
    if (!status && plan->decode.combine) status = launch_combine(plan, &scalars, stream, err);
    return status;
}
