/* Bump allocation for data that dies together (a module's IR, a kernel's decoded form). */
#ifndef SIM_ARENA_H
#define SIM_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_block;

struct arena {
    struct arena_block *head;
    size_t used, capacity; /* of head */
};

/* Zeroed, 64-byte aligned when size >= 64, else 16-byte aligned; NULL when memory is exhausted. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Makes room for one more item of `size` bytes behind `count`; NULL when memory is exhausted. The
 * old array stays behind in the arena. */
void *arena_grow(struct arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size);
void arena_free(struct arena *arena);

#endif
