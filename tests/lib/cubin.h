/* A cubin without machine code: an ELF image with the sections that ptxas -lineinfo writes for the PTX text. */
#ifndef TESTS_CUBIN_H
#define TESTS_CUBIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    CUBIN_HEAD = 64,
    CUBIN_SECTION = 64,
    CUBIN_NAMES = 48,
    CUBIN_TEXT_AT = CUBIN_HEAD + CUBIN_NAMES
};

static inline void cubin_le(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * i);
}

/* At least 256 bytes and the text. Returns the size. */
static inline size_t cubin_make(uint8_t *out, const char *ptx)
{
    static const uint8_t ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7};
    static const char names[CUBIN_NAMES] = "\0.shstrtab\0.text.k\0.nv_debug_ptx_txt";
    size_t size = strlen(ptx) + 1, table = (CUBIN_TEXT_AT + size + 7) / 8 * 8;
    uint8_t *s;

    memset(out, 0, table + 3 * CUBIN_SECTION);
    memcpy(out, ident, sizeof ident);
    cubin_le(out + 18, 190, 2); /* the machine: CUDA */
    cubin_le(out + 40, table, 8);
    cubin_le(out + 58, CUBIN_SECTION, 2);
    cubin_le(out + 60, 3, 2);
    cubin_le(out + 62, 1, 2);
    memcpy(out + CUBIN_HEAD, names, sizeof names);
    for (size_t i = 0; i < size; i++) out[CUBIN_TEXT_AT + i] = ptx[i] == '\n' ? 0 : (uint8_t)ptx[i];
    s = out + table + CUBIN_SECTION; /* section 0 is empty */
    cubin_le(s, 1, 4);
    cubin_le(s + 24, CUBIN_HEAD, 8);
    cubin_le(s + 32, CUBIN_NAMES, 8);
    s += CUBIN_SECTION;
    cubin_le(s, 19, 4);
    cubin_le(s + 24, CUBIN_TEXT_AT, 8);
    cubin_le(s + 32, size, 8);
    return table + 3 * CUBIN_SECTION;
}

#endif
