/* hewn check --explore: the orders of a launch before it runs. */
#include "cuda/driver.h"
#include "check/report.h"
#include "explore/explore.h"
#include "machine/mem.h"

#include <stdio.h>

enum { PIECES = 1024 };
#define BYTES_MOST \
    ((uint64_t)64 << 20) /* of memory, which is put back and compared for every order */

/* What to do to see it again. */
static void say_again(const struct exploration *x, char *out, size_t room)
{
    if (x->seed)
        (void)snprintf(out, room, " A run with HEWN_SIM_SEED=%u comes to the same.",
                       (unsigned)x->seed);
    else
        (void)snprintf(out, room, " None of the seeds 1 to %d comes to the same.", EXPLORE_SEEDS);
}

/* An order that goes wrong, as a finding: a hang, or what the first order does not come to. */
static void tell(const struct launch *l, const struct exploration *x, struct report *report)
{
    struct finding f = x->finding;
    char steps[400], again[80];
    const int most = (int)sizeof steps - 1;
    (void)snprintf(steps, sizeof steps, "%.*s", most, x->schedule);
    say_again(x, again, sizeof again);
    if (x->end == EXPLORE_DIFFERS) {
        f = (struct finding){.severity = SEV_ERROR, .kind = FIND_RACE, .warp = -1, .lane = -1};
        f.kernel = l->kernel->entry->name;
        f.file = ptx_file(l->kernel->module, l->kernel->entry->pos);
        f.line = f.ptx_line = l->kernel->entry->pos.line;
        f.instr = "";
        (void)snprintf(
            f.message, sizeof f.message,
            "another order of the warps leaves other values in memory. Its steps: %s%s.%s", steps,
            x->schedule[strlen(steps)] ? " …" : "", again);
    } else {
        const size_t at = strlen(f.message);
        if (!f.file || !*f.file) {
            f.file = ptx_file(l->kernel->module, l->kernel->entry->pos);
            f.line = f.ptx_line = l->kernel->entry->pos.line;
        }
        (void)snprintf(f.message + at, sizeof f.message - at,
                       " in one order of the warps. Its steps: %s%s.%s", steps,
                       x->schedule[strlen(steps)] ? " …" : "", again);
    }
    f.group = UINT32_MAX; /* behind those of the run */
    report_add(report, &f);
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
