/*
 * A PTX text as a fat binary that drivers unpack themselves: one entry, an LZ4 block. CUDA's own
 * tool would drop the comments, which name roles and ranges for whoever reports on the kernel.
 */
#include "mod.h"

#include "ptx/fatbin.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- LZ4 blocks ---- */

enum {
    MATCH_LEAST = 4,
    LITERAL_TAIL = 5, /* the format's own rules: a block ends with so many literals, */
    MATCH_TAIL = 12,  /* and no match starts so close to the end */
    WINDOW = 65535,
    HASH_BITS = 16,
    CHAIN_MOST = 512 /* candidates looked at for a match */
};

/* Positions with the same hash, newest first: heads, and for each position the one before; -1
 * ends. */
struct matcher {
    const uint8_t *data;
    long size, next; /* the first position that is not yet listed */
    int32_t head[1 << HASH_BITS];
    int32_t *before;
};

static unsigned hash_at(const uint8_t *p)
{
    uint32_t word;

    memcpy(&word, p, sizeof word);
    return word * 2654435761U >> (32 - HASH_BITS);
}

static long match_length(const struct matcher *m, long a, long b)
{
    long n = 0, most = m->size - LITERAL_TAIL - b;

    while (n < most && m->data[a + n] == m->data[b + n]) n++;
    return n;
}

/* The longest earlier match at `at`, nearest first: its length, 0 where there is none. */
static long find_match(struct matcher *m, long at, long *from)
{
    long best = MATCH_LEAST - 1, tried = 0;

    if (at > m->size - MATCH_TAIL) return 0;
    for (; m->next < at; m->next++) {
        unsigned h = hash_at(m->data + m->next);
        m->before[m->next] = m->head[h];
        m->head[h] = (int32_t)m->next;
    }
    for (long p = m->head[hash_at(m->data + at)]; p >= 0 && at - p <= WINDOW; p = m->before[p]) {
        long n = match_length(m, p, at);
        if (n > best) {
            best = n;
            *from = p;
        }
        if (++tried == CHAIN_MOST) break;
    }
    return best < MATCH_LEAST ? 0 : best;
}

static uint8_t *put_length(uint8_t *out, long rest)
{
    for (; rest >= 255; rest -= 255) *out++ = 255;
    *out++ = (uint8_t)rest;
    return out;
}

/* Literals, then a match of `length` bytes, `offset` back; length 0: none, at the end of the
 * block. */
static uint8_t *put_sequence(uint8_t *out, const uint8_t *literals, long count, long offset,
                             long length)
{
    long extra = length ? length - MATCH_LEAST : 0;

    *out++ = (uint8_t)((count < 15 ? count : 15) << 4 | (extra < 15 ? extra : 15));
    if (count >= 15) out = put_length(out, count - 15);
    memcpy(out, literals, (size_t)count);
    out += count;
    if (!length) return out;
    *out++ = (uint8_t)offset;
    *out++ = (uint8_t)(offset >> 8);
    return extra >= 15 ? put_length(out, extra - 15) : out;
}

static long lz4_encode(struct matcher *m, uint8_t *out)
{
    uint8_t *start = out;
    long at = 0, literals = 0, from = 0, later_from = 0;

    while (at < m->size) {
        long length = find_match(m, at, &from);
        /* One byte later there may be a longer one. */
        if (length && find_match(m, at + 1, &later_from) > length) length = 0;
        if (!length) {
            at++;
            continue;
        }
        out = put_sequence(out, m->data + literals, at - literals, at - from, length);
        at += length;
        literals = at;
    }
    out = put_sequence(out, m->data + literals, m->size - literals, 0, 0);
    return out - start;
}

/* ---- the container ---- */

static int put_head(uint8_t head[FATBIN_HEAD_BYTES], const char *target, const char *version,
                    uint64_t packed, uint64_t bytes)
{
    unsigned major, minor;
    struct fatbin_text text = {
        .target = target, .packing = FATBIN_LZ4, .stored = packed, .bytes = bytes};

    if (sscanf(version, "%u.%u", &major, &minor) != 2) return -1;
    text.version = 10 * major + minor;
    return fatbin_put_head(head, &text);
}

/* Reads the file back as the simulator does. */
static int verify(const struct text *packed, const struct text *ptx, const char *path)
{
    struct fatbin fat;
    struct fatbin_entry entry;
    char *text = NULL;
    int same = fatbin_open(&fat, packed->data, packed->size) == 0 &&
               fatbin_next(&fat, &entry) == 1 && fatbin_unpack(&entry, &text) == 0 &&
               entry.bytes == ptx->size + 1 && memcmp(text, ptx->data, entry.bytes) == 0;

    free(text);
    return same ? 0 : complain(path, "does not unpack to the text it was made of");
}

/* The fat binary of `ptx` in *out. The text's NUL is part of the entry, as CUDA's tool has it. */
static int pack(struct text *out, const char *target, const struct text *ptx, const char *path)
{
    struct matcher *m = malloc(sizeof *m);
    struct scan scan;
    size_t room = FATBIN_HEAD_BYTES + ptx->size + ptx->size / 255 + 32;
    int rc = -1;

    out->data = calloc(1, room);
    if (m) m->before = malloc((ptx->size + 1) * sizeof *m->before);
    if (!m || !m->before || !out->data) {
        complain(path, "out of memory");
    } else if (scan_ptx(&scan, ptx, path) == 0) {
        uint8_t *bytes = (uint8_t *)out->data;
        long packed;

        m->data = (const uint8_t *)ptx->data;
        m->size = (long)ptx->size + 1;
        m->next = 0;
        memset(m->head, -1, sizeof m->head);
        packed = lz4_encode(m, bytes + FATBIN_HEAD_BYTES);
        out->size = (FATBIN_HEAD_BYTES + (size_t)packed + 7) / 8 * 8;
        rc = put_head(bytes, target, scan.version, (uint64_t)packed, (uint64_t)m->size);
        if (rc) complain(path, "target %s or version %s cannot be read", target, scan.version);
    }
    if (m) free(m->before);
    free(m);
    return rc;
}

int make_pack(int argc, char **argv)
{
    struct text ptx = {NULL, 0}, packed = {NULL, 0};
    FILE *out;
    int rc = -1;

    (void)argc;
    if (text_read(&ptx, argv[1]) == 0 && pack(&packed, argv[0], &ptx, argv[1]) == 0 &&
        verify(&packed, &ptx, argv[2]) == 0 && (out = text_create(argv[2])) != NULL) {
        fwrite(packed.data, 1, packed.size, out);
        rc = text_close(out, argv[2]);
    }
    text_free(&ptx);
    text_free(&packed);
    return rc;
}
