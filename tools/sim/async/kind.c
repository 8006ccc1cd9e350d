/* Kinds of operations, by their instructions (kind.h). */
#include "async/kind.h"

enum async_kind async_kind_of(const struct insn *in)
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
