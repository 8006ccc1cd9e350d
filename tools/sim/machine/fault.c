/* Findings that a warp or a group meets while it runs, on their way to the launch's report. */
#include "machine/exec.h"

#include <stdarg.h>
#include <stdio.h>

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
        f->file = ptx_file(l->kernel->module, in->src->pos);
        f->line = in->src->pos.line;
        f->instr = in->src->text;
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
