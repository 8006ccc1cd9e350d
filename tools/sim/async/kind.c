/* Kinds of operations, by their instructions (kind.h). */
#include "async/kind.h"

static enum async_kind kind_by_name(const struct insn *in)
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

static enum async_kind kind_of(const struct insn *in)
{
    switch ((enum insn_class)in->is.class) {
    case INSN_MMA: return ASYNC_MMA;
    case INSN_TENSOR_COPY: return ASYNC_TENSOR_COPY;
    case INSN_TMEM_LOAD: return ASYNC_TMEM_LOAD;
    case INSN_TMEM_STORE: return ASYNC_TMEM_STORE;
    case INSN_REMOTE_STORE: return ASYNC_REMOTE;
    case INSN_COMMIT: return in->is.engine == ENGINE_TENSOR ? ASYNC_COMMIT : ASYNC_CP_ASYNC;
    case INSN_COPY:
    case INSN_COPY_RED:
        if (in->is.moves == MOVES_OUT) return ASYNC_STORE;
        return in->is.engine == ENGINE_BULK ? ASYNC_LOAD : ASYNC_CP_ASYNC;
    default: return ASYNC_CP_ASYNC;
    }
}

enum async_kind async_kind_of(const struct insn *in)
{
    return (enum async_kind)same_answer((int)kind_by_name(in), (int)kind_of(in));
}
