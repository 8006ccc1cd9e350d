/* The engine's readers of a model's folder. */
#include "fuzz/fuzz.h"

#include "engine/config.h"
#include "engine/tokenizer.h"
#include "engine/weights.h"
#include "hewn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILE_NUMBER = 321 };

static char folder[] = "/tmp/hewn-fuzz-XXXXXX";
static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors"};

static void path_of(char *out, size_t size, const char *name)
{
    snprintf(out, size, "%s/%s", folder, name);
}

static void remove_folder(void)
{
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        path_of(path, sizeof path, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* A folder with this one file, whose bytes are in memory. */
static int in_folder(const char *name, const uint8_t *data, size_t size)
{
    static pid_t made;
    char path[64], target[64];
    const int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0) return -1;
    if ((size && write(file, data, size) != (ssize_t)size) || dup2(file, FILE_NUMBER) < 0) {
        close(file);
        return -1;
    }
    close(file);
    if (made == getpid()) return 0;
    strcpy(strrchr(folder, '-'), "-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    made = getpid();
    atexit(remove_folder);
    path_of(path, sizeof path, name);
    snprintf(target, sizeof target, "/proc/self/fd/%d", FILE_NUMBER);
    return symlink(target, path);
}

void fuzz_config(const uint8_t *data, size_t size)
{
    struct problem p = {""};
    struct config c;
    double angle[4096];
    if (in_folder(names[0], data, size)) return;
    if (config_read(folder, &c, &p)) {
        if (!p.text[0]) abort(); /* refused without a reason */
        return;
    }
    if (c.rope_dim <= 2 * (int64_t)(sizeof angle / sizeof angle[0])) config_frequencies(&c, angle);
}

void fuzz_tokenizer(const uint8_t *data, size_t size)
{
    static const char text[] = "hello  World's 1234 \xC3\xA9\xE4\xBD\xA0\r\n <|end|>";
    struct problem p = {""};
    struct tokens ids = {.id = NULL};
    struct tokenizer *t;
    if (in_folder(names[1], data, size)) return;
    t = tokenizer_open(folder, &p);
    if (!t && !p.text[0]) abort();
    if (t && tokenizer_encode(t, text, sizeof text - 1, true, &ids, &p) && !p.text[0]) abort();
    for (size_t i = 0; t && i < ids.count; i++) {
        char piece[16];
        tokenizer_decode(t, ids.id[i], i == 0, piece, sizeof piece);
    }
    free(ids.id);
    tokenizer_close(t);
}

void fuzz_weights(const uint8_t *data, size_t size)
{
    struct problem p = {""};
    struct weights *w;
    const struct tensor *t;
    if (in_folder(names[2], data, size)) return;
    w = weights_open(folder, &p);
    if (!w && !p.text[0]) abort();
    t = w ? weights_find(w, "w") : NULL;
    if (t && t->dtype >= 0 && t->bytes) {
        const size_t count = t->bytes / (t->dtype == HEWN_F32 ? 4 : t->dtype == HEWN_E4M3 ? 1 : 2);
        uint16_t bits;
        weights_bf16(t, count - 1, 1, &bits);
    }
    weights_close(w);
}
