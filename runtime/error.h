/* How every failure of the runtime is put into words. Each fills `err`, which may be NULL. */
#ifndef HEWN_RUNTIME_ERROR_H
#define HEWN_RUNTIME_ERROR_H

#include "hewn.h"

/* return hewn_fail(err, HEWN_ERR_…, format, …): the status that it was given. A macro, so that whoever
 * reads the caller alone, an analyser too, sees that the value is not 0. */
#define hewn_fail(err, status, ...) (hewn_error_set(err, status, __VA_ARGS__), (status))

/* return hewn_fail_driver(err, driver, code, call, format, …): HEWN_ERR_DRIVER, in the words
 * "<what>: <call> failed: CUDA_ERROR_… (code): text", where the formatted part says what was being
 * done and to which object. */
#define hewn_fail_driver(err, driver, code, call, ...)                                             \
    (hewn_error_set_driver(err, driver, code, call, __VA_ARGS__), HEWN_ERR_DRIVER)

__attribute__((format(printf, 3, 4))) void hewn_error_set(hewn_error *err, int status,
                                                          const char *format, ...);
__attribute__((format(printf, 5, 6))) void hewn_error_set_driver(hewn_error *err,
                                                                 const hewn_driver *driver,
                                                                 int code, const char *call,
                                                                 const char *format, ...);

/* The rule for structs that may grow: `size` is what the caller says, `known` what this library
 * knows. A larger struct is taken only if all beyond `known` is zero, for there this library
 * cannot do what is asked. `what` names the struct. */
int hewn_check_struct(const void *object, size_t known, const char *what, hewn_error *err);

#endif
