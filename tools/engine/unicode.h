/* General categories, white space and canonical composition, from tables that unicode.py makes. */
#ifndef ENGINE_UNICODE_H
#define ENGINE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of the tables. */
#define UNICODE_CATEGORIES(X)                                                                 \
    X(Lu)                                                                                     \
    X(Ll)                                                                                     \
    X(Lt)                                                                                     \
    X(Lm)                                                                                     \
    X(Lo) X(Mn) X(Mc) X(Me) X(Nd) X(Nl) X(No) X(Pc) X(Pd) X(Ps) X(Pe) X(Pi) X(Pf) X(Po) X(Sm) \
        X(Sc) X(Sk) X(So) X(Zs) X(Zl) X(Zp) X(Cc) X(Cf) X(Cs) X(Co) X(Cn)

enum unicode_category {
#define CATEGORY(name) UNICODE_##name,
    UNICODE_CATEGORIES(CATEGORY)
#undef CATEGORY
};

struct unicode_pair { /* a character and its canonical decomposition; second 0: a single character
                       */
    uint32_t character, first, second;
    int composes; /* NFC makes it again */
};

extern const char unicode_version[];
/* First character << 5 | category, rising; first character << 8 | combining class; by character. */
extern const uint32_t unicode_categories[], unicode_classes[];
extern const struct unicode_pair unicode_pairs[];
extern const size_t unicode_categories_count, unicode_classes_count, unicode_pairs_count;

enum unicode_category unicode_category(uint32_t character);
/* The categories of a name such as "L" or "Nd", as bits 1 << category; 0: there is no such name. */
uint32_t unicode_category_bits(const char *name, size_t length);
bool unicode_space(uint32_t character); /* White_Space */
bool unicode_word(uint32_t character);  /* alphabetic, a mark, decimal digit, connector or joiner */

/* NFC of valid UTF-8: to be freed; NULL: no memory. `*out_length` is set. */
char *unicode_nfc(const char *text, size_t length, size_t *out_length);

#endif
