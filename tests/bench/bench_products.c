/*
 * bench_products: hewn_gemm beside the fastest algorithm of cuBLASLt's heuristic, at shapes that a seed draws.
 *
 *   bench_products --count N [--seed S] [--first I]    shapes I to I + N - 1 of the seed's row
 *   bench_products MxNxK ...                           these
 *     --in bf16|e4m3|e4m3-fast    inputs; sums of e4m3 are promoted, or fast
 *     --least M, --most M         m is from M (1) to M (16384)
 *     --aligned                   n and k are multiples of 8 where they would be of 1
 *     --all                       also times every candidate of ours, and prints what the choice loses and
 *                                 how the peer cuts the product
 *     --only TEXT                 of the candidates those whose variant has it in its name
 *     --ours                      no peer
 *     --csv FILE                  appends a line for every side that was timed
 *     --seconds T                 ends after that time, and says with which --first to go on
 *     --list                      the shapes alone; needs no GPU
 *
 * Uniform in the logarithm: m 1 to 16,384, n and k 64 to 28,672. n and k are multiples of 64 in half of the
 * shapes, of 8 in a quarter, of 1 in a quarter; of 16 at least with e4m3. Rows are contiguous. Where the
 * library or the peer needs aligned rows, they are padded, which the row says.
 *
 * Every side computes samples that are compared with float64; one that fails is struck. Then the outputs of
 * both sides are compared with each other, then they are timed in turn: medians of graphs of launches whose
 * buffers go round through more memory than L2 holds.
 */
#include "bench_products.h"

#include "../../runtime/gemm_kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CHUNKS = 9,
    SLICES_MOST = 64,
    SHAPES = 512,
    CLASSES = 5,
    SCALE_APART = 256,
    WORK_BYTES = 64 << 20
};
static const double chunk_seconds = 2e-3, rank_seconds = 0.5e-3, final_seconds = 1.5e-3;
static const double differ_most = 0x1p-6; /* of the outputs: two roundings to bf16 and a split's */

struct options {
    int first, count, in;
    bool fast, all, list, ours, aligned;
    int64_t least, most;
    double seconds;
    const char *csv, *only;
};

/* Ratios peer / ours of the shapes of a class. */
struct ratios {
    double values[SHAPES], losses[SHAPES];
    int count, lost;
};

static const struct {
    const char *name;
    int64_t from, to;
} classes[CLASSES] = {{"all", 1, INT64_MAX},
                      {"m <= 16", 1, 16},
                      {"m <= 64", 17, 64},
                      {"m <= 512", 65, 512},
                      {"m > 512", 513, INT64_MAX}};

struct run {
    struct gpu gpu;
    struct pools pools;
    struct options options;
    struct ratios ratios[CLASSES];
    FILE *csv;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- the shapes ---- */

static int64_t round_up(int64_t x, int64_t grain)
{
    return (x + grain - 1) / grain * grain;
}

static int64_t log_uniform(struct rng *r, double from, double to)
{
    double u = (double)(rng_next(r) >> 11) * 0x1p-53;
    return (int64_t)(from * exp(u * log(to / from)) + 0.5);
}

/* Each shape depends on seed and index alone. */
static struct product draw(const struct options *o, int index)
{
    static const int grains[] = {64, 64, 8, 1};
    struct rng r = {test_seed() * 1000003 + (uint64_t)index};
    struct product p = {.index = index, .in = o->in, .fast = o->fast};
    rng_next(&r);
    p.grain = grains[rng_below(&r, 4)];
    if (o->aligned && p.grain < 8) p.grain = 8;
    if (o->in == HEWN_E4M3 && p.grain < 16) p.grain = 16;
    p.m = log_uniform(&r, (double)o->least, (double)o->most);
    p.n = round_up(log_uniform(&r, 64, 28672) - p.grain / 2, p.grain);
    p.k = round_up(log_uniform(&r, 64, 28672) - p.grain / 2, p.grain);
    return p;
}

static void set_rows(struct product *p, bool pad)
{
    int64_t grain = 16 / (int64_t)hewn_dtype_size(p->in);
    p->lda = p->ldb = pad ? round_up(p->k, grain) : p->k;
    p->ldd = pad ? round_up(p->n, 8) : p->n;
}

/* Rows need padding where the library refuses them. */
static bool plan(const struct run *run, const struct product *p, const char *variant,
                 uint32_t parts, uint32_t slices, hewn_gemm_plan **out, hewn_error *err)
{
    const hewn_gemm_desc desc = {
        .struct_size = sizeof desc,
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .in = p->in,
        .out = HEWN_BF16,
        .lda = p->lda,
        .ldb = p->ldb,
        .ldd = p->ldd,
        .accumulate = p->fast ? HEWN_ACCUMULATE_FAST : HEWN_ACCUMULATE_FULL,
        .with = p->in == HEWN_E4M3 ? HEWN_GEMM_WITH_SCALE_A | HEWN_GEMM_WITH_SCALE_B : 0,
        .variant = variant,
        .parts = parts,
        .slices = slices};
    return !hewn_gemm_plan_create(run->gpu.d.context, &desc, out, err);
}

/* ---- buffers ---- */

static void set_layout(const struct run *run, struct product *p)
{
    uint64_t size = hewn_dtype_size(p->in), l2 = (uint64_t)run->gpu.d.info.l2_bytes;
    p->a_bytes = (uint64_t)round_up(p->m * p->lda * (int64_t)size, 256);
    p->b_bytes = (uint64_t)round_up(p->n * p->ldb * (int64_t)size, 256);
    p->d_bytes = (uint64_t)round_up(2 * p->m * p->ldd, 256);
    uint64_t sets = 3 * l2 / (p->a_bytes + p->b_bytes + p->d_bytes) + 2;
    p->sets = run->gpu.d.info.simulated ? 1 : sets < PRODUCT_SETS ? (int)sets : PRODUCT_SETS;
}

/* Large enough for the largest shape; rows may be padded. */
static void fill_pools(struct run *run, struct product *shapes, int count)
{
    struct pools *at = &run->pools;
    struct rng r = {test_seed()};
    bool bytes = run->options.in == HEWN_E4M3;
    uint64_t keep = bytes ? 0x9F9F9F9F9F9F9F9F : 0x81FF81FF81FF81FF;
    uint64_t set = bytes ? 0x2020202020202020 : 0x3E003E003E003E00;
    const float one[2] = {1, 1};
    at->block_bytes = 16 * UINT64_C(2097143); /* a prime, so that rows of an operand differ */
    for (int i = 0; i < 2 * count; i++) {
        struct product *p = &shapes[i / 2];
        set_rows(p, i % 2); /* of smaller rows there may be more sets */
        set_layout(run, p);
        uint64_t in = (uint64_t)p->sets * (p->a_bytes + p->b_bytes);
        if (in > at->in_bytes) at->in_bytes = in;
        if ((uint64_t)p->sets * p->d_bytes > at->out_bytes)
            at->out_bytes = (uint64_t)p->sets * p->d_bytes;
    }
    at->block = gpu_host(at->block_bytes);
    for (uint64_t i = 0; i < at->block_bytes; i += 8) {
        uint64_t word = (rng_next(&r) & keep) | set;
        memcpy(at->block + i, &word, 8);
    }
    at->in = gpu_repeat(&run->gpu, at->block, at->block_bytes, at->in_bytes);
    at->out = gpu_allocate(&run->gpu, at->out_bytes);
    at->work_bytes = WORK_BYTES;
    at->work = gpu_allocate(&run->gpu, at->work_bytes);
    at->scales = gpu_upload(&run->gpu, one, sizeof one);
}

/* ---- sides ---- */

static void csv_sides(const struct run *run, const struct product *p, const struct side *sides,
                      int count)
{
    for (int i = 0; run->csv && i < count; i++)
        fprintf(run->csv, "%d,%lld,%lld,%lld,%d,%s,%s,%s,%.3f,%.3f\n", p->index, (long long)p->m,
                (long long)p->n, (long long)p->k, p->lda != p->k || p->ldd != p->n,
                p->in == HEWN_BF16 ? "bf16"
                : p->fast          ? "e4m3-fast"
                                   : "e4m3",
                sides[i].peer ? "peer" : "ours", sides[i].name, 1e6 * sides[i].seconds,
                sides[i].error);
}

/* Checks every side, then ranks them: all for a short time, the first few for longer. */
static void rank(struct run *run, const struct product *p, struct side *sides, int count,
                 const struct sample *samples)
{
    for (int i = 0; i < count; i++) {
        sides[i].error = side_error(&run->gpu, &sides[i], samples, PRODUCT_SAMPLES);
        sides[i].seconds = sides[i].error <= 1 ? 0 : (double)INFINITY;
    }
    sides_rank(&run->gpu, sides, count, rank_seconds, 2);
    sides_rank(&run->gpu, sides, count < 4 ? count : 4, final_seconds, 4);
    csv_sides(run, p, sides, count);
}

static int peer_sides(const struct run *run, const struct product *p,
                      const struct peer_product *peer, struct side *sides)
{
    int count = peer ? peer_algorithms(peer) : 0;
    for (int i = 0; i < count; i++) {
        sides[i] = (struct side){.product = p, .pools = &run->pools, .peer = peer, .algorithm = i};
        snprintf(sides[i].name, sizeof sides[i].name, "%d", i);
    }
    return count;
}

/* A candidate, where the library has it and its slices fit the workspace. */
static bool add_side(const struct run *run, const struct product *p, const char *variant,
                     uint32_t parts, uint32_t slices, struct side *s, hewn_error *err)
{
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    int size = 0;
    *s = (struct side){.product = p, .pools = &run->pools};
    if (!plan(run, p, variant, parts, slices, &s->plan, err)) return false;
    if (hewn_gemm_plan_describe(s->plan, &info, err) || info.workspace > run->pools.work_bytes) {
        hewn_gemm_plan_destroy(s->plan);
        return false;
    }
    s->slices = info.slices > 1;
    size = snprintf(s->name, sizeof s->name, "%s/%u", info.variant, info.parts);
    if (s->slices) snprintf(s->name + size, sizeof s->name - (size_t)size, "*%u", info.slices);
    return true;
}

/* Slices of K with a kernel, of D or its transpose: as many as keep all SMs busy with one tile each, and half as many. */
static int add_slices(const struct run *run, const struct product *p,
                      const struct hewn_gemm_kernel *kernel, uint32_t parts, bool turned,
                      struct side *sides, int count)
{
    hewn_error err = {0};
    const int64_t m = turned ? p->n : p->m, n = turned ? p->m : p->n;
    int64_t tiles = (m + kernel->tile_m * kernel->pair_m - 1) / (kernel->tile_m * kernel->pair_m) *
                    ((n + kernel->tile_n * kernel->pair_n - 1) / (kernel->tile_n * kernel->pair_n));
    int64_t most = run->gpu.d.info.sm_count / (tiles * kernel->pair_m * kernel->pair_n * parts);
    int added = 0;
    for (int64_t s = most < SLICES_MOST ? most : SLICES_MOST; s > 1 && added < 2; s--) {
        if (count + added == PRODUCT_SIDES || p->k / s < 256 ||
            !add_side(run, p, kernel->variant, parts, (uint32_t)s + (turned ? HEWN_GEMM_TURNED : 0),
                      &sides[count + added], &err))
            continue;
        if (++added == 1) s = s / 2 + 1;
    }
    return count + added;
}

/* Every candidate, where `all`; the library's choice alone otherwise. */
static int our_sides(const struct run *run, const struct product *p, bool all, struct side *sides)
{
    hewn_error err = {0};
    size_t kernels;
    const struct hewn_gemm_kernel *kernel = hewn_gemm_kernels(&kernels);
    int count = 0;
    if (!all) {
        count = add_side(run, p, NULL, 0, 0, sides, &err);
        if (!count) printf("%s\n", err.message);
        return count;
    }
    for (size_t i = 0; i < kernels; i++, kernel++) {
        if (!hewn_target_runs_on(kernel->target, run->gpu.d.info.cc_major,
                                 run->gpu.d.info.cc_minor))
            continue;
        if (run->options.only && !strstr(kernel->variant, run->options.only)) continue;
        for (uint32_t parts = 1; parts <= kernel->parts && count < PRODUCT_SIDES; parts++) {
            if (!add_side(run, p, kernel->variant, parts, 1, &sides[count], &err)) continue;
            count = add_slices(run, p, kernel, parts, false, sides, count + 1);
            count = add_slices(run, p, kernel, parts, true, sides, count);
        }
    }
    return count;
}

static void close_ours(struct side *sides, int count)
{
    for (int i = 0; i < count; i++) hewn_gemm_plan_destroy(sides[i].plan);
}

/* Medians of both sides, timed in turn. */
static void contest(const struct gpu *g, struct side *const sides[2], double seconds[2])
{
    double times[2][CHUNKS];
    int chunks = CHUNKS;
    for (int j = 0; j < 2; j++) {
        seconds[j] = (double)NAN;
        if (sides[j] && !side_open(g, sides[j], chunk_seconds)) sides[j]->exec = NULL;
    }
    for (int i = -2; i < chunks; i++)
        for (int j = 0; j < 2; j++) {
            if (!sides[j] || !sides[j]->exec) continue;
            double time = side_time(g, sides[j]);
            if (i >= 0) times[j][i] = time;
            if (time * sides[j]->count > 10e-3) chunks = 4;
        }
    for (int j = 0; j < 2; j++) {
        if (!sides[j] || !sides[j]->exec) continue;
        qsort(times[j], (size_t)chunks, sizeof times[j][0], ascending);
        seconds[j] = times[j][chunks / 2];
        side_close(g, sides[j]);
    }
}

/* ---- rows ---- */

/* What the choice loses: its time over the best candidate's, both timed in turn. */
static double print_candidates(struct run *run, const struct product *p, struct side *chosen,
                               const struct sample *samples)
{
    struct side sides[PRODUCT_SIDES];
    int count = our_sides(run, p, true, sides);
    double seconds[2], loss = 1;
    rank(run, p, sides, count, samples);
    if (count && strcmp(sides[0].name, chosen->name) != 0 && sides[0].seconds < (double)INFINITY) {
        struct side *const both[2] = {chosen, &sides[0]};
        contest(&run->gpu, both, seconds);
        loss = fmax(1, seconds[0] / seconds[1]);
    }
    printf("      choice loses %.1f %%; best", 100 * (loss - 1));
    for (int i = 0; i < count && i < 4; i++)
        printf(" %s %.2f", sides[i].name, 1e6 * sides[i].seconds);
    printf("\n");
    for (int i = 0; i < count; i++)
        if (sides[i].error > 1) printf("      WRONG %s: %.3g\n", sides[i].name, sides[i].error);
    close_ours(sides, count);
    return loss;
}

static void note_ratio(struct run *run, const struct product *p, double ratio, double loss)
{
    for (int c = 0; c < CLASSES; c++) {
        struct ratios *r = &run->ratios[c];
        if (p->m < classes[c].from || p->m > classes[c].to || r->count >= SHAPES) continue;
        if (ratio > 0) r->values[r->count++] = ratio;
        if (run->options.all) r->losses[r->lost++] = loss;
    }
}

static void print_row(const struct product *p, const struct side *ours, const struct side *peer,
                      const double seconds[2], double differ)
{
    double flop = 2.0 * (double)p->m * (double)p->n * (double)p->k,
           size = (double)hewn_dtype_size(p->in);
    double bytes = size * (double)(p->m + p->n) * (double)p->k + 2.0 * (double)p->m * (double)p->n;
    printf("%3d %5lld x %5lld x %5lld %2d%s %-13s %9.2f  peer %3s %9.2f  ratio %.3f  %4.0f TFLOP/s "
           "%.2f TB/s"
           "  error %.2f differ %.4f%s\n",
           p->index, (long long)p->m, (long long)p->n, (long long)p->k, p->grain,
           p->lda != p->k || p->ldd != p->n ? "p" : " ", ours->name, 1e6 * seconds[0],
           peer ? peer->name : "-", 1e6 * seconds[1], seconds[1] / seconds[0],
           1e-12 * flop / seconds[0], 1e-12 * bytes / seconds[0], ours->error, differ,
           ours->error > 1 || differ > differ_most ? " WRONG" : "");
    fflush(stdout);
}

/* How the peer's fastest cuts the product, by the numbers of cublasLt.h. */
static void print_config(const struct side *peer)
{
    struct peer_config c = peer_config(peer->peer, peer->algorithm);
    printf("      peer's tile %u cluster %u splits %u\n", c.tile, c.cluster, c.splits);
}

static void one(struct run *run, struct product *p)
{
    struct side ours, peers[PRODUCT_SIDES];
    struct sample samples[PRODUCT_SAMPLES];
    struct rng r = {test_seed() + (uint64_t)p->index};
    hewn_error err = {0};
    double seconds[2], differ = (double)NAN, loss = 1;
    hewn_gemm_plan *plain = NULL;
    set_rows(p, false);
    if (!plan(run, p, NULL, 0, 1, &plain, &err)) set_rows(p, true);
    hewn_gemm_plan_destroy(plain);
    set_layout(run, p);
    struct peer_form form = {.m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .e4m3 = p->in == HEWN_E4M3,
                             .fast = p->fast,
                             .scale_a = run->pools.scales,
                             .scale_b = run->pools.scales,
                             .lda = p->lda,
                             .ldb = p->ldb,
                             .ldd = p->ldd};
    struct peer_product *peer =
        peer_version() && !run->options.ours ? peer_product_new(&form) : NULL;
    int count = peer_sides(run, p, peer, peers);
    product_samples(p, &run->pools, &r, samples, PRODUCT_SAMPLES);
    if (our_sides(run, p, false, &ours) != 1) return;
    rank(run, p, peers, count, samples);
    struct side *fastest = count && peers[0].seconds < (double)INFINITY ? &peers[0] : NULL;
    ours.error = side_error(&run->gpu, &ours, samples, PRODUCT_SAMPLES);
    if (fastest) differ = sides_differ(&run->gpu, &ours, fastest);
    contest(&run->gpu, (struct side *const[2]){&ours, fastest}, seconds);
    print_row(p, &ours, fastest, seconds, differ);
    if (fastest && run->options.all) print_config(fastest);
    for (int i = 0; i < count; i++)
        if (peers[i].error > 1 && peers[i].error < (double)INFINITY)
            printf("      peer's %s struck: %.3g\n", peers[i].name, peers[i].error);
    if (run->options.all) loss = print_candidates(run, p, &ours, samples);
    note_ratio(run, p, ours.error <= 1 && !(differ > differ_most) ? seconds[1] / seconds[0] : 0,
               loss);
    close_ours(&ours, 1);
    peer_product_free(peer);
}

/* ---- the whole ---- */

static double geomean(const double *v, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += log(v[i]);
    return count ? exp(sum / count) : (double)NAN;
}

static void summary(struct run *run)
{
    for (int c = 0; c < CLASSES; c++) {
        struct ratios *r = &run->ratios[c];
        qsort(r->values, (size_t)r->count, sizeof *r->values, ascending);
        qsort(r->losses, (size_t)r->lost, sizeof *r->losses, ascending);
        if (r->count)
            printf("%-9s %3d shapes: geomean %.3f  5th percentile %.3f  least %.3f\n",
                   classes[c].name, r->count, geomean(r->values, r->count),
                   r->values[r->count / 20], r->values[0]);
        if (r->lost)
            printf("%-9s %3d choices lose %.1f %% (geomean), the worst %.1f %%\n", classes[c].name,
                   r->lost, 100 * (geomean(r->losses, r->lost) - 1),
                   100 * (r->losses[r->lost - 1] - 1));
    }
}

static void measure(struct run *run, struct product *shapes, int count)
{
    double end = now() + run->options.seconds;
    gpu_open(&run->gpu);
    fill_pools(run, shapes, count);
    if (run->options.ours || !peer_open(&run->gpu.d))
        printf("no peer\n");
    else
        printf("cuBLASLt %zu\n", peer_version());
    if (run->options.csv) run->csv = fopen(run->options.csv, "a");
    for (int i = 0; i < count; i++) {
        if (now() > end) {
            printf("go on with --first %d\n", shapes[i].index);
            break;
        }
        one(run, &shapes[i]);
    }
    if (run->csv) fclose(run->csv);
    summary(run);
    run->gpu.d.mem_free(run->pools.in);
    run->gpu.d.mem_free(run->pools.out);
    run->gpu.d.mem_free(run->pools.work);
    free(run->pools.block);
    gpu_close(&run->gpu);
}

static bool read_flag(const char *name, struct options *o)
{
    if (!strcmp(name, "--all")) return o->all = true;
    if (!strcmp(name, "--ours")) return o->ours = true;
    if (!strcmp(name, "--list")) return o->list = true;
    if (!strcmp(name, "--aligned")) return o->aligned = true;
    return false;
}

static bool read_value(const char *name, const char *value, struct options *o)
{
    if (!strcmp(name, "--count"))
        o->count = atoi(value);
    else if (!strcmp(name, "--first"))
        o->first = atoi(value);
    else if (!strcmp(name, "--least"))
        o->least = atoll(value);
    else if (!strcmp(name, "--most"))
        o->most = atoll(value);
    else if (!strcmp(name, "--seconds"))
        o->seconds = atof(value);
    else if (!strcmp(name, "--only"))
        o->only = value;
    else if (!strcmp(name, "--csv"))
        o->csv = value;
    else if (!strcmp(name, "--in")) {
        o->in = !strcmp(value, "bf16") ? HEWN_BF16 : HEWN_E4M3;
        o->fast = !strcmp(value, "e4m3-fast");
        return o->fast || !strcmp(value, "bf16") || !strcmp(value, "e4m3");
    } else
        return !strcmp(name, "--seed");
    return true;
}

int main(int argc, char **argv)
{
    static struct run run;
    static struct product shapes[SHAPES];
    struct options *o = &run.options;
    int count = 0;
    *o = (struct options){.in = HEWN_BF16, .least = 1, .most = 16384, .seconds = 1e9};
    char *seed[3] = {argv[0]};
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "--seed")) seed[1] = argv[i], seed[2] = argv[i + 1];
    test_begin("bench_products", seed[1] ? 3 : 1, seed);
    for (int i = 1; i < argc; i++) {
        long long m, n, k;
        bool last = i + 1 == argc;
        if (read_flag(argv[i], o)) continue;
        if (!last && read_value(argv[i], argv[i + 1], o)) {
            i++;
            continue;
        }
        if (sscanf(argv[i], "%lldx%lldx%lld", &m, &n, &k) != 3 || m < 1 || n < 1 || k < 1)
            gpu_die(argv[i], "not an option with its value, nor MxNxK");
        if (count < SHAPES)
            shapes[count] = (struct product){.index = count, .m = m, .n = n, .k = k};
        count += count < SHAPES;
    }
    for (int i = 0; i < count; i++) shapes[i].in = o->in, shapes[i].fast = o->fast;
    for (int i = 0; i < o->count && count < SHAPES; i++) shapes[count++] = draw(o, o->first + i);
    for (int i = 0; o->list && i < count; i++)
        printf("%3d %lldx%lldx%lld %d\n", shapes[i].index, (long long)shapes[i].m,
               (long long)shapes[i].n, (long long)shapes[i].k, shapes[i].grain);
    if (!o->list) measure(&run, shapes, count);
    return 0;
}
