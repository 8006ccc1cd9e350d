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

#include "cuda/graph_abi.h"
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

#if CUDA_VERSION >= 12040
SAME_SIZE(hewn_cu_dev_resource, CUdevResource);
SAME_OFFSET(hewn_cu_dev_resource, sm.sm_count, CUdevResource, sm.smCount);
#endif

SAME_SIZE(hewn_cu_ipc_handle, CUipcMemHandle);
SAME_SIZE(hewn_cu_ipc_handle, CUipcEventHandle);
SAME_SIZE(hewn_cu_memcpy3d, CUDA_MEMCPY3D);
SAME_FIELD(hewn_cu_memcpy3d, src_x, CUDA_MEMCPY3D, srcXInBytes);
SAME_FIELD(hewn_cu_memcpy3d, src_z, CUDA_MEMCPY3D, srcZ);
SAME_FIELD(hewn_cu_memcpy3d, src_level, CUDA_MEMCPY3D, srcLOD);
SAME_FIELD(hewn_cu_memcpy3d, src_type, CUDA_MEMCPY3D, srcMemoryType);
SAME_FIELD(hewn_cu_memcpy3d, src_array, CUDA_MEMCPY3D, srcArray);
SAME_FIELD(hewn_cu_memcpy3d, src_pitch, CUDA_MEMCPY3D, srcPitch);
SAME_FIELD(hewn_cu_memcpy3d, src_height, CUDA_MEMCPY3D, srcHeight);
SAME_FIELD(hewn_cu_memcpy3d, dst_x, CUDA_MEMCPY3D, dstXInBytes);
SAME_FIELD(hewn_cu_memcpy3d, dst_type, CUDA_MEMCPY3D, dstMemoryType);
SAME_FIELD(hewn_cu_memcpy3d, dst_device, CUDA_MEMCPY3D, dstDevice);
SAME_FIELD(hewn_cu_memcpy3d, dst_array, CUDA_MEMCPY3D, dstArray);
SAME_FIELD(hewn_cu_memcpy3d, dst_height, CUDA_MEMCPY3D, dstHeight);
SAME_FIELD(hewn_cu_memcpy3d, width, CUDA_MEMCPY3D, WidthInBytes);
SAME_FIELD(hewn_cu_memcpy3d, depth, CUDA_MEMCPY3D, Depth);
SAME_SIZE(hewn_cu_array_desc, CUDA_ARRAY_DESCRIPTOR);
SAME_FIELD(hewn_cu_array_desc, width, CUDA_ARRAY_DESCRIPTOR, Width);
SAME_FIELD(hewn_cu_array_desc, height, CUDA_ARRAY_DESCRIPTOR, Height);
SAME_FIELD(hewn_cu_array_desc, format, CUDA_ARRAY_DESCRIPTOR, Format);
SAME_FIELD(hewn_cu_array_desc, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME_SIZE(hewn_cu_array3d_desc, CUDA_ARRAY3D_DESCRIPTOR);
SAME_FIELD(hewn_cu_array3d_desc, width, CUDA_ARRAY3D_DESCRIPTOR, Width);
SAME_FIELD(hewn_cu_array3d_desc, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
SAME_FIELD(hewn_cu_array3d_desc, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
SAME_FIELD(hewn_cu_array3d_desc, channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
SAME_FIELD(hewn_cu_array3d_desc, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_SIZE(hewn_cu_resource_desc, CUDA_RESOURCE_DESC);
SAME_FIELD(hewn_cu_resource_desc, type, CUDA_RESOURCE_DESC, resType);
SAME_FIELD(hewn_cu_resource_desc, of.array, CUDA_RESOURCE_DESC, res.array.hArray);
SAME_FIELD(hewn_cu_resource_desc, of.linear.address, CUDA_RESOURCE_DESC, res.linear.devPtr);
SAME_FIELD(hewn_cu_resource_desc, of.linear.bytes, CUDA_RESOURCE_DESC, res.linear.sizeInBytes);
SAME_FIELD(hewn_cu_resource_desc, of.pitch2d.format, CUDA_RESOURCE_DESC, res.pitch2D.format);
SAME_FIELD(hewn_cu_resource_desc, of.pitch2d.width, CUDA_RESOURCE_DESC, res.pitch2D.width);
SAME_FIELD(hewn_cu_resource_desc, of.pitch2d.pitch, CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes);
SAME_FIELD(hewn_cu_resource_desc, flags, CUDA_RESOURCE_DESC, flags);
SAME_SIZE(hewn_cu_texture_desc, CUDA_TEXTURE_DESC);
SAME_FIELD(hewn_cu_texture_desc, address_mode, CUDA_TEXTURE_DESC, addressMode);
SAME_FIELD(hewn_cu_texture_desc, filter, CUDA_TEXTURE_DESC, filterMode);
SAME_FIELD(hewn_cu_texture_desc, flags, CUDA_TEXTURE_DESC, flags);
SAME_FIELD(hewn_cu_texture_desc, level_filter, CUDA_TEXTURE_DESC, mipmapFilterMode);
SAME_FIELD(hewn_cu_texture_desc, level_bias, CUDA_TEXTURE_DESC, mipmapLevelBias);
SAME_FIELD(hewn_cu_texture_desc, least_level, CUDA_TEXTURE_DESC, minMipmapLevelClamp);
SAME_FIELD(hewn_cu_texture_desc, most_level, CUDA_TEXTURE_DESC, maxMipmapLevelClamp);
SAME_FIELD(hewn_cu_texture_desc, border, CUDA_TEXTURE_DESC, borderColor);
SAME_SIZE(hewn_cu_resource_view_desc, CUDA_RESOURCE_VIEW_DESC);
SAME_FIELD(hewn_cu_resource_view_desc, format, CUDA_RESOURCE_VIEW_DESC, format);
SAME_FIELD(hewn_cu_resource_view_desc, width, CUDA_RESOURCE_VIEW_DESC, width);
SAME_FIELD(hewn_cu_resource_view_desc, depth, CUDA_RESOURCE_VIEW_DESC, depth);
SAME_FIELD(hewn_cu_resource_view_desc, first_level, CUDA_RESOURCE_VIEW_DESC, firstMipmapLevel);
SAME_FIELD(hewn_cu_resource_view_desc, last_layer, CUDA_RESOURCE_VIEW_DESC, lastLayer);
SAME_VALUE(HEWN_CU_FORMAT_U8, CU_AD_FORMAT_UNSIGNED_INT8);
SAME_VALUE(HEWN_CU_FORMAT_S32, CU_AD_FORMAT_SIGNED_INT32);
SAME_VALUE(HEWN_CU_FORMAT_F16, CU_AD_FORMAT_HALF);
SAME_VALUE(HEWN_CU_FORMAT_F32, CU_AD_FORMAT_FLOAT);
SAME_VALUE(HEWN_CU_RESOURCE_MIPMAPPED_ARRAY, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
SAME_VALUE(HEWN_CU_RESOURCE_LINEAR, CU_RESOURCE_TYPE_LINEAR);
SAME_VALUE(HEWN_CU_RESOURCE_PITCH2D, CU_RESOURCE_TYPE_PITCH2D);
SAME_VALUE(HEWN_CU_ARRAY_LAYERED, CUDA_ARRAY3D_LAYERED);
SAME_VALUE(HEWN_CU_ARRAY_SURFACE, CUDA_ARRAY3D_SURFACE_LDST);
SAME_VALUE(HEWN_CU_ARRAY_CUBEMAP, CUDA_ARRAY3D_CUBEMAP);
SAME_VALUE(HEWN_CU_ARRAY_GATHER, CUDA_ARRAY3D_TEXTURE_GATHER);
SAME_VALUE(HEWN_CU_TEXTURE_AS_INTEGER, CU_TRSF_READ_AS_INTEGER);
SAME_VALUE(HEWN_CU_TEXTURE_NORMALIZED, CU_TRSF_NORMALIZED_COORDINATES);
SAME_VALUE(HEWN_CU_TEXTURE_SRGB, CU_TRSF_SRGB);
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

/* graphs */
#if CUDA_VERSION >= 13000
#define X(name, value, word) SAME_VALUE(HEWN_CU_NODE_##name, CU_GRAPH_NODE_TYPE_##name);
HEWN_CU_NODE_TYPES(X)
#undef X
SAME_VALUE(HEWN_CU_INSTANTIATE_AUTO_FREE, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
SAME_VALUE(HEWN_CU_INSTANTIATE_UPLOAD, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
SAME_VALUE(HEWN_CU_INSTANTIATE_DEVICE_LAUNCH, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
SAME_VALUE(HEWN_CU_INSTANTIATE_STRUCTURE, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
SAME_VALUE(HEWN_CU_INSTANTIATE_UNSUPPORTED, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
SAME_VALUE(HEWN_CU_UPDATE_TOPOLOGY, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
SAME_VALUE(HEWN_CU_UPDATE_NODE_TYPE, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
SAME_VALUE(HEWN_CU_UPDATE_FUNCTION, CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED);
SAME_VALUE(HEWN_CU_UPDATE_PARAMETERS, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
SAME_VALUE(HEWN_CU_UPDATE_NOT_SUPPORTED, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
SAME_VALUE(HEWN_CU_UPDATE_ATTRIBUTES, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
SAME_VALUE(HEWN_CU_COND_SWITCH, CU_GRAPH_COND_TYPE_SWITCH);
SAME_VALUE(HEWN_CU_COND_ASSIGN_DEFAULT, CU_GRAPH_COND_ASSIGN_DEFAULT);
SAME_VALUE(HEWN_CU_EDGE_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
SAME_VALUE(HEWN_CU_PORT_LAUNCH_ORDER, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
SAME_VALUE(HEWN_CU_CAPTURE_SET_DEPENDENCIES, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
SAME_VALUE(HEWN_CU_USER_OBJECT_NO_SYNC, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
SAME_VALUE(HEWN_CU_USER_OBJECT_MOVE, CU_GRAPH_USER_OBJECT_MOVE);
SAME_VALUE(HEWN_CU_CHILD_MOVE, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE);
SAME_VALUE(HEWN_CU_MEM_OP_FLUSH, CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES);
SAME_VALUE(HEWN_CU_MEM_OP_WRITE_64, CU_STREAM_MEM_OP_WRITE_VALUE_64);
SAME_VALUE(HEWN_CU_MEM_OP_BARRIER, CU_STREAM_MEM_OP_BARRIER);
SAME_VALUE(HEWN_CU_WAIT_NOR, CU_STREAM_WAIT_VALUE_NOR);
SAME_VALUE(HEWN_CU_WAIT_FLUSH, CU_STREAM_WAIT_VALUE_FLUSH);
SAME_SIZE(hewn_cu_edge, CUgraphEdgeData);
SAME_FIELD(hewn_cu_edge, type, CUgraphEdgeData, type);
SAME_SIZE(hewn_cu_kernel_node, CUDA_KERNEL_NODE_PARAMS);
SAME_FIELD(hewn_cu_kernel_node, grid_x, CUDA_KERNEL_NODE_PARAMS, gridDimX);
SAME_FIELD(hewn_cu_kernel_node, block_z, CUDA_KERNEL_NODE_PARAMS, blockDimZ);
SAME_FIELD(hewn_cu_kernel_node, params, CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME_FIELD(hewn_cu_kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS, kern);
SAME_SIZE(hewn_cu_memcpy3d, CUDA_MEMCPY3D);
SAME_FIELD(hewn_cu_memcpy3d, src_type, CUDA_MEMCPY3D, srcMemoryType);
SAME_FIELD(hewn_cu_memcpy3d, src_device, CUDA_MEMCPY3D, srcDevice);
SAME_FIELD(hewn_cu_memcpy3d, src_height, CUDA_MEMCPY3D, srcHeight);
SAME_FIELD(hewn_cu_memcpy3d, dst_type, CUDA_MEMCPY3D, dstMemoryType);
SAME_FIELD(hewn_cu_memcpy3d, dst_device, CUDA_MEMCPY3D, dstDevice);
SAME_FIELD(hewn_cu_memcpy3d, dst_pitch, CUDA_MEMCPY3D, dstPitch);
SAME_FIELD(hewn_cu_memcpy3d, depth, CUDA_MEMCPY3D, Depth);
SAME_SIZE(hewn_cu_memcpy_node, CUDA_MEMCPY_NODE_PARAMS);
SAME_FIELD(hewn_cu_memcpy_node, copy, CUDA_MEMCPY_NODE_PARAMS, copyParams);
SAME_SIZE(hewn_cu_memset_node, CUDA_MEMSET_NODE_PARAMS_v2);
SAME_FIELD(hewn_cu_memset_node, element_size, CUDA_MEMSET_NODE_PARAMS_v2, elementSize);
SAME_FIELD(hewn_cu_memset_node, context, CUDA_MEMSET_NODE_PARAMS_v2, ctx);
SAME_SIZE(hewn_cu_host_node, CUDA_HOST_NODE_PARAMS);
SAME_SIZE(hewn_cu_child_node, CUDA_CHILD_GRAPH_NODE_PARAMS);
SAME_SIZE(hewn_cu_location, CUmemLocation);
SAME_SIZE(hewn_cu_access, CUmemAccessDesc);
SAME_FIELD(hewn_cu_access, flags, CUmemAccessDesc, flags);
SAME_SIZE(hewn_cu_pool_props, CUmemPoolProps);
SAME_FIELD(hewn_cu_pool_props, location, CUmemPoolProps, location);
SAME_FIELD(hewn_cu_pool_props, usage, CUmemPoolProps, usage);
SAME_SIZE(hewn_cu_memory, CUmemGenericAllocationHandle);
SAME_SIZE(hewn_cu_multicast_props, CUmulticastObjectProp);
SAME_FIELD(hewn_cu_multicast_props, devices, CUmulticastObjectProp, numDevices);
SAME_FIELD(hewn_cu_multicast_props, handle_types, CUmulticastObjectProp, handleTypes);
SAME_SIZE(hewn_cu_memory_props, CUmemAllocationProp);
SAME_FIELD(hewn_cu_memory_props, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(hewn_cu_memory_props, usage, CUmemAllocationProp, allocFlags.usage);
SAME_VALUE(HEWN_CU_ON_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_VALUE(HEWN_CU_ON_HOST_NUMA_CURRENT, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
SAME_SIZE(hewn_cu_alloc_node, CUDA_MEM_ALLOC_NODE_PARAMS);
SAME_FIELD(hewn_cu_alloc_node, address, CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
SAME_SIZE(hewn_cu_mem_op, CUstreamBatchMemOpParams);
SAME_OFFSET(hewn_cu_mem_op, value.value, CUstreamBatchMemOpParams, waitValue.value64);
SAME_OFFSET(hewn_cu_mem_op, value.flags, CUstreamBatchMemOpParams, writeValue.flags);
SAME_OFFSET(hewn_cu_mem_op, plain.flags, CUstreamBatchMemOpParams, memoryBarrier.flags);
SAME_SIZE(hewn_cu_mem_op_node, CUDA_BATCH_MEM_OP_NODE_PARAMS);
SAME_SIZE(hewn_cu_conditional_node, CUDA_CONDITIONAL_NODE_PARAMS);
SAME_FIELD(hewn_cu_conditional_node, graphs, CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out);
SAME_SIZE(hewn_cu_node_params, CUgraphNodeParams);
SAME_OFFSET(hewn_cu_node_params, kernel, CUgraphNodeParams, kernel);
SAME_OFFSET(hewn_cu_node_params, reserved2, CUgraphNodeParams, reserved2);
SAME_SIZE(hewn_cu_instantiate_params, CUDA_GRAPH_INSTANTIATE_PARAMS);
SAME_FIELD(hewn_cu_instantiate_params, result, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
SAME_SIZE(hewn_cu_update_result, CUgraphExecUpdateResultInfo);
SAME_FIELD(hewn_cu_update_result, error_from, CUgraphExecUpdateResultInfo, errorFromNode);
#endif

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
