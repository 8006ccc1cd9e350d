/*
 * hewn timeline: one picture of one CTA, from a trace that the simulator wrote (HEWN_SIM_TRACE), and
 * where the launch's time goes. It reads such files alone, an event a line, not JSON at large.
 */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_ROOM = 4096, NAME_ROOM = 128, MAX_TRACKS = 512, WARP_TRACKS = 100, BARRIERS = 1000 };
enum { LEFT = 190, WIDTH = 1180, ROW = 17, TOP = 78, BAR = 13 };

struct slice {
    unsigned tid;
    char cat[8], name[NAME_ROOM];
    double from, to; /* microseconds */
};

struct track {
    unsigned tid, more; /* more: warps of the same role that are not drawn */
    char name[NAME_ROOM];
    bool hidden;
    int row;
};

struct timeline {
    unsigned pid, launch, cta;
    bool found;
    double from, to; /* of the picture; to < 0: all */
    struct slice *slices;
    size_t slice_count, slice_capacity;
    struct track tracks[MAX_TRACKS];
    size_t track_count;
    char process[NAME_ROOM], summary[LINE_ROOM];
};

/* ---- reading ---- */

/* Behind `"key":`, or NULL. */
static const char *field(const char *line, const char *key)
{
    char quoted[64];
    const char *at;
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    at = strstr(line, quoted);
    return at ? at + strlen(quoted) : NULL;
}

static double number(const char *line, const char *key)
{
    const char *at = field(line, key);
    return at ? strtod(at, NULL) : 0;
}

static void text(const char *at, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    if (!at || *at != '"') return;
    for (at++; *at && *at != '"' && n + 1 < size; at++) {
        if (*at == '\\' && at[1]) at++;
        out[n++] = *at;
    }
    out[n] = '\0';
}

static bool add_slice(struct timeline *t, const char *line)
{
    struct slice *s;
    if (t->slice_count == t->slice_capacity) {
        size_t capacity = t->slice_capacity ? 2 * t->slice_capacity : 1024;
        s = realloc(t->slices, capacity * sizeof *s);
        if (!s) return false;
        t->slices = s;
        t->slice_capacity = capacity;
    }
    s = &t->slices[t->slice_count++];
    s->tid = (unsigned)number(line, "tid");
    s->from = number(line, "ts");
    s->to = s->from + number(line, "dur");
    text(field(line, "cat"), s->cat, sizeof s->cat);
    text(field(line, "name"), s->name, sizeof s->name);
    return true;
}

static struct track *track_of(struct timeline *t, unsigned tid)
{
    for (size_t i = 0; i < t->track_count; i++)
        if (t->tracks[i].tid == tid) return &t->tracks[i];
    return NULL;
}

static void name_track(struct timeline *t, const char *line)
{
    unsigned tid = (unsigned)number(line, "tid");
    struct track *track;
    if (t->track_count == MAX_TRACKS || track_of(t, tid)) return;
    track = &t->tracks[t->track_count++];
    *track = (struct track){.tid = tid};
    text(field(field(line, "args"), "name"), track->name, sizeof track->name);
}

static bool take_line(struct timeline *t, const char *line)
{
    bool ours = (unsigned)number(line, "pid") == t->pid;
    if (strstr(line, "\"name\":\"launch\"") && (unsigned)number(line, "launch") == t->launch) {
        snprintf(t->summary, sizeof t->summary, "%s", field(line, "args"));
    } else if (ours && strstr(line, "\"process_name\"")) {
        text(field(field(line, "args"), "name"), t->process, sizeof t->process);
        t->found = true;
    } else if (ours && strstr(line, "\"thread_name\"")) {
        name_track(t, line);
    } else if (ours && strstr(line, "\"ph\":\"X\"")) {
        return add_slice(t, line);
    }
    return true;
}

static int read_trace(struct timeline *t, const char *path)
{
    char line[LINE_ROOM];
    FILE *in = fopen(path, "r");
    bool ours = false, room = true;
    if (!in) return cli_fail("%s: %s", path, strerror(errno));
    while (room && fgets(line, sizeof line, in)) {
        ours |= strstr(line, "\"args\":{\"name\":\"hewn\"}") != NULL;
        room = take_line(t, line);
    }
    fclose(in);
    if (!room) return cli_fail("out of memory");
    if (!ours) return cli_fail("%s: no trace that HEWN_SIM_TRACE wrote", path);
    if (!t->found)
        return cli_fail("%s: holds no CTA %u of launch %u (of a launch its first 8 CTAs are kept)",
                        path, t->cta, t->launch);
    return 0;
}

/* ---- the picture ---- */

static int by_tid(const void *a, const void *b)
{
    const struct track *x = a, *y = b;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

/* Of warps that share a role one is drawn: "epilogue (warp 0) and 3 more". */
static int place_tracks(struct timeline *t)
{
    struct track *role = NULL;
    int rows = 0;
    qsort(t->tracks, t->track_count, sizeof *t->tracks, by_tid);
    for (size_t i = 0; i < t->track_count; i++) {
        struct track *track = &t->tracks[i];
        size_t stem = strcspn(track->name, "(");
        bool warp = track->tid < WARP_TRACKS && track->name[stem];
        if (warp && role && !strncmp(role->name, track->name, stem + 1)) {
            track->hidden = true;
            role->more++;
            continue;
        }
        role = warp ? track : NULL;
        track->row = rows++;
    }
    return rows;
}

static const char *colour(const struct slice *s)
{
    if (!strcmp(s->cat, "wait")) return "#d9d9d9";
    if (!strcmp(s->cat, "run")) return "#7aa6d8";
    if (!strcmp(s->cat, "issue")) return "#1f3b57";
    if (!strcmp(s->cat, "phase")) return "#e7d9a8";
    if (!strcmp(s->name, "mma")) return "#d9743a";
    if (!strcmp(s->name, "load")) return "#5aa469";
    if (!strcmp(s->name, "store")) return "#8b6bb1";
    return "#b08a5a";
}

static void put_escaped(FILE *out, const char *s)
{
    for (; *s; s++) {
        switch (*s) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        default: putc(*s, out);
        }
    }
}

static double at(const struct timeline *t, double time)
{
    return LEFT + (time - t->from) / (t->to - t->from) * (WIDTH - LEFT - 10);
}

static void draw_slice(const struct timeline *t, FILE *out, const struct slice *s, double *drawn)
{
    struct track *track = track_of((struct timeline *)t, s->tid);
    double x0, x1;
    if (!track || track->hidden || s->to < t->from || s->from > t->to) return;
    x0 = at(t, s->from < t->from ? t->from : s->from);
    x1 = at(t, s->to > t->to ? t->to : s->to);
    if (x1 < x0 + 0.6) x1 = x0 + 0.6;
    /* What would fall on the same pixel as the last of its kind adds nothing. */
    if (x1 - x0 < 0.8 && x0 < drawn[track->row] + 0.5) return;
    drawn[track->row] = x1;
    fprintf(out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"%s><title>", x0,
            TOP + track->row * ROW, x1 - x0, BAR, colour(s),
            !strcmp(s->cat, "op") || !strcmp(s->cat, "phase")
                ? " stroke=\"#fff\" stroke-width=\".4\""
                : "");
    put_escaped(out, s->name);
    fprintf(out, ", %.2f to %.2f us</title></rect>\n", s->from, s->to);
}

/* A step of 1, 2 or 5 times a power of ten that divides the picture into some ten parts. */
static double tick(double span)
{
    double step = 1e-3;
    while (span / step > 14) {
        if (span / step <= 28) return 2 * step;
        if (span / step <= 70) return 5 * step;
        step *= 10;
    }
    return step;
}

static void draw_axis(const struct timeline *t, FILE *out, int rows)
{
    double step = tick(t->to - t->from);
    long first = (long)(t->from / step);
    for (long i = first; (double)i * step <= t->to; i++) {
        double x = at(t, (double)i * step);
        if (x < LEFT) continue;
        fprintf(out,
                "<path d=\"M%.1f %d V%d\" stroke=\"#bbb\" stroke-width=\".5\"/><text x=\"%.1f\" "
                "y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%g</text>\n",
                x, TOP - 4, TOP + rows * ROW, x, TOP - 8, (double)i * step);
    }
}

static void draw_labels(const struct timeline *t, FILE *out)
{
    for (size_t i = 0; i < t->track_count; i++) {
        const struct track *track = &t->tracks[i];
        if (track->hidden) continue;
        fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 6,
                TOP + track->row * ROW + BAR - 3);
        put_escaped(out, track->name);
        if (track->more) fprintf(out, " + %u", track->more);
        fputs("</text>\n", out);
    }
}

static void draw_legend(FILE *out)
{
    static const struct slice kinds[] = {{.cat = "run", .name = "runs"},
                                         {.cat = "wait", .name = "waits"},
                                         {.cat = "issue", .name = "issues, arrives"},
                                         {.cat = "op", .name = "load"},
                                         {.cat = "op", .name = "mma"},
                                         {.cat = "op", .name = "store"},
                                         {.cat = "op", .name = "other operation"},
                                         {.cat = "phase", .name = "phase of a barrier"}};
    int x = LEFT;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        fprintf(out,
                "<rect x=\"%d\" y=\"44\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%d\" "
                "y=\"53\">%s</text>\n",
                x, colour(&kinds[i]), x + 14, kinds[i].name);
        x += 30 + 7 * (int)strlen(kinds[i].name);
    }
}

static int draw(struct timeline *t, const char *path, const char *said)
{
    int rows = place_tracks(t), height = TOP + rows * ROW + 10;
    double *drawn = calloc((size_t)rows + 1, sizeof *drawn), end = 0;
    FILE *out = drawn ? fopen(path, "w") : NULL;
    bool failed;
    if (!out) {
        free(drawn);
        return cli_fail("%s: %s", path, strerror(errno));
    }
    for (size_t i = 0; i < t->slice_count; i++)
        if (t->slices[i].to > end) end = t->slices[i].to;
    if (t->to < 0) t->to = end;
    if (t->to <= t->from) t->to = t->from + 1e-3;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
            "%d\" "
            "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"#fff\"/>\n<text x=\"10\" y=\"18\" font-size=\"14\">",
            WIDTH, height, WIDTH, height);
    put_escaped(out, t->process);
    fputs(", microseconds by the cycle model</text>\n<text x=\"10\" y=\"35\" fill=\"#333\">", out);
    put_escaped(out, said);
    fputs("</text>\n", out);
    draw_legend(out);
    draw_axis(t, out, rows);
    for (size_t i = 0; i < t->slice_count; i++) draw_slice(t, out, &t->slices[i], drawn);
    draw_labels(t, out);
    fputs("</svg>\n", out);
    free(drawn);
    failed = ferror(out) != 0;
    return fclose(out) || failed ? cli_fail("%s: %s", path, strerror(errno)) : 0;
}

/* ---- where the time goes ---- */

/* The largest share among the summary's fields that begin so; its text to `name`. */
static double largest(const char *summary, const char *start, char *name, size_t size)
{
    double most = -1;
    for (const char *p = summary; (p = strstr(p, start)); p++) {
        char key[NAME_ROOM];
        double share;
        text(p - 1, key, sizeof key);
        share = number(summary, key);
        if (share <= most) continue;
        most = share;
        snprintf(name, size, "%s", key + strlen(start));
    }
    return most;
}

static void say(const struct timeline *t, char *out, size_t size)
{
    char unit[NAME_ROOM] = "", gap[NAME_ROOM] = "";
    double busy = largest(t->summary, "busy ", unit, sizeof unit),
           idle = largest(t->summary, "idle ", gap, sizeof gap),
           tensor = number(t->summary, "busy tensor cores");
    int n = snprintf(out, size, "%.1f us on %.0f SMs: ", number(t->summary, "microseconds"),
                     number(t->summary, "sms"));
    if (busy >= 0.75)
        n += snprintf(out + n, size - (size_t)n, "bound by %s (busy %.0f %%)", unit, 100 * busy);
    else
        n += snprintf(out + n, size - (size_t)n, "nothing is busy throughout (most: %s, %.0f %%)",
                      unit, 100 * busy);
    snprintf(out + n, size - (size_t)n, "; tensor cores busy %.0f %%, idle mostly for %s (%.0f %%)",
             100 * tensor, gap, 100 * idle);
}

static void print_shares(const char *summary, const char *start, const char *title)
{
    printf("%s\n", title);
    for (const char *p = summary; (p = strstr(p, start)); p++) {
        char key[NAME_ROOM];
        text(p - 1, key, sizeof key);
        printf("  %5.1f %%  %s\n", 100 * number(summary, key), key + strlen(start));
    }
}

/* ---- what each role does with its time ---- */

enum { REASONS = 24, REASONS_SHOWN = 5 };

struct role_time {
    const char *name; /* of its first track; `stem` characters of it are the role's */
    size_t stem;
    double warps, waited;
    struct {
        char name[NAME_ROOM];
        double time;
    } reasons[REASONS];
    size_t reason_count;
};

/* A wait, under its barrier's name without the index. */
static void add_wait(struct role_time *r, const struct slice *s)
{
    const char *name = strncmp(s->name, "wait ", 5) ? s->name : s->name + 5;
    size_t length = strcspn(name, "["), i = 0;
    r->waited += s->to - s->from;
    while (i < r->reason_count &&
           (strlen(r->reasons[i].name) != length || strncmp(r->reasons[i].name, name, length)))
        i++;
    if (i == REASONS) return;
    if (i == r->reason_count) {
        snprintf(r->reasons[i].name, NAME_ROOM, "%.*s", (int)length, name);
        r->reasons[i].time = 0;
        r->reason_count++;
    }
    r->reasons[i].time += s->to - s->from;
}

static void print_role(struct role_time *r, double span)
{
    double all = r->warps * span;
    printf("  %-12.*s waits %5.1f %%", (int)r->stem, r->name, 100 * r->waited / all);
    for (int shown = 0; shown < REASONS_SHOWN; shown++) {
        size_t most = 0;
        for (size_t i = 1; i < r->reason_count; i++)
            if (r->reasons[i].time > r->reasons[most].time) most = i;
        if (!r->reason_count || r->reasons[most].time < 0.001 * all) break;
        printf("%s %s %.1f %%", shown ? "," : ":", r->reasons[most].name,
               100 * r->reasons[most].time / all);
        r->reasons[most].time = 0;
    }
    printf("\n");
}

/* Tracks of one role follow each other. */
static void print_roles(const struct timeline *t)
{
    double from = 0, to = 0;
    for (size_t i = 0; i < t->slice_count; i++) {
        if (i == 0 || t->slices[i].from < from) from = t->slices[i].from;
        if (i == 0 || t->slices[i].to > to) to = t->slices[i].to;
    }
    if (to <= from) return;
    printf("roles of this CTA, of its time:\n");
    for (size_t i = 0; i < t->track_count;) {
        const struct track *first = &t->tracks[i];
        struct role_time r = {.name = first->name, .stem = strcspn(first->name, "(")};
        while (r.stem && first->name[r.stem - 1] == ' ') r.stem--;
        for (; i < t->track_count && !strncmp(t->tracks[i].name, first->name, r.stem + 1); i++) {
            if (t->tracks[i].tid >= WARP_TRACKS) continue;
            r.warps++;
            for (size_t k = 0; k < t->slice_count; k++)
                if (t->slices[k].tid == t->tracks[i].tid && !strcmp(t->slices[k].cat, "wait"))
                    add_wait(&r, &t->slices[k]);
        }
        if (r.warps > 0) print_role(&r, to - from);
    }
}

/* ---- the command ---- */

static bool whole(const char *given, unsigned *value)
{
    char *end;
    unsigned long n = strtoul(given, &end, 10);
    *value = (unsigned)n;
    return *given && !*end && n < 1000000;
}

static int parse(int argc, char **argv, struct timeline *t, const char **in, const char **out)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *end = NULL;
        if (argv[i][0] != '-' && !*in) {
            *in = argv[i];
        } else if (!strcmp(argv[i], "-o") && value) {
            *out = argv[++i];
        } else if (!strcmp(argv[i], "--launch") && value && whole(value, &t->launch)) {
            i++;
        } else if (!strcmp(argv[i], "--cta") && value && whole(value, &t->cta)) {
            i++;
        } else if (!strcmp(argv[i], "--from") && value && (t->from = strtod(value, &end)) >= 0 &&
                   end != value && !*end) {
            i++;
        } else if (!strcmp(argv[i], "--to") && value && (t->to = strtod(value, &end)) > 0 &&
                   end != value && !*end) {
            i++;
        } else {
            return cli_unknown("timeline", argv[i]);
        }
    }
    if (!*in) return cli_usage("timeline", "no trace given");
    if (t->to >= 0 && t->to <= t->from)
        return cli_usage("timeline", "--to %g: must be greater than --from %g", t->to, t->from);
    return 0;
}

int cli_timeline(int argc, char **argv)
{
    struct timeline t = {.launch = 1, .to = -1};
    const char *in = NULL, *out = NULL;
    char said[512];
    int rc = parse(argc, argv, &t, &in, &out);
    if (rc) return rc;
    t.pid = t.launch * 1000 + t.cta;
    rc = read_trace(&t, in);
    if (!rc) {
        say(&t, said, sizeof said);
        printf("%s\n%s\n", t.process, said);
        print_shares(t.summary, "busy ", "busy, of the launch's time:");
        print_shares(t.summary, "idle ", "tensor cores idle, for:");
        qsort(t.tracks, t.track_count, sizeof *t.tracks, by_tid);
        print_roles(&t);
        if (out) rc = draw(&t, out, said);
    }
    free(t.slices);
    return rc;
}
