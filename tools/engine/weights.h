/*
 * The tensors of a folder of .safetensors files: model.safetensors, or those that
 * model.safetensors.index.json names. The files stay mapped; what a header says is checked before
 * it is used.
 */
#ifndef ENGINE_WEIGHTS_H
#define ENGINE_WEIGHTS_H

#include "problem.h"

#include <stddef.h>
#include <stdint.h>

enum { TENSOR_RANK = 4 };

struct tensor {
    const char *name, *file; /* of the struct weights */
    int dtype; /* hewn_dtype: HEWN_BF16, HEWN_F16, HEWN_F32 or HEWN_E4M3; -1: another */
    const char *dtype_name;
    int rank;
    int64_t dim[TENSOR_RANK];
    /* Of a part of another tensor, whose data and scales it has: that one's columns, and where the part
     * begins among its elements. */
    int64_t pitch, first;
    const unsigned char *data;
    size_t bytes;
    /* Of e4m3: element [r][c] of the matrix is its number times
     * scale[r / scale_rows][c / scale_columns]. */
    const struct tensor *scale;
    int64_t scale_rows, scale_columns;
};

struct weights;

/* NULL after a message. */
struct weights *weights_open(const char *folder, struct problem *p);
void weights_close(struct weights *w);
size_t weights_count(const struct weights *w);
/* NULL where there is none. */
const struct tensor *weights_find(const struct weights *w, const char *name);
/* The tensor with these dimensions (0 ends them), of a dtype that can become bf16. NULL after a
 * message. */
const struct tensor *weights_want(const struct weights *w, const char *name,
                                  const int64_t dim[TENSOR_RANK], struct problem *p);
/* Rows and columns of a matrix, or elements of a vector (columns 0), as a tensor that reads them where
 * they are. */
struct tensor weights_part(const struct tensor *t, int64_t row, int64_t rows, int64_t column,
                           int64_t columns);
/* Elements `from`.. of a tensor of one of the four dtypes, with its scales, rounded to bf16 (nearest
 * even). */
void weights_bf16(const struct tensor *t, size_t from, size_t count, uint16_t *out);
/* One element; exact, or of e4m3 its product with the scale. */
double weights_value(const struct tensor *t, size_t index);

/* Nearest even; what is beyond 448 becomes 448, a NaN stays one. */
uint8_t e4m3_of(float value);
float e4m3_value(uint8_t bits);
/* Nearest even; a NaN stays one. */
uint16_t bf16_of(float value);
float bf16_value(uint16_t bits);

#endif
