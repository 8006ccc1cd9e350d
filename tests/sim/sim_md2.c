/* MD2 against the digests that RFC 1319 lists, its keyed form against the definition in RFC 2104. */
#include "lib/harness.h"

#include "cuda/md2.h"

#include <stdio.h>
#include <string.h>

static void check_hex(const uint8_t digest[MD2_BYTES], const char *want)
{
    char hex[2 * MD2_BYTES + 1];

    for (int i = 0; i < MD2_BYTES; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    CHECK(!strcmp(hex, want), "%s, want %s", hex, want);
}

static void test_rfc(void)
{
    static const struct {
        const char *text, *digest;
    } rows[] = {
        {"", "8350e5a3e24c153df2275c9f80692773"},
        {"a", "32ec01ec4a6dac72c0ab96fb34c0b5d1"},
        {"abc", "da853b0d3f88d99b30283a69e6ded6bb"},
        {"message digest", "ab4f496bfb2a530b219ff33031fe06b0"},
        {"abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "d5976f79d83d3a0dc9806c3c66f3efd8"},
    };
    uint8_t digest[MD2_BYTES];

    if (!test_case("the digests of RFC 1319")) return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        md2(rows[i].text, strlen(rows[i].text), digest);
        check_hex(digest, rows[i].digest);
    }
}

/* RFC 2104: H(key ^ 0x5c…, H(key ^ 0x36…, text)), here from plain digests of the joined bytes. */
static void test_keyed(void)
{
    static const char text[] = "what both sides say";
    uint8_t key[MD2_BYTES], inner[MD2_BYTES + sizeof text], outer[2 * MD2_BYTES], got[MD2_BYTES];
    struct md2_keyed m;

    if (!test_case("the keyed digest of RFC 2104")) return;
    for (int i = 0; i < MD2_BYTES; i++) {
        key[i] = (uint8_t)(17 * i + 3);
        inner[i] = key[i] ^ 0x36;
        outer[i] = key[i] ^ 0x5c;
    }
    memcpy(inner + MD2_BYTES, text, sizeof text);
    md2(inner, sizeof inner, outer + MD2_BYTES);
    md2(outer, sizeof outer, outer);
    md2_keyed_begin(&m, key);
    md2_keyed_add(&m, text, 5);
    md2_keyed_add(&m, text + 5, sizeof text - 5);
    md2_keyed_end(&m, got);
    CHECK(!memcmp(got, outer, sizeof got), "in two pieces, it differs from the definition");
}

int main(int argc, char **argv)
{
    test_begin("sim_md2", argc, argv);
    test_rfc();
    test_keyed();
    return test_end();
}
