/* The attention family: every module of ptx/modules.def, each from an object file of its own. */
#include "hewn.h"

#include "../ptx/modules.def"

#define X(target, name) extern const hewn_module hewn_module_##target##_##name;
HEWN_ATTENTION_MODULES(X)
#undef X

static const hewn_module *const modules[] = {
#define X(target, name) &hewn_module_##target##_##name,
    HEWN_ATTENTION_MODULES(X)
#undef X
};

const hewn_family hewn_attention_family = {"attention", modules,
                                           sizeof modules / sizeof modules[0]};
