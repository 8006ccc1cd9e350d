/*
 * The module builder: build/mod turns preprocessed kernel texts into everything that ships.
 *
 *   mod ptx      TARGET NAME TEXT ROOT OUT           preprocessed text -> loadable PTX
 *   mod vet      LOG                                 fails when ptxas complained or spilled
 *   mod manifest TARGET NAME PTX VALIDATED OUT [ARCH=LOG]...    PTX + ptxas logs -> JSON
 *   mod pack     TARGET OUT FOLDER ARCHS NAME...   modules with similar text and code -> C, compressed
 *   mod family   FAMILY OUT [TARGET/NAME]...         a family's list of modules -> C
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

/* ---- plan.c, plan_few.c, plan_attention.c, plan_decode.c, plan_grouped.c, plan_indexer.c, plan_mla.c, plan_w4.c: what the plan headers below ptx/ say, as data ---- */

struct plan_range { /* a role, a shared range or a range of TMEM columns */
    const char *name;
    unsigned first, size, count;
};

struct plan_handoff { /* a barrier; who: roles joined by + */
    const char *name;
    unsigned count, least, most; /* bytes of a phase */
    const char *producers, *consumers;
    unsigned more; /* arrivals that a run may have beside `count` */
};

struct plan_flow { /* who writes and who reads storage: roles and their operations joined by + */
    const char *name, *writers, *readers;
};

struct plan_scalar {
    const char *name, *rule;
};

struct gemm_shape {
    unsigned tile_m, tile_n;        /* of a CTA */
    unsigned row_bytes;             /* of an operand in a k-block */
    unsigned pair_m, pair_n, parts; /* CTAs that share loads, the most parts of K */
    unsigned stages, raster_rows, d_rows;
    unsigned can; /* GEMM_CAN_... */
    unsigned odd; /* 1: GEMM_ODD_MAPS */
    unsigned glu; /* 1: B has 2n rows, a tile of D half of tile_n columns */
    const char *variant_kind; /* in the list of variants; NULL: it is in none */
};

struct attention_shape {
    unsigned qk_dim, v_dim, element; /* the variant: head dimensions, bytes of an input element */
    unsigned tile_rows, item_tiles, v_halves, row_bytes, box_v, slots;
    int sums; /* promoted to fp32 */
};

struct decode_shape {
    unsigned qk_dim, v_dim, heads, element, tile_rows; /* the variant */
    unsigned slots, row_bytes;                         /* of a unit of K or V */
};

struct grouped_shape {
    unsigned tile_m, tile_n, stages, raster_rows, d_rows;
    unsigned scales; /* 0: of 128 columns of B; 1: of each; 2, 3: none, also none of A; 3: SwiGLU */
    int gather4;     /* 1: rows by number come by TMA, four at a time */
};

struct scaled_shape {
    const char *a, *scale;                /* dtypes */
    unsigned tile_m, tile_n, tile_k;      /* elements */
    unsigned load_m, load_n;              /* what a CTA loads of them */
    unsigned stages, raster_rows, d_rows; /* rows of an output box */
    unsigned vector, atoms, load_atoms;   /* elements of a scale; atoms along k, along n in a load */
    unsigned words;                       /* 1: scales are words of rows, no atoms */
};

struct indexer_shape {
    unsigned heads, queries; /* the variant */
    unsigned block, slots;   /* keys of a block, blocks of the ring */
};

struct w4_shape {
    const char *format; /* the variant */
    unsigned width;
    int zeros; /* 1: with zero points */
};

/* A kernel: of a module, or of several that differ in dtypes alone. */
struct plan {
    const char *target, *family, *text; /* ptx/<target>/<text>.ptx */
    unsigned threads, dynamic_shared, tmem_columns, cluster, ctas_per_sm;
    const char *const *maps;           /* tensor map parameters, ended by NULL */
    const struct plan_scalar *scalars; /* ended by a NULL name, as are the next */
    const struct plan_range *roles, *shared, *tmem;
    const struct plan_handoff *handoffs;
    const struct plan_flow *flows;
    const struct gemm_shape *gemm;           /* NULL unless of that family, */
    const struct attention_shape *attention; /* and so are these; others have none */
    const struct decode_shape *decode;
    const struct indexer_shape *indexer;
    const struct grouped_shape *grouped;
    const struct scaled_shape *scaled;
    const struct w4_shape *w4;
};

/* A module's plan and dtypes, or -1: not in modules.def. `out` is empty where a parameter chooses. */
struct module_id {
    const struct plan *plan;
    const char *target, *name;
    char in[8], out[8];
};
int plan_find(struct module_id *id, const char *target, const char *name);

/* The plans of gemm_<in>_<out>_few, .._glufew, .._oddfew and .._oddsmall, or NULL. */
const struct plan *plan_gemm_few(const char *target);
const struct plan *plan_gemm_glufew(const char *target);
const struct plan *plan_gemm_oddfew(const char *target);
const struct plan *plan_gemm_oddsmall(const char *target);
/* The plan of attention_<in>_<qk>_<v> or, with `sums`, of .._sums; `element` bytes an input element; or NULL. */
const struct plan *plan_attention(const char *target, unsigned qk, unsigned v, unsigned element,
                                  int sums);
const struct plan *plan_attention_combine(const char *target);
/* The plan of mla_<in> or mla_<in>_<variant>, or NULL. */
const struct plan *plan_mla(const char *target, const char *variant);

/* The plan of decode_<in>_<qk>_<v>_<rows>_x<heads>, or NULL. */
const struct plan *plan_decode(const char *target, const char *in, unsigned qk, unsigned v,
                               unsigned heads, unsigned element, unsigned rows);
/* The plan of indexer_<in>_<heads>_<queries>, and of topk_f32, or NULL. */
const struct plan *plan_indexer(const char *target, unsigned heads, unsigned queries);
const struct plan *plan_topk(const char *target);
/* The plan of grouped_<in>_<out>_<variant>, or NULL. */
const struct plan *plan_grouped(const char *target, const char *variant);
/* The plan of grouped_sum_<in>_<out>, or NULL. */
const struct plan *plan_grouped_sum(const char *target);
/* The plan of grouped_<kind of block-scaled inputs>_<out>_<variant>, or NULL. */
const struct plan *plan_scaled(const char *target, const char *kind, const char *out,
                               const char *variant);
/* The plan of w4_<in>_<format>_<width>, or NULL. */
const struct plan *plan_w4(const char *target, const char *format, unsigned width);
/* The plan of engine_<kernel>_<dtype>, or NULL. */
const struct plan *plan_engine(const char *target, const char *kernel);
/* The plan of the combine kernel `text`, decode_combine or mla_combine, or NULL. */
const struct plan *plan_combine(const char *target, const char *text);

/* ---- ptx.c: preprocessed text as a driver takes it ---- */

/* The .version line, which goes first; `path` is what messages name. */
int ptx_version(FILE *out, const struct text *text, const char *path);
/* All the rest, with a marker  # N "file"  wherever the next line does not follow the last one. File
 * names become relative to `root`; NULL leaves them as they are. */
int ptx_body(FILE *out, const struct text *text, const char *root);

/* ---- fold.c ---- */

/* Writes a line of PTX, its constant expressions as their values. */
void fold_line(FILE *out, const char *line, size_t length);

/* ---- scan.c: what a PTX text and a ptxas log say ---- */

enum { SCAN_PARAMS = 96, SCAN_NAME = 64 };

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

/* ---- manifest_*.c, plan_grouped.c, plan_indexer.c, plan_mla.c, plan_combine.c, plan_w4.c: what a manifest says of one text ---- */

/* Formula and dtypes. */
void gemm_write_problem(FILE *out, const struct module_id *id);
void attention_write_problem(FILE *out, const struct module_id *id);
void combine_write_problem(FILE *out, const struct module_id *id);
void gemm_combine_write_problem(FILE *out, const struct module_id *id);
void decode_write_problem(FILE *out, const struct module_id *id);
void mla_write_problem(FILE *out, const struct module_id *id);
void indexer_write_problem(FILE *out, const struct module_id *id);
void topk_write_problem(FILE *out, const struct module_id *id);
void grouped_write_problem(FILE *out, const struct module_id *id);
void grouped_sum_write_problem(FILE *out, const struct module_id *id);
void scaled_write_problem(FILE *out, const struct module_id *id);
void w4_write_problem(FILE *out, const struct module_id *id);
void engine_write_problem(FILE *out, const struct module_id *id);
/* The tensor maps, the tile and what else a launch needs of the kernel's shape, the grid. */
void gemm_write_shape(FILE *out, const struct module_id *id);
void attention_write_shape(FILE *out, const struct module_id *id);
void combine_write_shape(FILE *out, const struct module_id *id);
void gemm_combine_write_shape(FILE *out, const struct module_id *id);
void decode_write_shape(FILE *out, const struct module_id *id);
void mla_write_shape(FILE *out, const struct module_id *id);
void indexer_write_shape(FILE *out, const struct module_id *id);
void topk_write_shape(FILE *out, const struct module_id *id);
void grouped_write_shape(FILE *out, const struct module_id *id);
void grouped_sum_write_shape(FILE *out, const struct module_id *id);
void scaled_write_shape(FILE *out, const struct module_id *id);
void w4_write_shape(FILE *out, const struct module_id *id);
void engine_write_shape(FILE *out, const struct module_id *id);
void gemm_write_limits(FILE *out, const struct module_id *id);
void attention_write_limits(FILE *out, const struct module_id *id);
void combine_write_limits(FILE *out, const struct module_id *id);
void gemm_combine_write_limits(FILE *out, const struct module_id *id);
void decode_write_limits(FILE *out, const struct module_id *id);
void mla_write_limits(FILE *out, const struct module_id *id);
void indexer_write_limits(FILE *out, const struct module_id *id);
void topk_write_limits(FILE *out, const struct module_id *id);
void grouped_write_limits(FILE *out, const struct module_id *id);
void grouped_sum_write_limits(FILE *out, const struct module_id *id);
void scaled_write_limits(FILE *out, const struct module_id *id);
void w4_write_limits(FILE *out, const struct module_id *id);
void engine_write_limits(FILE *out, const struct module_id *id);

/* ---- the commands ---- */

int make_ptx(int argc, char **argv);
int make_vet(int argc, char **argv);
int make_manifest(int argc, char **argv);
int make_pack(int argc, char **argv);
int make_family(int argc, char **argv);

#endif
