/*
 * Requests in continuous batches: each step admits what fits, computes a chunk of one prompt, and
 * decodes a token for every request that runs. Requests enter in the order in which they were
 * submitted; one enters when a slot is free and its pages are, so a running request never waits for
 * memory. One thread uses an engine.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "model.h"

struct engine;

struct engine_request {
    const int32_t *prompt; /* read during engine_submit alone */
    int64_t prompt_count;  /* 1 or more */
    int64_t most;          /* tokens to draw at most; 0: as many as the context has room for */
    float temperature;     /* as in struct engine_sampling */
    float top_p;
    int32_t top_k;
    uint64_t seed;
    void *user;
};

struct engine_events { /* either may be NULL. They must not call the engine, except for
                          engine_cancel */
    void (*token)(void *user, int32_t token);
    void (*end)(void *user, int reason); /* an engine_reason; no call for this request follows */
};

/* `waiting`: requests that may wait for a slot. 0, or -1 after a message. */
int engine_open(struct model *model, int64_t waiting, const struct engine_events *events,
                struct engine **out, struct problem *p);
/* Requests that have not ended get no more calls. */
void engine_close(struct engine *e);

/* Its number, 1 or more; -1 after a message that names what is wrong, or says that `waiting`
 * requests wait. */
int64_t engine_submit(struct engine *e, const struct engine_request *r, struct problem *p);
/* The request ends, at once where it waits, else with the next step. One that has ended is passed
 * over. */
void engine_cancel(struct engine *e, int64_t number);
/* One step. The requests that wait or run afterwards; -1 after a message. */
int64_t engine_step(struct engine *e, struct problem *p);
/* Requests that wait for a slot. */
int64_t engine_waiting(const struct engine *e);
/* Pages of the cache that no request has. */
int64_t engine_free_pages(const struct engine *e);
/* "stop token", and so on. */
const char *engine_reason_text(int reason);

#endif
