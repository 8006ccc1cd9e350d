/*
 * Libraries that other projects' sources became (guests.sh), driven from C: each by its own host function,
 * with inputs from a seed, and judged by float64. Memory is the CUDA runtime's, the library's own.
 */
#ifndef TESTS_GUESTS_H
#define TESTS_GUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens FOLDER/lib<name>.so of HEWN_GUESTS in the current case. False where it is missing or the device's
 * compute capability is not `major`: the case is skipped. */
bool guest_open(const char *name, int major);
/* A function of the library; NULL, and a failed check, where it has none. */
void *guest_function(const char *symbol);
/* Every buffer of the case back to the runtime. */
void guest_close(void);
/* Waits; a failed check where a launch or the wait failed. */
bool guest_finish(void);

/* Device memory of `bytes`, a copy of `from` or poison where that is NULL, between guard bytes. */
void *guest_buffer(const void *from, size_t bytes);
/* The bytes at `from`. */
void guest_read(void *to, const void *from, size_t bytes);

/* `count` values of a hewn_dtype in [-scale, scale), on the host: as doubles and as they are stored. */
struct guest_values {
    double *value;
    void *stored;
    size_t count;
};
struct guest_values guest_draw(int dtype, size_t count, uint64_t seed, double scale);
void guest_values_free(struct guest_values *v);

/* One row of attention in float64: weights over the keys that `keys` lists (NULL: the first `count`). */
struct guest_row {
    const double *q, *k, *v; /* q: a row; k, v: their first row */
    size_t k_pitch, v_pitch; /* elements */
    int width, v_width;
    const int *keys;
    int count;
    double scale;
};
/* o[v_width]; absolute[v_width] = sum of p |v|; the natural log of the sum of exp(score), -inf for no keys. */
double guest_attend(const struct guest_row *r, double *o, double *absolute);

void guests_flashmla(void);
void guests_flashinfer(void);

#endif
