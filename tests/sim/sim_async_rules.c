/* Breaches, one a case: of the rules of mbarriers and copies, and of the driver's for tensor maps. */
#include "lib/harness.h"
#include "sim_async.h"
#include "sim_run.h"
#include "async/tmap.h"

#include <stdio.h>
#include <string.h>

/* ---- findings ---- */

#define BUG_HEAD                                                                          \
    HEAD ".visible .entry k(.param .u64 p_in)\n{\n.shared .align 128 .b8 tile[512];\n"    \
         ".shared .align 8 .b64 bar[2];\n.reg .pred p;\n.reg .b32 r, t;\n.reg .b64 in;\n" \
         "ld.param.u64 in, [p_in]; mov.u32 r, bar; mov.u32 t, tile;\n"
#define COPY \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [t], [in], 256, [bar];\n"

static const struct bug {
    const char *name, *body, *kind, *object;
    int result;
} bugs[] = {
    {"use before init", "mbarrier.arrive.shared::cta.b64 _, [bar+8];\n", "mbarrier-uninit",
     "bar[1]", 719},
    {"count 0", "mbarrier.init.shared::cta.b64 [bar], 0;\n", "mbarrier-uninit", "bar[0]", 719},
    {"count 2^20", "mbarrier.init.shared::cta.b64 [bar], 1048576;\n", "mbarrier-uninit", "bar[0]",
     719},
    {"arrivals past pending",
     "mbarrier.init.shared::cta.b64 [bar], 1;\n"
     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n"
     "mbarrier.arrive.shared::cta.b64 _, [bar];\n",
     "mbarrier-overrun", "bar[0]", 719},
    {"tx out of range",
     "mbarrier.init.shared::cta.b64 [bar], 1;\n"
     "mbarrier.expect_tx.shared::cta.b64 [bar], 1048575;\n"
     "mbarrier.expect_tx.shared::cta.b64 [bar], 1;\n",
     "mbarrier-tx", "bar[0]", 0},
    {"store over a live barrier",
     "mbarrier.init.shared::cta.b64 [bar], 1;\nmov.b32 t, 5; st.shared.u32 [bar], t;\n"
     "mbarrier.arrive.shared::cta.b64 _, [bar];\n",
     "mbarrier-clobber", "bar[0]", 719},
    {"init over a live barrier",
     "mbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.init.shared::cta.b64 [bar], 1;\n",
     "mbarrier-clobber", "bar[0]", 0},
    {"use after inval",
     "mbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.inval.shared::cta.b64 [bar];\n"
     "mbarrier.arrive.shared::cta.b64 _, [bar];\n",
     "mbarrier-uninit", "bar[0]", 719},
    {"two copies, bytes of one",
     "mbarrier.init.shared::cta.b64 [bar], 1;\n" COPY COPY
     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\n" WAIT("bar", "0") WAIT("bar", "1"),
     "mbarrier-tx", "bar[0]", -2},
    {"copy on a barrier never initialised", COPY, "mbarrier-uninit", "bar[0]", 719},
    {"misaligned barrier", "mbarrier.init.shared::cta.b64 [bar+4], 1;\n", "misaligned", "", 716},
    {"misaligned size",
     "mbarrier.init.shared::cta.b64 [bar], 1;\n"
     "mov.b32 r, 24;\n"
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [t], [in], r, [bar];\n",
     "misaligned", "", 716},
    {"copy past the source",
     "mbarrier.init.shared::cta.b64 [bar], 1;\n"
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [t], [in+256], 272, "
     "[bar];\n",
     "oob", "", 700},
    {"garbage for a map",
     "mbarrier.init.shared::cta.b64 [bar], 1;\n"
     "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [t], [in, {0, "
     "0}], [bar];\n",
     "tma-desc", "", 715},
};

static void check_bug(const struct bug *bug, uint64_t seed)
{
    struct run r = {.block = 1, .seed = seed};
    unsigned char *in = run_alloc(512);
    uint64_t p = (uint64_t)(uintptr_t)in;
    char text[4096], object[64];
    int result;
    memset(in, 0x11, 512);
    snprintf(text, sizeof text, "%s%sret;\n}\n", BUG_HEAD, bug->body);
    result = run_kernel(&r, text, &p, 8);
    if (bug->result != -2) CHECK_INT(result, bug->result);
    CHECK(run_found(&r, bug->kind), "no %s in: %s", bug->kind, r.findings);
    snprintf(object, sizeof object, "\"object\":\"%s\"", bug->object);
    CHECK(strstr(r.findings, object), "no %s in: %s", object, r.findings);
    run_free(in);
}

/* A warp that arrives at another CTA's barrier once too often: both CTAs are named. */
static void check_remote_arrivals(uint64_t seed)
{
    static const char text[] =
        BUG_HEAD ".reg .b32 rank, far;\nmov.u32 rank, %cluster_ctarank;\n"
                 "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\n"
                 "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
                 "mapa.shared::cluster.u32 far, r, 1;\nsetp.ne.u32 p, rank, 0; @p bra over;\n"
                 "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [far], 16;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [far];\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [far];\n"
                 "over: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nret;\n}\n";
    struct run r = {.grid = 2, .block = 1, .cluster = 2, .seed = seed};
    uint64_t p = 0;
    CHECK_INT(run_kernel(&r, text, &p, 8), 719);
    CHECK(run_found(&r, "mbarrier-overrun"), "findings: %s", r.findings);
    CHECK(strstr(r.findings, "at bar[0] of CTA rank 1, from a warp of CTA rank 0;"), "findings: %s",
          r.findings);
}

/* The lanes of a warp initialise one barrier alike: as good as one initialisation. */
static void check_init_by_warp(uint32_t count_step, bool clean)
{
    struct run r = {.block = 32};
    uint64_t p = 0;
    char text[4096];
    snprintf(text, sizeof text,
             "%smov.u32 t, %%tid.x; mad.lo.u32 t, t, %u, 1;\n"
             "mbarrier.init.shared::cta.b64 [r], t;\nret;\n}\n",
             BUG_HEAD, count_step);
    CHECK_INT(run_kernel(&r, text, &p, 8), 0);
    CHECK(run_found(&r, "mbarrier-clobber") == !clean, "findings: %s", r.findings);
}

void finding_cases(void)
{
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        if (!test_case("finding: %s", bugs[i].name)) continue;
        for (uint64_t seed = 0; seed < 10; seed++) check_bug(&bugs[i], seed);
    }
    if (test_case("finding: an arrival from another CTA"))
        for (uint64_t seed = 0; seed < 10; seed++) check_remote_arrivals(seed);
    if (test_case("init by all lanes of a warp")) check_init_by_warp(0, true);
    if (test_case("init by the lanes of a warp with different counts"))
        check_init_by_warp(1, false);
}

/* ---- the driver's rules ---- */

static const struct rule {
    const char *name, *why; /* the message must contain `why`; NULL: legal */
    struct tmap change;     /* fields that are not 0 replace those of a plain bf16 matrix */
    uint32_t cc;
} rules[] = {
    {"plain", NULL, {0}, 9},
    {"data type", "data type 16", {.dtype = 16}, 9},
    {"packed on 9.0", "compute capability 10.0", {.dtype = 14}, 9},
    {"rank", "rank 6", {.rank = 6}, 9},
    {"interleaved rank", "rank 2 is not 3", {.interleave = 1}, 9},
    {"address", "not a multiple of 16", {.address = 0x1008}, 9},
    {"dimension", "not 1 to 2^32", {.dim = {0, (1ULL << 32) + 1}}, 9},
    {"largest dimension", NULL, {.dim = {0, 1ULL << 32}}, 9},
    {"stride", "not a multiple of 16", {.stride = {0, 264}}, 9},
    {"stride 2^40", "not below 2^40", {.stride = {0, 1ULL << 40}}, 9},
    {"box", "box dimension 1 is 257", {.box = {0, 257}}, 9},
    {"inner bytes", "not a multiple of 16 bytes", {.box = {12}}, 9},
    {"inner bytes, interleaved",
     "not a multiple of 16 bytes",
     {.interleave = 1,
      .rank = 3,
      .dim = {0, 0, 1},
      .stride = {0, 0, 16},
      .box = {12, 0, 1},
      .element_stride = {0, 0, 1}},
     9},
    {"inner wider than swizzle", "wider than the 64-byte span", {.swizzle = 2}, 9},
    {"element stride", "element stride 1 is 9", {.element_stride = {0, 9}}, 9},
    {"atom swizzle on 9.0", "compute capability 10.0", {.swizzle = 4}, 9},
    {"atom swizzle", NULL, {.swizzle = 6}, 10},
    {"swizzle", "swizzle 7", {.swizzle = 7}, 10},
    {"L2 promotion", "L2 promotion 4", {.l2 = 4}, 9},
    {"NaN fill of integers", "NaN fill", {.dtype = 1, .oob = 1}, 9},
    {"packed inner box", "takes 128 only", {.dtype = 14, .dim = {128}, .address = 0x2000}, 10},
};

static void check_rule(const struct rule *rule)
{
    struct tmap t = {.address = 0x1000,
                     .dtype = 9,
                     .rank = 2,
                     .swizzle = 3,
                     .dim = {64, 64},
                     .stride = {2, 128},
                     .box = {64, 8},
                     .element_stride = {1, 1}};
    const struct tmap *c = &rule->change;
    char why[256] = "";
    struct tmap back;
    unsigned char opaque[128];
    int result;
    if (c->address) t.address = c->address;
    if (c->dtype) t.dtype = c->dtype;
    if (c->rank) t.rank = c->rank;
    if (c->interleave) t.interleave = c->interleave;
    if (c->swizzle) t.swizzle = c->swizzle;
    if (c->l2) t.l2 = c->l2;
    if (c->oob) t.oob = c->oob;
    for (uint32_t d = 0; d < 3; d++) {
        if (c->dim[d]) t.dim[d] = c->dim[d];
        if (c->stride[d]) t.stride[d] = c->stride[d];
        if (c->box[d]) t.box[d] = c->box[d];
        if (c->element_stride[d]) t.element_stride[d] = c->element_stride[d];
    }
    result = tmap_validate(&t, rule->cc, why, sizeof why);
    CHECK_INT(result, rule->why ? 1 : 0);
    if (rule->why) {
        CHECK_TEXT(why, rule->why);
        return;
    }
    tmap_encode(&t, opaque);
    CHECK(tmap_decode(opaque, &back), "an encoded map does not decode");
    CHECK(back.address == t.address && back.dim[1] == t.dim[1] && back.stride[1] == t.stride[1] &&
              back.box[1] == t.box[1] && back.swizzle == t.swizzle,
          "fields changed on the way");
    opaque[62] ^= 1; /* encoders of others leave the second half as it is */
    CHECK(!tmap_decode(opaque, &back), "a damaged map decodes");
    opaque[62] ^= 1;
    memset(opaque + 64, 0xa5, 64);
    opaque[8] ^= 2;
    CHECK(tmap_decode(opaque, &back), "a map as CuTe DSL encodes it does not decode");
    CHECK(back.dim[1] == t.dim[1] && back.box[1] == t.box[1] && back.wide == t.wide &&
              !tmap_validate(&back, rule->cc, why, sizeof why),
          "fields changed: %s", why);
}

void rule_cases(void)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (test_case("tensor map rule: %s", rules[i].name)) check_rule(&rules[i]);
    }
}
