/* What launches changed (recall.h). */
#include "cuda/recall.h"
#include "machine/mem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 }; /* bytes that are compared at once, and kept where one of them differs */

struct snapshot {
    size_t count, bytes;
    uint8_t *data; /* of the pieces, one behind the other */
    struct mem_piece pieces[];
};

struct changed {
    uint8_t *at;
    size_t bytes;
};

struct changes {
    size_t count, bytes;
    uint8_t *data; /* of the runs, one behind the other */
    struct changed runs[];
};

static size_t live_pieces(struct mem_piece *pieces, size_t count, size_t *bytes)
{
    const size_t live = mem_live(pieces, count);

    *bytes = 0;
    for (size_t i = 0; i < live && i < count; i++) *bytes += pieces[i].bytes;
    return live;
}

struct snapshot *snapshot_take(size_t most)
{
    const size_t count = mem_live(NULL, 0);
    struct snapshot *s = malloc(sizeof *s + count * sizeof *s->pieces);
    uint8_t *to;

    if (!s) return NULL;
    s->count = count;
    s->data = NULL;
    if (live_pieces(s->pieces, count, &s->bytes) == count && s->bytes <= most)
        s->data = malloc(s->bytes + 1);
    to = s->data;
    for (size_t i = 0; to && i < count; to += s->pieces[i++].bytes)
        memcpy(to, s->pieces[i].at, s->pieces[i].bytes);
    if (s->data) return s;
    free(s);
    return NULL;
}

void snapshot_free(struct snapshot *s)
{
    if (!s) return;
    free(s->data);
    free(s);
}

/* The same allocations as when it was taken. */
static bool same_pieces(const struct snapshot *s)
{
    struct mem_piece *now = malloc((s->count + 1) * sizeof *now);
    bool same = now && mem_live(now, s->count) == s->count;

    for (size_t i = 0; same && i < s->count; i++)
        same = now[i].at == s->pieces[i].at && now[i].bytes == s->pieces[i].bytes;
    free(now);
    return same;
}

/* Calls `each` for every run of blocks that differ. */
static void for_changed(const struct snapshot *s,
                        void (*each)(struct changes *c, struct changed run), struct changes *c)
{
    const uint8_t *was = s->data;

    for (size_t i = 0; i < s->count; was += s->pieces[i++].bytes) {
        uint8_t *const is = s->pieces[i].at;
        const size_t bytes = s->pieces[i].bytes;
        size_t first = 0; /* of a run that ends at `at` */
        bool open = false;
        for (size_t at = 0; at < bytes; at += BLOCK) {
            const size_t size = bytes - at < BLOCK ? bytes - at : BLOCK;
            const bool differs = memcmp(is + at, was + at, size) != 0;
            if (differs && !open) first = at;
            if (!differs && open) each(c, (struct changed){is + first, at - first});
            open = differs;
        }
        if (open) each(c, (struct changed){is + first, bytes - first});
    }
}

static void count_run(struct changes *c, struct changed run)
{
    c->count++;
    c->bytes += run.bytes;
}

static void keep_run(struct changes *c, struct changed run)
{
    memcpy(c->data + c->bytes, run.at, run.bytes);
    c->runs[c->count] = run;
    count_run(c, run);
}

struct changes *snapshot_changes(struct snapshot *s, size_t most)
{
    struct changes size = {0}, *c = NULL;

    if (same_pieces(s)) {
        for_changed(s, count_run, &size);
        if (size.bytes <= most) c = malloc(sizeof *c + size.count * sizeof *c->runs);
    }
    if (c) {
        *c = (struct changes){.data = malloc(size.bytes + 1)};
        if (c->data) {
            for_changed(s, keep_run, c);
        } else {
            free(c);
            c = NULL;
        }
    }
    snapshot_free(s);
    return c;
}

size_t changes_bytes(const struct changes *c)
{
    return c ? c->bytes : 0;
}

void changes_apply(const struct changes *c)
{
    const uint8_t *from = c->data;

    for (size_t i = 0; i < c->count; from += c->runs[i++].bytes)
        memcpy(c->runs[i].at, from, c->runs[i].bytes);
}

void changes_free(struct changes *c)
{
    if (!c) return;
    free(c->data);
    free(c);
}
