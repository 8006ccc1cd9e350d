/*
 * What the files of bench_products share: one product, where its operands lie in the pools, and its sides,
 * which are the candidates of the library and the algorithms of its peer.
 */
#ifndef TESTS_BENCH_PRODUCTS_H
#define TESTS_BENCH_PRODUCTS_H

#include "bench/bench_peer.h"
#include "bench/gpu.h"
#include "lib/harness.h"

#include <stdio.h>

enum { PRODUCT_SETS = 64, PRODUCT_SAMPLES = 48, PRODUCT_SIDES = 1024 };

/* Random operands: copies of one block whose bytes the host knows. */
struct pools {
    unsigned char *block;
    uint64_t block_bytes;
    hewn_deviceptr in, out, scales; /* scales: two numbers, SCALE_APART bytes apart */
    hewn_deviceptr work;            /* of slices of K */
    uint64_t in_bytes, out_bytes, work_bytes;
};

struct product {
    int index;       /* in the draw */
    int64_t m, n, k; /* row-major A m x k, B n x k, D m x n in bf16 */
    int64_t lda, ldb, ldd;
    int grain; /* n and k were drawn as multiples of it; 0: named */
    int in;    /* HEWN_BF16 or HEWN_E4M3 */
    bool fast; /* e4m3: sums are not promoted */
    int sets;
    uint64_t a_bytes, b_bytes, d_bytes; /* from one set to the next */
};

/* One way to compute a product. */
struct side {
    const struct product *product;
    const struct pools *pools;
    const struct peer_product *peer; /* NULL: ours */
    int algorithm;                   /* the peer's */
    hewn_gemm_plan *plan;            /* ours */
    bool slices;                     /* it needs the workspace */
    char name[32];  /* "pair/1", "split/2*4" with slices, or the algorithm's number */
    int count;      /* launches timed together, */
    void *exec;     /* as a graph */
    double seconds; /* a launch; infinite: failed or wrong */
    double error;   /* worst sample, in units of the tolerance */
};

/* Samples of D in float64. */
struct sample {
    int64_t row, column;
    double want, limit;
};

/* ---- bench_products_time.c ---- */

/* Enqueues one launch on the buffers of a set. 0, or a status. */
int side_launch(const struct side *s, int set, hewn_stream stream);
/* A graph of so many launches that they take about `seconds`; false where capture or launch fails. */
bool side_open(const struct gpu *g, struct side *s, double seconds);
void side_close(const struct gpu *g, struct side *s);
/* Seconds a launch of the opened graph. */
double side_time(const struct gpu *g, const struct side *s);
/* Times every side for about `seconds`, a few times, and orders them, the fastest first; of many, those that
 * are far slower than another not more than once. */
void sides_rank(const struct gpu *g, struct side *sides, int count, double seconds, int repeats);

/* ---- bench_products_check.c ---- */

/* `count` elements of the product of the first set, the corners among them. */
void product_samples(const struct product *p, const struct pools *pools, struct rng *r,
                     struct sample *samples, int count);
/* Poisons D, launches once, compares the samples; the worst one in units of its tolerance. */
double side_error(struct gpu *g, const struct side *s, const struct sample *samples, int count);
/* Launches both and compares bands of rows of D, the whole of a small one: the largest difference relative to
 * the largest element. Infinite where one fails, has NaN, or ours writes between the rows. */
double sides_differ(struct gpu *g, const struct side *ours, const struct side *theirs);

#endif
