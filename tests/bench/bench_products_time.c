/* bench_products: launches and their times, as CUDA graphs. */
#include "bench_products.h"

#include <math.h>
#include <stdlib.h>

enum { COUNT_MOST = 200, MANY = 16 };
static const double hopeless = 1.7; /* of the fastest so far: not timed further */

int side_launch(const struct side *s, int set, hewn_stream stream)
{
    const struct product *p = s->product;
    const struct pools *at = s->pools;
    hewn_deviceptr a = at->in + (uint64_t)set * (p->a_bytes + p->b_bytes), b = a + p->a_bytes;
    hewn_deviceptr d = at->out + (uint64_t)set * p->d_bytes;
    if (s->peer) return peer_launch(s->peer, s->algorithm, a, b, d, stream);
    const hewn_gemm_args args = {.struct_size = sizeof args,
                                 .a = a,
                                 .b = b,
                                 .d = d,
                                 .workspace = s->slices ? at->work : 0,
                                 .scale_a = p->in == HEWN_E4M3 ? at->scales : 0,
                                 .scale_b = p->in == HEWN_E4M3 ? at->scales : 0};
    return hewn_gemm_plan_run(s->plan, &args, stream, NULL);
}

void side_close(const struct gpu *g, struct side *s)
{
    if (s->exec) g->exec_destroy(s->exec);
    s->exec = NULL;
}

static bool capture(const struct gpu *g, struct side *s, int count)
{
    void *graph = NULL;
    bool ok = !g->begin(g->stream, 0);
    s->count = count;
    for (int i = 0; ok && i < count; i++) ok = !side_launch(s, i % s->product->sets, g->stream);
    ok = !g->end(g->stream, &graph) && graph && ok && !g->instantiate(&s->exec, graph, 0);
    if (graph) g->graph_destroy(graph);
    return ok && !g->launch(s->exec, g->stream);
}

double side_time(const struct gpu *g, const struct side *s)
{
    float ms = 0;
    if (g->event_record(g->events[0], g->stream) || g->launch(s->exec, g->stream) ||
        g->event_record(g->events[1], g->stream) || g->event_wait(g->events[1]) ||
        g->elapsed(&ms, g->events[0], g->events[1]))
        return (double)INFINITY;
    return 1e-3 * (double)ms / s->count;
}

bool side_open(const struct gpu *g, struct side *s, double seconds)
{
    double once;
    if (!capture(g, s, 2)) return false;
    once = side_time(g, s);
    if (!(once < (double)INFINITY)) return false;
    int count = (int)fmin(COUNT_MOST, fmax(1, seconds / once));
    if (count < 3) return true;
    side_close(g, s);
    return capture(g, s, count);
}

static int faster(const void *x, const void *y)
{
    const struct side *a = x, *b = y;
    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

/* One launch behind another one, by itself. */
static double launch_time(const struct gpu *g, struct side *s)
{
    double time = capture(g, s, 1) ? side_time(g, s) : (double)INFINITY;
    side_close(g, s);
    return time;
}

void sides_rank(const struct gpu *g, struct side *sides, int count, double seconds, int repeats)
{
    double least = (double)INFINITY;
    for (int i = 0; i < count; i++) {
        if (!(sides[i].seconds < (double)INFINITY)) continue; /* struck before */
        double once = launch_time(g, &sides[i]);
        sides[i].seconds = (double)INFINITY;
        least = fmin(least, once);
        if (count > MANY && once > hopeless * least) continue;
        if (side_open(g, &sides[i], seconds)) {
            double first = sides[i].seconds = side_time(g, &sides[i]);
            int more = first * sides[i].count > 20e-3 ? 0 : repeats - 1;
            for (int r = 0; r < more; r++)
                sides[i].seconds = fmin(sides[i].seconds, side_time(g, &sides[i]));
        }
        side_close(g, &sides[i]);
    }
    qsort(sides, (size_t)count, sizeof *sides, faster);
}
