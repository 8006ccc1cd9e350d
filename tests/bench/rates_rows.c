/*
 * Rows of a table at random, on all SMs: bytes/s by each way that a kernel has to load them. A warp fetches
 * 32 rows at a time into a ring of its own in shared memory, and again as soon as they are there, so nothing
 * but the copies takes time. "loads" are plain loads into registers, which say what memory itself allows.
 */
#include "lib/golden_text.h"
#include "rates.h"

#include <stdio.h>
#include <string.h>

/* BOX: one of TMA a row, which shared memory takes at multiples of 128 bytes. PAIR: the first 512 bytes as four
 * swizzled columns of 128, the last 128 bytes by a box of their own: 640 bytes in shared memory. */
enum way { BULK, BOX, PAIR, ASYNC, LOADS, WAYS };
static const char *const way_names[WAYS] = {"bulk copies", "boxes", "two boxes", "cp.async",
                                            "loads"};

/* Rows of `bytes`, side by side; `pitch`: in shared memory; `warps` of a CTA, each with `slots` of 32 rows. */
struct rows {
    enum way way;
    uint32_t bytes, pitch, warps, slots;
};

enum { TEXT = 1 << 15, RING = 200 << 10, CHUNK = 16, LOADED_AT_ONCE = 4 };

static uint32_t lanes_chunks(const struct rows *r)
{
    return (r->bytes + CHUNK - 1) / CHUNK;
}

/* %r20: a row at random for %r16, a number; %d6: its address. */
static void put_row(struct text *t, const struct rows *r)
{
    put(t,
        " mul.lo.u32 %%r20, %%r16, 0x9E3779B1; shr.u32 %%r21, %%r20, 15; xor.b32 %%r20, %%r20, "
        "%%r21;\n"
        " mul.lo.u32 %%r20, %%r20, 0x85EBCA6B; shr.u32 %%r21, %%r20, 13; xor.b32 %%r20, %%r20, "
        "%%r21;\n"
        " mul.hi.u32 %%r20, %%r20, %%r9; mul.wide.u32 %%d6, %%r20, %u; add.u64 %%d6, %%d6, %%d1;\n",
        r->bytes);
}

/* 32 rows to %r12, of which lane %r2 has %d6 and %r20; %r13: the slot's barrier. */
static void put_bulk(struct text *t, const struct rows *r)
{
    static const char box[] = " cp.async.bulk.tensor.%s.shared::cluster.global.tile.mbarrier::"
                              "complete_tx::bytes [%%r14], [%%%s, {%s}], [%%r13];\n";
    put(t,
        " setp.eq.u32 p, %%r2, 0; @p mbarrier.arrive.expect_tx.shared.b64 _, [%%r13], %u;\n"
        " bar.warp.sync 0xffffffff; mad.lo.u32 %%r14, %%r2, %u, %%r12;\n",
        32 * (r->way == PAIR ? r->pitch : r->bytes), r->pitch);
    if (r->way == BULK)
        put(t,
            " cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%r14], [%%d6], "
            "%u, [%%r13];\n",
            r->bytes);
    else if (r->way == BOX)
        put(t, box, "2d", "d3", "%r19, %r20");
    else {
        put(t, box, "3d", "d3", "%r19, %r19, %r20");
        put(t, " add.u32 %%r14, %%r14, 512;\n");
        put(t, box, "2d", "d5", "%r19, %r20");
    }
}

static void put_async(struct text *t, const struct rows *r)
{
    put(t, " mov.b64 {%%r14, %%r15}, %%d6;\n");
    for (uint32_t row = 0; row < 32; row++) {
        put(t,
            " shfl.sync.idx.b32 %%r17, %%r14, %u, 31, 0xffffffff; shfl.sync.idx.b32 %%r18, %%r15, "
            "%u, 31, 0xffffffff;\n mov.b64 %%d7, {%%r17, %%r18}; add.u64 %%d7, %%d7, %%d4;\n",
            row, row);
        for (uint32_t c = 0; c < lanes_chunks(r); c += 32)
            put(t,
                " setp.lt.u32 p, %%r2, %u; @p cp.async.cg.shared.global [%%r11+%u], [%%d7+%u], "
                "16;\n",
                lanes_chunks(r) - c, row * r->pitch + CHUNK * c, CHUNK * c);
    }
    put(t, " cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%%r13];\n");
}

static void put_copies(struct text *t, const struct rows *r)
{
    put(t,
        " mov.u32 %%r10, 0; mov.u32 %%r8, 0; mov.u32 %%r6, 0;\n" /* slot, round, piece */
        "loop: mad.lo.u32 %%r13, %%r10, 8, %%r4; setp.lt.u32 q, %%r6, %u; @q bra issue;\n"
        " add.u32 %%r7, %%r8, 1; and.b32 %%r7, %%r7, 1;\n"
        "wait: mbarrier.try_wait.parity.shared.b64 p, [%%r13], %%r7; @!p bra wait;\n"
        "issue: mad.lo.u32 %%r12, %%r10, %u, %%r5;\n"
        " mad.lo.u32 %%r16, %%r6, 32, %%r22; add.u32 %%r16, %%r16, %%r2;\n",
        r->slots, 32 * r->pitch);
    put_row(t, r);
    if (r->way == ASYNC) {
        put(t, " mad.lo.u32 %%r11, %%r2, 16, %%r12;\n");
        put_async(t, r);
    } else {
        put_bulk(t, r);
    }
    put(t,
        " add.u32 %%r10, %%r10, 1; setp.eq.u32 p, %%r10, %u; @p mov.u32 %%r10, 0;\n"
        " @p add.u32 %%r8, %%r8, 1;\n"
        " add.u32 %%r6, %%r6, 1; setp.lt.u32 p, %%r6, %%r3; @p bra loop;\n"
        " mov.u32 %%r6, 0; add.u32 %%r7, %%r8, 1; and.b32 %%r7, %%r7, 1;\n"
        "drain: mad.lo.u32 %%r13, %%r10, 8, %%r4;\n"
        "last: mbarrier.try_wait.parity.shared.b64 p, [%%r13], %%r7; @!p bra last;\n"
        " add.u32 %%r10, %%r10, 1; setp.eq.u32 p, %%r10, %u; @p mov.u32 %%r10, 0;\n"
        " @p xor.b32 %%r7, %%r7, 1;\n"
        " add.u32 %%r6, %%r6, 1; setp.lt.u32 p, %%r6, %u; @p bra drain;\n",
        r->slots, r->slots, r->slots);
}

/* Each warp some rows at once, and all their bytes into one word that is stored if it is 1. */
static void put_loads(struct text *t, const struct rows *r)
{
    put(t, " mov.u32 %%r6, 0; mov.u32 %%r8, 0;\nloop:\n");
    for (uint32_t row = 0; row < LOADED_AT_ONCE; row++) {
        put(t, " mad.lo.u32 %%r16, %%r6, %u, %%r22; add.u32 %%r16, %%r16, %u;\n", LOADED_AT_ONCE,
            row);
        put_row(t, r);
        put(t, " add.u64 %%d6, %%d6, %%d4;\n");
        for (uint32_t c = 0; c < lanes_chunks(r); c += 32) {
            uint32_t first = 4 * (row * 3 + c / 32);
            put(t,
                " setp.lt.u32 p, %%r2, %u; @p ld.global.nc.L1::no_allocate.v4.b32 {%%v%u, %%v%u, "
                "%%v%u, %%v%u}, [%%d6+%u];\n",
                lanes_chunks(r) - c, first, first + 1, first + 2, first + 3, CHUNK * c);
        }
    }
    for (uint32_t row = 0; row < LOADED_AT_ONCE; row++)
        for (uint32_t i = 0; i < (lanes_chunks(r) + 31) / 32 * 4; i++)
            put(t, " xor.b32 %%r8, %%r8, %%v%u;\n", 12 * row + i);
    put(t, " add.u32 %%r6, %%r6, 1; setp.lt.u32 p, %%r6, %%r3; @p bra loop;\n"
           " setp.eq.u32 p, %%r8, 1; @p st.global.u32 [%%d0+24], %%r8;\n");
}

/* %r22: the warp's first number of a row; n: turns of a warp. */
static void rows_text(char *out, const struct rows *r)
{
    struct text t = {out, TEXT};
    put(&t,
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".extern .shared .align 1024 .b8 smem[];\n"
        ".visible .entry k(.param .u64 out, .param .u64 base, .param .u64 span, .param .u32 chunk, "
        ".param .u32 stages, .param .u32 n, .param .align 64 .b8 map[256])\n"
        ".maxntid %u, 1, 1\n.minnctapersm 1\n{\n"
        " .shared .align 8 .b64 bar[32];\n"
        " .reg .pred p, q; .reg .b32 %%r<24>, %%v<48>; .reg .b64 %%d<12>;\n"
        " mov.u32 %%r0, %%tid.x; shr.u32 %%r1, %%r0, 5; and.b32 %%r2, %%r0, 31;\n"
        " ld.param.u64 %%d0, [out]; ld.param.u64 %%d1, [base]; ld.param.u32 %%r3, [n];\n"
        " ld.param.u32 %%r9, [chunk]; mov.b64 %%d3, map; cvta.param.u64 %%d3, %%d3; add.u64 %%d5, "
        "%%d3, 128;\n"
        " mov.u32 %%r4, bar; mov.u32 %%r5, smem; mov.u32 %%r19, 0; mul.wide.u32 %%d4, %%r2, 16;\n",
        32 * r->warps);
    for (int i = 0; i < 48; i++) put(&t, " mov.u32 %%v%d, 0;\n", i);
    put(&t,
        " setp.lt.u32 p, %%r0, 32; mad.lo.u32 %%r7, %%r0, 8, %%r4;\n"
        " @p mbarrier.init.shared.b64 [%%r7], %u;\n"
        " fence.mbarrier_init.release.cluster; bar.sync 0;\n"
        " mad.lo.u32 %%r4, %%r1, %u, %%r4; mad.lo.u32 %%r5, %%r1, %u, %%r5;\n"
        " mov.u32 %%r22, %%ctaid.x; mad.lo.u32 %%r22, %%r22, %u, %%r1;\n"
        " mul.lo.u32 %%r22, %%r22, %%r3; mul.lo.u32 %%r22, %%r22, %u;\n"
        " mov.u64 %%d8, %%globaltimer; mov.u64 %%d9, %%clock64;\n",
        r->way == ASYNC ? 32 : 1, 8 * r->slots, 32 * r->pitch * r->slots, r->warps,
        r->way == LOADS ? LOADED_AT_ONCE : 32);
    if (r->way == LOADS)
        put_loads(&t, r);
    else
        put_copies(&t, r);
    put(&t,
        " bar.sync 0; mov.u64 %%d10, %%clock64; mov.u64 %%d11, %%globaltimer;\n"
        " sub.u64 %%d10, %%d10, %%d9; setp.ne.u32 p, %%r0, 0; @p bra end;\n"
        " mov.u32 %%r8, %%ctaid.x; mul.wide.u32 %%d7, %%r8, 32; add.u64 %%d0, %%d0, %%d7;\n"
        " st.global.v2.u64 [%%d0], {%%d10, %%d8}; st.global.u64 [%%d0+16], %%d11;\nend: ret;\n}\n");
}

typedef int encode_tiled(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                         const uint32_t *, const uint32_t *, int, int, int, int);
enum { UINT64 = 4, SWIZZLE_128 = 3, MAP = 128, COLUMN = 128, LEFT = 512 };

/* Boxes of one row, of 64-bit words. */
static bool encode(struct device *d, hewn_deviceptr base, const struct rows *r, uint32_t count,
                   unsigned char *map)
{
    encode_tiled *tiled;
    void *symbol = hewn_driver_symbol(d->driver, "cuTensorMapEncodeTiled"), *at;
    const uint64_t words = (r->way == PAIR ? COLUMN : r->bytes) / 8, stride[1] = {r->bytes};
    const uint64_t dim[2] = {words, count}, dims[3] = {COLUMN / 8, LEFT / COLUMN, count};
    const uint64_t strides[2] = {COLUMN, r->bytes};
    const uint32_t box[2] = {(uint32_t)words, 1}, boxes[3] = {COLUMN / 8, LEFT / COLUMN, 1};
    const uint32_t step[3] = {1, 1, 1};
    hewn_deviceptr right = base + r->bytes - COLUMN;
    memcpy(&tiled, &symbol, sizeof tiled);
    if (!tiled) return false;
    memcpy(&at, r->way == PAIR ? &right : &base, sizeof at);
    if (tiled(r->way == PAIR ? map + MAP : map, UINT64, 2, at, dim, stride, box, step, 0,
              r->way == PAIR ? SWIZZLE_128 : 0, 0, 0))
        return false;
    memcpy(&at, &base, sizeof at);
    return r->way != PAIR ||
           !tiled(map, UINT64, 3, at, dims, strides, boxes, step, 0, SWIZZLE_128, 0, 0);
}

static bool one(struct device *d, hewn_deviceptr out, hewn_deviceptr base, uint64_t span,
                const struct rows *r, uint32_t sms, double *nanoseconds, double *rate)
{
    static char text[TEXT];
    _Alignas(64) unsigned char map[2 * MAP] = {0};
    uint32_t at_once = r->way == LOADS ? LOADED_AT_ONCE : 32;
    struct job job = {.text = text,
                      .chunk = (uint32_t)(span / r->bytes),
                      .stages = r->slots,
                      .n = 16384 / at_once / r->warps,
                      .ctas = sms,
                      .threads = 32 * r->warps,
                      .shared = RING,
                      .map = map};
    struct answer a;
    rows_text(text, r);
    if ((r->way == BOX || r->way == PAIR) && !encode(d, base, r, job.chunk, map)) return false;
    if (!measure(d, out, base, job, &a)) return false;
    *nanoseconds = a.nanoseconds / (job.n * at_once * r->warps);
    *rate = 1e-3 * r->bytes * sms / *nanoseconds;
    return true;
}

bool rates_of_rows(struct device *d, hewn_deviceptr out, hewn_deviceptr base, uint64_t whole,
                   uint32_t sms)
{
    static const uint32_t sizes[] = {656, 576, 640, 768, 1152};
    static const uint32_t warps[WAYS][4] = {
        {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 3, 4, 8}, {8, 16, 32}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (enum way way = 0; way < WAYS; way++) {
            if (way == PAIR && sizes[s] != 656) continue;
            printf("rows of %4u bytes at random, %-11s:", sizes[s], way_names[way]);
            for (int i = 0; i < 4 && warps[way][i]; i++) {
                struct rows r = {way, sizes[s], sizes[s], warps[way][i], 0};
                double ns[2], rate[2];
                if (way == BOX) r.pitch = (r.bytes + 127) / 128 * 128;
                if (way == PAIR) r.pitch = LEFT + COLUMN;
                r.slots = RING / (32 * r.pitch * r.warps);
                if (!r.slots && way != LOADS) continue;
                if (!one(d, out, base, whole, &r, sms, &ns[0], &rate[0]) ||
                    !one(d, out, base, 24 << 20, &r, sms, &ns[1], &rate[1]))
                    return false;
                printf("  %u warps %.1f ns a row %.2f TB/s (L2 %.1f)", r.warps, ns[0], rate[0],
                       ns[1]);
            }
            printf("\n");
            fflush(stdout);
        }
    }
    return true;
}
