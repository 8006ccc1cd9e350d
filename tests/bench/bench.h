/*
 * What the bench program's parts share. On a GPU: bench_ceiling.c finds what its tensor cores can do,
 * bench_gemm.c times products beside cuBLASLt, bench_attention.c attention beside cuDNN, bench_host.c the
 * host's side of plans and runs; bench_report.c prints and keeps the rows. On the simulator: bench_sim.c
 * times it beside its peers (one process a sample), bench_work.c is what one such process runs.
 */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include "bench_meter.h"
#include "bench_report.h"
#include "lib/device.h"
#include "lib/harness.h"
#include "lib/plans.h"

#include <string.h>

double bench_now(void);
/* Sorts `v`. */
double bench_median(double *v, int n);
void bench_resolve(const hewn_driver *driver, const char *name, void *slot);

/* What runs under load before anything counts: a device that draws more than its power limit lowers its
 * clock in steps, for the most part of a second. */
#define BENCH_WARM_SECONDS 1.0

/* As bf16_to_double, for outputs of 10^8 values. */
static inline double bench_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

/* A run of the bench on a GPU. */
struct bench {
    struct device dev;
    struct bench_report report;
    struct bench_meter meter;
    double ceiling_16, ceiling_8;  /* FLOP/s on bf16 and on e4m3; NAN: not measured */
    const char *attention_peer;    /* bench_attention.py; NULL: no peer */
    bool sweep, launches, profile; /* bench_gemm's */
};

/* Measures b->ceiling_*. */
void bench_ceiling(struct bench *b);
/* hewn_gemm beside cuBLASLt, bf16 and e4m3, at the shapes of tests/BENCH.md; with `sweep` also every kernel that
 * could be chosen, with `launches` timing launches instead of graphs. With `profile` it times nothing: one
 * launch of each side between cuProfilerStart and cuProfilerStop, for a profiler that counts cycles better
 * than a device at its power limit keeps time:
 *     ncu --profile-from-start off --clock-control none --metrics sm__cycles_elapsed.max \
 *         build/tests/bench --only gemm --profile 8192x8192x8192 */
void bench_gemm(struct bench *b);
/* The same for one product, "MxNxK[:VARIANT/PARTS]", on bf16. */
void bench_gemm_named(struct bench *b, const char *name);
/* hewn_attention beside cuDNN: eighteen rows of equal lengths, and long causal ragged batches. */
void bench_attention(struct bench *b);
/* Planning and running beside raw launches, host time, as notes of the report; the attached device's. */
void bench_host(struct bench_report *report);

enum { MAX_SETS = 64 };

/* One product: row-major A m x k and B n x k of type `in`, D m x n in bf16, as several sets of buffers. */
struct problem {
    int64_t m, n, k;
    int in;    /* HEWN_BF16 or HEWN_E4M3 */
    bool fast; /* e4m3: sums stay in the tensor core, not promoted to fp32 on the way */
    hewn_deviceptr scale_a, scale_b; /* of e4m3, one float each; 0: none */
    int sets;
    hewn_deviceptr a[MAX_SETS], b[MAX_SETS], d[MAX_SETS];
    hewn_gemm_plan *plan;
};

/* As many sets of random operands as three times the device's L2 holds, two at least, and a plan. */
bool problem_open(struct device *dev, struct problem *p, struct rng *r);
/* The operands alone. */
bool problem_buffers(struct device *dev, struct problem *p, struct rng *r);
/* Another plan for it: hewn_gemm_desc's variant and parts. */
bool problem_plan(struct device *dev, struct problem *p, const char *variant, uint32_t parts,
                  hewn_error *err);
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
 * Prints "wall cpu own waited wrong" to `out`: seconds, CPU seconds of all threads and of the launching one,
 * what that one waited for a core, and the words of the result that are not what a scalar reference gives. Exit status. */
int bench_work(int index, unsigned size, int peer, int out);

/* The simulator's whole table. Exit status. */
int bench_simulator(void);

#endif
