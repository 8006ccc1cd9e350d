/*
 * tcgen05.mma and mma.sync on a simulated B200, word by word: against the published model of its sums
 * (mma_words.c) with random and adversarial operands, and against words that a B200 gave, where
 * HEWN_B200_VECTORS names a directory with them (tests/others/others.md says which, and how it is made):
 *
 *   B200/<type>/{a,b,c,d}_B200_<type>.txt   as in MATLAB-tensor-core/model_validation (arXiv 2512.07004)
 *   words.txt                               "form a… b… c sa… sb… d", one word a line, all in hex
 *
 * A launch multiplies 128 rows by 128 columns and uses the diagonal: 128 independent sums.
 */
#include "mma_words.h"
#include "tensor_model.h"

#include "machine/mem.h"

#include <stdlib.h>
#include <string.h>

enum {
    SUMS = 128, /* of one CTA */
    TILE =
        SUMS * 32, /* bytes of an operand: K chunks of 16 bytes, 2048 apart; 8 rows of 16 bytes */
    WORDS_AT = 2 * TILE,
    BATCH = WORDS_AT + 3 * SUMS * 4, /* A, B, then C and both scale words of each sum */
    CASES = 4096
};

static const struct word_form forms[] = {
    {"f16", "f16", WR_PLAIN, WF_F16, WF_F16, 16, 0, false, false},
    {"f16 to f16", "f16", WR_PLAIN, WF_F16, WF_F16, 16, 0, true, false},
    {"bf16", "f16", WR_PLAIN, WF_BF16, WF_BF16, 16, 0, false, false},
    {"tf32", "tf32", WR_PLAIN, WF_TF32, WF_TF32, 8, 0, false, false},
    {"e4m3", "f8f6f4", WR_PLAIN, WF_E4M3, WF_E4M3, 32, 0, false, false},
    {"e5m2", "f8f6f4", WR_PLAIN, WF_E5M2, WF_E5M2, 32, 0, false, false},
    {"e2m3", "f8f6f4", WR_PLAIN, WF_E2M3, WF_E2M3, 32, 0, false, false},
    {"e3m2", "f8f6f4", WR_PLAIN, WF_E3M2, WF_E3M2, 32, 0, false, false},
    {"e2m1", "f8f6f4", WR_PLAIN, WF_E2M1, WF_E2M1, 32, 0, false, false},
    {"e4m3 e2m1", "f8f6f4", WR_PLAIN, WF_E4M3, WF_E2M1, 32, 0, false, false},
    {"e3m2 e5m2", "f8f6f4", WR_PLAIN, WF_E3M2, WF_E5M2, 32, 0, false, false},
    {"e2m1 e4m3 to f16", "f8f6f4", WR_PLAIN, WF_E2M1, WF_E4M3, 32, 0, true, false},
    {"e4m3 to f16", "f8f6f4", WR_PLAIN, WF_E4M3, WF_E4M3, 32, 0, true, false},
    {"e5m2 to f16", "f8f6f4", WR_PLAIN, WF_E5M2, WF_E5M2, 32, 0, true, false},
    {"u8 u8", "i8", WR_INTEGER, WF_U8, WF_U8, 32, 0, false, false},
    {"s8 u8", "i8", WR_INTEGER, WF_S8, WF_U8, 32, 0, false, false},
    {"u8 s8", "i8", WR_INTEGER, WF_U8, WF_S8, 32, 0, false, false},
    {"s8 s8", "i8", WR_INTEGER, WF_S8, WF_S8, 32, 0, false, false},
    {"u8 u8 sat", "i8", WR_INTEGER, WF_U8, WF_U8, 32, 0, false, true},
    {"s8 u8 sat", "i8", WR_INTEGER, WF_S8, WF_U8, 32, 0, false, true},
    {"u8 s8 sat", "i8", WR_INTEGER, WF_U8, WF_S8, 32, 0, false, true},
    {"s8 s8 sat", "i8", WR_INTEGER, WF_S8, WF_S8, 32, 0, false, true},
    {"mxf8f6f4 e4m3", "mxf8f6f4", WR_MX8, WF_E4M3, WF_E4M3, 32, 1, false, false},
    {"mxf8f6f4 e5m2", "mxf8f6f4", WR_MX8, WF_E5M2, WF_E5M2, 32, 1, false, false},
    {"mxf8f6f4 e2m3", "mxf8f6f4", WR_MX8, WF_E2M3, WF_E2M3, 32, 1, false, false},
    {"mxf8f6f4 e3m2", "mxf8f6f4", WR_MX8, WF_E3M2, WF_E3M2, 32, 1, false, false},
    {"mxf8f6f4 e2m1", "mxf8f6f4", WR_MX8, WF_E2M1, WF_E2M1, 32, 1, false, false},
    {"mxf8f6f4 e2m1 e5m2", "mxf8f6f4", WR_MX8, WF_E2M1, WF_E5M2, 32, 1, false, false},
    {"mxf4 2X", "mxf4", WR_MX4, WF_E2M1, WF_E2M1, 64, 2, false, false},
    {"mxf4nvf4 2X", "mxf4nvf4", WR_MX4, WF_E2M1, WF_E2M1, 64, 2, false, false},
    {"mxf4nvf4 4X", "mxf4nvf4", WR_MX4, WF_E2M1, WF_E2M1, 64, 4, false, false},
    {"nvfp4 4X ue4m3", "mxf4nvf4", WR_NV4, WF_E2M1, WF_E2M1, 64, 4, false, false},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

/* ---- tcgen05.mma ---- */

static uint32_t type_code(const struct word_form *f, enum word_format format)
{
    static const uint32_t codes[] = {
        [WF_F16] = 0,  [WF_BF16] = 1, [WF_TF32] = 2, [WF_E4M3] = 0, [WF_E5M2] = 1,
        [WF_E2M3] = 3, [WF_E3M2] = 4, [WF_E2M1] = 5, [WF_U8] = 0,   [WF_S8] = 1};
    return f->k == 64 ? 1 : codes[format];
}

/* PTX ISA "Instruction descriptor"; M 128, N 128. */
static uint32_t instruction_descriptor(const struct word_form *f)
{
    const uint32_t common =
        type_code(f, f->a) << 7 | type_code(f, f->b) << 10 | (uint32_t)SUMS / 8 << 17;
    if (f->scales) return common | (uint32_t)(f->rule != WR_NV4) << 23 | 1U << 27;
    return common | (uint32_t)f->saturate << 3 | (uint32_t)SUMS / 16 << 24 |
           (f->rule == WR_INTEGER ? 2U
            : f->half_d           ? 0U
                                  : 1U)
               << 4;
}

static void emit_mma(FILE *f, const struct word_form *form)
{
    static const char *const vectors[] = {"", "1X", "2X", "", "4X"};
    fprintf(f, "tcgen05.mma.cta_group::1.kind::%s", form->kind);
    if (form->scales) fprintf(f, ".block_scale.scale_vec::%s", vectors[form->scales]);
    fprintf(f, " [%%r4],%%d8,%%d9,%%r20,");
    if (form->scales) fprintf(f, "[%%r21],[%%r22],");
    fprintf(f, "%%p4;\n");
}

/* p0: batches of BATCH bytes, one a CTA; p1: SUMS words a CTA; p2: instruction descriptor. */
static void emit_kernel(FILE *f, const struct word_form *form)
{
    emit_header(f, "sm_100a", "");
    emit_tmem_open(f, 1);
    fprintf(f,
            "mov.u32 %%r5,%%ctaid.x; ld.param.u64 %%d0,[p0]; mad.wide.u32 %%d0,%%r5,%d,%%d0;\n"
            "mov.u32 %%r6,smem; mov.u32 %%r7,%%r0;\n"
            "LC: mad.wide.u32 %%d1,%%r7,16,%%d0; ld.global.v4.b32 {%%v0,%%v1,%%v2,%%v3},[%%d1];\n"
            "mad.lo.u32 %%r8,%%r7,16,%%r6; st.shared.v4.b32 [%%r8],{%%v0,%%v1,%%v2,%%v3};\n"
            "add.u32 %%r7,%%r7,128; setp.lt.u32 %%p1,%%r7,%d; @%%p1 bra LC;\n"
            "fence.proxy.async.shared::cta;\n",
            BATCH, WORDS_AT / 16);
    fprintf(f, /* C in every column; scale words of row 32c + lane in column c of both */
            "mad.wide.u32 %%d1,%%r0,4,%%d0; ld.global.b32 %%v0,[%%d1+%d];\n"
            "mad.wide.u32 %%d1,%%r2,4,%%d0;\n",
            WORDS_AT);
    for (uint32_t c = 0; c < 8; c++)
        fprintf(f, "ld.global.b32 %%v%u,[%%d1+%u];\n", 1 + c, WORDS_AT + SUMS * 4 + c * 128);
    fprintf(f, "tcgen05.st.sync.aligned.32x32b.x128.b32 [%%r3],{%%v0");
    for (uint32_t i = 1; i < SUMS; i++) fprintf(f, ",%%v0");
    fprintf(
        f,
        "};\ntcgen05.st.sync.aligned.32x32b.x4.b32 [%%r3+128],{%%v1,%%v2,%%v3,%%v4};\n"
        "tcgen05.st.sync.aligned.32x32b.x4.b32 [%%r3+160],{%%v5,%%v6,%%v7,%%v8};\n"
        "tcgen05.wait::st.sync.aligned;\nsetp.ne.u32 %%p3,%%r0,0; @%%p3 bra L1;\n"
        "mbarrier.init.shared.b64 [bar],1;\nL1: tcgen05.fence::before_thread_sync; bar.sync 0;\n"
        "tcgen05.fence::after_thread_sync; @%%p3 bra L2;\n"
        "ld.param.u32 %%r20,[p2]; add.u32 %%r21,%%r4,128; add.u32 %%r22,%%r4,160;\n"
        "shr.u32 %%r8,%%r6,4; cvt.u64.u32 %%d8,%%r8; or.b64 %%d8,%%d8,0x%llx;\n"
        "add.u64 %%d9,%%d8,%d; setp.eq.u32 %%p4,%%r0,%%r0;\n",
        1ULL << 46 | 8ULL << 32 | 128ULL << 16, TILE / 16);
    emit_mma(f, form);
    fprintf(f, "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
               "L2: mbarrier.try_wait.parity.shared.b64 %%p5,[bar],0; @!%%p5 bra L2;\n"
               "tcgen05.fence::after_thread_sync;\ntcgen05.ld.sync.aligned.32x32b.x128.b32 ");
    emit_list(f, "%v", 0, SUMS);
    fprintf(f, ",[%%r3]; tcgen05.wait::ld.sync.aligned;\n");
    for (uint32_t i = 1; i < SUMS; i++)
        fprintf(f, "setp.eq.u32 %%p1,%%r0,%u; selp.b32 %%v0,%%v%u,%%v0,%%p1;\n", i, i);
    fprintf(f,
            "ld.param.u64 %%d0,[p1]; mad.wide.u32 %%d0,%%r5,%d,%%d0;\n"
            "mad.wide.u32 %%d0,%%r0,4,%%d0; st.global.b32 [%%d0],%%v0;\n",
            SUMS * 4);
    emit_tmem_close(f, 1);
}

/* PTX ISA "Packing formats": 16 elements of 8, 6 or 4 bits take 16 bytes, but of mxf4 32 do. */
static void put_row(uint8_t *tile, uint32_t row, const struct word_form *f, enum word_format format,
                    const uint32_t *code)
{
    const uint32_t bits = word_format_bits(format);
    const uint32_t per = bits >= 8 ? 128 / bits : f->k == 64 ? 32 : 16;
    for (uint32_t k = 0; k < f->k; k++) {
        uint8_t *chunk = tile + k / per * 2048 + row / 8 * 128 + row % 8 * 16;
        for (uint32_t i = 0; i < bits; i++) {
            const uint32_t at = k % per * bits + i;
            chunk[at / 8] = (uint8_t)(chunk[at / 8] | (code[k] >> i & 1U) << at % 8);
        }
    }
}

static void put_case(uint8_t *batch, uint32_t row, const struct word_form *f,
                     const struct word_case *x)
{
    uint32_t word[3] = {x->c, 0, 0};
    put_row(batch, row, f, f->a, x->a);
    put_row(batch + TILE, row, f, f->b, x->b);
    memcpy(&word[1], x->sa, sizeof x->sa);
    memcpy(&word[2], x->sb, sizeof x->sb);
    for (uint32_t i = 0; i < 3; i++)
        memcpy(batch + WORDS_AT + ((size_t)i * SUMS + row) * 4, &word[i], sizeof word[i]);
}

/* False when the launch failed, which is a failed check. */
static bool tcgen05_words(const struct word_form *f, const struct word_case *cases, uint32_t count,
                          uint32_t *words)
{
    const uint32_t batches = (count + SUMS - 1) / SUMS;
    const uint64_t in = device_buffer((size_t)batches * BATCH);
    const uint64_t out = device_buffer((size_t)batches * SUMS * 4);
    struct text t;
    FILE *file = text_open(&t);
    memset(host(in), 0, (size_t)batches * BATCH);
    for (uint32_t i = 0; i < count; i++)
        put_case((uint8_t *)host(in) + (size_t)(i / SUMS) * BATCH, i % SUMS, f, &cases[i]);
    emit_kernel(file, f);
    (void)fclose(file);
    const int result = run_ptx(t.at,
                               &(struct run){.gpu = "b200",
                                             .cluster = 1,
                                             .threads = SUMS,
                                             .shared = WORDS_AT,
                                             .param = {in, out, instruction_descriptor(f)},
                                             .clusters = batches},
                               NULL, 0);
    CHECK_INT(result, 0);
    memcpy(words, host(out), (size_t)count * sizeof *words);
    for (uint32_t i = 0; f->half_d && i < count; i++) words[i] &= 0xFFFFU;
    free(t.at);
    (void)mem_free(in);
    (void)mem_free(out);
    return result == 0;
}

/* ---- random and adversarial operands against the model ---- */

enum pattern { ANY_BITS, FINITE, NEAR_ONE, CANCELLING, SPARSE, PATTERNS };

static uint32_t draw_code(enum word_format format, enum pattern p, uint32_t k, uint32_t last)
{
    const uint32_t bits = word_format_bits(format);
    const uint32_t sign = 1U << (bits - 1);
    uint32_t code = (uint32_t)rng_next(&rng) & (sign | (sign - 1));
    if (p == ANY_BITS || format >= WF_U8) return code;
    if (p == SPARSE && rng_below(&rng, 4)) return code & sign;
    if (format == WF_F16 && (code & 0x7C00U) == 0x7C00U) code ^= 0x4000U;
    if (format == WF_BF16 && (code & 0x7F80U) == 0x7F80U) code ^= 0x4000U;
    if (format == WF_TF32 && (code & 0x7F800000U) == 0x7F800000U) code ^= 0x40000000U;
    if (format == WF_E4M3 && (code & 0x7FU) == 0x7FU) code ^= 0x40U;
    if (format == WF_E5M2 && (code & 0x7CU) == 0x7CU) code ^= 0x40U;
    if (p == NEAR_ONE && format == WF_BF16) code = (code & 0x81FFU) | 0x3E00U;
    if (p == NEAR_ONE && format == WF_TF32) code = (code & 0x81FFFFFFU) | 0x3E000000U;
    if (p == CANCELLING && k % 2) return last ^ (rng_below(&rng, 8) ? sign : sign | 1U);
    return code;
}

static uint8_t draw_scale(const struct word_form *f, enum pattern p)
{
    const uint32_t any = rng_below(&rng, 256);
    if (f->rule == WR_NV4)
        return (uint8_t)(p == ANY_BITS   ? any & 0x7FU
                         : p == NEAR_ONE ? 0x30 + any % 16
                                         : any % 0x7FU);
    if (p == ANY_BITS) return (uint8_t)any;
    return (uint8_t)(p == NEAR_ONE ? 120 + any % 16 : p == SPARSE ? 60 + any % 20 : 100 + any % 50);
}

/* An addend: any bits, or, nearer to the products' reach, a small exponent. */
static uint32_t draw_addend(const struct word_form *f, enum pattern p)
{
    const uint32_t any = (uint32_t)rng_next(&rng);
    if (f->rule == WR_INTEGER)
        return p == NEAR_ONE ? (any & 0x80000000U ? 0x80000000U : 0x7FFF0000U) + (any & 0xFFFFU)
                             : any;
    if (f->half_d) return p == ANY_BITS ? any & 0xFFFFU : any & 0xBBFFU;
    if (p == ANY_BITS) return any;
    if (rng_below(&rng, 8) == 0) return any & 0x807FFFFFU;
    return (any & 0x807FFFFFU) | (100 + rng_below(&rng, 56)) << 23;
}

static void draw_case(const struct word_form *f, enum pattern p, struct word_case *x)
{
    memset(x, 0, sizeof *x);
    for (uint32_t k = 0; k < f->k; k++) {
        x->a[k] = draw_code(f->a, p, k, k ? x->a[k - 1] : 0);
        x->b[k] = p == CANCELLING && k % 2 ? x->b[k - 1]
                                           : draw_code(f->b, p == CANCELLING ? FINITE : p, 0, 0);
    }
    x->c = draw_addend(f, p);
    for (uint32_t i = 0; i < WORDS_SCALES; i++) {
        x->sa[i] = draw_scale(f, p);
        x->sb[i] = draw_scale(f, p);
    }
}

static void check_words(const struct word_form *f, const struct word_case *cases,
                        const uint32_t *want, const uint32_t *got, uint32_t count)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (want[i] == got[i]) continue;
        if (!wrong++) /* the first one whole: enough to repeat it */
            for (uint32_t k = 0; test_verbose() && k < f->k; k++)
                printf("  %u: a %x b %x\n", k, cases[i].a[k], cases[i].b[k]);
        CHECK(wrong > 3, "%s, sum %u: c 0x%08x: want 0x%08x got 0x%08x", f->name, i, cases[i].c,
              want[i], got[i]);
    }
    CHECK(!wrong, "%s: %u of %u words differ", f->name, wrong, count);
}

static void test_model(const struct word_form *f)
{
    struct word_case *cases = calloc(CASES, sizeof *cases);
    uint32_t *want = calloc(CASES, sizeof *want), *got = calloc(CASES, sizeof *got);
    for (uint32_t i = 0; i < CASES; i++) {
        draw_case(f, (enum pattern)(i % PATTERNS), &cases[i]);
        want[i] = word_of(f, &cases[i]);
    }
    if (tcgen05_words(f, cases, CASES, got)) check_words(f, cases, want, got, CASES);
    free(cases);
    free(want);
    free(got);
}

/* ---- mma.sync: one sum a warp, in row 0 and column 0 ---- */

enum { SYNC_IN = 80 }; /* bytes of a sum: rows of A and B, C */

static void emit_sync(FILE *f, const struct word_form *form)
{
    static const char *const names[] = {"f16", "bf16", "tf32", "e4m3", "e5m2"};
    const char *type = names[form->a], *d = form->half_d ? "f16" : "f32";
    emit_header(f, "sm_100a", "");
    fprintf(
        f,
        "mov.u32 %%r0,%%tid.x; shr.u32 %%r1,%%r0,5; and.b32 %%r2,%%r0,31;\n"
        "mov.u32 %%r5,%%ctaid.x; mad.lo.u32 %%r5,%%r5,4,%%r1;\n"
        "ld.param.u64 %%d0,[p0]; mad.wide.u32 %%d0,%%r5,%d,%%d0; mad.wide.u32 %%d1,%%r2,4,%%d0;\n",
        SYNC_IN);
    for (uint32_t i = 0; i < 8; i++) fprintf(f, "mov.u32 %%v%u,0;\n", i);
    fprintf(
        f,
        "setp.lt.u32 %%p0,%%r2,4;\n@%%p0 ld.global.b32 %%v0,[%%d1];\n"
        "@%%p0 ld.global.b32 %%v2,[%%d1+16];\n@%%p0 ld.global.b32 %%v4,[%%d1+32];\n"
        "@%%p0 ld.global.b32 %%v5,[%%d1+48];\nsetp.eq.u32 %%p1,%%r2,0;\nmov.u32 %%v8,0;\n"
        "mov.u32 %%v9,0; mov.u32 %%v10,0; mov.u32 %%v11,0;\n@%%p1 ld.global.b32 %%v8,[%%d0+64];\n"
        "mma.sync.aligned.m16n8k%u.row.col.%s.%s.%s.%s {%%v8,%%v9%s},{%%v0,%%v1,%%v2,%%v3},"
        "{%%v4,%%v5},{%%v8,%%v9%s};\nld.param.u64 %%d2,[p1]; mad.wide.u32 %%d2,%%r5,4,%%d2;\n"
        "@%%p1 st.global.b32 [%%d2],%%v8;\nret;\n}\n",
        form->k, d, type, type, d, form->half_d ? "" : ",%v10,%v11",
        form->half_d ? "" : ",%v10,%v11");
}

static bool sync_words(const struct word_form *f, const struct word_case *cases, uint32_t count,
                       uint32_t *words)
{
    const uint32_t ctas = (count + 3) / 4, bytes = word_format_bits(f->a) / 8;
    const uint64_t in = device_buffer((size_t)ctas * 4 * SYNC_IN),
                   out = device_buffer(ctas * 16ULL);
    struct text t;
    FILE *file = text_open(&t);
    memset(host(in), 0, (size_t)ctas * 4 * SYNC_IN);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *to = (uint8_t *)host(in) + (size_t)i * SYNC_IN;
        for (uint32_t k = 0; k < f->k; k++) {
            memcpy(to + (size_t)k * bytes, &cases[i].a[k], bytes);
            memcpy(to + 32 + (size_t)k * bytes, &cases[i].b[k], bytes);
        }
        memcpy(to + 64, &cases[i].c, 4);
    }
    emit_sync(file, f);
    (void)fclose(file);
    const int result = run_ptx(
        t.at,
        &(struct run){
            .gpu = "b200", .cluster = 1, .threads = 128, .param = {in, out}, .clusters = ctas},
        NULL, 0);
    CHECK_INT(result, 0);
    memcpy(words, host(out), (size_t)count * sizeof *words);
    for (uint32_t i = 0; f->half_d && i < count; i++) words[i] &= 0xFFFFU;
    free(t.at);
    (void)mem_free(in);
    (void)mem_free(out);
    return result == 0;
}

/* ---- words that a B200 gave ---- */

static const struct recording {
    const char *type, *d; /* names in the file names */
    uint32_t form;        /* in forms */
    uint32_t k;           /* of the recording; the rest is zero */
    bool sync_only;       /* see tests/others/others.md */
} recordings[] = {{"fp16", "fp32", 0, 16, false}, {"fp16", "fp16", 1, 16, false},
                  {"bf16", "fp32", 2, 16, false}, {"tf32", "fp32", 3, 4, false},
                  {"E4M3", "fp32", 4, 32, true},  {"E5M2", "fp32", 5, 32, true},
                  {"E4M3", "fp16", 12, 32, true}, {"E5M2", "fp16", 13, 32, true}};

static uint32_t code_of(enum word_format format, uint32_t f32)
{
    float value;
    memcpy(&value, &f32, sizeof value);
    if (format == WF_TF32) return f32;
    if (format == WF_BF16) return f32 >> 16;
    if (format == WF_F16) return double_to_f16((double)value);
    for (uint32_t code = 0; code < 256; code++) {
        const uint8_t byte = (uint8_t)code;
        if (element_value(format == WF_E4M3 ? E4M3 : E5M2, &byte) == (double)value &&
            code >> 7 == f32 >> 31)
            return code;
    }
    return 0x7F;
}

static FILE *recording_file(const char *directory, const struct recording *r, char letter,
                            const char *kind)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/B200/%s/%c_B200_%s.txt", directory, r->type, letter,
                   kind);
    FILE *f = fopen(path, "r");
    if (!f) test_skip("%s is not there", path);
    return f;
}

/* A number of 32 digits 0 and 1. */
static bool read_binary(FILE *f, uint32_t *to)
{
    char digits[40];
    if (fscanf(f, "%39s", digits) != 1 || strlen(digits) != 32) return false;
    *to = (uint32_t)strtoul(digits, NULL, 2);
    return true;
}

static bool read_row(FILE *f, const struct recording *r, enum word_format format, uint32_t *to)
{
    for (uint32_t k = 0; k < r->k; k++) {
        unsigned bits;
        if (fscanf(f, "%8x", &bits) != 1) return false;
        to[k] = code_of(format, bits);
    }
    return true;
}

static uint32_t half_of(uint32_t f32)
{
    float value;
    memcpy(&value, &f32, sizeof value);
    return double_to_f16((double)value);
}

static uint32_t read_recording(const char *directory, const struct recording *r,
                               struct word_case *cases, uint32_t *want, uint32_t room)
{
    const struct word_form *form = &forms[r->form];
    FILE *f[4] = {recording_file(directory, r, 'a', r->type),
                  recording_file(directory, r, 'b', r->type),
                  recording_file(directory, r, 'c', "fp32"),
                  recording_file(directory, r, 'd', r->d)};
    uint32_t n = 0;
    while (f[0] && f[1] && f[2] && f[3] && n < room) {
        struct word_case *x = &cases[n];
        if (!read_row(f[0], r, form->a, x->a) || !read_row(f[1], r, form->b, x->b) ||
            !read_binary(f[2], &x->c) || !read_binary(f[3], &want[n]))
            break;
        if (form->half_d) {
            x->c = half_of(x->c);
            want[n] = half_of(want[n]);
        }
        n++;
    }
    for (uint32_t i = 0; i < 4; i++)
        if (f[i]) (void)fclose(f[i]);
    return n;
}

static void test_recording(const char *directory, const struct recording *r, bool sync)
{
    enum { ROOM = 1 << 17 };
    struct word_case *cases = calloc(ROOM, sizeof *cases);
    uint32_t *want = calloc(ROOM, sizeof *want), *got = calloc(ROOM, sizeof *got);
    const struct word_form *form = &forms[r->form];
    const uint32_t count = read_recording(directory, r, cases, want, ROOM);
    if (count &&
        (sync ? sync_words(form, cases, count, got) : tcgen05_words(form, cases, count, got)))
        check_words(form, cases, want, got, count);
    if (count && test_verbose()) printf("%s: %u sums\n", form->name, count);
    free(cases);
    free(want);
    free(got);
}

/* "name d c a,a,… b,b,… sa,… sb,…", in hex; `_` for spaces in a form's name. */
static bool read_list(char **at, uint32_t *to, uint32_t room)
{
    for (uint32_t i = 0; i < room; i++) {
        char *end;
        to[i] = (uint32_t)strtoul(*at, &end, 16);
        if (end == *at) return false;
        *at = end + (*end == ',');
        if (*end != ',') return true;
    }
    return false;
}

static const struct word_form *form_named(char *name)
{
    for (char *c = name; *c; c++)
        if (*c == '_') *c = ' ';
    for (uint32_t i = 0; i < FORMS; i++)
        if (!strcmp(forms[i].name, name)) return &forms[i];
    return NULL;
}

static void test_line(char *line)
{
    struct word_case x = {0};
    uint32_t want, got, sa[WORDS_SCALES] = {0}, sb[WORDS_SCALES] = {0};
    char *at = strchr(line, ' ');
    if (!at) return;
    *at++ = '\0';
    const struct word_form *f = form_named(line);
    const bool good =
        f && read_list(&at, &want, 1) && read_list(&at, &x.c, 1) &&
        read_list(&at, x.a, WORDS_MAX_K) && read_list(&at, x.b, WORDS_MAX_K) &&
        (!f->scales || (read_list(&at, sa, WORDS_SCALES) && read_list(&at, sb, WORDS_SCALES)));
    CHECK(good, "words.txt: a line that starts with '%s' is not as the top of this file says",
          line);
    if (!good) return;
    for (uint32_t i = 0; i < WORDS_SCALES; i++) {
        x.sa[i] = (uint8_t)sa[i];
        x.sb[i] = (uint8_t)sb[i];
    }
    CHECK(word_of(f, &x) == want, "the model, %s: want 0x%08x got 0x%08x", f->name, want,
          word_of(f, &x));
    if (tcgen05_words(f, &x, 1, &got)) check_words(f, &x, &want, &got, 1);
}

static void test_words(const char *directory)
{
    char path[1024], line[4096];
    (void)snprintf(path, sizeof path, "%s/words.txt", directory);
    FILE *f = fopen(path, "r");
    if (!f) {
        test_skip("%s is not there", path);
        return;
    }
    while (fgets(line, sizeof line, f)) test_line(line);
    (void)fclose(f);
}

int main(int argc, char **argv)
{
    const char *directory = getenv("HEWN_B200_VECTORS");
    test_begin("recorded", argc, argv);
    test_where("the simulator");
    model_begin();
    for (uint32_t i = 0; i < FORMS; i++)
        if (test_case("%u sums of %s and the published model", (uint32_t)CASES, forms[i].name))
            test_model(&forms[i]);
    for (size_t i = 0; i < sizeof recordings / sizeof recordings[0]; i++) {
        const struct recording *r = &recordings[i];
        for (int sync = r->sync_only; sync < 2; sync++) {
            if (!test_case("recorded %s to %s, %s", r->type, r->d,
                           sync ? "mma.sync" : "tcgen05.mma"))
                continue;
            if (!directory)
                test_skip("HEWN_B200_VECTORS does not name a directory");
            else
                test_recording(directory, r, sync);
        }
    }
    if (test_case("recorded words of every kind")) {
        if (!directory)
            test_skip("HEWN_B200_VECTORS does not name a directory");
        else
            test_words(directory);
    }
    return test_end();
}
