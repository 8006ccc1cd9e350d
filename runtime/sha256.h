/* SHA-256 (FIPS 180-4), shared by the runtime and the module builder: it guards embedded text. */
#ifndef HEWN_SHA256_H
#define HEWN_SHA256_H

#include <stddef.h>

enum { HEWN_SHA256_HEX = 65 }; /* 64 lower-case hex digits and a NUL */

void hewn_sha256(const void *data, size_t size, char hex[HEWN_SHA256_HEX]);

#endif
