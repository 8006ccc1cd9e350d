/*
 * tcgen05.mma between its two halves: op_tcgen05_mma.c decodes what the instruction and the issuing
 * thread's registers say, op_tcgen05_run.c carries it out when the operation completes.
 */
#ifndef SIM_OP_TCGEN05_MMA_H
#define SIM_OP_TCGEN05_MMA_H

#include "ops/smem_desc.h"
#include "ops/tcgen05.h"

/* From KIND_MXF8F6F4 on with block scaling. */
enum mma_kind {
    KIND_F16,
    KIND_TF32,
    KIND_F8F6F4,
    KIND_I8,
    KIND_MXF8F6F4,
    KIND_MXF4,
    KIND_MXF4NVF4
};

enum {
    MMA_MAX_K = 128,    /* sparse mxf4 */
    MMA_MAX_SHIFT = 32, /* columns by which .ws may shift B */
    MMA_BLOCK_N = 8,
    MASK_WORDS = 8
};

/* insn.aux of tcgen05.mma. */
struct mma_form {
    uint8_t kind, cta_group; /* enum mma_kind */
    bool a_in_tmem, sparse, ws, a_shift;
    bool sm_103a;       /* K = 96 may be asked for */
    uint8_t vectors;    /* of scale factors for K = 64 (mxf8f6f4: 32), twice that with .sp */
    uint8_t mask_words; /* in insn.list */
    uint8_t scale;      /* D is multiplied by 2^-scale first */
    uint8_t meta_imm, scale_imm; /* in insn.imm, of [meta] and the first of [sfa], [sfb] */
    /* indices in insn.arg: */
    uint8_t meta, idesc, sfa, sfb, accumulate, zero_mask;
};

/* Payload: what one thread issued. */
struct mma_run {
    uint32_t m, n;
    uint32_t k, stored_k;       /* logical; elements of a row of A that are stored */
    uint8_t format_a, format_b; /* enum tensor_format */
    bool half_d, saturate, negate, accumulate;
    uint32_t d, a_tmem, meta, sfa, sfb; /* addresses */
    uint8_t selector;                   /* metadata columns after `meta` */
    uint8_t sfa_id, sfb_id;             /* byte of the first scale factor in its column */
    bool ue8m0;                         /* else ue4m3 */
    uint8_t vectors;
    struct smem_operand a, b;
    uint32_t b_shift;          /* .ws: columns of B read are so much further on */
    uint64_t zero_mask;        /* .ws: 0 for none */
    uint32_t keep[MASK_WORDS]; /* lanes of D that stay unwritten */
};

/* How D lies in a CTA's tensor memory, PTX ISA "Data Path Layout Organization". */
struct d_layout {
    uint32_t rows;        /* of A that a CTA supplies */
    uint32_t strips;      /* groups of rows that lie apart */
    uint32_t strip_lanes; /* lanes from one to the next */
    uint32_t banks;       /* groups of columns of D that lie apart, or come from other CTAs */
    uint32_t bank_lanes, bank_columns; /* from one to the next */
    uint32_t columns;                  /* in all */
};
struct d_layout mma_layout(const struct mma_form *f, const struct mma_run *r);

/* Announces what a submitted operation will touch. */
void mma_announce(const struct async_op *op, const struct mma_run *r);
/* The async_run_fn of tcgen05.mma. */
bool mma_run_op(struct group *g, struct async_op *op);

/* Moves 8 columns (or `columns`) of lanes up by one within each quarter of the lanes, from that of
 * `lane` on; a quarter's last lane keeps what it has. tcgen05.shift, .ashift. */
void tmem_shift(struct cta *cta, uint32_t lane, uint32_t column, uint32_t columns);

/* Columns of tensor memory that stored A takes: 8, with K = 96 12. */
static inline uint32_t mma_a_columns(const struct mma_run *r)
{
    const enum tensor_format f = (enum tensor_format)r->format_a;
    return r->stored_k * tensor_format_bytes(f) / tensor_format_pack(f) / 4U;
}

#endif
