/*
 * Several PTX texts as one, as the linker joins them: what one declares extern, another may define; names
 * without a linkage belong to their own text and are changed where two texts have the same.
 */
#ifndef PTX_JOIN_H
#define PTX_JOIN_H

#include <stddef.h>

enum join_status { JOIN_OK = 0, JOIN_NO_MEMORY = -1, JOIN_DUPLICATE = -2, JOIN_UNDEFINED = -3 };

/*
 * A text in *out, to be freed, with the newest .version and the .target of the newest architecture. With
 * `complete` every extern name must be defined, but for those that the system provides. Otherwise *out is NULL
 * and `message` says what is wrong: the name, and the inputs by their names.
 */
enum join_status ptx_join(const char *const *texts, const char *const *names, size_t count,
                          int complete, char **out, char *message, size_t room);

#endif
