/*
 * What mutate.c prints: each mutant that was not found, a line a kernel and class, a line a text, what the cases execute.
 */
#include "mutate_session.h"

#include <fnmatch.h>
#include <string.h>

const char *const fate_names[FATES] = {"?",       "found",     "found at level 2",
                                       "refused", "identical", "legal",
                                       "idle",    "open",      "undecided",
                                       "survived"};
const char *const class_names[MUTANT_CLASS_COUNT] = {
#define X(name, what) #name,
    MUTANT_CLASSES(X)
#undef X
};
static const char *const class_means[] = {
#define X(name, what) what,
    MUTANT_CLASSES(X)
#undef X
};

void report_mutant(const struct session *s, const struct kernel *k, int i, const char *lines)
{
    const struct mutant *m = &k->mutant[i];
    const struct result *r = &k->result[i];
    const struct probe *p = &probes[r->probe < PROBES ? r->probe : PROBES - 1];
    fprintf(s->o.report, "%s [%s] %s: %s\t%s:%ld %s\tlevel %s, seed %s%s\n", k->name, m->label,
            m->rule, m->was, m->file, m->line, fate_names[r->fate], p->level, p->seed, lines);
    fflush(s->o.report);
}

void print_mutant(const struct session *s, const struct kernel *k, int i)
{
    const struct mutant *m = &k->mutant[i];
    const struct result *r = &k->result[i];
    if (r->fate == UNDECIDED) {
        printf(
            "SKIP %s %s:%ld [%s] %s: %.150s: no ptxas tells whether it changes the machine code\n",
            k->name, m->file, m->line, m->label, m->rule, m->was);
        return;
    }
    printf("%s%s: %s %s:%ld [%s#%d] %s: %.150s\n", r->fate == SURVIVED ? "FAIL " : "     ",
           fate_names[r->fate], k->name, m->file, m->line, m->label, m->nth, m->rule, m->was);
    if (r->reason)
        printf("       %s\n", r->reason);
    else
        printf("       said: %s\n", r->said);
    if (r->fate == SURVIVED && s->o.keep) {
        char path[PATH];
        snprintf(path, sizeof path, "%s/%s-%d.ptx", s->o.keep, k->target, i);
        (void)write_text(path, k, m, k->run);
        printf("       left in %s\n", path);
    }
}

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
int print_cases(struct session *s)
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

/* Those that an earlier run left (--fates). */
static void print_left(const struct session *s)
{
    for (const struct kernel *k = s->kernel; k < s->kernel + s->kernels; k++)
        for (int i = 0; i < k->mutants; i++)
            if (k->result[i].fate == SURVIVED && !k->result[i].said[0]) print_mutant(s, k, i);
}

/* A line a text of kernels: its cases together. */
static void print_texts(const struct session *s)
{
    printf("%-28s%6s%8s%8s%8s%9s%7s%6s%6s%10s%6s\n", "text", "cases", "mutants", "scored", "found",
           "level 2", "legal", "idle", "open", "survivors", "left");
    for (const struct kernel *k = s->kernel; k < s->kernel + s->kernels; k++) {
        int n[FATES] = {0}, cases = 0, all = 0, before = 0, found;
        const char *from = strstr(k->original, ", from ptx/");
        for (const struct kernel *of = s->kernel; of < k; of++) before += same_source(k, of);
        if (before || !from) continue;
        from += strlen(", from ptx/");
        for (const struct kernel *of = k; of < s->kernel + s->kernels; of++) {
            if (of != k && !same_source(k, of)) continue;
            cases++;
            all += of->mutants;
            for (int i = 0; i < of->mutants; i++) n[of->result[i].fate]++;
        }
        found = n[FOUND] + n[FOUND_LEVEL_2];
        printf("%-28.*s%6d%8d%8d%8d%9d%7d%6d%6d%10d%6d\n", (int)strcspn(from, "\n"), from, cases,
               all - n[REFUSED] - n[IDENTICAL], found + n[OPEN] + n[SURVIVED], found,
               n[FOUND_LEVEL_2], n[LEGAL], n[IDLE], n[OPEN], n[SURVIVED], n[WAITING]);
    }
}

int report(struct session *s)
{
    int n[FATES] = {0}, found, scored, failed;
    printf("%-33s%-8s%8s%8s%8s%10s%7s%6s%6s%10s\n", "kernel", "rules", "mutants", "found",
           "level 2", "identical", "legal", "idle", "open", "survivors");
    for (int k = 0; k < s->kernels; k++)
        for (int c = 0; c < MUTANT_CLASS_COUNT; c++) print_row(&s->kernel[k], c, n);
    found = n[FOUND] + n[FOUND_LEVEL_2];
    scored = found + n[OPEN] + n[SURVIVED];
    print_left(s);
    failed = n[SURVIVED] + n[WAITING] + stale_reasons(s) + print_cases(s);
    print_texts(s);
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
