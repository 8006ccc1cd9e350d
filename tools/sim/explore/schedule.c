/* Schedules as words: schedule.h. */
#include "explore/schedule.h"

#include <stdio.h>
#include <stdlib.h>

bool schedule_add(struct schedule *s, uint64_t who)
{
    struct replay_turn *last = s->count ? &s->turns[s->count - 1] : NULL;
    if (last && last->who == who) {
        last->steps++;
        return true;
    }
    if (s->count == s->capacity) {
        const uint32_t capacity = s->capacity ? 2 * s->capacity : 32;
        struct replay_turn *grown = realloc(s->turns, capacity * sizeof *grown);
        if (!grown) return false;
        s->turns = grown;
        s->capacity = capacity;
    }
    s->turns[s->count++] = (struct replay_turn){who, 1};
    return true;
}

void schedule_free(struct schedule *s)
{
    free(s->turns);
    *s = (struct schedule){NULL, 0, 0};
}

bool schedule_write(const struct schedule *s, uint32_t steps, char *word, size_t room)
{
    size_t at = 0;
    word[0] = '\0';
    for (uint32_t i = 0; i < s->count && steps; i++) {
        const struct replay_turn *t = &s->turns[i];
        const uint32_t n = t->steps < steps ? t->steps : steps;
        char op[16] = "", times[16] = "";
        if ((uint32_t)t->who) (void)snprintf(op, sizeof op, ".%u", (unsigned)(uint32_t)t->who);
        if (n > 1) (void)snprintf(times, sizeof times, "x%u", (unsigned)n);
        at += (size_t)snprintf(word + at, room - at, "%sw%u%s%s", i ? "," : "",
                               (unsigned)(t->who >> 32), op, times);
        if (at >= room) return false;
        steps -= n;
    }
    return true;
}

/* A number from 1, or 0 where `zero`, of at most nine digits. */
static bool number(const char **at, bool zero, uint32_t *out)
{
    const char *from = *at;
    uint32_t n = 0;
    while (**at >= '0' && **at <= '9' && *at - from < 9) n = 10 * n + (uint32_t)(*(*at)++ - '0');
    *out = n;
    return *at > from && (**at < '0' || **at > '9') && (n || zero);
}

/* "w1", "w1.2", "w1x3", and what stands between it and the next. */
static bool read_step(const char **at, uint64_t *who, uint32_t *steps)
{
    uint32_t warp, op = 0;
    *steps = 1;
    if (**at != 'w') return false;
    ++*at;
    if (!number(at, true, &warp)) return false;
    if (**at == '.') {
        ++*at;
        if (!number(at, false, &op)) return false;
    }
    if (**at == 'x') {
        ++*at;
        if (!number(at, false, steps)) return false;
    }
    *who = warp * (uint64_t)0x100000000 + op;
    if (!**at) return true;
    if (**at != ',') return false;
    ++*at;
    return **at != '\0';
}

bool schedule_read(struct schedule *s, const char *word, char *why, size_t room)
{
    const char *at = word;
    *s = (struct schedule){NULL, 0, 0};
    while (*at) {
        const char *from = at;
        uint64_t who;
        uint32_t steps;
        if (!read_step(&at, &who, &steps)) {
            (void)snprintf(why, room, "'%.16s' is no step; a step is w1, w1.2 or w1x3", from);
            schedule_free(s);
            return false;
        }
        if (schedule_add(s, who)) {
            s->turns[s->count - 1].steps += steps - 1;
            continue;
        }
        (void)snprintf(why, room, "no memory");
        schedule_free(s);
        return false;
    }
    return true;
}
