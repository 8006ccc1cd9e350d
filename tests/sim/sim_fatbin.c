/*
 * Fat binaries and their two compressions: what CUDA's own tool makes in every mode, damaged input,
 * and input that claims too much. Files in tests/sim/fatbin/ are recorded; README.md there says how.
 */
#include "lib/cubin.h"
#include "lib/harness.h"

#include "ptx/cubin.h"
#include "ptx/fatbin.h"
#include "ptx/lz4.h"
#include "ptx/module.h"
#include "ptx/parse.h"
#include "ptx/zstd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 1 << 16, ENTRIES_MOST = 4, GUARD = 64, GUARD_BYTE = 0xA5 };

struct file {
    uint8_t bytes[FILE_MOST];
    size_t size;
};

/* ---- helpers ---- */

/* A recorded file; it lies beside this source. */
static bool read_file(struct file *f, const char *name)
{
    char path[512];
    const char *slash = strrchr(__FILE__, '/');
    FILE *in;

    snprintf(path, sizeof path, "%.*s/fatbin/%s.fatbin", (int)(slash - __FILE__), __FILE__, name);
    in = fopen(path, "rb");
    CHECK(in != NULL, "%s: cannot be opened", path);
    if (!in) return false;
    f->size = fread(f->bytes, 1, sizeof f->bytes, in);
    fclose(in);
    return f->size > 0 && f->size < sizeof f->bytes;
}

static size_t entries_of(const struct file *f, struct fatbin_entry out[ENTRIES_MOST])
{
    struct fatbin fat;
    size_t count = 0;
    int rc = -1;

    if (!fatbin_open(&fat, f->bytes, f->size))
        while (count < ENTRIES_MOST && (rc = fatbin_next(&fat, &out[count])) > 0) count++;
    CHECK_INT(rc, 0);
    return count;
}

/* A copy that ends where its bytes do, so that a sanitiser sees a read behind them. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (copy && size) memcpy(copy, bytes, size);
    return copy;
}

typedef int decoder(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

static decoder *decoder_of(const struct fatbin_entry *e)
{
    return e->flags & FATBIN_LZ4 ? lz4_decode : zstd_decode;
}

/* Decodes into a buffer with guard bytes on both sides, which must be untouched after. */
static int decode_guarded(decoder *decode, const uint8_t *in, size_t size, size_t out_size)
{
    uint8_t *out = malloc(out_size + 2 * GUARD), *copy = exact_copy(in, size);
    int rc, touched = 0;

    if (!out || !copy) abort();
    memset(out, GUARD_BYTE, out_size + 2 * GUARD);
    rc = decode(copy, size, out + GUARD, out_size);
    for (size_t i = 0; i < GUARD; i++)
        touched += out[i] != GUARD_BYTE || out[GUARD + out_size + i] != GUARD_BYTE;
    CHECK_INT(touched, 0);
    free(copy);
    free(out);
    return rc;
}

/* ---- what CUDA's tool makes ---- */

static void test_mode(const char *mode, uint64_t flag)
{
    static struct file plain, packed;
    struct fatbin_entry want[ENTRIES_MOST] = {{0}}, got[ENTRIES_MOST] = {{0}};
    char name[32], *text = NULL;

    if (!test_case("--compress-mode=%s", mode)) return;
    snprintf(name, sizeof name, "small_%s", mode);
    if (!read_file(&plain, "small_none") || !read_file(&packed, name)) return;
    CHECK_INT(entries_of(&plain, want), 2);
    CHECK_INT(entries_of(&packed, got), 2);
    if (test_case_failures()) return;
    for (int i = 0; i < 2; i++) {
        CHECK_INT(got[i].kind, i == 0 ? FATBIN_ELF : FATBIN_PTX);
        CHECK_INT(got[i].arch, 90);
        CHECK_INT(got[i].suffix, 'a');
        CHECK_INT(got[i].flags & (FATBIN_LZ4 | FATBIN_ZSTD), flag);
        CHECK_INT(want[i].flags & (FATBIN_LZ4 | FATBIN_ZSTD), 0);
        CHECK_INT(fatbin_unpack(&got[i], &text), 0);
        if (!text) return;
        /* plain data is padded to a multiple of 8 */
        CHECK(got[i].bytes <= want[i].bytes && want[i].bytes - got[i].bytes < 8,
              "entry %d: %zu bytes, plain %zu", i, got[i].bytes, want[i].bytes);
        CHECK(want[i].data && !memcmp(text, want[i].data, got[i].bytes),
              "entry %d differs from the plain one", i);
        CHECK_INT(text[got[i].bytes], 0);
        free(text);
        text = NULL;
    }
}

/* A text of several zstd blocks: both decoders agree on it, and the front end reads it. */
static void test_large(void)
{
    static struct file files[2];
    struct fatbin_entry e[ENTRIES_MOST] = {{0}};
    struct ptx_module *module = NULL;
    struct ptx_diag diag = {""};
    char *texts[2] = {NULL, NULL};

    if (!test_case("a large text, as an LZ4 block and as a zstd frame")) return;
    for (int i = 0; i < 2; i++)
        if (read_file(&files[i], i ? "large_size" : "large_speed") && entries_of(&files[i], e) == 1)
            CHECK_INT(fatbin_unpack(e, &texts[i]), 0);
    if (texts[0] && texts[1]) {
        CHECK(strlen(texts[0]) > 128 * 1024, "only %zu bytes", strlen(texts[0]));
        CHECK(!strcmp(texts[0], texts[1]), "LZ4 and zstd give different texts");
        CHECK(!ptx_parse(texts[1], strlen(texts[1]), &module, &diag), "%s", diag.text);
    }
    if (module) {
        CHECK_INT(module->entry_count, 1);
        CHECK_TEXT(module->entries[0].name, "hewn_gemm_bf16_f32");
    }
    ptx_module_free(module);
    free(texts[0]);
    free(texts[1]);
}

/* ---- damage ---- */

static const char *const damaged[] = {"small_speed", "small_balance", "small_size"};

static void test_truncated(const char *name)
{
    static struct file f;
    struct fatbin_entry e[ENTRIES_MOST] = {{0}};
    struct fatbin fat;
    size_t count;

    if (!test_case("%s: cut short", name)) return;
    if (!read_file(&f, name)) return;
    for (size_t size = 0; size < f.size; size++)
        CHECK(fatbin_open(&fat, f.bytes, size), "%zu of %zu bytes are taken", size, f.size);
    count = entries_of(&f, e);
    for (size_t i = 0; i < count; i++)
        for (size_t size = 0; size < e[i].stored; size += size < 64 ? 1 : 29)
            CHECK(decode_guarded(decoder_of(&e[i]), e[i].data, size, e[i].bytes),
                  "entry %zu: %zu of %zu bytes decode", i, size, e[i].stored);
}

/* The container ends within an entry: the walk must say so, or end before it. */
static void test_cut_entries(const char *name)
{
    static struct file f;
    struct fatbin fat;
    struct fatbin_entry e;

    if (!test_case("%s: entries that do not fit", name)) return;
    if (!read_file(&f, name)) return;
    for (size_t size = FATBIN_HEADER_BYTES; size < f.size; size++) {
        uint64_t bytes = size - FATBIN_HEADER_BYTES;
        uint8_t *copy = exact_copy(f.bytes, size);
        int walked = 0;

        memcpy(copy + 8, &bytes, sizeof bytes);
        CHECK_INT(fatbin_open(&fat, copy, size), 0);
        while (fatbin_next(&fat, &e) > 0) walked++;
        CHECK(walked < 2, "%zu bytes hold both entries", size);
        free(copy);
    }
}

/* A few bits changed: whatever comes of it, nothing outside is touched, no limit passed. */
static void flip(const struct file *f, struct rng *r)
{
    uint8_t *copy = exact_copy(f->bytes, f->size);
    struct fatbin fat;
    struct fatbin_entry e;
    char *text = NULL;

    for (uint32_t flips = 1 + rng_below(r, 4); flips > 0; flips--)
        copy[rng_below(r, f->size > 512 && rng_below(r, 2) ? 512 : (uint32_t)f->size)] ^=
            (uint8_t)(1 << rng_below(r, 8)); /* half of them where the tables are */
    if (!fatbin_open(&fat, copy, f->size))
        while (fatbin_next(&fat, &e) > 0) {
            if (e.bytes < 1 << 20) decode_guarded(decoder_of(&e), e.data, e.stored, e.bytes);
            if (fatbin_unpack(&e, &text)) continue;
            CHECK(e.bytes <= FATBIN_MOST && e.bytes <= e.stored * FATBIN_RATIO_MOST,
                  "%zu bytes of %zu", e.bytes, e.stored);
            free(text);
        }
    free(copy);
}

static void test_flipped(const char *name)
{
    static struct file f;
    struct rng r = {test_seed()};

    if (!test_case("%s: bits flipped", name)) return;
    if (!read_file(&f, name)) return;
    for (int i = 0; i < 1500; i++) flip(&f, &r);
}

/* ---- claims ---- */

static void test_claims(void)
{
    static uint8_t data[100];
    struct fatbin_entry e = {.kind = FATBIN_PTX, .data = data, .stored = sizeof data};
    char *text = NULL;

    if (!test_case("more than 256 MiB, or than 1000 times the input")) return;
    e.flags = FATBIN_ZSTD;
    e.bytes = sizeof data * FATBIN_RATIO_MOST + 1;
    CHECK_INT(fatbin_unpack(&e, &text), FATBIN_TOO_LARGE);
    e.bytes = sizeof data * FATBIN_RATIO_MOST; /* may be tried, but is no frame */
    CHECK_INT(fatbin_unpack(&e, &text), FATBIN_MALFORMED);
    e.stored = FATBIN_MOST; /* refused before any of it is read */
    e.bytes = FATBIN_MOST + 1;
    CHECK_INT(fatbin_unpack(&e, &text), FATBIN_TOO_LARGE);
    e.bytes = SIZE_MAX;
    CHECK_INT(fatbin_unpack(&e, &text), FATBIN_TOO_LARGE);
    e.flags = 0;
    e.stored = SIZE_MAX;
    CHECK_INT(fatbin_unpack(&e, &text), FATBIN_TOO_LARGE);
}

/* Blocks of one repeated byte: 4 bytes become 128 KiB each, more than the frame says. */
static void test_bomb(void)
{
    uint8_t frame[6 + 64 * 4] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58};
    size_t size = 6;

    if (!test_case("a frame that becomes more than it may")) return;
    for (int i = 0; i < 64; i++, size += 4) {
        uint32_t head = (128U * 1024 << 3) | 1 << 1 | (i == 63);
        memcpy(frame + size,
               (uint8_t[]){(uint8_t)head, (uint8_t)(head >> 8), (uint8_t)(head >> 16), 7}, 4);
    }
    CHECK_INT(decode_guarded(zstd_decode, frame, size, 64 * 128 * 1024), 0);
    CHECK_INT(decode_guarded(zstd_decode, frame, size, 64 * 128 * 1024 - 1), -1);
    CHECK_INT(decode_guarded(zstd_decode, frame, size, 1000), -1);
    CHECK_INT(decode_guarded(zstd_decode, frame, size, 64 * 128 * 1024 + 1), -1);
}

/* ---- by hand ---- */

struct vector {
    const char *name;
    decoder *decode;
    const char *in;
    size_t in_size;
    const char *want; /* NULL: refused */
    size_t want_size;
};

#define BYTES(text) text, sizeof(text) - 1
#define MAGIC       "\x28\xB5\x2F\xFD"
#define ONES        "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"

static const struct vector vectors[] = {
    {"lz4: literals alone", lz4_decode,
     BYTES("\x30"
           "abc"),
     BYTES("abc")},
    {"lz4: a match over itself", lz4_decode,
     BYTES("\x15"
           "a\x01\x00\x10"
           "b"),
     BYTES("aaaaaaaaaab")},
    {"lz4: offset 0", lz4_decode,
     BYTES("\x15"
           "a\x00\x00\x10"
           "b"),
     NULL, 11},
    {"lz4: offset before the start", lz4_decode,
     BYTES("\x15"
           "a\x02\x00\x10"
           "b"),
     NULL, 11},
    {"lz4: ends with a match", lz4_decode,
     BYTES("\x15"
           "a\x01\x00"),
     NULL, 10},
    {"lz4: length without end", lz4_decode, BYTES("\xF0\xFF\xFF"), NULL, 600},
    {"lz4: nothing", lz4_decode, BYTES(""), NULL, 0},
    {"lz4: one token", lz4_decode, BYTES("\x00"), BYTES("")},
    {"zstd: a raw block", zstd_decode,
     BYTES(MAGIC "\x20\x03\x19\x00\x00"
                 "abc"),
     BYTES("abc")},
    {"zstd: a repeated byte", zstd_decode,
     BYTES(MAGIC "\x20\x04\x23\x00\x00"
                 "z"),
     BYTES("zzzz")},
    {"zstd: two frames, one skipped between", zstd_decode,
     BYTES(MAGIC "\x20\x01\x09\x00\x00"
                 "a"
                 "\x53\x2A\x4D\x18\x02\x00\x00\x00??" MAGIC "\x20\x01\x09\x00\x00"
                 "b"),
     BYTES("ab")},
    {"zstd: a checksum is passed over", zstd_decode,
     BYTES(MAGIC "\x24\x01\x09\x00\x00"
                 "a"
                 "????"),
     BYTES("a")},
    {"zstd: a checksum cut short", zstd_decode,
     BYTES(MAGIC "\x24\x01\x09\x00\x00"
                 "a"
                 "???"),
     NULL, 1},
    {"zstd: content size of another length", zstd_decode,
     BYTES(MAGIC "\x20\x02\x19\x00\x00"
                 "abc"),
     NULL, 3},
    {"zstd: a dictionary", zstd_decode,
     BYTES(MAGIC "\x21\x05\x01\x09\x00\x00"
                 "a"),
     NULL, 1},
    {"zstd: the reserved bit", zstd_decode,
     BYTES(MAGIC "\x28\x01\x09\x00\x00"
                 "a"),
     NULL, 1},
    {"zstd: the reserved block type", zstd_decode,
     BYTES(MAGIC "\x20\x01\x0F\x00\x00"
                 "a"),
     NULL, 1},
    {"zstd: no last block", zstd_decode,
     BYTES(MAGIC "\x20\x01\x08\x00\x00"
                 "a"),
     NULL, 1},
    {"zstd: another magic number", zstd_decode,
     BYTES("\x28\xB5\x2F\xFE\x20\x01\x09\x00\x00"
           "a"),
     NULL, 1},
    {"zstd: bytes behind the frame", zstd_decode,
     BYTES(MAGIC "\x20\x01\x09\x00\x00"
                 "aX"),
     NULL, 1},
    {"zstd: one literal of one bit", zstd_decode,
     BYTES(MAGIC "\x20\x01\x3D\x00\x00\x12\xC0\x00\x80\x10\x02\x00"), BYTES("\x00")},
    {"zstd: a bit left over", zstd_decode,
     BYTES(MAGIC "\x20\x01\x3D\x00\x00\x12\xC0\x00\x80\x10\x04\x00"), NULL, 1},
    {"zstd: a bit too few", zstd_decode,
     BYTES(MAGIC "\x20\x01\x3D\x00\x00\x12\xC0\x00\x80\x10\x01\x00"), NULL, 1},
    {"zstd: a weight above 11", zstd_decode,
     BYTES(MAGIC "\x20\x01\x3D\x00\x00\x12\xC0\x00\x80\xF0\x02\x00"), NULL, 1},
    {"zstd: a distribution of more symbols than there are", zstd_decode,
     BYTES(MAGIC "\x20\x01\x35\x01\x00\x12\x80\x08\x20\x10\xFE" ONES ONES ONES "\x00\x00"), NULL,
     1},
    {"zstd: a tree of an earlier block, where there is none", zstd_decode,
     BYTES(MAGIC "\x20\x01\x25\x00\x00\x13\x40\x00\x01"), NULL, 1},
    {"zstd: tables of an earlier block, where there are none", zstd_decode,
     BYTES(MAGIC "\x20\x04\x2D\x00\x00\x08"
                 "a\x01\xFC\x01"),
     NULL, 4},
};

static void test_vector(const struct vector *v)
{
    uint8_t *copy, out[1024];

    if (!test_case("%s", v->name)) return;
    copy = exact_copy((const uint8_t *)v->in, v->in_size);
    if (v->want) {
        CHECK_INT(v->decode(copy, v->in_size, out, v->want_size), 0);
        CHECK(!memcmp(out, v->want, v->want_size), "other bytes");
    } else {
        CHECK_INT(v->decode(copy, v->in_size, out, v->want_size), -1);
    }
    free(copy);
}

/* ---- cubins ---- */

static void test_cubin(void)
{
    static const char ptx[] = "\n.version 8.0\n.target sm_90\n";
    uint8_t image[512];
    size_t size = cubin_make(image, ptx), taken = 0;
    char *text = NULL;

    if (!test_case("the PTX in a cubin")) return;
    CHECK_INT(cubin_ptx((const char *)image, size, &text), CUBIN_OK);
    CHECK(text && !memcmp(text, ptx, sizeof ptx - 1), "another text: %s", text ? text : "none");
    free(text);
    text = NULL;
    CHECK_INT(cubin_ptx((const char *)image, SIZE_MAX, &text), CUBIN_OK);
    free(text);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = exact_copy(image, cut);
        if (cubin_ptx((const char *)copy, cut, &text) == CUBIN_OK) {
            taken++;
            free(text);
        }
        free(copy);
    }
    CHECK_INT(taken, 0);
    image[CUBIN_HEAD + 19] ^= 1; /* the section has another name */
    CHECK_INT(cubin_ptx((const char *)image, size, &text), CUBIN_NO_PTX);
}

/* Sections of an image without PTX: names, the code of k and of what no PTX can name, symbols, their names, and where the
 * variables v (8 bytes), w (no bytes), f (a function) and $s (the compiler's own) stand. */
enum {
    NAMES_AT = 64,
    STRINGS_AT = 160,
    SYMBOLS_AT = 192,
    TABLE_AT = 296,
    IMAGE_BYTES = TABLE_AT + 7 * 64
};

static void put_section(uint8_t *image, int index, uint64_t name, uint64_t kind, uint64_t at,
                        uint64_t bytes)
{
    uint8_t *s = image + TABLE_AT + index * 64;

    cubin_le(s, name, 4);
    cubin_le(s + 4, kind, 4);
    cubin_le(s + 24, at, 8);
    cubin_le(s + 32, bytes, 8);
}

static void put_symbol(uint8_t *image, int index, uint64_t name, uint64_t kind, uint64_t bytes)
{
    uint8_t *s = image + SYMBOLS_AT + index * 24;

    cubin_le(s, name, 4);
    cubin_le(s + 4, 0x10 | kind, 1);
    cubin_le(s + 6, 6, 2);
    cubin_le(s + 16, bytes, 8);
}

static void make_without_ptx(uint8_t image[IMAGE_BYTES])
{
    static const uint8_t ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7};
    static const char names[96] = "\0.shstrtab\0.text.k\0.text.a b\0.symtab\0.strtab\0.nv.global";

    memset(image, 0, IMAGE_BYTES);
    memcpy(image, ident, sizeof ident);
    cubin_le(image + 18, 190, 2);
    cubin_le(image + 40, TABLE_AT, 8);
    cubin_le(image + 58, 64, 2);
    cubin_le(image + 60, 7, 2);
    cubin_le(image + 62, 1, 2);
    memcpy(image + NAMES_AT, names, sizeof names);
    memcpy(image + STRINGS_AT, "\0v\0w\0f\0$s", 10);
    put_symbol(image, 0, 1, 1, 8);
    put_symbol(image, 1, 3, 1, 0);
    put_symbol(image, 2, 5, 2, 8);
    put_symbol(image, 3, 7, 1, 8);
    put_section(image, 1, 1, 3, NAMES_AT, sizeof names);
    put_section(image, 2, 11, 1, NAMES_AT, 4);
    put_section(image, 3, 19, 1, NAMES_AT, 4);
    put_section(image, 4, 29, 2, SYMBOLS_AT, 4 * 24);
    cubin_le(image + TABLE_AT + 4 * 64 + 40, 5, 4); /* the names of the symbols */
    put_section(image, 5, 37, 3, STRINGS_AT, 10);
    put_section(image, 6, 45, 8, 0, 0);
}

static void test_cubin_names(void)
{
    static const char want[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                               ".visible .entry k() { trap; }\n"
                               ".visible .global .align 16 .b8 v[8];\n";
    uint8_t image[IMAGE_BYTES];
    char *text = NULL;

    if (!test_case("the names in a cubin without PTX")) return;
    make_without_ptx(image);
    CHECK_INT(cubin_ptx((const char *)image, sizeof image, &text), CUBIN_NO_PTX);
    CHECK_INT(cubin_names((const char *)image, sizeof image, &text), CUBIN_OK);
    CHECK(text && !strcmp(text, want), "another text: %s", text ? text : "none");
    free(text);
    for (size_t at = 0; at < sizeof image; at++) {
        uint8_t *copy;
        image[at] ^= 0xFF;
        copy = exact_copy(image, sizeof image);
        image[at] ^= 0xFF;
        text = NULL;
        if (cubin_names((const char *)copy, sizeof image, &text) == CUBIN_OK)
            CHECK(text && strlen(text) < sizeof image + (1 << 10), "a longer text at %zu", at);
        free(text);
        free(copy);
    }
}

static void test_cubin_flipped(void)
{
    static const char ptx[] = ".version 8.0\n.target sm_90\n";
    struct rng r = {test_seed()};
    uint8_t image[512];
    size_t size = cubin_make(image, ptx);
    char *text = NULL;

    if (!test_case("a cubin, bits flipped")) return;
    for (int i = 0; i < 4000; i++) {
        uint8_t *copy = exact_copy(image, size);
        for (int k = 0; k < 3; k++) {
            size_t bit = rng_next(&r) % (8 * size);
            copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
        if (cubin_ptx((const char *)copy, size, &text) == CUBIN_OK) {
            CHECK(strlen(text) <= size, "the text is longer than the image");
            free(text);
        }
        free(copy);
    }
}

int main(int argc, char **argv)
{
    test_begin("sim_fatbin", argc, argv);
    test_mode("speed", FATBIN_LZ4);
    test_mode("balance", FATBIN_ZSTD);
    test_mode("size", FATBIN_ZSTD);
    test_large();
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        test_truncated(damaged[i]);
        test_cut_entries(damaged[i]);
        test_flipped(damaged[i]);
    }
    test_flipped("large_speed");
    test_flipped("large_size");
    test_claims();
    test_cubin();
    test_cubin_names();
    test_cubin_flipped();
    test_bomb();
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) test_vector(&vectors[i]);
    return test_end();
}
