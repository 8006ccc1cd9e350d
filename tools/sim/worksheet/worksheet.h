/*
 * The worksheet of a launch: who issues what, who writes and reads which storage, what the barriers
 * count, and which wait stands before a buffer's reading and its next overwrite (the table that
 * stands on top of our kernels, from a run). Three parts fill it from events: counts and storage
 * (worksheet.c), barriers and lifetimes (worksheet_flow.c); two read it: worksheet_text.c writes its
 * rows, worksheet_declared.c holds it against what the source declares.
 *
 * Everything in a sheet is a sum, a minimum, a maximum or a union over what happened, so that neither
 * the order of events nor that of groups shows. Its size is bounded by the kernel (instructions,
 * warps, bytes of shared memory), not by how long it runs.
 */
#ifndef SIM_WORKSHEET_H
#define SIM_WORKSHEET_H

#include "decode/names.h"
#include "async/kind.h"
#include "machine/event.h"

#include <stdio.h>

/*
 * Who touches storage or signals a barrier: a warp's threads themselves, or an operation that they
 * issued, by kind: name in notes, what tables call it. The rest follow enum async_kind.
 */
#define AGENT_KINDS(X)            \
    X(THREADS, "", "")            \
    X(LOAD, "tma", "TMA load")    \
    X(STORE, "tma", "TMA store")  \
    X(CP_ASYNC, "cp", "cp.async") \
    X(REMOTE, "remote", "remote") \
    X(MMA, "mma", "MMA")          \
    X(COPY, "copy", "tcgen05.cp") \
    X(COMMIT, "commit", "commit") \
    X(LD, "ld", "tcgen05.ld")     \
    X(ST, "st", "tcgen05.st")

enum agent_kind {
#define X(name, note, text) AGENT_##name,
    AGENT_KINDS(X)
#undef X
        AGENTS
};
_Static_assert(AGENTS == ASYNC_KINDS + 1, "agents follow enum async_kind");

enum { SHEET_GRAIN = 4 /* bytes of shared memory told apart */, SHEET_SETS = 1 << 16 };
#define NO_INSN UINT32_MAX

/* Warps, by kind of agent: [0] reads, [1] writes. */
struct agents {
    uint32_t warps[2][AGENTS];
};

/* What a grain of shared memory, or a column of tensor memory, has seen. */
struct sheet_cell {
    uint32_t set;  /* of sheet.sets; 0: untouched */
    uint32_t made; /* first instruction of the text that writes it, NO_INSN none */
};

/* What one warp executed of one instruction, or issued by it. */
struct sheet_count {
    uint32_t insn, warp;
    uint32_t lanes; /* that ever did */
    uint64_t lane_steps, bytes;
};

struct sheet_bounds {
    uint64_t low, high; /* low > high: none yet */
};

/* A barrier, over all CTAs; barriers are enum barrier_kind. */
struct sheet_barrier {
    uint8_t kind;
    uint32_t key;  /* mbarrier: window offset; named barrier: its number */
    uint32_t made; /* first instruction that initialised it (named: arrived) */
    struct sheet_bounds count, phases, arrivals,
        bytes;                             /* of an init, of a CTA; of a phase, twice */
    uint32_t producers[AGENTS], consumers; /* warps */
};

/* What stood between a range's writing and its reading, or between its reading and its overwriting. */
enum link_what { LINK_FILLED, LINK_FREED };
#define LINK_KINDS(X) X(MBAR) X(NAMED) X(CLUSTER) X(GROUP) X(OWN) X(OTHER)
enum link_by {
#define X(name) BY_##name,
    LINK_KINDS(X)
#undef X
};
struct sheet_link {
    uint8_t what; /* enum link_what */
    uint8_t by;   /* OWN: program order of one warp; OTHER: no single wait; GROUP: id is its insn */
    bool tensor, named;
    uint32_t range; /* named: which buffer or columns; else the instruction that writes it */
    uint32_t id;    /* barrier key or instruction */
};

/* From a key, not 0, to an index. */
struct sheet_map {
    uint64_t *keys;
    uint32_t *values;
    size_t size, count;
};

struct sheet {
    const struct launch *launch;
    struct agents *sets;
    struct sheet_count *counts;
    struct sheet_barrier *barriers;
    struct sheet_link *links;
    struct sheet_map set_map, count_map, barrier_map, link_map;
    struct sheet_cell *shared; /* by grain of the window */
    uint32_t shared_grains;
    struct sheet_cell tmem[TMEM_COLUMNS];
    struct sheet_bounds registers[CTA_WARPS]; /* as setmaxnreg left them */
    struct sheet_bounds tmem_columns;         /* that one allocation took */
    bool exhausted;                           /* of memory, or SHEET_SETS */
};

/* ---- worksheet.c ---- */

bool sheet_open(struct sheet *s, const struct launch *l);
void sheet_close(struct sheet *s);
struct sheet_barrier *sheet_barrier(struct sheet *s, uint8_t kind, uint32_t key);
void sheet_link(struct sheet *s, struct sheet_link link);
void bounds_take(struct sheet_bounds *b, uint64_t value);
void bounds_merge(struct sheet_bounds *b, const struct sheet_bounds *other);
/* The value of a key, made as `fresh` where there is none; NULL: no memory. */
uint32_t *map_at(struct sheet_map *m, uint64_t key, uint32_t fresh);
void map_clear(struct sheet_map *m);
uint32_t sheet_insn(const struct sheet *s, const struct insn *in);
enum agent_kind agent_of(const struct event *e);

/* ---- worksheet_flow.c: barriers and lifetimes of one group ---- */

struct flow;
struct flow *flow_new(struct sheet *s);
/* Closes what still runs into the sheet. */
void flow_end(struct flow *f);
void flow_free(struct flow *f);
void flow_event(struct flow *f, const struct event *e);
/* `bytes` at `first` (tensor: columns) touched. */
void flow_touch(struct flow *f, const struct event *e, bool write, uint32_t first, uint32_t bytes);

/* ---- worksheet_view.c: a sheet, put in order and named ---- */

enum { VIEW_NAME = 80, VIEW_TEXT = 1024 };

struct view_role {
    char name[VIEW_NAME];
    uint32_t warps;
};

/* A line of the storage table. */
struct view_range {
    char name[VIEW_NAME]; /* "ring_a", "shared+0x400 (line 214)" */
    bool tensor, named;
    uint32_t index;               /* of the kernel's buffers or columns, where named */
    uint32_t first, bytes, count; /* window offset and bytes of an element, or columns; elements */
    uint32_t made;                /* first instruction that writes it, NO_INSN none */
    struct agents agents;
};

/* A line of the handoff table: a barrier, an array of them, or alike neighbours. */
struct view_handoff {
    char name[VIEW_NAME]; /* "full_bar", "shared+0x400 (line 150)", "barrier 1" */
    uint32_t count;
    struct sheet_barrier all; /* of all of them; key is the first's */
};

struct sheet_view {
    struct sheet *sheet;
    const struct kernel *kernel;
    struct view_role roles[CTA_WARPS]; /* by first warp */
    uint32_t role_count;
    struct view_range *ranges; /* shared by offset, then tensor by column */
    uint32_t range_count, range_capacity;
    struct view_handoff *handoffs; /* mbarriers by offset, named ones, the cluster's */
    uint32_t handoff_count;
};

/* False: no memory. To be closed either way. Sorts the sheet. */
bool view_open(struct sheet_view *v, struct sheet *s);
void view_close(struct sheet_view *v);
/* Adds to a list "a, b", once. */
void join(char *out, size_t size, const char *item);
/* "producer, mma"; "all" where there are more than two */
char *roles_text(const struct sheet_view *v, uint32_t warps, char *out, size_t size);
/* "TMA load (producer), epilogue" */
char *agents_text(const struct sheet_view *v, const uint32_t warps[AGENTS], char *out, size_t size);
/* "0-3", "0-3,5" */
char *warps_text(uint32_t warps, char *out, size_t size);
/* Name of a note's word for an agent kind; kinds may share one. */
const char *agent_note(enum agent_kind kind);

/* ---- worksheet_text.c ---- */

/* A JSON string. */
void put_json(FILE *out, const char *text);
/* Writes the sheet's rows. */
void sheet_write(const struct sheet_view *v, uint64_t number, FILE *out);

/* ---- worksheet_declared.c ---- */

/* Writes each difference between notes and sheet, what the run did not show, and the sum. */
void sheet_compare(const struct sheet_view *v, uint64_t number, FILE *out);

/* ---- for whoever launches (worksheet.c) ---- */

/* Makes a worksheet of the launch, which it watches. NULL: no memory. */
struct worksheet *worksheet_attach(struct launch *l);
/* The launch is over: appends the sheet's rows to the file as JSON lines; `number` counts launches of the
 * process. What cannot be written is said on stderr. Frees the worksheet. */
void worksheet_end(struct worksheet *w, uint64_t number, const char *path);

#endif
