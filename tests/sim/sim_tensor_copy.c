/*
 * tcgen05 around the products, against scalar models written from the PTX ISA: cp in every shape,
 * multicast and decompression, shift, commit in every spelling, alloc by generic address; of one CTA and
 * of a pair. Each case compares all of tensor memory, so what must not be written is checked too.
 */
#include "tensor_model.h"

#include "machine/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- commit ---- */

/* "tcgen05.commit": .shared::cluster with such an address, else generic; with .multicast::cluster to the
 * same offset in the CTAs of a mask. */
enum { COMMIT_SHARED = 1, COMMIT_MULTICAST = 2, COMMIT_ONE_MASK = 4, COMMITS = 8 };

static const char *commit_name(uint32_t spelling)
{
    static const char *const names[COMMITS] = {"generic",
                                               ".shared::cluster",
                                               "generic, multicast one by one",
                                               ".shared::cluster, multicast one by one",
                                               "",
                                               "",
                                               "generic, multicast",
                                               ".shared::cluster, multicast"};
    return names[spelling];
}

/* Exactly one arrival at `bar` of each CTA of the group: a second one would make both phases pass, and
 * the wait for the first last forever. */
static void emit_commit(FILE *f, uint32_t group, uint32_t spelling)
{
    const bool shared = spelling & COMMIT_SHARED, multicast = spelling & COMMIT_MULTICAST;
    const uint32_t all = group == 2 ? 3 : 1;
    fprintf(f, "mov.u64 %%d11,bar;\n");
    if (!shared) fprintf(f, "cvta.shared.u64 %%d11,%%d11;\n");
    for (uint32_t rank = 0; rank < group; rank++) {
        const bool one_mask = spelling & COMMIT_ONE_MASK;
        if (!multicast)
            fprintf(f, "mapa%s.u64 %%d12,%%d11,%u;\n", shared ? ".shared::cluster" : "", rank);
        else
            fprintf(f, "mov.u64 %%d12,%%d11; mov.b16 %%h0,%u;\n", one_mask ? all : 1U << rank);
        fprintf(f, "tcgen05.commit.cta_group::%u.mbarrier::arrive::one%s%s.b64 [%%d12]%s;\n", group,
                shared ? ".shared::cluster" : "", multicast ? ".multicast::cluster" : "",
                multicast ? ",%h0" : "");
        if (one_mask) break;
    }
}

/* ---- cp ---- */

static const struct cp {
    const char *shape;
    uint32_t lanes, bytes; /* from the first to the last that it writes; of a row */
} cps[] = {{"128x256b", 128, 32},
           {"128x128b", 128, 16},
           {"4x256b", 97, 32},
           {"64x128b.warpx2::02_13", 128, 16},
           {"64x128b.warpx2::01_23", 128, 16},
           {"32x128b.warpx4", 128, 16}};
enum { CP_SHAPES = sizeof cps / sizeof cps[0] };

/* The row that lane `lane` from the base receives; -1: none. */
static int cp_row(uint32_t shape, uint32_t lane)
{
    switch (shape) {
    case 0:
    case 1: return (int)lane;
    case 2: return lane % 32 ? -1 : (int)lane / 32;
    case 3: return (int)lane % 64; /* rows 0 to 31: warps 0 and 2, the rest 1 and 3 */
    case 4: return (int)(lane / 64 * 32 + lane % 32); /* warps 0 and 1, 2 and 3 */
    default: return (int)lane % 32;
    }
}

struct copy {
    uint32_t shape, group, bits, swizzle, commit; /* bits: of a packed code; 0: copied as it is */
    uint32_t lane, column;
    struct smem_operand source;
};

/* "Optional Decompression": 16 codes lie packed at the start of 16 bytes; each becomes a byte, of four
 * bits in the middle (sign, exponent, fraction of e2m1 in a container of e2m1's byte form). */
static uint8_t cp_byte(const struct copy *c, const uint8_t *window, uint32_t row, uint32_t byte)
{
    const uint8_t *chunk = &window[model_address(&c->source, row, byte / 16 * 16)];
    uint32_t code = 0;
    if (!c->bits) return chunk[byte % 16];
    for (uint32_t i = 0; i < c->bits; i++) {
        const uint32_t bit = byte % 16 * c->bits + i;
        code |= (chunk[bit / 8] >> bit % 8 & 1U) << i;
    }
    return (uint8_t)(c->bits == 4 ? code << 2 : code);
}

static uint32_t cp_word(const struct copy *c, uint32_t cta, uint32_t lane, uint32_t column,
                        uint32_t before)
{
    const int row = lane < c->lane ? -1 : cp_row(c->shape, lane - c->lane);
    uint8_t byte[4];
    uint32_t word;
    if (row < 0 || column < c->column || column >= c->column + cps[c->shape].bytes / 4)
        return before;
    for (uint32_t i = 0; i < sizeof byte; i++)
        byte[i] = cp_byte(c, image[cta], (uint32_t)row, (column - c->column) * 4 + i);
    memcpy(&word, byte, sizeof word);
    return word;
}

/* Runs `instruction` (%r8: an address in tensor memory, %d8: the source) and a commit between a load and
 * a store of all of tensor memory, of which `before` and `after` are images. */
static void run_between(const char *instruction, uint32_t group, uint32_t commit, uint32_t address,
                        const struct smem_operand *source, uint64_t before, uint64_t after)
{
    const uint64_t images = device_buffer(2 * IMAGE);
    uint32_t *cells = host(before);
    char findings[2048];
    struct text t;
    FILE *f = text_open(&t);
    for (uint32_t i = 0; i < 2 * CELLS; i++) cells[i] = (uint32_t)rng_next(&rng);
    for (uint32_t i = 0; i < 2; i++)
        memcpy((uint8_t *)host(images) + i * IMAGE, image[i] + 2048, IMAGE - 2048);
    emit_header(f, "sm_100a", "");
    emit_mma_begin(f, group, 0);
    fprintf(f, "add.u32 %%r8,%%r4,%u;\n%s\n", address, instruction);
    emit_commit(f, group, commit);
    emit_mma_end(f, group);
    (void)fclose(f);
    const struct run r = {"b200",
                          group,
                          128,
                          IMAGE - 2048,
                          {before, after, images, source ? descriptor(source, true) : 0},
                          0};
    CHECK_INT(run_ptx(t.at, &r, findings, sizeof findings), 0);
    CHECK(strstr(findings, "\"verdict\":\"clean\""), "verdict: %s", findings);
    free(t.at);
    (void)mem_free(images);
}

static void test_cp(struct copy c)
{
    const uint64_t in = device_buffer(2 * CELLS * 4), out = device_buffer(2 * CELLS * 4);
    const uint32_t *before = host(in), *after = host(out);
    static const char *const formats_of[] = {
        "", "", "", "", ".b8x16.b4x16_p64", "", ".b8x16.b6x16_p32"};
    char instruction[128];
    c.lane = rng_below(&rng, 128 - cps[c.shape].lanes + 1);
    c.column = 4 * rng_below(&rng, 127);
    c.source = random_operand(c.swizzle, false, U8, A_START);
    fill_image(U8, U8);
    (void)snprintf(instruction, sizeof instruction, "tcgen05.cp.cta_group::%u.%s%s [%%r8],%%d8;",
                   c.group, cps[c.shape].shape, formats_of[c.bits]);
    run_between(instruction, c.group, c.commit, c.lane << 16 | c.column, &c.source, in, out);
    for (uint32_t i = 0; i < c.group * CELLS && !test_case_failures(); i++) {
        const uint32_t lane = i % 128, column = i % CELLS / 128;
        const uint32_t want = cp_word(&c, i / CELLS, lane, column, before[i]);
        CHECK(after[i] == want, "CTA %u column %u lane %u: want %08x got %08x", i / CELLS, column,
              lane, want, after[i]);
    }
    (void)mem_free(in);
    (void)mem_free(out);
}

/* ---- shift ---- */

static void test_shift(uint32_t group)
{
    const uint64_t in = device_buffer(2 * CELLS * 4), out = device_buffer(2 * CELLS * 4);
    const uint32_t *before = host(in), *after = host(out);
    char instruction[64];
    (void)snprintf(instruction, sizeof instruction, "tcgen05.shift.cta_group::%u.down [%%r8];",
                   group);
    run_between(instruction, group, COMMIT_SHARED, 16, NULL, in, out);
    for (uint32_t i = 0; i < group * CELLS; i++) {
        const uint32_t column = i % CELLS / 128;
        const bool moves = column >= 16 && column < 24 && i % 32 != 31;
        CHECK(after[i] == before[i + moves], "CTA %u column %u lane %u: want %08x got %08x",
              i / CELLS, column, i % 128, before[i + moves], after[i]);
    }
    (void)mem_free(in);
    (void)mem_free(out);
}

/* ---- alloc ---- */

/* By generic address: two allocations into the middle words of four. */
static void test_alloc(uint32_t group)
{
    const uint64_t out = device_buffer(2 * 16);
    const uint32_t *word = host(out);
    char findings[2048];
    struct text t;
    FILE *f = text_open(&t);
    emit_header(f, "sm_100a", ".shared .align 16 .b32 words[4];\n");
    fprintf(f,
            "mov.u32 %%r1,-1; mov.u32 %%r2,words; st.shared.v4.b32 [%%r2],{%%r1,%%r1,%%r1,%%r1};\n"
            "bar.warp.sync -1; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
            "mov.u64 %%d0,words; cvta.shared.u64 %%d0,%%d0;\n"
            "tcgen05.alloc.cta_group::%u.sync.aligned.b32 [%%d0+4],64;\n"
            "tcgen05.alloc.cta_group::%u.sync.aligned.b32 [%%d0+8],32;\n"
            "tcgen05.relinquish_alloc_permit.cta_group::%u.sync.aligned;\nbar.warp.sync -1;\n"
            "ld.shared.v4.b32 {%%r4,%%r5,%%r6,%%r7},[%%r2]; ld.param.u64 %%d1,[p1];\n"
            "mov.u32 %%r8,%%cluster_ctarank; mad.wide.u32 %%d1,%%r8,16,%%d1;\n"
            "st.global.v4.b32 [%%d1],{%%r4,%%r5,%%r6,%%r7};\n"
            "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
            "tcgen05.dealloc.cta_group::%u.sync.aligned.b32 %%r5,64;\n"
            "tcgen05.dealloc.cta_group::%u.sync.aligned.b32 %%r6,32;\n"
            "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nret;\n}\n",
            group, group, group, group, group);
    (void)fclose(f);
    CHECK_INT(run_ptx(t.at, &(struct run){"b200", group, 32, 0, {0, out}, 0}, findings,
                      sizeof findings),
              0);
    CHECK(strstr(findings, "\"verdict\":\"clean\""), "verdict: %s", findings);
    for (uint32_t i = 0; i < group; i++, word += 4) {
        const uint32_t a = word[1], b = word[2];
        CHECK(word[0] == 0xFFFFFFFFU && word[3] == 0xFFFFFFFFU, "the words beside have changed");
        CHECK(a <= 512 - 64 && b <= 512 - 32 && (b >= a + 64 || a >= b + 32),
              "CTA %u: 64 columns at 0x%x, 32 at 0x%x", i, a, b);
    }
    free(t.at);
    (void)mem_free(out);
}

void copy_cases(void)
{
    for (uint32_t group = 1; group <= 2; group++) {
        for (uint32_t bits = 0; bits <= 6; bits += bits ? 2 : 4)
            for (uint32_t v = 0; v < 4 * CP_SHAPES; v++) {
                const struct copy c = {
                    .shape = v / 4, .group = group, .bits = bits, .swizzle = v % 4, .commit = 1};
                if (test_case("cp %s of %u-bit codes, swizzle %u, pair-size %u", cps[v / 4].shape,
                              bits ? bits : 8, v % 4, group))
                    test_cp(c);
            }
        for (uint32_t v = 0; v < COMMITS; v++) {
            const struct copy c = {.shape = v % CP_SHAPES, .group = group, .commit = v};
            if ((v & COMMIT_ONE_MASK) && !(v & COMMIT_MULTICAST)) continue;
            if (test_case("commit %s, pair-size %u", commit_name(v), group)) test_cp(c);
        }
        if (test_case("tcgen05.shift, pair-size %u", group)) test_shift(group);
        if (test_case("alloc by generic address, pair-size %u", group)) test_alloc(group);
    }
}
