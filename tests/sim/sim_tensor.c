/*
 * The simulator's tensor cores against scalar models written here from the PTX ISA's formulas: number
 * formats, canonical layouts and swizzles, tensor-memory shapes, wgmma, tcgen05.mma, ldmatrix and its
 * kin, and the rules whose breach is a finding.
 *
 * A matrix case fills shared memory with random elements; the model reads A and B out of the same
 * image by formula, in double. Sums of the simulator round to float after each of K products, so
 * |got - want| <= (K + 1) * 2^-24 * sum |a * b| (plus the rounding of an f16 result).
 */
#include "tensor_model.h"

#include "machine/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- number formats ---- */

static void test_formats(void)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        const double half = f16_to_double((uint16_t)h), got = (double)half_to_float((uint16_t)h);
        const double brain = bf16_to_double((uint16_t)h);
        if (isnan(half)) {
            CHECK(isnan(got), "f16 0x%04x should be NaN", h);
            CHECK_INT(float_to_half(half_to_float((uint16_t)h)), 0x7FFF);
        } else {
            CHECK(got == half && signbit(got) == signbit(half), "f16 0x%04x: want %g got %g", h,
                  half, got);
            CHECK_INT(float_to_half((float)half), h);
        }
        if (!isnan(brain)) {
            CHECK((double)bf16_to_float((uint16_t)h) == brain, "bf16 0x%04x", h);
            CHECK_INT(float_to_bf16((float)brain), h);
        }
    }
    for (uint32_t i = 0; i < 2000000; i++) {
        uint32_t bits = (uint32_t)rng_next(&rng);
        float f;
        if (i & 1U) bits = (bits & 0x8FFFFFFFU) | 0x30000000U | (bits >> 3 & 0x08000000U);
        if (i & 2U) bits &= 0xFFFFF000U; /* ties */
        memcpy(&f, &bits, sizeof f);
        if (isnan(f)) continue;
        CHECK(float_to_half(f) == double_to_f16((double)f), "f16 of %a: want 0x%04x got 0x%04x",
              (double)f, double_to_f16((double)f), float_to_half(f));
        CHECK(float_to_bf16(f) == double_to_bf16((double)f), "bf16 of %a: want 0x%04x got 0x%04x",
              (double)f, double_to_bf16((double)f), float_to_bf16(f));
    }
    for (uint32_t v = 0; v < 256; v++) {
        const uint8_t byte = (uint8_t)v;
        for (int format = E4M3; format <= E5M2; format++) {
            const double want = element_value((enum format)format, &byte);
            float got;
            tensor_convert(formats[format].tensor, &byte, 1, &got);
            CHECK(isnan(want) ? isnan(got) : (double)got == want, "%s 0x%02x: want %g got %g",
                  formats[format].name, v, want, (double)got);
        }
    }
}

/* ---- layouts ---- */

static void test_gather(enum format format, uint32_t swizzle, bool mn_major)
{
    static float tile[TENSOR_MAX_MN * TENSOR_MAX_K];
    const uint32_t k_count = 32U / formats[format].bytes;
    fill_image(format, format);
    for (uint32_t mn_count = 16; mn_count <= 256; mn_count += 80) {
        struct smem_operand o = random_operand(swizzle, mn_major, format, A_START);
        o.phase = 128U * rng_below(&rng, 2) * rng_below(&rng, 8);
        for (int order = TILE_K_INNER; order <= TILE_QUADS; order++) {
            static const uint32_t quads[8] = {0, 4, 1, 5, 2, 6, 3, 7};
            const bool good = tensor_gather(&o, formats[format].tensor, image[0], IMAGE, mn_count,
                                            k_count, (enum tile_order)order, tile);
            CHECK(good, "gather says out of bounds");
            for (uint32_t i = 0; i < mn_count * k_count; i++) {
                const uint32_t mn = i / k_count, k = i % k_count, at = model_address(&o, mn, k);
                const uint32_t place = order == TILE_K_INNER ? i
                                       : order == TILE_MN_INNER
                                           ? k * mn_count + mn
                                           : (mn / 8 * k_count + k) * 8 + quads[mn % 8];
                CHECK_INT(smem_element(&o, mn, k), at);
                CHECK((double)tile[place] == element_value(format, &image[0][at]),
                      "order %d, element (%u,%u)", order, mn, k);
            }
        }
        CHECK(!tensor_gather(&o, formats[format].tensor, image[0], o.start + 16, mn_count, k_count,
                             TILE_K_INNER, tile),
              "a tile beyond the window must be refused");
    }
}

/* ---- tensor memory ---- */

static const struct shape {
    const char *name;
    uint32_t regs, columns, most, lanes;
} shapes[] = {{"32x32b", 1, 1, 128, 32},
              {"16x64b", 1, 2, 128, 16},
              {"16x128b", 2, 4, 64, 16},
              {"16x256b", 4, 8, 32, 16},
              {"16x32bx2", 1, 1, 128, 16}};

/* Row and column of register r of thread t, from the figures of "Data Movement Shape": matrix
 * fragments of 8 rows x 4 threads, 16x64b with rows interleaved. */
static void model_place(uint32_t shape, uint32_t t, uint32_t r, uint32_t split, uint32_t *lane,
                        uint32_t *column)
{
    switch (shape) {
    case 0: *lane = t, *column = r; break;
    case 1: *lane = t / 4 + t % 2 * 8, *column = r * 2 + t % 4 / 2; break;
    case 2: *lane = t / 4 + r % 2 * 8, *column = r / 2 * 4 + t % 4; break;
    case 3: *lane = t / 4 + r / 2 % 2 * 8, *column = r / 4 * 8 + t % 4 * 2 + r % 2; break;
    default: *lane = t % 16, *column = r + t / 16 * split; break;
    }
}

/* A form of tcgen05.ld and .st, and where it goes. */
struct placed {
    uint32_t shape, times, regs, split, column, lane;
    bool halves;
};

/* The kernel: all cells as given, a load, a store of its complement, all cells as they are then. */
static char *shape_text(const struct placed *p)
{
    const char *name = shapes[p->shape].name;
    char immediate[16] = "";
    struct text t;
    FILE *f = text_open(&t);
    if (p->shape == 4) (void)snprintf(immediate, sizeof immediate, ",%u", p->split);
    emit_header(f, "sm_100a", "");
    emit_tmem_open(f, 1);
    fprintf(f, "ld.param.u64 %%d0,[p0];\n");
    emit_columns(f, true, 512, "LA");
    fprintf(f, "add.u32 %%r8,%%r3,%u;\ntcgen05.ld.sync.aligned.%s.x%u%s.b32 ",
            p->lane << 16 | p->column, name, p->times, p->halves ? ".pack::16b" : "");
    emit_list(f, "%v", 0, p->regs);
    fprintf(f,
            ",[%%r8]%s;\ntcgen05.wait::ld.sync.aligned;\nld.param.u64 %%d2,[p2];\n"
            "mul.wide.u32 %%d3,%%r0,%u; add.u64 %%d2,%%d2,%%d3;\n",
            immediate, p->regs * 4);
    for (uint32_t i = 0; i < p->regs; i++)
        fprintf(f, "st.global.b32 [%%d2+%u],%%v%u; not.b32 %%v%u,%%v%u;\n", i * 4, i, i, i);
    fprintf(f, "tcgen05.st.sync.aligned.%s.x%u%s.b32 [%%r8]%s,", name, p->times,
            p->halves ? ".unpack::16b" : "", immediate);
    emit_list(f, "%v", 0, p->regs);
    fprintf(f, ";\ntcgen05.wait::st.sync.aligned;\nld.param.u64 %%d0,[p1];\n");
    emit_columns(f, false, 512, "LB");
    emit_tmem_close(f, 1);
    (void)fclose(f);
    return t.at;
}

/* The cell of a thread's register; a pair of halves begins there. */
static uint32_t cell_at(const struct placed *p, uint32_t thread, uint32_t r)
{
    uint32_t x, c;
    model_place(p->shape, thread % 32, r, p->halves ? 0 : p->split, &x, &c);
    if (p->halves) c = c * 2 + (p->shape == 4 ? thread % 32 / 16 * p->split : 0);
    return (p->column + c) * 128 + thread / 32 * 32 + p->lane + x;
}

static void check_loaded(const struct placed *p, const uint32_t *cells, const uint32_t *got)
{
    for (uint32_t thread = 0; thread < 128; thread++) {
        for (uint32_t r = 0; r < p->regs; r++) {
            const uint32_t *cell = &cells[cell_at(p, thread, r)];
            const uint32_t want = p->halves ? (cell[0] & 0xFFFFU) | cell[128] << 16 : cell[0];
            CHECK(got[thread * p->regs + r] == want, "thread %u register %u: want %08x got %08x",
                  thread, r, want, got[thread * p->regs + r]);
        }
    }
}

/* The stores, after all loads: halves that overlap hold the same. */
static void check_stored(const struct placed *p, const uint32_t *cells, const uint32_t *after)
{
    static uint32_t want[CELLS];
    memcpy(want, cells, sizeof want);
    for (uint32_t thread = 0; thread < 128; thread++) {
        for (uint32_t r = 0; r < p->regs; r++) {
            const uint32_t at = cell_at(p, thread, r);
            if (p->halves) {
                want[at] = (cells[at] & 0xFFFF0000U) | (~cells[at] & 0xFFFFU);
                want[at + 128] = (cells[at + 128] & 0xFFFF0000U) | (~cells[at + 128] & 0xFFFFU);
            } else {
                want[at] = ~cells[at];
            }
        }
    }
    for (uint32_t i = 0; i < CELLS; i++)
        CHECK(after[i] == want[i], "column %u lane %u: want %08x got %08x", i / 128, i % 128,
              want[i], after[i]);
}

/* One load and one store of a shape at a random place, all four warps. */
static void test_shape(uint32_t shape, uint32_t times, bool halves)
{
    const struct shape *s = &shapes[shape];
    struct placed p = {.shape = shape, .times = times, .regs = s->regs * times, .halves = halves};
    const uint64_t in = device_buffer(CELLS * 4), out = device_buffer(CELLS * 4);
    const uint64_t loaded = device_buffer(128 * 4 * p.regs);
    uint32_t *cells = host(in);
    char *text;
    p.split = shape == 4 ? rng_below(&rng, 65) : 0;
    p.column = rng_below(&rng, 512 - (s->columns * times * (halves ? 2 : 1) + p.split) + 1);
    p.lane = s->lanes == 16 ? 16 * rng_below(&rng, 2) : 0;
    for (uint32_t i = 0; i < CELLS; i++) cells[i] = (uint32_t)rng_next(&rng);
    text = shape_text(&p);
    CHECK_INT(run_ptx(text, &(struct run){"b200", 1, 128, 0, {in, out, loaded}, 0}, NULL, 0), 0);
    check_loaded(&p, cells, host(loaded));
    check_stored(&p, cells, host(out));
    free(text);
    (void)mem_free(in);
    (void)mem_free(out);
    (void)mem_free(loaded);
}

/* ---- rules ---- */

/* A body that breaks one rule, and what must be said. */
static const struct rule {
    const char *name, *body, *kind, *says;
    int result;
} rules[] = {
    {"alloc of 48", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],48;",
     "tmem-alloc", "48 columns", 719},
    {"alloc of 608", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],608;",
     "tmem-alloc", "608 columns", 719},
    {"alloc after relinquish",
     "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],32;",
     "tmem-alloc", "gave up its permit", 719},
    {"growing alloc",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],32;\n"
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],64;",
     "tmem-alloc", "64 columns after an allocation of 32", 719},
    {"dealloc of nothing", "mov.u32 %r4,64; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4,32;",
     "tmem-dealloc", "0x00000040", 719},
    {"dealloc of a part",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],64;\n"
     "ld.shared.b32 %r4,[slot]; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4,32;",
     "tmem-dealloc", "freed whole", 719},
    {"allocation never freed", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],64;",
     "tmem-leak", "", 721},
    {"ld of columns not allocated",
     "mov.u32 %r4,0; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r5},[%r4];", "tmem-bounds",
     "not allocated", 719},
    {"ld past the last column",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512;\n"
     "mov.u32 %r4,511; tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r5,%r6},[%r4];",
     "tmem-bounds", "511 to 512", 719},
    {"ld of another quarter",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],32;\n"
     "mov.u32 %r4,0x200000; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r5},[%r4];\n"
     "tcgen05.wait::ld.sync.aligned; mov.u32 %r4,0;\n"
     "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4,32;",
     "tmem-lane", "lanes 0 to 31", 0},
    {"ld at lane 16 of 32",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],32;\n"
     "mov.u32 %r4,0x100000; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r5},[%r4];",
     "tmem-lane", "first or the sixteenth", 719},
    {"N of 264",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x08420010; mov.u64 %d1,0x400000000000;\n"
     "tcgen05.mma.cta_group::1.kind::f16 [%r4],%d1,%d1,%r5,%p1;",
     "mma-desc", "N is 264", 715},
    {"M of 192",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x0C100010; mov.u64 %d1,0x400000000000;\n"
     "tcgen05.mma.cta_group::1.kind::f16 [%r4],%d1,%d1,%r5,%p1;",
     "mma-desc", "M is 192", 715},
    {"descriptor without its constant",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x08100010; mov.u64 %d1,64;\n"
     "tcgen05.mma.cta_group::1.kind::f16 [%r4],%d1,%d1,%r5,%p1;",
     "mma-desc", "bits 46 to 48", 715},
    {"D not allocated",
     "mov.u32 %r4,0; setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x08100010; mov.u64 %d1,0x400000000040;\n"
     "tcgen05.mma.cta_group::1.kind::f16 [%r4],%d1,%d1,%r5,%p1;",
     "tmem-bounds", "D takes columns", 719},
    {"operand outside shared memory",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x08100010; mov.u64 %d1,0x400000003000;\n"
     "tcgen05.mma.cta_group::1.kind::f16 [%r4],%d1,%d1,%r5,%p1;\nLW: bra LW;",
     "oob", "operand B", 700},
    {"s32 products into f32",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x08100010; mov.u64 %d1,0x400000000040;\n"
     "tcgen05.mma.cta_group::1.kind::i8 [%r4],%d1,%d1,%r5,%p1;",
     "mma-desc", "no D format", 715},
    {"N of 40 with i8",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x080A0020; mov.u64 %d1,0x400000000040;\n"
     "tcgen05.mma.cta_group::1.kind::i8 [%r4],%d1,%d1,%r5,%p1;",
     "mma-desc", "N is 40", 715},
    {"MN-major e2m1",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x08108290; mov.u64 %d1,0x400000000040;\n"
     "tcgen05.mma.cta_group::1.kind::f8f6f4 [%r4],%d1,%d1,%r5,%p1;",
     "mma-desc", "6 and 4 bits are K-major", 715},
    {"dense descriptor with .sp",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x08100010; mov.u64 %d1,0x400000000040;\n"
     "tcgen05.mma.sp.cta_group::1.kind::f16 [%r4],%d1,%d1,[%r4+300],%r5,%p1;",
     "mma-desc", "bit 2", 715},
    {"metadata that means nothing",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x08100014; mov.u64 %d1,0x400000000040;\n"
     "tcgen05.mma.sp.cta_group::1.kind::f16 [%r4],%d1,%d1,[%r4+300],%r5,%p1;\nLW: bra LW;",
     "mma-desc", "sparsity metadata of lane 0", 715},
    {"scale factors off lane 0",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x08900000; mov.u64 %d1,0x400000000040;\n"
     "add.u32 %r6,%r4,0x200100;\n"
     "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r4],%d1,%d1,%r5,[%r6],[%r4+300],%p1;",
     "tmem-lane", "scale factors of A", 719},
    {"K of 96 for sm_100a",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "setp.ne.u32 %p1,%r4,%r4; mov.u32 %r5,0x88900480; mov.u64 %d1,0x400000000040;\n"
     "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r4],%d1,%d1,%r5,[%r4+256],[%r4+300],%p1;",
     "mma-desc", "needs .target sm_103a", 715},
    {"shift off a quarter's lane",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],512; ld.shared.b32 "
     "%r4,[slot];\n"
     "add.u32 %r4,%r4,0x100000;\ntcgen05.shift.cta_group::1.down [%r4];",
     "tmem-lane", "multiple of 32", 719},
    {"two cta_groups",
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot],32;\n"
     "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;",
     "mma-desc", "the same one", 715},
    {"pair without a peer", "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot],32;",
     "mma-desc", "to pair with", 715},
};

static const struct rule hopper_rules[] = {
    {"wgmma without a fence",
     "mov.u64 %d1,0x10010000000040; setp.eq.u32 %p1,%r0,%r0;\n"
     "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%v0,%v1,%v2,%v3},%d1,%d1,%p1,1,1,0,0;\n"
     "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
     "mma-desc", "bits 52", 715},
};

static void test_rule(const struct rule *r, const char *gpu, const char *target, uint32_t threads)
{
    char findings[8192], wanted[64];
    struct text t;
    FILE *f = text_open(&t);
    emit_header(f, target, "");
    fprintf(f, "mov.u32 %%r0,0;\n%s\nret;\n}\n", r->body);
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){gpu, 1, threads, 4096, {0}, 0}, findings,
                      sizeof findings),
              r->result);
    (void)snprintf(wanted, sizeof wanted, "\"kind\":\"%s\"", r->kind);
    CHECK_TEXT(findings, wanted);
    CHECK_TEXT(findings, r->says);
    free(t.at);
}

/* A wgmma with no fence is reported, and goes on. */
static void test_no_fence(void)
{
    static const struct rule r = {
        "",
        "mov.u64 %d1,0x800080080; setp.eq.u32 %p1,%r0,%r0;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
        "{%v0,%v1,%v2,%v3},%d1,%d1,%p1,1,1,0,0;\n"
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
        "wgmma-fence", "no wgmma.fence", 0};
    test_rule(&r, "h200", "sm_90a", 128);
}

/* Four warps multiply 64 x 16 ones by 16 x 8; three of them are late. `after` follows the first warp's
 * wait_group. Registers: %p0 for the late ones, %r2 for the thread's word of A, B 2048 bytes on. */
static void emit_warpgroup(FILE *f, const char *late, const char *after)
{
    emit_header(f, "sm_90a", ".shared .align 128 .b8 tiles[4096];\n");
    fprintf(f, "mov.u32 %%r0,%%tid.x; mov.u32 %%r1,tiles; mad.lo.u32 %%r2,%%r0,4,%%r1;\n"
               "setp.gt.u32 %%p0,%%r0,31; setp.eq.u32 %%p1,%%r0,%%r0;\n");
    for (uint32_t i = 0; i < 5; i++) fprintf(f, "st.shared.b32 [%%r2+%u],0x3f803f80;\n", i * 512);
    for (uint32_t i = 0; i < 4; i++) fprintf(f, "mov.b32 %%v%u,0;\n", i);
    fprintf(f,
            "fence.proxy.async.shared::cta; bar.sync 0;\n"
            "shr.u32 %%r3,%%r1,4; cvt.u64.u32 %%d1,%%r3; or.b64 %%d1,%%d1,0x1000080000;\n"
            "add.u64 %%d2,%%d1,128;\n%s\nwgmma.fence.sync.aligned;\n"
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
            "{%%v0,%%v1,%%v2,%%v3},%%d1,%%d2,%%p1,1,1,0,0;\n"
            "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n%s\n"
            "ld.param.u64 %%d0,[p0]; mul.wide.u32 %%d3,%%r0,16; add.u64 %%d0,%%d0,%%d3;\n"
            "st.global.v4.b32 [%%d0],{%%v0,%%v1,%%v2,%%v3};\nret;\n}\n",
            late, after);
    (void)fclose(f);
}

/* Behind its wait_group the first warp gives B back: the product of all four must be over. */
static void test_warpgroup_wait(void)
{
    const uint64_t out = device_buffer(128 * 16);
    const float *d = host(out);
    struct text t;
    emit_warpgroup(text_open(&t), "@%p0 nanosleep.u32 2000;",
                   "@!%p0 st.shared.b32 [%r2+2048],0x40004000;\n"
                   "@!%p0 st.shared.b32 [%r2+2176],0x40004000;");
    CHECK_INT(run_ptx(t.at, &(struct run){"h200", 1, 128, 0, {out}, 0}, NULL, 0), 0);
    for (uint32_t i = 0; i < 512; i++) CHECK(d[i] == 16, "D[%u]: want 16 got %g", i, d[i]);
    free(t.at);
    (void)mem_free(out);
}

static void test_warpgroup_deadlock(void)
{
    const uint64_t out = device_buffer(128 * 16);
    char findings[4096];
    struct text t;
    emit_warpgroup(text_open(&t), "@%p0 bra END;", "END:");
    CHECK_INT(run_ptx(t.at, &(struct run){"h200", 1, 128, 0, {out}, 0}, findings, sizeof findings),
              702);
    CHECK_TEXT(findings, "\"kind\":\"deadlock\"");
    free(t.at);
    (void)mem_free(out);
}

/* CTAs of one SM take turns for all columns, alone or in pairs. */
static void test_turns(uint32_t group)
{
    const struct run r = {"b200", group, 128, 0, {0}, 12};
    char findings[4096];
    struct text t;
    FILE *f = text_open(&t);
    emit_header(f, "sm_100a", "");
    fprintf(f, "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n");
    emit_tmem_open(f, group);
    fprintf(f, "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n");
    emit_tmem_close(f, group);
    (void)fclose(f);
    for (int i = 0; i < 20; i++) {
        CHECK_INT(run_ptx(t.at, &r, findings, sizeof findings), 0);
        CHECK_TEXT(findings, "\"verdict\":\"clean\"");
    }
    free(t.at);
}

/* The quarter is the warp's, whatever the lane field says: kernels that run on a B200 leave it at 0, or
 * count the lanes of a pair's second CTA from 128. */
static void test_lane_field(void)
{
    static const char *const fields[] = {"0", "%r3", "%r3 + 0x800000"};
    const uint64_t out = device_buffer(128 * 4 * 3);
    const uint32_t *got = host(out);
    struct text t;
    FILE *f = text_open(&t);
    emit_header(f, "sm_100a", "");
    emit_tmem_open(f, 1);
    fprintf(f,
            "tcgen05.st.sync.aligned.32x32b.x1.b32 [%%r3],{%%r0}; tcgen05.wait::st.sync.aligned;\n"
            "ld.param.u64 %%d0,[p0]; mad.wide.u32 %%d0,%%r0,4,%%d0;\n");
    for (uint32_t i = 0; i < 3; i++)
        fprintf(f,
                "%s; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%%r6},[%%r5];\n"
                "tcgen05.wait::ld.sync.aligned; st.global.b32 [%%d0+%u],%%r6;\n",
                i == 0   ? "mov.u32 %r5,%r4"
                : i == 1 ? "mov.u32 %r5,%r3"
                         : "add.u32 %r5,%r3,0x800000",
                i * 512);
    emit_tmem_close(f, 1);
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"b200", 1, 128, 0, {out}, 0}, NULL, 0), 0);
    for (uint32_t i = 0; i < 3 * 128; i++)
        CHECK(got[i] == i % 128, "address %s, thread %u: got lane %u", fields[i / 128], i % 128,
              got[i]);
    free(t.at);
    (void)mem_free(out);
}

/* A group whose two stored elements are zero may name one place twice: CUTLASS's compressor does so. With
 * other elements that is an error. */
static void test_moot_metadata(bool moot)
{
    const uint64_t out = device_buffer(128 * 4);
    const uint32_t *got = host(out);
    struct text t;
    FILE *f = text_open(&t);
    emit_header(f, "sm_100a", ".reg .f32 %f<2>;\n");
    emit_tmem_open(f, 1);
    fprintf(
        f,
        "mov.u32 %%r5,smem; mad.lo.u32 %%r6,%%r0,4,%%r5; mov.u32 %%r7,0; st.shared.b32 "
        "[%%r6],%%r7;\n"
        "fence.proxy.async.shared::cta; mov.u32 %%r8,%u;\n"
        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%%r3+64],"
        "{%%r8,%%r8,%%r8,%%r8,%%r8,%%r8,%%r8,%%r8};\n"
        "tcgen05.st.sync.aligned.32x32b.x4.b32 [%%r3+96],{%%r7,%%r7,%%r7,%%r7};\n"
        "cvt.rn.f32.u32 %%f0,%%r0; mov.b32 %%r9,%%f0;\n"
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%%r3],{%%r9}; tcgen05.wait::st.sync.aligned;\n"
        "setp.ne.u32 %%p3,%%r0,0; @%%p3 bra L1; mbarrier.init.shared.b64 [bar],1;\n"
        "L1: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
        "@%%p3 bra L2; shr.u32 %%r5,%%r5,4; cvt.u64.u32 %%d8,%%r5;\n"
        "or.b64 %%d8,%%d8,0x%llx; setp.eq.u32 %%p4,%%r0,%%r0; mov.u32 %%r22,0x%x;\n"
        "add.u32 %%r10,%%r4,64; tcgen05.mma.sp.cta_group::1.kind::f16 "
        "[%%r4],[%%r10],%%d8,[%%r4+96],"
        "%%r22,%%p4;\n"
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
        "L2: mbarrier.try_wait.parity.shared.b64 %%p5,[bar],0; @!%%p5 bra L2;\n"
        "tcgen05.fence::after_thread_sync; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%%r6},[%%r3];\n"
        "tcgen05.wait::ld.sync.aligned; ld.param.u64 %%d0,[p0]; mad.wide.u32 %%d0,%%r0,4,%%d0;\n"
        "st.global.b32 [%%d0],%%r6;\n",
        moot ? 0U : 0x3C003C00U, 1ULL << 46 | 16ULL << 32 | 8ULL << 16,
        1U << 2 | 1U << 4 | 1U << 17 | 8U << 24);
    emit_tmem_close(f, 1);
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"b200", 1, 128, 1024, {out}, 0}, NULL, 0),
              moot ? 0 : 715);
    for (uint32_t i = 0; moot && i < 128; i++) {
        const float want = (float)i;
        uint32_t bits;
        memcpy(&bits, &want, sizeof bits);
        CHECK(got[i] == bits, "row %u: want 0x%08x got 0x%08x", i, bits, got[i]);
    }
    free(t.at);
    (void)mem_free(out);
}

int main(int argc, char **argv)
{
    const bool coverage = argc > 1 && !strcmp(argv[argc - 1], "--coverage");
    if (coverage) argc--;
    test_begin("sim_tensor", argc, argv);
    test_where("the simulator");
    model_begin();
    coverage_begin();
    if (test_case("number formats")) test_formats();
    for (int format = F16; format <= E5M2; format++)
        for (uint32_t swizzle = 0; swizzle < 5; swizzle++)
            for (int mn = 0; mn < 2; mn++)
                if (test_case("tiles of %s, swizzle %u, %s-major", formats[format].name, swizzle,
                              mn ? "MN" : "K"))
                    test_gather((enum format)format, swizzle, mn);
    for (uint32_t shape = 0; shape < 5; shape++)
        for (uint32_t times = 1; times <= shapes[shape].most; times *= 2)
            for (int halves = 0; halves < 2; halves++)
                if (test_case("ld and st .%s.x%u%s", shapes[shape].name, times,
                              halves ? " of halves" : ""))
                    test_shape(shape, times, halves);
    if (test_case("ld with another lane field")) test_lane_field();
    for (int moot = 0; moot < 2; moot++)
        if (test_case("metadata that names an element twice%s", moot ? ", of zeros" : ""))
            test_moot_metadata(moot);
    mma_cases();
    blackwell_cases();
    wgmma_cases();
    warp_cases();
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (test_case("%s", rules[i].name)) test_rule(&rules[i], "b200", "sm_100a", 32);
    for (size_t i = 0; i < sizeof hopper_rules / sizeof hopper_rules[0]; i++)
        if (test_case("%s", hopper_rules[i].name))
            test_rule(&hopper_rules[i], "h200", "sm_90a", 128);
    if (test_case("wgmma with no fence")) test_no_fence();
    if (test_case("wgmma is over for its four warps at once")) test_warpgroup_wait();
    if (test_case("wgmma that three warps never issue")) test_warpgroup_deadlock();
    for (uint32_t group = 1; group <= 2; group++)
        if (test_case("all columns in turn, pair-size %u", group)) test_turns(group);
    copy_cases();
    if (test_case("every form of tcgen05 has a case")) coverage_check();
    if (coverage) coverage_print();
    return test_end();
}
