/* The environment, read once by cuInit. settings.def lists the variables. */
#include "cuda/driver.h"

#include "check/suppress.h"
#include "explore/explore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* HEWN_SIM_REPLAY: "LAUNCH:SCHEDULE", or @FILE that holds it. */
static bool read_replay(struct settings *out)
{
    static char word[EXPLORE_SCHEDULE];
    const char *text = getenv("HEWN_SIM_REPLAY");
    char *colon, why[96] = "";
    FILE *f;

    if (!text || !*text) return true;
    f = *text == '@' ? fopen(text + 1, "r") : NULL;
    if (*text == '@') {
        word[f ? fread(word, 1, sizeof word - 1, f) : 0] = '\0';
        if (!f) snprintf(why, sizeof why, "%s", strerror(errno));
        if (f) fclose(f);
    } else
        snprintf(word, sizeof word, "%s", text);
    word[strcspn(word, " \t\r\n")] = '\0';
    errno = 0;
    out->replay_launch = strtoull(word, &colon, 10);
    if (!*why && (*colon != ':' || *word < '1' || *word > '9' || errno))
        snprintf(why, sizeof why, "the number of a launch and ':' come first");
    if (!*why && schedule_read(&out->replay, colon + 1, why, sizeof why)) return true;
    fprintf(stderr, "hewn-sim: HEWN_SIM_REPLAY: %s\n", why);
    return false;
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

/* The numbers of settings.def. */
struct numbers {
#define NUMBER(field, name, low, high, initial, meaning) uint64_t field;
#include "cuda/settings.def"
};

/* A value below `low` was not given: the host's cores, up to `high`. */
static uint64_t or_cores(uint64_t value, uint64_t low, uint64_t high)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (value >= low) return value;
    return cores < 1 ? low : (uint64_t)cores < high ? (uint64_t)cores : high;
}

static bool read_numbers(struct numbers *n)
{
#define NUMBER(field, name, low, high, initial, meaning)        \
    n->field = (initial);                                       \
    if (!read_number(name, low, high, &n->field)) return false; \
    n->field = or_cores(n->field, low, high);
#include "cuda/settings.def"
    return true;
}

bool settings_read(struct settings *out)
{
    struct numbers n;

    if (!read_gpu(&out->gpu) || !read_numbers(&n) || !check_report() || !check_suppressions() ||
        !read_replay(out) || !start_trace())
        return false;
    out->gpu.sm_count = (uint32_t)n.sms;
    out->seed = n.seed;
    out->host_threads = (uint32_t)n.threads;
    out->check_level = (int)n.check;
    out->repeat = (int)n.repeat;
    out->explore = n.explore;
    out->advise = n.advise;
    out->strict = n.strict != 0;
    out->quiet = n.quiet != 0;
    out->hang = n.hang != 0;
    return true;
}
