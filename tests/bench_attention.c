/*
 * Attention on a GPU beside cuDNN: forward, bf16, the eighteen rows of the README's table.
 *
 *     bench_attention [peer.py]
 *
 * The peer runs as a process of its own, bench_attention.py through PyTorch, once before ours and once
 * after; its time is the mean of the two. Random data, buffers rotated past L2, warmed up, medians over
 * single launches timed by events, as the peer's are. FLOP: 4 * batch * heads * length^2 * dim, half of
 * it under the causal mask.
 */
#include "device.h"
#include "harness.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 18, SETS = 16, LAUNCHES = 200 };

struct row {
    int64_t dim, heads, causal, length, batch;
    double ours, peer[2]; /* microseconds */
};

struct buffers {
    int sets;
    hewn_deviceptr q[SETS], k[SETS], v[SETS], o[SETS];
};

struct events {
    int (*create)(void **, unsigned);
    int (*record)(void *, void *);
    int (*elapsed)(float *, void *, void *);
    void *at[LAUNCHES + 1];
};

static void rows_fill(struct row rows[ROWS])
{
    static const int64_t dims[3][2] = {{64, 32}, {128, 16}, {256, 8}};
    static const int64_t shapes[3][2] = {{1024, 16}, {4096, 4}, {16384, 1}};
    for (int i = 0; i < ROWS; i++)
        rows[i] = (struct row){.dim = dims[i / 6][0],
                               .heads = dims[i / 6][1],
                               .causal = i / 3 % 2,
                               .length = shapes[i % 3][0],
                               .batch = shapes[i % 3][1],
                               .ours = NAN,
                               .peer = {NAN, NAN}};
}

/* What the peer's script prints, into peer[pass]; rows that it does not name stay NaN. */
static void ask_peer(const char *script, struct row rows[ROWS], int pass)
{
    char command[1024], line[256];
    FILE *in;
    snprintf(command, sizeof command, "python3 '%s' 2>/dev/null", script);
    in = popen(command, "r");
    while (in && fgets(line, sizeof line, in)) {
        long long dim, causal, length, batch;
        double us;
        if (line[0] == '#' && pass == 0) printf("peer: %s", line + 2);
        if (sscanf(line, "%lld %lld %lld %lld %lf", &dim, &causal, &length, &batch, &us) != 5)
            continue;
        for (int i = 0; i < ROWS; i++)
            if (rows[i].dim == dim && rows[i].causal == causal && rows[i].length == length &&
                rows[i].batch == batch)
                rows[i].peer[pass] = us;
    }
    if (in) pclose(in);
}

enum { NORMALS = 65536 };
static uint16_t
    normals[NORMALS]; /* drawn once: Box and Muller for every element would take minutes */

static void normals_draw(void)
{
    struct rng r = {test_seed()};
    for (int i = 0; i < NORMALS; i++) {
        double u = ((double)(rng_next(&r) >> 11) + 1) * 0x1p-53;
        double angle = 2 * 3.14159265358979 * (double)(rng_next(&r) >> 11) * 0x1p-53;
        normals[i] = double_to_bf16(sqrt(-2 * log(u)) * cos(angle));
    }
}

static bool buffers_open(struct device *dev, const struct row *r, struct buffers *b)
{
    size_t count = (size_t)(r->batch * r->heads * r->length * r->dim);
    uint16_t *host = malloc(count * sizeof *host);
    struct rng rng = {test_seed()};
    b->sets = (int)(200000000 / (8 * count)) + 1;
    if (b->sets > SETS) b->sets = SETS;
    for (int i = 0; host && i < b->sets; i++) {
        hewn_deviceptr *all[] = {&b->q[i], &b->k[i], &b->v[i], &b->o[i]};
        for (int j = 0; j < 4; j++) {
            if (dev->mem_alloc(all[j], count * sizeof *host)) {
                free(host);
                return false;
            }
            for (size_t e = 0; i == 0 && j < 3 && e < count; e++)
                host[e] = normals[rng_next(&rng) >> 48];
            if (j < 3) dev->to_device(*all[j], host, count * sizeof *host);
        }
    }
    free(host);
    return host != NULL;
}

static void buffers_close(struct device *dev, struct buffers *b)
{
    for (int i = 0; i < b->sets; i++) {
        dev->mem_free(b->q[i]);
        dev->mem_free(b->k[i]);
        dev->mem_free(b->v[i]);
        dev->mem_free(b->o[i]);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_launch(struct device *dev, const struct events *e, const struct row *r,
                            const hewn_attention_plan *plan, const struct buffers *b)
{
    double flop = 4.0 * (double)(r->batch * r->heads) * (double)(r->length * r->length) *
                  (double)r->dim * (r->causal ? 0.5 : 1);
    int count = (int)fmin(LAUNCHES, fmax(15, 0.06 / (flop / 5e14)));
    double us[LAUNCHES];
    for (int i = -count / 4 - 2; i <= count; i++) {
        int set = (i + 1000 * b->sets) % b->sets;
        hewn_attention_args args = {.struct_size = sizeof args,
                                    .q = b->q[set],
                                    .o = b->o[set],
                                    .source = {{.k = b->k[set], .v = b->v[set]}}};
        if (i >= 0 && e->record(e->at[i], NULL)) return NAN;
        if (i < count && hewn_attention_run(plan, &args, NULL, NULL)) return NAN;
    }
    if (dev->synchronize()) return NAN;
    for (int i = 0; i < count; i++) {
        float ms = NAN;
        e->elapsed(&ms, e->at[i], e->at[i + 1]);
        us[i] = 1e3 * (double)ms;
    }
    qsort(us, (size_t)count, sizeof *us, ascending);
    return us[count / 2];
}

static void bench_row(struct device *dev, const struct events *e, struct row *r)
{
    hewn_attention_desc desc = {.struct_size = sizeof desc,
                                .batch = r->batch,
                                .q_heads = r->heads,
                                .kv_heads = r->heads,
                                .qk_dim = r->dim,
                                .q_length = r->length,
                                .in = HEWN_BF16,
                                .out = HEWN_BF16,
                                .layout = HEWN_BHSD,
                                .splits = 1,
                                .sources = 1,
                                .source = {{.length = r->length,
                                            .causal = (int)r->causal,
                                            .window_left = -1,
                                            .window_right = -1}}};
    hewn_attention_plan *plan = NULL;
    hewn_error err = {0};
    struct buffers b = {0};
    if (hewn_attention_plan_create(dev->context, &desc, &plan, &err))
        printf("plan: %s\n", err.message);
    else if (buffers_open(dev, r, &b))
        r->ours = median_launch(dev, e, r, plan, &b);
    buffers_close(dev, &b);
    hewn_attention_plan_destroy(plan);
}

static void print_rows(const struct row rows[ROWS])
{
    double logs = 0, least = INFINITY;
    int compared = 0;
    printf("%4s %7s %12s  %10s %8s  %10s %8s  %6s\n", "dim", "mask", "length", "hewn us", "TFLOP/s",
           "cuDNN us", "TFLOP/s", "ratio");
    for (int i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        double peer = 0.5 * (r->peer[0] + r->peer[1]), ratio = peer / r->ours;
        double flop = 4e-6 * (double)(r->batch * r->heads) * (double)(r->length * r->length) *
                      (double)r->dim * (r->causal ? 0.5 : 1);
        printf("%4lld %7s %7lld x %2lld  %10.1f %8.1f  %10.1f %8.1f  %6.3f\n", (long long)r->dim,
               r->causal ? "causal" : "full", (long long)r->length, (long long)r->batch, r->ours,
               flop / r->ours, peer, flop / peer, ratio);
        if (!(ratio > 0)) continue;
        logs += log(ratio);
        least = fmin(least, ratio);
        compared++;
    }
    if (compared)
        printf("ratio: cuDNN's time / hewn's; geometric mean %.3f, least %.3f\n",
               exp(logs / compared), least);
}

int main(int argc, char **argv)
{
    struct device dev;
    hewn_error err = {0};
    struct events e = {0};
    struct row rows[ROWS];
    void *symbol[3];
    static const char *const names[] = {"cuEventCreate", "cuEventRecord", "cuEventElapsedTime"};
    if (!device_open(&dev, &err)) {
        fprintf(stderr, "bench_attention: %s\n", err.message);
        return 1;
    }
    if (dev.info.simulated) {
        printf("bench_attention: no GPU here\n");
        device_close(&dev);
        return 0;
    }
    for (int i = 0; i < 3; i++) symbol[i] = hewn_driver_symbol(dev.driver, names[i]);
    memcpy(&e.create, &symbol[0], sizeof symbol[0]);
    memcpy(&e.record, &symbol[1], sizeof symbol[1]);
    memcpy(&e.elapsed, &symbol[2], sizeof symbol[2]);
    for (int i = 0; i <= LAUNCHES; i++)
        if (!e.create || e.create(&e.at[i], 0)) return 1;
    rows_fill(rows);
    normals_draw();
    printf("attention, forward, bf16, on %s\n", dev.info.name);
    if (argc > 1) ask_peer(argv[1], rows, 0);
    for (int i = 0; i < ROWS; i++) bench_row(&dev, &e, &rows[i]);
    if (argc > 1) ask_peer(argv[1], rows, 1);
    print_rows(rows);
    device_close(&dev);
    return 0;
}
