/* The PTX text of a case, put together piece by piece. */
#ifndef TESTS_GOLDEN_TEXT_H
#define TESTS_GOLDEN_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* What is left of a buffer. Text that does not fit is dropped: the case then does not load. */
struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) void put(struct text *t, const char *format, ...);
/* "%r0, %r1, …" for the prefix "%r". */
void put_list(struct text *t, const char *prefix, uint32_t count);
/* Bytes [0, bytes) at [%in] to the shared memory at %base by 128 threads, 4 bytes at a time; %lane is
 * the thread's number. Declares nothing: %at, %v and %s are 32-bit scratch, %p 64-bit, %more a predicate. */
void put_copy_to_shared(struct text *t, uint32_t bytes);

/* ---- which case: mixed-radix numbers and lists ---- */

/* Takes a digit of `count` values off a number. */
uint32_t take_digit(uint32_t *number, uint32_t count);
/* Parts of a list that bars separate; the `index`-th of them. */
uint32_t list_parts(const char *list);
void list_part(const char *list, uint32_t index, char *out, size_t size);

#endif
