#include "setup.h"

#include <stdio.h>

static void tell_device(const struct gpu *g)
{
    hewn_device_info info = {.struct_size = sizeof info};
    hewn_error err;
    if (hewn_context_describe_device(g->context, &info, &err) == 0)
        fprintf(stderr, "device: %s%s\n", info.name, info.simulated ? ", simulated" : "");
}

/* A product whose kernel --tune has found. */
static void tell_tuned(const hewn_gemm_desc *d, const hewn_gemm_tuned *t)
{
    char slices[16] = "";
    if (t->slices > 1) snprintf(slices, sizeof slices, "*%u", t->slices);
    fprintf(stderr, "tuned: %lld x %lld x %lld, %s: %s/%u%s of %u, %.2f us, was %.2f\n",
            (long long)d->m, (long long)d->n, (long long)d->k, hewn_dtype_name(d->in), t->variant,
            t->parts, slices, t->tried, 1e6 * t->seconds, 1e6 * t->chosen_seconds);
}

static int open_model(const struct command *c, struct setup *s, struct problem *p)
{
    const struct model_options options = {.slots = c->slots,
                                          .chunk = c->chunk,
                                          .context = c->context,
                                          .pages = c->pages,
                                          .invariant = c->invariant,
                                          .no_graphs = c->no_graphs,
                                          .by_nccl = c->by_nccl,
                                          .tuning = c->tuning,
                                          .tune = c->tune,
                                          .tuned = tell_tuned,
                                          .ranks = s->ranks};
    if (!s->ranks) return model_open(&s->gpu, &s->checkpoint, &options, &s->model, p);
    if (shard_open(&s->checkpoint, s->ranks, &s->shard, p) || ranks_join(s->ranks, p)) return -1;
    return model_open(&s->gpu, &s->shard.checkpoint, &options, &s->model, p);
}

static int setup_open(const struct command *c, struct setup *s, struct problem *p)
{
    const bool leads = !s->ranks || s->ranks->rank == 0;
    if (checkpoint_open(c->folder, &s->checkpoint, p)) return -1;
    s->checkpoint.config.e4m3 = c->fp8;
    if (!c->ids && leads) s->tokenizer = tokenizer_open(c->folder, p);
    if (!c->ids && leads && !s->tokenizer) return -1;
    if (s->ranks ? gpu_open_rank(NULL, s->ranks->rank, s->ranks->count, &s->gpu, p)
                 : gpu_open(NULL, &s->gpu, p))
        return -1;
    if (leads) tell_device(&s->gpu);
    return open_model(c, s, p);
}

static void setup_close(struct setup *s, bool failed)
{
    model_close(s->model);
    if (s->ranks) ranks_close(s->ranks, failed);
    shard_close(&s->shard);
    if (s->gpu.driver) gpu_close(&s->gpu);
    tokenizer_close(s->tokenizer);
    if (s->checkpoint.weights) checkpoint_close(&s->checkpoint);
}

struct job {
    const struct command *command;
    int (*work)(struct setup *s, const struct command *c);
};

/* What is wrong with all ranks is said by the first one alone. */
static int fail(const struct setup *s, struct problem *p)
{
    struct problem named;
    if (!s->ranks || s->ranks->rank == 0) return command_fail(p);
    if (ranks_leader_failed(s->ranks)) return 1;
    problem(&named, "rank %d: %.700s", s->ranks->rank, p->text);
    return command_fail(&named);
}

static int run(struct ranks *ranks, void *user)
{
    const struct job *job = user;
    struct setup s = {.ranks = ranks};
    struct problem p = {""};
    int status;
    if (setup_open(job->command, &s, &p))
        status = fail(&s, &p);
    else if (!ranks || ranks->rank == 0)
        status = job->work(&s, job->command);
    else
        status = model_follow(s.model, &p) ? fail(&s, &p) : 0;
    setup_close(&s, status != 0);
    return status;
}

int setup_run(const struct command *c, int (*work)(struct setup *s, const struct command *c))
{
    struct job job = {c, work};
    struct problem p;
    if (c->ranks < 0 || c->ranks > RANKS_MOST) {
        problem(&p, "--ranks: %lld is outside 1 to %d", (long long)c->ranks, RANKS_MOST);
        return command_fail(&p);
    }
    if (c->tune && c->ranks) {
        problem(&p, "--tune: not with --ranks, because all ranks must use the same kernels");
        return command_fail(&p);
    }
    if (c->by_context && !c->ranks) {
        problem(&p, "--by-context: --ranks is missing, so there is nothing to split");
        return command_fail(&p);
    }
    if (c->ranks < 2) return run(NULL, &job);
    return ranks_run((int)c->ranks, c->by_context ? RANKS_BY_CONTEXT : RANKS_BY_TENSOR, run, &job);
}
