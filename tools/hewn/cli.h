/* What the commands of the `hewn` program share. */
#ifndef CLI_H
#define CLI_H

#include "hewn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The commands (usage.def). Each returns the program's exit status. argv[0] is the command's name. */
#define COMMAND(name, synopsis, text) int cli_##name(int argc, char **argv);
#include "usage.def"

enum { EXIT_USAGE = 64 };

/* "hewn: …" on stderr. Returns 1. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* cli_usage for a word that is no option of the command, with the option that comes close. */
int cli_unknown(const char *command, const char *word);
/* The same plus the command's usage. Returns EXIT_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Opens the driver of HEWN_LIBCUDA, else libcuda.so.1; when that has no device, the simulator beside
 * this program. One line on `say` (NULL: none) says which ("driver: …"). NULL after cli_fail.
 */
hewn_driver *cli_open_driver(FILE *say);
/* Path of the simulated driver: beside the program, or under its prefix; false when absent. */
bool cli_simulator(char *path, size_t size);
/* Path of the library that `hewn watch` preloads; likewise. */
bool cli_watcher(char *path, size_t size);
/* The driver's function `name`, or false after cli_fail. */
bool cli_symbol(const hewn_driver *driver, const char *name, void *slot);
/* Name -> hewn_dtype, or -1. */
int cli_dtype(const char *name);
/* CUDA result -> text through the driver. */
const char *cli_cuda_error(const hewn_driver *driver, int result);

/* Driver functions that commands call beside hewn.h. */
struct cli_calls {
    int (*alloc)(hewn_deviceptr *, size_t);
    int (*release)(hewn_deviceptr);
    int (*to_device)(hewn_deviceptr, const void *, size_t);
    int (*to_host)(void *, hewn_deviceptr, size_t);
    int (*synchronize)(void);
};
/* False after cli_fail. */
bool cli_load_calls(const hewn_driver *driver, struct cli_calls *calls);
double cli_seconds(void); /* of a clock that never goes back */

/* Every module of every family linked into this program, in turn; NULL behind the last one. `family`
 * (which may be NULL) gets its family's name. */
const hewn_module *cli_module(size_t index, const char **family);

/* ---- one product on the device, used by gemm and demo ---- */

struct finish { /* what comes after the sums, as in hewn.h */
    float alpha, beta;
    int act;
    const void *c;     /* m x n of dtype `out`, or NULL */
    const float *bias; /* n, or NULL */
};

struct product {
    int64_t m, n, k;
    int in, out;         /* hewn_dtype */
    const char *variant; /* as in hewn_gemm_desc */
    const uint16_t *a,
        *b;               /* m x k, n x k, of dtype `in`, rows contiguous; MN-major: k x m, k x n */
    int major_a, major_b; /* hewn_major */
    const struct finish *finish; /* NULL: the plain product */
    void *d;                     /* m x n of dtype `out` */
    double seconds;              /* out: of the kernel, by the host's clock */
    hewn_gemm_plan_info plan;    /* out */
};

/* Copies in (padding rows to 16 bytes), runs, copies out. 0, or 1 after cli_fail. */
int product_run(hewn_context *context, const hewn_driver *driver, struct product *p);

/* ---- one attention on the device, used by attention and demo ---- */

struct attended {
    hewn_attention_desc desc;       /* strides 0, v_dim given, its source the next field */
    hewn_attention_source source;   /* strides 0 */
    const void *q, *k, *v;          /* contiguous, of desc.layout and dtype desc.in, or desc.kv */
    const int32_t *lengths, *table; /* where source has them, else NULL */
    float k_scale, v_scale;         /* of 8-bit K and V */
    const float *sink;              /* desc.q_heads logits where desc.sink is set */
    void *o;                        /* as Q, v_dim wide, of dtype desc.out */
    float *lse;                     /* batch x q_heads x q_length, or NULL: not wanted */
    double seconds;                 /* out: of the kernels, by the host's clock */
    hewn_attention_plan_info plan;  /* out */
};

/* Copies in, runs, copies out. 0, or 1 after cli_fail. */
int attended_run(hewn_context *context, const hewn_driver *driver, struct attended *a);
/* Pairs of a query and a key that the mask lets meet, in all heads and sequences. */
double attended_pairs(const struct attended *a);

/* float32, float16 or bfloat16 elements to the kernel's 16-bit input type, rounding to nearest even. */
void convert_inputs(int from, int to, const void *src, uint16_t *dst, size_t count);
double element_value(int dtype, const void *data, size_t index);

/* ---- a report file of the simulated driver, used by check and run ---- */

struct verdicts {
    unsigned clean, review, incomplete, error;
    unsigned proved, explored, sampled; /* the same, by how they were reached */
    char why[256];                      /* of the first that was not proved */
    /* Lines with idioms: of each kernel as many as one launch had at most; of further kernels none. */
    struct {
        char name[96];
        unsigned idioms;
    } kernel[32];
    unsigned kernels;
};
/* Counts the verdict lines from `start` on: a report file may hold earlier runs. 0, or 1 after
 * cli_fail. */
int cli_count_verdicts(const char *report, long start, struct verdicts *v);
/* How they were reached, in a line that begins with `who`. */
void cli_print_basis(FILE *out, const char *who, const struct verdicts *v);
/* "; 3 idioms by the letter (--pedantic)", where there are any. */
void cli_print_idioms(FILE *out, const struct verdicts *v);
/* --suppress RULE: adds to HEWN_SIM_SUPPRESS, whose rules they are. 0, or 1 after cli_fail. */
int cli_suppress(const char *rule);
/* The first lines of the first worksheet in `path`, which the simulator's HEWN_SIM_WORKSHEET wrote: the
 * launch and its roles. 0, or 1 after cli_fail. */
int cli_print_roles(const char *path);
/* The file's size, after creating it where it is not there yet; -1. */
long cli_report_size(const char *path);

#endif
