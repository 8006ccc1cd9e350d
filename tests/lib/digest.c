#include "digest.h"

#include "harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 400, PATH = 512 };

struct entry {
    uint64_t digest;
    char choice[DIGEST_CHOICE];
    char name[NAME];
};

static struct {
    const char *record_path;
    FILE *record;
    struct entry *entries; /* recorded */
    size_t count;
    char device[96];  /* that recorded them */
    bool active;      /* this device can be held against them */
    int same, absent; /* cases */
    char path[PATH];
} digests;

static FILE *open_or_exit(const char *path, const char *mode)
{
    FILE *f = fopen(path, mode);
    if (f) return f;
    perror(path);
    exit(2);
}

static void load(const char *path)
{
    FILE *f = open_or_exit(path, "r");
    struct entry e;
    if (fscanf(f, "# %95[^\n]\n", digests.device) != 1) digests.device[0] = '\0';
    while (fscanf(f, "%" SCNx64 " %23s %399[^\n]\n", &e.digest, e.choice, e.name) == 3) {
        struct entry *more = realloc(digests.entries, (digests.count + 1) * sizeof e);
        if (!more) exit(2);
        digests.entries = more;
        digests.entries[digests.count++] = e;
    }
    if (!feof(f) || !digests.device[0]) {
        fprintf(stderr, "%s: line %zu is no digest\n", path, digests.count + 2);
        exit(2);
    }
    fclose(f);
}

int digest_options(int argc, char **argv)
{
    int kept = 1;
    snprintf(digests.path, sizeof digests.path, "%s", argv[0]);
    for (int i = 1; i < argc; i++) {
        bool record = !strcmp(argv[i], "--record"), compare = !strcmp(argv[i], "--digests");
        if ((!record && !compare) || i + 1 == argc) {
            argv[kept++] = argv[i];
            continue;
        }
        size_t n = strlen(digests.path);
        snprintf(digests.path + n, sizeof digests.path - n, " %s %s", argv[i], argv[i + 1]);
        if (record) digests.record_path = argv[i + 1];
        if (compare) load(argv[i + 1]);
        i++;
    }
    argv[0] = digests.path;
    return kept;
}

void digest_device(const struct device *dev)
{
    int major = 0, minor = 0;
    unsigned long long seed = 0;
    bool described = sscanf(digests.device, "%d.%d seed %llx", &major, &minor, &seed) == 3;
    digests.active = described && major == dev->info.cc_major && minor == dev->info.cc_minor &&
                     seed == test_seed();
    if (!digests.record_path) return;
    digests.record = open_or_exit(digests.record_path, "w");
    fprintf(digests.record, "# %d.%d seed %#llx, %s, driver %d\n", dev->info.cc_major,
            dev->info.cc_minor, (unsigned long long)test_seed(), dev->info.name,
            hewn_driver_version(dev->driver));
}

/* FNV-1a over words of 8 bytes, each step a bijection of the state. */
uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t size)
{
    const unsigned char *p = bytes;
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = size;
        memcpy(&word, p + at, size - at < 8 ? size - at : 8);
        digest = (digest ^ word) * 0x100000001b3U;
        digest ^= digest >> 29;
    }
    return digest;
}

const char *digest_case(uint64_t digest, const char *choice)
{
    const char *name = test_case_name();
    const struct entry *e = digests.entries, *end = e + digests.count;
    if (digests.record) fprintf(digests.record, "%016" PRIx64 " %s %s\n", digest, choice, name);
    if (!digests.active) return NULL;
    while (e < end && strcmp(e->name, name) != 0) e++;
    if (e == end) {
        digests.absent++;
        return NULL;
    }
    if (e->digest == digest) {
        digests.same++;
        return NULL;
    }
    if (strcmp(e->choice, choice) != 0) return e->choice;
    CHECK(false, "not the bits of %s: want digest %016" PRIx64 " got %016" PRIx64 " (%s)",
          digests.device, e->digest, digest, choice);
    return NULL;
}

void digest_end(void)
{
    if (digests.record && fclose(digests.record)) perror("recording digests");
    if (digests.active && test_summary("digests of %s", digests.device)) {
        CHECK(digests.same > 0, "no case was compared");
        if (digests.absent)
            test_skip("%d cases are not in the recording, %d are the same (make golden-gemm, "
                      "golden-attention)",
                      digests.absent, digests.same);
    }
    free(digests.entries);
}
