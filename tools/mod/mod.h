/*
 * The module builder: build/mod turns one preprocessed kernel text into everything a module ships.
 *
 *   mod ptx      TARGET NAME TEXT ROOT OUT           preprocessed text -> loadable PTX
 *   mod vet      LOG                                 fails when ptxas complained or spilled
 *   mod manifest TARGET NAME PTX VALIDATED OUT [ARCH=LOG]...    PTX + ptxas logs -> JSON
 *   mod embed    TARGET NAME PTX MANIFEST OUT [ARCH=CUBIN]...   all of it -> one C file
 *
 * Every function here returns 0, or -1 after saying on stderr what is wrong with which file.
 */
#ifndef MOD_H
#define MOD_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* ---- text.c: whole files ---- */

struct text {
    char *data; /* NUL-terminated; may hold further NULs */
    size_t size;
};

int text_read(struct text *text, const char *path);
void text_free(struct text *text);
/* Opens for writing; NULL after a message. text_close also reports a failed write. */
FILE *text_create(const char *path);
int text_close(FILE *file, const char *path);
int complain(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One line of a text, without its newline; advances *cursor. Returns 0 at the end. */
int text_line(const char **cursor, const char **line, size_t *length);

/* ---- plan.c: what ptx/<target>/gemm.plan.h says, as data ---- */

struct plan_range { /* a role, a shared range or a range of TMEM columns */
    const char *name;
    unsigned first, size, count;
};

struct plan_handoff { /* a barrier; who: roles joined by + */
    const char *name;
    unsigned count, bytes;
    const char *producers, *consumers;
};

struct plan_flow { /* who writes and who reads storage: roles and their operations joined by + */
    const char *name, *writers, *readers;
};

struct plan_scalar {
    const char *name, *rule;
};

struct plan {
    const char *target, *family;
    unsigned tile_m, tile_n, tile_k, stages, threads, dynamic_shared, tmem_columns, cluster,
        ctas_per_sm, raster_rows, d_rows;
    const struct plan_range *roles, *shared, *tmem; /* ended by a NULL name, as are the next */
    const struct plan_handoff *handoffs;
    const struct plan_flow *flows;
};

/* A module's plan and dtypes ("gemm_bf16_f32": bf16 in, f32 out), or -1: not in modules.def. */
struct module_id {
    const struct plan *plan;
    const char *target, *name;
    char in[8], out[8];
};
int plan_find(struct module_id *id, const char *target, const char *name);

extern const char *const plan_maps[];           /* tensor map parameters, ended by NULL */
extern const struct plan_scalar plan_scalars[]; /* ended by a NULL name */

/* ---- ptx.c: preprocessed text as a driver takes it ---- */

/* The .version line, which goes first; `path` is what messages name. */
int ptx_version(FILE *out, const struct text *text, const char *path);
/* All the rest, with a marker  # N "file"  wherever the next line does not follow the last one. File
 * names become relative to `root`; NULL leaves them as they are. */
int ptx_body(FILE *out, const struct text *text, const char *root);

/* ---- scan.c: what a PTX text and a ptxas log say ---- */

enum { SCAN_PARAMS = 16, SCAN_NAME = 64 };

struct scan_param {
    char name[SCAN_NAME], type[8];
    unsigned offset, size, align, is_array;
};

struct scan {
    char version[8], target[16], entry[SCAN_NAME];
    unsigned block[3];
    struct scan_param params[SCAN_PARAMS];
    unsigned param_count, param_bytes;
};
int scan_ptx(struct scan *scan, const struct text *ptx, const char *path);

struct ptxas_log {
    unsigned registers, static_shared, stack, spill_stores, spill_loads;
};
int scan_log(struct ptxas_log *log, const char *path);

/* Splits "ARCH=FILE" in place; NULL when there is no '='. */
char *split_pair(char *pair);

/* ---- the commands ---- */

int make_ptx(int argc, char **argv);
int make_vet(int argc, char **argv);
int make_manifest(int argc, char **argv);
int make_embed(int argc, char **argv);

#endif
