/*
 * Grouped products on a GPU, e4m3 with block scales beside a peer's, or bf16.
 *
 *   bench_grouped [--all] [--among LIST] [--bf16] [--peer LIBRARY] [--first I] [--rows N] [--step N]
 *
 * --bf16: bf16 without scales; the numbers of rows of the groups are printed, so that tests/bench/grouped_torch.py
 * can time PyTorch on the same. --all times every variant and prints its microseconds; without it, the chosen one;
 * --among: of these those that LIST, "64x128,64x128s4", has. --first, --rows: from row
 * I on, up to row N; --step: every Nth of them. --peer: a library with
 *
 *   int grouped_peer(int counts, int groups, int m, int expected, int n, int k, const unsigned long long at[6],
 *                    void *stream, char *what, size_t size)
 *
 * which launches the same product: at = a, b, d, scale_a, scale_b, layout; all contiguous as hewn.h says; `layout`
 * int32: with counts 1, rows of each group, with 0 for each row of A its group or -1; 2: one plain product. It
 * returns 0, or a number that says why not, and names its kernel in `what`. Outputs are compared first. A time is a
 * launch's in a graph of several; plain products rotate their operands past L2. The rows are DeepGEMM's own (its
 * tests), and ragged groups; groups' rows vary by 30 % around what is expected, or, ragged, between none and four
 * times that; they begin at multiples of 128, or planes have 4,096.
 */
#include "gpu.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN = 128,
    PLANE = 4096,
    LAUNCHES = 8,
    SETS = 32, /* of operands of a plain product */
    BLOCK_BYTES = 1 << 22,
    SAMPLED = 8,
    PEER_NAME = 32
};

typedef int peer_run(int counts, int groups, int m, int expected, int n, int k,
                     const unsigned long long at[6], void *stream, char *what, size_t size);

struct row {
    int kind, groups, expected, n, k, ragged;
};

#define FOUR_SHAPES(kind, groups, expected)                                           \
    {kind, groups, expected, 6144, 7168, 0}, {kind, groups, expected, 7168, 3072, 0}, \
        {kind, groups, expected, 4096, 4096, 0},                                      \
    {                                                                                 \
        kind, groups, expected, 4096, 2048, 0                                         \
    }

#define PLAIN(m)                                                                                 \
    {HEWN_GROUPED_PLANES, 1, m, 2112, 7168, 0}, {HEWN_GROUPED_PLANES, 1, m, 576, 7168, 0},       \
        {HEWN_GROUPED_PLANES, 1, m, 24576, 1536, 0}, {HEWN_GROUPED_PLANES, 1, m, 32768, 512, 0}, \
        {HEWN_GROUPED_PLANES, 1, m, 7168, 16384, 0}, {HEWN_GROUPED_PLANES, 1, m, 4096, 7168, 0}, \
    {                                                                                            \
        HEWN_GROUPED_PLANES, 1, m, 7168, 2048, 0                                                 \
    }

static const struct row rows[] = {
    FOUR_SHAPES(HEWN_GROUPED_OFFSETS, 4, 8192),
    FOUR_SHAPES(HEWN_GROUPED_OFFSETS, 8, 4096),
    FOUR_SHAPES(HEWN_GROUPED_COUNTS, 32, 192),
    FOUR_SHAPES(HEWN_GROUPED_COUNTS, 6, 1024),
    FOUR_SHAPES(HEWN_GROUPED_COUNTS, 32, 20),
    FOUR_SHAPES(HEWN_GROUPED_COUNTS, 6, 20),
    {HEWN_GROUPED_OFFSETS, 32, 700, 4096, 7168, 1},
    {HEWN_GROUPED_OFFSETS, 32, 700, 7168, 2048, 1},
    {HEWN_GROUPED_OFFSETS, 64, 260, 4096, 7168, 1},
    {HEWN_GROUPED_OFFSETS, 64, 260, 7168, 2048, 1},
    {HEWN_GROUPED_OFFSETS, 128, 60, 4096, 7168, 1},
    {HEWN_GROUPED_OFFSETS, 128, 60, 7168, 2048, 1},
    PLAIN(1),
    PLAIN(128),
    PLAIN(4096),
};

enum kinds { GROUPED, PLAIN_ONE, KINDS };

/* A row of the table: its groups, its memory. */
struct work {
    const struct row *r;
    int m, planes, real; /* rows of a plane; rows that count */
    int sets;
    int first[256], count[256];
    int32_t *listed, *layout; /* ours; the peer's */
    size_t listed_count, layout_count;
    hewn_deviceptr a, b, d, scale_a, scale_b, on_device, layout_on_device;
    int in;                             /* hewn_dtype */
    uint64_t a_bytes, b_bytes, d_bytes; /* of a set */
    hewn_grouped_desc desc;
};

static uint64_t up(uint64_t x, uint64_t to)
{
    return (x + to - 1) / to * to;
}

/* ---- data -- */

static int some_count(const struct row *r, struct rng *g)
{
    double u = ((double)rng_unit(g) + 1) / 2;
    if (r->kind == HEWN_GROUPED_PLANES) return r->expected;
    if (r->ragged) return (int)(4 * r->expected * u * u * u);
    return (int)(r->expected * (0.7 + 0.6 * u));
}

static void make_groups(struct work *w)
{
    const struct row *r = w->r;
    struct rng g = {(uint64_t)(r->groups * 131 + r->expected * 7 + r->n + r->k)};
    int at = 0;
    w->planes = r->kind == HEWN_GROUPED_COUNTS ? r->groups : 1;
    w->listed_count = (size_t)r->groups + (r->kind == HEWN_GROUPED_OFFSETS);
    w->listed = gpu_host(w->listed_count * sizeof *w->listed);
    w->real = 0;
    for (int i = 0; i < r->groups; i++) {
        w->count[i] = some_count(r, &g);
        w->first[i] = w->planes > 1 ? 0 : at;
        w->real += w->count[i];
        if (w->planes > 1)
            w->listed[i] = w->count[i];
        else
            w->listed[i + 1] = at + w->count[i];
        at = (int)up((uint64_t)at + (uint64_t)w->count[i], ALIGN);
    }
    if (w->planes == 1) w->listed[0] = 0;
    w->m = r->kind == HEWN_GROUPED_PLANES ? r->expected : w->planes > 1 ? PLANE : at;
    w->layout_count = (size_t)(w->planes > 1 ? r->groups : at);
    w->layout = gpu_host(w->layout_count * sizeof *w->layout);
    memset(w->layout, 0xFF, w->layout_count * sizeof *w->layout);
    for (int i = 0; i < r->groups; i++)
        for (int j = 0; j < (w->planes > 1 ? 1 : w->count[i]); j++)
            w->layout[w->planes > 1 ? i : w->first[i] + j] = w->planes > 1 ? w->count[i] : i;
}

static hewn_deviceptr numbers(struct gpu *g, int dtype, uint64_t count, uint64_t seed)
{
    static unsigned char block[BLOCK_BYTES];
    struct rng r = {seed};
    const size_t element = hewn_dtype_size(dtype);
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        block[i] = (unsigned char)((rng_next(&r) & 0x8F) | 0x20 | (rng_next(&r) & 0x10));
    for (size_t i = 0; dtype != HEWN_E4M3 && i < BLOCK_BYTES; i += element)
        number_store(dtype, 2 * (double)rng_unit(&r) - 1, block + i);
    return gpu_repeat(g, block, BLOCK_BYTES, count * element);
}

static hewn_deviceptr scales(struct gpu *g, uint64_t count, uint64_t seed)
{
    static float block[BLOCK_BYTES / 4];
    struct rng r = {seed};
    for (size_t i = 0; i < BLOCK_BYTES / 4; i++) block[i] = 0.02F + 0.01F * rng_unit(&r);
    return gpu_repeat(g, block, BLOCK_BYTES, 4 * count);
}

static void make_work(struct gpu *g, struct work *w)
{
    const struct row *r = w->r;
    make_groups(w);
    uint64_t m = (uint64_t)w->m, n = (uint64_t)r->n, k = (uint64_t)r->k, blocks = up(k, 128) / 128;
    uint64_t planes = (uint64_t)w->planes, groups = (uint64_t)r->groups;
    w->d_bytes = planes * m * n * 2;
    w->a_bytes = up(planes * m * k * hewn_dtype_size(w->in), 256);
    w->b_bytes = up(groups * n * k * hewn_dtype_size(w->in), 256);
    uint64_t l2 = (uint64_t)g->d.info.l2_bytes,
             sets = 3 * l2 / (w->a_bytes + w->b_bytes + w->d_bytes) + 2;
    w->sets = r->kind != HEWN_GROUPED_PLANES || g->d.info.simulated ? 1
              : sets < SETS                                         ? (int)sets
                                                                    : SETS;
    sets = (uint64_t)w->sets;
    w->a = numbers(g, w->in, sets * w->a_bytes / hewn_dtype_size(w->in), 1);
    w->b = numbers(g, w->in, sets * w->b_bytes / hewn_dtype_size(w->in), 2);
    w->d = gpu_allocate(g, sets * w->d_bytes);
    w->scale_a = scales(g, planes * blocks * up(m, 4), 3);
    w->scale_b = scales(g, groups * blocks * up(n, 128) / 128, 4);
    w->on_device = gpu_upload(g, w->listed, w->listed_count * sizeof *w->listed);
    w->layout_on_device = gpu_upload(g, w->layout, w->layout_count * sizeof *w->layout);
    w->desc = (hewn_grouped_desc){.struct_size = sizeof w->desc,
                                  .groups = r->groups,
                                  .m = w->m,
                                  .n = r->n,
                                  .k = r->k,
                                  .expected_m = r->expected,
                                  .align = r->kind == HEWN_GROUPED_OFFSETS ? ALIGN : 0,
                                  .in = w->in,
                                  .out = HEWN_BF16,
                                  .kind = r->kind};
}

static void free_work(struct gpu *g, struct work *w)
{
    const hewn_deviceptr list[] = {
        w->a, w->b, w->d, w->scale_a, w->scale_b, w->on_device, w->layout_on_device};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        gpu_need(g->d.mem_free(list[i]), "free");
    free(w->listed), free(w->layout);
}

/* ---- runs -- */

static int launches_of(const struct work *w)
{
    return w->sets > LAUNCHES ? w->sets : LAUNCHES;
}

static double time_ours(struct gpu *g, const struct work *w, const char *variant,
                        char name[PEER_NAME])
{
    hewn_grouped_desc d = w->desc;
    hewn_grouped_plan *plan = NULL;
    hewn_grouped_plan_info info = {.struct_size = sizeof info};
    hewn_error err = {0};
    hewn_grouped_args a = {.struct_size = sizeof a,
                           .scale_a = w->in == HEWN_E4M3 ? w->scale_a : 0,
                           .scale_b = w->in == HEWN_E4M3 ? w->scale_b : 0,
                           .rows = w->desc.kind == HEWN_GROUPED_PLANES ? 0 : w->on_device};
    d.variant = variant;
    if (hewn_grouped_plan_create(g->d.context, &d, &plan, &err)) gpu_die("plan", err.message);
    hewn_grouped_plan_describe(plan, &info, NULL);
    snprintf(name, PEER_NAME, "%s", info.variant);
    gpu_time_begin(g);
    const int launches = launches_of(w);
    for (int i = 0; i < launches; i++) {
        const uint64_t set = (uint64_t)(i % w->sets);
        a.a = w->a + set * w->a_bytes, a.b = w->b + set * w->b_bytes, a.d = w->d + set * w->d_bytes;
        if (hewn_grouped_plan_run(plan, &a, g->stream, &err)) gpu_die("run", err.message);
    }
    double seconds = gpu_time_end(g, (uint64_t)launches);
    hewn_grouped_plan_destroy(plan);
    return seconds;
}

/* Seconds, or 0: the peer has no kernel for this. */
static double time_peer(struct gpu *g, const struct work *w, peer_run *peer, char what[PEER_NAME])
{
    static const int counts[] = {
        [HEWN_GROUPED_PLANES] = 2, [HEWN_GROUPED_COUNTS] = 1, [HEWN_GROUPED_OFFSETS] = 0};
    const struct row *r = w->r;
    const int launches = launches_of(w);
    int rc = 0;
    gpu_time_begin(g);
    for (int i = 0; i < launches && !rc; i++) {
        const uint64_t set = (uint64_t)(i % w->sets);
        const unsigned long long at[6] = {w->a + set * w->a_bytes,
                                          w->b + set * w->b_bytes,
                                          w->d + set * w->d_bytes,
                                          w->scale_a,
                                          w->scale_b,
                                          w->layout_on_device};
        rc = peer(counts[r->kind], r->groups, w->m, r->expected, r->n, r->k, at, g->stream, what,
                  PEER_NAME);
    }
    if (rc) printf("the peer returned %d\n", rc);
    double seconds = gpu_time_end(g, (uint64_t)launches);
    return rc ? 0 : seconds;
}

/* Some rows of every group, one behind another. */
static float *sample(struct gpu *g, const struct work *w, size_t *count)
{
    const size_t n = (size_t)w->r->n;
    float *values = gpu_host((uint64_t)w->r->groups * SAMPLED * n * sizeof *values);
    uint16_t *line = gpu_host(n * sizeof *line);
    *count = 0;
    for (int i = 0; i < w->r->groups; i++)
        for (int s = 0; s < SAMPLED && s < w->count[i]; s++) {
            int row = w->first[i] + (int)((int64_t)(w->count[i] - 1) * s / (SAMPLED - 1));
            uint64_t at = ((uint64_t)(w->planes > 1 ? i * w->m : 0) + (uint64_t)row) * n * 2;
            gpu_need(g->d.to_host(line, w->d + at, n * sizeof *line), "copy");
            for (size_t c = 0; c < n; c++)
                values[(*count)++] = (float)number_load(HEWN_BF16, &line[c]);
        }
    free(line);
    return values;
}

/* How far two results lie apart: the norm of the difference over that of the second. */
static double distance(const float *x, const float *y, size_t count)
{
    double apart = 0, whole = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)x[i] - (double)y[i];
        apart += d * d, whole += (double)y[i] * (double)y[i];
    }
    return sqrt(apart / (whole > 0 ? whole : 1));
}

static const char *const variants[] = {
    "64x64",    "64x128",   "64x128p",  "64x256",   "64x256p",  "128x128",
    "128x128p", "128x160",  "128x160p", "128x192",  "128x192p", "256x128",
    "256x128p", "64x128s2", "64x128s3", "64x128s4", "64x128s5", "64x128s8",
};

static const char *const variants_16[] = {"64x128h",  "64x128hp",  "64x256h",  "64x256hp",
                                          "128x128h", "128x128hp", "128x256h", "128x256hp"};

enum {
    VARIANTS = sizeof variants / sizeof *variants,
    VARIANTS_16 = sizeof variants_16 / sizeof *variants_16
};

struct sums {
    double logs, logs_best, least;
    int rows;
};

/* Whether a list of names, with commas between them, has this one. */
static int is_among(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ','), at += at != NULL)
        if (!strncmp(at, name, length) && (!at[length] || at[length] == ',')) return 1;
    return 0;
}

/* Whether a variant can compute a row: it has a k-block for each part. */
static int has_parts(const char *variant, const struct row *r)
{
    const char *parts = strchr(variant, 's');
    return !parts || up((uint64_t)r->k, 128) / 128 >= (uint64_t)(parts[1] - '0');
}

static void bench_row(struct gpu *g, const struct row *r, int in, peer_run *peer, const char *among,
                      struct sums *s)
{
    const char *const *list = in == HEWN_E4M3 ? variants : variants_16;
    const size_t listed = in == HEWN_E4M3 ? VARIANTS : VARIANTS_16;
    struct work w = {.r = r, .in = in};
    char what[PEER_NAME] = "", chosen[PEER_NAME], best_name[PEER_NAME], other[PEER_NAME];
    size_t count = 0, peers = 0;
    make_work(g, &w);
    gpu_need(g->d.synchronize(), "copy");
    double ours = time_ours(g, &w, NULL, chosen), theirs = 0, best = ours;
    float *x = sample(g, &w, &count), *y = NULL;
    snprintf(best_name, sizeof best_name, "%s", chosen);
    if (peer && (theirs = time_peer(g, &w, peer, what)) > 0) y = sample(g, &w, &peers);
    double far = y ? distance(x, y, count) : 0;
    for (size_t i = 0; among && i < listed; i++) {
        if ((*among && !is_among(among, list[i])) || !has_parts(list[i], r)) continue;
        double t = time_ours(g, &w, list[i], other);
        printf("%s %.1f, ", list[i], t * 1e6);
        if (t < best) best = t, snprintf(best_name, sizeof best_name, "%s", list[i]);
    }
    if (among) printf("\n");
    double again = time_ours(g, &w, NULL, other);
    if (again < ours) ours = again;
    if (peer && theirs > 0 && (again = time_peer(g, &w, peer, what)) < theirs) theirs = again;
    double flop = 2.0 * w.real * r->n * r->k;
    double element = (double)hewn_dtype_size(in);
    double bytes = element * r->groups * r->n * r->k + w.real * (element * r->k + 2.0 * r->n);
    for (int i = 0; in != HEWN_E4M3 && i < r->groups; i++)
        printf("%s%d", i ? " " : "rows: ", w.count[i]);
    if (in != HEWN_E4M3) printf("\n");
    printf("| %s | %d x %d | %d x %d | %d | %.1f | %.0f | %.2f | %s | %.1f | %s | %.1f | %s | %.3f "
           "| %.1e |\n",
           r->kind == HEWN_GROUPED_COUNTS   ? "counts"
           : r->kind == HEWN_GROUPED_PLANES ? "plain"
                                            : "offsets",
           r->groups, r->expected, r->n, r->k, w.real, ours * 1e6, flop / ours * 1e-12,
           bytes / ours * 1e-12, chosen, best * 1e6, best_name, theirs * 1e6, what, theirs / ours,
           far);
    fflush(stdout);
    if (theirs > 0) {
        s += r->kind == HEWN_GROUPED_PLANES ? PLAIN_ONE : GROUPED;
        s->logs += log(theirs / ours), s->logs_best += log(theirs / best), s->rows++;
        if (s->least == 0 || theirs / ours < s->least) s->least = theirs / ours;
    }
    free(x), free(y);
    free_work(g, &w);
}

int main(int argc, char **argv)
{
    struct gpu g;
    static const char *const names[KINDS] = {"groups", "plain products"};
    struct sums s[KINDS] = {{0}};
    peer_run *peer = NULL;
    const char *among = NULL; /* "": all */
    int in = HEWN_E4M3, step = 1, first = 0, most = (int)(sizeof rows / sizeof *rows);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--all")) {
            among = "";
        } else if (!strcmp(argv[i], "--among") && i + 1 < argc) {
            among = argv[++i];
        } else if (!strcmp(argv[i], "--bf16")) {
            in = HEWN_BF16;
        } else if (!strcmp(argv[i], "--first") && i + 1 < argc && atoi(argv[i + 1]) >= 0) {
            first = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--rows") && i + 1 < argc) {
            most = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--step") && i + 1 < argc && atoi(argv[i + 1]) > 0) {
            step = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--peer") && i + 1 < argc) {
            void *library = dlopen(argv[++i], RTLD_NOW);
            void *symbol = library ? dlsym(library, "grouped_peer") : NULL;
            if (!symbol) gpu_die(argv[i], dlerror());
            memcpy(&peer, &symbol, sizeof peer);
        } else {
            gpu_die(argv[i], "not an option: [--all] [--among LIST] [--bf16] [--peer LIBRARY] "
                             "[--first I] [--rows "
                             "N] [--step N]");
        }
    }
    gpu_open(&g);
    printf("%s\n| kind | groups x rows | n x k | rows | us | TFLOP/s | TB/s | chosen | best us | "
           "best | peer us "
           "| peer | ratio | apart |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
           g.d.info.name);
    for (int i = first; i < most && i < (int)(sizeof rows / sizeof *rows); i += step)
        if (in == HEWN_E4M3 ||
            rows[i].kind != HEWN_GROUPED_PLANES) /* hewn_gemm has those of 16 bits */
            bench_row(&g, &rows[i], in, in == HEWN_E4M3 ? peer : NULL, among, s);
    for (int i = 0; i < KINDS; i++)
        if (s[i].rows)
            printf("%s, %d rows: geometric mean %.3f, of the best variants %.3f; least %.3f\n",
                   names[i], s[i].rows, exp(s[i].logs / s[i].rows), exp(s[i].logs_best / s[i].rows),
                   s[i].least);
    gpu_close(&g);
    return 0;
}
