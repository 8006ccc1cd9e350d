/* What the library holds, as C: packs of modules, families. */
#include "mod.h"

#include "sha256.h"
#include "squeeze.h"
#include "unpack.h"

#include <stdlib.h>
#include <string.h>

/*
 * A pack's files lie one behind the other and are compressed as one, so what similar modules have in
 * common is stored once. There are three: the manifests and the PTX texts, with a NUL behind each, and
 * the cubins, those of the first architecture before those of the next.
 */
enum { MEMBERS_MOST = 64, ARCHS_MOST = 4, NAME_MOST = 64, PATH_MOST = 4096 };

struct file {
    size_t offset, size; /* without the NUL */
    char sha256[HEWN_SHA256_HEX];
};

struct pack {
    struct text bytes; /* all files */
    unsigned lc, lp, pb;
};

/* Literals of a text depend on the byte before; those of code on the place in an instruction of 16 bytes. */
static const struct pack text_pack = {.lc = 4}, code_pack = {.lp = 4, .pb = 4};

struct member {
    const char *name;
    struct module_id id;
    struct scan scan;
    struct file manifest, ptx, cubin[ARCHS_MOST];
};

struct embed {
    const char *target, *folder;
    char arch[ARCHS_MOST][NAME_MOST];
    unsigned arch_count;
    struct pack about, text, code;
    struct member member[MEMBERS_MOST];
    unsigned member_count;
};

/* ---- reading ---- */

/* The text goes to drivers and into messages as a C string. */
static int check_ascii(const struct text *text, const char *path)
{
    for (size_t i = 0; i < text->size; i++)
        if ((unsigned char)text->data[i] > 127 || text->data[i] == '\0')
            return complain(path, "byte %zu is not a character of ASCII text", i);
    return 0;
}

/* Adds `extra` bytes of the file at its end, too: 1 for a text's NUL. */
static int append(struct pack *pack, struct file *file, const struct text *text, size_t extra,
                  const char *path)
{
    char *more = realloc(pack->bytes.data, pack->bytes.size + text->size + extra + 1);

    if (!more) return complain(path, "out of memory");
    memcpy(more + pack->bytes.size, text->data, text->size + extra);
    pack->bytes.data = more;
    file->offset = pack->bytes.size;
    file->size = text->size;
    hewn_sha256(text->data, text->size, file->sha256);
    pack->bytes.size += text->size + extra;
    return 0;
}

static int add_manifest(struct embed *e, struct member *m)
{
    char path[PATH_MOST];
    struct text text = {NULL, 0};
    int rc = -1;

    snprintf(path, sizeof path, "%s/%s.json", e->folder, m->name);
    if (text_read(&text, path) == 0 && check_ascii(&text, path) == 0)
        rc = append(&e->about, &m->manifest, &text, 1, path);
    text_free(&text);
    return rc;
}

static int add_ptx(struct embed *e, struct member *m)
{
    char path[PATH_MOST];
    struct text text = {NULL, 0};
    int rc = -1;

    snprintf(path, sizeof path, "%s/%s.ptx", e->folder, m->name);
    if (text_read(&text, path) == 0 && check_ascii(&text, path) == 0 &&
        scan_ptx(&m->scan, &text, path) == 0)
        rc = append(&e->text, &m->ptx, &text, 1, path);
    text_free(&text);
    return rc;
}

static int add_cubin(struct embed *e, struct member *m, unsigned arch)
{
    char path[PATH_MOST];
    struct text text = {NULL, 0};
    int rc = -1;

    snprintf(path, sizeof path, "%s/%s.%s.cubin", e->folder, m->name, e->arch[arch]);
    if (text_read(&text, path) == 0) rc = append(&e->code, &m->cubin[arch], &text, 0, path);
    text_free(&text);
    return rc;
}

static int read_members(struct embed *e)
{
    struct member *end = e->member + e->member_count, *m;

    for (m = e->member; m < end; m++)
        if (plan_find(&m->id, e->target, m->name) != 0 || add_manifest(e, m) != 0) return -1;
    for (m = e->member; m < end; m++)
        if (add_ptx(e, m) != 0) return -1;
    for (unsigned arch = 0; arch < e->arch_count; arch++)
        for (m = e->member; m < end; m++)
            if (add_cubin(e, m, arch) != 0) return -1;
    return 0;
}

/* ---- writing ---- */

static void write_array(FILE *out, const char *name, const uint8_t *data, size_t size)
{
    fprintf(out, "static const unsigned char %s_data[] = {", name);
    for (size_t i = 0; i < size; i++) fprintf(out, "%s%u,", i % 24 == 0 ? "\n" : "", data[i]);
    fprintf(out, "\n};\n");
}

/* Unpacks as the library does, and compares. */
static int verify(const struct hewn_pack *packed, const struct text *bytes)
{
    unsigned char *unpacked = malloc(bytes->size);
    int same = unpacked && hewn_unpack(packed, bytes->size, unpacked) == HEWN_UNPACKED &&
               memcmp(unpacked, bytes->data, bytes->size) == 0;

    free(unpacked);
    return same ? 0 : -1;
}

static int write_pack(FILE *out, const struct pack *pack, const char *name, const char *path)
{
    const struct text *bytes = &pack->bytes;
    uint8_t *data = malloc(squeeze_room(bytes->size));
    struct hewn_pack packed = {.data = data, .holds = bytes->size};
    int rc = -1;

    packed.lc = (unsigned char)pack->lc;
    packed.lp = (unsigned char)pack->lp;
    packed.pb = (unsigned char)pack->pb;
    if (data)
        packed.size =
            squeeze((const uint8_t *)bytes->data, bytes->size, pack->lc, pack->lp, pack->pb, data);
    if (packed.size == 0) {
        complain(path, "out of memory");
    } else if (verify(&packed, bytes) != 0) {
        complain(path, "the pack %s does not unpack to the files that it was made of", name);
    } else {
        write_array(out, name, data, packed.size);
        fprintf(
            out,
            "static const struct hewn_pack %s = {%s_data, sizeof %s_data, %zu, %u, %u, %u, 0};\n\n",
            name, name, name, bytes->size, pack->lc, pack->lp, pack->pb);
        rc = 0;
    }
    free(data);
    return rc;
}

static void write_file(FILE *out, const char *arch, const char *pack, const struct file *file)
{
    fprintf(out, "{\"%s\", &%s, %zu, %zu,\n     \"%s\"}", arch, pack, file->offset, file->size,
            file->sha256);
}

static void write_module(FILE *out, const struct embed *e, const struct member *m)
{
    const char *target = m->id.target, *name = m->id.name;

    if (e->arch_count) {
        fprintf(out, "static const struct hewn_image %s_cubins[] = {\n    ", name);
        for (unsigned i = 0; i < e->arch_count; i++) {
            write_file(out, e->arch[i], "code", &m->cubin[i]);
            fprintf(out, "%s", i + 1 < e->arch_count ? ",\n    " : "};\n");
        }
    }
    fprintf(out,
            "extern const hewn_module hewn_module_%s_%s;\n"
            "const hewn_module hewn_module_%s_%s = {\n    \"%s\", \"%s\", \"%s\",\n    ",
            target, name, target, name, name, target, m->scan.entry);
    write_file(out, "ptx", "text", &m->ptx);
    fprintf(out, ",\n    ");
    write_file(out, "json", "about", &m->manifest);
    fprintf(out, ",\n    %s%s, %u, \"", e->arch_count ? name : "0", e->arch_count ? "_cubins" : "",
            e->arch_count);
    for (unsigned i = 0; i < e->arch_count; i++) fprintf(out, "%s%s", i ? " " : "", e->arch[i]);
    fprintf(out, "\"};\n\n");
}

/* ---- packs ---- */

/* Splits "sm_100,sm_103". */
static int read_archs(struct embed *e, const char *list)
{
    for (const char *at = list; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (e->arch_count == ARCHS_MOST || length >= NAME_MOST)
            return complain(list, "more than %d architectures, or a long name", ARCHS_MOST);
        memcpy(e->arch[e->arch_count++], at, length);
        at += length;
    }
    return 0;
}

static int write_all(const struct embed *e, const char *path)
{
    FILE *out = text_create(path);
    int rc = 0;

    if (!out) return -1;
    fprintf(out, "#include \"module.h\"\n\n");
    rc = write_pack(out, &e->about, "about", path);
    if (rc == 0) rc = write_pack(out, &e->text, "text", path);
    if (rc == 0 && e->arch_count) rc = write_pack(out, &e->code, "code", path);
    for (unsigned i = 0; rc == 0 && i < e->member_count; i++) write_module(out, e, &e->member[i]);
    if (text_close(out, path) != 0) rc = -1;
    if (rc != 0) remove(path);
    return rc;
}

/* argv: the target, the file, the folder of what goes in, the architectures, the modules' names. */
int make_pack(int argc, char **argv)
{
    struct embed *e = calloc(1, sizeof *e);
    int rc = -1;

    if (!e || argc - 4 > MEMBERS_MOST) {
        free(e);
        return complain(argv[1], e ? "more than %d modules" : "out of memory", MEMBERS_MOST);
    }
    e->target = argv[0];
    e->folder = argv[2];
    e->about = text_pack;
    e->text = text_pack;
    e->code = code_pack;
    for (int i = 4; i < argc; i++) e->member[e->member_count++].name = argv[i];
    if (read_archs(e, argv[3]) == 0 && read_members(e) == 0) rc = write_all(e, argv[1]);
    text_free(&e->about.bytes);
    text_free(&e->text.bytes);
    text_free(&e->code.bytes);
    free(e);
    return rc;
}

/* ---- families ---- */

/* A module's name, and its place in the family. */
struct place {
    const char *name;
    int at;
};

static int by_name(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->at - y->at;
}

/* The modules' places in the order of their names. */
static int write_places(FILE *out, char **modules, int count)
{
    struct place *list = calloc((size_t)count + 1, sizeof *list);

    if (!list) return complain("modules", "out of memory");
    for (int i = 0; i < count; i++) {
        const char *slash = strchr(modules[i], '/');
        list[i] = (struct place){slash ? slash + 1 : modules[i], i};
    }
    qsort(list, (size_t)count, sizeof *list, by_name);
    fprintf(out, "\nstatic const unsigned short by_name[] = {");
    for (int i = 0; i < count; i++) fprintf(out, "%s%d,", i % 16 ? " " : "\n    ", list[i].at);
    fprintf(out, "\n    0};\n\n");
    free(list);
    return 0;
}

/* argv: the family, the file, and its modules as TARGET/NAME. */
int make_family(int argc, char **argv)
{
    const char *family = argv[0];
    FILE *out = text_create(argv[1]);

    if (!out) return -1;
    fprintf(out, "#include \"module.h\"\n");
    int rc = write_places(out, argv + 2, argc - 2);
    for (int i = 2; i < argc; i++) {
        char *slash = strchr(argv[i], '/');
        if (slash) *slash = '_';
        fprintf(out, "extern const hewn_module hewn_module_%s;\n", argv[i]);
    }
    fprintf(out, "\nstatic const hewn_module *const modules[] = {\n");
    for (int i = 2; i < argc; i++) fprintf(out, "    &hewn_module_%s,\n", argv[i]);
    fprintf(out,
            "    NULL};\n\n"
            "static const hewn_family family = {\"%s\", modules, by_name, %d};\n\n"
            "const hewn_family *hewn_%s_family(void)\n{\n    return &family;\n}\n",
            family, argc - 2, family);
    if (text_close(out, argv[1]) != 0) rc = -1;
    if (rc != 0) remove(argv[1]);
    return rc;
}
