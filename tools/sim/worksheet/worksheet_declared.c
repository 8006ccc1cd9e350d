/*
 * The worksheet that the source declares, held against the one that the run shows. Beside the notes
 * of names.h:
 *
 *     //@ handoff <barrier> <count> <bytes> <producers> <consumers>
 *     //@ flow <storage> <writers> <readers>
 *
 * A barrier or storage is a name of a .shared variable or of a note. Count is that of each
 * mbarrier.init, bytes what every phase's copies bring, a number or least..most. Producers (who arrive, commit or copy) and
 * consumers (who wait) are roles, joined with +. Writers and readers are agents, joined with +: a role,
 * or a role's operations as role.tma, .mma, .cp, .copy, .ld, .st, .remote (worksheet.h, AGENT_KINDS).
 *
 * What the run shows and the notes do not say is a difference; so is a wrong number, and a producer
 * or consumer of a barrier that never was one although several phases completed. What is declared and
 * did not come up in this run (an edge case, a second accumulator) is listed, and is no difference.
 * Where notes of a kind are there at all, they have to be complete.
 */
#include "worksheet/worksheet.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WORDS = 7 };

struct compare {
    const struct sheet_view *view;
    FILE *out;
    uint64_t number;
    uint32_t declared, differences, unseen;
};

struct note {
    char text[VIEW_TEXT];
    char *word[WORDS]; /* the rest empty */
    uint32_t count;
};

static void report(struct compare *c, const char *table, const char *what, const char *declared,
                   const char *seen)
{
    fprintf(c->out, "{\"worksheet\":\"%s\",\"launch\":%" PRIu64 ",\"what\":", table, c->number);
    put_json(c->out, what);
    fputs(",\"declared\":", c->out);
    put_json(c->out, declared);
    fputs(",\"seen\":", c->out);
    put_json(c->out, seen);
    fputs("}\n", c->out);
}

static void differ(struct compare *c, const char *kind, const char *name, const char *declared,
                   const char *seen)
{
    char what[2 * VIEW_NAME];
    snprintf(what, sizeof what, "%s %s", kind, name);
    report(c, "difference", what, declared, seen);
    c->differences++;
}

static void not_seen(struct compare *c, const char *kind, const char *name, const char *declared)
{
    char what[2 * VIEW_NAME];
    snprintf(what, sizeof what, "%s %s", kind, name);
    report(c, "unseen", what, declared, "not in this run");
    c->unseen++;
}

/* ---- notes ---- */

static void split(struct note *n, const char *text)
{
    static char nothing[1];
    char *save = NULL;
    snprintf(n->text, sizeof n->text, "%s", text);
    n->count = 0;
    for (char *w = strtok_r(n->text, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        if (n->count < WORDS) n->word[n->count] = w;
        n->count++;
    }
    for (uint32_t i = n->count; i < WORDS; i++) n->word[i] = nothing;
}

static uint32_t role_warps(const struct sheet_view *v, const char *name, size_t length)
{
    for (uint32_t i = 0; i < v->kernel->role_count; i++) {
        const struct name_range *r = &v->kernel->roles[i];
        uint32_t warps = 0;
        if (strlen(r->name) != length || memcmp(r->name, name, length) != 0) continue;
        for (uint32_t w = r->first; w < CTA_WARPS && w - r->first < r->count; w++) warps |= 1U << w;
        return warps;
    }
    return 0;
}

/* Reads "role.kind+role" into warps by agent. False: what is no role, or no kind, is in `bad`. */
static bool read_agents(const struct sheet_view *v, const char *list, uint32_t out[AGENTS],
                        char bad[VIEW_NAME])
{
    memset(out, 0, AGENTS * sizeof *out);
    while (*list) {
        size_t length = strcspn(list, "+"), role = strcspn(list, "+.");
        size_t at = role < length ? role + 1 : length;
        uint32_t warps = role_warps(v, list, role);
        bool known = false;
        for (int k = 0; k < AGENTS && warps; k++) {
            const char *note = agent_note((enum agent_kind)k);
            if (strlen(note) != length - at || memcmp(note, list + at, length - at) != 0) continue;
            out[k] |= warps;
            known = true;
        }
        snprintf(bad, VIEW_NAME, "%.*s", (int)(length < VIEW_NAME ? length : VIEW_NAME - 1), list);
        if (!known) return false;
        list += length + (list[length] == '+');
    }
    return true;
}

static uint32_t all_agents(const uint32_t warps[AGENTS])
{
    uint32_t all = 0;
    for (int k = 0; k < AGENTS; k++) all |= warps[k];
    return all;
}

/* ---- handoffs ---- */

static const struct view_handoff *find_handoff(const struct sheet_view *v, const char *name)
{
    for (uint32_t i = 0; i < v->handoff_count; i++)
        if (!strcmp(v->handoffs[i].name, name)) return &v->handoffs[i];
    return NULL;
}

static void compare_number(struct compare *c, const char *name, const char *what,
                           const char *declared, const struct sheet_bounds *seen)
{
    char text[80], wanted[80];
    char *end;
    uint64_t least = strtoull(declared, &end, 0), most = least;
    if (!strncmp(end, "..", 2)) most = strtoull(end + 2, NULL, 0);
    if (seen->low > seen->high || (seen->low >= least && seen->high <= most)) return;
    snprintf(wanted, sizeof wanted, "%s %s", what, declared);
    if (seen->low == seen->high)
        snprintf(text, sizeof text, "%s %" PRIu64, what, seen->low);
    else
        snprintf(text, sizeof text, "%s %" PRIu64 "..%" PRIu64, what, seen->low, seen->high);
    differ(c, "handoff", name, wanted, text);
}

/* Every role of `declared` has a warp in `seen`, and no warp of `seen` lies outside. */
static void compare_roles(struct compare *c, const char *name, const char *what, uint32_t declared,
                          uint32_t seen, bool exercised)
{
    const struct sheet_view *v = c->view;
    char wanted[VIEW_TEXT], got[VIEW_TEXT], texts[2][VIEW_TEXT + 16];
    bool missing = false;
    for (uint32_t i = 0; i < v->role_count; i++)
        missing |= v->roles[i].warps & declared && !(v->roles[i].warps & seen);
    roles_text(v, declared, wanted, sizeof wanted);
    roles_text(v, seen, got, sizeof got);
    snprintf(texts[0], sizeof texts[0], "%s %s", what, wanted[0] ? wanted : "nobody");
    snprintf(texts[1], sizeof texts[1], "%s %s", what, got[0] ? got : "nobody");
    if (seen & ~declared || (missing && exercised))
        differ(c, "handoff", name, texts[0], texts[1]);
    else if (missing)
        not_seen(c, "handoff", name, texts[0]);
}

static void compare_handoff(struct compare *c, const struct note *n)
{
    const char *name = n->word[1];
    const struct view_handoff *h = find_handoff(c->view, name);
    uint32_t from[AGENTS], to[AGENTS];
    char bad[VIEW_NAME];
    bool phases;
    if (!read_agents(c->view, n->word[4], from, bad) ||
        !read_agents(c->view, n->word[5], to, bad)) {
        differ(c, "handoff", name, bad, "no role of that name");
        return;
    }
    if (!h) {
        not_seen(c, "handoff", name, "a barrier");
        return;
    }
    phases = h->all.phases.low <= h->all.phases.high && h->all.phases.high > 1;
    compare_number(c, name, "count", n->word[2], &h->all.count);
    compare_number(c, name, "bytes", n->word[3], &h->all.bytes);
    compare_roles(c, name, "producers", all_agents(from), all_agents(h->all.producers), phases);
    compare_roles(c, name, "consumers", all_agents(to), h->all.consumers, phases);
}

/* ---- flows ---- */

static const struct view_range *find_range(const struct sheet_view *v, const char *name)
{
    for (uint32_t i = 0; i < v->range_count; i++)
        if (v->ranges[i].named && !strcmp(v->ranges[i].name, name)) return &v->ranges[i];
    return NULL;
}

/* Kinds with one name in notes stand for each other. */
static void fold_kinds(uint32_t warps[AGENTS])
{
    for (int k = 0; k < AGENTS; k++) {
        for (int j = k + 1; j < AGENTS; j++) {
            if (strcmp(agent_note((enum agent_kind)k), agent_note((enum agent_kind)j))) continue;
            warps[k] |= warps[j];
            warps[j] = 0;
        }
    }
}

/* The same as a note writes it. */
static void note_text(const struct sheet_view *v, const uint32_t warps[AGENTS], char *out,
                      size_t size)
{
    out[0] = '\0';
    for (int k = 0; k < AGENTS; k++) {
        for (uint32_t i = 0; i < v->role_count; i++) {
            const char *kind = agent_note((enum agent_kind)k);
            char item[VIEW_NAME + 16];
            if (!(v->roles[i].warps & warps[k])) continue;
            snprintf(item, sizeof item, "%s%s%s", v->roles[i].name, *kind ? "." : "", kind);
            join(out, size, item);
        }
    }
    if (!out[0]) snprintf(out, size, "nobody");
}

static void compare_agents(struct compare *c, const char *name, const char *what,
                           uint32_t declared[AGENTS], const uint32_t seen_by[AGENTS])
{
    const struct sheet_view *v = c->view;
    char wanted[VIEW_TEXT], got[VIEW_TEXT], texts[2][VIEW_TEXT + 16];
    uint32_t seen[AGENTS], absent[AGENTS] = {0};
    bool outside = false;
    memcpy(seen, seen_by, sizeof seen);
    fold_kinds(seen);
    fold_kinds(declared);
    for (int k = 0; k < AGENTS; k++) {
        outside |= (seen[k] & ~declared[k]) != 0;
        for (uint32_t i = 0; i < v->role_count; i++)
            if (v->roles[i].warps & declared[k] && !(v->roles[i].warps & seen[k]))
                absent[k] |= v->roles[i].warps & declared[k];
    }
    note_text(v, outside ? declared : absent, wanted, sizeof wanted);
    note_text(v, seen, got, sizeof got);
    snprintf(texts[0], sizeof texts[0], "%s %s", what, wanted);
    snprintf(texts[1], sizeof texts[1], "%s %s", what, got);
    if (outside)
        differ(c, "flow", name, texts[0], texts[1]);
    else if (all_agents(absent))
        not_seen(c, "flow", name, texts[0]);
}

static void compare_flow(struct compare *c, const struct note *n)
{
    const char *name = n->word[1];
    const struct view_range *r = find_range(c->view, name);
    uint32_t writers[AGENTS], readers[AGENTS];
    char bad[VIEW_NAME];
    if (!read_agents(c->view, n->word[2], writers, bad) ||
        !read_agents(c->view, n->word[3], readers, bad)) {
        differ(c, "flow", name, bad, "no such role or kind of operation");
    } else if (!r) {
        differ(c, "flow", name, "storage", "no such storage");
    } else {
        compare_agents(c, name, "writers", writers, r->agents.warps[1]);
        compare_agents(c, name, "readers", readers, r->agents.warps[0]);
    }
}

/* ---- what no note declares ---- */

static bool declared(const struct sheet_view *v, const char *kind, const char *name)
{
    const struct ptx_entry *e = v->kernel->entry;
    struct note n;
    for (uint32_t i = 0; i < e->note_count; i++) {
        split(&n, e->notes[i].text);
        if (!strcmp(n.word[0], kind) && (!name || !strcmp(n.word[1], name))) return true;
    }
    return false;
}

static void undeclared_storage(struct compare *c)
{
    const struct sheet_view *v = c->view;
    bool flows = declared(v, "flow", NULL), shared = declared(v, "shared", NULL);
    bool tmem = declared(v, "tmem", NULL);
    for (uint32_t i = 0; i < v->range_count; i++) {
        const struct view_range *r = &v->ranges[i];
        char seen[VIEW_TEXT];
        uint32_t touched = all_agents(r->agents.warps[0]) | all_agents(r->agents.warps[1]);
        roles_text(v, touched, seen, sizeof seen);
        if (r->named && !touched) continue; /* a flow note says so; barriers are handoffs */
        if (r->named ? flows && !declared(v, "flow", r->name) : r->tensor ? tmem : shared)
            differ(c, "storage", r->name, "nothing", seen);
    }
}

static void undeclared(struct compare *c)
{
    const struct sheet_view *v = c->view;
    for (uint32_t i = 0; i < v->handoff_count && declared(v, "handoff", NULL); i++) {
        const struct view_handoff *h = &v->handoffs[i];
        char seen[VIEW_TEXT];
        if (h->all.kind != BARRIER_MBAR || declared(v, "handoff", h->name)) continue;
        roles_text(v, all_agents(h->all.producers) | h->all.consumers, seen, sizeof seen);
        differ(c, "handoff", h->name, "nothing", seen);
    }
    undeclared_storage(c);
    for (uint32_t i = 0; i < v->role_count && v->kernel->role_count; i++) {
        const struct view_role *r = &v->roles[i];
        if (!role_warps(v, r->name, strlen(r->name)))
            differ(c, "role", r->name, "nothing", "warps that no role holds");
    }
}

/* ---- names alone ---- */

static void compare_names(struct compare *c, const struct note *n)
{
    const struct launch *l = c->view->sheet->launch;
    uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    uint64_t first = strtoull(n->word[2], NULL, 0), size = strtoull(n->word[3], NULL, 0);
    bool tmem = !strcmp(n->word[0], "tmem"), role = !strcmp(n->word[0], "role");
    uint64_t limit = tmem   ? TMEM_COLUMNS
                     : role ? (threads + WARP_LANES - 1) / WARP_LANES
                            : l->dynamic_shared;
    const char *what = tmem ? "TMEM columns" : role ? "warps" : "bytes of dynamic shared memory";
    char wanted[80], seen[80];
    if (!tmem && !role) size *= strtoull(n->word[4], NULL, 0);
    if (first + size <= limit) return;
    snprintf(wanted, sizeof wanted, "up to %" PRIu64, first + size);
    snprintf(seen, sizeof seen, "%" PRIu64 " %s", limit, what);
    differ(c, n->word[0], n->word[1], wanted, seen);
}

static void compare_note(struct compare *c, const struct ptx_note *from)
{
    static const struct {
        const char *kind;
        uint32_t words;
        void (*compare)(struct compare *c, const struct note *n);
    } kinds[] = {{"role", 4, compare_names},
                 {"shared", 5, compare_names},
                 {"tmem", 4, compare_names},
                 {"handoff", 6, compare_handoff},
                 {"flow", 4, compare_flow}};
    struct note n = {0};
    char place[48];
    split(&n, from->text);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(n.word[0], kinds[i].kind)) continue;
        c->declared++;
        snprintf(place, sizeof place, "at line %u", from->pos.line);
        if (n.count == kinds[i].words)
            kinds[i].compare(c, &n);
        else
            differ(c, "note", place, from->text, "a wrong number of words");
    }
}

void sheet_compare(const struct sheet_view *v, uint64_t number, FILE *out)
{
    struct compare c = {.view = v, .out = out, .number = number};
    const struct ptx_entry *e = v->kernel->entry;
    for (uint32_t i = 0; i < e->note_count; i++) compare_note(&c, &e->notes[i]);
    if (c.declared) undeclared(&c);
    fprintf(out,
            "{\"worksheet\":\"verdict\",\"launch\":%" PRIu64
            ",\"declared\":%u,\"differences\":%u,\"unseen\":%u}\n",
            number, c.declared, c.differences, c.unseen);
}
