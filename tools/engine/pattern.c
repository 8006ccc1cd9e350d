#include "pattern.h"
#include "unicode.h"
#include "utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Matching recurses once an item, so a longer pattern could end the stack. */
enum { DEPTH = 32, REPEAT_MOST = 1000, LENGTH_MOST = 8192 };

/* A part of a set: characters from low to high, of some categories, white space, or of words. */
struct part {
    enum { PART_RANGE, PART_CATEGORIES, PART_SPACE, PART_WORD } kind;
    bool negated;
    uint32_t low, high, bits;
};

struct item;

struct branch { /* one of several alternatives */
    struct item *first;
    struct branch *next;
};

struct item {
    enum { ITEM_SET, ITEM_GROUP, ITEM_LOOK } kind;
    struct item *next;
    size_t least, most; /* repeats */
    bool negated;       /* of a set, of a look-ahead */
    struct part *parts;
    size_t part_count;
    uint32_t ascii[4]; /* the set's members below 128 */
    struct branch *branches;
};

struct pattern {
    struct branch *branches;
};

/* ---- reading ---- */

struct reader {
    const char *begin, *at, *end, *what;
    struct problem *p;
    bool fold; /* within (?i:..) */
    int depth;
};

static int refuse(const struct reader *r, const char *why)
{
    return problem(r->p, "%s: pattern '%.*s': %s at byte %zu", r->what,
                   (int)(r->end - r->begin < 100 ? r->end - r->begin : 100), r->begin, why,
                   (size_t)(r->at - r->begin));
}

static void free_branches(struct branch *b)
{
    while (b) {
        struct branch *next = b->next;
        while (b->first) {
            struct item *after = b->first->next;
            free_branches(b->first->branches);
            free(b->first->parts);
            free(b->first);
            b->first = after;
        }
        free(b);
        b = next;
    }
}

static bool next_is(const struct reader *r, const char *text)
{
    const size_t n = strlen(text);
    return (size_t)(r->end - r->at) >= n && memcmp(r->at, text, n) == 0;
}

static bool take(struct reader *r, const char *text)
{
    if (!next_is(r, text)) return false;
    r->at += strlen(text);
    return true;
}

static int add_part(struct reader *r, struct item *set, struct part part)
{
    struct part *grown = realloc(set->parts, (set->part_count + 1) * sizeof *grown);
    if (!grown) return refuse(r, "no memory");
    set->parts = grown;
    grown[set->part_count++] = part;
    return 0;
}

static int add_character(struct reader *r, struct item *set, uint32_t low, uint32_t high)
{
    if (add_part(r, set, (struct part){.kind = PART_RANGE, .low = low, .high = high})) return -1;
    if (!r->fold) return 0;
    /* Both cases of ASCII letters, and the two others that fold to one: long s and the Kelvin sign.
     */
    for (uint32_t c = low; c <= high && c < 128; c++) {
        const uint32_t other = (c | 32) >= 'a' && (c | 32) <= 'z' ? c ^ 32 : c;
        if (add_part(r, set, (struct part){.kind = PART_RANGE, .low = other, .high = other}))
            return -1;
        if ((c | 32) == 's' || (c | 32) == 'k') {
            const uint32_t far = (c | 32) == 's' ? 0x17F : 0x212A;
            if (add_part(r, set, (struct part){.kind = PART_RANGE, .low = far, .high = far}))
                return -1;
        }
    }
    if (high >= 128) return refuse(r, "(?i:..) of a character beyond ASCII");
    return 0;
}

/* \p{Name} or \P{Name}; `at` is behind the p. */
static int take_property(struct reader *r, struct item *set, bool negated)
{
    const char *close;
    uint32_t bits;
    if (!take(r, "{")) return refuse(r, "'{' should stand behind \\p");
    if (take(r, "^")) negated = !negated;
    close = memchr(r->at, '}', (size_t)(r->end - r->at));
    bits = close ? unicode_category_bits(r->at, (size_t)(close - r->at)) : 0;
    if (!bits) return refuse(r, "a property that is no general category");
    r->at = close + 1;
    return add_part(r, set,
                    (struct part){.kind = PART_CATEGORIES, .negated = negated, .bits = bits});
}

static const char escapes[] = "nrtfv", meant[] = "\n\r\t\f\v";

/* What follows a backslash; a single character is left in `*single`, else that is UINT32_MAX. */
static int take_escape(struct reader *r, struct item *set, uint32_t *single)
{
    const char c = r->at < r->end ? *r->at : '\0';
    const char *known = c ? strchr(escapes, c) : NULL;
    *single = UINT32_MAX;
    if (known) {
        *single = (uint32_t)meant[known - escapes];
    } else if (c && strchr("sS", c)) {
        r->at++;
        return add_part(r, set, (struct part){.kind = PART_SPACE, .negated = c == 'S'});
    } else if (c && strchr("dDwW", c)) {
        r->at++;
        return add_part(r, set,
                        (struct part){.kind = (c | 32) == 'd' ? PART_CATEGORIES : PART_WORD,
                                      .negated = c == 'D' || c == 'W',
                                      .bits = 1u << UNICODE_Nd});
    } else if (c == 'p' || c == 'P') {
        r->at++;
        return take_property(r, set, c == 'P');
    } else if (!c || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (unsigned char)c >= 0x80) {
        return refuse(r, "an escape that is not modelled");
    } else {
        *single = (uint32_t)c;
    }
    r->at++;
    return 0;
}

static int take_literal(struct reader *r, uint32_t *c)
{
    const size_t n = utf8_take(r->at, (size_t)(r->end - r->at), c);
    if (!n) return refuse(r, "a character should stand");
    r->at += n;
    return 0;
}

/* One member of a set; `*single` as of take_escape. */
static int take_member(struct reader *r, struct item *set, uint32_t *single)
{
    if (next_is(r, "[") || next_is(r, "&&")) return refuse(r, "a set within a set");
    if (take(r, "\\")) return take_escape(r, set, single);
    return take_literal(r, single);
}

static int take_set(struct reader *r, struct item *set)
{
    uint32_t low = UINT32_MAX, high = 0;
    set->negated = take(r, "^");
    if (next_is(r, "]")) return refuse(r, "an empty set");
    while (!take(r, "]")) {
        if (r->at >= r->end) return refuse(r, "']' should stand");
        if (take_member(r, set, &low)) return -1;
        if (low == UINT32_MAX) continue;
        high = low;
        if (next_is(r, "-") && !next_is(r, "-]")) {
            r->at++;
            if (take_member(r, set, &high)) return -1;
            if (high == UINT32_MAX || high < low) return refuse(r, "a range that does not rise");
        }
        if (add_character(r, set, low, high)) return -1;
    }
    return 0;
}

static bool part_has(const struct part *part, uint32_t c)
{
    bool in = part->kind == PART_RANGE   ? c >= part->low && c <= part->high
              : part->kind == PART_SPACE ? unicode_space(c)
              : part->kind == PART_WORD  ? unicode_word(c)
                                         : part->bits >> unicode_category(c) & 1;
    return in != part->negated;
}

static bool set_has(const struct item *set, uint32_t c)
{
    for (size_t i = 0; i < set->part_count; i++)
        if (part_has(&set->parts[i], c)) return !set->negated;
    return set->negated;
}

static int take_count(struct reader *r, size_t *out)
{
    const char *start = r->at;
    for (*out = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        *out = *out * 10 + (size_t)(*r->at - '0');
        if (*out > REPEAT_MOST) return refuse(r, "more than 1000 repeats");
    }
    return r->at > start ? 0 : refuse(r, "a number of repeats should stand");
}

static int take_repeat(struct reader *r, struct item *item)
{
    item->least = item->most = 1;
    if (take(r, "?")) {
        item->least = 0;
    } else if (take(r, "*")) {
        item->least = 0;
        item->most = SIZE_MAX;
    } else if (take(r, "+")) {
        item->most = SIZE_MAX;
    } else if (take(r, "{")) {
        if (take_count(r, &item->least)) return -1;
        item->most = item->least;
        if (take(r, ",")) {
            item->most = SIZE_MAX;
            if (!next_is(r, "}") && take_count(r, &item->most)) return -1;
        }
        if (!take(r, "}") || item->most < item->least) return refuse(r, "a broken repeat");
    } else {
        return 0;
    }
    if (next_is(r, "?") || next_is(r, "+") || next_is(r, "*") || next_is(r, "{"))
        return refuse(r, "a lazy, possessive or repeated repeat");
    if (item->kind == ITEM_LOOK || (item->kind == ITEM_GROUP && item->most != 1))
        return refuse(r, "a repeated group");
    return 0;
}

static int take_branches(struct reader *r, struct branch **out);

static int take_group(struct reader *r, struct item *item)
{
    const bool outer = r->fold;
    int failed;
    item->kind = ITEM_GROUP;
    if (take(r, "?!") || take(r, "?=")) {
        item->kind = ITEM_LOOK;
        item->negated = r->at[-1] == '!';
    } else if (take(r, "?i:")) {
        r->fold = true;
    } else if (next_is(r, "?") && !take(r, "?:")) {
        return refuse(r, "a group that is not modelled");
    }
    if (++r->depth > DEPTH) return refuse(r, "groups nest too deep");
    failed = take_branches(r, &item->branches);
    r->depth--;
    r->fold = outer;
    if (!failed && !take(r, ")")) failed = refuse(r, "')' should stand");
    return failed;
}

static int take_item(struct reader *r, struct item *item)
{
    uint32_t c;
    int failed;
    if (take(r, "(")) {
        failed = take_group(r, item);
    } else if (take(r, "[")) {
        failed = take_set(r, item);
    } else if (take(r, "\\")) {
        failed = take_escape(r, item, &c);
        if (!failed && c != UINT32_MAX) failed = add_character(r, item, c, c);
    } else if (r->at < r->end && *r->at && strchr("^$.*+?{", *r->at)) {
        failed = refuse(r, "an operator that is not modelled");
    } else {
        failed = take_literal(r, &c) || add_character(r, item, c, c);
    }
    if (failed) return -1;
    for (uint32_t i = 0; item->kind == ITEM_SET && i < 128; i++)
        if (set_has(item, i)) item->ascii[i / 32] |= 1u << i % 32;
    return take_repeat(r, item);
}

static int take_branches(struct reader *r, struct branch **out)
{
    do {
        struct branch *b = calloc(1, sizeof *b);
        struct item **link;
        if (!b) return refuse(r, "no memory");
        *out = b;
        out = &b->next;
        link = &b->first;
        while (r->at < r->end && *r->at != '|' && *r->at != ')') {
            *link = calloc(1, sizeof **link);
            if (!*link) return refuse(r, "no memory");
            if (take_item(r, *link)) return -1;
            link = &(*link)->next;
        }
    } while (take(r, "|"));
    return 0;
}

struct pattern *pattern_compile(const char *text, size_t length, const char *what,
                                struct problem *p)
{
    struct reader r = {.begin = text, .at = text, .end = text + length, .what = what, .p = p};
    struct pattern *pattern = calloc(1, sizeof *pattern);
    if (!pattern) return problem(p, "%s: no memory", what), NULL;
    if (length > LENGTH_MOST) {
        problem(p, "%s: a pattern of %zu bytes; at most %d are modelled", what, length,
                LENGTH_MOST);
        pattern_free(pattern);
        return NULL;
    }
    if (take_branches(&r, &pattern->branches) ||
        (r.at < r.end && refuse(&r, "')' without a group"))) {
        pattern_free(pattern);
        return NULL;
    }
    return pattern;
}

void pattern_free(struct pattern *pattern)
{
    if (!pattern) return;
    free_branches(pattern->branches);
    free(pattern);
}

/* ---- matching ---- */

struct subject {
    const char *text;
    size_t length;
};

/* What follows a group: the items behind it, then what follows the group around it. */
struct rest {
    const struct item *item;
    const struct rest *outer;
};

/* Bytes of the character at `at` where the set has it, else 0. */
static size_t set_takes(const struct item *set, const struct subject *s, size_t at)
{
    uint32_t c;
    size_t n;
    if (at >= s->length) return 0;
    c = (unsigned char)s->text[at];
    if (c < 128) return set->ascii[c / 32] >> c % 32 & 1;
    n = utf8_take(s->text + at, s->length - at, &c);
    return n && set_has(set, c) ? n : 0;
}

static bool match(const struct subject *s, const struct item *item, const struct rest *rest,
                  size_t at, size_t *end);

static bool match_any(const struct subject *s, const struct branch *b, const struct rest *rest,
                      size_t at, size_t *end)
{
    for (; b; b = b->next)
        if (match(s, b->first, rest, at, end)) return true;
    return false;
}

/* As many as there are, then fewer, one character at a time. */
static bool match_set(const struct subject *s, const struct item *set, const struct rest *rest,
                      size_t at, size_t *end)
{
    size_t count = 0, n;
    while (count < set->most && (n = set_takes(set, s, at)) > 0) {
        at += n;
        count++;
    }
    for (;;) {
        if (count < set->least) return false;
        if (match(s, set->next, rest, at, end)) return true;
        if (!count--) return false;
        do at--;
        while (((unsigned char)s->text[at] & 0xC0) == 0x80);
    }
}

static bool match(const struct subject *s, const struct item *item, const struct rest *rest,
                  size_t at, size_t *end)
{
    size_t unused;
    for (;;) {
        if (!item) {
            if (!rest) {
                *end = at;
                return true;
            }
            item = rest->item;
            rest = rest->outer;
        } else if (item->kind == ITEM_SET) {
            return match_set(s, item, rest, at, end);
        } else if (item->kind == ITEM_GROUP) {
            const struct rest behind = {item->next, rest};
            if (match_any(s, item->branches, &behind, at, end)) return true;
            if (item->least) return false;
            item = item->next;
        } else {
            if (match_any(s, item->branches, NULL, at, &unused) == item->negated) return false;
            item = item->next;
        }
    }
}

bool pattern_find(const struct pattern *pattern, const char *text, size_t length, size_t from,
                  size_t *begin, size_t *end)
{
    const struct subject s = {text, length};
    for (size_t at = from; at <= length;) {
        uint32_t c;
        if (match_any(&s, pattern->branches, NULL, at, end)) {
            *begin = at;
            return true;
        }
        if (at == length) break;
        at += utf8_take(text + at, length - at, &c);
    }
    return false;
}
