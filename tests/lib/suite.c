#include "lib/suite.h"

#include "lib/harness.h"
#include "lib/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its place, or 0. */
static int find(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return i;
    return 0;
}

static void drop(int *argc, char **argv, int at, int count)
{
    for (int i = at; i + count <= *argc; i++) argv[i] = argv[i + count]; /* with the NULL */
    *argc -= count;
}

bool suite_flag(int *argc, char **argv, const char *name)
{
    int at = find(*argc, argv, name);
    if (at) drop(argc, argv, at, 1);
    return at != 0;
}

int suite_number(int *argc, char **argv, const char *name)
{
    static char path[512];
    int at = find(*argc, argv, name), number = 0;
    if (!at || at + 1 == *argc) return 0;
    number = (int)strtol(argv[at + 1], NULL, 0);
    if (argv[0] != path) snprintf(path, sizeof path, "%s", argv[0]);
    const size_t n = strlen(path);
    snprintf(path + n, sizeof path - n, " %s %d", name, number);
    argv[0] = path;
    drop(argc, argv, at, 2);
    return number;
}

bool suite_begin(struct device *d, const char *program, int argc, char **argv)
{
    hewn_error err = {0};
    test_begin(program, argc, argv);
    verdict_begin(program);
    if (!device_open(d, &err)) {
        fprintf(stderr, "%s: %s\n", program, err.message);
        verdict_end();
        return false;
    }
    test_where("%s", d->info.name);
    return true;
}

int suite_end(struct device *d)
{
    device_close(d);
    verdict_end();
    return test_end();
}
