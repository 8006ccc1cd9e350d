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

static hewn_module_info describe(const hewn_module *m)
{
    hewn_module_info info = {.struct_size = sizeof info};
    hewn_module_describe(m, &info, NULL);
    return info;
}

/* What a module would run as on a device: the cubin where one matches, else the PTX. */
static const char *form_for(const hewn_module_info *info, const hewn_device_info *d)
{
    char arch[16];
    if (!hewn_target_runs_on(info->target, d->cc_major, d->cc_minor)) return "-";
    if (d->simulated) return "ptx";
    snprintf(arch, sizeof arch, "sm_%d%d", d->cc_major, d->cc_minor);
    return strstr(info->cubins, arch) ? "cubin" : "ptx";
}

static void print_modules_for(const hewn_device_info *d)
{
    const hewn_module *m;
    for (size_t i = 0; (m = cli_module(i, NULL)) != NULL; i++) {
        hewn_module_info info = describe(m);
        printf("  %-22s %-8s %s\n", info.name, info.target, form_for(&info, d));
    }
}

int cli_info(int argc, char **argv)
{
    hewn_driver *driver;
    if (argc > 1) return cli_unknown("info", argv[1]);
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
    const hewn_module *m;
    const char *family;
    if (argc > 1) return cli_unknown("modules", argv[1]);
    printf("%-9s %-22s %-8s %9s  %-20s %s\n", "family", "module", "target", "ptx B", "cubins",
           "sha256");
    for (size_t i = 0; (m = cli_module(i, &family)) != NULL; i++) {
        hewn_module_info info = describe(m);
        printf("%-9s %-22s %-8s %9zu  %-20s %.16s\n", family, info.name, info.target, info.ptx_size,
               *info.cubins ? info.cubins : "none", info.sha256);
    }
    return 0;
}

struct extract_options {
    const char *name, *target, *what, *out;
};

static const hewn_module *find_module(const struct extract_options *o, int *matches)
{
    const hewn_module *m, *found = NULL;
    *matches = 0;
    for (size_t i = 0; (m = cli_module(i, NULL)) != NULL; i++) {
        hewn_module_info info = describe(m);
        if (strcmp(info.name, o->name) || (o->target && strcmp(info.target, o->target))) continue;
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

/* "ptx"; "cubin": the first; "sm_103": that one. */
static int extract_image(const hewn_module *m, const char *what, const char *out)
{
    hewn_module_info info = describe(m);
    hewn_image_info image = {.struct_size = sizeof image};
    for (size_t i = 0; !hewn_module_describe_image(m, i, &image, NULL); i++)
        if (!strcmp(what, image.arch) || (!strcmp(what, "cubin") && strcmp(image.arch, "ptx")))
            return write_out(out, image.data, image.size);
    return cli_fail("%s for %s holds no '%s' (built without ptxas: PTX only)", info.name,
                    info.target, what);
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
            return cli_unknown("extract", argv[i]);
    }
    if (!o.name)
        return cli_usage("extract", "a module's name is missing ('hewn modules' lists them)");
    m = find_module(&o, &matches);
    if (!m)
        return cli_fail("no module '%s'%s%s; 'hewn modules' lists them", o.name,
                        o.target ? " for " : "", o.target ? o.target : "");
    if (matches > 1)
        return cli_fail("'%s' exists for %d targets; choose with --target", o.name, matches);
    if (!strcmp(o.what, "json"))
        return write_out(o.out, describe(m).manifest, describe(m).manifest_size);
    return extract_image(m, o.what, o.out);
}
