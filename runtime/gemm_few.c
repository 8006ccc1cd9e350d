/*
 * Shapes and cost of the GEMMs of few rows. All CTAs run at once and load equal shares, because the memory is
 * what bounds them: as many tiles as the device holds CTAs, or a fraction of that with parts of K.
 */
#include "gemm_few.h"

#include "../ptx/sm_100f/gemm_few.plan.h"
#include "../ptx/sm_90a/gemm_few.plan.h"
#include "../ptx/sm_90a/gemm_oddfew.plan.h"
#include "../ptx/sm_90a/gemm_oddsmall.plan.h"

enum {
    COLUMN_UNIT = 8,        /* rows of a swizzle pattern */
    HALF_RING = 100 << 10,  /* two CTAs fit an SM, of one launch or of two that follow each other */
    WHOLE_RING = 200 << 10, /* one */
    LEAST_STAGES = 4,       /* what a half ring must hold where an SM gets two tiles */
    LEAST_ALONE = 6,        /* where it gets one: fewer bytes in flight take longer */
    WHOLE_FROM =
        33, /* rows from which it has all of the SM, however many stages half of it holds */
    LARGE_BYTES = 96 * 1000000, /* of B */
    SMALL_SMS = 132,
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* sqrt(a^2 + b^2): what two things take that overlap and hinder each other. */
static double both(double a, double b)
{
    double most = larger(a, b), less = a > b ? b : a, root = most + 0.4 * less;
    for (int i = 0; i < 2; i++) root = (root + (a * a + b * b) / root) / 2;
    return root;
}

/* Bytes that memory must give and take. */
static double once(const struct hewn_gemm_extent *p)
{
    double in = (double)(p->batch_a * p->m + p->batch_b * p->n) * (double)p->k * p->in;
    return in + (double)(p->batch * p->m) * (double)p->n * p->out;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint32_t k_blocks(const struct hewn_gemm_extent *p, uint32_t row_bytes)
{
    return (uint32_t)ceil_div(p->k * p->in, row_bytes);
}

static uint32_t stage_bytes(const struct hewn_gemm_extent *p, uint32_t columns)
{
    return SM90A_FEW_B_BYTES(columns) + (uint32_t)SM90A_FEW_A_BYTES((uint32_t)p->m, p->mn_a);
}

/* CTAs an SM. A large B is streamed best by two of them; a small one leaves room for those of the next launch. */
static uint32_t ctas_per_sm(const struct hewn_gemm_extent *p)
{
    return p->batch_b * p->n * p->k * p->in >= LARGE_BYTES ? 2 : 1;
}

/* The most columns of a tile: four stages fit half an SM; of 8-bit inputs and more than 32 rows a warpgroup has one
 * chunk. */
static uint32_t most_columns(const struct hewn_gemm_extent *p)
{
    int half = ctas_per_sm(p) == 2 || (p->in == 1 && p->m > SM90A_FEW_ROWS / 2);
    return half ? SM90A_FEW_COLUMNS / 2 : SM90A_FEW_COLUMNS;
}

static uint64_t clusters(const struct hewn_gemm_extent *p, uint32_t parts, uint32_t sm_count)
{
    uint64_t fit = (uint64_t)hewn_gemm_clusters(sm_count, parts) * ctas_per_sm(p);
    return fit ? fit : 1;
}

static uint32_t columns_of(const struct hewn_gemm_extent *p, uint32_t parts, uint32_t sm_count)
{
    uint32_t unit = p->need & GEMM_CAN_GLU ? 2 * SM90A_FEW_CHUNK
                    : p->mn_b              ? SM90A_FEW_CHUNK
                                           : COLUMN_UNIT;
    uint32_t most = most_columns(p);
    uint64_t tiles = clusters(p, parts, sm_count) / p->batch; /* of a problem */
    uint64_t columns = ceil_div(ceil_div(p->n, tiles ? tiles : 1), unit) * unit;
    return columns < most ? (uint32_t)columns : most;
}

static void few_shape(const struct hewn_gemm_extent *p, uint32_t parts, uint32_t sm_count,
                      struct hewn_gemm_few *out)
{
    uint32_t columns = columns_of(p, parts, sm_count), stage = stage_bytes(p, columns);
    uint32_t rows = SM90A_FEW_MMA_N((uint32_t)p->m);
    uint32_t share = (uint32_t)ceil_div(k_blocks(p, GEMM_ROW_BYTES), parts),
             stages = HALF_RING / stage;
    uint32_t sums = rows * SM90A_FEW_SUM_PITCH(columns);
    const int alone = ceil_div(p->n, columns) * p->batch <= hewn_gemm_clusters(sm_count, parts);
    if (stages < (alone ? LEAST_ALONE : LEAST_STAGES) || (alone && p->m >= WHOLE_FROM))
        stages = WHOLE_RING / stage;
    if (stages > share) stages = share;
    if (stages > SM90A_FEW_STAGES) stages = SM90A_FEW_STAGES;
    *out = (struct hewn_gemm_few){
        .columns = columns,
        .stages = stages,
        .rows = rows,
        .shared_bytes = stages * stage > sums ? stages * stage : sums,
    };
}

/* ---- operands that begin anywhere -- */

enum { ODD_RING_STAGES = 5 };

/* Few enough rows: two rings of an SM hold enough stages. */
static int odd_half(const struct hewn_gemm_extent *p)
{
    return p->m <= SM90A_ODDFEW_MMA_ROWS;
}

/* Warps that copy and shift wait for memory and for each other, so two CTAs an SM take less time, whatever B's size. */
static uint32_t odd_ctas_per_sm(const struct hewn_gemm_extent *p)
{
    return odd_half(p) ? 2 : 1;
}

/* Tiles that all CTAs compute at once, or again and again, of equal size. */
static uint32_t odd_columns(const struct hewn_gemm_extent *p, uint32_t parts, uint32_t sm_count)
{
    uint32_t rows = SM90A_ODDFEW_A_ROWS(p->m), unit = SM90A_ODDFEW_MMA_ROWS;
    uint32_t ring = odd_half(p) ? HALF_RING : SM90A_ODDFEW_DYNAMIC_SHARED;
    uint32_t most = ring / SM90A_ODDFEW_RING_PITCH(ODD_RING_STAGES) - rows;
    if (most > SM90A_ODDFEW_MOST_COLUMNS(p->m)) most = SM90A_ODDFEW_MOST_COLUMNS(p->m);
    most = most / unit * unit;
    uint64_t fit = (uint64_t)hewn_gemm_clusters(sm_count, parts) * odd_ctas_per_sm(p);
    if (fit < p->batch) fit = p->batch;
    uint64_t waves = ceil_div(ceil_div(p->n, most) * p->batch, fit); /* no problem shares a tile */
    return (uint32_t)(ceil_div(ceil_div(p->n, waves * fit / p->batch), unit) * unit);
}

static void odd_shape(const struct hewn_gemm_extent *p, uint32_t parts, uint32_t sm_count,
                      struct hewn_gemm_few *out)
{
    uint32_t columns = odd_columns(p, parts, sm_count);
    uint32_t rows = SM90A_ODDFEW_A_ROWS((uint32_t)p->m);
    uint32_t share = (uint32_t)ceil_div(k_blocks(p, SM90A_ODDFEW_SLICE), parts);
    uint32_t ring = odd_half(p) ? HALF_RING : SM90A_ODDFEW_DYNAMIC_SHARED;
    uint32_t stages = (ring / (rows + columns) - SM90A_ODDFEW_RING_PAD) / SM90A_ODDFEW_SLICE;
    if (stages > share + 1) stages = share + 1; /* and a short one */
    if (stages > SM90A_ODDFEW_STAGES) stages = SM90A_ODDFEW_STAGES;
    if (stages < SM90A_ODDFEW_LEAST_STAGES) stages = SM90A_ODDFEW_LEAST_STAGES;
    uint32_t used = SM90A_ODDFEW_RING_BYTES(rows, columns, stages);
    uint32_t sums = SM90A_ODDFEW_SUM_BYTES(rows, columns);
    *out = (struct hewn_gemm_few){
        .columns = columns,
        .stages = stages,
        .rows = rows,
        .shared_bytes = used > sums ? used : sums,
    };
}

/* ---- small ones of operands that begin anywhere -- */

/*
 * Cycles of a small product of tiles of one side, each of a team of the CTA's warps. An SM holds two CTAs; with `waves`
 * of them behind each other:
 *   chain = waves * (tile + units of a thread * unit + steps of k of a warp * step)
 *           unit: four results that it adds up and stores; step: a wait for memory
 *   loads = CTAs of an SM * their teams * blocks of a part * block        32 elements of k of its rows
 *   cost  = (start + sqrt(chain^2 + loads^2) + merge of the parts) * slow    beside other kernels
 * Fitted to 2,684 timings of H200s: sm_90a/LEDGER.md, "Small products of any rows".
 */
struct small_speed {
    uint32_t side;
    double tile, unit, step, block, slow;
};
static const double small_start = 345.1, small_merge = 250.4, small_merge_part = 38.2;
static const struct small_speed small_16 =
                                    {SM90A_ODDSMALL_LEAST_SIDE, 2867, 555.1, 1002, 72.2, 1.16},
                                small_32 = {SM90A_ODDSMALL_SIDE, 3053, 1285, 1515, 127.9, 1.14};

static double small_cost(const struct hewn_gemm_extent *p, const struct small_speed *v,
                         uint32_t parts, uint32_t teams, uint32_t sm_count)
{
    uint64_t clusters = hewn_gemm_clusters(sm_count, parts);
    uint64_t tiles = ceil_div(p->m, v->side) * ceil_div(p->n, v->side) * p->batch;
    uint64_t blocks = ceil_div(k_blocks(p, SM90A_ODDSMALL_STEP), parts);
    uint64_t ctas = ceil_div(tiles, teams),
             rows = p->m < v->side ? p->m : v->side; /* or clusters */
    double steps = (double)ceil_div(blocks * teams, SM90A_ODDSMALL_WARPS);
    double units = (double)ceil_div(rows * v->side / 4 * teams, SM90A_ODDSMALL_THREADS);
    if (!clusters) clusters = 1;
    double chain =
        (double)ceil_div(ctas, 2 * clusters) * (v->tile + units * v->unit + steps * v->step);
    double cost = small_start +
                  both(chain, (double)(ceil_div(ctas, clusters) * teams * blocks) * v->block) +
                  (parts > 1 ? small_merge + small_merge_part * parts : 0);
    return cost * v->slow;
}

/* As many teams as take least on an H200, whatever the device, because the order of the sums depends on them. */
static double small_shape(const struct hewn_gemm_extent *p, uint32_t few, uint32_t parts,
                          uint32_t sm_count, struct hewn_gemm_few *out)
{
    const struct small_speed *v = few == HEWN_GEMM_ODD16 ? &small_16 : &small_32;
    double least = small_cost(p, v, parts, 1, SMALL_SMS);
    *out = (struct hewn_gemm_few){v->side, 1, v->side, SM90A_ODDSMALL_SUM_BYTES(v->side), 0};
    for (uint32_t teams = 2; parts == 1 && teams <= SM90A_ODDSMALL_WARPS; teams *= 2) {
        double cost = small_cost(p, v, parts, teams, SMALL_SMS);
        if (cost >= least) continue;
        least = cost;
        out->stages = teams;
    }
    return small_cost(p, v, parts, out->stages, sm_count);
}

/* ---- of sm_100f: a lane is a column of D -- */

/* CTAs of a cluster. Every CTA needs all of A, but L2 gives it once a cluster: bytes of A that all of them ask for
 * should be fewer than those of B, which memory gives at half of L2's rate. Each CTA's share has rows of A. */
static uint32_t lanes_share(const struct hewn_gemm_extent *p, uint32_t sm_count)
{
    const uint64_t rows = SM100F_FEW_MMA_N((uint32_t)p->m);
    uint32_t share = 1;
    if (p->mn_a || p->batch > 1) return 1;
    while (share < SM100F_FEW_SHARE && 10 * rows * sm_count > 6 * p->n * share &&
           p->m > rows - rows / (2 * share) && p->n > SM100F_FEW_COLUMNS * share &&
           hewn_gemm_clusters(sm_count, 2 * share))
        share *= 2;
    return share;
}

/* As many tiles as the device has SMs, or a multiple, of equal size. */
static void lanes_shape(const struct hewn_gemm_extent *p, uint32_t parts, uint32_t sms,
                        struct hewn_gemm_few *out)
{
    const uint32_t m = (uint32_t)p->m, unit = p->mn_b ? GEMM_MN_BOX : 1;
    const uint32_t share = parts ? lanes_share(p, sms) : 1;
    const uint32_t sm_count = hewn_gemm_clusters(sms, share) * share;
    const uint32_t stage = SM100F_FEW_B_BYTES + (uint32_t)SM100F_FEW_A_BYTES(m, p->mn_a);
    uint64_t waves = ceil_div(ceil_div(p->n, SM100F_FEW_COLUMNS) * p->batch, sm_count);
    uint64_t columns = ceil_div(ceil_div(p->n, waves * sm_count / p->batch), unit) * unit;
    uint32_t stages = SM100F_FEW_DYNAMIC_SHARED / stage;
    if (stages > SM100F_FEW_STAGES) stages = SM100F_FEW_STAGES;
    if (columns < SM100F_FEW_LEAST_COLUMNS) columns = SM100F_FEW_LEAST_COLUMNS;
    *out = (struct hewn_gemm_few){
        .columns = (uint32_t)columns,
        .stages = stages,
        .rows = (uint32_t)SM100F_FEW_MMA_N(m),
        .shared_bytes = SM100F_FEW_DYNAMIC_SHARED, /* one CTA an SM */
        .share = share,
    };
}

/* ---- all -- */

void hewn_gemm_few_shape(const struct hewn_gemm_extent *p, uint32_t few, uint32_t parts,
                         uint32_t sm_count, struct hewn_gemm_few *out)
{
    if (few == HEWN_GEMM_LANES) {
        lanes_shape(p, parts, sm_count, out);
        return;
    }
    if (few > HEWN_GEMM_ODDFEW)
        (void)small_shape(p, few, parts, sm_count, out);
    else
        (few == HEWN_GEMM_ODDFEW ? odd_shape : few_shape)(p, parts, sm_count, out);
}

/*
 * Cycles, as gemm_cost.c counts them. Of a tile of w columns, with m rows of A, and `passes` tiles an SM:
 *   load   = w * column * stretch of B + m * row * stretch of A    a k-block's copies
 *   block  = sqrt(work^2 + load^2)    a k-block, work: barriers and products, promoted ones of a CTA alone on
 *            its SM chunk by chunk; of `oddfew`, which copies with the warps that multiply, work + load of a
 *            slice of 256 bytes
 *   loads  = passes * blocks of a part * block
 *   memory = A, B and D once / memory
 *   finish = w * (sums + sum * columns of the MMA + store * m / parts)    sums to shared memory, then D
 *   cost   = start + sqrt(memory^2 + loads^2) + merge of the parts + finish + (waves - 1) * (wave + finish)
 * Fitted to an H200: sm_90a/LEDGER.md, "The choice".
 */
struct speed {
    double start, memory, work, promoted, alone, column, row, across, askew, wave, merge,
        merge_more, sums, sum, store;
};
static const struct speed few_speed = {3602,  3144, 142.8, 175.6, 172.3, 2.368,  2.767,  1.255,
                                       1.937, 1231, 795,   55.28, 1.558, 0.2028, 0.09696};
static const struct speed odd_speed = {2754, 1710, 896, 896, 896, -11.4, 28.1, 1,
                                       1,    0,    653, 179, 76,  0,     1.05};

double hewn_gemm_few_cost(const struct hewn_gemm_extent *p, uint32_t few, uint32_t parts,
                          uint32_t sm_count)
{
    const int odd = few == HEWN_GEMM_ODDFEW;
    const struct speed *v = odd ? &odd_speed : &few_speed;
    const double stretch[] = {1, v->across, v->askew};
    struct hewn_gemm_few s;
    if (few > HEWN_GEMM_ODDFEW) return small_shape(p, few, parts, sm_count, &s);
    hewn_gemm_few_shape(p, few, parts, sm_count, &s);
    uint32_t clusters = hewn_gemm_clusters(sm_count, parts);
    uint64_t tiles = ceil_div(p->n, s.columns) * p->batch;
    uint64_t passes = ceil_div(tiles, clusters ? clusters : 1);
    uint64_t waves = s.shared_bytes <= HALF_RING ? ceil_div(passes, 2) : passes;
    uint64_t blocks = ceil_div(k_blocks(p, odd ? SM90A_ODDFEW_SLICE : GEMM_ROW_BYTES), parts);
    double columns = s.columns, rows = s.rows, m = (double)p->m;
    double promoted =
        odd || passes > 1 ? v->promoted : v->alone * (double)ceil_div(s.columns, SM90A_FEW_CHUNK);
    double work = p->promoted ? promoted * larger(1, rows / 32) : v->work;
    double load =
        columns * v->column * stretch[p->askew_b] + (odd ? rows : m) * v->row * stretch[p->askew_a];
    double loads = (double)(passes * blocks) * (odd ? work + load : both(work, load));
    double finish = columns * (v->sums + v->sum * rows + v->store * m / parts);
    return v->start + both(once(p) / v->memory, loads) +
           (parts > 1 ? v->merge + v->merge_more * parts : 0) + finish +
           (double)(waves - 1) * (v->wave + finish);
}
