/*
 * The parser's inside: shared by parse.c (directives and entries), parse_var.c (declarations),
 * parse_insn.c (instructions), scope.c (names) and expr.c (constant expressions).
 *
 * Functions return false after parse_fail, and callers pass that on; the first error stands.
 */
#ifndef SIM_PARSE_H
#define SIM_PARSE_H

#include "ptx/lex.h"

enum {
    MAX_SCOPES = 256,
    MAX_REGS = 1 << 18, /* of one entry */
    MAX_LANES = 4,      /* of a register */
    MAX_DEPTH = 64,     /* of parentheses and nested initialisers */
    MAX_PARAM_BYTES = 32764,
    SYMBOL_BUCKETS = 4096
};

enum symbol_kind {
    SYM_REG,   /* registers first … first+lanes-1 */
    SYM_RANGE, /* `%r<8>`: name is the prefix; registers first … first+count*lanes-1 */
    SYM_VAR,
    SYM_LABEL, /* first: instruction index; items: of a .branchtargets list */
    SYM_FUNC   /* first: its routine */
};

struct symbol {
    const char *name;
    size_t length;
    enum symbol_kind kind;
    uint32_t depth; /* 0 = module */
    uint32_t first, count;
    uint32_t lanes; /* of each register: 1, but 2 or 4 of `.v2` and `.v4` */
    struct ptx_var *var;
    const struct operand *items; /* SYM_LABEL of .branchtargets: count OPD_LABELs */
    struct src_pos pos;
    struct symbol *chain;   /* same bucket, older */
    struct symbol *sibling; /* same scope, older */
};

/* A name used where a label may be meant: settled when its scope, or one around it, closes. */
struct fixup {
    struct operand *operand;
    struct src_pos pos;
    bool branch; /* in a branch: the message speaks of a label */
    struct fixup *next;
};

struct scope {
    struct symbol *symbols;
    struct fixup *fixups;
};

/* A module-scope .shared variable has its place per entry: `copy` is that of the current entry. */
struct shared_var {
    struct ptx_var *var, *copy;
};

/* Where the text of a function or entry can be read again. */
struct text_place {
    struct lexer lex;
    struct token tok;
    bool peeked;
};

/* A function or entry of the module: bodies are read once the whole module is known. */
struct routine {
    const char *name;
    struct text_place place; /* behind `.func` or `.entry` */
    struct src_pos pos;
    uint32_t first_note; /* entries */
    uint32_t alias;      /* 1 + the function that it is another name of; 0: none */
    bool has_body, calls_pointers;
    uint32_t *uses; /* indices of the functions its body names */
    uint32_t use_count, use_capacity;
    enum { ROUTINE_NEW, ROUTINE_OPEN, ROUTINE_DONE } state; /* while an entry gathers functions */
};

struct loc_file {
    uint64_t number;
    uint32_t index; /* into lexer.files */
};

struct parser {
    struct lexer lex;
    struct token tok; /* the next token, when `peeked` */
    bool peeked;
    bool failed;
    struct ptx_diag *diag;
    struct ptx_module *module;
    struct arena *arena;  /* the module's */
    struct arena scratch; /* symbols, fixups */
    uint32_t depth;       /* of scopes; 0 = module, 1 = entry's parameters, 2 = its body */
    uint32_t nesting;     /* of expressions and initialisers */
    struct scope scopes[MAX_SCOPES];
    struct symbol *buckets[SYMBOL_BUCKETS];

    struct ptx_entry *entries;
    uint32_t entry_capacity;
    const struct ptx_var **globals;
    uint32_t global_capacity;
    struct shared_var *shared; /* of module scope, in order */
    uint32_t shared_count, shared_capacity;

    bool routines_wait;                  /* entries are read at the end: the module has functions */
    struct routine *functions, *waiting; /* by SYM_FUNC's first; entries in order */
    uint32_t function_count, function_capacity, waiting_count, waiting_capacity;
    bool *pointed; /* [function_count]: its address stands in an initial value */
    uint32_t pointed_capacity;

    /* of the current entry */
    struct ptx_function *function; /* being read, or NULL: the entry's own body */
    const struct ptx_function **own_functions;
    uint32_t own_function_capacity;
    uint32_t body_start; /* first instruction of the body being read */
    struct ptx_entry *entry;
    struct ptx_reg *regs;
    uint32_t reg_capacity;
    struct ptx_insn *insns;
    uint32_t insn_capacity;
    struct ptx_var **own_shared; /* declared in its body */
    uint32_t own_shared_count, own_shared_capacity;
    const struct ptx_loc *loc, *loc_last; /* in force; the body's last one that names a line */
    struct loc_file *loc_files;
    uint32_t loc_file_count, loc_file_capacity;
    bool computes_address; /* the instruction: `v[2]` in it is an address, not memory */
    bool label_pending; /* a label stands behind the last instruction */
};

/* ---- parse.c ---- */

bool parse_fail(struct parser *p, struct src_pos pos, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool parse_memory(struct parser *p); /* fails with "out of memory" */
const struct token *peek(struct parser *p);
struct token next(struct parser *p);
struct token peek_second(struct parser *p); /* the one behind the next */
bool at_punct(struct parser *p, int punct);
bool accept(struct parser *p, int punct); /* consumes it if it is there */
bool expect(struct parser *p, int punct);
bool expect_name(struct parser *p, const char *what, struct token *out);
bool token_is(const struct token *tok, const char *text);
/* "expected <what>, found <the next token>" */
bool unexpected(struct parser *p, const char *what);
/* Skips to behind the bracket that closes the one just consumed. */
bool skip_block(struct parser *p, int open, int close);
bool skip_past(struct parser *p, int punct);

/* From `{` to the end of a body, the scope of its parameters still open. */
bool parse_body(struct parser *p);
/* From behind `.entry`. A prototype leaves no entry behind. */
bool parse_entry(struct parser *p, uint32_t *first_note);

/* ---- parse_call.c ---- */

/* From behind `.func`: remembers the function and where its body stands. */
bool note_function(struct parser *p);
/* From behind `.entry`, in a module with functions: remembers where it stands. */
bool note_entry(struct parser *p, uint32_t *first_note);
/* `.alias a, f;` from behind the directive: a is another name of f. */
bool parse_alias(struct parser *p);
/* Reads the entries so remembered. */
bool parse_waiting(struct parser *p);
/* The functions that the entry just begun can reach, into its instructions and registers. */
bool parse_functions(struct parser *p);
/* The entry's frame and stack, when its body has been read. */
bool place_stack(struct parser *p);
/* `call`, from behind its modifiers to the semicolon. */
bool parse_call(struct parser *p, struct ptx_insn *insn);
/* What `mov` and tables of function pointers get for a function. */
uint64_t function_address(const struct symbol *symbol);

/* ---- lower.c ---- */

/* The last instruction, in terms that the decoder has: variables in frames (`.param` ones become local
 * ones, and in a function addresses are computed from the frame register), sums as operands, moves of
 * vectors. */
bool lower_instruction(struct parser *p);

/* ---- loc.c ---- */

/* Every `.file` of the text. */
bool loc_read_files(struct parser *p, const char *text, size_t length);
/* From behind `.loc`. */
bool parse_loc(struct parser *p);

/* ---- expr.c ---- */

struct constant {
    int64_t value;
    bool is_unsigned;
};

/* An integer constant expression (PTX ISA, Constant Expressions). */
bool parse_constant(struct parser *p, struct constant *out);
/* A constant of any kind: OPD_INT, OPD_F32 or OPD_F64. */
bool parse_literal(struct parser *p, struct operand *out);
/* One within [low, high]; `what` names it in the message. */
bool parse_bounded(struct parser *p, const char *what, int64_t low, int64_t high, int64_t *out);

/* ---- scope.c ---- */

bool scope_open(struct parser *p);
bool scope_close(struct parser *p); /* settles or hands on its fixups */
struct symbol *scope_declare(struct parser *p, const struct token *name, enum symbol_kind kind);
/* The innermost symbol of that name; *reg is set for registers (ranges included): the first of a
 * vector's. */
const struct symbol *scope_find(const struct parser *p, const struct token *name, uint32_t *reg);
/* The innermost symbol of exactly that name, to be changed. */
struct symbol *scope_symbol(const struct parser *p, const struct token *name);
/* An OPD_NAME that may mean a label; the operand must stay where it is. */
bool scope_fixup(struct parser *p, struct operand *operand, struct src_pos pos, bool branch);
bool unknown_name(struct parser *p, const struct token *name);

/* ---- parse_var.c ---- */

bool parse_reg_directive(struct parser *p);
/* From behind the state-space directive to the semicolon. */
bool parse_variables(struct parser *p, enum ptx_space space, bool is_extern);
bool parse_entry_params(struct parser *p);
/* One `.param` or `.reg` of a function, placed in its frame: out[0 … *count-1], MAX_LANES at most. */
bool parse_formal(struct parser *p, struct ptx_formal *out, uint32_t *count);
/* A register that no name reaches; NO_REG after parse_fail. */
uint32_t hidden_register(struct parser *p, const char *name, enum ptx_type type);
/* The variable as the current entry sees it (module-scope .shared ones are copied per entry). */
const struct ptx_var *use_variable(struct parser *p, struct ptx_var *var);
/* Lays out the current entry's static shared memory. */
bool place_shared(struct parser *p);
/* At the end of the module. */
bool place_globals(struct parser *p);
enum ptx_space space_directive(const struct token *tok);

/* ---- parse_insn.c ---- */

bool parse_operand(struct parser *p, struct operand *out);
bool parse_guarded(struct parser *p);                               /* from the `@` on */
bool parse_instruction(struct parser *p, const struct token *name); /* name: consumed already */
bool parse_branch_targets(struct parser *p, struct symbol *label);
struct ptx_insn *add_instruction(struct parser *p);

#endif
