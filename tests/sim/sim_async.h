/* What the files of sim_async share. */
#ifndef TESTS_SIM_ASYNC_H
#define TESTS_SIM_ASYNC_H

#define HEAD ".version 8.8\n.target sm_100f\n.address_size 64\n"
/* Waits for phase parity `par` of the barrier at `bar`. */
#define WAIT(bar, par)                                                                     \
    "{ .reg .pred ok; again: mbarrier.try_wait.parity.shared::cta.b64 ok, [" bar "], " par \
    "; @!ok bra again; }\n"

/* The driver's rules for tensor maps, a case each. */
void rule_cases(void);
/* What mbarriers and copies find, a case each. */
void finding_cases(void);

#endif
