#include "png.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORED_MAX = 65535, STORED_HEAD = 5 };

/* A file in the making. A chunk is length, name, data, CRC; its data is put at `at + 8` first. */
struct file {
    unsigned char *data;
    size_t at;
};

static void put32(unsigned char *to, uint32_t v)
{
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(v >> (24 - 8 * i));
}

static uint32_t crc32(const unsigned char *data, size_t size)
{
    uint32_t c = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        c ^= data[i];
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (0xEDB88320 & (0U - (c & 1)));
    }
    return ~c;
}

static uint32_t adler32(const unsigned char *data, size_t size)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < size; i++) a = (a + data[i]) % 65521, b = (b + a) % 65521;
    return b << 16 | a;
}

static void close_chunk(struct file *f, const char *name, size_t length)
{
    unsigned char *head = f->data + f->at;
    put32(head, (uint32_t)length);
    memcpy(head + 4, name, 4);
    put32(head + 8 + length, crc32(head + 4, 4 + length));
    f->at += 12 + length;
}

/* A zlib stream (RFC 1950) of stored blocks (RFC 1951 3.2.4). Its length. */
static size_t store(unsigned char *to, const unsigned char *raw, size_t size)
{
    size_t n = 0;
    to[n++] = 0x78;
    to[n++] = 0x01;
    for (size_t i = 0, piece; i < size; i += piece, n += piece) {
        piece = size - i < STORED_MAX ? size - i : STORED_MAX;
        to[n++] = i + piece == size; /* the last block */
        for (int k = 0; k < 4; k++)
            to[n++] = (unsigned char)((k < 2 ? piece : ~piece) >> 8 * (k & 1));
        memcpy(to + n, raw + i, piece);
    }
    put32(to + n, adler32(raw, size));
    return n + 4;
}

int png_write(const char *path, const unsigned char *levels, uint32_t width, uint32_t height,
              char *why, size_t why_size)
{
    static const unsigned char signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    size_t line = ((size_t)width + 1) / 2 + 1, size = line * height; /* two levels a byte */
    unsigned char *raw = calloc(1, size); /* each line begins with 0: no filter */
    struct file png = {calloc(1, size + size / STORED_MAX * STORED_HEAD + 128), sizeof signature};
    FILE *f = raw && png.data ? fopen(path, "wb") : NULL;
    bool written = false;
    if (f) {
        for (size_t i = 0; i < height; i++)
            for (size_t j = 0; j < width; j++)
                raw[i * line + 1 + j / 2] |=
                    (unsigned char)(levels[i * width + j] << (j % 2 ? 0 : 4));
        memcpy(png.data, signature, sizeof signature);
        put32(png.data + png.at + 8, width);
        put32(png.data + png.at + 12, height);
        png.data[png.at + 16] = 4; /* bits, of grey, deflate, not interlaced: 0 each */
        close_chunk(&png, "IHDR", 13);
        close_chunk(&png, "IDAT", store(png.data + png.at + 8, raw, size));
        close_chunk(&png, "IEND", 0);
        written = fwrite(png.data, 1, png.at, f) == png.at;
        written &= fclose(f) == 0;
    }
    if (!written) snprintf(why, why_size, "%s: %s", path, strerror(errno));
    free(raw);
    free(png.data);
    return written ? 0 : -1;
}
