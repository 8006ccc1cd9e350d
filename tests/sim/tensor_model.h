/*
 * What the tests of the tensor cores share: running a PTX text on the simulator, scalar models of number
 * formats and canonical layouts written from the PTX ISA's formulas, and pieces of kernels.
 */
#ifndef TESTS_TENSOR_MODEL_H
#define TESTS_TENSOR_MODEL_H

#include "lib/harness.h"
#include "ops/tensor.h"

#include <stdio.h>

extern struct rng rng;

/* Seeds rng and sends reports to a file. After test_begin. */
void model_begin(void);

/* ---- running a kernel ---- */

struct run {
    const char *gpu;
    uint32_t cluster, threads, shared;
    uint64_t param[8];
    uint32_t clusters; /* in the grid; 0 for one */
};

/* The CUresult of the launch; -1 when the text does not become a kernel. `findings` (may be NULL)
 * receives the report's JSON. */
int run_ptx(const char *text, const struct run *r, char *findings, size_t size);

/* PTX text under construction: write to the file, close it, use `at`, free it. */
struct text {
    char *at;
    size_t size;
    FILE *file;
};
FILE *text_open(struct text *t);

uint64_t device_buffer(size_t bytes);
void *host(uint64_t address);

/* ---- number formats ---- */

/* From E2M3 to E2M1 the value of a byte container of tensor memory; E2M1X2 is the value of the low half
 * of a byte. */
enum format { F16, BF16, TF32, E4M3, E5M2, E2M3, E3M2, E2M1, U8, S8, E2M1X2 };

struct format_row {
    const char *name;
    uint32_t bytes, code; /* code: in an instruction descriptor */
    enum tensor_format tensor;
};
extern const struct format_row formats[];

double element_value(enum format format, const uint8_t *p);
/* A random finite element of modest size. */
void random_element(enum format format, uint8_t *p);

/* ---- shared memory ---- */

/* Images of two CTAs' windows; operand A lies from A_START on, B from B_START. */
enum { IMAGE = 160 * 1024, A_START = 2048, B_START = 68 * 1024 };
extern uint8_t image[2][IMAGE];

void fill_image(enum format a, enum format b);
struct smem_operand random_operand(uint32_t swizzle, bool mn_major, enum format format,
                                   uint32_t start);
/* Element (mn, k) of an operand in `window`; 6- and 4-bit formats lie packed. */
double model_element(const struct smem_operand *o, enum format format, const uint8_t *window,
                     uint32_t mn, uint32_t k);
uint32_t model_address(const struct smem_operand *o, uint32_t mn, uint32_t k);
uint64_t descriptor(const struct smem_operand *o, bool tcgen05);

/* ---- pieces of kernels ---- */

/* Words of one CTA's tensor memory, in memory by column, then lane. */
enum { CELLS = 512 * 128 };

/* Entry `k` with parameters p0 to p7, registers %r %d %p %h %v, shared `bar`, `slot`, dynamic `smem`. */
void emit_header(FILE *f, const char *target, const char *declarations);
void emit_list(FILE *f, const char *name, uint32_t first, uint32_t count);
void emit_tmem_open(FILE *f, uint32_t group);
void emit_tmem_close(FILE *f, uint32_t group);
void emit_columns(FILE *f, bool to_tmem, uint32_t count, const char *label);
void emit_fill(FILE *f, uint32_t threads);
/* What surrounds one tcgen05.mma, 128 threads a CTA. Tensor memory comes from p0, shared memory from p2;
 * the issuing thread of rank 0 goes on, %d8, %d9, %d10 = p3, p4, p7, %r22 = p5, %p4 = p6 is not zero, %r4
 * tensor memory, %r24 its column `a_column`, %v0 to %v7 = 0x11 << i. */
void emit_mma_begin(FILE *f, uint32_t group, uint32_t a_column);
/* Label L2: all wait for `bar`, tensor memory goes to p1. */
void emit_mma_end(FILE *f, uint32_t group);

/* ---- results ---- */

bool close_enough(double got, double want, double magnitude, uint32_t k, int bits, bool half_d);
double cell_value(uint32_t cell, bool half);

/* ---- coverage.c: nothing happens unless it has begun ---- */

void coverage_begin(void);
void coverage_note(const char *text); /* a kernel is about to run */
/* The tcgen05.mma in `text` is about to run with this instruction descriptor. */
void coverage_mma(const char *text, uint32_t idesc, bool a_in_tmem);
/* Fails for each legal form without a case, and for each case of no legal form; skips in a run of
 * single cases. */
void coverage_check(void);
void coverage_print(void);

/* ---- sim_tensor_mma.c ---- */

void mma_cases(void);
void wgmma_cases(void);
/* sim_tensor_warp.c */
void warp_cases(void);

/* ---- sim_tensor_blackwell.c ---- */

void blackwell_cases(void);
/* sim_tensor_copy.c */
void copy_cases(void);

#endif
