/* The linker of the driver: PTX texts joined into one, which a module is loaded from. */
#include "cuda/driver.h"
#include "ptx/join.h"

#include <stdio.h>
#include <stdlib.h>

enum { INPUT_CUBIN, INPUT_PTX, INPUT_FATBINARY, INPUT_OBJECT, INPUT_LIBRARY, INPUT_NVVM, INPUTS };

struct CUlinkState_st {
    struct CUctx_st *context;
    char **texts, **names;
    size_t count;
    char *image; /* of cuLinkComplete */
    unsigned option_count;
    int *options; /* a copy; the values stay the program's, where logs and sizes go */
    void **values;
    void **first_values; /* as they were: the sizes of logs, which each log overwrites */
};

void link_destroy(struct CUlinkState_st *link)
{
    handle_drop(link);
    for (size_t i = 0; i < link->count; i++) {
        free(link->texts[i]);
        free(link->names[i]);
    }
    free(link->texts);
    free(link->names);
    free(link->options);
    free(link->first_values);
    free(link->image);
    free(link);
}

int cuLinkCreate_v2(unsigned option_count, int *options, void **values, hewn_cu_link *link)
{
    struct call call CALL_SCOPE;
    struct CUlinkState_st *fresh;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    if (!link || (option_count && (!options || !values))) return HEWN_CU_INVALID_VALUE;
    for (unsigned i = 0; i < option_count; i++)
        if (options[i] < 0 || options[i] >= HEWN_CU_JIT_OPTION_COUNT) return HEWN_CU_INVALID_VALUE;
    fresh = calloc(1, sizeof *fresh);
    if (!fresh) return HEWN_CU_OUT_OF_MEMORY;
    fresh->context = call.context;
    fresh->option_count = option_count;
    fresh->values = values;
    fresh->options = malloc((option_count + (size_t)1) * sizeof *options);
    fresh->first_values = malloc((option_count + (size_t)1) * sizeof *values);
    if (!fresh->options || !fresh->first_values ||
        handle_add(fresh, HANDLE_LINK, fresh, call.context)) {
        free(fresh->options);
        free(fresh->first_values);
        free(fresh);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    if (option_count) memcpy(fresh->options, options, option_count * sizeof *options);
    if (option_count) memcpy(fresh->first_values, values, option_count * sizeof *values);
    *link = fresh;
    return 0;
}

/* The text becomes an input of the link, which takes it over. */
static int append(struct CUlinkState_st *link, char *text, const char *name)
{
    char **texts = realloc(link->texts, (link->count + 1) * sizeof *texts);
    char **names = texts ? realloc(link->names, (link->count + 1) * sizeof *names) : NULL;

    if (texts) link->texts = texts;
    if (names) {
        link->names = names;
        names[link->count] = strdup(name);
    }
    if (!names || !names[link->count]) {
        free(text);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    texts[link->count++] = text;
    return 0;
}

static void restore_sizes(struct CUlinkState_st *link)
{
    for (unsigned i = 0; i < link->option_count; i++)
        if (link->options[i] == HEWN_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
            link->options[i] == HEWN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            link->values[i] = link->first_values[i];
}

/* Compiles a text, to learn whether that works. */
static int try_text(struct CUlinkState_st *link, const char *text)
{
    struct CUmod_st *trial;
    int rc;

    restore_sizes(link);
    rc = module_load(link->context, text, SIZE_MAX, &trial, NULL, link->option_count, link->options,
                     link->values);
    if (!rc) module_unload(trial);
    return rc;
}

/* What the driver says of texts that do not fit together. */
static int joined(struct CUlinkState_st *link, bool complete, char **out)
{
    char message[512] = "";
    const char *const *texts = (const char *const *)link->texts;
    const char *const *names = (const char *const *)link->names;
    enum join_status status =
        ptx_join(texts, names, link->count, complete, out, message, sizeof message);

    if (status == JOIN_NO_MEMORY) return HEWN_CU_OUT_OF_MEMORY;
    if (!status) return 0;
    restore_sizes(link);
    module_log(link->option_count, link->options, link->values, message);
    return HEWN_CU_INVALID_SOURCE;
}

/* True when the text can be compiled without others. */
static bool stands_alone(const char *text)
{
    char message[512], *out = NULL;
    const char *name = "";
    enum join_status status = ptx_join(&text, &name, 1, true, &out, message, sizeof message);

    free(out);
    return status == JOIN_OK;
}

/* Each text that can be is compiled as it comes, so that its errors are its own. */
static int add(struct CUlinkState_st *link, int type, const char *data, size_t size,
               const char *name)
{
    char *text = NULL, given[40];
    int rc;

    if (type < 0 || type >= INPUTS || !data || !size) return HEWN_CU_INVALID_VALUE;
    if (type == INPUT_NVVM) return HEWN_CU_NOT_SUPPORTED;
    rc = module_text(data, size, &text);
    if (rc) return rc;
    rc = stands_alone(text) ? try_text(link, text) : 0;
    if (rc) {
        free(text);
        return rc;
    }
    snprintf(given, sizeof given, "input %zu", link->count + 1);
    rc = append(link, text, name && *name ? name : given);
    if (!rc) rc = joined(link, false, &text);
    if (!rc) free(text);
    return rc;
}

/* Options of a single input are hints about how to compile it. */
int cuLinkAddData_v2(hewn_cu_link link, int type, void *data, size_t size, const char *name,
                     unsigned option_count, int *options, void **values)
{
    struct call call CALL_SCOPE;
    struct CUlinkState_st *l;

    (void)values;
    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    l = handle_get(link, HANDLE_LINK);
    if (!l) return HEWN_CU_INVALID_HANDLE;
    if (option_count && !options) return HEWN_CU_INVALID_VALUE;
    return l->image ? HEWN_CU_INVALID_VALUE : add(l, type, data, size, name);
}

int cuLinkAddFile_v2(hewn_cu_link link, int type, const char *path, unsigned option_count,
                     int *options, void **values)
{
    struct call call CALL_SCOPE;
    struct CUlinkState_st *l;
    size_t size = 0;
    char *data;
    int rc;

    (void)values;
    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    l = handle_get(link, HANDLE_LINK);
    if (!l) return HEWN_CU_INVALID_HANDLE;
    if (!path || (option_count && !options) || l->image) return HEWN_CU_INVALID_VALUE;
    data = file_read(path, &size, &rc);
    if (!data) return rc;
    rc = add(l, type, data, size, path);
    free(data);
    return rc;
}

int cuLinkComplete(hewn_cu_link link, void **image, size_t *size)
{
    struct call call CALL_SCOPE;
    struct CUlinkState_st *l;
    char *text;
    int rc;

    if (call_enter(&call, CALL_PLAIN)) return call.rc;
    l = handle_get(link, HANDLE_LINK);
    if (!l) return HEWN_CU_INVALID_HANDLE;
    if (!image || !l->count || l->image) return HEWN_CU_INVALID_VALUE;
    rc = joined(l, true, &text);
    if (rc) return rc;
    rc = try_text(l, text);
    if (rc) {
        free(text);
        return rc;
    }
    l->image = text;
    *image = text;
    if (size) *size = strlen(text) + 1;
    return 0;
}

int cuLinkDestroy(hewn_cu_link link)
{
    struct call call CALL_SCOPE;
    struct CUlinkState_st *l;

    if (call_enter(&call, CALL_RELEASE)) return call.rc;
    l = handle_get(link, HANDLE_LINK);
    if (!l) return HEWN_CU_INVALID_HANDLE;
    link_destroy(l);
    return 0;
}
