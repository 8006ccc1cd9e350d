/*
 * Schedules: an order's first steps in one word. "w0x3,w32,w0.2" is three steps of warp 0 of the launch, one of warp 32 and
 * one of the second operation that warp 0 has issued. Each CTA has CTA_WARPS numbers. Behind its last step an order goes on
 * by a fixed rule (walk_usual), so a word always means one order.
 */
#ifndef SIM_SCHEDULE_H
#define SIM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Steps in a row of one actor (footprint.h). */
struct replay_turn {
    uint64_t who;
    uint32_t steps;
};

struct schedule {
    struct replay_turn *turns;
    uint32_t count, capacity;
};

/* One step more. False: no memory. */
bool schedule_add(struct schedule *s, uint64_t who);
/* The first `steps` steps as a word. False: it does not fit. */
bool schedule_write(const struct schedule *s, uint32_t steps, char *word, size_t room);
/* The schedule of a word. False: it is none, `why` says where, or no memory. */
bool schedule_read(struct schedule *s, const char *word, char *why, size_t room);
void schedule_free(struct schedule *s);

#endif
