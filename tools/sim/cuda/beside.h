/*
 * Which launches, copies and fills may run beside each other. Streams execute here as work is submitted, but a GPU orders
 * the work of two streams only by an event, a wait of the host, the legacy stream or the free of what they use, and the
 * nodes of a graph only by its edges. So each stream, each event and the host know, of every stream, the last launch or copy
 * that is over by then. A launch is compared with those of other streams that its stream does not know to be over
 * (check.h); a copy is, too. What they left is kept until the host has waited for them, a few of them, and only where a
 * program has two streams, or a graph has branches: each branch counts as a stream while the graph runs.
 */
#ifndef SIM_BESIDE_H
#define SIM_BESIDE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    STREAM_SLOTS =
        64, /* the 65th stream shares a slot with an older one, and is taken to know what that one knows */
    SLOT_LEGACY = 0,
    SLOT_THREAD,
    SLOT_FIRST,
    BRANCH_SLOTS =
        32, /* behind those of streams: branches of a graph beside the one that has its stream's */
    SLOTS = STREAM_SLOTS + BRANCH_SLOTS
};

/* Of each slot, the number of the last launch or copy that is known to be over, and of the last one that may be: a kernel
 * that looks at global memory by strong accesses may have waited for it. They are counted from 1. */
struct known {
    uint64_t launch[SLOTS], maybe[SLOTS];
};

struct CUstream_st;
struct CUevent_st;
struct check;
struct copy_request;
struct fill_request;
struct kernel;
struct launch_memory;

/* A new stream: its slot, and what the host knows. */
void beside_open(struct CUstream_st *stream);
/* It goes: nothing may point to it. The legacy stream waits for what it did all the same. */
void beside_close(const struct CUstream_st *stream);
/* What is submitted now runs in this stream, behind all that it knows. */
void beside_enter(struct CUstream_st *stream);
/* The event stands for what the stream has done; NULL: for all that was submitted. */
void beside_record(struct CUevent_st *event, struct CUstream_st *stream);
/* The stream waits for the event; NULL: for everything, and so for an event that other processes record. */
void beside_wait(struct CUstream_st *stream, const struct CUevent_st *event);
/* The stream of what is submitted now calls the host, or waits for the event (NULL: for what anybody may write). */
void beside_hosts(void);
void beside_waits(const struct CUevent_st *event);
/* It writes what the host may poll: the host may know what it did until now. */
void beside_tells(void);
/* The host has waited for a stream, an event, everything. */
void beside_host_stream(const struct CUstream_st *stream);
void beside_host_event(const struct CUevent_st *event);
void beside_host_all(void);

/* A launch of an executable graph comes behind its launches before (CUDA Driver API, cuGraphLaunch): what is known when
 * the last one is over. */
void beside_graph_begin(const struct known *before);
void beside_graph_end(struct known *over);

/* The nodes of a graph that runs now, in running order: what each comes after is behind its edges alone. NULL: in order,
 * as is what has no memory for it. */
struct known *beside_fork(uint32_t nodes);
void beside_node_begin(struct known *clocks, uint32_t node);
void beside_node_after(const struct known *clocks, uint32_t before);
void beside_node_end(struct known *clocks, uint32_t node);
/* All are over for what the stream does next. Frees the clocks. */
void beside_join(struct known *clocks, uint32_t nodes);

/* No launch of another stream may run beside one that begins now, or beside which that one may run. */
bool beside_alone(void);
/* For a launch that begins: what it is to be compared with. Returns a number for beside_end. */
uint32_t beside_begin(struct check *check, const struct kernel *kernel);
/* It is over, and this is what it did to memory (NULL: nobody knows). */
void beside_end(uint32_t slot, struct launch_memory *memory, const struct kernel *kernel);
/* A copy or a fill of the stream that works now: compares it, and keeps it as launches are kept. */
void beside_copy(const struct copy_request *request);
void beside_fill(const struct fill_request *request);
/* Memory comes or goes in the order of that stream; NULL: of the one that works now. */
void beside_allocated(struct CUstream_st *stream, uint64_t address, uint64_t bytes);
void beside_freed(struct CUstream_st *stream, uint64_t address, uint64_t bytes);

#endif
