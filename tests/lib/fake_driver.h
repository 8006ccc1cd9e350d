/*
 * A driver that is a table of functions given through hewn_driver_options.resolve: it needs no GPU and
 * no simulator, counts calls, fails any of them on demand, and knows what has not been released.
 * It launches nothing.
 */
#ifndef TESTS_FAKE_DRIVER_H
#define TESTS_FAKE_DRIVER_H

#include "hewn.h"

#include "driver_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_MAX_SYMBOLS = 64 };

struct fake_driver {
    /* what the device is */
    int device_count, cc_major, cc_minor, max_shared, static_shared;
    /* what is to go wrong */
    long fail_at;          /* the call of that number, from 1, fails with fail_code; 0: none */
    int fail_code;         /* a CUresult */
    const char *fail_name; /* every call of this function fails with fail_code */
    const char *absent;    /* this symbol is not found */
    const char *jit_log;   /* what a failing cuModuleLoadDataEx writes into the error log */
    bool releasing;        /* from now on a failing call has its effect all the same: a driver that
                              will not release cannot be made to */
    /* what has happened */
    long calls, launches, loads;
    void (*launching)(void **params); /* told of every launch that is about to succeed; or NULL */
    const char *failed;               /* the function that was last made to fail */
    unsigned grid[3], block[3], shared, attributes;
    /* what is held */
    int retained, modules;
    /* every name the resolver was asked for */
    const char *symbols[FAKE_MAX_SYMBOLS];
    int symbol_count;
};

extern struct fake_driver fake;

/* What the fake driver writes into a tensor map: the arguments it was given. */
struct fake_map {
    uint64_t address, dim[5], stride[4];
    uint16_t box[5], element_stride[5];
    uint8_t rank, dtype, interleave, swizzle, l2, oob;
};

/* Everything back to one healthy device of compute capability 9.0, nothing current on this thread. */
void fake_reset(void);
void *fake_resolve(void *user, const char *symbol);
/* Opens the fake through the public interface. */
int fake_open(hewn_driver **out, hewn_error *err);

/* This thread's current context; and a context that is not device 0's primary one. */
hewn_cu_context fake_current(void);
hewn_cu_context fake_foreign_context(void);
void fake_set_current(hewn_cu_context context);
/* How many contexts lie below this thread's current one. */
int fake_stack_depth(void);

#endif
