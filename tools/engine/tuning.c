/*
 * Tuning: before a model's first plan, the table is read; each product that is planned is tuned on memory of its own;
 * then the table is written. Matrices B are taken in turn from more memory than L2 holds, as layers' weights are.
 */
#include "tuning.h"

#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `few` has at most EARLY_ROWS rows. */
enum { EARLY = 5, EARLY_ROWS = 64 };
/* BLOCK bytes of random numbers are copied at a time. Slices of K may take WORKSPACE bytes. */
enum { BLOCK = 1 << 22, WORKSPACE = 1 << 26, FILE_MOST = 1 << 24, COPIES_MOST = 256 };
/* Twice the L2 of a Blackwell. Simulated devices tell no times. */
static const uint64_t beyond_l2 = UINT64_C(1) << 28;

/* ---- the file -- */

/* The text of a file, to be freed by the caller; NULL if it does not exist and need not. */
static int read_text(const char *path, bool may_lack, char **text, size_t *length,
                     struct problem *p)
{
    FILE *f = fopen(path, "rb");
    *text = NULL;
    *length = 0;
    if (!f && may_lack && errno == ENOENT) return 0;
    if (!f) return problem(p, "tuning: %s: %s", path, strerror(errno));
    *text = malloc(FILE_MOST);
    if (*text) *length = fread(*text, 1, FILE_MOST, f);
    const bool failed = ferror(f);
    fclose(f);
    if (*text && !failed && *length < FILE_MOST) return 0;
    free(*text);
    return problem(p, "tuning: %s: %s", path,
                   !*text   ? "no memory to read it"
                   : failed ? "it cannot be read"
                            : "it is too long for a table");
}

/* The name of the file that becomes the table, to be freed by the caller. */
static char *beside(const char *path, struct problem *p)
{
    const size_t room = strlen(path) + sizeof ".new";
    char *name = malloc(room);
    if (name)
        snprintf(name, room, "%s.new", path);
    else
        problem(p, "tuning: no memory");
    return name;
}

/* Into another file first, so that nobody reads half a table. */
static int write_text(const char *path, const char *text, size_t length, struct problem *p)
{
    char *name = beside(path, p);
    FILE *f;
    int failed;
    if (!name) return -1;
    f = fopen(name, "wb");
    failed = !f || fwrite(text, 1, length, f) != length;
    if (f) failed = fclose(f) || failed;
    failed = failed || rename(name, path);
    if (failed) {
        problem(p, "tuning: %s: %s", path, strerror(errno));
        remove(name);
    }
    free(name);
    return failed ? -1 : 0;
}

/* Before tuning, which takes seconds. */
static int check_writable(const char *path, struct problem *p)
{
    char *name = beside(path, p);
    FILE *f;
    int failed = 0;
    if (!name) return -1;
    f = fopen(name, "wb");
    if (!f)
        failed = problem(p, "tuning: %s cannot be written: %s", path, strerror(errno));
    else
        fclose(f);
    if (f) remove(name);
    free(name);
    return failed;
}

int tuning_open(struct tuning *t, struct gpu *gpu, const struct model_options *options,
                struct problem *p)
{
    hewn_error err;
    size_t length;
    char *text;
    int failed;
    *t = (struct tuning){.gpu = gpu, .options = options};
    if (options->tune && !options->tuning)
        return problem(p, "tune: name the file to write with --tuning");
    if (options->tune && options->ranks)
        return problem(p, "tune: not for several ranks, which must use the same kernels; tune "
                          "a model of a rank's sizes on one GPU");
    if (options->tune && options->invariant)
        return problem(p, "tune: invariant steps do not use a table");
    if (!options->tuning) return 0;
    if (options->tune && check_writable(options->tuning, p)) return -1;
    if (read_text(options->tuning, options->tune, &text, &length, p)) return -1;
    failed = hewn_gemm_table_create(&t->table, &err) ||
             (text && hewn_gemm_table_read(t->table, text, length, &err));
    free(text);
    return failed ? problem(p, "tuning: %s: %s", options->tuning, err.message) : 0;
}

int tuning_save(const struct tuning *t, struct problem *p)
{
    hewn_error err = {0};
    size_t length = 0;
    char *text;
    int failed;
    if (!t->options->tune) return 0;
    hewn_gemm_table_write(t->table, NULL, 0, &length, &err);
    text = malloc(length + 1);
    if (!text) return problem(p, "tuning: no memory");
    failed = hewn_gemm_table_write(t->table, text, length + 1, &length, &err)
                 ? problem(p, "tuning: %s", err.message)
                 : write_text(t->options->tuning, text, length, p);
    free(text);
    return failed;
}

/* ---- memory -- */

/* Signs, fractions and sizes of 2^-7, as bf16; as e4m3 any finite value of sixteen sizes. A last bit of 0 leaves out
 * 0x7F, which is NaN as e4m3: with it, every sum would be NaN. */
static void random_block(uint16_t *block)
{
    uint64_t state = 1;
    for (size_t i = 0; i < BLOCK / sizeof *block; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        block[i] = (uint16_t)((state >> 33 & 0x807E) | 0x3C00);
    }
}

static int fill(const struct tuning *t, const struct tuning_room *r, struct problem *p)
{
    uint16_t *block = malloc(BLOCK);
    int failed = block ? 0 : problem(p, "tuning: no memory");
    if (block) random_block(block);
    for (uint64_t at = 0; !failed && at < r->bytes; at += BLOCK) {
        const uint64_t left = r->bytes - at;
        failed =
            gpu_check(t->gpu,
                      t->gpu->to_device(r->base + at, block, (size_t)(left < BLOCK ? left : BLOCK)),
                      "tuning", p);
    }
    free(block);
    return failed;
}

/* At least so many bytes. */
static int make_room(const struct tuning *t, struct tuning_room *r, uint64_t bytes, bool random,
                     struct problem *p)
{
    const struct gpu *g = t->gpu;
    if (r->bytes >= bytes) return 0;
    if (r->base) g->release(r->base);
    *r = (struct tuning_room){0};
    if (gpu_check(g, g->alloc(&r->base, (size_t)bytes), "memory to tune in", p)) return -1;
    r->bytes = bytes;
    return random ? fill(t, r, p) : gpu_check(g, g->fill(r->base, 0, (size_t)bytes), "tuning", p);
}

/* ---- products -- */

static uint64_t bytes_of(int64_t rows, int64_t stride, int64_t columns, int type)
{
    return (uint64_t)rows * (uint64_t)(stride ? stride : columns) * hewn_dtype_size(type);
}

/* Copies of B that do not fit in L2 together, a multiple of 256 bytes apart. */
static uint64_t copies_of(const struct tuning *t, uint64_t bytes)
{
    hewn_device_info info = {.struct_size = sizeof info};
    hewn_error err;
    const uint64_t copies = (beyond_l2 + bytes - 1) / bytes;
    if (hewn_context_describe_device(t->gpu->context, &info, &err) || info.simulated) return 1;
    return copies < COPIES_MOST ? copies : COPIES_MOST;
}

/*
 * `few` reads its weights before the kernel ahead of it has ended. In a step that kernel is short and leaves memory
 * idle, so `few` gains more there than among launches of one product. It is taken if it is at most EARLY percent slower
 * than the fastest: on an H200, 64 x 4096 x 14336 and 64 x 4096 x 4096 in e4m3 took 3.8 and 0.1 % longer by it, and the
 * steps of an 8B model 1.1 % less. 0, or -1 after an error.
 */
static int prefer_early(struct tuning *t, const hewn_gemm_desc *d, const hewn_gemm_tune_args *how,
                        hewn_gemm_tuned *best, hewn_error *err)
{
    hewn_gemm_desc named = *d;
    hewn_gemm_tuned early = {.struct_size = sizeof early};
    if (d->m > EARLY_ROWS || d->act == HEWN_ACT_SWIGLU || !strcmp(best->variant, "few")) return 0;
    named.variant = "few";
    if (hewn_gemm_tune(t->gpu->context, &named, how, NULL, &early, err)) return 0; /* has none */
    if (early.seconds > best->seconds * (1.0 + EARLY / 100.0)) return 0;
    named.parts = early.parts;
    named.slices = early.slices;
    early.tried = best->tried;
    early.chosen_seconds = best->chosen_seconds;
    *best = early;
    return hewn_gemm_tune(t->gpu->context, &named, how, t->table, NULL, err) ? -1 : 0;
}

static int tune(struct tuning *t, const hewn_gemm_desc *d, hewn_gemm_tuned *out, struct problem *p)
{
    const uint64_t b_bytes = (bytes_of(d->n, d->ldb, d->k, d->in) + 255) / 256 * 256 *
                             (d->act == HEWN_ACT_SWIGLU ? 2 : 1);
    const uint64_t copies = copies_of(t, b_bytes);
    const int64_t longest = d->m > d->n ? d->m : d->n;
    hewn_error err;
    if (make_room(t, &t->a, bytes_of(d->m, d->lda, d->k, d->in), true, p) ||
        make_room(t, &t->b, copies * b_bytes, true, p) ||
        make_room(t, &t->d, bytes_of(d->m, d->ldd, d->n, d->out), false, p) ||
        make_room(t, &t->zeros, (uint64_t)longest * sizeof(float), false, p) ||
        make_room(t, &t->workspace, WORKSPACE, false, p))
        return -1;
    const uint32_t scales = HEWN_GEMM_WITH_SCALE_ROWS | HEWN_GEMM_WITH_SCALE_COLUMNS;
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = t->a.base,
                                 .b = t->b.base,
                                 .d = t->d.base,
                                 .c = d->with & HEWN_GEMM_WITH_C ? t->d.base : 0,
                                 .bias = d->with & HEWN_GEMM_WITH_BIAS ? t->zeros.base : 0,
                                 .scale_a = d->with & scales ? t->zeros.base : 0,
                                 .scale_b = d->with & scales ? t->zeros.base : 0,
                                 .beta = d->with & HEWN_GEMM_WITH_C ? 1.0f : 0.0f,
                                 .workspace = t->workspace.base};
    const hewn_gemm_tune_args how = {.struct_size = sizeof how,
                                     .args = &args,
                                     .stream = t->gpu->stream,
                                     .workspace_bytes = WORKSPACE,
                                     .copies = copies,
                                     .copy_stride = (int64_t)(b_bytes / hewn_dtype_size(d->in))};
    if (gpu_check(t->gpu, t->gpu->wait_all(), "tuning", p)) return -1;
    if (hewn_gemm_tune(t->gpu->context, d, &how, t->table, out, &err) ||
        prefer_early(t, d, &how, out, &err))
        return problem(p, "tuning a product of %lld x %lld x %lld: %s", (long long)d->m,
                       (long long)d->n, (long long)d->k, err.message);
    return 0;
}

static bool done_before(const struct tuning *t, const struct tuned_product *now)
{
    for (int i = 0; i < t->count; i++) {
        const struct tuned_product *q = &t->product[i];
        if (q->m == now->m && q->n == now->n && q->k == now->k && q->in == now->in &&
            q->out == now->out)
            return true;
    }
    return false;
}

int tuning_product(struct tuning *t, const hewn_gemm_desc *desc, struct problem *p)
{
    const struct tuned_product now = {desc->m, desc->n, desc->k, desc->in, desc->out};
    hewn_gemm_tuned tuned = {.struct_size = sizeof tuned};
    if (!t->options->tune || desc->batch > 1 || done_before(t, &now)) return 0;
    if (tune(t, desc, &tuned, p)) return -1;
    if (t->count < TUNING_PRODUCTS) t->product[t->count++] = now;
    if (t->options->tuned) t->options->tuned(desc, &tuned);
    return 0;
}

void tuning_close(struct tuning *t)
{
    struct tuning_room *const all[] = {&t->a, &t->b, &t->d, &t->zeros, &t->workspace};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->base) t->gpu->release(all[i]->base);
    hewn_gemm_table_destroy(t->table);
    *t = (struct tuning){0};
}
