/*
 * The devices that the simulator can be (HEWN_SIM_GPU): what programs may ask of each, and what the
 * machine enforces. Numbers as the devices' own drivers give them.
 */
#include "cuda/driver.h"

#define KIB(n) ((n)*1024U)
#define MIB(n) ((uint64_t)(n) << 20)

/* key, name, compute capability, SMs, clock in kHz, L2 bytes, memory bytes */
#define GPUS(X)                                                                           \
    X("h200", "NVIDIA H200 (hewn simulator)", 9, 0, 132, 1980000, MIB(60), MIB(143771))   \
    X("b200", "NVIDIA B200 (hewn simulator)", 10, 0, 148, 1965000, MIB(126), MIB(183359)) \
    X("b300", "NVIDIA B300 (hewn simulator)", 10, 3, 148, 1920000, MIB(126), MIB(275040))

/* The same on 9.0 and 10.x: 227 KiB opt-in shared memory a block, 228 an SM, 64 Ki registers. */
#define COMMON_LIMITS                                                          \
    .shared_optin = KIB(227), .shared_per_sm = KIB(228), .regs_per_sm = 65536, \
    .threads_per_sm = 2048, .ctas_per_sm = 32

static const struct {
    const char *key;
    struct gpu gpu;
} gpus[] = {
#define X(key, text, major, minor, sms, khz, l2, memory) \
    {key,                                                \
     {.name = text,                                      \
      .cc_major = major,                                 \
      .cc_minor = minor,                                 \
      .sm_count = sms,                                   \
      .clock_khz = khz,                                  \
      .l2_bytes = (uint32_t)(l2),                        \
      .memory_bytes = memory,                            \
      COMMON_LIMITS}},
    GPUS(X)
#undef X
};

const struct gpu *gpu_named(const char *name)
{
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++)
        if (!strcmp(gpus[i].key, name)) return &gpus[i].gpu;
    return NULL;
}

const char *gpu_names(void)
{
#define X(key, text, major, minor, sms, khz, l2, memory) ", " key
    static const char names[] = GPUS(X);
#undef X
    return names + 2;
}

/* SMs of each GPC, such that as many clusters fit as an H200 (driver 580.159.04) was measured to hold of CTAs that take an
 * SM each: 66 of 2, 30 of 4, 15 of 8, 7 of 16. (It holds 39 of 3, these 43.) Of the others no figures are known. */
static const uint8_t h200_gpcs[] = {18, 18, 18, 18, 18, 16, 16, 10};

uint32_t gpu_clusters(const struct gpu *g, uint32_t size)
{
    uint32_t clusters = 0, sms = 0;
    for (size_t i = 0; i < sizeof h200_gpcs; i++) {
        clusters += h200_gpcs[i] / size;
        sms += h200_gpcs[i];
    }
    return g->cc_major == 9 && g->sm_count == sms ? clusters : g->sm_count / size;
}
