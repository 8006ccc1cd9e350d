/*
 * The tables that records are left in. Polls leave theirs in host memory that the device maps: they
 * are rare, and the same memory tells them to stop. A wait that blocks leaves one each time, more
 * than the bus takes stores, so its table is managed memory: on the device until it is read.
 */
#include "watch.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { /* cuda.h */
       REGISTER_FLAGS = 3 /* portable, mapped */,
       ATTACH_GLOBAL = 1,
       POINTER_CONTEXT = 1,
       DEVICE_CONCURRENT_MANAGED = 89
};
#define SLOT_BYTES (sizeof(struct watch_record) * WATCH_SLOTS)

/* Managed memory of one context. It may go with its context at any time: the system copies it, and
 * reports a bad address without a signal. */
struct managed {
    void *context;
    uint64_t address; /* 0: none */
    int file;         /* in memory; holds the copy */
    struct watch_record *copy;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watch_table *host;
static struct managed managed[WATCH_TABLES]; /* [0] is not used: the host's number */

static void forget(struct managed *m)
{
    m->address = 0;
    memset(m->copy, 0, SLOT_BYTES);
}

/* The slots as they are now, or as they were before their context ended: none. */
static bool refresh(struct managed *m)
{
    const void *from = (const void *)(uintptr_t)(m->address + WATCH_HEADER);

    return pwrite(m->file, from, SLOT_BYTES, 0) == (ssize_t)SLOT_BYTES;
}

volatile struct watch_record *watch_slots(uint32_t table)
{
    struct managed *m = &managed[table];
    volatile struct watch_record *slots = NULL;

    pthread_mutex_lock(&lock);
    if (!table) {
        slots = host ? host->slots : NULL;
    } else if (m->copy) {
        if (m->address && !refresh(m)) forget(m);
        slots = m->copy;
    }
    pthread_mutex_unlock(&lock);
    return slots;
}

void watch_stop(bool yes)
{
    __atomic_store_n(&host->stop, (uint32_t)yes, __ATOMIC_SEQ_CST);
}

void watch_clear(void)
{
    pthread_mutex_lock(&lock);
    memset(host->slots, 0, sizeof host->slots);
    for (uint32_t t = 1; t < WATCH_TABLES; t++) {
        struct managed *m = &managed[t];

        if (!m->address) continue;
        memset(m->copy, 0, SLOT_BYTES);
        if (pread(m->file, (void *)(uintptr_t)(m->address + WATCH_HEADER), SLOT_BYTES, 0) !=
            (ssize_t)SLOT_BYTES)
            forget(m);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- for a context ---- */

/* Memory of our own, which no context takes along when it ends. */
static bool start(void)
{
    void *memory =
        mmap(NULL, sizeof *host, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) return false;
    host = memory;
    if (watch_start()) return true;
    munmap(memory, sizeof *host);
    host = NULL;
    return false;
}

static uint64_t host_address(const struct driver_calls *d)
{
    uint64_t address = 0;

    if (!d->host_pointer(&address, host, 0)) return address;
    if (d->host_register(host, sizeof *host, REGISTER_FLAGS) || d->host_pointer(&address, host, 0))
        return 0;
    return address;
}

/* A place for a context's table: that of a context which has ended, or a new one. NULL: too
 * many. */
static struct managed *vacant(void)
{
    for (uint32_t t = 1; t < WATCH_TABLES; t++) {
        struct managed *m = &managed[t];
        void *copy;

        if (m->address) continue;
        if (m->copy) return m;
        m->file = memfd_create("hewn-watch", MFD_CLOEXEC);
        if (m->file < 0) return NULL;
        copy = ftruncate(m->file, (off_t)SLOT_BYTES)
                   ? MAP_FAILED
                   : mmap(NULL, SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, m->file, 0);
        if (copy == MAP_FAILED) {
            close(m->file);
            return NULL;
        }
        m->copy = copy;
        return m;
    }
    return NULL;
}

/* Whether the memory is still this context's; another one may have got its handle. */
static bool holds(const struct driver_calls *d, const struct managed *m, const void *context)
{
    void *owner = NULL;

    return m->address && m->context == context && d->pointer_attribute &&
           !d->pointer_attribute(&owner, POINTER_CONTEXT, m->address) && owner == context;
}

/* 0: waits that block use the host's table. */
static uint64_t managed_address(const struct driver_calls *d, void *context)
{
    struct managed *m;
    int device = 0, concurrent = 0;

    for (uint32_t t = 1; t < WATCH_TABLES; t++)
        if (holds(d, &managed[t], context)) return managed[t].address;
    if (!d->managed || !d->pointer_attribute || !d->ctx_get_device || d->ctx_get_device(&device) ||
        d->device_attribute(&concurrent, DEVICE_CONCURRENT_MANAGED, device) || !concurrent)
        return 0;
    m = vacant();
    if (!m || d->managed(&m->address, WATCH_TABLE_BYTES, ATTACH_GLOBAL)) return 0;
    m->context = context;
    if (refresh(m)) return m->address;
    forget(m); /* the system does not copy from it */
    return 0;
}

/* For the current context, else for the first device's own. */
static void addresses(const struct driver_calls *d, struct watch_addresses *out)
{
    void *context = NULL;
    bool pushed = false;

    if (!d->host_register || !d->host_pointer || !d->ctx_get_current) return;
    if (d->ctx_get_current(&context)) return;
    if (!context) {
        if (!d->primary_retain || !d->ctx_push || d->primary_retain(&context, 0)) return;
        pushed = !d->ctx_push(context);
    }
    out->polls = host_address(d);
    out->blocks = managed_address(d, context);
    if (!out->blocks) out->blocks = out->polls;
    if (pushed) d->ctx_pop(&context);
}

bool watch_addresses_of(struct watch_addresses *out)
{
    const struct driver_calls *d = driver_calls();

    *out = (struct watch_addresses){0};
    pthread_mutex_lock(&lock);
    if (d && (host || start())) addresses(d, out);
    pthread_mutex_unlock(&lock);
    return out->polls != 0;
}
