/* A launch in the order of a schedule: replay.h. */
#include "explore/replay.h"

/* ---- what is told ---- */

static void tell_actor(const struct replay *r, actor who)
{
    const uint32_t *grid = r->launch->grid, warp = (uint32_t)(who >> 32);
    const uint32_t cta = warp / CTA_WARPS;
    fprintf(r->told, "warp %u of CTA (%u,%u,%u)", warp % CTA_WARPS, cta % grid[0],
            cta / grid[0] % grid[1], cta / grid[0] / grid[1]);
    if ((uint32_t)who) fprintf(r->told, ", operation %u", (unsigned)(uint32_t)who);
}

static void tell(struct replay *r)
{
    static const char *const acts[] = {
#define X(name, text) text,
        WALK_ACTS(X)
#undef X
    };
    const struct insn *in = r->told_at;
    if (!r->told_from) return;
    if (r->told_from == r->steps)
        fprintf(r->told, "  %u: ", (unsigned)r->steps);
    else
        fprintf(r->told, "  %u-%u: ", (unsigned)r->told_from, (unsigned)r->steps);
    tell_actor(r, r->told_who);
    fprintf(r->told, ": ");
    if (in)
        fprintf(r->told, "%s:%u: %s", ptx_file(r->launch->kernel->module, in->src->pos),
                (unsigned)in->src->pos.line, in->src->text);
    else
        fprintf(r->told, "the end");
    fprintf(r->told, "%s\n", acts[r->told_act]);
    r->told_from = 0;
}

/* Equal steps in a row are told in one line. */
static void note(struct replay *r, actor who)
{
    const struct walk *w = &r->walk;
    if (r->told_from && (r->told_who != who || r->told_at != w->at || r->told_act != w->act))
        tell(r);
    if (!r->told_from) r->told_from = r->steps + 1;
    r->told_who = who;
    r->told_at = w->at;
    r->told_act = w->act;
}

/* ---- the run ---- */

actor walk_usual(const struct walk_offer *offer, actor last)
{
    for (uint32_t i = 0; i < offer->polls; i++)
        if (offer->can[i] == last) return last;
    return offer->can[0];
}

static bool in_schedule(const struct replay *r)
{
    return r->steps < r->most && r->turn < r->schedule->count;
}

static actor choose(void *context, struct walk_offer *offer)
{
    struct replay *r = context;
    if (in_schedule(r)) {
        const actor who = r->schedule->turns[r->turn].who;
        offer->insists = true;
        for (uint32_t i = 0; i < offer->count; i++)
            if (offer->can[i] == who) return who;
        r->strayed = true;
        return WALK_NOBODY;
    }
    if (r->steps >= r->bound) {
        r->endless = true;
        return WALK_NOBODY;
    }
    return walk_usual(offer, r->steps ? r->last : WALK_NOBODY);
}

static void idle(void *context, actor who)
{
    struct replay *r = context;
    (void)who;
    r->strayed |= in_schedule(r);
}

static void took(void *context, actor who, const struct footprint *f)
{
    struct replay *r = context;
    const bool listed = in_schedule(r);
    (void)f;
    if (r->told) note(r, who);
    r->last = who;
    r->steps++;
    if (!listed) return;
    if (++r->in_turn == r->schedule->turns[r->turn].steps) {
        r->turn++;
        r->in_turn = 0;
    }
    if (!r->told || in_schedule(r)) return;
    tell(r);
    fprintf(r->told, "  (the schedule ends; the order goes on by the usual rule)\n");
}

void replay_attach(struct replay *r, struct launch *l, const struct schedule *s, uint32_t most)
{
    FILE *told = r->told;
    *r = (struct replay){.walk = {.choose = choose, .idle = idle, .took = took, .context = r},
                         .schedule = s,
                         .most = most,
                         .bound = REPLAY_BOUND,
                         .told = told,
                         .launch = l};
    walk_attach(&r->walk, l);
}

void replay_end(struct replay *r)
{
    if (r->told) tell(r);
    walk_close(&r->walk);
}
