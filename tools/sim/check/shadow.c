/* Shadow memory (shadow.h). */
#include "check/shadow.h"

#include <stdlib.h>
#include <string.h>

enum { COLLECT_FIRST = 1 << 15, BLOCKS_FIRST = 64, READERS_FIRST = 256, PAGES_FIRST = 64 };

/* Codes beside epochs: the component that none has, and an index. */
#define CODE ((uint64_t)(COMPONENT_MAX + 1) << (EPOCH_NUMBER_BITS + EPOCH_INSN_BITS))

static bool coded(uint64_t v)
{
    return v >= CODE;
}
static uint32_t code_index(uint64_t v)
{
    return (uint32_t)v;
}

/* ---- memory ---- */

static void *grow(struct shadow *s, void *old, uint32_t *capacity, uint32_t first, size_t size)
{
    uint32_t wanted = *capacity ? 2 * *capacity : first;
    uint64_t more = (uint64_t)(wanted - *capacity) * size;
    void *grown;
    if ((s->most && s->bytes + more > s->most) || wanted <= *capacity) return NULL;
    grown = realloc(old, wanted * size);
    if (!grown) return NULL;
    s->bytes += more;
    *capacity = wanted;
    return grown;
}

bool shadow_adopt(struct shadow *s, struct cell *cells, uint32_t count)
{
    if (s->array_count == s->array_capacity) {
        void *grown = grow(s, s->arrays, &s->array_capacity, 8, sizeof *s->arrays);
        if (!grown) return false;
        s->arrays = grown;
    }
    s->arrays[s->array_count].cells = cells;
    s->arrays[s->array_count++].count = count;
    return true;
}

void shadow_reset(struct shadow *s)
{
    for (uint32_t i = 0; i < s->page_slots; i++) {
        free(s->pages[i].cells);
        s->pages[i] = (struct shadow_page){0};
    }
    s->bytes -= (uint64_t)s->page_count * PAGE_CELLS * sizeof(struct cell);
    s->page_count = 0;
    s->last = (struct shadow_page){0};
    s->reader_count = s->block_count = 1;
    s->reader_free = s->reader_live = s->block_free = 0;
}

void shadow_free(struct shadow *s)
{
    for (uint32_t i = 0; i < s->page_slots; i++) free(s->pages[i].cells);
    free(s->pages);
    free(s->readers);
    free(s->blocks);
    free(s->arrays);
    *s = (struct shadow){0};
}

/* ---- pages ---- */

static struct shadow_page *page_slot(struct shadow_page *pages, uint32_t slots, uint64_t number)
{
    uint32_t i = (uint32_t)(number * 0x9E3779B97F4A7C15ULL >> 40) & (slots - 1);
    while (pages[i].number && pages[i].number != number) i = (i + 1) & (slots - 1);
    return &pages[i];
}

static bool pages_grow(struct shadow *s)
{
    uint32_t slots = s->page_slots ? 2 * s->page_slots : PAGES_FIRST;
    struct shadow_page *grown = calloc(slots, sizeof *grown);
    if (!grown) return false;
    for (uint32_t i = 0; i < s->page_slots; i++) {
        if (s->pages[i].number) *page_slot(grown, slots, s->pages[i].number) = s->pages[i];
    }
    free(s->pages);
    s->bytes += (uint64_t)(slots - s->page_slots) * sizeof *grown;
    s->pages = grown;
    s->page_slots = slots;
    return true;
}

struct cell *shadow_page(struct shadow *s, uint64_t address)
{
    const uint64_t number = address / GLOBAL_PAGE + 1, room = PAGE_CELLS * sizeof(struct cell);
    struct shadow_page *page;
    if (s->last.number == number) return s->last.cells;
    if (2 * (s->page_count + 1) > s->page_slots && !pages_grow(s)) {
        s->failed = true;
        return NULL;
    }
    page = page_slot(s->pages, s->page_slots, number);
    if (!page->number) {
        if (!s->most || s->bytes + room <= s->most)
            page->cells = calloc(PAGE_CELLS, sizeof *page->cells);
        if (!page->cells) {
            s->failed = true;
            return NULL;
        }
        page->number = number;
        s->page_count++;
        s->bytes += room;
    }
    s->last = *page;
    return page->cells;
}

/* ---- lists of readers ---- */

static uint32_t reader_new(struct shadow *s, epoch by, uint32_t next)
{
    uint32_t i = s->reader_free;
    if (i) {
        s->reader_free = s->readers[i].next;
    } else {
        if (!s->reader_count) s->reader_count = 1;
        if (s->reader_count >= s->reader_capacity) {
            void *grown =
                grow(s, s->readers, &s->reader_capacity, READERS_FIRST, sizeof *s->readers);
            if (!grown) {
                s->failed = true;
                return 0;
            }
            s->readers = grown;
        }
        i = s->reader_count++;
    }
    s->readers[i] = (struct shadow_reader){.by = by, .next = next};
    s->reader_live++;
    return i;
}

/* The readers of `set` whom the newcomer need not stand in for, and the newcomer: whoever is ordered
 * after it is ordered after those it knows. */
static uint64_t reader_add(struct touch *t, uint64_t set)
{
    struct shadow *s = t->shadow;
    uint32_t list = 0, i = coded(set) ? code_index(set) : 0;
    struct shadow_reader one = {.by = coded(set) ? 0 : set};
    if (!set) return t->self;
    if (i) one = s->readers[i];
    for (;;) {
        if (epoch_component(one.by) == epoch_component(t->self)) {
            if (epoch_number(one.by) == epoch_number(t->self)) return set;
        } else if (!clock_knows(&t->now->known, one.by)) {
            list = reader_new(s, one.by, list);
        }
        if (!one.next) break;
        one = s->readers[one.next];
    }
    if (!list) return t->self;
    list = reader_new(s, t->self, list);
    return list ? CODE | list : t->self;
}

epoch shadow_a_reader(const struct shadow *s, const struct cell *c)
{
    return coded(c->read) ? s->readers[code_index(c->read)].by : c->read;
}

static void mark(struct shadow *s, const struct cell *c)
{
    if (coded(c->write)) {
        for (int i = 0; i < CELL_PARTS; i++) mark(s, &s->blocks[code_index(c->write)][i]);
        return;
    }
    if (!coded(c->read)) return;
    for (uint32_t i = code_index(c->read); i && !s->readers[i].marked; i = s->readers[i].next)
        s->readers[i].marked = true;
}

bool shadow_collect(struct shadow *s)
{
    if (!s->collect_at) s->collect_at = COLLECT_FIRST;
    if (s->reader_live < s->collect_at) return false;
    for (uint32_t i = 0; i < s->page_slots; i++) {
        for (uint32_t j = 0; s->pages[i].number && j < PAGE_CELLS; j++)
            mark(s, &s->pages[i].cells[j]);
    }
    for (uint32_t i = 0; i < s->array_count; i++) {
        for (uint32_t j = 0; j < s->arrays[i].count; j++) mark(s, &s->arrays[i].cells[j]);
    }
    s->reader_free = s->reader_live = 0;
    for (uint32_t i = 1; i < s->reader_count; i++) {
        struct shadow_reader *r = &s->readers[i];
        if (r->marked) {
            r->marked = false;
            s->reader_live++;
        } else {
            r->next = s->reader_free;
            s->reader_free = i;
        }
    }
    /* Next time when as many again have come, and no sooner than a walk over all cells is worth. */
    s->collect_at = COLLECT_FIRST + 2 * s->reader_live + s->page_count * PAGE_CELLS;
    return true;
}

/* ---- split cells ---- */

static uint32_t block_new(struct shadow *s, struct cell like)
{
    uint32_t i = s->block_free;
    if (i && s->blocks) {
        s->block_free = code_index(s->blocks[i][0].write);
    } else {
        if (!s->block_count) s->block_count = 1;
        if (!s->blocks || s->block_count >= s->block_capacity) {
            void *grown = grow(s, s->blocks, &s->block_capacity, BLOCKS_FIRST, sizeof *s->blocks);
            if (!grown) {
                s->failed = true;
                return 0;
            }
            s->blocks = grown;
        }
        i = s->block_count++;
    }
    for (int j = 0; j < CELL_PARTS; j++) s->blocks[i][j] = like;
    return i;
}

static void block_free(struct shadow *s, uint32_t i)
{
    s->blocks[i][0].write = CODE | s->block_free;
    s->block_free = i;
}

/* ---- touching ---- */

static enum standing stand(struct touch *t, epoch prior, bool wrote)
{
    if (epoch_component(prior) == epoch_component(t->self) &&
        !(t->copies && t->write && wrote && epoch_number(prior) == epoch_number(t->self)))
        return STANDING_ORDERED;
    if (clock_knows(t->needs, prior)) return STANDING_ORDERED;
    return t->judge(t, prior, wrote);
}

/* A write after reads: each must be over; and where one of them is, so is the write it saw. */
static bool judge_readers(struct touch *t, const struct cell *c)
{
    const struct shadow *s = t->shadow;
    bool covered = false;
    uint32_t i = coded(c->read) ? code_index(c->read) : 0;
    t->replaces = c->write;
    if (!i) return c->read && stand(t, c->read, false) == STANDING_ORDERED;
    for (; i; i = s->readers[i].next)
        covered |= stand(t, s->readers[i].by, false) == STANDING_ORDERED;
    return covered;
}

static struct cell judge_cell(struct touch *t, struct cell c)
{
    bool covered = t->write && judge_readers(t, &c);
    if (c.write && !covered) (void)stand(t, c.write, true);
    if (t->write) return (struct cell){.write = t->self};
    c.read = reader_add(t, c.read);
    return c;
}

static struct touch_memo *memo_of(struct touch *t, struct cell c)
{
    uint64_t h = (c.write + 0x9E3779B97F4A7C15ULL * c.read) * 0xD1B54A32D192ED03ULL;
    return &t->memo[h >> 61];
}

static struct cell outcome(struct touch *t, struct cell c)
{
    struct touch_memo *m = memo_of(t, c);
    t->unwritten |= !c.write;
    t->written |= c.write != 0;
    if (m->used && m->was.write == c.write && m->was.read == c.read) return m->becomes;
    *m = (struct touch_memo){.was = c, .becomes = judge_cell(t, c), .used = true};
    return m->becomes;
}

static void touch_part(struct touch *t, struct cell *c, uint32_t size, uint32_t from, uint32_t to);

/* Bytes [from, to) of the parts of a split cell; joined again when they are all alike. */
static void touch_parts(struct touch *t, struct cell *c, uint32_t size, uint32_t from, uint32_t to)
{
    const uint32_t block = code_index(c->write), part = size / CELL_PARTS;
    struct cell *parts;
    for (uint32_t i = 0; i < CELL_PARTS; i++) {
        uint32_t low = i * part, high = low + part;
        if (from >= high || to <= low) continue;
        touch_part(t, &t->shadow->blocks[block][i], part, from > low ? from - low : 0,
                   to < high ? to - low : part);
    }
    parts = t->shadow->blocks[block];
    if (coded(parts[0].write)) return;
    for (uint32_t i = 1; i < CELL_PARTS; i++) {
        if (parts[i].write != parts[0].write || parts[i].read != parts[0].read) return;
    }
    *c = parts[0];
    block_free(t->shadow, block);
}

/* `c` may lie in a block: blocks can move while parts are made, so it is found again after. */
static void touch_part(struct touch *t, struct cell *c, uint32_t size, uint32_t from, uint32_t to)
{
    struct shadow *s = t->shadow;
    const bool whole = from == 0 && to == size;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a split cell has its block */
    struct cell was = *c, next;
    struct cell copy;
    const ptrdiff_t in_block =
        s->blocks && c >= s->blocks[0] && c < s->blocks[s->block_count] ? c - s->blocks[0] : -1;
    if (!coded(was.write)) {
        next = outcome(t, was);
        if (whole || (next.write == was.write && next.read == was.read)) {
            *c = next;
            return;
        }
        copy.write = block_new(s, was);
        if (!copy.write) return;
        copy.write |= CODE;
        copy.read = 0;
    } else {
        copy = was;
    }
    touch_parts(t, &copy, size, from, to);
    if (in_block >= 0) c = s->blocks[0] + in_block;
    *c = copy;
}

void shadow_touch_cells(struct touch *t, struct cell *cells, uint32_t count)
{
    struct cell was = {0}, becomes = {0};
    bool known = false;
    for (uint32_t i = 0; i < count; i++) {
        struct cell *c = &cells[i];
        if (known && c->write == was.write && c->read == was.read) {
            *c = becomes;
            continue;
        }
        if (coded(c->write)) {
            touch_part(t, c, CELL_PARTS, 0, CELL_PARTS);
            continue;
        }
        was = *c;
        becomes = *c = outcome(t, was);
        known = true;
    }
}

void shadow_touch(struct touch *t, struct cell *cells, uint32_t size, uint64_t first,
                  uint64_t bytes, uint64_t base)
{
    const uint64_t end = first + bytes;
    struct cell was = {0}, becomes = {0};
    bool known = false;
    for (uint64_t at = first; at < end;) {
        struct cell *c = &cells[at / size];
        const uint64_t low = at / size * size, high = low + size;
        if (known && at == low && end >= high && c->write == was.write && c->read == was.read) {
            *c = becomes;
        } else {
            t->at = base + at;
            was = *c;
            touch_part(t, c, size, (uint32_t)(at - low),
                       (uint32_t)((end < high ? end : high) - low));
            becomes = *c;
            known = at == low && end >= high && !coded(was.write);
        }
        at = high;
    }
}

/* ---- walking ---- */

struct walk {
    const struct shadow *shadow;
    void (*each)(void *context, uint64_t address, uint32_t bytes, const struct cell *c);
    void *context;
};

static void walk_cell(const struct walk *w, uint64_t address, uint32_t bytes, const struct cell *c)
{
    if (!coded(c->write)) {
        if (c->write || c->read) w->each(w->context, address, bytes, c);
        return;
    }
    for (uint32_t i = 0; i < CELL_PARTS; i++)
        walk_cell(w, address + i * (bytes / CELL_PARTS), bytes / CELL_PARTS,
                  &w->shadow->blocks[code_index(c->write)][i]);
}

void shadow_walk(const struct shadow *s,
                 void (*each)(void *context, uint64_t address, uint32_t bytes,
                              const struct cell *c),
                 void *context)
{
    const struct walk w = {s, each, context};
    for (uint32_t i = 0; i < s->page_slots; i++) {
        for (uint32_t j = 0; s->pages[i].number && j < PAGE_CELLS; j++)
            walk_cell(&w, (s->pages[i].number - 1) * GLOBAL_PAGE + (uint64_t)j * GLOBAL_CELL,
                      GLOBAL_CELL, &s->pages[i].cells[j]);
    }
}
