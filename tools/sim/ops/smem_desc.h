/*
 * What wgmma and tcgen05 share about operands in shared memory: descriptors (PTX ISA "Matrix
 * Descriptor Format" of wgmma, "Shared memory descriptor" of tcgen05), and how reading them is
 * reported.
 */
#ifndef SIM_SMEM_DESC_H
#define SIM_SMEM_DESC_H

#include "async/async.h"
#include "machine/event.h"
#include "ops/tensor.h"

/* DESC_TCGEN05_WRAP: operands of K = 96, whose leading offset may be an absolute address. */
enum desc_kind { DESC_WGMMA, DESC_TCGEN05, DESC_TCGEN05_WRAP };

/* Decodes all but the major-ness and element size, which the instruction gives. False with the broken
 * rule in `why`. */
bool desc_decode(enum desc_kind kind, uint64_t desc, struct smem_operand *out, char *why,
                 size_t why_size);

/* tensor_gather from the window of `cta` on behalf of `op`. False
 * after sim_fault (700): `name` ("A", "B") reaches outside the window. */
bool desc_gather(const struct async_op *op, struct cta *cta, const char *name,
                 const struct smem_operand *o, enum tensor_format format, uint32_t mn, uint32_t k,
                 enum tile_order order, float *dst);

/* Announces the shared ranges that a submitted operation will read; k in containers of elem_bytes. */
void desc_publish(const struct async_op *op, struct cta *cta, const struct smem_operand *o,
                  uint32_t mn, uint32_t k);

/* One operand of a product. */
struct product_operand {
    const struct smem_operand *o; /* NULL: not in shared memory */
    enum tensor_format format;
    uint32_t mn, k; /* rows of A or columns of B; k in containers of elem_bytes */
};

/* What EV_PRODUCT tells: a product, or a copy from shared to tensor memory, which has an `a` alone of bytes
 * in rows. */
struct product {
    struct product_operand a, b;
    bool sparse; /* of A half of each row is stored */
    bool copy;
    bool accumulate;
    uint32_t d; /* which accumulators: first register, or address in tensor memory */
};

/* Announces a product of a submitted operation in the memory of `cta`. */
void desc_publish_product(const struct async_op *op, struct cta *cta, const struct product *p);

#endif
