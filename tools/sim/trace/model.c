/* The cycle model: model.h. */
#include "trace/model.h"

#include "machine/exec.h"

#include <stdlib.h>

/*
 * What a part takes, in SM cycles; rates of the chip in bytes a microsecond, for L2 and memory have
 * clocks of their own.
 *
 * Tensor cores: the operations bring their own cycles (op_tcgen05_mma.c, op_tcgen05_cp.c, op_wgmma.c). H200: measured
 * by tests/bench/rates.c on an H200 (driver 580.159.04), its clock as nvidia-smi shows it during large
 * products; light or short kernels run at up to 1980 MHz instead. Blackwell: cycles and latency of the
 * tensor core from published microbenchmarks, device memory by the data sheet. Its clock from published
 * traces of two products of 4096^3 on a B200 (gau-nernst/learn-cuda at 1454f8b7, 02e_matmul_sm100,
 * trace_v5 and trace_v6.json.gz): a step along K of 64 with M = N = 256 over a pair, 512 cycles, takes 338 and
 * 328 ns there, medians over all tiles (1514 and 1561 MHz; 278 ns, 1843 MHz, where half of the SMs have
 * nothing left to do). What has no source there is taken from Hopper. tests/bench/model.sh holds the whole
 * against kernels whose times were measured, here and elsewhere.
 *
 * Instructions and pipes: bind_mods.c, resolve_work. Loads and stores: a line of 128 bytes a cycle and SM, the width of shared
 * memory and L1 (CUDA C++ Programming Guide). None of these was fitted. Fitted to the rows "fit" of tests/others/model.txt, and
 * frozen before a row of its hold-out had run: a B200's l2_rate and load_memory, to products of TIRx (bf16 1024^3, 2048^3, fp8
 * 4096 x 576 x 7168 and x 32768 x 512, nvfp4 1024^3, 4096^3). What goes out of an SM crosses the chip beside what comes in: with one
 * queue for both, no rate fits these rows. launch_us: what the model lacked of short products, 1024^3 and 2048^3 (tests/BENCH.md,
 * launches of a graph) on an H200; on a B200 three kernels of 5 to 7 and 20 us. There it stands in for caches full of unwritten data
 * as well. One clock for all kinds of work: no source gives one for fp8, fp4 or attention.
 */
struct part {
    double clock_mhz;              /* held under a matrix load */
    double load_l2, load_memory;   /* a copy's latency besides its bytes */
    double copy_bytes;             /* a cycle, of an SM's copy engine */
    double l2_rate, memory_rate;   /* the whole chip */
    double store_read, store_done; /* of a copy out of shared memory: source read; written */
    double tensor_latency; /* behind the last cycle of an MMA, until its result can be used */
    double cta_start;      /* from a free SM to a CTA's first instruction */
    double launch_us;      /* of a launch's time, before its first CTA and behind its last */
};

static const struct part hopper = {.clock_mhz = 1545,
                                   .load_l2 = 310,
                                   .load_memory = 845,
                                   .copy_bytes = 95.5,
                                   .l2_rate = 9.1e6,
                                   .memory_rate = 4.6e6,
                                   .store_read = 200,
                                   .store_done = 500,
                                   .tensor_latency = 67,
                                   .cta_start = 800,
                                   .launch_us = 0.7};
static const struct part blackwell = {.clock_mhz = 1538,
                                      .load_l2 = 310,
                                      .load_memory = 1100,
                                      .copy_bytes = 95.5,
                                      .l2_rate = 14e6,
                                      .memory_rate = 7.4e6,
                                      .store_read = 200,
                                      .store_done = 500,
                                      .tensor_latency = 136,
                                      .cta_start = 800,
                                      .launch_us = 1.8};

enum { QUARTERS = 4, CHUNK = 32 /* instructions between which other warps get a turn */ };
static const double CYCLES_AN_INSTRUCTION = 2.0; /* of one warp alone: dependences */
static const double WAKE = 25.0;   /* from a phase's completion to the waiter's next instruction */
static const double ARRIVE = 10.0; /* from an arrival's issue to its effect */
static const double ISSUE = 10.0;  /* from an operation's issue to its unit */
static const double LINE_CYCLES = 1.0;   /* of the SM's load and store unit */
static const double SECTOR_BYTES = 32.0; /* what L2 takes at least */

static const char *const gap_texts[] = {
#define X(name, text) text,
    GAPS(X)
#undef X
};
static const char *const unit_texts[] = {
#define X(name, text) text,
    UNITS(X)
#undef X
};

const char *gap_text(enum gap gap)
{
    return gap_texts[gap];
}
const char *unit_text(enum unit unit)
{
    return unit_texts[unit];
}

struct unit_of_sm {
    double tensor[QUARTERS],
        tensor_done[QUARTERS];        /* free from; results of all before usable from */
    double copy_in, copy_out, access; /* access: loads and stores */
    double pipe[QUARTERS][PIPES];
    double used; /* end of its last CTA */
};

/* SMs that a cluster occupies together, and how many clusters they hold now. */
struct sm_set {
    uint32_t held;
};

struct run {
    struct trace_warp *warp;
    struct record *record;
    uint32_t of;                       /* number of its record */
    uint32_t item;                     /* the next */
    struct pipe_work left;             /* of what lies ahead of it */
    uint32_t lines_left, sectors_left; /* likewise */
    int32_t drained[QUEUES]; /* first operation that may not have been over at its last wait */
    uint32_t drained_count[QUEUES];
    struct unit_of_sm *sm;
    int32_t next_waiter; /* of the same phase */
    double time;
    double waited_until; /* end of its last wait, and what that was for */
    uint8_t waited_for;  /* enum gap */
    bool multiplied;     /* has issued an MMA */
};

struct cluster_run {
    uint32_t record;
    int32_t cta[CLUSTER_CTAS];
    uint32_t cta_count, warps_left;
    uint32_t set;
};

struct event_at {
    double time;
    uint32_t order; /* equal times: first come first served */
    uint32_t run;
};

struct model {
    const struct launch *launch;
    const struct part *part;
    struct run *runs;
    uint32_t run_count;
    uint32_t *first_run; /* of each record */
    int32_t **waiters;   /* of each record's phases: first run */
    struct record *const *records;
    uint32_t record_count;
    struct cluster_run *clusters;
    uint32_t cluster_count, next_cluster, cluster_size;
    struct sm_set *sets;
    uint32_t set_count, residency;
    struct unit_of_sm *sms;
    struct event_at *heap;
    uint32_t heap_count, order;
    uint64_t *fetched; /* hash set of places loaded before */
    size_t fetched_mask;
    double l2, l2_out, memory; /* free from; l2_out: writes, which cross the chip the other way */
    double end;
    struct model_result result;
};

/* ---- the queue of warps ---- */

static bool sooner(const struct event_at *a, const struct event_at *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void push(struct model *m, uint32_t run, double time)
{
    struct event_at e = {time, m->order++, run};
    uint32_t at = m->heap_count++;
    while (at && sooner(&e, &m->heap[(at - 1) / 2])) {
        m->heap[at] = m->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    m->heap[at] = e;
}

static struct event_at pop(struct model *m)
{
    struct event_at top = m->heap[0], last = m->heap[--m->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= m->heap_count) break;
        if (child + 1 < m->heap_count && sooner(&m->heap[child + 1], &m->heap[child])) child++;
        if (!sooner(&m->heap[child], &last)) break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    m->heap[at] = last;
    return top;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* A request of `cycles` at a unit that serves one after the other; returns its end. */
static double serve(double *free_from, double at, double cycles)
{
    *free_from = later(*free_from, at) + cycles;
    return *free_from;
}

/* ---- operations ---- */

/* Whether bytes from there were loaded before; they count as loaded from now on. */
static bool fetched_before(struct model *m, uint64_t where)
{
    uint64_t key = where | 1;
    size_t i = (size_t)(where * 0x9E3779B97F4A7C15ULL >> 20) & m->fetched_mask;
    while (m->fetched[i] && m->fetched[i] != key) i = (i + 1) & m->fetched_mask;
    if (m->fetched[i]) return true;
    m->fetched[i] = key;
    return false;
}

static void run_load(struct model *m, struct run *r, struct trace_op *op)
{
    const struct part *p = m->part;
    double bytes = op->cost.bytes;
    double l2_bytes = p->l2_rate / p->clock_mhz, memory_bytes = p->memory_rate / p->clock_mhz;
    double fetch = op->cost.shared_by > 1 ? bytes / op->cost.shared_by : bytes;
    bool cached = fetched_before(m, op->cost.where);
    double in = serve(&r->sm->copy_in, op->issued + ISSUE, bytes / p->copy_bytes);
    double l2 = serve(&m->l2, op->issued + ISSUE, fetch / l2_bytes);
    op->begin = op->issued;
    op->done = later(in, l2) + p->load_l2;
    m->result.busy[UNIT_COPY] += bytes / p->copy_bytes;
    m->result.busy[UNIT_L2] += fetch / l2_bytes;
    if (!cached) {
        double memory = serve(&m->memory, op->issued + ISSUE, fetch / memory_bytes);
        op->done = later(op->done, later(memory, in) + p->load_memory);
        m->result.busy[UNIT_MEMORY] += fetch / memory_bytes;
    }
    op->read = op->done;
}

static void run_store(struct model *m, struct run *r, struct trace_op *op)
{
    const struct part *p = m->part;
    double bytes = op->cost.bytes, l2_bytes = p->l2_rate / p->clock_mhz;
    double out = serve(&r->sm->copy_out, op->issued + ISSUE, bytes / p->copy_bytes);
    op->begin = op->issued;
    op->read = out + p->store_read;
    op->done = later(out, serve(&m->l2_out, op->issued + ISSUE, bytes / l2_bytes)) + p->store_done;
    m->result.busy[UNIT_COPY] += bytes / p->copy_bytes;
    m->result.busy[UNIT_L2] += bytes / l2_bytes;
}

/* Where the tensor core's time before this operation went. */
static enum gap gap_before(const struct run *r, double idle_from)
{
    if (!r->multiplied) return GAP_FILL;
    return r->waited_until > idle_from ? (enum gap)r->waited_for : GAP_ISSUE;
}

static void run_tensor(struct model *m, struct run *r, struct trace_op *op)
{
    bool quarter = queue_of_op(op) == COMMIT_WGMMA; /* its warp's own; tcgen05: the SM's, whole */
    bool pair = op->in->is.pair;                    /* ... and its peer's, in step with it */
    uint32_t q = quarter ? r->warp->id % QUARTERS : 0;
    double share = quarter ? 1.0 / QUARTERS : pair ? 2.0 : 1.0;
    double *unit = &r->sm->tensor[q], *done = &r->sm->tensor_done[q];
    op->begin = later(op->issued + ISSUE, *unit);
    if (op->kind == ASYNC_MMA) {
        m->result.gaps[gap_before(r, *unit)] += (op->begin - *unit) * share;
        m->result.busy[UNIT_TENSOR] += op->cost.cycles * share;
        r->multiplied = true;
    }
    if (op->kind == ASYNC_COMMIT) {
        op->done = later(*done, op->begin) + ARRIVE;
    } else {
        *unit = op->begin + op->cost.cycles;
        op->done = *done = later(*done, *unit + m->part->tensor_latency);
    }
    op->read = op->done;
}

static void run_op(struct model *m, struct run *r, struct trace_op *op)
{
    switch (op->kind) {
    case ASYNC_LOAD:
    case ASYNC_CP_ASYNC: run_load(m, r, op); break;
    case ASYNC_STORE: run_store(m, r, op); break;
    case ASYNC_MMA:
    case ASYNC_TENSOR_COPY:
    case ASYNC_COMMIT: run_tensor(m, r, op); break;
    case ASYNC_REMOTE:
        op->begin = op->issued;
        op->read = op->done = op->issued + 200;
        break;
    default: /* tensor memory: a column a cycle behind some latency */
        op->begin = op->issued;
        op->read = op->done = op->issued + ISSUE + 14 + op->cost.cycles;
        break;
    }
}

/* ---- phases ---- */

static enum gap blame(const struct record *r, const struct trace_phase *p)
{
    if (p->by_op == TRACE_NONE) return GAP_WARPS;
    switch (r->ops[p->by_op].kind) {
    case ASYNC_LOAD:
    case ASYNC_CP_ASYNC:
    case ASYNC_REMOTE: return GAP_LOAD;
    default: return GAP_WARPS;
    }
}

static void begin_item(struct run *r)
{
    const struct trace_item *item = &r->warp->items[r->item];
    r->left = item->work;
    r->lines_left = item->lines;
    r->sectors_left = item->sectors;
}

static bool next_item(struct run *r)
{
    if (++r->item >= r->warp->item_count) return false;
    begin_item(r);
    return true;
}

static void wait_over(struct model *m, struct run *r, const struct trace_phase *p)
{
    struct trace_item *item = &r->warp->items[r->item];
    item->end = later(item->begin, p->at + WAKE);
    r->waited_until = item->end;
    r->waited_for = (uint8_t)blame(r->record, p);
    r->time = item->end;
    /* Of a launch that failed the wait may be the last that is known of the warp. */
    if (next_item(r)) push(m, (uint32_t)(r - m->runs), r->time);
}

/* An arrival or delivery; the last wakes those that wait. */
static void phase_signal(struct model *m, uint32_t record, int32_t phase, double at, int32_t op,
                         int32_t warp)
{
    struct trace_phase *p = &m->records[record]->phases[phase];
    int32_t *first = &m->waiters[record][phase];
    if (!p->missing) return;
    if (at >= p->at) {
        p->at = at;
        p->by_op = op;
        p->by_warp = warp;
    }
    if (--p->missing) return;
    while (*first != TRACE_NONE) {
        struct run *r = &m->runs[*first];
        *first = r->next_waiter;
        wait_over(m, r, p);
    }
}

/* ---- warps ---- */

static void issue(struct model *m, struct run *r, struct trace_item *item)
{
    struct trace_op *op = &r->record->ops[item->ref];
    op->issued = r->time;
    run_op(m, r, op);
    for (int32_t s = op->signals; s != TRACE_NONE; s = r->record->signals[s].next) {
        phase_signal(m, r->of, r->record->signals[s].phase, op->done, item->ref, TRACE_NONE);
    }
}

static void drain(struct run *r, struct trace_item *item)
{
    const int q = item->queue;
    enum async_kind kind = ASYNC_STORE;
    int32_t at;
    if (!r->drained_count[q]) r->drained[q] = r->warp->first_op[q];
    at = r->drained[q];
    for (uint32_t n = r->drained_count[q]; n < (uint32_t)item->ref && at != TRACE_NONE; n++) {
        const struct trace_op *op = &r->record->ops[at];
        double over = item->read_only ? op->read : op->done;
        if (op->done <= r->time && at == r->drained[q]) {
            r->drained[q] = op->next;
            r->drained_count[q]++;
        }
        if (over > item->end) {
            item->end = over;
            kind = (enum async_kind)op->kind;
        }
        at = op->next;
    }
    if (item->end <= r->time) return;
    r->time = r->waited_until = item->end;
    r->waited_for = kind == ASYNC_CP_ASYNC ? GAP_LOAD : kind == ASYNC_MMA ? GAP_ISSUE : GAP_WARPS;
}

static void cluster_ended(struct model *m, struct run *r, double at);

/* The warp's next item, whose instructions lie behind it now. False: the warp waits or is over. */
static bool step(struct model *m, struct run *r)
{
    struct trace_item *item = &r->warp->items[r->item];
    item->begin = item->end = r->time;
    switch (item->kind) {
    case ITEM_ISSUE: issue(m, r, item); break;
    case ITEM_ARRIVE:
        phase_signal(m, r->of, item->ref, r->time + ARRIVE, TRACE_NONE,
                     (int32_t)(r->warp - r->record->warps));
        break;
    case ITEM_PASS: {
        const struct trace_phase *p;
        if (item->ref == TRACE_NONE) break;
        p = &r->record->phases[item->ref];
        if (p->missing) {
            r->next_waiter = m->waiters[r->of][item->ref];
            m->waiters[r->of][item->ref] = (int32_t)(r - m->runs);
            return false;
        }
        if (p->at + WAKE > r->time) {
            wait_over(m, r, p);
            return false;
        }
        break;
    }
    case ITEM_DRAIN: drain(r, item); break;
    default: cluster_ended(m, r, r->time); return false;
    }
    return next_item(r);
}

/* The share of `left` that falls to `some` of the instructions still ahead. */
static uint32_t portion(uint32_t *left, uint32_t some, uint32_t ahead)
{
    uint32_t n = (uint32_t)((uint64_t)*left * some / ahead);
    *left -= n;
    return n;
}

static const enum unit unit_of_pipe[PIPES] = {[PIPE_ISSUE] = UNIT_ISSUE,
                                              [PIPE_FMA] = UNIT_FMA,
                                              [PIPE_LOGIC] = UNIT_LOGIC,
                                              [PIPE_FUNCTION] = UNIT_FUNCTION};

/* Some instructions: at the rate of the quarter's issue, of its pipes and of the SM's way to memory. Stores go on to L2
 * without the warp. */
static void run_some(struct model *m, struct run *r, uint32_t some)
{
    const uint32_t ahead = r->left.of[PIPE_ISSUE];
    const double lines = portion(&r->lines_left, some, ahead);
    const double bytes = SECTOR_BYTES * portion(&r->sectors_left, some, ahead);
    const double l2_bytes = m->part->l2_rate / m->part->clock_mhz;
    double *pipes = r->sm->pipe[r->warp->id % QUARTERS];
    const double start = later(r->time, pipes[PIPE_ISSUE]);
    r->time = start + some * CYCLES_AN_INSTRUCTION;
    for (int p = PIPES - 1; p >= 0; p--) {
        const double cycles = portion(&r->left.of[p], some, ahead);
        if (cycles <= 0) continue;
        m->result.busy[unit_of_pipe[p]] += cycles / QUARTERS;
        r->time = later(r->time, serve(&pipes[p], start, cycles));
    }
    if (lines > 0) {
        r->time = later(r->time, serve(&r->sm->access, start, lines * LINE_CYCLES));
        m->result.busy[UNIT_ACCESS] += lines * LINE_CYCLES;
    }
    if (bytes > 0) {
        serve(&m->l2_out, start, bytes / l2_bytes);
        m->result.busy[UNIT_L2] += bytes / l2_bytes;
    }
}

/* Runs a warp until another's turn comes before its own next. */
static void run_warp(struct model *m, struct run *r)
{
    for (;;) {
        uint32_t some = r->left.of[PIPE_ISSUE] < CHUNK ? r->left.of[PIPE_ISSUE] : CHUNK;
        if (some) run_some(m, r, some);
        if (m->heap_count && m->heap[0].time < r->time) {
            push(m, (uint32_t)(r - m->runs), r->time);
            return;
        }
        if (!r->left.of[PIPE_ISSUE] && !step(m, r)) return;
    }
}

/* ---- clusters ---- */

static void cluster_start(struct model *m, uint32_t set, double at)
{
    struct cluster_run *c = &m->clusters[m->next_cluster++];
    c->set = set;
    m->sets[set].held++;
    for (uint32_t i = 0; i < c->cta_count; i++) {
        const struct trace_cta *cta = &m->records[c->record]->ctas[c->cta[i]];
        for (uint32_t w = 0; w < cta->warp_count; w++) {
            struct run *r = &m->runs[m->first_run[c->record] + (uint32_t)cta->first_warp + w];
            r->sm = &m->sms[set * m->cluster_size + i];
            r->time = at + m->part->cta_start;
            for (int q = 0; q < QUARTERS; q++) {
                /* The wait for this CTA is nobody's: its tensor core counts from here. */
                r->sm->tensor[q] = later(r->sm->tensor[q], m->residency == 1 ? at : 0);
            }
            if (!r->warp->item_count) continue;
            begin_item(r);
            c->warps_left++;
            push(m, (uint32_t)(r - m->runs), r->time);
        }
    }
}

static void cluster_ended(struct model *m, struct run *r, double at)
{
    const struct trace_cta *cta = &r->record->ctas[r->warp->cta];
    struct cluster_run *c = &m->clusters[cta->cluster];
    m->end = later(m->end, at);
    r->sm->used = later(r->sm->used, at);
    if (--c->warps_left) return;
    m->sets[c->set].held--;
    if (m->next_cluster < m->cluster_count) cluster_start(m, c->set, at);
}

/* Breadth first, as the hardware deals them. */
static void first_clusters(struct model *m)
{
    for (uint32_t round = 0; round < m->residency; round++) {
        for (uint32_t s = 0; s < m->set_count && m->next_cluster < m->cluster_count; s++)
            cluster_start(m, s, 0);
    }
}

/* ---- the whole ---- */

static bool collect(struct model *m)
{
    size_t ops = 0;
    uint32_t at = 0, largest = 1;
    for (uint32_t i = 0; i < m->record_count; i++) {
        const struct record *r = m->records[i];
        if (r->exhausted) return false;
        m->run_count += (uint32_t)r->warp_count;
        ops += r->op_count;
        for (size_t c = 0; c < r->cta_count; c++) {
            if (r->ctas[c].cluster >= m->cluster_count) m->cluster_count = r->ctas[c].cluster + 1;
            if (r->ctas[c].rank >= largest) largest = r->ctas[c].rank + 1;
        }
    }
    m->cluster_size = largest;
    m->set_count = m->launch->sm_count / largest ? m->launch->sm_count / largest : 1;
    for (m->fetched_mask = 1024; m->fetched_mask < 2 * ops; m->fetched_mask *= 2) continue;
    m->fetched = calloc(m->fetched_mask--, sizeof *m->fetched);
    m->runs = calloc(m->run_count + 1U, sizeof *m->runs);
    m->heap = calloc(m->run_count + 1U, sizeof *m->heap);
    m->first_run = calloc(m->record_count + 1U, sizeof *m->first_run);
    m->waiters = calloc(m->record_count + 1U, sizeof *m->waiters);
    m->clusters = calloc(m->cluster_count + 1U, sizeof *m->clusters);
    m->sets = calloc(m->set_count, sizeof *m->sets);
    m->sms = calloc((size_t)m->set_count * largest, sizeof *m->sms);
    if (!m->fetched || !m->runs || !m->heap || !m->first_run || !m->waiters || !m->clusters ||
        !m->sets || !m->sms)
        return false;
    for (uint32_t i = 0; i < m->record_count; i++) {
        struct record *r = m->records[i];
        m->first_run[i] = at;
        for (size_t w = 0; w < r->warp_count; w++)
            m->runs[at++] = (struct run){.warp = &r->warps[w], .record = r, .of = i};
        m->waiters[i] = malloc((r->phase_count + 1) * sizeof **m->waiters);
        if (!m->waiters[i]) return false;
        for (size_t p = 0; p < r->phase_count; p++) {
            m->waiters[i][p] = TRACE_NONE;
            r->phases[p].missing = r->phases[p].signals;
            r->phases[p].by_op = r->phases[p].by_warp = TRACE_NONE;
            r->phases[p].at = 0;
        }
        for (size_t c = 0; c < r->cta_count; c++) {
            struct cluster_run *k = &m->clusters[r->ctas[c].cluster];
            k->record = i;
            k->cta[k->cta_count++] = (int32_t)c;
        }
    }
    return true;
}

static void conclude(struct model *m)
{
    struct model_result *r = &m->result;
    double idle, gaps = 0;
    uint32_t used = 0;
    m->end += m->part->launch_us * m->part->clock_mhz;
    for (uint32_t i = 0; i < m->set_count * m->cluster_size; i++) used += m->sms[i].used > 0;
    r->sms = used ? used : 1;
    r->cycles = m->end > 0 ? m->end : 1;
    r->clock_mhz = m->part->clock_mhz;
    idle = r->cycles * r->sms - r->busy[UNIT_TENSOR];
    for (int g = 0; g < GAPS_COUNT; g++) gaps += r->gaps[g];
    /* What lies before a CTA's first MMA and behind its last is in no gap yet. */
    if (idle > gaps) r->gaps[GAP_FILL] += idle - gaps;
    for (int g = 0; g < GAPS_COUNT; g++) r->gaps[g] /= r->cycles * r->sms;
    r->busy[UNIT_TENSOR] /= r->cycles * r->sms;
    r->busy[UNIT_COPY] /= r->cycles * r->sms;
    for (int p = 0; p < PIPES; p++) r->busy[unit_of_pipe[p]] /= r->cycles * r->sms;
    r->busy[UNIT_ACCESS] /= r->cycles * r->sms;
    r->busy[UNIT_L2] /= r->cycles;
    r->busy[UNIT_MEMORY] /= r->cycles;
}

static void model_free(struct model *m)
{
    for (uint32_t i = 0; m->waiters && i < m->record_count; i++) free(m->waiters[i]);
    free(m->fetched);
    free(m->runs);
    free(m->heap);
    free(m->first_run);
    free(m->waiters);
    free(m->clusters);
    free(m->sets);
    free(m->sms);
}

bool model_run(const struct launch *l, struct record *const *records, uint32_t count,
               struct model_result *out)
{
    struct model m = {.launch = l,
                      .part = l->gpu->cc_major >= 10 ? &blackwell : &hopper,
                      .records = records,
                      .record_count = count,
                      .residency = launch_residency(l)};
    bool whole = collect(&m);
    if (whole) {
        first_clusters(&m);
        while (m.heap_count) run_warp(&m, &m.runs[pop(&m).run]);
        conclude(&m);
        *out = m.result;
        for (uint32_t i = 0; i < m.run_count && whole; i++)
            whole = m.runs[i].item + 1 >= m.runs[i].warp->item_count;
    }
    model_free(&m);
    return whole;
}
