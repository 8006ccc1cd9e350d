/*
 * What reads bytes that others made, each as a function that takes any bytes at all. It fails by what a
 * sanitiser reports, by a signal, or by abort() where two answers contradict each other.
 *
 * tests/fuzz/fuzz.c gives them the files in tests/fuzz/found and damaged copies of the tree's own files
 * (make check); `make fuzz` gives them to libFuzzer.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* name, what reads the bytes */
#define FUZZ_TARGETS(X)                                                     \
    X(ptx, "the PTX front end: parser, decoder, names of entries")          \
    X(join, "the linker of PTX texts, which NULs part")                     \
    X(fatbin, "the reader of fat binaries and cubins, LZ4 and zstd")        \
    X(lz4, "the LZ4 decoder, after two bytes that say the size")            \
    X(zstd, "the zstd decoder, after two bytes that say the size")          \
    X(tmap, "tensor maps: rules, encoding, decoding, size of boxes")        \
    X(run, "the statements of hewn run")                                    \
    X(npy, ".npy files")                                                    \
    X(safetensors, ".safetensors files, after the tensor's name and a NUL") \
    X(config, "the engine's reader of config.json")                         \
    X(tokenizer, "its reader of tokenizer.json")                            \
    X(weights, "its reader of model.safetensors")

#define X(name, what) void fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS(X)
#undef X

struct fuzz_target {
    const char *name, *what;
    void (*run)(const uint8_t *data, size_t size);
};
extern const struct fuzz_target fuzz_targets[];
extern const size_t fuzz_target_count;

#endif
