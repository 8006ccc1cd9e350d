/*
 * Values that tell the fields of the public structs apart, so that two sides which were compiled against
 * different headers can agree on them by name alone. Pointers point at zeros, of which the library may
 * read a few before it refuses them.
 */
#ifndef BASELINE_PATTERN_H
#define BASELINE_PATTERN_H

#include "hewn.h"

#include <stdint.h>
#include <string.h>

enum { ANCHORS = 4096 };
extern _Alignas(16) unsigned char anchors[2 * ANCHORS];

/* Writes the value of the field called `name` ("hewn_gemm_desc.m") to `at`. */
static inline void pattern(void *at, size_t size, const char *name, int pointer)
{
    uint32_t hash = 2166136261U;
    for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619U;
    if (pointer) {
        for (size_t i = 0; i < size / sizeof(void *); i++) {
            void *to = anchors + (hash + 16 * i) % ANCHORS / 16 * 16;
            memcpy((char *)at + i * sizeof to, &to, sizeof to);
        }
        return;
    }
    for (size_t i = 0; i < size; i++) {
        hash = hash * 1664525U + 1013904223U;
        ((unsigned char *)at)[i] = (unsigned char)(hash >> 24 | 1);
    }
}

/* Sets every field of version 0.2; struct_size stays. */
#define STRUCT(s)                     \
    static inline void fill_##s(s *x) \
    {
#define FIELD(s, f, pointer) \
    if (strcmp(#f, "struct_size") != 0) pattern(&x->f, sizeof x->f, #s "." #f, pointer);
#define END(s) }
#include "fields.inc"
#undef STRUCT
#undef FIELD
#undef END

/* The first field of version 0.2 that does not have its value, or NULL. */
#define STRUCT(s)                                      \
    static inline const char *wrong_in_##s(const s *x) \
    {                                                  \
        s want = *x;                                   \
        fill_##s(&want);
#define FIELD(s, f, pointer) \
    if (memcmp(&x->f, &want.f, sizeof x->f) != 0) return #s "." #f;
#define END(s)   \
    return NULL; \
    }
#include "fields.inc"
#undef STRUCT
#undef FIELD
#undef END

#endif
