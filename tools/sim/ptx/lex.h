/*
 * PTX text to tokens: comments, line markers and `//@` notes are dealt with here, so that the parser
 * sees neither.
 */
#ifndef SIM_LEX_H
#define SIM_LEX_H

#include "ptx/module.h"

#include <stddef.h>

enum token_kind {
    TOK_END,
    TOK_NAME, /* identifier, `%` and `$` names included */
    TOK_DOT,  /* ".shared::cta": text holds what follows the dot */
    TOK_INT,
    TOK_F32,    /* value: IEEE bits of 0f… */
    TOK_F64,    /* value: IEEE bits of 0d… or of a decimal literal */
    TOK_STRING, /* text without the quotes */
    TOK_PUNCT,  /* punct: the character, or an enum punct */
    TOK_BAD     /* lexer.error says why */
};

/* Two-character operators of constant expressions. */
enum punct {
    PUNCT_SHL = 256,
    PUNCT_SHR,
    PUNCT_LE,
    PUNCT_GE,
    PUNCT_EQ,
    PUNCT_NE,
    PUNCT_AND,
    PUNCT_OR
};

struct token {
    enum token_kind kind;
    int punct;
    bool is_unsigned; /* TOK_INT: U suffix, or too large for int64_t */
    const char *text; /* into the source, not NUL-terminated */
    size_t length;
    uint64_t value;
    struct src_pos pos;
};

struct lexer {
    struct arena *arena;
    const char *at, *end;
    bool line_start;
    struct src_pos pos;
    const char **files; /* [0] names text that no marker covers */
    uint32_t file_count, file_capacity;
    struct ptx_note *notes; /* all so far, in order */
    uint32_t note_count, note_capacity;
    char error[96];
};

/* False when memory is exhausted. */
bool lex_start(struct lexer *lex, struct arena *arena, const char *name, const char *text,
               size_t length);
/* Index of a file name, added if new; 0 when there are too many or no memory. */
uint32_t lex_file(struct lexer *lex, const char *name, size_t length);
struct token lex_next(struct lexer *lex);
/* The source between two points as one line: comments dropped, blanks folded, long texts cut. */
const char *lex_slice(struct lexer *lex, const char *begin, const char *end);

#endif
