/*
 * What one process of the simulator's bench runs: one kernel, once to warm up and once timed, on the
 * simulator or on a peer that executes PTX on a CPU as well. Both get the same text, in the PTX of 2017
 * that old tools read: k(out, in, n) over 32-bit words, whose result a scalar reference checks.
 */
#include "bench.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- the kernels ---- */

#define HEAD                                                                           \
    ".version 6.0\n.target sm_70\n.address_size 64\n"                                  \
    ".visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n)\n{\n"           \
    " .reg .b32 %r<16>;\n .reg .f32 %f<8>;\n .reg .b64 %rd<10>;\n .reg .pred %p1;\n"   \
    " ld.param.u64 %rd1, [out];\n ld.param.u64 %rd2, [in];\n ld.param.u32 %r1, [n];\n" \
    " mov.u32 %r2, %tid.x;\n mov.u32 %r3, %ctaid.x;\n mov.u32 %r4, %ntid.x;\n"         \
    " mad.lo.u32 %r5, %r3, %r4, %r2;\n"                                                \
    " mul.wide.u32 %rd3, %r5, 4;\n add.u64 %rd1, %rd1, %rd3;\n"
#define TURN_ENDS " sub.u32 %r1, %r1, 1;\n setp.ne.u32 %p1, %r1, 0;\n @%p1 bra TURN;\n"

static const char integer_ptx[] = HEAD
    " mov.u32 %r6, 1;\n"
    "TURN:\n add.u32 %r6, %r6, %r5;\n xor.b32 %r6, %r6, 40503;\n mad.lo.u32 %r5, %r6, 5, %r5;\n"
    " shr.u32 %r7, %r6, 3;\n and.b32 %r7, %r7, 1023;\n add.u32 %r5, %r5, %r7;\n" TURN_ENDS
    " st.global.u32 [%rd1], %r5;\n ret;\n}\n";

/* Factors are powers of two, so that a fused and an unfused multiply-add round alike. */
static const char floating_ptx[] =
    HEAD " cvt.rn.f32.u32 %f2, %r5;\n mul.f32 %f2, %f2, 0f3A000000;\n"
         " mov.f32 %f0, 0f3F800000;\n mov.f32 %f1, 0f3F800000;\n"
         "TURN:\n fma.rn.f32 %f0, %f0, 0f3F000000, %f1;\n mul.f32 %f3, %f0, 0f3E000000;\n"
         " fma.rn.f32 %f1, %f1, 0f3E800000, %f3;\n add.f32 %f1, %f1, %f2;\n"
         " sub.f32 %f4, %f0, %f1;\n fma.rn.f32 %f0, %f4, 0f3D800000, %f0;\n" TURN_ENDS
         " st.global.f32 [%rd1], %f0;\n ret;\n}\n";

/* Thread (tx, ty) of tile (bx, by): one element of out = A * B, A and B behind one another in `in`. */
#define TERM(a, b)                                                             \
    " ld.shared.f32 %f3, [%r12+" #a "];\n ld.shared.f32 %f4, [%r13+" #b "];\n" \
    " fma.rn.f32 %f0, %f3, %f4, %f0;\n"
static const char product_ptx[] = HEAD
    " .shared .align 16 .b8 ta[1024];\n .shared .align 16 .b8 tb[1024];\n"
    " and.b32 %r6, %r2, 15;\n shr.u32 %r7, %r2, 4;\n shr.u32 %r8, %r1, 4;\n" /* tx ty tiles */
    " rem.u32 %r9, %r3, %r8;\n div.u32 %r10, %r3, %r8;\n"                    /* bx by */
    " mad.lo.u32 %r10, %r10, 16, %r7;\n mad.lo.u32 %r9, %r9, 16, %r6;\n"     /* row col */
    " ld.param.u64 %rd1, [out];\n mad.lo.u32 %r11, %r10, %r1, %r9;\n"
    " mul.wide.u32 %rd3, %r11, 4;\n add.u64 %rd1, %rd1, %rd3;\n"
    " mad.lo.u32 %r11, %r10, %r1, %r6;\n mul.wide.u32 %rd3, %r11, 4;\n add.u64 %rd4, %rd2, %rd3;\n"
    " mad.lo.u32 %r11, %r7, %r1, %r9;\n mad.lo.u32 %r11, %r1, %r1, %r11;\n"
    " mul.wide.u32 %rd3, %r11, 4;\n add.u64 %rd5, %rd2, %rd3;\n"
    " mov.u32 %r12, ta;\n mov.u32 %r13, tb;\n shl.b32 %r11, %r2, 2;\n"
    " add.u32 %r14, %r12, %r11;\n add.u32 %r15, %r13, %r11;\n"
    " mad.lo.u32 %r12, %r7, 64, %r12;\n mad.lo.u32 %r13, %r6, 4, %r13;\n"
    " mul.wide.u32 %rd6, %r1, 64;\n mov.f32 %f0, 0f00000000;\n mov.u32 %r1, %r8;\n"
    "TURN:\n ld.global.f32 %f1, [%rd4];\n ld.global.f32 %f2, [%rd5];\n"
    " st.shared.f32 [%r14], %f1;\n st.shared.f32 [%r15], %f2;\n bar.sync 0;\n" TERM(0, 0) TERM(
        4, 64) TERM(8, 128) TERM(12, 192) TERM(16, 256) TERM(20, 320) TERM(24,
                                                                           384) TERM(28,
                                                                                     448) TERM(32,
                                                                                               512)
        TERM(36, 576) TERM(40, 640) TERM(44, 704) TERM(48, 768) TERM(52, 832) TERM(56, 896) TERM(
            60,
            960) " bar.sync 0;\n add.u64 %rd4, %rd4, 64;\n add.u64 %rd5, %rd5, %rd6;\n" TURN_ENDS
                 " st.global.f32 [%rd1], %f0;\n ret;\n}\n";

static const char many_ptx[] =
    HEAD " .shared .align 4 .b8 words[512];\n"
         " mul.lo.u32 %r6, %r5, 3;\n mov.u32 %r7, words;\n shl.b32 %r8, %r2, 2;\n"
         " add.u32 %r9, %r7, %r8;\n st.shared.u32 [%r9], %r6;\n bar.sync 0;\n"
         " sub.u32 %r9, 508, %r8;\n add.u32 %r9, %r9, %r7;\n ld.shared.u32 %r10, [%r9];\n"
         " add.u32 %r10, %r10, %r5;\n st.global.u32 [%rd1], %r10;\n ret;\n}\n";

/* Turn t of n .. 1: a word of `in` to shared memory, the mirrored thread's word from there into a sum. */
static const char accesses_ptx[] = HEAD
    " .shared .align 4 .b8 words[1024];\n"
    " mov.u32 %r6, 0;\n mov.u32 %r7, words;\n shl.b32 %r8, %r2, 2;\n add.u32 %r9, %r7, %r8;\n"
    " sub.u32 %r10, 1020, %r8;\n add.u32 %r10, %r10, %r7;\n"
    "TURN:\n add.u32 %r11, %r5, %r1;\n and.b32 %r11, %r11, 4095;\n"
    " mul.wide.u32 %rd4, %r11, 4;\n add.u64 %rd4, %rd4, %rd2;\n ld.global.u32 %r12, [%rd4];\n"
    " st.shared.u32 [%r9], %r12;\n bar.sync 0;\n ld.shared.u32 %r13, [%r10];\n"
    " add.u32 %r6, %r6, %r13;\n st.global.u32 [%rd1], %r6;\n bar.sync 0;\n" TURN_ENDS " ret;\n}\n";
enum { ACCESSES_IN = 4096 };

/* ---- scalar references ---- */

static uint32_t want_integer(size_t i, unsigned n, const float *in)
{
    uint32_t a = (uint32_t)i, b = 1;
    (void)in;
    while (n--) {
        b = (b + a) ^ 40503U;
        a += b * 5U;
        a += b >> 3 & 1023U;
    }
    return a;
}

static uint32_t float_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static uint32_t want_floating(size_t i, unsigned n, const float *in)
{
    float a = 1, b = 1, c = (float)i / 2048;
    (void)in;
    while (n--) {
        a = a * 0.5F + b;
        b = b * 0.25F + a * 0.125F;
        b += c;
        a = (a - b) * 0.0625F + a;
    }
    return float_bits(a);
}

static uint32_t want_product(size_t i, unsigned n, const float *in)
{
    const float *a = in + i / n * n, *b = in + (size_t)n * n + i % n;
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += (double)a[k] * (double)b[k * n];
    return float_bits((float)sum);
}

static uint32_t want_many(size_t i, unsigned n, const float *in)
{
    size_t cta = i / 128, thread = i % 128;
    (void)n;
    (void)in;
    return (uint32_t)(3 * (cta * 128 + 127 - thread) + i);
}

static uint32_t want_accesses(size_t i, unsigned n, const float *in)
{
    size_t mirrored = i ^ (BENCH_THREADS - 1);
    uint32_t sum = 0;
    for (; n; n--) sum += float_bits(in[(mirrored + n) % ACCESSES_IN]);
    return sum;
}

struct kernel {
    const char *ptx;
    uint32_t (*want)(size_t i, unsigned n, const float *in);
    unsigned ctas, threads; /* ctas 0: as the size says */
};
static const struct kernel kernels[WORK_COUNT] = {
    [WORK_integer] = {integer_ptx, want_integer, 8, 256},
    [WORK_floating] = {floating_ptx, want_floating, 8, 256},
    [WORK_product] = {product_ptx, want_product, 0, 256},
    [WORK_many] = {many_ptx, want_many, 0, 128},
    [WORK_accesses] = {accesses_ptx, want_accesses, BENCH_CTAS, BENCH_THREADS},
};

/* ---- who executes them ---- */

struct engine {
    bool (*open)(struct engine *e, const char *ptx);
    bool (*alloc)(struct engine *e, uint64_t *address, size_t bytes);
    bool (*to_device)(struct engine *e, uint64_t address, const void *host, size_t bytes);
    bool (*launch)(struct engine *e, unsigned ctas, unsigned threads,
                   void **params); /* and waits */
    bool (*to_host)(struct engine *e, void *host, uint64_t address, size_t bytes);
    struct device dev;
    void *function;
    int (*cu_launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     void *, void **, void **);
    int (*rt_malloc)(void **, size_t);
    int (*rt_copy)(void *, const void *, size_t, int);
    int (*rt_wait)(void);
};

static bool sim_open(struct engine *e, const char *ptx)
{
    int (*load)(void **, const void *), (*find)(void **, void *, const char *);
    hewn_error err = {0};
    void *module = NULL;
    if (!device_open(&e->dev, &err)) return false;
    bench_resolve(e->dev.driver, "cuModuleLoadData", &load);
    bench_resolve(e->dev.driver, "cuModuleGetFunction", &find);
    bench_resolve(e->dev.driver, "cuLaunchKernel", &e->cu_launch);
    return load && find && e->cu_launch && !load(&module, ptx) && !find(&e->function, module, "k");
}

static bool sim_alloc(struct engine *e, uint64_t *address, size_t bytes)
{
    hewn_deviceptr p = 0;
    if (e->dev.mem_alloc(&p, bytes)) return false;
    *address = p;
    return true;
}

static bool sim_to_device(struct engine *e, uint64_t address, const void *host, size_t bytes)
{
    return !e->dev.to_device(address, host, bytes);
}

static bool sim_launch(struct engine *e, unsigned ctas, unsigned threads, void **params)
{
    return !e->cu_launch(e->function, ctas, 1, 1, threads, 1, 1, 0, NULL, params, NULL) &&
           !e->dev.synchronize();
}

static bool sim_to_host(struct engine *e, void *host, uint64_t address, size_t bytes)
{
    return !e->dev.to_host(host, address, bytes);
}

/*
 * GPGPU-Sim: a libcudart.so that takes PTX from a file by cuLinkAddFile (in the folder PTX_JIT_PATH,
 * which it appends to in place) and kernels by the runtime's registration call. It reads its
 * configuration from the working directory, where bench_sim.c has put one for functional simulation.
 */
static bool gpgpusim_open(struct engine *e, const char *ptx)
{
    static char folder[2 * PATH_MAX] = "PTX_JIT_PATH=.";
    static char key[] = "k";
    int (*link_file)(void *, int, const char *, unsigned, void *, void **);
    void (*enrol)(void **, const char *, char *, const char *, int, void *, void *, void *, void *,
                  int *);
    enum { INPUT_PTX = 1, FIRST_BINARY = 1 };
    const char *path = getenv("HEWN_BENCH_PEER");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    FILE *f = fopen("k.ptx", "w");
    if (!library) fprintf(stderr, "%s\n", dlerror());
    if (!library || !f || fputs(ptx, f) < 0 || fclose(f)) return false;
#define FIND(slot, name)                       \
    do {                                       \
        void *found = dlsym(library, name);    \
        memcpy(&(slot), &found, sizeof found); \
        if (!found) return false;              \
    } while (0)
    FIND(link_file, "cuLinkAddFile_v2");
    FIND(enrol, "__cudaRegisterFunction");
    FIND(e->rt_malloc, "cudaMalloc");
    FIND(e->rt_copy, "cudaMemcpy");
    FIND(e->rt_wait, "cudaDeviceSynchronize");
    FIND(e->cu_launch, "cuLaunchKernel");
#undef FIND
    putenv(folder);
    if (link_file(NULL, INPUT_PTX, "k.ptx", 0, NULL, NULL)) return false;
    enrol((void **)FIRST_BINARY, key, key, key, -1, NULL, NULL, NULL, NULL, NULL);
    e->function = key;
    return true;
}

static bool gpgpusim_alloc(struct engine *e, uint64_t *address, size_t bytes)
{
    void *p = NULL;
    if (e->rt_malloc(&p, bytes)) return false;
    *address = (uint64_t)(uintptr_t)p;
    return true;
}

static bool gpgpusim_to_device(struct engine *e, uint64_t address, const void *host, size_t bytes)
{
    return !e->rt_copy((void *)(uintptr_t)address, host, bytes, 1);
}

static bool gpgpusim_launch(struct engine *e, unsigned ctas, unsigned threads, void **params)
{
    return !e->cu_launch(e->function, ctas, 1, 1, threads, 1, 1, 0, NULL, params, NULL) &&
           !e->rt_wait();
}

static bool gpgpusim_to_host(struct engine *e, void *host, uint64_t address, size_t bytes)
{
    return !e->rt_copy(host, (void *)(uintptr_t)address, bytes, 2);
}

static const struct engine simulator = {
    sim_open, sim_alloc, sim_to_device, sim_launch, sim_to_host, {0}, NULL, NULL, NULL, NULL, NULL};
static const struct engine peers[PEER_COUNT] = {[PEER_GPGPUSIM] = {gpgpusim_open,
                                                                   gpgpusim_alloc,
                                                                   gpgpusim_to_device,
                                                                   gpgpusim_launch,
                                                                   gpgpusim_to_host,
                                                                   {0},
                                                                   NULL,
                                                                   NULL,
                                                                   NULL,
                                                                   NULL,
                                                                   NULL}};

/* ---- one sample ---- */

struct sample {
    double wall, cpu;
    double own;    /* CPU seconds of the launching thread, of those in `cpu` */
    double waited; /* of `wall`, while the launching thread could run and had no core */
    size_t wrong;
};

static double cpu_seconds(int whose)
{
    struct rusage u;
    getrusage(whose, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Seconds that this thread was ready to run and waited for a core; 0 where the kernel does not say. */
static double waited_seconds(void)
{
    FILE *f = fopen("/proc/thread-self/schedstat", "r");
    unsigned long long ran, waited = 0;
    if (f && fscanf(f, "%llu %llu", &ran, &waited) != 2) waited = 0;
    if (f) fclose(f);
    return 1e-9 * (double)waited;
}

static void sample_begin(struct sample *s)
{
    s->waited = -waited_seconds();
    s->cpu = -cpu_seconds(RUSAGE_SELF);
    s->own = -cpu_seconds(RUSAGE_THREAD);
    s->wall = -bench_now();
}

static void sample_end(struct sample *s)
{
    s->wall += bench_now();
    s->own += cpu_seconds(RUSAGE_THREAD);
    s->cpu += cpu_seconds(RUSAGE_SELF);
    s->waited += waited_seconds();
}

/* Multiples of 1/8 in [-1, 1): every sum of their products is exact in any order. */
static float *inputs(size_t count)
{
    struct rng r = {test_seed()};
    float *in = malloc(count * sizeof *in);
    for (size_t i = 0; in && i < count; i++) in[i] = ((float)rng_below(&r, 16) - 8) / 8;
    return in;
}

static size_t count_wrong(const struct kernel *k, const uint32_t *got, size_t words, unsigned n,
                          const float *in)
{
    size_t wrong = 0, step = 1 + words / 257;
    for (size_t i = 0; i < words; i += step) wrong += got[i] != k->want(i, n, in);
    return wrong;
}

static bool run_kernel(int index, unsigned n, struct engine *e, struct sample *s)
{
    const struct kernel *k = &kernels[index];
    unsigned ctas = k->ctas ? k->ctas : index == WORK_many ? n : n / 16 * (n / 16);
    size_t words = (size_t)ctas * k->threads;
    size_t in_words = index == WORK_product    ? 2 * (size_t)n * n
                      : index == WORK_accesses ? (size_t)ACCESSES_IN
                                               : 1;
    float *in = inputs(in_words);
    uint32_t *got = malloc(words * sizeof *got);
    uint64_t out_at = 0, in_at = 0;
    void *params[] = {&out_at, &in_at, &n};
    bool ok = in && got && e->open(e, k->ptx) && e->alloc(e, &out_at, words * sizeof *got) &&
              e->alloc(e, &in_at, in_words * sizeof *in) &&
              e->to_device(e, in_at, in, in_words * sizeof *in) &&
              e->launch(e, ctas, k->threads, params);
    if (ok) {
        sample_begin(s);
        ok = e->launch(e, ctas, k->threads, params);
        sample_end(s);
        ok = ok && e->to_host(e, got, out_at, words * sizeof *got);
    }
    if (ok) s->wrong = count_wrong(k, got, words, n, in);
    free(in);
    free(got);
    return ok;
}

/* hewn_gemm; its results are what tests/gemm/gemm.c is for. */
static bool run_gemm(unsigned n, struct sample *s)
{
    struct problem p = {.m = n, .n = n, .k = n, .in = HEWN_BF16};
    struct rng r = {test_seed()};
    struct device dev;
    hewn_error err = {0};
    bool ok;
    if (!device_open(&dev, &err)) return false;
    dev.info.l2_bytes = 0;
    ok = problem_open(&dev, &p, &r) && !problem_launch(&p, 0) && !dev.synchronize();
    if (ok) {
        sample_begin(s);
        ok = !problem_launch(&p, 0) && !dev.synchronize();
        sample_end(s);
    }
    problem_close(&dev, &p);
    device_close(&dev);
    return ok;
}

int bench_work(int index, unsigned size, int peer, int out)
{
    struct engine engine = peer < 0 ? simulator : peers[peer];
    struct sample s = {0};
    char line[128];
    int length, kept = dup(out), nowhere = open("/dev/null", O_WRONLY);
    /* Peers print as they go. */
    if (kept < 0 || nowhere < 0 || dup2(nowhere, out) < 0) return 1;
    if (kernels[index].ptx ? !run_kernel(index, size, &engine, &s) : !run_gemm(size, &s)) return 1;
    length = snprintf(line, sizeof line, "%.9f %.9f %.9f %.9f %zu\n", s.wall, s.cpu, s.own,
                      s.waited, s.wrong);
    return write(kept, line, (size_t)length) == length ? 0 : 1;
}
