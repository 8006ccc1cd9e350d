#include "ptx/zstd.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_MOST = 128 * 1024,
    HUFFMAN_LOG_MOST = 11,
    WEIGHTS_LOG_MOST = 6,
    FSE_LOG_MOST = 9,
    SYMBOLS_MOST = 256
};

/* ---- bits ---- */

static unsigned floor_log2(uint32_t value)
{
    return 31U - (unsigned)__builtin_clz(value);
}

/* `count` bits (at most 32) from bit `at` on, little-endian; what lies outside of the data is 0. */
static uint32_t bits_at(const uint8_t *data, size_t size, int64_t at, unsigned count)
{
    uint64_t value = 0;
    size_t byte, left;

    if (count == 0 || at + (int64_t)count <= 0) return 0;
    if (at < 0) return bits_at(data, size, 0, count - (unsigned)-at) << -at;
    byte = (size_t)(at >> 3);
    if (byte >= size) return 0;
    left = size - byte;
    for (size_t i = 0; i < (left < 5 ? left : 5); i++) value |= (uint64_t)data[byte + i] << 8 * i;
    return (uint32_t)(value >> (at & 7) & ((UINT64_C(1) << count) - 1));
}

/* A stream that is read from its end to its start. Below its last set bit lie `left` bits; a reader
 * that has gone past the start finds zeros and a negative `left`. */
struct stream {
    const uint8_t *data;
    size_t size;
    int64_t left;
};

static int stream_open(struct stream *s, const uint8_t *data, size_t size)
{
    if (size == 0 || data[size - 1] == 0) return -1;
    *s = (struct stream){data, size, (int64_t)(size - 1) * 8 + floor_log2(data[size - 1])};
    return 0;
}

static uint32_t stream_read(struct stream *s, unsigned count)
{
    s->left -= count;
    return bits_at(s->data, s->size, s->left, count);
}

/* ---- finite state entropy: RFC 8878, 4.1 ---- */

struct fse {
    unsigned log;
    bool ready;
    struct {
        uint8_t symbol, bits;
        uint16_t base;
    } cell[1 << FSE_LOG_MOST];
};

/* The table of a distribution: counts add up to 1 << log, where -1 counts as one. */
static int fse_build(struct fse *t, const int16_t *counts, unsigned symbols, unsigned log)
{
    unsigned size = 1U << log, high = size, at = 0, step = (size >> 1) + (size >> 3) + 3;
    uint16_t next[SYMBOLS_MOST];

    t->log = log;
    for (unsigned s = 0; s < symbols; s++) {
        next[s] = (uint16_t)(counts[s] < 0 ? 1 : counts[s]);
        if (counts[s] < 0) t->cell[--high].symbol = (uint8_t)s;
    }
    for (unsigned s = 0; s < symbols; s++)
        for (int i = 0; i < counts[s]; i++) {
            t->cell[at].symbol = (uint8_t)s;
            do at = (at + step) & (size - 1);
            while (at >= high);
        }
    if (at != 0) return -1;
    for (unsigned i = 0; i < size; i++) {
        unsigned state = next[t->cell[i].symbol]++;
        unsigned bits = log - floor_log2(state);
        t->cell[i].bits = (uint8_t)bits;
        t->cell[i].base = (uint16_t)((state << bits) - size);
    }
    t->ready = true;
    return 0;
}

/* Reads a distribution and builds its table: the bytes that it took, 0 for a malformed one. */
static size_t fse_read(struct fse *t, const uint8_t *in, size_t size, unsigned log_most,
                       unsigned symbols_most)
{
    int16_t counts[SYMBOLS_MOST];
    unsigned log = bits_at(in, size, 0, 4) + 5, symbols = 0;
    int remaining = 1 << log;
    int64_t at = 4;

    if (log > log_most) return 0;
    while (remaining > 0) {
        /* A value of 0 .. remaining + 1. The lowest ones take a bit less than the others. */
        unsigned width = floor_log2((uint32_t)remaining + 1) + 1, half = 1U << (width - 1);
        unsigned shorter = 2 * half - (unsigned)remaining - 2;
        unsigned value = bits_at(in, size, at, width);
        int count;

        if (symbols == symbols_most) return 0;
        if ((value & (half - 1)) < shorter) {
            at += width - 1;
            value &= half - 1;
        } else {
            at += width;
            if (value >= half) value -= shorter;
        }
        count = (int)value - 1;
        counts[symbols++] = (int16_t)count;
        remaining -= count < 0 ? 1 : count;
        for (unsigned zeros = count == 0 ? 3 : 0; zeros == 3;) {
            zeros = bits_at(in, size, at, 2);
            at += 2;
            if (zeros > symbols_most - symbols) return 0;
            for (unsigned i = 0; i < zeros; i++) counts[symbols++] = 0;
        }
    }
    if (remaining < 0 || (at + 7) / 8 > (int64_t)size) return 0;
    return fse_build(t, counts, symbols, log) ? 0 : (size_t)((at + 7) / 8);
}

/* A table that says `symbol` and needs no bits for it. */
static void fse_constant(struct fse *t, uint8_t symbol)
{
    t->log = 0;
    t->cell[0].symbol = symbol;
    t->cell[0].bits = 0;
    t->cell[0].base = 0;
    t->ready = true;
}

static uint32_t fse_step(const struct fse *t, uint32_t state, struct stream *s)
{
    return t->cell[state].base + stream_read(s, t->cell[state].bits);
}

/* ---- Huffman codes of literals: RFC 8878, 4.2 ---- */

struct huffman {
    unsigned log;
    bool ready;
    struct {
        uint8_t symbol, bits;
    } cell[1 << HUFFMAN_LOG_MOST];
};

/* The weights of all symbols but the last one, which the sum implies; each at most 15. */
static int huffman_build(struct huffman *h, uint8_t *weights, unsigned count)
{
    uint32_t sum = 0, rest;
    unsigned at = 0;

    for (unsigned i = 0; i < count; i++)
        if (weights[i]) sum += 1U << (weights[i] - 1);
    if (sum == 0) return -1;
    h->log = floor_log2(sum) + 1;
    rest = (1U << h->log) - sum;
    if (h->log > HUFFMAN_LOG_MOST || (rest & (rest - 1))) return -1;
    weights[count++] = (uint8_t)(floor_log2(rest) + 1);
    for (unsigned w = 1; w <= h->log; w++)
        for (unsigned s = 0; s < count; s++) {
            if (weights[s] != w) continue;
            for (unsigned i = 0; i < 1U << (w - 1); i++, at++) {
                h->cell[at].symbol = (uint8_t)s;
                h->cell[at].bits = (uint8_t)(h->log + 1 - w);
            }
        }
    h->ready = true;
    return 0;
}

/* Weights as FSE symbols: two states take turns until the stream is used up. The count, 0 if
 * malformed. */
static unsigned read_packed_weights(const uint8_t *in, size_t size, uint8_t *weights)
{
    struct fse table;
    struct stream s;
    uint32_t state[2];
    unsigned count = 0, turn = 0;
    size_t used = fse_read(&table, in, size, WEIGHTS_LOG_MOST, HUFFMAN_LOG_MOST + 1);

    if (used == 0 || stream_open(&s, in + used, size - used)) return 0;
    state[0] = stream_read(&s, table.log);
    state[1] = stream_read(&s, table.log);
    if (s.left < 0) return 0;
    for (;; turn ^= 1) {
        if (count >= SYMBOLS_MOST - 2) return 0;
        weights[count++] = table.cell[state[turn]].symbol;
        state[turn] = fse_step(&table, state[turn], &s);
        if (s.left >= 0) continue;
        weights[count++] = table.cell[state[turn ^ 1]].symbol;
        return count;
    }
}

/* Reads a tree: the bytes that it took, 0 for a malformed one. */
static size_t huffman_read(struct huffman *h, const uint8_t *in, size_t size)
{
    uint8_t weights[SYMBOLS_MOST];
    unsigned head, count;
    size_t bytes;

    h->ready = false;
    if (size == 0) return 0;
    head = in[0];
    if (head < 128) {
        bytes = head;
        if (bytes > size - 1) return 0;
        count = read_packed_weights(in + 1, bytes, weights);
    } else {
        count = head - 127;
        bytes = (count + 1) / 2;
        if (bytes > size - 1) return 0;
        for (unsigned i = 0; i < count; i++)
            weights[i] = i % 2 ? in[1 + i / 2] & 15 : in[1 + i / 2] >> 4;
    }
    return count == 0 || huffman_build(h, weights, count) ? 0 : bytes + 1;
}

static int huffman_decode(const struct huffman *h, const uint8_t *in, size_t size, uint8_t *out,
                          size_t count)
{
    struct stream s;

    if (stream_open(&s, in, size)) return -1;
    for (size_t i = 0; i < count; i++) {
        uint32_t at = bits_at(s.data, s.size, s.left - h->log, h->log);
        out[i] = h->cell[at].symbol;
        s.left -= h->cell[at].bits;
    }
    return s.left == 0 ? 0 : -1;
}

/* ---- a frame being decoded ---- */

struct decoder {
    uint8_t *out;
    size_t size, used; /* of out; what lies before `frame` is of earlier frames */
    size_t frame;
    struct huffman huffman;
    struct fse lengths, offsets, matches;
    size_t repeat[3]; /* the last offsets */
    size_t literal_count;
    uint8_t literals[BLOCK_MOST];
};

static int put(struct decoder *d, const uint8_t *bytes, size_t count)
{
    if (count > d->size - d->used) return -1;
    memcpy(d->out + d->used, bytes, count);
    d->used += count;
    return 0;
}

/* ---- literals: RFC 8878, 3.1.1.3.1 ---- */

static int decode_streams(struct decoder *d, const uint8_t *in, size_t size)
{
    size_t each = (d->literal_count + 3) / 4, at = 6, done = 0;

    if (size < 6 || 3 * each > d->literal_count) return -1;
    for (unsigned i = 0; i < 4; i++) {
        size_t bytes = i < 3 ? in[2 * i] | (size_t)in[2 * i + 1] << 8 : size - at;
        size_t count = i < 3 ? each : d->literal_count - done;
        if (bytes > size - at ||
            huffman_decode(&d->huffman, in + at, bytes, d->literals + done, count))
            return -1;
        at += bytes;
        done += count;
    }
    return 0;
}

/* Raw or all the same byte. The bytes that the section took, 0 for a malformed one. */
static size_t read_plain_literals(struct decoder *d, const uint8_t *in, size_t size)
{
    static const uint8_t header_bytes[] = {1, 2, 1, 3};
    unsigned form = in[0] >> 2 & 3;
    size_t head = header_bytes[form], stored;

    if (head > size) return 0;
    d->literal_count = bits_at(in, head, head == 1 ? 3 : 4, head == 1 ? 5 : head == 2 ? 12 : 20);
    stored = in[0] & 1 ? 1 : d->literal_count;
    if (d->literal_count > BLOCK_MOST || stored > size - head) return 0;
    if (in[0] & 1)
        memset(d->literals, in[head], d->literal_count);
    else
        memcpy(d->literals, in + head, d->literal_count);
    return head + stored;
}

/* Huffman-coded, with a tree of their own or the one before. As read_plain_literals. */
static size_t read_coded_literals(struct decoder *d, const uint8_t *in, size_t size)
{
    static const uint8_t header_bytes[] = {3, 3, 4, 5}, size_bits[] = {10, 10, 14, 18};
    unsigned form = in[0] >> 2 & 3, width = size_bits[form];
    size_t head = header_bytes[form], coded, tree = 0;
    const uint8_t *at = in + head;
    int rc;

    if (head > size) return 0;
    d->literal_count = bits_at(in, head, 4, width);
    coded = bits_at(in, head, 4 + width, width);
    if (d->literal_count > BLOCK_MOST || coded > size - head) return 0;
    if ((in[0] & 3) == 2) {
        tree = huffman_read(&d->huffman, at, coded);
        if (tree == 0) return 0;
    }
    if (!d->huffman.ready) return 0;
    if (form == 0)
        rc = huffman_decode(&d->huffman, at + tree, coded - tree, d->literals, d->literal_count);
    else
        rc = decode_streams(d, at + tree, coded - tree);
    return rc ? 0 : head + coded;
}

/* ---- sequences: RFC 8878, 3.1.1.3.2 ---- */

/* A code stands for a base and a number of bits to add. */
struct code {
    uint32_t base;
    uint8_t bits;
};

static const struct code LENGTH_CODES[] = {
    {0, 0},     {1, 0},      {2, 0},      {3, 0},     {4, 0},   {5, 0},     {6, 0},     {7, 0},
    {8, 0},     {9, 0},      {10, 0},     {11, 0},    {12, 0},  {13, 0},    {14, 0},    {15, 0},
    {16, 1},    {18, 1},     {20, 1},     {22, 1},    {24, 2},  {28, 2},    {32, 3},    {40, 3},
    {48, 4},    {64, 6},     {128, 7},    {256, 8},   {512, 9}, {1024, 10}, {2048, 11}, {4096, 12},
    {8192, 13}, {16384, 14}, {32768, 15}, {65536, 16}};

static const struct code MATCH_CODES[] = {
    {3, 0},     {4, 0},     {5, 0},      {6, 0},      {7, 0},     {8, 0},   {9, 0},     {10, 0},
    {11, 0},    {12, 0},    {13, 0},     {14, 0},     {15, 0},    {16, 0},  {17, 0},    {18, 0},
    {19, 0},    {20, 0},    {21, 0},     {22, 0},     {23, 0},    {24, 0},  {25, 0},    {26, 0},
    {27, 0},    {28, 0},    {29, 0},     {30, 0},     {31, 0},    {32, 0},  {33, 0},    {34, 0},
    {35, 1},    {37, 1},    {39, 1},     {41, 1},     {43, 2},    {47, 2},  {51, 3},    {59, 3},
    {67, 4},    {83, 4},    {99, 5},     {131, 7},    {259, 8},   {515, 9}, {1027, 10}, {2051, 11},
    {4099, 12}, {8195, 13}, {16387, 14}, {32771, 15}, {65539, 16}};

static const int16_t LENGTH_COUNTS[] = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                        2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
static const int16_t MATCH_COUNTS[] = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
static const int16_t OFFSET_COUNTS[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                        1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* One of the three alphabets of sequences. */
struct alphabet {
    const int16_t *counts;
    unsigned count, log, log_most, symbols;
};
static const struct alphabet LENGTHS = {LENGTH_COUNTS, COUNT_OF(LENGTH_COUNTS), 6, 9, 36};
static const struct alphabet MATCHES = {MATCH_COUNTS, COUNT_OF(MATCH_COUNTS), 6, 9, 53};
static const struct alphabet OFFSETS = {OFFSET_COUNTS, COUNT_OF(OFFSET_COUNTS), 5, 8, 32};

/* The table of one alphabet, as its two mode bits say; advances *in. */
static int read_table(struct fse *t, const struct alphabet *a, unsigned mode, const uint8_t **in,
                      const uint8_t *end)
{
    size_t used;

    switch (mode) {
    case 0: return fse_build(t, a->counts, a->count, a->log);
    case 1:
        if (*in == end || **in >= a->symbols) return -1;
        fse_constant(t, *(*in)++);
        return 0;
    case 2:
        t->ready = false;
        used = fse_read(t, *in, (size_t)(end - *in), a->log_most, a->symbols);
        *in += used;
        return used ? 0 : -1;
    default: return t->ready ? 0 : -1;
    }
}

/* The offset that a value means: above 3 itself, else one of the last three, which it then
 * leads. */
static size_t take_offset(struct decoder *d, size_t value, size_t literals)
{
    size_t *r = d->repeat, offset;
    size_t which = value - 1 + (literals == 0);

    if (value > 3) {
        offset = value - 3;
        which = 2;
    } else if (which == 3) {
        offset = r[0] - 1;
        which = 2;
    } else {
        offset = r[which];
    }
    if (which == 2) r[2] = r[1];
    if (which > 0) r[1] = r[0];
    r[0] = offset;
    return offset;
}

static int copy_match(struct decoder *d, size_t offset, size_t count)
{
    const uint8_t *from;

    if (offset == 0 || offset > d->used - d->frame || count > d->size - d->used) return -1;
    from = d->out + d->used - offset;
    for (; count > 0; count--) d->out[d->used++] = *from++; /* may overlap what it writes */
    return 0;
}

static int run_sequences(struct decoder *d, struct stream *s, size_t count)
{
    uint32_t length = stream_read(s, d->lengths.log), offset = stream_read(s, d->offsets.log),
             match = stream_read(s, d->matches.log);
    size_t taken = 0;

    for (size_t i = 0; i < count; i++) {
        const struct code *l = &LENGTH_CODES[d->lengths.cell[length].symbol];
        const struct code *m = &MATCH_CODES[d->matches.cell[match].symbol];
        unsigned offset_bits = d->offsets.cell[offset].symbol;
        size_t value = ((size_t)1 << offset_bits) + stream_read(s, offset_bits);
        size_t bytes = m->base + stream_read(s, m->bits);
        size_t literals = l->base + stream_read(s, l->bits);

        if (s->left < 0 || literals > d->literal_count - taken ||
            put(d, d->literals + taken, literals) ||
            copy_match(d, take_offset(d, value, literals), bytes))
            return -1;
        taken += literals;
        if (i + 1 == count) break;
        length = fse_step(&d->lengths, length, s);
        match = fse_step(&d->matches, match, s);
        offset = fse_step(&d->offsets, offset, s);
    }
    if (s->left != 0) return -1;
    return put(d, d->literals + taken, d->literal_count - taken);
}

static int decode_sequences(struct decoder *d, const uint8_t *in, const uint8_t *end)
{
    struct stream s;
    size_t count;
    unsigned modes;

    if (in == end) return -1;
    count = *in++;
    if (count == 0) return in == end ? put(d, d->literals, d->literal_count) : -1;
    if (count >= 128) {
        size_t more = count == 255 ? 2 : 1;
        if ((size_t)(end - in) < more) return -1;
        count = more == 2 ? in[0] + ((size_t)in[1] << 8) + 0x7F00 : ((count - 128) << 8) + in[0];
        in += more;
    }
    if (in == end) return -1;
    modes = *in++;
    if (modes & 3 || read_table(&d->lengths, &LENGTHS, modes >> 6, &in, end) ||
        read_table(&d->offsets, &OFFSETS, modes >> 4 & 3, &in, end) ||
        read_table(&d->matches, &MATCHES, modes >> 2 & 3, &in, end) ||
        stream_open(&s, in, (size_t)(end - in)))
        return -1;
    return run_sequences(d, &s, count);
}

/* ---- blocks and frames: RFC 8878, 3.1.1 ---- */

static int decode_block(struct decoder *d, const uint8_t *in, size_t size)
{
    size_t start = d->used, used;

    if (size == 0) return -1;
    used = in[0] & 2 ? read_coded_literals(d, in, size) : read_plain_literals(d, in, size);
    if (used == 0 || decode_sequences(d, in + used, in + size)) return -1;
    return d->used - start > BLOCK_MOST ? -1 : 0;
}

/* The blocks of a frame up to the last: their end, or NULL. */
static const uint8_t *decode_blocks(struct decoder *d, const uint8_t *at, const uint8_t *end)
{
    for (bool last = false; !last;) {
        uint32_t head = bits_at(at, (size_t)(end - at), 0, 24);
        size_t size = head >> 3, stored = (head >> 1 & 3) == 1 ? 1 : size;

        if (end - at < 3 || size > BLOCK_MOST || stored > (size_t)(end - at) - 3) return NULL;
        last = head & 1;
        at += 3;
        switch (head >> 1 & 3) {
        case 0:
            if (put(d, at, size)) return NULL;
            break;
        case 1:
            if (size > d->size - d->used) return NULL;
            memset(d->out + d->used, *at, size);
            d->used += size;
            break;
        case 2:
            if (decode_block(d, at, size)) return NULL;
            break;
        default: return NULL;
        }
        at += stored;
    }
    return at;
}

/* A frame behind its magic number: its end, or NULL. */
static const uint8_t *decode_frame(struct decoder *d, const uint8_t *at, const uint8_t *end)
{
    static const uint8_t size_bytes[] = {0, 2, 4, 8};
    unsigned head = at < end ? *at : 8 /* reserved */, size_form = head >> 6;
    bool single = head >> 5 & 1, checksum = head >> 2 & 1;
    size_t field = single && size_form == 0 ? 1 : size_bytes[size_form], before = single ? 1 : 2;
    uint64_t content;

    if (head & 8 || head & 3 || before + field > (size_t)(end - at)) return NULL;
    at += before;
    content = (uint64_t)bits_at(at, field, 32, 32) << 32 | bits_at(at, field, 0, 32);
    if (field == 2) content += 256;
    at += field;

    d->frame = d->used;
    d->huffman.ready = d->lengths.ready = d->offsets.ready = d->matches.ready = false;
    memcpy(d->repeat, (const size_t[]){1, 4, 8}, sizeof d->repeat);
    at = decode_blocks(d, at, end);
    if (!at || (field && d->used - d->frame != content)) return NULL;
    if (!checksum) return at;
    return end - at < 4 ? NULL : at + 4;
}

int zstd_decode(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    const uint8_t *at = in, *end = in + in_size;
    struct decoder *d = malloc(sizeof *d);

    if (!d) return -2;
    d->out = out;
    d->size = out_size;
    d->used = 0;
    while (at && at < end) {
        uint32_t magic = bits_at(at, (size_t)(end - at), 0, 32);
        if (end - at < 8) {
            at = NULL;
        } else if (magic == 0xFD2FB528) {
            at = decode_frame(d, at + 4, end);
        } else if (magic >> 4 == 0x184D2A5) { /* a frame to be skipped */
            size_t size = bits_at(at + 4, 4, 0, 32);
            at = size > (size_t)(end - at) - 8 ? NULL : at + 8 + size;
        } else {
            at = NULL;
        }
    }
    out_size -= d->used;
    free(d);
    return at == end && out_size == 0 ? 0 : -1;
}
