/* Readers of the command line. */
#include "fuzz/fuzz.h"

#include "npy.h"
#include "run.h"
#include "safetensors.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Statements as notes of a text, and as what follows options. */
void fuzz_run(const uint8_t *data, size_t size)
{
    struct run *r = calloc(1, sizeof *r);
    char *text = malloc(size + 1);
    int err = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (r && text && err >= 0 && nowhere >= 0) {
        memcpy(text, data, size);
        text[size] = 0;
        r->path = "fuzz";
        fflush(stderr);
        dup2(nowhere, STDERR_FILENO);
        if (!run_notes(r, text)) run_statement(r, "fuzz", text);
        dup2(err, STDERR_FILENO);
        if (r->buffers > RUN_BUFFERS || r->maps > RUN_MAPS || r->outputs > RUN_OUTPUTS) abort();
    }
    if (err >= 0) close(err);
    if (nowhere >= 0) close(nowhere);
    free(text);
    free(r);
}

/* A file in memory with these bytes; its path. */
static int in_memory(const uint8_t *data, size_t size, char path[64])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0) return -1;
    if (size && write(fd, data, size) != (ssize_t)size) {
        close(fd);
        return -1;
    }
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void judge(int rc, struct npy *x, const char *why)
{
    if (rc && (!*why || x->data)) abort(); /* refused without a reason, or with data left behind */
    if (!rc && !x->data) abort();
    if (!rc) npy_free(x);
}

void fuzz_npy(const uint8_t *data, size_t size)
{
    char path[64], why[512];
    int fd = in_memory(data, size, path);

    if (fd < 0) return;
    for (int rank = 1; rank <= NPY_RANK; rank++) {
        struct npy x = {0};
        why[0] = 0;
        judge(npy_read(path, rank, &x, why, sizeof why), &x, why);
    }
    for (int rank = 1; rank <= 2; rank++) {
        const uint64_t dim[2] = {4, 2};
        float into[8];
        why[0] = 0;
        if (npy_read_into(path, "<f4", sizeof *into, rank, dim, into, why, sizeof why) && !*why)
            abort();
    }
    close(fd);
}

void fuzz_safetensors(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    char path[64], why[512];
    size_t skip;
    int fd;

    if (!end) return;
    skip = (size_t)(end - data) + 1;
    fd = in_memory(data + skip, size - skip, path);
    if (fd < 0) return;
    for (int rank = 1; rank <= 3; rank++) {
        struct npy x = {0};
        why[0] = 0;
        judge(safetensors_read(path, (const char *)data, rank, &x, why, sizeof why), &x, why);
    }
    close(fd);
}
