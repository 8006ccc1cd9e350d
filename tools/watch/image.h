/* What a program gives the driver to load, and the PTX text in it. */
#ifndef WATCH_IMAGE_H
#define WATCH_IMAGE_H

#include <stddef.h>

/* The PTX text of an image (text, fat binary, nvcc's wrapper of one) that a device of that compute capability
 * (90) runs, with a NUL behind it, to be freed; NULL with the reason in *why. */
char *image_ptx(const void *image, unsigned capability, const char **why);

/* A whole file with a NUL behind it, to be freed, or NULL. */
char *image_read(const char *path, size_t *length);

#endif
