#include "ptx/module.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    uint32_t bits;
    char kind;
} types[T_COUNT] = {{"", 0, 0},
#define X(name, text, bits, kind) {text, bits, kind},
                    PTX_TYPES(X)
#undef X
};

enum ptx_type ptx_type_named(const char *text, size_t length)
{
    for (int i = 1; i < T_COUNT; i++)
        if (strlen(types[i].text) == length && !memcmp(types[i].text, text, length))
            return (enum ptx_type)i;
    return T_NONE;
}

const char *ptx_type_text(enum ptx_type type)
{
    return types[type].text;
}

uint32_t ptx_type_bits(enum ptx_type type)
{
    return types[type].bits;
}

char ptx_type_kind(enum ptx_type type)
{
    return types[type].kind;
}

void ptx_module_free(struct ptx_module *module)
{
    if (!module) return;
    arena_free(&module->arena);
    free(module);
}

const struct ptx_entry *ptx_find_entry(const struct ptx_module *module, const char *name)
{
    for (uint32_t i = 0; i < module->entry_count; i++)
        if (!strcmp(module->entries[i].name, name)) return &module->entries[i];
    return NULL;
}

const char *ptx_file(const struct ptx_module *module, struct src_pos pos)
{
    return pos.file < module->file_count ? module->files[pos.file] : "ptx input";
}

uint64_t ptx_literal_bits(const struct operand *literal, enum ptx_type type)
{
    uint64_t bits = (uint64_t)literal->imm;
    uint32_t single = (uint32_t)bits;
    bool to_single = type == T_F32 || type == T_TF32;
    double d = (double)literal->imm;
    float f;

    if (!to_single && type != T_F64) {
        if (literal->kind != OPD_F64 || ptx_type_bits(type) != 32) return bits;
        to_single = true; /* .b32 given 1.5: the single-precision pattern */
    }
    if (literal->kind == OPD_F32) {
        if (to_single) return bits;
        memcpy(&f, &single, sizeof f);
        d = f;
    } else if (literal->kind == OPD_F64) {
        if (!to_single) return bits;
        memcpy(&d, &bits, sizeof d);
    }
    if (!to_single) {
        memcpy(&bits, &d, sizeof d);
        return bits;
    }
    f = (float)d;
    memcpy(&single, &f, sizeof f);
    return single;
}
