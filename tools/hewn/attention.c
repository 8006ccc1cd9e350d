/* hewn attention: O = softmax(scale Q * transpose(K) + mask) * V from .npy or .safetensors files. */
#include "cli.h"
#include "npy.h"
#include "safetensors.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum input { Q, K, V, INPUTS };
static const char *const input_names[INPUTS] = {"Q", "K", "V"};

struct attention_options {
    const char *file[INPUTS]; /* .npy each, or file[0] alone: .safetensors */
    const char *tensor[INPUTS];
    int files;
    const char *out, *lse, *sink, *lengths, *table;
    int in_type, out_type, layout; /* in_type -1: by the files' */
    bool causal, invariant;
    int64_t left, right, splits;
    double scale, softcap;   /* 0: the default, none */
    double k_scale, v_scale; /* of 8-bit K and V; 0: 1 */
};

/* ---- options ---- */

static bool is_safetensors(const char *path)
{
    static const char suffix[] = ".safetensors";
    size_t n = strlen(path);
    return n >= sizeof suffix && !strcmp(path + n - (sizeof suffix - 1), suffix);
}

/* A whole number from `least` up to 2^31 - 1; `end` is what must follow it. */
static bool parse_number(const char **text, int64_t least, char end, int64_t *out)
{
    char *after;
    long long value;
    errno = 0;
    value = strtoll(*text, &after, 10);
    if (errno || after == *text || *after != end || value < least || value > INT32_MAX)
        return false;
    *text = after + 1;
    *out = value;
    return true;
}

static int parse_window(struct attention_options *o, const char *text)
{
    const char *at = text;
    if (!parse_number(&at, -1, ',', &o->left) || !parse_number(&at, -1, '\0', &o->right))
        return cli_usage("attention",
                         "--window takes L,R, keys seen before and after a query's position, -1: "
                         "all; not '%s'",
                         text);
    return 0;
}

static int parse_positive(const char *name, const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end || !isfinite(*out) || *out <= 0)
        return cli_usage("attention", "%s takes a number above 0, not '%s'", name, text);
    return 0;
}

static int parse_layout(struct attention_options *o, const char *text)
{
    if (!strcmp(text, "bshd"))
        o->layout = HEWN_LAYOUT_BSHD;
    else if (!strcmp(text, "bhsd"))
        o->layout = HEWN_LAYOUT_BHSD;
    else
        return cli_usage("attention", "--layout takes bshd or bhsd, not '%s'", text);
    return 0;
}

/* An option that takes a value. 0, EXIT_USAGE after cli_usage, or -1: no such option. */
static int parse_valued(struct attention_options *o, const char *name, const char *value)
{
    const char *at = value;
    if (!strcmp(name, "-o"))
        o->out = value;
    else if (!strcmp(name, "--lse"))
        o->lse = value;
    else if (!strcmp(name, "--sink"))
        o->sink = value;
    else if (!strcmp(name, "--lengths"))
        o->lengths = value;
    else if (!strcmp(name, "--table"))
        o->table = value;
    else if (!strcmp(name, "--k-scale"))
        return parse_positive(name, value, &o->k_scale);
    else if (!strcmp(name, "--v-scale"))
        return parse_positive(name, value, &o->v_scale);
    else if (!strcmp(name, "--q"))
        o->tensor[Q] = value;
    else if (!strcmp(name, "--k"))
        o->tensor[K] = value;
    else if (!strcmp(name, "--v"))
        o->tensor[V] = value;
    else if (!strcmp(name, "--window"))
        return parse_window(o, value);
    else if (!strcmp(name, "--scale"))
        return parse_positive(name, value, &o->scale);
    else if (!strcmp(name, "--softcap"))
        return parse_positive(name, value, &o->softcap);
    else if (!strcmp(name, "--layout"))
        return parse_layout(o, value);
    else if (!strcmp(name, "--splits"))
        return parse_number(&at, 0, '\0', &o->splits)
                   ? 0
                   : cli_usage("attention", "--splits takes a number, 0: chosen; not '%s'", value);
    else if (!strcmp(name, "--in")) {
        o->in_type = cli_dtype(value);
        if (o->in_type != HEWN_BF16 && o->in_type != HEWN_F16)
            return cli_usage("attention", "--in takes bf16 or f16, not '%s'", value);
    } else if (!strcmp(name, "--out")) {
        o->out_type = cli_dtype(value);
        if (o->out_type < 0)
            return cli_usage("attention", "--out takes f32, f16 or bf16, not '%s'", value);
    } else {
        return -1;
    }
    return 0;
}

static int check_options(const struct attention_options *o)
{
    bool one = o->files == 1 && is_safetensors(o->file[0]);
    if (!one && o->files != INPUTS)
        return cli_usage("attention", "three .npy files or one .safetensors file are needed");
    for (int i = 0; i < INPUTS; i++)
        if (one != (o->tensor[i] != NULL))
            return cli_usage("attention",
                             one ? "--%c NAME is missing: which tensor of the file is %s"
                                 : "--%c names a tensor of a .safetensors file; %s is a .npy file",
                             "qkv"[i], input_names[i]);
    if (!o->out) return cli_usage("attention", "-o O.npy is missing");
    if (o->table && !o->lengths)
        return cli_usage("attention", "--table needs --lengths: how many keys the pages hold");
    return 0;
}

static int parse_options(int argc, char **argv, struct attention_options *o)
{
    for (int i = 1; i < argc; i++) {
        int rc;
        if (!strcmp(argv[i], "--causal")) {
            o->causal = true;
            continue;
        }
        if (!strcmp(argv[i], "--invariant")) {
            o->invariant = true;
            continue;
        }
        if (argv[i][0] != '-' && o->files < INPUTS) {
            o->file[o->files++] = argv[i];
            continue;
        }
        rc = i + 1 < argc && argv[i][0] == '-' ? parse_valued(o, argv[i], argv[i + 1]) : -1;
        if (rc < 0) return cli_unknown("attention", argv[i]);
        if (rc) return rc;
        i++;
    }
    return check_options(o);
}

/* ---- inputs ---- */

struct arrays {
    struct npy in[INPUTS], sink;
    int32_t *lengths, *table; /* NULL: none */
    int64_t longest, table_width;
};

static int read_arrays(const struct attention_options *o, struct arrays *a)
{
    char why[512];
    for (int i = 0; i < INPUTS; i++)
        if (o->tensor[i] ? safetensors_read(o->file[0], o->tensor[i], 4, &a->in[i], why, sizeof why)
                         : npy_read(o->file[i], 4, &a->in[i], why, sizeof why))
            return cli_fail("%s", why);
    if (o->sink && npy_read(o->sink, 1, &a->sink, why, sizeof why)) return cli_fail("%s", why);
    return 0;
}

static void free_arrays(struct arrays *a)
{
    for (int i = 0; i < INPUTS; i++) npy_free(&a->in[i]);
    npy_free(&a->sink);
    free(a->lengths);
    free(a->table);
}

/* Places of batch, sequence, head and dimension in a shape. */
struct axes {
    int batch, length, heads, dim;
};

static struct axes axes_of(int layout)
{
    return layout == HEWN_LAYOUT_BSHD ? (struct axes){0, 1, 2, 3} : (struct axes){0, 2, 1, 3};
}

static int shapes_differ(const struct attention_options *o, const struct arrays *a, int i, int j,
                         const char *rule)
{
    char one[160], other[160];
    npy_shape_text(one, sizeof one, 4, a->in[i].dim);
    npy_shape_text(other, sizeof other, 4, a->in[j].dim);
    return cli_fail("%s is %s and %s is %s: %s (--layout %s)", input_names[i], one, input_names[j],
                    other, rule,
                    o->layout == HEWN_LAYOUT_BSHD ? "bshd: [B,S,H,D]" : "bhsd: [B,H,S,D]");
}

/* What the plan cannot know, because it gets one number for both arrays. */
static int check_shapes(const struct attention_options *o, const struct arrays *a)
{
    struct axes x = axes_of(o->layout);
    const uint64_t *q = a->in[Q].dim, *k = a->in[K].dim, *v = a->in[V].dim;
    if (!o->table && q[x.batch] != k[x.batch]) return shapes_differ(o, a, Q, K, "B must be equal");
    if (q[x.dim] != k[x.dim]) return shapes_differ(o, a, Q, K, "D must be equal");
    if (k[x.batch] != v[x.batch] || k[x.length] != v[x.length] || k[x.heads] != v[x.heads])
        return shapes_differ(o, a, K, V, "B, S and H must be equal");
    if (o->sink && a->sink.dim[0] != q[x.heads])
        return cli_fail("%s holds %llu logits, Q has %llu heads", o->sink,
                        (unsigned long long)a->sink.dim[0], (unsigned long long)q[x.heads]);
    return 0;
}

/* 8-bit types: K and V have them together, or neither has. */
static int check_types(const struct attention_options *o, const struct arrays *a)
{
    bool k = a->in[K].dtype == HEWN_E4M3, v = a->in[V].dtype == HEWN_E4M3;
    if (a->in[Q].dtype == HEWN_E4M3)
        return cli_fail("tensor '%s': F8_E4M3 is for K and V, Q is F32, F16 or BF16", o->tensor[Q]);
    if (k != v)
        return cli_fail("tensor '%s' is F8_E4M3 and '%s' is not: K and V have one type",
                        o->tensor[k ? K : V], o->tensor[k ? V : K]);
    if (!k && (o->k_scale > 0 || o->v_scale > 0))
        return cli_fail("--k-scale and --v-scale are for K and V of F8_E4M3");
    return 0;
}

/* Lengths and table; the longest sequence gives the table's width. */
static int read_tables(const struct attention_options *o, struct arrays *a)
{
    struct axes x = axes_of(o->layout);
    uint64_t batch = a->in[Q].dim[x.batch], page = a->in[K].dim[x.length], dim[2] = {batch, 0};
    char why[512];
    if (!o->lengths) return 0;
    a->lengths = malloc((size_t)batch * sizeof *a->lengths);
    if (!a->lengths) return cli_fail("no memory for the arrays");
    if (npy_read_into(o->lengths, "<i4", sizeof *a->lengths, 1, dim, a->lengths, why, sizeof why))
        return cli_fail("%s", why);
    if (!o->table) return 0;
    for (uint64_t b = 0; b < batch; b++)
        if (a->lengths[b] > a->longest) a->longest = a->lengths[b];
    a->table_width = (a->longest + (int64_t)page - 1) / (int64_t)page;
    if (!a->longest) return 0;
    dim[1] = (uint64_t)a->table_width;
    if (npy_bytes(sizeof *a->table, 2, dim) > SIZE_MAX / 2)
        return cli_fail("no memory for the arrays");
    a->table = malloc((size_t)npy_bytes(sizeof *a->table, 2, dim));
    if (!a->table) return cli_fail("no memory for the arrays");
    if (npy_read_into(o->table, "<i4", sizeof *a->table, 2, dim, a->table, why, sizeof why))
        return cli_fail("%s", why);
    return 0;
}

/* The keys: a tensor of sequences, or a pool of pages. */
static hewn_attention_source describe_keys(const struct attention_options *o,
                                           const struct arrays *a)
{
    struct axes x = axes_of(o->layout);
    hewn_attention_source s = {.struct_size = sizeof s,
                               .keys = o->lengths ? HEWN_KEYS_LENGTHS : HEWN_KEYS_FIXED,
                               .length = (int64_t)a->in[K].dim[x.length],
                               .causal = o->causal,
                               .window_back =
                                   o->left + 1, /* the option leaves out the query's own position */
                               .window_ahead = o->right + 1};
    if (!o->table) return s;
    s.page_size = s.length;
    s.pages = (int64_t)a->in[K].dim[x.batch];
    s.length = a->longest;
    s.table_width = a->table_width;
    return s;
}

static struct attended describe(const struct attention_options *o, const struct arrays *a)
{
    struct axes x = axes_of(o->layout);
    bool halves = true;
    struct attended run = {.source = describe_keys(o, a),
                           .lengths = a->lengths,
                           .table = a->table,
                           .k_scale = o->k_scale > 0 ? (float)o->k_scale : 1,
                           .v_scale = o->v_scale > 0 ? (float)o->v_scale : 1};
    const bool bytes = a->in[K].dtype == HEWN_E4M3;
    hewn_attention_desc d = {.struct_size = sizeof d,
                             .batch = (int64_t)a->in[Q].dim[x.batch],
                             .q_heads = (int64_t)a->in[Q].dim[x.heads],
                             .kv_heads = (int64_t)a->in[K].dim[x.heads],
                             .qk_dim = (int64_t)a->in[Q].dim[x.dim],
                             .v_dim = (int64_t)a->in[V].dim[x.dim],
                             .q_length = (int64_t)a->in[Q].dim[x.length],
                             .in = o->in_type,
                             .out = o->out_type,
                             .layout = o->layout,
                             .scale = o->scale,
                             .sink = o->sink != NULL,
                             .splits = o->splits,
                             .softcap = o->softcap,
                             .invariant = o->invariant};
    for (int i = 0; i < (bytes ? K : INPUTS); i++) halves = halves && a->in[i].dtype == HEWN_F16;
    if (bytes) d.kv = HEWN_E4M3;
    if (d.in < 0) d.in = halves ? HEWN_F16 : HEWN_BF16;
    run.desc = d;
    return run;
}

/* ---- the run ---- */

/* Host arrays as the kernel takes them, and its results. */
struct host {
    void *in[INPUTS];
    float *sink, *lse;
    void *o;
};

static size_t elements(const struct npy *x)
{
    return (size_t)npy_bytes(1, x->rank, x->dim);
}

static bool host_new(struct host *h, const struct attention_options *o, const struct arrays *a,
                     const hewn_attention_desc *d)
{
    size_t rows = (size_t)(d->batch * d->q_heads * d->q_length);
    for (int i = 0; i < INPUTS; i++) {
        size_t n = elements(&a->in[i]);
        h->in[i] = malloc(n * sizeof(uint16_t));
        if (!h->in[i]) return false;
        if (a->in[i].dtype == HEWN_E4M3)
            memcpy(h->in[i], a->in[i].data, n);
        else
            convert_inputs(a->in[i].dtype, d->in, a->in[i].data, h->in[i], n);
    }
    if (o->sink) {
        h->sink = malloc((size_t)d->q_heads * sizeof *h->sink);
        if (!h->sink) return false;
        for (size_t i = 0; i < (size_t)d->q_heads; i++)
            h->sink[i] = (float)element_value(a->sink.dtype, a->sink.data, i);
    }
    if (o->lse) h->lse = malloc(rows * sizeof *h->lse);
    h->o = malloc(rows * (size_t)d->v_dim * hewn_dtype_size(d->out));
    return h->o && (!o->lse || h->lse);
}

static void host_free(struct host *h)
{
    for (int i = 0; i < INPUTS; i++) free(h->in[i]);
    free(h->sink);
    free(h->lse);
    free(h->o);
}

static void print_result(const struct attended *a, const hewn_device_info *device)
{
    const hewn_attention_desc *d = &a->desc;
    double flop = 2 * attended_pairs(a) * (double)(d->qk_dim + d->v_dim);
    printf("kernel: %s for %s (%s), grid %u, %u keys a block, %u heads a tile, %u split%s, on %s\n",
           a->plan.module, a->plan.target, a->plan.origin, a->plan.grid[0], a->plan.block_keys,
           a->plan.pack, a->plan.splits, a->plan.splits == 1 ? "" : "s", device->name);
    if (a->plan.part_keys)
        printf("%u parts of a row at most, of %u keys; workspace %llu B\n", a->plan.parts,
               a->plan.part_keys, (unsigned long long)a->plan.workspace);
    printf("%lld x %lld queries, %s%lld keys, %lld heads on %lld: ", (long long)d->batch,
           (long long)d->q_length, a->lengths ? "up to " : "", (long long)a->source.length,
           (long long)d->q_heads, (long long)d->kv_heads);
    if (device->simulated)
        printf("%.2f s simulating\n", a->seconds);
    else
        printf("%.1f us, %.1f TFLOP/s\n", 1e6 * a->seconds, 1e-12 * flop / a->seconds);
}

static int write_results(const struct attention_options *o, const struct arrays *a,
                         const struct attended *run)
{
    struct axes x = axes_of(o->layout);
    const hewn_attention_desc *d = &run->desc;
    const uint64_t lse_dim[3] = {(uint64_t)d->batch, (uint64_t)d->q_heads, (uint64_t)d->q_length};
    uint64_t dim[4];
    char why[512];
    memcpy(dim, a->in[Q].dim, sizeof dim);
    dim[x.dim] = (uint64_t)d->v_dim;
    if (npy_write(o->out, d->out, 4, dim, run->o, why, sizeof why) ||
        (o->lse && npy_write(o->lse, HEWN_F32, 3, lse_dim, run->lse, why, sizeof why)))
        return cli_fail("%s", why);
    return 0;
}

static int attend(hewn_driver *driver, const struct attention_options *o, const struct arrays *a)
{
    struct attended run = describe(o, a);
    struct host h = {.o = NULL};
    hewn_device_info device = {.struct_size = sizeof device};
    hewn_context *context = NULL;
    hewn_error err = {0};
    int rc = 1;
    if (!host_new(&h, o, a, &run.desc)) {
        cli_fail("no memory for the arrays");
    } else if (hewn_context_attach_primary(driver, 0, &context, &err) ||
               hewn_context_describe_device(context, &device, &err)) {
        cli_fail("%s", err.message);
    } else {
        run.q = h.in[Q], run.k = h.in[K], run.v = h.in[V];
        run.sink = h.sink, run.o = h.o, run.lse = h.lse;
        rc = attended_run(context, driver, &run);
    }
    if (rc == 0) {
        print_result(&run, &device);
        rc = write_results(o, a, &run);
    }
    hewn_context_detach(context);
    host_free(&h);
    return rc;
}

int cli_attention(int argc, char **argv)
{
    struct attention_options o = {
        .in_type = -1, .out_type = HEWN_F32, .layout = HEWN_LAYOUT_BSHD, .left = -1, .right = -1};
    struct arrays a = {.in = {{.dtype = 0}}};
    hewn_driver *driver;
    int rc = parse_options(argc, argv, &o);
    if (rc) return rc;
    rc = read_arrays(&o, &a);
    if (rc == 0) rc = check_shapes(&o, &a);
    if (rc == 0) rc = check_types(&o, &a);
    if (rc == 0) rc = read_tables(&o, &a);
    if (rc == 0) {
        driver = cli_open_driver(stdout);
        rc = driver ? attend(driver, &o, &a) : 1;
        hewn_driver_close(driver);
    }
    free_arrays(&a);
    return rc;
}
