/* Byte pair encoding of one piece: the pair whose merge ranks lowest is merged first, of equals the
 * leftmost. */
#include "tokenizer_parts.h"
#include "utf8.h"

#include <stdlib.h>

uint32_t hash_bytes(const char *text, size_t length)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h ^ h >> 15;
}

uint32_t hash_pair(int32_t left, int32_t right)
{
    const uint64_t both = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (uint32_t)(both * 0x9E3779B97F4A7C15u >> 32);
}

int32_t vocabulary_find(const struct tokenizer *t, const char *text, size_t length)
{
    for (size_t i = hash_bytes(text, length) & t->slot_mask;; i = (i + 1) & t->slot_mask) {
        const int32_t id = t->slots[i];
        if (id == NO_ID) return NO_ID;
        if (t->length[id] == length && memcmp(t->text[id], text, length) == 0) return id;
    }
}

static const struct merge *find_merge(const struct tokenizer *t, int32_t left, int32_t right)
{
    if (left < 0 || right < 0) return NULL;
    for (size_t i = hash_pair(left, right) & t->merge_mask;; i = (i + 1) & t->merge_mask) {
        const struct merge *m = &t->merges[i];
        if (m->left == NO_ID) return NULL;
        if (m->left == left && m->right == right) return m;
    }
}

int tokens_add(struct tokens *out, int32_t id)
{
    if (out->count == out->capacity) {
        const size_t wanted = out->capacity ? 2 * out->capacity : 256;
        int32_t *grown = realloc(out->id, wanted * sizeof *grown);
        if (!grown) return -1;
        out->id = grown;
        out->capacity = wanted;
    }
    out->id[out->count++] = id;
    return 0;
}

/* Symbols of a word, linked, so that a merge moves nothing. */
struct symbol {
    int32_t id;
    uint32_t before, after; /* NONE at the ends */
};

/* A merge that may be done, as long as the two symbols are still those that it was found for. */
struct chance {
    uint32_t rank, at;
    int32_t left, right, result;
};

enum { FEW = 64 };
static const uint32_t NONE = UINT32_MAX;

struct word {
    struct symbol *symbol;
    size_t count;
    struct chance *heap;
    size_t heap_count;
};

static bool sooner(const struct chance *a, const struct chance *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(struct word *w, struct chance c)
{
    size_t i = w->heap_count++;
    while (i > 0 && sooner(&c, &w->heap[(i - 1) / 2])) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = c;
}

static struct chance pop(struct word *w)
{
    const struct chance top = w->heap[0], last = w->heap[--w->heap_count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= w->heap_count) break;
        if (child + 1 < w->heap_count && sooner(&w->heap[child + 1], &w->heap[child])) child++;
        if (!sooner(&w->heap[child], &last)) break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return top;
}

static void consider(const struct tokenizer *t, struct word *w, uint32_t at)
{
    const struct symbol *s = at == NONE ? NULL : &w->symbol[at];
    const struct merge *m;
    if (!s || s->after == NONE) return;
    m = find_merge(t, s->id, w->symbol[s->after].id);
    if (m) push(w, (struct chance){m->rank, at, m->left, m->right, m->result});
}

static void merge_all(const struct tokenizer *t, struct word *w)
{
    for (uint32_t i = 0; i + 1 < w->count; i++) consider(t, w, i);
    while (w->heap_count) {
        const struct chance c = pop(w);
        struct symbol *s = &w->symbol[c.at], *gone;
        if (s->id != c.left || s->after == NONE || w->symbol[s->after].id != c.right) continue;
        gone = &w->symbol[s->after];
        s->id = c.result;
        s->after = gone->after;
        gone->id = NO_ID - 1; /* nothing can be merged with it */
        if (s->after != NONE) w->symbol[s->after].before = c.at;
        consider(t, w, s->before);
        consider(t, w, c.at);
    }
}

static void add_symbol(struct word *w, int32_t id)
{
    const uint32_t at = (uint32_t)w->count;
    if (at) w->symbol[at - 1].after = at;
    w->symbol[w->count++] = (struct symbol){id, at ? at - 1 : NONE, NONE};
}

/* The characters' own tokens; what the vocabulary lacks becomes bytes or the unknown token. */
static void first_symbols(const struct tokenizer *t, const char *text, size_t length,
                          struct word *w)
{
    bool unknown_before = false;
    size_t n;
    for (size_t at = 0; at < length; at += n) {
        uint32_t character = 0;
        int32_t id;
        bool known = true;
        n = utf8_take(text + at, length - at, &character);
        id = vocabulary_find(t, text + at, n);
        for (size_t i = 0; id == NO_ID && t->byte_fallback && i < n; i++)
            known = known && t->byte_id[(unsigned char)text[at + i]] != NO_ID;
        if (id != NO_ID) {
            add_symbol(w, id);
            unknown_before = false;
        } else if (t->byte_fallback && known) {
            for (size_t i = 0; i < n; i++) add_symbol(w, t->byte_id[(unsigned char)text[at + i]]);
            unknown_before = false;
        } else if (t->unknown != NO_ID && !(t->fuse_unknown && unknown_before)) {
            add_symbol(w, t->unknown);
            unknown_before = true;
        }
    }
}

int bpe_encode(const struct tokenizer *t, const char *text, size_t length, struct tokens *out)
{
    struct symbol few_symbols[FEW];
    struct chance few_chances[3 * FEW];
    struct word w = {.symbol = few_symbols, .heap = few_chances};
    int failed = 0;
    if (length >= UINT32_MAX / 4) return -1;
    if (t->ignore_merges) {
        const int32_t whole = vocabulary_find(t, text, length);
        if (whole != NO_ID) return tokens_add(out, whole);
    }
    if (length > FEW) {
        w.symbol = malloc(length * sizeof *w.symbol);
        w.heap = malloc(3 * length * sizeof *w.heap); /* a merge adds two at most and takes one */
        failed = !w.symbol || !w.heap;
    }
    if (!failed) {
        first_symbols(t, text, length, &w);
        merge_all(t, &w);
        for (uint32_t i = w.count ? 0 : NONE; !failed && i != NONE; i = w.symbol[i].after)
            failed = tokens_add(out, w.symbol[i].id);
    }
    if (length > FEW) {
        free(w.symbol);
        free(w.heap);
    }
    return failed ? -1 : 0;
}
