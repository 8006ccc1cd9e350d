/* Where the address spaces of a program lie. */
#ifndef SIM_WINDOW_H
#define SIM_WINDOW_H

/* Address windows. A shared address is rank<<24 | offset (as hardware lays clusters out); generic
 * addresses add the window's base. Global addresses are host addresses inside registered
 * allocations (mem.h). */
#define SHARED_WINDOW 0x00C1000000000000ULL
#define LOCAL_WINDOW 0x00C2000000000000ULL
#define PARAM_WINDOW 0x00C3000000000000ULL
#define WINDOW_MASK 0xFFFF000000000000ULL
#define SHARED_RANK_SHIFT 24
#define SHARED_OFFSET_MASK 0x00FFFFFFU

/* The system's part at the start of every CTA's window, as on sm_90+. From SHARED_SCRATCH on
 * (%reserved_smem_offset_1; interpretation: where a driver puts it is its own affair) kernels that
 * ask for it may use it: cooperative_groups wants 288 bytes for groups of several warps. */
enum { SHARED_RESERVED = 1024, SHARED_SCRATCH = 512 };

#endif
