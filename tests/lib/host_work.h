/*
 * Work by which the host side is judged, in tests/runtime/host.c and in make bench: the kinds of plan that differ
 * in what a plan computes and in what a run tells the driver. Small, so that launches and not kernels
 * fill a stream.
 */
#ifndef TESTS_HOST_WORK_H
#define TESTS_HOST_WORK_H

#include "lib/device.h"

enum { HOST_INPUTS = 2 }; /* sets of them, drawn differently */

enum host_kind {
    HOST_GEMM,
    HOST_GEMM_PARTS, /* clusters: on sm_90a, K in two parts */
    HOST_ATTENTION,
    HOST_ATTENTION_CAUSAL,
    HOST_ATTENTION_SPLIT, /* and the combine kernel */
    HOST_ATTENTION_PACKED,
    HOST_KINDS
};

struct host_work {
    enum host_kind kind;
    hewn_gemm_plan *gemm; /* one of the two */
    hewn_attention_plan *attention;
    size_t in_bytes, out_bytes, lse_bytes;
    hewn_deviceptr in[3]; /* A, B or Q, K, V */
    hewn_deviceptr out, lse, offsets, workspace;
};

const char *host_kind_name(enum host_kind kind);
/* What a run tells the driver. */
int host_kind_maps(enum host_kind kind);
int host_kind_launches(enum host_kind kind);

/* A plan, its buffers, the first set of inputs. */
bool host_work_open(struct device *dev, enum host_kind kind, struct host_work *w, hewn_error *err);
void host_work_close(struct device *dev, struct host_work *w);
/* Another plan of the same problem, put in the place of the last. A status. */
int host_work_plan(struct device *dev, struct host_work *w, hewn_error *err);
void host_work_drop_plan(struct host_work *w);
/* Overwrites the inputs with set 0..HOST_INPUTS-1, the outputs with a poison. */
bool host_work_fill(struct device *dev, struct host_work *w, int set);
/* A status. */
int host_work_run(const struct host_work *w, hewn_stream stream, hewn_error *err);

#endif
