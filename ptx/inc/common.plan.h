/*
 * What every plan header builds on: numbers of the hardware and of the driver API, and sums over
 * parameter lists. #defines only: PTX and C include this.
 */
#ifndef HEWN_PTX_COMMON_PLAN_H
#define HEWN_PTX_COMMON_PLAN_H

/* Of an SM, on both targets: the shared memory that one CTA may have (227 KB), the registers, and
 * those of a thread where one CTA of so many threads has the SM. setmaxnreg moves registers in
 * steps of 8. */
#define SM_SHARED_BYTES         232448
#define SM_REGISTERS            65536
#define SM_REGISTERS_8(threads) (SM_REGISTERS / (threads) / 8 * 8)

/* The 128-byte swizzle of TMA and of the tensor cores: a row, and where the pattern repeats. */
#define SWIZZLE_BYTES  128
#define SWIZZLE_REPEAT 1024

/* A CUtensorMap among the parameters. */
#define MAP_BYTES 128
#define MAP_ALIGN 64

/* Sums over a parameter list: MAPS(MAP_ONE, MAP_ONE) and SCALARS(SCALAR_ONE) are its numbers of
 * tensor maps and scalars, SCALARS(SCALAR_BYTES) the bytes of its scalars. */
#define MAP_ONE(name)                  +1
#define SCALAR_ONE(type, name, rule)   +1
#define SCALAR_BYTES(type, name, rule) +SCALAR_BYTES_##type
#define SCALAR_BYTES_u64               8
#define SCALAR_BYTES_u32               4
#define SCALAR_BYTES_f32               4

#endif
