/*
 * What the sections of `make bench` put out on a GPU: facts of the machine, then a row a comparison, on the
 * terminal as they come and at the end in a folder:
 *
 *   bench.csv   facts and notes as lines that begin with '#', a line of names, a line a row (RFC 4180)
 *   bench.md    a table a section, as tests/BENCH.md prints them
 *   bench.svg   the ratios as bars around 1 (bench_plot.c)
 */
#ifndef TESTS_BENCH_REPORT_H
#define TESTS_BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

/* One comparison. Times are seconds a launch, NAN where a side is missing. */
struct bench_row {
    char section[32]; /* rows of a section follow one another */
    char shape[64];
    char dtype[8];
    double ours, theirs;
    char peer[32];
    double flop;         /* of a launch */
    double spread;       /* of our times, from the 10th to the 90th percentile, over their median */
    double ceiling;      /* FLOP/s that the tensor cores were measured at on this type; NAN: not */
    double differ;       /* of the two outputs, as the section says; NAN: not compared */
    double differ_limit; /* a row whose outputs differ by more is wrong and has no ratio */
    char variant[24];    /* our kernel */
};

struct bench_note { /* a fact where section is "" */
    char section[32], text[224];
};

struct bench_report {
    struct bench_row *rows;
    struct bench_note *notes;
    int row_count, note_count;
    int wrong; /* rows whose outputs differ */
};

/* Their time over ours: above 1 ours is faster. NAN where a side is missing or the row is wrong. */
double bench_ratio(const struct bench_row *row);
bool bench_wrong(const struct bench_row *row);
/* Geometric mean of a section's ratios and the least; false where it has none. */
bool bench_section_mean(const struct bench_report *r, const char *section, double *mean,
                        double *least);

/* Each prints what it adds. Out of memory ends the program. */
void bench_fact(struct bench_report *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void bench_note(struct bench_report *r, const char *section, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void bench_add(struct bench_report *r, const struct bench_row *row);
/* Prints the mean and least of the last row's section. */
void bench_section_ends(const struct bench_report *r);

void bench_csv(const struct bench_report *r, FILE *out);
void bench_markdown(const struct bench_report *r, FILE *out);
void bench_plot(const struct bench_report *r, FILE *out);
/* The three files, into `folder`, which is made. False with a line on stderr where one fails. */
bool bench_write(const struct bench_report *r, const char *folder);
void bench_report_free(struct bench_report *r);

#endif
