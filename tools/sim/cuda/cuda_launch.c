/*
 * Launches: the checks that the driver makes before a kernel runs, parameters, and the run itself.
 * What a launch may ask is in the Driver API reference at cuLaunchKernelEx and, for the directives,
 * in the PTX ISA's "Performance-Tuning Directives" and "Cluster Dimension Directives".
 */
#include "cuda/driver.h"
#include "async/late.h"
#include "cuda/repeat.h"
#include "cuda/running.h"
#include "ptx/demangle.h"
#include "ops/table.h"
#include "check/check.h"
#include "check/counters.h"
#include "check/launch_memory.h"
#include "trace/trace.h"
#include "worksheet/worksheet.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_THREADS = 1024, MAX_BLOCK_Z = 64, MAX_GRID_X = 0x7FFFFFFF, MAX_GRID_YZ = 65535 };
enum { PORTABLE_CLUSTER = 8, PARAM_ALIGN = 64, GRID_WORKSPACE = 256 /* bytes */ };

/* What a caller asks for, before it is checked. */
struct shape {
    struct launch_request request;
    bool cluster_preferred;
    uint32_t preferred[3];
    hewn_cu_event event; /* recorded when the launch is over, or NULL */
    bool event_at_begin; /* once its CTAs have begun */
};

/* A finding about a launch that cannot begin, reported like those of a run. */
static void report_refusal(const struct CUfunc_st *f, enum finding_kind kind, struct src_pos pos,
                           const struct ptx_insn *src, const char *instr, const char *message)
{
    struct finding finding = {.severity = SEV_ERROR, .kind = kind, .cause = CAUSE_NONE};
    struct report *report = report_new(f->kernel->entry->name, ++driver.launches);

    if (!report) return;
    finding.kernel = f->kernel->entry->name;
    finding.file = ptx_file(f->module->ptx, pos);
    finding.line = finding.ptx_line = pos.line;
    finding.instr = instr;
    if (src) finding_at(&finding, f->module->ptx, src);
    finding.warp = finding.lane = -1;
    snprintf(finding.message, sizeof finding.message, "%s", message);
    report_add(report, &finding);
    report_end(report);
}

/* ---- checks, in the order in which their errors win ---- */

static int check_dims(const struct launch_request *r)
{
    const uint32_t *g = r->grid, *b = r->block;

    if (!g[0] || !g[1] || !g[2] || !b[0] || !b[1] || !b[2]) return HEWN_CU_INVALID_VALUE;
    if (g[0] > MAX_GRID_X || g[1] > MAX_GRID_YZ || g[2] > MAX_GRID_YZ) return HEWN_CU_INVALID_VALUE;
    if (b[0] > MAX_THREADS || b[1] > MAX_THREADS || b[2] > MAX_BLOCK_Z ||
        b[0] * b[1] * b[2] > MAX_THREADS)
        return HEWN_CU_INVALID_VALUE;
    /* The machine numbers CTAs with 32 bits. */
    if ((uint64_t)g[0] * g[1] > UINT32_MAX || (uint64_t)g[0] * g[1] * g[2] > UINT32_MAX)
        return HEWN_CU_INVALID_VALUE;
    return 0;
}

/* .reqntid must be met and .maxntid not exceeded (interpretation: both are invalid values); more
 * threads than registers allow are too many resources. */
static int check_threads(const struct launch_request *r)
{
    const struct ptx_entry *e = r->function->kernel->entry;
    uint32_t threads = r->block[0] * r->block[1] * r->block[2];

    if (e->reqntid[0] && memcmp(e->reqntid, r->block, sizeof r->block) != 0)
        return HEWN_CU_INVALID_VALUE;
    if (e->maxntid[0] && threads > e->maxntid[0] * e->maxntid[1] * e->maxntid[2])
        return HEWN_CU_INVALID_VALUE;
    return threads > function_max_threads(r->function) ? HEWN_CU_LAUNCH_OUT_OF_RESOURCES : 0;
}

static int check_shared(const struct launch_request *r)
{
    const struct CUfunc_st *f = r->function;
    const struct ptx_entry *e = f->kernel->entry;
    char text[320];

    if (r->dynamic_shared <= f->max_dynamic_shared) return 0;
    snprintf(text, sizeof text,
             "the launch asks for %u bytes of dynamic shared memory; this function's limit is %u "
             "(static %u, device %u opt-in): raise it with cuFuncSetAttribute("
             "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), where static and dynamic together "
             "fit the device",
             r->dynamic_shared, f->max_dynamic_shared, e->shared_bytes,
             driver.settings.gpu.shared_optin);
    report_refusal(f, FIND_SMEM_LIMIT, e->pos, NULL, "", text);
    return HEWN_CU_INVALID_VALUE;
}

/* Settles r->cluster from the attribute and what the source fixes. */
static int settle_cluster(struct launch_request *r)
{
    const struct ptx_entry *e = r->function->kernel->entry;
    uint32_t fixed[3], size;

    if (function_cluster(r->function, fixed)) {
        if (r->cluster_given && memcmp(fixed, r->cluster, sizeof fixed) != 0)
            return HEWN_CU_INVALID_CLUSTER_SIZE;
        memcpy(r->cluster, fixed, sizeof fixed);
    } else if (!r->cluster_given) {
        if (e->explicit_cluster) return HEWN_CU_INVALID_CLUSTER_SIZE;
        r->cluster[0] = r->cluster[1] = r->cluster[2] = 1;
    }
    for (int i = 0; i < 3; i++) {
        if (!r->cluster[i] || r->cluster[i] > CLUSTER_CTAS || r->grid[i] % r->cluster[i])
            return HEWN_CU_INVALID_CLUSTER_SIZE;
    }
    size = r->cluster[0] * r->cluster[1] * r->cluster[2];
    if (size > CLUSTER_CTAS || (size > PORTABLE_CLUSTER && !r->function->non_portable_cluster))
        return HEWN_CU_INVALID_CLUSTER_SIZE;
    return e->maxclusterrank && size > e->maxclusterrank ? HEWN_CU_INVALID_CLUSTER_SIZE : 0;
}

static uint32_t at_least_1(uint32_t n)
{
    return n ? n : 1;
}

/* A cooperative grid must be resident as a whole, any other at least one CTA at a time. */
static int check_residency(const struct launch_request *r)
{
    uint32_t threads = r->block[0] * r->block[1] * r->block[2];
    uint32_t size = r->cluster[0] * r->cluster[1] * r->cluster[2];
    uint64_t ctas = (uint64_t)r->grid[0] * r->grid[1] * r->grid[2];
    uint64_t room =
        (uint64_t)size * function_clusters(r->function, size, threads, r->dynamic_shared);

    if (r->sm_count) /* of that many SMs only */
        room =
            room / at_least_1(driver.settings.gpu.sm_count / size) * at_least_1(r->sm_count / size);
    if (!room) return HEWN_CU_LAUNCH_OUT_OF_RESOURCES;
    return r->cooperative && ctas > room ? HEWN_CU_COOPERATIVE_LAUNCH_TOO_LARGE : 0;
}

/* An instruction that is not modelled fails the launch, not the load. So does machine code of a library. */
static int check_modelled(const struct CUfunc_st *f)
{
    const struct kernel *k = f->kernel;

    if (f->module->names_only) return HEWN_CU_NO_BINARY_FOR_GPU;
    if (!k->unsupported) return 0;
    report_refusal(f, FIND_UNSUPPORTED, k->unsupported_pos, k->unsupported_insn,
                   k->unsupported_text ? k->unsupported_text : "", k->unsupported);
    return HEWN_CU_NOT_SUPPORTED;
}

static int check_preferred(const struct shape *shape)
{
    for (int i = 0; i < 3 && shape->cluster_preferred; i++)
        if (!shape->preferred[i] || shape->preferred[i] % shape->request.cluster[i])
            return HEWN_CU_INVALID_CLUSTER_SIZE;
    return 0;
}

/* With .blocksareclusters the caller counts clusters; from here on the grid counts CTAs. */
static int count_ctas(struct launch_request *r)
{
    const struct ptx_entry *e = r->function->kernel->entry;

    for (int i = 0; i < 3 && e->blocks_are_clusters; i++) {
        if (r->grid[i] > MAX_GRID_X / e->reqnctapercluster[i]) return HEWN_CU_INVALID_VALUE;
        r->grid[i] *= e->reqnctapercluster[i];
    }
    return 0;
}

/* A launch that fails before anything runs, in words; what has a report of its own is NULL. */
static void note_refused(const struct launch_request *r, int rc, const char *why)
{
    static const char *said_why;
    static const struct ptx_entry *said_entry;
    const struct ptx_entry *e = r->function->kernel->entry;
    char name[DEMANGLED_BYTES];

    if (!why || (said_why == why && said_entry == e)) return;
    said_why = why;
    said_entry = e;
    driver_note(
        "%s does not launch (%d): %s; grid %u,%u,%u block %u,%u,%u cluster %u,%u,%u, %u bytes "
        "of dynamic shared memory",
        demangle(e->name, name, sizeof name), rc, why, r->grid[0], r->grid[1], r->grid[2],
        r->block[0], r->block[1], r->block[2], r->cluster[0], r->cluster[1], r->cluster[2],
        r->dynamic_shared);
}

/* What holds whatever the launch's attributes are: a node's may be set after the node was made. */
static int check_plain(struct launch_request *r)
{
    const char *why = "the grid has more clusters than a grid has CTAs";
    int rc = count_ctas(r);

    if (!rc) {
        why = "a dimension of grid or block is 0, or more than the device takes";
        rc = check_dims(r);
    }
    if (!rc) {
        why = NULL;
        rc = check_modelled(r->function);
    }
    if (!rc) {
        rc = check_threads(r);
        why = rc == HEWN_CU_INVALID_VALUE ? "the source fixes another block (.reqntid, .maxntid)"
                                          : "the block needs more registers than an SM has";
    }
    if (!rc) {
        why = NULL;
        rc = check_shared(r);
    }
    if (rc) note_refused(r, rc, why);
    return rc;
}

int launch_settle(struct launch_request *r)
{
    const char *why = "the cluster does not fit the grid, the source or the device";
    int rc = settle_cluster(r);

    if (!rc) {
        rc = check_residency(r);
        why = rc == HEWN_CU_COOPERATIVE_LAUNCH_TOO_LARGE
                  ? "a cooperative grid must fit the device as a whole"
                  : "one CTA or cluster needs more than the device has";
    }
    if (rc) note_refused(r, rc, why);
    return rc;
}

/* ---- parameters ---- */

static int params_from_array(const struct ptx_entry *e, void **params, uint8_t *out)
{
    if (e->param_count && !params) return HEWN_CU_INVALID_VALUE;
    for (uint32_t i = 0; i < e->param_count; i++) {
        if (!params[i]) return HEWN_CU_INVALID_VALUE;
        memcpy(out + e->params[i].offset, params[i], e->params[i].bytes);
    }
    return 0;
}

/* `extra`: pairs of a key and its value up to the end key; one buffer laid out like the block. */
static int params_from_buffer(const struct ptx_entry *e, void **extra, uint8_t *out)
{
    const void *buffer = NULL;
    const size_t *size = NULL;

    for (; *extra != HEWN_CU_PARAM_END; extra += 2) {
        if (*extra == HEWN_CU_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == HEWN_CU_PARAM_BUFFER_SIZE)
            size = extra[1];
        else
            return HEWN_CU_INVALID_VALUE;
    }
    if (!buffer || !size || *size < e->param_bytes) return HEWN_CU_INVALID_VALUE;
    /* The reference lists arguments of the wrong size under 701; driver 580 says so for too many. */
    if (*size > e->param_bytes) return HEWN_CU_LAUNCH_OUT_OF_RESOURCES;
    memcpy(out, buffer, e->param_bytes);
    return 0;
}

static int take_params(struct launch_request *r, void **params, void **extra)
{
    const struct ptx_entry *e = r->function->kernel->entry;
    size_t size = (e->param_bytes + (size_t)PARAM_ALIGN) / PARAM_ALIGN * PARAM_ALIGN;
    int rc;

    if (params && extra) return HEWN_CU_INVALID_VALUE;
    r->params = aligned_alloc(PARAM_ALIGN, size);
    if (!r->params) return HEWN_CU_OUT_OF_MEMORY;
    memset(r->params, 0, size);
    rc = extra ? params_from_buffer(e, extra, r->params) : params_from_array(e, params, r->params);
    if (rc) free(r->params);
    return rc;
}

/* ---- attributes of cuLaunchKernelEx ---- */

/* CUlaunchAttributeValue: either struct has the event and flags; that of a programmatic event then triggerAtBlockStart. */
static int take_event(struct shape *shape, const hewn_cu_launch_value *value, bool programmatic)
{
    int at_begin = 1;
    if (programmatic) memcpy(&at_begin, value->pad + sizeof(void *) + sizeof(int), sizeof at_begin);
    shape->event_at_begin = at_begin != 0;
    memcpy(&shape->event, value->pad, sizeof(void *));
    return handle_get(shape->event, HANDLE_EVENT) ? 0 : HEWN_CU_INVALID_HANDLE;
}

static void take_dims(uint32_t out[3], const hewn_cu_launch_value *value)
{
    out[0] = value->cluster.x;
    out[1] = value->cluster.y;
    out[2] = value->cluster.z;
}

static int take_attribute(struct shape *shape, const hewn_cu_launch_attribute *a)
{
    switch (a->id) {
    case HEWN_CU_LAUNCH_COOPERATIVE: shape->request.cooperative = a->value.flag != 0; return 0;
    case HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION:
        shape->request.overlaps = a->value.flag != 0;
        return 0;
    case HEWN_CU_LAUNCH_CLUSTER_DIMENSION:
        take_dims(shape->request.cluster, &a->value);
        shape->request.cluster_given = true;
        return 0;
    case HEWN_CU_LAUNCH_PREFERRED_CLUSTER_DIMENSION:
        take_dims(shape->preferred, &a->value);
        shape->cluster_preferred = true;
        return 0;
    case HEWN_CU_LAUNCH_PROGRAMMATIC_EVENT: return take_event(shape, &a->value, true);
    case HEWN_CU_LAUNCH_LAUNCH_COMPLETION_EVENT: return take_event(shape, &a->value, false);
    case HEWN_CU_LAUNCH_IGNORE:
    case HEWN_CU_LAUNCH_ACCESS_POLICY_WINDOW: /* hints, and freedoms that a serial schedule keeps */
    case HEWN_CU_LAUNCH_SYNCHRONIZATION_POLICY:
    case HEWN_CU_LAUNCH_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case HEWN_CU_LAUNCH_PRIORITY:
    case HEWN_CU_LAUNCH_MEM_SYNC_DOMAIN_MAP:
    case HEWN_CU_LAUNCH_MEM_SYNC_DOMAIN:
    case HEWN_CU_LAUNCH_PREFERRED_SHARED_MEMORY_CARVEOUT: return 0;
    case HEWN_CU_LAUNCH_DEVICE_UPDATABLE_KERNEL_NODE: return HEWN_CU_NOT_SUPPORTED;
    default: return HEWN_CU_INVALID_VALUE;
    }
}

/* ---- running ---- */

void launch_settled(void)
{
    launch_memory_free(driver.memory);
    driver.memory = NULL;
}

/* What the launch before did to memory, if this one may overlap it. A launch that waits for others gives the turn away, and
 * they end meanwhile: so it owns what it looks at. */
static struct launch_memory *take_memory(const struct launch_request *request)
{
    struct launch_memory *before = driver.memory;
    if (!request->overlaps || driver.memory_stream != request->stream) return NULL;
    driver.memory = NULL;
    return before;
}

/* Keeps what the launch did to memory for the next one, which may overlap it. */
static void keep_memory(struct launch_memory *memory, struct launch_memory *before,
                        const struct launch_request *request)
{
    launch_settled();
    launch_memory_behind(memory, before);
    driver.memory = memory;
    driver.memory_stream = request->stream;
}

static struct counters *take_counters(struct CUfunc_st *function)
{
    struct counters *before = function->counters;
    function->counters = NULL;
    return before;
}

static void keep_counters(struct CUfunc_st *function, struct counters *counters,
                          struct counters *before)
{
    counters_free(before);
    counters_free(function->counters);
    function->counters = counters;
}

/* Counts and reports a launch that need not run. */
static int report_repeated(const struct launch_request *request, const struct repeat *repeat)
{
    const struct report_basis *basis = &repeat->basis;
    struct report *report = report_new(request->function->kernel->entry->name, ++driver.launches);

    if (!report) return HEWN_CU_OUT_OF_MEMORY;
    launch_settled();
    beside_end(beside_begin(&(struct check){0}, NULL), NULL, NULL);
    if (basis->sampled != SAMPLED_REASON_COUNT)
        report_sampled(report, basis->sampled, basis->file, basis->line);
    report_end(report);
    return 0;
}

/* launch.outside */
static bool look_outside(struct launch *l)
{
    if (running_waits(l->outside_context, l) || running_waits_for_processes(l)) return true;
    if (running_ends(l->outside_context)) l->stays_hung = false;
    return false;
}

static int no_memory(struct repeat *r)
{
    repeat_drop(r);
    return HEWN_CU_OUT_OF_MEMORY;
}

/* What looks at a launch, and what it leaves behind for later ones. */
struct watched {
    struct launch launch;
    struct check check;
    struct report *report;
    struct launch_memory *before;
    struct counters *counters;
    struct late_watcher late;
    struct trace *timeline;
    struct worksheet *worksheet;
    struct replay *replay;
    uint32_t slot; /* of the stream */
};

static void fill_launch(struct launch *l, const struct launch_request *r)
{
    const struct settings *settings = &driver.settings;
    const struct CUfunc_st *f = r->function;
    *l = (struct launch){.kernel = f->kernel,
                         .gpu = &settings->gpu,
                         .hooks = &op_hooks,
                         .dynamic_shared = r->dynamic_shared,
                         .params = r->params,
                         .param_bytes = f->kernel->entry->param_bytes,
                         .globals = f->module->globals,
                         .consts = f->module->consts,
                         .sm_count = r->sm_count ? r->sm_count : settings->gpu.sm_count,
                         .host_threads = settings->host_threads,
                         .seed = settings->seed,
                         .stays_hung = settings->hang,
                         .check_level = settings->check_level};
    memcpy(l->grid, r->grid, sizeof l->grid);
    memcpy(l->block, r->block, sizeof l->block);
    memcpy(l->cluster, r->cluster, sizeof l->cluster);
}

static void watch_begin(struct watched *w, const struct launch_request *request)
{
    const char *trace = getenv("HEWN_SIM_TRACE"), *sheet = getenv("HEWN_SIM_WORKSHEET");
    struct launch *l = &w->launch;
    w->check = (struct check){.keeps_memory = true, .keeps_counters = true};
    w->check.before = w->before = take_memory(request);
    w->check.counters_before = w->counters = take_counters(request->function);
    w->slot = beside_begin(&w->check, l->kernel);
    check_attach(&w->check, l, w->report);
    late_attach(&w->late, l);
    if (l->check_level && driver.aliased) report_sampled(w->report, SAMPLED_ALIASED, NULL, 0);
    if (trace && *trace) w->timeline = trace_attach(l);
    if (sheet && *sheet) w->worksheet = worksheet_attach(l);
    w->replay = replay_before(l);
}

static void watch_end(struct watched *w, const struct launch_request *request)
{
    const char *trace = getenv("HEWN_SIM_TRACE"), *sheet = getenv("HEWN_SIM_WORKSHEET");
    beside_end(w->slot, w->check.memory, w->launch.kernel);
    while (w->check.beside_count)
        launch_memory_free(w->check.beside[--w->check.beside_count].memory);
    keep_memory(w->check.memory, w->before, request);
    keep_counters(request->function, w->check.counters, w->counters);
    if (w->timeline) trace_end(w->timeline, &w->launch, driver.launches, trace);
    if (w->worksheet) worksheet_end(w->worksheet, driver.launches, sheet);
    if (w->launch.grid_workspace) mem_free(w->launch.grid_workspace);
    print_keep(w->launch.printed, w->launch.printed_bytes);
}

int launch_execute(struct CUctx_st *context, const struct launch_request *request,
                   struct running *running)
{
    const struct settings *settings = &driver.settings;
    const bool syncs = request->function->kernel->global_sync;
    const bool others = syncs && ipc_shares(); /* processes */
    struct watched w = {.report = NULL};
    struct launch *l = &w.launch;
    struct repeat repeat = {.kept = NULL};
    enum verdict verdict;
    int result;

    /* What others write is not compared. */
    if (!running && !others && beside_alone()) repeat_begin(&repeat, request);
    if (repeat.skip) return context_take(context, report_repeated(request, &repeat));
    fill_launch(l, request);
    l->outside = running || others ? look_outside : NULL;
    l->outside_context = running;
    if (request->cooperative) {
        if (mem_alloc(GRID_WORKSPACE, &l->grid_workspace)) return no_memory(&repeat);
        memset((void *)(uintptr_t)l->grid_workspace, 0, GRID_WORKSPACE);
    }
    w.report = report_new(l->kernel->entry->name, ++driver.launches);
    if (!w.report) return no_memory(&repeat);
    if (settings->explore) explore_before(l, settings->explore, w.report);
    if (settings->advise)
        advise_before(l, settings->advise, running || request->overlaps, w.report);
    watch_begin(&w, request);
    launch_run(l);
    result = replay_after(w.replay, l, w.report);
    watch_end(&w, request);
    repeat_ran(&repeat, w.report, !result && !l->printed_bytes,
               !settings->check_level || w.check.reads_back || syncs);
    verdict = report_end(w.report);
    if (settings->strict && verdict == VERDICT_ERROR) context->strict_fault = HEWN_CU_LAUNCH_FAILED;
    return context_take(context, result);
}

int launch_describe(struct launch_request *r, void **params, void **extra)
{
    int rc = check_plain(r);
    return rc ? rc : take_params(r, params, extra);
}

/*
 * `queued`: the launch has not begun. Where one that has begun is not over, it waits for the host or for another stream,
 * which may be the one that waits for the event: so where the event comes early, it is recorded at once.
 */
static int record_launch(const struct shape *shape, struct CUstream_st *s, bool queued)
{
    struct CUevent_st *event = handle_get(shape->event, HANDLE_EVENT);
    const struct kernel *k = shape->request.function->kernel;
    bool early = shape->event_at_begin;

    if (!event) return 0;
    for (uint32_t i = 0; i < k->insn_count; i++)
        early |= k->insns[i].is.class == INSN_GRID && k->insns[i].is.waits != WAITS_GRID;
    if (!s->capture && (queued || (!early && deferred_before(s)))) return deferred_record(s, event);
    return event_record(event, s);
}

static int launch_on(struct call *call, hewn_cu_stream stream, struct shape *shape, void **params,
                     void **extra)
{
    struct CUstream_st *s = stream_named(call->context, stream);
    struct work work = {.kind = WORK_LAUNCH};
    const struct CUctx_st *home;
    bool queued;
    int rc;

    if (!s) return HEWN_CU_INVALID_HANDLE;
    /* A kernel belongs to its module's context (interpretation: the handle is none of the stream's). */
    home = shape->request.function->module->context;
    if (home && home != s->context) return HEWN_CU_INVALID_HANDLE;
    shape->request.sm_count = s->sm_count;
    rc = check_plain(&shape->request);
    if (!rc) rc = launch_settle(&shape->request);
    if (!rc) rc = check_preferred(shape);
    if (!rc) rc = take_params(&shape->request, params, extra);
    if (rc) return rc;
    shape->request.stream = s;
    work.launch = shape->request;
    queued = deferred_before(s);
    rc = stream_submit(s, &work);
    return rc || !shape->event ? rc : record_launch(shape, s, queued);
}

int cuLaunchKernelEx(const hewn_cu_launch_config *config, hewn_cu_function function, void **params,
                     void **extra)
{
    struct call call CALL_SCOPE;
    struct shape shape = {0};
    int rc = 0;

    if (call_enter(&call, CALL_PLAIN | SHOWS_PRINTED)) return call.rc;
    if (!config || (config->attribute_count && !config->attributes)) return HEWN_CU_INVALID_VALUE;
    shape.request =
        (struct launch_request){.function = handle_get(function, HANDLE_FUNCTION),
                                .grid = {config->grid_x, config->grid_y, config->grid_z},
                                .block = {config->block_x, config->block_y, config->block_z},
                                .dynamic_shared = config->shared_bytes};
    if (!shape.request.function) return HEWN_CU_INVALID_HANDLE;
    for (unsigned i = 0; i < config->attribute_count && !rc; i++)
        rc = take_attribute(&shape, &config->attributes[i]);
    return rc ? rc : launch_on(&call, config->stream, &shape, params, extra);
}

int cuLaunchKernel(hewn_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   hewn_cu_stream stream, void **params, void **extra)
{
    const hewn_cu_launch_config config = {.grid_x = grid_x,
                                          .grid_y = grid_y,
                                          .grid_z = grid_z,
                                          .block_x = block_x,
                                          .block_y = block_y,
                                          .block_z = block_z,
                                          .shared_bytes = shared_bytes,
                                          .stream = stream};
    return cuLaunchKernelEx(&config, function, params, extra);
}

int cuLaunchCooperativeKernel(hewn_cu_function function, unsigned grid_x, unsigned grid_y,
                              unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, hewn_cu_stream stream, void **params)
{
    hewn_cu_launch_attribute cooperative = {.id = HEWN_CU_LAUNCH_COOPERATIVE, .value.flag = 1};
    const hewn_cu_launch_config config = {.grid_x = grid_x,
                                          .grid_y = grid_y,
                                          .grid_z = grid_z,
                                          .block_x = block_x,
                                          .block_y = block_y,
                                          .block_z = block_z,
                                          .shared_bytes = shared_bytes,
                                          .stream = stream,
                                          .attributes = &cooperative,
                                          .attribute_count = 1};
    return cuLaunchKernelEx(&config, function, params, NULL);
}

int cuLaunchHostFunc(hewn_cu_stream stream, void (*function)(void *user), void *user)
{
    struct call call CALL_SCOPE;
    struct CUstream_st *s;
    struct work work = {.kind = WORK_HOST};

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    s = stream_named(call.context, stream);
    if (!s) return HEWN_CU_INVALID_HANDLE;
    if (!function) return HEWN_CU_INVALID_VALUE;
    work.host.function = function;
    work.host.user = user;
    return stream_submit(s, &work);
}
