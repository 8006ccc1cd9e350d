/* User objects: what a program attaches to graphs, to be told when the last of them is gone. */
#include "cuda/graph.h"

#include <limits.h>
#include <stdlib.h>

struct CUuserObject_st {
    hewn_cu_host_function *destroy;
    void *user;
    uint64_t references;
};

/* The destructor may not call the driver, like any function that the driver calls. */
static void drop(struct CUuserObject_st *object, unsigned count)
{
    object->references -= count < object->references ? count : object->references;
    if (object->references) return;
    handle_drop(object);
    host_execute(object->destroy, object->user);
    free(object);
}

static struct user_reference *reference_of(struct CUgraph_st *graph,
                                           const struct CUuserObject_st *object)
{
    for (uint32_t i = 0; i < graph->object_count; i++)
        if (graph->objects[i].object == object) return &graph->objects[i];
    return NULL;
}

static int retain(struct CUgraph_st *graph, struct CUuserObject_st *object, unsigned count)
{
    struct user_reference *r = reference_of(graph, object);

    if (!r) {
        r = realloc(graph->objects, (graph->object_count + 1) * sizeof *r);
        if (!r) return HEWN_CU_OUT_OF_MEMORY;
        graph->objects = r;
        r += graph->object_count++;
        *r = (struct user_reference){object, 0};
    }
    r->count += count;
    return 0;
}

int user_objects_copy(const struct CUgraph_st *from, struct CUgraph_st *to)
{
    int rc = 0;

    for (uint32_t i = 0; i < from->object_count && !rc; i++) {
        rc = retain(to, from->objects[i].object, 1);
        if (!rc) from->objects[i].object->references++;
    }
    return rc;
}

void user_objects_drop(struct CUgraph_st *graph)
{
    for (uint32_t i = 0; i < graph->object_count; i++)
        drop(graph->objects[i].object, graph->objects[i].count);
    free(graph->objects);
    graph->objects = NULL;
    graph->object_count = 0;
}

void user_objects_free_all(void)
{
    size_t at = 0;
    struct CUuserObject_st *object;

    while ((object = handle_next(HANDLE_USER_OBJECT, NULL, &at))) {
        handle_drop(object);
        free(object);
    }
}

/* ---- the API ---- */

int cuUserObjectCreate(hewn_cu_user_object *object, void *user, hewn_cu_host_function *destroy,
                       unsigned references, unsigned flags)
{
    struct call call CALL_SCOPE;
    struct CUuserObject_st *fresh;

    if (call_enter(&call, NEED_INIT)) return call.rc;
    if (!object || !destroy || !references || references > INT_MAX ||
        flags != HEWN_CU_USER_OBJECT_NO_SYNC)
        return HEWN_CU_INVALID_VALUE;
    fresh = calloc(1, sizeof *fresh);
    if (!fresh) return HEWN_CU_OUT_OF_MEMORY;
    *fresh = (struct CUuserObject_st){destroy, user, references};
    if (handle_add(fresh, HANDLE_USER_OBJECT, fresh, NULL)) {
        free(fresh);
        return HEWN_CU_OUT_OF_MEMORY;
    }
    *object = fresh;
    return 0;
}

/* Enters a call about an object and a number of references to it. */
static struct CUuserObject_st *enter(struct call *call, hewn_cu_user_object handle, unsigned count)
{
    struct CUuserObject_st *object;

    if (call_enter(call, NEED_INIT)) return NULL;
    object = handle_get(handle, HANDLE_USER_OBJECT);
    if (!object || !count || count > INT_MAX) call->rc = HEWN_CU_INVALID_VALUE;
    return call->rc ? NULL : object;
}

int cuUserObjectRetain(hewn_cu_user_object object, unsigned count)
{
    struct call call CALL_SCOPE;
    struct CUuserObject_st *o = enter(&call, object, count);

    if (o) o->references += count;
    return call.rc;
}

int cuUserObjectRelease(hewn_cu_user_object object, unsigned count)
{
    struct call call CALL_SCOPE;
    struct CUuserObject_st *o = enter(&call, object, count);

    if (o) drop(o, count);
    return call.rc;
}

int cuGraphRetainUserObject(hewn_cu_graph graph, hewn_cu_user_object object, unsigned count,
                            unsigned flags)
{
    struct call call CALL_SCOPE;
    struct CUuserObject_st *o = enter(&call, object, count);
    struct CUgraph_st *g;
    int rc;

    if (!o) return call.rc;
    g = graph_named(graph);
    if (!g || flags > HEWN_CU_USER_OBJECT_MOVE) return HEWN_CU_INVALID_VALUE;
    rc = retain(g, o, count);
    if (!rc && flags != HEWN_CU_USER_OBJECT_MOVE) o->references += count;
    return rc;
}

int cuGraphReleaseUserObject(hewn_cu_graph graph, hewn_cu_user_object object, unsigned count)
{
    struct call call CALL_SCOPE;
    struct CUuserObject_st *o = enter(&call, object, count);
    struct user_reference *r;
    struct CUgraph_st *g;

    if (!o) return call.rc;
    g = graph_named(graph);
    r = g ? reference_of(g, o) : NULL;
    if (!r || r->count < count) return HEWN_CU_INVALID_VALUE;
    r->count -= count;
    if (!r->count) *r = g->objects[--g->object_count];
    drop(o, count);
    return 0;
}
