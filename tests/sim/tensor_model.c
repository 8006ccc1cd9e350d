/* Shared by the tests of the tensor cores (tensor_model.h). */
#include "tensor_model.h"
#include "check/check.h"
#include "ops/table.h"

#include "cuda/driver.h"
#include "lib/harness.h"
#include "machine/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rng rng;
static char report_path[64];

void model_begin(void)
{
    rng.state = test_seed();
    (void)snprintf(report_path, sizeof report_path, "/tmp/sim_tensor.%ld", (long)getpid());
    (void)setenv("HEWN_SIM_REPORT", report_path, 1);
    (void)setenv("HEWN_SIM_QUIET", "1", 1);
}

/* ---- running a kernel ---- */

/* The CUresult of the launch; -1 when the text does not become a kernel. `findings` (may be NULL)
 * receives the report's JSON. */
int run_ptx(const char *text, const struct run *r, char *findings, size_t size)
{
    static uint64_t number;
    struct ptx_module *module = NULL;
    struct kernel *kernel = NULL;
    struct ptx_diag diag = {{0}};
    _Alignas(64) uint8_t params[sizeof r->param];
    int result = -1;
    memcpy(params, r->param, sizeof params);
    coverage_note(text);
    if (ptx_parse(text, strlen(text), &module, &diag) ||
        kernel_decode(module, &module->entries[0], op_binders, &kernel, &diag)) {
        test_fail(__FILE__, __LINE__, "the kernel does not load: %s", diag.text);
        ptx_module_free(module);
        return -1;
    }
    CHECK(!kernel->unsupported, "not modelled: %s", kernel->unsupported);
    (void)remove(report_path);
    if (!kernel->unsupported) {
        struct launch l = {.kernel = kernel,
                           .gpu = gpu_named(r->gpu),
                           .hooks = &op_hooks,
                           .grid = {r->cluster * (r->clusters ? r->clusters : 1), 1, 1},
                           .block = {r->threads, 1, 1},
                           .cluster = {r->cluster, 1, 1},
                           .dynamic_shared = r->shared,
                           .params = params,
                           .param_bytes = kernel->entry->param_bytes,
                           .sm_count = 4,
                           .host_threads = 1,
                           .seed = rng_next(&rng),
                           .check_level = 1};
        struct check check = {0};
        struct report *report = report_new("k", ++number);
        check_attach(&check, &l, report);
        result = launch_run(&l);
        (void)report_end(report);
    }
    if (findings) {
        FILE *f = fopen(report_path, "r");
        size_t got = f ? fread(findings, 1, size - 1, f) : 0;
        findings[got] = '\0';
        if (f) (void)fclose(f);
    }
    (void)remove(report_path);
    kernel_free(kernel);
    ptx_module_free(module);
    return result;
}

FILE *text_open(struct text *t)
{
    t->file = open_memstream(&t->at, &t->size);
    if (!t->file) abort();
    return t->file;
}

uint64_t device_buffer(size_t bytes)
{
    uint64_t address = 0;
    if (mem_alloc(bytes, &address)) abort();
    return address;
}

void *host(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* ---- number formats ---- */

const struct format_row formats[] = {{"f16", 2, 0, TF_F16},      {"bf16", 2, 1, TF_BF16},
                                     {"tf32", 4, 2, TF_TF32},    {"e4m3", 1, 0, TF_E4M3},
                                     {"e5m2", 1, 1, TF_E5M2},    {"e2m3", 1, 3, TF_E2M3},
                                     {"e3m2", 1, 4, TF_E3M2},    {"e2m1", 1, 5, TF_E2M1},
                                     {"u8", 1, 0, TF_U8},        {"s8", 1, 1, TF_S8},
                                     {"e2m1x2", 1, 1, TF_E2M1X2}};

/* Values of e2m1 codes 0 to 7. */
static const double e2m1_values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

/* Six bits: `fractions` of fraction below an exponent with bias `bias`, a sign on top. */
static double six_bits(uint32_t code, int fractions, int bias)
{
    const int fraction = (int)(code & ((1U << fractions) - 1U)),
              exponent = (int)(code & 31U) >> fractions;
    const double magnitude = exponent ? ldexp(1 + ldexp(fraction, -fractions), exponent - bias)
                                      : ldexp(ldexp(fraction, -fractions), 1 - bias);
    return code & 32U ? -magnitude : magnitude;
}

double element_value(enum format format, const uint8_t *p)
{
    uint32_t word = 0;
    float f;
    memcpy(&word, p, formats[format].bytes);
    switch (format) {
    case F16: return f16_to_double((uint16_t)word);
    case BF16: return bf16_to_double((uint16_t)word);
    case TF32:
        word &= 0xFFFFE000U;
        memcpy(&f, &word, sizeof f);
        return (double)f;
    case E4M3: {
        const int exponent = (int)(word >> 3 & 15U), fraction = (int)(word & 7U);
        const double magnitude = (word & 0x7FU) == 0x7FU ? (double)NAN
                                 : exponent              ? ldexp(8 + fraction, exponent - 10)
                                                         : ldexp(fraction, -9);
        return word & 0x80U ? -magnitude : magnitude;
    }
    case E2M3: return six_bits(word, 3, 1);
    case E3M2: return six_bits(word, 2, 3);
    case E2M1: return (word & 32U ? -1 : 1) * e2m1_values[word >> 2 & 7U];
    case E2M1X2: return (word & 8U ? -1 : 1) * e2m1_values[word & 7U];
    case U8: return (double)word;
    case S8: return word < 128 ? (double)word : (double)word - 256;
    default: return f16_to_double((uint16_t)(word << 8));
    }
}

/* A random finite element of modest size. */
void random_element(enum format format, uint8_t *p)
{
    const float f = rng_unit(&rng);
    uint32_t word = (uint32_t)rng_next(&rng);
    switch (format) {
    case F16: word = double_to_f16((double)f); break;
    case BF16: word = double_to_bf16((double)f); break;
    case TF32: memcpy(&word, &f, sizeof word); break;
    case E4M3: word = (word & 0x80U) | rng_below(&rng, 0x48); break;
    case E5M2: word = (word & 0x80U) | rng_below(&rng, 0x48); break;
    default: break; /* any bits */
    }
    memcpy(p, &word, formats[format].bytes);
}

/* ---- layouts ---- */

/* PTX ISA "Canonical Layouts", in units of T = 16 bytes, as nested (shape):(stride) tuples. */
uint32_t model_address(const struct smem_operand *o, uint32_t mn, uint32_t k)
{
    static const uint32_t spans[] = {1, 2, 4, 8, 8}; /* T */
    const uint32_t t = 16U / o->elem_bytes, w = spans[o->swizzle];
    const uint32_t lines = o->swizzle == 4 ? 4 : 8;
    const uint32_t lbo = o->lbo / 16U * t, sbo = o->sbo / 16U * t;
    uint32_t at;
    if (!o->mn_major && !o->swizzle)
        at = mn % 8 * t + mn / 8 * sbo + k % t + k / t * lbo;
    else if (!o->mn_major) /* by analogy with wgmma: what exceeds a row is one leading offset on */
        at = mn % 8 * (w * t) + mn / 8 * sbo + k % (w * t) + k / (w * t) * lbo;
    else if (!o->swizzle)
        at = mn % t + mn / t * sbo + k % 8 * t + k / 8 * lbo;
    else
        at = mn % (w * t) + mn / (w * t) * lbo + k % lines * (w * t) + k / lines * sbo;
    at = o->start + at * o->elem_bytes;
    if (o->wraps) { /* a row goes on at the absolute leading offset */
        const uint32_t in_row = o->start % 128 + k;
        at = (in_row < 128 ? o->start - o->start % 128 : o->lbo) + mn % 8 * 128 + mn / 8 * o->sbo +
             in_row % 128;
    }
    const uint32_t chunk = at >> 4 & 7U, row = (at - o->phase) >> 7 & 7U;
    switch (o->swizzle) {
    case 1: return (at & ~0x70U) | (chunk ^ (row & 1U)) << 4;
    case 2: return (at & ~0x70U) | (chunk ^ (row & 3U)) << 4;
    case 3: return (at & ~0x70U) | (chunk ^ row) << 4;
    case 4: return (at & ~0x70U) | (chunk ^ (row & 3U) << 1) << 4;
    default: return at;
    }
}

double model_element(const struct smem_operand *o, enum format format, const uint8_t *window,
                     uint32_t mn, uint32_t k)
{
    const uint32_t bits = format == E2M1 || format == E2M1X2 ? 4 : 6;
    uint8_t byte;
    if (format == E2M1X2) {
        byte = window[model_address(o, mn, k / 2)];
        byte = k % 2 ? byte >> 4 : byte;
    } else if (format == E2M3 || format == E3M2 || format == E2M1) {
        const uint8_t *chunk = &window[model_address(o, mn, k / 16 * 16)];
        byte = 0;
        for (uint32_t bit = 0; bit < bits; bit++) {
            const uint32_t at = k % 16 * bits + bit;
            byte = (uint8_t)(byte | (chunk[at / 8] >> at % 8 & 1U)
                                        << (bit + (format == E2M1 ? 2 : 0)));
        }
    } else {
        return element_value(format, &window[model_address(o, mn, k)]);
    }
    return element_value(format, &byte);
}

struct smem_operand random_operand(uint32_t swizzle, bool mn_major, enum format format,
                                   uint32_t start)
{
    return (struct smem_operand){
        .start = start + 128U * rng_below(&rng, 8),
        .lbo = 128U * (1U + rng_below(&rng, 15)),
        .sbo = 128U * (1U + rng_below(&rng, 15)),
        .swizzle = (uint8_t)swizzle,
        .mn_major = mn_major,
        .elem_bytes = (uint8_t)formats[format].bytes,
    };
}

uint8_t image[2][IMAGE];

void fill_image(enum format a, enum format b)
{
    for (uint32_t i = 0; i < IMAGE; i += 4) {
        const enum format f = i < B_START ? a : b;
        for (uint32_t c = 0; c < 2; c++)
            for (uint32_t j = 0; j < 4; j += formats[f].bytes) random_element(f, &image[c][i + j]);
    }
}

/* ---- kernels ---- */

void emit_header(FILE *f, const char *target, const char *declarations)
{
    fprintf(f, ".version 8.7\n.target %s\n.address_size 64\n", target);
    fprintf(f, ".extern .shared .align 1024 .b8 smem[];\n");
    fprintf(f, ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3,\n"
               " .param .u64 p4, .param .u64 p5, .param .u64 p6, .param .u64 p7)\n{\n");
    fprintf(f, ".reg .b32 %%r<40>;\n.reg .b64 %%d<20>;\n.reg .pred %%p<8>;\n.reg .b16 %%h<4>;\n");
    fprintf(f, ".reg .b32 %%v<512>;\n.shared .align 8 .b64 bar;\n.shared .align 4 .b32 slot;\n%s",
            declarations);
}

void emit_list(FILE *f, const char *name, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        fprintf(f, "%s%s%u%s", i ? "," : "{", name, first + i, i + 1 == count ? "}" : "");
}

/* Warp 0 allocates all columns; %r0 tid, %r1 warp, %r2 lane, %r3 this warp's lane field; %r4 base. */
void emit_tmem_open(FILE *f, uint32_t group)
{
    fprintf(f,
            "mov.u32 %%r0,%%tid.x; shr.u32 %%r1,%%r0,5; and.b32 %%r2,%%r0,31;\n"
            "and.b32 %%r3,%%r1,3; shl.b32 %%r3,%%r3,21; setp.ne.u32 %%p0,%%r1,0; @%%p0 bra L0;\n"
            "tcgen05.alloc.cta_group::%u.sync.aligned.shared::cta.b32 [slot],512;\n"
            "tcgen05.relinquish_alloc_permit.cta_group::%u.sync.aligned;\nL0: bar.sync 0;\n"
            "ld.shared.b32 %%r4,[slot]; add.u32 %%r3,%%r3,%%r4;\n",
            group, group);
}

void emit_tmem_close(FILE *f, uint32_t group)
{
    fprintf(f,
            "bar.sync 0; @%%p0 bra L9;\n"
            "tcgen05.dealloc.cta_group::%u.sync.aligned.b32 %%r4,512;\nL9: ret;\n}\n",
            group);
}

/* Copies columns [0, count) of the warp's lanes between tensor memory and [%d0 + column * 512 +
 * lane-in-CTA * 4]. */
void emit_columns(FILE *f, bool to_tmem, uint32_t count, const char *label)
{
    fprintf(f, "mul.wide.u32 %%d1,%%r0,4; add.u64 %%d1,%%d1,%%d0; mov.u32 %%r5,0;\n%s:\n", label);
    fprintf(f, "add.u32 %%r6,%%r3,%%r5;\n");
    if (to_tmem)
        fprintf(f, "ld.global.b32 %%r7,[%%d1];\n"
                   "tcgen05.st.sync.aligned.32x32b.x1.b32 [%%r6],{%%r7};\n");
    else
        fprintf(f, "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%%r7},[%%r6];\n"
                   "tcgen05.wait::ld.sync.aligned;\nst.global.b32 [%%d1],%%r7;\n");
    fprintf(f,
            "add.u64 %%d1,%%d1,512; add.u32 %%r5,%%r5,1; setp.lt.u32 %%p1,%%r5,%u;\n"
            "@%%p1 bra %s;\n%s",
            count, label, to_tmem ? "tcgen05.wait::st.sync.aligned;\n" : "");
}

static const uint32_t tcgen05_code[] = {0, 6, 4, 2, 1};
static const uint32_t wgmma_code[] = {0, 3, 2, 1};

uint64_t descriptor(const struct smem_operand *o, bool tcgen05)
{
    const uint64_t fields =
        (uint64_t)o->start >> 4 | (uint64_t)(o->lbo >> 4) << 16 | (uint64_t)(o->sbo >> 4) << 32;
    return tcgen05 ? fields | 1ULL << 46 | (uint64_t)o->wraps << 52 |
                         (uint64_t)tcgen05_code[o->swizzle] << 61
                   : fields | (uint64_t)wgmma_code[o->swizzle] << 62;
}

/* Fills dynamic shared memory from [%d4], `IMAGE` bytes. The window starts with reserved and static
 * parts; images are given from window offset 2048 on. */
void emit_fill(FILE *f, uint32_t threads)
{
    fprintf(f,
            "mul.lo.u32 %%r10,%%r0,16; cvt.u64.u32 %%d5,%%r10; add.u64 %%d4,%%d4,%%d5;\n"
            "mov.u32 %%r11,smem; add.u32 %%r11,%%r11,%%r10;\n"
            "LF: ld.global.v4.b32 {%%r12,%%r13,%%r14,%%r15},[%%d4];\n"
            "st.shared.v4.b32 [%%r11],{%%r12,%%r13,%%r14,%%r15};\n"
            "add.u64 %%d4,%%d4,%u; add.u32 %%r11,%%r11,%u; add.u32 %%r10,%%r10,%u;\n"
            "setp.lt.u32 %%p2,%%r10,%d; @%%p2 bra LF;\nfence.proxy.async.shared::cta;\n",
            threads * 16, threads * 16, threads * 16, IMAGE - 2048);
}

void emit_mma_begin(FILE *f, uint32_t group, uint32_t a_column)
{
    emit_tmem_open(f, group);
    fprintf(f,
            "mov.u32 %%r20,%%cluster_ctarank; mul.wide.u32 %%d6,%%r20,%d;\n"
            "ld.param.u64 %%d4,[p2]; add.u64 %%d4,%%d4,%%d6;\n",
            IMAGE);
    emit_fill(f, 128);
    fprintf(f, "mul.wide.u32 %%d6,%%r20,%d; ld.param.u64 %%d0,[p0]; add.u64 %%d0,%%d0,%%d6;\n",
            CELLS * 4);
    emit_columns(f, true, 512, "LA");
    fprintf(f, "setp.ne.u32 %%p3,%%r0,0; @%%p3 bra L1; mbarrier.init.shared.b64 [bar],1;\n"
               "fence.mbarrier_init.release.cluster;\nL1: tcgen05.fence::before_thread_sync;\n"
               "bar.sync 0;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
               "tcgen05.fence::after_thread_sync;\n");
    fprintf(f,
            "or.b32 %%r21,%%r0,%%r20; setp.ne.u32 %%p3,%%r21,0; @%%p3 bra L2;\n"
            "ld.param.u64 %%d8,[p3]; ld.param.u64 %%d9,[p4]; ld.param.u32 %%r22,[p5];\n"
            "ld.param.u32 %%r23,[p6]; ld.param.u64 %%d10,[p7];\n"
            "setp.ne.u32 %%p4,%%r23,0; add.u32 %%r24,%%r4,%u;\n",
            a_column);
    for (uint32_t i = 0; i < 8; i++) fprintf(f, "mov.u32 %%v%u,%u;\n", i, 0x11U << i);
}

void emit_mma_end(FILE *f, uint32_t group)
{
    fprintf(f,
            "L2: mbarrier.try_wait.parity.shared.b64 %%p5,[bar],0; @!%%p5 bra L2;\n"
            "tcgen05.fence::after_thread_sync; ld.param.u64 %%d0,[p1]; "
            "mul.wide.u32 %%d6,%%r20,%d; add.u64 %%d0,%%d0,%%d6;\n",
            CELLS * 4);
    emit_columns(f, false, 512, "LB");
    fprintf(f, "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n");
    emit_tmem_close(f, group);
}

/* ---- results ---- */

/* What a sum may be off by that keeps `bits` of every term and of the result (golden_mma.c has the bits;
 * here the operands' places in memory are at stake). */
bool close_enough(double got, double want, double magnitude, uint32_t k, int bits, bool half_d)
{
    double allowed = (k + 1) * ldexp(magnitude, -bits);
    if (half_d) allowed += fabs(want) * ldexp(1, -11) + ldexp(1, -24);
    return fabs(got - want) <= allowed;
}

double cell_value(uint32_t cell, bool half)
{
    float f;
    memcpy(&f, &cell, sizeof f);
    return half ? f16_to_double((uint16_t)cell) : (double)f;
}
