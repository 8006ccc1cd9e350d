/*
 * The cycle model: when everything that a record holds would have happened on the part.
 *
 * Warps go through their items in order: instructions at the rate of their quarter of the SM, a wait
 * until the phase or the operations it needs are there. Tensor cores, each SM's copy engine, L2 and
 * device memory serve one request after the other. Clusters start in order, each as soon as one of
 * the SMs has room. The figures of a part and where they come from stand in model.c.
 *
 * A warp's functions (ex2, rcp and their kin) go through the unit of its quarter. Its loads and stores go through the SM's one
 * unit, a line of 128 bytes a cycle, and what it stores in global memory through L2.
 *
 * Outside the model: latency of ordinary loads, bank conflicts, mma.sync, clocks that change with power.
 */
#ifndef SIM_TRACE_MODEL_H
#define SIM_TRACE_MODEL_H

#include "trace/record.h"

/* What keeps a tensor core waiting; name, text */
#define GAPS(X)                                             \
    X(LOAD, "copies into shared memory")                    \
    X(WARPS, "other warps (softmax, epilogue, conversion)") \
    X(ISSUE, "its own issuing warp")                        \
    X(FILL, "the start of a CTA and its end")

enum gap {
#define X(name, text) GAP_##name,
    GAPS(X)
#undef X
        GAPS_COUNT
};

/* Shared things that can be busy; name, text */
#define UNITS(X)                       \
    X(TENSOR, "tensor cores")          \
    X(COPY, "copy engines of the SMs") \
    X(L2, "L2")                        \
    X(MEMORY, "device memory")         \
    X(ISSUE, "instruction issue")      \
    X(FMA, "multiply-add pipes")       \
    X(LOGIC, "comparison pipes")       \
    X(FUNCTION, "function units")      \
    X(ACCESS, "loads and stores")

enum unit {
#define X(name, text) UNIT_##name,
    UNITS(X)
#undef X
        UNITS_COUNT
};

struct model_result {
    double cycles;            /* of the launch */
    double busy[UNITS_COUNT]; /* share of it, 0 to 1, mean of the SMs in use */
    double gaps[GAPS_COUNT];  /* share of the time in which a CTA's tensor core had nothing */
    uint32_t sms;
    double clock_mhz; /* what `cycles` are of, under load */
};

const char *gap_text(enum gap gap);
const char *unit_text(enum unit unit);

/* Fills the records' times. False: host memory ran out, or the record does not hold together (a
 * launch that failed). */
bool model_run(const struct launch *l, struct record *const *records, uint32_t count,
               struct model_result *out);

#endif
