/* hewn run at the driver: module, buffers, maps, launches, results. One process, one run. */
#include "run.h"

#include "driver_abi.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER_CALLS(X)                                                                          \
    X(cuModuleLoadDataEx,                                                                        \
      (hewn_cu_module * module, const void *image, unsigned count, int *options, void **values)) \
    X(cuModuleGetFunction, (hewn_cu_function * f, hewn_cu_module module, const char *name))      \
    X(cuMemAlloc_v2, (hewn_cu_deviceptr * address, size_t bytes))                                \
    X(cuMemcpyHtoD_v2, (hewn_cu_deviceptr address, const void *host, size_t bytes))              \
    X(cuMemcpyDtoH_v2, (void *host, hewn_cu_deviceptr address, size_t bytes))                    \
    X(cuCtxSynchronize, (void))                                                                  \
    X(cuTensorMapEncodeIm2col,                                                                   \
      (hewn_tensormap * map, int type, uint32_t rank, hewn_cu_deviceptr address,                 \
       const uint64_t *dim, const uint64_t *stride, const int *lower, const int *upper,          \
       uint32_t channels, uint32_t pixels, const uint32_t *step, int interleave, int swizzle,    \
       int l2, int oob))

struct session {
    struct run *run;
    struct run_outcome *out;
    hewn_driver *driver;
    hewn_context *context;
    hewn_device_info device;
    hewn_cu_module module;
#define X(name, parameters) int(*name) parameters;
    DRIVER_CALLS(X)
#undef X
};

/* ---- words for failures: the outcome keeps them ---- */

__attribute__((format(printf, 3, 4))) static int refuse(struct session *s, int result,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->out->message, sizeof s->out->message, format, args);
    va_end(args);
    s->out->result = result;
    return -1;
}

static int refuse_driver(struct session *s, int result, const char *what)
{
    return refuse(s, result, "%s: %s (%d)", what, cli_cuda_error(s->driver, result), result);
}

/* ---- opening ---- */

static int open_session(struct session *s, bool quiet)
{
    hewn_error err = {0};
    s->driver = cli_open_driver(quiet ? NULL : stdout);
    if (!s->driver) return refuse(s, 0, "no driver");
    s->out->simulated = hewn_driver_symbol(s->driver, "hewn_sim_version") != NULL;
    s->device.struct_size = sizeof s->device;
    if (hewn_context_attach_primary(s->driver, 0, &s->context, &err) ||
        hewn_context_describe_device(s->context, &s->device, &err))
        return refuse(s, 0, "%s", err.message);
#define X(name, parameters) \
    if (!cli_symbol(s->driver, #name, &s->name)) return refuse(s, 0, "the driver lacks " #name);
    DRIVER_CALLS(X)
#undef X
    return 0;
}

static int load(struct session *s)
{
    char log[2048] = "", target[RUN_NAME];
    int options[] = {HEWN_CU_JIT_ERROR_LOG_BUFFER, HEWN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES}, rc;
    void *values[2] = {log, NULL};
    uintptr_t size = sizeof log;
    memcpy(&values[1], &size, sizeof size);
    char *named = s->out->simulated ? run_named_text(s->run) : NULL;
    rc = s->cuModuleLoadDataEx(&s->module, named ? named : s->run->text, 2, options, values);
    free(named);
    if (!rc) return 0;
    log[strcspn(log, "\n")] = '\0';
    if (run_target(s->run->text, target) &&
        !hewn_target_runs_on(target, s->device.cc_major, s->device.cc_minor))
        return refuse(s, rc,
                      "%s is for target %s; %s has compute capability %d.%d, which runs other "
                      "targets: %s (%d)",
                      s->run->path, target, s->device.name, s->device.cc_major, s->device.cc_minor,
                      cli_cuda_error(s->driver, rc), rc);
    return refuse(s, rc, "%s: %s (%d)%s%s", s->run->path, cli_cuda_error(s->driver, rc), rc,
                  *log ? ": " : "", log);
}

/* ---- memory ---- */

static int make_buffer(struct session *s, struct run_buffer *b)
{
    size_t bytes = b->count * run_dtypes[b->dtype].bytes;
    hewn_cu_deviceptr at;
    int rc;
    b->start = malloc(bytes);
    if (!b->start) return refuse(s, 0, "%s: no memory for %zu bytes", b->name, bytes);
    if (run_fill(s->run, b, &b->init, b->start))
        return refuse(s, 0, "%s: its contents cannot be made", b->name);
    rc = s->cuMemAlloc_v2(&at, bytes);
    if (!rc) rc = s->cuMemcpyHtoD_v2(at, b->start, bytes);
    b->device = at;
    return rc ? refuse_driver(s, rc, b->name) : 0;
}

static int encode_im2col(struct session *s, const struct run_map *m, hewn_cu_deviceptr address,
                         hewn_tensormap *out)
{
    uint32_t ones[RUN_RANK];
    int rc;
    for (int i = 0; i < RUN_RANK; i++) ones[i] = m->step[i] ? m->step[i] : 1;
    rc = s->cuTensorMapEncodeIm2col(out, m->tm_dtype, (uint32_t)m->rank, address, m->dim, m->stride,
                                    m->lower, m->upper, m->channels, m->pixels, ones, m->interleave,
                                    m->swizzle, m->l2, m->oob);
    return rc ? refuse_driver(s, rc, m->name) : 0;
}

static int make_map(struct session *s, struct run_map *m)
{
    hewn_tensormap_desc d = {.struct_size = sizeof d,
                             .address = s->run->buffer[m->buffer].device + m->offset,
                             .dtype = m->tm_dtype,
                             .rank = m->rank,
                             .interleave = m->interleave,
                             .swizzle = m->swizzle,
                             .l2 = m->l2,
                             .oob = m->oob};
    hewn_tensormap aligned; /* the run's own lies where calloc put it */
    hewn_error err = {0};
    hewn_cu_deviceptr at;
    int rc;
    memcpy(d.dim, m->dim, sizeof d.dim);
    memcpy(d.stride, m->stride, sizeof d.stride);
    memcpy(d.box, m->box, sizeof d.box);
    memcpy(d.element_stride, m->step, sizeof d.element_stride);
    if (m->im2col) {
        if (encode_im2col(s, m, d.address, &aligned)) return -1;
    } else if (hewn_tensormap_encode(s->context, &d, m->name, &aligned, &err)) {
        return refuse(s, HEWN_CU_INVALID_VALUE, "%s", err.message);
    }
    memcpy(m->encoded, &aligned, sizeof aligned);
    rc = s->cuMemAlloc_v2(&at, sizeof m->encoded);
    if (!rc) rc = s->cuMemcpyHtoD_v2(at, m->encoded, sizeof m->encoded);
    m->device = at;
    return rc ? refuse_driver(s, rc, m->name) : 0;
}

/* ---- launching ---- */

/* Where the values of one launch lie until the driver has copied them. */
struct arguments {
    _Alignas(64) unsigned char bytes[RUN_PARAMS][128];
    void *at[RUN_PARAMS];
};

static int set_number(struct session *s, const struct run_param *p, const char *text, void *out)
{
    char *end;
    if (p->type[0] == 'f') {
        double d = strtod(text, &end);
        float f = (float)d;
        if (p->bytes == 8)
            memcpy(out, &d, sizeof d);
        else
            memcpy(out, &f, sizeof f);
    } else {
        long long v = *text == '-' ? strtoll(text, &end, 0) : (long long)strtoull(text, &end, 0);
        memcpy(out, &v, p->bytes);
    }
    if (end == text || *end)
        return refuse(s, 0, "params: '%s' for %s is no buffer, no map and no number of type .%s",
                      text, p->name, p->type);
    return 0;
}

static int set_param(struct session *s, const struct run_param *p, const char *text, void *out);

/* A parameter of more than 8 bytes as 8-byte words with colons between them; the rest is zeros. */
static int set_words(struct session *s, const struct run_param *p, const char *text,
                     unsigned char *out)
{
    const struct run_param word = {.type = "u64", .bytes = 8};
    const char *at = text;
    memset(out, 0, p->bytes);
    for (uint32_t bytes = 0; at; bytes += word.bytes) {
        struct run_param one = word;
        char value[RUN_NAME];
        size_t length = strcspn(at, ":");
        if (bytes + word.bytes > p->bytes)
            return refuse(s, 0, "params: '%s' has more words than the %u bytes of %s", text,
                          p->bytes, p->name);
        snprintf(one.name, sizeof one.name, "%s", p->name);
        snprintf(value, sizeof value, "%.*s", (int)length, at);
        if (set_param(s, &one, value, out + bytes)) return -1;
        at = at[length] ? at + length + 1 : NULL;
    }
    return 0;
}

static int set_param(struct session *s, const struct run_param *p, const char *text, void *out)
{
    const struct run *r = s->run;
    const char *plus = strchr(text, '+');
    int map = run_map_named(r, text), buffer;
    char name[RUN_NAME];
    if (p->bytes > 8 && strchr(text, ':')) return set_words(s, p, text, out);
    uint64_t value;
    snprintf(name, sizeof name, "%.*s", plus ? (int)(plus - text) : RUN_NAME - 1, text);
    buffer = run_buffer_named(r, name);
    if (map >= 0 && p->bytes == sizeof r->map[map].encoded) {
        memcpy(out, r->map[map].encoded, sizeof r->map[map].encoded);
        return 0;
    }
    if (map < 0 && buffer < 0) {
        if (p->bytes <= 8) return set_number(s, p, text, out);
        return refuse(s, 0, "params: '%s' is no map, and %s has %u bytes", text, p->name, p->bytes);
    }
    if (p->bytes != 8)
        return refuse(s, 0, "params: %s is an address, 8 bytes; parameter %s has %u", text, p->name,
                      p->bytes);
    value = map >= 0 ? r->map[map].device
                     : r->buffer[buffer].device + (plus ? strtoull(plus + 1, NULL, 0) : 0);
    memcpy(out, &value, sizeof value);
    return 0;
}

static int set_params(struct session *s, const struct run_launch *l, const char *entry,
                      const struct run_param *params, int count, struct arguments *a)
{
    if ((int)l->param_count != count)
        return refuse(s, 0, "params: %u are given, entry %s has %d", l->param_count, entry, count);
    for (int i = 0; i < count; i++) {
        if (params[i].bytes > sizeof a->bytes[i])
            return refuse(s, 0, "params: %s has %u bytes, more than %zu", params[i].name,
                          params[i].bytes, sizeof a->bytes[i]);
        a->at[i] = a->bytes[i];
        if (set_param(s, &params[i], l->param[i], a->bytes[i])) return -1;
    }
    return 0;
}

static int enqueue(struct session *s, const struct run_launch *l)
{
    static struct arguments a;
    struct run_param params[RUN_PARAMS];
    char entry[RUN_NAME];
    hewn_launch_desc d = {.struct_size = sizeof d,
                          .dynamic_shared = l->shared,
                          .cooperative = l->cooperative,
                          .programmatic = l->programmatic};
    hewn_cu_function f;
    hewn_error err = {0}, limit = {0};
    int count = run_entry(s->run, l->entry, entry, params), rc;
    if (count < 0) return refuse(s, 0, "no such entry");
    rc = s->cuModuleGetFunction(&f, s->module, entry);
    if (rc) return refuse_driver(s, rc, entry);
    if (set_params(s, l, entry, params, count, &a)) return -1;
    memcpy(d.grid, l->grid, sizeof d.grid);
    memcpy(d.block, l->block, sizeof d.block);
    memcpy(d.cluster, l->cluster, sizeof d.cluster);
    /* Too much is asked for all the same: the simulator then has a finding for it. */
    if (l->shared)
        (void)hewn_function_allow_shared(s->context, (hewn_function)f, l->shared, &limit);
    if (hewn_function_launch(s->context, (hewn_function)f, &d, a.at, &err))
        return refuse(s, HEWN_CU_INVALID_VALUE, "%s: %s", entry,
                      limit.message[0] ? limit.message : err.message);
    return 0;
}

/* ---- results ---- */

static int fetch(struct session *s, const struct run_output *o)
{
    const struct run_buffer *b = &s->run->buffer[o->buffer];
    size_t bytes = b->count * run_dtypes[b->dtype].bytes;
    void *got = malloc(bytes);
    int rc = got ? s->cuMemcpyDtoH_v2(got, b->device, bytes) : HEWN_CU_OUT_OF_MEMORY;
    if (rc) {
        rc = refuse_driver(s, rc, b->name);
    } else if (o->write) {
        rc = run_write(s->run, o, got);
    } else {
        s->out->compared = true;
        if (run_compare(s->run, o, got)) s->out->wrong = true;
    }
    free(got);
    return rc;
}

/* ---- all of it ---- */

static int steps(struct session *s, bool quiet)
{
    struct run *r = s->run;
    struct run_outcome *out = s->out;
    int rc;
    out->step = STEP_OPEN;
    if (open_session(s, quiet)) return -1;
    out->step = STEP_LOAD;
    if (load(s)) return -1;
    out->step = STEP_MAPS;
    for (int i = 0; i < r->buffers; i++)
        if (make_buffer(s, &r->buffer[i])) return -1;
    for (int i = 0; i < r->maps; i++)
        if (make_map(s, &r->map[i])) return -1;
    out->step = STEP_LAUNCH;
    for (int i = 0; i < r->launches; i++)
        if (enqueue(s, &r->launch[i])) return -1;
    out->step = STEP_SYNC;
    rc = s->cuCtxSynchronize();
    if (rc) return refuse_driver(s, rc, "the launch failed");
    out->step = STEP_RESULTS;
    for (int i = 0; i < r->outputs; i++)
        if (fetch(s, &r->output[i])) return -1;
    out->step = STEP_OVER;
    return 0;
}

void run_execute(struct run *r, bool quiet, struct run_outcome *out)
{
    struct session s = {.run = r, .out = out};
    memset(out, 0, sizeof *out);
    (void)steps(&s, quiet);
    hewn_context_detach(s.context);
    hewn_driver_close(s.driver);
    for (int i = 0; i < r->buffers; i++) {
        free(r->buffer[i].start);
        r->buffer[i].start = NULL;
    }
}
