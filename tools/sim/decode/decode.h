/*
 * From parsed instructions to executable ones: opcode lookup in optable.c, operand binding to
 * register-file slots, constants materialised as 32-lane broadcasts.
 *
 * Register file of a warp: every PTX register owns a slot, laid out lane-major:
 *   .pred   one uint32_t, bit l = lane l        16-bit  uint16_t[32]
 *   32-bit  uint32_t[32]      64-bit uint64_t[32]      128-bit  two uint64_t[32] halves, low first
 * Slots are 64-byte aligned (predicates 4). Immediates live in the kernel's constant bank in the
 * same shapes, so that a handler reads both the same way. Special registers that are constant for a
 * warp's life are register slots filled when the warp starts: 32-bit ones, but 64 bits for
 * %gridid and a predicate for %is_explicit_cluster. Only registers that some instruction names get
 * a slot.
 */
#ifndef SIM_DECODE_H
#define SIM_DECODE_H

#include "decode/traits.h"
#include "ptx/module.h"
#include "ptx/window.h"

#include <stddef.h>

enum { WARP_LANES = 32 };
#define FULL_MASK 0xFFFFFFFFU

struct warp;
struct insn;
struct callee;

/* What a handler tells the executor. The executor advances pc on STEP_NEXT only. */
enum step {
    STEP_NEXT,
    STEP_JUMP,  /* the handler has set pc (branches, exit) or reshaped fragments */
    STEP_BLOCK, /* not done: frag->wait says for what; the same instruction runs again on wake-up */
    STEP_FAULT  /* sim_fault was called; the launch ends */
};

/* Executes one instruction for the lanes in `mask` (never 0) of the warp's current fragment. */
typedef enum step exec_fn(struct warp *warp, const struct insn *in, uint32_t mask);

enum bank { BANK_REGS = 0, BANK_CONST = 1 };

/* A bound operand. Lists (vectors) are consecutive args in insn.list. */
struct arg {
    uint32_t offset; /* bytes into the bank; for predicates too */
    uint8_t bank;    /* enum bank */
    uint8_t negated; /* predicates */
    uint8_t sink;    /* `_`, or an optional operand that is absent */
    uint8_t bits;    /* 1, 16, 32, 64, 128; 0 when sink */
};

/* What becomes of a value (flow.c). */
enum insn_use {
    USE_STEERS = 1, /* a guard or a branch depends on it */
    USE_ADDRESS = 2 /* it is part of an address */
};

enum { INSN_ARGS = 10 };
#define NO_GUARD UINT32_MAX

/* What the machine's form of an instruction takes of its warp's quarter: issue slots at PIPE_ISSUE, else cycles. */
struct pipe_work {
    uint32_t of[PIPES];
};

struct insn {
    exec_fn *fn;
    uint32_t guard; /* byte offset of the guard predicate in the register file, or NO_GUARD */
    uint8_t guard_negated;
    bool watched; /* names a register that some wgmma.mma_async uses or a tcgen05.ld delivers,
                      and is none of these itself */
    bool
        unread; /* a poll or an atomic whose answer nothing reads, so that nothing can rest on it */
    uint8_t used;   /* loads and atomics: what their result may be used for, enum insn_use bits */
    uint8_t type;   /* enum ptx_type of the first type modifier */
    uint8_t type2;  /* of the second, T_NONE if absent */
    uint8_t space;  /* enum ptx_space of an address operand; SPACE_NONE = generic */
    uint16_t flags; /* per family, documented where the family's bind function sets them */
    uint16_t list_count;
    uint32_t target;           /* branches: instruction index */
    struct arg arg[INSN_ARGS]; /* operands in the order of the row's operand pattern */
    int64_t
        imm[6]; /* [n]: byte offset of the n-th address operand (from 0); or as the family's bind
                       function says */
    const struct arg *list; /* vector operands, flattened in order */
    const void *aux;        /* family-specific decoded form, in the kernel's arena */
    struct traits is;       /* the row's, with what modifiers and operands add */
    struct pipe_work work;
    const struct op_row *row;
    const struct ptx_insn *src;
};

enum op_flag {
    OPF_ALIGNED = 1,     /* .aligned or .sync collective over the whole warp: executor converges the
                         warp's live lanes at this pc first, and a partial guard is a finding */
    OPF_GLOBAL_SYNC = 2, /* lets CTAs of different clusters talk (global atomics, strong accesses):
                            the launch then runs on one host thread, clusters interleaved */
    OPF_EXITS =
        4 /* of an OPF_ALIGNED one: does without lanes that have exited. Others need all 32 */
};

struct decoder;
/* Of one row: picks fn, sets flags and aux. 0, or what bind_unsupported or bind_invalid returns. */
typedef int bind_fn(struct decoder *dc, struct insn *out);

/*
 * One row of optable.c. `mods` describes what may follow the mnemonic, in order:
 *   word        must stand here             a|b|c   one of these must
 *   [a|b]       one of these may            @int    shorthand for a list of types (bind_mods.c)
 * `args` describes the operands, in order, separated by spaces:
 *   =0 =1  destination register of the first/second type modifier's width; =0w twice that width
 *   0 1 0w source (register or constant) likewise
 *   =b16 =b32 =b64 =b128 =p      destination of fixed width / predicate
 *   b16 b32 b64 b128 p           source; a source predicate may be negated
 *   =0|p =p|p =_|p               pair, second half optional unless it follows `_`
 *   []     address [base+offset]      [t]  tensor address [map, {coords}{, {offsets}}]
 *   ={0} {0} {b32} ={b32}        braces of registers, any count (scalars count as one)
 *   i      integer constant only       l    label (insn.target)      {l}  a .branchtargets list
 *   f32 s64 … any type's name: as bN, and says how a constant is converted
 *   =r r   register of any width (ld, st, cvt); a constant gets the first type's width, 16 at least
 *   sr     dynamic special register (clocks): arg.offset is its enum special_reg, not a slot
 *   a suffix ? makes the operand optional; alternatives are joined with / ("b64/[]")
 *
 * Every pattern element owns the next insn.arg, used or not, so that indices do not depend on what
 * is absent; a pair owns two. What is absent, or `_`, is a sink: reads as 0 through arg_lane, and
 * its offset is scratch that nothing else uses. More exactly:
 *   braces    arg = copy of the first element; all elements of all lists follow one another in
 *             insn.list (elements of a `{l}` list have the instruction index as their offset)
 *   []        arg = base register, or a slot or constant with a variable's address, or a sink
 *             (absolute address); insn.imm[n] = byte offset of the n-th address operand
 *   [t]       arg = base of the map, coordinates and then offsets in insn.list
 *   i         arg = 64-bit constant; bind functions read it with operand_constant
 *   l         arg = sink
 * Addresses of variables: in the terms of the variable's own space where the instruction names a
 * space (32 bits for .shared), generic ones (64 bits) where it names none. Parameters are always
 * PARAM_WINDOW + offset.
 */
struct op_row {
    const char *name; /* "mbarrier.try_wait" */
    const char *mods;
    const char *args;
    uint16_t min_sm;  /* 0, 90, 100 */
    uint16_t arch;    /* 0 any, 'a': sm_90a only, 'f': needs an a or f target of family 10 */
    uint32_t flags;   /* enum op_flag */
    struct traits is; /* row_traits.h */
    const char *doc;  /* one line of semantics, with its ISA section where it is not plain */
};

extern const struct op_row op_rows[];
extern const uint32_t op_row_count;
/* Whether PTX has instructions whose first part is `mnemonic`, modelled or not. */
bool op_known(const char *mnemonic);
/* Whether the row is of an instruction that mnemonics.def has. */
bool op_listed(const struct op_row *row);
/* Bit i: insn.arg[i] is a result. *list: so are the elements of insn.list. */
uint32_t row_results(const struct op_row *row, bool *list);
/* How an instruction makes an address, arg[0], of its operands. */
enum address_step {
    ADDRESS_NONE,        /* it does not: a product, a shift, or anything else */
    ADDRESS_COPY,        /* of arg[1], perhaps in another space's terms */
    ADDRESS_RANK,        /* of arg[1], in another CTA */
    ADDRESS_CHOICE,      /* of arg[1] or arg[2] */
    ADDRESS_SUM,         /* of arg[1] and arg[2] */
    ADDRESS_PRODUCT_SUM, /* of a product and arg[3] */
};
enum address_step insn_address_step(const struct insn *in);
/* The index-th instruction of PTX that no row is of, in the order of mnemonics.def; NULL behind the last. */
const char *op_unmodelled(uint32_t index);

/* ---- for bind functions ---- */

struct decoder {
    const struct ptx_module *module;
    const struct ptx_entry *entry;
    const struct ptx_insn *src; /* the instruction being bound */
    const struct op_row *row;
    struct kernel *kernel;
    const char *mod[24]; /* text matched by each group of row->mods; NULL: absent */
    uint32_t mod_count;
};

/* True when group `index` matched `text`. */
bool mod_is(const struct decoder *dc, uint32_t index, const char *text);
/* True when any group matched `text`. */
bool mod_has(const struct decoder *dc, const char *text);
/* The type that group `index` matched, or T_NONE. */
enum ptx_type mod_type(const struct decoder *dc, uint32_t index);
/* An integer constant operand's value (operand number in source order). */
bool operand_constant(const struct decoder *dc, uint32_t operand, int64_t *value);
/* Rejects: records the message against the instruction; returns -1. The entry then cannot launch
 * (801, kind `unsupported`). */
int bind_unsupported(struct decoder *dc, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Rejects as malformed PTX: the module does not load (218). Returns -2. */
int bind_invalid(struct decoder *dc, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *bind_alloc(struct decoder *dc, size_t size);

/* ---- an entry, ready to run ---- */

/* A name given by the source to something a report speaks of. */
struct name_range {
    const char *name;
    uint32_t first, count; /* warps, shared bytes (window offsets) or TMEM columns */
    uint32_t stride;       /* shared arrays: element size, for "full_bar[2]" */
};

/* A register slot that holds a variable's address. Which one it is depends on the CTA (shared memory
 * carries the rank) or the launch, so the scheduler fills all lanes when the warp starts with
 *   shared  rank << SHARED_RANK_SHIFT | SHARED_RESERVED + var->offset   (extern ones included: their
 *           offset is entry->shared_bytes, where the dynamic part begins); + SHARED_WINDOW if generic
 *   global, const   launch->globals or ->consts + var->offset
 * plus addend. Parameters and local variables are constants and need no slot. */
struct addr_slot {
    uint32_t offset; /* in the register file */
    uint8_t bits;    /* 32 or 64 */
    bool generic;
    const struct ptx_var *var;
    int64_t addend;
};

struct kernel {
    struct arena arena;
    const struct ptx_module *module;
    const struct ptx_entry *entry;
    const struct insn *insns;
    uint32_t insn_count;
    uint32_t regs_bytes; /* register file of one warp */
    const uint8_t *consts;
    uint32_t consts_bytes;
    const uint32_t *sreg_offset; /* SR_COUNT: slot of a used constant special register, or ~0 */
    const struct addr_slot *addr_slots;
    uint32_t addr_slot_count;
    const struct callee *callees; /* op_call.c: [entry->function_count], NULL without calls */
    bool global_sync;             /* some instruction has OPF_GLOBAL_SYNC */
    bool uses_tmem;
    const char *unsupported; /* message of the first instruction that cannot run, or NULL */
    const struct ptx_insn *unsupported_insn; /* NULL: a directive */
    struct src_pos unsupported_pos;
    const char *unsupported_text;
    const struct name_range *roles, *buffers, *columns; /* from `//@` notes and .shared variables */
    uint32_t role_count, buffer_count, column_count;
};

/* `binders`: of each of op_rows, in that order. 0; -1 out of memory; -2 with diag: malformed (module load
 * fails with 218). What is merely not modelled leaves kernel->unsupported set and returns 0. */
int kernel_decode(const struct ptx_module *module, const struct ptx_entry *entry,
                  bind_fn *const binders[], struct kernel **out, struct ptx_diag *diag);
void kernel_free(struct kernel *kernel);

/* Checks a row's own notation. False with the reason in `why`. */
bool op_row_valid(const struct op_row *row, char *why, size_t why_size);

#endif
