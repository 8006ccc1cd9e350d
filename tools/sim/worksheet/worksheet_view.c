/* A sheet in the order and under the names that readers want: worksheet.h. */
#include "worksheet/worksheet.h"

#include <stdlib.h>

static const struct {
    const char *note, *text;
} agent_texts[] = {
#define X(name, note, text) {note, text},
    AGENT_KINDS(X)
#undef X
};

const char *agent_note(enum agent_kind kind)
{
    return agent_texts[kind].note;
}

/* ---- texts ---- */

void join(char *out, size_t size, const char *item)
{
    size_t length = strlen(item), used = strlen(out);
    for (const char *at = out; (at = strstr(at, item)) != NULL; at += length) {
        bool begins = at == out || (at - out >= 2 && at[-2] == ',' && at[-1] == ' ');
        if (begins && (!at[length] || at[length] == ',')) return;
    }
    if (length) snprintf(out + used, size - used, "%s%s", used ? ", " : "", item);
}

char *warps_text(uint32_t warps, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t w = 0; w < CTA_WARPS && used < size; w++) {
        uint32_t last = w;
        if (!(warps >> w & 1U)) continue;
        while (last + 1 < CTA_WARPS && warps >> (last + 1) & 1U) last++;
        used += (size_t)snprintf(out + used, size - used, last > w ? "%s%u-%u" : "%s%u",
                                 used ? "," : "", w, last);
        w = last;
    }
    return out;
}

char *roles_text(const struct sheet_view *v, uint32_t warps, char *out, size_t size)
{
    uint32_t touched = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < v->role_count; i++) {
        if (!(v->roles[i].warps & warps)) continue;
        join(out, size, v->roles[i].name);
        touched++;
    }
    if (touched > 2 && touched == v->role_count) snprintf(out, size, "all");
    return out;
}

static bool uses_wgmma(const struct sheet_view *v)
{
    const struct sheet *s = v->sheet;
    for (size_t i = 0; i < s->count_map.count; i++) {
        if (v->kernel->insns[s->counts[i].insn].is.engine == ENGINE_WGMMA) return true;
    }
    return false;
}

char *agents_text(const struct sheet_view *v, const uint32_t warps[AGENTS], char *out, size_t size)
{
    out[0] = '\0';
    /* Operations first: they are what the storage is there for. */
    for (int i = 1; i <= AGENTS; i++) {
        enum agent_kind kind = (enum agent_kind)(i % AGENTS);
        const char *text = kind == AGENT_MMA && uses_wgmma(v) ? "wgmma" : agent_texts[kind].text;
        char roles[VIEW_TEXT], item[VIEW_TEXT + 32];
        if (!warps[kind]) continue;
        roles_text(v, warps[kind], roles, sizeof roles);
        snprintf(item, sizeof item, kind == AGENT_THREADS ? "%s%s" : "%s (%s)", text, roles);
        join(out, size, item);
    }
    return out;
}

/* ---- roles ---- */

/* Of a set of instructions: the sum of the hashes of its elements. */
static void signatures(const struct sheet *s, uint64_t out[CTA_WARPS])
{
    memset(out, 0, CTA_WARPS * sizeof *out);
    for (size_t i = 0; i < s->count_map.count; i++) {
        uint64_t h = (s->counts[i].insn + 1ULL) * 0x9E3779B97F4A7C15ULL;
        out[s->counts[i].warp] += (h ^ h >> 29) * 0xBF58476D1CE4E5B9ULL;
    }
}

static int by_warp(const void *a, const void *b)
{
    const struct view_role *x = a, *y = b;
    uint32_t i = first_lane(x->warps), j = first_lane(y->warps);
    return (i > j) - (i < j);
}

/* Warps without a declared role: those that do the same make one. */
static void find_roles(struct sheet_view *v)
{
    const struct launch *l = v->sheet->launch;
    uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    uint32_t count = (threads + WARP_LANES - 1) / WARP_LANES;
    uint32_t rest = count >= CTA_WARPS ? UINT32_MAX : (1U << count) - 1;
    uint64_t does[CTA_WARPS];
    for (uint32_t i = 0; i < v->kernel->role_count && v->role_count < CTA_WARPS; i++) {
        const struct name_range *r = &v->kernel->roles[i];
        struct view_role *role = &v->roles[v->role_count];
        snprintf(role->name, sizeof role->name, "%s", r->name);
        for (uint32_t w = 0; w < CTA_WARPS; w++)
            if (w >= r->first && w - r->first < r->count) role->warps |= rest & 1U << w;
        rest &= ~role->warps;
        if (role->warps) v->role_count++;
    }
    signatures(v->sheet, does);
    while (rest && v->role_count < CTA_WARPS) {
        struct view_role *role = &v->roles[v->role_count++];
        uint32_t first = first_lane(rest);
        char warps[64];
        for (uint32_t w = first; w < CTA_WARPS; w++)
            if (rest >> w & 1U && does[w] == does[first]) role->warps |= 1U << w;
        rest &= ~role->warps;
        warps_text(role->warps, warps, sizeof warps);
        snprintf(role->name, sizeof role->name, "warp%s %s",
                 role->warps & (role->warps - 1) ? "s" : "", warps);
    }
    qsort(v->roles, v->role_count, sizeof *v->roles, by_warp);
}

/* ---- ranges ---- */

static struct view_range *new_range(struct sheet_view *v)
{
    if (v->range_count == v->range_capacity) {
        uint32_t capacity = v->range_capacity ? 2 * v->range_capacity : 32;
        struct view_range *grown = realloc(v->ranges, capacity * sizeof *grown);
        if (!grown) return NULL;
        v->ranges = grown;
        v->range_capacity = capacity;
    }
    v->ranges[v->range_count] = (struct view_range){.made = NO_INSN};
    return &v->ranges[v->range_count++];
}

static void add_cells(const struct sheet *s, struct view_range *r, const struct sheet_cell *cells,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct agents *a = &s->sets[cells[i].set];
        if (i && cells[i].set == cells[i - 1].set && cells[i].made == cells[i - 1].made) continue;
        if (cells[i].made < r->made) r->made = cells[i].made;
        for (int k = 0; k < AGENTS; k++) {
            r->agents.warps[0][k] |= a->warps[0][k];
            r->agents.warps[1][k] |= a->warps[1][k];
        }
    }
}

static void name_made(const struct sheet_view *v, char out[VIEW_NAME], uint32_t made)
{
    size_t used = strlen(out);
    if (made == NO_INSN) return;
    snprintf(out + used, VIEW_NAME - used, " (line %u)", v->kernel->insns[made].src->ptx_pos.line);
}

/* Warps and the rest of their roles. */
static uint32_t whole_roles(const struct sheet_view *v, uint32_t warps)
{
    uint32_t all = warps;
    for (uint32_t i = 0; i < v->role_count; i++)
        if (v->roles[i].warps & warps) all |= v->roles[i].warps;
    return all;
}

/* The same instruction writes both, and the same roles use them alike. */
static bool alike(const struct sheet_view *v, const struct sheet_cell *a,
                  const struct sheet_cell *b)
{
    const struct agents *x = &v->sheet->sets[a->set], *y = &v->sheet->sets[b->set];
    if (a->made != b->made || !a->set != !b->set) return false;
    for (int k = 0; k < AGENTS && a->set != b->set; k++)
        for (int w = 0; w < 2; w++)
            if (whole_roles(v, x->warps[w][k]) != whole_roles(v, y->warps[w][k])) return false;
    return true;
}

/* Cells up to `end` that lie in no named range; `covered` has a flag for each cell. */
static bool unnamed_ranges(struct sheet_view *v, bool tensor, const struct sheet_cell *cells,
                           const bool *covered, uint32_t end)
{
    uint32_t unit = tensor ? 1 : SHEET_GRAIN;
    for (uint32_t i = 0, last; i < end; i = last) {
        struct view_range *r;
        last = i + 1;
        if (covered[i] || !cells[i].set) continue;
        while (last < end && !covered[last] && alike(v, &cells[i], &cells[last])) last++;
        r = new_range(v);
        if (!r) return false;
        r->tensor = tensor;
        r->first = i * unit;
        r->bytes = (last - i) * unit;
        r->count = 1;
        add_cells(v->sheet, r, &cells[i], last - i);
        if (tensor)
            snprintf(r->name, sizeof r->name, "columns %u-%u", i, last - 1);
        else
            snprintf(r->name, sizeof r->name, "shared+0x%x", r->first);
        name_made(v, r->name, r->made);
    }
    return true;
}

static bool find_ranges(struct sheet_view *v, bool tensor)
{
    const struct sheet *s = v->sheet;
    const struct name_range *names = tensor ? v->kernel->columns : v->kernel->buffers;
    uint32_t count = tensor ? v->kernel->column_count : v->kernel->buffer_count;
    uint32_t end = tensor ? TMEM_COLUMNS : s->shared_grains, unit = tensor ? 1 : SHEET_GRAIN;
    const struct sheet_cell *cells = tensor ? s->tmem : s->shared;
    bool *covered = calloc(end + 1U, sizeof *covered), fits = covered != NULL;
    for (uint32_t i = 0; i < count && fits; i++) {
        const struct name_range *n = &names[i];
        struct view_range *r = new_range(v);
        uint32_t from = n->first / unit, to = (n->first + n->count + unit - 1) / unit;
        fits = r != NULL;
        if (!r) break;
        snprintf(r->name, sizeof r->name, "%s", n->name);
        r->tensor = tensor;
        r->named = true;
        r->index = i;
        r->first = n->first;
        r->count = tensor || n->stride < 2 ? 1 : n->count / n->stride; /* bytes: no array */
        r->bytes = r->count > 1 ? n->stride : n->count;
        if (from > end) from = end; /* a note may promise more than there is */
        if (to > end) to = end;
        add_cells(s, r, cells + from, to - from);
        memset(covered + from, 1, to - from);
    }
    fits = fits && unnamed_ranges(v, tensor, cells, covered, end);
    free(covered);
    return fits;
}

static int by_place(const void *a, const void *b)
{
    const struct view_range *x = a, *y = b;
    if (x->tensor != y->tensor) return x->tensor ? 1 : -1;
    if (x->first != y->first) return x->first > y->first ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* ---- handoffs ---- */

static int by_key(const void *a, const void *b)
{
    const struct sheet_barrier *x = a, *y = b;
    if (x->kind != y->kind) return x->kind > y->kind ? 1 : -1;
    return (x->key > y->key) - (x->key < y->key);
}

static const struct name_range *buffer_at(const struct kernel *k, uint32_t offset)
{
    for (uint32_t i = 0; i < k->buffer_count; i++)
        if (offset >= k->buffers[i].first && offset - k->buffers[i].first < k->buffers[i].count)
            return &k->buffers[i];
    return NULL;
}

/* Elements of one array; without a name, neighbours that do the same. */
static bool belongs(const struct sheet_view *v, const struct view_handoff *h,
                    const struct sheet_barrier *b)
{
    const struct sheet_barrier *a = &h->all;
    const struct name_range *of;
    if (b->kind != BARRIER_MBAR || a->kind != BARRIER_MBAR) return false;
    of = buffer_at(v->kernel, b->key);
    if (of || buffer_at(v->kernel, a->key)) return of == buffer_at(v->kernel, a->key);
    return b->key == a->key + 8 * h->count && b->consumers == a->consumers &&
           !memcmp(&b->count, &a->count, sizeof a->count) &&
           !memcmp(b->producers, a->producers, sizeof a->producers);
}

static void name_handoff(const struct sheet_view *v, struct view_handoff *h)
{
    const struct name_range *of = buffer_at(v->kernel, h->all.key);
    if (h->all.kind == BARRIER_NAMED) {
        snprintf(h->name, sizeof h->name, "barrier %u", h->all.key);
    } else if (h->all.kind == BARRIER_CLUSTER) {
        snprintf(h->name, sizeof h->name, "cluster barrier");
    } else if (of) {
        snprintf(h->name, sizeof h->name, "%s", of->name);
    } else {
        snprintf(h->name, sizeof h->name, "shared+0x%x", h->all.key);
        name_made(v, h->name, h->all.made);
    }
}

static bool find_handoffs(struct sheet_view *v)
{
    struct sheet *s = v->sheet;
    size_t count = s->barrier_map.count;
    v->handoffs = calloc(count + 1, sizeof *v->handoffs);
    if (!v->handoffs) return false;
    if (count) qsort(s->barriers, count, sizeof *s->barriers, by_key);
    for (size_t i = 0; i < count; i++) {
        const struct sheet_barrier *b = &s->barriers[i];
        struct view_handoff *h = v->handoff_count ? &v->handoffs[v->handoff_count - 1] : NULL;
        if (!h || !belongs(v, h, b)) {
            v->handoffs[v->handoff_count++] = (struct view_handoff){.count = 1, .all = *b};
            continue;
        }
        h->count++;
        if (b->made < h->all.made) h->all.made = b->made;
        bounds_merge(&h->all.count, &b->count);
        bounds_merge(&h->all.phases, &b->phases);
        bounds_merge(&h->all.arrivals, &b->arrivals);
        bounds_merge(&h->all.bytes, &b->bytes);
        for (int k = 0; k < AGENTS; k++) h->all.producers[k] |= b->producers[k];
        h->all.consumers |= b->consumers;
    }
    for (uint32_t i = 0; i < v->handoff_count; i++) name_handoff(v, &v->handoffs[i]);
    return true;
}

/* ---- all of it ---- */

static int by_text(const void *a, const void *b)
{
    const struct sheet_count *x = a, *y = b;
    if (x->insn != y->insn) return x->insn > y->insn ? 1 : -1;
    return (x->warp > y->warp) - (x->warp < y->warp);
}

static int by_range(const void *a, const void *b)
{
    const struct sheet_link *x = a, *y = b;
    if (x->by != y->by) return x->by > y->by ? 1 : -1;
    if (x->id != y->id) return x->id > y->id ? 1 : -1;
    return (x->range > y->range) - (x->range < y->range);
}

bool view_open(struct sheet_view *v, struct sheet *s)
{
    *v = (struct sheet_view){.sheet = s, .kernel = s->launch->kernel};
    if (s->count_map.count) qsort(s->counts, s->count_map.count, sizeof *s->counts, by_text);
    if (s->link_map.count) qsort(s->links, s->link_map.count, sizeof *s->links, by_range);
    find_roles(v);
    if (!find_ranges(v, false) || !find_ranges(v, true) || !find_handoffs(v)) return false;
    if (v->range_count) qsort(v->ranges, v->range_count, sizeof *v->ranges, by_place);
    return true;
}

void view_close(struct sheet_view *v)
{
    free(v->ranges);
    free(v->handoffs);
    v->ranges = NULL;
    v->handoffs = NULL;
}
