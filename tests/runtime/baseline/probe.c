/*
 * Stands between the library's functions and runtime/structs.c (ld --wrap): what the library took from
 * its caller must have every field's value, and 0 where the caller's struct ends before the library's.
 * What the library gives is replaced by such values. Compiled against the library's header.
 */
#include "pattern.h"

#include "structs.h"

#include <stdio.h>
#include <stdlib.h>

int __real_hewn_struct_take(enum hewn_struct type, const void *from, void *to, hewn_error *err);
int __real_hewn_struct_give(enum hewn_struct type, const void *from, void *out, hewn_error *err);
int __wrap_hewn_struct_take(enum hewn_struct type, const void *from, void *to, hewn_error *err);
int __wrap_hewn_struct_give(enum hewn_struct type, const void *from, void *out, hewn_error *err);

/* 0: let everything pass. Else the struct that is awaited, by its number in fields.inc from 1. */
int probe_awaits;
int probe_seen;
char probe_wrong[128];

enum {
    NONE,
#define STRUCT(s) NUMBER_##s,
#define FIELD(s, f, pointer)
#define END(s)
#include "fields.inc"
#undef STRUCT
#undef FIELD
#undef END
};

static int number_of(enum hewn_struct type)
{
    switch (type) {
#define STRUCT(s)         \
    case HEWN_STRUCT_##s: \
        return NUMBER_##s;
#define FIELD(s, f, pointer)
#define END(s)
#include "fields.inc"
#undef STRUCT
#undef FIELD
#undef END
    default: return NONE; /* later than 0.2 */
    }
}

static void judge(enum hewn_struct type, const void *to, size_t callers)
{
    const char *wrong = NULL;
    size_t known = 0;
    probe_wrong[0] = '\0'; /* of several in one call, the last counts */
    switch (type) {
#define STRUCT(s)                 \
    case HEWN_STRUCT_##s:         \
        wrong = wrong_in_##s(to); \
        known = sizeof(s);        \
        break;
#define FIELD(s, f, pointer)
#define END(s)
#include "fields.inc"
#undef STRUCT
#undef FIELD
#undef END
    default: return;
    }
    if (wrong) snprintf(probe_wrong, sizeof probe_wrong, "%s has another value", wrong);
    for (size_t i = callers; i < known; i++)
        if (((const unsigned char *)to)[i])
            snprintf(probe_wrong, sizeof probe_wrong, "byte %zu, which the caller lacks, is not 0",
                     i);
}

int __wrap_hewn_struct_take(enum hewn_struct type, const void *from, void *to, hewn_error *err)
{
    int status = __real_hewn_struct_take(type, from, to, err);
    if (!probe_awaits || probe_awaits != number_of(type)) return status;
    probe_seen++;
    size_t callers = 0;
    memcpy(&callers, from, sizeof callers);
    if (!status) judge(type, to, callers);
    return status;
}

int __wrap_hewn_struct_give(enum hewn_struct type, const void *from, void *out, hewn_error *err)
{
    if (!probe_awaits || probe_awaits != number_of(type))
        return __real_hewn_struct_give(type, from, out, err);
    probe_seen++;
    switch (type) {
#define STRUCT(s)                                              \
    case HEWN_STRUCT_##s: {                                    \
        s ours;                                                \
        memset(&ours, 0xEE, sizeof ours);                      \
        fill_##s(&ours);                                       \
        return __real_hewn_struct_give(type, &ours, out, err); \
    }
#define FIELD(s, f, pointer)
#define END(s)
#include "fields.inc"
#undef STRUCT
#undef FIELD
#undef END
    default: abort();
    }
}
