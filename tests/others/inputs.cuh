/*
 * Seeded inputs for the programs of this folder, made on the host, so that two drivers see the same.
 */
#ifndef HEWN_OTHERS_INPUTS_CUH
#define HEWN_OTHERS_INPUTS_CUH

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

/* Uniform in [-1, 1), 24 random bits: exact in float, rounded by T's conversion. */
struct random_floats {
    uint64_t state;
    explicit random_floats(uint64_t seed) : state(seed) {}
    float next()
    {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return float(int64_t((z ^ (z >> 31)) >> 40) - (1 << 23)) * 0x1p-23f;
    }
};

inline void must(cudaError_t rc, const char *what)
{
    if (rc == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(rc));
    std::exit(1);
}

template <typename T> T *device_buffer(size_t count)
{
    void *p = nullptr;
    must(cudaMalloc(&p, count * sizeof(T)), "cudaMalloc");
    return static_cast<T *>(p);
}

template <typename T> T *random_buffer(size_t count, uint64_t seed, float scale = 1.0f)
{
    std::vector<T> host(count);
    random_floats random(seed);
    for (T &x : host) x = T(random.next() * scale);
    T *p = device_buffer<T>(count);
    must(cudaMemcpy(p, host.data(), count * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    return p;
}

inline void finish(const char *what)
{
    must(cudaDeviceSynchronize(), what);
    must(cudaGetLastError(), what);
}

#endif
