/*
 * Digests of results, case by case: recorded on a GPU, and held against what is computed here.
 *
 *     --record FILE     write what this device computes
 *     --digests FILE    each case that FILE names must give the same bits; without effect under another
 *                       seed, and on a device of another compute capability than the one that recorded
 *
 * The file is text: a line "# 9.0 seed 0x5eed17, NVIDIA H200, driver 13000", then "DIGEST CHOICE NAME" a case.
 * CHOICE says in one word what the library chose by the number of SMs and what the bits depend on: a
 * device with fewer of them is asked again with that choice.
 */
#ifndef TESTS_DIGEST_H
#define TESTS_DIGEST_H

#include "device.h"

enum { DIGEST_CHOICE = 24 };

/* Takes its options out of argv and keeps them in argv[0], for the rerun line; the new argc. Exits where a
 * file cannot be used. */
int digest_options(int argc, char **argv);
/* What runs the cases; before the first of them. */
void digest_device(const struct device *dev);

uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t size);
enum { DIGEST_BEGIN = 0 };

/* Records the current case, or holds it against the recording. When the bits differ and so did the choice,
 * the recorded one is returned, for another run and another call; NULL: that was all. */
const char *digest_case(uint64_t digest, const char *choice);
/* A last case that says how many were compared; before test_end. */
void digest_end(void);

#endif
