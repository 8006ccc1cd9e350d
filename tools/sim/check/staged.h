/*
 * What tensor copies staged in shared memory, and what became of it. Keeps the boxes (boxes.h) for those who
 * judge layouts (layout.h), and gives advice: parts of a tile that no product ever read (unread-tile), the
 * same boxes staged again (tile-repeat), loads that overlap with nothing (serialised).
 */
#ifndef SIM_STAGED_H
#define SIM_STAGED_H

#include "machine/event.h"

struct staged;

/* NULL when memory is exhausted. */
struct staged *staged_new(struct group *g);
void staged_free(struct staged *s);
void staged_event(struct staged *s, const struct event *e);
/* Nothing comes any more: gives the advice. */
void staged_end(struct staged *s);

#endif
