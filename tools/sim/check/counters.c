#include "check/counters.h"

#include "machine/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 64, VALUE_BYTES = 8 };

/* Who made an access: 0 nobody, else one CTA's number + 1, or several. */
#define SEVERAL UINT32_MAX

struct word {
    uint64_t address, first, last; /* values before the first atomic, and at the end */
    const void *at;
    uint32_t insn, size;
    uint32_t first_cta; /* number + 1 */
    bool changed_hands; /* CTAs other than the first had an answer too */
};

struct counters {
    const struct kernel *kernel;
    uint32_t grid[3], block[3];
    uint8_t *params;
    uint32_t param_bytes;
    uint32_t *made_by; /* by instruction */
    struct word words[WORDS];
    uint32_t count;
    bool full;
};

/* The answer decides where the code goes, and the next one's answer is another. */
static bool counts(const struct insn *in)
{
    return in->is.class == INSN_ATOMIC && in->used & USE_STEERS && in->space != SPACE_SHARED;
}

struct counters *counters_new(const struct launch *l)
{
    const struct kernel *k = l->kernel;
    struct counters *c;
    bool any = false;

    for (uint32_t i = 0; i < k->insn_count; i++) any |= counts(&k->insns[i]);
    if (!any || !k->global_sync) return NULL;
    c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->kernel = k;
    memcpy(c->grid, l->grid, sizeof c->grid);
    memcpy(c->block, l->block, sizeof c->block);
    c->param_bytes = l->param_bytes;
    c->params = malloc(c->param_bytes + 1U);
    c->made_by = calloc(k->insn_count + 1U, sizeof *c->made_by);
    if (c->params && c->made_by) {
        if (c->param_bytes) memcpy(c->params, l->params, c->param_bytes);
        return c;
    }
    counters_free(c);
    return NULL;
}

void counters_free(struct counters *c)
{
    if (!c) return;
    free(c->params);
    free(c->made_by);
    free(c);
}

static struct word *word_of(struct counters *c, uint32_t insn, uint64_t address)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->words[i].insn == insn && c->words[i].address == address) return &c->words[i];
    if (c->count == WORDS) return NULL;
    c->words[c->count] = (struct word){.address = address, .insn = insn};
    return &c->words[c->count++];
}

/* An atomic is announced before it works. */
static void count(struct counters *c, const struct event *e, uint32_t insn)
{
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        const uint32_t cta = e->warp->cta->linear + 1;
        struct word *w;

        if (!(e->lanes >> lane & 1) || e->size > VALUE_BYTES) continue;
        w = word_of(c, insn, e->addresses[lane]);
        if (!w) {
            c->full = true;
            return;
        }
        if (w->first_cta) {
            w->changed_hands |= cta != w->first_cta;
            continue;
        }
        w->at = mem_peek(e->warp, lane, w->address);
        w->size = (uint32_t)e->size;
        w->first_cta = cta;
        if (w->at) memcpy(&w->first, w->at, w->size);
    }
}

void counters_access(struct counters *c, const struct event *e)
{
    uint32_t insn, *by;

    if (!e->in || !e->warp || e->in < c->kernel->insns) return;
    insn = (uint32_t)(e->in - c->kernel->insns);
    if (insn >= c->kernel->insn_count) return;
    by = &c->made_by[insn];
    if (!*by)
        *by = e->warp->cta->linear + 1;
    else if (*by != e->warp->cta->linear + 1)
        *by = SEVERAL;
    if (e->space == SPACE_GLOBAL && e->addresses && counts(e->in)) count(c, e, insn);
}

static bool alike(const struct counters *a, const struct counters *b)
{
    return a->kernel == b->kernel && !memcmp(a->grid, b->grid, sizeof a->grid) &&
           !memcmp(a->block, b->block, sizeof a->block) && a->param_bytes == b->param_bytes &&
           !memcmp(a->params, b->params, a->param_bytes);
}

/* What only the first CTA of a counter does may be meant to happen once. */
static bool by_a_first(const struct counters *c, uint32_t insn)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->words[i].first_cta == c->made_by[insn]) return true;
    return false;
}

/* An access that was made then, not by a first CTA, and by nobody now; or NULL. */
static const struct insn *left_out(const struct counters *now, const struct counters *before)
{
    for (uint32_t i = 0; i < now->kernel->insn_count; i++)
        if (!now->made_by[i] && before->made_by[i] && !by_a_first(before, i))
            return &now->kernel->insns[i];
    return NULL;
}

static void tell(const struct word *now, const struct word *before, const struct insn *missing,
                 const struct launch *l)
{
    const struct insn *in = &l->kernel->insns[now->insn];
    const uint32_t line = missing->src->pos.line;
    struct finding f = {.severity = SEV_ERROR,
                        .kind = FIND_STALE_COUNTER,
                        .kernel = l->kernel->entry->name,
                        .group = l->group_count, /* after every group's own */
                        .warp = -1,
                        .lane = -1,
                        .related_count = 1};

    finding_at(&f, l->kernel->module, in->src);
    (void)snprintf(f.object, sizeof f.object, "global memory");
    (void)snprintf(
        f.message, sizeof f.message,
        "the counter at 0x%" PRIx64 " began this launch at %" PRIu64
        ", as the equal launch before left it; that one found %" PRIu64
        ". It had a CTA come to line %" PRIu32 ", and this launch has none. A graph that "
        "is replayed does the same. Cheapest remedy: the CTA that comes last stores %" PRIu64
        " there, or the counter is set before each launch.",
        now->address, now->first, before->first, line, before->first);
    f.related[0].file = ptx_file(l->kernel->module, missing->src->pos);
    f.related[0].line = line;
    (void)snprintf(f.related[0].note, sizeof f.related[0].note,
                   "executed by the launch before, and by no CTA of this one");
    sim_report(l, &f);
}

void counters_judge(struct counters *c, const struct counters *before, const struct launch *l)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->words[i].at) memcpy(&c->words[i].last, c->words[i].at, c->words[i].size);
    if (!before || l->result || !alike(c, before) || c->full || before->full) return;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct word *now = &c->words[i];

        for (uint32_t k = 0; k < before->count; k++) {
            const struct word *then = &before->words[k];
            const struct insn *missing;

            if (then->insn != now->insn || then->address != now->address || !then->at || !now->at)
                continue;
            if (now->first != then->last || then->last == then->first || !then->changed_hands)
                continue;
            missing = left_out(c, before);
            if (!missing) continue;
            tell(now, then, missing, l);
            return;
        }
    }
}
