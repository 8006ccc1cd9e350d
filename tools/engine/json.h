/*
 * JSON as RFC 8259 has it and nothing beside it, read whole into a tree. Names of one object
 * differ, strings are UTF-8, and nesting is at most JSON_DEPTH deep.
 */
#ifndef ENGINE_JSON_H
#define ENGINE_JSON_H

#include "problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH = 64 };

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_type type;
    bool truth;            /* of a JSON_BOOL */
    double number;         /* of a JSON_NUMBER */
    const char *text;      /* of a JSON_STRING, decoded, a NUL behind it */
    size_t length;         /* bytes of text; elements of an array or object */
    const struct json *in; /* the first element */
    const struct json *next;
    const char *name; /* of an object's element, a NUL behind it */
    size_t name_length;
};

struct json_document;

/* Reads `length` bytes; `what` names them in messages. NULL after a message. */
struct json_document *json_read(const char *text, size_t length, const char *what,
                                struct problem *p);
struct json_document *json_read_file(const char *path, struct problem *p);
void json_free(struct json_document *d);
const struct json *json_root(const struct json_document *d);

/* An object's element; NULL where it has none, or `object` is NULL or no object. */
const struct json *json_get(const struct json *object, const char *name);
bool json_is(const struct json *value, const char *text); /* a string that equals `text` */
/* A whole number of at most 2^53 in size; false where `value` is none. */
bool json_whole(const struct json *value, int64_t *out);
const char *json_type_name(const struct json *value); /* "a number"; of NULL: "absent" */

#endif
