/*
 * A stand-in for ptxas, for tools that call it themselves. It checks a PTX text as the simulated driver does, and
 * wraps it, unchanged, into a fat binary that cuModuleLoadData takes in place of a cubin. A real driver takes it too
 * and compiles the text. Command line, messages and exit statuses are those of ptxas.
 */
#include "cuda/driver.h"
#include "hewn.h"
#include "machine/registers.h"
#include "ops/table.h"
#include "ptx/fatbin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF_(x) #x
#define TEXT_OF(x)  TEXT_OF_(x)

enum {
    FAILED = 255, /* exit status */
    REGS_PER_SM = 65536
};

/* ---- the command line ---- */

enum field {
    IGNORED,
    OUTPUT_FILE,
    GPU_NAME,
    VERBOSE,
    NO_WARNINGS,
    WARNINGS_FAIL,
    OPTIONS_FILE,
    PTX_STRING,
    SHOW_VERSION,
    SHOW_PTX_VERSIONS,
    SHOW_HELP,
    FIELDS
};

/* The options that are heeded, and those whose value may be a word of its own. Any other is passed over: ptxas has
 * more than its --help lists. */
static const struct option {
    const char *name, *brief;
    enum field field;
    bool valued;
} options[] = {
    {"output-file", "o", OUTPUT_FILE, true},
    {"gpu-name", "arch", GPU_NAME, true},
    {"verbose", "v", VERBOSE, false},
    {"verbose2", "v2", VERBOSE, false},
    {"disable-warnings", "w", NO_WARNINGS, false},
    {"warning-as-error", "Werror", WARNINGS_FAIL, false},
    {"options-file", "optf", OPTIONS_FILE, true},
    {"input-as-string", "ias", PTX_STRING, true},
    {"version", "V", SHOW_VERSION, false},
    {"list-version", "version-ls", SHOW_PTX_VERSIONS, false},
    {"help", "h", SHOW_HELP, false},
    {"Ofast-compile", "Ofc", IGNORED, true},
    {"allow-expensive-optimizations", "allow-expensive-optimizations", IGNORED, true},
    {"apply-controls", "apply-controls", IGNORED, true},
    {"def-load-cache", "dlcm", IGNORED, true},
    {"def-store-cache", "dscm", IGNORED, true},
    {"device-function-maxrregcount", "func-maxrregcount", IGNORED, true},
    {"device-stack-protector", "device-stack-protector", IGNORED, true},
    {"enable-func-clone-sc", "enable-func-clone-sc", IGNORED, true},
    {"entry", "e", IGNORED, true},
    {"fmad", "fmad", IGNORED, true},
    {"force-load-cache", "flcm", IGNORED, true},
    {"force-store-cache", "fscm", IGNORED, true},
    {"machine", "m", IGNORED, true},
    {"maxntid", "maxntid", IGNORED, true},
    {"maxrregcount", "maxrregcount", IGNORED, true},
    {"minnctapersm", "minnctapersm", IGNORED, true},
    {"opt-level", "O", IGNORED, true},
    {"position-independent-code", "pic", IGNORED, true},
    {"register-usage-level", "regUsageLevel", IGNORED, true},
    {"sanitize", "sanitize", IGNORED, true},
    {"split-compile", "split-compile", IGNORED, true},
};

struct arguments {
    const char *value[FIELDS]; /* NULL: not given; "" for an option without a value */
    const char *input;
};

static int fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int fatal(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    fputs("ptxas fatal   : ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    return FAILED;
}

/* The option of that name, of which *value is the text behind `=`, or NULL. */
static const struct option *option_named(const char *word, const char **value)
{
    const char *name = word + strspn(word, "-"), *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);

    *value = equals ? equals + 1 : NULL;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const struct option *o = &options[i];
        if (strlen(o->name) == length && !strncmp(o->name, name, length)) return o;
        if (strlen(o->brief) == length && !strncmp(o->brief, name, length)) return o;
    }
    return NULL;
}

/* 0, or the exit status after a message. */
static int read_arguments(struct arguments *a, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const struct option *o;
        const char *value;

        if (argv[i][0] != '-') {
            if (a->input) return fatal("one input file at a time: '%s', '%s'", a->input, argv[i]);
            a->input = argv[i];
            continue;
        }
        o = option_named(argv[i], &value);
        if (!o) continue;
        if (o->valued && !value && ++i == argc)
            return fatal("argument expected after '%s'", argv[i - 1]);
        a->value[o->field] = !o->valued ? "" : value ? value : argv[i];
    }
    if (a->value[OPTIONS_FILE])
        return fatal("option 'options-file' is not supported by this stand-in");
    return 0;
}

static void show_help(void)
{
    puts("Usage  : ptxas [options] <ptx file>\n\n"
         "A stand-in of hewn's simulated driver. It checks the PTX and wraps it for that driver.\n"
         "It writes no machine code. Options of ptxas that are not listed are accepted and do\n"
         "nothing.\n\n"
         "--gpu-name <sm_90a, ...>   (-arch)  compile for this GPU (default: the text's .target)\n"
         "--output-file <file>       (-o)     output file (default: elf.o)\n"
         "--input-as-string <ptx>    (-ias)   the PTX itself, in place of a file\n"
         "--verbose                  (-v)     print shared memory and registers of each entry\n"
         "--disable-warnings         (-w)     print no warnings\n"
         "--warning-as-error         (-Werror)\n"
         "--list-version             (-version-ls)\n"
         "--version                  (-V)\n"
         "--help                     (-h)");
}

/* Tools look for "release N.M" to learn which PTX they may write: CUDA 13.N brought PTX 9.N. */
static void show_version(void)
{
    int major = DRIVER_VERSION / 1000, minor = DRIVER_VERSION % 1000 / 10;

    printf("ptxas: stand-in of hewn's simulated driver, writes no machine code\n"
           "hewn " TEXT_OF(HEWN_VERSION_MAJOR) "." TEXT_OF(HEWN_VERSION_MINOR) "." TEXT_OF(
               HEWN_VERSION_PATCH) "\n"
                                   "Cuda compilation tools, release %d.%d, V%d.%d.0\n",
           major, minor, major, minor);
}

/* ---- the GPU ---- */

static const unsigned architectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121};

/* GPUs for which ptxas takes a text, but no longer compiles. */
static const unsigned older[] = {10, 11, 12, 13, 20, 21, 30, 32, 35,
                                 37, 50, 52, 53, 60, 61, 62, 70, 72};

/* Splits "sm_103a", or "compute_103a" (*virtual_only): the number and the suffix. */
static bool read_gpu(const char *name, unsigned *arch, char *suffix, bool *virtual_only)
{
    int used = 0;

    *virtual_only = !strncmp(name, "compute_", 8);
    *suffix = '\0';
    if (sscanf(name, *virtual_only ? "compute_%3u%n" : "sm_%3u%n", arch, &used) != 1) return false;
    if (name[used] && strcmp(name + used, "a") != 0 && strcmp(name + used, "f") != 0) return false;
    *suffix = name[used];
    if (*suffix && *arch < (*suffix == 'a' ? 90U : 100U)) return false;
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (architectures[i] == *arch) return true;
    return false;
}

static bool older_target(const char *target)
{
    unsigned arch;
    int used = 0;

    if (sscanf(target, "sm_%3u%n", &arch, &used) != 1 || target[used]) return false;
    for (size_t i = 0; i < sizeof older / sizeof *older; i++)
        if (older[i] == arch) return true;
    return false;
}

/* Whether text for `target` can be compiled for that GPU. */
static int check_target(const char *target, unsigned arch, char suffix)
{
    unsigned text_arch;
    char text_suffix;
    bool virtual_only;

    if (older_target(target)) return 0;
    if (!read_gpu(target, &text_arch, &text_suffix, &virtual_only) || virtual_only)
        return fatal("Value '%s' is not defined for option 'gpu-name'", target);
    if (text_arch > arch)
        return fatal("SM version specified by .target is higher than default SM version assumed");
    if (text_suffix == 'a' && (text_arch != arch || suffix != 'a'))
        return fatal("Program with .target '%s' cannot be compiled to future architecture", target);
    if (text_suffix == 'f' && text_arch / 10 != arch / 10)
        return fatal("Program with .target '%s' cannot be compiled to other families", target);
    return 0;
}

/* ---- the text ---- */

struct text {
    char *data; /* NUL-terminated */
    size_t size;
};

static int read_text(struct text *t, const struct arguments *a)
{
    FILE *file;
    size_t room = 1 << 16, got = 1;

    if (a->value[PTX_STRING]) {
        t->data = strdup(a->value[PTX_STRING]);
        t->size = t->data ? strlen(t->data) : 0;
        return t->data ? 0 : fatal("out of memory");
    }
    if (!a->input) return fatal("no input file");
    file = fopen(a->input, "rb");
    if (!file) return fatal("Input file '%s' could not be opened", a->input);
    while (got) {
        char *more = realloc(t->data, t->size + room + 1);
        if (!more) break;
        t->data = more;
        got = fread(t->data + t->size, 1, room, file);
        t->size += got;
        room = t->size + 1;
    }
    if (got || ferror(file)) {
        fclose(file);
        return fatal("Input file '%s' could not be read", a->input);
    }
    fclose(file);
    t->data[t->size] = '\0';
    return 0;
}

/* "file, line N; error: why" as ptxas prints it. */
static int syntax_error(const struct ptx_diag *diag)
{
    const char *mark = strstr(diag->text, "; error: ");

    if (mark)
        fprintf(stderr, "ptxas %.*s; error   : %s\n", (int)(mark - diag->text), diag->text,
                mark + strlen("; error: "));
    else
        fprintf(stderr, "ptxas error   : %s\n", diag->text);
    return fatal("Ptx assembly aborted due to errors");
}

static void show_usage(const struct ptx_entry *e, const char *gpu)
{
    uint32_t regs = entry_registers(e, REGS_PER_SM);

    fprintf(stderr,
            "ptxas info    : Compiling entry function '%s' for '%s'\n"
            "ptxas info    : Function properties for %s\n"
            "    %u bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
            "ptxas info    : Used %u registers, %u bytes smem\n",
            e->name, gpu, e->name, e->frame_bytes, regs ? regs : REGISTERS_UNBOUND,
            e->shared_bytes);
}

/* Decodes an entry as the driver does at load. */
static int check_entry(const struct ptx_module *m, const struct ptx_entry *e,
                       const struct arguments *a)
{
    struct kernel *kernel = NULL;
    struct ptx_diag diag = {""};
    int rc = kernel_decode(m, e, op_binders, &kernel, &diag);
    bool warn = !rc && kernel->unsupported && !a->value[NO_WARNINGS];

    if (warn)
        fprintf(stderr, "ptxas %s, line %u; warning : '%s' will not launch on the simulator: %s\n",
                ptx_file(m, kernel->unsupported_pos), kernel->unsupported_pos.line, e->name,
                kernel->unsupported);
    if (kernel) kernel_free(kernel);
    if (rc == -2) return syntax_error(&diag);
    if (rc) return fatal("out of memory");
    return warn && a->value[WARNINGS_FAIL] ? FAILED : 0;
}

static int check_module(const struct ptx_module *m, const struct arguments *a, const char *gpu)
{
    int status = 0;

    if (a->value[VERBOSE])
        fprintf(stderr, "ptxas info    : %llu bytes gmem, %llu bytes cmem[3]\n",
                (unsigned long long)m->global_bytes, (unsigned long long)m->const_bytes);
    for (uint32_t i = 0; i < m->entry_count && !status; i++) {
        status = check_entry(m, &m->entries[i], a);
        if (!status && a->value[VERBOSE]) show_usage(&m->entries[i], gpu);
    }
    return status;
}

/* ---- the image ---- */

static int write_image(const struct text *t, const struct ptx_module *m, const char *path)
{
    uint8_t head[FATBIN_HEAD_BYTES];
    static const char zeros[8];
    size_t bytes = t->size + 1; /* its NUL is part of the entry, as CUDA's tools have it */
    const struct fatbin_text entry = {
        .target = m->target, .version = m->version, .stored = bytes, .bytes = bytes};
    FILE *out;
    bool written;

    if (fatbin_put_head(head, &entry)) return fatal(".target '%s' is unknown", m->target);
    out = fopen(path, "wb");
    if (!out) return fatal("Output file '%s' could not be opened", path);
    written = fwrite(head, sizeof head, 1, out) == 1 && fwrite(t->data, bytes, 1, out) == 1 &&
              fwrite(zeros, 1, (8 - bytes % 8) % 8, out) == (8 - bytes % 8) % 8;
    if (fclose(out) || !written) {
        remove(path);
        return fatal("Output file '%s' could not be written", path);
    }
    return 0;
}

static int compile(const struct text *t, const struct arguments *a)
{
    const char *name = a->value[PTX_STRING] ? "<string>" : a->input, *gpu = a->value[GPU_NAME];
    struct ptx_module *m = NULL;
    struct ptx_diag diag = {""};
    unsigned arch = 0, major, minor;
    char suffix = '\0';
    bool virtual_only = false;
    int status = 0;

    if (gpu && !read_gpu(gpu, &arch, &suffix, &virtual_only))
        return fatal("Value '%s' is not defined for option 'gpu-name'", gpu);
    if (ptx_parse_file(name, t->data, t->size, &m, &diag)) return syntax_error(&diag);
    major = m->version / 10;
    minor = m->version % 10;
    if (m->version > PTX_VERSION_MAX)
        status = fatal("Unsupported .version %u.%u; current version is '%d.%d'", major, minor,
                       PTX_VERSION_MAX / 10, PTX_VERSION_MAX % 10);
    if (!status && gpu) status = check_target(m->target, arch, suffix);
    if (!status) status = check_module(m, a, gpu ? gpu : m->target);
    if (!status && !virtual_only)
        status = write_image(t, m, a->value[OUTPUT_FILE] ? a->value[OUTPUT_FILE] : "elf.o");
    ptx_module_free(m);
    return status;
}

int main(int argc, char **argv)
{
    struct arguments a = {.input = NULL};
    struct text text = {NULL, 0};
    int status = read_arguments(&a, argc, argv);

    if (status) return status;
    if (argc == 1 || a.value[SHOW_HELP]) {
        show_help();
    } else if (a.value[SHOW_VERSION]) {
        show_version();
    } else if (a.value[SHOW_PTX_VERSIONS]) {
        printf("up to %d.%d\n", PTX_VERSION_MAX / 10, PTX_VERSION_MAX % 10);
    } else {
        status = read_text(&text, &a);
        if (!status) status = compile(&text, &a);
        free(text.data);
    }
    return status;
}
