/* Runs an attention case on a device, between guards and under the checker where there is one. */
#ifndef TESTS_ATTENTION_RUN_H
#define TESTS_ATTENTION_RUN_H

#include "attention_data.h"
#include "lib/device.h"

struct attention_run {
    bool done;                     /* the outputs are in the data */
    bool tables_wrong;             /* in: lengths, offsets or tables break the rules on purpose */
    hewn_attention_plan_info info; /* out */
};

/* Plans, runs, reads the outputs back; guards and padding are untouched and every verdict is `clean`,
 * or the current case fails. Where the device's target lacks the module the case is skipped. */
void attention_run(struct device *dev, struct attention_data *d, struct attention_run *run);

#endif
