/*
 * A PTX module after parsing: names bound, scopes flattened, constants folded; nothing executed,
 * and opcodes not yet looked up (decode.h does that), so that a module with an instruction the
 * simulator does not model still loads and only a launch of the entry that holds it fails.
 *
 * Everything lives in the module's arena. Strings are NUL-terminated.
 */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "ptx/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* Where something stands in the source, after `# N "file"` markers. */
struct src_pos {
    uint32_t file; /* index into module.files */
    uint32_t line;
};

/* name, text after the dot, bits, kind: b(its), u, s, f, p(red), v(packed) */
#define PTX_TYPES(X)                                                                               \
    X(B8, "b8", 8, 'b')                                                                            \
    X(B16, "b16", 16, 'b')                                                                         \
    X(B32, "b32", 32, 'b')                                                                         \
    X(B64, "b64", 64, 'b')                                                                         \
    X(B128, "b128", 128, 'b')                                                                      \
    X(U8, "u8", 8, 'u')                                                                            \
    X(U16, "u16", 16, 'u')                                                                         \
    X(U32, "u32", 32, 'u')                                                                         \
    X(U64, "u64", 64, 'u')                                                                         \
    X(S8, "s8", 8, 's')                                                                            \
    X(S16, "s16", 16, 's')                                                                         \
    X(S32, "s32", 32, 's')                                                                         \
    X(S64, "s64", 64, 's')                                                                         \
    X(F16, "f16", 16, 'f')                                                                         \
    X(F32, "f32", 32, 'f')                                                                         \
    X(F64, "f64", 64, 'f')                                                                         \
    X(BF16, "bf16", 16, 'f')                                                                       \
    X(TF32, "tf32", 32, 'f')                                                                       \
    X(F16X2, "f16x2", 32, 'v')                                                                     \
    X(BF16X2, "bf16x2", 32, 'v')                                                                   \
    X(U16X2, "u16x2", 32, 'v')                                                                     \
    X(S16X2, "s16x2", 32, 'v')                                                                     \
    X(F32X2, "f32x2", 64, 'v')                                                                     \
    X(E4M3, "e4m3", 8, 'f')                                                                        \
    X(E5M2, "e5m2", 8, 'f')                                                                        \
    X(E4M3X2, "e4m3x2", 16, 'v')                                                                   \
    X(E5M2X2, "e5m2x2", 16, 'v')                                                                   \
    X(E2M3X2, "e2m3x2", 16, 'v')                                                                   \
    X(E3M2X2, "e3m2x2", 16, 'v')                                                                   \
    X(E2M1X2, "e2m1x2", 8, 'v')                                                                    \
    X(UE8M0X2, "ue8m0x2", 16, 'v')                                                                 \
    X(PRED, "pred", 1, 'p')

enum ptx_type {
    T_NONE = 0,
#define X(name, text, bits, kind) T_##name,
    PTX_TYPES(X)
#undef X
    T_COUNT
};

/* T_NONE for a text that is no type. */
enum ptx_type ptx_type_named(const char *text, size_t length);
const char *ptx_type_text(enum ptx_type type);
uint32_t ptx_type_bits(enum ptx_type type);
char ptx_type_kind(enum ptx_type type);

enum ptx_space { SPACE_NONE, SPACE_PARAM, SPACE_SHARED, SPACE_GLOBAL, SPACE_CONST, SPACE_LOCAL };

struct ptx_var;

/* Part of an initial value that is known when the module's images have their addresses: the address
 * of `var` plus addend, shifted right and cut to `size` bytes. */
struct ptx_reloc {
    uint64_t at; /* in the variable */
    uint32_t size, shift;
    const struct ptx_var *var;
    int64_t addend;
    const struct ptx_reloc *next;
};

struct ptx_var {
    const char *name;
    enum ptx_space space;
    enum ptx_type type;
    uint32_t align;
    uint64_t bytes;     /* 0 for `.extern .shared x[]` */
    uint32_t elem_bytes; /* of one array element (vectors count whole) */
    bool is_extern, is_array;
    uint64_t offset;    /* in its space: params from the start of the parameter block, static shared
                           from the start of the CTA's static part, globals/consts in the module's
                           image of that space; extern shared: after all static (see shared_bytes) */
    bool call_param;     /* `.param` of a call or a function: lies in a frame of local memory */
    const uint8_t *init; /* `bytes` bytes, or NULL for zeros */
    const struct ptx_reloc *relocs;
    struct src_pos pos;
};

struct ptx_reg {
    const char *name;
    enum ptx_type type;
};

enum operand_kind {
    OPD_NONE,
    OPD_REG,     /* reg; negated for `!p` */
    OPD_INT,     /* imm: a folded integer constant expression (64 bits) */
    OPD_F32,     /* imm: IEEE bits, from 0f… */
    OPD_F64,     /* imm: IEEE bits, from 0d… or a decimal floating literal */
    OPD_VAR,     /* var, plus imm bytes: its address in its space */
    OPD_SREG,    /* sreg: an enum special_reg, from `%tid.x` and the like */
    OPD_LABEL,   /* imm: index of the instruction the label stands before */
    OPD_NAME,    /* name: a function or anything else not bound by the parser */
    OPD_VECTOR,  /* items[0..count) between braces */
    OPD_ADDRESS, /* items[0] is the base (REG, VAR, INT or NAME), imm the byte offset; further items
                    are the VECTOR operands of a tensor address: [map, {c0, c1}, {…}] */
    OPD_PAIR,    /* `d|p`: items[0], items[1] (either may be a SINK) */
    OPD_SINK     /* `_` */
};

struct operand {
    uint8_t kind;
    bool negated;
    uint16_t count;
    uint32_t reg; /* OPD_REG: index into entry.regs; OPD_SREG: enum special_reg, SR_COUNT: one that
                     is not modelled */
    int64_t imm;
    const struct ptx_var *var;
    const char *name;
    const struct operand *items;
};

/* Special registers the parser knows. Unknown %names that are not declared are an error (218). */
#define SPECIAL_REGS(X)                                                                            \
    X(TID_X, "%tid.x") X(TID_Y, "%tid.y") X(TID_Z, "%tid.z")                                       \
    X(NTID_X, "%ntid.x") X(NTID_Y, "%ntid.y") X(NTID_Z, "%ntid.z")                                 \
    X(CTAID_X, "%ctaid.x") X(CTAID_Y, "%ctaid.y") X(CTAID_Z, "%ctaid.z")                           \
    X(NCTAID_X, "%nctaid.x") X(NCTAID_Y, "%nctaid.y") X(NCTAID_Z, "%nctaid.z")                     \
    X(LANEID, "%laneid") X(WARPID, "%warpid") X(NWARPID, "%nwarpid")                               \
    X(SMID, "%smid") X(NSMID, "%nsmid") X(GRIDID, "%gridid")                                       \
    X(LANEMASK_EQ, "%lanemask_eq") X(LANEMASK_LE, "%lanemask_le") X(LANEMASK_LT, "%lanemask_lt")   \
    X(LANEMASK_GE, "%lanemask_ge") X(LANEMASK_GT, "%lanemask_gt")                                  \
    X(IS_EXPLICIT_CLUSTER, "%is_explicit_cluster")                                                 \
    X(CLUSTERID_X, "%clusterid.x") X(CLUSTERID_Y, "%clusterid.y") X(CLUSTERID_Z, "%clusterid.z")   \
    X(NCLUSTERID_X, "%nclusterid.x") X(NCLUSTERID_Y, "%nclusterid.y")                              \
    X(NCLUSTERID_Z, "%nclusterid.z")                                                               \
    X(CLUSTER_CTAID_X, "%cluster_ctaid.x") X(CLUSTER_CTAID_Y, "%cluster_ctaid.y")                  \
    X(CLUSTER_CTAID_Z, "%cluster_ctaid.z")                                                         \
    X(CLUSTER_NCTAID_X, "%cluster_nctaid.x") X(CLUSTER_NCTAID_Y, "%cluster_nctaid.y")              \
    X(CLUSTER_NCTAID_Z, "%cluster_nctaid.z")                                                       \
    X(CLUSTER_CTARANK, "%cluster_ctarank") X(CLUSTER_NCTARANK, "%cluster_nctarank")                \
    X(TOTAL_SMEM_SIZE, "%total_smem_size") X(DYNAMIC_SMEM_SIZE, "%dynamic_smem_size")              \
    X(AGGR_SMEM_SIZE, "%aggr_smem_size")                                                           \
    X(RESERVED_BEGIN, "%reserved_smem_offset_begin") X(RESERVED_END, "%reserved_smem_offset_end")  \
    X(RESERVED_CAP, "%reserved_smem_offset_cap") X(RESERVED_0, "%reserved_smem_offset_0")          \
    X(RESERVED_1, "%reserved_smem_offset_1") X(CURRENT_GRAPH_EXEC, "%current_graph_exec")          \
    X(ENVREG1, "%envreg1") X(ENVREG2, "%envreg2")                                                  \
    X(CLOCK, "%clock") X(CLOCK_HI, "%clock_hi") X(CLOCK64, "%clock64")                             \
    X(GLOBALTIMER, "%globaltimer") X(GLOBALTIMER_LO, "%globaltimer_lo")                            \
    X(GLOBALTIMER_HI, "%globaltimer_hi")

enum special_reg {
#define X(name, text) SR_##name,
    SPECIAL_REGS(X)
#undef X
    SR_COUNT
};

/* The bits of an OPD_INT, OPD_F32 or OPD_F64 as a value of `type`: floating literals convert to f32
 * and f64 (to b32: single precision), integers too; for other types integers stay as they are. */
uint64_t ptx_literal_bits(const struct operand *literal, enum ptx_type type);

#define NO_REG UINT32_MAX

struct ptx_function;

/* What `call` says besides its modifiers; it has no operands. */
struct ptx_call {
    const struct ptx_function *caller; /* NULL: the entry itself */
    const char *callee;                /* a name, or NULL: the function is in a register */
    const struct operand *target;      /* that register */
    const struct operand *rets, *args; /* OPD_VAR (a call_param), OPD_REG, constants, OPD_SINK */
    uint32_t ret_count, arg_count;
};

/* A line of the source that the text was compiled from (`.loc`). */
struct ptx_loc {
    const char *file;
    struct src_pos pos;
    uint32_t line, column;
    const struct ptx_loc *inlined_at; /* the call in whose place the compiler put the code, or NULL */
    const struct ptx_loc *before;     /* the `.loc` before it in the body */
};

struct ptx_insn {
    struct src_pos pos;        /* in the source that the text was compiled from, else as ptx_pos */
    struct src_pos ptx_pos;    /* in the text */
    const struct ptx_loc *loc; /* NULL: the text says nothing */
    const char *text;   /* "mbarrier.init.shared.b64 [full_bar+8], 1" for messages */
    uint32_t guard;     /* register index of @p, or NO_REG */
    bool guard_negated;
    uint16_t mod_count; /* dot-separated parts of the opcode; mods[0] is the mnemonic's first */
    uint16_t operand_count;
    const char *const *mods; /* "mbarrier", "init", "shared", "b64"; "shared::cluster" is one */
    const struct operand *operands;
    const struct ptx_call *call; /* `call` only */
};

/* What functions look like to `mov` and to tables of function pointers: one address each. */
#define FUNCTION_WINDOW 0x00C4000000000000ULL
#define FUNCTION_STEP 16

/* A parameter or return value of a function: a place in its frame, or (var NULL) a register. */
struct ptx_formal {
    const struct ptx_var *var;
    uint32_t reg;
};

/*
 * A function as one entry sees it. Every entry has its own copy of the functions that it can reach:
 * their instructions stand before its own, callees before callers where there is no cycle, so that
 * the lanes with the lowest pc are the ones deepest in calls; their registers are part of the
 * entry's. Local variables and .param variables live in frames of local memory: the register
 * entry.frame_reg holds the offset of the running function's frame, 0 in the entry.
 */
struct ptx_function {
    const char *name;
    uint64_t address; /* FUNCTION_WINDOW + … */
    uint32_t start;   /* index of its first instruction */
    uint32_t first_reg, reg_count;
    uint32_t frame_bytes;
    const struct ptx_formal *rets, *args;
    uint32_t ret_count, arg_count;
};

/* `//@ kind words…` comment lines: names for roles, shared ranges and TMEM columns (names.h). */
struct ptx_note {
    struct src_pos pos;
    const char *text; /* after "//@ " */
};

struct ptx_entry {
    const char *name;
    struct src_pos pos;
    const struct ptx_var *params; /* in order */
    uint32_t param_count, param_bytes;
    const struct ptx_var *const *shared; /* static shared variables this entry can name */
    uint32_t shared_count, shared_bytes; /* static bytes, after alignment */
    uint32_t shared_align;               /* largest alignment of static and extern shared */
    uint32_t local_bytes; /* of a thread: the entry's frame and the stack for its calls */
    uint32_t frame_bytes; /* the entry's own variables and call parameters */
    uint32_t taken_at;    /* where alloca's memory begins, up to local_bytes; 0: it is not used */
    uint32_t start;       /* its first instruction, behind those of its functions */
    uint32_t frame_reg;   /* see struct ptx_function; NO_REG when it has none */
    const struct ptx_function *const *functions;
    uint32_t function_count;
    bool recursive; /* a function may be called while it runs */
    const struct ptx_reg *regs;
    uint32_t reg_count;
    const struct ptx_insn *insns;
    uint32_t insn_count;
    const struct ptx_note *notes; /* module-level notes before it, and those inside its body */
    uint32_t note_count;
    uint32_t reqntid[3], maxntid[3]; /* 0: not given; absent dimensions of a given one are 1 */
    uint32_t minnctapersm, maxnreg;
    uint32_t reqnctapercluster[3];
    uint32_t maxclusterrank;
    const char *unmodelled; /* a directive whose effect is not modelled, or NULL */
    struct src_pos unmodelled_pos;
    bool explicit_cluster;
    bool blocks_are_clusters; /* the launch counts clusters of reqnctapercluster */
};

struct ptx_module {
    struct arena arena;
    uint32_t version; /* 10*major + minor */
    const char *target; /* "sm_90a" */
    const char *const *files;
    uint32_t file_count;
    const struct ptx_var *const *globals; /* .global and .const, offsets assigned per space */
    uint32_t global_count;
    uint64_t global_bytes, const_bytes;
    const struct ptx_entry *entries;
    uint32_t entry_count;
};

/* What went wrong, as a JIT log line reads: "file, line N; error: …". */
struct ptx_diag {
    char text[480];
};

/*
 * Parses `length` bytes of PTX. 0, or -1 with `diag` filled (a syntax or binding error). The caller
 * frees a module it got with ptx_module_free. Target and version are read, not judged.
 */
int ptx_parse(const char *text, size_t length, struct ptx_module **out, struct ptx_diag *diag);
/* The same, `name` for the text in messages and reports; NULL: "ptx input". */
int ptx_parse_file(const char *name, const char *text, size_t length, struct ptx_module **out,
                   struct ptx_diag *diag);
void ptx_module_free(struct ptx_module *module);
const struct ptx_entry *ptx_find_entry(const struct ptx_module *module, const char *name);
const char *ptx_file(const struct ptx_module *module, struct src_pos pos);

#endif
