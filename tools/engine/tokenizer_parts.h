/* What the files of the tokenizer share. */
#ifndef ENGINE_TOKENIZER_PARTS_H
#define ENGINE_TOKENIZER_PARTS_H

#include "json.h"
#include "pattern.h"
#include "tokenizer.h"

#include <string.h>

enum { STEPS_MAX = 16, AROUND_MAX = 8, NO_ID = -1 };

/* ---- a text in pieces ---- */

struct piece {
    size_t at, length; /* in the text */
    int32_t id;        /* of an added token, else NO_ID */
    bool first;        /* stands where the original text begins */
};

struct pieces {
    char *text;
    size_t length, capacity;
    struct piece *piece;
    size_t count, room;
};

/* Each of these returns 0, or -1 where memory ends. Empty pieces are not added. */
int pieces_text(struct pieces *p, const char *text, size_t length); /* appends to the last piece */
int pieces_begin(struct pieces *p, int32_t id, bool first);         /* begins the next one */
int pieces_add(struct pieces *p, const char *text, size_t length, int32_t id, bool first);
void pieces_clear(struct pieces *p);
void pieces_free(struct pieces *p);

/* ---- steps ---- */

enum step_kind {
    STEP_PREPEND,    /* normalizer: text before a piece */
    STEP_REPLACE,    /* normalizer, decoder: one string by another */
    STEP_NFC,        /* normalizer */
    STEP_SPLIT,      /* pre-tokenizer */
    STEP_DIGITS,     /* pre-tokenizer: digits apart, each of them or in runs */
    STEP_BYTE_LEVEL, /* pre-tokenizer: bytes as printable characters */
    STEP_METASPACE   /* pre-tokenizer */
};

enum behavior { SPLIT_ISOLATED, SPLIT_REMOVED, SPLIT_PREVIOUS, SPLIT_NEXT, SPLIT_CONTIGUOUS };
enum prepend { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS };

struct step {
    enum step_kind kind;
    const char *from, *to; /* strings of STEP_PREPEND (to), STEP_REPLACE; STEP_METASPACE: to */
    size_t from_length, to_length;
    struct pattern *pattern; /* of STEP_SPLIT; of STEP_BYTE_LEVEL, NULL: it does not split */
    enum behavior behavior;
    bool invert, each; /* of STEP_SPLIT; of STEP_DIGITS */
    enum prepend prepend;
    bool split; /* of STEP_METASPACE */
};

/* Does one step to every piece of `from` that is no added token. 0, or -1 where memory ends. */
int step_run(const struct step *s, const struct pieces *from, struct pieces *to);
/* The character that stands for a byte in the vocabulary of a byte-level model, and back (-1: for
 * none). */
uint32_t byte_character(unsigned char byte);
int character_byte(uint32_t character);

/* ---- the vocabulary ---- */

struct added {
    const char *text; /* as looked for: normalised where `normalized` is set */
    size_t length;
    char *owned;
    int32_t id;
    bool special, left, right, normalized, single;
};

struct merge {
    int32_t left, right, result;
    uint32_t rank;
};

struct tokenizer {
    struct json_document *document; /* holds the strings */
    char *path;
    struct step normal[STEPS_MAX], before[STEPS_MAX];
    int normal_count, before_count;

    const char **text; /* of each id; NULL: there is no such id */
    uint32_t *length;
    bool *special;
    size_t size;
    int32_t *slots; /* ids of the model's vocabulary by hash of their text */
    size_t slot_mask;
    struct merge *merges; /* by hash of the pair; left NO_ID: free */
    size_t merge_mask;
    bool ignore_merges, byte_fallback, fuse_unknown;
    int32_t unknown; /* NO_ID: none */
    int32_t byte_id[256];

    struct added *added;
    size_t added_count;

    int32_t ahead[AROUND_MAX], behind[AROUND_MAX];
    int ahead_count, behind_count;

    /* The decoder. */
    bool byte_level, byte_tokens, strip_first;
    const char *space; /* what becomes a blank; NULL: nothing */
};

int32_t vocabulary_find(const struct tokenizer *t, const char *text, size_t length);
/* Byte pair encoding of one piece. 0, or -1 where memory ends. */
int bpe_encode(const struct tokenizer *t, const char *text, size_t length, struct tokens *out);
uint32_t hash_bytes(const char *text, size_t length);
uint32_t hash_pair(int32_t left, int32_t right);
/* Reads normalizer, pre_tokenizer, post_processor and decoder. */
int load_steps(struct tokenizer *t, const struct json *root, struct problem *p);

#endif
