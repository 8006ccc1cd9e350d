/* build/mod: see mod.h. */
#include "mod.h"

#include <stdlib.h>
#include <string.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    int least, most; /* arguments after the name */
    const char *usage;
};

static const struct command commands[] = {
    {"ptx", make_ptx, 5, 5, "TARGET NAME TEXT ROOT OUT"},
    {"vet", make_vet, 1, 1, "LOG"},
    {"manifest", make_manifest, 5, 64, "TARGET NAME PTX VALIDATED OUT [ARCH=LOG]..."},
    {"pack", make_pack, 5, 128, "TARGET OUT FOLDER ARCHS NAME..."},
    {"family", make_family, 2, 1024, "FAMILY OUT [TARGET/NAME]..."},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
        const struct command *c = &commands[i];
        if (strcmp(argv[1], c->name) != 0) continue;
        if (argc - 2 < c->least || argc - 2 > c->most) {
            fprintf(stderr, "usage: mod %s %s\n", c->name, c->usage);
            return EXIT_FAILURE;
        }
        return c->run(argc - 2, argv + 2) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(stderr, "%s mod %s %s\n", i == 0 ? "usage:" : "      ", commands[i].name,
                commands[i].usage);
    return EXIT_FAILURE;
}
