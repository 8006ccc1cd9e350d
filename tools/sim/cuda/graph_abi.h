/*
 * The part of the driver's binary interface about graphs and memory, under names of our own: the structs and
 * constants that the simulated driver and its tests use and the runtime does not. tests/runtime/abi.c
 * checks them against a real cuda.h. Source: CUDA Driver API reference, 13.0.
 */
#ifndef SIM_GRAPH_ABI_H
#define SIM_GRAPH_ABI_H

#include "driver_abi.h"

typedef struct CUgraphNode_st *hewn_cu_node;
typedef struct CUuserObject_st *hewn_cu_user_object;
typedef struct CUgreenCtx_st *hewn_cu_green;
typedef struct CUdevResourceDesc_st *hewn_cu_resource_set; /* CUdevResourceDesc */
typedef unsigned long long hewn_cu_conditional;            /* CUgraphConditionalHandle */
typedef void hewn_cu_host_function(void *user);
typedef void hewn_cu_stream_callback(hewn_cu_stream stream, hewn_cu_result status, void *user);

/* CUdevResource: SMs of a device, or of a part of it. */
enum { HEWN_CU_DEV_RESOURCE_INVALID = 0, HEWN_CU_DEV_RESOURCE_SM = 1 };
enum { HEWN_CU_GREEN_DEFAULT_STREAM = 1, HEWN_CU_SPLIT_IGNORE_COSCHEDULING = 1 };
typedef struct hewn_cu_dev_resource {
    int type;
    unsigned char internal[92];
    union {
        struct {
            unsigned sm_count, min_partition, alignment;
        } sm;
        unsigned char oversize[48];
    };
} hewn_cu_dev_resource;

/* CU_GRAPH_NODE_TYPE_ name, value, word in a dot file */
#define HEWN_CU_NODE_TYPES(X)                                                         \
    X(KERNEL, 0, "KERNEL")                                                            \
    X(MEMCPY, 1, "MEMCPY")                                                            \
    X(MEMSET, 2, "MEMSET")                                                            \
    X(HOST, 3, "HOST")                                                                \
    X(GRAPH, 4, "CHILD_GRAPH") X(EMPTY, 5, "EMPTY") X(WAIT_EVENT, 6, "EVENT_WAIT")    \
        X(EVENT_RECORD, 7, "EVENT_RECORD") X(EXT_SEMAS_SIGNAL, 8, "EXT_SEMAS_SIGNAL") \
            X(EXT_SEMAS_WAIT, 9, "EXT_SEMAS_WAIT") X(MEM_ALLOC, 10, "MEM_ALLOC")      \
                X(MEM_FREE, 11, "MEM_FREE") X(BATCH_MEM_OP, 12, "BATCH_MEM_OP")       \
                    X(CONDITIONAL, 13, "CONDITIONAL")

enum {
#define X(name, value, word) HEWN_CU_NODE_##name = value,
    HEWN_CU_NODE_TYPES(X)
#undef X
};

enum { /* CUgraphInstantiate_flags, CUgraphInstantiateResult, CUgraphExecUpdateResult */
       HEWN_CU_INSTANTIATE_AUTO_FREE = 1,
       HEWN_CU_INSTANTIATE_UPLOAD = 2,
       HEWN_CU_INSTANTIATE_DEVICE_LAUNCH = 4,
       HEWN_CU_INSTANTIATE_NODE_PRIORITY = 8,
       HEWN_CU_INSTANTIATED = 0,
       HEWN_CU_INSTANTIATE_ERROR = 1,
       HEWN_CU_INSTANTIATE_STRUCTURE = 2,
       HEWN_CU_INSTANTIATE_UNSUPPORTED = 3,
       HEWN_CU_UPDATE_SUCCESS = 0,
       HEWN_CU_UPDATE_ERROR = 1,
       HEWN_CU_UPDATE_TOPOLOGY = 2,
       HEWN_CU_UPDATE_NODE_TYPE = 3,
       HEWN_CU_UPDATE_FUNCTION = 4,
       HEWN_CU_UPDATE_PARAMETERS = 5,
       HEWN_CU_UPDATE_NOT_SUPPORTED = 6,
       HEWN_CU_UPDATE_ATTRIBUTES = 8
};

enum { /* conditional nodes, edges, captures, user objects */
       HEWN_CU_COND_IF = 0,
       HEWN_CU_COND_WHILE = 1,
       HEWN_CU_COND_SWITCH = 2,
       HEWN_CU_COND_ASSIGN_DEFAULT = 1,
       HEWN_CU_EDGE_PROGRAMMATIC = 1,
       HEWN_CU_PORT_LAUNCH_ORDER = 2,
       HEWN_CU_CAPTURE_ADD_DEPENDENCIES = 0,
       HEWN_CU_CAPTURE_SET_DEPENDENCIES = 1,
       HEWN_CU_USER_OBJECT_NO_SYNC = 1,
       HEWN_CU_USER_OBJECT_MOVE = 1,
       HEWN_CU_CHILD_CLONE = 0,
       HEWN_CU_CHILD_MOVE = 1
};

/* CUgraphEdgeData */
typedef struct hewn_cu_edge {
    unsigned char from_port, to_port, type, reserved[5];
} hewn_cu_edge;

/* CUDA_KERNEL_NODE_PARAMS_v2; the first version ends before `kernel` */
typedef struct hewn_cu_kernel_node {
    hewn_cu_function function;
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
    unsigned shared_bytes;
    void **params;
    void **extra;
    hewn_cu_kernel kernel; /* instead of function */
    hewn_cu_context context;
} hewn_cu_kernel_node;

typedef struct hewn_cu_memcpy_node { /* CUDA_MEMCPY_NODE_PARAMS */
    int flags, reserved;
    hewn_cu_context context;
    hewn_cu_memcpy3d copy;
} hewn_cu_memcpy_node;

typedef struct hewn_cu_memset_node { /* CUDA_MEMSET_NODE_PARAMS_v2; the first ends before context */
    hewn_cu_deviceptr dst;
    size_t pitch;
    unsigned value, element_size;
    size_t width, height; /* elements, rows */
    hewn_cu_context context;
} hewn_cu_memset_node;

typedef struct hewn_cu_host_node { /* CUDA_HOST_NODE_PARAMS */
    hewn_cu_host_function *function;
    void *user;
} hewn_cu_host_node;

typedef struct hewn_cu_child_node { /* CUDA_CHILD_GRAPH_NODE_PARAMS */
    hewn_cu_graph graph;
    int ownership;
} hewn_cu_child_node;

enum { /* CUmemLocationType */
       HEWN_CU_NOWHERE = 0,
       HEWN_CU_ON_DEVICE = 1,
       HEWN_CU_ON_HOST = 2,
       HEWN_CU_ON_HOST_NUMA = 3,
       HEWN_CU_ON_HOST_NUMA_CURRENT = 4
};

typedef struct CUmemPoolHandle_st *hewn_cu_pool;
typedef struct CUlinkState_st *hewn_cu_link;
typedef unsigned long long hewn_cu_memory; /* CUmemGenericAllocationHandle */

typedef struct hewn_cu_location { /* CUmemLocation */
    int type;                     /* HEWN_CU_ON_… */
    int id;
} hewn_cu_location;

typedef struct hewn_cu_access { /* CUmemAccessDesc */
    hewn_cu_location location;
    int flags; /* 0 none, 1 read, 3 read and write */
} hewn_cu_access;

typedef struct hewn_cu_pool_props { /* CUmemPoolProps */
    int type;                       /* 1: pinned */
    int handle_types;
    hewn_cu_location location;
    void *security;
    size_t max_bytes;
    unsigned short usage;
    unsigned char reserved[54];
} hewn_cu_pool_props;

typedef struct hewn_cu_memory_props { /* CUmemAllocationProp */
    int type;                         /* 1: pinned */
    int handle_types;                 /* 1: a file descriptor */
    hewn_cu_location location;
    void *security;
    unsigned char compression, direct_rdma;
    unsigned short usage;
    unsigned char reserved[4];
} hewn_cu_memory_props;

typedef struct hewn_cu_multicast_props { /* CUmulticastObjectProp */
    unsigned devices;
    size_t bytes;
    unsigned long long handle_types;
    unsigned long long flags;
} hewn_cu_multicast_props;

typedef struct hewn_cu_alloc_node { /* CUDA_MEM_ALLOC_NODE_PARAMS */
    hewn_cu_pool_props pool;
    const hewn_cu_access *access;
    size_t access_count;
    size_t bytes;
    hewn_cu_deviceptr address; /* out */
} hewn_cu_alloc_node;

enum { /* CUstreamBatchMemOpType, CUstreamWaitValue_flags, CUstreamWriteValue_flags */
       HEWN_CU_MEM_OP_WAIT_32 = 1,
       HEWN_CU_MEM_OP_WRITE_32 = 2,
       HEWN_CU_MEM_OP_FLUSH = 3,
       HEWN_CU_MEM_OP_WAIT_64 = 4,
       HEWN_CU_MEM_OP_WRITE_64 = 5,
       HEWN_CU_MEM_OP_BARRIER = 6,
       HEWN_CU_WAIT_GEQ = 0,
       HEWN_CU_WAIT_EQ = 1,
       HEWN_CU_WAIT_AND = 2,
       HEWN_CU_WAIT_NOR = 3,
       HEWN_CU_WAIT_FLUSH = 1 << 30,
       HEWN_CU_WRITE_NO_BARRIER = 1
};

typedef union hewn_cu_mem_op { /* CUstreamBatchMemOpParams */
    int operation;
    struct {
        int operation;
        hewn_cu_deviceptr address;
        uint64_t value; /* 32-bit operations use the lower half */
        unsigned flags;
        hewn_cu_deviceptr alias;
    } value;
    struct {
        int operation;
        unsigned flags;
    } plain;
    uint64_t pad[6];
} hewn_cu_mem_op;

typedef struct hewn_cu_mem_op_node { /* CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 */
    hewn_cu_context context;
    unsigned count;
    hewn_cu_mem_op *ops;
    unsigned flags;
} hewn_cu_mem_op_node;

typedef struct hewn_cu_conditional_node { /* CUDA_CONDITIONAL_NODE_PARAMS */
    hewn_cu_conditional handle;
    int type; /* HEWN_CU_COND_… */
    unsigned size;
    hewn_cu_graph *graphs; /* out: the driver's own array of bodies */
    hewn_cu_context context;
} hewn_cu_conditional_node;

typedef struct hewn_cu_node_params { /* CUgraphNodeParams */
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        hewn_cu_kernel_node kernel;
        hewn_cu_memcpy_node memcpy;
        hewn_cu_memset_node memset;
        hewn_cu_host_node host;
        hewn_cu_child_node child;
        hewn_cu_event event;
        hewn_cu_alloc_node alloc;
        hewn_cu_deviceptr freed;
        hewn_cu_mem_op_node mem_op;
        hewn_cu_conditional_node conditional;
    };
    long long reserved2;
} hewn_cu_node_params;

typedef struct hewn_cu_instantiate_params { /* CUDA_GRAPH_INSTANTIATE_PARAMS */
    uint64_t flags;
    hewn_cu_stream upload;
    hewn_cu_node error_node;
    int result;
} hewn_cu_instantiate_params;

typedef struct hewn_cu_update_result { /* CUgraphExecUpdateResultInfo */
    int result;
    hewn_cu_node error_node, error_from;
} hewn_cu_update_result;

#endif
