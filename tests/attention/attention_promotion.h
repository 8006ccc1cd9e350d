/* What short sums of 8-bit products lose, and what promotion to fp32 keeps of it. */
#ifndef TESTS_ATTENTION_PROMOTION_H
#define TESTS_ATTENTION_PROMOTION_H

#include "lib/device.h"

#include <stdint.h>

/* For each distribution of inputs a case, and a line of its errors against float64: 128 queries of one head see so
 * many keys. */
void attention_promotion(struct device *dev, int64_t qk, int64_t keys);

#endif
