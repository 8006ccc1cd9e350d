/*
 * Warp-level matrices on the simulator: ldmatrix and its relatives against permutations written from the
 * PTX ISA, the forms of sm_100 among them, mma.sync in double, and what is refused. golden_wmma.c and
 * golden_warp_mma.c hold the forms of sm_90a against an H200.
 */
#include "tensor_model.h"
#include "ops/table.h"

#include "machine/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

/* A warp loads with ldmatrix, moves, stores with stmatrix; the model permutes. */
static void test_rows(uint32_t count, bool trans, bool shape_first)
{
    static const char *const load[2][2] = {{".x%u.m8n8", ".x%u.m8n8.trans"},
                                           {".m8n8.x%u", ".m8n8.x%u.trans"}};
    char rows[32], back[32];
    const uint64_t in = device_buffer(512), loaded = device_buffer(128 * 5),
                   out = device_buffer(512);
    uint16_t *source = host(in), *stored = host(out);
    uint32_t *regs = host(loaded), want;
    struct text t;
    FILE *f = text_open(&t);
    snprintf(rows, sizeof rows, load[shape_first][trans], count);
    snprintf(back, sizeof back, shape_first ? ".m8n8.x%u.trans" : ".x%u.trans.m8n8", count);
    for (uint32_t i = 0; i < 256; i++) source[i] = (uint16_t)rng_next(&rng);
    emit_header(f, "sm_90a", ".shared .align 128 .b8 tiles[1024];\n");
    fprintf(f,
            "mov.u32 %%r0,%%tid.x; mul.lo.u32 %%r1,%%r0,16; mov.u32 %%r2,tiles; "
            "add.u32 %%r3,%%r2,%%r1; cvt.u64.u32 %%d1,%%r1; ld.param.u64 %%d0,[p0];\n"
            "add.u64 %%d0,%%d0,%%d1; ld.global.v4.b32 {%%r4,%%r5,%%r6,%%r7},[%%d0];\n"
            "st.shared.v4.b32 [%%r3],{%%r4,%%r5,%%r6,%%r7}; bar.sync 0;\n"
            "ldmatrix.sync.aligned%s.shared.b16 ",
            rows);
    emit_list(f, "%v", 0, count);
    fprintf(f, ",[%%r3];\nmovmatrix.sync.aligned.m8n8.trans.b16 %%v4,%%v0;\n"
               "ld.param.u64 %%d2,[p1]; mul.wide.u32 %%d3,%%r0,20; add.u64 %%d2,%%d2,%%d3;\n");
    for (uint32_t i = 0; i < count; i++) fprintf(f, "st.global.b32 [%%d2+%u],%%v%u;\n", i * 4, i);
    fprintf(f,
            "st.global.b32 [%%d2+16],%%v4;\n"
            "stmatrix.sync.aligned%s.shared::cta.b16 [%%r3+512],",
            back);
    emit_list(f, "%v", 0, count);
    fprintf(f, ";\nbar.sync 0; ld.shared.v4.b32 {%%r4,%%r5,%%r6,%%r7},[%%r3+512];\n"
               "ld.param.u64 %%d0,[p2]; add.u64 %%d0,%%d0,%%d1;\n"
               "st.global.v4.b32 [%%d0],{%%r4,%%r5,%%r6,%%r7};\nret;\n}\n");
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"h200", 1, 32, 0, {in, loaded, out}, 0}, NULL, 0), 0);
    for (uint32_t k = 0; k < count; k++) {
        const uint16_t *tile = source + 64 * k;
        for (uint32_t lane = 0; lane < 32; lane++) {
            const uint32_t g = lane / 4, q = lane % 4 * 2;
            const uint32_t plain = tile[g * 8 + q] | (uint32_t)tile[g * 8 + q + 1] << 16;
            const uint32_t turned = tile[q * 8 + g] | (uint32_t)tile[q * 8 + 8 + g] << 16;
            want = trans ? turned : plain;
            CHECK_INT(regs[lane * 5 + k], want);
            want = trans ? plain : turned;
            if (k == 0) CHECK_INT(regs[lane * 5 + 4], want);
        }
        for (uint32_t i = 0; i < 64; i++)
            CHECK_INT(stored[64 * k + i], trans ? tile[i] : tile[i % 8 * 8 + i / 8]);
    }
    free(t.at);
    (void)mem_free(in);
    (void)mem_free(loaded);
    (void)mem_free(out);
}

/* ---- bytes, sm_100 ---- */

enum { ROW = 16, ROWS = 32, LANES = 32 };

/* A form of ldmatrix on bytes, or on codes packed to `bits` each. */
static const struct load {
    const char *shape, *type;
    uint32_t bits;
    bool tall; /* m16n16.trans */
    uint32_t most;
} loads[] = {{"m16n16", "b8", 8, true, 2},
             {"m16n16", "b8x16.b6x16_p32", 6, true, 2},
             {"m16n16", "b8x16.b4x16_p64", 4, true, 2},
             {"m8n16", "b8x16.b6x16_p32", 6, false, 4},
             {"m8n16", "b8x16.b4x16_p64", 4, false, 4}};

/* Element `column` of a row as the byte that a register gets: code i of a packed row is bits i * bits on,
 * and fills its byte as in tcgen05.cp, 4-bit codes from bit 2. */
static uint8_t row_byte(const uint8_t *row, uint32_t bits, uint32_t column)
{
    uint32_t code = 0;
    for (uint32_t i = 0; i < bits; i++) {
        const uint32_t bit = column * bits + i;
        code |= (uint32_t)(row[bit / 8] >> bit % 8 & 1) << i;
    }
    return (uint8_t)(bits == 4 ? code << 2 : code);
}

/* Lane l's row lies at slot (7 * l) % 32. */
static void emit_rows(FILE *f)
{
    fprintf(f, "mov.u32 %%r0,%%tid.x; mul.lo.u32 %%r1,%%r0,16; mov.u32 %%r2,tiles; "
               "add.u32 %%r3,%%r2,%%r1; cvt.u64.u32 %%d1,%%r1; ld.param.u64 %%d0,[p0];\n"
               "add.u64 %%d0,%%d0,%%d1; ld.global.v4.b32 {%%r4,%%r5,%%r6,%%r7},[%%d0];\n"
               "st.shared.v4.b32 [%%r3],{%%r4,%%r5,%%r6,%%r7}; bar.sync 0;\n"
               "mul.lo.u32 %%r8,%%r0,7; and.b32 %%r8,%%r8,31; mul.lo.u32 %%r8,%%r8,16; "
               "add.u32 %%r8,%%r8,%%r2;\n");
}

static void test_load(const struct load *form, uint32_t count)
{
    const uint64_t in = device_buffer(ROW * ROWS), out = device_buffer(LANES * 16);
    const uint32_t registers = form->tall ? 2 * count : count;
    uint8_t *source = host(in);
    const uint32_t *got = host(out);
    struct text t;
    FILE *f = text_open(&t);
    for (uint32_t i = 0; i < ROW * ROWS; i++) source[i] = (uint8_t)rng_next(&rng);
    emit_header(f, "sm_100a", ".shared .align 128 .b8 tiles[512];\n");
    emit_rows(f);
    fprintf(f, "ldmatrix.sync.aligned.%s.x%u%s.shared.%s ", form->shape, count,
            form->tall ? ".trans" : "", form->type);
    emit_list(f, "%v", 0, registers);
    fprintf(f, ",[%%r8];\nld.param.u64 %%d2,[p1]; add.u64 %%d2,%%d2,%%d1;\n");
    for (uint32_t i = 0; i < registers; i++)
        fprintf(f, "st.global.b32 [%%d2+%u],%%v%u;\n", i * 4, i);
    fprintf(f, "ret;\n}\n");
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"b200", 1, 32, 0, {in, out}, 0}, NULL, 0), 0);
    for (uint32_t i = 0; i < LANES * registers * 4; i++) {
        const uint32_t lane = i / 4 / registers, r = i / 4 % registers, j = i % 4;
        const uint32_t row = form->tall ? 16 * (r / 2) + lane % 4 * 4 + j : 8 * r + lane / 4;
        const uint32_t column = form->tall ? lane / 4 + 8 * (r % 2) : lane % 4 * 4 + j;
        CHECK_INT(got[lane * 4 + r] >> 8 * j & 255,
                  row_byte(source + row * 7 % ROWS * ROW, form->bits, column));
    }
    free(t.at);
    (void)mem_free(in);
    (void)mem_free(out);
}

/* Registers are the input, four a lane. */
static void test_store(uint32_t count)
{
    const uint64_t in = device_buffer(ROW * ROWS), out = device_buffer(ROW * ROWS);
    const uint32_t *source = host(in);
    const uint8_t *got = host(out);
    struct text t;
    FILE *f = text_open(&t);
    for (uint32_t i = 0; i < ROW * ROWS; i++) ((uint8_t *)host(in))[i] = (uint8_t)rng_next(&rng);
    emit_header(f, "sm_100a", ".shared .align 128 .b8 tiles[512];\n");
    emit_rows(f);
    fprintf(f, "stmatrix.sync.aligned.m16n8.x%u.trans.shared.b8 [%%r8],", count);
    emit_list(f, "%r", 4, count);
    fprintf(f, ";\nbar.sync 0; ld.shared.v4.b32 {%%r4,%%r5,%%r6,%%r7},[%%r3];\n"
               "ld.param.u64 %%d2,[p1]; add.u64 %%d2,%%d2,%%d1;\n"
               "st.global.v4.b32 [%%d2],{%%r4,%%r5,%%r6,%%r7};\nret;\n}\n");
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"b200", 1, 32, 0, {in, out}, 0}, NULL, 0), 0);
    for (uint32_t i = 0; i < 8 * count * ROW; i++) {
        const uint32_t k = i / ROW / 8, row = i / ROW % 8, column = i % ROW;
        const uint32_t lane = column % 8 * 4 + row / 2, j = row % 2 + column / 8 * 2;
        CHECK_INT(got[(8 * k + row) * 7 % ROWS * ROW + column],
                  source[lane * 4 + k] >> 8 * j & 255);
    }
    free(t.at);
    (void)mem_free(in);
    (void)mem_free(out);
}

/* ---- mma.sync ---- */

static void test_mma_sync(enum format format, bool half)
{
    const uint64_t in = device_buffer(32 * 10 * 4), out = device_buffer(32 * 4 * 4);
    const uint32_t c_regs = half ? 2 : 4;
    const char *type = half ? "f16" : "f32";
    uint32_t *words = host(in);
    const uint32_t *got = host(out);
    struct text t;
    FILE *f = text_open(&t);
    for (uint32_t i = 0; i < 320; i++) {
        const enum format kind = i % 10 < 6 ? format : half ? F16 : TF32;
        for (uint32_t j = 0; j < 4; j += formats[kind].bytes)
            random_element(kind, (uint8_t *)&words[i] + j);
    }
    emit_header(f, "sm_90a", "");
    fprintf(f, "mov.u32 %%r0,%%tid.x; ld.param.u64 %%d0,[p0]; mul.wide.u32 %%d1,%%r0,40; "
               "add.u64 %%d0,%%d0,%%d1;\n");
    for (uint32_t i = 0; i < 10; i++) fprintf(f, "ld.global.b32 %%v%u,[%%d0+%u];\n", i, i * 4);
    fprintf(f, "mma.sync.aligned.m16n8k16.row.col.%s.%s.%s.%s ", type, formats[format].name,
            formats[format].name, type);
    emit_list(f, "%v", 10, c_regs);
    fprintf(f, ",{%%v0,%%v1,%%v2,%%v3},{%%v4,%%v5},");
    emit_list(f, "%v", 6, c_regs);
    fprintf(f, ";\nld.param.u64 %%d0,[p1]; mul.wide.u32 %%d1,%%r0,16; add.u64 %%d0,%%d0,%%d1;\n");
    for (uint32_t i = 0; i < c_regs; i++)
        fprintf(f, "st.global.b32 [%%d0+%u],%%v%u;\n", i * 4, 10 + i);
    fprintf(f, "ret;\n}\n");
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"h200", 1, 32, 0, {in, out}, 0}, NULL, 0), 0);
    for (uint32_t m = 0; m < 16; m++) {
        for (uint32_t n = 0; n < 8; n++) {
            const uint32_t lane = m % 8 * 4 + n / 2, i = m / 8 * 2 + n % 2;
            const uint32_t reg = half ? i / 2 : i, shift = half ? i % 2 * 16 : 0;
            double want = cell_value(words[lane * 10 + 6 + reg] >> shift, half);
            double magnitude = fabs(want);
            for (uint32_t k = 0; k < 16; k++) {
                uint16_t a = (uint16_t)(words[(m % 8 * 4 + k % 8 / 2) * 10 + m / 8 + k / 8 * 2] >>
                                        k % 2 * 16);
                uint16_t b = (uint16_t)(words[(n * 4 + k % 8 / 2) * 10 + 4 + k / 8] >> k % 2 * 16);
                const double product =
                    element_value(format, (uint8_t *)&a) * element_value(format, (uint8_t *)&b);
                want += product;
                magnitude += fabs(product);
            }
            CHECK(close_enough(cell_value(got[lane * 4 + reg] >> shift, half), want, magnitude, 16,
                               24, half),
                  "D(%u,%u): want %g got %g", m, n, want,
                  cell_value(got[lane * 4 + reg] >> shift, half));
        }
    }
    free(t.at);
    (void)mem_free(in);
    (void)mem_free(out);
}

/* ---- what is refused ---- */

/* Bodies on %v0 to %v15, and what must be said. */
static const struct refusal {
    const char *name, *target, *body, *says;
} refusals[] = {
    {"wgmma of s8 with N = 40", "sm_90a",
     "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%v0,%v1,%v2,%v3,%v4,%v5,%v6,%v7,%v8,%v9,"
     "%v10,%v11,%v12,%v13,%v14,%v15,%v0,%v1,%v2,%v3},%d0,%d1,%p0;",
     "a multiple of 16, not 40"},
    {"a selector that the form lacks", "sm_90a",
     "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%v0,%v1,%v2,%v3},{%v4,%v5,%v6,%v7},"
     "{%v8,%v9,%v10,%v11},{%v0,%v1,%v2,%v3},%v12,0x2;",
     "a constant below 2"},
    {"C and D of two types", "sm_90a",
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%v0,%v1,%v2,%v3},{%v4,%v5,%v6,%v7},"
     "{%v8,%v9},{%v0,%v1};",
     "the same type"},
    {"block-scaled mma.sync", "sm_100a",
     "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32 {%v0,%v1,%v2,%v3},"
     "{%v4,%v5,%v6,%v7},{%v8,%v9},{%v0,%v1,%v2,%v3};",
     "not modelled"},
    {"ldmatrix of bytes before sm_100", "sm_90a",
     "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%v0,%v1},[tiles];", "target of sm_100"},
};

static void test_refusal(const struct refusal *r)
{
    struct ptx_module *module = NULL;
    struct kernel *kernel = NULL;
    struct ptx_diag diag = {{0}};
    struct text t;
    FILE *f = text_open(&t);
    emit_header(f, r->target, ".shared .align 128 .b8 tiles[512];\n");
    fprintf(f, "%s\nret;\n}\n", r->body);
    (void)fclose(f);
    if (ptx_parse(t.at, strlen(t.at), &module, &diag) ||
        kernel_decode(module, &module->entries[0], op_binders, &kernel, &diag))
        CHECK_TEXT(diag.text, r->says);
    else
        CHECK_TEXT(kernel->unsupported ? kernel->unsupported : "", r->says);
    kernel_free(kernel);
    ptx_module_free(module);
    free(t.at);
}

/* Two elements of one group in one place. */
static void test_metadata(void)
{
    char findings[4096];
    struct text t;
    FILE *f = text_open(&t);
    emit_header(f, "sm_90a", "");
    fprintf(f, "mov.b32 %%v12,0x44444445;\n"
               "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%%v0,%%v1,%%v2,%%v3},"
               "{%%v4,%%v5,%%v6,%%v7},{%%v8,%%v9,%%v10,%%v11},{%%v0,%%v1,%%v2,%%v3},%%v12,0x0;\n"
               "ret;\n}\n");
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"h200", 1, 32, 0, {0}, 0}, findings, sizeof findings),
              715);
    CHECK_TEXT(findings, "one place");
    free(t.at);
}

void warp_cases(void)
{
    for (uint32_t i = 0; i < 12; i++) {
        const uint32_t count = 1U << i / 4;
        const bool trans = i & 1, shape_first = i & 2;
        if (test_case("ldmatrix x%u%s, shape %s", count, trans ? ".trans" : "",
                      shape_first ? "first" : "last"))
            test_rows(count, trans, shape_first);
    }
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
        for (uint32_t count = 1; count <= loads[i].most; count *= 2)
            if (test_case("ldmatrix %s.x%u %s", loads[i].shape, count, loads[i].type))
                test_load(&loads[i], count);
    for (uint32_t count = 1; count <= 4; count *= 2)
        if (test_case("stmatrix m16n8.x%u.b8", count)) test_store(count);
    if (test_case("mma.sync bf16")) test_mma_sync(BF16, false);
    if (test_case("mma.sync f16")) test_mma_sync(F16, false);
    if (test_case("mma.sync f16 into f16")) test_mma_sync(F16, true);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (test_case("%s", refusals[i].name)) test_refusal(&refusals[i]);
    if (test_case("metadata with one place twice")) test_metadata();
}
