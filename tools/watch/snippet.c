#include "snippet.h"
#include "table.h"

#include <inttypes.h>

/* hewn_watch_n is the function's own; the others live in the braces of one snippet. They are few, and live shortly:
 * a kernel that gives each role the registers it needs has few to spare. */
#define REGISTERS                                                                   \
    ".reg .pred hewn_watch_q; .reg .b32 hewn_watch_a, hewn_watch_b, hewn_watch_c; " \
    ".reg .b64 hewn_watch_p; "

/* b: number of the warp in its CTA. */
#define WARP_FLAT "mov.u32 hewn_watch_b, %%tid.x; shr.u32 hewn_watch_b, hewn_watch_b, 5; "
#define WARP                                                                               \
    "mov.u32 hewn_watch_b, %%tid.z; mov.u32 hewn_watch_c, %%ntid.y; "                      \
    "mul.lo.u32 hewn_watch_b, hewn_watch_b, hewn_watch_c; mov.u32 hewn_watch_c, %%tid.y; " \
    "add.u32 hewn_watch_b, hewn_watch_b, hewn_watch_c; mov.u32 hewn_watch_c, %%ntid.x; "   \
    "mul.lo.u32 hewn_watch_b, hewn_watch_b, hewn_watch_c; mov.u32 hewn_watch_c, %%tid.x; " \
    "add.u32 hewn_watch_b, hewn_watch_b, hewn_watch_c; shr.u32 hewn_watch_b, hewn_watch_b, 5; "

/* p: address of the slot; %s: WARP or WARP_FLAT. */
#define PLACE                                                                             \
    "mov.u32 hewn_watch_a, %%ctaid.y; mul.lo.u32 hewn_watch_a, hewn_watch_a, %d; "        \
    "mov.u32 hewn_watch_b, %%ctaid.x; add.u32 hewn_watch_a, hewn_watch_a, hewn_watch_b; " \
    "mov.u32 hewn_watch_b, %%ctaid.z; mul.lo.u32 hewn_watch_b, hewn_watch_b, %d; "        \
    "add.u32 hewn_watch_a, hewn_watch_a, hewn_watch_b; "                                  \
    "shl.b32 hewn_watch_a, hewn_watch_a, %d; %s"                                          \
    "add.u32 hewn_watch_a, hewn_watch_a, hewn_watch_b; "                                  \
    "add.u32 hewn_watch_a, hewn_watch_a, %" PRIu32 "; "                                   \
    "and.b32 hewn_watch_a, hewn_watch_a, %d; "                                            \
    "mul.wide.u32 hewn_watch_p, hewn_watch_a, %d; "                                       \
    "add.s64 hewn_watch_p, hewn_watch_p, 0x%" PRIx64 "; "

/* Behind PLACE: b becomes warp | threads << 8. */
#define THREADS_FLAT "mov.u32 hewn_watch_a, %%ntid.x; "
#define THREADS                                                                             \
    "mov.u32 hewn_watch_a, %%ntid.x; mov.u32 hewn_watch_c, %%ntid.y; "                      \
    "mul.lo.u32 hewn_watch_a, hewn_watch_a, hewn_watch_c; mov.u32 hewn_watch_c, %%ntid.z; " \
    "mul.lo.u32 hewn_watch_a, hewn_watch_a, hewn_watch_c; "
#define WHO \
    "%sshl.b32 hewn_watch_a, hewn_watch_a, %d; or.b32 hewn_watch_b, hewn_watch_b, hewn_watch_a; "
/* a: the CTA's y and z. */
#define CTA_YZ                                                                 \
    "mov.u32 hewn_watch_a, %ctaid.z; shl.b32 hewn_watch_a, hewn_watch_a, 16; " \
    "mov.u32 hewn_watch_c, %ctaid.y; or.b32 hewn_watch_a, hewn_watch_a, hewn_watch_c; "

/* Word by word. The site comes last: a reader that sees it sees the rest. */
#define RECORD                                                                                  \
    "st.volatile.global.b32 [hewn_watch_p+12], hewn_watch_b; mov.u32 hewn_watch_a, %%ctaid.x; " \
    "st.volatile.global.b32 [hewn_watch_p+4], hewn_watch_a; %s"                                 \
    "st.volatile.global.b32 [hewn_watch_p+8], hewn_watch_a; "                                   \
    "mov.b32 hewn_watch_a, %" PRIu32 "; st.volatile.global.b32 [hewn_watch_p], hewn_watch_a; "
/* At once: a barrier is met too often for more than one store. */
#define RECORD_BLOCK                                                                        \
    "%smov.u32 hewn_watch_c, %%ctaid.x; mov.b32 hewn_watch_d, %" PRIu32 "; "                \
    "st.volatile.global.v4.b32 [hewn_watch_p], {hewn_watch_d, hewn_watch_c, hewn_watch_a, " \
    "hewn_watch_b}; "

/* A store to nowhere ends the kernel. ptxas makes wgmma wait for each other where a loop has a trap. */
#define STOP                                                                                     \
    "mov.b64 hewn_watch_p, 0x%" PRIx64 "; ld.volatile.global.u32 hewn_watch_a, [hewn_watch_p]; " \
    "setp.ne.u32 hewn_watch_q, hewn_watch_a, 0; mov.b64 hewn_watch_p, 16; "                      \
    "@hewn_watch_q st.volatile.global.b32 [hewn_watch_p], hewn_watch_a; "

static char *place_text(struct arena *arena, const struct snippet *s, uint64_t table)
{
    char *warp = arena_printf(arena, s->flat ? WARP_FLAT : WARP);

    if (!warp) return NULL;
    return arena_printf(arena, PLACE, WATCH_CTA_Y, WATCH_CTA_Z, WATCH_CTA_SHIFT, warp, s->salt,
                        WATCH_SLOTS - 1, WATCH_RECORD_BYTES, table + WATCH_HEADER);
}

static char *who_text(struct arena *arena, const struct snippet *s)
{
    char *threads = arena_printf(arena, s->flat ? THREADS_FLAT : THREADS);

    return threads ? arena_printf(arena, WHO, threads, WATCH_WARP_BITS) : NULL;
}

/* Stores with registers of either width: a store takes the low half of a wide one. */
static char *barrier_text(struct arena *arena, const struct snippet *s)
{
    const char *value = s->value.length ? s->value.at : "0",
               *offset = s->offset.length ? s->offset.at : "0";
    const int value_length = s->value.length ? (int)s->value.length : 1,
              offset_length = s->offset.length ? (int)s->offset.length : 1;

    if (!s->barrier.length) return arena_strndup(arena, "", 0);
    return arena_printf(arena,
                        "%s%.*s%sst.volatile.global.b32 [hewn_watch_p+16], %.*s; "
                        "st.volatile.global.b32 [hewn_watch_p+20], %.*s; "
                        "st.volatile.global.b32 [hewn_watch_p+24], %.*s; ",
                        s->barrier_is_symbol ? "mov.u32 hewn_watch_a, " : "",
                        s->barrier_is_symbol ? (int)s->barrier.length : 0, s->barrier.at,
                        s->barrier_is_symbol ? "; " : "",
                        s->barrier_is_symbol ? (int)sizeof "hewn_watch_a" - 1
                                             : (int)s->barrier.length,
                        s->barrier_is_symbol ? "hewn_watch_a" : s->barrier.at, value_length, value,
                        offset_length, offset);
}

/* "@!p bra hewn_watch_7;": past the snippet where the guard says no. */
static char *guard_text(struct arena *arena, const struct snippet *s)
{
    if (!s->guard.length) return arena_strndup(arena, "", 0);
    return arena_printf(arena, "@%s%.*s bra hewn_watch_%" PRIu32 "; ", s->guard_negated ? "" : "!",
                        (int)s->guard.length, s->guard.at, s->label);
}

/* The record, and the question whether to go on. */
static char *slow_text(struct arena *arena, const struct snippet *s)
{
    char *place = place_text(arena, s, s->tables.polls), *who = who_text(arena, s),
         *barrier = barrier_text(arena, s);

    if (!place || !who || !barrier) return NULL;
    return arena_printf(arena, "%s%s%s" RECORD STOP, place, who, barrier, CTA_YZ, s->site,
                        s->tables.polls);
}

char *snippet_try(struct arena *arena, const struct snippet *s)
{
    char *guard = guard_text(arena, s), *slow = slow_text(arena, s);
    const int insn = (int)s->insn.length, done = (int)s->done.length;

    if (!guard || !slow) return NULL;
    return arena_printf(
        arena,
        "{ " REGISTERS "%s%.*s @%.*s bra hewn_watch_%" PRIu32 "; mov.b32 hewn_watch_a, 0; "
        "hewn_watch_again_%" PRIu32 ": %.*s @%.*s bra hewn_watch_%" PRIu32 "; "
        "add.u32 hewn_watch_a, hewn_watch_a, 1; setp.lt.u32 hewn_watch_q, hewn_watch_a, %d; "
        "@hewn_watch_q bra hewn_watch_again_%" PRIu32 "; %s} hewn_watch_%" PRIu32 ": ",
        guard, insn, s->insn.at, done, s->done.at, s->label, s->label, insn, s->insn.at, done,
        s->done.at, s->label, WATCH_POLLS, s->label, slow, s->label);
}

/* Every WATCH_SPINS-th time: the record. */
static char *counted_text(struct arena *arena, const struct snippet *s)
{
    char *slow = slow_text(arena, s);

    if (!slow) return NULL;
    return arena_printf(arena,
                        "add.u32 hewn_watch_n, hewn_watch_n, 1; "
                        "and.b32 hewn_watch_a, hewn_watch_n, %d; "
                        "setp.ne.u32 hewn_watch_q, hewn_watch_a, 0; "
                        "@hewn_watch_q bra hewn_watch_%" PRIu32 "; %s} hewn_watch_%" PRIu32 ": ",
                        WATCH_SPINS - 1, s->label, slow, s->label);
}

char *snippet_test(struct arena *arena, const struct snippet *s)
{
    char *guard = guard_text(arena, s), *counted = counted_text(arena, s);

    if (!guard || !counted) return NULL;
    return arena_printf(arena, "{ " REGISTERS "%s%.*s @%.*s bra hewn_watch_%" PRIu32 "; %s", guard,
                        (int)s->insn.length, s->insn.at, (int)s->done.length, s->done.at, s->label,
                        counted);
}

char *snippet_spin(struct arena *arena, const struct snippet *s)
{
    char *guard = guard_text(arena, s), *counted = counted_text(arena, s);

    if (!guard || !counted) return NULL;
    return arena_printf(arena, "{ " REGISTERS "%s%s", guard, counted);
}

/* b takes the barrier's number in. */
static char *number_text(struct arena *arena, const struct snippet *s)
{
    if (!s->barrier.length) return arena_strndup(arena, "", 0);
    return arena_printf(arena,
                        "mov.b32 hewn_watch_a, %.*s; shl.b32 hewn_watch_a, hewn_watch_a, %d; "
                        "or.b32 hewn_watch_b, hewn_watch_b, hewn_watch_a; ",
                        (int)s->barrier.length, s->barrier.at, WATCH_NUMBER_SHIFT);
}

char *snippet_block(struct arena *arena, const struct snippet *s)
{
    char *guard = guard_text(arena, s), *place = place_text(arena, s, s->tables.blocks),
         *who = who_text(arena, s), *number = number_text(arena, s);

    if (!guard || !place || !who || !number) return NULL;
    return arena_printf(arena,
                        "{ " REGISTERS ".reg .b32 hewn_watch_d; %s%s%s%s" RECORD_BLOCK
                        "%.*s %s mov.b32 hewn_watch_a, 0; "
                        "st.volatile.global.b32 [hewn_watch_p], hewn_watch_a; } hewn_watch_%" PRIu32
                        ": ",
                        guard, place, who, number, CTA_YZ, s->site, (int)s->insn.length, s->insn.at,
                        place, s->label);
}
