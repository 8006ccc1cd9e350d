/*
 * The plans that the test serving runs: one of each kind of kernel that reads lengths, tables or lists on the
 * device. What a plan computes is compared elsewhere with float64; here results are compared with each other.
 */
#ifndef TESTS_SERVING_CASE_H
#define TESTS_SERVING_CASE_H

#include "bench/gpu.h"

enum { BATCH = 6, ARRAYS = 3, POISON = 0xA5 };

/* What a wrong value in an array means. */
enum rule {
    NO_ARRAY,
    CLAMPED, /* a length outside 0..most: the nearest of these */
    PAGES,   /* outside 0..most: a page of zeros, for this sequence alone */
    HOLES    /* outside 0..most: no key */
};

struct array {
    const char *name;
    enum rule rule;
    int32_t most;
    uint32_t each; /* entries of a sequence */
    int32_t *right;
    struct guarded on_device;
};

/* Where a run writes. */
struct place {
    hewn_deviceptr q;
    struct guarded out, lse, workspace;
};

struct subject {
    const char *name;
    const struct kind *kind;
    void *plan;
    hewn_deviceptr q[2], keys, values, weights;
    struct array array[ARRAYS];
    size_t out_bytes, lse_bytes, workspace; /* lse_bytes 0: there is none */
    int floats;                             /* out is f32; all keys gone: it is 0 */
    int fills;                              /* every element of out is written */
};

struct kind {
    const char *name;
    /* Allocates inputs and makes the plan: a hewn_status. */
    int (*open)(struct gpu *g, const struct kind *k, struct subject *s, hewn_error *err);
    int (*run)(const struct subject *s, const struct place *p, hewn_stream stream, hewn_error *err);
    void (*destroy)(struct subject *s);
    int queries, variant;
};

extern const struct kind serving_kinds[];
extern const int serving_kind_count;

/* Frees what open allocated, and what it had before it failed. */
void serving_close(struct gpu *g, struct subject *s);

#endif
