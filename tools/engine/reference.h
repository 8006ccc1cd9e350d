/* The model in float64, for tests and the demo: what the device's logits are compared with. */
#ifndef ENGINE_REFERENCE_H
#define ENGINE_REFERENCE_H

#include "checkpoint.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The logits of `count` tokens from position 0 on, out[count][vocab]. Weights are the bf16 numbers
 * that the device has. With `rounded` every result that the device keeps in bf16 is rounded to it
 * here too: what that changes is the size of the error that the device may make. Weights of keys are
 * rounded as parts of the largest; in rows from `whole` on, of a power of two, as engine_attend does.
 * 0, or -1 after a message.
 */
int reference_logits(const struct checkpoint *model, const int32_t *tokens, size_t count,
                     bool rounded, size_t whole, double *out, struct problem *p);

struct reference_difference {
    double rms, most;                 /* of the device's logits from the exact ones */
    double rms_rounded, most_rounded; /* of the rounded ones from the exact ones */
    double rms_between;               /* of the device's from the rounded ones */
    size_t worst;                     /* index of `most` */
};

/*
 * Compares `count` logits of the device. It keeps in bf16 what the rounded reference keeps, but
 * adds in fp32, so that now and then a number is rounded to the other side, and what follows moves
 * by as much as roundings do. The rule: the distance from the exact logits is at most 1.5 times
 * that of the rounded ones in the root of the mean square, and twice in the largest.
 */
bool reference_agrees(const float *device, const double *exact, const double *rounded, size_t count,
                      struct reference_difference *out);

#endif
