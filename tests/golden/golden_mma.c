/*
 * Conformance of tensor-core sums: wgmma on one warpgroup, mma.sync on eight warps, each type under
 * six kinds of operands. wgmma operands lie in shared memory K-major without swizzle: 8 rows x 16 bytes
 * are 128 contiguous bytes, the next 16 bytes of K follow (LBO 128), the next 8 rows after them (SBO 256).
 */
#include "golden_operand.h"
#include "lib/golden_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- wgmma ---- */

static const struct wgmma_form {
    const char *d, *a, *b;
} wgmma_forms[] = {{"f32", "f16", "f16"},   {"f16", "f16", "f16"},   {"f32", "bf16", "bf16"},
                   {"f32", "tf32", "tf32"}, {"f32", "e4m3", "e4m3"}, {"f32", "e5m2", "e4m3"},
                   {"f16", "e4m3", "e5m2"}, {"s32", "s8", "s8"},     {"s32", "u8", "u8"}};
static const uint32_t wgmma_columns[] = {8, 24, 64, 128, 256};
enum {
    WGMMA_FORMS = sizeof wgmma_forms / sizeof wgmma_forms[0],
    WGMMA_WIDTHS = sizeof wgmma_columns / sizeof wgmma_columns[0],
    WGMMA_CASES = WGMMA_FORMS * WGMMA_WIDTHS * PATTERNS,
    A_BYTES = 2048,            /* 64 rows of 32 bytes */
    DESCRIPTOR_HIGH = 256 / 16 /* SBO */
};

static void wgmma_text(struct golden_case *c, const struct wgmma_form *f, uint32_t n)
{
    struct text t = {c->text, sizeof c->text};
    uint32_t registers = n / 2 / (strcmp(f->d, "f16") ? 1 : 2), tiles = A_BYTES + 32 * n;
    bool integer = !strcmp(f->d, "s32"), half = type_bytes(f->a) == 2;
    put(&t,
        ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n.maxntid 128, 1, 1\n{\n"
        ".reg .b32 %%lane, %%at, %%v, %%s, %%base, %%d<%u>;\n.reg .b64 %%in, %%out, %%p, %%a, "
        "%%b;\n"
        ".reg .pred %%more, %%one;\nmov.u32 %%lane, %%tid.x;\nmov.u32 %%base, smem;\n"
        "ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\n",
        registers);
    put_copy_to_shared(&t, tiles);
    put(&t,
        "fence.proxy.async.shared::cta;\nbar.sync 0;\nmad.wide.u32 %%in, %%lane, %u, "
        "%%in;\nmad.wide.u32 %%out, %%lane, %u, %%out;\n",
        4 * registers, 4 * registers);
    for (uint32_t i = 0; i < registers; i++)
        put(&t, "ld.global.b32 %%d%u, [%%in+%u];\n", i, tiles + 4 * i);
    put(&t,
        "and.b32 %%v, %%base, 0x3FFFF;\nshr.u32 %%v, %%v, 4;\ncvt.u64.u32 %%a, %%v;\n"
        "or.b64 %%a, %%a, 0x%x00080000;\nadd.u64 %%b, %%a, %u;\nsetp.eq.u32 %%one, 0, 0;\n"
        "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s {",
        DESCRIPTOR_HIGH, A_BYTES / 16, n, 32 / type_bytes(f->a), f->d, f->a, f->b);
    put_list(&t, "%d", registers);
    put(&t,
        "}, %%a, %%b, %%one%s;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned "
        "0;\n",
        integer ? ""
        : half  ? ", 1, 1, 0, 0"
                : ", 1, 1");
    for (uint32_t i = 0; i < registers; i++)
        put(&t, "st.global.b32 [%%out+%u], %%d%u;\n", 4 * i, i);
    put(&t, "ret;\n}\n");
}

/* Rows of 32 bytes in the layout at the top of this file. */
static void fill_tile(unsigned char *to, uint32_t rows, const char *type, enum pattern p, bool flip,
                      struct rng *r)
{
    uint32_t bytes = type_bytes(type);
    for (uint32_t row = 0; row < rows; row++) {
        double last = 0;
        int scale = p == EXTREME ? draw_scale(r, type) : 0;
        for (uint32_t k = 0; k < 32 / bytes; k++) {
            /* cancellation: A alternates in sign, B repeats each value, so that products cancel */
            double v = draw(r, p == CANCEL && flip ? UNIFORM : p, k, &last);
            if (p == CANCEL && flip) v = k % 2 ? last : (last = v);
            uint32_t code = encode(type, ldexp(v, scale)), at = k * bytes;
            memcpy(to + row / 8 * 256 + at / 16 * 128 + row % 8 * 16 + at % 16, &code, bytes);
        }
    }
}

static bool make_wgmma(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 7919ULL + 3};
    enum pattern p = (enum pattern)(index % PATTERNS);
    uint32_t n = wgmma_columns[index / PATTERNS % WGMMA_WIDTHS];
    const struct wgmma_form *f = &wgmma_forms[index / PATTERNS / WGMMA_WIDTHS];
    uint32_t words = 128 * (n / 2) / (strcmp(f->d, "f16") ? 1 : 2), tiles = A_BYTES + 32 * n;
    snprintf(c->name, sizeof c->name, "wgmma m64n%uk%u %s.%s.%s, %s", n, 32 / type_bytes(f->a),
             f->d, f->a, f->b, pattern_names[p]);
    set_case(c, f->d);
    wgmma_text(c, f, n);
    c->grid = 1;
    c->block = 128;
    c->dynamic_shared = tiles;
    c->in_bytes = tiles + 4 * (size_t)words;
    c->out_bytes = 4 * (size_t)words;
    c->in = calloc(1, c->in_bytes);
    if (!c->in) return true;
    fill_tile(c->in, 64, f->a, p, false, &r);
    fill_tile(c->in + A_BYTES, n, f->b, p, true, &r);
    for (uint32_t i = 0; i < words; i++) {
        uint32_t v = draw_sum(&r, f->d, p);
        memcpy(c->in + tiles + 4 * (size_t)i, &v, sizeof v);
    }
    return true;
}

/* ---- mma.sync ---- */

/* Registers a lane holds of A, B and C. */
static const struct mma_form {
    const char *text, *d, *a, *b;
    uint32_t regs_a, regs_b, regs_c;
} mma_forms[] = {{"m16n8k8.row.col.f32.f16.f16.f32", "f32", "f16", "f16", 2, 1, 4},
                 {"m16n8k16.row.col.f32.f16.f16.f32", "f32", "f16", "f16", 4, 2, 4},
                 {"m16n8k16.row.col.f16.f16.f16.f16", "f16", "f16", "f16", 4, 2, 2},
                 {"m16n8k8.row.col.f32.bf16.bf16.f32", "f32", "bf16", "bf16", 2, 1, 4},
                 {"m16n8k16.row.col.f32.bf16.bf16.f32", "f32", "bf16", "bf16", 4, 2, 4},
                 {"m16n8k4.row.col.f32.tf32.tf32.f32", "f32", "tf32", "tf32", 2, 1, 4},
                 {"m16n8k8.row.col.f32.tf32.tf32.f32", "f32", "tf32", "tf32", 4, 2, 4},
                 {"m16n8k32.row.col.f32.e4m3.e4m3.f32", "f32", "e4m3", "e4m3", 4, 2, 4},
                 {"m16n8k32.row.col.f32.e5m2.e4m3.f32", "f32", "e5m2", "e4m3", 4, 2, 4},
                 {"m16n8k16.row.col.f32.e4m3.e5m2.f32", "f32", "e4m3", "e5m2", 2, 1, 4},
                 {"m16n8k32.row.col.f16.e4m3.e5m2.f16", "f16", "e4m3", "e5m2", 4, 2, 2},
                 {"m16n8k16.row.col.s32.s8.s8.s32", "s32", "s8", "s8", 2, 1, 4},
                 {"m16n8k32.row.col.s32.s8.s8.s32", "s32", "s8", "s8", 4, 2, 4},
                 {"m16n8k32.row.col.s32.u8.s8.s32", "s32", "u8", "s8", 4, 2, 4},
                 {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", "s32", "s8", "s8", 4, 2, 4}};
enum { MMA_FORMS = sizeof mma_forms / sizeof mma_forms[0], MMA_WARPS = 8 };

static void mma_text(struct golden_case *c, const struct mma_form *f, uint32_t words)
{
    struct text t = {c->text, sizeof c->text};
    put(&t,
        ".version 8.7\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
        ".reg .b32 %%lane, %%cta, %%a<4>, %%b<2>, %%c<4>;\n.reg .b64 %%in, %%out;\n"
        "mov.u32 %%lane, %%tid.x;\nmov.u32 %%cta, %%ctaid.x;\nmad.lo.u32 %%lane, %%cta, 32, "
        "%%lane;\n"
        "ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\nmad.wide.u32 %%in, %%lane, %u, "
        "%%in;\n"
        "mad.wide.u32 %%out, %%lane, %u, %%out;\n",
        4 * words, 4 * f->regs_c);
    for (uint32_t i = 0; i < words; i++) {
        uint32_t b = i - f->regs_a, k = b - f->regs_b;
        char kind = i < f->regs_a ? 'a' : b < f->regs_b ? 'b' : 'c';
        put(&t, "ld.global.b32 %%%c%u, [%%in+%u];\n", kind,
            kind == 'a'   ? i
            : kind == 'b' ? b
                          : k,
            4 * i);
    }
    put(&t, "mma.sync.aligned.%s {", f->text);
    put_list(&t, "%c", f->regs_c);
    put(&t, "}, {");
    put_list(&t, "%a", f->regs_a);
    put(&t, "}, {");
    put_list(&t, "%b", f->regs_b);
    put(&t, "}, {");
    put_list(&t, "%c", f->regs_c);
    put(&t, "};\n");
    for (uint32_t i = 0; i < f->regs_c; i++)
        put(&t, "st.global.b32 [%%out+%u], %%c%u;\n", 4 * i, i);
    put(&t, "ret;\n}\n");
}

static bool make_mma(struct golden_case *c, uint32_t index)
{
    struct rng r = {index * 104729ULL + 5};
    enum pattern p = (enum pattern)(index % PATTERNS);
    const struct mma_form *f = &mma_forms[index / PATTERNS];
    uint32_t words = f->regs_a + f->regs_b + f->regs_c;
    snprintf(c->name, sizeof c->name, "mma.sync %s, %s", f->text, pattern_names[p]);
    set_case(c, f->d);
    mma_text(c, f, words);
    c->grid = MMA_WARPS;
    c->block = 32;
    c->in_bytes = (size_t)MMA_WARPS * 32 * words * 4;
    c->out_bytes = (size_t)MMA_WARPS * 32 * f->regs_c * 4;
    c->in = calloc(1, c->in_bytes);
    for (uint32_t lane = 0; c->in && lane < MMA_WARPS * 32; lane++) {
        double last = 0.5;
        for (uint32_t i = 0; i < words; i++) {
            uint32_t v = i < f->regs_a ? draw_register(&r, f->a, p, &last)
                         : i < f->regs_a + f->regs_b
                             ? draw_register(&r, f->b, p == CANCEL ? UNIFORM : p, &last)
                             : draw_sum(&r, f->d, p);
            memcpy(c->in + ((size_t)lane * words + i) * 4, &v, sizeof v);
        }
    }
    return true;
}

static bool make(struct golden_case *c, uint32_t index)
{
    if (index < WGMMA_CASES) return make_wgmma(c, index);
    index -= WGMMA_CASES;
    return index < MMA_FORMS * PATTERNS && make_mma(c, index);
}

const struct golden_family golden_mma = {"mma", make};
