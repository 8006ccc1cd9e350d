/*
 * Virtual memory management: addresses, memory and access apart. Memory is a file without a name, so that one
 * piece may stand at several addresses and go to another process. Device code sees runs of mapped
 * and accessible pieces as one range, as the hardware does.
 */
#include "cuda/virtual.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOST_PAGE = 4096 };
enum { ACCESS_NONE = 0, ACCESS_READ_ONLY = 1, ACCESS_READ_WRITE = 3 };
enum { PINNED = 1, AS_FILE = 1 };

struct physical {
    uint64_t bytes;
    int file;
    uint32_t uses; /* by handles that programs hold, and by mappings */
    uint32_t handles;
    uint32_t mapped; /* at so many addresses */
    hewn_cu_memory_props props;
};

struct piece {
    uint64_t address, bytes, offset;
    struct physical *memory;
    struct multicast *multicast; /* that it is a part of, or NULL */
    int access;
    struct piece *next; /* ascending */
};

struct reservation {
    uint64_t address, bytes;
    struct piece *pieces;
    struct reservation *next;
};

/* ---- memory ---- */

uint64_t physical_bytes(const struct physical *p)
{
    return p->bytes;
}

void physical_keep(struct physical *p)
{
    p->uses++;
}

void physical_drop(struct physical *p)
{
    if (--p->uses) return;
    close(p->file);
    mem_discharge(p->bytes);
    free(p);
}

/* Takes over the file, which is closed where this fails. */
static int physical_new(int file, uint64_t bytes, const hewn_cu_memory_props *props,
                        hewn_cu_memory *out)
{
    struct physical *p = calloc(1, sizeof *p);
    int rc = p ? mem_charge(bytes) : HEWN_CU_OUT_OF_MEMORY;

    if (rc) {
        close(file);
        free(p);
        return rc;
    }
    *p = (struct physical){.bytes = bytes, .file = file, .uses = 1, .handles = 1, .props = *props};
    if (handle_add(p, HANDLE_PHYSICAL, p, NULL)) {
        physical_drop(p);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    *out = (uintptr_t)p;
    return 0;
}

struct physical *physical_named(hewn_cu_memory handle)
{
    return handle_get((const void *)(uintptr_t)handle, HANDLE_PHYSICAL);
}

static int props_check(const hewn_cu_memory_props *p)
{
    if (!p || p->type != PINNED) return HEWN_CU_INVALID_VALUE;
    if (p->location.type != HEWN_CU_ON_DEVICE)
        return p->location.type ? HEWN_CU_NOT_SUPPORTED : HEWN_CU_INVALID_VALUE;
    if (p->location.id) return HEWN_CU_INVALID_DEVICE;
    return p->handle_types & ~AS_FILE ? HEWN_CU_NOT_SUPPORTED : 0;
}

int cuMemGetAllocationGranularity(size_t *granularity, const hewn_cu_memory_props *props,
                                  int option)
{
    struct call call CALL_SCOPE;
    int rc;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!granularity || option < 0 || option > 1) return HEWN_CU_INVALID_VALUE;
    rc = props_check(props);
    if (!rc) *granularity = GRANULE;
    return rc;
}

int cuMemCreate(hewn_cu_memory *handle, size_t bytes, const hewn_cu_memory_props *props,
                unsigned long long flags)
{
    struct call call CALL_SCOPE;
    int file, rc;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!handle || flags || !bytes || bytes % GRANULE) return HEWN_CU_INVALID_VALUE;
    rc = props_check(props);
    if (rc) return rc;
    file = memfd_create("hewn-sim", MFD_CLOEXEC);
    if (file < 0) return HEWN_CU_OPERATING_SYSTEM;
    if (ftruncate(file, (off_t)bytes)) {
        close(file);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    return physical_new(file, bytes, props, handle);
}

int cuMemRelease(hewn_cu_memory handle)
{
    struct call call CALL_SCOPE;
    struct physical *p;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (multicast_named(handle)) {
        multicast_release(multicast_named(handle));
        return 0;
    }
    p = physical_named(handle);
    if (!p) return HEWN_CU_INVALID_VALUE;
    if (!--p->handles) handle_drop(p);
    physical_drop(p);
    return 0;
}

int cuMemGetAllocationPropertiesFromHandle(hewn_cu_memory_props *props, hewn_cu_memory handle)
{
    struct call call CALL_SCOPE;
    const struct physical *p;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    p = physical_named(handle);
    if (!p || !props) return HEWN_CU_INVALID_VALUE;
    *props = p->props;
    return 0;
}

int cuMemExportToShareableHandle(void *out, hewn_cu_memory handle, int type,
                                 unsigned long long flags)
{
    struct call call CALL_SCOPE;
    const struct physical *p;
    int file;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    p = physical_named(handle);
    if (!p || !out || flags) return HEWN_CU_INVALID_VALUE;
    if (type != AS_FILE) return HEWN_CU_NOT_SUPPORTED;
    if (!(p->props.handle_types & AS_FILE)) return HEWN_CU_INVALID_VALUE;
    file = dup(p->file);
    if (file < 0) return HEWN_CU_OPERATING_SYSTEM;
    memcpy(out, &file, sizeof file);
    return 0;
}

int cuMemImportFromShareableHandle(hewn_cu_memory *handle, void *shared, int type)
{
    static const hewn_cu_memory_props props = {
        .type = PINNED, .handle_types = AS_FILE, .location = {.type = HEWN_CU_ON_DEVICE}};
    struct call call CALL_SCOPE;
    struct stat about;
    int file;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!handle) return HEWN_CU_INVALID_VALUE;
    if (type != AS_FILE) return HEWN_CU_NOT_SUPPORTED;
    file = (int)(intptr_t)shared;
    if (file < 0 || fstat(file, &about) || !about.st_size || about.st_size % GRANULE)
        return HEWN_CU_INVALID_VALUE;
    file = dup(file);
    if (file < 0) return HEWN_CU_OPERATING_SYSTEM;
    return physical_new(file, (uint64_t)about.st_size, &props, handle);
}

/* ---- addresses ---- */

static bool inside(uint64_t address, uint64_t bytes, uint64_t base, uint64_t size)
{
    return address >= base && bytes <= size && address - base <= size - bytes;
}

static struct reservation *reservation_around(uint64_t address, uint64_t bytes)
{
    struct reservation *r = driver.reservations;

    while (r && !inside(address, bytes, r->address, r->bytes)) r = r->next;
    return r;
}

/* The next run of accessible pieces that adjoin, from *at on; its size, or 0. Multicast addresses are
 * ranges of their own. */
static uint64_t next_run(const struct piece **at, uint64_t *begin, bool *multicast)
{
    const struct piece *p = *at;
    uint64_t end;

    while (p && p->access == ACCESS_NONE) p = p->next;
    if (!p) return 0;
    *begin = end = p->address;
    *multicast = p->multicast != NULL;
    for (;
         p && p->address == end && p->access != ACCESS_NONE && (p->multicast != NULL) == *multicast;
         p = p->next)
        end += p->bytes;
    *at = p;
    return end - *begin;
}

static void hide(const struct reservation *r)
{
    const struct piece *at = r->pieces;
    uint64_t begin;
    bool multicast;

    while (next_run(&at, &begin, &multicast)) mem_hide(begin);
}

static int show(const struct reservation *r)
{
    const struct piece *at = r->pieces;
    uint64_t begin, bytes;
    bool multicast;
    int rc = 0;

    while (!rc && (bytes = next_run(&at, &begin, &multicast)))
        rc = mem_show(begin, bytes, multicast);
    return rc;
}

/* An address that a program asks for is a wish. */
int cuMemAddressReserve(hewn_cu_deviceptr *address, size_t bytes, size_t align,
                        hewn_cu_deviceptr wish, unsigned long long flags)
{
    struct call call CALL_SCOPE;
    struct reservation *r;
    int rc;

    (void)wish;
    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!address || flags || !bytes || bytes % HOST_PAGE || align & (align - 1))
        return HEWN_CU_INVALID_VALUE;
    r = calloc(1, sizeof *r);
    if (!r) return HEWN_CU_OUT_OF_MEMORY;
    rc = mem_reserve(bytes, align > GRANULE ? align : GRANULE, &r->address);
    if (rc) {
        free(r);
        return rc;
    }
    r->bytes = bytes;
    r->next = driver.reservations;
    driver.reservations = r;
    *address = r->address;
    return 0;
}

int cuMemAddressFree(hewn_cu_deviceptr address, size_t bytes)
{
    struct call call CALL_SCOPE;
    struct reservation **link = &driver.reservations, *r;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    while (*link && (*link)->address != address) link = &(*link)->next;
    r = *link;
    if (!r || r->bytes != bytes || r->pieces) return HEWN_CU_INVALID_VALUE;
    *link = r->next;
    mem_unreserve(address);
    free(r);
    return 0;
}

/* ---- mapping ---- */

static int map_piece(struct piece **link, const struct piece *like)
{
    struct piece *p = malloc(sizeof *p);
    int rc;

    if (!p) return HEWN_CU_OUT_OF_MEMORY;
    rc = mem_map(like->address, like->bytes, like->memory->file, like->offset);
    if (rc) {
        free(p);
        return rc;
    }
    *p = *like;
    p->next = *link;
    *link = p;
    p->memory->uses++;
    if (p->memory->mapped++ == 1) driver.aliased++;
    if (p->multicast) multicast_mapped(p->multicast, 1);
    return 0;
}

/* A piece for each part of memory that is bound to the object. */
static int map_multicast(struct piece **link, struct multicast *m, uint64_t address, uint64_t bytes)
{
    uint64_t offset, part;
    int rc = 0;

    if (bytes > multicast_bytes(m)) return HEWN_CU_INVALID_VALUE;
    for (uint64_t at = 0; at < bytes; at += part) /* before anything is mapped */
        if (!multicast_part(m, at, &offset, &part)) return HEWN_CU_NOT_SUPPORTED;
    for (uint64_t at = 0; at < bytes && !rc; at += part) {
        struct physical *memory = multicast_part(m, at, &offset, &part);
        struct piece piece = {
            address + at, part < bytes - at ? part : bytes - at, offset, memory, m, ACCESS_NONE,
            NULL};
        rc = map_piece(link, &piece);
        if (!rc) link = &(*link)->next;
    }
    return rc;
}

int cuMemMap(hewn_cu_deviceptr address, size_t bytes, size_t offset, hewn_cu_memory handle,
             unsigned long long flags)
{
    struct call call CALL_SCOPE;
    struct reservation *r;
    struct piece piece = {address, bytes, offset, NULL, NULL, ACCESS_NONE, NULL}, **link;
    struct multicast *multicast;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    piece.memory = physical_named(handle);
    multicast = multicast_named(handle);
    r = bytes ? reservation_around(address, bytes) : NULL;
    if (!r || (!piece.memory && !multicast) || flags || offset || bytes % GRANULE ||
        address % GRANULE || (piece.memory && bytes > piece.memory->bytes))
        return HEWN_CU_INVALID_VALUE;
    link = &r->pieces;
    while (*link && (*link)->address + (*link)->bytes <= address) link = &(*link)->next;
    if (*link && (*link)->address < address + bytes) return HEWN_CU_INVALID_VALUE; /* mapped */
    return multicast ? map_multicast(link, multicast, address, bytes) : map_piece(link, &piece);
}

/* True when whole pieces cover the range without a gap; *first is the link to the first. */
static bool covered(struct reservation *r, uint64_t address, uint64_t bytes, struct piece ***first)
{
    struct piece **link = &r->pieces;
    uint64_t at = address;

    while (*link && (*link)->address < address) link = &(*link)->next;
    *first = link;
    for (const struct piece *p = *link; p && p->address == at && at < address + bytes; p = p->next)
        at += p->bytes;
    return at == address + bytes;
}

static void drop_piece(struct piece **link)
{
    struct piece *p = *link;

    *link = p->next;
    mem_unmap(p->address, p->bytes);
    if (--p->memory->mapped == 1) driver.aliased--;
    physical_drop(p->memory);
    if (p->multicast) multicast_mapped(p->multicast, -1);
    free(p);
}

int cuMemUnmap(hewn_cu_deviceptr address, size_t bytes)
{
    struct call call CALL_SCOPE;
    struct reservation *r;
    struct piece **link;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    r = bytes ? reservation_around(address, bytes) : NULL;
    if (!r || !covered(r, address, bytes, &link)) return HEWN_CU_INVALID_VALUE;
    launch_settled();
    hide(r);
    while (*link && (*link)->address < address + bytes) drop_piece(link);
    return show(r);
}

int cuMemSetAccess(hewn_cu_deviceptr address, size_t bytes, const hewn_cu_access *access,
                   size_t count)
{
    struct call call CALL_SCOPE;
    struct reservation *r;
    struct piece **link;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    r = bytes ? reservation_around(address, bytes) : NULL;
    if (!r || !access || !count || !covered(r, address, bytes, &link)) return HEWN_CU_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        int flags = access[i].flags;
        if (access[i].location.type != HEWN_CU_ON_DEVICE) return HEWN_CU_NOT_SUPPORTED;
        if (access[i].location.id) return HEWN_CU_INVALID_DEVICE;
        if (flags != ACCESS_NONE && flags != ACCESS_READ_ONLY && flags != ACCESS_READ_WRITE)
            return HEWN_CU_INVALID_VALUE;
    }
    hide(r);
    for (struct piece *p = *link; p && p->address < address + bytes; p = p->next)
        p->access = access[count - 1].flags;
    return show(r);
}

static const struct piece *piece_around(uint64_t address)
{
    const struct reservation *r = reservation_around(address, 1);
    const struct piece *p = r ? r->pieces : NULL;

    while (p && !inside(address, 1, p->address, p->bytes)) p = p->next;
    return p;
}

struct physical *physical_behind(uint64_t address, uint64_t bytes, uint64_t *offset)
{
    const struct piece *p = piece_around(address);

    if (!p || p->multicast || !inside(address, bytes, p->address, p->bytes)) return NULL;
    *offset = p->offset + (address - p->address);
    return p->memory;
}

int cuMemGetAccess(unsigned long long *flags, const hewn_cu_location *location,
                   hewn_cu_deviceptr address)
{
    struct call call CALL_SCOPE;
    const struct piece *p;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    p = piece_around(address);
    if (!flags || !location || !p || location->type != HEWN_CU_ON_DEVICE)
        return HEWN_CU_INVALID_VALUE;
    if (location->id) return HEWN_CU_INVALID_DEVICE;
    *flags = (unsigned long long)p->access;
    return 0;
}

int cuMemRetainAllocationHandle(hewn_cu_memory *handle, void *address)
{
    struct call call CALL_SCOPE;
    const struct piece *p;
    struct physical *memory;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    p = piece_around((uint64_t)(uintptr_t)address);
    if (!handle || !p) return HEWN_CU_INVALID_VALUE;
    memory = p->memory;
    if (!memory->handles && handle_add(memory, HANDLE_PHYSICAL, memory, NULL))
        return HEWN_CU_OUT_OF_MEMORY;
    memory->handles++;
    memory->uses++;
    *handle = (uintptr_t)memory;
    return 0;
}

void virtual_free_all(void)
{
    size_t at = 0;
    struct physical *p;

    for (struct reservation *r; (r = driver.reservations);) {
        driver.reservations = r->next;
        hide(r);
        while (r->pieces) drop_piece(&r->pieces);
        free(r);
    }
    multicast_free_all();
    while ((p = handle_next(HANDLE_PHYSICAL, NULL, &at))) {
        handle_drop(p);
        p->uses = 1;
        physical_drop(p);
    }
}
