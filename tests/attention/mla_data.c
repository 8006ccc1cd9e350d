#include "mla_case.h"

#include "lib/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPREAD = 24, LIST_SPREAD = 5, FAR = 0x40000000, SCALES_AT = 512, ROTARY_AT = 528 };
/* A record of 584 bytes: a row of data, and behind all of a page its scales. */
enum { DATA_ROW = 576, DATA_VECTOR = 448, SCALE_ROW = 8, SCALE_NONE = 127 };

double mla_value(int dtype, uint16_t bits)
{
    return dtype == HEWN_F16 ? f16_to_double(bits) : bf16_to_double(bits);
}

static double value_of(uint16_t bits)
{
    return bf16_to_double(bits);
}

/* A normal or subnormal e4m3; its NaN counts as 480. */
static double e4m3_value(unsigned char code)
{
    int exponent = code >> 3 & 15;
    double m = exponent ? 1 + (code & 7) / 8.0 : (code & 7) / 8.0;
    return ldexp(code & 128 ? -m : m, (exponent ? exponent : 1) - 7);
}

int mla_columns(const struct mla_case *c)
{
    return c->packed == MLA_SPLIT_RECORD ? MLA_V : MLA_QK;
}

/* Where the scales of the record at that offset are. */
static unsigned char *scales_of(const struct mla_data *d, int64_t at)
{
    const struct mla_pool *p = &d->pool[(size_t)at >= d->pool[1].base];
    int64_t in = at - (int64_t)p->base, row = in % p->plane / DATA_ROW;
    return d->kv + at - in % p->plane + (int64_t)p->rows * DATA_ROW + row * SCALE_ROW;
}

static void split_key(const struct mla_data *d, int64_t at, double out[MLA_QK])
{
    const unsigned char *row = d->kv + at, *scale = scales_of(d, at);
    uint16_t bits;
    for (int i = 0; i < DATA_VECTOR; i++)
        out[i] = value_of(double_to_bf16(ldexp(e4m3_value(row[i]), scale[i / 64] - SCALE_NONE)));
    for (int i = DATA_VECTOR; i < MLA_V; i++) {
        memcpy(&bits, row + DATA_VECTOR + 2 * (i - DATA_VECTOR), sizeof bits);
        out[i] = value_of(bits);
    }
}

void mla_extremes(const struct mla_data *d, int64_t at, double *scale, double *code)
{
    const int split = d->c.packed == MLA_SPLIT_RECORD;
    const unsigned char *row = d->kv + at;
    float wide;
    for (int i = 0; i < (split ? DATA_VECTOR : MLA_V); i++)
        *code = fmax(*code, fabs(e4m3_value(row[i])));
    for (int g = 0; split && g < DATA_VECTOR / 64; g++)
        *scale = fmax(*scale, ldexp(1, scales_of(d, at)[g] - SCALE_NONE));
    for (int g = 0; !split && g < 4; g++) {
        memcpy(&wide, row + SCALES_AT + 4 * g, sizeof wide);
        *scale = fmax(*scale, fabs((double)wide));
    }
}

void mla_key(const struct mla_data *d, int64_t at, double out[MLA_QK])
{
    const unsigned char *row = d->kv + at;
    uint16_t bits;
    float scale;
    for (int i = 0; i < MLA_QK && !d->c.packed; i++) {
        memcpy(&bits, row + 2 * i, sizeof bits);
        out[i] = mla_value(d->c.in, bits);
    }
    if (d->c.packed == MLA_SPLIT_RECORD) split_key(d, at, out);
    if (d->c.packed != MLA_WIDE_RECORD) return;
    for (int i = 0; i < MLA_V; i++) {
        memcpy(&scale, row + SCALES_AT + i / 128 * 4, sizeof scale);
        double hi = value_of(double_to_bf16((double)scale));
        double lo = value_of(double_to_bf16((double)scale - hi)), x = e4m3_value(row[i]);
        out[i] = d->exact ? x * (double)scale
                          : value_of(double_to_bf16(x * hi + value_of(double_to_bf16(x * lo))));
    }
    for (int i = MLA_V; i < MLA_QK; i++) {
        memcpy(&bits, row + ROTARY_AT + 2 * (i - MLA_V), sizeof bits);
        out[i] = value_of(bits);
    }
}

static uint16_t rounded(int dtype, double value)
{
    return dtype == HEWN_F16 ? double_to_f16(value) : double_to_bf16(value);
}

void mla_case_name(const struct mla_case *c, char *out, size_t size)
{
    static const char *const wrong[] = {"", ", lengths out of range", ", pages outside the pool",
                                        ", lists with holes"};
    char lists[40] = "", records[40] = "", second[60] = "";
    if (c->extra)
        snprintf(second, sizeof second, " and %d%s from pages of %d", c->extra,
                 c->extra_ragged > 1   ? " each"
                 : c->extra_ragged > 0 ? " at most"
                                       : "",
                 c->extra_page);
    if (c->packed) snprintf(records, sizeof records, ", records of %d", c->packed);
    if (c->list)
        snprintf(lists, sizeof lists, ", %d listed%s", c->list, c->ragged > 1 ? " each" : "");
    snprintf(out, size,
             "%s to %s%s, batch %d, %d heads, %d queries, %s%d keys%s, pages of %d%s%s%s%s%s%s%s",
             hewn_dtype_name(c->in), hewn_dtype_name(c->out), records, c->batch, c->heads,
             c->queries, c->ragged ? "up to " : "", c->length, lists, c->page, second,
             c->causal ? ", causal" : "", c->sink ? ", sink" : "", c->spread ? ", spread" : "",
             c->sharp > 4 ? ", peaked" : "", c->steep ? ", steep" : "", wrong[c->wrong]);
}

/* ---- shapes -- */

static int pages_of(int page, int keys)
{
    return page ? (keys + page - 1) / page : 0;
}

/* The strides of a cache, and its size. */
static void lay_out(const struct mla_case *c, struct mla_pool *p)
{
    int unit = c->packed ? 1 : 2, room = c->spread ? 2 * SPREAD / unit : 0;
    int split = c->packed == MLA_SPLIT_RECORD;
    p->token = split ? DATA_ROW : (c->packed ? c->packed : MLA_QK) + room;
    p->plane = p->rows * p->token + room;
    if (split) p->plane += (int64_t)p->rows * SCALE_ROW;
    if (split) p->plane += (DATA_ROW - p->plane % DATA_ROW) % (c->spread ? 16 : DATA_ROW);
    p->bytes = (size_t)(p->plane * p->planes * unit);
    p->length_count = (size_t)c->batch * (size_t)(p->ragged > 1 ? c->queries : 1);
    p->list_count = (size_t)p->stride * (size_t)c->batch * (size_t)c->queries;
}

static void describe_pools(struct mla_data *d)
{
    const struct mla_case *c = &d->c;
    const int half = (c->length + 1) / 2, gap = c->spread ? LIST_SPREAD : 0;
    struct mla_pool *p = d->pool;
    p[0] = (struct mla_pool){.page = c->page,
                             .rows = c->page ? c->page : c->length,
                             .most = c->list ? c->list : c->length,
                             .ragged = c->ragged,
                             .planes = c->list ? 1 : c->batch,
                             .stride = c->list ? c->list + gap : 0};
    if (c->page) p[0].planes = p[0].planes * pages_of(c->page, c->length) + 2;
    lay_out(c, &p[0]);
    p[1].base = SIZE_MAX;
    if (!c->extra) return;
    p[1] = (struct mla_pool){.page = c->extra_page,
                             .rows = c->extra_page ? c->extra_page : half,
                             .most = c->extra,
                             .ragged = c->extra_ragged,
                             .planes = c->extra_page ? pages_of(c->extra_page, half) + 1 : 1,
                             .stride = c->extra + 2 * gap};
    lay_out(c, &p[1]);
    p[1].base = (p[0].bytes + 15) / 16 * 16;
}

static void describe_extra(const struct mla_data *d, hewn_mla_desc *x)
{
    const struct mla_pool *p = &d->pool[1];
    x->extra_width = d->c.extra;
    x->extra_stride = d->c.spread ? p->stride : 0;
    x->extra_length = p->page ? 0 : p->rows;
    x->extra_page_size = p->page;
    x->extra_pages = p->page ? p->planes : 0;
    x->extra_token = p->token;
    x->extra_batch = p->plane;
    x->extra_lengths = p->ragged;
    x->extra_cache = x->cache;
}

static void describe(struct mla_data *d)
{
    const struct mla_case *c = &d->c;
    int extra = c->spread ? SPREAD : 0, split = c->packed == MLA_SPLIT_RECORD;
    hewn_mla_desc *x = &d->desc;
    *x = (hewn_mla_desc){.struct_size = sizeof *x,
                         .batch = c->batch,
                         .q_heads = c->heads,
                         .q_length = c->queries,
                         .length = c->list && c->page ? 0 : c->length,
                         .page_size = c->page,
                         .in = c->in,
                         .out = c->out,
                         .cache = split       ? HEWN_MLA_CACHE_584
                                  : c->packed ? HEWN_MLA_CACHE_656
                                              : HEWN_MLA_CACHE_PLAIN,
                         .lengths = c->ragged,
                         .causal = c->causal,
                         .sink = c->sink};
    describe_pools(d);
    x->kv_token = d->pool[0].token;
    x->kv_batch = d->pool[0].plane;
    x->q_head = mla_columns(c) + extra;
    x->q_token = x->q_head * c->heads;
    x->q_batch = x->q_token * c->queries + extra;
    x->o_head = MLA_V + extra;
    x->o_token = x->o_head * c->heads + extra;
    x->o_batch = x->o_token * c->queries;
    if (c->page && !c->list) x->table_width = pages_of(c->page, c->length) + (c->spread ? 3 : 0);
    if (c->page) x->pages = d->pool[0].planes;
    if (c->list) {
        x->list_width = c->list;
        x->list_stride = c->spread ? d->pool[0].stride : 0;
    }
    if (c->extra) describe_extra(d, x);
    d->q_count = (size_t)(x->q_batch * c->batch);
    d->o_bytes = (size_t)(x->o_batch * c->batch) * hewn_dtype_size(c->out);
    d->lse_count = (size_t)c->batch * (size_t)c->heads * (size_t)c->queries;
    d->table_count = (size_t)(x->table_width * c->batch);
}

static int keys_in(const struct mla_data *d, const struct mla_pool *p, int sequence, int query)
{
    int n = p->most;
    if (p->ragged) n = p->lengths[p->ragged > 1 ? sequence * d->c.queries + query : sequence];
    return n < 0 ? 0 : n > p->most ? p->most : n;
}

int mla_keys(const struct mla_data *d, int sequence, int query)
{
    return keys_in(d, &d->pool[0], sequence, query) + keys_in(d, &d->pool[1], sequence, query);
}

static int32_t *list_of(const struct mla_data *d, const struct mla_pool *p, int sequence, int query)
{
    return p->lists + (sequence * d->c.queries + query) * p->stride;
}

int64_t mla_row(const struct mla_data *d, int sequence, int query, int key)
{
    int64_t plane = sequence, row = key;
    const struct mla_pool *p = &d->pool[0];
    if (d->c.list) {
        int own = keys_in(d, p, sequence, query);
        if (key >= own) {
            p = &d->pool[1];
            key -= own;
        }
        int32_t entry = list_of(d, p, sequence, query)[key];
        if (entry < 0 || p->rows == 0 || entry / p->rows >= p->planes) return -1;
        plane = entry / p->rows;
        row = entry % p->rows;
    } else if (p->page) {
        plane = d->table[sequence * d->desc.table_width + key / p->page];
        row = key % p->page;
        if (plane < 0 || plane >= p->planes) return -1;
    }
    return (int64_t)p->base + (plane * p->plane + row * p->token) * (d->c.packed ? 1 : 2);
}

/* ---- contents -- */

static void fill_lengths(const struct mla_case *c, const struct mla_pool *p, struct rng *r)
{
    int most = p->most;
    for (int b = 0; b < (int)p->length_count; b++) {
        int n = (int)rng_below(r, (uint32_t)most + 1);
        if (b % 4 == 1) n = 0;
        if (b % 4 == 2) n = most;
        if (b % 8 == 3 && most > 64) n = 64 * (1 + (int)rng_below(r, (uint32_t)most / 64));
        if (c->wrong == MLA_BAD_LENGTHS && b % 3 == 0) n = b % 2 ? -5 : most + 7 + b % 8 * FAR / 64;
        p->lengths[b] = n;
    }
}

/* The sequences' pages are a permutation of the pool's. What no key needs is far outside. */
static void fill_table(struct mla_data *d, struct rng *r)
{
    int64_t pages = d->desc.pages, width = d->desc.table_width;
    int32_t *order = malloc((size_t)pages * sizeof *order);
    if (!order) return;
    for (int32_t i = 0; i < pages; i++) {
        uint32_t j = rng_below(r, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    int64_t next = 0;
    for (int b = 0; b < d->c.batch; b++)
        for (int64_t i = 0; i < width; i++) {
            int32_t *entry = &d->table[b * width + i];
            int used = i < pages_of(d->c.page, mla_keys(d, b, 0));
            *entry = used ? order[next++] : INT32_MAX;
            if (used && d->c.wrong == MLA_BAD_PAGES && i % 3 == 1)
                *entry = i % 2 ? (int32_t)pages + (int32_t)i : -1 - (int32_t)i;
        }
    free(order);
}

/* Rows of the cache at random, some twice. In a bad list a third are nonsense, and one list is all so. */
static void fill_lists(struct mla_data *d, const struct mla_pool *p, struct rng *r)
{
    static const int32_t nonsense[] = {-1, INT32_MIN, INT32_MAX, -7};
    const struct mla_case *c = &d->c;
    int64_t rows = p->planes * p->rows;
    for (size_t i = 0; i < p->list_count; i++) p->lists[i] = INT32_MAX - 1;
    for (int b = 0; b < c->batch; b++)
        for (int q = 0; q < c->queries; q++)
            for (int k = 0; k < p->most; k++) {
                int32_t *entry = &list_of(d, p, b, q)[k];
                int bad =
                    c->wrong == MLA_BAD_LISTS && (k % 3 == q % 3 || (b * c->queries + q) % 5 == 1);
                *entry = rows ? (int32_t)rng_below(r, (uint32_t)rows) : 0;
                if (bad) *entry = k % 8 == 4 ? (int32_t)rows : nonsense[rng_below(r, 4)];
            }
}

static unsigned char e4m3_code(struct rng *r)
{
    unsigned char code = (unsigned char)rng_below(r, 256);
    if ((code & 127) == 127) code = 3; /* a subnormal */
    return (code & 127) > 0x58 ? code & 0xDF : code;
}

/* A record: scales of which every other is a power of two, times 2^-down. */
static void fill_record(unsigned char *row, int down, struct rng *r)
{
    for (int i = 0; i < MLA_V; i++) row[i] = e4m3_code(r);
    for (int g = 0; g < 4; g++) {
        float scale = ldexpf(g % 2 ? 0.125F : 0.11F + 0.02F * rng_unit(r), -down);
        memcpy(row + SCALES_AT + 4 * g, &scale, sizeof scale);
    }
    for (int i = 0; i < MLA_QK - MLA_V; i++) {
        uint16_t bits = rounded(HEWN_BF16, sqrt(3.0) * (double)rng_unit(r));
        memcpy(row + ROTARY_AT + 2 * i, &bits, sizeof bits);
    }
}

/* Scales from 2^-5 to 2^-3, by which scores deviate by about 1; some of code 0, the least that there is, and some
 * of 2^8, of elements 0 or the smallest. */
static void fill_split(struct mla_data *d, int64_t at, struct rng *r)
{
    unsigned char *row = d->kv + at, *scale = scales_of(d, at);
    for (int i = 0; i < DATA_VECTOR; i++) row[i] = e4m3_code(r);
    for (int i = 0; i < DATA_VECTOR / 64; i++) {
        uint32_t kind = rng_below(r, 32);
        scale[i] = kind ? (unsigned char)(SCALE_NONE - 5 + (int)rng_below(r, 3)) : 0;
        if (kind != 1) continue;
        scale[i] = SCALE_NONE + 8;
        for (int k = 0; k < 64; k++) row[64 * i + k] &= 0x81;
    }
    for (int i = DATA_VECTOR; i < MLA_V; i++) {
        uint16_t bits = rounded(HEWN_BF16, sqrt(3.0) * (double)rng_unit(r));
        memcpy(row + DATA_VECTOR + 2 * (i - DATA_VECTOR), &bits, sizeof bits);
    }
}

static void fill_row(struct mla_data *d, int64_t at, int key, struct rng *r)
{
    if (at < 0) return;
    if (d->c.packed == MLA_SPLIT_RECORD) fill_split(d, at, r);
    if (d->c.packed == MLA_WIDE_RECORD)
        fill_record(d->kv + at, d->c.steep && key < 7 * 64 ? 7 - key / 64 : 0, r);
    if (d->c.packed) return;
    for (int i = 0; i < MLA_QK; i++) {
        uint16_t bits = rounded(d->c.in, sqrt(3.0) * (double)rng_unit(r));
        memcpy(d->kv + at + 2 * i, &bits, sizeof bits);
    }
}

static size_t kv_bytes(const struct mla_data *d)
{
    return d->c.extra ? d->pool[1].base + d->pool[1].bytes : d->pool[0].bytes;
}

static void fill_pool(struct mla_data *d, const struct mla_pool *p, struct rng *r)
{
    fill_lengths(&d->c, p, r);
    if (d->c.list) fill_lists(d, p, r);
}

/* Everything that no key of a sequence is, is NaN. */
static void fill(struct mla_data *d, struct rng *r)
{
    const struct mla_case *c = &d->c;
    const hewn_mla_desc *x = &d->desc;
    double amplitude = sqrt(3.0);
    memset(d->q, 0xFF, d->q_count * sizeof *d->q);
    memset(d->kv, 0xFF, kv_bytes(d));
    for (int b = 0; b < c->batch; b++)
        for (int row = 0; row < c->heads * c->queries; row++) {
            uint16_t *q = d->q + b * x->q_batch + row * x->q_head;
            for (int i = 0; i < mla_columns(c); i++)
                q[i] = rounded(c->in, amplitude * (double)c->sharp * (double)rng_unit(r));
        }
    for (int b = 0; b < c->batch; b++)
        for (int q = 0; q < (c->list ? c->queries : 1); q++)
            for (int j = 0; j < mla_keys(d, b, q); j++) fill_row(d, mla_row(d, b, q, j), j, r);
    for (int h = 0; h < c->heads; h++) d->sink[h] = h % 5 == 4 ? -INFINITY : 6.0F * rng_unit(r);
}

bool mla_data_new(struct mla_data *d, const struct mla_case *c)
{
    struct rng r = {c->seed ^ test_seed()};
    memset(d, 0, sizeof *d);
    d->c = *c;
    describe(d);
    d->q = malloc(d->q_count * sizeof *d->q);
    d->kv = malloc(kv_bytes(d) + 1);
    d->o = malloc(d->o_bytes);
    d->lse = malloc(d->lse_count * sizeof *d->lse);
    d->sink = malloc((size_t)c->heads * sizeof *d->sink);
    d->table = malloc(d->table_count * sizeof *d->table + 1);
    bool ready = d->q && d->kv && d->o && d->lse && d->sink && d->table;
    for (int i = 0; i < 2; i++) {
        struct mla_pool *p = &d->pool[i];
        p->lengths = calloc(p->length_count + 1, sizeof *p->lengths);
        p->lists = calloc(p->list_count + 1, sizeof *p->lists);
        ready = ready && p->lengths && p->lists;
    }
    if (!ready) return false;
    for (int i = 0; i < 2; i++) fill_pool(d, &d->pool[i], &r);
    if (!c->list) fill_table(d, &r);
    fill(d, &r);
    return true;
}

void mla_data_free(struct mla_data *d)
{
    free(d->q);
    free(d->kv);
    free(d->o);
    free(d->lse);
    free(d->sink);
    free(d->table);
    for (int i = 0; i < 2; i++) {
        free(d->pool[i].lengths);
        free(d->pool[i].lists);
    }
}
