/* What device code prints. */
#ifndef SIM_PRINT_H
#define SIM_PRINT_H

#include "machine/machine.h"

/* Formats as vprintf on the device does and keeps the text in the group until the launch ends. Both
 * addresses are generic. *parsed: its value (CUDA C++ guide, "Formatted Output"), the number of arguments,
 * -1 without a format. False after sim_fault. */
bool print_lane(struct warp *w, const struct insn *in, uint32_t lane, uint64_t format,
                uint64_t arguments, int32_t *parsed);

#endif
