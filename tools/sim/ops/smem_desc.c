/* Shared-memory matrix descriptors (smem_desc.h). */
#include "ops/smem_desc.h"

#include <inttypes.h>
#include <stdio.h>

enum { BAD_SWIZZLE = 0xFF };

/* Field values to the driver's swizzle enum. */
static const uint8_t wgmma_swizzle[4] = {0, 3, 2, 1};
static const uint8_t tcgen05_swizzle[8] = {0, 4, 3, BAD_SWIZZLE, 2, BAD_SWIZZLE, 1, BAD_SWIZZLE};

static uint32_t field(uint64_t desc, uint32_t first, uint32_t bits)
{
    return (uint32_t)(desc >> first & ((1ULL << bits) - 1ULL));
}

/* Bits that a descriptor must leave zero. */
static const struct reserved {
    uint8_t first, bits;
} wgmma_reserved[] = {{14, 2}, {30, 2}, {46, 3}, {52, 10}},
  tcgen05_reserved[] = {{14, 2}, {30, 2}, {53, 8}};

static bool reserved_clear(uint64_t desc, const struct reserved *r, size_t count, char *why,
                           size_t why_size)
{
    for (size_t i = 0; i < count; i++) {
        if (!field(desc, r[i].first, r[i].bits)) continue;
        (void)snprintf(why, why_size, "bits %u to %u of 0x%016" PRIx64 " are not zero", r[i].first,
                       r[i].first + r[i].bits - 1U, desc);
        return false;
    }
    return true;
}

/* tcgen05 only: the constant field and the leading-offset mode. */
static bool tcgen05_fields(enum desc_kind kind, uint64_t desc, char *why, size_t why_size)
{
    if (field(desc, 46, 3) != 1) {
        (void)snprintf(why, why_size, "bits 46 to 48 of 0x%016" PRIx64 " are %u, not 1", desc,
                       field(desc, 46, 3));
        return false;
    }
    if (field(desc, 52, 1) && kind != DESC_TCGEN05_WRAP) {
        (void)snprintf(why, why_size,
                       "bit 52 of 0x%016" PRIx64 " asks for an absolute leading offset, which only "
                       "K = 96 on sm_103a has",
                       desc);
        return false;
    }
    if (tcgen05_swizzle[field(desc, 61, 3)] == BAD_SWIZZLE) {
        (void)snprintf(why, why_size, "swizzle code %u (bits 61 to 63) means nothing",
                       field(desc, 61, 3));
        return false;
    }
    return true;
}

bool desc_decode(enum desc_kind kind, uint64_t desc, struct smem_operand *out, char *why,
                 size_t why_size)
{
    const bool tcgen05 = kind != DESC_WGMMA;
    const struct reserved *r = tcgen05 ? tcgen05_reserved : wgmma_reserved;
    const size_t count =
        tcgen05 ? sizeof tcgen05_reserved / sizeof *r : sizeof wgmma_reserved / sizeof *r;
    if (!reserved_clear(desc, r, count, why, why_size)) return false;
    if (tcgen05 && !tcgen05_fields(kind, desc, why, why_size)) return false;
    *out = (struct smem_operand){
        .start = field(desc, 0, 14) << 4,
        .lbo = field(desc, 16, 14) << 4,
        .sbo = field(desc, 32, 14) << 4,
        .phase = field(desc, 49, 3) << 7,
        .wraps = tcgen05 && field(desc, 52, 1),
        .swizzle = tcgen05 ? tcgen05_swizzle[field(desc, 61, 3)] : wgmma_swizzle[desc >> 62],
    };
    return true;
}

/* ---- reads ---- */

/* Ranges of one size wait here until an event's worth of them has come. */
struct batch {
    const struct async_op *op;
    struct cta *cta;
    uint32_t count, bytes;
    uint64_t address[WARP_LANES];
};

static void flush(struct batch *b)
{
    if (!b->count) return;
    observe(b->cta->group, &(struct event){
                               .kind = EV_ACCESS,
                               .space = SPACE_SHARED,
                               .access = ACCESS_READ,
                               .proxy = PROXY_ASYNC,
                               .lanes = FULL_MASK >> (WARP_LANES - b->count),
                               .warp = b->op->warp,
                               .in = b->op->in,
                               .cta = b->cta,
                               .token = b->op->token,
                               .key = 1,
                               .addresses = b->address,
                               .size = b->bytes,
                           });
    b->count = 0;
}

static void add_range(void *context, uint32_t offset, uint32_t bytes)
{
    struct batch *b = context;
    if (b->count == WARP_LANES || b->bytes != bytes) flush(b);
    b->bytes = bytes;
    b->address[b->count++] = (uint64_t)b->cta->rank << SHARED_RANK_SHIFT | offset;
}

void desc_publish(const struct async_op *op, struct cta *cta, const struct smem_operand *o,
                  uint32_t mn, uint32_t k)
{
    struct batch b = {.op = op, .cta = cta};
    if (!observes_accesses(cta->group)) return;
    tensor_ranges(o, mn, k, add_range, &b);
    flush(&b);
}

void desc_publish_product(const struct async_op *op, struct cta *cta, const struct product *p)
{
    if (!observes_accesses(cta->group)) return;
    observe(cta->group, &(struct event){.kind = EV_PRODUCT,
                                        .lanes = 1U << op->lane,
                                        .warp = op->warp,
                                        .in = op->in,
                                        .cta = cta,
                                        .token = op->token,
                                        .product = p});
}

bool desc_gather(const struct async_op *op, struct cta *cta, const char *name,
                 const struct smem_operand *o, enum tensor_format format, uint32_t mn, uint32_t k,
                 enum tile_order order, float *dst)
{
    if (!tensor_gather(o, format, cta->shared, cta->shared_bytes, mn, k, order, dst)) {
        (void)sim_fault(
            op->warp, op->in, op->lane, 700, FIND_OOB, CAUSE_NONE, "",
            "operand %s reaches outside shared memory (window offsets 0x%x to 0x%x): its "
            "descriptor says start 0x%x, leading offset %u, stride offset %u bytes for "
            "%u x %u elements",
            name, (unsigned)SHARED_RESERVED, cta->shared_bytes, o->start, o->lbo, o->sbo, mn, k);
        return false;
    }
    return true;
}
