/*
 * NumPy .npy files, versions 1.0 to 3.0: float32 or float16 arrays in, and out.
 * Format: numpy.lib.format ("\x93NUMPY", version, header length, a Python dict literal, data).
 */
#ifndef CLI_NPY_H
#define CLI_NPY_H

#include "hewn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPY_RANK = 4 };

/* An array in C order, from a .npy file or a tensor of a .safetensors file (safetensors.h). */
struct npy {
    int dtype; /* HEWN_F32 or HEWN_F16; from .safetensors also HEWN_BF16, HEWN_E4M3 */
    int rank;
    uint64_t dim[NPY_RANK]; /* dim[0] is the slowest */
    void *data;             /* free with npy_free */
};

/* 0, or -1 with a sentence naming file, value and rule in `why`. Accepts little-endian f4 and f2 in
 * C order with exactly `rank` dimensions, each at least 1, and a file exactly as long as the header
 * says. */
int npy_read(const char *path, int rank, struct npy *out, char *why, size_t why_size);
void npy_free(struct npy *x);
/* The same for elements of another type, "<i4" or "|u1"; out->dtype is 0. */
int npy_read_as(const char *path, const char *descr, size_t element, int rank, struct npy *out,
                char *why, size_t why_size);

/* Elements of any type and rank, read into the caller's memory: the file's type must be `descr` ("<f4";
 * a type of as many bytes that NumPy writes as "|V2" or "<V2" counts as equal), its shape `dim`. */
int npy_read_into(const char *path, const char *descr, size_t element, int rank,
                  const uint64_t *dim, void *data, char *why, size_t why_size);
int npy_write_array(const char *path, const char *descr, size_t element, int rank,
                    const uint64_t *dim, const void *data, char *why, size_t why_size);

/* Writes an array of `dtype` (hewn_dtype). bf16 is written as '<V2', the type under which NumPy
 * extensions store it. The file appears complete or not at all; what is no plain file (a link, a
 * device, a pipe) is written to, not replaced. */
int npy_write(const char *path, int dtype, int rank, const uint64_t *dim, const void *data,
              char *why, size_t why_size);

/* ---- shared with safetensors.c ---- */

/* Bytes of an array; UINT64_MAX where they are more than 2^50. */
uint64_t npy_bytes(size_t element, int rank, const uint64_t *dim);
/* "(3, 4)", "(3,)" */
void npy_shape_text(char *out, size_t size, int rank, const uint64_t *dim);

#endif
