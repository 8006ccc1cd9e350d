/* engine_advance, several steps of it, against the same in C, exactly. */
#include "kernels.h"

#include <string.h>

struct advance_case {
    const char *name;
    int slots, rows, history, stops, steps;
    bool chosen; /* rows are of some slots, by slot_of */
};

#define COUNT(name) +1
enum { ARRAYS = 0 ENGINE_SLOT_ARRAYS(COUNT) };
enum {
#define NUMBER(name) AT_##name,
    ENGINE_SLOT_ARRAYS(NUMBER)
#undef NUMBER
};
static const char *const names[] = {
#define NAME(name) #name,
    ENGINE_SLOT_ARRAYS(NAME)
#undef NAME
};

struct data {
    struct array now[ARRAYS], slot_of, stops;
    hewn_deviceptr at[ARRAYS];
    struct engine_slots slots;
};

/* ---- the same in C -- */

static int reason_of(const struct advance_case *c, const struct data *d, int slot, int token)
{
    int reason = ENGINE_RUNS;
    if (i32(&d->now[AT_positions])[slot] + 1 >= i32(&d->now[AT_limits])[slot] ||
        i32(&d->now[AT_counts])[slot] >= c->history)
        reason = ENGINE_LENGTH;
    for (int i = 0; i < c->stops; i++)
        if (i32(&d->stops)[i] == token) reason = ENGINE_STOPPED;
    if (token < 0) reason = ENGINE_NO_TOKEN;
    return i32(&d->now[AT_cancelled])[slot] ? ENGINE_CANCELLED : reason;
}

static void advance_slot(const struct advance_case *c, struct data *d, int slot)
{
    struct array *now = d->now;
    int32_t *position = &i32(&now[AT_positions])[slot], *count = &i32(&now[AT_counts])[slot];
    const int32_t token = i32(&now[AT_sampled])[slot];
    if (slot < 0 || slot >= c->slots || *position < 0) return;
    if (token >= 0 && *count < c->history)
        i32(&now[AT_history])[slot * c->history + (*count)++] = token;
    const int reason = reason_of(c, d, slot, token);
    *position = reason ? -1 : *position + 1;
    i32(&now[AT_tokens])[slot] = reason ? -1 : token;
    i32(&now[AT_lengths])[slot] = *position + 1;
    if (reason) i32(&now[AT_reasons])[slot] = reason;
}

/* ---- a case -- */

static bool data_new(const struct advance_case *c, struct data *d, struct rng *r)
{
    memset(d, 0, sizeof *d);
    bool ready = array_new(&d->slot_of, 4 * (size_t)c->rows);
    ready = array_new(&d->stops, 4 * (size_t)c->stops) && ready;
    for (int i = 0; i < ARRAYS; i++) {
        const int each = i == AT_history ? c->history : 1;
        ready = array_new(&d->now[i], 4 * (size_t)(c->slots * each)) && ready;
    }
    if (!ready) return false;
    for (int i = 0; i < c->stops; i++) i32(&d->stops)[i] = 3 + 5 * i;
    for (int i = 0; i < c->rows; i++)
        i32(&d->slot_of)[i] = i % 4 == 3 ? (i % 8 == 3 ? -1 : c->slots + i) : c->slots - 1 - i;
    for (int i = 0; i < c->slots; i++) {
        const bool idle = rng_below(r, 4) == 0;
        i32(&d->now[AT_positions])[i] = idle ? -1 : (int32_t)rng_below(r, 50);
        i32(&d->now[AT_lengths])[i] = i32(&d->now[AT_positions])[i] + 1;
        i32(&d->now[AT_tokens])[i] = idle ? -1 : 7;
        i32(&d->now[AT_limits])[i] = 40 + (int32_t)rng_below(r, 30);
        i32(&d->now[AT_cancelled])[i] = rng_below(r, 9) == 0;
        i32(&d->now[AT_reasons])[i] = 0;
        i32(&d->now[AT_counts])[i] = (int32_t)rng_below(r, 3);
    }
    return true;
}

static bool up(struct bench *b, const struct advance_case *c, struct data *d)
{
    bool ready = true;
    for (int i = 0; i < ARRAYS; i++) {
        d->at[i] = array_up(b, &d->now[i]);
        ready = ready && d->at[i];
    }
    d->slots = (struct engine_slots){.slots = c->slots, .history_row = c->history};
#define PLACE(name) d->slots.name = d->at[AT_##name];
    ENGINE_SLOT_ARRAYS(PLACE)
#undef PLACE
    return ready;
}

static void judge(struct bench *b, struct data *d, int step)
{
    struct array got;
    for (int i = 0; i < ARRAYS; i++) {
        const struct array *want = &d->now[i];
        if (!array_new(&got, want->size)) return;
        const char *damage = guarded_damage(b->dev, &want->device);
        CHECK(!damage, "step %d: %s: %s", step, names[i], damage);
        CHECK(b->dev->to_host(got.host, d->at[i], got.size) == 0, "%s cannot be read", names[i]);
        for (size_t j = 0; j < got.size / 4; j++)
            if (i32(&got)[j] != i32(want)[j]) {
                CHECK(false, "step %d: %s[%zu]: want %d got %d", step, names[i], j, i32(want)[j],
                      i32(&got)[j]);
                break;
            }
        array_free(b, &got);
    }
}

static void run_case(struct bench *b, const struct advance_case *c, uint64_t seed)
{
    struct rng r = {seed ^ test_seed()};
    struct data d;
    hewn_error err = {0};
    bool ready = data_new(c, &d, &r) && up(b, c, &d);
    CHECK(ready, "no memory for the case");
    struct engine_advance a = {.slots = &d.slots, .rows = c->rows, .stop_count = c->stops};
    a.slot_of = c->chosen ? array_up(b, &d.slot_of) : 0;
    a.stops = c->stops ? array_up(b, &d.stops) : 0;
    for (int step = 0; ready && step < c->steps; step++) {
        struct array *sampled = &d.now[AT_sampled];
        for (int i = 0; i < c->slots; i++)
            i32(sampled)[i] = (int32_t)rng_below(&r, 40) - (rng_below(&r, 9) == 0 ? 40 : 0);
        ready = b->dev->to_device(d.at[AT_sampled], sampled->host, sampled->size) == 0 &&
                launched(b, engine_advance(&b->kernels, &a, NULL, &err), &err);
        for (int i = 0; i < c->rows; i++) {
            const int slot = c->chosen ? i32(&d.slot_of)[i] : i;
            if (slot >= 0 && slot < c->slots) advance_slot(c, &d, slot);
        }
        if (ready) judge(b, &d, step);
    }
    for (int i = 0; i < ARRAYS; i++) array_free(b, &d.now[i]);
    array_free(b, &d.slot_of);
    array_free(b, &d.stops);
}

void test_slots(struct bench *b, int random)
{
    static const struct advance_case cases[] = {
        {"every slot", 7, 7, 20, 2, 4, false},
        {"some slots", 9, 6, 20, 1, 2, true},
        {"short histories, no stops", 140, 140, 3, 0, 3, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (test_case("advance: %s, %d", cases[i].name, cases[i].slots))
            run_case(b, &cases[i], 300 + i);
    for (int i = 0; i < random; i++) {
        struct rng r = {test_seed() + 0x410000 + (uint64_t)i};
        struct advance_case c = {.name = "random", .slots = 1 + (int)rng_below(&r, 300)};
        c.rows = 1 + (int)rng_below(&r, (uint32_t)c.slots);
        c.history = (int)rng_below(&r, 9);
        c.stops = (int)rng_below(&r, 4);
        c.steps = 1 + (int)rng_below(&r, 3);
        c.chosen = rng_below(&r, 2);
        if (test_case("advance: random %d, %d", i, c.slots)) run_case(b, &c, r.state);
    }
}
