/* The environment, read once by cuInit: every HEWN_SIM_ variable that the driver itself obeys. */
#include "cuda/driver.h"

#include "check/suppress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Persistent kernels should loop on a device of the default size, and a test should end soon. */
enum { DEFAULT_SMS = 4, MAX_SMS = 1024, MAX_HOST_THREADS = 256 };

/* An integer variable within [low, high]; absent or empty leaves *value alone. */
static bool read_number(const char *name, uint64_t low, uint64_t high, uint64_t *value)
{
    const char *text = getenv(name);
    char *end;
    unsigned long long n;

    if (!text || !*text) return true;
    errno = 0;
    n = strtoull(text, &end, 0);
    if (*end || errno || *text < '0' || *text > '9' || n < low || n > high) {
        fprintf(stderr, "hewn-sim: %s=%s is no whole number from %llu to %llu\n", name, text,
                (unsigned long long)low, (unsigned long long)high);
        return false;
    }
    *value = n;
    return true;
}

static bool read_gpu(struct gpu *out)
{
    const char *name = getenv("HEWN_SIM_GPU");
    const struct gpu *gpu = gpu_named(name && *name ? name : "b200");

    if (!gpu) {
        fprintf(stderr, "hewn-sim: HEWN_SIM_GPU=%s is none of the devices simulated: %s\n", name,
                gpu_names());
        return false;
    }
    *out = *gpu;
    return true;
}

/* Findings must not vanish because the file cannot be written: say so before anything runs. */
static bool check_report(void)
{
    const char *path = getenv("HEWN_SIM_REPORT");
    FILE *f;

    if (!path || !*path) return true;
    f = fopen(path, "a");
    if (!f) {
        fprintf(stderr, "hewn-sim: HEWN_SIM_REPORT=%s cannot be written: %s\n", path,
                strerror(errno));
        return false;
    }
    fclose(f);
    return true;
}

/* Nor must they count because a suppression was misspelt. */
static bool check_suppressions(void)
{
    struct suppress rules = {0};
    char why[320];

    if (!suppress_read(&rules, why, sizeof why)) {
        fprintf(stderr, "hewn-sim: HEWN_SIM_SUPPRESS: %s\n", why);
        return false;
    }
    suppress_free(&rules);
    return true;
}

/* A new file for this process: launches add to it. */
static bool start_trace(void)
{
    const char *path = getenv("HEWN_SIM_TRACE");
    FILE *f;

    if (!path || !*path) return true;
    f = fopen(path, "w");
    if (!f) {
        fprintf(stderr, "hewn-sim: HEWN_SIM_TRACE=%s cannot be written: %s\n", path,
                strerror(errno));
        return false;
    }
    fclose(f);
    return true;
}

bool settings_read(struct settings *out)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t sms = DEFAULT_SMS, check = 1, strict = 0, quiet = 0, seed = 1;
    uint64_t threads = cpus < 1 ? 1 : cpus > MAX_HOST_THREADS ? MAX_HOST_THREADS : (uint64_t)cpus;

    if (!read_gpu(&out->gpu) || !read_number("HEWN_SIM_SMS", 1, MAX_SMS, &sms) ||
        !read_number("HEWN_SIM_SEED", 0, UINT64_MAX, &seed) ||
        !read_number("HEWN_SIM_THREADS", 1, MAX_HOST_THREADS, &threads) ||
        !read_number("HEWN_SIM_CHECK", 0, 2, &check) ||
        !read_number("HEWN_SIM_STRICT", 0, 1, &strict) ||
        !read_number("HEWN_SIM_QUIET", 0, 1, &quiet) || !check_report() || !check_suppressions() ||
        !start_trace())
        return false;
    out->gpu.sm_count = (uint32_t)sms;
    out->seed = seed;
    out->host_threads = (uint32_t)threads;
    out->check_level = (int)check;
    out->strict = strict != 0;
    out->quiet = quiet != 0;
    return true;
}
