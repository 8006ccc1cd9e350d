/*
 * Text to tokens and back, as tokenizer.json says: byte pair encoding with the normalizers,
 * pre-tokenizers, post-processors and decoders of the Llama family's models. What a file asks
 * beyond them is refused by name.
 */
#ifndef ENGINE_TOKENIZER_H
#define ENGINE_TOKENIZER_H

#include "problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tokenizer;

struct tokens {
    int32_t *id;
    size_t count, capacity;
};

/* Reads FOLDER/tokenizer.json. NULL after a message. */
struct tokenizer *tokenizer_open(const char *folder, struct problem *p);
void tokenizer_close(struct tokenizer *t);
/* One more than the largest id. */
size_t tokenizer_size(const struct tokenizer *t);

/* Adds one. 0, or -1 where memory ends. */
int tokens_add(struct tokens *out, int32_t id);
/* Adds the tokens of `text` to `out`, with those that the post-processor puts around it where
 * `around` is set. The text must be UTF-8. 0, or -1 after a message. Threads may share a tokenizer.
 */
int tokenizer_encode(const struct tokenizer *t, const char *text, size_t length, bool around,
                     struct tokens *out, struct problem *p);

/* The bytes that token `id` adds to a text, written to `out` as far as `size` goes; their number.
 * `first`: the text begins here. Special tokens and unknown ids add none. */
size_t tokenizer_decode(const struct tokenizer *t, int32_t id, bool first, char *out, size_t size);

#endif
