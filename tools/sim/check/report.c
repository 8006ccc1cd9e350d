/*
 * A launch's report: findings folded, ordered and written, as JSON lines for programs and as text for
 * people. What it says does not depend on which host thread was first.
 */
#include "check/report.h"

#include "check/suppress.h"
#include "ptx/demangle.h"
#include "ptx/module.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line with idioms, of whatever names: it counts once. */
struct idiom_line {
    const char *file;
    uint32_t line;
};

struct report {
    struct finding_sink sink; /* first */
    pthread_mutex_t lock;
    char *kernel;
    uint64_t number;
    struct finding *findings;
    size_t count, capacity;
    bool truncated;              /* memory ran out: some finding is missing */
    enum sampled_reason sampled; /* SAMPLED_REASON_COUNT: proved */
    const char *sampled_file;
    uint32_t sampled_line;
    uint64_t orders; /* that were explored; 0: nobody tried */
    uint64_t orders_left;
    bool all_orders;
    char *replay;              /* "LAUNCH:SCHEDULE" of an order that went wrong; NULL: none */
    struct idiom_line *idioms; /* ascending by place */
    uint32_t idiom_count, idiom_capacity;
};

static const char *const kind_texts[] = {
#define X(name, text, severity, meaning) text,
    FINDING_KINDS(X)
#undef X
};

static const char *const cause_texts[] = {
#define X(name, text, meaning) text,
    FINDING_CAUSES(X)
#undef X
};

static const char *const sampled_texts[] = {
#define X(name, text) text,
    SAMPLED_REASONS(X)
#undef X
};

static const char *const severity_texts[] = {"error", "warning", "advice"};
static const char *const verdict_texts[] = {"clean", "review", "incomplete", "error"};

const char *finding_kind_text(enum finding_kind kind)
{
    return kind_texts[kind];
}

const char *finding_cause_text(enum finding_cause cause)
{
    return cause_texts[cause];
}

static void sink_add(struct finding_sink *s, const struct finding *f)
{
    report_add((struct report *)s, f);
}

static void sink_idiom(struct finding_sink *s, enum idiom idiom, const char *file, uint32_t line)
{
    (void)idiom;
    report_idiom((struct report *)s, file, line);
}

struct report *report_new(const char *kernel, uint64_t number)
{
    struct report *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->kernel = strdup(kernel);
    if (!r->kernel || pthread_mutex_init(&r->lock, NULL)) {
        free(r->kernel);
        free(r);
        return NULL;
    }
    r->sink.add = sink_add;
    r->sink.idiom = sink_idiom;
    r->number = number;
    r->sampled = SAMPLED_REASON_COUNT;
    r->sampled_file = "";
    return r;
}

struct finding_sink *report_sink(struct report *r)
{
    return &r->sink;
}

/* ---- collecting ---- */

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_finding(const struct finding *a, const struct finding *b)
{
    return a->kind == b->kind && a->cause == b->cause && a->severity == b->severity &&
           a->line == b->line && same_text(a->file, b->file) && strcmp(a->object, b->object) == 0;
}

static int by_order(const void *pa, const void *pb)
{
    const struct finding *a = pa, *b = pb;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/*
 * Arrivals that are too many complete a phase too early, and make races of what those touch who have waited for it;
 * races on what decides nothing make no arrivals. A named barrier of two roles lets the wrong warps go on. Columns are read unwritten where the write is in no order with the
 * read. True: `f` is such a cause of `first`.
 */
static bool causes(const struct finding *f, const struct finding *first)
{
    if (f->group != first->group) return false;
    if (first->kind == FIND_RACE || first->kind == FIND_ASYNC_REUSE)
        return (f->kind == FIND_BARRIER_ID && f->severity == SEV_ERROR) ||
               (f->kind == FIND_MBARRIER_OVERRUN && first->behind && f->behind == first->behind);
    if (first->kind != FIND_TMEM_UNINIT || f->kind != FIND_TMEM_RACE) return false;
    return f->line == first->line || (f->related_count && f->related[0].line == first->line);
}

static void put_cause_first(struct report *r)
{
    struct finding cause;
    size_t i = 1;
    while (i < r->count && !causes(&r->findings[i], &r->findings[0])) i++;
    if (i >= r->count) return;
    cause = r->findings[i];
    memmove(&r->findings[1], &r->findings[0], i * sizeof cause);
    r->findings[0] = cause;
}

static bool reserve(struct report *r)
{
    size_t capacity = r->capacity ? 2 * r->capacity : 8;
    struct finding *grown;
    if (r->count < r->capacity) return true;
    grown = realloc(r->findings, capacity * sizeof *grown);
    if (!grown) return false;
    r->findings = grown;
    r->capacity = capacity;
    return true;
}

void report_add(struct report *r, const struct finding *f)
{
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->count; i++) {
        struct finding *old = &r->findings[i];
        uint32_t repeats = old->repeats + 1 + f->repeats;
        if (!same_finding(old, f)) continue;
        /* The first in order stands for all, whichever came first in time. */
        if (by_order(f, old) < 0) *old = *f;
        old->repeats = repeats;
        pthread_mutex_unlock(&r->lock);
        return;
    }
    if (reserve(r))
        r->findings[r->count++] = *f;
    else
        r->truncated = true;
    pthread_mutex_unlock(&r->lock);
}

void report_sampled(struct report *r, enum sampled_reason reason, const char *file, uint32_t line)
{
    int names;
    if (!file) file = "";
    pthread_mutex_lock(&r->lock);
    names = strcmp(file, r->sampled_file);
    if (reason < r->sampled || (reason == r->sampled && names < 0) ||
        (reason == r->sampled && !names && line < r->sampled_line)) {
        r->sampled = reason;
        r->sampled_file = file;
        r->sampled_line = line;
    }
    pthread_mutex_unlock(&r->lock);
}

/* The place of that line among those that are there, ascending. */
static uint32_t idiom_place(const struct report *r, const char *file, uint32_t line)
{
    uint32_t low = 0, high = r->idiom_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct idiom_line *l = &r->idioms[middle];
        if (l->line < line || (l->line == line && strcmp(l->file, file) < 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void idiom_add(struct report *r, const char *file, uint32_t line)
{
    const uint32_t at = idiom_place(r, file, line);
    if (at < r->idiom_count && r->idioms[at].line == line && !strcmp(r->idioms[at].file, file))
        return;
    if (r->idiom_count == r->idiom_capacity) {
        const uint32_t capacity = r->idiom_capacity ? 2 * r->idiom_capacity : 8;
        struct idiom_line *grown = realloc(r->idioms, capacity * sizeof *grown);
        if (!grown) return;
        r->idioms = grown;
        r->idiom_capacity = capacity;
    }
    memmove(&r->idioms[at + 1], &r->idioms[at], (r->idiom_count - at) * sizeof *r->idioms);
    r->idioms[at] = (struct idiom_line){.file = file, .line = line};
    r->idiom_count++;
}

void report_idiom(struct report *r, const char *file, uint32_t line)
{
    pthread_mutex_lock(&r->lock);
    idiom_add(r, file ? file : "", line);
    pthread_mutex_unlock(&r->lock);
}

static enum verdict judge(const struct report *r)
{
    enum verdict v = r->truncated ? VERDICT_INCOMPLETE : VERDICT_CLEAN;
    for (size_t i = 0; i < r->count; i++) {
        const struct finding *f = &r->findings[i];
        enum verdict one = VERDICT_CLEAN;
        if (f->suppressed) continue;
        if (f->kind == FIND_UNSUPPORTED)
            one = VERDICT_INCOMPLETE;
        else if (f->severity == SEV_ERROR)
            one = VERDICT_ERROR;
        else if (f->severity == SEV_WARNING)
            one = VERDICT_REVIEW;
        if (one > v) v = one;
    }
    return v;
}

/* ---- text that grows ---- */

struct text {
    char *bytes;
    size_t length, capacity;
    bool failed;
};

static void put(struct text *t, const char *bytes, size_t length)
{
    if (t->failed || !length) return;
    if (!t->bytes || t->length + length > t->capacity) {
        size_t capacity = 2 * t->capacity + length + 1024;
        char *grown = realloc(t->bytes, capacity);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->bytes = grown;
        t->capacity = capacity;
    }
    memcpy(t->bytes + t->length, bytes, length);
    t->length += length;
}

static void put_text(struct text *t, const char *s)
{
    put(t, s, strlen(s));
}

__attribute__((format(printf, 2, 3))) static void putf(struct text *t, const char *format, ...)
{
    char line[512];
    va_list args;
    int n;
    va_start(args, format);
    n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n > 0) put(t, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* Bytes of the well-formed UTF-8 sequence at `s`, 0 when there is none. */
static size_t utf8_length(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (s[0] > 0xF4) return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
    }
    /* Overlong forms, surrogates, beyond U+10FFFF. */
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
        (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F)) {
        return 0;
    }
    return n;
}

static void put_json(struct text *t, const char *s)
{
    const unsigned char *p = (const unsigned char *)(s ? s : "");
    put_text(t, "\"");
    while (*p) {
        size_t n = utf8_length(p);
        if (n == 0) {
            put_text(t, "\\ufffd");
            n = 1;
        } else if (*p == '"' || *p == '\\') {
            putf(t, "\\%c", *p);
        } else if (*p < 0x20) {
            putf(t, "\\u%04x", *p);
        } else {
            put(t, (const char *)p, n);
        }
        p += n;
    }
    put_text(t, "\"");
}

static void put_field(struct text *t, const char *name, const char *value)
{
    putf(t, ",\"%s\":", name);
    put_json(t, value);
}

/* ---- the two forms ---- */

static void put_finding_json(struct text *t, const struct report *r, const struct finding *f)
{
    putf(t, "{\"severity\":\"%s\",\"kind\":\"%s\"", severity_texts[f->severity],
         kind_texts[f->kind]);
    put_field(t, "cause", cause_texts[f->cause]);
    put_field(t, "kernel", f->kernel ? f->kernel : r->kernel);
    put_field(t, "file", f->file);
    putf(t, ",\"line\":%u,\"launch\":%llu,\"cta\":[%u,%u,%u],\"warp\":%d,\"lane\":%d", f->line,
         (unsigned long long)r->number, f->cta[0], f->cta[1], f->cta[2], f->warp, f->lane);
    put_field(t, "instr", f->instr);
    put_field(t, "object", f->object);
    put_field(t, "message", f->message);
    put_text(t, ",\"related\":[");
    for (uint32_t i = 0; i < f->related_count; i++) {
        put_text(t, i ? ",{\"file\":" : "{\"file\":");
        put_json(t, f->related[i].file);
        putf(t, ",\"line\":%u", f->related[i].line);
        put_field(t, "note", f->related[i].note);
        put_text(t, "}");
    }
    for (const struct ptx_loc *l = f->loc ? f->loc->inlined_at : NULL; l; l = l->inlined_at) {
        put_text(t, l == f->loc->inlined_at && !f->related_count ? "{\"file\":" : ",{\"file\":");
        put_json(t, l->file);
        putf(t, ",\"line\":%u,\"note\":\"inlined here\"}", l->line);
    }
    putf(t, "],\"repeats\":%u,\"ptx_line\":%u", f->repeats, f->ptx_line);
    if (f->suppressed) put_field(t, "suppressed", f->suppressed);
    put_text(t, "}\n");
}

static void put_place(struct text *t, const char *file, uint32_t line)
{
    if (file && *file) {
        put_text(t, file);
        putf(t, ":%u: ", line);
    }
}

static void put_finding_text(struct text *t, const struct report *r, const struct finding *f)
{
    char name[DEMANGLED_BYTES];
    put_place(t, f->file, f->line);
    putf(t, "%s: %s", severity_texts[f->severity], kind_texts[f->kind]);
    if (f->cause != CAUSE_NONE) putf(t, " (%s)", cause_texts[f->cause]);
    if (*f->object) putf(t, ": %s", f->object);
    put_text(t, "\n    ");
    put_text(t, f->message);
    put_text(t, "\n    in ");
    put_text(t, demangle(f->kernel ? f->kernel : r->kernel, name, sizeof name));
    putf(t, ", launch %llu", (unsigned long long)r->number);
    if (f->warp >= 0) {
        putf(t, ", CTA (%u,%u,%u), warp %d", f->cta[0], f->cta[1], f->cta[2], f->warp);
    }
    if (f->lane >= 0) putf(t, ", lane %d", f->lane);
    if (f->repeats) putf(t, "; and %u more like it", f->repeats);
    put_text(t, "\n");
    if (f->instr && *f->instr) {
        put_text(t, "    at ");
        put_text(t, f->instr);
        if (f->loc) putf(t, " (line %u of the PTX)", f->ptx_line);
        put_text(t, "\n");
    }
    for (const struct ptx_loc *l = f->loc ? f->loc->inlined_at : NULL; l; l = l->inlined_at) {
        put_text(t, "  ");
        put_place(t, l->file, l->line);
        put_text(t, "note: inlined here\n");
    }
    for (uint32_t i = 0; i < f->related_count; i++) {
        put_text(t, "  ");
        put_place(t, f->related[i].file, f->related[i].line);
        putf(t, "note: %s\n", f->related[i].note);
    }
}

/* 0, or an errno. */
static int write_all(int fd, const struct text *t)
{
    size_t done = 0;
    while (done < t->length) {
        ssize_t n = write(fd, t->bytes + done, t->length - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? errno : EIO;
        done += (size_t)n;
    }
    return 0;
}

static size_t count_suppressed(const struct report *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) n += r->findings[i].suppressed != NULL;
    return n;
}

/* "  suppressed by RULE: N findings" for each rule that names one, in the order of their first. */
static void put_suppressed(struct text *t, const struct report *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const char *rule = r->findings[i].suppressed;
        size_t n = 0;
        bool told = !rule;
        for (size_t j = 0; j < r->count && !told; j++) {
            bool same = r->findings[j].suppressed == rule;
            n += same;
            told = same && j < i;
        }
        if (told) continue;
        put_text(t, "  suppressed by ");
        put_text(t, rule);
        putf(t, ": %zu finding%s\n", n, n == 1 ? "" : "s");
    }
}

void report_explored(struct report *r, uint64_t orders, bool all, uint64_t left)
{
    r->orders = orders;
    r->all_orders = all;
    r->orders_left = left;
}

void report_replay(struct report *r, const char *schedule)
{
    const size_t room = strlen(schedule) + 24;
    r->replay = malloc(room);
    if (r->replay)
        (void)snprintf(r->replay, room, "%llu:%s", (unsigned long long)r->number, schedule);
}

/* "explored (all 12 orders)" */
static void put_orders(struct text *t, const struct report *r)
{
    putf(t, "explored (%s%llu order%s", r->all_orders ? "all " : "", (unsigned long long)r->orders,
         r->orders == 1 ? "" : "s");
    if (!r->all_orders) putf(t, ", %llu or more are left", (unsigned long long)r->orders_left);
    put_text(t, ")");
}

/* "FILE:LINE: why", of a verdict that is sampled. */
static void put_why(struct text *t, const struct report *r)
{
    put_place(t, r->sampled_file, r->sampled_line);
    put_text(t, sampled_texts[r->sampled]);
}

static void put_basis_json(struct text *t, const struct report *r)
{
    struct text why = {0};
    if (r->sampled == SAMPLED_REASON_COUNT) {
        put_text(t, ",\"basis\":\"proved\"");
        return;
    }
    if (r->orders)
        putf(t, ",\"basis\":\"explored\",\"schedules\":%llu,\"left\":%llu",
             (unsigned long long)r->orders,
             (unsigned long long)(r->all_orders ? 0 : r->orders_left + 1));
    else
        put_text(t, ",\"basis\":\"sampled\"");
    put_why(&why, r);
    put(&why, "", 1);
    if (why.failed)
        t->failed = true;
    else
        put_field(t, "why", why.bytes);
    free(why.bytes);
}

/* One write a launch, so that several processes may share the file. */
static void append_json(const struct report *r, enum verdict verdict, const char *path)
{
    struct text t = {0};
    size_t hidden = count_suppressed(r);
    int error, fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        fprintf(stderr, "hewn-sim: HEWN_SIM_REPORT: %s: %s\n", path, strerror(errno));
        return;
    }
    for (size_t i = 0; i < r->count; i++) put_finding_json(&t, r, &r->findings[i]);
    putf(&t, "{\"verdict\":\"%s\",\"kernel\":", verdict_texts[verdict]);
    put_json(&t, r->kernel);
    putf(&t, ",\"findings\":%zu", r->count - hidden);
    if (hidden) putf(&t, ",\"suppressed\":%zu", hidden);
    if (r->idiom_count) putf(&t, ",\"idioms\":%u", r->idiom_count);
    put_basis_json(&t, r);
    if (r->replay) put_field(&t, "replay", r->replay);
    put_text(&t, "}\n");
    error = t.failed ? ENOMEM : write_all(fd, &t);
    if (error) fprintf(stderr, "hewn-sim: HEWN_SIM_REPORT: %s: %s\n", path, strerror(error));
    free(t.bytes);
    close(fd);
}

/* True: this advice about this kernel was printed before. A program that launches a kernel often gets it once.
 * --advise counts launches, so what it says of each is printed. */
static bool told_before(const struct report *r, const struct finding *f)
{
    enum { TOLD_MOST = 256 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t told[TOLD_MOST];
    static uint32_t count;
    const char *const parts[] = {f->kernel ? f->kernel : r->kernel, f->file ? f->file : "",
                                 kind_texts[f->kind], f->object};
    uint64_t hash = f->line;
    bool found = false;
    if (f->severity != SEV_ADVICE || f->kind == FIND_FENCE_UNNEEDED) return false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (const char *c = parts[i];; c++) {
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
            if (!*c) break;
        }
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count && !found; i++) found = told[i] == hash;
    if (!found && count < TOLD_MOST) told[count++] = hash;
    pthread_mutex_unlock(&lock);
    return found;
}

static void print_text(const struct report *r, enum verdict verdict)
{
    struct text t = {0};
    size_t shown = r->count - count_suppressed(r), old = 0;
    char name[DEMANGLED_BYTES];
    for (size_t i = 0; i < r->count; i++) {
        if (r->findings[i].suppressed) continue;
        if (told_before(r, &r->findings[i]))
            old++;
        else
            put_finding_text(&t, r, &r->findings[i]);
    }
    if (r->count > old || r->orders) {
        put_text(&t, demangle(r->kernel, name, sizeof name));
        putf(&t, ": %s, %zu finding%s, ", verdict_texts[verdict], shown, shown == 1 ? "" : "s");
        if (r->sampled == SAMPLED_REASON_COUNT) put_text(&t, r->orders ? "proved, " : "proved");
        if (r->orders) put_orders(&t, r);
        if (r->sampled != SAMPLED_REASON_COUNT) put_text(&t, r->orders ? ": " : "sampled: ");
        if (r->sampled != SAMPLED_REASON_COUNT) put_why(&t, r);
        if (r->idiom_count)
            putf(&t, "; %u idiom%s by the letter (--pedantic)", r->idiom_count,
                 r->idiom_count == 1 ? "" : "s");
        put_text(&t, "\n");
        put_suppressed(&t, r);
        if (r->replay) {
            put_text(&t, "  to see the bad order: --replay ");
            put_text(&t, r->replay);
            put_text(&t, "\n");
        }
        if (!t.failed) (void)write_all(STDERR_FILENO, &t);
    }
    free(t.bytes);
}

bool report_basis(const struct report *r, struct report_basis *out)
{
    *out = (struct report_basis){r->sampled, r->sampled_file, r->sampled_line};
    return !r->count && !r->truncated && !r->idiom_count && !r->orders;
}

static void report_free(struct report *r)
{
    pthread_mutex_destroy(&r->lock);
    free(r->idioms);
    free(r->replay);
    free(r->findings);
    free(r->kernel);
    free(r);
}

bool report_holds(const struct report *r)
{
    const enum verdict verdict = judge(r);
    return r->sampled == SAMPLED_REASON_COUNT && verdict != VERDICT_ERROR &&
           verdict != VERDICT_INCOMPLETE;
}

static bool has_as_often(const struct report *r, const struct finding *f)
{
    for (size_t i = 0; i < r->count; i++)
        if (same_finding(&r->findings[i], f)) return r->findings[i].repeats >= f->repeats;
    return false;
}

bool report_adds(const struct report *r, const struct report *to)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->findings[i].severity != SEV_ADVICE && !has_as_often(to, &r->findings[i]))
            return true;
    for (uint32_t i = 0; i < r->idiom_count; i++) {
        const struct idiom_line *l = &r->idioms[i];
        const uint32_t at = idiom_place(to, l->file, l->line);
        if (at == to->idiom_count || to->idioms[at].line != l->line ||
            strcmp(to->idioms[at].file, l->file) != 0)
            return true;
    }
    return false;
}

void report_drop(struct report *r)
{
    if (r) report_free(r);
}

enum verdict report_end(struct report *r)
{
    const char *path = getenv("HEWN_SIM_REPORT"), *quiet = getenv("HEWN_SIM_QUIET");
    enum verdict verdict;
    struct suppress rules = {NULL, 0};
    char why[320];
    if (r->count && !suppress_read(&rules, why, sizeof why))
        fprintf(stderr, "hewn-sim: HEWN_SIM_SUPPRESS: %s\n", why);
    for (size_t i = 0; i < r->count; i++)
        r->findings[i].suppressed = suppress_match(&rules, &r->findings[i]);
    verdict = judge(r);
    if (verdict == VERDICT_INCOMPLETE) report_sampled(r, SAMPLED_INCOMPLETE, NULL, 0);
    /* That phases or generations depend on the order is itself shown for every order: an error stands. */
    if (verdict == VERDICT_ERROR &&
        (r->sampled == SAMPLED_PHASES || r->sampled == SAMPLED_GENERATIONS))
        r->sampled = SAMPLED_REASON_COUNT;
    if (r->count) qsort(r->findings, r->count, sizeof *r->findings, by_order);
    put_cause_first(r);
    if (path && *path) append_json(r, verdict, path);
    if (!quiet || strcmp(quiet, "1") != 0) print_text(r, verdict);
    suppress_free(&rules);
    report_free(r);
    return verdict;
}
