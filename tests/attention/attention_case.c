#include "attention_case.h"

#include "hewn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, DTYPE };

struct field {
    const char *name;
    enum kind kind;
    size_t offset;
    int64_t initial;
};

#define FIELD(kind, name, initial)                                  \
    {                                                               \
#name, kind, offsetof(struct attention_case, name), initial \
    }
#define SOURCE_FIELD(text, s, name, initial)                                   \
    {                                                                          \
        text, NUMBER, offsetof(struct attention_case, source[s].name), initial \
    }

static const struct field fields[] = {
    FIELD(DTYPE, in, HEWN_BF16),
    FIELD(DTYPE, out, HEWN_BF16),
    FIELD(NUMBER, qk, 128),
    FIELD(NUMBER, v, 0),
    FIELD(NUMBER, b, 1),
    FIELD(NUMBER, hq, 1),
    FIELD(NUMBER, hkv, 1),
    FIELD(NUMBER, sq, 128),
    SOURCE_FIELD("sk", 0, sk, 128),
    SOURCE_FIELD("causal", 0, causal, 0),
    SOURCE_FIELD("left", 0, left, -1),
    SOURCE_FIELD("right", 0, right, -1),
    SOURCE_FIELD("win", 0, win, 0),
    SOURCE_FIELD("keys", 0, keys, HEWN_KEYS_FIXED),
    SOURCE_FIELD("page", 0, page, 0),
    FIELD(NUMBER, sources, 1),
    SOURCE_FIELD("sk1", 1, sk, 128),
    SOURCE_FIELD("causal1", 1, causal, 0),
    SOURCE_FIELD("left1", 1, left, -1),
    SOURCE_FIELD("right1", 1, right, -1),
    SOURCE_FIELD("keys1", 1, keys, HEWN_KEYS_FIXED),
    SOURCE_FIELD("page1", 1, page, 0),
    FIELD(NUMBER, packed, 0),
    FIELD(NUMBER, ragged, 0),
    FIELD(NUMBER, tail, 0),
    FIELD(NUMBER, layout, HEWN_LAYOUT_BSHD),
    FIELD(NUMBER, pad, 0),
    FIELD(NUMBER, scale, 0),
    FIELD(NUMBER, peak, 100),
    FIELD(NUMBER, sink, 0),
    FIELD(NUMBER, unnorm, 0),
    FIELD(NUMBER, lse, 1),
    FIELD(NUMBER, qs, SCALING_NONE),
    FIELD(NUMBER, ks, SCALING_NONE),
    FIELD(NUMBER, vs, SCALING_NONE),
    FIELD(NUMBER, sgap, 0),
    FIELD(NUMBER, os, 0),
    FIELD(NUMBER, promo, 0),
    FIELD(NUMBER, vt, 0),
    FIELD(NUMBER, pack, 0),
    FIELD(NUMBER, splits, 0),
    FIELD(NUMBER, schedule, 0),
    FIELD(NUMBER, tree, 0),
    FIELD(NUMBER, cap, 0),
    FIELD(NUMBER, inv, 0),
    FIELD(NUMBER, kv, 0),
    FIELD(NUMBER, fade, 0),
    FIELD(NUMBER, pattern, PATTERN_NORMAL),
    FIELD(NUMBER, data, 1),
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static int64_t get(const struct attention_case *c, const struct field *f)
{
    int64_t value;
    memcpy(&value, (const char *)c + f->offset, sizeof value);
    return value;
}

static void set(struct attention_case *c, const struct field *f, int64_t value)
{
    memcpy((char *)c + f->offset, &value, sizeof value);
}

void attention_case_init(struct attention_case *c)
{
    memset(c, 0, sizeof *c);
    for (int i = 0; i < FIELDS; i++) set(c, &fields[i], fields[i].initial);
}

/* The fields that say what is computed come always, others where they differ. */
const char *attention_case_print(const struct attention_case *c, char text[ATTENTION_TEXT])
{
    size_t n = 0;
    for (int i = 0; i < FIELDS; i++) {
        const struct field *f = &fields[i];
        int64_t value = get(c, f);
        bool shape = f->offset == offsetof(struct attention_case, qk) ||
                     f->offset == offsetof(struct attention_case, sq) ||
                     f->offset == offsetof(struct attention_case, source[0].sk);
        if (value == f->initial && !shape && f->kind != DTYPE) continue;
        const char *gap = n ? " " : "";
        int more = f->kind == DTYPE ? snprintf(text + n, ATTENTION_TEXT - n, "%s%s=%s", gap,
                                               f->name, hewn_dtype_name((int)value))
                                    : snprintf(text + n, ATTENTION_TEXT - n, "%s%s=%lld", gap,
                                               f->name, (long long)value);
        if (more > 0) n += (size_t)more;
        if (n >= ATTENTION_TEXT) break;
    }
    return text;
}

static bool parse_value(const struct field *f, const char *text, int64_t *value)
{
    char *end;
    for (int t = HEWN_F32; f->kind == DTYPE && t <= HEWN_E4M3; t++)
        if (!strcmp(text, hewn_dtype_name(t))) {
            *value = t;
            return true;
        }
    *value = strtoll(text, &end, 0);
    return f->kind == NUMBER && end != text && *end == '\0';
}

static bool parse_word(struct attention_case *c, char *word)
{
    char *equals = strchr(word, '=');
    int64_t value;
    if (!equals) return false;
    for (int i = 0; i < FIELDS; i++) {
        size_t length = strlen(fields[i].name);
        if (length != (size_t)(equals - word) || strncmp(word, fields[i].name, length) != 0)
            continue;
        if (!parse_value(&fields[i], equals + 1, &value)) return false;
        set(c, &fields[i], value);
        return true;
    }
    return false;
}

bool attention_case_parse(struct attention_case *c, const char *text, char word[64])
{
    attention_case_init(c);
    for (int used; *text && sscanf(text, " %63s%n", word, &used) == 1; text += used)
        if (!parse_word(c, word)) return false;
    return true;
}
