/*
 * The trace file: trace.h. One event a line, so that a reader can take it line by line.
 *
 *   process  a CTA (the first TIMELINE_CTAS of a launch)
 *   track    a warp, named by its role; the copies, MMAs and tensor-memory accesses of the CTA; each
 *            barrier
 *   slice    cat "run", "issue", "wait" of a warp; "op" of an operation, from its begin to its
 *            completion; "phase" of a barrier, from its first moment to its completion
 * and, a launch, an instant event "launch" whose args say what the model found.
 */
#include "machine/exec.h"
#include "trace/model.h"
#include "decode/names.h"
#include "trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TIMELINE_CTAS = 8,
    PROCESSES_A_LAUNCH = 1000, /* pid = launch * this + CTA */
    TRACK_OPS = 100,           /* tid of a warp: its number; from here on operations */
    SIDE_BY_SIDE = 8,
    TRACK_BARRIERS = 1000
};

struct trace {
    struct watcher watcher; /* first */
    pthread_mutex_t lock;
    struct record **records;
    uint32_t count, capacity;
};

static struct observer *watch_open(struct watcher *w, struct group *g)
{
    struct trace *t = (struct trace *)w;
    struct record *r = record_new(g), **grown;
    uint32_t capacity;
    if (!r) return NULL;
    pthread_mutex_lock(&t->lock);
    if (t->count == t->capacity) {
        capacity = t->capacity ? 2 * t->capacity : 16;
        grown = realloc(t->records, capacity * sizeof(struct record *));
        if (!grown) {
            pthread_mutex_unlock(&t->lock);
            record_free(r);
            return NULL;
        }
        t->records = grown;
        t->capacity = capacity;
    }
    t->records[t->count++] = r;
    pthread_mutex_unlock(&t->lock);
    return &r->base;
}

struct trace *trace_attach(struct launch *l)
{
    struct trace *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    pthread_mutex_init(&t->lock, NULL);
    t->watcher.open = watch_open;
    launch_watch(l, &t->watcher);
    return t;
}

/* Groups open in any order. */
static int by_group(const void *a, const void *b)
{
    const struct record *const *x = a, *const *y = b;
    uint32_t i = (*x)->index, j = (*y)->index;
    return (i > j) - (i < j);
}

/* ---- writing ---- */

struct writer {
    FILE *out;
    const struct launch *launch;
    const struct record *record;
    uint64_t number;
    double mhz;
    uint32_t pid;
};

static void put_text(FILE *out, const char *s)
{
    putc('"', out);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            fprintf(out, "\\u%04x", (unsigned)(unsigned char)*s);
        else
            putc(*s, out);
    }
    putc('"', out);
}

static void name_track(const struct writer *w, uint32_t tid, const char *name)
{
    fprintf(w->out,
            ",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":",
            w->pid, tid);
    put_text(w->out, name);
    fprintf(w->out,
            "}},\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_sort_index\",\"args\":{"
            "\"sort_index\":%u}}",
            w->pid, tid, tid);
}

static void put_slice(const struct writer *w, uint32_t tid, const char *cat, const char *name,
                      double begin, double end, const struct insn *in)
{
    fprintf(w->out,
            ",\n{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"cat\":\"%s\",\"ts\":%.4f,\"dur\":%.4f,"
            "\"name\":",
            w->pid, tid, cat, begin / w->mhz, (end - begin) / w->mhz);
    put_text(w->out, name);
    if (in) {
        fprintf(w->out, ",\"args\":{\"line\":%u,\"file\":", in->src->pos.line);
        put_text(w->out, w->launch->kernel->module->files[in->src->pos.file]);
        fputs("}", w->out);
    }
    fputs("}", w->out);
}

static const char *barrier_name(const struct writer *w, const struct trace_barrier *b, char *text,
                                size_t size)
{
    if (b->kind == BARRIER_MBAR) return name_shared(w->launch->kernel, b->key, text, size);
    if (b->kind == BARRIER_NAMED)
        snprintf(text, size, "barrier %u", b->key);
    else
        snprintf(text, size, "cluster barrier");
    return text;
}

/* ---- tracks ---- */

static void item_name(const struct writer *w, const struct trace_item *item, char *text,
                      size_t size)
{
    const struct record *r = w->record;
    char name[96];
    switch (item->kind) {
    case ITEM_ISSUE:
        snprintf(text, size, "%s", trace_op_text((enum async_kind)r->ops[item->ref].kind));
        break;
    case ITEM_ARRIVE:
    case ITEM_PASS:
        if (item->ref == TRACE_NONE) {
            snprintf(text, size, "first wait");
            break;
        }
        barrier_name(w, &r->barriers[r->phases[item->ref].barrier], name, sizeof name);
        snprintf(text, size, "%s %s", item->kind == ITEM_PASS ? "wait" : "arrive", name);
        break;
    case ITEM_DRAIN: snprintf(text, size, "wait %s", item->read_only ? "read" : "done"); break;
    default: snprintf(text, size, "exit"); break;
    }
}

static void put_warp(const struct writer *w, const struct trace_warp *t)
{
    char text[128];
    double run = t->item_count ? -1 : 0;
    name_track(w, t->id, name_warp(w->launch->kernel, t->id, text, sizeof text));
    for (uint32_t i = 0; i < t->item_count; i++) {
        const struct trace_item *item = &t->items[i];
        bool wait = item->kind == ITEM_PASS || item->kind == ITEM_DRAIN;
        /* What ran since the last slice, where that is more than the issue itself. */
        if (run >= 0 && item->begin - run > 4)
            put_slice(w, t->id, "run", "run", run, item->begin, NULL);
        run = item->end;
        if (wait && item->end - item->begin < 1) continue;
        item_name(w, item, text, sizeof text);
        put_slice(w, t->id, wait ? "wait" : "issue", text, item->begin,
                  wait ? item->end : item->begin + 1, item->in);
    }
}

/* Operations that overlap lie side by side, on the first track of their kind that is free; wgmma on one for
 * each quarter of the tensor cores. */
static uint32_t side_track(const struct writer *w, const struct trace_op *op, const double *busy)
{
    uint32_t track = 0;
    if (queue_of_op(op) == COMMIT_WGMMA) return w->record->warps[op->warp].id % 4;
    while (track + 1 < SIDE_BY_SIDE && busy[track] > op->begin) track++;
    return track;
}

static void put_ops(const struct writer *w, const struct trace_cta *c)
{
    double busy[ASYNC_KINDS][SIDE_BY_SIDE];
    char name[64];
    memset(busy, 0, sizeof busy);
    for (size_t i = 0; i < w->record->op_count; i++) {
        const struct trace_op *op = &w->record->ops[i];
        const enum async_kind kind = (enum async_kind)op->kind;
        bool tensor = kind == ASYNC_MMA || kind == ASYNC_TENSOR_COPY;
        double end = tensor ? op->begin + op->cost.cycles : op->done;
        uint32_t track, tid;
        if (op->warp < c->first_warp || op->warp >= c->first_warp + (int32_t)c->warp_count ||
            kind == ASYNC_COMMIT)
            continue;
        track = side_track(w, op, busy[kind]);
        tid = TRACK_OPS + (uint32_t)SIDE_BY_SIDE * (uint32_t)kind + track;
        if (busy[kind][track] == 0) {
            snprintf(name, sizeof name, "%s %s", trace_op_track(kind), trace_op_text(kind));
            name_track(w, tid, name);
        }
        busy[kind][track] = end;
        put_slice(w, tid, "op", trace_op_text(kind), op->begin, end, op->in);
    }
}

static void put_barriers(const struct writer *w, const struct trace_cta *c)
{
    char name[96], text[128];
    uint32_t tid = TRACK_BARRIERS;
    for (int32_t b = c->barriers; b != TRACE_NONE; b = w->record->barriers[b].next, tid++) {
        const struct trace_barrier *barrier = &w->record->barriers[b];
        double since = 0;
        name_track(w, tid, barrier_name(w, barrier, name, sizeof name));
        for (int32_t p = barrier->first; p != TRACE_NONE; p = w->record->phases[p].next) {
            const struct trace_phase *phase = &w->record->phases[p];
            if (!phase->signals || phase->missing) continue;
            snprintf(text, sizeof text, "phase %llu", (unsigned long long)phase->number);
            put_slice(w, tid, "phase", text, since, phase->at, NULL);
            since = phase->at;
        }
    }
}

static void put_cta(struct writer *w, const struct trace_cta *c)
{
    w->pid = (uint32_t)(w->number * PROCESSES_A_LAUNCH) + c->linear;
    fprintf(
        w->out,
        ",\n{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"CTA %u of %s, "
        "launch %llu\"}}",
        w->pid, c->linear, w->launch->kernel->entry->name, (unsigned long long)w->number);
    for (uint32_t i = 0; i < c->warp_count; i++)
        put_warp(w, &w->record->warps[(uint32_t)c->first_warp + i]);
    put_ops(w, c);
    put_barriers(w, c);
}

static void put_result(const struct writer *w, const struct model_result *r)
{
    fprintf(
        w->out,
        ",\n{\"ph\":\"i\",\"s\":\"g\",\"pid\":%u,\"tid\":0,\"ts\":0,\"name\":\"launch\",\"args\":{"
        "\"launch\":%llu,\"kernel\":",
        (uint32_t)(w->number * PROCESSES_A_LAUNCH), (unsigned long long)w->number);
    put_text(w->out, w->launch->kernel->entry->name);
    fprintf(w->out, ",\"cycles\":%.0f,\"microseconds\":%.3f,\"sms\":%u,\"clock_mhz\":%.0f",
            r->cycles, r->cycles / r->clock_mhz, r->sms, r->clock_mhz);
    for (int u = 0; u < UNITS_COUNT; u++)
        fprintf(w->out, ",\"busy %s\":%.4f", unit_text((enum unit)u), r->busy[u]);
    for (int g = 0; g < GAPS_COUNT; g++)
        fprintf(w->out, ",\"idle %s\":%.4f", gap_text((enum gap)g), r->gaps[g]);
    fputs("}}", w->out);
}

/* Opens the file behind its last event. */
static FILE *open_behind(const char *path)
{
    static const char head[] =
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,"
        "\"name\":\"process_name\",\"args\":{\"name\":\"hewn\"}}";
    FILE *out = fopen(path, "r+");
    if (out && !fseek(out, -3, SEEK_END)) return out; /* over its "\n]}" */
    if (out) fclose(out);
    out = fopen(path, "w");
    if (out) fputs(head, out);
    return out;
}

static bool write_launch(const struct trace *t, const struct launch *l, uint64_t number,
                         const struct model_result *result, const char *path)
{
    struct writer w = {.launch = l, .number = number, .mhz = result->clock_mhz};
    w.out = open_behind(path);
    if (!w.out) return false;
    put_result(&w, result);
    for (uint32_t i = 0; i < t->count; i++) {
        w.record = t->records[i];
        for (size_t c = 0; c < w.record->cta_count; c++) {
            if (w.record->ctas[c].linear < TIMELINE_CTAS) put_cta(&w, &w.record->ctas[c]);
        }
    }
    fputs("\n]}", w.out);
    return fclose(w.out) == 0;
}

void trace_end(struct trace *t, const struct launch *l, uint64_t number, const char *path)
{
    struct model_result result;
    qsort(t->records, t->count, sizeof *t->records, by_group);
    errno = 0;
    if (!model_run(l, t->records, t->count, &result)) {
        fprintf(stderr, "hewn-sim: HEWN_SIM_TRACE: no timeline of %s, launch %llu: %s\n",
                l->kernel->entry->name, (unsigned long long)number,
                l->result ? "it failed" : "it is too large to record");
    } else if (!write_launch(t, l, number, &result, path)) {
        fprintf(stderr, "hewn-sim: HEWN_SIM_TRACE: %s: %s\n", path, strerror(errno));
    }
    for (uint32_t i = 0; i < t->count; i++) record_free(t->records[i]);
    free(t->records);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
