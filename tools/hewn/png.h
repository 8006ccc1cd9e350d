/* Pictures of 16 grey levels as .png (PNG specification, third edition; RFC 1950, RFC 1951). */
#ifndef CLI_PNG_H
#define CLI_PNG_H

#include <stddef.h>
#include <stdint.h>

/* Writes `height` rows of `width` levels, 0 black, 15 white, top row first; each side 1 to 16384. 0, or
 * -1 with a sentence naming the file in `why`. */
int png_write(const char *path, const unsigned char *levels, uint32_t width, uint32_t height,
              char *why, size_t why_size);

#endif
