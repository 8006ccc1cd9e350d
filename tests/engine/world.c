#include "world.h"

#include <stdio.h>

bool world_open(struct world *w, const struct tiny *t, const struct model_options *o)
{
    struct problem p = {"no folder"};
    *w = (struct world){.model = NULL};
    if (!tiny_folder(w->folder, sizeof w->folder) || !tiny_write(w->folder, t) ||
        checkpoint_open(w->folder, &w->checkpoint, &p)) {
        CHECK(false, "%s", p.text);
        return false;
    }
    w->checkpoint.config.e4m3 = t->e4m3;
    if (gpu_open(NULL, &w->gpu, &p) == 0 &&
        model_open(&w->gpu, &w->checkpoint, o, &w->model, &p) == 0)
        return true;
    CHECK(false, "%s", p.text);
    return false;
}

void world_close(struct world *w)
{
    model_close(w->model);
    if (w->gpu.driver) gpu_close(&w->gpu);
    if (w->checkpoint.weights) checkpoint_close(&w->checkpoint);
    if (w->folder[0]) tiny_remove(w->folder);
    w->folder[0] = '\0';
}

bool world_where(const char *program)
{
    struct problem p = {""};
    struct gpu gpu;
    hewn_device_info info = {.struct_size = sizeof info};
    if (gpu_open(NULL, &gpu, &p)) {
        printf("%s: %s\n", program, p.text);
        return false;
    }
    if (hewn_context_describe_device(gpu.context, &info, NULL) == 0)
        test_where("%s%s", info.simulated ? "sim " : "", info.name);
    gpu_close(&gpu);
    return true;
}

void random_tokens(struct rng *r, int32_t *out, int64_t count, int vocab)
{
    for (int64_t i = 0; i < count; i++) out[i] = (int32_t)rng_below(r, (uint32_t)vocab);
}
