/* A watched module as the simulator's parser reads it: names of roles and barriers, lines, and the ways between
 * instructions. What the parser does not understand has no names, and is told by line alone. */
#ifndef WATCH_SOURCE_H
#define WATCH_SOURCE_H

#include "watch.h"

#include "decode/decode.h"
#include "decode/names.h"

struct source {
    const struct watched_module *module;
    struct ptx_module *ptx; /* NULL: not understood */
    struct kernel *kernels; /* as far as names go, one for each entry */
};

void source_open(struct source *s, const struct watched_module *module);
void source_close(struct source *s);

/* The kernel with the site's instruction, and that instruction; NULL where they are not found. */
const struct kernel *source_find(const struct source *s, const struct watch_site *site,
                                 const struct ptx_insn **insn);

/* The operand by which a wait, an arrival or mbarrier.init names its barrier; NULL: it has none. */
struct barrier_use {
    const struct ptx_insn *insn;
    const struct operand *operand;
};
struct barrier_use source_barrier(const struct ptx_insn *insn);

/* Whether both may mean one barrier: by its symbol, or by the register that a ring's base is in. */
bool source_same_barrier(const struct ptx_entry *e, const struct barrier_use *a,
                         const struct barrier_use *b);

/* Whether it may complete a phase of an mbarrier, or bring threads to a named barrier. */
bool source_is_arrival(const struct ptx_insn *insn);

/* Whether the code behind `from` may come to an instruction that `wanted` accepts, before it comes back to `from`. */
bool source_reaches(const struct ptx_entry *e, const struct ptx_insn *from,
                    bool (*wanted)(const void *user, const struct ptx_insn *insn),
                    const void *user);

#endif
