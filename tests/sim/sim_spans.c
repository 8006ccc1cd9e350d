/*
 * Loads and stores of a warp by how its addresses lie: in a row, all at one place, in any order, of some
 * lanes only; in each space, by the space's own addresses and by generic ones. What arrives is compared with C.
 */
#include "lib/harness.h"
#include "sim_run.h"

#include <stdio.h>
#include <string.h>

enum { TABLE_BYTES = 512, HALF = 256, FORMS = 4 };

struct place {
    const char *name, *space, *base; /* base: PTX that leaves its address in %base */
    bool own;                        /* each lane has memory of its own there */
};

struct form {
    const char *ptx; /* %i: the lane's element */
    uint32_t (*element)(uint32_t lane);
};

static uint32_t row(uint32_t lane)
{
    return lane;
}
static uint32_t one(uint32_t lane)
{
    (void)lane;
    return 5;
}
static uint32_t reversed(uint32_t lane)
{
    return 31 - lane;
}
static uint32_t apart(uint32_t lane)
{
    return lane * 3 & 63;
}

static const struct form forms[FORMS] = {{"mov.u32 %i, %lane;", row},
                                         {"mov.u32 %i, 5;", one},
                                         {"sub.u32 %i, 31, %lane;", reversed},
                                         {"mul.lo.u32 %i, %lane, 3; and.b32 %i, %i, 63;", apart}};

static bool active(uint32_t lane, bool some)
{
    return !some || lane % 3 != 0;
}

/*
 * Whose value stays of the lanes that store where `lane` does. Memory takes 128 bytes at a time: the lowest lane of the
 * last such part that has any of them, as on an H200.
 */
static uint64_t winner(uint32_t lane, uint32_t size, const struct form *f, bool some)
{
    const uint32_t part = size <= 4 ? 32 : 128 / size;
    uint32_t last = 32;
    for (uint32_t l = 0; l < 32; l++) {
        if (!active(l, some) || f->element(l) != f->element(lane)) continue;
        if (last == 32 || l / part > last / part) last = l;
    }
    return last;
}

/* Each lane loads its element, stores 100 + lane there and loads it again. */
static void expect(const uint8_t *table, const uint8_t *got, uint32_t size, const struct place *p,
                   const struct form *f, bool some)
{
    for (uint32_t lane = 0; lane < 32; lane++) {
        const uint64_t last = p->own ? lane : winner(lane, size, f, some);
        uint64_t loaded = 0, back = 0, want = 0;
        if (!active(lane, some)) continue;
        memcpy(&loaded, got + (size_t)8 * lane, size);
        memcpy(&back, got + HALF + (size_t)8 * lane, size);
        memcpy(&want, table + (size_t)f->element(lane) * size, size);
        CHECK(loaded == want, "size %u, \"%s\": lane %u loads 0x%llx, not 0x%llx", size, f->ptx,
              lane, (unsigned long long)loaded, (unsigned long long)want);
        CHECK(back == 100 + last, "size %u, \"%s\": lane %u reads %llu back, not %llu", size,
              f->ptx, lane, (unsigned long long)back, (unsigned long long)(100 + last));
    }
}

/* The kernel copies the table to the place first, word after word, all lanes the same. */
static void write_kernel(char *text, size_t room, const struct place *p, const struct form *f,
                         uint32_t size, bool some)
{
    const char *const reg = size == 2 ? "%h" : size == 4 ? "%r" : "%d";
    const char *const guard = some ? "@%some" : "";
    const uint32_t bits = 8 * size;
    (void)snprintf(text, room,
                   ".version 8.8\n.target sm_90a\n.address_size 64\n"
                   ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
                   ".shared .align 8 .b8 s[%d];\n.local .align 8 .b8 x[%d];\n"
                   ".reg .pred %%some, %%more; .reg .b16 %%h; .reg .b32 %%r, %%i, %%n, %%lane;\n"
                   ".reg .b64 %%d, %%in, %%out, %%base, %%to, %%at;\n"
                   "ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out]; mov.u32 %%lane, %%tid.x;\n"
                   "%s\nrem.u32 %%r, %%lane, 3; setp.ne.u32 %%some, %%r, 0;\n"
                   "mov.u32 %%n, 0; mov.u64 %%at, %%in; mov.u64 %%to, %%base;\n"
                   "L: ld.global.u64 %%d, [%%at]; st%s.u64 [%%to], %%d;\n"
                   "add.u64 %%at, %%at, 8; add.u64 %%to, %%to, 8; add.u32 %%n, %%n, 1;\n"
                   "setp.lt.u32 %%more, %%n, %d; @%%more bra L;\n"
                   "%s\nmad.wide.u32 %%at, %%i, %u, %%base; mad.wide.u32 %%to, %%lane, 8, %%out;\n"
                   "%s ld%s.b%u %s, [%%at]; %s st.global.b%u [%%to], %s;\n"
                   "add.u32 %%n, %%lane, 100; cvt.u%u.u32 %s, %%n;\n"
                   "%s st%s.b%u [%%at], %s;\n%s ld%s.b%u %s, [%%at];\n"
                   "%s st.global.b%u [%%to+%d], %s;\nret;\n}\n",
                   TABLE_BYTES, TABLE_BYTES, p->base, p->space, TABLE_BYTES / 8, f->ptx, size,
                   guard, p->space, bits, reg, guard, bits, reg, bits, reg, guard, p->space, bits,
                   reg, guard, p->space, bits, reg, guard, bits, HALF, reg);
}

static void check(struct run *r, const struct place *p, const struct form *f, uint32_t size,
                  bool some)
{
    uint8_t table[TABLE_BYTES], *in = run_alloc(TABLE_BYTES), *out = run_alloc(2 * (size_t)HALF);
    const uint8_t *params[] = {in, out};
    char text[4096];
    for (uint32_t i = 0; i < TABLE_BYTES; i++) table[i] = (uint8_t)(i * 37 + i / 256);
    memcpy(in, table, sizeof table);
    write_kernel(text, sizeof text, p, f, size, some);
    CHECK_INT(run_kernel(r, text, params, sizeof params), 0);
    expect(table, out, size, p, f, some);
    run_free(in);
    run_free(out);
}

int main(int argc, char **argv)
{
    static const struct place places[] = {
        {"global", ".global", "mov.u64 %base, %in;", false},
        {"shared", ".shared", "mov.u64 %base, s;", false},
        {"local", ".local", "mov.u64 %base, x;", true},
        {"generic, global", "", "mov.u64 %base, %in;", false},
        {"generic, shared", "", "mov.u64 %base, s; cvta.shared.u64 %base, %base;", false},
        {"generic, local", "", "mov.u64 %base, x; cvta.local.u64 %base, %base;", true}};
    static struct run r;
    test_begin("sim_spans", argc, argv);
    if (!run_begin()) return 1;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!test_case("a warp's addresses: %s", places[i].name)) continue;
        for (uint32_t size = 2; size <= 8; size *= 2) {
            for (uint32_t n = 0; n < 2 * FORMS; n++)
                check(&r, &places[i], &forms[n % FORMS], size, n >= FORMS);
        }
    }
    run_end();
    return test_end();
}
