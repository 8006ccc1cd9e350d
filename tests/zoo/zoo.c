/*
 * The zoo: small kernels with one bug each, and what must be said of them.
 *
 *     zoo [--seeds N] [--jobs N] [--open skip] HEWN FILE.ptx…
 *
 * Each file says in its banner what is expected:
 *
 *     //@ zoo: WHERE IT WAS MET; want SEVERITY KIND [CAUSE]; …
 *     //@ zoo: …; want code N at STEP "REGEX"        a refused load, map or launch, and its message;
 *                                                    findings may be wanted behind it
 *     //@ zoo: …; want clean                         a legal idiom: no finding at all
 *     //@ zoo: …; idioms N [M]                        so many lines with idioms, in the twin M, else N too
 *     //@ zoo: …; level 2; …                         asked, like its twin, at HEWN_SIM_CHECK=2
 *     //@ zoo: …; advise; …                          asked with --advise, as its twin is
 *     //@ zoo: open WHY                              not found yet; counts as a failure, and as one
 *                                                    too when it is found after all
 *
 * and marks the guilty lines with a trailing  // zoo: here  (of a pair of accesses either may be cited: the
 * finding tells the other). The file is run as it is and with -DFIXED, each under seeds 1 … N: under
 * every seed the findings wanted must be there, at a marked line, and the verdict be theirs; the twin
 * must be clean, without a finding, and its results right. Prints a table, the CPU time of the slowest
 * case and "N passed, N failed"; a case that takes a minute for all its seeds is killed, and failed.
 */
#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WANTS = 4, MARKS = 12, CASES = 384, GOTS = 12, NAME = 96, LINE = 4096 };

struct want {
    char severity[16], kind[32], cause[32]; /* severity "code": a refusal; "clean": nothing */
    long code;
    char step[16], pattern[256];
};

struct zoo_case {
    const char *path;
    char origin[NAME], open[256], level[8];
    bool advise;
    bool counted; /* how many idioms there are: [1] of the twin */
    unsigned idioms[2];
    struct want want[WANTS];
    int wants;
    long mark[MARKS];
    int marks;
};

/* What one seed said, then what all of them said together. */
struct got {
    char text[NAME];
    unsigned seeds;
};
struct result {
    bool ok, ran;
    char why[512];
    struct got got[GOTS];
    int gots;
    unsigned seeds;
    double seconds; /* of CPU time, all seeds */
};

struct job {
    const struct zoo_case *zoo;
    bool fixed;
    pid_t child;
    FILE *output;
    struct result result;
};

struct options {
    const char *hewn, *seeds;
    long jobs;
    bool skip_open;
};

/* ---- banners ---- */

static int bad_banner(const struct zoo_case *z, const char *text)
{
    fprintf(stderr, "zoo: %s: cannot read \"%s\"\n", z->path, text);
    return -1;
}

static int read_want(struct zoo_case *z, const char *text)
{
    struct want *w = &z->want[z->wants];
    int n;
    if (z->wants == WANTS) return bad_banner(z, text);
    memset(w, 0, sizeof *w);
    if (sscanf(text, " code %ld at %15s \"%255[^\"]\"", &w->code, w->step, w->pattern) == 3) {
        snprintf(w->severity, sizeof w->severity, "code");
    } else {
        n = sscanf(text, "%15s %31s %31s", w->severity, w->kind, w->cause);
        if (n < 1 || (n == 1) != !strcmp(w->severity, "clean")) return bad_banner(z, text);
    }
    z->wants++;
    return 0;
}

static int read_banner(struct zoo_case *z, char *text)
{
    char *save = NULL;
    for (char *part = strtok_r(text, ";\n", &save); part; part = strtok_r(NULL, ";\n", &save)) {
        part += strspn(part, " ");
        if (!strncmp(part, "want ", 5)) {
            if (read_want(z, part + 5)) return -1;
        } else if (!strncmp(part, "level ", 6)) {
            snprintf(z->level, sizeof z->level, "%s", part + 6);
        } else if (!strcmp(part, "advise")) {
            z->advise = true;
        } else if (!strncmp(part, "idioms ", 7)) {
            int n = sscanf(part + 7, "%u %u", &z->idioms[0], &z->idioms[1]);
            if (n < 1) return bad_banner(z, part);
            if (n == 1) z->idioms[1] = z->idioms[0];
            z->counted = true;
        } else if (!strncmp(part, "open ", 5)) {
            snprintf(z->open, sizeof z->open, "%s", part + 5);
        } else if (!z->origin[0]) {
            snprintf(z->origin, sizeof z->origin, "%s", part);
        } else {
            return bad_banner(z, part);
        }
    }
    return 0;
}

static int read_case(struct zoo_case *z, const char *path)
{
    char line[LINE];
    long number = 0;
    FILE *f = fopen(path, "r");
    memset(z, 0, sizeof *z);
    z->path = path;
    if (!f) return fprintf(stderr, "zoo: %s: %s\n", path, strerror(errno)), -1;
    while (fgets(line, sizeof line, f)) {
        number++;
        if (!strncmp(line, "//@ zoo:", 8)) {
            if (read_banner(z, line + 8)) break;
        } else if (strstr(line, "// zoo: here") && z->marks < MARKS) {
            z->mark[z->marks++] = number;
        }
    }
    number = !feof(f) || !z->wants;
    fclose(f);
    return number ? bad_banner(z, "//@ zoo:") : 0;
}

/* ---- what a run printed ---- */

/* The text of a field; "" where it is absent. Related places come last in a finding and are not seen. */
static void field(const char *line, const char *key, char *out, size_t size)
{
    char quoted[32];
    const char *at;
    size_t n = 0;
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    at = strstr(line, quoted);
    if (at) {
        bool text = *(at += strlen(quoted)) == '"';
        for (at += text; *at && *at != (text ? '"' : ',') && n + 1 < size; at++)
            out[n++] = *at == '\\' && at[1] ? *++at : *at;
    }
    out[n] = '\0';
}

__attribute__((format(printf, 2, 3))) static void fail(struct result *r, const char *format, ...)
{
    va_list args;
    if (r->ok) {
        va_start(args, format);
        vsnprintf(r->why, sizeof r->why, format, args);
        va_end(args);
    }
    r->ok = false;
}

/* Notes what one seed said; `noted` are the indices that it has said already. */
static void note(struct result *r, const char *text, unsigned *noted)
{
    int i = 0;
    while (i < r->gots && strcmp(r->got[i].text, text)) i++;
    if (i == GOTS) return;
    if (i == r->gots) {
        snprintf(r->got[i].text, sizeof r->got[i].text, "%s", text);
        r->got[i].seeds = 0;
        r->gots++;
    }
    if (!(*noted >> i & 1)) r->got[i].seeds++;
    *noted |= 1U << i;
}

static int rank_of(const char *verdict)
{
    static const char *const order[] = {"clean", "review", "incomplete", "error"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(verdict, order[i])) return i;
    return 0;
}

static int rank_wanted(const struct zoo_case *z)
{
    int worst = 0;
    for (int i = 0; i < z->wants; i++) {
        const char *s = z->want[i].severity;
        int rank = !strcmp(z->want[i].kind, "unsupported") ? 2
                   : !strcmp(s, "error")                   ? 3
                   : !strcmp(s, "warning")                 ? 1
                                                           : 0;
        if (rank > worst) worst = rank;
    }
    return worst;
}

struct seed {
    unsigned found, noted; /* bits: wants met; gots said */
    int verdict, findings;
    unsigned idioms;
};

static void take_finding(struct job *j, struct seed *s, const char *line)
{
    char severity[16], kind[32], cause[32], number[16], text[NAME];
    const struct zoo_case *z = j->zoo;
    long at;
    field(line, "severity", severity, sizeof severity);
    field(line, "kind", kind, sizeof kind);
    field(line, "cause", cause, sizeof cause);
    field(line, "line", number, sizeof number);
    at = strtol(number, NULL, 10);
    snprintf(text, sizeof text, "%s%s%s%s:%ld", kind, *cause ? " (" : "", cause, *cause ? ")" : "",
             at);
    note(&j->result, text, &s->noted);
    /* Advice about a repaired twin is welcome, unless it is the very one that was repaired. */
    if (j->fixed && !strcmp(severity, "advice")) {
        for (int i = 0; i < z->wants; i++) s->findings += !strcmp(z->want[i].kind, kind);
        return;
    }
    s->findings++;
    for (int i = 0; i < z->wants; i++) {
        const struct want *w = &z->want[i];
        bool here = false;
        for (int m = 0; m < z->marks; m++) here = here || z->mark[m] == at;
        if (here && !strcmp(w->severity, severity) && !strcmp(w->kind, kind) &&
            !strcmp(w->cause, cause))
            s->found |= 1U << i;
    }
}

/* The line that ends a seed's output. */
static void judge_refusal(struct job *j, const struct want *w, const char *step, long code,
                          const char *message)
{
    regex_t re;
    if (strcmp(step, w->step) || code != w->code) {
        fail(&j->result, "ended at '%s' with %ld, want '%s' with %ld", step, code, w->step,
             w->code);
    } else if (regcomp(&re, w->pattern, REG_NOSUB | REG_EXTENDED)) {
        fail(&j->result, "'%s' is no regular expression", w->pattern);
    } else {
        if (regexec(&re, message, 0, NULL, 0))
            fail(&j->result, "the message \"%s\" does not match", message);
        regfree(&re);
    }
}

static void judge_clean(struct job *j, const struct seed *s, const char *number, const char *step,
                        const char *results, const char *message)
{
    if (strcmp(step, "over"))
        fail(&j->result, "seed %s: ended at '%s': %s", number, step, message);
    else if (s->verdict || s->findings)
        fail(&j->result, "seed %s: not clean", number);
    else if (strcmp(results, "right"))
        fail(&j->result, "seed %s: results %s", number, results);
}

static void judge_seed(struct job *j, const struct seed *s, const char *line)
{
    static const char *const verdicts[] = {"clean", "review", "incomplete", "error"};
    char step[16], results[16], number[24], code[24], message[1024];
    const struct zoo_case *z = j->zoo;
    field(line, "step", step, sizeof step);
    field(line, "results", results, sizeof results);
    field(line, "seed", number, sizeof number);
    field(line, "result", code, sizeof code);
    field(line, "message", message, sizeof message);
    j->result.seeds++;
    if (z->counted && s->idioms != z->idioms[j->fixed])
        fail(&j->result, "seed %s: %u lines with idioms, want %u", number, s->idioms,
             z->idioms[j->fixed]);
    if (j->fixed || !strcmp(z->want[0].severity, "clean")) {
        judge_clean(j, s, number, step, results, message);
        return;
    }
    if (!strcmp(z->want[0].severity, "code"))
        judge_refusal(j, &z->want[0], step, strtol(code, NULL, 10), message);
    for (int i = 0; i < z->wants; i++)
        if (*z->want[i].kind && !(s->found >> i & 1))
            fail(&j->result, "seed %s: no %s at a marked line", number, z->want[i].kind);
    if (s->verdict != rank_wanted(z))
        fail(&j->result, "seed %s: verdict %s, want %s", number, verdicts[s->verdict],
             verdicts[rank_wanted(z)]);
}

static void read_output(struct job *j)
{
    char *line = NULL;
    size_t capacity = 0;
    struct seed s = {0};
    rewind(j->output);
    while (getline(&line, &capacity, j->output) > 0) {
        char verdict[16], count[16];
        if (!strncmp(line, "{\"severity\"", 11)) take_finding(j, &s, line);
        if (!strncmp(line, "{\"verdict\"", 10)) {
            field(line, "verdict", verdict, sizeof verdict);
            if (rank_of(verdict) > s.verdict) s.verdict = rank_of(verdict);
            *count = '\0';
            field(line, "idioms", count, sizeof count);
            s.idioms += (unsigned)strtoul(count, NULL, 10);
        }
        if (!strncmp(line, "{\"run\"", 6)) {
            judge_seed(j, &s, line);
            s = (struct seed){0};
        }
    }
    free(line);
    fclose(j->output);
}

/* ---- running ---- */

static int start(const struct options *o, struct job *j)
{
    j->output = tmpfile();
    if (!j->output) return perror("zoo: tmpfile"), -1;
    j->child = fork();
    if (j->child < 0) return perror("zoo: fork"), -1;
    if (j->child == 0) {
        setpgid(0, 0);
        dup2(fileno(j->output), STDOUT_FILENO);
        if (!freopen("/dev/null", "w", stderr)) _exit(126);
        if (j->zoo->level[0]) setenv("HEWN_SIM_CHECK", j->zoo->level, 1);
        if (j->zoo->advise) setenv("HEWN_SIM_ADVISE", "1000", 1);
        alarm(60); /* hewn run is interrupted rather than this test never ending */
        execl(o->hewn, o->hewn, "run", j->zoo->path, "--json", "--schedules", o->seeds,
              j->fixed ? "-DFIXED" : (char *)NULL, (char *)NULL);
        _exit(127);
    }
    return 0;
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

static int finish_one(const struct options *o, struct job *jobs, int count)
{
    int status;
    struct rusage usage;
    pid_t child = wait4(-1, &status, 0, &usage);
    unsigned want = (unsigned)strtoul(o->seeds, NULL, 10);
    for (int i = 0; i < count; i++) {
        struct job *j = &jobs[i];
        if (j->result.ran || j->child != child) continue; /* numbers are used again */
        kill(-child, SIGKILL);                            /* a seed whose parent was interrupted */
        j->result.ok = j->result.ran = true;
        j->result.seconds = seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
        read_output(j);
        if (j->result.seeds != want)
            fail(&j->result, "%u of %u seeds came back", j->result.seeds, want);
        return 0;
    }
    return child < 0 ? -1 : 0;
}

static int run_jobs(const struct options *o, struct job *jobs, int count)
{
    long running = 0;
    for (int i = 0; i < count; i++) {
        if (running == o->jobs) {
            if (finish_one(o, jobs, i)) return -1;
            running--;
        }
        if (start(o, &jobs[i])) return -1;
        running++;
    }
    for (; running; running--)
        if (finish_one(o, jobs, count)) return -1;
    return 0;
}

/* ---- the table ---- */

static void print_wanted(const struct job *j)
{
    const struct zoo_case *z = j->zoo;
    char text[256] = "";
    for (int i = 0; i < z->wants && !j->fixed; i++) {
        const struct want *w = &z->want[i];
        size_t n = strlen(text);
        if (w->code)
            snprintf(text + n, sizeof text - n, "%ld at %s", w->code, w->step);
        else
            snprintf(text + n, sizeof text - n, "%s%s%s%s%s", i ? " + " : "",
                     *w->kind ? w->kind : w->severity, *w->cause ? " (" : "", w->cause,
                     *w->cause ? ")" : "");
    }
    printf("%-32s", j->fixed ? "clean" : text);
}

static void print_got(const struct result *r)
{
    if (!r->gots) printf(r->ok ? "as expected" : "nothing");
    for (int i = 0; i < r->gots; i++) {
        printf("%s%s", i ? ", " : "", r->got[i].text);
        if (r->got[i].seeds != r->seeds) printf(" ×%u", r->got[i].seeds);
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* 1 passed, 0 failed, -1 skipped. */
static int print_job(const struct options *o, const struct job *j)
{
    const struct result *r = &j->result;
    bool open = j->zoo->open[0] && (!j->fixed || !r->ok), ok = open ? false : r->ok;
    const char *name = base_name(j->zoo->path);
    char label[64];
    if (open && !r->ok && o->skip_open) {
        printf("SKIP %s: %s\n", name, j->zoo->open);
        return -1;
    }
    snprintf(label, sizeof label, "%.*s%s", (int)strcspn(name, "."), name,
             j->fixed ? ", repaired" : "");
    printf("%s %-36s", ok ? "ok  " : "FAIL", label);
    print_wanted(j);
    printf("%3u  ", r->seeds);
    print_got(r);
    putchar('\n');
    if (open)
        printf("     %s: %s\n", r->ok ? "found, though marked as open" : "open", j->zoo->open);
    else if (!ok)
        printf("     %s (%s)\n", r->why, j->zoo->origin);
    return ok;
}

/* The slowest case, and the slowest that ends in a deadlock: how long one waits for a report. */
static void print_slowest(const struct job *jobs, int count)
{
    for (int hang = 0; hang < 2; hang++) {
        const struct job *slowest = NULL;
        for (int i = 0; i < count; i++) {
            if (hang && (jobs[i].fixed || strcmp(jobs[i].zoo->want[0].kind, "deadlock"))) continue;
            if (!slowest || jobs[i].result.seconds > slowest->result.seconds) slowest = &jobs[i];
        }
        if (slowest)
            printf("slowest%s: %s%s, %.2f s of CPU time for %u seeds\n", hang ? " hang" : "",
                   base_name(slowest->zoo->path), slowest->fixed ? ", repaired" : "",
                   slowest->result.seconds, slowest->result.seeds);
    }
}

static int report(const struct options *o, const struct job *jobs, int count)
{
    int passed = 0, failed = 0, skipped = 0;
    printf("     %-36s%-32s%s  %s\n", "case", "expected", "seeds", "got:line");
    for (int i = 0; i < count; i++) {
        int verdict = print_job(o, &jobs[i]);
        passed += verdict == 1;
        failed += verdict == 0;
        skipped += verdict == -1;
    }
    print_slowest(jobs, count);
    if (o->skip_open)
        printf("zoo: %d passed, %d failed, %d skipped\n", passed, failed, skipped);
    else
        printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    static struct zoo_case cases[CASES];
    static struct job jobs[2 * CASES];
    struct options o = {.seeds = "20", .jobs = sysconf(_SC_NPROCESSORS_ONLN)};
    int i = 1, count = 0, n = 0;
    for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
        if (!strcmp(argv[i], "--seeds"))
            o.seeds = argv[i + 1];
        else if (!strcmp(argv[i], "--jobs"))
            o.jobs = strtol(argv[i + 1], NULL, 10);
        else
            o.skip_open = !strcmp(argv[i], "--open") && !strcmp(argv[i + 1], "skip");
    }
    if (i + 1 >= argc || o.jobs < 1)
        return fprintf(stderr, "usage: zoo [--seeds N] [--jobs N] [--open skip] HEWN FILE…\n"), 64;
    o.hewn = argv[i++];
    setenv("HEWN_SIM_THREADS", "1", 0); /* files run side by side instead */
    for (; i < argc && count < CASES; i++, count++) {
        struct zoo_case *z = &cases[count];
        if (read_case(z, argv[i])) return 1;
        jobs[n++] = (struct job){.zoo = z};
        if (strcmp(z->want[0].severity, "clean")) jobs[n++] = (struct job){.zoo = z, .fixed = true};
    }
    if (run_jobs(&o, jobs, n)) return 1;
    return report(&o, jobs, n);
}
