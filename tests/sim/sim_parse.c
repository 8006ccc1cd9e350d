/*
 * The simulator's front end: PTX text to modules, modules to decoded kernels, and the words of its
 * errors. Nothing is executed here.
 */
#include "lib/harness.h"
#include "ops/table.h"

#include "decode/decode.h"
#include "machine/machine.h"
#include "decode/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_OF(target) ".version 8.8\n.target " target "\n.address_size 64\n"
#define HEAD            HEAD_OF("sm_100f")
/* An entry `k` with the registers that the snippets use; the body starts on line 6. */
#define OPEN                                     \
    ".entry k(.param .u64 a, .param .u32 n) {\n" \
    ".reg .pred %p<3>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f32 %f<4>;\n"
#define BODY(text) HEAD OPEN text "\n}\n"

/* ---- helpers ---- */

static struct ptx_module *parse(const char *text)
{
    struct ptx_module *m = NULL;
    struct ptx_diag diag = {""};

    CHECK(ptx_parse(text, strlen(text), &m, &diag) == 0, "does not parse: %s", diag.text);
    return m;
}

static struct kernel *decode(const struct ptx_module *m)
{
    struct kernel *k = NULL;
    struct ptx_diag diag = {""};

    if (!m || !m->entry_count) return NULL;
    CHECK(kernel_decode(m, &m->entries[0], op_binders, &k, &diag) == 0, "does not decode: %s",
          diag.text);
    return k;
}

/* The text must be refused, by the parser or by the decoder, in these words. */
static void refused(const char *name, const char *text, const char *want)
{
    struct ptx_module *m = NULL;
    struct kernel *k = NULL;
    struct ptx_diag diag = {"accepted"};

    if (!test_case("refused: %s", name)) return;
    if (!ptx_parse(text, strlen(text), &m, &diag) && m->entry_count)
        kernel_decode(m, &m->entries[0], op_binders, &k, &diag);
    CHECK(!strcmp(diag.text, want), "want \"%s\" got \"%s\"", want, diag.text);
    kernel_free(k);
    ptx_module_free(m);
}

/* The text must load, and its entry must not be able to launch. */
static void unsupported(const char *name, const char *text, const char *want)
{
    struct ptx_module *m;
    struct kernel *k;

    if (!test_case("not modelled: %s", name)) return;
    m = parse(text);
    k = decode(m);
    if (k)
        CHECK(k->unsupported && !strcmp(k->unsupported, want), "want \"%s\" got \"%s\"", want,
              k->unsupported ? k->unsupported : "nothing");
    kernel_free(k);
    ptx_module_free(m);
}

/* ---- the opcode table ---- */

static void test_table(void)
{
    if (!test_case("every row's notation is well formed")) return;
    CHECK(op_row_count > 100, "only %u rows", op_row_count);
    for (uint32_t i = 0; i < op_row_count; i++) {
        char why[160] = "";
        CHECK(op_row_valid(&op_rows[i], why, sizeof why), "row '%s' \"%s\" \"%s\": %s",
              op_rows[i].name, op_rows[i].mods, op_rows[i].args, why);
        CHECK(op_listed(&op_rows[i]), "'%s' is not in mnemonics.def", op_rows[i].name);
    }
}

/* By the first part of a name, known or not; and the list of what no row is of. */
static void test_mnemonics(void)
{
    static const char *const want[] = {"istypep", "sured", "pmevent"};
    static const char *const modelled[] = {"ld", "brkpt", "redux.sync", "tcgen05.wait", "mma"};
    uint32_t found = 0;

    if (!test_case("instructions that PTX has, with a row or without")) return;
    CHECK(op_known("ld") && op_known("multimem") && op_known("clusterlaunchcontrol"), "known");
    CHECK(!op_known("frobnicate") && !op_known("l") && !op_known("ldgsts"), "unknown");
    for (uint32_t i = 0; op_unmodelled(i); i++) {
        const char *name = op_unmodelled(i);
        for (size_t j = 0; j < sizeof want / sizeof want[0]; j++) found += !strcmp(name, want[j]);
        for (size_t j = 0; j < sizeof modelled / sizeof modelled[0]; j++)
            CHECK(strcmp(name, modelled[j]) != 0, "%s has a row", name);
    }
    CHECK_INT(found, sizeof want / sizeof want[0]);
}

static void test_types(void)
{
    if (!test_case("type names")) return;
    for (int t = 1; t < T_COUNT; t++) {
        const char *text = ptx_type_text((enum ptx_type)t);
        CHECK_INT(ptx_type_named(text, strlen(text)), t);
    }
    CHECK_INT(ptx_type_named("b3", 2), T_NONE);
    CHECK_INT(ptx_type_bits(T_BF16X2), 32);
    CHECK_INT(ptx_type_kind(T_S64), 's');
}

/* ---- layouts ---- */

static void test_params(void)
{
    static const uint32_t offsets[] = {0, 128, 132, 136, 144, 152};
    struct ptx_module *m;

    if (!test_case("parameters lie at natural alignment")) return;
    m = parse(HEAD
              ".visible .entry k(.param .align 64 .b8 map[128], .param .u32 a,\n"
              ".param .u8 b, .param .u64 .ptr .global .align 16 c, .param .f32 d, .param .b64 e)"
              "{ ret; }");
    if (!m) return;
    for (uint32_t i = 0; i < 6; i++) CHECK_INT(m->entries[0].params[i].offset, offsets[i]);
    CHECK_INT(m->entries[0].param_count, 6);
    CHECK_INT(m->entries[0].param_bytes, 160);
    CHECK_INT(m->entries[0].params[0].align, 64);
    CHECK_INT(m->entries[0].params[0].bytes, 128);
    ptx_module_free(m);
}

static void test_shared(void)
{
    struct ptx_module *m;

    if (!test_case("static shared memory: what an entry names, then extern")) return;
    m = parse(HEAD ".shared .align 8 .b64 bars[3];\n.shared .b32 unused[100];\n"
                   ".extern .shared .align 128 .b8 dyn[];\n"
                   ".entry one() { .reg .b32 r; .shared .b8 c; .shared .b32 w; mov.u32 r, w;"
                   " mov.u32 r, bars; mov.u32 r, dyn; ret; }\n"
                   ".entry two() { .reg .b32 r; mov.u32 r, unused; ret; }\n"
                   ".entry none() { ret; }");
    if (!m) return;
    CHECK_INT(m->entries[0].shared_count, 3);
    CHECK_INT(m->entries[0].shared[0]->offset, 0);
    CHECK_INT(m->entries[0].shared[1]->offset, 24);
    CHECK_INT(m->entries[0].shared[2]->offset, 28);
    CHECK_INT(m->entries[0].shared_bytes, 128); /* where the extern part begins */
    CHECK_INT(m->entries[0].shared_align, 128);
    CHECK_INT(m->entries[1].shared_count, 1);
    CHECK_INT(m->entries[1].shared_bytes, 400);
    CHECK_INT(m->entries[2].shared_bytes, 0);
    ptx_module_free(m);
}

static void test_images(void)
{
    static const uint32_t table[] = {1, 2, 0, 4, 5, 6};
    static const uint32_t floats[] = {0x3FC00000, 0xC0000000, 0x3F800000, 0x40400000};
    struct ptx_module *m;

    if (!test_case("global and constant images")) return;
    m = parse(HEAD
              ".global .u32 t[2][3] = {{1, 2}, {4, 5, 6}};\n"
              ".const .f32 f[] = {1.5, -2.0, 0f3F800000, 3};\n"
              ".visible .global .align 16 .b8 z[5];\n.global .s16 rows[][2] = {{1}, {2, -3}};\n"
              ".global .f64 d = 0d3FF8000000000000;\n.global .v2 .u16 v[2] = {{1, 2}, {3, 4}};\n"
              ".entry k() { ret; }");
    if (!m) return;
    CHECK_INT(m->global_count, 6);
    CHECK(m->globals[0]->bytes == 24 && !memcmp(m->globals[0]->init, table, 24), "t is wrong");
    CHECK(m->globals[1]->bytes == 16 && !memcmp(m->globals[1]->init, floats, 16), "f is wrong");
    CHECK_INT(m->globals[2]->offset, 0);
    CHECK(!m->globals[2]->init, "z is zeros");
    CHECK_INT(m->globals[3]->bytes, 8);
    CHECK(!memcmp(m->globals[3]->init, "\1\0\0\0\2\0\xfd\xff", 8), "rows is wrong");
    CHECK_INT(m->globals[4]->offset, 256); /* the first that have a value: the largest alignment */
    CHECK_INT(m->globals[5]->offset, 264);
    CHECK_INT(m->globals[0]->offset, 272);
    CHECK_INT(m->globals[3]->offset, 296);
    CHECK(!memcmp(m->globals[5]->init, "\1\0\2\0\3\0\4\0", 8), "v is wrong");
    CHECK_INT(m->global_bytes, 304);
    CHECK_INT(m->const_bytes, 16);
    ptx_module_free(m);
}

static void test_entry_directives(void)
{
    const struct ptx_entry *e;
    struct ptx_module *m;

    if (!test_case("launch directives, functions, prototypes, debug sections")) return;
    m = parse(".version 8.0 .target sm_90a, debug .address_size 64\n.file 1 \"x.cu\", 12, 34\n"
              ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
              ".func (.reg .u32 o) helper (.reg .u32 i) { { L: bra L; } ret; }\n"
              ".visible .entry later();\n"
              ".visible .entry k() .maxntid 384, 1, 1 .minnctapersm 1 .maxnreg 168\n"
              ".reqnctapercluster 2, 1 .explicitcluster\n"
              "{ .pragma \"nounroll\"; .loc 1 5 3, function_name $L0, inlined_at 1 2 3\n ret; }\n"
              ".section .debug_abbrev { .b8 1, 2\n L9: .b32 .debug_info+4 }\n");
    if (!m) return;
    CHECK_INT(m->version, 80);
    CHECK(!strcmp(m->target, "sm_90a"), "target %s", m->target);
    CHECK_INT(m->entry_count, 1);
    e = ptx_find_entry(m, "k");
    CHECK(e == &m->entries[0] && !ptx_find_entry(m, "later"), "lookup by name");
    if (e) CHECK_INT(e->maxntid[0], 384);
    if (e) CHECK_INT(e->minnctapersm, 1);
    if (e) CHECK_INT(e->maxnreg, 168);
    if (e) CHECK_INT(e->reqnctapercluster[0] * 100 + e->reqnctapercluster[2], 201);
    if (e) CHECK(e->explicit_cluster, "explicit cluster");
    if (e) CHECK_INT(e->insn_count, 1);
    ptx_module_free(m);
}

/* ---- constant expressions ---- */

static void test_expressions(void)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"2+3*4", 14},
        {"(2+3)*4", 20},
        {"-8", -8},
        {"- -8", 8},
        {"0x1F & 3 ? 2 : 1", 2},
        {"1 ? 2 : 0 ? 3 : 4", 2},
        {"1 << 2 + 1", 8},
        {"~0 >> 1", -1},
        {"(.u64)(~0) >> 63", 1},
        {"-7 / 2", -3},
        {"-7 % 3", -1},
        {"0777", 511},
        {"0b101U", 5},
        {"0xFFFFFFFFFFFFFFFF", -1},
        {"-1 < 1U", 0},
        {"-1 < 1", 1},
        {"3 == 3 && 2 != 2", 0},
        {"!5 || 6", 1},
        {"5 | 2 ^ 7 & 4", 7},
        {"WARP_SZ * 2", 64},
        {"7 >= 7", 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        struct ptx_module *m;

        if (!test_case("expression %s", cases[i].text)) continue;
        snprintf(text, sizeof text, "%s%s;}", HEAD OPEN "mov.u64 %rd1, ", cases[i].text);
        m = parse(text);
        if (m) CHECK_INT(m->entries[0].insns[0].operands[1].imm, cases[i].value);
        ptx_module_free(m);
    }
}

/* ---- operands ---- */

static void test_operands(void)
{
    const struct ptx_insn *in;
    struct ptx_module *m;

    if (!test_case("operand forms")) return;
    m = parse(
        BODY("@!%p1 ld.global.v2.f32 {%f1, _}, [%rd1 + 8*2];\n"
             "shfl.sync.idx.b32 %r1|%p1, %r2, -1, 31, 0xffffffff;\n"
             "elect.sync _|%p2, %r3;\n"
             "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes\n"
             "  [%r1], [%rd1, {%r2, 4}], [%r3-8]; // the end\n"
             "selp.b32 %r1, %tid.x, %clusterid.y, !%p1;"));
    if (!m) return;
    in = m->entries[0].insns;
    CHECK(in[0].guard == 1 && in[0].guard_negated, "guard");
    CHECK_INT(in[0].operands[0].items[1].kind, OPD_SINK);
    CHECK_INT(in[0].operands[1].imm, 16);
    CHECK_INT(in[1].operands[0].kind, OPD_PAIR);
    CHECK_INT(in[1].operands[2].imm, -1);
    CHECK_INT(in[2].operands[0].items[0].kind, OPD_SINK);
    CHECK(!strcmp(in[3].mods[8], "mbarrier::complete_tx::bytes"), "modifier %s", in[3].mods[8]);
    CHECK_INT(in[3].operands[1].count, 2);
    CHECK_INT(in[3].operands[1].items[1].items[1].imm, 4);
    CHECK_INT(in[3].operands[2].imm, -8);
    CHECK(!strcmp(in[3].text, "cp.async.bulk.tensor.2d.shared::cluster.global.tile."
                              "mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, 4}], [%r3-8]"),
          "text \"%s\"", in[3].text);
    CHECK_INT(in[4].operands[1].reg, SR_TID_X);
    CHECK_INT(in[4].operands[2].reg, SR_CLUSTERID_Y);
    CHECK(in[4].operands[3].negated, "negation");
    CHECK(!strcmp(in[0].text, "@!%p1 ld.global.v2.f32 {%f1, _}, [%rd1 + 8*2]"), "text \"%s\"",
          in[0].text);
    ptx_module_free(m);
}

static void test_scopes(void)
{
    const struct ptx_insn *in;
    struct ptx_module *m;

    if (!test_case("blocks shadow names, labels repeat and reach outward")) return;
    m = parse(BODY("mov.u32 %r1, 0;\n"
                   "{ .reg .b32 %r<2>; LOOP: mov.u32 %r1, 1; @%p1 bra LOOP; bra DONE; }\n"
                   "{ LOOP: mov.u32 %r1, 2; { bra.uni LOOP; } }\n"
                   "{ .reg .b32 x; mov.u32 x, 3; }\n"
                   "DONE: mov.u32 %r1, 4;"));
    if (!m) return;
    in = m->entries[0].insns;
    CHECK_INT(m->entries[0].insn_count, 9);
    CHECK(in[0].operands[0].reg == in[4].operands[0].reg, "outer register again");
    CHECK(in[0].operands[0].reg != in[1].operands[0].reg, "inner register is another");
    CHECK_INT(in[2].operands[0].kind, OPD_LABEL);
    CHECK_INT(in[2].operands[0].imm, 1);
    CHECK_INT(in[3].operands[0].imm, 7);
    CHECK_INT(in[5].operands[0].imm, 4);
    CHECK(!strcmp(in[8].text, "ret"), "a body that runs off its end returns");
    ptx_module_free(m);
}

static void test_registers(void)
{
    struct ptx_module *m;

    if (!test_case("register ranges and vectors")) return;
    m = parse(HEAD ".entry k() { .reg .b32 a1<12>, b; .reg .v4 .f32 v; .reg .f32 f;\n"
                   "mov.b32 a111, b; add.f32 f, v.x, v.w; ld.global.v4.f32 v, [0];\n"
                   "TS: .branchtargets X, Y; brx.idx b, TS; X: Y: ret; }");
    if (!m) return;
    CHECK(!strcmp(m->entries[0].regs[m->entries[0].insns[0].operands[0].reg].name, "a111"),
          "range");
    CHECK(!strcmp(m->entries[0].regs[m->entries[0].insns[1].operands[2].reg].name, "v.w"), "lane");
    CHECK_INT(m->entries[0].insns[2].operands[0].count, 4);
    CHECK_INT(m->entries[0].insns[3].operands[1].count, 2);
    CHECK_INT(m->entries[0].insns[3].operands[1].items[1].imm, 4);
    ptx_module_free(m);
    m = parse(HEAD ".entry k() { .reg .b32 %r<20>; mov.b32 %r2, %r12;\n"
                   "{ .reg .b32 %r<3>; mov.b32 %r2, %r12; }\nret; }");
    if (!m) return;
    const struct ptx_insn *outer = &m->entries[0].insns[0], *inner = &m->entries[0].insns[1];
    CHECK(outer->operands[0].reg != inner->operands[0].reg, "an inner range hides the outer one");
    CHECK(outer->operands[1].reg == inner->operands[1].reg, "no further than it goes");
    ptx_module_free(m);
}

static void test_positions(void)
{
    struct ptx_module *m;

    if (!test_case("line markers and notes")) return;
    m = parse(".version 8.8\n# 10 \"gemm.ptx\"\n.target sm_100f\n//@ role a 0 1\n"
              ".entry one() {\n#line 70 \"inc/x.inc\"\n//@ tmem acc 0 256\nret;\n}\n"
              "//@ shared tile 0 16 4\n.entry two() { ret; }\n//@ role nobody 0 1\n");
    if (!m) return;
    CHECK(!strcmp(ptx_file(m, m->entries[0].pos), "gemm.ptx"), "file of the entry");
    CHECK_INT(m->entries[0].pos.line, 12);
    CHECK(!strcmp(ptx_file(m, m->entries[0].insns[0].pos), "inc/x.inc"), "file of the ret");
    CHECK_INT(m->entries[0].insns[0].pos.line, 71);
    CHECK_INT(m->entries[0].note_count, 2);
    CHECK(!strcmp(m->entries[0].notes[1].text, "tmem acc 0 256"), "note in the body");
    CHECK_INT(m->entries[1].note_count, 1);
    ptx_module_free(m);
}

/* ---- decoding ---- */

static void test_binding(void)
{
    struct ptx_module *m;
    struct kernel *k;
    uint32_t one;

    if (!test_case("operands become slots and constants")) return;
    m = parse(BODY("add.s32 %r1, %r2, 7; add.s32 %r2, %r1, 7; add.f32 %f1, %f2, 1.0;\n"
                   "ld.param.u64 %rd1, [a]; ld.global.u32 %r3, [%rd1-4];\n"
                   "setp.eq.s32 %p1|%p2, %r1, 0; setp.eq.s32 %p1, %r1, 0;\n"
                   "@%p1 mov.u32 %r4, %tid.x; mbarrier.arrive.shared.b64 _, [64];"
                   "mov.b32 %r1, {0, %h1};"));
    k = decode(m);
    if (k) {
        const struct insn *in = k->insns;

        CHECK(in[0].arg[2].bank == BANK_CONST && in[0].arg[2].offset == in[1].arg[2].offset,
              "equal constants share a slot");
        CHECK(in[0].arg[0].offset == in[1].arg[1].offset, "a register keeps its slot");
        CHECK(in[0].arg[0].offset % 64 == 0 && in[0].arg[0].bits == 32, "slot shape");
        memcpy(&one, k->consts + in[2].arg[2].offset + 4 * 31, 4);
        CHECK_INT(one, 0x3F800000);
        CHECK_INT(in[3].space, SPACE_PARAM);
        CHECK(in[3].arg[1].bank == BANK_CONST && in[3].arg[1].bits == 64, "parameter address");
        CHECK_INT(in[4].imm[0], -4);
        CHECK_INT(in[4].space, SPACE_GLOBAL);
        CHECK(!in[5].arg[1].sink && in[6].arg[1].sink, "second half of a pair");
        CHECK(in[6].arg[2].bits == 32, "a pair owns two arguments");
        CHECK(in[7].guard == in[5].arg[0].offset, "guard");
        CHECK(k->sreg_offset[SR_TID_X] == in[7].arg[1].offset, "special register slot");
        CHECK_INT(k->sreg_offset[SR_TID_Y], UINT32_MAX);
        CHECK(in[8].arg[0].sink && in[8].arg[1].sink, "sink, absolute address");
        CHECK_INT(in[8].imm[0], 64);
        CHECK_INT(in[9].list[0].bits, 16);
        CHECK(!k->unsupported, "%s", k->unsupported);
    }
    kernel_free(k);
    ptx_module_free(m);
}

static void test_addresses(void)
{
    struct ptx_module *m;
    struct kernel *k;

    if (!test_case("addresses of variables")) return;
    m = parse(HEAD ".shared .align 8 .b64 bar[4];\n.global .u32 g[4];\n" OPEN
                   "mov.u32 %r1, bar+8; mov.u64 %rd1, g; mbarrier.init.shared.b64 [bar+16], 1;\n"
                   "mbarrier.init.b64 [bar], 1; ld.global.u32 %r2, [g+4]; mov.u32 %r3, bar+8; }");
    k = decode(m);
    if (k) {
        const struct addr_slot *s = k->addr_slots;

        CHECK_INT(k->addr_slot_count, 4);
        CHECK(s[0].addend == 8 && s[0].bits == 32 && !s[0].generic, "bar+8");
        CHECK(s[1].bits == 64 && !strcmp(s[1].var->name, "g"), "g");
        CHECK(s[2].addend == 0 && s[2].bits == 32, "bar in .shared");
        CHECK(s[3].generic && s[3].bits == 64, "bar as a generic address");
        CHECK_INT(k->insns[2].imm[0], 16);
        CHECK(k->insns[4].arg[1].offset == s[1].offset, "g is one slot");
        CHECK(k->insns[5].arg[1].offset == s[0].offset, "bar+8 is one slot");
    }
    kernel_free(k);
    ptx_module_free(m);
}

static void test_names(void)
{
    struct ptx_module *m;
    struct kernel *k;
    char text[80];

    if (!test_case("names in reports")) return;
    m = parse(HEAD "//@ role producer 4 1\n//@ shared tile_a 0 0x4000 4\n//@ tmem acc 0 256\n"
                   "//@ later something else\n.shared .align 8 .b64 full_bar[4];\n"
                   ".shared .b32 flag;\n.extern .shared .align 1024 .b8 smem[];\n" OPEN
                   "mov.u32 %r1, full_bar; mov.u32 %r1, flag; mov.u32 %r1, smem; }");
    k = decode(m);
    if (k) {
        CHECK_TEXT(name_shared(k, SHARED_RESERVED + 16, text, sizeof text), "full_bar[2]");
        CHECK_TEXT(name_shared(k, 1U << 24 | (SHARED_RESERVED + 20), text, sizeof text),
                   "full_bar[2]+0x4");
        CHECK_TEXT(name_shared(k, SHARED_RESERVED + 32, text, sizeof text), "flag");
        CHECK_TEXT(name_shared(k, SHARED_RESERVED + 1024 + 0x4080, text, sizeof text),
                   "tile_a[1]+0x80");
        CHECK_TEXT(name_shared(k, 0x40, text, sizeof text), "shared+0x40");
        CHECK_TEXT(name_warp(k, 4, text, sizeof text), "producer (warp 4)");
        CHECK_TEXT(name_warp(k, 5, text, sizeof text), "warp 5");
        CHECK_TEXT(name_columns(k, 0, 256, text, sizeof text), "acc (TMEM columns 0..255)");
        CHECK_TEXT(name_columns(k, 128, 64, text, sizeof text),
                   "acc[128..191] (TMEM columns 128..191)");
        CHECK_TEXT(name_columns(k, 300, 1, text, sizeof text), "TMEM column 300");
    }
    kernel_free(k);
    ptx_module_free(m);
}

/* ---- refusals ---- */

static void test_parse_errors(void)
{
    refused("unknown register", BODY("mov.u32 %r1, %r9;"),
            "ptx input, line 6; error: unknown register '%r9' (declared: %r0..%r7)");
    refused("leading zero", BODY("mov.u32 %r01, 1;"),
            "ptx input, line 6; error: unknown register '%r01' (declared: %r0..%r7)");
    refused("unknown special register", BODY("mov.u32 %r1, %tid.w;"),
            "ptx input, line 6; error: unknown register '%tid'");
    refused("unknown label", BODY("\nbra AWAY;"), "ptx input, line 7; error: unknown label 'AWAY'");
    refused("label of a sibling block", BODY("{ L: ret; }\n{ bra L; }"),
            "ptx input, line 7; error: unknown label 'L'");
    refused("unknown name", BODY("mov.u32 %r1, smem;"),
            "ptx input, line 6; error: unknown name 'smem'");
    refused("unknown base", BODY("ld.shared.u32 %r1, [smem+4];"),
            "ptx input, line 6; error: unknown name 'smem'");
    refused("declared twice", BODY(".reg .b32 %x;\n.reg .b32 %x;"),
            "ptx input, line 7; error: '%x' is already declared at line 6");
    refused("missing semicolon", BODY("mov.u32 %r1, 5\nret;"),
            "ptx input, line 7; error: expected ',' or ';', found 'ret'");
    refused("missing brace", HEAD ".entry k() { ret;",
            "ptx input, line 4; error: expected an instruction, found the end of the text");
    refused("guard of another type", BODY("@%r1 ret;"),
            "ptx input, line 6; error: guard '%r1' is not a predicate register");
    refused("division by zero", BODY("mov.u32 %r1, 4/(2-2);"),
            "ptx input, line 6; error: division by zero in a constant expression");
    refused("too many digits", BODY("mov.u32 %r1, 0x12345678123456781;"),
            "ptx input, line 6; error: integer does not fit 64 bits");
    refused("short float", BODY("mov.f32 %f1, 0f3F8;"),
            "ptx input, line 6; error: 0f needs 8 hexadecimal digits");
    refused("stray byte", BODY("mov.u32 %r1, \x01;"), "ptx input, line 6; error: stray byte 0x01");
    refused("comment without an end", HEAD "/* x",
            "ptx input, line 4; error: comment without an end");
    refused("position after a marker", HEAD "# 12 \"gemm.ptx\"\n.entry k() { foo",
            "gemm.ptx, line 12; error: expected an integer constant, found the end of the text");
    refused("no version", "\n.target sm_90",
            "ptx input, line 2; error: the text must start with .version");
    refused("unknown directive", HEAD ".wrong x;",
            "ptx input, line 4; error: unknown directive '.wrong'");
    refused("32-bit addresses", ".version 8.0\n.target sm_90\n.address_size 32\n",
            "ptx input, line 3; error: .address_size 32 is not supported, only 64");
    refused("odd alignment", HEAD ".global .align 3 .b8 x[4];",
            "ptx input, line 4; error: alignment 3 is not a power of two");
    refused(
        "too much static shared memory",
        HEAD ".shared .b8 x[50000];\n.entry k() { .reg .b32 r; mov.u32 r, x; }",
        "ptx input, line 4; error: entry 'k' uses too much shared data (50000 bytes, 49152 max)");
    refused("dimensions whose product is 2^64", HEAD ".global .u8 x[4294967296][4294967296];",
            "ptx input, line 4; error: 'x' is too large");
    refused("too many initial values", HEAD ".global .u32 x[2] = {1, 2, 3};",
            "ptx input, line 4; error: too many initial values for 'x'");
    refused("malformed note", HEAD "//@ role producer four 1\n.entry k() { ret; }",
            "ptx input, line 4; error: malformed note '//@ role producer four 1'");
}

static void test_decode_errors(void)
{
    refused("width", BODY("add.s32 %r1, %rd1, 5;"),
            "ptx input, line 6; error: operand 2: '%rd1' is 64-bit, 32 bits are needed: "
            "add.s32 %r1, %rd1, 5");
    refused("predicate wanted", BODY("selp.b32 %r1, %r2, %r3, %r4;"),
            "ptx input, line 6; error: operand 4: '%r4' is not a predicate: "
            "selp.b32 %r1, %r2, %r3, %r4");
    refused("too few operands", BODY("add.s32 %r1, %r2;"),
            "ptx input, line 6; error: 2 operands given, more expected: add.s32 %r1, %r2");
    refused("too many operands", BODY("add.s32 %r1, %r2, 3, 4;"),
            "ptx input, line 6; error: 4 operands given, 3 expected: add.s32 %r1, %r2, 3, 4");
    refused("constant destination", BODY("add.s32 1, %r2, 3;"),
            "ptx input, line 6; error: operand 1: a destination must be a register: "
            "add.s32 1, %r2, 3");
    refused("integer for a float", BODY("add.f32 %f1, %f2, 1;"),
            "ptx input, line 6; error: operand 3: an integer constant for .f32 "
            "(write it as 0f... or 0d...): add.f32 %f1, %f2, 1");
    refused("float for an integer", BODY("add.s32 %r1, %r2, 1.0;"),
            "ptx input, line 6; error: operand 3: a floating-point constant has no place here: "
            "add.s32 %r1, %r2, 1.0");
    refused("no brackets", BODY("ld.global.u32 %r1, %rd1;"),
            "ptx input, line 6; error: operand 2: not an address in brackets: "
            "ld.global.u32 %r1, %rd1");
    refused("addend of a destination", BODY("add.u32 %r1 + 1, %r2, 3;"),
            "ptx input, line 6; error: operand 1: '%r1' takes no addend");
    refused("addend of a float", BODY("add.f32 %f1, %f2 + 1, %f2;"),
            "ptx input, line 6; error: operand 2: '%f2' takes no addend");
    refused("component", HEAD ".entry k() { .reg .v2 .b32 v<3>; mov.b32 v1.x, v2.z; ret; }",
            "ptx input, line 4; error: 'v2' has no component '.z'");
    refused("vector of a range", HEAD ".entry k() { .reg .v2 .b32 v<3>; mov.b32 v3.x, 0; ret; }",
            "ptx input, line 4; error: expected ',' or ';', found '.x'");
    refused("move of vectors of two lengths",
            HEAD ".entry k() { .reg .v2 .b32 v; .reg .v4 .b32 w; mov.v2.b32 v, w; ret; }",
            "ptx input, line 4; error: operand 2 of mov.v2 is no vector of 2 elements");
    refused("another state space", HEAD ".shared .b32 s;\n" OPEN "ld.global.u32 %r1, [s]; }",
            "ptx input, line 7; error: operand 2: 's' is not in a state space of this instruction: "
            "ld.global.u32 %r1, [s]");
    refused("vector length", BODY("ld.global.v4.u32 {%r1, %r2}, [%rd1];"),
            "ptx input, line 6; error: operand 1 has 2 elements, .v4 needs 4: "
            "ld.global.v4.u32 {%r1, %r2}, [%rd1]");
    refused("target without wgmma", HEAD_OF("sm_90") ".entry k() { wgmma.fence.sync.aligned; }",
            "ptx input, line 4; error: 'wgmma.fence' needs .target sm_90a, not sm_90: "
            "wgmma.fence.sync.aligned");
    refused(
        "target without tcgen05", HEAD_OF("sm_100") ".entry k() { tcgen05.wait::ld.sync.aligned; }",
        "ptx input, line 4; error: 'tcgen05.wait::ld' needs an a or f target of sm_100 or later "
        "(sm_100f), not sm_100: tcgen05.wait::ld.sync.aligned");
    refused("target too low", HEAD_OF("sm_80") ".entry k() { barrier.cluster.arrive.aligned; }",
            "ptx input, line 4; error: 'barrier.cluster.arrive' needs .target sm_90 or higher, not "
            "sm_80: barrier.cluster.arrive.aligned");
}

static void test_unsupported(void)
{
    unsupported("mnemonic", BODY("\nvadd.s32 %r1, %r2, %r3, %r4;"),
                "not modelled: vadd.s32 %r1, %r2, %r3, %r4 at ptx input:7");
    unsupported("modifier", BODY("add.bogus.s32 %r1, %r2, %r3;"),
                "not modelled: add.bogus.s32 %r1, %r2, %r3 at ptx input:6");
    unsupported("call",
                HEAD ".extern .func (.param .b32 r) f (.param .b64 x);\n" OPEN
                     "{ .param .b64 p0; .param .b32 r0; call.uni (r0), f, (p0); }\n}",
                "not modelled: call.uni (r0), f, (p0) at ptx input:7 "
                "('f' has no body in this module)");
}

/* ---- hostile input ---- */

static void mutate(const char *what, const char *text)
{
    static const char *const pieces[] = {"{",  "}", "[",  "]",      "(",
                                         ")",  ";", ",",  "<",      "0x",
                                         "\"", ".", "/*", "# 1 \"", "99999999999999999999",
                                         "_",  "|", "%r", "-"};
    struct rng rng = {test_seed()};

    if (!test_case("mutated text is accepted or refused, never worse: %s", what)) return;
    for (int round = 0; round < 20000; round++) {
        struct ptx_diag diag = {""};
        struct ptx_module *m = NULL;
        size_t length = strlen(text);
        char *copy = malloc(length);

        if (!copy) return;
        memcpy(copy, text, length);
        for (uint32_t n = 1 + rng_below(&rng, 3); n; n--) {
            size_t at = rng_below(&rng, (uint32_t)length);
            const char *piece = pieces[rng_below(&rng, sizeof pieces / sizeof pieces[0])];
            size_t size = strlen(piece);

            if (rng_below(&rng, 8) == 0) length = at + 1;
            if (rng_below(&rng, 2))
                copy[at] = (char)rng_below(&rng, 256);
            else if (at + size <= length)
                memcpy(copy + at, piece, size);
        }
        if (ptx_parse(copy, length, &m, &diag) == 0) {
            struct kernel *k = NULL;
            for (uint32_t i = 0; i < m->entry_count; i++) {
                if (!kernel_decode(m, &m->entries[i], op_binders, &k, &diag)) kernel_free(k);
            }
            ptx_module_free(m);
        } else {
            CHECK(*diag.text, "refused without a reason");
        }
        free(copy);
    }
}

static void test_mutations(void)
{
    mutate("one entry", HEAD
           "# 3 \"a.ptx\"\n//@ shared q 0 8 4\n.shared .align 8 .b64 bar[4];\n"
           ".const .f32 c[] = {{1.5}, -2.0};\n" OPEN
           "ld.param.u64 %rd1, [a]; @%p1 bra L; { .reg .b32 x<3>; L: mov.u32 x1, %tid.x; bra L; }\n"
           "mbarrier.init.shared.b64 [bar+8], 0x1F & 3 ? 2 : (.s64)1; /* x */\n"
           "L: mad.lo.s32 %r3, %r2, -4, WARP_SZ; shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1; }\n");
    mutate("functions", HEAD
           ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
           ".func (.param .b32 r) f (.param .b32 n);\n"
           ".global .u64 t[2] = {f, generic(c) + 8}; .global .b8 c[16] = {0xFF(c)};\n"
           ".func (.reg .b32 o) g (.reg .b32 i) { add.s32 o, i, 1; ret; }\n"
           ".func (.param .b32 r) f (.param .b32 n) { .reg .b32 %r<4>; .local .b8 d[8];\n"
           "ld.param.b32 %r1, [n]; call (%r2), g, (%r1); st.local.b32 [d+4], %r2;\n"
           "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r2; call (q), f, (p);\n"
           "ld.param.b32 %r3, [q]; } st.param.b32 [r], %r3; ret; }\n" OPEN
           "{ .param .b32 p; .param .b32 q; P: .callprototype (.param .b32 _) _ (.param .b32 _);"
           "\nld.global.u64 %rd1, [t]; call (q), %rd1, (p), P; call (q), f, (p); } ret; }\n");
}

int main(int argc, char **argv)
{
    test_begin("sim_parse", argc, argv);
    test_table();
    test_mnemonics();
    test_types();
    test_params();
    test_shared();
    test_images();
    test_entry_directives();
    test_expressions();
    test_operands();
    test_scopes();
    test_registers();
    test_positions();
    test_binding();
    test_addresses();
    test_names();
    test_parse_errors();
    test_decode_errors();
    test_unsupported();
    test_mutations();
    return test_end();
}
