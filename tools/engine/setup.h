/* A model ready to run, as a command's options ask for it. */
#ifndef ENGINE_SETUP_H
#define ENGINE_SETUP_H

#include "checkpoint.h"
#include "command.h"
#include "gpu.h"
#include "model.h"
#include "tokenizer.h"

struct setup {
    struct checkpoint checkpoint;
    struct tokenizer *tokenizer;
    struct gpu gpu;
    struct model *model;
};

/* Tells on stderr which device it is. 0, or -1 after a message; then nothing is open. */
int setup_open(const struct command *c, struct setup *out, struct problem *p);
void setup_close(struct setup *s);

#endif
