/*
 * A kernel that only multiplies: wgmma m64n256 back to back on random operands in shared memory, without
 * any load. rates.c counts its cycles, bench_ceiling.c the FLOP/s that it leaves room for.
 */
#ifndef TESTS_WGMMA_LOOP_H
#define TESTS_WGMMA_LOOP_H

#include <stdbool.h>
#include <stddef.h>

/* Of a stage: the 64 x K elements of A of each of two warpgroups and B's 256 x K, rows of 128 bytes. */
enum { WGMMA_STAGE_BYTES = 64 << 10, WGMMA_TEXT = 1 << 16 };

/*
 * Writes into out[WGMMA_TEXT] the PTX of
 *     k(u64 out, u64 base, u64 span, u32 chunk, u32 stages, u32 n)
 * of which only `out` and `n` are read: n turns, each over `stages` (1 to 3) stages of operands, each a
 * group of 4 wgmma m64n256k16 on bf16, or m64n256k32 on e4m3, into fp32; at most `depth` groups in
 * flight behind the newest. Launch with 128 or 256 threads, stages * WGMMA_STAGE_BYTES of dynamic shared
 * memory. Thread 0 of CTA i writes u64 out[4 * i + 0 … 2]: cycles, start and end in nanoseconds.
 */
void wgmma_loop_text(char *out, bool e4m3, unsigned stages, unsigned depth);

#endif
