/* What the library holds, as C: modules, images that several modules share, families. */
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

static const char bytes_of_image[] = "static _Alignas(16) const unsigned char data[]";

/* ---- images ---- */

int make_image(int argc, char **argv)
{
    const char *target = argv[0], *name = argv[1], *arch = argv[2], *path = argv[3];
    char sha256[HEWN_SHA256_HEX];
    struct text image;
    FILE *out;

    (void)argc;
    if (text_read(&image, path) != 0) return -1;
    out = text_create(argv[4]);
    if (!out) {
        text_free(&image);
        return -1;
    }
    hewn_sha256(image.data, image.size, sha256);
    fprintf(out, "#include \"module.h\"\n\n");
    write_array(out, bytes_of_image, &image, 0);
    fprintf(out,
            "extern const struct hewn_image hewn_image_%s_%s_%s;\n"
            "const struct hewn_image hewn_image_%s_%s_%s = {\"%s\", data, sizeof data, \"%s\"};\n",
            target, name, arch, target, name, arch, arch, sha256);
    text_free(&image);
    return text_close(out, argv[4]);
}

/* ---- modules ---- */

/* The images by reference: argv[0..count) are their names. */
static void write_images(FILE *out, const char *target, int count, char **argv)
{
    if (count == 0) return;
    fprintf(out, "extern const struct hewn_image");
    for (int i = 0; i < count; i++)
        fprintf(out, "%s hewn_image_%s_%s", i ? "," : "", target, argv[i]);
    fprintf(out, ";\nstatic const struct hewn_image *const images[] = {");
    for (int i = 0; i < count; i++)
        fprintf(out, "%s&hewn_image_%s_%s", i ? ", " : "", target, argv[i]);
    fprintf(out, "};\n\n");
}

static void write_module(FILE *out, const struct module_id *id, const struct text *ptx,
                         const struct text *manifest, const struct text *packed, const char *entry)
{
    char text_sha256[HEWN_SHA256_HEX], data_sha256[HEWN_SHA256_HEX];

    hewn_sha256(ptx->data, ptx->size, text_sha256);
    hewn_sha256(packed->data, packed->size, data_sha256);
    write_array(out, bytes_of_image, packed, 0);
    write_array(out, "static const char manifest[]", manifest, 1);
    fprintf(out,
            "extern const hewn_module hewn_module_%s_%s;\n"
            "const hewn_module hewn_module_%s_%s = {\n"
            "    .name = \"%s\",\n"
            "    .target = \"%s\",\n"
            "    .entry = \"%s\",\n"
            "    .manifest = manifest,\n"
            "    .manifest_size = sizeof manifest - 1,\n"
            "    .sha256 = \"%s\",\n"
            "    .ptx_size = %zu,\n"
            "    .ptx = {\"ptx\", data, sizeof data, \"%s\"},\n",
            id->target, id->name, id->target, id->name, id->name, id->target, entry, text_sha256,
            ptx->size, data_sha256);
}

int make_embed(int argc, char **argv)
{
    const char *ptx_path = argv[2], *manifest_path = argv[3], *packed_path = argv[4];
    struct text ptx = {NULL, 0}, manifest = {NULL, 0}, packed = {NULL, 0};
    struct module_id id;
    struct scan scan;
    FILE *out;
    int images = argc - 6, result = -1;

    if (plan_find(&id, argv[0], argv[1]) != 0) return -1;
    if (text_read(&ptx, ptx_path) == 0 && text_read(&manifest, manifest_path) == 0 &&
        text_read(&packed, packed_path) == 0 && check_ascii(&ptx, ptx_path) == 0 &&
        check_ascii(&manifest, manifest_path) == 0 && scan_ptx(&scan, &ptx, ptx_path) == 0) {
        out = text_create(argv[5]);
        if (out) {
            fprintf(out, "#include \"module.h\"\n\n");
            write_images(out, id.target, images, argv + 6);
            write_module(out, &id, &ptx, &manifest, &packed, scan.entry);
            fprintf(out, "    .images = %s,\n    .image_count = %d,\n};\n",
                    images ? "images" : "NULL", images);
            result = text_close(out, argv[5]);
        }
    }
    text_free(&ptx);
    text_free(&manifest);
    text_free(&packed);
    return result;
}

/* ---- families ---- */

/* argv: the family, the file, and its modules as TARGET/NAME. */
int make_family(int argc, char **argv)
{
    const char *family = argv[0];
    FILE *out = text_create(argv[1]);

    if (!out) return -1;
    fprintf(out, "#include \"module.h\"\n\n");
    for (int i = 2; i < argc; i++) {
        char *slash = strchr(argv[i], '/');
        if (slash) *slash = '_';
        fprintf(out, "extern const hewn_module hewn_module_%s;\n", argv[i]);
    }
    fprintf(out, "\nstatic const hewn_module *const modules[] = {\n");
    for (int i = 2; i < argc; i++) fprintf(out, "    &hewn_module_%s,\n", argv[i]);
    fprintf(out,
            "    NULL};\n\n"
            "static const hewn_family family = {\"%s\", modules, %d};\n\n"
            "const hewn_family *hewn_%s_family(void)\n{\n    return &family;\n}\n",
            family, argc - 2, family);
    return text_close(out, argv[1]);
}
