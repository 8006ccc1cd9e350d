/*
 * What every test program shares: a seed, a filter, counted checks, the failure print, the closing line.
 *
 *   int main(int argc, char **argv)
 *   {
 *       test_begin("gemm", argc, argv);          // --seed S --case N --share I/N --words --list …
 *       if (test_case("ragged edges")) CHECK(x == 3, "x is %d", x);
 *       return test_end();                       // "N passed, N failed, N skipped"
 *   }
 *
 * --share I/N: every N-th case from the I-th on, for N processes side by side. With --words also each case whose name
 * has a word (a kernel, a type, an option) that no case before it had: a short run that leaves out no kind.
 *
 * A case passes when every CHECK in it held. Checks print on failure only; a case that cannot run here calls
 * test_skip with what is missing.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void test_begin(const char *program, int argc, char **argv);
/* Starts the next case; false when the filter leaves it out. */
bool test_case(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A case about those before it, at the end: every share has its own, over its own; left out by --case. */
bool test_summary(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the current case as skipped; `why` names what is missing. */
void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Where the cases run, for failure headers: "sm_90a on sim h200". */
void test_where(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One failed check of the current case. */
void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Closes the run; the exit status. */
int test_end(void);

uint64_t test_seed(void);
bool test_verbose(void);
/* --case, --share or --list: some cases do not run. */
bool test_filtered(void);
/* The running case's number, from 0; -1 outside a case. */
int test_case_number(void);
/* Its name; "" outside a case. */
const char *test_case_name(void);
/* Failed checks of the current case so far. */
int test_case_failures(void);

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) test_fail(__FILE__, __LINE__, __VA_ARGS__);                              \
    } while (0)

#define CHECK_INT(got, want)                                                                       \
    do {                                                                                           \
        long long check_got = (long long)(got), check_want = (long long)(want);                    \
        if (check_got != check_want)                                                               \
            test_fail(__FILE__, __LINE__, "%s: want %lld got %lld", #got, check_want, check_got);  \
    } while (0)

/* `got` must contain `want`. */
#define CHECK_TEXT(got, want) check_text(__FILE__, __LINE__, #got, (got), (want))
void check_text(const char *file, int line, const char *what, const char *got, const char *want);

/* ---- random numbers: splitmix64, so that a case depends on (seed, case) alone ---- */

struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *r);
uint32_t rng_below(struct rng *r, uint32_t bound);
/* Uniform in [-1, 1). */
float rng_unit(struct rng *r);

/* ---- 16-bit floats, written from IEEE 754 independently of the simulator ---- */

double f16_to_double(uint16_t h);
double bf16_to_double(uint16_t h);
uint16_t double_to_f16(double d);  /* nearest even */
uint16_t double_to_bf16(double d); /* nearest even */

#endif
