#include "image.h"

#include "ptx/fatbin.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243B1U

struct wrapper { /* nvcc writes them */
    uint32_t magic, version;
    uint64_t data, unused;
};

/* Byte by byte: an image may be shorter than what it is compared with. */
static bool begins(const char *image, const void *magic, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (image[i] != ((const char *)magic)[i]) return false;
    return true;
}

/* Past white space and comments. */
static const char *skip_blank(const char *p)
{
    for (;;) {
        if (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n') {
            p++;
        } else if (p[0] == '/' && p[1] == '/') {
            while (*p && *p != '\n') p++;
        } else if (p[0] == '/' && p[1] == '*') {
            const char *end = strstr(p + 2, "*/");
            if (!end) return p + strlen(p);
            p = end + 2;
        } else {
            return p;
        }
    }
}

/* 0: the entry's PTX does not run there. An exact architecture with its own features is best, then a family's. */
static unsigned fit(const struct fatbin_entry *e, unsigned capability)
{
    if (e->kind != FATBIN_PTX || e->arch > capability) return 0;
    if (e->suffix == 'a') return e->arch == capability ? e->arch + 2000 : 0;
    if (e->suffix == 'f') return e->arch / 10 == capability / 10 ? e->arch + 1000 : 0;
    return e->arch;
}

static char *fat_ptx(const void *image, unsigned capability, const char **why)
{
    struct fatbin fat;
    struct fatbin_entry entry, best = {.kind = 0};
    unsigned best_fit = 0;
    bool ptx = false;
    char *text = NULL;

    *why = "the fat binary is damaged";
    if (fatbin_open(&fat, image, SIZE_MAX)) return NULL;
    while (fatbin_next(&fat, &entry) > 0) {
        const unsigned f = fit(&entry, capability);

        ptx |= entry.kind == FATBIN_PTX;
        if (f <= best_fit) continue;
        best = entry;
        best_fit = f;
    }
    if (!best_fit) {
        *why = ptx ? "the fat binary has no PTX for this device"
                   : "the fat binary holds machine code only";
        return NULL;
    }
    return fatbin_unpack(&best, &text) ? NULL : text;
}

char *image_ptx(const void *image, unsigned capability, const char **why)
{
    const uint32_t wrapper_magic = WRAPPER_MAGIC, fat_magic = FATBIN_MAGIC;
    const char *bytes = image;
    char *text;

    *why = "there is no image";
    if (!image) return NULL;
    if (begins(bytes, &wrapper_magic, sizeof wrapper_magic)) {
        struct wrapper w;

        memcpy(&w, image, sizeof w);
        bytes = (const char *)(uintptr_t)w.data;
        *why = "the fat binary's wrapper leads nowhere";
        if (!bytes) return NULL;
    }
    if (begins(bytes, &fat_magic, sizeof fat_magic)) return fat_ptx(bytes, capability, why);
    *why = "it is machine code";
    if (begins(bytes,
               "\x7f"
               "ELF",
               4))
        return NULL;
    *why = "it is no PTX text";
    if (!begins(skip_blank(bytes), ".version", 8)) return NULL;
    *why = "out of memory";
    text = strdup(bytes);
    return text;
}

char *image_read(const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long size;

    if (!f) return NULL;
    if (!fseek(f, 0, SEEK_END) && (size = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET)) {
        text = malloc((size_t)size + 1);
        *length = text ? fread(text, 1, (size_t)size, f) : 0;
        if (text) text[*length] = '\0';
    }
    fclose(f);
    return text;
}
