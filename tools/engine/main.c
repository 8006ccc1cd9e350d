/* hewn-engine: runs language models of the Llama family, or of DeepSeek's type, from a folder as
 * Hugging Face lays it out. */
#include "command.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 64 };

static const char usage_text[] =
    "usage: hewn-engine info FOLDER              say what the folder's model is\n"
    "       hewn-engine tokens FOLDER [TEXT]     print token ids of TEXT, or of each input line\n"
    "       hewn-engine run FOLDER [OPTION]..    continue a prompt\n"
    "       hewn-engine serve FOLDER [OPTION]..  read a JSON request on each input line, write a\n"
    "                                            JSON answer on a line when a request ends\n"
    "FOLDER holds config.json, tokenizer.json and model.safetensors, or its shards and their "
    "index.\n"
    "Options, with their defaults in parentheses:\n";

static const struct {
    const char *name, *meaning;
} options[] = {
#define COMMAND_OPTION(field, name, text) {name, text},
    COMMAND_NUMBERS(COMMAND_OPTION) COMMAND_FRACTIONS(COMMAND_OPTION)
        COMMAND_SWITCHES(COMMAND_OPTION)
#undef COMMAND_OPTION
};

static int usage(FILE *out)
{
    fputs(usage_text, out);
    fprintf(out, "  %-12s %s\n", "--prompt", "TEXT: the prompt of run");
    fprintf(out, "  %-12s %s\n", "--ids", "'1 2 3': with run --check: the prompt as token ids");
    fprintf(out, "  %-12s %s\n", "--tuning",
            "FILE: the kernels for products, as --tune wrote them");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        fprintf(out, "  %-12s %s\n", options[i].name, options[i].meaning);
    return out == stdout ? 0 : EXIT_USAGE;
}

static bool take_number(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end > text && !*end && errno == 0;
}

static bool take_fraction(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end > text && !*end && isfinite(*out);
}

/* One option and its value, where it has one; how many words that were, 0: the option is unknown or
 * its value is none. */
static int take_option(const char *name, const char *value, struct command *c)
{
    if (!strcmp(name, "--prompt") && value) {
        c->prompt = value;
        return 2;
    }
    if (!strcmp(name, "--ids") && value) {
        c->ids = value;
        return 2;
    }
    if (!strcmp(name, "--tuning") && value) {
        c->tuning = value;
        return 2;
    }
#define COMMAND_OPTION(field, option, text) \
    if (!strcmp(name, option)) return value && take_number(value, &c->field) ? 2 : 0;
    COMMAND_NUMBERS(COMMAND_OPTION)
#undef COMMAND_OPTION
#define COMMAND_OPTION(field, option, text) \
    if (!strcmp(name, option)) return value && take_fraction(value, &c->field) ? 2 : 0;
    COMMAND_FRACTIONS(COMMAND_OPTION)
#undef COMMAND_OPTION
#define COMMAND_OPTION(field, option, text) \
    if (!strcmp(name, option)) {            \
        c->field = true;                    \
        return 1;                           \
    }
    COMMAND_SWITCHES(COMMAND_OPTION)
#undef COMMAND_OPTION
    return 0;
}

int main(int argc, char **argv)
{
    struct command c = {.most = 64, .top_p = 1, .folder = argc > 2 ? argv[2] : NULL};
    if (argc == 2 && !strcmp(argv[1], "--help")) return usage(stdout);
    if (argc == 3 && !strcmp(argv[1], "info")) return command_info(c.folder);
    if ((argc == 3 || argc == 4) && !strcmp(argv[1], "tokens"))
        return command_tokens(c.folder, argc == 4 ? argv[3] : NULL);
    if (argc < 3 || (strcmp(argv[1], "run") != 0 && strcmp(argv[1], "serve") != 0))
        return usage(stderr);
    for (int i = 3, words; i < argc; i += words) {
        words = take_option(argv[i], i + 1 < argc ? argv[i + 1] : NULL, &c);
        if (!words) {
            fprintf(stderr, "hewn-engine: %s %s is no option with its value\n", argv[i],
                    i + 1 < argc ? argv[i + 1] : "");
            return usage(stderr);
        }
    }
    return !strcmp(argv[1], "run") ? command_run(&c) : command_serve(&c);
}
