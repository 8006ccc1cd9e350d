/*
 * A packed record of MLA, in bytes: what inc/mla.plan.h says of it, as numbers. #defines only.
 */
#ifndef HEWN_PTX_MLA_RECORD_PLAN_H
#define HEWN_PTX_MLA_RECORD_PLAN_H

#define MLA_RECORD 656
#define MLA_SCALES 512 /* where a record has them */
#define MLA_ROTARY 528

#endif
