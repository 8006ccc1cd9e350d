#include "fuzz/fuzz.h"

const struct fuzz_target fuzz_targets[] = {
#define X(name, what) {#name, what, fuzz_##name},
    FUZZ_TARGETS(X)
#undef X
};
const size_t fuzz_target_count = sizeof fuzz_targets / sizeof fuzz_targets[0];
