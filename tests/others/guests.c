/*
 * Programs of other projects that hand over to the CUDA runtime what nvcc made of their kernels (guests.sh).
 *
 *   HEWN_GUESTS=DIR build/tests/guests     DIR holds the libraries; a case without its library is skipped
 */
#include "guests.h"

#include "lib/harness.h"
#include "lib/number.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, POISON = 0x7f, BUFFERS = 32, COMPUTE_MAJOR = 75, TO_DEVICE = 1, TO_HOST = 2 };

static struct {
    void *library;
    int (*malloc)(void **at, size_t bytes);
    int (*free)(void *at);
    int (*memset)(void *at, int value, size_t bytes);
    int (*memcpy)(void *to, const void *from, size_t bytes, int kind);
    int (*synchronize)(void);
    int (*last_error)(void);
    int (*attribute)(int *value, int attribute, int device);
    const char *(*error_string)(int error);
    struct {
        char *at;
        size_t bytes;
    } buffer[BUFFERS];
    int buffers;
} guest;

static void *symbol_of(void *library, const char *symbol)
{
    void *found = dlsym(library, symbol);

    CHECK(found, "the library has no function %s", symbol);
    return found;
}

/* A data pointer as a pointer to a function, which ISO C cannot cast. */
static void take(void *function, const char *symbol)
{
    void *found = symbol_of(guest.library, symbol);
    memcpy(function, &found, sizeof found);
}

static void must(int rc, const char *what)
{
    if (rc) test_fail(__FILE__, __LINE__, "%s: %d, %s", what, rc, guest.error_string(rc));
}

bool guest_open(const char *name, int major)
{
    const char *folder = getenv("HEWN_GUESTS");
    char path[4096];
    int got = 0;

    memset(&guest, 0, sizeof guest);
    if (!folder) {
        test_skip("HEWN_GUESTS names no folder of libraries (guests.sh)");
        return false;
    }
    snprintf(path, sizeof path, "%s/lib%s.so", folder, name);
    guest.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!guest.library) {
        test_skip("%s", dlerror());
        return false;
    }
    take(&guest.malloc, "cudaMalloc");
    take(&guest.free, "cudaFree");
    take(&guest.memset, "cudaMemset");
    take(&guest.memcpy, "cudaMemcpy");
    take(&guest.synchronize, "cudaDeviceSynchronize");
    take(&guest.last_error, "cudaGetLastError");
    take(&guest.attribute, "cudaDeviceGetAttribute");
    take(&guest.error_string, "cudaGetErrorString");
    if (test_case_failures()) return false;
    must(guest.attribute(&got, COMPUTE_MAJOR, 0), "cudaDeviceGetAttribute");
    if (got != major) test_skip("compute capability %d, the kernel is for %d", got, major);
    return got == major;
}

void *guest_function(const char *symbol)
{
    return symbol_of(guest.library, symbol);
}

bool guest_finish(void)
{
    must(guest.last_error(), "a launch");
    must(guest.synchronize(), "cudaDeviceSynchronize");
    return !test_case_failures();
}

void *guest_buffer(const void *from, size_t bytes)
{
    void *at = NULL;

    if (guest.buffers == BUFFERS) abort();
    must(guest.malloc(&at, bytes + 2 * GUARD), "cudaMalloc");
    must(guest.memset(at, POISON, bytes + 2 * GUARD), "cudaMemset");
    guest.buffer[guest.buffers].at = at;
    guest.buffer[guest.buffers++].bytes = bytes;
    at = (char *)at + GUARD;
    if (from) must(guest.memcpy(at, from, bytes, TO_DEVICE), "cudaMemcpy");
    return at;
}

void guest_read(void *to, const void *from, size_t bytes)
{
    must(guest.memcpy(to, from, bytes, TO_HOST), "cudaMemcpy");
}

static void check_guard(int buffer, const char *from)
{
    char guard[GUARD];

    guest_read(guard, from, GUARD);
    for (int i = 0; i < GUARD; i++) {
        if (guard[i] == POISON) continue;
        test_fail(__FILE__, __LINE__, "guard byte %d of buffer %d was written", i, buffer);
        return;
    }
}

void guest_close(void)
{
    for (int i = 0; i < guest.buffers && !test_case_failures(); i++) {
        check_guard(i, guest.buffer[i].at);
        check_guard(i, guest.buffer[i].at + GUARD + guest.buffer[i].bytes);
    }
    for (int i = 0; i < guest.buffers; i++) guest.free(guest.buffer[i].at);
    guest.buffers = 0;
}

struct guest_values guest_draw(int dtype, size_t count, uint64_t seed, double scale)
{
    const size_t size = hewn_dtype_size(dtype);
    struct guest_values v = {calloc(count, sizeof(double)), calloc(count, size), count};
    struct rng r = {seed};

    if (!v.value || !v.stored) abort();
    for (size_t i = 0; i < count; i++) {
        char *at = (char *)v.stored + i * size;
        number_store(dtype, (double)rng_unit(&r) * scale, at);
        v.value[i] = number_load(dtype, at);
    }
    return v;
}

void guest_values_free(struct guest_values *v)
{
    free(v->value);
    free(v->stored);
}

double guest_attend(const struct guest_row *r, double *o, double *absolute)
{
    double *score = calloc((size_t)r->count + 1, sizeof *score), most = -(double)INFINITY, sum = 0;

    if (!score) abort();
    for (int j = 0; j < r->count; j++) {
        const double *k = r->k + (size_t)(r->keys ? r->keys[j] : j) * r->k_pitch;
        for (int d = 0; d < r->width; d++) score[j] += r->q[d] * k[d];
        score[j] *= r->scale;
        most = fmax(most, score[j]);
    }
    for (int j = 0; j < r->count; j++) sum += exp(score[j] - most);
    for (int d = 0; d < r->v_width; d++) o[d] = absolute[d] = 0;
    for (int j = 0; j < r->count; j++) {
        const double *v = r->v + (size_t)(r->keys ? r->keys[j] : j) * r->v_pitch;
        double p = exp(score[j] - most) / sum;
        for (int d = 0; d < r->v_width; d++) {
            o[d] += p * v[d];
            absolute[d] += p * fabs(v[d]);
        }
    }
    free(score);
    return r->count ? most + log(sum) : -(double)INFINITY;
}

int main(int argc, char **argv)
{
    test_begin("guests", argc, argv);
    guests_flashmla();
    guests_flashinfer();
    return test_end();
}
