/*
 * Launches through the driver API: parameters, limits, clusters, and what comes of faults, of what is
 * not modelled, and of the simulator's settings. Faults run on the simulator only: they would poison
 * the process on a real device.
 */
#include "lib/driver_table.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- launches ---- */

static void test_launch_params(hewn_cu_function f)
{
    hewn_cu_deviceptr out;
    struct {
        hewn_cu_deviceptr out;
        unsigned value;
    } block = {0, 22};
    size_t size = sizeof block.out + sizeof block.value;
    unsigned value = 11;
    void *params[] = {&out, &value};
    void *extra[] = {HEWN_CU_PARAM_BUFFER_POINTER, &block, HEWN_CU_PARAM_BUFFER_SIZE, &size,
                     HEWN_CU_PARAM_END};

    if (!test_case("parameters by array and by buffer, never both")) return;
    out = block.out = buffer(1024);
    CHECK_INT(cu.cuLaunchKernel(f, 2, 1, 1, 128, 1, 1, 0, NULL, params, NULL), 0);
    CHECK_INT(count_wrong(out, 11, 256), 0);
    CHECK_INT(cu.cuLaunchKernel(f, 2, 1, 1, 128, 1, 1, 0, NULL, NULL, extra), 0);
    CHECK_INT(count_wrong(out, 22, 256), 0);
    CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, extra),
              HEWN_CU_INVALID_VALUE);
    size = sizeof block; /* more bytes than the kernel has parameters for */
    CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra),
              HEWN_CU_LAUNCH_OUT_OF_RESOURCES);
    if (simulated)
        CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL),
                  HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuMemFree_v2(out), 0);
}

static void test_legacy_launch(hewn_cu_function f)
{
    hewn_cu_deviceptr out;

    if (!test_case("launches as of CUDA 2: block and parameters set at the function")) return;
    out = buffer(1024);
    CHECK_INT(cu.cuFuncSetBlockShape(f, 0, 1, 1), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuFuncSetBlockShape(f, 64, 2, 1), 0);
    CHECK_INT(cu.cuFuncSetSharedSize(f, 16), 0);
    CHECK_INT(cu.cuParamSetv(f, 0, &out, sizeof out), 0);
    CHECK_INT(cu.cuParamSeti(f, sizeof out, 33), 0);
    CHECK_INT(cu.cuParamSetSize(f, sizeof out + 4), 0);
    if (simulated) { /* the driver 580 of a GPU writes to the offset -1 and crashes */
        CHECK_INT(cu.cuParamSetv(f, -1, &out, sizeof out), HEWN_CU_INVALID_VALUE);
        CHECK_INT(cu.cuParamSetv(f, 4090, &out, sizeof out), HEWN_CU_INVALID_VALUE);
        CHECK_INT(cu.cuLaunchGrid(f, 0, 1), HEWN_CU_INVALID_VALUE);
    }
    CHECK_INT(cu.cuLaunch(f), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(cu.cuParamSeti(f, sizeof out, 34), 0); /* the rest stays set */
    CHECK_INT(cu.cuLaunchGridAsync(f, 4, 1, NULL), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK(count_wrong(out, 34, 64) == 0, "the second launch did not take the new parameter");
    CHECK_INT(cu.cuMemFree_v2(out), 0);
}

static void test_launch_shapes(hewn_cu_function f)
{
    hewn_cu_deviceptr out;
    unsigned value = 1;
    void *params[] = {&out, &value};

    if (!test_case("launch shapes that the device refuses")) return;
    out = buffer(4096);
    CHECK_INT(fill_on(f, out, 1, 0, 32, NULL), HEWN_CU_INVALID_VALUE);
    CHECK_INT(fill_on(f, out, 1, 1, 0, NULL), HEWN_CU_INVALID_VALUE);
    CHECK_INT(fill_on(f, out, 1, 1, 1025, NULL), HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuLaunchKernel(f, 1, 70000, 1, 32, 1, 1, 0, NULL, params, NULL),
              HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, params, NULL),
              HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 64, 64, 1, 0, NULL, params, NULL),
              HEWN_CU_INVALID_VALUE);
    CHECK_INT(fill_on(NULL, out, 1, 1, 32, NULL), HEWN_CU_INVALID_HANDLE);
    CHECK_INT(cu.cuMemFree_v2(out), 0);
}

static void test_launch_limits(hewn_cu_module module)
{
    hewn_cu_function f = function(module, "bounded");
    char a = 0, c[12] = "";
    hewn_cu_deviceptr b = 0;
    void *params[] = {&a, &b, c};

    if (!test_case("launch bounds and shared memory")) return;
    CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 48 * 1024 - 256, NULL, params, NULL), 0);
    CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 60000, NULL, params, NULL),
              HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuFuncSetAttribute(f, HEWN_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000), 0);
    CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 60000, NULL, params, NULL), 0);
    CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 60001, NULL, params, NULL),
              HEWN_CU_INVALID_VALUE);
    if (simulated)
        CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 96, 1, 1, 0, NULL, params, NULL),
                  HEWN_CU_INVALID_VALUE);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
}

static int launch_cluster(hewn_cu_function f, hewn_cu_deviceptr out, unsigned grid,
                          unsigned cluster)
{
    unsigned value = 33;
    void *params[] = {&out, &value};
    hewn_cu_launch_attribute attributes[] = {
        {.id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION, .value.cluster = {cluster, 1, 1}},
        {.id = HEWN_CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, .value.flag = 1}};
    hewn_cu_launch_config config = {.grid_x = grid,
                                    .grid_y = 1,
                                    .grid_z = 1,
                                    .block_x = 32,
                                    .block_y = 1,
                                    .block_z = 1,
                                    .attributes = attributes,
                                    .attribute_count = 2};
    return cu.cuLaunchKernelEx(&config, f, params, NULL);
}

static void test_clusters(hewn_cu_function f)
{
    hewn_cu_deviceptr out;
    unsigned value = 44;
    void *params[] = {&out, &value};

    if (!test_case("clusters and cooperative launches")) return;
    out = buffer(65536 * 4);
    CHECK_INT(launch_cluster(f, out, 8, 4), 0);
    CHECK_INT(count_wrong(out, 33, 256), 0);
    CHECK_INT(launch_cluster(f, out, 32, 16), HEWN_CU_INVALID_CLUSTER_SIZE);
    if (simulated) {
        CHECK_INT(launch_cluster(f, out, 6, 4), HEWN_CU_INVALID_CLUSTER_SIZE);
        CHECK_INT(cu.cuFuncSetAttribute(f, HEWN_CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1), 0);
        CHECK_INT(launch_cluster(f, out, 32, 16), 0);
    }
    CHECK_INT(cu.cuLaunchCooperativeKernel(f, 4, 1, 1, 64, 1, 1, 0, NULL, params), 0);
    CHECK_INT(count_wrong(out, 44, 256), 0);
    CHECK_INT(cu.cuLaunchCooperativeKernel(f, 60000, 1, 1, 1024, 1, 1, 0, NULL, params),
              HEWN_CU_COOPERATIVE_LAUNCH_TOO_LARGE);
    CHECK_INT(cu.cuMemFree_v2(out), 0);
}

static void test_launches(void)
{
    hewn_cu_module module = load(text);
    hewn_cu_function f = function(module, "fill");

    test_launch_params(f);
    test_launch_shapes(f);
    test_legacy_launch(f);
    test_launch_limits(module);
    test_clusters(f);
    CHECK_INT(cu.cuModuleUnload(module), 0);
}

/* ---- faults, on the simulator: they poison a context ---- */

/* One entry k(out) with that body; the parameter is in %rd0. */
static const char *entry(const char *body)
{
    static char ptx[1024];
    snprintf(ptx, sizeof ptx,
             ".version 8.0\n.target sm_90\n.address_size 64\n"
             ".visible .entry k(.param .u64 out) {\n.reg .b32 %%r<9>; .reg .b64 %%rd<9>;\n"
             ".shared .align 8 .b64 never;\n.reg .pred %%p<3>;\n"
             "ld.param.u64 %%rd0, [out];\n%s\nret;\n}\n",
             body);
    return ptx;
}

static void test_fault(const char *what, const char *body, hewn_cu_deviceptr out, int want)
{
    hewn_cu_context context = NULL;
    hewn_cu_module module;
    hewn_cu_deviceptr address;
    hewn_cu_stream stream = NULL;
    void *params[] = {&out};

    if (!test_case("%s: %d, sticky", what, want)) return;
    if (!simulated) {
        test_skip("faults poison the process on a real device");
        return;
    }
    CHECK_INT(cu.cuCtxCreate_v2(&context, 0, 0), 0);
    module = load(entry(body));
    CHECK_INT(cu.cuStreamCreate(&stream, 0), 0);
    CHECK_INT(cu.cuLaunchKernel(function(module, "k"), 1, 1, 1, 32, 1, 1, 0, stream, params, NULL),
              0);
    CHECK_INT(cu.cuStreamSynchronize(stream), want);
    CHECK_INT(cu.cuMemAlloc_v2(&address, 64), want);
    CHECK_INT(cu.cuCtxSynchronize(), want);
    CHECK_INT(cu.cuCtxDestroy_v2(context), 0);
    CHECK_INT(cu.cuCtxSynchronize(), 0); /* the context below is sound */
}

static void test_faults(void)
{
    test_fault("illegal address", "mov.u32 %r0, 1; st.global.u32 [%rd0], %r0;", 0x10000,
               HEWN_CU_ILLEGAL_ADDRESS);
    test_fault("misaligned address", "ld.global.u32 %r0, [%rd0+2];", 0x10000,
               HEWN_CU_MISALIGNED_ADDRESS);
    test_fault("trap", "trap;", 0, HEWN_CU_LAUNCH_FAILED);
    test_fault("breakpoint", "brkpt;", 0, HEWN_CU_LAUNCH_FAILED);
    test_fault("wait for ever",
               "mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; mov.u32 %r1, never;\n"
               "@!%p0 mbarrier.init.shared.b64 [%r1], 1;\nbar.sync 0;\n"
               "again: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra again;",
               0, HEWN_CU_LAUNCH_TIMEOUT);
}

static void test_unmodelled(void)
{
    hewn_cu_module module;
    hewn_cu_function f;
    hewn_cu_deviceptr out = 0;
    void *params[] = {&out};

    if (!test_case("what is not modelled fails the launch with 801, and only it")) return;
    if (!simulated) {
        test_skip("a real device runs it");
        return;
    }
    module = load(entry("sured.b.add.1d.u32.trap [%rd0, {%r0}], %r0;"));
    f = function(module, "k");
    CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
              HEWN_CU_NOT_SUPPORTED);
    CHECK_INT(cu.cuCtxSynchronize(), 0);
    CHECK_INT(cu.cuModuleUnload(module), 0);
    CHECK_INT(cu.cuTexRefCreate(), HEWN_CU_NOT_SUPPORTED);
}

static void test_other_context(void)
{
    hewn_cu_context other = NULL;
    hewn_cu_module module;
    hewn_cu_function f;
    hewn_cu_deviceptr out = 0;
    void *params[] = {&out};

    if (!test_case("a kernel does not run under another context than its module's")) return;
    if (!simulated) {
        test_skip("the result a GPU gives is not recorded");
        return;
    }
    module = load(entry("add.u32 %r0, %r1, %r2;"));
    f = function(module, "k");
    CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), 0);
    CHECK_INT(cu.cuCtxCreate_v2(&other, 0, 0), 0);
    CHECK_INT(cu.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
              HEWN_CU_INVALID_HANDLE);
    CHECK_INT(cu.cuCtxDestroy_v2(other), 0);
    CHECK_INT(cu.cuCtxSetCurrent(primary), 0);
    CHECK_INT(cu.cuModuleUnload(module), 0);
}

/* ---- settings, each in a process of its own ---- */

/* Runs `body` in a child with the library freshly loaded; true when it returned true. The parent has
 * not called cuInit yet. */
static bool in_child(bool (*body)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) _exit(body() ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool bad_gpu(void)
{
    setenv("HEWN_SIM_GPU", "gtx9000", 1);
    if (cu.cuInit(0) != HEWN_CU_NO_DEVICE) return false;
    setenv("HEWN_SIM_GPU", "b300", 1);
    setenv("HEWN_SIM_SMS", "many", 1);
    if (cu.cuInit(0) != HEWN_CU_NO_DEVICE) return false;
    setenv("HEWN_SIM_SMS", "7", 1);
    return cu.cuInit(0) == 0;
}

static bool sms_and_gpu(void)
{
    int value = 0;

    setenv("HEWN_SIM_GPU", "b300", 1);
    setenv("HEWN_SIM_SMS", "7", 1);
    if (cu.cuInit(0)) return false;
    cu.cuDeviceGetAttribute(&value, HEWN_CU_ATTR_MULTIPROCESSOR_COUNT, 0);
    if (value != 7) return false;
    cu.cuDeviceGetAttribute(&value, HEWN_CU_ATTR_COMPUTE_CAPABILITY_MINOR, 0);
    return value == 3;
}

/* Loads `ptx`, makes the primary context current, and finds `name`; NULL when anything fails. */
static hewn_cu_function prepared(const char *ptx, const char *name)
{
    hewn_cu_module module = NULL;
    hewn_cu_function f = NULL;

    if (cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&primary, 0) || cu.cuCtxSetCurrent(primary) ||
        cu.cuModuleLoadData(&module, ptx) || cu.cuModuleGetFunction(&f, module, name))
        return NULL;
    return f;
}

/* An mbarrier initialised over a live one is an error that no hardware code stands for: the launch ends
 * well, and only HEWN_SIM_STRICT makes the next synchronising call fail, once. */
static int synchronise_after_clobber(void)
{
    hewn_cu_function f = prepared(entry("mov.u32 %r1, never; mov.u32 %r0, %tid.x;\n"
                                        "setp.ne.u32 %p0, %r0, 0; @%p0 ret;\n"
                                        "mbarrier.init.shared.b64 [%r1], 1;\n"
                                        "mbarrier.init.shared.b64 [%r1], 2;"),
                                  "k");
    hewn_cu_deviceptr out = 0;
    void *params[] = {&out};

    if (!f || cu.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL)) return -1;
    return cu.cuCtxSynchronize();
}

static bool strict(void)
{
    setenv("HEWN_SIM_STRICT", "1", 1);
    return synchronise_after_clobber() == HEWN_CU_LAUNCH_FAILED && cu.cuCtxSynchronize() == 0;
}

static bool lenient(void)
{
    setenv("HEWN_SIM_STRICT", "0", 1);
    return synchronise_after_clobber() == 0;
}

/* The report names what was asked for and what the limit is. */
static bool report_of_refusal(void)
{
    char path[] = "/tmp/hewn-report-XXXXXX", line[4096] = "";
    int fd = mkstemp(path);
    hewn_cu_function f;
    bool found = false, verdict = false;
    char a = 0, c[12] = "";
    hewn_cu_deviceptr b = 0;
    void *params[] = {&a, &b, c};
    FILE *report;

    if (fd < 0) return false;
    setenv("HEWN_SIM_REPORT", path, 1);
    f = prepared(text, "bounded");
    if (!f || cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 300000, NULL, params, NULL) !=
                  HEWN_CU_INVALID_VALUE)
        return false;
    report = fdopen(fd, "r");
    while (report && fgets(line, sizeof line, report)) {
        found |= strstr(line, "\"smem-limit\"") && strstr(line, "300000");
        verdict |= strstr(line, "\"verdict\":\"error\"") != NULL;
    }
    if (report) fclose(report);
    unlink(path);
    return found && verdict;
}

static bool primary_life(void)
{
    hewn_cu_context context = NULL;
    hewn_cu_deviceptr address = 0;
    unsigned flags = 0;
    int active = 1;

    if (cu.cuInit(0)) return false;
    if (cu.cuDevicePrimaryCtxRelease_v2(0) != HEWN_CU_INVALID_CONTEXT) return false;
    cu.cuDevicePrimaryCtxGetState(0, &flags, &active);
    if (active || cu.cuDevicePrimaryCtxRetain(&context, 0)) return false;
    if (cu.cuMemAlloc_v2(&address, 64) != HEWN_CU_INVALID_CONTEXT) return false; /* not pushed */
    if (cu.cuCtxSetCurrent(context) || cu.cuMemAlloc_v2(&address, 64)) return false;
    if (cu.cuDevicePrimaryCtxReset_v2(0) || cu.cuMemFree_v2(address) != HEWN_CU_INVALID_VALUE)
        return false; /* the reset freed it and kept the context */
    if (cu.cuDevicePrimaryCtxRelease_v2(0)) return false;
    return cu.cuMemAlloc_v2(&address, 64) == HEWN_CU_CONTEXT_IS_DESTROYED;
}

/* What an H200 answers, whose GPCs differ; of a part of it all SMs are one. */
static bool clusters_of_gpcs(void)
{
    static const struct {
        uint32_t size;
        int fit;
    } want[] = {{2, 66}, {4, 30}, {8, 15}, {16, 7}};
    hewn_cu_function f;
    bool right = true;
    setenv("HEWN_SIM_GPU", "h200", 1);
    setenv("HEWN_SIM_SMS", "132", 1);
    f = prepared(entry(".shared .b8 most[40000]; mov.u32 %r0, most;"), "k");
    if (!f || cu.cuFuncSetAttribute(f, HEWN_CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1) ||
        cu.cuFuncSetAttribute(f, HEWN_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 120000))
        return false;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        hewn_cu_launch_attribute a = {.id = HEWN_CU_LAUNCH_CLUSTER_DIMENSION,
                                      .value.cluster = {want[i].size, 1, 1}};
        hewn_cu_launch_config c = {want[i].size, 1, 1, 32, 1, 1, 120000, NULL, &a, 1};
        int fit = 0;
        right &= !cu.cuOccupancyMaxActiveClusters(&fit, f, &c) && fit == want[i].fit;
    }
    return right;
}

static void test_settings(void)
{
    static const struct {
        const char *name;
        bool (*body)(void);
    } children[] = {{"a device that does not exist fails cuInit", bad_gpu},
                    {"the environment chooses device and SMs", sms_and_gpu},
                    {"strict: an error finding fails the next synchronising call", strict},
                    {"not strict: it does not", lenient},
                    {"a refused launch is reported", report_of_refusal},
                    {"the primary context's life", primary_life},
                    {"a cluster lies in one GPC", clusters_of_gpcs}};

    for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
        if (!test_case("%s", children[i].name)) continue;
        if (simulated)
            CHECK(in_child(children[i].body), "the child process found otherwise");
        else
            test_skip("the simulator's own behaviour");
    }
}

int main(int argc, char **argv)
{
    const char *path = getenv("HEWN_LIBCUDA");
    char name[96] = "";

    test_begin("driver_launch", argc, argv);
    if (!load_library(path && *path ? path : "libcuda.so.1")) {
        if (test_case("a driver library")) test_skip("%s", dlerror());
        return test_end();
    }
    test_settings();
    if (cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&primary, 0) || cu.cuCtxSetCurrent(primary)) {
        if (test_case("a device")) test_skip("no context can be had");
        return test_end();
    }
    cu.cuDeviceGetName(name, sizeof name, 0);
    test_where("%s", name);
    test_launches();
    test_faults();
    test_unmodelled();
    test_other_context();
    cu.cuDevicePrimaryCtxRelease_v2(0);
    return test_end();
}
