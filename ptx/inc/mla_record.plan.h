/*
 * A packed record of MLA, in bytes: what inc/mla.plan.h says of it, as numbers. #defines only.
 */
#ifndef HEWN_PTX_MLA_RECORD_PLAN_H
#define HEWN_PTX_MLA_RECORD_PLAN_H

#define MLA_RECORD 656
#define MLA_SCALES 512 /* where a record has them */
#define MLA_ROTARY 528

/* Of 584 bytes: a row of data, then, behind all such rows of a page, a row of scales. */
#define MLA_RECORD_584 584
#define MLA_584_ROW    576
#define MLA_584_ROTARY 448 /* where a row of data has them; that many e4m3 before */
#define MLA_584_SCALES 8   /* a row of them; one a 64 columns, and one that is not used */

#endif
