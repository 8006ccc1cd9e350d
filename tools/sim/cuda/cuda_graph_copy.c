/* The copies of graph nodes: boxes of rows and slices, which programs give as CUDA_MEMCPY3D. */
#include "cuda/graph.h"

/* A node may name memory that its graph has not allocated yet; when it runs, all must be there. */
int copy3d_check(const hewn_cu_memcpy3d *copy, bool executes)
{
    struct copy_request request;
    int rc = copy3d_request(copy, &request);

    if (rc) return rc;
    rc = copy_check(&request);
    return rc && !executes &&
                   (graph_memory_around((uint64_t)(uintptr_t)request.dst, 1) ||
                    graph_memory_around((uint64_t)(uintptr_t)request.src, 1))
               ? 0
               : rc;
}

void copy3d_execute(const hewn_cu_memcpy3d *copy)
{
    struct copy_request request;

    if (!copy3d_request(copy, &request)) copy_execute(&request);
}

void copy3d_describe(const struct copy_request *request, hewn_cu_memcpy3d *out)
{
    *out = (hewn_cu_memcpy3d){
        .src_type = request->src_device ? HEWN_CU_MEMORY_DEVICE : HEWN_CU_MEMORY_UNIFIED,
        .src_device = (uint64_t)(uintptr_t)request->src,
        .src_pitch = request->src_pitch,
        .src_height = request->src_pitch && request->depth > 1
                          ? request->src_slice / request->src_pitch
                          : request->height,
        .dst_type = request->dst_device ? HEWN_CU_MEMORY_DEVICE : HEWN_CU_MEMORY_UNIFIED,
        .dst_device = (uint64_t)(uintptr_t)request->dst,
        .dst_pitch = request->dst_pitch,
        .dst_height = request->dst_pitch && request->depth > 1
                          ? request->dst_slice / request->dst_pitch
                          : request->height,
        .width = request->width,
        .height = request->height,
        .depth = request->depth};
}
