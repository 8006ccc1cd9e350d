/* Which device runs which code: the rule of targets, and the choice of a module by it. */
#include "context.h"

#include "error.h"

#include <stdio.h>
#include <string.h>

struct target {
    int major, minor;
    char suffix; /* 'a', 'f' or 0 */
};

/* "sm_90a", "sm_103": digits, of which the last is the minor number, and at most one letter. */
static int parse_target(const char *text, struct target *out)
{
    if (!text || strncmp(text, "sm_", 3) != 0) return 0;
    int number = 0, digits = 0;
    const char *p = text + 3;
    for (; *p >= '0' && *p <= '9' && digits < 4; p++, digits++) number = 10 * number + (*p - '0');
    if (digits < 2) return 0;
    out->major = number / 10;
    out->minor = number % 10;
    out->suffix = 0;
    if (*p == 'a' || *p == 'f') out->suffix = *p++;
    return *p == '\0';
}

/*
 * Families (PTX ISA, ".target", family-specific features): the first member and the first later
 * one. Minors between the two are other families under the same major number: 10.1, now called
 * 11.0, does not run sm_100f. An f target that is not here runs on its own number alone.
 */
static const struct family {
    int major, first, next;
} families[] = {{10, 0, 3}, {10, 3, 4}, {11, 0, 1}, {12, 0, 1}};

static int family_runs_on(const struct target *t, int major, int minor)
{
    if (t->major != major) return 0;
    if (t->minor == minor) return 1;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (families[i].major == major && families[i].first == t->minor)
            return minor >= families[i].next;
    return 0;
}

/* 0: does not run; else the higher the better the fit: portable PTX, family, exact. */
static int fit(const char *target, int major, int minor)
{
    struct target t;
    if (!parse_target(target, &t)) return 0;
    if (t.suffix == 'a') return t.major == major && t.minor == minor ? 3 : 0;
    if (t.suffix == 'f') return family_runs_on(&t, major, minor) ? 2 : 0;
    return major > t.major || (major == t.major && minor >= t.minor) ? 1 : 0;
}

int hewn_target_runs_on(const char *target, int cc_major, int cc_minor)
{
    return fit(target, cc_major, cc_minor) > 0;
}

/* Where modules by that name begin, or would, in the order of names. */
static size_t first_called(const hewn_family *family, const char *name)
{
    size_t first = 0, end = family->module_count;
    while (first < end) {
        size_t middle = (first + end) / 2;
        if (strcmp(family->modules[family->by_name[middle]]->name, name) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

const hewn_module *hewn_family_choose(const hewn_family *family, const char *name, int cc_major,
                                      int cc_minor)
{
    const hewn_module *best = NULL;
    int best_fit = 0;
    for (size_t i = first_called(family, name); i < family->module_count; i++) {
        const hewn_module *module = family->modules[family->by_name[i]];
        if (strcmp(module->name, name) != 0) break;
        int f = fit(module->target, cc_major, cc_minor);
        if (f <= best_fit) continue;
        best = module;
        best_fit = f;
    }
    return best;
}

void hewn_error_set_no_module(const hewn_context *context, const hewn_family *family,
                              const char *name, hewn_error *err)
{
    char targets[160] = "";
    size_t used = 0;
    if (family->module_count == 0) {
        hewn_error_set(err, HEWN_ERR_NO_MODULE, "%s: this library was built without the family",
                       family->name);
        return;
    }
    for (size_t i = 0; i < family->module_count; i++) {
        const hewn_module *module = family->modules[i];
        if (name && strcmp(module->name, name) != 0) continue;
        size_t earlier = 0;
        while (earlier < i && strcmp(family->modules[earlier]->target, module->target) != 0)
            earlier++;
        if (!name && earlier < i) continue;
        int n = snprintf(targets + used, sizeof targets - used, "%s%s", used ? ", " : "",
                         module->target);
        if (n < 0 || (size_t)n >= sizeof targets - used) break;
        used += (size_t)n;
    }
    if (name && !used) { /* types that no kernel has together */
        hewn_error_set(err, HEWN_ERR_NO_MODULE,
                       "%s/%s: the library has no such kernel for any target", family->name, name);
        return;
    }
    hewn_error_set(err, HEWN_ERR_NO_MODULE,
                   "%s%s%s: device %d (%s) has compute capability %d.%d; shipped for: %s",
                   family->name, name ? "/" : "", name ? name : "", context->info.ordinal,
                   context->info.name, context->info.cc_major, context->info.cc_minor, targets);
}
