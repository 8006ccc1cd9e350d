/* What the leading rank's model tells the others. Without ranks, and of those that follow, nothing. */
#ifndef ENGINE_MODEL_RANKS_H
#define ENGINE_MODEL_RANKS_H

#include "model.h"

enum model_told { MODEL_ENTER, MODEL_PREFILL, MODEL_PLACE, MODEL_DECODE, MODEL_CANCEL };

int model_tell(const struct model *m, enum model_told kind, int64_t slot, int64_t count,
               int64_t from, struct problem *p);
int model_tell_enter(const struct model *m, int64_t slot, const struct model_request *r,
                     struct problem *p);
int model_tell_prefill(const struct model *m, int64_t slot, const int32_t *tokens, int64_t count,
                       int64_t from, bool last, struct problem *p);

#endif
