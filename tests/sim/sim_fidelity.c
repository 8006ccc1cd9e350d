/*
 * What `hewn fidelity` claims (tools/sim/decode/fidelity.def). Every row of the opcode table has a claim, every
 * claim has a row.
 *     sim_fidelity [OPTION]… FILE.ptx…
 * The files are kernels that an H200 has run (`golden --ptx` writes them): a claim that results were compared with
 * an H200's needs one that uses the row.
 */
#include "decode/decode.h"
#include "decode/fidelity.h"
#include "lib/harness.h"
#include "ops/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool *used; /* by row; NULL: no kernels were given */

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    long size = -1;

    if (f && !fseek(f, 0, SEEK_END)) size = ftell(f);
    if (size >= 0) text = calloc(1, (size_t)size + 1);
    if (text && (fseek(f, 0, SEEK_SET) || fread(text, 1, (size_t)size, f) != (size_t)size)) {
        free(text);
        text = NULL;
    }
    if (f) (void)fclose(f);
    return text;
}

/* Marks the rows of the first entry's instructions. */
static bool mark(const char *path)
{
    struct ptx_diag diag = {""};
    struct ptx_module *module = NULL;
    struct kernel *kernel = NULL;
    char *text = read_text(path);
    const bool decoded = text && !ptx_parse(text, strlen(text), &module, &diag) &&
                         !kernel_decode(module, &module->entries[0], op_binders, &kernel, &diag) &&
                         !kernel->unsupported;

    for (uint32_t i = 0; decoded && i < kernel->insn_count; i++)
        used[kernel->insns[i].row - op_rows] = true;
    kernel_free(kernel);
    ptx_module_free(module);
    free(text);
    return decoded;
}

static void check_row(uint32_t row)
{
    const struct fidelity *claim = fidelity_of(op_rows[row].name, op_rows[row].mods);

    CHECK(claim, "no claim in fidelity.def");
    if (claim)
        CHECK(!used || claim->evidence != EVIDENCE_H200 || used[row],
              "claims bits of an H200, but no recorded kernel uses it");
}

static void check_claims(void)
{
    for (uint32_t c = 0; c < fidelity_count; c++) {
        bool found = false;

        if (!test_case("claim %s %s", fidelities[c].name, fidelities[c].words)) continue;
        for (uint32_t i = 0; i < op_row_count; i++)
            found = found || fidelity_fits(&fidelities[c], op_rows[i].name, op_rows[i].mods);
        CHECK(found, "no row of the opcode table is meant");
    }
}

int main(int argc, char **argv)
{
    int options = 0;
    bool decoded = true;

    for (int i = 0; i < argc; i++) {
        if (!strstr(argv[i], ".ptx")) {
            argv[options++] = argv[i];
            continue;
        }
        if (!used) used = calloc(op_row_count, sizeof *used);
        decoded = used && mark(argv[i]) && decoded;
    }
    test_begin("sim_fidelity", options, argv);
    if (test_case("kernels")) CHECK(decoded, "a kernel is not understood");
    for (uint32_t i = 0; i < op_row_count; i++)
        if (test_case("%s %s", op_rows[i].name, op_rows[i].mods)) check_row(i);
    check_claims();
    free(used);
    return test_end();
}
