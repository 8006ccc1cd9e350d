#include "golden_text.h"

#include <stdarg.h>
#include <stdio.h>

void put(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at, t->left, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= t->left) n = 0;
    t->at += n;
    t->left -= (size_t)n;
}

void put_list(struct text *t, const char *prefix, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) put(t, "%s%s%u", i ? ", " : "", prefix, i);
}

void put_copy_to_shared(struct text *t, uint32_t bytes)
{
    put(t,
        "mul.lo.u32 %%at, %%lane, 4;\n"
        "COPY:\nsetp.ge.u32 %%more, %%at, %u;\n@%%more bra COPIED;\ncvt.u64.u32 %%p, %%at;\n"
        "add.u64 %%p, %%p, %%in;\nld.global.b32 %%v, [%%p];\nadd.u32 %%s, %%base, %%at;\n"
        "st.shared.b32 [%%s], %%v;\nadd.u32 %%at, %%at, 512;\nbra COPY;\nCOPIED:\n",
        bytes);
}
