/* Packs: what the module builder compresses, the library unpacks, whole and its first bytes. */
#include "lib/harness.h"
#include "squeeze.h"
#include "unpack.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 200000, KINDS = 7 };

static uint32_t state;

static uint32_t next(void)
{
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

/* Bytes of a kind: zeros, noise, short and long periods, text, words of 16 bytes, copies from far back. */
static void make(uint8_t *data, size_t size, int kind)
{
    for (size_t i = 0; i < size; i++) {
        switch (kind) {
        case 0: data[i] = 0; break;
        case 1: data[i] = (uint8_t)next(); break;
        case 2: data[i] = (uint8_t)(i % 3); break;
        case 3: data[i] = i < 5000 ? (uint8_t)next() : data[i - 5000]; break;
        case 4: data[i] = (uint8_t)("mov.b32 %r, [ring];\n"[next() % 20]); break;
        case 5: data[i] = (uint8_t)(i % 16 < 12 ? i % 16 : next() % 4); break;
        default:
            data[i] = i > 70000 && next() % 64 ? data[i - 70000] : (uint8_t)(next() % 16);
            break;
        }
    }
}

static void round_trip(const uint8_t *data, size_t size, const unsigned p[3])
{
    uint8_t *packed = malloc(squeeze_room(size)), *out = malloc(size + 1);
    size_t bytes = packed ? squeeze(data, size, p[0], p[1], p[2], packed) : 0;
    CHECK(bytes > 0 && bytes <= squeeze_room(size), "%zu bytes for %zu", bytes, size);
    if (bytes && out) {
        struct hewn_pack pack = {packed, bytes, size, 0, 0, 0, 0};
        pack.lc = (unsigned char)p[0];
        pack.lp = (unsigned char)p[1];
        pack.pb = (unsigned char)p[2];
        const size_t first[] = {0, 1, size / 2, size - (size > 0), size};
        for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
            size_t n = first[i] < size ? first[i] : size;
            memset(out, 0xa5, size + 1);
            CHECK_INT(hewn_unpack(&pack, n, out), HEWN_UNPACKED);
            CHECK(memcmp(out, data, n) == 0, "the first %zu of %zu bytes are others", n, size);
            CHECK(out[n] == 0xa5, "a byte behind the %zu is written", n);
        }
        CHECK_INT(hewn_unpack(&pack, size + 1, out), HEWN_UNPACK_CORRUPT);
        pack.size = bytes / 2;
        if (bytes > 64) CHECK_INT(hewn_unpack(&pack, size, out), HEWN_UNPACK_CORRUPT);
    }
    free(packed);
    free(out);
}

/* Whatever the bytes are, unpacking ends, and writes nothing outside `out`. Run under a sanitiser. */
static void damaged(uint8_t *data, size_t size)
{
    uint8_t *packed = malloc(squeeze_room(size)), *out = malloc(size);
    size_t bytes = packed && out ? squeeze(data, size, 3, 0, 2, packed) : 0;
    struct hewn_pack pack = {packed, bytes, size, 3, 0, 2, 0};
    CHECK(bytes > 0, "no memory");
    for (int i = 0; bytes && i < 400; i++) {
        size_t at = next() % bytes;
        packed[at] ^= (uint8_t)(1 + next() % 255);
        pack.size = i % 4 ? bytes : next() % bytes;
        int status = (int)hewn_unpack(&pack, size, out);
        CHECK(status == HEWN_UNPACKED || status == HEWN_UNPACK_CORRUPT, "status %d", status);
    }
    free(packed);
    free(out);
}

int main(int argc, char **argv)
{
    static const unsigned properties[][3] = {{3, 0, 2}, {4, 0, 0}, {0, 4, 4}, {0, 0, 0}, {2, 2, 1}};
    static const size_t sizes[] = {1, 2, 3, 4, 5, 271, 275, 769, 5001, MOST};
    uint8_t *data = malloc(MOST);
    test_begin("packs", argc, argv);
    if (!data) return 1;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            if (!test_case("kind %d, %zu bytes", kind, sizes[i])) continue;
            state = (uint32_t)(97 * kind + (int)i);
            make(data, sizes[i], kind);
            round_trip(data, sizes[i], properties[(i + (size_t)kind) % 5]);
        }
    for (int kind = 0; kind < KINDS; kind++) {
        if (!test_case("kind %d, damaged", kind)) continue;
        state = (uint32_t)kind;
        make(data, 20000, kind);
        damaged(data, 20000);
    }
    free(data);
    return test_end();
}
