#include "exchange.h"

#include "ranks.h"

#include "../../ptx/inc/engine.plan.h"

#include <string.h>

_Static_assert((int)EXCHANGE_MOST == (int)RANKS_MOST && (int)RANKS_MOST <= ENGINE_EXCHANGE_RANKS,
               "a rank has room for the addresses of all");

enum { LAZY_PEER_ACCESS = 1, HIDDEN_MOST = ENGINE_EXCHANGE_HIDDEN };

/* Of what a rank sends to all others in a sum; beyond it, NCCL's way, which sends less, is faster. */
static const int64_t bytes_most = 8 << 20;

struct handle { /* CUipcMemHandle */
    char bytes[64];
};

struct calls {
    int (*give)(struct handle *, hewn_deviceptr);
    int (*map)(hewn_deviceptr *, struct handle, unsigned);
    int (*unmap)(hewn_deviceptr);
    int (*fill)(hewn_deviceptr, unsigned, size_t);
};

static bool find(const struct gpu *g, const char *name, void *out)
{
    void *symbol = hewn_driver_symbol(g->driver, name);
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool find_calls(const struct gpu *g, struct calls *c)
{
    return find(g, "cuIpcGetMemHandle", &c->give) && find(g, "cuIpcOpenMemHandle_v2", &c->map) &&
           find(g, "cuIpcCloseMemHandle", &c->unmap) && find(g, "cuMemsetD32_v2", &c->fill);
}

/* What a rank shows the others. */
struct shown {
    struct handle handle;
    bool there;
};
_Static_assert(sizeof(struct shown) <= RANKS_SHARED, "ranks_share has room for a handle");

static int64_t inbox_words(const struct exchange *x, const struct ranks *r)
{
    return EXCHANGE_HALVES * r->count * x->inbox_rank / 2;
}

/* An inbox of marks, and its handle. Nothing is shown where the driver refuses. */
static int make_inbox(struct ranks *r, struct gpu *g, const struct calls *c, struct shown *out,
                      struct problem *p)
{
    struct exchange *x = &r->exchange;
    const int64_t words = inbox_words(x, r);
    x->inbox = gpu_memory(g, (size_t)words * 4, "what ranks exchange", p);
    x->peers = gpu_memory(g, (size_t)r->count * sizeof(int64_t), "what ranks exchange", p);
    if (!x->inbox || !x->peers ||
        gpu_check(g, c->fill(x->inbox, ENGINE_EXCHANGE_MARK, (size_t)words), "an inbox", p) ||
        gpu_check(g, g->wait_all(), "an inbox", p))
        return -1;
    out->there = c->give(&out->handle, x->inbox) == 0;
    return 0;
}

/* Whether all others' inboxes are mapped. */
static bool map_all(struct ranks *r, const struct calls *c, const struct shown *all)
{
    struct exchange *x = &r->exchange;
    x->unmap = c->unmap;
    if (!c->map) return false;
    for (int i = 0; i < r->count; i++)
        if (i != r->rank && c->map(&x->mapped[i], all[i].handle, LAZY_PEER_ACCESS)) {
            x->mapped[i] = 0;
            return false;
        }
    return true;
}

static void unmap_all(struct exchange *x)
{
    for (int i = 0; i < EXCHANGE_MOST; i++)
        if (x->mapped[i]) x->unmap(x->mapped[i]);
    memset(x->mapped, 0, sizeof x->mapped);
}

/* From half of this rank's inbox to where its rows go in the same half of each other one. */
static int send_distances(struct ranks *r, const struct gpu *g, struct problem *p)
{
    const struct exchange *x = &r->exchange;
    const uint64_t own = 2 * (uint64_t)(r->rank * x->inbox_rank);
    uint64_t distance[EXCHANGE_MOST] = {0};
    for (int i = 0; i < r->count; i++)
        if (i != r->rank) distance[i] = x->mapped[i] + own - x->inbox;
    return gpu_check(g, g->to_device(x->peers, distance, (size_t)r->count * sizeof *distance),
                     "the distances of inboxes", p);
}

static bool all_there(const struct shown *all, int count)
{
    for (int i = 0; i < count; i++)
        if (!all[i].there) return false;
    return true;
}

int exchange_open(struct ranks *r, struct gpu *g, int64_t rows, int64_t hidden, struct problem *p)
{
    struct exchange *x = &r->exchange;
    struct shown own = {.there = false}, all[RANKS_MOST];
    struct calls calls = {.give = NULL};
    hewn_device_info info = {.struct_size = sizeof info};
    hewn_error err = {0};
    const int64_t sent = 2 * rows * hidden * (r->count - 1);
    bool everywhere;
    if (hewn_context_describe_device(g->context, &info, &err)) return problem(p, "%s", err.message);
    x->ctas = info.sm_count;
    x->inbox_rank = rows * hidden;
    if (sent <= bytes_most && hidden <= HIDDEN_MOST && find_calls(g, &calls) &&
        make_inbox(r, g, &calls, &own, p))
        return -1;
    ranks_share(r, &own, sizeof own, all);
    everywhere = all_there(all, r->count);
    own.there = everywhere && map_all(r, &calls, all);
    if (own.there && send_distances(r, g, p)) return -1;
    ranks_share(r, &own, sizeof own, all);
    if (all_there(all, r->count)) return 0;
    unmap_all(x);
    x->inbox = 0;
    return 0;
}

void exchange_close(struct exchange *x, struct ranks *r, bool failed)
{
    const unsigned char none = 0;
    unsigned char all[RANKS_MOST];
    if (!x->inbox || failed) return;
    unmap_all(x);
    ranks_share(r, &none, sizeof none, all);
    x->inbox = 0;
}

hewn_deviceptr exchange_inbox(const struct exchange *x, const struct ranks *r, int half)
{
    return x->inbox + 2 * (uint64_t)(half * r->count * x->inbox_rank);
}
