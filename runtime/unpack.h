/* What a pack holds: the files of several modules, compressed as one LZMA stream. */
#ifndef HEWN_RUNTIME_UNPACK_H
#define HEWN_RUNTIME_UNPACK_H

#include "module.h"

/* Unpacks the first `size` bytes into `out`, which has room for them. HEWN_ERR_IMAGE: the pack is corrupt,
 * or holds less. HEWN_ERR_MEMORY: no room to work in. It reads nothing outside the pack, whatever its
 * bytes are. */
int hewn_unpack(const struct hewn_pack *pack, size_t size, unsigned char *out);

#endif
