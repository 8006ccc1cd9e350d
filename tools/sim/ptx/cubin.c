#include "ptx/cubin.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of ELF64, little-endian. */
enum {
    HEADER_BYTES = 64,
    MACHINE_AT = 18, /* u16 */
    MACHINE_CUDA = 190,
    TABLE_AT = 40, /* u64 offset of the table of sections; */
    ENTRY_AT = 58, /* u16 bytes of an entry */
    COUNT_AT = 60, /* u16 of them, and the one that has their names */
    NAMES_AT = 62,
    SECTION_BYTES = 64,
    SECTION_NAME = 0, /* u32 offset into the names, u32 kind, u64 offset in the image, u64 bytes */
    SECTION_KIND = 4,
    SECTION_AT = 24,
    SECTION_SIZE = 32,
    SECTION_LINK = 40, /* u32: of symbols, the section that has their names */
    KIND_SYMBOLS = 2,
    SYMBOL_BYTES = 24,
    SYMBOL_INFO = 4, /* u8, the kind in the low half; u16 section; u64 bytes */
    SYMBOL_SECTION = 6,
    SYMBOL_SIZE = 16,
    SYMBOL_OBJECT = 1
};
#define IMAGE_MOST    ((size_t)1 << 30)
#define TEXT_MOST     ((uint64_t)256 << 20)
#define VARIABLE_MOST ((uint64_t)1 << 26)

static const char MAGIC[] = {0x7f, 'E', 'L', 'F', 2, 1}; /* of 64 bits, little-endian */
static const char PTX_SECTION[] = ".nv_debug_ptx_txt";

struct section {
    const char *data;
    uint64_t bytes;
    uint64_t name;
};

static uint64_t read_le(const char *p, int bytes)
{
    uint64_t value = 0;

    while (bytes-- > 0) value = value << 8 | (uint8_t)p[bytes];
    return value;
}

/* Byte by byte, because an image of unknown size may be shorter. */
bool cubin_is(const char *image, size_t size)
{
    if (size < sizeof MAGIC) return false;
    for (size_t i = 0; i < sizeof MAGIC; i++)
        if (image[i] != MAGIC[i]) return false;
    return true;
}

/* Section `index` of the table at `table`; false if it does not fit. */
static bool section_at(const char *image, size_t size, uint64_t table, uint64_t index,
                       struct section *out)
{
    const char *head = image + table + index * SECTION_BYTES;
    uint64_t at = read_le(head + SECTION_AT, 8);

    out->name = read_le(head + SECTION_NAME, 4);
    out->bytes = read_le(head + SECTION_SIZE, 8);
    if (at > size || out->bytes > size - at || out->bytes > TEXT_MOST) return false;
    out->data = image + at;
    return true;
}

static bool is_ptx(const struct section *names, const struct section *s)
{
    return names->bytes >= sizeof PTX_SECTION && s->name <= names->bytes - sizeof PTX_SECTION &&
           !memcmp(names->data + s->name, PTX_SECTION, sizeof PTX_SECTION);
}

/* The sections of a cubin. */
struct sections {
    const char *image;
    size_t size;
    uint64_t table, count;
    struct section names;
};

static bool sections_of(const char *image, size_t size, struct sections *out)
{
    if (!cubin_is(image, size) || size < HEADER_BYTES) return false;
    if (read_le(image + MACHINE_AT, 2) != MACHINE_CUDA ||
        read_le(image + ENTRY_AT, 2) != SECTION_BYTES)
        return false;
    *out = (struct sections){.image = image,
                             .size = size == SIZE_MAX ? IMAGE_MOST : size,
                             .table = read_le(image + TABLE_AT, 8),
                             .count = read_le(image + COUNT_AT, 2)};
    if (out->table > out->size || out->count * SECTION_BYTES > out->size - out->table) return false;
    if (read_le(image + NAMES_AT, 2) >= out->count) return false;
    return section_at(image, out->size, out->table, read_le(image + NAMES_AT, 2), &out->names);
}

int cubin_ptx(const char *image, size_t size, char **out)
{
    struct sections all;
    struct section s;
    char *text;

    if (!sections_of(image, size, &all)) return CUBIN_NO_PTX;
    for (uint64_t i = 0; i < all.count; i++) {
        if (!section_at(image, all.size, all.table, i, &s) || !is_ptx(&all.names, &s)) continue;
        text = malloc((size_t)s.bytes + 1);
        if (!text) return CUBIN_NO_MEMORY;
        for (uint64_t k = 0; k < s.bytes; k++) text[k] = s.data[k] ? s.data[k] : '\n';
        text[s.bytes] = '\0';
        *out = text;
        return CUBIN_OK;
    }
    return CUBIN_NO_PTX;
}

/* Characters of an identifier of PTX at `name`, within `rest` bytes and a NUL; 0: it is none. */
static size_t identifier(const char *name, uint64_t rest)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789$";
    size_t length = 0;

    while (length < rest && name[length] && strchr(letters, name[length])) length++;
    if (length == rest || name[length] || (name[0] >= '0' && name[0] <= '9')) return 0;
    return length;
}

/* What follows `prefix` in the name of section `index`, and the bytes there; NULL for another name. */
static const char *section_suffix(const struct sections *all, uint64_t index, const char *prefix,
                                  uint64_t *rest)
{
    const size_t skip = strlen(prefix);
    struct section s;

    if (index >= all->count || !section_at(all->image, all->size, all->table, index, &s))
        return NULL;
    if (s.name >= all->names.bytes || all->names.bytes - s.name <= skip) return NULL;
    if (memcmp(all->names.data + s.name, prefix, skip) != 0) return NULL;
    *rest = all->names.bytes - s.name - skip;
    return all->names.data + s.name + skip;
}

/* A text that grows, or is counted while `to` is NULL. */
struct sink {
    char *to;
    uint64_t bytes;
};

static void put_line(struct sink *s, const char *before, const char *name, size_t length,
                     const char *after)
{
    char *at = s->to ? s->to + s->bytes : NULL;
    int n = snprintf(at, at ? SIZE_MAX >> 1 : 0, "%s%.*s%s\n", before, (int)length, name, after);

    if (n > 0) s->bytes += (uint64_t)n;
}

static void put_functions(const struct sections *all, struct sink *out)
{
    uint64_t rest = 0;

    for (uint64_t i = 0; i < all->count && out->bytes < TEXT_MOST; i++) {
        const char *name = section_suffix(all, i, ".text.", &rest);
        size_t length = name ? identifier(name, rest) : 0;
        if (length) put_line(out, ".visible .entry ", name, length, "() { trap; }");
    }
}

/* One symbol of a variable in global memory. The compiler's own begin with '$', and may share a name. */
static void put_variable(const struct sections *all, const struct section *names,
                         const char *symbol, struct sink *out)
{
    const uint64_t at = read_le(symbol, 4), bytes = read_le(symbol + SYMBOL_SIZE, 8);
    char after[32];
    uint64_t rest;
    size_t length;

    if ((symbol[SYMBOL_INFO] & 15) != SYMBOL_OBJECT || !bytes || bytes > VARIABLE_MOST) return;
    if (!section_suffix(all, read_le(symbol + SYMBOL_SECTION, 2), ".nv.global", &rest)) return;
    if (at >= names->bytes || names->data[at] == '$') return;
    length = identifier(names->data + at, names->bytes - at);
    snprintf(after, sizeof after, "[%llu];", (unsigned long long)bytes);
    if (length) put_line(out, ".visible .global .align 16 .b8 ", names->data + at, length, after);
}

static void put_variables(const struct sections *all, struct sink *out)
{
    struct section symbols, names;

    for (uint64_t i = 0; i < all->count; i++) {
        const char *head = all->image + all->table + i * SECTION_BYTES;
        uint64_t link = read_le(head + SECTION_LINK, 4);
        if (read_le(head + SECTION_KIND, 4) != KIND_SYMBOLS || link >= all->count) continue;
        if (!section_at(all->image, all->size, all->table, i, &symbols) ||
            !section_at(all->image, all->size, all->table, link, &names))
            continue;
        for (uint64_t at = 0; at + SYMBOL_BYTES <= symbols.bytes && out->bytes < TEXT_MOST;
             at += SYMBOL_BYTES)
            put_variable(all, &names, symbols.data + at, out);
        return;
    }
}

static void put_names(const struct sections *all, struct sink *out)
{
    put_line(out, ".version 8.0\n.target sm_90\n.address_size 64", "", 0, "");
    put_functions(all, out);
    put_variables(all, out);
}

int cubin_names(const char *image, size_t size, char **out)
{
    struct sink sink = {0};
    struct sections all;

    if (!sections_of(image, size, &all)) return CUBIN_NO_PTX;
    put_names(&all, &sink);
    if (sink.bytes >= TEXT_MOST) return CUBIN_NO_PTX;
    *out = malloc((size_t)sink.bytes + 1);
    if (!*out) return CUBIN_NO_MEMORY;
    sink = (struct sink){.to = *out};
    put_names(&all, &sink);
    return CUBIN_OK;
}
