/* hewn: the command line. Commands are listed once, in CLI_COMMANDS (cli.h). */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int, char **);
    const char *usage, *help;
} commands[] = {
#define X(name, function, usage, help) {name, cli_##function, usage, help},
    CLI_COMMANDS(X)
#undef X
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

int cli_usage(const char *command, const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fprintf(stderr, "hewn %s: ", command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, command))
            fprintf(stderr, "\nusage: hewn %s %s\n", command, commands[i].usage);
    return EXIT_USAGE;
}

static void help(FILE *to)
{
    fprintf(to, "hewn %d.%d.%d: hand-written PTX for NVIDIA tensor cores\n\n", HEWN_VERSION_MAJOR,
            HEWN_VERSION_MINOR, HEWN_VERSION_PATCH);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  hewn %s %s\n      %s\n", commands[i].name, commands[i].usage,
                commands[i].help);
    fprintf(to, "\nHEWN_LIBCUDA=FILE chooses the driver library; without it and without a GPU the\n"
                "simulated driver is used (HEWN_SIM_GPU=h200|b200|b300).\n");
}

/* Output that could not be written is a failure, whatever the command says. */
static int written(int status)
{
    bool failed = fflush(stdout) || ferror(stdout);
    return failed && !status ? cli_fail("stdout: %s", strerror(errno)) : status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        help(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("hewn %d.%d.%d\n", HEWN_VERSION_MAJOR, HEWN_VERSION_MINOR, HEWN_VERSION_PATCH);
        return 0;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, argv[1])) return written(commands[i].run(argc - 1, argv + 1));
    cli_fail("'%s' is no command; 'hewn help' lists them", argv[1]);
    return EXIT_USAGE;
}
