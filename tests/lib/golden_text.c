#include "golden_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

uint32_t take_digit(uint32_t *number, uint32_t count)
{
    const uint32_t d = *number % count;
    *number /= count;
    return d;
}

uint32_t list_parts(const char *list)
{
    uint32_t count = 1;
    for (; *list; list++) count += *list == '|';
    return count;
}

void list_part(const char *list, uint32_t index, char *out, size_t size)
{
    for (; index && *list; list++) index -= *list == '|';
    snprintf(out, size, "%.*s", (int)strcspn(list, "|"), list);
}
