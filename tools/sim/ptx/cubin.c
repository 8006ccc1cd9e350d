#include "ptx/cubin.h"

#include <stdint.h>
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
    SECTION_NAME = 0, /* u32 offset into the names, u64 offset in the image, u64 bytes */
    SECTION_AT = 24,
    SECTION_SIZE = 32
};
#define IMAGE_MOST ((size_t)1 << 30)
#define TEXT_MOST  ((uint64_t)256 << 20)

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

int cubin_ptx(const char *image, size_t size, char **out)
{
    struct section names, s;
    uint64_t table, count;
    char *text;

    if (!cubin_is(image, size) || size < HEADER_BYTES) return CUBIN_NO_PTX;
    if (read_le(image + MACHINE_AT, 2) != MACHINE_CUDA ||
        read_le(image + ENTRY_AT, 2) != SECTION_BYTES)
        return CUBIN_NO_PTX;
    if (size == SIZE_MAX) size = IMAGE_MOST;
    table = read_le(image + TABLE_AT, 8);
    count = read_le(image + COUNT_AT, 2);
    if (table > size || count * SECTION_BYTES > size - table) return CUBIN_NO_PTX;
    if (read_le(image + NAMES_AT, 2) >= count) return CUBIN_NO_PTX;
    if (!section_at(image, size, table, read_le(image + NAMES_AT, 2), &names)) return CUBIN_NO_PTX;
    for (uint64_t i = 0; i < count; i++) {
        if (!section_at(image, size, table, i, &s) || !is_ptx(&names, &s)) continue;
        text = malloc((size_t)s.bytes + 1);
        if (!text) return CUBIN_NO_MEMORY;
        for (uint64_t k = 0; k < s.bytes; k++) text[k] = s.data[k] ? s.data[k] : '\n';
        text[s.bytes] = '\0';
        *out = text;
        return CUBIN_OK;
    }
    return CUBIN_NO_PTX;
}
