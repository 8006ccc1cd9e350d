/*
 * hewn run: options, one process a schedule, and what came of them all. On the simulator each run ends
 * with the checker's verdict; on a GPU there are results and no verdict. Exit status as hewn check:
 * 1 error or review, a refused launch or wrong results; 2 incomplete; else 0.
 */
#include "run.h"

#include "fold.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
    struct run run;
    const char *gpu, *report, *text; /* text: write the preprocessed text there, and run nothing */
    unsigned long seed, schedules;   /* schedules: seeds 1 … N; 0: the one seed */
    bool json;
    const char *word[64], *rest[64]; /* statements of the command line, applied after the notes */
    int words;
};

struct session {
    struct options *o;
    char report[PATH_MAX];
    bool temporary;
    struct verdicts verdicts;
    struct fold *fold; /* of --schedules */
    unsigned long runs, refused, wrong, compared, on_gpu;
};

/* ---- options ---- */

static int number(const char *option, const char *text, unsigned long *out)
{
    char *end;
    errno = 0;
    *out = strtoul(text, &end, 0);
    if (errno || *text < '0' || *text > '9' || *end)
        return cli_usage("run", "%s takes a whole number, not '%s'", option, text);
    return 0;
}

static int known_option(struct options *o, const char *name, const char *value)
{
    if (!strcmp(name, "--gpu")) {
        o->gpu = value;
        return 0;
    }
    if (!strcmp(name, "--report")) {
        o->report = value;
        return 0;
    }
    if (!strcmp(name, "--replay")) return setenv("HEWN_SIM_REPLAY", value, 1) ? EXIT_USAGE : 0;
    if (!strcmp(name, "--suppress")) return cli_suppress(value);
    if (!strcmp(name, "--text")) {
        o->text = value;
        return 0;
    }
    if (!strcmp(name, "--seed")) return number(name, value, &o->seed);
    if (!strcmp(name, "--schedules")) {
        if (number(name, value, &o->schedules)) return EXIT_USAGE;
        return o->schedules ? 0 : cli_usage("run", "--schedules takes 1 or more");
    }
    if (!run_is_word(name + 2)) return cli_unknown("run", name);
    if (o->words == (int)(sizeof o->word / sizeof o->word[0]))
        return cli_usage("run", "more than %d statements", o->words);
    o->word[o->words] = name + 2;
    o->rest[o->words++] = value;
    return 0;
}

/* Statements that consist of their word alone take no value. */
static bool bare(const char *name)
{
    return !strcmp(name, "--launch") || !strcmp(name, "--programmatic") ||
           !strcmp(name, "--cooperative") || !strcmp(name, "--plain");
}

static int parse_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        int rc = 0;
        if (!strcmp(argv[i], "--json")) {
            o->json = true;
        } else if (!strcmp(argv[i], "--pedantic")) {
            setenv("HEWN_SIM_CHECK", "2", 1);
        } else if (!strcmp(argv[i], "--explore")) {
            setenv("HEWN_SIM_EXPLORE", "10000", 0);
        } else if (!strcmp(argv[i], "--advise")) {
            setenv("HEWN_SIM_ADVISE", "1000", 0);
        } else if (!strncmp(argv[i], "-D", 2)) {
            const char *name = argv[i][2] ? argv[i] + 2 : i + 1 < argc ? argv[++i] : "";
            if (!*name || strlen(name) >= RUN_NAME || o->run.define_count == RUN_DEFINES)
                return cli_usage("run", "-D takes NAME or NAME=VALUE, at most %d of them",
                                 RUN_DEFINES);
            o->run.defines[o->run.define_count++] = name;
        } else if (bare(argv[i])) {
            rc = known_option(o, argv[i], "");
        } else if (!strncmp(argv[i], "--", 2)) {
            if (i + 1 == argc) return cli_usage("run", "%s lacks its value", argv[i]);
            rc = known_option(o, argv[i], argv[i + 1]);
            i++;
        } else if (o->run.path) {
            return cli_usage("run", "'%s': a second file", argv[i]);
        } else {
            o->run.path = argv[i];
        }
        if (rc) return rc;
    }
    if (!o->run.path) return cli_usage("run", "a PTX file is missing");
    if (o->gpu && strcmp(o->gpu, "h200") && strcmp(o->gpu, "b200") && strcmp(o->gpu, "b300"))
        return cli_usage("run", "--gpu takes h200, b200 or b300, not '%s'", o->gpu);
    return 0;
}

/* The device to simulate: asked for here, in the environment, in the notes, by the target. */
static const char *device_for(const struct options *o)
{
    const char *wanted = getenv("HEWN_SIM_GPU");
    char target[RUN_NAME];
    if (o->gpu) return o->gpu;
    if (wanted && *wanted) return wanted;
    if (o->run.gpu[0]) return o->run.gpu;
    if (!run_target(o->run.text, target)) return "b200";
    return hewn_target_runs_on(target, 9, 0)    ? "h200"
           : hewn_target_runs_on(target, 10, 0) ? "b200"
           : hewn_target_runs_on(target, 10, 3) ? "b300"
                                                : "b200";
}

static int describe(struct options *o)
{
    struct run *r = &o->run;
    char *source = NULL, statement[1024];
    int rc;
    r->next = (struct run_launch){.grid = {1, 1, 1}, .block = {1, 1, 1}};
    rc = run_read(r, &source);
    if (!rc) rc = run_notes(r, source);
    free(source);
    for (int i = 0; !rc && i < o->words; i++) {
        char where[RUN_NAME];
        int n = snprintf(statement, sizeof statement, "%s %s", o->word[i], o->rest[i]);
        snprintf(where, sizeof where, "--%s", o->word[i]);
        rc = n < (int)sizeof statement
                 ? run_statement(r, where, statement)
                 : run_fail(where, "is longer than %zu characters", sizeof statement - 1);
    }
    if (!rc && !r->launches) r->launch[r->launches++] = r->next;
    return rc;
}

/* ---- one run ---- */

static void prepare_child(const struct session *s, unsigned long seed)
{
    const struct options *o = s->o;
    char text[24], simulator[PATH_MAX];
    snprintf(text, sizeof text, "%lu", seed);
    if (seed) setenv("HEWN_SIM_SEED", text, 1);
    setenv("HEWN_SIM_GPU", device_for(o), 1);
    setenv("HEWN_SIM_REPORT", s->report, 1);
    if (o->json || o->schedules) setenv("HEWN_SIM_QUIET", "1", 1);
    if ((o->gpu || o->schedules) && cli_simulator(simulator, sizeof simulator))
        setenv("HEWN_LIBCUDA", simulator, 1);
}

/* Runs in a process of its own: a failed launch spoils its context, and settings are read once. */
static int run_child(struct session *s, unsigned long seed, bool quiet, struct run_outcome *out)
{
    int ends[2], status;
    ssize_t got;
    pid_t child;
    if (pipe(ends)) return cli_fail("pipe: %s", strerror(errno));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        close(ends[0]);
        prepare_child(s, seed);
        run_execute(&s->o->run, quiet, out);
        fflush(stdout);
        _exit(write(ends[1], out, sizeof *out) == (ssize_t)sizeof *out ? 0 : 1);
    }
    close(ends[1]);
    got = child < 0 ? -1 : read(ends[0], out, sizeof *out);
    close(ends[0]);
    if (child < 0) return cli_fail("fork: %s", strerror(errno));
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return cli_fail("waitpid: %s", strerror(errno));
    if (got == (ssize_t)sizeof *out) return 0;
    return cli_fail("the run ended with signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* ---- telling ---- */

static void json_text(const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
}

static const char *results_text(const struct run_outcome *out)
{
    return out->wrong ? "wrong" : out->compared ? "right" : "none";
}

static void tell_json(const struct session *s, unsigned long seed, const struct run_outcome *out)
{
    static const char *const steps[] = {"open", "load",    "maps", "launch",
                                        "sync", "results", "over"};
    printf("{\"run\":\"");
    json_text(s->o->run.path);
    printf("\",\"seed\":%lu,\"step\":\"%s\",\"result\":%d,\"simulated\":%s,\"results\":\"%s\","
           "\"message\":\"",
           seed, steps[out->step], out->result, out->simulated ? "true" : "false",
           results_text(out));
    json_text(out->message);
    printf("\"}\n");
}

/* The report's lines from `start` on, to stdout. */
static int relay(const struct session *s, long start)
{
    FILE *f = fopen(s->report, "r");
    char *line = NULL;
    size_t capacity = 0;
    if (!f) return cli_fail("%s: %s", s->report, strerror(errno));
    fseek(f, start, SEEK_SET);
    while (getline(&line, &capacity, f) > 0) fputs(line, stdout);
    free(line);
    fclose(f);
    return 0;
}

static int run_seed(struct session *s, unsigned long seed)
{
    struct run_outcome out = {0};
    bool quiet = s->o->json || s->runs;
    long start = cli_report_size(s->report);
    int rc;
    if (start < 0) return cli_fail("%s: %s", s->report, strerror(errno));
    if (run_child(s, seed, quiet, &out)) return 1;
    rc = s->o->json ? relay(s, start) : 0;
    if (!rc && s->fold) rc = fold_add(s->fold, s->report, start, seed);
    if (!rc) rc = cli_count_verdicts(s->report, start, &s->verdicts);
    s->runs++;
    s->refused += out.step != STEP_OVER;
    s->wrong += out.wrong;
    s->compared += out.compared;
    s->on_gpu += !out.simulated;
    if (s->o->json)
        tell_json(s, seed, &out);
    else if (out.message[0] && !(s->o->schedules && s->refused > 1))
        cli_fail("%s", out.message);
    return rc;
}

static int conclude(const struct session *s)
{
    const struct verdicts *v = &s->verdicts;
    if (s->fold) fold_print(s->fold, stderr, (unsigned)s->runs);
    if (!s->o->json && s->on_gpu < s->runs) {
        fprintf(stderr, "hewn run: %lu run%s: %u clean, %u review, %u incomplete, %u error",
                s->runs, s->runs == 1 ? "" : "s", v->clean, v->review, v->incomplete, v->error);
        cli_print_idioms(stderr, v);
        fputs("\n", stderr);
    }
    if (!s->o->json && v->proved + v->sampled) cli_print_basis(stderr, "hewn run", v);
    if (!s->o->json && s->compared)
        fprintf(stderr, "hewn run: results right in %lu of %lu runs\n", s->compared - s->wrong,
                s->runs);
    if (v->error || v->review || s->wrong) return 1;
    if (v->incomplete) return 2;
    return s->refused ? 1 : 0;
}

static int run_all(struct session *s)
{
    unsigned long first = s->o->schedules ? 1 : s->o->seed;
    unsigned long last = s->o->schedules ? s->o->schedules : s->o->seed;
    for (unsigned long seed = first;; seed++) {
        if (run_seed(s, seed)) return 1;
        if (seed == last) return conclude(s);
    }
}

static int write_text(const struct options *o)
{
    FILE *f = fopen(o->text, "w");
    bool bad;
    if (!f) return cli_fail("%s: %s", o->text, strerror(errno));
    bad = fputs(o->run.text, f) < 0;
    if (fclose(f) || bad) return cli_fail("%s: cannot be written", o->text);
    return 0;
}

/* Makes the report file where none was asked for, and runs. */
static int run_session(struct session *s)
{
    int rc;
    const char *wanted = getenv("HEWN_SIM_REPORT"); /* of hewn check, around this run */
    if (s->o->report) wanted = s->o->report;
    s->temporary = !wanted || !*wanted;
    snprintf(s->report, sizeof s->report, "%s", s->temporary ? "/tmp/hewn-run-XXXXXX" : wanted);
    if (s->temporary) {
        int fd = mkstemp(s->report);
        if (fd < 0) return cli_fail("%s: %s", s->report, strerror(errno));
        close(fd);
    }
    if (s->o->schedules && !s->o->json) s->fold = fold_new();
    rc = run_all(s);
    fold_free(s->fold);
    if (s->temporary) unlink(s->report);
    return rc;
}

int cli_run(int argc, char **argv)
{
    struct options *o = calloc(1, sizeof *o);
    struct session *s = calloc(1, sizeof *s);
    int rc = o && s ? parse_options(argc, argv, o) : cli_fail("out of memory");
    if (!rc && o && describe(o)) rc = 1;
    if (!rc && o && s) {
        s->o = o;
        rc = o->text ? write_text(o) : run_session(s);
    }
    if (o) free(o->run.text);
    free(o);
    free(s);
    return rc;
}
