/* Launches that need not run again (repeat.h). */
#include "cuda/repeat.h"
#include "cuda/recall.h"
#include "machine/mem.h"

#include <stdlib.h>
#include <time.h>

enum { KEPT_MOST = 64, PIECES_MOST = 4096, MODE_NEVER = 0, MODE_ALWAYS = 2 };

/* Taking a digest must pay: so many nanoseconds for a byte, and the part of a launch that they may be. */
static const double digest_cost = 0.25, digest_share = 0.1, digest_share_once = 0.03;
static const uint64_t digest_most = 4ULL << 30; /* bytes */
/* Likewise of keeping what a launch changes: of the copy before it, and of all that is kept. */
static const double changes_cost = 1.0;
static const size_t snapshot_most = 256U << 20, changes_most = 256U << 20; /* bytes */
enum { MISSES_MOST = 4 }; /* so often changes are kept that no launch asks for */

struct repeated {
    struct launch_request request; /* params: a copy */
    uint32_t param_bytes;
    uint64_t stable;         /* digest of memory that the launch leaves as it is; 0: none known */
    uint64_t elapsed;        /* nanoseconds of the last run; 0: has not run */
    uint64_t used;           /* number of the launch that looked it up last */
    struct changes *changes; /* of the last run that found memory as `found` says; or NULL */
    uint64_t found;
    struct report_basis found_basis;
    uint32_t misses;
    struct report_basis basis;
};

/* ---- what memory holds ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
    return hash ^ hash >> 29;
}

/* Four lanes of words, so that the multiplications overlap. */
static uint64_t digest_piece(uint64_t hash, const struct mem_piece *piece)
{
    uint64_t lane[4] = {hash, hash + 1, hash + 2, hash + 3}, last[4] = {0};
    const uint8_t *at = piece->at;
    size_t rest = piece->bytes;

    for (; rest >= sizeof last; rest -= sizeof last, at += sizeof last) {
        uint64_t word[4];
        memcpy(word, at, sizeof word);
        for (int i = 0; i < 4; i++) lane[i] = mix(lane[i], word[i]);
    }
    memcpy(last, at, rest);
    for (int i = 0; i < 4; i++) hash = mix(mix(hash, lane[i]), last[i]);
    return mix(mix(hash, (uint64_t)(uintptr_t)piece->at), piece->bytes);
}

/* Of all memory that a kernel can reach; 0 where it is too much for a launch of so many nanoseconds, of which this may
 * be a share. */
static uint64_t digest(uint64_t elapsed, double share)
{
    static struct mem_piece pieces[PIECES_MOST];
    const size_t count = mem_live(pieces, PIECES_MOST);
    uint64_t bytes = 0, hash = 1;

    if (count > PIECES_MOST) return 0;
    for (size_t i = 0; i < count; i++) bytes += pieces[i].bytes;
    if (bytes > digest_most) return 0;
    if (driver.settings.repeat != MODE_ALWAYS &&
        (double)bytes * digest_cost > (double)elapsed * share)
        return 0;
    for (size_t i = 0; i < count; i++) hash = digest_piece(hash, &pieces[i]);
    return hash ? hash : 1;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* Device code can change constants through their addresses, which the checks do not see when they are read. */
static uint64_t digest_consts(const struct launch_request *r)
{
    const struct CUmod_st *m = r->function->module;
    const struct mem_piece piece = {.at = m->consts, .bytes = m->ptx->const_bytes};

    return m->consts ? digest_piece(1, &piece) : 1;
}

/* ---- which launches ---- */

/* Its results are those of its request and memory alone; and no later launch may overlap it. */
static bool repeats(const struct launch_request *r)
{
    static const char *const watched[] = {"HEWN_SIM_TRACE", "HEWN_SIM_WORKSHEET",
                                          "HEWN_SIM_EXECUTED"};
    const struct kernel *k = r->function->kernel;

    if (driver.settings.repeat == MODE_NEVER || driver.settings.explore || driver.settings.advise ||
        driver.settings.replay_launch || r->overlaps)
        return false;
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) {
        const char *value = getenv(watched[i]);
        if (value && *value) return false;
    }
    for (uint32_t i = 0; i < k->insn_count; i++)
        if (k->insns[i].is.chance || k->insns[i].is.class == INSN_GRID) return false;
    return true;
}

static bool same(const struct repeated *k, const struct launch_request *r)
{
    const struct launch_request *o = &k->request;
    return o->function == r->function && !memcmp(o->grid, r->grid, sizeof r->grid) &&
           !memcmp(o->block, r->block, sizeof r->block) &&
           !memcmp(o->cluster, r->cluster, sizeof r->cluster) &&
           o->dynamic_shared == r->dynamic_shared && o->sm_count == r->sm_count &&
           o->cooperative == r->cooperative && !memcmp(o->params, r->params, k->param_bytes);
}

static void entry_free(struct repeated *k)
{
    free(k->request.params);
    changes_free(k->changes);
    *k = (struct repeated){0};
}

static struct repeated *entry_of(const struct launch_request *r)
{
    struct repeated *all = driver.repeats, *oldest;

    if (!all) all = driver.repeats = calloc(KEPT_MOST, sizeof *all);
    if (!all) return NULL;
    oldest = all;
    for (int i = 0; i < KEPT_MOST; i++) {
        if (all[i].request.function && same(&all[i], r)) return &all[i];
        if (all[i].used < oldest->used) oldest = &all[i];
    }
    entry_free(oldest);
    *oldest =
        (struct repeated){.request = *r, .param_bytes = r->function->kernel->entry->param_bytes};
    oldest->request.params = malloc(oldest->param_bytes + (size_t)1);
    if (!oldest->request.params) {
        *oldest = (struct repeated){0};
        return NULL;
    }
    memcpy(oldest->request.params, r->params, oldest->param_bytes);
    return oldest;
}

/* ---- what a launch changed ---- */

/* The kept changes are those of this launch: writes them. */
static bool recalls(struct repeated *k, uint64_t before)
{
    if (!before || !k->changes || k->found != before) return false;
    changes_apply(k->changes);
    k->misses = 0;
    return true;
}

/* A copy of memory before a launch whose changes may be asked for. NULL: they are not worth keeping. */
static struct snapshot *before_changes(const struct repeated *k, const struct repeat *r)
{
    const double share = (double)k->elapsed * digest_share;
    const size_t affordable = (size_t)(share / changes_cost);

    if (!r->before || k->misses == MISSES_MOST || k->request.function->kernel->global_sync)
        return NULL;
    return snapshot_take(driver.settings.repeat == MODE_ALWAYS || affordable > snapshot_most
                             ? snapshot_most
                             : affordable);
}

/* All that is kept stays within its bound: the entries used longest ago give theirs up. */
static void make_room(size_t bytes)
{
    for (;;) {
        struct repeated *oldest = NULL;
        size_t all = bytes;
        for (int i = 0; i < KEPT_MOST; i++) {
            struct repeated *k = &driver.repeats[i];
            all += changes_bytes(k->changes);
            if (k->changes && (!oldest || k->used < oldest->used)) oldest = k;
        }
        if (all <= changes_most || !oldest) return;
        changes_free(oldest->changes);
        oldest->changes = NULL;
    }
}

static void keep_changes(struct repeated *k, struct repeat *r)
{
    struct changes *c = snapshot_changes(r->snapshot, changes_most);

    r->snapshot = NULL;
    if (!c) return;
    changes_free(k->changes);
    k->changes = NULL;
    make_room(changes_bytes(c));
    k->changes = c;
    k->found = r->before;
    k->found_basis = k->basis;
    k->misses++;
}

void repeat_begin(struct repeat *r, const struct launch_request *request)
{
    struct repeated *k = repeats(request) ? entry_of(request) : NULL;

    *r = (struct repeat){.kept = k};
    if (!k) return;
    k->used = driver.launches + 1;
    if (k->elapsed) r->before = digest(k->elapsed, digest_share);
    r->skip = r->before && r->before == k->stable;
    r->basis = k->basis;
    if (r->skip) return;
    r->skip = recalls(k, r->before);
    r->basis = k->found_basis;
    if (r->skip) return;
    r->snapshot = before_changes(k, r);
    r->consts = digest_consts(request);
    r->in_use = mem_in_use();
    r->began = now();
}

/* It allocated nothing, and each byte of memory has one address. */
static bool plain_memory(const struct repeat *r)
{
    return !mem_aliased() && mem_in_use() == r->in_use;
}

/* One run has shown that the next would do the same: it reads nothing that this one wrote. */
static bool once_is_enough(const struct repeat *r)
{
    return plain_memory(r) && digest_consts(&r->kept->request) == r->consts;
}

void repeat_ran(struct repeat *r, const struct report *report, bool silent, bool reads_back)
{
    struct repeated *k = r->kept;
    uint64_t after = 0;

    if (!k || r->skip) return;
    k->elapsed = now() - r->began;
    k->stable = 0;
    if (!silent || !report_basis(report, &k->basis)) {
        repeat_drop(r);
        return;
    }
    if (r->snapshot && plain_memory(r)) keep_changes(k, r);
    repeat_drop(r);
    if (!reads_back && once_is_enough(r))
        k->stable = digest(k->elapsed, r->before ? digest_share : digest_share_once);
    else if (r->before)
        after = digest(k->elapsed, digest_share);
    if (after && after == r->before) k->stable = after;
}

void repeat_drop(struct repeat *r)
{
    snapshot_free(r->snapshot);
    r->snapshot = NULL;
}

void repeat_forget(void)
{
    for (int i = 0; driver.repeats && i < KEPT_MOST; i++) entry_free(&driver.repeats[i]);
    free(driver.repeats);
    driver.repeats = NULL;
}
