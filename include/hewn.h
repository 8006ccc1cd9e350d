/*
 * hewn: hand-written PTX kernels for NVIDIA tensor cores, loaded through the CUDA driver API alone.
 *
 * The only public header. It compiles as C99, C11 and C++, beside cuda.h in either order.
 *
 * Names. A function is hewn_OBJECT_VERB, or hewn_OBJECT_PROPERTY where it only reads. From version
 * 0.2 on, names, constants and fields are added and never changed. A mistake found later gets a new
 * function beside the old one.
 *
 * Ownership. The caller owns every buffer, CUDA context and stream. The library owns what a
 * _create, _open or _attach function returned, until the matching _destroy, _close or _detach, each
 * of which accepts NULL. Strings and arrays passed in are read during the call only, except where a
 * comment says otherwise. A string that the library returns lives as long as the object that was
 * passed to the call.
 *
 * Errors. A function that can fail returns HEWN_OK (0) or a negative hewn_status. On failure
 * nothing is changed, and `err` (may be NULL) holds a sentence that names argument, value and rule.
 * On success `err` is left as it was. A function without a status returns NULL or 0 if it is given
 * NULL. Nothing here prints, exits, or creates a CUDA context unless its name says so.
 *
 * Structs. A struct that begins with `struct_size` may grow at its end in later versions:
 *   - Set struct_size to sizeof(the struct) and every field that you do not use to 0. Zero is
 *     always the default, so a struct full of zeros asks for nothing special.
 *   - A caller older than the library passes a shorter struct; the fields it lacks count as 0. A
 *     struct shorter than in version 0.2 is refused.
 *   - A caller newer than the library passes a longer struct; bytes that the library does not know
 *     must be 0, else the call fails with HEWN_ERR_ARGUMENT, and the message names struct and byte.
 *   - If the library fills a struct, the caller sets only struct_size. The library never writes
 *     past struct_size; bytes that it does not know become 0.
 *   - No struct is larger than 4096 bytes.
 * All other structs are frozen: they never change.
 *
 * Threads. Any number of threads may call any functions at the same time, on the same objects.
 * These are the exceptions; a comment at a function names any further one:
 *   - An object must not be destroyed, closed or detached while another thread uses it, or uses an
 *     object made from it.
 *   - An hewn_error, and every struct or array that a call fills, belongs to one call at a time.
 * "This thread" is the calling thread; each thread has a current CUDA context of its own.
 */
#ifndef HEWN_H
#define HEWN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The version of this header. */
#define HEWN_VERSION_MAJOR 0
#define HEWN_VERSION_MINOR 2
#define HEWN_VERSION_PATCH 0

/* The version of the library: 10000 * major + 100 * minor + patch, so 200 for 0.2.0. */
int hewn_version(void);

/* The driver's handles, by cuda.h's names of their structs: a CUstream is a hewn_stream. */
typedef struct CUstream_st *hewn_stream;
typedef struct CUfunc_st *hewn_function;
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

typedef struct hewn_error { /* frozen */
    int status;      /* a hewn_status */
    int driver_code; /* the CUresult behind HEWN_ERR_DRIVER, else 0 */
    char message[480];
} hewn_error;

/* "HEWN_ERR_ARGUMENT" for -1, and so on; "HEWN_ERR_UNKNOWN" for a number that is no hewn_status. */
const char *hewn_status_name(int status);

/* ---------------------------------------------------------------------------------- driver -- */

typedef struct hewn_driver hewn_driver;

typedef struct hewn_driver_options {
    size_t struct_size;
    /* Library to open; NULL: the environment's HEWN_LIBCUDA, else "libcuda.so.1". */
    const char *path;
    /* Called instead of opening a library: returns the function named by its exported symbol (for
     * example "cuMemAlloc_v2"), or NULL. Kept for hewn_driver_symbol, so any
     * thread may call it. `path` must then be NULL. */
    void *(*resolve)(void *user, const char *symbol);
    void *user; /* passed to `resolve` */
} hewn_driver_options;

/* Opens the driver library, resolves its functions, and calls cuInit(0). `options` may be NULL.
 * Reads the environment: no thread may change it meanwhile. */
int hewn_driver_open(const hewn_driver_options *options, hewn_driver **out, hewn_error *err);
/* Every context attached through this driver must be detached before. */
void hewn_driver_close(hewn_driver *driver);

/* The path of the opened library as the loader resolved it, or "(resolver)". */
const char *hewn_driver_path(const hewn_driver *driver);
/* The driver's CUDA version, as 1000 * major + 10 * minor. */
int hewn_driver_version(const hewn_driver *driver);
int hewn_driver_device_count(const hewn_driver *driver);
/* The optional functions that this driver lacks, comma-separated; "" where it has them all. */
const char *hewn_driver_missing(const hewn_driver *driver);
/* A function of the driver by its exported name: for example one for memory, streams or graphs,
 * which this header does not offer. NULL where the driver lacks it. */
void *hewn_driver_symbol(const hewn_driver *driver, const char *symbol);

typedef struct hewn_device_info {
    size_t struct_size;
    char name[96];
    int ordinal;
    int cc_major, cc_minor; /* compute capability */
    int sm_count;
    int max_shared_per_block; /* bytes: the opt-in limit of dynamic + static shared memory */
    int shared_per_sm;        /* bytes */
    int registers_per_sm;
    int l2_bytes;
    int clock_khz;
    int simulated; /* 1 when the driver is hewn's simulator, else 0 */
    uint64_t memory_bytes;
} hewn_device_info;

/* Describes device `ordinal`, in 0..hewn_driver_device_count - 1. Needs no context. */
int hewn_driver_describe_device(const hewn_driver *driver, int ordinal, hewn_device_info *out,
                                hewn_error *err);

/* --------------------------------------------------------------------------------- context -- */

typedef struct hewn_context hewn_context;

/* Attaches to the CUDA context that is current on this thread; it must outlive the result. */
int hewn_context_attach(hewn_driver *driver, hewn_context **out, hewn_error *err);
/* Retains the primary context of device `ordinal`, makes it current on this thread, and attaches to
 * it. hewn_context_detach releases it. If it is then still current, the previous context becomes
 * current again. */
int hewn_context_attach_primary(hewn_driver *driver, int ordinal, hewn_context **out,
                                hewn_error *err);
/* Unloads the modules that this context loaded. No kernel of theirs may be in flight. Afterwards a
 * plan of this context may only be destroyed. */
void hewn_context_detach(hewn_context *context);
/* Describes the context's device. */
int hewn_context_describe_device(const hewn_context *context, hewn_device_info *out,
                                 hewn_error *err);

/* --------------------------------------------------------------------------------- modules -- */

/* A kernel as shipped, and the kernels behind one group of functions. Both are part of the library
 * and constant. */
typedef struct hewn_module hewn_module;
typedef struct hewn_family hewn_family;

/* A program that calls one of these links the kernels of that family alone. A library that was
 * built without a family still has its function. The family then has no modules, and its plans
 * cannot be created (HEWN_ERR_NO_MODULE). */
const hewn_family *hewn_gemm_family(void);
const hewn_family *hewn_attention_family(void);
const hewn_family *hewn_decode_family(void); /* the decode schedule of hewn_attention_* */
const hewn_family *hewn_mla_family(void);
const hewn_family *hewn_indexer_family(void);
const hewn_family *hewn_topk_family(void);
const hewn_family *hewn_grouped_family(void);
const hewn_family *hewn_w4_family(void);

const char *hewn_family_name(const hewn_family *family); /* "gemm" */
size_t hewn_family_count(const hewn_family *family);
/* The module at `index`, NULL from hewn_family_count on. */
const hewn_module *hewn_family_module(const hewn_family *family, size_t index);

typedef struct hewn_module_info {
    size_t struct_size;
    const char *name;   /* "gemm_bf16_f32" */
    const char *target; /* "sm_90a" or "sm_100f" */
    const char *entry;  /* the kernel's symbol in the module */
    const char *sha256; /* of the PTX text, 64 hex digits */
    size_t ptx_size;    /* bytes of the PTX text */
    const char *manifest; /* JSON, NUL-terminated */
    size_t manifest_size; /* without the NUL */
    size_t image_count;   /* forms that hewn_module_describe_image knows: 1 or more */
    const char *cubins; /* their architectures: "sm_100 sm_103"; "": none, the PTX text alone */
} hewn_module_info;

/* The library holds manifests and images compressed, several modules together. This function and the next
 * unpack what they return and keep it until the process ends. HEWN_ERR_MEMORY: no memory for that. */
int hewn_module_describe(const hewn_module *module, hewn_module_info *out, hewn_error *err);

/* One form of a module: a cubin for one architecture, or the PTX text. */
typedef struct hewn_image_info {
    size_t struct_size;
    const char *arch; /* "sm_90a", "sm_100", "sm_103"; "ptx": the text */
    const void *data; /* as cuModuleLoadData takes it: a cubin, or the text with a NUL behind it */
    size_t size;      /* without the NUL */
} hewn_image_info;

/* The form at `index`: the cubins, then the text. */
int hewn_module_describe_image(const hewn_module *module, size_t index, hewn_image_info *out,
                               hewn_error *err);

/* True (1) when code for `target` runs on compute capability major.minor: "sm_90a" on 9.0 only,
 * "sm_100f" on 10.0, 10.3 and later minors of 10. Never decided by the major number alone. */
int hewn_target_runs_on(const char *target, int cc_major, int cc_minor);

/* Loads every module of a family that this device can run, so that no later call loads anything.
 * Idempotent. HEWN_ERR_NO_MODULE lists the device's capability and what the family ships. */
int hewn_family_preload(hewn_context *context, const hewn_family *family, hewn_error *err);

/* Where a module of this context came from: "cubin sm_90a", "ptx" (compiled by the driver), or
 * NULL while it is not loaded. */
const char *hewn_module_origin(const hewn_context *context, const hewn_module *module);
/* A loaded module's kernel, for hewn_function_launch and the driver's own functions; NULL while it
 * is not loaded. It lives until hewn_context_detach. */
hewn_function hewn_module_function(const hewn_context *context, const hewn_module *module);

/* ----------------------------------------------------------------------------- tensor maps -- */

/* Layout and alignment of CUtensorMap: 128 opaque bytes, 64-byte aligned. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define HEWN_ALIGNED_64 alignas(64)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define HEWN_ALIGNED_64 _Alignas(64)
#else
#define HEWN_ALIGNED_64 /* C99 cannot say it: the caller aligns, and hewn_tensormap_encode checks */
#endif
typedef struct hewn_tensormap { /* frozen */
    HEWN_ALIGNED_64 uint64_t opaque[16];
} hewn_tensormap;

typedef enum hewn_tensormap_dtype { /* values are the driver's CUtensorMapDataType */
    HEWN_TENSORMAP_U8 = 0, HEWN_TENSORMAP_U16, HEWN_TENSORMAP_U32, HEWN_TENSORMAP_I32,
    HEWN_TENSORMAP_U64, HEWN_TENSORMAP_I64, HEWN_TENSORMAP_F16, HEWN_TENSORMAP_F32,
    HEWN_TENSORMAP_F64, HEWN_TENSORMAP_BF16, HEWN_TENSORMAP_F32_FTZ, HEWN_TENSORMAP_TF32,
    HEWN_TENSORMAP_TF32_FTZ, HEWN_TENSORMAP_16U4_ALIGN8B, HEWN_TENSORMAP_16U4_ALIGN16B,
    HEWN_TENSORMAP_16U6_ALIGN16B
} hewn_tensormap_dtype;

typedef enum hewn_tensormap_interleave {
    HEWN_TENSORMAP_INTERLEAVE_NONE = 0, HEWN_TENSORMAP_INTERLEAVE_16B, HEWN_TENSORMAP_INTERLEAVE_32B
} hewn_tensormap_interleave;

typedef enum hewn_tensormap_swizzle {
    HEWN_TENSORMAP_SWIZZLE_NONE = 0, HEWN_TENSORMAP_SWIZZLE_32B, HEWN_TENSORMAP_SWIZZLE_64B,
    HEWN_TENSORMAP_SWIZZLE_128B, HEWN_TENSORMAP_SWIZZLE_128B_ATOM_32B,
    HEWN_TENSORMAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, HEWN_TENSORMAP_SWIZZLE_128B_ATOM_64B
} hewn_tensormap_swizzle;

typedef enum hewn_tensormap_l2 {
    HEWN_TENSORMAP_L2_NONE = 0, HEWN_TENSORMAP_L2_64B, HEWN_TENSORMAP_L2_128B,
    HEWN_TENSORMAP_L2_256B
} hewn_tensormap_l2;

typedef enum hewn_tensormap_oob {
    HEWN_TENSORMAP_OOB_ZERO = 0, HEWN_TENSORMAP_OOB_NAN
} hewn_tensormap_oob;

/* A tiled tensor map. Dimension 0 is the fastest; sizes in elements, strides in bytes. */
typedef struct hewn_tensormap_desc {
    size_t struct_size;
    hewn_deviceptr address;
    int dtype;                  /* hewn_tensormap_dtype */
    int rank;                   /* 1..5 */
    uint64_t dim[5];            /* extent of each dimension in memory */
    uint64_t stride[4];         /* byte stride of dimensions 1..rank-1 */
    uint32_t box[5];            /* extent of the box that one copy moves */
    uint32_t element_stride[5]; /* 0: 1 */
    int interleave;             /* hewn_tensormap_interleave */
    int swizzle;                /* hewn_tensormap_swizzle */
    int l2;                     /* hewn_tensormap_l2: promotion */
    int oob;                    /* hewn_tensormap_oob: what a copy reads outside the tensor */
} hewn_tensormap_desc;

/* Checks every rule that cuTensorMapEncodeTiled enforces on a device of compute capability
 * cc_major.cc_minor, without a driver. A case that the driver's reference leaves open is refused.
 * `what` names the tensor in messages ("A"); NULL: "tensor". */
int hewn_tensormap_check(const hewn_tensormap_desc *desc, const char *what, int cc_major,
                         int cc_minor, hewn_error *err);
/* Checks, then encodes. */
int hewn_tensormap_encode(const hewn_context *context, const hewn_tensormap_desc *desc,
                          const char *what, hewn_tensormap *out, hewn_error *err);

/* -------------------------------------------------------------------- tensor memory (TMEM) -- */

/* A named range of TMEM columns that a kernel needs. */
typedef struct hewn_tmem_region { /* frozen */
    const char *name;             /* for messages; may be NULL */
    uint32_t columns;             /* 1..512 */
    uint32_t align;               /* a power of two in columns; 0: 1 */
    uint32_t column;              /* filled: the first column, from the allocation's base */
} hewn_tmem_region;

typedef struct hewn_tmem_plan { /* frozen */
    uint32_t columns;           /* to allocate: a power of two, 32..512 */
    uint32_t used;              /* columns that the regions cover, gaps included */
    uint32_t ctas_per_sm;       /* CTAs whose allocations fit one SM together */
} hewn_tmem_plan;

/* For kernels of your own: places `count` regions (largest alignment first, then given order) and
 * computes the allocation. HEWN_ERR_LIMIT where they need more than 512 columns, or where
 * `ctas_per_sm` CTAs (0: any number) do not fit an SM together. Such CTAs could block each other in
 * tcgen05.alloc. */
int hewn_tmem_place(hewn_tmem_region *regions, size_t count, uint32_t ctas_per_sm,
                    hewn_tmem_plan *out, hewn_error *err);

/* ---------------------------------------------------------------------------------- launch -- */

typedef struct hewn_launch_desc {
    size_t struct_size;
    uint32_t grid[3], block[3];
    uint32_t cluster[3];     /* all 0: no cluster attribute */
    uint32_t dynamic_shared; /* bytes; above 48 KiB see hewn_function_allow_shared */
    int cooperative;         /* 0 or 1 */
    int programmatic;        /* 0 or 1: may start before its predecessor in the stream ends */
    hewn_stream stream;
} hewn_launch_desc;

/* Sets a function's limit of dynamic shared memory. Static and dynamic together may not exceed the
 * opt-in limit of the device. Not for launch paths. A launch at the same time sees the old limit or
 * the new one. */
int hewn_function_allow_shared(const hewn_context *context, hewn_function function, uint32_t bytes,
                               hewn_error *err);
/* Checks the shape against the device's limits and launches. `params` as for cuLaunchKernelEx. The
 * context must be current on this thread. */
int hewn_function_launch(const hewn_context *context, hewn_function function,
                         const hewn_launch_desc *desc, void **params, hewn_error *err);

/* ------------------------------------------------------------------- element types, plans -- */

/* HEWN_E4M3 has 4 exponent and 3 mantissa bits and no infinities, HEWN_E5M2 5 and 2. HEWN_S8 and HEWN_S32 are
 * signed integers. HEWN_E2M1 has 4 bits, two elements a byte, the first in the lower half: +-{0, 0.5, 1, 1.5, 2, 3,
 * 4, 6}. */
typedef enum hewn_dtype {
    HEWN_F32 = 0, HEWN_F16 = 1, HEWN_BF16 = 2, HEWN_E4M3 = 3, HEWN_E5M2 = 4, HEWN_S8 = 5, HEWN_S32 = 6,
    HEWN_E2M1 = 7
} hewn_dtype;

size_t hewn_dtype_size(int dtype);      /* bytes; 0 for HEWN_E2M1 and a number that is no hewn_dtype */
const char *hewn_dtype_name(int dtype); /* "f32", "f16", "bf16", "e4m3", "e5m2", "s8", "s32", "e2m1", or NULL */

/*
 * Every kernel family has the same four functions:
 *   ..._plan_create    checks the description, chooses the kernel for the context's device, loads
 *                      it where it is not yet loaded, and computes everything that does not depend
 *                      on addresses. Any context may be current.
 *   ..._plan_describe  says what was chosen. Strings live until the context is detached.
 *   ..._plan_run       enqueues the work on `stream`. It allocates, loads and synchronises nothing
 *                      and is safe inside stream capture. The plan's context must be current on
 *                      this thread. `args` is read during the call only. Runs of one plan may
 *                      overlap in time, from several threads and on several streams, where their
 *                      outputs (and workspaces) are different memory.
 *   ..._plan_destroy   frees the plan. Runs that are still in flight are not affected.
 * A plan is immutable.
 */

/* ------------------------------------------------------------------------------------ gemm -- */

/*
 * D[b] = act(alpha * scale_a * scale_b * A[b] * transpose(B[b]) + beta * C[b] + bias)
 *                                                    for b in [0, batch); plain: A * transpose(B)
 *
 * A is m x k, B is n x k, D is m x n. Each is row-major with its own leading dimension: the
 * elements between the starts of two rows. An operand with HEWN_MAJOR_MN is stored transposed: A as
 * k rows of m elements, B as k rows of n.
 *
 * Products are exact; sums are fp32, in the tensor core's order. The epilogue is fp32. It rounds
 * after each of these steps: alpha * scale_a; times scale_b; times the sum; + beta * C; + bias.
 * gelu and silu use approximations of 2^x (2 ulp) and 1/x (1 ulp). The result is rounded once to
 * D's type, to nearest even.
 *
 * alpha and beta are host numbers, given with each run. scale_a and scale_b are fp32 on the device, one
 * number each. For inputs that are both e4m3 or both s8, they may have one number for each row instead:
 * with HEWN_GEMM_WITH_SCALE_ROWS scale_a has m numbers, one for each row of A; with
 * HEWN_GEMM_WITH_SCALE_COLUMNS scale_b has n, one for each row of B, that is, for each column of D.
 * The sum is then multiplied by alpha and the scales that are one number, by its row's scale, and by its
 * column's, and rounded after each. In a batch, the scales of A's problem i begin at m * i, with m
 * rounded up to a multiple of 4, and those of B's at n * i, likewise rounded.
 *
 * C is m x n and has D's type; it is not read if beta is 0. bias has n elements, one for each column, of
 * D's type or fp32, the same in every problem. relu(x) = max(x, 0); gelu is the tanh form,
 * x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); silu(x) = x / (1 + exp(-x)). NaN stays NaN; -infinity
 * becomes NaN in gelu and silu.
 *
 * HEWN_ACT_SWIGLU computes gate and up projections as one product. B has 2n rows: first the n of the gate,
 * then the n of the other factor, as one matrix with one leading dimension. D is m x n:
 *
 *   D[i][j] = silu(x[i][j]) * x[i][n + j],   x = alpha * scale_a * scale_b * A * transpose(B)
 *
 * It rounds after the multiplication too. It is for 16-bit inputs, on sm_100f for 8-bit ones too. Inputs are
 * K-major, with strides and addresses that are multiples of 16 bytes. It excludes C, bias, scales of rows or
 * columns, and slices of K.
 *
 * 8-bit inputs: A and B are each e4m3 or e5m2, and K-major. The tensor cores of sm_90a keep 13
 * fraction bits of sums of 8-bit products. With HEWN_ACCUMULATE_FULL they add up 128 elements of k
 * at a time, and those sums are added in fp32. With HEWN_ACCUMULATE_FAST they add up all of k.
 * Terms that are small beside the running sum are then lost: for example, a sum of 6000 products of
 * numbers between 0 and 1 loses a tenth.
 *
 * s8 inputs: A and B are both s8, and K-major. Sums are s32 and wrap. With `out` HEWN_S32 they are the
 * result, and `with` and `act` are 0; otherwise they are rounded to fp32 before the epilogue. s8 inputs are
 * for sm_90a only; elsewhere HEWN_ERR_LIMIT. Products of s8, and products with scales of rows or columns,
 * are never cut into slices of K.
 *
 * Sizes: m, n, k, batch and the number of output tiles are in 1..2^31-1. A leading dimension is at
 * least the row's length. A batch stride of 0 for A, B or C means one matrix for the whole batch. No
 * stride is negative or reaches 2^40 bytes.
 *
 * Alignment: the addresses of the matrices and of bias are multiples of 16. If `align` is 1, 2, 4 or 8, they
 * need only be multiples of `align` and of their element's size. Leading dimensions and batch strides are
 * any number of elements. If one of them is not a multiple of 16 bytes, or `align` is less than 16, a slower
 * kernel is chosen, which loads such operands and stores D element by element. s8 inputs, and on sm_90a
 * scales of rows or columns, cannot have such strides: HEWN_ERR_LIMIT. The address of a scale is a multiple
 * of 4, that of scales of rows or columns a multiple of 16.
 *
 * Overlap: D overlaps neither A nor B. The problems of D do not overlap each other: they follow
 * each other (stride_d >= (m-1)*ldd + n) or lie side by side in the rows (stride_d >= n and
 * (batch-1)*stride_d + n <= ldd). C is D itself, with the same strides, or does not overlap it.
 * bias and scales lie outside of D and of the gaps between its rows. A, B, C and D may be different
 * columns of one matrix.
 */
typedef enum hewn_major {
    HEWN_MAJOR_K = 0, /* elements along k are neighbours */
    HEWN_MAJOR_MN = 1 /* elements along m (of A) or n (of B) are neighbours */
} hewn_major;

typedef enum hewn_accumulate { HEWN_ACCUMULATE_FULL = 0, HEWN_ACCUMULATE_FAST = 1 } hewn_accumulate;

typedef enum hewn_act {
    HEWN_ACT_NONE = 0, HEWN_ACT_RELU = 1, HEWN_ACT_GELU = 2, HEWN_ACT_SILU = 3,
    HEWN_ACT_SWIGLU = 4
} hewn_act;

/* What a run has besides A, B and D. */
typedef enum hewn_gemm_with {
    HEWN_GEMM_WITH_C = 1, /* C and beta */
    HEWN_GEMM_WITH_BIAS = 2,
    HEWN_GEMM_WITH_SCALE_A = 4,
    HEWN_GEMM_WITH_SCALE_B = 8,
    HEWN_GEMM_WITH_ALPHA = 16,
    HEWN_GEMM_WITH_SCALE_ROWS = 32,   /* scale_a for each row; not with WITH_SCALE_A */
    HEWN_GEMM_WITH_SCALE_COLUMNS = 64 /* scale_b for each column; not with WITH_SCALE_B */
} hewn_gemm_with;

/* Kernels that hewn_gemm_tune found to be the fastest. */
typedef struct hewn_gemm_table hewn_gemm_table;

typedef struct hewn_gemm_desc {
    size_t struct_size;
    int64_t m, n, k;
    int64_t batch;        /* problems; 0: 1 */
    int in;               /* hewn_dtype of A: 16 or 8 bits */
    int in_b;             /* hewn_dtype of B; 0: `in`. With 8 bits it may be the other 8-bit type */
    int out;              /* hewn_dtype of D and C: F32, F16 or BF16; S32 of s8 inputs */
    int bias_type;        /* hewn_dtype of bias: HEWN_F32 or `out` */
    int major_a, major_b; /* hewn_major */
    int accumulate;       /* hewn_accumulate; ignored for 16-bit inputs */
    int act;              /* hewn_act */
    uint32_t with;        /* hewn_gemm_with, or'ed */
    uint32_t parts;       /* CTAs of a cluster that share the sum over k, 1..8; 0: chosen */
    int64_t lda, ldb, ldc, ldd;                     /* elements; 0: the row's own length */
    int64_t stride_a, stride_b, stride_c, stride_d; /* elements between problems; unused if batch
                                                       is 1 */
    const char *variant; /* of the kernel, as hewn_gemm_plan_info names it; NULL: chosen */
    const hewn_gemm_table *table; /* where `variant` is NULL and `parts` 0, plan_create looks here
                                     before it chooses; NULL: no table */
    uint32_t invariant;           /* 1: the bits of a row of D do not depend on m; see below */
    uint32_t align;               /* all addresses are multiples of this: 1, 2, 4, 8 or 16 bytes; 0: 16.
                                     Less than 16 selects slower kernels */
    uint32_t slices;              /* slices of K, 1..64, or HEWN_GEMM_TURNED + 1..64; 0: chosen if `variant` is
                                     NULL and `parts` is 0, else 1; see below */
    uint32_t constant_b;          /* 1: no work that may still be running when the launch begins writes B, as with
                                     weights. The kernel may then read B before it waits for that work */
} hewn_gemm_desc;

/*
 * Slices. A product with few rows and columns and a long K occupies few SMs. K may therefore be cut into
 * slices. Each slice is a product of its own whose sums go to the run's `workspace`; a second kernel adds them
 * up, in an order that depends only on their number. A slice is a number of whole k-blocks of the kernel (`tile_k`
 * below), at least one for each part; with several parts, `odd64`, `odd128` and `odd256` need two for each. The
 * slices of a product differ by one k-block at most.
 *
 * HEWN_GEMM_TURNED + s means s slices that compute the transpose of D. That suits tiles of 128 rows if n is near
 * a multiple of 128 and m is not. Slices need `batch` 0 or 1 and `align` 0 or 16. If the library chose the slices
 * and a run has no workspace, the run computes the product in one slice; its bits may differ.
 */

/*
 * Invariance. The order in which terms are added depends on the number of parts of K. With `invariant`
 * that number depends only on n, k and the types, and `table` is not used. On one device, a row of D
 * then has the same bits whatever m and the batch are.
 */

enum { HEWN_GEMM_TURNED = 128 };

typedef struct hewn_gemm_plan hewn_gemm_plan;

typedef struct hewn_gemm_plan_info {
    size_t struct_size;
    const char *module;  /* "gemm_bf16_f32" */
    const char *target;  /* "sm_90a" */
    const char *origin;  /* as hewn_module_origin */
    const char *variant; /* sm_90a: "plain", "pair", "small", ... (ptx/sm_90a/gemm.plan.h) */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_shared; /* bytes */
    uint32_t tmem_columns;
    uint32_t tile_m, tile_n, tile_k; /* the tile of D that a CTA computes, and k of one stage */
    uint32_t stages;    /* of "odd16x16" and "odd32x32": tiles that a CTA computes */
    uint32_t parts;
    uint32_t slices;    /* slices of K, as in the description; above 1, the fields above describe the kernel of the slices */
    uint64_t workspace; /* bytes that a run's `workspace` must have; it needs no initial values */
} hewn_gemm_plan_info;

/* Device addresses, 0 where the plan has no use for one; with beta 0, C may be 0. */
typedef struct hewn_gemm_args {
    size_t struct_size;
    hewn_deviceptr a, b, d;
    hewn_deviceptr c, bias, scale_a, scale_b;
    float alpha; /* with HEWN_GEMM_WITH_ALPHA; without it 0 or 1, and 1 is used */
    float beta;  /* with HEWN_GEMM_WITH_C; without it 0 */
    hewn_deviceptr workspace; /* a multiple of 16; in use from the launch to the end of the last kernel. 0: none,
                                 allowed if the library chose the slices */
} hewn_gemm_args;

int hewn_gemm_plan_create(hewn_context *context, const hewn_gemm_desc *desc, hewn_gemm_plan **out,
                          hewn_error *err);
void hewn_gemm_plan_destroy(hewn_gemm_plan *plan);
int hewn_gemm_plan_describe(const hewn_gemm_plan *plan, hewn_gemm_plan_info *out, hewn_error *err);
int hewn_gemm_plan_run(const hewn_gemm_plan *plan, const hewn_gemm_args *args, hewn_stream stream,
                       hewn_error *err);

/*
 * Tuning at run time. hewn_gemm_tune times the kernels that can compute a product, and notes the fastest in
 * a table. A plan whose description has that table uses the noted kernel if target, number of SMs, sizes,
 * batch, types, majors and accumulation are the same. Otherwise it chooses as without a table. It also
 * chooses itself if the library no longer has that kernel, or if that kernel cannot compute something else
 * that the description asks for. A table can be written as text and read again, by other programs too, so
 * each device needs to be tuned only once. If a noted kernel uses slices and a run has no workspace, the run
 * computes the product as without a table.
 *
 *   hewn_gemm_table_create    an empty table.
 *   hewn_gemm_table_read      adds the lines of a text of `length` bytes. If several lines are for one
 *                             product, the last counts. After an error the table is as it was.
 *   hewn_gemm_table_write     sets `*length` to the bytes of the text, without the final NUL. Writes the
 *                             text if `capacity` is greater than that, else fails with HEWN_ERR_LIMIT.
 *                             text may be NULL with capacity 0.
 *   hewn_gemm_table_count     the number of products in it.
 * The text is lines of ASCII; lines that are empty or begin with '#' are ignored. Tables are not bound to
 * a context. While one thread reads into, tunes into or destroys a table, no other thread may use it.
 */
int hewn_gemm_table_create(hewn_gemm_table **out, hewn_error *err);
void hewn_gemm_table_destroy(hewn_gemm_table *table);
int hewn_gemm_table_read(hewn_gemm_table *table, const char *text, size_t length, hewn_error *err);
int hewn_gemm_table_write(const hewn_gemm_table *table, char *text, size_t capacity, size_t *length,
                          hewn_error *err);
size_t hewn_gemm_table_count(const hewn_gemm_table *table);

typedef struct hewn_gemm_tune_args {
    size_t struct_size;
    const hewn_gemm_args *args; /* arguments of the launches. D is scratch: it is overwritten. A, B, C,
                                   bias and scales are read; their values hardly matter */
    hewn_stream stream;         /* must not be capturing; the call waits for it */
    hewn_deviceptr flush;       /* memory that is overwritten before each timed launch, so that no
                                   operand is in L2; 0: launches follow one another, and operands
                                   stay in L2 as far as they fit */
    uint64_t flush_bytes;       /* best twice the size of L2 */
    uint64_t rounds;            /* launches of each kernel; 0: 5. The fastest counts */
    uint64_t workspace_bytes;   /* size of args->workspace; slices that need more are not timed */
    uint64_t copies;            /* matrices B that launches take in turn, as a model's layers do, so that B is
                                   not in L2; 0: 1 */
    int64_t copy_stride;        /* elements from one of them to the next; unused if copies is 0 or 1 */
} hewn_gemm_tune_args;

typedef struct hewn_gemm_tuned {
    size_t struct_size;
    const char *variant; /* the fastest kernel; valid as long as the library is loaded */
    uint32_t parts;
    uint32_t tried;        /* kernels timed; each number of parts and of slices counts */
    double seconds;        /* of one launch */
    double chosen_seconds; /* of one launch of the kernel that is chosen without a table */
    uint32_t slices;       /* slices of K, as in the description */
    uint32_t reserved;     /* 0 */
} hewn_gemm_tuned;

/* `desc` is as for plan_create; its `table` is ignored. If it names a variant or parts, or is invariant, only
 * kernels that comply are timed. The kernel that is chosen without a table is kept unless another takes 2 % less
 * time. A kernel that takes more than twice the fastest one's time in its first launches is timed no further.
 * Slices of K are timed if `workspace_bytes` is enough for their sums, at most two numbers of slices for each
 * kernel. The result goes into `table` and `out`; either may be NULL. Loads every kernel that it
 * times; creates and destroys two events. The context must be current on this thread. */
int hewn_gemm_tune(hewn_context *context, const hewn_gemm_desc *desc,
                   const hewn_gemm_tune_args *args, hewn_gemm_table *table, hewn_gemm_tuned *out,
                   hewn_error *err);

/* ------------------------------------------------------------------------------- attention -- */

/*
 * O = softmax(scale * Q * transpose(K) + mask) * V, forward, for `batch` sequences. Query head h
 * uses KV head h / (q_heads / kv_heads). Sums are fp32. P is rounded to the input type; with e4m3,
 * 256 * P is rounded. With bf16 on sm_90a, values of V lose bits below 2^-42 in size, and may
 * overflow above 2^40 where a row's scores rise by more than 90 within 128 keys.
 *
 * Head dimensions (qk_dim, v_dim): (64, 64), (96, 96), (128, 128), (192, 128), (256, 256),
 * (512, 512). Lengths may be 0 and may differ between queries and keys. A row that sees no key
 * gives O = 0 and lse = -infinity.
 *
 * A source is a set of keys and values with its own lengths, paging and mask. With two sources the
 * softmax runs over both in one launch: for example a compressed set beside a sliding window.
 *
 * Masks. Queries are aligned to the end of a source's keys: query i of q_len stands at position
 * p = i + kv_len - q_len. It sees key j of the source where all of these hold:
 *   j > p - window_back, unless window_back is 0;
 *   j < p + window_ahead, unless window_ahead is 0;
 *   j <= p, if causal is 1;
 *   bit j - (kv_len - q_len) of the query's `tree` mask is set, if tree is 1 and that number is not
 *     negative.
 * So a window counts the query's own position: 1 means that key alone, 0 means no limit.
 *
 * With `softcap` a score s = scale * q.k becomes softcap * tanh(s / softcap), before masks and sink;
 * lse and row_max are those of the capped scores. An infinite score is capped too. The error of tanh is below
 * 2^-21, so the error of a capped score is below softcap * 2^-21, plus that of the fp32 sum in s. On
 * sm_100f, and on sm_90a for 16-bit inputs with head dimensions (192, 128), only the decode schedule has it.
 *
 * Sizes: lengths are below 2^29; batch, heads, tokens, pages, batch * table_width and the number of
 * work items are below 2^31. Strides are in elements; 0 means the contiguous tensor of `layout`. In
 * bytes they are multiples of 16 and below 2^40. Packed sequences (q_packed, HEWN_KEYS_PACKED)
 * follow each other in one tensor of q_tokens (tokens) rows; batch strides are ignored then.
 *
 * Schedules. Two sets of kernels compute this.
 *   Prefill: an item of work is a tile of about 128 query rows.
 *   Decode: a tile is 16 to 64 rows of a KV head, and every SM gets an equal share of all keys of the
 *     batch. The shares are computed on the device, from the lengths of the run. A second kernel combines
 *     the rows whose keys were shared. There are two other forms: on sm_90a, if few keys fall to a CTA, a
 *     cluster may take a tile and merge its parts itself; and short tiles may have one CTA each. Bits may
 *     differ between devices, and between plans with other largest lengths. This schedule has one source
 *     and 16-bit inputs, and no `unnormalised`.
 * The decode schedule is chosen if q_length * q_heads / kv_heads is at most 64 and `splits` and `pack`
 * are 0. On sm_90a, 16-bit inputs with head dimensions 96 and 512 have only this schedule.
 *
 * e4m3 keys. With `kv` HEWN_E4M3 beside a 16-bit `in`, K and V are stored as e4m3, half the bytes. This
 * is for the decode schedule. K and V become f16 before the products, which is exact. Q becomes f16 too;
 * a row of bf16 is multiplied by a power of two first, and elements below 2^-29 of its largest one lose
 * bits. 2^15 * P is rounded to f16, on sm_100f 2^7 * P. The scale of K is applied to the scores, that of
 * V to O, in fp32.
 *
 * Invariance. With `invariant` the bits of a sequence's rows depend on that sequence alone. They do not
 * depend on the number, order and lengths of the others, on the plan's largest lengths, on packing and
 * pages, or on the number of SMs. The decode schedule then splits keys at multiples of 2,048. The prefill
 * schedule splits them as `splits` says, and not at all if that is 0. The costs:
 *   - Each part of a row is written and read once: 4 * v_dim bytes for 2,048 keys.
 *   - A CTA has up to 2,048 keys more than its share. Short batches with few KV heads leave SMs idle.
 *   - The workspace has room for all parts of the plan's longest sequences.
 * Bits also depend on the schedule. It follows from q_length * q_heads / kv_heads. With q_packed, where
 * q_length is the longest sequence's, `schedule` must be given.
 *
 * NaN and infinity: in Q they stay in their rows; in K they reach the rows that see the key. In V
 * they reach a whole tile of rows, and the tiles that one CTA computes together (item_tiles of the
 * plan), if one of their rows sees a key of the same block of 128 keys.
 * Nothing crosses from one sequence to another. Memory behind a sequence's last key (other
 * sequences, unused rows of a page or of a padded cache) may hold anything.
 */
typedef enum hewn_layout {
    HEWN_LAYOUT_BSHD = 0, /* batch, sequence, head, dimension; packed: token, head, dimension */
    HEWN_LAYOUT_BHSD = 1  /* batch, head, sequence, dimension; packed: head, token, dimension */
} hewn_layout;

typedef enum hewn_keys {
    HEWN_KEYS_FIXED = 0,   /* `length` keys in every sequence */
    HEWN_KEYS_LENGTHS = 1, /* lengths[batch], each at most `length`; tensors padded or paged */
    HEWN_KEYS_PACKED = 2   /* offsets[batch + 1] into `tokens` packed rows (cu_seqlens) */
} hewn_keys;

/* How many scales a tensor has. Those of Q are of query heads or, one for all that share a KV head, of KV
 * heads; those of K and V are of KV heads in either case. With _SEQUENCE_ every sequence has its own. */
typedef enum hewn_scales {
    HEWN_SCALES_TENSOR = 0,
    HEWN_SCALES_HEAD = 1,
    HEWN_SCALES_KV_HEAD = 2,
    HEWN_SCALES_SEQUENCE_HEAD = 3,
    HEWN_SCALES_SEQUENCE_KV_HEAD = 4
} hewn_scales;

typedef enum hewn_v_layout {
    HEWN_V_ROWS = 0,   /* a row of V is a key, as of K */
    HEWN_V_COLUMNS = 1 /* V transposed: a row is a column of V, and holds all keys of a sequence */
} hewn_v_layout;

typedef enum hewn_schedule {
    HEWN_SCHEDULE_CHOSEN = 0,
    HEWN_SCHEDULE_PREFILL = 1, /* for many query rows */
    HEWN_SCHEDULE_DECODE = 2   /* for few query rows and many keys */
} hewn_schedule;

typedef struct hewn_attention_source {
    size_t struct_size;
    int keys;            /* hewn_keys */
    int causal;          /* 0 or 1 */
    int windows;         /* 1: a run gives window_back for each sequence, and there 0 means no key
                            at all; the field here must be 0. Only for the first source */
    int64_t length;      /* keys of a sequence, or the largest number of any */
    int64_t tokens;      /* HEWN_KEYS_PACKED: rows of K and V */
    int64_t page_size;   /* keys of a page, 1..256: K and V are pools of pages; 0: not paged */
    int64_t pages;       /* pages in the pool, each laid out as a sequence is in `layout` */
    int64_t table_width; /* entries of a sequence in the block table; >= length / page_size */
    int64_t k_token, k_head, k_batch; /* strides; k_batch between sequences or pages */
    int64_t v_token, v_head, v_batch;
    int64_t window_back;  /* keys seen up to the query's own position, itself included; 0: all */
    int64_t window_ahead; /* keys seen from the query's own position on, itself included; 0: all */
} hewn_attention_source;

typedef struct hewn_attention_desc {
    size_t struct_size;
    int64_t batch, q_heads, kv_heads; /* q_heads is a multiple of kv_heads */
    int64_t qk_dim, v_dim;            /* v_dim 0: qk_dim, or 128 for 192 */
    int64_t q_length;                 /* queries of a sequence, or the largest number of any */
    int64_t q_tokens;                 /* q_packed: rows of Q and O */
    int64_t q_token, q_head, q_batch; /* strides */
    int64_t o_token, o_head, o_batch;
    double scale;     /* above 0 and finite; 0: 1 / sqrt(qk_dim) */
    int64_t pack;     /* query heads of a tile, at most q_heads / kv_heads; 0: chosen */
    int64_t splits;   /* parts in which a row's keys are computed, at most 256, 1 if unnormalised; a
                         second kernel combines them. 0: chosen */
    int in;           /* hewn_dtype: HEWN_BF16, HEWN_F16 or HEWN_E4M3 */
    int out;          /* hewn_dtype: HEWN_F32, HEWN_F16, HEWN_BF16; beside e4m3 inputs also HEWN_E4M3:
                         of normalised O / o_scale, rounded to nearest, at most 448 in size */
    int layout;       /* hewn_layout of every tensor whose strides are 0 */
    int q_packed;     /* 1: cu_q holds batch + 1 offsets into q_tokens rows */
    int sink;         /* 1: a learned logit for each query head joins the denominator */
    int unnormalised; /* 1: O = sum_j exp(scale q.k_j - row_max) V[j]; row_max is then an output */
    int q_scales, k_scales, v_scales; /* hewn_scales, for HEWN_E4M3: value = scale * stored */
    const hewn_attention_source *source[2]; /* the second may be NULL */
    int schedule;     /* hewn_schedule */
    int tree;         /* 1: a run gives a mask of the drafted keys; decode schedule only */
    double softcap;   /* above 0: a score s becomes softcap * tanh(s / softcap); 0: none */
    int invariant;    /* 1: a sequence's bits do not depend on the rest of the batch */
    int kv;           /* hewn_dtype of K and V: HEWN_E4M3 beside a 16-bit `in`, in the decode schedule
                         only; 0: as `in` */
    int promotion;    /* For e4m3 inputs on sm_90a, whose tensor cores keep 13 fraction bits of their sums
                         and cut the rest off: O is added up in fp32 after this many blocks of 128 keys;
                         -1: never; 0: 4, but 1 with head dimension 256, and never with softcap. Without
                         promotion O shrinks if the values of V have a mean: by 5 % over 4k keys, 18 % over
                         16k. Head dimension 256 allows only 1 or never, softcap only never; else
                         HEWN_ERR_LIMIT. Ignored if sums are fp32 (16-bit inputs, sm_100f) */
    int v_layout; /* hewn_v_layout of the V of every source. HEWN_V_COLUMNS is for e4m3 inputs on sm_90a, without
                     pages, packed keys and softcap. Key j of column c is at c * v_token + j, whatever `layout` is;
                     v_head and v_batch are as usual. Strides of 0 mean [batch, head, column, key]; then `length` must
                     be a multiple of 16. Memory after a sequence's last key may hold anything, as with rows */
    int64_t q_scale_batch, k_scale_batch, v_scale_batch; /* HEWN_SCALES_SEQUENCE_...: scales from one
                                                            sequence to the next; 0: the number of heads */
} hewn_attention_desc;

typedef struct hewn_attention_plan hewn_attention_plan;

typedef struct hewn_attention_plan_info {
    size_t struct_size;
    const char *module; /* "attention_bf16_128_128" */
    const char *target; /* "sm_90a" */
    const char *origin; /* as hewn_module_origin */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_shared; /* bytes */
    uint32_t tmem_columns;
    uint32_t tile_rows, item_tiles, block_keys, slots; /* ptx/inc/attention.plan.h */
    uint32_t pack, splits; /* splits 0: the device splits, by the lengths */
    uint64_t items;     /* work items */
    uint64_t workspace; /* bytes that a run's `workspace` must have */
    int schedule;       /* hewn_schedule: HEWN_SCHEDULE_PREFILL or HEWN_SCHEDULE_DECODE */
    int gather;         /* 1: keys are fetched row by row, because pages are small; decode only */
    uint32_t part_keys; /* keys of a part, where parts begin at multiples of it (`invariant`), or 0 */
    uint32_t parts;     /* of a row at most; 0: the device splits, by the lengths of the batch */
} hewn_attention_plan_info;

typedef struct hewn_attention_source_args {
    size_t struct_size;
    hewn_deviceptr k, v;    /* may be 0 where the source has no rows */
    hewn_deviceptr lengths; /* int32[batch], or offsets int32[batch + 1] */
    hewn_deviceptr table;   /* int32[batch * table_width] */
    hewn_deviceptr windows; /* int32[batch] */
} hewn_attention_source_args;

/* Device addresses: those of q, o, k, v and workspace are multiples of 16, the others of 4. An
 * address that the plan has no use for is 0. */
typedef struct hewn_attention_args {
    size_t struct_size;
    hewn_deviceptr q, o;
    hewn_deviceptr lse;     /* f32, or 0: not wanted. Element (b, h, i) at b * q_heads * q_length +
                               h * q_length + i; packed: h * q_tokens + token */
    hewn_deviceptr row_max; /* f32, laid out as lse; required with `unnormalised`, else 0 */
    hewn_deviceptr sink;    /* f32[q_heads]; -infinity: this head has none */
    hewn_deviceptr q_scale, k_scale, v_scale; /* f32, as many as q_scales, .. say, above 0: of sequence
                                                 b's head h at b * q_scale_batch + h; 0: scale 1 */
    hewn_deviceptr cu_q;                      /* int32[batch + 1] */
    hewn_deviceptr workspace; /* in use from the launch to the end of the last kernel */
    const hewn_attention_source_args *source[2]; /* as in the description */
    /* uint64_t, a multiple of 8: one a query, at b * q_length + i; packed: at its token. The last
       q_len keys of a sequence are those of its queries (drafted tokens), bit i of a mask is query
       i's own. At most 64 queries a sequence, causal 0, window_ahead 0, one source. */
    hewn_deviceptr tree;
    hewn_deviceptr o_scale; /* HEWN_E4M3 outputs: one f32 above 0; 0: scale 1 */
} hewn_attention_args;

int hewn_attention_plan_create(hewn_context *context, const hewn_attention_desc *desc,
                               hewn_attention_plan **out, hewn_error *err);
void hewn_attention_plan_destroy(hewn_attention_plan *plan);
int hewn_attention_plan_describe(const hewn_attention_plan *plan, hewn_attention_plan_info *out,
                                 hewn_error *err);
/* Enqueues the kernel and, where rows may be split, the kernel that combines; nothing where there is
 * no query. O, lse, row_max and workspace overlap neither each other nor an input. */
int hewn_attention_plan_run(const hewn_attention_plan *plan, const hewn_attention_args *args,
                            hewn_stream stream, hewn_error *err);

/* Host copies of the arrays that a run's addresses hold; NULL where the plan has none. */
typedef struct hewn_attention_source_tables {
    size_t struct_size;
    const int32_t *lengths, *table, *windows;
} hewn_attention_source_tables;

typedef struct hewn_attention_tables {
    size_t struct_size;
    const int32_t *cu_q;
    const hewn_attention_source_tables *source[2]; /* as in the description */
} hewn_attention_tables;

/* The kernels read lengths, offsets, block tables and windows on the device. A length below 0 counts
 * there as 0, one above `length` as `length`; a page outside the pool reads as zeros; other values that
 * break the rules count as empty or zero. This checks host copies; its message names array, index,
 * value and rule. Offsets start at 0, never fall and end within the tensor. No sequence is
 * longer than `length`. Lengths are in 0..length, pages of keys in use in 0..pages-1, windows in
 * 0..2^29. */
int hewn_attention_plan_check_tables(const hewn_attention_plan *plan,
                                     const hewn_attention_tables *tables, hewn_error *err);

/* ----------------------------------------------------------------------------------- merge -- */

/*
 * Merges partial results of attention over disjoint sets of keys, such as those of a shared prefix and
 * of each sequence's own keys, or of several devices. Of each row (sequence, token, head), with the
 * parts' O_p, each normalised by itself, and lse_p:
 *
 *   M = max(max_p lse_p, sink),  O = sum_p exp(lse_p - M) O_p / S,
 *   S = sum_p exp(lse_p - M) + exp(sink - M),  lse = M + ln(S)
 *
 * These are what one softmax over all keys gives. The logarithms are natural, as hewn_attention_plan_run
 * writes them; others count in powers of two, so theirs must be multiplied by ln(2). Sums are fp32, in
 * the order of the parts: equal parts give equal bits.
 *
 * A part with lse = -infinity counts for nothing, and its O is not read: it may hold anything. A row of
 * such parts alone gives O = 0 and lse = -infinity, or the sink's logit. A row with one other part and
 * no sink is that part. NaN, and lse = infinity, stay in their row and make it NaN. A sink belongs to
 * one place: to the merge, or to one part.
 *
 * Sizes: there are fewer than 2^31 rows. Strides are in elements. In bytes those of O and of the parts'
 * O are multiples of 16, those of lse of 4, and all are below 2^40; 0 means contiguous: O in `layout`,
 * lse [batch, head, token], one part behind the other.
 */
typedef struct hewn_merge_desc {
    size_t struct_size;
    int64_t batch, length, heads; /* of rows: length tokens a sequence */
    int64_t dim;                  /* columns of O: a multiple of 32, at most 512 */
    int64_t parts;                /* 1..256 */
    int64_t part_token, part_head, part_batch; /* strides of the parts' O, */
    int64_t part_step;                         /* and from a part's O to the next one's */
    int64_t lse_token, lse_head, lse_batch;    /* strides of the parts' lse, */
    int64_t lse_step;                          /* and from a part's lse to the next one's */
    int64_t o_token, o_head, o_batch;
    int in;     /* hewn_dtype of the parts' O: HEWN_F32, HEWN_F16 or HEWN_BF16 */
    int out;    /* hewn_dtype of O: the same */
    int layout; /* hewn_layout of O and of the parts' O where their strides are 0 */
    int sink;   /* 1: a learned logit for each head joins the denominator */
} hewn_merge_desc;

typedef struct hewn_merge_plan hewn_merge_plan;

typedef struct hewn_merge_plan_info {
    size_t struct_size;
    const char *module; /* "attention_combine", of the attention family */
    const char *target; /* "sm_90a" */
    const char *origin; /* as hewn_module_origin */
    uint32_t grid[3], block[3];
} hewn_merge_plan_info;

/* Device addresses: those of part_o and o are multiples of 16, the others of 4. */
typedef struct hewn_merge_args {
    size_t struct_size;
    hewn_deviceptr part_o, part_lse; /* part_lse: f32 */
    hewn_deviceptr o;
    hewn_deviceptr lse;  /* f32 [batch, head, token], or 0: not wanted */
    hewn_deviceptr sink; /* f32[heads]; -infinity: this head has none. 0 without `sink` */
} hewn_merge_args;

int hewn_merge_plan_create(hewn_context *context, const hewn_merge_desc *desc,
                           hewn_merge_plan **out, hewn_error *err);
void hewn_merge_plan_destroy(hewn_merge_plan *plan);
int hewn_merge_plan_describe(const hewn_merge_plan *plan, hewn_merge_plan_info *out,
                             hewn_error *err);
/* O and lse overlap neither each other nor an input. */
int hewn_merge_plan_run(const hewn_merge_plan *plan, const hewn_merge_args *args,
                        hewn_stream stream, hewn_error *err);

/* ------------------------------------------------------------------------------------- mla -- */

/*
 * Multi-head latent attention (MLA), for `batch` sequences: decode over all keys of a sequence, or over
 * those that a list names:
 *
 *   O[i] = sum_j exp(scale q_i.c_j) C[j][0..511] / (sum_j exp(scale q_i.c_j) + exp(sink))
 *
 * A row c_j of the cache is one token's latent vector of 512 elements, then 64 rotary elements. All 576
 * are the key, and the first 512 are also the value. All query heads see the same cache. Queries have
 * 576 elements, rows of O 512. MLA is not a source of hewn_attention for three reasons: K and V are one
 * tensor; packed records and lists of keys belong only here; and the kernel loads a key once for all heads
 * and for both of its uses.
 *
 * Sums are fp32. P is rounded to the input type. Rows of a tile are queries and heads together, so any
 * number of heads is possible; a tile is 64 rows.
 *
 * Lengths may be 0 and may differ. A row that sees no key gives O = 0 and lse = -infinity, or the
 * sink's logit. With `causal`, query i of q_length sees key j < n - (q_length - 1 - i) of n keys.
 *
 * Lists (sparse attention). With list_width above 0, every query has a list of the keys that it sees:
 * `lists` has list_width int32 entries for each query, [batch, query, entry]. An entry is page *
 * page_size + row of the pool, or a row of an unpaged cache, which is one [length, 576] for all
 * sequences. An entry below 0 or outside the cache names no key. Keys may be named twice and in any
 * order. Only the first n entries of a list count: n is list_width, or lengths[b] with `lengths` 1, or
 * lengths[b * q_length + i] with `lengths` 2. There is no block table and no causal mask. This serves
 * decode (many sequences, few queries each) and prefill (one sequence, a cache, and up to 2^20 queries).
 *
 * A second cache. With extra_width above 0, every query has a second list, with rows of a second cache. Its
 * keys follow those of the first list in the same pass: one softmax, one sink, one lse. The second list has
 * extra_width, extra_stride and extra_lengths, which mean the same as for the first. The second cache has its
 * own page_size, pages, length and strides; its rows are of the same kind. list_width + extra_width is below
 * 2^29.
 *
 * Packed records. With HEWN_MLA_CACHE_656 a row of the cache is 656 bytes: 512 e4m3, then 4 f32 scales,
 * one for each 128 of them, then the 64 rotary elements in bf16. Q is bf16. The value of an element is its
 * e4m3 times its scale. Kernels may round it to bf16, which is exact if the scale is a power of two;
 * otherwise the result is at most one step of bf16 from the nearest. The e4m3 code of NaN counts as NaN or
 * as 480.
 *
 * With HEWN_MLA_CACHE_584 keys and queries have 512 elements. All of a key are also its value, the rotary ones
 * too. A page first has a row of 576 bytes for each of its page_size keys: 448 e4m3, then the 64 rotary
 * elements in bf16. Then it has 8 bytes for each key: 7 scales, one for each 64 of the e4m3, and a byte that
 * is not read. An unpaged cache, of a sequence or for lists, is one page of `length` keys. A scale is a power
 * of two, 2^(code - 127); code 255 makes its elements infinite or NaN. kv_token is 576 or 0. kv_batch is at
 * least 584 * page_size; 0 means that, rounded up to a multiple of 576. Everything else is as for
 * HEWN_MLA_CACHE_656.
 *
 * Sizes: batch and batch * table_width are below 2^31, `length` and list_width below 2^29, q_heads is at
 * most 128, q_length at most 16, or with lists 2^20 and batch * q_length below 2^31. Strides are in
 * elements; 0 means contiguous: q and o [batch, query, head, 576 or 512], the cache [batch or page, key,
 * 576]; a packed record's element is a byte; with HEWN_MLA_CACHE_584 q has 512. In bytes they are
 * multiples of 16 and below 2^40. The rows of a sequence's queries lie equally far apart: with q_length
 * above 1, q_token is q_heads * q_head. A cache that is read by lists or has packed records is below 2^36
 * - 16 bytes.
 *
 * Lengths, lists and block tables are read on the device, when the kernel runs: only their largest values are
 * part of a plan, and a captured graph may be replayed with others. A length below 0 counts as 0, one
 * above `length` (with lists: list_width) as that; a page outside the pool reads as zeros. Memory after a
 * sequence's last key (unused rows of a page or of a padded cache) may hold anything.
 *
 * Invariance. With `invariant` the keys of a sequence, or of a query with lists, are never cut into parts. The
 * order of its sums then does not depend on other sequences, on batch or on q_length. A few long sequences
 * are slow, because one CTA reads all keys of a tile of rows. It needs no workspace.
 *
 * NaN and infinity: in Q they stay in their rows. In the cache they reach all rows of a tile if one of
 * its rows sees a key of the same block of 64 keys. Nothing crosses from one sequence to another.
 */
typedef enum hewn_mla_cache {
    HEWN_MLA_CACHE_PLAIN = 0, /* rows of 576 elements of the type `in` */
    HEWN_MLA_CACHE_656 = 1,   /* 512 e4m3, 4 f32 scales, 64 bf16 */
    HEWN_MLA_CACHE_584 = 2    /* 448 e4m3, 64 bf16; separate from them 7 scales of a byte, 1 unused byte */
} hewn_mla_cache;

typedef struct hewn_mla_desc {
    size_t struct_size;
    int64_t batch, q_heads;   /* q_heads in 1..128 */
    int64_t q_length;         /* queries of a sequence, 1..16; with lists 1..2^20 */
    int64_t length;           /* keys of a sequence, or the largest number of any. With lists: rows of an
                                 unpaged cache, 0 where it is paged */
    int64_t page_size;        /* keys of a page, 1..256: the cache is a pool of pages; 0: not paged */
    int64_t pages;            /* pages in the pool */
    int64_t table_width;      /* entries of a sequence in the block table; >= length / page_size. With
                                 lists 0 */
    int64_t kv_token, kv_batch; /* strides; kv_batch between sequences or pages */
    int64_t q_token, q_head, q_batch;
    int64_t o_token, o_head, o_batch;
    double scale; /* above 0 and finite; 0: 1 / sqrt(576), with HEWN_MLA_CACHE_584 1 / sqrt(512). Models
                     that absorb their projections have another scale, such as 1 / sqrt(192) */
    int in;       /* hewn_dtype of Q and of the cache: HEWN_BF16 or HEWN_F16 */
    int out;      /* hewn_dtype: HEWN_F32, HEWN_F16 or HEWN_BF16 */
    int cache;    /* hewn_mla_cache */
    int lengths;  /* 1: a run gives lengths[batch]; 0: every sequence has `length` keys. With lists, 2:
                     lengths[batch * q_length] */
    int causal;   /* 0 or 1 */
    int sink;     /* 1: a learned logit for each query head joins the denominator */
    int64_t list_width;  /* entries of a query's list; 0: no lists */
    int64_t list_stride; /* between lists, in entries; 0: list_width */
    /* The second cache. */
    int64_t extra_width;  /* entries of a query's second list; 0: there is none */
    int64_t extra_stride; /* between second lists, in entries; 0: extra_width */
    int64_t extra_length; /* rows of an unpaged second cache, 0 where it is paged */
    int64_t extra_page_size, extra_pages;
    int64_t extra_token, extra_batch; /* strides, as kv_token and kv_batch */
    int extra_lengths;                /* as lengths */
    int extra_cache;                  /* hewn_mla_cache; the same as cache */
    int invariant; /* 1: a query's bits depend on its own row and keys alone; see above */
    int reserved;  /* 0 */
} hewn_mla_desc;

typedef struct hewn_mla_plan hewn_mla_plan;

typedef struct hewn_mla_plan_info {
    size_t struct_size;
    /* "mla_bf16", followed by "_rows" with lists, "_656" or "_584" with such records, "_656x16" or "_584x16" with
     * such records and at most 16 rows of Q, "_rows_two" or "_656_two" with a second cache */
    const char *module;
    const char *target; /* "sm_90a" */
    const char *origin; /* as hewn_module_origin */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_shared; /* bytes */
    uint32_t tile_rows, block_keys;
    uint32_t row_tiles; /* tiles of a sequence, or of a query that has a list */
    uint32_t shares;    /* CTAs of a group, which share the keys of all sequences */
    uint64_t workspace; /* bytes that a run's `workspace` must have; it needs no initial values */
} hewn_mla_plan_info;

/* Device addresses: those of q, kv, o and workspace are multiples of 16, the others of 4. An address
 * that the plan has no use for is 0. */
typedef struct hewn_mla_args {
    size_t struct_size;
    hewn_deviceptr q, kv, o; /* kv: the cache; may be 0 where it has no rows */
    hewn_deviceptr lse;      /* f32, or 0: not wanted. Element (b, h, i) at (b * q_heads + h) * q_length
                                + i */
    hewn_deviceptr sink;     /* f32[q_heads]; -infinity: this head has none */
    hewn_deviceptr lengths;  /* int32[batch], or [batch * q_length] */
    hewn_deviceptr table;    /* int32[batch * table_width] */
    hewn_deviceptr workspace; /* in use from the launch to the end of the last kernel */
    hewn_deviceptr lists;     /* int32[batch * q_length][list_stride] */
    hewn_deviceptr extra_kv, extra_lists, extra_lengths; /* of the second cache, as the first */
} hewn_mla_args;

int hewn_mla_plan_create(hewn_context *context, const hewn_mla_desc *desc, hewn_mla_plan **out,
                         hewn_error *err);
void hewn_mla_plan_destroy(hewn_mla_plan *plan);
int hewn_mla_plan_describe(const hewn_mla_plan *plan, hewn_mla_plan_info *out, hewn_error *err);
/* O, lse and workspace overlap neither each other nor q nor the cache. */
int hewn_mla_plan_run(const hewn_mla_plan *plan, const hewn_mla_args *args, hewn_stream stream,
                      hewn_error *err);

/* Host copies of the arrays that a run's addresses hold; NULL where the plan has none. */
typedef struct hewn_mla_tables {
    size_t struct_size;
    const int32_t *lengths, *table, *lists;
    const int32_t *extra_lengths, *extra_lists;
} hewn_mla_tables;

/* Checks host copies; its message names array, index, value and rule. Lengths are in 0..length, or
 * 0..list_width; pages of keys in use in 0..pages-1; entries of lists that count are -1 or a row of the
 * cache. On the device values that break these rules are harmless, as said above. */
int hewn_mla_plan_check_tables(const hewn_mla_plan *plan, const hewn_mla_tables *tables,
                               hewn_error *err);

/* --------------------------------------------------------------------------------- indexer -- */

/*
 * The logits of a lightning indexer, which chooses the keys that sparse attention looks at:
 *
 *   out[i][j] = k_scale[j] * sum_h weights[i][h] * max(q[i][h].k[j], 0),   starts[i] <= j < ends[i]
 *
 * for the rows i = b * queries + t: query t of `queries` of sequence b. q and k are e4m3, the rest f32. All
 * heads see the same key. If a query has a scale, multiply its weights by it. hewn_topk_plan_run takes this
 * output as it is. The two are separate families because each is useful alone.
 *
 * There are two uses. Prefill: batch 1, `queries` tokens, each with its own range of keys.
 * Decode: a few queries of each of `batch` sequences, keys in pages.
 *
 * Ranges are read on the device, when the kernel runs: starts[i] and ends[i] of each row, clamped to
 * 0..length. Without `starts` they begin at 0, without `ends` they end at `length`. A captured graph may be
 * replayed with others. Elements of out outside the row's range are not written. An empty range is legal.
 *
 * Pages. With a page_size, key j of sequence b is row j % page_size of page table[b * table_width + j /
 * page_size]. A page outside the pool reads as zeros, scales included: its logits are 0. Entries of the table
 * and rows of a page that are in no query's range may hold anything. Without a page_size, the keys of
 * sequence b are k[b].
 *
 * Scales are one f32 for each key. They are in an array of their own, at k_scale + b * scale_batch + j (b: the
 * page), or in the pages, after the rows of the keys: the scale of row r is at byte page_size * k_token + 4 r
 * of the page. DeepSeek's models have the latter, with 132 bytes for a key of 128 elements.
 *
 * Sums: q.k is summed by the tensor cores, which keep 13 fraction bits of the largest of 32 terms. The sum
 * over heads is fp32. Its order depends only on the target and on whether there are more than 32 heads. NaN
 * in a key stays in that key's column, NaN in a query or its weights in its row.
 *
 * Sizes: batch * queries and batch * table_width are below 2^31, `length` below 2^29. heads is in 1..64,
 * on sm_100f in 1..128; a number other than 32, 64 and 128 costs as much as the next of these. dim is a
 * multiple of 16 in 16..128. page_size is a multiple of 8 in 8..4096; 64 and its multiples are fastest.
 * Strides are in elements; 0 means contiguous: q [row, head, dim], k [batch or page, key, dim] (k_batch
 * with scales in the pages: page_size * (dim + 4)), weights [row, heads], out [row, length]. Strides of q
 * and k are multiples of 16. All are below 2^40 bytes.
 *
 * More heads than the device's kernels have, and devices without kernels: HEWN_ERR_NO_MODULE.
 */
typedef enum hewn_indexer_scales {
    HEWN_INDEXER_SCALES_APART = 0,
    HEWN_INDEXER_SCALES_IN_PAGES = 1
} hewn_indexer_scales;

typedef struct hewn_indexer_desc {
    size_t struct_size;
    int64_t batch, queries; /* queries of a sequence */
    int64_t heads, dim;
    int64_t length;         /* keys of a sequence, or the largest number of any */
    int64_t page_size;      /* keys of a page; 0: not paged */
    int64_t pages;          /* pages in the pool */
    int64_t table_width;    /* entries of a sequence in the block table; >= length / page_size */
    int64_t q_head, q_token;         /* strides; q_token between rows */
    int64_t k_token, k_batch;        /* k_batch between sequences or pages */
    int64_t scale_batch;             /* between scales of sequences or pages; apart only */
    int64_t weight_token, out_token; /* between rows */
    int in;     /* hewn_dtype of q and k: HEWN_E4M3 */
    int scales; /* hewn_indexer_scales */
    int starts; /* 1: a run gives starts[batch * queries] */
    int ends;   /* 1: a run gives ends[batch * queries] */
} hewn_indexer_desc;

typedef struct hewn_indexer_plan hewn_indexer_plan;

typedef struct hewn_indexer_plan_info {
    size_t struct_size;
    const char *module; /* "indexer_e4m3_64_1" */
    const char *target; /* "sm_90a" */
    const char *origin; /* as hewn_module_origin */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;           /* bytes */
    uint32_t tile_queries, tile_heads; /* of a tile, which reads its keys once */
    uint32_t block_keys;
} hewn_indexer_plan_info;

/* Device addresses: those of q and k are multiples of 16, the others of 4. An address that the plan has no
 * use for is 0. */
typedef struct hewn_indexer_args {
    size_t struct_size;
    hewn_deviceptr q, k;    /* k may be 0 where it has no rows */
    hewn_deviceptr k_scale; /* f32; 0 where scales lie in the pages */
    hewn_deviceptr weights; /* f32 */
    hewn_deviceptr out;     /* f32 */
    hewn_deviceptr starts, ends; /* int32[batch * queries] */
    hewn_deviceptr table;        /* int32[batch * table_width] */
} hewn_indexer_args;

int hewn_indexer_plan_create(hewn_context *context, const hewn_indexer_desc *desc,
                             hewn_indexer_plan **out, hewn_error *err);
void hewn_indexer_plan_destroy(hewn_indexer_plan *plan);
int hewn_indexer_plan_describe(const hewn_indexer_plan *plan, hewn_indexer_plan_info *out,
                               hewn_error *err);
/* Enqueues one launch. out overlaps neither q, k nor weights. */
int hewn_indexer_plan_run(const hewn_indexer_plan *plan, const hewn_indexer_args *args,
                          hewn_stream stream, hewn_error *err);

/* Host copies of the arrays that a run's addresses hold; NULL where the plan has none. */
typedef struct hewn_indexer_tables {
    size_t struct_size;
    const int32_t *starts, *ends, *table;
} hewn_indexer_tables;

/* Checks host copies; its message names array, index, value and rule. Starts and ends are in 0..length,
 * pages of keys in use in 0..pages-1. */
int hewn_indexer_plan_check_tables(const hewn_indexer_plan *plan, const hewn_indexer_tables *tables,
                                   hewn_error *err);

/* ------------------------------------------------------------------------------------ topk -- */

/*
 * The columns of the k largest elements of each of batch * queries rows of f32, from columns starts[r] to
 * ends[r] - 1, which are read and clamped as hewn_indexer_plan_run does. Other columns are not read.
 *
 * The set is exact and deterministic. Among equal elements, lower columns are chosen first; -0 equals 0. NaN
 * and -infinity are never chosen. The columns of a row are in ascending order, so attention reads its keys in
 * the order of memory. If there are fewer than k, -1 follows the last one.
 *
 * With a page_size, an entry is not the column j but a row of a paged pool: table[b * table_width + j /
 * page_size] * page_size + j % page_size for row r of sequence b = r / queries. If that table entry is not in
 * 0..pages - 1, the entry is -1, and the following ones do not move up.
 *
 * Sizes: k is in 1..2048 and may exceed `columns`; batch * queries and batch * table_width are below 2^31,
 * `columns` below 2^29, page_size below 2^20, pages * page_size below 2^31. Strides are in elements; 0 means
 * contiguous. Rows need no alignment beyond 4 bytes.
 *
 * On all targets. One launch; if there are few rows, up to 8 CTAs share each.
 */
typedef struct hewn_topk_desc {
    size_t struct_size;
    int64_t batch, queries; /* queries: rows of a sequence, which share its part of the table */
    int64_t columns, k;
    int64_t value_row, index_row; /* strides */
    int64_t page_size; /* 0: entries are columns */
    int64_t pages, table_width;
    int starts; /* 1: a run gives starts[batch * queries] */
    int ends;   /* 1: a run gives ends[batch * queries] */
} hewn_topk_desc;

typedef struct hewn_topk_plan hewn_topk_plan;

typedef struct hewn_topk_plan_info {
    size_t struct_size;
    const char *module; /* "topk_f32" */
    const char *target; /* "sm_90a" */
    const char *origin; /* as hewn_module_origin */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared; /* bytes */
    uint32_t cluster;        /* CTAs of a row */
} hewn_topk_plan_info;

/* Device addresses, multiples of 4. An address that the plan has no use for is 0. */
typedef struct hewn_topk_args {
    size_t struct_size;
    hewn_deviceptr values;       /* f32; may be 0 where there are no columns */
    hewn_deviceptr indices;      /* int32 */
    hewn_deviceptr starts, ends; /* int32[batch * queries] */
    hewn_deviceptr table;        /* int32[batch * table_width] */
} hewn_topk_args;

int hewn_topk_plan_create(hewn_context *context, const hewn_topk_desc *desc, hewn_topk_plan **out,
                          hewn_error *err);
void hewn_topk_plan_destroy(hewn_topk_plan *plan);
int hewn_topk_plan_describe(const hewn_topk_plan *plan, hewn_topk_plan_info *out, hewn_error *err);
/* Enqueues one launch. indices overlap neither values nor the table. */
int hewn_topk_plan_run(const hewn_topk_plan *plan, const hewn_topk_args *args, hewn_stream stream,
                       hewn_error *err);

/* Host copies of the arrays that a run's addresses hold; NULL where the plan has none. */
typedef struct hewn_topk_tables {
    size_t struct_size;
    const int32_t *starts, *ends, *table;
} hewn_topk_tables;

/* Checks host copies, as hewn_indexer_plan_check_tables does; starts and ends are in 0..columns. */
int hewn_topk_plan_check_tables(const hewn_topk_plan *plan, const hewn_topk_tables *tables,
                                hewn_error *err);

/* --------------------------------------------------------------------------------- grouped -- */

/*
 * Products of many groups of rows. Each group g has its own B, as each expert of a mixture has its own weights:
 *
 *   D[r][c] = A[r] . B[g][c]      for every row r of group g
 *
 * There are three sorts of inputs. The rest of this comment has, in this order: block scales in f32, 16-bit inputs,
 * groups, strides, rows by number, 8-bit block scales, quantised results, devices.
 *
 * Block scales in f32 (HEWN_GROUPED_BLOCKS). A and B are e4m3. Each block of 128 elements along k has scales:
 *
 *   D[r][c] = sum over blocks b: scale_a[r][b] * scale_b[g][c / 128][b] * (A[r] . B[g][c] within b)
 *
 * The tensor cores sum the products of a block; sm_90a keeps 13 fraction bits of that sum. It is multiplied by the
 * product of its two scales and added in fp32, in an order that depends only on the kernel and k. The result is rounded
 * once, to nearest even. scale_a[r][b] is element b * scale_a_k + r of its plane. scale_b of columns 128 j to 128 j + 127 and block b is element
 * g * scale_b_plane + j * scale_b_n + b.
 *
 * With `scales` HEWN_GROUPED_COLUMNS, B has a scale for each column and block: scale_b[g][c][b] takes the place of
 * scale_b[g][c / 128][b]. It is element g * scale_b_plane + b * scale_b_n + c. scale_b_n and scale_b_plane are
 * multiples of 4; contiguous, they are n rounded up to 4, and ceil(k / 128) * scale_b_n. The address of scale_b is
 * a multiple of 16.
 *
 * 16-bit inputs. A and B are both bf16 or both f16, without scales. Sums are fp32 and rounded once. k is below 2^30,
 * and the fields and addresses of scales are 0. With `act` HEWN_ACT_SWIGLU, gate and up projections are one
 * product. B[g] has 2n rows, first the n of the gate, and contiguous stride_b is 2n * ldb:
 *
 *   D[r][c] = silu(A[r] . B[g][c]) * (A[r] . B[g][n + c]),   silu as in hewn_gemm
 *
 * It rounds after the multiplication too.
 *
 * Groups, hewn_grouped_kind:
 *   PLANES   A, D and scale_a have a plane of m rows for each group.
 *   COUNTS   As PLANES, but only the first rows[g] rows of group g's plane are in the group. ("Masked".)
 *   OFFSETS  A, D and scale_a are one plane of m rows. Group g has the rows from rows[g], rounded up to a multiple of
 *            `align`, to rows[g + 1] - 1. ("Contiguous".) With align 1, groups follow one another without gaps.
 *            With align 128 and rows[0] = 0, rows[g + 1] is the end of group g, and the next group begins at the
 *            next multiple of 128.
 * `rows` is int32 on the device: `groups` entries, with OFFSETS groups + 1. It is read when the kernel runs, and
 * values are clamped to 0..m, so a captured graph may be replayed with others. A group is empty if its end is not
 * after its first row. Rows of D that belong to no group are not written, and those of A may hold anything. If groups
 * of OFFSETS overlap, which needs descending `rows`, their rows of D hold the result of any of these groups.
 *
 * Sizes and strides: m, n, k, groups and the number of tiles of all groups are in 1..2^31-1. Leading dimensions and
 * strides are in elements. 0 means contiguous:
 *   lda, ldb k;  ldd n;  stride_a m * lda;  stride_b n * ldb;  stride_d m * ldd;
 *   scale_a_k m rounded up to 4;  scale_a_plane ceil(k / 128) * scale_a_k;
 *   scale_b_n ceil(k / 128);  scale_b_plane ceil(n / 128) * scale_b_n.
 * Those of A, B and D are multiples of 16 bytes, those of scale_a multiples of 4 elements. All are below 2^40 bytes.
 * OFFSETS does not use the strides of planes.
 *
 * Rows by number. With a_rows above 0, A and scale_a are one plane of a_rows rows. Row r of D uses row index[r] of
 * them, in planes row index[g * m + r]. `index` is int32 on the device. A number outside 0..a_rows-1 reads as a row of
 * zeros. lda and scale_a_k are as above, with a_rows in place of m; stride_a and scale_a_plane are not used.
 *
 * 8-bit block scales, on sm_100f. With `scales` HEWN_GROUPED_UE8M0_32 or HEWN_GROUPED_UE4M3_16, each 32 or 16 elements
 * along k of a row of A and of B share a scale of 8 bits:
 *
 *   D[r][c] = alpha[g] * sum over k of (scale_a[r][k / 32] * A[r][k]) * (scale_b[g][c][k / 32] * B[g][c][k])
 *
 * or the same with 16. A has the type `in`, B `in_b`. With UE8M0_32 each is e4m3, e5m2 or e2m1 (mxfp8, mxfp4 and
 * mixtures). With UE4M3_16 both are e2m1 (nvfp4). The tensor cores multiply elements and scales. Sums, and the
 * multiplication by alpha, are fp32. The result is rounded once, to nearest even. A product without groups is `groups` 1
 * and PLANES.
 *   Atoms (scale_layout HEWN_GROUPED_ATOMS), the layout of cuBLASLt: an atom is 512 bytes, for 128 rows and 4 scales
 * along k. Number j of row r is byte (r % 32) * 16 + r / 32 * 4 + j. Atoms of the same rows follow one another along k.
 * scale_a_k and scale_b_n are bytes from them to the atoms of the next 128 rows, scale_a_plane and scale_b_plane bytes
 * to the next group; all are multiples of 16, and 0 means contiguous. Scales beyond k are multiplied by zeros, so they
 * may be anything but NaN. Scales beyond the last row are not used.
 *   Words (HEWN_GROUPED_WORDS), as DeepGEMM packs them: a word has 4 scales along k of a row, the first in its lowest
 * byte. Words of neighbouring rows are neighbours. scale_a_k and scale_b_n are words from there to those of the next 4
 * scales (0: the rows, rounded up to 4), scale_a_plane and scale_b_plane words to the next group; all are multiples of
 * 4. UE8M0_32 may be in words. HEWN_GROUPED_UE8M0_128, one scale for 128 elements along k, is always in words; its A
 * and B have the types of UE8M0_32.
 *   With OFFSETS, align is at least 128 with atoms (0: 128), so that groups begin with an atom, and at least 4 with
 * words (0: 4). For e2m1, k is even, and leading dimensions and strides are multiples of 32. If the other input is not
 * e2m1, or with words, k is a multiple of 128, leading dimensions and strides are multiples of 64, and the address is
 * a multiple of 32. a_rows is 0.
 *
 * Quantised results, on sm_100f, for 8-bit block scales and for 16-bit inputs. With `out` HEWN_E4M3, D has a ue8m0
 * scale for each 32 columns of a row; with HEWN_E2M1, a ue4m3 scale for each 16. These columns are a vector. The next
 * product, with k = n, reads D and its scales, which are in atoms, as its A.
 *
 *   x = act(alpha[g] * sum + bias[g][c]),   y = factor[g] * x,   each step rounded to fp32
 *
 * `act` is any hewn_act. With SwiGLU B[g] has 2n rows, by turns 32 of the gate and 32 of up; x = silu(gate) * up; and n
 * is a multiple of 32. amax is the largest |y| of a vector.
 *   e4m3: the scale is 2^(floor(log2 amax) - 8), at least 2^-127. An element is y / scale, rounded to nearest even, at
 * most 448.
 *   e2m1: the scale is amax * f32(1 / 6), rounded to fp32 and then, to nearest even, to e4m3, at most 448. An element is
 * y * f32(1 / scale), rounded to fp32 and then, to nearest even, to e2m1, at most 6; it is 0 if the scale is 0. The
 * range of the scales is used best if factor is 2688 / (the largest |x|); the next product's alpha then divides by it.
 *   If a vector has NaN or infinity, its scale is NaN (0xFF or 0x7F) and its elements are NaN, or 6 with e2m1. If n is
 * not a multiple of a vector, the last one is shorter. Scales beyond n, up to the end of the atom, are 0. Scales of rows
 * of no group are not written. With e2m1, n is even, and ldd and stride_d are multiples of 32. scale_d_m is bytes from
 * the atoms of 128 rows to those of the next, scale_d_plane bytes to the next plane; they are multiples of 16, and 0
 * means contiguous. For any other D both are 0.
 *   For 16-bit inputs all of this is the same, alpha, bias, factor and the order of gate and up included, and a_rows is 0.
 * With OFFSETS, align may then be less than 128, but a product that reads D in atoms needs 128.
 *
 * Devices: 16-bit inputs and HEWN_GROUPED_BLOCKS on all targets; HEWN_GROUPED_COLUMNS on sm_90a; 8-bit block scales and
 * quantised results on sm_100f. Otherwise HEWN_ERR_NO_MODULE.
 */
typedef enum hewn_grouped_kind {
    HEWN_GROUPED_PLANES = 0, HEWN_GROUPED_COUNTS = 1, HEWN_GROUPED_OFFSETS = 2
} hewn_grouped_kind;

/* Which elements share a scale. BLOCKS: of B, 128 columns and 128 k; COLUMNS: of B, 128 k of a column; both f32, with
 * a scale of A for 128 k of a row. UE8M0_32, UE8M0_128, UE4M3_16: 32, 128 or 16 k of a row of A and of a column; a
 * ue8m0 is the power of two 2^(byte - 127). */
typedef enum hewn_grouped_scales {
    HEWN_GROUPED_BLOCKS = 0, HEWN_GROUPED_COLUMNS = 1, HEWN_GROUPED_UE8M0_32 = 2, HEWN_GROUPED_UE4M3_16 = 3,
    HEWN_GROUPED_UE8M0_128 = 4
} hewn_grouped_scales;

/* Layout of 8-bit block scales: atoms of 512 bytes, or words of 4 scales along k of a row. */
typedef enum hewn_grouped_layout {
    HEWN_GROUPED_ATOMS = 0, HEWN_GROUPED_WORDS = 1
} hewn_grouped_layout;

typedef struct hewn_grouped_desc {
    size_t struct_size;
    int64_t groups, m, n, k;
    int64_t expected_m; /* rows that a group has in most runs, for the choice of the kernel; 0: m, with OFFSETS
                           m / groups */
    int64_t align;      /* OFFSETS: a power of two up to 2^30; 0: 1, with 8-bit block scales 128 (atoms) or 4
                           (words). Otherwise 0 */
    int64_t lda, ldb, ldd;
    int64_t stride_a, stride_b, stride_d; /* between groups; a and d: between planes */
    int64_t scale_a_k, scale_a_plane;     /* between blocks of k, planes */
    int64_t scale_b_n, scale_b_plane;     /* between blocks of columns (HEWN_GROUPED_COLUMNS: of k), groups */
    const char *variant; /* of the kernel, as hewn_grouped_plan_info names it; NULL: chosen */
    int in;              /* hewn_dtype of A and B: HEWN_E4M3, HEWN_BF16, HEWN_F16. With 8-bit block scales only of A:
                            HEWN_E4M3, HEWN_E5M2, HEWN_E2M1 */
    int out;             /* hewn_dtype of D: HEWN_F32, or 16 bits: the type of 16-bit A and B, HEWN_BF16 for others.
                            Quantised, with 8-bit block scales or 16-bit inputs: HEWN_E4M3, HEWN_E2M1 */
    int kind;            /* hewn_grouped_kind */
    int scales;          /* hewn_grouped_scales; 0 for 16-bit inputs */
    int act;             /* HEWN_ACT_NONE; for 16-bit inputs also HEWN_ACT_SWIGLU; for a quantised D any */
    int64_t a_rows;      /* rows of A and scale_a, which `index` chooses; 0: they are those of D */
    int in_b;            /* with 8-bit block scales: hewn_dtype of B; 0: `in` */
    int scale_layout;    /* hewn_grouped_layout, with 8-bit block scales; else 0 */
    int64_t scale_d_m, scale_d_plane; /* for a quantised D: between atoms of 128 rows, planes */
} hewn_grouped_desc;

typedef struct hewn_grouped_plan hewn_grouped_plan;

typedef struct hewn_grouped_plan_info {
    size_t struct_size;
    const char *module;  /* "grouped_e4m3_bf16_128x128" */
    const char *target;  /* "sm_90a" */
    const char *origin;  /* as hewn_module_origin */
    const char *variant; /* "128x128". "128x128p": pairs of CTAs share loads. "64x128s4": 4 CTAs share a tile's k; 2, 3, 4,
                            5 or 8 may. With 8-bit block scales and 256 rows, pairs of CTAs multiply together */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_shared; /* bytes */
    uint32_t tile_m, tile_n, tile_k; /* the tile of D that a CTA computes, and elements of k in one stage */
    uint32_t stages;
} hewn_grouped_plan_info;

/* Device addresses. Those of a, b, d, scale_a and scale_d are multiples of 16, and that of 8-bit block scales scale_b
 * too; the others are multiples of 4. */
typedef struct hewn_grouped_args {
    size_t struct_size;
    hewn_deviceptr a, b, d;
    hewn_deviceptr scale_a, scale_b;
    hewn_deviceptr rows; /* 0 with PLANES */
    hewn_deviceptr index; /* with a_rows; else 0 */
    hewn_deviceptr alpha; /* 8-bit block scales or a quantised D: an f32 for each group; 0: 1 */
    hewn_deviceptr scale_d; /* a quantised D only, as are the next two */
    hewn_deviceptr bias;    /* an f32 for each row of B[g], one group after another; 0: none */
    hewn_deviceptr factor;  /* an f32 for each group; 0: 1 */
} hewn_grouped_args;

int hewn_grouped_plan_create(hewn_context *context, const hewn_grouped_desc *desc,
                             hewn_grouped_plan **out, hewn_error *err);
void hewn_grouped_plan_destroy(hewn_grouped_plan *plan);
int hewn_grouped_plan_describe(const hewn_grouped_plan *plan, hewn_grouped_plan_info *out,
                               hewn_error *err);
/* Enqueues one launch. D overlaps none of the others. */
int hewn_grouped_plan_run(const hewn_grouped_plan *plan, const hewn_grouped_args *args,
                          hewn_stream stream, hewn_error *err);

/* Host copies of the arrays that a run's addresses hold; NULL where the plan has none. */
typedef struct hewn_grouped_tables {
    size_t struct_size;
    const int32_t *rows;
    const int32_t *index; /* NULL also with a_rows: it is not checked */
} hewn_grouped_tables;

/* Checks host copies; its message names array, index, value and rule. Rows are in 0..m; with OFFSETS they
 * ascend. `index` is in 0..a_rows-1, or -1 for a row of zeros, for every row that a group has. */
int hewn_grouped_plan_check_tables(const hewn_grouped_plan *plan, const hewn_grouped_tables *tables,
                                   hewn_error *err);

/*
 * Weighted sums of rows, which add up for each token what its experts have computed:
 *
 *   D[r][c] = sum over j = 0 .. terms - 1, in this order: weights[r][j] * X[index[r][j]][c]
 *
 * for `rows` rows and n columns. X has x_rows rows. X and D are each bf16, f16 or f32: a 16-bit D has the type of X,
 * or X is f32. weights is f32, index int32. Each term is one fma in fp32, starting from 0, and the sum is rounded once,
 * to nearest even. Terms are added in their order, so equal inputs give equal bits. A term whose index is outside
 * 0..x_rows-1 is left out, whatever its weight. A sum without terms is 0.
 *
 * Sizes: rows, terms, n, x_rows and the number of CTAs are in 1..2^31-1. Strides are in elements, 0 means contiguous,
 * and are below 2^40 bytes; ldx and ldd are multiples of 16 bytes. On all targets; one launch.
 */
typedef struct hewn_grouped_sum_desc {
    size_t struct_size;
    int64_t rows, terms, n, x_rows;
    int64_t ldx, ldd;              /* of X and D */
    int64_t index_row, weight_row; /* strides between rows of index and weights */
    int in, out;                   /* hewn_dtype of X and D */
} hewn_grouped_sum_desc;

typedef struct hewn_grouped_sum_plan hewn_grouped_sum_plan;

typedef struct hewn_grouped_sum_plan_info {
    size_t struct_size;
    const char *module; /* "grouped_sum_bf16_bf16" */
    const char *target; /* "sm_90a" */
    const char *origin; /* as hewn_module_origin */
    uint32_t grid[3], block[3];
} hewn_grouped_sum_plan_info;

/* Device addresses. Those of x and d are multiples of 16, the others of 4. */
typedef struct hewn_grouped_sum_args {
    size_t struct_size;
    hewn_deviceptr x, d;
    hewn_deviceptr index;
    hewn_deviceptr weights; /* 0: all are 1 */
} hewn_grouped_sum_args;

int hewn_grouped_sum_plan_create(hewn_context *context, const hewn_grouped_sum_desc *desc,
                                 hewn_grouped_sum_plan **out, hewn_error *err);
void hewn_grouped_sum_plan_destroy(hewn_grouped_sum_plan *plan);
int hewn_grouped_sum_plan_describe(const hewn_grouped_sum_plan *plan,
                                   hewn_grouped_sum_plan_info *out, hewn_error *err);
/* Enqueues one launch. D overlaps none of the others. */
int hewn_grouped_sum_plan_run(const hewn_grouped_sum_plan *plan, const hewn_grouped_sum_args *args,
                              hewn_stream stream, hewn_error *err);

/* -------------------------------------------------------------------------------------- w4 -- */

/*
 * Products with weights of 4 bits, for decode: D = X * transpose(W).
 *
 *   D[i][j] = sum over groups g of scale[j][g] * sum over k of g of X[i][k] * (W[j][k] - zero[j][g])
 *
 * X is m x k of bf16 or f16, W is n x k, D is m x n. A group is `group` columns of W: 32, 64, 128, or all
 * columns of a row. Scales have the type of X. Only uint4 has zero points; they are integers in 0..15.
 *
 * The weights, minus their zero points, are exact in the type of X. Products are exact. The tensor cores sum
 * the products of 64 columns of k, or of a group if that is less, in fp32 and in their own order. Each such
 * sum is multiplied by its scale and added with one rounding (fma) in fp32, in ascending order of k. The sums
 * of parts of K are then added in the order of the parts. The result is rounded once to D's type, to nearest even.
 *
 * hewn_w4_pack converts weights, scales and zero points on the host to the layout that the kernels read;
 * ptx/inc/w4.plan.h describes it. W is read once for each 64 rows of X.
 *
 * Sizes: m, n and k are in 1..2^31-1, and so is the number of CTAs. A row of X is a multiple of 16 bytes apart from
 * the next; rows of D do not overlap. k need not be a multiple of `group`: the last group is then shorter.
 *
 * On sm_90a only: elsewhere HEWN_ERR_NO_MODULE.
 */
typedef enum hewn_w4_format {
    HEWN_W4_INT4 = 0, /* -8..7, two's complement */
    HEWN_W4_UINT4 = 1 /* 0..15, minus a zero point */
} hewn_w4_format;

typedef struct hewn_w4_desc {
    size_t struct_size;
    int64_t m, n, k;
    int64_t group;        /* columns of W that share a scale: 32, 64 or 128; 0: all of a row */
    int64_t x_row, d_row; /* elements from a row to the next; 0: k and n */
    int in;               /* hewn_dtype of X and the scales: HEWN_BF16 or HEWN_F16 */
    int out;              /* hewn_dtype of D: F32, F16 or BF16 */
    int format;           /* hewn_w4_format */
    uint32_t parts;       /* CTAs of a cluster that share the sum over k, 1..8; 0: chosen */
    uint32_t tile;        /* columns of D that a CTA computes: 64, 128, 192 or 256; 0: chosen */
    uint32_t invariant;   /* 1: the number of parts depends only on n, k and the types, so the bits of a
                             row of D do not depend on m */
} hewn_w4_desc;

/* Weights on the host, before packing. Element k of a row is in byte k / 2 of the row, in the lower 4 bits if
 * k is even. */
typedef struct hewn_w4_weights {
    size_t struct_size;
    const void *values;   /* n rows */
    const void *scales;   /* n rows, an element for each group */
    const uint8_t *zeros; /* n rows, a byte for each group, for uint4; else NULL */
    int64_t value_row;    /* bytes from a row to the next; 0: (k + 1) / 2 */
    int64_t scale_row;    /* elements; 0: the number of groups */
    int64_t zero_row;     /* likewise */
} hewn_w4_weights;

/* Bytes of the packed weights. They depend only on n, k, group and format, but the whole description is checked. */
int hewn_w4_packed_bytes(const hewn_w4_desc *desc, uint64_t *bytes, hewn_error *err);
/* Packs the weights into `packed`, host memory of that many bytes. The caller copies them to the device. */
int hewn_w4_pack(const hewn_w4_desc *desc, const hewn_w4_weights *weights, void *packed,
                 uint64_t bytes, hewn_error *err);

typedef struct hewn_w4_plan hewn_w4_plan;

typedef struct hewn_w4_plan_info {
    size_t struct_size;
    const char *module; /* "w4_bf16_int4_16" */
    const char *target; /* "sm_90a" */
    const char *origin; /* as hewn_module_origin */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_shared;          /* bytes */
    uint32_t tile_rows, tile_columns; /* of D, of a CTA */
    uint32_t parts, stages;
    uint32_t blocks; /* k-blocks of 128 */
    uint64_t packed; /* bytes of the packed weights */
} hewn_w4_plan_info;

/* Device addresses: those of x and w are multiples of 16, that of d a multiple of its element's size. */
typedef struct hewn_w4_args {
    size_t struct_size;
    hewn_deviceptr x;
    hewn_deviceptr w; /* packed weights */
    hewn_deviceptr d;
} hewn_w4_args;

int hewn_w4_plan_create(hewn_context *context, const hewn_w4_desc *desc, hewn_w4_plan **out,
                        hewn_error *err);
void hewn_w4_plan_destroy(hewn_w4_plan *plan);
int hewn_w4_plan_describe(const hewn_w4_plan *plan, hewn_w4_plan_info *out, hewn_error *err);
/* Enqueues one launch. d overlaps neither x nor w. */
int hewn_w4_plan_run(const hewn_w4_plan *plan, const hewn_w4_args *args, hewn_stream stream,
                     hewn_error *err);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
