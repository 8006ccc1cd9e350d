/* The record of what each launch wrote: see the header. */
#include "others_record.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct buffer {
    hewn_cu_deviceptr address;
    size_t bytes;
    unsigned number;
    unsigned char *before;
} buffer;

static const struct record_calls *device;
static buffer *buffers;
static unsigned buffer_count, buffer_next, launch_next;

static const char *record_file(void)
{
    const char *name = getenv("OTHERS_RECORD");
    return name && name[0] ? name : NULL;
}

void record_through(const struct record_calls *calls)
{
    device = calls;
}

void record_allocated(hewn_cu_deviceptr address, size_t bytes)
{
    buffer *grown = realloc(buffers, (buffer_count + 1) * sizeof *grown);
    if (!grown) return;
    buffers = grown;
    buffers[buffer_count++] = (buffer){.address = address, .bytes = bytes, .number = buffer_next++};
}

void record_freed(hewn_cu_deviceptr address)
{
    for (unsigned i = 0; i < buffer_count; i++) {
        if (buffers[i].address != address) continue;
        free(buffers[i].before);
        memmove(&buffers[i], &buffers[i + 1], (--buffer_count - i) * sizeof *buffers);
        return;
    }
}

static unsigned char *contents(const buffer *b)
{
    unsigned char *bytes = malloc(b->bytes);
    if (bytes && device->to_host(bytes, b->address, b->bytes) != 0) {
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

void record_before(void)
{
    if (!record_file()) return;
    device->synchronize();
    for (unsigned i = 0; i < buffer_count; i++) {
        free(buffers[i].before);
        buffers[i].before = contents(&buffers[i]);
    }
}

static uint64_t fnv1a(const unsigned char *p, size_t n)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

/* The file of this launch's contents of the buffer in the folder that `variable` names, if any. */
static FILE *contents_file(const char *variable, const buffer *b, const char *mode)
{
    char path[1024];
    const char *folder = getenv(variable);
    if (!folder || !folder[0]) return NULL;
    snprintf(path, sizeof path, "%s/%u.%u", folder, launch_next, b->number);
    return fopen(path, mode);
}

static void dump(const buffer *b, const unsigned char *bytes)
{
    FILE *f = contents_file("OTHERS_DUMP", b, "wb");
    if (!f) return;
    fwrite(bytes, 1, b->bytes, f);
    fclose(f);
}

/* What another driver's dump holds, so that the next launch starts from the same bytes there. */
static void force(const buffer *b, unsigned char *bytes)
{
    FILE *f = contents_file("OTHERS_FORCE", b, "rb");
    if (!f) return;
    if (fread(bytes, 1, b->bytes, f) == b->bytes) device->to_device(b->address, bytes, b->bytes);
    fclose(f);
}

void record_after(void)
{
    const char *name = record_file();
    FILE *f = name ? fopen(name, "a") : NULL;
    if (!f) return;
    int rc = device->synchronize();
    if (rc) fprintf(f, "%u failed: driver error %d\n", launch_next, rc);
    for (unsigned i = 0; !rc && i < buffer_count; i++) {
        const buffer *b = &buffers[i];
        unsigned char *now = contents(b);
        if (now && b->before && memcmp(now, b->before, b->bytes) != 0) {
            fprintf(f, "%u %u %zu %016" PRIx64 "\n", launch_next, b->number, b->bytes,
                    fnv1a(now, b->bytes));
            dump(b, now);
            force(b, now);
        }
        free(now);
    }
    launch_next++;
    fclose(f);
}
