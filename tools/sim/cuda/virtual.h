/*
 * What virtual memory (cuda_virtual.c) and multicast objects (cuda_multicast.c) know of each other.
 */
#ifndef SIM_VIRTUAL_H
#define SIM_VIRTUAL_H

#include "cuda/driver.h"

enum { GRANULE = 2 << 20 }; /* bytes: of memory, of mappings, of multicast objects */

/* Memory of cuMemCreate. */
struct physical;
struct physical *physical_named(hewn_cu_memory handle);
uint64_t physical_bytes(const struct physical *p);
/* One more holder, and one less: the last one frees it. */
void physical_keep(struct physical *p);
void physical_drop(struct physical *p);
/* The memory that is mapped at these addresses, all of them from *offset on; NULL. */
struct physical *physical_behind(uint64_t address, uint64_t bytes, uint64_t *offset);

/* A multicast object: memory of its devices under one offset. */
struct multicast;
struct multicast *multicast_named(hewn_cu_memory handle);
uint64_t multicast_bytes(const struct multicast *m);
/* The memory bound at `at`: from *offset on, *bytes of it; NULL where none is. */
struct physical *multicast_part(const struct multicast *m, uint64_t at, uint64_t *offset,
                                uint64_t *bytes);
/* One mapping more or less; and the program's handle, given up. Without any the object goes. */
void multicast_mapped(struct multicast *m, int change);
void multicast_release(struct multicast *m);
void multicast_free_all(void);

#endif
