#include "harness.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *program, *path;
    char where[96], name[400];
    uint64_t seed;
    int only;          /* --case, -1: all */
    int share, shares; /* --share: cases whose number leaves `share` */
    bool words;        /* --words: also cases with a word that no case before them had */
    bool list, verbose, skipped;
    int number, failures; /* of the current case */
    int passed, failed, skips;
} run = {.only = -1, .shares = 1, .number = -1, .seed = 0x5eed17};

static void close_case(void)
{
    if (run.number < 0 || run.name[0] == '\0') return;
    if (run.failures) {
        const char *sms = getenv("HEWN_SIM_SMS"); /* kernels and drawn cases depend on it */
        run.failed++;
        printf(" rerun %s%s%s%s --case %d --seed 0x%llx\n", sms ? "HEWN_SIM_SMS=" : "",
               sms ? sms : "", sms ? " " : "", run.path, run.number, (unsigned long long)run.seed);
    } else if (run.skipped) {
        run.skips++;
    } else {
        run.passed++;
    }
    run.name[0] = '\0';
}

static void usage(const char *argument)
{
    fprintf(stderr,
            "%s: '%s' is not understood; options: --seed S --case N --share I/N --words --list "
            "--verbose\n",
            run.program, argument);
    exit(2);
}

static void set_share(const char *argument)
{
    char more;
    if (sscanf(argument, "%d/%d%c", &run.share, &run.shares, &more) != 2 || run.shares < 1 ||
        run.share < 0 || run.share >= run.shares)
        usage(argument);
}

void test_begin(const char *program, int argc, char **argv)
{
    run.program = program;
    run.path = argc > 0 ? argv[0] : program;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--list"))
            run.list = true;
        else if (!strcmp(argv[i], "--verbose"))
            run.verbose = true;
        else if (!strcmp(argv[i], "--words"))
            run.words = true;
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            run.seed = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--case") && i + 1 < argc)
            run.only = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--share") && i + 1 < argc)
            set_share(argv[++i]);
        else
            usage(argv[i]);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
}

/* Whether `name` has a word that no name before it had. A word ends before a slash, or before "=" and a number; numbers
 * are no words. */
static bool new_word(const char *name)
{
    static uint64_t seen[1024];
    static size_t count;
    bool new = false;
    for (const char *at = name; *at; at += strcspn(at, " ,"), at += strspn(at, " ,")) {
        size_t length = strcspn(at, " ,/=");
        if (at[length] == '=' && (at[length + 1] < '0' || at[length + 1] > '9'))
            length = strcspn(at, " ,/");
        if (strspn(at, "0123456789.") >= length) continue;
        uint64_t hash = 14695981039346656037u;
        for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)at[i]) * 1099511628211u;
        size_t i = 0;
        while (i < count && seen[i] != hash) i++;
        if (i < count) continue;
        new = true;
        if (count < sizeof seen / sizeof *seen) seen[count++] = hash;
    }
    return new;
}

/* Begins the next case; whether it runs. `every`: in every share. */
static bool enter(bool every, const char *format, va_list args)
{
    close_case();
    run.number++;
    run.failures = 0;
    run.skipped = false;
    vsnprintf(run.name, sizeof run.name, format, args);
    bool mine = every || run.number % run.shares == run.share;
    if (run.words && !every && new_word(run.name)) mine = true;
    if (run.list && (mine || !run.words)) printf("%4d  %s\n", run.number, run.name);
    if (run.list || !mine || (run.only >= 0 && (every || run.only != run.number))) {
        run.name[0] = '\0';
        return false;
    }
    if (run.verbose)
        printf("case %d  %s\n", run.number, run.name);
    else if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s %d: %.60s", run.program, run.number, run.name);
    return true;
}

bool test_case(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool runs = enter(false, format, args);
    va_end(args);
    return runs;
}

bool test_summary(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool runs = enter(true, format, args);
    va_end(args);
    return runs;
}

void test_skip(const char *format, ...)
{
    va_list args;
    if (run.skipped) return;
    run.skipped = true;
    printf("SKIP %s: ", run.name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

void test_where(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(run.where, sizeof run.where, format, args);
    va_end(args);
}

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    const char *tests = strstr(file, "tests/");
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
    if (run.failures++ == 0)
        printf("FAIL %s [%s] %s:%d  seed=0x%llx\n case  %d: %s\n", run.program, run.where,
               tests ? tests : file, line, (unsigned long long)run.seed, run.number, run.name);
    if (run.failures > 12) return;
    printf("      ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("  (line %d)\n", line);
}

int test_end(void)
{
    close_case();
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
    if (run.list) return 0;
    printf("%s%s%s: %d passed, %d failed, %d skipped\n", run.program, run.where[0] ? " on " : "",
           run.where, run.passed, run.failed, run.skips);
    return run.failed ? 1 : 0;
}

uint64_t test_seed(void)
{
    return run.seed;
}
bool test_filtered(void)
{
    return run.list || run.only >= 0 || run.shares > 1;
}

bool test_verbose(void)
{
    return run.verbose;
}
int test_case_number(void)
{
    return run.number;
}

const char *test_case_name(void)
{
    return run.name;
}

int test_case_failures(void)
{
    return run.failures;
}

void check_text(const char *file, int line, const char *what, const char *got, const char *want)
{
    if (!got || !strstr(got, want))
        test_fail(file, line, "%s: want \"%s\" in \"%s\"", what, want, got ? got : "(null)");
}

uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

uint32_t rng_below(struct rng *r, uint32_t bound)
{
    return (uint32_t)((rng_next(r) >> 32) * bound >> 32);
}

float rng_unit(struct rng *r)
{
    return (float)((double)(rng_next(r) >> 40) / 8388608.0 - 1.0);
}

/* Value of a binary float with `exponent` and `fraction` bits, bias 2^(exponent-1)-1. */
static double small_to_double(uint32_t bits, int exponent, int fraction)
{
    int bias = (1 << (exponent - 1)) - 1;
    uint32_t e = bits >> fraction & ((1U << exponent) - 1U), f = bits & ((1U << fraction) - 1U);
    double sign = bits >> (exponent + fraction) & 1U ? -1.0 : 1.0;
    if (e == (1U << exponent) - 1U) return f ? (double)NAN : sign * (double)INFINITY;
    if (e == 0) return sign * ldexp((double)f, 1 - bias - fraction);
    return sign * ldexp((double)(f | 1U << fraction), (int)e - bias - fraction);
}

static uint32_t double_to_small(double d, int exponent, int fraction)
{
    int bias = (1 << (exponent - 1)) - 1, e;
    uint32_t sign = signbit(d) ? 1U << (exponent + fraction) : 0;
    uint32_t infinity = ((1U << exponent) - 1U) << fraction;
    double m = fabs(d);
    if (isnan(d)) return infinity | (1U << (fraction - 1));
    if (isinf(d)) return sign | infinity;
    if (m == 0) return sign;
    frexp(m, &e);
    e = e - 1 < 1 - bias ? 1 - bias : e - 1;          /* exponent of the result's binade */
    double steps = nearbyint(ldexp(m, fraction - e)); /* even on ties: the default rounding mode */
    if (steps >= ldexp(2.0, fraction)) {
        steps /= 2;
        e++;
    }
    if (e > bias) return sign | infinity;
    uint32_t u = (uint32_t)steps;
    if (u < 1U << fraction) return sign | u; /* subnormal */
    return sign | ((uint32_t)(e + bias) << fraction) | (u & ((1U << fraction) - 1U));
}

double f16_to_double(uint16_t h)
{
    return small_to_double(h, 5, 10);
}
double bf16_to_double(uint16_t h)
{
    return small_to_double(h, 8, 7);
}
uint16_t double_to_f16(double d)
{
    return (uint16_t)double_to_small(d, 5, 10);
}
uint16_t double_to_bf16(double d)
{
    return (uint16_t)double_to_small(d, 8, 7);
}
