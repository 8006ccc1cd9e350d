/* Zstandard frames (RFC 8878): decoding into memory that the caller sized. */
#ifndef PTX_ZSTD_H
#define PTX_ZSTD_H

#include <stddef.h>
#include <stdint.h>

/* 0 where the frames in `in` decode to exactly out_size bytes; -1: malformed, or longer or shorter
 * than that; -2: no memory (the decoder needs about 140 KiB, whatever the frames say). Dictionaries
 * are refused; content checksums are passed over. Reads nothing outside of `in` and writes nothing
 * outside of `out`. */
int zstd_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

#endif
