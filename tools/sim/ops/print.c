/*
 * What device code prints. Arguments lie one after the other in a buffer, each aligned to its size:
 * 4 bytes for int and char, 8 for long, pointers and double. Text stays in the group, in the order in
 * which its lanes called, until the launch is over.
 */
#include "ops/print.h"
#include "machine/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX = 1 << 16, CONVERSION_MAX = 64 };

static bool append(struct group *g, const char *text, size_t length)
{
    if (g->printed_bytes + length > g->printed_capacity) {
        size_t capacity = 2 * (g->printed_bytes + length) + 1024;
        char *wider = realloc(g->printed, capacity);
        if (!wider) return false;
        g->printed = wider;
        g->printed_capacity = capacity;
    }
    memcpy(g->printed + g->printed_bytes, text, length);
    g->printed_bytes += length;
    return true;
}

/* Where a lane's printing reads. */
struct source {
    struct warp *w;
    const struct insn *in;
    uint32_t lane;
    uint64_t arguments;
    bool failed;
    int32_t taken; /* arguments */
};

static char text_at(struct source *s, uint64_t address)
{
    const char *c = mem_at(s->w, s->in, s->lane, SPACE_NONE, address, 1, 1, ACCESS_READ, true);

    s->failed = s->failed || !c;
    return (char)(c ? *c : 0);
}

static uint64_t take(struct source *s, uint32_t size)
{
    uint64_t value = 0;
    const void *at;

    s->arguments = (s->arguments + size - 1) / size * size;
    at = mem_at(s->w, s->in, s->lane, SPACE_NONE, s->arguments, size, 1, ACCESS_READ, true);
    if (at)
        memcpy(&value, at, size);
    else
        s->failed = true;
    s->arguments += size;
    s->taken++;
    return value;
}

/* One conversion after its '%': flags, width and precision ('*' filled in), length, letter. */
struct conversion {
    char text[CONVERSION_MAX]; /* "%-8.3", to which a length and the letter go */
    size_t length;
    bool wide; /* 8-byte integer */
    char letter;
};

static void add_char(struct conversion *c, char ch)
{
    if (c->length + 8 < sizeof c->text) c->text[c->length++] = ch;
}

/* Reads one from *at, which follows '%'. */
static void read_conversion(struct source *s, uint64_t *at, struct conversion *c)
{
    char ch;

    *c = (struct conversion){.text = "%", .length = 1};
    for (; (ch = text_at(s, *at)) && strchr("-+ #0123456789.*", ch); ++*at) {
        char number[16];

        if (ch != '*') {
            add_char(c, ch);
            continue;
        }
        snprintf(number, sizeof number, "%d", (int)take(s, 4));
        for (const char *n = number; *n; n++) add_char(c, *n);
    }
    for (; (ch = text_at(s, *at)) && strchr("hlLqjzt", ch); ++*at)
        c->wide |= ch != 'h' && ch != 'L';
    c->letter = ch;
    if (ch) ++*at;
}

static bool print_string(struct source *s, const struct conversion *c)
{
    char format[CONVERSION_MAX + 4], *text = malloc(TEXT_MAX), *out = NULL;
    uint64_t address = take(s, 8);
    size_t n = 0;
    int length;
    bool ok;

    if (!text) return false;
    while (!s->failed && n + 1 < TEXT_MAX && (text[n] = text_at(s, address + n))) n++;
    text[n] = 0;
    snprintf(format, sizeof format, "%.*ss", (int)c->length, c->text);
    length = asprintf(&out, format, text);
    ok = length >= 0 && append(s->w->cta->group, out, (size_t)length);
    if (length >= 0) free(out);
    free(text);
    return ok;
}

static bool print_conversion(struct source *s, const struct conversion *c)
{
    char format[CONVERSION_MAX + 8], out[512];
    int length;

    if (c->letter == 's') return print_string(s, c);
    if (strchr("aAeEfFgG", c->letter)) {
        uint64_t bits = take(s, 8);
        double value;

        memcpy(&value, &bits, sizeof value);
        snprintf(format, sizeof format, "%.*s%c", (int)c->length, c->text, c->letter);
        length = snprintf(out, sizeof out, format, value);
    } else if (c->letter == 'p') {
        snprintf(format, sizeof format, "%.*sp", (int)c->length, c->text);
        length = snprintf(out, sizeof out, format, (void *)(uintptr_t)take(s, 8));
    } else if (c->wide) {
        snprintf(format, sizeof format, "%.*sll%c", (int)c->length, c->text, c->letter);
        length = snprintf(out, sizeof out, format, (long long)take(s, 8));
    } else {
        snprintf(format, sizeof format, "%.*s%c", (int)c->length, c->text, c->letter);
        length = snprintf(out, sizeof out, format, (int)take(s, 4));
    }
    if (length < 0) return false;
    if ((size_t)length >= sizeof out) length = (int)sizeof out - 1;
    return append(s->w->cta->group, out, (size_t)length);
}

bool print_lane(struct warp *w, const struct insn *in, uint32_t lane, uint64_t format,
                uint64_t arguments, int32_t *parsed)
{
    struct source s = {w, in, lane, arguments, false, 0};
    struct group *g = w->cta->group;
    bool ok = true;
    char ch;

    *parsed = -1;
    if (!format) return true;
    while (ok && (ch = text_at(&s, format))) {
        struct conversion c;

        format++;
        if (ch != '%') {
            ok = append(g, &ch, 1);
            continue;
        }
        read_conversion(&s, &format, &c);
        if (s.failed) return false;
        if (c.letter && strchr("diuoxXcsaAeEfFgGp", c.letter))
            ok = print_conversion(&s, &c);
        else if (c.letter) /* "%%", and what is no conversion: as it stands */
            ok = append(g, c.letter == '%' ? "" : c.text, c.letter == '%' ? 0 : c.length) &&
                 append(g, &c.letter, 1);
    }
    if (!ok)
        (void)sim_fault(w, in, lane, 2, FIND_OOB, CAUSE_NONE, "", "out of memory for printing");
    *parsed = s.taken;
    return ok && !s.failed;
}
