/*
 * Forms that differ in modifiers alone: scopes, hints, spaces, sizes. Each form of a family runs, and its result is
 * compared with what the PTX ISA says of it, so that no form is only accepted. Here: loads and stores, multimem,
 * special registers. sim_forms_sync.c has mbarriers and fences, sim_forms_copy.c asynchronous copies.
 */
#include "sim_forms.h"
#include "machine/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 1 << 18, SLOT = 32, FORMS = 512, FORM = 96 };

static char text[TEXT_BYTES];
static size_t used;
static char forms[FORMS][FORM]; /* of the kernel, in order */
static uint32_t form_count;

void text_begin(const char *head)
{
    used = 0;
    form_count = 0;
    put("%s", head);
}

void put(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text + used, TEXT_BYTES - used, format, args);
    va_end(args);
    used += (size_t)n;
    if (used >= TEXT_BYTES) abort();
}

bool run_clean(struct run *r, const void *params, uint32_t bytes)
{
    const int result = run_kernel(r, text, params, bytes);
    const bool clean = strstr(r->findings, "\"verdict\":\"clean\"") != NULL;

    CHECK(result == 0 && clean, "CUresult %d: %s", result, r->findings);
    return result == 0;
}

void run_for_finding(struct run *r, const void *params, uint32_t bytes, const char *kind)
{
    const int result = run_kernel(r, text, params, bytes);

    CHECK(run_found(r, kind), "CUresult %d, no %s: %s", result, kind, r->findings);
}

uint64_t reduced(const char *op, const char *type, uint64_t a, uint64_t b)
{
    const bool wide = !strcmp(type + 1, "64"), is_signed = *type == 's';
    const uint64_t mask = wide ? UINT64_MAX : UINT32_MAX;
    const int64_t sa = wide ? (int64_t)a : (int32_t)(uint32_t)a;
    const int64_t sb = wide ? (int64_t)b : (int32_t)(uint32_t)b;
    a &= mask;
    b &= mask;
    const bool less = is_signed ? sa < sb : a < b;
    if (!strcmp(op, "add")) return (a + b) & mask;
    if (!strcmp(op, "min")) return less ? a : b;
    if (!strcmp(op, "max")) return less ? b : a;
    if (!strcmp(op, "and")) return a & b;
    if (!strcmp(op, "or")) return a | b;
    if (!strcmp(op, "xor")) return a ^ b;
    if (!strcmp(op, "inc")) return a >= b ? 0 : a + 1;
    return a == 0 || a > b ? b : a - 1; /* dec */
}

/* ---- ld and st ---- */

static const struct data {
    const char *type, *registers;
    uint32_t bytes;
} datas[] = {{"b8", "w0", 1},
             {"b16", "h0", 2},
             {"b32", "w0", 4},
             {"b64", "d0", 8},
             {"b128", "q0", 16},
             {"v2.b32", "{w0, w1}", 8},
             {"v4.b32", "{w0, w1, w2, w3}", 16},
             {"v8.b32", "{w0, w1, w2, w3, w4, w5, w6, w7}", 32},
             {"v2.b64", "{d0, d1}", 16},
             {"v4.b64", "{d0, d1, d2, d3}", 32}};
enum { DATAS = sizeof datas / sizeof datas[0] };

static const char *const evictions[] = {"",
                                        ".L1::evict_normal",
                                        ".L1::evict_unchanged",
                                        ".L1::evict_first",
                                        ".L1::evict_last",
                                        ".L1::no_allocate"};
static const char *const sectors[] = {"", ".L2::64B", ".L2::128B", ".L2::256B"};
enum { EVICTIONS = sizeof evictions / sizeof evictions[0] };
enum { SECTORS = sizeof sectors / sizeof sectors[0] };

#define DATA_HEAD                                                               \
    HEAD ".visible .entry k(.param .u64 p_in, .param .u64 p_out)\n{\n"          \
         ".reg .b16 h<1>;\n.reg .b32 w<8>;\n.reg .b64 d<4>, in, out, policy;\n" \
         ".reg .b128 q<1>;\nld.param.u64 in, [p_in];\nld.param.u64 out, [p_out];\n"

struct data_params {
    uint64_t in, out;
};

/* Runs the kernel, which moved `bytes` bytes of `in` to each form's slot of `out`. */
static void check_moves(const unsigned char *in, uint32_t bytes)
{
    struct run r = {.block = 1};
    unsigned char *out = run_alloc(FORMS * SLOT);
    const struct data_params p = {(uint64_t)(uintptr_t)in, (uint64_t)(uintptr_t)out};

    put("ret;\n}\n");
    memset(out, 0xA5, FORMS * SLOT);
    const bool ran = run_clean(&r, &p, sizeof p);
    for (uint32_t i = 0; ran && i < form_count; i++) {
        const unsigned char *slot = out + i * SLOT;
        bool rest = true;
        for (uint32_t k = bytes; k < SLOT; k++) rest &= slot[k] == 0xA5;
        CHECK(!memcmp(slot, in, bytes), "%s moved other bytes", forms[i]);
        CHECK(rest, "%s moved more than %u bytes", forms[i], bytes);
    }
    run_free(out);
}

__attribute__((format(printf, 1, 2))) static uint32_t form(const char *format, ...)
{
    va_list args;
    if (form_count == FORMS) abort();
    va_start(args, format);
    (void)vsnprintf(forms[form_count], FORM, format, args);
    va_end(args);
    return form_count++;
}

static void put_load(const char *opcode, bool hinted, const struct data *d)
{
    const uint32_t i = form("%s.%s", opcode, d->type);

    put("%s %s, [in]%s;\nst.global.%s [out+%u], %s;\n", forms[i], d->registers,
        hinted ? ", policy" : "", d->type, i * SLOT, d->registers);
}

static void put_store(const char *opcode, bool hinted, const struct data *d)
{
    const uint32_t i = form("%s.%s", opcode, d->type);

    put("%s [out+%u], %s%s;\n", forms[i], i * SLOT, d->registers, hinted ? ", policy" : "");
}

/* Every hint for a weak access, by the rules of "ld" and "st": a prefetch size is of loads. */
static void put_hints(bool load, const struct data *d)
{
    char opcode[FORM];

    for (uint32_t i = 0; i < 2 * EVICTIONS * SECTORS * 2; i++) {
        const bool hinted = i % 2, nc = i / 2 % 2;
        const char *sector = sectors[i / 4 % SECTORS], *eviction = evictions[i / 4 / SECTORS];
        if (!load && (nc || *sector)) continue;
        (void)snprintf(opcode, sizeof opcode, "%s.global%s%s%s%s", load ? "ld" : "st",
                       nc ? ".nc" : "", eviction, hinted ? ".L2::cache_hint" : "", sector);
        if (load)
            put_load(opcode, hinted, d);
        else
            put_store(opcode, hinted, d);
    }
}

static void test_hints(struct rng *rng)
{
    for (uint32_t n = 0; n < 2 * DATAS; n++) {
        const struct data *d = &datas[n / 2];
        const bool load = n % 2 == 0;
        if (!test_case("%s.%s with every hint", load ? "ld" : "st", d->type)) continue;
        unsigned char *in = run_alloc(SLOT);
        for (uint32_t i = 0; i < SLOT; i++) in[i] = (unsigned char)rng_next(rng);
        text_begin(DATA_HEAD);
        put("createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n");
        if (!load) put("ld.global.%s %s, [in];\n", d->type, d->registers);
        put_hints(load, d);
        check_moves(in, d->bytes);
        run_free(in);
    }
}

/* ---- multimem: a team of one device, so that a reduction over the devices is what that one holds ---- */

static const char *const scopes[] = {".cta", ".cluster", ".gpu", ".sys"};
static const struct operation {
    const char *op, *type;
} operations[] = {{"min", "u32"}, {"min", "s32"}, {"min", "u64"}, {"min", "s64"}, {"max", "u32"},
                  {"max", "s32"}, {"max", "u64"}, {"max", "s64"}, {"add", "u32"}, {"add", "s32"},
                  {"add", "u64"}, {"and", "b32"}, {"and", "b64"}, {"or", "b32"},  {"or", "b64"},
                  {"xor", "b32"}, {"xor", "b64"}};
enum { OPERATIONS = sizeof operations / sizeof operations[0], MULTIMEM_BYTES = 1 << 16 };
enum { ORDERS = 10 };

/* "", .weak, .relaxed.SCOPE, .first.SCOPE: all that may stand behind the mnemonic. */
static void order_text(char out[32], uint32_t i, const char *strong)
{
    if (i < 2)
        (void)snprintf(out, 32, "%s", i ? ".weak" : "");
    else
        (void)snprintf(out, 32, "%s%s", i < 6 ? ".relaxed" : strong, scopes[(i - 2) % 4]);
}

static uint64_t multimem_alloc(void)
{
    uint64_t address = 0;

    if (mem_reserve(MULTIMEM_BYTES, MULTIMEM_BYTES, &address) ||
        mem_map(address, MULTIMEM_BYTES, -1, 0) || mem_show(address, MULTIMEM_BYTES, true))
        abort();
    return address;
}

static void multimem_free(uint64_t address)
{
    (void)mem_hide(address);
    mem_unmap(address, MULTIMEM_BYTES);
    (void)mem_unreserve(address);
}

enum multimem { LD_REDUCE, RED, STORE };

static void put_multimem(enum multimem kind, const char *order, const struct operation *o)
{
    const bool wide = !strcmp(o->type + 1, "64");
    const char *a = wide ? "d0" : "w0", *width = wide ? "b64" : "b32";

    if (kind == LD_REDUCE) {
        const uint32_t i = form("multimem.ld_reduce%s.global.%s.%s", order, o->op, o->type);
        put("%s %s, [in+%u];\nst.global.%s [out+%u], %s;\n", forms[i], a, 8 * i, width, 8 * i, a);
    } else if (kind == RED) {
        const uint32_t i = form("multimem.red%s.global.%s.%s", order, o->op, o->type);
        put("ld.global.%s %s, [out+%u];\n%s [in+%u], %s;\n", width, a, 8 * i, forms[i], 8 * i, a);
    } else {
        const uint32_t i = form("multimem.st%s.global.%s", order, o->type);
        put("ld.global.%s %s, [out+%u];\n%s [in+%u], %s;\n", width, a, 8 * i, forms[i], 8 * i, a);
    }
}

/* Values that make the two operands differ in sign, size and bits. */
static void check_multimem(enum multimem kind, const struct operation *of[FORMS], struct rng *rng)
{
    struct run r = {.block = 1};
    const uint64_t address = multimem_alloc();
    uint64_t *team = (uint64_t *)(uintptr_t)address, *out = run_alloc(8 * FORMS);
    uint64_t before[FORMS], operand[FORMS];
    const struct data_params p = {address, (uint64_t)(uintptr_t)out};

    for (uint32_t i = 0; i < FORMS; i++) {
        team[i] = before[i] = rng_next(rng);
        out[i] = operand[i] = rng_next(rng);
    }
    const bool ran = run_clean(&r, &p, sizeof p);
    for (uint32_t i = 0; ran && i < form_count; i++) {
        const char *type = of[i]->type;
        const uint64_t mask = !strcmp(type + 1, "64") ? UINT64_MAX : UINT32_MAX;
        uint64_t want = before[i], got = out[i];
        if (kind != LD_REDUCE) {
            got = team[i];
            want = kind == STORE ? operand[i] : reduced(of[i]->op, type, before[i], operand[i]);
        }
        CHECK((got & mask) == (want & mask), "%s: want %llx got %llx", forms[i],
              (unsigned long long)(want & mask), (unsigned long long)(got & mask));
        CHECK(kind == LD_REDUCE || ((got ^ before[i]) & ~mask) == 0, "%s: wrote 64 bits", forms[i]);
    }
    run_free(out);
    multimem_free(address);
}

static void test_multimem(struct rng *rng)
{
    static const char *const names[] = {"ld_reduce", "red", "st"};
    static const char *const strong[] = {".acquire", ".release", ".release"};
    static const struct operation *of[FORMS];
    char order[32];

    for (uint32_t kind = 0; kind < 3; kind++) {
        if (!test_case("multimem.%s: every order, scope, operation and type", names[kind]))
            continue;
        text_begin(DATA_HEAD);
        for (uint32_t i = 0; i < ORDERS * OPERATIONS; i++) {
            const struct operation *o = &operations[i % OPERATIONS];
            if (kind == RED && i / OPERATIONS == 1) continue; /* .weak is not of red */
            order_text(order, i / OPERATIONS, strong[kind]);
            of[form_count] = o;
            put_multimem((enum multimem)kind, order, o);
        }
        put("ret;\n}\n");
        check_multimem((enum multimem)kind, of, rng);
    }
}

/* ---- special registers ---- */

static const char registers_body[] =
    "mov.u64 d0, %globaltimer;\nst.global.b64 [out], d0;\n"
    "mov.u32 w1, %globaltimer_hi;\nst.global.b32 [out+12], w1;\n"
    "mov.u32 w0, %globaltimer_lo;\nst.global.b32 [out+8], w0;\n"
    "mov.u64 d0, %globaltimer;\nst.global.b64 [out+16], d0;\n"
    "mov.u64 d0, %gridid;\nst.global.b64 [out+24], d0;\n"
    "mov.u64 d0, %current_graph_exec;\nst.global.b64 [out+32], d0;\n"
    "mov.u32 w0, %warpid;\nst.global.b32 [out+40], w0;\n"
    "mov.u32 w0, %nwarpid;\nst.global.b32 [out+44], w0;\n"
    "ret;\n}\n";

enum { RECORD = 48, THREADS = 128 };

static void test_registers(void)
{
    struct run r = {.grid = 2, .block = THREADS};
    uint32_t warps = 0;

    if (!test_case("timers, gridid, current_graph_exec, warpid")) return;
    unsigned char *out = run_alloc(2 * RECORD * THREADS);
    const struct data_params p = {0, (uint64_t)(uintptr_t)out};
    text_begin(DATA_HEAD);
    put("mov.u32 w0, %%ctaid.x;\nmov.u32 w1, %%tid.x;\nmad.lo.u32 w0, w0, %u, w1;\n"
        "mad.wide.u32 out, w0, %u, out;\n%s",
        THREADS, RECORD, registers_body);
    const bool ran = run_clean(&r, &p, sizeof p);
    for (uint32_t t = 0; ran && t < 2 * THREADS; t++) {
        uint64_t v[6], first;
        memcpy(v, out + t * RECORD, sizeof v);
        memcpy(&first, out + 24, sizeof first);
        const uint32_t warp = (uint32_t)v[5], all = (uint32_t)(v[5] >> 32);
        CHECK(v[0] <= v[1] && v[1] <= v[2], "thread %u: the halves of the timer", t);
        CHECK(v[3] == first, "thread %u: gridid differs in one grid", t);
        CHECK(v[4] == 0, "thread %u: current_graph_exec outside a graph", t);
        CHECK(warp < all, "thread %u: warpid %u of %u", t, warp, all);
        if (t < THREADS && t % 32 == 0) {
            CHECK(!(warps & 1U << warp % 32), "two warps of a CTA have warpid %u", warp);
            warps |= 1U << warp % 32;
        }
    }
    run_free(out);
}

void memory_cases(struct rng *rng)
{
    test_hints(rng);
    test_multimem(rng);
    test_registers();
}

int main(int argc, char **argv)
{
    test_begin("sim_forms", argc, argv);
    if (!run_begin()) return 1;
    struct rng rng = {test_seed()};
    memory_cases(&rng);
    sync_cases();
    copy_cases(&rng);
    run_end();
    return test_end();
}
