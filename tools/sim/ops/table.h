/* What the instructions bring along: to decode them, and to run them. */
#ifndef SIM_TABLE_H
#define SIM_TABLE_H

#include "machine/hooks.h"

/* For kernel_decode. */
extern bind_fn *const op_binders[];
/* For a launch of what was decoded with them. */
extern const struct machine_hooks op_hooks;

#endif
