/*
 * What planning and running cost besides the kernel: a run allocates nothing and tells the driver its
 * tensor maps and its launches, no more; planning once more, with the kernel loaded, allocates the plan
 * alone; under the strictest stream capture a run becomes a graph, and the graph's replays give what
 * direct runs give, bit for bit. On whatever driver HEWN_LIBCUDA names; how long it takes is in make bench.
 */
#include "lib/counting_driver.h"
#include "lib/harness.h"
#include "lib/host_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is told and allocated ---- */

static void check_no_allocation(const struct counts *c)
{
    if (!counting_sees_allocations()) return;
    CHECK(c->allocations == 0 && c->frees == 0 && c->maps == 0,
          "a run made %ld allocations, %ld frees and %ld maps (rule: none)", c->allocations,
          c->frees, c->maps);
}

static void test_run(struct device *dev, const struct host_work *w)
{
    hewn_error err = {0};
    for (int i = 0; i < 2; i++) { /* a first run has no excuse either */
        counting_begin();
        int status = host_work_run(w, NULL, &err);
        struct counts c = counting_end();
        CHECK(status == HEWN_OK, "run: %s", err.message);
        check_no_allocation(&c);
        CHECK_INT(c.encodes, host_kind_maps(w->kind));
        CHECK_INT(c.launches, host_kind_launches(w->kind));
        CHECK_INT(c.loads, 0);
        CHECK(c.other == 0, "a run made %ld calls of the driver that are no launch, first %s",
              c.other, c.first_other);
    }
    CHECK_INT(dev->synchronize(), 0);
}

static void test_plan(struct device *dev, struct host_work *w)
{
    hewn_error err = {0};
    host_work_drop_plan(w);
    counting_begin();
    int status = host_work_plan(dev, w, &err);
    struct counts c = counting_end();
    CHECK(status == HEWN_OK, "plan: %s", err.message);
    if (counting_sees_allocations())
        CHECK(c.allocations == 1 && c.frees == 0 && c.maps == 0,
              "a plan made %ld allocations, %ld frees and %ld maps (rule: the plan alone)",
              c.allocations, c.frees, c.maps);
    CHECK(c.encodes == 0 || c.encodes == host_kind_maps(w->kind), "%ld maps encoded", c.encodes);
    CHECK_INT(c.launches, 0);
    CHECK_INT(c.loads, 0);
}

/* ---- under capture ---- */

#define GRAPH_FUNCTIONS(X)                                                             \
    X(stream_create, cuStreamCreate, (void **, unsigned))                              \
    X(stream_destroy, cuStreamDestroy_v2, (void *))                                    \
    X(capture_begin, cuStreamBeginCapture_v2, (void *, int))                           \
    X(capture_end, cuStreamEndCapture, (void *, void **))                              \
    X(instantiate, cuGraphInstantiateWithFlags, (void **, void *, unsigned long long)) \
    X(graph_launch, cuGraphLaunch, (void *, void *))                                   \
    X(exec_destroy, cuGraphExecDestroy, (void *))                                      \
    X(graph_destroy, cuGraphDestroy, (void *))

static struct {
#define X(field, name, arguments) int(*field) arguments;
    GRAPH_FUNCTIONS(X)
#undef X
} graphs;

/* The name of a function that the driver lacks, or NULL. */
static const char *graphs_open(const hewn_driver *driver)
{
    void *symbol;
#define X(field, name, arguments)               \
    symbol = hewn_driver_symbol(driver, #name); \
    if (!symbol) return #name;                  \
    memcpy(&graphs.field, &symbol, sizeof symbol);
    GRAPH_FUNCTIONS(X)
#undef X
    return NULL;
}

/* O and the log-sum-exps, or D, one behind the other. */
static unsigned char *outputs(struct device *dev, const struct host_work *w)
{
    unsigned char *host = malloc(w->out_bytes + w->lse_bytes);
    CHECK(host && !dev->synchronize() && !dev->to_host(host, w->out, w->out_bytes) &&
              (!w->lse || !dev->to_host(host + w->out_bytes, w->lse, w->lse_bytes)),
          "the outputs cannot be read");
    return host;
}

static void *capture(const struct host_work *w, void *stream)
{
    enum { GLOBAL = 0 };
    hewn_error err = {0};
    void *graph = NULL, *exec = NULL;
    CHECK_INT(graphs.capture_begin(stream, GLOBAL), 0);
    counting_begin();
    int status = host_work_run(w, stream, &err);
    struct counts c = counting_end();
    CHECK(status == HEWN_OK, "captured run: %s", err.message);
    check_no_allocation(&c);
    CHECK_INT(graphs.capture_end(stream, &graph), 0);
    if (graph) CHECK_INT(graphs.instantiate(&exec, graph, 0), 0);
    if (graph) graphs.graph_destroy(graph);
    return exec;
}

static void test_capture(struct device *dev, struct host_work *w)
{
    enum { NON_BLOCKING = 1 };
    void *stream = NULL, *exec;
    unsigned char *direct[HOST_INPUTS] = {NULL};
    size_t bytes = w->out_bytes + w->lse_bytes;
    hewn_error err = {0};
    for (int i = 0; i < HOST_INPUTS; i++) {
        CHECK(host_work_fill(dev, w, i), "inputs");
        CHECK(host_work_run(w, NULL, &err) == HEWN_OK, "run: %s", err.message);
        direct[i] = outputs(dev, w);
    }
    CHECK(memcmp(direct[0], direct[1], bytes) != 0, "other inputs gave the same outputs");
    CHECK_INT(graphs.stream_create(&stream, NON_BLOCKING), 0);
    exec = capture(w, stream);
    for (int i = 0; exec && i < HOST_INPUTS; i++) {
        CHECK(host_work_fill(dev, w, i), "inputs");
        CHECK_INT(graphs.graph_launch(exec, stream), 0);
        unsigned char *replayed = outputs(dev, w);
        CHECK(memcmp(direct[i], replayed, bytes) == 0,
              "the graph's replay %d is not the direct run, bit for bit", i);
        free(replayed);
    }
    if (exec) CHECK_INT(graphs.exec_destroy(exec), 0);
    if (stream) CHECK_INT(graphs.stream_destroy(stream), 0);
    for (int i = 0; i < HOST_INPUTS; i++) free(direct[i]);
}

static void test_kind(struct device *dev, enum host_kind kind)
{
    struct host_work w;
    hewn_error err = {0};
    const char *name = host_kind_name(kind), *lacking = graphs_open(dev->driver);
    bool open = host_work_open(dev, kind, &w, &err);
    if (test_case("%s: run", name)) {
        CHECK(open, "%s", err.message);
        if (open) test_run(dev, &w);
    }
    if (test_case("%s: plan again", name) && open) test_plan(dev, &w);
    if (test_case("%s: capture", name) && open) {
        if (lacking)
            test_skip("the driver lacks %s", lacking);
        else
            test_capture(dev, &w);
    }
    if (open) host_work_close(dev, &w);
}

int main(int argc, char **argv)
{
    struct device dev;
    hewn_error err = {0};
    test_begin("host", argc, argv);
    const hewn_driver_options *options = counting_options(&err);
    if (!options || !device_open_with(&dev, options, &err)) {
        if (test_case("open")) CHECK(false, "%s", err.message);
        return test_end();
    }
    test_where("sm_%d%d, %s", dev.info.cc_major, dev.info.cc_minor, dev.info.name);
    if (test_case("allocations are seen")) {
        void *(*volatile allocate)(size_t) = malloc; /* or the compiler leaves it out */
        counting_begin();
        void *p = allocate(1);
        struct counts c = counting_end();
        free(p);
        if (counting_sees_allocations())
            CHECK_INT(c.allocations, 1);
        else
            test_skip("the C library or a sanitiser keeps malloc to itself");
    }
    for (int kind = 0; kind < HOST_KINDS; kind++) test_kind(&dev, (enum host_kind)kind);
    device_close(&dev);
    return test_end();
}
