/*
 * What the drivers of this folder share: a program of ours in C for each kernel that another project wrote,
 * given as PTX. Every function here ends the program with a message on stderr when the driver refuses.
 */
#ifndef TESTS_OTHERS_H
#define TESTS_OTHERS_H

#include "driver_abi.h"
#include "hewn.h"

#include <stddef.h>
#include <stdint.h>

/* One row of the table in others.c. `variant` is for the driver alone. */
struct problem {
    const char *name;
    void (*run)(const struct problem *p);
    int variant;
};

void run_fastcu(const struct problem *p);
void run_kittens_level(const struct problem *p);
void run_kittens_product(const struct problem *p);
void run_kittens_attention(const struct problem *p);
void run_kittens_b200(const struct problem *p);
void run_deepgemm_bf16(const struct problem *p);
void run_deepgemm_fp8(const struct problem *p);
void run_flash3(const struct problem *p);
void run_learn(const struct problem *p);

void fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the program unless `rc` is 0. */
void must(int rc, const char *what);

/* Opens the driver and its first device; modules come from `folder`. */
void device_begin(const char *folder);
/* Waits for every launch, so that a failed one ends the program. */
void device_finish(void);

/* The entry of FOLDER/FILE.ptx whose name contains `part`; exactly one must. */
hewn_cu_function entry_of(const char *file, const char *part);

/* Buffers are numbered in the order of their allocation (others_record.h). */
hewn_cu_deviceptr device_buffer(size_t bytes);
hewn_cu_deviceptr zeroed_buffer(size_t bytes);
hewn_cu_deviceptr copied_buffer(const void *from, size_t bytes);
/* Uniform in [-scale, scale) with 24 random bits, rounded to `dtype` (hewn_dtype). */
hewn_cu_deviceptr random_buffer(int dtype, size_t count, uint64_t seed, double scale);

struct tensor {
    int dtype; /* hewn_tensormap_dtype */
    unsigned rank;
    uint64_t dims[5], strides[4]; /* elements; bytes, from the second dimension on */
    uint32_t box[5];
    int swizzle, l2; /* hewn_tensormap_swizzle, hewn_tensormap_l2 */
};
void tensor_map(hewn_cu_tensor_map *map, hewn_cu_deviceptr at, const struct tensor *t);

/* A matrix of `rows` x `cols` elements, row-major, that is copied in panels as wide as the swizzle
 * (128 bytes for none): dimensions are the column in a panel, the row, the panel. A box has `box_rows` rows
 * of `box_cols` columns. */
struct tensor paneled(int dtype, uint64_t rows, uint64_t cols, uint32_t box_rows, uint32_t box_cols,
                      int swizzle);

struct launch {
    hewn_cu_function function;
    unsigned grid[3], block[2]; /* 0 counts as 1 */
    unsigned shared;            /* dynamic, bytes */
    unsigned cluster;           /* CTAs, where the kernel does not fix it itself; 0: none */
};
/* Launches, and records what it wrote. `params` is as in cuLaunchKernel. */
void launch(const struct launch *l, void **params);

#endif
