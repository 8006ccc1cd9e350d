/*
 * A prompt's time, and a step's, beside the sum of its kernels, each timed alone. Of a prompt, which one chunk holds, each
 * kind of launch of the first layer is enqueued a few times behind itself; of a step, that of each layer behind that
 * of the one before, in a graph. With e4m3 a product's rounding of rows, norm or SwiGLU counts as the product. Rope and
 * attention are one kind. The head's product and the draw come once a step.
 */
#include "bench_engine.h"

#include "engine/model_parts.h"

#include <stdio.h>

enum { REPEATS = 8 };

/* X(name, times in a layer); 0: once a step, behind the layers. */
#define LAYER_PARTS(X) X(norm, 2) X(qkv, 1) X(attention, 1) X(o, 1) X(inner, 1) X(down, 1)
#define PARTS(X)       LAYER_PARTS(X) X(head, 0) X(sample, 0)

enum {
#define PART(name, times) PART_##name,
    PARTS(PART)
#undef PART
        PART_COUNT,
    LAYER_PART_COUNT = PART_head
};

static int norm(const struct model *m, int64_t rows, const struct layer_weights *w,
                struct problem *p)
{
    const struct engine_norm args = {.x = m->stream,
                                     .w = w->norm_post,
                                     .out = m->normed,
                                     .rows = rows,
                                     .x_rows = rows,
                                     .hidden = m->config.hidden,
                                     .eps = m->config.norm_eps};
    hewn_error err;
    return model_passed(engine_norm(&m->kernels, &args, m->gpu->stream, &err), &err, p);
}

static int sample(const struct model *m, const struct row_plans *plans, struct problem *p)
{
    const struct engine_sample args = {.logits = m->logits,
                                       .slots = &m->slots,
                                       .rows = plans->rows,
                                       .vocab = m->config.vocab,
                                       .row = m->logits_row,
                                       .type = HEWN_F32};
    hewn_error err;
    return model_passed(engine_sample(&m->kernels, &args, m->gpu->stream, &err), &err, p);
}

static int launch(const struct model *m, const struct rows *r, int part, int64_t layer,
                  struct problem *p)
{
    const struct layer_weights *w = &m->layer[layer];
    const struct row_plans *plans = r->plans;
    struct lean_layer l;
    if (m->config.e4m3) switch (part) {
        case PART_qkv: return e4m3_project(m, plans, w, E4M3_QKV, p);
        case PART_o: return e4m3_project(m, plans, w, E4M3_O, p);
        case PART_inner: return e4m3_project(m, plans, w, E4M3_INNER, p);
        case PART_down: return e4m3_project(m, plans, w, E4M3_DOWN, p);
        default: break;
        }
    if (plans->lean && (part == PART_qkv || part == PART_o)) {
        model_lean(m, w, &l);
        return model_multiply(m, plans->rows, part == PART_qkv ? &l.qkv : &l.o, p);
    }
    switch (part) {
    case PART_norm: return norm(m, plans->rows, w, p);
    case PART_qkv: return model_product(m, &plans->qkv, m->normed, w->qkv, 0, 0, m->qkv, p);
    case PART_attention: return model_attend(m, r, w, p);
    case PART_o: return model_product(m, &plans->o, m->mixed, w->o, 0, m->stream, m->stream, p);
    case PART_inner: return model_product(m, &plans->inner, m->normed, w->inner, 0, 0, m->inner, p);
    case PART_down:
        return model_product(m, &plans->down, m->inner, w->down, 0, m->stream, m->stream, p);
    case PART_head: return model_product(m, &plans->head, m->normed, m->head, 0, 0, m->logits, p);
    default: return sample(m, plans, p);
    }
}

static int wait(const struct model *m, struct problem *p)
{
    return gpu_check(m->gpu, m->gpu->stream_wait(m->gpu->stream), "a launch", p);
}

/* The best of three rounds, a launch's seconds. */
static int time_part(const struct model *m, const struct rows *r, int part, double *out,
                     struct problem *p)
{
    *out = 1e9;
    for (int round = 0; round < 3; round++) {
        double start;
        if (wait(m, p)) return -1;
        start = seconds();
        for (int i = 0; i < REPEATS; i++)
            if (launch(m, r, part, 0, p)) return -1;
        if (wait(m, p)) return -1;
        if ((seconds() - start) / REPEATS < *out) *out = (seconds() - start) / REPEATS;
    }
    return 0;
}

static const struct {
    const char *name;
    int times;
} parts[] = {
#define PART(name, times) {#name, times},
    PARTS(PART)
#undef PART
};

/* A launch of each layer, behind one another: a launch's seconds, the best of five graphs. */
static int time_layers(const struct model *m, const struct rows *r, int part, double *out,
                       struct problem *p)
{
    const struct gpu *g = m->gpu;
    gpu_graph graph = NULL;
    gpu_graph_exec exec = NULL;
    int failed = 0;
    *out = 1e9;
    if (gpu_check(g, g->capture_begin(g->stream, 1), "a capture", p)) return -1;
    for (int64_t i = 0; !failed && i < m->config.layers; i++) failed = launch(m, r, part, i, p);
    if (gpu_check(g, g->capture_end(g->stream, &graph), "a capture", p) || failed ||
        gpu_check(g, g->graph_make(&exec, graph, 0), "a graph", p))
        return -1;
    for (int round = 0; !failed && round < 5; round++) {
        double start;
        if (wait(m, p)) return -1;
        start = seconds();
        failed = gpu_check(g, g->graph_launch(exec, g->stream), "a graph", p) || wait(m, p);
        if ((seconds() - start) / (double)m->config.layers < *out)
            *out = (seconds() - start) / (double)m->config.layers;
    }
    g->graph_exec_destroy(exec);
    g->graph_destroy(graph);
    return failed ? -1 : 0;
}

/* Norms in a layer: e4m3's and those of few rows are in products. */
static int times(const struct model *m, const struct rows *r, int part)
{
    if (part == PART_norm && m->config.e4m3) return 0;
    return part == PART_norm && r->plans->lean ? 1 : parts[part].times;
}

int time_decode_parts(struct model *m, int64_t slots, double whole, struct problem *p)
{
    struct rows r = {.plans = m->decode,
                     .tokens = m->slots.tokens,
                     .positions = m->slots.positions,
                     .lengths = m->slots.lengths,
                     .table = m->table};
    double layers = 0, once = 0;
    if (m->ranks || m->options.no_graphs) return 0;
    while (r.plans->rows < slots) r.plans++;
    printf("        alone, us:");
    for (int i = 0; i < PART_COUNT; i++) {
        double took;
        if (time_layers(m, &r, i, &took, p)) return -1;
        printf(" %s %.1f%s", parts[i].name, 1e6 * took, i + 1 < PART_COUNT ? "," : "");
        layers += times(m, &r, i) * took;
        if (!parts[i].times) once += took;
    }
    layers *= (double)m->config.layers;
    printf("; layers %.3f ms, %.2f of the step's time; all %.3f\n", 1e3 * layers, layers / whole,
           1e3 * (layers + once));
    fflush(stdout);
    return 0;
}

int time_parts(struct model *m, int64_t count, double whole, struct problem *p)
{
    struct rows r = {.plans = m->prefill,
                     .tokens = m->input.tokens,
                     .positions = m->input.positions,
                     .sequences = m->input.sequences,
                     .lengths = m->input.length,
                     .table = m->table,
                     .offsets = m->input.offsets};
    double sum = 0;
    if (m->ranks || count > m->options.chunk) return 0;
    while (r.plans->rows < count) r.plans++;
    printf("        alone, us:");
    for (int i = 0; i < LAYER_PART_COUNT; i++) {
        double took;
        if (time_part(m, &r, i, &took, p)) return -1;
        printf(" %s %.1f%s", parts[i].name, 1e6 * took, i + 1 < LAYER_PART_COUNT ? "," : "");
        sum += times(m, &r, i) * took;
    }
    sum *= (double)m->config.layers;
    printf("; all layers' %.2f ms, %.2f of the prompt's time\n", 1e3 * sum, sum / whole);
    fflush(stdout);
    return 0;
}
