/*
 * Litmus tests in files: those that Dat3M has for PTX, with its expectations. Each thread becomes lane 0 of a warp, threads of
 * one CTA a CTA. The explorer tries every order and says whether one reaches what the test asks for; tests with loops run
 * under SEEDS seeds instead. The machine is sequentially consistent, so three things can be told apart:
 *
 *   an order reaches what the model forbids          the machine is wrong: a failure
 *   no order reaches what the model allows           a weak behaviour: the launch may not be called proved, else a failure
 *   both agree
 *
 * Loads through textures and from constant memory become ld.global.nc, which goes through the same cache; of their weak behaviours
 * those are counted that the checker reports. Surfaces and aliases are made generic accesses; theirs are counted, and not judged.
 *
 *   HEWN_LITMUS=DIRECTORY build/tests/litmus_dir           # DIRECTORY: a copy of Dat3M's repository
 *   HEWN_LITMUS=DIRECTORY build/tests/litmus_dir --verbose # a line for each test
 *   HEWN_MIXEDPROXY=DIRECTORY build/tests/litmus_dir       # DIRECTORY: a copy of NVIDIA's mixed-proxy model
 */
#include "lib/harness.h"

#include "litmus_dir_proxy.h"
#include "litmus_dir_text.h"
#include "sim/sim_run.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 8, ORDERS = 20000, FILES = 1024, PATH = 512 };

static const char *root;
static char *files[FILES];
static uint32_t file_count;
static uint32_t *memory;

/* What became of the tests. */
static struct {
    uint32_t modelled, refused, agree, weak, weak_raced, hangs, other_proxy, ended, no_expectation,
        unbounded;
    uint32_t cached, cached_raced; /* weak behaviours of caches, and those that are reported */
    uint32_t stricter;             /* reported, where the model has a fence that PTX has not */
} count;

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "r");
    const size_t room = 1 << 20;
    char *text = f ? malloc(room) : NULL;
    if (text) text[fread(text, 1, room - 1, f)] = '\0';
    if (f) fclose(f);
    return text;
}

/* The expectation in one of Dat3M's lists: 0 or 1; -1 where it has none. */
static int expected(const char *list, const char *file)
{
    char path[PATH], line[PATH];
    const size_t length = strlen(file);
    int found = -1;
    FILE *f;
    snprintf(path, sizeof path, "%s/dartagnan/src/test/resources/%s", root, list);
    f = fopen(path, "r");
    while (f && found < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, file, length) && line[length] == ',') found = line[length + 1] == '1';
    if (f) fclose(f);
    return found;
}

static bool clause(void *context)
{
    return litmus_holds(context, memory) != 0;
}

static bool not_clause(void *context)
{
    return litmus_holds(context, memory) != 1;
}

static void prepare(const struct litmus_text *l, struct run *r, uint64_t seed)
{
    memset(memory, 0, LITMUS_BYTES);
    litmus_start(l, memory);
    *r = (struct run){.grid = l->ctas, .block = l->block, .sms = 8, .seed = seed};
    r->aliased = l->aliased;
    r->memory = (struct mem_piece){memory, LITMUS_BYTES};
}

/* Whether some order ends with what is looked for; *all: every order was tried. */
static bool reached(struct litmus_text *l, const char *text, bool negated, bool *all, struct run *r,
                    int *result)
{
    const uint64_t at = (uint64_t)(uintptr_t)memory;
    static struct exploration x;
    prepare(l, r, 1);
    r->exploration = &x;
    r->limits = (struct explore_limits){
        .orders = ORDERS, .seconds = 20, .fine = negated ? clause : not_clause, .context = l};
    *result = run_kernel(r, text, &at, sizeof at);
    *all = x.all;
    return x.end == EXPLORE_DIFFERS;
}

/* The same by seeds, of tests that loop. */
static bool reached_by_seed(struct litmus_text *l, const char *text, bool negated, struct run *r,
                            int *result)
{
    const uint64_t at = (uint64_t)(uintptr_t)memory;
    bool found = false;
    for (uint64_t seed = 1; seed <= SEEDS && !found; seed++) {
        prepare(l, r, seed);
        *result = run_kernel(r, text, &at, sizeof at);
        if (*result && *result != 702) return false;
        found = litmus_holds(l, memory) == !negated;
    }
    return found;
}

/* Whether a race is reported under some seed. */
static bool races(struct litmus_text *l, const char *text)
{
    const uint64_t at = (uint64_t)(uintptr_t)memory;
    bool raced = false;
    for (uint64_t seed = 1; seed <= SEEDS && !raced; seed++) {
        struct run r;
        prepare(l, &r, seed);
        (void)run_kernel(&r, text, &at, sizeof at);
        raced = run_found(&r, "race") || run_found(&r, "proxy");
    }
    return raced;
}

static void judge_weak(struct litmus_text *l, const char *text, const struct run *r)
{
    const bool raced = races(l, text);
    if (l->other_proxy) {
        count.other_proxy++;
        count.cached += l->cached;
        count.cached_raced += l->cached && raced;
    } else {
        count.weak++;
        count.weak_raced += raced;
    }
    if (run_found(r, "deadlock"))
        count.hangs++; /* the model lets a barrier be passed by more threads than it counts */
    else if (!raced && strstr(r->findings, "\"basis\":\"proved\""))
        CHECK(false, "the model allows what no order reaches, and the launch is called proved");
}

/* Whether it ends under every seed: what is expected of all that ends on a fair machine. */
static void judge_end(struct litmus_text *l, const char *text, const char *file)
{
    const int expects = expected("PTXv7_5-Liveness-expected.csv", file);
    struct run r;
    int result;
    reached_by_seed(l, text, false, &r, &result);
    if (result != 0 && result != 702) CHECK(false, "result %d", result);
    if (expects < 0) count.no_expectation++;
    if (expects == 1 && result) CHECK(false, "it never ends, and it should");
    count.ended += result == 0;
}

static void judge(struct litmus_text *l, const char *text, int expects)
{
    const bool negated = l->quantifier == LITMUS_FORALL;
    bool all = false, found, allowed;
    struct run r;
    int result;
    found = l->loops ? reached_by_seed(l, text, negated, &r, &result)
                     : reached(l, text, negated, &all, &r, &result);
    allowed = (l->quantifier == LITMUS_EXISTS) == (expects == 1);
    if (result && result != 702) {
        CHECK(false, "result %d", result);
    } else if (found && !allowed && !l->other_proxy) {
        CHECK(false, "an order reaches what the model forbids");
    } else if (found == allowed) {
        count.agree++;
        count.stricter += l->cached && !allowed && races(l, text);
    } else if (!l->loops && !all) {
        count.unbounded++;
    } else {
        judge_weak(l, text, &r);
    }
}

static void run_file(const char *path)
{
    const char *file = path + strlen(root);
    char *source, *text;
    struct litmus_text l;
    while (*file == '/') file++;
    if (!test_case("%s", file)) return;
    source = read_all(path);
    text = source ? litmus_translate(&l, source) : NULL;
    if (text) {
        const int expects = expected("PTXv7_5-expected.csv", file);
        count.modelled++;
        if (expects < 0)
            judge_end(&l, text, file);
        else
            judge(&l, text, expects);
    } else {
        count.refused++;
        printf("not modelled: %s: %s\n", file, source ? l.refused : "cannot be read");
    }
    free(text);
    free(source);
}

/* Tests of our own, by which the translation is tested where there is no folder. */
static const struct own {
    const char *name, *text;
    bool found;
} own[] = {
    {"message passing, seen too early",
     "PTX a\n{\nx=0; f=0;\nP1:r0=0;\n}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | "
     "ld.acquire.gpu r0, f ;\n"
     " st.release.gpu f, 1 | ld.weak r1, x ;\nexists\n(P1:r0 == 1 /\\ P1:r1 == 0)",
     false},
    {"message passing, seen",
     "PTX b\n{\nx=0; f=0;\n}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n st.weak x, 1 | ld.acquire.gpu "
     "r0, f ;\n"
     " st.release.gpu f, 1 | ld.weak r1, x ;\nexists (1:r0 = 1 /\\ ~(1:r1 != 1))",
     true},
    {"two add, one of them behind a barrier",
     "PTX c\n{\nx=4;\n}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n atom.relaxed.cta.add r0, x, 1 | "
     "bar.cta.sync 1 ;\n"
     " bar.cta.sync 1 | atom.relaxed.cta.sub r0, x, 2 ;\nforall (x == 3 /\\ P1:r0 == 5 \\/ 0==1)",
     false},
    {"a loop that waits",
     "PTX d\n{\nx=0;\n}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n st.relaxed.gpu x, 1 | L: ;\n | "
     "ld.relaxed.gpu r0, x ;\n"
     " | bne r0, 1, L ;\n | add r1, r0, 1 ;\nexists (P1:r1 == 2)",
     true},
};

/* The notation of the mixed-proxy model, where there is no folder: a table of two rows. */
static void run_own_proxy(void)
{
    static const char source[] =
        ".global x;\n.texref t virtually aliases x; // a name\n.global f;\n"
        "d0.b0.t0 {\n $0, 2;\n st.release.gpu [f], 1;\n}\n"
        "d0.b1.t0 {\n ld.acquire.gpu r0, [f] == 1;\n $1 r1, $2;\n}\n"
        "$3(r1 $4 2) as r1;\n$$\n"
        "st [x] | ld | [x] | assert | ==\nst [x] | tld | [t] | permit | !=\n";
    for (uint32_t n = 0; n < 3; n++) {
        struct litmus_text l;
        struct run r;
        bool allowed = false, all = false;
        int result = -1;
        char *test, *text;
        if (!test_case("mixed proxies, row %u", n)) continue;
        test = proxy_translate(source, n, &allowed);
        CHECK((test != NULL) == (n < 2), "row %u", n);
        text = test ? litmus_translate(&l, test) : NULL;
        if (text) {
            CHECK(allowed == (n == 1), "row %u is allowed: %d", n, allowed);
            CHECK(!reached(&l, text, false, &all, &r, &result) && all && !result, "row %u", n);
            CHECK(races(&l, text) == (n == 1), "row %u: %s", n, r.findings);
        }
        free(text);
        free(test);
    }
}

/* One thread stores, and loads through a surface what may not have come there. */
static void run_own_surface(void)
{
    static const char source[] = ".global x;\n.surfref s virtually aliases x;\n"
                                 "d0.b0.t0 {\n st [x], 2;\n suld r1, [s];\n}\n"
                                 "permit (r1 != 2) as r1;\n";
    struct litmus_text l;
    struct run r;
    bool allowed = false, all = false;
    int result = -1;
    char *test, *text;
    if (!test_case("a surface")) return;
    test = proxy_translate(source, 0, &allowed);
    text = test ? litmus_translate(&l, test) : NULL;
    CHECK(text && allowed, "not modelled");
    if (text) {
        CHECK(!reached(&l, text, false, &all, &r, &result) && all && !result, "it is reached");
        judge_weak(&l, text, &r);
    }
    free(text);
    free(test);
}

static void run_own(const struct own *o)
{
    struct litmus_text l;
    struct run r;
    bool all = true, found, negated;
    int result = -1;
    char *text;
    if (!test_case("%s", o->name)) return;
    text = litmus_translate(&l, o->text);
    CHECK(text, "not modelled: %s", l.refused);
    if (!text) return;
    negated = l.quantifier == LITMUS_FORALL;
    found = l.loops ? reached_by_seed(&l, text, negated, &r, &result)
                    : reached(&l, text, negated, &all, &r, &result);
    CHECK(!result && (all || found), "result %d, all orders: %d", result, all);
    CHECK(found == o->found, "want %d, found %d", o->found, found);
    free(text);
}

static int note_file(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    const size_t length = strlen(path);
    (void)info;
    (void)walk;
    if (type == FTW_F && length > 7 && !strcmp(path + length - 7, ".litmus") && file_count < FILES)
        files[file_count++] = strdup(path);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- NVIDIA's mixed-proxy tests ---- */

static void run_proxy_file(const char *path)
{
    const char *file = strrchr(path, '/') + 1;
    char *source = read_all(path), *test = NULL;
    bool allowed = false;
    for (uint32_t n = 0; source && (test = proxy_translate(source, n, &allowed)); n++) {
        struct litmus_text l;
        char *text = NULL;
        if (test_case("%s %u", file, n)) {
            text = litmus_translate(&l, test);
            CHECK(text, "not modelled: %s\n%s", l.refused, test);
            count.modelled += text != NULL;
            if (text) judge(&l, text, allowed);
        }
        free(text);
        free(test);
    }
    free(source);
}

static void say_counts(void)
{
    printf("what is asked for: %u as the model says, %u weak behaviours (%u with a race that is "
           "reported, %u in a hang), "
           "%u weak behaviours of other proxies, %u with too many orders\n",
           count.agree, count.weak, count.weak_raced, count.hangs, count.other_proxy,
           count.unbounded);
    printf("of those of other proxies: %u of textures and constants, %u of these reported; "
           "reported though the model has a fence for it, which PTX has not: %u\n",
           count.cached, count.cached_raced, count.stricter);
}

static int note_proxy_file(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    const size_t length = strlen(path);
    (void)info;
    (void)walk;
    if (type == FTW_F && length > 5 && !strcmp(path + length - 5, ".test") && file_count < FILES)
        files[file_count++] = strdup(path);
    return 0;
}

static bool run_proxy_folder(const char *folder)
{
    char path[PATH];
    file_count = 0;
    memset(&count, 0, sizeof count);
    snprintf(path, sizeof path, "%s/tests", folder);
    if (nftw(path, note_proxy_file, 16, FTW_PHYS) || !file_count) return false;
    qsort(files, file_count, sizeof *files, by_name);
    for (uint32_t i = 0; i < file_count; i++) {
        run_proxy_file(files[i]);
        free(files[i]);
    }
    printf("mixed proxies: %u files, %u tests\n", file_count, count.modelled);
    say_counts();
    return true;
}

/* ---- Dat3M's ---- */

static bool run_folder(void)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/litmus/PTX", root);
    if (nftw(path, note_file, 16, FTW_PHYS) || !file_count) return false;
    qsort(files, file_count, sizeof *files, by_name);
    for (uint32_t i = 0; i < file_count; i++) {
        run_file(files[i]);
        free(files[i]);
    }
    printf("%u tests: %u modelled, %u not\n", file_count, count.modelled, count.refused);
    say_counts();
    printf("loops alone: %u end under every seed; %u have no expectation for PTX\n", count.ended,
           count.no_expectation);
    return true;
}

int main(int argc, char **argv)
{
    test_begin("litmus_dir", argc, argv);
    if (!run_begin()) return 1;
    memory = run_alloc(LITMUS_BYTES);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) run_own(&own[i]);
    run_own_proxy();
    run_own_surface();
    memset(&count, 0, sizeof count);
    root = getenv("HEWN_LITMUS");
    if (root && !run_folder()) {
        fprintf(stderr, "%s has no folder litmus/PTX\n", root);
        return 1;
    }
    if (getenv("HEWN_MIXEDPROXY") && !run_proxy_folder(getenv("HEWN_MIXEDPROXY"))) {
        fprintf(stderr, "%s has no folder tests\n", getenv("HEWN_MIXEDPROXY"));
        return 1;
    }
    run_free(memory);
    run_end();
    return test_end();
}
