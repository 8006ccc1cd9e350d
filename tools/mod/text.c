/* Whole files in and out, with errors that name the file. */
#include "mod.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int complain(const char *path, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: %s: ", program_invocation_short_name, path);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return -1;
}

int text_read(struct text *text, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t room = 1U << 16, got;

    text->data = NULL;
    text->size = 0;
    if (!file) return complain(path, "%s", strerror(errno));
    do {
        char *more = realloc(text->data, text->size + room + 1);
        if (!more) {
            fclose(file);
            text_free(text);
            return complain(path, "out of memory");
        }
        text->data = more;
        got = fread(text->data + text->size, 1, room, file);
        text->size += got;
        text->data[text->size] = '\0';
        room = text->size;
    } while (got != 0 && room != 0);
    if (ferror(file)) {
        fclose(file);
        text_free(text);
        return complain(path, "cannot be read");
    }
    fclose(file);
    return 0;
}

void text_free(struct text *text)
{
    free(text->data);
    text->data = NULL;
    text->size = 0;
}

FILE *text_create(const char *path)
{
    FILE *file = fopen(path, "wb");

    if (!file) complain(path, "%s", strerror(errno));
    return file;
}

int text_close(FILE *file, const char *path)
{
    int bad = ferror(file);

    if (fclose(file) != 0 || bad) return complain(path, "cannot be written");
    return 0;
}

int text_line(const char **cursor, const char **line, size_t *length)
{
    const char *end;

    if (**cursor == '\0') return 0;
    *line = *cursor;
    end = strchr(*cursor, '\n');
    *length = end ? (size_t)(end - *cursor) : strlen(*cursor);
    *cursor += *length + (end ? 1 : 0);
    return 1;
}

char *split_pair(char *pair)
{
    char *equals = strchr(pair, '=');

    if (!equals) {
        complain(pair, "is not of the form ARCH=FILE");
        return NULL;
    }
    *equals = '\0';
    return equals + 1;
}
