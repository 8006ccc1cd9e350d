/* The commands of hewn-engine. */
#ifndef ENGINE_COMMAND_H
#define ENGINE_COMMAND_H

#include "problem.h"

#include <stdbool.h>
#include <stdint.h>

/* X(field, option, meaning) */
#define COMMAND_NUMBERS(X)                                                       \
    X(most, "-n", "N: tokens to draw at most (64)")                              \
    X(top_k, "--top-k", "K: draw from the K most likely tokens (all)")           \
    X(seed, "--seed", "S: of the drawing (0)")                                   \
    X(slots, "--slots", "N: requests that decode together (8)")                  \
    X(chunk, "--chunk", "N: tokens of a prompt that are computed at once (256)") \
    X(context, "--context", "N: positions of a request (the model's)")           \
    X(pages, "--pages", "N: of 64 keys, of the cache (room for all slots)")      \
    X(waiting, "--waiting", "N: requests that may wait (1024)")                  \
    X(ranks, "--ranks", "N: GPUs, a process each, which split the weights (1)")
#define COMMAND_FRACTIONS(X)                                                 \
    X(temperature, "--temp", "T: temperature; 0: the most likely token (0)") \
    X(top_p, "--top-p", "P: draw from the most likely tokens whose shares reach P (1)")
#define COMMAND_SWITCHES(X)                                                          \
    X(invariant, "--invariant", "the bits of a request do not depend on the others") \
    X(fp8, "--fp8", "round what the projections multiply to e4m3, a scale a row")    \
    X(no_graphs, "--no-graphs", "launch kernels one by one")                         \
    X(by_context, "--by-context", "with --ranks: split prompts in place of weights") \
    X(by_nccl, "--by-nccl", "with --ranks: add up by NCCL alone")                    \
    X(check, "--check", "compare the logits with float64 (run alone)")               \
    X(dump, "--dump", "with --check: print tokens, and the logits of each step on both sides")

struct command {
    const char *folder, *prompt;
    const char *ids; /* a prompt of token ids; then no tokenizer is read */
#define COMMAND_OPTION(field, option, text) int64_t field;
    COMMAND_NUMBERS(COMMAND_OPTION)
#undef COMMAND_OPTION
#define COMMAND_OPTION(field, option, text) double field;
    COMMAND_FRACTIONS(COMMAND_OPTION)
#undef COMMAND_OPTION
#define COMMAND_OPTION(field, option, text) bool field;
    COMMAND_SWITCHES(COMMAND_OPTION)
#undef COMMAND_OPTION
};

/* A K beyond int32_t is beyond any vocabulary: all tokens, as 0. */
static inline int32_t command_top_k(int64_t k)
{
    return k < 0 || k > INT32_MAX ? 0 : (int32_t)k;
}

/* Each returns the program's exit status. */
int command_info(const char *folder);
int command_tokens(const char *folder, const char *text);
int command_run(const struct command *c);
int command_serve(const struct command *c);
/* "hewn-engine: .." on stderr. Returns 1. */
int command_fail(const struct problem *p);

#endif
