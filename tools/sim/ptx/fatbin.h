/*
 * Fat binaries: containers of PTX texts and cubins, stored plain, as LZ4 blocks or as zstd frames.
 * NVIDIA publishes no specification; the fields are those that CUDA's tools write, up to CUDA 13.0:
 *
 *   container  u32 magic 0xBA55ED50, u16 version 1, u16 header bytes, u64 bytes of all entries
 *   entry      u16 kind, u16 version, u32 header bytes, u64 bytes of data (padded),
 *              u32 bytes of compressed data (0: plain), u32 offset of the options,
 *              u16 minor, u16 major, u32 architecture, u32 name offset, u32 name bytes,
 *              u64 flags, u64 zero, u64 bytes decompressed; options and name; then the data
 */
#ifndef PTX_FATBIN_H
#define PTX_FATBIN_H

#include <stddef.h>
#include <stdint.h>

enum fatbin_kind { FATBIN_PTX = 1, FATBIN_ELF = 2 };

enum fatbin_flag {
    FATBIN_64_BIT = 0x1,
    FATBIN_LINUX = 0x10,
    FATBIN_LZ4 = 0x2000,
    FATBIN_ZSTD = 0x8000,
    FATBIN_A = 0x100000, /* the architecture has the suffix a, */
    FATBIN_F = 0x200000  /* or f */
};

enum { FATBIN_HEADER_BYTES = 16, FATBIN_ENTRY_BYTES = 64 };
#define FATBIN_MAGIC 0xBA55ED50U

struct fatbin {
    const uint8_t *at, *end; /* entries that fatbin_next has not yet read */
};

struct fatbin_entry {
    unsigned kind, arch; /* enum fatbin_kind, or another; 90 */
    char suffix;         /* 'a', 'f' or 0 */
    uint64_t flags;
    const uint8_t *data;
    size_t stored, bytes; /* as it lies there, and decompressed */
};

/* `size` bytes of image, or SIZE_MAX where only the image itself knows how long it is, as in
 * cuModuleLoadData: then its header is believed. 0, or -1: no fat binary, or longer than `size`. */
int fatbin_open(struct fatbin *f, const void *image, size_t size);
/* 1 with the next entry in *out, 0 at the end, -1 for an entry that does not fit. */
int fatbin_next(struct fatbin *f, struct fatbin_entry *out);

/* The head of a container with one PTX entry, every field as CUDA's tools write it; `stored` bytes of
 * data follow, and zeros up to a multiple of 8. */
enum { FATBIN_HEAD_BYTES = FATBIN_HEADER_BYTES + FATBIN_ENTRY_BYTES + 16 };
struct fatbin_text {
    const char *target; /* "sm_90a" */
    unsigned version;   /* 10*major + minor */
    uint64_t packing;   /* FATBIN_LZ4, FATBIN_ZSTD or 0 */
    uint64_t stored, bytes;
};
/* -1 for a target that cannot be read. */
int fatbin_put_head(uint8_t head[FATBIN_HEAD_BYTES], const struct fatbin_text *text);

/* Most that an entry may become, in bytes and as a multiple of what is stored. */
#define FATBIN_MOST       ((size_t)256 << 20)
#define FATBIN_RATIO_MOST 1000

enum fatbin_status {
    FATBIN_OK = 0,
    FATBIN_MALFORMED = -1,
    FATBIN_NO_MEMORY = -2,
    FATBIN_TOO_LARGE = -3
};

/* The entry's data, decompressed, with a NUL behind it, to be freed. What the entry says of its
 * size is believed within the limits above. */
int fatbin_unpack(const struct fatbin_entry *entry, char **out);

#endif
