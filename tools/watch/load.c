/*
 * From an image to a watched module. The watched text takes the image's place only where the driver takes it and
 * each kernel keeps its registers' residency, its largest block and its stack; else the kernel, or the whole image,
 * runs as it was, and a note says why.
 */
#include "watch.h"
#include "image.h"

#include "ptx/demangle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { /* cuda.h */
       FUNC_MAX_THREADS = 0,
       FUNC_LOCAL_BYTES = 3,
       FUNC_REGISTERS = 4,
       DEVICE_CAPABILITY_MAJOR = 75,
       DEVICE_CAPABILITY_MINOR = 76,
       UNSUPPORTED_PTX_VERSION = 222,
       MOST_IGNORED = 64
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched_module *modules;
static uint32_t sites = 1; /* number of the next one */

const struct watch_site *watched_site(uint32_t number, const struct watched_module **module)
{
    const struct watch_site *site = NULL;

    pthread_mutex_lock(&lock);
    for (const struct watched_module *m = modules; m && !site; m = m->next) {
        if (number < m->first_site || number - m->first_site >= m->result.site_count) continue;
        site = &m->result.sites[number - m->first_site];
        *module = m;
    }
    pthread_mutex_unlock(&lock);
    return site;
}

/* Whether that was said before. */
static bool told(const char *what, const char *why)
{
    enum { MOST_TOLD = 256 };
    static char *list[MOST_TOLD];
    static uint32_t count;
    char text[512];
    bool found = false;

    snprintf(text, sizeof text, "%.255s %.255s", what, why);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count && !found; i++) found = !strcmp(list[i], text);
    if (!found && count < MOST_TOLD && (list[count] = strdup(text))) count++;
    pthread_mutex_unlock(&lock);
    return found;
}

static void unwatched(const char *what, const char *why)
{
    char name[DEMANGLED_BYTES];

    if (told(what, why)) return;
    demangle(what, name, sizeof name);
    watch_note("%s runs unwatched: %s", name, why);
    watch_report("{\"unwatched\":\"%s\",\"why\":\"%s\"}", what, why);
}

/* ---- which kernels stay as they are ---- */

struct ignored {
    struct arena arena;
    const char *names[MOST_IGNORED]; /* found to change */
    uint32_t count;
};

/* HEWN_WATCH_IGNORE: names in lines of their own. */
static bool named_by_user(const char *function)
{
    const char *list = getenv("HEWN_WATCH_IGNORE");
    char plain[DEMANGLED_BYTES];
    size_t length;

    demangle(function, plain, sizeof plain);
    for (; list && *list; list += length + (list[length] == '\n')) {
        length = strcspn(list, "\n");
        if (!length) continue;
        if (!strncmp(list, function, length) && !function[length]) return true;
        if (!strncmp(list, plain, length) && (!plain[length] || plain[length] == '(')) return true;
    }
    return false;
}

static bool ignore(const void *user, const char *function)
{
    const struct ignored *list = user;

    for (uint32_t i = 0; i < list->count; i++)
        if (!strcmp(list->names[i], function)) return true;
    return named_by_user(function);
}

/* ---- one attempt ---- */

static struct watched_module *module_new(const char *text, struct watch_addresses tables,
                                         const struct ignored *list, char *why, size_t size)
{
    struct watched_module *m = calloc(1, sizeof *m);
    const size_t length = strlen(text);
    struct watch_request request = {
        .text = text, .length = length, .tables = tables, .ignore = ignore, .user = list};

    snprintf(why, size, "out of memory");
    if (!m) return NULL;
    pthread_mutex_lock(&lock);
    request.first_site = m->first_site = sites;
    if (!watch_rewrite(&request, &m->result)) {
        sites += m->result.site_count;
        m->text = malloc(length + 1);
    }
    pthread_mutex_unlock(&lock);
    if (m->text) {
        memcpy(m->text, text, length + 1);
        *why = '\0';
        return m;
    }
    if (*m->result.error) snprintf(why, size, "%s", m->result.error);
    arena_free(&m->result.arena);
    free(m);
    return NULL;
}

static void module_free(struct watched_module *m)
{
    arena_free(&m->result.arena);
    free(m->text);
    free(m);
}

static void module_keep(struct watched_module *m)
{
    const struct watch_result *r = &m->result;

    pthread_mutex_lock(&lock);
    m->next = modules;
    modules = m;
    pthread_mutex_unlock(&lock);
    for (uint32_t i = 0; i < r->kernel_count; i++)
        if (!ignore(&(struct ignored){.count = 0}, r->kernels[i]))
            watch_report("{\"watched\":\"%s\"}", r->kernels[i]);
    for (uint32_t i = 0; i < r->unknown_count; i++)
        watch_note("a loop that may wait for memory is not watched: the branch in line %u of the "
                   "PTX ends it",
                   r->unknown_lines[i]);
}

/* ---- what must not change ---- */

/* NULL, or why the kernel may not be watched. */
static const char *changed(const struct loader *l, void *before, void *after)
{
    const struct driver_calls *d = driver_calls();
    int old[FUNC_REGISTERS + 1] = {0}, new[FUNC_REGISTERS + 1] = {0}, blocks[2] = {0};
    static const int asked[] = {FUNC_MAX_THREADS, FUNC_LOCAL_BYTES, FUNC_REGISTERS};

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        if (l->attribute(l, &old[asked[i]], asked[i], before) ||
            l->attribute(l, &new[asked[i]], asked[i], after))
            return "the driver does not tell its registers";
    if (new[FUNC_LOCAL_BYTES] > old[FUNC_LOCAL_BYTES])
        return "with records its registers do not suffice, and it would spill";
    if (new[FUNC_MAX_THREADS] < old[FUNC_MAX_THREADS])
        return "with records its largest block would have fewer threads";
    if (new[FUNC_REGISTERS] <= old[FUNC_REGISTERS] || !d->occupancy) return NULL;
    if (d->occupancy(&blocks[0], before, old[FUNC_MAX_THREADS], 0) ||
        d->occupancy(&blocks[1], after, old[FUNC_MAX_THREADS], 0))
        return NULL;
    return blocks[1] < blocks[0] ? "with records fewer of its blocks would be resident" : NULL;
}

/* Adds to `list` the kernels that may not be watched; how many. */
static uint32_t compare(const struct loader *l, void *before, void *after,
                        const struct watched_module *m, struct ignored *list)
{
    const uint32_t had = list->count;

    for (uint32_t i = 0; i < m->result.kernel_count; i++) {
        const char *name = m->result.kernels[i], *why;
        void *old, *new;

        if (ignore(list, name) || l->find(l, before, name, &old) || l->find(l, after, name, &new))
            continue;
        why = changed(l, old, new);
        if (!why) continue;
        unwatched(name, why);
        if (list->count == MOST_IGNORED) break;
        list->names[list->count] = arena_strndup(&list->arena, name, strlen(name));
        if (list->names[list->count]) list->count++;
    }
    return list->count - had;
}

/* ---- loading ---- */

static const char *error_name(int error)
{
    const struct driver_calls *d = driver_calls();
    const char *name = NULL;

    return d->error_name && !d->error_name(error, &name) && name ? name : "an unknown error";
}

/* The watched module loaded in *out, or NULL after a note. `before` is the image as it was, loaded. */
static struct watched_module *load_text(const struct loader *l, const char *text,
                                        struct watch_addresses tables, void *before, void **out)
{
    struct ignored list = {.count = 0};
    struct watched_module *m = NULL;
    char why[256];

    for (int attempt = 0; attempt < 2; attempt++) {
        int rc;

        m = module_new(text, tables, &list, why, sizeof why);
        if (!m) break;
        if (!m->result.site_count) goto give_up; /* nothing to say: nobody waits there */
        rc = l->load(l, m->result.text, out);
        if (rc) {
            unwatched(m->result.kernel_count ? m->result.kernels[0] : "a module",
                      rc == UNSUPPORTED_PTX_VERSION ? "its PTX is newer than the driver"
                                                    : error_name(rc));
            goto give_up;
        }
        if (!compare(l, before, *out, m, &list)) break;
        l->unload(l, *out);
        module_free(m);
        m = NULL;
    }
    if (!m && *why) unwatched("a module", why);
    arena_free(&list.arena);
    return m;
give_up:
    arena_free(&list.arena);
    module_free(m);
    return NULL;
}

static unsigned capability_of(int device)
{
    const struct driver_calls *d = driver_calls();
    int major = 0, minor = 0;

    if (!d->device_attribute || d->device_attribute(&major, DEVICE_CAPABILITY_MAJOR, device) ||
        d->device_attribute(&minor, DEVICE_CAPABILITY_MINOR, device))
        return 0;
    return (unsigned)(major * 10 + minor);
}

int load_watched(const struct loader *l, const void *image, void **out)
{
    const char *why = NULL;
    struct watched_module *m = NULL;
    void *watched = NULL;
    char *text;
    const int rc = l->load(l, image, out);

    text = image_ptx(image, capability_of(l->device), &why);
    if (!text) unwatched("a module", why);
    if (text && !rc) { /* what fails is the program's own mistake, or what it tries first */
        struct watch_addresses tables;

        if (watch_addresses_of(&tables))
            m = load_text(l, text, tables, *out, &watched);
        else
            unwatched("a module", "the driver does not map host memory");
    }
    free(text);
    if (!m) return rc;
    l->unload(l, *out);
    *out = watched;
    module_keep(m);
    return 0;
}

char *link_watched(const void *image, size_t size, const char *name, size_t *length)
{
    struct watch_addresses tables;
    const struct ignored list = {.count = 0};
    struct watched_module *m;
    char *text, why[256];

    if (!watch_addresses_of(&tables) || !size || !(text = malloc(size + 1))) return NULL;
    memcpy(text, image, size);
    text[size] = '\0';
    m = module_new(text, tables, &list, why, sizeof why);
    free(text);
    if (!m) {
        unwatched(name ? name : "a linked text", why);
        return NULL;
    }
    module_keep(m);
    text = malloc(m->result.length + 1);
    if (!text) return NULL;
    memcpy(text, m->result.text, m->result.length);
    text[m->result.length] = '\0';
    *length = m->result.length + 1;
    return text;
}
