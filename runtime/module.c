/* Modules in a context: checking an image, loading it as cubin or PTX, the list of what is loaded. */
#include "context.h"

#include "error.h"
#include "sha256.h"
#include "unpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    JIT_LOG_BYTES = 4096,
    JIT_LOG_SHOWN = 220 /* what fits an hewn_error beside the rest of the sentence */
};

/* ---- images -- */

/* What a load has unpacked: bytes 0 to `end` of a pack, and a NUL. */
struct shelf {
    const struct hewn_pack *pack;
    unsigned char *block;
    size_t end;
};

/* One load unpacks what it needs. A preload unpacks whole packs, since it loads many modules of each. */
struct shelves {
    struct shelf text, code;
    int whole;
};

static void clear(struct shelves *s)
{
    free(s->text.block);
    free(s->code.block);
    *s = (struct shelves){.whole = s->whole};
}

static int out_of_memory(const hewn_module *module, hewn_error *err)
{
    return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for module %s", module->name);
}

/* Has the shelf hold bytes 0 to `end` of the pack. */
static enum hewn_unpacked fill(struct shelf *shelf, const struct hewn_pack *pack, size_t end)
{
    if (shelf->pack == pack && shelf->end >= end) return HEWN_UNPACKED;
    free(shelf->block);
    shelf->pack = NULL;
    shelf->block = malloc(end + 1);
    if (!shelf->block) return HEWN_UNPACK_NO_MEMORY;
    enum hewn_unpacked status = hewn_unpack(pack, end, shelf->block);
    if (status) return status;
    shelf->block[end] = 0;
    shelf->pack = pack;
    shelf->end = end;
    return HEWN_UNPACKED;
}

/* The bytes must be those that the build saw: cuModuleLoadData has no size and would read past the end
 * of an image that is cut short. A text has a NUL behind it. */
static int unpack_image(const hewn_module *module, const struct hewn_image *image,
                        struct shelf *shelf, int whole, const unsigned char **out, hewn_error *err)
{
    const struct hewn_pack *pack = image->pack;
    char hex[HEWN_SHA256_HEX];
    if (pack && image->sha256 && image->size && image->offset <= pack->holds &&
        image->size <= pack->holds - image->offset) {
        enum hewn_unpacked status =
            fill(shelf, pack, whole ? pack->holds : image->offset + image->size);
        if (status == HEWN_UNPACK_NO_MEMORY) return out_of_memory(module, err);
        if (!status) {
            *out = shelf->block + image->offset;
            hewn_sha256(*out, image->size, hex);
            if (strcmp(hex, image->sha256) == 0) return HEWN_OK;
        }
    }
    return hewn_fail(err, HEWN_ERR_IMAGE,
                     "module %s (%s): corrupt image: %s does not have the recorded SHA-256",
                     module->name, module->target, image->arch);
}

/* A cubin serves the number it was made for; the target of the module has settled the rest. */
static int image_is_for(const struct hewn_image *image, const hewn_device_info *device)
{
    char arch[24];
    int n = snprintf(arch, sizeof arch, "sm_%d%d", device->cc_major, device->cc_minor);
    if (n < 0 || !image->arch || strncmp(image->arch, arch, (size_t)n) != 0) return 0;
    const char *suffix = image->arch + n;
    return *suffix == '\0' || strcmp(suffix, "a") == 0 || strcmp(suffix, "f") == 0;
}

/* ---- loading -- */

/* The driver's log as one line: its own line ends would break the sentence. */
static void flatten(const char *log, char *out, size_t size)
{
    size_t n = 0;
    for (; *log && n + 1 < size; log++) {
        int blank = *log == '\n' || *log == '\r' || *log == '\t' || *log == ' ';
        if (blank && (n == 0 || out[n - 1] == ' ')) continue;
        out[n++] = blank ? ' ' : *log;
    }
    while (n > 0 && out[n - 1] == ' ') n--;
    out[n] = '\0';
}

/* The driver compiles the text. */
static int compile(const hewn_context *context, const hewn_module *module, const void *text,
                   hewn_cu_module *handle, hewn_error *err)
{
    const struct hewn_driver_table *fn = &context->driver->fn;
    if (!fn->module_load_data_ex) {
        hewn_cu_result r = fn->module_load_data(handle, text);
        if (r)
            return hewn_fail_driver(err, context->driver, r, "cuModuleLoadData", "module %s (%s)",
                                    module->name, module->target);
        return HEWN_OK;
    }
    char log[JIT_LOG_BYTES] = "";
    int options[] = {HEWN_CU_JIT_ERROR_LOG_BUFFER, HEWN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, hewn_as_pointer(sizeof log - 1)};
    hewn_cu_result r = fn->module_load_data_ex(handle, text, 2, options, values);
    if (!r) return HEWN_OK;
    char line[JIT_LOG_SHOWN];
    log[sizeof log - 1] = '\0';
    flatten(log, line, sizeof line);
    hewn_error_set_driver(err, context->driver, r, "cuModuleLoadDataEx", "module %s (%s)",
                          module->name, module->target);
    if (err && line[0]) {
        size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof err->message - used, "; %s", line);
    }
    return HEWN_ERR_DRIVER;
}

static int load_text(const hewn_context *context, struct shelves *shelves,
                     struct hewn_loaded *loaded, hewn_error *err)
{
    const hewn_module *module = loaded->module;
    const unsigned char *text = NULL;
    int status = unpack_image(module, &module->ptx, &shelves->text, shelves->whole, &text, err);
    snprintf(loaded->origin, sizeof loaded->origin, "ptx");
    return status ? status : compile(context, module, text, &loaded->handle, err);
}

/* The cubin for this very device first. The text where there is no cubin, or where the driver cannot
 * read it: 200 and 209 from the simulator and from parts it was not made for, 222 from a driver older
 * than the assembler. Any other failure is a failure. A watched driver gets the text. */
static int load_image(const hewn_context *context, struct shelves *shelves,
                      struct hewn_loaded *loaded, hewn_error *err)
{
    const hewn_module *module = loaded->module;
    for (size_t i = 0; i < module->image_count && !context->driver->watched; i++) {
        const struct hewn_image *image = &module->images[i];
        if (!image_is_for(image, &context->info)) continue;
        const unsigned char *cubin = NULL;
        int status = unpack_image(module, image, &shelves->code, shelves->whole, &cubin, err);
        if (status) return status;
        hewn_cu_result r = context->driver->fn.module_load_data(&loaded->handle, cubin);
        if (r == HEWN_CU_SUCCESS) {
            snprintf(loaded->origin, sizeof loaded->origin, "cubin %.15s", image->arch);
            return HEWN_OK;
        }
        if (r != HEWN_CU_INVALID_IMAGE && r != HEWN_CU_NO_BINARY_FOR_GPU &&
            r != HEWN_CU_UNSUPPORTED_PTX_VERSION)
            return hewn_fail_driver(err, context->driver, r, "cuModuleLoadData",
                                    "module %s (%s), cubin %s", module->name, module->target,
                                    image->arch);
    }
    return load_text(context, shelves, loaded, err);
}

static int find_entry(const hewn_context *context, struct hewn_loaded *loaded, hewn_error *err)
{
    const struct hewn_driver_table *fn = &context->driver->fn;
    const hewn_module *module = loaded->module;
    hewn_cu_result r = fn->module_get_function(&loaded->function, loaded->handle, module->entry);
    if (r)
        return hewn_fail_driver(err, context->driver, r, "cuModuleGetFunction",
                                "module %s (%s): entry %s", module->name, module->target,
                                module->entry);
    /* Drivers load code lazily by default, at a first launch that may then wait for a persistent
     * kernel to end; where the driver has the call, load it now. */
    if (!fn->func_load) return HEWN_OK;
    r = fn->func_load(loaded->function);
    if (r)
        return hewn_fail_driver(err, context->driver, r, "cuFuncLoad", "module %s (%s): entry %s",
                                module->name, module->target, module->entry);
    return HEWN_OK;
}

/* Loads one module into a node of its own. The context must be current. */
static int load(const hewn_context *context, const hewn_module *module, struct shelves *shelves,
                struct hewn_loaded **out, hewn_error *err)
{
    struct hewn_loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded) return out_of_memory(module, err);
    loaded->module = module;
    int status = load_image(context, shelves, loaded, err);
    if (status) {
        free(loaded);
        return status;
    }
    status = find_entry(context, loaded, err);
    if (status) {
        hewn_loaded_free(context->driver, loaded);
        return status;
    }
    *out = loaded;
    return HEWN_OK;
}

void hewn_loaded_free(const hewn_driver *driver, struct hewn_loaded *list)
{
    while (list) {
        struct hewn_loaded *next = list->next;
        driver->fn.module_unload(list->handle);
        free(list);
        list = next;
    }
}

/* ---- the list -- */

const struct hewn_loaded *hewn_context_find(const hewn_context *context, const hewn_module *module)
{
    const struct hewn_loaded *l = atomic_load_explicit(&context->loaded, memory_order_acquire);
    while (l && l->module != module) l = l->next;
    return l;
}

/* Puts a whole list in front, so that readers see all of it or nothing. Called under the lock. */
static void publish(hewn_context *context, struct hewn_loaded *list)
{
    struct hewn_loaded *last = list;
    if (!last) return;
    while (last->next) last = last->next;
    last->next = atomic_load_explicit(&context->loaded, memory_order_relaxed);
    atomic_store_explicit(&context->loaded, list, memory_order_release);
}

static int is_usable(const hewn_context *context, const hewn_family *family, const hewn_module *m)
{
    const hewn_device_info *device = &context->info;
    return hewn_family_choose(family, m->name, device->cc_major, device->cc_minor) == m;
}

static int is_on(const struct hewn_loaded *list, const hewn_module *module)
{
    while (list && list->module != module) list = list->next;
    return list != NULL;
}

/* Loads the modules of a family that share the texts' pack of `first`, in front of *fresh. */
static int load_pack(const hewn_context *context, const hewn_family *family,
                     const hewn_module *first, struct shelves *shelves, struct hewn_loaded **fresh,
                     hewn_error *err)
{
    for (size_t i = 0; i < family->module_count; i++) {
        const hewn_module *m = family->modules[i];
        struct hewn_loaded *loaded = NULL;
        if (m->ptx.pack != first->ptx.pack || !is_usable(context, family, m)) continue;
        if (hewn_context_find(context, m) || is_on(*fresh, m)) continue;
        int status = load(context, m, shelves, &loaded, err);
        if (status) return status;
        loaded->next = *fresh;
        *fresh = loaded;
    }
    return HEWN_OK;
}

/* Loads those modules of a family that are not loaded yet: all or none. The context must be current. */
static int load_all(hewn_context *context, const hewn_family *family, hewn_error *err)
{
    struct shelves shelves = {.whole = 1};
    struct hewn_loaded *fresh = NULL;
    size_t usable = 0;
    int status = HEWN_OK;
    for (size_t i = 0; i < family->module_count && !status; i++) {
        const hewn_module *m = family->modules[i];
        if (!is_usable(context, family, m)) continue;
        usable++;
        if (!hewn_context_find(context, m) && !is_on(fresh, m))
            status = load_pack(context, family, m, &shelves, &fresh, err);
    }
    clear(&shelves);
    if (status) {
        hewn_loaded_free(context->driver, fresh);
        return status;
    }
    if (!usable) {
        hewn_error_set_no_module(context, family, NULL, err);
        return HEWN_ERR_NO_MODULE;
    }
    publish(context, fresh);
    return HEWN_OK;
}

int hewn_family_preload(hewn_context *context, const hewn_family *family, hewn_error *err)
{
    if (!context) return hewn_fail_null(err, "context");
    if (!family) return hewn_fail_null(err, "family");
    int status = hewn_context_push(context, err);
    if (status) return status;
    pthread_mutex_lock(&context->loading);
    status = load_all(context, family, err);
    pthread_mutex_unlock(&context->loading);
    hewn_context_pop(context);
    return status;
}

int hewn_context_load(hewn_context *context, const hewn_module *module,
                      const struct hewn_loaded **out, hewn_error *err)
{
    *out = hewn_context_find(context, module);
    if (*out) return HEWN_OK;
    int status = HEWN_OK;
    pthread_mutex_lock(&context->loading);
    *out = hewn_context_find(context, module); /* another thread may have been faster */
    if (!*out) {
        struct hewn_loaded *loaded = NULL;
        struct shelves shelves = {.whole = 0};
        status = load(context, module, &shelves, &loaded, err);
        clear(&shelves);
        if (!status) publish(context, loaded);
        *out = loaded;
    }
    pthread_mutex_unlock(&context->loading);
    return status;
}

int hewn_load_kernel(hewn_context *context, const hewn_module *module, uint32_t dynamic_shared,
                     const struct hewn_loaded **out, hewn_error *err)
{
    int status = hewn_context_push(context, err);
    if (status) return status;
    status = hewn_context_load(context, module, out, err);
    if (!status && dynamic_shared)
        status = hewn_function_allow_shared(context, (*out)->function, dynamic_shared, err);
    hewn_context_pop(context);
    return status;
}

/* ---- what there is -- */

const char *hewn_family_name(const hewn_family *family)
{
    return family ? family->name : NULL;
}

size_t hewn_family_count(const hewn_family *family)
{
    return family ? family->module_count : 0;
}

const hewn_module *hewn_family_module(const hewn_family *family, size_t index)
{
    return index < hewn_family_count(family) ? family->modules[index] : NULL;
}

const char *hewn_module_origin(const hewn_context *context, const hewn_module *module)
{
    const struct hewn_loaded *loaded =
        context && module ? hewn_context_find(context, module) : NULL;
    return loaded ? loaded->origin : NULL;
}

hewn_function hewn_module_function(const hewn_context *context, const hewn_module *module)
{
    const struct hewn_loaded *loaded =
        context && module ? hewn_context_find(context, module) : NULL;
    return loaded ? loaded->function : NULL;
}
