/*
 * Runs one kernel of another project, compiled to PTX elsewhere, through the driver API (others.md):
 *   others FOLDER NAME   the kernel NAME of FOLDER/NAME.ptx
 *   others --list        the names
 * OTHERS_RECORD=FILE records what each launch wrote.
 */
#include "others.h"

#include <stdio.h>
#include <string.h>

static const struct problem problems[] = {
    {"fastcu_2", run_fastcu, 2},
    {"fastcu_3", run_fastcu, 3},
    {"fastcu_4", run_fastcu, 4},
    {"fastcu_5", run_fastcu, 5},
    {"fastcu_6", run_fastcu, 6},
    {"fastcu_7", run_fastcu, 7},
    {"fastcu_8", run_fastcu, 8},
    {"fastcu_9", run_fastcu, 9},
    {"fastcu_10", run_fastcu, 10},
    {"fastcu_11", run_fastcu, 11},
    {"fastcu_12", run_fastcu, 12},
    {"tk_level7", run_kittens_level, 7},
    {"tk_level8", run_kittens_level, 8},
    {"tk_bf16", run_kittens_product, HEWN_BF16},
    {"tk_fp8", run_kittens_product, HEWN_E4M3},
    {"tk_mha", run_kittens_attention, 0},
    {"deepgemm_bf16", run_deepgemm_bf16, 0},
    {"deepgemm_fp8", run_deepgemm_fp8, 0},
    {"flash3", run_flash3, 0},
    {"flash3_causal", run_flash3, 1},
    {"tk_b200_level07", run_kittens_b200, 7},
    {"tk_b200_level08", run_kittens_b200, 8},
    {"tk_b200_level09", run_kittens_b200, 9},
    {"tk_b200_bf16", run_kittens_b200, 10},
    {"learn_v3", run_learn, 3},
    {"learn_v4", run_learn, 4},
    {"learn_v5", run_learn, 5},
    {"learn_v6", run_learn, 6},
    {"learn_v7", run_learn, 7},
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static int list(void)
{
    for (int i = 0; i < PROBLEMS; i++) puts(problems[i].name);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--list")) return list();
    if (argc != 3) fatal("usage: others FOLDER NAME, or others --list");
    for (int i = 0; i < PROBLEMS; i++) {
        if (strcmp(problems[i].name, argv[2]) != 0) continue;
        device_begin(argv[1]);
        problems[i].run(&problems[i]);
        device_finish();
        return 0;
    }
    fatal("no kernel is named %s: others --list", argv[2]);
}
