/*
 * hewn: hand-written PTX kernels for NVIDIA tensor cores, loaded through the CUDA driver API alone.
 *
 * The only public header. Compiles as C99, C11 and C++, beside cuda.h in either order.
 *
 * Rules that hold for every function here:
 *   - The caller owns every buffer, context and stream; the library owns what a *_create/open/attach
 *     function returned, until the matching *_destroy/close/detach.
 *   - A function that can fail returns HEWN_OK (0) or a negative hewn_status. On failure nothing is
 *     changed, and `err` (which may be NULL) holds a sentence naming argument, value and rule; on
 *     success it is left as it was.
 *   - Nothing here prints, exits, or creates a CUDA context unless the name says so.
 *   - Objects are immutable once created and may be shared by threads; an hewn_error may not.
 *   - Structs that begin with `struct_size` may grow at their end: set it to sizeof(the struct) and zero
 *     the rest. A library older than its caller refuses what it does not know unless that is 0; a
 *     caller older than its library is refused by its struct_size, and is to be compiled again.
 */
#ifndef HEWN_H
#define HEWN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEWN_VERSION_MAJOR 0
#define HEWN_VERSION_MINOR 1
#define HEWN_VERSION_PATCH 0

/* The driver's handles, by the names that cuda.h gives their structs: a CUstream is a hewn_stream. */
typedef struct CUstream_st *hewn_stream;
typedef struct CUmod_st *hewn_module_handle;
typedef struct CUfunc_st *hewn_function;
typedef struct CUctx_st *hewn_cuda_context;
typedef unsigned long long hewn_deviceptr; /* CUdeviceptr */

/* ---------------------------------------------------------------------------------- errors -- */

typedef enum hewn_status {
    HEWN_OK = 0,
    HEWN_ERR_ARGUMENT = -1,  /* an argument breaks a documented rule */
    HEWN_ERR_NO_DRIVER = -2, /* no driver library, or it cannot be opened */
    HEWN_ERR_SYMBOL = -3,    /* the driver lacks a function that this call needs */
    HEWN_ERR_DRIVER = -4,    /* a driver call failed; hewn_error.driver_code says how */
    HEWN_ERR_NO_DEVICE = -5, /* no CUDA device, or no current context */
    HEWN_ERR_NO_MODULE = -6, /* this device runs none of the shipped targets */
    HEWN_ERR_IMAGE = -7,     /* an embedded or given module image is corrupt */
    HEWN_ERR_MEMORY = -8,    /* host memory exhausted */
    HEWN_ERR_LIMIT = -9      /* the request is legal but exceeds what device or kernel can hold */
} hewn_status;

typedef struct hewn_error {
    int status;      /* a hewn_status */
    int driver_code; /* the CUresult behind HEWN_ERR_DRIVER, else 0 */
    char message[480];
} hewn_error;

/* "HEWN_ERR_ARGUMENT" for -1, and so on; "HEWN_ERR_UNKNOWN" for what is none of these. */
const char *hewn_status_name(int status);

/* ---------------------------------------------------------------------------------- driver -- */

typedef struct hewn_driver hewn_driver;

typedef struct hewn_driver_options {
    size_t struct_size;
    /* Library to open; NULL: the environment's HEWN_LIBCUDA, else "libcuda.so.1". */
    const char *path;
    /* Resolver to use instead of opening a library: returns the function named by its exported
     * symbol (say "cuMemAlloc_v2"), or NULL. `path` must then be NULL. */
    void *(*resolve)(void *user, const char *symbol);
    void *user;
} hewn_driver_options;

/* Opens the driver library, resolves its functions, and calls cuInit(0). `options` may be NULL. */
int hewn_driver_open(const hewn_driver_options *options, hewn_driver **out, hewn_error *err);
/* NULL is allowed. Every context attached through this driver must be detached before. */
void hewn_driver_close(hewn_driver *driver);

/* What was opened: the library's path as the loader resolved it, or "(resolver)". */
const char *hewn_driver_path(const hewn_driver *driver);
/* The driver's CUDA version, as 1000*major + 10*minor. */
int hewn_driver_version(const hewn_driver *driver);
int hewn_driver_device_count(const hewn_driver *driver);
/* Optional functions that this driver lacks, comma-separated; "" where it has them all. */
const char *hewn_driver_missing(const hewn_driver *driver);
/* A function of the driver by exported name, for callers with needs beyond this header; or NULL. */
void *hewn_driver_symbol(const hewn_driver *driver, const char *symbol);

/* --------------------------------------------------------------------------------- context -- */

typedef struct hewn_context hewn_context;

typedef struct hewn_device_info {
    size_t struct_size;
    char name[96];
    int ordinal;
    int cc_major, cc_minor;
    int sm_count;
    int max_shared_per_block; /* bytes, opt-in limit of dynamic + static */
    int shared_per_sm;
    int registers_per_sm;
    int l2_bytes;
    int clock_khz;
    uint64_t memory_bytes;
    int simulated; /* 1 when the driver is hewn's simulator */
} hewn_device_info;

/* Attaches to the calling thread's current CUDA context, which must outlive the result. */
int hewn_attach(hewn_driver *driver, hewn_context **out, hewn_error *err);
/* Retains device `ordinal`'s primary context, makes it current on this thread, and attaches to it;
 * hewn_detach restores the previous current context and releases the primary one. */
int hewn_attach_primary(hewn_driver *driver, int ordinal, hewn_context **out, hewn_error *err);
/* Unloads the modules this context loaded. No launch of theirs may be in flight, and no plan of this
 * context may be run or described after. NULL is allowed. */
void hewn_detach(hewn_context *context);
int hewn_device(const hewn_context *context, hewn_device_info *out, hewn_error *err);
/* Device `ordinal` without any context. */
int hewn_driver_device(const hewn_driver *driver, int ordinal, hewn_device_info *out,
                       hewn_error *err);

/* --------------------------------------------------------------------------------- modules -- */

/* One compiled form of a module: a cubin for one architecture. */
typedef struct hewn_image {
    const char *arch; /* "sm_90a", "sm_100", "sm_103" */
    const void *data;
    size_t size;
} hewn_image;

/* One kernel as shipped: its PTX text always, cubins where ptxas was there at build time. */
typedef struct hewn_module {
    const char *name;   /* "gemm_bf16_f32" */
    const char *target; /* "sm_90a" or "sm_100f" */
    const char *entry;  /* the kernel's symbol in the module */
    const char *ptx;    /* NUL-terminated */
    size_t ptx_size;    /* without the NUL */
    const char *manifest; /* JSON, NUL-terminated */
    size_t manifest_size;
    const hewn_image *images;
    size_t image_count;
    const char *sha256; /* of the PTX text, 64 hex digits */
} hewn_module;

/* The kernels behind one group of functions. Naming a family links its kernels; others stay out. */
typedef struct hewn_family {
    const char *name; /* "gemm" */
    const hewn_module *const *modules;
    size_t module_count;
} hewn_family;

extern const hewn_family hewn_gemm_family;
extern const hewn_family hewn_attention_family;

/* True (1) when code for `target` runs on compute capability major.minor: "sm_90a" on 9.0 only,
 * "sm_100f" on 10.0, 10.3 and later minors of 10. Never decided by the major number alone. */
int hewn_target_runs_on(const char *target, int cc_major, int cc_minor);

/* Loads every module of a family that this device can run, so that no later call loads anything.
 * Idempotent. HEWN_ERR_NO_MODULE lists the device's capability and what the family ships. */
int hewn_preload(hewn_context *context, const hewn_family *family, hewn_error *err);

/* Where a module of this context came from: "cubin sm_90a", "ptx" (compiled by the driver), or
 * NULL while it is not loaded. */
const char *hewn_module_origin(const hewn_context *context, const hewn_module *module);
/* A loaded module's kernel, for hewn_launch and the driver's own functions; NULL while it is not
 * loaded. It lives until hewn_detach. */
hewn_function hewn_module_function(const hewn_context *context, const hewn_module *module);

/* ----------------------------------------------------------------------------- tensor maps -- */

/* Same layout and alignment rule as CUtensorMap: 128 opaque bytes, 64-byte aligned. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define HEWN_ALIGNED_64 alignas(64)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define HEWN_ALIGNED_64 _Alignas(64)
#else
#define HEWN_ALIGNED_64 /* C99 cannot say it: the caller aligns, and hewn_tensormap_encode checks */
#endif
typedef struct hewn_tensormap {
    HEWN_ALIGNED_64 uint64_t opaque[16];
} hewn_tensormap;

typedef enum hewn_tm_dtype { /* values are the driver's CUtensorMapDataType */
    HEWN_TM_U8 = 0, HEWN_TM_U16, HEWN_TM_U32, HEWN_TM_I32, HEWN_TM_U64, HEWN_TM_I64, HEWN_TM_F16,
    HEWN_TM_F32, HEWN_TM_F64, HEWN_TM_BF16, HEWN_TM_F32_FTZ, HEWN_TM_TF32, HEWN_TM_TF32_FTZ,
    HEWN_TM_16U4_ALIGN8B, HEWN_TM_16U4_ALIGN16B, HEWN_TM_16U6_ALIGN16B
} hewn_tm_dtype;

typedef enum hewn_tm_interleave {
    HEWN_TM_INTERLEAVE_NONE = 0, HEWN_TM_INTERLEAVE_16B, HEWN_TM_INTERLEAVE_32B
} hewn_tm_interleave;

typedef enum hewn_tm_swizzle {
    HEWN_TM_SWIZZLE_NONE = 0, HEWN_TM_SWIZZLE_32B, HEWN_TM_SWIZZLE_64B, HEWN_TM_SWIZZLE_128B,
    HEWN_TM_SWIZZLE_128B_ATOM_32B, HEWN_TM_SWIZZLE_128B_ATOM_32B_FLIP_8B,
    HEWN_TM_SWIZZLE_128B_ATOM_64B
} hewn_tm_swizzle;

typedef enum hewn_tm_l2 {
    HEWN_TM_L2_NONE = 0, HEWN_TM_L2_64B, HEWN_TM_L2_128B, HEWN_TM_L2_256B
} hewn_tm_l2;

typedef enum hewn_tm_oob { HEWN_TM_OOB_ZERO = 0, HEWN_TM_OOB_NAN } hewn_tm_oob;

/* A tiled tensor map. Dimension 0 is the fastest; sizes in elements, strides in bytes. */
typedef struct hewn_tensormap_desc {
    size_t struct_size;
    hewn_deviceptr address;
    int dtype;                 /* hewn_tm_dtype */
    int rank;                  /* 1..5 */
    uint64_t dim[5];           /* global extent of each dimension */
    uint64_t stride[4];        /* byte stride of dimensions 1..rank-1 */
    uint32_t box[5];           /* extent of the box that one copy moves */
    uint32_t element_stride[5]; /* 0 is read as 1 */
    int interleave, swizzle, l2, oob;
} hewn_tensormap_desc;

/* Checks every rule that cuTensorMapEncodeTiled enforces on a device of compute capability
 * cc_major.cc_minor, without a driver. Where the driver's reference leaves a case open it is refused.
 * `what` names the tensor in messages ("A"); NULL: "tensor". */
int hewn_tensormap_check(const hewn_tensormap_desc *desc, const char *what, int cc_major,
                         int cc_minor, hewn_error *err);
/* Checks, then encodes. */
int hewn_tensormap_encode(const hewn_context *context, const hewn_tensormap_desc *desc,
                          const char *what, hewn_tensormap *out, hewn_error *err);

/* -------------------------------------------------------------------- tensor memory (TMEM) -- */

/* A named range of TMEM columns that a kernel wants. */
typedef struct hewn_tmem_region {
    const char *name;
    uint32_t columns; /* 1..512 */
    uint32_t align;   /* power of two, 0 is read as 1 */
    uint32_t column;  /* out: first column, from the allocation's base */
} hewn_tmem_region;

typedef struct hewn_tmem_plan {
    uint32_t columns;     /* what to allocate: a power of two, 32..512 */
    uint32_t used;        /* columns the regions cover, gaps included */
    uint32_t ctas_per_sm; /* CTAs whose allocations fit one SM together: none waits for another */
} hewn_tmem_plan;

/* Places regions (largest alignment first, then given order) and fixes the allocation size.
 * HEWN_ERR_LIMIT where the total exceeds 512 columns, or where `ctas_per_sm` (0: no wish) CTAs
 * would not fit an SM together and so could starve each other in tcgen05.alloc. */
int hewn_tmem_plan_regions(hewn_tmem_region *regions, size_t count, uint32_t ctas_per_sm,
                           hewn_tmem_plan *out, hewn_error *err);

/* ---------------------------------------------------------------------------------- launch -- */

typedef struct hewn_launch_desc {
    size_t struct_size;
    uint32_t grid[3], block[3];
    uint32_t cluster[3];     /* all 0: no cluster attribute */
    uint32_t dynamic_shared; /* bytes; above 48 KiB see hewn_allow_shared */
    int cooperative;
    int programmatic; /* programmatic dependent launch: may start before its predecessor ends */
    hewn_stream stream;
} hewn_launch_desc;

/* Raises a function's dynamic shared memory limit; static + dynamic may not exceed the opt-in
 * limit of the device. Not for launch paths. */
int hewn_allow_shared(const hewn_context *context, hewn_function function, uint32_t bytes,
                      hewn_error *err);
/* Checks the shape against the device's limits and launches. `params` as for cuLaunchKernelEx. */
int hewn_launch(const hewn_context *context, hewn_function function, const hewn_launch_desc *desc,
                void **params, hewn_error *err);

/* ------------------------------------------------------------------------------------ gemm -- */

/* 8-bit floats: HEWN_E4M3 of 4 exponent and 3 mantissa bits, no infinities; HEWN_E5M2 of 5 and 2. */
typedef enum hewn_dtype {
    HEWN_F32 = 0, HEWN_F16 = 1, HEWN_BF16 = 2, HEWN_E4M3 = 3, HEWN_E5M2 = 4
} hewn_dtype;

size_t hewn_dtype_size(int dtype);      /* bytes; 0 for what is no dtype */
const char *hewn_dtype_name(int dtype); /* "f32", "f16", "bf16", "e4m3", "e5m2", or NULL */

/*
 * D[b] = act(alpha * scale_a * scale_b * A[b] * transpose(B[b]) + beta * C[b] + bias)
 *                                                       for b in [0, batch); plain: A * transpose(B)
 *
 * A is m x k, B is n x k, D is m x n, each row-major with its own leading dimension (elements
 * between the starts of two rows). An operand with HEWN_MAJOR_MN lies transposed: A as k rows of m,
 * B as k rows of n elements. Products are exact, sums are fp32 in the tensor core's order; what
 * comes after is fp32: alpha * scale_a, that * scale_b and that * the sum are rounded each, + beta * C once,
 * + bias once; gelu and silu use the approximations of 2^x (2 ulp) and 1/x (1 ulp). One rounding to
 * nearest-even gives D.
 *
 * alpha and beta are the host's, of each run; scale_a and scale_b one fp32 number each on the device;
 * C is m x n of D's dtype, and not read where beta is 0; bias has n elements, one a column, of D's
 * dtype or fp32, the same in every problem. relu(x) = max(x, 0); gelu is the form with tanh,
 * x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); silu(x) = x / (1 + exp(-x)); NaN stays NaN, and
 * -infinity becomes NaN in gelu and silu.
 *
 * Inputs of 8 bits: A and B each e4m3 or e5m2, K-major. The tensor cores of sm_90a keep 13 fraction bits
 * of such sums: with HEWN_ACCUMULATE_FULL only within 128 k, whose sums are added up in fp32; with
 * HEWN_ACCUMULATE_FAST along all of k, so that what is small beside the sum so far is lost: of 6000
 * products of numbers between 0 and 1, a tenth.
 *
 * sm_90a only, elsewhere HEWN_ERR_LIMIT: 8-bit inputs, HEWN_MAJOR_MN, and all that is not plain.
 *
 * Rules: m, n, k, batch in 1..2^31-1, and so the number of output tiles; base addresses and row
 * strides (bytes) multiples of 16; ld >= row length; batch strides multiples of 16 bytes (0 for A or
 * B: one matrix shared by the batch); no stride negative or 2^40 bytes and more.
 * C's rules are those of A and B; the scales' addresses are multiples of 4, that of bias of 16.
 * D must overlap neither A nor B nor, between problems of the batch, itself; bias and scales lie outside
 * all of D, the gaps between its rows included; C it may be, with the same strides, but not overlap.
 * Its problems lie behind each other (stride_d >= (m-1)*ldd + n) or side by side in the rows
 * (stride_d >= n and (batch-1)*stride_d + n <= ldd). A, B, C and D may be different columns of one
 * matrix.
 */
typedef enum hewn_major {
    HEWN_MAJOR_K = 0, /* elements along k are neighbours */
    HEWN_MAJOR_MN = 1 /* elements along m (of A) or n (of B) are */
} hewn_major;

typedef enum hewn_accumulate { HEWN_ACCUMULATE_FULL = 0, HEWN_ACCUMULATE_FAST = 1 } hewn_accumulate;

typedef enum hewn_act {
    HEWN_ACT_NONE = 0, HEWN_ACT_RELU = 1, HEWN_ACT_GELU = 2, HEWN_ACT_SILU = 3
} hewn_act;

/* What runs bring beside A, B and D. */
typedef enum hewn_gemm_with {
    HEWN_GEMM_C = 1, HEWN_GEMM_BIAS = 2, HEWN_GEMM_SCALE_A = 4, HEWN_GEMM_SCALE_B = 8
} hewn_gemm_with;

typedef struct hewn_gemm_desc {
    size_t struct_size;
    int64_t m, n, k;
    int in, out;           /* hewn_dtype: A's, of 16 or 8 bits; D's, of 32 or 16 */
    int64_t lda, ldb, ldd; /* elements; 0: the row's own length */
    int64_t batch;         /* 0 is read as 1 */
    int64_t stride_a, stride_b, stride_d; /* elements between problems; unused when batch is 1 */
    const char *variant; /* the kernel's, as hewn_gemm_plan_info names it; NULL: the cheapest here */
    uint32_t parts;      /* CTAs of a cluster among which K is cut, 1 to 8; 0: as is cheapest */
    uint32_t reserved;   /* 0: so that nothing new hides in what an older library takes for padding */
    int major_a, major_b; /* hewn_major */
    int in_b;             /* B's hewn_dtype: `in`, or 0 for it; of 8 bits the other, too */
    int accumulate;       /* hewn_accumulate; nothing to 16-bit inputs */
    int act;              /* hewn_act */
    uint32_t with;        /* hewn_gemm_with, or'ed */
    int64_t ldc;          /* elements; 0: n */
    int64_t stride_c;     /* elements between problems, 0: one C for all; unused when batch is 1 */
    int bias_type;        /* hewn_dtype: HEWN_F32 or `out` */
    uint32_t reserved_2;  /* 0 */
} hewn_gemm_desc;

typedef struct hewn_gemm_plan hewn_gemm_plan;

typedef struct hewn_gemm_plan_info {
    size_t struct_size;
    const char *module; /* "gemm_bf16_f32" */
    const char *target; /* "sm_90a" */
    const char *origin; /* as hewn_module_origin */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_shared;
    uint32_t tmem_columns;
    uint32_t tile_m, tile_n, tile_k, stages; /* the tile of D that a CTA computes */
    const char *variant; /* sm_90a: "plain", "pair", "small", ... (ptx/sm_90a/gemm.plan.h) */
    uint32_t parts;
} hewn_gemm_plan_info;

/* Validates, chooses the kernel for the context's device, loads it where it is not yet loaded, and
 * computes everything that does not depend on addresses. */
int hewn_gemm_plan_create(hewn_context *context, const hewn_gemm_desc *desc, hewn_gemm_plan **out,
                          hewn_error *err);
void hewn_gemm_plan_destroy(hewn_gemm_plan *plan); /* NULL is allowed */
int hewn_gemm_plan_describe(const hewn_gemm_plan *plan, hewn_gemm_plan_info *out, hewn_error *err);

typedef struct hewn_gemm_args {
    size_t struct_size;
    hewn_deviceptr a, b, d;
    hewn_deviceptr c, bias, scale_a, scale_b; /* those that the plan is with, the others 0; where beta
                                                 is 0, C may be 0 */
    float alpha, beta;
} hewn_gemm_args;

/* Enqueues the product on `stream`. Allocates, loads and synchronises nothing; safe under stream
 * capture. The plan's context must be current. */
int hewn_gemm_run_with(const hewn_gemm_plan *plan, const hewn_gemm_args *args, hewn_stream stream,
                       hewn_error *err);
/* The same with alpha 1, beta 0 and neither bias nor scales. */
int hewn_gemm_run(const hewn_gemm_plan *plan, hewn_deviceptr a, hewn_deviceptr b, hewn_deviceptr d,
                  hewn_stream stream, hewn_error *err);

/* ------------------------------------------------------------------------------- attention -- */

/*
 * O = softmax(scale Q transpose(K) + mask) V, forward, for `batch` sequences: query head h uses KV
 * head h / (q_heads / kv_heads). Sums are fp32, P is rounded to the input dtype (e4m3: P * 256).
 *
 * Head dimensions (qk_dim, v_dim): (64, 64), (96, 96), (128, 128), (192, 128), (256, 256),
 * (512, 512). Any lengths >= 0, different for queries and keys. Rows that see no key give O = 0 and
 * lse = -inf.
 *
 * A source is a set of keys and values with its own lengths, paging and mask. With two sources the
 * softmax runs over both: a compressed or sparse set beside a sliding window, in one launch. Query i
 * of q_len stands at p = i + kv_len - q_len of a source, aligned to the end, and sees keys j with
 *   j >= p - window_left  (unless -1),   j <= p + window_right  (unless -1),   j <= p if causal.
 * A zeroed description therefore sees j = p alone: no window is -1, -1. Lengths are below 2^29; batch,
 * heads, tokens, pages, batch x table_width and the work items below 2^31.
 *
 * Strides are in elements; 0 stands for the contiguous tensor of `layout`. In bytes they are
 * multiples of 16 and below 2^40. Packed sequences (q_packed, HEWN_KEYS_PACKED) lie behind each other
 * in one tensor of q_tokens (tokens) rows; batch strides are unused then.
 *
 * NaN and infinity in Q stay in their rows, in K in the rows that see the key; in V they reach the
 * rows of a tile of which any sees a key of the same 128-key block. Nothing crosses from one sequence
 * to another, and what lies behind a sequence's last key (other sequences, unused rows of a page or
 * of a padded cache) may hold anything.
 */
typedef enum hewn_layout {
    HEWN_BSHD = 0, /* batch, sequence, head, dimension; packed: token, head, dimension */
    HEWN_BHSD = 1  /* batch, head, sequence, dimension; packed: head, token, dimension */
} hewn_layout;

typedef enum hewn_keys {
    HEWN_KEYS_FIXED = 0,   /* `length` keys in every sequence */
    HEWN_KEYS_LENGTHS = 1, /* lengths[batch], each at most `length`; tensors padded or paged */
    HEWN_KEYS_PACKED = 2   /* offsets[batch + 1] into `tokens` packed rows (cu_seqlens) */
} hewn_keys;

typedef enum hewn_scales { HEWN_SCALE_TENSOR = 0, HEWN_SCALE_HEAD = 1 } hewn_scales;

typedef struct hewn_attention_source {
    int keys;           /* hewn_keys */
    int64_t length;     /* keys of a sequence, or the most of any */
    int64_t tokens;     /* HEWN_KEYS_PACKED: rows of K and V */
    int64_t page_size;  /* 0: not paged. Else 1..256: K and V are pools of pages, */
    int64_t pages;      /* this many, a page where a sequence would be in the layout, */
    int64_t table_width; /* and a block table of batch x table_width int32 says which; >= length / page_size */
    int64_t k_token, k_head, k_batch; /* strides; k_batch between sequences or pages */
    int64_t v_token, v_head, v_batch;
    int causal;                        /* 0 or 1 */
    int64_t window_left, window_right; /* keys seen before and after p; -1: all */
    int window_lengths; /* 1: windows[batch] says how many keys up to its own position a query of a
                           sequence sees (window_left + 1, so window_left must be -1); source 0 only */
} hewn_attention_source;

typedef struct hewn_attention_desc {
    size_t struct_size;
    int64_t batch, q_heads, kv_heads; /* q_heads a multiple of kv_heads */
    int64_t qk_dim, v_dim;            /* v_dim 0: qk_dim, or 128 for 192 */
    int64_t q_length;                 /* queries of a sequence, or the most of any */
    int q_packed;                     /* 1: cu_q holds batch + 1 offsets into q_tokens rows */
    int64_t q_tokens;
    int in, out; /* hewn_dtype: in HEWN_BF16, HEWN_F16 or HEWN_E4M3; out F32, F16 or BF16 */
    int layout;  /* hewn_layout of every tensor whose strides are 0 */
    int64_t q_token, q_head, q_batch;
    int64_t o_token, o_head, o_batch;
    double scale;     /* 0: 1 / sqrt(qk_dim); else above 0 and finite */
    int sink;         /* 1: a learned logit a query head joins the denominator */
    int unnormalised; /* 1: O = sum_j exp(scale q.k_j - row_max) V[j]; row_max is then an output */
    int q_scales, k_scales, v_scales; /* hewn_scales, for HEWN_E4M3: value = scale * stored */
    int64_t pack;   /* query heads of a tile, at most q_heads / kv_heads; 0: chosen */
    int64_t splits; /* parts that a row's keys are computed in, combined by a second kernel; at most
                       256, 1 if unnormalised; 0: chosen */
    int sources;    /* 1 or 2 */
    hewn_attention_source source[2];
} hewn_attention_desc;

typedef struct hewn_attention_plan hewn_attention_plan;

typedef struct hewn_attention_plan_info {
    size_t struct_size;
    const char *module; /* "attention_bf16_128_128" */
    const char *target;
    const char *origin;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_shared;
    uint32_t tmem_columns;
    uint32_t tile_rows, item_tiles, block_keys, slots;
    uint32_t pack, splits;
    uint64_t items;
    uint64_t workspace; /* bytes that hewn_attention_args.workspace must have; 0 unless splits > 1 */
} hewn_attention_plan_info;

/* Device addresses: q, o, k, v and workspace multiples of 16, the others of 4. What a plan does not use
 * must be 0; k and v may be 0 where the source has no rows. */
typedef struct hewn_attention_args {
    size_t struct_size;
    hewn_deviceptr q, o;
    hewn_deviceptr lse;     /* f32, or 0: not wanted. Element (b, h, i) at b * q_heads * q_length +
                               h * q_length + i; packed: h * q_tokens + token */
    hewn_deviceptr row_max; /* f32, laid out as lse; with `unnormalised` only, then required */
    hewn_deviceptr sink;    /* f32[q_heads]; -inf: this head has none */
    hewn_deviceptr q_scale, k_scale, v_scale; /* f32, 1 or one a head; above 0, 0: one */
    hewn_deviceptr cu_q;                      /* int32[batch + 1] */
    hewn_deviceptr workspace;                 /* used from launch to the end of the last kernel */
    struct hewn_attention_source_args {
        hewn_deviceptr k, v;
        hewn_deviceptr lengths; /* int32[batch], or offsets int32[batch + 1] */
        hewn_deviceptr table;   /* int32[batch * table_width] */
        hewn_deviceptr windows; /* int32[batch] */
    } source[2];
} hewn_attention_args;

/* As for GEMM: plan once, run many times. */
int hewn_attention_plan_create(hewn_context *context, const hewn_attention_desc *desc,
                               hewn_attention_plan **out, hewn_error *err);
void hewn_attention_plan_destroy(hewn_attention_plan *plan); /* NULL is allowed */
int hewn_attention_plan_describe(const hewn_attention_plan *plan, hewn_attention_plan_info *out,
                                 hewn_error *err);
/* Enqueues the kernel, and with splits > 1 the combine kernel behind it; nothing where there is no
 * query. Allocates, loads and synchronises nothing; safe under stream capture. The plan's context must
 * be current. O, lse, row_max and workspace must overlap neither each other nor an input. */
int hewn_attention_run(const hewn_attention_plan *plan, const hewn_attention_args *args,
                       hewn_stream stream, hewn_error *err);

/* Host copies of the arrays that a run's addresses hold; NULL where the plan uses none. */
typedef struct hewn_attention_tables {
    size_t struct_size;
    const int32_t *cu_q;
    struct hewn_attention_source_tables {
        const int32_t *lengths, *table, *windows;
    } source[2];
} hewn_attention_tables;

/* The kernels read lengths, offsets and block tables on the device and treat what breaks the rules as
 * empty or zero. This checks host copies and names array, index, value and rule: offsets start at 0,
 * never fall, end within the tensor, no sequence is longer than `length`; lengths in 0..length; pages
 * of the keys in use in 0..pages-1; windows in 0..2^29. */
int hewn_attention_check_tables(const hewn_attention_plan *plan, const hewn_attention_tables *tables,
                                hewn_error *err);

#ifdef __cplusplus
}
#endif

#endif
