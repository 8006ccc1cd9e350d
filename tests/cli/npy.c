/* .npy files that lie, end early, or hold what a matrix is not: each refused by a sentence that names
 * file, value and rule; and what is written reads back. */
#include "lib/harness.h"
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[64];
static const uint64_t ones[2] = {1, 1};

/* A version 1.0 file with this header text (padded as NumPy does) and `data` bytes behind it. */
static void put(const char *header, size_t data)
{
    unsigned char start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0, 0};
    FILE *f = fopen(path, "wb");
    size_t length = strlen(header) + 1;
    start[8] = (unsigned char)length;
    start[9] = (unsigned char)(length >> 8);
    if (!f) return;
    fwrite(start, 1, sizeof start, f);
    fwrite(header, 1, length - 1, f);
    fputc('\n', f);
    for (size_t i = 0; i < data; i++) fputc((int)(i * 37 & 255), f);
    fclose(f);
}

static void refused(const char *name, const char *header, size_t data, const char *rule)
{
    struct npy x;
    char why[512] = "";
    if (!test_case("%s", name)) return;
    put(header, data);
    CHECK(npy_read(path, 2, &x, why, sizeof why) == -1, "was accepted");
    CHECK_TEXT(why, rule);
    CHECK_TEXT(why, path);
    CHECK(x.data == NULL, "data left behind");
}

#define DICT(descr, order, shape) \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"

static void test_refusals(void)
{
    refused("more rows than data", DICT("<f4", "False", "(4, 5)"), 76, "the header says 80 bytes");
    refused("less than the file holds", DICT("<f4", "False", "(4, 5)"), 84, "the file has 84");
    refused("rows beyond all memory", DICT("<f4", "False", "(1099511627776, 1099511627776)"), 8,
            "too many elements");
    refused("a row count above 2^40", DICT("<f4", "False", "(99999999999999999999, 1)"), 8,
            "outside 0 … 2^40");
    refused("negative extent", DICT("<f4", "False", "(-4, 5)"), 80, "outside 0 … 2^40");
    refused("no rows", DICT("<f4", "False", "(0, 5)"), 0, "at least 1");
    refused("a vector", DICT("<f4", "False", "(20,)"), 80, "1 dimensions, a matrix has 2");
    refused("a scalar", DICT("<f4", "False", "()"), 4, "0 dimensions");
    refused("three dimensions", DICT("<f4", "False", "(2, 2, 5)"), 80, "3 dimensions");
    refused("words for numbers", DICT("<f4", "False", "(two, 5)"), 40, "not a number");
    refused("float64", DICT("<f8", "False", "(4, 5)"), 160, "neither '<f4' nor '<f2'");
    refused("big-endian", DICT(">f4", "False", "(4, 5)"), 80, "neither '<f4' nor '<f2'");
    refused("integers", DICT("<i4", "False", "(4, 5)"), 80, "neither '<f4' nor '<f2'");
    refused("column order", DICT("<f4", "True", "(4, 5)"), 80, "fortran_order must be False");
    refused("no shape", "{'descr': '<f4', 'fortran_order': False, }", 80, "no 'shape'");
    refused("no descr", "{'fortran_order': False, 'shape': (4, 5), }", 80, "no 'descr'");
}

static void test_broken_files(void)
{
    struct npy x;
    char why[512] = "";
    if (test_case("absent file")) {
        CHECK_INT(npy_read("/nonexistent/x.npy", 2, &x, why, sizeof why), -1);
        CHECK_TEXT(why, "No such file");
    }
    if (test_case("not a .npy file")) {
        FILE *f = fopen(path, "wb");
        if (f) fputs("PK\003\004 something else entirely", f), fclose(f);
        CHECK_INT(npy_read(path, 2, &x, why, sizeof why), -1);
        CHECK_TEXT(why, "not a .npy file");
    }
    if (test_case("header cut short")) {
        put(DICT("<f4", "False", "(4, 5)"), 80);
        CHECK_INT(truncate(path, 40), 0);
        CHECK_INT(npy_read(path, 2, &x, why, sizeof why), -1);
        CHECK_TEXT(why, "ends inside its header");
    }
}

static void test_round_trip(void)
{
    static const int types[] = {HEWN_F32, HEWN_F16};
    static const uint64_t shape[2] = {5, 7};
    for (size_t i = 0; i < 2; i++) {
        float data[35];
        struct npy x = {0};
        char why[512] = "";
        if (!test_case("write and read %s", hewn_dtype_name(types[i]))) continue;
        for (int j = 0; j < 35; j++) data[j] = (float)j * 1.5F;
        CHECK_INT(npy_write(path, types[i], 2, shape, data, why, sizeof why), 0);
        CHECK(npy_read(path, 2, &x, why, sizeof why) == 0, "%s", why);
        CHECK(x.dim[0] == 5 && x.dim[1] == 7 && x.dtype == types[i], "shape or type changed");
        CHECK(x.data && !memcmp(x.data, data, 35 * hewn_dtype_size(types[i])), "data changed");
        npy_free(&x);
    }
    if (test_case("a link is written through, not replaced")) {
        char other[96], why[512] = "";
        float one = 1;
        struct npy x = {0};
        struct stat st;
        snprintf(other, sizeof other, "%s.link", path);
        CHECK_INT(symlink(path, other), 0);
        CHECK_INT(npy_write(other, HEWN_F32, 2, ones, &one, why, sizeof why), 0);
        CHECK(lstat(other, &st) == 0 && S_ISLNK(st.st_mode), "the link is gone");
        CHECK(npy_read(path, 2, &x, why, sizeof why) == 0, "%s", why);
        npy_free(&x);
        unlink(other);
    }
    if (test_case("write where no folder is")) {
        char why[512] = "";
        float one = 1;
        CHECK_INT(npy_write("/nonexistent/x.npy", HEWN_F32, 2, ones, &one, why, sizeof why), -1);
        CHECK_TEXT(why, "/nonexistent/x.npy");
    }
}

static void test_four_dimensions(void)
{
    static const int types[] = {HEWN_F32, HEWN_F16, HEWN_BF16};
    static const uint64_t shape[4] = {2, 3, 5, 8};
    struct npy x;
    char why[512] = "";
    for (size_t i = 0; i < 3; i++) {
        unsigned char data[2 * 3 * 5 * 8 * 4];
        size_t bytes = (size_t)2 * 3 * 5 * 8 * hewn_dtype_size(types[i]);
        if (!test_case("write and read [2,3,5,8] of %s", hewn_dtype_name(types[i]))) continue;
        for (size_t j = 0; j < sizeof data; j++) data[j] = (unsigned char)(j * 29);
        CHECK_INT(npy_write(path, types[i], 4, shape, data, why, sizeof why), 0);
        if (types[i] == HEWN_BF16) { /* NumPy has no such type: written, never read */
            CHECK_INT(npy_read(path, 4, &x, why, sizeof why), -1);
            CHECK_TEXT(why, "neither '<f4' nor '<f2'");
            continue;
        }
        CHECK(npy_read(path, 4, &x, why, sizeof why) == 0, "%s", why);
        CHECK(x.rank == 4 && !memcmp(x.dim, shape, sizeof shape) && x.dtype == types[i],
              "shape or type changed");
        CHECK(x.data && !memcmp(x.data, data, bytes), "data changed");
        npy_free(&x);
    }
    if (test_case("a matrix where [B,S,H,D] is wanted")) {
        put(DICT("<f4", "False", "(4, 5)"), 80);
        CHECK_INT(npy_read(path, 4, &x, why, sizeof why), -1);
        CHECK_TEXT(why, "2 dimensions, [B,S,H,D] has 4");
    }
    if (test_case("five dimensions where [B,S,H,D] is wanted")) {
        put(DICT("<f4", "False", "(1, 1, 1, 4, 5)"), 80);
        CHECK_INT(npy_read(path, 4, &x, why, sizeof why), -1);
        CHECK_TEXT(why, "5 dimensions, [B,S,H,D] has 4");
    }
    if (test_case("an empty dimension of four")) {
        put(DICT("<f2", "False", "(1, 0, 4, 5)"), 0);
        CHECK_INT(npy_read(path, 4, &x, why, sizeof why), -1);
        CHECK_TEXT(why, "shape (1, 0, 4, 5): each dimension must be at least 1");
    }
    if (test_case("a product of four beyond all memory")) {
        put(DICT("<f2", "False", "(65536, 65536, 65536, 65536)"), 8);
        CHECK_INT(npy_read(path, 4, &x, why, sizeof why), -1);
        CHECK_TEXT(why, "too many elements");
    }
    if (test_case("a vector")) {
        put(DICT("<f4", "False", "(5,)"), 20);
        CHECK(npy_read(path, 1, &x, why, sizeof why) == 0, "%s", why);
        CHECK(x.rank == 1 && x.dim[0] == 5, "shape changed");
        npy_free(&x);
    }
}

int main(int argc, char **argv)
{
    int fd;
    test_begin("npy", argc, argv);
    strcpy(path, "/tmp/hewn-npy-XXXXXX");
    fd = mkstemp(path);
    if (fd >= 0) close(fd);
    test_refusals();
    test_broken_files();
    test_round_trip();
    test_four_dimensions();
    unlink(path);
    return test_end();
}
