/* tcgen05.mma and wgmma against the models of tensor_model.h, in double. */
#include "tensor_model.h"

#include "machine/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tcgen05.mma ---- */

/* tcgen05.mma with everything that varies. */
struct mma {
    uint32_t group, m, n, steps;
    enum format a, b;
    bool half_d, a_mn, b_mn, a_tmem, negate_a, negate_b, accumulate, masked;
    uint32_t swizzle_a, swizzle_b, scale;
};

static void emit_mma_kernel(FILE *f, const struct mma *c)
{
    static const char *const kinds[] = {"f16", "f16", "tf32", "f8f6f4", "f8f6f4"};
    emit_header(f, "sm_100a", "");
    emit_mma_begin(f, c->group, 256);
    for (uint32_t step = 0; step < c->steps; step++) {
        fprintf(f, "tcgen05.mma.cta_group::%u.kind::%s [%%r4],%s,%%d9,%%r22,", c->group,
                kinds[c->a], c->a_tmem ? "[%r24]" : "%d8");
        if (c->masked) emit_list(f, "%v", 0, 4 * c->group);
        fprintf(f, "%s%%p4", c->masked ? "," : "");
        if (c->scale) fprintf(f, ",%u", c->scale);
        fprintf(f, ";\nsetp.eq.u32 %%p4,%%r23,%%r23; add.u64 %%d8,%%d8,2; add.u64 %%d9,%%d9,2; "
                   "add.u32 %%r24,%%r24,8;\n");
    }
    if (c->group == 2)
        fprintf(f, "mov.b16 %%h0,3;\ntcgen05.commit.cta_group::2.mbarrier::arrive::one"
                   ".shared::cluster.multicast::cluster.b64 [bar],%%h0;\n");
    else
        fprintf(f,
                "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n");
    emit_mma_end(f, c->group);
}

/* Where element (m, n) of D lies, PTX ISA "Data Path Layout Organization". */
static void d_place(const struct mma *c, uint32_t m, uint32_t n, uint32_t *cta, uint32_t *lane,
                    uint32_t *column)
{
    *cta = 0, *lane = m, *column = n;
    if (c->group == 1 && c->m == 64) {
        *lane = m / 16 * 32 + m % 16;
    } else if (c->group == 2 && c->m == 256) {
        *cta = m / 128, *lane = m % 128;
    } else if (c->group == 2) {
        *cta = m / 64, *lane = m % 64 + n / (c->n / 2) * 64, *column = n % (c->n / 2);
    }
}

static uint32_t idesc_of(const struct mma *c)
{
    return (c->half_d ? 0U : 1U << 4) | formats[c->a].code << 7 | formats[c->b].code << 10 |
           (uint32_t)c->negate_a << 13 | (uint32_t)c->negate_b << 14 | (uint32_t)c->a_mn << 15 |
           (uint32_t)c->b_mn << 16 | c->n / 8 << 17 | c->m / 16 << 24;
}

/* Operand elements as the model sees them. */
struct model {
    const struct mma *c;
    struct smem_operand a, b;
    const uint32_t *before; /* tensor memory of both CTAs */
};

static double model_a(const struct model *s, uint32_t m, uint32_t k, uint32_t step)
{
    const struct mma *c = s->c;
    const uint32_t per = c->m / c->group, bytes = formats[c->a].bytes;
    struct smem_operand o = s->a;
    double v;
    if (c->a_tmem) {
        uint32_t cta, lane, column, word;
        uint8_t cell[4];
        d_place(c, m, 0, &cta, &lane, &column);
        word = s->before[cta * CELLS + (256 + 8 * step + k * bytes / 4) * 128 + lane];
        memcpy(cell, &word, sizeof cell);
        v = element_value(c->a, &cell[k * bytes % 4]);
    } else {
        o.start += 32 * step;
        v = element_value(c->a, &image[m / per][model_address(&o, m % per, k)]);
    }
    return c->negate_a ? -v : v;
}

static double model_b(const struct model *s, uint32_t n, uint32_t k, uint32_t step)
{
    const uint32_t cta = n * s->c->group / s->c->n;
    struct smem_operand o = s->b;
    o.start += 32 * step;
    const uint32_t row = n - cta * (s->c->n / s->c->group);
    const double v = element_value(s->c->b, &image[cta][model_address(&o, row, k)]);
    return s->c->negate_b ? -v : v;
}

static void check_mma(const struct model *s, const uint32_t *after)
{
    const struct mma *c = s->c;
    const uint32_t k_count = 32 / formats[c->a].bytes;
    static uint8_t written[2 * CELLS];
    memset(written, 0, sizeof written);
    for (uint32_t m = 0; m < c->m; m++) {
        for (uint32_t n = 0; n < c->n; n++) {
            uint32_t cta, lane, column;
            d_place(c, m, n, &cta, &lane, &column);
            const uint32_t at = cta * CELLS + column * 128 + lane;
            const uint32_t word = 0x11U << (cta * 4 + lane / 32);
            if (c->masked && word >> lane % 32 & 1U) continue;
            double want = c->accumulate ? cell_value(s->before[at], c->half_d) : 0;
            double magnitude = fabs(want);
            if (c->accumulate) want = ldexp(want, -(int)c->scale);
            for (uint32_t i = 0; i < c->steps * k_count; i++) {
                const double product = model_a(s, m, i % k_count, i / k_count) *
                                       model_b(s, n, i % k_count, i / k_count);
                want += product;
                magnitude += fabs(product);
            }
            const double got = cell_value(after[at], c->half_d);
            CHECK(close_enough(got, want, magnitude, c->steps * k_count, 24, c->half_d),
                  "D(%u,%u): want %g got %g", m, n, want, got);
            written[at] = 1;
        }
    }
    for (uint32_t i = 0; i < c->group * CELLS; i++)
        if (!written[i])
            CHECK(after[i] == s->before[i], "CTA %u column %u lane %u must stay", i / CELLS,
                  i % CELLS / 128, i % 128);
}

static void test_mma(const struct mma *c)
{
    const uint64_t before = device_buffer(2 * CELLS * 4), after = device_buffer(2 * CELLS * 4);
    const uint64_t images = device_buffer(2 * IMAGE);
    uint32_t *cells = host(before);
    struct text t;
    struct model s = {.c = c, .before = cells};
    s.a = random_operand(c->swizzle_a, c->a_mn, c->a, A_START);
    s.b = random_operand(c->swizzle_b, c->b_mn, c->b, B_START);
    fill_image(c->a, c->b);
    for (uint32_t i = 0; i < 2; i++)
        memcpy((uint8_t *)host(images) + i * IMAGE, image[i] + 2048, IMAGE - 2048);
    for (uint32_t i = 0; i < 2 * CELLS; i++) {
        const float f = rng_unit(&rng);
        if (i % CELLS / 128 >= 256 && c->a_tmem)
            for (uint32_t j = 0; j < 4; j += formats[c->a].bytes)
                random_element(c->a, (uint8_t *)&cells[i] + j);
        else if (c->half_d)
            cells[i] = double_to_f16((double)f);
        else
            memcpy(&cells[i], &f, sizeof f);
    }
    if (c->group == 2 && c->m == 128 &&
        c->a_tmem) /* both halves of the lanes hold the CTA's rows */
        for (uint32_t i = 0; i < 2 * CELLS; i++)
            if (i % CELLS / 128 >= 256 && i % 128 >= 64) cells[i] = cells[i - 64];
    FILE *f = text_open(&t);
    emit_mma_kernel(f, c);
    (void)fclose(f);
    const struct run r = {"b200",
                          c->group,
                          128,
                          IMAGE - 2048,
                          {before, after, images, descriptor(&s.a, true), descriptor(&s.b, true),
                           idesc_of(c), c->accumulate},
                          0};
    char findings[2048];
    CHECK_INT(run_ptx(t.at, &r, findings, sizeof findings), 0);
    CHECK(strstr(findings, "\"verdict\":\"clean\""), "verdict: %s", findings);
    if (!test_case_failures()) check_mma(&s, host(after));
    free(t.at);
    (void)mem_free(before);
    (void)mem_free(after);
    (void)mem_free(images);
}

/* Types, operands in tensor memory, signs, masks: 16 mixes for each M. */
static void mma_variants(const struct mma *base)
{
    struct mma c;
    for (uint32_t group = 1; group <= 2; group++) {
        for (uint32_t m = 64 * group; m <= 128 * group; m += 64 * group) {
            for (uint32_t v = 0; v < 16; v++) {
                c = *base;
                c.group = group;
                c.m = m;
                c.n = v % 3 == 0 ? 256 : 16 * (1 + rng_below(&rng, 15));
                c.a = c.b = v & 1U ? F16 : BF16;
                c.half_d = v & 1U && v & 2U;
                c.a_tmem = v & 4U;
                c.accumulate = v & 8U;
                c.b_mn = v & 2U;
                c.a_mn = !c.a_tmem && v & 8U;
                c.swizzle_a = rng_below(&rng, 4);
                c.swizzle_b = rng_below(&rng, 4);
                c.negate_a = v == 3 || v == 7 || v == 8;
                c.negate_b = v == 5 || v == 8;
                c.masked = v >= 12 || v == 6;
                c.scale = c.accumulate ? v - 8 : 0;
                if (test_case("mma pair-size %u M %u variant %u", group, m, v)) test_mma(&c);
            }
        }
    }
}

void mma_cases(void)
{
    static const struct mma base = {.group = 1,
                                    .m = 128,
                                    .n = 64,
                                    .steps = 1,
                                    .a = BF16,
                                    .b = BF16,
                                    .swizzle_a = 3,
                                    .swizzle_b = 3};
    struct mma c = base;
    for (c.n = 8; c.n <= 256; c.n += 8)
        if (test_case("mma 128x%ux16 bf16", c.n)) test_mma(&c);
    for (c.n = 16, c.group = 2, c.m = 256; c.n <= 256; c.n += 48)
        if (test_case("mma 256x%ux16 pair", c.n)) test_mma(&c);
    mma_variants(&base);
    for (uint32_t mn = 0; mn < 4; mn++) {
        for (uint32_t swizzle = 0; swizzle < 4; swizzle++) {
            c = base;
            c.a_mn = mn & 1U;
            c.b_mn = mn & 2U;
            c.swizzle_a = swizzle;
            c.swizzle_b = 3 - swizzle;
            if (test_case("mma major %u swizzle %u", mn, swizzle)) test_mma(&c);
            c.a = c.b = E4M3;
            c.b = swizzle & 1U ? E5M2 : E4M3;
            c.half_d = swizzle & 2U;
            if (test_case("mma f8 major %u swizzle %u", mn, swizzle)) test_mma(&c);
            c.a = c.b = TF32;
            c.half_d = false;
            if (c.a_mn) c.swizzle_a = 4;
            if (c.b_mn) c.swizzle_b = 4;
            if (test_case("mma tf32 major %u swizzle %u", mn, swizzle)) test_mma(&c);
        }
    }
    c = base;
    c.steps = 4;
    c.n = 96;
    if (test_case("mma four k-steps")) test_mma(&c);
    c.a_tmem = c.accumulate = true;
    if (test_case("mma four k-steps, A in tensor memory")) test_mma(&c);
    c.a = c.b = E5M2;
    if (test_case("mma f8, A in tensor memory")) test_mma(&c);
}

/* ---- wgmma ---- */

struct wgmma {
    uint32_t n;
    enum format a, b;
    bool half_d, a_regs, a_mn, b_mn, accumulate;
    int scale_a, scale_b;
    uint32_t swizzle_a, swizzle_b;
};

static void emit_wgmma_kernel(FILE *f, const struct wgmma *c, uint32_t regs)
{
    const uint32_t k_count = 32 / formats[c->a].bytes;
    emit_header(f, "sm_90a", "");
    fprintf(f, "mov.u32 %%r0,%%tid.x; ld.param.u64 %%d4,[p2];\n");
    emit_fill(f, 128);
    fprintf(f,
            "bar.sync 0;\nld.param.u64 %%d0,[p0]; mul.wide.u32 %%d1,%%r0,%u;\n"
            "add.u64 %%d0,%%d0,%%d1;\n",
            (regs + 4) * 4);
    for (uint32_t i = 0; i < regs + 4; i++)
        fprintf(f, "ld.global.b32 %%v%u,[%%d0+%u];\n", i, i * 4);
    fprintf(f,
            "ld.param.u64 %%d8,[p3]; ld.param.u64 %%d9,[p4]; ld.param.u32 %%r23,[p6];\n"
            "setp.ne.u32 %%p4,%%r23,0;\nwgmma.fence.sync.aligned;\n"
            "wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s ",
            c->n, k_count, c->half_d ? "f16" : "f32", formats[c->a].name, formats[c->b].name);
    emit_list(f, "%v", 0, regs);
    fprintf(f, ",");
    if (c->a_regs)
        emit_list(f, "%v", regs, 4);
    else
        fprintf(f, "%%d8");
    fprintf(f, ",%%d9,%%p4,%d,%d", c->scale_a, c->scale_b);
    if (formats[c->a].bytes == 2 && !c->a_regs) fprintf(f, ",%d", c->a_mn);
    if (formats[c->a].bytes == 2) fprintf(f, ",%d", c->b_mn);
    fprintf(f,
            ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
            "ld.param.u64 %%d0,[p1]; mul.wide.u32 %%d1,%%r0,%u; add.u64 %%d0,%%d0,%%d1;\n",
            regs * 4);
    for (uint32_t i = 0; i < regs; i++) fprintf(f, "st.global.b32 [%%d0+%u],%%v%u;\n", i * 4, i);
    fprintf(f, "ret;\n}\n");
}

/* Thread and element of (row, column) of an accumulator: "Register Fragments for wgmma". */
static void d_fragment(uint32_t m, uint32_t n, uint32_t *thread, uint32_t *i)
{
    *thread = m / 16 * 32 + m % 8 * 4 + n % 8 / 2;
    *i = n / 8 * 4 + m % 16 / 8 * 2 + n % 2;
}

/* Element (m, k) of A in registers: 32-bit pieces of a row go to the four threads of its quad. */
static double a_register(const struct wgmma *c, const uint32_t *in, uint32_t regs, uint32_t m,
                         uint32_t k)
{
    const uint32_t bytes = formats[c->a].bytes, piece = k * bytes / 4;
    const uint32_t thread = m / 16 * 32 + m % 8 * 4 + piece % 4;
    const uint32_t reg = m % 16 / 8 + piece / 4 * 2;
    uint8_t word[4];
    memcpy(word, &in[thread * (regs + 4) + regs + reg], sizeof word);
    return element_value(c->a, &word[k * bytes % 4]);
}

static void check_wgmma(const struct wgmma *c, const struct smem_operand *a,
                        const struct smem_operand *b, const uint32_t *in, const uint32_t *out)
{
    const uint32_t k_count = 32 / formats[c->a].bytes, regs = c->n / (c->half_d ? 4 : 2);
    for (uint32_t m = 0; m < 64; m++) {
        for (uint32_t n = 0; n < c->n; n++) {
            uint32_t thread, i;
            d_fragment(m, n, &thread, &i);
            const uint32_t reg = c->half_d ? i / 2 : i, shift = c->half_d ? i % 2 * 16 : 0;
            double want =
                c->accumulate ? cell_value(in[thread * (regs + 4) + reg] >> shift, c->half_d) : 0;
            double magnitude = fabs(want);
            for (uint32_t k = 0; k < k_count; k++) {
                const double x = c->a_regs ? a_register(c, in, regs, m, k)
                                           : element_value(c->a, &image[0][model_address(a, m, k)]);
                const double y = element_value(c->b, &image[0][model_address(b, n, k)]);
                want += x * y * c->scale_a * c->scale_b;
                magnitude += fabs(x * y);
            }
            const double got = cell_value(out[thread * regs + reg] >> shift, c->half_d);
            const int bits = formats[c->a].bytes == 1 ? 13 : 24;
            CHECK(close_enough(got, want, magnitude, k_count, bits, c->half_d),
                  "D(%u,%u): want %g got %g", m, n, want, got);
        }
    }
}

static void test_wgmma(const struct wgmma *c)
{
    const uint32_t regs = c->n / (c->half_d ? 4 : 2), count = 128 * (regs + 4);
    const uint64_t in = device_buffer(count * 4), out = device_buffer(128 * regs * 4);
    const uint64_t images = device_buffer(IMAGE);
    const struct smem_operand a = random_operand(c->swizzle_a, c->a_mn, c->a, A_START);
    const struct smem_operand b = random_operand(c->swizzle_b, c->b_mn, c->b, B_START);
    uint32_t *words = host(in);
    char findings[2048];
    struct text t;
    fill_image(c->a, c->b);
    memcpy(host(images), image[0] + 2048, IMAGE - 2048);
    for (uint32_t i = 0; i < count; i++) {
        const enum format format = i % (regs + 4) >= regs ? c->a : c->half_d ? F16 : TF32;
        for (uint32_t j = 0; j < 4; j += formats[format].bytes)
            random_element(format, (uint8_t *)&words[i] + j);
    }
    FILE *f = text_open(&t);
    emit_wgmma_kernel(f, c, regs);
    (void)fclose(f);
    const struct run r = {"h200",
                          1,
                          128,
                          IMAGE - 2048,
                          {in, out, images, descriptor(&a, false), descriptor(&b, false), 0,
                           c->accumulate},
                          0};
    CHECK_INT(run_ptx(t.at, &r, findings, sizeof findings), 0);
    CHECK(strstr(findings, "\"verdict\":\"clean\""), "verdict: %s", findings);
    if (!test_case_failures()) check_wgmma(c, &a, &b, words, host(out));
    free(t.at);
    (void)mem_free(in);
    (void)mem_free(out);
    (void)mem_free(images);
}

void wgmma_cases(void)
{
    for (uint32_t n = 8; n <= 256; n += 8) {
        for (uint32_t v = 0; v < 2; v++) {
            const bool half = rng_below(&rng, 2);
            struct wgmma c = {.n = n,
                              .scale_a = rng_below(&rng, 4) ? 1 : -1,
                              .scale_b = rng_below(&rng, 4) ? 1 : -1};
            c.a = c.b = half ? F16 : BF16;
            c.half_d = half && rng_below(&rng, 2);
            c.a_regs = v;
            c.accumulate = rng_below(&rng, 2);
            c.a_mn = rng_below(&rng, 2);
            c.b_mn = rng_below(&rng, 2);
            c.swizzle_a = rng_below(&rng, 4);
            c.swizzle_b = rng_below(&rng, 4);
            if (test_case("wgmma n%u %s %s", n, formats[c.a].name,
                          v ? "A in registers" : "A shared"))
                test_wgmma(&c);
        }
    }
    for (uint32_t v = 0; v < 32; v++) {
        struct wgmma c = {.n = 8 * (1 + rng_below(&rng, 32)), .scale_a = 1, .scale_b = 1};
        c.a = v & 1U ? TF32 : v & 2U ? E4M3 : E5M2;
        c.b = v & 1U ? TF32 : v & 4U ? E4M3 : E5M2;
        c.half_d = !(v & 1U) && v & 8U;
        c.a_regs = v & 16U;
        c.accumulate = v & 4U;
        c.swizzle_a = rng_below(&rng, 4);
        c.swizzle_b = rng_below(&rng, 4);
        if (test_case("wgmma n%u %s variant %u", c.n, formats[c.a].name, v)) test_wgmma(&c);
    }
}
