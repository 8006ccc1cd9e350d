/*
 * What a launch executed: HEWN_SIM_EXECUTED=FILE. A line for the launch, then one for each instruction of its kernel, in
 * the order of the text: whether a lane executed it, and where it stands. An instruction whose guard was false for every
 * lane was not executed.
 */
#include "decode/decode.h"
#include "machine/exec.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *wanted(void)
{
    const char *path = getenv("HEWN_SIM_EXECUTED");
    return path && *path ? path : NULL;
}

void executed_begin(struct launch *l)
{
    if (wanted()) l->executed = calloc(l->kernel->insn_count + 1, 1);
}

void executed_end(struct launch *l)
{
    const struct kernel *k = l->kernel;
    const char *path = wanted();
    FILE *file = l->executed && path ? fopen(path, "a") : NULL;

    pthread_mutex_lock(&lock);
    if (file) (void)fprintf(file, "launch %s\n", k->entry->name);
    for (uint32_t i = 0; file && i < k->insn_count; i++) {
        const struct ptx_insn *in = k->insns[i].src;
        if (in)
            (void)fprintf(file, "%s %s:%u %s\n", l->executed[i] ? "executed" : "never   ",
                          k->module->files[in->ptx_pos.file], in->ptx_pos.line, in->text);
    }
    if (file) (void)fclose(file);
    pthread_mutex_unlock(&lock);
    free(l->executed);
    l->executed = NULL;
}
