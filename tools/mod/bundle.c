/*
 * Kernels that differ in dtypes alone lie in one cubin, a bundle: stored compressed, it takes
 * hardly more room than one of them. A bundle is assembled from the texts of its modules, one
 * behind the other, and must hold the machine code of each module's own cubin.
 */
#include "mod.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- names of shared memory ---- */

enum { NAMES_MOST = 64 };

struct names {
    char name[NAMES_MOST][SCAN_NAME];
    unsigned count;
};

/* The arrays that ".shared .align 8 .b64 full[4];" and the like declare, in an entry or outside. */
static int find_names(struct names *n, const struct text *ptx, const char *path)
{
    static const char declaration[] = ".shared .align ";
    const char *at = ptx->data;

    n->count = 0;
    while ((at = strstr(at, declaration)) != NULL) {
        at += strlen(declaration);
        if (n->count == NAMES_MOST) return complain(path, "more than %d shared arrays", NAMES_MOST);
        if (sscanf(at, "%*u .b%*u %63[A-Za-z0-9_]", n->name[n->count]) != 1)
            return complain(path, "cannot read the declaration at \"%.40s\"", at);
        n->count++;
    }
    return 0;
}

static int has_name(const struct names *n, const char *word, size_t length)
{
    for (unsigned i = 0; i < n->count; i++)
        if (strlen(n->name[i]) == length && memcmp(n->name[i], word, length) == 0) return 1;
    return 0;
}

static int in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

/* A line, the number of its module behind every name. Line markers stay as they are. */
static void write_line(FILE *out, const char *line, size_t length, const struct names *n,
                       int number)
{
    size_t at = 0;

    while (at < length && line[0] != '#') {
        size_t end = at;
        while (end < length && in_word(line[end])) end++;
        if (end == at) {
            fputc(line[at++], out);
            continue;
        }
        fprintf(out, "%.*s", (int)(end - at), line + at);
        if (has_name(n, line + at, end - at)) fprintf(out, "_%d", number);
        at = end;
    }
    fprintf(out, "%.*s\n", (int)(length - at), line + at);
}

/* ---- texts ---- */

/* What a module says once, whatever it holds: the first one says it for all. */
static const char *const once[] = {".version ", ".target ", ".address_size "};

static int is_once(const char *line)
{
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (strncmp(line, once[i], strlen(once[i])) == 0) return 1;
    return 0;
}

/* One module's text. Its shared arrays get names of their own: where entries have arrays of one
 * name, ptxas (13.0) may leave the static shared memory of all but one out of the cubin. */
static int append(FILE *out, const struct text *ptx, const char *path, int number)
{
    const char *at = ptx->data, *line;
    struct names names;
    size_t length;

    if (find_names(&names, ptx, path) != 0) return -1;
    while (text_line(&at, &line, &length))
        if (!is_once(line)) write_line(out, line, length, &names, number);
    return 0;
}

/* The first module's lines that a module says once, the version apart. */
static void write_once(FILE *out, const struct text *ptx)
{
    const char *at = ptx->data, *line;
    size_t length;

    while (text_line(&at, &line, &length))
        if (is_once(line) && strncmp(line, once[0], strlen(once[0])) != 0)
            fprintf(out, "%.*s\n", (int)length, line);
}

/* The newest version that a text asks for, as the number that it is. */
static int newest_version(const struct text *texts, int count, char **paths, char version[8])
{
    struct scan scan;
    double newest = 0;

    for (int i = 0; i < count; i++) {
        if (scan_ptx(&scan, &texts[i], paths[i]) != 0) return -1;
        if (strtod(scan.version, NULL) <= newest) continue;
        newest = strtod(scan.version, NULL);
        memcpy(version, scan.version, sizeof scan.version);
    }
    return 0;
}

int make_bundle(int argc, char **argv)
{
    int count = argc - 1, rc = 0;
    struct text *texts = calloc((size_t)count, sizeof *texts);
    char version[8] = "";
    FILE *out = NULL;

    if (!texts) return complain(argv[0], "out of memory");
    for (int i = 0; i < count && !rc; i++) rc = text_read(&texts[i], argv[1 + i]);
    if (!rc) rc = newest_version(texts, count, argv + 1, version);
    if (!rc) rc = (out = text_create(argv[0])) ? 0 : -1;
    if (out) {
        fprintf(out, ".version %s\n", version);
        write_once(out, &texts[0]);
        for (int i = 0; i < count && !rc; i++) rc = append(out, &texts[i], argv[1 + i], i);
        if (text_close(out, argv[0]) != 0) rc = -1;
    }
    for (int i = 0; i < count; i++) text_free(&texts[i]);
    free(texts);
    return rc;
}

/* ---- machine code ---- */

/* A section of a 64-bit little-endian ELF file. */
struct section {
    const char *name;
    const char *bytes;
    size_t size;
    unsigned type;
};

enum { ELF_HEADER_BYTES = 64, SECTION_HEADER_BYTES = 64, SHT_NOBITS = 8 };

static uint64_t read_le(const char *p, int bytes)
{
    uint64_t value = 0;

    while (bytes-- > 0) value = value << 8 | (unsigned char)p[bytes];
    return value;
}

/* Section `index`, without its name; false where the file does not hold it. */
static int section_at(const struct text *elf, uint64_t index, struct section *out,
                      uint64_t *name_offset)
{
    uint64_t table = read_le(elf->data + 40, 8), offset;
    const char *p;

    if (table > elf->size || (index + 1) * SECTION_HEADER_BYTES > elf->size - table) return 0;
    p = elf->data + table + index * SECTION_HEADER_BYTES;
    *name_offset = read_le(p, 4);
    out->type = (unsigned)read_le(p + 4, 4);
    offset = read_le(p + 24, 8);
    out->size = read_le(p + 32, 8);
    if (out->type == SHT_NOBITS) offset = 0;
    if (offset > elf->size || (out->type != SHT_NOBITS && out->size > elf->size - offset)) return 0;
    out->bytes = elf->data + offset;
    return 1;
}

/* The same with its name: 1, 0 behind the last one, -1 for a file that is damaged. */
static int next_section(const struct text *elf, unsigned *index, struct section *out)
{
    struct section names;
    uint64_t at;

    if (elf->size < ELF_HEADER_BYTES || memcmp(elf->data, "\177ELF\2\1", 6) != 0) return -1;
    if (*index >= read_le(elf->data + 60, 2)) return 0;
    if (!section_at(elf, read_le(elf->data + 62, 2), &names, &at) || names.size == 0 ||
        names.type == SHT_NOBITS || names.bytes[names.size - 1] != '\0' ||
        !section_at(elf, (*index)++, out, &at) || at >= names.size)
        return -1;
    out->name = names.bytes + at;
    return 1;
}

static int find_section(const struct text *elf, const char *name, struct section *out)
{
    unsigned index = 0;
    int rc;

    while ((rc = next_section(elf, &index, out)) > 0)
        if (strcmp(out->name, name) == 0) return 1;
    return rc;
}

/* The kernel's code, constants and shared memory. What .nv.info says of it names symbols by number,
 * which are others in a bundle. */
static int is_code(const char *name)
{
    return strncmp(name, ".text.", 6) == 0 || strncmp(name, ".nv.constant", 12) == 0 ||
           (strncmp(name, ".nv.shared.", 11) == 0 && strncmp(name + 11, "reserved", 8) != 0);
}

static int compare_code(const struct text *bundle, const char *bundle_path, const char *path)
{
    struct text own;
    struct section want, got;
    unsigned index = 0, texts = 0;
    int rc = text_read(&own, path), more = 0;

    if (rc) return rc;
    while (!rc && (more = next_section(&own, &index, &want)) > 0) {
        if (!is_code(want.name)) continue;
        texts += strncmp(want.name, ".text.", 6) == 0;
        if (find_section(bundle, want.name, &got) != 1)
            rc = complain(bundle_path, "has no section %s", want.name);
        else if (got.type != want.type || got.size != want.size ||
                 (want.type != SHT_NOBITS && memcmp(got.bytes, want.bytes, want.size) != 0))
            rc = complain(bundle_path, "section %s is not that of %s", want.name, path);
    }
    if (!rc && (more < 0 || texts == 0)) rc = complain(path, "holds no machine code");
    text_free(&own);
    return rc;
}

int make_same(int argc, char **argv)
{
    struct text bundle;
    int rc = text_read(&bundle, argv[0]);

    for (int i = 1; i < argc && !rc; i++) rc = compare_code(&bundle, argv[0], argv[i]);
    text_free(&bundle);
    return rc;
}
