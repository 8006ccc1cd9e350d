/*
 * Mutation testing of the checker on the shipped kernels: every small damage that mutate_text.c can do to
 * what synchronises a kernel, each run under the simulator, and whether the checker says so.
 *
 *     mutate [options] HEWN MODULES CASES   every kernel that has a file CASES/<target>-<module>.run
 *       --sample N[/I]  every N-th mutant only, from the I-th on (0); with N from 256 on, of at most two kernels of a
 *                       text; what has a reason is asked less
 *       --ptxas FILE    survivors with the machine code of the original are no mutants; without it, a survivor
 *                       that has no reason (below) is skipped
 *       --only TEXT     mutants whose target, class, rule, label or statement contains TEXT
 *       --keep DIR      leave the texts of survivors there
 *       --verbose       every mutant and what was said of it
 *       --report FILE   a line a mutant, with tabs: kernel and mutant; place and fate; probe; the report's lines
 *       --fates FILE    what an earlier run wrote there is not asked again, and what is new is added: a run that was stopped
 *                       goes on (mutate_fates.c)
 *       --tell          with --fates: run nothing, tell what is known
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
 * target: sm_90a, or one kernel as <target>/<module>. label: the one above the statement, in what it stands in; LABEL#N:
 * the N-th alone, from 0 on, of those that have rule, label and statement in common. Target, rule and label are patterns as
 * well.
 *     never | target | -    | -     | pattern of the statement           | -               | why
 *
 * legal: that section allows the mutant, so it leaves the score; open: a known miss, which stays in it.
 * never: no plan executes the statement in that kernel.
 *
 * First the cases run without the checker, to see what they execute. A mutant runs only in the launches that execute what
 * it changes, and in their neighbours. A mutant of what none executes is idle and is not scored; but each statement must
 * be executed by some case of the same source text, or have a row `never`.
 */
#include "mutate_session.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALIKE = 2, JOBS = 64, CPU_SECONDS = 20, COVER_SEEDS = 3, LAUNCHES = 12, TURNS = 16 };

const struct probe probes[PROBES] = {{"1", "1"},  {"1", "1"},  {"1", "2"},  {"1", "3"},
                                     {"2", "1"},  {"1", "4"},  {"1", "5"},  {"1", "6"},
                                     {"1", "7"},  {"1", "8"},  {"1", "9"},  {"1", "10"},
                                     {"1", "11"}, {"1", "12"}, {"1", "13"}, {"1", "14"},
                                     {"1", "15"}, {"1", "16"}, {"2", "2"},  {"2", "3"},
                                     {"2", "4"},  {"3", "1"},  {"3", "2"}};

struct job {
    pid_t child;
    int kernel, mutant, probe; /* mutant -1: the kernel as it is */
    bool assembles;            /* the child compares machine code */
    char *lines;               /* of the last probe, for the report */
    FILE *output;
    char path[PATH + 32];
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
bool same_source(const struct kernel *a, const struct kernel *b)
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

int write_text(const char *path, const struct kernel *k, const struct mutant *m, const char *run)
{
    FILE *f = fopen(path, "w");
    if (!f) return perror(path), -1;
    mutant_write(f, k->original, m);
    fprintf(f, "\n%s", run);
    return fclose(f);
}

/* Mutant `i` of the kernel; NULL: the kernel as it is. */
static const struct mutant *mutant_of(const struct kernel *k, int i)
{
    return i < 0 ? NULL : &k->mutant[i];
}

/* The launches that a mutant runs in: the first few and the last of those that execute what it changes, and their
 * neighbours, whose data they share; once, of what survives those, all. */
static uint64_t launches_for(const struct kernel *k, int mutant)
{
    uint64_t all, some = 0;
    if (mutant < 0 || !k->cover.statement) return UINT64_MAX;
    all = cover_launches(&k->cover, &k->mutant[mutant]);
    if (!k->result[mutant].probe) return all & (~all + 1);
    if (k->result[mutant].probe == FIRST_PROBES) return all | all << 1 | all >> 1;
    for (int i = 0; i < LAUNCHES && all; i++, all &= all - 1) some |= all & (~all + 1);
    while (all & (all - 1)) all &= all - 1;
    some |= all;
    return some | some << 1 | some >> 1;
}

static int write_mutant(const struct kernel *k, const struct job *j)
{
    char *run = cover_run(k->run, launches_for(k, j->mutant));
    int rc = run ? write_text(j->path, k, mutant_of(k, j->mutant), run) : -1;
    free(run);
    return rc;
}

static int start(const struct session *s, struct job *j, int probe)
{
    const struct kernel *k = &s->kernel[j->kernel];
    const struct probe *p = &probes[probe];
    struct rlimit limit = {CPU_SECONDS, CPU_SECONDS};
    j->probe = probe;
    j->assembles = false;
    snprintf(j->path, sizeof j->path, "%s/%d-%d-%d.ptx", s->o.work, j->kernel, j->mutant, probe);
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

/* LABEL#N is one of those that have the same rule, label and statement. */
static bool label_fits(const char *pattern, const struct mutant *m)
{
    char label[MUTANT_LABEL + 16];
    if (!strchr(pattern, '#')) return !fnmatch(pattern, m->label, 0);
    snprintf(label, sizeof label, "%s#%d", m->label, m->nth);
    return !fnmatch(pattern, label, 0);
}

struct reason *reason_for(struct session *s, const struct kernel *k, const struct mutant *m)
{
    for (int i = 0; i < s->reasons; i++) {
        struct reason *r = &s->reason[i];
        if (r->kind == REASON_NEVER ||
            (fnmatch(r->target, k->target, 0) && fnmatch(r->target, k->name, 0)) ||
            fnmatch(r->rule, m->rule, 0) || !label_fits(r->label, m) ||
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
    FILE *f;
    pid_t child;
    cover_path(s, k, seed, executed);
    snprintf(path, sizeof path, "%s.ptx", executed);
    snprintf(digits, sizeof digits, "%d", seed);
    if (!(f = fopen(path, "w"))) return perror(path), -1;
    fprintf(f, "%s\n%s", text, k->run);
    if (fclose(f)) return perror(path), -1;
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
    if (access(command, R_OK) && write_text(command, k, NULL, "")) return -1;
    if (write_text(j->path, k, mutant_of(k, j->mutant), "")) return -1;
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

/* What is known of a survivor without its machine code; SURVIVED: nothing. WAITING after a failure. */
static enum fate settle(struct session *s, struct kernel *k, int i)
{
    struct reason *reason = reason_for(s, k, &k->mutant[i]);
    if (!k->cover.statement && cover_kernels(s, k, k + 1)) return WAITING;
    if (!cover_launches(&k->cover, &k->mutant[i])) return IDLE;
    if (!reason) return SURVIVED;
    reason->used = true;
    k->result[i].reason = reason->why;
    return reason->kind == REASON_LEGAL ? LEGAL : OPEN;
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
    fates_add(s, k, &k->mutant[j->mutant], &k->result[j->mutant]);
    free(j->lines);
    j->lines = NULL;
    return fflush(stdout);
}

/* Takes what the kernel as it is said. What is found of a mutant means nothing unless that is clean by the same probe;
 * at level 3 its places are noted instead. */
static int end_original(struct session *s, struct job *j)
{
    struct kernel *k = &s->kernel[j->kernel];
    const struct probe *p = &probes[j->probe];
    char said[NAME];
    enum fate fate = judge(k, j, p->level[0] == '3', said);
    unlink(j->path);
    j->child = 0;
    if (fate == SURVIVED && !strncmp(said, "over", 4)) {
        if (p->level[0] != '3') fates_add_clean(s, k, j->probe);
        return 0;
    }
    printf("FAIL %s as it is, level %s, seed %s: %s\n", k->name, p->level, p->seed, said);
    return -1;
}

/* Of a sparse sample: the first mutant of a kernel that is asked at level 3. */
static int note_places(struct session *s, int kernel)
{
    struct kernel *k = &s->kernel[kernel];
    if (k->noted) return 0;
    k->noted = true;
    for (int p = 0; p < PROBES; p++) {
        struct job j = {.kernel = kernel, .mutant = -1};
        if (probes[p].level[0] != '3') continue;
        if (start(s, &j, p) || waitpid(j.child, NULL, 0) < 0 || end_original(s, &j)) return -1;
    }
    return 0;
}

/* The next probe of a mutant that has survived all before it, its comparison with the original, or its end. What has a
 * reason needs no machine code; what has none is compared before the long row of later probes. */
static int go_on(struct session *s, struct job *j, bool compared)
{
    struct kernel *k = &s->kernel[j->kernel];
    struct result *r = &k->result[j->mutant];
    const struct reason *reason = reason_for(s, k, &k->mutant[j->mutant]);
    bool known = reason && (reason->kind == REASON_LEGAL || s->o.sample > 1);
    enum fate fate;
    if (r->probe == FIRST_PROBES && !reason && !compared && s->o.ptxas) return start_assembly(s, j);
    if (r->probe < FIRST_PROBES || (r->probe < PROBES && !known)) {
        if (probes[r->probe].level[0] == '3' && note_places(s, j->kernel)) return -1;
        return start(s, j, r->probe);
    }
    fate = settle(s, k, j->mutant);
    if (fate == WAITING) return -1;
    return end_job(s, j, fate == SURVIVED && !s->o.ptxas ? UNDECIDED : fate);
}

/* Takes what the job's run said; starts its next probe, or ends it. */
static int advance(struct session *s, struct job *j)
{
    struct kernel *k = &s->kernel[j->kernel];
    struct result *r = &k->result[j->mutant];
    bool level_3 = probes[j->probe].level[0] == '3';
    enum fate fate;
    free(j->lines);
    j->lines = s->o.report ? lines_of(j->output) : NULL;
    if (s->o.report && !j->lines) return perror("mutate"), -1;
    fate = judge(k, j, level_3, r->said);
    unlink(j->path);
    if (fate == SURVIVED) return r->probe++, go_on(s, j, false);
    if (fate == FOUND && probes[r->probe].level[0] > '1') fate = FOUND_LEVEL_2;
    return end_job(s, j, fate);
}

static int finish_one(struct session *s, struct job *jobs)
{
    int status;
    pid_t child = wait(&status);
    if (child < 0) return perror("mutate: wait"), -1;
    for (struct job *j = jobs; j < jobs + s->o.jobs; j++) {
        if (j->child != child) continue;
        if (j->mutant < 0) return end_original(s, j);
        if (!j->assembles) return advance(s, j);
        return status ? go_on(s, j, true) : end_job(s, j, IDENTICAL);
    }
    return 0;
}

/* A place for another job; NULL after a message. */
static struct job *free_job(struct session *s, struct job *jobs)
{
    for (;;) {
        for (struct job *j = jobs; j < jobs + s->o.jobs; j++)
            if (!j->child) return j;
        if (finish_one(s, jobs)) return NULL;
    }
}

static int finish_all(struct session *s, struct job *jobs)
{
    for (struct job *j = jobs; j < jobs + s->o.jobs; j++)
        while (j->child)
            if (finish_one(s, jobs)) return -1;
    return 0;
}

/* Whether something was found of the kernel's mutants by that probe, and is not known to mean something. */
static bool asks_original(const struct kernel *k, int probe)
{
    if (k->clean[probe]) return false;
    for (int i = 0; i < k->mutants; i++) {
        const struct result *r = &k->result[i];
        if ((r->fate == FOUND || r->fate == FOUND_LEVEL_2) && r->probe == probe) return true;
    }
    return false;
}

static bool any_waiting(const struct kernel *k)
{
    for (int i = 0; i < k->mutants; i++)
        if (k->result[i].fate == WAITING) return true;
    return false;
}

/* The kernels as they are: at level 3, before the mutants; by the other probes, where something was found. */
static int run_originals(struct session *s, bool level_3)
{
    struct job jobs[JOBS] = {{0}};
    for (int k = 0; k < s->kernels; k++) {
        struct kernel *of = &s->kernel[k];
        for (int p = 0; p < PROBES; p++) {
            struct job *j;
            bool its = probes[p].level[0] == '3';
            if (its != level_3 || !(its ? any_waiting(of) : asks_original(of, p))) continue;
            of->noted |= its;
            if (!(j = free_job(s, jobs))) return -1;
            *j = (struct job){.kernel = k, .mutant = -1};
            if (start(s, j, p)) return -1;
        }
    }
    return finish_all(s, jobs);
}

/* Those of a kernel whose number is `turn` modulo TURNS. */
static int run_kernel(struct session *s, struct job *jobs, int kernel, int turn)
{
    const struct kernel *of = &s->kernel[kernel];
    for (int i = turn; i < of->mutants; i += TURNS) {
        struct job *j;
        if (of->result[i].fate != WAITING) continue;
        if (of->cover.statement && !cover_launches(&of->cover, &of->mutant[i])) {
            of->result[i].fate = IDLE;
            fates_add(s, of, &of->mutant[i], &of->result[i]);
            continue;
        }
        if (!(j = free_job(s, jobs))) return -1;
        *j = (struct job){.kernel = kernel, .mutant = i};
        of->result[i].probe = !of->cover.statement;
        if (start(s, j, of->result[i].probe)) return -1;
    }
    return 0;
}

/* Every kernel has its turns, so that a run which is stopped leaves a sample of each. */
static int run_mutants(struct session *s)
{
    struct job jobs[JOBS] = {{0}};
    for (int turn = 0; turn < TURNS; turn++)
        for (int k = 0; k < s->kernels; k++)
            if (run_kernel(s, jobs, k, turn)) return -1;
    return finish_all(s, jobs);
}

/* A small sample asks only of what survives what its case executes. */
static int cover_all(struct session *s)
{
    if (s->o.sample >= SPARSE && !s->o.cover) return 0;
    return cover_kernels(s, s->kernel, s->kernel + s->kernels);
}

static int parse(int argc, char **argv, struct options *o, const char **fates)
{
    int i = 1;
    for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
        if (!strcmp(argv[i], "--verbose") || !strcmp(argv[i], "--cover") ||
            !strcmp(argv[i], "--tell")) {
            *(argv[i][2] == 'v' ? &o->verbose : argv[i][2] == 'c' ? &o->cover : &o->tell) = true;
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
        else if (!strcmp(argv[i], "--fates"))
            *fates = argv[++i];
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
    const char *fates = NULL;
    char command[128];
    int rc;
    s.o.jobs = sysconf(_SC_NPROCESSORS_ONLN);
    if (s.o.jobs < 1) s.o.jobs = 1;
    if (parse(argc, argv, &s.o, &fates))
        return fprintf(stderr,
                       "usage: mutate [--sample N[/I]] [--ptxas FILE] [--only TEXT] [--keep "
                       "DIR] [--verbose] "
                       "[--report FILE] [--fates FILE] [--tell] [--cover] [--jobs N] HEWN MODULES "
                       "CASES\n"),
               64;
    if (s.o.jobs > JOBS) s.o.jobs = JOBS;
    if (!mkdtemp(s.o.work)) return perror("mutate: mkdtemp"), 1;
    setenv("HEWN_SIM_THREADS", "1", 0); /* mutants run side by side instead */
    rc = read_reasons(&s) || read_kernels(&s) || (fates && fates_open(&s, fates)) ||
                 (!s.o.tell && cover_all(&s))
             ? 1
         : s.o.cover ? print_cases(&s) != 0
         : s.o.tell  ? report(&s)
         : (s.o.sample < SPARSE && run_originals(&s, true)) || run_mutants(&s) ||
                 run_originals(&s, false)
             ? 1
             : report(&s);
    snprintf(command, sizeof command, "rm -rf '%s'", s.o.work);
    if (system(command)) perror(command);
    if (s.o.report && fclose(s.o.report)) return perror("mutate: the report"), 1;
    if (s.o.fates && fclose(s.o.fates)) return perror("mutate: the fates"), 1;
    return rc;
}
