/* Short forms for plans: a product without anything beside A, B and D; sources of attention in place. */
#ifndef TESTS_PLANS_H
#define TESTS_PLANS_H

#include "hewn.h"

static inline int plain_product(const hewn_gemm_plan *plan, hewn_deviceptr a, hewn_deviceptr b,
                                hewn_deviceptr d, hewn_stream stream, hewn_error *err)
{
    const hewn_gemm_args args = {.struct_size = sizeof args, .a = a, .b = b, .d = d};
    return hewn_gemm_plan_run(plan, &args, stream, err);
}

/* SOURCE(.length = 300, .causal = 1): a pointer to it, good to the end of the block. */
#define SOURCE(...) \
    (&(hewn_attention_source){.struct_size = sizeof(hewn_attention_source), __VA_ARGS__})
#define SOURCE_ARGS(...) \
    (&(hewn_attention_source_args){.struct_size = sizeof(hewn_attention_source_args), __VA_ARGS__})

#endif
