/* UTF-8, one character at a time. */
#ifndef ENGINE_UTF8_H
#define ENGINE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the character at `text`, of which `length` bytes are left. Returns its bytes, 1 to 4; 0
 * where there is none (overlong forms, surrogates and what is above U+10FFFF are none). */
size_t utf8_take(const char *text, size_t length, uint32_t *character);
/* Writes a character, 1 to 4 bytes. */
size_t utf8_put(char *to, uint32_t character);
/* Offset of the first byte that is no UTF-8; `length` where all of it is. */
size_t utf8_check(const char *text, size_t length);

#endif
