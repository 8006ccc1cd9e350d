/* Forms of mbarriers, fences and cluster launch control (sim_forms.c). */
#include "sim_forms.h"

#include <stdio.h>
#include <string.h>

static const char *const scopes[] = {"cta", "cluster", "gpu", "sys"};
enum { SCOPES = 4, WORDS = 256 };

static uint64_t address_of(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* ---- mbarrier: test_wait and try_wait ---- */

static const char *const orders[] = {"", ".acquire.cta", ".acquire.cluster", ".relaxed.cta",
                                     ".relaxed.cluster"};
static const char *const spaces[] = {".shared", ".shared::cta", ""};
enum { WAIT_ORDERS = 5, WAIT_SPACES = 3, WAITS = 4 * WAIT_ORDERS * WAIT_SPACES };

#define WAIT_HEAD                                                                  \
    HEAD ".visible .entry k(.param .u64 p_out)\n{\n.shared .align 8 .b64 bar;\n"   \
         ".reg .pred p;\n.reg .b32 w, tx;\n.reg .b64 out, state, done, at;\n"      \
         "ld.param.u64 out, [p_out];\nmov.u64 at, bar;\ncvta.shared.u64 at, at;\n" \
         "mbarrier.init.shared::cta.b64 [bar], 2;\n"                               \
         "mbarrier.arrive.shared::cta.b64 done, [bar];\n"

/* try_wait sleeps for a time of its own, so that it is asked only about phases that are over. */
static void wait_form(char opcode[96], uint32_t i, bool *parity, bool *blocks)
{
    *parity = i % 2;
    *blocks = i / 2 % 2;
    (void)snprintf(opcode, 96, "mbarrier.%s%s%s%s.b64", *blocks ? "try_wait" : "test_wait",
                   *parity ? ".parity" : "", orders[i / 4 % WAIT_ORDERS],
                   spaces[i / 4 / WAIT_ORDERS]);
}

static void put_wait(const char *opcode, const char *bar, const char *phase, uint32_t word)
{
    put("%s p, [%s], %s;\nselp.b32 w, 1, 0, p;\nst.global.b32 [out+%u], w;\n", opcode, bar, phase,
        4 * word);
}

/* Of each form: the current phase is not over, the one before is; later the first is over too. */
static void test_waits(void)
{
    struct run r = {.block = 1};
    char opcode[96];
    bool parity, blocks;

    if (!test_case("mbarrier waits: every order, scope and space")) return;
    uint32_t *out = run_alloc(4 * WORDS);
    const uint64_t p = address_of(out);
    memset(out, 0xFF, 4 * WORDS);
    text_begin(WAIT_HEAD);
    for (uint32_t i = 0; i < WAITS; i++) {
        wait_form(opcode, i, &parity, &blocks);
        const char *bar = i / 4 / WAIT_ORDERS == 2 ? "at" : "bar";
        if (!blocks) put_wait(opcode, bar, parity ? "0" : "done", 3 * i);
        if (parity) put_wait(opcode, bar, "1", 3 * i + 1);
    }
    put("mbarrier.arrive.shared::cta.b64 state, [bar];\n");
    for (uint32_t i = 0; i < WAITS; i++) {
        wait_form(opcode, i, &parity, &blocks);
        put_wait(opcode, i / 4 / WAIT_ORDERS == 2 ? "at" : "bar", parity ? "0" : "done", 3 * i + 2);
    }
    put("ret;\n}\n");
    const bool ran = run_clean(&r, &p, sizeof p);
    for (uint32_t i = 0; ran && i < WAITS; i++) {
        wait_form(opcode, i, &parity, &blocks);
        CHECK(blocks || out[3 * i] == 0, "%s: true of a phase that is not over", opcode);
        CHECK(!parity || out[3 * i + 1] == 1, "%s: false of the phase before", opcode);
        CHECK(out[3 * i + 2] == 1, "%s: false of a phase that is over", opcode);
    }
    run_free(out);
}

/* expect_tx raises what the phase waits for; complete_tx ends it. */
static void test_expect(void)
{
    static const char *const expects[] = {".relaxed.cta.shared::cta",
                                          ".relaxed.cta.shared::cluster",
                                          ".relaxed.cluster.shared::cta",
                                          ".relaxed.cluster.shared::cluster", ".shared::cta"};
    for (uint32_t i = 0; i < sizeof expects / sizeof expects[0]; i++) {
        struct run r = {.block = 1};
        if (!test_case("mbarrier.expect_tx%s", expects[i])) continue;
        uint32_t *out = run_alloc(8);
        const uint64_t p = address_of(out);
        text_begin(WAIT_HEAD);
        put("mbarrier.expect_tx%s.b64 [bar], 48;\nmbarrier.arrive.shared::cta.b64 state, [bar];\n",
            expects[i]);
        put_wait("mbarrier.test_wait.shared::cta.b64", "bar", "done", 0);
        put("mbarrier.complete_tx.shared::cta.b64 [bar], 48;\n");
        put_wait("mbarrier.test_wait.shared::cta.b64", "bar", "done", 1);
        put("ret;\n}\n");
        if (run_clean(&r, &p, sizeof p)) {
            CHECK(out[0] == 0, "the phase ends before its bytes");
            CHECK(out[1] == 1, "the phase does not end with its bytes");
        }
        run_free(out);
    }
}

/* ---- fences ---- */

/*
 * One thread stores data and a flag, another polls the flag and loads the data. Both are of one CTA, of one
 * cluster, or of two CTAs of the grid, as the scope asks. `release` or `acquire` empty: that fence is missing.
 */
static void put_message(const char *release, const char *acquire, const char *scope)
{
    const bool one_cta = !strcmp(scope, "cta"), cluster = !strcmp(scope, "cluster");

    text_begin(HEAD ".visible .entry k(.param .u64 p_out)\n{\n.reg .pred p;\n.reg .b32 who, v;\n"
                    ".reg .b64 out;\nld.param.u64 out, [p_out];\n");
    put("mov.u32 who, %s;\n", one_cta ? "%tid.x" : cluster ? "%cluster_ctarank" : "%ctaid.x");
    if (one_cta) put("shr.u32 who, who, 5;\n");
    put("setp.ne.u32 p, who, 0;\n@p bra reads;\n"
        "st.global.b32 [out], 7;\n%s%sst.relaxed.%s.global.b32 [out+128], 1;\nret;\n",
        release, *release ? ";\n" : "", scope);
    put("reads: ld.relaxed.%s.global.b32 v, [out+128];\nsetp.eq.u32 p, v, 0;\n@p bra reads;\n"
        "%s%sld.global.b32 v, [out];\nst.global.b32 [out+256], v;\nret;\n}\n",
        scope, acquire, *acquire ? ";\n" : "");
}

static void check_message(const char *scope, bool clean)
{
    const bool one_cta = !strcmp(scope, "cta"), cluster = !strcmp(scope, "cluster");
    struct run r = {
        .grid = one_cta ? 1 : 2, .cluster = cluster ? 2 : 1, .block = one_cta ? 33 : 1, .seed = 3};
    uint32_t *out = run_alloc(512);
    const uint64_t p = address_of(out);

    memset(out, 0, 512);
    if (!clean)
        run_for_finding(&r, &p, sizeof p, "race");
    else if (run_clean(&r, &p, sizeof p))
        CHECK(out[64] == 7, "the reader has %u", out[64]);
    run_free(out);
}

static void test_fences(void)
{
    static const char *const pairs[][2] = {
        {"release", "acquire"}, {"acq_rel", "acq_rel"}, {"sc", "sc"}, {"release", "acq_rel"}};
    char release[64], acquire[64];

    for (uint32_t s = 0; s < SCOPES; s++) {
        for (uint32_t i = 0; i < 4; i++) {
            if (!test_case("fence.%s.%s, then fence.%s", pairs[i][0], scopes[s], pairs[i][1]))
                continue;
            (void)snprintf(release, sizeof release, "fence.%s.%s", pairs[i][0], scopes[s]);
            (void)snprintf(acquire, sizeof acquire, "fence.%s.%s", pairs[i][1], scopes[s]);
            put_message(release, acquire, scopes[s]);
            check_message(scopes[s], true);
        }
        if (test_case("without fence.release.%s", scopes[s])) {
            put_message("", acquire, scopes[s]);
            check_message(scopes[s], false);
        }
        if (test_case("without fence.acquire.%s", scopes[s])) {
            put_message(release, "", scopes[s]);
            check_message(scopes[s], false);
        }
    }
}

/* ---- fences of one address space of a cluster ---- */

#define PAIR_HEAD                                                                                 \
    HEAD ".visible .entry k(.param .u64 p_out)\n{\n.shared .align 128 .b8 data[128];\n"           \
         ".shared .align 8 .b64 bars[2];\n.reg .pred p, first;\n"                                 \
         ".reg .b32 rank, v, here, there, bar, far;\n"                                            \
         ".reg .b64 out;\nld.param.u64 out, [p_out];\nmov.u32 rank, %%cluster_ctarank;\n"         \
         "setp.eq.u32 first, rank, 0;\nmov.u32 here, data;\nmov.u32 bar, bars;\n"                 \
         "mbarrier.init.shared::cta.b64 [bars], 1;\nmbarrier.init.shared::cta.b64 [bars+8], 1;\n" \
         "fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
#define PAIR_WAIT(order, bar)                                                              \
    "{ .reg .pred ok; again: mbarrier.try_wait.parity." order ".shared::cta.b64 ok, [" bar \
    "], 0;\n@!ok bra again; }\n"

static void check_pair(const uint32_t want[2], bool clean)
{
    struct run r = {.grid = 2, .cluster = 2, .block = 1, .seed = 5};
    uint32_t *out = run_alloc(64);
    const uint64_t p = address_of(out);

    memset(out, 0, 64);
    if (!clean) {
        run_for_finding(&r, &p, sizeof p, "race");
    } else if (run_clean(&r, &p, sizeof p)) {
        CHECK(out[0] == want[0] && out[1] == want[1], "want %u, %u got %u, %u", want[0], want[1],
              out[0], out[1]);
    }
    run_free(out);
}

/* CTA 1 stores into its own shared memory and tells CTA 0 by a relaxed arrive; CTA 0 loads from there. */
static void put_restricted(const char *release, const char *acquire)
{
    text_begin("");
    put(PAIR_HEAD);
    put("@first bra reads;\nst.shared.b32 [data], 9;\n%s"
        "mapa.shared::cluster.u32 far, bar, 0;\n"
        "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [far];\nbra done;\n",
        release);
    put("reads: " PAIR_WAIT(
            "relaxed.cluster",
            "bars") "%s"
                    "mapa.shared::cluster.u32 there, here, 1;\nld.shared::cluster.b32 v, [there];\n"
                    "st.global.b32 [out], v;\ndone: "
                    "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
                    "ret;\n}\n",
        acquire);
}

/* CTA 1 loads its word, and CTA 0 then overwrites it by a bulk copy, which CTA 1 waits for. */
static void put_proxies(const char *release, const char *acquire)
{
    text_begin("");
    put(PAIR_HEAD);
    put("@first bra copies;\nst.shared.b32 [data], 4;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars+8], 16;\n"
        "ld.shared.b32 v, [data];\nst.global.b32 [out], v;\n%s"
        "mapa.shared::cluster.u32 far, bar, 0;\n"
        "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [far];\n" PAIR_WAIT(
            "acquire.cluster",
            "bars+8") "ld.shared.b32 v, [data];\nst.global.b32 [out+4], v;\nbra done;\n",
        release);
    put("copies: st.shared.v4.b32 [data], {11, 12, 13, "
        "14};\nfence.proxy.async.shared::cta;\n" PAIR_WAIT(
            "relaxed.cluster",
            "bars") "%s"
                    "mapa.shared::cluster.u32 there, here, 1;\nmapa.shared::cluster.u32 far, bar, "
                    "1;\n"
                    "add.u32 far, far, 8;\n"
                    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                    "[there], [here], "
                    "16, [far];\ndone: barrier.cluster.arrive;\nbarrier.cluster.wait;\nret;\n}\n",
        acquire);
}

static void test_restricted(void)
{
    static const char acquire[] = "fence.acquire.sync_restrict::shared::cluster.cluster;\n",
                      release[] = "fence.release.sync_restrict::shared::cta.cluster;\n",
                      async_acquire[] = "fence.proxy.async::generic.acquire.sync_restrict"
                                        "::shared::cluster.cluster;\n",
                      async_release[] = "fence.proxy.async::generic.release.sync_restrict"
                                        "::shared::cta.cluster;\n";
    static const uint32_t nine[] = {9, 0}, copied[] = {4, 11};

    if (test_case("fence.release and .acquire of shared memory")) {
        put_restricted(release, acquire);
        check_pair(nine, true);
    }
    if (test_case("without the release")) {
        put_restricted("", acquire);
        check_pair(nine, false);
    }
    if (test_case("without the acquire")) {
        put_restricted(release, "");
        check_pair(nine, false);
    }
    if (test_case("fence.proxy.async::generic")) {
        put_proxies(async_release, async_acquire);
        check_pair(copied, true);
    }
    if (test_case("without fence.proxy.async::generic")) {
        put_proxies("", "");
        check_pair(copied, false);
    }
}

/* ---- cluster launch control ---- */

/* Every CTA asks once; whoever gets a cluster writes it as a vector and by its parts. */
static const char cancel_body[] =
    HEAD ".visible .entry k(.param .u64 p_out)\n{\n.shared .align 16 .b8 answer[16];\n"
         ".shared .align 8 .b64 bar;\n.reg .pred p, more;\n.reg .b32 x<8>, own;\n.reg .b64 out;\n"
         ".reg .b128 q;\nld.param.u64 out, [p_out];\nmov.u32 own, %ctaid.y;\n"
         "mad.lo.u32 own, own, 8, %ctaid.x;\n"
         "mad.wide.u32 out, own, 32, out;\nmbarrier.init.shared::cta.b64 [bar], 1;\n"
         "fence.proxy.async.shared::cta;\n"
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n"
         "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
         "[answer], [bar];\n"
         "wait: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;\n@!p bra wait;\n"
         "ld.shared.b128 q, [answer];\n"
         "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 more, q;\n@!more bra done;\n"
         "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x0, x1, x2, _}, q;\n"
         "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 x3, q;\n"
         "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 x4, q;\n"
         "clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 x5, q;\n"
         "st.global.v4.b32 [out], {x0, x1, x2, x3};\nst.global.v4.b32 [out+16], {x4, x5, 1, 1};\n"
         "ret;\ndone: st.global.b32 [out+28], 1;\nret;\n}\n";

static void test_cancel(void)
{
    enum { CTAS = 32 };
    struct run r = {.grid = CTAS, .block = 1, .dynamic_shared = 100000, .sms = 1};
    uint32_t taken = 0, ran = 0;

    if (!test_case("clusterlaunchcontrol: the parts of the answer")) return;
    uint32_t *out = run_alloc(32 * CTAS);
    const uint64_t p = address_of(out);
    memset(out, 0, 32 * CTAS);
    text_begin("");
    put("%s", cancel_body);
    if (run_clean(&r, &p, sizeof p)) {
        for (uint32_t i = 0; i < CTAS; i++) {
            const uint32_t *v = out + 8 * i;
            ran += v[7];
            taken += v[6];
            CHECK(!v[6] || (v[0] < CTAS && v[1] == 0 && v[2] == 0), "CTA %u: %u, %u, %u", i, v[0],
                  v[1], v[2]);
            CHECK(!v[6] || !out[8 * v[0] + 7], "CTA %u was taken and ran", v[0]);
            CHECK(v[3] == v[0] && v[4] == v[1] && v[5] == v[2], "CTA %u: parts %u, %u, %u", i, v[3],
                  v[4], v[5]);
        }
        CHECK(taken && ran + taken == CTAS, "%u ran, %u were taken", ran, taken);
    }
    run_free(out);
}

void sync_cases(void)
{
    test_waits();
    test_expect();
    test_fences();
    test_restricted();
    test_cancel();
}
