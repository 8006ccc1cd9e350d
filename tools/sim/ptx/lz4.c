#include "ptx/lz4.h"

#include <string.h>

enum { MATCH_LEAST = 4, NIBBLE_FULL = 15 };

/* A length whose low part stood in a token: 15 there means that bytes to add follow, the last one
 * below 255. */
static int read_length(const uint8_t **at, const uint8_t *end, size_t *length)
{
    unsigned byte = 255;

    if (*length != NIBBLE_FULL) return 0;
    while (byte == 255) {
        if (*at == end) return -1;
        byte = *(*at)++;
        *length += byte;
    }
    return 0;
}

int lz4_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    const uint8_t *at = in, *end = in + in_size;
    size_t used = 0;

    while (at < end) {
        unsigned token = *at++;
        size_t literals = token >> 4, match = token & 15, offset;

        if (read_length(&at, end, &literals)) return -1;
        if (literals > (size_t)(end - at) || literals > out_size - used) return -1;
        memcpy(out + used, at, literals);
        at += literals;
        used += literals;
        if (at == end) return used == out_size ? 0 : -1; /* the last sequence has no match */

        if (end - at < 2) return -1;
        offset = at[0] | (size_t)at[1] << 8;
        at += 2;
        if (read_length(&at, end, &match)) return -1;
        match += MATCH_LEAST;
        if (offset == 0 || offset > used || match > out_size - used) return -1;
        /* Byte by byte: a match may overlap what it writes. */
        for (const uint8_t *from = out + used - offset; match > 0; match--) out[used++] = *from++;
    }
    return -1;
}
