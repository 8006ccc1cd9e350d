/* The message digest MD2 (RFC 1319) and its keyed form (RFC 2104), in which CUDA's runtime library and a driver greet
 * each other. */
#ifndef SIM_MD2_H
#define SIM_MD2_H

#include <stddef.h>
#include <stdint.h>

enum { MD2_BYTES = 16 };

struct md2 {
    uint8_t state[MD2_BYTES], checksum[MD2_BYTES], block[MD2_BYTES];
    unsigned filled; /* bytes of `block` */
};

/* HMAC with a key of one block. */
struct md2_keyed {
    struct md2 inner;
    uint8_t key[MD2_BYTES];
};

void md2_keyed_begin(struct md2_keyed *m, const uint8_t key[MD2_BYTES]);
void md2_keyed_add(struct md2_keyed *m, const void *data, size_t bytes);
void md2_keyed_end(struct md2_keyed *m, uint8_t out[MD2_BYTES]);

/* The plain digest, for the RFC's own test values. */
void md2(const void *data, size_t bytes, uint8_t out[MD2_BYTES]);

#endif
