/* A model ready to run, as a command's options ask for it. */
#ifndef ENGINE_SETUP_H
#define ENGINE_SETUP_H

#include "checkpoint.h"
#include "command.h"
#include "gpu.h"
#include "model.h"
#include "ranks_shard.h"
#include "tokenizer.h"

struct setup {
    struct ranks *ranks; /* NULL: one GPU */
    struct checkpoint checkpoint;
    struct shard shard; /* of `checkpoint`, with ranks */
    struct tokenizer *tokenizer;
    struct gpu gpu;
    struct model *model;
};

/* Opens the model, on as many GPUs as `c` asks for, and gives it to `work`, in the process that has
 * the requests; its exit status. Tells on stderr which device it is. */
int setup_run(const struct command *c, int (*work)(struct setup *s, const struct command *c));

#endif
