/* Registers of a thread, as far as a kernel's source fixes them. */
#ifndef SIM_REGISTERS_H
#define SIM_REGISTERS_H

#include "ptx/module.h"

/* .maxnreg, else what the launch bounds leave of an SM's registers; 0 where the source has neither. */
uint32_t entry_registers(const struct ptx_entry *entry, uint32_t regs_per_sm);

enum { REGISTERS_UNBOUND = 32 }; /* reported where it is 0: 2048 threads an SM fit */

#endif
