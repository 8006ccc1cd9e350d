/*
 * Memory and events for other processes. The pages of an allocation whose handle is asked for move to a file in
 * memory, each at its own address as the offset, and stay there. Another process finds the file by the number
 * of its owner and maps the same pages. Neighbours on those pages are shared as well, as in a real driver, which
 * shares whole blocks. Work is done when it is recorded, so an event of another process is always complete.
 */
#include "cuda/driver.h"
#include "machine/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { IPC_PAGE = 4096, LAZY_PEER = 1, EVENT_INTERPROCESS = 6 /* with timing disabled */ };

/* What the 64 bytes of a handle hold. */
struct ipc_name {
    char kind[8]; /* "hewn-me" or "hewn-ev" */
    int32_t owner, file;
    uint64_t pages, page_bytes; /* place in the file, which is the owner's address */
    uint64_t offset, bytes;     /* the allocation within the pages */
};
_Static_assert(sizeof(struct ipc_name) <= sizeof(hewn_cu_ipc_handle), "a handle has 64 bytes");

/* Memory of another process, mapped here. */
struct ipc_mapping {
    uint64_t pages, page_bytes, address;
    struct ipc_mapping *next;
};

static void put_name(hewn_cu_ipc_handle *out, const struct ipc_name *name)
{
    memset(out, 0, sizeof *out);
    memcpy(out, name, sizeof *name);
}

/* ---- giving ---- */

/* The file of this process, as large as its addresses; -1. */
static int own_file(void)
{
    const off_t room = (off_t)1 << 47;

    if (driver.ipc_file > 0) return driver.ipc_file;
    driver.ipc_file = memfd_create("hewn-sim-ipc", MFD_CLOEXEC);
    if (driver.ipc_file > 0 && ftruncate(driver.ipc_file, room)) {
        close(driver.ipc_file);
        driver.ipc_file = -1;
    }
    return driver.ipc_file;
}

/* Pages that were moved before are written to themselves. */
static bool move_to_file(int file, uint64_t pages, uint64_t bytes)
{
    uint8_t *at = (uint8_t *)(uintptr_t)pages;

    for (uint64_t done = 0; done < bytes;) {
        const ssize_t n = pwrite(file, at + done, bytes - done, (off_t)(pages + done));
        if (n <= 0) return false;
        done += (uint64_t)n;
    }
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, (off_t)pages) !=
           MAP_FAILED;
}

int cuIpcGetMemHandle(hewn_cu_ipc_handle *handle, hewn_cu_deviceptr address)
{
    struct call call CALL_SCOPE;
    struct ipc_name name = {.kind = "hewn-me", .owner = (int32_t)getpid()};
    struct memory *m;
    uint64_t base = 0;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!handle || !mem_range(address, 1, &base, &name.bytes)) return HEWN_CU_INVALID_VALUE;
    m = memory_named(base);
    if (!m || m->kind != MEMORY_DEVICE || m->pool) return HEWN_CU_INVALID_VALUE;
    name.pages = base / IPC_PAGE * IPC_PAGE;
    name.offset = base - name.pages;
    name.page_bytes = (name.offset + name.bytes + IPC_PAGE - 1) / IPC_PAGE * IPC_PAGE;
    name.file = own_file();
    if (name.file < 0) return HEWN_CU_OPERATING_SYSTEM;
    if (!move_to_file(name.file, name.pages, name.page_bytes)) return HEWN_CU_OUT_OF_MEMORY;
    m->given = driver.ipc_given = true;
    put_name(handle, &name);
    return 0;
}

bool ipc_shares(void)
{
    return driver.ipc_given || driver.ipc_mappings;
}

bool ipc_shared(uint64_t address)
{
    const struct memory *given;
    uint64_t base = 0;

    for (const struct ipc_mapping *m = driver.ipc_mappings; m; m = m->next)
        if (address - m->pages < m->page_bytes) return true;
    if (!driver.ipc_given || !mem_range(address, 1, &base, NULL)) return false;
    given = memory_named(base);
    return given && given->given;
}

int cuIpcGetEventHandle(hewn_cu_ipc_handle *handle, hewn_cu_event event)
{
    struct call call CALL_SCOPE;
    const struct ipc_name name = {.kind = "hewn-ev", .owner = (int32_t)getpid()};

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!handle) return HEWN_CU_INVALID_VALUE;
    if (!handle_get(event, HANDLE_EVENT)) return HEWN_CU_INVALID_HANDLE;
    put_name(handle, &name);
    return 0;
}

/* ---- taking ---- */

static bool take_name(const hewn_cu_ipc_handle *handle, const char *kind, struct ipc_name *out)
{
    memcpy(out, handle, sizeof *out);
    return !memcmp(out->kind, kind, sizeof out->kind);
}

/* The owner's file, opened here; -1. */
static int open_file(const struct ipc_name *name)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)name->owner, (int)name->file);
    return open(path, O_RDWR | O_CLOEXEC);
}

static int map_pages(struct ipc_mapping *m, const struct ipc_name *name)
{
    const int file = open_file(name);
    int rc;

    if (file < 0) return HEWN_CU_INVALID_VALUE;
    m->page_bytes = name->page_bytes;
    rc = mem_reserve(name->page_bytes, IPC_PAGE, &m->pages);
    if (!rc) {
        m->address = m->pages + name->offset;
        rc = mem_map(m->pages, m->page_bytes, file, name->pages);
        if (!rc) rc = mem_show(m->address, name->bytes, false);
        if (rc) mem_unreserve(m->pages);
    }
    close(file);
    return rc;
}

int cuIpcOpenMemHandle_v2(hewn_cu_deviceptr *address, hewn_cu_ipc_handle handle, unsigned flags)
{
    struct call call CALL_SCOPE;
    struct ipc_mapping *m;
    struct ipc_name name;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!address || flags != LAZY_PEER || !take_name(&handle, "hewn-me", &name) ||
        name.pages % IPC_PAGE || name.page_bytes % IPC_PAGE || name.offset >= IPC_PAGE ||
        name.bytes > name.page_bytes - name.offset)
        return HEWN_CU_INVALID_VALUE;
    m = calloc(1, sizeof *m);
    if (!m) return HEWN_CU_OUT_OF_MEMORY;
    rc = map_pages(m, &name);
    if (rc) {
        free(m);
        return rc;
    }
    m->next = driver.ipc_mappings;
    driver.ipc_mappings = m;
    *address = m->address;
    return 0;
}

int cuIpcCloseMemHandle(hewn_cu_deviceptr address)
{
    struct call call CALL_SCOPE;
    struct ipc_mapping **link = &driver.ipc_mappings, *m;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    while (*link && (*link)->address != address) link = &(*link)->next;
    m = *link;
    if (!m) return HEWN_CU_INVALID_VALUE;
    *link = m->next;
    mem_hide(m->address);
    mem_unmap(m->pages, m->page_bytes);
    mem_unreserve(m->pages);
    free(m);
    return 0;
}

int cuIpcOpenEventHandle(hewn_cu_event *event, hewn_cu_ipc_handle handle)
{
    struct ipc_name name;

    if (!take_name(&handle, "hewn-ev", &name)) return HEWN_CU_INVALID_VALUE;
    return cuEventCreate(event, EVENT_INTERPROCESS);
}
