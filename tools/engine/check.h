/* One request computed step by step with its logits kept, and these compared with float64. */
#ifndef ENGINE_CHECK_H
#define ENGINE_CHECK_H

#include "model.h"
#include "reference.h"

struct check_run {
    int32_t *tokens; /* the prompt, then what was drawn */
    int64_t prompt_count, count;
    float *logits; /* of the drawn tokens: [count - prompt_count][vocab] */
    int reason;    /* an engine_reason */
    size_t whole;  /* reference_logits' */
    double *exact; /* after check_compare: the same in float64 */
};

/* Draws at most `most` tokens in slot `slot`, whose pages are the first of the cache. 0, or -1
 * after a message. */
int check_generate(struct model *m, int64_t slot, const int32_t *prompt, int64_t prompt_count,
                   int64_t most, const struct engine_sampling *sampling, struct check_run *out,
                   struct problem *p);
void check_free(struct check_run *run);
/* 1: the logits are within reference_agrees' bound; 0: they are not; -1 after a message. */
int check_compare(const struct checkpoint *model, struct check_run *run,
                  struct reference_difference *out, struct problem *p);

#endif
