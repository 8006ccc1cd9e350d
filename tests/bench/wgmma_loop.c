#include "wgmma_loop.h"

#include "lib/golden_text.h"

enum { REGS = 128 };

/* Random sign and mantissa, two random bits of exponent; then %d1, %d2: descriptors of A and B, 128-byte
 * swizzle, 8 rows every 1,024 bytes. */
static void operands(struct text *t, bool e4m3, unsigned stages)
{
    put(t,
        " mov.u32 %%r0, %%tid.x; mov.u32 %%r9, %%ntid.x; mov.u32 %%r1, smem; mov.u32 %%r2, %%r0;\n"
        "fill: mul.lo.u32 %%r3, %%r2, 0x9E3779B1; shr.u32 %%r4, %%r3, 15; xor.b32 %%r3, %%r3, "
        "%%r4;\n"
        " mul.lo.u32 %%r3, %%r3, 0x85EBCA6B; shr.u32 %%r4, %%r3, 13; xor.b32 %%r3, %%r3, %%r4;\n"
        " and.b32 %%r3, %%r3, 0x%s; or.b32 %%r3, %%r3, 0x%s;\n",
        e4m3 ? "9F9F9F9F" : "81FF81FF", e4m3 ? "20202020" : "3E003E00");
    put(t,
        " shl.b32 %%r4, %%r2, 2; add.u32 %%r4, %%r1, %%r4; st.shared.b32 [%%r4], %%r3;\n"
        " add.u32 %%r2, %%r2, %%r9; setp.lt.u32 p, %%r2, %u; @p bra fill;\n"
        " fence.proxy.async.shared::cta; bar.sync 0;\n",
        stages * WGMMA_STAGE_BYTES / 4);
    put(t, " and.b32 %%r5, %%r0, 128; shl.b32 %%r5, %%r5, 6; add.u32 %%r5, %%r5, %%r1;\n"
           " and.b32 %%r5, %%r5, 0x3FFFF; shr.u32 %%r5, %%r5, 4; cvt.u64.u32 %%d1, %%r5;\n"
           " or.b64 %%d1, %%d1, 0x4000004000010000;\n"
           " add.u32 %%r6, %%r1, 32768; and.b32 %%r6, %%r6, 0x3FFFF; shr.u32 %%r6, %%r6, 4;\n"
           " cvt.u64.u32 %%d2, %%r6; or.b64 %%d2, %%d2, 0x4000004000010000;\n");
}

/* A step of K is 32 bytes along the rows, 2 in a descriptor's address. */
static void group(struct text *t, bool e4m3, unsigned stage, unsigned depth)
{
    put(t, " wgmma.fence.sync.aligned;\n");
    for (unsigned step = 0; step < 4; step++) {
        unsigned offset = stage * WGMMA_STAGE_BYTES / 16 + 2 * step;
        put(t,
            " add.u64 %%d6, %%d1, %u; add.u64 %%d7, %%d2, %u;\n"
            " wgmma.mma_async.sync.aligned.%s {",
            offset, offset, e4m3 ? "m64n256k32.f32.e4m3.e4m3" : "m64n256k16.f32.bf16.bf16");
        for (int i = 0; i < REGS; i++) put(t, "%s%%f%d", i ? ", " : "", i);
        put(t, "}, %%d6, %%d7, keep, 1, 1%s;\n", e4m3 ? "" : ", 0, 0");
    }
    put(t, " wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned %u;\n", depth);
}

void wgmma_loop_text(char *out, bool e4m3, unsigned stages, unsigned depth)
{
    struct text t = {out, WGMMA_TEXT};
    put(&t,
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".extern .shared .align 1024 .b8 smem[];\n"
        ".visible .entry k(.param .u64 out, .param .u64 base, .param .u64 span, .param .u32 chunk, "
        ".param .u32 stages, .param .u32 n)\n.maxntid 256, 1, 1\n.minnctapersm 1\n{\n"
        " .reg .pred p, keep; .reg .b32 %%r<16>; .reg .b64 %%d<16>; .reg .f32 %%f<%d>;\n",
        REGS);
    operands(&t, e4m3, stages);
    put(&t, " ld.param.u32 %%r3, [n]; mov.u32 %%r2, 0; setp.ne.u32 keep, %%r3, 0;\n");
    for (int i = 0; i < REGS; i++) put(&t, " mov.f32 %%f%d, 0f00000000;\n", i);
    put(&t, " mov.u64 %%d4, %%globaltimer; mov.u64 %%d5, %%clock64;\nloop:\n");
    for (unsigned stage = 0; stage < stages; stage++) group(&t, e4m3, stage, depth);
    put(&t, " add.u32 %%r2, %%r2, 1; setp.lt.u32 p, %%r2, %%r3; @p bra loop;\n"
            " wgmma.wait_group.sync.aligned 0;\n"
            " mov.u64 %%d8, %%clock64; mov.u64 %%d9, %%globaltimer; sub.u64 %%d8, %%d8, %%d5;\n");
    for (int i = 1; i < REGS; i++) put(&t, " add.f32 %%f0, %%f0, %%f%d;\n", i);
    put(&t, " setp.ne.u32 p, %%r0, 0; @p bra end;\n"
            " ld.param.u64 %%d0, [out]; mov.u32 %%r8, %%ctaid.x; mul.wide.u32 %%d10, %%r8, 32;\n"
            " add.u64 %%d0, %%d0, %%d10; st.global.v2.u64 [%%d0], {%%d8, %%d4};\n"
            " st.global.u64 [%%d0+16], %%d9; st.global.f32 [%%d0+24], %%f0;\nend: ret;\n}\n");
}
