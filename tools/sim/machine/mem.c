/*
 * Device memory. One large range of host addresses is reserved once and pages of it are made
 * accessible as allocations come, so that a device pointer is a host pointer, addresses are the
 * same from run to run, and a stray host access faults as it would with a real driver.
 *
 * Threads: the driver's functions change allocations under the lock. Device code looks them up
 * while a launch runs; the driver does not change an allocation that a running launch may use, so
 * lookups that hit a warp's hint go without the lock. Records return to the C heap only when
 * the simulator goes (freed ones are reused), so that a stale hint is only ever a miss.
 */
#include "machine/mem.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    GUARD_BYTES = 65536, /* inaccessible, after every allocation */
    PAGE_BYTES = 4096,
    UNIT_BYTES = 512, /* cuMemAlloc's, on hardware: assumed, not measured */
    FRESH_BYTE = 0xC5,
    FREED_KEPT = 256, /* freed ones that are recognised; their places are not given again */
    SPARES_KEPT = 1024,
    NEAR_BYTES = 1 << 20 /* how far off an allocation is still worth naming */
};

/* Tried in turn. The first is free in ordinary programs and where ThreadSanitizer wants
 * programs' maps to be; AddressSanitizer keeps its shadow there and leaves the second. */
static const uint64_t reserve_bases[] = {0x1000000000ULL, 0x200000000000ULL, 0};
static const uint64_t reserve_sizes[] = {1ULL << 38, 1ULL << 36, 1ULL << 33, 1ULL << 30};

/* Who may give it back. */
enum owner { OWNER_DRIVER, OWNER_HOST, OWNER_HEAP, OWNER_MAPPED, OWNER_MULTICAST };

struct region {
    uint64_t base, bytes;
    enum owner owner;
    uint64_t span; /* bytes made accessible; 0 for the host's own memory and mapped pages */
    struct region *spare_next;
};

struct range {
    uint64_t base, span;
};

static struct {
    pthread_rwlock_t lock;
    struct region **live; /* ascending by base */
    uint32_t count, capacity;
    struct region *spare;
    struct {
        uint64_t base, bytes;
        uint64_t span;   /* of the heap of device code; else 0 */
    } freed[FREED_KEPT]; /* ring */
    uint32_t freed_next;
    /* Places of the heap of device code that are no longer in `freed`, to be given again: kernels that allocate
     * and free in loops run on hardware for as long as they like. */
    struct {
        uint64_t base, span;
    } spares[SPARES_KEPT];
    uint32_t spare_count;
    uint64_t start, end, cursor; /* the reserved range */
    struct range *reserved;      /* by mem_reserve */
    uint32_t reserved_count, reserved_room;
    uint64_t in_use, limit;
} heap = {.lock = PTHREAD_RWLOCK_INITIALIZER, .limit = UINT64_MAX};

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Index of the first live region whose end lies beyond `address`. */
static uint32_t region_after(uint64_t address)
{
    uint32_t low = 0, high = heap.count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (heap.live[mid]->base + heap.live[mid]->bytes > address)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

static bool region_holds(const struct region *r, uint64_t address, uint64_t size)
{
    return address >= r->base && size <= r->bytes && address - r->base <= r->bytes - size;
}

static struct region *region_find(uint64_t address, uint64_t size)
{
    uint32_t i = region_after(address);
    return i < heap.count && region_holds(heap.live[i], address, size) ? heap.live[i] : NULL;
}

static struct region *region_start(uint64_t address, uint32_t *index)
{
    *index = region_after(address);
    if (*index == heap.count || heap.live[*index]->base != address) return NULL;
    return heap.live[*index];
}

/* ---- the reserved range ---- */

static bool reserve(void)
{
    if (heap.start) return true;
    for (size_t s = 0; s < sizeof reserve_sizes / sizeof *reserve_sizes; s++) {
        for (size_t b = 0; b < sizeof reserve_bases / sizeof *reserve_bases; b++) {
            void *p = mmap((void *)(uintptr_t)reserve_bases[b], reserve_sizes[s], PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
                               (reserve_bases[b] ? MAP_FIXED_NOREPLACE : 0),
                           -1, 0);
            if (p == MAP_FAILED) continue;
            /* A kernel that does not know MAP_FIXED_NOREPLACE takes the base as a hint. */
            heap.start = heap.cursor = (uint64_t)(uintptr_t)p;
            heap.end = heap.start + reserve_sizes[s];
            return true;
        }
    }
    return false;
}

/* The end of the first reservation in the way of `need` bytes at `at`, or 0. */
static uint64_t reservation_in(uint64_t at, uint64_t need)
{
    for (uint32_t i = 0; i < heap.reserved_count; i++) {
        const struct range *r = &heap.reserved[i];
        if (r->base < at + need && at < r->base + r->span) return r->base + r->span + GUARD_BYTES;
    }
    return 0;
}

/* A place that was freed long ago and has just that size; 0. */
static uint64_t place_again(uint64_t span)
{
    for (uint32_t i = 0; i < heap.spare_count; i++) {
        const uint64_t base = heap.spares[i].base;
        if (heap.spares[i].span != span) continue;
        heap.spares[i] = heap.spares[--heap.spare_count];
        return base;
    }
    return 0;
}

/* A place for `span` bytes and their guard: fresh addresses while there are any, so that freed ones
 * stay recognisable; then the first gap. 0 when there is none. */
static uint64_t place(uint64_t span)
{
    uint64_t need = span + GUARD_BYTES, at = heap.start;
    if (need < span || need > heap.end - heap.start) return 0;
    if (heap.end - heap.cursor >= need) {
        at = heap.cursor;
        heap.cursor += need;
        return at;
    }
    heap.spare_count = 0; /* what follows may give their places to others */
    for (uint32_t i = 0; i < FREED_KEPT; i++) heap.freed[i].span = 0;
    for (uint32_t i = 0; i < heap.count; i++) {
        const struct region *r = heap.live[i];
        if (!r->span) continue;
        for (uint64_t past; r->base > at && r->base - at >= need; at = past)
            if (!(past = reservation_in(at, need))) return at;
        if (at < r->base + r->span) at = r->base + r->span + GUARD_BYTES;
    }
    for (uint64_t past; at < heap.end && heap.end - at >= need; at = past)
        if (!(past = reservation_in(at, need))) return at;
    return 0;
}

static bool insert(uint64_t base, uint64_t bytes, uint64_t span, enum owner owner)
{
    struct region *r = heap.spare;
    uint32_t i = region_after(base);
    if (heap.count == heap.capacity) {
        uint32_t capacity = heap.capacity ? heap.capacity * 2 : 64;
        struct region **grown = realloc(heap.live, capacity * sizeof *grown);
        if (!grown) return false;
        heap.live = grown;
        heap.capacity = capacity;
    }
    if (r)
        heap.spare = r->spare_next;
    else if (!(r = malloc(sizeof *r)))
        return false;
    *r = (struct region){.base = base, .bytes = bytes, .owner = owner, .span = span};
    memmove(heap.live + i + 1, heap.live + i, (heap.count - i) * sizeof *heap.live);
    heap.live[i] = r;
    heap.count++;
    return true;
}

static void retire(uint32_t index)
{
    struct region *r = heap.live[index];
    memmove(heap.live + index, heap.live + index + 1, (heap.count - index - 1) * sizeof *heap.live);
    heap.count--;
    if (heap.freed[heap.freed_next].span && heap.spare_count < SPARES_KEPT) {
        heap.spares[heap.spare_count].base = heap.freed[heap.freed_next].base;
        heap.spares[heap.spare_count++].span = heap.freed[heap.freed_next].span;
    }
    heap.freed[heap.freed_next].base = r->base;
    heap.freed[heap.freed_next].bytes = r->bytes;
    heap.freed[heap.freed_next].span = r->owner == OWNER_HEAP ? r->span : 0;
    heap.freed_next = (heap.freed_next + 1) % FREED_KEPT;
    if (r->span) {
        void *pages = (void *)(uintptr_t)r->base;
        /* Both may only fail by leaving the pages readable; lookups no longer find them. */
        (void)madvise(pages, r->span, MADV_DONTNEED);
        (void)mprotect(pages, r->span, PROT_NONE);
        heap.in_use -= r->bytes;
    }
    *r = (struct region){.spare_next = heap.spare};
    heap.spare = r;
}

/* ---- the driver's side ---- */

static int alloc_locked(uint64_t size, enum owner owner, uint64_t *address)
{
    uint64_t span, at;
    if (size > heap.limit - heap.in_use || size > UINT64_MAX / 2) return 2;
    span = round_up(size, PAGE_BYTES);
    if (!reserve()) return 2;
    at = owner == OWNER_HEAP ? place_again(span) : 0;
    if (!at) at = place(span);
    if (!at) return 2;
    if (mprotect((void *)(uintptr_t)at, span, PROT_READ | PROT_WRITE) != 0) return 2;
    if (!insert(at, size, span, owner)) {
        (void)mprotect((void *)(uintptr_t)at, span, PROT_NONE);
        return 2;
    }
    memset((void *)(uintptr_t)at, FRESH_BYTE, size);
    heap.in_use += size;
    *address = at;
    return 0;
}

static int alloc(uint64_t size, enum owner owner, uint64_t *address)
{
    int result;
    if (!size || !address) return 1;
    pthread_rwlock_wrlock(&heap.lock);
    result = alloc_locked(size, owner, address);
    pthread_rwlock_unlock(&heap.lock);
    return result;
}

int mem_alloc(uint64_t size, uint64_t *address)
{
    return alloc(size, OWNER_DRIVER, address);
}

int mem_heap_alloc(uint64_t size, uint64_t *address)
{
    return alloc(size, OWNER_HEAP, address);
}

static int remove_at(uint64_t address, enum owner owner)
{
    struct region *r;
    uint32_t index;
    int result = 1;
    pthread_rwlock_wrlock(&heap.lock);
    r = region_start(address, &index);
    if (r && r->owner == owner) {
        retire(index);
        result = 0;
    }
    pthread_rwlock_unlock(&heap.lock);
    return result;
}

int mem_free(uint64_t address)
{
    return remove_at(address, OWNER_DRIVER);
}

int mem_heap_free(uint64_t address)
{
    return remove_at(address, OWNER_HEAP);
}

int mem_register(void *host, uint64_t size)
{
    uint64_t base = (uint64_t)(uintptr_t)host;
    uint32_t next;
    int result;
    if (!host || !size || base + size < base) return 1;
    pthread_rwlock_wrlock(&heap.lock);
    next = region_after(base);
    if (next < heap.count && heap.live[next]->base < base + size)
        result = 1;
    else
        result = insert(base, size, 0, OWNER_HOST) ? 0 : 2;
    pthread_rwlock_unlock(&heap.lock);
    return result;
}

int mem_unregister(void *host)
{
    return remove_at((uint64_t)(uintptr_t)host, OWNER_HOST);
}

/* ---- reserved addresses and pages put there ---- */

static int reserve_locked(uint64_t span, uint64_t align, uint64_t *address)
{
    uint64_t at;
    if (heap.reserved_count == heap.reserved_room) {
        uint32_t room = heap.reserved_room ? 2 * heap.reserved_room : 16;
        struct range *grown = realloc(heap.reserved, room * sizeof *grown);
        if (!grown) return 2;
        heap.reserved = grown;
        heap.reserved_room = room;
    }
    if (!reserve() || !(at = place(span + align))) return 2;
    /* The whole place is kept, so that what lies before the aligned part is nobody's either. */
    heap.reserved[heap.reserved_count++] = (struct range){round_up(at, align), span};
    *address = round_up(at, align);
    return 0;
}

int mem_reserve(uint64_t bytes, uint64_t align, uint64_t *address)
{
    int result;
    if (!bytes || bytes > UINT64_MAX / 4 || align < PAGE_BYTES || align & (align - 1) ||
        align > UINT64_MAX / 4)
        return 1;
    pthread_rwlock_wrlock(&heap.lock);
    result = reserve_locked(round_up(bytes, PAGE_BYTES), align, address);
    pthread_rwlock_unlock(&heap.lock);
    return result;
}

int mem_unreserve(uint64_t address)
{
    int result = 1;
    pthread_rwlock_wrlock(&heap.lock);
    for (uint32_t i = 0; i < heap.reserved_count && result; i++) {
        if (heap.reserved[i].base != address) continue;
        heap.reserved[i] = heap.reserved[--heap.reserved_count];
        result = 0;
    }
    pthread_rwlock_unlock(&heap.lock);
    return result;
}

int mem_map(uint64_t address, uint64_t bytes, int file, uint64_t offset)
{
    void *at = (void *)(uintptr_t)address;
    int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;

    if (mmap(at, round_up(bytes, PAGE_BYTES), PROT_READ | PROT_WRITE, flags | MAP_FIXED, file,
             (off_t)offset) == MAP_FAILED)
        return 2;
    if (file < 0) memset(at, FRESH_BYTE, bytes);
    return 0;
}

void mem_unmap(uint64_t address, uint64_t bytes)
{
    /* May only fail by leaving the pages there; lookups no longer find them. */
    (void)mmap((void *)(uintptr_t)address, round_up(bytes, PAGE_BYTES), PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

int mem_show(uint64_t address, uint64_t bytes, bool multicast)
{
    int result;
    pthread_rwlock_wrlock(&heap.lock);
    result = insert(address, bytes, 0, multicast ? OWNER_MULTICAST : OWNER_MAPPED) ? 0 : 2;
    pthread_rwlock_unlock(&heap.lock);
    return result;
}

int mem_hide(uint64_t address)
{
    int result = remove_at(address, OWNER_MAPPED);
    return result ? remove_at(address, OWNER_MULTICAST) : 0;
}

int mem_charge(uint64_t bytes)
{
    int result = 2;
    pthread_rwlock_wrlock(&heap.lock);
    if (bytes <= heap.limit - heap.in_use) {
        heap.in_use += bytes;
        result = 0;
    }
    pthread_rwlock_unlock(&heap.lock);
    return result;
}

void mem_discharge(uint64_t bytes)
{
    pthread_rwlock_wrlock(&heap.lock);
    heap.in_use -= bytes;
    pthread_rwlock_unlock(&heap.lock);
}

bool mem_range(uint64_t address, uint64_t size, uint64_t *base, uint64_t *bytes)
{
    const struct region *r;
    pthread_rwlock_rdlock(&heap.lock);
    r = region_find(address, size);
    if (r && base) *base = r->base;
    if (r && bytes) *bytes = r->bytes;
    pthread_rwlock_unlock(&heap.lock);
    return r != NULL;
}

size_t mem_live(struct mem_piece *out, size_t room)
{
    size_t count;
    pthread_rwlock_rdlock(&heap.lock);
    count = heap.count;
    for (size_t i = 0; i < count && i < room; i++)
        out[i] = (struct mem_piece){.at = (void *)(uintptr_t)heap.live[i]->base,
                                    .bytes = (size_t)heap.live[i]->bytes};
    pthread_rwlock_unlock(&heap.lock);
    return count;
}

bool mem_aliased(void)
{
    bool found = false;
    pthread_rwlock_rdlock(&heap.lock);
    for (uint32_t i = 0; i < heap.count && !found; i++)
        found = heap.live[i]->owner == OWNER_MAPPED || heap.live[i]->owner == OWNER_MULTICAST;
    pthread_rwlock_unlock(&heap.lock);
    return found;
}

uint64_t mem_in_use(void)
{
    uint64_t bytes;
    pthread_rwlock_rdlock(&heap.lock);
    bytes = heap.in_use;
    pthread_rwlock_unlock(&heap.lock);
    return bytes;
}

void mem_reset(void)
{
    pthread_rwlock_wrlock(&heap.lock);
    while (heap.count) retire(heap.count - 1);
    free(heap.live);
    heap.live = NULL;
    heap.capacity = 0;
    while (heap.spare) {
        struct region *r = heap.spare;
        heap.spare = r->spare_next;
        free(r);
    }
    memset(heap.freed, 0, sizeof heap.freed);
    free(heap.reserved);
    heap.reserved = NULL;
    heap.reserved_count = heap.reserved_room = 0;
    heap.spare_count = 0;
    if (heap.start) munmap((void *)(uintptr_t)heap.start, heap.end - heap.start);
    heap.start = heap.end = heap.cursor = 0;
    pthread_rwlock_unlock(&heap.lock);
}

void mem_set_limit(uint64_t bytes)
{
    pthread_rwlock_wrlock(&heap.lock);
    heap.limit = bytes > heap.in_use ? bytes : heap.in_use;
    pthread_rwlock_unlock(&heap.lock);
}

/* ---- what is wrong with a global address, in words ---- */

static bool was_freed(uint64_t address, uint64_t *base, uint64_t *bytes)
{
    for (uint32_t i = 0; i < FREED_KEPT; i++) {
        if (address < heap.freed[i].base) continue;
        if (address - heap.freed[i].base >= heap.freed[i].bytes) continue;
        *base = heap.freed[i].base;
        *bytes = heap.freed[i].bytes;
        return true;
    }
    return false;
}

/* Completes "8 bytes at 0x…: " for an address that no live allocation holds; true when it lies in
 * a freed one. */
static bool explain(uint64_t address, uint64_t size, char *text, size_t room)
{
    uint64_t base, bytes, before = UINT64_MAX, past = UINT64_MAX;
    const struct region *low = NULL, *high = NULL;
    bool freed;
    uint32_t i;
    pthread_rwlock_rdlock(&heap.lock);
    i = region_after(address);
    if (i < heap.count) high = heap.live[i];
    if (high && address >= high->base)
        low = high; /* starts inside, runs over its end */
    else if (i > 0)
        low = heap.live[i - 1];
    if (low) past = address + size - (low->base + low->bytes);
    if (high && high != low) before = high->base - address;
    freed = was_freed(address, &base, &bytes);
    if (low && low == high)
        snprintf(text, room,
                 "its last %" PRIu64 " bytes lie past the end of a %" PRIu64
                 "-byte allocation at 0x%" PRIx64,
                 past, low->bytes, low->base);
    else if (freed)
        snprintf(text, room,
                 "%" PRIu64 " bytes into a %" PRIu64 "-byte allocation (0x%" PRIx64
                 ") that has been freed",
                 address - base, bytes, base);
    else if (low && past - size <= NEAR_BYTES && past <= before)
        snprintf(text, room,
                 "%" PRIu64 " bytes past the end of a %" PRIu64 "-byte allocation at 0x%" PRIx64,
                 past - size, low->bytes, low->base);
    else if (high && before <= NEAR_BYTES)
        snprintf(text, room, "%" PRIu64 " bytes before a %" PRIu64 "-byte allocation at 0x%" PRIx64,
                 before, high->bytes, high->base);
    else
        snprintf(text, room, "%s", address < PAGE_BYTES ? "a null pointer" : "in no allocation");
    pthread_rwlock_unlock(&heap.lock);
    return freed && !(low && low == high);
}

static const char *access_text(enum access_kind access)
{
    static const char *const text[] = {
        [ACCESS_READ] = "reads", [ACCESS_WRITE] = "writes", [ACCESS_ATOMIC] = "updates"};
    return text[access];
}

/* ---- device accesses ---- */

static struct region *lookup(struct warp *w, uint64_t address, uint64_t size)
{
    struct region *r;
    pthread_rwlock_rdlock(&heap.lock);
    r = region_find(address, size);
    pthread_rwlock_unlock(&heap.lock);
    if (r) {
        memmove(w->mem_hints + 1, w->mem_hints, (MEM_HINTS - 1) * sizeof *w->mem_hints);
        w->mem_hints[0] = r;
    }
    return r;
}

/* As lookup, but the lock, which all host threads share, is taken only where none of the allocations that
 * the warp touched of late holds the bytes. */
static const struct region *known_or_found(struct warp *w, uint64_t address, uint64_t size)
{
    for (int i = 0; i < MEM_HINTS && w->mem_hints[i]; i++)
        if (region_holds(w->mem_hints[i], address, size)) return w->mem_hints[i];
    return lookup(w, address, size);
}

static bool in_image(const uint8_t *image, uint64_t bytes, uint64_t address, uint64_t size)
{
    uint64_t base = (uint64_t)(uintptr_t)image;
    return image && address >= base && size <= bytes && address - base <= bytes - size;
}

/* The module's variables, should the driver keep them outside its allocations. */
static bool in_images(const struct warp *w, uint64_t address, uint64_t size,
                      enum access_kind access)
{
    const struct launch *l = w->cta->group->launch;
    const struct ptx_module *m = l->kernel->module;
    return in_image(l->globals, m->global_bytes, address, size) ||
           (access == ACCESS_READ && in_image(l->consts, m->const_bytes, address, size));
}

static void *fault_at(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address,
                      uint64_t size, enum access_kind access, const char *where, const char *what)
{
    char text[256];
    bool freed = explain(address, size, text, sizeof text);
    (void)sim_fault(w, in, lane, 700, freed ? FIND_USE_AFTER_FREE : FIND_OOB, CAUSE_NONE, "",
                    "%s %" PRIu64 " bytes of %s memory at 0x%" PRIx64 "%s%s: %s",
                    access_text(access), size, where, address, what ? ", " : "", what ? what : "",
                    text);
    return NULL;
}

/* Bytes past the end of an allocation that hardware has mapped all the same: it gives out memory in units. Compilers
 * that load whole vectors touch them. They are an error to the checks, and nobody notices them without. */
static bool in_slack(const struct warp *w, uint64_t address, uint64_t size)
{
    const struct region *r = NULL;
    uint64_t room;
    uint32_t i;
    bool in;

    if (w->cta->group->launch->check_level) return false;
    pthread_rwlock_rdlock(&heap.lock);
    i = region_after(address);
    if (i < heap.count && address >= heap.live[i]->base)
        r = heap.live[i];
    else if (i > 0)
        r = heap.live[i - 1];
    room = r ? round_up(r->bytes, UNIT_BYTES) : 0;
    in = r && r->span && size <= room && address - r->base <= room - size;
    pthread_rwlock_unlock(&heap.lock);
    return in;
}

static void *global_at(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address,
                       uint32_t size, enum access_kind access)
{
    if (known_or_found(w, address, size)) return (void *)(uintptr_t)address;
    if (in_images(w, address, size, access)) return (void *)(uintptr_t)address;
    if (in_slack(w, address, size)) return (void *)(uintptr_t)address;
    if ((address & WINDOW_MASK) == SHARED_WINDOW || (address & WINDOW_MASK) == LOCAL_WINDOW ||
        (address & WINDOW_MASK) == PARAM_WINDOW) {
        (void)sim_fault(w, in, lane, 717, FIND_OOB, CAUSE_NONE, "",
                        "%s %u bytes of global memory at 0x%" PRIx64
                        ", which is a generic address of %s memory",
                        access_text(access), size, address,
                        (address & WINDOW_MASK) == SHARED_WINDOW  ? "shared"
                        : (address & WINDOW_MASK) == LOCAL_WINDOW ? "local"
                                                                  : "parameter");
        return NULL;
    }
    return fault_at(w, in, lane, address, size, access, "global", NULL);
}

/* The system's memory that it lends to kernels which ask where it lies. */
static bool in_scratch(const struct warp *w, uint32_t at)
{
    const struct kernel *k = w->cta->group->launch->kernel;

    return at >= SHARED_SCRATCH && k->sreg_offset[SR_RESERVED_1] != UINT32_MAX;
}

bool mem_shared(const struct warp *w, uint32_t address, struct cta **cta, uint32_t *offset)
{
    uint32_t rank = address >> SHARED_RANK_SHIFT, at = address & SHARED_OFFSET_MASK;
    const struct cluster *cluster = w->cta->cluster;
    struct cta *owner = w->cta;
    if (rank != owner->rank) {
        if (rank >= cluster->cta_count || !(owner = cluster->ctas[rank])) return false;
    }
    if (at >= owner->shared_bytes || (at < SHARED_RESERVED && !in_scratch(w, at))) return false;
    *cta = owner;
    *offset = at;
    return true;
}

static void *shared_fault(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address,
                          uint32_t size, enum access_kind access, bool cluster)
{
    const struct cluster *c = w->cta->cluster;
    uint64_t rank = address >> SHARED_RANK_SHIFT;
    uint32_t offset = (uint32_t)address & SHARED_OFFSET_MASK;
    char text[160];
    if (rank >= c->cta_count || !c->ctas[rank])
        snprintf(text, sizeof text, "the cluster has no CTA of rank %" PRIu64, rank);
    else if (rank != w->cta->rank && !cluster)
        snprintf(text, sizeof text,
                 "it lies in the CTA of rank %" PRIu64 " (own rank %u): only .shared::cluster may",
                 rank, w->cta->rank);
    else if (offset < SHARED_RESERVED)
        snprintf(text, sizeof text, "the first %d bytes of the window belong to the system",
                 SHARED_RESERVED);
    else
        snprintf(text, sizeof text, "the CTA's shared memory ends at 0x%x, %u bytes in all",
                 c->ctas[rank]->shared_bytes, c->ctas[rank]->shared_bytes - SHARED_RESERVED);
    (void)sim_fault(w, in, lane, 700, FIND_OOB, CAUSE_NONE, "",
                    "%s %u bytes of shared memory at 0x%" PRIx64 ": %s", access_text(access), size,
                    address, text);
    return NULL;
}

static void *shared_at(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address,
                       uint32_t size, enum access_kind access, bool cluster)
{
    struct cta *cta;
    uint32_t offset;
    if ((address & WINDOW_MASK) == SHARED_WINDOW) address &= ~WINDOW_MASK;
    if (address > UINT32_MAX || !mem_shared(w, (uint32_t)address, &cta, &offset) ||
        size > cta->shared_bytes - offset || (cta != w->cta && !cluster))
        return shared_fault(w, in, lane, address, size, access, cluster);
    if (cta != w->cta && !cta->warps_live) { /* 719: seen on an H200, tests/zoo/sglang-25574 */
        (void)sim_fault(w, in, lane, 719, FIND_CLUSTER_EXIT, CAUSE_NONE, "",
                        "%s shared memory of CTA rank %u, whose threads have all exited",
                        access_text(access), cta->rank);
        return NULL;
    }
    return cta->shared + offset;
}

/* Parameters and local variables: addresses with or without the window's base. */
static void *window_at(struct warp *w, const struct insn *in, uint32_t lane, enum ptx_space space,
                       uint64_t address, uint32_t size, enum access_kind access)
{
    const struct launch *l = w->cta->group->launch;
    bool local = space == SPACE_LOCAL;
    uint64_t base = local ? LOCAL_WINDOW : PARAM_WINDOW;
    uint64_t offset = (address & WINDOW_MASK) == base ? address & ~WINDOW_MASK : address;
    uint64_t room = local ? l->kernel->entry->local_bytes : l->param_bytes;
    if (!local && access != ACCESS_READ) {
        (void)sim_fault(w, in, lane, 700, FIND_OOB, CAUSE_NONE, "",
                        "%s %u bytes at offset %" PRIu64
                        " of the kernel's parameters, which are read-only",
                        access_text(access), size, offset);
        return NULL;
    }
    if (size > room || offset > room - size || (local && !w->local)) {
        (void)sim_fault(w, in, lane, 700, FIND_OOB, CAUSE_NONE, "",
                        "%s %u bytes at offset %" PRIu64 " of %s, which have %" PRIu64 " bytes",
                        access_text(access), size, offset,
                        local ? "the thread's local variables" : "the kernel's parameters", room);
        return NULL;
    }
    if (local) return w->local + lane * room + offset;
    /* Read-only, as just checked. */
    return (void *)((uintptr_t)l->params + offset);
}

void *mem_at(struct warp *w, const struct insn *in, uint32_t lane, enum ptx_space space,
             uint64_t address, uint32_t size, uint32_t align, enum access_kind access, bool cluster)
{
    if (align && address % align) {
        (void)sim_fault(w, in, lane, 716, FIND_MISALIGNED, CAUSE_NONE, "",
                        "%s %u bytes at 0x%" PRIx64 ", which is not a multiple of %u",
                        access_text(access), size, address, align);
        return NULL;
    }
    if (space == SPACE_NONE) {
        cluster = true;
        switch (address & WINDOW_MASK) {
        case SHARED_WINDOW: space = SPACE_SHARED; break;
        case LOCAL_WINDOW: space = SPACE_LOCAL; break;
        case PARAM_WINDOW: space = SPACE_PARAM; break;
        default: break;
        }
    }
    switch (space) {
    case SPACE_SHARED: return shared_at(w, in, lane, address, size, access, cluster);
    case SPACE_LOCAL:
    case SPACE_PARAM: return window_at(w, in, lane, space, address, size, access);
    default: return global_at(w, in, lane, address, size, access);
    }
}

const void *mem_peek(struct warp *w, uint32_t lane, uint64_t address)
{
    const struct launch *l = w->cta->group->launch;
    uint64_t room = l->kernel->entry->local_bytes, offset = address & ~WINDOW_MASK;
    struct cta *cta;
    uint32_t at;

    switch (address & WINDOW_MASK) {
    case SHARED_WINDOW:
        return offset <= UINT32_MAX && mem_shared(w, (uint32_t)offset, &cta, &at) ? cta->shared + at
                                                                                  : NULL;
    case LOCAL_WINDOW: return w->local && offset < room ? w->local + lane * room + offset : NULL;
    case PARAM_WINDOW: return offset < l->param_bytes ? l->params + offset : NULL;
    default: break;
    }
    if (lookup(w, address, 1) || in_images(w, address, 1, ACCESS_READ))
        return (const void *)(uintptr_t)address;
    return NULL;
}

/* ---- a warp's access as a whole: mem_lanes.c has the rest ---- */

uint8_t *mem_span(struct warp *w, enum ptx_space space, const struct lane_span *span, uint32_t size)
{
    uint64_t low = span->low, high = span->high;
    const struct region *r;
    if (!span->aligned || high < low) return NULL;
    if (space == SPACE_NONE && ((low | high) & WINDOW_MASK) != 0) {
        if ((low & WINDOW_MASK) != SHARED_WINDOW || (high & WINDOW_MASK) != SHARED_WINDOW)
            return NULL;
        low &= ~WINDOW_MASK;
        high &= ~WINDOW_MASK;
        space = SPACE_SHARED;
    }
    if (space == SPACE_SHARED) {
        const struct cta *cta = w->cta;
        const uint64_t base = (uint64_t)cta->rank << SHARED_RANK_SHIFT;
        const uint64_t end = base + cta->shared_bytes;
        if (low < base + SHARED_RESERVED || high >= end || end - high < size) return NULL;
        return cta->shared + (low - base);
    }
    if (space == SPACE_LOCAL || space == SPACE_PARAM) return NULL;
    r = known_or_found(w, low, size);
    return r && region_holds(r, high, size) ? (uint8_t *)(uintptr_t)low : NULL;
}

bool mem_multicast(struct warp *w, const struct insn *in, uint32_t mask,
                   const uint64_t address[WARP_LANES], uint32_t size)
{
    for (; mask; mask &= mask - 1) {
        uint32_t l = first_lane(mask);
        const struct region *r = known_or_found(w, address[l], size);
        if (r && r->owner == OWNER_MULTICAST) continue;
        (void)sim_fault(w, in, l, 700, FIND_OOB, CAUSE_NONE, "",
                        "multimem at 0x%" PRIx64
                        ", which is no address of a multicast object (cuMulticastCreate, cuMemMap)",
                        address[l]);
        return false;
    }
    return true;
}

void *mem_global(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address,
                 uint64_t size, enum access_kind access, const char *what)
{
    if (known_or_found(w, address, size) || in_slack(w, address, size))
        return (void *)(uintptr_t)address;
    return fault_at(w, in, lane, address, size, access, "global", what);
}
