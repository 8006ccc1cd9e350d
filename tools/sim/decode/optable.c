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

static const char *const mnemonics[] = {
#define M(name) name,
#include "decode/mnemonics.def"
#undef M
};

/* Whether `name` is `start` or goes on behind it with another part. */
static bool goes_on(const char *name, const char *start)
{
    size_t length = strlen(start);

    return !strncmp(name, start, length) && (!name[length] || strchr(".:", name[length]));
}

bool op_known(const char *mnemonic)
{
    for (size_t i = 0; i < sizeof mnemonics / sizeof mnemonics[0]; i++)
        if (goes_on(mnemonics[i], mnemonic)) return true;
    return false;
}

bool op_listed(const struct op_row *row)
{
    for (size_t i = 0; i < sizeof mnemonics / sizeof mnemonics[0]; i++)
        if (goes_on(row->name, mnemonics[i])) return true;
    return false;
}

uint32_t row_results(const struct op_row *row, bool *list)
{
    uint32_t mask = 0, index = 0;
    *list = row->args[0] == '=' && row->args[1] == '{' && !strstr(row->args, " {");
    for (const char *p = row->args; *p; index++) {
        const bool dest = *p == '=';
        if (dest) mask |= 1U << index;
        for (; *p && *p != ' '; p++) {
            if (*p != '|') continue;
            index++;
            if (dest) mask |= 1U << index;
        }
        while (*p == ' ') p++;
    }
    return mask;
}

const char *op_unmodelled(uint32_t index)
{
    for (size_t i = 0; i < sizeof mnemonics / sizeof mnemonics[0]; i++) {
        uint32_t row = 0;

        while (row < op_row_count && !goes_on(op_rows[row].name, mnemonics[i])) row++;
        if (row == op_row_count && index-- == 0) return mnemonics[i];
    }
    return NULL;
}
