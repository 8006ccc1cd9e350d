#include "unicode.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

/* Hangul syllables are composed by rule, not by table. */
enum {
    S_BASE = 0xAC00,
    L_BASE = 0x1100,
    V_BASE = 0x1161,
    T_BASE = 0x11A7,
    L_COUNT = 19,
    V_COUNT = 21,
    T_COUNT = 28,
    S_COUNT = L_COUNT * V_COUNT * T_COUNT
};

/* The value of the range that `character` is in. */
static uint32_t in_ranges(const uint32_t *table, size_t count, unsigned bits, uint32_t character)
{
    size_t low = 0, high = count;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (table[middle] >> bits <= character)
            low = middle;
        else
            high = middle;
    }
    return table[low] & ((1u << bits) - 1);
}

enum unicode_category unicode_category(uint32_t character)
{
    return (enum unicode_category)in_ranges(unicode_categories, unicode_categories_count, 5,
                                            character);
}

uint32_t unicode_category_bits(const char *name, size_t length)
{
    static const char names[][3] = {
#define NAME(name) #name,
        UNICODE_CATEGORIES(NAME)
#undef NAME
    };
    uint32_t bits = 0;
    if (length < 1 || length > 2) return 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strncmp(names[i], name, length)) bits |= 1u << i;
    return bits;
}

bool unicode_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

bool unicode_word(uint32_t c)
{
    const uint32_t bits = unicode_category_bits("L", 1) | unicode_category_bits("M", 1) |
                          1u << UNICODE_Nd | 1u << UNICODE_Nl | 1u << UNICODE_Pc;
    /* Letters in circles and squares are alphabetic symbols; the joiners belong to words too. */
    if ((c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
        (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189) || c == 0x200C ||
        c == 0x200D)
        return true;
    return bits >> unicode_category(c) & 1;
}

static int by_character(const void *key, const void *entry)
{
    const uint32_t c = *(const uint32_t *)key;
    const uint32_t other = ((const struct unicode_pair *)entry)->character;
    return (c > other) - (c < other);
}

static size_t decompose(uint32_t c, uint32_t *out)
{
    const struct unicode_pair *pair;
    size_t n = 0;
    if (c >= S_BASE && c < S_BASE + S_COUNT) {
        const uint32_t s = c - S_BASE;
        out[n++] = L_BASE + s / (V_COUNT * T_COUNT);
        out[n++] = V_BASE + s % (V_COUNT * T_COUNT) / T_COUNT;
        if (s % T_COUNT) out[n++] = T_BASE + s % T_COUNT;
        return n;
    }
    pair = bsearch(&c, unicode_pairs, unicode_pairs_count, sizeof *unicode_pairs, by_character);
    if (!pair) {
        out[0] = c;
        return 1;
    }
    n = decompose(pair->first, out);
    if (pair->second) out[n++] = pair->second;
    return n;
}

/* The character that two compose to, or 0. */
static uint32_t compose(uint32_t a, uint32_t b)
{
    if (a >= L_BASE && a < L_BASE + L_COUNT && b >= V_BASE && b < V_BASE + V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (a >= S_BASE && a < S_BASE + S_COUNT && (a - S_BASE) % T_COUNT == 0 && b > T_BASE &&
        b < T_BASE + T_COUNT)
        return a + (b - T_BASE);
    if (b < 0x300) return 0; /* nothing below composes as the second */
    for (size_t i = 0; i < unicode_pairs_count; i++)
        if (unicode_pairs[i].composes && unicode_pairs[i].first == a &&
            unicode_pairs[i].second == b)
            return unicode_pairs[i].character;
    return 0;
}

static uint32_t class_of(uint32_t c)
{
    return in_ranges(unicode_classes, unicode_classes_count, 8, c);
}

/* Marks of one base in rising order of their classes; equal ones stay in place. */
static void order_marks(uint32_t *c, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const uint32_t mark = c[i], class = class_of(mark);
        size_t j = i;
        if (!class) continue;
        for (; j > 0 && class_of(c[j - 1]) > class; j--) c[j] = c[j - 1];
        c[j] = mark;
    }
}

static size_t compose_all(uint32_t *c, size_t count)
{
    size_t base = 0, out = 0;
    bool has_base = false;
    uint32_t last = 0; /* class of the character before, where it did not join the base */
    for (size_t i = 0; i < count; i++) {
        const uint32_t class = class_of(c[i]);
        const bool adjacent = has_base && out == base + 1;
        const bool free_way = has_base && (adjacent || (last < class && last != 0));
        const uint32_t joined = free_way ? compose(c[base], c[i]) : 0;
        if (joined) {
            c[base] = joined;
            continue;
        }
        if (!class) {
            base = out;
            has_base = true;
        }
        last = class;
        c[out++] = c[i];
    }
    return out;
}

char *unicode_nfc(const char *text, size_t length, size_t *out_length)
{
    uint32_t *c = malloc((length * 4 + 4) * sizeof *c);
    char *out = NULL;
    size_t count = 0, at = 0;
    if (!c) return NULL;
    while (at < length) {
        uint32_t character = 0;
        at += utf8_take(text + at, length - at, &character);
        count += decompose(character, c + count);
    }
    order_marks(c, count);
    count = compose_all(c, count);
    out = malloc(count * 4 + 1);
    *out_length = 0;
    for (size_t i = 0; out && i < count; i++) *out_length += utf8_put(out + *out_length, c[i]);
    free(c);
    return out;
}
