/* From image to module: telling what an image is, compiling PTX, JIT logs, globals, lookups. */
#include "cuda/driver.h"
#include "cuda/repeat.h"
#include "check/counters.h"
#include "ops/table.h"

#include "ptx/cubin.h"
#include "ptx/fatbin.h"
#include "ptx/join.h"

#include <stdio.h>
#include <stdlib.h>

/* What a kernel may declare statically; ptxas refuses more (PTX is compiled at load). */
enum { STATIC_SHARED_MAX = 48 * 1024 };

/* ---- JIT options ---- */

struct jit_log {
    char *buffer;
    size_t size;
    void **size_value; /* where the filled size goes back to, or NULL */
};

struct jit {
    struct jit_log info, error;
    bool names; /* of machine code that holds no PTX, the kernels' names do */
    char message[640];
};

/* Options travel as an array of ids and one of values, scalars inside the pointers. */
static int read_options(struct jit *jit, unsigned count, const int *options, void **values)
{
    if (count && (!options || !values)) return HEWN_CU_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        switch (options[i]) {
        case HEWN_CU_JIT_INFO_LOG_BUFFER: jit->info.buffer = values[i]; break;
        case HEWN_CU_JIT_ERROR_LOG_BUFFER: jit->error.buffer = values[i]; break;
        case HEWN_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: jit->info.size_value = &values[i]; break;
        case HEWN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: jit->error.size_value = &values[i]; break;
        case HEWN_CU_JIT_WALL_TIME: values[i] = NULL; break; /* a float of milliseconds: none */
        default:
            if (options[i] < 0 || options[i] >= HEWN_CU_JIT_OPTION_COUNT)
                return HEWN_CU_INVALID_VALUE;
        }
    }
    if (jit->info.size_value) jit->info.size = (unsigned)(uintptr_t)*jit->info.size_value;
    if (jit->error.size_value) jit->error.size = (unsigned)(uintptr_t)*jit->error.size_value;
    return 0;
}

static void write_log(const struct jit_log *log, const char *text)
{
    size_t filled = 0;

    if (log->buffer && log->size) {
        snprintf(log->buffer, log->size, "%s", text);
        filled = strlen(log->buffer);
    }
    if (log->size_value) *log->size_value = (void *)(uintptr_t)filled;
}

static int reject(struct jit *jit, int result, const char *text)
{
    snprintf(jit->message, sizeof jit->message, "%s", text);
    return result;
}

/* ---- what an image is ---- */

/* Compares byte by byte: an image may be shorter than the magic number it is asked for. */
static bool begins_with(const char *image, const char *magic)
{
    while (*magic && *image == *magic) image++, magic++;
    return !*magic;
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

static unsigned line_of(const char *text, const char *at)
{
    unsigned line = 1;

    for (; text < at; text++) line += *text == '\n';
    return line;
}

/* 0 for PTX text that this driver takes, its version not newer than PTX_VERSION_MAX. A text that begins with
 * anything but .version, a line marker included, is not recognised, as on the real driver. */
static int classify(const char *image, struct jit *jit)
{
    unsigned major = 0, minor = 0;
    const char *text;

    if (cubin_is(image, SIZE_MAX))
        return reject(
            jit, HEWN_CU_NO_BINARY_FOR_GPU,
            "machine code does not run on this simulated device; give it the PTX, or have "
            "ptxas keep the PTX in the cubin (-lineinfo)");
    text = skip_blank(image);
    if (!begins_with(text, ".version"))
        return reject(jit, HEWN_CU_INVALID_IMAGE,
                      "the image is neither ELF nor PTX text that begins with .version");
    if (sscanf(text, ".version %u.%u", &major, &minor) == 2 &&
        (major > PTX_VERSION_MAX / 10 || major * 10 + minor > PTX_VERSION_MAX)) {
        snprintf(jit->message, sizeof jit->message,
                 "ptx input, line %u; error: .version %u.%u is newer than %d.%d, the newest that "
                 "this driver takes",
                 line_of(image, text), major, minor, PTX_VERSION_MAX / 10, PTX_VERSION_MAX % 10);
        return HEWN_CU_UNSUPPORTED_PTX_VERSION;
    }
    return 0;
}

/* Splits "sm_103a": 103, and the suffix as returned; NULL for what is no target. */
static const char *target_split(const char *target, uint32_t *arch)
{
    int used = 0;
    return sscanf(target, "sm_%3u%n", arch, &used) == 1 ? target + used : NULL;
}

uint32_t target_arch(const char *target)
{
    uint32_t arch;
    return target_split(target, &arch) ? arch : 0;
}

bool target_runs(const char *target, const struct gpu *gpu)
{
    uint32_t arch, major, minor;
    const char *suffix = target_split(target, &arch);

    if (!suffix) return false;
    major = arch / 10;
    minor = arch % 10;
    if (!strcmp(suffix, "a")) return major == gpu->cc_major && minor == gpu->cc_minor;
    if (!strcmp(suffix, "f")) return major == gpu->cc_major && minor <= gpu->cc_minor;
    if (*suffix) return false;
    return major < gpu->cc_major || (major == gpu->cc_major && minor <= gpu->cc_minor);
}

/* ---- fat binaries ---- */

struct fat_wrapper { /* points to a container; nvcc writes them */
    uint32_t magic, version;
    uint64_t data;
    uint64_t
        parts; /* version 2: the containers of relocatable objects, NULL behind the last; else 0 */
};

enum { FAT_LINKED = 2, FAT_PARTS_MOST = 65536 };

static const char FAT_WRAPPER[] = "\xB1\x43\x62\x46", FAT_CONTAINER[] = "\x50\xED\x55\xBA";

/* How well an entry suits this device, 0: not at all. PTX comes first. A cubin may hold its PTX; it runs on devices of
 * its own major version alone. */
static unsigned fat_fit(const struct fatbin_entry *entry)
{
    enum { OF_A = 2000, OF_F = 1000, OF_PTX = 10000 };
    const struct gpu *gpu = &driver.settings.gpu;
    unsigned arch = entry->arch, fit;
    char target[24];

    if ((entry->kind != FATBIN_PTX && entry->kind != FATBIN_ELF) || arch > 999) return 0;
    snprintf(target, sizeof target, "sm_%u%.1s", arch, &entry->suffix);
    if (!target_runs(target, gpu)) return 0;
    fit = arch + (entry->suffix == 'a' ? OF_A : entry->suffix == 'f' ? OF_F : 0);
    if (entry->kind == FATBIN_PTX) return OF_PTX + fit;
    return arch / 10 == gpu->cc_major ? fit : 0;
}

/* Said once: the program cannot know that a driver which runs PTX alone is behind this. */
static void note_machine_code(const struct CUmod_st *module)
{
    static bool said;
    unsigned arch = module->machine_code, ptx = module->newest_ptx;

    if (said) return;
    said = true;
    if (!arch) {
        driver_note("the program or a library of it holds PTX for sm_%u, which this device cannot "
                    "run; its kernels do not run",
                    ptx);
        return;
    }
    if (ptx) {
        driver_note("the program or a library of it holds machine code for sm_%u, which the "
                    "simulator cannot run, and PTX for sm_%u, which this device cannot; its "
                    "kernels do not run",
                    arch, ptx);
        return;
    }
    driver_note("the program holds machine code only (sm_%u), which the simulator cannot run; let "
                "nvcc keep "
                "the PTX as well: -gencode arch=compute_%u,code=compute_%u",
                arch, arch, arch);
}

/* The PTX that machine code of a fat binary holds. */
static int ptx_of_cubin(const struct fatbin_entry *entry, char **text, struct jit *jit)
{
    char *cubin = *text;
    int rc = cubin_ptx(cubin, entry->bytes, text);

    if (rc == CUBIN_NO_PTX && jit->names) rc = cubin_names(cubin, entry->bytes, text);
    free(cubin);
    if (!rc) return 0;
    *text = NULL;
    return rc == CUBIN_NO_MEMORY
               ? HEWN_CU_OUT_OF_MEMORY
               : reject(jit, HEWN_CU_NO_BINARY_FOR_GPU,
                        "the fat binary has machine code for this simulated device, and no PTX");
}

static int unpack(const struct fatbin_entry *entry, char **out, struct jit *jit)
{
    int rc = fatbin_unpack(entry, out);

    if (rc == FATBIN_OK) return entry->kind == FATBIN_ELF ? ptx_of_cubin(entry, out, jit) : 0;
    if (rc == FATBIN_NO_MEMORY) return HEWN_CU_OUT_OF_MEMORY;
    return reject(jit, HEWN_CU_INVALID_IMAGE,
                  rc == FATBIN_TOO_LARGE
                      ? "the fat binary's entry becomes too large: 256 MiB and 1000 times the "
                        "stored bytes at most"
                      : "the fat binary's compressed entry is damaged");
}

/* What a container has, besides the PTX that was taken: the newest architectures, 0 for none. `in_cubin`: what fits best
 * is machine code, which may hold PTX. `later`: that is not looked for now. */
struct fat_held {
    unsigned machine_code, text;
    bool in_cubin, later;
};

/* The container's PTX that fits this device best, as a text of its own in *out; 209 with a message
 * where there is none. `size`: as for fatbin_open. */
static int container_ptx(const char *image, size_t size, char **out, struct fat_held *held,
                         struct jit *jit)
{
    struct fatbin fat;
    struct fatbin_entry entry, best = {.kind = 0};
    unsigned best_fit = 0;
    int rc;

    if (fatbin_open(&fat, image, size))
        return reject(jit, HEWN_CU_INVALID_IMAGE, "the fat binary is shorter than it says");
    while ((rc = fatbin_next(&fat, &entry)) > 0) {
        if (fat_fit(&entry) > best_fit) {
            best = entry;
            best_fit = fat_fit(&entry);
        }
        if (entry.kind == FATBIN_PTX && entry.arch > held->text) held->text = entry.arch;
        if (entry.kind == FATBIN_ELF) held->machine_code = entry.arch;
    }
    if (rc < 0)
        return reject(jit, HEWN_CU_INVALID_IMAGE, "the fat binary's entries overlap its end");
    held->in_cubin = best.kind == FATBIN_ELF;
    if (held->in_cubin) held->machine_code = best.arch;
    if (best_fit == 0)
        return reject(jit, HEWN_CU_NO_BINARY_FOR_GPU,
                      "the fat binary has no PTX for this simulated device");
    return held->in_cubin && held->later ? HEWN_CU_NO_BINARY_FOR_GPU : unpack(&best, out, jit);
}

/* The PTX of `count` texts as one, which takes them over; an error where a name is defined nowhere. */
static int linked_text(char **texts, size_t count, char **out, struct jit *jit)
{
    char message[512] = "";
    const char **names = calloc(count, sizeof *names);
    char(*made)[32] = calloc(count, sizeof *made);
    enum join_status status = JOIN_NO_MEMORY;

    for (size_t i = 0; names && made && i < count; i++) {
        (void)snprintf(made[i], sizeof made[i], "object %zu", i + 1);
        names[i] = made[i];
    }
    if (names && made)
        status =
            ptx_join((const char *const *)texts, names, count, true, out, message, sizeof message);
    free(names);
    free(made);
    if (status == JOIN_NO_MEMORY) return HEWN_CU_OUT_OF_MEMORY;
    return status ? reject(jit, HEWN_CU_INVALID_SOURCE, message) : 0;
}

/*
 * nvcc's link of relocatable objects leaves their PTX to the driver. An object without PTX for this device is left
 * out; a name that it defines is then missing, if it is used. 209: none of them has PTX.
 */
static int linked_ptx(const char *const *parts, char **out, struct fat_held *held, struct jit *jit)
{
    size_t count = 0, found = 0;
    char **texts;
    int rc = 0;

    while (count < FAT_PARTS_MOST && parts[count]) count++;
    texts = calloc(count + 1, sizeof *texts);
    if (!texts) return HEWN_CU_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && !rc; i++) {
        if (!begins_with(parts[i], FAT_CONTAINER)) continue;
        rc = container_ptx(parts[i], SIZE_MAX, &texts[found], held, jit);
        found += rc == 0;
        if (rc == HEWN_CU_NO_BINARY_FOR_GPU) rc = 0;
    }
    if (!rc) rc = found ? linked_text(texts, found, out, jit) : HEWN_CU_NO_BINARY_FOR_GPU;
    if (!rc) *jit->message = '\0'; /* of an object that was left out */
    for (size_t i = 0; i < found; i++) free(texts[i]);
    free(texts);
    return rc;
}

/*
 * As container_ptx, of a container or of what nvcc wraps around one. If nvcc wrapped it and no PTX fits, the module
 * remembers what it has instead. A library is not searched for PTX in machine code until a part of it is asked for:
 * programs have hundreds that nobody asks for.
 */
static int fat_ptx(const char *image, size_t size, char **out, struct jit *jit,
                   struct CUmod_st *module)
{
    struct fat_wrapper wrapper;
    struct fat_held held = {.later = false};
    const char *container;
    bool in_cubin;
    int rc;

    if (!begins_with(image, FAT_WRAPPER)) return container_ptx(image, size, out, &held, jit);
    memcpy(&wrapper, image, sizeof wrapper);
    container = (const char *)(uintptr_t)wrapper.data;
    if (!container || !begins_with(container, FAT_CONTAINER))
        return reject(jit, HEWN_CU_INVALID_IMAGE, "the fat binary's wrapper leads nowhere");
    held.later = !module->context && !module->image;
    rc = container_ptx(container, SIZE_MAX, out, &held, jit);
    in_cubin = held.in_cubin;
    if (rc == HEWN_CU_NO_BINARY_FOR_GPU && wrapper.version == FAT_LINKED && wrapper.parts)
        rc = linked_ptx((const char *const *)(uintptr_t)wrapper.parts, out, &held, jit);
    if (rc == HEWN_CU_NO_BINARY_FOR_GPU) {
        if (in_cubin && held.later) module->image = image;
        module->machine_code = held.machine_code;
        module->newest_ptx = held.text;
    }
    return rc;
}

/* ---- building a module ---- */

static int check_target(const struct ptx_module *ptx, struct jit *jit)
{
    const struct gpu *gpu = &driver.settings.gpu;

    if (target_runs(ptx->target, gpu)) return 0;
    snprintf(jit->message, sizeof jit->message,
             ".target %s does not run on this device of compute capability %u.%u", ptx->target,
             gpu->cc_major, gpu->cc_minor);
    return HEWN_CU_INVALID_PTX;
}

static int build_function(struct CUmod_st *module, uint32_t index, struct jit *jit)
{
    struct CUfunc_st *f = &module->functions[index];
    const struct ptx_entry *entry = &module->ptx->entries[index];
    struct ptx_diag diag = {""};
    int rc = kernel_decode(module->ptx, entry, op_binders, &f->kernel, &diag);

    f->module = module;
    f->carveout = -1;
    if (rc == -2) return reject(jit, HEWN_CU_INVALID_PTX, diag.text);
    if (rc) return HEWN_CU_OUT_OF_MEMORY;
    if (entry->shared_bytes > STATIC_SHARED_MAX) {
        snprintf(jit->message, sizeof jit->message,
                 "%s, line %u; error: entry '%s' declares %u bytes of static shared memory, "
                 "%d at most",
                 ptx_file(module->ptx, entry->pos), entry->pos.line, entry->name,
                 entry->shared_bytes, STATIC_SHARED_MAX);
        return HEWN_CU_INVALID_PTX;
    }
    f->max_dynamic_shared = STATIC_SHARED_MAX - entry->shared_bytes;
    return handle_add(f, HANDLE_FUNCTION, f, module->context);
}

static int build_functions(struct CUmod_st *module, struct jit *jit)
{
    uint32_t count = module->ptx->entry_count;
    int rc = 0;

    module->functions = calloc(count ? count : 1, sizeof *module->functions);
    if (!module->functions) return HEWN_CU_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < count && !rc; i++) rc = build_function(module, i, jit);
    return rc;
}

/* One space's image in device memory, so that its addresses are good for copies too. */
static int build_image(const struct ptx_module *ptx, enum ptx_space space, uint64_t bytes,
                       uint8_t **out)
{
    uint64_t address;
    int rc;

    if (!bytes) return 0;
    rc = mem_alloc(bytes, &address);
    if (rc) return rc;
    *out = (uint8_t *)(uintptr_t)address;
    memset(*out, 0, bytes);
    for (uint32_t i = 0; i < ptx->global_count; i++) {
        const struct ptx_var *var = ptx->globals[i];
        if (var->space == space && var->init) memcpy(*out + var->offset, var->init, var->bytes);
    }
    return 0;
}

/* Addresses in initial values, once both images have theirs. */
static void relocate(const struct CUmod_st *module)
{
    for (uint32_t i = 0; i < module->ptx->global_count; i++) {
        const struct ptx_var *var = module->ptx->globals[i];
        uint8_t *image = var->space == SPACE_CONST ? module->consts : module->globals;

        for (const struct ptx_reloc *r = var->relocs; r; r = r->next) {
            const uint8_t *target = r->var->space == SPACE_CONST ? module->consts : module->globals;
            uint64_t value = (uint64_t)(uintptr_t)target + r->var->offset + (uint64_t)r->addend;

            value >>= r->shift;
            memcpy(image + var->offset + r->at, &value, r->size);
        }
    }
}

static int build(struct CUmod_st *module, const char *name, const char *text, struct jit *jit)
{
    struct ptx_diag diag = {""};
    int rc;

    if (ptx_parse_file(name, text, strlen(text), &module->ptx, &diag))
        return reject(jit, HEWN_CU_INVALID_PTX, diag.text);
    rc = check_target(module->ptx, jit);
    if (!rc) rc = build_functions(module, jit);
    if (!rc)
        rc = build_image(module->ptx, SPACE_GLOBAL, module->ptx->global_bytes, &module->globals);
    if (!rc) rc = build_image(module->ptx, SPACE_CONST, module->ptx->const_bytes, &module->consts);
    if (!rc) relocate(module);
    return rc;
}

static void unbuild(struct CUmod_st *module)
{
    for (uint32_t i = 0; module->ptx && module->functions && i < module->ptx->entry_count; i++) {
        handle_drop(&module->functions[i]);
        if (module->functions[i].kernel) kernel_free(module->functions[i].kernel);
        free(module->functions[i].legacy);
        counters_free(module->functions[i].counters);
    }
    free(module->functions);
    if (module->globals) mem_free((uint64_t)(uintptr_t)module->globals);
    if (module->consts) mem_free((uint64_t)(uintptr_t)module->consts);
    if (module->ptx) ptx_module_free(module->ptx);
    module->functions = NULL;
    module->globals = module->consts = NULL;
    module->ptx = NULL;
}

void module_unload(struct CUmod_st *module)
{
    handle_drop(module);
    repeat_forget();
    unbuild(module);
    free(module);
}

/* Fills the module from PTX, a fat binary or a cubin. */
static int load_image(struct CUmod_st *module, const char *name, const char *image, size_t size,
                      struct jit *jit)
{
    char *text = NULL;
    int rc = 0;

    if (begins_with(image, FAT_WRAPPER) || begins_with(image, FAT_CONTAINER))
        rc = fat_ptx(image, size, &text, jit, module);
    else if (cubin_is(image, SIZE_MAX) && cubin_ptx(image, size, &text) == CUBIN_NO_MEMORY)
        rc = HEWN_CU_OUT_OF_MEMORY;
    if (text) image = text;
    if (!rc) rc = classify(image, jit);
    if (!rc) rc = build(module, name, image, jit);
    free(text);
    if (rc) unbuild(module);
    return rc;
}

int module_text(const char *image, size_t size, char **out)
{
    struct jit jit = {0};
    struct CUmod_st holds = {.image = image}; /* nothing is put off */

    if (size >= sizeof(uint32_t) &&
        (begins_with(image, FAT_WRAPPER) || begins_with(image, FAT_CONTAINER)))
        return fat_ptx(image, size, out, &jit, &holds);
    *out = malloc(size + 1);
    if (!*out) return HEWN_CU_OUT_OF_MEMORY;
    memcpy(*out, image, size);
    (*out)[size] = '\0';
    return 0;
}

void module_log(unsigned option_count, const int *options, void **values, const char *message)
{
    struct jit jit = {0};
    if (!read_options(&jit, option_count, options, values)) write_log(&jit.error, message);
}

/* Programs on CUDA's runtime do not see the JIT log; what it says is said once. A loader that is told 209 tries
 * another image. */
static void note_refused_load(int rc, const char *message)
{
    static char said[sizeof((struct jit *)0)->message];

    if (!*message || rc == HEWN_CU_NO_BINARY_FOR_GPU || !strcmp(said, message)) return;
    snprintf(said, sizeof said, "%s", message);
    driver_note("a module does not load (%d): %s", rc, message);
}

int module_load(struct CUctx_st *context, const char *image, size_t size, struct CUmod_st **out,
                const char *name, unsigned option_count, const int *options, void **values)
{
    struct jit jit = {0};
    struct CUmod_st *module;
    int rc;

    if (!out || !image) return HEWN_CU_INVALID_VALUE;
    rc = read_options(&jit, option_count, options, values);
    if (rc) return rc;
    module = calloc(1, sizeof *module);
    if (!module) return HEWN_CU_OUT_OF_MEMORY;
    module->context = context;
    rc = load_image(module, name, image, size, &jit);
    if (rc && (module->machine_code || module->newest_ptx)) {
        if (context)
            note_machine_code(module);
        else
            rc = 0; /* a library is loaded all the same, and its kernels are refused */
    }
    if (!rc) rc = handle_add(module, HANDLE_MODULE, module, context);
    write_log(&jit.info, "");
    write_log(&jit.error, rc ? jit.message : "");
    if (rc) {
        note_refused_load(rc, jit.message);
        module_unload(module);
        return rc;
    }
    *out = module;
    return 0;
}

/* A whole file, NUL-terminated; NULL with *rc set. */
char *file_read(const char *path, size_t *bytes, int *rc)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0, capacity = 0, got = 1;

    *rc = HEWN_CU_FILE_NOT_FOUND;
    if (!f) return NULL;
    while (got) {
        if (capacity - size < 2) {
            char *wider = realloc(text, capacity = capacity ? 2 * capacity : 65536);
            if (!wider) break;
            text = wider;
        }
        got = fread(text + size, 1, capacity - size - 1, f);
        size += got;
    }
    *rc = got ? HEWN_CU_OUT_OF_MEMORY : ferror(f) ? HEWN_CU_OPERATING_SYSTEM : 0;
    fclose(f);
    if (*rc) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    *bytes = size;
    return text;
}

static int load_file(struct CUctx_st *context, const char *path, struct CUmod_st **out,
                     unsigned count, const int *options, void **values)
{
    size_t size;
    char *image;
    int rc;

    if (!out || !path) return HEWN_CU_INVALID_VALUE;
    image = file_read(path, &size, &rc);
    if (!image) return rc;
    rc = module_load(context, image, size, out, path, count, options, values);
    free(image);
    return rc;
}

/* ---- modules ---- */

int cuModuleLoad(hewn_cu_module *module, const char *path)
{
    struct call call CALL_SCOPE;
    if (call_enter(&call, CALL_UNSAFE)) return call.rc;
    return load_file(call.context, path, module, 0, NULL, NULL);
}

int cuModuleLoadData(hewn_cu_module *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

int cuModuleLoadDataEx(hewn_cu_module *module, const void *image, unsigned count, int *options,
                       void **values)
{
    struct call call CALL_SCOPE;
    if (call_enter(&call, CALL_UNSAFE)) return call.rc;
    return module_load(call.context, image, SIZE_MAX, module, NULL, count, options, values);
}

int cuModuleLoadFatBinary(hewn_cu_module *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

int cuModuleUnload(hewn_cu_module module)
{
    struct call call CALL_SCOPE;
    struct CUmod_st *m;

    if (call_enter(&call, CALL_RELEASE)) return call.rc;
    m = handle_get(module, HANDLE_MODULE);
    if (!m || !m->context) return HEWN_CU_INVALID_HANDLE; /* a library's goes with the library */
    module_unload(m);
    return call.context->fault;
}

struct CUfunc_st *function_named(struct CUmod_st *module, const char *name)
{
    const struct ptx_entry *entry = ptx_find_entry(module->ptx, name);
    return entry ? &module->functions[entry - module->ptx->entries] : NULL;
}

/* The module of a handle. A library loads even if this device can run nothing of it, as many libraries have
 * kernels for some devices alone; asking for a part of it is the error. Of machine code for this device there are
 * functions, as libraries ask for some when they start; launching one is the error. */
static int module_of(void *handle, struct CUmod_st **out)
{
    struct CUmod_st *module = handle_get(handle, HANDLE_MODULE);
    struct jit jit = {0};
    int rc = HEWN_CU_NO_BINARY_FOR_GPU;

    if (!module) return HEWN_CU_INVALID_HANDLE;
    *out = module;
    if (module->ptx) return 0;
    if (module->image) {
        rc = load_image(module, NULL, module->image, SIZE_MAX, &jit);
        if (rc == HEWN_CU_NO_BINARY_FOR_GPU) {
            note_machine_code(module);
            jit.names = module->names_only = true;
            if (!load_image(module, NULL, module->image, SIZE_MAX, &jit)) rc = 0;
        }
        module->image = NULL; /* once is enough */
        if (!rc) return 0;
        note_refused_load(rc, jit.message);
    }
    if (rc == HEWN_CU_NO_BINARY_FOR_GPU) note_machine_code(module);
    return rc;
}

static int get_function(void *handle, const char *name, struct CUfunc_st **out)
{
    struct CUmod_st *module;
    struct CUfunc_st *f;
    int rc;

    if (!out || !name) return HEWN_CU_INVALID_VALUE;
    rc = module_of(handle, &module);
    if (rc) return rc;
    f = function_named(module, name);
    if (!f) return HEWN_CU_NOT_FOUND;
    *out = f;
    return 0;
}

static int get_count(void *handle, unsigned *count)
{
    struct CUmod_st *module;
    int rc;

    if (!count) return HEWN_CU_INVALID_VALUE;
    rc = module_of(handle, &module);
    if (rc) return rc;
    *count = module->ptx->entry_count;
    return 0;
}

static int enumerate(void *handle, unsigned count, struct CUfunc_st **out)
{
    struct CUmod_st *module;
    int rc;

    if (!out) return HEWN_CU_INVALID_VALUE;
    rc = module_of(handle, &module);
    if (rc) return rc;
    for (unsigned i = 0; i < count && i < module->ptx->entry_count; i++)
        out[i] = &module->functions[i];
    return 0;
}

static int get_global(void *handle, const char *name, hewn_cu_deviceptr *address, size_t *bytes)
{
    struct CUmod_st *module;
    int rc;

    if (!name || (!address && !bytes)) return HEWN_CU_INVALID_VALUE;
    rc = module_of(handle, &module);
    if (rc) return rc;
    for (uint32_t i = 0; i < module->ptx->global_count; i++) {
        const struct ptx_var *var = module->ptx->globals[i];
        const uint8_t *image = var->space == SPACE_CONST ? module->consts : module->globals;
        if (!image || strcmp(var->name, name) != 0) continue;
        if (address) *address = (uint64_t)(uintptr_t)image + var->offset;
        if (bytes) *bytes = var->bytes;
        return 0;
    }
    return HEWN_CU_NOT_FOUND;
}

int cuModuleGetFunction(hewn_cu_function *function, hewn_cu_module module, const char *name)
{
    struct call call CALL_SCOPE;
    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    return get_function(module, name, function);
}

int cuModuleGetFunctionCount(unsigned *count, hewn_cu_module module)
{
    struct call call CALL_SCOPE;
    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    return get_count(module, count);
}

int cuModuleEnumerateFunctions(hewn_cu_function *functions, unsigned count, hewn_cu_module module)
{
    struct call call CALL_SCOPE;
    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    return enumerate(module, count, functions);
}

int cuModuleGetGlobal_v2(hewn_cu_deviceptr *address, size_t *bytes, hewn_cu_module module,
                         const char *name)
{
    struct call call CALL_SCOPE;
    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    return get_global(module, name, address, bytes);
}

int cuModuleGetLoadingMode(int *mode)
{
    enum { EAGER_LOADING = 1 };
    struct call call CALL_SCOPE;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!mode) return HEWN_CU_INVALID_VALUE;
    *mode = EAGER_LOADING;
    return 0;
}

/* ---- libraries: modules that no context owns, loaded at once. A CUkernel is its function. ---- */

static void *library_of(struct CUmod_st *module)
{
    return module;
}

int cuLibraryLoadData(hewn_cu_library *library, const void *image, int *options, void **values,
                      unsigned count, int *library_options, void **library_values,
                      unsigned library_count)
{
    struct call call CALL_SCOPE;
    struct CUmod_st *module = NULL;
    int rc;

    (void)library_values;
    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!library || (library_count && !library_options)) return HEWN_CU_INVALID_VALUE;
    rc = module_load(NULL, image, SIZE_MAX, &module, NULL, count, options, values);
    if (!rc) *library = library_of(module);
    return rc;
}

int cuLibraryLoadFromFile(hewn_cu_library *library, const char *path, int *options, void **values,
                          unsigned count, int *library_options, void **library_values,
                          unsigned library_count)
{
    struct call call CALL_SCOPE;
    struct CUmod_st *module = NULL;
    int rc;

    (void)library_values;
    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!library || (library_count && !library_options)) return HEWN_CU_INVALID_VALUE;
    rc = load_file(NULL, path, &module, count, options, values);
    if (!rc) *library = library_of(module);
    return rc;
}

/* The library's module, or NULL. */
static struct CUmod_st *library_named(hewn_cu_library library)
{
    struct CUmod_st *module = handle_get(library, HANDLE_MODULE);
    return module && !module->context ? module : NULL;
}

int cuLibraryUnload(hewn_cu_library library)
{
    struct call call CALL_SCOPE;
    struct CUmod_st *module;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    module = library_named(library);
    if (!module) return HEWN_CU_INVALID_HANDLE;
    module_unload(module);
    return 0;
}

int cuLibraryGetKernel(hewn_cu_kernel *kernel, hewn_cu_library library, const char *name)
{
    struct call call CALL_SCOPE;
    struct CUfunc_st *f;
    int rc;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!kernel) return HEWN_CU_INVALID_VALUE;
    rc = get_function(library_named(library), name, &f);
    if (!rc) *kernel = (hewn_cu_kernel)(void *)f;
    return rc;
}

int cuLibraryGetKernelCount(unsigned *count, hewn_cu_library library)
{
    struct call call CALL_SCOPE;
    if (call_enter(&call, NEED_INIT)) return call.rc;
    return get_count(library_named(library), count);
}

int cuLibraryEnumerateKernels(hewn_cu_kernel *kernels, unsigned count, hewn_cu_library library)
{
    struct call call CALL_SCOPE;
    if (call_enter(&call, NEED_INIT)) return call.rc;
    return enumerate(library_named(library), count, (struct CUfunc_st **)(void *)kernels);
}

int cuLibraryGetModule(hewn_cu_module *module, hewn_cu_library library)
{
    struct call call CALL_SCOPE;
    struct CUmod_st *m;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!module) return HEWN_CU_INVALID_VALUE;
    rc = module_of(library_named(library), &m);
    if (!rc) *module = m;
    return rc;
}

int cuLibraryGetGlobal(hewn_cu_deviceptr *address, size_t *bytes, hewn_cu_library library,
                       const char *name)
{
    struct call call CALL_SCOPE;
    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    return get_global(library_named(library), name, address, bytes);
}

/* Managed variables lie beside the others: all memory of the device is the host's. The runtime asks for
 * them before it has a context. */
int cuLibraryGetManaged(hewn_cu_deviceptr *address, size_t *bytes, hewn_cu_library library,
                        const char *name)
{
    struct call call CALL_SCOPE;
    if (call_enter(&call, NEED_INIT)) return call.rc;
    return get_global(library_named(library), name, address, bytes);
}
