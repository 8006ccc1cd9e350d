#include "bench_meter.h"

#include "bench.h"

#include <dlfcn.h>
#include <string.h>

/* Values of nvml.h. */
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, REASON_POWER_CAP = 4, TEXT = 96 };

struct nvml {
    int (*init)(void);
    int (*by_bus)(const char *bus, void **gpu);
    int (*driver_version)(char *text, unsigned size);
    int (*power_limit)(void *gpu, unsigned *milliwatts);
    int (*clock_limit)(void *gpu, int which, unsigned *mhz);
};

static bool resolve(void *library, const char *name, void *slot)
{
    void *symbol = dlsym(library, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool open_library(struct nvml *nvml, struct bench_meter *m)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    return library && resolve(library, "nvmlInit_v2", &nvml->init) &&
           resolve(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->by_bus) &&
           resolve(library, "nvmlSystemGetDriverVersion", &nvml->driver_version) &&
           resolve(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml->power_limit) &&
           resolve(library, "nvmlDeviceGetMaxClockInfo", &nvml->clock_limit) &&
           resolve(library, "nvmlDeviceGetClockInfo", &m->clock) &&
           resolve(library, "nvmlDeviceGetPowerUsage", &m->power) &&
           resolve(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &m->reasons) &&
           !nvml->init();
}

static void *find_gpu(const struct nvml *nvml, struct device *dev)
{
    int (*bus_id)(char *, int, int);
    char bus[32] = "";
    void *gpu = NULL;
    bench_resolve(dev->driver, "cuDeviceGetPCIBusId", &bus_id);
    if (!bus_id || bus_id(bus, sizeof bus, dev->info.ordinal) || nvml->by_bus(bus, &gpu))
        return NULL;
    return gpu;
}

void bench_meter_open(struct bench_meter *m, struct device *dev, struct bench_report *r)
{
    struct nvml nvml = {0};
    char driver[TEXT] = "unknown";
    unsigned watts = 0, sm = 0, memory = 0;
    int cuda = hewn_driver_version(dev->driver);
    memset(m, 0, sizeof *m);
    if (open_library(&nvml, m)) m->gpu = find_gpu(&nvml, dev);
    if (m->gpu && nvml.driver_version && nvml.power_limit && nvml.clock_limit) {
        nvml.driver_version(driver, sizeof driver);
        nvml.power_limit(m->gpu, &watts);
        nvml.clock_limit(m->gpu, CLOCK_SM, &sm);
        nvml.clock_limit(m->gpu, CLOCK_MEMORY, &memory);
        bench_fact(r, "%s, driver %s, CUDA %d.%d, %d SMs, %u W, SM clock to %u MHz, memory %u MHz",
                   dev->info.name, driver, cuda / 1000, cuda % 1000 / 10, dev->info.sm_count,
                   watts / 1000, sm, memory);
    } else {
        bench_fact(r, "%s, CUDA %d.%d, %d SMs, SM clock to %d MHz; no NVML: power is not known",
                   dev->info.name, cuda / 1000, cuda % 1000 / 10, dev->info.sm_count,
                   dev->info.clock_khz / 1000);
    }
}

void bench_meter_sample(struct bench_meter *m)
{
    unsigned sm = 0, memory = 0, milliwatts = 0;
    unsigned long long reasons = 0;
    if (!m->gpu || m->clock(m->gpu, CLOCK_SM, &sm) || m->clock(m->gpu, CLOCK_MEMORY, &memory) ||
        m->power(m->gpu, &milliwatts) || m->reasons(m->gpu, &reasons))
        return;
    if (!m->samples || sm < m->sm_least) m->sm_least = sm;
    if (sm > m->sm_most) m->sm_most = sm;
    if (memory > m->memory_most) m->memory_most = memory;
    if (milliwatts / 1000 > m->watts_most) m->watts_most = milliwatts / 1000;
    m->capped += (reasons & REASON_POWER_CAP) != 0;
    m->samples++;
}

void bench_meter_note(struct bench_meter *m, struct bench_report *r, const char *section)
{
    if (m->samples)
        bench_note(
            r, section,
            "seen in %d samples: SM clock %u to %u MHz, held down by the power limit in %d; memory "
            "%u MHz; mean power of a second %u W at most",
            m->samples, m->sm_least, m->sm_most, m->capped, m->memory_most, m->watts_most);
    m->samples = m->capped = 0;
    m->sm_most = m->memory_most = m->watts_most = 0;
}
