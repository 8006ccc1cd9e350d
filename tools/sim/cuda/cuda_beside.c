/* Launches that may run beside each other (beside.h). */
#include "cuda/beside.h"
#include "check/check.h"
#include "check/launch_memory.h"
#include "cuda/driver.h"

enum { EVENT_INTERPROCESS = 4 };

static struct {
    uint64_t launches;       /* that ran */
    uint32_t opened, open;   /* streams that programs made, ever and now */
    bool used_default;       /* a kernel was launched in a default stream */
    struct known host;       /* what the host has waited for */
    struct known last;       /* each slot's last launch */
    struct known gone;       /* its last one that is not among `kept` */
    struct CUstream_st *now; /* whose work is submitted */
    struct {
        struct launch_memory *memory;
        uint32_t slot;
        uint64_t launch;
    } kept[CHECK_BESIDE]; /* oldest first */
    uint32_t count;
} beside;

/* ---- what is known ---- */

static void learn(struct known *to, const struct known *from)
{
    for (uint32_t i = 0; i < STREAM_SLOTS; i++) {
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
    for (uint32_t i = 0; i < STREAM_SLOTS; i++) {
        const uint64_t last = told.launch[i] > told.maybe[i] ? told.launch[i] : told.maybe[i];
        if (beside.host.maybe[i] < last) beside.host.maybe[i] = last;
    }
}

void beside_host_stream(const struct CUstream_st *stream)
{
    learn_before(&beside.host, stream);
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
    drop_known();
}

/* ---- launches ---- */

static bool knows_gone(const struct known *known)
{
    for (uint32_t i = 0; i < STREAM_SLOTS; i++)
        if (known->launch[i] < beside.gone.launch[i]) return false;
    return true;
}

static bool several(void)
{
    return beside.open + beside.used_default > 1;
}

bool beside_alone(void)
{
    return !several() && !beside.count;
}

/* Memory of the host that the launch wrote: the host may have polled it. */
static bool wrote_hosts(const struct launch_memory *memory)
{
    const struct memory *m;
    size_t at = 0;
    while ((m = handle_next(HANDLE_MEMORY, NULL, &at)))
        if (memory_is_hosts(m) && launch_memory_wrote(memory, m->address, m->bytes)) return true;
    return false;
}

uint32_t beside_begin(struct check *check)
{
    const struct known *known = beside.now ? &beside.now->known : &beside.last;
    bool maybe = false;
    for (uint32_t i = 0; i < beside.count; i++) {
        if (known->launch[beside.kept[i].slot] >= beside.kept[i].launch) continue;
        if (known->maybe[beside.kept[i].slot] >= beside.kept[i].launch) {
            maybe = true;
            continue;
        }
        check->beside[check->beside_count++] = launch_memory_share(beside.kept[i].memory);
    }
    check->beside_gone = maybe || !knows_gone(known);
    return beside.now ? beside.now->slot : SLOT_LEGACY;
}

void beside_end(uint32_t slot, struct launch_memory *memory)
{
    const uint64_t launch = ++beside.launches;
    beside.last.launch[slot] = launch;
    beside.used_default |= slot < SLOT_FIRST;
    if (beside.now && beside.now->slot == slot) {
        struct known *known = &beside.now->known;
        known->launch[slot] = launch;
        if (!memory || launch_memory_syncs(memory))
            memcpy(known->maybe, beside.last.launch, sizeof known->maybe);
        if (several() && (!memory || wrote_hosts(memory))) beside_tells();
    }
    if (!memory || !several()) {
        beside.gone.launch[slot] = launch;
        return;
    }
    if (beside.count == CHECK_BESIDE) {
        const uint32_t oldest = beside.kept[0].slot;
        if (beside.gone.launch[oldest] < beside.kept[0].launch)
            beside.gone.launch[oldest] = beside.kept[0].launch;
        drop(0);
    }
    beside.kept[beside.count].memory = launch_memory_share(memory);
    beside.kept[beside.count].slot = slot;
    beside.kept[beside.count++].launch = launch;
}
