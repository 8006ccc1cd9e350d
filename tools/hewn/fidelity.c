/* hewn fidelity: how close the simulator's results are to hardware's, from the opcode table. */
#include "cli.h"

#include "decode/decode.h"
#include "decode/fidelity.h"

#include <string.h>

static const char *const accuracy_text[] = {
    [ACCURACY_EXACT] = "exact",
    [ACCURACY_BOUNDED] = "bounded",
    [ACCURACY_HINT] = "no effect",
    [ACCURACY_TIME] = "simulated time",
};
static const char *const evidence_text[] = {
    [EVIDENCE_H200] = "H200",
    [EVIDENCE_WORDS] = "B200 words",
    [EVIDENCE_ISA] = "ISA",
};
enum { ACCURACIES = sizeof accuracy_text / sizeof accuracy_text[0] };

/* A line for the rows that follow one another with one name and one claim. Returns how many. */
static uint32_t print_group(uint32_t first)
{
    const struct op_row *row = &op_rows[first];
    const struct fidelity *claim = fidelity_of(row->name, row->mods);
    const char *evidence = evidence_text[claim->evidence];
    uint32_t count = 1;

    while (first + count < op_row_count && !strcmp(op_rows[first + count].name, row->name) &&
           fidelity_of(row[count].name, row[count].mods) == claim)
        count++;
    printf("%-30s %-7u %-15s ", row->name, count, accuracy_text[claim->accuracy]);
    printf(*claim->note ? "%-11s %s\n" : "%s%s\n", evidence, claim->note);
    return count;
}

static void print_all(void)
{
    uint32_t count[ACCURACIES] = {0}, by_h200 = 0, missing = 0;

    printf("%-30s %-7s %-15s %s\n", "instruction", "forms", "results", "compared with");
    for (uint32_t i = 0; i < op_row_count; i++) {
        const struct fidelity *claim = fidelity_of(op_rows[i].name, op_rows[i].mods);
        count[claim->accuracy]++;
        by_h200 += claim->evidence == EVIDENCE_H200;
    }
    for (uint32_t i = 0; i < op_row_count; i += print_group(i)) {}
    for (const char *name; (name = op_unmodelled(missing)); missing++)
        printf("%-30s %-7s not modelled\n", name, "");
    printf("%u forms:", op_row_count);
    for (uint32_t i = 0; i < ACCURACIES; i++)
        printf("%s %u %s", i ? "," : "", count[i], accuracy_text[i]);
    printf("; %u compared with an H200; %u instructions not modelled\n", by_h200, missing);
}

static void print_form(const struct op_row *row)
{
    const struct fidelity *claim = fidelity_of(row->name, row->mods);

    printf("%s%s%s\n", row->name, *row->mods ? " " : "", row->mods);
    if (*row->doc) printf("    %s\n", row->doc);
    printf("    results: %s, compared with: %s", accuracy_text[claim->accuracy],
           evidence_text[claim->evidence]);
    printf("%s%s\n", *claim->note ? "; " : "", claim->note);
}

/* The forms of the instructions of that name, or that go on behind it with a dot. False: none. */
static bool print_forms(const char *name)
{
    const size_t length = strlen(name);
    bool found = false;

    for (uint32_t i = 0; i < op_row_count; i++) {
        const struct op_row *row = &op_rows[i];
        if (strncmp(row->name, name, length) || (row->name[length] && row->name[length] != '.'))
            continue;
        found = true;
        print_form(row);
    }
    for (uint32_t i = 0; !found; i++) {
        const char *other = op_unmodelled(i);
        if (!other) break;
        if (strcmp(other, name)) continue;
        found = true;
        printf("%s\n    not modelled: a launch that contains it is refused (801)\n", name);
    }
    return found;
}

int cli_fidelity(int argc, char **argv)
{
    int status = 0;

    if (argc == 1) print_all();
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') return cli_unknown("fidelity", argv[i]);
        if (!print_forms(argv[i]))
            status = cli_fail("PTX has no instruction '%s' that the simulator knows of", argv[i]);
    }
    return status;
}
