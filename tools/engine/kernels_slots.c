/* The kernels that work on slots of requests: their rules and launches. */
#include "kernels_launch.h"

/* The arrays of slots that a kernel uses must be there: `used` has a bit for each, in their order. */
static int check_slots(const struct engine_slots *s, unsigned used, hewn_error *err)
{
    const struct engine_address arrays[] = {
#define ARRAY(name) {#name, s->name, 4, 1},
        ENGINE_SLOT_ARRAYS(ARRAY)
#undef ARRAY
    };
    const struct engine_size sizes[] = {{"slots", s->slots, 1, INT32_MAX, 1},
                                        {"history_row", s->history_row, 0, INT32_MAX, 1}};
    int status = engine_check_sizes(sizes, 2, err);
    for (unsigned i = 0; !status && i < sizeof arrays / sizeof *arrays; i++)
        if (used >> i & 1) status = engine_check_addresses(&arrays[i], 1, err);
    return status;
}

int engine_advance(const struct engine_kernels *k, const struct engine_advance *a,
                   hewn_stream stream, hewn_error *err)
{
    const struct engine_slots *slots = a->slots;
    if (!slots) return engine_fail(err, HEWN_ERR_ARGUMENT, "slots: must not be NULL");
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, a->slot_of ? INT32_MAX - ENGINE_ADVANCE_THREADS : slots->slots, 1},
        {"stop_count", a->stop_count, 0, ENGINE_STOPS, 1}};
    const struct engine_address addresses[] = {{"slot_of", a->slot_of, 4, 0},
                                               {"stops", a->stops, 4, a->stop_count > 0}};
    int status = check_slots(slots, ~0U, err);
    if (!status) status = engine_check_sizes(sizes, 2, err);
    if (!status) status = engine_check_addresses(addresses, 2, err);
    if (status || a->rows == 0) return status;
    struct engine_advance_scalars s = {
        .slot_of = a->slot_of,
        .tokens = slots->tokens,
        .positions = slots->positions,
        .lengths = slots->lengths,
        .sampled = slots->sampled,
        .limits = slots->limits,
        .cancelled = slots->cancelled,
        .reasons = slots->reasons,
        .counts = slots->counts,
        .history = slots->history,
        .stops = a->stops,
        .rows = (uint32_t)a->rows,
        .slots = (uint32_t)slots->slots,
        .history_row = (uint32_t)slots->history_row,
        .stop_count = (uint32_t)a->stop_count,
    };
    const struct engine_shape shape = {
        .kernel = ENGINE_advance,
        .grid = {(s.rows + ENGINE_ADVANCE_THREADS - 1) / ENGINE_ADVANCE_THREADS, 1},
        .threads = ENGINE_ADVANCE_THREADS,
    };
    void *params[] = {ENGINE_ADVANCE_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}
