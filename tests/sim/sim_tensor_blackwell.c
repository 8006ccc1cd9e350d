/*
 * What tcgen05 has beyond the kinds of sim_tensor_mma.c, against scalar models in double written from the
 * tables of the PTX ISA: every kind with dense and sparse A from shared or tensor memory, block scales,
 * .ws, .ashift, data-path layouts A to G; ld.red, narrow conversions.
 */
#include "tensor_model.h"
#include "ops/table.h"

#include "machine/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind { FP16, FP32, FP8, INT8, MXF8, MXF4, NVF4, KINDS };
static const char *const kind_names[KINDS] = {"f16",      "tf32", "f8f6f4",  "i8",
                                              "mxf8f6f4", "mxf4", "mxf4nvf4"};

/* Columns of tensor memory, from the base. */
enum { COL_A = 256, COL_META = 288, COL_SFA = 320, COL_SFB = 352 };

struct form {
    enum kind kind;
    uint32_t group, m, n;
    enum format a, b;
    bool sparse, ws, a_tmem, a_mn, b_mn, a_shift, accumulate, saturate, half_d, masked;
    bool negate_a, negate_b, specials;
    uint32_t swizzle_a, swizzle_b;
    uint32_t vectors; /* of scale factors in one instruction; 3 or 6 with K = 96 */
    bool ue4m3;
    uint32_t sfa_id, sfb_id, selector;
    bool zeroing;
    uint64_t zero_mask;
    uint32_t b_shift;
    uint32_t start;   /* lane of D, A and metadata: 0, in strips of 16 lanes also 16 */
    uint32_t variant; /* chooses among spellings and collector usages */
};

static bool scaled(const struct form *c)
{
    return c->kind >= MXF8;
}

/* "Data Path Layout Organization": layouts C and F. */
static bool in_strips(const struct form *c)
{
    return c->group == 2 ? c->m == 128 && c->sparse : c->m == 64 && !c->ws;
}

static uint32_t stored_count(const struct form *c)
{
    static const uint32_t counts[KINDS] = {16, 8, 32, 32, 32, 64, 64};
    return c->vectors == 3 || c->vectors == 6 ? 96 : counts[c->kind];
}

/* ---- kernel ---- */

/* Any usage: one instruction alone never finds a buffer filled. `.ashift` goes with two of them. */
static void emit_collector(FILE *f, const struct form *c)
{
    static const char *const usages[] = {"lastuse", "discard", "fill", "use"};
    const uint32_t v = c->variant;
    if (c->ws)
        fprintf(f, ".collector::b%u::%s", v / 4 % 4, usages[v % 4]);
    else if (v % 5 < (c->a_shift ? 2U : 4U))
        fprintf(f, ".collector::a::%s", usages[v % 5]);
}

/* "PTX ISA, Block Scaling": the size of a scale vector by count, as a block, or left to the kind. */
static void emit_vectors(FILE *f, const struct form *c)
{
    static const char *const vectors[] = {"", "1X", "2X", "2X", "4X", "", "4X"};
    static const char *const blocks[] = {"",        "block32", "block32", "block32",
                                         "block16", "",        "block16"};
    const uint32_t spelling = c->variant % (c->kind == NVF4 ? 2 : 3);
    fprintf(f, ".block_scale");
    if (spelling == 0) fprintf(f, ".scale_vec::%s", vectors[c->vectors]);
    if (spelling == 1) fprintf(f, ".%s", blocks[c->vectors]);
}

/* The instruction and its family: what it is called up to the kind. */
static void emit_family(FILE *f, const struct form *c)
{
    fprintf(f, "tcgen05.mma%s%s.cta_group::%u.kind::%s", c->ws ? ".ws" : "", c->sparse ? ".sp" : "",
            c->group, kind_names[c->kind]);
}

static void emit_instruction(FILE *f, const struct form *c)
{
    emit_family(f, c);
    if (scaled(c)) emit_vectors(f, c);
    if (c->a_shift) fprintf(f, ".ashift");
    emit_collector(f, c);
    fprintf(f, " [%%r4+%u],%s,%%d9,", c->start << 16, c->a_tmem ? "[%r24]" : "%d8");
    if (c->sparse) fprintf(f, "[%%r4+%u],", c->start << 16 | COL_META);
    fprintf(f, "%%r22,");
    if (scaled(c)) fprintf(f, "[%%r4+%d],[%%r4+%d],", COL_SFA, COL_SFB);
    if (c->masked) {
        emit_list(f, "%v", 0, 4 * c->group);
        fprintf(f, ",");
    }
    fprintf(f, "%%p4%s;\n", c->zeroing ? ",%d10" : "");
}

static void emit_kernel(FILE *f, const struct form *c)
{
    emit_header(f, c->vectors == 3 || c->vectors == 6 ? "sm_103a" : "sm_100a", "");
    emit_mma_begin(f, c->group, c->start << 16 | COL_A);
    emit_instruction(f, c);
    fprintf(f,
            "mov.b16 %%h0,%u;\ntcgen05.commit.cta_group::%u.mbarrier::arrive::one"
            ".shared::cluster.multicast::cluster.b64 [bar],%%h0;\n",
            c->group == 2 ? 3U : 1U, c->group);
    emit_mma_end(f, c->group);
}

/* "Instruction descriptor", by its tables. */
static uint32_t descriptor_of(const struct form *c)
{
    uint32_t d = (uint32_t)c->sparse << 2 | formats[c->a].code << 7 | formats[c->b].code << 10 |
                 (uint32_t)c->negate_a << 13 | (uint32_t)c->negate_b << 14 |
                 (uint32_t)c->a_mn << 15 | (uint32_t)c->b_mn << 16 | c->n / 8 << 17;
    if (scaled(c))
        return d | c->sfb_id << 4 | (uint32_t)!c->ue4m3 << 23 | c->m / 128 << 27 | c->sfa_id << 29 |
               (uint32_t)(c->vectors == 3 || c->vectors == 6) << 31;
    d |= c->selector | (uint32_t)c->saturate << 3 | c->m / 16 << 24;
    d |= c->kind == INT8 ? 2U << 4 : c->half_d ? 0U : 1U << 4;
    return c->ws && c->b_shift ? d | (c->b_shift <= 8 ? 1U : c->b_shift <= 16 ? 2U : 3U) << 30 : d;
}

/* ---- model ---- */

struct model {
    const struct form *c;
    struct smem_operand a, b;
    const uint32_t *before;
    double (*b_values)[128]; /* by n and logical k */
};

struct place {
    uint32_t cta, lane, column;
};

/* "Data Path Layout Organization", figure by figure. */
static struct place d_place(const struct form *c, uint32_t m, uint32_t n)
{
    if (c->group == 2 && c->m == 256) return (struct place){m / 128, m % 128, n}; /* A */
    if (c->n < 4) return (struct place){0, m, n}; /* no form has so few columns */
    const uint32_t quarter = n / (c->n / 4), half = n / (c->n / 2);
    if (c->group == 2 && c->sparse) /* C */
        return (struct place){m / 64, c->start + m % 64 / 16 * 32 + m % 16, n};
    if (c->group == 2) return (struct place){m / 64, m % 64 + 64 * half, n % (c->n / 2)}; /* B */
    if (c->m == 128) return (struct place){0, m, n};                                      /* D */
    if (c->ws && c->m == 64) return (struct place){0, m + 64 * half, n % (c->n / 2)};     /* E */
    if (c->ws) return (struct place){0, m + 32 * quarter, n % (c->n / 4)};                /* G */
    return (struct place){0, c->start + m / 16 * 32 + m % 16, n};                         /* F */
}

static uint32_t cell(const struct model *s, uint32_t cta, uint32_t column, uint32_t lane)
{
    return s->before[cta * CELLS + column * 128 + lane];
}

static double stored_a(const struct model *s, struct place d, uint32_t m, uint32_t i)
{
    const struct form *c = s->c;
    const uint32_t bytes = formats[c->a].bytes;
    double v;
    if (c->a_tmem) {
        const uint32_t bit = c->a == E2M1X2 ? i * 4 : i * bytes * 8;
        uint32_t word = cell(s, d.cta, COL_A + bit / 32, d.lane) >> bit % 32;
        uint8_t byte[4];
        memcpy(byte, &word, sizeof byte);
        v = element_value(c->a, byte);
    } else {
        v = model_element(&s->a, c->a, image[d.cta], m % (c->m / c->group), i);
    }
    return c->negate_a ? -v : v;
}

static bool column_is_zero(const struct form *c, uint32_t n)
{
    if (!c->zeroing || !(c->zero_mask >> 39 & 1)) return false;
    const uint32_t parts = 128 / c->m, part = n / (c->n / parts), column = n % (c->n / parts);
    const uint64_t z = 1 + (c->zero_mask >> 40 & 255), u = 1 + (c->zero_mask >> 48 & 255);
    const uint64_t at = (column + (c->zero_mask >> 8 * part & 255)) % (z + u);
    return c->zero_mask >> (32 + part) & 1 ? at < z : at >= u;
}

static double b_value(const struct model *s, uint32_t n, uint32_t k)
{
    const struct form *c = s->c;
    const uint32_t per = c->n / c->group;
    if (column_is_zero(c, n)) return 0;
    const double v = model_element(&s->b, c->b, image[n / per], n % per + c->b_shift, k);
    return c->negate_b ? -v : v;
}

/* "Sparse Matrices": the logical k of stored element i. */
static uint32_t logical_k(const struct model *s, struct place d, uint32_t i)
{
    const struct form *c = s->c;
    const bool tall = c->kind == FP16 || c->kind == FP32;
    const uint32_t unit = scaled(c) && c->kind != MXF8 ? 2 : 1; /* elements that move together */
    const uint32_t per_group = c->kind == FP32 ? 1 : 2 * unit, group = i / per_group;
    uint32_t column = COL_META, lane = d.lane, nibble;
    if (!c->sparse) return i;
    if (tall) {
        column += c->selector;
        lane = d.lane / 32 * 32 + d.lane % 32 / 16 * 16 + d.lane % 8 + group / 4 * 8;
        nibble = d.lane % 16 / 8 * 4 + group % 4;
    } else {
        column += group / 8;
        nibble = group % 8;
    }
    const uint32_t code = cell(s, d.cta, column, lane) >> 4 * nibble & 15;
    if (c->kind == FP32) return 2 * group + (code == 14);
    const uint32_t index = i % per_group < unit ? code % 4 : code / 4;
    return (group * 4 + index) * unit + i % unit;
}

/* "Block Scaling": factor j of row x in the quarter of the lanes that starts at `lane`. */
static double factor(const struct model *s, uint32_t cta, uint32_t base, uint32_t rows, uint32_t x,
                     uint32_t lane, uint32_t byte)
{
    const uint32_t column = base + x / 32 + (byte > 3 ? 4 * ((rows + 127) / 128) : 0);
    const uint32_t code = cell(s, cta, column, lane + x % 32) >> 8 * (byte % 4) & 255;
    const uint8_t low = (uint8_t)code;
    return s->c->ue4m3 ? element_value(E4M3, &low) : ldexp(1, (int)code - 127);
}

/* Products of the scale factors of D(m, n), vector by vector. */
static void scales_of(const struct model *s, struct place d, uint32_t m, uint32_t n, double *scale)
{
    const struct form *c = s->c;
    const uint32_t rows = c->m / c->group;
    const bool halves = c->group == 2 && c->m == 128;
    const uint32_t columns = halves ? c->n / 2 : c->n;
    scale[0] = 1;
    for (uint32_t j = 0; j < c->vectors; j++)
        scale[j] = factor(s, d.cta, COL_SFA, rows, m % rows, 0, c->sfa_id + j) *
                   factor(s, d.cta, COL_SFB, columns, n % columns, halves ? n / columns * 64 : 0,
                          c->sfb_id + j);
}

static void check_integer(const struct model *s, uint32_t m, uint32_t n, double sum,
                          uint32_t before, uint32_t got)
{
    double want = sum + (s->c->accumulate ? (double)(int32_t)before : 0);
    if (s->c->saturate) want = want > INT32_MAX ? INT32_MAX : want < INT32_MIN ? INT32_MIN : want;
    CHECK(got == (uint32_t)(uint64_t)(int64_t)want, "D(%u,%u): want %.0f got %d", m, n, want,
          (int32_t)got);
}

/* What a row of A brings to a data path, by stored element. */
struct row {
    double a[128];
    uint32_t k[128];
};

static void fill_row(const struct model *s, struct place d, uint32_t m, struct row *row)
{
    for (uint32_t i = 0; i < stored_count(s->c); i++) {
        row->a[i] = stored_a(s, d, m, i);
        row->k[i] = logical_k(s, d, i);
    }
}

static void check_element(const struct model *s, const struct row *row, uint32_t m, uint32_t n,
                          struct place d, uint32_t got)
{
    const struct form *c = s->c;
    const uint32_t count = stored_count(c), old = cell(s, d.cta, d.column, d.lane);
    const uint32_t vectors = c->vectors ? c->vectors : 1;
    double sum = 0, magnitude = 0, scale[6];
    scales_of(s, d, m, n, scale);
    for (uint32_t i = 0; i < count; i++) {
        const double product = row->a[i] * s->b_values[n][row->k[i]] * scale[i * vectors / count];
        sum += product;
        magnitude += fabs(product);
    }
    if (c->kind == INT8) {
        check_integer(s, m, n, sum, old, got);
        return;
    }
    if (c->accumulate) {
        sum += cell_value(old, c->half_d);
        magnitude += fabs(cell_value(old, c->half_d));
    }
    const double value = cell_value(got, c->half_d);
    if (isnan(sum) || isinf(sum))
        CHECK(isnan(sum) ? isnan(value) : value == sum, "D(%u,%u): want %g got %g", m, n, sum,
              value);
    else
        CHECK(close_enough(value, sum, magnitude, count, 24, c->half_d), "D(%u,%u): want %g got %g",
              m, n, sum, value);
}

static void check_form(struct model *s, const uint32_t *after)
{
    const struct form *c = s->c;
    static uint8_t written[2 * CELLS];
    static double b_values[256][128];
    memset(written, 0, sizeof written);
    s->b_values = b_values;
    for (uint32_t n = 0; n < c->n; n++)
        for (uint32_t k = 0; k < stored_count(c) << c->sparse; k++)
            b_values[n][k] = b_value(s, n, k);
    for (uint32_t m = 0; m < c->m; m++) {
        struct row row = {0};
        for (uint32_t n = 0, lane = 128; n < c->n; n++) {
            const struct place d = d_place(c, m, n);
            const uint32_t at = d.cta * CELLS + d.column * 128 + d.lane;
            if (d.lane != lane) fill_row(s, d, m, &row);
            lane = d.lane;
            written[at] = 1;
            if (c->masked && (0x11U << (d.cta * 4 + d.lane / 32)) >> d.lane % 32 & 1U)
                written[at] = 0;
            else
                check_element(s, &row, m, n, d, after[at]);
        }
    }
    for (uint32_t i = 0; i < c->group * CELLS; i++) {
        const uint32_t column = i % CELLS / 128, lane = i % 128;
        const bool moves = c->a_shift && column >= COL_A && column < COL_A + 8 && lane % 32 < 31;
        if (!written[i])
            CHECK(after[i] == s->before[i + moves], "CTA %u column %u lane %u: want %08x got %08x",
                  i / CELLS, column, lane, s->before[i + moves], after[i]);
    }
}

/* ---- inputs ---- */

static uint32_t random_metadata(bool one_of_two)
{
    static const uint8_t codes[] = {4, 14, 8, 12, 9, 13};
    uint32_t word = 0;
    for (uint32_t i = 0; i < 8; i++)
        word = word << 4 | codes[rng_below(&rng, one_of_two ? 2 : sizeof codes)];
    return word;
}

static uint32_t random_factors(bool ue4m3)
{
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4; i++)
        word = word << 8 | (ue4m3 ? rng_below(&rng, 0x7F) : 120 + rng_below(&rng, 15));
    return word;
}

static uint32_t random_cell(const struct form *c, uint32_t column)
{
    const float f = rng_unit(&rng);
    uint32_t word = (uint32_t)rng_next(&rng);
    if (column >= COL_SFA) return random_factors(c->ue4m3);
    if (column >= COL_META) return random_metadata(c->kind == FP32);
    if (column >= COL_A) {
        for (uint32_t j = 0; j < 4; j += formats[c->a].bytes)
            random_element(c->a, (uint8_t *)&word + j);
    } else if (c->half_d) {
        word = double_to_f16((double)f);
    } else if (c->kind != INT8) {
        memcpy(&word, &f, sizeof word);
    } else if (word & 1U) {
        word = word >> 1 & 1U ? 0x7FFFFFFFU - (word >> 20) : 0x80000000U + (word >> 20);
    }
    return word;
}

/* Tensor memory of both CTAs, with the copies that rows in several quarters need. */
static void fill_cells(const struct form *c, uint32_t *cells)
{
    const bool halves = c->group == 2 && c->m == 128 && !c->sparse;
    for (uint32_t i = 0; i < 2 * CELLS; i++) {
        const uint32_t column = i % CELLS / 128, lane = i % 128;
        const uint32_t rows = c->ws ? c->m : halves ? 64 : 128;
        cells[i] = random_cell(c, column);
        if (column >= COL_SFB && halves ? lane % 64 >= 32 : column >= COL_SFA && lane >= 32)
            cells[i] = cells[i - 32];
        else if (column >= COL_A && column < COL_SFA && lane >= rows)
            cells[i] = cells[i - rows];
    }
}

static struct smem_operand make_operand(const struct form *c, uint32_t swizzle, bool mn,
                                        enum format format, uint32_t start)
{
    struct smem_operand o = random_operand(swizzle, mn, format, start);
    if (c->vectors != 3 && c->vectors != 6) return o;
    o.wraps = true; /* one of the steps of 48 bytes; the row goes on in a second atom */
    o.start = start + 1024 * rng_below(&rng, 2) + 16 * rng_below(&rng, 8);
    o.lbo = start + 32 * 1024;
    o.sbo = 1024;
    return o;
}

static void test_form(const struct form *c)
{
    const uint64_t before = device_buffer(2 * CELLS * 4), after = device_buffer(2 * CELLS * 4);
    const uint64_t images = device_buffer(2 * IMAGE);
    struct model s = {.c = c, .before = host(before)};
    char findings[2048];
    struct text t;
    s.a = make_operand(c, c->swizzle_a, c->a_mn, c->a, A_START);
    s.b = make_operand(c, c->swizzle_b, c->b_mn, c->b, B_START);
    fill_image(c->a, c->b);
    for (uint32_t i = 0; c->specials && i < 40; i++) /* infinities of e5m2 */
        image[0][B_START + rng_below(&rng, 32 * 1024)] = 0x7C;
    for (uint32_t i = 0; i < 2; i++)
        memcpy((uint8_t *)host(images) + i * IMAGE, image[i] + 2048, IMAGE - 2048);
    fill_cells(c, host(before));
    FILE *f = text_open(&t);
    emit_kernel(f, c);
    (void)fclose(f);
    coverage_mma(t.at, descriptor_of(c), c->a_tmem);
    const struct run r = {c->vectors == 3 || c->vectors == 6 ? "b300" : "b200",
                          c->group,
                          128,
                          IMAGE - 2048,
                          {before, after, images, descriptor(&s.a, true), descriptor(&s.b, true),
                           descriptor_of(c), c->accumulate,
                           c->zero_mask | (uint64_t)c->b_shift << 56},
                          0};
    CHECK_INT(run_ptx(t.at, &r, findings, sizeof findings), 0);
    CHECK(strstr(findings, "\"verdict\":\"clean\""), "verdict: %s", findings);
    if (!test_case_failures()) check_form(&s, host(after));
    free(t.at);
    (void)mem_free(before);
    (void)mem_free(after);
    (void)mem_free(images);
}

/* ---- which forms ---- */

/* Of each family, by variant: sizes, and the one thing that must happen. */
enum { VARIANTS = 9, IN_TMEM = 1, A_MN = 2, NEGATE_A = 3, B_MN = 4, NEGATE_B = 5, D_ODD = 6 };

static enum format pick_format(enum kind kind, uint32_t v, bool plain)
{
    static const enum format f8f6f4[] = {E4M3, E5M2, E2M3, E3M2, E2M1};
    switch (kind) {
    case FP16: return v % 2 ? BF16 : F16;
    case FP32: return TF32;
    case INT8: return v % 2 ? U8 : S8;
    case MXF4:
    case NVF4: return E2M1X2;
    default: return f8f6f4[plain ? v % 5 % 2 : v % 5];
    }
}

/* MN-major operands: of 16, 32 and plain 8 bits, B in whole swizzle patterns. */
static void vary_layout(struct form *c, uint32_t v)
{
    const bool wide = c->kind < MXF4;
    c->a = pick_format(c->kind, v, v == A_MN);
    c->b = pick_format(c->kind, c->kind == FP16 ? v : v + 1, v == B_MN);
    c->a_tmem = v == IN_TMEM || v > D_ODD;
    c->a_mn = wide && v == A_MN;
    c->b_mn = wide && v == B_MN;
    c->swizzle_a = c->a == TF32 && c->a_mn ? 4 : rng_below(&rng, 4);
    c->swizzle_b = c->b == TF32 && c->b_mn ? 4 : v ? rng_below(&rng, 4) : 1;
    if (c->vectors == 3 || c->vectors == 6) c->swizzle_a = c->swizzle_b = 3;
}

/* Fills in what does not matter to the shape. */
static void vary(struct form *c, uint32_t v)
{
    vary_layout(c, v);
    c->start = in_strips(c) ? 16 * (v % 2) : 0;
    c->accumulate = rng_below(&rng, 2);
    c->negate_a = c->kind != INT8 && (v == NEGATE_A || rng_below(&rng, 4) == 0);
    c->negate_b = c->kind != INT8 && (v == NEGATE_B || rng_below(&rng, 4) == 0);
    c->saturate = c->kind == INT8 && (v == D_ODD || rng_below(&rng, 2));
    c->half_d = (c->kind == FP16 || c->kind == FP8) && v == D_ODD;
    c->masked = !c->ws && !scaled(c) && rng_below(&rng, 3) == 0;
    c->selector = c->sparse && (c->kind == FP16 || c->kind == FP32) ? v % 2 : 0;
    if (c->vectors == 1 || c->vectors == 3) {
        c->sfa_id = rng_below(&rng, 4);
        c->sfb_id = rng_below(&rng, 4);
    } else if (c->vectors == 2 || c->vectors == 6) {
        c->sfa_id = 2 * rng_below(&rng, 2);
        c->sfb_id = 2 * rng_below(&rng, 2);
    }
    c->ue4m3 = (c->vectors == 4 || c->vectors == 6) && (v == D_ODD || rng_below(&rng, 2));
    c->zeroing = c->ws && rng_below(&rng, 4) != 0;
    if (c->zeroing) {
        c->zero_mask =
            (rng_next(&rng) & 0xFFFFFFFULL << 8) | 1ULL << 39 | (rng_next(&rng) & 0x1F1FULL << 40);
        c->zero_mask &= ~(7ULL << 36);
        c->b_shift = rng_below(&rng, c->m == 32 ? 17 : 33);
    }
}

static void run_form(struct form c, uint32_t v)
{
    static uint32_t serial;
    c.variant = serial++;
    vary(&c, v);
    if (test_case("tcgen05.mma%s%s %ux%u kind %s, A %s in %s, B %s, pair-size %u, %u vectors",
                  c.ws ? ".ws" : "", c.sparse ? ".sp" : "", c.m, c.n, kind_names[c.kind],
                  formats[c.a].name, c.a_tmem ? "tensor memory" : "shared memory",
                  formats[c.b].name, c.group, c.vectors))
        test_form(&c);
}

/* A family in every M, `sizes` of them from `m` up, with the least N, 128 and the largest N. */
static void family_forms(struct form c, uint32_t m, uint32_t sizes)
{
    const uint32_t least = c.ws ? 64 : c.kind == INT8 && c.group == 2 ? 32 : 8 * c.group;
    const uint32_t step = c.vectors == 3 || c.vectors == 6 ? 4 : 1; /* the family has been there */
    for (uint32_t v = 0; v < VARIANTS; v += step) {
        const uint32_t n[3] = {least, 128, c.ws && c.sparse ? 128 : 256};
        c.m = m << v / 3 % sizes;
        c.n = n[v % 3];
        run_form(c, v);
    }
}

static void all_forms(void)
{
    static const struct {
        enum kind kind;
        uint32_t vectors;
    } sizes[] = {{MXF8, 1}, {MXF4, 2}, {NVF4, 2}, {NVF4, 4}, {MXF4, 3}, {NVF4, 3}, {NVF4, 6}};
    for (uint32_t v = 0; v < 4; v++) {
        struct form c = {.sparse = v & 1U, .group = 1 + v / 2};
        for (c.kind = FP16; c.kind <= INT8; c.kind++) family_forms(c, 64 * c.group, 2);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            const uint32_t m_sizes = c.group == 2 && !c.sparse ? 2 : 1;
            c.kind = sizes[i].kind;
            c.vectors = sizes[i].vectors;
            if (c.sparse && (c.vectors == 3 || c.vectors == 6)) continue; /* K = 96 is dense */
            family_forms(c, 128 * c.group / m_sizes, m_sizes);
        }
        c.ws = true;
        c.vectors = 0;
        if (c.group == 1)
            for (c.kind = FP16; c.kind <= INT8; c.kind++) family_forms(c, 32, 3);
    }
}

/* Every usage of the collector with every spelling of the scales' size, in the least shape of its family. */
static void spelled_forms(void)
{
    static const struct {
        enum kind kind;
        enum format format;
        uint32_t vectors, spellings, usages;
        bool ws;
    } families[] = {{FP16, F16, 0, 1, 5, false},    {FP32, TF32, 0, 1, 5, false},
                    {FP8, E4M3, 0, 1, 5, false},    {INT8, S8, 0, 1, 5, false},
                    {MXF8, E4M3, 1, 3, 5, false},   {MXF4, E2M1X2, 2, 3, 5, false},
                    {NVF4, E2M1X2, 2, 2, 5, false}, {NVF4, E2M1X2, 4, 2, 5, false},
                    {FP16, BF16, 0, 1, 16, true},   {FP32, TF32, 0, 1, 16, true},
                    {FP8, E5M2, 0, 1, 16, true},    {INT8, U8, 0, 1, 16, true}};

    for (size_t i = 0; i < 2 * sizeof families / sizeof families[0]; i++) {
        struct form c = {.group = 1 + i % 2, .swizzle_b = 1};
        c.kind = families[i / 2].kind;
        c.a = c.b = families[i / 2].format;
        c.vectors = families[i / 2].vectors;
        c.ws = families[i / 2].ws;
        if (c.ws && c.group == 2) continue;
        c.m = c.ws ? 32 : 128 * c.group;
        c.n = c.ws ? 64 : 32;
        for (c.variant = 0; c.variant < families[i / 2].spellings * families[i / 2].usages;
             c.variant++)
            if (test_case("tcgen05.mma%s kind %s, pair-size %u, spelling %u", c.ws ? ".ws" : "",
                          kind_names[c.kind], c.group, c.variant))
                test_form(&c);
    }
}

/* A's rows move up when the product is done; M 128 or 256. */
static void shifted_forms(void)
{
    static const struct {
        enum kind kind;
        enum format a, b;
    } kinds[] = {{FP16, BF16, BF16}, {FP32, TF32, TF32}, {FP8, E3M2, E4M3}, {INT8, S8, U8}};
    for (uint32_t i = 0; i < 4 * sizeof kinds / sizeof kinds[0]; i++) {
        struct form c = {.kind = kinds[i / 4].kind,
                         .a = kinds[i / 4].a,
                         .b = kinds[i / 4].b,
                         .group = 1 + i % 2,
                         .n = 64,
                         .a_tmem = true,
                         .swizzle_b = 3,
                         .sparse = i / 2 % 2,
                         .a_shift = true,
                         .variant = i % 3};
        for (c.m = 128; c.m <= 128 * c.group; c.m *= 2)
            if (test_case("tcgen05.mma%s.ashift of %s, M %u, pair-size %u", c.sparse ? ".sp" : "",
                          kind_names[c.kind], c.m, c.group))
                test_form(&c);
    }
}

static void special_forms(void)
{
    for (uint32_t group = 1; group <= 2; group++) {
        const struct form c = {.kind = FP8,
                               .group = group,
                               .m = 128 * group,
                               .n = 64,
                               .a = E4M3,
                               .b = E5M2,
                               .swizzle_b = 3,
                               .sparse = true,
                               .specials = true};
        if (test_case("tcgen05.mma.sp beside infinities, pair-size %u", group)) test_form(&c);
    }
}

/* ---- ld.red ---- */

/* The least or greatest of columns; `type` as in PTX, with .abs and .NaN before it. */
static double reduced(const uint32_t *column, uint32_t count, bool least, const char *type)
{
    const bool absolute = strstr(type, "abs"), nan_wins = strstr(type, "NaN"),
               any = strstr(type, "f32");
    double best = any ? (double)NAN : 0;
    bool nan = false;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t word = column[i * 128];
        double v = any                   ? cell_value(word, false)
                   : strstr(type, "s32") ? (int32_t)word
                                         : (double)word;
        if (absolute) v = fabs(v);
        nan |= isnan(v);
        if ((i == 0 && !any) || isnan(best) || (least ? v < best : v > best)) best = v;
    }
    return nan && nan_wins ? (double)NAN : best;
}

/* `halves`: .16x32bx2, whose upper threads read columns `times` further on. */
static void test_ld_red(const char *type, bool least, uint32_t times, bool halves)
{
    const bool is_float = strstr(type, "f32");
    const uint64_t in = device_buffer(CELLS * 4), out = device_buffer(128 * 4);
    uint32_t *cells = host(in);
    const uint32_t *got = host(out);
    struct text t;
    FILE *f = text_open(&t);
    for (uint32_t i = 0; i < CELLS; i++) {
        const float x = rng_unit(&rng) - 0.5F;
        cells[i] = (uint32_t)rng_next(&rng);
        if (is_float && cells[i] % 64 == 0)
            cells[i] = 0x7FC00001U;
        else if (is_float)
            memcpy(&cells[i], &x, sizeof x);
    }
    emit_header(f, "sm_103a", "");
    emit_tmem_open(f, 1);
    fprintf(f, "ld.param.u64 %%d0,[p0];\n");
    emit_columns(f, true, 512, "LA");
    fprintf(f, "tcgen05.ld.red.sync.aligned.%s.x%u.%s%s ", halves ? "16x32bx2" : "32x32b", times,
            least ? "min" : "max", type);
    emit_list(f, "%v", 0, times);
    fprintf(f, ",%%r9,[%%r3+8]");
    if (halves) fprintf(f, ",%u", times);
    fprintf(f, ";\ntcgen05.wait::ld.sync.aligned;\nld.param.u64 %%d2,[p1];\n"
               "mul.wide.u32 %%d3,%%r0,4; add.u64 %%d2,%%d2,%%d3; st.global.b32 [%%d2],%%r9;\n");
    emit_tmem_close(f, 1);
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"b300", 1, 128, 0, {in, out}, 0}, NULL, 0), 0);
    for (uint32_t thread = 0; thread < 128; thread++) {
        const uint32_t row = halves ? thread / 32 * 32 + thread % 16 : thread;
        const uint32_t column = 8 + (halves ? thread % 32 / 16 * times : 0);
        const double want = reduced(cells + (size_t)column * 128 + row, times, least, type);
        const double value = is_float              ? cell_value(got[thread], false)
                             : strstr(type, "s32") ? (int32_t)got[thread]
                                                   : (double)got[thread];
        CHECK(isnan(want) ? isnan(value) : value == want, "thread %u: want %g got %g", thread, want,
              value);
    }
    free(t.at);
    (void)mem_free(in);
    (void)mem_free(out);
}

/* ---- conversions ---- */

/* The code whose value is nearest to v, of ties the even one; above all of them the largest. */
static uint32_t nearest_code(enum format format, double v, uint32_t count, uint32_t shift)
{
    uint32_t best = 0;
    const double size = fmin(fabs(v), 1000);
    if (isnan(v)) return count - 1;
    for (uint32_t code = 0; code < count; code++) {
        const uint8_t byte = (uint8_t)(code << shift), old = (uint8_t)(best << shift);
        const double gap = fabs(element_value(format, &byte) - size);
        const double least = fabs(element_value(format, &old) - size);
        if (gap < least || (gap == least && code % 2 == 0)) best = code;
    }
    return signbit(v) ? best | count : best;
}

static void test_narrow(enum format format)
{
    const uint64_t in = device_buffer(128 * 8), out = device_buffer(128 * 8);
    const uint32_t bits = format == E2M1 ? 4 : 8, count = format == E2M1 ? 8 : 32;
    const uint32_t shift = format == E2M1 ? 2 : 0;
    float *value = host(in);
    const uint32_t *got = host(out);
    struct text t;
    FILE *f = text_open(&t);
    for (uint32_t i = 0; i < 256; i++) {
        value[i] = ldexpf(rng_unit(&rng) - 0.5F, (int)rng_below(&rng, 9) - 3);
        if (i % 4 == 1) value[i] = (float)((int)rng_below(&rng, 64) - 32) / 8.0F; /* ties */
    }
    value[0] = (float)NAN, value[5] = (float)INFINITY, value[6] = -(float)INFINITY,
    value[7] = -0.0F;
    emit_header(f, "sm_100f", ".reg .f32 %f<4>;\n.reg .b8 %b;\n");
    fprintf(f,
            "mov.u32 %%r0,%%tid.x; mul.wide.u32 %%d1,%%r0,8; ld.param.u64 %%d0,[p0];\n"
            "add.u64 %%d0,%%d0,%%d1; ld.global.v2.f32 {%%f0,%%f1},[%%d0];\n"
            "cvt.rn.satfinite.%sx2.f32 %s,%%f1,%%f0;\ncvt.rn.f16x2.%sx2 %%r2,%s;\n%s"
            "ld.param.u64 %%d2,[p1]; add.u64 %%d2,%%d2,%%d1; st.global.v2.b32 [%%d2],{%%r1,%%r2};\n"
            "ret;\n}\n",
            formats[format].name, format == E2M1 ? "%b" : "%h0", formats[format].name,
            format == E2M1 ? "%b" : "%h0",
            format == E2M1 ? "cvt.u32.u8 %r1,%b;\n" : "cvt.u32.u16 %r1,%h0;\n");
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"b200", 1, 128, 0, {in, out}, 0}, NULL, 0), 0);
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t code = got[i / 2 * 2] >> i % 2 * bits & (2 * count - 1);
        const uint8_t byte = (uint8_t)(code << shift);
        const double half = f16_to_double((uint16_t)(got[i / 2 * 2 + 1] >> i % 2 * 16));
        CHECK(code == nearest_code(format, (double)value[i], count, shift), "%g gives %02x",
              (double)value[i], code);
        CHECK(half == element_value(format, &byte), "%02x gives %g", code, half);
    }
    free(t.at);
    (void)mem_free(in);
    (void)mem_free(out);
}

static void test_ue8m0(bool up)
{
    const uint64_t in = device_buffer(128 * 8), out = device_buffer(128 * 8);
    float *value = host(in);
    const uint32_t *got = host(out);
    struct text t;
    FILE *f = text_open(&t);
    for (uint32_t i = 0; i < 256; i++)
        value[i] = ldexpf(i % 8 ? 1 + rng_unit(&rng) : 1, (int)rng_below(&rng, 250) - 125);
    emit_header(f, "sm_100f", ".reg .f32 %f<4>;\n");
    fprintf(f,
            "mov.u32 %%r0,%%tid.x; mul.wide.u32 %%d1,%%r0,8; ld.param.u64 %%d0,[p0];\n"
            "add.u64 %%d0,%%d0,%%d1; ld.global.v2.f32 {%%f0,%%f1},[%%d0];\n"
            "cvt.%s.satfinite.ue8m0x2.f32 %%h0,%%f1,%%f0;\ncvt.rn.bf16x2.ue8m0x2 %%r2,%%h0;\n"
            "cvt.u32.u16 %%r1,%%h0; ld.param.u64 %%d2,[p1]; add.u64 %%d2,%%d2,%%d1;\n"
            "st.global.v2.b32 [%%d2],{%%r1,%%r2};\nret;\n}\n",
            up ? "rp" : "rz");
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"b200", 1, 128, 0, {in, out}, 0}, NULL, 0), 0);
    for (uint32_t i = 0; i < 256; i++) {
        const double x = fabs((double)value[i]), l = up ? ceil(log2(x)) : floor(log2(x));
        const uint32_t code = got[i / 2 * 2] >> i % 2 * 8 & 255;
        const double back = bf16_to_double((uint16_t)(got[i / 2 * 2 + 1] >> i % 2 * 16));
        CHECK((double)code == fmax(l + 127, 0), "%g gives %u", (double)value[i], code);
        CHECK(back == ldexp(1, (int)code - 127), "%u gives %g", code, back);
    }
    free(t.at);
    (void)mem_free(in);
    (void)mem_free(out);
}

/* ---- targets ---- */

/* What ptxas 13.0 takes for one target and not for another. */
static const struct target_case {
    const char *text, *good, *bad;
} target_cases[] = {
    {"tcgen05.mma.cta_group::1.kind::i8 [%r1],%d1,%d1,%r2,%p1;", "sm_100a", "sm_103a"},
    {"tcgen05.mma.cta_group::1.kind::i8 [%r1],%d1,%d1,%r2,%p1;", "sm_100a", "sm_100f"},
    {"tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%r1,%r2},%r3,[%r4];", "sm_103f", "sm_100a"},
    {"tcgen05.shift.cta_group::1.down [%r1];", "sm_103a", "sm_100f"},
    {"tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [%r1],%d1,%d1,%r2,[%r3],[%r4],"
     "%p1;",
     "sm_100a", "sm_100f"},
    {"tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale [%r1],%d1,%d1,[%r5],%r2,[%r3],[%r4],%p1;",
     "sm_103a", "sm_100f"},
    {"tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32 "
     "[%r1],%d1,%d1,%r2,[%r3],[%r4],%p1;",
     "sm_100f", NULL},
    {"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 "
     "[%r1],%d1,%d1,%r2,[%r3],[%r4],%p1;",
     "sm_100f", NULL},
    {"tcgen05.mma.ws.sp.cta_group::1.kind::f16.collector::b2::use [%r1],%d1,%d1,[%r2],%r3,%p1,%d2;",
     "sm_100f", NULL},
    {"tcgen05.mma.cta_group::1.kind::f16.ashift.collector::a::lastuse [%r1],[%r2],%d1,%r3,%p1,3;",
     "sm_100f", NULL},
    {"tcgen05.cp.cta_group::2.64x128b.warpx2::02_13.b8x16.b4x16_p64 [%r1],%d1;", "sm_100f", NULL},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2"
     ".multicast::cluster [%r1],[%d1,{%r2,%r3}],[%r4],%h1;",
     "sm_100a", NULL},
    {"ld.global.acquire.gpu.b32 %r1,[%d1];", "sm_100a", NULL},
    {"tcgen05.mma.cta_group::1.kind::f16.ashift [%r1],%d2,%d1,%r3,%p1;", NULL, "sm_100a"},
    {"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r1],%d1,%d1,%r2,[%r3],[%r4],%p1;", NULL,
     "sm_100a"},
};

/* What is not modelled: the kernel loads and fails to launch. */
static const char *const not_modelled[] = {
    "cvt.rs.f16x2.f32 %r1,%f1,%f2,%r2;",
    "cvt.rs.satfinite.e2m1x4.f32 %h1,{%f1,%f2,%f1,%f2},%r2;",
    "tcgen05.mma.cta_group::1.kind::f16.collector::a::hold [%r1],%d1,%d1,%r2,%p1;",
};

/* 0 when the text becomes a kernel that can run, 1 when it is not modelled, 2 when refused. */
static int decode_for(const char *target, const char *text)
{
    struct ptx_module *module = NULL;
    struct kernel *kernel = NULL;
    struct ptx_diag diag = {{0}};
    struct text t;
    int result = 2;
    FILE *f = text_open(&t);
    emit_header(f, target, ".reg .f32 %f<4>;\n");
    fprintf(f, "%s\nret;\n}\n", text);
    (void)fclose(f);
    if (!ptx_parse(t.at, strlen(t.at), &module, &diag) &&
        !kernel_decode(module, &module->entries[0], op_binders, &kernel, &diag))
        result = kernel->unsupported != NULL;
    kernel_free(kernel);
    ptx_module_free(module);
    free(t.at);
    return result;
}

void blackwell_cases(void)
{
    static const char *const reds[] = {".f32",         ".abs.f32", ".NaN.f32",
                                       ".abs.NaN.f32", ".u32",     ".s32"};
    all_forms();
    shifted_forms();
    spelled_forms();
    special_forms();
    for (size_t i = 0; i < sizeof reds / sizeof reds[0]; i++)
        for (uint32_t times = 2; times <= 128; times *= 2)
            for (uint32_t form = 0; form < 4; form++)
                if (test_case("ld.red.%s.x%u%s %s", form / 2 ? "16x32bx2" : "32x32b", times,
                              reds[i], form % 2 ? "min" : "max"))
                    test_ld_red(reds[i], form % 2, times, form / 2);
    for (enum format format = E2M3; format <= E2M1; format++)
        if (test_case("cvt to and from %s", formats[format].name)) test_narrow(format);
    for (int up = 0; up < 2; up++)
        if (test_case("cvt.%s to and from ue8m0", up ? "rp" : "rz")) test_ue8m0(up);
    for (size_t i = 0; i < sizeof target_cases / sizeof target_cases[0]; i++) {
        const struct target_case *c = &target_cases[i];
        if (!test_case("targets of %.60s", c->text)) continue;
        if (c->good) CHECK_INT(decode_for(c->good, c->text), 0);
        if (c->bad) CHECK_INT(decode_for(c->bad, c->text), 2);
    }
    for (size_t i = 0; i < sizeof not_modelled / sizeof not_modelled[0]; i++)
        if (test_case("not modelled: %.60s", not_modelled[i]))
            CHECK_INT(decode_for("sm_100a", not_modelled[i]), 1);
}
