/* .safetensors files: what is right is read; what lies, ends early or is no JSON is refused by a sentence
 * that names file, place and rule; and thousands of damaged files never do more than that. */
#include "lib/harness.h"
#include "safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void put(const char *header, uint64_t length, size_t written, size_t data)
{
    FILE *f = fopen(path, "wb");
    if (!f) return;
    for (int i = 0; i < 8; i++) fputc((int)(length >> 8 * i & 255), f);
    fwrite(header, 1, written, f);
    for (size_t i = 0; i < data; i++) fputc((int)(i * 37 & 255), f);
    fclose(f);
}

/* A file with this header and `data` bytes (i * 37 % 256) behind it. */
static void put_file(const char *header, size_t data)
{
    put(header, strlen(header), strlen(header), data);
}

static void refused_as(const char *name, const char *rule)
{
    struct npy x;
    char why[512] = "";
    CHECK(safetensors_read(path, name, 4, &x, why, sizeof why) == -1, "was accepted");
    CHECK_TEXT(why, rule);
    CHECK_TEXT(why, path);
    CHECK(x.data == NULL, "data left behind");
}

static void refused(const char *what, const char *header, size_t data, const char *rule)
{
    if (!test_case("%s", what)) return;
    put_file(header, data);
    refused_as("q", rule);
}

#define TENSOR(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define Q TENSOR("q", "F16", "[1,2,3,4]", "[0,48]")
#define K TENSOR("k", "F32", "[2]", "[48,56]")

static void test_syntax(void)
{
    refused("no object", "[]", 0, "header byte 0 is 0x5b where '{' should stand");
    refused("a blank first", " {" Q "}", 48, "header byte 0 is 0x20 where '{'");
    refused("never closed", "{" Q, 48, "the header ends where ',' or '}' should stand");
    refused("a comma too many", "{" Q ",}", 48, "where a string should stand");
    refused("no comma", "{" Q " " K "}", 56, "where ',' or '}' should stand");
    refused("text behind it", "{" Q "}x", 48, "where nothing but blanks should stand");
    refused("a colon missing", "{\"q\" {}}", 0, "where ':' should stand");
    refused("a tensor that is a number", "{\"q\":1}", 0, "where a tensor's object should stand");
    refused("an empty tensor", "{\"q\":{}}", 0, "where a string should stand");
    refused("a negative offset", "{" TENSOR("q", "F16", "[1,2,3,4]", "[-1,48]") "}", 48,
            "where a natural number should stand");
    refused("a fraction", "{" TENSOR("q", "F16", "[1,2,3,4.5]", "[0,48]") "}", 48,
            "where ',' or ']' should stand");
    refused("a leading zero", "{" TENSOR("q", "F16", "[1,2,3,04]", "[0,48]") "}", 48,
            "where a natural number should stand");
    refused("a number beyond 2^50", "{" TENSOR("q", "F16", "[99999999999999999999]", "[0,48]") "}",
            48, "a number above 2^50");
    refused("nine dimensions", "{" TENSOR("q", "F16", "[1,1,1,1,1,1,1,1,1]", "[0,2]") "}", 2,
            "more than 8 numbers");
    refused("three offsets", "{" TENSOR("q", "F16", "[1,2,3,4]", "[0,48,49]") "}", 48,
            "more than 2 numbers");
    refused("one offset", "{" TENSOR("q", "F16", "[1,2,3,4]", "[48]") "}", 48,
            "data_offsets holds 1 numbers");
    refused("an unknown escape", "{\"\\q\":{}}", 0, "where an escape should stand");
    refused("half a surrogate pair", "{\"\\ud800\":{}}", 0, "the other half of a surrogate pair");
    refused("a low surrogate alone", "{\"\\udc00\":{}}", 0, "the four digits of a character");
    refused("a NUL in a name", "{\"q\\u0000\":{}}", 0, "the four digits of a character");
    refused("a control character", "{\"q\n\":{}}", 0, "0x0a where a character of UTF-8");
    refused("broken UTF-8", "{\"\xC3(\":{}}", 0, "0xc3 where a character of UTF-8");
    refused("overlong UTF-8", "{\"\xC0\xAF\":{}}", 0, "0xc0 where a character of UTF-8");
    refused("metadata that is a list", "{\"__metadata__\":[]}", 0, "the object of __metadata__");
    refused("metadata of numbers", "{\"__metadata__\":{\"a\":1}}", 0,
            "where a string should stand");
}

static void test_meaning(void)
{
    refused("no dtype", "{\"q\":{\"shape\":[1],\"data_offsets\":[0,2]}}", 2, "'q' has no dtype");
    refused("no shape", "{\"q\":{\"dtype\":\"F16\",\"data_offsets\":[0,2]}}", 2,
            "'q' has no shape");
    refused("no offsets", "{\"q\":{\"dtype\":\"F16\",\"shape\":[1]}}", 2,
            "'q' has no data_offsets");
    refused("a member of another format", "{\"q\":{\"dtype\":\"F16\",\"strides\":[1]}}", 2,
            "'strides' is none of dtype, shape, data_offsets");
    refused("a member twice", "{\"q\":{\"dtype\":\"F16\",\"dtype\":\"F16\"}}", 2, "dtype twice");
    refused("a dtype of forty letters",
            "{" TENSOR("q", "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "[1]", "[0,2]") "}", 2,
            "is unknown");
    refused("a name twice", "{" Q "," TENSOR("q", "F16", "[1]", "[48,50]") "}", 50,
            "'q' is described twice");
    refused("fewer bytes than the shape", "{" TENSOR("q", "F16", "[1,2,3,5]", "[0,48]") "}", 48,
            "F16 of shape (1, 2, 3, 5) is not 48 bytes");
    refused("a shape beyond all memory",
            "{" TENSOR("q", "F16", "[1099511627776,1099511627776,4,4]", "[0,48]") "}", 48,
            "is not 48 bytes");
    refused("offsets beyond the data", "{" Q "}", 47,
            "data_offsets 0 to 48, the data has 47 bytes");
    refused("offsets that fall",
            "{" TENSOR("q", "F16", "[0]", "[0,0]") "," TENSOR("k", "F16", "[0]", "[4,0]") "}", 4,
            "'k' begins at byte 4 of the data, the one before it ends at 0");
    refused("a gap", "{" Q "," TENSOR("k", "F32", "[2]", "[49,57]") "}", 57,
            "'k' begins at byte 49 of the data, the one before it ends at 48");
    refused("an overlap", "{" Q "," TENSOR("k", "F32", "[2]", "[44,52]") "}", 52,
            "'k' begins at byte 44");
    refused("data that no tensor owns", "{" Q "}", 49, "end at byte 48 of the data, which has 49");
    refused("no such tensor", "{" K "," TENSOR("v", "F32", "[12]", "[0,48]") "}", 56,
            "no tensor 'q'; there are 2: 'v', 'k'");
    refused("no tensor at all", "{}", 0, "no tensor 'q'; there are 0");
    refused("integers", "{" TENSOR("q", "I16", "[1,2,3,4]", "[0,48]") "}", 48,
            "dtype I16 is none of F32, F16, BF16 and F8_E4M3");
    refused("a dtype of the future", "{" TENSOR("q", "F4", "[1,2,3,4]", "[0,48]") "}", 48,
            "dtype F4 is none of");
    refused("three dimensions", "{" TENSOR("q", "F16", "[2,3,4]", "[0,48]") "}", 48,
            "has shape (2, 3, 4), want 4 dimensions");
    refused("an empty dimension", "{" TENSOR("q", "F16", "[2,0,4,1]", "[0,0]") "}", 0,
            "each dimension must be at least 1");
}

static void test_broken_files(void)
{
    struct npy x;
    char why[512] = "";
    if (test_case("absent file")) {
        CHECK_INT(safetensors_read("/nonexistent/x", "q", 4, &x, why, sizeof why), -1);
        CHECK_TEXT(why, "No such file");
    }
    if (test_case("seven bytes")) {
        put_file("", 0);
        CHECK_INT(truncate(path, 7), 0);
        refused_as("q", "not a .safetensors file (7 bytes");
    }
    if (test_case("a header longer than the file")) {
        put("{}", 3, 2, 0);
        refused_as("q", "the header says it has 3 bytes, the file has 2");
    }
    if (test_case("a header longer than all files")) {
        put("{}", UINT64_MAX, 2, 0);
        refused_as("q", "at most 100000000 are allowed");
    }
    if (test_case("a NUL in the header")) {
        put("{\0}", 3, 3, 0);
        refused_as("q", "header byte 1 is 0x00");
    }
    if (test_case("an empty header")) {
        put_file("", 0);
        refused_as("q", "the header ends where '{' should stand");
    }
}

/* A file as others write it: metadata, another order than the offsets', blanks, escapes, padding. */
#define FULL                                                                                \
    "{\"__metadata__\":{\"format\":\"pt\",\"\\u00e9\":\"\"},"                               \
    "\"mo\\u0064el/\xC3\xA9\" : { \"data_offsets\" : [ 8 , 56 ],\r\n\t\"shape\":[1,2,3,4]," \
    "\"dtype\":\"F16\"},\"\\ud83d\\ude00\":{\"dtype\":\"BF16\",\"shape\":[1,1,2,2],"        \
    "\"data_offsets\":[0,8]}," TENSOR("none", "F64", "[0]", "[56,56]") "," TENSOR(          \
        "f", "F32", "[1,1,1,2]", "[56,64]") "}    "

static void reads(const char *what, const char *name, int dtype, size_t from, size_t bytes)
{
    struct npy x;
    char why[512] = "";
    bool right = true;
    if (!test_case("%s", what)) return;
    put_file(FULL, 64);
    CHECK(safetensors_read(path, name, 4, &x, why, sizeof why) == 0, "%s", why);
    CHECK_INT(x.dtype, dtype);
    CHECK_INT(npy_bytes(hewn_dtype_size(x.dtype), x.rank, x.dim), bytes);
    for (size_t i = 0; x.data && i < bytes; i++)
        right &= ((unsigned char *)x.data)[i] == (unsigned char)((from + i) * 37);
    CHECK(x.data && right, "data changed");
    npy_free(&x);
}

/* Whatever becomes of a file: it is read or refused with a sentence that names it. `make MODE=asan check`
 * runs this too. */
static void test_damage(void)
{
    enum { FILES = 2000 };
    struct rng r = {test_seed()};
    size_t length = strlen(FULL), accepted = 0;
    if (!test_case("%d damaged files", FILES)) return;
    for (int i = 0; i < FILES && !test_case_failures(); i++) {
        char header[sizeof FULL];
        uint64_t says =
            length + (rng_below(&r, 4) ? 0U : rng_below(&r, 9)) - (rng_below(&r, 4) ? 0U : 4U);
        size_t written = rng_below(&r, 4) ? length : rng_below(&r, (uint32_t)length);
        struct npy x;
        char why[512] = "";
        memcpy(header, FULL, sizeof header);
        for (uint32_t n = rng_below(&r, 4); n > 0; n--) {
            static const char likely[] = "{}[]\",:\\u0123456789 \n";
            header[rng_below(&r, (uint32_t)length)] =
                rng_below(&r, 2) ? likely[rng_below(&r, sizeof likely)] : (char)rng_next(&r);
        }
        put(header, says, written, rng_below(&r, 3) ? 64 : rng_below(&r, 80));
        if (safetensors_read(path, "f", 4, &x, why, sizeof why) == 0) {
            accepted++;
            CHECK(x.data != NULL, "accepted without data");
        } else {
            CHECK(strstr(why, path) == why && strlen(why) > strlen(path) + 2, "said '%s'", why);
            CHECK(x.data == NULL, "data left behind");
        }
        npy_free(&x);
    }
    CHECK(accepted > FILES / 50 && accepted < FILES / 2, "%zu of %d accepted", accepted, FILES);
}

int main(int argc, char **argv)
{
    int fd;
    test_begin("safetensors", argc, argv);
    strcpy(path, "/tmp/hewn-safetensors-XXXXXX");
    fd = mkstemp(path);
    if (fd >= 0) close(fd);
    test_syntax();
    test_meaning();
    test_broken_files();
    reads("F16 under an escaped name", "model/\xC3\xA9", HEWN_F16, 8, 48);
    reads("BF16 under a surrogate pair", "\xF0\x9F\x98\x80", HEWN_BF16, 0, 8);
    reads("F32 behind an empty tensor", "f", HEWN_F32, 56, 8);
    test_damage();
    unlink(path);
    return test_end();
}
