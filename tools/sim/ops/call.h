/* Calls: every lane's stack of return addresses, and what device code prints. */
#ifndef SIM_CALL_H
#define SIM_CALL_H

#include "machine/exec.h"

struct call_stack;

/* Empties the stacks when a warp starts; frees them when its memory goes. */
void calls_reset(struct call_stack *stack);
void calls_free(struct call_stack *stack);

/* Formats as vprintf on the device does and keeps the text in the group until the launch ends. Both
 * addresses are generic. *parsed: its value (CUDA C++ guide, "Formatted Output"), the number of arguments,
 * -1 without a format. False after sim_fault. */
bool print_lane(struct warp *w, const struct insn *in, uint32_t lane, uint64_t format,
                uint64_t arguments, int32_t *parsed);

#endif
