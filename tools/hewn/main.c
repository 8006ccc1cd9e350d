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
    cli_fail("'%s' is not a command; 'hewn help' lists the commands", command);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_commands(stderr);
        return EXIT_USAGE;
    }
    if (argc == 3 && (is_help(argv[1]) || !strcmp(argv[2], "--help"))) {
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
