/*
 * What an instruction is to those who watch it: the checker, deadlock reports, the cycle model, the
 * timeline and the worksheet. A row of the table says it (row_traits.h); the decoder adds what modifiers and
 * operands say (struct traits). Nobody else looks at an opcode's name or at its modifiers.
 */
#ifndef SIM_TRAITS_H
#define SIM_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

/* X(name, meaning) */
#define INSN_CLASSES(X)                                                                         \
    X(ALU, "computes in registers")                                                             \
    X(MOVE, "copies a register; the copy stands for the original")                              \
    X(MATRIX, "multiplies fragments that a warp holds in registers")                            \
    X(LANES, "exchanges values between the lanes of a warp, or makes them meet")                \
    X(CONTROL, "says what the thread executes next")                                            \
    X(RESOURCE, "moves registers, cache lines or policies; no effect on data")                  \
    X(GRID, "orders this grid with others")                                                     \
    X(LOAD, "reads memory into registers")                                                      \
    X(STORE, "writes registers to memory")                                                      \
    X(ATOMIC, "changes memory and brings the old value")                                        \
    X(RED, "changes memory and brings nothing")                                                 \
    X(FENCE, "orders what its thread does before with what it does after")                      \
    X(BARRIER, "a barrier of the CTA or of the cluster")                                        \
    X(MBARRIER, "a thread's own operation on an mbarrier")                                      \
    X(REMOTE_STORE, "stores to a CTA of the cluster; bytes complete on its mbarrier")           \
    X(COPY, "copies asynchronously, between global and shared memory or within a cluster")      \
    X(COPY_RED, "as COPY, through a reduction")                                                 \
    X(CANCEL, "asks asynchronously for a cluster that has not started")                         \
    X(GROUP, "closes a group of its thread's asynchronous operations")                          \
    X(COMMIT, "arrives at an mbarrier once its thread's operations on the engine are complete") \
    X(WAIT, "waits for its thread's asynchronous operations")                                   \
    X(MMA, "multiplies asynchronously")                                                         \
    X(TENSOR_COPY, "copies or shifts in tensor memory, in order with MMA")                      \
    X(TMEM_LOAD, "reads tensor memory into registers, which hold the values after a WAIT")      \
    X(TMEM_STORE, "writes registers to tensor memory, complete after a WAIT")                   \
    X(TMEM_ALLOC, "takes columns of tensor memory")                                             \
    X(TMEM_FREE, "gives columns, or the right to take some, back")                              \
    X(TENSORMAP, "changes a tensor map")

enum insn_class {
    INSN_NONE, /* no row has it */
#define X(name, meaning) INSN_##name,
    INSN_CLASSES(X)
#undef X
};

/* Memory order of its accesses (PTX ISA "Operation types", "Strong and weak operations"). */
enum insn_order {
    ORDER_WEAK,
    ORDER_WRITTEN, /* strong if a modifier makes it so */
    ORDER_STRONG
};

/* Whom a strong access or a fence is for (PTX ISA "Scope"); each includes those before it. */
enum insn_scope { SCOPE_NONE, SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS };

/* The part of the SM whose operations it starts, groups, fences or waits for, and which they cost. */
enum insn_engine {
    ENGINE_THREAD,   /* its own lanes: costs an issue slot */
    ENGINE_CP_ASYNC, /* copies of a few bytes a lane */
    ENGINE_BULK,     /* bulk and tensor copies */
    ENGINE_WGMMA, /* the tensor core of a warp's quarter, operands in registers and shared memory */
    ENGINE_TENSOR, /* the tensor core of the SM, operands in shared and tensor memory */
    ENGINE_TMEM    /* between registers and tensor memory */
};

/* What a copy addresses. */
enum insn_shape { SHAPE_RANGE, SHAPE_BOX /* of a tensor, by its map */ };

/* Where a copy goes. */
enum insn_moves {
    MOVES_NOTHING,
    MOVES_IN,    /* global to shared memory */
    MOVES_OUT,   /* shared to global memory */
    MOVES_ACROSS /* shared memory to that of a CTA of the cluster */
};

/* What it brings to an mbarrier, at once or when it completes. */
enum insn_signals {
    SIGNALS_NOTHING,
    SIGNALS_EXPECT, /* raises the bytes that a phase waits for */
    SIGNALS_ARRIVAL,
    SIGNALS_EXPECT_ARRIVAL, /* both, as one operation */
    SIGNALS_BYTES
};

/* What the thread waits for. */
enum insn_waits {
    WAITS_NOTHING,
    WAITS_BARRIER, /* the other participants */
    WAITS_PHASE,   /* a phase of an mbarrier; may answer False and be tried again */
    WAITS_GROUPS,  /* its groups on the engine, but for the newest ones */
    WAITS_ISSUED,  /* all that it has issued to the engine, grouped or not */
    WAITS_GRID     /* the grids before */
};

/* Where the thread goes on. */
enum insn_control {
    CONTROL_NEXT,
    CONTROL_BRANCH, /* insn.target */
    CONTROL_TABLE,  /* one of insn.list's offsets */
    CONTROL_CALL,   /* the callee, then the next instruction */
    CONTROL_RETURN,
    CONTROL_EXIT,
    CONTROL_TRAP /* nowhere, nor does any other thread of the launch */
};

/* The pipe of an SM's quarter that computes it, for the cycle model (struct pipe_work). */
enum insn_pipe {
    PIPE_ISSUE, /* it takes an issue slot; whatever executes it is not short */
    PIPE_FMA,
    PIPE_LOGIC, /* comparisons, shifts, bits, conversions */
    PIPE_FUNCTION,
    PIPES
};

/* What the worksheet adds to its name. */
enum insn_shown {
    SHOWN_NAME,
    SHOWN_PART, /* the modifier that follows */
    SHOWN_SPACE /* the memory that it names */
};

struct traits {
    uint8_t class;   /* enum insn_class */
    uint8_t order;   /* enum insn_order */
    uint8_t engine;  /* enum insn_engine */
    uint8_t shape;   /* enum insn_shape */
    uint8_t moves;   /* enum insn_moves */
    uint8_t signals; /* enum insn_signals */
    uint8_t waits;   /* enum insn_waits */
    uint8_t control; /* enum insn_control */
    uint8_t shown;   /* enum insn_shown */
    uint8_t pipe;    /* enum insn_pipe */
    bool chance;     /* its result is the schedule's, whatever the program synchronises; also of a
                        clock or %smid among the operands */
    bool texture; /* LOAD: through a texture, whose cache does not follow writes of the launch */
    bool
        surface; /* LOAD: from a surface, which does not promise to follow writes of the launch either */
    bool exchanges; /* brings each lane the value that another one holds */

    /* Filled by the decoder, false in rows. */
    bool strong;      /* by order and modifiers */
    bool by_volatile; /* by .volatile: CUDA C++ has no such order */
    bool constant;    /* LOAD: .nc, .const or texture, of memory that the launch does not change */
    uint8_t scope;    /* of what is strong, and of fences: enum insn_scope */
    bool changes;     /* ATOMIC, RED: what it leaves depends on what was there (not exch) */
    bool swaps;       /* ATOMIC: cas or exch, by which locks are taken */
    bool acquire, release, relaxed; /* .acq_rel is both of the first */
    bool
        mixes; /* of several at one place the order shows in what they leave (rounding, wrapping) */
    bool sources; /* WAIT: until the sources are read, .read */
    bool pair;    /* done by both CTAs of a pair, .cta_group::2 */
    bool cells;   /* MMA: an element of an operand fills a cell of tensor memory, as a sum does */
    uint8_t adds; /* MMA: the argument that says whether D is added to */
    uint8_t part;    /* SHOWN_PART: which of the opcode's parts as written */
};

#endif
