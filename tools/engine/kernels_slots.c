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

/* ---- sample -- */

/* Bits of check_slots. */
enum { SLOT_POSITIONS = 1 << 1, SLOT_SAMPLED = 1 << 3 };
enum { LEAST_PART = 2048 }; /* logits of a CTA: fewer are not worth another one */
/* Costs of a CTA, in logits of its part: what does not depend on the part; reading another CTA of the row. */
enum { SAMPLE_BASE = 28672, SAMPLE_PEER = 5120 };

_Static_assert(sizeof(struct engine_sampling) == ENGINE_SETTINGS_BYTES, "the kernel reads it");

static int check_sample(const struct engine_sample *a, hewn_error *err)
{
    const struct engine_slots *slots = a->slots;
    if (!slots) return engine_fail(err, HEWN_ERR_ARGUMENT, "slots: must not be NULL");
    if (a->type != HEWN_F32 && a->type != HEWN_BF16)
        return engine_fail(err, HEWN_ERR_ARGUMENT, "type: %d is neither HEWN_F32 nor HEWN_BF16",
                           a->type);
    const struct engine_size sizes[] = {
        {"rows", a->rows, 0, a->slot_of ? INT32_MAX / ENGINE_SAMPLE_MOST_CTAS : slots->slots, 1},
        {"vocab", a->vocab, 1, ENGINE_SAMPLE_VOCAB, 1},
        {"row", engine_stride(a->row, a->vocab), a->vocab, ENGINE_STRIDE,
         a->rows > 1 ? (a->type == HEWN_F32 ? 4 : 8) : 1},
    };
    const struct engine_address addresses[] = {{"logits", a->logits, 16, 1},
                                               {"slot_of", a->slot_of, 4, 0},
                                               {"settings", slots->settings, 8, 1}};
    int status = check_slots(slots, SLOT_POSITIONS | SLOT_SAMPLED, err);
    if (!status) status = engine_check_sizes(sizes, sizeof sizes / sizeof *sizes, err);
    return status ? status : engine_check_addresses(addresses, 3, err);
}

/* CTAs of a row. A CTA takes an SM, so many rows with many CTAs each run in several turns. Clusters
 * cannot use all SMs. */
static uint32_t sample_ctas(int64_t sms, int64_t rows, int64_t vocab)
{
    int64_t best = ENGINE_SAMPLE_MOST_CTAS, least = INT64_MAX;
    for (int64_t ctas = 1; ctas <= ENGINE_SAMPLE_MOST_CTAS; ctas *= 2) {
        const int64_t part = (vocab + ctas - 1) / ctas, usable = sms * 15 / 16 / ctas;
        const int64_t at_once = usable > 1 ? usable : 1;
        const int64_t cost =
            (rows + at_once - 1) / at_once * (SAMPLE_BASE + part + ctas * SAMPLE_PEER);
        if (ctas > 1 && vocab / ctas < LEAST_PART) break;
        if (part > ENGINE_SAMPLE_PART || cost >= least) continue;
        least = cost;
        best = ctas;
    }
    return (uint32_t)best;
}

int engine_sample(const struct engine_kernels *k, const struct engine_sample *a, hewn_stream stream,
                  hewn_error *err)
{
    int status = check_sample(a, err);
    if (status || a->rows == 0) return status;
    const uint32_t element = a->type == HEWN_F32 ? 4 : 2, vocab = (uint32_t)a->vocab;
    const uint32_t units = (vocab * element + 15) / 16;
    const uint32_t ctas = sample_ctas(k->sms, a->rows, a->vocab);
    struct engine_sample_scalars s = {
        .logits = a->logits,
        .slot_of = a->slot_of,
        .positions = a->slots->positions,
        .settings = a->slots->settings,
        .sampled = a->slots->sampled,
        .row_bytes = element * (uint64_t)engine_stride(a->row, a->vocab),
        .slots = (uint32_t)a->slots->slots,
        .vocab = vocab,
        .cta_units = (units + ctas - 1) / ctas,
    };
    const struct engine_shape shape = {
        .kernel = a->type == HEWN_F32 ? ENGINE_sample_f32 : ENGINE_sample_bf16,
        .grid = {(uint32_t)a->rows * ctas, 1},
        .threads = ENGINE_SAMPLE_THREADS,
        .shared = s.cta_units * (16 / element) * 4,
        .cluster = ctas > 1 ? ctas : 0,
    };
    void *params[] = {ENGINE_SAMPLE_SCALARS(ENGINE_PARAM)};
    return engine_launch(k, &shape, params, stream, err);
}

/* ---- advance -- */

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
