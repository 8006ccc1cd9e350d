/* The commands of hewn-engine. */
#ifndef ENGINE_COMMAND_H
#define ENGINE_COMMAND_H

#include "problem.h"

#include <stdbool.h>
#include <stdint.h>

/* X(field, option, meaning) */
#define COMMAND_NUMBERS(X)                                                                 \
    X(most, "-n", "N: largest number of tokens to draw (64)")                              \
    X(top_k, "--top-k", "K: draw from the K most likely tokens (all)")                     \
    X(seed, "--seed", "S: seed of the drawing (0)")                                        \
    X(slots, "--slots", "N: requests that decode at the same time (8)")                    \
    X(chunk, "--chunk", "N: tokens of a prompt that are computed at once (256)")           \
    X(context, "--context", "N: tokens of a request, prompt included (the model's limit)") \
    X(pages, "--pages", "N: pages of the cache, 64 keys each (enough for all slots)")      \
    X(waiting, "--waiting", "N: requests that may wait in the queue (1024)")               \
    X(ranks, "--ranks", "N: GPUs that split the weights, one process each (1)")
#define COMMAND_FRACTIONS(X)                                                 \
    X(temperature, "--temp", "T: temperature; 0: the most likely token (0)") \
    X(top_p, "--top-p", "P: draw from the most likely tokens whose shares reach P (1)")
#define COMMAND_SWITCHES(X)                                                                 \
    X(invariant, "--invariant", "make the bits of a request independent of other requests") \
    X(fp8, "--fp8", "compute the projections in e4m3, with a scale for each row")           \
    X(tune, "--tune", "time kernels for the products, write the fastest to --tuning FILE")  \
    X(no_graphs, "--no-graphs", "launch kernels one by one")                                \
    X(by_context, "--by-context", "with --ranks: split the prompts instead of the weights") \
    X(by_nccl, "--by-nccl", "with --ranks: use NCCL for all sums")                          \
    X(check, "--check", "compare the logits with float64 (only run)")                       \
    X(dump, "--dump", "with --check: print tokens, and the logits of each step on both sides")

struct command {
    const char *folder, *prompt;
    const char *tuning; /* a file, which --tune writes */
    const char *ids;    /* a prompt of token ids; then no tokenizer is read */
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
