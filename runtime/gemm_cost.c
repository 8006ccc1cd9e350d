/* Which GEMM kernel and parts of K cost least: a model of their time. */
#include "gemm_cost.h"

#include "error.h"
#include "gemm_few.h"

#include "../ptx/sm_90a/gemm.plan.h"
#include "../ptx/sm_90a/gemm_few.plan.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIT_WAVES = 3,  /* numbers of waves that a fitted tile is tried for */
    BROAD_WAVES = 6 /* the least of them, of tiles of 256 columns, at most; of others FIT_WAVES */
};

/*
 * Time of a product as a model of the machine, in SM cycles of an H200 in short runs (1.75 GHz). Only the
 * order of the candidates matters. With clusters of pair * parts CTAs and `tiles` of a pair's size,
 *     waves = ceil(tiles / clusters that fit),  blocks = ceil(k_blocks / parts):
 *   multiply  a k-block on the tensor cores: 32 columns of a row of 128 bytes a cycle, and what a consumer
 *             does beside
 *   fetch     the rows of 128 bytes of a k-block that the CTA itself asks for; the rest comes by multicast.
 *             TMA takes longer for a row that lies beyond the matrix, and less is saved by sharing it
 *   block     a k-block: multiply and fetch, which overlap and hinder each other. Two SMs, a TPC, share a way to
 *             L2, so a CTA fetches faster where at most half of the SMs work
 *   between   from one tile to the next of a CTA: filling the ring, and the part of the epilogue during which
 *             nothing is multiplied. Broad 16-bit tiles are stored while the next one is multiplied, a box a
 *             k-block
 *   tile      blocks * block + between; without parts the ring is filled meanwhile: no more than
 *             blocks * fetch beside blocks * multiply + between
 *   run       blocks * block + (waves - 1) * tile; more, the longer CTAs wait for each other
 *   memory    A and B from memory, once, or again and again where a wave reads more of them than L2 keeps;
 *             D once to it
 *   time      START + run beside memory + epilogue + with parts, waves * (adding up, which takes longer the
 *             more parts there are)
 *   power     what products, rows from L2 and bytes from memory take of the power limit; beside time
 * The constants were fitted to timings of drawn shapes, starting from what rates.c and the ledger have
 * measured (ptx/sm_90a/LEDGER.md, "The choice").
 */
static const double mma_inefficiency = 0.9633, beside = 65.52;
static const double row_cycles = 1.578; /* 76 bytes a cycle into an SM from L2 */
static const double fetch_hinders = 0.1354, ring_hinders = 0.2469, memory_hinders = 0.3032;
static const double parts_row = 0.97;     /* of that where `split` or `flat` share K, fitted */
static const double empty_cycles = 2.202; /* a row beyond the matrix */
static const double empty_shared = 1.974; /* what sharing it saves */
static const double askew = 1.306;        /* rows that begin inside a sector: 5 sectors, not 4 */
static const double memory_bytes = 2512;  /* a cycle, all SMs: 4.4 TB/s */
static const double written = 0.8183,
                    askew_written = 2.013; /* a byte of D against one that is read */
static const double start_cluster = 39.25, spread_cluster = 35.34;
/* apart_early: what the launch before hides of the start while no two CTAs share a TPC. short_late: how much
 * longer spread tiles of 64 rows take to start. tall_between: between two tiles of 256 rows. cta_bytes:
 * bytes of memory that come to a CTA in a cycle. */
static const double apart_early = 434.9, short_late = 177.2, tall_between = 3000, cta_bytes = 69.83;
static const double late_between = 2077, fill = 306.8, exposed = 1.267;
static const double read_again = 1.023;
static const double late_box = 198.4,
                    late_boxes = 5.827; /* a box that finds no k-block to go with */
static const double epilogue_area = 23.84,
                    by_element = 794.2; /* results a cycle; stores by element */
static const double direct =
    9.895; /* a column of those that no box of 64 holds, stored by element */
static const double exchanged_area = 13.68;
static const double by_loose_element = 3000, by_odd_element = 1969;
static const double merge = 286.2, merge_part = 442.1; /* of 128 x 64 sums */
static const double broad = 413.8, broad_part = 59.99,
                    exchange = 16.26; /* of more, through the rings; bytes a cycle into an SM */
static const double other_lines = 0.4533, two_lines = 0.4527,
                    fit_lines = 0.305; /* of rows in two lines */
static const double short_product = 67.38, spread_start = 8.172, spread_waves = 0.9998,
                    spread_early = 618.6; /* tiles that are spread */
/* Of kernels with fitted tiles: the tensor cores, a k-block, results a cycle, what lies between two tiles, adding
 * up parts, a CTA of the cluster, start, and how long CTAs wait for each other, against other kernels. */
static const double fit_mma = 0.8723, fit_beside = 132.7, fit_area = 15.29,
                    fit_exchanged_area = 9.939, fit_fill = 489.5, fit_exposed = 2.115,
                    fit_broad = 955.3, fit_broad_part = 131.8, fit_exchange = 16.22,
                    fit_pair = 54.15, fit_early = 30.75, fit_drag = 0.1566;
/* What 8-bit sums take longer that are promoted (the ledger): of consumers of up to 128 columns, which have sums of two
 * k-blocks; of 144, 160, 192, 224 and 256. */
static const double promoted[] = {1.15, 1.23, 1.23, 1.19, 1.235, 1.18};
static const double start_finish = 76.51; /* what else an epilogue reads */
/* What CTAs that start together (hewn_gemm_together) do so later, and their loops, of 3 and more rows of tiles, the
 * least, of 1 and of 2. */
static const double start_late = 2400, together[] = {0.78, 0.95, 0.88};
/* A row's cycles, against row_cycles: while no two CTAs share a TPC; more of it, while all SMs fetch. */
static const double alone = 0.7875, crowd = 0.3441;
static const double few_clock = 0.8923; /* cycles where few SMs work, which run at 1.98 GHz */
static const double few_bytes = 3100;   /* of memory, a cycle, that `few` is said to reach */
static const double cache = 62e6;       /* bytes of a wave: what L2 keeps for the next */
/* Of a cycle of the tensor cores, a row into an SM, a byte of memory. */
static const double mma_power = 0.3978, row_power = 0.4032, byte_power = 0.005429,
                    power_hinders = 0.2649;
/* What makes the CTAs of a tile, or of a pair, wait for each other; in a loop of drag_blocks, half as much. */
static const double part_drag = 0.04547, pair_drag = 0.02966, wave_drag = 0.02223,
                    drag_blocks = 46.82;
/* What is left of a kernel's time, in parts of it: where CTAs share rows of A, and in slices of K, for each doubling of
 * CTAs or parts; of the share that memory takes, with fitted tiles, with clusters of spread ones, and with narrow ones,
 * which read more rows of A than of B; of long products with tiles of 256 rows; of clusters of 8 that spread tiles. */
static const double rest_pair_n = -0.01287, rest_slices = 0.01884, rest_slice_parts = -0.02374,
                    rest_fit_memory = -0.07326, rest_spread_memory = -0.0286,
                    rest_tall_late = 0.0354, rest_narrow_memory = 0.0738, rest_narrow_pair = 0.0297,
                    rest_eight = 0.03;
static const double rest_half = 35000; /* cycles of a product, half of which are long */
static const double narrow = 8192; /* results of a tile whose parts add up in memory of their own */
static const double odd_fetch = 2.65; /* a row of 144 bytes, of two or three lines, against one */
static const double shared_bytes = 97.76;              /* a cycle, of shared memory */
static const double odd_tile = 2804, odd_narrow = 900; /* beside its k-blocks; of 64 columns */
static const double odd_cta = 19.54;                   /* for each CTA that works beside it */

/* The time of a row that begins so, against one that begins on a line. */
static double stretch(uint32_t begins_askew)
{
    return begins_askew > 1 ? askew : 1;
}

/* What two things take that overlap and hinder each other; with 0.26 the cube root of the sum of cubes. */
static inline double both(double a, double b, double hindrance)
{
    double most = gemm_larger(a, b), ratio = gemm_smaller(a, b) / most;
    return most * (1 + hindrance * ratio * ratio * ratio);
}

/* Cycles of a k-block's rows along one side of the tile, `sharing` CTAs of which load a part each. With one
 * wave the tile at the end counts, with more the mean. */
static inline double fetch(double tile, uint32_t sharing, double extent, double tiles, double waves,
                           uint32_t begins_askew)
{
    double beyond = gemm_smaller(tile, (tiles * tile - extent) / (waves > 1 ? tiles : 1));
    double real = (tile - beyond) / sharing * stretch(begins_askew);
    return real * row_cycles + beyond / (sharing > 1 ? empty_shared : 1) * empty_cycles;
}

/* Cycles of a k-block of a kernel that shifts its rows: they land in shared memory, are read and written, and read
 * by wgmma: of A by one warpgroup, of B by two. */
static double shift(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p)
{
    double once = GEMM_ODD_ROW_BYTES + GEMM_ROW_BYTES;
    double a = once + (1 + p->ways_a) * GEMM_ROW_BYTES, b = once + (2 + p->ways_b) * GEMM_ROW_BYTES;
    return (k->tile_m * a + k->tile_n * b) / shared_bytes;
}

double hewn_gemm_lines(const struct hewn_gemm_extent *p)
{
    uint64_t bytes = p->k * p->in | 128;
    return 1 - (double)(bytes & -bytes) / 128;
}

/* Bytes of sums that come to the part that finishes most of a tile, which is dealt out by 32 columns of a warp. */
static inline double exchanged(const struct hewn_gemm_kernel *k, uint32_t parts)
{
    uint32_t columns = k->tile_m * k->tile_n / 128, unit = 32;
    double most =
        gemm_smaller((double)(gemm_ceil_div(gemm_ceil_div(columns, unit), parts) * unit), columns);
    return most * (parts - 1) * 128 * 4;
}

/* A product cut into tiles by a kernel. */
struct cut {
    double tiles_m, tiles_n; /* each of a cluster */
    double clusters, waves;  /* clusters that run at once */
    double apart;            /* clusters whose CTAs share no TPC */
    double share;            /* of a cluster in half of the SMs */
};

/* How much longer a row takes while so many clusters fetch. */
static inline double crowd_of(const struct cut *c, double clusters)
{
    return clusters > c->apart ? 1 + crowd * (clusters * c->share - 1) : alone;
}

/* A k-block. Where few SMs work, they run at a higher clock. */
static inline double block_of(double multiply, double rows, const struct cut *c, double clusters)
{
    double clock = clusters > c->apart ? 1 : few_clock;
    return both(multiply * clock, rows * crowd_of(c, clusters), fetch_hinders);
}

/* Bytes of A and B that come from memory again, because a wave reads more than L2 keeps of them. */
static inline double again(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p,
                           const struct cut *c)
{
    if (c->tiles_m * c->tiles_n <= c->clusters) return 0;
    double row = gemm_real(p->k) * p->in;
    double rows = gemm_smaller(gemm_smaller(c->tiles_m, k->raster_rows), c->clusters);
    double columns = gemm_smaller(c->tiles_n, c->clusters / rows + 1);
    double wave = row * (rows * k->tile_m * k->pair_m + columns * k->tile_n * k->pair_n);
    double times = c->tiles_m * c->tiles_n / c->clusters;
    double more = times * wave - row * gemm_real(p->m + p->n);
    double misses = gemm_smaller(1, 2 * (wave / cache - 1));
    return more > 0 && misses > 0 ? gemm_real(p->batch) * misses * more : 0;
}

/* A, B and D as memory takes them: rows that begin askew, and D, for more than they are. */
struct gemm_view hewn_gemm_view(const struct hewn_gemm_model *model,
                                const struct hewn_gemm_extent *p)
{
    double m = gemm_real(p->m), n = gemm_real(p->n);
    double a = gemm_real(p->batch_a) * m * stretch(p->askew_a);
    double b = gemm_real(p->batch_b) * n * stretch(p->askew_b);
    struct gemm_view v = {
        .model = model,
        .p = p,
        .operands = (a + b) * gemm_real(p->k) * p->in,
        .output = gemm_real(p->batch) * m * n * p->out * written * (p->askew_d ? askew_written : 1),
        .lines = hewn_gemm_lines(p),
        .row_a = stretch(p->askew_a) * row_cycles,
        .row_b = stretch(p->askew_b) * row_cycles,
        .k_blocks = gemm_ceil_div(p->k * p->in, GEMM_ROW_BYTES),
        .finish = p->need & GEMM_CAN_FINISH ? start_finish : 0,
    };
    v.memory = (v.operands + v.output) / memory_bytes;
    return v;
}

/* The share of a run that CTAs wait for each other. */
static inline double drag(uint32_t parts, uint32_t pair, uint64_t waves, double blocks)
{
    double sum =
        (parts > 1 ? part_drag : 0) + (pair > 1 ? pair_drag : 0) + (waves > 1 ? wave_drag : 0);
    return sum * blocks / (blocks + drag_blocks);
}

/* What the power limit asks for: products of whole tiles, rows from L2, bytes of memory. */
static inline double power(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p,
                           const struct cut *c, double bytes, uint32_t sm_count)
{
    double pair_m = k->pair_m, pair_n = k->pair_n, m = k->tile_m, n = k->tile_n;
    double blocks = c->tiles_m * c->tiles_n * pair_m * pair_n * gemm_real(p->batch) *
                    gemm_real(gemm_ceil_div(p->k, hewn_gemm_tile_k(k, p->in)));
    double block = m * n * k->row_bytes / 4096 * mma_power + (m / pair_n + n / pair_m) * row_power;
    return (blocks * block + bytes * byte_power) / sm_count;
}

/* From the last product of a tile until it is stored. Split, flat and loose store by element; broader tiles with
 * parts take as long for their sums. */
static double epilogue_of(const struct hewn_gemm_kernel *k, int out_2)
{
    double area = (double)k->tile_m * k->tile_n;
    if (k->fitted) return area / (k->exchanged ? fit_exchanged_area : fit_area);
    double time = area / (k->exchanged ? exchanged_area : epilogue_area);
    if (out_2 && !k->exchanged && k->tile_n > 64) time += direct * (k->tile_n % 64);
    if (!k->odd && k->parts > 1 && area <= narrow)
        time += k->can & GEMM_CAN_LOOSE ? by_loose_element : by_element;
    return time;
}

/* What rows in two lines take longer. */
static inline double lines_of(const struct hewn_gemm_kernel *k)
{
    return k->fitted ? fit_lines : k->fetches ? two_lines : other_lines;
}

/* Cycles of a k-block's rows, by the CTA that fetches most. */
static inline double rows_of(const struct hewn_gemm_kernel *k, const struct gemm_view *v,
                             uint32_t parts, const struct cut *c)
{
    const struct hewn_gemm_extent *p = v->p;
    double rows =
        fetch(k->tile_m, k->pair_n, gemm_real(p->m), c->tiles_m * k->pair_m, c->waves, p->askew_a) +
        fetch(k->tile_n, k->pair_m, gemm_real(p->n), c->tiles_n * k->pair_n, c->waves, p->askew_b);
    if (!k->odd) rows *= 1 + lines_of(k) * v->lines;
    if (parts > 1 && !k->fitted && k->tile_m * k->tile_n <= narrow) rows *= parts_row;
    if (k->odd) return gemm_larger(rows * odd_fetch, shift(k, p));
    return k->can & GEMM_CAN_LOOSE ? gemm_loose(k, p, rows) : rows;
}

/* What adding up parts takes at a tile's end, without what it takes longer the more sums there are. */
static inline double least_add_up(const struct hewn_gemm_kernel *k, uint32_t parts, double area)
{
    return k->fitted        ? fit_broad + fit_broad_part * parts
           : area <= narrow ? merge + merge_part * parts
                            : broad + broad_part * parts;
}

/* Columns of sums of a consumer. */
static inline uint32_t columns_of(const struct hewn_gemm_kernel *k)
{
    return k->exchanged ? k->tile_m : k->tile_m == 64 ? k->tile_n / 2 : k->tile_n;
}

static inline double promoted_of(uint32_t columns)
{
    return promoted[(columns > 128) + (columns > 144) + (columns > 160) + (columns > 192) +
                    (columns > 224)];
}

/* Cycles of a k-block on the tensor cores. */
static inline double multiply_of(const struct hewn_gemm_kernel *k, double area, int promotes)
{
    double multiply = area * k->row_bytes / 4096 * (k->fitted ? fit_mma : mma_inefficiency) +
                      (k->fitted ? fit_beside : beside);
    if (k->fetches && !k->fitted && k->tile_m == 64) multiply += short_product;
    return promotes ? multiply * promoted_of(columns_of(k)) : multiply;
}

/* Of 1, 2, 4, 8, the logarithm to base 2. */
static inline int log_of(uint32_t x)
{
    return (x > 1) + (x > 2) + (x > 4);
}

/* What the other terms leave of a kernel's time. Kernels of rows of any length were not fitted. */
static void set_rest(struct gemm_terms *t, const struct hewn_gemm_kernel *k)
{
    if (k->odd || k->can & GEMM_CAN_LOOSE) return;
    t->rest = rest_pair_n * log_of(k->pair_n);
    if (k->fetches && !k->fitted && k->pair_m * k->pair_n == 8) t->rest += rest_eight;
    if (k->fetches && k->fitted) t->rest_memory = rest_fit_memory;
    if (k->fetches && !k->fitted)
        t->rest_memory = rest_spread_memory * log_of(k->pair_m * k->pair_n) +
                         (k->tile_m == 128 && k->tile_n <= 80
                              ? rest_narrow_memory - rest_narrow_pair * log_of(k->pair_n)
                              : 0);
    t->rest_least = t->rest + gemm_smaller(t->rest_memory, 0);
}

/* .. and of slices, in the terms of the parts. */
static inline double rest_of_parts(const struct hewn_gemm_kernel *k, uint32_t parts)
{
    if (k->odd || k->can & GEMM_CAN_LOOSE) return 0;
    return rest_slices + rest_slice_parts * log_of(parts < 4 ? parts : 4);
}

/* The terms that change with the tile. */
static void set_tile(struct gemm_terms *t, const struct hewn_gemm_kernel *k)
{
    t->height = k->tile_m * k->pair_m;
    t->width = k->tile_n * k->pair_n;
    t->area = (double)k->tile_m * k->tile_n;
    t->rows_a = (double)k->tile_m / k->pair_n;
    t->rows_b = (double)k->tile_n / k->pair_m;
    t->rest_late = k->tile_m == 256 && !k->odd && !(k->can & GEMM_CAN_LOOSE) ? rest_tall_late : 0;
    for (int i = 0; i < 2; i++) t->epilogue[i] = epilogue_of(k, i);
    for (int i = 0; i < 2; i++) t->multiply[i] = multiply_of(k, t->area, i);
}

__attribute__((cold)) static struct gemm_terms terms_of(const struct hewn_gemm_kernel *k)
{
    struct gemm_terms t = {
        .begin = gemm_start - (k->fitted    ? fit_early
                               : k->fetches ? spread_early
                                            : 0),
        .lines = lines_of(k),
    };
    if (k->fetches && !k->fitted && k->tile_m == 64) t.begin += short_late;
    set_tile(&t, k);
    set_rest(&t, k);
    return t;
}

void hewn_gemm_set_work(struct gemm_work *w, const struct hewn_gemm_kernel *k,
                        const struct gemm_terms *t, const struct gemm_view *v)
{
    const struct hewn_gemm_extent *p = v->p;
    w->of = t;
    w->tiles_m = gemm_ceil_div(p->m, t->height);
    w->tiles_n = gemm_ceil_div(p->n, t->width);
    w->tiles = w->tiles_m * w->tiles_n * p->batch;
    w->k_blocks =
        k->row_bytes == GEMM_ROW_BYTES ? v->k_blocks : gemm_ceil_div(p->k * p->in, k->row_bytes);
    w->multiply = t->multiply[p->promoted != 0];
    w->epilogue = t->epilogue[p->out == 2];
    w->begin = t->begin + v->finish;
    w->rows = (t->rows_a * v->row_a + t->rows_b * v->row_b) * (1 + t->lines * v->lines);
    w->again =
        (p->n >= p->m ? w->tiles_m * k->pair_m : w->tiles_n * k->pair_n) > 1 ? read_again : 1;
}

/* Whether tiles are stored while the next ones are multiplied. */
static inline int late_of(const struct hewn_gemm_kernel *k, const struct gemm_terms *t, int out_2)
{
    return t->area >= 128 * 192 && out_2 && !k->exchanged && !k->fitted;
}

/* From one tile to the next of a CTA; the boxes that find no k-block to go with come on top. */
static inline double least_between(const struct hewn_gemm_kernel *k, const struct gemm_terms *t,
                                   int out_2)
{
    double between = k->fitted ? fit_fill + t->epilogue[out_2] * fit_exposed
                               : fill + t->epilogue[out_2] * exposed;
    if (late_of(k, t, out_2)) between = late_between;
    return k->tile_m == 256 && !k->fitted ? between + tall_between : between;
}

/* What the tiles of the CTA that has most of them take, before the epilogue of the last, while none waits. */
static inline double run_of(const struct hewn_gemm_kernel *k, uint32_t parts,
                            const struct gemm_view *v, const struct gemm_work *w,
                            const struct cut *c, double blocks, double epilogue)
{
    const double area = w->of->area, multiply = w->multiply, rows = rows_of(k, v, parts, c);
    const double rest = gemm_real(w->tiles) - (c->waves - 1) * c->clusters;
    double between = k->fitted ? fit_fill + epilogue * fit_exposed : fill + epilogue * exposed;
    if (late_of(k, w->of, v->p->out == 2))
        between = late_between + (k->odd ? 0 : late_box * gemm_larger(0, late_boxes - blocks));
    if (k->tile_m == 256 && !k->fitted) between += tall_between;
    double run;
    if (k->odd || k->can & GEMM_CAN_LOOSE) {
        run = blocks * gemm_larger(multiply, rows);
        if (k->odd)
            run += (area > narrow ? odd_tile : odd_narrow) +
                   odd_cta * (c->waves > 1 ? c->clusters : rest);
        run += (c->waves - 1) * (run + between);
    } else {
        run = blocks * block_of(multiply, rows, c, rest);
        if (c->waves > 1) {
            double tile = blocks * block_of(multiply, rows, c, c->clusters) + between;
            if (parts == 1)
                tile = gemm_smaller(tile, both(blocks * rows * crowd_of(c, c->clusters),
                                               blocks * multiply + between, ring_hinders));
            run += (c->waves - 1) * tile;
        }
    }
    run *= w->again;
    if (k->fetches)
        run = run * (c->waves > 1 ? spread_waves : 1) +
              (k->fitted ? fit_pair : spread_start) * (k->pair_m * k->pair_n);
    return run;
}

/* Fitted tiles must be this much better by the model: at 12 shapes where they were not, they took 3 % longer than the
 * other kernels (ptx/sm_90a/LEDGER.md, "Tiles whose side the plan decides"). With parts of K, whose rivals take longer
 * than the model says, with 256 columns and without clusters, 2 % is enough. Tiles of 64 columns need none. */
static const double fit_margin = 1.07, fit_parts_margin = 1.02;

static inline double margin_of(const struct hewn_gemm_kernel *k, uint32_t parts)
{
    if (k->tile_n == 64) return 1;
    const int broad_alone = k->tile_n == 256 && k->exchanged && k->pair_m * k->pair_n == 1;
    return parts > 1 || broad_alone ? fit_parts_margin : fit_margin;
}

/* Of the loop of a kernel whose CTAs start together; as much better as parts is enough there. */
static inline double loop_of(const struct hewn_gemm_kernel *k, uint64_t tiles_m)
{
    const double margin = k->fitted ? fit_parts_margin / margin_of(k, 1) : 1;
    return together[tiles_m < 3 ? tiles_m : 0] * gemm_smaller(margin, 1);
}

/* Or more than `enough`, if products, memory and what follows them alone take that. */
static double cost_of(const struct hewn_gemm_kernel *k, uint32_t parts, const struct gemm_view *v,
                      const struct gemm_work *w, double enough)
{
    const struct hewn_gemm_extent *p = v->p;
    const uint32_t sm_count = v->model->machine.sm_count;
    if (k->few == HEWN_GEMM_LANES)
        return hewn_gemm_lanes_cost(k, p, sm_count, v->model->machine.launches);
    if (k->few) return hewn_gemm_few_cost(p, k->few, parts, sm_count);
    if (k->tmem_columns) return hewn_gemm_tmem_cost(k, p, sm_count);
    const double area = w->of->area;
    uint32_t pair = k->pair_m * k->pair_n, size = gemm_size_of(pair * parts);
    uint64_t clusters = v->model->machine.clusters[size],
             waves = w->tiles <= clusters ? 1 : gemm_ceil_div(w->tiles, clusters);
    double blocks = gemm_real(parts > 1 ? gemm_ceil_div(w->k_blocks, parts) : w->k_blocks);
    double begin = w->begin;
    if (w->tiles <= v->model->machine.apart[size] && !(k->can & GEMM_CAN_LOOSE))
        begin -= apart_early;
    if (pair * parts > 1) begin += k->fetches ? spread_cluster : start_cluster;
    /* Rows of any length are stored by element with parts, the more slowly the less they are aligned. */
    double epilogue = w->epilogue + (k->odd && parts > 1 ? by_odd_element * area / narrow : 0);
    double add_up = least_add_up(k, parts, area);
    double loop = 1;
    if (pair * parts == 1 &&
        hewn_gemm_together(k, w->tiles_m, w->tiles, w->k_blocks, (int)sm_count)) {
        begin += start_late;
        loop = loop_of(k, w->tiles_m);
    }
    double products = gemm_real(waves) * blocks * w->multiply * few_clock * spread_waves * loop;
    const double rest = v->sliced ? rest_of_parts(k, parts) : 0;
    const double most = enough / (1 + rest + w->of->rest_least);
    double left = most - begin - epilogue - (parts > 1 ? gemm_real(waves) * add_up : 0);
    if (gemm_larger(products, v->memory) > left || both(products, v->memory, memory_hinders) > left)
        return DBL_MAX;
    const struct cut c = {
        .tiles_m = gemm_real(w->tiles_m),
        .tiles_n = gemm_real(w->tiles_n),
        .clusters = gemm_real(clusters),
        .waves = gemm_real(waves),
        .apart = v->model->machine.apart[size],
        .share = 2.0 * pair * parts / sm_count,
    };
    double run = run_of(k, parts, v, w, &c, blocks, epilogue) * loop;
    if (run > left) return DBL_MAX;
    double bytes = v->operands + again(k, p, &c) + v->output;
    if (area > narrow || k->fitted)
        add_up += exchanged(k, parts) / (k->fitted ? fit_exchange : exchange);
    run *= 1 + drag(parts, pair, waves, blocks) * (k->fitted ? fit_drag : 1);
    const double ctas = gemm_smaller(gemm_real(w->tiles), gemm_real(clusters)) * pair * parts;
    const double reached = gemm_smaller(memory_bytes, ctas * cta_bytes);
    double time = begin + both(run, bytes / reached, memory_hinders) + epilogue +
                  (parts > 1 ? c.waves * add_up : 0);
    if (time > most) return DBL_MAX;
    time = both(time, power(k, p, &c, bytes, sm_count), power_hinders);
    return time * (1 + rest + w->of->rest + w->of->rest_memory * gemm_smaller(1, v->memory / time) +
                   w->of->rest_late * time / (time + rest_half));
}

static const double rounding = 1 - 1e-9; /* of bounds, whose terms are added in another order */

/* Of the loop of a kernel without clusters, at least. */
static inline double least_loop(const struct hewn_gemm_kernel *k, uint32_t parts)
{
    return k->exchanged && k->pair_m * k->pair_n * parts == 1 ? loop_of(k, 0) : 1;
}

/* Of a fitted tile: the side that is fixed; what the other one is a multiple of, at least, and at most. A consumer has
 * all of that one, or half (anyx64). */
struct sides {
    uint32_t fixed, unit, least, most;
};

static inline struct sides sides_of(const struct hewn_gemm_kernel *k, uint32_t parts)
{
    const uint32_t ex = k->exchanged, fixed = ex ? k->tile_n : k->tile_m,
                   sharing = ex ? k->pair_n : k->pair_m, halves = fixed == 64 ? 2 : 1,
                   unit = SM90A_GEMM_FIT_UNIT * (sharing > halves ? sharing : halves),
                   least = fixed == 256 ? SM90A_GEMM_FIT_LEAST_TALL
                                        : halves * SM90A_GEMM_FIT_LEAST(parts);
    return (struct sides){fixed, unit, (least + unit - 1) / unit * unit,
                          ex ? k->tile_m : k->tile_n};
}

/* The most waves, of those that are the least, for which a tile is fitted unasked. */
static inline uint32_t most_waves(const struct sides *s)
{
    return s->fixed == 256 ? BROAD_WAVES : FIT_WAVES;
}

/* Of each number of waves from the least on, the tile that just makes it. */
static double fit(const struct hewn_gemm_kernel *k, uint32_t parts, const struct gemm_view *v,
                  double enough, struct hewn_gemm_kernel *out)
{
    const struct hewn_gemm_extent *p = v->p;
    const struct sides sides = sides_of(k, parts);
    const uint32_t ex = k->exchanged, along = ex ? k->pair_m : k->pair_n;
    const uint64_t extent = ex ? p->m : p->n,
                   others = p->batch * (ex ? gemm_ceil_div(p->n, (uint64_t)k->tile_n * k->pair_n)
                                           : gemm_ceil_div(p->m, (uint64_t)k->tile_m * k->pair_m)),
                   clusters =
                       v->model->machine.clusters[gemm_size_of(k->pair_m * k->pair_n * parts)];
    uint64_t waves =
        gemm_ceil_div(gemm_ceil_div(extent, (uint64_t)sides.most * along) * others, clusters);
    const double blocks =
        gemm_real(gemm_ceil_div(gemm_ceil_div(p->k * p->in, GEMM_ROW_BYTES), parts)) *
        (few_clock * spread_waves * least_loop(k, parts));
    const double line = 1 + fit_lines * v->lines,
                 across = alone * line * (ex ? v->row_b : v->row_a) * sides.fixed / along,
                 row = alone * line * (ex ? v->row_a : v->row_b) / (ex ? k->pair_n : k->pair_m);
    double least = enough;
    struct hewn_gemm_kernel q = *k;
    struct gemm_terms t = *gemm_terms(v->model, k);
    /* Of more waves, and so at the power limit, those that store while they multiply take less time. */
    if (waves > most_waves(&sides) && enough < DBL_MAX) return enough;
    for (int i = 0; i < FIT_WAVES; i++, waves++) {
        const uint64_t tiles = waves * clusters / others;
        uint32_t side =
            (uint32_t)gemm_ceil_div(gemm_ceil_div(extent, tiles * along), sides.unit) * sides.unit;
        if (side < sides.least) side = sides.least;
        const double multiply = multiply_of(k, (double)sides.fixed * side, p->promoted != 0);
        const double begin = gemm_start - fit_early - (waves > 1 ? 0 : apart_early),
                     all = gemm_real(waves) * blocks;
        if (begin + all * multiply >= least ||
            (begin + all * (across + side * row)) * (1 + t.rest_least) * rounding >= least)
            continue;
        *(ex ? &q.tile_m : &q.tile_n) = side;
        set_tile(&t, &q);
        struct gemm_work w;
        hewn_gemm_set_work(&w, &q, &t, v);
        double c = cost_of(&q, parts, v, &w, least);
        if (c >= least) continue;
        least = c;
        q.stages = k->stages * (k->tile_m + k->tile_n) / (q.tile_m + q.tile_n);
        if (q.stages > SM90A_GEMM_FIT_STAGES) q.stages = SM90A_GEMM_FIT_STAGES;
        *out = q;
    }
    return least;
}

double hewn_gemm_fit(const struct hewn_gemm_model *model, const struct hewn_gemm_kernel *k,
                     uint32_t parts, const struct hewn_gemm_extent *p, struct hewn_gemm_kernel *out)
{
    const struct gemm_view v = hewn_gemm_view(model, p);
    return fit(k, parts, &v, DBL_MAX, out);
}

double hewn_gemm_cost(const struct hewn_gemm_kernel *k, uint32_t parts, const struct gemm_view *v,
                      const struct gemm_work *w, double enough)
{
    struct hewn_gemm_kernel fitted;
    const double margin = margin_of(k, parts);
    const double most = enough < DBL_MAX ? enough / margin : enough;
    if (!k->fitted) return cost_of(k, parts, v, w, enough);
    double c = fit(k, parts, v, most, &fitted);
    return c < most ? c * margin : DBL_MAX;
}

/* ---- the choice -- */

__attribute__((cold)) static struct gemm_candidate candidate_of(const struct hewn_gemm_kernel *k,
                                                                uint32_t parts,
                                                                const struct gemm_terms *t)
{
    const uint32_t ctas = k->pair_m * k->pair_n * parts;
    struct gemm_candidate c = {
        .parts = (uint8_t)parts,
        .size = (uint8_t)gemm_size_of(ctas),
        .bounded = !k->few && !k->tmem_columns && !k->odd && !(k->can & GEMM_CAN_LOOSE),
        .fitted = k->fitted != 0,
        .can = k->can | (k->fitted || k->few >= HEWN_GEMM_ODDFEW ? 0 : GEMM_SUITS_ORDER) |
               (ctas > 1 ? 0 : GEMM_SUITS_NO_CLUSTERS) |
               (k->can & GEMM_CAN_LOOSE ? 0 : GEMM_SUITS_ALIGNED) |
               (k->glu ? 0 : (uint32_t)GEMM_SUITS_NO_GLU),
        .most_m = k->most_m ? k->most_m : DBL_MAX,
        .per_height = 1.0 / t->height,
        .per_width = 1.0 / t->width,
        .per_parts = 1.0 / parts,
        .rows_a = t->rows_a,
        .rows_b = t->rows_b,
        .lines = t->lines,
        .ctas = ctas,
        .begin = t->begin + (ctas == 1    ? 0
                             : k->fetches ? spread_cluster
                                          : start_cluster),
        .add_up = parts > 1 ? least_add_up(k, parts, t->area) : 0,
    };
    if (parts > 1 && t->area <= narrow) c.rows_a *= parts_row, c.rows_b *= parts_row;
    for (int i = 0; i < 2; i++) {
        c.left[i] = (1 + t->rest_least + (i ? rest_of_parts(k, parts) : 0)) * rounding;
        c.multiply[i] = t->multiply[i];
        c.epilogue[i] = t->epilogue[i];
        const double between = least_between(k, t, i);
        *(parts > 1 ? &c.between[i] : &c.overlapped[i]) = between;
    }
    return c;
}

__attribute__((cold)) struct hewn_gemm_model *hewn_gemm_model_create(const char *target,
                                                                     uint32_t sm_count,
                                                                     int clusters)
{
    struct hewn_gemm_model *model = calloc(1, sizeof *model);
    if (!model) return NULL;
    struct gemm_machine *s = &model->machine;
    *s = (struct gemm_machine){.sm_count = sm_count, .launches = clusters, .share = 2.0 / sm_count};
    for (uint32_t i = 1; i <= HEWN_GEMM_CLUSTER + 1; i++) {
        s->clusters[i] = hewn_gemm_clusters(sm_count, i);
        s->apart[i] = hewn_gemm_clusters(sm_count / 2, i);
    }
    model->target = target;
    model->kernels = hewn_gemm_kernels_of(target, &model->kernel_count);
    for (size_t i = 0; i < model->kernel_count; i++) {
        const struct hewn_gemm_kernel *k = model->kernels + i;
        model->terms[i] = terms_of(k);
        for (uint32_t p = 1; p <= k->parts && !k->named; p++) {
            if (!(k->tried >> (p - 1) & 1) || model->candidate_count == GEMM_CANDIDATES) continue;
            struct gemm_candidate *c = &model->candidates[model->candidate_count++];
            *c = candidate_of(k, p, &model->terms[i]);
            c->kernel = (uint16_t)i;
        }
    }
    return model;
}

/* What it costs at least: without what two things that overlap hinder each other, with rows that all lie within the
 * matrix, and so on. */
static inline double bound_of(const struct gemm_candidate *c, const struct hewn_gemm_kernel *k,
                              const struct gemm_quick *q)
{
    const double clusters = q->of[c->size].clusters, apart = q->of[c->size].apart;
    const double tiles_m = gemm_whole(q->m * c->per_height),
                 tiles_n = gemm_whole(q->n * c->per_width), tiles = tiles_m * tiles_n * q->batch,
                 waves = gemm_whole(tiles * q->of[c->size].per_clusters),
                 rest = tiles - (waves - 1) * clusters,
                 blocks = gemm_whole(q->k_blocks * c->per_parts);
    const double rows = blocks * (c->rows_a * q->row_a + c->rows_b * q->row_b) *
                        (1 + c->lines * q->lines),
                 multiply = blocks * c->multiply[q->promoted];
    const double crowded = 1 + crowd * (rest * q->of[c->size].share - 1),
                 full = q->of[c->size].crowd;
    const int far = rest > apart;
    double run = gemm_larger(far ? multiply : multiply * few_clock, rows * (far ? crowded : alone));
    const double clock = clusters > apart ? 1 : few_clock;
    run += (waves - 1) * (gemm_larger(multiply * clock + c->overlapped[q->out_2], rows * full) +
                          c->between[q->out_2]);
    if ((q->wide ? tiles_m : tiles_n) > 1) run *= read_again;
    run *= least_loop(k, c->parts);
    const double begin = c->begin + q->finish - (tiles <= apart ? apart_early : 0);
    return (begin + both(run * spread_waves, q->memory, memory_hinders) + c->epilogue[q->out_2] +
            waves * c->add_up) *
           c->left[q->sliced];
}

/* The same of any tile that the plan may decide: waves * side is the extent that a cluster computes, or more. */
static double fit_bound(const struct gemm_candidate *c, const struct hewn_gemm_kernel *k,
                        const struct gemm_quick *q)
{
    const int ex = k->exchanged != 0;
    const struct sides s = sides_of(k, c->parts);
    const double along = ex ? k->pair_m : k->pair_n, across = ex ? k->pair_n : k->pair_m,
                 extent = ex ? q->m : q->n,
                 others = q->batch * gemm_whole(ex ? q->n * c->per_width : q->m * c->per_height),
                 waves = gemm_whole(gemm_whole(extent / (s.most * along)) * others *
                                    q->of[c->size].per_clusters);
    if (waves > most_waves(&s)) return DBL_MAX; /* as in `fit` */
    const double sides = extent * others * q->of[c->size].per_clusters / along;
    const double blocks = gemm_whole(q->k_blocks * c->per_parts);
    const double multiply =
        (double)s.fixed * GEMM_ROW_BYTES / 4096 * fit_mma * sides + fit_beside * waves;
    const double rows = (s.fixed * waves * (ex ? q->row_b : q->row_a) / along +
                         sides * (ex ? q->row_a : q->row_b) / across) *
                        (1 + fit_lines * q->lines) * alone;
    const double run =
        blocks * gemm_larger(multiply * few_clock * spread_waves, rows) * least_loop(k, c->parts);
    const double begin = c->begin + q->finish - (waves > 1 ? 0 : apart_early);
    return (begin + both(run, q->memory, memory_hinders) + waves * c->add_up) * c->left[q->sliced] *
           margin_of(k, c->parts);
}

double hewn_gemm_bound(const struct gemm_candidate *c, const struct hewn_gemm_kernel *k,
                       const struct gemm_quick *q)
{
    if (!c->bounded) return 0;
    return k->fitted ? fit_bound(c, k, q) : bound_of(c, k, q);
}

double hewn_gemm_slices_least(const struct hewn_gemm_extent *p, uint32_t sm_count)
{
    double m = gemm_real(p->m), n = gemm_real(p->n), row = gemm_real(p->k) * p->in;
    double products = p->m > SM90A_FEW_ROWS ? m * n * row / 4096 / sm_count : 0;
    double run = gemm_larger(products * mma_inefficiency * few_clock, (m + n) * row / few_bytes);
    return gemm_start - spread_early - apart_early + run;
}

/* A kernel that lacks something is chosen only if there is no other; the caller then says what it lacks; a small one
 * that lacks more than others do comes last. 0: it lacks nothing. */
static double lack(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p)
{
    const int lacks = (p->need & ~k->can) != 0 || (p->ordered && k->few >= HEWN_GEMM_ODDFEW);
    return lacks ? DBL_MAX / (k->few > HEWN_GEMM_ODDFEW ? 2 : 4) : 0;
}

/* So many parts of a kernel, where device and K have room for them and they cost less than the choice so far. */
static void try_parts(const struct hewn_gemm_kernel *k, const struct gemm_terms *t, uint32_t parts,
                      const struct gemm_view *v, struct hewn_gemm_choice *best)
{
    const struct gemm_machine *s = &v->model->machine;
    const uint32_t cluster = k->pair_m * k->pair_n * parts,
                   most = k->parts > HEWN_GEMM_CLUSTER ? k->parts : HEWN_GEMM_CLUSTER;
    const double lacks = lack(k, v->p);
    struct gemm_work work;
    if ((cluster > 1 && !s->launches) || cluster > most || !s->clusters[gemm_size_of(cluster)] ||
        gemm_ceil_div(v->p->k * v->p->in, k->row_bytes) < gemm_least_blocks(k, parts))
        return;
    hewn_gemm_set_work(&work, k, t, v);
    const double c = lacks > 0 ? lacks : hewn_gemm_cost(k, parts, v, &work, best->cost);
    if (c < best->cost) *best = (struct hewn_gemm_choice){k, parts, lacks > 0, c};
}

struct gemm_quick hewn_gemm_quick(const struct gemm_view *v)
{
    const struct hewn_gemm_extent *p = v->p;
    struct gemm_quick q = {
        .m = gemm_real(p->m),
        .n = gemm_real(p->n),
        .batch = gemm_real(p->batch),
        .k_blocks = gemm_real(v->k_blocks),
        .row_a = v->row_a,
        .row_b = v->row_b,
        .lines = v->lines,
        .memory = v->memory,
        .finish = v->finish,
        .need = p->need | (p->ordered ? GEMM_SUITS_ORDER : 0) |
                (v->model->machine.launches ? 0 : GEMM_SUITS_NO_CLUSTERS) |
                (p->need & GEMM_CAN_LOOSE ? 0 : GEMM_SUITS_ALIGNED) |
                (p->need & GEMM_CAN_GLU ? 0 : (uint32_t)GEMM_SUITS_NO_GLU),
        .sliced = v->sliced,
        .promoted = p->promoted != 0,
        .out_2 = p->out == 2,
        .wide = p->n >= p->m,
    };
    for (int i = 1; i <= HEWN_GEMM_CLUSTER + 1; i++) {
        const double clusters = v->model->machine.clusters[i], share = i * v->model->machine.share,
                     apart = v->model->machine.apart[i];
        q.of[i].clusters = clusters;
        q.of[i].per_clusters = clusters > 0 ? 1 / clusters : 1;
        q.of[i].apart = apart;
        q.of[i].share = share;
        q.of[i].crowd = clusters > apart ? 1 + crowd * (clusters * share - 1) : alone;
    }
    return q;
}

/* Among the candidates that lack nothing: those without a bound; then that with the least bound, so that fewer others
 * can cost less than the least so far. */
static void choose_any(const struct gemm_view *v, struct hewn_gemm_choice *best)
{
    const struct hewn_gemm_model *const all = v->model;
    const struct hewn_gemm_kernel *const first = all->kernels;
    const struct gemm_quick q = hewn_gemm_quick(v);
    struct {
        double bound;
        const struct gemm_candidate *c;
    } open[GEMM_CANDIDATES + 1];
    const struct gemm_terms *const terms = all->terms;
    size_t count = 0, nearest = 0;
    for (const struct gemm_candidate *c = all->candidates, *end = c + all->candidate_count; c < end;
         c++) {
        if (!gemm_suits(c, &q)) continue;
        if (!c->bounded) {
            try_parts(first + c->kernel, terms + c->kernel, c->parts, v, best);
            continue;
        }
        const double bound =
            c->fitted ? fit_bound(c, first + c->kernel, &q) : bound_of(c, first + c->kernel, &q);
        if (bound >= best->cost) continue;
        open[count].bound = bound;
        open[count].c = c;
        if (bound < open[nearest].bound) nearest = count;
        count++;
    }
    for (size_t i = 0; i <= count; i++) {
        const size_t at = i ? i - 1 : nearest;
        if (!count || (i && at == nearest) || open[at].bound >= best->cost) continue;
        const struct gemm_candidate *c = open[at].c;
        try_parts(first + c->kernel, terms + c->kernel, c->parts, v, best);
    }
}

/* Those that are named; where none is, any that computes the problem if it had what it lacks. */
__attribute__((cold)) static int try_named(const struct gemm_view *v, const char *variant,
                                           uint32_t parts, struct hewn_gemm_choice *out,
                                           hewn_error *err)
{
    const struct hewn_gemm_model *const model = v->model;
    const struct hewn_gemm_extent *p = v->p;
    int known = 0; /* the name is the table's own text, as in plans of slices */
    for (size_t i = 0; i < model->kernel_count; i++) known |= variant == model->kernels[i].variant;
    for (size_t i = 0; i < model->kernel_count; i++) {
        const struct hewn_gemm_kernel *k = model->kernels + i;
        const uint32_t tried = variant || parts ? UINT32_MAX : k->tried;
        if (variant ? known ? variant != k->variant : strcmp(variant, k->variant) != 0
                    : !tried || gemm_passes(k, p))
            continue;
        if (k->most_m && p->m > k->most_m) {
            if (!variant) continue;
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "variant: \"%s\" has at most %u rows, m is %llu", variant, k->most_m,
                             (unsigned long long)p->m);
        }
        for (uint32_t n = 1; n <= k->parts; n++)
            if (tried >> (n - 1) & 1 && (!parts || n == parts))
                try_parts(k, model->terms + i, n, v, out);
    }
    return HEWN_OK;
}

int hewn_gemm_choose(const struct hewn_gemm_model *model, const char *variant, uint32_t parts,
                     const struct hewn_gemm_extent *problem, struct hewn_gemm_choice *out,
                     hewn_error *err)
{
    const struct gemm_view view = hewn_gemm_view(model, problem);
    int status = HEWN_OK;
    *out = (struct hewn_gemm_choice){.cost = DBL_MAX};
    if (!variant && !parts) choose_any(&view, out);
    if (!out->kernel) status = try_named(&view, variant, parts, out, err);
    if (status || out->kernel || model->kernel_count == 0) return status;
    return hewn_fail(err, HEWN_ERR_ARGUMENT,
                     "variant, parts: no kernel for %s%s%s%s takes %u parts of K here (%d SMs, "
                     "%llu k; clusters: %s)",
                     model->target, variant ? " is called \"" : "", variant ? variant : "",
                     variant ? "\" and" : "", parts, (int)model->machine.sm_count,
                     (unsigned long long)problem->k, model->machine.launches ? "yes" : "no");
}
