/*
 * Our declarations of the driver's binary interface against the real cuda.h, where the build found
 * one: constants and layouts at compile time. hewn.h stands before cuda.h here; the first case has
 * the compiler take both orders.
 */
#include "hewn.h"

#if defined __has_include
#if __has_include(<cuda.h>)
#define HAVE_CUDA_H 1
#include <cuda.h>
#endif
#endif

#include "driver_abi.h"
#include "lib/harness.h"

#ifdef HAVE_CUDA_H

#define CUDA_ERROR_SUCCESS CUDA_SUCCESS
#define SAME_VALUE(ours, theirs) \
    _Static_assert((long long)(ours) == (long long)(theirs), #ours " is not " #theirs)
#define SAME_SIZE(ours, theirs) \
    _Static_assert(sizeof(ours) == sizeof(theirs), "size of " #ours " is not that of " #theirs)
#define SAME_OFFSET(ours, field, theirs, their_field)                      \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, their_field), \
                   #ours "." #field " is not where " #theirs "." #their_field " is")
#define SAME_FIELD(ours, field, theirs, their_field)                           \
    SAME_OFFSET(ours, field, theirs, their_field);                             \
    _Static_assert(sizeof((ours){0}.field) == sizeof((theirs){0}.their_field), \
                   #ours "." #field " has not the size of " #theirs "." #their_field)

/* ---- constants ---- */

#define X(name, value, text) SAME_VALUE(HEWN_CU_##name, CUDA_ERROR_##name);
HEWN_CU_RESULTS(X)
#undef X
#define X(name, value) SAME_VALUE(HEWN_CU_ATTR_##name, CU_DEVICE_ATTRIBUTE_##name);
HEWN_CU_DEVICE_ATTRIBUTES(X)
#undef X
#define X(name, value) SAME_VALUE(HEWN_CU_FUNC_##name, CU_FUNC_ATTRIBUTE_##name);
HEWN_CU_FUNC_ATTRIBUTES(X)
#undef X
#define X(name, value) SAME_VALUE(HEWN_CU_LAUNCH_##name, CU_LAUNCH_ATTRIBUTE_##name);
HEWN_CU_LAUNCH_ATTRIBUTES(X)
#undef X
#define X(name, value) SAME_VALUE(HEWN_CU_POINTER_##name, CU_POINTER_ATTRIBUTE_##name);
HEWN_CU_POINTER_ATTRIBUTES(X)
#undef X
#define X(name, value) SAME_VALUE(HEWN_CU_LIMIT_##name, CU_LIMIT_##name);
HEWN_CU_LIMITS(X)
#undef X
#define X(name, value) SAME_VALUE(HEWN_CU_JIT_##name, CU_JIT_##name);
HEWN_CU_JIT_OPTIONS(X)
#undef X

SAME_VALUE(HEWN_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_VALUE(HEWN_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME_VALUE(HEWN_CU_CAPTURE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME_VALUE(HEWN_CU_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_VALUE(HEWN_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME_VALUE(HEWN_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME_VALUE(HEWN_CU_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME_VALUE(HEWN_CU_CAPTURE_INVALIDATED, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME_VALUE(HEWN_CU_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME_VALUE(HEWN_CU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME_VALUE(HEWN_CU_MEMORY_ARRAY, CU_MEMORYTYPE_ARRAY);
SAME_VALUE(HEWN_CU_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED);
SAME_VALUE(HEWN_CU_PROC_FOUND, CU_GET_PROC_ADDRESS_SUCCESS);
SAME_VALUE(HEWN_CU_PROC_NOT_FOUND, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
SAME_VALUE(HEWN_CU_PROC_VERSION_NOT_SUFFICIENT, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);

/* hewn.h's tensor-map enumerations are the driver's */
SAME_VALUE(HEWN_TENSORMAP_U8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME_VALUE(HEWN_TENSORMAP_U16, CU_TENSOR_MAP_DATA_TYPE_UINT16);
SAME_VALUE(HEWN_TENSORMAP_U32, CU_TENSOR_MAP_DATA_TYPE_UINT32);
SAME_VALUE(HEWN_TENSORMAP_I32, CU_TENSOR_MAP_DATA_TYPE_INT32);
SAME_VALUE(HEWN_TENSORMAP_U64, CU_TENSOR_MAP_DATA_TYPE_UINT64);
SAME_VALUE(HEWN_TENSORMAP_I64, CU_TENSOR_MAP_DATA_TYPE_INT64);
SAME_VALUE(HEWN_TENSORMAP_F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME_VALUE(HEWN_TENSORMAP_F32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME_VALUE(HEWN_TENSORMAP_F64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
SAME_VALUE(HEWN_TENSORMAP_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME_VALUE(HEWN_TENSORMAP_F32_FTZ, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ);
SAME_VALUE(HEWN_TENSORMAP_TF32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
SAME_VALUE(HEWN_TENSORMAP_TF32_FTZ, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ);
SAME_VALUE(HEWN_TENSORMAP_INTERLEAVE_32B, CU_TENSOR_MAP_INTERLEAVE_32B);
SAME_VALUE(HEWN_TENSORMAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_32B);
SAME_VALUE(HEWN_TENSORMAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_64B);
SAME_VALUE(HEWN_TENSORMAP_SWIZZLE_128B, CU_TENSOR_MAP_SWIZZLE_128B);
SAME_VALUE(HEWN_TENSORMAP_L2_256B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
SAME_VALUE(HEWN_TENSORMAP_OOB_NAN, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
#if CUDA_VERSION >= 12080 /* Blackwell's types and swizzles */
SAME_VALUE(HEWN_TENSORMAP_16U4_ALIGN8B, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B);
SAME_VALUE(HEWN_TENSORMAP_16U4_ALIGN16B, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B);
SAME_VALUE(HEWN_TENSORMAP_16U6_ALIGN16B, CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
SAME_VALUE(HEWN_TENSORMAP_SWIZZLE_128B_ATOM_32B, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B);
SAME_VALUE(HEWN_TENSORMAP_SWIZZLE_128B_ATOM_32B_FLIP_8B,
           CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B);
SAME_VALUE(HEWN_TENSORMAP_SWIZZLE_128B_ATOM_64B, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B);
#endif

/* ---- layouts ---- */

SAME_SIZE(hewn_cu_result, CUresult);
SAME_SIZE(hewn_cu_device, CUdevice);
SAME_SIZE(hewn_cu_deviceptr, CUdeviceptr);
SAME_SIZE(hewn_deviceptr, CUdeviceptr);
SAME_SIZE(hewn_tensormap, CUtensorMap);
SAME_SIZE(hewn_cu_tensor_map, CUtensorMap);
/* 64 bytes is what the encoders ask for; the type of 13.0 asks its compiler for 128. */
_Static_assert(_Alignof(CUtensorMap) % _Alignof(hewn_cu_tensor_map) == 0, "tensor map alignment");

SAME_SIZE(hewn_cu_launch_value, CUlaunchAttributeValue);
SAME_FIELD(hewn_cu_launch_value, cluster, CUlaunchAttributeValue, clusterDim);
SAME_FIELD(hewn_cu_launch_value, flag, CUlaunchAttributeValue, cooperative);
SAME_FIELD(hewn_cu_launch_value, flag, CUlaunchAttributeValue,
           programmaticStreamSerializationAllowed);
SAME_SIZE(hewn_cu_launch_attribute, CUlaunchAttribute);
SAME_FIELD(hewn_cu_launch_attribute, id, CUlaunchAttribute, id);
SAME_FIELD(hewn_cu_launch_attribute, value, CUlaunchAttribute, value);

SAME_SIZE(hewn_cu_launch_config, CUlaunchConfig);
SAME_FIELD(hewn_cu_launch_config, grid_x, CUlaunchConfig, gridDimX);
SAME_FIELD(hewn_cu_launch_config, grid_z, CUlaunchConfig, gridDimZ);
SAME_FIELD(hewn_cu_launch_config, block_x, CUlaunchConfig, blockDimX);
SAME_FIELD(hewn_cu_launch_config, block_z, CUlaunchConfig, blockDimZ);
SAME_FIELD(hewn_cu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_OFFSET(hewn_cu_launch_config, stream, CUlaunchConfig, hStream);
SAME_OFFSET(hewn_cu_launch_config, attributes, CUlaunchConfig, attrs);
SAME_FIELD(hewn_cu_launch_config, attribute_count, CUlaunchConfig, numAttrs);

SAME_SIZE(hewn_cu_memcpy2d, CUDA_MEMCPY2D);
SAME_FIELD(hewn_cu_memcpy2d, src_x, CUDA_MEMCPY2D, srcXInBytes);
SAME_FIELD(hewn_cu_memcpy2d, src_type, CUDA_MEMCPY2D, srcMemoryType);
SAME_FIELD(hewn_cu_memcpy2d, src_host, CUDA_MEMCPY2D, srcHost);
SAME_FIELD(hewn_cu_memcpy2d, src_device, CUDA_MEMCPY2D, srcDevice);
SAME_FIELD(hewn_cu_memcpy2d, src_pitch, CUDA_MEMCPY2D, srcPitch);
SAME_FIELD(hewn_cu_memcpy2d, dst_x, CUDA_MEMCPY2D, dstXInBytes);
SAME_FIELD(hewn_cu_memcpy2d, dst_type, CUDA_MEMCPY2D, dstMemoryType);
SAME_FIELD(hewn_cu_memcpy2d, dst_host, CUDA_MEMCPY2D, dstHost);
SAME_FIELD(hewn_cu_memcpy2d, dst_device, CUDA_MEMCPY2D, dstDevice);
SAME_FIELD(hewn_cu_memcpy2d, dst_pitch, CUDA_MEMCPY2D, dstPitch);
SAME_FIELD(hewn_cu_memcpy2d, width, CUDA_MEMCPY2D, WidthInBytes);
SAME_FIELD(hewn_cu_memcpy2d, height, CUDA_MEMCPY2D, Height);

/* ---- handles: one type under two names, so that they mix without a cast ---- */

static bool handles_mix(CUstream stream, CUmodule module, CUfunction function, CUcontext context)
{
    hewn_stream s = stream;
    hewn_cu_module m = module;
    hewn_function f = function;
    hewn_cu_context c = context;
    hewn_cu_event e = (CUevent)0;
    hewn_cu_library l = (CUlibrary)0;
    hewn_cu_kernel k = (CUkernel)0;
    hewn_cu_graph g = (CUgraph)0;
    hewn_cu_graph_exec x = (CUgraphExec)0;

    return !s && !m && !f && !c && !e && !l && !k && !g && !x;
}

/* ---- values that are no compile-time constants ---- */

static void check_pointers(void)
{
    if (!test_case("pointer-valued constants are those of cuda.h %d", CUDA_VERSION)) return;
    CHECK(HEWN_CU_PARAM_END == CU_LAUNCH_PARAM_END, "end of launch parameters");
    CHECK(HEWN_CU_PARAM_BUFFER_POINTER == CU_LAUNCH_PARAM_BUFFER_POINTER, "buffer pointer");
    CHECK(HEWN_CU_PARAM_BUFFER_SIZE == CU_LAUNCH_PARAM_BUFFER_SIZE, "buffer size");
    CHECK(HEWN_CU_STREAM_LEGACY == CU_STREAM_LEGACY, "legacy stream");
    CHECK(HEWN_CU_STREAM_PER_THREAD == CU_STREAM_PER_THREAD, "per-thread stream");
    CHECK(handles_mix(NULL, NULL, NULL, NULL), "handles");
}

int main(int argc, char **argv)
{
    test_begin("abi", argc, argv);
    if (test_case("constants and layouts are those of cuda.h %d", CUDA_VERSION)) { /* compiled */
    }
    check_pointers();
    return test_end();
}

#else

int main(int argc, char **argv)
{
    test_begin("abi", argc, argv);
    if (test_case("constants and layouts")) test_skip("no cuda.h was found when this was built");
    return test_end();
}

#endif
