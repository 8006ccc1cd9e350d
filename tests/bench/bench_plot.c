/*
 * bench.svg: every ratio as a bar from 1, to the right where hewn is faster, in groups by section. Its own
 * background, light or dark as the reader prefers; the system's fonts.
 */
#include "bench_report.h"

#include <math.h>
#include <string.h>

/* Pixels. */
enum {
    WIDTH = 880,
    LEFT = 270,  /* where labels end */
    RIGHT = 660, /* where bars do */
    LINE = 20,
    TOP = 64,
    BAR = 12
};

struct scale {
    double least, most;
};

static double position(const struct scale *s, double ratio)
{
    double inside = fmin(fmax(ratio, s->least), s->most);
    return LEFT + (inside - s->least) / (s->most - s->least) * (RIGHT - LEFT);
}

/* Tenths around every ratio, 0.8 … 1.2 at least and 0.4 … 2 at most: bars beyond end at the edge. */
static struct scale scale_of(const struct bench_report *r)
{
    struct scale s = {0.8, 1.2};
    for (int i = 0; i < r->row_count; i++) {
        double ratio = bench_ratio(&r->rows[i]);
        if (!(ratio > 0)) continue;
        s.least = fmin(s.least, floor(10 * ratio) / 10);
        s.most = fmax(s.most, ceil(10 * ratio) / 10);
    }
    s.least = fmax(s.least, 0.4);
    s.most = fmin(s.most, 2);
    return s;
}

static void put_text(FILE *out, double x, double y, const char *class, const char *text)
{
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
    }
    fputs("</text>\n", out);
}

static bool begins_section(const struct bench_report *r, int i)
{
    return !i || strcmp(r->rows[i].section, r->rows[i - 1].section) != 0;
}

static int lines_of(const struct bench_report *r)
{
    int lines = 0;
    for (int i = 0; i < r->row_count; i++) lines += begins_section(r, i) ? 3 : 1;
    return lines;
}

static void put_head(const struct bench_report *r, int height, FILE *out)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n"
            "<style>\n"
            "text { fill: #1f2328; font: 12px system-ui, sans-serif; }\n"
            ".back { fill: #ffffff; } .more { fill: #0969da; } .less { fill: #bc4c00; }\n"
            ".grid { stroke: #d0d7de; } .one { stroke: #1f2328; }\n"
            ".title { font-size: 15px; font-weight: 600; } .section { font-weight: 600; }\n"
            ".label { text-anchor: end; } .tick { text-anchor: middle; }\n"
            "@media (prefers-color-scheme: dark) {\n"
            "text { fill: #e6edf3; }\n"
            ".back { fill: #0d1117; } .more { fill: #4493f8; } .less { fill: #db6d28; }\n"
            ".grid { stroke: #30363d; } .one { stroke: #e6edf3; }\n"
            "}\n</style>\n"
            "<rect class=\"back\" width=\"100%%\" height=\"100%%\"/>\n",
            WIDTH, height, WIDTH, height);
    put_text(out, 16, 24, "title", "Time of the peer / time of hewn: above 1 hewn is faster");
    if (r->note_count && !*r->notes[0].section) put_text(out, 16, 43, "", r->notes[0].text);
}

/* A line each tenth, numbered each tenth, or each fifth of 1 where they would touch. */
static void put_grid(const struct scale *s, int height, FILE *out)
{
    int first = (int)lround(10 * s->least), last = (int)lround(10 * s->most);
    for (int tenth = first; tenth <= last; tenth++) {
        double x = position(s, tenth / 10.0);
        char number[16];
        fprintf(out, "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n",
                tenth == 10 ? "one" : "grid", x, x, TOP, height - 24);
        snprintf(number, sizeof number, "%.1f", tenth / 10.0);
        if (last - first <= 8 || tenth % 2 == 0) put_text(out, x, height - 8, "tick", number);
    }
}

static void put_bar(const struct scale *s, const struct bench_row *row, double y, FILE *out)
{
    double ratio = bench_ratio(row), from = position(s, fmin(ratio, 1)),
           to = position(s, fmax(ratio, 1));
    char text[128];
    put_text(out, LEFT - 8, y, "label", row->shape);
    if (bench_wrong(row))
        snprintf(text, sizeof text, "outputs differ from %s", row->peer);
    else if (!(ratio > 0))
        snprintf(text, sizeof text, "not compared");
    else
        snprintf(text, sizeof text, "%.2f · %.0f TFLOP/s", ratio, 1e-12 * row->flop / row->ours);
    if (ratio > 0)
        fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n",
                ratio < 1 ? "less" : "more", from, y - BAR + 2, fmax(to - from, 1), BAR);
    put_text(out, RIGHT + 12, y, "", text);
}

static void put_section_line(const struct bench_report *r, const struct bench_row *first, double y,
                             FILE *out)
{
    double mean, least;
    bool named = strstr(first->section, first->peer) != NULL;
    char text[128];
    snprintf(text, sizeof text, "%s%s%s", first->section, named ? "" : ", ",
             named ? "" : first->peer);
    put_text(out, 16, y, "section", text);
    if (!bench_section_mean(r, first->section, &mean, &least)) return;
    snprintf(text, sizeof text, "mean %.3f, least %.2f", mean, least);
    put_text(out, RIGHT + 12, y, "section", text);
}

void bench_plot(const struct bench_report *r, FILE *out)
{
    struct scale s = scale_of(r);
    int height = TOP + LINE * lines_of(r) + 32;
    double y = TOP;
    put_head(r, height, out);
    put_grid(&s, height, out);
    for (int i = 0; i < r->row_count; i++) {
        const struct bench_row *row = &r->rows[i];
        if (begins_section(r, i)) {
            y += 2 * LINE - 6;
            put_section_line(r, row, y, out);
            y += 6;
        }
        y += LINE;
        put_bar(&s, row, y, out);
    }
    fputs("</svg>\n", out);
}
