/*
 * cuDNN's attention as a peer: bench_attention.py, a process of its own that PyTorch runs in, driven by
 * lines over a pair of pipes so that both sides take turns on the GPU. Inputs and outputs pass through
 * files in a folder of the peer's.
 */
#ifndef TESTS_BENCH_CUDNN_H
#define TESTS_BENCH_CUDNN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { CUDNN_WAYS = 4, CUDNN_NAME = 24, CUDNN_LINE = 8192 };

struct cudnn {
    FILE *to, *from;
    pid_t process;
    char folder[48], about[200];
    char way[CUDNN_WAYS][CUDNN_NAME]; /* how the peer can compute the shape it was last given */
    int ways;
    char reason[200]; /* why it cannot, where one of the ways is missing; else "" */
};

/* Starts the script and gives it `count` values of Q, K and V each, bf16. False where Python, PyTorch,
 * cuDNN or a GPU is missing, `about` then says what. */
bool cudnn_open(struct cudnn *c, const char *script, const uint16_t *q, const uint16_t *k,
                const uint16_t *v, size_t count);
/* Every sequence `length` long, tensors [batch, heads, length, dim], from the first values of Q, K, V;
 * scores `times` as large as the usual scale gives. */
bool cudnn_fixed(struct cudnn *c, int64_t dim, int64_t heads, bool causal, int64_t length,
                 int64_t batch, int64_t times);
/* Causal sequences of these lengths behind one another, tensors [tokens, heads, dim]. */
bool cudnn_ragged(struct cudnn *c, int64_t dim, int64_t heads, const int64_t *lengths, int count);
/* In rows of `dim` values: the first of Q becomes the root of dim, that of K `rise` for each `keys` keys of
 * the `length` that its head has. */
bool cudnn_rise(struct cudnn *c, int64_t dim, int64_t length, int keys, int rise);
/* The output of a way, in the layout of the inputs. */
bool cudnn_output(struct cudnn *c, int way, uint16_t *o, size_t count);
/* Microseconds of single launches, warmed up. */
bool cudnn_time(struct cudnn *c, int way, double *us, int launches);
void cudnn_close(struct cudnn *c);

#endif
