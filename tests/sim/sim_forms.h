/* What the files of sim_forms share. */
#ifndef TESTS_SIM_FORMS_H
#define TESTS_SIM_FORMS_H

#include "lib/harness.h"
#include "sim_run.h"

#define HEAD ".version 8.8\n.target sm_100f\n.address_size 64\n"

/* The text of the next kernel, made piece by piece. */
void text_begin(const char *head);
void put(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Runs the text, which must load, end well and be clean. False where one of them fails. */
bool run_clean(struct run *r, const void *params, uint32_t bytes);
/* Runs the text, which must end with that kind of finding. */
void run_for_finding(struct run *r, const void *params, uint32_t bytes, const char *kind);

/* What an atomic operation leaves in memory that held `a` (PTX ISA, "atom"). `type`: u32, s64, b32 … */
uint64_t reduced(const char *op, const char *type, uint64_t a, uint64_t b);

void memory_cases(struct rng *rng);
void sync_cases(void);
void copy_cases(struct rng *rng);

#endif
