/*
 * The files that `make bench` leaves on a GPU, of rows made up here: what a reader of bench.csv, bench.md
 * and bench.svg counts on.
 */
#include "bench_report.h"
#include "lib/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A row of 1 TFLOP that took 2 ms here and 3 ms there. */
static struct bench_row row_of(const char *section, const char *shape)
{
    struct bench_row row = {.dtype = "bf16",
                            .ours = 2e-3,
                            .theirs = 3e-3,
                            .peer = "cuBLASLt",
                            .flop = 1e12,
                            .spread = 0.015,
                            .ceiling = 8e14,
                            .differ = 0,
                            .differ_limit = 0x1p-7,
                            .variant = "pair/1"};
    snprintf(row.section, sizeof row.section, "%s", section);
    snprintf(row.shape, sizeof row.shape, "%s", shape);
    return row;
}

/* What `put` writes of the report. Freed by the caller. */
static char *text_of(const struct bench_report *r, void (*put)(const struct bench_report *, FILE *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    put(r, out);
    fclose(out);
    return text;
}

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) count++;
    return count;
}

/* Four rows in two sections: plain, slower, wrong, one without a peer; a fact and a note. What the report
 * prints as it grows is not what is tested. */
static struct bench_report report_of_four(void)
{
    struct bench_report r = {0};
    struct bench_row slow = row_of("gemm bf16", "2 × 2 × 2"), wrong = slow,
                     alone = row_of("a, \"b\" <&>", "x");
    slow.ours = 4e-3;
    wrong.differ = 0.5;
    alone.theirs = alone.ceiling = alone.differ = (double)NAN;
    struct bench_row plain = row_of("gemm bf16", "1 × 1 × 1");
    bench_fact(&r, "one device");
    bench_add(&r, &plain);
    bench_add(&r, &slow);
    bench_add(&r, &wrong);
    bench_note(&r, "gemm bf16", "seen at 1500 MHz");
    bench_add(&r, &alone);
    return r;
}

static void test_means(const struct bench_report *r)
{
    double mean = 0, least = 0;
    CHECK(bench_section_mean(r, "gemm bf16", &mean, &least), "no mean of two ratios");
    CHECK(fabs(mean - sqrt(1.5 * 0.75)) < 1e-12, "mean: want %.6f got %.6f", sqrt(1.5 * 0.75),
          mean);
    CHECK(least == 0.75, "least: want 0.75 got %g", least);
    CHECK(!bench_section_mean(r, "a, \"b\" <&>", &mean, &least), "a mean of no ratio");
    CHECK_INT(r->wrong, 1);
    CHECK(isnan(bench_ratio(&r->rows[2])), "a wrong row has a ratio");
}

static void test_csv(const struct bench_report *r)
{
    char *text = text_of(r, bench_csv);
    CHECK(text != NULL, "no memory");
    if (!text) return;
    CHECK_TEXT(text,
               "# one device\n# gemm bf16: seen at 1500 MHz\nsection,shape,dtype,ours_us,"
               "ours_tflops,peer,peer_us,peer_tflops,ratio,spread,ceiling_pct,differ,variant\n");
    CHECK_TEXT(text,
               "\ngemm bf16,1 × 1 × 1,bf16,2000.00,500.0,cuBLASLt,3000.00,333.3,1.5000,0.0150,"
               "62.5,0.00e+00,pair/1\n");
    CHECK_TEXT(text, "3000.00,333.3,,0.0150,62.5,5.00e-01,pair/1\n");
    CHECK_TEXT(text, "\n\"a, \"\"b\"\" <&>\",x,bf16,2000.00,500.0,cuBLASLt,,,,0.0150,,,pair/1\n");
    CHECK_INT(count_of(text, "\n"), 3 + 4);
    free(text);
}

static void test_markdown(const struct bench_report *r)
{
    char *text = text_of(r, bench_markdown);
    CHECK(text != NULL, "no memory");
    if (!text) return;
    CHECK_TEXT(text, "one device  \n\n**gemm bf16**\n");
    CHECK_TEXT(text,
               "| 1 × 1 × 1 | pair/1 | 2000.0 | 500 | 62 | cuBLASLt | 3000.0 | 333 | 1.50 |\n");
    CHECK_TEXT(text, "| outputs differ |\n");
    CHECK_TEXT(text,
               "| geometric mean; least | | | | | | | | 1.061; 0.750 |\n\nseen at 1500 MHz\n");
    CHECK_TEXT(text, "| x | pair/1 | 2000.0 | 500 | – | cuBLASLt | – | – | – |\n");
    CHECK_INT(count_of(text, "\n|---|"), 2);
    free(text);
}

/* Where the bar of a row ends that `class` colours, or -1. */
static double width_of(const char *text, const char *class)
{
    const char *at = strstr(text, class), *width = at ? strstr(at, "width=\"") : NULL;
    return width ? atof(width + strlen("width=\"")) : -1;
}

static void test_plot(const struct bench_report *r)
{
    char *text = text_of(r, bench_plot);
    CHECK(text != NULL, "no memory");
    if (!text) return;
    double more = width_of(text, "<rect class=\"more\""),
           less = width_of(text, "<rect class=\"less\"");
    CHECK_INT(count_of(text, "<rect class=\"more\""), 1);
    CHECK_INT(count_of(text, "<rect class=\"less\""), 1);
    CHECK(more > 0 && fabs(more - 2 * less) < 0.2, "bars from 1 to 1.5 and to 0.75: %g and %g px",
          more, less);
    CHECK_TEXT(text, "a, \"b\" &lt;&amp;&gt;, cuBLASLt</text>");
    CHECK_TEXT(text, "outputs differ from cuBLASLt</text>");
    CHECK_TEXT(text, ">not compared</text>");
    CHECK_TEXT(text, ">gemm bf16, cuBLASLt</text>");
    CHECK_TEXT(text, ">mean 1.061, least 0.75</text>");
    CHECK_TEXT(text, "prefers-color-scheme: dark");
    CHECK(!strstr(text, "href") && !strstr(text, "url(") && !strstr(text, "@import"),
          "the plot refers to something outside");
    CHECK_INT(count_of(text, "<text "), count_of(text, "</text>"));
    CHECK_TEXT(text + strlen(text) - 7, "</svg>\n");
    free(text);
}

static bool has_file(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return unlink(path) == 0;
}

static void test_folder(const struct bench_report *r)
{
    char parent[] = "/tmp/hewn-bench-XXXXXX", folder[64];
    CHECK(mkdtemp(parent) != NULL, "no folder under /tmp");
    snprintf(folder, sizeof folder, "%s/new", parent);
    CHECK(bench_write(r, folder), "a new folder is refused");
    CHECK(bench_write(r, folder), "the same folder again is refused");
    CHECK(has_file(folder, "bench.csv") && has_file(folder, "bench.md") &&
              has_file(folder, "bench.svg"),
          "a file is missing in %s", folder);
    CHECK(rmdir(folder) == 0, "something else lies in %s", folder);
    rmdir(parent);
}

int main(int argc, char **argv)
{
    struct bench_report r;
    test_begin("bench_test", argc, argv);
    fflush(stdout);
    r = report_of_four();
    if (test_case("ratios, their mean, wrong rows")) test_means(&r);
    if (test_case("bench.csv")) test_csv(&r);
    if (test_case("bench.md")) test_markdown(&r);
    if (test_case("bench.svg")) test_plot(&r);
    if (test_case("the folder")) test_folder(&r);
    bench_report_free(&r);
    return test_end();
}
