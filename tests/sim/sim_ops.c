/*
 * The simulator's arithmetic, conversions and memory instructions, each run as a small kernel and
 * compared lane by lane with C. Inputs are random, biased to extremes; every operation runs once
 * whole and once under a guard that leaves some lanes untouched. The rounding modes are compared
 * with the host's.
 */
#include "lib/harness.h"
#include "check/check.h"
#include "ops/table.h"

#include "cuda/driver.h"
#include "machine/mem.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 256, PARAMS = 4 };

/* ---- running a kernel ---- */

struct run {
    uint32_t threads, ctas, cluster;
    uint64_t param[PARAMS];
    bool unchecked;
};

static char report_path[64];

/* The CUresult; -1 when the text is no kernel. `findings` (may be NULL) gets the report's JSON. */
static int run_ptx(const char *text, const struct run *r, char *findings, size_t size)
{
    static uint64_t number;
    struct ptx_module *module = NULL;
    struct kernel *kernel = NULL;
    struct ptx_diag diag = {{0}};
    _Alignas(64) uint8_t params[sizeof r->param];
    int result = -1;
    memcpy(params, r->param, sizeof params);
    if (ptx_parse(text, strlen(text), &module, &diag) ||
        kernel_decode(module, &module->entries[0], op_binders, &kernel, &diag)) {
        test_fail(__FILE__, __LINE__, "does not load: %s", diag.text);
        ptx_module_free(module);
        return -1;
    }
    (void)remove(report_path);
    if (kernel->unsupported) {
        test_fail(__FILE__, __LINE__, "%s", kernel->unsupported);
    } else {
        struct launch l = {.kernel = kernel,
                           .gpu = gpu_named("b200"),
                           .hooks = &op_hooks,
                           .grid = {r->ctas, 1, 1},
                           .block = {r->threads, 1, 1},
                           .cluster = {r->cluster, 1, 1},
                           .params = params,
                           .param_bytes = kernel->entry->param_bytes,
                           .sm_count = 4,
                           .host_threads = 1,
                           .seed = test_seed() + number,
                           .check_level = !r->unchecked};
        struct check check = {0};
        struct report *report = report_new("ops", ++number);
        check_attach(&check, &l, report);
        result = launch_run(&l);
        (void)report_end(report);
    }
    if (findings) {
        FILE *f = fopen(report_path, "rb");
        size_t n = f ? fread(findings, 1, size - 1, f) : 0;
        findings[n] = 0;
        if (f) fclose(f);
    }
    kernel_free(kernel);
    ptx_module_free(module);
    return result;
}

static uint64_t buffer(uint64_t bytes)
{
    uint64_t address = 0;
    if (mem_alloc(bytes, &address)) abort();
    return address;
}

/* An allocation's bytes. */
static void *at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* ---- what sim_ops.def says results with ---- */

#define M32    0xFFFFFFFFULL
#define LO(v)  ((uint64_t)(v)&0xFFFF)
#define S16(v) ((int64_t)(int16_t)(v))
#define S24(v) ((int64_t)((uint64_t)(v) << 40) >> 40)
#define S32(v) ((int64_t)(int32_t)(v))
#define S64(v) ((int64_t)(v))
#define F(v)   as_float((uint32_t)(v))
#define D(v)   as_double(v)
#define H(v)   f16_to_double((uint16_t)(v))
#define B(v)   bf16_to_double((uint16_t)(v))

static float as_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static double as_double(uint64_t u)
{
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

/* Results' bits; a NaN of f32 is the canonical one. */
static uint64_t f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return isnan(f) ? 0x7FFFFFFF : u;
}

static uint64_t f64(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

/* NaN operands of f64 pass, made quiet: the first of three that is one. */
static uint64_t f64_of(double d, uint64_t first, uint64_t second, uint64_t third)
{
    const uint64_t operand[] = {first, second, third};
    for (size_t i = 0; i < 3; i++)
        if (isnan(as_double(operand[i]))) return operand[i] | 0x0008000000000000ULL;
    return isnan(d) ? 0xFFF8000000000000ULL : f64(d);
}

/* f64 to f32: a NaN keeps its sign and the top of its payload. */
static uint64_t f32_of_f64(float f, uint64_t a)
{
    const uint64_t nan = (a >> 32 & 0x80000000) | 0x7FC00000 | (a >> 29 & 0x3FFFFF);
    return isnan(as_double(a)) ? nan : f32(f);
}

static uint64_t f16(double d)
{
    return isnan(d) ? 0x7FFF : double_to_f16(d);
}
static uint64_t bf16(double d)
{
    return isnan(d) ? 0x7FFF : double_to_bf16(d);
}

static float flush(float f)
{
    return fpclassify(f) == FP_SUBNORMAL ? copysignf(0, f) : f;
}
static uint64_t flush_f16(uint64_t h)
{
    return h & 0x7C00 ? h : h & 0x8000;
}
static float saturate(float f)
{
    return f > 0 ? (f > 1 ? 1 : f) : 0;
}
static uint64_t relu(double d, uint64_t bits)
{
    return d <= 0 ? 0 : bits;
}

static uint64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return (uint64_t)(v < low ? low : v > high ? high : v);
}

static uint64_t to_int(double d, int64_t low, int64_t high)
{
    if (isnan(d)) return 0;
    return (uint64_t)(d < (double)low ? low : d > (double)high ? high : (int64_t)d);
}

static float min_float(float a, float b)
{
    if (isnan(a)) return b;
    if (isnan(b)) return a;
    if (a == 0 && b == 0) return signbit(a) ? a : b;
    return a < b ? a : b;
}

/* An f16 fma is exact in long double; as a double it keeps a last bit that says it was longer, so
 * that rounding to f16 happens once. */
static double odd(long double x)
{
    double d = (double)x;
    uint64_t u;
    if (isnan(d) || isinf(d) || (long double)d == x) return d;
    if (fabsl((long double)d) > fabsl(x)) d = nextafter(d, 0);
    memcpy(&u, &d, sizeof u);
    return as_double(u | 1);
}

/* The host's arithmetic in a rounding mode. */
static uint64_t f32_by(char op, uint64_t a, uint64_t b, uint64_t c, int mode)
{
    volatile float x = F(a), y = F(b), z = F(c), r = 0;
    volatile double wide = D(a);
    volatile uint64_t u = a;
    fesetround(mode);
    switch (op) {
    case '+': r = x + y; break;
    case '-': r = x - y; break;
    case '*': r = x * y; break;
    case '/': r = x / y; break;
    case 'f': r = fmaf(x, y, z); break;
    case 's': r = sqrtf(x); break;
    case 'u': r = (float)u; break;
    case 'i': r = (float)(int64_t)u; break;
    default: r = (float)wide; break;
    }
    fesetround(FE_TONEAREST);
    return op == 'd' ? f32_of_f64(r, a) : f32(r);
}

static uint64_t f64_by(char op, uint64_t a, uint64_t b, uint64_t c, int mode)
{
    volatile double x = D(a), y = D(b), z = D(c), r = 0;
    volatile int64_t i = S64(a);
    fesetround(mode);
    switch (op) {
    case '*': r = x * y; break;
    case 'f': r = fma(x, y, z); break;
    case 's': r = sqrt(x); break;
    default: r = (double)i; break;
    }
    fesetround(FE_TONEAREST);
    if (op == 'i') return f64(r);
    return op == 's' ? f64_of(r, a, 0, 0) : f64_of(r, b, c, a);
}

static uint64_t high_product(uint64_t a, uint64_t b)
{
    uint64_t low = (a & M32) * (b & M32), mid1 = (a >> 32) * (b & M32),
             mid2 = (a & M32) * (b >> 32);
    uint64_t mid = (low >> 32) + (mid1 & M32) + (mid2 & M32);
    return (a >> 32) * (b >> 32) + (mid1 >> 32) + (mid2 >> 32) + (mid >> 32);
}

static uint64_t dot4(uint64_t a, uint64_t b, bool signed_a, bool signed_b)
{
    int64_t sum = 0;
    for (int i = 0; i < 4; i++) {
        int64_t x = (int64_t)(a >> 8 * i & 255), y = (int64_t)(b >> 8 * i & 255);
        sum += (signed_a ? (int8_t)x : x) * (signed_b ? (int8_t)y : y);
    }
    return (uint64_t)sum;
}

static uint64_t lop3(uint64_t a, uint64_t b, uint64_t c, uint32_t table)
{
    uint64_t r = 0;
    for (int i = 0; i < 32; i++)
        r |= (uint64_t)(table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
    return r;
}

static uint64_t count_ones(uint64_t v)
{
    uint64_t n = 0;
    for (; v; v >>= 1) n += v & 1;
    return n;
}

static int top_bit(uint64_t v)
{
    int n = -1;
    for (; v; v >>= 1) n++;
    return n;
}

static uint64_t bit_reverse(uint64_t v, int width)
{
    uint64_t r = 0;
    for (int i = 0; i < width; i++) r |= (v >> i & 1) << (width - 1 - i);
    return r;
}

/* -h of an f16; every NaN is one. */
static uint64_t minus_half(uint64_t h)
{
    return (h & 0x7FFF) > 0x7C00 ? 0x7FFF : (h & 0xFFFF) ^ 0x8000;
}

/* bfe, bit by bit as the ISA's pseudo-code has it. */
static uint64_t field(uint64_t a, uint64_t pos, uint64_t len, uint64_t width, bool is_signed)
{
    uint64_t last = pos + len - 1 < width - 1 ? pos + len - 1 : width - 1, r = 0;
    uint64_t sign = is_signed && len ? a >> last & 1 : 0;
    for (uint64_t i = 0; i < width; i++)
        r |= (i < len && pos + i < width ? a >> (pos + i) & 1 : sign) << i;
    return r;
}

static uint64_t field_in(uint64_t a, uint64_t b, uint64_t pos, uint64_t len, uint64_t width)
{
    for (uint64_t i = 0; i < len && pos + i < width; i++)
        b = (b & ~(1ULL << (pos + i))) | (a >> i & 1) << (pos + i);
    return b;
}

static uint64_t permute(uint64_t a, uint64_t b, uint32_t selector)
{
    uint64_t both = b << 32 | a, r = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t s = selector >> 4 * i & 15;
        uint64_t byte = both >> 8 * (s & 7) & 255;
        if (s & 8) byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * i;
    }
    return r;
}

/* e4m3 (3 mantissa bits) and e5m2 (2) by search: the nearest of all bytes, ties to the even one. */
static double fp8_value(uint32_t byte, int mantissa)
{
    int exponent = (int)(byte & 127) >> mantissa, bias = mantissa == 3 ? 7 : 15;
    double fraction = byte & ((1U << mantissa) - 1);
    if (exponent == 0) return ldexp(fraction, 1 - bias - mantissa);
    return ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
}

static uint64_t fp8(float f, int mantissa, double max)
{
    uint32_t best = 0;
    double v = fmin(fabs((double)f), max);
    if (isnan(f)) return 0x7F;
    for (uint32_t i = 0; fp8_value(i, mantissa) <= max && i < 127; i++) {
        double gap = fabs(fp8_value(i, mantissa) - v), old = fabs(fp8_value(best, mantissa) - v);
        if (gap < old || (gap == old && !(i & 1))) best = i;
    }
    return best | (signbit(f) ? 128 : 0);
}

static uint64_t e4m3_f16(uint64_t byte)
{
    double d = (byte & 127) == 127 ? (double)NAN : fp8_value((uint32_t)byte & 127, 3);
    return f16(byte & 128 ? -d : d);
}

/* ---- operations ---- */

#define X(name, ptx, na, nb, nc, nd, ...)                           \
    static uint64_t want_##name(uint64_t a, uint64_t b, uint64_t c) \
    {                                                               \
        (void)a, (void)b, (void)c;                                  \
        return (uint64_t)(__VA_ARGS__);                             \
    }
#include "sim_ops.def"
#undef X

static const struct op {
    const char *name, *ptx;
    uint32_t bits[4]; /* a, b, c, d; 0: absent */
    uint64_t (*want)(uint64_t a, uint64_t b, uint64_t c);
} ops[] = {
#define X(name, ptx, na, nb, nc, nd, ...) {#name, ptx, {na, nb, nc, nd}, want_##name},
#include "sim_ops.def"
#undef X
};

/* Bit patterns where integers and floats of every width turn. */
static const uint64_t extremes[] = {0,
                                    1,
                                    2,
                                    3,
                                    31,
                                    32,
                                    33,
                                    63,
                                    64,
                                    255,
                                    0x7F,
                                    0x80,
                                    0x7FFF,
                                    0x8000,
                                    0xFFFF,
                                    0x7FFFFFFF,
                                    0x80000000,
                                    0xFFFFFFFF,
                                    0x7FFFFFFFFFFFFFFF,
                                    0x8000000000000000,
                                    UINT64_MAX,
                                    0x3F800000,
                                    0xBF800000,
                                    0x7F800000,
                                    0xFF800000,
                                    0x7FC00000,
                                    0x7F7FFFFF,
                                    0x00800000,
                                    0x007FFFFF,
                                    0x80000001,
                                    0x3F000000,
                                    0x4F000000,
                                    0xCF000000,
                                    0x477FE000,
                                    0x477FF000,
                                    0x33800000,
                                    0x33000001,
                                    0x387FE000,
                                    0x43E80000,
                                    0x43E00000,
                                    0x3C00,
                                    0xBC00,
                                    0x7C00,
                                    0xFC00,
                                    0x7E00,
                                    0x7BFF,
                                    0x0400,
                                    0x03FF,
                                    0x8001,
                                    0x3F80,
                                    0x7F80,
                                    0x7FC0,
                                    0x7F7F,
                                    0x0080,
                                    0x3FF0000000000000,
                                    0xBFF0000000000000,
                                    0x7FF0000000000000,
                                    0x7FF8000000000000,
                                    0x7FEFFFFFFFFFFFFF,
                                    0x0010000000000000,
                                    0x000FFFFFFFFFFFFF,
                                    0x36A0000000000000,
                                    0x47EFFFFFF0000000,
                                    0x3810000000000000,
                                    0x43E0000000000000,
                                    0x3C003C00BC000400};

static uint64_t random_value(struct rng *rng)
{
    uint64_t v = rng_next(rng);
    switch (rng_below(rng, 6)) {
    case 0:
    case 1: return extremes[rng_below(rng, sizeof extremes / sizeof *extremes)];
    case 2: return f32(ldexpf(rng_unit(rng), (int)rng_below(rng, 40) - 20));
    case 3: return f64(ldexp(rng_unit(rng), (int)rng_below(rng, 40) - 20));
    case 4: return v >> rng_below(rng, 64);
    default: return v;
    }
}

/* Copies `op`'s text, `@` replaced. */
static void guard_text(char *out, const char *text, const char *guard)
{
    for (; *text; text++) {
        if (*text == '@')
            out += sprintf(out, "%s", guard);
        else
            *out++ = *text;
    }
    *out = 0;
}

static void op_text(char *text, size_t room, const struct op *op, bool guarded)
{
    static const char names[] = "abcd";
    char body[512];
    int n =
        snprintf(text, room,
                 ".version 8.8\n.target sm_100a\n.address_size 64\n"
                 ".visible .entry op(.param .u64 in, .param .u64 out, .param .u64 mask)\n{\n"
                 ".reg .pred %%q, %%t, %%z, %%g;\n.reg .b32 %%id;\n.reg .b64 %%in, %%out, %%m;\n"
                 "mov.u32 %%id, %%tid.x;\nld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\n"
                 "mad.wide.u32 %%in, %%id, 24, %%in;\nmad.wide.u32 %%out, %%id, 8, %%out;\n"
                 "setp.ne.u32 %%z, 0, 0;\nsetp.ne.u32 %%q, 0, 0;\nld.param.u64 %%m, [mask];\n"
                 "shr.u64 %%m, %%m, %%id;\nand.b64 %%m, %%m, 1;\nsetp.ne.u64 %%g, %%m, 0;\n");
    for (int i = 0; i < 4; i++) {
        if (!op->bits[i]) continue;
        n += snprintf(text + n, room - (size_t)n, ".reg .b%u %%%c;\n", op->bits[i], names[i]);
        n += snprintf(text + n, room - (size_t)n, "ld.global.b%u %%%c, [%%%s+%d];\n", op->bits[i],
                      names[i], i < 3 ? "in" : "out", i < 3 ? i * 8 : 0);
    }
    guard_text(body, op->ptx, guarded ? "@%g " : "");
    snprintf(text + n, room - (size_t)n, "%s\nst.global.b%u [%%out], %%d;\nret;\n}\n", body,
             op->bits[3]);
}

static uint64_t low_bits(uint64_t v, uint32_t bits)
{
    return bits ? v << (64 - bits) >> (64 - bits) : 0;
}

static void check_op(const struct op *op, bool guarded, struct rng *rng)
{
    uint64_t in = buffer(THREADS * 24), out = buffer(THREADS * 8), *a = at(in), *d = at(out);
    uint64_t mask = guarded ? rng_next(rng) | 1 : UINT64_MAX;
    struct run r = {THREADS, 1, 1, {in, out, mask}, false};
    uint32_t wrong = 0;
    char text[4096];
    int result;
    for (uint32_t i = 0; i < THREADS * 3; i++) a[i] = random_value(rng);
    memset(d, 0x5A, THREADS * 8);
    op_text(text, sizeof text, op, guarded);
    result = run_ptx(text, &r, NULL, 0);
    CHECK_INT(result, 0);
    for (uint32_t i = 0; i < THREADS && wrong < 3 && !result; i++) {
        uint64_t va = low_bits(a[3 * i], op->bits[0]), vb = low_bits(a[3 * i + 1], op->bits[1]);
        uint64_t vc = low_bits(a[3 * i + 2], op->bits[2]), want = op->want(va, vb, vc);
        bool active = !guarded || (i < 64 && mask >> i & 1);
        if (!active) want = 0x5A5A5A5A5A5A5A5AULL;
        want = low_bits(want, op->bits[3]);
        if (low_bits(d[i], op->bits[3]) == want) continue;
        wrong++;
        test_fail(__FILE__, __LINE__,
                  "%s  a=%#llx b=%#llx c=%#llx want %#llx got %#llx (lane %u%s)", op->ptx,
                  (unsigned long long)va, (unsigned long long)vb, (unsigned long long)vc,
                  (unsigned long long)want, (unsigned long long)low_bits(d[i], op->bits[3]), i,
                  active ? "" : ", masked");
    }
    CHECK_INT(mem_free(in) | mem_free(out), 0);
}

/* ---- functions with a tolerance, in units of the last place of f32 ---- */

/* What is left of an angle whose turns are cut to 24 bits (measured, SEMANTICS.md). */
static double cut_turns(double a)
{
    int exponent;
    double m = frexp(a * 0x1.45f306p-3, &exponent);
    return 6.283185307179586 * fmod(ldexp(trunc(ldexp(m, 24)), exponent - 24), 1);
}

static double sine(double a)
{
    return sin(cut_turns(a));
}

static double cosine(double a)
{
    return cos(cut_turns(a));
}

static double inverse(double a)
{
    return 1 / a;
}

static const struct {
    const char *ptx;
    double (*want)(double);
    double low, high;
    int bits; /* the error is at most 2^-bits of the result */
} functions[] = {{"ex2.approx.f32 %d, %a;", exp2, -140, 128, 22},
                 {"lg2.approx.f32 %d, %a;", log2, 0, 1e30, 22},
                 {"sin.approx.f32 %d, %a;", sine, -100, 100, 23},
                 {"cos.approx.f32 %d, %a;", cosine, -100, 100, 23},
                 {"tanh.approx.f32 %d, %a;", tanh, -10, 10, 23},
                 {"sqrt.approx.f32 %d, %a;", sqrt, 0, 1e30, 23},
                 {"ex2.approx.ftz.f32 %d, %a;", exp2, -120, 10, 22},
                 {"rcp.approx.f32 %d, %a;", inverse, -100, 100, 23}};

static void check_function(size_t index, struct rng *rng)
{
    const struct op op = {"function", functions[index].ptx, {32, 0, 0, 32}, NULL};
    uint64_t in = buffer(THREADS * 24), out = buffer(THREADS * 8), *a = at(in), *d = at(out);
    struct run r = {THREADS, 1, 1, {in, out, UINT64_MAX}, false};
    char text[4096];
    for (uint32_t i = 0; i < THREADS; i++)
        a[3 * i] =
            f32((float)(functions[index].low + (functions[index].high - functions[index].low) *
                                                   (0.5 + 0.5 * rng_unit(rng))));
    op_text(text, sizeof text, &op, false);
    CHECK_INT(run_ptx(text, &r, NULL, 0), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        double want = functions[index].want(F(a[3 * i])), got = F(d[i]);
        CHECK(fabs(got - want) <= ldexp(fabs(want), -functions[index].bits) + 0x1p-149,
              "%s  a=%.9g want %.9g got %.9g", op.ptx, F(a[3 * i]), want, got);
    }
    CHECK_INT(mem_free(in) | mem_free(out), 0);
}

/* ---- memory ---- */

#define HEAD                                                                                 \
    ".version 8.8\n.target sm_100a\n.address_size 64\n"                                      \
    ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n{\n" \
    ".reg .pred %p<4>;\n.reg .b16 %h<16>;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;\n"           \
    ".reg .f32 %f<8>;\n.reg .b128 %q<2>;\n"                                                  \
    "ld.param.u64 %d0, [p0];\nld.param.u64 %d1, [p1];\nmov.u32 %r0, %tid.x;\n"
#define TAIL "\nret;\n}\n"

/* Copies of 16 bytes a thread, element by element: what arrives must be what was there. */
static void check_copies(struct rng *rng)
{
    static const char *const bodies[] = {
        "ld.global.v2.b64 {%d2, %d3}, [%d0]; st.global.v2.b64 [%d1], {%d2, %d3};",
        "ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f0, %f1, %f2, %f3}, [%d0];"
        "st.global.cs.v4.f32 [%d1], {%f0, %f1, %f2, %f3};",
        "ld.volatile.global.v4.u16 {%h0, %h1, %h2, %h3}, [%d0]; ld.global.b64 %d3, [%d0+8];"
        "st.volatile.global.v4.u16 [%d1], {%h0, %h1, %h2, %h3}; st.global.b64 [%d1+8], %d3;",
        "ld.global.b128 %q0, [%d0]; st.global.b128 [%d1], %q0;",
        "ld.relaxed.gpu.global.v2.u32 {%r2, %r3}, [%d0]; ld.acquire.sys.b64 %d3, [%d0+8];"
        "st.release.gpu.global.v2.u32 [%d1], {%r2, %r3}; st.weak.b64 [%d1+8], %d3;",
        "ld.global.v2.u8 {%r2, %r3}, [%d0]; ld.global.u16 %d2, [%d0+2]; ld.global.b32 %d4, [%d0+4];"
        "ld.global.b64 %d3, [%d0+8]; st.global.v2.u8 [%d1], {%r2, %r3}; st.global.u16 [%d1+2], %d2;"
        "st.global.b32 [%d1+4], %d4; st.global.b64 [%d1+8], %d3;",
        ".local .align 16 .b8 mine[32]; ld.global.v2.b64 {%d2, %d3}, [%d0];"
        "st.local.v2.b64 [mine+16], {%d2, %d3}; mov.u64 %d4, mine; cvta.local.u64 %d4, %d4;"
        "ld.v2.b64 {%d5, %d6}, [%d4+16]; st.global.v2.b64 [%d1], {%d5, %d6};",
        /* Parameters by addresses of 32 bits. */
        "mov.b32 %r2, p0; ld.param.b64 %d4, [%r2+8]; mad.wide.u32 %d4, %r0, 16, %d4;"
        "cvt.u64.u32 %d5, %r2; cvta.param.u64 %d5, %d5; ld.b64 %d5, [%d5];"
        "mad.wide.u32 %d5, %r0, 16, %d5; ld.v2.b64 {%d2, %d3}, [%d5]; st.v2.b64 [%d4], {%d2, %d3};",
        /* Elements of arrays, as memory and as addresses. */
        ".local .align 16 .b64 mine[4]; .local .align 16 .v2 .b64 pairs[2];"
        "ld.global.v2.b64 {%d2, %d3}, [%d0]; st.local.b64 mine[1], %d2; mov.u64 %d4, mine[1+1];"
        "st.local.b64 [%d4], %d3; ld.local.b64 %d5, [mine+8]; mov.u64 %d6, pairs[3];"
        "ld.local.b64 %d4, mine[2]; st.local.b64 [%d6], %d4; ld.local.b64 %d6, [pairs+24];"
        "st.global.v2.b64 [%d1], {%d5, %d6};",
        ".shared .align 16 .b8 all[4096]; shl.b32 %r1, %r0, 4; mov.u32 %r2, all; add.u32 %r1, %r1, "
        "%r2;"
        "ld.global.v2.b64 {%d2, %d3}, [%d0]; st.shared.v2.b64 [%r1], {%d2, %d3}; bar.sync 0;"
        "xor.b32 %r3, %r1, 16; sub.u32 %r3, %r3, %r2; xor.b32 %r3, %r3, 16; add.u32 %r3, %r3, %r2;"
        "cvt.u64.u32 %d4, %r3; cvta.shared.u64 %d4, %d4; ld.v2.b64 {%d5, %d6}, [%d4];"
        "st.global.v2.b64 [%d1], {%d5, %d6};"};
    for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
        uint64_t in = buffer(THREADS * 16), out = buffer(THREADS * 16), *a = at(in);
        struct run r = {THREADS, 1, 1, {in, out, 0, 0}, false};
        char text[4096];
        if (!test_case("copy %zu", b)) continue;
        for (uint32_t i = 0; i < THREADS * 2; i++) a[i] = rng_next(rng);
        snprintf(text, sizeof text, "%s%s%s%s", HEAD,
                 "mad.wide.u32 %d0, %r0, 16, %d0; mad.wide.u32 %d1, %r0, 16, %d1;\n", bodies[b],
                 TAIL);
        CHECK_INT(run_ptx(text, &r, NULL, 0), 0);
        CHECK(!memcmp(at(in), at(out), THREADS * 16), "the copy differs: %s", bodies[b]);
        CHECK_INT(mem_free(in) | mem_free(out), 0);
    }
}

/* Narrow loads into wider registers: 0x80F1 at an address, widened by each type. */
static void check_widening(void)
{
    static const struct {
        const char *type;
        uint64_t want;
    } rows[] = {{"u8", 0xF1},
                {"s8", 0xFFFFFFFFFFFFFFF1},
                {"b8", 0xF1},
                {"u16", 0x80F1},
                {"s16", 0xFFFFFFFFFFFF80F1},
                {"s32", 0x123480F1},
                {"b64", 0x9ABCDEF0123480F1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t in = buffer(8), out = buffer(8), value = 0x9ABCDEF0123480F1, got;
        struct run r = {1, 1, 1, {in, out, 0, 0}, false};
        char text[2048];
        if (!test_case("widening %s", rows[i].type)) continue;
        memcpy(at(in), &value, 8);
        snprintf(text, sizeof text, "%sld.global.%s %%d2, [%%d0]; st.global.b64 [%%d1], %%d2;%s",
                 HEAD, rows[i].type, TAIL);
        CHECK_INT(run_ptx(text, &r, NULL, 0), 0);
        memcpy(&got, at(out), 8);
        CHECK(got == rows[i].want, "want %#llx got %#llx", (unsigned long long)rows[i].want,
              (unsigned long long)got);
        CHECK_INT(mem_free(in) | mem_free(out), 0);
    }
}

/* Two CTAs of THREADS threads update one word, with operand tid: the final value, and old
 * values. */
static void check_atomics(void)
{
    static const struct {
        const char *op; /* %s: operand text is put by the row itself */
        uint64_t start, want;
    } rows[] = {{"atom.global.add.u32 %r2, [%d0], %r0;", 5, 5 + 2 * (THREADS * (THREADS - 1) / 2)},
                {"atom.add.u64 %d2, [%d0], 3;", 1, 1 + 2 * THREADS * 3ULL},
                {"red.global.add.s32 [%d0], -2;", 0, (uint32_t)(-4 * THREADS)},
                {"atom.global.max.s32 %r2, [%d0], %r0;", 0xFFFFFFF0, THREADS - 1},
                {"atom.global.min.u32 %r2, [%d0], %r0;", 77, 0},
                {"red.global.min.s64 [%d0], -9;", 4, (uint64_t)-9},
                {"atom.global.inc.u32 %r2, [%d0], 6;", 0, 2 * THREADS % 7},
                {"atom.global.dec.u32 %r2, [%d0], 4;", 0, (5 - 2 * THREADS % 5) % 5},
                {"red.relaxed.gpu.global.or.b32 [%d0], %r0;", 0, THREADS - 1},
                {"atom.global.and.b64 %d2, [%d0], -2;", 0xFF, 0xFE},
                {"red.global.xor.b32 [%d0], %r0;", 0x11, 0x11},
                {"red.global.add.f32 [%d0], 0f3F800000;", 0, 0x44000000}, /* 512.0 */
                {"red.global.add.f64 [%d0], 0d3FF0000000000000;", 0, 0x4080000000000000},
                {"mov.b32 %r3, 0x3C003C00; atom.global.add.noftz.f16x2 %r2, [%d0], %r3;", 0,
                 0x60006000},
                {"mov.b16 %h1, 0x3F80; red.global.add.noftz.bf16 [%d0], %h1;", 0,
                 0x4380}, /* sticks at 256 */
                {"red.global.add.v2.f32 [%d0], {0f3F800000, 0f40000000};", 0, 0x4480000044000000},
                {"L: ld.relaxed.gpu.global.u32 %r2, [%d0]; add.u32 %r3, %r2, 1;"
                 "atom.global.cas.b32 %r4, [%d0], %r2, %r3; setp.ne.u32 %p0, %r4, %r2; @%p0 bra L;",
                 10, 10 + 2 * THREADS},
                {"mov.b128 %q0, {5, 7}; atom.global.exch.b128 %q1, [%d0], %q0;", 0, 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t in = buffer(16), got;
        struct run r = {THREADS, 2, 1, {in, 0, 0, 0}, false};
        char text[2048];
        if (!test_case("%s", rows[i].op)) continue;
        memset(at(in), 0, 16);
        memcpy(at(in), &rows[i].start, 8);
        snprintf(text, sizeof text, "%s%s%s", HEAD, rows[i].op, TAIL);
        CHECK_INT(run_ptx(text, &r, NULL, 0), 0);
        memcpy(&got, at(in), 8);
        CHECK(got == rows[i].want, "want %#llx got %#llx", (unsigned long long)rows[i].want,
              (unsigned long long)got);
        CHECK_INT(mem_free(in), 0);
    }
}

/* Every old value of a shared atomic add is seen once. */
static void check_tickets(void)
{
    static const char body[] =
        ".shared .align 4 .u32 next; mov.u32 %r1, next; setp.eq.u32 %p0, %r0, 0;"
        "@%p0 st.shared.u32 [%r1], 0; bar.sync 0; atom.shared.add.u32 %r2, [%r1], 1;"
        "mad.wide.u32 %d2, %r2, 4, %d0; atom.global.add.u32 %r3, [%d2], 1;";
    uint64_t in = buffer(THREADS * 4);
    struct run r = {THREADS, 1, 1, {in, 0, 0, 0}, false};
    const uint32_t *seen = at(in);
    char text[2048];
    if (!test_case("tickets")) return;
    memset(at(in), 0, THREADS * 4);
    snprintf(text, sizeof text, "%s%s%s", HEAD, body, TAIL);
    CHECK_INT(run_ptx(text, &r, NULL, 0), 0);
    for (uint32_t i = 0; i < THREADS; i++) CHECK_INT(seen[i], 1);
    CHECK_INT(mem_free(in), 0);
}

/* Each CTA of a pair writes into the other's shared memory and reads its own. */
static void check_cluster(void)
{
    static const char body[] =
        ".shared .align 8 .b32 box[256]; mov.u32 %r1, box; mov.u32 %r2, %cluster_ctarank;"
        "xor.b32 %r3, %r2, 1; mad.lo.u32 %r1, %r0, 4, %r1; mapa.shared::cluster.u32 %r4, %r1, %r3;"
        "getctarank.shared::cluster.u32 %r5, %r4; mad.lo.u32 %r6, %r5, 1000, %r0;"
        "barrier.cluster.arrive; barrier.cluster.wait;"
        "st.shared::cluster.u32 [%r4], %r6; barrier.cluster.arrive; barrier.cluster.wait;"
        "cvt.u64.u32 %d2, %r1; cvta.shared.u64 %d2, %d2; isspacep.shared %p0, %d2;"
        "isspacep.global %p1, %d0; and.pred %p0, %p0, %p1; ld.u32 %r7, [%d2];"
        "@!%p0 mov.u32 %r7, 0; mad.lo.u32 %r8, %r2, 256, %r0; mad.wide.u32 %d3, %r8, 4, %d0;"
        "st.global.u32 [%d3], %r7;";
    uint64_t in = buffer(2 * THREADS * 4);
    struct run r = {THREADS, 2, 2, {in, 0, 0, 0}, false};
    const uint32_t *got = at(in);
    char text[4096];
    if (!test_case("distributed shared memory")) return;
    snprintf(text, sizeof text, "%s%s%s", HEAD, body, TAIL);
    CHECK_INT(run_ptx(text, &r, NULL, 0), 0);
    for (uint32_t i = 0; i < 2 * THREADS; i++) CHECK_INT(got[i], i / THREADS * 1000 + i % THREADS);
    CHECK_INT(mem_free(in), 0);
}

/* ---- faults: p0 has 4096 bytes, p1 is freed, p2 = 3 ---- */

static void check_faults(void)
{
    static const struct {
        const char *body;
        int result;
        const char *text;
    } rows[] = {
        {"ld.global.u32 %r1, [%d0+4112];", 700, "16 bytes past the end of a 4096-byte allocation"},
        {"st.global.u32 [%d0+-8], %r0;", 700, "8 bytes before a 4096-byte allocation"},
        {"ld.global.v2.b64 {%d2, %d3}, [%d0+4096];", 700, "0 bytes past the end"},
        {"add.u64 %d0, %d0, 4094; ld.global.u32 %r1, [%d0+2];", 700, "past the end"},
        {"ld.global.u32 %r1, [%d1+100];", 700, "\"kind\":\"use-after-free\""},
        {"ld.global.u32 %r1, [%d1+100];", 700, "100 bytes into a 512-byte allocation"},
        {"ld.global.u32 %r1, [%d0+2];", 716, "\"kind\":\"misaligned\""},
        {"ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0+8];", 716, "not a multiple of 16"},
        {"mov.u64 %d2, 0; st.u32 [%d2+16], 1;", 700, "a null pointer"},
        {"mov.u32 %r1, 0; ld.shared.u32 %r2, [%r1];", 700, "belong to the system"},
        {".shared .b32 x[4]; mov.u32 %r1, x; st.shared.u32 [%r1+4096], 1;", 700,
         "shared memory ends"},
        {".shared .b32 x; mov.u32 %r1, x; add.u32 %r1, %r1, 0x1000000; ld.shared.u32 %r2, [%r1];",
         700, "no CTA of rank 1"},
        {".shared .b32 x; mov.u64 %d2, x; cvta.shared.u64 %d2, %d2; ld.global.u32 %r1, [%d2];", 717,
         "generic address of shared memory"},
        {"atom.global.add.u32 %r1, [%d0+6], 1;", 716, "updates 4 bytes"},
        {"mov.u64 %d2, p0; cvta.param.u64 %d2, %d2; st.u32 [%d2], 1;", 700, "read-only"},
        {"mov.b32 %r1, p0; cvt.u64.u32 %d2, %r1; cvta.param.u64 %d2, %d2; st.u32 [%d2], 1;", 700,
         "read-only"},
        {"ld.local.u32 %r1, [1024];", 700, "local variables"}};
    static char findings[16384];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t in = buffer(4096), gone = buffer(512);
        struct run r = {1, 1, 1, {in, gone, 3, 0}, false};
        char text[2048];
        CHECK_INT(mem_free(gone), 0);
        if (test_case("fault: %s", rows[i].body)) {
            snprintf(text, sizeof text, "%s%s%s", HEAD, rows[i].body, TAIL);
            CHECK_INT(run_ptx(text, &r, findings, sizeof findings), rows[i].result);
            CHECK_TEXT(findings, rows[i].text);
        }
        CHECK_INT(mem_free(in), 0);
    }
}

/* Without checks, what hardware has mapped behind an allocation is there: up to a multiple of 512 bytes. */
static void check_slack(void)
{
    static const struct {
        const char *body;
        bool checked;
        int result;
    } rows[] = {
        {"ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%d0+16];", true, 700},
        {"ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%d0+16];", false, 0},
        {"st.global.b32 [%d0+508], 1; ld.global.b32 %r1, [%d0+508];", false, 0},
        {"ld.global.b32 %r1, [%d0+512];", false, 700},
        {"ld.global.b32 %r1, [%d1+32];", false, 700}, /* freed */
        {"ld.global.b64 %d2, [%d0+508];", false, 716},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t in = buffer(28), gone = buffer(28);
        struct run r = {1, 1, 1, {in, gone, 0, 0}, !rows[i].checked};
        char text[2048];
        CHECK_INT(mem_free(gone), 0);
        if (test_case("slack%s: %s", rows[i].checked ? ", checked" : "", rows[i].body)) {
            snprintf(text, sizeof text, "%s%s%s", HEAD, rows[i].body, TAIL);
            CHECK_INT(run_ptx(text, &r, NULL, 0), rows[i].result);
        }
        CHECK_INT(mem_free(in), 0);
    }
}

/* ---- the allocator ---- */

static void check_allocator(void)
{
    uint64_t a, b, base, bytes, before = mem_in_use();
    static uint8_t mine[256];
    if (!test_case("allocator")) return;
    CHECK_INT(mem_alloc(0, &a), 1);
    CHECK_INT(mem_alloc(1000, &a), 0);
    CHECK_INT(mem_alloc(1, &b), 0);
    CHECK(a % 256 == 0 && b % 256 == 0, "alignment");
    CHECK(b >= a + 1000 + 4096 || a >= b + 1 + 4096, "a guard lies between allocations");
    CHECK(mem_range(a + 999, 1, &base, &bytes) && base == a && bytes == 1000, "the range is found");
    CHECK(!mem_range(a + 999, 2, NULL, NULL), "a range ends with its allocation");
    CHECK_INT(*(uint8_t *)at(a), 0xC5);
    CHECK_INT(mem_in_use() - before, 1001);
    CHECK_INT(mem_free(a + 1), 1);
    CHECK_INT(mem_free(a) | mem_free(b), 0);
    CHECK_INT(mem_free(a), 1);
    CHECK_INT(mem_register(mine, sizeof mine), 0);
    CHECK_INT(mem_register(mine + 8, 8), 1);
    CHECK_INT(mem_free((uint64_t)(uintptr_t)mine), 1);
    CHECK_INT(mem_unregister(mine), 0);
    mem_set_limit(before + 4096);
    CHECK_INT(mem_alloc(8192, &a), 2);
    mem_set_limit(UINT64_MAX);
    CHECK_INT(mem_in_use() - before, 0);
}

int main(int argc, char **argv)
{
    struct rng rng;
    test_begin("sim_ops", argc, argv);
    snprintf(report_path, sizeof report_path, "/tmp/sim_ops.%ld.json", (long)getpid());
    setenv("HEWN_SIM_QUIET", "1", 1);
    setenv("HEWN_SIM_REPORT", report_path, 1);
    rng.state = test_seed();
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (!test_case("%s", ops[i].name)) continue;
        check_op(&ops[i], false, &rng);
        check_op(&ops[i], true, &rng);
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (test_case("%s", functions[i].ptx)) check_function(i, &rng);
    check_copies(&rng);
    check_widening();
    check_atomics();
    check_tickets();
    check_cluster();
    check_faults();
    check_slack();
    check_allocator();
    (void)remove(report_path);
    return test_end();
}
