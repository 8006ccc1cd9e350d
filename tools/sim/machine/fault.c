/* Findings that a warp or a group meets while it runs, on their way to the launch's report. */
#include "machine/exec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void finding_at(struct finding *f, const struct ptx_module *module, const struct ptx_insn *src)
{
    f->file = ptx_file(module, src->pos);
    f->line = src->pos.line;
    f->ptx_line = src->ptx_pos.line;
    f->loc = src->loc;
    f->instr = src->text;
}

void sim_report(const struct launch *l, const struct finding *f)
{
    if (l->sink) l->sink->add(l->sink, f);
}

static void vfind(struct group *g, const struct warp *w, const struct insn *in, uint32_t lane,
                  struct finding *f, const char *object, const char *format, va_list args)
{
    const struct launch *l = g->launch;
    f->kernel = l->kernel->entry->name;
    f->file = "";
    f->instr = "";
    if (in) {
        finding_at(f, l->kernel->module, in->src);
    }
    f->group = g->index;
    f->seq = g->finding_seq++;
    f->warp = -1;
    f->lane = -1;
    if (w) {
        memcpy(f->cta, w->cta->id, sizeof f->cta);
        f->warp = (int32_t)w->id;
        if (lane < WARP_LANES) f->lane = (int32_t)lane;
    }
    snprintf(f->object, sizeof f->object, "%s", object ? object : "");
    vsnprintf(f->message, sizeof f->message, format, args);
    sim_report(l, f);
}

void sim_idiom(struct group *g, const struct insn *in, enum idiom idiom)
{
    const struct launch *l = g->launch;
    const struct kernel *k = l->kernel;
    uint32_t *told;
    if (!l->sink || !l->sink->idiom) return;
    if (!g->idioms) g->idioms = calloc(k->insn_count, sizeof *g->idioms);
    told = g->idioms ? &g->idioms[in - k->insns] : NULL; /* no memory: told more than once */
    if (told && (*told & 1U << idiom)) return;
    if (told) *told |= 1U << idiom;
    l->sink->idiom(l->sink, idiom, ptx_file(k->module, in->src->pos), in->src->pos.line);
}

enum step sim_fault(struct warp *w, const struct insn *in, uint32_t lane, int result,
                    enum finding_kind kind, enum finding_cause cause, const char *object,
                    const char *format, ...)
{
    struct group *g = w->cta->group;
    struct finding f = {.severity = SEV_ERROR, .kind = kind, .cause = cause};
    va_list args;
    va_start(args, format);
    vfind(g, w, in, lane, &f, object, format, args);
    va_end(args);
    if (!g->result) g->result = result;
    g->failed = true;
    return STEP_FAULT;
}

void sim_find(struct group *g, struct warp *w, const struct insn *in, uint32_t lane,
              enum finding_severity severity, enum finding_kind kind, enum finding_cause cause,
              const char *object, const char *format, ...)
{
    struct finding f = {.severity = severity, .kind = kind, .cause = cause};
    va_list args;
    va_start(args, format);
    vfind(g, w, in, lane, &f, object, format, args);
    va_end(args);
}
