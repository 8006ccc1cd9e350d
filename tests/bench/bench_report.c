#include "bench_report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool bench_wrong(const struct bench_row *row)
{
    return row->differ > row->differ_limit;
}

double bench_ratio(const struct bench_row *row)
{
    return bench_wrong(row) ? (double)NAN : row->theirs / row->ours;
}

bool bench_section_mean(const struct bench_report *r, const char *section, double *mean,
                        double *least)
{
    double logarithms = 0;
    int count = 0;
    *least = (double)INFINITY;
    for (int i = 0; i < r->row_count; i++) {
        double ratio = bench_ratio(&r->rows[i]);
        if (strcmp(r->rows[i].section, section) != 0 || !(ratio > 0)) continue;
        logarithms += log(ratio);
        *least = fmin(*least, ratio);
        count++;
    }
    *mean = exp(logarithms / (count ? count : 1));
    return count > 0;
}

/* ---- rows and notes ---- */

static void *grown(void *old, int count, size_t size)
{
    void *grown_to = realloc(old, ((size_t)count + 1) * size);
    if (!grown_to) {
        fprintf(stderr, "bench: no memory for row %d\n", count);
        exit(1);
    }
    return grown_to;
}

static struct bench_note *note_new(struct bench_report *r, const char *section)
{
    struct bench_note *note;
    r->notes = grown(r->notes, r->note_count, sizeof *r->notes);
    note = &r->notes[r->note_count++];
    snprintf(note->section, sizeof note->section, "%s", section);
    return note;
}

void bench_fact(struct bench_report *r, const char *format, ...)
{
    struct bench_note *note = note_new(r, "");
    va_list args;
    va_start(args, format);
    vsnprintf(note->text, sizeof note->text, format, args);
    va_end(args);
    puts(note->text);
    fflush(stdout);
}

void bench_note(struct bench_report *r, const char *section, const char *format, ...)
{
    struct bench_note *note = note_new(r, section);
    va_list args;
    va_start(args, format);
    vsnprintf(note->text, sizeof note->text, format, args);
    va_end(args);
    printf("  %s\n", note->text);
    fflush(stdout);
}

static double tera(const struct bench_row *row, double seconds)
{
    return 1e-12 * row->flop / seconds;
}

static double percent_of_ceiling(const struct bench_row *row)
{
    return 100 * row->flop / row->ours / row->ceiling;
}

static void print_row(const struct bench_row *row)
{
    printf("%-34s  %9.1f %8.1f %6.1f  %-16s %9.1f %8.1f  ", row->shape, 1e6 * row->ours,
           tera(row, row->ours), percent_of_ceiling(row), row->peer, 1e6 * row->theirs,
           tera(row, row->theirs));
    if (bench_wrong(row))
        printf("%6s", "WRONG");
    else
        printf("%6.3f", bench_ratio(row));
    printf("  %6.1f%%  %8.1e  %s\n", 100 * row->spread, row->differ, row->variant);
    fflush(stdout);
}

void bench_add(struct bench_report *r, const struct bench_row *row)
{
    if (!r->row_count || strcmp(r->rows[r->row_count - 1].section, row->section) != 0)
        printf("%-34s  %9s %8s %6s  %-16s %9s %8s  %6s  %7s  %8s  %s\n", row->section, "hewn us",
               "TFLOP/s", "peak %", "peer", "us", "TFLOP/s", "ratio", "spread", "differ",
               "variant");
    r->rows = grown(r->rows, r->row_count, sizeof *r->rows);
    r->rows[r->row_count++] = *row;
    r->wrong += bench_wrong(row);
    print_row(row);
}

void bench_section_ends(const struct bench_report *r)
{
    double mean, least;
    const char *section = r->row_count ? r->rows[r->row_count - 1].section : "";
    if (bench_section_mean(r, section, &mean, &least))
        printf("%-34s  ratio: geometric mean %.3f, least %.3f\n", section, mean, least);
}

void bench_report_free(struct bench_report *r)
{
    free(r->rows);
    free(r->notes);
    memset(r, 0, sizeof *r);
}

/* ---- bench.csv ---- */

/* A text as a field: in quotation marks where it holds what separates fields or lines. */
static void put_field(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"') fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* A number as a field: empty where there is none, inf where outputs hold NaN. */
static void put_number(FILE *out, const char *format, double x)
{
    char text[32] = "";
    if (!isnan(x)) snprintf(text, sizeof text, format, x);
    fprintf(out, ",%s", text);
}

static void put_row(const struct bench_row *row, FILE *out)
{
    put_field(out, row->section);
    fputc(',', out);
    put_field(out, row->shape);
    fprintf(out, ",%s", row->dtype);
    put_number(out, "%.2f", 1e6 * row->ours);
    put_number(out, "%.1f", tera(row, row->ours));
    fputc(',', out);
    put_field(out, row->peer);
    put_number(out, "%.2f", 1e6 * row->theirs);
    put_number(out, "%.1f", tera(row, row->theirs));
    put_number(out, "%.4f", bench_ratio(row));
    put_number(out, "%.4f", row->spread);
    put_number(out, "%.1f", percent_of_ceiling(row));
    put_number(out, "%.2e", row->differ);
    fprintf(out, ",%s\n", row->variant);
}

void bench_csv(const struct bench_report *r, FILE *out)
{
    for (int i = 0; i < r->note_count; i++)
        fprintf(out, "# %s%s%s\n", r->notes[i].section, *r->notes[i].section ? ": " : "",
                r->notes[i].text);
    fputs("section,shape,dtype,ours_us,ours_tflops,peer,peer_us,peer_tflops,ratio,spread,"
          "ceiling_pct,differ,variant\n",
          out);
    for (int i = 0; i < r->row_count; i++) put_row(&r->rows[i], out);
}

/* ---- bench.md ---- */

static void put_cell(FILE *out, const char *format, double x)
{
    char text[32] = "–";
    if (isfinite(x)) snprintf(text, sizeof text, format, x);
    fprintf(out, " %s |", text);
}

static void put_table_row(const struct bench_row *row, FILE *out)
{
    fprintf(out, "| %s | %s |", row->shape, row->variant);
    put_cell(out, "%.1f", 1e6 * row->ours);
    put_cell(out, "%.0f", tera(row, row->ours));
    put_cell(out, "%.0f", percent_of_ceiling(row));
    fprintf(out, " %s |", row->peer);
    put_cell(out, "%.1f", 1e6 * row->theirs);
    put_cell(out, "%.0f", tera(row, row->theirs));
    if (bench_wrong(row))
        fputs(" outputs differ |\n", out);
    else {
        put_cell(out, "%.2f", bench_ratio(row));
        fputc('\n', out);
    }
}

static void put_section(const struct bench_report *r, int first, FILE *out)
{
    const char *section = r->rows[first].section;
    double mean, least;
    fprintf(out,
            "\n**%s**\n\n"
            "| shape | kernel | hewn µs | TFLOP/s | %% of ceiling | peer | µs | TFLOP/s | ratio |\n"
            "|---|---|---|---|---|---|---|---|---|\n",
            section);
    for (int i = first; i < r->row_count && !strcmp(r->rows[i].section, section); i++)
        put_table_row(&r->rows[i], out);
    if (bench_section_mean(r, section, &mean, &least))
        fprintf(out, "| geometric mean; least | | | | | | | | %.3f; %.3f |\n", mean, least);
    for (int i = 0; i < r->note_count; i++)
        if (!strcmp(r->notes[i].section, section)) fprintf(out, "\n%s\n", r->notes[i].text);
}

void bench_markdown(const struct bench_report *r, FILE *out)
{
    for (int i = 0; i < r->note_count; i++)
        if (!*r->notes[i].section) fprintf(out, "%s  \n", r->notes[i].text);
    for (int i = 0; i < r->row_count; i++)
        if (!i || strcmp(r->rows[i].section, r->rows[i - 1].section) != 0) put_section(r, i, out);
}

/* ---- the folder ---- */

static bool write_file(const struct bench_report *r, const char *folder, const char *name,
                       void (*put)(const struct bench_report *, FILE *))
{
    char path[4096];
    FILE *out;
    bool ok;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    out = fopen(path, "w");
    if (out) put(r, out);
    ok = out && !ferror(out);
    if (out) ok = !fclose(out) && ok;
    if (!ok) fprintf(stderr, "bench: %s cannot be written: %s\n", path, strerror(errno));
    return ok;
}

bool bench_write(const struct bench_report *r, const char *folder)
{
    if (mkdir(folder, 0777) && errno != EEXIST) {
        fprintf(stderr, "bench: folder %s cannot be made: %s\n", folder, strerror(errno));
        return false;
    }
    return write_file(r, folder, "bench.csv", bench_csv) &&
           write_file(r, folder, "bench.md", bench_markdown) &&
           write_file(r, folder, "bench.svg", bench_plot);
}
