/* A module as C: its PTX text, manifest and cubins as arrays behind one hewn_module. */
#include "mod.h"

#include "sha256.h"

#include <string.h>

/* String literals are limited to 4095 bytes by C11, so text is written as numbers too. */
static void write_array(FILE *out, const char *declaration, const struct text *bytes, int with_nul)
{
    size_t count = bytes->size + (with_nul ? 1 : 0);

    fprintf(out, "%s = {", declaration);
    for (size_t i = 0; i < count; i++) {
        unsigned value = i < bytes->size ? (unsigned char)bytes->data[i] : 0;
        fprintf(out, "%s%u,", i % 24 == 0 ? "\n" : "", value);
    }
    fprintf(out, "\n};\n\n");
}

/* The text goes into `char` arrays, whose elements hold 0..127 whatever char's sign. */
static int check_ascii(const struct text *text, const char *path)
{
    for (size_t i = 0; i < text->size; i++)
        if ((unsigned char)text->data[i] > 127 || text->data[i] == '\0')
            return complain(path, "byte %zu is not a character of ASCII text", i);
    return 0;
}

/* Writes the cubins of argv[0..count) ("ARCH=FILE"); leaves the architecture names in argv. */
static int write_images(FILE *out, int count, char **argv)
{
    for (int i = 0; i < count; i++) {
        char declaration[64];
        struct text cubin;
        const char *path = split_pair(argv[i]);
        if (!path || text_read(&cubin, path) != 0) return -1;
        snprintf(declaration, sizeof declaration,
                 "static _Alignas(16) const unsigned char cubin_%d[]", i);
        write_array(out, declaration, &cubin, 0);
        text_free(&cubin);
    }
    if (count == 0) return 0;
    fprintf(out, "static const hewn_image images[] = {\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "    {\"%s\", cubin_%d, sizeof cubin_%d},\n", argv[i], i, i);
    fprintf(out, "};\n\n");
    return 0;
}

static int write_module(FILE *out, const struct module_id *id, const struct text *ptx,
                        const struct text *manifest, const char *entry, int count, char **argv)
{
    char sha256[HEWN_SHA256_HEX];

    hewn_sha256(ptx->data, ptx->size, sha256);
    fprintf(out, "#include \"hewn.h\"\n\n");
    write_array(out, "static const char ptx[]", ptx, 1);
    write_array(out, "static const char manifest[]", manifest, 1);
    if (write_images(out, count, argv) != 0) return -1;
    fprintf(out,
            "extern const hewn_module hewn_module_%s_%s;\n"
            "const hewn_module hewn_module_%s_%s = {\n"
            "    .name = \"%s\",\n"
            "    .target = \"%s\",\n"
            "    .entry = \"%s\",\n"
            "    .ptx = ptx,\n"
            "    .ptx_size = sizeof ptx - 1,\n"
            "    .manifest = manifest,\n"
            "    .manifest_size = sizeof manifest - 1,\n"
            "    .images = %s,\n"
            "    .image_count = %d,\n"
            "    .sha256 = \"%s\",\n"
            "};\n",
            id->target, id->name, id->target, id->name, id->name, id->target, entry,
            count ? "images" : "NULL", count, sha256);
    return 0;
}

int make_embed(int argc, char **argv)
{
    const char *ptx_path = argv[2], *manifest_path = argv[3], *out_path = argv[4];
    struct text ptx = {NULL, 0}, manifest = {NULL, 0};
    struct module_id id;
    struct scan scan;
    FILE *out;
    int result = -1;

    if (plan_find(&id, argv[0], argv[1]) != 0) return -1;
    if (text_read(&ptx, ptx_path) == 0 && text_read(&manifest, manifest_path) == 0 &&
        check_ascii(&ptx, ptx_path) == 0 && check_ascii(&manifest, manifest_path) == 0 &&
        scan_ptx(&scan, &ptx, ptx_path) == 0) {
        out = text_create(out_path);
        if (out) {
            result = write_module(out, &id, &ptx, &manifest, scan.entry, argc - 5, argv + 5);
            if (text_close(out, out_path) != 0) result = -1;
        }
    }
    text_free(&ptx);
    text_free(&manifest);
    return result;
}
