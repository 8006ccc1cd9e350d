#include "sim_run.h"
#include "check/check.h"
#include "ops/table.h"

#include "decode/decode.h"
#include "explore/replay.h"
#include "machine/machine.h"
#include "machine/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct gpu gpu = {.name = "test",
                               .cc_major = 10,
                               .sm_count = 4,
                               .shared_optin = 232448,
                               .shared_per_sm = 233472,
                               .regs_per_sm = 65536,
                               .threads_per_sm = 2048,
                               .ctas_per_sm = 32,
                               .clock_khz = 1000000};

static char report_path[] = "/tmp/sim_run.XXXXXX";

bool run_begin(void)
{
    int fd = mkstemp(report_path);
    if (fd < 0) return false;
    close(fd);
    return !setenv("HEWN_SIM_REPORT", report_path, 1) && !setenv("HEWN_SIM_QUIET", "1", 1);
}

void run_end(void)
{
    unlink(report_path);
}

static void read_findings(struct run *r)
{
    FILE *f = fopen(report_path, "r");
    size_t n = f ? fread(r->findings, 1, sizeof r->findings - 1, f) : 0;
    r->findings[n] = '\0';
    if (f) fclose(f);
    if (truncate(report_path, 0)) perror(report_path);
}

static int run_as_told(struct run *r, struct launch *l)
{
    struct replay replay = {.told = NULL};
    struct schedule s = {NULL, 0, 0};
    char why[96];
    int result;
    if (!r->replay) return launch_run(l);
    r->strayed = !schedule_read(&s, r->replay, why, sizeof why);
    if (r->strayed) return -1;
    replay_attach(&replay, l, &s, UINT32_MAX);
    result = launch_run(l);
    replay_end(&replay);
    schedule_free(&s);
    r->strayed = replay.strayed || replay.endless;
    return result;
}

static int launch(struct run *r, const struct kernel *kernel, const void *params,
                  uint32_t param_bytes)
{
    _Alignas(64) unsigned char block[RUN_PARAM_BYTES] = {0};
    struct launch l = {.kernel = kernel,
                       .gpu = &gpu,
                       .hooks = &op_hooks,
                       .grid = {r->grid ? r->grid : 1, 1, 1},
                       .block = {r->block ? r->block : 32, 1, 1},
                       .cluster = {r->cluster ? r->cluster : 1, 1, 1},
                       .dynamic_shared = r->dynamic_shared,
                       .params = block,
                       .param_bytes = param_bytes,
                       .sm_count = r->sms ? r->sms : gpu.sm_count,
                       .host_threads = r->threads ? r->threads : 1,
                       .seed = r->seed,
                       .check_level = r->level ? r->level : 1};
    struct check check = {.before = r->before, .keeps_memory = r->after != NULL};
    struct report *report;
    memcpy(block, params, param_bytes);
    if (r->exploration) explore_launch(&l, &r->memory, 1, &r->limits, r->exploration);
    report = report_new("k", 1);
    check_attach(&check, &l, report);
    if (r->aliased) report_sampled(report, SAMPLED_ALIASED, NULL, 0);
    const int result = run_as_told(r, &l);
    report_end(report);
    read_findings(r);
    if (r->after) *r->after = check.memory;
    return result;
}

int run_kernel(struct run *r, const char *text, const void *params, uint32_t param_bytes)
{
    struct ptx_module *module = NULL;
    struct kernel *kernel = NULL;
    struct ptx_diag diag = {{0}};
    int result = -1;
    if (param_bytes > RUN_PARAM_BYTES || ptx_parse(text, strlen(text), &module, &diag) ||
        kernel_decode(module, &module->entries[0], op_binders, &kernel, &diag))
        fprintf(stderr, "%s\n", diag.text);
    else if (kernel->unsupported)
        fprintf(stderr, "%s\n", kernel->unsupported);
    else
        result = launch(r, kernel, params, param_bytes);
    if (kernel) kernel_free(kernel);
    if (module) ptx_module_free(module);
    return result;
}

bool run_found(const struct run *r, const char *kind)
{
    char key[64];
    snprintf(key, sizeof key, "\"kind\":\"%s\"", kind);
    return strstr(r->findings, key) != NULL;
}

void *run_alloc(uint64_t bytes)
{
    uint64_t address = 0;
    if (mem_alloc(bytes, &address)) abort();
    return (void *)(uintptr_t)address;
}

void run_free(void *p)
{
    mem_free((uint64_t)(uintptr_t)p);
}

uint32_t run_swizzle(uint32_t mode, uint32_t a)
{
    uint32_t b7 = a >> 7 & 1, b8 = a >> 8 & 1, b9 = a >> 9 & 1;
    switch (mode) {
    case 1: return a ^ b7 << 4;
    case 2: return a ^ b7 << 4 ^ b8 << 5;
    case 3: return a ^ b7 << 4 ^ b8 << 5 ^ b9 << 6;
    case 4: return a ^ b7 << 5 ^ b8 << 6;
    case 5: return a ^ b7 << 5 ^ b8 << 6 ^ b7 << 3;
    case 6: return a ^ b7 << 6;
    default: return a;
    }
}
