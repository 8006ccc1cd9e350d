/*
 * Whether an mbarrier's phases come out alike in every order that the program allows (the design's
 * determinacy):
 *
 *   every arrival and byte of phase k + 1 comes after all of phase k;
 *   every wait by parity that phase k satisfied comes before phase k + 1 is complete,
 *   and after phase k - 1 was.
 *
 * "Comes after" is what clocks say (struct stamp, caused), not what this run did; where all three hold
 * for all phases, one run speaks for all. Where one does not, there is an order in which an arrival
 * counts in the phase before, one too many there (finding mbarrier-overrun), or in which a parity stands
 * for another phase (mbarrier-phase).
 */
#ifndef SIM_PROTOCOL_H
#define SIM_PROTOCOL_H

#include "check/order.h"

struct protocol;

void protocol_free(struct protocol *p);
/* mbarrier.init: nothing is known of earlier phases. */
void protocol_init(struct order_bar *b);
/* An arrival (EV_MBAR_ARRIVE) that comes after `after`, filed as `self`. */
void protocol_arrive(struct order *o, struct order_warp *w, struct order_bar *b,
                     const struct event *e, const struct clock *after, epoch self, uint64_t step);
/* The same of a further lane of that instruction. */
void protocol_arrive_lane(struct order *o, struct order_warp *w, struct order_bar *b,
                          const struct event *e);
/* A copy that will complete in the current phase is issued. */
void protocol_copy(struct order *o, struct order_warp *w, struct order_bar *b,
                   const struct insn *in, epoch self);
/* A wait was satisfied by the phase before the current one (EV_MBAR_PASS); before it learns of it. */
void protocol_pass(struct order_warp *w, struct order_bar *b, const struct event *e);
/* Phases that a warp of the barrier's CTA waited for, and arrivals it brought; false: neither. */
bool protocol_ledger(const struct order_bar *b, uint32_t warp, uint32_t *waits, uint32_t *arrivals);
/* As check_passes. */
uint32_t protocol_passes(const struct order_warp *w, const struct insn *in);
/* Whether the warp, which sleeps at the wait `at` for the object `key`, has passed it as often since its last arrival as it did between
 * the one before and that: it came round, and did not arrive. */
bool protocol_went_on(const struct order_bar *b, const struct order_warp *w, const struct insn *at,
                      uint32_t key, bool straight);
/* Whether the warp, which sleeps at some wait, has passed the very wait behind which it last arrived once more, and gone on
 * without arriving. */
bool protocol_left_out(const struct order_bar *b, const struct order_warp *w);
/* The current phase is complete: hands what it comes after to b->point.current. */
void protocol_phase(struct order *o, struct order_bar *b);
/* mbarrier.inval: all uses of the barrier must be known to be over. */
void protocol_end(struct order *o, struct order_warp *w, const struct order_bar *b,
                  const struct insn *in);
/* The launch is stuck: waits for a phase that may not be the one they mean. */
void protocol_stuck(struct order *o);

#endif
