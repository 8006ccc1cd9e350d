/* The library that hewn_gemm is timed beside: cuBLASLt by its public C interface, opened at run time. */
#ifndef TESTS_BENCH_PEER_H
#define TESTS_BENCH_PEER_H

#include "device.h"

/* False where no cuBLASLt is found. */
bool peer_open(struct device *dev);

/* One product D = A * transpose(B), row-major, contiguous, bf16 in and out, sums in fp32. */
struct peer_product;
struct peer_product *peer_product_new(int64_t m, int64_t n, int64_t k);
void peer_product_free(struct peer_product *p);
/* Algorithms that the library's heuristic offers for it, best guess first, 32 at most. */
int peer_algorithms(const struct peer_product *p);
/* 0, or the library's status. */
int peer_launch(const struct peer_product *p, int algorithm, hewn_deviceptr a, hewn_deviceptr b,
                hewn_deviceptr d, void *stream);

#endif
