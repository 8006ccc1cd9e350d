/*
 * The decoder's inside: decode.c looks opcodes up, bind_mods.c matches modifiers, bind_args.c binds
 * operands to slots and constants, flow.c follows values.
 */
#ifndef SIM_BIND_H
#define SIM_BIND_H

#include "decode/decode.h"

enum {
    ROW_BUCKETS = 1024,
    CONST_BUCKETS = 1024,
    MAX_LIST = 512,   /* elements of all lists of one instruction */
    SINK_BYTES = 512, /* scratch at offset 0 of the register file: what `_` writes to */
    WHY_BYTES = 320
};
#define NO_SLOT_YET UINT32_MAX

struct constant_entry {
    uint64_t value;
    uint32_t bits, offset, next;
};

/* An instruction whose modifiers were in an order of their own: its parts in the row's. */
struct reordered {
    const struct ptx_insn *written; /* NULL: none yet */
    const char *const *mods;
    const struct op_row *row; /* the first that has such modifiers */
};

struct decode {
    struct decoder dc;       /* first: bind functions get a pointer to it */
    bind_fn *const *binders; /* by row */
    struct ptx_diag *diag;
    struct arena scratch;

    uint32_t row_heads[ROW_BUCKETS]; /* 1 + row index, 0 none */
    uint32_t *row_next;
    uint32_t longest_name;      /* in dot-separated parts */
    struct reordered reordered; /* the last one */

    uint32_t *slots; /* by register: byte offset, or NO_SLOT_YET */
    uint32_t regs_bytes;
    uint32_t *sregs; /* by enum special_reg */
    struct addr_slot *addresses;
    uint32_t address_count, address_capacity;

    uint8_t *consts;
    uint32_t consts_bytes, consts_capacity;
    struct constant_entry *constants;
    uint32_t constant_count, constant_capacity;
    uint32_t constant_heads[CONST_BUCKETS]; /* 1 + index */

    struct arg list[MAX_LIST];
    uint32_t list_count;
    char why[WHY_BYTES]; /* the reason of the last refusal */
    uint32_t why_rank;   /* how many operands fitted before it: the best match's reason stays */
    bool no_memory;
};

/* ---- bind_mods.c ---- */

/* Matches `count` modifiers to the row's pattern and fills dc->mod. */
bool match_mods(struct decoder *dc, const char *pattern, const char *const *mods, uint32_t count);
/* Puts an opcode's parts into the order of the row, where ptxas takes them in the order given: `sorted`
 * gets them. False if they are not the row's. */
bool sort_mods(const struct op_row *row, const char *const *mods, uint32_t count,
               const char **sorted);
/* Whether the order of these two among each other has a meaning. */
bool mods_ordered(const char *a, const char *b);
bool mods_pattern_valid(const char *pattern, char *why, size_t size);
/* The row's traits, with what modifiers and operands add. */
void resolve_traits(const struct decoder *dc, struct insn *out);

/* ---- bind_args.c ---- */

/* Binds the instruction's operands to `pattern`; false with d->why. */
bool bind_operands(struct decode *d, const char *pattern, struct insn *out);
bool args_pattern_valid(const char *pattern, char *why, size_t size);
/* The slot of a register. */
uint32_t register_slot(struct decode *d, uint32_t reg);
/* A literal as 64 bits (a float as the 32 of .f32, a double as its own). */
bool constant_operand(struct decode *d, const struct operand *literal, struct arg *out);
void refuse(struct decode *d, uint32_t rank, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- flow.c ---- */

/* Fills insn.used. False: no memory. */
bool mark_uses(struct decode *d, struct insn *insns, uint32_t count);

#endif
