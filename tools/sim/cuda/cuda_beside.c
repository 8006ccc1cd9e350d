/* Launches that may run beside each other (beside.h). */
#include "cuda/beside.h"
#include "check/check.h"
#include "check/constant.h"
#include "check/launch_memory.h"
#include "cuda/driver.h"

#include <stdio.h>
#include <stdlib.h>

enum { EVENT_INTERPROCESS = 4 };
enum { WORD_MOST = 64 }; /* bytes of a copy that a host may poll for, as for a flag */

static struct {
    uint64_t launches;       /* that ran, and copies */
    uint32_t opened, open;   /* streams that programs made, ever and now */
    bool used_default;       /* a kernel was launched in a default stream */
    struct known host;       /* what the host has waited for */
    struct known last;       /* each slot's last launch */
    struct known gone;       /* its last one that is not among `kept` */
    struct CUstream_st *now; /* whose work is submitted */
    uint32_t forks;          /* graphs with branches that run, one in another */
    uint64_t graph;          /* the launch before the outermost of them */
    bool crowded;            /* there were more branches than slots, which took an order from it */
    struct {
        struct launch_memory *memory; /* NULL: a copy */
        struct copied copied;
        uint32_t slot;
        uint64_t launch;
    } kept[CHECK_BESIDE];   /* oldest first */
    uint32_t count, copies; /* copies: of these */
} beside;

/* ---- what is known ---- */

static void learn(struct known *to, const struct known *from)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (to->launch[i] < from->launch[i]) to->launch[i] = from->launch[i];
        if (to->maybe[i] < from->maybe[i]) to->maybe[i] = from->maybe[i];
    }
}

/* What a stream's next work comes after: a legacy stream waits for those that do not opt out, and they for it. */
static void learn_before(struct known *to, const struct CUstream_st *stream)
{
    struct CUstream_st *s;
    size_t at = 0;
    learn(to, &stream->known);
    if (!stream->legacy) {
        if (!(stream->flags & HEWN_CU_STREAM_NON_BLOCKING))
            learn(to, &stream->context->legacy_stream.known);
        return;
    }
    learn(to, &stream->context->thread_stream.known);
    learn(to, &stream->context->closed);
    while ((s = handle_next(HANDLE_STREAM, stream->context, &at)))
        if (!(s->flags & HEWN_CU_STREAM_NON_BLOCKING)) learn(to, &s->known);
}

static void drop(uint32_t i)
{
    launch_memory_free(beside.kept[i].memory);
    beside.copies -= !beside.kept[i].memory;
    beside.count--;
    for (; i < beside.count; i++) beside.kept[i] = beside.kept[i + 1];
}

/* What the host has waited for is behind all that is submitted from now on. */
static void drop_known(void)
{
    for (uint32_t i = beside.count; i-- > 0;)
        if (beside.host.launch[beside.kept[i].slot] >= beside.kept[i].launch) drop(i);
}

/* ---- streams, events, the host ---- */

void beside_open(struct CUstream_st *stream)
{
    stream->slot = SLOT_FIRST + beside.opened++ % (STREAM_SLOTS - SLOT_FIRST);
    stream->known = beside.host;
    beside.open++;
}

void beside_close(const struct CUstream_st *stream)
{
    beside.open--;
    if (!(stream->flags & HEWN_CU_STREAM_NON_BLOCKING))
        learn(&stream->context->closed, &stream->known);
    if (beside.now == stream) beside.now = NULL;
}

/* Records and waits are work of the stream as launches are: those of the legacy stream stand between all others. */
static void submit(struct CUstream_st *stream)
{
    learn(&stream->known, &beside.host);
    learn_before(&stream->known, stream);
}

void beside_enter(struct CUstream_st *stream)
{
    submit(stream);
    beside.now = stream;
}

void beside_record(struct CUevent_st *event, struct CUstream_st *stream)
{
    if (!stream) {
        event->known = beside.last;
        return;
    }
    submit(stream);
    event->known = stream->known;
}

static const struct known *known_with(const struct CUevent_st *event)
{
    return event && !(event->flags & EVENT_INTERPROCESS) ? &event->known : &beside.last;
}

void beside_wait(struct CUstream_st *stream, const struct CUevent_st *event)
{
    submit(stream);
    learn(&stream->known, known_with(event));
}

void beside_hosts(void)
{
    if (!beside.now) return;
    beside_host_stream(beside.now);
    learn(&beside.now->known, &beside.host);
}

void beside_waits(const struct CUevent_st *event)
{
    if (beside.now) beside_wait(beside.now, event);
}

void beside_tells(void)
{
    struct known told = {0};
    if (!beside.now) return;
    learn_before(&told, beside.now);
    for (uint32_t i = 0; i < SLOTS; i++) {
        const uint64_t last = told.launch[i] > told.maybe[i] ? told.launch[i] : told.maybe[i];
        if (beside.host.maybe[i] < last) beside.host.maybe[i] = last;
    }
}

void beside_host_stream(const struct CUstream_st *stream)
{
    if (stream->legacy)
        learn_before(&beside.host, stream); /* waits for the others as its work does */
    else
        learn(&beside.host, &stream->known);
    drop_known();
}

void beside_host_event(const struct CUevent_st *event)
{
    learn(&beside.host, known_with(event));
    drop_known();
}

void beside_host_all(void)
{
    beside.host = beside.last;
    beside.crowded = false;
    drop_known();
}

/* ---- graphs and their branches ---- */

void beside_graph_begin(const struct known *before)
{
    if (beside.now) learn(&beside.now->known, before);
}

void beside_graph_end(struct known *over)
{
    if (beside.now) *over = beside.now->known;
}

/* Of the clocks the last one is what all come after. */
struct known *beside_fork(uint32_t nodes)
{
    struct known *clocks = beside.now ? calloc(nodes + 1UL, sizeof *clocks) : NULL;
    if (!clocks) return NULL;
    clocks[nodes] = beside.now->known;
    for (uint32_t i = 0; i < nodes; i++) clocks[i] = clocks[nodes];
    if (!beside.forks++) beside.graph = beside.launches;
    return clocks;
}

void beside_node_begin(struct known *clocks, uint32_t node)
{
    beside.now->known = clocks[node];
}

void beside_node_after(const struct known *clocks, uint32_t before)
{
    learn(&beside.now->known, &clocks[before]);
}

void beside_node_end(struct known *clocks, uint32_t node)
{
    clocks[node] = beside.now->known;
}

void beside_join(struct known *clocks, uint32_t nodes)
{
    if (!clocks) return;
    beside.now->known = clocks[nodes];
    for (uint32_t i = 0; i < nodes; i++) learn(&beside.now->known, &clocks[i]);
    beside.forks--;
    free(clocks);
}

static bool slot_is_free(const struct known *known, uint32_t slot)
{
    return known->launch[slot] >= beside.last.launch[slot];
}

/* Where what runs now counts. Of a branch: a slot of which all is over for it. */
static uint32_t slot_now(void)
{
    const struct CUstream_st *now = beside.now;
    if (!now) return SLOT_LEGACY;
    if (!beside.forks || slot_is_free(&now->known, now->slot)) return now->slot;
    for (uint32_t i = STREAM_SLOTS; i < SLOTS; i++)
        if (slot_is_free(&now->known, i)) return i;
    beside.crowded = true;
    return now->slot;
}

static bool slot_is_now(uint32_t slot)
{
    return beside.now && (beside.now->slot == slot || slot >= STREAM_SLOTS);
}

/* ---- launches ---- */

static bool knows_gone(const struct known *known)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        if (known->launch[i] < beside.gone.launch[i]) return false;
    return true;
}

static bool several(void)
{
    return beside.open + beside.used_default > 1 || beside.forks;
}

bool beside_alone(void)
{
    return !several() && !beside.count;
}

/* Memory of the host that the launch wrote: the host may have polled it. */
static bool wrote_hosts(const struct launch_memory *memory)
{
    uint64_t at = 0, base, bytes;
    while ((at = launch_memory_written(memory, at)) != UINT64_MAX) {
        if (memory_of_host(at)) return true;
        at = mem_range(at, 1, &base, &bytes) ? base + bytes : at + 1;
    }
    return false;
}

enum order { ORDER_NONE, ORDER_MAYBE, ORDER_KNOWN };

static enum order order_of(const struct known *known, uint32_t i)
{
    const uint32_t slot = beside.kept[i].slot;
    if (known->launch[slot] >= beside.kept[i].launch) return ORDER_KNOWN;
    return known->maybe[slot] >= beside.kept[i].launch ? ORDER_MAYBE : ORDER_NONE;
}

static bool in_graph(uint32_t i)
{
    return beside.forks && beside.kept[i].launch > beside.graph;
}

uint32_t beside_begin(struct check *check, const struct kernel *kernel)
{
    const struct known *known = beside.now ? &beside.now->known : &beside.last;
    const uint32_t slot = slot_now();
    bool maybe = false;
    for (uint32_t i = 0; i < beside.count; i++) {
        const enum order order = order_of(known, i);
        struct check_beside *to = &check->beside[check->beside_count];
        maybe |= order == ORDER_MAYBE;
        if (order != ORDER_NONE) continue;
        *to = (struct check_beside){.copied = beside.kept[i].copied, .in_graph = in_graph(i)};
        if (beside.kept[i].memory) to->memory = launch_memory_share(beside.kept[i].memory);
        check->beside_count++;
    }
    check->waits = check->beside_count && kernel && kernel_waits(kernel);
    check->beside_gone = maybe || beside.crowded || !knows_gone(known);
    return slot;
}

static void drop_oldest(bool copy)
{
    uint32_t i = 0;
    uint64_t *gone;
    while (!beside.kept[i].memory != copy) i++;
    gone = &beside.gone.launch[beside.kept[i].slot];
    if (*gone < beside.kept[i].launch) *gone = beside.kept[i].launch;
    drop(i);
}

/* memory NULL: a copy. */
static void keep(struct launch_memory *memory, const struct copied *copied, uint32_t slot)
{
    const bool copy = memory == NULL;
    if ((copy ? beside.copies : beside.count - beside.copies) ==
        (copy ? BESIDE_COPIES : BESIDE_LAUNCHES))
        drop_oldest(copy);
    beside.kept[beside.count].memory = copy ? NULL : launch_memory_share(memory);
    beside.kept[beside.count].copied = *copied;
    beside.kept[beside.count].slot = slot;
    beside.kept[beside.count++].launch = beside.launches;
    beside.copies += copy;
}

void beside_end(uint32_t slot, struct launch_memory *memory, const struct kernel *kernel)
{
    const uint64_t launch = ++beside.launches;
    beside.last.launch[slot] = launch;
    beside.used_default |= slot < SLOT_FIRST;
    if (slot_is_now(slot)) {
        struct known *known = &beside.now->known;
        known->launch[slot] = launch;
        if (!memory || launch_memory_waited(memory))
            memcpy(known->maybe, beside.last.launch, sizeof known->maybe);
        if (several() && (!memory || wrote_hosts(memory))) beside_tells();
    }
    if (!memory || !several()) {
        beside.gone.launch[slot] = launch;
        return;
    }
    launch_memory_constants(memory, kernel);
    keep(memory, &(struct copied){0}, slot);
}

/* ---- copies and fills ---- */

/* Memory that the device knows; what lies elsewhere only the call that copies touches. */
static struct copied_area area(const void *at, uint64_t width, uint64_t height, uint64_t depth,
                               uint64_t pitch, uint64_t slice)
{
    struct copied_area a = {.address = (uint64_t)(uintptr_t)at,
                            .width = width,
                            .height = height,
                            .depth = depth,
                            .pitch = pitch,
                            .slice = slice};
    uint64_t base, bytes;
    if (!width || !height || !depth || !mem_range(a.address, 1, &base, &bytes))
        return (struct copied_area){0};
    if (a.height > 1 && a.pitch == a.width) { /* in one piece */
        a.width *= a.height;
        a.height = 1;
    }
    return a;
}

static void tell_copy(const struct copied *c, enum finding_kind kind, uint32_t i,
                      const struct copied_clash *clash)
{
    struct report *report = report_new(c->name, ++driver.launches);
    struct finding f = {.severity = SEV_ERROR, .kind = kind, .warp = -1, .lane = -1};
    const char *where = in_graph(i) ? "another branch of the graph" : "another stream";
    char other[300];
    if (!report) return;
    if (beside.kept[i].memory)
        (void)snprintf(other, sizeof other, "%s, a launch of %s, %s at line %u",
                       launch_memory_kernel(beside.kept[i].memory), where,
                       clash->wrote ? "writes" : "reads", clash->line);
    else
        (void)snprintf(other, sizeof other, "%s of %s %s", beside.kept[i].copied.name, where,
                       clash->wrote ? beside.kept[i].copied.writes : "reads");
    f.file = f.instr = "";
    (void)snprintf(f.object, sizeof f.object, "global memory");
    (void)snprintf(f.message, sizeof f.message,
                   "%s of this %s %s bytes from 0x%llx on, some of which %s. Nothing orders the "
                   "two, so either may come first, or both may run at the same time. Cheapest "
                   "remedy: %s",
                   c->name, in_graph(i) ? "branch" : "stream", clash->writes ? c->writes : "reads",
                   (unsigned long long)clash->address, other,
                   in_graph(i) ? "an edge of the graph from the one node to the other."
                               : "record an event behind the one and let the other's stream wait "
                                 "for it, or submit both to one stream.");
    report_add(report, &f);
    if (report_end(report) == VERDICT_ERROR && driver.settings.strict)
        beside.now->context->strict_fault = HEWN_CU_LAUNCH_FAILED;
}

/* The first of what was kept that conflicts. */
static void compare_copy(const struct copied *c, enum finding_kind kind)
{
    for (uint32_t i = 0; i < beside.count; i++) {
        const struct launch_memory *memory = beside.kept[i].memory;
        struct copied_clash clash;
        if (order_of(&beside.now->known, i) != ORDER_NONE) continue;
        if (memory ? launch_memory_waited(memory) || !copied_clashes_launch(c, memory, &clash)
                   : !copied_clashes(c, &beside.kept[i].copied, &clash))
            continue;
        tell_copy(c, kind, i, &clash);
        return;
    }
}

static void copied(const struct copied *c)
{
    const uint32_t slot = slot_now();
    if (!beside.now || !driver.settings.check_level || (!c->to.width && !c->from.width)) return;
    compare_copy(c, FIND_RACE);
    beside.last.launch[slot] = ++beside.launches;
    beside.now->known.launch[slot] = beside.launches;
    beside.used_default |= slot < SLOT_FIRST && beside.open;
    if (several())
        keep(NULL, c, slot);
    else
        beside.gone.launch[slot] = beside.launches;
    if (several() && c->to.width && c->to.width <= WORD_MOST && c->to.height * c->to.depth == 1 &&
        memory_of_host(c->to.address))
        beside_tells();
}

void beside_copy(const struct copy_request *r)
{
    copied(&(struct copied){
        .name = "a copy",
        .writes = "writes",
        .to = area(r->dst, r->width, r->height, r->depth, r->dst_pitch, r->dst_slice),
        .from = area(r->src, r->width, r->height, r->depth, r->src_pitch, r->src_slice)});
}

void beside_fill(const struct fill_request *r)
{
    copied(&(struct copied){.name = "a fill",
                            .writes = "writes",
                            .to = area(r->dst, (uint64_t)r->width * r->element, r->height, 1,
                                       r->pitch, 0),
                            .fills = true,
                            .value = r->value,
                            .element = r->element});
}

/* Makes `stream` the one that works now. */
static struct CUstream_st *turn_to(struct CUstream_st *stream)
{
    struct CUstream_st *before = beside.now;
    if (stream) beside_enter(stream);
    return before;
}

/* Something that was kept, and is not known to be over, conflicts with it. */
static bool used_before(const struct copied *c)
{
    for (uint32_t i = 0; i < beside.count; i++) {
        const struct launch_memory *memory = beside.kept[i].memory;
        struct copied_clash clash;
        if (order_of(&beside.now->known, i) == ORDER_KNOWN) continue;
        if (memory ? copied_clashes_launch(c, memory, &clash)
                   : copied_clashes(c, &beside.kept[i].copied, &clash))
            return true;
    }
    return false;
}

/* Memory that was in use comes behind its free: with that, all. */
void beside_allocated(struct CUstream_st *stream, uint64_t address, uint64_t bytes)
{
    struct CUstream_st *before = turn_to(stream);
    const struct copied c = {
        .name = "an allocation", .writes = "provides", .to = {address, bytes, 1, 1, bytes, bytes}};
    if (beside.now && used_before(&c)) learn(&beside.now->known, &beside.last);
    copied(&c);
    beside.now = before;
}

/* What comes later finds nothing there, so it need not be kept. */
void beside_freed(struct CUstream_st *stream, uint64_t address, uint64_t bytes)
{
    struct CUstream_st *before = turn_to(stream);
    const struct copied c = {
        .name = "a free", .writes = "takes back", .to = {address, bytes, 1, 1, bytes, bytes}};
    if (beside.now && driver.settings.check_level) compare_copy(&c, FIND_USE_AFTER_FREE);
    beside.now = before;
}
