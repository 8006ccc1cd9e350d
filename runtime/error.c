#include "error.h"

#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STRUCT_SIZE_MAX = 4096 }; /* larger is taken for an unset field, not for a struct to come */

const char *hewn_status_name(int status)
{
#define NAME(s) \
    case s: return #s;
    switch (status) {
        NAME(HEWN_OK)
        NAME(HEWN_ERR_ARGUMENT)
        NAME(HEWN_ERR_NO_DRIVER)
        NAME(HEWN_ERR_SYMBOL)
        NAME(HEWN_ERR_DRIVER)
        NAME(HEWN_ERR_NO_DEVICE)
        NAME(HEWN_ERR_NO_MODULE)
        NAME(HEWN_ERR_IMAGE)
        NAME(HEWN_ERR_MEMORY)
        NAME(HEWN_ERR_LIMIT)
    }
#undef NAME
    return "HEWN_ERR_UNKNOWN";
}

void hewn_error_set(hewn_error *err, int status, const char *format, ...)
{
    if (!err) return;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    err->status = status;
    err->driver_code = 0;
}

void hewn_error_set_driver(hewn_error *err, const hewn_driver *driver, int code, const char *call,
                           const char *format, ...)
{
    if (!err) return;
    const char *name = NULL, *text = NULL;
    if (driver->fn.get_error_name) driver->fn.get_error_name(code, &name);
    if (driver->fn.get_error_string) driver->fn.get_error_string(code, &text);

    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(err->message, sizeof err->message, "%s: %s failed: %s (%d)%s%s", what, call,
             name ? name : "CUresult", code, text ? ": " : "", text ? text : "");
    err->status = HEWN_ERR_DRIVER;
    err->driver_code = code;
}

int hewn_check_struct(const void *object, size_t known, const char *what, hewn_error *err)
{
    if (!object) return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: must not be NULL", what);
    size_t size;
    memcpy(&size, object, sizeof size); /* struct_size is the first member of each such struct */
    if (size < known || size > STRUCT_SIZE_MAX)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "%s: struct_size %zu is not sizeof(%s), %zu", what,
                         size, what, known);
    const unsigned char *bytes = object;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return hewn_fail(err, HEWN_ERR_ARGUMENT,
                             "%s: struct_size %zu, but byte %zu is not 0 and this library knows "
                             "only the first %zu",
                             what, size, i, known);
    return HEWN_OK;
}
