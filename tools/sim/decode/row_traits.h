/*
 * The traits column of the instruction table: one macro a class, with the traits that the class has to state
 * as arguments, each with its name: COPY(engine(BULK), shape(BOX), moves(IN), signals(BYTES)). One left out, out
 * of order or unknown does not compile. Traits that a class does not state are 0 (traits.h).
 */
#ifndef SIM_ROW_TRAITS_H
#define SIM_ROW_TRAITS_H

#include "decode/traits.h"

/* Of the list in parentheses that the macros below make, which keeps its commas from macros around it. */
#define TRAITS(...) \
    {               \
        __VA_ARGS__ \
    }

/* The prefix pasted to an argument makes ORDER_order(STRONG) of order(STRONG), and of no other trait. */
#define ORDER_order(x)     .order = ORDER_##x
#define ENGINE_engine(x)   .engine = ENGINE_##x
#define SHAPE_shape(x)     .shape = SHAPE_##x
#define MOVES_moves(x)     .moves = MOVES_##x
#define SIGNALS_signals(x) .signals = SIGNALS_##x
#define WAITS_waits(x)     .waits = WAITS_##x
#define CONTROL_control(x) .control = CONTROL_##x
#define SHOWN_shown(x)     .shown = SHOWN_##x

#define ALU                      (.class = INSN_ALU)
#define SAMPLE                   (.class = INSN_ALU, .chance = true)
#define FMA                      (.class = INSN_ALU, .pipe = PIPE_FMA)
#define LOGIC                    (.class = INSN_ALU, .pipe = PIPE_LOGIC)
#define FUNCTION                 (.class = INSN_ALU, .pipe = PIPE_FUNCTION)
#define MOVE                     (.class = INSN_MOVE)
#define MATRIX                   (.class = INSN_MATRIX)
#define LANES                    (.class = INSN_LANES)
#define EXCHANGE                 (.class = INSN_LANES, .exchanges = true)
#define CONTROL(control)         (.class = INSN_CONTROL, CONTROL_##control)
#define RESOURCE(engine)         (.class = INSN_RESOURCE, ENGINE_##engine)
#define GRID(waits)              (.class = INSN_GRID, WAITS_##waits)
#define LOAD(order, shown)       (.class = INSN_LOAD, ORDER_##order, SHOWN_##shown)
#define FETCH                    (.class = INSN_LOAD, .texture = true)
#define LOAD_SURFACE             (.class = INSN_LOAD, ORDER_order(WEAK), SHOWN_shown(NAME), .surface = true)
#define STORE(order, shown)      (.class = INSN_STORE, ORDER_##order, SHOWN_##shown)
#define ATOMIC(order, shown)     (.class = INSN_ATOMIC, ORDER_##order, SHOWN_##shown)
#define RED(order, shown)        (.class = INSN_RED, ORDER_##order, SHOWN_##shown)
#define FENCE(engine, shown)     (.class = INSN_FENCE, ENGINE_##engine, SHOWN_##shown)
#define BARRIER(waits, shown)    (.class = INSN_BARRIER, WAITS_##waits, SHOWN_##shown)
#define MBARRIER(signals, waits) (.class = INSN_MBARRIER, SIGNALS_##signals, WAITS_##waits)
#define REMOTE_STORE(order)      (.class = INSN_REMOTE_STORE, ORDER_##order, .signals = SIGNALS_BYTES)
#define COPY(engine, shape, moves, signals) \
    (.class = INSN_COPY, ENGINE_##engine, SHAPE_##shape, MOVES_##moves, SIGNALS_##signals)
#define COPY_RED(engine, shape, moves, signals)                                                    \
    (.class = INSN_COPY_RED, .order = ORDER_STRONG, ENGINE_##engine, SHAPE_##shape, MOVES_##moves, \
     SIGNALS_##signals)
#define CANCEL              (.class = INSN_CANCEL, .signals = SIGNALS_BYTES, .chance = true)
#define GROUP(engine)       (.class = INSN_GROUP, ENGINE_##engine)
#define COMMIT(engine)      (.class = INSN_COMMIT, .signals = SIGNALS_ARRIVAL, ENGINE_##engine)
#define WAIT(engine, waits) (.class = INSN_WAIT, ENGINE_##engine, WAITS_##waits)
#define MMA(engine)         (.class = INSN_MMA, ENGINE_##engine)
#define TENSOR_COPY         (.class = INSN_TENSOR_COPY, .engine = ENGINE_TENSOR)
#define TMEM_LOAD           (.class = INSN_TMEM_LOAD, .engine = ENGINE_TMEM)
#define TMEM_STORE          (.class = INSN_TMEM_STORE, .engine = ENGINE_TMEM)
#define TMEM_ALLOC          (.class = INSN_TMEM_ALLOC, .engine = ENGINE_TMEM)
#define TMEM_FREE           (.class = INSN_TMEM_FREE, .engine = ENGINE_TMEM)
#define TENSORMAP           (.class = INSN_TENSORMAP)

#endif
