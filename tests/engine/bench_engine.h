/* What the files of bench_engine share. */
#ifndef TESTS_BENCH_ENGINE_H
#define TESTS_BENCH_ENGINE_H

#include "engine/engine.h"

/* Bytes a second that large copies of an H200 reach. */
static const double bandwidth = 4.4e12;

double seconds(void);

/* Tensors whose numbers all lie in one block of random ones. */
struct fake {
    struct checkpoint c;
    struct tensor *tensor;
    size_t count;
    uint16_t *block;
    size_t elements;
};
/* fake_close follows in any case. */
bool fake_open(struct fake *f, const struct config *shape);
void fake_close(struct fake *f);

/* That a step of decode reads. */
double weight_bytes(const struct config *c);
double cache_bytes(const struct config *c, int64_t slots, int64_t keys);

/* Print a line, and give the seconds of a step and of the prompt. 0, or -1 after a message. */
int time_decode(struct model *m, int64_t slots, int64_t keys, int steps, double *out,
                struct problem *p);
int time_prefill(struct model *m, int64_t count, double *out, struct problem *p);

/* Prints the times of a step's kernels alone, behind time_decode of as many slots, which took `whole`. */
int time_decode_parts(struct model *m, int64_t slots, double whole, struct problem *p);
/* Prints the times of a prompt's kernels alone, behind time_prefill of the same prompt, which took `whole`. */
int time_parts(struct model *m, int64_t count, double whole, struct problem *p);

struct bench_ranks {
    struct config config;
    int ranks;
    int64_t slots, keys, prompt, chunk;
    int steps;
    const char *tuning;
};
/* The program's status. */
int bench_ranks(const struct bench_ranks *b);

#endif
