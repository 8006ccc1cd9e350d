/* watch_text FILE.ptx OUT.ptx: the text as `hewn watch` gives it to the driver; one line says what it found. */
#include "rewrite.h"

#include <stdio.h>
#include <stdlib.h>

static char *read_all(const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long size;

    if (!f) return NULL;
    if (!fseek(f, 0, SEEK_END) && (size = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET)) {
        text = malloc((size_t)size + 1);
        *length = text ? fread(text, 1, (size_t)size, f) : 0;
    }
    fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    struct watch_request request = {.tables = {0x7f0000000000, 0x7f0000400000}, .first_site = 1};
    struct watch_result result;
    FILE *out;
    char *text;
    int status = 1;

    if (argc != 3) return fprintf(stderr, "usage: watch_text FILE.ptx OUT.ptx\n"), 64;
    text = read_all(argv[1], &request.length);
    if (!text) return perror(argv[1]), 1;
    request.text = text;
    if (watch_rewrite(&request, &result)) {
        fprintf(stderr, "%s: %s\n", argv[1], result.error);
    } else if (!(out = fopen(argv[2], "wb"))) {
        perror(argv[2]);
    } else {
        status = fwrite(result.text, 1, result.length, out) != result.length;
        status |= fclose(out);
        printf("%u kernels, %u waits, %u loops not recognised\n", result.kernel_count,
               result.site_count, result.unknown_count);
        for (uint32_t i = 0; i < result.site_count; i++)
            printf("  %s line %u: %s\n", result.sites[i].function, result.sites[i].pos.line,
                   result.sites[i].text);
    }
    arena_free(&result.arena);
    free(text);
    return status;
}
