/*
 * Wrong descriptors (kind layout): a product of two tiles that tensor copies staged, for each swizzle and
 * major-ness of both operands, with one thing wrong at a time. The simulator computes what hardware would;
 * where that is not the float64 product, the checker must say layout, and where it is, nothing.
 */
#include "lib/harness.h"

#include "async/tmap_copy.h"
#include "sim/sim_run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tile has 128 bytes of k, a product takes 32. */
enum { K_BYTES = 128, STEP_BYTES = 32, STEPS = K_BYTES / STEP_BYTES, MAX_ROWS = 256 };
enum { TENSOR_BYTES = 2 * MAX_ROWS * 2 * K_BYTES, SHARED = 120 << 10 };

/* Elements: their bytes, name, data type of the map, kind of tcgen05.mma, code of its descriptor. */
static const struct element {
    uint32_t bytes;
    const char *name, *wrong_name, *kind;
    uint8_t dtype, code, wrong_code;
} elements[] = {
    {2, "bf16", "f16", "f16", TMAP_BF16, 1, 0},
    {1, "e4m3", NULL, "f8f6f4", 0, 0, 0},
    {4, "tf32", NULL, "tf32", TMAP_F32, 2, 0},
};

/* What is wrong. Of the operand that is damaged, or of both. */
#define FAULTS(X)                                       \
    X(NONE, "nothing")                                  \
    X(SWIZZLE_NEXT, "the next swizzle mode")            \
    X(SWIZZLE_AFTER, "the swizzle mode after that")     \
    X(SWIZZLE_LAST, "the swizzle mode before")          \
    X(LEADING_DOUBLE, "twice the leading offset")       \
    X(LEADING_HALF, "half the leading offset")          \
    X(LEADING_ZERO, "no leading offset")                \
    X(STRIDE_DOUBLE, "twice the stride offset")         \
    X(STRIDE_HALF, "half the stride offset")            \
    X(STRIDE_ZERO, "no stride offset")                  \
    X(EXCHANGED, "leading and stride offset exchanged") \
    X(START_CHUNK, "a start 16 bytes too high")         \
    X(START_CHUNKS, "a start 32 bytes too high")        \
    X(START_ROW, "a start 128 bytes too high")          \
    X(BASE, "a base offset of 1")                       \
    X(BASE_HIGH, "a base offset of 4")                  \
    X(MAJOR, "the other major-ness")                    \
    X(TYPE, "another element type")                     \
    X(STEP_HALF, "half the k-step")                     \
    X(STEP_DOUBLE, "twice the k-step")                  \
    X(STEP_NONE, "no k-step")

enum fault {
#define X(name, text) FAULT_##name,
    FAULTS(X)
#undef X
        FAULT_COUNT
};
static const char *const fault_text[] = {
#define X(name, text) text,
    FAULTS(X)
#undef X
};

enum { DAMAGE_A = 1, DAMAGE_B = 2 };

/* One operand, as it is staged and as its descriptor says. */
struct side {
    bool mn_major, map_mn_major;
    uint32_t rows, swizzle, map_swizzle;
    uint32_t span; /* bytes of a box's row */
    uint32_t boxes, box_bytes;
    uint32_t base; /* in shared memory */
    uint32_t lbo, sbo, start, phase;
    uint32_t step[STEPS];
};

struct problem {
    const struct element *element;
    bool blackwell;
    bool other_type;
    struct side a, b;
};

static uint8_t *tensor[2]; /* twice as many rows and twice as much k as the tile, or transposed */
static struct tmap *maps;  /* two, of 128 bytes each, for the kernel */
static float *result;
static uint32_t columns = 128;  /* of the product */
static unsigned tried, changed; /* wrong descriptors, and those that change the product */

/* ---- the right descriptors ---- */

static void plan(struct side *o, uint32_t bytes, uint32_t rows, uint32_t swizzle, bool mn_major,
                 uint32_t base)
{
    const uint32_t span = 16U << swizzle, k = K_BYTES / bytes, lines = mn_major ? k : rows;
    *o = (struct side){.mn_major = mn_major,
                       .map_mn_major = mn_major,
                       .rows = rows,
                       .swizzle = swizzle,
                       .map_swizzle = swizzle,
                       .span = span,
                       .boxes = (mn_major ? rows * bytes : K_BYTES) / span,
                       .box_bytes = span * lines,
                       .base = base};
    if (mn_major) {
        o->lbo = swizzle ? o->box_bytes : 128;
        o->sbo = swizzle ? 8 * span : o->box_bytes;
    } else {
        o->lbo = swizzle ? 16 : o->box_bytes;
        o->sbo = 8 * span;
    }
    for (uint32_t s = 0; s < STEPS; s++) {
        const uint32_t byte = s * STEP_BYTES;
        o->step[s] = mn_major ? byte / bytes * span : byte / span * o->box_bytes + byte % span;
        if (!mn_major && !swizzle) o->step[s] = 2 * s * o->box_bytes;
    }
}

/* The part of a k-step that stays in one box, or where there is none, all of it. */
static void change_steps(struct side *o, uint32_t numerator, uint32_t denominator)
{
    const bool within = !o->mn_major && o->span > 32;
    for (uint32_t s = 0; s < STEPS; s++) {
        const uint32_t outside = within ? o->step[s] / o->box_bytes * o->box_bytes : 0;
        o->step[s] = outside + (o->step[s] - outside) * numerator / denominator;
    }
}

static void damage(struct problem *p, struct side *o, enum fault fault)
{
    const uint32_t lbo = o->lbo;
    switch (fault) {
    case FAULT_SWIZZLE_NEXT: o->swizzle = (o->swizzle + 1) % 4; break;
    case FAULT_SWIZZLE_AFTER: o->swizzle = (o->swizzle + 2) % 4; break;
    case FAULT_SWIZZLE_LAST: o->swizzle = (o->swizzle + 3) % 4; break;
    case FAULT_LEADING_DOUBLE: o->lbo *= 2; break;
    case FAULT_LEADING_HALF: o->lbo /= 2; break;
    case FAULT_LEADING_ZERO: o->lbo = 0; break;
    case FAULT_STRIDE_DOUBLE: o->sbo *= 2; break;
    case FAULT_STRIDE_HALF: o->sbo /= 2; break;
    case FAULT_STRIDE_ZERO: o->sbo = 0; break;
    case FAULT_EXCHANGED:
        o->lbo = o->sbo;
        o->sbo = lbo;
        break;
    case FAULT_START_CHUNK: o->start = 16; break;
    case FAULT_START_CHUNKS: o->start = 32; break;
    case FAULT_START_ROW: o->start = 128; break;
    case FAULT_BASE: o->phase = 1; break;
    case FAULT_BASE_HIGH: o->phase = 4; break;
    case FAULT_MAJOR: o->mn_major = !o->mn_major; break;
    case FAULT_TYPE: p->other_type = true; break;
    case FAULT_STEP_HALF: change_steps(o, 1, 2); break;
    case FAULT_STEP_DOUBLE: change_steps(o, 2, 1); break;
    case FAULT_STEP_NONE: change_steps(o, 0, 1); break;
    default: break;
    }
}

/* ---- the kernel ---- */

struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->at, t->left, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= t->left) abort();
    t->at += n;
    t->left -= (size_t)n;
}

static uint64_t descriptor(const struct problem *p, const struct side *o, uint32_t s)
{
    static const uint64_t hopper[] = {0, 3, 2, 1}, blackwell[] = {0, 6, 4, 2};
    const uint64_t fields = (uint64_t)((o->base + o->start + o->step[s]) >> 4) |
                            (uint64_t)(o->lbo >> 4 & 0x3FFFU) << 16 |
                            (uint64_t)(o->sbo >> 4 & 0x3FFFU) << 32 | (uint64_t)o->phase << 49;
    return p->blackwell ? fields | 1ULL << 46 | blackwell[o->swizzle] << 61
                        : fields | hopper[o->swizzle] << 62;
}

static void put_copies(struct text *t, const struct problem *p, const struct side *o, int which)
{
    const uint32_t k = K_BYTES / p->element->bytes;
    for (uint32_t b = 0; b < o->boxes; b++) {
        const uint32_t along = b * o->span / p->element->bytes;
        put(t,
            "@lead cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
            "[tile+%u], [m%d, {%u, %u}], [bar];\n",
            o->base + b * o->box_bytes, which, (o->map_mn_major ? o->rows : k) + along,
            o->map_mn_major ? k : o->rows);
    }
}

static void put_registers(struct text *t, char bank)
{
    for (uint32_t i = 0; i < columns / 2 * (bank == 'r' ? 2 : 1); i++)
        put(t, "%s%c%u", i ? "," : "", bank, i);
}

static void put_hopper(struct text *t, const struct problem *p)
{
    const char *type = p->other_type ? p->element->wrong_name : p->element->name;
    put(t, "wgmma.fence.sync.aligned;\n");
    for (uint32_t s = 0; s < STEPS; s++) {
        put(t, "add.u64 da, tt, 0x%llx;\nadd.u64 db, tt, 0x%llx;\n",
            (unsigned long long)descriptor(p, &p->a, s),
            (unsigned long long)descriptor(p, &p->b, s));
        put(t, "wgmma.mma_async.sync.aligned.m64n%uk%u.f32.%s.%s {", columns,
            STEP_BYTES / p->element->bytes, type, type);
        put_registers(t, 'f');
        put(t, "}, da, db, %s, 1, 1", s ? "yes" : "no");
        if (p->element->bytes == 2) put(t, ", %d, %d", p->a.mn_major, p->b.mn_major);
        put(t, ";\n");
    }
    put(t,
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
        "mad.lo.u32 x, tid, %u, 0;\nmad.wide.u32 out, x, 4, out;\n",
        columns / 2);
    for (uint32_t i = 0; i < columns / 2; i++) put(t, "st.global.f32 [out+%u], f%u;\n", 4 * i, i);
}

static void put_blackwell(struct text *t, const struct problem *p)
{
    const uint32_t format = p->other_type ? p->element->wrong_code : p->element->code;
    const uint32_t idesc = 1U << 4 | format << 7 | format << 10 | (uint32_t)p->a.mn_major << 15 |
                           (uint32_t)p->b.mn_major << 16 | columns / 8U << 17 |
                           p->a.rows / 16U << 24;
    for (uint32_t s = 0; s < STEPS; s++)
        put(t,
            "add.u64 da, tt, 0x%llx;\nadd.u64 db, tt, 0x%llx;\n"
            "@lead tcgen05.mma.cta_group::1.kind::%s [taddr], da, db, %u, %s;\n",
            (unsigned long long)descriptor(p, &p->a, s),
            (unsigned long long)descriptor(p, &p->b, s), p->element->kind, idesc, s ? "yes" : "no");
    put(t,
        "@lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar+8];\n"
        "late: mbarrier.try_wait.parity.shared::cta.b64 done, [bar+8], 0;\n@!done bra late;\n"
        "tcgen05.fence::after_thread_sync;\nshr.u32 x, tid, 5;\nshl.b32 x, x, 21;\n"
        "add.u32 x, x, taddr;\ntcgen05.ld.sync.aligned.32x32b.x%u.b32 {",
        columns);
    put_registers(t, 'r');
    put(t,
        "}, [x];\ntcgen05.wait::ld.sync.aligned;\nmad.lo.u32 x, tid, %u, 0;\n"
        "mad.wide.u32 out, x, 4, out;\n",
        columns);
    for (uint32_t i = 0; i < columns; i++) put(t, "st.global.b32 [out+%u], r%u;\n", 4 * i, i);
    put(t, "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n"
           "@w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 256;\n");
}

static char *kernel(const struct problem *p)
{
    const size_t room = 1 << 16;
    char *text = malloc(room);
    struct text t = {text, room};
    if (!text) abort();
    put(&t,
        ".version 8.8\n.target %s\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];\n"
        ".visible .entry k(.param .u64 p_m0, .param .u64 p_m1, .param .u64 p_out)\n{\n"
        ".shared .align 8 .b64 bar[2];\n.shared .align 4 .b32 slot;\n"
        ".reg .pred lead, yes, no, done, w0;\n.reg .b32 tid, x, taddr, r<%u>;\n.reg .f32 f<%u>;\n"
        ".reg .b64 m0, m1, out, da, db, tt;\n",
        p->blackwell ? "sm_100a" : "sm_90a", columns, columns / 2);
    put(&t, "ld.param.u64 m0, [p_m0];\nld.param.u64 m1, [p_m1];\nld.param.u64 out, [p_out];\n"
            "mov.u32 tid, %%tid.x;\nsetp.eq.u32 lead, tid, 0;\nsetp.eq.u32 yes, tid, tid;\n"
            "setp.ne.u32 no, tid, tid;\nsetp.lt.u32 w0, tid, 32;\nmov.u32 x, tile;\n"
            "shr.u32 x, x, 4;\ncvt.u64.u32 tt, x;\n"
            "@lead mbarrier.init.shared::cta.b64 [bar], 1;\n"
            "@lead mbarrier.init.shared::cta.b64 [bar+8], 1;\n"
            "@lead fence.mbarrier_init.release.cluster;\n");
    if (p->blackwell)
        put(&t, "@w0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 256;\n"
                "tcgen05.fence::before_thread_sync;\n");
    put(&t, "bar.sync 0;\n");
    if (p->blackwell) put(&t, "tcgen05.fence::after_thread_sync;\nld.shared.u32 taddr, [slot];\n");
    put(&t, "@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %u;\n",
        p->a.boxes * p->a.box_bytes + p->b.boxes * p->b.box_bytes);
    put_copies(&t, p, &p->a, 0);
    put_copies(&t, p, &p->b, 1);
    put(&t, "again: mbarrier.try_wait.parity.shared::cta.b64 done, [bar], 0;\n@!done bra again;\n");
    if (p->blackwell)
        put_blackwell(&t, p);
    else
        put_hopper(&t, p);
    put(&t, "ret;\n}\n");
    return text;
}

/* ---- values ---- */

/* Small integers, which every type holds. */
static int integer_at(uint32_t which, uint64_t element)
{
    struct rng rng = {test_seed() + which + 2 * element};
    return (int)rng_below(&rng, 7) - 3;
}

static void put_integer(uint8_t *at, uint32_t bytes, int integer)
{
    static const uint8_t e4m3[] = {0, 0x38, 0x40, 0x44};
    const float f = (float)integer;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (bytes == 1) bits = (uint32_t)(e4m3[abs(integer)] | (integer < 0 ? 0x80 : 0)) << 24;
    for (uint32_t i = 0; i < bytes; i++) at[i] = (uint8_t)(bits >> (32 - 8 * bytes + 8 * i));
}

static int value(const struct problem *p, const struct side *o, uint32_t which, uint32_t row,
                 uint32_t k)
{
    const uint32_t ks = K_BYTES / p->element->bytes, r = o->rows + row, c = ks + k;
    return integer_at(which,
                      o->map_mn_major ? (uint64_t)c * 2 * o->rows + r : (uint64_t)r * 2 * ks + c);
}

static void fill(uint32_t bytes)
{
    for (uint32_t which = 0; which < 2; which++)
        for (uint32_t i = 0; i < TENSOR_BYTES / bytes; i++)
            put_integer(tensor[which] + (size_t)i * bytes, bytes, integer_at(which, i));
}

static void make_map(const struct problem *p, const struct side *o, int which)
{
    const uint32_t bytes = p->element->bytes, k = K_BYTES / bytes;
    const uint32_t inner = o->map_mn_major ? 2 * o->rows : 2 * k,
                   outer = o->map_mn_major ? 2 * k : 2 * o->rows;
    const struct tmap t = {.address = (uint64_t)(uintptr_t)tensor[which],
                           .dtype = p->element->dtype,
                           .rank = 2,
                           .swizzle = (uint8_t)o->map_swizzle,
                           .dim = {inner, outer},
                           .stride = {bytes, (uint64_t)bytes * inner},
                           .box = {o->span / bytes, o->map_mn_major ? k : o->rows},
                           .element_stride = {1, 1}};
    char why[200];
    if (tmap_validate(&t, 10, why, sizeof why)) CHECK(false, "map: %s", why);
    tmap_encode(&t, (char *)maps + (size_t)which * 128);
}

/* The products that are meant. */
static void multiply(const struct problem *p, double *want)
{
    const uint32_t ks = K_BYTES / p->element->bytes;
    for (uint32_t i = 0; i < p->a.rows; i++) {
        for (uint32_t j = 0; j < columns; j++) {
            double sum = 0;
            for (uint32_t k = 0; k < ks; k++)
                sum += (double)value(p, &p->a, 0, i, k) * value(p, &p->b, 1, j, k);
            want[i * columns + j] = sum;
        }
    }
}

/* Whether D is that. */
static bool right(const struct problem *p, const double *want)
{
    for (uint32_t i = 0; i < p->a.rows; i++) {
        for (uint32_t j = 0; j < columns; j++) {
            const uint32_t thread = p->blackwell ? i : 32 * (i / 16) + i % 8 * 4 + j % 8 / 2,
                           slot = p->blackwell ? j : j / 8 * 4 + i % 16 / 8 * 2 + j % 2,
                           slots = p->blackwell ? columns : columns / 2;
            if ((double)result[thread * slots + slot] != want[i * columns + j]) return false;
        }
    }
    return true;
}

/* ---- cases ---- */

/* What the checker got wrong: printed, and counted by the caller. */
static const char *wrong(const struct problem *p, const double *want, struct run *r,
                         enum fault fault)
{
    const uint64_t params[3] = {(uint64_t)(uintptr_t)maps, (uint64_t)(uintptr_t)maps + 128,
                                (uint64_t)(uintptr_t)result};
    char *text = kernel(p);
    int code;
    bool named, good;
    memset(result, 0, sizeof(float) * MAX_ROWS * MAX_ROWS);
    *r = (struct run){.block = 128, .dynamic_shared = SHARED, .seed = test_seed()};
    code = run_kernel(r, text, params, sizeof params);
    free(text);
    named = run_found(r, "layout");
    good = !code && right(p, want);
    if (code && !strstr(r->findings, "\"severity\":\"error\"")) return "the launch failed";
    tried += fault != FAULT_NONE;
    changed += !good;
    if (fault == FAULT_NONE && !good) return "the right descriptors give a wrong product";
    if (code) return NULL;
    if (good && named) return "the product is right, and layout is reported";
    if (!good && !named) return "the product is wrong, and nothing is reported";
    if (good && !strstr(r->findings, "\"verdict\":\"clean\"")) return "not clean";
    return NULL;
}

static void try_fault(const struct problem *good, const double *want, enum fault fault, int which)
{
    struct problem p = *good;
    struct run r;
    const char *what;
    if (which & DAMAGE_A) damage(&p, &p.a, fault);
    if (which & DAMAGE_B) damage(&p, &p.b, fault);
    what = wrong(&p, want, &r, fault);
    CHECK(!what, "%s of %s%s%s: %s\n%s", fault_text[fault], which & DAMAGE_A ? "A" : "",
          which == (DAMAGE_A | DAMAGE_B) ? " and " : "", which & DAMAGE_B ? "B" : "",
          what ? what : "", r.findings);
}

struct layout {
    uint32_t swizzle;
    bool mn_major;
};

static void try_layout(const struct element *e, bool blackwell, struct layout a, struct layout b,
                       bool apart)
{
    static double want[MAX_ROWS * MAX_ROWS];
    struct problem good = {.element = e, .blackwell = blackwell};
    const uint32_t rows = blackwell ? 128 : 64;
    plan(&good.a, e->bytes, rows, a.swizzle, a.mn_major, 0);
    plan(&good.b, e->bytes, columns, b.swizzle, b.mn_major, apart ? 48U << 10 : rows * K_BYTES);
    make_map(&good, &good.a, 0);
    make_map(&good, &good.b, 1);
    multiply(&good, want);
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        /* what the instruction cannot say */
        if (fault == FAULT_TYPE && !e->wrong_name) continue;
        if (fault == FAULT_MAJOR && (e->bytes == 4 || (e->bytes == 1 && !blackwell))) continue;
        for (int which = 1; which <= 3; which++) try_fault(&good, want, (enum fault)fault, which);
    }
}

/* Layouts that the instruction has: other than 16-bit operands are K-major in wgmma, tf32 in tcgen05 too
 * (MN-major it has a swizzle of its own). */
static bool exists(const struct element *e, bool blackwell, struct layout l)
{
    return !l.mn_major || e->bytes == 2 || (e->bytes == 1 && blackwell);
}

static void try_element(const struct element *e, bool blackwell, bool all)
{
    static const char *const swizzles[] = {"none", "32B", "64B", "128B"};
    for (uint32_t i = 0; i < 128; i++) {
        const struct layout a = {i / 2 % 4, i / 8 % 2}, b = {i / 16 % 4, i / 64};
        const bool alike = a.swizzle == b.swizzle && (a.mn_major == b.mn_major || e->bytes == 2);
        if (!exists(e, blackwell, a) || !exists(e, blackwell, b)) continue;
        if (!all && (!alike || (e->bytes != 2 && i % 2))) continue;
        if (b.mn_major && columns * e->bytes % (16U << b.swizzle)) continue; /* not whole boxes */
        if (test_case("%s %s, N %u, A %s-major %s, B %s-major %s, %s",
                      blackwell ? "tcgen05" : "wgmma", e->name, columns, a.mn_major ? "MN" : "K",
                      swizzles[a.swizzle], b.mn_major ? "MN" : "K", swizzles[b.swizzle],
                      i % 2 ? "apart" : "side by side"))
            try_layout(e, blackwell, a, b, i % 2);
    }
}

/* --all: every pair of layouts, not only those with one swizzle, and the latter in other widths. */
int main(int argc, char **argv)
{
    const bool all = argc > 1 && !strcmp(argv[1], "--all");
    if (all) argv[1] = argv[0];
    test_begin("layout", argc - all, argv + all);
    if (!run_begin()) return 1;
    for (int i = 0; i < 2; i++) tensor[i] = run_alloc(TENSOR_BYTES);
    maps = run_alloc(256);
    result = run_alloc(sizeof(float) * MAX_ROWS * MAX_ROWS);
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        fill(elements[i].bytes);
        for (int blackwell = 0; blackwell < 2; blackwell++) {
            static const uint32_t widths[] = {128, 64, 32, 16, 256};
            for (size_t n = 0; n < (all ? sizeof widths / sizeof widths[0] - (size_t)blackwell : 1);
                 n++) {
                columns = widths[n];
                try_element(&elements[i], blackwell, all && !n);
            }
        }
    }
    run_end();
    printf("%u of %u wrong descriptors change the product\n", changed, tried);
    return test_end();
}
