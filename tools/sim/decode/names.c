#include "decode/names.h"
#include "ptx/demangle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTE_WORDS = 5 };

/* A note's words; returns how many, NOTE_WORDS + 1 for too many. */
static uint32_t split(char *text, char *words[NOTE_WORDS])
{
    uint32_t count = 0;
    char *save = NULL;

    for (char *w = strtok_r(text, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        if (count == NOTE_WORDS) return NOTE_WORDS + 1;
        words[count++] = w;
    }
    return count;
}

static bool number(const char *text, uint32_t *out)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 0);

    if (*text < '0' || *text > '9' || *end || value > 1U << 24) return false;
    *out = (uint32_t)value;
    return true;
}

struct lists {
    struct name_range *roles, *buffers, *columns;
};

static int bad_note(const struct kernel *k, const struct ptx_note *note, struct ptx_diag *diag)
{
    snprintf(diag->text, sizeof diag->text, "%.140s, line %u; error: malformed note '//@ %.200s'",
             ptx_file(k->module, note->pos), note->pos.line, note->text);
    return -2;
}

/* Adds what one note names. */
static int collect_note(struct kernel *k, struct lists *l, const struct ptx_note *note,
                        struct ptx_diag *diag)
{
    char *words[NOTE_WORDS] = {NULL},
         *text = arena_strndup(&k->arena, note->text, strlen(note->text));
    struct name_range range = {.stride = 1};
    uint32_t count;

    if (!text) return -1;
    count = split(text, words);
    if (!count) return 0;
    range.name = words[1];
    if (!strcmp(words[0], "role") || !strcmp(words[0], "tmem")) {
        if (count != 4 || !number(words[2], &range.first) || !number(words[3], &range.count))
            return bad_note(k, note, diag);
        if (words[0][0] == 'r')
            l->roles[k->role_count++] = range;
        else
            l->columns[k->column_count++] = range;
    } else if (!strcmp(words[0], "shared")) {
        uint32_t items;
        if (count != 5 || !number(words[2], &range.first) || !number(words[3], &range.stride) ||
            !number(words[4], &items) || (uint64_t)items * range.stride > 1U << 24)
            return bad_note(k, note, diag);
        range.first += SHARED_RESERVED + k->entry->shared_bytes;
        range.count = items * range.stride;
        l->buffers[k->buffer_count++] = range;
    }
    return 0;
}

int names_collect(struct kernel *kernel, struct ptx_diag *diag)
{
    const struct ptx_entry *e = kernel->entry;
    size_t notes = e->note_count + 1U;
    struct lists l = {
        .roles = arena_alloc(&kernel->arena, notes * sizeof *l.roles),
        .buffers = arena_alloc(&kernel->arena, (notes + e->shared_count) * sizeof *l.buffers),
        .columns = arena_alloc(&kernel->arena, notes * sizeof *l.columns),
    };
    int result = l.roles && l.buffers && l.columns ? 0 : -1;

    for (uint32_t i = 0; i < e->note_count && !result; i++)
        result = collect_note(kernel, &l, &e->notes[i], diag);
    for (uint32_t i = 0; i < e->shared_count && !result; i++) {
        char plain[DEMANGLED_BYTES];
        const char *name = e->shared[i]->name;

        demangle(name, plain, sizeof plain);
        if (strcmp(plain, name) != 0) name = arena_strndup(&kernel->arena, plain, strlen(plain));
        if (!name) result = -1;
        l.buffers[kernel->buffer_count++] =
            (struct name_range){name, SHARED_RESERVED + (uint32_t)e->shared[i]->offset,
                                (uint32_t)e->shared[i]->bytes, e->shared[i]->elem_bytes};
    }
    if (result == -1) snprintf(diag->text, sizeof diag->text, "out of memory");
    kernel->roles = l.roles;
    kernel->buffers = l.buffers;
    kernel->columns = l.columns;
    return result;
}

/* The smallest range that holds `at`: a note may name a part of another's. */
static const struct name_range *lookup(const struct name_range *ranges, uint32_t count, uint32_t at)
{
    const struct name_range *best = NULL;

    for (uint32_t i = 0; i < count; i++)
        if (at >= ranges[i].first && at - ranges[i].first < ranges[i].count &&
            (!best || ranges[i].count < best->count))
            best = &ranges[i];
    return best;
}

char *name_shared(const struct kernel *kernel, uint32_t offset, char *out, size_t size)
{
    const struct name_range *r;
    uint32_t at, inner;
    int n;

    offset &= SHARED_OFFSET_MASK;
    r = lookup(kernel->buffers, kernel->buffer_count, offset);
    if (!r) {
        snprintf(out, size, "shared+0x%" PRIx32, offset);
        return out;
    }
    at = offset - r->first;
    inner = at;
    if (r->stride > 1 && r->count > r->stride) {
        n = snprintf(out, size, "%s[%" PRIu32 "]", r->name, at / r->stride);
        inner = at % r->stride;
    } else {
        n = snprintf(out, size, "%s", r->name);
    }
    if (inner && n >= 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, "+0x%" PRIx32, inner);
    return out;
}

const struct name_range *role_of_warp(const struct kernel *kernel, uint32_t warp)
{
    return lookup(kernel->roles, kernel->role_count, warp);
}

char *name_warp(const struct kernel *kernel, uint32_t warp, char *out, size_t size)
{
    const struct name_range *r = role_of_warp(kernel, warp);

    if (r)
        snprintf(out, size, "%s (warp %" PRIu32 ")", r->name, warp);
    else
        snprintf(out, size, "warp %" PRIu32, warp);
    return out;
}

char *name_columns(const struct kernel *kernel, uint32_t first, uint32_t count, char *out,
                   size_t size)
{
    const struct name_range *r = lookup(kernel->columns, kernel->column_count, first);
    uint32_t last = first + (count ? count - 1 : 0);
    char plain[64];

    if (last == first)
        snprintf(plain, sizeof plain, "TMEM column %" PRIu32, first);
    else
        snprintf(plain, sizeof plain, "TMEM columns %" PRIu32 "..%" PRIu32, first, last);
    if (!r)
        snprintf(out, size, "%s", plain);
    else if (first == r->first && last - first + 1 == r->count)
        snprintf(out, size, "%s (%s)", r->name, plain);
    else
        snprintf(out, size, "%s[%" PRIu32 "..%" PRIu32 "] (%s)", r->name, first - r->first,
                 last - r->first, plain);
    return out;
}
