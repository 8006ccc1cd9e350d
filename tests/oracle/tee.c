/*
 * A preloaded library for the recorder (oracle.py): each write of a report's lines, whatever file a program
 * sends them to, goes to the file HEWN_ORACLE_TEE as well. The simulator writes a launch's lines at once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int starts(const char *bytes, size_t count, const char *with)
{
    const size_t length = strlen(with);
    return count > length && !memcmp(bytes, with, length);
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    ssize_t (*next)(int, const void *, size_t);
    const char *path = getenv("HEWN_ORACLE_TEE");
    const int error = errno;
    *(void **)&next = dlsym(RTLD_NEXT, "write");
    if (path && (starts(bytes, count, "{\"severity\"") || starts(bytes, count, "{\"verdict\""))) {
        const int tee = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (tee < 0 || next(tee, bytes, count) != (ssize_t)count) abort();
        close(tee);
    }
    errno = error;
    return next(fd, bytes, count);
}
