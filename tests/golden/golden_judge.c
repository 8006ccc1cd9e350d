/*
 * Judging a case's results, form by form: equal bits, or no further apart than the bound that the PTX
 * ISA documents for an approximation and than what DIR/ulp.md says was measured.
 */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally {
    uint64_t count, differ, ulp;
    double absolute, relative;
    size_t first;
};

/* A float's place on the number line, so that neighbours differ by one; NaNs all in one place. */
static int64_t place(const struct golden_case *c, uint64_t bits)
{
    uint64_t sign = 1ULL << (8 * c->element - 1), magnitude = bits & (sign - 1);
    uint64_t infinity = c->element == 4   ? 0x7F800000ULL
                        : c->element == 8 ? 0x7FF0000000000000ULL
                        : c->bfloat       ? 0x7F80
                                          : 0x7C00;
    if (magnitude > infinity) return INT64_MAX;
    return bits & sign ? -(int64_t)magnitude : (int64_t)magnitude;
}

static double value(const struct golden_case *c, uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    double d;
    float f;
    if (c->element == 2)
        return c->bfloat ? bf16_to_double((uint16_t)bits) : f16_to_double((uint16_t)bits);
    memcpy(&f, &word, sizeof f);
    memcpy(&d, &bits, sizeof d);
    return c->element == 4 ? (double)f : d;
}

static uint64_t result(const struct golden_case *c, const unsigned char *out, size_t index)
{
    uint64_t v = 0;
    memcpy(&v, out + index * c->element, c->element < 8 ? c->element : 8);
    return v;
}

static bool same(const struct golden_case *c, const unsigned char *a, const unsigned char *b,
                 size_t index)
{
    return !memcmp(a + index * c->element, b + index * c->element, c->element);
}

static void measure(const struct golden_case *c, uint64_t got, uint64_t want, struct tally *t)
{
    int64_t a = place(c, got), b = place(c, want);
    double apart = fabs(value(c, got) - value(c, want)), size = fabs(value(c, want));
    uint64_t ulp = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
    if (a == b) return;
    if (a == INT64_MAX || b == INT64_MAX) ulp = UINT64_MAX;
    if (!(apart < INFINITY)) apart = INFINITY; /* of an infinity or a NaN and another value */
    if (ulp > t->ulp) t->ulp = ulp;
    t->absolute = fmax(t->absolute, apart / fmax(1, size));
    t->relative = fmax(t->relative, apart / size);
}

/* Results `first` to `first + count` - 1. */
static struct tally compare(const struct golden_case *c, const unsigned char *got,
                            const unsigned char *want, size_t first, size_t count)
{
    struct tally t = {.count = count};
    for (size_t i = first; i < first + count; i++) {
        if (same(c, got, want, i)) continue;
        if (t.differ++ == 0) t.first = i;
        if (c->floating) measure(c, result(c, got, i), result(c, want, i), &t);
    }
    return t;
}

/* The first few results that differ, each with the inputs of its lane where lanes have their own. */
static void print_misses(const struct golden_case *c, const char *name, const unsigned char *got,
                         const unsigned char *want, size_t first, size_t count)
{
    size_t lanes = c->lanes ? c->lanes : c->out_bytes / c->element, shown = 0;
    if (!lanes) return;
    const size_t stride = c->in_bytes / lanes;
    for (size_t i = first; i < first + count && shown < 8; i++) {
        uint64_t in;
        if (same(c, got, want, i)) continue;
        shown++;
        printf("    %s [%zu, lane %zu] want 0x%llx got 0x%llx from", name, (i - first) / lanes,
               i % lanes, (unsigned long long)result(c, want, i),
               (unsigned long long)result(c, got, i));
        for (size_t at = 0; stride % 8 == 0 && at < stride; at += 8) {
            memcpy(&in, c->in + i % lanes * stride + at, 8);
            printf(" %llx", (unsigned long long)in);
        }
        printf("\n");
    }
}

/* ---- approximations ---- */

static const char *const rule_unit[] = {
    [GOLDEN_ULP] = "ulp", [GOLDEN_ABS] = "absolute", [GOLDEN_REL] = "relative"};

static double against_bound(const struct golden_case *c, const struct tally *t)
{
    if (c->rule == GOLDEN_ABS) return t->absolute;
    return c->rule == GOLDEN_REL ? t->relative : (double)t->ulp;
}

static void print_row(const struct golden_case *c, const char *name, const struct tally *t)
{
    printf("| %s `%s` | %llu | %.3g %s | %llu | %llu | %.2g | %.2g |\n", c->family, name,
           (unsigned long long)t->count, c->bound, rule_unit[c->rule],
           (unsigned long long)t->differ, (unsigned long long)t->ulp, t->absolute, t->relative);
}

/* The fifth column of the form's row, 0 and a failed check without one. */
static uint64_t recorded_ulp(const struct golden_case *c, const char *table, const char *name)
{
    char key[4096 + 32];
    unsigned long long ulp = 0;
    const char *row;
    snprintf(key, sizeof key, "\n| %s `%s` |", c->family, name);
    row = strstr(table, key);
    bool found = row && sscanf(row + strlen(key), " %*u | %*[^|]| %*u | %llu", &ulp) == 1;
    CHECK(found, "ulp.md has no row for %s: run golden --table", name);
    return ulp;
}

static void judge_form(const struct golden_case *c, const char *name, const char *table,
                       const struct tally *t, const unsigned char *got, const unsigned char *want)
{
    uint64_t recorded;
    if (c->rule == GOLDEN_BITS) {
        CHECK(t->differ == 0, "%s: %llu of %llu differ, first at %zu: want 0x%llx got 0x%llx", name,
              (unsigned long long)t->differ, (unsigned long long)t->count, t->first,
              (unsigned long long)result(c, want, t->first),
              (unsigned long long)result(c, got, t->first));
        return;
    }
    CHECK(against_bound(c, t) <= c->bound,
          "%s: %g %s from the hardware, at most %g; first of those that differ at %zu: want 0x%llx "
          "got 0x%llx",
          name, against_bound(c, t), rule_unit[c->rule], c->bound, t->first,
          (unsigned long long)result(c, want, t->first),
          (unsigned long long)result(c, got, t->first));
    recorded = recorded_ulp(c, table, name);
    CHECK(t->ulp <= recorded, "%s: %llu ulp from the hardware, %llu in ulp.md", name,
          (unsigned long long)t->ulp, (unsigned long long)recorded);
}

void golden_judge(const struct golden_case *c, const unsigned char *got, const unsigned char *want,
                  const char *table)
{
    uint32_t forms = c->forms ? c->forms : 1;
    size_t count = c->out_bytes / c->element / forms;
    char name[4096];
    for (uint32_t i = 0; i < forms; i++) {
        struct tally t = compare(c, got, want, i * count, count);
        if (c->form)
            c->form(c->form_of, i, name);
        else
            snprintf(name, sizeof name, "%s", c->name);
        if (!table) {
            if (c->rule != GOLDEN_BITS) print_row(c, name, &t);
            continue;
        }
        if (test_verbose()) print_misses(c, name, got, want, i * count, count);
        judge_form(c, name, table, &t, got, want);
    }
}
