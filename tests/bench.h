/*
 * What the bench program's parts share: bench_gemm.c times a GPU beside cuBLASLt, bench_host.c the host's
 * side of plans and runs, bench_sim.c the simulator beside its peers (one process a sample), bench_work.c
 * is what one such process runs.
 */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include "device.h"
#include "harness.h"

double bench_now(void);
/* Sorts `v`. */
double bench_median(double *v, int n);
void bench_resolve(const hewn_driver *driver, const char *name, void *slot);

enum { MAX_SETS = 64 };

/* One product: row-major A m x k, B n x k, D m x n, all bf16, as several sets of buffers. */
struct problem {
    int64_t m, n, k;
    int sets;
    hewn_deviceptr a[MAX_SETS], b[MAX_SETS], d[MAX_SETS];
    hewn_gemm_plan *plan;
};

/* On a GPU: hewn_gemm beside cuBLASLt. Arguments: --sweep: with every kernel that could be chosen;
 * --launches: time launches instead of graphs; MxNxK[:VARIANT/PARTS]: this product instead. */
void bench_gemm(struct device *dev, int argc, char **argv);

/* Planning and running beside raw launches, host time. */
void bench_host(void);

/* As many sets of random operands as three times the device's L2 holds, two at least. */
bool problem_open(struct device *dev, struct problem *p, struct rng *r);
/* Another plan for it: hewn_gemm_desc's variant and parts. */
bool problem_plan(struct device *dev, struct problem *p, const char *variant, uint32_t parts);
void problem_close(struct device *dev, struct problem *p);
int problem_launch(const struct problem *p, int set);

/* ---- what a process of the simulator's bench runs ---- */

enum { PEER_COUNT = 1 };
#define PEER_GPGPUSIM 0

/* name, device ("" any), lane-instructions a unit of `size` (0: only seconds count), size, size of the
 * comparison with peers (0: none runs it), what it is */
#define BENCH_WORKS(X)                                                                       \
    X(integer, "", 18432, 100000, 500, "integer loop, 8 CTAs of 256, 9 instructions a turn") \
    X(floating, "", 18432, 100000, 500, "float loop, 8 CTAs of 256, 9 instructions a turn")  \
    X(product, "", 0, 512, 128, "f32 product by 16 x 16 shared tiles, size^3")               \
    X(many, "", 0, 10000, 1000, "small CTAs: 128 threads, shared memory, one barrier")       \
    X(accesses, "", 0, 2000, 0,                                                              \
      "loads and stores of shared and global memory, two barriers a turn")                   \
    X(blackwell, "b200", 0, 1024, 0, "bf16 product, tcgen05, size^3")                        \
    X(hopper, "h200", 0, 1024, 0, "bf16 product, wgmma, size^3")

/* Work `accesses`: accesses of all lanes in one turn, and the turns that make 10^9 of them. */
enum { BENCH_CTAS = 16, BENCH_THREADS = 256, BENCH_ACCESSES = BENCH_CTAS * BENCH_THREADS * 4 };
enum { BENCH_BILLION = (1000000000 + BENCH_ACCESSES - 1) / BENCH_ACCESSES };

enum bench_work {
#define X(name, gpu, lanes, size, peer_size, what) WORK_##name,
    BENCH_WORKS(X)
#undef X
        WORK_COUNT
};

/* Runs work `index` of `size` once to warm up and once timed, on the simulator (peer < 0) or a peer.
 * Prints "wall cpu own wrong" to `out`: seconds, of all threads and of the launching one, and the words
 * of the result that are not what a scalar reference gives. Exit status. */
int bench_work(int index, unsigned size, int peer, int out);

/* The simulator's whole table. Exit status. */
int bench_simulator(void);

#endif
