/*
 * The engine's own kernels: what a decoder-only transformer needs beside products and attention.
 * Their PTX is ptx/inc/engine_*.inc; each launches once, waits for earlier grids of its stream
 * (programmatic launch), allocates nothing and may be captured into a graph. Tables, numbers and
 * positions are read on the device, so a captured launch serves other requests as soon as these
 * arrays change.
 *
 * Activations are bf16, arithmetic is f32, and every sum has a fixed order: the bits of a row
 * depend on that row alone. Addresses of bf16 rows are multiples of 16 and strides, in elements,
 * multiples of 8, unless a comment says otherwise; those of other arrays are multiples of their
 * element. Functions return HEWN_OK or a hewn_status with the argument, its value and the rule in
 * `err`.
 */
#ifndef HEWN_ENGINE_KERNELS_H
#define HEWN_ENGINE_KERNELS_H

#include <stdbool.h>

#include "hewn.h"

/* The modules; linked into the engine alone. */
const hewn_family *hewn_engine_family(void);

/* X(name, module, most dynamic shared memory): the kernels, in the order of engine_kernels.function. */
#define ENGINE_KERNELS(X)                                       \
    X(norm, "engine_norm_bf16", ENGINE_NORM_SHARED)             \
    X(rope, "engine_rope_bf16", 0)                              \
    X(attend64, "engine_attend64_bf16", ENGINE_ATTEND_RING)     \
    X(attend128, "engine_attend128_bf16", ENGINE_ATTEND_RING)   \
    X(multiply, "engine_multiply_bf16", ENGINE_MULTIPLY_SHARED) \
    X(swiglu, "engine_swiglu_bf16", 0)                          \
    X(quant, "engine_quant_e4m3", ENGINE_QUANT_SHARED)          \
    X(project, "engine_project_e4m3", ENGINE_PROJECT_SHARED)    \
    X(sample_f32, "engine_sample_f32", ENGINE_SAMPLE_SHARED)    \
    X(sample_bf16, "engine_sample_bf16", ENGINE_SAMPLE_SHARED)  \
    X(advance, "engine_advance_i32", 0)                         \
    X(route, "engine_route_f32", ENGINE_ROUTE_SHARED)           \
    X(place, "engine_place_i32", 0)                             \
    X(latent, "engine_latent_bf16", 0)                          \
    X(exchange, "engine_exchange_bf16", ENGINE_EXCHANGE_SHARED)

enum {
#define ENGINE_KERNEL(name, module, shared) ENGINE_##name,
    ENGINE_KERNELS(ENGINE_KERNEL)
#undef ENGINE_KERNEL
        ENGINE_KERNEL_COUNT
};

struct engine_kernels {
    hewn_context *context;
    hewn_function function[ENGINE_KERNEL_COUNT];
    int64_t sms; /* of the device */
};

/* Loads all of them; no later call loads anything. They live until hewn_context_detach. */
int engine_kernels_open(struct engine_kernels *k, hewn_context *context, hewn_error *err);

/* ---- rows: embedding, sum, RMSNorm, choice of rows -- */

/*
 * For r = 0 .. rows - 1, with s = index[r], or r without an index:
 *
 *   h[r]   = x[s] + y[s], rounded to bf16; x[s] itself without y
 *   out[r] = h[r] * w / sqrt(mean(h[r]^2) + eps)
 *
 * So it is the embedding (x: its rows, index: tokens), the sum of a layer's output onto the stream
 * with the norm behind it, and the choice of last rows in front of the last norm. A row whose s is
 * not in 0 .. x_rows - 1 has zeros in h and out; nothing of x and y is read for it. NaN and
 * infinity stay in their row.
 */
struct engine_norm {
    hewn_deviceptr x, y;  /* bf16 [x_rows, hidden]; y may be 0 */
    hewn_deviceptr index; /* i32 [rows], or 0: rows is at most x_rows */
    hewn_deviceptr h;     /* bf16 [rows, hidden], or 0: not wanted */
    hewn_deviceptr w;     /* bf16 [hidden]; 0 where out is 0 */
    hewn_deviceptr
        out; /* bf16 [rows, hidden], or 0: not wanted. May be h. Without an index h and out
                             may be x or y, with the same stride */
    int64_t rows, x_rows;                 /* 0 .. 2^31 - 1 */
    int64_t hidden;                       /* a multiple of 8, at most 65,536 */
    int64_t x_row, y_row, h_row, out_row; /* strides; 0: hidden */
    double eps;
};
int engine_norm(const struct engine_kernels *k, const struct engine_norm *a, hewn_stream stream,
                hewn_error *err);

/* ---- a paged cache of keys and values -- */

/* It, and what rows need on their way in. Key t of head g of page p lies at p * page + g * head + t * token. */
struct engine_cache {
    hewn_deviceptr rotation; /* f32 [positions_most, dim / 2, 2]: cosine, sine. A multiple of 16 */
    hewn_deviceptr q_norm, k_norm;         /* bf16 [dim] each, or both 0 */
    hewn_deviceptr k, v;                   /* the pools */
    hewn_deviceptr table;                  /* i32 [sequences, table_width]: pages of a sequence */
    int64_t positions_most;                /* of a sequence */
    int64_t pages, page_size, table_width; /* page_size: keys of a page */
    int64_t page, head, token;             /* strides of both pools */
    double eps;                            /* of the norms */
};

/* ---- rotary embedding, and new keys and values into the cache -- */

/*
 * Row r of qkv holds q_heads heads of Q, then kv_heads of K, then kv_heads of V, `dim` elements
 * each. Row r stands at positions[r] of sequence sequences[r]. Its heads of Q are rotated where
 * they lie; those of K are rotated, and with V go into the cache. K and V in qkv stay as they are.
 * Rotation is of halves, as Hugging Face's rotate_half: with j < dim / 2, c and s the position's
 * cosine and sine j,
 *
 *   q[j] = q[j] * c - q[j + dim / 2] * s,   q[j + dim / 2] = q[j + dim / 2] * c + q[j] * s
 *
 * With q_norm and k_norm every head of Q and K first becomes head * norm / sqrt(mean(head^2) + eps)
 * in f32. A row is left alone, and nothing of it is written, if its position is not in 0 ..
 * positions_most - 1, its sequence not in 0 .. sequences_most - 1, or its position lies behind the
 * sequence's table. If its page is not in 0 .. pages - 1, Q is rotated and nothing goes into the
 * cache.
 */
struct engine_rope {
    struct engine_cache cache; /* table 0: page s alone is sequence s, table_width 1 */
    hewn_deviceptr qkv;        /* bf16 [rows, (q_heads + 2 kv_heads) * dim] */
    hewn_deviceptr positions;  /* i32 [rows]; below 0: an idle row */
    hewn_deviceptr sequences;  /* i32 [rows], or 0: row r is of sequence r */
    int64_t rows, q_heads, kv_heads; /* one of the two may be 0: Q alone, or K and V alone */
    int64_t dim;                     /* a multiple of 8, at most 256 */
    int64_t qkv_row;                 /* stride; 0: contiguous */
    int64_t sequences_most;          /* that the table has */
};
int engine_rope(const struct engine_kernels *k, const struct engine_rope *a, hewn_stream stream,
                hewn_error *err);

/* ---- decode's attention, with rotation and cache, in one launch -- */

/*
 * What engine_rope does for row r of sequence r, and then
 *
 *   o[r][h] = softmax(scale * q[r][h] * transpose(K)) * V
 *
 * over keys 0 .. positions[r] of the head of K and V that h reads, the new one among them. Q in qkv
 * stays as it is. A row whose position is below 0, not below positions_most or behind the table gets
 * zeros; nothing of it goes into the cache. Keys of a page that is not in 0 .. pages - 1 are zeros,
 * and so is a new key there. No two rows share a page that either writes to.
 *
 * The parts of a row are summed in the order of its keys, but where they begin depends on all rows'
 * positions: the bits of a row do, too. Launches that may run at one time have workspaces and counters
 * of their own.
 */
struct engine_attend {
    struct engine_cache cache; /* positions_most: at most 2^24; page_size: a multiple of 16 */
    hewn_deviceptr qkv;        /* bf16 [rows, (q_heads + 2 kv_heads) * dim] */
    hewn_deviceptr positions;  /* i32 [rows]; below 0: an idle row */
    hewn_deviceptr o;          /* bf16 [rows, q_heads * dim] */
    hewn_deviceptr workspace;  /* engine_attend_workspace bytes, a multiple of 16 */
    hewn_deviceptr counters;   /* u32 [rows * kv_heads]: 0, and again 0 after a launch */
    int64_t rows;              /* at most 32, and at most columns */
    int64_t q_heads, kv_heads; /* q_heads: 1 to 8 times kv_heads */
    int64_t dim;               /* 64 or 128 */
    int64_t columns;           /* parts of all rows, at most 64: engine_attend_columns */
    int64_t qkv_row, o_row;    /* strides; 0: contiguous */
    double scale;
};
int engine_attend(const struct engine_kernels *k, const struct engine_attend *a, hewn_stream stream,
                  hewn_error *err);
/* Columns for which all SMs have their CTAs. 0: there are more heads than those. */
int64_t engine_attend_columns(int64_t sms, int64_t kv_heads);
uint64_t engine_attend_workspace(int64_t columns, int64_t kv_heads, int64_t dim);

/* ---- products of few rows -- */

/*
 * For r = 0 .. rows - 1:
 *
 *   d[r][n] = sum over k of x[r][k] * weights[n][k], + bias[n] + c[r][n], rounded once
 *
 * With norm, x[r] first becomes x[r] * norm / sqrt(mean(x[r]^2) + eps), rounded to bf16. Weights and
 * norm are constant: they may be read while earlier launches of the stream still run.
 */
struct engine_multiply {
    hewn_deviceptr x;       /* bf16 [rows, k] */
    hewn_deviceptr norm;    /* bf16 [k], or 0 */
    hewn_deviceptr weights; /* bf16 [n, k]; contiguous */
    hewn_deviceptr bias;    /* bf16 [n], or 0 */
    hewn_deviceptr c;       /* bf16 [rows, n], or 0. May be d */
    hewn_deviceptr d;       /* bf16 [rows, n]; not x */
    int64_t rows;           /* at most 8 */
    int64_t n;              /* a multiple of 16 */
    int64_t k;              /* a multiple of 256; with norm at most 4,096 */
    int64_t x_row, d_row;   /* strides: of x, of c and d; 0: contiguous */
    int64_t ctas;           /* at most: as many as the device has SMs */
    double eps;
};
int engine_multiply(const struct engine_kernels *k, const struct engine_multiply *a,
                    hewn_stream stream, hewn_error *err);

/* ---- the sum of what several GPUs have computed, onto the stream, and RMSNorm -- */

/*
 * For r = 0 .. rows - 1:
 *
 *   h[r]   = x[r] + (part of rank 0 [r] + part of rank 1 [r] + ..), rounded once to bf16
 *   out[r] = h[r] * w / sqrt(mean(h[r]^2) + eps)
 *
 * Every rank launches it on its own part, with the same rows, and the order of launches is the same
 * on all. A rank writes its part into the others' inboxes and waits for theirs in its own. An inbox
 * has two halves, and launches take one half and the other in turn. A half has [ranks] parts,
 * inbox_rank elements apart. Before the first launch all its words are ENGINE_EXCHANGE_MARK; a launch
 * leaves them so. Of rank r, peers[q] is how many bytes behind `inbox` its rows lie in the same half of
 * the inbox of q, as its own driver maps that; its own entry is not read. The distances are
 * written before earlier grids of the stream begin.
 */
struct engine_exchange {
    hewn_deviceptr x;         /* bf16 [rows, hidden] */
    hewn_deviceptr part;      /* bf16 [rows, hidden] */
    hewn_deviceptr inbox;     /* bf16 [ranks, inbox_rank]: the half of this launch */
    hewn_deviceptr peers;     /* i64 [ranks] */
    hewn_deviceptr h;         /* bf16 [rows, hidden], or 0: not wanted. May be x */
    hewn_deviceptr w;         /* bf16 [hidden]; 0 where out is 0 */
    hewn_deviceptr out;       /* bf16 [rows, hidden], or 0: not wanted */
    int64_t rank, ranks;      /* ranks: 2 .. 16 */
    int64_t rows, hidden;     /* hidden: a multiple of 8, at most 32,768 */
    int64_t inbox_rank, ctas; /* ctas: at most, so many that all are resident */
    double eps;
};
int engine_exchange(const struct engine_kernels *k, const struct engine_exchange *a,
                    hewn_stream stream, hewn_error *err);

/* ---- SwiGLU, where a product's epilogue cannot take it over -- */

/* out[r][c] = gate / (1 + exp(-gate)) * up, of gate[r][c] and up[r][c]. out may be gate or up. */
struct engine_swiglu {
    hewn_deviceptr gate, up, out; /* bf16 [rows, n] */
    int64_t rows, n;              /* n: a multiple of 8 */
    int64_t row, out_row;         /* strides: of gate and up, of out; 0: n */
};
int engine_swiglu(const struct engine_kernels *k, const struct engine_swiglu *a, hewn_stream stream,
                  hewn_error *err);

/* ---- rows for products of e4m3 -- */

/*
 * For r = 0 .. rows - 1, with v[r] one of
 *
 *   x[r]                                    with neither up nor w
 *   x[r] / (1 + exp(-x[r])) * up[r]         rounded to bf16; with up
 *   x[r] * w / sqrt(mean(x[r]^2) + eps)     with w
 *
 *   scales[r] = max |v[r]| / 448, and of zeros 1 (with w the norm's factor),
 *   out[r] = v[r] / scales[r] rounded to e4m3, to nearest even
 *
 * No scale without a norm is below 2^-128, so that smaller rows lose digits. A NaN or an infinity
 * makes its row NaN.
 */
struct engine_quant {
    hewn_deviceptr x;      /* bf16 [rows, n] */
    hewn_deviceptr up;     /* bf16 [rows, n], or 0 */
    hewn_deviceptr w;      /* bf16 [n], or 0; not beside up */
    hewn_deviceptr out;    /* e4m3 [rows, n]; a multiple of 8 */
    hewn_deviceptr scales; /* f32 [rows] */
    int64_t rows, n;       /* n: a multiple of 8, at most 65,536 */
    int64_t row, out_row;  /* strides: of x and up, of out; 0: n */
    double eps;
};
int engine_quant(const struct engine_kernels *k, const struct engine_quant *a, hewn_stream stream,
                 hewn_error *err);

/* ---- products of few rows with e4m3 -- */

/*
 * For r = 0 .. rows - 1, with q and s what engine_quant makes of row r of x, behind a norm with w:
 *
 *   d[r][j] = s * b_scales[j] * sum over i of q[i] * b[j][i], + bias[j], + c[r][j]
 *
 * rounded to bf16; with x_scales, x is q and x_scales[r] is s. With `gated`, d[r][j] = g / (1 + exp(-g)) * u, where
 * g and u are the sums of rows j and j + n / 2 of b. b and w may be read before earlier work of the stream is complete. Orders of sums depend on n and k alone.
 */
struct engine_project {
    hewn_deviceptr x;        /* bf16 [rows, k]; e4m3 with x_scales */
    hewn_deviceptr x_scales; /* f32 [rows], or 0 */
    hewn_deviceptr w;        /* bf16 [k], or 0; not beside x_scales */
    hewn_deviceptr b;        /* e4m3 [n, k] */
    hewn_deviceptr b_scales; /* f32 [n] */
    hewn_deviceptr bias;     /* bf16 [n], or 0 */
    hewn_deviceptr c;        /* bf16 [rows, n], or 0; may be d. Not with gated, nor may bias be */
    hewn_deviceptr d;        /* bf16 [rows, n], with gated [rows, n / 2]; not x */
    int64_t rows, n,
        k; /* rows: up to 8; n: a multiple of 16; k: of 64, up to 16,384 without x_scales */
    int64_t x_row, c_row, d_row; /* strides; 0: of rows behind each other */
    int64_t ctas;                /* of the grid, at most; those of all SMs */
    bool gated;
    double eps;
};
int engine_project(const struct engine_kernels *k, const struct engine_project *a,
                   hewn_stream stream, hewn_error *err);

/* ---- latent attention: Q as the cache is, and new rows of the cache -- */

/*
 * A row of the cache has 576 elements: a vector of 512, normed, and 64 rotary ones, of which
 * neighbours form a pair. Row r stands at positions[r] of sequence sequences[r]. Its vector, x, goes
 * into the cache as x * norm / sqrt(mean(x^2) + eps), the 64 elements behind it rotated; those of
 * each head of Q go rotated to `out`. With c and s the position's cosine and sine j:
 *
 *   x[2j] = x[2j] * c - x[2j + 1] * s,   x[2j + 1] = x[2j + 1] * c + x[2j] * s
 *
 * Rows are left alone as by engine_rope.
 */
struct engine_latent {
    hewn_deviceptr vector;    /* bf16 [rows, 576] */
    hewn_deviceptr q;         /* bf16 [rows, heads, 64] */
    hewn_deviceptr out;       /* bf16 [rows, heads, 64]; may not be q */
    hewn_deviceptr positions; /* i32 [rows]; below 0: an idle row */
    hewn_deviceptr sequences; /* i32 [rows], or 0: row r is of sequence r */
    hewn_deviceptr rotation;  /* f32 [positions_most, 32, 2]: cosine, sine. A multiple of 16 */
    hewn_deviceptr norm;      /* bf16 [512] */
    hewn_deviceptr cache;     /* the pool: row t of page p at p * page + t * token */
    hewn_deviceptr table;     /* i32 [sequences_most, table_width]: pages of a sequence */
    int64_t rows, heads;
    int64_t vector_row, q_row, q_head, out_row, out_head; /* strides */
    int64_t positions_most, sequences_most;
    int64_t pages, page_size, table_width; /* page_size: rows of a page */
    int64_t page, token;                   /* strides of the pool */
    double eps;
};
int engine_latent(const struct engine_kernels *k, const struct engine_latent *a, hewn_stream stream,
                  hewn_error *err);

/* ---- experts: which a row goes to, and its place among the rows of each -- */

/*
 * The scores of a row are its logits' sigmoids, 1 / (1 + exp(-x)), or their softmax. By score[e] +
 * bias[e] first the best groups_kept of the groups are chosen, then of their experts the best
 * `choices`, the best first. A group's own number is that of its best, with sigmoids the sum of its
 * best two. Larger ones come first, of equal ones the lower number; NaN counts as -infinity.
 *
 *   weights[r][j] = scale * score[e], or with `normed` scale * score[e] / (sum of the chosen + 1e-20)
 *
 * for e = choice[r][j]. The bias is not in them. A row whose position is below 0 has -1 and 0.
 */
struct engine_route {
    hewn_deviceptr logits;    /* f32 [rows, experts] */
    hewn_deviceptr bias;      /* f32 [experts], or 0 */
    hewn_deviceptr positions; /* i32 [rows], or 0 */
    hewn_deviceptr choice;    /* i32 [rows, choices] */
    hewn_deviceptr weights;   /* f32 [rows, choices] */
    int64_t rows;
    int64_t experts; /* 1 .. 1024 */
    int64_t choices; /* 1 .. 32, at most the experts of groups_kept groups */
    int64_t groups;  /* 1 .. 32: so many groups of experts / groups neighbours */
    int64_t groups_kept;
    int64_t logits_row; /* stride; 0: experts */
    int sigmoid,
        normed; /* 0 or 1. With sigmoids a group has at least two experts, or all are kept */
    double scale;
};
int engine_route(const struct engine_kernels *k, const struct engine_route *a, hewn_stream stream,
                 hewn_error *err);

/*
 * Rows in the order of their experts, as hewn_grouped takes them (HEWN_GROUPED_OFFSETS, a_rows): the
 * choices of expert e have the places offsets[e] .. offsets[e + 1] - 1, in the order of rows, then of
 * choices. index[place] is the row; place[r][j] is where hewn_grouped_sum finds choice j of row r.
 * A choice that is no expert has place -1; places behind the last are not written.
 */
struct engine_place {
    hewn_deviceptr choice;  /* i32 [rows, choices] */
    hewn_deviceptr offsets; /* i32 [experts + 1] */
    hewn_deviceptr index;   /* i32 [rows * choices] */
    hewn_deviceptr place;   /* i32 [rows, choices] */
    int64_t rows, choices;  /* their product is below 2^31 */
    int64_t experts;        /* 1 .. 65,536 */
};
int engine_place(const struct engine_kernels *k, const struct engine_place *a, hewn_stream stream,
                 hewn_error *err);

/* ---- slots: the requests that decode together -- */

/*
 * A slot holds a request, or is idle. The arrays have an element a slot and lie on the device; the
 * host fills a slot when a request enters it and reads `reasons` and `history`, engine_sample and
 * engine_advance do the rest.
 *
 *   tokens     the token that the next step feeds; -1: idle
 *   positions  its position; -1: idle
 *   lengths    keys of the sequence with this token: positions + 1; 0: idle
 *   sampled    what engine_sample drew; -1: nothing
 *   limits     a request ends before a token at this position: the least of its own end and
 *              that of its pages
 *   cancelled  not 0: the request ends at the next advance
 *   reasons    0 while it runs, then an engine_reason
 *   counts     tokens in the history
 *   history    [slots, history_row]: the tokens that were drawn, a stop token with them
 */
#define ENGINE_SLOT_ARRAYS(X) \
    X(tokens)                 \
    X(positions) X(lengths) X(sampled) X(limits) X(cancelled) X(reasons) X(counts) X(history)

struct engine_slots {
#define ENGINE_SLOT_ARRAY(name) hewn_deviceptr name; /* i32 */
    ENGINE_SLOT_ARRAYS(ENGINE_SLOT_ARRAY)
#undef ENGINE_SLOT_ARRAY
    hewn_deviceptr settings; /* struct engine_sampling [slots] */
    int64_t slots, history_row;
};

/* How a slot's tokens are drawn. */
struct engine_sampling {
    float temperature; /* not above 0: the most likely token */
    float top_p;       /* outside 0 .. 1, or 1: all */
    int32_t top_k;     /* below 1, or vocab and more: all */
    uint32_t request;  /* with seed and position: which random number. Free for the caller */
    uint64_t seed;
};

enum engine_reason {
    ENGINE_RUNS = 0,
    ENGINE_STOPPED = 1, /* a stop token */
    ENGINE_LENGTH = 2,  /* limits, or a full history */
    ENGINE_CANCELLED = 3,
    ENGINE_NO_TOKEN = 4 /* no logit was above -infinity, or nothing was drawn */
};

/*
 * Draws a token a row: sampled[slot] for row r's slot, slot_of[r] or r. Nothing is written where
 * that is not in 0 .. slots - 1; an idle slot (positions below 0) gets -1.
 *
 * Tokens are ordered by logit, larger first, then by index; NaN counts as -infinity, and -0 equals
 * 0. Temperature 0 takes the first one. Otherwise a token's mass is 2^31 * exp((logit - largest) /
 * temperature), rounded to a whole number; the first top_k of the order are kept, then the fewest
 * of them from the front whose masses reach top_p of these tokens' sum. Of the kept tokens, in the
 * order of their index, the first is drawn at which the sum of masses passes u * (sum of all kept),
 * u = R / 2^64, R the first two words (the first one lower) of Philox4x32-10 with the key `seed` and the counter
 * {positions[slot], request, 0, 0}. Sums are of whole numbers, hence exact: the same logits,
 * settings and position give the same token in any batch. A row without a logit above -infinity
 * gives -1.
 */
struct engine_sample {
    hewn_deviceptr logits;            /* [rows, vocab]; a multiple of 16 */
    hewn_deviceptr slot_of;           /* i32 [rows], or 0 */
    const struct engine_slots *slots; /* positions, settings and sampled are used */
    int64_t rows;
    int64_t vocab; /* 1 .. 262,144 */
    int64_t row;   /* stride in elements: rows begin at multiples of 16 bytes; 0: vocab */
    int type;      /* HEWN_F32 or HEWN_BF16 */
};
int engine_sample(const struct engine_kernels *k, const struct engine_sample *a, hewn_stream stream,
                  hewn_error *err);

/*
 * Feeds what was drawn back, for the slot of each of `rows` rows, slot_of[r] or r, each slot at
 * most once. Idle slots stay as they are. Of the others the token goes into the history. The slot
 * then takes it as its next token, one position on, or, if the request ends there, becomes idle:
 * tokens and positions -1, lengths 0, a reason.
 */
struct engine_advance {
    hewn_deviceptr slot_of; /* i32 [rows], or 0 */
    const struct engine_slots *slots;
    hewn_deviceptr
        stops; /* i32 [stop_count]: tokens that end a request; may be 0 with stop_count 0 */
    int64_t rows, stop_count;
};
int engine_advance(const struct engine_kernels *k, const struct engine_advance *a,
                   hewn_stream stream, hewn_error *err);

#endif
