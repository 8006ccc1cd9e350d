/*
 * The model on several simulated GPUs, a process each, with the stand-in for NCCL: logits beside float64
 * and beside one GPU, the same tokens on all ranks, requests in batches, a rank that dies, and what is
 * refused. Without HEWN_LIBNCCL it takes the stand-in beside the program. --share-gpu: all ranks on GPU 0,
 * which NCCL itself refuses.
 */
#include "world.h"

#include "engine/check.h"
#include "engine/engine.h"
#include "engine/ranks_shard.h"
#include "lib/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Seconds in which the others must have ended: no speed, but less than the waits that would end them otherwise. */
enum { SOON = 60 };
enum { SIMULATED = 1000 }; /* GPUs that no host has */
enum { RANKS = 4, VOCAB = 128, PROMPT = 50, MOST = 4, REQUESTS = 7, DRAWN = 8, SLOTS = 3 };

/* What the processes of a run tell, in memory that they share. */
struct heard {
    int count, ends;
    int32_t token[DRAWN];
};
struct told {
    char problem[RANKS][768];
    float logits[MOST * VOCAB], last[RANKS][VOCAB]; /* the leader's; the last ones of each rank */
    int32_t tokens[PROMPT + MOST];
    int64_t count;
    size_t whole; /* of check_run */
    struct heard heard[REQUESTS];
    int32_t history[RANKS][SLOTS * DRAWN];
};

struct run {
    uint64_t seed; /* of the model */
    struct model_options options;
    int ranks; /* 0: one GPU alone */
    enum ranks_split split;
    int (*lead)(const struct run *run, struct model *m, struct problem *p);
    int dies;   /* the rank that dies; -1: none */
    bool stops; /* which is stopped instead, by SIGSTOP */
    bool share; /* all ranks are on GPU 0 */
    char folder[256];
    struct told *told;
};

/* ---- a rank ---- */

struct rank_world {
    struct checkpoint checkpoint;
    struct shard shard;
    struct gpu gpu;
    struct model *model;
};

static int rank_open(const struct run *run, struct ranks *r, struct rank_world *w,
                     struct problem *p)
{
    struct model_options options = run->options;
    if (checkpoint_open(run->folder, &w->checkpoint, p) ||
        (run->share ? gpu_open(NULL, &w->gpu, p)
                    : gpu_open_rank(NULL, r->rank, r->count, &w->gpu, p)))
        return -1;
    if (!run->ranks) return model_open(&w->gpu, &w->checkpoint, &options, &w->model, p);
    options.ranks = r;
    if (shard_open(&w->checkpoint, r, &w->shard, p) || ranks_join(r, p)) return -1;
    return model_open(&w->gpu, &w->shard.checkpoint, &options, &w->model, p);
}

static void rank_close(struct rank_world *w, struct ranks *r, bool failed)
{
    model_close(w->model);
    ranks_close(r, failed);
    shard_close(&w->shard);
    if (w->gpu.driver) gpu_close(&w->gpu);
    if (w->checkpoint.weights) checkpoint_close(&w->checkpoint);
}

static void stop(int number)
{
    (void)number;
    raise(SIGSTOP);
}

/* Dies, or stops, some steps later, in the midst of one. */
static void end_soon(bool stops)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 200000}};
    signal(SIGALRM, stops ? stop : SIG_DFL);
    setitimer(ITIMER_REAL, &soon, NULL);
}

static int rank_main(struct ranks *r, void *user)
{
    const struct run *run = user;
    struct rank_world w = {.model = NULL};
    struct problem p = {""};
    int failed = rank_open(run, r, &w, &p);
    if (!failed && run->dies == r->rank) end_soon(run->stops);
    if (!failed) failed = r->rank ? model_follow(w.model, &p) : run->lead(run, w.model, &p);
    if (!failed) failed = model_logits(w.model, 0, run->told->last[r->rank], &p);
    for (int64_t s = 0; !failed && s < run->options.slots && s < SLOTS; s++)
        failed = model_history(w.model, s, 0, DRAWN, run->told->history[r->rank] + s * DRAWN, &p);
    memcpy(run->told->problem[r->rank], p.text, sizeof p.text);
    if (failed) ranks_leader_failed(r); /* so that the leader, too, says what is wrong */
    rank_close(&w, r, failed);
    return failed ? 1 : 0;
}

/* A process of its own asks the driver: the ranks' processes must not inherit it open. Simulated GPUs are as many as
 * ranks ask for. */
static bool are_there(int gpus)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        struct problem p = {""};
        struct gpu g;
        _exit(gpu_open_rank(NULL, 0, gpus, &g, &p) ? 1 : 0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* Ends the case as skipped if there are too few GPUs. */
static bool lacks(const struct run *run, int gpus)
{
    if (run->share || are_there(gpus)) return false;
    test_skip("%d GPUs", gpus);
    return true;
}

/* The status of the run; its answers are in run->told, zeros before. */
static int run_ranks(struct run *run)
{
    memset(run->told, 0, sizeof *run->told);
    return ranks_run(run->ranks ? run->ranks : 1, run->split, rank_main, run);
}

static void good(struct run *run)
{
    const int status = run_ranks(run);
    for (int i = 0; i < RANKS; i++)
        CHECK(!run->told->problem[i][0], "rank %d: %s", i, run->told->problem[i]);
    CHECK_INT(status, 0);
}

/* ---- logits ---- */

static void make_prompt(const struct run *run, int32_t *prompt)
{
    struct rng r = {test_seed() + run->seed};
    random_tokens(&r, prompt, PROMPT, VOCAB);
}

static int lead_one(const struct run *run, struct model *m, struct problem *p)
{
    const struct engine_sampling greedy = {.temperature = 0};
    struct check_run c;
    int32_t prompt[PROMPT];
    make_prompt(run, prompt);
    if (check_generate(m, 0, prompt, PROMPT, MOST, &greedy, &c, p)) return -1;
    memcpy(run->told->logits, c.logits, sizeof run->told->logits);
    memcpy(run->told->tokens, c.tokens, (size_t)c.count * sizeof *c.tokens);
    run->told->count = c.count;
    run->told->whole = c.whole;
    check_free(&c);
    return 0;
}

/* As one GPU's: the same bound, without more for the ranks' roundings. */
static void beside_float64(const struct run *run)
{
    const struct told *t = run->told;
    struct reference_difference d = {0};
    struct checkpoint c;
    struct problem p = {""};
    struct check_run r = {.tokens = malloc(sizeof t->tokens),
                          .logits = malloc(sizeof t->logits),
                          .prompt_count = PROMPT,
                          .count = t->count,
                          .whole = t->whole};
    int agrees = -1;
    memcpy(r.tokens, t->tokens, sizeof t->tokens);
    memcpy(r.logits, t->logits, sizeof t->logits);
    CHECK_INT(t->count, PROMPT + MOST);
    if (t->count == PROMPT + MOST && checkpoint_open(run->folder, &c, &p) == 0) {
        agrees = check_compare(&c, &r, &d, &p);
        checkpoint_close(&c);
    }
    CHECK(agrees == 1, "%s off by %.5f (rms) and %.5f at [%zu]; rounding costs %.5f, %.5f", p.text,
          d.rms, d.most, d.worst, d.rms_rounded, d.most_rounded);
    if (test_verbose())
        printf("off by %.5f (rms) and %.5f; rounding costs %.5f, %.5f\n", d.rms, d.most,
               d.rms_rounded, d.most_rounded);
    check_free(&r);
}

struct logits_case {
    const char *what;
    struct tiny tiny;
    struct model_options options;
    int ranks;
    enum ranks_split split;
};

static const struct logits_case logits_cases[] = {
    {"2 ranks by tensor, sums by NCCL",
     {.heads = 4, .kv_heads = 2},
     {.slots = 1, .by_nccl = true},
     2,
     RANKS_BY_TENSOR},
    {"4 ranks by tensor on 2 heads of K and V, biases, F32, no graphs",
     {.heads = 4, .kv_heads = 2, .bias = true, .dtype = "F32"},
     {.slots = 1, .by_nccl = true, .chunk = 32, .no_graphs = true},
     4,
     RANKS_BY_TENSOR},
    {"2 ranks by tensor", {.heads = 4, .kv_heads = 2}, {.slots = 1}, 2, RANKS_BY_TENSOR},
    {"4 ranks by tensor, biases",
     {.heads = 4, .kv_heads = 2, .bias = true},
     {.slots = 3, .chunk = 32, .no_graphs = true},
     4,
     RANKS_BY_TENSOR},
    {"2 ranks by tensor, DeepSeek's type",
     {.heads = 4, .kv_heads = 4, .experts = 6, .choices = 2, .expert_width = 32, .q_rank = 48},
     {.slots = 1, .by_nccl = true, .chunk = 32},
     2,
     RANKS_BY_TENSOR},
    {"2 ranks by tensor, DeepSeek's type, Q of the stream",
     {.heads = 2, .kv_heads = 2, .experts = 4, .choices = 2, .expert_width = 16},
     {.slots = 2, .chunk = 24},
     2,
     RANKS_BY_TENSOR},
    {"2 ranks by context", {.heads = 2, .kv_heads = 1}, {.slots = 1}, 2, RANKS_BY_CONTEXT},
    {"2 ranks by tensor, Qwen3-MoE's type",
     {.heads = 2,
      .kv_heads = 1,
      .type = TINY_QWEN3_MOE,
      .experts = 4,
      .choices = 2,
      .expert_width = 32},
     {.slots = 1, .by_nccl = true},
     2,
     RANKS_BY_TENSOR},
    {"2 ranks by context, Mixtral's type",
     {.heads = 2,
      .kv_heads = 1,
      .type = TINY_MIXTRAL,
      .experts = 4,
      .choices = 2,
      .expert_width = 32},
     {.slots = 1, .chunk = 40, .invariant = true},
     2,
     RANKS_BY_CONTEXT},
    {"2 ranks by context, bits of one GPU, chunks of 17",
     {.heads = 2, .kv_heads = 1, .bias = true},
     {.slots = 1, .chunk = 17, .page_size = 16, .invariant = true},
     2,
     RANKS_BY_CONTEXT},
    {"4 ranks by context, bits of one GPU",
     {.heads = 2, .kv_heads = 2},
     {.slots = 1, .chunk = 40, .invariant = true},
     4,
     RANKS_BY_CONTEXT},
};

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void same_bits(const char *what, const float *a, const float *b, size_t count)
{
    size_t differ = 0;
    for (size_t i = 0; i < count; i++) differ += bits_of(a[i]) != bits_of(b[i]);
    CHECK(!differ, "%s: %zu of %zu logits differ", what, differ, count);
}

static void test_logits(struct run *run, const struct logits_case *c)
{
    static float want[MOST * VOCAB];
    struct tiny tiny = tiny_llama(21);
    if (!test_case("%s", c->what) || lacks(run, c->ranks)) return;
    tiny.layers = 2;
    tiny.heads = c->tiny.heads;
    tiny.kv_heads = c->tiny.kv_heads;
    tiny.bias = c->tiny.bias;
    if (c->tiny.dtype) tiny.dtype = c->tiny.dtype;
    tiny.experts = c->tiny.experts;
    tiny.choices = c->tiny.choices;
    tiny.expert_width = c->tiny.expert_width;
    tiny.q_rank = c->tiny.q_rank;
    tiny.nope = 32;
    tiny.v_dim = 64;
    tiny.type = c->tiny.type;
    run->seed = tiny.seed;
    run->options = c->options;
    run->split = c->split;
    run->lead = lead_one;
    CHECK(tiny_write(run->folder, &tiny), "could not write the checkpoint");
    if (c->options.invariant) {
        run->ranks = 0;
        good(run);
        memcpy(want, run->told->logits, sizeof want);
    }
    run->ranks = c->ranks;
    good(run);
    if (c->options.invariant) same_bits("beside one GPU", run->told->logits, want, MOST * VOCAB);
    beside_float64(run);
    /* By tensor and by context every rank has all logits, and drew from them. */
    for (int i = 1; i < c->ranks; i++) {
        same_bits("a rank beside the first", run->told->last[i], run->told->last[0], VOCAB);
        CHECK(!memcmp(run->told->history[i], run->told->history[0], sizeof run->told->history[0]),
              "rank %d drew other tokens", i);
    }
}

/* ---- requests ---- */

static void on_token(void *user, int32_t token)
{
    struct heard *h = user;
    if (h->count < DRAWN) h->token[h->count] = token;
    h->count++;
}

static void on_end(void *user, int reason)
{
    struct heard *h = user;
    h->ends += reason != ENGINE_RUNS;
}

/* Requests of random lengths, one of which is cancelled while it runs. */
static int lead_requests(const struct run *run, struct model *m, struct problem *p)
{
    const struct engine_events events = {on_token, on_end};
    struct rng r = {test_seed() + 5};
    struct engine *e;
    int64_t left = 0, cancelled = 0;
    if (engine_open(m, REQUESTS, &events, &e, p)) return -1;
    for (int i = 0; i < REQUESTS && left >= 0; i++) {
        int32_t prompt[PROMPT];
        struct engine_request q = {.prompt = prompt,
                                   .prompt_count = 1 + (int64_t)rng_below(&r, PROMPT),
                                   .most = 2 + (int64_t)rng_below(&r, DRAWN - 2),
                                   .temperature = i % 2 ? 2.0f : 0.0f,
                                   .seed = (uint64_t)i,
                                   .user = &run->told->heard[i]};
        random_tokens(&r, prompt, q.prompt_count, VOCAB);
        left = engine_submit(e, &q, p);
        if (i == 1) cancelled = left;
    }
    for (int steps = 0; left > 0; steps++) {
        if (steps == 3) engine_cancel(e, cancelled);
        left = engine_step(e, p);
    }
    engine_close(e);
    return (int)left;
}

static void test_requests(struct run *run, enum ranks_split split, const char *what)
{
    static struct heard alone[REQUESTS];
    const struct tiny tiny = tiny_llama(22);
    if (!test_case("requests of 2 ranks %s", what) || lacks(run, 2)) return;
    run->seed = tiny.seed;
    run->options = (struct model_options){
        .slots = SLOTS, .chunk = 24, .page_size = 16, .invariant = true, .pages = 10};
    run->split = split;
    run->lead = lead_requests;
    CHECK(tiny_write(run->folder, &tiny), "could not write the checkpoint");
    if (split == RANKS_BY_CONTEXT) {
        run->ranks = 0;
        good(run);
        memcpy(alone, run->told->heard, sizeof alone);
    }
    run->ranks = 2;
    good(run);
    for (int i = 0; i < REQUESTS; i++) {
        CHECK_INT(run->told->heard[i].ends, 1);
        CHECK(i == 1 || run->told->heard[i].count > 1, "request %d: %d tokens", i,
              run->told->heard[i].count);
    }
    CHECK(split != RANKS_BY_CONTEXT || !memcmp(alone, run->told->heard, sizeof alone),
          "other tokens than those of one GPU");
    CHECK(!memcmp(run->told->history[0], run->told->history[1], sizeof run->told->history[0]),
          "the ranks drew different tokens");
}

/* ---- a rank that dies ---- */

/* Steps without end. */
static int lead_forever(const struct run *run, struct model *m, struct problem *p)
{
    const int32_t page = 0;
    const struct model_request r = {.pages = &page, .page_count = 1, .limit = 8};
    (void)run;
    if (model_enter(m, 0, &r, p)) return -1;
    for (;;)
        if (model_place(m, 0, 1, 0, p) || model_decode(m, 1, p)) return -1;
}

/* A step, then nothing, as where no request comes. */
static int lead_and_wait(const struct run *run, struct model *m, struct problem *p)
{
    const int32_t page = 0;
    const struct model_request r = {.pages = &page, .page_count = 1, .limit = 8};
    struct model_state state;
    (void)run;
    alarm(2 * SOON);
    if (model_enter(m, 0, &r, p) || model_place(m, 0, 1, 0, p) || model_decode(m, 1, p) ||
        model_read(m, &state, p))
        return -1;
    for (;;) pause();
}

/* What stderr gets from now on, in a file. */
static int stderr_begin(FILE *to)
{
    const int old = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(fileno(to), STDERR_FILENO);
    return old;
}

static void stderr_end(FILE *to, int old, char *text, size_t room)
{
    size_t n;
    fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    rewind(to);
    n = fread(text, 1, room - 1, to);
    text[n] = '\0';
    fclose(to);
}

/* Rank 1's first step of decode fails, behind which the leader says nothing more. */
static void test_error(struct run *run)
{
    struct tiny tiny = tiny_llama(25);
    const time_t start = time(NULL);
    if (!test_case("a step of rank 1 fails")) return;
    if (!are_there(SIMULATED)) {
        test_skip("the stand-in for NCCL, which works on simulated GPUs");
        return;
    }
    run->seed = tiny.seed;
    run->options = (struct model_options){.slots = 1, .chunk = 16, .by_nccl = true};
    run->split = RANKS_BY_TENSOR;
    tiny.kv_heads = 2;
    run->lead = lead_and_wait;
    run->ranks = 2;
    CHECK(tiny_write(run->folder, &tiny), "could not write the checkpoint");
    setenv("NCCL_STAND_IN_BROKEN", "1 3", 1); /* one in model_open, two of the step */
    CHECK_INT(run_ranks(run), 1);
    unsetenv("NCCL_STAND_IN_BROKEN");
    CHECK_TEXT(run->told->problem[1], "a collective: NCCL answers 1");
    CHECK(time(NULL) - start < SOON, "%lld seconds", (long long)(time(NULL) - start));
}

static void test_death(struct run *run, int ranks, int dies, bool stops, bool by_nccl)
{
    struct tiny tiny = tiny_llama(23);
    char want[64], got[1024];
    FILE *said = tmpfile();
    const time_t start = time(NULL);
    int old, status;
    if (!test_case("rank %d of %d %s%s", dies, ranks, stops ? "is stopped" : "dies",
                   by_nccl ? ", sums by NCCL" : "") ||
        lacks(run, ranks) || !said)
        return;
    run->seed = tiny.seed;
    run->options = (struct model_options){.slots = 1, .chunk = 16, .by_nccl = by_nccl};
    /* So that the others wait for it within a step. */
    run->split = RANKS_BY_TENSOR;
    tiny.heads = tiny.kv_heads = 6;
    tiny.intermediate = 48;
    run->lead = lead_forever;
    run->ranks = ranks;
    run->dies = dies;
    run->stops = stops;
    CHECK(tiny_write(run->folder, &tiny), "could not write the checkpoint");
    old = stderr_begin(said);
    status = run_ranks(run);
    stderr_end(said, old, got, sizeof got);
    run->dies = -1;
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a rank goes on");
    if (stops)
        snprintf(want, sizeof want, "rank %d has been stopped by a signal for 5 seconds", dies);
    else
        snprintf(want, sizeof want, "rank %d was ended by signal %d", dies, SIGALRM);
    CHECK_INT(status, 1);
    CHECK_TEXT(got, want);
    CHECK(time(NULL) - start < SOON, "%lld seconds", (long long)(time(NULL) - start));
}

/* ---- what is refused ---- */

static void refused(struct run *run, const char *rule)
{
    CHECK_INT(run_ranks(run), 1);
    CHECK_TEXT(run->told->problem[0], rule);
}

static void test_refused(struct run *run, const char *nccl)
{
    struct tiny tiny = tiny_llama(24);
    if (!test_case("what is refused") || lacks(run, 3)) return;
    run->seed = tiny.seed;
    run->options = (struct model_options){.slots = 1};
    run->split = RANKS_BY_TENSOR;
    run->lead = lead_one;
    run->ranks = 3;
    CHECK(tiny_write(run->folder, &tiny), "could not write the checkpoint");
    refused(run, "num_attention_heads is 2; 3 ranks split it only as a multiple of 3");
    tiny.heads = tiny.kv_heads = 4;
    tiny.intermediate = 24;
    run->ranks = 2;
    tiny_write(run->folder, &tiny);
    refused(run, "intermediate_size is 24; 2 ranks split it only as a multiple of 16");
    tiny = tiny_llama(24);
    tiny.heads = tiny.kv_heads = 3;
    run->ranks = 3;
    run->options.invariant = true;
    tiny.intermediate = 48;
    tiny_write(run->folder, &tiny);
    refused(run, "invariant: the sums of 3 ranks by tensor have no fixed order");
    run->ranks = 2;
    run->options.invariant = false;
    tiny = tiny_llama(24);
    tiny.kv_heads = tiny.layers = 2;
    tiny.experts = 4;
    tiny.choices = 1;
    tiny.expert_width = 16;
    tiny.nope = 32;
    tiny.v_dim = 64;
    run->split = RANKS_BY_CONTEXT;
    tiny_write(run->folder, &tiny);
    refused(run, "by context: ranks share K and V of heads; this model has latent attention");
    run->split = RANKS_BY_TENSOR;
    tiny.expert_width = 24;
    tiny_write(run->folder, &tiny);
    refused(run, "moe_intermediate_size is 24; 2 ranks split it only as a multiple of 16");
    tiny.type = TINY_MIXTRAL;
    tiny_write(run->folder, &tiny);
    refused(run, "intermediate_size is 24; 2 ranks split it only as a multiple of 16");
    CHECK(run->told->problem[0][0] == 'i', "%s", run->told->problem[0]);
    tiny = tiny_llama(24);
    tiny.kv_heads = 2;
    tiny_write(run->folder, &tiny);
    setenv("HEWN_LIBNCCL", "/nowhere/libnccl.so.2", 1);
    refused(run, "several ranks need NCCL, which did not open");
    setenv("HEWN_LIBNCCL", "libm.so.6", 1);
    refused(run, "libm.so.6 has no ncclGetVersion, so it is no NCCL");
    setenv("HEWN_LIBNCCL", nccl, 1);
}

/* What HEWN_LIBNCCL names; else the stand-in that lies beside the program, nccl/libnccl.so.2. */
static const char *find_nccl(const char *program)
{
    static char beside[512];
    const char *named = getenv("HEWN_LIBNCCL"), *slash = strrchr(program, '/');
    char *whole;
    if (named) return named;
    snprintf(beside, sizeof beside, "%.*s/nccl/libnccl.so.2", slash ? (int)(slash - program) : 1,
             slash ? program : ".");
    whole = realpath(beside, NULL);
    if (!whole) return NULL;
    snprintf(beside, sizeof beside, "%s", whole);
    free(whole);
    setenv("HEWN_LIBNCCL", beside, 1);
    return beside;
}

int main(int argc, char **argv)
{
    struct run run = {.dies = -1, .share = suite_flag(&argc, argv, "--share-gpu")};
    const char *nccl = find_nccl(argv[0]);
    test_begin("engine_ranks", argc, argv);
    if (!nccl) {
        if (test_case("ranks")) test_skip("no NCCL: HEWN_LIBNCCL names none");
        return test_end();
    }
    run.told =
        mmap(NULL, sizeof *run.told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run.told == MAP_FAILED || !tiny_folder(run.folder, sizeof run.folder)) return 1;
    for (size_t i = 0; i < sizeof logits_cases / sizeof logits_cases[0]; i++)
        test_logits(&run, &logits_cases[i]);
    test_requests(&run, RANKS_BY_TENSOR, "by tensor");
    test_requests(&run, RANKS_BY_CONTEXT, "by context");
    test_death(&run, 3, 1, false, true);
    test_death(&run, 2, 0, false, false);
    test_death(&run, 2, 1, true, false);
    test_error(&run);
    test_refused(&run, nccl);
    tiny_remove(run.folder);
    return test_end();
}
