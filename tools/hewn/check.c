/*
 * hewn check: runs a program with the simulated driver in place of libcuda.so.1 and every check on,
 * then turns the launches' verdicts into an exit status: 1 error or review, 2 incomplete, else the
 * program's own. With --schedules the program runs once for each of several seeds, and what was found
 * is folded (fold.h).
 */
#include "cli.h"
#include "fold.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SCHEDULES = 1000000 };

struct check_options {
    const char *gpu, *report;
    unsigned schedules; /* 0: one run, as the environment says */
    uint64_t seed;      /* the first schedule's */
    char **program;
};

/* A whole number in [low, high], or false. */
static bool read_number(const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 0);
    return *text >= '0' && *text <= '9' && !*end && !errno && *out >= low && *out <= high;
}

/* --schedules N: the seeds from HEWN_SIM_SEED on, else from 1. */
static int parse_schedules(const char *text, struct check_options *o)
{
    const char *seed = getenv("HEWN_SIM_SEED");
    uint64_t count;
    if (!read_number(text, 1, MAX_SCHEDULES, &count))
        return cli_usage("check", "--schedules takes a number from 1 to %d, not '%s'",
                         (int)MAX_SCHEDULES, text);
    o->schedules = (unsigned)count;
    o->seed = 1;
    if (seed && *seed && !read_number(seed, 0, UINT64_MAX - count, &o->seed))
        return cli_usage("check", "HEWN_SIM_SEED=%s leaves no room for %u seeds", seed,
                         o->schedules);
    return 0;
}

static int parse_options(int argc, char **argv, struct check_options *o)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "--")) {
            i++;
            break;
        }
        if (!strcmp(argv[i], "--gpu") && i + 1 < argc)
            o->gpu = argv[++i];
        else if (!strcmp(argv[i], "--report") && i + 1 < argc)
            o->report = argv[++i];
        else if (!strcmp(argv[i], "--pedantic"))
            setenv("HEWN_SIM_CHECK", "2", 1);
        else if (!strcmp(argv[i], "--explore"))
            setenv("HEWN_SIM_EXPLORE", "10000", 0);
        else if (!strcmp(argv[i], "--advise"))
            setenv("HEWN_SIM_ADVISE", "1000", 0);
        else if (!strcmp(argv[i], "--replay") && i + 1 < argc)
            setenv("HEWN_SIM_REPLAY", argv[++i], 1);
        else if (!strcmp(argv[i], "--suppress") && i + 1 < argc) {
            if (cli_suppress(argv[++i])) return 1;
        } else if (!strcmp(argv[i], "--schedules") && i + 1 < argc) {
            int rc = parse_schedules(argv[++i], o);
            if (rc) return rc;
        } else
            return cli_unknown("check", argv[i]);
    }
    if (i >= argc) return cli_usage("check", "a program is missing");
    if (o->gpu && strcmp(o->gpu, "h200") && strcmp(o->gpu, "b200") && strcmp(o->gpu, "b300"))
        return cli_usage("check", "--gpu takes h200, b200 or b300, not '%s'", o->gpu);
    if (!o->report) o->report = getenv("HEWN_SIM_REPORT");
    if (o->report && !*o->report) o->report = NULL;
    o->program = argv + i;
    return 0;
}

/* Tools that call ptxas themselves find the stand-in beside the simulator, unless told of another. */
static void set_assembler(const char *simulator)
{
    static const char *const names[] = {"TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"};
    char path[2 * PATH_MAX];
    int folder = (int)(strrchr(simulator, '/') - simulator);

    snprintf(path, sizeof path, "%.*s/bin/ptxas", folder, simulator);
    if (access(path, X_OK)) return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) setenv(names[i], path, 0);
}

/* The child's environment: the simulator first on the library path, checks on, findings to a file. */
static void set_environment(const struct check_options *o, const char *simulator,
                            const char *report)
{
    char path[2 * PATH_MAX];
    const char *old = getenv("LD_LIBRARY_PATH"), *level = getenv("HEWN_SIM_CHECK");
    int folder = (int)(strrchr(simulator, '/') - simulator);
    snprintf(path, sizeof path, "%.*s%s%s", folder, simulator, old && *old ? ":" : "",
             old ? old : "");
    setenv("LD_LIBRARY_PATH", path, 1);
    set_assembler(simulator);
    setenv("HEWN_LIBCUDA", simulator, 1);
    setenv("HEWN_SIM_REPORT", report, 1);
    if (!level || !strcmp(level, "0")) setenv("HEWN_SIM_CHECK", "1", 1);
    if (o->gpu) setenv("HEWN_SIM_GPU", o->gpu, 1);
    if (isatty(STDERR_FILENO) && !o->schedules) setenv("HEWN_SIM_PROGRESS", "1", 0);
}

/* Schedule `index`: its seed, findings to the report alone; only the first run's output is shown. */
static void set_schedule(const struct check_options *o, unsigned index)
{
    char seed[24];
    int nowhere = index ? open("/dev/null", O_RDWR) : -1;
    snprintf(seed, sizeof seed, "%" PRIu64, o->seed + index);
    setenv("HEWN_SIM_SEED", seed, 1);
    setenv("HEWN_SIM_QUIET", "1", 1);
    if (nowhere < 0) return;
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)dup2(nowhere, STDERR_FILENO);
    close(nowhere);
}

static int run_child(const struct check_options *o, unsigned index, const char *simulator,
                     const char *report)
{
    int status;
    pid_t child;
    if (!o->program) return 127;
    child = fork();
    if (child == 0) {
        set_environment(o, simulator, report);
        if (o->schedules) set_schedule(o, index);
        execvp(o->program[0], o->program);
        cli_fail("%s: %s", o->program[0], strerror(errno));
        _exit(127);
    }
    if (child < 0) return cli_fail("fork: %s", strerror(errno)), 127;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What stands behind `,"why":"` of a verdict's line, as far as there is room; our texts escape nothing but
 * what a file's name holds. */
static void take_why(struct verdicts *v, const char *line)
{
    const char *why = strstr(line, ",\"why\":\"");
    if (!why || v->why[0]) return;
    snprintf(v->why, sizeof v->why, "%s", why + 8);
    v->why[strcspn(v->why, "\"")] = '\0';
}

void cli_print_basis(FILE *out, const char *who, const struct verdicts *v)
{
    const char *between = "";
    fprintf(out, "%s: ", who);
    if (v->proved) fprintf(out, "%u proved for every order", v->proved), between = ", ";
    if (v->explored)
        fprintf(out, "%s%u explored under these seeds", between, v->explored), between = ", ";
    if (v->sampled) fprintf(out, "%s%u sampled, for the order that ran", between, v->sampled);
    fprintf(out, "%s%s\n", v->why[0] ? ": " : "", v->why);
}

/* A verdict's `,"kernel":"NAME"` and `,"idioms":N`. */
static void take_idioms(struct verdicts *v, const char *line)
{
    const char *name = strstr(line, ",\"kernel\":\""), *count = strstr(line, ",\"idioms\":");
    char kernel[sizeof v->kernel[0].name];
    unsigned i = 0, n = count ? (unsigned)strtoul(count + 10, NULL, 10) : 0;
    if (!name || !n) return;
    snprintf(kernel, sizeof kernel, "%s", name + 11);
    kernel[strcspn(kernel, "\"")] = '\0';
    while (i < v->kernels && strcmp(v->kernel[i].name, kernel)) i++;
    if (i == sizeof v->kernel / sizeof v->kernel[0]) return;
    if (i == v->kernels) memcpy(v->kernel[v->kernels++].name, kernel, sizeof kernel);
    if (n > v->kernel[i].idioms) v->kernel[i].idioms = n;
}

void cli_print_idioms(FILE *out, const struct verdicts *v)
{
    unsigned n = 0;
    for (unsigned i = 0; i < v->kernels; i++) n += v->kernel[i].idioms;
    if (n) fprintf(out, "; %u idiom%s by the letter (--pedantic)", n, n == 1 ? "" : "s");
}

int cli_count_verdicts(const char *report, long start, struct verdicts *v)
{
    FILE *f = fopen(report, "r");
    char *line = NULL;
    size_t capacity = 0;
    if (!f) return cli_fail("%s: %s", report, strerror(errno));
    fseek(f, start, SEEK_SET);
    while (getline(&line, &capacity, f) > 0) {
        if (strncmp(line, "{\"verdict\":\"", 12)) continue;
        v->clean += !strncmp(line + 12, "clean", 5);
        v->review += !strncmp(line + 12, "review", 6);
        v->incomplete += !strncmp(line + 12, "incomplete", 10);
        v->error += !strncmp(line + 12, "error", 5);
        v->proved += strstr(line, ",\"basis\":\"proved\"") != NULL;
        v->explored += strstr(line, ",\"basis\":\"explored\"") != NULL;
        v->sampled += strstr(line, ",\"basis\":\"sampled\"") != NULL;
        take_why(v, line);
        take_idioms(v, line);
    }
    free(line);
    fclose(f);
    return 0;
}

long cli_report_size(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "ab"); /* created where it is not there yet */
    if (!f) return -1;
    fclose(f);
    return stat(path, &st) ? -1 : (long)st.st_size;
}

int cli_suppress(const char *rule)
{
    const char *old = getenv("HEWN_SIM_SUPPRESS");
    size_t size = (old ? strlen(old) : 0) + strlen(rule) + 2;
    char *all = malloc(size);
    int rc;
    if (!all) return cli_fail("out of memory");
    snprintf(all, size, "%s%s%s", old ? old : "", old && *old ? "\n" : "", rule);
    rc = setenv("HEWN_SIM_SUPPRESS", all, 1);
    free(all);
    return rc ? cli_fail("--suppress %s: %s", rule, strerror(errno)) : 0;
}

static int judge(const struct verdicts *v, int status)
{
    unsigned launches = v->clean + v->review + v->incomplete + v->error;
    fprintf(
        stderr,
        "hewn check: %u launch%s: %u clean, %u review, %u incomplete, %u error; program exit %d",
        launches, launches == 1 ? "" : "es", v->clean, v->review, v->incomplete, v->error, status);
    cli_print_idioms(stderr, v);
    fputs("\n", stderr);
    if (launches) cli_print_basis(stderr, "hewn check", v);
    if (!launches)
        fputs(
            "hewn check: nothing was checked: no kernel was launched on the simulated driver. The "
            "program must open libcuda.so.1 dynamically and give it PTX\n",
            stderr);
    if (v->error || v->review) return 1;
    if (v->incomplete || (!launches && !status)) return 2;
    return status;
}

/* Every schedule in turn, each with a report of its own; *status is the first that is not 0. */
static int run_schedules(const struct check_options *o, const char *simulator, struct fold *fold,
                         int *status)
{
    char path[] = "/tmp/hewn-check-XXXXXX";
    int fd = mkstemp(path), rc = 0;
    bool shown = isatty(STDERR_FILENO);
    if (fd < 0) return cli_fail("%s: %s", path, strerror(errno));
    for (unsigned i = 0; i < o->schedules && !rc; i++) {
        unsigned long long seed = o->seed + i;
        int one;
        if (shown) fprintf(stderr, "\r\033[K… schedule %u of %u", i + 1, o->schedules);
        one = ftruncate(fd, 0) ? 127 : run_child(o, i, simulator, path);
        if (shown) fputs("\r\033[K", stderr);
        if (one && one != *status)
            fprintf(stderr, "hewn check: seed %llu: program exit %d\n", seed, one);
        if (!*status) *status = one;
        rc = fold_add(fold, path, 0, seed);
    }
    close(fd);
    unlink(path);
    return rc;
}

static int check_schedules(const struct check_options *o, const char *simulator, const char *report,
                           int *status)
{
    struct fold *fold = fold_new();
    FILE *out = fopen(report, "a");
    int rc = 1;
    *status = 0;
    if (!fold || !out)
        cli_fail("%s: %s", report, strerror(errno));
    else
        rc = run_schedules(o, simulator, fold, status);
    if (!rc) rc = fold_write(fold, out);
    if (!rc) {
        fold_print(fold, stderr, o->schedules);
        fprintf(stderr, "hewn check: %u schedule%s, seeds %llu to %llu\n", o->schedules,
                o->schedules == 1 ? "" : "s", (unsigned long long)o->seed,
                (unsigned long long)(o->seed + o->schedules - 1));
    }
    if (out) fclose(out);
    fold_free(fold);
    return rc;
}

int cli_check(int argc, char **argv)
{
    struct check_options o = {0};
    struct verdicts v = {0};
    char simulator[PATH_MAX], absolute[PATH_MAX], temporary[] = "/tmp/hewn-check-XXXXXX";
    int rc = parse_options(argc, argv, &o), status;
    const char *report = o.report;
    long start;
    if (rc) return rc;
    if (!cli_simulator(simulator, sizeof simulator) || !realpath(simulator, absolute))
        return cli_fail("no simulated driver beside this program");
    if (!report) {
        int fd = mkstemp(temporary);
        if (fd < 0) return cli_fail("%s: %s", temporary, strerror(errno));
        close(fd);
        report = temporary;
    }
    start = cli_report_size(report);
    if (start < 0) return cli_fail("%s: %s", report, strerror(errno));
    if (o.schedules)
        rc = check_schedules(&o, absolute, report, &status);
    else
        status = run_child(&o, 0, absolute, report);
    if (!rc) rc = cli_count_verdicts(report, start, &v);
    if (!o.report) unlink(temporary);
    return rc ? rc : judge(&v, status);
}
