#include "tokenizer_parts.h"
#include "unicode.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>

enum { IDS_MOST = 1 << 22 };

/* ---- loading the vocabulary ---- */

static size_t table_size(size_t count)
{
    size_t size = 16;
    while (size < 2 * count) size *= 2;
    return size;
}

static int add_text(struct tokenizer *t, int64_t id, const char *text, size_t length)
{
    if ((size_t)id >= t->size || !t->text) return -1;
    t->text[id] = text;
    t->length[id] = (uint32_t)length;
    return 0;
}

/* One more than the largest id of the vocabulary and the added tokens. */
static int count_ids(struct tokenizer *t, const struct json *vocab, const struct json *added,
                     struct problem *p)
{
    int64_t id, most = -1;
    for (const struct json *e = vocab->in; e; e = e->next) {
        if (!json_whole(e, &id) || id < 0 || id >= IDS_MOST)
            return problem(p, "%s: model.vocab: the id of '%.60s' is %s outside 0 to %d", t->path,
                           e->name, json_type_name(e), IDS_MOST - 1);
        if (id > most) most = id;
    }
    for (const struct json *e = added ? added->in : NULL; e; e = e->next) {
        if (!json_whole(json_get(e, "id"), &id) || id < 0 || id >= IDS_MOST)
            return problem(p, "%s: added_tokens: an id is outside 0 to %d", t->path, IDS_MOST - 1);
        if (id > most) most = id;
    }
    t->size = (size_t)(most + 1);
    t->text = calloc(t->size + 1, sizeof *t->text);
    t->length = calloc(t->size + 1, sizeof *t->length);
    t->special = calloc(t->size + 1, sizeof *t->special);
    return t->text && t->length && t->special ? 0 : problem(p, "%s: no memory", t->path);
}

static int load_vocab(struct tokenizer *t, const struct json *vocab, struct problem *p)
{
    const size_t slots = table_size(vocab->length);
    int64_t id;
    t->slots = malloc(slots * sizeof *t->slots);
    if (!t->slots) return problem(p, "%s: no memory", t->path);
    t->slot_mask = slots - 1;
    for (size_t i = 0; i < slots; i++) t->slots[i] = NO_ID;
    for (const struct json *e = vocab->in; e; e = e->next) {
        size_t i = hash_bytes(e->name, e->name_length) & t->slot_mask;
        if (!json_whole(e, &id) || t->text[id])
            return problem(p, "%s: model.vocab: '%.60s' has the id of '%.60s'", t->path, e->name,
                           t->text[id]);
        add_text(t, id, e->name, e->name_length);
        while (t->slots[i] != NO_ID) i = (i + 1) & t->slot_mask;
        t->slots[i] = (int32_t)id;
    }
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        t->byte_id[b] = vocabulary_find(t, name, strlen(name));
    }
    return 0;
}

/* The two halves of a merge: "a b", or ["a", "b"]. */
static bool merge_halves(const struct json *e, const char *half[2], size_t length[2])
{
    if (e->type == JSON_STRING) {
        const char *blank = memchr(e->text, ' ', e->length);
        if (!blank || memchr(blank + 1, ' ', e->length - (size_t)(blank + 1 - e->text)))
            return false;
        half[0] = e->text;
        length[0] = (size_t)(blank - e->text);
        half[1] = blank + 1;
        length[1] = e->length - length[0] - 1;
        return true;
    }
    if (e->type != JSON_ARRAY || e->length != 2 || e->in->type != JSON_STRING ||
        e->in->next->type != JSON_STRING)
        return false;
    for (int i = 0; i < 2; i++) {
        const struct json *part = i ? e->in->next : e->in;
        half[i] = part->text;
        length[i] = part->length;
    }
    return true;
}

static int add_merge(struct tokenizer *t, const struct json *e, uint32_t rank, struct problem *p)
{
    const char *half[2];
    size_t length[2], i;
    char joined[1024];
    struct merge m = {.rank = rank};
    if (!merge_halves(e, half, length))
        return problem(p, "%s: model.merges[%u] is no pair of tokens", t->path, rank);
    if (length[0] + length[1] > sizeof joined)
        return problem(p, "%s: model.merges[%u] is longer than %zu bytes", t->path, rank,
                       sizeof joined);
    memcpy(joined, half[0], length[0]);
    memcpy(joined + length[0], half[1], length[1]);
    m.left = vocabulary_find(t, half[0], length[0]);
    m.right = vocabulary_find(t, half[1], length[1]);
    m.result = vocabulary_find(t, joined, length[0] + length[1]);
    if (m.left == NO_ID || m.right == NO_ID || m.result == NO_ID)
        return problem(p,
                       "%s: model.merges[%u]: '%.*s' and '%.*s', and both joined, are not all "
                       "in model.vocab",
                       t->path, rank, (int)(length[0] < 60 ? length[0] : 60), half[0],
                       (int)(length[1] < 60 ? length[1] : 60), half[1]);
    i = hash_pair(m.left, m.right) & t->merge_mask;
    /* The last of two merges of one pair counts. */
    while (t->merges[i].left != NO_ID &&
           (t->merges[i].left != m.left || t->merges[i].right != m.right))
        i = (i + 1) & t->merge_mask;
    t->merges[i] = m;
    return 0;
}

static int load_merges(struct tokenizer *t, const struct json *merges, struct problem *p)
{
    size_t size;
    uint32_t rank = 0;
    if (!merges || merges->type != JSON_ARRAY)
        return problem(p, "%s: model.merges is %s, not an array", t->path, json_type_name(merges));
    size = table_size(merges->length);
    t->merges = malloc(size * sizeof *t->merges);
    if (!t->merges) return problem(p, "%s: no memory", t->path);
    t->merge_mask = size - 1;
    for (size_t i = 0; i < size; i++) t->merges[i].left = NO_ID;
    for (const struct json *e = merges->in; e; e = e->next, rank++)
        if (add_merge(t, e, rank, p)) return -1;
    return 0;
}

static int take_flag(const struct tokenizer *t, const struct json *in, const char *name, bool *out,
                     struct problem *p)
{
    const struct json *value = json_get(in, name);
    *out = value && value->type == JSON_BOOL && value->truth;
    if (value && value->type != JSON_BOOL && value->type != JSON_NULL)
        return problem(p, "%s: %s is %s, not true or false", t->path, name, json_type_name(value));
    return 0;
}

/* Fields of the model that change what it does, and must have their usual values. */
static int refuse_variants(const struct tokenizer *t, const struct json *model, struct problem *p)
{
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const struct json *type = json_get(model, "type"), *dropout = json_get(model, "dropout");
    if (type && !json_is(type, "BPE"))
        return problem(p, "%s: model of type %.60s is not modelled", t->path,
                       type->type == JSON_STRING ? type->text : json_type_name(type));
    if (dropout && dropout->type != JSON_NULL &&
        !(dropout->type == JSON_NUMBER && dropout->number <= 0))
        return problem(p, "%s: model.dropout is not modelled", t->path);
    for (size_t i = 0; i < 2; i++) {
        const struct json *affix = json_get(model, affixes[i]);
        if (affix && affix->type != JSON_NULL && !json_is(affix, ""))
            return problem(p, "%s: model.%s is not modelled", t->path, affixes[i]);
    }
    return 0;
}

static int load_model(struct tokenizer *t, const struct json *root, struct problem *p)
{
    const struct json *model = json_get(root, "model"), *vocab = json_get(model, "vocab");
    const struct json *unknown = json_get(model, "unk_token");
    if (refuse_variants(t, model, p)) return -1;
    if (!vocab || vocab->type != JSON_OBJECT)
        return problem(p, "%s: model.vocab is %s, not an object", t->path, json_type_name(vocab));
    if (count_ids(t, vocab, json_get(root, "added_tokens"), p) || load_vocab(t, vocab, p) ||
        load_merges(t, json_get(model, "merges"), p) ||
        take_flag(t, model, "ignore_merges", &t->ignore_merges, p) ||
        take_flag(t, model, "byte_fallback", &t->byte_fallback, p) ||
        take_flag(t, model, "fuse_unk", &t->fuse_unknown, p))
        return -1;
    t->unknown = NO_ID;
    if (!unknown || unknown->type == JSON_NULL) return 0;
    if (unknown->type != JSON_STRING ||
        (t->unknown = vocabulary_find(t, unknown->text, unknown->length)) == NO_ID)
        return problem(p, "%s: model.unk_token is not in model.vocab", t->path);
    return 0;
}

/* ---- added tokens ---- */

/* Longer ones first, so that the first that fits is the longest. */
static int by_length(const void *a, const void *b)
{
    const struct added *x = a, *y = b;
    return (x->length < y->length) - (x->length > y->length);
}

static int run_steps(const struct step *steps, int count, struct pieces *text)
{
    for (int i = 0; i < count; i++) {
        struct pieces next = {.text = NULL};
        if (step_run(&steps[i], text, &next)) {
            pieces_free(&next);
            return -1;
        }
        pieces_free(text);
        *text = next;
    }
    return 0;
}

static int normalize_added(struct tokenizer *t, struct added *a)
{
    struct pieces text = {.text = NULL};
    int failed = pieces_add(&text, a->text, a->length, NO_ID, true) ||
                 run_steps(t->normal, t->normal_count, &text);
    if (!failed && text.length) {
        a->owned = malloc(text.length);
        failed = !a->owned;
        if (a->owned) memcpy(a->owned, text.text, text.length);
        a->text = a->owned;
        a->length = text.length;
    }
    pieces_free(&text);
    return failed ? -1 : 0;
}

static int load_added(struct tokenizer *t, const struct json *list, struct problem *p)
{
    if (!list || list->type == JSON_NULL) return 0;
    if (list->type != JSON_ARRAY)
        return problem(p, "%s: added_tokens is %s, not an array", t->path, json_type_name(list));
    t->added = calloc(list->length + 1, sizeof *t->added);
    if (!t->added) return problem(p, "%s: no memory", t->path);
    for (const struct json *e = list->in; e; e = e->next) {
        const struct json *text = json_get(e, "content");
        struct added *a = &t->added[t->added_count];
        int64_t id;
        if (!text || text->type != JSON_STRING || !text->length)
            return problem(p, "%s: added_tokens[%zu].content is %s, not a string of a byte or more",
                           t->path, t->added_count, json_type_name(text));
        if (!json_whole(json_get(e, "id"), &id)) return -1;
        if (t->text[id] &&
            (t->length[id] != text->length || memcmp(t->text[id], text->text, text->length) != 0))
            return problem(p, "%s: added_tokens: '%.60s' has the id of '%.60s'", t->path,
                           text->text, t->text[id]);
        add_text(t, id, text->text, text->length);
        *a = (struct added){.text = text->text, .length = text->length, .id = (int32_t)id};
        t->added_count++;
        if (take_flag(t, e, "special", &a->special, p) || take_flag(t, e, "lstrip", &a->left, p) ||
            take_flag(t, e, "rstrip", &a->right, p) ||
            take_flag(t, e, "normalized", &a->normalized, p) ||
            take_flag(t, e, "single_word", &a->single, p))
            return -1;
        t->special[id] = a->special;
    }
    return 0;
}

struct tokenizer *tokenizer_open(const char *folder, struct problem *p)
{
    struct tokenizer *t = calloc(1, sizeof *t);
    const size_t room = strlen(folder) + sizeof "/tokenizer.json";
    const struct json *root;
    int failed;
    if (!t || !(t->path = malloc(room))) {
        problem(p, "%s: no memory", folder);
        tokenizer_close(t);
        return NULL;
    }
    snprintf(t->path, room, "%s/tokenizer.json", folder);
    t->document = json_read_file(t->path, p);
    root = json_root(t->document);
    failed = !root || load_model(t, root, p) || load_added(t, json_get(root, "added_tokens"), p) ||
             load_steps(t, root, p);
    for (size_t i = 0; !failed && i < t->added_count; i++)
        if (t->added[i].normalized && normalize_added(t, &t->added[i]))
            failed = problem(p, "%s: no memory", t->path);
    if (failed) {
        tokenizer_close(t);
        return NULL;
    }
    if (t->added_count) qsort(t->added, t->added_count, sizeof *t->added, by_length);
    return t;
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->added_count; i++) free(t->added[i].owned);
    for (int i = 0; i < t->before_count; i++) pattern_free(t->before[i].pattern);
    json_free(t->document);
    free(t->added);
    free(t->text);
    free(t->length);
    free(t->special);
    free(t->slots);
    free(t->merges);
    free(t->path);
    free(t);
}

size_t tokenizer_size(const struct tokenizer *t)
{
    return t->size;
}

/* ---- encoding ---- */

static const struct added *added_at(const struct tokenizer *t, bool normalized, const char *text,
                                    size_t length)
{
    for (size_t i = 0; i < t->added_count; i++) {
        const struct added *a = &t->added[i];
        if (a->normalized == normalized && a->length <= length && a->text[0] == text[0] &&
            memcmp(a->text, text, a->length) == 0)
            return a;
    }
    return NULL;
}

/* The character before `at`. */
static size_t step_back(const char *text, size_t at, uint32_t *character)
{
    do at--;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80);
    utf8_take(text + at, 4, character);
    return at;
}

/* A token that must be a word of its own has no word's character beside it. */
static bool stands_alone(const char *text, size_t length, size_t begin, size_t end)
{
    uint32_t c = 0;
    if (begin > 0) {
        step_back(text, begin, &c);
        if (unicode_word(c)) return false;
    }
    return end == length || !utf8_take(text + end, length - end, &c) || !unicode_word(c);
}

/* The blanks that a token takes with it. */
static void widen(const struct added *a, const char *text, size_t length, size_t least,
                  size_t *begin, size_t *end)
{
    uint32_t c;
    size_t n;
    while (a->left && *begin > least) {
        const size_t before = step_back(text, *begin, &c);
        if (!unicode_space(c)) break;
        *begin = before;
    }
    while (a->right && *end < length && (n = utf8_take(text + *end, length - *end, &c)) > 0 &&
           unicode_space(c))
        *end += n;
}

/* Cuts the added tokens out of one piece. */
static int cut_piece(const struct tokenizer *t, bool normalized, const char *text, size_t length,
                     bool first, struct pieces *to)
{
    size_t from = 0;
    for (size_t at = 0; at < length;) {
        const struct added *a = added_at(t, normalized, text + at, length - at);
        size_t begin = at, end;
        if (!a || (a->single && !stands_alone(text, length, at, at + a->length))) {
            at += a ? a->length : 1;
            continue;
        }
        end = at + a->length;
        widen(a, text, length, from, &begin, &end);
        if (pieces_add(to, text + from, begin - from, NO_ID, first && from == 0) ||
            pieces_add(to, text + begin, end - begin, a->id, first && begin == 0))
            return -1;
        at = from = end;
    }
    return pieces_add(to, text + from, length - from, NO_ID, first && from == 0);
}

static int cut_added(const struct tokenizer *t, bool normalized, struct pieces *text)
{
    struct pieces next = {.text = NULL};
    for (size_t i = 0; i < text->count; i++) {
        const struct piece *q = &text->piece[i];
        const char *at = text->text + q->at;
        if (q->id != NO_ID ? pieces_add(&next, at, q->length, q->id, q->first)
                           : cut_piece(t, normalized, at, q->length, q->first, &next)) {
            pieces_free(&next);
            return -1;
        }
    }
    pieces_free(text);
    *text = next;
    return 0;
}

static int encode(const struct tokenizer *t, struct pieces *text, struct tokens *out)
{
    if (cut_added(t, false, text) || run_steps(t->normal, t->normal_count, text) ||
        cut_added(t, true, text) || run_steps(t->before, t->before_count, text))
        return -1;
    for (size_t i = 0; i < text->count; i++) {
        const struct piece *q = &text->piece[i];
        if (q->id != NO_ID ? tokens_add(out, q->id)
                           : bpe_encode(t, text->text + q->at, q->length, out))
            return -1;
    }
    return 0;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t length, bool around,
                     struct tokens *out, struct problem *p)
{
    struct pieces pieces = {.text = NULL};
    const size_t good = utf8_check(text, length);
    int failed = 0;
    if (good < length)
        return problem(p, "text: byte %zu is 0x%02x, which is no UTF-8", good,
                       (unsigned)(unsigned char)text[good]);
    for (int i = 0; around && !failed && i < t->ahead_count; i++)
        failed = tokens_add(out, t->ahead[i]);
    failed = failed || pieces_add(&pieces, text, length, NO_ID, true) || encode(t, &pieces, out);
    for (int i = 0; around && !failed && i < t->behind_count; i++)
        failed = tokens_add(out, t->behind[i]);
    pieces_free(&pieces);
    return failed ? problem(p, "text: no memory for its %zu bytes", length) : 0;
}

/* ---- decoding ---- */

struct sink {
    char *out;
    size_t size, length;
};

static void put(struct sink *s, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++, s->length++)
        if (s->length < s->size) s->out[s->length] = text[i];
}

/* Every character as the byte that it stands for; false where one stands for none. */
static bool put_bytes(struct sink *s, const char *text, size_t length)
{
    uint32_t c;
    size_t n;
    for (size_t at = 0; at < length; at += n) {
        n = utf8_take(text + at, length - at, &c);
        if (!n || character_byte(c) < 0) return false;
    }
    for (size_t at = 0; at < length; at += n) {
        char byte;
        n = utf8_take(text + at, length - at, &c);
        byte = (char)character_byte(c);
        put(s, &byte, 1);
    }
    return true;
}

size_t tokenizer_decode(const struct tokenizer *t, int32_t id, bool first, char *out, size_t size)
{
    struct sink s = {out, size, 0};
    const char *text;
    size_t length, mark = t->space ? strlen(t->space) : 0;
    unsigned byte;
    if (id < 0 || (size_t)id >= t->size || !t->text[id] || t->special[id]) return 0;
    text = t->text[id];
    length = t->length[id];
    if (t->byte_level && put_bytes(&s, text, length)) return s.length;
    if (t->byte_tokens && length == 6 && text[5] == '>' && sscanf(text, "<0x%2X", &byte) == 1) {
        const char value = (char)byte;
        put(&s, &value, 1);
        return s.length;
    }
    for (size_t at = 0; at < length;) {
        const bool blank = mark && at + mark <= length && !memcmp(text + at, t->space, mark);
        const bool dropped = blank && at == 0 && first && t->strip_first;
        if (!dropped) put(&s, blank ? " " : text + at, 1);
        at += blank ? mark : 1;
    }
    return s.length;
}
