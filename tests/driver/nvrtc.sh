#!/bin/sh
# The stand-in for NVRTC: what it adds to the options, and that machine code which NVRTC makes through it runs.
. "$SRC/tests/lib/lib.sh"
case $MODE in rel | dbg) ;; *)
    skip "NVRTC: the program does not carry the sanitiser of MODE=$MODE"
    finish
    exit
    ;;
esac
work=$BUILD/tests/nvrtc
mkdir -p "$work/fake"
sim=$(dirname "$SIM")
name=libnvrtc.so.13

# In place of the real one: it prints what it is asked for.
cat >"$work/fake.c" <<'PROGRAM'
#include <stdio.h>

int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    printf("options of %s:", (char *)program);
    for (int i = 0; i < count; i++) printf(" %s", options[i]);
    putchar('\n');
    return 6;
}

int nvrtcGetPTXSize(void *program, size_t *bytes)
{
    (void)program;
    *bytes = 77;
    return 0;
}
PROGRAM

# Takes the driver first, and then NVRTC by its name alone, as tools do that look for it elsewhere.
cat >"$work/asks.c" <<'PROGRAM'
#include <dlfcn.h>
#include <stdio.h>

typedef int (*compile)(void *, int, const char *const *);
typedef int (*size_of)(void *, size_t *);
typedef const char *(*error_string)(int);

int main(int argc, char **argv)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *nvrtc = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_NOLOAD);
    size_t bytes = 0;

    if (!driver || !nvrtc) return printf("%s is not loaded\n", driver ? "the stand-in" : "the driver"), 1;
    printf("result %d, ", ((compile)dlsym(nvrtc, "nvrtcCompileProgram"))("p", argc - 1, (const char **)argv + 1));
    printf("%d, ", ((size_of)dlsym(nvrtc, "nvrtcGetPTXSize"))("p", &bytes));
    printf("%zu bytes\n", bytes);
    return 0;
}
PROGRAM

# A kernel by way of machine code, as many tools ask for it.
cat >"$work/runs.c" <<'PROGRAM'
#include <stdio.h>
#include <stdlib.h>

int nvrtcCreateProgram(void **, const char *, const char *, int, const char *const *, const char *const *);
int nvrtcCompileProgram(void *, int, const char *const *);
int nvrtcGetCUBINSize(void *, size_t *);
int nvrtcGetCUBIN(void *, char *);
int nvrtcGetLoweredName(void *, const char *, const char **);
int nvrtcAddNameExpression(void *, const char *);
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemcpyDtoH_v2(void *, unsigned long long, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

#define TRY(call)                                                          \
    do {                                                                   \
        int rc = (call);                                                   \
        if (rc) return printf("%s: %d\n", #call, rc), 1;                   \
    } while (0)

int main(void)
{
    static const char text[] = "template <int N> __global__ void k(int *out) { out[threadIdx.x] = N * threadIdx.x + 1; }";
    const char *options[] = {"--gpu-architecture=sm_90", "-std=c++17"}, *lowered;
    void *program, *context, *module, *kernel;
    unsigned long long at;
    size_t bytes;
    int out[64];
    char *image;

    TRY(nvrtcCreateProgram(&program, text, "k.cu", 0, NULL, NULL));
    TRY(nvrtcAddNameExpression(program, "k<3>"));
    TRY(nvrtcCompileProgram(program, 2, options));
    TRY(nvrtcGetLoweredName(program, "k<3>", &lowered));
    TRY(nvrtcGetCUBINSize(program, &bytes));
    if (!(image = malloc(bytes))) return 1;
    TRY(nvrtcGetCUBIN(program, image));
    TRY(cuInit(0));
    TRY(cuDevicePrimaryCtxRetain(&context, 0));
    TRY(cuCtxSetCurrent(context));
    TRY(cuModuleLoadData(&module, image));
    TRY(cuModuleGetFunction(&kernel, module, lowered));
    TRY(cuMemAlloc_v2(&at, sizeof out));
    void *params[] = {&at};
    TRY(cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    TRY(cuMemcpyDtoH_v2(out, at, sizeof out));
    for (int i = 0; i < 64; i++)
        if (out[i] != 3 * i + 1) return printf("out[%d]: want %d got %d\n", i, 3 * i + 1, out[i]), 1;
    puts("right");
    return 0;
}
PROGRAM

if ! { $CC -w -shared -fPIC -o "$work/fake/$name" "$work/fake.c" && $CC -w -o "$work/asks" "$work/asks.c" -ldl; } >"$work/log" 2>&1; then
    fail "the programs do not compile" "$(cat "$work/log")"
fi

asks() { # WANTED OPTION…: what NVRTC is given
    want_options=$1
    shift
    env -u CUDA_HOME LD_LIBRARY_PATH="$sim:$work/fake" "$work/asks" "$@" >"$work/log" 2>&1
    status "the program that gives $*" 0 $?
    want "options $*" "^options of p:$want_options\$" "$work/log"
    want "the results of $*" '^result 6, 0, 77 bytes$' "$work/log"
}
asks ' --gpu-architecture=sm_90 -lineinfo' --gpu-architecture=sm_90
asks ' -I. -arch sm_100a -O3 -lineinfo' -I. -arch sm_100a -O3
asks ' -arch=compute_90 -DX=sm' -arch=compute_90 -DX=sm
asks ' -arch=sm_90 -lineinfo' -arch=sm_90 -lineinfo
asks ' --generate-line-info -arch=sm_90' --generate-line-info -arch=sm_90
asks ' -G -arch=sm_90' -G -arch=sm_90
asks ''

if [ ! -e "/usr/local/cuda/lib64/$name" ] && [ ! -e "/usr/lib/x86_64-linux-gnu/$name" ]; then
    env -u CUDA_HOME -u CUDA_PATH LD_LIBRARY_PATH="$sim" "$work/asks" -arch=sm_90 >"$work/log" 2>&1
    want "no NVRTC" "hewn-sim: $name of the CUDA toolkit is not found; name its folder" "$work/log"
    want "no NVRTC" '^result 11, 11, 0 bytes$' "$work/log"
fi

real=$CUDA_HOME/lib64/$name
if [ ! -e "$real" ]; then
    skip "NVRTC itself: CUDA_HOME has no lib64/$name"
elif $CC -w -o "$work/runs" "$work/runs.c" "$real" "$SIM" >"$work/log" 2>&1; then
    for path in "$sim:$CUDA_HOME/lib64" "$sim"; do
        LD_LIBRARY_PATH=$path HEWN_SIM_GPU=h200 "$work/runs" >"$work/log" 2>&1
        want "a kernel that NVRTC compiled to machine code, LD_LIBRARY_PATH=$path" '^right$' "$work/log"
    done
else
    fail "the program does not link with NVRTC" "$(cat "$work/log")"
fi
finish
