/*
 * What a launch changed in memory, kept so that an equal launch that finds memory as that one did need not run:
 * the changes are written instead (repeat.h).
 */
#ifndef SIM_RECALL_H
#define SIM_RECALL_H

#include <stddef.h>

/* A copy of all memory that a kernel can reach. */
struct snapshot;
/* Bytes that differ from a snapshot. */
struct changes;

/* NULL where that is more than `most` bytes, or where memory is exhausted. */
struct snapshot *snapshot_take(size_t most);
/* What has changed since; frees the snapshot. NULL where an allocation came or went, the changes are more than
 * `most` bytes, or memory is exhausted. */
struct changes *snapshot_changes(struct snapshot *s, size_t most);
void snapshot_free(struct snapshot *s);

size_t changes_bytes(const struct changes *c);
/* Writes them; the allocations are those of the snapshot. */
void changes_apply(const struct changes *c);
void changes_free(struct changes *c);

#endif
