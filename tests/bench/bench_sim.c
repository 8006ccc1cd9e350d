/*
 * The simulator's own speed, checks off: every work of BENCH_WORKS on one host thread and on two, the
 * samples alternating, one fresh process each; then what the checks cost; then the works that a peer can
 * run, beside that peer. Memory is the largest resident set of a sample's process, less that of one that
 * runs one small CTA.
 *
 * Peer: GPGPU-Sim in its functional mode, which interprets PTX instruction by instruction as we do.
 * HEWN_BENCH_GPGPUSIM, else GPGPUSIM_ROOT, names its tree, built (tests/BENCH.md).
 */
#include "bench.h"

#include <glob.h>
#include <math.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLES = 5, NO_PEER = -1 };

static const struct {
    const char *name, *gpu, *what;
    double lanes;
    unsigned size, peer_size;
} works[] = {
#define X(name, gpu, lanes, size, peer_size, what) {#name, gpu, what, lanes, size, peer_size},
    BENCH_WORKS(X)
#undef X
};

struct samples {
    /* busiest: that thread's cpu; ran: wall without what the launching thread waited for a core */
    double wall[SAMPLES], cpu[SAMPLES], busiest[SAMPLES], ran[SAMPLES], mebibytes;
    int count;
    size_t wrong;
};

/* Where a peer runs: its library, and a folder with what it reads. */
struct peer {
    char library[PATH_MAX], folder[64];
};

/* ---- one sample ---- */

static const char *check_level = "0"; /* HEWN_SIM_CHECK of the samples to come */

static void child(int index, unsigned size, int threads, const struct peer *peer, int out)
{
    char text[4][16], *argv[] = {"bench", "--work", text[0], text[1], text[2], NULL};
    snprintf(text[0], sizeof text[0], "%d", index);
    snprintf(text[1], sizeof text[1], "%u", size);
    snprintf(text[2], sizeof text[2], "%d", peer ? PEER_GPGPUSIM : NO_PEER);
    snprintf(text[3], sizeof text[3], "%d", threads);
    setenv("HEWN_SIM_THREADS", text[3], 1);
    setenv("HEWN_SIM_CHECK", check_level, 1);
    setenv("HEWN_SIM_QUIET", "1", 1);
    if (*works[index].gpu) setenv("HEWN_SIM_GPU", works[index].gpu, 1);
    if (peer) setenv("HEWN_BENCH_PEER", peer->library, 1);
    if (dup2(out, STDOUT_FILENO) < 0 || (peer && chdir(peer->folder))) _exit(127);
    execv("/proc/self/exe", argv);
    _exit(127);
}

/* Adds one sample; false when the process did not come to a result. */
static bool sample(int index, unsigned size, int threads, const struct peer *peer,
                   struct samples *s)
{
    struct rusage usage;
    int ends[2], status = -1;
    char line[128] = "";
    size_t wrong = 0;
    double own = 0, waited = 0, *cpu = &s->cpu[s->count];
    pid_t pid;
    FILE *from;
    bool ok;
    if (pipe(ends)) return false;
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(index, size, threads, peer, ends[1]);
    }
    close(ends[1]);
    from = fdopen(ends[0], "r");
    ok = pid > 0 && from && fgets(line, sizeof line, from) &&
         sscanf(line, "%lf %lf %lf %lf %zu", &s->wall[s->count], cpu, &own, &waited, &wrong) == 5;
    if (from) fclose(from);
    if (pid > 0) ok = wait4(pid, &status, 0, &usage) == pid && ok && status == 0;
    if (!ok) return false;
    s->busiest[s->count] = fmax(own, *cpu - own);
    s->ran[s->count] = s->wall[s->count] - waited;
    s->wrong += wrong;
    s->mebibytes = fmax(s->mebibytes, (double)usage.ru_maxrss / 1024);
    s->count++;
    return true;
}

static void progress(const char *name, int round, int threads)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K… %s, sample %d of %d, %s", name, round + 1, SAMPLES,
                threads == 0   ? "peer"
                : threads == 1 ? "1 thread"
                               : "2 threads");
}

static void progress_ends(void)
{
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

/* ---- the simulator alone ---- */

static bool own_row(int index, double base)
{
    struct samples s[2] = {{.count = 0}, {.count = 0}};
    double wall[2], cpu[2];
    for (int round = 0; round < SAMPLES; round++) {
        for (int threads = 1; threads <= 2; threads++) {
            progress(works[index].name, round, threads);
            if (!sample(index, works[index].size, threads, NULL, &s[threads - 1])) {
                progress_ends();
                printf("%-9s  no result\n", works[index].name);
                return false;
            }
        }
    }
    progress_ends();
    for (int i = 0; i < 2; i++) {
        wall[i] = bench_median(s[i].wall, SAMPLES);
        cpu[i] = bench_median(s[i].cpu, SAMPLES);
    }
    printf("%-9s %6u  %8.3f %8.3f  %8.3f %8.3f  %5.2f %5.2f %5.2f  %7.1f", works[index].name,
           works[index].size, wall[0], cpu[0], wall[1], cpu[1], wall[0] / wall[1],
           bench_median(s[0].ran, SAMPLES) / bench_median(s[1].ran, SAMPLES),
           cpu[0] / bench_median(s[1].busiest, SAMPLES),
           fmax(s[0].mebibytes, s[1].mebibytes) - base);
    if (works[index].lanes > 0)
        printf("  %.0f M lane-instructions/s a core",
               1e-6 * works[index].lanes * works[index].size / cpu[0]);
    printf("%s\n", s[0].wrong + s[1].wrong ? "  WRONG RESULTS" : "");
    return s[0].wrong + s[1].wrong == 0;
}

/* Resident set of a process that runs next to nothing. */
static double base_memory(void)
{
    struct samples s = {.count = 0};
    return sample(WORK_many, 1, 1, NULL, &s) ? s.mebibytes : 0;
}

static bool own_table(void)
{
    double base = base_memory(), load[1] = {0};
    bool good = true;
    printf(
        "simulator, checks off, medians of %d; seconds of wall clock and of all threads' CPU time\n"
        "1 to 2: by wall clock; without what the launching thread waited for a core, which an idle "
        "machine\n  reaches at least; by CPU time of one thread and of the busier of two\n"
        "MiB: peak resident, less the %.1f of a process that runs one CTA\n",
        SAMPLES, base);
    printf("%-9s %6s  %17s  %17s  %17s  %7s\n%-9s %6s  %8s %8s  %8s %8s  %5s %5s %5s\n", "", "",
           "1 thread", "2 threads", "1 to 2", "MiB", "work", "size", "wall", "cpu", "wall", "cpu",
           "wall", "ran", "cpu");
    for (int i = 0; i < WORK_COUNT; i++) good = own_row(i, base) && good;
    if (getloadavg(load, 1) == 1 && load[0] > 2.2)
        printf("load average %.1f: other programs run here, wall-clock times and 1 to 2 suffer\n",
               load[0]);
    for (int i = 0; i < WORK_COUNT; i++) printf("  %-9s %s\n", works[i].name, works[i].what);
    return good;
}

/* ---- what the checks cost ---- */

/* A checked product takes at most so many times the CPU time and memory of an unchecked one. */
enum { TIME_LIMIT = 4, MEMORY_LIMIT = 6 };

static bool cost_sample(int index, unsigned size, const char *check, struct samples *s)
{
    bool ok;
    check_level = check;
    ok = sample(index, size, 1, NULL, s);
    check_level = "0";
    return ok;
}

static bool cost_row(int index, double base)
{
    struct samples s[2] = {{.count = 0}, {.count = 0}};
    double cpu[2], mebibytes[2], time, memory;
    bool ok = true;
    for (int round = 0; round < SAMPLES && ok; round++) {
        progress(works[index].name, round, 1);
        ok = cost_sample(index, works[index].size, "0", &s[0]) &&
             cost_sample(index, works[index].size, "1", &s[1]);
    }
    progress_ends();
    if (!ok) {
        printf("%-9s  no result\n", works[index].name);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        cpu[i] = bench_median(s[i].cpu, SAMPLES);
        mebibytes[i] = s[i].mebibytes - base;
    }
    time = cpu[1] / cpu[0];
    memory = mebibytes[1] / mebibytes[0];
    ok = !*works[index].gpu || (time <= TIME_LIMIT && memory <= MEMORY_LIMIT);
    printf("%-9s %8u  %8.3f %8.3f %6.2f  %8.1f %8.1f %6.2f%s\n", works[index].name,
           works[index].size, cpu[0], cpu[1], time, mebibytes[0], mebibytes[1], memory,
           ok ? "" : "  OVER THE LIMIT");
    return ok;
}

/* Memory does not grow with the length of a run: a sixteenth of it, and all of it, once each. */
static bool bounded_row(double base)
{
    unsigned size[2] = {BENCH_BILLION / 16, BENCH_BILLION};
    struct samples s[2] = {{.count = 0}, {.count = 0}};
    for (int i = 0; i < 2; i++) {
        if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K… 10^9 accesses, part %d of 2", i + 1);
        if (!cost_sample(WORK_accesses, size[i], "1", &s[i])) {
            progress_ends();
            puts("10^9 accesses: no result");
            return false;
        }
    }
    progress_ends();
    for (int i = 0; i < 2; i++)
        printf("accesses  %8u  %8s %8.3f %6s  %8s %8.1f        %.2e lane accesses\n", size[i], "",
               s[i].cpu[0], "", "", s[i].mebibytes - base,
               (double)BENCH_ACCESSES * (double)size[i]);
    return !s[0].wrong && !s[1].wrong;
}

static bool cost_table(void)
{
    double base = base_memory();
    bool good = true;
    printf("what checks cost: CPU seconds, medians of %d, one thread; peak MiB less %.1f\n"
           "limits for the bf16 products: %d times the seconds, %d times the memory\n"
           "%-9s %8s  %8s %8s %6s  %8s %8s %6s\n",
           SAMPLES, base, TIME_LIMIT, MEMORY_LIMIT, "work", "size", "off, s", "on, s", "times",
           "off, MiB", "on, MiB", "times");
    for (int i = 0; i < WORK_COUNT; i++) good = cost_row(i, base) && good;
    return bounded_row(base) && good;
}

/* ---- beside a peer ---- */

/* The peer's configuration for functional simulation, PTX from a file, in a folder of its own. */
static bool configure(const char *root, struct peer *peer)
{
    char command[3 * PATH_MAX];
    strcpy(peer->folder, "/tmp/hewn-bench-XXXXXX");
    if (!mkdtemp(peer->folder)) return false;
    snprintf(
        command, sizeof command,
        "cp '%s'/configs/tested-cfgs/SM7_QV100/* %s/ && "
        "printf '%%s\\n' '-gpgpu_ptx_sim_mode 1' '-gpgpu_ptx_use_cuobjdump 0' >>%s/gpgpusim.config",
        root, peer->folder, peer->folder);
    return system(command) == 0;
}

static const char *peer_open(struct peer *peer)
{
    static char why[2 * PATH_MAX];
    const char *root = getenv("HEWN_BENCH_GPGPUSIM");
    char pattern[PATH_MAX];
    glob_t found = {0};
    if (!root || !*root) root = getenv("GPGPUSIM_ROOT");
    if (!root || !*root) return "HEWN_BENCH_GPGPUSIM does not name a tree";
    snprintf(pattern, sizeof pattern, "%s/lib/*/*/release/libcudart.so", root);
    if (glob(pattern, 0, NULL, &found) || !found.gl_pathc) {
        snprintf(why, sizeof why, "no %s: it is not built", pattern);
        globfree(&found);
        return why;
    }
    snprintf(peer->library, sizeof peer->library, "%s", found.gl_pathv[0]);
    globfree(&found);
    return configure(root, peer) ? NULL : "its configuration SM7_QV100 cannot be copied";
}

static bool peer_row(int index, const struct peer *peer)
{
    struct samples ours = {.count = 0}, theirs = {.count = 0};
    double a, b;
    for (int round = 0; round < SAMPLES; round++) {
        progress(works[index].name, round, 1);
        if (!sample(index, works[index].peer_size, 1, NULL, &ours)) break;
        progress(works[index].name, round, 0);
        if (!sample(index, works[index].peer_size, 1, peer, &theirs)) break;
    }
    progress_ends();
    if (ours.count < SAMPLES || theirs.count < SAMPLES) {
        printf("%-9s %6u  no result from %s\n", works[index].name, works[index].peer_size,
               ours.count < SAMPLES ? "the simulator" : "the peer");
        return false;
    }
    a = bench_median(ours.cpu, SAMPLES);
    b = bench_median(theirs.cpu, SAMPLES);
    printf("%-9s %6u  %9.4f  %9.4f  %8.1f  %8.1f  %7.1f%s\n", works[index].name,
           works[index].peer_size, a, b, b / a, ours.mebibytes, theirs.mebibytes,
           ours.wrong     ? "  OURS IS WRONG"
           : theirs.wrong ? "  the peer's result differs"
                          : "  same result");
    return !ours.wrong;
}

static bool peer_table(void)
{
    struct peer peer;
    const char *missing = peer_open(&peer);
    char command[128];
    bool good = true;
    if (missing) {
        printf("SKIP beside GPGPU-Sim: %s\n", missing);
        return true;
    }
    printf("beside GPGPU-Sim in functional mode, same PTX text, 1 thread each, CPU seconds\n"
           "%-9s %6s  %9s  %9s  %8s  %8s  %7s\n",
           "work", "size", "hewn", "peer", "ratio", "hewn MiB", "peer MiB");
    for (int i = 0; i < WORK_COUNT; i++)
        if (works[i].peer_size) good = peer_row(i, &peer) && good;
    snprintf(command, sizeof command, "rm -rf %s", peer.folder);
    return system(command) == 0 && good;
}

int bench_simulator(void)
{
    bool good = own_table();
    good = cost_table() && good;
    return peer_table() && good ? 0 : 1;
}
