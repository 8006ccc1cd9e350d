/* Which kernels a model's products have, where hewn_gemm_tune noted them in a file. */
#ifndef ENGINE_TUNING_H
#define ENGINE_TUNING_H

#include "gpu.h"

enum { TUNING_PRODUCTS = 256 };

struct model_options;

struct tuning_room { /* device memory that holds random numbers, or zeros */
    hewn_deviceptr base;
    uint64_t bytes;
};

struct tuning {
    struct gpu *gpu;
    const struct model_options *options;
    hewn_gemm_table *table; /* NULL: the library chooses */
    struct tuning_room a, b, d, zeros, workspace;
    struct tuned_product { /* each is tuned once */
        int64_t m, n, k;
        int in, out;
    } product[TUNING_PRODUCTS];
    int count;
};

/* Reads the options' file; with `tune` it need not exist. 0, or -1 after a message. */
int tuning_open(struct tuning *t, struct gpu *gpu, const struct model_options *options,
                struct problem *p);
/* With `tune`, times the kernels of a product, unless it is one of a batch. */
int tuning_product(struct tuning *t, const hewn_gemm_desc *desc, struct problem *p);
/* With `tune`, writes the file: what it had, and what has been tuned since. */
int tuning_save(const struct tuning *t, struct problem *p);
void tuning_close(struct tuning *t);

#endif
