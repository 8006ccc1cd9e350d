/* For libFuzzer: the target is the one that the program's name ends in (`fuzzer_ptx`). */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = strrchr((*argv)[0], '_');

    (void)argc;
    for (size_t i = 0; name && i < fuzz_target_count; i++)
        if (!strcmp(fuzz_targets[i].name, name + 1)) target = &fuzz_targets[i];
    if (target) return 0;
    fprintf(stderr, "%s: no name of a target after '_'\n", (*argv)[0]);
    exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    target->run(data, size);
    return 0;
}
