/* How many slices of K cost least, with which kernel: the model of their time. */
#include "gemm_cost.h"

#include "../ptx/inc/gemm_combine.plan.h"
#include "../ptx/sm_90a/gemm_few.plan.h"

/* The kernel that adds up slices: start, loads and stores; a slice; its reads from L2, bytes a cycle; what it takes
 * longer for those of the transpose. On sm_100f by the simulator's model; there fewer than four slices take as long. */
static const double combine = 2246, combine_slice = 45.75, combine_bytes = 2459;
static const double combine_turned = 697.1, combine_turned_bytes = 3359;
static const double blackwell_combine = 4400, blackwell_combine_bytes = 1725;

/* k-blocks of K, of most kernels. */
static uint64_t blocks_of(const struct hewn_gemm_extent *p)
{
    return gemm_ceil_div(p->k * p->in, GEMM_ROW_BYTES);
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
    return gemm_ceil_div(p->m, 128) * 128 * gemm_ceil_div(p->n, columns) * columns;
}

int hewn_gemm_sliceable(const struct hewn_gemm_extent *p, uint32_t slices)
{
    return p->batch == 1 && blocks_of(p) >= slices &&
           !(p->need & (GEMM_CAN_KINDS | GEMM_CAN_SCALES | GEMM_CAN_GLU));
}

int hewn_gemm_cuts(const struct hewn_gemm_kernel *k, uint32_t parts,
                   const struct hewn_gemm_extent *p, uint32_t slices)
{
    return gemm_ceil_div(p->k * p->in, k->row_bytes) >= slices * gemm_least_blocks(k, parts);
}

struct hewn_gemm_extent hewn_gemm_slice_extent(const struct hewn_gemm_extent *p, uint32_t slices)
{
    struct hewn_gemm_extent q = slices > HEWN_GEMM_TURNED ? turned_of(p) : *p;
    slices %= HEWN_GEMM_TURNED;
    q.askew_d = (q.n + 3) / 4 % 2 != 0;
    q.k = gemm_ceil_div(blocks_of(p), slices) * GEMM_ROW_BYTES / p->in;
    q.batch = q.batch_a = q.batch_b = slices;
    q.out = 4;
    q.need = (q.need & ~(uint32_t)(GEMM_CAN_FINISH | GEMM_CAN_LOOSE)) | GEMM_CAN_F32 |
             (p->loose_a || p->loose_b ? GEMM_CAN_LOOSE : 0);
    return q;
}

static uint64_t tiles_of(const struct hewn_gemm_kernel *k, uint64_t m, uint64_t n)
{
    return gemm_ceil_div(m, (uint64_t)k->tile_m * k->pair_m) *
           gemm_ceil_div(n, (uint64_t)k->tile_n * k->pair_n);
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
               ? blackwell_combine + gemm_larger(sums, sums / slices * 4) / blackwell_combine_bytes
               : combine + slices * combine_slice + sums / combine_bytes + more;
}

/* Slices of one problem, or of its transpose: what they have in common. */
struct slicing {
    const struct hewn_gemm_extent *p;
    const struct hewn_gemm_model *model;
    struct gemm_quick quick;
    double lines; /* the share of rows in two lines */
    double once,
        sum; /* cycles that memory takes for A and B at least, and for the sums of a slice */
    int turned;
};

static struct slicing slicing_of(const struct hewn_gemm_model *model,
                                 const struct hewn_gemm_extent *p, int turned)
{
    struct hewn_gemm_extent one = *p;
    one.out = 4;
    one.askew_d = (p->n + 3) / 4 % 2 != 0;
    one.need = hewn_gemm_slice_extent(p, 1).need;
    struct gemm_view v = hewn_gemm_view(model, &one);
    v.sliced = 1;
    return (struct slicing){
        .p = p,
        .model = model,
        .quick = hewn_gemm_quick(&v),
        .lines = v.lines,
        .once = v.memory * v.operands / (v.operands + v.output),
        .sum = v.memory * v.output / (v.operands + v.output),
        .turned = turned,
    };
}

/* As many slices as occupy all clusters once, and half as many; or the fewest whose longest is no longer. */
static void try_slices(struct slicing *s, const struct gemm_candidate *c,
                       const struct hewn_gemm_kernel *k, uint64_t tiles,
                       struct hewn_gemm_choice *out, uint32_t *slices)
{
    const struct hewn_gemm_extent *p = s->p;
    const uint64_t blocks = blocks_of(p);
    uint64_t most = s->model->machine.clusters[c->size] / tiles;
    if (most > GEMM_MAX_SLICES) most = GEMM_MAX_SLICES;
    if (most > p->k * p->in / GEMM_SLICE_BYTES) most = p->k * p->in / GEMM_SLICE_BYTES;
    for (int i = 0; i < 2 && most > 1; i++, most /= 2) {
        const uint64_t longest = gemm_ceil_div(blocks, most);
        const uint32_t count = (uint32_t)gemm_ceil_div(blocks, longest);
        const double after = combine_cost(k, p, count, s->turned);
        s->quick.batch = count;
        s->quick.k_blocks = gemm_real(longest);
        s->quick.memory = s->once + count * s->sum;
        if (after + hewn_gemm_bound(c, k, &s->quick) >= out->cost ||
            !hewn_gemm_cuts(k, c->parts, p, count))
            continue;
        const struct hewn_gemm_extent q = hewn_gemm_slice_extent(p, count);
        struct gemm_view v = hewn_gemm_view(s->model, &q);
        struct gemm_work w;
        hewn_gemm_set_work(&w, k, gemm_terms(s->model, k), &v);
        v.lines = s->lines, v.sliced = 1;
        double cost = hewn_gemm_cost(k, c->parts, &v, &w, out->cost - after) + after;
        if (cost >= out->cost) continue;
        *out = (struct hewn_gemm_choice){k, c->parts, 0, cost};
        *slices = count;
    }
}

uint32_t hewn_gemm_choose_slices(const struct hewn_gemm_model *model,
                                 const struct hewn_gemm_choice *whole,
                                 const struct hewn_gemm_extent *problem,
                                 struct hewn_gemm_choice *out)
{
    const uint32_t sm_count = model->machine.sm_count;
    uint32_t slices = 1;
    *out = *whole;
    if (whole->cost < gemm_start + combine ||
        (!whole->kernel->tmem_columns &&
         whole->cost < hewn_gemm_slices_least(problem, sm_count) +
                           combine_cost(whole->kernel, problem, 2, 0)))
        return 1;
    /* Of D and its transpose, that which tiles cover better: trying both doubles the time of the choice and saves 0.1 %
     * of a product's. Few rows have kernels of their own. Those of sm_100f were not timed with the transpose. */
    const struct hewn_gemm_extent other = turned_of(problem);
    const int turn = !whole->kernel->tmem_columns && problem->m > SM90A_FEW_ROWS &&
                     17 * covered(&other) < 16 * covered(problem);
    struct slicing s = slicing_of(model, turn ? &other : problem, turn);
    for (const struct gemm_candidate *c = model->candidates;
         c < model->candidates + model->candidate_count; c++) {
        if (!gemm_suits(c, &s.quick) || c->ctas > (c->fitted ? 2 : HEWN_GEMM_CLUSTER)) continue;
        const double tiles =
            gemm_whole(s.quick.m * c->per_height) * gemm_whole(s.quick.n * c->per_width);
        if (2 * tiles * c->ctas <= sm_count) /* room for two slices */
            try_slices(&s, c, model->kernels + c->kernel, (uint64_t)tiles, out, &slices);
    }
    return turn && slices > 1 ? HEWN_GEMM_TURNED + slices : slices;
}
