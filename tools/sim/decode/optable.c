/*
 * The opcode table: decoder, coverage list and documentation in one. Each family keeps its rows in a
 * .def file beside its handlers; a row is
 *   OP(name, modifiers, operands, min_sm, arch, flags, bind, semantics)
 * in the notation of struct op_row (decode.h). Rows with one name are tried in order.
 */
#include "decode.h"

#define OP(name, mods, args, min_sm, arch, flags, bind, doc) bind_fn bind;
#include "ops_list.h"
#undef OP

#define OP(name, mods, args, min_sm, arch, flags, bind, doc) \
    {name, mods, args, min_sm, arch, flags, bind, doc},
const struct op_row op_rows[] = {
#include "ops_list.h"
};
#undef OP

const uint32_t op_row_count = sizeof op_rows / sizeof op_rows[0];
