/*
 * What tcgen05 has beyond the kinds of sim_tensor_mma.c, against scalar models in double written from the
 * tables of the PTX ISA: every kind with dense and sparse A from shared or tensor memory, block scales,
 * .ws, .ashift, data-path layouts A to G; cp that decompresses, shift, ld.red, narrow conversions.
 */
#include "tensor_model.h"

#include "mem.h"

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
};

static bool scaled(const struct form *c)
{
    return c->kind >= MXF8;
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
    const char *usage = usages[rng_below(&rng, c->a_shift ? 2 : 4)];
    if (c->ws)
        fprintf(f, ".collector::b%u::%s", rng_below(&rng, 4), usage);
    else if (rng_below(&rng, 2))
        fprintf(f, ".collector::a::%s", usage);
}

static void emit_instruction(FILE *f, const struct form *c)
{
    static const char *const vectors[] = {"", "1X", "2X", "2X", "4X", "", "4X"};
    static const char *const blocks[] = {"",        "block32", "block32", "block32",
                                         "block16", "",        "block16"};
    const bool by_count = rng_below(&rng, 2);
    fprintf(f, "tcgen05.mma%s%s.cta_group::%u.kind::%s", c->ws ? ".ws" : "", c->sparse ? ".sp" : "",
            c->group, kind_names[c->kind]);
    if (scaled(c))
        fprintf(f, ".block_scale%s%s", by_count ? ".scale_vec::" : ".",
                (by_count ? vectors : blocks)[c->vectors]);
    if (c->a_shift) fprintf(f, ".ashift");
    emit_collector(f, c);
    fprintf(f, " [%%r4],%s,%%d9,", c->a_tmem ? "[%r24]" : "%d8");
    if (c->sparse) fprintf(f, "[%%r4+%d],", COL_META);
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
    emit_mma_begin(f, c->group, COL_A);
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
};

struct place {
    uint32_t cta, lane, column;
};

/* "Data Path Layout Organization", figure by figure. */
static struct place d_place(const struct form *c, uint32_t m, uint32_t n)
{
    const uint32_t quarter = n / (c->n / 4), half = n / (c->n / 2);
    if (c->group == 2 && c->m == 256) return (struct place){m / 128, m % 128, n}; /* A */
    if (c->group == 2 && c->sparse)                                               /* C */
        return (struct place){m / 64, m % 64 / 16 * 32 + m % 16, n};
    if (c->group == 2) return (struct place){m / 64, m % 64 + 64 * half, n % (c->n / 2)}; /* B */
    if (c->m == 128) return (struct place){0, m, n};                                      /* D */
    if (c->ws && c->m == 64) return (struct place){0, m + 64 * half, n % (c->n / 2)};     /* E */
    if (c->ws) return (struct place){0, m + 32 * quarter, n % (c->n / 4)};                /* G */
    return (struct place){0, m / 16 * 32 + m % 16, n};                                    /* F */
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

/* The product of the scale factors that apply to stored element i. */
static double scale_of(const struct model *s, struct place d, uint32_t m, uint32_t n, uint32_t i)
{
    const struct form *c = s->c;
    const uint32_t j = i * c->vectors / stored_count(c), rows = c->m / c->group;
    const bool halves = c->group == 2 && c->m == 128;
    const uint32_t columns = halves ? c->n / 2 : c->n;
    if (!scaled(c)) return 1;
    return factor(s, d.cta, COL_SFA, rows, m % rows, 0, c->sfa_id + j) *
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

static void check_element(const struct model *s, uint32_t m, uint32_t n, struct place d,
                          uint32_t got)
{
    const struct form *c = s->c;
    const uint32_t count = stored_count(c), old = cell(s, d.cta, d.column, d.lane);
    double sum = 0, magnitude = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double product =
            stored_a(s, d, m, i) * b_value(s, n, logical_k(s, d, i)) * scale_of(s, d, m, n, i);
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

static void check_form(const struct model *s, const uint32_t *after)
{
    const struct form *c = s->c;
    static uint8_t written[2 * CELLS];
    memset(written, 0, sizeof written);
    for (uint32_t m = 0; m < c->m; m++) {
        for (uint32_t n = 0; n < c->n; n++) {
            const struct place d = d_place(c, m, n);
            const uint32_t at = d.cta * CELLS + d.column * 128 + d.lane;
            if (c->masked && (0x11U << (d.cta * 4 + d.lane / 32)) >> d.lane % 32 & 1U) continue;
            check_element(s, m, n, d, after[at]);
            written[at] = 1;
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

static enum format pick_format(enum kind kind)
{
    static const enum format f8f6f4[] = {E4M3, E5M2, E2M3, E3M2, E2M1};
    switch (kind) {
    case FP16: return BF16;
    case FP32: return TF32;
    case INT8: return rng_below(&rng, 2) ? U8 : S8;
    case MXF4:
    case NVF4: return E2M1X2;
    default: return f8f6f4[rng_below(&rng, 5)];
    }
}

static bool plain_bytes(enum format format)
{
    return format <= E5M2 || format == U8 || format == S8;
}

/* Fills in what does not matter to the shape. */
static void vary(struct form *c)
{
    c->a = pick_format(c->kind);
    c->b = c->kind == FP16 ? c->a : pick_format(c->kind);
    c->a_mn = !c->a_tmem && plain_bytes(c->a) && rng_below(&rng, 2);
    c->b_mn = plain_bytes(c->b) && c->n % 32 == 0 && rng_below(&rng, 2);
    c->swizzle_a = c->a == TF32 && c->a_mn ? 4 : rng_below(&rng, 4);
    do /* a K-major row of sparse B takes 64 bytes */
        c->swizzle_b = c->b == TF32 && c->b_mn ? 4 : rng_below(&rng, 4);
    while (c->sparse && !c->b_mn && c->swizzle_b == 1);
    c->accumulate = rng_below(&rng, 2);
    c->negate_a = c->kind != INT8 && rng_below(&rng, 4) == 0;
    c->negate_b = c->kind != INT8 && rng_below(&rng, 4) == 0;
    c->saturate = c->kind == INT8 && rng_below(&rng, 2);
    c->half_d = c->kind == FP8 && rng_below(&rng, 3) == 0;
    c->masked = !c->ws && !scaled(c) && rng_below(&rng, 3) == 0;
    c->selector = c->sparse && (c->kind == FP16 || c->kind == FP32) ? rng_below(&rng, 2) : 0;
    if (c->vectors == 1 || c->vectors == 3) {
        c->sfa_id = rng_below(&rng, 4);
        c->sfb_id = rng_below(&rng, 4);
    } else if (c->vectors == 2 || c->vectors == 6) {
        c->sfa_id = 2 * rng_below(&rng, 2);
        c->sfb_id = 2 * rng_below(&rng, 2);
    }
    if (c->vectors == 3 || c->vectors == 6) c->swizzle_a = c->swizzle_b = 3;
    c->ue4m3 = (c->vectors == 4 || c->vectors == 6) && rng_below(&rng, 2);
}

static void run_form(struct form c)
{
    vary(&c);
    if (test_case("tcgen05.mma%s%s %ux%u kind %s, A %s in %s, B %s, pair-size %u, %u vectors",
                  c.ws ? ".ws" : "", c.sparse ? ".sp" : "", c.m, c.n, kind_names[c.kind],
                  formats[c.a].name, c.a_tmem ? "tensor memory" : "shared memory",
                  formats[c.b].name, c.group, c.vectors))
        test_form(&c);
}

static void plain_forms(void)
{
    for (enum kind kind = FP16; kind <= INT8; kind++)
        for (uint32_t group = 1; group <= 2; group++)
            for (uint32_t m = 64 * group; m <= 128 * group; m += 64 * group)
                for (uint32_t v = 0; v < 4; v++)
                    run_form((struct form){.kind = kind,
                                           .group = group,
                                           .m = m,
                                           .n = 32 * (1 + rng_below(&rng, v ? 4 : 8)),
                                           .sparse = v & 1U,
                                           .a_tmem = v & 2U});
}

static void scaled_forms(void)
{
    static const struct {
        enum kind kind;
        uint32_t vectors;
    } sizes[] = {{MXF8, 1}, {MXF4, 2}, {NVF4, 2}, {NVF4, 4}, {MXF4, 3}, {NVF4, 3}, {NVF4, 6}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint32_t group = 1; group <= 2; group++)
            for (uint32_t m = 128; m <= 128 * group; m += 128)
                for (uint32_t v = 0; v < 4; v++) {
                    struct form c = {.kind = sizes[i].kind,
                                     .vectors = sizes[i].vectors,
                                     .group = group,
                                     .m = m,
                                     .n = 16 * (1 + rng_below(&rng, v ? 8 : 16)),
                                     .sparse = v & 1U,
                                     .a_tmem = v & 2U};
                    const bool k96 = c.vectors == 3 || c.vectors == 6;
                    if (!(c.sparse && (k96 || m < 128 * group))) run_form(c);
                }
}

static void ws_forms(void)
{
    for (enum kind kind = FP16; kind <= INT8; kind++)
        for (uint32_t m = 32; m <= 128; m *= 2)
            for (uint32_t v = 0; v < 4; v++) {
                struct form c = {.kind = kind,
                                 .group = 1,
                                 .m = m,
                                 .n = v == 2 ? 256 : 64U << rng_below(&rng, 2),
                                 .ws = true,
                                 .sparse = v & 1U,
                                 .a_tmem = v & 2U,
                                 .zeroing = rng_below(&rng, 4) != 0};
                if (c.zeroing) {
                    c.zero_mask = (rng_next(&rng) & 0xFFFFFFFULL << 8) | 1ULL << 39 |
                                  (rng_next(&rng) & 0x1F1FULL << 40);
                    c.zero_mask &= ~(7ULL << 36);
                    c.b_shift = rng_below(&rng, m == 32 ? 17 : 33);
                }
                run_form(c);
            }
}

/* ---- cp, shift, ld.red ---- */

static const char single_thread[] = "setp.ne.u32 %p3,%r0,0; @%p3 bra L1; mbarrier.init.shared.b64 "
                                    "[bar],1;\nL1: bar.sync 0; @%p3 bra L2;\n";
static const char completion[] =
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [bar];\n"
    "L2: mbarrier.try_wait.parity.shared.b64 %p5,[bar],0; @!%p5 bra L2;\n"
    "tcgen05.fence::after_thread_sync; ld.param.u64 %d0,[p1];\n";

static void test_cp_unpack(const char *shape, uint32_t rows, uint32_t units, enum format format)
{
    const uint64_t out = device_buffer(CELLS * 4), images = device_buffer(IMAGE);
    const struct smem_operand o = random_operand(rng_below(&rng, 4), false, E4M3, A_START);
    const uint32_t *after = host(out);
    struct text t;
    FILE *f = text_open(&t);
    fill_image(U8, U8);
    memcpy(host(images), image[0] + 2048, IMAGE - 2048);
    emit_header(f, "sm_100f", "");
    emit_tmem_open(f, 1);
    fprintf(f, "ld.param.u64 %%d4,[p2];\n");
    emit_fill(f, 128);
    fprintf(f, "%sld.param.u64 %%d8,[p3]; tcgen05.cp.cta_group::1.%s.b8x16.%s [%%r4],%%d8;\n%s",
            single_thread, shape, format == E2M1 ? "b4x16_p64" : "b6x16_p32", completion);
    emit_columns(f, false, 512, "LB");
    emit_tmem_close(f, 1);
    (void)fclose(f);
    const struct run r = {"b200", 1, 128, IMAGE - 2048, {0, out, images, descriptor(&o, true)}, 0};
    CHECK_INT(run_ptx(t.at, &r, NULL, 0), 0);
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t k = 0; k < 16 * units; k++) {
            const uint8_t byte = (uint8_t)(after[k / 4 * 128 + row] >> 8 * (k % 4));
            CHECK(element_value(format, &byte) == model_element(&o, format, image[0], row, k) &&
                      !(byte & (format == E2M1 ? 0xC3U : 0xC0U)),
                  "row %u element %u: %02x", row, k, byte);
        }
    free(t.at);
    (void)mem_free(out);
    (void)mem_free(images);
}

static void test_shift(void)
{
    const uint64_t in = device_buffer(CELLS * 4), out = device_buffer(CELLS * 4);
    uint32_t *before = host(in);
    const uint32_t *after = host(out);
    struct text t;
    FILE *f = text_open(&t);
    for (uint32_t i = 0; i < CELLS; i++) before[i] = (uint32_t)rng_next(&rng);
    emit_header(f, "sm_100a", "");
    emit_tmem_open(f, 1);
    fprintf(f, "ld.param.u64 %%d0,[p0];\n");
    emit_columns(f, true, 512, "LA");
    fprintf(f,
            "tcgen05.fence::before_thread_sync; %stcgen05.fence::after_thread_sync;\n"
            "tcgen05.shift.cta_group::1.down [%%r4+16];\n%s",
            single_thread, completion);
    emit_columns(f, false, 512, "LB");
    emit_tmem_close(f, 1);
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"b200", 1, 128, 0, {in, out}, 0}, NULL, 0), 0);
    for (uint32_t i = 0; i < CELLS; i++) {
        const bool moves = i / 128 >= 16 && i / 128 < 24 && i % 32 != 31;
        CHECK(after[i] == before[i + moves], "column %u lane %u", i / 128, i % 128);
    }
    free(t.at);
    (void)mem_free(in);
    (void)mem_free(out);
}

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
        !kernel_decode(module, &module->entries[0], &kernel, &diag))
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
    plain_forms();
    scaled_forms();
    ws_forms();
    for (uint32_t group = 1; group <= 2; group++) {
        const struct form c = {.kind = FP8,
                               .group = group,
                               .m = 128 * group,
                               .n = 64,
                               .a = E4M3,
                               .b = E5M2,
                               .a_tmem = true,
                               .swizzle_b = 3,
                               .a_shift = true};
        static const struct {
            enum kind kind;
            enum format a, b;
        } shifted[] = {{FP16, BF16, BF16}, {FP32, TF32, TF32}, {FP8, E3M2, E4M3}, {INT8, S8, U8}};
        for (size_t i = 0; i < sizeof shifted / sizeof shifted[0]; i++) {
            struct form kind = c;
            kind.kind = shifted[i].kind;
            kind.a = shifted[i].a;
            kind.b = shifted[i].b;
            if (test_case("tcgen05.mma.ashift of %s, pair-size %u", kind_names[kind.kind], group))
                test_form(&kind);
        }
        struct form special = c;
        special.a_shift = special.a_tmem = false;
        special.sparse = special.specials = true;
        if (test_case("tcgen05.mma.ashift, pair-size %u", group)) test_form(&c);
        if (test_case("tcgen05.mma.sp beside infinities, pair-size %u", group)) test_form(&special);
    }
    for (int six = 0; six < 2; six++) {
        if (test_case("cp 128x256b of %d-bit codes", six ? 6 : 4))
            test_cp_unpack("128x256b", 128, 2, six ? E3M2 : E2M1);
        if (test_case("cp 32x128b.warpx4 of %d-bit codes", six ? 6 : 4))
            test_cp_unpack("32x128b.warpx4", 32, 1, six ? E2M3 : E2M1);
    }
    if (test_case("tcgen05.shift")) test_shift();
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
