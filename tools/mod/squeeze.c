/* Writes an LZMA stream. A step's price is what its bits would take, so one code serves both. */
#include "squeeze.h"

#include <stdlib.h>
#include <string.h>

/* ---- bits ---- */

/* Moves the top byte of `low` out. A byte of 0xff waits: a carry would change it and those before. */
static void shift_low(struct coder *c)
{
    if (c->low < 0xff000000 || c->low > 0xffffffff) {
        uint8_t carry = (uint8_t)(c->low >> 32), byte = c->waiting;

        for (; c->waiting_count > 0; c->waiting_count--) {
            c->out[c->written++] = (uint8_t)(byte + carry);
            byte = 0xff;
        }
        c->waiting = (uint8_t)(c->low >> 24);
    }
    c->waiting_count++;
    c->low = (c->low & 0x00ffffff) << 8;
}

static void narrow(struct coder *c)
{
    for (; c->range < 1U << 24; c->range <<= 8) shift_low(c);
}

/* -log2 of probability / 2048, in sixteenths of a bit. */
static uint32_t price_of(uint32_t probability)
{
    static uint8_t table[1 << (LZMA_BITS - 4)];

    if (!table[1])
        for (uint32_t i = 0; i < sizeof table; i++) {
            uint32_t power = 16 * i + 8, log = 0; /* squared four times: 16 log2 is left */
            for (int square = 0; square < 4; square++) {
                power *= power;
                for (log *= 2; power >= 1U << 16; power >>= 1) log++;
            }
            table[i] = (uint8_t)(PRICE_BIT * LZMA_BITS - 15 - log);
        }
    return table[probability >> 4];
}

static void bit(struct coder *c, uint16_t *p, unsigned value)
{
    uint32_t bound;

    if (c->pricing) {
        c->price += price_of(value ? (1U << LZMA_BITS) - *p : *p);
        return;
    }
    bound = (c->range >> LZMA_BITS) * *p;
    if (value) {
        c->low += bound;
        c->range -= bound;
        *p = (uint16_t)(*p - (*p >> LZMA_MOVE));
    } else {
        c->range = bound;
        *p = (uint16_t)(*p + (((1U << LZMA_BITS) - *p) >> LZMA_MOVE));
    }
    narrow(c);
}

static void plain_bits(struct coder *c, uint32_t value, unsigned count)
{
    if (c->pricing) {
        c->price += PRICE_BIT * count;
        return;
    }
    while (count-- > 0) {
        c->range >>= 1;
        if (value >> count & 1) c->low += c->range;
        narrow(c);
    }
}

static void tree(struct coder *c, uint16_t *p, unsigned count, uint32_t value)
{
    unsigned node = 1;

    while (count-- > 0) {
        unsigned one = value >> count & 1;
        bit(c, &p[node], one);
        node = node << 1 | one;
    }
}

static void reverse_tree(struct coder *c, uint16_t *p, unsigned count, uint32_t value)
{
    unsigned node = 1;

    for (unsigned i = 0; i < count; i++) {
        unsigned one = value >> i & 1;
        bit(c, &p[node], one);
        node = node << 1 | one;
    }
}

/* ---- parts of a step ---- */

static void literal(struct coder *c, const struct history *h, size_t at)
{
    unsigned before = at ? c->data[at - 1] : 0, byte = c->data[at], node = 1, left = 8;
    size_t context = ((at & ((1U << c->lp) - 1)) << c->lc) + (before >> (8 - c->lc));
    uint16_t *p = c->model.literal + LZMA_LITERAL * context;

    if (h->state >= LZMA_LITERAL_STATES) {
        unsigned like = c->data[at - h->distance[0] - 1], hint, one;
        do {
            left--;
            hint = like >> left & 1;
            one = byte >> left & 1;
            bit(c, &p[((1 + hint) << 8) + node], one);
            node = node << 1 | one;
        } while (left > 0 && hint == one);
    }
    while (left > 0) {
        left--;
        bit(c, &p[node], byte >> left & 1);
        node = node << 1 | (byte >> left & 1);
    }
}

static void length_code(struct coder *c, struct lzma_length *l, unsigned position, uint32_t length)
{
    uint32_t rest = length - LZMA_LEAST;

    bit(c, &l->beyond_low, rest >= LZMA_LOW);
    if (rest < LZMA_LOW) {
        tree(c, l->low[position], 3, rest);
        return;
    }
    bit(c, &l->beyond_mid, rest >= 2 * LZMA_LOW);
    if (rest < 2 * LZMA_LOW)
        tree(c, l->mid[position], 3, rest - LZMA_LOW);
    else
        tree(c, l->high, 8, rest - 2 * LZMA_LOW);
}

static void distance_code(struct coder *c, uint32_t length, uint32_t distance)
{
    uint32_t class = length - LZMA_LEAST, slot = distance, base;
    unsigned count = 0;

    if (class >= LZMA_LENGTHS) class = LZMA_LENGTHS - 1;
    if (distance >= 4) {
        while (distance >> (count + 2)) count++;
        slot = 2 * (count + 1) + (distance >> count & 1);
    }
    tree(c, c->model.slot[class], 6, slot);
    if (slot < 4) return;
    base = (2 | (slot & 1)) << count;
    if (slot < LZMA_SLOT_TREES) {
        reverse_tree(c, c->model.special + base - slot, count, distance - base);
        return;
    }
    plain_bits(c, (distance - base) >> 4, count - 4);
    reverse_tree(c, c->model.align, 4, (distance - base) & (LZMA_ALIGN - 1));
}

/* That a match comes, and at which of the last distances if at one of them. */
static void kind(struct coder *c, const struct history *h, unsigned position,
                 const struct step *step)
{
    struct lzma_model *m = &c->model;
    unsigned s = h->state;

    bit(c, &m->match[s][position], 1);
    bit(c, &m->again[s], step->which < STEP_MATCH);
    if (step->which >= STEP_MATCH) return;
    bit(c, &m->not_first[s], step->which > 0);
    if (step->which == 0) {
        bit(c, &m->longer[s][position], step->length > 1);
        return;
    }
    bit(c, &m->not_second[s], step->which > 1);
    if (step->which > 1) bit(c, &m->not_third[s], step->which > 2);
}

/* ---- a step ---- */

void history_step(struct history *h, const struct step *step)
{
    unsigned literals = h->state < LZMA_LITERAL_STATES;
    uint32_t used;

    if (step->which == STEP_LITERAL) {
        h->state = h->state < 4 ? 0 : h->state - (h->state < 10 ? 3 : 6);
        return;
    }
    if (step->which >= STEP_MATCH) {
        h->state = literals ? 7 : 10;
        memmove(h->distance + 1, h->distance, 3 * sizeof *h->distance);
        h->distance[0] = step->which - STEP_MATCH;
        return;
    }
    h->state = !literals ? 11 : step->length == 1 ? 9 : 8;
    used = h->distance[step->which];
    memmove(h->distance + 1, h->distance, step->which * sizeof *h->distance);
    h->distance[0] = used;
}

void code_step(struct coder *c, const struct history *h, size_t at, const struct step *step)
{
    unsigned position = (unsigned)at & ((1U << c->pb) - 1);

    if (step->which == STEP_LITERAL) {
        bit(c, &c->model.match[h->state][position], 0);
        literal(c, h, at);
        return;
    }
    kind(c, h, position, step);
    if (step->which >= STEP_MATCH) {
        length_code(c, &c->model.length, position, step->length);
        distance_code(c, step->length, step->which - STEP_MATCH);
    } else if (step->length > 1) {
        length_code(c, &c->model.length_again, position, step->length);
    }
}

uint32_t price_length(struct coder *c, int again, unsigned position, uint32_t length)
{
    c->price = 0;
    length_code(c, again ? &c->model.length_again : &c->model.length, position, length);
    return c->price;
}

uint32_t price_distance(struct coder *c, uint32_t length, uint32_t distance)
{
    c->price = 0;
    distance_code(c, length, distance);
    return c->price;
}

uint32_t price_kind(struct coder *c, const struct history *h, unsigned position,
                    const struct step *step)
{
    c->price = 0;
    kind(c, h, position, step);
    return c->price;
}

/* ---- the stream ---- */

size_t squeeze_room(size_t size)
{
    return size + size / 8 + 64;
}

size_t squeeze(const uint8_t *data, size_t size, unsigned lc, unsigned lp, unsigned pb,
               uint8_t *out)
{
    struct coder *c = calloc(1, sizeof *c);
    uint16_t *p;
    size_t written = 0;

    if (!c) return 0;
    *c = (struct coder){.data = data, .size = size, .lc = lc, .lp = lp, .pb = pb, .out = out};
    c->range = 0xffffffff;
    c->waiting_count = 1;
    p = (uint16_t *)&c->model;
    for (size_t i = 0; i < sizeof c->model / sizeof *p; i++) p[i] = LZMA_EVEN;
    if (parse(c) == 0) {
        for (int i = 0; i < 5; i++) shift_low(c);
        written = c->written;
    }
    free(c);
    return written;
}
