/* Attention: a run compares its addresses with the plan, puts them into tensor maps on the stack, and
 * launches. */
#include "attention.h"

#include "error.h"
#include "plan.h"

enum { WORD = 4 /* bytes: what f32 and int32 arrays are aligned to */ };
_Static_assert(ATTENTION_MAP_COUNT + ATTENTION_SCALAR_COUNT <= HEWN_PARAMS_MOST, "room");

/* ---- addresses -- */

static int check_list(const char *prefix, const struct hewn_address *list, size_t count,
                      hewn_error *err)
{
    int status = HEWN_OK;
    for (size_t i = 0; !status && i < count; i++)
        status = hewn_address_check(prefix, &list[i], err);
    return status;
}

static int check_source(const struct attention_source *s, int used, const char *prefix,
                        const hewn_attention_source_args *a, hewn_error *err)
{
    if (!used && !(a->k | a->v | a->lengths | a->table | a->windows)) return HEWN_OK;
    enum hewn_need keys = !used ? ADDRESS_NONE : s->k.span ? ADDRESS_MUST : ADDRESS_MAY;
    enum hewn_need table = !s->page_size ? ADDRESS_NONE : s->length ? ADDRESS_MUST : ADDRESS_MAY;
    const struct hewn_address list[] = {
        {"k", a->k, keys, ATTENTION_ALIGN, 0, 0},
        {"v", a->v, keys, ATTENTION_ALIGN, 0, 0},
        {"lengths", a->lengths, hewn_needed(s->keys != HEWN_KEYS_FIXED), WORD, 0, 0},
        {"table", a->table, table, WORD, 0, 0},
        {"windows", a->windows, hewn_needed(s->windows), WORD, 0, 0},
    };
    return check_list(prefix, list, sizeof list / sizeof list[0], err);
}

static int check_addresses(const hewn_attention_plan *plan, const hewn_attention_args *a,
                           hewn_error *err)
{
    const struct attention_problem *p = &plan->problem;
    enum hewn_need q_scale = p->in == HEWN_E4M3 ? ADDRESS_MAY : ADDRESS_NONE;
    enum hewn_need scales = p->kv == HEWN_E4M3 ? ADDRESS_MAY : ADDRESS_NONE;
    enum hewn_need o_scale = p->out == HEWN_E4M3 ? ADDRESS_MAY : ADDRESS_NONE;
    const struct hewn_address list[] = {
        {"q", a->q, ADDRESS_MUST, ATTENTION_ALIGN, 0, 0},
        {"o", a->o, ADDRESS_MUST, ATTENTION_ALIGN, 0, 0},
        {"lse", a->lse, ADDRESS_MAY, WORD, 0, 0},
        {"row_max", a->row_max, hewn_needed(p->unnormalised), WORD, 0, 0},
        {"sink", a->sink, hewn_needed(p->sink), WORD, 0, 0},
        {"q_scale", a->q_scale, q_scale, WORD, 0, 0},
        {"k_scale", a->k_scale, scales, WORD, 0, 0},
        {"v_scale", a->v_scale, scales, WORD, 0, 0},
        {"o_scale", a->o_scale, o_scale, WORD, 0, 0},
        {"cu_q", a->cu_q, hewn_needed(p->q_packed), WORD, 0, 0},
        {"tree", a->tree, hewn_needed(p->tree), 2 * WORD, 0, 0},
        {"workspace", a->workspace, hewn_needed(plan->workspace > 0), ATTENTION_ALIGN, 0, 0},
    };
    int status = check_list("", list, sizeof list / sizeof list[0], err);
    if (!status) status = check_source(&p->source[0], 1, "source[0].", a->source[0], err);
    if (!status)
        status = check_source(&p->source[1], p->sources > 1, "source[1].", a->source[1], err);
    return status;
}

/* ---- overlap -- */

/* Bytes that a run reads or writes. */
struct range {
    const char *name;
    hewn_deviceptr at;
    uint64_t span;
    const struct attention_tensor *tensor; /* NULL: it fills the range */
};

/* Where a tensor lies within each period of `period` bytes: it begins anywhere and covers *covered.
 * False where it has no such period. */
static int has_period(const struct attention_tensor *t, uint64_t period, uint64_t *covered)
{
    const uint64_t count[] = {t->tokens, t->heads, t->planes};
    const uint64_t stride[] = {t->token, t->head, t->plane};
    *covered = t->columns * t->element;
    for (int i = 0; i < 3; i++) {
        if (count[i] == 1 || stride[i] % period == 0) continue;
        if (count[i] - 1 > period / stride[i]) return 0;
        *covered += (count[i] - 1) * stride[i];
    }
    return *covered <= period;
}

/* Two tensors may be different columns or heads of a larger one: their ranges overlap, they do not.
 * That is so where they share a stride and each stays within its part of it. */
static int apart(const struct range *x, const struct range *y)
{
    if (hewn_ranges_apart(x->at, x->span, y->at, y->span)) return 1;
    if (!x->tensor || !y->tensor) return 0;
    const uint64_t periods[] = {x->tensor->token, x->tensor->head, x->tensor->plane};
    for (int i = 0; i < 3; i++) {
        uint64_t period = periods[i], x_covers, y_covers;
        if (!period || !has_period(x->tensor, period, &x_covers) ||
            !has_period(y->tensor, period, &y_covers))
            continue;
        uint64_t offset = (y->at % period + period - x->at % period) % period;
        if (offset >= x_covers && offset + y_covers <= period) return 1;
    }
    return 0;
}

/* Adds a range to `count` others, where there is one. */
static size_t add_range(struct range *list, size_t count, const char *name, hewn_deviceptr at,
                        uint64_t span, const struct attention_tensor *tensor)
{
    if (!at || !span) return count;
    list[count] = (struct range){name, at, span, tensor};
    return count + 1;
}

static size_t add_tensor(struct range *list, size_t count, const struct attention_tensor *t,
                         hewn_deviceptr at)
{
    return add_range(list, count, t->name, at, t->span, t);
}

static int check_ends(const struct range *list, size_t count, hewn_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].span > UINT64_MAX - list[i].at)
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "%s: address 0x%llx and %llu B run past the end of memory",
                             list[i].name, list[i].at, (unsigned long long)list[i].span);
    return HEWN_OK;
}

static int check_apart(const struct range *w, const struct range *list, size_t count,
                       hewn_error *err)
{
    for (const struct range *r = list; r < list + count; r++)
        if (!apart(w, r))
            return hewn_fail_overlap(w->name, w->at, w->span, r->name, r->at, r->span, err);
    return HEWN_OK;
}

/* What is written overlaps neither the tensors that are read nor each other. The small arrays are
 * left to the caller. */
static int check_ranges(const hewn_attention_plan *plan, const hewn_attention_args *a,
                        hewn_error *err)
{
    const struct attention_problem *p = &plan->problem;
    struct range written[4], read[5];
    size_t writes = add_tensor(written, 0, &p->o, a->o);
    writes = add_range(written, writes, "lse", a->lse, plan->lse_span, NULL);
    writes = add_range(written, writes, "row_max", a->row_max, plan->lse_span, NULL);
    writes = add_range(written, writes, "workspace", a->workspace, plan->workspace, NULL);
    size_t reads = add_tensor(read, 0, &p->q, a->q);
    for (uint32_t i = 0; i < p->sources; i++) {
        reads = add_tensor(read, reads, &p->source[i].k, a->source[i]->k);
        reads = add_tensor(read, reads, &p->source[i].v, a->source[i]->v);
    }
    int status = check_ends(written, writes, err);
    if (!status) status = check_ends(read, reads, err);
    for (size_t i = 0; !status && i < writes; i++)
        status = check_apart(&written[i], read, reads, err);
    for (size_t i = 0; !status && i < writes; i++)
        status = check_apart(&written[i], written + i + 1, writes - i - 1, err);
    return status;
}

/* ---- launch -- */

static int place_maps(const hewn_attention_plan *plan, const hewn_attention_args *a,
                      hewn_cu_tensor_map maps[ATTENTION_MAP_COUNT], hewn_error *err)
{
    const struct attention_source *s = plan->problem.source;
    const struct attention_tensor *const tensors[ATTENTION_MAP_COUNT] = {&plan->problem.q, &s[0].k,
                                                                         &s[0].v, &s[1].k, &s[1].v};
    const hewn_deviceptr given[ATTENTION_MAP_COUNT] = {a->q, a->source[0]->k, a->source[0]->v,
                                                       a->source[1]->k, a->source[1]->v};
    const char *names[ATTENTION_MAP_COUNT];
    hewn_deviceptr at[ATTENTION_MAP_COUNT];
    for (uint32_t i = 0; i < ATTENTION_MAP_COUNT; i++) {
        names[i] = tensors[i]->name;
        at[i] = tensors[i]->span ? given[i] : a->q;
    }
    return hewn_plan_place_maps(plan->context, plan->maps, names, at, 1 + 2 * plan->problem.sources,
                                maps, err);
}

static void set_addresses(const hewn_attention_plan *plan, const hewn_attention_args *a,
                          struct attention_scalars *s)
{
    int parts = plan->problem.splits > 1;
    s->o = parts ? a->workspace : a->o;
    s->lse = parts ? a->workspace + plan->part_o : a->lse;
    s->row_max = a->row_max;
    s->sink = parts ? 0 : a->sink; /* the combine kernel adds it, once */
    s->q_scale = a->q_scale;
    s->k_scale = a->k_scale;
    s->v_scale = a->v_scale;
    s->o_scale = parts ? 0 : a->o_scale; /* as above */
    s->cu_q = a->cu_q;
    s->window = a->source[0]->windows;
    s->lengths_0 = a->source[0]->lengths;
    s->lengths_1 = a->source[1]->lengths;
    s->table_0 = a->source[0]->table;
    s->table_1 = a->source[1]->table;
}

static int launch_kernel(const hewn_attention_plan *plan, const hewn_attention_args *args,
                         hewn_stream stream, hewn_error *err)
{
    hewn_cu_tensor_map maps[ATTENTION_MAP_COUNT];
    int status = place_maps(plan, args, maps, err);
    if (status) return status;
    struct attention_scalars scalars = plan->scalars;
    set_addresses(plan, args, &scalars);
    struct hewn_params params;
    hewn_params_begin(&params, maps, ATTENTION_MAP_COUNT);
    for (size_t n = 1 + 2 * plan->problem.sources; n < ATTENTION_MAP_COUNT; n++)
        params.at[n] = &maps[n - 2]; /* one source: twice */
    hewn_params_add(&params, &scalars, ATTENTION_SCALARS(HEWN_SCALAR_SIZE));
    return hewn_plan_launch(plan->context, plan->loaded, &plan->config, stream, &params, err);
}

int hewn_attention_launch_combine(const hewn_context *context, const hewn_cu_launch_config *config,
                                  const struct hewn_loaded *loaded,
                                  struct attention_combine_scalars *scalars, hewn_stream stream,
                                  hewn_error *err)
{
    struct hewn_params params;
    hewn_params_begin(&params, NULL, 0);
    hewn_params_add(&params, scalars, ATTENTION_COMBINE_SCALARS(HEWN_SCALAR_SIZE));
    return hewn_plan_launch(context, loaded, config, stream, &params, err);
}

static int launch_combine(const hewn_attention_plan *plan, const hewn_attention_args *args,
                          hewn_stream stream, hewn_error *err)
{
    struct attention_combine_scalars scalars = plan->merge;
    scalars.part_o = args->workspace;
    scalars.part_lse = args->workspace + plan->part_o;
    scalars.o = args->o;
    scalars.lse = args->lse;
    scalars.sink = args->sink;
    scalars.o_scale = args->o_scale;
    return hewn_attention_launch_combine(plan->context, &plan->merge_config, plan->combine,
                                         &scalars, stream, err);
}

/* Copies the arguments; `copy` then points at both sources, zero where the caller gave none. */
static int take_args(const hewn_attention_args *args, hewn_attention_args *copy,
                     hewn_attention_source_args sources[2], hewn_error *err)
{
    int status = hewn_struct_take(HEWN_STRUCT_hewn_attention_args, args, copy, err);
    for (int i = 0; !status && i < 2; i++) {
        const hewn_attention_source_args *given = copy->source[i];
        sources[i] = (hewn_attention_source_args){0};
        copy->source[i] = &sources[i];
        if (given)
            status =
                hewn_struct_take(HEWN_STRUCT_hewn_attention_source_args, given, &sources[i], err);
    }
    return status;
}

int hewn_attention_plan_run(const hewn_attention_plan *plan, const hewn_attention_args *args,
                            hewn_stream stream, hewn_error *err)
{
    hewn_attention_args a;
    hewn_attention_source_args sources[2];
    if (!plan) return hewn_fail_null(err, "plan");
    int status = take_args(args, &a, sources, err);
    uint64_t items = plan->decode.kernel ? plan->decode.tiles : plan->scalars.items;
    if (status || items == 0) return status; /* no query: nothing to write */
    status = check_addresses(plan, &a, err);
    if (!status) status = check_ranges(plan, &a, err);
    if (!status && plan->decode.kernel) return hewn_decode_run(plan, &a, stream, err);
    if (!status) status = launch_kernel(plan, &a, stream, err);
    if (!status && plan->problem.splits > 1) status = launch_combine(plan, &a, stream, err);
    return status;
}
