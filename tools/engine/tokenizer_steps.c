/* Pieces of a text, and what normalizers and pre-tokenizers do to them. */
#include "tokenizer_parts.h"
#include "unicode.h"
#include "utf8.h"

#include <stdlib.h>

static const char blank_mark[] = " ";

static int reserve(void **memory, size_t *have, size_t want, size_t element)
{
    size_t size = *have ? *have : 64;
    void *grown;
    if (want <= *have) return 0;
    while (size < want) size *= 2;
    grown = realloc(*memory, size * element);
    if (!grown) return -1;
    *memory = grown;
    *have = size;
    return 0;
}

int pieces_begin(struct pieces *p, int32_t id, bool first)
{
    void *memory = p->piece;
    /* A piece without text is taken back. */
    if (p->count && !p->piece[p->count - 1].length) p->count--;
    if (reserve(&memory, &p->room, p->count + 1, sizeof *p->piece)) return -1;
    p->piece = memory;
    p->piece[p->count++] = (struct piece){p->length, 0, id, first};
    return 0;
}

int pieces_text(struct pieces *p, const char *text, size_t length)
{
    void *memory = p->text;
    if (!length) return 0;
    if (reserve(&memory, &p->capacity, p->length + length, 1)) return -1;
    p->text = memory;
    memcpy(p->text + p->length, text, length);
    p->length += length;
    p->piece[p->count - 1].length += length;
    return 0;
}

int pieces_add(struct pieces *p, const char *text, size_t length, int32_t id, bool first)
{
    if (!length) return 0;
    return pieces_begin(p, id, first) || pieces_text(p, text, length) ? -1 : 0;
}

void pieces_clear(struct pieces *p)
{
    p->length = p->count = 0;
}

void pieces_free(struct pieces *p)
{
    free(p->text);
    free(p->piece);
    *p = (struct pieces){.text = NULL};
}

/* ---- normalizers ---- */

static int replace(const struct step *s, const char *text, size_t length, struct pieces *to)
{
    size_t at = 0, kept = 0;
    while (s->from_length && at + s->from_length <= length) {
        if (memcmp(text + at, s->from, s->from_length) != 0) {
            at++;
            continue;
        }
        if (pieces_text(to, text + kept, at - kept) || pieces_text(to, s->to, s->to_length))
            return -1;
        at += s->from_length;
        kept = at;
    }
    return pieces_text(to, text + kept, length - kept);
}

static int normalize_nfc(const char *text, size_t length, struct pieces *to)
{
    size_t composed;
    char *made = unicode_nfc(text, length, &composed);
    const int failed = !made || pieces_text(to, made, composed);
    free(made);
    return failed ? -1 : 0;
}

/* ---- pre-tokenizers ---- */

/* Where a text is cut: matches, and what lies between them. */
struct cutter {
    const struct step *step;
    const char *text;
    size_t length;
    bool first; /* the text begins the original one */
    struct pieces *to;
    bool match_before; /* the last piece added was a match */
    size_t from;       /* SPLIT_NEXT, SPLIT_CONTIGUOUS: where what waits begins */
    bool waiting;
};

static int put(struct cutter *c, size_t begin, size_t end)
{
    return pieces_add(c->to, c->text + begin, end - begin, NO_ID, c->first && begin == 0);
}

static int cut(struct cutter *c, size_t begin, size_t end, bool is_match)
{
    const bool was_match = c->match_before;
    struct pieces *to = c->to;
    if (begin == end) return 0;
    c->match_before = is_match;
    switch (c->step->behavior) {
    case SPLIT_REMOVED: return is_match ? 0 : put(c, begin, end);
    case SPLIT_PREVIOUS:
        if (is_match && !was_match && begin > 0)
            return pieces_text(to, c->text + begin, end - begin);
        return put(c, begin, end);
    case SPLIT_NEXT: {
        /* A match waits for what follows it, unless that is a match too. */
        int failed = c->waiting && is_match ? put(c, c->from, begin) : 0;
        if (!c->waiting || is_match) c->from = begin;
        c->waiting = is_match;
        return failed || (!is_match && put(c, c->from, end)) ? -1 : 0;
    }
    case SPLIT_CONTIGUOUS:
        if (begin > 0 && is_match == was_match)
            return pieces_text(to, c->text + begin, end - begin);
        return put(c, begin, end);
    case SPLIT_ISOLATED: break;
    }
    return put(c, begin, end);
}

static int cut_end(struct cutter *c)
{
    return c->waiting ? put(c, c->from, c->length) : 0;
}

static int split_by(const struct step *s, const char *text, size_t length, bool first,
                    struct pieces *to)
{
    struct cutter c = {.step = s, .text = text, .length = length, .first = first, .to = to};
    size_t at = 0, from = 0, begin, end;
    while (pattern_find(s->pattern, text, length, at, &begin, &end)) {
        if (end == begin) { /* cuts nothing; the search goes on behind the next character */
            uint32_t unused;
            if (begin == length) break;
            at = begin + utf8_take(text + begin, length - begin, &unused);
            continue;
        }
        if (cut(&c, from, begin, s->invert) || cut(&c, begin, end, !s->invert)) return -1;
        at = from = end;
    }
    return cut(&c, from, length, s->invert) || cut_end(&c) ? -1 : 0;
}

static bool is_number(uint32_t c)
{
    return (unicode_category_bits("N", 1) >> unicode_category(c) & 1) != 0;
}

static int split_digits(const struct step *s, const char *text, size_t length, bool first,
                        struct pieces *to)
{
    const struct step like = {.kind = STEP_SPLIT,
                              .behavior = s->each ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS};
    struct cutter c = {.step = &like, .text = text, .length = length, .first = first, .to = to};
    size_t from = 0, n;
    for (size_t at = 0; at < length; at += n) {
        uint32_t character = 0;
        n = utf8_take(text + at, length - at, &character);
        if (!is_number(character)) continue;
        if (cut(&c, from, at, false) || cut(&c, at, at + n, true)) return -1;
        from = at + n;
    }
    return cut(&c, from, length, false);
}

uint32_t byte_character(unsigned char byte)
{
    static const struct {
        unsigned low, high, base; /* bytes that do not stand for themselves */
    } moved[] = {{0, 32, 256}, {127, 160, 289}, {173, 173, 323}};
    for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++)
        if (byte >= moved[i].low && byte <= moved[i].high)
            return moved[i].base + byte - moved[i].low;
    return byte;
}

int character_byte(uint32_t c)
{
    if (c < 256) return byte_character((unsigned char)c) == c ? (int)c : -1;
    if (c <= 288) return (int)(c - 256);
    if (c <= 322) return (int)(c - 289 + 127);
    return c == 323 ? 173 : -1;
}

static int put_bytes(const char *text, size_t length, bool first, struct pieces *to)
{
    if (pieces_begin(to, NO_ID, first)) return -1;
    for (size_t i = 0; i < length; i++) {
        char character[4];
        if (pieces_text(to, character, utf8_put(character, byte_character((unsigned char)text[i]))))
            return -1;
    }
    return 0;
}

static int byte_level(const struct step *s, const char *text, size_t length, bool first,
                      struct pieces *to)
{
    struct pieces spaced = {.text = NULL}, cuts = {.text = NULL};
    const bool blank = s->prepend != PREPEND_NEVER && length && text[0] != ' ';
    int failed = pieces_begin(&spaced, NO_ID, first) ||
                 (blank && pieces_text(&spaced, blank_mark, 1)) ||
                 pieces_text(&spaced, text, length);
    if (!failed && s->pattern)
        failed = split_by(s, spaced.text, spaced.length, first, &cuts);
    else if (!failed)
        failed = pieces_add(&cuts, spaced.text, spaced.length, NO_ID, first);
    for (size_t i = 0; !failed && i < cuts.count; i++)
        failed =
            put_bytes(cuts.text + cuts.piece[i].at, cuts.piece[i].length, cuts.piece[i].first, to);
    pieces_free(&spaced);
    pieces_free(&cuts);
    return failed ? -1 : 0;
}

static int metaspace(const struct step *s, const char *text, size_t length, bool first,
                     struct pieces *to)
{
    const struct step blanks = {
        .from = blank_mark, .from_length = 1, .to = s->to, .to_length = s->to_length};
    const struct step next = {.behavior = SPLIT_NEXT};
    struct pieces whole = {.text = NULL};
    struct cutter c = {.step = &next, .first = first, .to = to};
    size_t at = 0, from = 0;
    int failed = pieces_begin(&whole, NO_ID, first);
    const bool marked = length && (text[0] == ' ' ||
                                   (length >= s->to_length && !memcmp(text, s->to, s->to_length)));
    if (!failed && !marked &&
        (s->prepend == PREPEND_ALWAYS || (s->prepend == PREPEND_FIRST && first)))
        failed = pieces_text(&whole, s->to, s->to_length);
    failed = failed || replace(&blanks, text, length, &whole);
    c.text = whole.text;
    c.length = whole.length;
    while (!failed && s->split && at + s->to_length <= whole.length) {
        if (memcmp(whole.text + at, s->to, s->to_length) != 0) {
            at++;
            continue;
        }
        failed = cut(&c, from, at, false) || cut(&c, at, at + s->to_length, true);
        at = from = at + s->to_length;
    }
    failed = failed || cut(&c, from, whole.length, false) || cut_end(&c);
    pieces_free(&whole);
    return failed ? -1 : 0;
}

int step_run(const struct step *s, const struct pieces *from, struct pieces *to)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct piece *q = &from->piece[i];
        const char *text = from->text + q->at;
        int failed = 0;
        if (!q->length) continue;
        if (q->id != NO_ID) {
            if (pieces_add(to, text, q->length, q->id, q->first)) return -1;
            continue;
        }
        if (s->kind <= STEP_NFC) failed = pieces_begin(to, NO_ID, q->first);
        switch (s->kind) {
        case STEP_PREPEND:
            failed =
                failed || pieces_text(to, s->to, s->to_length) || pieces_text(to, text, q->length);
            break;
        case STEP_REPLACE: failed = failed || replace(s, text, q->length, to); break;
        case STEP_NFC: failed = failed || normalize_nfc(text, q->length, to); break;
        case STEP_SPLIT: failed = split_by(s, text, q->length, q->first, to); break;
        case STEP_DIGITS: failed = split_digits(s, text, q->length, q->first, to); break;
        case STEP_BYTE_LEVEL: failed = byte_level(s, text, q->length, q->first, to); break;
        case STEP_METASPACE: failed = metaspace(s, text, q->length, q->first, to); break;
        }
        if (failed) return -1;
    }
    return 0;
}
