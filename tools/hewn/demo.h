/* What the two halves of `hewn demo` share. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "cli.h"

struct demo {
    const char *dir; /* where files go */
    const hewn_driver *driver;
    hewn_context *context;
    hewn_device_info device;
};

/* `count` numbers, uniform in [-1, 1), that depend on `seed` alone; NULL: no memory. */
float *demo_random(size_t count, uint64_t seed);
/* Writes `data` (float32) as .npy into the folder. 0, or 1 after cli_fail. */
int demo_save(const struct demo *d, const char *name, int rank, const uint64_t *dim,
              const float *data);

/* Attention over demo_text. The exit status. */
int demo_attention(const struct demo *d);

/* demo_text.c */
extern const char demo_text[];

#endif
