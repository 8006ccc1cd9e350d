/* Copies and fills beside launches (copied.h). */
#include "check/copied.h"
#include "check/launch_memory.h"

/* From the first byte to behind the last. */
static uint64_t span_of(const struct copied_area *a)
{
    uint64_t span = a->width;
    if (!a->width || !a->height || !a->depth) return 0;
    if (a->height > 1) span += (a->height - 1) * a->pitch;
    if (a->depth > 1) span += (a->depth - 1) * a->slice;
    return span;
}

static uint64_t row_at(const struct copied_area *a, uint64_t slice, uint64_t row)
{
    return a->address + slice * a->slice + row * a->pitch;
}

/* Rows of a slice, from the first one that may end behind `low`. */
static bool meets_slice(const struct copied_area *a, uint64_t slice, uint64_t low, uint64_t high)
{
    const uint64_t first = row_at(a, slice, 0);
    uint64_t row = a->height > 1 && a->pitch && low > first ? (low - first) / a->pitch : 0;
    for (; row < a->height && row_at(a, slice, row) < high; row++)
        if (low < row_at(a, slice, row) + a->width) return true;
    return false;
}

/* Bytes [low, high) of the area. */
static bool meets(const struct copied_area *a, uint64_t low, uint64_t high)
{
    const uint64_t span = span_of(a);
    uint64_t slice;
    if (!span || high <= a->address || low >= a->address + span) return false;
    slice = a->depth > 1 && a->slice && low > a->address ? (low - a->address) / a->slice : 0;
    for (; slice < a->depth && row_at(a, slice, 0) < high; slice++)
        if (meets_slice(a, slice, low, high)) return true;
    return false;
}

bool copied_meets(const struct copied *c, uint64_t address, uint64_t bytes, bool write, bool *wrote)
{
    *wrote = meets(&c->to, address, address + bytes);
    return *wrote || (write && meets(&c->from, address, address + bytes));
}

/* Four bytes of what it writes. Elements lie at multiples of their size. */
static uint32_t pattern(const struct copied *c)
{
    if (c->element == 1) return (c->value & 0xff) * 0x01010101U;
    return c->element == 2 ? (c->value & 0xffff) * 0x00010001U : c->value;
}

static bool same_fill(const struct copied *a, const struct copied *b)
{
    return a->fills && b->fills && pattern(a) == pattern(b);
}

static bool area_clashes(const struct copied_area *a, bool write, const struct copied *earlier,
                         struct copied_clash *out)
{
    for (uint64_t slice = 0; a->width && slice < a->depth; slice++) {
        for (uint64_t row = 0; row < a->height; row++) {
            out->address = row_at(a, slice, row);
            out->writes = write;
            if (copied_meets(earlier, out->address, a->width, write, &out->wrote)) return true;
        }
    }
    return false;
}

bool copied_clashes(const struct copied *c, const struct copied *earlier, struct copied_clash *out)
{
    *out = (struct copied_clash){0};
    if (same_fill(c, earlier)) return false;
    return area_clashes(&c->to, true, earlier, out) || area_clashes(&c->from, false, earlier, out);
}

static bool area_clashes_launch(const struct copied_area *a, bool write,
                                const struct launch_memory *m, struct copied_clash *out)
{
    for (uint64_t slice = 0; a->width && slice < a->depth; slice++) {
        for (uint64_t row = 0; row < a->height; row++) {
            const struct launch_access access = {
                .address = row_at(a, slice, row), .bytes = a->width, .write = write};
            out->address = access.address;
            out->writes = write;
            out->line = launch_memory_line(m, &access, &out->wrote);
            if (out->line) return true;
        }
    }
    return false;
}

bool copied_clashes_launch(const struct copied *c, const struct launch_memory *m,
                           struct copied_clash *out)
{
    *out = (struct copied_clash){0};
    return area_clashes_launch(&c->to, true, m, out) ||
           area_clashes_launch(&c->from, false, m, out);
}
