/*
 * What cudart.c's two halves share: the CUDA runtime calls, and the record of what each launch wrote.
 */
#ifndef HEWN_OTHERS_CUDART_H
#define HEWN_OTHERS_CUDART_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* Device memory the program has; buffers are numbered in the order of their allocation. */
void record_allocated(CUdeviceptr address, size_t bytes);
void record_freed(CUdeviceptr address);

/* Around every launch. Nothing happens unless OTHERS_RECORD names a file; then each buffer that the
 * launch changed gives a line "LAUNCH BUFFER BYTES FNV1A-64" there, launches counted from 0, and with
 * OTHERS_DUMP naming a folder its contents a file LAUNCH.BUFFER in it. OTHERS_FORCE names such a folder
 * of another driver: its contents replace what the launch wrote, once that is recorded. */
void record_before(void);
void record_after(void);

#endif
