/* What the parts of the float64 reference share: one run of it, and its products. */
#ifndef ENGINE_REFERENCE_PARTS_H
#define ENGINE_REFERENCE_PARTS_H

#include "reference.h"

struct run {
    const struct checkpoint *model;
    const struct config *c;
    size_t count; /* rows */
    bool rounded;
    size_t whole;  /* rows from here on round their weights below a power of two */
    float *weight; /* of the tensor in use */
    double *stream, *normed, *qkv, *mixed, *inner, *inner_up, *angle, *scores;
    double *quantised, *scales;    /* of e4m3: a row that is multiplied, scales of a matrix */
    double *added, *made, *router; /* of experts: their sum, one row of one, scores */
    double margin; /* the least by which a chosen expert's score is above the next */
};

/* A result that the device keeps in bf16. */
static inline double keep(const struct run *r, double x)
{
    return r->rounded ? (double)bf16_value(bf16_of((float)x)) : x;
}
void reference_keep(const struct run *r, double *x, size_t n);

/* The tensor's bf16 numbers into `weight`. */
void reference_load(struct run *r, const struct tensor *t);
/* out[i][j] = sum over x[i] and row j of the tensor; out has out_row elements a row. */
void reference_product(struct run *r, const double *x, const struct tensor *t, double *out,
                       size_t out_row);
/* stream += x times the tensor, + bias, rounded once; normed is overwritten. */
void reference_add(struct run *r, const double *x, const struct tensor *t,
                   const struct tensor *bias);
/* RMSNorm of rows that are x_row apart; those of out are contiguous. */
void reference_norm(struct run *r, const struct tensor *t, const double *x, size_t x_row,
                    double eps, double *out);
/* Rotates the pair x[0], x[step] by its angle at the position. */
void reference_rotate(const struct run *r, double *x, size_t pair, size_t step, size_t position);
/* inner = silu(x times gate) * (x times up), of `rows` rows of x. */
void reference_dense(struct run *r, const double *x, const struct tensor *gate,
                     const struct tensor *up, size_t rows);

/* From normed to mixed: latent attention, with the products of kv_b absorbed as on the device. */
void reference_latent(struct run *r, const struct layer_tensors *t);
/* From normed to the stream: what all tokens pass, and the chosen experts. */
void reference_experts(struct run *r, const struct layer_tensors *t);

#endif
