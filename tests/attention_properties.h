/* What holds between runs of hewn_attention, whatever the numbers: see attention_properties.c. */
#ifndef TESTS_ATTENTION_PROPERTIES_H
#define TESTS_ATTENTION_PROPERTIES_H

#include "device.h"

/* Each property is a test case. `dim`: those of this head dimension alone, 0: all. */
void attention_properties(struct device *dev, int64_t dim);

/* A hash of the outputs of one run; false when it failed. */
struct attention_case;
bool attention_hash(struct device *dev, const struct attention_case *c, uint64_t *hash);

#endif
