/* Packs: files one behind the other, compressed as one LZMA stream. It uses nothing of hewn.h, because
 * the module builder, on which all modules depend, has it too. */
#ifndef HEWN_RUNTIME_UNPACK_H
#define HEWN_RUNTIME_UNPACK_H

#include <stddef.h>

/* Files that come first can be unpacked alone. */
struct hewn_pack {
    const unsigned char *data;
    size_t size, holds;       /* bytes of the data, and of the files */
    unsigned char lc, lp, pb; /* what the stream's literals and matches depend on: see lzma.h */
    unsigned char stored;     /* 1: the data are the files, not compressed */
};

enum hewn_unpacked { HEWN_UNPACKED, HEWN_UNPACK_CORRUPT, HEWN_UNPACK_NO_MEMORY };

/* Unpacks the first `size` bytes into `out`, which has room for them. A pack is also corrupt if it holds
 * less. Nothing outside the pack is read, whatever its bytes are. */
enum hewn_unpacked hewn_unpack(const struct hewn_pack *pack, size_t size, unsigned char *out);

#endif
