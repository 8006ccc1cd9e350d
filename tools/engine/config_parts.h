/* What the readers of config.json share: one field at a time, with messages that name it. */
#ifndef ENGINE_CONFIG_PARTS_H
#define ENGINE_CONFIG_PARTS_H

#include "config.h"
#include "json.h"

struct field_reader {
    const char *path;
    const struct json *root;
    struct problem *p;
};

/* A size of 1 or more; `absent`: its value where the field is null or not there, 0: it must be
 * there. */
int take_size(const struct field_reader *r, const char *name, int64_t absent, int64_t *out);
/* A number above 0, of the object `in`. */
int take_positive(const struct field_reader *r, const struct json *in, const char *name,
                  double absent, double *out);
int take_bool(const struct field_reader *r, const char *name, bool absent, bool *out);
/* A field that must have its usual value, or be absent or null. */
int want_text(const struct field_reader *r, const char *name, const char *only);

/* One of YaRN's weights, of the object `in`; 0 where it is 0, null or not there. */
int take_mscale(const struct field_reader *r, const struct json *in, const char *name, double *out);

/* What YaRN multiplies by for the factor, as a config's `mscale` weighs it. */
double config_yarn_scale(const struct config *c, double mscale);

/* A whole number from 0 on; null and `absent` likewise. */
int take_count(const struct field_reader *r, const char *name, int64_t absent, int64_t *out);
int want_eighths(const struct field_reader *r, const char *name, int64_t value);
int want_range(const struct field_reader *r, const char *name, int64_t value, int64_t least,
               int64_t most);

/* Of mixtral and qwen3_moe, behind the sizes that all models have: the experts of their layers. */
int take_experts(const struct field_reader *r, struct config *out);
/* Of deepseek_v2 and deepseek_v3, behind the sizes that all models have: latent attention, and the
 * experts of their layers. */
int take_deepseek(const struct field_reader *r, struct config *out);
/* The factor that their rotations put on the scale of scores; behind the rotations. */
int take_deepseek_scale(const struct field_reader *r, struct config *out);

#endif
