/*
 * hewn_attention beside cuDNN on a GPU, forward, bf16: the eighteen rows of the table in tests/BENCH.md, rows whose
 * scores are larger, and causal ragged batches. Random data; outputs compared first; then the sides in turn, single launches of about
 * ROUND_SECONDS together, timed by events, for BENCH_WARM_SECONDS before they count and ROUNDS times after;
 * medians over all launches. A row's tensors are four times the L2 or more,
 * so that no launch finds what the one before left. FLOP: 4 * dim a query, head and key that it
 * sees; half of the square under the causal mask.
 */
#include "bench.h"
#include "bench_cudnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 8, LAUNCHES = 200, RAGGED = 8, WIDTH = 2048, TOKENS = 32768 };
enum {
    RISE = 20,
    RISE_KEYS = 128
}; /* rising scores: by so much from each so many keys to the next */
#define ROUND_SECONDS 30e-3

/* Both sides round P and O to bf16, each by 2^-9 at most: so far apart may the outputs be, by their norms. */
#define FOUR_ROUNDINGS 0x1p-7

static const int64_t ragged_lengths[RAGGED] = {16384, 4096, 4096, 2048, 2048, 2048, 1536, 512};

struct shape {
    int64_t dim, heads, length, batch; /* length: the longest */
    int64_t deviation;                 /* of Q and K; 0: 1 */
    bool causal, ragged, rising;
    int64_t lengths[RAGGED], tokens;
};

/* What every row uses: the same values, in other shapes, on the device and for the peer. */
struct arena {
    struct bench *bench;
    int (*event_create)(void **, unsigned), (*record)(void *, void *);
    int (*elapsed)(float *, void *, void *);
    void *event[LAUNCHES + 1];
    uint16_t *host[3], *ours, *theirs; /* Q, K, V; outputs */
    hewn_deviceptr q, k, v, o, ends, workspace;
    struct cudnn peer;
    bool has_peer;
};

/* ---- data ---- */

enum { NORMALS = 65536, VALUES = WIDTH * TOKENS };

/* Normal values, drawn from a table: Box and Muller for every value would take minutes. */
static void draw(uint16_t *values, size_t count, struct rng *r)
{
    static uint16_t normals[NORMALS];
    for (int i = 0; !normals[0] && i < NORMALS; i++) {
        double u = ((double)(rng_next(r) >> 11) + 1) * 0x1p-53;
        double angle = 2 * 3.14159265358979 * (double)(rng_next(r) >> 11) * 0x1p-53;
        normals[i] = double_to_bf16(sqrt(-2 * log(u)) * cos(angle));
    }
    for (size_t i = 0; i < count; i++) values[i] = normals[rng_next(r) >> 48];
}

static bool arena_open(struct arena *a, struct bench *b)
{
    struct rng r = {test_seed()};
    hewn_deviceptr *device[] = {&a->q, &a->k, &a->v, &a->o};
    memset(a, 0, sizeof *a);
    a->bench = b;
    bench_resolve(b->dev.driver, "cuEventCreate", &a->event_create);
    bench_resolve(b->dev.driver, "cuEventRecord", &a->record);
    bench_resolve(b->dev.driver, "cuEventElapsedTime", &a->elapsed);
    if (!a->event_create || !a->record || !a->elapsed) return false;
    for (int i = 0; i <= LAUNCHES; i++)
        if (a->event_create(&a->event[i], 0)) return false;
    a->ours = malloc(VALUES * sizeof *a->ours);
    a->theirs = malloc(VALUES * sizeof *a->theirs);
    if (!a->ours || !a->theirs || b->dev.mem_alloc(&a->ends, (RAGGED + 1) * sizeof(int32_t)))
        return false;
    for (int i = 0; i < 4; i++) {
        if (b->dev.mem_alloc(device[i], VALUES * sizeof(uint16_t))) return false;
        if (i == 3) break;
        a->host[i] = malloc(VALUES * sizeof(uint16_t));
        if (!a->host[i]) return false;
        draw(a->host[i], VALUES, &r);
        if (b->dev.to_device(*device[i], a->host[i], VALUES * sizeof(uint16_t))) return false;
    }
    a->has_peer = b->attention_peer && cudnn_open(&a->peer, b->attention_peer, a->host[0],
                                                  a->host[1], a->host[2], VALUES);
    bench_fact(&b->report, "attention: peer %s", b->attention_peer ? a->peer.about : "none");
    return true;
}

static void arena_close(struct arena *a)
{
    hewn_deviceptr device[] = {a->q, a->k, a->v, a->o, a->ends};
    if (a->has_peer) cudnn_close(&a->peer);
    for (size_t i = 0; i < sizeof device / sizeof device[0]; i++)
        if (device[i]) a->bench->dev.mem_free(device[i]);
    for (int i = 0; i < 3; i++) free(a->host[i]);
    free(a->ours);
    free(a->theirs);
}

/* Q and K of this deviation have scores its square times as large; so does the scale. */
static int64_t times_of(const struct shape *s)
{
    return s->deviation ? s->deviation * s->deviation : 1;
}

/* ---- our side ---- */

static bool plan_open(struct arena *a, const struct shape *s, hewn_attention_plan **plan)
{
    hewn_attention_desc desc = {
        .struct_size = sizeof desc,
        .batch = s->batch,
        .q_heads = s->heads,
        .kv_heads = s->heads,
        .qk_dim = s->dim,
        .q_length = s->length,
        .scale = (double)times_of(s) / sqrt((double)s->dim),
        .in = HEWN_BF16,
        .out = HEWN_BF16,
        .layout = s->ragged ? HEWN_LAYOUT_BSHD : HEWN_LAYOUT_BHSD,
        .q_packed = s->ragged,
        .q_tokens = s->ragged ? s->tokens : 0,
        .source = {SOURCE(.length = s->length,
                          .keys = s->ragged ? HEWN_KEYS_PACKED : HEWN_KEYS_FIXED,
                          .tokens = s->ragged ? s->tokens : 0, .causal = s->causal)}};
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    int32_t ends[RAGGED + 1] = {0};
    hewn_error err = {0};
    for (int i = 0; i < RAGGED; i++) ends[i + 1] = ends[i] + (int32_t)s->lengths[i];
    if (hewn_attention_plan_create(a->bench->dev.context, &desc, plan, &err) ||
        hewn_attention_plan_describe(*plan, &info, &err)) {
        fprintf(stderr, "plan: %s\n", err.message);
        return false;
    }
    a->workspace = 0;
    return (!info.workspace || !a->bench->dev.mem_alloc(&a->workspace, info.workspace)) &&
           !a->bench->dev.to_device(a->ends, ends, sizeof ends);
}

static int attend(const struct arena *a, const struct shape *s, const hewn_attention_plan *plan)
{
    hewn_attention_args args = {
        .struct_size = sizeof args,
        .q = a->q,
        .o = a->o,
        .cu_q = s->ragged ? a->ends : 0,
        .workspace = a->workspace,
        .source = {SOURCE_ARGS(.k = a->k, .v = a->v, .lengths = s->ragged ? a->ends : 0)}};
    return hewn_attention_plan_run(plan, &args, NULL, NULL);
}

static bool time_ours(const struct arena *a, const struct shape *s, const hewn_attention_plan *plan,
                      double *us, int launches)
{
    for (int i = -2; i < launches; i++)
        if ((i >= 0 && a->record(a->event[i], NULL)) || attend(a, s, plan)) return false;
    if (a->record(a->event[launches], NULL)) return false;
    bench_meter_sample(&a->bench->meter);
    if (a->bench->dev.synchronize()) return false;
    for (int i = 0; i < launches; i++) {
        float ms = 0;
        a->elapsed(&ms, a->event[i], a->event[i + 1]);
        us[i] = 1e3 * (double)ms;
    }
    return true;
}

/* ---- both sides ---- */

static size_t values_of(const struct shape *s)
{
    return (size_t)(s->heads * s->dim * (s->ragged ? s->tokens : s->length * s->batch));
}

/* Norm of the difference over the norm of the peer's output; infinite where a side has NaN or fails. */
static double disagreement(struct arena *a, const struct shape *s, const hewn_attention_plan *plan,
                           int way)
{
    struct device *dev = &a->bench->dev;
    size_t count = values_of(s), bytes = count * sizeof *a->ours;
    double difference = 0, whole = 0;
    memset(a->ours, 0xFF, bytes); /* NaN, where the kernel does not write */
    if (dev->to_device(a->o, a->ours, bytes) || attend(a, s, plan) || dev->synchronize() ||
        dev->to_host(a->ours, a->o, bytes) || !cudnn_output(&a->peer, way, a->theirs, count))
        return (double)INFINITY;
    for (size_t i = 0; i < count; i++) {
        double x = bench_bf16(a->ours[i]), y = bench_bf16(a->theirs[i]);
        difference += (x - y) * (x - y);
        whole += y * y;
    }
    difference = sqrt(difference / whole);
    return isnan(difference) ? (double)INFINITY : difference;
}

static double flop_of(const struct shape *s)
{
    double pairs = 0;
    for (int i = 0; s->ragged && i < RAGGED; i++)
        pairs += (double)s->lengths[i] * (double)s->lengths[i];
    if (!s->ragged) pairs = (double)s->batch * (double)s->length * (double)s->length;
    return 4 * (double)(s->heads * s->dim) * pairs * (s->causal ? 0.5 : 1);
}

static void row_describe(const struct arena *a, const struct shape *s, struct bench_row *row)
{
    memset(row, 0, sizeof *row);
    snprintf(row->section, sizeof row->section, "attention");
    if (s->ragged)
        snprintf(row->shape, sizeof row->shape, "dim %lld, %lld heads, causal", (long long)s->dim,
                 (long long)s->heads);
    else
        snprintf(row->shape, sizeof row->shape, "dim %lld, %s, %lldk × %lld", (long long)s->dim,
                 s->causal ? "causal" : "full", (long long)s->length / 1024, (long long)s->batch);
    if (s->deviation) {
        size_t at = strlen(row->shape);
        snprintf(row->section, sizeof row->section, "attention, deviations");
        snprintf(row->shape + at, sizeof row->shape - at, ", deviation %lld",
                 (long long)s->deviation);
    }
    if (s->rising) {
        size_t at = strlen(row->shape);
        snprintf(row->section, sizeof row->section, "attention, rising");
        snprintf(row->shape + at, sizeof row->shape - at, ", rising");
    }
    snprintf(row->dtype, sizeof row->dtype, "bf16");
    snprintf(row->peer, sizeof row->peer, "none");
    row->ours = row->theirs = row->spread = row->differ = (double)NAN;
    row->flop = flop_of(s);
    row->ceiling = a->bench->ceiling_16;
    row->differ_limit = FOUR_ROUNDINGS;
}

enum { SIDES = 1 + CUDNN_WAYS };

static bool time_side(struct arena *a, const struct shape *s, const hewn_attention_plan *plan,
                      int side, double *us, int launches)
{
    return side ? cudnn_time(&a->peer, side - 1, us, launches)
                : time_ours(a, s, plan, us, launches);
}

/* So many launches a round, by how long the last of three takes; 0 where they fail. */
static int launches_of(struct arena *a, const struct shape *s, const hewn_attention_plan *plan,
                       int side)
{
    double us[3];
    if (!time_side(a, s, plan, side, us, 3)) return 0;
    if (a->bench->dev.info.simulated) return 1;
    return (int)fmin(LAUNCHES, fmax(2, 1e6 * ROUND_SECONDS / us[2]));
}

/* Medians of all launches, in seconds: [0] ours, [1 + way] the peer's. NAN where a side fails. */
static void take_turns(struct arena *a, const struct shape *s, const hewn_attention_plan *plan,
                       struct bench_row *row, double median[SIDES])
{
    static double us[SIDES][ROUNDS * LAUNCHES];
    int sides = 1 + a->peer.ways, launches[SIDES];
    double begin = bench_now();
    int rounds = a->bench->dev.info.simulated ? 1 : ROUNDS;
    for (int i = 0; i < sides; i++) launches[i] = launches_of(a, s, plan, i);
    for (int round = 0; round < rounds;) {
        for (int i = 0; i < sides; i++)
            if (launches[i] && !time_side(a, s, plan, i, us[i] + round * launches[i], launches[i]))
                launches[i] = 0;
        if (round || rounds == 1 || bench_now() - begin > BENCH_WARM_SECONDS) round++;
    }
    for (int i = 0; i < sides; i++) {
        int n = launches[i] * rounds;
        median[i] = n ? 1e-6 * bench_median(us[i], n) : (double)NAN;
        if (i == 0 && n) row->spread = 1e-6 * (us[0][n * 9 / 10] - us[0][n / 10]) / median[0];
    }
    row->ours = median[0];
}

/* Compares one shape: a row a way of the peer's, or one without a peer; how many. */
static int contest(struct arena *a, const struct shape *s, struct bench_row rows[CUDNN_WAYS])
{
    hewn_attention_plan *plan = NULL;
    double differ[CUDNN_WAYS] = {0}, median[SIDES] = {0};
    int count = 0;
    bool given =
        a->has_peer && (s->ragged ? cudnn_ragged(&a->peer, s->dim, s->heads, s->lengths, RAGGED)
                                  : cudnn_fixed(&a->peer, s->dim, s->heads, s->causal, s->length,
                                                s->batch, times_of(s)));
    if (!given) a->peer.ways = 0;
    if (plan_open(a, s, &plan)) {
        count = given ? a->peer.ways : 1;
        for (int way = 0; way < a->peer.ways; way++) differ[way] = disagreement(a, s, plan, way);
        row_describe(a, s, &rows[0]);
        take_turns(a, s, plan, &rows[0], median);
        for (int way = 0; given && way < count; way++) {
            rows[way] = rows[0];
            rows[way].theirs = median[1 + way];
            rows[way].differ = differ[way];
            snprintf(rows[way].peer, sizeof rows[way].peer, "%s", a->peer.way[way]);
        }
    }
    if (a->workspace) a->bench->dev.mem_free(a->workspace);
    a->workspace = 0;
    hewn_attention_plan_destroy(plan);
    return count;
}

static const int64_t dims[3][2] = {{64, 32}, {128, 16}, {256, 8}};

static void bench_equal(struct arena *a, int64_t shrink)
{
    static const int64_t lengths[3][2] = {{1024, 16}, {4096, 4}, {16384, 1}};
    struct bench_row rows[CUDNN_WAYS];
    for (int i = 0; i < 18; i++) {
        struct shape s = {.dim = dims[i / 6][0],
                          .heads = dims[i / 6][1],
                          .causal = i / 3 % 2,
                          .length = lengths[i % 3][0] / shrink,
                          .batch = lengths[i % 3][1]};
        if (contest(a, &s, rows)) bench_add(&a->bench->report, &rows[0]);
    }
    bench_section_ends(&a->bench->report);
    bench_meter_note(&a->bench->meter, &a->bench->report, "attention");
}

/* The time should not depend on the scores. */
static void bench_deviations(struct arena *a, int64_t shrink)
{
    static const int64_t deviations[4] = {1, 2, 4, 8};
    struct bench_row rows[CUDNN_WAYS];
    for (int i = 0; i < 24; i++) {
        struct shape s = {.dim = dims[i / 8][0],
                          .heads = dims[i / 8][1],
                          .causal = i / 4 % 2,
                          .length = 8192 / shrink,
                          .batch = 2,
                          .deviation = deviations[i % 4]};
        if (contest(a, &s, rows)) bench_add(&a->bench->report, &rows[0]);
    }
    bench_section_ends(&a->bench->report);
    bench_meter_note(&a->bench->meter, &a->bench->report, "attention, deviations");
}

/* Makes the scores rise: the first column of Q is one value, that of K grows with the keys. */
static bool raise_scores(struct arena *a, const struct shape *s)
{
    struct device *dev = &a->bench->dev;
    uint16_t root = double_to_bf16(sqrt((double)s->dim));
    for (int64_t i = 0; i < VALUES / s->dim; i++) {
        a->host[0][i * s->dim] = root;
        const int64_t steps = i % s->length / RISE_KEYS;
        a->host[1][i * s->dim] = double_to_bf16((double)(steps * RISE));
    }
    return !dev->to_device(a->q, a->host[0], VALUES * sizeof(uint16_t)) &&
           !dev->to_device(a->k, a->host[1], VALUES * sizeof(uint16_t)) &&
           (!a->has_peer || cudnn_rise(&a->peer, s->dim, s->length, RISE_KEYS, RISE));
}

/* Wider dimensions first: the columns of narrower ones then overwrite all of theirs. */
static void bench_rising(struct arena *a, int64_t shrink)
{
    struct bench_row rows[CUDNN_WAYS];
    for (int i = 5; i >= 0; i--) {
        struct shape s = {.dim = dims[i / 2][0],
                          .heads = dims[i / 2][1],
                          .causal = i % 2,
                          .length = 8192 / shrink,
                          .batch = 2,
                          .rising = true};
        if (raise_scores(a, &s) && contest(a, &s, rows)) bench_add(&a->bench->report, &rows[0]);
    }
    bench_section_ends(&a->bench->report);
    bench_meter_note(&a->bench->meter, &a->bench->report, "attention, rising");
}

/* Adds the rows of one way, in a section of its own. */
static void add_way(struct bench_report *report, struct bench_row rows[3][CUDNN_WAYS],
                    const int counts[3], const char *way)
{
    int added = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < counts[i]; j++) {
            struct bench_row *row = &rows[i][j];
            if (strcmp(row->peer, way) != 0) continue;
            snprintf(row->section, sizeof row->section, "ragged, %s", way);
            bench_add(report, row);
            added++;
        }
    if (added) bench_section_ends(report);
}

static void bench_ragged(struct arena *a, int64_t shrink)
{
    static const char *const ways[] = {"cuDNN-padded", "cuDNN-varlen", "cuDNN-sequences", "none"};
    struct bench_report *report = &a->bench->report;
    struct bench_row rows[3][CUDNN_WAYS];
    int counts[3];
    for (int i = 0; i < 3; i++) {
        struct shape s = {.dim = dims[i][0], .heads = dims[i][1], .causal = true, .ragged = true};
        s.batch = RAGGED;
        s.length = ragged_lengths[0] / shrink;
        for (int j = 0; j < RAGGED; j++) s.tokens += s.lengths[j] = ragged_lengths[j] / shrink;
        counts[i] = contest(a, &s, rows[i]);
        if (*a->peer.reason) bench_fact(report, "ragged: not %s", a->peer.reason);
    }
    bench_fact(report,
               "ragged: 8 sequences of 16384, 4096, 4096, 2048, 2048, 2048, 1536 and 512; only "
               "causal pairs that exist count as FLOP");
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        add_way(report, rows, counts, ways[i]);
    bench_meter_note(&a->bench->meter, report, "");
}

void bench_attention(struct bench *b)
{
    int64_t shrink = b->dev.info.simulated ? 64 : 1; /* there, only that all of it runs counts */
    struct arena a;
    if (arena_open(&a, b)) {
        bench_equal(&a, shrink);
        bench_deviations(&a, shrink);
        bench_ragged(&a, shrink);
        bench_rising(&a, shrink); /* last: it changes Q and K */
    }
    arena_close(&a);
}
