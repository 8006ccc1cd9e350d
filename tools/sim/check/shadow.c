/* Shadow memory (shadow.h). */
#include "check/shadow.h"

#include <stdlib.h>
#include <string.h>

enum { COLLECT_FIRST = 1 << 15, BLOCKS_FIRST = 64, READERS_FIRST = 256, PAGES_FIRST = 64 };
/* Lists longer than the first are filtered when they have doubled; none is longer than the second. */
enum { FILTER_FIRST = 64, LIST_MOST = 1 << 14 };

/* Codes beside epochs: the component that none has, and an index; of lists what they are, and whether
 * weak or strong accesses found no room in them. */
#define CODE        ((uint64_t)(COMPONENT_MAX + 1) << (EPOCH_NUMBER_BITS + EPOCH_INSN_BITS))
#define LIST        ((uint64_t)1 << 40)
#define MORE_WEAK   ((uint64_t)1 << 41)
#define MORE_STRONG ((uint64_t)1 << 42)
#define MORE        (MORE_WEAK | MORE_STRONG)

static bool coded(uint64_t v)
{
    return v >= CODE;
}
static bool split(uint64_t write)
{
    return coded(write) && !(write & LIST);
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

struct cell *shadow_page_there(const struct shadow *s, uint64_t address)
{
    return s->page_slots ? page_slot(s->pages, s->page_slots, address / GLOBAL_PAGE + 1)->cells
                         : NULL;
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

/* ---- sets of accesses ---- */

epoch shadow_take(const struct shadow *s, uint64_t *set)
{
    const epoch one = *set;
    const struct shadow_reader *r;
    if (!coded(one)) {
        *set = 0;
        return one;
    }
    r = &s->readers[code_index(one)];
    *set = r->next ? CODE | LIST | r->next : 0;
    return r->by;
}

static uint32_t reader_place(struct shadow *s)
{
    uint32_t i = s->reader_free;
    if (i) {
        s->reader_free = s->readers[i].next;
        return i;
    }
    if (!s->reader_count) s->reader_count = 1;
    if (s->reader_count >= s->reader_capacity) {
        void *grown = grow(s, s->readers, &s->reader_capacity, READERS_FIRST, sizeof *s->readers);
        if (!grown) {
            s->failed = true;
            return 0;
        }
        s->readers = grown;
    }
    return s->reader_count++;
}

/* `by` in front of the list `next` (0: none). 0: no memory. */
static uint32_t reader_new(struct touch *t, epoch by, uint32_t next)
{
    struct shadow *s = t->shadow;
    const uint32_t i = reader_place(s), weak = !t->is_strong(t, by);
    if (!i) return 0;
    s->readers[i] = (struct shadow_reader){
        .by = by, .next = next, .length = 1, .is_weak = weak & 1U, .weak = weak};
    if (next) {
        s->readers[i].length += s->readers[next].length;
        s->readers[i].weak += s->readers[next].weak;
        s->readers[i].filter_at = s->readers[next].filter_at;
    }
    s->reader_live++;
    return i;
}

static bool knows(const struct touch *t, epoch prior, bool needed)
{
    if (t->knows) return t->knows(t, prior, needed);
    return clock_knows(needed ? t->needs : &t->now->known, prior);
}

/* Whether an access must be kept beside the newcomer: whoever is ordered after that one is ordered after
 * those it knows. But what is strong need not be ordered after a strong newcomer, and may race with a
 * weak access that this one knows; and of one warp's atomics each kind counts (touch.reads_strong). */
static bool stays(const struct touch *t, epoch one, bool weak)
{
    const bool own = epoch_component(one) == epoch_component(t->self);
    if (!own && !knows(t, one, false)) return true;
    if (own && t->write && epoch_insn(one) != epoch_insn(t->self)) return t->strong;
    return t->strong && weak;
}

/* The same action, which already says all. */
static bool stands_in(const struct touch *t, epoch one, bool weak)
{
    if ((one ^ t->self) >> EPOCH_INSN_BITS != 0) return false;
    if (t->write && epoch_insn(one) != epoch_insn(t->self)) return false;
    return t->strong || weak;
}

/* What a newcomer is to a set: nothing new; or its members all stay, or not all. A read of before the newest write
 * does not stand in for one that has seen that write. */
enum scan { SCAN_THERE, SCAN_ALL_STAY, SCAN_SOME_GO };

static enum scan set_scan(const struct touch *t, uint64_t set)
{
    bool all = true;
    if (!coded(set)) {
        const bool weak = !t->is_strong(t, set);
        return stands_in(t, set, weak) ? SCAN_THERE
               : stays(t, set, weak)   ? SCAN_ALL_STAY
                                       : SCAN_SOME_GO;
    }
    for (uint32_t i = code_index(set); i;) {
        const struct shadow_reader *r = &t->shadow->readers[i];
        if (!r->older && stands_in(t, r->by, r->is_weak)) return SCAN_THERE;
        all = all && stays(t, r->by, r->is_weak);
        i = r->next;
    }
    return all ? SCAN_ALL_STAY : SCAN_SOME_GO;
}

/* The first member was there before the newest write; so were those behind it. */
static bool set_older(const struct shadow *s, uint64_t set)
{
    return coded(set) && s->readers[code_index(set)].older;
}

/* A list of the same members in the same order on top of another one. */
static uint32_t list_of(struct touch *t, const epoch *members, uint32_t count, bool older,
                        uint32_t list)
{
    while (count) {
        list = reader_new(t, members[--count], list);
        if (list) t->shadow->readers[list].older = older;
    }
    return list;
}

/* The members of a set that stay, as a list, the newest first. */
static uint32_t set_filter(struct touch *t, uint64_t set)
{
    epoch kept[LIST_MOST];
    uint32_t count = 0, newer = 0, list;
    while (set && count < LIST_MOST) {
        const bool older = set_older(t->shadow, set);
        const epoch one = shadow_take(t->shadow, &set);
        if (!stays(t, one, !t->is_strong(t, one))) continue;
        kept[count++] = one;
        if (!older) newer = count;
    }
    list = list_of(t, kept + newer, count - newer, true, 0);
    return list_of(t, kept, newer, false, list);
}

/* A set as it is kept: of one, that one alone. */
static uint64_t set_of(const struct shadow *s, uint32_t list, uint64_t more)
{
    if (!list) return 0;
    if (s->readers[list].length == 1 && !more) return s->readers[list].by;
    return CODE | LIST | more | list;
}

/* The set, less those for whom the newcomer stands in, and the newcomer. */
static uint64_t set_add(struct touch *t, uint64_t set)
{
    struct shadow *s = t->shadow;
    const uint32_t head = coded(set) ? code_index(set) : 0;
    const uint64_t more = coded(set) ? set & MORE : 0;
    uint32_t list = head, filter_at = head ? s->readers[head].filter_at : 0;
    if (!set) return t->self;
    if (head && s->readers[head].length >= LIST_MOST)
        return set | (t->strong ? MORE_STRONG : MORE_WEAK);
    if (head && s->readers[head].length < s->readers[head].filter_at) {
        if (!set_older(s, set) && stands_in(t, s->readers[head].by, s->readers[head].is_weak))
            return set;
    } else {
        const enum scan scan = set_scan(t, set);
        if (scan == SCAN_THERE) return set;
        if (!head || scan == SCAN_SOME_GO) list = set_filter(t, set);
        if (!list && !more) return t->self;
        filter_at = 0;
        if (list)
            filter_at = s->readers[list].length < FILTER_FIRST ? 0 : 2 * s->readers[list].length;
    }
    list = reader_new(t, t->self, list);
    if (!list) return t->self;
    s->readers[list].filter_at = filter_at;
    return set_of(s, list, more);
}

/* What a strong write leaves of the reads before it: they are older than it. */
static uint64_t set_keep(struct touch *t, uint64_t set)
{
    const uint64_t more = coded(set) ? set & MORE : 0;
    epoch kept[LIST_MOST];
    uint32_t count = 0;
    while (set && !set_older(t->shadow, set) && count < LIST_MOST) {
        const epoch one = shadow_take(t->shadow, &set);
        if (stays(t, one, !t->is_strong(t, one))) kept[count++] = one;
    }
    count = list_of(t, kept, count, true, coded(set) ? code_index(set) : 0);
    return count ? CODE | LIST | more | count : 0;
}

static void mark_set(struct shadow *s, uint64_t set)
{
    if (!coded(set)) return;
    for (uint32_t i = code_index(set); i && !s->readers[i].marked; i = s->readers[i].next)
        s->readers[i].marked = true;
}

static void mark(struct shadow *s, const struct cell *c)
{
    if (split(c->write)) {
        for (int i = 0; i < CELL_PARTS; i++) mark(s, &s->blocks[code_index(c->write)][i]);
        return;
    }
    mark_set(s, c->write);
    mark_set(s, c->read);
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
    s->collections++;
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

/* A word as it is in memory: the compiler must not make one load of two words that were just stored one by one, for
 * such a load waits until both stores have left the core. */
static uint64_t word_of(const uint64_t *p)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): callers pass words of cells, and a split cell has its block */
    return *(const volatile uint64_t *)p;
}

static enum standing stand(struct touch *t, epoch prior, bool wrote)
{
    if (epoch_component(prior) == epoch_component(t->self) && !(t->asks_own && wrote) &&
        !t->asks_queue &&
        !(t->copies && t->write && wrote && epoch_number(prior) == epoch_number(t->self))) {
        if (t->unordered && t->write && wrote && !knows(t, prior, true)) t->overtakes = prior;
        return STANDING_ORDERED;
    }
    if (knows(t, prior, true)) return STANDING_ORDERED;
    return t->judge(t, prior, wrote);
}

/* Nothing in a set can race with a strong access, and it is too long to look all the same. */
static bool all_strong(const struct touch *t, uint64_t set)
{
    const struct shadow_reader *r = coded(set) ? &t->shadow->readers[code_index(set)] : NULL;
    return t->strong && r && !r->weak && r->length >= FILTER_FIRST;
}

/* A write after reads: each must be over; and where one of them is that came after the writes, so are these:
 * a strong read comes after the strong writes that it has seen (PTX ISA "Causality order"). */
static bool judge_readers(struct touch *t, const struct cell *c)
{
    bool covered = false;
    uint64_t set = c->read, writes = c->write;
    t->replaces = writes ? shadow_take(t->shadow, &writes) : 0;
    if (all_strong(t, set)) return false;
    while (set) {
        const bool older = set_older(t->shadow, set);
        const epoch one = shadow_take(t->shadow, &set);
        covered |= stand(t, one, false) == STANDING_ORDERED && !older && t->shows(t, one);
    }
    return covered;
}

static bool behind(const struct touch *t, epoch one)
{
    return epoch_component(one) == epoch_component(t->self) || knows(t, one, false);
}

/* The newcomer comes after a read that came after the writes. */
static bool behind_reader(const struct touch *t, uint64_t set)
{
    while (set && !set_older(t->shadow, set)) {
        const epoch one = shadow_take(t->shadow, &set);
        if (behind(t, one) && t->shows(t, one)) return true;
    }
    return false;
}

/* A read, or a write that comes after no read. What is strong has come after the older strong writes. */
static void judge_writers(struct touch *t, const struct cell *c)
{
    uint64_t set = c->write;
    epoch newest = 0;
    if (all_strong(t, set)) return;
    t->settled = behind_reader(t, c->read);
    while (set) {
        const epoch one = shadow_take(t->shadow, &set);
        (void)stand(t, one, true);
        if (!t->is_strong(t, one)) continue;
        if (!newest) newest = one;
        if (!t->write && !t->strong) t->reads_strong(t, one, newest);
        t->settled |= behind(t, one) && t->shows(t, one);
    }
    t->settled = false;
}

/* Accesses that found no room in the set, and that this one would have to be compared with. */
static bool may_miss(const struct touch *t, uint64_t set)
{
    return coded(set) && (set & (t->strong ? MORE_WEAK : MORE));
}

static struct cell judge_cell(struct touch *t, struct cell c)
{
    const bool covered = t->write && judge_readers(t, &c);
    if (c.write && !covered) judge_writers(t, &c);
    t->lost |= may_miss(t, c.write) || (t->write && may_miss(t, c.read));
    if (!t->write)
        c.read = set_add(t, c.read);
    else if (!t->strong)
        c = (struct cell){.write = t->self};
    else
        c = (struct cell){.write = set_add(t, c.write), .read = set_keep(t, c.read)};
    return c;
}

/*
 * A weak read where the last access was one too, of the same warp and time, behind a write that it knows:
 * judge_cell would leave the cell as it is. Loops read one place again and again.
 */
static bool read_again(const struct touch *t, uint64_t write, uint64_t read)
{
    if (t->write || t->strong || coded(read) || coded(write) ||
        (read ^ t->self) >> EPOCH_INSN_BITS != 0 || t->is_strong(t, read))
        return false;
    if (!write) return true;
    return !t->is_strong(t, write) &&
           (epoch_component(write) == epoch_component(t->self) || knows(t, write, true));
}

/* What stands here was stored by the same warp since its last release. */
static inline void note_own_write(struct touch *t, uint64_t write)
{
    if (t->write && !coded(write) && (write ^ t->self) >> EPOCH_INSN_BITS == 0) {
        if (write != t->self)
            t->varies = true;
        else if (t->first)
            t->again_first = true;
        else
            t->again = true;
    }
    t->first = false;
}

/* In two words and not as one, for a load of both waits until stores of the two have left the core. */
static struct cell outcome(struct touch *t, uint64_t write, uint64_t read)
{
    struct touch_memo *m;
    note_own_write(t, write);
    t->unwritten |= !write;
    t->written |= write != 0;
    t->overwrites |= t->write && read;
    if (read_again(t, write, read)) return (struct cell){.write = write, .read = read};
    m = &t->memo[(write + 0x9E3779B97F4A7C15ULL * read) * 0xD1B54A32D192ED03ULL >> 61];
    if (m->was.write != write || m->was.read != read || m->round != t->round) {
        const struct cell c = {.write = write, .read = read};
        *m = (struct touch_memo){.was = c, .becomes = judge_cell(t, c), .round = t->round};
    }
    return (struct cell){.write = m->becomes.write, .read = m->becomes.read};
}

/* The same: pieces that lanes touch one after the other are mostly like the one before. */
static struct cell next_outcome(struct touch *t, uint64_t write, uint64_t read)
{
    struct touch_memo *m = &t->latest;
    if (m->was.write != write || m->was.read != read || m->round != t->round) {
        const struct cell c = {.write = write, .read = read};
        *m = (struct touch_memo){.was = c, .becomes = outcome(t, write, read), .round = t->round};
    } else {
        note_own_write(t, write);
    }
    return (struct cell){.write = m->becomes.write, .read = m->becomes.read};
}

static bool parts_alike(const struct cell *parts, struct cell one)
{
    for (uint32_t i = 0; i < CELL_PARTS; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a split cell has its block */
        if (parts[i].write != one.write || parts[i].read != one.read) return false;
    return true;
}

/* Bytes of one cell that are all of it, or whole parts which are not split further. False: nothing was done. */
static bool touch_whole(struct touch *t, struct cell *c, uint32_t size, uint32_t from,
                        uint32_t bytes)
{
    const uint64_t write = word_of(&c->write);
    const uint32_t part = size / CELL_PARTS, first = from / part, end = (from + bytes) / part;
    struct cell *parts, next = {0};
    if (!split(write)) {
        if (bytes != size) return false;
        *c = next_outcome(t, write, word_of(&c->read));
        return true;
    }
    if ((from | bytes) & (part - 1)) return false;
    parts = t->shadow->blocks[code_index(write)];
    for (uint32_t i = first; i < end; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a split cell has its block */
        if (split(word_of(&parts[i].write))) return false;
    for (uint32_t i = first; i < end; i++) {
        next = next_outcome(t, word_of(&parts[i].write), word_of(&parts[i].read));
        parts[i] = next;
    }
    if (parts_alike(parts, next)) {
        *c = next;
        block_free(t->shadow, code_index(write));
    }
    return true;
}

static void touch_part(struct touch *t, struct cell *c, uint32_t size, uint32_t from, uint32_t to);

/* Bytes [from, to) of the parts of a split cell; joined again when they are all alike. */
static void touch_parts(struct touch *t, struct cell *c, uint32_t size, uint32_t from, uint32_t to)
{
    const uint32_t block = code_index(c->write), part = size / CELL_PARTS, only = from / part;
    struct cell *parts = t->shadow->blocks[block];
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a split cell has its block */
    if (from == only * part && to == from + part && !split(parts[only].write)) {
        parts[only] = outcome(t, parts[only].write, parts[only].read); /* no block moves */
    } else {
        for (uint32_t i = 0; i < CELL_PARTS; i++) {
            uint32_t low = i * part, high = low + part;
            if (from >= high || to <= low) continue;
            touch_part(t, &t->shadow->blocks[block][i], part, from > low ? from - low : 0,
                       to < high ? to - low : part);
        }
        parts = t->shadow->blocks[block];
    }
    if (split(parts[0].write)) return;
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
    const struct cell was = {.write = word_of(&c->write), .read = word_of(&c->read)};
    struct cell next, copy;
    const ptrdiff_t in_block =
        s->blocks && c >= s->blocks[0] && c < s->blocks[s->block_count] ? c - s->blocks[0] : -1;
    if (!split(was.write)) {
        next = outcome(t, was.write, was.read);
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
        if (split(c->write)) {
            touch_part(t, c, CELL_PARTS, 0, CELL_PARTS);
            continue;
        }
        was = *c;
        becomes = *c = outcome(t, was.write, was.read);
        known = true;
    }
}

void shadow_touch(struct touch *t, struct cell *cells, uint32_t size, uint64_t first,
                  uint64_t bytes, uint64_t base)
{
    const uint64_t end = first + bytes;
    struct cell was = {0}, becomes = {0};
    bool known = false;
    if (first % size + bytes <= size) {
        t->at = base + first;
        if (touch_whole(t, &cells[first / size], size, (uint32_t)(first % size), (uint32_t)bytes))
            return;
    }
    for (uint64_t at = first; at < end;) {
        struct cell *c = &cells[at / size];
        const uint64_t low = at / size * size, high = low + size;
        if (known && end >= high && c->write == was.write && c->read == was.read) {
            *c = becomes;
        } else {
            t->at = base + at;
            if (high < end) was = (struct cell){word_of(&c->write), word_of(&c->read)};
            touch_part(t, c, size, (uint32_t)(at - low),
                       (uint32_t)((end < high ? end : high) - low));
            if (high >= end) return;
            becomes = (struct cell){word_of(&c->write), word_of(&c->read)};
            known = at == low && !split(was.write);
        }
        at = high;
    }
}

static bool part_unwritten(const struct shadow *s, const struct cell *c, uint32_t size,
                           uint32_t from, uint32_t to)
{
    const uint32_t part = size / CELL_PARTS;
    if (!split(c->write)) return !c->write;
    for (uint32_t i = from / part; i * part < to; i++) {
        const uint32_t low = i * part, high = low + part;
        if (part_unwritten(s, &s->blocks[code_index(c->write)][i], part,
                           from > low ? from - low : 0, to < high ? to - low : part))
            return true;
    }
    return false;
}

bool shadow_unwritten(const struct shadow *s, const struct cell *cells, uint32_t size,
                      uint64_t first, uint64_t bytes)
{
    for (uint64_t at = first / size * size; at < first + bytes; at += size) {
        const uint64_t from = first > at ? first - at : 0, end = first + bytes - at;
        if (part_unwritten(s, &cells[at / size], size, (uint32_t)from,
                           end < size ? (uint32_t)end : size))
            return true;
    }
    return false;
}

/* ---- walking ---- */

struct walk {
    const struct shadow *shadow;
    void (*each)(void *context, uint64_t address, uint32_t bytes, const struct cell *c);
    void *context;
};

static void walk_cell(const struct walk *w, uint64_t address, uint32_t bytes, const struct cell *c)
{
    if (!split(c->write)) {
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
        for (uint32_t j = 0; s->pages[i].number && j < PAGE_CELLS; j++) {
            const struct cell *c = &s->pages[i].cells[j];
            if (!c->write && !c->read) continue;
            walk_cell(&w, (s->pages[i].number - 1) * GLOBAL_PAGE + (uint64_t)j * GLOBAL_CELL,
                      GLOBAL_CELL, c);
        }
    }
}
