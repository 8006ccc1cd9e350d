/*
 * The attack on `proved`: small random kernels (explore_random.h), each judged by the checker from one run, and by the
 * explorer, which runs every order and looks at what comes out. A kernel that is `proved` clean and has an order that
 * hangs, fails or leaves other results refutes the proof.
 *
 *   build/tests/explore --random 100000 --seed 1     # many of them, one line of counts
 *   build/tests/explore --seed 1 --case 77 --verbose # one of them, with its text
 */
#include "explore_random.h"
#include "sim/sim_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 500, MEMORY = 1024, ORDERS = 3000 };

static uint32_t *memory; /* what goes in, then what comes out */
static const char *const ends[] = {
#define X(name, text) text,
    EXPLORE_ENDS(X)
#undef X
};

struct counts {
    unsigned kernels, whole, partly, fine, bad, proved, proved_fine, errors, error_fine, incomplete, unsound, unnamed;
    uint64_t orders;
};

static bool says(const struct run *r, const char *what)
{
    return strstr(r->findings, what) != NULL;
}

static void reset(void)
{
    for (uint32_t i = 0; i < MEMORY / 2; i++) memory[i] = i < MEMORY / 4 ? 1000 + i : 0;
}

static void judge(struct random_kernel *k, struct counts *c)
{
    const uint64_t in = (uint64_t)(uintptr_t)memory;
    const uint64_t params[2] = {in, in + MEMORY};
    struct exploration x;
    struct run r = {.grid = k->ctas,
                    .block = 32 * k->warps,
                    .cluster = k->ctas,
                    .exploration = &x,
                    .limits = {.orders = ORDERS},
                    .memory = {memory, 2 * MEMORY}};
    bool proved, error;
    if (getenv("EXPLORE_SEEDS")) for (r.seed = 0; r.seed < 16; r.seed++) {
        r.exploration = NULL; reset(); run_kernel(&r, k->text, params, sizeof params);
        printf("seed %d: %.60s\n", (int)r.seed, strstr(r.findings, "{\"verdict"));
    }
    r.exploration = &x; r.seed = 0;
    reset();
    if (run_kernel(&r, k->text, params, sizeof params) < 0) {
        CHECK(false, "the kernel is not valid:\n%s", k->text);
        return;
    }
    proved = says(&r, "\"basis\":\"proved\"");
    error = says(&r, "\"verdict\":\"error\"");
    CHECK(!x.broken, "the explorer broke down");
    c->kernels++;
    c->orders += x.orders + x.cut;
    c->whole += x.all;
    c->proved += proved && !error;
    c->errors += error;
    c->incomplete += says(&r, "\"verdict\":\"incomplete\"");
    if (x.end != EXPLORE_FINE) {
        c->bad++;
        if (!error && !proved) c->unnamed++;
        c->unsound += proved && !error;
        CHECK(!proved || error, "proved, but an order %s:\n  %s\n  %s\n%s", ends[x.end],
              x.schedule, x.finding.message, k->text);
    } else if (x.all) {
        c->fine++;
        c->proved_fine += proved && !error;
        c->error_fine += error;
    } else {
        c->partly++;
    }
    if (test_verbose())
        printf("%s\n%s\n%llu orders, %llu cut, %s; %s\n  %s\n  %s\n", k->text, r.findings,
               (unsigned long long)x.orders, (unsigned long long)x.cut,
               x.all ? "all" : "not all", ends[x.end], x.schedule, x.finding.message);
    if (getenv("EXPLORE_LIST"))
        printf("%d %s %s %s orders=%llu cut=%llu %s\n", test_case_number(), proved ? "proved" : "sampled",
               error ? "error" : "clean", x.end == EXPLORE_FINE ? x.all ? "fine" : "partly" : ends[x.end],
               (unsigned long long)x.orders, (unsigned long long)x.cut, error && x.end == EXPLORE_FINE ? strstr(r.findings,"\"kind\"") ? strndup(strstr(r.findings,"\"kind\""),60) : "" : x.finding.message);
}

int main(int argc, char **argv)
{
    static struct random_kernel k;
    struct counts c = {0};
    uint64_t kernels = KERNELS;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--random") != 0) continue;
        kernels = strtoull(argv[i + 1], NULL, 10);
        memmove(&argv[i], &argv[i + 2], (size_t)(argc - i - 1) * sizeof *argv);
        argc -= 2;
        break;
    }
    test_begin("explore", argc, argv);
    memory = run_alloc(2 * MEMORY);
    if (!memory || !run_begin()) return 1;
    for (uint64_t i = 0; i < kernels; i++) {
        struct rng r = {.state = test_seed() * 0x9E3779B97F4A7C15ULL + i};
        if (!test_case("random kernel %llu", (unsigned long long)i)) continue;
        random_kernel(&k, &r);
        judge(&k, &c);
    }
    printf("explore: %u kernels, %llu orders; %u have a bad order, %u none, %u not explored whole; proved: "
           "%u, of those without a bad order %u; errors: %u, of those without a bad order %u; incomplete %u; "
           "bad, sampled and not named %u; unsound %u\n",
           c.kernels, (unsigned long long)c.orders, c.bad, c.fine, c.partly, c.proved, c.proved_fine,
           c.errors, c.error_fine, c.incomplete, c.unnamed, c.unsound);
    run_end();
    run_free(memory);
    return test_end();
}
