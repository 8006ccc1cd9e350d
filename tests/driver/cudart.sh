#!/bin/sh
# Programs that nvcc built, with the static and the shared runtime library, run on the simulated driver unchanged.
. "$SRC/tests/lib/lib.sh"
nvcc=$CUDA_HOME/bin/nvcc
if [ ! -x "$nvcc" ]; then
    skip "nvcc programs: no nvcc at CUDA_HOME"
    finish
    exit
fi
case $MODE in rel | dbg) ;; *)
    skip "nvcc programs: they do not carry the sanitiser of MODE=$MODE"
    finish
    exit
    ;;
esac
dir=$BUILD/tests/cudart
mkdir -p "$dir"

cat >"$dir/features.cu" <<'PROGRAM'
#include <cstdio>
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#define TRY(call)                                                                                   \
    do {                                                                                            \
        cudaError_t e = (call);                                                                     \
        if (e != cudaSuccess) {                                                                     \
            printf("%s: %s\n", #call, cudaGetErrorString(e));                                       \
            return 1;                                                                               \
        }                                                                                           \
    } while (0)

__constant__ float factor;
__device__ int launches;
__managed__ int shared_count = 5; /* before there is a context */

__global__ void scale(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * in[i];
    if (i == 0) atomicAdd(&launches, 1);
    if (i == 0) shared_count++;
}

__global__ void total(const float *in, float *out, int n)
{
    extern __shared__ float part[];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i];
    part[threadIdx.x] = sum;
    cooperative_groups::this_thread_block().sync();
    if (threadIdx.x == 0) {
        for (int i = 1; i < (int)blockDim.x; i++) sum += part[i];
        *out = sum;
        printf("total %.0f of %d\n", sum, n);
    }
}

int main()
{
    const int n = 1000;
    float host[n], three = 3, *in, *out, *managed;
    int count = 0, blocks = 0;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cudaDeviceProp prop;
    for (int i = 0; i < n; i++) host[i] = (float)i;
    TRY(cudaGetDeviceProperties(&prop, 0));
    TRY(cudaMalloc(&in, sizeof host));
    TRY(cudaMallocAsync(&out, sizeof host, 0));
    TRY(cudaMallocManaged(&managed, sizeof(float)));
    TRY(cudaStreamCreate(&stream));
    TRY(cudaEventCreate(&begin));
    TRY(cudaEventCreate(&end));
    TRY(cudaMemcpyToSymbol(factor, &three, sizeof three));
    TRY(cudaMemcpyAsync(in, host, sizeof host, cudaMemcpyHostToDevice, stream));
    TRY(cudaEventRecord(begin, stream));
    scale<<<4, 256, 0, stream>>>(in, out, n);
    total<<<1, 64, 64 * sizeof(float), stream>>>(out, managed, n);
    TRY(cudaGetLastError());
    TRY(cudaEventRecord(end, stream));
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaMemcpyFromSymbol(&count, launches, sizeof count));
    TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, total, 64, 0));
    TRY(cudaFree(in));
    TRY(cudaFreeAsync(out, 0));
    printf("%d launch, %.0f, blocks %d\n", count, *managed, blocks > 0);
    printf("managed variable %d\n", shared_count);
    scale<<<1, 2048>>>(in, out, n);
    printf("too many threads: %s\n", cudaGetErrorName(cudaGetLastError()));
    TRY(cudaDeviceReset());
    TRY(cudaMalloc(&in, 16));
    return 0;
}
PROGRAM

cat >"$dir/graphs.cu" <<'PROGRAM'
#include <cstdio>
#include <cuda_runtime.h>

#define TRY(call)                                                                                   \
    do {                                                                                            \
        cudaError_t e = (call);                                                                     \
        if (e != cudaSuccess) {                                                                     \
            printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(e));                    \
            return 1;                                                                               \
        }                                                                                           \
    } while (0)

__global__ void add(int *at, int n)
{
    *at += n;
}

__global__ void count_down(int *at, cudaGraphConditionalHandle handle)
{
    cudaGraphSetConditional(handle, --*at > 0);
}

static void CUDART_CB told(void *user)
{
    ++*(int *)user;
}

static void CUDART_CB called(cudaStream_t, cudaError_t status, void *user)
{
    *(int *)user += status == cudaSuccess ? 10 : 0;
}

/* *at = 5, += 1, copied to host */
static int explicit_graph(int *at, cudaStream_t stream)
{
    int host = 0, n = 1, calls = 0;
    void *args[] = {&at, &n};
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t set, kernel, copy, tell;
    cudaMemsetParams fill = {};
    cudaKernelNodeParams params = {}, back = {};
    cudaHostNodeParams note = {told, &calls};
    cudaLaunchAttributeValue value = {};
    fill.dst = at, fill.value = 5, fill.elementSize = 4, fill.width = 1, fill.height = 1;
    params.func = (void *)add;
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = args;
    TRY(cudaGraphCreate(&graph, 0));
    TRY(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &fill));
    TRY(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &params));
    TRY(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, &host, at, 4, cudaMemcpyDeviceToHost));
    TRY(cudaGraphAddHostNode(&tell, graph, &copy, 1, &note));
    TRY(cudaGraphKernelNodeGetParams(kernel, &back));
    TRY(cudaGraphKernelNodeGetAttribute(kernel, cudaLaunchAttributePriority, &value));
    TRY(cudaGraphInstantiate(&exec, graph, 0));
    TRY(cudaGraphLaunch(exec, stream));
    n = 2;
    TRY(cudaGraphExecKernelNodeSetParams(exec, kernel, &params));
    TRY(cudaGraphLaunch(exec, stream));
    TRY(cudaStreamSynchronize(stream));
    printf("explicit %d, %d calls, function %s\n", host, calls, back.func == (void *)add ? "kept" : "lost");
    TRY(cudaGraphExecDestroy(exec));
    TRY(cudaGraphDestroy(graph));
    return 0;
}

static int loop_graph(int *at, cudaStream_t stream)
{
    int host = 7;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    cudaGraphConditionalHandle handle;
    cudaGraphNodeParams loop = {cudaGraphNodeTypeConditional};
    TRY(cudaMemcpy(at, &host, 4, cudaMemcpyHostToDevice));
    TRY(cudaGraphCreate(&graph, 0));
    TRY(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    loop.conditional.handle = handle;
    loop.conditional.type = cudaGraphCondTypeWhile;
    loop.conditional.size = 1;
#if CUDART_VERSION >= 13000
    TRY(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &loop));
#else
    TRY(cudaGraphAddNode(&node, graph, NULL, 0, &loop));
#endif
    TRY(cudaStreamBeginCaptureToGraph(stream, loop.conditional.phGraph_out[0], NULL, NULL, 0,
                                      cudaStreamCaptureModeGlobal));
    count_down<<<1, 1, 0, stream>>>(at, handle);
    TRY(cudaStreamEndCapture(stream, NULL));
    TRY(cudaGraphInstantiate(&exec, graph, 0));
    TRY(cudaGraphLaunch(exec, stream));
    TRY(cudaMemcpyAsync(&host, at, 4, cudaMemcpyDeviceToHost, stream));
    TRY(cudaStreamSynchronize(stream));
    printf("loop ended at %d\n", host);
    TRY(cudaGraphExecDestroy(exec));
    TRY(cudaGraphDestroy(graph));
    return 0;
}

static int captured_graph(int *at, cudaStream_t stream)
{
    int host = 0, calls = 0, *scratch, four = 4;
    cudaGraph_t graph, again;
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo info;
    cudaMemPool_t pool;
    unsigned long long keep = 1 << 20, used = 1;
    for (int n = 1; n <= 2; n++) {
        TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        TRY(cudaMemsetAsync(at, 0, 4, stream));
        add<<<1, 1, 0, stream>>>(at, n);
        TRY(cudaMemcpyAsync(&host, at, 4, cudaMemcpyDeviceToHost, stream));
        TRY(cudaStreamEndCapture(stream, n == 1 ? &graph : &again));
    }
    TRY(cudaGraphInstantiate(&exec, graph, 0));
    TRY(cudaGraphExecUpdate(exec, again, &info));
    TRY(cudaGraphLaunch(exec, stream));
    TRY(cudaStreamAddCallback(stream, called, &calls, 0));
    TRY(cudaDeviceGetDefaultMemPool(&pool, 0));
    TRY(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    TRY(cudaMallocFromPoolAsync((void **)&scratch, 4, pool, stream));
    TRY(cudaMemcpyAsync(scratch, &four, 4, cudaMemcpyHostToDevice, stream));
    TRY(cudaFreeAsync(scratch, stream));
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    printf("captured %d, %d by callback, pool used %llu\n", host, calls, used);
    TRY(cudaGraphExecDestroy(exec));
    TRY(cudaGraphDestroy(graph));
    TRY(cudaGraphDestroy(again));
    return 0;
}

int main()
{
    int *at;
    cudaStream_t stream;
    TRY(cudaMalloc(&at, 4));
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return explicit_graph(at, stream) || loop_graph(at, stream) || captured_graph(at, stream);
}
PROGRAM

# Some of a program's files for other devices alone, as libraries have them.
cat >"$dir/mixed.cu" <<'PROGRAM'
#include <cstdio>
#include <cuda_runtime.h>

__global__ void foreign(int *at);

__global__ void own(int *at) { *at = 7; }

int main()
{
    int *at, host = 0;
    cudaError_t first = cudaMalloc(&at, sizeof *at);
    own<<<1, 1>>>(at);
    cudaMemcpy(&host, at, sizeof host, cudaMemcpyDeviceToHost);
    foreign<<<1, 1>>>(at);
    cudaError_t refused = cudaGetLastError();
    own<<<1, 1>>>(at);
    printf("first %d, own %d, foreign %d, after it %d\n", first, host, refused, cudaDeviceSynchronize());
    return 0;
}
PROGRAM
printf '__global__ void foreign(int *at) { *at = 8; }\n' >"$dir/foreign.cu"

cat >"$dir/objects.cu" <<'PROGRAM'
#include "objects.h"

__device__ int step = 3;
static __device__ int own = 100;
static __global__ void mine(int *at) { *at += own + largest(1, 2); }
__global__ void use(int *at, change f) { *at = add_step(*at) + f(*at) + largest(*at, 4); }

int main()
{
    int *at, host = 5;
    change f;
    TRY(cudaMalloc(&at, 4));
    TRY(cudaMemcpy(at, &host, 4, cudaMemcpyHostToDevice));
    TRY(cudaMemcpyFromSymbol(&f, chosen, sizeof f));
    use<<<1, 1>>>(at, f);
    mine<<<1, 1>>>(at);
    others(at);
    TRY(cudaMemcpy(&host, at, 4, cudaMemcpyDeviceToHost));
    printf("objects: %d\n", host); /* 5: 8 + 10 + 5, + 100 + 2, + 1000 + 7 */
    return 0;
}
PROGRAM
cat >"$dir/objects.h" <<'PROGRAM'
#include <cstdio>
#include <cuda_runtime.h>

#define TRY(call)                                                                                   \
    do {                                                                                            \
        cudaError_t e = (call);                                                                     \
        if (e != cudaSuccess) {                                                                     \
            printf("%s: %s\n", #call, cudaGetErrorString(e));                                       \
            return 1;                                                                               \
        }                                                                                           \
    } while (0)

typedef int (*change)(int);
extern __device__ int step;
extern __device__ change chosen;
__device__ int add_step(int x);
void others(int *at);
template <typename T> __device__ __noinline__ T largest(T a, T b) { return a > b ? a : b; }
PROGRAM
cat >"$dir/objects2.cu" <<'PROGRAM'
#include "objects.h"

static __device__ int own = 1000;
static __device__ int twice(int x) { return 2 * x; }
__device__ change chosen = twice;
__device__ int add_step(int x) { return x + step; }
static __global__ void mine(int *at) { *at += own + largest(7, 6); }
void others(int *at) { mine<<<1, 1>>>(at); }
PROGRAM

runs() { # LABEL PROGRAM [library path]
    if LD_LIBRARY_PATH=$(dirname "$SIM")${3:+:$3} HEWN_SIM_GPU=h200 "$2" >"$dir/out" 2>&1; then ok
    else fail "$1" "$(cat "$dir/out")"; fi
    want "$1" "total 1498500 of 1000" "$dir/out"
    want "$1" "1 launch, 1498500, blocks 1" "$dir/out"
    want "$1" "managed variable 6" "$dir/out"
    want "$1" "too many threads: cudaErrorInvalid" "$dir/out"
}
built() { # NAME OPTIONS…
    name=$1
    shift
    if "$nvcc" "$@" -o "$dir/$name" "$dir/${source:-features}.cu" >"$dir/log" 2>&1; then return 0; fi
    fail "nvcc $*" "$(cat "$dir/log")"
    return 1
}

built static -arch=compute_90 && runs "static runtime library" "$dir/static"
built shared -arch=compute_90 -cudart shared --no-compress &&
    runs "shared runtime library, PTX stored plain" "$dir/shared" "$CUDA_HOME/lib64"
built lines -gencode arch=compute_90,code=sm_90 -lineinfo && runs "machine code with line numbers" "$dir/lines"
source=graphs
if built graphs -arch=compute_90 --cudart shared; then
    LD_LIBRARY_PATH=$(dirname "$SIM"):$CUDA_HOME/lib64 HEWN_SIM_GPU=h200 "$dir/graphs" >"$dir/out" 2>&1
    status "graphs" 0 $?
    want "graphs" "explicit 7, 2 calls, function kept" "$dir/out"
    want "graphs" "loop ended at 0" "$dir/out"
    want "graphs" "captured 2, 10 by callback, pool used 0" "$dir/out"
fi
# Relocatable device code: the link of nvcc leaves the objects' PTX to the driver.
source=objects
for arch in compute_90 $([ "$SUITE" = all ] && echo sm_90); do
    if built objects -rdc=true -arch="$arch" "$dir/objects2.cu"; then
        LD_LIBRARY_PATH=$(dirname "$SIM") HEWN_SIM_GPU=h200 "$dir/objects" >"$dir/out" 2>&1
        status "relocatable objects for $arch" 0 $?
        want "relocatable objects for $arch" "objects: 1132" "$dir/out"
    fi
done
source=features
if built cubin -gencode arch=compute_90,code=sm_90; then
    LD_LIBRARY_PATH=$(dirname "$SIM") HEWN_SIM_QUIET=0 HEWN_SIM_GPU=h200 "$dir/cubin" >"$dir/out" 2>&1
    status "machine code alone" 1 $?
    want "machine code alone" "hewn-sim: .*holds machine code only.*code=compute_90" "$dir/out"
fi
if built later -gencode 'arch=compute_90,code=[sm_90]' -gencode 'arch=compute_100,code=[compute_100]'; then
    LD_LIBRARY_PATH=$(dirname "$SIM") HEWN_SIM_QUIET=0 HEWN_SIM_GPU=h200 "$dir/later" >"$dir/out" 2>&1
    status "machine code and later PTX" 1 $?
    want "machine code and later PTX" "hewn-sim: .*machine code for sm_90.*PTX for sm_100" "$dir/out"
fi
# cuBLAS is machine code. A handle asks for the names of kernels and of variables; the product launches one.
cat >"$dir/handle.cu" <<'END'
#include <cublas_v2.h>
#include <cublasLt.h>
#include <cstdio>
int main()
{
    cublasHandle_t handle;
    cublasLtHandle_t other;
    float *x, one = 1;
    int made = cublasCreate(&handle), also = cublasLtCreate(&other);
    cudaMalloc(&x, 64 * 64 * 4);
    int product = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 64, &one, x, 64, x, 64, &one, x, 64);
    printf("handles %d %d, product %s\n", made, also, product ? "refused" : "done");
}
END
source=handle
if [ -e "$CUDA_HOME/lib64/libcublas.so" ] && built handle -arch=compute_90 -lcublas -lcublasLt; then
    LD_LIBRARY_PATH=$(dirname "$SIM"):$CUDA_HOME/lib64 HEWN_SIM_QUIET=0 HEWN_SIM_GPU=h200 "$dir/handle" >"$dir/out" 2>&1
    status "a handle of cuBLAS" 0 $?
    want "a handle of cuBLAS" "handles 0 0, product refused" "$dir/out"
    want "a handle of cuBLAS" "hewn-sim: .*machine code for sm_90" "$dir/out"
fi
source=mixed
built mixed.o -arch=compute_90 -c
for code in sm_120 $([ "$SUITE" = all ] && echo compute_120); do
    source=foreign
    built foreign.o -gencode "arch=compute_120,code=$code" -c || continue
    status "a link of it with a file for $code" 0 \
        "$("$nvcc" -arch=compute_90 -o "$dir/mixed" "$dir/mixed.o" "$dir/foreign.o" >"$dir/log" 2>&1; echo $?)"
    LD_LIBRARY_PATH=$(dirname "$SIM") HEWN_SIM_QUIET=0 HEWN_SIM_GPU=h200 "$dir/mixed" >"$dir/out" 2>&1
    status "a file for $code alone" 0 $?
    want "a file for $code alone" "first 0, own 7, foreign 209, after it 0" "$dir/out"
    want "a file for $code alone" "hewn-sim: .*sm_120" "$dir/out"
done
finish
