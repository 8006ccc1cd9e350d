/* Forms of asynchronous copies and of what changes tensor maps (sim_forms.c). */
#include "sim_forms.h"
#include "async/tmap.h"

#include <stdio.h>
#include <string.h>

enum { EXTENT = 4, BOX_WORDS = 64, WORDS_MOST = 1024 };

static uint64_t address_of(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* ---- boxes of a tensor of u32 with 4 elements in each dimension: 4 x 2 x 2 … from 0, 1, 1 … ---- */

struct box_params {
    unsigned char map[128];
    uint64_t io;
};

/* A row of four words; `rows` boxes of one row, where not 0. */
static void make_map(struct box_params *p, const uint32_t *tensor, uint32_t rank, bool rows)
{
    struct tmap t = {.dtype = 2, .rank = (uint8_t)rank, .address = address_of(tensor)};
    uint64_t extent = 4;

    for (uint32_t d = 0; d < rank; d++) {
        t.dim[d] = EXTENT;
        t.stride[d] = extent;
        t.box[d] = d == 0 ? 4 : rows ? 1 : 2;
        t.element_stride[d] = 1;
        extent *= EXTENT;
    }
    tmap_encode(&t, p->map);
}

static uint32_t tensor_words(uint32_t rank)
{
    return 1U << 2 * rank;
}

static uint32_t box_words(uint32_t rank)
{
    return 4U << (rank - 1);
}

/* The tensor's word that is word i of the box. */
static uint32_t box_at(uint32_t rank, uint32_t i)
{
    uint32_t at = i % 4, pitch = EXTENT;

    for (uint32_t d = 1; d < rank; d++) {
        at += (1 + (i >> (d + 1)) % 2) * pitch;
        pitch *= EXTENT;
    }
    return at;
}

static const char *const box_coordinates[] = {"",          "{0}",          "{0, 1}",
                                              "{0, 1, 1}", "{0, 1, 1, 1}", "{0, 1, 1, 1, 1}"};

#define BOX_HEAD                                                                                \
    HEAD ".visible .entry k(.param .align 64 .b8 p_map[128], .param .u64 p_io)\n{\n"            \
         ".shared .align 128 .b8 box[256];\n.shared .align 8 .b64 bar;\n.reg .pred p, other;\n" \
         ".reg .b32 rank, v, bytes;\n.reg .b16 mask;\n.reg .b64 map, io;\n"                     \
         "ld.param.u64 io, [p_io];\nmov.b64 map, p_map;\ncvta.param.u64 map, map;\n"

/* Loads: CTA 0 of a pair copies, into itself or into both; each CTA hands its box over. */
static void put_box_load(uint32_t rank, const char *mode, bool multicast, uint32_t group)
{
    const uint32_t bytes = rank ? 4 * box_words(rank) : 64; /* rank 0: gather4 */
    const bool to_one_bar = multicast && group == 2;

    text_begin(BOX_HEAD);
    put("mov.u32 rank, %%cluster_ctarank;\nsetp.ne.u32 other, rank, 0;\n"
        "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\n"
        "mov.u32 bytes, %u;\n@other mov.u32 bytes, %u;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], bytes;\n"
        "barrier.cluster.arrive;\nbarrier.cluster.wait;\nmov.b16 mask, 3;\n@other bra waits;\n",
        to_one_bar ? 2 * bytes : bytes, multicast && !to_one_bar ? bytes : 0);
    put("cp.async.bulk.tensor.%ud.%s.global.%s.mbarrier::complete_tx::bytes%s%s%s [box], "
        "[map, %s], [bar]%s;\n",
        rank ? rank : 2, multicast ? "shared::cluster" : "shared::cta", mode,
        multicast ? ".multicast::cluster" : "",
        group == 1   ? ".cta_group::1"
        : group == 2 ? ".cta_group::2"
                     : "",
        "", rank ? box_coordinates[rank] : "{0, 3, 0, 2, 1}", multicast ? ", mask" : "");
    put("waits: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;\n@!p bra waits;\n"
        "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
        "mad.wide.u32 io, rank, 256, io;\n");
    for (uint32_t i = 0; i < bytes / 4; i++)
        put("@!other ld.shared.b32 v, [box+%u];\n@!other st.global.b32 [io+%u], v;\n", 4 * i,
            4 * i);
    for (uint32_t i = 0; i < bytes / 4 && multicast; i++)
        put("@other ld.shared.b32 v, [box+%u];\n@other st.global.b32 [io+%u], v;\n", 4 * i, 4 * i);
    put("ret;\n}\n");
}

static void check_box_load(uint32_t rank, bool multicast, struct rng *rng)
{
    static const uint32_t rows[] = {3, 0, 2, 1};
    struct run r = {.grid = 2, .cluster = 2, .block = 1, .seed = rng_next(rng)};
    uint32_t *tensor = run_alloc(4 * WORDS_MOST), *io = run_alloc(8 * BOX_WORDS);
    struct box_params p = {.io = address_of(io)};
    const uint32_t words = rank ? box_words(rank) : 16;

    for (uint32_t i = 0; i < WORDS_MOST; i++) tensor[i] = (uint32_t)rng_next(rng);
    memset(io, 0xA5, 8 * BOX_WORDS);
    make_map(&p, tensor, rank ? rank : 2, rank == 0);
    const bool ran = run_clean(&r, &p, sizeof p);
    for (uint32_t i = 0; ran && i < 2 * BOX_WORDS; i++) {
        const uint32_t at = i % BOX_WORDS;
        const bool moved = at < words && (multicast || i < BOX_WORDS);
        const uint32_t from = rank ? box_at(rank, at) : 4 * rows[at / 4 % 4] + at % 4;
        const uint32_t want = moved ? tensor[from] : 0xA5A5A5A5U;
        CHECK(io[i] == want, "CTA %u word %u: want %x got %x", i / BOX_WORDS, at, want, io[i]);
    }
    run_free(tensor);
    run_free(io);
}

static void test_box_loads(struct rng *rng)
{
    for (uint32_t i = 0; i < 6 * 2 * 3; i++) {
        const uint32_t rank = i % 6, group = i / 12;
        const bool multicast = i / 6 % 2;
        const char *mode = rank ? "tile" : "tile::gather4";
        if (!test_case("%s of %u dimensions%s, cta_group %u", mode, rank ? rank : 2,
                       multicast ? ", multicast" : "", group))
            continue;
        put_box_load(rank, mode, multicast, group);
        check_box_load(rank, multicast, rng);
    }
}

/* ---- reductions into a tensor ---- */

static void put_box_reduce(uint32_t rank, const char *op)
{
    text_begin(BOX_HEAD);
    for (uint32_t i = 0; i < box_words(rank); i++)
        put("ld.global.b32 v, [io+%u];\nst.shared.b32 [box+%u], v;\n", 4 * i, 4 * i);
    put("fence.proxy.async.shared::cta;\n"
        "cp.reduce.async.bulk.tensor.%ud.global.shared::cta.%s.tile.bulk_group [map, %s], [box];\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;\n}\n",
        rank, op, box_coordinates[rank]);
}

static void check_box_reduce(uint32_t rank, const char *op, struct rng *rng)
{
    struct run r = {.block = 1, .seed = rng_next(rng)};
    uint32_t *tensor = run_alloc(4 * WORDS_MOST), *io = run_alloc(4 * BOX_WORDS);
    uint32_t want[WORDS_MOST];
    struct box_params p = {.io = address_of(io)};

    for (uint32_t i = 0; i < BOX_WORDS; i++) io[i] = (uint32_t)rng_next(rng);
    for (uint32_t i = 0; i < WORDS_MOST; i++) want[i] = tensor[i] = (uint32_t)rng_next(rng);
    for (uint32_t i = 0; i < box_words(rank); i++) {
        uint32_t *at = &want[box_at(rank, i)];
        if (i % 8 == 3) io[i] = *at; /* inc wraps, dec does not */
        if (i % 8 == 5) *at = tensor[at - want] = 0;
        *at = (uint32_t)reduced(op, "u32", *at, io[i]);
    }
    make_map(&p, tensor, rank, false);
    if (run_clean(&r, &p, sizeof p))
        for (uint32_t i = 0; i < tensor_words(rank); i++)
            CHECK(tensor[i] == want[i], "word %u: want %x got %x", i, want[i], tensor[i]);
    run_free(tensor);
    run_free(io);
}

static void test_box_reductions(struct rng *rng)
{
    static const char *const ops[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};

    for (uint32_t i = 0; i < 5 * 8; i++) {
        const uint32_t rank = 1 + i / 8;
        if (!test_case("%s into %u dimensions", ops[i % 8], rank)) continue;
        put_box_reduce(rank, ops[i % 8]);
        check_box_reduce(rank, ops[i % 8], rng);
    }
}

/* ---- maps that a kernel makes: every scope of the proxy fence ---- */

/* The copy of the map in global memory is `io`; the words of its box go behind it. */
static void put_new_map(const char *scope, bool fused)
{
    text_begin(BOX_HEAD);
    put(".shared .align 128 .b8 made[128];\n.reg .b32 lane;\n.reg .b64 from;\n"
        "mov.u32 lane, %%tid.x;\n"
        "mul.wide.u32 from, lane, 4;\nadd.u64 map, map, from;\nld.b32 v, [map];\n"
        "mov.u32 rank, made;\nmad.lo.u32 rank, lane, 4, rank;\nadd.u64 from, from, io;\n");
    if (fused)
        put("st.shared.b32 [rank], v;\nbar.warp.sync -1;\n"
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.%s.sync.aligned "
            "[io], [made], 128;\n",
            scope);
    else
        put("st.global.b32 [from], v;\nbar.warp.sync -1;\n"
            "fence.proxy.tensormap::generic.release.%s;\n",
            scope);
    put("bar.warp.sync -1;\nfence.proxy.tensormap::generic.acquire.%s [io], 128;\n"
        "setp.ne.u32 other, lane, 0;\n@other bra done;\n"
        "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.proxy.async.shared::cta;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32;\n"
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [box], "
        "[io, {0, 1}], [bar];\n"
        "waits: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;\n@!p bra waits;\n",
        scope);
    for (uint32_t i = 0; i < 8; i++)
        put("ld.shared.b32 v, [box+%u];\nst.global.b32 [io+%u], v;\n", 4 * i, 128 + 4 * i);
    put("done: ret;\n}\n");
}

static void test_new_maps(struct rng *rng)
{
    static const char *const scopes[] = {"cta", "cluster", "gpu", "sys"};

    for (uint32_t i = 0; i < 8; i++) {
        struct run r = {.block = 32, .seed = rng_next(rng)};
        if (!test_case("a map made by %s, scope %s",
                       i / 4 ? "tensormap.cp_fenceproxy" : "stores and a fence", scopes[i % 4]))
            continue;
        uint32_t *tensor = run_alloc(4 * WORDS_MOST), *io = run_alloc(256);
        struct box_params p = {.io = address_of(io)};
        for (uint32_t k = 0; k < WORDS_MOST; k++) tensor[k] = (uint32_t)rng_next(rng);
        make_map(&p, tensor, 2, false);
        put_new_map(scopes[i % 4], i / 4);
        if (run_clean(&r, &p, sizeof p))
            for (uint32_t k = 0; k < 8; k++)
                CHECK(io[32 + k] == tensor[box_at(2, k)], "word %u: want %x got %x", k,
                      tensor[box_at(2, k)], io[32 + k]);
        run_free(tensor);
        run_free(io);
    }
}

/* tensormap.replace of the bytes that the swizzle keeps together: in shared and in global memory alike. */
static void test_atomicity(void)
{
    static const char *const spaces[] = {"global", "shared::cta"};

    for (uint32_t i = 0; i < 8; i++) {
        struct run r = {.block = 32};
        if (!test_case("swizzle_atomicity %u in %s memory", i / 2, spaces[i % 2])) continue;
        uint32_t *io = run_alloc(128);
        struct box_params p = {.io = address_of(io)};
        struct tmap t = {.dtype = 2,
                         .rank = 2,
                         .swizzle = 3,
                         .dim = {32, 8},
                         .stride = {4, 128},
                         .box = {32, 8}};
        unsigned char want[128];
        t.element_stride[0] = t.element_stride[1] = 1;
        t.address = address_of(io);
        tmap_encode(&t, p.map);
        memcpy(want, p.map, sizeof want);
        tmap_replace(want, TMAP_FIELD_ATOMICITY, 0, i / 2);
        text_begin(BOX_HEAD);
        put(".reg .b32 lane;\n.reg .b64 from;\nmov.u32 lane, %%tid.x;\n"
            "mul.wide.u32 from, lane, 4;\nadd.u64 map, map, from;\nld.b32 v, [map];\n"
            "add.u64 from, from, io;\nmov.u32 rank, box;\nmad.lo.u32 rank, lane, 4, rank;\n"
            "st.global.b32 [from], v;\nst.shared.b32 [rank], v;\nbar.warp.sync -1;\n"
            "setp.eq.u32 p, lane, 0;\n@p tensormap.replace.tile.swizzle_atomicity.%s.b1024.b32 "
            "[%s], %u;\nbar.warp.sync -1;\n",
            spaces[i % 2], i % 2 ? "box" : "io", i / 2);
        put("%sret;\n}\n",
            i % 2 ? "ld.shared.b32 v, [rank];\nbar.warp.sync -1;\nst.global.b32 [from], v;\n" : "");
        if (run_clean(&r, &p, sizeof p)) {
            CHECK(!memcmp(io, want, sizeof want), "the map differs");
            CHECK(i / 2 == 0 || memcmp(p.map, want, sizeof want), "the map is as before");
        }
        run_free(io);
    }
}

/* ---- into the other CTA, and into one's own memory ---- */

static const struct async_store {
    const char *type, *value;
    uint32_t words;
} async_stores[] = {{"b32", "{v0}", 1},
                    {"v2.b32", "{v0, v1}", 2},
                    {"v4.b32", "{v0, v1, v2, v3}", 4},
                    {"b64", "{d0}", 2},
                    {"v2.b64", "{d0, d1}", 4}};

/* CTA 1 stores into CTA 0, which waits for the bytes. */
static void test_async_stores(struct rng *rng)
{
    for (uint32_t i = 0; i < 5; i++) {
        const struct async_store *s = &async_stores[i];
        struct run r = {.grid = 2, .cluster = 2, .block = 1, .seed = rng_next(rng)};
        if (!test_case("st.async.weak of %s", s->type)) continue;
        uint32_t *io = run_alloc(64);
        struct box_params p = {.io = address_of(io)};
        for (uint32_t k = 0; k < 16; k++) io[k] = (uint32_t)rng_next(rng);
        text_begin(BOX_HEAD);
        put(".reg .b32 v<4>, far, to;\n.reg .b64 d<2>;\nmov.u32 rank, %%cluster_ctarank;\n"
            "setp.ne.u32 other, rank, 0;\nmbarrier.init.shared::cta.b64 [bar], 1;\n"
            "st.shared.v4.b32 [box], {0, 0, 0, 0};\n"
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %u;\n"
            "fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive;\n"
            "barrier.cluster.wait;\n@!other bra waits;\n"
            "ld.global.v4.b32 {v0, v1, v2, v3}, [io];\nmov.b64 d0, {v0, v1};\n"
            "mov.b64 d1, {v2, v3};\nmov.u32 to, box;\nmapa.shared::cluster.u32 to, to, 0;\n"
            "mov.u32 far, bar;\nmapa.shared::cluster.u32 far, far, 0;\n"
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.%s [to], %s, [far];\n"
            "bra done;\n"
            "waits: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;\n@!p bra waits;\n"
            "ld.shared.v4.b32 {v0, v1, v2, v3}, [box];\nst.global.v4.b32 [io+32], {v0, v1, v2, v3};"
            "\ndone: barrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}\n",
            4 * s->words, s->type, s->value);
        if (run_clean(&r, &p, sizeof p))
            for (uint32_t k = 0; k < 4; k++)
                CHECK(io[8 + k] == (k < s->words ? io[k] : 0), "word %u: got %x", k, io[8 + k]);
        run_free(io);
    }
}

/* Bytes 32 to 32 + size of the box become 0, and no others. */
static void test_bulk_stores(void)
{
    static const char *const forms[] = {"st.bulk.weak.shared::cta", "st.bulk.shared::cta",
                                        "st.bulk.weak", "st.bulk"};
    for (uint32_t i = 0; i < 8; i++) {
        const bool generic = i % 4 > 1, narrow = i / 4;
        struct run r = {.block = 1};
        if (!test_case("%s, size of %u bits", forms[i % 4], narrow ? 32 : 64)) continue;
        uint32_t *io = run_alloc(256);
        struct box_params p = {.io = address_of(io)};
        text_begin(BOX_HEAD);
        put(".reg .b64 to, size;\n.reg .b32 size32;\nmov.u64 size, 96;\nmov.u32 size32, 96;\n"
            "mov.u64 to, box;\n%sadd.u64 to, to, 32;\nmov.u32 v, 0x5a5a5a5a;\n",
            generic ? "cvta.shared.u64 to, to;\n" : "");
        for (uint32_t k = 0; k < 64; k++) put("st.shared.b32 [box+%u], v;\n", 4 * k);
        put("%s [to], %s, 0;\n", forms[i % 4], narrow ? "size32" : "size");
        for (uint32_t k = 0; k < 64; k++)
            put("ld.shared.b32 v, [box+%u];\nst.global.b32 [io+%u], v;\n", 4 * k, 4 * k);
        put("ret;\n}\n");
        if (run_clean(&r, &p, sizeof p))
            for (uint32_t k = 0; k < 64; k++)
                CHECK(io[k] == (k >= 8 && k < 32 ? 0 : 0x5A5A5A5AU), "word %u: got %x", k, io[k]);
        run_free(io);
    }
}

/* The last `absent` bytes of the copy lie behind the allocation. Only the bytes that are not ignored are compared. */
static const struct ignored {
    uint32_t left, right, absent;
    const char *finding;
} ignored[] = {{0, 0, 0, NULL}, {15, 0, 0, NULL}, {0, 15, 15, NULL},
               {4, 9, 9, NULL}, {0, 8, 9, "oob"}, {16, 0, 0, "oob"}};

static void put_ignored(const struct ignored *c, uint32_t bytes)
{
    text_begin(BOX_HEAD);
    put(".reg .b64 from;\nld.b64 from, [map];\nmbarrier.init.shared::cta.b64 [bar], 1;\n"
        "fence.proxy.async.shared::cta;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %u;\n"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [box], "
        "[from], %u, %u, %u, [bar];\n"
        "waits: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;\n@!p bra waits;\n",
        bytes, bytes, c->left, c->right);
    for (uint32_t k = 0; k < bytes; k++)
        put("ld.shared.u8 v, [box+%u];\nst.global.u8 [io+%u], v;\n", k, k);
    put("ret;\n}\n");
}

static void test_ignored(void)
{
    enum { BYTES = 48, ROOM = 256 };

    for (uint32_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        const struct ignored *c = &ignored[i];
        struct run r = {.block = 1};
        if (!test_case("cp.async.bulk.ignore_oob, %u and %u bytes, %u absent", c->left, c->right,
                       c->absent))
            continue;
        unsigned char *tensor = run_alloc(ROOM - c->absent), *io = run_alloc(ROOM);
        const unsigned char *from = tensor + ROOM - BYTES;
        const uint64_t source = address_of(from);
        struct box_params p = {.io = address_of(io)};
        for (uint32_t k = 0; k < ROOM - c->absent; k++) tensor[k] = (unsigned char)(k + 1);
        memcpy(p.map, &source, sizeof source);
        put_ignored(c, BYTES);
        if (c->finding)
            run_for_finding(&r, &p, sizeof p, c->finding);
        else if (run_clean(&r, &p, sizeof p))
            for (uint32_t k = c->left; k < BYTES - c->right; k++)
                CHECK(io[k] == from[k], "byte %u: want %u got %u", k, from[k], io[k]);
        run_free(tensor);
        run_free(io);
    }
}

/* cp.async.mbarrier.arrive: with .noinc the count that was set must foresee it. */
static void test_copies_arrive(struct rng *rng)
{
    static const char *const spaces[] = {"", ".shared", ".shared::cta"};

    for (uint32_t i = 0; i < 6; i++) {
        const bool generic = i % 3 == 0, noinc = i / 3;
        struct run r = {.block = 1, .seed = rng_next(rng)};
        if (!test_case("cp.async.mbarrier.arrive%s%s", noinc ? ".noinc" : "", spaces[i % 3]))
            continue;
        uint32_t *io = run_alloc(64);
        struct box_params p = {.io = address_of(io)};
        for (uint32_t k = 0; k < 4; k++) io[k] = (uint32_t)rng_next(rng);
        text_begin(BOX_HEAD);
        put(".reg .b64 at, state;\nmov.u64 at, bar;\n%smbarrier.init.shared::cta.b64 [bar], %u;\n"
            "cp.async.cg.shared.global [box], [io], 16;\n"
            "cp.async.mbarrier.arrive%s%s.b64 [at];\n"
            "mbarrier.arrive.shared::cta.b64 state, [bar];\n"
            "waits: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;\n@!p bra waits;\n",
            generic ? "cvta.shared.u64 at, at;\n" : "", noinc ? 2 : 1, noinc ? ".noinc" : "",
            spaces[i % 3]);
        for (uint32_t k = 0; k < 4; k++)
            put("ld.shared.b32 v, [box+%u];\nst.global.b32 [io+%u], v;\n", 4 * k, 32 + 4 * k);
        put("ret;\n}\n");
        if (run_clean(&r, &p, sizeof p))
            for (uint32_t k = 0; k < 4; k++)
                CHECK(io[8 + k] == io[k], "word %u: want %x got %x", k, io[k], io[8 + k]);
        run_free(io);
    }
}

void copy_cases(struct rng *rng)
{
    test_box_loads(rng);
    test_box_reductions(rng);
    test_new_maps(rng);
    test_atomicity();
    test_async_stores(rng);
    test_bulk_stores();
    test_copies_arrive(rng);
    test_ignored();
}
