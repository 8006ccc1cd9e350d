#include "ptx/fatbin.h"

#include "ptx/lz4.h"
#include "ptx/zstd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An entry's header up to the flags; plain entries may end there. */
enum { ENTRY_LEAST = 48 };

static uint64_t read_le(const uint8_t *p, int bytes)
{
    uint64_t value = 0;

    while (bytes-- > 0) value = value << 8 | p[bytes];
    return value;
}

int fatbin_open(struct fatbin *f, const void *image, size_t size)
{
    const uint8_t *p = image;
    uint64_t header, bytes;

    if (size < FATBIN_HEADER_BYTES || read_le(p, 4) != FATBIN_MAGIC) return -1;
    header = read_le(p + 6, 2);
    bytes = read_le(p + 8, 8);
    if (header < FATBIN_HEADER_BYTES || header > size || bytes > size - header) return -1;
    if (bytes > UINTPTR_MAX - (uintptr_t)p - header) return -1;
    f->at = p + header;
    f->end = f->at + bytes;
    return 0;
}

int fatbin_next(struct fatbin *f, struct fatbin_entry *out)
{
    const uint8_t *p = f->at;
    uint64_t left = (uint64_t)(f->end - p), header, stored, packed;

    if (left == 0) return 0;
    if (left < ENTRY_LEAST) return -1;
    header = read_le(p + 4, 4);
    stored = read_le(p + 8, 8);
    packed = read_le(p + 16, 4);
    if (header < ENTRY_LEAST || header > left || stored > left - header || packed > stored)
        return -1;
    *out = (struct fatbin_entry){.kind = (unsigned)read_le(p, 2),
                                 .arch = (unsigned)read_le(p + 28, 4),
                                 .flags = read_le(p + 40, 8),
                                 .data = p + header,
                                 .stored = stored,
                                 .bytes = stored};
    out->suffix = out->flags & FATBIN_A ? 'a' : out->flags & FATBIN_F ? 'f' : 0;
    if (out->flags & (FATBIN_LZ4 | FATBIN_ZSTD)) {
        if (header < FATBIN_ENTRY_BYTES) return -1;
        out->stored = packed;
        out->bytes = read_le(p + 56, 8);
    }
    f->at = p + header + stored;
    return 1;
}

int fatbin_unpack(const struct fatbin_entry *entry, char **out)
{
    char *text;
    int rc = 0;

    if (entry->bytes > FATBIN_MOST ||
        (entry->bytes + FATBIN_RATIO_MOST - 1) / FATBIN_RATIO_MOST > entry->stored)
        return FATBIN_TOO_LARGE;
    text = malloc(entry->bytes + 1);
    if (!text) return FATBIN_NO_MEMORY;
    if (entry->flags & FATBIN_ZSTD)
        rc = zstd_decode(entry->data, entry->stored, (uint8_t *)text, entry->bytes);
    else if (entry->flags & FATBIN_LZ4)
        rc = lz4_decode(entry->data, entry->stored, (uint8_t *)text, entry->bytes);
    else
        memcpy(text, entry->data, entry->bytes);
    if (rc) {
        free(text);
        return rc == -2 ? FATBIN_NO_MEMORY : FATBIN_MALFORMED;
    }
    text[entry->bytes] = '\0';
    *out = text;
    return FATBIN_OK;
}

static void put_le(uint8_t *p, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) p[i] = (uint8_t)(value >> 8 * i);
}

int fatbin_put_head(uint8_t head[FATBIN_HEAD_BYTES], const struct fatbin_text *text)
{
    uint8_t *entry = head + FATBIN_HEADER_BYTES;
    uint64_t padded = (text->stored + 7) / 8 * 8, flags = FATBIN_64_BIT | FATBIN_LINUX;
    unsigned arch;
    char suffix = 0;

    if (sscanf(text->target, "sm_%u%c", &arch, &suffix) < 1) return -1;
    flags |= text->packing | (suffix == 'a' ? FATBIN_A : suffix == 'f' ? FATBIN_F : 0);
    memset(head, 0, FATBIN_HEAD_BYTES);
    put_le(head, FATBIN_MAGIC, 4);
    put_le(head + 4, 1, 2);
    put_le(head + 6, FATBIN_HEADER_BYTES, 2);
    put_le(head + 8, FATBIN_HEAD_BYTES - FATBIN_HEADER_BYTES + padded, 8);
    put_le(entry, FATBIN_PTX, 2);
    put_le(entry + 2, 0x101, 2);
    put_le(entry + 4, FATBIN_HEAD_BYTES - FATBIN_HEADER_BYTES, 4);
    put_le(entry + 8, padded, 8);
    put_le(entry + 16, text->packing ? text->stored : 0, 4);
    put_le(entry + 20, FATBIN_ENTRY_BYTES, 4); /* options: none, their text begins at 72 */
    put_le(entry + 24, text->version % 10, 2);
    put_le(entry + 26, text->version / 10, 2);
    put_le(entry + 28, arch, 4);
    put_le(entry + 40, flags, 8);
    put_le(entry + 56, text->packing ? text->bytes : 0, 8);
    put_le(entry + FATBIN_ENTRY_BYTES, FATBIN_ENTRY_BYTES + 8, 4);
    return 0;
}
