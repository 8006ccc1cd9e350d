/*
 * Global memory across the clusters of a launch, and across two launches that may overlap.
 *
 * Each piece remembers, of every sort of access, the two lowest clusters that made it: enough to find a
 * pair if there is one, and the same whatever the order in which clusters and host threads came.
 * Clusters that can talk to one another have been compared when the accesses were made (world.h): of those
 * the record is kept for the launch behind.
 */
#ifndef SIM_LAUNCH_MEMORY_H
#define SIM_LAUNCH_MEMORY_H

#include "machine/machine.h"
#include "check/shadow.h"

struct launch_memory;
struct stored;
struct world;

enum memory_sort {
    SORT_WRITE,
    SORT_READ,
    SORT_STRONG,
    SORTS
}; /* SORT_STRONG: strong or atomic writes. A strong read is a SORT_READ that only the launch behind looks at */

/* NULL when memory is exhausted. At most `most` bytes are used for it (0: no bound). */
struct launch_memory *launch_memory_new(uint64_t most);
void launch_memory_free(struct launch_memory *m);
/* A second owner, who frees it as well. Not thread-safe. */
struct launch_memory *launch_memory_share(struct launch_memory *m);

/* A cluster's pieces. Thread-safe. */
void launch_memory_take(struct launch_memory *m, const struct shadow *s,
                        const struct kernel *kernel, uint32_t cluster);
/* Those of all clusters of a world, which has judged them. */
void launch_memory_take_world(struct launch_memory *m, const struct world *w,
                              const struct kernel *kernel);
/* The launch is over: reports what conflicts. */
void launch_memory_judge(struct launch_memory *m, const struct launch *l);

/* What a launch left behind for one that may have begun before its end: the kernel's name, and the line
 * that made a conflicting access to some of those bytes, 0 none. `strong`: the one behind makes a strong access. */
struct launch_access {
    uint64_t address, bytes;
    bool write, strong;
    const struct stored *stores; /* the constant that it writes, or NULL */
};
const char *launch_memory_kernel(const struct launch_memory *m);
/* Its kernel may have waited for other launches (constant.h, kernel_waits). */
bool launch_memory_waited(const struct launch_memory *m);
/* The first byte that it wrote, from `address` on; UINT64_MAX: none. */
uint64_t launch_memory_written(const struct launch_memory *m, uint64_t address);
/* Keeps which constants the kernel stores: two launches that store the same do not race. */
void launch_memory_constants(struct launch_memory *m, const struct kernel *kernel);
uint32_t launch_memory_line(const struct launch_memory *m, const struct launch_access *a,
                            bool *wrote);

/*
 * A launch that overlaps the one before and never executes griddepcontrol.wait may be over before that one is.
 * Who waits for it has then not waited for the other. One whose CTAs all let the next launch begin ahead of their
 * own wait may not be the only one that the next one finds running.
 */
/* Some thread of the launch has waited. Thread-safe. */
void launch_memory_waits(struct launch_memory *m);
/* Some CTA has waited before it let the next launch begin. Thread-safe. */
void launch_memory_holds(struct launch_memory *m);
/* `m` is of a launch that is over, `before` (may be NULL) of the one that it overlapped. Frees `before`, or keeps it
 * where a later launch may find it running. */
void launch_memory_behind(struct launch_memory *m, struct launch_memory *before);
/* The launches that may be running beside one behind `before`, which has waited for that one or not. *beyond: there may
 * be more, whose records are gone. */
enum { BESIDE_MOST = 4 };
uint32_t launch_memory_beside(const struct launch_memory *before, bool waited,
                              const struct launch_memory *running[BESIDE_MOST], bool *beyond);

#endif
