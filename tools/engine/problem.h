/* One sentence about what went wrong: file, field, value, rule. */
#ifndef ENGINE_PROBLEM_H
#define ENGINE_PROBLEM_H

struct problem {
    char text[768];
};

/* Writes the sentence, where `p` is not NULL. Returns -1. */
int problem_write(struct problem *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, so that callers can return it; what reads the code alone sees that it is -1. */
static inline int problem_value(int written)
{
    (void)written;
    return -1;
}
#define problem(...) problem_value(problem_write(__VA_ARGS__))

#endif
