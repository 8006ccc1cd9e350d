/*
 * Mutation testing of the checker on the shipped kernels: every small damage that mutate_text.c can do to
 * what synchronises a kernel, each run under the simulator, and whether the checker says so.
 *
 *     mutate [options] HEWN MODULES CASES   every kernel that has a file CASES/<target>-<module>.run
 *       --sample N[/I]  every N-th mutant only, from the I-th on (0); with N from 256 on, of at most four kernels of a
 *                       text; what has a reason is asked less
 *       --ptxas FILE    survivors with the machine code of the original are no mutants; without it, a survivor
 *                       that has no reason (below) is skipped
 *       --only TEXT     mutants whose target, class, rule, label or statement contains TEXT
 *       --keep DIR      leave the texts of survivors there
 *       --verbose       every mutant and what was said of it
 *       --report FILE   a line a mutant, with tabs: kernel and mutant; place and fate; probe; the report's lines
 *       --cover         tell only what the cases execute, and each statement that none does
 *       --jobs N        how many run side by side; the number of processors otherwise
 *
 * A .run file holds the lines that hewn run needs (a problem small enough to run often, whose rings go
 * round at least three times in several tiles a CTA). A mutant is found by a verdict `error` or `review`
 * under one of the probes below; wrong numbers do not count. CASES/survivors.txt gives reasons, a row each:
 *
 *     legal | target | rule | label | pattern of the statement (fnmatch) | PTX ISA section | why
 *     open  | target | rule | label | pattern of the statement           | -               | why
 *
 * target: sm_90a, or one kernel as <target>/<module>. label: the one above the statement, in what it stands in.
 * Target, rule and label are patterns as well.
 *     never | target | -    | -     | pattern of the statement           | -               | why
 *
 * legal: that section allows the mutant, so it leaves the score; open: a known miss, which stays in it.
 * never: no plan executes the statement in that kernel.
 *
 * First the cases run without the checker, to see what they execute. A mutant runs only in the launches that execute what
 * it changes, and in their neighbours. A mutant of what none executes is idle and is not scored; but each statement must
 * be executed by some case of the same source text, or have a row `never`.
 */
#include "mutate.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ALIKE = 4,
    SPARSE = 256,
    KERNELS = 112,
    REASONS = 1024,
    NAME = 96,
    PATH = 1024,
    JOBS = 64,
    CPU_SECONDS = 20,
    COVER_SEEDS = 3,
    LAUNCHES = 12
};

/* How a mutant is asked, until something is found: level, seed (completions mixed, early, late, mixed, ..). The first
 * is for one launch, where it is known which ones execute it; the rest for several.
 * Those behind the first few are not for what the ISA allows: what shows only where a try_wait gives up, or a warp
 * is far behind. At level 3 lanes may be; of what is said there only places count at which the kernel as it is is
 * clean. */
static const struct probe {
    const char *level, *seed;
} probes[] = {{"1", "1"},  {"1", "1"},  {"1", "2"},  {"1", "3"},  {"2", "1"},  {"1", "4"},
              {"1", "5"},  {"1", "6"},  {"1", "7"},  {"1", "8"},  {"1", "9"},  {"1", "10"},
              {"1", "11"}, {"1", "12"}, {"1", "13"}, {"1", "14"}, {"1", "15"}, {"1", "16"},
              {"2", "2"},  {"2", "3"},  {"2", "4"},  {"3", "1"},  {"3", "2"}};
enum { PROBES = sizeof probes / sizeof *probes, FIRST_PROBES = 5 };

/* The columns of the table; OPEN and those after it are printed each. */
enum fate {
    WAITING,
    FOUND,
    FOUND_LEVEL_2,
    REFUSED,
    IDENTICAL,
    LEGAL,
    IDLE, /* no launch of the case executes it: not asked */
    OPEN,
    UNDECIDED, /* identical or a survivor: there is no ptxas to tell */
    SURVIVED,
    FATES
};
static const char *const fate_names[FATES] = {"?",       "found",     "found at level 2",
                                              "refused", "identical", "legal",
                                              "idle",    "open",      "undecided",
                                              "survived"};

struct result {
    enum fate fate;
    int probe;
    char said[NAME]; /* kind of the first finding, or how the run ended */
    const char *reason;
};

struct reason {
    enum { REASON_LEGAL, REASON_OPEN, REASON_NEVER } kind;
    bool used;
    char line[1024]; /* the fields below point into it */
    const char *target, *rule, *label, *pattern, *section, *why;
};

struct kernel {
    char name[NAME], target[16], *original, *run; /* run: the lines for hewn run */
    struct mutant *mutant;
    struct result *result;
    int mutants;
    struct cover cover; /* empty: not asked yet */
    bool *changed;      /* of each statement, whether some mutant changes it, asked for or not */
    bool clean[PROBES]; /* the original was asked by that probe, and is */
    bool noted;         /* `places` is complete */
    char places[PATH];  /* " FILE:LINE" of what is said of the original at level 3 */
};

struct job {
    pid_t child;
    int kernel, mutant;
    bool assembles; /* the child compares machine code */
    char *lines;    /* of the last probe, for the report */
    FILE *output;
    char path[PATH + 32];
};

struct options {
    const char *hewn, *modules, *cases, *ptxas, *only, *keep;
    char work[64];
    int sample, first;
    FILE *report;
    long jobs;
    bool verbose, cover;
};

struct session {
    struct options o;
    struct kernel kernel[KERNELS];
    int kernels, skipped;
    struct reason reason[REASONS];
    int reasons;
};

/* ---- reading ---- */

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    long size;
    if (!f) return perror(path), NULL;
    if (!fseek(f, 0, SEEK_END) && (size = ftell(f)) >= 0 && (data = malloc((size_t)size + 1))) {
        rewind(f);
        data[fread(data, 1, (size_t)size, f)] = '\0';
    }
    fclose(f);
    return data;
}

static char *trim(char *text)
{
    size_t n;
    text += strspn(text, " \t");
    for (n = strlen(text); n && strchr(" \t\n", text[n - 1]); n--) text[n - 1] = '\0';
    return text;
}

static int read_reasons(struct session *s)
{
    char path[PATH], line[1024];
    FILE *f;
    snprintf(path, sizeof path, "%s/survivors.txt", s->o.cases);
    if (!(f = fopen(path, "r"))) return perror(path), -1;
    while (fgets(line, sizeof line, f)) {
        struct reason *r = &s->reason[s->reasons];
        char *field[7] = {0}, *save = NULL;
        int n = 0;
        if (*line == '#' || *line == '\n') continue;
        memcpy(r->line, line, sizeof line);
        for (char *t = strtok_r(r->line, "|", &save); t && n < 7; t = strtok_r(NULL, "|", &save))
            field[n++] = trim(t);
        if (n != 7 || s->reasons + 1 == REASONS)
            return fprintf(stderr, "mutate: %s: cannot read \"%s\"\n", path, line), fclose(f), -1;
        r->kind = !strcmp(field[0], "legal")   ? REASON_LEGAL
                  : !strcmp(field[0], "never") ? REASON_NEVER
                                               : REASON_OPEN;
        r->target = field[1];
        r->rule = field[2];
        r->label = field[3];
        r->pattern = field[4];
        r->section = field[5];
        r->why = field[6];
        s->reasons++;
    }
    fclose(f);
    return 0;
}

static bool chosen(const struct options *o, const struct kernel *k, const struct mutant *m)
{
    static const char *const classes[] = {
#define X(name, what) #name,
        MUTANT_CLASSES(X)
#undef X
    };
    return !o->only || strstr(k->name, o->only) || strstr(classes[m->class], o->only) ||
           strstr(m->rule, o->only) || strstr(m->label, o->only) || strstr(m->was, o->only);
}

/* Whether two kernels are made of the same text: their second line ends with its path. */
static bool same_source(const struct kernel *a, const struct kernel *b)
{
    const char *text = strstr(a->original, ", from "), *its = strstr(b->original, ", from ");
    return text && its && !strncmp(text, its, strcspn(text, "\n") + 1);
}

static bool many_alike(const struct session *s, const struct kernel *k)
{
    int alike = 0;
    for (const struct kernel *other = s->kernel; other < k; other++) alike += same_source(k, other);
    return alike >= ALIKE;
}

/* Leaves the mutants that the options ask for. */
static void choose(const struct session *s, struct kernel *k)
{
    const struct options *o = &s->o;
    const bool none = o->sample >= SPARSE && many_alike(s, k);
    int kept = 0;
    for (int i = 0; i < k->mutants; i++) {
        if (!none && i % o->sample == o->first && chosen(o, k, &k->mutant[i]))
            k->mutant[kept++] = k->mutant[i];
        else
            mutants_free(&k->mutant[i], 1);
    }
    k->mutants = kept;
}

/* `file` is <target>-<module>.run. */
static int read_kernel(struct session *s, const char *file)
{
    struct kernel *k = &s->kernel[s->kernels];
    const char *dash = strchr(file, '-');
    char path[PATH];
    if (!dash || s->kernels == KERNELS) return fprintf(stderr, "mutate: %s?\n", file), -1;
    snprintf(k->target, sizeof k->target, "%.*s", (int)(dash - file), file);
    snprintf(k->name, sizeof k->name, "%.*s/%.*s", (int)(dash - file), file,
             (int)strcspn(dash + 1, "."), dash + 1);
    snprintf(path, sizeof path, "%s/%s.ptx", s->o.modules, k->name);
    if (access(path, R_OK)) {
        printf("SKIP %s: this build has no such module\n", k->name);
        s->skipped++;
        return 0;
    }
    k->original = read_all(path);
    snprintf(path, sizeof path, "%s/%s", s->o.cases, file);
    k->run = read_all(path);
    k->mutant = calloc(MUTANTS, sizeof *k->mutant);
    k->result = calloc(MUTANTS, sizeof *k->result);
    k->changed = calloc(COVER_STATEMENTS, sizeof *k->changed);
    if (!k->run || !k->original || !k->mutant || !k->result || !k->changed) return -1;
    k->mutants = mutants_make(k->original, k->mutant);
    if (k->mutants < 0) return -1;
    for (int i = 0; i < k->mutants; i++)
        k->changed[k->mutant[i].first] = k->changed[k->mutant[i].last] = true;
    choose(s, k);
    s->kernels++;
    return 0;
}

static int read_kernels(struct session *s)
{
    struct dirent **entry;
    int n = scandir(s->o.cases, &entry, NULL, alphasort), rc = n < 0 ? -1 : 0;
    for (int i = 0; i < n; i++) {
        size_t length = strlen(entry[i]->d_name);
        if (!rc && length > 4 && !strcmp(entry[i]->d_name + length - 4, ".run"))
            rc = read_kernel(s, entry[i]->d_name);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    return rc || s->kernels ? rc : (fprintf(stderr, "mutate: no case in %s\n", s->o.cases), -1);
}

/* ---- running ---- */

static int write_text(const char *path, const char *text, const char *run)
{
    FILE *f = fopen(path, "w");
    if (!f) return perror(path), -1;
    fprintf(f, "%s\n%s", text, run);
    return fclose(f);
}

/* The text of mutant `i` of the kernel; -1: the original. */
static const char *text_of(const struct kernel *k, int i)
{
    return i < 0 ? k->original : k->mutant[i].text;
}

/* The launches that a mutant runs in: the first few and the last of those that execute what it changes, and their
 * neighbours, whose data they share. */
static uint64_t launches_for(const struct kernel *k, int mutant)
{
    uint64_t all, some = 0;
    if (mutant < 0 || !k->cover.statement) return UINT64_MAX;
    all = cover_launches(&k->cover, &k->mutant[mutant]);
    if (!k->result[mutant].probe) return all & (~all + 1);
    for (int i = 0; i < LAUNCHES && all; i++, all &= all - 1) some |= all & (~all + 1);
    while (all & (all - 1)) all &= all - 1;
    some |= all;
    return some | some << 1 | some >> 1;
}

static int write_mutant(const struct kernel *k, const struct job *j)
{
    char *run = cover_run(k->run, launches_for(k, j->mutant));
    int rc = run ? write_text(j->path, text_of(k, j->mutant), run) : -1;
    free(run);
    return rc;
}

static int start(const struct session *s, struct job *j, const struct probe *p)
{
    const struct kernel *k = &s->kernel[j->kernel];
    struct rlimit limit = {CPU_SECONDS, CPU_SECONDS};
    snprintf(j->path, sizeof j->path, "%s/%d-%d.ptx", s->o.work, j->kernel, j->mutant);
    if (write_mutant(k, j)) return -1;
    j->output = tmpfile();
    if (!j->output) return perror("mutate: tmpfile"), -1;
    fflush(NULL);
    j->child = fork();
    if (j->child < 0) return perror("mutate: fork"), -1;
    if (j->child == 0) {
        dup2(fileno(j->output), STDOUT_FILENO);
        if (!freopen("/dev/null", "w", stderr)) _exit(126);
        setrlimit(RLIMIT_CPU, &limit);
        setenv("HEWN_SIM_CHECK", p->level, 1);
        execl(s->o.hewn, s->o.hewn, "run", j->path, "--json", "--seed", p->seed, (char *)NULL);
        _exit(127);
    }
    return 0;
}

/* The text of a field; "" where it is absent. */
static void field(const char *line, const char *key, char *out, size_t size)
{
    const char *at = strstr(line, key);
    size_t n = 0;
    if (at && *(at += strlen(key)) == ':') {
        at += 1 + (at[1] == '"');
        while (*at && !strchr("\",}", *at) && n + 1 < size) out[n++] = *at++;
    }
    out[n] = '\0';
}

/* All that a run printed, with a tab before each line in place of its end. */
static char *lines_of(FILE *f)
{
    char *line = NULL, *all = NULL;
    size_t capacity = 0, size = 0;
    ssize_t n;
    FILE *out = open_memstream(&all, &size);
    if (!out) return NULL;
    rewind(f);
    while ((n = getline(&line, &capacity, f)) > 0)
        fprintf(out, "\t%.*s", (int)(n - (line[n - 1] == '\n')), line);
    free(line);
    return fclose(out) ? NULL : all;
}

/* Whether a finding tells a mutant from the original, at level 3: not where the original has one at the same
 * place. Places of the original are noted. */
static bool counts(struct kernel *k, bool original, const char *finding)
{
    char file[64], line[16], place[NAME];
    field(finding, "\"file\"", file, sizeof file);
    field(finding, "\"line\"", line, sizeof line);
    snprintf(place, NAME, " %s:%s ", file, line);
    if (strstr(k->places, place)) return false;
    if (!original || strlen(k->places) + strlen(place) >= sizeof k->places) return true;
    strcat(k->places, place);
    return false;
}

/* What a run printed: FOUND, REFUSED (no text that the driver takes) or SURVIVED. At level 3 what is said of the
 * original is no find; of the original it is noted. */
static enum fate judge(struct kernel *k, struct job *j, bool level_3, char said[NAME])
{
    char *line = NULL, verdict[16], severity[16], step[16] = "", kind[NAME], code[16] = "";
    size_t capacity = 0;
    bool more = !level_3;
    enum fate fate = SURVIVED;
    said[0] = '\0';
    rewind(j->output);
    while (getline(&line, &capacity, j->output) > 0) {
        field(line, "\"verdict\"", verdict, sizeof verdict);
        field(line, "\"severity\"", severity, sizeof severity);
        if (!strcmp(verdict, "error") || !strcmp(verdict, "review")) fate = FOUND;
        if (level_3 && *severity && strcmp(severity, "advice") != 0) {
            if (!counts(k, j->mutant < 0, line)) continue;
            more = true;
        }
        if (!said[0] && *severity && strcmp(severity, "advice") != 0) {
            field(line, "\"kind\"", kind, sizeof kind);
            snprintf(said, NAME, "%.60s", kind);
        }
        if (!strncmp(line, "{\"run\"", 6)) {
            field(line, "\"step\"", step, sizeof step);
            field(line, "\"result\"", code, sizeof code);
        }
    }
    free(line);
    fclose(j->output);
    if (fate == FOUND && more) return fate;
    fate = SURVIVED;
    if (!strcmp(step, "load")) fate = REFUSED;
    snprintf(said, NAME, "%s %s", *step ? step : "never ended", code);
    return fate;
}

static struct reason *reason_for(struct session *s, const struct kernel *k, const struct mutant *m)
{
    for (int i = 0; i < s->reasons; i++) {
        struct reason *r = &s->reason[i];
        if (r->kind == REASON_NEVER ||
            (fnmatch(r->target, k->target, 0) && fnmatch(r->target, k->name, 0)) ||
            fnmatch(r->rule, m->rule, 0) || fnmatch(r->label, m->label, 0) ||
            fnmatch(r->pattern, m->was, FNM_NOESCAPE))
            continue;
        return r;
    }
    return NULL;
}

/* ---- what the cases execute ---- */

static void cover_path(const struct session *s, const struct kernel *k, int seed, char *path)
{
    snprintf(path, PATH, "%s/cover-%td-%d", s->o.work, k - s->kernel, seed);
}

/* Runs the numbered text of a kernel under a seed. */
static pid_t cover_start(const struct session *s, const struct kernel *k, const char *text,
                         int seed)
{
    char executed[PATH], path[PATH + 8], digits[16];
    pid_t child;
    cover_path(s, k, seed, executed);
    snprintf(path, sizeof path, "%s.ptx", executed);
    snprintf(digits, sizeof digits, "%d", seed);
    if (write_text(path, text, k->run)) return -1;
    fflush(NULL);
    if ((child = fork()) != 0) return child;
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(126);
    setenv("HEWN_SIM_CHECK", "0", 1);
    setenv("HEWN_SIM_REPEAT", "0", 1);
    setenv("HEWN_SIM_EXECUTED", executed, 1);
    execl(s->o.hewn, s->o.hewn, "run", path, "--seed", digits, (char *)NULL);
    _exit(127);
}

/* Fills in what the kernels from `k` to before `end` execute, in any of a few schedules. */
static int cover_kernels(struct session *s, struct kernel *k, const struct kernel *end)
{
    const ptrdiff_t count = (end - k) * COVER_SEEDS;
    pid_t *child = calloc((size_t)count + 1, sizeof *child);
    char *text = NULL;
    int rc = child ? 0 : -1;
    for (ptrdiff_t i = 0; !rc && i < count; i++) {
        struct kernel *of = k + i / COVER_SEEDS;
        if (i % COVER_SEEDS == 0) {
            free(text);
            text = cover_number(of->original, &of->cover);
        }
        if (i >= s->o.jobs) waitpid(child[i - s->o.jobs], NULL, 0);
        child[i] = text ? cover_start(s, of, text, (int)(i % COVER_SEEDS) + 1) : -1;
        if (child[i] < 0) rc = -1;
    }
    for (ptrdiff_t i = count - s->o.jobs; !rc && i < count; i++)
        if (i >= 0) waitpid(child[i], NULL, 0);
    for (ptrdiff_t i = 0; !rc && i < count; i++) {
        char path[PATH];
        cover_path(s, k + i / COVER_SEEDS, (int)(i % COVER_SEEDS) + 1, path);
        rc = cover_add(&k[i / COVER_SEEDS].cover, path);
    }
    free(text);
    free(child);
    return rc;
}

/* Starts the comparison of the mutant's machine code with the original's, which the first one makes. */
static int start_assembly(const struct session *s, struct job *j)
{
    const struct options *o = &s->o;
    const struct kernel *k = &s->kernel[j->kernel];
    char command[8 * PATH], original[2 * PATH];
    snprintf(original, sizeof original, "%s/original-%d", o->work, j->kernel);
    snprintf(command, sizeof command, "%s.ptx", original);
    if (access(command, R_OK) && write_text(command, k->original, "")) return -1;
    if (write_text(j->path, text_of(k, j->mutant), "")) return -1;
    snprintf(command, sizeof command,
             "t='%s.cubin'; o='%s'; { [ -e $o.cubin ] || { '%s' -arch=%s $o.ptx -o $t.o && mv $t.o "
             "$o.cubin; }; } && '%s' -arch=%s '%s' -o $t && cmp -s $t $o.cubin; r=$?; rm -f $t; "
             "exit $r",
             j->path, original, o->ptxas, k->target, o->ptxas, k->target, j->path);
    fflush(NULL);
    j->assembles = true;
    j->child = fork();
    if (j->child < 0) return perror("mutate: fork"), -1;
    if (j->child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(126);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return 0;
}

/* What becomes of a survivor, as far as that can be told without its machine code. */
static enum fate settle(struct session *s, struct kernel *k, int i)
{
    struct reason *reason = reason_for(s, k, &k->mutant[i]);
    if (!k->cover.statement && cover_kernels(s, k, k + 1)) return WAITING;
    if (!cover_launches(&k->cover, &k->mutant[i])) return IDLE;
    if (!reason) return s->o.ptxas ? SURVIVED : UNDECIDED;
    reason->used = true;
    k->result[i].reason = reason->why;
    return reason->kind == REASON_LEGAL ? LEGAL : OPEN;
}

static void report_mutant(const struct session *s, const struct kernel *k, int i, const char *lines)
{
    const struct mutant *m = &k->mutant[i];
    const struct result *r = &k->result[i];
    const struct probe *p = &probes[r->probe < PROBES ? r->probe : PROBES - 1];
    fprintf(s->o.report, "%s [%s] %s: %s\t%s:%ld %s\tlevel %s, seed %s%s\n", k->name, m->label,
            m->rule, m->was, m->file, m->line, fate_names[r->fate], p->level, p->seed, lines);
    fflush(s->o.report);
}

static void print_mutant(const struct session *s, const struct kernel *k, int i)
{
    const struct mutant *m = &k->mutant[i];
    const struct result *r = &k->result[i];
    if (r->fate == UNDECIDED) {
        printf(
            "SKIP %s %s:%ld [%s] %s: %.150s: no ptxas tells whether it changes the machine code\n",
            k->name, m->file, m->line, m->label, m->rule, m->was);
        return;
    }
    printf("%s%s: %s:%ld [%s] %s: %.150s\n", r->fate == SURVIVED ? "FAIL " : "     ",
           fate_names[r->fate], m->file, m->line, m->label, m->rule, m->was);
    if (r->reason)
        printf("       %s\n", r->reason);
    else
        printf("       said: %s\n", r->said);
    if (r->fate == SURVIVED && s->o.keep) {
        char path[PATH];
        snprintf(path, sizeof path, "%s/%s-%d.ptx", s->o.keep, k->target, i);
        (void)write_text(path, m->text, k->run);
        printf("       left in %s\n", path);
    }
}

/* The kernel as it is, by one probe; -1 where it is not clean. */
static int run_original(struct session *s, int kernel, int probe)
{
    const struct probe *p = &probes[probe];
    struct job j = {.kernel = kernel, .mutant = -1};
    char said[NAME];
    if (start(s, &j, p) || waitpid(j.child, NULL, 0) < 0) return -1;
    if (judge(&s->kernel[kernel], &j, p->level[0] == '3', said) == SURVIVED &&
        !strncmp(said, "over", 4))
        return 0;
    printf("FAIL %s as it is, level %s, seed %s: %s\n", s->kernel[kernel].name, p->level, p->seed,
           said);
    return -1;
}

/* What is found of a mutant means nothing unless the kernel as it is is clean under that probe. */
static int ask_original(struct session *s, int kernel, int probe)
{
    bool *clean = &s->kernel[kernel].clean[probe];
    if (probes[probe].level[0] == '3' || *clean) return 0; /* level 3: note_places */
    *clean = true;
    return run_original(s, kernel, probe);
}

/* The first mutant that is asked at level 3: what is said of the kernel as it is. */
static int note_places(struct session *s, int kernel)
{
    if (s->kernel[kernel].noted) return 0;
    s->kernel[kernel].noted = true;
    for (int p = 0; p < PROBES; p++)
        if (probes[p].level[0] == '3' && run_original(s, kernel, p)) return -1;
    return 0;
}

/* The job's mutant is done. */
static int end_job(struct session *s, struct job *j, enum fate fate)
{
    struct kernel *k = &s->kernel[j->kernel];
    k->result[j->mutant].fate = fate;
    unlink(j->path);
    j->child = 0;
    if (s->o.verbose || fate >= OPEN) print_mutant(s, k, j->mutant);
    if (j->lines) report_mutant(s, k, j->mutant, j->lines);
    free(j->lines);
    j->lines = NULL;
    return fflush(stdout);
}

/* Takes what the job's run said; starts its next probe, or ends it. */
static int advance(struct session *s, struct job *j)
{
    struct kernel *k = &s->kernel[j->kernel];
    struct result *r = &k->result[j->mutant];
    free(j->lines);
    j->lines = s->o.report ? lines_of(j->output) : NULL;
    if (s->o.report && !j->lines) return perror("mutate"), -1;
    enum fate fate = judge(k, j, probes[r->probe].level[0] == '3', r->said);
    if (fate == SURVIVED && ++r->probe < PROBES) {
        const struct reason *reason = reason_for(s, k, &k->mutant[j->mutant]);
        bool known = reason && (reason->kind == REASON_LEGAL || s->o.sample > 1);
        if (r->probe < FIRST_PROBES || !known) {
            if (probes[r->probe].level[0] == '3' && note_places(s, j->kernel)) return -1;
            return start(s, j, &probes[r->probe]);
        }
    }
    if (fate == FOUND && ask_original(s, j->kernel, r->probe)) return -1;
    if (fate == FOUND && probes[r->probe].level[0] > '1') fate = FOUND_LEVEL_2;
    if (fate == SURVIVED) {
        fate = settle(s, k, j->mutant);
        if (fate == WAITING) return -1;
        if (fate == SURVIVED) return start_assembly(s, j);
    }
    return end_job(s, j, fate);
}

static int finish_one(struct session *s, struct job *jobs)
{
    int status;
    pid_t child = wait(&status);
    if (child < 0) return perror("mutate: wait"), -1;
    for (int i = 0; i < s->o.jobs; i++) {
        if (jobs[i].child != child) continue;
        return jobs[i].assembles ? end_job(s, &jobs[i], status ? SURVIVED : IDENTICAL)
                                 : advance(s, &jobs[i]);
    }
    return 0;
}

static bool any(const struct job *jobs, long count)
{
    for (long i = 0; i < count; i++)
        if (jobs[i].child) return true;
    return false;
}

static int run_mutants(struct session *s)
{
    struct job jobs[JOBS] = {{0}};
    for (int k = 0; k < s->kernels; k++) {
        for (int i = 0; i < s->kernel[k].mutants; i++) {
            struct job *j = NULL;
            if (s->kernel[k].cover.statement &&
                !cover_launches(&s->kernel[k].cover, &s->kernel[k].mutant[i])) {
                s->kernel[k].result[i].fate = IDLE;
                continue;
            }
            while (!j) {
                for (int n = 0; n < s->o.jobs && !j; n++)
                    if (!jobs[n].child) j = &jobs[n];
                if (!j && finish_one(s, jobs)) return -1;
            }
            *j = (struct job){.kernel = k, .mutant = i};
            s->kernel[k].result[i].probe = !s->kernel[k].cover.statement;
            if (start(s, j, &probes[s->kernel[k].result[i].probe])) return -1;
        }
    }
    while (any(jobs, s->o.jobs))
        if (finish_one(s, jobs)) return -1;
    return 0;
}

/* All mutants: the kernels as they are under all probes first. Of a sample, those by which something is found. */
static int run_originals(struct session *s)
{
    if (s->o.sample > 1 || s->o.only) return 0;
    for (int k = 0; k < s->kernels; k++)
        for (int p = 0; p < PROBES; p++)
            if (ask_original(s, k, p)) return -1;
    return 0;
}

/* A small sample asks only of what survives what its case executes. */
static int cover_all(struct session *s)
{
    if (s->o.sample >= SPARSE && !s->o.cover) return 0;
    return cover_kernels(s, s->kernel, s->kernel + s->kernels);
}

/* ---- telling ---- */

static const char *const class_names[] = {
#define X(name, what) #name,
    MUTANT_CLASSES(X)
#undef X
};
static const char *const class_means[] = {
#define X(name, what) what,
    MUTANT_CLASSES(X)
#undef X
};

static void print_row(const struct kernel *k, int class, int total[FATES])
{
    int n[FATES] = {0}, all = 0;
    for (int i = 0; i < k->mutants; i++) {
        if (k->mutant[i].class != (enum mutant_class) class) continue;
        n[k->result[i].fate]++;
        all++;
    }
    for (int f = 0; f < FATES; f++) total[f] += n[f];
    if (!all) return;
    printf("%-33s%-8s%8d%8d%8d%10d%7d%6d%6d%10d  %s\n", k->name, class_names[class],
           all - n[REFUSED], n[FOUND], n[FOUND_LEVEL_2], n[IDENTICAL], n[LEGAL], n[IDLE], n[OPEN],
           n[SURVIVED], class_means[class]);
}

static int stale_reasons(const struct session *s)
{
    int stale = 0;
    for (int i = 0; i < s->reasons; i++) {
        const struct reason *r = &s->reason[i];
        if (r->used || s->o.sample > 1 || s->o.only) continue;
        printf("FAIL survivors.txt: nothing survives that this is a reason for: %s, %s, %s, %s\n",
               r->target, r->rule, r->label, r->pattern);
        stale++;
    }
    return stale;
}

/* Whether a case of the same source executes the statement. */
static bool executed_by_some(const struct session *s, const struct kernel *k, const char *key)
{
    for (const struct kernel *of = s->kernel; of < s->kernel + s->kernels; of++) {
        if (!same_source(k, of)) continue;
        for (int i = 0; i < of->cover.statements; i++)
            if (of->cover.statement[i].launches && !strcmp(of->cover.statement[i].key, key))
                return true;
    }
    return false;
}

static bool never_executed(struct session *s, const struct kernel *k, const char *key)
{
    const char *text = strchr(key, ' ') + 1;
    for (int i = 0; i < s->reasons; i++) {
        struct reason *r = &s->reason[i];
        if (r->kind != REASON_NEVER ||
            (fnmatch(r->target, k->target, 0) && fnmatch(r->target, k->name, 0)) ||
            fnmatch(r->pattern, text, FNM_NOESCAPE))
            continue;
        return r->used = true;
    }
    return false;
}

/* Names each statement that mutants change and no case of the source executes. How many have no reason. */
static int print_never(struct session *s, const struct kernel *k)
{
    int failed = 0;
    for (int i = 0; i < k->cover.statements; i++) {
        const struct cover_statement *of = &k->cover.statement[i];
        if (!of->instruction || of->launches || !k->changed[i]) continue;
        if (executed_by_some(s, k, of->key) || never_executed(s, k, of->key)) continue;
        printf("FAIL no case executes %s: %.150s\n", k->name, of->key);
        failed++;
    }
    return failed;
}

static void print_case(const struct kernel *k)
{
    const struct cover *c = &k->cover;
    int executed[2] = {0}, all[2] = {0}, n[FATES] = {0};
    for (int i = 0; i < c->statements; i++) {
        if (!c->statement[i].instruction) continue;
        for (int w = 0; w < (k->changed[i] ? 2 : 1); w++) {
            all[w]++;
            executed[w] += c->statement[i].launches != 0;
        }
    }
    for (int i = 0; i < k->mutants; i++) n[k->result[i].fate]++;
    n[FOUND] += n[FOUND_LEVEL_2];
    printf("%-40s%6d of %5d%6d of %4d%9d of %4d\n", k->name, executed[0], all[0], executed[1],
           all[1], n[FOUND], n[FOUND] + n[OPEN] + n[SURVIVED]);
}

/* A line a case: instructions that it executes; of these those that mutants change; mutants found. */
static int print_cases(struct session *s)
{
    int failed = 0;
    if (!s->kernels || !s->kernel[0].cover.statement || s->o.sample >= SPARSE) return 0;
    for (const struct kernel *k = s->kernel; k < s->kernel + s->kernels; k++)
        failed += print_never(s, k);
    printf("%-40s%6s of %5s%6s of %4s%9s of %4s\n", "case", "run", "all", "run", "some", "found",
           "all");
    for (const struct kernel *k = s->kernel; k < s->kernel + s->kernels; k++) print_case(k);
    return failed;
}

static int report(struct session *s)
{
    int n[FATES] = {0}, found, scored, failed;
    printf("%-33s%-8s%8s%8s%8s%10s%7s%6s%6s%10s\n", "kernel", "rules", "mutants", "found",
           "level 2", "identical", "legal", "idle", "open", "survivors");
    for (int k = 0; k < s->kernels; k++)
        for (int c = 0; c < MUTANT_CLASS_COUNT; c++) print_row(&s->kernel[k], c, n);
    found = n[FOUND] + n[FOUND_LEVEL_2];
    scored = found + n[OPEN] + n[SURVIVED];
    failed = n[SURVIVED] + stale_reasons(s) + print_cases(s);
    printf(
        "%d of %d found: %.1f %% (less %d identical, %d legal, %d idle; %d that no driver takes)\n",
        found, scored, scored ? 100.0 * found / scored : 0, n[IDENTICAL], n[LEGAL], n[IDLE],
        n[REFUSED]);
    if (s->o.sample == 1 && found * 100 < scored * 97) { /* of a sample, one is more than that */
        printf("FAIL fewer than 97 of 100 are found\n");
        failed++;
    }
    printf("mutate: %d passed, %d failed, %d skipped\n",
           found + n[IDENTICAL] + n[LEGAL] + n[IDLE] + n[OPEN], failed, s->skipped + n[UNDECIDED]);
    return failed ? 1 : 0;
}

static int parse(int argc, char **argv, struct options *o)
{
    int i = 1;
    for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
        if (!strcmp(argv[i], "--verbose") || !strcmp(argv[i], "--cover")) {
            *(argv[i][2] == 'v' ? &o->verbose : &o->cover) = true;
            continue;
        }
        if (i + 1 == argc) return -1;
        if (!strcmp(argv[i], "--sample"))
            sscanf(argv[++i], "%d/%d", &o->sample, &o->first);
        else if (!strcmp(argv[i], "--ptxas"))
            o->ptxas = *argv[i + 1] ? argv[i + 1] : NULL, i++;
        else if (!strcmp(argv[i], "--only"))
            o->only = argv[++i];
        else if (!strcmp(argv[i], "--keep"))
            o->keep = argv[++i];
        else if (!strcmp(argv[i], "--jobs"))
            o->jobs = atol(argv[++i]);
        else if (!strcmp(argv[i], "--report")) {
            if (!(o->report = fopen(argv[++i], "w"))) return perror(argv[i]), -1;
        } else
            return -1;
    }
    if (argc - i != 3 || o->sample < 1 || o->first < 0 || o->first >= o->sample || o->jobs < 1)
        return -1;
    o->hewn = argv[i];
    o->modules = argv[i + 1];
    o->cases = argv[i + 2];
    return 0;
}

int main(int argc, char **argv)
{
    static struct session s = {.o = {.sample = 1, .work = "/tmp/hewn-mutate-XXXXXX"}};
    char command[128];
    int rc;
    s.o.jobs = sysconf(_SC_NPROCESSORS_ONLN);
    if (s.o.jobs < 1) s.o.jobs = 1;
    if (parse(argc, argv, &s.o))
        return fprintf(stderr,
                       "usage: mutate [--sample N[/I]] [--ptxas FILE] [--only TEXT] [--keep "
                       "DIR] [--verbose] "
                       "[--report FILE] [--cover] [--jobs N] HEWN MODULES CASES\n"),
               64;
    if (s.o.jobs > JOBS) s.o.jobs = JOBS;
    if (!mkdtemp(s.o.work)) return perror("mutate: mkdtemp"), 1;
    setenv("HEWN_SIM_THREADS", "1", 0); /* mutants run side by side instead */
    rc = read_reasons(&s) || read_kernels(&s) || cover_all(&s) ? 1
         : s.o.cover                                           ? print_cases(&s) != 0
         : run_originals(&s) || run_mutants(&s)                ? 1
                                                               : report(&s);
    snprintf(command, sizeof command, "rm -rf '%s'", s.o.work);
    if (system(command)) perror(command);
    if (s.o.report && fclose(s.o.report)) return perror("mutate: the report"), 1;
    return rc;
}
