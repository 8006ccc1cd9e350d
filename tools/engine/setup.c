#include "setup.h"

#include <stdio.h>

static void tell_device(const struct gpu *g)
{
    hewn_device_info info = {.struct_size = sizeof info};
    hewn_error err;
    if (hewn_context_describe_device(g->context, &info, &err) == 0)
        fprintf(stderr, "device: %s%s\n", info.name, info.simulated ? ", simulated" : "");
}

int setup_open(const struct command *c, struct setup *out, struct problem *p)
{
    const struct model_options options = {.slots = c->slots,
                                          .chunk = c->chunk,
                                          .context = c->context,
                                          .pages = c->pages,
                                          .invariant = c->invariant,
                                          .no_graphs = c->no_graphs};
    *out = (struct setup){.tokenizer = NULL};
    if (checkpoint_open(c->folder, &out->checkpoint, p)) return -1;
    if (!c->ids) out->tokenizer = tokenizer_open(c->folder, p);
    if ((!c->ids && !out->tokenizer) || gpu_open(NULL, &out->gpu, p)) {
        setup_close(out);
        return -1;
    }
    tell_device(&out->gpu);
    if (model_open(&out->gpu, &out->checkpoint, &options, &out->model, p)) {
        setup_close(out);
        return -1;
    }
    return 0;
}

void setup_close(struct setup *s)
{
    model_close(s->model);
    if (s->gpu.driver) gpu_close(&s->gpu);
    tokenizer_close(s->tokenizer);
    if (s->checkpoint.weights) checkpoint_close(&s->checkpoint);
    *s = (struct setup){.tokenizer = NULL};
}
