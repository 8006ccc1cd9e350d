/*
 * The parts of the library that `hewn watch` puts before a program's driver:
 *
 *   hook.c    stands before the driver's functions, however the program finds them
 *   load.c    a module's image becomes a watched one where that changes nothing else
 *   rewrite.c, snippet.c   the text
 *   tables.c  where records are left
 *   thread.c  reads the tables, and finds that nothing moves
 *   tell.c    says who waits for what
 */
#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

#include "rewrite.h"
#include "table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- hook.c ---- */

struct driver_calls {
#define CALL(field, name, parameters) int(*field) parameters;
#include "hooks.def"
};

/* The driver's functions; a field is NULL where the driver has none. NULL: there is no driver. */
const struct driver_calls *driver_calls(void);

/* "hewn watch: …" on stderr. */
void watch_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One line for the file of HEWN_WATCH_REPORT. */
void watch_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- load.c ---- */

/* How an image is given to the driver, and what came of it. */
struct loader {
    int (*load)(const struct loader *l, const void *image, void **out);
    void (*unload)(const struct loader *l, void *loaded);
    int (*find)(const struct loader *l, void *loaded, const char *kernel, void **out);
    int (*attribute)(const struct loader *l, int *value, int attribute, void *kernel);
    const void *arguments; /* of the function that stands behind it */
    int device;
};

/* Loads the image, watched if that is possible. The driver's result. */
int load_watched(const struct loader *l, const void *image, void **out);

/* The watched text for an image that is linked with others, to be freed; NULL: link it as it is. */
char *link_watched(const void *image, size_t size, const char *name, size_t *length);

/* A module that is watched. It stays when the program unloads it: its records may still be read. */
struct watched_module {
    struct watched_module *next;
    struct watch_result result; /* its sites are first_site … */
    uint32_t first_site;
    char *text; /* as the program gave it */
};

/* The site of that number and its module, or NULL. */
const struct watch_site *watched_site(uint32_t number, const struct watched_module **module);

/* ---- tables.c ---- */

enum { WATCH_TABLES = 9 }; /* the host's, and one each of eight contexts */

/* Addresses on the device for the current context. False: they cannot be had. The first call starts the thread. */
bool watch_addresses_of(struct watch_addresses *out);

/* The slots of a table, read anew; NULL: there are none. */
volatile struct watch_record *watch_slots(uint32_t table);
/* Whether waits that poll end their kernel. */
void watch_stop(bool yes);
/* Clears all slots. */
void watch_clear(void);

/* ---- thread.c ---- */

/* Starts the thread that reads the tables. */
bool watch_start(void);

/* ---- tell.c ---- */

/* A record that stays. */
struct waiting {
    struct watch_record record;
    double since; /* seconds */
};

/* Tells a hang on stderr and in the report. */
void tell_hang(const struct waiting *waits, uint32_t count, double seconds);

#endif
