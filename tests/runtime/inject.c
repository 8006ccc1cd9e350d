/*
 * Every driver call of the runtime made to fail in turn, every symbol taken away in turn, every
 * allocation refused in turn: each time a status and a sentence, nothing left retained, loaded, pushed
 * or allocated. On the fake driver, so it needs neither GPU nor simulator; leaks of host memory are the
 * address sanitiser's part.
 */
#include "lib/fake_driver.h"
#include "lib/harness.h"
#include "lib/plans.h"

#include "driver_abi.h"
#include "module.h"
#include "sha256.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- host memory that runs out: the runtime allocates by calloc alone -- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_CALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_CALLOC 0
#endif
#endif
#if !defined(OWN_CALLOC) && !defined(__GLIBC__)
#define OWN_CALLOC 0
#endif
#ifndef OWN_CALLOC
#define OWN_CALLOC 1
#endif

static _Thread_local long allocation, refused_allocation;

#if OWN_CALLOC
void *__libc_calloc(size_t count, size_t size);
__attribute__((visibility("default"))) void *calloc(size_t count, size_t size);

/* Stands before libc's for this whole program. */
void *calloc(size_t count, size_t size)
{
    if (refused_allocation && ++allocation == refused_allocation) return NULL;
    return __libc_calloc(count, size);
}
#endif

/* ---- modules -- */

/* The first module of the family that the fake device runs. */
static const hewn_module *shipped(void)
{
    const hewn_family *family = hewn_gemm_family();
    for (size_t i = 0; i < family->module_count; i++)
        if (hewn_target_runs_on(family->modules[i]->target, fake.cc_major, fake.cc_minor))
            return family->modules[i];
    return NULL;
}

/* An image as the build would embed it. */
static const struct hewn_image *image_of(const char *arch, const void *data, size_t size)
{
    static struct hewn_pack pack;
    static struct hewn_image image;
    static char sha256[HEWN_SHA256_HEX];
    hewn_sha256(data, size, sha256);
    pack = (struct hewn_pack){.data = data, .size = size, .holds = size, .stored = 1};
    image = (struct hewn_image){arch, &pack, 0, size, sha256};
    return &image;
}

/* A family of modules with small images: the shipped one takes a tenth of a second to unpack, and
 * the walks preload a family more than a hundred times. */
enum { FEW = 3 };
static const hewn_family *few_modules(void)
{
    static hewn_module copies[FEW];
    static const hewn_module *const modules[FEW] = {&copies[0], &copies[1], &copies[2]};
    static const unsigned short by_name[FEW] = {0, 1, 2};
    static const hewn_family few = {"few", modules, by_name, FEW};
    for (int i = 0; i < FEW; i++) {
        copies[i] = *shipped();
        copies[i].images = image_of("sm_90a", "cubin", 5);
        copies[i].image_count = 1;
    }
    return &few;
}

/* ---- the path through the library -- */

/* What one walk through the library holds, so that a failure half-way can let go of it. */
struct held {
    hewn_driver *driver;
    hewn_context *context, *attached;
    hewn_gemm_plan *plan, *shared, *sliced;
    hewn_attention_plan *attention;
};

static void release(struct held *h)
{
    fake.releasing = true;
    hewn_attention_plan_destroy(h->attention);
    hewn_gemm_plan_destroy(h->sliced);
    hewn_gemm_plan_destroy(h->shared);
    hewn_gemm_plan_destroy(h->plan);
    hewn_context_detach(h->attached);
    hewn_context_detach(h->context);
    hewn_driver_close(h->driver);
    fake.releasing = false;
}

static int open_all(struct held *h, hewn_error *err)
{
    hewn_device_info info = {.struct_size = sizeof info};
    int status = fake_open(&h->driver, err);
    if (!status) status = hewn_driver_describe_device(h->driver, 0, &info, err);
    if (!status) status = hewn_context_attach_primary(h->driver, 0, &h->context, err);
    if (!status) status = hewn_context_describe_device(h->context, &info, err);
    if (!status) status = hewn_context_attach(h->driver, &h->attached, err);
    return status;
}

static int plan_all(struct held *h, hewn_error *err)
{
    hewn_gemm_desc single = {.struct_size = sizeof single,
                             .m = 300,
                             .n = 520,
                             .k = 72,
                             .in = HEWN_BF16,
                             .out = HEWN_F32};
    hewn_gemm_desc batch = {.struct_size = sizeof batch,
                            .m = 64,
                            .n = 64,
                            .k = 64,
                            .in = HEWN_F16,
                            .out = HEWN_F16,
                            .batch = 3,
                            .stride_a = 4096,
                            .stride_d = 4096};
    hewn_gemm_desc slices = single;
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    slices.k = 256, slices.slices = 2;
    /* a family is preloaded, the plans' modules are loaded at plan time */
    int status = hewn_family_preload(h->context, few_modules(), err);
    if (!status) status = hewn_gemm_plan_create(h->context, &single, &h->plan, err);
    if (!status) status = hewn_gemm_plan_create(h->attached, &batch, &h->shared, err);
    if (!status) status = hewn_gemm_plan_create(h->context, &slices, &h->sliced, err);
    if (!status) status = hewn_gemm_plan_describe(h->sliced, &info, err);
    return status;
}

static int run_all(struct held *h, hewn_error *err)
{
    hewn_tensormap map;
    hewn_tensormap_desc tensor = {.struct_size = sizeof tensor,
                                  .address = 0x10000,
                                  .dtype = HEWN_TENSORMAP_F32,
                                  .rank = 2,
                                  .dim = {64, 64},
                                  .stride = {256},
                                  .box = {32, 8},
                                  .swizzle = HEWN_TENSORMAP_SWIZZLE_128B};
    hewn_launch_desc shape = {.struct_size = sizeof shape,
                              .grid = {8, 1, 1},
                              .block = {128, 1, 1},
                              .cluster = {2, 1, 1},
                              .dynamic_shared = 100000,
                              .programmatic = 1};
    hewn_function f = hewn_module_function(h->context, hewn_family_module(few_modules(), 0));
    int status = hewn_tensormap_encode(h->context, &tensor, "A", &map, err);
    if (!status) status = hewn_function_allow_shared(h->context, f, 100000, err);
    if (!status) status = hewn_function_launch(h->context, f, &shape, NULL, err);
    if (!status) status = plain_product(h->plan, 0x100000, 0x200000, 0x300000, NULL, err);
    const hewn_gemm_args args = {
        .struct_size = sizeof args, .a = 0x100000, .b = 0x200000, .d = 0x300000, .alpha = 1};
    if (!status) status = hewn_gemm_plan_run(h->shared, &args, NULL, err);
    hewn_gemm_args more = args;
    more.workspace = 0x10000000;
    if (!status) status = hewn_gemm_plan_run(h->sliced, &more, NULL, err);
    return status;
}

static int walk_gemm(hewn_error *err)
{
    struct held h = {0};
    int status = open_all(&h, err);
    if (!status) status = plan_all(&h, err);
    if (!status) status = run_all(&h, err);
    release(&h);
    return status;
}

/* Two modules loaded at plan time, two sources' maps encoded, two kernels launched. */
static int walk_attention(hewn_error *err)
{
    struct held h = {0};
    hewn_attention_desc desc = {.struct_size = sizeof desc,
                                .batch = 1,
                                .q_heads = 8,
                                .kv_heads = 2,
                                .qk_dim = 128,
                                .q_length = 5,
                                .in = HEWN_BF16,
                                .splits = 3,
                                .source = {SOURCE(.length = 1000), SOURCE(.length = 64)}};
    hewn_attention_args args = {.struct_size = sizeof args,
                                .q = 0x10000000,
                                .o = 0x20000000,
                                .workspace = 0x30000000,
                                .source = {SOURCE_ARGS(.k = 0x40000000, .v = 0x50000000),
                                           SOURCE_ARGS(.k = 0x60000000, .v = 0x70000000)}};
    hewn_attention_plan_info info = {.struct_size = sizeof info};
    int status = open_all(&h, err);
    if (!status) status = hewn_attention_plan_create(h.attached, &desc, &h.attention, err);
    if (!status) status = hewn_attention_plan_describe(h.attention, &info, err);
    if (!status) status = hewn_attention_plan_run(h.attention, &args, NULL, err);
    release(&h);
    return status;
}

static int walk_merge(hewn_error *err)
{
    struct held h = {0};
    hewn_merge_plan *plan = NULL;
    hewn_merge_desc desc = {
        .struct_size = sizeof desc, .batch = 1, .length = 3, .heads = 2, .dim = 64, .parts = 4};
    hewn_merge_args args = {
        .struct_size = sizeof args, .part_o = 0x10000000, .part_lse = 0x20000000, .o = 0x30000000};
    hewn_merge_plan_info info = {.struct_size = sizeof info};
    int status = open_all(&h, err);
    if (!status) status = hewn_merge_plan_create(h.attached, &desc, &plan, err);
    if (!status) status = hewn_merge_plan_describe(plan, &info, err);
    if (!status) status = hewn_merge_plan_run(plan, &args, NULL, err);
    hewn_merge_plan_destroy(plan);
    release(&h);
    return status;
}

static int walk_w4(hewn_error *err)
{
    struct held h = {0};
    hewn_w4_plan *plan = NULL;
    hewn_w4_desc desc = {.struct_size = sizeof desc,
                         .m = 5,
                         .n = 300,
                         .k = 1000,
                         .x_row = 1000,
                         .group = 128,
                         .in = HEWN_BF16,
                         .out = HEWN_BF16,
                         .parts = 2};
    hewn_w4_args args = {
        .struct_size = sizeof args, .x = 0x10000000, .w = 0x20000000, .d = 0x30000000};
    hewn_w4_plan_info info = {.struct_size = sizeof info};
    int status = open_all(&h, err);
    if (!status) status = hewn_w4_plan_create(h.attached, &desc, &plan, err);
    if (!status) status = hewn_w4_plan_describe(plan, &info, err);
    if (!status) status = hewn_w4_plan_run(plan, &args, NULL, err);
    hewn_w4_plan_destroy(plan);
    release(&h);
    return status;
}

/* A path through the library on a device that has its kernels. */
struct walk {
    const char *name;
    int (*go)(hewn_error *err);
    int cc_major, launches;
    bool plain; /* uses neither tensor maps nor dynamic shared memory */
};
static const struct walk gemm = {"gemm", walk_gemm, 9, 5, false};
static const struct walk attention = {"attention", walk_attention, 10, 2, false};
static const struct walk merge = {"merge", walk_merge, 9, 1, true};
static const struct walk w4 = {"w4", walk_w4, 9, 1, false};

static void reset_for(const struct walk *walk)
{
    fake_reset();
    fake.cc_major = walk->cc_major;
}

static void check_released(hewn_cu_context before)
{
    CHECK_INT(fake.retained, 0);
    CHECK_INT(fake.modules, 0);
    CHECK_INT(fake_stack_depth(), 0);
    CHECK(fake_current() == before, "the context that was current before is not restored");
}

static void check_error(int status, const hewn_error *err)
{
    CHECK(status < 0, "a status: %d", status);
    CHECK_INT(err->status, status);
    CHECK(strlen(err->message) > 10, "a sentence: '%s'", err->message);
}

/* ---- the cases -- */

static void healthy(const struct walk *walk)
{
    hewn_error err = {0};
    if (!test_case("%s: nothing fails", walk->name)) return;
    reset_for(walk);
    fake_set_current(fake_foreign_context());
    int status = walk->go(&err);
    CHECK(status == HEWN_OK, "%s: %s", hewn_status_name(status), err.message);
    CHECK_INT(fake.launches, walk->launches);
    check_released(fake_foreign_context());
}

/* What the runtime may leave unreported: it has done what was asked, or has nobody to tell. */
static bool may_pass(const char *name, bool releasing)
{
    static const char *const quiet[] = {"cuCtxPopCurrent", "cuGetErrorName", "cuGetErrorString"};
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++)
        if (strcmp(quiet[i], name) == 0) return true;
    return releasing;
}

static void each_call(const struct walk *walk, int code)
{
    for (long n = 1;; n++) {
        hewn_error err = {0};
        reset_for(walk);
        fake.fail_at = n;
        fake.fail_code = code;
        fake_set_current(fake_foreign_context());
        int status = walk->go(&err);
        if (fake.calls < n) return; /* that was beyond the last one */
        if (!test_case("%s: call %ld, %s, fails with %d", walk->name, n, fake.failed, code))
            continue;
        check_released(fake_foreign_context());
        if (status == HEWN_OK) {
            /* releasing calls come last, after everything that could have failed */
            CHECK(may_pass(fake.failed, fake.launches == walk->launches),
                  "%s failed and nobody says so", fake.failed);
            continue;
        }
        check_error(status, &err);
        CHECK_TEXT(err.message, fake.failed);
        CHECK_INT(err.driver_code, code);
        CHECK_INT(status, HEWN_ERR_DRIVER);
    }
}

/* With no context current to begin with, and a second failure in every clean-up. */
static void each_function(const struct walk *walk)
{
    static const char *const names[] = {"cuInit",
                                        "cuDriverGetVersion",
                                        "cuDeviceGetCount",
                                        "cuDeviceGet",
                                        "cuDeviceGetName",
                                        "cuDeviceTotalMem",
                                        "cuDeviceGetAttribute",
                                        "cuDevicePrimaryCtxRetain",
                                        "cuCtxGetCurrent",
                                        "cuCtxSetCurrent",
                                        "cuCtxPushCurrent",
                                        "cuCtxGetDevice",
                                        "cuModuleGetFunction",
                                        "cuFuncLoad",
                                        "cuLaunchKernelEx",
                                        "cuFuncGetAttribute",
                                        "cuFuncSetAttribute",
                                        "cuTensorMapEncodeTiled"};
    const size_t all = sizeof names / sizeof names[0], count = walk->plain ? all - 3 : all;
    for (size_t i = 0; i < count; i++) {
        hewn_error err = {0};
        if (!test_case("%s: %s never works", walk->name, names[i])) continue;
        reset_for(walk);
        fake.fail_name = names[i];
        fake.fail_code = HEWN_CU_LAUNCH_FAILED;
        check_error(walk->go(&err), &err);
        CHECK_TEXT(err.message, names[i]);
        CHECK_TEXT(err.message, "CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure");
        check_released(NULL);
    }
}

static void each_symbol(const struct walk *walk)
{
    reset_for(walk);
    hewn_driver *driver = NULL;
    hewn_error first = {0};
    int opened = fake_open(&driver, &first);
    hewn_driver_close(driver);
    struct fake_driver asked = fake;
    for (int i = 0; i < asked.symbol_count; i++) {
        const char *name = asked.symbols[i];
        if (!test_case("%s: the driver lacks %s", walk->name, name)) continue;
        CHECK_INT(opened, HEWN_OK);
        hewn_error err = {0};
        reset_for(walk);
        fake.absent = name;
        driver = NULL;
        int status = fake_open(&driver, &err);
        if (status) { /* a required one */
            check_error(status, &err);
            CHECK_INT(status, HEWN_ERR_SYMBOL);
            CHECK_TEXT(err.message, name);
            CHECK(driver == NULL, "a driver was returned all the same");
            continue;
        }
        bool marker =
            strcmp(name, "hewn_sim_version") == 0 || strcmp(name, "hewn_watch_version") == 0;
        CHECK_TEXT(hewn_driver_missing(driver), marker ? "" : name);
        hewn_driver_close(driver);
        status = walk->go(&err);
        if (status) { /* an optional one that this walk needs */
            check_error(status, &err);
            CHECK_INT(status, HEWN_ERR_SYMBOL);
            CHECK_TEXT(err.message, name);
        } else {
            CHECK_INT(fake.launches, walk->launches);
        }
        check_released(NULL);
    }
}

static void each_allocation(const struct walk *walk)
{
    if (!OWN_CALLOC) {
        if (test_case("allocations refused")) test_skip("allocation is the sanitiser's here");
        return;
    }
    for (long n = 1;; n++) {
        hewn_error err = {0};
        reset_for(walk);
        allocation = 0;
        refused_allocation = n;
        int status = walk->go(&err);
        refused_allocation = 0;
        if (allocation < n) return; /* that was beyond the last one */
        if (!test_case("%s: allocation %ld is refused", walk->name, n)) continue;
        check_released(NULL);
        check_error(status, &err);
        /* the fake driver's own allocations fail as a driver's would */
        CHECK(status == HEWN_ERR_MEMORY || err.driver_code == HEWN_CU_OUT_OF_MEMORY, "%s: %s",
              hewn_status_name(status), err.message);
        CHECK_TEXT(err.message, "out of ");
    }
}

static void without_error(const struct walk *walk)
{
    if (!test_case("%s: failures with no hewn_error to fill", walk->name)) return;
    for (long n = 1; n == 1 || fake.calls >= n - 1; n++) {
        reset_for(walk);
        fake.fail_at = n;
        walk->go(NULL);
        check_released(NULL);
    }
}

/* ---- fallbacks -- */

static void cubin_refused(int code, bool falls_back)
{
    hewn_error err = {0};
    struct held h = {0};
    if (!test_case("a cubin is refused with %d", code)) return;
    fake_reset();
    hewn_module module = *shipped();
    module.images = image_of("sm_90a", "cubin", 5);
    module.image_count = 1;
    const hewn_module *const modules[] = {&module};
    const unsigned short by_name[] = {0};
    const hewn_family family = {"family", modules, by_name, 1};
    CHECK_INT(open_all(&h, &err), HEWN_OK);
    fake.fail_name = code ? "cuModuleLoadData" : NULL;
    fake.fail_code = code;
    int status = hewn_family_preload(h.context, &family, &err);
    const char *origin = hewn_module_origin(h.context, &module);
    if (falls_back) {
        CHECK(status == HEWN_OK, "%s", err.message);
        CHECK_TEXT(origin, code ? "ptx" : "cubin sm_90a");
    } else {
        check_error(status, &err);
        CHECK_TEXT(err.message, "cubin sm_90a");
        CHECK(origin == NULL, "the module counts as loaded");
    }
    fake.fail_name = NULL;
    release(&h);
    check_released(NULL);
}

static void jit_log(void)
{
    hewn_error err = {0};
    struct held h = {0};
    if (!test_case("the JIT's log is in the message")) return;
    fake_reset();
    hewn_module module = *shipped();
    module.images = NULL;
    module.image_count = 0;
    const hewn_module *const modules[] = {&module};
    const unsigned short by_name[] = {0};
    const hewn_family family = {"family", modules, by_name, 1};
    CHECK_INT(open_all(&h, &err), HEWN_OK);
    fake.fail_name = "cuModuleLoadDataEx";
    fake.fail_code = HEWN_CU_INVALID_PTX;
    fake.jit_log = "ptxas application ptx input, line 7; error   :\n  Unknown symbol 'x'\n";
    CHECK_INT(hewn_family_preload(h.context, &family, &err), HEWN_ERR_DRIVER);
    CHECK_INT(err.driver_code, HEWN_CU_INVALID_PTX);
    CHECK_TEXT(err.message, module.name);
    CHECK_TEXT(err.message, "line 7; error : Unknown symbol 'x'");
    release(&h);
    check_released(NULL);
}

static void plain_launch(void)
{
    hewn_error err = {0};
    struct held h = {0};
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    if (!test_case("an old driver: plain launches work, a cluster is refused by name")) return;
    fake_reset();
    fake.absent = "cuLaunchKernelEx";
    CHECK_INT(open_all(&h, &err), HEWN_OK);
    CHECK_INT(plan_all(&h, &err), HEWN_OK);
    CHECK_INT(plain_product(h.plan, 0x100000, 0x200000, 0x300000, NULL, &err), HEWN_OK);
    CHECK_INT(fake.launches, 1);
    CHECK_INT(hewn_gemm_plan_describe(h.plan, &info, &err), HEWN_OK);
    CHECK_INT(info.cluster[0], 1);
    CHECK_INT(fake.grid[0], info.grid[0]);
    CHECK_INT(run_all(&h, &err), HEWN_ERR_SYMBOL);
    CHECK_TEXT(err.message, "cuLaunchKernelEx");
    release(&h);
    check_released(NULL);
}

static void detach_elsewhere(void)
{
    hewn_error err = {0};
    struct held h = {0};
    if (!test_case("detach leaves alone a context that the caller made current since")) return;
    fake_reset();
    CHECK_INT(open_all(&h, &err), HEWN_OK);
    CHECK_INT(plan_all(&h, &err), HEWN_OK);
    fake_set_current(fake_foreign_context());
    release(&h);
    check_released(fake_foreign_context());
}

/* ---- threads -- */

enum { THREADS = 4, ROUNDS = 50 };

struct planner {
    pthread_t thread;
    hewn_context *context;
    int bad; /* plans that failed */
};

static void *plan_in_thread(void *argument)
{
    struct planner *planner = argument;
    for (int i = 0; i < ROUNDS; i++) {
        hewn_gemm_desc desc = {.struct_size = sizeof desc,
                               .m = 128,
                               .n = 128,
                               .k = 64,
                               .in = i % 2 ? HEWN_F16 : HEWN_BF16,
                               .out = i % 3};
        hewn_gemm_plan *plan = NULL;
        if (hewn_gemm_plan_create(planner->context, &desc, &plan, NULL)) planner->bad++;
        hewn_gemm_plan_destroy(plan);
    }
    return NULL;
}

static void threads(void)
{
    hewn_error err = {0};
    struct held h = {0};
    struct planner planners[THREADS] = {{0}};
    int started = 0;
    if (!test_case("%d threads plan at once: each image is loaded once", THREADS)) return;
    fake_reset();
    CHECK_INT(open_all(&h, &err), HEWN_OK);
    for (; started < THREADS; started++) {
        struct planner *p = &planners[started];
        p->context = h.context;
        if (pthread_create(&p->thread, NULL, plan_in_thread, p)) break;
    }
    CHECK_INT(started, THREADS);
    for (int i = 0; i < started; i++) {
        pthread_join(planners[i].thread, NULL);
        CHECK(planners[i].bad == 0, "thread %d: %d plans failed", i, planners[i].bad);
    }
    CHECK_INT(fake.loads, 6);
    release(&h);
    check_released(NULL);
}

int main(int argc, char **argv)
{
    test_begin("inject", argc, argv);
    test_where("a driver made of functions");
    static const struct walk *const walks[] = {&gemm, &attention, &merge, &w4};
    for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
        healthy(walks[i]);
        each_call(walks[i], HEWN_CU_OUT_OF_MEMORY);
        each_call(walks[i], HEWN_CU_LAUNCH_FAILED);
        each_function(walks[i]);
        each_symbol(walks[i]);
        each_allocation(walks[i]);
        without_error(walks[i]);
    }
    cubin_refused(0, true);
    cubin_refused(HEWN_CU_INVALID_IMAGE, true);
    cubin_refused(HEWN_CU_NO_BINARY_FOR_GPU, true);
    cubin_refused(HEWN_CU_UNSUPPORTED_PTX_VERSION, true);
    cubin_refused(HEWN_CU_OUT_OF_MEMORY, false);
    jit_log();
    plain_launch();
    detach_elsewhere();
    threads();
    return test_end();
}
