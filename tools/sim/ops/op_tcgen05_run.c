/*
 * What tcgen05.mma does when it completes: operands to float tiles, sparse rows of A to their places,
 * block scales, the product lane by lane of D. PTX ISA "Data Path Layout Organization", "Block Scaling",
 * "Sparse Matrices", "Zero-Column Mask Descriptor".
 */
#include "ops/op_tcgen05_mma.h"

#include <math.h>

enum {
    QUARTERS = TMEM_LANES / WARP_LANES,
    MAX_COLUMNS = TENSOR_MAX_MN + MMA_MAX_SHIFT,
    FP4_MERGE = 16 /* stored elements whose products are added exactly, PTX ISA leaves it open */
};

/* B as gathered from one CTA. */
struct b_tile {
    float at[MAX_COLUMNS * MMA_MAX_K];
};

/* One CTA's share of an operation. A lies by D's lanes: a[k * TMEM_LANES + lane]; a row whose columns
 * lie in several banks of lanes is there once for each. */
struct share {
    const struct async_op *op;
    const struct mma_form *f;
    const struct mma_run *r;
    struct cta *cta;
    struct d_layout l;
    const uint32_t *keep;
    float a[MMA_MAX_K * TMEM_LANES];
    float *stored; /* A as it came: `a` itself, or for .sp `room` */
    float room[MMA_MAX_K / 2 * TMEM_LANES];
    uint8_t place[MMA_MAX_K / 2 * TMEM_LANES]; /* .sp: logical k of stored element i of a lane,
                                                  [i * TMEM_LANES + lane] */
    bool by_row;       /* .sp: B has infinities or NaN, which what is not selected must not see */
    uint32_t b_n, b_k; /* strides of B tiles */
    struct fp4_scale sa[TMEM_LANES][TENSOR_FP4_SCALES];
    struct fp4_scale sb[QUARTERS][TENSOR_MAX_MN][TENSOR_FP4_SCALES];
};

/* Lanes x columns of D that one call of the product kernel makes. */
struct block {
    uint32_t lane, m, column, n;
    const float *b;
    uint32_t b_n, b_k;
    uint32_t scale_n;                 /* row of SFB of the first column */
    const int16_t *a_scale, *b_scale; /* of rows and columns, or NULL */
};

struct d_layout mma_layout(const struct mma_form *f, const struct mma_run *r)
{
    struct d_layout l = {
        .rows = r->m / f->cta_group, .strips = 1, .banks = f->cta_group, .columns = r->n};
    if (f->ws) { /* D, E, G */
        l.banks = TMEM_LANES / r->m;
        l.bank_lanes = r->m;
        l.columns = r->n / l.banks;
    } else if (f->cta_group == 1 && r->m == 64) { /* F: 16 rows in each quarter of the lanes */
        l.strips = 4;
        l.strip_lanes = 32;
    } else if (f->cta_group == 2 && r->m == 128 && !f->sparse) { /* B */
        l.bank_lanes = 64;
        l.columns = r->n / 2U;
    } else if (f->cta_group == 2) { /* A, and C, which has strips as F */
        l.bank_columns = r->n / 2U;
        l.strips = r->m == 128 ? 4 : 1;
        l.strip_lanes = 32;
    }
    return l;
}

/* ---- A ---- */

static void gather_tmem(struct share *s)
{
    const struct mma_run *r = s->r;
    const enum tensor_format format = (enum tensor_format)r->format_a;
    const uint32_t per_cell = 4U / tensor_format_bytes(format) * tensor_format_pack(format);
    const uint32_t first = tmem_column(r->a_tmem), columns = mma_a_columns(r);
    for (uint32_t column = 0; column < columns; column++) {
        for (uint32_t lane = 0; lane < TMEM_LANES; lane++) {
            float value[8];
            tensor_convert(format, &s->cta->sm->tmem[first + column][lane], per_cell, value);
            for (uint32_t i = 0; i < per_cell; i++)
                s->stored[(size_t)(column * per_cell + i) * TMEM_LANES + lane] = value[i];
        }
    }
}

/* The lane of row 0 of a strip, in a bank. */
static uint32_t strip_lane(const struct share *s, uint32_t bank, uint32_t strip)
{
    return tmem_lane(s->r->d) + bank * s->l.bank_lanes + strip * s->l.strip_lanes;
}

static bool gather_shared(struct share *s)
{
    const struct mma_run *r = s->r;
    const uint32_t rows = s->l.rows, run = rows / s->l.strips;
    const uint32_t copies = s->l.bank_lanes ? s->l.banks : 1;
    float tile[TMEM_LANES * MMA_MAX_K];
    if (!desc_gather(s->op, s->cta, "A", &r->a, (enum tensor_format)r->format_a, rows, r->stored_k,
                     TILE_MN_INNER, tile))
        return false;
    if (run * s->l.strips * copies < TMEM_LANES) /* lanes of no row */
        memset(s->stored, 0, (size_t)r->stored_k * TMEM_LANES * sizeof *s->stored);
    for (uint32_t k = 0; k < r->stored_k; k++)
        for (uint32_t bank = 0; bank < copies; bank++)
            for (uint32_t strip = 0; strip < s->l.strips; strip++)
                memcpy(s->stored + (size_t)k * TMEM_LANES + strip_lane(s, bank, strip),
                       tile + (size_t)k * rows + (size_t)strip * run, run * sizeof *tile);
    return true;
}

/* ---- sparse A ---- */

/* The four bits of metadata for a group of elements in the row of `lane`. */
static uint32_t metadata(const struct share *s, uint32_t lane, uint32_t group)
{
    const struct mma_run *r = s->r;
    const uint32_t column = tmem_column(r->meta);
    if (s->f->kind != KIND_F16 && s->f->kind != KIND_TF32)
        return s->cta->sm->tmem[column + group / 8U][lane] >> group % 8U * 4U & 15U;
    const uint32_t at = lane / 16U * 16U + lane % 8U + 8U * (group / 4U);
    const uint32_t nibble = 4U * (lane % 16U / 8U) + group % 4U;
    return s->cta->sm->tmem[column + r->selector][at] >> nibble * 4U & 15U;
}

/* Places of one group's stored elements: one of two tf32, two of four, two pairs of four pairs. */
static bool place_group(struct share *s, uint32_t lane, uint32_t group, uint32_t code)
{
    const uint32_t first = code & 3U, second = code >> 2;
    uint8_t *place = s->place + lane;
    if (s->f->kind == KIND_TF32) {
        place[group * TMEM_LANES] = (uint8_t)(2U * group + (code == 0xEU));
        return code == 0x4U || code == 0xEU;
    }
    const uint32_t wide = s->f->kind == KIND_MXF4 || s->f->kind == KIND_MXF4NVF4 ? 2 : 1;
    for (uint32_t i = 0; i < 2U * wide; i++)
        place[(group * 2U * wide + i) * TMEM_LANES] =
            (uint8_t)((4U * group + (i < wide ? first : second)) * wide + i % wide);
    return first < second || code == 0x6U;
}

/* Metadata that names one element twice, where at most one of the two that are stored is not zero:
 * CUTLASS's compressor writes it for groups of zeros, and its kernels run on a B200. */
static bool group_is_moot(const struct share *s, uint32_t lane, uint32_t group, uint32_t code)
{
    const uint32_t count = s->r->stored_k / (s->f->kind == KIND_F16 ? 8U : 16U);
    uint32_t other = 0;
    if (s->f->kind == KIND_TF32 || (code & 3U) != code >> 2) return false;
    for (uint32_t i = 0; i < count; i++)
        other += s->stored[(size_t)(group * count + i) * TMEM_LANES + lane] != 0.0F;
    return other <= 1;
}

static bool place_lane(struct share *s, uint32_t lane)
{
    const uint32_t groups = s->f->kind == KIND_F16 || s->f->kind == KIND_TF32 ? 8 : 16;
    for (uint32_t group = 0; group < groups; group++) {
        const uint32_t code = metadata(s, lane, group);
        if (place_group(s, lane, group, code) || group_is_moot(s, lane, group, code)) continue;
        (void)sim_fault(s->op->warp, s->op->in, s->op->lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
                        "sparsity metadata of lane %u, group %u is 0x%x, which names no ordered "
                        "pair of elements",
                        lane, group, code);
        return false;
    }
    for (uint32_t i = 0; i < s->r->stored_k; i++) {
        const float value = s->stored[(size_t)i * TMEM_LANES + lane];
        if (value != 0.0F)
            s->a[(size_t)s->place[i * TMEM_LANES + lane] * TMEM_LANES + lane] = value;
    }
    return true;
}

static bool expand_sparse(struct share *s)
{
    const uint32_t copies = s->l.bank_lanes ? s->l.banks : 1, run = s->l.rows / s->l.strips;
    memset(s->a, 0, (size_t)s->r->k * TMEM_LANES * sizeof *s->a);
    for (uint32_t bank = 0; bank < copies; bank++)
        for (uint32_t strip = 0; strip < s->l.strips; strip++)
            for (uint32_t i = 0; i < run; i++)
                if (!place_lane(s, strip_lane(s, bank, strip) + i)) return false;
    return true;
}

/* ---- scale factors ---- */

/* ue8m0: 2^(code - 127). ue4m3: e4m3 without a sign. */
static struct fp4_scale scale_of(const struct mma_run *r, uint32_t code)
{
    const uint32_t field = code >> 3 & 15U, fraction = code & 7U;
    if (r->ue8m0)
        return (struct fp4_scale){code == 0xFFU ? FP4_SCALE_NAN : 8, (int16_t)((int)code - 127)};
    if ((code & 0x7FU) == 0x7FU) return (struct fp4_scale){FP4_SCALE_NAN, 0};
    return (struct fp4_scale){(uint8_t)(field ? 8U + fraction : fraction),
                              (int16_t)((int)(field ? field : 1U) - 7)};
}

/* The factors of row x as a quarter of the lanes sees them: 32 rows a column, four factors a cell, more
 * than four go on after the columns that 128 rows a piece take. */
static void load_scales(const struct share *s, uint32_t address, uint32_t id, uint32_t rows,
                        uint32_t x, uint32_t quarter, struct fp4_scale *to)
{
    const uint32_t past = (rows + 127U) / 128U * 4U;
    for (uint32_t j = 0; j < s->r->vectors; j++) {
        const uint32_t byte = id + j;
        const uint32_t column = tmem_column(address) + x / 32U + (byte < 4 ? 0 : past);
        const uint32_t cell = s->cta->sm->tmem[column][quarter * WARP_LANES + x % 32U];
        to[j] = scale_of(s->r, cell >> byte % 4U * 8U & 0xFFU);
    }
}

static void gather_scales(struct share *s)
{
    const struct mma_run *r = s->r;
    const uint32_t columns = s->l.bank_lanes ? r->n / s->l.banks : r->n;
    memset(s->sa, 0, sizeof s->sa);
    memset(s->sb, 0, sizeof s->sb);
    for (uint32_t lane = 0; lane < TMEM_LANES; lane++)
        load_scales(s, r->sfa, r->sfa_id, s->l.rows, lane % s->l.rows, lane / WARP_LANES,
                    s->sa[lane]);
    for (uint32_t quarter = 0; quarter < QUARTERS; quarter++)
        for (uint32_t n = 0; n < columns; n++)
            load_scales(s, r->sfb, r->sfb_id, columns, n, quarter, s->sb[quarter][n]);
    if (s->f->kind != KIND_MXF8F6F4) return;
    for (uint32_t lane = 0; lane < TMEM_LANES; lane++)
        for (uint32_t k = 0; s->sa[lane][0].significand == FP4_SCALE_NAN && k < r->k; k++)
            s->a[(size_t)k * TMEM_LANES + lane] = NAN;
}

/* ---- cells of D ---- */

static uint32_t *cell_at(const struct share *s, const struct block *x, uint32_t n, uint32_t m)
{
    return &s->cta->sm->tmem[x->column + n][x->lane + m];
}

/* What is added to, as float bits. */
static uint32_t load_cell(const struct share *s, uint32_t cell)
{
    const uint32_t bits = s->r->half_d ? half_bits((uint16_t)cell) : cell;
    if (!s->f->scale) return bits;
    const float scaled = float_of(bits) / (float)(1U << s->f->scale);
    uint32_t out;
    memcpy(&out, &scaled, sizeof out);
    return out;
}

static bool kept(const struct share *s, uint32_t lane)
{
    return s->keep[lane / 32U] >> lane % 32U & 1U;
}

/* f16 lies in the low half of a cell, the high half becomes zero. */
static void store_cell(const struct share *s, const struct block *x, uint32_t n, uint32_t m,
                       uint32_t bits)
{
    if (kept(s, x->lane + m)) return;
    *cell_at(s, x, n, m) = s->r->half_d ? tensor_half_result(bits) : bits;
}

/* ---- products ---- */

static struct tensor_product product_of(const struct share *s, const struct block *x)
{
    return (struct tensor_product){
        .m = x->m,
        .n = x->n,
        .k = s->r->k,
        .a = s->a + x->lane,
        .a_stride = TMEM_LANES,
        .b = x->b,
        .b_n = x->b_n,
        .b_k = x->b_k,
        .acc = cell_at(s, x, 0, 0),
        .acc_stride = TMEM_LANES,
        .accumulate = s->r->accumulate,
        .rule =
            tensor_rule_of((enum tensor_format)s->r->format_a, (enum tensor_format)s->r->format_b,
                           s->r->half_d, s->r->half_d, false),
        .a_scale = x->a_scale,
        .b_scale = x->b_scale,
    };
}

/* A product whose D is scaled, f16, or has lanes that stay: through a copy, 8 columns at a time. */
static void multiply_staged(const struct share *s, const struct block *x)
{
    uint32_t stage[MMA_BLOCK_N][TMEM_LANES];
    struct tensor_product p = product_of(s, x);
    p.acc = stage[0];
    p.n = MMA_BLOCK_N;
    for (uint32_t first = 0; first < x->n; first += MMA_BLOCK_N) {
        for (uint32_t i = 0; p.accumulate && i < MMA_BLOCK_N; i++)
            for (uint32_t m = 0; m < p.m; m++)
                stage[i][m] = load_cell(s, *cell_at(s, x, first + i, m));
        p.b = x->b + (size_t)first * x->b_n;
        if (x->b_scale) p.b_scale = x->b_scale + first;
        tensor_mma(&p);
        for (uint32_t i = 0; i < MMA_BLOCK_N; i++)
            for (uint32_t m = 0; m < p.m; m++) store_cell(s, x, first + i, m, stage[i][m]);
    }
}

/* Row by row, of B only what the row selects. */
static void multiply_rows(const struct share *s, const struct block *x)
{
    enum { ROWS = 16 }; /* the least that the product kernel takes; one is used */
    float a[MMA_MAX_K / 2 * ROWS] = {0}, b[MMA_MAX_K / 2 * TENSOR_MAX_MN];
    uint32_t stage[TENSOR_MAX_MN][ROWS];
    int16_t a_scale[ROWS] = {0};
    const uint32_t k_count = s->r->stored_k;
    struct tensor_product p = product_of(s, x);
    p.m = ROWS;
    p.k = k_count;
    p.a = a;
    p.a_stride = ROWS;
    p.b = b;
    p.b_n = 1;
    p.b_k = x->n;
    p.acc = stage[0];
    p.acc_stride = ROWS;
    if (x->a_scale) p.a_scale = a_scale;
    for (uint32_t m = 0; m < x->m; m++) {
        memset(stage, 0, sizeof stage);
        if (x->a_scale) a_scale[0] = x->a_scale[m];
        for (uint32_t i = 0; i < k_count; i++) {
            const uint32_t k = s->place[i * TMEM_LANES + x->lane + m];
            a[(size_t)i * ROWS] = s->a[(size_t)k * TMEM_LANES + x->lane + m];
            for (uint32_t n = 0; n < x->n; n++)
                b[(size_t)i * x->n + n] = x->b[(size_t)n * x->b_n + (size_t)k * x->b_k];
        }
        for (uint32_t n = 0; p.accumulate && n < x->n; n++)
            stage[n][0] = load_cell(s, *cell_at(s, x, n, m));
        tensor_mma(&p);
        for (uint32_t n = 0; n < x->n; n++) store_cell(s, x, n, m, stage[n][0]);
    }
}

static void multiply_plain(const struct share *s, const struct block *x)
{
    const struct tensor_product p = product_of(s, x);
    if (s->by_row)
        multiply_rows(s, x);
    else if (s->r->half_d || (s->f->scale && s->r->accumulate) ||
             (s->keep[0] | s->keep[1] | s->keep[2] | s->keep[3]))
        multiply_staged(s, x);
    else
        tensor_mma(&p);
}

/* kind::i8: the sum of up to 64 products is exact in float. */
static uint32_t add_integer(const struct mma_run *r, uint32_t before, float sum)
{
    const int64_t all = (r->accumulate ? (int64_t)(int32_t)before : 0) + (int64_t)sum;
    if (!r->saturate) return (uint32_t)(uint64_t)all;
    return (uint32_t)(all > INT32_MAX ? INT32_MAX : all < INT32_MIN ? INT32_MIN : all);
}

/* kind::i8: sums apart from D, which is added afterwards. */
static void multiply_integers(const struct share *s, const struct block *x)
{
    uint32_t stage[MMA_BLOCK_N][TMEM_LANES];
    struct tensor_product p = product_of(s, x);
    p.acc = stage[0];
    p.n = MMA_BLOCK_N;
    p.accumulate = false;
    for (uint32_t first = 0; first < x->n; first += MMA_BLOCK_N) {
        p.b = x->b + (size_t)first * x->b_n;
        tensor_mma(&p);
        for (uint32_t i = 0; i < MMA_BLOCK_N; i++) {
            for (uint32_t m = 0; m < p.m; m++) {
                uint32_t *d = cell_at(s, x, first + i, m);
                if (!kept(s, x->lane + m)) *d = add_integer(s->r, *d, float_of(stage[i][m]));
            }
        }
    }
}

/* Columns whose scale factor is NaN become NaN in `to`; then B lies there. */
static bool spoil_columns(const struct share *s, const struct block *x,
                          const struct fp4_scale sb[][TENSOR_FP4_SCALES], float *to)
{
    bool any = false;
    for (uint32_t n = 0; n < x->n; n++) any |= sb[n][0].significand == FP4_SCALE_NAN;
    for (uint32_t n = 0; any && n < x->n; n++)
        for (uint32_t k = 0; k < s->r->k; k++)
            to[(size_t)n * s->r->k + k] = sb[n][0].significand == FP4_SCALE_NAN
                                              ? NAN
                                              : x->b[(size_t)n * x->b_n + (size_t)k * x->b_k];
    return any;
}

/* mxf8f6f4: powers of two, which each quarter of the lanes has for itself. */
static void multiply_scaled(const struct share *s, const struct block *x)
{
    float b[TENSOR_MAX_MN * MMA_MAX_K / 2];
    int16_t a_scale[WARP_LANES], b_scale[TENSOR_MAX_MN];
    for (uint32_t m = 0; m < x->m; m += WARP_LANES) {
        struct block part = *x;
        part.lane += m;
        part.m = x->m < WARP_LANES ? x->m : WARP_LANES;
        part.a_scale = a_scale;
        part.b_scale = b_scale;
        for (uint32_t i = 0; i < part.m; i++) a_scale[i] = s->sa[part.lane + i][0].exponent;
        const struct fp4_scale(*sb)[TENSOR_FP4_SCALES] = &s->sb[part.lane / WARP_LANES][x->scale_n];
        for (uint32_t n = 0; n < x->n; n++) b_scale[n] = sb[n][0].exponent;
        if (spoil_columns(s, x, sb, b)) {
            part.b = b;
            part.b_n = s->r->k;
            part.b_k = 1;
        }
        multiply_plain(s, &part);
    }
}

/* mxf4, mxf4nvf4. */
static void multiply_fp4(const struct share *s, const struct block *x)
{
    tensor_fp4(&(struct tensor_fp4){
        .m = x->m,
        .n = x->n,
        .k = s->r->k,
        .merge = s->f->sparse ? 2 * FP4_MERGE : FP4_MERGE, /* .sp: interpretation */
        .scales = s->r->vectors,
        .ue4m3 = !s->r->ue8m0,
        .accumulate = s->r->accumulate,
        .a = s->a + x->lane,
        .a_stride = TMEM_LANES,
        .b = x->b,
        .b_n = x->b_n,
        .b_k = x->b_k,
        .sa = s->sa[x->lane],
        .sb = s->sb[x->lane / WARP_LANES][x->scale_n],
        .sb_quarter = TENSOR_MAX_MN,
        .acc = cell_at(s, x, 0, 0),
        .acc_stride = TMEM_LANES,
    });
}

static void multiply(const struct share *s, const struct block *x)
{
    switch (s->f->kind) {
    case KIND_I8: multiply_integers(s, x); break;
    case KIND_MXF8F6F4: multiply_scaled(s, x); break;
    case KIND_MXF4:
    case KIND_MXF4NVF4: multiply_fp4(s, x); break;
    default: multiply_plain(s, x); break;
    }
}

/* ---- a CTA's rows of D ---- */

static bool prepare_a(struct share *s)
{
    const struct mma_run *r = s->r;
    if (!s->f->sparse) s->stored = s->a;
    if (s->f->a_in_tmem)
        gather_tmem(s);
    else if (!gather_shared(s))
        return false;
    if (s->f->sparse && !expand_sparse(s)) return false;
    /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): gathered above, all of r->k */
    for (size_t i = 0; r->negate && i < (size_t)r->k * TMEM_LANES; i++) s->a[i] = -s->a[i];
    if (s->f->kind >= KIND_MXF8F6F4) gather_scales(s);
    return true;
}

static bool multiply_cta(struct share *s, const struct b_tile *tiles)
{
    const struct mma_run *r = s->r;
    const uint32_t n = r->n / s->l.banks;
    if (!prepare_a(s)) return false;
    for (uint32_t bank = 0; bank < s->l.banks; bank++) {
        const float *b =
            s->f->ws ? tiles->at + (size_t)(bank * n + r->b_shift) * s->b_n : tiles[bank].at;
        for (uint32_t strip = 0; strip < s->l.strips; strip++) {
            multiply(s, &(struct block){
                            .lane = strip_lane(s, bank, strip),
                            .m = s->l.rows / s->l.strips,
                            .column = tmem_column(r->d) + bank * s->l.bank_columns,
                            .n = n,
                            .b = b,
                            .b_n = s->b_n,
                            .b_k = s->b_k,
                            .scale_n = s->l.bank_lanes ? 0 : bank * n,
                        });
        }
    }
    return true;
}

/* ---- B ---- */

/* In each of the 128 / M parts of the columns a pattern of U used and Z zeroed columns, entered at
 * the part's start count. */
static bool column_zeroed(const struct mma_run *r, uint32_t n)
{
    const uint64_t mask = r->zero_mask;
    const uint32_t width = r->n / (TMEM_LANES / r->m), part = n / width;
    const uint32_t zeroed = (uint32_t)(mask >> 40 & 0xFFU) + 1U;
    const uint32_t used = (uint32_t)(mask >> 48 & 0xFFU) + 1U;
    const uint32_t at = (n % width + (uint32_t)(mask >> 8U * part & 0xFFU)) % (zeroed + used);
    return mask >> (32U + part) & 1U ? at < zeroed : at >= used;
}

static bool gather_b(const struct async_op *op, const struct mma_run *r, struct cta *cta,
                     uint32_t n, struct b_tile *b)
{
    const uint32_t count = (n + r->b_shift + 15U) / 16U * 16U;
    const uint32_t columns = r->b_shift ? count : n;
    if (!desc_gather(op, cta, "B", &r->b, (enum tensor_format)r->format_b, columns, r->k,
                     r->b.mn_major ? TILE_MN_INNER : TILE_K_INNER, b->at))
        return false;
    for (uint32_t i = 0; r->zero_mask && i < n; i++)
        for (uint32_t k = 0; column_zeroed(r, i) && k < r->k; k++)
            b->at[r->b.mn_major ? k * columns + i + r->b_shift : (i + r->b_shift) * r->k + k] = 0;
    return true;
}

static bool all_finite(const float *value, size_t count)
{
    bool finite = true;
    for (size_t i = 0; i < count; i++) finite &= isfinite(value[i]) != 0;
    return finite;
}

static bool run_share(struct share *s, const struct b_tile *tiles)
{
    /* cppcheck-suppress ctuuninitvar ; the caller sets what is read here, the rest is filled below */
    const struct mma_run *r = s->r;
    const uint32_t n = r->n / s->f->cta_group;
    s->stored = s->room;
    for (uint32_t i = 0; s->f->sparse && i < s->f->cta_group; i++)
        s->by_row |= !all_finite(tiles[i].at, (size_t)n * r->k);
    if (!multiply_cta(s, tiles)) return false;
    if (s->f->a_shift) {
        tmem_shift(s->cta, 0, tmem_column(r->a_tmem), mma_a_columns(r));
    }
    return true;
}

/* ---- what it will touch ---- */

/* Blocks of lanes in which rows of D lie, and of A in tensor memory; without those that `keep` (NULL:
 * none) leaves unwritten. */
static uint32_t row_blocks(const struct mma_run *r, const struct d_layout *l, const uint32_t *keep)
{
    const uint32_t copies = l->bank_lanes ? l->banks : 1;
    uint32_t blocks = 0;
    for (uint32_t bank = 0; bank < copies; bank++)
        for (uint32_t strip = 0; strip < l->strips; strip++)
            blocks |= tmem_blocks(tmem_lane(r->d) + bank * l->bank_lanes + strip * l->strip_lanes,
                                  l->rows / l->strips);
    for (uint32_t i = 0; keep && i < TMEM_LANES / TMEM_BLOCK; i++)
        if ((keep[i / 2U] >> i % 2U * TMEM_BLOCK & 0xFFFFU) == 0xFFFFU) blocks &= ~(1U << i);
    return blocks;
}

static void announce_share(const struct async_op *op, const struct mma_run *r, struct cta *cta,
                           const uint32_t *keep)
{
    const struct mma_form *f = op->in->aux;
    const struct d_layout l = mma_layout(f, r);
    const uint32_t blocks = row_blocks(r, &l, NULL), n = r->n / f->cta_group;
    const uint32_t columns = l.bank_lanes ? r->n / l.banks : r->n;
    const uint32_t b_columns = r->b_shift ? (n + r->b_shift + 15U) / 16U * 16U : n;
    const enum tensor_format a = (enum tensor_format)r->format_a,
                             b = (enum tensor_format)r->format_b;
    const struct product product = {
        .a = {f->a_in_tmem ? NULL : &r->a, a, l.rows, r->stored_k / tensor_format_pack(a)},
        .b = {&r->b, b, b_columns, r->k / tensor_format_pack(b)},
        .sparse = f->sparse,
        .accumulate = r->accumulate,
        .d = r->d,
    };
    if (f->a_in_tmem)
        tmem_publish(op, cta, f->a_shift ? ACCESS_ATOMIC : ACCESS_READ, r->a_tmem, mma_a_columns(r),
                     blocks, true);
    else
        desc_publish(op, cta, &r->a, product.a.mn, product.a.k);
    desc_publish(op, cta, &r->b, product.b.mn, product.b.k);
    desc_publish_product(op, cta, &product);
    if (f->sparse)
        tmem_publish(op, cta, ACCESS_READ, r->meta + r->selector,
                     f->kind == KIND_F16 || f->kind == KIND_TF32 ? 1 : 2, blocks, false);
    if (f->kind >= KIND_MXF8F6F4) {
        tmem_publish(op, cta, ACCESS_READ, r->sfa, (l.rows + 31U) / 32U, TMEM_ALL_BLOCKS, false);
        tmem_publish(op, cta, ACCESS_READ, r->sfb, (columns + 31U) / 32U, TMEM_ALL_BLOCKS, false);
    }
    tmem_publish(op, cta, r->accumulate ? ACCESS_ATOMIC : ACCESS_WRITE, r->d, l.columns,
                 row_blocks(r, &l, keep), true);
}

void mma_announce(const struct async_op *op, const struct mma_run *r)
{
    const struct mma_form *f = op->in->aux;
    for (uint32_t i = 0; observes_accesses(op->cta->group) && i < f->cta_group; i++)
        announce_share(op, r, tcgen05_cta(op->cta, f->cta_group, i),
                       r->keep + (f->cta_group == 2 ? i * 4U : 0U));
}

bool mma_run_op(struct group *g, struct async_op *op)
{
    const struct mma_form *f = op->in->aux;
    const struct mma_run *r = async_payload(op);
    const uint32_t n = r->n / f->cta_group;
    const uint32_t columns = r->b_shift ? (n + r->b_shift + 15U) / 16U * 16U : n;
    struct b_tile tiles[2];
    bool good = true;
    (void)g;
    for (uint32_t i = 0; good && i < f->cta_group; i++)
        good = gather_b(op, r, tcgen05_cta(op->cta, f->cta_group, i), n, &tiles[i]);
    for (uint32_t i = 0; good && i < f->cta_group; i++) {
        struct share s;
        s.op = op;
        s.f = f;
        s.r = r;
        s.cta = tcgen05_cta(op->cta, f->cta_group, i);
        s.l = mma_layout(f, r);
        s.keep = r->keep + (f->cta_group == 2 ? i * 4U : 0U);
        s.by_row = false;
        s.b_n = r->b.mn_major ? 1U : r->k;
        s.b_k = r->b.mn_major ? columns : 1U;
        good = run_share(&s, tiles);
    }
    for (uint32_t i = 0; i < f->cta_group; i++)
        tcgen05_release(op->cta, tcgen05_cta(op->cta, f->cta_group, i));
    return true;
}

/* ---- shift ---- */

/* Interpretation: one call covers every quarter from its lane on. The ISA speaks of "the rows of the
 * matrix", and of a warp. */
void tmem_shift(struct cta *cta, uint32_t lane, uint32_t column, uint32_t columns)
{
    for (uint32_t c = column; c < column + columns; c++) {
        uint32_t *cells = cta->sm->tmem[c];
        for (uint32_t first = lane; first < TMEM_LANES; first += WARP_LANES)
            memmove(cells + first, cells + first + 1U, (WARP_LANES - 1U) * sizeof *cells);
    }
}
