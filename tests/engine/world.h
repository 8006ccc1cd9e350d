/* A small checkpoint in a folder of its own, and its model on a device of its own. */
#ifndef TESTS_ENGINE_WORLD_H
#define TESTS_ENGINE_WORLD_H

#include "tiny.h"

#include "engine/checkpoint.h"
#include "engine/model.h"
#include "lib/harness.h"

struct world {
    char folder[256];
    struct checkpoint checkpoint;
    struct gpu gpu; /* memory lives as long as it does */
    struct model *model;
};

/* False after a failed check; world_close follows in any case. */
bool world_open(struct world *w, const struct tiny *t, const struct model_options *o);
void world_close(struct world *w);
/* Says for failure headers which device it is; false after a message. */
bool world_where(const char *program);
void random_tokens(struct rng *r, int32_t *out, int64_t count, int vocab);

#endif
