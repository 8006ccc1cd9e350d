/* What the tests of the engine's kernels share: arrays on the host and on the device. */
#ifndef TESTS_ENGINE_KERNELS_H
#define TESTS_ENGINE_KERNELS_H

#include "../../tools/engine/kernels.h"

#include "lib/device.h"
#include "lib/harness.h"
#include "lib/suite.h"
#include "lib/verdict.h"

struct bench {
    struct device *dev;
    struct engine_kernels kernels;
};

/* An array in both places. What the device's copy holds at first is the host's. */
struct array {
    void *host;
    size_t size;
    struct guarded device;
};
enum { POISON = 0x5A };
/* Of norms: what f32 holds, and large enough to be missed where a kernel or its launch leaves it out. */
#define EPS 0.125

/* `size` bytes on the host, poisoned; false without memory. */
bool array_new(struct array *a, size_t size);
/* Bf16 numbers in -scale .. scale. */
void array_random(struct array *a, struct rng *r, double scale);
/* To the device, `offset` bytes behind a multiple of 256: its address, 0 without memory. */
hewn_deviceptr array_up(struct bench *b, struct array *a);
/* From the device, with its guards checked. */
void array_down(struct bench *b, struct array *a, const char *name);
void array_free(struct bench *b, struct array *a);

static inline uint16_t *bf16(const struct array *a)
{
    return a->host;
}
static inline int32_t *i32(const struct array *a)
{
    return a->host;
}
static inline float *f32(const struct array *a)
{
    return a->host;
}

/* Waits for a launch that returned `status`, and asks the checker. */
bool launched(struct bench *b, int status, const hewn_error *err);

/* Compares a bf16 with a double: `slack` beside half a unit in the last place. */
bool near_bf16(uint16_t got, double want, double slack);

/* A paged cache, in pages that a table names once: kernels_cache.c. */
struct cache_shape {
    int dim, kv_heads, page_size;
    int sequences,
        width;    /* of the table; width 0: no table, a sequence has the page of its number */
    int pages;    /* no multiple of 5 */
    bool by_head; /* a page's heads lie behind one another: BHSD, else BSHD */
    bool normed, damaged; /* damaged: some entries of the table are no page */
};
struct cache {
    struct cache_shape shape;
    int positions; /* that rotation has; damaged: three more than the table */
    int64_t page, head, token;
    struct array rotation, q_norm, k_norm, k, v, table;
};
/* The pools are left poisoned; false without memory. */
bool cache_new(struct cache *c, const struct cache_shape *shape, struct rng *r);
struct engine_cache cache_up(struct bench *b, struct cache *c);
void cache_free(struct bench *b, struct cache *c);
/* Whether a row stands at a position of its sequence. */
bool cache_has(const struct cache *c, int position);
/* Where a key of a sequence lies in the pools, without its head; -1: in no page. */
int64_t cache_place(const struct cache *c, int sequence, int key);
/* A head as it must become, normed by `weights` and rotated; slack[j]: what f32 may add to half a unit in the
 * last place. */
void cache_turn(const struct cache *c, int position, const uint16_t *from,
                const struct array *weights, double *want, double *slack);

/* The kernels' cases; `random`: so many random ones more. */
void test_norm(struct bench *b, int random);
void test_rope(struct bench *b, int random);
void test_attend(struct bench *b, int random);
void test_multiply(struct bench *b, int random);
void test_swiglu(struct bench *b, int random);
void test_quant(struct bench *b, int random);
void test_project(struct bench *b, int random);
void test_slots(struct bench *b, int random);
void test_sample(struct bench *b, int random);
void test_route(struct bench *b, int random);
void test_place(struct bench *b, int random);
void test_latent(struct bench *b, int random);
void test_exchange(struct bench *b, int random);
void test_rules(struct bench *b);

#endif
