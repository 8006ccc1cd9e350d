/* Which GEMM kernel, parts and slices of K cost least: a model of their time. */
#include "gemm_kernels.h"

#include "error.h"
#include "gemm_few.h"

#include "../ptx/inc/gemm_combine.plan.h"
#include "../ptx/sm_90a/gemm.plan.h"
#include "../ptx/sm_90a/gemm_few.plan.h"

#include <float.h>
#include <string.h>

enum {
    FIT_WAVES = 3 /* numbers of waves that a fitted tile is tried for */
};

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

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
static const double start = 3781, start_cluster = 39.25, spread_cluster = 35.34;
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
/* 8-bit sums, promoted; the ledger. `two`: of consumers with sums of two k-blocks. */
static const double promote_wide = 1.201, promote = 1.309, promote_two = 1.15;
enum { TWO_COLUMNS = 128 /* of a consumer, at most, that has two */ };
static const double start_finish = 76.51; /* what else an epilogue reads */
/* A row's cycles, against row_cycles: while no two CTAs share a TPC; more of it, while all SMs fetch. */
static const double alone = 0.7875, crowd = 0.3441;
static const double few_clock = 0.8923; /* cycles where few SMs work, which run at 1.98 GHz */
static const double cache = 62e6;       /* bytes of a wave: what L2 keeps for the next */
/* Of a cycle of the tensor cores, a row into an SM, a byte of memory. */
static const double mma_power = 0.3978, row_power = 0.4032, byte_power = 0.005429,
                    power_hinders = 0.2649;
/* What makes the CTAs of a tile, or of a pair, wait for each other; in a loop of drag_blocks, half as much. */
static const double part_drag = 0.04547, pair_drag = 0.02966, wave_drag = 0.02223,
                    drag_blocks = 46.82;
/* What is left of a kernel's time, in parts of it: where CTAs share rows of A, and in slices of K, for each doubling of
 * CTAs or parts; of the share that memory takes, with fitted tiles, with clusters of spread ones, and with narrow ones,
 * which read more rows of A than of B; of long products with tiles of 256 rows. */
static const double rest_pair_n = -0.01287, rest_slices = 0.01884, rest_slice_parts = -0.02374,
                    rest_fit_memory = -0.07326, rest_spread_memory = -0.0286,
                    rest_tall_late = 0.0354, rest_narrow_memory = 0.0738, rest_narrow_pair = 0.0297;
static const double rest_half = 35000; /* cycles of a product, half of which are long */
static const double narrow = 8192; /* results of a tile whose parts add up in memory of their own */
static const double loose_row = 35.6; /* a row through registers */
static const double odd_fetch = 2.65; /* a row of 144 bytes, of two or three lines, against one */
static const double shared_bytes = 97.76;              /* a cycle, of shared memory */
static const double odd_tile = 2804, odd_narrow = 900; /* beside its k-blocks; of 64 columns */
static const double odd_cta = 19.54;                   /* for each CTA that works beside it */

/* The time of a row that begins so, against one that begins on a line. */
static double stretch(uint32_t begins_askew)
{
    return begins_askew > 1 ? askew : 1;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* What two things take that overlap and hinder each other; with 0.26 the cube root of the sum of cubes. */
static inline double both(double a, double b, double hindrance)
{
    double most = larger(a, b), ratio = smaller(a, b) / most;
    return most * (1 + hindrance * ratio * ratio * ratio);
}

/* Cycles of a k-block's rows along one side of the tile, `sharing` CTAs of which load a part each. With one
 * wave the tile at the end counts, with more the mean. */
static inline double fetch(double tile, uint32_t sharing, double extent, double tiles, double waves,
                           uint32_t begins_askew)
{
    double beyond = smaller(tile, (tiles * tile - extent) / (waves > 1 ? tiles : 1));
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

/* The share of rows that lie in two lines of 128 bytes, which take longer. */
static double lines(const struct hewn_gemm_extent *p)
{
    uint64_t bytes = p->k * p->in | 128;
    return 1 - (double)(bytes & -bytes) / 128;
}

/* Bytes of sums that come to the part that finishes most of a tile, which is dealt out by 32 columns of a warp. */
static inline double exchanged(const struct hewn_gemm_kernel *k, uint32_t parts)
{
    uint32_t columns = k->tile_m * k->tile_n / 128, unit = 32;
    double most = smaller((double)(ceil_div(ceil_div(columns, unit), parts) * unit), columns);
    return most * (parts - 1) * 128 * 4;
}

/* Of a kernel that loads loose rows through registers. */
static double loose(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p, double rows)
{
    double through = loose_row * (p->loose_a * k->tile_m + p->loose_b * k->tile_n);
    return larger(through, rows);
}

/* Of a kernel with tensor memory, in SM cycles of a B200, by the rates of the simulator's model
 * (tools/sim/trace/model.c); no Blackwell GPU has been timed. A k-block's MMAs take half a cycle a column, or
 * what shared memory takes for the operands. The epilogue of one tile overlaps the next tile's MMAs. */
static const double column_cycles = 0.5, operand_cycles = 0.25;  /* of 32 bytes of k */
static const double blackwell_bytes = 4800, blackwell_l2 = 9100; /* a cycle, of all SMs together */
static const double stored_column = 10, blackwell_start = 3200, pair_start = 300;

/* Rows of 128 bytes into an SM, at most 79 bytes a cycle, of which it asks for some itself, while so many SMs
 * load. */
static double blackwell_rows(double rows, double asked, double sms)
{
    return larger(1.62 * rows, 128 * asked * sms / blackwell_l2);
}

static double tensor_memory_cost(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p,
                                 uint32_t sm_count)
{
    const uint32_t cluster = k->pair_m * k->pair_n;
    uint64_t tiles = ceil_div(p->m, (uint64_t)k->tile_m * k->pair_m) *
                     ceil_div(p->n, (uint64_t)k->tile_n * k->pair_n);
    /* A GPC has an even number of SMs, which need not be a multiple of four. */
    const uint32_t clusters = sm_count / cluster - (cluster > 2 && sm_count > 8 * cluster);
    double waves = (double)ceil_div(tiles * p->batch, clusters);
    double blocks = (double)ceil_div(p->k, hewn_gemm_tile_k(k, p->in));
    double rows = k->tile_m + (double)k->tile_n / k->pair_m;
    double multiply = larger(column_cycles * k->tile_n, operand_cycles * rows);
    double at_once = smaller(clusters, (double)(tiles * p->batch)) * cluster;
    double asked = rows - k->tile_m + (double)k->tile_m / k->pair_n;
    double loads = blackwell_rows(rows, asked, at_once);
    if (k->can & GEMM_CAN_LOOSE) loads = loose(k, p, 2 * loads) / 2; /* twice as many warps */
    double block = larger(multiply * k->row_bytes / 32, loads);
    double epilogue = stored_column * k->tile_n;
    double bytes = ((double)p->batch_a * (double)p->m + (double)p->batch_b * (double)p->n) *
                       (double)p->k * p->in +
                   (double)p->batch * (double)p->m * (double)p->n * p->out;
    double run = waves * larger(blocks * block, epilogue);
    return blackwell_start + (cluster > 1 ? pair_start : 0) + larger(run, bytes / blackwell_bytes) +
           epilogue;
}

/* The same where rows of A are columns of the MMA. */
static double few_lanes_cost(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p,
                             uint32_t sm_count, int clusters)
{
    struct hewn_gemm_few s;
    hewn_gemm_few_shape(p, k->few, clusters ? 1 : 0, sm_count, &s);
    if (s.share > 1) sm_count = hewn_gemm_clusters(sm_count, s.share) * s.share;
    uint64_t tiles = ceil_div(p->n, s.columns) * p->batch;
    double waves = (double)ceil_div(tiles, sm_count);
    double at_once = smaller((double)tiles, sm_count);
    double blocks = (double)ceil_div(p->k, hewn_gemm_tile_k(k, p->in)), rows = s.rows;
    double multiply = larger(column_cycles * rows, operand_cycles * (rows + k->tile_n));
    double loaded = (double)p->m + s.columns, asked = (double)p->m / s.share + s.columns;
    double block = larger(multiply * k->row_bytes / 32, blackwell_rows(loaded, asked, at_once));
    double epilogue = stored_column * rows;
    double bytes = ((double)p->batch_a * (double)p->m + (double)p->batch_b * (double)p->n) *
                       (double)p->k * p->in +
                   (double)p->batch * (double)p->m * (double)p->n * p->out;
    double run = waves * larger(blocks * block, epilogue);
    return blackwell_start + larger(run, bytes / blackwell_bytes) + epilogue;
}

/* What does not depend on the kernel: clusters of so many CTAs, the last of more, that run at once on all SMs, and on
 * half of them; bytes of A and B, and of D, and the cycles that memory takes for them at least; the share of rows in
 * two lines. */
struct machine {
    uint32_t sm_count, clusters[HEWN_GEMM_CLUSTER + 2], apart[HEWN_GEMM_CLUSTER + 2];
    int launches; /* clusters may be launched */
};
struct view {
    const struct machine *machine;
    const struct hewn_gemm_extent *p;
    double operands, output, memory, lines;
    int sliced; /* the problem stands for slices */
};

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
    double row = (double)p->k * p->in;
    double rows = smaller(smaller(c->tiles_m, k->raster_rows), c->clusters);
    double columns = smaller(c->tiles_n, c->clusters / rows + 1);
    double wave = row * (rows * k->tile_m * k->pair_m + columns * k->tile_n * k->pair_n);
    double times = c->tiles_m * c->tiles_n / c->clusters;
    double more = times * wave - row * (double)(p->m + p->n);
    double misses = smaller(1, 2 * (wave / cache - 1));
    return more > 0 && misses > 0 ? (double)p->batch * misses * more : 0;
}

static uint32_t size_of(uint32_t cluster)
{
    return cluster > HEWN_GEMM_CLUSTER ? HEWN_GEMM_CLUSTER + 1 : cluster;
}

static struct machine machine_of(uint32_t sm_count, int clusters)
{
    struct machine s = {.sm_count = sm_count, .launches = clusters};
    for (uint32_t i = 1; i <= HEWN_GEMM_CLUSTER + 1; i++) {
        s.clusters[i] = hewn_gemm_clusters(sm_count, i);
        s.apart[i] = hewn_gemm_clusters(sm_count / 2, i);
    }
    return s;
}

/* A, B and D as memory takes them: rows that begin askew, and D, for more than they are. */
static struct view view_of(const struct machine *machine, const struct hewn_gemm_extent *p)
{
    double m = (double)p->m, n = (double)p->n;
    double a = (double)p->batch_a * m * stretch(p->askew_a);
    double b = (double)p->batch_b * n * stretch(p->askew_b);
    struct view v = {
        .machine = machine,
        .p = p,
        .operands = (a + b) * (double)p->k * p->in,
        .output = (double)p->batch * m * n * p->out * written * (p->askew_d ? askew_written : 1),
        .lines = lines(p),
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
    double blocks = c->tiles_m * c->tiles_n * pair_m * pair_n * (double)p->batch *
                    (double)ceil_div(p->k, hewn_gemm_tile_k(k, p->in));
    double block = m * n * k->row_bytes / 4096 * mma_power + (m / pair_n + n / pair_m) * row_power;
    return (blocks * block + bytes * byte_power) / sm_count;
}

/* From the last product of a tile until it is stored. Split, flat and loose store by element; broader tiles with
 * parts take as long for their sums. Rows of any length are stored so with parts, the more slowly the less they are
 * aligned. */
static inline double epilogue_of(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p,
                                 uint32_t parts)
{
    double area = (double)k->tile_m * k->tile_n;
    if (k->fitted) return area / (k->exchanged ? fit_exchanged_area : fit_area);
    double time = area / (k->exchanged ? exchanged_area : epilogue_area);
    if (p->out == 2 && !k->exchanged && k->tile_n > 64) time += direct * (k->tile_n % 64);
    if (k->odd) return time + (parts > 1 ? by_odd_element * area / narrow : 0);
    if (k->parts > 1 && area <= narrow)
        time += k->can & GEMM_CAN_LOOSE ? by_loose_element : by_element;
    return time;
}

/* Cycles of a k-block's rows, by the CTA that fetches most. */
static inline double rows_of(const struct hewn_gemm_kernel *k, const struct view *v, uint32_t parts,
                             const struct cut *c)
{
    const struct hewn_gemm_extent *p = v->p;
    double rows =
        fetch(k->tile_m, k->pair_n, (double)p->m, c->tiles_m * k->pair_m, c->waves, p->askew_a) +
        fetch(k->tile_n, k->pair_m, (double)p->n, c->tiles_n * k->pair_n, c->waves, p->askew_b);
    if (!k->odd)
        rows *= 1 + (k->fitted ? fit_lines : k->fetches ? two_lines : other_lines) * v->lines;
    if (parts > 1 && !k->fitted && k->tile_m * k->tile_n <= narrow) rows *= parts_row;
    if (k->odd) return larger(rows * odd_fetch, shift(k, p));
    return k->can & GEMM_CAN_LOOSE ? loose(k, p, rows) : rows;
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

/* Cycles of a k-block on the tensor cores. */
static inline double multiply_of(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p,
                                 double area)
{
    double multiply = area * k->row_bytes / 4096 * (k->fitted ? fit_mma : mma_inefficiency) +
                      (k->fitted ? fit_beside : beside);
    if (k->fetches && !k->fitted && k->tile_m == 64) multiply += short_product;
    if (p->promoted)
        multiply *= columns_of(k) <= TWO_COLUMNS ? promote_two
                    : k->tile_n >= 192           ? promote_wide
                                                 : promote;
    return multiply;
}

/* A kernel's tiles of a problem, whatever the parts. */
struct work {
    uint64_t tiles_m, tiles_n, tiles, k_blocks; /* tiles each of a cluster */
    double area, multiply;
};

static inline struct work work_of(const struct hewn_gemm_kernel *k,
                                  const struct hewn_gemm_extent *p)
{
    struct work w = {
        .tiles_m = ceil_div(p->m, (uint64_t)k->tile_m * k->pair_m),
        .tiles_n = ceil_div(p->n, (uint64_t)k->tile_n * k->pair_n),
        .k_blocks = ceil_div(p->k * p->in, k->row_bytes),
        .area = (double)k->tile_m * k->tile_n,
    };
    w.tiles = w.tiles_m * w.tiles_n * p->batch;
    w.multiply = multiply_of(k, p, w.area);
    return w;
}

/* What the tiles of the CTA that has most of them take, before the epilogue of the last, while none waits. */
static inline double run_of(const struct hewn_gemm_kernel *k, uint32_t parts, const struct view *v,
                            const struct work *w, const struct cut *c, double blocks,
                            double epilogue)
{
    const struct hewn_gemm_extent *p = v->p;
    const double area = w->area, multiply = w->multiply, rows = rows_of(k, v, parts, c);
    const double rest = (double)w->tiles - (c->waves - 1) * c->clusters;
    double run, between = k->fitted ? fit_fill + epilogue * fit_exposed : fill + epilogue * exposed;
    if (area >= 128 * 192 && p->out == 2 && !k->exchanged && !k->fitted)
        between = late_between + (k->odd ? 0 : late_box * larger(0, late_boxes - blocks));
    if (k->tile_m == 256 && !k->fitted) between += tall_between;
    if (k->odd || k->can & GEMM_CAN_LOOSE) {
        run = blocks * larger(multiply, rows);
        if (k->odd)
            run += (area > narrow ? odd_tile : odd_narrow) +
                   odd_cta * (c->waves > 1 ? c->clusters : rest);
        run += (c->waves - 1) * (run + between);
    } else {
        run = blocks * block_of(multiply, rows, c, rest);
        if (c->waves > 1) {
            double tile = blocks * block_of(multiply, rows, c, c->clusters) + between;
            if (parts == 1)
                tile = smaller(tile, both(blocks * rows * crowd_of(c, c->clusters),
                                          blocks * multiply + between, ring_hinders));
            run += (c->waves - 1) * tile;
        }
    }
    /* Of equal kernels, the one whose tiles read the larger operand once. */
    if (p->n >= p->m ? w->tiles_m * k->pair_m > 1 : w->tiles_n * k->pair_n > 1) run *= read_again;
    if (k->fetches)
        run = run * (c->waves > 1 ? spread_waves : 1) +
              (k->fitted ? fit_pair : spread_start) * (k->pair_m * k->pair_n);
    return run;
}

/* Of 1, 2, 4, 8, the logarithm to base 2. */
static inline int log_of(uint32_t x)
{
    return (x > 1) + (x > 2) + (x > 4);
}

/* What the other terms leave of a kernel's time, in parts of it: of all of it, of the share that memory takes, and of the
 * share that lies behind `rest_half`, about. Kernels of rows of any length were not fitted. */
struct rest {
    double always, memory, late;
};

static inline struct rest rest_of(const struct hewn_gemm_kernel *k, uint32_t parts, int sliced)
{
    struct rest r = {0};
    if (k->odd || k->can & GEMM_CAN_LOOSE) return r;
    r.always = rest_pair_n * log_of(k->pair_n);
    if (sliced) r.always += rest_slices + rest_slice_parts * log_of(parts < 4 ? parts : 4);
    if (k->fetches && k->fitted) r.memory = rest_fit_memory;
    if (k->fetches && !k->fitted)
        r.memory = rest_spread_memory * log_of(k->pair_m * k->pair_n) +
                   (k->tile_m == 128 && k->tile_n <= 80
                        ? rest_narrow_memory - rest_narrow_pair * log_of(k->pair_n)
                        : 0);
    if (k->tile_m == 256) r.late = rest_tall_late;
    return r;
}

/* Or more than `enough`, if products, memory and what follows them alone take that. */
static double cost_of(const struct hewn_gemm_kernel *k, uint32_t parts, const struct view *v,
                      const struct work *w, double enough)
{
    const struct hewn_gemm_extent *p = v->p;
    const uint32_t sm_count = v->machine->sm_count;
    if (k->few == HEWN_GEMM_LANES) return few_lanes_cost(k, p, sm_count, v->machine->launches);
    if (k->few) return hewn_gemm_few_cost(p, k->few, parts, sm_count);
    if (k->tmem_columns) return tensor_memory_cost(k, p, sm_count);
    const double area = w->area;
    uint32_t pair = k->pair_m * k->pair_n, size = size_of(pair * parts);
    uint64_t clusters = v->machine->clusters[size],
             waves = w->tiles <= clusters ? 1 : ceil_div(w->tiles, clusters);
    double blocks = (double)(parts > 1 ? ceil_div(w->k_blocks, parts) : w->k_blocks);
    double begin = start - (k->fitted ? fit_early : k->fetches ? spread_early : 0);
    if (w->tiles <= v->machine->apart[size] && !(k->can & GEMM_CAN_LOOSE)) begin -= apart_early;
    if (k->fetches && !k->fitted && k->tile_m == 64) begin += short_late;
    if (pair * parts > 1) begin += k->fetches ? spread_cluster : start_cluster;
    if (p->need & GEMM_CAN_FINISH) begin += start_finish;
    double epilogue = epilogue_of(k, p, parts), add_up = least_add_up(k, parts, area);
    double products = (double)waves * blocks * w->multiply * few_clock * spread_waves;
    const struct rest rest = rest_of(k, parts, v->sliced);
    const double most =
        enough / (1 + rest.always + smaller(rest.memory, 0) + smaller(rest.late, 0));
    double left = most - begin - epilogue - (parts > 1 ? (double)waves * add_up : 0);
    if (larger(products, v->memory) > left || both(products, v->memory, memory_hinders) > left)
        return DBL_MAX;
    const struct cut c = {
        .tiles_m = (double)w->tiles_m,
        .tiles_n = (double)w->tiles_n,
        .clusters = (double)clusters,
        .waves = (double)waves,
        .apart = v->machine->apart[size],
        .share = 2.0 * pair * parts / sm_count,
    };
    double run = run_of(k, parts, v, w, &c, blocks, epilogue);
    if (run > left) return DBL_MAX;
    double bytes = v->operands + again(k, p, &c) + v->output;
    if (area > narrow || k->fitted)
        add_up += exchanged(k, parts) / (k->fitted ? fit_exchange : exchange);
    run *= 1 + drag(parts, pair, waves, blocks) * (k->fitted ? fit_drag : 1);
    const double ctas = smaller((double)w->tiles, (double)clusters) * pair * parts;
    const double reached = smaller(memory_bytes, ctas * cta_bytes);
    double time = begin + both(run, bytes / reached, memory_hinders) + epilogue +
                  (parts > 1 ? c.waves * add_up : 0);
    if (time > most) return DBL_MAX;
    time = both(time, power(k, p, &c, bytes, sm_count), power_hinders);
    return time * (1 + rest.always + rest.memory * smaller(1, v->memory / time) +
                   rest.late * time / (time + rest_half));
}

/* Of each number of waves from the least on, the tile that just makes it. */
static double fit(const struct hewn_gemm_kernel *k, uint32_t parts, const struct view *v,
                  double enough, struct hewn_gemm_kernel *out)
{
    const struct hewn_gemm_extent *p = v->p;
    const uint32_t ex = k->exchanged, along = ex ? k->pair_m : k->pair_n,
                   unit = SM90A_GEMM_FIT_UNIT * (ex ? k->pair_n : k->pair_m);
    const uint64_t extent = ex ? p->m : p->n,
                   others = p->batch * (ex ? ceil_div(p->n, (uint64_t)k->tile_n * k->pair_n)
                                           : ceil_div(p->m, (uint64_t)k->tile_m * k->pair_m)),
                   clusters = v->machine->clusters[size_of(k->pair_m * k->pair_n * parts)];
    uint64_t waves = ceil_div(ceil_div(extent, SM90A_GEMM_FIT_MOST * along) * others, clusters);
    const double blocks = (double)ceil_div(ceil_div(p->k * p->in, GEMM_ROW_BYTES), parts) *
                          (few_clock * spread_waves);
    double least = enough;
    /* Of more waves, and so at the power limit, those that store while they multiply take less time. */
    if (waves > FIT_WAVES && enough < DBL_MAX) return enough;
    for (int i = 0; i < FIT_WAVES; i++, waves++) {
        const uint64_t tiles = waves * clusters / others;
        uint32_t side = (uint32_t)ceil_div(ceil_div(extent, tiles * along), unit) * unit;
        if (side < SM90A_GEMM_FIT_LEAST(parts))
            side = (uint32_t)ceil_div(SM90A_GEMM_FIT_LEAST(parts), unit) * unit;
        if (start - fit_early - (waves > 1 ? 0 : apart_early) +
                (double)waves * blocks * multiply_of(k, p, 128.0 * side) >=
            least)
            continue;
        struct hewn_gemm_kernel q = *k;
        *(ex ? &q.tile_m : &q.tile_n) = side;
        const struct work w = work_of(&q, p);
        double c = cost_of(&q, parts, v, &w, least);
        if (c >= least) continue;
        least = c;
        q.stages = SM90A_GEMM_FIT_RING / (GEMM_ROW_BYTES * (q.tile_m + q.tile_n));
        if (q.stages > SM90A_GEMM_FIT_STAGES) q.stages = SM90A_GEMM_FIT_STAGES;
        *out = q;
    }
    return least;
}

double hewn_gemm_fit(const struct hewn_gemm_kernel *k, uint32_t parts,
                     const struct hewn_gemm_extent *p, uint32_t sm_count,
                     struct hewn_gemm_kernel *out)
{
    const struct machine machine = machine_of(sm_count, 1);
    const struct view v = view_of(&machine, p);
    return fit(k, parts, &v, DBL_MAX, out);
}

/* Fitted tiles must be this much better by the model: at 12 shapes where they were not, they took 3 % longer than the
 * other kernels (ptx/sm_90a/LEDGER.md, "Tiles whose side the plan decides"). With parts of K, whose rivals take longer
 * than the model says, 2 % is enough. */
static const double fit_margin = 1.07, fit_parts_margin = 1.02;

static double cost(const struct hewn_gemm_kernel *k, uint32_t parts, const struct view *v,
                   const struct work *w, double enough)
{
    struct hewn_gemm_kernel fitted;
    const double margin = parts > 1 ? fit_parts_margin : fit_margin;
    const double most = enough < DBL_MAX ? enough / margin : enough;
    if (!k->fitted) return cost_of(k, parts, v, w, enough);
    double c = fit(k, parts, v, most, &fitted);
    return c < most ? c * margin : DBL_MAX;
}

/* k-blocks that so many parts need. Odd rows: every warp of the producer has units in each tile. */
static uint64_t least_blocks(const struct hewn_gemm_kernel *k, uint32_t parts)
{
    return k->odd && parts > 1 ? (uint64_t)2 * parts : parts;
}

/* Whether a kernel computes such a product only if it is named. */
static inline int passes(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p)
{
    return k->named || (k->fitted && p->ordered) || k->glu != ((p->need & GEMM_CAN_GLU) != 0) ||
           (k->can & GEMM_CAN_LOOSE && !(p->need & GEMM_CAN_LOOSE));
}

int hewn_gemm_choose(const char *target, const char *variant, uint32_t parts,
                     const struct hewn_gemm_extent *problem, uint32_t sm_count, int clusters,
                     struct hewn_gemm_choice *out, hewn_error *err)
{
    const struct machine machine = machine_of(sm_count, clusters);
    const struct view view = view_of(&machine, problem);
    size_t count;
    const struct hewn_gemm_kernel *const first = hewn_gemm_kernels_of(target, &count);
    double least = DBL_MAX;
    out->kernel = NULL;
    for (const struct hewn_gemm_kernel *k = first; k < first + count; k++) {
        int lacks =
            (problem->need & ~k->can) != 0 || (problem->ordered && k->few >= HEWN_GEMM_ODDFEW);
        const uint32_t tried = variant || parts ? UINT32_MAX : k->tried;
        if (variant ? strcmp(variant, k->variant) != 0 : !tried || passes(k, problem)) continue;
        if (k->most_m && problem->m > k->most_m) {
            if (!variant) continue;
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "variant: \"%s\" has at most %u rows, m is %llu", variant, k->most_m,
                             (unsigned long long)problem->m);
        }
        const struct work work = work_of(k, problem);
        uint32_t most = k->parts > HEWN_GEMM_CLUSTER ? k->parts : HEWN_GEMM_CLUSTER;
        for (uint32_t p = 1; p <= k->parts && tried >> (p - 1); p++) {
            uint32_t cluster = k->pair_m * k->pair_n * p;
            if (!(tried >> (p - 1) & 1) || (parts && p != parts) || (cluster > 1 && !clusters) ||
                cluster > most || !machine.clusters[size_of(cluster)] ||
                work.k_blocks < least_blocks(k, p))
                continue;
            /* A kernel that lacks something is chosen only if there is no other; the caller then says
             * what it lacks; a small one that lacks more than others do comes last. */
            double c = lacks ? DBL_MAX / (k->few > HEWN_GEMM_ODDFEW ? 2 : 4)
                             : cost(k, p, &view, &work, least);
            if (c >= least) continue;
            least = c;
            *out = (struct hewn_gemm_choice){k, p, lacks, c};
        }
    }
    if (out->kernel || count == 0) return HEWN_OK;
    return hewn_fail(err, HEWN_ERR_ARGUMENT,
                     "variant, parts: no kernel for %s%s%s%s takes %u parts of K here (%d SMs, "
                     "%llu k; clusters: %s)",
                     target, variant ? " is called \"" : "", variant ? variant : "",
                     variant ? "\" and" : "", parts, (int)sm_count, (unsigned long long)problem->k,
                     clusters ? "yes" : "no");
}

/* ---- slices of K -- */

/* The kernel that adds up slices: start, loads and stores; a slice; its reads from L2, bytes a cycle; what it takes
 * longer for those of the transpose. On sm_100f by the simulator's model; there fewer than four slices take as long. */
static const double combine = 2246, combine_slice = 45.75, combine_bytes = 2459;
static const double combine_turned = 697.1, combine_turned_bytes = 3359;
static const double blackwell_combine = 4400, blackwell_combine_bytes = 1725;
static const double few_bytes = 3100; /* of memory, a cycle, that `few` is said to reach */

/* k-blocks of K, of most kernels. */
static uint64_t blocks_of(const struct hewn_gemm_extent *p)
{
    return ceil_div(p->k * p->in, GEMM_ROW_BYTES);
}

/* The problem of the transpose of D, where it is cut into slices. */
static struct hewn_gemm_extent turned_of(const struct hewn_gemm_extent *p)
{
    struct hewn_gemm_extent q = *p;
    q.m = p->n, q.n = p->m;
    q.askew_a = p->askew_b, q.askew_b = p->askew_a;
    q.loose_a = p->loose_b, q.loose_b = p->loose_a;
    q.ways_a = p->ways_b, q.ways_b = p->ways_a;
    return q;
}

/* Columns of tiles that most slices have, of operands with tensor maps and of others. */
enum { COMMON_COLUMNS = 64, ODD_COLUMNS = 256 };

/* Results that tiles of 128 rows compute for a product. */
static uint64_t covered(const struct hewn_gemm_extent *p)
{
    const uint64_t columns = p->loose_a || p->loose_b ? ODD_COLUMNS : COMMON_COLUMNS;
    return ceil_div(p->m, 128) * 128 * ceil_div(p->n, columns) * columns;
}

int hewn_gemm_sliceable(const struct hewn_gemm_extent *p, uint32_t slices)
{
    return p->batch == 1 && blocks_of(p) >= slices &&
           !(p->need & (GEMM_CAN_KINDS | GEMM_CAN_SCALES | GEMM_CAN_GLU));
}

int hewn_gemm_cuts(const struct hewn_gemm_kernel *k, uint32_t parts,
                   const struct hewn_gemm_extent *p, uint32_t slices)
{
    return ceil_div(p->k * p->in, k->row_bytes) >= slices * least_blocks(k, parts);
}

struct hewn_gemm_extent hewn_gemm_slice_extent(const struct hewn_gemm_extent *p, uint32_t slices)
{
    struct hewn_gemm_extent q = slices > HEWN_GEMM_TURNED ? turned_of(p) : *p;
    slices %= HEWN_GEMM_TURNED;
    q.askew_d = (q.n + 3) / 4 % 2 != 0;
    q.k = ceil_div(blocks_of(p), slices) * GEMM_ROW_BYTES / p->in;
    q.batch = q.batch_a = q.batch_b = slices;
    q.out = 4;
    q.need = (q.need & ~(uint32_t)(GEMM_CAN_FINISH | GEMM_CAN_LOOSE)) | GEMM_CAN_F32 |
             (p->loose_a || p->loose_b ? GEMM_CAN_LOOSE : 0);
    return q;
}

static uint64_t tiles_of(const struct hewn_gemm_kernel *k, uint64_t m, uint64_t n)
{
    return ceil_div(m, (uint64_t)k->tile_m * k->pair_m) *
           ceil_div(n, (uint64_t)k->tile_n * k->pair_n);
}

uint32_t hewn_gemm_most_slices(const struct hewn_gemm_kernel *k, uint32_t parts, uint64_t m,
                               uint64_t n, uint32_t sm_count)
{
    uint64_t most = hewn_gemm_clusters(sm_count, k->pair_m * k->pair_n * parts) / tiles_of(k, m, n);
    return most < GEMM_MAX_SLICES ? (uint32_t)most : GEMM_MAX_SLICES;
}

static double combine_cost(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p,
                           uint32_t slices, int turned)
{
    double sums = slices * (double)p->m * (double)p->n * 4;
    double more = turned ? combine_turned + sums / combine_turned_bytes : 0;
    return k->tmem_columns
               ? blackwell_combine + larger(sums, sums / slices * 4) / blackwell_combine_bytes
               : combine + slices * combine_slice + sums / combine_bytes + more;
}

/* As many slices as occupy all clusters once, and half as many; or the fewest whose longest is no longer. */
static void try_slices(const struct hewn_gemm_kernel *k, uint32_t parts,
                       const struct hewn_gemm_extent *p, int turned, const struct machine *machine,
                       struct hewn_gemm_choice *out, uint32_t *slices)
{
    uint64_t most = hewn_gemm_most_slices(k, parts, p->m, p->n, machine->sm_count);
    if (most > p->k * p->in / GEMM_SLICE_BYTES) most = p->k * p->in / GEMM_SLICE_BYTES;
    /* of a k-block, at least */
    const double block = k->few || k->fitted || k->tmem_columns
                             ? 0
                             : multiply_of(k, p, (double)k->tile_m * k->tile_n) * few_clock;
    for (int i = 0; i < 2 && most > 1; i++, most /= 2) {
        const uint64_t longest = ceil_div(blocks_of(p), most);
        const uint32_t s = (uint32_t)ceil_div(blocks_of(p), longest);
        const double after = combine_cost(k, p, s, turned);
        const double blocks =
            (double)ceil_div(longest * GEMM_ROW_BYTES, (uint64_t)k->row_bytes * parts);
        if (start - spread_early - apart_early + blocks * block + after >= out->cost ||
            !hewn_gemm_cuts(k, parts, p, s))
            continue;
        const struct hewn_gemm_extent q = hewn_gemm_slice_extent(p, s);
        struct view v = view_of(machine, &q);
        const struct work w = work_of(k, &q);
        v.lines = lines(p), v.sliced = 1;
        double c = cost(k, parts, &v, &w, out->cost - after) + after;
        if (c >= out->cost) continue;
        *out = (struct hewn_gemm_choice){k, parts, 0, c};
        *slices = s;
    }
}

/* About what slices cost at least, by kernels of sm_90a; of few rows, without the products. */
static double least_of_slices(const struct hewn_gemm_kernel *k, const struct hewn_gemm_extent *p,
                              uint32_t sm_count)
{
    double m = (double)p->m, n = (double)p->n, row = (double)p->k * p->in;
    double products = p->m > SM90A_FEW_ROWS ? m * n * row / 4096 / sm_count : 0;
    double run = larger(products * mma_inefficiency * few_clock, (m + n) * row / few_bytes);
    return start - spread_early - apart_early + run + combine_cost(k, p, 2, 0);
}

uint32_t hewn_gemm_choose_slices(const struct hewn_gemm_choice *whole,
                                 const struct hewn_gemm_extent *problem, uint32_t sm_count,
                                 int clusters, struct hewn_gemm_choice *out)
{
    uint32_t slices = 1;
    const uint32_t need = hewn_gemm_slice_extent(problem, 1).need;
    *out = *whole;
    if (whole->cost < start + combine ||
        (!whole->kernel->tmem_columns &&
         whole->cost < least_of_slices(whole->kernel, problem, sm_count)))
        return 1;
    const struct machine machine = machine_of(sm_count, clusters);
    size_t count;
    const struct hewn_gemm_kernel *const first =
        hewn_gemm_kernels_of(whole->kernel->target, &count);
    /* Of D and its transpose, that which tiles cover better: trying both doubles the time of the choice and saves 0.1 %
     * of a product's. Few rows have kernels of their own. Those of sm_100f were not timed with the transpose. */
    const struct hewn_gemm_extent other = turned_of(problem);
    const int turn = !whole->kernel->tmem_columns && problem->m > SM90A_FEW_ROWS &&
                     17 * covered(&other) < 16 * covered(problem);
    if (turn) problem = &other;
    for (const struct hewn_gemm_kernel *k = first; k < first + count; k++) {
        if (need & ~k->can || !k->tried || passes(k, problem) ||
            (k->most_m && problem->m > k->most_m))
            continue;
        const uint64_t two = 2 * tiles_of(k, problem->m, problem->n);
        for (uint32_t p = 1; p <= k->parts; p++) {
            uint32_t cluster = k->pair_m * k->pair_n * p;
            if ((cluster > 1 && !clusters) || cluster > (k->fitted ? 2 : HEWN_GEMM_CLUSTER) ||
                two * cluster > sm_count) /* no room for two slices */
                break;
            if (!(k->tried >> (p - 1) & 1)) continue;
            try_slices(k, p, problem, turn, &machine, out, &slices);
        }
    }
    return turn && slices > 1 ? HEWN_GEMM_TURNED + slices : slices;
}
