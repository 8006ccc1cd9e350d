/*
 * The simulated driver: its objects, and what its files share. The exported functions stand in
 * cuda_api.def, are declared here, and live in the cuda_*.c file that the table names.
 *
 * One lock serialises the whole API: a call holds it from call_enter to its return, launches
 * included. Streams execute at once, in call order, which is one of the schedules that hardware may
 * choose; only work behind a wait for a value in memory is kept (cuda_deferred.c). A fault of a
 * launch stays in its context and surfaces at a later call, as there.
 */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include "driver_abi.h"
#include "cuda/beside.h"
#include "cuda/graph_abi.h"
#include "explore/schedule.h"
#include "machine/mem.h"
#include "ptx/module.h"

/* What programs may rely on: "driver 13.0". */
/* CUDA 13.N brought PTX 9.N. */
enum { DRIVER_VERSION = 13050, PTX_VERSION_MAX = 95 };

/* ---- exported functions ---- */

#define API(base, symbol, since, parameters) \
    __attribute__((visibility("default"))) hewn_cu_result symbol parameters;
#define ALIAS(base, symbol, since, target, parameters, arguments) \
    __attribute__((visibility("default"))) hewn_cu_result symbol parameters;
#define PROC(base, symbol, since)
#define STUB(base, symbol, since) \
    __attribute__((visibility("default"))) hewn_cu_result symbol(void);
#include "cuda/cuda_api.def"
#undef API
#undef ALIAS
#undef PROC
#undef STUB

/* Tells hewn's runtime, tests and tools that this driver is the simulator; a version text. */
extern __attribute__((visibility("default"))) const char hewn_sim_version[];

/* ---- settings: the environment (cuda_settings.c) and the devices (gpu.c) ---- */

struct settings {
    struct gpu gpu;
    uint64_t seed;
    uint32_t host_threads;
    int check_level, repeat;
    uint64_t explore;       /* orders; 0: none */
    uint64_t advise;        /* fences; 0: none */
    uint64_t replay_launch; /* whose order is given; 0: none */
    struct schedule replay;
    bool strict, quiet, hang;
};

/* Reads HEWN_SIM_*; false after naming the bad variable and what it accepts on stderr. */
bool settings_read(struct settings *out);
/* The device with that short name ("b200"), or NULL. */
const struct gpu *gpu_named(const char *name);
/* Clusters of `size` CTAs that take an SM each, together. A cluster lies in one GPC; of fewer SMs than the device has,
 * or where GPCs are not known, all count as one. */
uint32_t gpu_clusters(const struct gpu *g, uint32_t size);
/* "h200, b200, b300" */
const char *gpu_names(void);

/* ---- orders of a launch (cuda_explore.c) ---- */

struct report;
/* Tries up to `orders` orders of a launch that is ready to run, and tells the report how far it came, and of the first
 * one that goes wrong. Memory is as before. */
void explore_before(const struct launch *l, uint64_t orders, struct report *report);
/* Around launch_run, of the launch that HEWN_SIM_REPLAY names; NULL: it is another one. */
struct replay;
struct replay *replay_before(struct launch *l);
/* Frees it; the launch's result. The report is told if the schedule did not fit. NULL is fine. */
int replay_after(struct replay *r, const struct launch *l, struct report *report);

/* ---- fences that it does without (cuda_advise.c) ---- */

/* Tries the launch, ready to run, without each of its fences, `most` of them, and tells the report which it does without.
 * Memory is as before. beside: other work may run at the same time, so nothing can be said. */
void advise_before(const struct launch *l, uint64_t most, bool beside, struct report *report);

/* ---- handles ---- */

enum handle_kind {
    HANDLE_CONTEXT,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_MODULE,   /* a CUlibrary is a module without an owner */
    HANDLE_FUNCTION, /* a CUkernel is the CUfunction of a library's module */
    HANDLE_MEMORY,
    HANDLE_GRAPH,
    HANDLE_NODE,
    HANDLE_EXEC,
    HANDLE_ARRAY,
    HANDLE_MIPMAPPED,
    HANDLE_TEXTURE,      /* surfaces too */
    HANDLE_CONDITION,    /* by the address of its word */
    HANDLE_GRAPH_MEMORY, /* by its address and 1, which no allocation has */
    HANDLE_USER_OBJECT,
    HANDLE_POOL,
    HANDLE_GREEN,
    HANDLE_LINK,
    HANDLE_PHYSICAL,
    HANDLE_MULTICAST,
    HANDLE_KINDS
};

/* Registers `object` under `key` (the pointer that programs hold; for memory its address). 0, or 2
 * when host memory is exhausted. */
int handle_add(const void *key, enum handle_kind kind, void *object, struct CUctx_st *owner);
/* The object, or NULL: a stale or foreign handle is told from a live one without touching it. */
void *handle_get(const void *key, enum handle_kind kind);
void handle_drop(const void *key);
/* The next object of that kind which `owner` owns (NULL: anyone), from *cursor, which begins at 0;
 * NULL at the end. Dropping handles on the way is allowed, adding is not. */
void *handle_next(enum handle_kind kind, const struct CUctx_st *owner, size_t *cursor);
void handle_free_all(void);

/* ---- objects ---- */

enum {
    LIMIT_COUNT = 7,
    LIMIT_GRAPHICS = 8 /* CU_LIMIT_CIG_ENABLED: a context shared with graphics; none is */
};

struct edge {
    struct CUgraphNode_st *node; /* the one at the other end */
    hewn_cu_edge data;
};

struct edges {
    struct edge *at;
    uint32_t count, room;
};

struct CUstream_st {
    struct CUctx_st *context;
    uint32_t slot;      /* beside.h */
    struct known known; /* launches that are over when its next work begins */
    unsigned flags;
    int priority;
    unsigned long long id;
    bool legacy;
    struct CUgreenCtx_st
        *green;        /* looked up before it is used; NULL: no part of the device is its own */
    uint32_t sm_count; /* of that part; 0: all */
    bool destroyed;    /* by the program, but work of it is pending */
    struct capture *capture;   /* takes part in it, or NULL */
    struct edges last;         /* what the next node that it records will depend on */
    hewn_cu_node *shown_nodes; /* the same, as a program was shown it */
    hewn_cu_edge *shown_edges;
    hewn_cu_launch_value *attributes; /* as programs set them, or NULL */
};

/* What CUDA's runtime library keeps with a context; `end` hears when the context goes. */
typedef void context_value_end(struct CUctx_st *context, void *key, void *value);
struct context_value {
    struct context_value *next;
    struct CUctx_st *context;
    void *key, *value;
    context_value_end *end; /* or NULL */
};

struct CUctx_st {
    bool primary, alive;
    unsigned flags, api_version;
    unsigned long long id;
    int fault;        /* sticky CUresult of a launch, 0 none */
    int strict_fault; /* for the next synchronising call (HEWN_SIM_STRICT), reported once */
    size_t limits[LIMIT_COUNT];
    int cache_config, shared_config;
    uint32_t retained; /* of the primary context; uses by cuCtxAttach of another */
    struct CUstream_st legacy_stream, thread_stream;
    struct known closed; /* with streams that are gone and did not opt out of the legacy one */
    struct context_value *values;
};

struct CUevent_st {
    struct CUctx_st *context;
    struct known known; /* launches that are over with it */
    unsigned flags;
    bool recorded;
    struct capture *capture; /* last recorded in a stream that takes part in it */
    struct edges last;       /* what it stands for there */
    uint64_t time_ns;
};

struct CUmod_st {
    struct CUctx_st *context; /* NULL: a library's */
    struct ptx_module *ptx;
    struct CUfunc_st *functions; /* [ptx->entry_count] */
    uint8_t *globals, *consts;   /* device memory images, or NULL */
    /* Of a library whose fat binary has no PTX for this device, so that ptx is NULL: the fat binary, if machine code
     * in it may yet hold PTX; an architecture of its machine code, and the newest one of its PTX; 0 for none. */
    const char *image;
    unsigned machine_code, newest_ptx;
    bool names_only; /* the functions are machine code: they have names, and do not launch */
};

struct CUfunc_st {
    struct CUmod_st *module;
    struct kernel *kernel;
    uint32_t max_dynamic_shared; /* bytes */
    int carveout, non_portable_cluster, must_set_cluster, scheduling_policy;
    uint32_t required_cluster[3]; /* set at run time; 0 none */
    struct legacy_launch *legacy; /* cuda_legacy.c; NULL: nothing was set */
    struct counters *counters;    /* of the last launch (check/counters.h), or NULL */
};

enum memory_kind { MEMORY_DEVICE, MEMORY_MANAGED, MEMORY_PINNED, MEMORY_REGISTERED, MEMORY_GRAPH };

/* What a program said of managed memory. */
struct advice {
    bool read_mostly, device_reads, host_reads;
    hewn_cu_location preferred, prefetched;
};

struct memory {
    struct CUctx_st *context;
    struct CUmemPoolHandle_st *pool; /* that lent it, or NULL */
    struct advice advice;
    unsigned sync_memops; /* a pointer attribute, kept to be read back */
    uint64_t address;
    uint64_t bytes;
    unsigned long long id;
    enum memory_kind kind;
    unsigned flags;
    bool given; /* its handle was asked for: another process may write to it */
};

/* ---- calls ---- */

enum need {
    NEED_INIT = 1,         /* cuInit was called */
    NEED_CONTEXT = 2,      /* and a live context is current */
    NEED_HEALTHY = 4,      /* and no fault poisons it */
    UNSAFE_IN_CAPTURE = 8, /* and no capture forbids such a call; else that capture is invalid */
    SYNCHRONISES = 16,     /* and surfaces what HEWN_SIM_STRICT holds back */
    SHOWS_PRINTED = 32     /* and what device code printed appears, as with the last two */
};
enum {
    CALL_PLAIN = NEED_INIT | NEED_CONTEXT | NEED_HEALTHY,
    CALL_UNSAFE = CALL_PLAIN | UNSAFE_IN_CAPTURE,
    CALL_SYNC = CALL_UNSAFE | SYNCHRONISES,
    CALL_RELEASE = NEED_INIT | NEED_CONTEXT /* frees even in a poisoned context */
};

struct call {
    int rc;
    bool locked;
    struct CUctx_st *context; /* current, or NULL */
};

/* Takes the lock and checks `needs`; non-zero when the caller must return call->rc. */
int call_enter(struct call *call, unsigned needs);
void call_leave(struct call *call);
/* For whoever waits in the middle of a call. */
void driver_lock(void);
void driver_unlock(void);
/* struct call call CALL_SCOPE;   leaves the call on every way out of the function, each behind call_enter */
#define CALL_SCOPE __attribute__((cleanup(call_leave)))

/* True while this thread runs a stream's host function, which may not call the driver. */
extern _Thread_local bool call_in_callback;

/* What graphs have of the device's memory, in bytes. */
struct graph_memory_use {
    uint64_t used, used_high, reserved, reserved_high;
};

/* The one process-wide state; touched under the lock. */
struct driver {
    bool ready, down;
    struct settings settings;
    struct CUctx_st *primary;
    uint64_t launches, memory_limit;
    unsigned long long next_id;
    char *printed; /* by device code, not shown yet */
    size_t printed_bytes;
    struct launch_memory *memory; /* of the last launch, until something waits for it; or NULL */
    const void *memory_stream;
    struct repeated *repeats; /* launches that need not run again (repeat.h), or NULL */
    struct capture *captures; /* in progress */
    struct graph_memory_use graph_memory;
    struct CUmemPoolHandle_st *default_pool, *pool; /* of the device; pool NULL: the default one */
    struct reservation *reservations;
    uint32_t aliased; /* pieces of cuMemCreate's memory that are mapped at several addresses */
    int ipc_file;     /* pages for other processes (cuda_ipc.c); 0: none yet */
    struct ipc_mapping *ipc_mappings; /* of other processes' */
    bool ipc_given;                   /* this process has given memory to others */
    struct deferred *deferred;        /* work that cannot run yet, in the order of submission */
    bool progressing;
    struct context_value *ended; /* of contexts that went: told when the lock is free */
};
extern struct driver driver;

/* "hewn-sim: …" on stderr, unless HEWN_SIM_QUIET=1. */
void driver_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* True for a code that stays in its context and repeats from every later call. */
bool result_is_sticky(int result);

/* Device text goes to stdout when the program next synchronises, launches, or loads or unloads a
 * module, as the Programming Guide lists for printf. Takes over `text`, which may be NULL. */
void print_keep(char *text, size_t bytes);
void print_flush(void);

/* ---- contexts ---- */

struct CUctx_st *context_current(void);
/* Destroys everything the context owns; the object itself stays, so that stale handles are told. */
void context_clear(struct CUctx_st *context);
/* What a launch came to: a sticky result becomes the context's fault, to surface at a later call,
 * and 0 is returned; any other is returned as it is. */
int context_take(struct CUctx_st *context, int result);

/* ---- modules and functions ---- */

/* `size` bytes of image; SIZE_MAX: a text ends with its NUL, a fat binary says itself. */
int module_load(struct CUctx_st *context, const char *image, size_t size, struct CUmod_st **out,
                const char *name, unsigned option_count, const int *options, void **values);
void module_unload(struct CUmod_st *module);
/* The PTX of an image, a copy to be freed: of a fat binary the text that fits the device best. */
int module_text(const char *image, size_t size, char **out);
/* Puts a message where the options have the log of errors. */
void module_log(unsigned option_count, const int *options, void **values, const char *message);
/* A file with a NUL behind it, to be freed; NULL and *rc. */
char *file_read(const char *path, size_t *bytes, int *rc);
void link_destroy(struct CUlinkState_st *link);
/* True when code for `target` ("sm_90a") runs on the device: exact for `a`, the same family and no
 * newer a member for `f`, no newer an architecture for a plain one. */
bool target_runs(const char *target, const struct gpu *gpu);
/* 103 for "sm_103a"; 0 for what is no target. */
uint32_t target_arch(const char *target);
struct CUfunc_st *function_named(struct CUmod_st *module, const char *name);
/* Registers a thread gets: .maxnreg, else what the launch bounds leave of the SM's; 0 when the
 * source bounds neither. */
uint32_t function_registers(const struct CUfunc_st *f);
uint32_t function_max_threads(const struct CUfunc_st *f);
/* The cluster shape that source (.reqnctapercluster) or attribute fixes; false where none does. */
bool function_cluster(const struct CUfunc_st *f, uint32_t out[3]);
/* CTAs of this shape that fit one SM. */
uint32_t function_ctas_per_sm(const struct CUfunc_st *f, uint32_t threads, uint64_t dynamic_shared);
/* Clusters of `size` CTAs that fit the device together. */
uint32_t function_clusters(const struct CUfunc_st *f, uint32_t size, uint32_t threads,
                           uint64_t dynamic_shared);

/* ---- work: what a stream executes, or records while it captures ---- */

enum work_kind {
    WORK_LAUNCH,
    WORK_COPY,
    WORK_FILL,
    WORK_HOST,
    WORK_MEM_OPS,
    WORK_GRAPH,
    WORK_FREE
};

struct launch_request {
    struct CUfunc_st *function;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_shared;
    uint32_t sm_count;  /* of the part of the device that it runs on; 0: all */
    bool cluster_given; /* by an attribute */
    bool cooperative;
    bool overlaps; /* programmatic stream serialization: may begin before the launch before ends */
    const void *stream; /* an identity, not to be followed */
    uint8_t *params;    /* owned, 64-byte aligned */
};

struct copy_request {
    uint8_t *dst;
    const uint8_t *src;
    bool dst_device, src_device; /* must lie in device-visible memory; else the host's is allowed */
    size_t width, height, depth; /* bytes, rows, slices */
    size_t dst_pitch, src_pitch;
    size_t dst_slice, src_slice;
    bool alone; /* behind all work that was submitted, and ahead of all that comes */
};

struct fill_request {
    uint8_t *dst;
    uint32_t value, element; /* bytes an element: 1, 2, 4 */
    size_t width, height;    /* elements, rows */
    size_t pitch;            /* bytes */
};

struct work {
    enum work_kind kind;
    struct running
        *running; /* a launch that has begun and waits for the host (running.h); or NULL */
    union {
        struct launch_request launch;
        struct copy_request copy;
        struct fill_request fill;
        struct {
            void (*function)(void *user);
            void *user;
            bool owned; /* `user` is freed with the work */
        } host;
        struct {
            unsigned count, next; /* next: the first that has not run */
            hewn_cu_mem_op *ops;  /* owned */
        } mem_ops;
        struct CUgraphExec_st *exec; /* looked up before it is used */
        uint64_t freed;
    };
};

/* Executes it now, or hands it to the stream's capture. Takes ownership of what the work owns. */
int stream_submit(struct CUstream_st *stream, struct work *work);
/* 600 where a wait for a value is not over. */
int work_run(struct CUctx_st *context, struct work *work);
void work_free(struct work *work);
/* running: the thread of its own that it runs on, or NULL. */
int launch_execute(struct CUctx_st *context, const struct launch_request *request,
                   struct running *running);
/* Checks what function, grid, block and shared memory settle, and copies the parameters. */
int launch_describe(struct launch_request *request, void **params, void **extra);
/* Settles and checks what attributes ask for besides. */
int launch_settle(struct launch_request *request);
/* No launch can overlap what has run so far. */
void launch_settled(void);
/* 0 when what the work names exists (still, when a graph replays it), else the error. */
int copy_check(const struct copy_request *copy);
/* The copy that CUDA_MEMCPY3D means; arrays must exist. */
int copy3d_request(const hewn_cu_memcpy3d *c, struct copy_request *out);
/* A whole call: copies at once (and synchronises), or in `stream` when `async`. */
int copy_submit(const struct copy_request *request, bool async, hewn_cu_stream stream);
int fill_check(const struct fill_request *fill);
int mem_ops_check(unsigned count, const hewn_cu_mem_op *ops, unsigned flags);
void copy_execute(const struct copy_request *copy);
void fill_execute(const struct fill_request *fill);
/* From *next on, which moves; 600 where a wait is not over yet. */
int mem_ops_execute(unsigned count, const hewn_cu_mem_op *ops, unsigned *next);
int graph_execute(struct CUctx_st *context, struct CUgraphExec_st *exec);
/* Calls a function of the program's, which may not call the driver. */
void host_execute(void (*function)(void *user), void *user);

/* The stream behind a handle (NULL and the special ones included), or NULL. */
struct CUstream_st *stream_named(struct CUctx_st *context, hewn_cu_stream handle);
/* The range's nearest priority. */
int stream_priority(int asked);
/* sm_count: of the part of the device that its launches have; 0: all. */
int stream_new(struct CUctx_st *context, unsigned flags, int priority, struct CUgreenCtx_st *green,
               uint32_t sm_count, hewn_cu_stream *stream);
void stream_destroy(struct CUstream_st *stream);
/* What a stream holds, which goes before the stream or its context does. */
void stream_clear(struct CUstream_st *stream);
void event_destroy(struct CUevent_st *event);
/* In a capturing stream the event stands for what was recorded so far; `stream` NULL: in none. */
int event_record(struct CUevent_st *event, struct CUstream_st *stream);
/* Enters a call about a stream. */
int enter_stream(struct call *call, unsigned needs, hewn_cu_stream handle,
                 struct CUstream_st **stream);

/* ---- work that cannot run yet: cuda_deferred.c ---- */

/* True when what the stream does next has to wait for something pending. */
bool deferred_before(const struct CUstream_st *stream);
/* True when work of the stream itself is pending. */
bool deferred_of(const struct CUstream_st *stream);
/* True when a record of the event is pending. */
bool deferred_event(const struct CUevent_st *event);
/* Takes over what the work owns. */
int deferred_work(struct CUstream_st *stream, struct work *work);
int deferred_record(struct CUstream_st *stream, struct CUevent_st *event);
int deferred_wait(struct CUstream_st *stream, struct CUevent_st *event);
/* Runs what can run by now. */
void deferred_progress(void);
/* Forgets all work of the context. */
void deferred_clear(const struct CUctx_st *context);
/* The host waits until nothing before the stream's next work, of the context, or of the event's record
 * is pending. The lock is free meanwhile. */
void deferred_finish_stream(const struct CUstream_st *stream);
void deferred_finish_context(const struct CUctx_st *context);
void deferred_finish_event(const struct CUevent_st *event);

/* ---- captures and graphs ---- */

/* True, and the captures concerned invalid, when one forbids this thread an unsafe call. */
bool capture_forbids(void);
/* 906 when `stream` is the legacy stream and would have to wait for a capturing one, else 0. */
int capture_implicit(const struct CUstream_st *stream);
void capture_invalidate(struct capture *capture);
/* Records what the work does, and takes over what it owns. */
int capture_work(struct CUstream_st *stream, struct work *work);
/* A node of any kind: capture_node makes it; once it is filled in, capture_node_done puts it behind
 * what the stream did. capture_failed takes it away again if rc is an error, and returns that. */
int capture_node(struct CUstream_st *stream, int type, struct CUgraphNode_st **out);
int capture_node_done(struct CUstream_st *stream, struct CUgraphNode_st *node);
int capture_failed(struct CUgraphNode_st *node, int rc);
int capture_event(struct CUevent_st *event, const struct CUstream_st *stream);
/* Nodes for an event that is recorded or waited for by whoever launches the graph. */
int capture_external(struct CUstream_st *stream, struct CUevent_st *event, bool record);
/* Nodes for memory allocated and freed in stream order. */
int capture_alloc(struct CUstream_st *stream, size_t bytes, hewn_cu_deviceptr *address);
int capture_free(struct CUstream_st *stream, hewn_cu_deviceptr address);
void event_leaves(struct CUevent_st *event);
void graph_destroy(struct CUgraph_st *graph);
void exec_destroy(struct CUgraphExec_st *exec);
/* All graphs, instances and user objects, when the driver goes. */
void graphs_free_all(void);
void greens_free_all(void);
void user_objects_free_all(void);
/* A stream goes away, or joins the capture of an event it waits for. */
void capture_leave(struct CUstream_st *stream);
int capture_join(struct CUstream_st *stream, const struct CUevent_st *event);

/* ---- memory ---- */

/* Tracks a range of any kind, or frees one. */
int memory_track(struct CUctx_st *context, uint64_t address, uint64_t bytes, enum memory_kind kind,
                 unsigned flags);
void memory_release(struct memory *m);
/* The tracked range that begins at `address`, or NULL. */
struct memory *memory_named(uint64_t address);
/* Pinned, registered or managed: the host may read and write it while launches run. */
bool memory_is_hosts(const struct memory *m);
bool memory_of_host(uint64_t address);
/* Whether this process shares memory with others, and whether the address lies in such memory: cuda_ipc.c. */
bool ipc_shares(void);
bool ipc_shared(uint64_t address);
/* True for bytes that a graph has the addresses of, allocated or not. */
bool graph_memory_around(uint64_t address, uint64_t bytes);
int memory_from_pool(struct CUctx_st *context, struct CUmemPoolHandle_st *pool, uint64_t bytes,
                     hewn_cu_deviceptr *address);

/* ---- pools and virtual memory ---- */

/* The device's pool for allocations that name none, or NULL: no memory. */
struct CUmemPoolHandle_st *pool_current(void);
/* Counts an allocation in (0 or 2; 2 for NULL too) and out. */
int pool_take(struct CUmemPoolHandle_st *pool, uint64_t bytes);
void pool_give(struct CUmemPoolHandle_st *pool, uint64_t bytes);
void pools_free_all(void);
void virtual_free_all(void);
/* Frees device memory of any kind: 0, or 1 for what is none. */
int memory_free(hewn_cu_deviceptr address);
/* The same in the order of that stream; NULL: of the one that works now. */
int memory_free_after(struct CUstream_st *stream, hewn_cu_deviceptr address);
int memory_for_stream(struct CUstream_st *stream, struct CUmemPoolHandle_st *pool, uint64_t bytes,
                      hewn_cu_deviceptr *address);
/* Takes the pages of a graph's allocation back. */
void graph_memory_release(uint64_t address);
/* True when [address, address+bytes) lies in one range of device-visible memory; without `device`
 * also when it begins in none, and so is plain host memory. */
bool memory_holds(uint64_t address, uint64_t bytes, bool device);

#endif
