/*
 * PTX that nvcc made, tests/driver/nvcc/NAME.ptx, run as it is through the driver API: each kernel against a
 * reference in C. The first line of a text says how it was made.
 */
#include "lib/driver_table.h"

#include <math.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder; /* where the .ptx files lie */

/* ---- running ---- */

static char *read_text(const char *name)
{
    char path[4096], *image = NULL;
    FILE *f;
    long size;

    snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
    f = fopen(path, "rb");
    if (!f) return NULL;
    if (!fseek(f, 0, SEEK_END) && (size = ftell(f)) > 0 && !fseek(f, 0, SEEK_SET)) {
        image = calloc(1, (size_t)size + 1);
        if (image && fread(image, 1, (size_t)size, f) != (size_t)size) image[0] = 0;
    }
    fclose(f);
    return image;
}

/* The module of that name, loaded once; NULL after a failed check. */
static hewn_cu_module compiled(const char *name)
{
    static struct {
        const char *name;
        hewn_cu_module module;
    } loaded[8];
    static char log[2048];
    int options[] = {HEWN_CU_JIT_ERROR_LOG_BUFFER, HEWN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    hewn_cu_module module = NULL;
    size_t i = 0;
    char *image;

    while (loaded[i].name && strcmp(loaded[i].name, name) != 0) i++;
    if (loaded[i].name) return loaded[i].module;
    image = read_text(name);
    CHECK(image, "%s/%s.ptx cannot be read", folder, name);
    if (image)
        CHECK(!cu.cuModuleLoadDataEx(&module, image, 2, options, values), "%s: %s", name, log);
    free(image);
    loaded[i].name = name;
    loaded[i].module = module;
    return module;
}

struct grid {
    unsigned blocks_x, blocks_y, threads_x, threads_y, shared;
};

/* Launches and waits; the first failure's code. */
static int run(const char *module, const char *entry, struct grid g, void **params)
{
    hewn_cu_module m = compiled(module);
    hewn_cu_function f = m ? function(m, entry) : NULL;
    int rc;

    if (!f) return -1;
    rc = cu.cuLaunchKernel(f, g.blocks_x, g.blocks_y ? g.blocks_y : 1, 1, g.threads_x,
                           g.threads_y ? g.threads_y : 1, 1, g.shared, NULL, params, NULL);
    return rc ? rc : cu.cuCtxSynchronize();
}

static hewn_cu_deviceptr give(const void *host, size_t bytes)
{
    hewn_cu_deviceptr d = buffer(bytes);
    CHECK_INT(cu.cuMemcpyHtoD_v2(d, host, bytes), 0);
    return d;
}

static void take(void *host, hewn_cu_deviceptr d, size_t bytes)
{
    CHECK_INT(cu.cuMemcpyDtoH_v2(host, d, bytes), 0);
    CHECK_INT(cu.cuMemFree_v2(d), 0);
}

static void same_ints(const int *got, const int *want, int n)
{
    for (int i = 0; i < n; i++) {
        if (got[i] == want[i]) continue;
        CHECK(false, "element %d of %d: want %d got %d", i, n, want[i], got[i]);
        return;
    }
}

static void close_floats(const float *got, const double *want, int n, double relative)
{
    for (int i = 0; i < n; i++) {
        if (fabs(got[i] - want[i]) <= relative * (1e-3 + fabs(want[i]))) continue;
        CHECK(false, "element %d of %d: want %.9g got %.9g", i, n, want[i], (double)got[i]);
        return;
    }
}

/* ---- functions ---- */

static int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static int digits(int n, int *out)
{
    int mine[4] = {n, n + 1, n + 2, n + 3};

    if (n > 1) out[n & 3] += digits(n - 1, mine);
    return out[0] + mine[n & 3];
}

enum { LANES = 64 };

/* Runs an entry of call.ptx that fills one word a thread. */
static bool words(const char *entry, const int *second, void *out)
{
    hewn_cu_deviceptr d = buffer(LANES * 4);
    int value = second ? *second : 0;
    void *params[] = {&d, &value};
    int rc = run("call", entry, (struct grid){.blocks_x = 1, .threads_x = LANES}, params);

    CHECK(rc == 0, "%s ends with %d", entry, rc);
    take(out, d, LANES * 4);
    return rc == 0;
}

static void test_calls(void)
{
    int got[LANES], want[LANES], n = 3;

    if (test_case("recursion, with lanes at different depths")) {
        for (int i = 0; i < LANES; i++) want[i] = fib(i % 12);
        if (words("recursion", NULL, got)) same_ints(got, want, LANES);
    }
    if (test_case("pointers into frames of the callers")) {
        for (int i = 0; i < LANES; i++) {
            int mine[4] = {0, 1, 2, 3};
            int sum = digits(i % 9, mine) * 100;
            want[i] = sum + mine[i & 3];
        }
        if (words("frames", NULL, got)) same_ints(got, want, LANES);
    }
    if (test_case("structs by value, two places to return to")) {
        for (int i = 0; i < LANES; i++) {
            int k = i & 1 ? 3 : 5;
            want[i] = (i + i % 5) * k + i % 5 + (int)(1.25 * k * 4);
        }
        if (words("structs", NULL, got)) same_ints(got, want, LANES);
    }
    if (test_case("a table of function pointers, pointers in variables")) {
        for (int i = 0; i < LANES; i++)
            want[i] = (i % 3 == 0 ? i + 5 : i % 3 == 1 ? i * 5 : i - 5) + 7 + 4;
        if (words("pointers", NULL, got)) same_ints(got, want, LANES);
    }
    if (test_case("virtual functions, initialised constants")) {
        static const float weights[4] = {0.5F, 1.5F, -2.F, 4.F};
        double sum[LANES];
        float out[LANES];
        for (int i = 0; i < LANES; i++) sum[i] = (i & 1 ? 1 : 3) * i * i + (double)weights[i & 3];
        if (words("virtuals", NULL, out)) close_floats(out, sum, LANES, 1e-7);
    }
    if (test_case("a local array with computed indices")) {
        for (int i = 0; i < LANES; i++) {
            int a[16];
            for (int j = 0; j < 16; j++) a[j] = j * n;
            for (int j = 0; j < 16; j++) a[(j * 7 + i) & 15] += a[j];
            want[i] = a[i & 15];
        }
        if (words("local_array", &n, got)) same_ints(got, want, LANES);
    }
}

/* What `body` writes to stdout, in a process of its own; its result in *rc. */
static void in_child(int (*body)(void), char *out, size_t size, int *rc)
{
    int ends[2], status = 0;
    size_t n = 0;
    ssize_t more;
    pid_t child;

    *out = 0;
    *rc = -1;
    fflush(stdout);
    if (pipe(ends)) return;
    child = fork();
    if (!child) {
        (void)dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        status = body();
        fflush(stdout);
        _exit(status & 0xFF);
    }
    close(ends[1]);
    while (n + 1 < size && (more = read(ends[0], out + n, size - n - 1)) > 0) n += (size_t)more;
    out[n] = 0;
    close(ends[0]);
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status))
        *rc = WEXITSTATUS(status);
}

static bool begin(void)
{
    return !cu.cuInit(0) && !cu.cuDevicePrimaryCtxRetain(&primary, 0) &&
           !cu.cuCtxSetCurrent(primary);
}

static int print_body(void)
{
    hewn_cu_module m;
    int rc;

    if (!begin() || !(m = compiled("call"))) return 1;
    rc = cu.cuLaunchKernel(function(m, "prints"), 2, 1, 1, LANES, 1, 1, 0, NULL, NULL, NULL);
    printf("before\n");
    return rc ? rc : cu.cuCtxSynchronize();
}

static int assert_body(void)
{
    int n = 5;
    void *params[] = {&n};

    if (!begin()) return 1;
    return run("call", "asserts", (struct grid){.blocks_x = 1, .threads_x = LANES}, params) == 710
               ? 10
               : 1;
}

static int deep_body(void)
{
    hewn_cu_deviceptr out;
    void *params[] = {&out};

    if (!begin()) return 1;
    out = buffer(LANES * 4);
    return run("call", "deep", (struct grid){.blocks_x = 1, .threads_x = LANES}, params) ==
                   HEWN_CU_HARDWARE_STACK_ERROR
               ? 14
               : 1;
}

/* Before this process starts the driver: one that has may not be forked. */
static void test_prints(void)
{
    char got[4096], want[4096] = "before\n";
    int rc;

    if (test_case("printf: at the next synchronisation, block by block")) {
        size_t n = strlen(want);
        for (int b = 0; b < 2; b++)
            for (int t = 0; t < 3; t++)
                n += (size_t)snprintf(want + n, sizeof want - n,
                                      "block %d thread %d of three: %5.2f %lld %c %x %-4d| 100%%\n",
                                      b, t, 1.5 * t, 1LL << 40, 'a' + t, 255, 7);
        in_child(print_body, got, sizeof got, &rc);
        CHECK_INT(rc, 0);
        CHECK(!strcmp(got, want), "want:\n%sgot:\n%s", want, got);
    }
    if (test_case("assert: 710")) {
        in_child(assert_body, got, sizeof got, &rc);
        CHECK_INT(rc, 10);
    }
    if (simulated && test_case("recursion past the stack: 714")) {
        in_child(deep_body, got, sizeof got, &rc);
        CHECK_INT(rc, 14);
    }
}

/* ---- textbook kernels ---- */

static float *random_floats(struct rng *r, int n)
{
    float *all = calloc((size_t)n, sizeof *all);
    for (int i = 0; all && i < n; i++) all[i] = rng_unit(r);
    return all;
}

static void test_reductions(struct rng *r)
{
    int n = 5000, *ints = calloc((size_t)n, sizeof *ints), sum = 0, got = 0;
    float *in = random_floats(r, n), out = 0;
    double want = 0;
    hewn_cu_deviceptr a, b;
    void *params[] = {&a, &b, &n};

    for (int i = 0; i < n; i++) {
        want += (double)in[i];
        sum += ints[i] = (int)rng_below(r, 1000) - 500;
    }
    if (test_case("reduction: shuffles and atomics")) {
        a = give(in, (size_t)n * 4), b = give(&out, 4);
        CHECK_INT(run("classic", "reduce", (struct grid){.blocks_x = 3, .threads_x = 256}, params),
                  0);
        take(&out, b, 4);
        CHECK(fabs((double)out - want) < 1e-3, "want %g got %g", want, (double)out);
        cu.cuMemFree_v2(a);
    }
    if (test_case("reduction: cooperative groups")) {
        a = give(ints, (size_t)n * 4), b = give(&got, 4);
        CHECK_INT(run("classic", "reduce_groups", (struct grid){.blocks_x = 1, .threads_x = 96},
                      params),
                  0);
        take(&got, b, 4);
        CHECK_INT(got, sum);
        cu.cuMemFree_v2(a);
    }
    if (test_case("inclusive scan")) {
        int m = 700, line[700];
        void *scan[] = {&a, &b, &m};
        a = give(ints, 4 * 700), b = buffer(4 * 700);
        CHECK_INT(run("classic", "scan",
                      (struct grid){.blocks_x = 1, .threads_x = 704, .shared = 704 * 8}, scan),
                  0);
        take(line, b, 4 * 700);
        cu.cuMemFree_v2(a);
        for (int i = 1; i < m; i++) ints[i] += ints[i - 1];
        same_ints(line, ints, m);
    }
    free(ints);
    free(in);
}

static void test_transpose(struct rng *r)
{
    int rows = 70, cols = 45, n = rows * cols;
    float *in = random_floats(r, n), *out = calloc((size_t)n, sizeof *out);
    int wrong = 0;
    hewn_cu_deviceptr a, b;
    void *params[] = {&a, &b, &rows, &cols};

    if (test_case("transpose through shared memory")) {
        a = give(in, (size_t)n * 4), b = buffer((size_t)n * 4);
        CHECK_INT(run("classic", "transpose",
                      (struct grid){.blocks_x = 2, .blocks_y = 3, .threads_x = 32, .threads_y = 8},
                      params),
                  0);
        take(out, b, (size_t)n * 4);
        cu.cuMemFree_v2(a);
        for (int i = 0; i < n; i++) wrong += out[i % cols * rows + i / cols] != in[i];
        CHECK_INT(wrong, 0);
    }
    free(in);
    free(out);
}

static void count_bytes(const unsigned char *in, int n, int want[256])
{
    memset(want, 0, 256 * sizeof *want);
    for (int i = 0; i < n; i++) want[in[i]]++;
}

static void test_histogram(struct rng *r)
{
    int n = 9000, want[256], got[256] = {0};
    unsigned char *in = calloc((size_t)n, 1);
    hewn_cu_deviceptr a, b;
    void *params[] = {&a, &b, &n};

    for (int i = 0; i < n; i++) { /* two draws, so that bits are more often clear than set */
        uint32_t bits = rng_below(r, 256);
        in[i] = (unsigned char)(bits & rng_below(r, 256));
    }
    count_bytes(in, n, want);
    if (test_case("histogram: shared and global atomics")) {
        a = give(in, (size_t)n), b = give(got, sizeof got);
        CHECK_INT(
            run("classic", "histogram", (struct grid){.blocks_x = 3, .threads_x = 128}, params), 0);
        take(got, b, sizeof got);
        cu.cuMemFree_v2(a);
        same_ints(got, want, 256);
    }
    if (test_case("histogram over a cluster's shared memory")) {
        memset(got, 0, sizeof got);
        a = give(in, (size_t)n), b = give(got, sizeof got);
        CHECK_INT(run("async", "cluster_histogram", (struct grid){.blocks_x = 4, .threads_x = 128},
                      params),
                  0);
        take(got, b, sizeof got);
        cu.cuMemFree_v2(a);
        same_ints(got, want, 256);
    }
    free(in);
}

static void test_integers(struct rng *r)
{
    enum { N = 200 };
    unsigned in[N], out[N], want[N] = {0}, count = 0;
    unsigned long long quotients[N * 4];
    int n = N, shift = 4, wrong = 0;
    hewn_cu_deviceptr a, b;
    void *params[] = {&a, &b, &n, &shift};

    for (int i = 0; i < N; i++) in[i] = (unsigned)rng_next(r);
    if (test_case("a step of radix sort: match.any")) {
        a = give(in, sizeof in), b = buffer(sizeof out);
        CHECK_INT(run("classic", "radix", (struct grid){.blocks_x = 1, .threads_x = 256}, params),
                  0);
        take(out, b, sizeof out);
        cu.cuMemFree_v2(a);
        for (unsigned d = 0; d < 16; d++)
            for (int i = 0; i < N; i++)
                if ((in[i] >> 4 & 15) == d) want[count++] = in[i];
        for (int i = 0; i < N; i++) wrong += out[i] != want[i];
        CHECK_INT(wrong, 0);
    }
    if (test_case("64-bit division, byte permutation")) {
        a = give(in, sizeof in), b = buffer(sizeof quotients);
        CHECK_INT(run("classic", "divide", (struct grid){.blocks_x = 1, .threads_x = 256}, params),
                  0);
        take(quotients, b, sizeof quotients);
        cu.cuMemFree_v2(a);
        wrong = 0;
        for (int i = 0; i < N; i++) {
            unsigned long long x = in[i] * 0x123456789ULL, y = in[(i + 1) % N] | 1;
            long long s = (long long)x - (1LL << 50);
            unsigned lo = in[i], hi = (unsigned)y;
            unsigned perm =
                (hi >> 8 & 0xFF) | (lo & 0xFF) << 8 | (hi >> 24) << 16 | (lo >> 24) << 24;
            wrong += quotients[i * 4] != x / y || quotients[i * 4 + 1] != x % y ||
                     quotients[i * 4 + 2] != (unsigned long long)(s / (long long)y) ||
                     quotients[i * 4 + 3] != ((lo / hi) ^ perm);
        }
        CHECK_INT(wrong, 0);
    }
}

static int switched(int x)
{
    unsigned u = (unsigned)x, reversed = 0;

    for (int i = 0; i < 32; i++) reversed |= (u >> i & 1U) << (31 - i);
    switch (x & 7) {
    case 0: return x * 3;
    case 1: return x - 100;
    case 2: return x ^ 0x55;
    case 3: return __builtin_popcount(u);
    case 4: return (int)(u << 2);
    case 5: return -x;
    case 6: return x ? __builtin_clz(u) : 32;
    default: return (int)reversed;
    }
}

static void test_switch(void)
{
    int in[LANES], want[LANES], got[LANES];
    hewn_cu_deviceptr a, b;
    void *params[] = {&a, &b};

    if (!test_case("a jump table (brx.idx)")) return;
    for (int i = 0; i < LANES; i++) want[i] = switched(in[i] = i * 37);
    a = give(in, sizeof in), b = buffer(sizeof got);
    CHECK_INT(
        run("classic", "jump_table", (struct grid){.blocks_x = 1, .threads_x = LANES}, params), 0);
    take(got, b, sizeof got);
    cu.cuMemFree_v2(a);
    same_ints(got, want, LANES);
}

static void test_rows(struct rng *r)
{
    enum { ROWS = 5, COLS = 300, N = ROWS * COLS };
    float *in = random_floats(r, N), *gain = random_floats(r, COLS), *bias = random_floats(r, COLS);
    static float out[N];
    static double want[N];
    int cols = COLS;
    hewn_cu_deviceptr a = give(in, sizeof out), g = give(gain, COLS * 4), h = give(bias, COLS * 4);
    hewn_cu_deviceptr b;
    void *soft[] = {&a, &b, &cols}, *norm[] = {&a, &g, &h, &b, &cols};
    const struct grid grid = {.blocks_x = ROWS, .threads_x = 128};

    if (test_case("softmax")) {
        for (int i = 0; i < ROWS; i++) {
            double sum = 0;
            for (int j = 0; j < COLS; j++) sum += exp((double)in[i * COLS + j]);
            for (int j = 0; j < COLS; j++) want[i * COLS + j] = exp((double)in[i * COLS + j]) / sum;
        }
        b = buffer(sizeof out);
        CHECK_INT(run("classic", "softmax", grid, soft), 0);
        take(out, b, sizeof out);
        close_floats(out, want, N, 1e-5);
    }
    if (test_case("layer norm")) {
        for (int i = 0; i < ROWS; i++) {
            double mean = 0, squares = 0;
            for (int j = 0; j < COLS; j++) mean += (double)in[i * COLS + j] / COLS;
            for (int j = 0; j < COLS; j++)
                squares += pow((double)in[i * COLS + j] - mean, 2) / COLS;
            for (int j = 0; j < COLS; j++)
                want[i * COLS + j] =
                    ((double)in[i * COLS + j] - mean) / sqrt(squares + 1e-5) * (double)gain[j] +
                    (double)bias[j];
        }
        b = buffer(sizeof out);
        CHECK_INT(run("classic", "layernorm", grid, norm), 0);
        take(out, b, sizeof out);
        close_floats(out, want, N, 2e-4);
    }
    cu.cuMemFree_v2(a), cu.cuMemFree_v2(g), cu.cuMemFree_v2(h);
    free(in), free(gain), free(bias);
}

static void test_functions(struct rng *r)
{
    enum { N = 300 };
    float *in = random_floats(r, N), out[N * 6];
    double want[N * 6];
    int n = N;
    hewn_cu_deviceptr a, b;
    void *params[] = {&a, &b, &n};

    if (test_case("mathematical functions of libdevice")) {
        for (int i = 0; i < N; i++) {
            double x = (double)in[i];
            want[i * 6] = sin((double)(in[i] * 100.F));
            want[i * 6 + 1] = pow((double)(fabsf(in[i]) + 0.1F), (double)1.7F);
            want[i * 6 + 2] = tgamma((double)(in[i] + 2.5F));
            want[i * 6 + 3] = exp(x * 3);
            want[i * 6 + 4] = atan2(x, 0.3);
            want[i * 6 + 5] = erf(x) + log1p(x * 0.5) + cbrt(x);
        }
        a = give(in, N * 4), b = buffer(sizeof out);
        CHECK_INT(
            run("classic", "functions", (struct grid){.blocks_x = 3, .threads_x = 128}, params), 0);
        take(out, b, sizeof out);
        cu.cuMemFree_v2(a);
        close_floats(out, want, N * 6, 1e-5);
    }
    free(in);
}

/* ---- matrix products ---- */

static void test_product(struct rng *r, const char *entry, bool bf16, struct grid grid)
{
    enum { M = 48, N = 32, K = 64 };
    static uint16_t a[M * K], b[K * N];
    static float c[M * N];
    static double want[M * N];
    int m = M, n = N, k = K;
    hewn_cu_deviceptr da, db, dc;
    void *params[] = {&da, &db, &dc, &m, &n, &k};
    double (*wide)(uint16_t) = bf16 ? bf16_to_double : f16_to_double;
    uint16_t (*narrow)(double) = bf16 ? double_to_bf16 : double_to_f16;

    if (!test_case("product: %s", entry)) return;
    for (int i = 0; i < M * K; i++) a[i] = narrow((double)rng_unit(r));
    for (int i = 0; i < K * N; i++) b[i] = narrow((double)rng_unit(r));
    for (int i = 0; i < M * N; i++) {
        want[i] = 0;
        for (int j = 0; j < K; j++) want[i] += wide(a[i / N * K + j]) * wide(b[j * N + i % N]);
    }
    da = give(a, sizeof a), db = give(b, sizeof b), dc = buffer(sizeof c);
    CHECK_INT(run("matmul", entry, grid, params), 0);
    take(c, dc, sizeof c);
    cu.cuMemFree_v2(da), cu.cuMemFree_v2(db);
    for (int i = 0; i < M * N; i++) {
        if (fabs((double)c[i] - want[i]) < 1e-3) continue;
        CHECK(false, "[%d][%d]: want %g got %g", i / N, i % N, want[i], (double)c[i]);
        break;
    }
}

/* ---- asynchrony ---- */

static void test_copies(struct rng *r)
{
    enum { TILES = 7, SIZE = 64, DATA = 2048 };
    float *in = random_floats(r, TILES * 128), out[128];
    double want[128] = {0};
    int ints[DATA], got[DATA], expect[DATA], n = TILES;
    hewn_cu_deviceptr a, b;
    void *params[] = {&a, &b, &n}, *bulk[] = {&a, &n};

    for (int i = 0; i < DATA; i++) ints[i] = (int)rng_below(r, 100000);
    if (test_case("cuda::barrier: producers and consumers")) {
        for (int t = 0; t < TILES; t++)
            for (int i = 0; i < 128; i++) want[i] += (double)in[t * 128 + 127 - i];
        a = give(in, TILES * 512), b = buffer(sizeof out);
        CHECK_INT(run("async", "barriers", (struct grid){.blocks_x = 1, .threads_x = 256}, params),
                  0);
        take(out, b, sizeof out);
        cu.cuMemFree_v2(a);
        close_floats(out, want, 128, 1e-4);
    }
    if (test_case("cuda::pipeline and memcpy_async")) {
        for (int i = 0; i < SIZE; i++) {
            expect[i] = 0;
            for (int t = 0; t < TILES; t++) expect[i] += ints[t * SIZE + (i + t) % SIZE];
        }
        a = give(ints, sizeof ints), b = buffer(SIZE * 4);
        CHECK_INT(run("async", "pipeline", (struct grid){.blocks_x = 1, .threads_x = SIZE}, params),
                  0);
        take(got, b, SIZE * 4);
        cu.cuMemFree_v2(a);
        same_ints(got, expect, SIZE);
    }
    if (test_case("memcpy_async of a group, dynamic shared memory")) {
        n = 777;
        for (int i = 0; i < n; i++) expect[i] = ints[n - 1 - i];
        a = give(ints, sizeof ints), b = buffer(777 * 4);
        CHECK_INT(run("async", "group_copy",
                      (struct grid){.blocks_x = 1, .threads_x = 96, .shared = 777 * 4}, params),
                  0);
        take(got, b, 777 * 4);
        cu.cuMemFree_v2(a);
        same_ints(got, expect, n);
    }
    if (test_case("bulk copies in and out")) {
        n = 11;
        for (int i = 0; i < DATA; i++) expect[i] = ints[i] + n;
        a = give(ints, sizeof ints);
        CHECK_INT(run("async", "bulk", (struct grid){.blocks_x = 2, .threads_x = 128}, bulk), 0);
        take(got, a, sizeof got);
        same_ints(got, expect, DATA);
    }
    free(in);
}

enum { MAP_ROWS = 48, MAP_COLS = 64 };

static bool encode(hewn_cu_tensor_map *map, hewn_cu_deviceptr at)
{
    const uint64_t dims[] = {MAP_COLS, MAP_ROWS}, strides[] = {MAP_COLS * 4};
    const uint32_t box[] = {32, 16}, steps[] = {1, 1};
    enum { TENSOR_INT32 = 3 };
    int rc = cu.cuTensorMapEncodeTiled(map, TENSOR_INT32, 2, (void *)(uintptr_t)at, dims, strides,
                                       box, steps, 0, 0, 0, 0);

    CHECK_INT(rc, 0);
    return rc == 0;
}

static void test_map(const char *entry)
{
    static int data[MAP_ROWS * MAP_COLS], want[MAP_ROWS * MAP_COLS];
    static _Alignas(64) hewn_cu_tensor_map map;
    hewn_cu_deviceptr a, there = 0;
    void *by_value[] = {&map}, *by_pointer[] = {&there};
    hewn_cu_module m;
    size_t bytes = 0;

    if (!test_case("tensor map: %s", entry)) return;
    for (int i = 0; i < MAP_ROWS * MAP_COLS; i++) {
        data[i] = i;
        want[i] = i + i % MAP_COLS / 32 * 32 + 1000 * (i / MAP_COLS / 16 * 16);
    }
    a = give(data, sizeof data);
    m = compiled("async");
    if (!m || !encode(&map, a)) return;
    if (!strcmp(entry, "tma_const")) {
        CHECK_INT(cu.cuModuleGetGlobal_v2(&there, &bytes, m, "fixed_map"), 0);
        CHECK_INT(bytes, sizeof map);
        CHECK_INT(cu.cuMemcpyHtoD_v2(there, &map, sizeof map), 0);
    } else if (!strcmp(entry, "tma_global")) {
        there = give(&map, sizeof map);
    }
    CHECK_INT(run("async", entry, (struct grid){.blocks_x = 2, .blocks_y = 3, .threads_x = 512},
                  !strcmp(entry, "tma_global") ? by_pointer : by_value),
              0);
    take(data, a, sizeof data);
    same_ints(data, want, MAP_ROWS * MAP_COLS);
}

/* ---- what nvcc does not write ---- */

static void test_registers(void)
{
    static const char ptx[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        /* (a b + 1, a > b), arguments and results in registers; calls itself until b is 0 */
        ".func (.reg .b32 product, .reg .pred more) times (.reg .b32 a, .reg .b32 b)\n{\n"
        "  .reg .b32 c; .reg .pred p;\n  setp.gt.s32 more, a, b; mov.u32 product, 1;\n"
        "  setp.eq.s32 p, b, 0; @p ret;\n  sub.s32 c, b, 1;\n"
        "  call (product, p), times, (a, c);\n  add.s32 product, product, a;\n}\n"
        ".visible .entry k(.param .u64 out)\n{\n"
        "  .reg .b32 %r<5>; .reg .b64 %rd<3>; .reg .pred p;\n  mov.u32 %r0, %tid.x;\n"
        "  and.b32 %r1, %r0, 3; call (%r2, p), times, (%r0, %r1);\n"
        "  selp.b32 %r3, 1000, 0, p; add.s32 %r2, %r2, %r3;\n"
        "  ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd2, %rd0, %rd1;\n"
        "  st.global.u32 [%rd2], %r2; ret;\n}\n";
    int got[LANES], want[LANES];
    hewn_cu_deviceptr out;
    hewn_cu_module m;
    void *params[] = {&out};

    if (!test_case("parameters in registers, predicates among them")) return;
    if (!simulated) {
        test_skip("ptxas refuses recursion with several results in registers");
        return;
    }
    for (int i = 0; i < LANES; i++) want[i] = i * (i & 3) + 1 + (i > (i & 3) ? 1000 : 0);
    m = load(ptx);
    if (!m) return;
    out = buffer(sizeof got);
    CHECK_INT(cu.cuLaunchKernel(function(m, "k"), 1, 1, 1, LANES, 1, 1, 0, NULL, params, NULL), 0);
    take(got, out, sizeof got);
    same_ints(got, want, LANES);
    CHECK_INT(cu.cuModuleUnload(m), 0);
}

static void test_vectors(void)
{
    static const char ptx[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        /* (y, x - y) */
        ".func (.reg .v2 .b32 to) turned (.reg .v2 .b32 from)\n{\n"
        "  mov.b32 to.x, from.y; sub.s32 to.y, from.x, from.y; ret;\n}\n"
        ".visible .entry k(.param .u64 out)\n{\n"
        "  .reg .v2 .b32 v<3>; .reg .b32 i; .reg .b64 a;\n  mov.u32 i, %tid.x;\n"
        "  mov.v2.b32 v1, {i, 100}; call (v2), turned, (v1); call (v2), turned, (v2);\n"
        "  ld.param.u64 a, [out]; mad.wide.u32 a, i, 8, a;\n"
        "  st.global.v2.b32 [a], v2; ret;\n}\n";
    int got[2 * LANES], want[2 * LANES];
    hewn_cu_deviceptr out;
    hewn_cu_module m;
    void *params[] = {&out};

    if (!test_case("parameters in vectors of registers")) return;
    for (int i = 0; i < LANES; i++) {
        want[2 * i] = i - 100;
        want[2 * i + 1] = 200 - i;
    }
    m = load(ptx);
    if (!m) return;
    out = buffer(sizeof got);
    CHECK_INT(cu.cuLaunchKernel(function(m, "k"), 1, 1, 1, LANES, 1, 1, 0, NULL, params, NULL), 0);
    take(got, out, sizeof got);
    same_ints(got, want, 2 * LANES);
    CHECK_INT(cu.cuModuleUnload(m), 0);
}

/* ---- fat binaries ---- */

static void test_fat(void)
{
    struct {
        uint32_t magic;
        uint16_t version, bytes;
        uint64_t size;
        uint16_t kind, entry_version;
        uint32_t header_bytes;
        uint64_t text_bytes;
        uint32_t compressed, unused;
        uint16_t minor, major;
        uint32_t arch, name, name_bytes;
        uint64_t flags, zero, plain_bytes;
        char text[sizeof text];
    } fat = {.magic = 0xBA55ED50,
             .version = 1,
             .bytes = 16,
             .kind = 1,
             .entry_version = 0x101,
             .header_bytes = 64 + 8,
             .major = 8,
             .arch = 90};
    struct {
        uint32_t magic, version;
        const void *data;
        void *unused;
    } wrapper = {0x466243B1, 1, &fat, NULL};
    hewn_cu_module m = NULL;

    if (!simulated || !test_case("a fat binary with PTX, plain, damaged and absent")) return;
    memcpy(fat.text, text, sizeof text);
    fat.header_bytes = (uint32_t)((char *)fat.text - (char *)&fat.kind);
    fat.text_bytes = sizeof text;
    fat.size = fat.header_bytes + fat.text_bytes;
    CHECK_INT(cu.cuModuleLoadData(&m, &wrapper), 0);
    if (m) CHECK_INT(cu.cuModuleUnload(m), 0);
    CHECK_INT(cu.cuModuleLoadData(&m, &fat), 0);
    if (m) CHECK_INT(cu.cuModuleUnload(m), 0);
    fat.flags = 0x2000; /* not LZ4 at all */
    CHECK_INT(cu.cuModuleLoadData(&m, &wrapper), HEWN_CU_INVALID_IMAGE);
    fat.flags = 0;
    fat.kind = 2;
    CHECK_INT(cu.cuModuleLoadData(&m, &wrapper), HEWN_CU_NO_BINARY_FOR_GPU);
}

int main(int argc, char **argv)
{
    const char *path = getenv("HEWN_LIBCUDA");
    struct rng r;
    char name[96] = "";

    folder = getenv("HEWN_TEST_CUDA");
    if (!folder) folder = "tests/driver/nvcc";
    test_begin("compiled", argc, argv);
    if (!load_library(path && *path ? path : "libcuda.so.1")) {
        if (test_case("a driver library")) test_skip("%s", dlerror());
        return test_end();
    }
    test_prints();
    if (!begin()) {
        if (test_case("a device")) test_skip("no context can be had");
        return test_end();
    }
    cu.cuDeviceGetName(name, sizeof name, 0);
    test_where("%s", name);
    r.state = test_seed();
    test_calls();
    test_reductions(&r);
    test_transpose(&r);
    test_histogram(&r);
    test_integers(&r);
    test_switch();
    test_rows(&r);
    test_functions(&r);
    test_product(&r, "wmma_f16", false,
                 (struct grid){.blocks_x = 2, .blocks_y = 3, .threads_x = 32});
    test_product(&r, "wmma_bf16", true,
                 (struct grid){.blocks_x = 2, .blocks_y = 3, .threads_x = 32});
    test_product(&r, "mma_f16", false,
                 (struct grid){.blocks_x = 4, .blocks_y = 3, .threads_x = 32});
    test_product(&r, "tiled", false,
                 (struct grid){.blocks_x = 2, .blocks_y = 3, .threads_x = 16, .threads_y = 16});
    test_copies(&r);
    test_map("tma_param");
    test_map("tma_const");
    test_map("tma_global");
    test_registers();
    test_vectors();
    test_fat();
    cu.cuDevicePrimaryCtxRelease_v2(0);
    return test_end();
}
