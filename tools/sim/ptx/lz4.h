/* LZ4 blocks, as the LZ4 block format describes them: decoding into memory that the caller
 * sized. */
#ifndef PTX_LZ4_H
#define PTX_LZ4_H

#include <stddef.h>
#include <stdint.h>

/* 0 where the block decodes to exactly out_size bytes, else -1. Reads nothing outside of `in` and
 * writes nothing outside of `out`, whatever the block says; on failure `out` holds the start of
 * what was decoded. */
int lz4_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

#endif
