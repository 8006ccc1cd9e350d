/* Global memory across clusters and launches (launch_memory.h). */
#include "check/launch_memory.h"
#include "check/constant.h"
#include "check/order.h"
#include "check/world.h"
#include "ptx/demangle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAIRS_MOST = 64, PAGES_FIRST = 256, BLOCKS_FIRST = 64 };

/* cluster + 1 << 24 | instruction: lower ones are kept, so a strong read only where there is room. 0: none. */
enum { WHO_CLUSTER = 24, WHO_INSN = (1 << 20) - 1 };
#define WHO_READS_STRONG ((uint64_t)1 << 63)

/* parts: 0, or the block of the four parts of a split piece. */
struct piece {
    uint64_t who[SORTS][2];
    uint32_t parts;
};

struct memory_page {
    uint64_t number; /* address / GLOBAL_PAGE, plus 1; 0: unused */
    struct piece *pieces;
};

struct launch_memory {
    pthread_mutex_t lock;
    struct memory_page *pages; /* open addressing, at most half full */
    uint32_t page_slots, page_count;
    struct piece (*blocks)[CELL_PARTS]; /* [0] unused */
    uint32_t block_count, block_capacity;
    uint64_t bytes, most;
    bool failed, judged; /* judged: of a world */
    bool waited;         /* kernel_waits */
    bool waits;          /* a thread executed griddepcontrol.wait */
    bool holds;          /* a CTA did so before it let the next launch begin */
    bool lets_go;        /* the text has a griddepcontrol.launch_dependents */
    bool cut;            /* of a launch that this one overlapped the record is gone */
    uint32_t shares;     /* owners besides the first */
    struct launch_memory
        *before;  /* of the launch that this one overlapped; NULL: none that matters */
    char *kernel; /* after judging */
    uint32_t *lines, line_count;
    struct stored *stored; /* by instruction; NULL: not kept */
};

struct launch_memory *launch_memory_new(uint64_t most)
{
    struct launch_memory *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->most = most;
    m->block_count = 1;
    if (pthread_mutex_init(&m->lock, NULL) == 0) return m;
    free(m);
    return NULL;
}

void launch_memory_free(struct launch_memory *m)
{
    if (!m) return;
    if (m->shares) {
        m->shares--;
        return;
    }
    launch_memory_free(m->before);
    for (uint32_t i = 0; i < m->page_slots; i++) free(m->pages[i].pieces);
    free(m->pages);
    free(m->blocks);
    free(m->kernel);
    free(m->lines);
    free(m->stored);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

struct launch_memory *launch_memory_share(struct launch_memory *m)
{
    m->shares++;
    return m;
}

/* ---- pages and parts ---- */

static bool room_for(struct launch_memory *m, uint64_t bytes)
{
    if (m->most && m->bytes + bytes > m->most) return false;
    m->bytes += bytes;
    return true;
}

static struct memory_page *page_slot(struct memory_page *pages, uint32_t slots, uint64_t number)
{
    uint32_t i = (uint32_t)(number * 0x9E3779B97F4A7C15ULL >> 40) & (slots - 1);
    while (pages[i].number && pages[i].number != number) i = (i + 1) & (slots - 1);
    return &pages[i];
}

static bool pages_grow(struct launch_memory *m)
{
    uint32_t slots = m->page_slots ? 2 * m->page_slots : PAGES_FIRST;
    struct memory_page *grown;
    if (!room_for(m, (uint64_t)(slots - m->page_slots) * sizeof *grown)) return false;
    grown = calloc(slots, sizeof *grown);
    if (!grown) return false;
    for (uint32_t i = 0; i < m->page_slots; i++) {
        if (m->pages[i].number) *page_slot(grown, slots, m->pages[i].number) = m->pages[i];
    }
    free(m->pages);
    m->pages = grown;
    m->page_slots = slots;
    return true;
}

static struct piece *page_pieces(struct launch_memory *m, uint64_t address)
{
    struct memory_page *page;
    if (2 * (m->page_count + 1) > m->page_slots && !pages_grow(m)) return NULL;
    page = page_slot(m->pages, m->page_slots, address / GLOBAL_PAGE + 1);
    if (page->number) return page->pieces;
    if (!room_for(m, PAGE_CELLS * sizeof *page->pieces)) return NULL;
    page->pieces = calloc(PAGE_CELLS, sizeof *page->pieces);
    if (!page->pieces) return NULL;
    page->number = address / GLOBAL_PAGE + 1;
    m->page_count++;
    return page->pieces;
}

/* Splits `p` into four like it; where blocks move, `p` may have been in one: its place is given by
 * block and part, or by NO_BLOCK and the pointer. */
static uint32_t split(struct launch_memory *m, struct piece like)
{
    if (m->block_count >= m->block_capacity) {
        uint32_t capacity = m->block_capacity ? 2 * m->block_capacity : BLOCKS_FIRST;
        void *grown;
        if (!room_for(m, (uint64_t)(capacity - m->block_capacity) * sizeof *m->blocks)) return 0;
        grown = realloc(m->blocks, capacity * sizeof *m->blocks);
        if (!grown) return 0;
        m->blocks = grown;
        m->block_capacity = capacity;
    }
    for (int i = 0; i < CELL_PARTS; i++) m->blocks[m->block_count][i] = like;
    return m->block_count++;
}

/* ---- taking ---- */

/* Keeps the two lowest of different clusters. */
static void note(uint64_t who[2], uint64_t one)
{
    if (!one) return;
    if (!who[0] || one >> WHO_CLUSTER == who[0] >> WHO_CLUSTER) {
        if (!who[0] || one < who[0]) who[0] = one;
    } else if (one < who[0]) {
        who[1] = who[0];
        who[0] = one;
    } else if (!who[1] || one < who[1]) {
        who[1] = one;
    }
}

/* Bytes of one cell that one cluster accessed in one way. */
struct run {
    uint64_t address;
    uint32_t bytes; /* 0: none */
    enum memory_sort sort;
    uint64_t writer, reader; /* the lowest; 0: none */
};

/* Once the record has so many bytes, what one cluster did in one way to neighbouring bytes is kept as one, with one
 * of the instructions that did it. */
#define COARSE_FROM ((uint64_t)64 << 20)

struct taking {
    struct launch_memory *m;
    const struct world *world; /* NULL: all is `cluster`'s */
    uint32_t cluster;
    const struct kernel *kernel;
    const struct shadow *shadow;
    uint64_t page; /* address / GLOBAL_PAGE, plus 1, of the cell before; 0 none */
    struct piece *pieces;
    struct run run;
};

/* Strong accesses of one cluster and of another do not race if both are of such a scope. */
static bool strong(const struct taking *t, epoch e)
{
    const struct insn *in =
        epoch_insn(e) < t->kernel->insn_count ? &t->kernel->insns[epoch_insn(e)] : NULL;
    return in && in->is.strong && in->is.scope >= SCOPE_GPU;
}

static uint64_t who_is(const struct taking *t, epoch e)
{
    const uint32_t cluster = t->world ? world_actor_of(t->world, e)->cluster : t->cluster;
    return ((uint64_t)cluster + 1) << WHO_CLUSTER | epoch_insn(e);
}

/* One access of a piece of `size` bytes, all of p or a part of it at offset `at`. */
static void put(struct launch_memory *m, struct piece *p, uint32_t whole, uint32_t at,
                uint32_t size, enum memory_sort sort, uint64_t who)
{
    struct piece *part = p;
    uint32_t block = 0, index = 0;
    if (whole == size && !p->parts) {
        note(p->who[sort], who);
        return;
    }
    while (whole > size && whole >= CELL_PARTS) {
        if (!part->parts) {
            uint32_t made = split(m, *part);
            if (!made) {
                m->failed = true;
                return;
            }
            part = block ? &m->blocks[block][index] : p; /* blocks may have moved */
            part->parts = made;
        }
        block = part->parts;
        whole /= CELL_PARTS;
        index = at / whole;
        at %= whole;
        part = &m->blocks[block][index];
    }
    if (!part->parts) {
        note(part->who[sort], who);
        return;
    }
    block = part->parts;
    for (uint32_t i = 0; i < CELL_PARTS; i++)
        put(m, &m->blocks[block][i], whole / CELL_PARTS, 0, whole / CELL_PARTS, sort, who);
}

/* Who is to be noted of a cell's readers: one that reads weakly, else a strong one. */
static uint64_t reader_of(const struct taking *t, uint64_t readers)
{
    uint64_t reads_strong = 0;
    while (readers) {
        const epoch e = shadow_take(t->shadow, &readers);
        if (!strong(t, e)) return who_is(t, e);
        reads_strong = who_is(t, e) | WHO_READS_STRONG;
    }
    return reads_strong;
}

/* The record of the cell around the address; NULL where there is no room. */
static struct piece *piece_at(struct taking *t, uint64_t address)
{
    if (t->page != address / GLOBAL_PAGE + 1) {
        t->page = address / GLOBAL_PAGE + 1;
        t->pieces = page_pieces(t->m, address);
    }
    if (t->pieces) return &t->pieces[address % GLOBAL_PAGE / GLOBAL_CELL];
    t->m->failed = true;
    return NULL;
}

/* Puts the run into the record, by the largest parts that it has. */
static void run_end(struct taking *t)
{
    struct run *r = &t->run;
    struct piece *p = r->bytes ? piece_at(t, r->address) : NULL;
    uint32_t at = (uint32_t)(r->address % GLOBAL_CELL);
    const uint32_t end = at + r->bytes;
    r->bytes = 0;
    while (p && at < end) {
        uint32_t size = GLOBAL_CELL;
        while (at % size || at + size > end) size /= CELL_PARTS;
        if (r->writer) put(t->m, p, GLOBAL_CELL, at, size, r->sort, r->writer);
        if (r->reader) put(t->m, p, GLOBAL_CELL, at, size, SORT_READ, r->reader);
        at += size;
    }
}

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* One cluster's bytes, if they have one writer at most; they may lengthen the run. */
static bool run_take(struct taking *t, uint64_t address, uint32_t bytes, const struct cell *c)
{
    struct run *r = &t->run;
    uint64_t writers = c->write, readers = c->read, writer = 0, reader;
    enum memory_sort sort = SORT_WRITE;
    if (t->world || t->m->bytes < COARSE_FROM) return false;
    if (writers) {
        const epoch e = shadow_take(t->shadow, &writers);
        if (writers) return false;
        writer = who_is(t, e);
        sort = strong(t, e) ? SORT_STRONG : SORT_WRITE;
    }
    reader = reader_of(t, readers);
    if (r->bytes && address == r->address + r->bytes && address % GLOBAL_CELL && sort == r->sort &&
        !writer == !r->writer && !reader == !r->reader) {
        r->bytes += bytes;
        r->writer = lower(r->writer, writer);
        r->reader = lower(r->reader, reader);
        return true;
    }
    run_end(t);
    *r = (struct run){address, bytes, sort, writer, reader};
    return true;
}

static void take_cell(void *context, uint64_t address, uint32_t bytes, const struct cell *c)
{
    struct taking *t = context;
    const uint32_t at = (uint32_t)(address % GLOBAL_CELL);
    struct piece *p;
    uint64_t writers = c->write, readers = c->read;
    if (run_take(t, address, bytes, c)) return;
    run_end(t);
    p = piece_at(t, address);
    if (!p) return;
    while (writers) {
        const epoch e = shadow_take(t->shadow, &writers);
        put(t->m, p, GLOBAL_CELL, at, bytes, strong(t, e) ? SORT_STRONG : SORT_WRITE, who_is(t, e));
        if (t->world) break;
    }
    if (readers) put(t->m, p, GLOBAL_CELL, at, bytes, SORT_READ, reader_of(t, readers));
}

void launch_memory_take(struct launch_memory *m, const struct shadow *s,
                        const struct kernel *kernel, uint32_t cluster)
{
    struct taking t = {.m = m, .cluster = cluster, .kernel = kernel, .shadow = s};
    pthread_mutex_lock(&m->lock);
    shadow_walk(s, take_cell, &t);
    run_end(&t);
    pthread_mutex_unlock(&m->lock);
}

void launch_memory_take_world(struct launch_memory *m, const struct world *w,
                              const struct kernel *kernel)
{
    struct taking t = {.m = m, .world = w, .kernel = kernel, .shadow = &w->shadow};
    m->judged = true;
    shadow_walk(&w->shadow, take_cell, &t);
}

/* ---- judging ---- */

struct pair {
    uint32_t first, second; /* instructions */
    struct finding finding;
};

struct verdicts {
    const struct launch *launch;
    struct pair *pairs;
    uint32_t count;
    bool full;
};

static const struct insn *insn_of(const struct launch *l, uint64_t who)
{
    const uint32_t index = (uint32_t)who & WHO_INSN;
    return index < l->kernel->insn_count ? &l->kernel->insns[index] : NULL;
}

static void cta_of(const struct launch *l, uint64_t who, uint32_t id[3])
{
    const uint32_t linear = (uint32_t)((who >> WHO_CLUSTER) - 1);
    const uint32_t nx = l->grid[0] / l->cluster[0], ny = l->grid[1] / l->cluster[1];
    id[0] = linear % nx * l->cluster[0];
    id[1] = linear / nx % ny * l->cluster[1];
    id[2] = linear / nx / ny * l->cluster[2];
}

static void fill_finding(const struct launch *l, struct finding *f, uint64_t address,
                         uint32_t bytes, uint64_t a, bool a_wrote, uint64_t b, bool b_wrote)
{
    const struct insn *in = insn_of(l, a), *other = insn_of(l, b);
    uint32_t id[3];
    *f = (struct finding){.severity = SEV_ERROR, .kind = FIND_RACE, .warp = -1, .lane = -1};
    f->kernel = l->kernel->entry->name;
    f->group = l->group_count; /* after every group's own */
    f->file = f->instr = "";
    cta_of(l, a, f->cta);
    cta_of(l, b, id);
    if (in) finding_at(f, l->kernel->module, in->src);
    (void)snprintf(f->object, sizeof f->object, "global memory");
    (void)snprintf(f->message, sizeof f->message,
                   "the cluster of CTA (%u,%u,%u) %s %u bytes of global memory (0x%llx) that the "
                   "cluster of CTA (%u,%u,%u) %s at line %u, and nothing orders clusters of one "
                   "launch. Cheapest remedy: atomics, a release and acquire pair of .gpu scope on "
                   "a flag, or two launches.",
                   f->cta[0], f->cta[1], f->cta[2], a_wrote ? "writes" : "reads", bytes,
                   (unsigned long long)address, id[0], id[1], id[2], b_wrote ? "writes" : "reads",
                   other ? other->src->pos.line : 0);
    if (other) {
        f->related_count = 1;
        f->related[0].file = ptx_file(l->kernel->module, other->src->pos);
        f->related[0].line = other->src->pos.line;
        (void)snprintf(f->related[0].note, sizeof f->related[0].note,
                       "the other access, by the cluster of CTA (%u,%u,%u)", id[0], id[1], id[2]);
    }
}

static void found(struct verdicts *v, uint64_t address, uint32_t bytes, uint64_t a, bool a_wrote,
                  uint64_t b, bool b_wrote)
{
    const uint32_t x = (uint32_t)a & WHO_INSN, y = (uint32_t)b & WHO_INSN;
    const uint32_t first = x < y ? x : y, second = x < y ? y : x;
    for (uint32_t i = 0; i < v->count; i++) {
        if (v->pairs[i].first != first || v->pairs[i].second != second) continue;
        v->pairs[i].finding.repeats++;
        return;
    }
    if (v->count == PAIRS_MOST) {
        v->full = true;
        return;
    }
    v->pairs[v->count] = (struct pair){.first = first, .second = second};
    fill_finding(v->launch, &v->pairs[v->count].finding, address, bytes, a, a_wrote, b, b_wrote);
    v->pairs[v->count].finding.seq = v->count;
    v->count++;
}

/* A pair of different clusters, one of each sort. */
static bool clash(struct verdicts *v, uint64_t address, uint32_t bytes, const struct piece *p,
                  enum memory_sort x, enum memory_sort y)
{
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            uint64_t a = p->who[x][i], b = p->who[y][j];
            if (!a || !b || a >> WHO_CLUSTER == b >> WHO_CLUSTER) continue;
            if (x == SORT_READ && a & WHO_READS_STRONG) continue;
            if (x != SORT_READ &&
                same_constant(v->launch->kernel, insn_of(v->launch, a), insn_of(v->launch, b)))
                continue;
            found(v, address, bytes, a, x != SORT_READ, b, y != SORT_READ);
            return true;
        }
    }
    return false;
}

/* Only reads, or only one cluster's accesses: most pieces of most kernels. */
static bool peaceful(const struct piece *p)
{
    uint64_t most = 0, least = UINT64_MAX;
    if (!p->who[SORT_WRITE][0] && !p->who[SORT_STRONG][0]) return true;
    for (int i = 0; i < SORTS; i++) {
        if (p->who[i][1]) return false;
        if (!p->who[i][0]) continue;
        if (p->who[i][0] >> WHO_CLUSTER > most) most = p->who[i][0] >> WHO_CLUSTER;
        if (p->who[i][0] >> WHO_CLUSTER < least) least = p->who[i][0] >> WHO_CLUSTER;
    }
    return most == least;
}

static void judge_piece(struct verdicts *v, const struct launch_memory *m, uint64_t address,
                        uint32_t bytes, const struct piece *p)
{
    if (p->parts) {
        for (uint32_t i = 0; i < CELL_PARTS; i++)
            judge_piece(v, m, address + i * (bytes / CELL_PARTS), bytes / CELL_PARTS,
                        &m->blocks[p->parts][i]);
        return;
    }
    if (peaceful(p)) return;
    (void)(clash(v, address, bytes, p, SORT_WRITE, SORT_WRITE) ||
           clash(v, address, bytes, p, SORT_READ, SORT_WRITE) ||
           clash(v, address, bytes, p, SORT_WRITE, SORT_STRONG) ||
           clash(v, address, bytes, p, SORT_READ, SORT_STRONG));
}

static int by_number(const void *pa, const void *pb)
{
    const struct memory_page *a = pa, *b = pb;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Names survive the module. */
static void keep_names(struct launch_memory *m, const struct launch *l)
{
    char name[DEMANGLED_BYTES];
    m->kernel = strdup(demangle(l->kernel->entry->name, name, sizeof name));
    m->waited = kernel_waits(l->kernel);
    m->lines = calloc(l->kernel->insn_count + 1, sizeof *m->lines);
    if (!m->kernel || !m->lines) return;
    m->line_count = l->kernel->insn_count;
    for (uint32_t i = 0; i < m->line_count; i++) {
        const struct insn *in = &l->kernel->insns[i];
        m->lines[i] = in->src->pos.line;
        m->lets_go |= in->is.class == INSN_GRID && in->is.waits != WAITS_GRID;
    }
}

static void report_limit(const struct launch *l, const char *what)
{
    struct finding f = {.severity = SEV_WARNING, .kind = FIND_UNSUPPORTED, .warp = -1, .lane = -1};
    f.kernel = l->kernel->entry->name;
    f.file = f.instr = "";
    f.group = l->group_count;
    f.seq = PAIRS_MOST;
    (void)snprintf(f.message, sizeof f.message,
                   "the order of accesses of different clusters was checked only up to a point: "
                   "%s ran out",
                   what);
    sim_report(l, &f);
}

void launch_memory_judge(struct launch_memory *m, const struct launch *l)
{
    struct verdicts v = {.launch = l, .pairs = calloc(PAIRS_MOST, sizeof *v.pairs)};
    if (!v.pairs) {
        report_limit(l, "host memory");
        return;
    }
    /* By address, so that the piece that is cited does not depend on the table. */
    if (m->page_slots) qsort(m->pages, m->page_slots, sizeof *m->pages, by_number);
    for (uint32_t i = 0; i < m->page_slots && !m->judged; i++) {
        for (uint32_t j = 0; m->pages[i].number && j < PAGE_CELLS; j++)
            judge_piece(&v, m, (m->pages[i].number - 1) * GLOBAL_PAGE + (uint64_t)j * GLOBAL_CELL,
                        GLOBAL_CELL, &m->pages[i].pieces[j]);
    }
    for (uint32_t i = 0; i < v.count; i++) sim_report(l, &v.pairs[i].finding);
    if (m->failed) report_limit(l, m->most ? "room for the record" : "host memory");
    if (v.full) report_limit(l, "room for findings");
    free(v.pairs);
    keep_names(m, l);
}

/* ---- for the next launch ---- */

const char *launch_memory_kernel(const struct launch_memory *m)
{
    return m->kernel ? m->kernel : "";
}

bool launch_memory_waited(const struct launch_memory *m)
{
    return m->waited;
}

void launch_memory_constants(struct launch_memory *m, const struct kernel *kernel)
{
    if (!m->stored) m->stored = stored_constants(kernel);
}

/* A writer of the sort that writes something else than the access; 0: none. */
static uint64_t writer_beside(const struct launch_memory *m, const uint64_t who[2],
                              const struct launch_access *a)
{
    for (int i = 0; i < 2; i++) {
        const uint32_t insn = (uint32_t)who[i] & WHO_INSN;
        if (!who[i]) continue;
        if (!a->stores || !m->stored || insn >= m->line_count ||
            !same_stored(a->stores, &m->stored[insn]))
            return who[i];
    }
    return 0;
}

static uint64_t someone(const struct launch_memory *m, const struct piece *p, uint32_t whole,
                        uint32_t from, uint32_t to, const struct launch_access *a, bool *wrote)
{
    const uint32_t part = whole / CELL_PARTS;
    uint64_t who = 0;
    if (!p->parts) {
        *wrote = true;
        who = writer_beside(m, p->who[SORT_WRITE], a);
        if (!who && !a->strong) who = writer_beside(m, p->who[SORT_STRONG], a);
        if (who || !a->write) return who;
        *wrote = false;
        who = p->who[SORT_READ][0];
        return a->strong && who & WHO_READS_STRONG ? 0 : who;
    }
    for (uint32_t i = 0; i < CELL_PARTS && !who; i++) {
        uint32_t low = i * part, high = low + part;
        if (from >= high || to <= low) continue;
        who = someone(m, &m->blocks[p->parts][i], part, from > low ? from - low : 0,
                      to < high ? to - low : part, a, wrote);
    }
    return who;
}

static uint64_t address_of(const struct memory_page *page)
{
    return (page->number - 1) * GLOBAL_PAGE;
}

/* The pages are sorted: launch_memory_judge has run. The first that does not end before the address. */
static uint32_t page_from(const struct launch_memory *m, uint64_t address)
{
    const uint64_t number = address / GLOBAL_PAGE + 1;
    uint32_t low = 0, high = m->page_slots;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (m->pages[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Who conflicts in bytes [from, to) of the page. */
static uint64_t someone_in(const struct launch_memory *m, const struct memory_page *page,
                           uint64_t from, uint64_t to, const struct launch_access *a, bool *wrote)
{
    uint64_t who = 0;
    for (uint64_t at = from - address_of(page); !who && at < to - address_of(page);) {
        const uint64_t low = at / GLOBAL_CELL * GLOBAL_CELL, high = low + GLOBAL_CELL;
        const uint64_t end = to - address_of(page) < high ? to - address_of(page) : high;
        who = someone(m, &page->pieces[low / GLOBAL_CELL], GLOBAL_CELL, (uint32_t)(at - low),
                      (uint32_t)(end - low), a, wrote);
        at = high;
    }
    return who;
}

uint32_t launch_memory_line(const struct launch_memory *m, const struct launch_access *a,
                            bool *wrote)
{
    const uint64_t end = a->address + a->bytes;
    for (uint32_t i = page_from(m, a->address); i < m->page_slots; i++) {
        const uint64_t page = address_of(&m->pages[i]);
        uint64_t who;
        if (page >= end) break;
        who = someone_in(m, &m->pages[i], a->address > page ? a->address : page,
                         end < page + GLOBAL_PAGE ? end : page + GLOBAL_PAGE, a, wrote);
        if (who) return (who & WHO_INSN) < m->line_count ? m->lines[who & WHO_INSN] : 1;
    }
    return 0;
}

uint64_t launch_memory_written(const struct launch_memory *m, uint64_t address)
{
    const struct launch_access reads = {.address = address};
    bool wrote;
    for (uint32_t i = page_from(m, address); i < m->page_slots; i++) {
        const uint64_t page = address_of(&m->pages[i]), end = page + GLOBAL_PAGE;
        for (uint64_t at = address > page ? address : page; at < end;) {
            const uint64_t cell = (at / GLOBAL_CELL + 1) * GLOBAL_CELL;
            if (!someone_in(m, &m->pages[i], at, cell, &reads, &wrote)) {
                at = cell;
                continue;
            }
            while (!someone_in(m, &m->pages[i], at, at + 1, &reads, &wrote)) at++;
            return at;
        }
    }
    return UINT64_MAX;
}

/* ---- launches that overlap ---- */

void launch_memory_waits(struct launch_memory *m)
{
    pthread_mutex_lock(&m->lock);
    m->waits = true;
    pthread_mutex_unlock(&m->lock);
}

void launch_memory_holds(struct launch_memory *m)
{
    pthread_mutex_lock(&m->lock);
    m->holds = true;
    pthread_mutex_unlock(&m->lock);
}

/* Of two neighbours the later one is over, or has only let its next launch begin. Is the earlier one over? */
static bool before_is_over(const struct launch_memory *m, bool over)
{
    return !m->before->lets_go || (over ? m->waits : m->holds);
}

uint32_t launch_memory_beside(const struct launch_memory *before, bool waited,
                              const struct launch_memory *running[BESIDE_MOST], bool *beyond)
{
    bool over = waited;
    uint32_t count = 0;
    *beyond = false;
    for (const struct launch_memory *m = before; m; m = m->before) {
        if (!over && count < BESIDE_MOST) running[count++] = m;
        if (!m->before) {
            *beyond = m->cut && !(over ? m->waits : m->holds);
            break;
        }
        over = before_is_over(m, over);
    }
    return count;
}

/* Whether an access of the launch behind `m` may meet one of a launch ahead of it. */
static bool before_matters(const struct launch_memory *m)
{
    const struct launch_memory *running[BESIDE_MOST];
    bool beyond;
    return launch_memory_beside(m, false, running, &beyond) > 1 || beyond ||
           launch_memory_beside(m, true, running, &beyond) || beyond;
}

/* A launch that is over may have one before it that is not: they are looked at as far as BESIDE_MOST. */
void launch_memory_behind(struct launch_memory *m, struct launch_memory *before)
{
    uint32_t kept = 1;
    if (!m) {
        launch_memory_free(before);
        return;
    }
    m->before = before;
    for (struct launch_memory *at = m; at; at = at->before) {
        const bool matters = before_matters(at);
        if (matters && kept++ < BESIDE_MOST) continue;
        at->cut |= matters && at->before;
        launch_memory_free(at->before);
        at->before = NULL;
    }
}
