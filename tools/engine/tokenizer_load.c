/* What tokenizer.json says to do with a text before and after byte pair encoding. */
#include "tokenizer_parts.h"
#include "utf8.h"

#include <stdio.h>

/* GPT-2's pattern, which the byte-level pre-tokenizer splits by. */
static const char byte_level_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char space_mark[] = "\xE2\x96\x81"; /* U+2581 */

struct loader {
    struct tokenizer *t;
    struct problem *p;
};

static int unmodelled(const struct loader *l, const char *where, const struct json *type)
{
    return problem(l->p, "%s: %s of type %.60s is not modelled", l->t->path, where,
                   type && type->type == JSON_STRING ? type->text : json_type_name(type));
}

static int wrong(const struct loader *l, const char *where, const char *field,
                 const struct json *value, const char *want)
{
    return problem(l->p, "%s: %s: %s is %s, not %s", l->t->path, where, field,
                   json_type_name(value), want);
}

/* A field that is true or false, or is not there. */
static int take_bool(const struct loader *l, const char *where, const struct json *in,
                     const char *field, bool absent, bool *out)
{
    const struct json *value = json_get(in, field);
    *out = absent;
    if (!value || value->type == JSON_NULL) return 0;
    if (value->type != JSON_BOOL) return wrong(l, where, field, value, "true or false");
    *out = value->truth;
    return 0;
}

static int take_text(const struct loader *l, const char *where, const struct json *in,
                     const char *field, const char **text, size_t *length)
{
    const struct json *value = json_get(in, field);
    if (!value || value->type != JSON_STRING) return wrong(l, where, field, value, "a string");
    *text = value->text;
    *length = value->length;
    return 0;
}

static struct step *new_step(const struct loader *l, const char *where, struct step *steps,
                             int *count)
{
    if (*count == STEPS_MAX) {
        problem(l->p, "%s: %s has more than %d steps", l->t->path, where, STEPS_MAX);
        return NULL;
    }
    steps[*count] = (struct step){.kind = STEP_PREPEND};
    return &steps[(*count)++];
}

/* The array of a Sequence, under the name that its kind of object uses; NULL: not a Sequence. */
static const struct json *sequence_of(const struct json *object, const char *elements)
{
    const struct json *list = json_get(object, elements);
    return json_is(json_get(object, "type"), "Sequence") && list && list->type == JSON_ARRAY ? list
                                                                                             : NULL;
}

/* ---- normalizers ---- */

static int load_normalizer(const struct loader *l, const struct json *n)
{
    const struct json *type = json_get(n, "type"), *list = sequence_of(n, "normalizers");
    static const char where[] = "normalizer";
    struct step *s;
    if (!n || n->type == JSON_NULL) return 0;
    if (list) {
        for (const struct json *e = list->in; e; e = e->next)
            if (load_normalizer(l, e)) return -1;
        return 0;
    }
    s = new_step(l, where, l->t->normal, &l->t->normal_count);
    if (!s) return -1;
    if (json_is(type, "NFC")) {
        s->kind = STEP_NFC;
        return 0;
    }
    if (json_is(type, "Prepend")) {
        s->kind = STEP_PREPEND;
        return take_text(l, where, n, "prepend", &s->to, &s->to_length);
    }
    if (!json_is(type, "Replace")) return unmodelled(l, where, type);
    s->kind = STEP_REPLACE;
    if (take_text(l, where, json_get(n, "pattern"), "String", &s->from, &s->from_length) ||
        take_text(l, where, n, "content", &s->to, &s->to_length))
        return -1;
    if (!s->from_length) return problem(l->p, "%s: normalizer: replaces ''", l->t->path);
    return 0;
}

/* ---- pre-tokenizers ---- */

static int load_split(const struct loader *l, const struct json *n, struct step *s)
{
    static const char where[] = "pre_tokenizer Split";
    static const struct {
        const char *name;
        enum behavior behavior;
    } behaviors[] = {{"Isolated", SPLIT_ISOLATED},
                     {"Removed", SPLIT_REMOVED},
                     {"MergedWithPrevious", SPLIT_PREVIOUS},
                     {"MergedWithNext", SPLIT_NEXT},
                     {"Contiguous", SPLIT_CONTIGUOUS}};
    const struct json *pattern = json_get(n, "pattern"), *behavior = json_get(n, "behavior");
    const char *text;
    char escaped[512];
    size_t length, i = 0, count = sizeof behaviors / sizeof behaviors[0];
    s->kind = STEP_SPLIT;
    while (i < count && !json_is(behavior, behaviors[i].name)) i++;
    if (i == count) return unmodelled(l, "pre_tokenizer Split: behavior", behavior);
    s->behavior = behaviors[i].behavior;
    if (take_bool(l, where, n, "invert", false, &s->invert)) return -1;
    if (json_get(pattern, "Regex")) {
        if (take_text(l, where, pattern, "Regex", &text, &length)) return -1;
    } else {
        size_t room = 0;
        if (take_text(l, where, pattern, "String", &text, &length)) return -1;
        /* The same characters as a pattern. */
        for (size_t k = 0; k < length; k++) {
            if (room + 3 > sizeof escaped)
                return problem(l->p, "%s: %s: String is longer than 255 bytes", l->t->path, where);
            if (strchr("\\^$.|?*+()[]{}", text[k])) escaped[room++] = '\\';
            escaped[room++] = text[k];
        }
        text = escaped;
        length = room;
    }
    s->pattern = pattern_compile(text, length, l->t->path, l->p);
    return s->pattern ? 0 : -1;
}

static int load_byte_level(const struct loader *l, const struct json *n, struct step *s)
{
    static const char where[] = "pre_tokenizer ByteLevel";
    bool blank, split;
    s->kind = STEP_BYTE_LEVEL;
    s->behavior = SPLIT_ISOLATED;
    if (take_bool(l, where, n, "add_prefix_space", true, &blank) ||
        take_bool(l, where, n, "use_regex", true, &split))
        return -1;
    s->prepend = blank ? PREPEND_ALWAYS : PREPEND_NEVER;
    if (!split) return 0;
    s->pattern =
        pattern_compile(byte_level_pattern, sizeof byte_level_pattern - 1, l->t->path, l->p);
    return s->pattern ? 0 : -1;
}

/* Newer files say prepend_scheme, older ones add_prefix_space. */
static int load_scheme(const struct loader *l, const char *where, const struct json *n,
                       enum prepend *out)
{
    const struct json *scheme = json_get(n, "prepend_scheme");
    bool blank;
    if (take_bool(l, where, n, "add_prefix_space", true, &blank)) return -1;
    *out = blank ? PREPEND_ALWAYS : PREPEND_NEVER;
    if (!scheme || scheme->type == JSON_NULL) return 0;
    if (json_is(scheme, "always"))
        *out = PREPEND_ALWAYS;
    else if (json_is(scheme, "never"))
        *out = PREPEND_NEVER;
    else if (json_is(scheme, "first"))
        *out = PREPEND_FIRST;
    else
        return unmodelled(l, "Metaspace: prepend_scheme", scheme);
    return 0;
}

static int load_before(const struct loader *l, const struct json *n)
{
    const struct json *type = json_get(n, "type"), *list = sequence_of(n, "pretokenizers");
    static const char where[] = "pre_tokenizer";
    struct step *s;
    if (!n || n->type == JSON_NULL) return 0;
    if (list) {
        for (const struct json *e = list->in; e; e = e->next)
            if (load_before(l, e)) return -1;
        return 0;
    }
    s = new_step(l, where, l->t->before, &l->t->before_count);
    if (!s) return -1;
    if (json_is(type, "Split")) return load_split(l, n, s);
    if (json_is(type, "ByteLevel")) return load_byte_level(l, n, s);
    if (json_is(type, "Digits")) {
        s->kind = STEP_DIGITS;
        return take_bool(l, where, n, "individual_digits", false, &s->each);
    }
    if (!json_is(type, "Metaspace")) return unmodelled(l, where, type);
    s->kind = STEP_METASPACE;
    if (take_text(l, where, n, "replacement", &s->to, &s->to_length) ||
        take_bool(l, where, n, "split", true, &s->split))
        return -1;
    if (!s->to_length)
        return problem(l->p, "%s: pre_tokenizer Metaspace: replacement is ''", l->t->path);
    return load_scheme(l, where, n, &s->prepend);
}

/* ---- what stands around a text ---- */

static int around(const struct loader *l, const struct json *tokens, const char *name,
                  int32_t *list, int *count)
{
    const struct json *ids = json_get(json_get(tokens, name), "ids");
    if (!ids || ids->type != JSON_ARRAY)
        return problem(l->p, "%s: post_processor: special_tokens lacks '%.60s'", l->t->path, name);
    for (const struct json *e = ids->in; e; e = e->next) {
        int64_t id;
        if (!json_whole(e, &id) || id < 0 || (uint64_t)id >= l->t->size)
            return problem(l->p, "%s: post_processor: the id of '%.60s' is no token's", l->t->path,
                           name);
        if (*count == AROUND_MAX)
            return problem(l->p, "%s: post_processor: more than %d tokens on a side", l->t->path,
                           AROUND_MAX);
        list[(*count)++] = (int32_t)id;
    }
    return 0;
}

static int load_template(const struct loader *l, const struct json *n)
{
    const struct json *single = json_get(n, "single"), *tokens = json_get(n, "special_tokens");
    struct tokenizer *t = l->t;
    bool behind = false;
    if (t->ahead_count || t->behind_count)
        return problem(l->p, "%s: post_processor: two templates", t->path);
    if (!single || single->type != JSON_ARRAY)
        return wrong(l, "post_processor", "single", single, "an array");
    for (const struct json *e = single->in; e; e = e->next) {
        const struct json *id = json_get(json_get(e, "SpecialToken"), "id");
        if (json_get(e, "Sequence")) {
            if (behind || !json_is(json_get(json_get(e, "Sequence"), "id"), "A"))
                return problem(l->p, "%s: post_processor: single is not one text A", t->path);
            behind = true;
        } else if (!id || id->type != JSON_STRING) {
            return wrong(l, "post_processor: SpecialToken", "id", id, "a string");
        } else if (around(l, tokens, id->text, behind ? t->behind : t->ahead,
                          behind ? &t->behind_count : &t->ahead_count)) {
            return -1;
        }
    }
    return behind ? 0 : problem(l->p, "%s: post_processor: single has no text A", t->path);
}

static int load_after(const struct loader *l, const struct json *n)
{
    const struct json *type = json_get(n, "type"), *list = sequence_of(n, "processors");
    if (!n || n->type == JSON_NULL || json_is(type, "ByteLevel")) return 0;
    for (const struct json *e = list ? list->in : NULL; e; e = e->next)
        if (load_after(l, e)) return -1;
    if (list) return 0;
    return json_is(type, "TemplateProcessing") ? load_template(l, n)
                                               : unmodelled(l, "post_processor", type);
}

/* ---- back to text ---- */

static int load_decoder(const struct loader *l, const struct json *n)
{
    const struct json *type = json_get(n, "type"), *list = sequence_of(n, "decoders");
    struct tokenizer *t = l->t;
    static const char where[] = "decoder";
    int64_t start, stop;
    if (!n || n->type == JSON_NULL || json_is(type, "Fuse")) return 0;
    for (const struct json *e = list ? list->in : NULL; e; e = e->next)
        if (load_decoder(l, e)) return -1;
    if (list) return 0;
    if (json_is(type, "ByteLevel")) {
        t->byte_level = true;
        return 0;
    }
    if (json_is(type, "ByteFallback")) {
        t->byte_tokens = true;
        return 0;
    }
    if (json_is(type, "Metaspace")) {
        enum prepend scheme;
        if (!json_is(json_get(n, "replacement"), space_mark))
            return problem(l->p, "%s: decoder Metaspace: replacement is not U+2581", t->path);
        t->space = space_mark;
        if (load_scheme(l, where, n, &scheme)) return -1;
        t->strip_first = scheme != PREPEND_NEVER;
        return 0;
    }
    if (json_is(type, "Replace") && json_is(json_get(n, "content"), " ")) {
        if (!json_is(json_get(json_get(n, "pattern"), "String"), space_mark))
            return problem(l->p, "%s: decoder Replace: String is not U+2581", t->path);
        t->space = space_mark;
        return 0;
    }
    if (json_is(type, "Strip") && json_is(json_get(n, "content"), " ") &&
        json_whole(json_get(n, "start"), &start) && json_whole(json_get(n, "stop"), &stop) &&
        start == 1 && stop == 0) {
        t->strip_first = true;
        return 0;
    }
    return unmodelled(l, where, type);
}

int load_steps(struct tokenizer *t, const struct json *root, struct problem *p)
{
    const struct loader l = {t, p};
    return load_normalizer(&l, json_get(root, "normalizer")) ||
                   load_before(&l, json_get(root, "pre_tokenizer")) ||
                   load_after(&l, json_get(root, "post_processor")) ||
                   load_decoder(&l, json_get(root, "decoder"))
               ? -1
               : 0;
}
