/* hewn info: what there is to run on. hewn modules, hewn extract: what there is to run. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_device(const hewn_device_info *d)
{
    printf("device %d: %s, compute capability %d.%d, %d SMs, %d B shared memory a CTA, %.1f GiB\n",
           d->ordinal, d->name, d->cc_major, d->cc_minor, d->sm_count, d->max_shared_per_block,
           (double)d->memory_bytes / 1073741824.0);
}

/* What a module would run as on a device: the cubin where one matches, else the PTX. */
static const char *form_for(const hewn_module *m, const hewn_device_info *d)
{
    char arch[16];
    if (!hewn_target_runs_on(m->target, d->cc_major, d->cc_minor)) return "-";
    if (d->simulated) return "ptx";
    snprintf(arch, sizeof arch, "sm_%d%d", d->cc_major, d->cc_minor);
    for (size_t i = 0; i < m->image_count; i++)
        if (!strncmp(m->images[i].arch, arch, strlen(arch))) return "cubin";
    return "ptx";
}

static void print_modules_for(const hewn_device_info *d)
{
    for (size_t f = 0; f < cli_family_count; f++)
        for (size_t i = 0; i < cli_families[f]->module_count; i++) {
            const hewn_module *m = cli_families[f]->modules[i];
            printf("  %-22s %-8s %s\n", m->name, m->target, form_for(m, d));
        }
}

int cli_info(int argc, char **argv)
{
    hewn_driver *driver;
    if (argc > 1) return cli_usage("info", "'%s' is not understood", argv[1]);
    driver = cli_open_driver(stdout);
    if (!driver) return 1;
    if (hewn_driver_missing(driver)[0])
        printf("optional functions missing: %s\n", hewn_driver_missing(driver));
    for (int i = 0; i < hewn_driver_device_count(driver); i++) {
        hewn_device_info d = {.struct_size = sizeof d};
        hewn_error err = {0};
        if (hewn_driver_describe_device(driver, i, &d, &err)) {
            cli_fail("device %d: %s", i, err.message);
            continue;
        }
        print_device(&d);
        print_modules_for(&d);
    }
    hewn_driver_close(driver);
    return 0;
}

int cli_modules(int argc, char **argv)
{
    if (argc > 1) return cli_usage("modules", "'%s' is not understood", argv[1]);
    printf("%-9s %-22s %-8s %9s  %-20s %s\n", "family", "module", "target", "ptx B", "cubins",
           "sha256");
    for (size_t f = 0; f < cli_family_count; f++)
        for (size_t i = 0; i < cli_families[f]->module_count; i++) {
            const hewn_module *m = cli_families[f]->modules[i];
            char cubins[64] = "none";
            for (size_t k = 0, n = 0; k < m->image_count && n < sizeof cubins; k++)
                n += (size_t)snprintf(cubins + n, sizeof cubins - n, "%s%s", k ? " " : "",
                                      m->images[k].arch);
            printf("%-9s %-22s %-8s %9zu  %-20s %.16s\n", cli_families[f]->name, m->name, m->target,
                   m->ptx_size, cubins, m->sha256);
        }
    return 0;
}

struct extract_options {
    const char *name, *target, *what, *out;
};

static const hewn_module *find_module(const struct extract_options *o, int *matches)
{
    const hewn_module *found = NULL;
    *matches = 0;
    for (size_t f = 0; f < cli_family_count; f++)
        for (size_t i = 0; i < cli_families[f]->module_count; i++) {
            const hewn_module *m = cli_families[f]->modules[i];
            if (strcmp(m->name, o->name) || (o->target && strcmp(m->target, o->target))) continue;
            found = m;
            ++*matches;
        }
    return found;
}

static int write_out(const char *path, const void *data, size_t size)
{
    FILE *f = path ? fopen(path, "wb") : stdout;
    size_t written;
    if (!f) return cli_fail("%s: %s", path, strerror(errno));
    written = fwrite(data, 1, size, f);
    if ((path && fclose(f)) || written != size)
        return cli_fail("%s: %s", path ? path : "stdout", strerror(errno));
    return 0;
}

static int extract_image(const hewn_module *m, const char *what, const char *out)
{
    for (size_t i = 0; i < m->image_count; i++) /* "cubin": the first; "sm_103": that one */
        if (!strcmp(what, "cubin") || !strcmp(what, m->images[i].arch))
            return write_out(out, m->images[i].data, m->images[i].size);
    return cli_fail("%s for %s holds no '%s' (built without ptxas: PTX only)", m->name, m->target,
                    what);
}

int cli_extract(int argc, char **argv)
{
    struct extract_options o = {.what = "ptx"};
    const hewn_module *m;
    int matches;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--target") && i + 1 < argc)
            o.target = argv[++i];
        else if (!strcmp(argv[i], "--what") && i + 1 < argc)
            o.what = argv[++i];
        else if (!strcmp(argv[i], "-o") && i + 1 < argc)
            o.out = argv[++i];
        else if (argv[i][0] != '-' && !o.name)
            o.name = argv[i];
        else
            return cli_usage("extract", "'%s' is not understood", argv[i]);
    }
    if (!o.name)
        return cli_usage("extract", "a module's name is missing ('hewn modules' lists them)");
    m = find_module(&o, &matches);
    if (!m)
        return cli_fail("no module '%s'%s%s", o.name, o.target ? " for " : "",
                        o.target ? o.target : "");
    if (matches > 1)
        return cli_fail("'%s' exists for %d targets; choose with --target", o.name, matches);
    if (!strcmp(o.what, "ptx")) return write_out(o.out, m->ptx, m->ptx_size);
    if (!strcmp(o.what, "json")) return write_out(o.out, m->manifest, m->manifest_size);
    return extract_image(m, o.what, o.out);
}
