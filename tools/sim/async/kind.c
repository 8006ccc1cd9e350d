/* Kinds of operations, by their instructions (kind.h). */
#include "async/kind.h"

enum async_kind async_kind_of(const struct insn *in)
{
    static const struct {
        const char *start;
        enum async_kind kind;
    } names[] = {{"wgmma", ASYNC_MMA},
                 {"tcgen05.mma", ASYNC_MMA},
                 {"tcgen05.commit", ASYNC_COMMIT},
                 {"tcgen05.ld", ASYNC_TMEM_LOAD},
                 {"tcgen05.st", ASYNC_TMEM_STORE},
                 {"tcgen05.", ASYNC_TENSOR_COPY},
                 {"st.async", ASYNC_REMOTE},
                 {"red.async", ASYNC_REMOTE}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (insn_starts(in, names[i].start)) return names[i].kind;
    }
    if (insn_has_mod(in, "bulk_group")) return ASYNC_STORE;
    return insn_starts(in, "cp.async.bulk") || insn_starts(in, "cp.reduce") ? ASYNC_LOAD
                                                                            : ASYNC_CP_ASYNC;
}
