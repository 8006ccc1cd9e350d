#include "ptx/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024, LINE = 64 };

/* The payload follows the header, which is one cache line, so that offsets keep their alignment. */
struct arena_block {
    struct arena_block *next;
    unsigned char pad[LINE - sizeof(struct arena_block *)];
};

static int add_block(struct arena *arena, size_t payload)
{
    struct arena_block *block;

    if (payload > SIZE_MAX / 2) return -1;
    payload = (payload + LINE - 1) & ~(size_t)(LINE - 1);
    block = aligned_alloc(LINE, sizeof *block + payload);
    if (!block) return -1;
    memset(block + 1, 0, payload);
    block->next = arena->head;
    arena->head = block;
    arena->used = 0;
    arena->capacity = payload;
    return 0;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t align = size >= LINE ? LINE : 16;
    size_t at = (arena->used + align - 1) & ~(align - 1);

    if (!arena->head || at > arena->capacity || size > arena->capacity - at) {
        if (add_block(arena, size > BLOCK_BYTES ? size : BLOCK_BYTES)) return NULL;
        at = 0;
    }
    arena->used = at + size;
    return (unsigned char *)(arena->head + 1) + at;
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);

    if (copy) memcpy(copy, text, length);
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0) text = arena_alloc(arena, (size_t)length + 1);
    if (!text) return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

void *arena_grow(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size)
{
    uint32_t more;
    void *copy;

    if (count < *capacity) return items;
    more = *capacity ? *capacity * 2 : 16;
    if (more <= *capacity) return NULL;
    copy = arena_alloc(arena, more * size);
    if (!copy) return NULL;
    if (count) memcpy(copy, items, count * size);
    *capacity = more;
    return copy;
}

void arena_free(struct arena *arena)
{
    while (arena->head) {
        struct arena_block *next = arena->head->next;
        free(arena->head);
        arena->head = next;
    }
    arena->used = arena->capacity = 0;
}
