/*
 * golden DIR [FAMILY]   compares this driver's answers with the vectors in DIR
 * golden --record DIR   writes the vectors (on a GPU)
 * golden --table DIR    prints how far this driver's approximations are from them: ulp.md
 * golden --ptx DIR      writes the kernels' texts
 *
 * With the name of a FAMILY, that one alone. One file a family: "hewn golden 1\n", the seed, then for each case its name, size and the output
 * bytes. See golden.h.
 */
#include "golden.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct golden_family *const families[] = {
#define X(name) &golden_##name,
    GOLDEN_FAMILIES(X)
#undef X
};
static const char magic[] = "hewn golden 1\n";

struct driver {
    struct device dev;
    int (*load)(void **, const void *);
    int (*unload)(void *);
    int (*find)(void **, void *, const char *);
    int (*attribute)(void *, int, int);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*encode_tiled)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                        const uint32_t *, const uint32_t *, int, int, int, int);
    int (*encode_im2col)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                         const int *, const int *, uint32_t, uint32_t, const uint32_t *, int, int,
                         int, int);
};

static bool resolve(const hewn_driver *driver, const char *name, void *slot)
{
    void *symbol = hewn_driver_symbol(driver, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool driver_open(struct driver *d, hewn_error *err)
{
    if (!device_open(&d->dev, err)) return false;
    return resolve(d->dev.driver, "cuModuleLoadData", &d->load) &&
           resolve(d->dev.driver, "cuModuleUnload", &d->unload) &&
           resolve(d->dev.driver, "cuModuleGetFunction", &d->find) &&
           resolve(d->dev.driver, "cuFuncSetAttribute", &d->attribute) &&
           resolve(d->dev.driver, "cuLaunchKernel", &d->launch) &&
           resolve(d->dev.driver, "cuTensorMapEncodeTiled", &d->encode_tiled) &&
           resolve(d->dev.driver, "cuTensorMapEncodeIm2col", &d->encode_im2col);
}

/* ---- inputs ---- */

static uint32_t f32_bits(double v)
{
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

uint32_t golden_f32(struct rng *r)
{
    static const uint32_t special[] = {0,          0x80000000, 0x3F800000, 0xBF800000, 0x7F800000,
                                       0xFF800000, 0x7FC00000, 0x00000001, 0x807FFFFF, 0x00800000,
                                       0x7F7FFFFF, 0x3F000000, 0x4B000000, 0x4F000000, 0x3EFFFFFF,
                                       0xFFC00001, 0x7F800001, 0xFFA00000};
    switch (rng_below(r, 8)) {
    case 0: return special[rng_below(r, sizeof special / sizeof special[0])];
    case 1: return (uint32_t)rng_next(r) & 0x807FFFFF; /* subnormal */
    case 2: return f32_bits(rint(1000 * (double)rng_unit(r)) / 2);
    case 3:
    case 4: {
        int exponent = (int)rng_below(r, 40) - 20;
        return f32_bits(ldexp((double)rng_unit(r), exponent));
    }
    case 5: return (uint32_t)rng_next(r);
    default: return f32_bits((double)rng_unit(r));
    }
}

uint64_t golden_f64(struct rng *r)
{
    double d;
    uint64_t u;
    uint32_t bits = golden_f32(r);
    float f;
    memcpy(&f, &bits, sizeof f);
    d = (double)f * (1 + ldexp((double)rng_unit(r), -20));
    if (rng_below(r, 8) == 0) d = ldexp(d, (int)rng_below(r, 1600) - 800);
    memcpy(&u, &d, sizeof u);
    if (isnan(d) || rng_below(r, 12) == 0) /* quiet or signalling, often two in one operation */
        u = 0x7FF0000000000001ULL | rng_next(r);
    return u;
}

uint16_t golden_half(struct rng *r, bool bf16)
{
    static const double special[] = {0.0,       -0.0,    1.0,        -1.0,   INFINITY,
                                     -INFINITY, 0x1p-24, 0x1.ff8p15, 0x1p-14};
    double v = (double)rng_unit(r);
    uint16_t any = (uint16_t)rng_next(r);
    switch (rng_below(r, 6)) {
    case 0: v = special[rng_below(r, sizeof special / sizeof special[0])]; break;
    case 1: v = ldexp(v, (int)rng_below(r, 30) - 24); break;
    case 2: v = rint(v * 100); break;
    case 3: return any;
    default: break;
    }
    return bf16 ? double_to_bf16(v) : double_to_f16(v);
}

uint64_t golden_int(struct rng *r)
{
    static const uint64_t special[] = {0,
                                       1,
                                       2,
                                       31,
                                       32,
                                       33,
                                       0x7FFFFFFF,
                                       0x80000000,
                                       0xFFFFFFFF,
                                       0x7FFFFFFFFFFFFFFF,
                                       0x8000000000000000,
                                       0xFFFFFFFFFFFFFFFF};
    switch (rng_below(r, 5)) {
    case 0: return special[rng_below(r, sizeof special / sizeof special[0])];
    case 1: return rng_below(r, 64);
    case 2: return (uint64_t) - (int64_t)rng_below(r, 1000);
    case 3: return 1ULL << rng_below(r, 64);
    default: return rng_next(r);
    }
}

/* ---- running a case ---- */

enum { OK, NOT_MODELLED, FAILED };

static int encode(struct driver *d, const struct golden_map *m, hewn_deviceptr base, void *map)
{
    void *address;
    memcpy(&address, &base, sizeof address);
    if (!m->im2col)
        return d->encode_tiled(map, m->dtype, m->rank, address, m->dim, m->stride, m->box,
                               m->element_stride, m->interleave, m->swizzle, 0, m->oob);
    return d->encode_im2col(map, m->dtype, m->rank, address, m->dim, m->stride, m->lower, m->upper,
                            m->channels, m->pixels, m->element_stride, m->interleave, m->swizzle, 0,
                            m->oob);
}

static int run(struct driver *d, const struct golden_case *c, unsigned char *out)
{
    _Alignas(64) unsigned char map[128] = {0};
    if (c->answer) return c->answer(d->dev.driver, c, out) ? OK : FAILED;
    void *module = NULL, *function = NULL;
    hewn_deviceptr in = 0, to = 0;
    void *params[] = {&in, &to, map};
    int rc = d->load(&module, c->text), launch = 0;
    if (c->before) memcpy(out, c->before, c->out_bytes);
    CHECK(rc == 0, "%s: the module does not load: CUresult %d", c->name, rc);
    if (rc) return FAILED;
    rc = d->find(&function, module, "k") || d->dev.mem_alloc(&in, c->in_bytes) ||
         d->dev.mem_alloc(&to, c->out_bytes) || d->dev.to_device(in, c->in, c->in_bytes) ||
         d->dev.to_device(to, out, c->out_bytes);
    if (!rc && c->map.used) rc = encode(d, &c->map, c->map.on_out ? to : in, map);
    if (!rc && c->dynamic_shared) rc = d->attribute(function, 8, (int)c->dynamic_shared);
    if (!rc)
        launch = d->launch(function, c->grid, 1, 1, c->block, 1, 1, c->dynamic_shared, NULL, params,
                           NULL);
    if (!rc && !launch) rc = d->dev.synchronize() || d->dev.to_host(out, to, c->out_bytes);
    if (in) d->dev.mem_free(in);
    if (to) d->dev.mem_free(to);
    d->unload(module);
    CHECK(rc == 0, "%s: a driver call failed", c->name);
    if (launch == 801) return NOT_MODELLED;
    CHECK(launch == 0, "%s: the launch failed: CUresult %d", c->name, launch);
    return rc || launch ? FAILED : OK;
}

/* ---- files ---- */

static FILE *open_family(const char *dir, const struct golden_family *f, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.bin", dir, f->name);
    FILE *file = fopen(path, mode);
    if (!file) fprintf(stderr, "golden: %s: %s\n", path, strerror(errno));
    return file;
}

static bool put_case(FILE *f, const struct golden_case *c, const unsigned char *out)
{
    uint32_t size = (uint32_t)c->out_bytes;
    return fwrite(c->name, sizeof c->name, 1, f) == 1 && fwrite(&size, sizeof size, 1, f) == 1 &&
           fwrite(out, 1, size, f) == size;
}

static bool get_case(FILE *f, const struct golden_case *c, unsigned char *out)
{
    char name[GOLDEN_NAME];
    uint32_t size;
    return fread(name, sizeof name, 1, f) == 1 && fread(&size, sizeof size, 1, f) == 1 &&
           !memcmp(name, c->name, sizeof name) && size == c->out_bytes &&
           fread(out, 1, size, f) == size;
}

enum mode { COMPARE, RECORD, TABLE, PTX };

/* What walking through the families needs. */
struct session {
    struct driver driver;
    enum mode mode;
    const char *dir, *only; /* the one family to do, or NULL */
    char *table;            /* the text of ulp.md when comparing */
};

static void put_text(const struct session *s, const struct golden_family *family, uint32_t index,
                     const struct golden_case *c)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%u.ptx", s->dir, family->name, index);
    FILE *f = c->text[0] ? fopen(path, "w") : NULL;
    if (f) {
        fprintf(f, "// %s\n%s", c->name, c->text);
        fclose(f);
    }
}

/* Runs the case and records or judges what comes out. */
static void handle(struct session *s, const struct golden_case *c, FILE *f, unsigned char *out,
                   const unsigned char *want)
{
    int rc = run(&s->driver, c, out);
    if (rc == NOT_MODELLED)
        test_skip("not modelled");
    else if (rc == OK && s->mode == RECORD)
        CHECK(put_case(f, c, out), "cannot write");
    else if (rc == OK)
        golden_judge(c, out, want, s->mode == COMPARE ? s->table : NULL);
}

/* One family, recorded to or compared with its file. */
static void walk(struct session *s, const struct golden_family *family, FILE *f)
{
    static struct golden_case c;
    for (uint32_t i = 0;; i++) {
        memset(&c, 0, sizeof c);
        if (!family->make(&c, i)) break;
        c.family = family->name;
        unsigned char *out = calloc(1, c.out_bytes), *want = calloc(1, c.out_bytes);
        bool chosen = test_case("%s: %s", family->name, c.name);
        bool have = s->mode == RECORD || s->mode == PTX || (want && get_case(f, &c, want));
        if (chosen && s->mode == PTX) {
            put_text(s, family, i, &c);
        } else if (chosen && out && want && c.in) {
            CHECK(have, "%s: not in the file, or of another size: run make golden", c.name);
            if (have && (s->mode != TABLE || c.rule != GOLDEN_BITS)) handle(s, &c, f, out, want);
        }
        free(out);
        free(want);
        free(c.in);
        free(c.before);
        if (!have) break;
    }
}

static bool begin_file(FILE *f, bool record)
{
    char head[sizeof magic] = "";
    if (record) return fwrite(magic, sizeof magic - 1, 1, f) == 1;
    return fread(head, sizeof magic - 1, 1, f) == 1 && !strcmp(head, magic);
}

static void walk_all(struct session *s)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (s->only && strcmp(s->only, families[i]->name)) continue;
        FILE *f = s->mode == PTX
                      ? NULL
                      : open_family(s->dir, families[i], s->mode == RECORD ? "wb" : "rb");
        if (s->mode == PTX || (f && begin_file(f, s->mode == RECORD)))
            walk(s, families[i], f);
        else if (test_case("%s", families[i]->name))
            CHECK(false, "no vectors of this family in %s", s->dir);
        if (f) fclose(f);
    }
}

/* The whole text of DIR/ulp.md, empty when it cannot be read; NULL without memory. */
static char *read_table(const char *dir)
{
    enum { ROOM = 1 << 20 };
    char path[4096], *text = calloc(1, ROOM);
    snprintf(path, sizeof path, "%s/ulp.md", dir);
    FILE *f = fopen(path, "r");
    size_t n = f && text ? fread(text, 1, ROOM - 1, f) : 0;
    if (text) text[n] = 0;
    if (f) fclose(f);
    return text;
}

static const char table_head[] =
    "# How far the simulator's approximations are from an H200's\n\n"
    "Made by `golden --table tests/golden` from the recorded vectors "
    "(driver 580.159.04); `make check` fails\n"
    "when a form exceeds its bound or the ulp given here. The bounds, "
    "with where they come from, are in\n"
    "`tests/golden/golden_alu.def` and `tests/golden/golden_form.def`. *Differ*: "
    "results that are not the same bits.\n\n"
    "| form | results | bound | differ | ulp | absolute | relative "
    "|\n|---|---|---|---|---|---|---|\n";

int main(int argc, char **argv)
{
    static const char *const options[] = {"", "--record", "--table", "--ptx"};
    static struct session s;
    hewn_error err = {0};
    int used = 1;
    for (int m = RECORD; m <= PTX; m++)
        if (argc > 1 && !strcmp(argv[1], options[m])) s.mode = (enum mode)m;
    used += s.mode != COMPARE;
    if (argc <= used) {
        fprintf(stderr, "usage: golden [--record|--table|--ptx] DIR [FAMILY] [options]\n");
        return 2;
    }
    s.dir = argv[used];
    if (argc > used + 1 && argv[used + 1][0] != '-') s.only = argv[++used];
    argv[used] = argv[0];
    test_begin("golden", argc - used, argv + used);
    if (!driver_open(&s.driver, &err)) {
        if (test_case("open")) CHECK(false, "%s", err.message);
        return test_end();
    }
    test_where("%s", s.driver.dev.info.name);
    s.table = read_table(s.dir);
    if (s.mode == TABLE) fputs(table_head, stdout);
    if (s.table) walk_all(&s);
    free(s.table);
    device_close(&s.driver.dev);
    return s.mode == TABLE ? 0 : test_end();
}
