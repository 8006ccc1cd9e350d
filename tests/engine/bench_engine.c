/*
 * How long steps of the engine take, for models of random weights: bench_engine [--layers N]
 * [--shape NAME] [--ranks N] [--fp8 1] [--lean 0] [--by N] [--tuning FILE] [--tune 1]
 *
 * Decode: steps of 1, 8 and 64 requests (each --by times as many) at 4,096 keys each, beside the time that the weights and
 * the cache take to be read once at the given bandwidth. Prefill: a prompt of 8,192 tokens. Steps
 * are enqueued one behind the other, and the host reads nothing between them, so the times are the
 * device's. A step of the loop is engine_step, with what the host does. With --ranks: bench_engine_ranks.c.
 */
#include "bench_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROOM = 128 }; /* positions of a request behind its keys */

static const struct {
    const char *name;
    struct config config;
} shapes[] = {
    {"8b",
     {.hidden = 4096,
      .layers = 32,
      .heads = 32,
      .kv_heads = 8,
      .head_dim = 128,
      .intermediate = 14336,
      .vocab = 128256,
      .positions = 16384,
      .rope_theta = 5e5,
      .norm_eps = 1e-5}},
    {"1b",
     {.hidden = 2048,
      .layers = 16,
      .heads = 32,
      .kv_heads = 8,
      .head_dim = 64,
      .intermediate = 8192,
      .vocab = 128256,
      .positions = 16384,
      .rope_theta = 5e5,
      .norm_eps = 1e-5}},
    {"small",
     {.hidden = 256,
      .layers = 2,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 64,
      .intermediate = 512,
      .vocab = 512,
      .positions = 16384,
      .rope_theta = 5e5,
      .norm_eps = 1e-5}},
};

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const struct tensor *fake_tensor(struct fake *f, int64_t rows, int64_t columns)
{
    struct tensor *t = &f->tensor[f->count++];
    const size_t n = (size_t)rows * (size_t)(columns ? columns : 1);
    *t = (struct tensor){.name = "random",
                         .file = "-",
                         .dtype = HEWN_BF16,
                         .rank = columns ? 2 : 1,
                         .dim = {rows, columns},
                         .data = (const unsigned char *)f->block,
                         .bytes = 2 * n};
    return t;
}

bool fake_open(struct fake *f, const struct config *shape)
{
    const struct config *c = &f->c.config;
    const int64_t rows = shape->vocab > shape->intermediate ? shape->vocab : shape->intermediate;
    const size_t most = (size_t)rows * (size_t)shape->hidden;
    uint64_t state = 1;
    *f = (struct fake){.elements = most};
    f->c.config = *shape;
    f->c.config.dense_layers = c->layers;
    f->c.config.rope_dim = f->c.config.v_dim = c->head_dim;
    f->block = malloc(most * sizeof *f->block);
    f->tensor = calloc((size_t)c->layers * 16 + 3, sizeof *f->tensor);
    f->c.layer = calloc((size_t)c->layers, sizeof *f->c.layer);
    if (!f->block || !f->tensor || !f->c.layer) return false;
    for (size_t i = 0; i < most; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        /* A random sign and fraction, sizes between 2^-7 and 2^-6. */
        f->block[i] = (uint16_t)((state >> 33 & 0x807F) | 0x3C00);
    }
    f->c.embed = fake_tensor(f, c->vocab, c->hidden);
    f->c.norm = fake_tensor(f, c->hidden, 0);
    f->c.head = fake_tensor(f, c->vocab, c->hidden);
    for (int64_t i = 0; i < c->layers; i++) {
#define LAYER_TENSOR(field, name, rows, columns, there) \
    f->c.layer[i].field = (there) ? fake_tensor(f, rows, columns) : NULL;
        LAYER_TENSORS(LAYER_TENSOR)
#undef LAYER_TENSOR
    }
    return true;
}

static int fail(const struct problem *p)
{
    fprintf(stderr, "bench_engine: %s\n", p->text);
    return 1;
}

double weight_bytes(const struct config *c)
{
    const double layer =
        (double)c->hidden * (double)((2 * c->heads + 2 * c->kv_heads) * c->head_dim) +
        3.0 * (double)c->hidden * (double)c->intermediate;
    return (c->e4m3 ? 1 : 2) * (double)c->layers * layer + 2 * (double)c->hidden * (double)c->vocab;
}

double cache_bytes(const struct config *c, int64_t slots, int64_t keys)
{
    return 4.0 * (double)(slots * keys * c->kv_heads * c->head_dim * c->layers);
}

static int start_slots(struct model *m, int64_t slots, int64_t keys, struct problem *p)
{
    /* As few as a request needs, so that no two of a step share pages. */
    const int64_t size = m->options.page_size;
    const int64_t count = keys ? (keys + ROOM + size - 1) / size : m->table_width;
    int32_t *pages = malloc((size_t)m->table_width * sizeof *pages);
    int failed = pages ? 0 : problem(p, "no memory");
    for (int64_t s = 0; !failed && s < slots; s++) {
        struct model_request r = {.pages = pages, .page_count = count, .limit = m->options.context};
        for (int64_t i = 0; i < count; i++)
            pages[i] = (int32_t)((s * count + i) % m->options.pages);
        failed = model_enter(m, s, &r, p) || model_place(m, s, (int32_t)(s % 100), keys, p);
    }
    free(pages);
    return failed;
}

int time_decode(struct model *m, int64_t slots, int64_t keys, int steps, double *out,
                struct problem *p)
{
    const double floor =
        (weight_bytes(&m->config) + cache_bytes(&m->config, slots, keys)) / bandwidth;
    struct model_state state;
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        double start;
        if (start_slots(m, slots, keys, p) || model_decode(m, slots, p) || model_read(m, &state, p))
            return -1;
        start = seconds();
        for (int i = 0; i < steps; i++)
            if (model_decode(m, slots, p)) return -1;
        if (model_read(m, &state, p)) return -1;
        if ((seconds() - start) / steps < best) best = (seconds() - start) / steps;
    }
    *out = best;
    printf(
        "decode  %3lld requests at %lld keys: %8.3f ms a step, %7.0f tokens/s, %.2f of the floor "
        "of %.3f ms\n",
        (long long)slots, (long long)keys, 1e3 * best, (double)slots / best, floor / best,
        1e3 * floor);
    fflush(stdout);
    return 0;
}

int time_prefill(struct model *m, int64_t count, double *out, struct problem *p)
{
    const struct config *c = &m->config;
    int32_t *tokens = calloc((size_t)count, sizeof *tokens);
    struct model_state state;
    double best = 1e9, flop;
    if (!tokens) return problem(p, "no memory");
    for (int64_t i = 0; i < count; i++) tokens[i] = (int32_t)(i * 7919 % c->vocab);
    for (int round = 0; round < (count > 32768 ? 2 : 3); round++) {
        const double start = seconds();
        int failed = start_slots(m, 1, 0, p);
        for (int64_t from = 0; !failed && from < count; from += m->options.chunk) {
            const int64_t left = count - from,
                          now = left < m->options.chunk ? left : m->options.chunk;
            failed = model_prefill(m, 0, tokens + from, now, from, from + now == count, p);
        }
        if (failed || model_read(m, &state, p)) {
            free(tokens);
            return -1;
        }
        if (seconds() - start < best) best = seconds() - start;
    }
    free(tokens);
    *out = best;
    flop = (weight_bytes(c) - 2.0 * (double)(c->hidden * c->vocab)) * (c->e4m3 ? 2 : 1) *
               (double)count +
           2.0 * (double)(c->heads * c->head_dim * c->layers) * (double)count * (double)count;
    printf("prefill %lld tokens in chunks of %lld: %.2f ms, %.0f tokens/s, %.0f TFLOP/s\n",
           (long long)count, (long long)m->options.chunk, 1e3 * best, (double)count / best,
           1e-12 * flop / best);
    fflush(stdout);
    return 0;
}

/* Steps of engine_step, with what the host does between them, compared with steps that are enqueued one
 * behind the other. Requests have a token each, so attention is short. */
static int time_loop(struct model *m, int64_t slots, int steps, struct problem *p)
{
    static const struct engine_events silent;
    const int32_t prompt = 1;
    const struct engine_request r = {.prompt = &prompt, .prompt_count = 1, .most = 3 * ROOM};
    struct engine *e = NULL;
    double best = 1e9, apart;
    int failed =
        time_decode(m, slots, 1, steps, &apart, p) || engine_open(m, slots, &silent, &e, p);
    for (int64_t s = 0; !failed && s < slots; s++) failed = engine_submit(e, &r, p) < 0;
    for (int64_t s = 0; !failed && s <= slots; s++) failed = engine_step(e, p) < 0;
    for (int round = 0; !failed && round < 3; round++) {
        const double start = seconds();
        for (int i = 0; !failed && i < steps; i++) failed = engine_step(e, p) < 0;
        if ((seconds() - start) / steps < best) best = (seconds() - start) / steps;
    }
    engine_close(e);
    if (!failed)
        printf("loop    %3lld requests: %8.3f ms a step, %.1f us of them between steps\n",
               (long long)slots, 1e3 * best, 1e6 * (best - apart));
    fflush(stdout);
    return failed ? -1 : 0;
}

void fake_close(struct fake *f)
{
    free(f->block);
    free(f->tensor);
    free(f->c.layer);
}

/* Of --tune: what it found. */
static void tell_tuned(const hewn_gemm_desc *d, const hewn_gemm_tuned *t)
{
    printf("tuned   %5lld x %6lld x %5lld %s: %s/%u*%u of %u, %.2f us, was %.2f\n", (long long)d->m,
           (long long)d->n, (long long)d->k, hewn_dtype_name(d->in), t->variant, t->parts,
           t->slices, t->tried, 1e6 * t->seconds, 1e6 * t->chosen_seconds);
    fflush(stdout);
}

static int run(const struct config *c, int64_t slots, int64_t keys, int64_t prompt, int64_t chunk,
               int steps, int64_t by, bool lean, const char *tuning, bool tune)
{
    const struct model_options options = {.slots = slots,
                                          .chunk = chunk,
                                          .context = keys + ROOM > prompt ? keys + ROOM : prompt,
                                          .pages = (keys + ROOM) / 64 * slots + prompt / 64 + slots,
                                          .no_lean = !lean,
                                          .tuning = tuning,
                                          .tune = tune,
                                          .tuned = tell_tuned};
    struct problem p = {"no memory"};
    struct gpu gpu;
    struct fake f;
    struct model *m = NULL;
    double start = seconds(), took;
    int failed;
    if (!fake_open(&f, c) || gpu_open(NULL, &gpu, &p)) {
        fake_close(&f);
        return fail(&p);
    }
    failed = model_open(&gpu, &f.c, &options, &m, &p);
    if (!failed) printf("opened in %.1f s, %.1f GB\n", seconds() - start, 1e-9 * (double)gpu.bytes);
    for (int64_t s = 1; !failed && s <= slots; s *= by)
        failed = time_decode(m, s, keys, steps, &took, &p) || time_decode_parts(m, s, took, &p) ||
                 time_loop(m, s, steps, &p);
    failed = failed || time_prefill(m, prompt, &took, &p) || time_parts(m, prompt, took, &p);
    if (failed) fail(&p);
    model_close(m);
    gpu_close(&gpu);
    fake_close(&f);
    return failed ? 1 : 0;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_engine [--shape 8b|1b|small] [--layers N] [--slots N] [--keys N] "
            "[--prompt N] [--chunk N] [--steps N] [--ranks N] [--fp8 1] [--lean 0] [--by N] "
            "[--tuning FILE] [--tune 1]\n"
            "N of --steps is below %d, of --by above 1.\n",
            ROOM);
    return 64;
}

int main(int argc, char **argv)
{
    const char *shape = "8b", *tuning = NULL;
    int64_t slots = 64, keys = 4096, prompt = 8192, chunk = 8192, layers = 0, steps = 20, ranks = 0,
            fp8 = 0, lean = 1, by = 8, tune = 0;
    const struct {
        const char *name;
        int64_t *value;
    } numbers[] = {{"--slots", &slots}, {"--keys", &keys},     {"--prompt", &prompt},
                   {"--chunk", &chunk}, {"--layers", &layers}, {"--steps", &steps},
                   {"--ranks", &ranks}, {"--fp8", &fp8},       {"--lean", &lean},
                   {"--by", &by},       {"--tune", &tune}};
    for (int i = 1; i < argc; i += 2) {
        const bool is_shape = !strcmp(argv[i], "--shape"), is_file = !strcmp(argv[i], "--tuning");
        size_t k = 0;
        while (k < sizeof numbers / sizeof numbers[0] && strcmp(argv[i], numbers[k].name) != 0) k++;
        if (i + 1 == argc || (!is_shape && !is_file && k == sizeof numbers / sizeof numbers[0]))
            return usage();
        if (is_shape)
            shape = argv[i + 1];
        else if (is_file)
            tuning = argv[i + 1];
        else
            *numbers[k].value = strtoll(argv[i + 1], NULL, 10);
    }
    /* A slot ends ROOM positions behind `keys`, and idle slots would be timed. */
    if (steps < 1 || steps >= ROOM || by < 2) return usage();
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct config c = shapes[i].config;
        if (strcmp(shapes[i].name, shape) != 0) continue;
        if (layers) c.layers = layers;
        c.e4m3 = fp8 != 0;
        config_plain(&c);
        printf("%s: %lld layers of %lld\n", shape, (long long)c.layers, (long long)c.hidden);
        if (c.positions < prompt) c.positions = prompt;
        if (ranks > 0) {
            const struct bench_ranks b = {c,      (int)ranks, slots,      keys,
                                          prompt, chunk,      (int)steps, tuning};
            return bench_ranks(&b);
        }
        return run(&c, slots, keys, prompt, chunk, (int)steps, by, lean != 0, tuning, tune != 0);
    }
    return usage();
}
