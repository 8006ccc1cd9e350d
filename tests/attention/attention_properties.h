/* What holds between runs of hewn_attention, whatever the numbers: see attention_properties.c. */
#ifndef TESTS_ATTENTION_PROPERTIES_H
#define TESTS_ATTENTION_PROPERTIES_H

#include "attention_case.h"
#include "lib/device.h"

/* Each property is a test case, of those whose attention case is wanted. */
void attention_properties(struct device *dev, bool (*wanted)(void *, const struct attention_case *),
                          void *user);

/* A hash of the outputs of one run; false when it failed. */
bool attention_hash(struct device *dev, const struct attention_case *c, uint64_t *hash);

/* Those of `invariant`, on their own because they come last: cases are numbered. */
void attention_invariant(struct device *dev, bool (*wanted)(void *, const struct attention_case *),
                         void *user);
void attention_far_from_zero(struct device *dev,
                             bool (*wanted)(void *, const struct attention_case *), void *user);

#endif
