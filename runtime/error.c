#include "error.h"

#include "driver.h"

#include <stdarg.h>
#include <stdio.h>

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

void hewn_error_set_null(hewn_error *err, const char *name)
{
    hewn_error_set(err, HEWN_ERR_ARGUMENT, "%s: must not be NULL", name);
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
