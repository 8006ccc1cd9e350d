/*
 * The record of what each launch wrote, shared by the drivers of this folder (others.c) and the stand-in
 * for the CUDA runtime (cudart.c). Two drivers that give the same lines gave the same results, bit for
 * bit, whatever addresses they handed out.
 */
#ifndef TESTS_OTHERS_RECORD_H
#define TESTS_OTHERS_RECORD_H

#include "driver_abi.h"

#include <stddef.h>

/* Device memory starts as bytes of this value: huge or NaN as a number, so an unwritten output shows. */
enum { RECORD_POISON = 0x7f };

/* How the record reaches the device; each returns a CUresult. */
struct record_calls {
    int (*synchronize)(void);
    int (*to_host)(void *to, hewn_cu_deviceptr from, size_t bytes);
    int (*to_device)(hewn_cu_deviceptr to, const void *from, size_t bytes);
};
void record_through(const struct record_calls *calls);

/* Device memory the program has; buffers are numbered in the order of their allocation. */
void record_allocated(hewn_cu_deviceptr address, size_t bytes);
void record_freed(hewn_cu_deviceptr address);

/* Called around every launch. They do nothing unless OTHERS_RECORD names a file. With it, each buffer that
 * the launch changed gives a line "LAUNCH BUFFER BYTES FNV1A-64" there; launches count from 0. OTHERS_DUMP
 * names a folder: the buffer's contents become a file LAUNCH.BUFFER in it. OTHERS_FORCE names such a folder
 * of another driver: its contents replace what the launch wrote, once that is recorded. */
void record_before(void);
void record_after(void);

#endif
