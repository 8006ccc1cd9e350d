/* The man page of hewn, from the rows that `hewn help` prints (tools/hewn/usage.def). */
#include "docs.h"

#include "hewn.h"
#include "usage.h"

#include <string.h>

enum { LINE = 76 };

/* One character as troff wants it; returns how many bytes it has. */
static size_t add_character(struct text *t, const char *at)
{
    if (!strncmp(at, "…", strlen("…"))) {
        text_add(t, "\\[u2026]");
        return strlen("…");
    }
    text_add(t, *at == '\\' ? "\\e" : *at == '-' ? "\\-" : "%c", *at);
    return 1;
}

static void add_escaped(struct text *t, const char *at)
{
    bool start = true;
    while (*at) {
        if (start && (*at == '.' || *at == '\'')) text_add(t, "\\&");
        start = *at == '\n';
        at += add_character(t, at);
    }
}

/* A paragraph, which troff fills: a line for each sentence, none much longer than LINE. */
static void add_filled(struct text *t, const char *at)
{
    size_t column = 0;
    while (*at) {
        const size_t word = strcspn(at, " ");
        if (column && (column + 1 + word > LINE || at[-2] == '.'))
            text_add(t, "\n"), column = 0;
        else if (column)
            text_add(t, " "), column++;
        if (!column && *at == '.') text_add(t, "\\&");
        for (const char *end = at + word; at < end; column++) at += add_character(t, at);
        at += *at == ' ';
    }
    text_add(t, "\n");
}

static void add_environment(struct text *t, const char *name, const char *initial,
                            const char *meaning)
{
    text_add(t, ".TP\n.B %s\n", name);
    add_filled(t, meaning);
    text_add(t, "Default: %s.\n", initial);
}

static void add_row(struct text *t, const struct usage_row *r)
{
    if (r->kind == USAGE_COMMAND) {
        text_add(t, ".SS hewn %s%s", r->command, *r->value ? " " : "");
        add_escaped(t, r->value);
        text_add(t, "\n");
        add_filled(t, r->text);
    } else if (r->kind == USAGE_OPTION) {
        text_add(t, ".TP\n.BI ");
        add_escaped(t, r->option);
        text_add(t, *r->value ? " \" " : "");
        add_escaped(t, r->value);
        text_add(t, *r->value ? "\"\n" : "\n");
        add_filled(t, r->text);
    } else {
        text_add(t, ".PP\n.nf\n");
        add_escaped(t, r->text);
        text_add(t, ".fi\n");
    }
}

void man_page(struct text *t)
{
    text_add(t, ".TH HEWN 1 \"\" \"hewn %d.%d.%d\" \"User Commands\"\n", HEWN_VERSION_MAJOR,
             HEWN_VERSION_MINOR, HEWN_VERSION_PATCH);
    text_add(
        t, ".SH NAME\nhewn \\- run, check and measure hand\\-written PTX for NVIDIA tensor cores\n"
           ".SH SYNOPSIS\n.B hewn\n.IR command \" [\" argument \" ...]\"\n"
           ".SH DESCRIPTION\n"
           "hewn computes matrix products and attention with kernels in PTX,\n"
           "on a GPU or on a simulated one.\n"
           "It also runs other programs on the simulated driver,\n"
           "and reports hangs, races and other faults by file and line.\n"
           ".SH COMMANDS\n");
    for (size_t i = 0; i < usage_row_count; i++) add_row(t, &usage_rows[i]);
    text_add(t, ".SH ENVIRONMENT\n");
    environment_each(t, add_environment);
    text_add(t, ".SH EXIT STATUS\n"
                "0 after success, 64 after a wrong command line, 1 after any other failure.\n"
                ".B check, worksheet\nand\n.B run\nhave more, which are described there.\n");
}
