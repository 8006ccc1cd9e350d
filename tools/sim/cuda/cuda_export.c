/* cuGetExportTable: the tables that CUDA's runtime library asks its driver for. */
#include "cuda/driver.h"
#include "cuda/md2.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef void export_function(void);

enum { SLOTS_MOST = 95, SLOTS_NAMED = 26, CALLBACK_SWITCHES = 1024, CALLBACK_DOMAINS = 14 };

/* ---- modules ---- */

/* nvcc's host code registers a wrapper; cuModuleLoadData takes it as well. */
static int load_wrapped(hewn_cu_module *module, const void *wrapper)
{
    return cuModuleLoadFatBinary(module, wrapper);
}

static int load_wrapped_with(hewn_cu_module *module, const void *wrapper, void *options,
                             void *values, unsigned count)
{
    if (options || values || count) return HEWN_CU_NOT_SUPPORTED;
    return cuModuleLoadFatBinary(module, wrapper);
}

static int load_container_with(const void *container, hewn_cu_module *module, void *options,
                               void *values, unsigned count)
{
    return load_wrapped_with(module, container, options, values, count);
}

/* The real driver loads its PTX compiler here; the simulator needs none. */
static int load_compilers(void)
{
    return 0;
}

static void note_nothing(size_t what)
{
    (void)what;
}

/* The primary context, not made current. It is active from here on, and the runtime never releases
 * it: one retention is kept, however often it asks. */
static int primary_of(hewn_cu_context *context, hewn_cu_device device)
{
    unsigned flags;
    int active, rc = cuDevicePrimaryCtxGetState(device, &flags, &active);

    if (!rc) rc = cuDevicePrimaryCtxRetain(context, device);
    return rc || !active ? rc : cuDevicePrimaryCtxRelease_v2(device);
}

/* ---- profilers: switches that the runtime reads before each call; all stay off ---- */

static void callback_switches(void **at, size_t *count)
{
    static uint32_t switches[CALLBACK_SWITCHES];

    *at = switches;
    *count = CALLBACK_SWITCHES;
}

static void callback_domains(void **at, size_t *count)
{
    static uint32_t domains[CALLBACK_DOMAINS];

    *at = domains;
    *count = CALLBACK_DOMAINS;
}

/* ---- what the runtime keeps with a context ---- */

/* Enters a call about `context`, the current one where it is NULL. */
static int enter_context(struct call *call, hewn_cu_context context)
{
    if (call_enter(call, NEED_INIT)) return call->rc;
    if (context) call->context = handle_get(context, HANDLE_CONTEXT);
    return call->rc = call->context ? 0 : HEWN_CU_INVALID_CONTEXT;
}

static struct context_value **find_value(struct CUctx_st *context, const void *key)
{
    struct context_value **at = &context->values;

    while (*at && (*at)->key != key) at = &(*at)->next;
    return at;
}

static int storage_put(hewn_cu_context context, void *key, void *value,
                       context_value_end *destructor)
{
    struct call call CALL_SCOPE;
    struct context_value **at, *v;

    if (enter_context(&call, context)) return call.rc;
    at = find_value(call.context, key);
    v = *at ? *at : calloc(1, sizeof *v);
    if (!v) return HEWN_CU_OUT_OF_MEMORY;
    *v = (struct context_value){
        .next = v->next, .context = call.context, .key = key, .value = value, .end = destructor};
    *at = v;
    return 0;
}

static int storage_delete(hewn_cu_context context, void *key)
{
    struct call call CALL_SCOPE;
    struct context_value **at, *v;

    if (enter_context(&call, context)) return call.rc;
    at = find_value(call.context, key);
    v = *at;
    if (!v) return HEWN_CU_INVALID_HANDLE;
    *at = v->next;
    free(v);
    return 0;
}

static int storage_get(void **value, hewn_cu_context context, void *key)
{
    struct call call CALL_SCOPE;
    struct context_value *v;

    if (enter_context(&call, context)) return call.rc;
    v = *find_value(call.context, key);
    if (!v) return HEWN_CU_INVALID_HANDLE;
    *value = v->value;
    return 0;
}

/* Two questions about graphics contexts that the runtime asks; the answer is no. */
static int context_check(hewn_cu_context context, uint32_t *result, const void **unused)
{
    (void)context;
    (void)unused;
    *result = 0;
    return 0;
}

static uint32_t context_check_all(void)
{
    return 0;
}

/* ---- the greeting ---- */

static export_function *const *table_at(const char *name);

/* What both sides digest: HMAC-MD2 under a fixed key over this, then over each device. */
struct greeting {
    uint32_t driver_version, version, process, thread;
    export_function *const *runtime_table, *const *integrity_table;
    export_function *function;
    uint64_t seconds;
};

struct greeted_device {
    uint8_t uuid[16];
    int domain, bus, device;
};

static int greet_device(struct md2_keyed *digest, hewn_cu_device device)
{
    struct greeted_device d = {{0}, 0, 0, 0};
    int rc = cuDeviceGetUuid_v2(d.uuid, device);

    if (!rc) rc = cuDeviceGetAttribute(&d.domain, HEWN_CU_ATTR_PCI_DOMAIN_ID, device);
    if (!rc) rc = cuDeviceGetAttribute(&d.bus, HEWN_CU_ATTR_PCI_BUS_ID, device);
    if (!rc) rc = cuDeviceGetAttribute(&d.device, HEWN_CU_ATTR_PCI_DEVICE_ID, device);
    md2_keyed_add(digest, &d, sizeof d);
    return rc;
}

/* The runtime works out the same digest and refuses a driver whose answer differs. Versions that
 * end in 0 or 1 have fixed answers. */
static int integrity_answer(uint32_t version, uint64_t seconds, uint64_t answer[2])
{
    static const uint8_t key[MD2_BYTES] = {0x14, 0x6A, 0xDD, 0xAE, 0x53, 0xA9, 0xA7, 0x52,
                                           0xAA, 0x08, 0x41, 0x36, 0x0B, 0xF5, 0x5A, 0x9F};
    struct greeting greeting = {.driver_version = DRIVER_VERSION,
                                .version = version,
                                .process = (uint32_t)getpid(),
                                .thread = (uint32_t)pthread_self(),
                                .runtime_table = table_at("runtime"),
                                .integrity_table = table_at("integrity"),
                                .function = (export_function *)integrity_answer,
                                .seconds = seconds};
    struct md2_keyed digest;
    int count = 0, rc = cuDeviceGetCount(&count);

    if (rc) return rc;
    if (version % 10 < 2) {
        answer[0] = version % 10 ? 0x1841181C03CB675C : 0x3341181C03CB675C;
        answer[1] = 0x8ED383AA1F4CD1E8;
        return 0;
    }
    md2_keyed_begin(&digest, key);
    md2_keyed_add(&digest, &greeting, sizeof greeting);
    for (int i = 0; i < count && !rc; i++) rc = greet_device(&digest, i);
    md2_keyed_end(&digest, (uint8_t *)answer);
    return rc;
}

/* ---- the tables ---- */

static int unknown(bool *named, const char *table, unsigned slot)
{
    if (!*named) driver_note("slot %u of the export table %s is not modelled", slot, table);
    *named = true;
    return HEWN_CU_NOT_SUPPORTED;
}

/* A slot from SLOTS_NAMED on. */
static int unknown_far(void)
{
    static bool named;

    if (!named) driver_note("a slot from %d on of an export table is not modelled", SLOTS_NAMED);
    named = true;
    return HEWN_CU_NOT_SUPPORTED;
}

#define UNKNOWN(table, slot)                  \
    static int table##_##slot(void)           \
    {                                         \
        static bool named;                    \
        return unknown(&named, #table, slot); \
    }
/* clang-format off */
#define SLOTS(X, t)                                                                         \
    X(t, 0) X(t, 1) X(t, 2) X(t, 3) X(t, 4) X(t, 5) X(t, 6) X(t, 7) X(t, 8)                 \
    X(t, 9) X(t, 10) X(t, 11) X(t, 12) X(t, 13) X(t, 14) X(t, 15) X(t, 16) X(t, 17)         \
    X(t, 18) X(t, 19) X(t, 20) X(t, 21) X(t, 22) X(t, 23) X(t, 24) X(t, 25)
/* clang-format on */
#define EXPORT_TABLE(name, high, low, slots, first) SLOTS(UNKNOWN, name)
#define EXPORT_SLOT(table, slot, function)
#define EXPORT_ABSENT(high, low)
#include "cuda/export_tables.def"
#undef EXPORT_TABLE

enum first_slot { SIZED, PLAIN };

static struct export_table {
    const char *name;
    uint64_t high, low; /* the identity, its bytes from the highest down */
    size_t count;
    enum first_slot first;
    export_function *slots[SLOTS_MOST];
} tables[] = {
#define UNKNOWN_SLOT(table, slot) (export_function *)table##_##slot,
#define EXPORT_TABLE(name, high, low, slots, first) \
    {#name, high, low, slots, first, {SLOTS(UNKNOWN_SLOT, name)}},
#include "cuda/export_tables.def"
#undef EXPORT_TABLE
#undef EXPORT_SLOT
};

static struct export_table *table_named(const char *name)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (!strcmp(tables[i].name, name)) return &tables[i];
    return NULL;
}

static export_function *const *table_at(const char *name)
{
    return table_named(name)->slots;
}

static void fill_slots(void)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (tables[i].first == SIZED)
            tables[i].slots[0] = (export_function *)(tables[i].count * sizeof(export_function *));
        for (size_t j = SLOTS_NAMED; j < tables[i].count; j++)
            tables[i].slots[j] = (export_function *)unknown_far;
    }
#define EXPORT_TABLE(name, high, low, slots, first)
#define EXPORT_SLOT(table, slot, function) \
    table_named(#table)->slots[slot] = (export_function *)function;
#include "cuda/export_tables.def"
#undef EXPORT_TABLE
#undef EXPORT_SLOT
}

static uint64_t big_endian(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v = v << 8 | p[i];
    return v;
}

static bool absent(uint64_t high, uint64_t low)
{
    static const uint64_t known[][2] = {
#undef EXPORT_ABSENT
#define EXPORT_TABLE(name, high, low, slots, first)
#define EXPORT_SLOT(table, slot, function)
#define EXPORT_ABSENT(high, low) {high, low},
#include "cuda/export_tables.def"
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i][0] == high && known[i][1] == low) return true;
    return false;
}

/* Works before cuInit, as on hardware. */
int cuGetExportTable(const void **table, const void *identity)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t high, low;

    if (!table || !identity) return HEWN_CU_INVALID_VALUE;
    high = big_endian(identity);
    low = big_endian((const uint8_t *)identity + 8);
    pthread_once(&once, fill_slots);
    *table = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (tables[i].high == high && tables[i].low == low) *table = tables[i].slots;
    if (*table) return 0;
    if (!absent(high, low))
        driver_note("export table %016llx%016llx is not modelled", (unsigned long long)high,
                    (unsigned long long)low);
    return HEWN_CU_INVALID_VALUE;
}
