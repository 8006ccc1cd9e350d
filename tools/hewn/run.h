/*
 * hewn run: a PTX file without host code. What a run needs is said in statements, one notation for two
 * places: a line  //@ run: STATEMENT; STATEMENT …  of the PTX itself, and an option  --WORD "REST"  on
 * the command line, which comes later and so overrides. A line  //@ run NAME: …  counts only where
 * macro NAME was defined by -D. The notation is described in usage.def.
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "cli.h"

enum {
    RUN_NAME = 64,
    RUN_PATH = 512,
    RUN_RANK = 5,
    RUN_BUFFERS = 32,
    RUN_MAPS = 96,
    RUN_PARAMS = 96,
    RUN_LAUNCHES = 48,
    RUN_OUTPUTS = 16,
    RUN_DEFINES = 16
};

/* name, bytes, the type in .npy headers, enum hewn_tensormap_dtype (-1: no tensor map has it) */
#define RUN_DTYPES(X)                      \
    X(u8, 1, "|u1", HEWN_TENSORMAP_U8)     \
    X(s8, 1, "|i1", -1)                    \
    X(u16, 2, "<u2", HEWN_TENSORMAP_U16)   \
    X(s16, 2, "<i2", -1)                   \
    X(u32, 4, "<u4", HEWN_TENSORMAP_U32)   \
    X(s32, 4, "<i4", HEWN_TENSORMAP_I32)   \
    X(u64, 8, "<u8", HEWN_TENSORMAP_U64)   \
    X(s64, 8, "<i8", HEWN_TENSORMAP_I64)   \
    X(f16, 2, "<f2", HEWN_TENSORMAP_F16)   \
    X(bf16, 2, "<V2", HEWN_TENSORMAP_BF16) \
    X(f32, 4, "<f4", HEWN_TENSORMAP_F32)   \
    X(f64, 8, "<f8", HEWN_TENSORMAP_F64)

enum run_dtype {
#define X(name, bytes, npy, tm) RUN_##name,
    RUN_DTYPES(X)
#undef X
        RUN_DTYPE_COUNT
};

struct run_dtype_info {
    const char *name;
    size_t bytes;
    const char *npy;
    int tm;
};
extern const struct run_dtype_info run_dtypes[RUN_DTYPE_COUNT];

/* What a buffer begins with, or is expected to hold in the end. */
enum run_init_kind {
    INIT_ZEROS,
    INIT_RANDOM,
    INIT_IOTA,
    INIT_CONST,
    INIT_FILE,
    INIT_SAME,
    INIT_MATMUL
};
struct run_init {
    int kind;
    bool bounded;        /* random: its low bound is given */
    double value[3];     /* random: low, high, seed; iota: start, step; const: value */
    char path[RUN_PATH]; /* file */
    int of[2];           /* same, matmul: buffers */
};

struct run_buffer {
    char name[RUN_NAME];
    int dtype, rank;
    uint64_t dim[RUN_RANK], count; /* dim[0] is the slowest, as in NumPy */
    struct run_init init;
    void *start; /* initial contents */
    uint64_t device;
};

struct run_map {
    char name[RUN_NAME];
    int buffer, tm_dtype, rank; /* dimension 0 is the fastest from here on */
    uint64_t offset;            /* bytes into the buffer */
    uint64_t dim[RUN_RANK], stride[RUN_RANK - 1];
    uint32_t box[RUN_RANK], step[RUN_RANK];
    int swizzle, interleave, l2, oob;
    bool im2col;
    int lower[RUN_RANK - 2], upper[RUN_RANK - 2];
    uint32_t channels, pixels;
    uint64_t device; /* where a kernel takes it by address */
    unsigned char encoded[sizeof(hewn_tensormap)];
};

struct run_launch {
    char entry[RUN_NAME]; /* "": the text's only one */
    uint32_t grid[3], block[3], cluster[3], shared;
    bool programmatic, cooperative;
    uint32_t param_count;
    char param[RUN_PARAMS][RUN_NAME];
};

struct run_output {
    int buffer;
    bool write; /* to `path`; else compared with `want` */
    char path[RUN_PATH];
    struct run_init want;
    double tolerance; /* of a comparison; 0: equal */
};

struct run {
    const char *path; /* of the PTX */
    char gpu[16];     /* "": by the text's target */
    struct run_buffer buffer[RUN_BUFFERS];
    struct run_map map[RUN_MAPS];
    struct run_launch launch[RUN_LAUNCHES], next; /* next: as the statements so far describe it */
    struct run_output output[RUN_OUTPUTS];
    int buffers, maps, launches, outputs;
    const char *defines[RUN_DEFINES]; /* NAME or NAME=VALUE */
    int define_count;
    char *text; /* what the driver gets: preprocessed, NUL-terminated */
};

/* "hewn run: WHERE: …" on stderr. */
void run_say(const char *where, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, and -1. A macro, so that readers and analysers see the value. */
#define run_fail(...) (run_say(__VA_ARGS__), -1)

/* ---- run_text.c: statements ---- */

/* One statement ("buf a f32[4,32] random"); `where` says where it stands. 0 or -1. */
int run_statement(struct run *r, const char *where, const char *statement);
/* Every  //@ run:  line of the source text. */
int run_notes(struct run *r, const char *source);
/* Whether `word` begins a statement, so that --word is an option. */
bool run_is_word(const char *word);
int run_buffer_named(const struct run *r, const char *name);
int run_map_named(const struct run *r, const char *name);

/* ---- run_ptx.c: the text ---- */

/* Reads r->path, preprocesses it where it uses directives, and leaves r->text; `source` receives the
 * file as it is, for its notes. The caller frees both. */
int run_read(struct run *r, char **source);
/* A copy of r->text that says by a line marker where it comes from; NULL where it says so itself, or cannot. */
char *run_named_text(const struct run *r);
/* The word after .target, and whether the text declares one. */
bool run_target(const char *text, char target[RUN_NAME]);

struct run_param {
    char name[RUN_NAME], type[8];
    uint32_t bytes, align;
};
/* Entry `name` ("": the first) and its parameters. Returns how many, or -1 after run_fail. */
int run_entry(const struct run *r, const char *name, char entry[RUN_NAME],
              struct run_param params[RUN_PARAMS]);

/* ---- run_data.c: contents ---- */

/* Fills `out` (b->count elements of b->dtype) as `init` says. */
int run_fill(const struct run *r, const struct run_buffer *b, const struct run_init *init,
             void *out);
/* Compares with what is expected; -1 after saying where they differ most. */
int run_compare(const struct run *r, const struct run_output *o, const void *got);
int run_write(const struct run *r, const struct run_output *o, const void *got);

/* ---- run_exec.c: the driver ---- */

enum run_step { STEP_OPEN, STEP_LOAD, STEP_MAPS, STEP_LAUNCH, STEP_SYNC, STEP_RESULTS, STEP_OVER };
struct run_outcome {
    enum run_step step; /* STEP_OVER: everything done; else where it ended */
    int result;         /* the driver's, 0 where the driver refused nothing */
    bool simulated, wrong, compared;
    char message[1024];
};
/* One run from opening the driver to comparing results. `quiet`: no driver line. */
void run_execute(struct run *r, bool quiet, struct run_outcome *out);

#endif
