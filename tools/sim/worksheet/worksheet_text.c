/*
 * A worksheet's rows as JSON lines. Each is an object of texts and numbers alone: "worksheet" names
 * its table, "launch" the launch of the process; the other keys are the table's columns in order.
 */
#include "worksheet/worksheet.h"

#include <inttypes.h>

enum { UNNAMED_ROWS = 64 /* of storage without a name; more are only counted */ };

void put_json(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            putc(*text, out);
    }
    putc('"', out);
}

static void begin(FILE *out, const char *table, uint64_t number)
{
    fprintf(out, "{\"worksheet\":\"%s\",\"launch\":%" PRIu64, table, number);
}

static void put(FILE *out, const char *key, const char *text)
{
    fprintf(out, ",\"%s\":", key);
    put_json(out, text);
}

/* 49152 as "49,152" */
static char *grouped(uint64_t value, char out[32])
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, value), at = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

static char *bounds_text(const struct sheet_bounds *b, char *out, size_t size)
{
    char low[32], high[32];
    if (b->low > b->high)
        snprintf(out, size, "0");
    else if (b->low == b->high)
        snprintf(out, size, "%s", grouped(b->low, low));
    else
        snprintf(out, size, "%s..%s", grouped(b->low, low), grouped(b->high, high));
    return out;
}

/* ---- roles ---- */

/* What a table calls an instruction that a warp executes or issues. */
static void label(const struct insn *in, char *out, size_t size)
{
    const char *name = in->row->name;
    if (in->is.engine == ENGINE_BULK && in->is.moves != MOVES_NOTHING)
        snprintf(out, size, "TMA %s", in->is.moves == MOVES_OUT ? "store" : "load");
    else if (in->is.shown == SHOWN_PART)
        snprintf(out, size, "%s.%s", name, in->src->mods[in->is.part]);
    else if (in->is.shown == SHOWN_SPACE && in->space != SPACE_NONE)
        snprintf(out, size, "%s.%s", name, in->space == SPACE_SHARED ? "shared" : "global");
    else
        snprintf(out, size, "%s", name);
}

/* How often it was executed by all the lanes that ever did: a schedule may split a warp. */
static uint64_t times(const struct sheet_count *c)
{
    uint32_t lanes = (uint32_t)__builtin_popcount(c->lanes);
    return lanes ? (c->lane_steps + lanes - 1) / lanes : 0;
}

static void add_item(char *out, size_t size, const char *what, uint64_t count, uint64_t bytes)
{
    char number[32], moved[32];
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s %s", used ? ", " : "", what, grouped(count, number));
    used = strlen(out);
    if (bytes >= 10240 && bytes % 1024 == 0)
        snprintf(out + used, size - used, " (%s KB)", grouped(bytes / 1024, moved));
    else if (bytes)
        snprintf(out + used, size - used, " (%s B)", grouped(bytes, moved));
}

/* Kinds of instructions in the order in which the text first has them. */
static void does_text(const struct sheet_view *v, const struct view_role *role, char *out,
                      size_t size)
{
    const struct sheet *s = v->sheet;
    size_t n = s->count_map.count;
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        char what[64], other[64];
        uint64_t count = 0, bytes = 0;
        bool known = false;
        if (!(role->warps >> s->counts[i].warp & 1U)) continue;
        label(&v->kernel->insns[s->counts[i].insn], what, sizeof what);
        for (size_t j = 0; j < n && !known; j++) {
            const struct sheet_count *c = &s->counts[j];
            if (!(role->warps >> c->warp & 1U)) continue;
            label(&v->kernel->insns[c->insn], other, sizeof other);
            if (strcmp(what, other)) continue;
            known = j < i;
            count += times(c);
            bytes += c->bytes;
        }
        if (!known) add_item(out, size, what, count, bytes);
    }
}

static void write_roles(const struct sheet_view *v, uint64_t number, FILE *out)
{
    for (uint32_t i = 0; i < v->role_count; i++) {
        const struct view_role *r = &v->roles[i];
        struct sheet_bounds registers = {UINT64_MAX, 0};
        char text[4 * VIEW_TEXT];
        begin(out, "roles", number);
        put(out, "role", r->name);
        put(out, "warps", warps_text(r->warps, text, sizeof text));
        for (uint32_t w = 0; w < CTA_WARPS; w++)
            if (r->warps >> w & 1U) bounds_merge(&registers, &v->sheet->registers[w]);
        put(out, "registers",
            registers.low > registers.high ? "" : bounds_text(&registers, text, sizeof text));
        does_text(v, r, text, sizeof text);
        put(out, "does", text);
        fputs("}\n", out);
    }
}

/* ---- storage ---- */

static bool empty(const struct agents *a)
{
    static const struct agents none;
    return !memcmp(a, &none, sizeof none);
}

static bool holds_barriers(const struct sheet_view *v, const struct view_range *r)
{
    for (size_t i = 0; i < v->sheet->barrier_map.count; i++) {
        const struct sheet_barrier *b = &v->sheet->barriers[i];
        if (b->kind == BARRIER_MBAR && b->key >= r->first &&
            b->key - r->first < r->bytes * r->count)
            return true;
    }
    return false;
}

static void flow_text(const struct sheet_view *v, const struct view_range *r, char *out,
                      size_t size)
{
    char from[VIEW_TEXT], to[VIEW_TEXT];
    agents_text(v, r->agents.warps[1], from, sizeof from);
    agents_text(v, r->agents.warps[0], to, sizeof to);
    snprintf(out, size, "%s -> %s", from[0] ? from : "nobody", to[0] ? to : "nobody");
}

static void write_shared(const struct sheet_view *v, const struct view_range *r, uint64_t number,
                         FILE *out)
{
    const uint32_t dynamic = SHARED_RESERVED + v->kernel->entry->shared_bytes;
    char text[2 * VIEW_TEXT + 16], bytes[32];
    begin(out, "storage", number);
    snprintf(text, sizeof text, r->count > 1 ? "%s[%u]" : "%s", r->name, r->count);
    put(out, "storage", text);
    snprintf(text, sizeof text, r->first < dynamic ? "static+%u" : "%u",
             r->first - (r->first < dynamic ? SHARED_RESERVED : dynamic));
    put(out, "offset", text);
    snprintf(text, sizeof text, "%s%s", grouped(r->bytes, bytes), r->count > 1 ? " ea" : "");
    put(out, "bytes", text);
    flow_text(v, r, text, sizeof text);
    put(out, "writer -> reader", text);
    fputs("}\n", out);
}

static void write_columns(const struct sheet_view *v, const struct view_range *r, uint64_t number,
                          FILE *out)
{
    char text[2 * VIEW_TEXT + 16];
    begin(out, "tmem", number);
    put(out, "TMEM", r->name);
    snprintf(text, sizeof text, "%u-%u", r->first, r->first + r->bytes - 1);
    put(out, "columns", text);
    flow_text(v, r, text, sizeof text);
    put(out, "from -> to", text);
    fputs("}\n", out);
}

static bool listed(const struct sheet_view *v, const struct view_range *r)
{
    return r->tensor || !empty(&r->agents) || !holds_barriers(v, r);
}

static void write_storage(const struct sheet_view *v, uint64_t number, FILE *out)
{
    uint32_t unnamed = 0;
    char text[128], bounds[64];
    for (uint32_t i = 0; i < v->range_count; i++) {
        const struct view_range *r = &v->ranges[i];
        if (!listed(v, r) || (!r->named && ++unnamed > UNNAMED_ROWS)) continue;
        if (r->tensor)
            write_columns(v, r, number, out);
        else
            write_shared(v, r, number, out);
    }
    if (unnamed > UNNAMED_ROWS) {
        snprintf(text, sizeof text, "%u more ranges without a name are not listed",
                 unnamed - UNNAMED_ROWS);
        begin(out, "note", number);
        put(out, "note", text);
        fputs("}\n", out);
    }
    if (v->sheet->tmem_columns.low > v->sheet->tmem_columns.high) return;
    snprintf(text, sizeof text, "an allocation of tensor memory took %s columns",
             bounds_text(&v->sheet->tmem_columns, bounds, sizeof bounds));
    begin(out, "note", number);
    put(out, "note", text);
    fputs("}\n", out);
}

/* ---- what waits are for ---- */

static bool of_range(const struct sheet_link *l, const struct view_range *r)
{
    if (l->tensor != r->tensor || l->named != r->named) return false;
    return l->named ? l->range == r->index : (l->range & 0xFFFFFFU) == (r->made & 0xFFFFFFU);
}

static bool of_handoff(const struct sheet_link *l, const struct view_handoff *h)
{
    switch (l->by) {
    case BY_MBAR:
        return h->all.kind == BARRIER_MBAR && l->id >= h->all.key &&
               l->id < h->all.key + 8 * h->count;
    case BY_NAMED: return h->all.kind == BARRIER_NAMED && l->id == h->all.key;
    case BY_CLUSTER: return h->all.kind == BARRIER_CLUSTER;
    default: return false;
    }
}

/* A wait for the warp's own operations, with its first line: macros repeat them. */
static void own_wait_text(const struct sheet_view *v, size_t link, char *out, size_t size)
{
    const struct sheet_link *l = &v->sheet->links[link];
    const struct insn *in = &v->kernel->insns[l->id];
    uint32_t first = in->src->ptx_pos.line;
    bool more = false;
    for (size_t i = 0; i < v->sheet->link_map.count; i++) {
        const struct sheet_link *o = &v->sheet->links[i];
        const struct insn *other = &v->kernel->insns[o->by == BY_GROUP ? o->id : 0];
        if (o->by != BY_GROUP || o->what != l->what || o->tensor != l->tensor ||
            o->named != l->named || o->range != l->range || other->row != in->row ||
            other->is.sources != in->is.sources || i == link)
            continue;
        more = true;
        if (other->src->ptx_pos.line < first) first = other->src->ptx_pos.line;
    }
    snprintf(out, size, "%s%s (line %u%s)", in->row->name, in->is.sources ? ".read" : "", first,
             more ? " ff." : "");
}

/* The wait of a link: "empty_bar[s]", "cp.async.bulk.wait_group.read (line 245)". */
static void wait_text(const struct sheet_view *v, size_t link, char *out, size_t size)
{
    const struct sheet_link *l = &v->sheet->links[link];
    snprintf(out, size, "%s",
             l->by == BY_OWN ? "the warp's own order" : "no single wait of those who used it");
    if (l->by == BY_GROUP) own_wait_text(v, link, out, size);
    for (uint32_t i = 0; i < v->handoff_count; i++) {
        const struct view_handoff *h = &v->handoffs[i];
        if (of_handoff(l, h)) snprintf(out, size, "%s%s", h->name, h->count > 1 ? "[s]" : "");
    }
}

/* Links come sorted, those without a wait last: they count where they are all there is, else are
 * what tiles cut too coarsely make of neighbours. */
static void waits_text(const struct sheet_view *v, const struct view_range *r, enum link_what what,
                       char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = 0; i < v->sheet->link_map.count; i++) {
        const struct sheet_link *l = &v->sheet->links[i];
        char text[VIEW_NAME + 8];
        if (l->what != what || !of_range(l, r) || (l->by == BY_OTHER && out[0])) continue;
        wait_text(v, i, text, sizeof text);
        join(out, size, text);
    }
}

static void write_lifetimes(const struct sheet_view *v, uint64_t number, FILE *out)
{
    uint32_t unnamed = 0;
    for (uint32_t i = 0; i < v->range_count; i++) {
        const struct view_range *r = &v->ranges[i];
        char text[VIEW_TEXT];
        if (!listed(v, r) || empty(&r->agents) || (!r->named && ++unnamed > UNNAMED_ROWS)) continue;
        begin(out, "lifetimes", number);
        put(out, "buffer", r->name);
        put(out, "written by", agents_text(v, r->agents.warps[1], text, sizeof text));
        waits_text(v, r, LINK_FILLED, text, sizeof text);
        put(out, "readable after", text[0] ? text : "never read after a write");
        waits_text(v, r, LINK_FREED, text, sizeof text);
        put(out, "reusable after", text[0] ? text : "never overwritten after a read");
        fputs("}\n", out);
    }
}

/* ---- handoffs ---- */

static void phase_text(const struct sheet_barrier *b, char *out, size_t size)
{
    const struct sheet_bounds *arrivals =
        b->arrivals.low > b->arrivals.high ? &b->count : &b->arrivals;
    char low[80], high[80];
    bounds_text(arrivals, low, sizeof low);
    snprintf(out, size, "%s arrival%s", low, !strcmp(low, "1") ? "" : "s");
    if (b->bytes.low > b->bytes.high || !b->bytes.high) return;
    snprintf(out + strlen(out), size - strlen(out), " + %s B",
             bounds_text(&b->bytes, high, sizeof high));
}

/* Ranges that this barrier makes readable, or free. */
static void carried_text(const struct sheet_view *v, const struct view_handoff *h,
                         enum link_what what, char *out, size_t size)
{
    out[0] = '\0';
    for (uint32_t i = 0; i < v->range_count; i++) {
        for (size_t j = 0; j < v->sheet->link_map.count; j++) {
            const struct sheet_link *l = &v->sheet->links[j];
            if (l->what == what && of_handoff(l, h) && of_range(l, &v->ranges[i]))
                join(out, size, v->ranges[i].name);
        }
    }
}

static void write_handoffs(const struct sheet_view *v, uint64_t number, FILE *out)
{
    for (uint32_t i = 0; i < v->handoff_count; i++) {
        const struct view_handoff *h = &v->handoffs[i];
        char text[2 * VIEW_TEXT], from[VIEW_TEXT / 2], to[VIEW_TEXT / 2];
        begin(out, "handoffs", number);
        snprintf(text, sizeof text, h->count > 1 ? "%s[%u]" : "%s", h->name, h->count);
        put(out, "barrier", text);
        put(out, "init",
            h->all.kind == BARRIER_MBAR ? bounds_text(&h->all.count, text, sizeof text) : "");
        phase_text(&h->all, text, sizeof text);
        put(out, "a phase is", text);
        agents_text(v, h->all.producers, from, sizeof from);
        roles_text(v, h->all.consumers, to, sizeof to);
        snprintf(text, sizeof text, "%s -> %s", from[0] ? from : "nobody", to[0] ? to : "nobody");
        put(out, "from -> to", text);
        carried_text(v, h, LINK_FILLED, text, sizeof text);
        put(out, "hands over", text);
        carried_text(v, h, LINK_FREED, text, sizeof text);
        put(out, "frees", text);
        put(out, "phases", bounds_text(&h->all.phases, text, sizeof text));
        fputs("}\n", out);
    }
}

void sheet_write(const struct sheet_view *v, uint64_t number, FILE *out)
{
    const struct launch *l = v->sheet->launch;
    const struct ptx_entry *e = v->kernel->entry;
    begin(out, "launch", number);
    put(out, "kernel", e->name);
    put(out, "file", ptx_file(v->kernel->module, e->pos));
    fprintf(out,
            ",\"line\":%u,\"grid\":\"%ux%ux%u\",\"block\":\"%ux%ux%u\",\"cluster\":\"%ux%ux%u\","
            "\"static\":%u,\"dynamic\":%u}\n",
            e->pos.line, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
            l->cluster[0], l->cluster[1], l->cluster[2], e->shared_bytes, l->dynamic_shared);
    write_roles(v, number, out);
    write_storage(v, number, out);
    write_handoffs(v, number, out);
    write_lifetimes(v, number, out);
}
