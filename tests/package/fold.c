/* Constant expressions in PTX (tools/mod/fold.c): what becomes a number, and what must stay as it is. */
#include "lib/harness.h"

#include "mod.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *line, *want;
} cases[] = {
    /* Precedence and associativity are those of C. */
    {"mov.u32 %r, 2 + 3 * 4;", "mov.u32 %r, 14;"},
    {"mov.u32 %r, (2 + 3) * 4;", "mov.u32 %r, 20;"},
    {"mov.u32 %r, 100 - 10 - 1;", "mov.u32 %r, 89;"},
    {"mov.u32 %r, 100 / 10 / 5;", "mov.u32 %r, 2;"},
    {"mov.u32 %r, 1 + 2 << 3;", "mov.u32 %r, 24;"},
    {"mov.u32 %r, 7 & 12 | 16 ^ 1;", "mov.u32 %r, 21;"},
    {"mov.u32 %r, 1 << 31;", "mov.u32 %r, 2147483648;"},
    {"and.b32 %r, %n, -(16 / 4);", "and.b32 %r, %n, -4;"},
    {"mov.u32 %r, ~0 + 2;", "mov.u32 %r, 1;"},
    {"mov.u32 %r, (64 <= 192 ? 2 : 1) + 1;", "mov.u32 %r, 3;"},
    {"mov.u32 %r, 3 < 2 || 4 != 4 ? 5 : 6 == 6;", "mov.u32 %r, 1;"},
    {"mov.u32 %r, 0x10 + 010;", "mov.u32 %r, 24;"},
    {"@%p mbarrier.init.shared::cta.b64 [%b], 8 * (2 * 1);",
     "@%p mbarrier.init.shared::cta.b64 [%b], 16;"},
    /* Literals and addresses. */
    {".maxntid (32 * (4 + 8)), 1, 1", ".maxntid 384, 1, 1"},
    {".shared .align 8 .b64 bar[(2 + 2)];", ".shared .align 8 .b64 bar[4];"},
    {"setmaxnreg.inc.sync.aligned.u32 ((504 - 24) / 2);", "setmaxnreg.inc.sync.aligned.u32 240;"},
    {"ld.shared.u32 %r, [%a + 8 + 4 * 1];", "ld.shared.u32 %r, [%a + 12];"},
    {"st.b32 [%a + 4 * (2)], {0, 1 + 1};", "st.b32 [%a + 8], {0, 2};"},
    {"bar.sync 1 + 2, 256;", "bar.sync 3, 256;"},
    {"add.u32 %r, %r, 1 + 1; add.u32 %s, %s, 2 * 2;", "add.u32 %r, %r, 2; add.u32 %s, %s, 4;"},
    /* What is no constant expression, or has one spelling already. */
    {"mov.u32 %r, 0x3FFFF;", "mov.u32 %r, 0x3FFFF;"},
    {"add.s32 %r, %r, -1;", "add.s32 %r, %r, -1;"},
    {"mov.f32 %f, 0f3F800000;", "mov.f32 %f, 0f3F800000;"},
    {"mov.u32 %r, smem + 4;", "mov.u32 %r, smem + 4;"},
    {"mov.u32 %r, 4 + smem;", "mov.u32 %r, 4 + smem;"},
    {"mov.u64 %r, 8U / 2;", "mov.u64 %r, 8U / 2;"},
    {"mov.u64 %r, 0xFFFFFFFFFFFFFFFF / 2;", "mov.u64 %r, 0xFFFFFFFFFFFFFFFF / 2;"},
    {"mov.u32 %r, 1 / 0;", "mov.u32 %r, 1 / 0;"},
    {"mov.u32 %r, 1 << 64;", "mov.u32 %r, 1 << 64;"},
    {"mov.u32 %r, (1 + 2;", "mov.u32 %r, (1 + 2;"},
    {"ld.shared.u32 %r, [%a - 4 * 2];", "ld.shared.u32 %r, [%a - 4 * 2];"},
    {".reg .f32 %d0_<16>, %d1_<16>;", ".reg .f32 %d0_<16>, %d1_<16>;"},
    {"elect.sync _|%p, 0xffffffff;", "elect.sync _|%p, 0xffffffff;"},
    {".pragma \"unroll 2 + 2\";", ".pragma \"unroll 2 + 2\";"},
};

int main(int argc, char **argv)
{
    test_begin("fold", argc, argv);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = NULL;
        size_t size = 0;
        FILE *out;
        if (!test_case("%s", cases[i].line)) continue;
        out = open_memstream(&got, &size);
        fold_line(out, cases[i].line, strlen(cases[i].line));
        fclose(out);
        CHECK(strcmp(got, cases[i].want) == 0, "want %s got %s", cases[i].want, got);
        free(got);
    }
    return test_end();
}
