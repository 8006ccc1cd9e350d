/* hewn: the command line. Its commands and their options are told in usage.def. */
#include "cli.h"
#include "usage.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int, char **);
} commands[] = {
#define COMMAND(name, synopsis, text) {#name, cli_##name},
#include "usage.def"
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

int cli_fail(const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fputs("hewn: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return 1;
}

static void print_synopsis(FILE *to, const char *command)
{
    for (size_t i = 0; i < usage_row_count; i++)
        if (usage_rows[i].kind == USAGE_COMMAND && !strcmp(usage_rows[i].command, command))
            fprintf(to, "usage: hewn %s%s%s\n", command, *usage_rows[i].value ? " " : "",
                    usage_rows[i].value);
}

int cli_usage(const char *command, const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fprintf(stderr, "hewn %s: ", command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    print_synopsis(stderr, command);
    fprintf(stderr, "'hewn help %s' lists the options.\n", command);
    return EXIT_USAGE;
}

/* ---- what was meant ---- */

enum { LONGEST_WORD = 32, CLOSE = 2 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Characters to insert, delete, change or swap with their neighbour; LONGEST_WORD for long words. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[LONGEST_WORD][LONGEST_WORD], m = strlen(a), n = strlen(b);

    if (m >= LONGEST_WORD || n >= LONGEST_WORD) return LONGEST_WORD;
    for (size_t i = 0; i <= m; i++)
        for (size_t j = 0; j <= n; j++) {
            size_t d = i ? j ? rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]) : i : j;

            if (i && j) d = least(d, least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = least(d, rows[i - 2][j - 2] + 1);
            rows[i][j] = d;
        }
    return rows[m][n];
}

/* The command (`command` NULL) or option of a command that comes closest to `word`, or NULL. */
static const char *meant(const char *command, const char *word)
{
    const char *best = NULL;
    size_t most = CLOSE + 1;

    for (size_t i = 0; i < usage_row_count; i++) {
        const struct usage_row *r = &usage_rows[i];
        const char *name = command ? r->option : r->command;
        size_t d;

        if (command ? r->kind != USAGE_OPTION || strcmp(r->command, command)
                    : r->kind != USAGE_COMMAND)
            continue;
        d = distance(word, name);
        if (d < most && d < strlen(name)) {
            best = name;
            most = d;
        }
    }
    return best;
}

int cli_unknown(const char *command, const char *word)
{
    const char *close = meant(command, word);

    if (!close) return cli_usage(command, "'%s' is not understood", word);
    return cli_usage(command, "'%s' is not understood; did you mean %s?", word, close);
}

static void print_commands(FILE *to)
{
    fprintf(to,
            "hewn %d.%d.%d: hand-written PTX for NVIDIA tensor cores\n\nusage: hewn COMMAND "
            "[ARGUMENT]…\n\n",
            HEWN_VERSION_MAJOR, HEWN_VERSION_MINOR, HEWN_VERSION_PATCH);
    for (size_t i = 0; i < usage_row_count; i++)
        if (usage_rows[i].kind == USAGE_COMMAND)
            fprintf(to, "  %-10s %s\n", usage_rows[i].command, usage_rows[i].text);
    fprintf(
        to,
        "\n'hewn help COMMAND' lists a command's options.\n"
        "HEWN_LIBCUDA=FILE selects the driver library. Without it, and without a GPU, hewn uses\n"
        "its simulated driver (HEWN_SIM_GPU=h200|b200|b300).\n");
}

/* False: no such command. */
static bool print_help(const char *command)
{
    bool found = false;
    for (size_t i = 0; i < usage_row_count; i++) {
        const struct usage_row *r = &usage_rows[i];
        if (strcmp(r->command, command)) continue;
        if (r->kind == USAGE_COMMAND) {
            print_synopsis(stdout, command);
            printf("%s\n\n", r->text);
            found = true;
        } else if (r->kind == USAGE_OPTION) {
            printf("  %s%s%s\n      %s\n", r->option, *r->value ? " " : "", r->value, r->text);
        } else {
            printf("\n%s", r->text);
        }
    }
    return found;
}

/* Output that could not be written is a failure, whatever the command says. */
static int written(int status)
{
    bool failed = fflush(stdout) || ferror(stdout);
    return failed && !status ? cli_fail("stdout: %s", strerror(errno)) : status;
}

static bool is_help(const char *word)
{
    return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

static int unknown(const char *command)
{
    const char *close = meant(NULL, command);

    if (close)
        cli_fail("'%s' is not a command; did you mean %s? 'hewn help' lists the commands", command,
                 close);
    else
        cli_fail("'%s' is not a command; 'hewn help' lists the commands", command);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_commands(stderr);
        return EXIT_USAGE;
    }
    if (argc > 2 && (is_help(argv[1]) || !strcmp(argv[2], "--help"))) {
        const char *command = is_help(argv[1]) ? argv[2] : argv[1];
        return print_help(command) ? written(0) : unknown(command);
    }
    if (is_help(argv[1])) {
        print_commands(stdout);
        return written(0);
    }
    if (!strcmp(argv[1], "--version")) {
        printf("hewn %d.%d.%d\n", HEWN_VERSION_MAJOR, HEWN_VERSION_MINOR, HEWN_VERSION_PATCH);
        return written(0);
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, argv[1])) return written(commands[i].run(argc - 1, argv + 1));
    return unknown(argv[1]);
}
