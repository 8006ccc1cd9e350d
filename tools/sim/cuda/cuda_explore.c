/* hewn check --explore: the orders of a launch before it runs. */
#include "cuda/driver.h"
#include "check/report.h"
#include "explore/explore.h"
#include "explore/replay.h"
#include "machine/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECES = 1024 };
#define BYTES_MOST \
    ((uint64_t)64 << 20) /* of memory, which is put back and compared for every order */

/* What to do to see it again. */
static void say_again(const struct exploration *x, uint64_t launch, struct finding *f)
{
    enum { WORD_MOST = 500 };
    const size_t at = strlen(f->message), room = sizeof f->message - at;
    char seed[80];
    if (x->seed)
        (void)snprintf(seed, sizeof seed, " So does a run with HEWN_SIM_SEED=%u.",
                       (unsigned)x->seed);
    else
        (void)snprintf(seed, sizeof seed, " None of the seeds 1 to %d comes to the same.",
                       EXPLORE_SEEDS);
    if (strlen(x->schedule) > WORD_MOST)
        (void)snprintf(f->message + at, room, " --replay with the word below takes this order.%s",
                       seed);
    else
        (void)snprintf(f->message + at, room, " --replay %llu:%s takes this order.%s",
                       (unsigned long long)launch, x->schedule, seed);
}

/* An order that goes wrong, as a finding: a hang, or what the first order does not come to. */
static void tell(const struct launch *l, const struct exploration *x, struct report *report)
{
    struct finding f = x->finding;
    if (x->end == EXPLORE_DIFFERS) {
        f = (struct finding){.severity = SEV_ERROR, .kind = FIND_RACE, .warp = -1, .lane = -1};
        f.kernel = l->kernel->entry->name;
        f.instr = "";
        (void)snprintf(
            f.message, sizeof f.message,
            "another order of the warps leaves other values in memory, first at 0x%llx: 0x%x, "
            "where the first order leaves 0x%x.",
            (unsigned long long)x->differs_at, (unsigned)x->other, (unsigned)x->first);
    } else {
        const size_t at = strlen(f.message);
        (void)snprintf(f.message + at, sizeof f.message - at, " in one order of the warps.");
    }
    if (!f.file || !*f.file) {
        f.file = ptx_file(l->kernel->module, l->kernel->entry->pos);
        f.line = f.ptx_line = l->kernel->entry->pos.line;
    }
    say_again(x, driver.launches, &f);
    f.group = UINT32_MAX; /* behind those of the run */
    report_add(report, &f);
    report_replay(report, x->schedule);
}

/* ---- one order again ---- */

struct replay *replay_before(struct launch *l)
{
    const char *quiet = getenv("HEWN_SIM_QUIET");
    struct replay *r;
    if (!driver.settings.replay_launch || driver.settings.replay_launch != driver.launches)
        return NULL;
    r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->told = quiet && !strcmp(quiet, "1") ? NULL : stderr;
    if (r->told)
        fprintf(stderr, "hewn-sim: launch %llu, %s, in the order that HEWN_SIM_REPLAY names:\n",
                (unsigned long long)driver.launches, l->kernel->entry->name);
    replay_attach(r, l, &driver.settings.replay, UINT32_MAX);
    return r;
}

/* Why the launch did not go to its end in the order, as a finding. */
static void tell_strayed(const struct replay *r, const struct launch *l, struct report *report)
{
    struct finding f = {.severity = SEV_ERROR, .kind = FIND_UNSUPPORTED, .warp = -1, .lane = -1};
    f.kernel = l->kernel->entry->name;
    f.file = ptx_file(l->kernel->module, l->kernel->entry->pos);
    f.line = f.ptx_line = l->kernel->entry->pos.line;
    f.instr = "";
    if (r->strayed)
        (void)snprintf(f.message, sizeof f.message,
                       "HEWN_SIM_REPLAY does not fit this launch: behind step %u the one that it "
                       "names, of warp %u of the launch, cannot be taken",
                       (unsigned)r->steps, (unsigned)(r->schedule->turns[r->turn].who >> 32));
    else
        (void)snprintf(f.message, sizeof f.message,
                       "the launch is given up after %u steps in the order that HEWN_SIM_REPLAY "
                       "names: a loop may wait for what this order never lets happen",
                       (unsigned)r->steps);
    report_add(report, &f);
}

int replay_after(struct replay *r, const struct launch *l, struct report *report)
{
    int result = l->result;
    if (!r) return result;
    replay_end(r);
    if (r->strayed || r->endless || r->walk.failed || r->walk.too_long) {
        tell_strayed(r, l, report);
        if (!result) result = HEWN_CU_LAUNCH_FAILED;
    }
    free(r);
    return result;
}

void explore_before(const struct launch *l, uint64_t orders, struct report *report)
{
    static struct mem_piece memory[PIECES];
    static struct exploration x;
    const struct explore_limits limits = {.orders = orders};
    const size_t count = mem_live(memory, PIECES);
    uint64_t bytes = 0;
    for (size_t i = 0; i < count && i < PIECES; i++) bytes += memory[i].bytes;
    if (count > PIECES || bytes > BYTES_MOST) {
        driver_note("%s is not explored: it could change more than %u MiB of memory",
                    l->kernel->entry->name, (unsigned)(BYTES_MOST >> 20));
        return;
    }
    explore_launch(l, memory, count, &limits, &x);
    if (x.broken || !x.orders) {
        driver_note("%s is not explored: its orders are too long, or memory ran out",
                    l->kernel->entry->name);
        return;
    }
    report_explored(report, x.orders, x.all, x.least);
    if (x.end != EXPLORE_FINE) tell(l, &x, report);
}
