/* hewn_gemm_tune: times the kernels that can compute a product on the caller's stream and buffers. */
#include "gemm.h"

#include "error.h"
#include "gemm_table.h"
#include "structs.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 5, ROUNDS_MOST = 1000, LAUNCHES_MOST = 100 };
static const double chunk_seconds = 0.3e-3; /* of launches that follow one another */
/* A kernel whose single launch takes more than this beyond twice the best is not timed further. A single launch
 * has up to `single_seconds` that many in a row do not have. */
static const double hopeless = 2, single_seconds = 20e-6;
static const double worth = 0.98; /* what another kernel must take of the chosen one's time */

/* The driver's functions that only this file needs. */
#define TUNE_FUNCTIONS(X)                                                                     \
    X(event_create, "cuEventCreate", (hewn_cu_event * event, unsigned flags))                 \
    X(event_destroy, "cuEventDestroy_v2", (hewn_cu_event event))                              \
    X(event_record, "cuEventRecord", (hewn_cu_event event, hewn_cu_stream stream))            \
    X(event_wait, "cuEventSynchronize", (hewn_cu_event event))                                \
    X(event_elapsed, "cuEventElapsedTime", (float *ms, hewn_cu_event from, hewn_cu_event to)) \
    X(fill, "cuMemsetD8Async",                                                                \
      (hewn_deviceptr at, unsigned char value, size_t bytes, hewn_cu_stream stream))

struct tune {
    hewn_context *context;
    hewn_gemm_desc desc;
    hewn_gemm_args args;
    hewn_gemm_tune_args how;
    uint32_t slices;            /* those that are asked for; 0: any */
    uint64_t copy;              /* of B, the next launch's */
    hewn_gemm_plan_info chosen; /* without a table */
    hewn_cu_event start, stop;
#define X(field, name, arguments) hewn_cu_result(*field) arguments;
    TUNE_FUNCTIONS(X)
#undef X
};

static int failed(const struct tune *t, hewn_cu_result code, const char *call, hewn_error *err)
{
    return hewn_fail_driver(err, t->context->driver, code, call, "tuning");
}

static int resolve(struct tune *t, hewn_error *err)
{
    void *symbol;
#define X(field, name, arguments)                                                             \
    symbol = hewn_driver_symbol(t->context->driver, name);                                    \
    if (!symbol) return hewn_fail(err, HEWN_ERR_SYMBOL, "tuning: the driver lacks %s", name); \
    memcpy(&t->field, &symbol, sizeof symbol);
    TUNE_FUNCTIONS(X)
#undef X
    return HEWN_OK;
}

/* ---- time -- */

/* A launch on the next copy of B. */
static int launch(struct tune *t, const hewn_gemm_plan *plan, hewn_error *err)
{
    hewn_gemm_args args = t->args;
    const uint64_t copies = t->how.copies ? t->how.copies : 1;
    const uint64_t bytes = hewn_dtype_size(t->desc.in_b ? t->desc.in_b : t->desc.in);
    if (copies > 1) args.b += t->copy++ % copies * (uint64_t)t->how.copy_stride * bytes;
    return hewn_gemm_plan_run(plan, &args, t->how.stream, err);
}

/* Seconds a launch, of `count` that follow one another. */
static int time_launches(struct tune *t, const hewn_gemm_plan *plan, int count, double *seconds,
                         hewn_error *err)
{
    float ms = 0;
    hewn_cu_result r = 0;
    if (t->how.flush) r = t->fill(t->how.flush, 0, t->how.flush_bytes, t->how.stream);
    if (r) return failed(t, r, "cuMemsetD8Async", err);
    r = t->event_record(t->start, t->how.stream);
    if (r) return failed(t, r, "cuEventRecord", err);
    for (int i = 0; i < count; i++) {
        int status = launch(t, plan, err);
        if (status) return status;
    }
    r = t->event_record(t->stop, t->how.stream);
    if (r) return failed(t, r, "cuEventRecord", err);
    r = t->event_wait(t->stop);
    if (r) return failed(t, r, "cuEventSynchronize", err);
    r = t->event_elapsed(&ms, t->start, t->stop);
    if (r) return failed(t, r, "cuEventElapsedTime", err);
    *seconds = 1e-3 * (double)ms / count;
    return HEWN_OK;
}

/* The least over the rounds, behind a launch that warms up. `best` is what the fastest kernel takes, 0: unknown. */
static int time_plan(struct tune *t, const hewn_gemm_plan *plan, double best, double *least,
                     hewn_error *err)
{
    uint64_t rounds = t->how.rounds ? t->how.rounds : ROUNDS;
    int count = 1, status = time_launches(t, plan, 1, least, err);
    if (!status) status = time_launches(t, plan, 1, least, err);
    if (status || (best > 0 && *least > hopeless * best + single_seconds)) return status;
    if (!t->how.flush && *least < chunk_seconds) {
        double fit = *least > 0 ? chunk_seconds / *least : LAUNCHES_MOST;
        count = fit < LAUNCHES_MOST ? (int)fit : LAUNCHES_MOST;
    }
    if (t->context->info.simulated) count = 1, rounds = 0; /* its times say nothing of a GPU */
    for (uint64_t i = 0; !status && i < rounds; i++) {
        double seconds;
        status = time_launches(t, plan, count, &seconds, err);
        if (!status && seconds < *least) *least = seconds;
    }
    return status;
}

/* ---- candidates -- */

/* A plan, and what it says of itself. HEWN_ERR_LIMIT where its slices need more than the workspace. */
static int open_plan(const struct tune *t, const hewn_gemm_desc *desc, hewn_gemm_plan **plan,
                     hewn_gemm_plan_info *info, hewn_error *err)
{
    int status = hewn_gemm_plan_create(t->context, desc, plan, err);
    info->struct_size = sizeof *info;
    if (!status) status = hewn_gemm_plan_describe(*plan, info, err);
    return !status && !t->slices && info->workspace > t->how.workspace_bytes ? HEWN_ERR_LIMIT
                                                                             : status;
}

/* A kernel that cannot compute this product is no failure: `tried` stays. */
static int try_kernel(struct tune *t, const struct hewn_gemm_kernel *k, uint32_t parts,
                      uint32_t slices, hewn_gemm_tuned *best, hewn_error *err)
{
    hewn_gemm_desc desc = t->desc;
    hewn_gemm_plan_info info;
    hewn_gemm_plan *plan = NULL;
    double seconds;
    desc.variant = k->variant, desc.parts = parts, desc.slices = slices;
    int status = open_plan(t, &desc, &plan, &info, err);
    if (!status) status = time_plan(t, plan, best->seconds, &seconds, err);
    hewn_gemm_plan_destroy(plan);
    if (status == HEWN_ERR_ARGUMENT || status == HEWN_ERR_LIMIT || status == HEWN_ERR_NO_MODULE)
        return HEWN_OK;
    if (status) return status;
    best->tried++;
    if (seconds > worth * best->chosen_seconds || seconds > best->seconds) return HEWN_OK;
    best->variant = k->variant, best->parts = parts, best->slices = slices, best->seconds = seconds;
    return HEWN_OK;
}

/* One slice, or those asked for; then as many as occupy the device, and half as many. */
static int try_slices(struct tune *t, const struct hewn_gemm_kernel *k, uint32_t parts,
                      hewn_gemm_tuned *best, hewn_error *err)
{
    int status = try_kernel(t, k, parts, t->slices ? t->slices : 1, best, err);
    if (t->slices) return status;
    uint32_t s = hewn_gemm_most_slices(k, parts, (uint64_t)t->desc.m, (uint64_t)t->desc.n,
                                       (uint32_t)t->context->info.sm_count);
    for (int left = 2; !status && left && s > 1; s--) {
        uint32_t tried = best->tried;
        if (t->desc.k / s * (int64_t)hewn_dtype_size(t->desc.in) < GEMM_SLICE_BYTES) continue;
        status = try_kernel(t, k, parts, s, best, err);
        if (best->tried != tried) s = s / 2 + 1, left--;
    }
    return status;
}

/* What is chosen without a table, which all others must beat. */
static int time_chosen(struct tune *t, hewn_gemm_tuned *best, hewn_error *err)
{
    hewn_gemm_plan *plan = NULL;
    int status = open_plan(t, &t->desc, &plan, &t->chosen, err);
    if (status == HEWN_ERR_LIMIT && plan) { /* too large a workspace */
        hewn_gemm_plan_destroy(plan);
        t->desc.slices = 1;
        status = open_plan(t, &t->desc, &plan, &t->chosen, err);
    }
    if (!status) status = time_plan(t, plan, 0, &best->chosen_seconds, err);
    best->variant = t->chosen.variant;
    best->parts = t->chosen.parts;
    best->slices = t->chosen.slices;
    best->seconds = best->chosen_seconds;
    best->tried = 1;
    hewn_gemm_plan_destroy(plan);
    return status;
}

static int time_all(struct tune *t, hewn_gemm_tuned *best, hewn_error *err)
{
    size_t count;
    const struct hewn_gemm_kernel *k = hewn_gemm_kernels(&count);
    int status = time_chosen(t, best, err);
    const char *asked = t->desc.variant;
    uint32_t only = t->desc.invariant ? t->chosen.parts : t->desc.parts;
    const int invariant = t->desc.invariant != 0;
    t->desc.invariant = 0; /* kept by `only` */
    for (size_t i = 0; !status && i < count; i++) {
        if (strcmp(k[i].target, t->chosen.target) != 0 ||
            (asked ? strcmp(k[i].variant, asked) != 0 : k[i].named) ||
            (invariant && k[i].few >= HEWN_GEMM_ODDFEW))
            continue;
        for (uint32_t parts = 1; !status && parts <= k[i].parts; parts++)
            if (!only || parts == only) status = try_slices(t, &k[i], parts, best, err);
    }
    return status;
}

/* ---- the public function -- */

static int take(struct tune *t, const hewn_gemm_desc *desc, const hewn_gemm_tune_args *args,
                hewn_error *err)
{
    int status = hewn_struct_take(HEWN_STRUCT_hewn_gemm_desc, desc, &t->desc, err);
    t->desc.table = NULL;
    if (!status) status = hewn_struct_take(HEWN_STRUCT_hewn_gemm_tune_args, args, &t->how, err);
    if (!t->desc.slices && (t->desc.invariant || !t->how.workspace_bytes)) t->desc.slices = 1;
    t->slices = t->desc.slices;
    if (!status) status = hewn_struct_take(HEWN_STRUCT_hewn_gemm_args, t->how.args, &t->args, err);
    if (status) return status;
    if (t->how.rounds > ROUNDS_MOST)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "rounds: %llu is more than %d",
                         (unsigned long long)t->how.rounds, ROUNDS_MOST);
    if (!t->how.flush != !t->how.flush_bytes)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "flush, flush_bytes: 0x%llx and %llu: both or neither must be 0",
                         t->how.flush, (unsigned long long)t->how.flush_bytes);
    if (t->how.copies > 1 && t->how.copy_stride < 1)
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "copy_stride: %lld must be positive with %llu copies",
                         (long long)t->how.copy_stride, (unsigned long long)t->how.copies);
    return HEWN_OK;
}

static int note(const struct tune *t, const hewn_gemm_tuned *best, hewn_gemm_table *table,
                hewn_error *err)
{
    struct gemm_table_line line = {
        .parts = best->parts, .slices = best->slices, .seconds = best->seconds};
    hewn_gemm_table_key(&t->desc, t->chosen.target, t->context->info.sm_count, &line.key);
    snprintf(line.variant, sizeof line.variant, "%s", best->variant);
    return hewn_gemm_table_put(table, &line, err);
}

int hewn_gemm_tune(hewn_context *context, const hewn_gemm_desc *desc,
                   const hewn_gemm_tune_args *args, hewn_gemm_table *table, hewn_gemm_tuned *out,
                   hewn_error *err)
{
    struct tune t = {.context = context};
    hewn_gemm_tuned best = {.struct_size = sizeof best};
    if (!context) return hewn_fail_null(err, "context");
    int status = take(&t, desc, args, err);
    if (!status) status = resolve(&t, err);
    if (status) return status;
    hewn_cu_result r = t.event_create(&t.start, 0);
    if (r) return failed(&t, r, "cuEventCreate", err);
    r = t.event_create(&t.stop, 0);
    status = r ? failed(&t, r, "cuEventCreate", err) : time_all(&t, &best, err);
    if (!r) t.event_destroy(t.stop);
    t.event_destroy(t.start);
    if (!status && out) status = hewn_struct_give(HEWN_STRUCT_hewn_gemm_tuned, &best, out, err);
    if (!status && table) status = note(&t, &best, table, err);
    return status;
}
