/* cuGetProcAddress, older names, and the functions of the real library that are not modelled. */
#include "cuda/driver.h"

typedef void api_function(void);

/* Every base name with the variants that go by it; unmodelled ones too, so that a program that
 * looks its functions up fails at the call it makes and not before. */
static const struct api_row {
    const char *base;
    api_function *function;
    int since;
} rows[] = {
#define ROW(base, symbol, since)        {#base, (api_function *)symbol, since},
#define API(base, symbol, since, ...)   ROW(base, symbol, since)
#define ALIAS(base, symbol, since, ...) ROW(base, symbol, since)
#define PROC(base, symbol, since)       ROW(base, symbol, since)
#define STUB(base, symbol, since)       ROW(base, symbol, since)
#include "cuda/cuda_api.def"
#undef API
#undef ALIAS
#undef PROC
#undef STUB
};

enum {
    FLAG_LEGACY_STREAM = 1,
    FLAG_PER_THREAD_STREAM = 2 /* the same functions: each thread's default stream runs at once */
};

/* The newest variant of `base` that programs of `version` mean. */
static const struct api_row *find(const char *base, int version, int *status)
{
    const struct api_row *best = NULL;

    *status = HEWN_CU_PROC_NOT_FOUND;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].base, base) != 0) continue;
        if (rows[i].since > version) {
            if (!best) *status = HEWN_CU_PROC_VERSION_NOT_SUFFICIENT;
        } else if (!best || rows[i].since > best->since) {
            best = &rows[i];
            *status = HEWN_CU_PROC_FOUND;
        }
    }
    return best;
}

/* Works before cuInit, as on hardware: that is how programs find cuInit. */
static int look_up(const char *name, void **function, int version, uint64_t flags, int *status)
{
    const struct api_row *row;

    if (!name || !function) return HEWN_CU_INVALID_VALUE;
    *function = NULL;
    if (version < 1 || version > DRIVER_VERSION ||
        flags > (FLAG_LEGACY_STREAM | FLAG_PER_THREAD_STREAM))
        return HEWN_CU_INVALID_VALUE;
    row = find(name, version, status);
    if (row) memcpy(function, &row->function, sizeof row->function);
    return 0;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    int unused;
    return look_up(name, function, version, flags, status ? status : &unused);
}

/* The form of 11.3 has no status: it says by its result that there is nothing. */
int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    int status = HEWN_CU_PROC_FOUND;
    int rc = look_up(name, function, version, flags, &status);

    return rc ? rc : status == HEWN_CU_PROC_FOUND ? 0 : HEWN_CU_NOT_FOUND;
}

#define API(base, symbol, since, parameters)
#define PROC(base, symbol, since)
#define ALIAS(base, symbol, since, target, parameters, arguments) \
    int symbol parameters                                         \
    {                                                             \
        return target arguments;                                  \
    }
#define STUB(base, symbol, since)
#include "cuda/cuda_api.def"
#undef ALIAS
#undef STUB

static int not_modelled(bool *named, const char *name)
{
    struct call call CALL_SCOPE;

    if (call_enter(&call, 0)) return call.rc;
    if (!*named) driver_note("%s is not modelled", name);
    *named = true;
    return HEWN_CU_NOT_SUPPORTED;
}

#define ALIAS(base, symbol, since, target, parameters, arguments)
#define STUB(base, symbol, since)             \
    int symbol(void)                          \
    {                                         \
        static bool named;                    \
        return not_modelled(&named, #symbol); \
    }
#include "cuda/cuda_api.def"
