/*
 * The opcode table: decoder, coverage list and documentation in one. Each family keeps its rows in a
 * .def file; a row is
 *   OP(name, modifiers, operands, min_sm, arch, flags, traits, bind, semantics)
 * in the notation of struct op_row (decode.h), traits in that of row_traits.h. Rows with one name are
 * tried in order. `bind` names a function of the handlers' room (ops/table.c).
 */
#include "decode/decode.h"
#include "decode/row_traits.h"

#include <string.h>

#define OP(name, mods, args, min_sm, arch, flags, traits, bind, doc) \
    {name, mods, args, min_sm, arch, flags, TRAITS traits, doc},
const struct op_row op_rows[] = {
#include "decode/ops_list.h"
};
#undef OP

const uint32_t op_row_count = sizeof op_rows / sizeof op_rows[0];

/* First parts of the instructions that PTX has (ISA 9.0, "Instruction Set"; cctl by ptxas) and no row
 * begins with; every other name is none of PTX's. */
static const char *const unmodelled[] = {"alloca",   "brkpt",   "cctl",         "istypep",
                                         "multimem", "pmevent", "stackrestore", "stacksave",
                                         "suld",     "suq",     "sured",        "sust",
                                         "tex",      "tld4",    "txq"};

bool op_known(const char *mnemonic)
{
    size_t length = strlen(mnemonic);

    for (size_t i = 0; i < sizeof unmodelled / sizeof unmodelled[0]; i++)
        if (!strcmp(unmodelled[i], mnemonic)) return true;
    for (uint32_t i = 0; i < op_row_count; i++)
        if (!strncmp(op_rows[i].name, mnemonic, length) &&
            (op_rows[i].name[length] == '.' || !op_rows[i].name[length]))
            return true;
    return false;
}
