#include "utf8.h"

size_t utf8_take(const char *text, size_t length, uint32_t *character)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *c = (const unsigned char *)text;
    uint32_t value;
    size_t n;
    if (!length) return 0;
    if (c[0] < 0x80) {
        *character = c[0];
        return 1;
    }
    n = c[0] < 0xC2 ? 0 : c[0] < 0xE0 ? 2 : c[0] < 0xF0 ? 3 : c[0] < 0xF5 ? 4 : 0;
    if (!n || n > length) return 0;
    value = c[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((c[i] & 0xC0) != 0x80) return 0;
        value = value << 6 | (c[i] & 0x3Fu);
    }
    if (value < least[n] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return 0;
    *character = value;
    return n;
}

size_t utf8_put(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xC0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xE0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xF0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

size_t utf8_check(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        uint32_t character;
        size_t n = utf8_take(text + at, length - at, &character);
        if (!n) break;
        at += n;
    }
    return at;
}
