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

/* What a module's load has unpacked: `bytes` lies in `block`, which is freed once the driver has it. */
struct unpacked {
    unsigned char *block;
    const unsigned char *bytes;
};

static int out_of_memory(const hewn_module *module, hewn_error *err)
{
    return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for module %s", module->name);
}

/* Unpacks an image into block[0..end), or says why not. */
static int unpack_into(const struct hewn_image *image, size_t end, unsigned char *block)
{
    char hex[HEWN_SHA256_HEX];
    int status = hewn_unpack(image->pack, end, block);
    if (status) return status;
    hewn_sha256(block + image->offset, image->size, hex);
    return strcmp(hex, image->sha256) == 0 ? HEWN_OK : HEWN_ERR_IMAGE;
}

/* The bytes must be those that the build saw: cuModuleLoadData has no size and would read past the end
 * of an image that is cut short. A NUL goes behind them, which ends a text. */
static int unpack_image(const hewn_module *module, const struct hewn_image *image,
                        struct unpacked *out, hewn_error *err)
{
    const struct hewn_pack *pack = image->pack;
    int status = HEWN_ERR_IMAGE;
    *out = (struct unpacked){NULL, NULL};
    if (pack && image->sha256 && image->size && image->offset <= pack->holds &&
        image->size <= pack->holds - image->offset) {
        size_t end = image->offset + image->size;
        unsigned char *block = malloc(end + 1);
        status = block ? unpack_into(image, end, block) : HEWN_ERR_MEMORY;
        if (!status) {
            block[end] = 0;
            *out = (struct unpacked){block, block + image->offset};
            return HEWN_OK;
        }
        free(block);
    }
    if (status == HEWN_ERR_MEMORY) return out_of_memory(module, err);
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

static int load_text(const hewn_context *context, struct hewn_loaded *loaded, hewn_error *err)
{
    struct unpacked text;
    int status = unpack_image(loaded->module, &loaded->module->ptx, &text, err);
    if (status) return status;
    status = compile(context, loaded->module, text.bytes, &loaded->handle, err);
    free(text.block);
    snprintf(loaded->origin, sizeof loaded->origin, "ptx");
    return status;
}

/* The cubin for this very device first. The text where there is no cubin, or where the driver cannot
 * read it: 200 and 209 from the simulator and from parts it was not made for, 222 from a driver older
 * than the assembler. Any other failure is a failure. A watched driver gets the text. */
static int load_image(const hewn_context *context, struct hewn_loaded *loaded, hewn_error *err)
{
    const hewn_module *module = loaded->module;
    for (size_t i = 0; i < module->image_count && !context->driver->watched; i++) {
        const struct hewn_image *image = &module->images[i];
        if (!image_is_for(image, &context->info)) continue;
        struct unpacked cubin;
        int status = unpack_image(module, image, &cubin, err);
        if (status) return status;
        hewn_cu_result r = context->driver->fn.module_load_data(&loaded->handle, cubin.bytes);
        free(cubin.block);
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
    return load_text(context, loaded, err);
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
static int load(const hewn_context *context, const hewn_module *module, struct hewn_loaded **out,
                hewn_error *err)
{
    struct hewn_loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded) return out_of_memory(module, err);
    loaded->module = module;
    int status = load_image(context, loaded, err);
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

/* Loads those of `modules` that are not loaded yet: all or none. The context must be current. */
static int load_all(hewn_context *context, const hewn_family *family, hewn_error *err)
{
    const hewn_device_info *device = &context->info;
    struct hewn_loaded *fresh = NULL;
    size_t usable = 0;
    for (size_t i = 0; i < family->module_count; i++) {
        const hewn_module *m = family->modules[i];
        if (hewn_family_choose(family, m->name, device->cc_major, device->cc_minor) != m) continue;
        usable++;
        if (hewn_context_find(context, m)) continue;
        struct hewn_loaded *loaded = NULL;
        int status = load(context, m, &loaded, err);
        if (status) {
            hewn_loaded_free(context->driver, fresh);
            return status;
        }
        loaded->next = fresh;
        fresh = loaded;
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
    if (!context) return hewn_fail(err, HEWN_ERR_ARGUMENT, "context: must not be NULL");
    if (!family) return hewn_fail(err, HEWN_ERR_ARGUMENT, "family: must not be NULL");
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
        status = load(context, module, &loaded, err);
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
