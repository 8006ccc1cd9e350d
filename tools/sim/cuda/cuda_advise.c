/*
 * hewn check --advise: fences and barriers that a launch does without. One after the other is taken out of the kernel, and
 * the launch runs again, at level 2. It is unneeded where the verdict is still proved, nothing more is found, no more idioms are
 * counted and memory ends the same. What was found unneeded stays out, so all that is told may go together.
 *
 * Orders that were explored do not help: memory is sequentially consistent there, and no fence makes a difference.
 *
 * Not judged: fences of system scope, because nobody here knows who else looks; fence.proxy.alias; wgmma.fence, which the ISA
 * asks for before the first wgmma.mma_async whatever its registers are; what stands right behind mbarrier.init, because the checker
 * does not ask whether the async proxy, or other lanes of the warp, have seen it.
 */
#include "cuda/driver.h"
#include "check/check.h"
#include "explore/images.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECES = 1024 };
#define BYTES_MOST \
    ((uint64_t)64 << 20) /* of memory, which is put back and compared for every run */

/* What was found of a kernel's sites in all its launches so far. */
struct judged {
    const struct kernel *kernel; /* NULL: unused */
    uint32_t insns, launches;
    uint32_t *without; /* by index: launches that do without */
};

enum { KERNELS_KEPT = 64 };
static struct judged kept[KERNELS_KEPT];

/* The kernel's record. A module may have been loaded where another one was. NULL: no room. */
static struct judged *judged_of(const struct kernel *k)
{
    struct judged *free_one = NULL;
    for (uint32_t i = 0; i < KERNELS_KEPT; i++) {
        if (kept[i].kernel == k && kept[i].insns == k->insn_count) return &kept[i];
        if (!free_one && !kept[i].kernel) free_one = &kept[i];
    }
    if (!free_one) return NULL;
    free_one->without = calloc(k->insn_count + 1U, sizeof *free_one->without);
    if (!free_one->without) return NULL;
    free_one->kernel = k;
    free_one->insns = k->insn_count;
    return free_one;
}

struct advise {
    const struct launch *launch;
    struct kernel kernel; /* as the launch's, its instructions `insns` */
    struct insn *insns;
    struct images images;
    struct watcher watcher; /* of the first run */
    struct observer observer;
    bool *reached;  /* by index: instructions of which an event tells */
    bool *excepted; /* … and fences and barriers that follow mbarrier.init */
    bool unfenced[CTA_WARPS],
        unmet[CTA_WARPS];  /* by warp: mbarrier.init, and no proxy fence since; no barrier */
    struct report *whole;  /* of the first run */
    struct judged *judged; /* NULL: not kept */
};

/* ---- an instruction that does nothing ---- */

static enum step nothing(struct warp *w, const struct insn *in, uint32_t mask)
{
    (void)w;
    (void)in;
    (void)mask;
    return STEP_NEXT;
}

static struct insn nothing_for(const struct insn *in)
{
    static const struct op_row row = {.name = "nothing", .mods = "", .args = "", .doc = ""};
    struct insn out = {.fn = nothing, .guard = NO_GUARD, .row = &row, .src = in->src};
    out.is.class = INSN_ALU;
    return out;
}

/* ---- runs ---- */

static void on_event(struct observer *o, const struct event *e)
{
    struct advise *a = (struct advise *)((char *)o - offsetof(struct advise, observer));
    const bool own = e->in >= a->insns && e->in < a->insns + a->kernel.insn_count;
    bool *excepted, *follows;
    if (!own || !e->warp) return;
    a->reached[e->in - a->insns] = true;
    excepted = &a->excepted[e->in - a->insns];
    if (e->kind == EV_MBAR_INIT) a->unfenced[e->warp->id] = a->unmet[e->warp->id] = true;
    follows = e->kind == EV_FENCE            ? &a->unfenced[e->warp->id]
              : e->kind == EV_BARRIER_ARRIVE ? &a->unmet[e->warp->id]
                                             : NULL;
    if (!follows || !*follows) return;
    *excepted = true;
    if (e->kind != EV_FENCE || e->value == FENCE_PROXY_ASYNC) *follows = false;
}

static void ended(struct observer *o, bool completed)
{
    (void)o;
    (void)completed;
}

static void keep_observer(struct observer *o)
{
    (void)o;
}

static struct observer *observer_of(struct watcher *watcher, struct group *g)
{
    struct advise *a = (struct advise *)((char *)watcher - offsetof(struct advise, watcher));
    (void)g;
    a->observer =
        (struct observer){.on_event = on_event, .on_end = ended, .destroy = keep_observer};
    return &a->observer;
}

/* One run of the kernel as it is now, on one host thread, and its report. NULL: no memory. */
static struct report *run(struct advise *a, bool first, int *result)
{
    struct launch l = *a->launch;
    struct check check = {.keeps_memory = false};
    struct report *report = report_new(a->kernel.entry->name, driver.launches);
    if (!report) return NULL;
    l.kernel = &a->kernel;
    l.check_level = 2;
    l.host_threads = 1;
    l.watchers = NULL;
    l.shown = 0;
    images_restore(&a->images);
    check_attach(&check, &l, report);
    a->watcher = (struct watcher){.open = observer_of};
    if (first) launch_watch(&l, &a->watcher);
    *result = launch_run(&l);
    free(l.printed);
    return report;
}

/* ---- sites ---- */

/* A barrier that the threads of a CTA meet at, and nothing else. */
static bool is_barrier(const struct insn *in)
{
    bool list;
    return in->is.class == INSN_BARRIER && in->is.waits == WAITS_BARRIER &&
           in->is.shown == SHOWN_PART && !row_results(in->row, &list);
}

/* What the checker knows all of, as far as one launch goes: see the head of this file. */
static bool is_site(const struct insn *in)
{
    if (is_barrier(in)) return true;
    return in->is.class == INSN_FENCE && in->is.scope != SCOPE_SYS &&
           in->is.engine != ENGINE_WGMMA && in->imm[2] != FENCE_PROXY_ALIAS;
}

static void tell(const struct advise *a, const struct insn *in, struct report *report)
{
    struct finding f = {
        .severity = SEV_ADVICE, .kind = FIND_FENCE_UNNEEDED, .warp = -1, .lane = -1};
    const uint32_t times = a->judged ? ++a->judged->without[in - a->launch->kernel->insns] : 1;
    f.kernel = a->kernel.entry->name;
    finding_at(&f, a->kernel.module, in->src);
    f.group = UINT32_MAX; /* behind those of the run */
    f.seq = (uint64_t)(in - a->launch->kernel->insns);
    (void)snprintf(
        f.message, sizeof f.message,
        "this launch does without: with %s left out, and with it all others that "
        "are told so here, it is proved for every order and leaves the same values. "
        "Other inputs, sizes or loops that run more often may need it. %u of %u launches of "
        "this kernel that were judged so far do without",
        is_barrier(in) ? "this barrier" : "this fence", times, a->judged ? a->judged->launches : 1);
    report_add(report, &f);
}

/* Takes the instruction out; puts it back where the launch then says anything else. False: no memory. */
static bool try_without(struct advise *a, uint32_t at, struct report *report)
{
    const struct insn *in = &a->launch->kernel->insns[at];
    struct report *without;
    int result;
    a->insns[at] = nothing_for(in);
    without = run(a, false, &result);
    if (!without) return false;
    if (!result && report_holds(without) && !report_adds(without, a->whole) &&
        images_same(&a->images))
        tell(a, in, report);
    else
        a->insns[at] = *in;
    report_drop(without);
    return true;
}

/* The launch as it is. False: nothing can be said of what it needs. */
static bool judge_whole(struct advise *a)
{
    int result;
    a->whole = run(a, true, &result);
    if (!a->whole) return false;
    if (!result && report_holds(a->whole)) {
        images_keep(&a->images);
        a->judged = judged_of(a->launch->kernel);
        if (a->judged) a->judged->launches++;
        return true;
    }
    driver_note("%s: its fences are not judged, because the launch is not proved to be right",
                a->kernel.entry->name);
    return false;
}

static bool open_advise(struct advise *a, const struct launch *l)
{
    static struct mem_piece memory[PIECES];
    const size_t count = mem_live(memory, PIECES);
    const uint32_t insns = l->kernel->insn_count;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count && i < PIECES; i++) bytes += memory[i].bytes;
    if (count > PIECES || bytes > BYTES_MOST) {
        driver_note("%s: its fences are not judged: it could change more than %u MiB of memory",
                    l->kernel->entry->name, (unsigned)(BYTES_MOST >> 20));
        return false;
    }
    a->launch = l;
    a->kernel = *l->kernel;
    a->insns = calloc(insns + 1U, sizeof *a->insns);
    a->reached = calloc(insns + 1U, sizeof *a->reached);
    a->excepted = calloc(insns + 1U, sizeof *a->excepted);
    if (!a->insns || !a->reached || !a->excepted || !images_take(&a->images, memory, count))
        return false;
    memcpy(a->insns, l->kernel->insns, insns * sizeof *a->insns);
    a->kernel.insns = a->insns;
    return true;
}

void advise_before(const struct launch *l, uint64_t most, bool beside, struct report *report)
{
    struct advise a = {.launch = l};
    uint64_t runs = 0;
    if (beside) {
        driver_note("%s: its fences are not judged, because other work may run beside it",
                    l->kernel->entry->name);
        return;
    }
    if (open_advise(&a, l) && judge_whole(&a)) {
        for (uint32_t i = 0; i < a.kernel.insn_count; i++) {
            if (!a.reached[i] || a.excepted[i] || !is_site(&a.insns[i])) continue;
            if (runs++ == most) {
                driver_note("%s: %llu of its fences were tried without", l->kernel->entry->name,
                            (unsigned long long)most);
                break;
            }
            if (!try_without(&a, i, report)) break;
        }
    }
    images_free(&a.images);
    report_drop(a.whole);
    free(a.insns);
    free(a.reached);
    free(a.excepted);
}
