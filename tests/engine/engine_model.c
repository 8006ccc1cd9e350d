/* The engine's model on the device: logits of random checkpoints beside float64, bits that do not
 * depend on how the work is cut, and requests in continuous batches. */
#include "engine_model.h"
#include "world.h"

#include "engine/check.h"
#include "engine/engine.h"
#include "lib/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- logits beside float64 ---- */

struct beside {
    const char *what;
    struct tiny tiny;
    struct model_options options;
    int prompt, most;
    bool attends; /* decode's attention is engine_attend's */
};

static const char llama3[] =
    "{\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, "
    "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 16}";

static const struct beside besides[] = {
    {"a small Llama",
     {.hidden = 64,
      .layers = 2,
      .heads = 2,
      .kv_heads = 1,
      .head_dim = 64,
      .intermediate = 96,
      .vocab = 260,
      .positions = 128,
      .dtype = "BF16",
      .seed = 1},
     {.slots = 2},
     21,
     3,
     true},
    {"tied, F16, stretched rotations, chunks of 24",
     {.hidden = 128,
      .layers = 2,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 64,
      .intermediate = 200,
      .vocab = 131,
      .positions = 256,
      .tied = true,
      .rope_scaling = llama3,
      .dtype = "F16",
      .seed = 2},
     {.slots = 1, .chunk = 24, .page_size = 32},
     70,
     2,
     true},
    {"biases, F32, heads of 128, in three files",
     {.hidden = 72,
      .layers = 1,
      .heads = 3,
      .kv_heads = 3,
      .head_dim = 128,
      .intermediate = 64,
      .vocab = 300,
      .positions = 64,
      .bias = true,
      .dtype = "F32",
      .shards = 3,
      .seed = 3},
     {.slots = 3, .invariant = true},
     9,
     3,
     false},
    {"products of few rows",
     {.hidden = 256,
      .layers = 1,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 64,
      .intermediate = 512,
      .vocab = 300,
      .positions = 128,
      .o_bias = true,
      .dtype = "BF16",
      .seed = 7},
     {.slots = 3, .chunk = 24},
     40,
     3,
     true},
    {"a window of 20 keys",
     {.hidden = 64,
      .layers = 2,
      .heads = 2,
      .kv_heads = 2,
      .head_dim = 64,
      .intermediate = 64,
      .vocab = 128,
      .positions = 128,
      .window = 20,
      .dtype = "BF16",
      .seed = 4},
     {.slots = 1, .chunk = 32, .no_graphs = true},
     50,
     2,
     false},
    {"projections in e4m3, biases",
     {.hidden = 128,
      .layers = 2,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 64,
      .intermediate = 320,
      .vocab = 300,
      .positions = 128,
      .o_bias = true,
      .dtype = "BF16",
      .seed = 6,
      .e4m3 = true},
     {.slots = 2, .chunk = 24},
     40,
     3,
     true},
    {"Qwen3's type",
     {.hidden = 192,
      .layers = 2,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 64,
      .intermediate = 96,
      .vocab = 100,
      .positions = 128,
      .dtype = "BF16",
      .seed = 6,
      .type = TINY_QWEN3},
     {.slots = 1, .chunk = 24},
     40,
     3,
     true},
    {"Qwen3-MoE's type",
     {.hidden = 128,
      .layers = 2,
      .heads = 2,
      .kv_heads = 2,
      .head_dim = 128,
      .intermediate = 96,
      .vocab = 100,
      .positions = 128,
      .dtype = "BF16",
      .seed = 7,
      .type = TINY_QWEN3_MOE,
      .experts = 5,
      .choices = 2,
      .expert_width = 40},
     {.slots = 1, .chunk = 24, .page_size = 24},
     40,
     3,
     false},
    {"Mixtral's type",
     {.hidden = 64,
      .layers = 2,
      .heads = 9,
      .kv_heads = 1,
      .head_dim = 64,
      .vocab = 100,
      .positions = 128,
      .dtype = "BF16",
      .seed = 8,
      .type = TINY_MIXTRAL,
      .experts = 4,
      .choices = 2,
      .expert_width = 64},
     {.slots = 1, .chunk = 24},
     40,
     3,
     false},
    {"DeepSeek's type, Q of a vector, 8 experts",
     {.hidden = 64,
      .layers = 2,
      .heads = 3,
      .kv_heads = 3,
      .head_dim = 64,
      .intermediate = 96,
      .vocab = 128,
      .positions = 128,
      .dtype = "BF16",
      .seed = 5,
      .experts = 8,
      .choices = 3,
      .expert_width = 40,
      .q_rank = 48,
      .nope = 32,
      .v_dim = 64},
     {.slots = 2, .chunk = 24},
     40,
     3,
     false},
};

/* In shallow models with short sums nearly every number is rounded to the side that the rounded
 * reference takes. Sums over 512 elements of a latent vector are not short. Decode of 64 columns on
 * Hopper takes probabilities relative to the maximum of 64 keys of a block of 128, so theirs are
 * rounded otherwise. */
static bool rounds_apart(const struct beside *b)
{
    return b->tiny.experts || b->tiny.e4m3 || (b->tiny.head_dim == 64 && b->prompt + b->most > 64);
}

static void test_beside(const struct beside *b)
{
    struct world w;
    struct check_run run;
    struct reference_difference d;
    struct problem p = {""};
    struct rng r = {test_seed() + b->tiny.seed};
    int32_t prompt[256];
    const struct engine_sampling greedy = {.temperature = 0};
    if (!test_case("logits: %s", b->what)) return;
    random_tokens(&r, prompt, b->prompt, b->tiny.vocab);
    if (world_open(&w, &b->tiny, &b->options)) {
        CHECK((w.model->columns > 0) == b->attends, "engine_attend has %lld columns",
              (long long)w.model->columns);
        if (check_generate(w.model, 0, prompt, b->prompt, b->most, &greedy, &run, &p) == 0) {
            const int agrees = check_compare(&w.checkpoint, &run, &d, &p);
            CHECK_INT(run.count, b->prompt + b->most);
            CHECK_INT(run.reason, ENGINE_LENGTH);
            CHECK(agrees == 1, "%s off by %.5f (rms) and %.5f at [%zu]; rounding costs %.5f, %.5f",
                  agrees < 0 ? p.text : "", d.rms, d.most, d.worst, d.rms_rounded, d.most_rounded);
            CHECK(rounds_apart(b) || d.rms_between <= d.rms_rounded / 2,
                  "%.5f (rms) from the rounded reference", d.rms_between);
            if (test_verbose())
                printf("off by %.5f (rms) and %.5f; rounding costs %.5f, %.5f; %.7f between\n",
                       d.rms, d.most, d.rms_rounded, d.most_rounded, d.rms_between);
            check_free(&run);
        } else {
            CHECK(false, "%s", p.text);
        }
    }
    world_close(&w);
}

/* ---- bits ---- */

static struct tiny plain, rounded;

/* The last layer has experts. */
static const struct tiny latent = {.hidden = 64,
                                   .layers = 2,
                                   .heads = 2,
                                   .kv_heads = 2,
                                   .head_dim = 64,
                                   .intermediate = 64,
                                   .vocab = 128,
                                   .positions = 128,
                                   .dtype = "BF16",
                                   .seed = 8,
                                   .experts = 6,
                                   .choices = 2,
                                   .expert_width = 32,
                                   .nope = 64,
                                   .v_dim = 32};

/* The logits of a run with these options, to be freed. */
static float *logits_with(const struct tiny *t, const struct model_options *o,
                          const int32_t *prompt, int count, int most)
{
    struct world w;
    struct check_run run = {.tokens = NULL};
    struct problem p = {""};
    const struct engine_sampling greedy = {.temperature = 0};
    float *logits = NULL;
    if (world_open(&w, t, o)) {
        CHECK(check_generate(w.model, o->slots - 1, prompt, count, most, &greedy, &run, &p) == 0,
              "%s", p.text);
        logits = run.logits;
        free(run.tokens);
    }
    world_close(&w);
    return logits;
}

static void test_bits(const char *what, const struct tiny *t)
{
    const struct model_options whole = {.slots = 1, .chunk = 64, .invariant = true};
    const struct {
        const char *what;
        struct model_options options;
    } others[] = {
        {"chunks of 16", {.slots = 1, .chunk = 16, .invariant = true}},
        {"chunks of 7", {.slots = 1, .chunk = 7, .invariant = true, .page_size = 16}},
        {"another slot, no graphs",
         {.slots = 4, .chunk = 64, .invariant = true, .no_graphs = true}},
    };
    enum { PROMPT = 41, MOST = 2 };
    struct rng r = {test_seed()};
    int32_t prompt[PROMPT];
    float *want = NULL;
    random_tokens(&r, prompt, PROMPT, t->vocab);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const size_t count = MOST * (size_t)t->vocab;
        size_t differ = 0;
        float *got;
        if (!test_case("bits of %s: %s beside one chunk", what, others[i].what)) continue;
        if (!want) want = logits_with(t, &whole, prompt, PROMPT, MOST);
        got = logits_with(t, &others[i].options, prompt, PROMPT, MOST);
        for (size_t k = 0; want && got && k < count; k++)
            differ += want[k] < got[k] || want[k] > got[k];
        CHECK(want && got && !differ, "%zu of %zu logits differ", differ, count);
        free(got);
    }
    free(want);
}

/* ---- requests ---- */

enum { STREAMS_MOST = 64, LONGEST = 40 };

struct heard {
    int32_t token[LONGEST];
    int count, ends, reason;
    int64_t number;
};

static void on_token(void *user, int32_t token)
{
    struct heard *h = user;
    if (h->count < LONGEST) h->token[h->count] = token;
    h->count++;
}

static void on_end(void *user, int reason)
{
    struct heard *h = user;
    h->reason = reason;
    h->ends++;
}

static const struct engine_events events = {on_token, on_end};

static void make_request(int i, int32_t *prompt, struct engine_request *r)
{
    struct rng random = {test_seed() + 100 + (uint64_t)i};
    const int count = 12 + (int)rng_below(&random, 24);
    random_tokens(&random, prompt, count, plain.vocab);
    *r = (struct engine_request){.prompt = prompt,
                                 .prompt_count = count,
                                 .most = 3 + (int64_t)rng_below(&random, 4),
                                 .temperature = i % 6 ? 4 : 0,
                                 .top_p = i % 2 ? 0.9f : 1,
                                 .seed = (uint64_t)i};
}

/* Runs requests first..first + count - 1 together. */
static void run_requests(struct model *m, int first, int count, struct heard *heard)
{
    struct problem p = {""};
    struct engine *e = NULL;
    int64_t left = 1;
    const int opened = engine_open(m, STREAMS_MOST, &events, &e, &p);
    CHECK(opened == 0, "%s", p.text);
    if (opened) return;
    for (int i = first; i < first + count; i++) {
        int32_t prompt[LONGEST];
        struct engine_request r;
        make_request(i, prompt, &r);
        r.user = &heard[i];
        CHECK(engine_submit(e, &r, &p) > 0, "%s", p.text);
    }
    for (int steps = 0; left > 0 && steps < 40 * count + 60; steps++) left = engine_step(e, &p);
    CHECK(left == 0, "%lld requests are left: %s", (long long)left, p.text);
    CHECK_INT(engine_free_pages(e), m->options.pages);
    engine_close(e);
}

static void test_streams(const char *what, const struct tiny *t, int count)
{
    /* Some of the requests have no slot or no pages at first, so that they wait and enter in turn. */
    const int64_t slots = count < 8 ? 4 : count;
    const struct model_options o = {.slots = slots,
                                    .chunk = 16,
                                    .invariant = true,
                                    .page_size = 16,
                                    .pages = slots * 9 / 4,
                                    .context = 64};
    static struct heard together[STREAMS_MOST], alone[STREAMS_MOST];
    struct world w;
    memset(together, 0, sizeof together);
    memset(alone, 0, sizeof alone);
    if (!test_case("%d requests of %s together draw what each draws alone", count, what)) return;
    if (world_open(&w, t, &o)) {
        CHECK_INT(w.model->columns, 0); /* its parts of a row depend on the others */
        run_requests(w.model, 0, count, together);
        for (int i = 0; i < count; i++) {
            int32_t prompt[LONGEST];
            struct engine_request r;
            make_request(i, prompt, &r);
            run_requests(w.model, i, 1, alone);
            CHECK_INT(together[i].ends, 1);
            CHECK_INT(together[i].reason, ENGINE_LENGTH);
            CHECK_INT(together[i].count, r.most);
            CHECK(together[i].count == alone[i].count &&
                      !memcmp(together[i].token, alone[i].token,
                              (size_t)alone[i].count * sizeof *alone[i].token),
                  "request %d: %d %d.. together, %d %d.. alone", i, together[i].token[0],
                  together[i].token[1], alone[i].token[0], alone[i].token[1]);
        }
    }
    world_close(&w);
}

static void refused(struct engine *e, const struct engine_request *r, const char *rule)
{
    struct problem p = {""};
    CHECK(engine_submit(e, r, &p) == -1, "was accepted");
    CHECK_TEXT(p.text, rule);
}

static void test_requests(void)
{
    const struct model_options o = {.slots = 2, .chunk = 16, .page_size = 16, .pages = 3};
    static struct heard heard[3];
    int32_t prompt[LONGEST] = {0};
    struct engine_request r = {.prompt = prompt, .prompt_count = 20, .most = 20};
    struct problem p = {""};
    struct engine *e = NULL;
    struct world w;
    if (!test_case("requests that are refused, wait or are cancelled")) return;
    memset(heard, 0, sizeof heard);
    if (world_open(&w, &plain, &o) && engine_open(w.model, 2, &events, &e, &p) == 0) {
        struct engine_request bad = r;
        bad.prompt_count = 0;
        refused(e, &bad, "a prompt of 0 tokens: the context has 1 to 128");
        bad = r;
        bad.most = 60;
        refused(e, &bad, "a request of 79 positions needs 5 pages; the cache has 3");
        prompt[3] = 128;
        refused(e, &r, "prompt[3] is 128, outside the vocabulary of 128");
        prompt[3] = 0;
        for (int i = 0; i < 2; i++) {
            r.user = &heard[i];
            heard[i].number = engine_submit(e, &r, &p);
        }
        refused(e, &r, "2 requests wait already");
        CHECK_INT(engine_step(e, &p), 2); /* the first in its slot, half of its prompt computed */
        CHECK_INT(engine_waiting(e), 1);
        engine_cancel(e, heard[1].number);
        CHECK_INT(engine_step(e, &p), 1); /* the second never entered; the first has two tokens */
        CHECK_INT(heard[1].reason, ENGINE_CANCELLED);
        CHECK_INT(heard[0].count, 2);
        engine_cancel(e, heard[0].number);
        CHECK_INT(engine_step(e, &p), 0);
        CHECK_INT(heard[0].reason, ENGINE_CANCELLED);
        CHECK_INT(heard[0].ends + heard[1].ends, 2);
        CHECK_INT(engine_free_pages(e), 3);
        r.user = &heard[2];
        heard[2].number = engine_submit(e, &r, &p);
        CHECK_INT(engine_step(e, &p), 1);
        engine_cancel(e, heard[2].number); /* within its prompt: nothing was drawn */
        CHECK_INT(engine_step(e, &p), 0);
        CHECK_INT(heard[2].count, 0);
        CHECK_INT(engine_free_pages(e), 3);
    }
    engine_close(e);
    world_close(&w);
}

int main(int argc, char **argv)
{
    const int asked = suite_number(&argc, argv, "--streams");
    test_begin("engine_model", argc, argv);
    plain = rounded = tiny_llama(7);
    rounded.e4m3 = true;
    if (asked > STREAMS_MOST || !world_where("engine_model")) return 1;
    for (size_t i = 0; i < sizeof besides / sizeof besides[0]; i++) test_beside(&besides[i]);
    test_bits("a Llama", &plain);
    test_bits("DeepSeek's type", &latent);
    test_bits("a Llama in e4m3", &rounded);
    test_streams("a Llama", &plain, asked ? asked : 6);
    test_streams("DeepSeek's type", &latent, asked ? asked : 6);
    test_requests();
    test_tuning();
    return test_end();
}
