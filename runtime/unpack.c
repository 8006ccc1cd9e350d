/* The LZMA decoder. What it has written is its dictionary, so it needs no window. */
#include "unpack.h"

#include "lzma.h"

#include <stdlib.h>
#include <string.h>

struct decoder {
    const unsigned char *in, *end;
    uint32_t range, code;
    int overrun; /* the stream ended too early */
    unsigned lc, lp, pb;
    unsigned state;
    uint32_t distance[4]; /* of the last matches, less 1 */
    struct lzma_model model;
};

/* ---- bits ---- */

static void refill(struct decoder *d)
{
    if (d->range >= 1U << 24) return;
    d->range <<= 8;
    d->code <<= 8;
    if (d->in < d->end)
        d->code |= *d->in++;
    else
        d->overrun = 1;
}

static unsigned bit(struct decoder *d, uint16_t *p)
{
    uint32_t bound = (d->range >> LZMA_BITS) * *p;
    unsigned value = d->code >= bound;
    if (value) {
        d->range -= bound;
        d->code -= bound;
        *p = (uint16_t)(*p - (*p >> LZMA_MOVE));
    } else {
        d->range = bound;
        *p = (uint16_t)(*p + (((1U << LZMA_BITS) - *p) >> LZMA_MOVE));
    }
    refill(d);
    return value;
}

/* Bits at even odds, the highest first. */
static uint32_t plain_bits(struct decoder *d, unsigned count)
{
    uint32_t value = 0;
    while (count-- > 0) {
        d->range >>= 1;
        unsigned one = d->code >= d->range;
        if (one) d->code -= d->range;
        value = value << 1 | one;
        refill(d);
    }
    return value;
}

/* A number of `count` bits from a tree of probabilities, the highest bit first. */
static unsigned tree(struct decoder *d, uint16_t *p, unsigned count)
{
    unsigned node = 1;
    for (unsigned i = 0; i < count; i++) node = node << 1 | bit(d, &p[node]);
    return node - (1U << count);
}

/* The same, the lowest bit first. */
static uint32_t reverse_tree(struct decoder *d, uint16_t *p, unsigned count)
{
    uint32_t value = 0;
    unsigned node = 1;
    for (unsigned i = 0; i < count; i++) {
        unsigned one = bit(d, &p[node]);
        node = node << 1 | one;
        value |= (uint32_t)one << i;
    }
    return value;
}

/* ---- literals, lengths, distances ---- */

/* Behind a match, the byte at the last distance steers the tree while its bits are right. */
static unsigned char literal(struct decoder *d, const unsigned char *out, size_t at)
{
    unsigned before = at ? out[at - 1] : 0, node = 1;
    size_t context = ((at & ((1U << d->lp) - 1)) << d->lc) + (before >> (8 - d->lc));
    uint16_t *p = d->model.literal + LZMA_LITERAL * context;
    if (d->state >= LZMA_LITERAL_STATES) {
        unsigned like = out[at - d->distance[0] - 1];
        while (node < 0x100) {
            unsigned hint = like >> 7 & 1;
            unsigned one = bit(d, &p[((1 + hint) << 8) + node]);
            like <<= 1;
            node = node << 1 | one;
            if (one != hint) break;
        }
    }
    while (node < 0x100) node = node << 1 | bit(d, &p[node]);
    return (unsigned char)node;
}

static unsigned length_of(struct decoder *d, struct lzma_length *l, size_t position)
{
    if (!bit(d, &l->beyond_low)) return LZMA_LEAST + tree(d, l->low[position], 3);
    if (!bit(d, &l->beyond_mid)) return LZMA_LEAST + LZMA_LOW + tree(d, l->mid[position], 3);
    return LZMA_LEAST + 2 * LZMA_LOW + tree(d, l->high, 8);
}

static uint32_t distance_of(struct decoder *d, unsigned length)
{
    unsigned class = length - LZMA_LEAST < LZMA_LENGTHS ? length - LZMA_LEAST : LZMA_LENGTHS - 1;
    uint32_t slot = tree(d, d->model.slot[class], 6);
    if (slot < 4) return slot;
    unsigned count = (slot >> 1) - 1;
    uint32_t base = (2 | (slot & 1)) << count;
    if (slot < LZMA_SLOT_TREES)
        return base + reverse_tree(d, d->model.special + base - slot, count);
    base += plain_bits(d, count - 4) << 4;
    return base + reverse_tree(d, d->model.align, 4);
}

/* ---- the stream ---- */

/* Moves distance `which` to the front. */
static void to_front(struct decoder *d, unsigned which)
{
    uint32_t used = d->distance[which];
    memmove(d->distance + 1, d->distance, which * sizeof *d->distance);
    d->distance[0] = used;
}

/* One match behind the bit that announces it: its length. The distance goes to distance[0]. */
static unsigned match(struct decoder *d, size_t position)
{
    struct lzma_model *m = &d->model;
    unsigned s = d->state, literals = s < LZMA_LITERAL_STATES;
    if (!bit(d, &m->again[s])) {
        unsigned length = length_of(d, &m->length, position);
        d->state = literals ? 7 : 10;
        to_front(d, 3);
        d->distance[0] = distance_of(d, length);
        return length;
    }
    if (!bit(d, &m->not_first[s])) {
        if (!bit(d, &m->longer[s][position])) {
            d->state = literals ? 9 : 11;
            return 1;
        }
    } else if (!bit(d, &m->not_second[s])) {
        to_front(d, 1);
    } else {
        to_front(d, 2 + bit(d, &m->not_third[s]));
    }
    d->state = literals ? 8 : 11;
    return length_of(d, &m->length_again, position);
}

static int decode(struct decoder *d, unsigned char *out, size_t size)
{
    size_t at = 0;
    while (at < size && !d->overrun) {
        size_t position = at & ((1U << d->pb) - 1);
        if (!bit(d, &d->model.match[d->state][position])) {
            out[at] = literal(d, out, at);
            at++;
            d->state = d->state < 4 ? 0 : d->state - (d->state < 10 ? 3 : 6);
            continue;
        }
        size_t length = match(d, position);
        if (d->distance[0] >= at) return -1;
        if (length > size - at) length = size - at;
        const unsigned char *from = out + at - d->distance[0] - 1;
        if (d->distance[0] < length) /* the match repeats what it writes */
            for (size_t i = 0; i < length; i++) out[at + i] = from[i];
        else
            memcpy(out + at, from, length);
        at += length;
    }
    return d->overrun ? -1 : 0;
}

enum hewn_unpacked hewn_unpack(const struct hewn_pack *pack, size_t size, unsigned char *out)
{
    if (!pack || !pack->data || size > pack->holds) return HEWN_UNPACK_CORRUPT;
    if (pack->stored) {
        if (size > pack->size) return HEWN_UNPACK_CORRUPT;
        memcpy(out, pack->data, size);
        return HEWN_UNPACKED;
    }
    if (pack->size < 5 || pack->lc + pack->lp > LZMA_CONTEXTS_LOG || pack->pb > 4)
        return HEWN_UNPACK_CORRUPT;
    struct decoder *d = calloc(1, sizeof *d);
    if (!d) return HEWN_UNPACK_NO_MEMORY;
    d->in = pack->data;
    d->end = d->in + pack->size;
    d->range = 0xffffffff;
    d->lc = pack->lc;
    d->lp = pack->lp;
    d->pb = pack->pb;
    uint16_t *p = (uint16_t *)&d->model;
    for (size_t i = 0; i < sizeof d->model / sizeof *p; i++) p[i] = LZMA_EVEN;
    for (int i = 0; i < 5; i++) d->code = d->code << 8 | *d->in++;
    int status = decode(d, out, size);
    free(d);
    return status ? HEWN_UNPACK_CORRUPT : HEWN_UNPACKED;
}
