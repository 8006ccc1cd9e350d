/* A hang in words: who waits where for what, whom nobody can bring on, and who merely waits for them. */
#include "source.h"

#include "ptx/demangle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 128, LINES_TOLD = 6, GROUPS_TOLD = 24, GROUPS_JUDGED = 200, MESSAGE = 2000 };

/* Waits of one role at one instruction for one thing. */
struct group {
    const struct waiting *first;
    const struct watch_site *site;
    const struct kernel *kernel; /* NULL: no names */
    const struct ptx_insn *insn; /* NULL: not found */
    struct barrier_use barrier;  /* of the instruction */
    char who[NAME], object[NAME], place[2 * NAME];
    uint32_t warps, ctas;
};

struct hang {
    struct source *sources;
    uint32_t source_count;
    struct group *groups;
    uint32_t group_count;
    bool *brings; /* [i * group_count + k]: a warp of group k may bring group i on */
};

struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(t->at, t->left, format, args);
    va_end(args);
    if (n < 0) return;
    if ((size_t)n >= t->left) n = t->left ? (int)t->left - 1 : 0;
    t->at += n;
    t->left -= (size_t)n;
}

static uint32_t warp_of(const struct waiting *w)
{
    return w->record.who & ((1U << WATCH_WARP_BITS) - 1);
}

static uint32_t threads_of(const struct waiting *w)
{
    return (w->record.who & ((1U << WATCH_NUMBER_SHIFT) - 1)) >> WATCH_WARP_BITS;
}

static bool same_cta(const struct waiting *a, const struct waiting *b)
{
    return a->record.cta_x == b->record.cta_x && a->record.cta_yz == b->record.cta_yz;
}

static uint32_t number_of(const struct waiting *w)
{
    return w->record.who >> WATCH_NUMBER_SHIFT;
}

struct cta {
    uint32_t x, y, z;
};

static struct cta cta_of(const struct waiting *w)
{
    return (struct cta){w->record.cta_x, w->record.cta_yz & 0xFFFF, w->record.cta_yz >> 16};
}

/* ---- names ---- */

static const struct source *source_of(struct hang *h, const struct watched_module *m)
{
    for (uint32_t i = 0; i < h->source_count; i++)
        if (h->sources[i].module == m) return &h->sources[i];
    source_open(&h->sources[h->source_count], m);
    return &h->sources[h->source_count++];
}

static void name_object(struct group *g)
{
    const struct watch_record *r = &g->first->record;
    struct text t = {g->object, sizeof g->object};

    if (g->site->kind == WATCH_SPIN || !g->site->has_barrier) {
        say(&t, "%s", g->site->what);
    } else if (g->site->kind == WATCH_BLOCK) {
        say(&t, "%s %" PRIu32, g->site->what, number_of(g->first));
    } else if (g->kernel) {
        char name[NAME];
        say(&t, "%s", name_shared(g->kernel, r->barrier + r->offset, name, sizeof name));
    } else {
        say(&t, "mbarrier at 0x%" PRIx32, r->barrier + r->offset);
    }
}

static void name_group(struct group *g)
{
    const char *file = g->site->file;
    uint32_t line = g->site->pos.line;

    if (g->insn) {
        file = ptx_file(g->kernel->module, g->insn->pos);
        line = g->insn->pos.line;
    }
    snprintf(g->place, sizeof g->place, "%s:%" PRIu32, file ? file : "PTX", line);
    if (g->kernel)
        name_warp(g->kernel, warp_of(g->first), g->who, sizeof g->who);
    else
        snprintf(g->who, sizeof g->who, "warp %" PRIu32, warp_of(g->first));
    name_object(g);
}

/* ---- groups ---- */

static bool same_role(const struct group *g, const struct waiting *w)
{
    const uint32_t a = warp_of(g->first), b = warp_of(w);

    if (a == b || !g->kernel || !g->kernel->role_count) return true;
    return role_of_warp(g->kernel, a) == role_of_warp(g->kernel, b);
}

static bool belongs(const struct group *g, const struct waiting *w)
{
    const struct watch_record *a = &g->first->record, *b = &w->record;

    return a->site == b->site && a->barrier == b->barrier && a->offset == b->offset &&
           a->value == b->value && number_of(g->first) == number_of(w) && same_role(g, w);
}

static void add_wait(struct hang *h, const struct waiting *w)
{
    const struct watched_module *m = NULL;
    const struct watch_site *site = watched_site(w->record.site, &m);
    struct group *g;

    if (!site) return;
    for (uint32_t i = 0; i < h->group_count; i++)
        if (belongs(&h->groups[i], w)) {
            h->groups[i].warps++;
            return;
        }
    g = &h->groups[h->group_count++];
    *g = (struct group){.first = w, .site = site, .warps = 1};
    g->kernel = source_find(source_of(h, m), site, &g->insn);
    if (g->insn && site->kind != WATCH_SPIN) g->barrier = source_barrier(g->insn);
    name_group(g);
}

/* Slots are in the order of CTAs: a change is another one. */
static void count_ctas(struct hang *h, const struct waiting *waits, uint32_t count)
{
    for (uint32_t i = 0; i < h->group_count; i++) {
        const struct waiting *last = NULL;

        for (uint32_t k = 0; k < count; k++) {
            if (!belongs(&h->groups[i], &waits[k])) continue;
            if (!last || !same_cta(last, &waits[k])) h->groups[i].ctas++;
            last = &waits[k];
        }
    }
}

/* ---- who could bring whom on ---- */

struct wanted {
    const struct group *group;
};

static bool brings(const void *user, const struct ptx_insn *in)
{
    const struct group *g = ((const struct wanted *)user)->group;
    const bool named = g->site->kind == WATCH_BLOCK;
    struct barrier_use use;

    if (!source_is_arrival(in) || named != (in->mods[0][0] == 'b')) return false;
    use = source_barrier(in);
    return use.operand && source_same_barrier(g->kernel->entry, &use, &g->barrier);
}

static bool may_bring(const struct group *by, const struct group *g)
{
    const struct wanted wanted = {g};

    if (by == g || by->kernel != g->kernel || !by->insn || !g->barrier.operand) return false;
    return source_reaches(by->kernel->entry, by->insn, brings, &wanted);
}

/* How many groups would have to go on before this one can: those that may bring it on, those that may bring these
 * on, and so forth. A group with the smallest number waits for warps that do not wait, or stands in a circle.
 * `before` has room for a mark of each group. */
static uint32_t count_before(const struct hang *h, uint32_t which, bool *before)
{
    uint32_t count = 0;
    bool more = true;

    memset(before, 0, h->group_count * sizeof *before);
    while (more) {
        more = false;
        for (uint32_t i = 0; i < h->group_count; i++) {
            if (i != which && !before[i]) continue;
            for (uint32_t k = 0; k < h->group_count; k++) {
                if (before[k] || !h->brings[i * h->group_count + k]) continue;
                before[k] = more = true;
                count++;
            }
        }
    }
    return count;
}

/* The group to blame: with the fewest before it, an mbarrier's first; else the first. */
static const struct group *blamed(struct hang *h, bool *circle)
{
    const uint32_t n = h->group_count, limit = n < GROUPS_JUDGED ? n : 0;
    const struct group *best = &h->groups[0];
    bool *before = calloc(n, sizeof *before);
    uint32_t least = UINT32_MAX;

    h->brings = calloc((size_t)n * n, sizeof *h->brings);
    for (uint32_t i = 0; h->brings && i < limit; i++)
        for (uint32_t k = 0; k < n; k++)
            h->brings[i * n + k] = may_bring(&h->groups[k], &h->groups[i]);
    for (uint32_t i = 0; h->brings && before && i < limit; i++) {
        const struct group *g = &h->groups[i];
        const uint32_t count = count_before(h, i, before);

        if (count > least) continue;
        if (count == least && (best->site->kind != WATCH_BLOCK || g->site->kind == WATCH_BLOCK))
            continue;
        least = count;
        best = g;
    }
    *circle = least != 0 && least != UINT32_MAX;
    free(h->brings);
    free(before);
    return best;
}

/* ---- words ---- */

static void say_wait(struct text *t, const struct group *g)
{
    const struct cta c = cta_of(g->first);

    say(t, "%s", g->who);
    if (g->warps > 1) say(t, " and %" PRIu32 " more", g->warps - 1);
    if (g->ctas > 1)
        say(t, " in %" PRIu32 " CTAs, the first", g->ctas);
    else
        say(t, " of CTA");
    say(t, " (%" PRIu32 ",%" PRIu32 ",%" PRIu32 ")", c.x, c.y, c.z);
    say(t, " %s at %s for %s", g->warps > 1 ? "wait" : "waits", g->place, g->object);
    if (g->site->has_barrier && g->site->kind != WATCH_BLOCK)
        say(t, ", parity %" PRIu32, g->first->record.value);
}

static void say_lines(struct text *t, const struct group *g)
{
    const struct ptx_entry *e = g->kernel->entry;
    const struct wanted wanted = {g};
    const bool named = g->site->kind == WATCH_BLOCK;
    uint32_t told = 0, last = 0;

    for (uint32_t i = 0; i < e->insn_count && told <= LINES_TOLD; i++) {
        const struct ptx_insn *in = &e->insns[i];

        if (in == g->insn || !brings(&wanted, in) || in->pos.line == last) continue;
        last = in->pos.line;
        if (told++ == LINES_TOLD)
            say(t, ", …");
        else
            say(t, "%s%" PRIu32,
                told > 1 ? ", "
                : named  ? " Warps also come to it at line "
                         : " It is signalled at line ",
                last);
    }
    if (told)
        say(t, ".");
    else if (!named)
        say(t, " No instruction that signals it was recognised.");
}

static void say_init(struct text *t, const struct group *g)
{
    const struct ptx_entry *e = g->kernel->entry;

    for (uint32_t i = 0; i < e->insn_count; i++) {
        const struct ptx_insn *in = &e->insns[i];
        const struct barrier_use use = {in, &in->operands[0]};

        if (in->mod_count < 2 || strcmp(in->mods[0], "mbarrier") != 0 ||
            strcmp(in->mods[1], "init") != 0 || in->operand_count < 2 ||
            in->operands[1].kind != OPD_INT || !source_same_barrier(e, &use, &g->barrier))
            continue;
        say(t, " It was initialised for %" PRId64 " arrival%s a phase (line %" PRIu32 ").",
            in->operands[1].imm, in->operands[1].imm == 1 ? "" : "s", in->pos.line);
        return;
    }
}

/* How many warps of the CTA have left no record. */
static void say_absent(struct text *t, const struct group *g, const struct waiting *waits,
                       uint32_t count)
{
    const uint32_t warps = (threads_of(g->first) + 31) / 32;
    uint32_t here = 0;

    for (uint32_t i = 0; i < count; i++) here += same_cta(&waits[i], g->first);
    if (here < warps)
        say(t,
            " %" PRIu32 " of the CTA's %" PRIu32 " warps left no record: they compute, wait in a "
            "way that is not watched, or have exited.",
            warps - here, warps);
}

static void say_reason(struct text *t, const struct hang *h, const struct group *g, bool circle)
{
    if (g->barrier.operand && g->site->has_barrier) {
        if (g->site->kind != WATCH_BLOCK) say_init(t, g);
        say_lines(t, g);
        if (circle)
            say(t, " Whoever could signal it waits as well, in a circle.");
        else if (h->group_count > 1 || g->warps > 1)
            say(t, " No warp that waits has such an instruction ahead.");
    }
}

static const char *cause_of(const struct group *g, bool circle)
{
    if (circle) return "cycle";
    if (g->site->kind != WATCH_BLOCK)
        return g->site->kind == WATCH_SPIN ? "no-producer" : "arrival-count";
    if (!strncmp(g->site->text, "setmaxnreg", 10)) return "setmaxnreg";
    if (!strncmp(g->site->text, "tcgen05", 7)) return "tmem-alloc";
    if (!strncmp(g->site->text, "barrier.cluster", 15)) return "cluster";
    return "participants";
}

/* A JSON string's inside. */
static void quoted(const char *text, char *out, size_t size)
{
    size_t n = 0;

    for (; *text && n + 3 < size; text++) {
        if (*text == '"' || *text == '\\') out[n++] = '\\';
        out[n++] = (unsigned char)*text < ' ' ? ' ' : *text;
    }
    out[n] = '\0';
}

static void report(const struct group *g, bool circle, const char *message)
{
    char text[2 * MESSAGE], instr[2 * NAME], file[2 * NAME];
    const struct cta c = cta_of(g->first);
    const char *colon = strrchr(g->place, ':');

    quoted(message, text, sizeof text);
    quoted(g->site->text, instr, sizeof instr);
    snprintf(file, sizeof file, "%.*s", (int)(colon - g->place), g->place);
    watch_report("{\"severity\":\"error\",\"kind\":\"deadlock\",\"cause\":\"%s\",\"kernel\":\"%s\","
                 "\"file\":\"%s\",\"line\":%s,\"cta\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32
                 "],\"warp\":%" PRIu32 ",\"lane\":-1,\"instr\":\"%s\",\"object\":\"%s\","
                 "\"message\":\"%s\",\"related\":[]}",
                 cause_of(g, circle), g->site->function, file, colon + 1, c.x, c.y, c.z,
                 warp_of(g->first), instr, g->object, text);
}

static void tell(struct hang *h, const struct waiting *waits, uint32_t count, double seconds)
{
    char message[MESSAGE] = "", kernel[DEMANGLED_BYTES];
    struct text t = {message, sizeof message};
    bool circle;
    const struct group *g = blamed(h, &circle);
    uint32_t told = 0;

    say_wait(&t, g);
    say(&t, ".");
    say_reason(&t, h, g, circle);
    say_absent(&t, g, waits, count);
    watch_note("%s hangs: for %.1f s nothing has moved",
               demangle(g->site->function, kernel, sizeof kernel), seconds);
    fprintf(stderr, "  %s\n", message);
    for (uint32_t i = 0; i < h->group_count && told < GROUPS_TOLD; i++) {
        char line[MESSAGE];
        struct text l = {line, sizeof line};

        if (&h->groups[i] == g) continue;
        say_wait(&l, &h->groups[i]);
        fprintf(stderr, "  %s %s\n", told ? "      and" : "meanwhile", line);
        told++;
    }
    if (h->group_count > told + 1)
        fprintf(stderr, "        and %" PRIu32 " other waits\n", h->group_count - told - 1);
    fflush(stderr);
    report(g, circle, message);
}

void tell_hang(const struct waiting *waits, uint32_t count, double seconds)
{
    struct hang h = {.groups = calloc(count, sizeof *h.groups),
                     .sources = calloc(count, sizeof *h.sources)};

    for (uint32_t i = 0; h.groups && h.sources && i < count; i++) add_wait(&h, &waits[i]);
    if (h.group_count) {
        count_ctas(&h, waits, count);
        tell(&h, waits, count, seconds);
    }
    for (uint32_t i = 0; i < h.source_count; i++) source_close(&h.sources[i]);
    free(h.sources);
    free(h.groups);
}
