/*
 * The readers of fuzz.h on the files in tests/fuzz/found, each of which once broke one, on seeds made
 * of the tree's own files, and on damaged copies of the seeds. Every file has a process of its own, so
 * that a crash is a failure of one case.
 *
 *   fuzz --write DIR   leaves the seeds in DIR/TARGET, where libFuzzer begins
 *   fuzz --run TARGET FILE…   gives files to one reader, in this process
 */
#include "fuzz/fuzz.h"
#include "lib/cubin.h"
#include "lib/harness.h"

#include "async/tmap.h"
#include "ptx/fatbin.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEED_MOST = 1 << 20, COPIES = 600 /* damaged ones, of all seeds of a target together */ };

struct bytes {
    const char *name;
    uint8_t *data;
    size_t size;
};

/* The seeds of one target, or its files in tests/fuzz/found. */
struct files {
    struct bytes *all;
    size_t count;
};

/* ---- files ---- */

static void add(struct files *f, const char *name, const void *data, size_t size)
{
    struct bytes *all = realloc(f->all, (f->count + 1) * sizeof *all);
    struct bytes *b;

    if (!all) abort();
    f->all = all;
    b = &all[f->count++];
    b->name = strdup(name);
    b->data = malloc(size + 1);
    if (!b->name || !b->data) abort();
    memcpy(b->data, data, size);
    b->size = size;
}

static void files_free(struct files *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free((char *)(uintptr_t)f->all[i].name);
        free(f->all[i].data);
    }
    free(f->all);
    *f = (struct files){0};
}

static void add_file(struct files *f, const char *path)
{
    const char *slash = strrchr(path, '/');
    uint8_t *data = malloc(SEED_MOST);
    FILE *in = fopen(path, "rb");

    if (data && in) add(f, slash ? slash + 1 : path, data, fread(data, 1, SEED_MOST, in));
    if (in) fclose(in);
    free(data);
}

/* Every file that matches, from the root of the tree. */
static void add_matches(struct files *f, const char *format, const char *target)
{
    const char *slash = strrchr(__FILE__, '/');
    char pattern[512];
    int n = snprintf(pattern, sizeof pattern, "%.*s/../../", (int)(slash - __FILE__), __FILE__);
    glob_t found;

    if (n < 0 || (size_t)n >= sizeof pattern) return;
    snprintf(pattern + n, sizeof pattern - (size_t)n, format, target);
    if (glob(pattern, 0, NULL, &found)) return;
    for (size_t i = 0; i < found.gl_pathc; i++) add_file(f, found.gl_pathv[i]);
    globfree(&found);
}

/* ---- seeds ---- */

/* The entries of the recorded fat binaries that are compressed so, behind two bytes of size. */
static void add_compressed(struct files *out, uint64_t flag)
{
    struct files recorded = {0};

    add_matches(&recorded, "tests/sim/fatbin/*.%s", "fatbin");
    for (size_t i = 0; i < recorded.count; i++) {
        struct fatbin f;
        struct fatbin_entry e;

        if (fatbin_open(&f, recorded.all[i].data, recorded.all[i].size)) continue;
        while (fatbin_next(&f, &e) > 0) {
            uint8_t *data;
            if (!(e.flags & flag) || e.bytes > UINT16_MAX) continue;
            data = malloc(e.stored + 2);
            if (!data) abort();
            data[0] = (uint8_t)e.bytes;
            data[1] = (uint8_t)(e.bytes >> 8);
            memcpy(data + 2, e.data, e.stored);
            add(out, recorded.all[i].name, data, e.stored + 2);
            free(data);
        }
    }
    files_free(&recorded);
}

/* Machine code beside which stands its PTX. */
static void add_cubin(struct files *out)
{
    static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                               ".visible .entry k() { ret; }\n";
    uint8_t image[512];

    add(out, "cubin", image, cubin_make(image, text));
}

/* Two texts that define what the other declares, and a text beside itself. */
static void add_texts(struct files *out)
{
#define JOIN_HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
    static const char pair[] = JOIN_HEAD
        ".extern .func (.param .b32 r) twice(.param .b32 x);\n.extern .global .b32 g[];\n"
        ".visible .entry k() { .reg .b32 %r; .param .b32 a, b; st.param.b32 [a], 4;\n"
        "call (b), twice, (a); ld.param.b32 %r, [b]; st.global.b32 [g], %r; ret; }\n"
        ".func own() { ret; }\n\0" JOIN_HEAD
        ".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r;\n"
        "ld.param.b32 %r, [x]; shl.b32 %r, %r, 1; st.param.b32 [r], %r; ret; }\n"
        ".visible .global .b32 g[2] = {1, 2};\n.func own() { trap; }\n.weak .global .b32 w;\n";
    struct files ptx = {0};

    add(out, "pair", pair, sizeof pair);
    add_matches(&ptx, "tests/fuzz/*.%s", "ptx");
    for (size_t i = 0; i < ptx.count; i++) {
        size_t size = ptx.all[i].size;
        uint8_t *both = malloc(2 * size + 1);
        if (!both) abort();
        memcpy(both, ptx.all[i].data, size);
        both[size] = 0;
        memcpy(both + size + 1, ptx.all[i].data, size);
        add(out, ptx.all[i].name, both, 2 * size + 1);
        free(both);
    }
    files_free(&ptx);
}

/* The notes of the zoo's kernels. */
static void add_notes(struct files *out)
{
    static const char map[] = "//@ run: buf a f16[8,64,128] iota; map t a box 64,32 swizzle 128b "
                              "l2 256b oob nan step 1,2\n";
    struct files zoo = {0};

    add_matches(&zoo, "tests/zoo/*.%s", "ptx");
    for (size_t i = 0; i < zoo.count; i++) {
        char *text = (char *)zoo.all[i].data, *to = text;
        text[zoo.all[i].size] = 0;
        for (char *line = text; line; line = strchr(line, '\n')) {
            size_t length;
            while (*line == '\n') line++;
            length = strcspn(line, "\n");
            if (strncmp(line, "//@ run", 7) != 0) continue;
            memmove(to, line, length);
            to[length] = '\n';
            to += length + 1;
            line += length;
        }
        if (to > text) add(out, zoo.all[i].name, text, (size_t)(to - text));
    }
    files_free(&zoo);
    add(out, "map", map, sizeof map - 1);
}

static void add_maps(struct files *out)
{
    struct tmap t = {.address = 0x10000,
                     .dtype = 6,
                     .rank = 3,
                     .swizzle = 3,
                     .l2 = 2,
                     .dim = {256, 64, 8},
                     .stride = {2, 512, 32768},
                     .box = {64, 8, 2},
                     .element_stride = {1, 1, 1, 1, 1}};
    uint8_t map[128];

    add(out, "tiled", &t, sizeof t);
    tmap_encode(&t, map);
    add(out, "encoded", map, sizeof map);
    t = (struct tmap){.address = 0x10000,
                      .dtype = 7,
                      .rank = 4,
                      .im2col = 1,
                      .channels = 16,
                      .pixels = 64,
                      .lower = {-1, -1},
                      .upper = {-1, -1},
                      .dim = {32, 20, 20, 4},
                      .stride = {4, 128, 2560, 51200},
                      .element_stride = {1, 1, 1, 1, 1}};
    add(out, "im2col", &t, sizeof t);
}

/* Ten bytes, a header whose length stands in byte `at`, and data. */
static void add_headed(struct files *out, const char start[11], int at, const char *header,
                       size_t data)
{
    uint8_t file[512] = {0};
    size_t length = strlen(header);

    memcpy(file, start, 10);
    file[at] = (uint8_t)length;
    snprintf((char *)file + 10, sizeof file - 10, "%s", header);
    add(out, header, file, 10 + length + data);
}

static void add_npy(struct files *out, const char *header, size_t data)
{
    add_headed(out, "\x93NUMPY\1\0\0\0", 8, header, data);
}

/* Eight bytes of length, a header, and data. */
static void add_weights(struct files *out, const char *header, size_t data)
{
    uint8_t file[1024] = {0};
    const size_t length = strlen(header);

    file[0] = (uint8_t)length;
    file[1] = (uint8_t)(length >> 8);
    snprintf((char *)file + 8, sizeof file - 8, "%s", header);
    add(out, header, file, 8 + length + data);
}

/* Behind the name `w`. */
static void add_safetensors(struct files *out, const char *header, size_t data)
{
    add_headed(out, "w\0\0\0\0\0\0\0\0\0", 2, header, data);
}

static struct files seeds_of(const struct fuzz_target *t)
{
    struct files f = {0};

    if (t->run == fuzz_ptx) add_matches(&f, "tests/*/*.%s", t->name);
    if (t->run == fuzz_ptx) add_matches(&f, "tests/driver/nvcc/*.%s", t->name);
    if (t->run == fuzz_join) add_texts(&f);
    if (t->run == fuzz_fatbin) add_matches(&f, "tests/sim/fatbin/*.%s", t->name);
    if (t->run == fuzz_fatbin) add_cubin(&f);
    if (t->run == fuzz_lz4) add_compressed(&f, FATBIN_LZ4);
    if (t->run == fuzz_zstd) add_compressed(&f, FATBIN_ZSTD);
    if (t->run == fuzz_tmap) add_maps(&f);
    if (t->run == fuzz_run) add_notes(&f);
    if (t->run == fuzz_config || t->run == fuzz_tokenizer)
        add_matches(&f, "tools/engine/model/%s.json", t->name);
    if (t->run == fuzz_weights) {
        add_weights(&f, "{\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]}}", 12);
        add_weights(&f,
                    "{\"__metadata__\":{\"format\":\"pt\"},"
                    "\"w\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,4],\"data_offsets\":[0,8]},"
                    "\"w_scale\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[8,16]}}",
                    16);
    }
    if (t->run == fuzz_npy) {
        add_npy(&f, "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }\n", 32);
        add_npy(&f, "{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }\n", 6);
    }
    if (t->run == fuzz_safetensors) {
        add_safetensors(&f,
                        "{\"__metadata__\":{\"format\":\"pt\"},"
                        "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[4,28]},"
                        "\"b\\u00e9\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}",
                        28);
        add_safetensors(&f, "{\"w\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[0,6]}}", 6);
    }
    return f;
}

/* ---- damage ---- */

static size_t damage(struct rng *r, const struct bytes *from, uint8_t *to)
{
    size_t size = from->size;

    memcpy(to, from->data, size);
    for (uint32_t edits = 1 + rng_below(r, 4); edits && size; edits--) {
        size_t at = rng_next(r) % size, some = rng_next(r) % (size - at < 64 ? size - at : 64);
        switch (rng_below(r, 5)) {
        case 0: to[at] ^= (uint8_t)(1U << rng_below(r, 8)); break;
        case 1: to[at] = (uint8_t)rng_next(r); break;
        case 2: to[at] = (uint8_t) "\0\xFF\x7F{}[]();,.<>%-9"[rng_below(r, 18)]; break;
        case 3: /* left out */
            memmove(to + at, to + at + some, size - at - some);
            size -= some;
            break;
        default: memcpy(to + at, from->data + rng_next(r) % (from->size - some), some); break;
        }
    }
    return rng_below(r, 8) ? size : size - size / 3;
}

/* In a child: the file, then `copies` damaged ones. */
static void feed(const struct fuzz_target *t, const struct bytes *b, uint32_t copies, uint64_t seed)
{
    struct rng r = {seed};
    uint8_t *exact;

    t->run(b->data, b->size);
    for (uint32_t i = 0; i < copies; i++) {
        uint8_t *room = malloc(b->size + 1);
        size_t size;
        if (!room) return;
        size = damage(&r, b, room);
        exact = malloc(size ? size : 1); /* so that a sanitiser sees a read behind it */
        if (exact) {
            memcpy(exact, room, size);
            t->run(exact, size);
        }
        free(exact);
        free(room);
    }
}

static void try_file(const struct fuzz_target *t, const struct bytes *b, uint32_t copies)
{
    pid_t child;
    int status = -1;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        feed(t, b, copies, test_seed());
        exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "no process for '%s'", b->name);
    CHECK(status == 0, "'%s' or one of %u damaged copies of it: wait status 0x%x", b->name, copies,
          (unsigned)status);
}

static void try_target(const struct fuzz_target *t)
{
    struct files found = {0}, seeds;

    if (test_case("%s: files that once broke it", t->name)) {
        add_matches(&found, "tests/fuzz/found/%s-*", t->name);
        for (size_t i = 0; i < found.count; i++) try_file(t, &found.all[i], 0);
        files_free(&found);
    }
    if (!test_case("%s: seeds and damaged copies", t->name)) return;
    seeds = seeds_of(t);
    CHECK(seeds.count > 0, "no seeds for %s", t->what);
    for (size_t i = 0; i < seeds.count; i++)
        try_file(t, &seeds.all[i], 1U + (uint32_t)(COPIES / seeds.count));
    files_free(&seeds);
}

/* ---- for libFuzzer ---- */

static bool write_file(const char *dir, const char *target, size_t number, const struct bytes *b)
{
    char path[512];
    FILE *out;
    bool whole;

    snprintf(path, sizeof path, "%s/%s/seed-%zu", dir, target, number);
    out = fopen(path, "wb");
    if (!out) return false;
    whole = fwrite(b->data, 1, b->size, out) == b->size;
    return !fclose(out) && whole;
}

static int write_seeds(const char *dir)
{
    bool good = true;

    for (size_t t = 0; t < fuzz_target_count; t++) {
        struct files seeds = seeds_of(&fuzz_targets[t]);
        char path[512];

        snprintf(path, sizeof path, "%s/%s", dir, fuzz_targets[t].name);
        good = good && (!mkdir(path, 0777) || errno == EEXIST);
        for (size_t i = 0; i < seeds.count && good; i++)
            good = write_file(dir, fuzz_targets[t].name, i, &seeds.all[i]);
        files_free(&seeds);
    }
    return good ? 0 : 2;
}

static int run_files(const char *name, int count, char **paths)
{
    for (size_t t = 0; t < fuzz_target_count; t++) {
        struct files f = {0};

        if (strcmp(fuzz_targets[t].name, name) != 0) continue;
        for (int i = 0; i < count; i++) add_file(&f, paths[i]);
        for (size_t i = 0; i < f.count; i++) fuzz_targets[t].run(f.all[i].data, f.all[i].size);
        files_free(&f);
        return 0;
    }
    fprintf(stderr, "fuzz: no target is named '%s'\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--write")) return write_seeds(argv[2]);
    if (argc >= 3 && !strcmp(argv[1], "--run")) return run_files(argv[2], argc - 3, argv + 3);
    test_begin("fuzz", argc, argv);
    for (size_t i = 0; i < fuzz_target_count; i++) try_target(&fuzz_targets[i]);
    return test_end();
}
