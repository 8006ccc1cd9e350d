#include "structs.h"

#include "error.h"

#include <string.h>

enum {
    STRUCT_SIZE_MAX = 4096
}; /* hewn.h: a larger struct_size is taken for one that was not set */

#define END_OF(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

static const struct {
    const char *name;
    size_t least; /* bytes in version 0.2 */
    size_t known; /* bytes today */
} structs[] = {
#define X(type, last) {#type, END_OF(type, last), sizeof(type)},
    HEWN_STRUCTS(X)
#undef X
};

#define X(type, last)                                                                     \
    _Static_assert(offsetof(type, struct_size) == 0 && sizeof(type) <= STRUCT_SIZE_MAX && \
                       END_OF(type, last) % _Alignof(type) == 0,                          \
                   #type ": struct_size comes first, and no padding at the end");
HEWN_STRUCTS(X)
#undef X

/* The caller's struct_size, the first member of each such struct; 0 after a failure. */
static size_t size_of(enum hewn_struct type, const void *object, hewn_error *err)
{
    const char *name = structs[type].name;
    size_t size = 0;
    if (!object) {
        hewn_error_set(err, HEWN_ERR_ARGUMENT, "%s: must not be NULL", name);
        return 0;
    }
    memcpy(&size, object, sizeof size);
    if (size >= structs[type].least && size <= STRUCT_SIZE_MAX) return size;
    hewn_error_set(err, HEWN_ERR_ARGUMENT,
                   "%s: struct_size %zu is not in %zu..%d: set it to sizeof(%s)", name, size,
                   structs[type].least, STRUCT_SIZE_MAX, name);
    return 0;
}

int hewn_struct_take(enum hewn_struct type, const void *from, void *to, hewn_error *err)
{
    size_t known = structs[type].known, size = 0;
    if (from) {
        memcpy(&size, from, sizeof size);
        if (size == known) { /* the caller's version is this one; runs take their arguments here */
            memcpy(to, from, known);
            return HEWN_OK;
        }
    }
    size = size_of(type, from, err);
    if (!size) return HEWN_ERR_ARGUMENT;
    const unsigned char *bytes = from;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "%s: byte %zu is not 0, but this library (%d.%d.%d) knows only the "
                             "first %zu bytes: a newer one is needed",
                             structs[type].name, i, HEWN_VERSION_MAJOR, HEWN_VERSION_MINOR,
                             HEWN_VERSION_PATCH, known);
    size_t taken = size < known ? size : known;
    memcpy(to, from, taken);
    memset((unsigned char *)to + taken, 0, known - taken);
    memcpy(to, &known, sizeof known);
    return HEWN_OK;
}

int hewn_struct_give(enum hewn_struct type, const void *from, void *out, hewn_error *err)
{
    size_t known = structs[type].known, size = size_of(type, out, err);
    if (!size) return HEWN_ERR_ARGUMENT;
    size_t given = size < known ? size : known;
    memcpy(out, from, given);
    memset((unsigned char *)out + given, 0, size - given);
    memcpy(out, &size, sizeof size);
    return HEWN_OK;
}
