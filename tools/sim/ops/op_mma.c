/*
 * mma.sync in every shape and type, dense and sparse, and wmma.mma, which is one or two of them. PTX ISA
 * "Warp Level Matrix Multiply-Accumulate Instructions", "Matrix Fragments for mma".
 *
 * Fragments of 16 x 8 shapes are those of tensor.h; 8 x 8 ones are their upper half. Sums: floats as
 * tensor.h has them; what sm_90 lacks instructions for, ptxas writes as others, whose rounding shows:
 *   8-bit floats   become f16 and go through two products of half of K (the lower two elements of every
 *                  register of A first; sparse: the even groups), with C added last
 *   wmma tf32      two products of four elements of K, one after the other
 *   wmma f16 of f32 sums, f32 of f16 sums   the f32 sum, rounded; the f32 sum of C widened
 *   m8n8k4 f16     f32 additions: the four products in order, then C; of f16 sums C, then two pairs
 */
#include "ops/fpbits.h"
#include "machine/machine.h"
#include "ops/tensor.h"

#include <fenv.h>
#include <stdio.h>

enum {
    A_REGS = 4,
    B_REGS = 4,
    C_REGS = 8,
    TILE_REGS = 4, /* accumulators of a 16 x 8 tile, as 32-bit patterns */
    MAX_K = 128,
    N = 8,
    MAX_TILES = 2
};

struct mma;
/* Registers of one tile: its operands, and where D goes. */
struct tile {
    const uint32_t *a[A_REGS], *b[B_REGS], *c[C_REGS];
    const uint32_t *meta;
    uint32_t d[C_REGS][WARP_LANES];
};
/* False after sim_fault. */
typedef bool multiply_fn(struct warp *w, const struct insn *in, struct tile *t);

/* insn.aux. insn.list: D, A, B, C; of wmma.mma two tiles' worth of D and C, and of A or B. */
struct mma {
    multiply_fn *multiply;
    uint8_t format_a, format_b; /* enum tensor_format */
    bool half_d, half_c, saturate, exclusive;
    bool low_rows;                          /* 8 x 8: rows 8 to 15 are absent */
    uint8_t a_regs, b_regs, c_regs, d_regs; /* of a tile */
    uint8_t first_all, second_all;          /* of the instruction's operands A and B */
    uint8_t a_next, b_next; /* registers from the first tile's operand to the second's */
    bool exchanged;         /* wmma m8n32: its B is A here, its A is B */
    uint8_t tiles;
    uint16_t k, k_step; /* elements of K in one sum */
    bool sparse;
    uint8_t selector;
    bool a_columns, b_rows; /* m8n8k4 of f16 */
    uint8_t rounding;       /* f64, enum round_mode */
};

static const uint32_t no_register[WARP_LANES];

/* ---- fragments ---- */

/* B as TILE_QUADS: register r of lane l holds, of column l/4, the (l%4 + 4r)-th 32 bits of k. */
static void b_fragment(const struct mma *m, const struct tile *t, float *b)
{
    static const uint8_t slot[N] = {0, 4, 1, 5, 2, 6, 3, 7};
    const enum tensor_format format = (enum tensor_format)m->format_b;
    const uint32_t per_reg = 4U / tensor_format_bytes(format) * tensor_format_pack(format);
    for (uint32_t r = 0; r < m->b_regs; r++) {
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            const uint32_t k = (lane % 4U + 4U * r) * per_reg;
            float value[8];
            tensor_convert(format, &t->b[r][lane], per_reg, value);
            for (uint32_t i = 0; i < per_reg; i++) b[(k + i) * N + slot[lane / 4U]] = value[i];
        }
    }
}

/* A and B as floats, C as 32-bit patterns, `p` set up over them. */
struct operands {
    float a[MAX_K * TENSOR_FRAGMENT], b[MAX_K * N];
    uint32_t acc[TILE_REGS][WARP_LANES], *acc_reg[TILE_REGS];
    struct tensor_fragments p;
};

/* False after a fault. */
static bool spread(struct warp *w, const struct insn *in, const struct tile *t, float *a)
{
    const struct mma *m = in->aux;
    float stored[MAX_K / 2 * TENSOR_FRAGMENT];
    struct tensor_places places;
    uint32_t lane = 0;
    if (!tensor_places((enum tensor_format)m->format_a, m->k, m->selector, t->meta, &places,
                       &lane)) {
        (void)sim_fault(w, in, lane, 715, FIND_MMA_DESC, CAUSE_NONE, "",
                        "sparsity metadata 0x%08x gives two elements of a group one place",
                        t->meta[lane]);
        return false;
    }
    memcpy(stored, a, m->k / 2U * TENSOR_FRAGMENT * sizeof *a);
    tensor_spread(&places, stored, a);
    return true;
}

static bool read_operands(struct warp *w, const struct insn *in, const struct tile *t,
                          struct operands *o)
{
    const struct mma *m = in->aux;
    const uint32_t *a[A_REGS] = {t->a[0], no_register}; /* of 8 x 8 the upper rows alone */
    for (uint32_t i = 0; !m->low_rows && i < m->a_regs; i++) a[i] = t->a[i];
    tensor_fragment((enum tensor_format)m->format_a, a, m->low_rows ? 2 : m->a_regs, o->a);
    if (m->sparse && !spread(w, in, t, o->a)) return false;
    b_fragment(m, t, o->b);
    for (uint32_t i = 0; i < TILE_REGS; i++) {
        const bool absent = m->low_rows && i >= 2;
        const uint32_t *reg = absent ? no_register : t->c[m->half_c ? i / 2U : i];
        for (uint32_t lane = 0; lane < WARP_LANES; lane++)
            o->acc[i][lane] =
                m->half_c ? half_bits((uint16_t)(reg[lane] >> 16U * (i & 1U))) : reg[lane];
        o->acc_reg[i] = o->acc[i];
    }
    o->p = (struct tensor_fragments){N, m->k, o->a, o->b, o->acc_reg, true};
    return true;
}

/* ---- sums ---- */

static bool multiply_float(struct warp *w, const struct insn *in, struct tile *t)
{
    const struct mma *m = in->aux;
    /* f16 sums are those of an f16 C too; else D is an f32 sum rounded again */
    const bool half = m->half_d && m->half_c;
    struct tensor_rule rule = tensor_rule_of((enum tensor_format)m->format_a,
                                             (enum tensor_format)m->format_b, half, half, false);
    struct operands o;
    rule.sparse = m->sparse;
    if (!read_operands(w, in, t, &o)) return false;
    for (uint32_t k = 0; k < m->k; k += m->k_step) {
        struct tensor_fragments part = o.p;
        part.k = m->k_step;
        part.a += (size_t)k * TENSOR_FRAGMENT;
        part.b += (size_t)k * N;
        tensor_wgmma(&part, &rule);
    }
    for (uint32_t r = 0; r < m->d_regs; r++) {
        const uint32_t *low = o.acc[m->half_d ? 2 * r : r], *high = o.acc[2 * r % TILE_REGS + 1];
        if (half)
            tensor_pack_halves(low, high, t->d[r]);
        else
            memcpy(t->d[r], low, sizeof t->d[r]);
        for (uint32_t lane = 0; m->half_d && !half && lane < WARP_LANES; lane++)
            t->d[r][lane] = float_to_half(f32_from(low[lane])) |
                            (uint32_t)float_to_half(f32_from(high[lane])) << 16;
    }
    return true;
}

/* C plus the sum of the products, an ordinary addition of f32 or of f16; the result's pattern. */
static uint32_t add_c(const struct mma *m, uint32_t c, uint32_t sum)
{
    const float d = f32_from(sum) + f32_from(c); /* exact enough in f32 for one rounding to f16 */
    if (m->half_d) return float_to_half(f32_canonical(d));
    return f32_bits(f32_canonical(d));
}

static bool multiply_fp8(struct warp *w, const struct insn *in, struct tile *t)
{
    const struct mma *m = in->aux;
    struct tensor_rule rule = tensor_rule_of(TF_F16, TF_F16, m->half_d, m->half_d, false);
    const uint32_t k_half = m->k / 2U, run = m->sparse ? 4 : 2;
    struct operands o;
    uint32_t sum[TILE_REGS][WARP_LANES] = {{0}},
             *sum_reg[TILE_REGS] = {sum[0], sum[1], sum[2], sum[3]};
    rule.sparse = m->sparse;
    if (!read_operands(w, in, t, &o)) return false;
    for (uint32_t half = 0; half < 2; half++) {
        float a[MAX_K / 4 * TENSOR_FRAGMENT], b[MAX_K / 4 * N];
        for (uint32_t k = 0; k < k_half; k++) {
            const size_t from = k / run * 2U * run + run * half + k % run;
            memcpy(a + (size_t)k * TENSOR_FRAGMENT, o.a + from * TENSOR_FRAGMENT,
                   TENSOR_FRAGMENT * sizeof *a);
            memcpy(b + (size_t)k * N, o.b + from * N, N * sizeof *b);
        }
        tensor_wgmma(&(struct tensor_fragments){N, k_half, a, b, sum_reg, half == 1}, &rule);
        for (uint32_t i = 0; m->half_d && i < TILE_REGS; i++)
            for (uint32_t lane = 0; lane < WARP_LANES; lane++)
                sum[i][lane] = half_bits(tensor_half_result(sum[i][lane]));
    }
    for (uint32_t r = 0; r < m->d_regs; r++) {
        const uint32_t low = m->half_d ? 2 * r : r, high = 2 * r % TILE_REGS + 1;
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            t->d[r][lane] = add_c(m, o.acc[low][lane], sum[low][lane]);
            if (m->half_d) t->d[r][lane] |= add_c(m, o.acc[high][lane], sum[high][lane]) << 16;
        }
    }
    return true;
}

static bool multiply_integer(struct warp *w, const struct insn *in, struct tile *t)
{
    const struct mma *m = in->aux;
    struct operands o;
    if (!read_operands(w, in, t, &o)) return false;
    tensor_wgmma_integer(&o.p, m->saturate);
    memcpy(t->d, o.acc, m->d_regs * sizeof o.acc[0]);
    return true;
}

/* Register r of A: row l/4 + 8(r%2) and word l%4 + 4(r/2) of lane l; of B: column l/4, word l%4 + 4r. */
static bool multiply_bits(struct warp *w, const struct insn *in, struct tile *t)
{
    const struct mma *m = in->aux;
    const uint32_t rows = m->low_rows ? 1 : 2; /* eights of them */
    struct tensor_bits p = {.n = N, .words = m->k / 32U, .exclusive = m->exclusive};
    uint32_t *acc[TILE_REGS];
    (void)w;
    memset(t->d, 0, sizeof t->d);
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        for (uint32_t r = 0; r < m->a_regs; r++)
            p.a[lane / 4U + 8U * (r % rows)][lane % 4U + 4U * (r / rows)] = t->a[r][lane];
        for (uint32_t r = 0; r < m->b_regs; r++) p.b[lane / 4U][lane % 4U + 4U * r] = t->b[r][lane];
    }
    for (uint32_t i = 0; i < m->d_regs; i++) memcpy(t->d[i], t->c[i], sizeof t->d[i]);
    for (uint32_t i = 0; i < TILE_REGS; i++) acc[i] = t->d[i];
    tensor_popcount(&p, acc, true);
    return true;
}

/* ---- m8n8k4 of f16: four products, each by lanes 4q to 4q + 3 and 16 + 4q to 16 + 4q + 3 ---- */

static float half_at(const uint32_t *const *reg, uint32_t lane, uint32_t i)
{
    return half_to_float((uint16_t)(reg[i / 2U][lane] >> 16U * (i % 2U)));
}

/* The lane of product q that holds line `line` of 8 of a matrix. */
static uint32_t quarter_lane(uint32_t q, uint32_t line)
{
    return 4U * q + line % 4U + 16U * (line / 4U);
}

/* Products of halves are exact, so that adding one rounds as a fused operation does. */
static float quarter_sum(const struct mma *m, const struct tile *t, uint32_t q, uint32_t row,
                         uint32_t col, float c)
{
    float product[4];
    for (uint32_t k = 0; k < 4; k++) {
        const float a = m->a_columns ? half_at(t->a, quarter_lane(q, k + (row & 4U)), row % 4U)
                                     : half_at(t->a, quarter_lane(q, row), k);
        const float b = m->b_rows ? half_at(t->b, quarter_lane(q, k + (col & 4U)), col % 4U)
                                  : half_at(t->b, quarter_lane(q, col), k);
        product[k] = a * b;
    }
    if (m->half_d) return c + (product[0] + product[1]) + (product[2] + product[3]);
    return product[0] + product[1] + product[2] + product[3] + c;
}

static bool multiply_quarters(struct warp *w, const struct insn *in, struct tile *t)
{
    const struct mma *m = in->aux;
    (void)w;
    memset(t->d, 0, sizeof t->d);
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        const uint32_t q = lane / 4U % 4U, upper = 4U * (lane / 16U);
        for (uint32_t i = 0; i < N; i++) {
            const uint32_t wide_row = (lane & 1U) + (i & 2U) + upper;
            const uint32_t wide_col = (i & 4U) + (lane & 2U) + (i & 1U);
            const uint32_t row = m->half_d ? lane % 4U + upper : wide_row;
            const uint32_t col = m->half_d ? i : wide_col;
            /* C as D, or as halves whose rows lie in one lane */
            const float c =
                !m->half_c ? f32_from(t->c[i][lane]) : half_at(t->c, quarter_lane(q, row), col);
            const float d = f32_canonical(quarter_sum(m, t, q, row, col, c));
            if (m->half_d)
                t->d[i / 2U][lane] |= (uint32_t)float_to_half(d) << 16U * (i % 2U);
            else
                t->d[i][lane] = f32_bits(d);
        }
    }
    return true;
}

/* ---- execution ---- */

static struct tile take_tile(struct warp *w, const struct insn *in, uint32_t index)
{
    const struct mma *m = in->aux;
    const struct arg *first = in->list + (size_t)m->d_regs * m->tiles,
                     *second = first + m->first_all;
    const struct arg *c = second + m->second_all + (size_t)m->c_regs * index;
    const struct arg *a = (m->exchanged ? second : first) + m->a_next * index;
    const struct arg *b = (m->exchanged ? first : second) + m->b_next * index;
    struct tile t = {0};
    for (uint32_t i = 0; i < m->a_regs; i++) t.a[i] = arg_src(w, a[i]);
    for (uint32_t i = 0; i < m->b_regs; i++) t.b[i] = arg_src(w, b[i]);
    for (uint32_t i = 0; i < m->c_regs; i++) t.c[i] = arg_src(w, c[i]);
    if (m->sparse) t.meta = arg_src(w, in->arg[4]);
    return t;
}

static enum step exec_mma(struct warp *w, const struct insn *in, uint32_t mask)
{
    const struct mma *m = in->aux;
    struct tile t[MAX_TILES];
    (void)mask;
    for (uint32_t i = 0; i < m->tiles; i++) {
        t[i] = take_tile(w, in, i);
        if (!m->multiply(w, in, &t[i])) return STEP_FAULT;
    }
    for (uint32_t i = 0; i < m->tiles; i++) /* D may be A or B */
        for (uint32_t r = 0; r < m->d_regs; r++)
            memcpy(arg_dst(w, in->list[m->d_regs * i + r]), t[i].d[r], sizeof t[i].d[r]);
    return STEP_NEXT;
}

/* f64: each element a chain of fused operations along k, from C. */
static double f64_chain(const double *a, const double *b, uint32_t k_count, double sum)
{
    for (uint32_t k = 0; k < k_count; k++) {
        const double x = a[k], y = b[k];
        sum = f64_result(fma(x, y, sum), x, y, sum);
    }
    return sum;
}

static enum step exec_mma_f64(struct warp *w, const struct insn *in, uint32_t mask)
{
    static const int modes[] = {[ROUND_NEAREST] = FE_TONEAREST,
                                [ROUND_ZERO] = FE_TOWARDZERO,
                                [ROUND_DOWN] = FE_DOWNWARD,
                                [ROUND_UP] = FE_UPWARD};
    const struct mma *m = in->aux;
    const struct arg *a_list = in->list + m->d_regs, *b_list = a_list + m->a_regs;
    const uint32_t rows = m->low_rows ? 1 : 2;
    double a[TENSOR_ROWS][16], b[N][16];
    (void)mask;
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        for (uint32_t r = 0; r < m->a_regs; r++)
            a[lane / 4U + 8U * (r % rows)][lane % 4U + 4U * (r / rows)] =
                f64_from(arg_lane(w, a_list[r], lane));
        for (uint32_t r = 0; r < m->b_regs; r++)
            b[lane / 4U][lane % 4U + 4U * r] = f64_from(arg_lane(w, b_list[r], lane));
    }
    fesetround(modes[m->rounding]);
    for (uint32_t r = 0; r < m->d_regs; r++)
        for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
            const double c = f64_from(arg_lane(w, b_list[m->b_regs + r], lane));
            const double d =
                f64_chain(a[lane / 4U + 8U * (r / 2U)], b[2U * (lane % 4U) + r % 2U], m->k, c);
            arg_set_lane(w, in->list[r], lane, f64_bits(d));
        }
    fesetround(FE_TONEAREST);
    return STEP_NEXT;
}

/* ---- binding ---- */

static uint32_t operand_registers(const struct decoder *dc, uint32_t operand)
{
    const struct operand *o = &dc->src->operands[operand];
    return o->kind == OPD_VECTOR ? o->count : 1;
}

static int check_registers(struct decoder *dc, const struct insn *out, const struct mma *m)
{
    const uint32_t d = (uint32_t)m->d_regs * m->tiles, c = (uint32_t)m->c_regs * m->tiles;
    const uint32_t wanted = d + c + m->first_all + m->second_all;
    if (operand_registers(dc, 0) != d || operand_registers(dc, 3) != c)
        return bind_invalid(dc, "D has %u registers and C %u, not %u and %u", d, c,
                            operand_registers(dc, 0), operand_registers(dc, 3));
    if (out->list_count == wanted) return 0;
    return bind_invalid(dc, "D, A, B and C have %u registers in all, not %u", wanted,
                        (unsigned)out->list_count);
}

/* Registers of 32-bit words, or of f64. */
static void set_registers(struct mma *m, uint32_t rows, uint32_t element_bits)
{
    const uint32_t of = element_bits == 64 ? 2048 : 1024;
    m->low_rows = rows == 8;
    m->a_regs = (uint8_t)(rows * m->k * element_bits / of / (m->sparse ? 2U : 1U));
    m->b_regs = (uint8_t)(N * m->k * element_bits / of);
    m->c_regs = (uint8_t)(rows / 4U / (m->half_c ? 2U : 1U));
    m->d_regs = (uint8_t)(rows / 4U / (m->half_d ? 2U : 1U));
    m->first_all = m->a_regs;
    m->second_all = m->b_regs;
    m->tiles = 1;
}

static uint32_t bits_of_format(enum tensor_format format)
{
    return 8U * tensor_format_bytes(format) / tensor_format_pack(format);
}

/* `types`: the modifiers of D, A, B and C start there. */
static struct mma *begin(struct decoder *dc, struct insn *out, uint32_t types, uint32_t *rows)
{
    struct mma *m = bind_alloc(dc, sizeof *m);
    unsigned shape_m = 0, shape_n = 0, k = 0;
    if (!m) return NULL;
    (void)sscanf(dc->mod[2], "m%un%uk%u", &shape_m, &shape_n, &k);
    *rows = shape_m;
    m->k = m->k_step = (uint16_t)k;
    m->half_d = mod_is(dc, types, "f16");
    m->half_c = mod_is(dc, types + 3, "f16");
    m->format_a = (uint8_t)tensor_format_named(dc->mod[types + 1]);
    m->format_b = (uint8_t)tensor_format_named(dc->mod[types + 2]);
    out->aux = m;
    out->fn = exec_mma;
    return m;
}

static multiply_fn *multiply_of(const struct mma *m)
{
    switch ((enum tensor_format)m->format_a) {
    case TF_E4M3:
    case TF_E5M2: return multiply_fp8;
    case TF_U8:
    case TF_S8:
    case TF_U4:
    case TF_S4: return multiply_integer;
    default: return multiply_float;
    }
}

/* Modifiers: sync aligned shape row col, for integers [satfinite], then D A B C. */
int bind_mma(struct decoder *dc, struct insn *out)
{
    const uint32_t types = dc->mod_count - 4U;
    uint32_t rows = 0;
    struct mma *m = begin(dc, out, types, &rows);
    int64_t selector = 0;
    if (!m) return -1;
    m->multiply = multiply_of(m);
    m->saturate = types == 6 && dc->mod[5];
    m->sparse = dc->src->operand_count == 6;
    set_registers(m, rows, bits_of_format((enum tensor_format)m->format_a));
    if (m->sparse) {
        const uint32_t selectors = tensor_selectors((enum tensor_format)m->format_a, m->k);
        if (!operand_constant(dc, 5, &selector) || selector < 0 || selector >= selectors)
            return bind_invalid(dc, "the sparsity selector of this form is a constant below %u",
                                selectors);
        m->selector = (uint8_t)selector;
    }
    if (m->half_d != m->half_c) return bind_invalid(dc, "C and D must have the same type");
    return check_registers(dc, out, m);
}

/* Modifiers: sync aligned shape row col s32 b1 b1 s32 xor|and popc. */
int bind_mma_bits(struct decoder *dc, struct insn *out)
{
    uint32_t rows = 0;
    struct mma *m = begin(dc, out, 5, &rows);
    if (!m) return -1;
    m->multiply = multiply_bits;
    m->exclusive = mod_is(dc, 9, "xor");
    set_registers(m, rows, 1);
    return check_registers(dc, out, m);
}

/* Modifiers: sync aligned m8n8k4 row|col row|col D f16 f16 C. */
int bind_mma_quarters(struct decoder *dc, struct insn *out)
{
    uint32_t rows = 0;
    struct mma *m = begin(dc, out, 5, &rows);
    if (!m) return -1;
    m->multiply = multiply_quarters;
    m->a_columns = mod_is(dc, 3, "col");
    m->b_rows = mod_is(dc, 4, "row");
    m->a_regs = m->b_regs = m->first_all = m->second_all = 2;
    m->c_regs = m->half_c ? 4 : 8;
    m->d_regs = m->half_d ? 4 : 8;
    m->tiles = 1;
    if (m->half_d && !m->half_c) return bind_invalid(dc, "D must be f32 where C is");
    return check_registers(dc, out, m);
}

static int bind_f64(struct decoder *dc, struct insn *out, uint32_t rows, uint32_t k,
                    const char *rounding)
{
    struct mma *m = bind_alloc(dc, sizeof *m);
    if (!m) return -1;
    m->k = (uint16_t)k;
    set_registers(m, rows, 64);
    m->rounding = !rounding                 ? ROUND_NEAREST
                  : !strcmp(rounding, "rz") ? ROUND_ZERO
                  : !strcmp(rounding, "rm") ? ROUND_DOWN
                  : !strcmp(rounding, "rp") ? ROUND_UP
                                            : ROUND_NEAREST;
    out->aux = m;
    out->fn = exec_mma_f64;
    return check_registers(dc, out, m);
}

/* Modifiers: sync aligned shape row col [rounding] f64 f64 f64 f64. */
int bind_mma_f64(struct decoder *dc, struct insn *out)
{
    unsigned rows = 0, k = 0;
    (void)sscanf(dc->mod[2], "m%un8k%u", &rows, &k);
    return bind_f64(dc, out, rows, k, dc->mod[5]);
}

/* ---- wmma.mma: op_wmma.c has the fragments ---- */

/* Modifiers: sync aligned row|col row|col m8n8k4 [rounding] f64 f64 f64 f64. */
int bind_wmma_f64(struct decoder *dc, struct insn *out)
{
    return bind_f64(dc, out, 8, 4, dc->mod[5]);
}

/* Two tiles, or one of 8 x 8. */
static int wmma_tiles(struct decoder *dc, struct insn *out, struct mma *m)
{
    const char *shape = dc->mod[4];
    const bool transposed = !strncmp(shape, "m8n32", 5), tall = !strncmp(shape, "m32n8", 5);
    const uint32_t element_bits = bits_of_format((enum tensor_format)m->format_a);
    unsigned rows = 0, columns = 0, k = 0;
    (void)sscanf(shape, "m%un%uk%u", &rows, &columns, &k);
    m->k = (uint16_t)k;
    m->k_step = m->format_a == TF_TF32 ? 4 : m->k;
    set_registers(m, rows == 8 && columns == 8 ? 8 : TENSOR_ROWS, element_bits);
    if (m->low_rows) return check_registers(dc, out, m);
    m->tiles = 2;
    m->exchanged = transposed;
    m->a_next = transposed || tall ? m->a_regs : 0;
    m->b_next = transposed || tall ? 0 : m->b_regs;
    const uint32_t a_all = m->a_regs + m->a_next, b_all = m->b_regs + m->b_next;
    const bool half = m->format_a == TF_F16; /* always eight registers, whatever they hold */
    m->first_all = (uint8_t)(half ? 8U : transposed ? b_all : a_all);
    m->second_all = (uint8_t)(half ? 8U : transposed ? a_all : b_all);
    return check_registers(dc, out, m);
}

/* Modifiers: sync aligned layouts shape D A B C [satfinite]. */
int bind_wmma_mma(struct decoder *dc, struct insn *out)
{
    struct mma *m = bind_alloc(dc, sizeof *m);
    if (!m) return -1;
    m->half_d = mod_is(dc, 5, "f16");
    m->half_c = mod_is(dc, 8, "f16");
    m->format_a = (uint8_t)tensor_format_named(dc->mod[6]);
    m->format_b = (uint8_t)tensor_format_named(dc->mod[7]);
    m->multiply = multiply_of(m);
    m->saturate = dc->mod[9] != NULL;
    out->aux = m;
    out->fn = exec_mma;
    return wmma_tiles(dc, out, m);
}

/* Modifiers: sync aligned layouts shape D C: factors of f16. */
int bind_wmma_half(struct decoder *dc, struct insn *out)
{
    struct mma *m = bind_alloc(dc, sizeof *m);
    if (!m) return -1;
    m->half_d = mod_is(dc, 5, "f16");
    m->half_c = mod_is(dc, 6, "f16");
    m->format_a = m->format_b = TF_F16;
    m->multiply = multiply_float;
    out->aux = m;
    out->fn = exec_mma;
    return wmma_tiles(dc, out, m);
}

/* Modifiers: xor|and popc sync aligned row col m8n8k128 s32 b1 b1 s32. */
int bind_wmma_bits(struct decoder *dc, struct insn *out)
{
    struct mma *m = bind_alloc(dc, sizeof *m);
    if (!m) return -1;
    m->k = 128;
    m->multiply = multiply_bits;
    m->exclusive = mod_is(dc, 0, "xor");
    set_registers(m, 8, 1);
    out->aux = m;
    out->fn = exec_mma;
    return check_registers(dc, out, m);
}
