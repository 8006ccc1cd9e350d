/*
 * .safetensors files: one tensor by name. A file is a 64-bit little-endian header length, a JSON object
 * of that many bytes, and the data:
 *
 *   {"name": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}, …,
 *    "__metadata__": {"text": "text", …}}
 *
 * The whole header is checked before anything of it is used: JSON as RFC 8259 has it and nothing beside
 * it, names that occur once, offsets that cover the data without gap or overlap, as many bytes as shape
 * and dtype say.
 */
#ifndef CLI_SAFETENSORS_H
#define CLI_SAFETENSORS_H

#include "npy.h"

/* Reads the tensor `name` of dtype F32, F16, BF16 or F8_E4M3 and `rank` dimensions, each at least 1. 0, or -1
 * with a sentence naming file, value and rule in `why`. */
int safetensors_read(const char *path, const char *name, int rank, struct npy *out, char *why,
                     size_t why_size);

#endif
