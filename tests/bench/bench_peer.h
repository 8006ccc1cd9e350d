/* The library that hewn_gemm is timed beside: cuBLASLt by its public C interface, opened at run time. */
#ifndef TESTS_BENCH_PEER_H
#define TESTS_BENCH_PEER_H

#include "lib/device.h"

/* False where no cuBLASLt is found. */
bool peer_open(struct device *dev);
/* As cublasLtGetVersion gives it: 130100 for 13.1.0. */
size_t peer_version(void);

/* One product D = scale_a * scale_b * A * transpose(B), row-major, sums in fp32, D in bf16. lda, ldb, ldd:
 * elements between rows, 0 where rows are contiguous. e4m3: A and B in it, scales one float each in device memory,
 * or, with `vectors`, one for each row of A and of B; else bf16, no scales. s8: A and B in it, sums and D in s32.
 * fast: without the promotion of partial sums that the library calls accuracy. */
struct peer_form {
    int64_t m, n, k;
    bool e4m3, fast, vectors, s8;
    hewn_deviceptr scale_a, scale_b;
    int64_t lda, ldb, ldd;
};
struct peer_product;
/* NULL where the library has no algorithm for it. */
struct peer_product *peer_product_new(const struct peer_form *form);
void peer_product_free(struct peer_product *p);
/* Algorithms that the library's heuristic offers for it, best guess first, 32 at most. */
int peer_algorithms(const struct peer_product *p);
/* How an algorithm cuts the product: cublasLtMatmulTile_t, cublasLtClusterShape_t, parts of K; 0: not told. */
struct peer_config {
    unsigned tile, cluster, splits;
};
struct peer_config peer_config(const struct peer_product *p, int algorithm);
/* 0, or the library's status. */
int peer_launch(const struct peer_product *p, int algorithm, hewn_deviceptr a, hewn_deviceptr b,
                hewn_deviceptr d, void *stream);

#endif
