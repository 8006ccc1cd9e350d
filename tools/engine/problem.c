#include "problem.h"

#include <stdarg.h>
#include <stdio.h>

int problem_write(struct problem *p, const char *format, ...)
{
    va_list args;
    if (!p) return -1;
    va_start(args, format);
    vsnprintf(p->text, sizeof p->text, format, args);
    va_end(args);
    return -1;
}
