/* How every failure of the runtime is put into words. Each fills `err`, which may be NULL. */
#ifndef HEWN_RUNTIME_ERROR_H
#define HEWN_RUNTIME_ERROR_H

#include "hewn.h"

/* return hewn_fail(err, HEWN_ERR_…, format, …): the status that it was given. A macro, so that an
 * analyser that sees only the calling function knows that the value is not 0. */
#define hewn_fail(err, status, ...) (hewn_error_set(err, status, __VA_ARGS__), (status))

/* return hewn_fail_null(err, name): HEWN_ERR_ARGUMENT, for a pointer of that name which must be given. */
#define hewn_fail_null(err, name) (hewn_error_set_null(err, name), HEWN_ERR_ARGUMENT)

/* return hewn_fail_driver(err, driver, code, call, format, …): HEWN_ERR_DRIVER, in the words
 * "<what>: <call> failed: CUDA_ERROR_… (code): text", where the formatted part says what was being
 * done and to which object. */
#define hewn_fail_driver(err, driver, code, call, ...) \
    (hewn_error_set_driver(err, driver, code, call, __VA_ARGS__), HEWN_ERR_DRIVER)

__attribute__((format(printf, 3, 4))) void hewn_error_set(hewn_error *err, int status,
                                                          const char *format, ...);
void hewn_error_set_null(hewn_error *err, const char *name);
__attribute__((format(printf, 5, 6))) void hewn_error_set_driver(hewn_error *err,
                                                                 const hewn_driver *driver,
                                                                 int code, const char *call,
                                                                 const char *format, ...);

#endif
