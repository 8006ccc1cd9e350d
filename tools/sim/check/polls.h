/*
 * What follows an answer False. A wait and its failed polls count as one event (PROOF.md): that holds where a False leads
 * back to the same poll with nothing changed, however often. Else how often an mbarrier answers False decides
 * what the program does, and one run does not speak for all.
 */
#ifndef SIM_POLLS_H
#define SIM_POLLS_H

#include "check/order.h"

/* EV_MBAR_PASS, EV_MBAR_FALSE, while the poll is being executed. Each instruction is looked at once. */
void polls_look(struct order *o, const struct event *e);

#endif
