/*
 * The steps of an LZMA stream: earlier occurrences of what comes, and the cheapest way through a
 * window of positions by what each step would take at the window's start.
 */
#include "squeeze.h"

#include <stdlib.h>
#include <string.h>

enum {
    HASH_LOG = 17,
    SHORT_LOG = 16,   /* of the tables for 2 and 3 bytes, which keep the newest position alone */
    CHAIN_MOST = 192, /* candidates looked at */
    NICE = 96,        /* a match of so many bytes is taken at once */
    WINDOW = 768,
    FOUND_MOST = 64
};

struct found {
    uint32_t length, distance; /* distance less 1 */
};

struct finder {
    const uint8_t *data;
    size_t size, next; /* the first position that is not yet listed */
    int32_t two[1 << SHORT_LOG], three[1 << SHORT_LOG], head[1 << HASH_LOG];
    int32_t *before; /* of each position: the one before with the same hash of 4 bytes; -1: none */
};

/* A position in the window: how it is reached at the least price. */
struct node {
    uint32_t price, from;
    struct step step;
    struct history history;
};

struct parser {
    struct coder *c;
    struct finder finder;
    struct node node[WINDOW + 1];
    uint32_t length_price[2][LZMA_POSITIONS][LZMA_MOST + 1]; /* [1]: at one of the last distances */
    struct found found[FOUND_MOST];
    unsigned found_count;
};

/* ---- earlier occurrences ---- */

static uint32_t hash(const uint8_t *p, unsigned bytes, unsigned log)
{
    uint32_t word = 0;

    memcpy(&word, p, bytes);
    return word * 2654435761U >> (32 - log);
}

static void list(struct finder *f, size_t until)
{
    for (; f->next < until && f->next + 4 <= f->size; f->next++) {
        const uint8_t *p = f->data + f->next;
        int32_t *head = &f->head[hash(p, 4, HASH_LOG)];

        f->before[f->next] = *head;
        *head = (int32_t)f->next;
        f->two[hash(p, 2, SHORT_LOG)] = (int32_t)f->next;
        f->three[hash(p, 3, SHORT_LOG)] = (int32_t)f->next;
    }
}

static uint32_t common(const struct finder *f, size_t a, size_t b)
{
    size_t most = f->size - b;
    uint32_t n = 0;

    if (most > LZMA_MOST) most = LZMA_MOST;
    while (n < most && f->data[a + n] == f->data[b + n]) n++;
    return n;
}

/* Notes the match at `from` if it is longer than all before. */
static void note(struct parser *s, int32_t from, size_t at)
{
    uint32_t longest = s->found_count ? s->found[s->found_count - 1].length : LZMA_LEAST - 1, n;

    if (from < 0 || s->found_count == FOUND_MOST) return;
    n = common(&s->finder, (size_t)from, at);
    if (n > longest)
        s->found[s->found_count++] = (struct found){n, (uint32_t)(at - (size_t)from - 1)};
}

/* Matches at `at`, longer ones behind shorter and nearer ones. */
static void find(struct parser *s, size_t at)
{
    struct finder *f = &s->finder;
    const uint8_t *p = f->data + at;

    s->found_count = 0;
    list(f, at);
    if (at + 4 > f->size) return;
    note(s, f->two[hash(p, 2, SHORT_LOG)], at);
    note(s, f->three[hash(p, 3, SHORT_LOG)], at);
    int32_t from = f->head[hash(p, 4, HASH_LOG)];
    for (unsigned tried = 0; from >= 0 && tried < CHAIN_MOST; tried++) {
        note(s, from, at);
        if (s->found_count && s->found[s->found_count - 1].length == LZMA_MOST) return;
        from = f->before[from];
    }
}

/* ---- the cheapest way ---- */

static void price_lengths(struct parser *s)
{
    unsigned positions = 1U << s->c->pb;

    for (int again = 0; again < 2; again++)
        for (unsigned position = 0; position < positions; position++)
            for (uint32_t n = LZMA_LEAST; n <= NICE; n++)
                s->length_price[again][position][n] = price_length(s->c, again, position, n);
}

/* The step leads from node `from`; it is kept if that is the least price so far. */
static void offer(struct parser *s, uint32_t from, uint32_t price, struct step step)
{
    struct node *to = &s->node[from + step.length];

    price += s->node[from].price;
    if (price >= to->price) return;
    *to = (struct node){.price = price, .from = from, .step = step};
}

static void offer_literal(struct parser *s, uint32_t i, size_t at)
{
    const struct history *h = &s->node[i].history;
    struct step step = {1, STEP_LITERAL};

    s->c->price = 0;
    code_step(s->c, h, at, &step);
    offer(s, i, s->c->price, step);
    if (h->distance[0] >= at || s->c->data[at] != s->c->data[at - h->distance[0] - 1]) return;
    step.which = 0;
    s->c->price = 0;
    code_step(s->c, h, at, &step);
    offer(s, i, s->c->price, step);
}

/* Matches at the last distances. Returns the longest, which goes to *best. */
static uint32_t offer_again(struct parser *s, uint32_t i, size_t at, uint32_t room,
                            struct step *best)
{
    const struct history *h = &s->node[i].history;
    unsigned position = (unsigned)at & ((1U << s->c->pb) - 1);
    uint32_t longest = 0;

    for (uint32_t which = 0; which < 4; which++) {
        if (h->distance[which] >= at) continue;
        uint32_t n = common(&s->finder, at - h->distance[which] - 1, at);
        if (n > longest) {
            longest = n;
            *best = (struct step){n, which};
        }
        if (n >= NICE) return n;
        struct step step = {n < room ? n : room, which};
        if (step.length < LZMA_LEAST) continue;
        uint32_t price = price_kind(s->c, h, position, &step);
        for (; step.length >= LZMA_LEAST; step.length--)
            offer(s, i, price + s->length_price[1][position][step.length], step);
    }
    return longest;
}

static void offer_matches(struct parser *s, uint32_t i, size_t at, uint32_t room)
{
    const struct history *h = &s->node[i].history;
    unsigned position = (unsigned)at & ((1U << s->c->pb) - 1);
    struct step step = {LZMA_LEAST, STEP_MATCH};
    uint32_t price = price_kind(s->c, h, position, &step);

    for (unsigned k = 0; k < s->found_count; k++) {
        uint32_t distance = s->found[k].distance, far = 0;
        step.which = STEP_MATCH + distance;
        for (; step.length <= s->found[k].length && step.length <= room; step.length++) {
            if (step.length < LZMA_LEAST + LZMA_LENGTHS || far == 0)
                far = price_distance(s->c, step.length, distance);
            offer(s, i, price + far + s->length_price[0][position][step.length], step);
        }
    }
}

/* Writes the way to node `last`. */
static void write_way(struct parser *s, uint32_t last, size_t start)
{
    struct coder *c = s->c;
    uint32_t next = last, i = 0;

    for (uint32_t at = last; at > 0;) { /* turns the links around */
        uint32_t from = s->node[at].from;
        s->node[at].from = next;
        next = at;
        at = from;
    }
    c->pricing = 0;
    while (i < last) {
        const struct node *to = &s->node[next];
        code_step(c, &c->now, start + i, &to->step);
        history_step(&c->now, &to->step);
        i = next;
        next = to->from;
    }
    c->pricing = 1;
}

static void write_step(struct parser *s, size_t at, const struct step *step)
{
    s->c->pricing = 0;
    code_step(s->c, &s->c->now, at, step);
    history_step(&s->c->now, step);
    s->c->pricing = 1;
}

/* One window from `start`: the position behind it. A long match ends it early. */
static size_t window(struct parser *s, size_t start)
{
    uint32_t most = s->c->size - start < WINDOW ? (uint32_t)(s->c->size - start) : WINDOW, i;
    struct step best = {0, 0};

    for (i = 1; i <= most; i++) s->node[i].price = UINT32_MAX;
    s->node[0] = (struct node){.history = s->c->now};
    price_lengths(s);
    for (i = 0; i < most; i++) {
        struct node *n = &s->node[i];
        size_t at = start + i;
        if (i > 0) {
            n->history = s->node[n->from].history;
            history_step(&n->history, &n->step);
        }
        find(s, at);
        if (offer_again(s, i, at, most - i, &best) >= NICE) break;
        if (s->found_count && s->found[s->found_count - 1].length >= NICE) {
            const struct found *f = &s->found[s->found_count - 1];
            best = (struct step){f->length, STEP_MATCH + f->distance};
            break;
        }
        offer_literal(s, i, at);
        offer_matches(s, i, at, most - i);
    }
    write_way(s, i, start);
    if (i == most) return start + most;
    write_step(s, start + i, &best);
    return start + i + best.length;
}

int parse(struct coder *c)
{
    struct parser *s = malloc(sizeof *s);
    int rc = -1;

    if (s) s->finder.before = malloc((c->size + 1) * sizeof *s->finder.before);
    if (s && s->finder.before) {
        s->c = c;
        s->finder.data = c->data;
        s->finder.size = c->size;
        s->finder.next = 0;
        memset(s->finder.two, -1, sizeof s->finder.two);
        memset(s->finder.three, -1, sizeof s->finder.three);
        memset(s->finder.head, -1, sizeof s->finder.head);
        c->pricing = 1;
        for (size_t at = 0; at < c->size;) at = window(s, at);
        c->pricing = 0;
        rc = 0;
    }
    if (s) free(s->finder.before);
    free(s);
    return rc;
}
