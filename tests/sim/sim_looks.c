/*
 * What the search for hangs costs, and how soon it finds one, in counted loads: loops that only count are watched
 * for a small part of their rounds, and a loop that goes round for ever sleeps soon after it has begun to.
 */
#include "lib/harness.h"
#include "machine/event.h"
#include "machine/exec.h"
#include "machine/mem.h"
#include "ops/table.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 1100000, WORDS = 64, STORES = 64, TEXT_BYTES = 4096 };

static uint32_t *out; /* device memory, also ours */

static const struct gpu test_gpu = {.name = "test",
                                    .cc_major = 10,
                                    .sm_count = 4,
                                    .shared_optin = 232448,
                                    .shared_per_sm = 233472,
                                    .regs_per_sm = 65536,
                                    .threads_per_sm = 2048,
                                    .ctas_per_sm = 32,
                                    .clock_khz = 1900000};

/* Loads of warp 0, and those of them while some loop was watched or asleep. */
struct counter {
    struct observer base; /* first */
    const struct group *group;
    uint64_t loads, watched;
};

static struct counter counter;

static void on_event(struct observer *o, const struct event *e)
{
    struct counter *c = (struct counter *)o;
    if (e->kind != EV_ACCESS || e->access != ACCESS_READ || e->warp->id != 0) return;
    c->loads++;
    c->watched += c->group->spinning != 0;
}

/* `counter` stays for the tests to read. */
static void on_end(struct observer *o, bool completed)
{
    (void)o, (void)completed;
}

static void destroy(struct observer *o)
{
    (void)o;
}

static struct observer *count_loads(struct watcher *w, struct group *g)
{
    (void)w;
    counter = (struct counter){
        .base = {.on_event = on_event, .on_end = on_end, .destroy = destroy, .accesses = true},
        .group = g};
    return &counter.base;
}

/* Launches `body` in one CTA of so many warps; `out` is its parameter. The result, or -1. */
static int run(const char *body, uint32_t warps)
{
    static char text[TEXT_BYTES];
    _Alignas(64) uint8_t params[64] = {0};
    uint64_t address = (uint64_t)(uintptr_t)out;
    struct watcher watcher = {.open = count_loads};
    struct ptx_module *m = NULL;
    struct kernel *k = NULL;
    struct ptx_diag diag = {""};
    int result = -1, n = snprintf(text, sizeof text,
                                  ".version 8.8\n.target sm_100a\n.address_size 64\n"
                                  ".visible .entry k(.param .u64 out)\n{\n"
                                  ".reg .pred %%p<4>; .reg .b32 %%r<8>; .reg .b64 %%d<2>;\n"
                                  "ld.param.u64 %%d0, [out];\nmov.u32 %%r0, %%tid.x;\n"
                                  "mov.u32 %%r1, 0;\n%s\n}\n",
                                  body);
    memset(out, 0, 4 * WORDS);
    memcpy(params, &address, sizeof address);
    if (n >= (int)sizeof text || ptx_parse(text, (size_t)n, &m, &diag) ||
        kernel_decode(m, &m->entries[0], op_binders, &k, &diag)) {
        CHECK(false, "the kernel does not load: %s", diag.text);
    } else {
        struct launch l = {.kernel = k,
                           .gpu = &test_gpu,
                           .hooks = &op_hooks,
                           .grid = {1, 1, 1},
                           .block = {32 * warps, 1, 1},
                           .cluster = {1, 1, 1},
                           .params = params,
                           .param_bytes = 8,
                           .sm_count = 1,
                           .host_threads = 1};
        launch_watch(&l, &watcher);
        result = launch_run(&l);
    }
    if (k) kernel_free(k);
    if (m) ptx_module_free(m);
    return result;
}

static void check_loads(uint64_t most)
{
    CHECK(counter.loads >= ROUNDS && counter.loads <= most, "want %d to %llu loads, got %llu",
          ROUNDS, (unsigned long long)most, (unsigned long long)counter.loads);
}

static void test_counting(void)
{
    if (!test_case("a loop that counts is watched for an eighth of its rounds at most")) return;
    CHECK_INT(run("L: ld.volatile.global.u32 %r2, [%d0];\nadd.u32 %r1, %r1, 1;\n"
                  "setp.lt.u32 %p0, %r1, 1100000;\n@%p0 bra L;\n",
                  1),
              0);
    check_loads(ROUNDS);
    CHECK(counter.watched > 0 && counter.watched <= ROUNDS / 8, "watched in %llu of %d rounds",
          (unsigned long long)counter.watched, ROUNDS);
}

/* The loops of these two stop to change after ROUNDS rounds, the second in a cycle of 500 rounds. */
static void test_hanging(void)
{
    if (test_case("a hang that begins late is found after an eighth more")) {
        CHECK_INT(run("L: ld.volatile.global.u32 %r2, [%d0];\nadd.u32 %r1, %r1, 1;\n"
                      "min.u32 %r1, %r1, 1100000;\nsetp.eq.u32 %p0, %r2, 0;\n@%p0 bra L;\n",
                      1),
                  702);
        check_loads(ROUNDS + ROUNDS / 8);
    }
    if (test_case("likewise one that goes round in 500 rounds")) {
        CHECK_INT(run("L: ld.volatile.global.u32 %r2, [%d0];\nadd.u32 %r1, %r1, 1;\n"
                      "setp.eq.u32 %p1, %r1, 1100500;\n@%p1 mov.u32 %r1, 1100000;\n"
                      "setp.eq.u32 %p0, %r2, 0;\n@%p0 bra L;\n",
                      1),
                  702);
        check_loads(ROUNDS + ROUNDS / 8 + 1000);
    }
}

/* Warp 1 waits for the late rounds of warp 0, stores words that nobody polls, and ends the loop at last. */
static void test_waking(void)
{
    if (!test_case("a sleeper that nothing concerns goes back to sleep at once")) return;
    CHECK_INT(run("setp.gt.u32 %p0, %r0, 31;\n@%p0 bra W;\n"
                  "L: ld.volatile.global.u32 %r2, [%d0];\nadd.u32 %r1, %r1, 1;\n"
                  "min.u32 %r1, %r1, 1100001;\nsetp.eq.u32 %p1, %r1, 1100000;\n"
                  "@%p1 st.volatile.global.u32 [%d0+4], 1;\n"
                  "setp.eq.u32 %p0, %r2, 0;\n@%p0 bra L;\nexit;\n"
                  "W: nanosleep.u32 1000;\nld.volatile.global.u32 %r2, [%d0+4];\n"
                  "setp.eq.u32 %p0, %r2, 0;\n@%p0 bra W;\nnanosleep.u32 1000000;\n"
                  "S: nanosleep.u32 10000;\nadd.u32 %r1, %r1, 1;\n"
                  "st.volatile.global.u32 [%d0+8], %r1;\nsetp.lt.u32 %p0, %r1, 64;\n@%p0 bra S;\n"
                  "st.volatile.global.u32 [%d0], 1;\n",
                  2),
              0);
    CHECK_INT(out[2], STORES);
    check_loads(ROUNDS + ROUNDS / 8 + 16 * STORES);
}

int main(int argc, char **argv)
{
    uint64_t address = 0;
    test_begin("sim_looks", argc, argv);
    if (mem_alloc(4 * WORDS, &address)) return 1;
    out = (uint32_t *)(uintptr_t)address;
    test_counting();
    test_hanging();
    test_waking();
    mem_free(address);
    return test_end();
}
