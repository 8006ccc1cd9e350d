/*
 * What a case executes. The simulator tells it of a text whose statements are numbered by line markers
 * (HEWN_SIM_EXECUTED). A mutant of what no launch executes cannot be found, and one of what a few launches execute
 * needs only these.
 */
#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cover_add(struct cover *c, const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    int launch = -1;
    if (!f) return perror(path), -1;
    while (getline(&line, &capacity, f) > 0) {
        char word[16];
        unsigned number;
        if (sscanf(line, "%15s s:%u", word, &number) != 2) {
            launch += !strncmp(line, "launch ", 7);
        } else if (launch >= 0 && launch < COVER_LAUNCHES &&
                   number / COVER_STEP < (unsigned)c->statements) {
            struct cover_statement *s = &c->statement[number / COVER_STEP];
            s->instruction = true;
            if (!strcmp(word, "executed")) s->launches |= (uint64_t)1 << launch;
        }
    }
    free(line);
    fclose(f);
    return launch < 0 ? fprintf(stderr, "mutate: %s names no launch\n", path), -1 : 0;
}

uint64_t cover_launches(const struct cover *c, const struct mutant *m)
{
    uint64_t launches = 0;
    for (int i = m->first; i <= m->last; i++) launches |= c->statement[i].launches;
    return launches;
}

/* The statements of one line "//@ run: A; B; …" without the launches that are left out. */
static void write_line(FILE *out, const char *line, size_t length, uint64_t launches, int *launch)
{
    const char *end = line + length, *at = line + strlen("//@ run:");
    const char *before = "//@ run:";
    while (at < end) {
        size_t blank = strspn(at, " "), n;
        at += blank;
        n = strcspn(at, ";\n");
        if (n != 6 || strncmp(at, "launch", 6) != 0 || launches >> (*launch)++ & 1) {
            fprintf(out, "%s %.*s", before, (int)n, at);
            before = ";";
        }
        at += n + 1;
    }
    fputs(*before == ';' ? "\n" : "", out);
}

char *cover_run(const char *run, uint64_t launches)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int launch = 0;
    if (!out) return NULL;
    for (size_t n; *run; run += n) {
        n = strcspn(run, "\n") + (run[strcspn(run, "\n")] == '\n');
        if (!strncmp(run, "//@ run:", 8))
            write_line(out, run, n, launches, &launch);
        else
            fwrite(run, 1, n, out);
    }
    return fclose(out) ? NULL : text;
}

void cover_free(struct cover *c)
{
    for (int i = 0; i < c->statements; i++) free(c->statement[i].key);
    free(c->statement);
    *c = (struct cover){0};
}
