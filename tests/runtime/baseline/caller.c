/*
 * A program of version 0.2: it uses nothing that came later. Compiled against one hewn.h and linked with
 * a library that was compiled against another, it passes every public struct that may grow through every
 * function that takes it, each before a page that cannot be touched, and runs a product and an attention.
 *
 *     HEWN_LIBCUDA=build/sim/libcuda.so.1 caller
 */
#include "pattern.h"
#include "sizes.inc"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

_Alignas(16) unsigned char anchors[2 * ANCHORS];

extern int probe_awaits, probe_seen;
extern char probe_wrong[128];

static int passed, failed;
static hewn_driver *driver;
static hewn_context *context;
static hewn_error err;

static void check(bool good, const char *what, const char *why)
{
    if (good) {
        passed++;
    } else {
        failed++;
        printf("FAIL %s: %s\n", what, why);
    }
}

/* `size` bytes that end where memory ends. */
static void *at_the_edge(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE)) {
        perror("mmap");
        exit(1);
    }
    return pages + page - size;
}

/* ---- descriptions that the library accepts ---- */

static const hewn_gemm_desc product = {
    .struct_size = sizeof product, .m = 8, .n = 8, .k = 8, .in = HEWN_BF16, .out = HEWN_F32};

static const hewn_attention_source keys = {.struct_size = sizeof keys, .length = 2};

static hewn_attention_desc attention_of(const hewn_attention_source *source)
{
    return (hewn_attention_desc){.struct_size = sizeof(hewn_attention_desc),
                                 .batch = 1,
                                 .q_heads = 1,
                                 .kv_heads = 1,
                                 .qk_dim = 64,
                                 .q_length = 1,
                                 .in = HEWN_BF16,
                                 .out = HEWN_F32,
                                 .source = {source}};
}

static hewn_gemm_plan *gemm_plan;
static hewn_attention_plan *attention_plan;

/* ---- every function that takes or gives a struct ---- */

static int open_driver(const hewn_driver_options *x)
{
    hewn_driver *out = NULL;
    return hewn_driver_open(x, &out, &err);
}

static int check_map(const hewn_tensormap_desc *x)
{
    return hewn_tensormap_check(x, NULL, 9, 0, &err);
}

static int encode_map(const hewn_tensormap_desc *x)
{
    hewn_tensormap out;
    return hewn_tensormap_encode(context, x, NULL, &out, &err);
}

static int launch(const hewn_launch_desc *x)
{
    void *handle = anchors;
    hewn_function function;
    memcpy(&function, &handle, sizeof function);
    return hewn_function_launch(context, function, x, NULL, &err);
}

static int plan_gemm(const hewn_gemm_desc *x)
{
    hewn_gemm_plan *out = NULL;
    return hewn_gemm_plan_create(context, x, &out, &err);
}

static int run_gemm(const hewn_gemm_args *x)
{
    return hewn_gemm_plan_run(gemm_plan, x, NULL, &err);
}

static int plan_attention(const hewn_attention_desc *x)
{
    hewn_attention_plan *out = NULL;
    return hewn_attention_plan_create(context, x, &out, &err);
}

static int plan_source(const hewn_attention_source *x)
{
    hewn_attention_desc desc = attention_of(x);
    return plan_attention(&desc);
}

static int plan_second_source(const hewn_attention_source *x)
{
    hewn_attention_desc desc = attention_of(&keys);
    desc.source[1] = x;
    return plan_attention(&desc);
}

static int run_attention(const hewn_attention_args *x)
{
    return hewn_attention_plan_run(attention_plan, x, NULL, &err);
}

static int run_source(const hewn_attention_source_args *x)
{
    const hewn_attention_args args = {.struct_size = sizeof args, .source = {x}};
    return run_attention(&args);
}

static int run_second_source(const hewn_attention_source_args *x)
{
    const hewn_attention_args args = {.struct_size = sizeof args, .source = {NULL, x}};
    return run_attention(&args);
}

static int check_tables(const hewn_attention_tables *x)
{
    return hewn_attention_plan_check_tables(attention_plan, x, &err);
}

static int check_source(const hewn_attention_source_tables *x)
{
    const hewn_attention_tables tables = {.struct_size = sizeof tables, .source = {x}};
    return check_tables(&tables);
}

static int check_second_source(const hewn_attention_source_tables *x)
{
    const hewn_attention_tables tables = {.struct_size = sizeof tables, .source = {NULL, x}};
    return check_tables(&tables);
}

static int describe_by_driver(hewn_device_info *x)
{
    return hewn_driver_describe_device(driver, 0, x, &err);
}

static int describe_by_context(hewn_device_info *x)
{
    return hewn_context_describe_device(context, x, &err);
}

static int describe_module(hewn_module_info *x)
{
    return hewn_module_describe(hewn_family_module(hewn_gemm_family(), 0), x, &err);
}

static int describe_image(hewn_image_info *x)
{
    return hewn_module_describe_image(hewn_family_module(hewn_gemm_family(), 0), 0, x, &err);
}

static int describe_gemm(hewn_gemm_plan_info *x)
{
    return hewn_gemm_plan_describe(gemm_plan, x, &err);
}

static int describe_attention(hewn_attention_plan_info *x)
{
    return hewn_attention_plan_describe(attention_plan, x, &err);
}

#define TAKES(X)                                     \
    X(hewn_driver_options, open_driver)              \
    X(hewn_tensormap_desc, check_map)                \
    X(hewn_tensormap_desc, encode_map)               \
    X(hewn_launch_desc, launch)                      \
    X(hewn_gemm_desc, plan_gemm)                     \
    X(hewn_gemm_args, run_gemm)                      \
    X(hewn_attention_desc, plan_attention)           \
    X(hewn_attention_source, plan_source)            \
    X(hewn_attention_source, plan_second_source)     \
    X(hewn_attention_args, run_attention)            \
    X(hewn_attention_source_args, run_source)        \
    X(hewn_attention_source_args, run_second_source) \
    X(hewn_attention_tables, check_tables)           \
    X(hewn_attention_source_tables, check_source)    \
    X(hewn_attention_source_tables, check_second_source)

#define GIVES(X)                             \
    X(hewn_device_info, describe_by_driver)  \
    X(hewn_device_info, describe_by_context) \
    X(hewn_module_info, describe_module)     \
    X(hewn_image_info, describe_image)       \
    X(hewn_gemm_plan_info, describe_gemm)    \
    X(hewn_attention_plan_info, describe_attention)

enum {
    NONE,
#define STRUCT(s) NUMBER_##s,
#define FIELD(s, f, pointer)
#define END(s)
#include "fields.inc"
#undef STRUCT
#undef FIELD
#undef END
    NUMBERS
};

static bool exercised[NUMBERS];

static void begin(int number)
{
    exercised[number] = true;
    probe_awaits = number;
    probe_seen = 0;
    probe_wrong[0] = '\0';
    err = (hewn_error){0};
}

/* ---- the fields ---- */

/* Refused by the struct's name and the number of its first byte beyond `known`. */
#define CHECK_REFUSED(type, function, x, known)                                      \
    do {                                                                             \
        char words[96];                                                              \
        snprintf(words, sizeof words, #type ": byte %zu is not 0", (size_t)(known)); \
        begin(NUMBER_##type);                                                        \
        int status = function(x);                                                    \
        check(status == HEWN_ERR_ARGUMENT && strstr(err.message, words),             \
              #function " refuses a field that it does not know", err.message);      \
    } while (0)

static void structs_taken(void)
{
#define X(type, function)                                                  \
    {                                                                      \
        type *x = at_the_edge(sizeof *x);                                  \
        memset(x, 0, sizeof *x);                                           \
        x->struct_size = sizeof *x;                                        \
        fill_##type(x);                                                    \
        begin(NUMBER_##type);                                              \
        function(x);                                                       \
        check(probe_seen > 0, #function, "the library never took " #type); \
        check(!probe_wrong[0], #function, probe_wrong);                    \
        REFUSED_TAIL(type, function, x)                                    \
    }
#ifdef HEWN_TEST_TAIL /* this side is the newer one */
#define REFUSED_TAIL(type, function, x)                                         \
    unsigned char *tail = (unsigned char *)x->test_tail;                        \
    for (size_t i = 0; i < sizeof x->test_tail; i += sizeof x->test_tail - 1) { \
        tail[i] = 1;                                                            \
        CHECK_REFUSED(type, function, x, offsetof(type, test_tail) + i);        \
        tail[i] = 0;                                                            \
    }
#else
#define REFUSED_TAIL(type, function, x)
#endif
    TAKES(X)
#undef X
}

static void structs_given(void)
{
#define X(type, function)                                                                \
    {                                                                                    \
        type *x = at_the_edge(sizeof *x);                                                \
        memset(x, 0xA5, sizeof *x);                                                      \
        x->struct_size = sizeof *x;                                                      \
        begin(NUMBER_##type);                                                            \
        int status = function(x);                                                        \
        const char *wrong = wrong_in_##type(x);                                          \
        check(!status, #function, err.message);                                          \
        check(probe_seen > 0, #function, "the library never gave " #type);               \
        check(x->struct_size == sizeof *x, #function, #type ".struct_size was changed"); \
        check(!wrong, #function, wrong ? wrong : "");                                    \
        ZERO_TAIL(type, function, x)                                                     \
    }
#ifdef HEWN_TEST_TAIL
#define ZERO_TAIL(type, function, x) \
    check(!x->test_tail[0] && !x->test_tail[1], #function, "what the library lacks is not 0");
#else
#define ZERO_TAIL(type, function, x)
#endif
    GIVES(X)
#undef X
}

/* A struct_size that no version had. */
static void sizes_refused(void)
{
#define X(type, function)                                                                    \
    {                                                                                        \
        static const size_t sizes[] = {0, 8, FIRST_SIZE_##type - 1, 4097, SIZE_MAX};         \
        type *x = at_the_edge(sizeof *x);                                                    \
        memset(x, 0, sizeof *x);                                                             \
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {                        \
            x->struct_size = sizes[i];                                                       \
            begin(NUMBER_##type);                                                            \
            int status = function(x);                                                        \
            check(status == HEWN_ERR_ARGUMENT && strstr(err.message, #type ": struct_size"), \
                  #function " refuses a struct_size", err.message);                          \
        }                                                                                    \
    }
    TAKES(X)
    GIVES(X)
#undef X
}

static void all_structs_seen(void)
{
#define STRUCT(s) check(exercised[NUMBER_##s], #s, "no call of this program passes it");
#define FIELD(s, f, pointer)
#define END(s)
#include "fields.inc"
#undef STRUCT
#undef FIELD
#undef END
}

/* ---- the runs ---- */

static int (*mem_alloc)(hewn_deviceptr *, size_t);
static int (*to_device)(hewn_deviceptr, const void *, size_t);
static int (*to_host)(void *, hewn_deviceptr, size_t);

static void resolve(void *slot, const char *symbol)
{
    void *function = hewn_driver_symbol(driver, symbol);
    if (!function) {
        printf("FAIL %s: the driver lacks it\n", symbol);
        exit(1);
    }
    memcpy(slot, &function, sizeof function);
}

static hewn_deviceptr upload(const void *host, size_t size)
{
    hewn_deviceptr device = 0;
    if (mem_alloc(&device, size) || to_device(device, host, size)) {
        printf("FAIL %zu bytes of device memory\n", size);
        exit(1);
    }
    return device;
}

static uint16_t bf16(int value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* D = 2 * A * transpose(B) + C + bias, of small integers. */
static void run_product(void)
{
    enum { N = 8 };
    uint16_t a[N * N], b[N * N];
    float c[N * N], bias[N], d[N * N];
    for (int i = 0; i < N * N; i++) {
        a[i] = bf16(i % 7 - 3);
        b[i] = bf16(i % 5 - 2);
        c[i] = (float)(i % 3);
    }
    for (int i = 0; i < N; i++) bias[i] = (float)(10 * i);
    hewn_gemm_desc desc = product;
    hewn_gemm_plan *plan = NULL;
    desc.with = HEWN_GEMM_WITH_ALPHA | HEWN_GEMM_WITH_C | HEWN_GEMM_WITH_BIAS;
    int status = hewn_gemm_plan_create(context, &desc, &plan, &err);
    check(!status, "gemm plan", err.message);
    if (status) return;
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = upload(a, sizeof a),
                                 .b = upload(b, sizeof b),
                                 .c = upload(c, sizeof c),
                                 .bias = upload(bias, sizeof bias),
                                 .d = upload(d, sizeof d),
                                 .alpha = 2,
                                 .beta = 1};
    status = hewn_gemm_plan_run(plan, &args, NULL, &err);
    check(!status && !to_host(d, args.d, sizeof d), "gemm run", err.message);
    bool right = true;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int sum = 0;
            for (int k = 0; k < N; k++) sum += ((i * N + k) % 7 - 3) * ((j * N + k) % 5 - 2);
            right &= d[i * N + j] == (float)(2 * sum) + c[i * N + j] + bias[j];
        }
    check(right, "gemm", "the product is wrong");
    hewn_gemm_plan_destroy(plan);
}

/* Two equal keys: the mean of two rows of V. With a window of one key, the last row. */
static void run_softmax(int64_t window, float want)
{
    enum { DIM = 64 };
    uint16_t q[DIM], k[2 * DIM], v[2 * DIM];
    float o[DIM];
    for (int i = 0; i < DIM; i++) {
        q[i] = bf16(1);
        k[i] = k[DIM + i] = bf16(i % 3);
        v[i] = bf16(2);
        v[DIM + i] = bf16(6);
    }
    hewn_attention_source source = keys;
    source.window_back = window;
    const hewn_attention_desc desc = attention_of(&source);
    hewn_attention_plan *plan = NULL;
    int status = hewn_attention_plan_create(context, &desc, &plan, &err);
    check(!status, "attention plan", err.message);
    if (status) return;
    const hewn_attention_source_args at = {
        .struct_size = sizeof at, .k = upload(k, sizeof k), .v = upload(v, sizeof v)};
    const hewn_attention_args args = {.struct_size = sizeof args,
                                      .q = upload(q, sizeof q),
                                      .o = upload(o, sizeof o),
                                      .source = {&at}};
    status = hewn_attention_plan_run(plan, &args, NULL, &err);
    check(!status && !to_host(o, args.o, sizeof o), "attention run", err.message);
    bool right = true;
    for (int i = 0; i < DIM; i++) right &= fabsf(o[i] - want) < 0.01F;
    check(right, "attention", "O is wrong");
    hewn_attention_plan_destroy(plan);
}

int main(void)
{
    const hewn_attention_desc attention = attention_of(&keys);
    if (hewn_driver_open(NULL, &driver, &err) ||
        hewn_context_attach_primary(driver, 0, &context, &err) ||
        hewn_gemm_plan_create(context, &product, &gemm_plan, &err) ||
        hewn_attention_plan_create(context, &attention, &attention_plan, &err)) {
        printf("FAIL set-up: %s\n", err.message);
        return 1;
    }
    resolve(&mem_alloc, "cuMemAlloc_v2");
    resolve(&to_device, "cuMemcpyHtoD_v2");
    resolve(&to_host, "cuMemcpyDtoH_v2");
    structs_taken();
    structs_given();
    sizes_refused();
    all_structs_seen();
    probe_awaits = 0;
    run_product();
    run_softmax(0, 4);
    run_softmax(1, 6);
    hewn_gemm_plan_destroy(gemm_plan);
    hewn_attention_plan_destroy(attention_plan);
    hewn_context_detach(context);
    hewn_driver_close(driver);
    printf("%d checks passed, %d failed\n", passed, failed);
    return failed > 0;
}
