/*
 * hewn watch: runs a program with the watching library (tools/watch) preloaded, then counts what the library
 * reported: hangs, and kernels that were watched or not.
 */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct watch_options {
    const char *after, *report;
    char *ignore; /* names in lines; NULL: none */
    char **program;
};

struct watch_counts {
    unsigned hangs, watched, unwatched;
};

static int add_ignored(struct watch_options *o, const char *name)
{
    const size_t had = o->ignore ? strlen(o->ignore) : 0, size = had + strlen(name) + 2;
    char *all = realloc(o->ignore, size);

    if (!all) return cli_fail("out of memory");
    snprintf(all + had, size - had, "%s\n", name);
    o->ignore = all;
    return 0;
}

static int check_seconds(const char *text)
{
    char *end;
    const double seconds = strtod(text, &end);

    if (*end || end == text || !(seconds >= 0.5 && seconds <= 86400))
        return cli_usage("watch", "--after takes seconds from 0.5 to 86400, not '%s'", text);
    return 0;
}

static int parse_options(int argc, char **argv, struct watch_options *o)
{
    int i = 1, rc = 0;

    for (; i < argc && argv[i][0] == '-' && !rc; i++) {
        if (!strcmp(argv[i], "--")) {
            i++;
            break;
        }
        if (!strcmp(argv[i], "--after") && i + 1 < argc) {
            o->after = argv[++i];
            rc = check_seconds(o->after);
        } else if (!strcmp(argv[i], "--ignore") && i + 1 < argc) {
            rc = add_ignored(o, argv[++i]);
        } else if (!strcmp(argv[i], "--report") && i + 1 < argc) {
            o->report = argv[++i];
        } else {
            rc = cli_unknown("watch", argv[i]);
        }
    }
    if (!rc && i >= argc) rc = cli_usage("watch", "a program is missing");
    o->program = argv + i;
    return rc;
}

static void set_environment(const struct watch_options *o, const char *library, const char *report)
{
    char path[2 * PATH_MAX];
    const char *old = getenv("LD_PRELOAD");

    snprintf(path, sizeof path, "%s%s%s", library, old && *old ? ":" : "", old ? old : "");
    setenv("LD_PRELOAD", path, 1);
    setenv("HEWN_WATCH_REPORT", report, 1);
    if (o->after) setenv("HEWN_WATCH_AFTER", o->after, 1);
    if (o->ignore) setenv("HEWN_WATCH_IGNORE", o->ignore, 1);
}

static int run_program(const struct watch_options *o, const char *library, const char *report)
{
    int status;
    const pid_t child = fork();

    if (child == 0) {
        set_environment(o, library, report);
        execvp(o->program[0], o->program);
        cli_fail("%s: %s", o->program[0], strerror(errno));
        _exit(127);
    }
    if (child < 0) return cli_fail("fork: %s", strerror(errno)), 127;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int count_lines(const char *report, long start, struct watch_counts *n)
{
    FILE *f = fopen(report, "r");
    char *line = NULL;
    size_t capacity = 0;

    if (!f) return cli_fail("%s: %s", report, strerror(errno));
    fseek(f, start, SEEK_SET);
    while (getline(&line, &capacity, f) > 0) {
        n->hangs += strstr(line, "\"kind\":\"deadlock\"") != NULL;
        n->watched += !strncmp(line, "{\"watched\"", 10);
        n->unwatched += !strncmp(line, "{\"unwatched\"", 12);
    }
    free(line);
    fclose(f);
    return 0;
}

static int judge(const struct watch_counts *n, int status)
{
    fprintf(stderr, "hewn watch: %u kernel%s watched, %u unwatched; %s; program exit %d\n",
            n->watched, n->watched == 1 ? "" : "s", n->unwatched, n->hangs ? "a hang" : "no hang",
            status);
    if (!n->watched) fputs("hewn watch: nothing was watched: the program loaded no PTX\n", stderr);
    return n->hangs ? 1 : status;
}

int cli_watch(int argc, char **argv)
{
    struct watch_options o = {0};
    struct watch_counts n = {0};
    char library[PATH_MAX], absolute[PATH_MAX], full[PATH_MAX],
        temporary[] = "/tmp/hewn-watch-XXXXXX";
    int rc = parse_options(argc, argv, &o), status = 0;
    const char *report = o.report;
    long start = -1;

    if (!rc && (!cli_watcher(library, sizeof library) || !realpath(library, absolute)))
        rc = cli_fail("no watch/libhewn-watch.so beside this program");
    if (!rc && !report) {
        const int fd = mkstemp(temporary);

        if (fd >= 0) close(fd);
        rc = fd < 0 ? cli_fail("%s: %s", temporary, strerror(errno)) : 0;
        report = temporary;
    }
    if (!rc) {
        start = cli_report_size(report);
        rc = start < 0 || !realpath(report, full) ? cli_fail("%s: %s", report, strerror(errno)) : 0;
    }
    if (!rc) {
        status = run_program(&o, absolute, full);
        rc = count_lines(report, start, &n);
        if (!rc) rc = judge(&n, status);
    }
    if (report == temporary) unlink(temporary);
    free(o.ignore);
    return rc;
}
